//! What one defrag asks about, and how far it has come.

use crate::memory::defrag::reach::Reach;
use crate::memory::pipeline;
use crate::store::entry::EntryId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub type Work = pipeline::Work<Part, Scanned>;

/// What is known of all notes, and what has become of them so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scanned {
    /// Asks about what has not changed, too.
    pub is_forced: bool,
    /// How many notes there were at the beginning.
    pub total: usize,
    /// How many have been archived without a successor.
    pub archived: usize,
    /// Those of the notes shown whole that no longer held.
    pub expired: BTreeSet<EntryId>,
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
