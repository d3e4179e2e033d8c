//! A note as the words of its fields.

use crate::memory::search::words::{Word, WordKind, each};
use crate::store::entry::Meta;
use crate::store::persistence::Note;
use std::borrow::Cow;

/// Between two fields are so many words, so that no phrase and no window spans both.
const GAP: u32 = 48;

/// The parts of a note that are searched.
#[derive(Debug, Clone)]
pub struct Document<'a> {
    pub title: &'a str,
    pub tags: &'a [String],
    pub summary: &'a str,
    pub body: Cow<'a, str>,
}

/// Fields are numbered, since each has its own weight.
pub const FIELDS: usize = 4;
pub(super) const TITLE: usize = 0;
const TAGS: usize = 1;
pub(super) const SUMMARY: usize = 2;
pub(super) const BODY: usize = 3;

/// How many words and lines a note has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// Words in each field.
    pub(super) lengths: [u32; FIELDS],
    /// Lines with a word. The title, the tags and the summary are a line each.
    pub(super) lines: u32,
}

impl<'a> Document<'a> {
    pub fn of(note: &'a Note) -> Document<'a> {
        let Meta { title, tags, summary, .. } = note.entry.meta();
        Document { title, tags, summary, body: String::from_utf8_lossy(note.entry.body()) }
    }

    /// Calls `found` with each word, its field and its position: that of a part counts parts; a character or a
    /// compound has the position of its last part.
    pub(super) fn each_word(&self, mut found: impl FnMut(usize, u32, &Word<'_>)) -> Extent {
        let mut extent = Extent::default();
        let mut position = 0u32;
        let mut read = |field: usize, text: &str| {
            position = position.saturating_add(GAP);
            let before = position;
            let (mut line_end, mut lines) = (0, 0u32);
            each(text, |word| {
                if word.kind == WordKind::Part {
                    position = position.saturating_add(1);
                }
                if word.start >= line_end {
                    let rest = text.as_bytes().get(word.start..).filter(|_| field == BODY);
                    line_end = rest
                        .and_then(|rest| memchr::memchr(b'\n', rest))
                        .map_or(usize::MAX, |length| word.start + length);
                    lines += 1;
                }
                found(field, position, &word);
            });
            // All tags are one line.
            let is_one_more = field != TAGS || extent.lengths[TAGS] == 0;
            extent.lines = extent.lines.saturating_add(if is_one_more { lines } else { 0 });
            extent.lengths[field] = extent.lengths[field].saturating_add(position - before);
        };
        read(TITLE, self.title);
        for tag in self.tags {
            read(TAGS, tag.split_once("__").map_or(tag, |(_, name)| name));
        }
        read(SUMMARY, self.summary);
        read(BODY, &self.body);
        extent
    }
}
