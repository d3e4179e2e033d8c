//! The file by which a remote is known as a store of notes. It has the version of what is synced.

use crate::base::error::{ErrorKind, Result};
use crate::memory::sync::listing::Listing;
use crate::memory::sync::objects::Commits;
use crate::memory::sync::side::{note_id, place_of};
use crate::store::removed;
use crate::store::version::check_bytes;
pub(super) use crate::store::version::{PATH, put};
use std::collections::BTreeSet;

/// So many notes of a remote without the file are read to find one that is a note.
const SAMPLE: usize = 20;

/// Whether these are the files of a store. Those of an older one have no such file, but a note or a list of removed ones.
pub(super) fn is_store(commits: &Commits, files: &Listing) -> Result<bool> {
    if [PATH, removed::PATH].iter().any(|path| files.contains_key(*path)) {
        return Ok(true);
    }
    let notes: BTreeSet<String> =
        files.keys().filter(|path| place_of(path).is_some()).take(SAMPLE).cloned().collect();
    let [notes] = commits.files([files], &notes)?;
    Ok(notes.iter().any(|(path, bytes)| note_id(path, bytes).is_some()))
}

/// # Errors
/// `Refused`: the files are of a later version, or of none.
pub(super) fn check(commits: &Commits, files: &Listing, whose: &str) -> Result<()> {
    let [found] = commits.files([files], &BTreeSet::from([PATH.to_owned()]))?;
    let Some(bytes) = found.get(PATH) else { return Ok(()) };
    let checked = check_bytes(bytes, &format!("\"{PATH}\" of {whose}"));
    checked.map_err(|error| error.of_kind(ErrorKind::Refused))
}
