//! The guises in which words of a query are looked for, arranged for a quick *no*.
//!
//! Nearly every word of a note is none of them. So guises lie in drawers by their first two bytes; a word
//! whose drawer is empty costs one look, and only a word that begins like a guise is stemmed at all.

use crate::memory::search::language::{Nearness, stem};
use std::borrow::Cow;

const DRAWERS: usize = 1024;

/// What a guise stands for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Meaning {
    /// The query's word of that number.
    Concept { index: u8, nearness: Nearness },
    /// The place of a phrase that has this bit.
    Phrase { number: u8, bit: u64 },
}

/// One word that is looked for.
#[derive(Debug)]
pub(crate) struct Guise {
    text: String,
    stemmed: String,
    meaning: Meaning,
    number: bool,
}

impl Guise {
    pub(crate) fn new(text: &str, meaning: Meaning) -> Guise {
        Guise {
            stemmed: stem(text).into_owned(),
            number: text.bytes().any(|b| b.is_ascii_digit()),
            text: text.to_owned(),
            meaning,
        }
    }

    /// Stemming changes at most the last letter of what it leaves: words of this stem begin so.
    fn beginning(&self) -> &[u8] {
        let bytes = self.stemmed.as_bytes();
        if bytes.len() > 2 { &bytes[..bytes.len() - 1] } else { bytes }
    }

    fn is_exact(&self) -> bool {
        matches!(self.meaning, Meaning::Concept { nearness: Nearness::Exact, .. })
    }
}

#[derive(Debug)]
pub(crate) struct Lexicon {
    guises: Vec<Guise>,
    by_start: Drawers,
    /// Of the words themselves, for slips in their first letters.
    by_end: Drawers,
    alike: bool,
    slips: usize,
}

/// Guises by two of their bytes.
#[derive(Debug)]
struct Drawers {
    /// One bit for each drawer in which something lies.
    filled: [u64; DRAWERS / 64],
    starts: Vec<u16>,
    inside: Vec<Ticket>,
}

/// What lies in a drawer: enough of a guise to pass it over without looking at it.
#[derive(Debug, Clone, Copy)]
struct Ticket {
    /// A word must have these bytes first, as far as the mask goes.
    head: u32,
    mask: u32,
    guise: u16,
}

impl Drawers {
    fn new(places: impl Iterator<Item = (usize, Ticket)>) -> Drawers {
        let mut places: Vec<(usize, Ticket)> = places.collect();
        places.sort_by_key(|(drawer, ticket)| (*drawer, ticket.guise));
        let mut starts = vec![0u16; DRAWERS + 1];
        let mut filled = [0; DRAWERS / 64];
        for (drawer, _) in &places {
            starts[drawer + 1] += 1;
            filled[drawer / 64] |= 1 << (drawer % 64);
        }
        for drawer in 0..DRAWERS {
            starts[drawer + 1] += starts[drawer];
        }
        Drawers { filled, starts, inside: places.into_iter().map(|(_, ticket)| ticket).collect() }
    }

    #[inline(always)]
    fn is_empty(&self, drawer: usize) -> bool {
        self.filled[drawer / 64 % (DRAWERS / 64)] >> (drawer % 64) & 1 == 0
    }

    fn open(&self, drawer: usize) -> &[Ticket] {
        &self.inside[usize::from(self.starts[drawer])..usize::from(self.starts[drawer + 1])]
    }
}

/// The first three bytes as a number, as many as there are.
#[inline(always)]
fn head(word: &[u8]) -> u32 {
    match word {
        [a, b, c, ..] => u32::from_le_bytes([*a, *b, *c, 0]),
        [a, b] => u32::from_le_bytes([*a, *b, 0, 0]),
        [a] => u32::from(*a),
        [] => 0,
    }
}

/// Two letters have a drawer of their own; other bytes share.
#[inline(always)]
fn drawer(first: u8, second: u8) -> usize {
    usize::from(first & 31) << 5 | usize::from(second & 31)
}

