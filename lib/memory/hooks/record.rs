//! What we made in other people's files, so that it can be taken away again: `hooks.json` in the user's directory for
//! state. It belongs to this machine, and to no store.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::hooks::settings::Made;
use fs_err as fs;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A few lines for each harness.
const CAP: u64 = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    version: u32,
    /// By the real path of the settings file.
    #[serde(default)]
    files: BTreeMap<String, Made>,
    /// Directories that did not exist.
    #[serde(default)]
    dirs: BTreeSet<PathBuf>,
}

/// The record, locked: two installers never work at the same time.
pub(super) struct Record {
    path: PathBuf,
    content: Content,
    /// The lock, until this is dropped.
    _lock: Option<fs::File>,
}

impl Record {
    pub(super) fn open(env: &Env) -> Result<Record> {
        let dir = env.memory_state_dir()?;
        file::make_private_dir(&dir)?;
        let lock = file::lock_for_change(&dir.join("hooks.lock"), true)?;
        let path = dir.join("hooks.json");
        let content = match file::if_exists(file::read(&path, CAP))? {
            None => Content { version: 1, ..Content::default() },
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                Error::corrupt(format!("\"{}\" cannot be read: {e}", path.display()))
                    .hint("remove it: then what our hooks leave empty is taken out of the settings, too")
            })?,
        };
        Ok(Record { path, content, _lock: lock })
    }

    pub(super) fn made(&self, file: &Path) -> Option<&Made> {
        self.content.files.get(&*file.to_string_lossy())
    }

    /// Saved before the settings are: what is not known to be ours would stay for ever.
    pub(super) fn set_made(&mut self, file: &Path, made: Option<Made>) -> Result<()> {
        let name = file.to_string_lossy().into_owned();
        let old = match made {
            Some(made) => self.content.files.insert(name, made.clone()).as_ref() == Some(&made),
            None => self.content.files.remove(&name).is_none(),
        };
        if old { Ok(()) } else { self.save() }
    }

    pub(super) fn add_dirs(&mut self, dirs: Vec<PathBuf>) -> Result<()> {
        let before = self.content.dirs.len();
        self.content.dirs.extend(dirs);
        if self.content.dirs.len() == before { Ok(()) } else { self.save() }
    }

    /// Removes the directories that we made and that are empty now.
    pub(super) fn tidy(&mut self) -> Result<()> {
        let before = self.content.dirs.len();
        // The longest first: one may be in another.
        let dirs: Vec<PathBuf> = self.content.dirs.iter().rev().cloned().collect();
        for dir in dirs {
            // A directory that is not empty stays, and so does what somebody else put there.
            if fs::remove_dir(&dir).is_ok() || !dir.exists() {
                self.content.dirs.remove(&dir);
            }
        }
        if self.content.dirs.len() != before {
            self.save()?;
        }
        Ok(())
    }

    fn save(&self) -> Result<()> {
        if self.content.files.is_empty() && self.content.dirs.is_empty() {
            file::if_exists(file::remove(&self.path))?;
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.content)
            .map_err(|e| Error::io(format!("cannot write JSON: {e}")))?;
        Ok(file::install(&self.path, format!("{text}\n").as_bytes(), 0o600)?)
    }
}

impl Drop for Record {
    /// Nothing stays where nothing is installed.
    fn drop(&mut self) {
        if self.content.files.is_empty() && self.content.dirs.is_empty() {
            let _ = file::remove(&self.path.with_file_name("hooks.lock"));
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}
