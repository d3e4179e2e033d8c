//! Files in the directories of other programs.

use crate::base::reach;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// So many entries of a directory are looked at, at most.
const ENTRIES: usize = 5000;
/// So many files are found by a pattern, at most.
const FOUND: usize = 200_000;

/// What is in a directory, sorted.
pub(super) fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = fs_err::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.take(ENTRIES).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The JSON Lines files in a directory.
pub(super) fn sessions_in(dir: &Path) -> Vec<PathBuf> {
    let is_session = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    entries(dir).into_iter().filter(is_session).collect()
}

/// The paths below `dir` of this pattern, sorted. A `*` in it stands for any name, or for a part of one.
pub fn matching(dir: PathBuf, pattern: &str) -> Vec<PathBuf> {
    if !reach::answers(&dir) {
        return Vec::new();
    }
    let step = |dirs: Vec<PathBuf>, name: &str| match name.split_once('*') {
        None => dirs.iter().map(|dir| dir.join(name)).collect(),
        Some((start, end)) => dirs.iter().flat_map(|dir| named(dir, start, end)).take(FOUND).collect(),
    };
    pattern.split('/').fold(vec![dir], step)
}

fn named(dir: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let is_match = |name: &OsStr| {
        let rest = name.to_str().and_then(|name| name.strip_prefix(start));
        rest.is_some_and(|rest| rest.ends_with(end))
    };
    let mut paths: Vec<PathBuf> = names.filter(|name| is_match(name)).map(|name| dir.join(name)).collect();
    paths.sort();
    paths
}
