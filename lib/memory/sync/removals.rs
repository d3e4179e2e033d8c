//! Notes that are gone on one side though nobody has removed them by name. A few are a person who cleans up with `rm`; many
//! are more likely a disk, a backup or a program that has lost them, and then a merge must not spread that.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::sync::listing::Listing;
use crate::memory::sync::objects;
use crate::memory::sync::side::{Files, note_id, place_of};
use crate::store::entry::EntryId;
use crate::store::git::Git;
use crate::store::place::Root;
use crate::store::removed;
use std::collections::{BTreeMap, BTreeSet};

/// Up to so many may go without a name, and up to one of so many.
const FEW: usize = 5;
const SHARE: usize = 10;
/// The largest note that is read, in bytes, as everywhere.
const CAP: u64 = 8 << 20;

/// What a person has said about such notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// They are given back.
    Keep,
    /// They are removed everywhere.
    Remove,
}

/// The paths of notes by their ids.
pub(super) type Notes = BTreeMap<EntryId, String>;

/// The notes at these paths. Where a file's name has no id, `read` gives its text.
fn notes<'a>(
    paths: impl Iterator<Item = &'a String>,
    mut read: impl FnMut(&str) -> Result<Option<Vec<u8>>>,
) -> Result<Notes> {
    let mut notes = Notes::new();
    for path in paths.filter(|path| place_of(path).is_some()) {
        let id = match EntryId::at_end_of(path) {
            Some(id) => Some(id),
            None => read(path)?.and_then(|bytes| note_id(path, &bytes)),
        };
        notes.extend(id.map(|id| (id, path.clone())));
    }
    Ok(notes)
}

pub(super) fn in_files(files: &Files) -> Result<Notes> {
    notes(files.keys(), |path| Ok(files.get(path).cloned()))
}

/// Takes these notes out of files.
pub(super) fn taken(files: &mut Files, notes: &Notes) -> Result<Files> {
    let paths = in_files(files)?.into_iter().filter(|(id, _)| notes.contains_key(id)).map(|(_, path)| path);
    Ok(paths.filter_map(|path| files.remove_entry(&path)).collect())
}

/// Puts those notes back that are not among the files: neither side had them.
pub(super) fn put_missing(files: &mut Files, mut notes: Files) -> Result<()> {
    let there = in_files(files)?;
    let missing = in_files(&notes)?.into_iter().filter(|(id, _)| !there.contains_key(id));
    files.extend(missing.filter_map(|(_, path)| notes.remove_entry(&path)));
    Ok(())
}

pub(super) fn in_listing(git: &Git, listing: &Listing) -> Result<Notes> {
    notes(listing.0.keys(), |path| objects::text(git, listing, path))
}

pub(super) fn on_disk(root: &Root) -> Result<Notes> {
    let mut paths = Vec::new();
    for dir in ["topics", "archive"] {
        for file in file::if_exists(fs_err::read_dir(root.path().join(dir)))?.into_iter().flatten() {
            paths.push(format!("{dir}/{}", file?.file_name().to_string_lossy()));
        }
    }
    notes(paths.iter(), |path| Ok(file::if_exists(file::read(&root.path().join(path), CAP))?))
}

/// The ids that a side's list of removed notes has.
pub(super) fn named(git: &Git, listing: &Listing) -> Result<BTreeSet<EntryId>> {
    Ok(objects::text(git, listing, removed::PATH)?.map(|bytes| removed::ids(&bytes)).unwrap_or_default())
}

/// Many notes that are gone, and that nobody has removed by name.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// With the paths that they had.
    pub(super) notes: Notes,
    places: Vec<String>,
    all: usize,
}

impl Lost {
    pub(super) fn is_none(&self) -> bool {
        self.notes.is_empty()
    }

