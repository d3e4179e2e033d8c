//! Whether the code of notes is as it was, where a reader works. No model, and no git: files are looked at, and one that is
//! not as a small cache knows it is read.
//!
//! The cache, `.agent-memory/anchors.cache`, has three numbers for each anchor: what it is, how its file was, and whether its
//! lines were there. It may be deleted at any time.

use crate::base::file::{self, Moment, Stamp};
use crate::base::packed::checksum;
use crate::base::reach;
use crate::base::repository::{self, Repository};
use crate::memory::code::blocks::CodeFile;
use crate::store::entry::{ANCHORS, Anchor, EntryId, Meta, only_repo};
use crate::store::place::Root;
use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The largest file that is read, in bytes. What is larger now is not known to have changed.
const CAP: u64 = 1 << 20;
/// Somebody waits: so many notes are looked at, and so many files are read. The others count as unchanged.
const NOTES: usize = 200;
const READ: usize = 64;
/// So many anchors are remembered.
const REMEMBERED: usize = 8192;

/// What has become of the code that a note was drawn from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeState {
    /// It is as it was, wherever it is in its file; or that is not known.
    #[default]
    Same,
    Changed,
    /// None of its files is there.
    Gone,
}

/// How a note stands to the checkout in which it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoteState {
    pub code: CodeState,
    /// It was learned on a branch that is not checked out here, and not in the default branch.
    pub is_elsewhere: bool,
}

impl NoteState {
    /// Its code has changed. On another branch than its own, the code says nothing about it.
    pub fn is_in_doubt(self) -> bool {
        self.code != CodeState::Same && !self.is_elsewhere
    }
}

/// Those that are not in it have the default.
pub type NoteStates = BTreeMap<EntryId, NoteState>;

/// How these notes stand to the checkouts `here`. With a store's `root` what is learned is remembered there, and no more is read
/// than somebody has time to wait for.
pub fn states<'a>(
    root: Option<&Root>,
    here: &[Repository],
    notes: impl IntoIterator<Item = &'a Meta>,
) -> NoteStates {
    let (most_notes, most_read) = if root.is_some() { (NOTES, READ) } else { (usize::MAX, usize::MAX) };
    let mut states = NoteStates::new();
    let mut branches: BTreeMap<&Path, Option<String>> = BTreeMap::new();
    let mut wanted: BTreeMap<&Path, Vec<(EntryId, Vec<Anchor>)>> = BTreeMap::new();
    let mut count = 0;
    for meta in notes {
        if meta.anchors.is_empty() && meta.branch.is_none() {
            continue;
        }
        let top = place_of(meta, here).map(|place| place.top.as_path());
        if let Some(branch) = &meta.branch {
            let checked_out =
                top.and_then(|top| branches.entry(top).or_insert_with(|| repository::branch(top)).as_ref());
            // A note of several repositories is of no branch of theirs.
            let is_elsewhere = checked_out != Some(&branch.name) && only_repo(&meta.sources).is_some();
            states.entry(meta.id.clone()).or_default().is_elsewhere = is_elsewhere;
        }
        if let Some(top) = top.filter(|_| !meta.anchors.is_empty() && count < most_notes) {
            count += 1;
            wanted.entry(top).or_default().push((meta.id.clone(), meta.anchors.clone()));
        }
    }
    if wanted.is_empty() {
        return states;
    }
    let mut memory = Memory::load(root);
    for (top, notes) in wanted {
        let mut known = memory.clone();
        let look = move |top: &Path| {
            let (mut files, mut left) = (HashMap::new(), most_read);
            let code = |(id, anchors): (EntryId, Vec<Anchor>)| {
                (id, known.code_of(top, &anchors, &mut files, &mut left))
            };
            let found: Vec<(EntryId, CodeState)> = notes.into_iter().map(code).collect();
            (found, known)
        };
        let Ok((found, known)) = reach::within(top, look) else { continue };
        memory = known;
        for (id, code) in found {
            states.entry(id).or_default().code = code;
        }
    }
    memory.save(root);
    states
}

/// The checkout that a note's anchors are in: it must come from one repository.
pub fn place_of<'h>(meta: &Meta, here: &'h [Repository]) -> Option<&'h Repository> {
    let repo = only_repo(&meta.sources)?;
    here.iter().find(|place| place.name == repo)
}

/// What has become of one anchor, for a caller that has time.
pub fn state_of_anchor(top: &Path, anchor: &Anchor) -> CodeState {
    let notes = vec![anchor.clone()];
    reach::within(top, move |top| Memory::default().code_of(top, &notes, &mut HashMap::new(), &mut 1))
        .unwrap_or_default()
}

/// Files of a checkout, each read once; `None`: it cannot be.
pub type CodeFiles = HashMap<String, Option<CodeFile>>;

