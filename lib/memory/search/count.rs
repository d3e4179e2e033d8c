//! One note against a query: which of its words stand where, and how near to one another.

use crate::memory::search::language::Nearness;
use crate::memory::search::lexicon::Meaning;
use crate::memory::search::query::{CONCEPTS, Query};
use crate::memory::search::words::{Kind, Word, each};
use std::collections::VecDeque;

/// Words at most so far apart belong to one thought: about a sentence and a half.
const WINDOW: u32 = 24;

/// What of a note is searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) title: &'a str,
    pub(crate) tags: &'a [String],
    pub(crate) summary: &'a str,
    pub(crate) body: &'a str,
}

/// The parts of a note, each with a weight of its own.
pub(crate) const FIELDS: usize = 4;
pub(crate) const TITLE: usize = 0;
pub(crate) const TAGS: usize = 1;
pub(crate) const SUMMARY: usize = 2;
pub(crate) const BODY: usize = 3;

/// How often a word of the query stands in each field, at one nearness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) concept: u8,
    pub(crate) nearness: Nearness,
    pub(crate) times: [u16; FIELDS],
}

/// A word of a note that stands for one of the query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) field: usize,
    /// Its place in the field's text, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) concept: u8,
    pub(crate) nearness: Nearness,
}

/// What ranking needs of a note. Small, and independent of all other notes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) counts: Vec<Count>,
    /// Words of each field.
    pub(crate) lengths: [u32; FIELDS],
    /// The concepts that stand together where most do, a bit each.
    pub(crate) together: u64,
    /// Concepts that are followed by the next one of the query, a bit each.
    pub(crate) in_order: u64,
    /// All phrases and tags that the query demands are there.
    pub(crate) fits: bool,
}

const NEARNESSES: [Nearness; Nearness::COUNT] =
    [Nearness::Exact, Nearness::Same, Nearness::Related, Nearness::Alike, Nearness::Slip];

impl Query {
    /// Counts one note.
    pub(crate) fn count(&self, document: &Document<'_>) -> Counts {
        self.tell(document, None)
    }

    /// Counts one note, and tells where its words stand: what [`Query::matching_line`] needs.
    pub(crate) fn count_and_mark(&self, document: &Document<'_>) -> (Counts, Vec<Spot>) {
        let mut spots = Vec::new();
        (self.tell(document, Some(&mut spots)), spots)
    }

    fn tell(&self, document: &Document<'_>, spots: Option<&mut Vec<Spot>>) -> Counts {
        let mut tally = Tally {
            query: self,
            times: vec![[0; FIELDS]; self.weights.len() * Nearness::COUNT],
            lengths: [0; FIELDS],
            window: VecDeque::new(),
            best: (0.0, 0),
            in_order: 0,
            place: 0,
            phrases: vec![Phrase::default(); self.phrases.len()],
            spots,
        };
        tally.read(TITLE, document.title);
        for tag in document.tags {
            tally.read(TAGS, tag.split_once("__").map_or(tag, |(_, name)| name));
        }
        tally.read(SUMMARY, document.summary);
        tally.read(BODY, document.body);

        let fits = tally.phrases.iter().all(|phrase| phrase.found)
            && self.tags.iter().all(|wanted| document.tags.iter().any(|tag| is_tag(tag, wanted)));
        let counts = (tally.times.iter().zip(0usize..))
            .filter(|(times, _)| **times != [0; FIELDS])
            .map(|(times, at)| Count {
                concept: (at / Nearness::COUNT) as u8,
                nearness: NEARNESSES[at % Nearness::COUNT],
                times: *times,
            })
            .collect();
        Counts { counts, lengths: tally.lengths, together: tally.best.1, in_order: tally.in_order, fits }
    }
}

fn is_tag(tag: &str, wanted: &str) -> bool {
    tag.eq_ignore_ascii_case(wanted)
        || tag.split_once("__").is_some_and(|(_, name)| name.eq_ignore_ascii_case(wanted))
}

