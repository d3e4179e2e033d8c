//! All notes: one markdown file each. Every change is made under the store's lock, and replaces a file as a whole.

use crate::base::error::{Error, Result, told};
use crate::base::file;
use crate::base::parallel;
use crate::store::apply;
use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan, is_named_after};
use crate::store::place::Root;
use crate::store::removed;
use crate::store::revision::Revision;
use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// The largest note that is read, in bytes. The largest that is written is an eighth of it.
const CAP: u64 = 8 << 20;

/// Notes as Markdown files below one directory.
pub struct Topics {
    root: Root,
}

impl Topics {
    /// The store in this directory. It is made with the first note.
    pub fn open(dir: &Path) -> Topics {
        Topics::at(&Root::at(dir))
    }

    pub fn at(root: &Root) -> Topics {
        Topics { root: root.clone() }
    }

    /// The ids of the notes that were deleted for good.
    pub fn removed(&self) -> Result<BTreeSet<EntryId>> {
        removed::of(&self.root)
    }

    pub fn dir(&self, place: Place) -> PathBuf {
        self.root.path().join(place.dir())
    }

    /// The files of these places that may be notes, by name. None where there is no store yet.
    pub fn files(&self, places: &[Place]) -> Result<NoteFiles> {
        let mut files = NoteFiles::default();
        for place in places {
            let NoteFiles { dirs, names, all } = &mut files;
            let (dir, first) = (self.dir(*place), all.len());
            each_name(&dir, |name| {
                let name = name.as_encoded_bytes();
                // On Unix any bytes are a name.
                if name.ends_with(b".md") && !name.starts_with(b".") && file::name_of(name).is_some() {
                    let start = names.len();
                    names.extend_from_slice(name);
                    all.push((dirs.len(), start..names.len()));
                }
            })?;
            dirs.push((*place, dir));
            all[first..].sort_unstable_by(|(_, a), (_, b)| names[a.clone()].cmp(&names[b.clone()]));
        }
        Ok(files)
    }

    /// Like [`Persistence::scan`], where `read` knows a note in its own way.
    pub fn scan_with<T: Send>(
        &self,
        places: &[Place],
        read: impl Fn(NoteFile) -> Result<(EntryId, T), Option<Broken>> + Sync,
    ) -> Result<Scan<T>> {
        let mut lock = None;
        loop {
            let files = self.files(places)?;
            let seen = files.map(0..files.len(), &read);
            // A file that is gone may have another name now. With the lock none goes.
            let has_vanished = seen.iter().any(|seen| matches!(seen, Err(None)));
            if has_vanished && lock.is_none() {
                lock = self.lock().ok();
                if lock.is_some() {
                    continue;
                }
            }
            let mut broken = Vec::new();
            let surplus = twins(&seen, &files, &mut broken);
            let mut found = Vec::with_capacity(seen.len());
            for (number, seen) in seen.into_iter().enumerate() {
                match seen {
                    Ok((_, made)) if !surplus.contains(&number) => found.push(made),
                    Err(Some(fault)) => broken.push(fault),
                    Ok(_) | Err(None) => {}
                }
            }
            broken.sort();
            return Ok(Scan { found, broken });
        }
    }

    /// Writes a change to its end that a killed program has begun, if there is one. Returns whether there was one.
    pub fn complete(&self) -> Result<bool> {
        let is_begun = apply::is_begun(&self.root);
        if is_begun {
            // Taking the lock does it.
            self.lock().map(drop)?;
        }
        Ok(is_begun)
    }
}

/// The names in a directory of a store; none where there is no such directory.
fn each_name(dir: &Path, mut each: impl FnMut(&OsStr)) -> Result<()> {
    let entries = match fs_err::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => {
            return Err(Error::config(format!("the store cannot be read: {}", told(&e)))
                .hint("see which one is in use with: memory-config show"));
        }
    };
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(format!("cannot read \"{}\": {e}", dir.display())))?;
        each(&entry.file_name());
    }
    Ok(())
}

/// Files that may be notes. All names share one buffer: to allocate and free ten thousand takes longer than to read the
/// directory.
#[derive(Default)]
pub struct NoteFiles {
    dirs: Vec<(Place, PathBuf)>,
    names: Vec<u8>,
    /// The index of each file's directory, and where its name is.
    all: Vec<(usize, Range<usize>)>,
}

/// A file that may be a note.
#[derive(Clone, Copy)]
pub struct NoteFile<'a> {
    pub place: Place,
    dir: &'a Path,
    pub name: &'a OsStr,
}

impl<'a> NoteFile<'a> {
    #[cfg(test)]
    pub fn at(place: Place, dir: &'a Path, name: &'a OsStr) -> NoteFile<'a> {
        NoteFile { place, dir, name }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.join(self.name)
    }
}

impl NoteFiles {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, number: usize) -> NoteFile<'_> {
        self.file(&self.all[number])
    }

    fn file(&self, (dir, name): &(usize, Range<usize>)) -> NoteFile<'_> {
        let (place, dir) = &self.dirs[*dir];
        NoteFile { place: *place, dir, name: file::name_of(&self.names[name.clone()]).unwrap_or_default() }
    }

    /// What `each` makes of some of the files, in their order, by several threads.
    pub fn map<T: Send>(&self, files: Range<usize>, each: impl Fn(NoteFile) -> T + Sync) -> Vec<T> {
        parallel::map(&self.all[files], |_, entry| each(self.file(entry)))
    }
}

