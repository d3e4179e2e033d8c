//! What somebody asks for.
//!
//! A typed query is words, any of which may match; `"words in quotes"` must stand together in that order;
//! `tag:x` and a bare `topic__x` or `area__x` name a tag that a note must have. Nothing is an error: a quotation
//! that is not closed is taken as words. A hyphen before a word excludes nothing, since people look for
//! flags: `cargo test --no-fail-fast`.

use crate::base::text::border;
use crate::memory::search::language::{Nearness, is_empty_word, is_framing, others, stem};
use crate::memory::search::lexicon::{Guise, Lexicon, Meaning};
use crate::memory::search::words::{Kind, each};
use std::collections::{HashMap, VecDeque};

/// So many different words of a query count: the most telling ones.
pub(crate) const CONCEPTS: usize = 64;
/// Up to so many, a query is what somebody typed, and each word is looked for in all its guises.
const TYPED: usize = 16;
/// More than this of a text is not read.
const LONGEST_TEXT: usize = 1024 * 1024;
/// A longer query, or one of several lines, was not typed: quotes and tags in it are just text.
const LONGEST_LINE: usize = 512;
/// Phrases of a query, and words of a phrase.
const PHRASES: usize = 8;
const PHRASE_WORDS: usize = 64;
/// Shorter words are not looked for in other spellings.
const SLIP_LENGTH: usize = 5;

/// A parsed query. Cheap to share between threads.
#[derive(Debug)]
pub(crate) struct Query {
    /// One for each different word that counts: its weight.
    pub(crate) weights: Vec<f64>,
    pub(crate) lexicon: Lexicon,
    /// For each phrase the bit of its last word.
    pub(crate) phrases: Vec<u64>,
    /// Folded; a note must have all of them.
    pub(crate) tags: Vec<String>,
}

/// A word of the query before it is known whether it is one of those that count.
struct Candidate {
    text: String,
    weight: f64,
    times: u32,
    place: usize,
    /// The word before, if nothing stands between: `dev server`.
    joined: Option<String>,
}

impl Query {
    /// A typed query; a long text or one of several lines is taken as by [`Query::of_text`].
    pub(crate) fn parse(text: &str) -> Query {
        let text = text.trim();
        if text.len() > LONGEST_LINE || text.contains('\n') {
            return Query::of_text(text);
        }
        let (rest, phrases) = take_phrases(text);
        let mut tags = Vec::new();
        let mut words = String::new();
        for word in rest.split_whitespace() {
            match tag(word) {
                Some(tag) => tags.push(tag),
                None => {
                    words.push_str(word);
                    words.push(' ');
                }
            }
        }
        for phrase in &phrases {
            words.push_str(phrase);
            words.push_str(" . ");
        }
        Query::of_words(&words, &phrases, tags)
    }

    /// Whatever `text` says, as words: to find notes that are about the same.
    pub(crate) fn of_text(text: &str) -> Query {
        Query::of_words(&text[..border(text, LONGEST_TEXT)], &[], Vec::new())
    }

    /// Nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.weights.is_empty() && self.phrases.is_empty() && self.tags.is_empty()
    }

    fn of_words(text: &str, phrases: &[String], tags: Vec<String>) -> Query {
        let concepts = concepts(text);
        let typed = concepts.len() <= TYPED;
        let mut guises = Vec::new();
        for (index, concept) in concepts.iter().enumerate() {
            let index = index as u8;
            let stemmed = stem(&concept.text).into_owned();
            let mut add = |text: &str, nearness| {
                guises.push(Guise::new(text, Meaning::Concept { index, nearness }));
            };
            add(&concept.text, Nearness::Exact);
            for (other, nearness) in others(&concept.text, &stemmed) {
                if typed || nearness < Nearness::Related {
                    add(other, nearness);
                }
            }
            if let Some(before) = concept.joined.as_ref().filter(|_| typed && index > 0) {
                let joined = format!("{before}{}", concept.text);
                add(&joined, Nearness::Same);
                guises.push(Guise::new(
                    &joined,
                    Meaning::Concept { index: index - 1, nearness: Nearness::Same },
                ));
            }
        }
        let mut ends = Vec::new();
        for (number, phrase) in phrases.iter().enumerate() {
            let mut length = 0;
            each(phrase, |word| {
                if word.kind == Kind::Part && length < PHRASE_WORDS {
                    let bit = 1 << length;
                    guises.push(Guise::new(word.text, Meaning::Phrase { number: number as u8, bit }));
                    length += 1;
                }
            });
            if length > 0 {
                ends.push(1 << (length - 1));
            }
        }
        let weights = concepts.iter().map(|concept| concept.weight).collect();
        let slips = if typed { SLIP_LENGTH } else { usize::MAX };
        Query { weights, lexicon: Lexicon::new(guises, typed, slips), phrases: ends, tags }
    }
}

