//! Where the words of a query stand in one note: next to each other, in order, in which line.
//!
//! This needs the text of the note and what each term is worth among all notes. So it is done only for the notes that
//! come first by their counts, and for those that are shown.

use crate::base::text::{border, one_line};
use crate::memory::search::document::{BODY, Document, SUMMARY};
use crate::memory::search::language::Nearness;
use crate::memory::search::lexicon::QueryPart;
use crate::memory::search::query::{Query, TERMS};
use crate::memory::search::rank::{Closeness, Worth, bits};
use crate::memory::search::words;
use std::collections::VecDeque;
use std::ops::Range;

/// Matches within this many words count as together: about a sentence and a half.
const WINDOW: u32 = 24;
/// What a line's neighbours count, relative to the line.
const NEIGHBOURS: f64 = 0.5;
/// A longer line is cut to this many bytes around the match when it is shown.
const WIDTH: usize = 160;

/// A word of a note that matches a term of the query.
#[derive(Debug, Clone, Copy)]
struct Match {
    field: usize,
    /// Byte offset in the field's text.
    start: usize,
    end: usize,
    /// Counted in words.
    position: u32,
    term: u8,
    nearness: Nearness,
}

/// The matches of one note.
#[derive(Debug)]
pub struct Matches(Vec<Match>);

impl Query {
    pub fn matches(&self, document: &Document<'_>) -> Matches {
        let mut matches = Vec::new();
        document.each_word(|field, position, word| {
            self.lexicon.look_up(word.text, |part| {
                if let QueryPart::Term { index, nearness } = part {
                    let (start, end) = (word.start, word.end);
                    matches.push(Match { field, start, end, position, term: index, nearness });
                }
            });
        });
        Matches(matches)
    }

    /// Where a line of text has words that match. They are in order but for compounds, which follow their parts.
    pub fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        words::each(text, |word| {
            self.lexicon.look_up(word.text, |part| {
                if matches!(part, QueryPart::Term { .. }) {
                    places.push(word.start..word.end);
                }
            });
        });
        places
    }

    /// The line of a note that matches best, if there are no other notes.
    #[cfg(any(test, fuzzing))]
    pub fn matching_line(&self, document: &Document<'_>) -> Option<String> {
        let worth = Worth::of(self, [self.count(document)].iter());
        self.matches(document).line(document, &worth)
    }
}

impl Matches {
    pub(super) fn closeness(&self, query: &Query, worth: &Worth, body: &str) -> Closeness {
        let (together, in_order) = self.together(query);
        Closeness { together, in_order, line: self.best_line(worth, body) }
    }

    fn together(&self, query: &Query) -> (u64, u64) {
        let mut window: VecDeque<(u32, u8)> = VecDeque::new();
        let (mut best, mut best_weight, mut in_order) = (0u64, 0.0, 0u64);
        let near = |found: &&Match| found.nearness <= Nearness::Related && usize::from(found.term) < TERMS;
        for Match { position, term, .. } in self.0.iter().filter(near).copied() {
            while window.front().is_some_and(|(first, _)| position - first > WINDOW) {
                window.pop_front();
            }
            // One word can match many terms, so the window has a limit on its length too.
            if window.len() > TERMS {
                window.pop_front();
            }
            let last = window.iter().rev().take_while(|(earlier, _)| position - earlier <= 2);
            for (_, before) in last.filter(|(earlier, before)| before + 1 == term && *earlier < position) {
                in_order |= 1 << before;
            }
            window.push_back((position, term));
            let together = window.iter().fold(0u64, |bits, (_, term)| bits | 1 << term);
            if together & !best != 0 {
                let weight = bits(together).map(|term| query.weights[term]).sum();
                if weight > best_weight {
                    (best_weight, best) = (weight, together);
                }
            }
        }
        (best, in_order)
    }

