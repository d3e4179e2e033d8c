//! The line of a note that shows why it was found.

use crate::base::text::{border, one_line};
use crate::memory::search::count::{BODY, Document, SUMMARY, Spot, TITLE, bits};
use crate::memory::search::query::Query;
use std::collections::VecDeque;

/// A longer line is cut to so many bytes around what matched.
const WIDTH: usize = 160;

/// What of a line matches, and where most of it stands.
struct Match {
    weight: f64,
    start: usize,
}

impl Query {
    /// The line of the note that has most of what was asked for, on one line. A line of the summary or the body
    /// goes before the title, which is shown anyway. `None`: no line has any of it.
    ///
    /// `spots` are what counting this note has found, so that it is read once.
    pub(crate) fn matching_line(&self, document: &Document<'_>, spots: &[Spot]) -> Option<String> {
        let mut best: Option<(Match, &str)> = None;
        for (field, text) in [(SUMMARY, document.summary), (BODY, document.body), (TITLE, document.title)] {
            let from = spots.iter().position(|spot| spot.field == field).unwrap_or(spots.len());
            let mut rest = &spots[from..];
            while let Some(first) = rest.first().filter(|spot| spot.field == field) {
                // Only a body has lines, and no word goes beyond its line.
                let (from, to) = if field == BODY { line_around(text, first.start) } else { (0, text.len()) };
                let many = rest.iter().take_while(|spot| spot.field == field && spot.start < to).count();
                let found = self.matches(&rest[..many], from);
                if found.weight > best.as_ref().map_or(0.0, |(best, _)| best.weight) {
                    best = Some((found, &text[from..to]));
                }
                rest = &rest[many..];
            }
        }
        best.map(|(found, line)| cut(line, found.start))
    }

    /// What these spots of the line that begins at `from` are worth.
    fn matches(&self, spots: &[Spot], from: usize) -> Match {
        let mut window: VecDeque<(usize, usize)> = VecDeque::new();
        let mut nearest = [0.0f64; 64];
        let mut best = Match { weight: 0.0, start: 0 };
        for spot in spots {
            let (start, end, index) = (spot.start - from, spot.end - from, usize::from(spot.concept));
            let weight = self.weights.get(index).copied().unwrap_or(0.0) * spot.nearness.weight();
            if let Some(nearest) = nearest.get_mut(index) {
                *nearest = nearest.max(weight);
            }
            while window.front().is_some_and(|(start, _)| end - start > WIDTH) {
                window.pop_front();
            }
            window.push_back((start, index));
            let together = window.iter().fold(0u64, |bits, (_, concept)| bits | 1 << (concept & 63));
            let weight = bits(together).filter_map(|concept| nearest.get(concept)).sum();
            if weight > best.weight {
                let start = window.front().map_or(start, |(start, _)| *start);
                best = Match { weight, start };
            }
        }
        best
    }
}

/// Where the line begins that byte `at` is in, and where it ends, without its line end.
fn line_around(text: &str, at: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let from = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    match memchr::memchr(b'\n', &bytes[at..]) {
        Some(length) if bytes[..at + length].ends_with(b"\r") => (from, at + length - 1),
        Some(length) => (from, at + length),
        None => (from, bytes.len()),
    }
}

/// `line` without its list mark, cut between words around `start`.
fn cut(line: &str, start: usize) -> String {
    let bare = line.trim().trim_start_matches(['#', '-', '*', '>', ' ', '\t']);
    if bare.len() <= WIDTH {
        return one_line(bare, WIDTH);
    }
    // A little of what stands before is shown too.
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
