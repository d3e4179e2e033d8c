//! The only writer to stderr: our own lines, the stderr of commands, and the progress line.
//!
//! One owner, because they share the last line of a terminal or a log. A stderr that is closed, full or
//! not read never makes a program fail or wait for long.

use crate::base::sync::{lock, spawn};
use crate::base::text::disarmed;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How long a line waits for a reader that has fallen behind.
const PATIENCE: Duration = Duration::from_secs(1);
const WIPE: &str = "\r\x1b[K";

/// What the last line contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLine {
    Empty,
    /// A command's line, without its newline so far.
    Open,
    /// Progress, to be wiped.
    Progress,
}

/// Locked while writing, so that lines do not mix.
static LAST_LINE: Mutex<LastLine> = Mutex::new(LastLine::Empty);
/// Nobody reads: a line timed out, and later ones are not tried.
static STUCK: AtomicBool = AtomicBool::new(false);
/// The program has printed its last line.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Writes one complete line. Control characters and hidden ones are escaped: they could fake a line or move the cursor.
pub fn line(text: &str) {
    patiently(escaped(text), PATIENCE);
}

/// Writes one complete line; nothing is printed after it.
pub(super) fn last_line(text: &str, patience: Duration) {
    CLOSED.store(true, SeqCst);
    patiently(escaped(text), patience);
}

fn escaped(text: &str) -> String {
    disarmed(text).replace('\n', "\\n").replace('\t', "\\t")
}

fn patiently(text: String, patience: Duration) {
    if STUCK.load(SeqCst) {
        return;
    }
    // On a busy machine, a thread may begin later than a patience lasts. Where there is room, none is needed.
    if put_at_once(&text) {
        return;
    }
    let (done, written) = channel::<()>();
    let copy = text.clone();
    let writer = spawn(move || {
        put_line(&copy);
        drop(done);
    });
    if writer.is_err() {
        // No thread left: better to wait for the reader than to print nothing.
        put_line(&text);
    } else if written.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        STUCK.store(true, SeqCst);
    }
}

/// Writes a line if that takes no waiting; `false` if it might.
fn put_at_once(text: &str) -> bool {
    // A thread that holds it may be waiting for the reader.
    let Ok(mut last) = LAST_LINE.try_lock() else { return false };
    let has_room = has_room_for(text);
    if has_room {
        write(&mut last, |before| line_after(before, text));
    }
    has_room
}

/// Whether a write of the line returns at once. A pipe that can be written to takes `PIPE_BUF` bytes, at least 512 by POSIX.
#[cfg(unix)]
fn has_room_for(text: &str) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    const PIPE_BUF: usize = 512;
    let stderr = io::stderr();
    let mut stderr = [PollFd::new(&stderr, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // What wipes the progress, or ends a command's line, comes on top.
    text.len() + 16 <= PIPE_BUF
        && poll(&mut stderr, Some(&now)).is_ok()
        && stderr[0].revents() == PollFlags::OUT
}

#[cfg(not(unix))]
fn has_room_for(_text: &str) -> bool {
    false
}

fn put_line(text: &str) {
    put(|before| line_after(before, text));
}

/// A line of ours after what the last line contains.
fn line_after(before: LastLine, text: &str) -> (Vec<u8>, LastLine) {
    let line = match before {
        LastLine::Empty => format!("{text}\n"),
        LastLine::Open => format!("\n{text}\n"),
        LastLine::Progress => format!("{WIPE}{text}\n"),
    };
    (line.into_bytes(), LastLine::Empty)
}

/// Passes on a command's output, unless its time is `over`. Waits for the reader.
pub(super) fn pass_on(bytes: &[u8], over: &AtomicBool) -> bool {
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

/// Shows progress on a terminal's last line, if that line is free.
pub(super) fn progress(text: &str) {
    put(|before| match before {
        LastLine::Open => (Vec::new(), before),
        _ if CLOSED.load(SeqCst) => (Vec::new(), before),
        LastLine::Empty | LastLine::Progress => (format!("{WIPE}{text}").into_bytes(), LastLine::Progress),
    });
}

/// Keeps the progress away from a question on the terminal, and from its answer.
pub(super) fn beside_question<T>(ask: impl FnOnce() -> T) -> T {
    wipe_progress();
    put(|_| (Vec::new(), LastLine::Open));
    let answer = ask();
    put(|_| (Vec::new(), LastLine::Empty));
    answer
}

/// Removes the progress from the terminal.
pub(super) fn wipe_progress() {
    put(|before| match before {
        LastLine::Progress => (WIPE.as_bytes().to_vec(), LastLine::Empty),
        other => (Vec::new(), other),
    });
}

/// One write, which depends on what the last line contains. Errors are ignored.
fn put(compose: impl FnOnce(LastLine) -> (Vec<u8>, LastLine)) {
    write(&mut lock(&LAST_LINE), compose);
}

fn write(last: &mut LastLine, compose: impl FnOnce(LastLine) -> (Vec<u8>, LastLine)) {
    let (bytes, after) = compose(*last);
    if !bytes.is_empty() {
        let _ = io::stderr().write_all(&bytes);
    }
    *last = after;
}
