//! One defrag: what it asks about, and how far it has come. Saved after every step, so that a crash costs nothing
//! that was paid for.

use crate::memory::call::{Kind, Why};
use crate::memory::defrag::reach::Reach;
use crate::store::entry::EntryId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Work {
    pub(crate) batch: String,
    pub(crate) kind: Kind,
    pub(crate) begun: Timestamp,
    /// Asks about what has not changed, too.
    pub(crate) is_forced: bool,
    /// How many notes there were at the beginning.
    pub(crate) total: usize,
    /// How many have been archived without an heir.
    pub(crate) archived: usize,
    /// The calls, in order.
    pub(crate) parts: Vec<Part>,
    /// Which part is next.
    pub(crate) next: usize,
    /// The notes that the part under way shows, with the marks that they had.
    pub(crate) shown: BTreeMap<EntryId, String>,
    /// Why it ends before its last part.
    pub(crate) stopped: Option<Why>,
}

/// What one call shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Part {
    /// All notes of a reach, whole: everything is decided at once.
    Whole(Reach, Vec<EntryId>),
    /// Some notes of it, whole, that have to do with each other.
    Group(Reach, Vec<EntryId>),
    /// Titles, summaries and use of all its notes: what is hot?
    Tiers(Reach),
}

impl Work {
    pub(crate) fn new(batch: &str, kind: Kind, begun: Timestamp, is_forced: bool) -> Work {
        Work {
            batch: batch.to_owned(),
            kind,
            begun,
            is_forced,
            total: 0,
            archived: 0,
            parts: Vec::new(),
            next: 0,
            shown: BTreeMap::new(),
            stopped: None,
        }
    }

    /// The part under way.
    pub(crate) fn part(&self) -> Option<&Part> {
        self.parts.get(self.next)
    }
}
