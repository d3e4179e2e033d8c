//! BM25 with fields (Robertson and Zaragoza's BM25F) over the counts of all notes, then a closer look at the first ones.
//!
//! A term weighs more if it is rare, more in a title than in a body, more in a short field than in a long one, and its
//! tenth match hardly more than its third. A note gets a higher score if it has more of the terms, has them close
//! together and in order, and has many of them in one line.

use crate::memory::search::count::Counts;
use crate::memory::search::document::{BODY, FIELDS};
use crate::memory::search::language::Nearness;
use crate::memory::search::query::{Query, TERMS};
use std::cmp::Ordering;

/// Title, tags, summary, body.
const FIELD_WEIGHTS: [f64; FIELDS] = [2.5, 1.5, 1.6, 1.0];
/// How much a long field reduces the score (BM25's b): 0 not at all, 1 in full.
const LENGTH: [f64; FIELDS] = [0.4, 0.2, 0.4, 0.6];
/// After about this many (weighted) matches, one more adds little: BM25's k1.
const SATURATION: f64 = 1.8;
/// The bonus if all terms are in one window, and if they follow each other as in the query.
const TOGETHER: f64 = 0.35;
const IN_ORDER: f64 = 0.25;
/// What the best line adds.
const LINE: f64 = 1.0;

/// So many notes are looked at closely: those with the best counts.
pub const CLOSE: usize = 64;

/// A note that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its index in the slice that was ranked.
    pub index: usize,
    /// 1 is what a note with all terms, often and next to each other, would get at most.
    pub score: f64,
}

/// What the places of the matches are worth.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Closeness {
    /// A bit for each term in the window that has most of them.
    pub(super) together: u64,
    /// A bit for each term that is followed by the next term of the query.
    pub(super) in_order: u64,
    /// The worth of the best line, with its neighbours.
    pub(super) line: f64,
}

/// So many lines all notes are taken to have at least: few lines say little about how rare a word is. Where one note was
/// everything, each of its words would be in every line and worth nothing.
const LINES: f64 = 50.0;

/// How much a note says about what a text is about, whatever the lengths of both. A score compares the notes that match
/// one query; this compares with other queries and other stores. Worth 1 is an exact match of a word that occurs once.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Strength {
    /// Of all terms that match.
    pub all: f64,
    /// Of those in the title, the tags or the summary.
    pub subject: f64,
    /// Of those in the best line and its neighbours.
    pub line: f64,
    /// The terms that match, of all: by their worth, from 0 to 1.
    pub share: f64,
    /// Words in the body.
    pub words: u32,
}

/// What a match of each term is worth among all notes.
#[derive(Debug)]
pub struct Worth {
    mean_lengths: [f64; FIELDS],
    /// Of each term at each nearness.
    worth: Vec<[f64; Nearness::ALL.len()]>,
    /// The highest of each term, and the sum of these.
    best: Vec<f64>,
    all: f64,
    /// What all terms would be worth if each matched.
    most: f64,
    /// What a word is worth that occurs once.
    unit: f64,
}

