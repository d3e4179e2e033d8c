//! The notes of a place that match a query, and how they are shown.

use crate::base::error::Result;
use crate::memory::search::{Findings, Index, Query};
use crate::memory::section::note;
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope};
use crate::store::index::LEAST;
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::proposal::{Proposal, ProposalId};
use crate::store::topics::Topics;
use jiff::civil::Date;

/// The estimate of tokens is this many bytes a token.
pub const BYTES_A_TOKEN: usize = 4;

/// The notes of this place that match, the best first: those of the repository and those that hold everywhere. None that
/// no longer holds.
pub fn matching(
    index: &Index,
    query: &Query,
    repo: Option<&str>,
    today: Date,
    most: usize,
) -> Result<Findings> {
    let is_here = |meta: &Meta| {
        !meta.is_expired(today)
            && (meta.scope == Scope::Global || repo.is_some_and(|repo| belongs_to(meta, repo)))
    };
    index.find(Place::Topics, query, Some(&is_here), most)
}

/// Notes as text, as long as there is room. One that is too long is shortened to its summary and the line that matches.
pub struct Shown {
    room: usize,
    proposals: Vec<Proposal>,
    pub text: String,
    /// Each note with the fingerprint of its text.
    pub(super) told: Vec<(EntryId, String)>,
}

impl Shown {
    /// Room for so many bytes.
    pub fn new(root: &Root, room: usize) -> Result<Shown> {
        let (proposals, _) = Topics::at(root).proposals()?;
        Ok(Shown { room, proposals, text: String::new(), told: Vec::new() })
    }

    /// The changes of a note that wait for the person.
    pub fn waiting<'a>(&'a self, note: &'a EntryId) -> impl Iterator<Item = &'a ProposalId> {
        self.proposals.iter().filter(move |there| there.note.as_ref() == Some(note)).map(|there| &there.id)
    }

    /// Adds a note, and a sentence of ours before it. `false` if there was no room for it.
    pub fn add(&mut self, sentence: &str, note: &Note, line: Option<&str>) -> bool {
        let id = &note.entry.meta().id;
        let waits = self.waiting(id).next().is_some();
        let left = self.room.saturating_sub(self.text.len() + sentence.len() + 1);
        let whole = Some(note).filter(|note| note.entry.body().len() <= left);
        let block = whole.map(|note| note::block(note, waits)).filter(|block| block.len() <= left);
        let block = block.unwrap_or_else(|| note::excerpt(note, waits, line));
        let is_said = self.say(&format!("{sentence}{block}"));
        if is_said {
            self.told.push((id.clone(), note.entry.told()));
        }
        is_said
    }

    /// A text of ours. `false` if there was no room for it.
    pub(super) fn say(&mut self, text: &str) -> bool {
        if self.text.len() + text.len() + 1 > self.room {
            return false;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        true
    }
}

/// Are there so many notes that a prompt has no time to read all files? Then they are known from the cache.
pub fn needs_cache(root: &Root) -> bool {
    fs_err::read_dir(root.topics()).is_ok_and(|files| files.take(LEAST).count() == LEAST)
}
