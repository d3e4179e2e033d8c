//! The notes of a place that match a query, and how they are shown.

use crate::base::error::Result;
use crate::memory::search::{Cache, Findings, Part, Query, find, metadata};
use crate::memory::section::here;
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::topics::{Topics, read};
use jiff::civil::Date;
use std::collections::BTreeSet;
use std::path::Path;

/// The estimate of tokens is this many bytes a token.
pub(crate) const BYTES_A_TOKEN: usize = 4;

/// The notes of this place that match, the best first: those of the repository and those that hold everywhere. None that
/// no longer holds.
pub(crate) fn matching(
    root: &Root,
    cache: &Cache,
    query: &Query,
    repo: Option<&str>,
    today: Date,
    most: usize,
) -> Result<Findings> {
    let is_here = |meta: &Meta| {
        !meta.is_expired(today)
            && (meta.scope == Scope::Global || repo.is_some_and(|repo| belongs_to(meta, repo)))
    };
    find(&Topics::at(root), Place::Topics, cache, query, Some(&is_here), most)
}

/// Notes as text, as long as there is room. One that is too long is shortened to its summary and the line that matches.
pub(crate) struct Shown {
    room: usize,
    with_changes: BTreeSet<EntryId>,
    pub(crate) text: String,
    pub(crate) ids: Vec<EntryId>,
}

impl Shown {
    /// Room for so many bytes.
    pub(crate) fn new(root: &Root, room: usize) -> Result<Shown> {
        let (waiting, _) = Topics::at(root).proposals()?;
        let with_changes = waiting.into_iter().filter_map(|proposal| proposal.note).collect();
        Ok(Shown { room, with_changes, text: String::new(), ids: Vec::new() })
    }

    /// `false` if there was no room for it.
    pub(crate) fn add(&mut self, note: &Note, line: Option<&str>) -> bool {
        let id = &note.entry.meta().id;
        let waits = self.with_changes.contains(id) && note.entry.kept().is_some();
        let left = self.room.saturating_sub(self.text.len() + 1);
        let whole = Some(note).filter(|note| note.entry.body().len() <= left);
        let block = whole.map(|note| here::block(note, waits)).filter(|block| block.len() <= left);
        let block = block.unwrap_or_else(|| here::excerpt(note, waits, line));
        if block.len() > left {
            return false;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&block);
        self.ids.push(id.clone());
        true
    }
}

/// A note that was found, read for its text. `None` if it is gone meanwhile.
pub(crate) fn whole(meta: &Meta, path: &Path) -> Option<Note> {
    read(Place::Topics, path).ok().filter(|note| note.entry.meta().id == meta.id)
}

/// Writes the cache of all notes anew if much of it is out of date: a prompt has no time to read all files.
pub(crate) fn keep_up(root: &Root) -> Result<()> {
    let cache = Cache::open(root, Part::Metadata);
    metadata(&Topics::at(root), Place::Topics, &cache, |_, _| ())?;
    cache.keep_up(root)
}
