//! What came from another machine is written into the store as a whole, or not at all.
//!
//! The merge is a commit first, which no branch has yet. Then a plan says which files become what. It is saved before
//! the first of them is written, so a killed program's merge is carried on by the next one: by whoever takes the store's
//! lock ([`recover`]), and by whoever commits ([`finish`]). So nothing of it is ever taken for a change of this machine.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::hex;
use crate::store::history::Git;
use crate::store::place::Root;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// The largest plan that is read, in bytes.
const CAP: u64 = 1 << 30;
/// Its files are not written yet, or not all.
const PLAN: &str = "merge.json";
/// They are; the branch may still lack the commit.
const WRITTEN: &str = "merged.json";

/// A merge that is on its way into the store.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MergePlan {
    /// The commit that it follows; `None` in a store without any.
    pub(crate) ours: Option<String>,
    /// The commit with the merge.
    pub(crate) merged: String,
    pub(crate) changes: Vec<FileChange>,
}

/// What becomes of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileChange {
    /// Below the store, with `/` between its parts.
    pub(crate) path: String,
    /// The SHA-256 of what is there; `None` if nothing is.
    pub(crate) before: Option<String>,
    /// `None`: it goes.
    pub(crate) after: Option<FileBytes>,
}

/// A file's bytes, in JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum FileBytes {
    Utf8(String),
    Bytes(Vec<u8>),
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> FileBytes {
        String::from_utf8(bytes).map_or_else(|error| FileBytes::Bytes(error.into_bytes()), FileBytes::Utf8)
    }
}

