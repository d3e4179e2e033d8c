//! The one way to stderr: whole lines of ours, what commands say, and the line that shows progress.
//!
//! One owner, because they share the last line of a terminal or a log. A stderr that is closed, full or
//! not read is never a reason to fail, and never one to wait for long.

use crate::base::text::is_odd;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a line waits for a reader that has fallen behind.
const PATIENCE: Duration = Duration::from_secs(1);
const WIPE: &str = "\r\x1b[K";

/// What stands on the last line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLine {
    Empty,
    /// Text of a command, without its end yet.
    Open,
    /// Shows progress, to be wiped.
    Progress,
}

/// Held while writing, so that nothing is mixed.
static LAST_LINE: Mutex<LastLine> = Mutex::new(LastLine::Empty);
/// Nobody reads: a line was waited for in vain, and no further one is.
static STUCK: AtomicBool = AtomicBool::new(false);
/// The program has said its last word.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes one whole line. Control characters in names and values are spelled out, and so is what turns text around:
/// they could fake a line, or move the cursor.
pub(crate) fn line(text: &str) {
    patiently(spelled_out(text), PATIENCE);
}

/// Writes one whole line, after which nothing else comes.
pub(crate) fn last_line(text: &str, patience: Duration) {
    CLOSED.store(true, SeqCst);
    patiently(spelled_out(text), patience);
}

fn spelled_out(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_odd(c) { line.extend(c.escape_debug()) } else { line.push(c) }
    }
    line
}

fn patiently(text: String, patience: Duration) {
    if STUCK.load(SeqCst) {
        return;
    }
    let (done, written) = channel::<()>();
    let copy = text.clone();
    let writer = std::thread::Builder::new().spawn(move || {
        put_line(&copy);
        drop(done);
    });
    if writer.is_err() {
        // No thread is to be had: better to wait for the reader than to say nothing.
        put_line(&text);
    } else if written.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        STUCK.store(true, SeqCst);
    }
}

fn put_line(text: &str) {
    put(|before| match before {
        LastLine::Empty => (format!("{text}\n").into_bytes(), LastLine::Empty),
        LastLine::Open => (format!("\n{text}\n").into_bytes(), LastLine::Empty),
        LastLine::Progress => (format!("{WIPE}{text}\n").into_bytes(), LastLine::Empty),
    });
}

/// Passes on what a command says, unless its time is `over` by now. Waits for the reader.
pub(crate) fn pass_on(bytes: &[u8], over: &AtomicBool) -> bool {
    put(|before| {
        if bytes.is_empty() || over.load(SeqCst) || CLOSED.load(SeqCst) {
            return (Vec::new(), before);
        }
        let mut all = if before == LastLine::Progress { WIPE.as_bytes().to_vec() } else { Vec::new() };
        all.extend_from_slice(bytes);
        (all, if bytes.ends_with(b"\n") { LastLine::Empty } else { LastLine::Open })
    });
    !over.load(SeqCst) && !CLOSED.load(SeqCst)
}

/// Shows progress on a terminal's last line, where nothing else stands.
pub(crate) fn progress(text: &str) {
    put(|before| match before {
        LastLine::Open => (Vec::new(), before),
        _ if CLOSED.load(SeqCst) => (Vec::new(), before),
        LastLine::Empty | LastLine::Progress => (format!("{WIPE}{text}").into_bytes(), LastLine::Progress),
    });
}

/// Takes the progress off the terminal.
pub(crate) fn wipe_progress() {
    put(|before| match before {
        LastLine::Progress => (WIPE.as_bytes().to_vec(), LastLine::Empty),
        other => (Vec::new(), other),
    });
}

/// One write, by what stands on the last line before it. An error is nobody's concern.
fn put(compose: impl FnOnce(LastLine) -> (Vec<u8>, LastLine)) {
    let mut last = LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner);
    let (bytes, after) = compose(*last);
    if !bytes.is_empty() {
        let _ = io::stderr().write_all(&bytes);
    }
    *last = after;
}
