//! A `git pull` by hand that git could not finish.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::repository::git_dir;
use crate::memory::sync::objects::Commits;
use crate::store::history::lock_history;
use crate::store::place::Root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What git's own merge had come to; and the largest file of it that is kept, in bytes.
const KEPT: &str = "unfinished-merge";
const KEPT_CAP: u64 = 32 << 20;
/// Git has one of these as long as it rebases.
const REBASES: &[&str] = &["rebase-merge", "rebase-apply"];

/// Git merges or rebases there.
pub(super) fn is_open(root: &Root) -> bool {
    let is_there =
        |dir: PathBuf| [&["MERGE_HEAD"], REBASES].concat().iter().any(|name| dir.join(name).exists());
    git_dir(root.path()).is_some_and(is_there)
}

/// The commit that is being merged.
pub(super) fn find(commits: &Commits) -> Result<Option<String>> {
    let dir = commits.git.line(&["rev-parse", "--absolute-git-dir"])?;
    if REBASES.iter().any(|name| Path::new(&dir).join(name).exists()) {
        return Err(Error::conflict("a rebase is in progress in the store")
            .hint("git rebase --abort there, then run memory-sync again"));
    }
    let theirs = commits.git.maybe_object(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD"])?;
    if let Some(theirs) = &theirs {
        commits.listing_of(theirs, "the commit that is being merged")?;
    }
    Ok(theirs)
}

/// Takes the merge back. That undoes what a person has resolved so far: files that are neither ours nor theirs are kept in
/// the directory that is returned, if there are any.
pub(super) fn take_back(theirs: &str, commits: &Commits, root: &Root) -> Result<Option<PathBuf>> {
    let _history = lock_history(root)?;
    let status = commits.git.status(&["."])?;
    let changed = status.into_iter().filter(|(letters, _)| !matches!(letters, b"??" | b"!!"));
    let changed: BTreeSet<String> =
        changed.map(|(_, path)| String::from_utf8_lossy(&path).into_owned()).collect();
    let [theirs] = commits.files([&*commits.listing(Some(theirs))?], &changed)?;
    let dir = root.state().join(KEPT);
    let mut is_kept = false;
    for path in &changed {
        let Ok(bytes) = file::read(&root.path().join(path), KEPT_CAP) else { continue };
        if theirs.get(path) != Some(&bytes) {
            let copy = dir.join(path);
            copy.parent().map_or(Ok(()), file::make_private_dir)?;
            file::install(&copy, &bytes, 0o600)?;
            is_kept = true;
        }
    }
    commits.git.run(&["merge", "--abort"]).map_err(|why| {
        Error::conflict(format!(
            "a merge is in progress in the store, and cannot be taken back: {}",
            why.message()
        ))
        .hint("finish it there by hand: git add the files, then git commit")
    })?;
    Ok(is_kept.then_some(dir))
}
