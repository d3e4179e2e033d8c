//! Notes that are gone on one side though nobody has removed them by name. A few are a person who cleans up with `rm`; many
//! are more likely a disk, a backup or a program that has lost them, and then a merge must not spread that.

use crate::base::error::{Error, Result};
use crate::memory::sync::listing::Listing;
use crate::memory::sync::side::place_of;
use crate::store::entry::EntryId;
use crate::store::git::Git;
use crate::store::history::{REMOVED, removal_trailers};
use std::collections::{BTreeMap, BTreeSet};

/// So many may go, and one of so many.
const FEW: usize = 5;
const SHARE: usize = 10;

/// What a person has said about such notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// They are given back.
    Keep,
    /// They are removed everywhere.
    Remove,
}

/// What a note is known by: its id; where its file's name has none, its path.
fn key(path: &str) -> Option<&str> {
    let (_, name) = place_of(path)?;
    Some(EntryId::at_end_of(name).map_or(path, |_| &name[name.len() - "id__123456.md".len()..]))
}

fn notes(listing: &Listing) -> BTreeMap<&str, &str> {
    listing.0.keys().filter_map(|path| Some((key(path)?, path.as_str()))).collect()
}

/// The paths in `base` of the notes that `side` does not have any more.
fn gone(base: &Listing, side: &Listing) -> BTreeSet<String> {
    let left = notes(side);
    let gone = notes(base).into_iter().filter(|(key, _)| !left.contains_key(key));
    gone.map(|(_, path)| path.to_owned()).collect()
}

/// Many notes that are gone, and that nobody has removed by name.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Where they were.
    pub(super) paths: BTreeSet<String>,
    places: Vec<String>,
    all: usize,
}

impl Lost {
    pub(super) fn is_none(&self) -> bool {
        self.paths.is_empty()
    }

    /// Adds what `side`, which is at `place`, has lost of `base`. `named` are the notes that were removed by name; it is
    /// asked only if so many are gone that it matters.
    pub(super) fn add(
        &mut self,
        base: &Listing,
        side: &Listing,
        place: &str,
        named: impl FnOnce() -> Result<BTreeSet<EntryId>>,
    ) -> Result<()> {
        self.all = notes(base).len();
        let are_many = |gone: &BTreeSet<String>| gone.len() > FEW && gone.len() * SHARE > self.all;
        let mut gone = gone(base, side);
        if are_many(&gone) {
            let named = named()?;
            gone.retain(|path| EntryId::at_end_of(path).is_none_or(|id| !named.contains(&id)));
            if are_many(&gone) {
                self.paths.extend(gone);
                self.places.push(place.to_owned());
            }
        }
        Ok(())
    }

    pub(super) fn refused(&self) -> Error {
        let some: Vec<String> = self.paths.iter().take(3).map(|path| format!("\"{path}\"")).collect();
        Error::refused(format!(
            "{} of {} notes are gone {}, and nobody has removed them by name, among them {}; nothing was merged",
            self.paths.len(),
            self.all,
            self.places.join(" and "),
            some.join(", ")
        ))
        .hint("memory-sync --missing keep gives them back; --missing remove removes them everywhere")
    }

    /// The message of a commit that names them.
    pub(super) fn message(&self) -> String {
        let ids: Vec<EntryId> = self.paths.iter().filter_map(|path| EntryId::at_end_of(path)).collect();
        format!("sync: {} notes removed\n\n{}", self.paths.len(), removal_trailers(&ids).join("\n"))
    }
}

/// The notes that commits of these sides name as removed, since `bases`.
pub(super) fn named(git: &Git, sides: &[&str], bases: &[String]) -> Result<BTreeSet<EntryId>> {
    // The commit's own name too: so there is never nothing to print.
    let format = format!("--format=%H %(trailers:key={REMOVED},valueonly,unfold,separator=%x20)");
    let mut arguments = vec!["log", &format];
    arguments.extend(sides);
    arguments.push("--not");
    arguments.extend(bases.iter().map(String::as_str));
    let lines = git.lines(&arguments)?.unwrap_or_default();
    Ok(lines.iter().flat_map(|line| line.split(' ')).filter_map(EntryId::whole).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(paths: &[String]) -> Listing {
        Listing(paths.iter().map(|path| (path.clone(), "object".to_owned())).collect())
    }

    fn paths(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("topics/note {n} -- id__AAAAA{}.md", n + 1)).collect()
    }

    #[test]
    fn a_renamed_or_archived_note_is_not_gone() {
        let base = listing(
            &["topics/a -- id__AAAAAA.md", "topics/b -- id__BBBBBB.md", "topics/mine.md"].map(str::to_owned),
        );
        let side = listing(&["archive/z -- topic__x id__AAAAAA.md".to_owned(), "inbox/mine.md".to_owned()]);
        assert_eq!(Vec::from_iter(gone(&base, &side)), ["topics/b -- id__BBBBBB.md", "topics/mine.md"]);
    }

    fn lost(base: &[String], side: &[String], named: &[&str]) -> usize {
        let mut lost = Lost::default();
        let ids = || Ok(named.iter().filter_map(|id| EntryId::whole(id)).collect());
        lost.add(&listing(base), &listing(side), "here", ids).unwrap();
        lost.paths.len()
    }

    #[test]
    fn more_than_five_and_more_than_a_tenth_are_many() {
        for (all, left, expected) in [(9, 4, 0), (9, 3, 6), (6, 0, 6), (5, 0, 0)] {
            assert_eq!(lost(&paths(all), &paths(left), &[]), expected, "{left} of {all}");
        }
        let others = (0..60).map(|n| format!("archive/{n}.md"));
        let base: Vec<String> = paths(6).into_iter().chain(others).collect();
        assert_eq!(lost(&base, &base[6..], &[]), 0, "6 of 66 are less than a tenth");
    }

    #[test]
    fn what_was_removed_by_name_does_not_count() {
        assert_eq!(lost(&paths(8), &[], &["id__AAAAA1"]), 7);
        assert_eq!(lost(&paths(8), &[], &["id__AAAAA1", "id__AAAAA2", "id__AAAAA3"]), 0);
    }
}
