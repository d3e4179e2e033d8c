//! A line on a terminal that says what the program waits for, and for how long.

use crate::base::stderr;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Appears after one second and is removed when dropped. In a pipe, a log or a timer's journal it does nothing.
pub struct Progress {
    running: Option<(Sender<()>, Receiver<()>)>,
}

impl Progress {
    pub fn start(wanted: bool, what: String) -> Progress {
        Progress::of(wanted, move || what.clone())
    }

    /// The same for something that changes.
    pub fn of(wanted: bool, what: impl Fn() -> String + Send + 'static) -> Progress {
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { running: None };
        }
        let (stop, stopped) = channel::<()>();
        let (wiped, done) = channel();
        let started = Instant::now();
        let thread = std::thread::Builder::new().spawn(move || {
            // The channel never carries a value: it only closes.
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                stderr::progress(&format!("{} … {} s", what(), started.elapsed().as_secs()));
            }
            stderr::wipe_progress();
            drop::<Sender<()>>(wiped);
        });
        // Without a thread there is no progress line.
        Progress { running: thread.is_ok().then_some((stop, done)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, done)) = self.running.take() {
            drop(stop);
            // A terminal that has stopped its output (^S) must not keep us.
            let _ = done.recv_timeout(Duration::from_millis(100));
        }
    }
}
