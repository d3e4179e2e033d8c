//! The directory of the queue. Putting takes no lock: every entry is a file of its own, whole from its first moment.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::store::journal::entry::QueueEntry;
use crate::store::place::Root;
use std::io;
use std::path::{Path, PathBuf};

/// The largest entry that is read, in bytes: the largest body, with every character escaped.
const CAP: u64 = 8 << 20;

pub(crate) struct Journal {
    root: Root,
}

/// What became of an entry that was to be queued.
#[derive(Debug)]
pub(crate) enum Put {
    Queued(Waiting),
    /// The session waits already; this is its entry.
    Waits(Waiting),
}

impl Put {
    /// The entry that is in the queue now.
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

/// A file in the queue that is no entry, and all that is wrong with it.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) path: PathBuf,
    pub(crate) faults: Vec<String>,
}

impl Journal {
    pub(crate) fn at(root: &Root) -> Journal {
        Journal { root: root.clone() }
    }

    /// Queues an entry. When this returns, the entry outlives a power cut.
    pub(crate) fn put(&self, entry: &QueueEntry) -> Result<Put> {
        entry.check().map_err(|faults| Error::usage(format!("not a queue entry: {}", faults.join("; "))))?;
        self.root.make()?;
        let inbox = self.root.inbox();
        let stamp = format!("{:.3}", entry.timestamp).replace(':', "-");
        // Entries about one session bear one mark, so that it is found among thousands without reading them.
        let mark = entry.session_mark().unwrap_or_default();
        if !mark.is_empty()
            && let Some(waiting) = self.waiting_session(entry, &mark)
        {
            return Ok(Put::Waits(waiting));
        }
        let failed = |e: io::Error| Error::io(e.to_string());
        let text = serde_json::to_string_pretty(&entry.json())
            .map_err(|e| Error::io(format!("cannot write JSON: {e}")))?;
        loop {
            let random = file::random58(8 - mark.len()).map_err(failed)?;
            let id = format!("{stamp}_{}_{mark}{random}", entry.harness);
            let path = inbox.join(format!("{id}.json"));
            if !path.exists() {
                file::install(&path, format!("{text}\n").as_bytes(), 0o600).map_err(failed)?;
                return Ok(Put::Queued(Waiting { id, path, entry: entry.clone() }));
            }
        }
    }

    /// The entry about the same session that waits already; the oldest, should there be several.
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

    /// What waits, oldest first, and the files that are no entries. Those are left where they are.
    pub(crate) fn waiting(&self) -> Result<(Vec<Waiting>, Vec<Unreadable>)> {
        file::sweep_dir(&self.root.inbox(), ".json", file::LEFT_FOR);
        Journal::entries_in(&self.root.inbox())
    }

    /// The entries in a directory, oldest first, and the files there that are none.
    pub(crate) fn entries_in(dir: &Path) -> Result<(Vec<Waiting>, Vec<Unreadable>)> {
        let (mut waiting, mut unreadable) = (Vec::new(), Vec::new());
        for id in Journal::ids_in(dir)? {
            let path = dir.join(format!("{id}.json"));
            match read(&path) {
                Ok(entry) => waiting.push(Waiting { id, path, entry }),
                // Claimed since the directory was read.
                Err(_) if !path.exists() => {}
                Err(faults) => unreadable.push(Unreadable { path, faults }),
            }
        }
        waiting.sort_by(|a, b| (a.entry.timestamp, &a.id).cmp(&(b.entry.timestamp, &b.id)));
        unreadable.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((waiting, unreadable))
    }

    /// The ids of what has failed for good.
    pub(crate) fn failed(&self) -> Result<Vec<String>> {
        let mut ids = Journal::ids_in(&self.root.inbox().join(".failed"))?;
        ids.retain(|id| !id.ends_with(".error"));
        Ok(ids)
    }

    /// Puts what has failed for good back into the queue.
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

    /// The ids of all entries in a directory, whether they can be read or not.
    pub(crate) fn ids_in(dir: &Path) -> Result<Vec<String>> {
        let names = names(dir)?;
        Ok(names.iter().map(|name| id_of(name)).collect())
    }
}

/// The names of the queue's files; none where there is no queue yet.
fn names(inbox: &Path) -> io::Result<Vec<String>> {
    let entries = match fs_err::read_dir(inbox) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| name.ends_with(".json") && !name.starts_with('.')).collect())
}

fn id_of(name: &str) -> String {
    name.strip_suffix(".json").unwrap_or(name).to_owned()
}

fn read(path: &Path) -> Result<QueueEntry, Vec<String>> {
    let bytes = file::read(path, CAP).map_err(|e| vec![e.to_string()])?;
    QueueEntry::parse(&bytes)
}

#[cfg(test)]
mod tests;