#[inline(always)]
fn start_drawer(word: &[u8]) -> usize {
    match word {
        [first, second, ..] => drawer(*first, *second),
        [first] => drawer(*first, 0),
        [] => 0,
    }
}

#[inline(always)]
fn end_drawer(word: &[u8]) -> usize {
    match word {
        [.., second, last] => drawer(*second, *last),
        _ => 0,
    }
}

impl Lexicon {
    /// `alike`: words that only begin like one of the query count too. `slips`: words of at least so many bytes
    /// are also looked for with one letter wrong.
    pub(crate) fn new(mut guises: Vec<Guise>, alike: bool, slips: usize) -> Lexicon {
        // The nearest first, so that a word is taken for the nearest that it can be.
        guises.sort_by_key(|guise| match guise.meaning {
            Meaning::Phrase { .. } => Nearness::Exact,
            Meaning::Concept { nearness, .. } => nearness,
        });
        guises.truncate(usize::from(u16::MAX));
        let numbered = || guises.iter().zip(0u16..);
        let by_start = Drawers::new(numbered().map(|(guise, number)| {
            let beginning = guise.beginning();
            let mask = match beginning.len() {
                0 => 0,
                1 => 0xFF,
                2 => 0xFFFF,
                _ => 0xFF_FFFF,
            };
            let ticket = Ticket { head: head(beginning) & mask, mask, guise: number };
            (start_drawer(guise.text.as_bytes()), ticket)
        }));
        let slippery = |guise: &Guise| guise.is_exact() && !guise.number && guise.text.len() >= slips;
        let by_end = Drawers::new(numbered().filter(|(guise, _)| slippery(guise)).map(|(guise, number)| {
            (end_drawer(guise.text.as_bytes()), Ticket { head: 0, mask: 0, guise: number })
        }));
        Lexicon { by_start, by_end, guises, alike, slips }
    }

    /// Calls `found` with what `word` may stand for: with each concept at most once, as its nearest.
    #[inline(always)]
    pub(crate) fn look_up(&self, word: &str, found: impl FnMut(Meaning)) {
        let bytes = word.as_bytes();
        if !self.by_start.is_empty(start_drawer(bytes)) || !self.by_end.is_empty(end_drawer(bytes)) {
            self.look_inside(word, found);
        }
    }

    fn look_inside(&self, word: &str, found: impl FnMut(Meaning)) {
        let bytes = word.as_bytes();
        let drawer = self.by_start.open(start_drawer(bytes));
        let head = head(bytes);
        let may_be = drawer.iter().any(|ticket| head & ticket.mask == ticket.head);
        let ends = if self.slips < usize::MAX { self.by_end.open(end_drawer(bytes)) } else { &[] };
        let may_slip = bytes.len() > 3 && ends.iter().any(|ticket| self.is_slip(bytes, ticket));
        if may_be || may_slip {
            self.compare(word, drawer, ends, found);
        }
    }

    fn compare(&self, word: &str, drawer: &[Ticket], ends: &[Ticket], mut found: impl FnMut(Meaning)) {
        let bytes = word.as_bytes();
        let head = head(bytes);
        let mut stemmed: Option<Cow<'_, str>> = None;
        let mut seen = 0u64;
        let mut tell = |meaning: Meaning| match meaning {
            Meaning::Concept { index, .. } => {
                if seen & (1 << index) == 0 {
                    seen |= 1 << index;
                    found(meaning);
                }
            }
            Meaning::Phrase { .. } => found(meaning),
        };
        let tickets = || drawer.iter().filter(|ticket| head & ticket.mask == ticket.head);
        for guise in tickets().filter_map(|ticket| self.guise(ticket)) {
            if guise.text == word
                || (bytes.starts_with(guise.beginning())
                    && **stemmed.get_or_insert_with(|| stem(word)) == *guise.stemmed)
            {
                tell(guise.meaning);
            }
        }
        if self.alike && bytes.len() > 3 {
            for ticket in tickets() {
                let Some(guise) = self.guise(ticket).filter(|guise| guise.is_exact()) else { continue };
                if alike(word, guise, &mut stemmed) {
                    tell(with(guise.meaning, Nearness::Alike));
                } else if self.is_slip(bytes, ticket) {
                    tell(with(guise.meaning, Nearness::Slip));
                }
            }
            for ticket in ends {
                if let Some(guise) = self.guise(ticket).filter(|_| self.is_slip(bytes, ticket)) {
                    tell(with(guise.meaning, Nearness::Slip));
                }
            }
        }
    }

