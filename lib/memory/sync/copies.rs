//! Copies that Dropbox or Syncthing made of a note because two machines changed it at once. Each is merged as the other
//! side, and then removed. One that cannot be merged, or of which something would be lost, stays, and the doctor names it.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::memory::sync::note;
use crate::memory::sync::{objects, unfinished};
use crate::memory::waiting;
use crate::store::by_hand::{self, original};
use crate::store::change::Change;
use crate::store::entry::{Entry, EntryId, Meta};
use crate::store::git::Git;
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::topics::Topics;
use std::collections::BTreeSet;
use std::ffi::OsStr;

/// So many versions of a note are looked through for the one that both sides were made from.
const VERSIONS: &str = "--max-count=50";

/// What became of the copies.
#[derive(Debug, Default)]
pub struct TakenIn {
    /// The notes that took the text of a copy in: their paths below the store.
    pub merged: Vec<String>,
    /// What a person should know: also which copies could not be taken in, and why.
    pub said: Vec<String>,
}

/// Takes in what a cloud or a person has put among the notes: merges all copies, and gives ids to notes without one. Not while
/// git merges: it takes back nothing that was changed meanwhile.
pub fn take_in(root: &Root, env: &Env) -> Result<TakenIn> {
    let notes = Topics::at(root);
    let mut taken = TakenIn::default();
    if unfinished::is_open(root) {
        return Ok(taken);
    }
    by_hand::give_ids(&notes)?;
    for name in notes.names(Place::Topics.dir(), ".md")? {
        if let Some((copy, original)) = name.to_str().and_then(|name| Some((name, original(name)?)))
            && let Err(why) = merge_one(&notes, copy, &original, || Git::new(root, env), &mut taken)
        {
            // The next run tries again.
            taken.said.push(why.context(format!("\"{copy}\" was not merged")).line());
        }
    }
    Ok(taken)
}

/// One that cannot be merged stays.
fn merge_one(
    notes: &Topics,
    copy: &str,
    original: &str,
    git: impl FnOnce() -> Result<Git>,
    taken: &mut TakenIn,
) -> Result<()> {
    let change = Change::of(notes)?;
    let Ok(Some(copy)) = change.notes.read(Place::Topics, OsStr::new(copy)) else { return Ok(()) };
    let id = &copy.entry.meta().id;
    let named = change.notes.read(Place::Topics, OsStr::new(original)).ok().flatten();
    // It may have got another title since.
    let found = named.filter(|note| note.entry.meta().id == *id).or(change.notes.named(id).ok().flatten());
    let path = shown(found.as_ref().unwrap_or(&copy));
    let mut versions = git().and_then(|git| versions(&git, id, &path)).unwrap_or_default();
    let Some(note) = found.as_ref().filter(|note| note.place == Place::Topics) else {
        let is_removed = found.is_some() || notes.removed()?.contains(id);
        versions.extend(found.map(|note| note.entry));
        if is_removed && versions.iter().any(|version| note::says(version) == note::says(&copy.entry)) {
            file::remove(&copy.path)?;
            taken.said.push(format!("\"{}\" was removed, as its note was", shown(&copy)));
        }
        return Ok(());
    };
    let base = base(versions, &note.entry, &copy.entry);
    let merged = note::merge(base.as_ref(), &note.entry, &copy.entry);
    let is_lost = |of: fn(&Meta) -> &str| {
        let [base, note, copy] = [base.as_ref(), Some(&note.entry), Some(&copy.entry)]
            .map(|entry| entry.map(|entry| of(entry.meta())));
        note != copy && base != note && base != copy
    };
    // The proposal would have it.
    let loses = merged.conflict.is_none() && (is_lost(|meta| &meta.title) || is_lost(|meta| &meta.summary));
    if merged.unmerged.is_some() || loses {
        return Ok(());
    }
    let now = change.replace(note, merged.entry)?;
    if let Some(conflict) = merged.conflict {
        waiting::settle(&change, conflict)?;
    }
    change.write()?;
    // Only now: if a program is killed before, the same is merged again.
    file::remove(&copy.path)?;
    taken.said.push(format!("\"{}\" was merged into its note", shown(&copy)));
    taken.merged.push(shown(&now));
    Ok(())
}

/// The note's path below the store.
fn shown(note: &Note) -> String {
    note.place.path(&note.name()).to_string_lossy().into_owned()
}

/// The versions in the history, also under earlier names, the oldest first.
fn versions(git: &Git, id: &EntryId, path: &str) -> Result<Vec<Entry>> {
    let (path, names) = (format!(":(literal){path}"), format!(":(glob)*/*{id}.md"));
    let log = ["log", VERSIONS, "--format=", "--raw", "--no-abbrev", "--no-renames", "--", &path, &names];
    let printed = git.run(&log)?;
    let printed = String::from_utf8_lossy(&printed);
    // `:MODE MODE OID OID STATUS`, the newest first; none has only zeros for a name.
    let versions: Vec<&str> = printed.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    let is_there = |oid: &&str| oid.contains(|c| c != '0');
    let objects = objects::read(git, &versions.iter().copied().filter(is_there).collect::<BTreeSet<_>>())?;
    Ok(versions.iter().rev().filter_map(|oid| Entry::parse(objects.get(*oid)?.1.clone()).ok()).collect())
}

/// The version whose text differs least from the copy's. Not what the note is now: then the copy's text would take the place
/// of text that its writer did not know. One without a line of the copy is not what it was made from.
fn base(mut versions: Vec<Entry>, note: &Entry, copy: &Entry) -> Option<Entry> {
    let lines = |text: &[u8]| -> BTreeSet<Vec<u8>> {
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (body, whole) = (lines(copy.body()), lines(copy.bytes()));
    versions.retain(|version| {
        version.fingerprint() != note.fingerprint() && !lines(version.body()).is_disjoint(&body)
    });
    let distance = |version: &Entry| {
        let is_now = version.body() == note.body();
        ((&lines(version.body()) ^ &body).len(), is_now, (&lines(version.bytes()) ^ &whole).len())
    };
    versions.into_iter().min_by_key(distance)
}
