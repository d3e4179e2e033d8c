//! Files in the store that are no notes: merged by path as git would; where that fails, both stay.

use crate::base::text::{border, folded, hex};
use crate::memory::sync::lines::{self, settled};
use crate::memory::sync::side::{Files, Located, place_of};
use crate::store::removed;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// `all` is the whole base: a note there may be a file that cannot be read by now.
pub(super) fn merged(all: &Files, base: &Files, one: &Files, two: &Files) -> Files {
    let mut files = Files::new();
    let paths: BTreeSet<&String> = base.keys().chain(one.keys()).chain(two.keys()).collect();
    for path in paths {
        let (before, ours, theirs) = (base.get(path).or_else(|| all.get(path)), one.get(path), two.get(path));
        let merged = match (settled(before, ours, theirs), ours, theirs) {
            (Some(merged), ..) => merged.cloned(),
            (None, Some(ours), Some(theirs)) => Some(both(&mut files, path, before, ours, theirs)),
            // Removed on one side, and changed on the other.
            (None, ours, theirs) => ours.or(theirs).cloned(),
        };
        files.extend(merged.map(|bytes| (path.clone(), bytes)));
    }
    files
}

fn both(files: &mut Files, path: &str, before: Option<&Vec<u8>>, one: &Vec<u8>, two: &Vec<u8>) -> Vec<u8> {
    let (winner, other) = if Sha256::digest(one) >= Sha256::digest(two) { (one, two) } else { (two, one) };
    let is_text = [before, Some(one), Some(two)].into_iter().flatten().all(|bytes| !bytes.contains(&0));
    if is_text {
        let lines = lines::merge(before.map_or(b"", Vec::as_slice), winner, other);
        if lines.other.is_none() {
            return lines.text;
        }
        if path.ends_with(".gitignore") || path == removed::PATH {
            return with_missing_lines(winner, other);
        }
    }
    put_beside(files, path, "", other.clone());
    winner.clone()
}

/// Lines of which all of both are kept: patterns of files to ignore, ids of removed notes.
fn with_missing_lines(winner: &[u8], other: &[u8]) -> Vec<u8> {
    let mut text = winner.to_vec();
    if !text.is_empty() && !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    let have: BTreeSet<&[u8]> = winner.split(|byte| *byte == b'\n').collect();
    for line in other.split(|byte| *byte == b'\n').filter(|line| !have.contains(line)) {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text
}

/// Puts a note in its place. A broken or foreign file of its name goes beside it.
pub(super) fn put_note(files: &mut Files, note: &Located) {
    let path = note.path();
    if let Some(bytes) = files.remove(&path) {
        put_beside(files, &path, "md", bytes);
    }
    files.insert(path, note.entry.bytes().to_vec());
}

/// Keeps `bytes` beside the file at `path`, under a name that follows from both. With an `ending` it gets that one.
pub(super) fn put_beside(files: &mut Files, path: &str, ending: &str, bytes: Vec<u8>) {
    let name = beside(path, ending, &hex(&Sha256::digest(&bytes)[..4]));
    files.insert(name, bytes);
}

/// `a/b.md` becomes `a/b (mark).md`.
pub(super) fn beside(path: &str, ending: &str, mark: &str) -> String {
    let (dir, name) = path.rsplit_once('/').map_or(("", path), |(dir, name)| (dir, name));
    let (stem, own) = match name.rsplit_once('.') {
        Some((stem, own)) if !stem.is_empty() => (stem, own),
        _ => (name, ""),
    };
    let ending = if ending.is_empty() { own } else { ending };
    // File systems allow 255 bytes.
    let end = border(stem, 255 - 8 - ending.len().min(40) - mark.len() - 4);
    let slash = if dir.is_empty() { "" } else { "/" };
    let dot = if ending.is_empty() { "" } else { "." };
    format!("{dir}{slash}{} ({mark}){dot}{ending}", &stem[..end])
}

/// The files, those with a name that is taken under another one: of two names the one that sorts first stays, on every
/// machine. `rest` are the paths of further files.
///
/// Names that differ in case or in the form of their accents alone are one file on macOS, and a file and a directory of one
/// name are impossible everywhere.
pub(super) fn unique(files: Files, rest: &BTreeSet<String>) -> Files {
    let mut taken: BTreeSet<String> = rest.iter().map(|path| folded(path)).collect();
    let mut dirs: BTreeSet<String> = BTreeSet::new();
    for path in rest.iter().chain(files.keys()) {
        dirs.extend(parents(&folded(path)));
    }
    let mut unique = Files::new();
    for (path, bytes) in files {
        let mut path = path;
        let is_free = |path: &str| {
            let folded = folded(path);
            !taken.contains(&folded) && !dirs.contains(&folded)
        };
        if !is_free(&path) {
            let mark = hex(&Sha256::digest(&path)[..4]);
            path = match (place_of(&path), path.split_once(" -- ")) {
                // A note is found by the end of its name.
                (Some(_), Some((slug, rest))) => format!("{slug}-{mark} -- {rest}"),
                _ => beside(&path, "", &mark),
            };
        }
        taken.insert(folded(&path));
        unique.insert(path, bytes);
    }
    unique
}

fn parents(path: &str) -> impl Iterator<Item = String> {
    path.match_indices('/').map(|(at, _)| path[..at].to_owned())
}
