//! A change is written into the store's files as a whole, or not at all.
//!
//! What each file becomes is saved before the first of them is written, so a killed program's change is carried on by
//! the next one that takes the store's lock ([`recover`]). If somebody has edited one of the files in between, or one cannot
//! be written, all of them are put back: nothing of the change has happened then, and whoever asked for it asks again.
//!
//! A merge with another machine is such a change, which a commit follows (`merge_commit`). Others wait for the lock, and a
//! first sync brings thousands of notes. So their files are written and synced before ([`stage`]); with the lock each is only
//! renamed.

use crate::base::error::{Error, Result, unwritable};
use crate::base::file;
use crate::base::text::hex;
use crate::store::place::Root;
use crate::store::revision::{Revision, Version};
use crate::store::version::{VERSION, check_json};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path, PathBuf};

/// The largest change that is read, in bytes.
const CAP: u64 = 1 << 30;
/// Its files are not written yet, or not all.
const BEGUN: &str = "change.json";
/// They are; the branch may still lack the commit.
const MERGED: &str = "merged.json";
/// Where the new files of a merge wait, under the hashes of what they say; and the change among them.
const STAGE: &str = "incoming";
const STAGED: &str = "change";

/// A change that is on its way into the store.
#[derive(Debug, Serialize, Deserialize)]
pub struct BegunChange {
    #[serde(default)]
    pub version: u32,
    pub revisions: Vec<Revision>,
    pub merge: Option<Merge>,
}

/// The commits of a merge.
#[derive(Debug, Serialize, Deserialize)]
pub struct Merge {
    /// The commit that it follows; `None` in a store without any.
    pub ours: Option<String>,
    /// The commit with the merge.
    pub merged: String,
}

/// How a file stands against what is to become of it.
#[derive(PartialEq)]
enum FileState {
    /// As before; it may have its new name already.
    Before,
    /// As after.
    After,
    /// Somebody has changed it.
    Other,
}

/// There is a change whose files are not all written.
pub(super) fn is_begun(root: &Root) -> bool {
    file::exists(&root.state().join(BEGUN)).unwrap_or(true)
}

/// The file of such a change, if there is one; an error if it cannot be carried on.
pub fn unfinished(root: &Root) -> Option<(PathBuf, Result<()>)> {
    let path = root.state().join(BEGUN);
    is_begun(root).then(|| (path.clone(), load(&path).map(drop)))
}

/// The merge whose files are written and that no branch may have yet.
pub(super) fn merged(root: &Root) -> Result<Option<BegunChange>> {
    let path = root.state().join(MERGED);
    if file::exists(&path)? { load(&path).map(Some) } else { Ok(None) }
}

/// The branch has it.
pub(super) fn end_merge(root: &Root) -> Result<()> {
    Ok(file::remove(&root.state().join(MERGED))?)
}

fn load(path: &Path) -> Result<BegunChange> {
    let bytes = file::read(path, CAP)?;
    check_json(&bytes, path)?;
    serde_json::from_slice(&bytes).map_err(|why| {
        Error::corrupt(format!("\"{}\" is no change of ours: {why}", path.display()))
            .hint("move it away; if it came from another machine, run memory-sync then")
    })
}

fn json(begun: &BegunChange) -> Result<Vec<u8>> {
    serde_json::to_vec(begun).map_err(unwritable)
}

/// Writes a change. The caller holds the store's lock.
///
/// # Errors
/// Then the files are as they were; or, if not even that was possible, the next who takes the lock sees to it.
pub(super) fn write(root: &Root, revisions: &[Revision]) -> Result<()> {
    match revisions {
        [] => Ok(()),
        // One file is replaced as a whole: nothing is to be remembered.
        [one] => {
            let files = StoreFiles::of(root, false);
            files.forward(revisions).or_else(|why| files.back(std::slice::from_ref(one)).and(Err(why)))
        }
        _ => {
            let begun = BegunChange { version: VERSION, revisions: revisions.to_vec(), merge: None };
            file::install(&root.state().join(BEGUN), &json(&begun)?, 0o600)?;
            carry_on(root, &begun)
        }
    }
}

/// Writes a merge and its files where nobody looks. Needs no lock but that of the sync.
pub fn stage(root: &Root, begun: &BegunChange) -> Result<()> {
    let whole = json(begun)?;
    let after = begun.revisions.iter().filter_map(|revision| revision.after.as_ref()).map(Version::bytes);
    let mut files: BTreeMap<String, &[u8]> = after.map(|bytes| (hash(bytes), bytes)).collect();
    files.insert(STAGED.to_owned(), &whole);
    let staged = file::stage(&root.state().join(STAGE), &files.into_iter().collect::<Vec<_>>());
    // On a full disk nothing of it is left in the way.
    staged.or_else(|why| clear_stage(root).and(Err(why.into())))
}

