//! Temporary files that killed programs have left behind.

use crate::base::file::open::{id_of, read};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A temporary file of this age is a leftover: a write takes moments. For files of which only the name is known; rsync
/// names its own in the same way.
pub const LEFT_FOR: Duration = Duration::from_secs(60 * 60);
/// The same for files whose content shows that they are ours.
pub const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// Removes the temporary name of an open file, if the rename did not happen.
pub(super) fn remove_twin(path: &Path, file: &std::fs::File) {
    if let Some(leftover) = twin(path, file) {
        let _ = fs::remove_file(leftover);
    }
}

/// The temporary name of an open file beside `path`.
pub(super) fn twin(path: &Path, file: &std::fs::File) -> Option<PathBuf> {
    let open = file.metadata().ok()?;
    let is_open = |entry: &PathBuf| entry.symlink_metadata().is_ok_and(|found| id_of(&found) == id_of(&open));
    temporaries(path).into_iter().find(is_open)
}

/// Removes the leftovers of new files for `path`. Only for directories that are ours alone: elsewhere the names could
/// be somebody else's. The caller holds the lock of `path`, so none is in use.
pub fn sweep(path: &Path) {
    // Behind a symlink the new files are in somebody else's directory.
    if path.is_symlink() {
        return;
    }
    for leftover in temporaries(path) {
        let _ = fs::remove_file(leftover);
    }
}

/// Removes the leftovers of new files for `path` in a directory that is not ours: those that are older than [`LEFT_BEHIND`]
/// and whose bytes `is_ours` accepts.
pub fn sweep_aged(path: &Path, is_ours: impl Fn(&[u8]) -> bool) {
    const CAP: u64 = 16 << 20;
    for leftover in temporaries(path) {
        if is_older(&leftover, LEFT_BEHIND)
            && !leftover.is_symlink()
            && read(&leftover, CAP).is_ok_and(|bytes| is_ours(&bytes))
        {
            let _ = fs::remove_file(leftover);
        }
    }
}

/// Removes the leftovers of new files `*EXTENSION` in `dir`, which is ours alone, if they are older than `age`, and
/// returns them. An age of zero requires a lock that all writers there take.
pub fn sweep_dir(dir: &Path, extension: &str, age: Duration) -> Vec<PathBuf> {
    let leftovers = leftovers(dir, extension, age).into_iter();
    leftovers.filter(|path| fs::remove_file(path).is_ok()).collect()
}

/// The leftovers of new files `*EXTENSION` in `dir` that are older than `age`.
pub fn leftovers(dir: &Path, extension: &str, age: Duration) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| is_temporary(&entry.file_name().to_string_lossy(), extension))
        .map(|entry| entry.path())
        .filter(|path| is_older(path, age))
        .collect()
}

/// Whether the file was last written at least `age` ago. By the clock of the file system, not a pinned one.
#[allow(clippy::disallowed_methods, reason = "an age by the clock of the file system")]
pub fn is_older(path: &Path, age: Duration) -> bool {
    let changed = || path.symlink_metadata().and_then(|metadata| metadata.modified());
    age.is_zero() || changed().is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= age))
}

/// `.NAME.XXXXXX`, as `AtomicWriteFile` names the temporary file for NAME.
fn is_temporary(name: &str, extension: &str) -> bool {
    let parts = name.strip_prefix('.').and_then(|name| name.rsplit_once('.'));
    parts.is_some_and(|(name, random)| {
        name.len() > extension.len()
            && name.ends_with(extension)
            && random.len() == 6
            && random.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

/// The entries beside `path` that are named as `AtomicWriteFile` names its temporary files: `.NAME.XXXXXX`.
fn temporaries(path: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let prefix = format!(".{}.", name.to_string_lossy());
    let is_its_own = |found: &PathBuf| {
        let name = found.file_name().unwrap_or_default().to_string_lossy();
        name.len() == prefix.len() + 6 && name.starts_with(&prefix)
    };
    leftovers(dir, "", Duration::ZERO).into_iter().filter(is_its_own).collect()
}
