//! Where a note's parts lie: the line `---`, lines of YAML, a line `---`, an empty line, the body.
//!
//! Nothing here looks into the YAML or the body. A BOM may come first, lines may end in CRLF, blanks may
//! follow the dashes.

use std::ops::Range;

/// More front matter than this is refused: it bounds what reading a stranger's file can cost.
pub(crate) const CAP: usize = 64 * 1024;
/// Line 1 is the opening one.
pub(crate) const LINES_BEFORE: usize = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The lines between the two of dashes.
    pub(crate) yaml: Range<usize>,
    /// Where the body begins.
    pub(crate) body: usize,
    /// An empty line stands between, so that whatever follows is the body.
    pub(crate) separated: bool,
    /// How the opening line ends.
    pub(crate) newline: &'static str,
}

impl Frame {
    pub(crate) fn of(bytes: &[u8]) -> Result<Frame, String> {
        const BOM: &[u8] = "\u{feff}".as_bytes();
        let start = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let opening = line_at(bytes, start);
        if !is_dashes(&bytes[opening.clone()]) {
            return Err("line 1: no front matter: the first line must be ---".to_owned());
        }
        let newline = if bytes[opening.clone()].ends_with(b"\r\n") { "\r\n" } else { "\n" };
        let mut line = line_at(bytes, opening.end);
        while !is_dashes(&bytes[line.clone()]) {
            if line.is_empty() {
                return Err(
                    "the front matter that begins in line 1 has no end: no second line is ---".to_owned()
                );
            }
            if line.end - opening.end > CAP {
                return Err(too_large());
            }
            line = line_at(bytes, line.end);
        }
        let separator = line_at(bytes, line.end);
        let separated = matches!(&bytes[separator.clone()], b"\n" | b"\r\n");
        let body = if separated { separator.end } else { line.end };
        Ok(Frame { yaml: opening.end..line.start, body, separated, newline })
    }
}

pub(crate) fn too_large() -> String {
    format!("the front matter is larger than {} KiB, or its second line of --- is missing", CAP >> 10)
}

/// The line that begins at `start`, with its end.
fn line_at(bytes: &[u8], start: usize) -> Range<usize> {
    let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
    start..end
}

fn is_dashes(line: &[u8]) -> bool {
    // The first byte spares most lines the rest.
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
    fn what_is_no_front_matter_is_told() {
        for text in [
            "",
            "\n---\n---\n",
            "# title",
            " ---\n---\n",
            "----\n---\n",
            "--\n",
            "\u{feff}\u{feff}---\n---\n",
        ] {
            assert!(
                Frame::of(text.as_bytes()).unwrap_err().starts_with("line 1: no front matter"),
                "{text:?}"
            );
        }
        for text in ["---", "---\n", "---\na: b\n", "---\na: b\n--- x\n----\n ---"] {
            assert!(Frame::of(text.as_bytes()).unwrap_err().contains("has no end"), "{text:?}");
        }
        let long = format!("---\n{}---\n", "a: b\n".repeat(2_000_000));
        assert!(Frame::of(long.as_bytes()).unwrap_err().contains("larger than 64 KiB"));
        let just = format!("---\n{}\n---\n", "a".repeat(CAP - 1));
        assert_eq!(Frame::of(just.as_bytes()).unwrap().yaml.len(), CAP);
    }
}
