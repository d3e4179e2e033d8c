//! Likely duplicates: notes that say much the same, found by the words that they share.
//!
//! A note is seen as two sets: its words (inflections and accents taken off, words that say nothing left out)
//! and its shingles, each two words that follow one another. A word or shingle weighs the more the fewer notes
//! have it; what stands in all notes weighs little, but not nothing. Two notes are alike by the greater of two
//! figures, in percent:
//!
//! - **the same in other words**: what both have in words, as a share of the mean of the two;
//! - **held**: the shingles of the smaller that the larger has too, so that a note is found inside a longer one.
//!
//! Nothing compares all with all. Every word and shingle lists the notes that have it, small notes first, and a
//! note looks at the larger ones beside it in its own lists: at all of a short list, at the next few of a long
//! one, which makes chains of families of any size. The most promising are compared in full. So work and
//! results grow with the text and the number of notes, whatever the notes look like.

use crate::base::text::border;
use crate::memory::defrag::rows::Rows;
use crate::memory::search::{language, words};
use std::cmp::Reverse;

/// Two notes that say much the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    pub a: usize,
    /// Comes after `a`.
    pub b: usize,
    pub percent: u8,
}

/// From here on two notes are called alike. Chosen by measurement, see the tests.
const ALIKE_PERCENT: u8 = 40;
/// A note keeps so many pairs, and more only where one joins it to a family that it is not yet part of.
const KEPT: u8 = 3;
/// A list of so many notes or fewer is looked through.
const SHORT_LIST: usize = 32;
/// Of a longer one, so many neighbours are looked at.
const NEIGHBOURS: usize = 4;
/// Fewer notes than this do not show what is rare: words are weighed as if they were so many.
const MANY: usize = 100;
/// A note is compared in full with so many others.
const COMPARED: usize = 12;
/// What was seen in the lists must be this share of the smaller note, else comparing is idle.
const PROMISING_PERCENT: u64 = 10;
/// Shingles that weigh less than this together are easily found in any long note.
const FEW_SHINGLES: u64 = 40;
/// So many bytes of a note are read, and of all notes together.
const READ: usize = 256 << 10;
const READ_IN_ALL: usize = 64 << 20;

/// Pairs of notes that are likely duplicates, most similar first. In a family of many alike notes not every
/// pair is told, but enough to join them all: of N notes at most 2.5 N pairs.
pub fn pairs(texts: &[impl AsRef<str>]) -> Vec<Pair> {
    search(texts).0
}

/// What a search cost.
#[derive(Debug, Default)]
struct SearchCost {
    /// Neighbours in lists.
    looked_at: usize,
    /// Notes compared in full.
    compared: usize,
}

fn search(texts: &[impl AsRef<str>]) -> (Vec<Pair>, SearchCost) {
    let FeatureIndex { lists, notes } = FeatureIndex::read(texts);
    let mut cost = SearchCost::default();
    let mut found = Vec::new();
    // What a note shares with each other, as far as it was seen; and those with which it shares anything.
    let mut shared = vec![0u32; notes.len()];
    let mut touched: Vec<usize> = Vec::new();
    for (rank, note) in notes.iter().enumerate() {
        for list in note.words.shared.iter().chain(&note.shingles.shared).map(|list| &lists[*list as usize]) {
            let beside = list.beside(rank);
            cost.looked_at += beside.len();
            for other in beside.iter().map(|other| *other as usize) {
                if shared[other] == 0 {
                    touched.push(other);
                }
                shared[other] += u32::from(list.weight);
            }
        }
        // What was seen says whether comparing the whole may be of use.
        let seen = touched.drain(..).map(|other| (Reverse(std::mem::take(&mut shared[other])), other));
        let mut promising: Vec<(Reverse<u32>, usize)> = seen
            .filter(|(Reverse(shared), other)| {
                u64::from(*shared) * 100 >= PROMISING_PERCENT * note.weight().min(notes[*other].weight())
            })
            .collect();
        promising.sort_unstable();
        for (_, other) in promising.into_iter().take(COMPARED) {
            cost.compared += 1;
            let percent = note.compare(&notes[other], &lists);
            if percent >= ALIKE_PERCENT {
                let (a, b) = (note.index, notes[other].index);
                found.push(Pair { a: a.min(b), b: a.max(b), percent });
            }
        }
    }
    found.sort_unstable_by_key(|pair| (u8::MAX - pair.percent, pair.a, pair.b));
    (enough(found, texts.len()), cost)
}

/// The best pairs of each note, and those that join families.
fn enough(mut pairs: Vec<Pair>, notes: usize) -> Vec<Pair> {
    let mut families = Rows::new(notes);
    let mut kept = vec![0u8; notes];
    pairs.retain(|pair| {
        let joins = families.join(pair.a, pair.b);
        let keep = joins || (kept[pair.a] < KEPT && kept[pair.b] < KEPT);
        if keep {
            kept[pair.a] = kept[pair.a].saturating_add(1);
            kept[pair.b] = kept[pair.b].saturating_add(1);
        }
        keep
    });
    pairs
}

/// The words and shingles of all notes, small notes first.
struct FeatureIndex {
    lists: Vec<Owners>,
    notes: Vec<Features>,
}

/// Who has a word or a shingle that several have, in order of size.
struct Owners {
    notes: Vec<u32>,
    /// What being in it weighs.
    weight: u8,
}

#[derive(Default)]
struct Features {
    /// Which of the texts it was.
    index: usize,
    words: FeatureSet,
    shingles: FeatureSet,
}

