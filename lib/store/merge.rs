//! What came from another machine is written into the store as a whole, or not at all.
//!
//! The merge is a commit first, which no branch has yet. Then a plan says which files become what. It is saved before
//! the first of them is written, so a killed program's merge is carried on by the next one: by whoever takes the store's
//! lock ([`recover`]), and by whoever commits (`merge_commit`). So nothing of it is ever taken for a change of this machine.
//!
//! Others wait for that lock, and a first sync brings thousands of notes. So their files are written and synced before
//! ([`stage`]); with the lock each is only renamed.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::{border, hex};
use crate::store::place::Root;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// The largest plan that is read, in bytes.
const CAP: u64 = 1 << 30;
/// Its files are not written yet, or not all.
const PLAN: &str = "merge.json";
/// They are; the branch may still lack the commit.
const WRITTEN: &str = "merged.json";

/// Where the new files wait, under the hashes of what they say.
const STAGE: &str = "incoming";
/// The plan among them.
const STAGED_PLAN: &str = "plan";

/// A merge that is on its way into the store.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MergePlan {
    /// The commit that it follows; `None` in a store without any.
    pub(crate) ours: Option<String>,
    /// The commit with the merge.
    pub(crate) merged: String,
    pub(crate) changes: Vec<FileChange>,
}

impl MergePlan {
    /// The hash of what the note was, under whichever name.
    fn before<'a>(&'a self, change: &'a FileChange) -> Option<&'a String> {
        let Some(from) = &change.from else { return change.before.as_ref() };
        self.changes.iter().find(|other| other.path == *from)?.before.as_ref()
    }