/// `Err(None)`: there is no such file any more.
pub fn read(place: Place, path: &Path) -> Result<Note, Option<Broken>> {
    let entry = Entry::parse(bytes(path)?)
        .map_err(|error| Some(Broken { path: path.to_path_buf(), why: error.line() }))?;
    Ok(Note { place, path: path.to_path_buf(), entry })
}

fn bytes(path: &Path) -> Result<Vec<u8>, Option<Broken>> {
    let broken = |why: String| Some(Broken { path: path.to_path_buf(), why });
    file::read(path, CAP).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => broken("leads nowhere: a link to no file".to_owned()),
        io::ErrorKind::NotFound => None,
        _ => broken(e.to_string()),
    })
}

/// The numbers of the files that bear the same id as another one: the one that is named after it stays.
fn twins<T>(
    seen: &[Result<(EntryId, T), Option<Broken>>],
    files: &NoteFiles,
    broken: &mut Vec<Broken>,
) -> BTreeSet<usize> {
    let mut ids = HashSet::with_capacity(seen.len());
    let mut surplus = BTreeSet::new();
    if seen.iter().flatten().all(|(id, _)| ids.insert(id)) {
        return surplus;
    }
    let mut by_id: Vec<(&EntryId, usize)> =
        seen.iter().zip(0..).filter_map(|(seen, number)| Some((&seen.as_ref().ok()?.0, number))).collect();
    by_id.sort();
    for same in by_id.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
        let id = same[0].0;
        let mut twins: Vec<(PathBuf, usize)> =
            same.iter().map(|(_, number)| (files.get(*number).path(), *number)).collect();
        // A note that was renamed while the directory was read has left one of its names.
        twins.retain(|(path, number)| {
            let is_there = path.exists();
            if !is_there {
                surplus.insert(*number);
            }
            is_there
        });
        twins.sort_by_key(|(path, number)| (!is_named_after(path, id), *number));
        let [(first, one), (second, two), ..] = &twins[..] else { continue };
        // Nothing in a file shows which is the note and which came later: no forged one may take the place of a note.
        let is_either = is_named_after(second, id)
            && files.get(*one).place == files.get(*two).place
            && bytes(first).ok() != bytes(second).ok();
        for (path, number) in &twins[usize::from(!is_either)..] {
            surplus.insert(*number);
            let other = if path == first { second } else { first };
            let name = other.file_name().unwrap_or_default().to_string_lossy();
            let neither = if is_either { ", and neither is used" } else { "" };
            let why = format!("has the same id as \"{name}\"{neither}; merge them by hand, then remove one");
            broken.push(Broken { path: path.clone(), why });
        }
    }
    surplus
}

/// A held lock. Dropped, it is free again; so is a killed holder's.
pub struct StoreLock {
    _file: fs_err::File,
}

impl Persistence for Topics {
    type Lock = StoreLock;

    fn lock(&self) -> Result<StoreLock> {
        self.root.make()?;
        let path = self.root.state().join("store.lock");
        let file = file::lock_for_change(&path, true)?;
        let file = file.ok_or_else(|| Error::io(format!("\"{}\" vanished", path.display())))?;
        // A change that was cut short is written to its end first.
        apply::recover(&self.root)?;
        // Whoever wrote here without being done held this lock, and is gone. What is young may be on its way from
        // elsewhere: rsync names its files in transit as we do.
        for place in [Place::Topics, Place::Archive] {
            file::sweep_dir(&self.dir(place), ".md", file::LEFT_FOR);
        }
        file::sweep_dir(&self.root.proposals(), ".json", file::LEFT_FOR);
        Ok(StoreLock { _file: file })
    }

    fn names(&self, dir: &str, end: &str) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        each_name(&self.root.path().join(dir), |name| {
            let bytes = name.as_encoded_bytes();
            if bytes.ends_with(end.as_bytes()) && !bytes.starts_with(b".") {
                names.push(name.to_owned());
            }
        })?;
        names.sort();
        Ok(names)
    }

    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Broken> {
        // A plan is a file, and may have been tampered with.
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            let why = format!("\"{}\" is not the name of a file", path.display());
            return Err(Broken { path: path.to_path_buf(), why });
        }
        match bytes(&self.shown(path)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(None) => Ok(None),
            Err(Some(broken)) => Err(broken),
        }
    }

    fn write(&self, _lock: &StoreLock, change: &[Revision]) -> Result<()> {
        let gone = change.iter().filter(|revision| revision.after.is_none());
        let gone: Vec<EntryId> = gone.filter_map(Revision::id).collect();
        // Before, or a killed program would leave it unsaid. Where that cannot be written, on a full disk, room is made all
        // the same; memory-sync asks then, should it be many.
        let _ = removed::add(&self.root, gone.iter());
        apply::write(&self.root, change)
    }

    fn root(&self) -> Option<&Root> {
        Some(&self.root)
    }

    fn is_there(&self) -> bool {
        self.root.topics().exists() || self.root.archive().exists()
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.root.path().join(path)
    }

    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        self.scan_with(places, |file| {
            let note = read(file.place, &file.path())?;
            Ok((note.entry.meta().id.clone(), each(note)))
        })
    }
}

#[cfg(test)]
mod tests;
