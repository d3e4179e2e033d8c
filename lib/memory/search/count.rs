//! Counts the words of one note that match a query: how often, and in which field.
//!
//! The counts of a note depend on no other note and not on the order of its words, so a cache that knows how often each
//! word occurs gives the same. Where the words stand is looked at later, in a few notes: see `closeness`.

use crate::memory::search::document::{Document, Extent, FIELDS};
use crate::memory::search::language::Nearness;
use crate::memory::search::lexicon::QueryPart;
use crate::memory::search::query::Query;
use crate::memory::search::words::WordKind;

/// How often a term of the query matches in each field, at one nearness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) term: u8,
    pub(super) nearness: Nearness,
    pub(super) times: [u16; FIELDS],
}

/// What ranking needs to know about a note. Small, and independent of all other notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub(super) counts: Vec<Count>,
    pub(super) extent: Extent,
    /// A bit for each phrase of the query that the note has.
    pub(super) phrases: u8,
}

impl Counts {
    /// The matches are few, so a list is quicker than a table.
    pub(super) fn add(&mut self, term: u8, nearness: Nearness, times: [u16; FIELDS]) {
        let is_it = |count: &&mut Count| count.term == term && count.nearness == nearness;
        match self.counts.iter_mut().find(is_it) {
            Some(count) => {
                for (sum, times) in count.times.iter_mut().zip(times) {
                    *sum = sum.saturating_add(times);
                }
            }
            None => self.counts.push(Count { term, nearness, times }),
        }
    }

    /// In the order of the terms.
    pub(super) fn sorted(mut self) -> Counts {
        self.counts.sort_unstable_by_key(|count| (count.term, count.nearness as usize));
        self
    }
}

impl Query {
    pub fn count(&self, document: &Document<'_>) -> Counts {
        let mut counts = Counts::default();
        let mut phrases = vec![PhraseMatch::default(); self.phrases.len()];
        counts.extent = document.each_word(|field, position, word| {
            let mut hits = [0u64; 8];
            self.lexicon.look_up(word.text, |part| match part {
                QueryPart::Term { index, nearness } => {
                    let mut times = [0; FIELDS];
                    times[field] = 1;
                    counts.add(index, nearness, times);
                }
                QueryPart::Phrase { number, bit } => {
                    if let Some(bits) = hits.get_mut(usize::from(number)) {
                        *bits |= bit;
                    }
                }
            });
            if word.kind == WordKind::Part {
                for ((phrase, wanted), hit) in phrases.iter_mut().zip(&self.phrases).zip(hits) {
                    phrase.follow(position, hit, wanted.last);
                }
            }
        });
        counts.phrases =
            phrases.iter().zip(0..).fold(0, |bits, (phrase, at)| bits | u8::from(phrase.found) << at);
        counts.sorted()
    }

    /// Can a note with these counts be found?
    pub(super) fn may_match(&self, counts: &Counts) -> bool {
        !counts.counts.is_empty() || (self.weights.is_empty() && !self.is_empty())
    }

    /// Are all tags that the query requires among these?
    pub fn has_tags(&self, tags: &[String]) -> bool {
        self.tags.iter().all(|wanted| tags.iter().any(|tag| is_tag(tag, wanted)))
    }
}

fn is_tag(tag: &str, wanted: &str) -> bool {
    tag.eq_ignore_ascii_case(wanted)
        || tag.split_once("__").is_some_and(|(_, name)| name.eq_ignore_ascii_case(wanted))
}

/// How far a phrase of the query has been found.
#[derive(Debug, Clone, Copy, Default)]
struct PhraseMatch {
    /// A bit for each prefix of the phrase that ends at the last word.
    state: u64,
    position: u32,
    found: bool,
}

impl PhraseMatch {
    /// Moves on by a word that is those of the phrase whose bits are `hit`, or starts again. `last`: the bit of the last word.
    fn follow(&mut self, position: u32, hit: u64, last: u64) {
        let state = if self.position.saturating_add(1) == position { self.state } else { 0 };
        self.state = (state << 1 | 1) & hit;
        self.position = position;
        self.found |= self.state & last != 0;
    }
}
