//! The one form that every program's session takes here.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// What a person typed.
    User,
    /// What the model said.
    Assistant,
    /// A call of a tool, with its result.
    Tool,
    /// What the model thought, where the program keeps it.
    Reasoning,
    /// A piece of a file that is no session.
    Document,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
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

/// One thing that was said or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) role: Role,
    pub(crate) text: String,
    /// The same whenever the session is read again, also after it has grown, and in the copy that a fork
    /// carries: the record's own id, or else a hash of what it says.
    pub(crate) id: String,
    /// When, if the program noted it.
    pub(crate) at: Option<Timestamp>,
    /// How many bytes were cut from `text`, each cut marked in it; 0: it is whole.
    pub(crate) cut: usize,
}

/// Kinds that are counted apart; a file that makes up more gets one count for the rest.
const KINDS: usize = 50;
/// Longer names of kinds are cut.
const KIND_CHARS: usize = 60;

/// What a session file told besides its turns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionReport {
    /// How many turns were given.
    pub(crate) turns: usize,
    /// Records of kinds that are new to us, counted by kind.
    pub(crate) unknown: BTreeMap<String, usize>,
    /// Lines that are not JSON: the last one of a session that is being written, or a damaged one.
    pub(crate) torn: usize,
    /// Lines left out because they are longer than [`LINE_CAP`](crate::harness::source::LINE_CAP).
    pub(crate) too_long: usize,
    /// Calls of tools without a result: the session ended, or is still under way.
    pub(crate) open_calls: usize,
    pub(crate) session_id: Option<String>,
    /// The session that this one was forked from, or whose helper it is. A fork of Claude Code's begins with
    /// the parent's turns, under the same ids; one of Codex's leaves them in the parent's file.
    pub(crate) parent: Option<String>,
    /// A helper's own file: its turns are not the session's.
    pub(crate) is_sub_agent: bool,
    /// Where the session worked.
    pub(crate) cwd: Option<String>,
}

impl SessionReport {
    /// Counts a record of a kind that is new to us.
    pub(crate) fn unknown(&mut self, kind: &str) {
        let kind = crate::base::text::one_line(kind, KIND_CHARS);
        let kind = if kind.is_empty() { "(no type)".to_owned() } else { kind };
        let known = self.unknown.contains_key(&kind);
        let kind = if known || self.unknown.len() < KINDS { kind } else { "(more)".to_owned() };
        *self.unknown.entry(kind).or_default() += 1;
    }
}

/// Ids for turns that have none of their own: a hash of role and text, and of how many have said just that
/// before. So an id depends on no line number, and is the same in a file that has grown.
#[derive(Default)]
pub(crate) struct Ids {
    said: HashMap<[u8; 8], u32>,
}

impl Ids {
    pub(crate) fn next(&mut self, role: Role, text: &str) -> String {
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
    fn ids_depend_on_what_was_said_and_not_on_where() {
        let (mut one, mut two) = (Ids::default(), Ids::default());
        let first = one.next(Role::User, "yes");
        two.next(Role::Assistant, "yes");
        assert_eq!(two.next(Role::User, "yes"), first);
        assert_ne!(two.next(Role::User, "yes"), first, "said again");
        // Ids are kept between runs, so that they may never change.
        assert_eq!(first, "67f536f9d7e5d34e-0");
    }

    #[test]
    fn kinds_that_a_file_makes_up_do_not_fill_memory() {
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
