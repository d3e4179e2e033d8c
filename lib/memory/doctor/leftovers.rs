//! Half-written files of killed programs. Readers ignore them; they only take space.

use crate::base::file;
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::store::batch::Batches;
use crate::store::place::Root;
use std::path::{Path, PathBuf};

/// The directories that programs write to, and the suffix of the files there.
fn directories(root: &Root) -> Vec<(PathBuf, &'static str)> {
    let mut dirs = vec![
        (root.path().to_path_buf(), "gitignore"),
        (root.topics(), ".md"),
        (root.archive(), ".md"),
        (root.proposals(), ".json"),
        (root.inbox(), ".json"),
        (root.inbox().join(".failed"), ".json"),
        (root.state(), ".json"),
        (root.state(), ".jsonl"),
        (root.state(), ".cache"),
    ];
    for batches in [Batches::of_queue(root), Batches::of_defrag(root)] {
        dirs.extend(batches.all().unwrap_or_default().into_iter().map(|batch| (batch.dir, "")));
    }
    dirs
}

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let left =
        directories(cx.root).into_iter().flat_map(|(dir, end)| file::leftovers(&dir, end, file::LEFT_FOR));
    left.map(|path| finding(&path, "memory-doctor --fix removes it")).collect()
}

/// Removes them.
pub(super) fn sweep(root: &Root) -> Vec<Finding> {
    let gone =
        directories(root).into_iter().flat_map(|(dir, end)| file::sweep_dir(&dir, end, file::LEFT_FOR));
    gone.map(|path| finding(&path, "removed")).collect()
}

fn finding(path: &Path, mend: &str) -> Finding {
    Finding::warning(Check::Leftover, path, "is a half-written file of a program that was killed", mend)
}
