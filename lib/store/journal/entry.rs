//! A queue entry, version 1: where to find a session or a note, and where it comes from. It is checked when it is
//! written and again when it is read; all faults are reported together.

use crate::base::error::{Error, Fault, Result};
use crate::base::fields::{Fields, PATH_CAP, brief, kind, shown};
use crate::base::repository::name_of_url;
use crate::base::text::base58;
use crate::harness::HARNESSES;
pub use crate::harness::name::Harness;
use crate::harness::name::NAME_FORM;
use crate::harness::payload::id_fault;
use crate::harness::spec::{CaptureSpec, Spec};
use crate::store::entry::{Scope, add_missing, tag};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// The longest title, in bytes.
pub const TITLE_CAP: usize = 1000;
/// The largest note, in bytes. A good one has about forty lines.
pub const BODY_CAP: usize = 1 << 20;
/// The most tags of one note.
const TAGS_CAP: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueEntry {
    pub version: u32,
    #[serde(serialize_with = "milliseconds")]
    pub timestamp: Timestamp,
    pub harness: Harness,
    pub retrieval: Retrieval,
    pub context: CaptureContext,
}

/// Always three digits after the point, so that names sort by time.
fn milliseconds<S: serde::Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&format!("{time:.3}"))
}

/// How to get the text of the session or note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "method", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Retrieval {
    AmpThread {
        thread_id: String,
    },
    OpencodeSession {
        thread_id: String,
    },
    /// What the `readCommand` of its harness prints.
    ReadCommand {
        thread_id: String,
    },
    Transcript {
        path: PathBuf,
        format: Harness,
        session_id: String,
    },
    CursorSession {
        session_path: PathBuf,
    },
    File {
        path: PathBuf,
    },
    /// A file in which a person, or the agent of its harness, collects what is to be remembered.
    MemoryFile {
        path: PathBuf,
    },
    Inline {
        title: String,
        body: String,
        tags: Vec<String>,
        scope: Scope,
        thread_id: Option<String>,
    },
}

const METHODS: [&str; 8] = [
    "amp-thread", "opencode-session", "read-command", "transcript", "cursor-session", "file", "memory-file",
    "inline",
];

impl Retrieval {
    /// A session that its program prints.
    pub fn by_id(harness: Harness, thread_id: String) -> Retrieval {
        match harness.spec().map(|spec| spec.method) {
            Some("amp-thread") => Retrieval::AmpThread { thread_id },
            Some("opencode-session") => Retrieval::OpencodeSession { thread_id },
            _ => Retrieval::ReadCommand { thread_id },
        }
    }

    /// A session that its program keeps in a file.
    pub fn in_file(harness: Harness, path: PathBuf, session_id: String) -> Retrieval {
        match harness.spec().map(|spec| spec.method) {
            Some("cursor-session") => Retrieval::CursorSession { session_path: path },
            _ => Retrieval::Transcript { path, format: harness, session_id },
        }
    }

    /// The program in whose form the session is. Other programs print one of the forms that anybody may print.
    pub fn spec(&self) -> Option<&'static Spec> {
        let method = match self {
            Retrieval::Transcript { format, .. } => return format.spec(),
            Retrieval::AmpThread { .. } => "amp-thread",
            Retrieval::OpencodeSession { .. } => "opencode-session",
            Retrieval::CursorSession { .. } => "cursor-session",
            Retrieval::ReadCommand { .. }
            | Retrieval::File { .. }
            | Retrieval::MemoryFile { .. }
            | Retrieval::Inline { .. } => return None,
        };
        HARNESSES.iter().find(|spec| spec.method == method).copied()
    }
}

/// Where the session ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CaptureContext {
    pub cwd: Option<PathBuf>,
    /// `host/owner/name`, or `local:PATH`.
    pub repo: Option<String>,
    /// What was checked out there when it was queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// It was found on the machine by `memory-capture --past`: it waits until nothing new does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub past: bool,
}

impl QueueEntry {
    /// The key of the session, the same in all entries for it; `None` for a note.
    pub fn session(&self) -> Option<String> {
        let which = match &self.retrieval {
            Retrieval::AmpThread { thread_id }
            | Retrieval::OpencodeSession { thread_id }
            | Retrieval::ReadCommand { thread_id } => thread_id.clone(),
            Retrieval::Transcript { path, .. }
            | Retrieval::CursorSession { session_path: path }
            | Retrieval::File { path }
            | Retrieval::MemoryFile { path } => path.to_string_lossy().into_owned(),
            Retrieval::Inline { .. } => return None,
        };
        Some(format!("{}:{which}", self.harness))
    }

