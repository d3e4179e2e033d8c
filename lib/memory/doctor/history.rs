//! Is the history of the notes kept, and can the next commit be made?

use crate::base::command_line::first_word;
use crate::base::error::Result;
use crate::base::file::{self, is_older};
use crate::base::lookup::on_path;
use crate::base::repository::git_dir;
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::sync::remote::configured;
use crate::store::git::Git;
use crate::store::history::history_lock;
use crate::store::history_state::{HistoryState, locks};
use crate::store::merge_driver;
use crate::store::place::Root;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Counting a read makes no commit: the next one includes it. There should be one within this time.
const UNCOMMITTED: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// An older lock of git was left behind by a killed process, or a person is writing a commit message.
const LOCKED: Duration = Duration::from_secs(10 * 60);

/// The locks of git that are older than any git of ours runs.
fn old_locks(root: &Root) -> Vec<PathBuf> {
    locks(root).into_iter().filter(|lock| is_older(lock, LOCKED)).collect()
}

fn left_behind(lock: &Path) -> Finding {
    // The whole path: without --fix a person removes it.
    let what = format!("git's lock \"{}\" was left behind, so no commit can be made", lock.display());
    Finding::warning(
        Check::GitLock,
        lock,
        what,
        "memory-doctor --fix removes it; first end any git that runs there",
    )
}

/// Removes them. While our own lock is held, no git of ours is running.
pub(super) fn remove_locks(cx: &CheckContext) -> Result<Vec<Finding>> {
    let mut removed = Vec::new();
    if old_locks(cx.root).is_empty() {
        return Ok(removed);
    }
    let _lock = file::lock_for_change(&history_lock(cx.root), true)?;
    for lock in old_locks(cx.root) {
        file::remove(&lock)?;
        let what = format!("git's lock \"{}\" was left behind, so no commit could be made", lock.display());
        removed.push(Finding::warning(Check::GitLock, &lock, what, "removed"));
    }
    Ok(removed)
}

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let (root, storage) = (cx.root, &cx.config.storage);
    if !storage.auto_commit || !(root.topics().is_dir() || git_dir(root.path()).is_some()) {
        return Vec::new();
    }
    let warning = |file: &Path, what: String, mend: &str| Finding::warning(Check::History, file, what, mend);
    let hook = match shlex::split(&storage.commit_hook) {
        Some(_) => first_word(&storage.commit_hook),
        None => {
            let what = "storage.commitHook cannot be split into words: a quote is not closed".to_owned();
            return vec![warning(root.path(), what, "set storage.commitHook; see: memory-config show")];
        }
    };
    for program in ["git", &hook] {
        if on_path(OsStr::new(program), cx.env).is_none() {
            let what = format!("\"{program}\" is not on PATH: changes to notes are not committed");
            return vec![warning(root.path(), what, "install it, or set storage.autoCommit to false")];
        }
    }
    // These are found first, because git may read nothing while they are there.
    let mut findings: Vec<Finding> = old_locks(root).iter().map(|lock| left_behind(lock)).collect();
    let state = match HistoryState::of(root, cx.env) {
        Ok(state) => state,
        Err(error) => {
            let what = format!("git cannot read the history: {}", error.message());
            findings.push(warning(root.path(), what, "nothing is committed until that is repaired"));
            return findings;
        }
    };
    let Some(state) = state else {
        let dirs = [root.topics(), root.archive()];
        let mut files = dirs.iter().filter_map(|dir| fs_err::read_dir(dir).ok()).flatten().flatten();
        if files.any(|file| is_older(&file.path(), UNCOMMITTED)) {
            let what = "is not a git repository yet, so no change to these notes can be undone".to_owned();
            let mend = "the next memory-consolidate or memory-update makes it one";
            findings.push(warning(root.path(), what, mend));
        }
        return findings;
    };
    if let Some(operation) = state.unfinished {
        let what = format!("a {operation} is in progress: nothing is committed until it ends");
        let mend = match operation {
            // It merges by note what git could not merge by path.
            "merge" => "memory-sync finishes it; or git merge --continue, or --abort".to_owned(),
            _ => format!("finish it: git {operation} --continue, or --abort"),
        };
        findings.push(warning(root.path(), what, &mend));
    }
    for file in &state.in_conflict {
        let what = "a merge left two versions in it";
        let mend = "memory-sync merges it; or resolve the conflict in an editor, then git add the file";
        findings.push(Finding::error(Check::History, file, what, mend));
    }
    if let Some(error) = state.missing_identity.filter(|_| hook == "git") {
        let mend = "git config --global user.name YOU; git config --global user.email YOU@EXAMPLE.ORG";
        findings.push(warning(
            root.path(),
            format!("git has no user.name, so commits are made as \"agent-memory\": {}", error.message()),
            mend,
        ));
    }
    for file in &state.gone {
        let what = "is gone since the last commit, and no memory program has deleted it";
        // Never to commit it: who has lost a note is told how to get it back.
        let name = file.strip_prefix(root.path()).unwrap_or(file).to_string_lossy();
        let name = shlex::try_quote(&name).unwrap_or_default();
        let mend = format!(
            "to bring it back, in the store: git restore --source=HEAD --staged --worktree -- {name}"
        );
        findings.push(warning(file, what.to_owned(), &mend));
    }
    let waiting = state.changed.iter().filter(|file| is_older(file, UNCOMMITTED)).count();
    if waiting > 0 {
        let files =
            if waiting == 1 { "1 file differs".to_owned() } else { format!("{waiting} files differ") };
        let what = format!("{files} from the last commit, for more than two days");
        let mend = "the next change commits them; or run git add and git commit there";
        findings.push(warning(root.path(), what, mend));
    }
    findings
}

/// Where a remote is set: can git's own merge find our merge driver, and were the notes ever synced?
pub(super) fn sync(cx: &CheckContext) -> Vec<Finding> {
    let root = cx.root;
    if git_dir(root.path()).is_none() {
        return Vec::new();
    }
    let Ok(git) = Git::new(root, cx.env) else { return Vec::new() };
    let remote = match configured(&git) {
        Ok(remote) => remote,
        Err(error) => {
            let what = format!("git does not say which remote there is: {}", error.message());
            return vec![Finding::warning(
                Check::Sync,
                root.path(),
                what,
                "nothing is synced until that is repaired",
            )];
        }
    };
    if remote.is_none() {
        return match &cx.config.sync.remote {
            Some(_) => vec![Finding::warning(
                Check::Sync,
                &cx.config_file,
                "sync.remote is set, and these notes were never synced with it",
                "run memory-sync",
            )],
            None => Vec::new(),
        };
    }
    let mut findings = Vec::new();
    if !merge_driver::is_installed(root, &git) {
        let what = "git does not know how to merge notes here, or knows another memory-sync";
        findings.push(Finding::warning(Check::Sync, root.path(), what, "the next memory-sync installs it"));
    }
    findings
}
