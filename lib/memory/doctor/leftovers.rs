//! What killed programs left half written. Readers do not see it; it only takes room.

use crate::ground::file;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::patient::Patient;
use crate::store::batch::Batches;
use crate::store::place::Root;
use std::path::PathBuf;
use std::time::Duration;

/// Where no lock tells whether the writer is still there: a new file is written within moments.
const LEFT_FOR: Duration = Duration::from_secs(60 * 60);

/// Directories, and how the names of what is written there end.
fn without_lock(root: &Root) -> Vec<(PathBuf, &'static str)> {
    let mut dirs = vec![
        (root.path().to_path_buf(), "gitignore"),
        (root.inbox(), ".json"),
        (root.inbox().join(".failed"), ".json"),
        (root.state(), ".json"),
    ];
    for batches in [Batches::of_queue(root), Batches::of_defrag(root)] {
        dirs.extend(batches.all().unwrap_or_default().into_iter().map(|batch| (batch.dir, "")));
    }
    dirs
}

/// Among the notes a writer holds the store's lock: what was there before somebody else could have had it, and
/// still is, belongs to nobody.
pub(crate) fn among_notes(root: &Root) -> Vec<PathBuf> {
    let all = || -> Vec<PathBuf> {
        let dirs = [root.topics(), root.archive()];
        dirs.iter().flat_map(|dir| file::leftovers(dir, ".md", Duration::ZERO)).collect()
    };
    let mut left = all();
    if !left.is_empty() {
        let _ = file::open_settled(&root.state().join("store.lock"));
        let still = all();
        left.retain(|path| still.contains(path));
    }
    left
}

pub(crate) fn look(patient: &Patient) -> Vec<Finding> {
    let mut left = among_notes(patient.root);
    for (dir, end) in without_lock(patient.root) {
        left.extend(file::leftovers(&dir, end, LEFT_FOR));
    }
    let finding = |path: &PathBuf| {
        let what = "was left half written by a program that was killed";
        Finding::warning(Check::Leftover, path, what, "memory-doctor --fix removes it")
    };
    left.iter().map(finding).collect()
}

/// Removes what lies where no lock is needed, and tells what it was.
pub(crate) fn sweep(root: &Root) -> Vec<PathBuf> {
    without_lock(root).iter().flat_map(|(dir, end)| file::sweep_dir(dir, end, LEFT_FOR)).collect()
}
