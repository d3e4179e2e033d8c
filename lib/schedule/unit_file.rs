//! The schedulers' files. Only those that we wrote are replaced or removed.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::lossy;
use std::io::Write;
use std::path::Path;

/// Part of every file that we write.
const MARK: &str = "Written by memory-install-cron";
/// Ours have a few kilobytes.
const CAP: u64 = 1 << 20;

/// The text of a file of ours; `None` if there is none. A file that we did not write is an error.
pub(super) fn ours(path: &Path) -> Result<Option<String>> {
    let read = file::if_exists(file::read(path, CAP));
    let Some(bytes) = read.map_err(|e| Error::from(e).hint("move it away"))? else { return Ok(None) };
    let text = lossy(bytes).0;
    if text.contains(MARK) {
        return Ok(Some(text));
    }
    Err(Error::refused(format!(
        "\"{}\" was not written by memory-install-cron and is not changed",
        path.display()
    ))
    .hint("move it away"))
}

/// Is it a file that we did not write, and that mentions a path in `dir`?
pub(super) fn is_foreign_and_names(path: &Path, dir: &Path) -> bool {
    file::read(path, CAP).is_ok_and(|bytes| {
        let text = lossy(bytes).0;
        !text.contains(MARK) && text.contains(&*dir.to_string_lossy())
    })
}

/// Writes the file unless it is already there. Returns whether it wrote.
pub(super) fn write(path: &Path, text: &str) -> Result<bool> {
    file::sweep_aged(path, file::LEFT_BEHIND, |left| {
        text.as_bytes().starts_with(left) || String::from_utf8_lossy(left).contains(MARK)
    });
    match ours(path)? {
        Some(old) if old == text => return Ok(false),
        Some(_) => file::replace(path, |new| new.write_all(text.as_bytes()))?,
        None => {
            file::make_dir(path.parent().unwrap_or(path))?;
            file::install(path, text.as_bytes(), 0o644)?;
        }
    }
    Ok(true)
}
