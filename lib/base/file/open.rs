//! Files are checked before they are opened, and read up to a cap.

use crate::base::error::reason;
use crate::base::text::size;
use fs_err as fs;
use std::io::{self, Read};
use std::path::Path;

/// The whole of a regular file of at most `cap` bytes.
pub fn read(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    let (mut file, length) = open_regular(path)?;
    // Space for one byte more than the file has: if a read leaves it free, the file ends there, after one read.
    let mut bytes = vec![0; length.min(cap) as usize + 1];
    let mut end = 0;
    loop {
        match file.read(&mut bytes[end..]) {
            Ok(0) => break,
            Ok(more) => end += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if end as u64 > cap {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("\"{}\" is larger than {}", path.display(), size(cap)),
            ));
        }
        // A file without a size, like some of the kernel's, ends only when a read says so.
        if end as u64 == length {
            break;
        }
        // The file has grown.
        if end == bytes.len() {
            bytes.resize((end * 2).min(cap as usize + 1), 0);
        }
    }
    bytes.truncate(end);
    Ok(bytes)
}

/// Opens a regular file for reading, and returns its size. Does not wait for a pipe.
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "opens for reading only")]
pub fn open_regular(path: &Path) -> io::Result<(fs::File, u64)> {
    use fs_err::os::unix::fs::OpenOptionsExt;
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(without_waiting.cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata.len())) } else { Err(not_regular(path)) }
}

#[cfg(not(unix))]
pub fn open_regular(path: &Path) -> io::Result<(fs::File, u64)> {
    regular_or_missing(path)?;
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

fn not_regular(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("\"{}\" is not a regular file", path.display()))
}

/// A directory, a pipe or a device is an error before it is opened: opening a pipe would wait.
pub(super) fn regular_or_missing(path: &Path) -> io::Result<()> {
    match if_exists(fs::metadata(path))? {
        Some(metadata) if !metadata.is_file() => Err(not_regular(path)),
        _ => Ok(()),
    }
}

/// `None` if the file does not exist.
pub fn if_exists<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Is it there? What cannot be looked at, as on a disk that fails for a moment, is an error, and not missing.
pub fn exists(path: &Path) -> io::Result<bool> {
    if_exists(fs::metadata(path)).map(|found| found.is_some())
}

pub(super) fn cannot(verb: &str, path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {verb} \"{}\": {}", path.display(), reason(error)))
}

/// Identifies a file, whatever its name.
pub type FileId = (u64, u64);

#[cfg(unix)]
pub(super) fn id_of(metadata: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Windows does not let an open file be replaced, so a name leads to one file while it is open.
#[cfg(not(unix))]
pub(super) fn id_of(_metadata: &std::fs::Metadata) -> FileId {
    (0, 0)
}

pub fn id(file: &fs::File) -> io::Result<FileId> {
    Ok(id_of(&file.metadata()?))
}

/// Opens a file as `set` says. A new one has this mode less the umask.
#[allow(clippy::disallowed_methods, reason = "for the only writer of files")]
pub(super) fn open_with(
    path: &Path,
    mode: u32,
    set: impl FnOnce(&mut fs::OpenOptions) -> &mut fs::OpenOptions,
) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    set(&mut options).open(path)
}

/// Whether both are names of one file. On a file system that ignores case, or the form of Unicode, they may differ.
#[cfg(unix)]
pub fn is_same(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| path.symlink_metadata().map(|found| (found.dev(), found.ino(), found.nlink()));
    // With several hard links, the two names may be two of them.
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other && one.2 == 1)
}

#[cfg(not(unix))]
pub fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;

    #[test]
    fn one_file_may_have_two_names_but_no_second_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, other) = (dir.path().join("real"), dir.path().join("other"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &other).unwrap();
        std::fs::write(real.join("a"), "a").unwrap();
        std::fs::write(real.join("b"), "a").unwrap();
        assert!(is_same(&real.join("a"), &other.join("a")));
        assert!(!is_same(&real.join("a"), &real.join("b")));
        assert!(!is_same(&real.join("a"), &real.join("c")));
        std::fs::hard_link(real.join("a"), real.join("c")).unwrap();
        assert!(!is_same(&real.join("a"), &real.join("c")), "removing one would leave the other");
    }
}
