//! The id of one run, by which the ledger and the turns on disk name it.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// When the run began, and six random characters: `20260228T150405Z-a1B2c3`. Ids sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    pub fn new(env: &Env) -> Result<RunId> {
        Ok(RunId(format!("{}-{}", env.now().strftime("%Y%m%dT%H%M%SZ"), file::random58(6)?)))
    }

    /// An id that a person typed. It becomes part of a path.
    pub fn parse(text: &str) -> Result<RunId> {
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
        match (1..=64).contains(&text.len()) && text.chars().all(is_id) {
            true => Ok(RunId(text.to_owned())),
            false => Err(Error::usage(format!("not the id of a run: \"{}\"", text.escape_debug()))
                .hint("see them with: axe runs")),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `runs/` in the data directory: the ledger, the turns of unfinished runs, what was spent. Creates nothing.
pub fn runs_dir(env: &Env) -> Result<PathBuf> {
    Ok(env.data_dir()?.join("runs"))
}

/// Makes `runs/` for a file in it. Only the user can read it; the data directory has the usual mode.
pub fn make_dir_of(path: &Path) -> io::Result<()> {
    let Some(runs) = path.parent() else { return Ok(()) };
    runs.parent().map_or(Ok(()), file::make_dir)?;
    file::make_private_dir(runs)
}
