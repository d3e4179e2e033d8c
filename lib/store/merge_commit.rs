//! A merge whose files are in the store becomes the last commit of its branch.

use crate::base::error::Result;
use crate::base::file;
use crate::store::apply::{self, BegunChange, Merge};
use crate::store::git::{Git, command, unusable};
use crate::store::place::Root;
use crate::store::revision::{Revision, Version};
use crate::store::topics::Topics;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Makes the commit of a merge that is written the branch's last one, if there is such a merge. Writes the files first
/// if that is still to be done. The caller holds the history's lock, not the store's.
pub fn finish(root: &Root, git: &Git) -> Result<()> {
    Topics::at(root).complete()?;
    let Some(BegunChange { revisions, merge: Some(merge), .. }) = apply::merged(root)? else { return Ok(()) };
    let head = git.maybe_object(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    if head.as_deref() != Some(&merge.merged) {
        advance(git, &merge, &revisions, head.as_deref())?;
    }
    apply::end_merge(root)
}

/// Puts the merge into the index, for the files that it changes, and makes it the last commit.
fn advance(git: &Git, merge: &Merge, revisions: &[Revision], head: Option<&str>) -> Result<()> {
    let merged = merge.merged.as_str();
    let (Some(ours), Some(head)) = (merge.ours.as_deref(), head) else {
        git.run(&["read-tree", merged])?;
        git.run(&["update-ref", "-m", "memory-sync", "HEAD", merged])?;
        return Ok(());
    };
    let arguments = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", ours, merged];
    let raw = git.run(&arguments)?;
    let mut lines = Vec::new();
    let mut missing: BTreeSet<PathBuf> =
        revisions.iter().flat_map(Revision::versions).map(Version::path).collect();
    let mut fields = raw.split(|byte| *byte == 0);
    // `:MODE MODE OID OID STATUS`, then the path.
    while let (Some(change), Some(path)) = (fields.next(), fields.next()) {
        let text = String::from_utf8_lossy(change);
        let words: Vec<&str> = text.split(' ').collect();
        let [_, mode, _, oid, _] = words[..] else { return Err(unusable(&arguments)) };
        lines.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
        missing.remove(Path::new(file::name_of(path).unwrap_or_default()));
    }
    // What the merge has changed is known: a part of it in the index would be the next commit.
    if !missing.is_empty() {
        return Err(unusable(&arguments));
    }
    git.fed(&command(&["update-index", "-z", "--index-info"]), lines, 1 << 20)?;
    if head == ours {
        git.run(&["update-ref", "-m", "memory-sync", "HEAD", merged, ours])?;
        return Ok(());
    }
    // A person has committed meanwhile: both are the past of what comes.
    let tree = git.object(&["write-tree"])?;
    let message = "sync: join a commit made meanwhile";
    let joined = git.object(&["commit-tree", &tree, "-p", head, "-p", merged, "-m", message])?;
    git.run(&["update-ref", "-m", "memory-sync", "HEAD", &joined, head])?;
    Ok(())
}
