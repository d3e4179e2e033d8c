//! Reads a session file line by line. Lines that are too long are skipped; incomplete ones are counted.

use crate::base::error::{Error, Result};
use crate::base::lines::next_line;
use crate::base::reach;
use crate::base::text::counted;
use crate::harness::content::{Object, Skip, Taken};
use crate::harness::out::TurnSink;
use crate::harness::watched::WatchedFile;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The longest line that is read, in bytes. Usual ones have up to 150 kB.
pub const LINE_CAP: usize = 64 << 20;
const BLOCK: usize = 64 << 10;
pub(super) type Reader = BufReader<WatchedFile>;

/// Opens a session file. If it cannot be one, the error says what it is instead.
pub(super) fn open(path: &Path, expected: &str) -> Result<Reader> {
    let wrong = |what: &str| Error::io(format!("\"{}\" {what}, not {expected}", path.display()));
    let refused = |e: io::Error| match e.kind() {
        io::ErrorKind::IsADirectory => wrong("is a directory"),
        _ => failed(path, &e),
    };
    reach::within(path, Path::is_file).map_err(refused)?;
    let watched = WatchedFile::open(path).map_err(refused)?;
    let mut reader = BufReader::with_capacity(BLOCK, watched);
    let mut zeroes = 0;
    // A power cut may leave them in the place of what was written last, or first.
    loop {
        let start = reader.fill_buf().map_err(refused)?;
        let more = start.iter().take_while(|byte| **byte == 0).count();
        if more == 0 {
            break;
        }
        reader.consume(more);
        zeroes += more;
    }
    let start = reader.buffer();
    if start.is_empty() {
        return Err(wrong(if zeroes > 0 { "contains only zero bytes" } else { "is empty" }));
    }
    if start.contains(&0) {
        return Err(wrong("is a binary file"));
    }
    if start.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    Ok(reader)
}

pub(super) fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::io(format!("no file \"{}\"", path.display())),
        // fs-err's errors name the path.
        _ => Error::io(format!("cannot read the session: {error}")),
    }
}

/// The first record of a session; null if there is none in the first `cap` bytes.
pub(super) fn first_record(path: &Path, cap: usize) -> Result<Value> {
    let mut first = Vec::new();
    next_line(&mut open(path, "a session")?, &mut first, cap).map_err(|e| failed(path, &e))?;
    Ok(serde_json::from_slice(&first).unwrap_or_default())
}

/// A line of a file.
#[derive(Clone, Copy)]
pub(super) struct SessionLine<'a> {
    pub(super) text: &'a str,
    /// Its position in the file, in bytes.
    pub(super) offset: u64,
    /// The file contains exactly this: no invalid UTF-8 was replaced.
    pub(super) exact: bool,
}

/// Passes the record of every line of a JSON Lines file of `program` to `take`, and counts the results. A file without a
/// known record is an error, unless it is the incomplete first line of one.
pub(super) fn each_line(
    path: &Path,
    program: &str,
    out: &mut TurnSink,
    mut take: impl FnMut(&Object, SessionLine, &mut TurnSink) -> Taken,
) -> Result<Reader> {
    let mut reader = open(path, &format!("a {program} session"))?;
    let mut buffer = Vec::new();
    let mut offset = io::Seek::stream_position(&mut reader).map_err(|e| failed(path, &e))?;
    let (mut lines, mut known) = (0_usize, 0_usize);
    let mut torn_start = false;
    loop {
        let start = offset;
        let found = next_line(&mut reader, &mut buffer, LINE_CAP).map_err(|e| failed(path, &e))?;
        offset += found.length;
        if found.length == 0 {
            break;
        }
        if found.too_long {
            lines += 1;
            out.report.too_long += 1;
            continue;
        }
        let text = String::from_utf8_lossy(&buffer);
        if text.trim().is_empty() {
            continue;
        }
        lines += 1;
        let exact = matches!(text, Cow::Borrowed(_));
        let line = SessionLine { text: &text, offset: start, exact };
        match Object::parse(&text).and_then(|record| take(&record, line, out)) {
            Ok(()) => known += 1,
            Err(Skip::Unknown(kind)) => out.report.unknown(&kind),
            Err(Skip::Shape) => out.report.unknown("(another shape)"),
            Err(Skip::Torn) => {
                out.report.torn += 1;
                torn_start = lines == 1 && !found.ended && exact && text.starts_with('{');
            }
            Err(Skip::Stopped(error)) => return Err(error),
        }
    }
    let messages = out.report.unreadable;
    let is_silent = messages > 0 && out.is_silent();
    if !is_silent && (known > 0 || torn_start) {
        return Ok(reader);
    }
    out.is_foreign = true;
    let said = || counted(messages, "message", "messages");
    let what = match (is_silent, lines) {
        (true, _) => format!("has {}, none of which {program} wrote", said()),
        (_, 0) => "contains only white space".to_owned(),
        (_, 1) => format!("is one line that is not a {program} record"),
        _ => format!("has {lines} lines, and none is a {program} record"),
    };
    Err(Error::io(format!("\"{}\" {what}", path.display())))
}

/// Passes every record of a JSON Lines file to `take`, before it is read for its turns. What is wrong is said then.
pub(super) fn each_record(path: &Path, mut take: impl FnMut(&Object, u64) -> Taken) -> Result<()> {
    let mut ignore = |_| Ok(());
    let mut out = TurnSink::new(&mut ignore, None, HashSet::new());
    each_line(path, "", &mut out, |record, line, _| take(record, line.offset)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_complete_across_blocks_and_too_long_ones_are_skipped() {
        let text = format!("one\n{}\r\n\n{}\nlast", "x".repeat(20), "y".repeat(31));
        let mut reader = BufReader::with_capacity(7, text.as_bytes());
        let mut buffer = Vec::new();
        let mut seen = Vec::new();
        loop {
            let found = next_line(&mut reader, &mut buffer, 30).unwrap();
            if found.length == 0 {
                break;
            }
            seen.push((buffer.len(), found.length, found.ended, found.too_long));
        }
        assert_eq!(
            seen,
            [
                (3, 4, true, false),
                (21, 22, true, false),
                (0, 1, true, false),
                (0, 32, true, true),
                (4, 4, false, false)
            ]
        );
    }

    #[test]
    fn what_the_kernel_makes_up_is_no_session() {
        for path in ["/proc/kmsg", "/proc/self/status", "/dev/null", "/dev/stdin"] {
            if Path::new(path).exists() {
                let error = open(Path::new(path), "a session").err().unwrap();
                assert!(error.line().contains("not a regular file"), "{}", error.line());
            }
        }
    }
}
