//! What we made in other people's files, so that it can be taken away again: `hooks.json` in the user's directory for
//! state. It belongs to this machine, and to no store.

use crate::base::env::Env;
use crate::base::error::{Error, Result, unwritable};
use crate::base::{file, reach};
use crate::memory::hooks::settings::Before;
use crate::store::version::{VERSION, check_json};
use fs_err as fs;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The settings of each harness as they were.
const CAP: u64 = 64 << 20;
const FILE: &str = "hooks.json";

/// The record, locked: two installers never work at the same time.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct HooksRecord {
    #[serde(default)]
    version: u32,
    /// By the real path of the settings file.
    #[serde(default)]
    before: BTreeMap<String, Before>,
    /// Directories that did not exist.
    #[serde(default)]
    dirs: BTreeSet<PathBuf>,
    #[serde(skip)]
    path: PathBuf,
    /// The lock, until this is dropped.
    #[serde(skip)]
    _lock: Option<fs::File>,
}

/// When `memory-install-hooks` last put hooks somewhere; `None`: never, or hooks got there in another way.
pub fn installed_at(env: &Env) -> Option<Timestamp> {
    let record = env.memory_state_dir().ok()?.join(FILE);
    Timestamp::try_from(fs::metadata(record).ok()?.modified().ok()?).ok()
}

impl HooksRecord {
    pub(super) fn open(env: &Env) -> Result<HooksRecord> {
        let dir = env.memory_state_dir()?;
        file::make_private_dir(&dir)?;
        let lock = file::lock_for_change(&dir.join("hooks.lock"), true)?;
        let path = dir.join(FILE);
        file::sweep(&path);
        let bytes = file::if_exists(file::read(&path, CAP))?.unwrap_or_else(|| b"{}".to_vec());
        check_json(&bytes, &path)?;
        let mut record = serde_json::from_slice::<HooksRecord>(&bytes).map_err(|e| {
            Error::corrupt(format!("\"{}\" cannot be read: {e}", path.display()))
                .hint("remove it: then what our hooks leave empty is taken out of the settings, too")
        })?;
        (record.version, record.path, record._lock) = (VERSION, path, lock);
        Ok(record)
    }

    pub(super) fn before(&self, file: &Path) -> Option<&Before> {
        self.before.get(&*file.to_string_lossy())
    }

    pub(super) fn set_before(&mut self, file: &Path, before: Option<Before>) -> Result<()> {
        let name = file.to_string_lossy().into_owned();
        let is_known = self.before.get(&name) == before.as_ref();
        match before {
            Some(before) => drop(self.before.insert(name, before)),
            None => drop(self.before.remove(&name)),
        }
        if is_known { Ok(()) } else { self.save() }
    }

    pub(super) fn add_dirs(&mut self, dirs: Vec<PathBuf>) -> Result<()> {
        let before = self.dirs.len();
        self.dirs.extend(dirs);
        if self.dirs.len() == before { Ok(()) } else { self.save() }
    }

    /// Removes the directories that we made and that are empty now. Those below `homes` that are not empty belong to
    /// somebody else from here on.
    pub(super) fn tidy(&mut self, homes: &[PathBuf]) -> Result<()> {
        let before = self.dirs.len();
        // The longest first: one may be in another.
        for dir in self.dirs.clone().iter().rev() {
            // A directory with something in it is not removed.
            let is_left = homes.iter().any(|home| dir.starts_with(home));
            let is_gone = reach::writing(dir, |dir| fs::remove_dir(dir).is_ok() || !dir.exists());
            if is_gone.unwrap_or(false) || is_left {
                self.dirs.remove(dir);
            }
        }
        if self.dirs.len() == before { Ok(()) } else { self.save() }
    }

    fn save(&self) -> Result<()> {
        if self.before.is_empty() && self.dirs.is_empty() {
            file::if_exists(file::remove(&self.path))?;
            return Ok(());
        }
        let text = serde_json::to_string_pretty(self).map_err(unwritable)?;
        Ok(file::install(&self.path, format!("{text}\n").as_bytes(), 0o600)?)
    }
}

impl Drop for HooksRecord {
    /// Nothing stays where nothing is installed.
    fn drop(&mut self) {
        if self.before.is_empty() && self.dirs.is_empty() {
            let _ = file::remove(&self.path.with_file_name("hooks.lock"));
            let _ = self.path.parent().map(fs::remove_dir);
        }
    }
}
