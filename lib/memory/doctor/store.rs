//! The store itself: its directory, what lies in it, what waits in it, and what went wrong with it.

use crate::base::file;
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::recall::troubles;
use crate::store::batch::Batches;
use crate::store::place::Root;
use std::path::{Path, PathBuf};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Does the directory exist, and can only its owner read it?
pub(super) fn directory(cx: &CheckContext) -> Vec<Finding> {
    let root = cx.root.path();
    let mut findings = Vec::new();
    let wrong = |dir: &Path, why: &str| {
        let mend = "set storage.root to a directory of your own; see: memory-config show";
        Finding::error(Check::Store, dir, why, mend)
    };
    match root.metadata() {
        Ok(metadata) if !metadata.is_dir() => return vec![wrong(root, "the store is not a directory")],
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !root.is_symlink() => return findings,
        Err(e) => return vec![wrong(root, &format!("the store cannot be read: {e}"))],
    }
    for dir in [cx.root.inbox(), cx.root.state()] {
        // Errors of the notes' directories are reported where these are read.
        if let Err(e) = fs_err::read_dir(&dir).map(drop)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            findings.push(wrong(&dir, &e.to_string()));
        }
    }
    if is_open_to_others(root) {
        let what = "everybody on this machine can read the notes";
        let mend = format!("chmod 700 {}", quoted(root));
        findings.push(Finding::warning(Check::Permissions, root, what, &mend));
    }
    findings
}

/// As an argument for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).map_or_else(|_| path.clone(), std::borrow::Cow::into_owned)
}

/// Can everybody list the directory, and reach it?
#[cfg(unix)]
fn is_open_to_others(dir: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let others = |dir: &Path| dir.metadata().map_or(0, |metadata| metadata.permissions().mode() & 0o7);
    let Ok(dir) = dir.canonicalize() else { return false };
    others(&dir) & 0o5 == 0o5 && dir.ancestors().skip(1).all(|above| others(above) & 0o1 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_dir: &Path) -> bool {
    false
}

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

/// Half-written files of killed programs. Readers ignore them; they only take space.
pub(super) fn leftovers(cx: &CheckContext) -> Vec<Finding> {
    let left =
        directories(cx.root).into_iter().flat_map(|(dir, end)| file::leftovers(&dir, end, file::LEFT_FOR));
    left.map(|path| leftover(&path, "memory-doctor --fix removes it")).collect()
}

/// Removes the leftovers.
pub(super) fn sweep(root: &Root) -> Vec<Finding> {
    let gone =
        directories(root).into_iter().flat_map(|(dir, end)| file::sweep_dir(&dir, end, file::LEFT_FOR));
    gone.map(|path| leftover(&path, "removed")).collect()
}

fn leftover(path: &Path, mend: &str) -> Finding {
    Finding::warning(Check::Leftover, path, "is a half-written file of a program that was killed", mend)
}

/// Changes that wait for a person: how many, for how long, and files among them that are none.
pub(super) fn review(cx: &CheckContext) -> Vec<Finding> {
    let dir = cx.root.proposals();
    let mut findings = Vec::new();
    if let Err(error) = fs_err::read_dir(&dir)
        && dir.symlink_metadata().is_ok()
    {
        let mend = "make it a directory that you can read";
        findings.push(Finding::error(Check::Review, &dir, error.to_string(), mend));
    }
    for file in &cx.broken_proposals {
        let mend = "correct it in an editor, or remove it";
        findings.push(Finding::error(Check::Review, &file.path, file.why.as_str(), mend));
    }
    if let Some(oldest) = cx.waiting.iter().map(|proposal| proposal.created_at).min() {
        let waits = match cx.waiting.len() {
            1 => "1 change waits".to_owned(),
            many => format!("{many} changes wait"),
        };
        let days = cx.env.now().as_millisecond().saturating_sub(oldest).max(0) / DAY_MS;
        let age = if days == 1 { "1 day".to_owned() } else { format!("{days} days") };
        let what = format!("{waits} for your decision, the oldest for {age}");
        let mend = "memory-review shows them and asks about each";
        findings.push(Finding::warning(Check::Review, &dir, what, mend));
    }
    findings
}

/// The hook that tells sessions what they should know: why it gave nothing lately.
pub(super) fn recall(cx: &CheckContext) -> Vec<Finding> {
    let Some((path, told)) = troubles(cx.root, cx.env.now()) else { return Vec::new() };
    let times = if told.count == 1 { "once".to_owned() } else { format!("{} times", told.count) };
    let what = format!(
        "memory-recall gave nothing {times} in seven days, last at {} to {}: {}",
        told.last, told.harness, told.why
    );
    let mend =
        "sessions go on without their notes; if it is slow, see AGENT_MEMORY_RECALL_MS in memory-recall(1)";
    vec![Finding::warning(Check::Recall, &path, what, mend)]
}
