//! Locks are `flock`-style and follow renames. Most are held for milliseconds, [`hold`]'s for a run.

use crate::base::deadline::Deadline;
use crate::base::file::open::{cannot, id, id_of, if_exists, open_regular, open_with, regular_or_missing};
use fs_err as fs;
use std::fs::TryLockError;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

/// How long to wait for a lock. Its holders need milliseconds; one that takes this long has been stopped.
pub const LOCK_WAIT: Duration = Duration::from_secs(10);

/// How long a reader waits for a writer.
const SETTLE_WAIT: Duration = Duration::from_secs(1);

/// Opens a file for a change and locks it; `None` if it does not exist and `make` is false.
///
/// If another program has replaced the file in the meantime, the lock is on a file that nobody reads any more, so it
/// is opened again.
pub fn lock_for_change(path: &Path, make: bool) -> io::Result<Option<fs::File>> {
    lock_within(path, make, 0o644, LOCK_WAIT)
}

/// The same, with the mode of a new file, and a limit for the wait.
pub(super) fn lock_within(
    path: &Path,
    make: bool,
    mode: u32,
    wait: Duration,
) -> io::Result<Option<fs::File>> {
    regular_or_missing(path)?;
    loop {
        let opened = open_with(path, mode, |options| options.read(true).append(true).create(make));
        let Some(file) = (if make { opened.map(Some) } else { if_exists(opened) })? else { return Ok(None) };
        lock(&file, path, std::fs::File::try_lock, wait.min(LOCK_WAIT))?;
        if names(path, &file)? {
            return Ok(Some(file));
        }
    }
}

/// A log for reading, and its length at a moment when nobody was writing to it; `None` if there is none.
pub fn open_settled(path: &Path) -> io::Result<Option<(fs::File, u64)>> {
    open_settled_within(path, SETTLE_WAIT)
}

/// The same, with a limit for the wait.
pub fn open_settled_within(path: &Path, wait: Duration) -> io::Result<Option<(fs::File, u64)>> {
    regular_or_missing(path)?;
    let Some(file) = if_exists(fs::File::open(path))? else { return Ok(None) };
    let locked = match lock(&file, path, std::fs::File::try_lock_shared, wait.min(SETTLE_WAIT)) {
        // A program that holds the lock longer has been stopped, and is not writing.
        Err(e) if e.kind() == io::ErrorKind::TimedOut => false,
        locked => locked.map(|()| true)?,
    };
    let length = file.metadata()?.len();
    if locked {
        // Wine reports a success as an error. At the latest it is unlocked when it is closed.
        let _ = file.file().unlock();
    }
    Ok(Some((file, length)))
}

/// A lock that is held for a whole run.
pub enum RunLock {
    /// Ours until the file is closed.
    Acquired(fs::File),
    /// Held by another program, which wrote this into the file.
    HeldBy(String),
}

/// Takes such a lock, and writes `holder` into its file.
pub fn hold(path: &Path, holder: &str) -> io::Result<RunLock> {
    // The target of a symlink would be emptied, and a store may contain somebody else's files.
    if path.is_symlink() {
        let why = format!("\"{}\" is a symlink, not a lock of ours", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut file =
        open_with(path, 0o600, |options| options.read(true).write(true).create(true).truncate(false))?;
    match file.file().try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            file.write_all(holder.as_bytes())?;
            Ok(RunLock::Acquired(file))
        }
        Err(TryLockError::WouldBlock) => Ok(RunLock::HeldBy(holder_in(file))),
        Err(TryLockError::Error(e)) => Err(cannot("lock", path, &e)),
    }
}

/// The same, but waits until then for a program that holds it.
pub fn hold_until(path: &Path, holder: &str, until: Deadline) -> io::Result<RunLock> {
    let mut pause = Duration::from_millis(1);
    loop {
        match hold(path, holder)? {
            RunLock::HeldBy(_) if !until.passed() => std::thread::sleep(pause.min(until.remaining())),
            lock => return Ok(lock),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// What the holder of such a lock wrote into its file; `None` if nobody holds it. Changes nothing.
pub fn holder(path: &Path) -> io::Result<Option<String>> {
    let Some((file, _)) = if_exists(open_regular(path))? else { return Ok(None) };
    match file.file().try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(holder_in(file))),
        Err(TryLockError::Error(e)) => Err(cannot("lock", path, &e)),
    }
}

fn holder_in(file: fs::File) -> String {
    let mut text = String::new();
    let _ = file.take(1000).read_to_string(&mut text);
    text
}

type TryLock = fn(&std::fs::File) -> Result<(), TryLockError>;

/// Waits for a lock, up to `wait`.
fn lock(file: &fs::File, path: &Path, try_lock: TryLock, wait: Duration) -> io::Result<()> {
    let patience = Deadline::after(wait);
    let mut pause = Duration::from_micros(200);
    loop {
        match try_lock(file.file()) {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(cannot("lock", path, &e)),
            Err(TryLockError::WouldBlock) if patience.passed() => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!(
                        "\"{}\" is locked by another program for over {} s",
                        path.display(),
                        wait.as_secs_f64().ceil()
                    ),
                ));
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
    }
}

/// Whether `path` still names the file that is open.
fn names(path: &Path, file: &fs::File) -> io::Result<bool> {
    match if_exists(fs::metadata(path))? {
        Some(named) => Ok(id_of(&named) == id(file)?),
        None => Ok(false),
    }
}
