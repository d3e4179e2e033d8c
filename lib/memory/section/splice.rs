//! The section's place in a file. Outside its markers not one byte changes.
//!
//! A marker is a line of its own, indented by at most three blanks; a byte order mark may stand before it. In a
//! code fence it is text: somebody shows how a section looks. That must not hide our own section behind a fence
//! that its owner forgot to close, or each run would add another. So a fence that never ends is none; and one
//! that would end at a fence of a note, between our heading and an end outside, does not hide the start.

use crate::harness::recalled::{END, START};
use crate::memory::section::fences::{Fence, fence};
use std::ops::Range;

const MARK: &[u8] = b"\xef\xbb\xbf";
const CRLF: &[u8] = b"\r\n";
/// The line after the start.
pub(crate) const HEADING: &str = "## Memory";
/// So many faults are named.
const NAMED: usize = 5;

/// A line that means something here.
#[derive(Debug)]
struct Line {
    number: usize,
    /// Of a marker, without the blanks around it.
    range: Range<usize>,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Start,
    End,
    Fence(Fence),
}

/// Where the section stands, from the first byte of its start to the last of its end; `None`: the file has none.
///
/// The error says what is wrong with the markers, with their lines.
pub(crate) fn find(bytes: &[u8]) -> Result<Option<Range<usize>>, String> {
    let lines = lines(bytes);
    let longest = longest_closers(&lines);
    let (mut sections, mut faults) = (Vec::new(), Vec::new());
    // The last marker, if it is a start in a fence.
    let mut fenced: Option<&Line> = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at = match line.kind {
            Kind::Start => {
                let rest = &lines[at + 1..];
                let end = rest.iter().position(|line| line.kind == Kind::End);
                let inside = &rest[..end.unwrap_or(rest.len())];
                match (inside.iter().find(|line| line.kind == Kind::Start), end) {
                    (Some(second), _) => faults.push(format!(
                        "the start on line {} is followed by another on line {} before it has an end",
                        line.number, second.number
                    )),
                    (None, None) => faults.push(format!("the start on line {} has no end", line.number)),
                    (None, Some(end)) => sections.push((line, &rest[end])),
                }
                fenced = None;
                end.map_or(lines.len(), |end| at + 1 + end + 1)
            }
            Kind::End => {
                match fenced.take() {
                    Some(start) => sections.push((start, line)),
                    None => faults.push(format!("the end on line {} has no start before it", line.number)),
                }
                at + 1
            }
            Kind::Fence(open) => {
                let closes = |line: &Line| matches!(line.kind, Kind::Fence(fence) if fence.closes(&open));
                // Looked for only where there is one, so that a file of nothing but fences is read once.
                let is_closed = longest[at + 1][open.index()] >= open.length;
                let rest = if is_closed { &lines[at + 1..] } else { &[] };
                match rest.iter().position(closes) {
                    Some(length) => {
                        let inside = &lines[at + 1..at + 1 + length];
                        if let Some(last) = inside.iter().rfind(|line| !matches!(line.kind, Kind::Fence(_))) {
                            let is_ours = last.kind == Kind::Start && is_headed(bytes, last);
                            fenced = is_ours.then_some(last);
                        }
                        at + length + 2
                    }
                    None => at + 1,
                }
            }
        };
    }
    if sections.len() > 1 {
        let places: Vec<_> =
            sections.iter().map(|(start, end)| format!("lines {} to {}", start.number, end.number)).collect();
        faults.push(format!("there are {} sections, on {}", sections.len(), places.join(" and on ")));
    }
    match (&faults[..], &sections[..]) {
        ([], []) => Ok(None),
        ([], [(start, end), ..]) => Ok(Some(start.range.start..end.range.end)),
        (faults, _) => Err(told(faults)),
    }
}

/// A file full of stray markers is told in a few words.
fn told(faults: &[String]) -> String {
    match faults.len().checked_sub(NAMED) {
        None | Some(0) => faults.join("; "),
        Some(more) => format!("{}; and {more} more", faults[..NAMED].join("; ")),
    }
}

/// Is the line after this start the heading that we write there?
fn is_headed(bytes: &[u8], start: &Line) -> bool {
    let next = bytes[start.range.end..].split(|byte| *byte == b'\n').nth(1);
    next.is_some_and(|line| line.trim_ascii() == HEADING.as_bytes())
}

/// From each line on, the longest fence of each mark that could close another.
fn longest_closers(lines: &[Line]) -> Vec<[usize; 2]> {
    let mut longest = vec![[0; 2]; lines.len() + 1];
    for (at, line) in lines.iter().enumerate().rev() {
        longest[at] = longest[at + 1];
        if let Kind::Fence(fence) = line.kind
            && fence.is_bare
        {
            let most = &mut longest[at][fence.index()];
            *most = (*most).max(fence.length);
        }
    }
    longest
}

fn lines(bytes: &[u8]) -> Vec<Line> {
    let mut found = Vec::new();
    let mut offset = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
    for (n, line) in bytes[offset..].split_inclusive(|byte| *byte == b'\n').enumerate() {
        let start = offset + line.iter().take_while(|byte| **byte == b' ').count();
        let text = line.trim_ascii();
        let kind = match text {
            _ if start - offset > 3 => None,
            _ if text == START.as_bytes() => Some(Kind::Start),
            _ if text == END.as_bytes() => Some(Kind::End),
            _ => fence(line.trim_ascii_end()).map(Kind::Fence),
        };
        // A tab makes it code, as four blanks do.
        if let Some(kind) = kind.filter(|_| bytes.get(start).is_some_and(|byte| !byte.is_ascii_whitespace()))
        {
            found.push(Line { number: n + 1, range: start..start + text.len(), kind });
        }
        offset += line.len();
    }
    found
}

/// The file's bytes with `section` in its place: `at`, or the end of the file. Line ends become those of the file.
pub(crate) fn spliced(bytes: &[u8], at: Option<&Range<usize>>, section: &str) -> Vec<u8> {
    let (before, after) = match at {
        Some(at) => (&bytes[..at.start], &bytes[at.end..]),
        None => (bytes, &b""[..]),
    };
    let newline = if surplus_of_crlf(before) + surplus_of_crlf(after) > 0 { "\r\n" } else { "\n" };
    let mut new = before.to_vec();
    if at.is_none() && !before.is_empty() && before != MARK {
        // An empty line between.
        let ends = [b"\n" as &[u8], b"\n\n", b"\n\r\n"].map(|end| before.ends_with(end));
        match ends {
            [false, ..] => new.extend(newline.repeat(2).bytes()),
            [true, false, false] => new.extend(newline.bytes()),
            [true, ..] => {}
        }
    }
    match newline {
        "\n" => new.extend(section.bytes()),
        _ => new.extend(section.replace('\n', newline).bytes()),
    }
    match at {
        Some(_) => new.extend(after),
        None => new.extend(newline.bytes()),
    }
    new
}

/// How many more lines end with `\r\n` than with `\n` alone.
fn surplus_of_crlf(bytes: &[u8]) -> isize {
    let all = memchr::memchr_iter(b'\n', bytes).count();
    let crlf = memchr::memmem::find_iter(bytes, CRLF).count();
    (2 * crlf).cast_signed() - all.cast_signed()
}

#[cfg(test)]
mod tests;
