//! The files of the memories that programs keep by themselves. What is new in one is queued like a session.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::reach;
use crate::harness::document::MEMORY_FILE;
use crate::harness::spec::{BuiltInMemory, Spec};
use crate::harness::turn::Turn;
use crate::harness::{self, HARNESSES, built_in};
use crate::memory::capture::context;
use crate::memory::hash::hash;
use crate::store::journal::entry::{CaptureContext, QueueEntry};
use crate::store::ledger::Sessions;
use std::path::{Path, PathBuf};

/// How many bytes of such a file no model has been shown, and whether it has some that an agent added.
pub fn unread(entry: &QueueEntry, file: &Path, sessions: &Sessions) -> Result<(usize, bool)> {
    let known = entry.ledger_key().and_then(|key| sessions.get(&key));
    let mut unread = 0;
    let report = harness::read(&MEMORY_FILE, file, &mut |turn: Turn| {
        let is_known = known.is_some_and(|known| known.marks.contains(&hash(&turn.id)));
        unread += if is_known { 0 } else { turn.text.len() };
        Ok(())
    })?;
    Ok((unread, report.has_added))
}

/// Where the notes of such a file belong: to its project; if that is not known, to a place of its own, and never everywhere.
pub fn context_of(memory: &BuiltInMemory, file: &Path, env: &Env) -> CaptureContext {
    let known = context(built_in::project(memory, file, env));
    if known.repo.is_some() {
        return known;
    }
    let dir = file.parent().unwrap_or(file);
    let repo = Some(format!("local:{}", dir.display()));
    CaptureContext { cwd: Some(dir.to_path_buf()), repo, branch: None, past: false }
}

/// The program whose own memory this file is of, and the file's path there. Symlinks of `file` are resolved.
pub fn whose(file: &Path, env: &Env) -> Option<(&'static Spec, &'static BuiltInMemory, PathBuf)> {
    HARNESSES.iter().find_map(|spec| {
        let memory = spec.memory.as_ref()?;
        let is_it = |known: &PathBuf| reach::real(known).as_deref() == Some(file);
        Some((*spec, memory, built_in::files(memory, env).into_iter().find(is_it)?))
    })
}