impl FileBytes {
    fn as_bytes(&self) -> &[u8] {
        match self {
            FileBytes::Utf8(text) => text.as_bytes(),
            FileBytes::Bytes(bytes) => bytes,
        }
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn plan_at(root: &Root, name: &str) -> PathBuf {
    root.state().join(name)
}

fn load(path: &Path) -> Result<MergePlan> {
    let bytes = file::read(path, CAP)?;
    serde_json::from_slice(&bytes).map_err(|why| {
        Error::corrupt(format!("\"{}\" is not a merge of ours: {why}", path.display()))
            .hint("move it away, then run memory-sync")
    })
}

/// Saves the plan. From here on it will be carried out. The caller holds the store's lock.
pub(crate) fn begin(root: &Root, plan: &MergePlan) -> Result<()> {
    let bytes = serde_json::to_vec(plan).map_err(|why| Error::io(format!("cannot write JSON: {why}")))?;
    Ok(file::install(&plan_at(root, PLAN), &bytes, 0o600)?)
}

/// Is every file still as the plan found it? If not, the path of one that is not.
pub(crate) fn differs(root: &Root, plan: &MergePlan) -> Result<Option<String>> {
    for change in &plan.changes {
        if found(root, &change.path)? != change.before {
            return Ok(Some(change.path.clone()));
        }
    }
    Ok(None)
}

/// Writes the files of a plan that was begun, if there is one. The caller holds the store's lock.
///
/// # Errors
/// A file could not be written; the next who takes the lock tries again.
pub(crate) fn recover(root: &Root) -> Result<()> {
    let path = plan_at(root, PLAN);
    if !path.exists() {
        return Ok(());
    }
    let plan = load(&path)?;
    // The new ones first: a note that moves is never nowhere.
    let is_new = |change: &&FileChange| change.after.is_some();
    for change in plan.changes.iter().filter(is_new).chain(plan.changes.iter().filter(|change| !is_new(change))) {
        carry_out(root, change)?;
    }
    Ok(file::rename(&path, &plan_at(root, WRITTEN))?)
}

fn carry_out(root: &Root, change: &FileChange) -> Result<()> {
    let path = target(root, &change.path)?;
    let after = change.after.as_ref().map(|after| hash(after.as_bytes()));
    let now = found(root, &change.path)?;
    if now == after {
        return Ok(());
    }
    let is_untouched = now == change.before;
    match &change.after {
        // Edited by hand in the moment in which the program was killed: the edit stays, and so does what came.
        Some(after) if !is_untouched => {
            let mark = &hash(after.as_bytes())[..8];
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut end = name.len().min(200);
            while !name.is_char_boundary(end) {
                end -= 1;
            }
            let beside = path.with_file_name(format!("{} ({mark}).txt", &name[..end]));
            Ok(file::install(&beside, after.as_bytes(), 0o600)?)
        }
        None if !is_untouched => Ok(()),
        None => Ok(file::remove(&path)?),
        Some(after) => {
            if let Some(dir) = path.parent().filter(|dir| !dir.is_dir()) {
                file::make_private_dir(dir)?;
                dir.parent().map_or(Ok(()), file::sync_dir)?;
            }
            Ok(match now {
                Some(_) => file::replace(&path, |new| io::Write::write_all(new, after.as_bytes()))?,
                None => file::install(&path, after.as_bytes(), 0o600)?,
            })
        }
    }
}

/// Makes the commit of a merge that is written the branch's last one, if there is such a merge. Writes the files first
/// if that is still to be done. The caller holds the history's lock, not the store's.
pub(crate) fn finish(root: &Root, git: &Git) -> Result<()> {
    if plan_at(root, PLAN).exists() {
        use crate::store::persistence::Persistence;
        // Taking the lock recovers.
        drop(crate::store::topics::Topics::at(root).lock()?);
    }
    let path = plan_at(root, WRITTEN);
    if !path.exists() {
        return Ok(());
    }
    let MergePlan { ours, merged, .. } = load(&path)?;
    let head = git.line(&["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
    if head.as_deref() != Some(&merged) {
        advance(git, ours.as_deref(), &merged, head.as_deref())?;
    }
    Ok(file::remove(&path)?)
}

/// Puts the merge into the index, for the files that it changes, and makes it the last commit.
fn advance(git: &Git, ours: Option<&str>, merged: &str, head: Option<&str>) -> Result<()> {
    let (Some(ours), Some(head)) = (ours, head) else {
        git.run(&["read-tree", merged])?;
        git.run(&["update-ref", "-m", "memory-sync", "HEAD", merged])?;
        return Ok(());
    };
    let raw = git.run(&["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", ours, merged])?;
    let mut lines = Vec::new();
    let mut fields = raw.split(|byte| *byte == 0);
    // `:MODE MODE OID OID STATUS`, then the path.
    while let (Some(change), Some(path)) = (fields.next(), fields.next()) {
        let text = String::from_utf8_lossy(change);
        let words: Vec<&str> = text.split(' ').collect();
        let [_, mode, _, oid, _] = words[..] else { break };
        lines.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
        lines.extend_from_slice(path);
        lines.push(0);
    }
    let words = ["git", "update-index", "-z", "--index-info"].map(str::to_owned);
    let done = git.call(&words, lines, 1 << 20)?;
    if let Some(why) = done.failure() {
        return Err(Error::io(format!("\"git update-index\" {why}")));
    }
    if head == ours {
        git.run(&["update-ref", "-m", "memory-sync", "HEAD", merged, ours])?;
        return Ok(());
    }
    // A person has committed meanwhile: both are the past of what comes.
    let tree = git.line(&["write-tree"])?;
    let message = "sync: join a commit made meanwhile";
    let joined = git.line(&["commit-tree", &tree, "-p", head, "-p", merged, "-m", message])?;
    git.run(&["update-ref", "-m", "memory-sync", "HEAD", &joined, head])?;
    Ok(())
}

/// Where a file of a plan lies. A plan is a file, and may have been tampered with.
fn target(root: &Root, path: &str) -> Result<PathBuf> {
    let wrong = |why: &str| Error::corrupt(format!("\"{path}\" {why}")).hint("run memory-doctor");
    let mut target = root.path().to_path_buf();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        if matches!(part, "" | "." | "..") || part.contains('\0') || part.eq_ignore_ascii_case(".git") {
            return Err(wrong("is not the path of a file in the store"));
        }
        target.push(part);
        let is_link = target.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        if is_link && (parts.peek().is_none() || target.parent() != Some(root.path())) {
            return Err(wrong("is, or is reached through, a symbolic link; memory-sync writes only real files"));
        }
    }
    Ok(target)
}

/// The hash of what is there now.
fn found(root: &Root, path: &str) -> Result<Option<String>> {
    let target = target(root, path)?;
    match target.symlink_metadata() {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Error::io(format!("cannot read \"{}\": {e}", target.display()))),
        Ok(metadata) if metadata.is_dir() => {
            Err(Error::conflict(format!("\"{}\" is a directory, and a file of that name came", target.display()))
                .hint("move it away, then run memory-sync again"))
        }
        Ok(_) => Ok(Some(hash(&file::read(&target, CAP)?))),
    }
}
