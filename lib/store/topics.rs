//! All notes: one markdown file each. Every change is made under the store's lock, and replaces a file as a whole.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::nearest;
use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::place::Root;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest note that is read, in bytes. The largest that is written is an eighth of it.
const CAP: u64 = 8 << 20;
/// So many threads read notes. More wait for the same disk.
const READERS: usize = 4;
/// A thread takes so many files at a time. A scan with fewer is done before a second thread has started.
const SHARE: usize = 64;

pub(crate) struct Topics {
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

    /// The markdown files of a place, by name. None where there is no store yet.
    fn files(&self, place: Place) -> Result<Vec<(Place, PathBuf)>> {
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
            let name = name.as_encoded_bytes();
            if name.ends_with(end.as_bytes()) && !name.starts_with(b".") {
                files.push((place, entry.path()));
            }
        }
        // By their bytes: comparing paths part by part is a tenth of a listing.
        files.sort_unstable_by(|(_, a), (_, b)| a.as_os_str().cmp(b.as_os_str()));
        Ok(files)
    }

    /// The note whose file's name tells that it has this id: almost always there is one.
    pub(crate) fn named(&self, id: &EntryId) -> Result<Option<Note>> {
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

    /// A note that was renamed by hand, or a moment ago, or that took another in.
    fn searched(&self, id: &EntryId, by_alias: bool) -> Result<Note> {
        let scan = self.scan(&[Place::Topics, Place::Archive], |note| {
            let meta = note.entry.meta();
            let rank =
                if meta.id == *id { Some(0) } else { (by_alias && meta.aliases.contains(id)).then_some(1) };
            (meta.id.clone(), rank.map(|rank| ((rank, note.place), note)))
        })?;
        let ids: Vec<String> = scan.found.iter().map(|(id, _)| id.to_string()).collect();
        let best = scan.found.into_iter().filter_map(|(_, found)| found).min_by_key(|(rank, _)| *rank);
        best.map(|(_, note)| note).ok_or_else(|| {
            if let Some(broken) = scan.broken.iter().find(|broken| is_named_after(&broken.path, id)) {
                return unusable(broken);
            }
            let error = Error::not_found(format!("no note has the id \"{id}\""));
            match nearest(id.as_str(), ids.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error.hint("see them with: memory-list"),
            }
        })
    }

    /// One pass over `files`; `true` if one of them was gone when its turn came.
    fn pass<T: Send>(
        &self,
        files: &[(Place, PathBuf)],
        each: &(impl Fn(Note) -> T + Sync),
    ) -> (Vec<Seen<T>>, Vec<Broken>, bool) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(READERS);
        let next = AtomicUsize::new(0);
        // Each thread takes the next share when it is done with one, so that none waits for another.
        let work = || {
            let mut parts = Vec::new();
            loop {
                let first = next.fetch_add(SHARE, Ordering::Relaxed);
                let Some(rest) = files.get(first..).filter(|rest| !rest.is_empty()) else { return parts };
                parts.push((first, read_all(first, &rest[..rest.len().min(SHARE)], each)));
            }
        };
        let mut parts = std::thread::scope(|scope| {
            let others = 1..threads.min(files.len().div_ceil(SHARE));
            // Where no thread is to be had, this one does all the work.
            let started: Vec<_> =
                others.filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
            let mut parts = work();
            parts.extend(started.into_iter().flat_map(|thread| thread.join().unwrap_or_default()));
            parts
        });
        parts.sort_unstable_by_key(|(first, _)| *first);
        let mut all = (Vec::with_capacity(files.len()), Vec::new(), false);
        for (_, part) in parts {
            all.0.extend(part.0);
            all.1.extend(part.1);
            all.2 |= part.2;
        }
        all
    }
}

/// A note that was read: its id, the number of its file, and what was made of it.
type Seen<T> = (EntryId, usize, T);

/// Reads `files`, of which the first has the number `first`.
fn read_all<T>(
    first: usize,
    files: &[(Place, PathBuf)],
    each: &impl Fn(Note) -> T,
) -> (Vec<Seen<T>>, Vec<Broken>, bool) {
    let (mut seen, mut broken, mut vanished) = (Vec::with_capacity(files.len()), Vec::new(), false);
    for ((place, path), number) in files.iter().zip(first..) {
        match read(*place, path) {
            Ok(note) => seen.push((note.entry.meta().id.clone(), number, each(note))),
            Err(None) => vanished = true,
            Err(Some(fault)) => broken.push(fault),
        }
    }
    (seen, broken, vanished)
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

/// Does the file's name end as that of the note with this id?
fn is_named_after(path: &Path, id: &EntryId) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&format!("{id}.md")))
}

