//! One directory on every machine: names that differ in case or in the form of their accents alone are one file on macOS,
//! and a file and a directory of one name are impossible everywhere.

use crate::base::text::{folded, hex};
use crate::memory::sync::foreign_files::beside;
use crate::memory::sync::side::{Files, place_of};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The files, those with a name that is taken under another one: of two names the one that sorts first stays, on every
/// machine. `rest` are the paths of further files.
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
