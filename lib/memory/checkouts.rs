//! From which directories sessions speak for a repository. A checkout is known by git's own configuration, which comes with
//! an unpacked archive, too; so a new place is named to the person once, and all notes of a place can be taken back.

use crate::base::command_line::quoted;
use crate::base::error::Result;
use crate::base::{reach, repository};
use crate::memory::service::{Changed, NoteService};
use crate::store::change::Change;
use crate::store::entry::{EntryId, Source};
use crate::store::persistence::{Persistence, Place};
use crate::store::projects::{Projects, ToldPlaces};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A place whose sessions speak for a repository, after those of another place had done so.
#[derive(Debug, PartialEq, Eq)]
pub struct NewCheckout {
    pub repo: String,
    pub place: PathBuf,
    /// The day of the first note from there; empty where that is not known.
    since: String,
}

impl fmt::Display for NewCheckout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NewCheckout { repo, place, since } = self;
        let since = if since.is_empty() { String::new() } else { format!(" since {since}") };
        write!(f, "sessions in \"{}\" speak for {repo}{since}", place.display())
    }
}

impl NewCheckout {
    pub fn next_step(&self) -> String {
        let place = quoted(&self.place.to_string_lossy());
        format!("if it is no checkout of yours: memory-remove --dry-run --from {place}")
    }
}

/// The new places in the sources of all notes, without those that a person was told of.
pub fn new_checkouts<'a>(sources: impl Iterator<Item = &'a Source>, told: &ToldPlaces) -> Vec<NewCheckout> {
    let mut first: BTreeMap<&str, BTreeMap<&Path, &str>> = BTreeMap::new();
    for Source { repo, cwd, at, .. } in sources {
        let (Some(repo), Some(cwd)) = (repo.as_deref(), cwd.as_deref()) else { continue };
        // The others are known by their place alone.
        if !repo.starts_with("local:") {
            let at = at.as_deref().unwrap_or_default();
            let first = first.entry(repo).or_default().entry(Path::new(cwd)).or_insert(at);
            *first = at.min(first);
        }
    }
    let mut new = Vec::new();
    for (repo, places) in first {
        let mut places: Vec<(&Path, &str)> = places.into_iter().collect();
        places.sort_by_key(|(_, at)| *at);
        let mut known: Vec<PathBuf> = Vec::new();
        for (cwd, at) in places {
            let found = repository::of(cwd).filter(|found| found.name == repo);
            let place = found.as_ref().map_or_else(|| cwd.to_path_buf(), |found| found.top.clone());
            let is_known = |known: &PathBuf| [cwd, &place].iter().any(|dir| dir.starts_with(known));
            if !known.iter().any(|known| is_known(known) || known.starts_with(cwd)) {
                let is_told = told.get(repo).is_some_and(|told| told.contains(&place));
                if !known.is_empty() && !is_told {
                    let since = at.get(..10).unwrap_or_default().to_owned();
                    new.push(NewCheckout { repo: repo.to_owned(), place: place.clone(), since });
                }
                known.extend(repository::worktrees(&place));
                known.extend([cwd.to_path_buf(), place]);
            }
        }
    }
    new
}

/// Does it come from a session at or below one of these directories?
pub fn is_from(source: &Source, dirs: &[PathBuf]) -> bool {
    source.cwd.as_deref().is_some_and(|cwd| is_below(Path::new(cwd), dirs))
}

/// Is it one of these directories, or below one?
pub fn is_below(path: &Path, dirs: &[PathBuf]) -> bool {
    let is_there = |path: &Path| dirs.iter().any(|dir| path.starts_with(dir));
    is_there(path) || reach::real(path).is_some_and(|real| is_there(&real))
}

impl<P: Persistence + Sync> NoteService<P> {
    /// See [`new_checkouts`].
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn new_checkouts(&self) -> Result<Vec<NewCheckout>> {
        let told = self.notes().root().map(Projects::load).transpose()?.unwrap_or_default().told;
        let scan = self.index.scan(Place::Topics, |view| view.meta.sources)?;
        Ok(new_checkouts(scan.found.iter().flatten(), &told))
    }

    /// Takes the sources from these directories out of a note. One without another source moves to the archive. What a
    /// person has made their own stays as it is.
    ///
    /// # Errors
    /// `NotFound`: there is no such note. Or the store cannot be written.
    pub fn take_back(&self, id: &EntryId, dirs: &[PathBuf]) -> Result<Changed> {
        let change = Change::of(self.notes())?;
        let note = change.notes.find_own(id)?;
        let mut entry = note.entry.clone();
        if entry.kept().is_some() {
            return Ok(Changed::Same(note));
        }
        let now = self.now.as_millisecond();
        entry.update(|meta| {
            meta.sources.retain(|source| !is_from(source, dirs));
            meta.updated_at = now;
        })?;
        // In the archive, too, it says where it came from.
        let is_empty = entry.meta().sources.is_empty();
        let note = if is_empty { change.archive(&note)? } else { change.replace(&note, entry)? };
        change.write().map(|()| Changed::Done(note))
    }
}
