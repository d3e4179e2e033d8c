//! Named conversations: the messages and answers of earlier runs, as JSON Lines.
//!
//! A line is one run. It is appended in one write when its answer is there, so a killed run adds all or nothing. A run
//! holds its conversation's lock from before it reads until it has appended: two runs never mix.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file::{self, RunLock};
use crate::base::text::one_line;
use crate::config::agent::{AgentName, unsafe_name};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// How much of a conversation, in bytes of its file, goes into a prompt. The file itself has no limit.
const PROMPT_CAP: u64 = 4 * 1024 * 1024;

/// A name that is safe as a file name.
#[derive(Debug, Clone)]
pub struct ConversationName(String);

impl ConversationName {
    pub fn parse(name: &str) -> Result<ConversationName> {
        match unsafe_name(name) {
            None => Ok(ConversationName(name.to_owned())),
            Some(why) => {
                Err(Error::usage(format!("invalid conversation name \"{}\": {why}", name.escape_debug())))
            }
        }
    }
}

impl fmt::Display for ConversationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One run of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange<'a> {
    pub time: String,
    /// The model that answered, with its provider.
    pub model: String,
    pub user: Cow<'a, str>,
    /// The names of the files that came with the message. The files are not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
    pub assistant: Cow<'a, str>,
}

/// The runs of a conversation that go into the prompt.
#[derive(Debug, Default)]
pub struct Earlier {
    pub exchanges: Vec<Exchange<'static>>,
    /// What the user should know about the file, one line each.
    pub warnings: Vec<String>,
}

/// `conversations/<agent>/<name>.jsonl` in the data directory. Creates nothing.
pub fn path(agent: &AgentName, name: &ConversationName, env: &Env) -> Result<PathBuf> {
    Ok(env.data_dir()?.join("conversations").join(agent.as_str()).join(format!("{name}.jsonl")))
}

/// Waits until no other run has the file, then takes it until the result is dropped. An error says `what` is in use, and
/// the `next` step.
pub fn hold(path: &Path, data_dir: &Path, what: &str, next: &str, deadline: Deadline) -> Result<RunLock> {
    file::make_dir(data_dir)?;
    if let Some(dir) = path.parent() {
        file::make_private_dir(dir)?;
    }
    let lock = path.with_extension("lock");
    let us = format!("process {}", std::process::id());
    match file::hold_until(&lock, &us, deadline)? {
        RunLock::HeldBy(holder) => {
            // The holder may be about to write its name.
            let who = if holder.is_empty() { "another run" } else { &holder };
            Err(Error::busy(format!("{what} is in use by {}", one_line(who, 100))).hint(next))
        }
        ours => Ok(ours),
    }
}

/// The newest runs of the conversation, as far as they fit into a prompt. A missing file has none.
pub fn read(path: &Path) -> Result<Earlier> {
    let Some((mut file, length)) = file::if_exists(file::open_regular(path))? else {
        return Ok(Earlier::default());
    };
    let mut earlier = Earlier::default();
    let is_cut = length > PROMPT_CAP;
    let mut bytes = Vec::new();
    if is_cut {
        // From the end of a line on.
        file.seek(SeekFrom::Start(length - PROMPT_CAP - 1))?;
        earlier.warnings.push(format!(
            "the conversation \"{}\" is longer than {} MiB, and its oldest runs are not sent",
            path.display(),
            PROMPT_CAP >> 20
        ));
    }
    file.read_to_end(&mut bytes)?;
    let start = if is_cut { memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1) } else { 0 };
    for (n, line) in bytes[start..].split(|b| *b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(exchange) => earlier.exchanges.push(exchange),
            Err(e) => {
                let which = if is_cut { "a line".to_owned() } else { format!("line {}", n + 1) };
                let why = one_line(&e.to_string(), 200);
                earlier.warnings.push(format!("{which} of \"{}\" is left out: {why}", path.display()));
            }
        }
    }
    Ok(earlier)
}

/// Adds a run, and returns when it is on disk. After an error the file is as it was.
pub fn append(path: &Path, exchange: &Exchange) -> io::Result<()> {
    let mut line = serde_json::to_vec(exchange)?;
    line.push(b'\n');
    file::append_durably(path, &line, 0o600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs_err as fs;

    fn exchange<'a>(user: &'a str, assistant: &'a str) -> Exchange<'a> {
        let (time, model) = ("2026-02-28T15:04:05Z".to_owned(), "p/m".to_owned());
        let attachments = Vec::new();
        Exchange { time, model, user: user.into(), attachments, assistant: assistant.into() }
    }

    #[test]
    fn what_is_appended_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        assert!(read(&path).unwrap().exchanges.is_empty());
        let all = [exchange("one\n\"two\"", "\u{1f980}"), exchange("three", "")];
        all.iter().for_each(|exchange| append(&path, exchange).unwrap());
        assert_eq!(read(&path).unwrap().exchanges, all);
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions()) & 0o777,
            0o600
        );
    }

    #[test]
    fn the_oldest_leave_the_prompt_and_not_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let long = "x".repeat(1 << 20);
        (0..5).for_each(|n| append(&path, &exchange(&n.to_string(), &long)).unwrap());
        let earlier = read(&path).unwrap();
        let left: Vec<_> = earlier.exchanges.iter().map(|exchange| exchange.user.as_ref()).collect();
        assert_eq!((left, earlier.warnings.len()), (vec!["2", "3", "4"], 1));
        assert!(fs::metadata(&path).unwrap().len() > 5 << 20);
    }

    #[test]
    fn a_line_that_was_cut_is_left_out_and_the_next_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        append(&path, &exchange("one", "1")).unwrap();
        file::append_durably(&path, b"{\"time\":\"20", 0o600).unwrap();
        append(&path, &exchange("two", "2")).unwrap();
        let earlier = read(&path).unwrap();
        assert_eq!(earlier.exchanges, [exchange("one", "1"), exchange("two", "2")]);
        assert!(earlier.warnings[0].starts_with("line 2 of \""), "{:?}", earlier.warnings);
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        for name in ["", ".", "..", "../x", "a/b", "a\0b"] {
            let error = ConversationName::parse(name).unwrap_err();
            assert!(error.message().starts_with("invalid conversation name \""), "{name:?}");
        }
        assert_eq!(ConversationName::parse("release 2.0").unwrap().to_string(), "release 2.0");
    }
}