    /// The thread or session id that a note made from this entry names as its source.
    pub fn thread_id(&self) -> Option<&str> {
        match &self.retrieval {
            Retrieval::AmpThread { thread_id }
            | Retrieval::OpencodeSession { thread_id }
            | Retrieval::ReadCommand { thread_id } => Some(thread_id),
            Retrieval::Transcript { session_id, .. } => Some(session_id),
            Retrieval::CursorSession { session_path } => session_path.file_stem()?.to_str(),
            Retrieval::File { .. } | Retrieval::MemoryFile { .. } => None,
            Retrieval::Inline { thread_id, .. } => thread_id.as_deref(),
        }
    }

    /// The name in the ledger of what was read of it: the same wherever a session's file lies. `None` for a note.
    pub fn ledger_key(&self) -> Option<String> {
        match &self.retrieval {
            Retrieval::Inline { .. } => None,
            Retrieval::File { path } | Retrieval::MemoryFile { path } => {
                Some(format!("{}:{}", self.harness, path.display()))
            }
            _ => self.thread_id().map(|id| format!("{}:{id}", self.harness)),
        }
    }

    /// A file of memories that a person wants to have imported.
    pub fn is_import(&self) -> bool {
        self.harness == Harness::MANUAL && self.is_memory_file()
    }

    /// A file of memories, whoever wrote it.
    pub fn is_memory_file(&self) -> bool {
        matches!(self.retrieval, Retrieval::MemoryFile { .. })
    }

    /// The JSON of the file.
    pub fn json(&self) -> Value {
        // Only a path that is not UTF-8 cannot be serialised, and `check` refuses those.
        serde_json::to_value(self).unwrap_or(Value::Null)
    }

    /// The entry in `bytes`. The error is of kind `Usage` and lists every fault.
    pub fn parse(bytes: &[u8]) -> Result<QueueEntry> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(object)) => from_object(object),
            Ok(other) => {
                Err(malformed_as_a_whole(format!("a JSON object is expected, not {}", kind(&other))))
            }
            Err(e) => Err(malformed_as_a_whole(format!("not JSON: {e}"))),
        }
    }

    /// The same checks for an entry that was made in this program.
    pub fn check(&self) -> Result<()> {
        let json = serde_json::to_value(self).map_err(|e| malformed_as_a_whole(e.to_string()))?;
        let Value::Object(object) = json else { return Ok(()) };
        from_object(object).map(drop)
    }
}

/// Four characters of base58, in the names of all entries for one session.
pub fn session_mark(session: &str) -> String {
    let head =
        Sha256::digest(session).iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte));
    base58(head, 4)
}

/// What the message of a malformed entry begins with.
pub(super) const NOT_AN_ENTRY: &str = "not a queue entry";

fn malformed(faults: Vec<Fault>) -> Error {
    let list: Vec<String> = faults.iter().map(Fault::to_string).collect();
    Error::usage(format!("{NOT_AN_ENTRY}: {}", list.join("; "))).with_faults(faults)
}

fn malformed_as_a_whole(message: String) -> Error {
    malformed(vec![Fault { path: String::new(), message }])
}

fn from_object(object: Map<String, Value>) -> Result<QueueEntry> {
    let mut top = Fields::new("", object);
    let version = match top.take("version") {
        Some(Value::Number(n)) if n.as_u64() == Some(1) => 1,
        // The other keys of another version may mean anything.
        Some(other) => {
            let message = format!("{} is unknown; this program knows version 1", shown(&other));
            return Err(malformed(vec![Fault { path: "version".to_owned(), message }]));
        }
        None => {
            top.missing("version");
            1
        }
    };
    let timestamp = top.parsed("timestamp", |text| {
        let form = "is not an RFC 3339 time, like 2026-02-13T14:30:05.123Z";
        text.parse::<Timestamp>().map_err(|_| format!("\"{}\" {form}", brief(&text)))
    });
    let harness = top.parsed("harness", |name| {
        let fault = || format!("\"{}\" is not the name of a program: {NAME_FORM}", brief(&name));
        Harness::of_name(&name).ok_or_else(fault)
    });
    let retrieval = top.object("retrieval").and_then(|object| {
        let mut fields = Fields::new("retrieval.", object);
        let Some(method) = fields.one_of("method", &METHODS) else {
            // Without the method, the other keys cannot be checked.
            top.faults.append(&mut fields.faults);
            return None;
        };
        let retrieval = retrieval(&method, &mut fields);
        top.faults.extend(fields.end());
        retrieval
    });
    let mut context = CaptureContext::default();
    if let Some(object) = top.object("context") {
        let mut fields = Fields::new("context.", object);
        context.cwd = fields.nullable("cwd").then(|| fields.path("cwd")).flatten();
        let repo = fields.nullable("repo").then(|| fields.line("repo", PATH_CAP)).flatten();
        // The URL of a remote may contain a password.
        context.repo =
            repo.and_then(|repo| if repo.contains("://") { name_of_url(&repo) } else { Some(repo) });
        context.branch = fields.nullable("branch").then(|| fields.line("branch", PATH_CAP)).flatten();
        context.past = fields.nullable("past") && fields.flag("past").unwrap_or_default();
        top.faults.extend(fields.end());
    }
    let faults = top.end();
    match (timestamp, harness, retrieval) {
        (Some(timestamp), Some(harness), Some(retrieval)) if faults.is_empty() => {
            Ok(QueueEntry { version, timestamp, harness, retrieval, context })
        }
        _ => Err(malformed(faults)),
    }
}

