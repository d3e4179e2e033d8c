//! The operations on notes (US-004), for any persistence.

use crate::base::error::{Error, Result};
use crate::base::text::whole_lines;
use crate::store::entry::{Entry, EntryId, Meta, Scope, Source, Status, Tier};
use crate::store::persistence::{Note, Persistence, Place};
use jiff::Timestamp;

pub(crate) struct NoteService<P> {
    notes: P,
    now: Timestamp,
}

/// A note to be written.
pub(crate) struct NewNote {
    pub(crate) title: String,
    pub(crate) summary: String,
    pub(crate) tags: Vec<String>,
    pub(crate) scope: Scope,
    pub(crate) body: String,
    pub(crate) sources: Vec<Source>,
}

/// A condition on notes. `None` and `false` match all.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Filter {
    pub(crate) status: Option<Status>,
    pub(crate) tier: Option<Tier>,
    /// A note must have all of them.
    pub(crate) tags: Vec<String>,
    pub(crate) repo: Option<String>,
    pub(crate) scope: Option<Scope>,
    pub(crate) pinned: bool,
}

impl Filter {
    pub(crate) fn matches(&self, meta: &Meta) -> bool {
        self.status.is_none_or(|status| meta.status == status)
            && self.tier.is_none_or(|tier| meta.tier == tier)
            && self.scope.is_none_or(|scope| meta.scope == scope)
            && (meta.pinned || !self.pinned)
            && self.tags.iter().all(|tag| meta.tags.contains(tag))
            && self.repo.as_deref().is_none_or(|repo| belongs_to(meta, repo))
    }
}

/// Is it a note of this repository: with scope `repo`, and with a source that names the repository?
pub(super) fn belongs_to(meta: &Meta, repo: &str) -> bool {
    meta.scope == Scope::Repo && meta.sources.iter().any(|source| source.repo.as_deref() == Some(repo))
}

/// A change to a note. `None` leaves the field as it is.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Patch {
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) add_tags: Vec<String>,
    pub(crate) drop_tags: Vec<String>,
    pub(crate) status: Option<Status>,
    pub(crate) tier: Option<Tier>,
    pub(crate) scope: Option<Scope>,
    pub(crate) pinned: Option<bool>,
}

/// How a note is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalMode {
    /// Moved to the archive.
    Archive,
    /// Deleted.
    Purge,
}

impl<P: Persistence> NoteService<P> {
    pub(crate) fn new(notes: P, now: Timestamp) -> NoteService<P> {
        NoteService { notes, now }
    }

    /// Writes a new note, with status `captured`.
    pub(crate) fn capture(&self, new: NewNote) -> Result<Note> {
        let lock = self.notes.lock()?;
        let taken = self.notes.ids()?;
        let now = self.now.as_millisecond();
        let meta = Meta {
            id: EntryId::make(&new.title, now, |id| taken.contains(id)),
            title: new.title,
            summary: new.summary,
            tags: new.tags,
            status: Status::Captured,
            tier: Tier::Warm,
            scope: new.scope,
            pinned: false,
            used: 0,
            last_used: None,
            created_at: now,
            updated_at: now,
            sources: new.sources,
            aliases: Vec::new(),
            superseded_by: None,
        };
        let entry = Entry::new(meta, whole_lines(&new.body).as_bytes());
        entry.fits().map_err(|why| Error::usage(format!("the note cannot be written: {why}")))?;
        self.notes.add(&lock, entry)
    }

    /// The note. This does not count as a read.
    pub(crate) fn look(&self, id: &EntryId) -> Result<Note> {
        self.notes.find(id)
    }

    /// Counts a read and returns the note: `used` and `last_used` change together, under the lock (FR-8).
    pub(crate) fn read(&self, id: &EntryId) -> Result<Note> {
        let lock = self.lock_for(id)?;
        let note = self.notes.find(id)?;
        let mut entry = note.entry.clone();
        let count = |meta: &mut Meta| {
            meta.used = meta.used.saturating_add(1);
            meta.last_used = Timestamp::from_second(self.now.as_second()).ok();
        };
        entry.update(count).map_err(|why| unchanged(&note, &why))?;
        self.notes.replace(&lock, &note, entry)
    }

    /// Applies the whole patch at once. Also returns whether the note has changed.
    pub(crate) fn update(&self, id: &EntryId, patch: &Patch) -> Result<(Note, bool)> {
        let lock = self.lock_for(id)?;
        let note = self.notes.find(id)?;
        let mut entry = note.entry.clone();
        if let Some(body) = &patch.body {
            entry.set_body(whole_lines(body).as_bytes());
        }
        let body_changed = entry.body() != note.entry.body();
        let now = self.now.as_millisecond();
        let change = |meta: &mut Meta| {
            let before = meta.clone();
            patch.apply(meta);
            if *meta != before || body_changed {
                meta.updated_at = now;
            }
        };
        entry.update(change).map_err(|why| unchanged(&note, &why))?;
        let is_changed = entry.bytes() != note.entry.bytes();
        Ok((self.notes.replace(&lock, &note, entry)?, is_changed))
    }

    /// Removes a note. One that is already archived stays in the archive. An alias is not accepted: the id of a note that
    /// was merged into another does not remove the other.
    pub(crate) fn remove(&self, id: &EntryId, how: RemovalMode) -> Result<Note> {
        let lock = self.lock_for(id)?;
        let note = self.notes.find_own(id)?;
        match (how, note.place) {
            (RemovalMode::Archive, Place::Topics) => self.notes.archive(&lock, &note),
            (RemovalMode::Archive, Place::Archive) => Ok(note),
            (RemovalMode::Purge, _) => self.notes.purge(&lock, &note).map(|()| note),
        }
    }

    /// Takes the lock to change the note with this id. Without a store, that is an error, and no store is created.
    fn lock_for(&self, id: &EntryId) -> Result<P::Lock> {
        if !self.notes.is_there() {
            self.notes.find(id)?;
        }
        self.notes.lock()
    }
}

fn unchanged(note: &Note, why: &Error) -> Error {
    Error::io(format!("\"{}\" cannot be changed: {why}", note.path.display()))
}

impl Patch {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Patch::default()
    }

    fn apply(&self, meta: &mut Meta) {
        if let Some(title) = &self.title {
            meta.title.clone_from(title);
        }
        if let Some(summary) = &self.summary {
            meta.summary.clone_from(summary);
        }
        meta.tags.retain(|tag| !self.drop_tags.contains(tag));
        for tag in &self.add_tags {
            if !meta.tags.contains(tag) {
                meta.tags.push(tag.clone());
            }
        }
        meta.scope = self.scope.unwrap_or(meta.scope);
        meta.pinned = self.pinned.unwrap_or(meta.pinned);
        // A note is promoted exactly while it is hot. If both are given, the caller has checked that they agree.
        meta.status = self.status.unwrap_or(meta.status);
        meta.tier = self.tier.unwrap_or(meta.tier);
        match (self.status, self.tier) {
            (Some(Status::Promoted), _) => meta.tier = Tier::Hot,
            (_, Some(Tier::Hot)) => meta.status = Status::Promoted,
            (Some(_), None) if meta.tier == Tier::Hot => meta.tier = Tier::Warm,
            (None, Some(_)) if meta.status == Status::Promoted => meta.status = Status::Consolidated,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
