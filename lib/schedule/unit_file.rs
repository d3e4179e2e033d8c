//! The schedulers' files: only those that we wrote are replaced or removed.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::lossy;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Stands in every file that we write.
const MARK: &str = "Written by memory-install-cron";
/// Ours have some kilobytes.
const CAP: u64 = 1 << 20;

/// The text of a file of ours; `None` if there is none. Somebody else's is an error.
pub(crate) fn ours(path: &Path) -> Result<Option<String>> {
    let text = match file::read(path, CAP) {
        Ok(bytes) => lossy(bytes).0,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(e.to_string()).hint("move it away")),
    };
    if text.contains(MARK) {
        return Ok(Some(text));
    }
    Err(Error::refused(format!("\"{}\" was not written by memory-install-cron: left alone", path.display()))
        .hint("move it away"))
}

/// Is it a file that we did not write, and that names something in `dir`?
pub(crate) fn is_anothers_with(path: &Path, dir: &Path) -> bool {
    file::read(path, CAP).is_ok_and(|bytes| {
        let text = lossy(bytes).0;
        !text.contains(MARK) && text.contains(&*dir.to_string_lossy())
    })
}

/// Writes what is not there yet. Did it have to?
pub(crate) fn write(path: &Path, text: &str) -> Result<bool> {
    let failed = |e: io::Error| Error::io(e.to_string());
    file::sweep_aged(path, file::LEFT_BEHIND, |left| {
        text.as_bytes().starts_with(left) || String::from_utf8_lossy(left).contains(MARK)
    });
    match ours(path)? {
        Some(old) if old == text => return Ok(false),
        Some(_) => file::replace(path, |new| io::Write::write_all(new, text.as_bytes())).map_err(failed)?,
        None => {
            file::make_dir(path.parent().unwrap_or(path)).map_err(failed)?;
            file::install(path, text.as_bytes(), 0o644).map_err(failed)?;
        }
    }
    Ok(true)
}
