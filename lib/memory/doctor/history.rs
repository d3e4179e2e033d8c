//! Is the history of the notes kept, and can the next commit be made?

use crate::base::command_line::{first_word, quoted};
use crate::base::error::{Error, Result};
use crate::base::file::{self, is_older};
use crate::base::lookup::on_path;
use crate::base::repository::git_dir;
use crate::base::text::counted;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::sync::remote::configured;
use crate::store::entry::EntryId;
use crate::store::git::{Git, old_locks};
use crate::store::history::{DIRS, lock_history};
use crate::store::{merge_driver, removed};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Counting a read makes no commit: the next one includes it. There should be one within this time.
const UNCOMMITTED: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// Files in git's directory that stand for an operation that a person has begun and not finished.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

fn left_behind(lock: &Path, can: &str, mend: &str, to: &mut Diagnosis) {
    // The whole path: without --fix a person removes it.
    let what = format!("git's lock \"{}\" was left behind, so no commit {can} be made", lock.display());
    to.warning(Check::GitLock, lock, what, mend);
}

/// Removes them. While our own lock is held, no git of ours is running.
pub(super) fn remove_locks(cx: &CheckContext, to: &mut Diagnosis) -> Result<()> {
    if old_locks(cx.root).is_empty() {
        return Ok(());
    }
    let _lock = lock_history(cx.root)?;
    for lock in old_locks(cx.root) {
        file::remove(&lock)?;
        left_behind(&lock, "could", "removed", to);
    }
    Ok(())
}

pub(super) fn check(cx: &CheckContext, to: &mut Diagnosis) {
    let (root, storage) = (cx.root, &cx.config.storage);
    let top = root.path();
    if !storage.auto_commit || !(root.topics().is_dir() || git_dir(top).is_some()) {
        return;
    }
    if shlex::split(&storage.commit_hook).is_none() {
        let what = "storage.commitHook cannot be split into words: a quote is not closed";
        return to.warning(Check::History, top, what, "set storage.commitHook; see: memory-config show");
    }
    let hook = first_word(&storage.commit_hook);
    for program in ["git", &hook] {
        if on_path(OsStr::new(program), cx.env).is_none() {
            let what = format!("\"{program}\" is not on PATH: changes to notes are not committed");
            return to.warning(Check::History, top, what, "install it, or set storage.autoCommit to false");
        }
    }
    // These are found first, because git may read nothing while they are there.
    for lock in old_locks(root) {
        left_behind(&lock, "can", "memory-doctor --fix removes it; first end any git that runs there", to);
    }
    let done = match (git_dir(top), top.join(".git").symlink_metadata()) {
        (Some(dir), _) => of_repository(&dir, cx, &hook, to),
        // A file or directory of that name that is not a repository would block git.
        (None, Ok(_)) => Err(Error::conflict("\".git\" exists but is not a repository")),
        (None, Err(_)) => {
            let dirs = [root.topics(), root.archive()];
            let mut files = dirs.iter().filter_map(|dir| fs_err::read_dir(dir).ok()).flatten().flatten();
            if files.any(|file| is_older(&file.path(), UNCOMMITTED)) {
                let what = "is not a git repository yet, so no change to these notes can be undone";
                let mend = "the next memory-consolidate or memory-update makes it one";
                to.warning(Check::History, top, what, mend);
            }
            Ok(())
        }
    };
    if let Err(error) = done {
        let what = format!("git cannot read the history: {}", error.message());
        to.warning(Check::History, top, what, "nothing is committed until that is repaired");
    }
}

