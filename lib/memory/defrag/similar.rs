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
use crate::memory::defrag::family::Families;
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
struct Work {
    /// Neighbours in lists.
    looked_at: usize,
    /// Notes compared in full.
    compared: usize,
}

fn search(texts: &[impl AsRef<str>]) -> (Vec<Pair>, Work) {
    let corpus = Corpus::read(texts);
    let mut work = Work::default();
    let mut found = Vec::new();
    let mut seen = Seen { shared: vec![0; corpus.notes.len()].into(), touched: Vec::new() };
    for rank in 0..corpus.notes.len() {
        work.looked_at += corpus.look_around(rank, &mut seen);
        for other in seen.most_promising(&corpus, rank) {
            work.compared += 1;
            let percent = corpus.compare(rank, other);
            if percent >= ALIKE_PERCENT {
                let (a, b) = (corpus.notes[rank].index, corpus.notes[other].index);
                found.push(Pair { a: a.min(b), b: a.max(b), percent });
            }
        }
    }
    found.sort_unstable_by_key(|pair| (u8::MAX - pair.percent, pair.a, pair.b));
    (enough(found, texts.len()), work)
}

/// The best pairs of each note, and those that join families.
fn enough(mut pairs: Vec<Pair>, notes: usize) -> Vec<Pair> {
    let mut families = Families::new(notes);
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

/// All notes, small ones first, with the words and shingles that they share with others.
struct Corpus {
    notes: Vec<Note>,
    /// Who is in a list, in order of size. The lists stand one after another.
    owners: Vec<Owner>,
}

#[derive(Default)]
struct Note {
    /// Which of the texts it was.
    index: usize,
    words: Set,
    shingles: Set,
}

/// A note's words, or its shingles.
#[derive(Default)]
struct Set {
    /// For each that others have too, ascending: where its list starts in `owners`, and where there the note stands.
    shared: Vec<(u32, u32)>,
    /// Of all.
    weight: u64,
}

/// A note in a list.
struct Owner {
    note: u32,
    /// What being in this list weighs.
    weight: u8,
    /// How many of those that follow are looked at.
    near: u8,
}

impl Corpus {
    fn read(texts: &[impl AsRef<str>]) -> Corpus {
        let all: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let room = if all <= READ_IN_ALL { READ } else { (READ_IN_ALL / texts.len()).clamp(1 << 10, READ) };
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|index| texts[*index].as_ref().len());
        let mut reader = Reader::new();
        let mut having: Vec<u64> = Vec::with_capacity(all.min(READ_IN_ALL) / 4);
        for (rank, index) in order.iter().enumerate() {
            let text = &texts[*index].as_ref();
            reader.read(&text[..border(text, room)], |hash| having.push(u64::from(hash) << 32 | rank as u64));
        }
        having.sort_unstable();
        having.dedup();
        let notes = order.into_iter().map(|index| Note { index, ..Note::default() }).collect();
        Corpus::share(notes, &having)
    }

    /// Makes the lists. `having`: who has what; a hash in the upper half, a note in the lower, ascending.
    fn share(mut notes: Vec<Note>, having: &[u64]) -> Corpus {
        let (count, mut owners) = (notes.len(), Vec::new());
        for list in having.chunk_by(|a, b| a >> 32 == b >> 32) {
            let weight = weight(count, list.len());
            let start = owners.len();
            for (at, entry) in list.iter().enumerate() {
                let owner = *entry as u32;
                let note = &mut notes[owner as usize];
                let set = if entry >> 63 == 0 { &mut note.words } else { &mut note.shingles };
                set.weight += u64::from(weight);
                if list.len() > 1 {
                    let after = list.len() - at - 1;
                    let near = if list.len() <= SHORT_LIST { after } else { after.min(NEIGHBOURS) } as u8;
                    set.shared.push((start as u32, owners.len() as u32));
                    owners.push(Owner { note: owner, weight, near });
                }
            }
        }
        Corpus { notes, owners }
    }

    /// Adds up what the note shares with those that stand beside it in its lists; tells how many those were.
    fn look_around(&self, rank: usize, seen: &mut Seen) -> usize {
        let Note { words, shingles, .. } = &self.notes[rank];
        let mut looked_at = 0;
        for (_, place) in words.shared.iter().chain(&shingles.shared) {
            let place = *place as usize;
            let Owner { weight, near, .. } = self.owners[place];
            for owner in &self.owners[place + 1..=place + usize::from(near)] {
                seen.share(owner.note, weight);
            }
            looked_at += usize::from(near);
        }
        looked_at
    }

    /// Is what was seen so much that the whole may be enough?
    fn is_promising(&self, a: usize, b: usize, shared: u32) -> bool {
        u64::from(shared) * 100 >= PROMISING_PERCENT * self.notes[a].weight().min(self.notes[b].weight())
    }

    fn compare(&self, a: usize, b: usize) -> u8 {
        let (a, b) = (&self.notes[a], &self.notes[b]);
        let words = self.common(&a.words, &b.words);
        let alike = percent(2 * words, a.words.weight + b.words.weight);
        let held = self.common(&a.shingles, &b.shingles);
        let smaller = a.shingles.weight.min(b.shingles.weight);
        if smaller < FEW_SHINGLES { alike } else { alike.max(percent(held, smaller)) }
    }

    /// The weight of what both have.
    fn common(&self, a: &Set, b: &Set) -> u64 {
        let (a, b) = (&a.shared[..], &b.shared[..]);
        let (few, mut many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let mut weight = 0;
        for (list, _) in few {
            if many.len() / 8 > few.len() {
                many = &many[many.partition_point(|(other, _)| other < list)..];
            } else {
                while let [(first, _), rest @ ..] = many
                    && first < list
                {
                    many = rest;
                }
            }
            if many.first().is_some_and(|(first, _)| first == list) {
                weight += u64::from(self.owners[*list as usize].weight);
            }
        }
        weight
    }
}

impl Note {
    fn weight(&self) -> u64 {
        self.words.weight + self.shingles.weight
    }
}

/// What a note shares with others, as far as it was seen.
struct Seen {
    shared: Box<[u32]>,
    /// Those of `shared` that are not 0.
    touched: Vec<u32>,
}

impl Seen {
    fn share(&mut self, with: u32, weight: u8) {
        let shared = &mut self.shared[with as usize];
        if *shared == 0 {
            self.touched.push(with);
        }
        *shared = shared.saturating_add(u32::from(weight));
    }

    /// The notes that share most; forgets all.
    fn most_promising(&mut self, corpus: &Corpus, rank: usize) -> Vec<usize> {
        let mut promising: Vec<(Reverse<u32>, u32)> = Vec::new();
        for note in self.touched.drain(..) {
            let shared = std::mem::take(&mut self.shared[note as usize]);
            if corpus.is_promising(rank, note as usize, shared) {
                promising.push((Reverse(shared), note));
            }
        }
        promising.sort_unstable();
        promising.truncate(COMPARED);
        promising.into_iter().map(|(_, note)| note as usize).collect()
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
struct Reader {
    /// Words seen lately and what they come to. Stems are slow to find.
    lately: Box<[(u64, Option<u32>)]>,
}

const LATELY: usize = 1 << 14;

impl Reader {
    fn new() -> Reader {
        Reader { lately: vec![(0, None); LATELY].into() }
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
