//! Standard input: read when it is not a terminal, never waited for beyond the deadline.

use crate::ground::cli::Notes;
use crate::ground::deadline::Deadline;
use crate::ground::error::{Error, Result};
use crate::ground::text::lossy;
use std::io::{self, IsTerminal, Read};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The most that is read, in bytes: no model's context holds a hundredth of it, but a command may be any filter.
const CAP: u64 = 256 * 1024 * 1024;
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
    let (sender, events) = channel();
    std::thread::spawn(move || {
        let mut all = vec![0; 8 * 1024];
        let mut from = stdin.lock();
        let ended = from.read(&mut all).and_then(|n| {
            all.truncate(n);
            if n > 0 {
                let _ = sender.send(Event::Speaks);
                from.take(CAP).read_to_end(&mut all)?;
            }
            Ok(all)
        });
        let _ = sender.send(Event::Ended(ended));
    });

    let mut patience = QUIET;
    let bytes = loop {
        match events.recv_timeout(patience.min(deadline.remaining())) {
            Ok(Event::Speaks) => patience = Duration::MAX,
            Ok(Event::Ended(ended)) => {
                break ended.map_err(|e| Error::io(format!("cannot read stdin: {e}")))?;
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
    if bytes.len() as u64 > CAP {
        return Err(Error::io(format!("stdin is larger than {} MiB", CAP >> 20)).hint("pipe in less"));
    }
    let (text, damaged) = lossy(bytes);
    if damaged {
        notes.warn("stdin is not valid UTF-8; the invalid bytes became U+FFFD");
    }
    Ok(if text.trim().is_empty() { None } else { Some(text) })
}
