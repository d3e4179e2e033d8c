//! The line of a note that shows why it matched.

use crate::base::text::{border, one_line};
use crate::memory::search::count::{BODY, Document, Match, SUMMARY, TITLE, bits};
use crate::memory::search::query::Query;
use std::collections::VecDeque;

/// A longer line is cut to this many bytes around the match.
const WIDTH: usize = 160;

/// How well a line matches, and where the best part of it begins.
struct LineScore {
    weight: f64,
    start: usize,
}

impl Query {
    /// The line of the note that matches best, without line ends. A line of the summary or the body is preferred to
    /// the title, which is shown anyway. `None` if no line matches.
    ///
    /// `matches` come from counting this note, so that it is read once.
    pub(crate) fn matching_line(&self, document: &Document<'_>, matches: &[Match]) -> Option<String> {
        let mut best: Option<(LineScore, &str)> = None;
        for (field, text) in [(SUMMARY, document.summary), (BODY, document.body), (TITLE, document.title)] {
            let from = matches.iter().position(|found| found.field == field).unwrap_or(matches.len());
            let mut rest = &matches[from..];
            while let Some(first) = rest.first().filter(|found| found.field == field) {
                // Only a body has lines, and no word spans two of them.
                let (from, to) = if field == BODY { line_around(text, first.start) } else { (0, text.len()) };
                let many = rest.iter().take_while(|found| found.field == field && found.start < to).count();
                let score = self.score_line(&rest[..many], from);
                if score.weight > best.as_ref().map_or(0.0, |(best, _)| best.weight) {
                    best = Some((score, &text[from..to]));
                }
                rest = &rest[many..];
            }
        }
        best.map(|(score, line)| cut(line, score.start))
    }

    /// The score of the line that begins at `from`, of its matches.
    fn score_line(&self, matches: &[Match], from: usize) -> LineScore {
        let mut window: VecDeque<(usize, usize)> = VecDeque::new();
        let mut nearest = [0.0f64; 64];
        let mut best = LineScore { weight: 0.0, start: 0 };
        for found in matches {
            let (start, end, index) = (found.start - from, found.end - from, usize::from(found.term));
            let weight = self.weights.get(index).copied().unwrap_or(0.0) * found.nearness.weight();
            if let Some(nearest) = nearest.get_mut(index) {
                *nearest = nearest.max(weight);
            }
            while window.front().is_some_and(|(start, _)| end - start > WIDTH) {
                window.pop_front();
            }
            window.push_back((start, index));
            let together = window.iter().fold(0u64, |bits, (_, term)| bits | 1 << (term & 63));
            let weight = bits(together).filter_map(|term| nearest.get(term)).sum();
            if weight > best.weight {
                let start = window.front().map_or(start, |(start, _)| *start);
                best = LineScore { weight, start };
            }
        }
        best
    }
}

/// The start and end of the line that has the byte `at`, without its line end.
fn line_around(text: &str, at: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let from = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    match memchr::memchr(b'\n', &bytes[at..]) {
        Some(length) if bytes[..at + length].ends_with(b"\r") => (from, at + length - 1),
        Some(length) => (from, at + length),
        None => (from, bytes.len()),
    }
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