    /// Adds what is not in `side` any more, which is at `place`, if that is many or `also_few`. `named` are the notes that
    /// were removed by name. Returns what is not added.
    pub(super) fn add(
        &mut self,
        base: &Notes,
        side: &Notes,
        place: &str,
        named: &BTreeSet<EntryId>,
        also_few: bool,
    ) -> Notes {
        let is_lost = |id: &EntryId| !side.contains_key(id) && !named.contains(id);
        let lost: Notes =
            base.iter().filter(|(id, _)| is_lost(id)).map(|(id, path)| (id.clone(), path.clone())).collect();
        self.all = base.len();
        let are_many = lost.len() > FEW && lost.len() * SHARE > base.len();
        if lost.is_empty() || !(are_many || also_few) {
            return lost;
        }
        self.notes.extend(lost);
        self.places.push(place.to_owned());
        Notes::new()
    }

    pub(super) fn refused(&self) -> Error {
        let some: Vec<String> = self.notes.values().take(3).map(|path| format!("\"{path}\"")).collect();
        Error::refused(format!(
            "{} of {} notes are gone {}, and nobody has removed them by name, among them {}; nothing was merged",
            self.notes.len(),
            self.all,
            self.places.join(" and "),
            some.join(", ")
        ))
        .hint("to bring them back: memory-sync --missing keep; to delete them everywhere: memory-sync --missing remove")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: usize) -> Notes {
        let note = |n| (EntryId::whole(&format!("id__AAAAA{n}")).unwrap(), format!("topics/{n}.md"));
        (1..=count).map(note).collect()
    }

    fn lost(base: usize, left: usize, named: &[&str]) -> usize {
        let mut lost = Lost::default();
        let named = named.iter().filter_map(|id| EntryId::whole(id)).collect();
        lost.add(&some(base), &some(left), "here", &named, false);
        lost.notes.len()
    }

    #[test]
    fn what_is_given_back_is_put_where_neither_side_has_it() {
        let file = |id: &str| {
            (format!("topics/{id}.md"), format!("---\nid: {id}\ntitle: T\n---\n\nx\n").into_bytes())
        };
        let all = ["id__AAAAA1", "id__AAAAA2", "id__BBBBBB"].map(file);
        let mut base = Files::from(all.clone());
        let mut returned = taken(&mut base, &some(2)).unwrap();
        assert_eq!((base.len(), returned.len()), (1, 2));
        // One of them has another name on a side.
        let (path, bytes) = all[0].clone();
        let mut merged = Files::from([(path.replace("topics", "archive"), bytes)]);
        put_missing(&mut merged, std::mem::take(&mut returned)).unwrap();
        assert_eq!(Vec::from_iter(merged.into_keys()), ["archive/id__AAAAA1.md", "topics/id__AAAAA2.md"]);
    }

    #[test]
    fn more_than_five_and_more_than_a_tenth_are_many() {
        for (all, left, expected) in [(9, 4, 0), (9, 3, 6), (6, 0, 6), (5, 0, 0)] {
            assert_eq!(lost(all, left, &[]), expected, "{left} of {all}");
        }
    }

    #[test]
    fn what_was_removed_by_name_does_not_count() {
        assert_eq!(lost(8, 0, &["id__AAAAA1"]), 7);
        assert_eq!(lost(8, 0, &["id__AAAAA1", "id__AAAAA2", "id__AAAAA3"]), 0);
    }

    #[test]
    fn a_note_is_known_by_its_id_whatever_its_file_is_called() {
        let text = b"---\nid: id__BBBBBB\ntitle: Mine\n---\n\nx\n".to_vec();
        let files = Files::from([
            ("topics/a -- id__AAAAAA.md".to_owned(), Vec::new()),
            ("archive/mine.md".to_owned(), text),
            ("topics/no note.md".to_owned(), b"x".to_vec()),
            ("inbox/b -- id__CCCCCC.md".to_owned(), Vec::new()),
        ]);
        let ids: Vec<String> = in_files(&files).unwrap().into_keys().map(String::from).collect();
        assert_eq!(ids, ["id__AAAAAA", "id__BBBBBB"]);
    }
}
