//! Locks and threads that do not panic.

use std::cell::Cell;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, even if a thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// This thread works on a path that may never answer, see `reach`.
    pub static IS_LEFT_BEHIND: Cell<bool> = const { Cell::new(false) };
}

/// Starts a thread that is not joined. Unlike `std::thread::spawn`, it returns an error if the system has none left.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}
