//! The notes in use as a defrag sees them, and what it finds out about them before it asks.

use crate::base::error::Result;
use crate::store::entry::{EntryId, Meta, Scope, Tier, links, repos};
use crate::store::persistence::{Broken, Note, Persistence, Place};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// So many notes have a line for their use alone.
const MOST_USED: usize = 100;

/// Everything that a prompt is made of.
#[derive(Debug)]
pub struct Corpus {
    /// The notes in use, as they are now.
    pub notes: Vec<Note>,
    pub structure: Structure,
    pub today: Date,
}

/// What was found out about all notes when the batch began.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Structure {
    /// Likely duplicates, with how alike they are in percent.
    pub(super) pairs: Vec<(EntryId, EntryId, u8)>,
    /// The notes that an earlier defrag has seen as they are, with their fingerprints. All others are new or changed.
    #[serde(default)]
    pub(super) settled: BTreeMap<EntryId, String>,
}

/// The notes in use, by title, and the files that cannot be used.
///
/// # Errors
/// The store cannot be read.
pub fn read<P: Persistence>(notes: &P) -> Result<(Vec<Note>, Vec<Broken>)> {
    let scan = notes.scan(&[Place::Topics], |note| note)?;
    let (mut found, odd): (Vec<Note>, Vec<Note>) =
        scan.found.into_iter().partition(|note| note.name().to_str().is_some());
    let why = || "its file name is not UTF-8".to_owned();
    let odd = odd.into_iter().map(|note| Broken { path: note.path, why: why() });
    found.sort_by(|a, b| (&a.entry.meta().title, id(a)).cmp(&(&b.entry.meta().title, id(b))));
    Ok((found, scan.broken.into_iter().chain(odd).collect()))
}

pub(super) fn id(note: &Note) -> &EntryId {
    &note.entry.meta().id
}

/// Whom a note reaches: `global`, or `repo` and the repositories.
///
/// Only notes of one reach are merged. Nor are others shown together: what is said in one repository is no business of
/// another's, and what is hot is decided for each target by itself.
pub(super) fn reach(meta: &Meta) -> String {
    if meta.scope == Scope::Global {
        return "global".to_owned();
    }
    repos(&meta.sources).into_iter().fold("repo".to_owned(), |name, repo| name + " " + repo)
}

/// The notes that a note links to.
pub(super) fn linked_from(note: &Note) -> BTreeSet<EntryId> {
    links(&String::from_utf8_lossy(note.entry.body())).into_iter().collect()
}

pub(super) fn is_hot(note: &Note) -> bool {
    note.entry.meta().pinned || note.entry.meta().tier == Tier::Hot
}

impl Corpus {
    /// How many notes lead to each.
    pub(super) fn linked(&self) -> BTreeMap<EntryId, usize> {
        let mut linked = BTreeMap::new();
        for id in self.notes.iter().flat_map(linked_from) {
            *linked.entry(id).or_default() += 1;
        }
        linked
    }
}

impl Structure {
    /// Is the note as an earlier defrag has seen it, or one of this?
    pub(super) fn is_settled(&self, note: &Note) -> bool {
        self.settled.get(id(note)).is_some_and(|mark| *mark == note.entry.fingerprint())
    }

    /// The notes of a reach that its tiers depend on: hot, pinned and changed ones, and the most used of the others. In the
    /// order in which they matter: pinned ones, hot ones, and then by use and age.
    pub(super) fn listed<'a>(&self, mut notes: Vec<&'a Note>) -> Vec<&'a Note> {
        notes.sort_by_key(|note| {
            let meta = note.entry.meta();
            Reverse((meta.pinned, meta.tier == Tier::Hot, meta.used, meta.last_used, meta.updated_at))
        });
        let mut others = 0;
        notes.retain(|note| {
            is_hot(note) || !self.is_settled(note) || {
                others += 1;
                others <= MOST_USED
            }
        });
        notes
    }
}
