//! A storage of a host's own: notes, the queue and the changes that wait, in memory. A database would look the same.

#![allow(clippy::disallowed_methods, reason = "an example depends on nothing of the crate's own")]

use axe::notes::{Broken, Persistence, Revision, Version};
use axe::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Files by their paths.
#[derive(Default)]
pub struct Memory {
    files: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
    is_held: Arc<AtomicBool>,
}

/// While it is there, nobody else changes anything.
pub struct Held(Arc<AtomicBool>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Memory {
    pub fn files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Vec<u8>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Persistence for Memory {
    type Lock = Held;

    fn lock(&self) -> Result<Held> {
        while self.is_held.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        Ok(Held(self.is_held.clone()))
    }

    fn names(&self, dir: &str, end: &str) -> Result<Vec<OsString>> {
        let files = self.files();
        let inside = files.keys().filter(|path| path.parent() == Some(Path::new(dir)));
        let names = inside.filter_map(|path| path.file_name()).map(OsStr::to_owned);
        Ok(names.filter(|name| name.as_encoded_bytes().ends_with(end.as_bytes())).collect())
    }

    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Broken> {
        Ok(self.files().get(path).cloned())
    }

    /// A database would do this in one transaction.
    fn write(&self, _lock: &Held, change: &[Revision]) -> Result<()> {
        let mut files = self.files();
        let mut new = files.clone();
        for Revision { before, after } in change {
            let old = before.as_ref().and_then(|before| new.remove(&before.path()));
            let is_free = after.as_ref().is_none_or(|after| !new.contains_key(&after.path()));
            if old.as_deref() != before.as_ref().map(Version::bytes) || !is_free {
                return Err(Error::new(ErrorKind::Conflict, "a note is not as the change found it"));
            }
            new.extend(after.iter().map(|after| (after.path(), after.bytes().to_vec())));
        }
        *files = new;
        Ok(())
    }
}
