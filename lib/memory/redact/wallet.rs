//! Seed phrases of wallets (BIP 39): 12 to 24 words of a fixed list, the last of which holds a checksum.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::memory::redact::chars::{leading, past, split_end, trailing, until};
use crate::memory::redact::near::{Certainty, Near, Span, from, place};

/// The list of the standard, in its order, which is that of the alphabet, one word a line. It is a constant of BIP 39.
pub(super) const WORDS: &str = include_str!("seed_words.txt");
/// The words as numbers, which are faster to compare.
static PACKED: LazyLock<Vec<u64>> =
    LazyLock::new(|| WORDS.lines().map(|word| packed(word.as_bytes())).collect());

/// No phrase is shorter, in bytes: twelve words of three letters. A phrase is found by looking at every so many bytes.
const SHORTEST: usize = 12 * 4 - 1;
/// No phrase is longer than so many words.
const MOST: usize = 24;
const LONGEST_WORD: usize = 8;
/// A phrase has so many different words: the same few words again and again are no phrase, and one in sixteen such
/// repetitions has a valid checksum.
const DIFFERENT: usize = 8;

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

/// At most eight letters as one number, the first letter highest.
fn packed(word: &[u8]) -> u64 {
    let number = word.iter().fold(0, |so_far, byte| so_far << 8 | u64::from(*byte));
    number << (8 * (LONGEST_WORD - word.len()))
}

/// The word at `at`, or the one that ends shortly before it.
fn around(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let at = (at.saturating_sub(4)..=at).rev().find(|at| bytes[*at].is_ascii_lowercase())?;
    listed(bytes, at - trailing(&bytes[..at], LONGEST_WORD, |byte| byte.is_ascii_lowercase()))
}

/// The whole word that begins at `start`, if it is one of the list.
fn listed(bytes: &[u8], start: usize) -> Option<&[u8]> {
    let word = until(from(bytes, start, LONGEST_WORD + 1), |byte| !byte.is_ascii_lowercase());
    let is_apart = start == 0 || !bytes[start - 1].is_ascii_alphanumeric();
    let goes_on = bytes.get(start + word.len()).is_some_and(u8::is_ascii_alphanumeric);
    let may_be = (3..=LONGEST_WORD).contains(&word.len()) && is_apart && !goes_on;
    (may_be && is_listed(word)).then_some(word)
}

fn is_listed(word: &[u8]) -> bool {
    PACKED.binary_search(&packed(word)).is_ok()
}

/// A phrase that its name tells: twelve words or more in any language, also without a checksum.
pub(super) fn said(near: &mut Near) {
    let rest = from(near.bytes, near.end, 600);
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte >= 0x80;
    let is_word = |word: &&[u8]| word.len() >= 3 && word.iter().all(|byte| is_letter(*byte));
    let ends = |byte| !(is_letter(byte) || byte.is_ascii_digit() || b" ,.()=\n:|\"'`".contains(&byte));
    let text = until(rest, ends);
    let words = text.split(|byte| byte.is_ascii_punctuation() || byte.is_ascii_whitespace());
    let words: Vec<&[u8]> = words.filter(is_word).collect();
    let short = words.iter().take(MOST).filter(|word| word.len() <= 2 * LONGEST_WORD).count();
    // Two more may come before the phrase: "write down".
    let is_known = |word: &&&[u8]| is_listed(&word[..word.len().min(LONGEST_WORD)]);
    let known = words.iter().take(14).filter(is_known).count();
    let line = until(rest, |byte| byte == b'\n');
    let spoken: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(is_word).collect();
    if matches!(spoken.len(), 12 | 15 | 18 | 21 | 24)
        && past(line, b" ").first().is_some_and(|byte| b":\xef".contains(byte))
    {
        return near.push(line[place(line, spoken[0])..].trim_ascii_end());
    }
    if short >= 12
        && (known >= 10
            || words.iter().take(12).all(|word| !word.is_ascii() || known == 0) && text.contains(&b','))
    {
        let last = words[words.len().min(MOST) - 1];
        near.push(&text[place(text, words[0])..place(text, last) + last.len()]);
    }
}

/// The longest phrase around a word. Returns the end of what was read.
fn phrase(bytes: &[u8], word: &[u8], floor: usize, spans: &mut Vec<Span>) -> usize {
    let steps = std::iter::successors(Some(word), |word| before(bytes, place(bytes, word), floor));
    let first = steps.take(2 * MOST + 1).last();
    let end = |word: &[u8]| place(bytes, word) + word.len();
    let words = std::iter::successors(first, |word| behind(bytes, end(word))).take(3 * MOST);
    let words: Vec<&[u8]> = words.collect();
    let mut rest = &words[..];
    while !rest.is_empty() {
        let many = [24, 21, 18, 15, 12].into_iter().find(|many| rest.get(..*many).is_some_and(is_valid));
        if let Some(many) = many {
            let secret = &bytes[place(bytes, rest[0])..end(rest[many - 1])];
            spans.push(Span::of(bytes, secret, "seed-phrase", Certainty::Token));
        }
        rest = &rest[many.unwrap_or(1)..];
    }
    words.last().map_or(floor, |word| end(word))
}

/// What may stand between two words: a space, a line break, the number of the next in a list.
fn is_gap(text: &[u8]) -> bool {
    let may_stand = |byte: &u8| {
        byte.is_ascii_whitespace()
            || !byte.is_ascii()
            || byte.is_ascii_digit()
            || b".,)(|:-\"'`".contains(byte)
    };
    (1..=16).contains(&text.len()) && text.iter().all(may_stand)
}

/// The next word of a phrase, behind one that ends at `end`.
fn behind(bytes: &[u8], end: usize) -> Option<&[u8]> {
    let gap = leading(&bytes[end..], 17, |byte| !byte.is_ascii_alphabetic());
    is_gap(&bytes[end..end + gap]).then(|| listed(bytes, end + gap))?
}

/// The word of a phrase before one that begins at `start`.
fn before(bytes: &[u8], start: usize, floor: usize) -> Option<&[u8]> {
    let text = &bytes[floor.min(start)..start];
    let (text, gap) = split_end(text, 17, |byte| !byte.is_ascii_alphabetic());
    let many = trailing(text, LONGEST_WORD + 1, |byte| byte.is_ascii_lowercase());
    (is_gap(gap) && many > 0).then(|| listed(bytes, start - gap.len() - many))?
}

/// The numbers of the words are 11 bits each; the last bits are the first of the hash of the others.
fn is_valid(words: &[&[u8]]) -> bool {
    let numbers: Vec<usize> =
        words.iter().filter_map(|word| PACKED.binary_search(&packed(word)).ok()).collect();
    if numbers.iter().collect::<BTreeSet<_>>().len() < DIFFERENT {
        return false;
    }
    let bit = |at: usize| numbers[at / 11] >> (10 - at % 11) & 1;
    let checked = words.len() / 3;
    let entropy: Vec<u8> = (0..(words.len() * 11 - checked) / 8)
        .map(|byte| (0..8).fold(0, |so_far, at| so_far << 1 | bit(byte * 8 + at) as u8))
        .collect();
    let sum = (words.len() * 11 - checked..words.len() * 11).fold(0, |so_far, at| so_far << 1 | bit(at));
    usize::from(Sha256::digest(&entropy)[0]) >> (8 - checked) == sum
}
