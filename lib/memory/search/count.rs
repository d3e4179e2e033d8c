//! Counts the words of one note that match a query: how often, in which field, and how close together.

use crate::memory::search::language::Nearness;
use crate::memory::search::lexicon::Target;
use crate::memory::search::query::{Query, TERMS};
use crate::memory::search::words::{Word, WordKind, each};
use std::collections::VecDeque;

/// Matches within this many words count as together: about a sentence and a half.
const WINDOW: u32 = 24;

/// The parts of a note that are searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) title: &'a str,
    pub(crate) tags: &'a [String],
    pub(crate) summary: &'a str,
    pub(crate) body: &'a str,
}

/// Fields are numbered, since each has its own weight.
pub(super) const FIELDS: usize = 4;
pub(super) const TITLE: usize = 0;
const TAGS: usize = 1;
pub(super) const SUMMARY: usize = 2;
pub(super) const BODY: usize = 3;

/// How often a term of the query matches in each field, at one nearness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) term: u8,
    pub(super) nearness: Nearness,
    pub(super) times: [u16; FIELDS],
}

/// A word of a note that matches a term of the query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Match {
    pub(super) field: usize,
    /// Byte offset in the field's text.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) term: u8,
    pub(super) nearness: Nearness,
}

/// What ranking needs to know about a note. Small, and independent of all other notes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(super) counts: Vec<Count>,
    /// How many words each field has.
    pub(super) lengths: [u32; FIELDS],
    /// A bit for each term in the window that has most of them.
    pub(super) together: u64,
    /// A bit for each term that is followed by the next term of the query.
    pub(super) in_order: u64,
    /// The note has all phrases and tags that the query requires.
    pub(super) fits: bool,
}

impl Counts {
    /// The note has all that the query requires, and at least one of its words.
    pub(crate) fn is_match(&self) -> bool {
        self.fits && !self.counts.is_empty()
    }
}

impl Query {
    pub(crate) fn count(&self, document: &Document<'_>) -> Counts {
        self.counts(document, None)
    }

    /// The counts and the matches, which [`Query::matching_line`] needs.
    pub(crate) fn count_and_match(&self, document: &Document<'_>) -> (Counts, Vec<Match>) {
        let mut matches = Vec::new();
        (self.counts(document, Some(&mut matches)), matches)
    }

    fn counts(&self, document: &Document<'_>, matches: Option<&mut Vec<Match>>) -> Counts {
        let mut counter = Counter {
            query: self,
            times: vec![[0; FIELDS]; self.weights.len() * Nearness::ALL.len()],
            lengths: [0; FIELDS],
            window: VecDeque::new(),
            best: (0.0, 0),
            in_order: 0,
            position: 0,
            phrases: vec![Phrase::default(); self.phrases.len()],
            matches,
        };
        counter.read(TITLE, document.title);
        for tag in document.tags {
            counter.read(TAGS, tag.split_once("__").map_or(tag, |(_, name)| name));
        }
        counter.read(SUMMARY, document.summary);
        counter.read(BODY, document.body);

        let fits = counter.phrases.iter().all(|phrase| phrase.found)
            && self.tags.iter().all(|wanted| document.tags.iter().any(|tag| is_tag(tag, wanted)));
        let counts = (counter.times.iter().zip(0usize..))
            .filter(|(times, _)| **times != [0; FIELDS])
            .map(|(times, at)| Count {
                term: (at / Nearness::ALL.len()) as u8,
                nearness: Nearness::ALL[at % Nearness::ALL.len()],
                times: *times,
            })
            .collect();
        Counts {
            counts,
            lengths: counter.lengths,
            together: counter.best.1,
            in_order: counter.in_order,
            fits,
        }
    }
}

fn is_tag(tag: &str, wanted: &str) -> bool {
    tag.eq_ignore_ascii_case(wanted)
        || tag.split_once("__").is_some_and(|(_, name)| name.eq_ignore_ascii_case(wanted))
}

#[derive(Debug, Clone, Copy, Default)]
struct Phrase {
    /// A bit for each prefix of the phrase that ends at the last word.
    state: u64,
    position: u32,
    found: bool,
}

struct Counter<'a> {
    query: &'a Query,
    times: Vec<[u16; FIELDS]>,
    lengths: [u32; FIELDS],
    /// Position and term of the latest matches.
    window: VecDeque<(u32, u8)>,
    best: (f64, u64),
    in_order: u64,
    /// Of the current word, counted in words.
    position: u32,
    phrases: Vec<Phrase>,
    /// Filled if the caller needs the matches.
    matches: Option<&'a mut Vec<Match>>,
}

impl Counter<'_> {
    fn read(&mut self, field: usize, text: &str) {
        // A gap between fields, so that no phrase or window spans two.
        self.position = self.position.saturating_add(2 * WINDOW);
        let before = self.position;
        let query = self.query;
        each(text, |word| {
            // A character or a compound has the position of its last part.
            if word.kind == WordKind::Part {
                self.position = self.position.saturating_add(1);
            }
            if self.phrases.is_empty() {
                query.lexicon.look_up(word.text, |target| {
                    if let Target::Term { index, nearness } = target {
                        self.hit(field, &word, index, nearness);
                    }
                });
                return;
            }
            let mut hits = [0u64; 8];
            query.lexicon.look_up(word.text, |target| match target {
                Target::Term { index, nearness } => self.hit(field, &word, index, nearness),
                Target::Phrase { number, bit } => {
                    if let Some(bits) =
                        hits.get_mut(usize::from(number)).filter(|_| word.kind == WordKind::Part)
                    {
                        *bits |= bit;
                    }
                }
            });
            if word.kind == WordKind::Part {
                self.follow_phrases(&hits);
            }
        });
        self.lengths[field] = self.lengths[field].saturating_add(self.position.saturating_sub(before));
    }

    fn hit(&mut self, field: usize, word: &Word<'_>, term: u8, nearness: Nearness) {
        if let Some(matches) = &mut self.matches {
            matches.push(Match { field, start: word.start, end: word.end, term, nearness });
        }
        if let Some(times) = self.times.get_mut(usize::from(term) * Nearness::ALL.len() + nearness as usize) {
            times[field] = times[field].saturating_add(1);
        }
        if nearness > Nearness::Related || usize::from(term) >= TERMS {
            return;
        }
        while self.window.front().is_some_and(|(position, _)| self.position - position > WINDOW) {
            self.window.pop_front();
        }
        // One word can match many terms, so the window has a limit on its length too.
        if self.window.len() > TERMS {
            self.window.pop_front();
        }
        for (position, before) in self.window.iter().rev() {
            if self.position - position > 2 {
                break;
            }
            if *before + 1 == term && *position < self.position {
                self.in_order |= 1 << before;
            }
        }
        self.window.push_back((self.position, term));
        let together = self.window.iter().fold(0u64, |bits, (_, term)| bits | 1 << term);
        if together & !self.best.1 != 0 {
            let weight = bits(together).map(|term| self.query.weights[term]).sum();
            if weight > self.best.0 {
                self.best = (weight, together);
            }
        }
    }

    /// Moves each phrase one word on, or restarts it.
    fn follow_phrases(&mut self, hits: &[u64; 8]) {
        for ((phrase, last), hit) in self.phrases.iter_mut().zip(&self.query.phrases).zip(hits) {
            let is_next = phrase.position.saturating_add(1) == self.position;
            let state = if is_next { phrase.state } else { 0 };
            phrase.state = (state << 1 | 1) & hit;
            phrase.position = self.position;
            phrase.found |= phrase.state & last != 0;
        }
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
