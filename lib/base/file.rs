//! The only module that writes files: all or nothing, and what was acknowledged survives a power cut.

mod leftovers;
mod lock;
mod newest;
mod open;
mod stamp;

pub use crate::base::file::leftovers::{
    LEFT_BEHIND, LEFT_FOR, is_older, leftovers, sweep, sweep_aged, sweep_dir,
};
pub use crate::base::file::lock::{
    LOCK_WAIT, RunLock, hold, hold_until, holder, lock_for_change, open_settled, open_settled_within,
};
pub use crate::base::file::newest::newest_lines;
pub use crate::base::file::open::{FileId, exists, id, if_exists, is_same, open_regular, read};
pub use crate::base::file::stamp::{Dir, Moment, Stamp, name_of, settled, stamp, written};

use crate::base::file::leftovers::remove_twin;
use crate::base::file::lock::lock_within;
use crate::base::file::open::{cannot, open_with};
use crate::base::parallel;
use crate::base::signal;
use crate::base::sync::lock;
use crate::base::text::base58;
use atomic_write_file::AtomicWriteFile;
use fs_err as fs;
use serde::de::IgnoredAny;
use std::borrow::Cow;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Creates a directory and its parents, mode 0755 less the umask. They survive a power cut.
pub fn make_dir(path: &Path) -> io::Result<()> {
    make_dir_with(path, 0o755)
}

/// Creates a directory and its parents, accessible only to the user. They survive a power cut.
pub fn make_private_dir(path: &Path) -> io::Result<()> {
    make_dir_with(path, 0o700)
}

/// Takes a directory of ours away from everybody else. One that belongs to another user stays as it is.
#[cfg(unix)]
pub fn make_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // A symlink was made by a person, and leads to a directory that is not ours.
    let Ok(metadata) = dir.symlink_metadata() else { return Ok(()) };
    if !metadata.is_dir() || metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    match fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}

/// Elsewhere a directory of the user's is closed to other users from the start.
#[cfg(not(unix))]
pub fn make_private(_dir: &Path) -> io::Result<()> {
    Ok(())
}

fn make_dir_with(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let missing = path.ancestors().take_while(|dir| !dir.is_dir()).filter_map(Path::parent);
    let changed: Vec<&Path> = missing.collect();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, mode);
    #[cfg(not(unix))]
    let _ = mode;
    builder.create(path).map_err(|e| cannot("create the directory", path, &e))?;
    changed.into_iter().try_for_each(|dir| {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        sync_dir(dir).map_err(|e| cannot("sync", dir, &e))
    })
}

/// Creates a file that contains `bytes`. If it exists, it stays as it is: `AlreadyExists`.
///
/// A killed program leaves no partial file under that name: it would be taken for the user's own, and never be
/// completed.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    sweep_aged(path, |left| bytes.starts_with(left));
    if path.symlink_metadata().is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("\"{}\" exists", path.display())));
    }
    let _whole = signal::shield();
    if link_new(path, bytes, mode)? { Ok(()) } else { create_in_place(path, bytes, mode) }
}

/// Writes the file beside `path` and links it to that name, which never replaces a file. `false` if the file system
/// has no hard links.
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
fn link_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<bool> {
    let written = open_new(path, mode).and_then(|mut new| {
        new.write_all(bytes)?;
        new.sync_all()?;
        Ok(new)
    });
    // Dropping it removes the name that it has beside `path`.
    let new = written.map_err(|e| cannot("write", path, &e))?;
    let Some(twin) = leftovers::twin(path, new.as_file()) else { return Ok(false) };
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

fn create_in_place(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = open_with(path, mode, |options| options.write(true).create_new(true))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Appends `bytes` in one write, under the file's lock. Creates the file and its directory if necessary.
///
/// A last line without a newline gets one first. A write that a full disk cut short is undone: after an error
/// the file is as it was. A new file has this mode less the umask. For the lock it waits so long at most.
pub fn append_within(path: &Path, bytes: &[u8], mode: u32, wait: Duration) -> io::Result<()> {
    append_with(path, bytes, mode, wait, |_| Ok(()))
}

/// The same, and it is on disk when this returns. A new file has this mode less the umask.
pub fn append_durably(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let is_new = path.symlink_metadata().is_err();
    append_with(path, bytes, mode, Duration::MAX, |file| file.sync_data())?;
    match path.parent() {
        Some(parent) if is_new => sync_dir(parent),
        _ => Ok(()),
    }
}

fn append_with(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    wait: Duration,
    sync: fn(&fs::File) -> io::Result<()>,
) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_dir(parent)?;
    }
    let locked = lock_within(path, true, mode, wait)?;
    let mut file = locked.ok_or_else(|| cannot("append to", path, &io::ErrorKind::NotFound.into()))?;
    let before = file.metadata()?.len();
    let mut whole = Cow::Borrowed(bytes);
    if before > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(before - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            whole.to_mut().insert(0, b'\n');
        }
    }
    append_whole(&mut file, path, &whole, before, sync)
}

