//! A state of a store: its notes by id, its proposals, and all other files.

use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::{Place, is_named_after};
use crate::store::proposal::{Proposal, ProposalId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files by their paths in the store, with `/` between the parts.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A state of a store, or of those of its files that somebody changed.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// What both were made from. Empty if they have nothing in common.
    pub base: &'a Files,
    pub one: &'a Files,
    pub two: &'a Files,
    /// The paths of further files, which are the same on both sides and at the base.
    pub rest: &'a BTreeSet<String>,
}

/// A note of one side.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Located {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) entry: Entry,
}

impl Located {
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.place.dir(), self.name)
    }

    /// It says or means something else than `base`. Reading, ranking and archiving a note is no edit of it.
    pub(super) fn is_edited_since(&self, base: &Located) -> bool {
        self.entry.base() != base.entry.base() || (base.place, self.place) == (Place::Archive, Place::Topics)
    }

    /// The name that a person gave the file.
    pub(super) fn own_name(&self) -> Option<&str> {
        (self.name != self.entry.meta().file_name()).then_some(&self.name)
    }
}

/// Where a note at this path would lie, and its name there.
pub(super) fn place_of(path: &str) -> Option<(Place, &str)> {
    let (dir, name) = path.split_once('/')?;
    let place = Place::at(dir)?;
    (name.ends_with(".md") && !name.starts_with('.') && !name.contains('/')).then_some((place, name))
}

/// The id of the note in a file, if there is a note in it.
pub(super) fn note_id(path: &str, bytes: &[u8]) -> Option<EntryId> {
    place_of(path)?;
    Entry::parse(bytes.to_vec()).ok().map(|entry| entry.into_meta().id)
}

/// The files of one side, sorted.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) notes: BTreeMap<EntryId, Located>,
    pub(super) proposals: BTreeMap<ProposalId, Proposal>,
    /// Files that are none of ours, and those of ours that cannot be read.
    pub(super) others: Files,
}

impl Side {
    pub(super) fn of(files: &Files) -> Side {
        let mut side = Side::default();
        let mut twins: BTreeMap<EntryId, Vec<Located>> = BTreeMap::new();
        for (path, bytes) in files {
            if let Some((place, name)) = place_of(path)
                && let Ok(entry) = Entry::parse(bytes.clone())
            {
                let located = Located { place, name: name.to_owned(), entry };
                twins.entry(located.entry.meta().id.clone()).or_default().push(located);
            } else if let Some(proposal) = proposal_at(path, bytes) {
                side.proposals.insert(proposal.id.clone(), proposal);
            } else {
                side.others.insert(path.clone(), bytes.clone());
            }
        }
        for (id, mut notes) in twins {
            // Of several files with one id all programs use this one; the others are as good as foreign.
            notes.sort_by_key(|note| (!is_named_after(Path::new(&note.name), &id), note.path()));
            let mut notes = notes.into_iter();
            if let Some(first) = notes.next() {
                side.notes.insert(id, first);
            }
            side.others.extend(notes.map(|note| (note.path(), note.entry.bytes().to_vec())));
        }
        side
    }

    /// The files that are left over have this id in their names: a note that somebody broke while editing it.
    pub(super) fn has_broken(&self, id: &EntryId) -> bool {
        self.others
            .keys()
            .any(|path| place_of(path).is_some_and(|(_, name)| is_named_after(Path::new(name), id)))
    }
}

fn proposal_at(path: &str, bytes: &[u8]) -> Option<Proposal> {
    let id = path.strip_prefix("proposals/")?.strip_suffix(".json")?;
    Proposal::parse(bytes).ok().filter(|proposal| proposal.id.to_string() == id)
}

/// The ids in the names of files that nobody changed.
pub(super) fn ids_in_names(rest: &BTreeSet<String>) -> BTreeSet<EntryId> {
    rest.iter().filter_map(|path| EntryId::at_end_of(place_of(path)?.1)).collect()
}
