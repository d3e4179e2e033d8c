//! The directories of a store, and how a new store is created.

use crate::base::error::{Error, Result, reason};
use crate::base::file;
use crate::store::version;
use std::io;
use std::path::{Path, PathBuf};

/// The `.gitignore` of a store. Each machine has its own queue and its own state: neither belongs in the history.
const IGNORED: &[u8] = b"/inbox/\n/.agent-memory/\n";

/// The top directory of a store. The methods that return paths create nothing.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    pub fn at(path: &Path) -> Root {
        Root(path.to_path_buf())
    }

    /// # Errors
    /// `Config`: a newer program wrote the store.
    pub fn open(path: &Path) -> Result<Root> {
        version::check(path)?;
        Ok(Root::at(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What tells this store from another, should a file of it be copied.
    pub fn mark(&self) -> &[u8] {
        self.0.as_os_str().as_encoded_bytes()
    }

    /// The queue.
    pub fn inbox(&self) -> PathBuf {
        self.0.join("inbox")
    }

    /// The notes.
    pub fn topics(&self) -> PathBuf {
        self.0.join("topics")
    }

    /// Notes that were removed, were merged into others, or are no longer useful.
    pub fn archive(&self) -> PathBuf {
        self.0.join("archive")
    }

    /// Changes that wait for a person. Made with the first of them.
    pub fn proposals(&self) -> PathBuf {
        self.0.join("proposals")
    }

    /// What belongs to this machine: locks, ledgers, batches.
    pub fn state(&self) -> PathBuf {
        self.0.join(".agent-memory")
    }

    /// What memory-consolidate has claimed.
    pub fn batches(&self) -> PathBuf {
        self.state().join("batches")
    }

    /// The lock of the one run that may work on the store. Its content says who holds it.
    pub fn run_lock(&self) -> PathBuf {
        self.state().join("run.lock")
    }

    /// Writes the `.gitignore` if there is none.
    pub fn put_ignored(&self) -> io::Result<()> {
        let ignore = self.0.join(".gitignore");
        if ignore.symlink_metadata().is_err() { file::install(&ignore, IGNORED, 0o600) } else { Ok(()) }
    }

    /// Creates the missing directories, readable only by the owner.
    pub fn make(&self) -> Result<()> {
        let parts = [self.inbox(), self.topics(), self.archive(), self.state()];
        if parts.iter().all(|part| part.is_dir()) {
            // They may have been made by a program of an earlier version, or copied. The root is the user's own choice.
            for dir in parts.iter().chain([&self.proposals()]) {
                let _ = file::make_private(dir);
            }
            return Ok(());
        }
        let failed = |e: io::Error| {
            Error::config(format!("the store \"{}\" cannot be created: {}", self.0.display(), reason(&e)))
                .hint("set storage.root to a directory that you can write to; see: memory-config show")
        };
        if self.0.exists() && !self.0.is_dir() {
            return Err(failed(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory")));
        }
        file::make_private_dir(&self.0).map_err(failed)?;
        // Before the directories: if they all exist, the store counts as complete.
        self.put_ignored().map_err(failed)?;
        version::put(&self.0)?;
        for part in &parts {
            file::make_private_dir(part).map_err(failed)?;
        }
        Ok(())
    }
}