/// The first of these files that surely has what an anchor says.
pub fn file_of_anchor(
    top: &Path,
    anchor: &Anchor,
    paths: Vec<String>,
    files: &mut CodeFiles,
) -> Option<String> {
    let (anchor, mut known) = (anchor.clone(), std::mem::take(files));
    let find = move |top: &Path| {
        let mut has = |path: &String| {
            let full = || Some(top.join(path)).filter(|full| is_below(path) && full.is_file());
            let file = known.entry(path.clone()).or_insert_with(|| read(top, &full()?));
            file.as_ref().is_some_and(|file| file.holds(&anchor))
        };
        let found = paths.into_iter().find(|path| has(path));
        (found, known)
    };
    let (found, known) = reach::within(top, find).ok()?;
    *files = known;
    found
}

/// A path that stays below the top of a repository, by its text.
pub(super) fn is_below(path: &str) -> bool {
    let is_plain = |part: Component| matches!(part, Component::Normal(name) if name != ".git");
    !path.is_empty() && !path.contains('\0') && Path::new(path).components().all(is_plain)
}

/// What was found, by what an anchor is: how its file was, and whether its lines were there.
#[derive(Debug, Clone, Default)]
struct Memory {
    found: HashMap<u64, (u64, bool)>,
    is_changed: bool,
    /// Files that were changed before this may be remembered, in nanoseconds since 1970.
    settled: i64,
}

impl Memory {
    fn path(root: &Root) -> PathBuf {
        root.state().join("anchors.cache")
    }

    fn load(root: Option<&Root>) -> Memory {
        let most = (REMEMBERED * 24) as u64;
        let bytes = root.and_then(|root| file::read(&Memory::path(root), most).ok()).unwrap_or_default();
        let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let record = |at: usize| Some((number(at)?, (number(at + 8)?, number(at + 16)? == 1)));
        let found = (0..bytes.len()).step_by(24).filter_map(record).collect();
        Memory { found, is_changed: false, settled: file::settled(Moment::now().nanoseconds(), i64::MAX, 0) }
    }

    /// A store that cannot be written to is read all the same.
    fn save(&self, root: Option<&Root>) {
        let Some(root) = root.filter(|root| self.is_changed && root.state().is_dir()) else { return };
        let record = |(key, (mark, holds)): (&u64, &(u64, bool))| [*key, *mark, u64::from(*holds)];
        let bytes: Vec<u8> = self.found.iter().flat_map(record).flat_map(u64::to_le_bytes).collect();
        let _ = file::install_unsynced(&Memory::path(root), &bytes, 0o600);
    }

    fn code_of(
        &mut self,
        top: &Path,
        anchors: &[Anchor],
        files: &mut CodeFiles,
        left: &mut usize,
    ) -> CodeState {
        let states: Vec<CodeState> =
            anchors.iter().take(ANCHORS).map(|anchor| self.anchor(top, anchor, files, left)).collect();
        match states.iter().max() {
            Some(CodeState::Gone) if states.iter().any(|state| *state != CodeState::Gone) => {
                CodeState::Changed
            }
            worst => worst.copied().unwrap_or_default(),
        }
    }

    fn anchor(&mut self, top: &Path, anchor: &Anchor, files: &mut CodeFiles, left: &mut usize) -> CodeState {
        if !is_below(&anchor.path) {
            return CodeState::Same;
        }
        let path = top.join(&anchor.path);
        let Some(stamp) = file::stamp(&path) else {
            let is_gone = match path.symlink_metadata() {
                // A link that leads nowhere, a directory, a pipe.
                Ok(_) => true,
                Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
            };
            // Of a checkout that is not there, nothing is known, and what a sparse one leaves out is not gone.
            let is_whole = || top.is_dir() && !repository::is_sparse(top);
            return if is_gone && is_whole() { CodeState::Gone } else { CodeState::Same };
        };
        let Anchor { hash, name, says, lines, .. } = anchor;
        if hash.is_none() && name.is_none() && says.is_none() {
            return CodeState::Same;
        }
        let lines = lines.map_or(0, |lines| lines.count());
        let key = checksum(format!("{}\0{hash:?}\0{lines}\0{name:?}\0{says:?}", path.display()).as_bytes());
        let mark = mark(&stamp);
        let holds = match self.found.get(&key) {
            Some((known, holds)) if *known == mark => *holds,
            _ => {
                if stamp.size > CAP || *left == 0 && !files.contains_key(&anchor.path) {
                    return CodeState::Same;
                }
                let file = files.entry(anchor.path.clone()).or_insert_with(|| {
                    *left = left.saturating_sub(1);
                    read(top, &path)
                });
                let Some(file) = file else { return CodeState::Same };
                let holds = file.holds(anchor);
                if stamp.is_before(self.settled) {
                    if self.found.len() >= REMEMBERED {
                        self.found.clear();
                    }
                    self.found.insert(key, (mark, holds));
                    self.is_changed = true;
                }
                holds
            }
        };
        if holds { CodeState::Same } else { CodeState::Changed }
    }
}

