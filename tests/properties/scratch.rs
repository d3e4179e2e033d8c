//! A directory for what a target reads from files: one for each thread, empty again for each input.

use crate::base::cli::Reporter;
use crate::base::env::{Env, pretend};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

thread_local! {
    static DIR: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory, its path without symlinks.
    pub fn empty() -> Scratch {
        let path = DIR.with_borrow_mut(|dir| {
            let dir = dir.get_or_insert_with(|| tempfile::tempdir().unwrap());
            dir.path().canonicalize().unwrap()
        });
        for entry in std::fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => std::fs::remove_dir_all(entry.path()).unwrap(),
                false => std::fs::remove_file(entry.path()).unwrap(),
            }
        }
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    /// A file with these bytes, in directories that are made where they are missing.
    #[allow(clippy::disallowed_methods, reason = "nobody reads these files but the target")]
    pub fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A home of its own, and a clock that stands still.
    pub fn env(&self) -> Env {
        let home = self.0.to_str().unwrap();
        pretend(&[("HOME", home), ("AXE_NOW", "2026-02-28T15:04:05Z")])
    }
}

/// Notes that nobody hears.
pub fn quiet() -> Reporter {
    Reporter::new(false).for_sub_agent()
}
