//! Standard input: read when it is not a terminal, never waited for beyond the deadline.

use crate::ground::cli::Notes;
use crate::ground::deadline::Deadline;
use crate::ground::error::{Error, Result};
use crate::ground::text::lossy;
use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The most that is read, in bytes: no model's context holds a hundredth of it, but a command may be any filter.
const CAP: usize = 256 * 1024 * 1024;
/// An open pipe that has said nothing for so long gets a word about `--no-stdin`.
const QUIET: Duration = Duration::from_secs(3);

/// What was piped in, as text; `None` for a terminal and for nothing but white space.
pub(crate) fn read(deadline: Deadline, notes: &Notes) -> Result<Option<String>> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    enum Event {
        Speaks,
        Ended(io::Result<Vec<u8>>),
    }
    if ends_by_itself() {
        let all = read_all(&mut stdin.lock(), || {}).map_err(unreadable)?;
        return as_text(all, notes);
    }
    let (sender, events) = channel();
    let reader = std::thread::Builder::new().spawn(move || {
        let ended = read_all(&mut stdin.lock(), || {
            let _ = sender.send(Event::Speaks);
        });
        let _ = sender.send(Event::Ended(ended));
    });
    reader.map_err(unreadable)?;

    let mut patience = QUIET;
    let bytes = loop {
        match events.recv_timeout(patience.min(deadline.remaining())) {
            Ok(Event::Speaks) => patience = Duration::MAX,
            Ok(Event::Ended(ended)) => {
                break ended.map_err(unreadable)?;
            }
            Err(RecvTimeoutError::Timeout) if !deadline.passed() => {
                notes.warn(
                    "stdin is open but silent; waiting for its end. Use --no-stdin if nothing is piped in",
                );
                patience = Duration::MAX;
            }
            Err(_) => {
                return Err(Error::io("stdin did not end before the timeout")
                    .hint("close it, or use --no-stdin or a longer --timeout"));
            }
        }
    };
    as_text(bytes, notes)
}

fn as_text(bytes: Vec<u8>, notes: &Notes) -> Result<Option<String>> {
    if bytes.len() > CAP {
        return Err(Error::io(format!("stdin is larger than {} MiB", CAP >> 20)).hint("pipe in less"));
    }
    let (text, damaged) = lossy(bytes);
    if damaged {
        notes.warn("stdin is not valid UTF-8; the invalid bytes became U+FFFD");
    }
    Ok(if text.trim().is_empty() { None } else { Some(text) })
}

fn unreadable(e: io::Error) -> Error {
    Error::io(format!("cannot read stdin: {e}"))
}

/// A file or `/dev/null` needs no thread to be waited for.
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

/// Everything up to the end, or a little more than [`CAP`]. `speaks` is called at the first byte.
fn read_all(from: &mut impl Read, speaks: impl Fn()) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while all.len() <= CAP {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                if all.is_empty() {
                    speaks();
                }
                all.extend_from_slice(&buffer[..n]);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Some parents hand down a pipe that does not block. The deadline is kept by who waits for us.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(5)),
            Err(e) => return Err(e),
        }
    }
    Ok(all)
}
