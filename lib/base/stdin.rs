//! Standard input: read to its end, but not beyond the deadline.

use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::sync::spawn;
use crate::base::text::{lossy, size};
use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// After this time a warning says that an open pipe is silent.
const QUIET: Duration = Duration::from_secs(3);

/// How a program reads stdin, and its advice if a pipe does not end.
pub struct StdinOptions {
    pub deadline: Deadline,
    /// The limit, in bytes.
    pub cap: usize,
    /// Whether a terminal is read too, up to Ctrl-D.
    pub typed: bool,
    /// Whether the bytes so far are the complete input, although the pipe is still open.
    pub is_whole: fn(&[u8]) -> bool,
    /// The advice for a pipe that is silent.
    pub if_silent: &'static str,
    /// The advice for one that has not ended by the deadline.
    pub if_late: &'static str,
}

/// Whether a person would have to type the input.
pub fn is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// The input as text; `None` for a terminal and for white space only.
pub fn read(terms: &StdinOptions, reporter: &Reporter) -> Result<Option<String>> {
    Ok(read_bytes(terms, reporter)?.and_then(|bytes| text_of(bytes, reporter)))
}

/// What was read, as text; `None` for white space only.
pub fn text_of(bytes: Vec<u8>, reporter: &Reporter) -> Option<String> {
    let (text, damaged) = lossy(bytes);
    if damaged {
        reporter.warn("stdin is not valid UTF-8; the invalid bytes became U+FFFD");
    }
    Some(text).filter(|text| !text.trim().is_empty())
}

/// The input as bytes; `None` for a terminal that is not to be read.
pub fn read_bytes(terms: &StdinOptions, reporter: &Reporter) -> Result<Option<Vec<u8>>> {
    let stdin = io::stdin();
    let is_terminal = stdin.is_terminal();
    if is_terminal && !terms.typed {
        return Ok(None);
    }
    enum StdinEvent {
        Speaks,
        Ended(io::Result<Vec<u8>>),
    }
    let (cap, is_whole) = (terms.cap, terms.is_whole);
    if ends_by_itself() {
        let all = read_all(&mut stdin.lock(), cap, is_whole, || {}).map_err(unreadable)?;
        return within(all, cap);
    }
    let (sender, events) = channel();
    let reader = spawn(move || {
        let ended = read_all(&mut stdin.lock(), cap, is_whole, || {
            let _ = sender.send(StdinEvent::Speaks);
        });
        let _ = sender.send(StdinEvent::Ended(ended));
    });
    reader.map_err(unreadable)?;

    // No warning about silence for a person who types.
    let mut patience = if is_terminal { Duration::MAX } else { QUIET };
    loop {
        match events.recv_timeout(patience.min(terms.deadline.remaining())) {
            Ok(StdinEvent::Speaks) => patience = Duration::MAX,
            Ok(StdinEvent::Ended(ended)) => return within(ended.map_err(unreadable)?, cap),
            Err(RecvTimeoutError::Timeout) if !terms.deadline.passed() => {
                reporter.warn(&format!("stdin is open but silent; waiting for its end. {}", terms.if_silent));
                patience = Duration::MAX;
            }
            Err(_) => {
                return Err(Error::io("stdin did not end before the timeout").hint(terms.if_late));
            }
        }
    }
}

/// A line that a person types at the terminal, without its end; `None` at Ctrl-D.
pub fn answer(deadline: Deadline) -> Result<Option<String>> {
    line(|line| io::stdin().read_line(line), deadline)
}

/// The same from wherever `read` reads it.
pub(super) fn line(
    read: impl FnOnce(&mut String) -> io::Result<usize> + Send + 'static,
    deadline: Deadline,
) -> Result<Option<String>> {
    let (sender, answers) = channel();
    let reader = spawn(move || {
        let mut line = String::new();
        let _ = sender.send(read(&mut line).map(|count| (count > 0).then_some(line)));
    });
    reader.map_err(unreadable)?;
    match answers.recv_timeout(deadline.remaining()) {
        Ok(line) => Ok(line.map_err(unreadable)?.map(|line| line.trim_end_matches(['\n', '\r']).to_owned())),
        Err(_) => Err(Error::io("nobody has answered").hint("run it again when you have the time")),
    }
}

fn within(bytes: Vec<u8>, cap: usize) -> Result<Option<Vec<u8>>> {
    if bytes.len() > cap {
        return Err(Error::io(format!("stdin is larger than {}", size(cap as u64))).hint("pipe in less"));
    }
    Ok(Some(bytes))
}

pub fn unreadable(e: io::Error) -> Error {
    Error::io(format!("cannot read stdin: {e}"))
}

/// A file or `/dev/null` ends without waiting, so it needs no thread.
#[cfg(unix)]
fn ends_by_itself() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let Ok(stdin) = io::stdin().as_fd().try_clone_to_owned() else { return false };
    let Ok(metadata) = std::fs::File::from(stdin).metadata() else { return false };
    let is_null = |null: std::fs::Metadata| (null.rdev(), null.mode()) == (metadata.rdev(), metadata.mode());
    metadata.is_file() || std::fs::metadata("/dev/null").is_ok_and(is_null)
}

#[cfg(not(unix))]
fn ends_by_itself() -> bool {
    false
}

/// Everything up to the end, or a little more than `cap`. Calls `speaks` at the first byte.
fn read_all(
    from: &mut impl Read,
    cap: usize,
    is_whole: fn(&[u8]) -> bool,
    speaks: impl Fn(),
) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while all.len() <= cap {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                if all.is_empty() {
                    speaks();
                }
                all.extend_from_slice(&buffer[..n]);
                if is_whole(&all) {
                    break;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Some parents pass a non-blocking pipe. The waiting thread keeps the deadline.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(5)),
            Err(e) => return Err(e),
        }
    }
    Ok(all)
}
