//! The file by which a remote is known as a store of notes. It has the version of what is synced.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::one_line;
use crate::memory::sync::listing::Listing;
use crate::memory::sync::objects::Commits;
use crate::memory::sync::side::{note_id, place_of};
use crate::store::place::Root;
use crate::store::removed;
use std::collections::BTreeSet;

/// Below the store.
pub(super) const PATH: &str = ".agent-memory-version";
/// What this program writes. It reads no greater one.
const VERSION: u32 = 1;
/// So many notes of a remote without the file are read to find one that is a note.
const SAMPLE: usize = 20;

/// Makes the file, unless there is one.
pub(super) fn put(root: &Root) -> Result<()> {
    let path = root.path().join(PATH);
    if !path.exists() {
        file::install(&path, format!("{VERSION}\n").as_bytes(), 0o600)?;
    }
    Ok(())
}

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
    let Some(text) = found.get(PATH).map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned()) else {
        return Ok(());
    };
    match text.parse::<u32>() {
        Ok(version) if version <= VERSION => Ok(()),
        Ok(version) => Err(Error::refused(format!(
            "{whose} has notes of version {version}, and this memory-sync knows version {VERSION}"
        ))
        .hint("update it on this machine; nothing was changed")),
        Err(_) => Err(Error::refused(format!(
            "{whose}: \"{PATH}\" has no version, but \"{}\"",
            one_line(&text, 40)
        ))
        .hint(format!("write {VERSION} into that file, in a clone of the remote"))),
    }
}
