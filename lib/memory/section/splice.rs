//! Finds the section in a file and replaces it. No byte outside its markers changes.
//!
//! A marker is a line of its own, indented by at most three spaces; a byte order mark may precede it. In a code fence
//! it is text, an example of a section. But our own section must not be hidden by a fence that someone forgot to
//! close, or each run would add another section. So a fence that never ends does not count, and a fence that would end
//! at the fence of a note, between our heading and an end marker, does not hide the start marker.

use crate::base::error::{Error, Result};
use crate::base::text::fences::{Fence, fence};
use crate::harness::recalled::{END, START};
use std::ops::Range;

const BOM: &[u8] = b"\xef\xbb\xbf";
const CRLF: &[u8] = b"\r\n";
/// The line after the start.
pub(super) const HEADING: &str = "## Memory";
/// An error lists at most this many faults.
const NAMED: usize = 5;

/// A marker, or the first or last line of a fence.
#[derive(Debug)]
struct SpecialLine {
    number: usize,
    /// The byte range, without surrounding spaces.
    range: Range<usize>,
    kind: SpecialKind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum SpecialKind {
    Start,
    End,
    Fence(Fence),
}

/// The byte range of the section, from the start marker to the end marker; `None` if the file has none.
///
/// The error names the broken markers with their line numbers.
pub fn find(bytes: &[u8]) -> Result<Option<Range<usize>>> {
    let lines = lines(bytes);
    let longest = longest_closers(&lines);
    let (mut sections, mut faults) = (Vec::new(), Vec::new());
    // The latest marker, if it is a start marker in a fence.
    let mut fenced: Option<&SpecialLine> = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at = match line.kind {
            SpecialKind::Start => {
                let rest = &lines[at + 1..];
                let end = rest.iter().position(|line| line.kind == SpecialKind::End);
                let inside = &rest[..end.unwrap_or(rest.len())];
                match (inside.iter().find(|line| line.kind == SpecialKind::Start), end) {
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
            SpecialKind::End => {
                match fenced.take() {
                    Some(start) => sections.push((start, line)),
                    None => faults.push(format!("the end on line {} has no start before it", line.number)),
                }
                at + 1
            }
            SpecialKind::Fence(open) => {
                let closes = |line: &SpecialLine| matches!(line.kind, SpecialKind::Fence(fence) if fence.closes(&open));
                // Searched only if it exists, so that a file full of fences takes linear time.
                let is_closed = longest[at + 1][open.index()] >= open.length;
                let rest = if is_closed { &lines[at + 1..] } else { &[] };
                let length = rest.iter().position(closes);
                let mut inside = rest[..length.unwrap_or_default()].iter();
                if let Some(last) = inside.rfind(|line| !matches!(line.kind, SpecialKind::Fence(_))) {
                    let is_ours = last.kind == SpecialKind::Start && is_headed(bytes, last);
                    fenced = is_ours.then_some(last);
                }
                length.map_or(at + 1, |length| at + length + 2)
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
        (faults, _) => Err(Error::corrupt(listed(faults))),
    }
}

/// The faults in one line, the first few of them.
fn listed(faults: &[String]) -> String {
    let more = faults.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map(|more| format!("; and {more} more")).unwrap_or_default();
    faults[..faults.len().min(NAMED)].join("; ") + &more
}

/// Whether the line after this start marker is our heading.
fn is_headed(bytes: &[u8], start: &SpecialLine) -> bool {
    let next = bytes[start.range.end..].split(|byte| *byte == b'\n').nth(1);
    next.is_some_and(|line| line.trim_ascii() == HEADING.as_bytes())
}

/// For each line, the longest closing fence from there on, for each of the two marks.
fn longest_closers(lines: &[SpecialLine]) -> Vec<[usize; 2]> {
    let mut longest = vec![[0; 2]; lines.len() + 1];
    for (at, line) in lines.iter().enumerate().rev() {
        longest[at] = longest[at + 1];
        if let SpecialKind::Fence(fence) = line.kind
            && fence.is_bare
        {
            let most = &mut longest[at][fence.index()];
            *most = (*most).max(fence.length);
        }
    }
    longest
}

fn lines(bytes: &[u8]) -> Vec<SpecialLine> {
    let mut found = Vec::new();
    let mut offset = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
    for (n, line) in bytes[offset..].split_inclusive(|byte| *byte == b'\n').enumerate() {
        let start = offset + line.iter().take_while(|byte| **byte == b' ').count();
        let text = line.trim_ascii();
        // A tab makes it code, as four spaces do.
        let is_code = start - offset > 3 || bytes.get(start).is_none_or(|byte| byte.is_ascii_whitespace());
        let kind = match text {
            _ if is_code => None,
            _ if text == START.as_bytes() => Some(SpecialKind::Start),
            _ if text == END.as_bytes() => Some(SpecialKind::End),
            _ => fence(text).map(SpecialKind::Fence),
        };
        let line_of = |kind| SpecialLine { number: n + 1, range: start..start + text.len(), kind };
        found.extend(kind.map(line_of));
        offset += line.len();
    }
    found
}

/// The bytes of the file with `section` at `at`, or at the end of the file. SpecialLine ends become those of the file.
pub fn spliced(bytes: &[u8], at: Option<&Range<usize>>, section: &str) -> Vec<u8> {
    let (before, after) = match at {
        Some(at) => (&bytes[..at.start], &bytes[at.end..]),
        None => (bytes, &b""[..]),
    };
    let newline = if surplus_of_crlf(before) + surplus_of_crlf(after) > 0 { "\r\n" } else { "\n" };
    let mut new = before.to_vec();
    if at.is_none() && !before.is_empty() && before != BOM {
        // Adds an empty line between.
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