fn mark(stamp: &Stamp) -> u64 {
    let mut bytes = Vec::new();
    stamp.pack(&mut bytes);
    checksum(&bytes)
}

/// A file of a checkout. Nothing of one that a link puts out of it.
fn read(top: &Path, path: &Path) -> Option<CodeFile> {
    let is_inside = path.canonicalize().ok()?.starts_with(top.canonicalize().ok()?);
    let bytes = if is_inside { file::read(path, CAP).ok()? } else { Vec::new() };
    Some(CodeFile::new(String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::memory::code::blocks::hash_of;
    use crate::store::entry::Lines;
    use std::fs;

    fn anchor(path: &str, text: &str) -> Anchor {
        let lines = Some(Lines { first: 1, last: text.lines().count() });
        Anchor {
            path: path.to_owned(),
            hash: Some(hash_of(&text.lines().collect::<Vec<_>>())),
            lines,
            ..Anchor::default()
        }
    }

    fn look(memory: &mut Memory, top: &Path, anchors: &[Anchor], most: usize) -> (CodeState, usize) {
        let (mut files, mut left) = (HashMap::new(), most);
        (memory.code_of(top, anchors, &mut files, &mut left), most - left)
    }

    #[test]
    fn a_file_is_read_once_and_again_when_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let (top, path) = (dir.path(), dir.path().join("a.rs"));
        fs::write(&path, "one\ntwo\n").unwrap();
        let mut memory = Memory { settled: i64::MAX, ..Memory::default() };
        let anchors = [anchor("a.rs", "one"), anchor("a.rs", "two")];
        assert_eq!(look(&mut memory, top, &anchors, 9), (CodeState::Same, 1));
        assert_eq!(look(&mut memory, top, &anchors, 9), (CodeState::Same, 0));
        fs::write(&path, "zero\none\n  two \n").unwrap();
        assert_eq!(look(&mut memory, top, &anchors, 9), (CodeState::Same, 1), "it has moved");
        fs::write(&path, "zero\none\nthree\n").unwrap();
        assert_eq!(look(&mut memory, top, &anchors, 0), (CodeState::Same, 0), "there is no time");
        assert_eq!(look(&mut memory, top, &anchors, 9), (CodeState::Changed, 1));
        assert_eq!(look(&mut memory, top, &anchors, 9), (CodeState::Changed, 0));
        // What may be changed once more without another time is not remembered.
        let mut memory = Memory { settled: 0, ..Memory::default() };
        look(&mut memory, top, &anchors, 9);
        assert_eq!(look(&mut memory, top, &anchors, 9), (CodeState::Changed, 1));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_in_the_checkout_is_gone_or_not_known() {
        let dir = tempfile::tempdir().unwrap();
        let (top, outside) = (dir.path().join("top"), dir.path().join("outside.rs"));
        fs::create_dir_all(top.join("dir")).unwrap();
        fs::write(&outside, "one\n").unwrap();
        fs::write(top.join("a.rs"), "one\n").unwrap();
        fs::write(top.join("huge.rs"), "x\n".repeat(CAP as usize)).unwrap();
        fs::write(top.join("binary"), b"\xff\0\xfe").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("link.rs")).unwrap();
        std::os::unix::fs::symlink("a.rs", top.join("inner.rs")).unwrap();
        let mut memory = Memory::default();
        for (path, expected) in [
            ("a.rs", CodeState::Same),
            ("inner.rs", CodeState::Same),
            ("none.rs", CodeState::Gone),
            ("a.rs/x", CodeState::Gone),
            ("dir", CodeState::Gone),
            ("link.rs", CodeState::Changed),
            ("huge.rs", CodeState::Same),
            ("binary", CodeState::Changed),
            ("../outside.rs", CodeState::Same),
            ("/etc/passwd", CodeState::Same),
            (".git/config", CodeState::Same),
        ] {
            assert_eq!(look(&mut memory, &top, &[anchor(path, "one")], 9).0, expected, "{path}");
        }
        let two = [anchor("none.rs", "one"), anchor("a.rs", "one")];
        assert_eq!(look(&mut memory, &top, &two, 9).0, CodeState::Changed);
        fs::create_dir_all(top.join(".git/info")).unwrap();
        fs::write(top.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(top.join(".git/info/sparse-checkout"), "/*\n").unwrap();
        assert_eq!(look(&mut memory, &top, &two, 9).0, CodeState::Same, "it may be left out here");
        assert_eq!(look(&mut memory, &dir.path().join("no"), &two, 9).0, CodeState::Same);
    }
}