    fn guise(&self, ticket: &Ticket) -> Option<&Guise> {
        self.guises.get(usize::from(ticket.guise))
    }

    fn is_slip(&self, word: &[u8], ticket: &Ticket) -> bool {
        self.guise(ticket).is_some_and(|guise| {
            word.len().abs_diff(guise.text.len()) < 2
                && guise.text.len() >= self.slips
                && !guise.number
                && is_one_slip(word, guise.text.as_bytes())
        })
    }
}

fn with(meaning: Meaning, nearness: Nearness) -> Meaning {
    match meaning {
        Meaning::Concept { index, .. } => Meaning::Concept { index, nearness },
        phrase @ Meaning::Phrase { .. } => phrase,
    }
}

/// `1.89` and `1.89.0`; `Swede` and `Swedish`; words of languages that we cannot stem, with their endings.
fn alike<'w>(word: &'w str, guise: &Guise, stemmed: &mut Option<Cow<'w, str>>) -> bool {
    let (ours, theirs) = (guise.text.as_bytes(), word.as_bytes());
    if guise.number {
        return theirs.starts_with(ours) && theirs.get(ours.len()).is_some_and(|b| b.is_ascii_punctuation());
    }
    // Four letters, in other scripts at least two.
    let common = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if common(ours, theirs) < 4 {
        return false;
    }
    let (ours, theirs) = (guise.stemmed.as_bytes(), stemmed.get_or_insert_with(|| stem(word)).as_bytes());
    let common = common(ours, theirs);
    common >= 4 && common * 3 >= ours.len().max(theirs.len()) * 2
}

/// One byte too many, too few, wrong, or two neighbours changed places.
fn is_one_slip(a: &[u8], b: &[u8]) -> bool {
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
        let meaning = Meaning::Concept { index: 0, nearness: Nearness::Exact };
        let lexicon = Lexicon::new(vec![Guise::new(asked, meaning)], true, 5);
        let mut found = None;
        lexicon.look_up(word, |meaning| {
            if let Meaning::Concept { nearness, .. } = meaning {
                found = Some(nearness);
            }
        });
        found
    }

    #[test]
    fn words_are_recognised_from_near_to_far() {
        use Nearness::{Alike, Exact, Slip};
        let near = [
            ("retry", "retries", Some(Exact)),
            ("fly", "flying", Some(Exact)),
            ("migration", "migrate", Some(Exact)),
            ("allergic", "allergy", Some(Alike)),
            ("1.89", "1.89.0", Some(Alike)),
            ("einstellung", "einstellungen", Some(Alike)),
            ("настройка", "настройки", Some(Alike)),
            ("enviroment", "environment", Some(Alike)),
            ("recieve", "receive", Some(Slip)),
            ("wrold", "world", Some(Slip)),
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
    fn a_slip_is_one() {
        for (a, b) in [("abcd", "abdc"), ("abcd", "abc"), ("abc", "abcd"), ("abcd", "abxd"), ("aab", "ab")] {
            assert!(is_one_slip(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        for (a, b) in
            [("abcd", "abcd"), ("abcd", "badc"), ("abcd", "ab"), ("abcd", "axyd"), ("abcd", "acbde")]
        {
            assert!(!is_one_slip(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
    }
}