/// Appends in one write, and undoes a write that was cut short.
fn append_whole(
    file: &mut fs::File,
    path: &Path,
    bytes: &[u8],
    before: u64,
    sync: fn(&fs::File) -> io::Result<()>,
) -> io::Result<()> {
    let _whole = signal::shield();
    let written = file.write(bytes).and_then(|n| match n == bytes.len() {
        true => sync(file),
        false => Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("only {n} of {} bytes could be written to \"{}\"", bytes.len(), path.display()),
        )),
    });
    written.inspect_err(|_| drop(file.set_len(before)))
}

/// A file to which this program alone appends, as long as it runs.
#[derive(Debug)]
pub struct OwnLog {
    file: fs::File,
    path: PathBuf,
}

impl OwnLog {
    /// `None` if another program has it. A new file has mode 0644 less the umask.
    pub fn open(path: &Path) -> io::Result<Option<OwnLog>> {
        match lock_within(path, true, 0o644, Duration::ZERO) {
            Ok(file) => Ok(file.map(|file| OwnLog { file, path: path.to_owned() })),
            Err(e) if e.kind() == io::ErrorKind::TimedOut => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// It survives a kill of the program from here on, and a power cut after [`OwnLog::sync`].
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        append_whole(&mut self.file, &self.path, bytes, before, |_| Ok(()))
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Replaces `path`, all or nothing: the new file is written beside it, synced and renamed, and the directory is
/// synced. Mode and owner stay; a symlink stays, and its target is replaced.
///
/// After an error the old file is unchanged and nothing of the new one is left.
pub fn replace(path: &Path, write: impl FnOnce(&mut AtomicWriteFile) -> io::Result<()>) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    // A signal waits, so that it cannot leave the new file behind.
    let _whole = signal::shield();
    let replaced = open_beside(&path).and_then(|mut new| {
        write(&mut new)?;
        // A file that is dropped removes itself; `commit` does not. So this is done before it.
        new.sync_all()?;
        commit(new, &path)
    });
    replaced.map_err(|e| cannot("replace", &path, &e))
}

/// Creates or replaces a file, all or nothing: it is written beside `path`, synced and renamed, and the directory is
/// synced, so that it survives a power cut.
///
/// After an error nothing of it is left.
pub fn install(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    install_if(path, bytes, mode, |_| Ok(true)).map(|_| ())
}

/// The same, if `still` returns true for the new file at the end. Otherwise nothing of it is left, and the result is
/// `false`.
pub fn install_if(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    still: impl FnOnce(&AtomicWriteFile) -> io::Result<bool>,
) -> io::Result<bool> {
    let _whole = signal::shield();
    let installed = open_new(path, mode).and_then(|mut new| {
        new.write_all(bytes)?;
        if !still(&new)? {
            return Ok(false);
        }
        commit(new, path).map(|()| true)
    });
    installed.map_err(|e| cannot("write", path, &e))
}

/// Creates or replaces a file, all or nothing as long as the machine runs: nothing is synced. For state that may be lost,
/// where nobody should wait for a disk.
pub fn install_unsynced(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let _whole = signal::shield();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The name that `sweep_dir` knows.
    let beside = path.with_file_name(format!(".{name}.{}", random58(6)?));
    let new = open_with(&beside, mode, |options| options.write(true).create_new(true));
    let written = new.and_then(|mut file| file.write_all(bytes));
    let installed = written.and_then(|()| rename_unsynced(&beside, path));
    if installed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    installed.map_err(|e| cannot("write", path, &e))
}

/// Changes a small file of state, only the user's, under its lock, for which it waits so long at most: `act` gets what is in it,
/// at most `cap` bytes, and returns what replaces it, all or nothing as long as the machine runs. After an error it is as it was.
pub fn change_unsynced<T, E: From<io::Error>>(
    path: &Path,
    cap: u64,
    wait: Duration,
    act: impl FnOnce(&[u8]) -> Result<(Vec<u8>, T), E>,
) -> Result<T, E> {
    let locked = lock_within(path, true, 0o644, wait)?;
    let mut old = Vec::new();
    if let Some(file) = &locked {
        file.take(cap).read_to_end(&mut old)?;
    }
    let (new, done) = act(&old)?;
    let _whole = signal::shield();
    // It takes the place of the file that is locked: who waits for that one sees this, and opens it again. The lock makes
    // the name ours, so a killed program leaves one such file at most.
    let beside =
        path.with_file_name(format!(".{}.new", path.file_name().unwrap_or_default().to_string_lossy()));
    let installed = hint(&beside, &new).and_then(|()| rename_unsynced(&beside, path));
    if installed.is_err() {
        let _ = fs::remove_file(&beside);
    }
    installed.map_err(|e| cannot("write", path, &e))?;
    Ok(done)
}

/// Writes new files into a directory that is ours alone. All are synced in the end: that takes one wait for the disk and
/// not one each.
pub fn stage(dir: &Path, files: &[(String, &[u8])]) -> io::Result<()> {
    make_private_dir(dir)?;
    for (name, bytes) in files {
        hint(&dir.join(name), bytes)?;
    }
    let synced = parallel::map(files, |_, (name, _)| fs::File::open(dir.join(name))?.sync_all());
    synced.into_iter().collect::<io::Result<()>>()?;
    sync_dir(dir)
}

/// Gives a staged file its place, with the mode of the file that it replaces, if there is one. The caller syncs the
/// directory. Nothing has happened after an error, as where a link or another owner's file is in that place.
#[cfg(unix)]
pub fn unstage(staged: &Path, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    if let Some(old) = if_exists(fs::symlink_metadata(path))? {
        if !old.is_file() || old.uid() != fs::metadata(staged)?.uid() {
            return Err(io::Error::other("it is replaced by its owner's means"));
        }
        fs::set_permissions(staged, old.permissions())?;
    }
    rename_unsynced(staged, path)
}

#[cfg(not(unix))]
pub fn unstage(staged: &Path, path: &Path) -> io::Result<()> {
    rename_unsynced(staged, path)
}

/// Renames a file. The caller syncs the directories.
#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
pub fn rename_unsynced(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Syncs the new file, renames it to `path`, syncs the directory.
fn commit(new: AtomicWriteFile, path: &Path) -> io::Result<()> {
    let twin = new.try_clone()?;
    new.commit().inspect_err(|_| remove_twin(path, &twin))
}

/// A new file beside `path`, of this mode less the umask.
fn open_new(path: &Path, mode: u32) -> io::Result<AtomicWriteFile> {
    #[cfg_attr(not(unix), expect(unused_mut))]
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

/// Renames a file and syncs both directories, so that it keeps the name. A file of the new name is replaced.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    rename_unsynced(from, to)?;
    let dirs = (from.parent(), to.parent());
    dirs.1.map_or(Ok(()), sync_dir)?;
    if dirs.0 != dirs.1 { dirs.0.map_or(Ok(()), sync_dir) } else { Ok(()) }
}

/// Removes a file for good.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// Removes a directory that is ours alone, with everything in it.
pub fn remove_tree(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)?;
    dir.parent().map_or(Ok(()), sync_dir)
}

/// Writes a few bytes that may be lost or torn by a crash: whoever reads them must not rely on them. Those of the same length
/// are there before or after.
pub fn hint(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_with(path, 0o600, |options| options.write(true).create(true).truncate(false))?;
    file.write_all(bytes)?;
    if file.metadata()?.len() > bytes.len() as u64 {
        file.set_len(bytes.len() as u64)?;
    }
    Ok(())
}

/// More is not a login.
const LENT_CAP: u64 = 1 << 20;
/// Files, and the symlinks at which commands find them.
static LENT: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());

/// A symlink at `path` to a file, until [`take_back`].
pub fn lend(file: PathBuf, path: PathBuf) -> io::Result<()> {
    #[cfg(unix)]
    fs::os::unix::fs::symlink(&file, &path)?;
    lock(&LENT).push((file, path));
    Ok(())
}

/// For a directory that is about to be removed: where a command has replaced a link below it by a file, this is the new
/// state of what was lent, and replaces it, all or nothing. Half a JSON document does not.
///
/// # Errors
/// A new state could not be kept. The others are.
pub fn take_back(dir: &Path) -> io::Result<()> {
    let ended: Vec<_> = lock(&LENT).extract_if(.., |(_, path)| path.starts_with(dir)).collect();
    let mut kept = Ok(());
    for (file, path) in ended {
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            let new = read(&path, LENT_CAP).and_then(|new| {
                if path.extension().is_some_and(|ending| ending == "json") {
                    let whole = serde_json::from_slice::<IgnoredAny>(&new);
                    whole.map_err(|e| cannot("read", &path, &e.into()))?;
                }
                replace(&file, |to| to.write_all(&new))
            });
            kept = kept.and(new);
        }
    }
    kept
}

