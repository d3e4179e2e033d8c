//! The one way to a path that may lie on a mount which no longer answers: an AGENTS.md, a checkout, a session, the directory
//! of another program. There a system call never returns. So it is made in a thread that is left behind.

use crate::base::cli::Reporter;
use crate::base::file;
use crate::base::signal;
use crate::base::sync::{IS_LEFT_BEHIND, lock, spawn};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a path has to answer, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(2000);
/// How long it may take to write there: a disk that answers may be slow to sync.
const WRITE: Duration = Duration::from_secs(10);
/// The same once a path has not answered: the next ones are likely to be on the same mount.
const LESS: u64 = 100;
/// The places that have not answered. They are not asked again in this run.
static DEAD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// For a hook, which somebody waits for.
pub fn hurry(patience: Duration) {
    PATIENCE.store(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// The same, as long as `work` runs.
pub fn hurried<T>(patience: Duration, work: impl FnOnce() -> T) -> T {
    let before = PATIENCE.load(Ordering::Relaxed);
    hurry(patience);
    let hurried = PATIENCE.load(Ordering::Relaxed);
    let done = work();
    // Once a path has not answered, none is waited for any longer.
    let _ = PATIENCE.compare_exchange(hurried, before, Ordering::Relaxed, Ordering::Relaxed);
    done
}

/// What `work` returns for the path.
///
/// # Errors
/// `TimedOut`: the path does not answer. `work` may still go on.
pub fn within<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> T + Send + 'static,
) -> io::Result<T> {
    within_time(Duration::from_millis(PATIENCE.load(Ordering::Relaxed)), path, work)
}

/// The bytes of a file. See [`file::read`].
pub fn read(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    within(path, move |path| file::read(path, cap))?
}

/// The same of work that writes there. A signal waits for it.
pub fn writing<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> T + Send + 'static,
) -> io::Result<T> {
    let _whole = signal::shield();
    within_time(WRITE, path, work)
}

fn within_time<T: Send + 'static>(
    patience: Duration,
    path: &Path,
    work: impl FnOnce(&Path) -> T + Send + 'static,
) -> io::Result<T> {
    if IS_LEFT_BEHIND.get() {
        return Ok(work(path));
    }
    let silent = || {
        let what = format!("\"{}\" does not answer: its disk or network may be gone", path.display());
        io::Error::new(io::ErrorKind::TimedOut, what)
    };
    if lock(&DEAD).iter().any(|dead| path.starts_with(dead)) {
        return Err(silent());
    }
    let work = Arc::new(Mutex::new(Some(work)));
    let (sender, result) = channel();
    let (this, there) = (path.to_path_buf(), Arc::clone(&work));
    let started = spawn(move || {
        IS_LEFT_BEHIND.set(true);
        // Not held as long as the work takes.
        let work = lock(&there).take();
        if let Some(work) = work {
            let _ = sender.send(work(&this));
        }
    });
    if started.is_err() {
        // Where no thread is to be had, this one waits.
        let work = lock(&work).take().ok_or_else(silent)?;
        IS_LEFT_BEHIND.set(true);
        let done = work(path);
        IS_LEFT_BEHIND.set(false);
        return Ok(done);
    }
    match result.recv_timeout(patience) {
        Ok(done) => Ok(done),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread that reads it has failed")),
        Err(RecvTimeoutError::Timeout) => {
            // What the thread has not begun must not be done later.
            drop(lock(&work).take());
            bury(path);
            Err(silent())
        }
    }
}

/// Does the path answer, whatever it says? A file or directory is opened too: of what is gone, the kernel may remember that it
/// was there.
pub fn answers(path: &Path) -> bool {
    let touch = |path: &Path| {
        if path.metadata().is_ok_and(|metadata| metadata.is_file() || metadata.is_dir()) {
            let _ = fs_err::File::open(path);
        }
    };
    within(path, touch).is_ok()
}

/// The path as [`Path::canonicalize`] has it; `None` if there is none, or it does not answer.
pub fn real(path: &Path) -> Option<PathBuf> {
    within(path, Path::canonicalize).ok()?.ok()
}

/// From now on nothing is asked at or below the first directory of the path that does not answer.
fn bury(path: &Path) {
    PATIENCE.fetch_min(LESS, Ordering::Relaxed);
    let mut dirs: Vec<PathBuf> = path.ancestors().map(Path::to_path_buf).collect();
    let (sender, answered) = channel();
    let tops: Vec<PathBuf> = dirs.iter().rev().cloned().collect();
    let _ = spawn(move || tops.iter().try_for_each(|dir| sender.send(dir.metadata().is_ok())));
    while answered.recv_timeout(Duration::from_millis(LESS)).is_ok() {
        dirs.pop();
    }
    let dead = dirs.pop().unwrap_or_else(|| path.to_path_buf());
    let mut all = lock(&DEAD);
    if !all.contains(&dead) {
        Reporter::new(false)
            .warn(&format!("\"{}\" does not answer; nothing there is read or written", dead.display()));
        all.push(dead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answers_is_returned_and_what_is_missing_answers() {
        let dir = tempfile::tempdir().unwrap();
        assert!(within(dir.path(), Path::is_dir).unwrap());
        assert!(answers(&dir.path().join("missing")));
        assert_eq!(real(&dir.path().join("missing")), None);
        assert_eq!(real(dir.path()), dir.path().canonicalize().ok());
    }

    #[test]
    fn what_does_not_answer_is_asked_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let (stuck, waits) = channel::<()>();
        let error = within(&path, move |_| waits.recv().is_ok()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("does not answer"), "{error}");
        // The directories above it do answer, so that only the path itself is known as dead.
        assert!(within(&path.join("c"), |_| panic!("asked again")).is_err());
        assert!(within(dir.path(), Path::is_dir).unwrap());
        drop(stuck);
    }
}
