//! Notes that a side has lost, and many with them.

use crate::base::error::Result;
use crate::memory::sync::merger::Merger;
use crate::memory::sync::removals::{self, Missing, Notes};
use crate::memory::sync::request::SyncRequest;
use crate::store::entry::EntryId;
use crate::store::persistence::Persistence;
use crate::store::removed;
use crate::store::topics::Topics;
use std::collections::BTreeSet;

/// The notes that are to be given back to a side that has lost them, and many with them.
///
/// # Errors
/// There are such notes, and nobody has said what is to become of them.
pub(super) fn given_back(
    merger: &Merger,
    request: &SyncRequest,
    ours: Option<&str>,
    theirs: &str,
) -> Result<Notes> {
    let SyncRequest { root, missing, is_dry, .. } = *request;
    let [Some(base), Some(given)] = merger.last_exchange(ours, Some(theirs))? else {
        return Ok(Notes::new());
    };
    let commits = &merger.commits;
    let notes = |commit: &str| removals::in_listing(commits, &*commits.listing(Some(commit))?);
    // What a shared remote was to have and has never got, it has not lost.
    let had = if given == base { None } else { merger.base(Some(&given), theirs)? };
    let base = notes(&base)?;
    let had = had.map_or_else(|| Ok(base.clone()), |had| notes(&had))?;
    let theirs = commits.listing(Some(theirs))?;
    let there = removals::in_listing(commits, &theirs)?;
    let named = removals::named(commits, &theirs)?;
    // A note that somebody renames at this moment is not gone.
    let _store = if is_dry { None } else { Some(Topics::at(root).lock()?) };
    let named = &named | &removed::of(root)?;
    let here = removals::lost(&base, &removals::on_disk(root)?, &named);
    let there = removals::lost(&had, &there, &named);
    if missing == Some(Missing::Keep) {
        return Ok(here.into_iter().chain(there).collect());
    }
    // A few that a person has deleted here have a name from now on, too, or many times a few would be many for a machine
    // that was away.
    let mut gone: BTreeSet<EntryId> = here.keys().cloned().collect();
    let places =
        [("on this machine".to_owned(), here, &base), (format!("in \"{}\"", merger.remote), there, &had)];
    let many = places.into_iter().filter(|(_, lost, all)| removals::are_many(lost, all));
    let many: Vec<_> = many.map(|(place, lost, _)| (lost, place)).collect();
    if !many.is_empty() && missing.is_none() {
        return Err(removals::refused(&many, &base));
    }
    gone.extend(many.iter().flat_map(|(lost, _)| lost.keys().cloned()));
    if !is_dry {
        removed::add(root, gone.iter())?;
    }
    Ok(Notes::new())
}
