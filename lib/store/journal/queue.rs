//! The queue's directory. Adding an entry takes no lock: each one is a file of its own that appears complete.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::base58;
use crate::store::journal::entry::{NOT_AN_ENTRY, QueueEntry, head, session_mark};
use crate::store::place::Root;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The largest entry that is read, in bytes: the largest body, with every character escaped.
const CAP: u64 = 8 << 20;
/// The longest name of an entry, in bytes.
const HINT_CAP: u64 = 4 << 10;

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

/// A file in the queue that cannot be read as an entry. The error's message begins with "not a queue entry".
#[derive(Debug)]
pub struct UnreadableEntry {
    pub path: PathBuf,
    pub error: Error,
}

/// A new id for an entry. Those for one session share a mark in it: --past finds them by it among many.
pub fn new_id(entry: &QueueEntry) -> Result<String> {
    let stamp = format!("{:.3}", entry.timestamp).replace(':', "-");
    let mark = entry.session().as_deref().map(session_mark).unwrap_or_default();
    Ok(format!("{stamp}_{}_{mark}{}", entry.harness, file::random58(8 - mark.len())?))
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
        let inbox = self.root.inbox();
        let session = entry.session();
        if let Some(session) = &session
            && let Some(waiting) = self.waiting_session(session)?
        {
            return Ok((waiting, false));
        }
        let text = format!("{:#}\n", entry.json());
        loop {
            let id = new_id(entry)?;
            let path = inbox.join(format!("{id}.json"));
            if !path.exists() {
                // First, so that nothing comes between an entry and its hint: one that leads nowhere says nothing.
                if let Some(session) = &session {
                    self.remember(session, &id);
                }
                file::install(&path, text.as_bytes(), 0o600)?;
                return Ok((QueuedEntry { id, path, entry: entry.clone() }, true));
            }
        }
    }

    /// Where it is remembered which entry waits for a session. A hook must not take longer because the queue is long.
    fn hint(&self, session: &str) -> PathBuf {
        self.hints().join(base58(head(session), 11))
    }

    fn hints(&self) -> PathBuf {
        self.root.state().join("queued")
    }

    /// The entry for this session that is in the queue already.
    fn waiting_session(&self, session: &str) -> Result<Option<QueuedEntry>> {
        let hints = self.hints();
        if !hints.is_dir() {
            // The queue is of an earlier version, or new.
            let (waiting, _) = self.waiting()?;
            file::make_private_dir(&hints)?;
            for waiting in &waiting {
                if let Some(session) = waiting.entry.session() {
                    self.remember(&session, &waiting.id);
                }
            }
        }
        Ok(self.hinted(session))
    }

    /// A hint may be torn, or tell of what has long been claimed: only the entry itself counts.
    fn hinted(&self, session: &str) -> Option<QueuedEntry> {
        let id = String::from_utf8(file::read(&self.hint(session), HINT_CAP).ok()?).ok()?;
        let id = id.trim_end();
        if id.is_empty() || id.contains('/') || id.starts_with('.') {
            return None;
        }
        let entry = self.read(id).ok()??;
        let is_same = entry.session().as_deref() == Some(session);
        is_same.then(|| QueuedEntry { id: id.to_owned(), path: self.path(id), entry })
    }

    /// Trouble with a hint is none of the caller's. Where one is missing, all are made anew from the queue.
    fn remember(&self, session: &str, id: &str) {
        let hint = || {
            file::make_private_dir(&self.hints())?;
            file::hint(&self.hint(session), format!("{id}\n").as_bytes())
        };
        if hint().is_err() {
            let _ = file::remove_tree(&self.hints());
        }
    }

    /// An entry is in the queue again: a hook finds it there, unless a newer one about the same session waits.
    pub fn is_back(&self, id: &str) {
        if let Ok(Some(entry)) = self.read(id)
            && let Some(session) = entry.session()
            && self.hinted(&session).is_none()
        {
            self.remember(&session, id);
        }
    }

    /// An entry has left the queue for good.
    pub fn has_left(&self, entry: &QueueEntry) {
        if let Some(session) = entry.session()
            && self.hinted(&session).is_none()
        {
            let _ = file::if_exists(file::forget(&self.hint(&session)));
        }
    }

    pub fn path(&self, id: &str) -> PathBuf {
        self.root.inbox().join(format!("{id}.json"))
    }

    /// The names of all entries in the queue, readable or not.
    pub fn ids(&self) -> Result<Vec<String>> {
        Journal::ids_in(&self.root.inbox())
    }

    /// One entry of the queue; `None`: another process has claimed it.
    pub fn read(&self, id: &str) -> Result<Option<QueueEntry>, UnreadableEntry> {
        read_at(&self.path(id))
    }

    /// Removes what killed programs left half written.
    pub fn sweep(&self) {
        file::sweep_dir(&self.root.inbox(), ".json", file::LEFT_FOR);
    }

    /// The entries in the queue, oldest first, and the files that are not entries. Those stay where they are.
    pub fn waiting(&self) -> Result<(Vec<QueuedEntry>, Vec<UnreadableEntry>)> {
        self.sweep();
        Journal::entries_in(&self.root.inbox())
    }

    /// The entries in a directory, oldest first, and the files there that are not entries.
    pub fn entries_in(dir: &Path) -> Result<(Vec<QueuedEntry>, Vec<UnreadableEntry>)> {
        let (mut waiting, mut unreadable) = (Vec::new(), Vec::new());
        for id in Journal::ids_in(dir)? {
            let path = dir.join(format!("{id}.json"));
            match read_at(&path) {
                Ok(entry) => waiting.extend(entry.map(|entry| QueuedEntry { id, path, entry })),
                Err(file) => unreadable.push(file),
            }
        }
        waiting.sort_by(|a, b| (a.entry.timestamp, &a.id).cmp(&(b.entry.timestamp, &b.id)));
        unreadable.sort_by(|a, b| a.path.cmp(&b.path));
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
            file::rename(&dir.join(&name), &self.root.inbox().join(&name))?;
            file::if_exists(file::remove(&dir.join(format!("{id}.error.json"))))?;
            self.is_back(id);
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

/// The entry in a file; `None` if the file is gone.
pub fn read_at(path: &Path) -> Result<Option<QueueEntry>, UnreadableEntry> {
    let read = file::read(path, CAP).map_err(|e| Error::from(e).context(NOT_AN_ENTRY));
    match read.and_then(|bytes| QueueEntry::parse(&bytes)) {
        Ok(entry) => Ok(Some(entry)),
        Err(_) if !path.exists() => Ok(None),
        Err(error) => Err(UnreadableEntry { path: path.to_path_buf(), error }),
    }
}

#[cfg(test)]
mod tests;
