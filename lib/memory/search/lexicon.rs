//! An index of the variants of a query's terms, built to reject words quickly.
//!
//! Nearly every word of a note matches nothing. So variants are hashed into buckets by their first two bytes: a
//! word with an empty bucket costs one look-up, and only a word that begins like a variant is stemmed.

use crate::memory::search::language::{Nearness, stem};
use std::borrow::Cow;

const BUCKETS: usize = 1024;
/// Shorter words match without typing errors only. In bytes.
const TYPO_LENGTH: usize = 5;

/// What a variant matches.
#[derive(Debug, Clone, Copy)]
pub(super) enum QueryPart {
    /// The query's term of that index.
    Term { index: u8, nearness: Nearness },
    /// The word of a phrase that has this bit.
    Phrase { number: u8, bit: u64 },
}

/// A word that counts as a match.
#[derive(Debug)]
pub(super) struct Variant {
    text: String,
    stemmed: String,
    part: QueryPart,
    has_digit: bool,
}

impl Variant {
    pub(super) fn new(text: &str, part: QueryPart) -> Variant {
        Variant {
            stemmed: stem(text).into_owned(),
            has_digit: text.bytes().any(|b| b.is_ascii_digit()),
            text: text.to_owned(),
            part,
        }
    }

    /// All words of this stem begin so: the stemmer changes at most the last letter of the stem.
    fn beginning(&self) -> &[u8] {
        let bytes = self.stemmed.as_bytes();
        if bytes.len() > 2 { &bytes[..bytes.len() - 1] } else { bytes }
    }

    /// May `word` have this stem, by its first three bytes?
    fn begins(&self, word: &[u8]) -> bool {
        let beginning = self.beginning();
        word.starts_with(&beginning[..beginning.len().min(3)])
    }

    fn may_have_typo(&self) -> bool {
        let is_exact = matches!(self.part, QueryPart::Term { nearness: Nearness::Exact, .. });
        is_exact && self.text.len() >= TYPO_LENGTH && !self.has_digit
    }
}

#[derive(Debug)]
pub(super) struct Lexicon {
    variants: Vec<Variant>,
    by_start: Buckets,
    /// The terms themselves, by their ends: for typing errors in their first letters.
    by_end: Buckets,
    is_typed: bool,
}

/// Variants by two of their bytes.
#[derive(Debug)]
struct Buckets {
    /// A bit for each bucket that is not empty: every word of every note is looked up, and nearly none is found.
    filled: [u64; BUCKETS / 64],
    /// The bucket and the index of each variant, in this order.
    postings: Vec<(usize, usize)>,
}

impl Buckets {
    fn new(postings: impl Iterator<Item = (usize, usize)>) -> Buckets {
        let mut postings: Vec<(usize, usize)> = postings.collect();
        postings.sort_unstable();
        let mut filled = [0; BUCKETS / 64];
        postings.iter().for_each(|(bucket, _)| filled[bucket / 64] |= 1 << (bucket % 64));
        Buckets { filled, postings }
    }

    #[inline(always)]
    fn is_empty(&self, bucket: usize) -> bool {
        self.filled[bucket / 64 % (BUCKETS / 64)] >> (bucket % 64) & 1 == 0
    }

    fn get<'a>(&'a self, bucket: usize, all: &'a [Variant]) -> impl Iterator<Item = &'a Variant> {
        let first = self.postings.partition_point(|(other, _)| *other < bucket);
        let its = self.postings[first..].iter().take_while(move |(other, _)| *other == bucket);
        its.filter_map(|(_, variant)| all.get(*variant))
    }
}

/// Each pair of letters has its own bucket; other bytes share them.
#[inline(always)]
fn bucket(first: u8, second: u8) -> usize {
    usize::from(first & 31) << 5 | usize::from(second & 31)
}

#[inline(always)]
fn start_bucket(word: &[u8]) -> usize {
    match word {
        [first, second, ..] => bucket(*first, *second),
        [first] => bucket(*first, 0),
        [] => 0,
    }
}

#[inline(always)]
fn end_bucket(word: &[u8]) -> usize {
    match word {
        [.., second, last] => bucket(*second, *last),
        _ => 0,
    }
}

impl Lexicon {
    /// Of a typed query, words that have the same beginning as a term match too, and those with one typing error.
    pub(super) fn new(mut variants: Vec<Variant>, is_typed: bool) -> Lexicon {
        // The nearest first, so that a word gets its nearest match.
        variants.sort_by_key(|variant| match variant.part {
            QueryPart::Phrase { .. } => Nearness::Exact,
            QueryPart::Term { nearness, .. } => nearness,
        });
        let numbered = || variants.iter().zip(0..);
        let by_start = numbered().map(|(variant, number)| (start_bucket(variant.text.as_bytes()), number));
        let by_end = numbered().filter(|(variant, _)| is_typed && variant.may_have_typo());
        let by_end = by_end.map(|(variant, number)| (end_bucket(variant.text.as_bytes()), number));
        let (by_start, by_end) = (Buckets::new(by_start), Buckets::new(by_end));
        Lexicon { by_start, by_end, variants, is_typed }
    }

