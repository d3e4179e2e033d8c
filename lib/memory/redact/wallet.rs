//! Seed phrases of wallets (BIP 39): 12 to 24 words of a fixed list, the last of which holds a checksum.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

use crate::memory::redact::near::{Certainty, Span};

/// The list of the standard, in its order, one word a line. It is a constant of BIP 39.
pub(super) const WORDS: &str = include_str!("seed_words.txt");

/// The words as numbers, sorted as the words are.
static SORTED: [u64; 2048] = {
    let (text, mut sorted) = (WORDS.as_bytes(), [0; 2048]);
    let (mut at, mut word, mut start) = (0, 0, 0);
    while at < text.len() {
        if text[at] == b'\n' {
            sorted[word] = packed(text, start, at);
            (word, start) = (word + 1, at + 1);
        }
        at += 1;
    }
    sorted
};

/// At most eight letters as one number, the first letter highest.
const fn packed(text: &[u8], start: usize, end: usize) -> u64 {
    let (mut at, mut packed) = (0, 0);
    while at < LONGEST_WORD {
        packed = packed << 8 | if start + at < end { text[start + at] as u64 } else { 0 };
        at += 1;
    }
    packed
}

/// No phrase is shorter, in bytes: twelve words of three letters. A phrase is found by looking at every so many bytes.
const SHORTEST: usize = 12 * 4 - 1;
/// No phrase is longer than so many words.
const MOST: usize = 24;
const LONGEST_WORD: usize = 8;

pub(super) fn find(bytes: &[u8], spans: &mut Vec<Span>) {
    let mut done = 0;
    for at in (SHORTEST - LONGEST_WORD..bytes.len()).step_by(SHORTEST - LONGEST_WORD) {
        if at >= done
            && !bytes[at].is_ascii_uppercase()
            && let Some(word) = around(bytes, at)
        {
            done = phrase(bytes, word, done, spans);
        }
    }
}

/// A word of the list, and its number there.
#[derive(Clone, Copy)]
struct SeedWord {
    start: usize,
    end: usize,
    number: usize,
}

/// The word at `at`, or the one that ends shortly before it.
fn around(bytes: &[u8], at: usize) -> Option<SeedWord> {
    let at = (at.saturating_sub(4)..=at).rev().find(|at| bytes[*at].is_ascii_lowercase())?;
    let before = bytes[at.saturating_sub(LONGEST_WORD)..at]
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_lowercase())
        .count();
    listed(bytes, at - before)
}

fn listed(bytes: &[u8], start: usize) -> Option<SeedWord> {
    let many =
        bytes[start..].iter().take(LONGEST_WORD + 1).take_while(|byte| byte.is_ascii_lowercase()).count();
    let apart = start == 0 || !bytes[start - 1].is_ascii_alphanumeric() || bytes[..start].ends_with(b"\\n");
    if !(3..=LONGEST_WORD).contains(&many)
        || !apart
        || bytes.get(start + many).is_some_and(u8::is_ascii_alphanumeric)
    {
        return None;
    }
    let number = SORTED.binary_search(&packed(bytes, start, start + many)).ok()?;
    Some(SeedWord { start, end: start + many, number })
}

/// The longest phrase around a word. Returns the end of what was read.
fn phrase(bytes: &[u8], word: SeedWord, floor: usize, spans: &mut Vec<Span>) -> usize {
    let mut first = word;
    for _ in 0..2 * MOST {
        let Some(previous) = before(bytes, first.start, floor) else { break };
        first = previous;
    }
    let next = |word: &SeedWord| behind(bytes, word.end);
    let words: Vec<SeedWord> = std::iter::successors(Some(first), next).take(3 * MOST).collect();
    let mut from = 0;
    while from + 12 <= words.len() {
        match [24, 21, 18, 15, 12].into_iter().find(|many| words.get(from..from + many).is_some_and(is_valid))
        {
            Some(many) => {
                let (start, end) = (words[from].start, words[from + many - 1].end);
                spans.push(Span { start, end, kind: "seed-phrase", certainty: Certainty::Token });
                from += many;
            }
            None => from += 1,
        }
    }
    words[words.len() - 1].end
}

/// What may stand between two words: a space, a line break, the number of the next in a list.
fn is_gap(text: &[u8]) -> bool {
    (1..=12).contains(&text.len())
        && text
            .iter()
            .all(|byte| byte.is_ascii_whitespace() || byte.is_ascii_digit() || b".,)(|:-\"'`".contains(byte))
}

fn behind(bytes: &[u8], end: usize) -> Option<SeedWord> {
    let gap = bytes[end..].iter().take(13).take_while(|byte| !byte.is_ascii_alphabetic()).count();
    is_gap(&bytes[end..end + gap]).then(|| listed(bytes, end + gap))?
}

fn before(bytes: &[u8], start: usize, floor: usize) -> Option<SeedWord> {
    let floor = floor.min(start);
    let gap =
        bytes[floor..start].iter().rev().take(13).take_while(|byte| !byte.is_ascii_alphabetic()).count();
    let end = start - gap;
    let many = bytes[floor..end]
        .iter()
        .rev()
        .take(LONGEST_WORD + 1)
        .take_while(|byte| byte.is_ascii_lowercase())
        .count();
    (is_gap(&bytes[end..start]) && many > 0).then(|| listed(bytes, end - many))?
}

/// A phrase has so many different words: the same few words again and again are no phrase, and one in sixteen such
/// repetitions has a valid checksum.
const DIFFERENT: usize = 8;

/// The numbers of the words are 11 bits each; the last bits are the first of the hash of the others.
fn is_valid(words: &[SeedWord]) -> bool {
    let different: BTreeSet<_> = words.iter().map(|word| word.number).collect();
    if different.len() < DIFFERENT {
        return false;
    }
    let bit = |at: usize| words[at / 11].number >> (10 - at % 11) & 1;
    let checked = words.len() / 3;
    let entropy: Vec<u8> = (0..(words.len() * 11 - checked) / 8)
        .map(|byte| (0..8).fold(0, |so_far, at| so_far << 1 | bit(byte * 8 + at) as u8))
        .collect();
    let sum = (words.len() * 11 - checked..words.len() * 11).fold(0, |so_far, at| so_far << 1 | bit(at));
    usize::from(Sha256::digest(&entropy)[0]) >> (8 - checked) == sum
}
