//! A word near which secrets are written, with the text around it, and how far its finders have come.

use crate::memory::redact::span::{Certainty, Span};

/// How far a finder looks for the secret, in bytes.
const REACH: usize = 320;

/// A cue's word in the text, and where finders put what they find.
pub(super) struct Near<'a, 'b> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) done: &'b mut Done,
    pub(super) spans: &'b mut Vec<Span>,
}

/// How far finders have come that must not read the same text twice.
#[derive(Default)]
pub(super) struct Done {
    pub(super) document: usize,
    pub(super) line: usize,
    pub(super) command: usize,
    /// The end of the last table, and the start of its header: two columns may be secret.
    pub(super) table: usize,
    pub(super) header: usize,
}

impl<'a> Near<'a, '_> {
    pub(super) fn push(&mut self, start: usize, end: usize, kind: &'static str) {
        self.spans.push(Span { start, end, kind, certainty: Certainty::Place });
    }

    /// The rest of the line, at most [`REACH`] bytes.
    pub(super) fn behind(&self) -> &'a [u8] {
        let rest = &self.bytes[self.end..self.bytes.len().min(self.end + REACH)];
        &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
    }

    /// The line up to the word, at most [`REACH`] bytes.
    pub(super) fn before(&self) -> &'a [u8] {
        let before = &self.bytes[self.at.saturating_sub(REACH)..self.at];
        &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..]
    }
}
