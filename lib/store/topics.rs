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
use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::io;
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

    /// The markdown files of a place, by name. None where there is no store yet.
    pub(crate) fn files(&self, place: Place) -> Result<Vec<(Place, PathBuf)>> {
        self.files_named(place, ".md")
    }

    /// The files of a place whose names end so.
    fn files_named(&self, place: Place, end: &str) -> Result<Vec<(Place, PathBuf)>> {
        let dir = self.dir(place);
        let entries = match fs_err::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => {
                return Err(Error::config(format!("the store cannot be read: {e}"))
                    .hint("see which one is in use with: memory-config show"));
            }
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| Error::io(format!("cannot read \"{}\": {e}", dir.display())))?;
            let name = entry.file_name();
            let bytes = name.as_encoded_bytes();
            if bytes.ends_with(end.as_bytes()) && !bytes.starts_with(b".") {
                files.push((place, dir.join(&name)));
            }
        }
        // By their bytes: comparing paths part by part is a tenth of a listing.
        files.sort_unstable_by(|(_, a), (_, b)| a.as_os_str().cmp(b.as_os_str()));
        Ok(files)
    }

    /// Like [`Persistence::scan`], where `read` knows a note in its own way: see [`read`].
    pub(crate) fn scan_with<T: Send>(
        &self,
        places: &[Place],
        read: impl Fn(Place, &Path) -> Result<(EntryId, T), Option<Broken>> + Sync,
    ) -> Result<Scan<T>> {
        let mut lock = None;
        loop {
            let mut files = Vec::new();
            for place in places {
                files.extend(self.files(*place)?);
            }
            let (mut seen, mut broken) = (Vec::with_capacity(files.len()), Vec::new());
            let mut vanished = false;
            let made = parallel::map(&files, |_, (place, path)| read(*place, path));
            for (number, made) in made.into_iter().enumerate() {
                match made {
                    Ok((id, made)) => seen.push((id, number, made)),
                    Err(None) => vanished = true,
                    Err(Some(fault)) => broken.push(fault),
                }
            }
            // A file that is gone may have another name now. With the lock none goes.
            if vanished && lock.is_none() {
                lock = self.lock().ok();
                if lock.is_some() {
                    continue;
                }
            }
            let found = without_twins(seen, &files, &mut broken);
            broken.sort();
            return Ok(Scan { found, broken });
        }
    }
}

/// A note that was read: its id, the number of its file, and what was made of it.
type Seen<T> = (EntryId, usize, T);

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

/// Sorts out files that bear the same id: the one that is named after it stays.
fn without_twins<T>(seen: Vec<Seen<T>>, files: &[(Place, PathBuf)], broken: &mut Vec<Broken>) -> Vec<T> {
    let mut ids = HashSet::with_capacity(seen.len());
    if seen.iter().all(|(id, ..)| ids.insert(id)) {
        return seen.into_iter().map(|(.., made)| made).collect();
    }
    let path = |index: usize| -> &Path { &files[seen[index].1].1 };
    let mut by_id: Vec<usize> = (0..seen.len()).collect();
    by_id.sort_by(|a, b| seen[*a].0.cmp(&seen[*b].0));
    let mut surplus = BTreeSet::new();
    for same in by_id.chunk_by(|a, b| seen[*a].0 == seen[*b].0).filter(|same| same.len() > 1) {
        let mut twins = same.to_vec();
        let id = &seen[twins[0]].0;
        // A note that was renamed while the directory was read has left one of its names.
        twins.retain(|&index| {
            let is_there = path(index).exists();
            if !is_there {
                surplus.insert(index);
            }
            is_there
        });
        twins.sort_by_key(|&index| (!is_named_after(path(index), id), index));
        if let [first, rest @ ..] = &twins[..] {
            for &index in rest {
                surplus.insert(index);
                let name = path(*first).file_name().unwrap_or_default().to_string_lossy();
                let why = format!("has the same id as \"{name}\"; merge them by hand, then remove one");
                broken.push(Broken { path: path(index).to_path_buf(), why });
            }
        }
    }
    let all = seen.into_iter().enumerate();
    all.filter(|(index, _)| !surplus.contains(index)).map(|(_, (.., made))| made).collect()
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
        self.scan_with(places, |place, path| {
            let note = read(place, path)?;
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
            for (place, path) in self.files_named(place, &format!("{id}.md"))? {
                // One that cannot be used may have a twin that can.
                if let Ok(note) = read(place, &path)
                    && note.entry.meta().id == *id
                {
                    return Ok(Some(note));
                }
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
