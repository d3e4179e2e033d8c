//! The queue's directory. Adding an entry takes no lock: each one is a file of its own that appears complete.

use crate::base::error::{Error, Result};
use crate::base::{file, reach};
use crate::store::journal::entry::{NOT_AN_ENTRY, QueueEntry, session_mark};
use crate::store::persistence::Broken;
use crate::store::place::Root;
use jiff::Timestamp;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The largest entry that is read, in bytes: the largest body, with every character escaped.
const CAP: u64 = 8 << 20;

pub struct Journal {
    root: Root,
}

/// An entry that nobody has claimed.
#[derive(Debug)]
pub struct QueuedEntry {
    /// The file's name without `.json`.
    pub id: String,
    pub path: PathBuf,
    pub entry: QueueEntry,
}

/// A new id for an entry. Those for one session share a mark in it, by which they are found among many. A file of memories has
/// the same id until it changes: the reply that a dry run was given names it.
pub fn new_id(entry: &QueueEntry) -> Result<String> {
    let stamp = format!("{:.3}", entry.timestamp).replace(':', "-");
    let mark = entry.session().as_deref().map(session_mark).unwrap_or_default();
    let rest = if entry.is_memory_file() { mark.clone() } else { file::random58(8 - mark.len())? };
    Ok(format!("{stamp}_{}_{mark}{rest}", entry.harness))
}

/// The mark in `TIME_HARNESS_RANDOM`, if the entry is for a session.
pub fn mark_of(id: &str) -> Option<&str> {
    id.rsplit('_').next()?.get(..4)
}

/// Harness and time of an entry, from its id: `2026-02-13T14-30-05.123Z_codex_1a2B3c4D`.
pub fn harness_and_time(id: &str) -> Option<(&str, Timestamp)> {
    let (time, rest) = id.split_once('_')?;
    let (harness, _) = rest.rsplit_once('_')?;
    let (day, time) = time.split_once('T')?;
    Some((harness, format!("{day}T{}", time.replace('-', ":")).parse().ok()?))
}

impl Journal {
    pub fn at(root: &Root) -> Journal {
        Journal { root: root.clone() }
    }

    /// Adds an entry to the queue, unless its session has one there already: the one that waits, and whether it is new. Once
    /// this returns, the entry survives a power cut.
    pub fn put(&self, entry: &QueueEntry) -> Result<(QueuedEntry, bool)> {
        entry.check()?;
        self.root.make()?;
        if let Some(waiting) = entry.session().and_then(|session| self.waiting_session(&session)) {
            return Ok((waiting, false));
        }
        let text = format!("{:#}\n", entry.json());
        loop {
            let id = new_id(entry)?;
            let path = self.path(&id);
            // One that is damaged is in nobody's way.
            if !path.exists() || entry.is_memory_file() {
                file::install(&path, text.as_bytes(), 0o600)?;
                return Ok((QueuedEntry { id, path, entry: entry.clone() }, true));
            }
        }
    }

    /// The entry for this session that is in the queue already, by the mark in its name: no other entry is read, as somebody
    /// waits for a hook. A queue that cannot be listed is no reason to lose a session: it may wait twice.
    fn waiting_session(&self, session: &str) -> Option<QueuedEntry> {
        let mark = session_mark(session);
        let mut same = self.ids().ok()?.into_iter().filter(|id| mark_of(id) == Some(&mark));
        same.find_map(|id| {
            // What fails in passing may succeed a moment later.
            let entry = self.read(&id).or_else(|_| self.read(&id)).ok()??;
            let is_same = entry.session().as_deref() == Some(session);
            is_same.then(|| QueuedEntry { path: self.path(&id), id, entry })
        })
    }

    pub fn path(&self, id: &str) -> PathBuf {
        self.root.inbox().join(format!("{id}.json"))
    }

    /// The text of an entry's session, should the program have removed the file.
    pub fn kept(&self, id: &str) -> PathBuf {
        self.root.inbox().join(".kept").join(id)
    }

    /// Keeps the text of a session whose program may remove its file: a hard link, which costs no space, and also has what is
    /// said later. On another file system there is none.
    pub fn keep(&self, id: &str, session: &Path) {
        let kept = self.kept(id);
        let _ = reach::within(session, move |session| {
            kept.parent().map_or(Ok(()), file::make_private_dir)?;
            fs_err::hard_link(session, kept)
        });
    }

