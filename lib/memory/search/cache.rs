//! What the notes in use said when they were last read: their metadata, and how often each word occurs in them.
//!
//! Reading ten thousand files takes longer than all else that a query does. So their words are kept in one file,
//! `.agent-memory/notes.cache`, which may be deleted at any time. It is never trusted: every file is looked at, and one
//! whose size, times or inode differ from the cache, or that was changed so shortly before it was read for the cache
//! that a second change could have the same time, is read as if there were no cache. So is every file if the cache is
//! spoilt, belongs to another store or another version, or is younger than the clock.

mod content;
mod writer;

pub(crate) use crate::memory::search::cache::content::{Known, Part};

use crate::base::error::Result;
use crate::base::file::{self, Moment};
use crate::memory::search::cache::content::{Content, NAME, each_count};
use crate::memory::search::cache::writer::write;
use crate::memory::search::count::{Counts, Tally};
use crate::memory::search::lexicon::Target;
use crate::memory::search::query::Query;
use crate::store::place::Root;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The cache is written anew when so many notes differ from it, and one in so many of all.
const DIFFERENT: usize = 64;
const PART: usize = 50;

#[derive(Debug)]
pub(crate) struct Cache {
    /// `None`: there is no cache.
    source: Option<(Root, Part)>,
    least: usize,
    content: OnceLock<Content>,
    opened: Moment,
    /// How many files were as the cache knows them, and how many were not and could be.
    hits: AtomicUsize,
    misses: AtomicUsize,
}

impl Cache {
    /// Fewer notes are read quickly enough.
    pub(crate) const LEAST: usize = 1000;

    /// The cache of a store. It is read when it is first asked, and is empty if there is none that can be used.
    pub(crate) fn open(root: &Root, part: Part) -> Cache {
        Cache::open_with(root, part, Cache::LEAST)
    }

    /// No cache, which is never written either.
    pub(crate) fn none() -> Cache {
        Cache::new(None, Cache::LEAST)
    }

    fn open_with(root: &Root, part: Part, least: usize) -> Cache {
        Cache::new(Some((root.clone(), part)), least)
    }

    fn new(source: Option<(Root, Part)>, least: usize) -> Cache {
        let (hits, misses) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Cache { source, least, content: OnceLock::new(), opened: Moment::now(), hits, misses }
    }

    /// Reads it now and checks its files, while the notes are listed.
    pub(crate) fn load(&self) {
        self.content().check_ahead(self.settled());
    }

    /// Files that were changed before this, in nanoseconds since 1970, were settled when the cache was opened.
    fn settled(&self) -> i64 {
        file::settled(self.opened.nanoseconds(), i64::MAX, 0)
    }

    fn content(&self) -> &Content {
        let read = |(root, part): &(Root, Part)| Content::read(root, *part);
        self.content.get_or_init(|| self.source.as_ref().and_then(read).unwrap_or_default())
    }

    /// What is known of the note in a file of this name. `None`: it is to be read; if it is a note, [`Cache::missed`] is to be
    /// called.
    pub(crate) fn known(&self, name: &OsStr) -> Option<Known<'_>> {
        let known = self.content().known(name)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    /// A note was read that the cache does not know as it is.
    pub(crate) fn missed(&self, path: &Path) {
        // One that is not settled could not be known from a new cache either.
        if self.source.is_some() && file::stamp(path).is_some_and(|stamp| stamp.is_before(self.settled())) {
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the cache anew if so much differs that the next query gains by it. To be called after a scan of all notes,
    /// and when the answer is out.
    ///
    /// # Errors
    /// It cannot be written. The old one, if there is one, is as good as before.
    pub(crate) fn keep_up(&self) -> Result<()> {
        let Some((root, _)) = &self.source else { return Ok(()) };
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        let different = misses + self.content().notes.len().saturating_sub(hits);
        let all = hits + misses;
        if all < self.least || different < DIFFERENT.min(self.least).max(all / PART) {
            return Ok(());
        }
        write(root)
    }
}

/// What a query finds in the notes that the cache knows: the counts of each. Where it has all words of a phrase, the phrase
/// is said to be there, and the note has to be read to be sure.
#[derive(Debug)]
pub(super) struct Occurrences(Vec<Counts>);

impl Occurrences {
    /// `None` if the cache turns out to be spoilt: every note has to be read. It is removed, so that a new one is made.
    pub(super) fn of(query: &Query, cache: &Cache) -> Option<Occurrences> {
        let found = Occurrences::read(query, cache.content());
        if let (None, Some((root, _))) = (&found, &cache.source) {
            let _ = file::forget(&root.state().join(NAME));
        }
        found
    }

    fn read(query: &Query, content: &Content) -> Option<Occurrences> {
        let notes = content.notes.len();
        let mut counts = vec![Tally::default(); notes];
        let mut phrases = vec![[0; 8]; if query.phrases.is_empty() { 0 } else { notes }];
        let mut targets = Vec::new();
        for word in &content.vocabulary {
            targets.clear();
            query.lexicon.look_up(content.text(word), |target| targets.push(target));
            // Nearly all words mean nothing.
            if targets.is_empty() {
                continue;
            }
            each_count(&content.list(word)?, |note, times| {
                for target in &targets {
                    match target {
                        Target::Term { index, nearness } => {
                            counts.get_mut(note)?.add(*index, *nearness, times);
                        }
                        Target::Phrase { number, bit } => {
                            *phrases.get_mut(note)?.get_mut(usize::from(*number))? |= bit;
                        }
                    }
                }
                Some(())
            })?;
        }
        let whole = |words: [u64; 8]| {
            query.phrases.iter().zip(words).zip(0..).fold(0, |found, ((phrase, words), at)| {
                let all = phrase.last | (phrase.last - 1);
                found | u8::from(words & all == all) << at
            })
        };
        let all = counts.into_iter().zip(&content.notes).enumerate().map(|(note, (tally, head))| Counts {
            counts: tally.counts(),
            extent: head.extent,
            phrases: phrases.get(note).copied().map_or(0, whole),
        });
        Some(Occurrences(all.collect()))
    }

    pub(super) fn counts(&self, known: &Known<'_>) -> Option<&Counts> {
        self.0.get(known.note)
    }
}

#[cfg(test)]
mod tests;
