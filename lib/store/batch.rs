//! Batches: what a run has under way, with everything that it found out so far; memory-consolidate's hold the queue
//! entries that it has claimed. A directory each, so that a crash leaves it to the next run.

use crate::base::error::{Error, Result, unwritable};
use crate::base::file;
use crate::base::text::one_line;
use crate::store::journal::{Journal, QueuedEntry};
use crate::store::ledger::{Versioned, from_json, unreadable};
use crate::store::place::Root;
use crate::store::version::VERSION;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The largest file of ours in a batch that is read whole, in bytes.
const CAP: u64 = 256 << 20;
const STATE: &str = "batch.json";
const MEND: &str = "nothing to do: the next run sets the batch aside, and its queue entries wait again";
/// What every batch's id begins with. A session that begins with one is our own.
const PREFIX: &str = "batch__";
/// Characters of base58 in an id.
const DIGITS: usize = 12;
/// What the name of a batch that was set aside ends with.
const ASIDE: &str = ".unreadable";

pub struct Batches {
    root: Root,
    dir: PathBuf,
}

pub struct Batch {
    pub id: String,
    pub dir: PathBuf,
    root: Root,
}

impl Batches {
    /// What memory-consolidate has claimed.
    pub fn of_queue(root: &Root) -> Batches {
        Batches { root: root.clone(), dir: root.batches() }
    }

    /// What memory-defrag has under way, and its last one, which can be taken back.
    pub fn of_defrag(root: &Root) -> Batches {
        Batches { root: root.clone(), dir: root.state().join("defrag") }
    }

    pub fn begin(&self) -> Result<Batch> {
        let id = format!("{PREFIX}{}", file::random58(DIGITS)?);
        let batch = self.batch(id);
        file::make_private_dir(&batch.claims())?;
        Ok(batch)
    }

    fn batch(&self, id: String) -> Batch {
        Batch { dir: self.dir.join(&id), id, root: self.root.clone() }
    }

    /// Those that are there, by id.
    pub fn all(&self) -> Result<Vec<Batch>> {
        self.listed(is_id)
    }

    fn listed(&self, is_one: impl Fn(&str) -> bool) -> Result<Vec<Batch>> {
        let mut ids = Vec::new();
        for dir in file::if_exists(fs_err::read_dir(&self.dir))?.into_iter().flatten() {
            ids.extend(dir?.file_name().into_string().ok().filter(|name| is_one(name)));
        }
        ids.sort();
        Ok(ids.into_iter().map(|id| self.batch(id)).collect())
    }

    /// Those that were set aside.
    pub fn set_aside(&self) -> Result<Vec<Batch>> {
        self.listed(|name| name.strip_suffix(ASIDE).is_some_and(is_id))
    }

    pub fn named(&self, id: &str) -> Option<Batch> {
        is_id(id).then(|| self.batch(id.to_owned())).filter(|batch| batch.dir.is_dir())
    }
}

