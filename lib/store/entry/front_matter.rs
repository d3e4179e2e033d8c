//! Splits a note into its parts: the line `---`, lines of YAML, a line `---`, an empty line, the body.
//!
//! A byte order mark may come first, lines may end in CRLF, and spaces may follow the dashes. The YAML and the body are
//! not looked at.

use crate::base::error::{Error, Result};
use std::ops::Range;

/// The most front matter that is read, in bytes: a limit on what reading a stranger's file can cost.
pub(super) const CAP: usize = 64 * 1024;
/// Line 1 is the opening one.
pub(super) const LINES_BEFORE: usize = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// The lines between the two of dashes.
    pub(super) yaml: Range<usize>,
    /// Where the body begins.
    pub(super) body: usize,
    /// An empty line is between front matter and body.
    pub(super) separated: bool,
    /// How the opening line ends.
    pub(super) newline: &'static str,
}

impl Frame {
    pub(super) fn of(bytes: &[u8]) -> Result<Frame> {
        const BOM: &[u8] = "\u{feff}".as_bytes();
        let start = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let opening = line_at(bytes, start);
        if !is_dashes(&bytes[opening.clone()]) {
            return Err(Error::corrupt("line 1: no front matter: the first line must be ---"));
        }
        let newline = if bytes[opening.clone()].ends_with(b"\r\n") { "\r\n" } else { "\n" };
        let mut line = line_at(bytes, opening.end);
        while !is_dashes(&bytes[line.clone()]) {
            if line.is_empty() {
                return Err(Error::corrupt(
                    "the front matter that begins in line 1 has no end: no second line is ---",
                ));
            }
            if line.end - opening.end > CAP {
                return Err(Error::corrupt(too_large()));
            }
            line = line_at(bytes, line.end);
        }
        let separator = line_at(bytes, line.end);
        let separated = matches!(&bytes[separator.clone()], b"\n" | b"\r\n");
        let body = if separated { separator.end } else { line.end };
        Ok(Frame { yaml: opening.end..line.start, body, separated, newline })
    }
}

/// The message for more front matter than [`CAP`].
pub(super) fn too_large() -> String {
    format!("the front matter is larger than {} KiB, or its second line of --- is missing", CAP >> 10)
}

/// The line that begins at `start`, with its end.
fn line_at(bytes: &[u8], start: usize) -> Range<usize> {
    let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
    start..end
}

fn is_dashes(line: &[u8]) -> bool {
    // A fast path: most lines differ in the first byte.
    line.first() == Some(&b'-') && line.strip_prefix(b"---").is_some_and(|rest| rest.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (&str, &str, bool) {
        let frame = Frame::of(text.as_bytes()).unwrap();
        (&text[frame.yaml], &text[frame.body..], frame.separated)
    }

    #[test]
    fn the_parts_are_found() {
        assert_eq!(parts("---\na: b\n---\n\nbody\n---\nmore"), ("a: b\n", "body\n---\nmore", true));
        assert_eq!(parts("\u{feff}---  \r\na: b\r\n--- \t\r\n\r\nbody"), ("a: b\r\n", "body", true));
        assert_eq!(parts("---\na: b\n---\nbody"), ("a: b\n", "body", false));
        assert_eq!(parts("---\na: b\n---\n\n\nbody"), ("a: b\n", "\nbody", true));
        assert_eq!(parts("---\na: b\n---\n \nbody"), ("a: b\n", " \nbody", false));
        assert_eq!(parts("---\n---"), ("", "", false));
        assert_eq!(parts("---\n a: ---\n---\n"), (" a: ---\n", "", false));
    }

    #[test]
    fn a_missing_front_matter_is_an_error() {
        for text in [
            "", "\n---\n---\n", "# title", " ---\n---\n", "----\n---\n", "--\n", "\u{feff}\u{feff}---\n---\n",
        ] {
            assert!(
                Frame::of(text.as_bytes()).unwrap_err().message().starts_with("line 1: no front matter"),
                "{text:?}"
            );
        }
        for text in ["---", "---\n", "---\na: b\n", "---\na: b\n--- x\n----\n ---"] {
            assert!(Frame::of(text.as_bytes()).unwrap_err().message().contains("has no end"), "{text:?}");
        }
        let long = format!("---\n{}---\n", "a: b\n".repeat(2_000_000));
        assert!(Frame::of(long.as_bytes()).unwrap_err().message().contains("larger than 64 KiB"));
        let just = format!("---\n{}\n---\n", "a".repeat(CAP - 1));
        assert_eq!(Frame::of(just.as_bytes()).unwrap().yaml.len(), CAP);
    }
}