    /// Is the file that goes the one that a note has got, on a disk where both names are one?
    fn is_only_renamed(&self, root: &Root, gone: &FileChange) -> Result<bool> {
        let Some(successor) = self.changes.iter().find(|change| change.from.as_ref() == Some(&gone.path))
        else {
            return Ok(false);
        };
        Ok(file::is_same(&target(root, &gone.path)?, &target(root, &successor.path)?))
    }
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
    /// The path that the note has had, which is one of those that go: a renamed note never has two names.
    #[serde(default)]
    pub(crate) from: Option<String>,
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

/// Is there one whose files are not all written?
pub(super) fn is_begun(root: &Root) -> bool {
    plan_at(root, PLAN).exists()
}

/// The merge whose files are written and that no branch may have yet.
pub(super) fn written(root: &Root) -> Result<Option<MergePlan>> {
    let path = plan_at(root, WRITTEN);
    if path.exists() { load(&path).map(Some) } else { Ok(None) }
}

/// The branch has it.
pub(super) fn end(root: &Root) -> Result<()> {
    Ok(file::remove(&plan_at(root, WRITTEN))?)
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

/// Writes a plan and its files where nobody looks. Needs no lock but that of the sync.
pub(crate) fn stage(root: &Root, plan: &MergePlan) -> Result<()> {
    let whole = serde_json::to_vec(plan).map_err(|why| Error::io(format!("cannot write JSON: {why}")))?;
    let after = plan.changes.iter().filter_map(|change| change.after.as_ref()).map(FileBytes::as_bytes);
    let mut files: BTreeMap<String, &[u8]> = after.map(|bytes| (hash(bytes), bytes)).collect();
    files.insert(STAGED_PLAN.to_owned(), &whole);
    let staged = file::stage(&root.state().join(STAGE), &files.into_iter().collect::<Vec<_>>());
    // On a full disk nothing of it is left in the way.
    staged.or_else(|why| clear_stage(root).and(Err(why.into())))
}

/// Removes what is left there.
pub(crate) fn clear_stage(root: &Root) -> Result<()> {
    file::if_exists(file::remove_tree(&root.state().join(STAGE)))?;
    Ok(())
}

/// Carries out a plan that is staged. From here on nothing stops it but an error or a kill, and then the next one who takes
/// the store's lock goes on. The caller holds it.
pub(crate) fn carry_through(root: &Root, plan: &MergePlan) -> Result<()> {
    file::rename(&root.state().join(STAGE).join(STAGED_PLAN), &plan_at(root, PLAN))?;
    write(root, plan)
}

/// Is every file still as the plan found it, or as it will be? If not, the path of one that is not.
pub(crate) fn differs(root: &Root, plan: &MergePlan) -> Result<Option<String>> {
    for change in &plan.changes {
        let now = found(root, &change.path)?;
        let after = || change.after.as_ref().map(|after| hash(after.as_bytes()));
        let is_own = || change.from.is_some() && now.as_ref() == plan.before(change);
        if now != change.before && !is_own() && now != after() {
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
    if path.exists() { write(root, &load(&path)?) } else { Ok(()) }
}

fn write(root: &Root, plan: &MergePlan) -> Result<()> {
    for change in &plan.changes {
        if let Some(from) = &change.from {
            rename(root, plan, change, from)?;
        }
    }
    // The new ones first: a text that moves is never nowhere.
    let (new, old): (Vec<_>, Vec<_>) = plan.changes.iter().partition(|change| change.after.is_some());
    for change in new.into_iter().chain(old) {
        carry_out(root, plan, change)?;
    }
    // Until all of it is on the disk, the plan stays.
    let paths: Result<Vec<PathBuf>> = plan.changes.iter().map(|change| target(root, &change.path)).collect();
    for dir in paths?.iter().filter_map(|path| path.parent()).collect::<BTreeSet<_>>() {
        file::if_exists(file::sync_dir(dir))?;
    }
    Ok(file::rename(&plan_at(root, PLAN), &plan_at(root, WRITTEN))?)
}

/// Gives a note its new name; its text follows. Nothing is done if somebody has changed either meanwhile.
fn rename(root: &Root, plan: &MergePlan, change: &FileChange, from: &str) -> Result<()> {
    let (old, new) = (target(root, from)?, target(root, &change.path)?);
    let is_free = found(root, &change.path)?.is_none() || file::is_same(&old, &new);
    let before = plan.before(change);
    if !is_free || before.is_none() || found(root, from)?.as_ref() != before {
        return Ok(());
    }
    make_parent(&new)?;
    Ok(file::rename_unsynced(&old, &new)?)
}

fn make_parent(path: &Path) -> Result<()> {
    let Some(dir) = path.parent().filter(|dir| !dir.is_dir()) else { return Ok(()) };
    file::make_private_dir(dir)?;
    Ok(dir.parent().map_or(Ok(()), file::sync_dir)?)
}

fn carry_out(root: &Root, plan: &MergePlan, change: &FileChange) -> Result<()> {
    let path = target(root, &change.path)?;
    let Some(bytes) = change.after.as_ref().map(FileBytes::as_bytes) else {
        let is_untouched = found(root, &change.path)? == change.before;
        let goes = is_untouched && change.before.is_some() && !plan.is_only_renamed(root, change)?;
        return if goes { Ok(file::forget(&path)?) } else { Ok(()) };
    };
    let (now, mark) = (found(root, &change.path)?, hash(bytes));
    if now.as_ref() == Some(&mark) {
        return Ok(());
    }
    make_parent(&path)?;
    if now != change.before && (change.from.is_none() || now.as_ref() != plan.before(change)) {
        // Edited by hand in the moment in which the program was killed: the edit stays, and so does what came.
        return Ok(file::install(&beside(&path, &mark), bytes, 0o600)?);
    }
    if file::unstage(&root.state().join(STAGE).join(&mark), &path).is_ok() {
        return Ok(());
    }
    let written = match now {
        Some(_) => file::replace(&path, |new| io::Write::write_all(new, bytes)),
        None => file::install(&path, bytes, 0o600),
    };
    Ok(written?)
}

/// `NAME (a1b2c3d4).txt`
fn beside(path: &Path, mark: &str) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{} ({}).txt", &name[..border(&name, 200)], &mark[..8]))
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
            return Err(wrong(
                "is, or is reached through, a symbolic link; memory-sync writes only real files",
            ));
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
        Ok(metadata) if metadata.is_dir() => Err(Error::conflict(format!(
            "\"{}\" is a directory, and a file of that name came",
            target.display()
        ))
        .hint("move it away, then run memory-sync again")),
        Ok(_) => Ok(Some(hash(&file::read(&target, CAP)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        _dir: tempfile::TempDir,
        root: Root,
    }

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
        FileChange {
            path: path.to_owned(),
            before: before.map(|text| hash(text.as_bytes())),
            after: after.map(|text| text.as_bytes().to_vec().into()),
            from: None,
        }
    }

    fn begun(files: &[(&str, &str)], changes: Vec<FileChange>) -> World {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        root.make().unwrap();
        for (path, text) in files {
            file::install(&dir.path().join(path), text.as_bytes(), 0o600).unwrap();
        }
        stage(&root, &MergePlan { ours: None, merged: "m".to_owned(), changes }).unwrap();
        // Killed there.
        file::rename(&root.state().join(STAGE).join(STAGED_PLAN), &plan_at(&root, PLAN)).unwrap();
        World { _dir: dir, root }
    }

    impl World {
        fn text(&self, path: &str) -> Option<String> {
            fs_err::read_to_string(self.root.path().join(path)).ok()
        }

        fn files(&self) -> usize {
            fs_err::read_dir(self.root.topics()).unwrap().count()
        }
    }

    #[test]
    fn a_merge_is_carried_on_wherever_it_was_cut_off() {
        let changes = || {
            vec![
                change("topics/a.md", Some("a"), Some("A")),
                change("topics/b.md", Some("b"), None),
                change("topics/new/c.md", None, Some("c")),
            ]
        };
        for done in 0..4 {
            let mut files = vec![("topics/a.md", "a"), ("topics/b.md", "b")];
            if done > 0 {
                files[0].1 = "A";
            }
            if done > 2 {
                files.truncate(1);
            }
            let world = begun(&files, changes());
            if done > 1 {
                file::make_private_dir(&world.root.topics().join("new")).unwrap();
                file::install(&world.root.topics().join("new/c.md"), b"c", 0o600).unwrap();
            }
            assert!(is_begun(&world.root));
            recover(&world.root).unwrap();
            assert_eq!(world.text("topics/a.md").as_deref(), Some("A"), "{done}");
            assert_eq!(world.text("topics/b.md"), None, "{done}");
            assert_eq!(world.text("topics/new/c.md").as_deref(), Some("c"), "{done}");
            assert!(!is_begun(&world.root) && written(&world.root).unwrap().is_some());
            // Once is enough.
            recover(&world.root).unwrap();
            end(&world.root).unwrap();
            assert!(written(&world.root).unwrap().is_none());
        }
    }

    /// `topics/old.md` gets another text and another name.
    fn renamed() -> Vec<FileChange> {
        let new = FileChange {
            from: Some("topics/old.md".to_owned()),
            ..change("archive/new.md", None, Some("new text"))
        };
        vec![new, change("topics/old.md", Some("text"), None)]
    }

    #[test]
    fn a_renamed_note_is_carried_on_from_its_old_name_its_new_one_and_both() {
        let [old, new, done] =
            [("topics/old.md", "text"), ("archive/new.md", "text"), ("archive/new.md", "new text")];
        for files in [&[old][..], &[new], &[done], &[old, done]] {
            let world = begun(files, renamed());
            recover(&world.root).unwrap();
            assert_eq!(world.text("archive/new.md").as_deref(), Some("new text"), "{files:?}");
            assert_eq!((world.text("topics/old.md"), world.files()), (None, 0), "{files:?}");
        }
        // Edited meanwhile, under its old name or the new one: the edit stays, and what came is there.
        let world = begun(&[("topics/old.md", "mine")], renamed());
        recover(&world.root).unwrap();
        assert_eq!(world.text("topics/old.md").as_deref(), Some("mine"));
        assert_eq!(world.text("archive/new.md").as_deref(), Some("new text"));
        let world = begun(&[("archive/new.md", "mine")], renamed());
        recover(&world.root).unwrap();
        assert_eq!(world.text("archive/new.md").as_deref(), Some("mine"));
        assert_eq!(fs_err::read_dir(world.root.archive()).unwrap().count(), 2, "what came is beside it");
    }

    #[test]
    fn an_edit_by_hand_in_between_is_not_overwritten() {
        let changes =
            vec![change("topics/a.md", Some("a"), Some("A")), change("topics/b.md", Some("b"), None)];
        let world = begun(&[("topics/a.md", "mine"), ("topics/b.md", "mine too")], changes);
        recover(&world.root).unwrap();
        assert_eq!(world.text("topics/a.md").as_deref(), Some("mine"));
        assert_eq!(world.text("topics/b.md").as_deref(), Some("mine too"));
        assert_eq!(world.files(), 3, "what came is beside it");
    }

    #[test]
    fn a_plan_writes_nowhere_but_into_the_store() {
        let outside = tempfile::tempdir().unwrap();
        for path in ["../x", "/x", "topics/../../x", ".git/hooks/x", "topics/sub/x", "a//b", "topics/link"] {
            let world = begun(&[], vec![change(path, None, Some("x"))]);
            let topics = world.root.topics();
            std::os::unix::fs::symlink(outside.path(), topics.join("sub")).unwrap();
            std::os::unix::fs::symlink(outside.path().join("y"), topics.join("link")).unwrap();
            assert!(recover(&world.root).is_err(), "{path}");
            assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 0, "{path}");
        }
    }

    #[test]
    fn what_has_changed_or_is_in_the_way_is_found_before() {
        let plan = |changes| MergePlan { ours: None, merged: String::new(), changes };
        let world = begun(&[("topics/a.md", "a")], Vec::new());
        let of = |change| differs(&world.root, &plan(vec![change])).unwrap();
        assert_eq!(of(change("topics/a.md", Some("a"), Some("A"))), None);
        assert_eq!(of(change("topics/a.md", Some("b"), Some("A"))).as_deref(), Some("topics/a.md"));
        assert_eq!(of(change("topics/a.md", None, Some("A"))).as_deref(), Some("topics/a.md"));
        assert_eq!(of(change("topics/a.md", None, Some("a"))), None, "it is there already");
        assert_eq!(of(change("topics/b.md", Some("b"), None)), None, "it is gone already");
        assert!(differs(&world.root, &plan(vec![change("topics", None, Some("x"))])).is_err());
    }
}