    /// Calls `found` with everything that `word` matches: each term at most once, at its nearest.
    #[inline(always)]
    pub(super) fn look_up(&self, word: &str, found: impl FnMut(QueryPart)) {
        let bytes = word.as_bytes();
        if !self.by_start.is_empty(start_bucket(bytes)) || !self.by_end.is_empty(end_bucket(bytes)) {
            self.look_inside(word, found);
        }
    }

    fn look_inside(&self, word: &str, mut found: impl FnMut(QueryPart)) {
        let bytes = word.as_bytes();
        let mut stemmed: Option<Cow<'_, str>> = None;
        let mut seen = 0u64;
        let mut report = |part: QueryPart| {
            let bit = if let QueryPart::Term { index, .. } = part { 1 << index } else { 0 };
            if seen & bit == 0 {
                seen |= bit;
                found(part);
            }
        };
        let begun = || {
            let bucket = self.by_start.get(start_bucket(bytes), &self.variants);
            bucket.filter(|variant| variant.begins(bytes))
        };
        for variant in begun() {
            if variant.text == word
                || (bytes.starts_with(variant.beginning())
                    && **stemmed.get_or_insert_with(|| stem(word)) == *variant.stemmed)
            {
                report(variant.part);
            }
        }
        if !self.is_typed || bytes.len() < 4 {
            return;
        }
        // All of these are terms.
        for variant in begun().chain(self.by_end.get(end_bucket(bytes), &self.variants)) {
            let QueryPart::Term { index, nearness: Nearness::Exact } = variant.part else { continue };
            if variant.begins(bytes) && alike(word, variant, &mut stemmed) {
                report(QueryPart::Term { index, nearness: Nearness::Alike });
            } else if variant.may_have_typo() && is_one_typo(bytes, variant.text.as_bytes()) {
                report(QueryPart::Term { index, nearness: Nearness::Typo });
            }
        }
    }
}

/// `1.89` and `1.89.0`; `Swede` and `Swedish`; endings in languages that we cannot stem.
fn alike<'w>(word: &'w str, variant: &Variant, stemmed: &mut Option<Cow<'w, str>>) -> bool {
    let (ours, theirs) = (variant.text.as_bytes(), word.as_bytes());
    if variant.has_digit {
        return theirs.starts_with(ours) && theirs.get(ours.len()).is_some_and(|b| b.is_ascii_punctuation());
    }
    // Four bytes: four letters, or two of another script.
    let common = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if common(ours, theirs) < 4 {
        return false;
    }
    let (ours, theirs) = (variant.stemmed.as_bytes(), stemmed.get_or_insert_with(|| stem(word)).as_bytes());
    let common = common(ours, theirs);
    common >= 4 && common * 3 >= ours.len().max(theirs.len()) * 2
}

/// One byte too many, too few or wrong, or two neighbours swapped.
fn is_one_typo(a: &[u8], b: &[u8]) -> bool {
    if a.len().abs_diff(b.len()) > 1 || a == b {
        return false;
    }
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    if start + end + 1 >= a.len().max(b.len()) {
        return true;
    }
    a.len() == b.len() && start + end + 2 == a.len() && a[start] == b[start + 1] && a[start + 1] == b[start]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearness(asked: &str, word: &str) -> Option<Nearness> {
        let part = QueryPart::Term { index: 0, nearness: Nearness::Exact };
        let lexicon = Lexicon::new(vec![Variant::new(asked, part)], true);
        let mut found = None;
        lexicon.look_up(word, |part| {
            if let QueryPart::Term { nearness, .. } = part {
                found = Some(nearness);
            }
        });
        found
    }

    #[test]
    fn words_are_recognised_from_near_to_far() {
        use Nearness::{Alike, Exact, Typo};
        let near = [
            ("retry", "retries", Some(Exact)),
            ("fly", "flying", Some(Exact)),
            ("migration", "migrate", Some(Exact)),
            ("allergic", "allergy", Some(Alike)),
            ("1.89", "1.89.0", Some(Alike)),
            ("einstellung", "einstellungen", Some(Alike)),
            ("настройка", "настройки", Some(Alike)),
            ("enviroment", "environment", Some(Alike)),
            ("recieve", "receive", Some(Typo)),
            ("wrold", "world", Some(Typo)),
            ("5173", "5174", None),
            ("form", "from", None),
            ("port", "report", None),
            ("x", "xx", None),
        ];
        for (asked, word, expected) in near {
            assert_eq!(nearness(asked, word), expected, "{asked} {word}");
        }
    }

    #[test]
    fn a_typo_is_one_edit() {
        for (a, b) in [("abcd", "abdc"), ("abcd", "abc"), ("abc", "abcd"), ("abcd", "abxd"), ("aab", "ab")] {
            assert!(is_one_typo(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        for (a, b) in
            [("abcd", "abcd"), ("abcd", "badc"), ("abcd", "ab"), ("abcd", "axyd"), ("abcd", "acbde")]
        {
            assert!(!is_one_typo(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
    }
}
