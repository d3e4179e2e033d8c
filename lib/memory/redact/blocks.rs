//! Private keys as blocks of lines: PEM (PKCS, EC, OpenSSH) and PGP, whole, cut off, or inside a string with
//! its line ends escaped.

use memchr::memmem;
use std::sync::LazyLock;

use crate::memory::redact::span::{Certainty, CharClass, Span};

const DASHES: &[u8] = b"-----";
/// The longest label is far shorter; the longest key is about 13 KB.
const LONGEST: usize = 64 * 1024;

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    static FINDER: LazyLock<memmem::Finder<'_>> = LazyLock::new(|| memmem::Finder::new(DASHES));
    let mut borders = FINDER.find_iter(bytes).filter_map(|at| border(bytes, at)).peekable();
    let mut done = 0;
    while let Some(border) = borders.next() {
        if border.start < done {
            continue;
        }
        let end = match (border.begin, borders.peek()) {
            // Where a line is missing between them, one's last dashes are the other's first.
            (true, Some(next)) if !next.begin && bytes.get(border.end..next.start).is_some_and(holds_key) => {
                next.end
            }
            (true, _) => cut_off(bytes, border.end),
            (false, _) => border.end,
        };
        let start = if border.begin { border.start } else { headless(bytes, done, border.start) };
        // A label alone gives nothing away.
        if (end, start) != (border.end, border.start) {
            spans.push(Span { start, end, kind: "private-key", certainty: Certainty::Block });
        }
        done = end;
    }
}

/// The first or last line of a block with a private key in it.
struct Label {
    start: usize,
    end: usize,
    begin: bool,
}

fn border(bytes: &[u8], start: usize) -> Option<Label> {
    let rest = &bytes[start + DASHES.len()..];
    let rest = &rest[..rest.len().min(64)];
    let begin = rest.starts_with(b"BEGIN ");
    if !begin && !rest.starts_with(b"END ") {
        return None;
    }
    let label = memmem::find(rest, DASHES)?;
    // Of a line that was cut off, the next dashes belong to another: what stands before them may be a key's.
    let said = &rest[..label];
    let is_label = said.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\')
        && said.split(|byte| !CharClass::Base64.has(*byte)).all(|run| run.len() < 24);
    memmem::find(said, b"PRIVATE KEY").filter(|_| is_label)?;
    Some(Label { start, end: start + DASHES.len() + label + DASHES.len(), begin })
}

/// Whether a key stands between the labels, and not only the code that looks for them.
fn holds_key(inside: &[u8]) -> bool {
    inside.len() <= LONGEST && inside.split(|byte| !CharClass::Base64.has(*byte)).any(|run| run.len() >= 24)
}

/// Where a block ends whose last line is missing: behind the last line that can be a key's.
fn cut_off(bytes: &[u8], from: usize) -> usize {
    let (mut end, mut at, mut keyed) = (from, from, false);
    while at < bytes.len() && at - from <= LONGEST {
        let line = line(bytes, at);
        match payload(&bytes[at..line.end]) {
            LineContent::Key(to) => (end, keyed) = (at + to, true),
            // The rest that did not fill its line, and then nothing more.
            LineContent::Short(to) if keyed => return at + to,
            LineContent::Header | LineContent::Blank if !keyed => {}
            _ => break,
        }
        at = line.next;
    }
    end
}

/// Where a block begins whose first line is missing: at the first line that can be a key's.
fn headless(bytes: &[u8], floor: usize, from: usize) -> usize {
    let floor = floor.max(from.saturating_sub(LONGEST));
    let (mut start, mut at, mut last) = (from, from, true);
    while at > floor {
        let before = &bytes[floor..at];
        let (end, escaped) = match before {
            [.., b'\\', b'n'] => (at - 2, true),
            [.., b'\n'] => (at - 1, false),
            _ => break,
        };
        let inside = &bytes[floor..end];
        let begin = match escaped {
            true => memmem::rfind(inside, b"\\n").map_or_else(|| not_base64(inside), |found| found + 2),
            false => memchr::memrchr(b'\n', inside).map_or(0, |found| found + 1),
        } + floor;
        match payload(&bytes[begin..end]) {
            LineContent::Key(_) => start = begin,
            LineContent::Short(_) if last => start = begin,
            _ => break,
        }
        (at, last) = (begin, false);
    }
    start
}

fn not_base64(inside: &[u8]) -> usize {
    inside.iter().rposition(|byte| !CharClass::Base64.has(*byte)).map_or(0, |found| found + 1)
}

/// A line's end without its line break, and where the next begins. A written `\n` breaks lines too.
struct Line {
    end: usize,
    next: usize,
}

fn line(bytes: &[u8], from: usize) -> Line {
    let rest = &bytes[from..];
    let rest = &rest[..rest.len().min(1024)];
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'\n' => return Line { end: from + at, next: from + at + 1 },
            b'\\' if matches!(rest.get(at + 1), Some(b'n')) => {
                return Line { end: from + at, next: from + at + 2 };
            }
            _ => {}
        }
    }
    Line { end: from + rest.len(), next: from + rest.len() }
}

/// What a line of a cut-off block holds; the number is where its part of the key ends.
enum LineContent {
    Key(usize),
    Short(usize),
    Header,
    Blank,
    Other,
}

fn payload(line: &[u8]) -> LineContent {
    // Quotes, line numbers and joining signs of whoever printed it stand around the key's characters.
    let end =
        line.iter().rposition(|byte| CharClass::Base64.has(*byte) && *byte != b'+').map_or(0, |at| at + 1);
    let start = line[..end].iter().rposition(|byte| !CharClass::Base64.has(*byte)).map_or(0, |at| at + 1);
    let lead = line[..start].iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    match end - start {
        0 => LineContent::Blank,
        20.. if lead == 0 => LineContent::Key(end),
        _ if line.windows(2).any(|two| two == b": ") => LineContent::Header,
        _ if lead == 0 && line.len() < 80 => LineContent::Short(end),
        _ => LineContent::Other,
    }
}