/// A note's words, or its shingles.
#[derive(Default)]
struct FeatureSet {
    /// The lists of those that others have too, ascending.
    shared: Vec<u32>,
    /// Of all.
    weight: u64,
}

impl FeatureIndex {
    fn read(texts: &[impl AsRef<str>]) -> FeatureIndex {
        let all: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let room = if all <= READ_IN_ALL { READ } else { (READ_IN_ALL / texts.len()).clamp(1 << 10, READ) };
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|index| texts[*index].as_ref().len());
        let mut reader = FeatureReader::new();
        // Who has what: a hash in the upper half, a note in the lower.
        let mut having: Vec<u64> = Vec::with_capacity(all.min(READ_IN_ALL) / 4);
        for (rank, index) in order.iter().enumerate() {
            let text = &texts[*index].as_ref();
            reader.read(&text[..border(text, room)], |hash| having.push(u64::from(hash) << 32 | rank as u64));
        }
        having.sort_unstable();
        having.dedup();
        let (mut notes, mut lists): (Vec<Features>, Vec<Owners>) =
            (order.into_iter().map(|index| Features { index, ..Features::default() }).collect(), Vec::new());
        for list in having.chunk_by(|a, b| a >> 32 == b >> 32) {
            let weight = weight(notes.len(), list.len());
            let owners: Vec<u32> = list.iter().map(|entry| *entry as u32).collect();
            for owner in &owners {
                let note = &mut notes[*owner as usize];
                let set = if list[0] >> 63 == 0 { &mut note.words } else { &mut note.shingles };
                set.weight += u64::from(weight);
                set.shared.extend((owners.len() > 1).then_some(lists.len() as u32));
            }
            if owners.len() > 1 {
                lists.push(Owners { notes: owners, weight });
            }
        }
        FeatureIndex { lists, notes }
    }
}

impl Owners {
    /// Those behind a note that it is looked at with: all of a short list, the next few of a long one.
    fn beside(&self, rank: usize) -> &[u32] {
        let behind = &self.notes[self.notes.partition_point(|other| *other as usize <= rank)..];
        let near = if self.notes.len() <= SHORT_LIST { behind.len() } else { behind.len().min(NEIGHBOURS) };
        &behind[..near]
    }
}

impl Features {
    fn weight(&self) -> u64 {
        self.words.weight + self.shingles.weight
    }

    fn compare(&self, other: &Features, lists: &[Owners]) -> u8 {
        let words = self.words.common(&other.words, lists);
        let alike = percent(2 * words, self.words.weight + other.words.weight);
        let smaller = self.shingles.weight.min(other.shingles.weight);
        match smaller < FEW_SHINGLES {
            true => alike,
            false => alike.max(percent(self.shingles.common(&other.shingles, lists), smaller)),
        }
    }
}

impl FeatureSet {
    /// The weight of what both have.
    fn common(&self, other: &FeatureSet, lists: &[Owners]) -> u64 {
        let (few, many) = if self.shared.len() <= other.shared.len() { (self, other) } else { (other, self) };
        let both = few.shared.iter().filter(|list| many.shared.binary_search(list).is_ok());
        both.map(|list| u64::from(lists[*list as usize].weight)).sum()
    }
}

/// What a feature weighs that so many of all notes have: the rarer, the more. In whole numbers, so that it is
/// the same on every machine.
fn weight(notes: usize, having: usize) -> u8 {
    let square = |count: usize| (count as u64).saturating_mul(count as u64);
    let rarity = square(notes.max(MANY)) / square(having).max(1);
    1 + rarity.max(1).ilog2() as u8
}

fn percent(part: u64, of: u64) -> u8 {
    u8::try_from(part * 100 / of.max(1)).unwrap_or(100).min(100)
}

/// The hash of a shingle has this bit, that of a word has not.
const SHINGLE: u32 = 1 << 31;

/// Turns text into hashes.
struct FeatureReader {
    /// Words seen lately and what they come to. Stems are slow to find.
    lately: Box<[(u64, Option<u32>)]>,
}

const LATELY: usize = 1 << 14;

impl FeatureReader {
    fn new() -> FeatureReader {
        FeatureReader { lately: vec![(0, None); LATELY].into() }
    }

    /// Calls `found` with every word and shingle.
    fn read(&mut self, text: &str, mut found: impl FnMut(u32)) {
        let mut before = None;
        words::each(text, |word| {
            if word.kind == words::WordKind::Part
                && let Some(word) = self.word(word.text)
            {
                found(word);
                if let Some(before) = before.replace(word) {
                    found(SHINGLE | fold(mix(u64::from(before) << 32 | u64::from(word))));
                }
            }
        });
    }

    /// The hash of a word's stem; none of a word that says nothing.
    fn word(&mut self, word: &str) -> Option<u32> {
        let key = hash(word);
        let lately = &mut self.lately[key as usize % LATELY];
        if lately.0 != key {
            let is_empty = word.bytes().all(|b| b.is_ascii_lowercase()) && language::is_stop_word(word);
            *lately = (key, if is_empty { None } else { Some(fold(hash(&language::stem(word)))) });
        }
        lately.1
    }
}

/// FNV-1a, stirred. Fixed, so that the same notes give the same pairs on every machine.
fn hash(word: &str) -> u64 {
    mix(word
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)))
}

/// Spreads every bit over all (the finish of MurmurHash3).
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

fn fold(hash: u64) -> u32 {
    (hash >> 32) as u32 & !SHINGLE
}

#[cfg(test)]
mod tests;
