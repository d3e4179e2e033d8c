//! Where a store's parts lie, and how a new store is made.

use crate::base::error::{Error, Result};
use crate::base::file;
use std::io;
use std::path::{Path, PathBuf};

/// Each machine has its own queue and its own state: neither belongs into a history that is shared.
const IGNORED: &[u8] = b"/inbox/\n/.agent-memory/\n";

/// A store's top directory. Asking for its parts makes nothing.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    pub fn at(path: &Path) -> Root {
        Root(path.to_path_buf())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The queue.
    pub(crate) fn inbox(&self) -> PathBuf {
        self.0.join("inbox")
    }

    /// The notes.
    pub(crate) fn topics(&self) -> PathBuf {
        self.0.join("topics")
    }

    /// Notes that were removed, merged into others, or are no longer of use.
    pub(crate) fn archive(&self) -> PathBuf {
        self.0.join("archive")
    }

    /// This machine's own: locks, ledgers, batches.
    pub(crate) fn state(&self) -> PathBuf {
        self.0.join(".agent-memory")
    }

    /// Held by the one run that may be at work on the store, and says whose it is.
    pub(crate) fn run_lock(&self) -> PathBuf {
        self.state().join("run.lock")
    }

    /// Makes what is missing of a store, closed to everyone else, and makes sure that it stays.
    pub(crate) fn make(&self) -> Result<()> {
        let parts = [self.inbox(), self.topics(), self.archive(), self.state()];
        if parts.iter().all(|part| part.is_dir()) {
            return Ok(());
        }
        let failed = |e: io::Error| {
            Error::config(format!("the store \"{}\" cannot be made: {e}", self.0.display()))
                .hint("set storage.root to a directory that can be written; see: memory-config show")
        };
        if self.0.exists() && !self.0.is_dir() {
            return Err(failed(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory")));
        }
        let missing: Vec<&Path> = self.0.ancestors().take_while(|dir| !dir.exists()).collect();
        file::make_private_dir(&self.0).map_err(failed)?;
        // Before the parts: whoever finds them all takes the store for whole.
        let ignore = self.0.join(".gitignore");
        if ignore.symlink_metadata().is_err() {
            file::install(&ignore, IGNORED, 0o600).map_err(failed)?;
        }
        for part in &parts {
            file::make_private_dir(part).map_err(failed)?;
        }
        file::sync_dir(&self.0).map_err(failed)?;
        for above in missing.iter().filter_map(|dir| dir.parent()).filter(|dir| dir.is_dir()) {
            file::sync_dir(above).map_err(failed)?;
        }
        Ok(())
    }
}