fn is_id(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.len() == DIGITS && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// A text bears the id of a batch, as our prompts do.
pub fn bears_an_id(text: &str) -> bool {
    text.match_indices(PREFIX).any(|(at, _)| text.get(at..at + PREFIX.len() + DIGITS).is_some_and(is_id))
}

impl Batch {
    /// The directory of what it has claimed.
    pub fn claims(&self) -> PathBuf {
        self.dir.join("claimed")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Takes an entry out of the queue; `false` if somebody else has.
    pub fn claim(&self, id: &str) -> Result<bool> {
        let claim = self.claims().join(format!("{id}.json"));
        Ok(file::if_exists(file::rename(&Journal::at(&self.root).path(id), &claim))?.is_some())
    }

    /// The batch of this id that the same program began.
    pub fn sibling(&self, id: &str) -> Option<Batch> {
        let dir = self.dir.with_file_name(id);
        (is_id(id) && dir.is_dir()).then(|| Batch { id: id.to_owned(), dir, root: self.root.clone() })
    }

    /// What is claimed, oldest first.
    pub fn claimed(&self) -> Result<Vec<QueuedEntry>> {
        Journal::entries_in(&self.claims()).map(|(claimed, _)| claimed)
    }

    /// Moves an entry out of the batch. One that has gone already stays where it went.
    fn release(&self, id: &str, to: &Path) -> Result<()> {
        file::make_private_dir(to)?;
        // A saved state is a file, and may have been tampered with: an id is one name.
        if id.contains('/') || id.starts_with('.') {
            return Err(Error::corrupt(format!("\"{}\" is not the id of a queue entry", one_line(id, 80))));
        }
        let name = format!("{id}.json");
        file::if_exists(file::rename(&self.claims().join(&name), &to.join(&name)))?;
        Ok(())
    }

    /// Back to the queue.
    pub fn put_back(&self, id: &str) -> Result<()> {
        self.release(id, &self.root.inbox())
    }

    pub fn put_all_back(&self) -> Result<()> {
        // By name, so that an entry that has been damaged meanwhile goes back too.
        for id in Journal::ids_in(&self.claims())? {
            self.put_back(&id)?;
        }
        Ok(())
    }

    pub fn processed(&self, id: &str) -> Result<()> {
        self.release(id, &self.root.inbox().join(".processed"))?;
        file::if_exists(file::forget(&Journal::at(&self.root).kept(id)))?;
        Ok(())
    }

    /// Out of the queue for good, with a word why.
    pub fn failed(&self, id: &str, error: &str, tries: u32, now: Timestamp) -> Result<()> {
        let dir = self.root.inbox().join(".failed");
        file::make_private_dir(&dir)?;
        let why = json!({"entry": id, "error": error, "tries": tries, "at": now.to_string()});
        let path = dir.join(format!("{id}.error.json"));
        file::install(&path, format!("{why:#}\n").as_bytes(), 0o600)?;
        self.release(id, &dir)
    }

    /// Saves where the batch is. From here on a crash is taken up there.
    pub fn save(&self, state: &impl Serialize) -> Result<()> {
        self.write_json(STATE, &Versioned { version: VERSION, value: state })
    }

    /// Where the batch is, or its `Progress` alone; `None`: a crash came before it was saved for the first time.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let path = self.file(STATE);
        // One that cannot be looked at for a moment is there: its reply was paid for.
        let bytes = file::if_exists(file::read(&path, CAP))?;
        bytes.map(|bytes| from_json(&bytes, &path, MEND)).transpose()
    }

    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(value).map_err(unwritable)?;
        self.write(name, &text)
    }

    pub fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.file(name);
        serde_json::from_slice(&file::read(&path, CAP)?).map_err(|e| unreadable(&e, &path, MEND))
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        Ok(file::install(&self.file(name), bytes, 0o600)?)
    }

    pub fn read(&self, name: &str) -> Result<Vec<u8>> {
        Ok(file::read(&self.file(name), CAP)?)
    }

    /// Gives up a batch whose state cannot be read: its entries go back to the queue, and what it holds besides, such as
    /// replies, is kept under another name, which is returned.
    pub fn set_aside(&self) -> Result<PathBuf> {
        self.put_all_back()?;
        let aside = self.dir.with_file_name(format!("{}{ASIDE}", self.id));
        file::rename(&self.dir, &aside)?;
        Ok(aside)
    }

    /// Removes the batch. Entries that are still claimed go back to the queue first.
    pub fn end(&self) -> Result<()> {
        // First of all it is forgotten how far it was: half of its entries are not to be carried on with.
        file::if_exists(file::remove(&self.file(STATE)))?;
        self.put_all_back()?;
        Ok(file::remove_tree(&self.dir)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::journal::entry::QueueEntry;

    fn store() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        root.make().unwrap();
        (dir, root)
    }

    /// Puts an entry into the queue, and gives it as it waits there.
    fn waiting(root: &Root, title: &str) -> QueuedEntry {
        let text = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "manual",
            "retrieval": {"method": "inline", "title": title, "body": "b", "tags": [], "scope": "global",
                "threadId": null},
            "context": {"cwd": "/w", "repo": null}});
        let entry = QueueEntry::parse(text.to_string().as_bytes()).unwrap();
        Journal::at(root).put(&entry).unwrap().0
    }

    #[test]
    fn a_claimed_entry_is_in_one_batch_and_goes_where_it_is_sent() {
        let (_dir, root) = store();
        let batches = Batches::of_queue(&root);
        let (one, two) = (batches.begin().unwrap(), batches.begin().unwrap());
        let all = ["a", "b", "c"].map(|title| waiting(&root, title));
        for entry in &all {
            assert!(one.claim(&entry.id).unwrap());
            assert!(!two.claim(&entry.id).unwrap(), "somebody else has it");
        }
        assert_eq!(one.claimed().unwrap().len(), 3);
        one.processed(&all[0].id).unwrap();
        one.failed(&all[1].id, "why", 3, Timestamp::UNIX_EPOCH).unwrap();
        // Once more, as after a crash.
        one.processed(&all[0].id).unwrap();
        one.failed(&all[1].id, "why", 3, Timestamp::UNIX_EPOCH).unwrap();
        let name = |entry: &QueuedEntry| format!("{}.json", entry.id);
        assert!(root.inbox().join(".processed").join(name(&all[0])).exists());
        assert!(root.inbox().join(".failed").join(name(&all[1])).exists());
        let why = root.inbox().join(".failed").join(format!("{}.error.json", all[1].id));
        assert!(fs_err::read_to_string(why).unwrap().contains("\"tries\": 3"));
        one.end().unwrap();
        assert!(root.inbox().join(name(&all[2])).exists() && !one.dir.exists());
    }

    #[test]
    fn an_end_that_is_cut_short_leaves_no_state_to_carry_on_with() {
        let (_dir, root) = store();
        let batch = Batches::of_queue(&root).begin().unwrap();
        let entry = waiting(&root, "a");
        batch.claim(&entry.id).unwrap();
        batch.save(&json!({"state": "x"})).unwrap();
        // A directory in the entry's place: it cannot be put back.
        fs_err::create_dir(&entry.path).unwrap();
        assert!(batch.end().is_err());
        assert_eq!(batch.load::<serde_json::Value>().unwrap(), None);
        fs_err::remove_dir(&entry.path).unwrap();
        batch.end().unwrap();
        assert!(entry.path.exists() && Batches::of_queue(&root).all().unwrap().is_empty());
    }

    #[test]
    fn only_directories_with_ids_are_batches() {
        let (_dir, root) = store();
        let batches = Batches::of_queue(&root);
        assert!(batches.all().unwrap().is_empty());
        let batch = batches.begin().unwrap();
        for other in ["batch__x", "notes", "batch__abcdefghij-l"] {
            file::make_private_dir(&root.state().join("batches").join(other)).unwrap();
            assert!(batches.named(other).is_none(), "{other}");
        }
        assert!(batches.named("../../x").is_none() && batches.named(&batch.id).is_some());
        assert_eq!(batches.all().unwrap().len(), 1);
    }

    #[test]
    fn an_id_is_found_in_a_text() {
        for (text, is_found) in [
            ("batch: batch__abcdefghijkl\n", true),
            ("xbatch__ABC123abc123y", true),
            ("batch__ batch__abcdefghijkl", true),
            ("batch__abcdefghijk", false),
            ("batch__abcdefghijk-", false),
            ("batch__ääääää", false),
            ("", false),
        ] {
            assert_eq!(bears_an_id(text), is_found, "{text:?}");
        }
    }

    #[test]
    fn a_damaged_state_is_named() {
        let (_dir, root) = store();
        let batch = Batches::of_queue(&root).begin().unwrap();
        batch.write(STATE, b"{\"state\":").unwrap();
        let why = batch.load::<serde_json::Value>().unwrap_err().line();
        assert!(why.contains(STATE), "{why}");
    }
}
