//! A line on a terminal that says what is being waited for, and how long already.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shows itself from the second second on, wipes itself when dropped. In a pipe, a log or a timer's
/// journal it does nothing.
pub(crate) struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub(crate) fn start(wanted: bool, what: String) -> Progress {
        if !wanted || !std::io::stderr().is_terminal() {
            return Progress { running: None };
        }
        let (stop, stopped) = channel::<()>();
        let started = Instant::now();
        let thread = std::thread::spawn(move || {
            let mut shown = false;
            // The channel never carries a value: it only closes.
            while stopped.recv_timeout(Duration::from_secs(1))
                == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                shown = true;
                show(&format!("\r\x1b[K{what} … {} s", started.elapsed().as_secs()));
            }
            if shown {
                show("\r\x1b[K");
            }
        });
        Progress { running: Some((stop, thread)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn show(text: &str) {
    let mut err = std::io::stderr();
    let _ = err.write_all(text.as_bytes());
    let _ = err.flush();
}
