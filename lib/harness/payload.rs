//! The JSON that a hook gets: an object with a few keys that matter, and more in every version of the program. Unknown
//! keys are fine; known keys of a wrong type are errors.

use crate::base::error::{Error, Result};
use crate::base::fields::{brief, kind};
use crate::base::reach;
use crate::base::text::one_line;
use crate::harness::turn::{ShownCall, ToolCall};
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

/// The longest id of a thread or session, in bytes.
const ID_CAP: usize = 200;

/// What a hook reports of a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// It has something new, in this file; it ran in this directory.
    Session { path: PathBuf, id: String, cwd: Option<PathBuf> },
    /// There is nothing to queue, for this reason.
    Nothing(String),
}

pub struct Payload(Map<String, Value>);

impl Payload {
    pub fn parse(bytes: &[u8]) -> Result<Payload> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(object)) => Ok(Payload(object)),
            Ok(other) => Err(wrong(&format!("a JSON object is expected, not {}", kind(&other)))),
            Err(e) => Err(wrong(&format!("not JSON: {e}"))),
        }
    }

    /// The text of a key; `None` if it is missing, null or empty.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&format!("{key}: a string is expected, not {}", kind(other)))),
        }
    }

    /// The name or id of the sub-agent that reports, if it is none of the session itself.
    pub fn sub_agent(&self) -> Result<Option<&str>> {
        let mut texts = ["agent_id", "agentId"].iter().map(|key| self.text(key));
        texts.find(|text| !matches!(text, Ok(None))).unwrap_or(Ok(None))
    }

    /// The call of a tool that a hook is about.
    pub fn call(&self) -> Option<ToolCall> {
        let name = ["tool_name", "toolName"].iter().find_map(|key| self.text(key).ok().flatten())?;
        let input = ["tool_input", "toolArgs"].iter().find_map(|key| self.0.get(*key))?;
        let input = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
        Some(ShownCall::of(name, &input).call)
    }

    pub fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !value.is_null())
    }

    /// A required id.
    pub(super) fn id(&self, key: &str) -> Result<&str> {
        let Some(id) = self.text(key)? else { return Err(wrong(&format!("{key}: is missing"))) };
        match id_fault(id) {
            None => Ok(id),
            Some(fault) => Err(wrong(&format!("{key}: {fault}"))),
        }
    }

    /// An absolute path; `None` for a relative one, because its base is unknown.
    pub(super) fn absolute(&self, key: &str) -> Result<Option<PathBuf>> {
        Ok(self.text(key)?.filter(|path| path.starts_with('/')).map(PathBuf::from))
    }

    /// The first element of a list of strings.
    pub fn first(&self, key: &str) -> Result<Option<&str>> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(values)) => match values.first() {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(other) => Err(wrong(&format!("{key}: strings are expected, not {}", kind(other)))),
            },
            Some(other) => Err(wrong(&format!("{key}: an array is expected, not {}", kind(other)))),
        }
    }
}

fn wrong(what: &str) -> Error {
    Error::usage(format!("the hook's JSON cannot be used: {}", one_line(what, 300)))
        .hint("--harness must name the program that runs the hook")
}

/// Most programs name the file that they keep the session in. `is_sub_agents`: a sub-agent's files are recognized by
/// their place or content.
pub(super) fn transcript(payload: &Payload, is_sub_agents: fn(&Path) -> bool) -> Result<Ended> {
    let id = payload.id("session_id")?.to_owned();
    let Some(path) = payload.absolute("transcript_path")? else {
        return Ok(Ended::Nothing("the session has no transcript (transcript_path is empty)".to_owned()));
    };
    let cwd = payload.absolute("cwd")?;
    if is_sub_agents(&path) {
        return Ok(sub_agents(&path));
    }
    if !is_there(&path)? {
        let path = path.display();
        return Ok(Ended::Nothing(format!("the session has no transcript: \"{path}\" does not exist")));
    }
    Ok(Ended::Session { path, id, cwd })
}

pub(super) fn sub_agents(path: &Path) -> Ended {
    Ended::Nothing(format!("\"{}\" is a sub-agent's transcript", path.display()))
}

/// The directory so many levels above the file is called that.
pub(super) fn is_below(path: &Path, levels: usize, name: &str) -> bool {
    path.ancestors().nth(levels).and_then(Path::file_name).is_some_and(|dir| dir == name)
}

pub(super) fn is_there(path: &Path) -> Result<bool> {
    match reach::within(path, Path::metadata).and_then(|found| found) {
        // What does not answer now may do so when it is read.
        Err(e) if e.kind() == io::ErrorKind::TimedOut => Ok(true),
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(Error::io(format!("the transcript \"{}\" is not a regular file", path.display()))),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(e) => Err(Error::io(format!("the transcript \"{}\" cannot be accessed: {e}", path.display()))),
    }
}

/// What is wrong with a thread or session id; `None` if nothing. It is an argument, and a part of file names.
pub fn id_fault(id: &str) -> Option<String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "._:@-".contains(c);
    match () {
        () if id.is_empty() => Some("is empty".to_owned()),
        () if id.len() > ID_CAP => Some(format!("has {} bytes; at most {ID_CAP} are taken", id.len())),
        () if id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.chars().all(is_fine) => None,
        () => Some(format!(
            "\"{}\" is not an id: letters, digits and ._:@- only, a letter or digit first",
            brief(id)
        )),
    }
}
