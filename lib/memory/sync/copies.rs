//! Copies that Dropbox or Syncthing made of a note because two machines changed it at once. Each is merged as the other
//! side, and then removed. One that cannot be merged stays, and the doctor names it.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::memory::sync::note;
use crate::memory::sync::objects;
use crate::memory::waiting;
use crate::store::by_hand;
use crate::store::change::Change;
use crate::store::entry::{Entry, EntryId};
use crate::store::git::Git;
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::topics::Topics;
use std::collections::BTreeSet;
use std::ffi::OsStr;

/// So many versions of a note are looked through for the one that both sides were made from.
const VERSIONS: &str = "--max-count=50";

/// A note that took the text of a copy in.
pub struct MergedCopy {
    /// Its path below the store.
    pub note: String,
    /// What a person should know.
    pub said: String,
}

/// Takes in what a cloud or a person has put among the notes: merges all copies, and gives ids to notes without one.
pub fn take_in(root: &Root, env: &Env) -> Result<Vec<MergedCopy>> {
    let notes = Topics::at(root);
    by_hand::give_ids(&notes)?;
    let mut merged = Vec::new();
    for name in notes.names(Place::Topics.dir(), ".md")? {
        if let Some((copy, original)) = name.to_str().and_then(|name| Some((name, original(name)?))) {
            merged.extend(merge_one(&notes, copy, &original, || Git::new(root, env))?);
        }
    }
    Ok(merged)
}

/// The name of the note, if this is one of a copy: `x (Mara's conflicted copy 2026-03-05).md` or
/// `x.sync-conflict-20260305-101112-ABCDEFG.md`.
fn original(name: &str) -> Option<String> {
    if EntryId::at_end_of(name).is_some() {
        return None;
    }
    let stem = name.strip_suffix(".md")?;
    let end = match stem.find(".sync-conflict-") {
        Some(end) => end,
        None => stem[..stem.find("conflicted copy")?].rfind(" (")?,
    };
    Some(format!("{}.md", &stem[..end]))
}

/// `None`: it stays.
fn merge_one(
    notes: &Topics,
    copy: &str,
    original: &str,
    git: impl FnOnce() -> Result<Git>,
) -> Result<Option<MergedCopy>> {
    let change = Change::of(notes)?;
    let Ok(Some(copy)) = change.notes.read(Place::Topics, OsStr::new(copy)) else { return Ok(None) };
    let id = &copy.entry.meta().id;
    let named = change.notes.read(Place::Topics, OsStr::new(original)).ok().flatten();
    // It may have got another title since.
    let found = named.filter(|note| note.entry.meta().id == *id).or(change.notes.named(id).ok().flatten());
    let Some(note) = found.filter(|note| note.place == Place::Topics) else { return Ok(None) };
    let base = git().and_then(|git| base(&git, &note, &copy.entry)).ok().flatten();
    let merged = note::merge(base.as_ref(), &note.entry, &copy.entry);
    if merged.unmerged.is_some() {
        return Ok(None);
    }
    let now = change.replace(&note, merged.entry)?;
    if let Some(conflict) = merged.conflict {
        waiting::settle(&change, conflict)?;
    }
    change.write()?;
    // Only now: if a program is killed before, the same is merged again.
    file::remove(&copy.path)?;
    let [note, copy] = [now, copy].map(|note| note.place.path(&note.name()).to_string_lossy().into_owned());
    Ok(Some(MergedCopy { note, said: format!("\"{copy}\" was merged into its note") }))
}

/// The version in the history from which the copy differs least; of two such, the older one.
fn base(git: &Git, note: &Note, copy: &Entry) -> Result<Option<Entry>> {
    let path = note.place.path(&note.name());
    let path = format!(":(literal){}", path.to_string_lossy());
    let printed =
        git.run(&["log", VERSIONS, "--format=", "--raw", "--no-abbrev", "--no-renames", "--", &path])?;
    let printed = String::from_utf8_lossy(&printed);
    // `:MODE MODE OID OID STATUS`, the newest first; none has only zeros for a name.
    let versions: Vec<&str> = printed.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    let is_there = |oid: &&str| oid.contains(|c| c != '0');
    let objects = objects::read(git, &versions.iter().copied().filter(is_there).collect::<BTreeSet<_>>())?;
    let lines = |entry: &Entry| -> BTreeSet<Vec<u8>> {
        entry.bytes().split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
    };
    let of_copy = lines(copy);
    let entries = versions.iter().rev().filter_map(|oid| Entry::parse(objects.get(*oid)?.1.clone()).ok());
    Ok(entries.min_by_key(|entry| (&lines(entry) ^ &of_copy).len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_known_by_their_names() {
        let note = "port -- id__AAAAAA";
        for mark in [
            " (conflicted copy 2026-03-05)",
            " (Mara's conflicted copy 2026-03-05)",
            " (Mara's conflicted copy 2026-03-05 (1))",
            ".sync-conflict-20260305-101112-ABCDEFG",
            ".sync-conflict-20260305-101112-ABCDEFG.sync-conflict-20260306-101112-ABCDEFG",
        ] {
            assert_eq!(original(&format!("{note}{mark}.md")), Some(format!("{note}.md")), "{mark}");
        }
        for name in ["port (conflicted copy) -- id__AAAAAA.md", "port.md", "conflicted copy.md", "port~"] {
            assert_eq!(original(name), None, "{name}");
        }
    }
}