/// Removes what is left there.
pub fn clear_stage(root: &Root) -> Result<()> {
    file::if_exists(file::remove_tree(&root.state().join(STAGE)))?;
    Ok(())
}

/// Writes the files of a merge that is staged. The caller holds the store's lock.
pub fn unstage(root: &Root, begun: &BegunChange) -> Result<()> {
    file::rename(&root.state().join(STAGE).join(STAGED), &root.state().join(BEGUN))?;
    carry_on(root, begun)
}

/// The path of a file that is neither as a merge found it nor as it will be.
pub fn overtaken(root: &Root, revisions: &[Revision]) -> Result<Option<PathBuf>> {
    StoreFiles::of(root, true).overtaken(revisions)
}

/// Brings a change that was begun to its end, if there is one. The caller holds the store's lock.
///
/// # Errors
/// It could be neither written nor put back; the next who takes the lock tries again.
pub(super) fn recover(root: &Root) -> Result<()> {
    let path = root.state().join(BEGUN);
    if !file::exists(&path)? {
        return Ok(());
    }
    let begun = load(&path)?;
    match carry_on(root, &begun) {
        // A file was edited in the moment in which the program was killed, or cannot be written: all else is as before.
        Err(_) if matches!(file::exists(&path), Ok(false)) => Ok(()),
        done => done,
    }
}

fn carry_on(root: &Root, begun: &BegunChange) -> Result<()> {
    let files = StoreFiles::of(root, begun.merge.is_some());
    let path = root.state().join(BEGUN);
    match files.forward(&begun.revisions) {
        Ok(()) if begun.merge.is_some() => Ok(file::rename(&path, &root.state().join(MERGED))?),
        Ok(()) => Ok(file::remove(&path)?),
        Err(why) => {
            files.back(&begun.revisions)?;
            file::remove(&path)?;
            Err(why)
        }
    }
}

/// The files of a store.
struct StoreFiles<'a> {
    root: &'a Root,
    /// It is from another machine: only real files are written, and what is staged is there already.
    is_merge: bool,
    /// Those that were deleted and may have to be put back, with their modes.
    deleted: RefCell<BTreeMap<PathBuf, u32>>,
}

