//! What killed programs left half written. Readers do not see it; it only takes room.

use crate::base::file;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::patient::Patient;
use crate::store::batch::Batches;
use crate::store::place::Root;
use std::path::{Path, PathBuf};

/// Directories, and how the names of what is written there end.
fn places(root: &Root) -> Vec<(PathBuf, &'static str)> {
    let mut dirs = vec![
        (root.path().to_path_buf(), "gitignore"),
        (root.topics(), ".md"),
        (root.archive(), ".md"),
        (root.inbox(), ".json"),
        (root.inbox().join(".failed"), ".json"),
        (root.state(), ".json"),
    ];
    for batches in [Batches::of_queue(root), Batches::of_defrag(root)] {
        dirs.extend(batches.all().unwrap_or_default().into_iter().map(|batch| (batch.dir, "")));
    }
    dirs
}

pub(crate) fn look(patient: &Patient) -> Vec<Finding> {
    let left =
        places(patient.root).into_iter().flat_map(|(dir, end)| file::leftovers(&dir, end, file::LEFT_FOR));
    left.map(|path| finding(&path, "memory-doctor --fix removes it")).collect()
}

/// Removes them, and tells what it was.
pub(crate) fn sweep(root: &Root) -> Vec<Finding> {
    let gone = places(root).into_iter().flat_map(|(dir, end)| file::sweep_dir(&dir, end, file::LEFT_FOR));
    gone.map(|path| finding(&path, "removed")).collect()
}

fn finding(path: &Path, mend: &str) -> Finding {
    Finding::warning(Check::Leftover, path, "was left half written by a program that was killed", mend)
}
