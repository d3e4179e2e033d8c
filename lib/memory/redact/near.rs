//! A keyword in the text, with what is around it, and what finders share. A part of the text knows its place: it is a
//! slice of it.

use crate::memory::redact::value::placeholder;

/// How far a finder looks for the secret, in bytes.
const REACH: usize = 320;

/// The position of a secret in the text, in bytes. If two overlap, both are replaced by one mark, with the kind of
/// the more certain one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: &'static str,
    pub(super) certainty: Certainty,
}

/// How certain a finder is, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Certainty {
    /// A key block, which names itself.
    Block,
    /// It has the prefix of one issuer's tokens.
    Token,
    /// It is at a place for secrets: in a URL, after `Bearer`.
    Place,
    /// It has a name for secrets.
    Named,
    /// It is near a word for secrets.
    Nearby,
    /// It matches one of the user's patterns.
    Custom,
    /// It was found elsewhere.
    Known,
}

impl Span {
    /// Of a slice of the text.
    pub(super) fn of(bytes: &[u8], secret: &[u8], kind: &'static str, certainty: Certainty) -> Span {
        let start = place(bytes, secret);
        Span { start, end: start + secret.len(), kind, certainty }
    }
}

/// Where a slice of the text begins.
pub(super) fn place(bytes: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - bytes.as_ptr().addr()
}

/// So many bytes from there on, or fewer at the end.
pub(super) fn from(bytes: &[u8], start: usize, most: usize) -> &[u8] {
    &bytes[start.min(bytes.len())..bytes.len().min(start.saturating_add(most))]
}

/// A rule's keyword in the text, and where finders put what they find.
pub(super) struct Near<'a, 'b> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) kind: &'static str,
    pub(super) usage: &'static str,
    pub(super) done: &'b mut Done,
    pub(super) spans: &'b mut Vec<Span>,
}

/// How far finders have come that must not read the same text twice.
#[derive(Default)]
pub(super) struct Done {
    pub(super) document: usize,
    pub(super) line: usize,
    /// The end of the last line that was searched around a word.
    pub(super) around: usize,
    /// The end of the last table.
    pub(super) table: usize,
}

impl<'a> Near<'a, '_> {
    /// Takes note of a secret, a slice of the text.
    pub(super) fn push(&mut self, secret: &[u8]) {
        self.push_as(self.kind, secret);
    }

    /// Takes note of a text that looks like a secret, unless it is a placeholder.
    pub(super) fn offer(&mut self, text: &[u8], is_secret: bool) {
        if is_secret && !placeholder(text) {
            self.push(text);
        }
    }

    pub(super) fn push_as(&mut self, kind: &'static str, secret: &[u8]) {
        if !secret.is_empty() {
            self.spans.push(Span::of(self.bytes, secret, kind, Certainty::Place));
        }
    }

    pub(super) fn word(&self) -> &'a [u8] {
        &self.bytes[self.at..self.end]
    }

    /// The rest of the line, at most [`REACH`] bytes.
    pub(super) fn behind(&self) -> &'a [u8] {
        let rest = from(self.bytes, self.end, REACH);
        &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
    }

    /// The line up to the word, at most [`REACH`] bytes.
    pub(super) fn before(&self) -> &'a [u8] {
        let before = self.some_before(REACH);
        &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..]
    }

    /// The line of the word, at most [`REACH`] bytes on either side.
    pub(super) fn line(&self) -> &'a [u8] {
        &self.bytes[self.at - self.before().len()..self.end + self.behind().len()]
    }

    /// So many bytes from the next line on.
    pub(super) fn below(&self, most: usize) -> &'a [u8] {
        from(self.bytes, self.end + self.behind().len() + 1, most)
    }

    /// So many bytes up to the word, over the ends of lines.
    pub(super) fn some_before(&self, most: usize) -> &'a [u8] {
        &self.bytes[self.at.saturating_sub(most)..self.at]
    }
}
