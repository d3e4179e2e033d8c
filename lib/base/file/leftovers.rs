//! What killed programs left of new files that they were about to put in their places.

use crate::base::file::open::{id_of, read};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a killed program left half written is nobody's any more when it is as old as this: a write takes moments. Where
/// only the name tells, because rsync names its files in transit as we do.
pub(crate) const LEFT_FOR: Duration = Duration::from_secs(60 * 60);
/// The same where what is in it shows that it is ours.
pub(crate) const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// Removes the entry beside `path` that is the open file, if the rename did not happen.
pub(crate) fn remove_twin(path: &Path, file: &std::fs::File) {
    if let Some(leftover) = twin(path, file) {
        let _ = fs::remove_file(leftover);
    }
}

/// The name that an open file has beside `path`.
pub(crate) fn twin(path: &Path, file: &std::fs::File) -> Option<PathBuf> {
    let open = file.metadata().ok()?;
    let is_open = |entry: &PathBuf| entry.symlink_metadata().is_ok_and(|found| id_of(&found) == id_of(&open));
    temporaries(path).into_iter().find(is_open)
}

/// Removes what killed programs left of new files for `path`. Only for directories that are ours alone: the
/// names could be somebody else's elsewhere. The caller holds the lock of `path`, so none is in use.
pub(crate) fn sweep(path: &Path) {
    // Behind a symlink the new files lie in somebody else's directory.
    if path.is_symlink() {
        return;
    }
    for leftover in temporaries(path) {
        let _ = fs::remove_file(leftover);
    }
}

/// Removes what killed programs left of new files for `path` in a directory that is not ours: entries with such a
/// name that are older than `age` and whose bytes are ours, by `is_ours`.
pub(crate) fn sweep_aged(path: &Path, age: Duration, is_ours: impl Fn(&[u8]) -> bool) {
    const CAP: u64 = 16 << 20;
    for leftover in temporaries(path) {
        if is_older(&leftover, age)
            && !leftover.is_symlink()
            && read(&leftover, CAP).is_ok_and(|bytes| is_ours(&bytes))
        {
            let _ = fs::remove_file(leftover);
        }
    }
}

/// Removes what killed programs left of new files `*EXTENSION` in `dir`, which is ours alone, if they are older
/// than `age`, and tells which. Zero is for who holds a lock without which nobody writes there.
pub(crate) fn sweep_dir(dir: &Path, extension: &str, age: Duration) -> Vec<PathBuf> {
    let leftovers = leftovers(dir, extension, age).into_iter();
    leftovers.filter(|path| fs::remove_file(path).is_ok()).collect()
}

/// The new files `*EXTENSION` in `dir` that nobody has put in their places since `age`.
pub(crate) fn leftovers(dir: &Path, extension: &str, age: Duration) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| is_temporary(&entry.file_name().to_string_lossy(), extension))
        .map(|entry| entry.path())
        .filter(|path| is_older(path, age))
        .collect()
}

/// Was the file last written to so long ago? By the clock of the file system, so that a pinned one does not count.
#[allow(clippy::disallowed_methods, reason = "an age by the clock of the file system")]
pub(crate) fn is_older(path: &Path, age: Duration) -> bool {
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
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.len() == prefix.len() + 6 && name.starts_with(&prefix) && is_temporary(&name, "")
        })
        .map(|entry| entry.path())
        .collect()
}
