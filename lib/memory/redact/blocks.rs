//! Private keys as blocks of lines: PEM (PKCS, EC, OpenSSH) and PGP, complete or cut off.

use memchr::memmem;
use std::sync::LazyLock;

use crate::memory::redact::chars::{BASE64, count, holds, trailing};
use crate::memory::redact::near::{Certainty, Span, from};

const DASHES: &[u8] = b"-----";
/// The longest block, in bytes; the longest real key has about 13 KB.
const LONGEST: usize = 64 * 1024;

/// A longer line is read in pieces, in bytes.
const LINE: usize = 1024;

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    static FINDER: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(DASHES));
    let mut borders = FINDER.find_iter(bytes).filter_map(|at| border(bytes, at)).peekable();
    let mut done = 0;
    while let Some(border) = borders.next() {
        if border.start < done {
            continue;
        }
        let end = match (border.begin, borders.peek()) {
            // If nothing is between them, the last dashes of one label are the first of the other.
            (true, Some(next)) if !next.begin && bytes.get(border.end..next.start).is_some_and(holds_key) => {
                next.end
            }
            (true, _) => cut_off(bytes, border.end),
            (false, _) => border.end,
        };
        let start = if border.begin { border.start } else { headless(bytes, done, border.start) };
        // A label alone is not secret.
        if (end, start) != (border.end, border.start) {
            spans.push(Span { start, end, kind: "private-key", certainty: Certainty::Block });
        }
        done = end;
    }
}

/// The first or last line of a block with a private key.
struct Label {
    start: usize,
    end: usize,
    begin: bool,
}

fn border(bytes: &[u8], start: usize) -> Option<Label> {
    let rest = from(bytes, start + DASHES.len(), 64);
    let begin = rest.starts_with(b"BEGIN ");
    if !begin && !rest.starts_with(b"END ") {
        return None;
    }
    let label = memmem::find(rest, DASHES)?;
    // If the line was cut off, the next dashes belong to another label, and the text before them may be a key.
    let said = &rest[..label];
    let is_label = said.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\')
        && said.split(|byte| !BASE64.has(*byte)).all(|run| run.len() < 24);
    (is_label && holds(said, &["PRIVATE KEY", "OpenVPN Static key"])).then_some(Label {
        start,
        end: start + DASHES.len() + label + DASHES.len(),
        begin,
    })
}

/// Is there a key between the labels, and not just code that looks for them?
fn holds_key(inside: &[u8]) -> bool {
    inside.len() <= LONGEST && inside.split(|byte| !BASE64.has(*byte)).any(|run| run.len() >= 24)
}

/// The end of a block without its last line: after the last line that can belong to a key.
fn cut_off(bytes: &[u8], start: usize) -> usize {
    let (mut end, mut at, mut keyed) = (start, start, false);
    while at < bytes.len() && at - start <= LONGEST {
        let line = from(bytes, at, LINE).split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        match content(line.strip_suffix(b"\n").unwrap_or(line)) {
            LineContent::Key(to) => (end, keyed) = (at + to, true),
            // The last, shorter line of the key.
            LineContent::Short(to) if keyed => return at + to,
            LineContent::Header if !keyed => {}
            _ => break,
        }
        at += line.len();
    }
    end
}

/// The start of a block without its first line: the first line that can belong to a key.
fn headless(bytes: &[u8], floor: usize, from: usize) -> usize {
    let floor = floor.max(from.saturating_sub(LONGEST));
    let (mut start, mut at, mut last) = (from, from, true);
    while let Some(inside) = bytes[floor..at].strip_suffix(b"\n") {
        let (begin, end) = (floor + memchr::memrchr(b'\n', inside).map_or(0, |found| found + 1), at - 1);
        match content(&bytes[begin..end]) {
            LineContent::Key(_) => start = begin,
            LineContent::Short(_) if last => start = begin,
            _ => {
                // The string that it is in may begin here.
                let many = trailing(&bytes[begin..end], 80, |byte| BASE64.has(byte));
                return if many < 40 { start } else { end - many };
            }
        }
        (at, last) = (begin, false);
    }
    start
}

/// What a line of an incomplete block contains; the number is the end of its part of the key.
enum LineContent {
    Key(usize),
    Short(usize),
    /// Or a blank line.
    Header,
    Other,
}

fn content(line: &[u8]) -> LineContent {
    // Around the key there may be quotes, line numbers and operators of the program that printed it.
    let end = line.iter().rposition(|byte| BASE64.has(*byte) && *byte != b'+').map_or(0, |at| at + 1);
    let start = line[..end].iter().rposition(|byte| !BASE64.has(*byte)).map_or(0, |at| at + 1);
    let lead = count(&line[..start], u8::is_ascii_alphabetic);
    match end - start {
        0 => LineContent::Header,
        20.. if lead == 0 => LineContent::Key(end),
        _ if line.windows(2).any(|two| two == b": ") => LineContent::Header,
        _ if lead == 0 && line.len() < 80 => LineContent::Short(end),
        _ => LineContent::Other,
    }
}
