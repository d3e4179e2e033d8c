//! The only writer of files. Locks are `flock`-style, held for milliseconds, and follow renames.

use crate::ground::deadline::Deadline;
use crate::ground::signal;
use crate::ground::text::base58;
use atomic_write_file::AtomicWriteFile;
use fs_err as fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a lock is waited for. Its holders need milliseconds; one that needs this long has been stopped.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// What a killed program left beside a file is nobody's any more when it is as old as this: a write takes milliseconds.
pub(crate) const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// How long a reader waits for a writer to be done.
const SETTLE_WAIT: Duration = Duration::from_secs(1);

/// The whole of a regular file of at most `cap` bytes.
pub(crate) fn read(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    let (file, size) = open_regular(path)?;
    // With room for all of it and a little more, two reads do: one for the bytes, one that finds the end.
    let mut bytes = Vec::with_capacity(size.min(cap) as usize + 64);
    file.take(cap + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > cap {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("\"{}\" is larger than {} KiB", path.display(), cap >> 10),
        ));
    }
    Ok(bytes)
}

/// Opens a regular file for reading, and tells its size. A pipe in its place is not waited for.
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "opens for reading only")]
fn open_regular(path: &Path) -> io::Result<(fs::File, u64)> {
    use fs_err::os::unix::fs::OpenOptionsExt;
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(without_waiting.cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata.len())) } else { Err(not_regular(path)) }
}

#[cfg(not(unix))]
fn open_regular(path: &Path) -> io::Result<(fs::File, u64)> {
    regular_or_missing(path)?;
    let file = fs::File::open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

fn not_regular(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("\"{}\" is not a regular file", path.display()))
}

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

/// Opens a file for a change and locks it; `None` if there is none and it is not to be made.
///
/// When another program has put a new file in its place meanwhile, the lock is on a file that nobody reads
/// any more: open again.
#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
pub(crate) fn lock_for_change(path: &Path, make: bool) -> io::Result<Option<fs::File>> {
    regular_or_missing(path)?;
    loop {
        let mut options = fs::OpenOptions::new();
        options.read(true).append(true).create(make);
        set_mode(&mut options, 0o644);
        let file = match options.open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound && !make => return Ok(None),
            Err(e) => return Err(e),
        };
        lock(&file, path, std::fs::File::try_lock, LOCK_WAIT)?;
        if names(path, &file)? {
            return Ok(Some(file));
        }
    }
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

/// A lock that is held for a whole run; `Err` with what its holder wrote there if somebody else has it. While it
/// is held the file says `holder`.
#[allow(clippy::disallowed_methods, reason = "the only writer of files")]
pub(crate) fn hold(path: &Path, holder: &str) -> io::Result<Result<fs::File, String>> {
    // What a link leads to would be emptied. A store may have come with somebody else's files.
    if path.is_symlink() {
        let why = format!("\"{}\" is a symlink, and no lock of ours", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    set_mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    match file.file().try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            file.write_all(holder.as_bytes())?;
            Ok(Ok(file))
        }
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.take(1000).read_to_string(&mut text);
            Ok(Err(text))
        }
        Err(std::fs::TryLockError::Error(e)) => {
            Err(io::Error::new(e.kind(), format!("cannot lock \"{}\": {e}", path.display())))
        }
    }
}

/// What the holder of such a lock wrote there; `None` if nobody holds it. Changes nothing.
pub(crate) fn holder(path: &Path) -> io::Result<Option<String>> {
    let file = match open_regular(path) {
        Ok((file, _)) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    match file.file().try_lock_shared() {
        Ok(()) => Ok(None),
        Err(std::fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            let _ = file.take(1000).read_to_string(&mut text);
            Ok(Some(text))
        }
        Err(std::fs::TryLockError::Error(e)) => {
            Err(io::Error::new(e.kind(), format!("cannot lock \"{}\": {e}", path.display())))
        }
    }
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

/// Removes the entry beside `path` that is the open file, if the rename did not happen.
fn remove_twin(path: &Path, file: &std::fs::File) {
    if let Some(leftover) = twin(path, file) {
        let _ = fs::remove_file(leftover);
    }
}

/// The name that an open file has beside `path`.
fn twin(path: &Path, file: &std::fs::File) -> Option<PathBuf> {
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
#[allow(clippy::disallowed_methods, reason = "an age by the clock of the file system")]
pub(crate) fn sweep_aged(path: &Path, age: Duration, is_ours: impl Fn(&[u8]) -> bool) {
    const CAP: u64 = 16 << 20;
    for leftover in temporaries(path) {
        let changed = leftover.symlink_metadata().and_then(|metadata| metadata.modified());
        let is_old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= age));
        if is_old && !leftover.is_symlink() && read(&leftover, CAP).is_ok_and(|bytes| is_ours(&bytes)) {
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

/// A log for reading, and its length at a moment when nobody was writing to it; `None` if there is none.
pub(crate) fn open_settled(path: &Path) -> io::Result<Option<(fs::File, u64)>> {
    regular_or_missing(path)?;
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let locked = match lock(&file, path, std::fs::File::try_lock_shared, SETTLE_WAIT) {
        // Whoever holds the lock for longer has been stopped, and is not writing.
        Err(e) if e.kind() == io::ErrorKind::TimedOut => false,
        locked => locked.map(|()| true)?,
    };
    let length = file.metadata()?.len();
    if locked {
        file.file().unlock()?;
    }
    Ok(Some((file, length)))
}

type TryLock = fn(&std::fs::File) -> Result<(), std::fs::TryLockError>;

/// Waits for a lock, up to `wait`.
fn lock(file: &fs::File, path: &Path, try_lock: TryLock, wait: Duration) -> io::Result<()> {
    let patience = Deadline::after(wait);
    let mut pause = Duration::from_micros(200);
    loop {
        match try_lock(file.file()) {
            Ok(()) => return Ok(()),
            Err(std::fs::TryLockError::Error(e)) => {
                return Err(io::Error::new(e.kind(), format!("cannot lock \"{}\": {e}", path.display())));
            }
            Err(std::fs::TryLockError::WouldBlock) if patience.passed() => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!(
                        "\"{}\" is locked by another program for over {} s",
                        path.display(),
                        wait.as_secs()
                    ),
                ));
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
    }
}

/// Which file it is, whatever its name.
pub(crate) type Id = (u64, u64);

#[cfg(unix)]
fn id_of(metadata: &std::fs::Metadata) -> Id {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Windows does not let an open file be replaced, so a name leads to one file while it is open.
#[cfg(not(unix))]
fn id_of(_metadata: &std::fs::Metadata) -> Id {
    (0, 0)
}

pub(crate) fn id(file: &fs::File) -> io::Result<Id> {
    Ok(id_of(&file.metadata()?))
}

/// Does `path` still name the file that is open?
fn names(path: &Path, file: &fs::File) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(named) => Ok(id_of(&named) == id(file)?),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
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

#[cfg(unix)]
fn set_mode(options: &mut fs::OpenOptions, mode: u32) {
    use fs_err::os::unix::fs::OpenOptionsExt;
    options.mode(mode);
}

#[cfg(not(unix))]
fn set_mode(_options: &mut fs::OpenOptions, _mode: u32) {}