#[derive(Debug, Clone, Copy, Default)]
struct Phrase {
    /// Which beginnings of the phrase end at the last word, a bit each.
    state: u64,
    place: u32,
    found: bool,
}

struct Tally<'a> {
    query: &'a Query,
    times: Vec<[u16; FIELDS]>,
    lengths: [u32; FIELDS],
    /// Place and concept of the last matches.
    window: VecDeque<(u32, u8)>,
    best: (f64, u64),
    in_order: u64,
    place: u32,
    phrases: Vec<Phrase>,
    /// Where the words stand, if somebody wants to know.
    spots: Option<&'a mut Vec<Spot>>,
}

impl Tally<'_> {
    fn read(&mut self, field: usize, text: &str) {
        // Fields do not touch: nothing stands across their border.
        self.place = self.place.saturating_add(2 * WINDOW);
        let before = self.place;
        let query = self.query;
        each(text, |word| {
            // A letter of a run without spaces and a whole stand where their parts do.
            if word.kind == Kind::Part {
                self.place = self.place.saturating_add(1);
            }
            if self.phrases.is_empty() {
                query.lexicon.look_up(word.text, |meaning| {
                    if let Meaning::Concept { index, nearness } = meaning {
                        self.hit(field, &word, index, nearness);
                    }
                });
                return;
            }
            let mut hits = [0u64; 8];
            query.lexicon.look_up(word.text, |meaning| match meaning {
                Meaning::Concept { index, nearness } => self.hit(field, &word, index, nearness),
                Meaning::Phrase { number, bit } => {
                    if let Some(bits) = hits.get_mut(usize::from(number)).filter(|_| word.kind == Kind::Part)
                    {
                        *bits |= bit;
                    }
                }
            });
            if word.kind == Kind::Part {
                self.follow_phrases(&hits);
            }
        });
        self.lengths[field] = self.lengths[field].saturating_add(self.place.saturating_sub(before));
    }

    fn hit(&mut self, field: usize, word: &Word<'_>, concept: u8, nearness: Nearness) {
        if let Some(spots) = &mut self.spots {
            spots.push(Spot { field, start: word.start, end: word.end, concept, nearness });
        }
        if let Some(times) = self.times.get_mut(usize::from(concept) * Nearness::COUNT + nearness as usize) {
            times[field] = times[field].saturating_add(1);
        }
        if nearness > Nearness::Related || usize::from(concept) >= CONCEPTS {
            return;
        }
        while self.window.front().is_some_and(|(place, _)| self.place - place > WINDOW) {
            self.window.pop_front();
        }
        // Where one word is many concepts again and again, the oldest have to go.
        if self.window.len() > CONCEPTS {
            self.window.pop_front();
        }
        for (place, before) in self.window.iter().rev() {
            if self.place - place > 2 {
                break;
            }
            if *before + 1 == concept && *place < self.place {
                self.in_order |= 1 << before;
            }
        }
        self.window.push_back((self.place, concept));
        let together = self.window.iter().fold(0u64, |bits, (_, concept)| bits | 1 << concept);
        if together & !self.best.1 != 0 {
            let weight = bits(together).map(|concept| self.query.weights[concept]).sum();
            if weight > self.best.0 {
                self.best = (weight, together);
            }
        }
    }

    /// Each phrase goes one word on, or begins anew.
    fn follow_phrases(&mut self, hits: &[u64; 8]) {
        for ((phrase, last), hit) in self.phrases.iter_mut().zip(&self.query.phrases).zip(hits) {
            let next_door = phrase.place.saturating_add(1) == self.place;
            let state = if next_door { phrase.state } else { 0 };
            phrase.state = (state << 1 | 1) & hit;
            phrase.place = self.place;
            phrase.found |= phrase.state & last != 0;
        }
    }
}

/// The numbers of the bits that are set.
pub(crate) fn bits(set: u64) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let bit = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (bit < CONCEPTS).then_some(bit)
    })
}