fn of_repository(dir: &Path, cx: &CheckContext, hook: &str, to: &mut Diagnosis) -> Result<()> {
    let top = cx.root.path();
    let git = Git::new(cx.root, cx.env)?;
    let path = |name: Vec<u8>| top.join(file::name_of(&name).unwrap_or_default());
    let status: Vec<_> =
        git.status(&DIRS)?.into_iter().map(|(letters, name)| (letters, path(name))).collect();
    let missing_identity = git.missing_identity()?;
    let removed = removed::of(cx.root)?;
    if let Some((_, operation)) = UNFINISHED.iter().find(|(name, _)| dir.join(name).exists()) {
        let what = format!("a {operation} is in progress: nothing is committed until it ends");
        let mend = match *operation {
            // It merges by note what git could not merge by path.
            "merge" => "memory-sync finishes it; or git merge --continue, or --abort".to_owned(),
            _ => format!("finish it: git {operation} --continue, or --abort"),
        };
        to.warning(Check::History, top, what, mend);
    }
    let in_conflict = |letters: &[u8; 2]| matches!(letters, b"DD" | b"AA") || letters.contains(&b'U');
    for (_, file) in status.iter().filter(|(letters, _)| in_conflict(letters)) {
        let mend = "memory-sync merges it; or resolve the conflict in an editor, then git add the file";
        to.error(Check::History, file, "a merge left two versions in it", mend);
    }
    if let Some(error) = missing_identity.filter(|_| hook == "git") {
        let what =
            format!("git has no user.name, so commits are made as \"agent-memory\": {}", error.message());
        let mend = "git config --global user.name YOU; git config --global user.email YOU@EXAMPLE.ORG";
        to.warning(Check::History, top, what, mend);
    }
    let (gone, changed): (Vec<_>, Vec<_>) =
        status.iter().partition(|(letters, path)| letters.contains(&b'D') && !path.exists());
    // One that a person renamed is there; one that was deleted by name waits for the next commit.
    let id = |path: &Path| EntryId::at_end_of(path.file_name()?.to_str()?);
    let there: BTreeSet<EntryId> = changed.iter().filter_map(|(_, path)| id(path)).collect();
    let is_lost = |path: &Path| id(path).is_none_or(|id| !there.contains(&id) && !removed.contains(&id));
    for (_, file) in gone.into_iter().filter(|(_, path)| is_lost(path)) {
        // Never to commit it: who has lost a note is told how to get it back.
        let name = quoted(&file.strip_prefix(top).unwrap_or(file).to_string_lossy());
        let mend = format!(
            "to bring it back, in the store: git restore --source=HEAD --staged --worktree -- {name}"
        );
        let what = "is gone since the last commit, and no memory program has deleted it";
        to.warning(Check::History, file, what, mend);
    }
    let waiting = changed.iter().filter(|(_, file)| is_older(file, UNCOMMITTED)).count();
    if waiting > 0 {
        let files = counted(waiting, "file differs", "files differ");
        let what = format!("{files} from the last commit, for more than two days");
        let mend = "the next change commits them; or run git add and git commit there";
        to.warning(Check::History, top, what, mend);
    }
    Ok(())
}

/// Git's own files that somebody has put among the notes, or that came from a remote: these programs heed none, the git of
/// a person does.
pub(super) fn foreign_settings(cx: &CheckContext, to: &mut Diagnosis) {
    let root = cx.root;
    let Some(git) = git_dir(root.path()).and_then(|_| Git::new(root, cx.env).ok()) else { return };
    let mend = "remove it, if you did not put it there";
    for dir in ["", DIRS[0], DIRS[1], DIRS[2]] {
        let path = root.path().join(dir).join(".gitattributes");
        if path.symlink_metadata().is_ok() {
            to.warning(
                Check::History,
                &path,
                "tells git how to treat notes; only a git of yours heeds it",
                mend,
            );
        }
    }
    let notes = ["topics/any note.md", "archive/any note.md", "proposals/any change.json"];
    let arguments = [&["check-ignore", "--no-index", "--verbose", "--"], &notes[..]].concat();
    let hidden = git.maybe_lines(&arguments).ok().flatten().unwrap_or_default();
    // `FILE:LINE:PATTERN<TAB>PATH`; a pattern with `!` hides nothing.
    let places = hidden.iter().filter_map(|line| {
        let (file, rest) = line.split_once(':')?;
        let (number, pattern) = rest.split_once(':')?;
        (!pattern.starts_with('!')).then_some((file, number))
    });
    for (file, number) in places.collect::<BTreeSet<_>>() {
        let what = format!("hides notes from git in line {number}; only a git of yours heeds it");
        let mend = "remove that line, if you did not put it there";
        to.warning(Check::History, &root.path().join(file), what, mend);
    }
}

/// Where a remote is set: git's own merge finds our merge driver, and the notes were synced once.
pub(super) fn sync(cx: &CheckContext, to: &mut Diagnosis) {
    let root = cx.root;
    let Some(git) = git_dir(root.path()).and_then(|_| Git::new(root, cx.env).ok()) else { return };
    match configured(&git) {
        Ok(Some(_)) if merge_driver::is_installed(root, &git) => {}
        Ok(Some(_)) => {
            let what = "git does not know how to merge notes here, or knows another memory-sync";
            to.warning(Check::Sync, root.path(), what, "the next memory-sync installs it");
        }
        Ok(None) if cx.config.sync.remote.is_none() => {}
        Ok(None) => {
            let what = "sync.remote is set, and these notes were never synced with it";
            to.warning(Check::Sync, &cx.config_file, what, "run memory-sync");
        }
        Err(error) => {
            let what = format!("git does not say which remote there is: {}", error.message());
            to.warning(Check::Sync, root.path(), what, "nothing is synced until that is repaired");
        }
    }
}
