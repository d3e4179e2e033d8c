//! A keyword in the text, with what is around it, and what finders share.

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
    /// It matches one of the user's patterns.
    Custom,
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
    /// The end of the last table, and the start of its header: two columns may be secret.
    pub(super) table: usize,
    pub(super) header: usize,
}

impl<'a> Near<'a, '_> {
    pub(super) fn push(&mut self, start: usize, end: usize) {
        self.push_as(self.kind, start, end);
    }

    pub(super) fn push_as(&mut self, kind: &'static str, start: usize, end: usize) {
        self.spans.push(Span { start, end, kind, certainty: Certainty::Place });
    }

    pub(super) fn word(&self) -> &'a [u8] {
        &self.bytes[self.at..self.end]
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