/// By a link to nowhere too: it is somebody's.
pub(crate) fn is_taken(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn unusable(broken: &Broken) -> Error {
    Error::io(format!("\"{}\" is not a note that can be used: {}", broken.path.display(), broken.why))
        .hint("mend it in an editor")
}

/// A held lock. Dropped, it is free again; so is a killed holder's.
pub(crate) struct StoreLock {
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
        // Whoever wrote here without being done held this lock, and is gone. What is young may be on its way from
        // elsewhere: rsync names its files in transit as we do.
        for place in [Place::Topics, Place::Archive] {
            file::sweep_dir(&self.dir(place), ".md", file::LEFT_FOR);
        }
        Ok(StoreLock { _file: file })
    }

    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        let mut lock = None;
        loop {
            let mut files = Vec::new();
            for place in places {
                files.extend(self.files(*place)?);
            }
            let (seen, mut broken, vanished) = self.pass(&files, &each);
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

    fn find(&self, id: &EntryId) -> Result<Note> {
        let mut id = id.clone();
        // Each step leads to a note that was written later; more than a few are a circle.
        for _ in 0..8 {
            let note = match self.named(&id)? {
                Some(note) => note,
                None => self.searched(&id, true)?,
            };
            match &note.entry.meta().superseded_by {
                Some(heir) if note.place == Place::Archive => id = heir.clone(),
                _ => return Ok(note),
            }
        }
        self.find_own(&id)
    }

    fn find_own(&self, id: &EntryId) -> Result<Note> {
        match self.named(id)? {
            Some(note) => Ok(note),
            None => self.searched(id, false),
        }
    }

    fn ids(&self) -> Result<BTreeSet<EntryId>> {
        let scan = self.scan(&[Place::Topics, Place::Archive], |note| {
            let meta = note.entry.meta();
            let mut ids = meta.aliases.clone();
            ids.push(meta.id.clone());
            ids
        })?;
        let of_broken = scan.broken.iter().filter_map(|broken| {
            let name = broken.path.file_stem()?.to_str()?;
            EntryId::parse(name.get(name.len().checked_sub(10)?..)?)
        });
        Ok(scan.found.into_iter().flatten().chain(of_broken).collect())
    }

    fn add(&self, _lock: &StoreLock, entry: Entry) -> Result<Note> {
        let path = self.dir(Place::Topics).join(entry.meta().file_name());
        if is_taken(&path) {
            return Err(Error::conflict(format!("\"{}\" exists already", path.display())));
        }
        file::install(&path, entry.bytes(), 0o600)?;
        Ok(Note { place: Place::Topics, path, entry })
    }

    fn replace(&self, _lock: &StoreLock, note: &Note, entry: Entry) -> Result<Note> {
        let failed = |e: io::Error| Error::io(e.to_string());
        // A name that somebody gave the file by hand stays until what it is made of changes.
        let (old, new) = (note.entry.meta().file_name(), entry.meta().file_name());
        let path = note.path.with_file_name(&new);
        let path = if old == new || is_taken(&path) { note.path.clone() } else { path };
        // The name first: until the file has its new bytes nothing has changed, and whoever tries again succeeds.
        let renamed = if path == note.path { Ok(()) } else { file::rename(&note.path, &path) };
        let done = renamed.and_then(|()| match entry.bytes() == note.entry.bytes() {
            true => Ok(()),
            false => file::replace(&path, |new| io::Write::write_all(new, entry.bytes())),
        });
        // Where only the last sync failed the new bytes are there: they keep the new name.
        let is_old = || file::read(&path, CAP).is_ok_and(|bytes| bytes == note.entry.bytes());
        if done.is_err() && path != note.path && !is_taken(&note.path) && is_old() {
            let _ = file::rename(&path, &note.path);
        }
        done.map(|()| Note { place: note.place, path, entry }).map_err(failed)
    }

    fn archive(&self, _lock: &StoreLock, note: &Note) -> Result<Note> {
        let path = self.dir(Place::Archive).join(note.path.file_name().unwrap_or_default());
        if is_taken(&path) {
            return Err(Error::io(format!(
                "\"{}\" cannot be archived: \"{}\" exists",
                note.path.display(),
                path.display()
            )));
        }
        file::rename(&note.path, &path)?;
        Ok(Note { place: Place::Archive, path, entry: note.entry.clone() })
    }

    fn purge(&self, _lock: &StoreLock, note: &Note) -> Result<()> {
        file::remove(&note.path).map_err(|e| Error::io(e.to_string()))
    }
}

#[cfg(test)]
mod tests;
