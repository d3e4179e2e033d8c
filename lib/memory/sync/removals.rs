//! Notes that are gone on one side though nobody has removed them by name. A few are a person who cleans up with `rm`; many
//! are more likely a disk, a backup or a program that has lost them, and then a merge must not spread that.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::sync::objects::{Commits, Listing};
use crate::memory::sync::side::{Files, note_id, place_of};
use crate::store::entry::EntryId;
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

/// The notes at these paths. Where a file's name has no id, the file does: `read` gives those.
fn notes<'a>(
    paths: impl Iterator<Item = &'a String>,
    read: impl FnOnce(BTreeSet<String>) -> Result<Files>,
) -> Result<Notes> {
    let (named, others): (Vec<_>, Vec<_>) = paths
        .filter(|path| place_of(path).is_some())
        .map(|path| (EntryId::at_end_of(path), path.clone()))
        .partition(|(id, _)| id.is_some());
    let mut notes: Notes = named.into_iter().filter_map(|(id, path)| Some((id?, path))).collect();
    let others = read(others.into_iter().map(|(_, path)| path).collect())?;
    notes.extend(others.into_iter().filter_map(|(path, bytes)| Some((note_id(&path, &bytes)?, path))));
    Ok(notes)
}

fn in_files(files: &Files) -> Result<Notes> {
    let at = |path: String| files.get(&path).map(|bytes| (path.clone(), bytes.clone()));
    notes(files.keys(), |paths| Ok(paths.into_iter().filter_map(at).collect()))
}

pub(super) fn in_listing(commits: &Commits, listing: &Listing) -> Result<Notes> {
    notes(listing.keys(), |paths| commits.files([listing], &paths).map(|[files]| files))
}

pub(super) fn on_disk(root: &Root) -> Result<Notes> {
    let mut paths = Vec::new();
    for dir in ["topics", "archive"] {
        for file in file::if_exists(fs_err::read_dir(root.path().join(dir)))?.into_iter().flatten() {
            paths.push(format!("{dir}/{}", file?.file_name().to_string_lossy()));
        }
    }
    notes(paths.iter(), |paths| {
        let read =
            |path: String| file::if_exists(file::read(&root.path().join(&path), CAP)).map(|b| (path, b));
        let files = paths.into_iter().map(read).collect::<std::io::Result<Vec<_>>>()?;
        Ok(files.into_iter().filter_map(|(path, bytes)| Some((path, bytes?))).collect())
    })
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

/// The ids that a side's list of removed notes has.
pub(super) fn named(commits: &Commits, listing: &Listing) -> Result<BTreeSet<EntryId>> {
    let [files] = commits.files([listing], &BTreeSet::from([removed::PATH.to_owned()]))?;
    Ok(files.values().flat_map(|bytes| removed::ids(bytes)).collect())
}

/// The notes of `base` that a side has no more though nobody has removed them by name, with the paths that they had.
pub(super) fn lost(base: &Notes, side: &Notes, named: &BTreeSet<EntryId>) -> Notes {
    let is_lost = |id: &EntryId| !side.contains_key(id) && !named.contains(id);
    base.iter().filter(|(id, _)| is_lost(id)).map(|(id, path)| (id.clone(), path.clone())).collect()
}

pub(super) fn are_many(lost: &Notes, base: &Notes) -> bool {
    lost.len() > FEW && lost.len() * SHARE > base.len()
}

/// Nobody has said what is to become of these, which are gone at a place each.
pub(super) fn refused(lost: &[(Notes, String)], base: &Notes) -> Error {
    let all: Notes = lost.iter().flat_map(|(notes, _)| notes.clone()).collect();
    let some: Vec<String> = all.values().take(3).map(|path| format!("\"{path}\"")).collect();
    let places: Vec<&str> = lost.iter().map(|(_, place)| place.as_str()).collect();
    Error::refused(format!(
        "{} of {} notes are gone {}, and nobody has removed them by name, among them {}; nothing was merged",
        all.len(),
        base.len(),
        places.join(" and "),
        some.join(", ")
    ))
    .hint("to bring them back: memory-sync --missing keep; to delete them everywhere: memory-sync --missing remove")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: usize) -> Notes {
        let note = |n| (EntryId::whole(&format!("id__AAAAA{n}")).unwrap(), format!("topics/{n}.md"));
        (1..=count).map(note).collect()
    }

    fn lost_many(base: usize, left: usize, named: &[&str]) -> usize {
        let named = named.iter().filter_map(|id| EntryId::whole(id)).collect();
        let lost = lost(&some(base), &some(left), &named);
        if are_many(&lost, &some(base)) { lost.len() } else { 0 }
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
            assert_eq!(lost_many(all, left, &[]), expected, "{left} of {all}");
        }
    }

    #[test]
    fn what_was_removed_by_name_does_not_count() {
        assert_eq!(lost_many(8, 0, &["id__AAAAA1"]), 7);
        assert_eq!(lost_many(8, 0, &["id__AAAAA1", "id__AAAAA2", "id__AAAAA3"]), 0);
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