/// Who may read and write a file, as the bits of its mode. Symlinks are not followed.
#[cfg(unix)]
pub fn mode(path: &Path) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::symlink_metadata(path)?.permissions().mode() & 0o7777)
}

/// Elsewhere that is no number, and goes with the directory.
#[cfg(not(unix))]
pub fn mode(path: &Path) -> io::Result<u32> {
    fs::symlink_metadata(path).map(|_| 0o600)
}

/// Removes such a file.
pub fn forget(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// A file of ours that is filled step by step, and read only when it is complete. An old one is removed, not
/// emptied: a command that outlived its killed parent may still be writing to it.
pub fn scratch(path: &Path) -> io::Result<fs::File> {
    if_exists(fs::remove_file(path))?;
    open_with(path, 0o600, |options| options.read(true).write(true).create_new(true))
}

/// Random digits of base58, for names that never collide.
pub fn random58(digits: usize) -> io::Result<String> {
    let mut text = String::new();
    while text.len() < digits {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|e| io::Error::other(format!("no random numbers: {e}")))?;
        // Eight bytes hold more than ten digits.
        text.push_str(&base58(u64::from_be_bytes(bytes), (digits - text.len()).min(10)));
    }
    Ok(text)
}

/// Makes sure that what was created, renamed or removed in a directory survives a power cut.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) { fs::File::open(dir)?.sync_all() } else { Ok(()) }
}

/// A new file to replace `path`. It gets the mode and owner of the old one, and is closed to others before that.
///
/// `AtomicWriteFile` would copy them too, but leaves the new file behind if that fails.
#[cfg(unix)]
fn open_beside(path: &Path) -> io::Result<AtomicWriteFile> {
    use atomic_write_file::unix::OpenOptionsExt as _;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _, fchown};
    let old = std::fs::metadata(path)?;
    let new = AtomicWriteFile::options().preserve_mode(false).preserve_owner(false).mode(0o600).open(path)?;
    match fchown(new.as_file(), Some(old.uid()), Some(old.gid())) {
        // Not every user may give a file away, and not every file system has owners.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_replaces_a_longer_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hint");
        for text in ["longer\n", "short\n", "other\n"] {
            hint(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }
}