    /// The names of all entries in the queue, readable or not.
    pub fn ids(&self) -> Result<Vec<String>> {
        Journal::ids_in(&self.root.inbox())
    }

    /// One entry of the queue; `None`: another process has claimed it.
    pub fn read(&self, id: &str) -> Result<Option<QueueEntry>, Broken> {
        read_at(&self.path(id))
    }

    /// Removes what killed programs left half written, and what an earlier version remembered of the queue.
    pub fn sweep(&self) {
        file::sweep_dir(&self.root.inbox(), ".json", file::LEFT_FOR);
        let _ = file::remove_tree(&self.root.state().join("queued"));
        let _ = self.sweep_kept();
    }

    /// An entry that somebody has removed by hand needs its session no more.
    fn sweep_kept(&self) -> Result<()> {
        let Some(kept) = file::if_exists(fs_err::read_dir(self.root.inbox().join(".kept")))? else {
            return Ok(());
        };
        let mut places = vec![self.root.inbox(), self.root.inbox().join(".failed")];
        for batch in file::if_exists(fs_err::read_dir(self.root.batches()))?.into_iter().flatten() {
            places.push(batch?.path().join("claimed"));
        }
        for file in kept {
            let file = file?;
            let mut entry = file.file_name();
            entry.push(".json");
            if !places.iter().any(|dir| dir.join(&entry).exists()) {
                file::forget(&file.path())?;
            }
        }
        Ok(())
    }

    /// The entries in a directory, oldest first, and the files there that are not entries.
    pub fn entries_in(dir: &Path) -> Result<(Vec<QueuedEntry>, Vec<Broken>)> {
        let (mut waiting, mut unreadable) = (Vec::new(), Vec::new());
        for id in Journal::ids_in(dir)? {
            let path = dir.join(format!("{id}.json"));
            match read_at(&path) {
                Ok(entry) => waiting.extend(entry.map(|entry| QueuedEntry { id, path, entry })),
                Err(file) => unreadable.push(file),
            }
        }
        waiting.sort_by(|a, b| (a.entry.timestamp, &a.id).cmp(&(b.entry.timestamp, &b.id)));
        unreadable.sort();
        Ok((waiting, unreadable))
    }

    /// The ids of the entries that have failed for good.
    pub fn failed(&self) -> Result<Vec<String>> {
        let mut ids = Journal::ids_in(&self.root.inbox().join(".failed"))?;
        ids.retain(|id| !id.ends_with(".error"));
        Ok(ids)
    }

    /// Puts failed entries back into the queue.
    pub fn retry(&self, failed: &[String]) -> Result<()> {
        let dir = self.root.inbox().join(".failed");
        for id in failed {
            let name = format!("{id}.json");
            // First: nobody would look for the reason of an entry that is no longer here.
            file::if_exists(file::remove(&dir.join(format!("{id}.error.json"))))?;
            file::rename(&dir.join(&name), &self.root.inbox().join(&name))?;
        }
        Ok(())
    }

    /// The ids of all entries in a directory, readable or not. None if there is no queue yet.
    pub fn ids_in(dir: &Path) -> Result<Vec<String>> {
        let id = |name: OsString| {
            let name = name.into_string().ok()?;
            name.strip_suffix(".json").filter(|_| !name.starts_with('.')).map(str::to_owned)
        };
        let mut ids = Vec::new();
        // A queue that cannot be read to its end is not one without entries.
        for file in file::if_exists(fs_err::read_dir(dir))?.into_iter().flatten() {
            ids.extend(id(file?.file_name()));
        }
        Ok(ids)
    }
}

/// The entry in a file; `None` if the file is gone. What is wrong with a broken one begins with "not a queue entry".
pub fn read_at(path: &Path) -> Result<Option<QueueEntry>, Broken> {
    let read = file::read(path, CAP).map_err(|e| Error::from(e).context(NOT_AN_ENTRY));
    match read.and_then(|bytes| QueueEntry::parse(&bytes)) {
        Ok(entry) => Ok(Some(entry)),
        Err(_) if matches!(file::exists(path), Ok(false)) => Ok(None),
        Err(error) => Err(Broken { path: path.to_path_buf(), why: error.message().to_owned() }),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
