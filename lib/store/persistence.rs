//! The boundary between what is done with notes and where they lie (US-003): files today.

use crate::base::cli::Reporter;
use crate::base::error::Result;
use crate::store::entry::{Entry, EntryId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// So many broken files are named one by one.
const NAMED: usize = 10;

/// Where a note lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Topics,
    Archive,
}

#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub(crate) place: Place,
    pub(crate) path: PathBuf,
    pub(crate) entry: Entry,
}

/// A file among the notes that cannot be used, and why. It is left alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Broken {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

/// What was made of the notes of a place, in the order of their files' names, and the files that are none.
#[derive(Debug)]
pub(crate) struct Scan<T> {
    pub(crate) found: Vec<T>,
    pub(crate) broken: Vec<Broken>,
}

/// Names the files that were left out.
pub(crate) fn warn_of(broken: &[Broken], reporter: &Reporter) {
    for file in broken.iter().take(NAMED) {
        reporter.warn(&format!("\"{}\" is left out: {}", file.path.display(), file.why));
    }
    if broken.len() > NAMED {
        reporter.warn(&format!("{} more files are left out", broken.len() - NAMED));
    }
}

pub(crate) trait Persistence {
    /// While one is held, nobody else changes a note. Held for milliseconds.
    type Lock;

    /// Is there a store at all?
    fn is_there(&self) -> bool;

    /// Makes the store where there is none.
    fn lock(&self) -> Result<Self::Lock>;

    /// What `each` makes of every note in `places`. A note that is being renamed meanwhile is seen once.
    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>>;

    /// The note with this id, or the one that it was merged into; archived ones too.
    fn find(&self, id: &EntryId) -> Result<Note>;

    /// The note that bears this id itself.
    fn find_own(&self, id: &EntryId) -> Result<Note>;

    /// Every id that was ever given and is still known: of notes, of archived ones, and aliases.
    fn ids(&self) -> Result<BTreeSet<EntryId>>;

    /// A new note.
    fn add(&self, lock: &Self::Lock, entry: Entry) -> Result<Note>;

    /// Puts `entry` in the place of what `note` holds; its file's name follows a new title or new tags.
    fn replace(&self, lock: &Self::Lock, note: &Note, entry: Entry) -> Result<Note>;

    /// Moves a note to the archive.
    fn archive(&self, lock: &Self::Lock, note: &Note) -> Result<Note>;

    /// Deletes a note for good.
    fn purge(&self, lock: &Self::Lock, note: &Note) -> Result<()>;
}
