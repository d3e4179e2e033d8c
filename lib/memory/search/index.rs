//! The notes of a store, each seen once: from the cache where it knows them, or else from their files.

use crate::base::error::Result;
use crate::base::parallel;
use crate::memory::search::vocabulary::{FORMAT, write};
use crate::store::entry::{EntryId, pack};
use crate::store::index::{KnownNote, LEAST, NoteCache, NoteView};
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::topics::{NoteFile, Topics, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;

pub struct Index<P> {
    notes: P,
    /// Of notes that are files. It is read when it is first asked.
    cache: OnceLock<NoteCache>,
    /// Of fewer notes no cache is written.
    least: usize,
}

impl<P> Index<P> {
    pub fn of(notes: P) -> Index<P> {
        Index { notes, cache: OnceLock::new(), least: LEAST }
    }

    pub fn store(&self) -> &P {
        &self.notes
    }
}

impl<P: Persistence + Sync> Index<P> {
    /// `None` if the notes are no files.
    pub(super) fn cache(&self) -> Option<&NoteCache> {
        let root = self.notes.root()?;
        Some(self.cache.get_or_init(|| NoteCache::open(root, FORMAT)))
    }

    /// A note that was read. The text of a file can be read again.
    pub(super) fn view(&self, note: Note) -> NoteView {
        if self.notes.root().is_some() { NoteView::without_text(note) } else { NoteView::of(note) }
    }

    /// What `of_known` or `of_read` makes of all notes in a place. `ahead` runs while they are listed.
    pub(super) fn each<'a, T: Send>(
        &'a self,
        place: Place,
        ahead: impl FnOnce() + Send,
        of_known: impl Fn(KnownNote<'a>) -> Option<(EntryId, T)> + Sync,
        of_read: impl Fn(Note) -> (EntryId, T) + Sync,
    ) -> Result<Scan<T>> {
        let Some(root) = self.notes.root() else {
            return self.notes.scan(&[place], |note| of_read(note).1);
        };
        let look = |file: NoteFile| -> Result<_, Option<Broken>> {
            // The cache has notes in use alone.
            let Some(cache) = Some(place).filter(|place| *place == Place::Topics).and_then(|_| self.cache())
            else {
                return Ok(of_read(read(place, &file.path())?));
            };
            cache.look(file, &of_known, |note, stamp| {
                // What cannot be packed will not be known another time either.
                if pack(note.entry.meta()).is_some() {
                    cache.missed(stamp);
                }
                of_read(note)
            })
        };
        let ahead = || {
            if place == Place::Topics {
                ahead();
                self.cache().iter().for_each(|cache| cache.check_ahead(cache.settled()));
            }
        };
        parallel::with_ahead(ahead, || Topics::at(root).scan_with(&[place], look))
    }

    /// What `each` makes of all notes in a place.
    pub fn scan<T: Send>(&self, place: Place, each: impl Fn(NoteView) -> T + Sync) -> Result<Scan<T>> {
        let of = |view: NoteView| (view.meta.id.clone(), each(view));
        self.each(place, || (), |known| known.view().map(of), |note| of(self.view(note)))
    }

    /// Writes the cache anew if so much differs that the next query gains by it. To be called after a scan of all notes,
    /// and when the answer is out.
    ///
    /// # Errors
    /// It cannot be written. The old one, if there is one, is as good as before.
    pub fn keep_up(&self) -> Result<()> {
        // One that was never asked has nothing to keep up with.
        match (self.notes.root(), self.cache.get()) {
            (Some(root), Some(cache)) if cache.is_outdated(self.least) => write(root),
            _ => Ok(()),
        }
    }
}

impl Index<Topics> {
    /// The notes with these ids, wherever they are; `None` for one that is gone, and without those that cannot be read. The cache says where most of them are: to list
    /// a large directory takes as long as to search it.
    pub fn notes<'a>(&self, ids: impl Iterator<Item = &'a EntryId>) -> Result<Vec<(EntryId, Option<Note>)>> {
        let mut notes: BTreeMap<EntryId, Option<Note>> = ids.map(|id| (id.clone(), None)).collect();
        for known in self.cache().into_iter().flat_map(NoteCache::all) {
            if let Some(id) = known.id()
                && let Some(note) = notes.get_mut(&id)
            {
                *note = known.path().and_then(|path| own(&id, Place::Topics, &path));
            }
        }
        let mut unreadable = BTreeSet::new();
        if notes.values().any(Option::is_none) {
            let files = self.notes.files(&[Place::Topics, Place::Archive])?;
            for file in (0..files.len()).map(|number| files.get(number)) {
                if let Some(id) = file.name.to_str().and_then(EntryId::at_end_of)
                    && let Some(note @ None) = notes.get_mut(&id)
                {
                    *note = own(&id, file.place, &file.path());
                    unreadable.insert(id);
                }
            }
        }
        notes.retain(|id, note| note.is_some() || !unreadable.contains(id));
        Ok(notes.into_iter().collect())
    }
}

/// The note in a file, if it is the one with this id.
pub(super) fn own(id: &EntryId, place: Place, path: &Path) -> Option<Note> {
    read(place, path).ok().filter(|note| note.entry.meta().id == *id)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
