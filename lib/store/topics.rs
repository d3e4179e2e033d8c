//! All notes: one markdown file each. Every change is made under the store's lock, and replaces a file as a whole.

mod proposals;

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::parallel;
use crate::store::entry::{Entry, EntryId};
use crate::store::merge;
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan, is_named_after};
use crate::store::place::Root;
use crate::store::proposal::{Proposal, ProposalId};
use crate::store::removed;
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// The largest note that is read, in bytes. The largest that is written is an eighth of it.
const CAP: u64 = 8 << 20;

pub struct Topics {
    root: Root,
}

impl Topics {
    pub(crate) fn at(root: &Root) -> Topics {
        Topics { root: root.clone() }
    }

    pub(crate) fn dir(&self, place: Place) -> PathBuf {
        match place {
            Place::Topics => self.root.topics(),
            Place::Archive => self.root.archive(),
        }
    }

    /// The file of this name. A plan is a file, and may have been tampered with: a name is one name.
    fn path(&self, place: Place, name: &OsStr) -> Result<PathBuf, Broken> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(name)), None) if !name.as_encoded_bytes().contains(&0) => {
                Ok(self.dir(place).join(name))
            }
            _ => Err(Broken {
                path: PathBuf::from(name),
                why: format!("\"{}\" is not the name of a file", name.to_string_lossy()),
            }),
        }
    }

    /// The markdown files of these places.
    pub(crate) fn files(&self, places: &[Place]) -> Result<Files> {
        let mut files = Files::default();
        for place in places {
            self.add_files(*place, ".md", &mut files)?;
        }
        Ok(files)
    }

    /// Adds the files of a place whose names end so, by name. None where there is no store yet.
    fn add_files(&self, place: Place, end: &str, files: &mut Files) -> Result<()> {
        let dir = self.dir(place);
        let entries = match fs_err::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => {
                return Err(Error::config(format!("the store cannot be read: {e}"))
                    .hint("see which one is in use with: memory-config show"));
            }
        };
        let first = files.all.len();
        for entry in entries {
            let entry = entry.map_err(|e| Error::io(format!("cannot read \"{}\": {e}", dir.display())))?;
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            // On Unix any bytes are a name.
            let is_note = name.ends_with(end.as_bytes()) && !name.starts_with(b".");
            if is_note && file::name_of(name).is_some() {
                let start = files.names.len();
                files.names.extend_from_slice(name);
                files.all.push((files.dirs.len(), start..files.names.len()));
            }
        }
        files.dirs.push((place, dir));
        let names = &files.names;
        files.all[first..].sort_unstable_by(|(_, a), (_, b)| names[a.clone()].cmp(&names[b.clone()]));
        Ok(())
    }

    /// Like [`Persistence::scan`], where `read` knows a note in its own way: see [`read`].
    pub(crate) fn scan_with<T: Send>(
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
}

/// Files that may be notes. All names share one buffer: to allocate and free ten thousand takes longer than to read the
/// directory.
#[derive(Default)]
pub(crate) struct Files {
    dirs: Vec<(Place, PathBuf)>,
    names: Vec<u8>,
    /// The index of each file's directory, and where its name is.
    all: Vec<(usize, Range<usize>)>,
}

/// A file that may be a note.
#[derive(Clone, Copy)]
pub(crate) struct NoteFile<'a> {
    pub(crate) place: Place,
    dir: &'a Path,
    pub(crate) name: &'a OsStr,
}

impl<'a> NoteFile<'a> {
    #[cfg(test)]
    pub(crate) fn at(place: Place, dir: &'a Path, name: &'a OsStr) -> NoteFile<'a> {
        NoteFile { place, dir, name }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(self.name)
    }
}

impl Files {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, number: usize) -> NoteFile<'_> {
        self.file(&self.all[number])
    }

    fn file(&self, (dir, name): &(usize, Range<usize>)) -> NoteFile<'_> {
        let (place, dir) = &self.dirs[*dir];
        NoteFile { place: *place, dir, name: file::name_of(&self.names[name.clone()]).unwrap_or_default() }
    }

    /// What `each` makes of some of the files, in their order, by several threads.
    pub(crate) fn map<T: Send>(&self, files: Range<usize>, each: impl Fn(NoteFile) -> T + Sync) -> Vec<T> {
        parallel::map(&self.all[files], |_, entry| each(self.file(entry)))
    }
}

/// `Err(None)`: there is no such file any more.
pub(crate) fn read(place: Place, path: &Path) -> Result<Note, Option<Broken>> {
    let broken = |why: String| Some(Broken { path: path.to_path_buf(), why });
    let bytes = file::read(path, CAP).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => broken("leads nowhere: a link to no file".to_owned()),
        io::ErrorKind::NotFound => None,
        _ => broken(e.to_string()),
    })?;
    let entry = Entry::parse(bytes).map_err(|error| broken(error.line()))?;
    Ok(Note { place, path: path.to_path_buf(), entry })
}

