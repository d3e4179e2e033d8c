//! BM25 with fields (Robertson and Zaragoza's BM25F) over the counts of all notes.
//!
//! A word tells the more, the fewer notes have it. It tells more in a title than in a body, more in a short
//! field than in a long one, and the tenth time hardly more than the third. A note that has more of what was
//! asked for, and has it close together and in order, is lifted.

use crate::memory::search::count::{Counts, FIELDS, bits};
use crate::memory::search::language::Nearness;
use crate::memory::search::query::{CONCEPTS, Query};

/// Title, tags, summary, body.
const FIELD_WEIGHTS: [f64; FIELDS] = [2.5, 1.5, 1.6, 1.0];
/// How much a field's length counts against it: 0 not at all, 1 in full.
const LENGTH: [f64; FIELDS] = [0.4, 0.2, 0.4, 0.6];
/// Beyond about so many (weighted) times, a word more adds little: BM25's k1.
const ENOUGH: f64 = 1.8;
/// What it is worth that all words stand in one place, or follow one another as in the query.
const TOGETHER: f64 = 0.35;
const IN_ORDER: f64 = 0.25;
/// What a note loses that has hardly any of the words.
const COVERAGE: f64 = 0.35;

/// A note that matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hit {
    /// Its place in what was ranked.
    pub(crate) index: usize,
    /// Comparable within one ranking only.
    pub(crate) score: f64,
}

/// The notes that match, the best first; equal ones as they came.
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

/// What is known only of all notes together.
struct Corpus {
    mean_lengths: [f64; FIELDS],
    /// What each concept is worth at each nearness: how telling it is, times how near.
    worth: Vec<[f64; Nearness::COUNT]>,
    /// What each concept is worth at best, and the sum of these.
    best: Vec<f64>,
    all: f64,
}

impl Corpus {
    fn of(query: &Query, counts: &[Counts]) -> Corpus {
        let mut lengths = [0u64; FIELDS];
        let mut notes = vec![[0u64; Nearness::COUNT]; query.weights.len()];
        for note in counts {
            for (sum, length) in lengths.iter_mut().zip(note.lengths) {
                *sum += u64::from(length);
            }
            for count in &note.counts {
                if let Some(notes) = notes.get_mut(usize::from(count.concept)) {
                    notes[count.nearness as usize] += 1;
                }
            }
        }
        let total = counts.len() as f64;
        // Rare words tell much, a word that every note has tells nothing.
        let telling = |notes: u64| (1.0 + (total - notes as f64 + 0.5) / (notes as f64 + 0.5)).ln();
        let worth: Vec<[f64; Nearness::COUNT]> = (notes.iter().zip(&query.weights))
            .map(|(notes, weight)| {
                let exact = notes[Nearness::Exact as usize];
                let mut worth = [0.0; Nearness::COUNT];
                for (nearness, worth) in
                    [Nearness::Exact, Nearness::Same, Nearness::Related, Nearness::Alike, Nearness::Slip]
                        .into_iter()
                        .zip(&mut worth)
                {
                    let own = notes[nearness as usize];
                    // A word that somebody wrote so in a note was not misspelt.
                    if own == 0 || (nearness == Nearness::Slip && exact > 0) {
                        continue;
                    }
                    // What is further from the word cannot tell more than the word.
                    *worth = weight * nearness.weight() * telling(own.max(exact));
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
        // Phrases and tags alone: all that fit are equal.
        if query.weights.is_empty() {
            return if query.is_empty() { 0.0 } else { 1.0 };
        }
        let mut scores = [0.0f64; CONCEPTS];
        let mut reached = [0.0f64; CONCEPTS];
        for count in &note.counts {
            let concept = usize::from(count.concept);
            let (Some(worth), Some(score), Some(reached)) =
                (self.worth.get(concept), scores.get_mut(concept), reached.get_mut(concept))
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
            *score = score.max(worth * times * (ENOUGH + 1.0) / (times + ENOUGH));
            *reached = reached.max(worth);
        }
        let sum: f64 = scores.iter().sum();
        let share = |set: u64| bits(set).filter_map(|concept| self.best.get(concept)).sum::<f64>() / self.all;
        let together = if note.together.count_ones() > 1 { share(note.together) } else { 0.0 };
        let covered = reached.iter().sum::<f64>() / self.all;
        let lift = 1.0 + TOGETHER * together + IN_ORDER * share(note.in_order);
        let score = sum * lift * (1.0 - COVERAGE + COVERAGE * covered);
        if score.is_finite() { score } else { 0.0 }
    }
}
