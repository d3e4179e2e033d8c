//! The notes as defrag sees them: whole, with their files' names and their marks.

use crate::base::error::Result;
use crate::memory::defrag::reach::Reach;
use crate::store::entry::{Entry, EntryId, Meta};
use crate::store::persistence::{Broken, Note, Persistence, Place};
use jiff::civil::Date;
use std::borrow::Cow;

#[derive(Debug, Clone)]
pub struct CorpusNote {
    /// The file's name.
    pub name: String,
    pub entry: Entry,
    /// What it says, counters aside.
    pub mark: String,
}

impl CorpusNote {
    /// `None`: the file's name is not UTF-8, and a plan could not hold it.
    fn of(note: Note) -> Option<CorpusNote> {
        let name = note.path.file_name()?.to_str()?.to_owned();
        Some(CorpusNote { name, mark: note.entry.fingerprint(), entry: note.entry })
    }

    pub(super) fn meta(&self) -> &Meta {
        self.entry.meta()
    }

    pub fn id(&self) -> &EntryId {
        &self.meta().id
    }

    pub(super) fn body(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.entry.body())
    }
}

/// The notes in use that are `wanted`, by title, and the files that cannot be used.
///
/// # Errors
/// The store cannot be read.
pub fn read<P: Persistence>(
    topics: &P,
    wanted: impl Fn(&EntryId) -> bool + Sync,
) -> Result<(Vec<CorpusNote>, Vec<Broken>)> {
    let scan = topics.scan(&[Place::Topics], |note| {
        if !wanted(&note.entry.meta().id) {
            return Ok(None);
        }
        let path = note.path.clone();
        match CorpusNote::of(note) {
            Some(note) => Ok(Some(note)),
            None => Err(Broken { path, why: "its file name is not UTF-8".to_owned() }),
        }
    })?;
    let mut broken = scan.broken;
    let mut notes = Vec::new();
    for found in scan.found {
        match found {
            Ok(note) => notes.extend(note),
            Err(one) => broken.push(one),
        }
    }
    notes.sort_by(|a, b| (&a.meta().title, a.id()).cmp(&(&b.meta().title, b.id())));
    Ok((notes, broken))
}

/// A note in use, without its text.
pub struct Marked {
    pub(super) id: EntryId,
    pub(super) mark: String,
    pub(super) reach: Reach,
    pub(super) until: Option<Date>,
    pub(super) used: u64,
}

/// All notes in use.
pub(super) fn marks<P: Persistence>(topics: &P) -> Result<Vec<Marked>> {
    let scan = topics.scan(&[Place::Topics], |note| {
        let meta = note.entry.meta();
        // One that a plan could not hold is not asked about.
        note.path.file_name().is_some_and(|name| name.to_str().is_some()).then(|| Marked {
            id: meta.id.clone(),
            mark: note.entry.fingerprint(),
            reach: Reach::of(meta),
            until: meta.until,
            used: meta.used,
        })
    })?;
    Ok(scan.found.into_iter().flatten().collect())
}
