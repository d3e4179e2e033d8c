//! What one defrag works with and asks about, and how far it has come.

use crate::base::error::Result;
use crate::memory::pipeline::{self, no_room_for};
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How much room the words around the notes take in a prompt, in bytes, at most.
pub(super) const OWN_WORDS: usize = 9 << 10;
/// The least room for notes in a prompt, in bytes.
const LEAST_ROOM: usize = 2000;

/// The settings are the same for every step of a run.
pub struct Defrag<'a> {
    /// Takes secrets out of what a model is shown, and of what it writes.
    pub redactor: &'a Redactor,
    /// How long a prompt may be, in bytes.
    pub max_prompt_bytes: usize,
    /// How many tokens of hot notes AGENTS.md has room for.
    pub max_hot_tokens: u64,
    /// More may be lost than the shares say.
    pub allows_loss: bool,
}

pub type DefragWork = pipeline::Work<Part, Scanned>;

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

/// What one call shows: notes of one reach, which is named first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// All that is to be asked about in a reach: these notes whole, and a line of each that its tiers depend on.
    Whole(String, Vec<EntryId>),
    /// Some of these notes, whole, that have to do with each other.
    Group(String, Vec<EntryId>),
    /// The lines, to decide what is hot.
    Tiers(String),
}

impl Part {
    pub(super) fn reach(&self) -> &str {
        let (Part::Whole(reach, _) | Part::Group(reach, _) | Part::Tiers(reach)) = self;
        reach
    }

    /// The notes that are shown whole. What they say is changed in no other part.
    pub(super) fn whole(&self) -> &[EntryId] {
        match self {
            Part::Whole(_, ids) | Part::Group(_, ids) => ids,
            Part::Tiers(_) => &[],
        }
    }

    pub(super) fn decides_tiers(&self) -> bool {
        !matches!(self, Part::Group(..))
    }
}

impl Defrag<'_> {
    /// Room for notes in one prompt, in bytes.
    ///
    /// # Errors
    /// `Config`: there is too little.
    pub(super) fn room(&self) -> Result<usize> {
        let room = self.max_prompt_bytes.checked_sub(OWN_WORDS).filter(|room| *room >= LEAST_ROOM);
        room.ok_or_else(|| no_room_for("notes", self.max_prompt_bytes, OWN_WORDS + LEAST_ROOM))
    }

    pub(super) fn cleaned(&self, text: &str) -> String {
        self.redactor.cleaned(text)
    }
}
