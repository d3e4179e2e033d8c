//! The only writer of files: all or nothing, and what was acknowledged outlives a power cut.

mod leftovers;
mod lock;
mod open;

pub(crate) use crate::base::file::leftovers::{
    LEFT_BEHIND, LEFT_FOR, is_older, leftovers, sweep, sweep_aged, sweep_dir,
};
pub(crate) use crate::base::file::lock::{hold, holder, lock_for_change, open_settled};
pub(crate) use crate::base::file::open::{FileId, id, read, regular_or_missing};

use crate::base::file::leftovers::{remove_twin, twin};
use crate::base::file::open::set_mode;
use crate::base::signal;
use crate::base::text::base58;
use atomic_write_file::AtomicWriteFile;
use fs_err as fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Makes a directory and its parents, mode 0755 less the umask.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    make_dir_with(path, 0o755)
}

/// Makes a directory and its parents, closed to everyone else.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    make_dir_with(path, 0o700)
}

fn make_dir_with(path: &Path, mode: u32) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(not(unix))]
    let _ = mode;
    builder.create(path).map_err(|e| {
        io::Error::new(e.kind(), format!("failed to make directory \"{}\": {e}", path.display()))
    })
}

/// Makes a new file with `bytes` in it. One that exists is left alone: `AlreadyExists`.
///
/// Whoever is killed on the way leaves no half of it under that name: it would be taken for the user's own, and never
/// be made whole.
pub(crate) fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    sweep_aged(path, LEFT_BEHIND, |left| bytes.starts_with(left));
    if path.symlink_metadata().is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("\"{}\" exists", path.display())));
    }
    let _whole = signal::shield();
    if link_new(path, bytes, mode)? { Ok(()) } else { create_in_place(path, bytes, mode) }
}

/// Writes it beside `path` and gives it that name too, which never replaces a file. `false` where the file system
/// knows no second names.
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
fn link_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<bool> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("cannot write \"{}\": {e}", path.display()));
    let mut new = open_new(path, mode).map_err(named)?;
    // Dropped, it removes the name that it has beside `path`.
    new.write_all(bytes).and_then(|()| new.sync_all()).map_err(named)?;
    let Some(twin) = twin(path, new.as_file()) else { return Ok(false) };
    match fs::hard_link(twin, path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
            Ok(false)
        }
        linked => linked.and_then(|()| path.parent().map_or(Ok(()), sync_dir)).map(|()| true),
    }
}

#[cfg(not(unix))]
fn link_new(_path: &Path, _bytes: &[u8], _mode: u32) -> io::Result<bool> {
    Ok(false)
}

#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
fn create_in_place(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    set_mode(&mut options, mode);
    let mut file = options.open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Appends `bytes` in one write, under the file's lock. The file and its directory are made if missing.
///
/// A last line without a newline gets one first. What a full disk cut short is taken back: after an error
/// the file is as it was.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_dir(parent)?;
    }
    let mut file = lock_for_append(path)?;
    let before = file.metadata()?.len();
    let mut whole = Vec::with_capacity(bytes.len() + 1);
    if before > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(before - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            whole.push(b'\n');
        }
    }
    whole.extend_from_slice(bytes);
    let _whole = signal::shield();
    let written = match file.write(&whole) {
        Ok(n) if n == whole.len() => return Ok(()),
        Ok(n) => io::Error::new(
            io::ErrorKind::StorageFull,
            format!("only {n} of {} bytes could be written to \"{}\"", whole.len(), path.display()),
        ),
        Err(e) => e,
    };
    let _ = file.set_len(before);
    Err(written)
}

/// Opens the log and locks it, making it if it is missing.
fn lock_for_append(path: &Path) -> io::Result<fs::File> {
    let locked = lock_for_change(path, true)?;
    locked.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("\"{}\" vanished", path.display())))
}

/// Puts a new file in the place of `path`, all or nothing: written beside it, synced, renamed, and the
/// directory synced. Mode and owner stay; a symlink stays, and its target is replaced.
///
/// After an error the old file stands and nothing of the new one is left.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut AtomicWriteFile) -> io::Result<()>,
) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let named =
        |e: io::Error| io::Error::new(e.kind(), format!("cannot replace \"{}\": {e}", path.display()));
    // A signal waits, so that it cannot leave the new file behind.
    let _whole = signal::shield();
    let mut new = open_beside(&path).map_err(named)?;
    // Dropped on an error, it removes itself. `commit` does not, so what can fail is done before it.
    write(&mut new).and_then(|()| new.sync_all()).map_err(named)?;
    let twin = new.try_clone().map_err(named)?;
    new.commit().map_err(|e| {
        remove_twin(&path, &twin);
        named(e)
    })
}

