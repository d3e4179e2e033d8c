//! What the store knows of sessions already, and why one is not queued again.

use crate::base::error::Result;
use crate::store::batch::Batches;
use crate::store::journal::entry::{QueueEntry, session_mark};
use crate::store::journal::{Journal, mark_of, read_at};
use crate::store::ledger::{ReadSession, Sessions};
use crate::store::place::Root;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

/// Why a session is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    Consumed,
    Waiting,
    Failed,
    SubAgent,
    Ours,
    Silent,
    Unreadable,
}

impl LeftOut {
    /// The key in JSON, and the words for a person.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            LeftOut::Consumed => ("consumed", "consumed already"),
            LeftOut::Waiting => ("waiting", "in the queue already"),
            LeftOut::Failed => ("failed", "in inbox/.failed"),
            LeftOut::SubAgent => ("subAgent", "of sub-agents"),
            LeftOut::Ours => ("ours", "of the memory programs themselves"),
            LeftOut::Silent => ("silent", "without a word of a person"),
            LeftOut::Unreadable => ("unreadable", "unreadable"),
        }
    }

    pub fn key(self) -> &'static str {
        self.words().0
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words().1)
    }
}

/// What the store knows of sessions already.
pub(super) struct KnownSessions {
    pub(super) consumed: Sessions,
    /// The entries in the queue and around it, by the mark in their names that all entries for a session share.
    entries: HashMap<String, Vec<(PathBuf, LeftOut)>>,
}

impl KnownSessions {
    pub(super) fn load(root: &Root) -> Result<KnownSessions> {
        let inbox = root.inbox();
        let mut dirs = vec![
            (inbox.join(".processed"), LeftOut::Consumed),
            (inbox.join(".failed"), LeftOut::Failed),
            (inbox, LeftOut::Waiting),
        ];
        for batch in Batches::of_queue(root).all()? {
            dirs.push((batch.claims(), LeftOut::Waiting));
        }
        let mut entries: HashMap<String, Vec<(PathBuf, LeftOut)>> = HashMap::new();
        for (dir, why) in dirs {
            for id in Journal::ids_in(&dir)? {
                if let Some(mark) = mark_of(&id) {
                    entries.entry(mark.to_owned()).or_default().push((dir.join(format!("{id}.json")), why));
                }
            }
        }
        Ok(KnownSessions { consumed: Sessions::load(root)?, entries })
    }

    /// An error if the session of this entry is not queued again. `may_go_on`: one that was consumed may have more since.
    pub(super) fn left_out(&self, entry: &QueueEntry, may_go_on: bool) -> std::result::Result<(), LeftOut> {
        let Some(session) = entry.session() else { return Ok(()) };
        let consumed = self.ledger_of(entry).map(|_| LeftOut::Consumed);
        let same = self.entries.get(&session_mark(&session)).into_iter().flatten().filter(|(path, _)| {
            matches!(read_at(path), Ok(Some(entry)) if entry.session().as_ref() == Some(&session))
        });
        // What waits will be read, whatever became of it before.
        let why = |why: &LeftOut| (*why == LeftOut::Waiting, *why == LeftOut::Failed);
        match same.map(|(_, why)| *why).chain(consumed).max_by_key(why) {
            Some(why) if why != LeftOut::Consumed || !may_go_on => Err(why),
            _ => Ok(()),
        }
    }

    /// The turn with this hash is the last one that was read of the session.
    pub(super) fn was_read_to(&self, entry: &QueueEntry, turn: &str) -> bool {
        self.ledger_of(entry).is_some_and(|session| session.last == turn)
    }

    fn ledger_of(&self, entry: &QueueEntry) -> Option<&ReadSession> {
        self.consumed.get(&entry.ledger_key()?)
    }
}
