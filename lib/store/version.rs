//! The version of a store, and of the files that hold a state. A newer one is refused: what a newer program put there would be
//! misread, and overwritten.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::one_line;
use serde::Deserialize;
use serde_json::Value;
use std::io::ErrorKind::{NotFound, TimedOut};
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
        version: Option<Value>,
    }
    let of = format!("\"{}\"", path.display());
    match serde_json::from_slice(bytes) {
        Ok(Head { version: Some(version) }) => match version.as_u64().and_then(|it| u32::try_from(it).ok()) {
            Some(version) => refuse_newer(version, &of),
            None => {
                Err(Error::config(format!("{of} has no version, but {}", one_line(&version.to_string(), 40))))
            }
        },
        _ => Ok(()),
    }
}

/// The same of the store in this directory. Where there is no such file, or its disk does not answer, nothing is refused.
pub fn check(store: &Path) -> Result<()> {
    let path = store.join(PATH);
    match file::read(&path, CAP) {
        Ok(bytes) => check_bytes(&bytes, &format!("\"{}\"", path.display())),
        Err(why) if why.kind() == TimedOut => Ok(()),
        // Another program may have made it since.
        Err(why) if why.kind() == NotFound && !path.is_symlink() => Ok(()),
        Err(why) if path.symlink_metadata().is_ok() => Err(why.into()),
        Err(_) => Ok(()),
    }
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