impl Worth {
    /// Statistics over all notes.
    pub fn of<'a>(query: &Query, all: impl Iterator<Item = &'a Counts>) -> Worth {
        let mut lengths = [0u64; FIELDS];
        let (mut notes, mut lines) = (0u64, 0u64);
        let mut found = vec![[0u64; Nearness::ALL.len()]; query.weights.len()];
        for note in all {
            notes += 1;
            for (sum, length) in lengths.iter_mut().zip(note.extent.lengths) {
                *sum += u64::from(length);
            }
            lines += u64::from(note.extent.lines);
            for count in &note.counts {
                if let Some(found) = found.get_mut(usize::from(count.term)) {
                    found[count.nearness as usize] +=
                        count.times.iter().map(|times| u64::from(*times)).sum::<u64>();
                }
            }
        }
        let total = (lines as f64).max(LINES);
        // The inverse document frequency, where the documents are lines, since notes differ in length: a rare word weighs
        // much, a word of every line nothing. In nearly all of its lines a word occurs once, so it is not counted in how
        // many it does.
        let rarity = |times: u64| (1.0 + ((total - times as f64).max(0.0) + 0.5) / (times as f64 + 0.5)).ln();
        let worth: Vec<[f64; Nearness::ALL.len()]> = (found.iter().zip(&query.weights))
            .map(|(found, weight)| {
                let exact = found[Nearness::Exact as usize];
                Nearness::ALL.map(|nearness| match found[nearness as usize] {
                    0 => 0.0,
                    // A word that some note has was not misspelt in the query.
                    _ if nearness == Nearness::Typo && exact > 0 => 0.0,
                    // A variant must not weigh more than the word itself because it is rarer.
                    own => weight * nearness.weight() * rarity(own.max(exact)),
                })
            })
            .collect();
        let best: Vec<f64> = worth.iter().map(|worth| worth.iter().copied().fold(0.0, f64::max)).collect();
        // A word that no note has is missing in each of them.
        let most: f64 = (best.iter().zip(&query.weights))
            .map(|(best, weight)| if *best > 0.0 { *best } else { weight * rarity(0) })
            .sum();
        Worth {
            mean_lengths: lengths.map(|sum| (sum as f64 / notes.max(1) as f64).max(1.0)),
            all: best.iter().sum(),
            best,
            worth,
            most,
            unit: rarity(1),
        }
    }

    pub(super) fn strength(&self, note: &Counts, close: &Closeness) -> Strength {
        let (mut all, mut subject) = ([0.0f64; TERMS], [0.0f64; TERMS]);
        for count in &note.counts {
            let term = usize::from(count.term);
            let worth = self.of_term(count.term, count.nearness);
            let is_subject = count.times[..BODY].iter().any(|times| *times > 0);
            if let (Some(all), Some(subject)) = (all.get_mut(term), subject.get_mut(term)) {
                *all = all.max(worth);
                *subject = subject.max(if is_subject { worth } else { 0.0 });
            }
        }
        let sum: f64 = all.iter().sum();
        Strength {
            all: sum / self.unit,
            subject: subject.iter().sum::<f64>() / self.unit,
            line: close.line / self.unit,
            share: if self.most > 0.0 { sum / self.most } else { 0.0 },
            words: note.extent.lengths[BODY],
        }
    }

    pub(super) fn of_term(&self, term: u8, nearness: Nearness) -> f64 {
        self.worth.get(usize::from(term)).map_or(0.0, |worth| worth[nearness as usize])
    }

    /// The matching notes by their counts alone; `None` in `notes` is one that is not to be found.
    pub fn rank<'a>(&self, query: &Query, notes: impl Iterator<Item = Option<&'a Counts>>) -> Vec<Hit> {
        let mut hits: Vec<Hit> = notes
            .enumerate()
            .filter_map(|(index, note)| Some((index, note?)))
            .map(|(index, note)| Hit { index, score: self.score(query, note, &Closeness::default()) })
            .filter(|hit| hit.score > 0.0)
            .collect();
        hits.sort_by(best_first);
        hits
    }

    pub(super) fn score(&self, query: &Query, note: &Counts, close: &Closeness) -> f64 {
        // Only phrases and tags: all notes that have them are equal.
        if query.weights.is_empty() {
            return if query.is_empty() { 0.0 } else { 1.0 };
        }
        let mut scores = [0.0f64; TERMS];
        for count in &note.counts {
            let term = usize::from(count.term);
            let (Some(worth), Some(score)) = (self.worth.get(term), scores.get_mut(term)) else { continue };
            let mut times = 0.0;
            for field in 0..FIELDS {
                let relative = f64::from(note.extent.lengths[field]) / self.mean_lengths[field];
                times += FIELD_WEIGHTS[field] * f64::from(count.times[field])
                    / (1.0 - LENGTH[field] + LENGTH[field] * relative);
            }
            let worth = worth[count.nearness as usize];
            *score = score.max(worth * times * (SATURATION + 1.0) / (times + SATURATION));
        }
        let sum: f64 = scores.iter().sum();
        let share = |set: u64| bits(set).filter_map(|term| self.best.get(term)).sum::<f64>() / self.all;
        let together = if close.together.count_ones() > 1 { share(close.together) } else { 0.0 };
        let lift = 1.0 + TOGETHER * together + IN_ORDER * share(close.in_order);
        // The highest score that can be thought of.
        let ideal = self.most * ((SATURATION + 1.0) * (1.0 + TOGETHER + IN_ORDER) + LINE);
        let score = (sum * lift + LINE * close.line) / ideal;
        if score.is_finite() { score } else { 0.0 }
    }
}

/// The indices of the bits that are set.
pub(super) fn bits(set: u64) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (bit < TERMS).then_some(bit)
    })
}

/// The best first; equal ones in their old order.
pub(super) fn best_first(a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then(a.index.cmp(&b.index))
}

/// The phrases that a note must have, a bit each, from those of each note: all that some note has, if one note has all of
/// these. Otherwise none: then their words count like others.
pub(super) fn demanded(mut phrases: impl Iterator<Item = u8> + Clone) -> u8 {
    let known = phrases.clone().fold(0, |known, phrases| known | phrases);
    if phrases.any(|phrases| phrases == known) { known } else { 0 }
}
