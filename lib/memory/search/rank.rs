//! BM25 with fields (Robertson and Zaragoza's BM25F) over the counts of all notes.
//!
//! A term weighs more if few notes have it, more in a title than in a body, more in a short field than in a long
//! one, and its tenth match hardly more than its third. A note gets a higher score if it has more of the terms, and
//! has them close together and in order.

use crate::memory::search::count::{Counts, FIELDS, bits};
use crate::memory::search::language::Nearness;
use crate::memory::search::query::{Query, TERMS};

/// Title, tags, summary, body.
const FIELD_WEIGHTS: [f64; FIELDS] = [2.5, 1.5, 1.6, 1.0];
/// How much a long field reduces the score (BM25's b): 0 not at all, 1 in full.
const LENGTH: [f64; FIELDS] = [0.4, 0.2, 0.4, 0.6];
/// After about this many (weighted) matches, one more adds little: BM25's k1.
const SATURATION: f64 = 1.8;
/// The bonus if all terms are in one window, and if they follow each other as in the query.
const TOGETHER: f64 = 0.35;
const IN_ORDER: f64 = 0.25;
/// The most that a note loses for terms it does not have.
const COVERAGE: f64 = 0.35;

/// A note that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit {
    /// Its index in the slice that was ranked.
    pub(crate) index: usize,
    /// Comparable only within one ranking.
    pub(crate) score: f64,
}

/// The notes that match, the best first; equal ones in their old order.
pub(crate) fn rank(query: &Query, counts: &[Counts]) -> Vec<Hit> {
    let corpus = Corpus::of(query, counts);
    let mut hits: Vec<Hit> = (counts.iter().enumerate())
        .filter(|(_, counts)| counts.fits)
        .map(|(index, counts)| Hit { index, score: corpus.score(query, counts) })
        .filter(|hit| hit.score > 0.0)
        .collect();
    hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.index.cmp(&b.index)));
    hits
}

/// Statistics over all notes.
struct Corpus {
    mean_lengths: [f64; FIELDS],
    /// The weight of each term at each nearness.
    worth: Vec<[f64; Nearness::ALL.len()]>,
    /// The highest weight of each term, and the sum of these.
    best: Vec<f64>,
    all: f64,
}

impl Corpus {
    fn of(query: &Query, counts: &[Counts]) -> Corpus {
        let mut lengths = [0u64; FIELDS];
        let mut notes = vec![[0u64; Nearness::ALL.len()]; query.weights.len()];
        for note in counts {
            for (sum, length) in lengths.iter_mut().zip(note.lengths) {
                *sum += u64::from(length);
            }
            for count in &note.counts {
                if let Some(notes) = notes.get_mut(usize::from(count.term)) {
                    notes[count.nearness as usize] += 1;
                }
            }
        }
        let total = counts.len() as f64;
        // The inverse document frequency: a rare word weighs much, a word of every note nothing.
        let rarity = |notes: u64| (1.0 + (total - notes as f64 + 0.5) / (notes as f64 + 0.5)).ln();
        let worth: Vec<[f64; Nearness::ALL.len()]> = (notes.iter().zip(&query.weights))
            .map(|(notes, weight)| {
                let exact = notes[Nearness::Exact as usize];
                let mut worth = [0.0; Nearness::ALL.len()];
                for (nearness, worth) in Nearness::ALL.into_iter().zip(&mut worth) {
                    let own = notes[nearness as usize];
                    // A word that some note has was not misspelt in the query.
                    if own == 0 || (nearness == Nearness::Typo && exact > 0) {
                        continue;
                    }
                    // A variant must not weigh more than the word itself because it is rarer.
                    *worth = weight * nearness.weight() * rarity(own.max(exact));
                }
                worth
            })
            .collect();
        let best: Vec<f64> = worth.iter().map(|worth| worth.iter().copied().fold(0.0, f64::max)).collect();
        Corpus {
            mean_lengths: lengths.map(|sum| (sum as f64 / total.max(1.0)).max(1.0)),
            all: best.iter().sum(),
            best,
            worth,
        }
    }

    fn score(&self, query: &Query, note: &Counts) -> f64 {
        // Only phrases and tags: all notes that have them are equal.
        if query.weights.is_empty() {
            return if query.is_empty() { 0.0 } else { 1.0 };
        }
        let mut scores = [0.0f64; TERMS];
        let mut reached = [0.0f64; TERMS];
        for count in &note.counts {
            let term = usize::from(count.term);
            let (Some(worth), Some(score), Some(reached)) =
                (self.worth.get(term), scores.get_mut(term), reached.get_mut(term))
            else {
                continue;
            };
            let mut times = 0.0;
            for field in 0..FIELDS {
                let relative = f64::from(note.lengths[field]) / self.mean_lengths[field];
                times += FIELD_WEIGHTS[field] * f64::from(count.times[field])
                    / (1.0 - LENGTH[field] + LENGTH[field] * relative);
            }
            let worth = worth[count.nearness as usize];
            *score = score.max(worth * times * (SATURATION + 1.0) / (times + SATURATION));
            *reached = reached.max(worth);
        }
        let sum: f64 = scores.iter().sum();
        let share = |set: u64| bits(set).filter_map(|term| self.best.get(term)).sum::<f64>() / self.all;
        let together = if note.together.count_ones() > 1 { share(note.together) } else { 0.0 };
        let covered = reached.iter().sum::<f64>() / self.all;
        let lift = 1.0 + TOGETHER * together + IN_ORDER * share(note.in_order);
        let score = sum * lift * (1.0 - COVERAGE + COVERAGE * covered);
        if score.is_finite() { score } else { 0.0 }
    }
}