    /// The matches of each line of the note, and where the line begins and ends in its field. Only a body has lines, and no word
    /// spans two of them.
    fn lines<'a>(&'a self, body: &'a str) -> impl Iterator<Item = (&'a [Match], usize, usize)> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let first = rest.first()?;
            let (from, to) = match first.field {
                BODY => line_around(body, first.start),
                _ => (0, usize::MAX),
            };
            let is_here = |found: &&Match| found.field == first.field && found.start < to;
            let (line, after) = rest.split_at(rest.iter().take_while(is_here).count());
            rest = after;
            Some((line, from, to))
        })
    }

    /// The most that a line is worth with its neighbours: each term counts once, in full in the line itself.
    fn best_line(&self, worth: &Worth, body: &str) -> f64 {
        let mut best: f64 = 0.0;
        // The last two lines, and where the last one ends in the body.
        let (mut before, mut current, mut end) = ([0.0; TERMS], [0.0; TERMS], None);
        let total = |current: &[f64; TERMS], before: &[f64; TERMS], after: &[f64; TERMS]| -> f64 {
            let beside = before.iter().zip(after).map(|(before, after)| NEIGHBOURS * before.max(*after));
            current.iter().zip(beside).map(|(own, beside)| own.max(beside)).sum()
        };
        for (line, from, to) in self.lines(body) {
            let mut terms = [0.0f64; TERMS];
            for found in line {
                if let Some(most) = terms.get_mut(usize::from(found.term)) {
                    *most = most.max(worth.of_term(found.term, found.nearness));
                }
            }
            // Empty lines do not separate.
            let between = end.and_then(|end: usize| body.get(end..from));
            let is_next = between.is_some_and(|between| between.trim().is_empty());
            best = best.max(total(&current, &before, if is_next { &terms } else { &[0.0; TERMS] }));
            before = if is_next { current } else { [0.0; TERMS] };
            current = terms;
            end = line.first().filter(|found| found.field == BODY).map(|_| to);
        }
        best.max(total(&current, &before, &[0.0; TERMS]))
    }

    /// The line of the summary or the body that matches best, without line ends; if none does, the summary. `None` if that
    /// says nothing. The title is shown anyway, so a line that repeats it is none.
    pub(super) fn line(&self, document: &Document<'_>, worth: &Worth) -> Option<String> {
        let (mut best, mut shown) = (0.0, None);
        let all: Vec<(&[Match], usize, usize)> = self.lines(&document.body).collect();
        let is_new = |line: &str| !plain(line).eq(plain(document.title));
        for (field, text) in [(SUMMARY, document.summary), (BODY, &*document.body)] {
            for (line, from, to) in all.iter().filter(|(line, ..)| line[0].field == field) {
                let (score, start) = score_line(line, *from, worth);
                let line = &text[*from..text.len().min(*to)];
                if score > best && is_new(line) {
                    (best, shown) = (score, Some((line, start)));
                }
            }
        }
        let summary = || Some((document.summary, 0)).filter(|(line, _)| !line.is_empty() && is_new(line));
        shown.or_else(summary).map(|(line, start)| cut(line, start))
    }
}

/// The letters and digits of a text, without case.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// How well the line that begins at `from` matches, and where the best part of it begins.
fn score_line(matches: &[Match], from: usize, worth: &Worth) -> (f64, usize) {
    let mut window: VecDeque<(usize, usize)> = VecDeque::new();
    let mut nearest = [0.0f64; TERMS];
    let mut best = (0.0, 0);
    for found in matches {
        let (start, end, index) = (found.start - from, found.end - from, usize::from(found.term));
        if let Some(nearest) = nearest.get_mut(index) {
            *nearest = nearest.max(worth.of_term(found.term, found.nearness));
        }
        while window.front().is_some_and(|(start, _)| end - start > WIDTH) {
            window.pop_front();
        }
        window.push_back((start, index));
        let together = window.iter().fold(0u64, |bits, (_, term)| bits | 1 << (term & 63));
        let total = bits(together).filter_map(|term| nearest.get(term)).sum();
        if total > best.0 {
            best = (total, window.front().map_or(start, |(start, _)| *start));
        }
    }
    best
}

/// The start and end of the line that has the byte `at`, without its line end.
fn line_around(text: &str, at: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let from = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    let to = memchr::memchr(b'\n', &bytes[at..]).map(|length| at + length);
    let is_crlf = to.is_some_and(|to| bytes[..to].ends_with(b"\r"));
    (from, to.map_or(bytes.len(), |to| to - usize::from(is_crlf)))
}

/// `line` without its list marker, cut between words around `start`.
fn cut(line: &str, start: usize) -> String {
    let bare = line.trim().trim_start_matches(['#', '-', '*', '>', ' ', '\t']);
    if bare.len() <= WIDTH {
        return one_line(bare, WIDTH);
    }
    // Some text before the match is shown too.
    let mut from = border(line, start.saturating_sub(WIDTH / 4));
    if from > 0 {
        let gap = line[from..start].find(char::is_whitespace);
        from += gap.map_or(start - from, |gap| gap + 1);
        while !line.is_char_boundary(from) {
            from += 1;
        }
    }
    let to = border(line, from + WIDTH);
    let mut shown = &line[from..to];
    if to < line.len()
        && let Some(gap) = shown.rfind(char::is_whitespace).filter(|gap| *gap > WIDTH / 2)
    {
        shown = &shown[..gap];
    }
    let (before, after) = (if from > 0 { "… " } else { "" }, if to < line.len() { " …" } else { "" });
    format!("{before}{}{after}", one_line(shown, WIDTH))
}
