//! The queue's directory. Adding an entry takes no lock: each one is a file of its own that appears complete.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::store::journal::entry::{NOT_AN_ENTRY, QueueEntry};
use crate::store::place::Root;
use std::io;
use std::path::{Path, PathBuf};

/// The largest entry that is read, in bytes: the largest body, with every character escaped.
const CAP: u64 = 8 << 20;

pub(crate) struct Journal {
    root: Root,
}

/// The outcome of adding an entry to the queue.
#[derive(Debug)]
pub(crate) enum Put {
    Queued(Waiting),
    /// The session was in the queue already; this is its entry.
    Waits(Waiting),
}

impl Put {
    /// The entry that is now in the queue.
    pub(crate) fn waiting(self) -> Waiting {
        let (Put::Queued(waiting) | Put::Waits(waiting)) = self;
        waiting
    }
}

/// An entry that nobody has claimed.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The file's name without `.json`.
    pub(crate) id: String,
    pub(crate) path: PathBuf,
    pub(crate) entry: QueueEntry,
}

/// A file in the queue that cannot be read as an entry. The error's message begins with "not a queue entry".
#[derive(Debug)]
pub(crate) struct UnreadableEntry {
    pub(crate) path: PathBuf,
    pub(crate) error: Error,
}

impl Journal {
    pub(crate) fn at(root: &Root) -> Journal {
        Journal { root: root.clone() }
    }

    /// Adds an entry to the queue. Once this returns, the entry survives a power cut.
    pub(crate) fn put(&self, entry: &QueueEntry) -> Result<Put> {
        entry.check()?;
        self.root.make()?;
        let inbox = self.root.inbox();
        let stamp = format!("{:.3}", entry.timestamp).replace(':', "-");
        // Entries for one session share a mark in their names, so that it is found without reading all files.
        let mark = entry.session_mark().unwrap_or_default();
        if !mark.is_empty()
            && let Some(waiting) = self.waiting_session(entry, &mark)
        {
            return Ok(Put::Waits(waiting));
        }
        let text = serde_json::to_string_pretty(&entry.json())
            .map_err(|e| Error::io(format!("cannot write JSON: {e}")))?;
        loop {
            let random = file::random58(8 - mark.len())?;
            let id = format!("{stamp}_{}_{mark}{random}", entry.harness);
            let path = inbox.join(format!("{id}.json"));
            if !path.exists() {
                file::install(&path, format!("{text}\n").as_bytes(), 0o600)?;
                return Ok(Put::Queued(Waiting { id, path, entry: entry.clone() }));
            }
        }
    }

    /// The oldest entry for the same session that is in the queue already.
    fn waiting_session(&self, entry: &QueueEntry, mark: &str) -> Option<Waiting> {
        let start = format!("_{}_{mark}", entry.harness);
        let session = entry.session();
        let inbox = self.root.inbox();
        let mut names = names(&inbox).ok()?;
        names.retain(|name| name.contains(&start));
        names.sort();
        let same = names.into_iter().filter_map(|name| {
            let path = inbox.join(&name);
            let entry = read(&path).ok()?;
            Some(Waiting { id: id_of(&name), path, entry })
        });
        same.into_iter().find(|waiting| waiting.entry.session() == session)
    }

    /// The entries in the queue, oldest first, and the files that are not entries. Those stay where they are.
    pub(crate) fn waiting(&self) -> Result<(Vec<Waiting>, Vec<UnreadableEntry>)> {
        file::sweep_dir(&self.root.inbox(), ".json", file::LEFT_FOR);
        Journal::entries_in(&self.root.inbox())
    }

    /// The entries in a directory, oldest first, and the files there that are not entries.
    pub(crate) fn entries_in(dir: &Path) -> Result<(Vec<Waiting>, Vec<UnreadableEntry>)> {
        let (mut waiting, mut unreadable) = (Vec::new(), Vec::new());
        for id in Journal::ids_in(dir)? {
            let path = dir.join(format!("{id}.json"));
            match read(&path) {
                Ok(entry) => waiting.push(Waiting { id, path, entry }),
                // Another process claimed it since the directory was read.
                Err(_) if !path.exists() => {}
                Err(error) => unreadable.push(UnreadableEntry { path, error }),
            }
        }
        waiting.sort_by(|a, b| (a.entry.timestamp, &a.id).cmp(&(b.entry.timestamp, &b.id)));
        unreadable.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((waiting, unreadable))
    }

    /// The ids of the entries that have failed for good.
    pub(crate) fn failed(&self) -> Result<Vec<String>> {
        let mut ids = Journal::ids_in(&self.root.inbox().join(".failed"))?;
        ids.retain(|id| !id.ends_with(".error"));
        Ok(ids)
    }

    /// Puts failed entries back into the queue.
    pub(crate) fn retry(&self, failed: &[String]) -> Result<()> {
        let dir = self.root.inbox().join(".failed");
        for id in failed {
            let name = format!("{id}.json");
            let moved = file::rename(&dir.join(&name), &self.root.inbox().join(&name));
            let removed = moved.and_then(|()| match file::remove(&dir.join(format!("{id}.error.json"))) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            });
            removed?;
        }
        Ok(())
    }

    /// The ids of all entries in a directory, readable or not.
    pub(crate) fn ids_in(dir: &Path) -> Result<Vec<String>> {
        let names = names(dir)?;
        Ok(names.iter().map(|name| id_of(name)).collect())
    }
}

/// The names of the queue's files; empty if there is no queue yet.
fn names(inbox: &Path) -> io::Result<Vec<String>> {
    let entries = match fs_err::read_dir(inbox) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    // A queue that cannot be read to its end is not one without entries.
    let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    let names = names.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| name.ends_with(".json") && !name.starts_with('.')).collect())
}

fn id_of(name: &str) -> String {
    name.strip_suffix(".json").unwrap_or(name).to_owned()
}

fn read(path: &Path) -> Result<QueueEntry> {
    let bytes = file::read(path, CAP).map_err(|e| Error::from(e).context(NOT_AN_ENTRY))?;
    QueueEntry::parse(&bytes)
}

#[cfg(test)]
mod tests;