impl StoreFiles<'_> {
    fn of(root: &Root, is_merge: bool) -> StoreFiles<'_> {
        StoreFiles { root, is_merge, deleted: RefCell::default() }
    }

    fn overtaken(&self, revisions: &[Revision]) -> Result<Option<PathBuf>> {
        let mut freed = BTreeSet::new();
        for revision in revisions {
            if self.state(revision, &freed)? == FileState::Other {
                return Ok(revision.before.as_ref().or(revision.after.as_ref()).map(Version::path));
            }
            freed.extend(revision.before.as_ref().map(Version::path));
        }
        Ok(None)
    }

    fn forward(&self, revisions: &[Revision]) -> Result<()> {
        if let Some(path) = self.overtaken(revisions)? {
            return Err(Error::conflict(format!(
                "\"{}\" has been changed meanwhile",
                self.root.path().join(path).display()
            )));
        }
        self.make(revisions)
    }

    /// Undoes what is done; what somebody has changed since stays.
    fn back(&self, revisions: &[Revision]) -> Result<()> {
        let reversed: Vec<Revision> = revisions.iter().rev().map(Revision::reversed).collect();
        self.make(&reversed)
    }

    fn make(&self, revisions: &[Revision]) -> Result<()> {
        let mut unsynced = BTreeSet::new();
        for revision in revisions {
            if self.state(revision, &BTreeSet::new())? == FileState::Before {
                self.make_one(revision, &mut unsynced)?;
            }
        }
        unsynced.iter().try_for_each(|dir| file::if_exists(file::sync_dir(dir)).map(drop))?;
        Ok(())
    }

    /// `freed`: paths that are free by the time that this one is made.
    fn state(&self, revision: &Revision, freed: &BTreeSet<PathBuf>) -> Result<FileState> {
        let Revision { before, after } = revision;
        let at = |version: &Option<Version>| match version {
            Some(version) => self.bytes(&version.path()),
            None => Ok(None),
        };
        let (here, there) = (at(before)?, at(after)?);
        let is = |now: &Option<Vec<u8>>, version: &Option<Version>| {
            now.as_deref() == version.as_ref().map(Version::bytes)
        };
        let before_if = |is_known: bool| if is_known { FileState::Before } else { FileState::Other };
        Ok(match (before, after) {
            (None, None) => FileState::After,
            (Some(_), None) if here.is_none() => FileState::After,
            (Some(_), None) => before_if(is(&here, before)),
            (None, Some(new)) if there.is_none() || freed.contains(&new.path()) => FileState::Before,
            (Some(old), Some(new))
                if old.path() != new.path()
                    && file::is_same(&self.target(&old.path())?, &self.target(&new.path())?) =>
            {
                before_if(is(&here, before) || is(&here, after))
            }
            _ if is(&there, after) => FileState::After,
            (None, Some(_)) => FileState::Other,
            // It has its new name already; or keeps the one that it has.
            _ if is(&there, before) => FileState::Before,
            (Some(old), Some(new)) => {
                let is_free = there.is_none() || freed.contains(&new.path());
                let is_known = is(&here, before) || is(&here, after);
                before_if(old.path() != new.path() && is_free && is_known)
            }
        })
    }

    /// The name first: until the file has its new bytes nothing has changed.
    fn make_one(&self, revision: &Revision, unsynced: &mut BTreeSet<PathBuf>) -> Result<()> {
        let mut changed = |path: &Path| unsynced.extend(path.parent().map(Path::to_path_buf));
        let old = revision.before.as_ref().map(|before| self.target(&before.path())).transpose()?;
        let Some(after) = &revision.after else {
            let Some(old) = old else { return Ok(()) };
            changed(&old);
            let mode = file::mode(&old)?;
            file::forget(&old)?;
            self.deleted.borrow_mut().insert(old, mode);
            return Ok(());
        };
        let new = self.target(&after.path())?;
        if let Some(dir) = new.parent().filter(|dir| !dir.is_dir()) {
            file::make_private_dir(dir)?;
        }
        if let Some(old) = old.filter(|old| *old != new && old.symlink_metadata().is_ok()) {
            changed(&old);
            changed(&new);
            file::rename_unsynced(&old, &new)?;
        }
        let now = self.bytes(&after.path())?;
        if now.as_deref() == Some(after.bytes()) {
            return Ok(());
        }
        let staged = self.root.state().join(STAGE).join(hash(after.bytes()));
        if self.is_merge && file::unstage(&staged, &new).is_ok() {
            changed(&new);
            return Ok(());
        }
        Ok(match now {
            Some(_) => file::replace(&new, |to| io::Write::write_all(to, after.bytes())),
            None => {
                let mode = self.deleted.borrow().get(&new).copied().unwrap_or(0o600);
                file::install(&new, after.bytes(), mode)
            }
        }?)
    }

    /// Where a file of a change lies. A change is a file itself, and may have been tampered with.
    fn target(&self, path: &Path) -> Result<PathBuf> {
        let wrong =
            |why: &str| Error::corrupt(format!("\"{}\" {why}", path.display())).hint("run memory-doctor");
        let mut target = self.root.path().to_path_buf();
        let mut parts = path.components().peekable();
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else {
                return Err(wrong("is not the path of a file in the store"));
            };
            if name.as_encoded_bytes().contains(&0) || name.eq_ignore_ascii_case(".git") {
                return Err(wrong("is not the path of a file in the store"));
            }
            target.push(name);
            let is_link =
                self.is_merge && target.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
            if is_link && (parts.peek().is_none() || target.parent() != Some(self.root.path())) {
                return Err(wrong(
                    "is, or is reached through, a symbolic link; memory-sync writes only real files",
                ));
            }
        }
        Ok(target)
    }

    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>> {
        let target = self.target(path)?;
        match target.symlink_metadata() {
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(e) => Err(Error::io(format!("cannot read \"{}\": {e}", target.display()))),
            Ok(metadata) if metadata.is_dir() => Err(Error::conflict(format!(
                "\"{}\" is a directory, and a file of that name is to be written",
                target.display()
            ))
            .hint("move it away, then try again")),
            Ok(_) => Ok(Some(file::read(&target, CAP)?)),
        }
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        _dir: tempfile::TempDir,
        root: Root,
    }

    fn version(path: &str, text: Option<&str>) -> Option<Version> {
        text.map(|text| Version::at(Path::new(path), text.into()))
    }

    fn change(path: &str, before: Option<&str>, after: Option<&str>) -> Revision {
        Revision { before: version(path, before), after: version(path, after) }
    }

    fn merge(revisions: Vec<Revision>) -> BegunChange {
        BegunChange { version: VERSION, revisions, merge: Some(Merge { ours: None, merged: "m".to_owned() }) }
    }

    fn begun(files: &[(&str, &str)], changes: Vec<Revision>) -> World {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        root.make().unwrap();
        for (path, text) in files {
            file::install(&dir.path().join(path), text.as_bytes(), 0o600).unwrap();
        }
        stage(&root, &merge(changes)).unwrap();
        // Killed there.
        file::rename(&root.state().join(STAGE).join(STAGED), &root.state().join(BEGUN)).unwrap();
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
            assert!(!is_begun(&world.root) && merged(&world.root).unwrap().is_some());
            // Once is enough.
            recover(&world.root).unwrap();
            end_merge(&world.root).unwrap();
            assert!(merged(&world.root).unwrap().is_none());
        }
    }

    /// `topics/old.md` gets another text and another name.
    fn renamed() -> Vec<Revision> {
        let before = version("topics/old.md", Some("text"));
        let one = Revision { before, after: version("archive/new.md", Some("new text")) };
        vec![change("topics/a.md", Some("a"), Some("A")), one]
    }

    #[test]
    fn a_renamed_note_is_carried_on_from_its_old_name_its_new_one_and_both() {
        let [old, new, done] =
            [("topics/old.md", "text"), ("archive/new.md", "text"), ("archive/new.md", "new text")];
        for file in [old, new, done] {
            let world = begun(&[file, ("topics/a.md", "a")], renamed());
            recover(&world.root).unwrap();
            assert_eq!(world.text("archive/new.md").as_deref(), Some("new text"), "{file:?}");
            assert_eq!((world.text("topics/old.md"), world.files()), (None, 1), "{file:?}");
        }
    }

    #[test]
    fn an_edit_by_hand_in_between_stays_and_all_else_is_put_back() {
        // Edited under its old name, or under the new one.
        for edited in ["topics/old.md", "archive/new.md"] {
            let world = begun(&[(edited, "mine"), ("topics/a.md", "A")], renamed());
            recover(&world.root).unwrap();
            assert_eq!(world.text(edited).as_deref(), Some("mine"));
            assert_eq!(world.text("topics/a.md").as_deref(), Some("a"));
            assert!(!is_begun(&world.root) && merged(&world.root).unwrap().is_none());
        }
        let changes = vec![
            change("topics/a.md", Some("a"), Some("A")),
            change("topics/b.md", Some("b"), None),
            change("topics/c.md", Some("c"), None),
            change("topics/d.md", None, Some("d")),
        ];
        let files = [("topics/a.md", "mine"), ("topics/b.md", "mine too"), ("topics/d.md", "d")];
        let world = begun(&files, changes);
        recover(&world.root).unwrap();
        assert_eq!(world.text("topics/a.md").as_deref(), Some("mine"));
        assert_eq!(world.text("topics/b.md").as_deref(), Some("mine too"));
        assert_eq!((world.text("topics/c.md").as_deref(), world.text("topics/d.md")), (Some("c"), None));
    }

    #[test]
    fn what_cannot_be_written_is_as_before() {
        let world = begun(&[("topics/a.md", "a"), ("topics/b.md", "b"), ("archive/x", "file")], Vec::new());
        recover(&world.root).unwrap();
        let old = change("topics/a.md", Some("a"), Some("A"));
        let moved = Revision {
            before: version("topics/b.md", Some("b")),
            after: version("archive/x/deeper.md", Some("B")),
        };
        assert!(write(&world.root, &[old.clone(), moved.clone()]).is_err());
        assert!(write(&world.root, std::slice::from_ref(&moved)).is_err());
        assert_eq!(world.text("topics/a.md").as_deref(), Some("a"));
        assert_eq!(world.text("topics/b.md").as_deref(), Some("b"));
        assert!(!is_begun(&world.root));
        // A name that is free by then may be taken.
        let next =
            Revision { before: version("topics/b.md", Some("b")), after: version("topics/a.md", Some("b")) };
        let first =
            Revision { before: version("topics/a.md", Some("a")), after: version("archive/a.md", Some("A")) };
        write(&world.root, &[first, next]).unwrap();
        assert_eq!(world.text("topics/a.md").as_deref(), Some("b"));
        assert_eq!((world.text("archive/a.md").as_deref(), world.files()), (Some("A"), 1));
    }

    #[cfg(unix)]
    #[test]
    fn a_merge_writes_nowhere_but_into_the_store() {
        let outside = tempfile::tempdir().unwrap();
        for path in ["../x", "/x", "topics/../../x", ".git/hooks/x", "topics/sub/x", "topics/link"] {
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
        let world = begun(&[("topics/a.md", "a")], Vec::new());
        let of = |change| overtaken(&world.root, &[change]).unwrap();
        let path = Some(PathBuf::from("topics/a.md"));
        assert_eq!(of(change("topics/a.md", Some("a"), Some("A"))), None);
        assert_eq!(of(change("topics/a.md", Some("b"), Some("A"))), path);
        assert_eq!(of(change("topics/a.md", None, Some("A"))), path);
        assert_eq!(of(change("topics/a.md", None, Some("a"))), None, "it is there already");
        assert_eq!(of(change("topics/b.md", Some("b"), None)), None, "it is gone already");
        assert!(overtaken(&world.root, &[change("topics", None, Some("x"))]).is_err());
    }
}