/// Makes a new file all at once: whoever sees it sees the whole of it. Written beside it, synced, renamed, and
/// the directory synced, so that it outlives a power cut. One of that name is replaced.
///
/// After an error nothing of it is left.
pub(crate) fn install(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    install_if(path, bytes, mode, |_| Ok(true)).map(|_| ())
}

/// The same, if at the end `still` says that it is to be; it is given the new file. Else nothing is left of it,
/// and `false`.
pub(crate) fn install_if(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    still: impl FnOnce(&AtomicWriteFile) -> io::Result<bool>,
) -> io::Result<bool> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("cannot write \"{}\": {e}", path.display()));
    let _whole = signal::shield();
    let mut new = open_new(path, mode).map_err(named)?;
    // Dropped, it removes itself.
    new.write_all(bytes).map_err(named)?;
    if !still(&new).map_err(named)? {
        return Ok(false);
    }
    let twin = new.try_clone().map_err(named)?;
    // Syncs the file, renames it, syncs the directory. It does not remove what it could not put in place.
    new.commit().map(|()| true).map_err(|e| {
        remove_twin(path, &twin);
        named(e)
    })
}

/// A file to be written beside `path`, of this mode less the umask.
fn open_new(path: &Path, mode: u32) -> io::Result<AtomicWriteFile> {
    let mut options = AtomicWriteFile::options();
    #[cfg(unix)]
    {
        use atomic_write_file::unix::OpenOptionsExt as _;
        use std::os::unix::fs::OpenOptionsExt as _;
        options.preserve_mode(false).preserve_owner(false).mode(mode);
    }
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Gives a file another name, and makes sure that it keeps it: both directories are synced. A file of the new
/// name is replaced.
#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    let dirs = (from.parent(), to.parent());
    dirs.1.map_or(Ok(()), sync_dir)?;
    if dirs.0 != dirs.1 { dirs.0.map_or(Ok(()), sync_dir) } else { Ok(()) }
}

/// Removes a file for good.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Removes a directory that is ours alone, with all that is in it.
pub(crate) fn remove_tree(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)?;
    dir.parent().map_or(Ok(()), sync_dir)
}

/// A file of ours to be filled bit by bit, that nobody reads before it is whole. One of that name is removed, not
/// emptied: a command that outlived its killed parent may still be writing to it.
#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
pub(crate) fn scratch(path: &Path) -> io::Result<fs::File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    set_mode(&mut options, 0o600);
    options.open(path)
}

/// Random digits of base58, for names that never collide.
pub(crate) fn random58(digits: usize) -> io::Result<String> {
    let mut text = String::new();
    while text.len() < digits {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|e| io::Error::other(format!("no random numbers: {e}")))?;
        // Ten digits are less than eight bytes hold.
        text.push_str(&base58(u64::from_be_bytes(bytes), (digits - text.len()).min(10)));
    }
    Ok(text)
}

/// Makes sure that what was made, renamed or removed in a directory outlives a power cut.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(dir)?.sync_all() } else { Ok(()) }
}

/// A new file to replace `path`, with its mode and owner already; closed to others before.
///
/// `AtomicWriteFile` would copy them too, but leaves the new file behind where that fails.
#[cfg(unix)]
fn open_beside(path: &Path) -> io::Result<AtomicWriteFile> {
    use atomic_write_file::unix::OpenOptionsExt as _;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _, fchown};
    let old = std::fs::metadata(path)?;
    let new = AtomicWriteFile::options().preserve_mode(false).preserve_owner(false).mode(0o600).open(path)?;
    match fchown(new.as_file(), Some(old.uid()), Some(old.gid())) {
        // Not everyone may give a file away, and not every file system knows owners.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {}
        given => given?,
    }
    new.set_permissions(old.permissions())?;
    Ok(new)
}

#[cfg(not(unix))]
fn open_beside(path: &Path) -> io::Result<AtomicWriteFile> {
    AtomicWriteFile::open(path)
}
