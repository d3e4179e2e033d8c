//! One defrag: what it asks about, and how far it has come.

use crate::memory::defrag::reach::Reach;
use crate::memory::pipeline::Failure;
use crate::store::entry::EntryId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Work {
    pub batch: String,
    /// Asks about what has not changed, too.
    pub is_forced: bool,
    /// How many notes there were at the beginning.
    pub total: usize,
    /// How many have been archived without a successor.
    pub archived: usize,
    /// The calls, in order.
    pub parts: Vec<Part>,
    /// Which part is next.
    pub next: usize,
    /// The notes that the part under way shows whole, with the fingerprints that they had.
    pub shown: BTreeMap<EntryId, String>,
    /// The notes of which it shows a line, with the same.
    #[serde(default)]
    pub listed: BTreeMap<EntryId, String>,
    /// Those of `shown` that no longer held.
    #[serde(default)]
    pub expired: BTreeSet<EntryId>,
    /// Why it ends before its last part.
    pub stopped: Option<Failure>,
}

/// What one call shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// All that is to be asked about in a reach: these notes whole, and a line of each that its tiers depend on.
    Whole(Reach, Vec<EntryId>),
    /// Some of these notes, whole, that have to do with each other.
    Group(Reach, Vec<EntryId>),
    /// The lines: what is hot?
    Tiers(Reach),
}

/// What a look at the notes gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Scanned {
    /// All is as the last defrag left it.
    Nothing,
    News(News),
    /// There is something to ask about, and no call can be made.
    Failed(Failure),
}

/// There is something that the last defrag has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub batch: String,
    pub is_forced: bool,
    /// How many notes there are.
    pub total: usize,
}

impl Work {
    pub(super) fn new(news: News) -> Work {
        Work {
            batch: news.batch,
            is_forced: news.is_forced,
            total: news.total,
            archived: 0,
            parts: Vec::new(),
            next: 0,
            shown: BTreeMap::new(),
            listed: BTreeMap::new(),
            expired: BTreeSet::new(),
            stopped: None,
        }
    }

    /// The part under way.
    pub(super) fn part(&self) -> Option<&Part> {
        self.parts.get(self.next)
    }
}