/// The numbers of the files that bear the same id as another one: the one that is named after it stays.
fn twins<T>(
    seen: &[Result<(EntryId, T), Option<Broken>>],
    files: &Files,
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
        if let [(first, _), rest @ ..] = &twins[..] {
            let name = first.file_name().unwrap_or_default().to_string_lossy();
            for (path, number) in rest {
                surplus.insert(*number);
                let why = format!("has the same id as \"{name}\"; merge them by hand, then remove one");
                broken.push(Broken { path: path.clone(), why });
            }
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

    fn is_there(&self) -> bool {
        self.root.topics().exists() || self.root.archive().exists()
    }

    fn lock(&self) -> Result<StoreLock> {
        self.root.make()?;
        let path = self.root.state().join("store.lock");
        let file = file::lock_for_change(&path, true)?;
        let file = file.ok_or_else(|| Error::io(format!("\"{}\" vanished", path.display())))?;
        // A merge with another machine that was cut short is written to its end first.
        merge::recover(&self.root)?;
        // Whoever wrote here without being done held this lock, and is gone. What is young may be on its way from
        // elsewhere: rsync names its files in transit as we do.
        for place in [Place::Topics, Place::Archive] {
            file::sweep_dir(&self.dir(place), ".md", file::LEFT_FOR);
        }
        file::sweep_dir(&self.root.proposals(), ".json", file::LEFT_FOR);
        Ok(StoreLock { _file: file })
    }

    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        self.scan_with(places, |file| {
            let note = read(file.place, &file.path())?;
            Ok((note.entry.meta().id.clone(), each(note)))
        })
    }

    fn read(&self, place: Place, name: &OsStr) -> Result<Option<Note>, Broken> {
        match read(place, &self.path(place, name)?) {
            Ok(note) => Ok(Some(note)),
            Err(None) => Ok(None),
            Err(Some(broken)) => Err(broken),
        }
    }

    fn named(&self, id: &EntryId) -> Result<Option<Note>> {
        for place in [Place::Topics, Place::Archive] {
            let mut files = Files::default();
            self.add_files(place, &format!("{id}.md"), &mut files)?;
            // One that cannot be used may have a twin that can.
            let mut notes = (0..files.len()).filter_map(|number| read(place, &files.get(number).path()).ok());
            if let Some(note) = notes.find(|note| note.entry.meta().id == *id) {
                return Ok(Some(note));
            }
        }
        Ok(None)
    }

    /// By a link to nowhere too: it is somebody's.
    fn is_taken(&self, place: Place, name: &OsStr) -> bool {
        self.dir(place).join(name).symlink_metadata().is_ok()
    }

    fn put(
        &self,
        _lock: &StoreLock,
        old: Option<&Note>,
        place: Place,
        name: &OsStr,
        entry: Entry,
    ) -> Result<Note> {
        let path = self.path(place, name).map_err(|broken| Error::corrupt(broken.why))?;
        // On a file system that ignores case, a note whose name changes only in case is in its own way.
        let is_own = old.is_some_and(|old| old.path == path || file::is_same(&old.path, &path));
        if !is_own && self.is_taken(place, name) {
            return Err(Error::conflict(format!("\"{}\" exists already", path.display())));
        }
        let Some(old) = old else {
            file::install(&path, entry.bytes(), 0o600)?;
            return Ok(Note { place, path, entry });
        };
        // The name first: until the file has its new bytes nothing has changed, and whoever tries again succeeds.
        let renamed = if path == old.path { Ok(()) } else { file::rename(&old.path, &path) };
        let done = renamed.and_then(|()| match entry.bytes() == old.entry.bytes() {
            true => Ok(()),
            false => file::replace(&path, |new| io::Write::write_all(new, entry.bytes())),
        });
        // Where only the last sync failed the new bytes are there: they keep the new name.
        let is_old = || file::read(&path, CAP).is_ok_and(|bytes| bytes == old.entry.bytes());
        if done.is_err() && path != old.path && old.path.symlink_metadata().is_err() && is_old() {
            let _ = file::rename(&path, &old.path);
        }
        done?;
        Ok(Note { place, path, entry })
    }

    fn purge(&self, _lock: &StoreLock, note: &Note) -> Result<()> {
        // Before, or a killed program would leave it unsaid. Where that cannot be written, on a full disk, room is made all
        // the same; memory-sync asks then, should it be many.
        let _ = removed::add(&self.root, std::iter::once(&note.entry.meta().id));
        Ok(file::remove(&note.path)?)
    }

    fn proposals(&self) -> Result<(Vec<Proposal>, Vec<Broken>)> {
        proposals::read_dir(&self.root.proposals())
    }

    fn put_proposal(&self, _lock: &StoreLock, proposal: &Proposal) -> Result<()> {
        let bytes = proposal.bytes()?;
        let dir = self.root.proposals();
        file::make_private_dir(&dir)?;
        let path = dir.join(format!("{}.json", proposal.id));
        // A file that is broken is somebody's: it is not replaced.
        if path.symlink_metadata().is_ok() {
            proposals::read(&path)
                .map_err(|why| Error::conflict(format!("\"{}\": {why}", path.display())))?;
        }
        Ok(file::install(&path, &bytes, 0o600)?)
    }

    fn withdraw(&self, _lock: &StoreLock, id: &ProposalId) -> Result<()> {
        let path = self.root.proposals().join(format!("{id}.json"));
        file::if_exists(file::remove(&path))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