/// The different words of `text` that tell most, in the order in which they first stand there.
fn concepts(text: &str) -> Vec<Candidate> {
    // By the word as it stands, and by its stem.
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut by_stem: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<Candidate> = Vec::new();
    let mut before = String::new();
    let mut end = 0;
    // Where the newest words stand that may be parts of what is being joined.
    let mut parts: VecDeque<(usize, usize)> = VecDeque::new();
    each(text, |word| {
        if word.kind == Kind::Letter {
            return;
        }
        let known = places.get(word.text).copied();
        let place = known.unwrap_or_else(|| {
            let place = *by_stem.entry(stem(word.text).into_owned()).or_insert(all.len());
            places.insert(word.text.to_owned(), place);
            place
        });
        match all.get_mut(place) {
            Some(seen) => seen.times += 1,
            None => {
                let next_door = text.get(end..word.start) == Some(" ") && word.kind == Kind::Part;
                let joined = next_door && before.len() > 2 && !is_empty_word(&before);
                all.push(Candidate {
                    text: word.text.to_owned(),
                    weight: weight(word.text),
                    times: 1,
                    place,
                    joined: joined.then(|| before.clone()),
                });
            }
        }
        if word.kind == Kind::Whole {
            // The parts of a name count less than the name.
            for (place, start) in parts.drain(..) {
                if let Some(part) = all.get_mut(place).filter(|part| start >= word.start && part.times == 1) {
                    part.weight *= 0.5;
                }
            }
        } else {
            parts.push_back((place, word.start));
            if parts.len() > 16 {
                parts.pop_front();
            }
        }
        end = word.end;
        before.clear();
        before.push_str(word.text);
    });
    if all.iter().any(|word| !is_empty_word(&word.text)) {
        all.retain(|word| !is_empty_word(&word.text));
    }
    if all.len() > CONCEPTS {
        all.sort_by(|a, b| telling(b).total_cmp(&telling(a)).then(a.place.cmp(&b.place)));
        all.truncate(CONCEPTS);
        all.sort_by_key(|word| word.place);
    }
    for word in &mut all {
        word.weight *= 1.0 + f64::from(word.times).ln().min(3.0) / 2.0;
    }
    all
}

fn weight(word: &str) -> f64 {
    if is_framing(word) {
        0.35
    } else if word.len() == 1 && word.bytes().all(|b| b.is_ascii_alphabetic()) {
        // `C` and `x` may be what is meant, and may be the remains of an abbreviation.
        0.5
    } else {
        1.0
    }
}

/// What a word of a long text promises, before any note was read: what stands there often, names with digits
/// or several parts, and long words tell more.
fn telling(word: &Candidate) -> f64 {
    let shape = match word.text.len() {
        0..=3 => 0.6,
        4..=5 => 0.85,
        _ => 1.0,
    };
    word.weight * shape * (1.0 + f64::from(word.times).ln())
}

/// `text` without its quotations, and these.
fn take_phrases(text: &str) -> (String, Vec<String>) {
    let mut rest = String::new();
    let mut phrases = Vec::new();
    let mut text = text.to_owned();
    // Typographic quotation marks are typed by some keyboards.
    for mark in ['“', '”', '„'] {
        text = text.replace(mark, "\"");
    }
    let mut pieces = text.split('"');
    rest.push_str(pieces.next().unwrap_or(""));
    while let Some(quoted) = pieces.next() {
        match pieces.next() {
            Some(after) => {
                let mut any = false;
                each(quoted, |_| any = true);
                if any && phrases.len() < PHRASES {
                    phrases.push(quoted.to_owned());
                } else {
                    rest.push(' ');
                    rest.push_str(quoted);
                }
                rest.push(' ');
                rest.push_str(after);
            }
            // Never closed.
            None => {
                rest.push(' ');
                rest.push_str(quoted);
            }
        }
    }
    (rest, phrases)
}

/// The tag that a word of a query demands: whole, or `x` for `tag:x`.
fn tag(word: &str) -> Option<String> {
    if let Some(name) = word.strip_prefix("tag:").filter(|name| !name.is_empty()) {
        return Some(name.to_lowercase());
    }
    let name = word.strip_prefix("topic__").or_else(|| word.strip_prefix("area__"))?;
    let valid =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    valid.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        concepts(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn questions_are_asked_for_what_they_are_about() {
        assert_eq!(words("what did we decide about retry backoff?"), ["decide", "retry", "backoff"]);
        assert_eq!(words("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(words("getUserName"), ["get", "user", "name", "getusername"]);
        assert_eq!(words("retry retries Retrying"), ["retry"]);
    }

    #[test]
    fn syntax_is_taken_out() {
        let query = Query::parse("\"dead letter\" queue tag:Ops topic__x --flag");
        assert_eq!(query.tags, ["ops", "topic__x"]);
        assert_eq!(query.phrases, [0b10]);
        assert_eq!(query.weights.len(), 4);
    }

    #[test]
    fn what_is_malformed_is_taken_as_it_reads() {
        assert!(Query::parse("").is_empty());
        assert!(Query::parse(" \t?!\"\"").is_empty());
        assert!(Query::parse("\"open quote").phrases.is_empty());
        assert_eq!(Query::parse("\"open quote").weights.len(), 2);
        assert!(Query::parse("tag: topic__ topic__A").tags.is_empty());
        assert!(Query::parse("one \"two three\"\nfour").phrases.is_empty());
    }

    #[test]
    fn a_long_text_is_bounded() {
        let text: String = (0..5_000).map(|n| format!("word{n} \"quoted\" ")).collect();
        let query = Query::parse(&text);
        assert_eq!(query.weights.len(), CONCEPTS);
        assert!(query.phrases.is_empty());
    }
}
