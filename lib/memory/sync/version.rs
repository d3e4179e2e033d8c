//! The file by which a remote is known as a store of notes, and the branch that has it. It has the version of what is synced.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::one_line;
use crate::memory::sync::objects::{Commits, Listing};
use crate::memory::sync::remote::{Remote, Unsynced};
use crate::memory::sync::side::{note_id, place_of};
use crate::store::removed;
use crate::store::version::{PATH, check_bytes};
use std::collections::BTreeSet;

/// So many notes of a remote without the file are read to find one that is a note.
const SAMPLE: usize = 20;

/// The branch of the remote to use: the first that has notes, wherever they are, so that two machines meet. An empty
/// remote gets one of the local name.
///
/// # Errors
/// `Refused`: the remote has something else.
pub(super) fn branch(remote: &Remote, local: &str, commits: &Commits) -> Result<String, Unsynced> {
    let shown = remote.quoted();
    let branches = remote.branches(local)?;
    let mut others = None;
    for branch in &branches {
        let Some(theirs) = remote.fetch(commits.git, branch)? else { continue };
        let listing = commits.listing_of(&theirs, &shown)?;
        if is_store(commits, &listing)? {
            return Ok(branch.clone());
        }
        others = others.or(Some(listing));
    }
    let Some(listing) = others else { return Ok(local.to_owned()) };
    let names: BTreeSet<&str> = listing.keys().map(|path| path.split('/').next().unwrap_or(path)).collect();
    let names: Vec<String> =
        names.into_iter().take(3).map(|name| format!("\"{}\"", one_line(name, 60))).collect();
    let what = if names.is_empty() { "other commits".to_owned() } else { names.join(", ") };
    let why = format!("{shown} is neither empty nor a store of notes: it has {what}");
    Err(Error::refused(why).hint("nothing was sent; use an empty repository, without a README").into())
}

/// Whether these are the files of a store. Those of an older one have no such file, but a note or a list of removed ones.
fn is_store(commits: &Commits, files: &Listing) -> Result<bool> {
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
