//! The common form of all sessions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What a program sent as its user's message.
    User,
    /// What the model said.
    Assistant,
    /// A call of a tool, with its result.
    Tool,
    /// What the model thought, where the program keeps it.
    Reasoning,
    /// A part of a file that is not a session.
    #[default]
    Document,
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Reasoning => "reasoning",
            Role::Document => "document",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One message, thought or tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    pub role: Role,
    pub text: String,
    /// Of the user: the program itself recorded that a person typed it. Else it was pasted, or nobody knows who wrote it.
    pub is_typed: bool,
    /// The same whenever the session is read again, even after it has grown, and in a fork's copy: the id of the
    /// record, or a hash of its text.
    pub id: String,
    /// When it was said, if the program recorded that.
    pub at: Option<Timestamp>,
    /// How many bytes were cut from what is shown of it. Each cut is marked.
    pub cut: usize,
    /// Of a call with long arguments: what is shown of it. `text` has all of it, up to a cap.
    pub brief: Option<String>,
    /// Where a tool's output begins in `text`, in bytes. What stands before it, the agent wrote.
    pub output: Option<usize>,
    /// Of a tool: what was called. `text` shows it shortened.
    pub call: Option<ToolCall>,
    /// The program recorded that the call ended without an error; of a command, with the exit code 0.
    pub has_worked: bool,
}

/// A call of a tool, as data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// Empty for a result whose call is not known.
    pub name: String,
    /// Names and plain values; text that is no JSON object has the name "". A list of words is quoted as for a shell.
    /// Values end after [`ARGUMENT_CAP`] bytes.
    pub arguments: Vec<(String, String)>,
}

/// The longest value of an argument, in bytes. One that was cut has exactly so many, or up to three bytes less.
pub const ARGUMENT_CAP: usize = 64 << 10;

/// How many unknown kinds are counted separately; all others share one count.
const KINDS: usize = 50;
/// Longer names of kinds are shortened.
const KIND_CHARS: usize = 60;

/// What a session file contains besides its turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionReport {
    /// How many turns there were.
    pub turns: usize,
    /// The number of records of each unknown kind.
    pub(super) unknown: BTreeMap<String, usize>,
    /// Lines that are not JSON: damaged, or the last line of a session that is still being written.
    pub torn: usize,
    /// Lines that were skipped because they are longer than [`LINE_CAP`](crate::harness::source::LINE_CAP).
    pub too_long: usize,
    /// Messages whose content is not where this program has it: the file may be another program's.
    pub(super) unreadable: usize,
    /// Tool calls without a result: the session ended first, or is still running.
    pub(super) open_calls: usize,
    pub session_id: Option<String>,
    /// The session that this one was forked from, or that started this sub-agent. A fork in Claude Code begins with
    /// the parent's turns, under the same ids; a fork in Codex does not repeat them.
    pub parent: Option<String>,
    /// The file belongs to a sub-agent: its turns are not the session's.
    pub is_sub_agent: bool,
    /// What an agent added to a file of memories is left out.
    pub has_added: bool,
    /// The working directory of the session.
    pub cwd: Option<String>,
    /// The branch that it was on in the end.
    pub branch: Option<String>,
    /// The address of the repository that it was in.
    pub remote: Option<String>,
}

impl SessionReport {
    /// What a record says of its session. The first counts.
    pub(super) fn begins(&mut self, session_id: Option<String>, cwd: Option<String>) {
        self.session_id = self.session_id.take().or(session_id);
        self.cwd = self.cwd.take().or(cwd);
    }

    /// Counts a record of an unknown kind.
    pub(super) fn unknown(&mut self, kind: &str) {
        let kind = crate::base::text::one_line(kind, KIND_CHARS);
        let kind = if kind.is_empty() { "(no type)".to_owned() } else { kind };
        let known = self.unknown.contains_key(&kind);
        let kind = if known || self.unknown.len() < KINDS { kind } else { "(more)".to_owned() };
        *self.unknown.entry(kind).or_default() += 1;
    }
}

/// Ids for turns without one: a hash of role and text, and the number of equal turns before it. An id does not
/// depend on a line number, so it stays the same when the file grows.
#[derive(Default)]
pub struct Ids {
    said: HashMap<[u8; 8], u32>,
}

impl Ids {
    pub(super) fn next(&mut self, role: Role, text: &str) -> String {
        let hash = Sha256::new().chain_update(role.name()).chain_update([0]).chain_update(text).finalize();
        let mut key = [0; 8];
        key.copy_from_slice(&hash[..8]);
        let before = self.said.entry(key).or_default();
        let id = format!("{:016x}-{before}", u64::from_be_bytes(key));
        *before += 1;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_the_text_and_not_on_its_position() {
        let (mut one, mut two) = (Ids::default(), Ids::default());
        let first = one.next(Role::User, "yes");
        two.next(Role::Assistant, "yes");
        assert_eq!(two.next(Role::User, "yes"), first);
        assert_ne!(two.next(Role::User, "yes"), first, "said again");
        // Ids are stored between runs, so they must never change.
        assert_eq!(first, "67f536f9d7e5d34e-0");
    }

    #[test]
    fn invented_kinds_do_not_fill_memory() {
        let mut report = SessionReport::default();
        for n in 0..1000 {
            report.unknown(&format!("kind {n} {}", "x".repeat(1000)));
        }
        report.unknown("");
        assert!(report.unknown.len() <= KINDS + 1);
        assert_eq!(report.unknown.values().sum::<usize>(), 1001);
        assert!(report.unknown.keys().all(|kind| kind.chars().count() <= KIND_CHARS + 3));
    }
}