fn retrieval(method: &str, fields: &mut Fields) -> Option<Retrieval> {
    Some(match method {
        "amp-thread" => Retrieval::AmpThread { thread_id: id(fields, "threadId")? },
        "opencode-session" => Retrieval::OpencodeSession { thread_id: id(fields, "threadId")? },
        "read-command" => Retrieval::ReadCommand { thread_id: id(fields, "threadId")? },
        "transcript" => {
            let in_files = HARNESSES.iter().filter(|spec| !matches!(spec.capture, CaptureSpec::Id));
            let formats: Vec<&str> = in_files.map(|spec| spec.name).collect();
            let (path, format, id) =
                (fields.path("path"), fields.one_of("format", &formats), id(fields, "sessionId"));
            Retrieval::Transcript { path: path?, format: Harness::named(&format?)?, session_id: id? }
        }
        "cursor-session" => Retrieval::CursorSession { session_path: fields.path("sessionPath")? },
        "file" => Retrieval::File { path: fields.path("path")? },
        "memory-file" => Retrieval::MemoryFile { path: fields.path("path")? },
        _ => {
            let title = fields.line("title", TITLE_CAP);
            let body = fields.parsed("body", |body| match body.len() {
                _ if body.trim().is_empty() => Err("is empty".to_owned()),
                0..=BODY_CAP => Ok(body),
                length => Err(format!("has {length} bytes; a note takes at most {BODY_CAP}")),
            });
            let tags = tags(fields, "tags");
            let scopes = ["global", "repo"];
            let scope = match fields.nullable("scope") {
                true => fields.one_of("scope", &scopes).and_then(|name| Scope::parse(&name)),
                false => Some(Scope::Global),
            };
            let thread_id =
                if fields.nullable("threadId") { id(fields, "threadId").map(Some) } else { Some(None) };
            // All keys are checked before the first missing one returns.
            Retrieval::Inline {
                title: title?,
                body: body?,
                tags: tags?,
                scope: scope?,
                thread_id: thread_id?,
            }
        }
    })
}

/// An id that is safe as an argument and as part of a file name.
fn id(fields: &mut Fields, key: &'static str) -> Option<String> {
    fields.parsed(key, |text| id_fault(&text).map_or(Ok(text), Err))
}

/// Tags, each in its full form; empty if the key is missing or null.
pub fn tags(fields: &mut Fields, key: &'static str) -> Option<Vec<String>> {
    if !fields.nullable(key) {
        return Some(Vec::new());
    }
    let Some(Value::Array(values)) = fields.take(key) else {
        fields.fault(key, "an array of strings is expected");
        return None;
    };
    if values.len() > TAGS_CAP {
        fields.fault(key, &format!("has {}; a note takes at most {TAGS_CAP}", values.len()));
        return None;
    }
    let mut tags = Vec::new();
    for value in &values {
        let Some(tag) = value.as_str().and_then(tag) else {
            fields.fault(key, &format!("{} is not a tag; {TAG_FORM}", shown(value)));
            return None;
        };
        add_missing(&mut tags, [tag]);
    }
    Some(tags)
}

/// What a tag looks like, for messages.
pub const TAG_FORM: &str = "write topic__x or area__x, with a-z, 0-9 and - for x, at most 80 bytes";

#[cfg(test)]
mod tests;
