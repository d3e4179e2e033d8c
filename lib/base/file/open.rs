//! Files are looked at before they are opened, and read up to a cap.

use crate::base::text::size;
use fs_err as fs;
use std::io::{self, Read};
use std::path::Path;

/// The whole of a regular file of at most `cap` bytes.
pub(crate) fn read(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    let (mut file, length) = open_regular(path)?;
    // Room for all of it and one byte more: where a read leaves that one free, the file ends, and one read does.
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
        // A file without a size, as some of the kernel's own are, has no end before its last read says so.
        if end as u64 == length {
            break;
        }
        // It has grown meanwhile.
        if end == bytes.len() {
            bytes.resize((end * 2).min(cap as usize + 1), 0);
        }
    }
    bytes.truncate(end);
    Ok(bytes)
}

/// Opens a regular file for reading, and tells its size. A pipe in its place is not waited for.
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "opens for reading only")]
pub(crate) fn open_regular(path: &Path) -> io::Result<(fs::File, u64)> {
    use fs_err::os::unix::fs::OpenOptionsExt;
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(without_waiting.cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata.len())) } else { Err(not_regular(path)) }
}

#[cfg(not(unix))]
pub(crate) fn open_regular(path: &Path) -> io::Result<(fs::File, u64)> {
    regular_or_missing(path)?;
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

pub(crate) fn not_regular(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("\"{}\" is not a regular file", path.display()))
}

/// A directory, a pipe or a device in a file's place is an error before it is opened: opening a pipe waits.
pub(crate) fn regular_or_missing(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(not_regular(path)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

/// Which file it is, whatever its name.
pub(crate) type FileId = (u64, u64);

#[cfg(unix)]
pub(crate) fn id_of(metadata: &std::fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Windows does not let an open file be replaced, so a name leads to one file while it is open.
#[cfg(not(unix))]
pub(crate) fn id_of(_metadata: &std::fs::Metadata) -> FileId {
    (0, 0)
}

pub(crate) fn id(file: &fs::File) -> io::Result<FileId> {
    Ok(id_of(&file.metadata()?))
}

#[cfg(unix)]
pub(crate) fn set_mode(options: &mut fs::OpenOptions, mode: u32) {
    use fs_err::os::unix::fs::OpenOptionsExt;
    options.mode(mode);
}

#[cfg(not(unix))]
pub(crate) fn set_mode(_options: &mut fs::OpenOptions, _mode: u32) {}
