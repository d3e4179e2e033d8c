//! The version of a store, and of the files that hold a state. A newer one is refused: what a newer program put there would be
//! misread, and overwritten.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::one_line;
use serde::Deserialize;
use std::path::Path;

/// What this program writes. It reads no greater one, and takes what has none for the first.
pub const VERSION: u32 = 1;
/// The file below a store that has it. It is synced: a remote is known by it as a store of notes.
pub const PATH: &str = ".agent-memory-version";
/// The largest such file, in bytes.
const CAP: u64 = 4096;

/// `of`: whose version it is.
///
/// # Errors
/// `Config`: it is a later one.
fn refuse_newer(version: u32, of: &str) -> Result<()> {
    if version <= VERSION {
        return Ok(());
    }
    let what = format!("{of} is of version {version}; this program knows version {VERSION}");
    Err(Error::config(what).hint("a newer program wrote it: update this one"))
}

/// The same of a file with a JSON object, whatever else is in it.
pub fn check_json(bytes: &[u8], path: &Path) -> Result<()> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        version: u32,
    }
    let head = serde_json::from_slice(bytes);
    head.map_or(Ok(()), |Head { version }| refuse_newer(version, &format!("\"{}\"", path.display())))
}

/// The same of the store in this directory. Where the file cannot be read, nothing else of the store can be, either.
pub fn check(store: &Path) -> Result<()> {
    let path = store.join(PATH);
    file::read(&path, CAP).map_or(Ok(()), |bytes| check_bytes(&bytes, &format!("\"{}\"", path.display())))
}

/// The same of what is in such a file.
pub fn check_bytes(bytes: &[u8], of: &str) -> Result<()> {
    let text = String::from_utf8_lossy(bytes);
    let version = text.trim().parse().map_err(|_| {
        Error::config(format!("{of} has no version, but \"{}\"", one_line(text.trim(), 40)))
            .hint(format!("write {VERSION} into it"))
    })?;
    refuse_newer(version, of)
}

/// Makes the file, unless there is one.
pub fn put(store: &Path) -> Result<()> {
    let path = store.join(PATH);
    if path.symlink_metadata().is_err() {
        file::install(&path, format!("{VERSION}\n").as_bytes(), 0o600)?;
    }
    Ok(())
}
