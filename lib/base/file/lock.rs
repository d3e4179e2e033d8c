//! Locks are `flock`-style and follow renames. Most are held for milliseconds, [`hold`]'s for a run.

use crate::base::deadline::Deadline;
use crate::base::file::open::{id, id_of, open_regular, regular_or_missing, set_mode};
use fs_err as fs;
use std::fs::TryLockError;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

/// How long a lock is waited for. Its holders need milliseconds; one that needs this long has been stopped.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// How long a reader waits for a writer to be done.
const SETTLE_WAIT: Duration = Duration::from_secs(1);

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
        Err(TryLockError::WouldBlock) => Ok(Err(written_there(file))),
        Err(TryLockError::Error(e)) => Err(failed(path, &e)),
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
        Err(TryLockError::WouldBlock) => Ok(Some(written_there(file))),
        Err(TryLockError::Error(e)) => Err(failed(path, &e)),
    }
}

/// What the holder of a lock wrote into its file.
fn written_there(file: fs::File) -> String {
    let mut text = String::new();
    let _ = file.take(1000).read_to_string(&mut text);
    text
}

fn failed(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot lock \"{}\": {error}", path.display()))
}

type TryLock = fn(&std::fs::File) -> Result<(), TryLockError>;

/// Waits for a lock, up to `wait`.
fn lock(file: &fs::File, path: &Path, try_lock: TryLock, wait: Duration) -> io::Result<()> {
    let patience = Deadline::after(wait);
    let mut pause = Duration::from_micros(200);
    loop {
        match try_lock(file.file()) {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(failed(path, &e)),
            Err(TryLockError::WouldBlock) if patience.passed() => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!(
                        "\"{}\" is locked by another program for over {} s",
                        path.display(),
                        wait.as_secs()
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

/// Does `path` still name the file that is open?
fn names(path: &Path, file: &fs::File) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(named) => Ok(id_of(&named) == id(file)?),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}
