//! The line of a note that shows why it was found.

use crate::ground::text::{border, one_line};
use crate::memory::search::count::{Document, bits};
use crate::memory::search::lexicon::Meaning;
use crate::memory::search::query::Query;
use crate::memory::search::words::each;
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
    pub(crate) fn matching_line(&self, document: &Document<'_>) -> Option<String> {
        let lines = std::iter::once(document.summary).chain(document.body.lines());
        let mut best: Option<(Match, &str)> = None;
        for line in lines.chain([document.title]) {
            if let Some(found) = self.matches(line)
                && best.as_ref().is_none_or(|(best, _)| found.weight > best.weight)
            {
                best = Some((found, line));
            }
        }
        best.map(|(found, line)| cut(line, found.start))
    }

    fn matches(&self, line: &str) -> Option<Match> {
        let mut window: VecDeque<(usize, usize)> = VecDeque::new();
        let mut nearest = [0.0f64; 64];
        let mut best = Match { weight: 0.0, start: 0 };
        each(line, |word| {
            self.lexicon.look_up(word.text, |meaning| {
                let Meaning::Concept { index, nearness } = meaning else { return };
                let index = usize::from(index);
                let weight = self.weights.get(index).copied().unwrap_or(0.0) * nearness.weight();
                if let Some(nearest) = nearest.get_mut(index) {
                    *nearest = nearest.max(weight);
                }
                while window.front().is_some_and(|(start, _)| word.end - start > WIDTH) {
                    window.pop_front();
                }
                window.push_back((word.start, index));
                let together = window.iter().fold(0u64, |bits, (_, concept)| bits | 1 << (concept & 63));
                let weight = bits(together).filter_map(|concept| nearest.get(concept)).sum();
                if weight > best.weight {
                    let start = window.front().map_or(word.start, |(start, _)| *start);
                    best = Match { weight, start };
                }
            });
        });
        (best.weight > 0.0).then_some(best)
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
