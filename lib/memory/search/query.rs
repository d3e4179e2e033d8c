//! Parses a query.
//!
//! A typed query is a list of words, any of which may match. `"Words in quotes"` must follow each other in that
//! order; `tag:x` and a bare `topic__x` or `area__x` name a tag that a note must have. Nothing is an error: an
//! open quote is ignored. A hyphen before a word excludes nothing, since people search for flags:
//! `cargo test --no-fail-fast`.

use crate::base::text::border;
use crate::memory::search::language::{Nearness, is_framing, is_stop_word, prompt_weight, stem, synonyms};
use crate::memory::search::lexicon::{Lexicon, QueryPart, Variant};
use crate::memory::search::names::PromptNames;
use crate::memory::search::words::{WordKind, each};
use std::collections::{HashMap, HashSet, VecDeque};

/// A query has at most this many terms: the most significant ones.
pub(super) const TERMS: usize = 64;
/// A query of up to this many terms was typed by a person, and all variants of its terms match.
const TYPED: usize = 16;
/// Only this much of a text is read, in bytes.
const LONGEST_TEXT: usize = 1024 * 1024;
/// A longer query, or one of several lines, was not typed: quotes and tags in it are plain text. In bytes.
const LONGEST_LINE: usize = 512;
/// The most phrases of a query, and the most words of a phrase.
const PHRASES: usize = 8;
const PHRASE_WORDS: usize = 64;
/// What a word weighs that is only a step of a path: a note that has the path has its name, and another file is another.
const STEP: f64 = 0.4;

/// A parsed query. Cheap to share between threads.
#[derive(Debug)]
pub struct Query {
    /// The weight of each term.
    pub(super) weights: Vec<f64>,
    pub(super) lexicon: Lexicon,
    pub(super) phrases: Vec<Phrase>,
    /// In lower case. A note must have all of them.
    pub(super) tags: Vec<String>,
    /// Of a prompt.
    pub(super) names: PromptNames,
}

/// Words in quotes, which follow each other in a note that has the phrase.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    /// As it was typed, without the quotes.
    pub(super) text: String,
    /// The bit of its last word.
    pub(super) last: u64,
}

/// A word of the query that may become a term.
struct QueryWord {
    text: String,
    weight: f64,
    /// How often it occurs.
    times: f64,
    /// Its index among the different words of the text.
    place: usize,
    /// The word before, if only a space is between: `dev server`.
    joined: Option<String>,
}

impl Query {
    /// A typed query. A long text, or one of several lines, is read by [`Query::of_text`].
    pub fn parse(text: &str) -> Query {
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
                None => words.extend([word, " "]),
            }
        }
        words.extend(phrases.iter().flat_map(|phrase| [phrase.as_str(), " . "]));
        Query::of_words(&words, phrases, tags, weight)
    }

    /// All words of a text: to find notes about the same subject.
    pub fn of_text(text: &str) -> Query {
        Query::of_words(&text[..border(text, LONGEST_TEXT)], Vec::new(), Vec::new(), weight)
    }

    /// What a person says to an agent. Most of its words tell the agent what to do, and say little about the subject.
    pub fn of_prompt(text: &str) -> Query {
        let text = &text[..border(text, LONGEST_TEXT)];
        let steps = only_in_paths(text);
        let share = |word: &str| if steps.contains(word) { STEP } else { 1.0 };
        let weigh = |word: &str| weight(word) * prompt_weight(word) * share(word);
        let words = Query::of_words(text, Vec::new(), Vec::new(), weigh);
        Query { names: PromptNames::of(text), ..words }
    }

    /// The query has no words, phrases or tags.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty() && self.phrases.is_empty() && self.tags.is_empty()
    }

    fn of_words(text: &str, quoted: Vec<String>, tags: Vec<String>, weigh: impl Fn(&str) -> f64) -> Query {
        let terms = terms(text, weigh);
        let is_typed = terms.len() <= TYPED;
        let mut variants = Vec::new();
        for (term, index) in terms.iter().zip(0..) {
            let mut add = |text: &str, index, nearness| {
                variants.push(Variant::new(text, QueryPart::Term { index, nearness }));
            };
            add(&term.text, index, Nearness::Exact);
            let others = synonyms(&term.text, &stem(&term.text)).into_iter();
            for (other, nearness) in others.filter(|(_, nearness)| is_typed || *nearness < Nearness::Related)
            {
                add(other, index, nearness);
            }
            if let Some(before) = term.joined.as_ref().filter(|_| is_typed && index > 0) {
                let joined = format!("{before}{}", term.text);
                add(&joined, index, Nearness::Same);
                add(&joined, index - 1, Nearness::Same);
            }
        }
        let mut phrases = Vec::new();
        for text in quoted {
            let (number, mut length) = (phrases.len(), 0);
            each(&text, |word| {
                if word.kind == WordKind::Part && length < PHRASE_WORDS {
                    let bit = 1 << length;
                    variants.push(Variant::new(word.text, QueryPart::Phrase { number: number as u8, bit }));
                    length += 1;
                }
            });
            if length > 0 {
                phrases.push(Phrase { text, last: 1 << (length - 1) });
            }
        }
        let weights = terms.iter().map(|term| term.weight).collect();
        let lexicon = Lexicon::new(variants, is_typed);
        Query { weights, lexicon, phrases, tags, names: PromptNames::default() }
    }
}

/// The words of a text that occur only as steps of its paths.
fn only_in_paths(text: &str) -> HashSet<String> {
    let mut steps = HashSet::new();
    let mut others = HashSet::new();
    for token in text.split_whitespace() {
        let words = if token.contains('/') { &mut steps } else { &mut others };
        each(token, |word| _ = words.insert(word.text.to_owned()));
    }
    steps.retain(|word| !others.contains(word));
    steps
}

/// The most significant words of the text, each once, in order of first appearance.
fn terms(text: &str, weigh: impl Fn(&str) -> f64) -> Vec<QueryWord> {
    // By the word, and by its stem.
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut by_stem: HashMap<String, usize> = HashMap::new();
    let mut all: Vec<QueryWord> = Vec::new();
    let mut before = String::new();
    let mut end = 0;
    // The latest words, which may be parts of a compound that is not yet complete.
    let mut parts: VecDeque<(usize, usize)> = VecDeque::new();
    each(text, |word| {
        if word.kind == WordKind::Character {
            return;
        }
        let known = places.get(word.text).copied();
        let place = known.unwrap_or_else(|| {
            let place = *by_stem.entry(stem(word.text).into_owned()).or_insert(all.len());
            places.insert(word.text.to_owned(), place);
            place
        });
        match all.get_mut(place) {
            Some(seen) => seen.times += 1.0,
            None => {
                let is_next = text.get(end..word.start) == Some(" ") && word.kind == WordKind::Part;
                let joined = is_next && before.len() > 2 && !is_stop_word(&before);
                let (weight, joined) = (weigh(word.text), joined.then(|| before.clone()));
                all.push(QueryWord { text: word.text.to_owned(), weight, times: 1.0, place, joined });
            }
        }
        if word.kind == WordKind::Compound {
            // The parts of a name weigh less than the name.
            for (place, start) in parts.drain(..) {
                if let Some(part) = all.get_mut(place).filter(|part| start >= word.start && part.times <= 1.0)
                {
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
    most_significant(all)
}

fn most_significant(mut all: Vec<QueryWord>) -> Vec<QueryWord> {
    if all.iter().any(|word| !is_stop_word(&word.text)) {
        all.retain(|word| !is_stop_word(&word.text));
    }
    if all.len() > TERMS {
        all.sort_by(|a, b| significance(b).total_cmp(&significance(a)));
        all.truncate(TERMS);
        all.sort_by_key(|word| word.place);
    }
    for word in &mut all {
        word.weight *= repeated(word.times, 0.5);
    }
    all
}

/// A word that occurs so often counts more, each time less so.
fn repeated(times: f64, share: f64) -> f64 {
    1.0 + times.ln().min(3.0) * share
}

fn weight(word: &str) -> f64 {
    if is_framing(word) {
        0.7
    } else if word.len() == 1 && word.bytes().all(|b| b.is_ascii_alphabetic()) {
        // `C` and `x` may be the subject, or the remains of an abbreviation.
        0.5
    } else {
        1.0
    }
}

/// How significant a word of a long text is likely to be: frequent and long words are more so.
fn significance(word: &QueryWord) -> f64 {
    let shape = match word.text.len() {
        0..=3 => 0.6,
        4..=5 => 0.85,
        _ => 1.0,
    };
    word.weight * shape * repeated(word.times, 1.0)
}

/// `text` without its quoted phrases, and these phrases.
fn take_phrases(text: &str) -> (String, Vec<String>) {
    // Some keyboards type typographic quotes.
    let text = text.replace(['“', '”', '„'], "\"");
    let last = text.matches('"').count();
    let (mut rest, mut phrases) = (String::new(), Vec::new());
    for (at, piece) in text.split('"').enumerate() {
        let mut has_words = false;
        each(piece, |_| has_words = true);
        // Every second piece is in quotes, but for the last one: its quote is open.
        if at % 2 == 1 && at < last && has_words && phrases.len() < PHRASES {
            phrases.push(piece.to_owned());
        } else {
            rest.push_str(piece);
        }
        rest.push(' ');
    }
    (rest, phrases)
}

/// The tag that a word of a query requires: a whole one, or `x` for `tag:x`.
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
        terms(text, weight).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn a_question_is_reduced_to_its_subject() {
        assert_eq!(words("what did we decide about retry backoff?"), ["decide", "retry", "backoff"]);
        assert_eq!(words("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(words("getUserName"), ["get", "user", "name", "getusername"]);
        assert_eq!(words("retry retries Retrying"), ["retry"]);
    }

    #[test]
    fn phrases_and_tags_are_split_off() {
        let query = Query::parse("\"dead letter\" queue tag:Ops topic__x --flag");
        assert_eq!(query.tags, ["ops", "topic__x"]);
        assert_eq!(query.phrases, [Phrase { text: "dead letter".to_owned(), last: 0b10 }]);
        assert_eq!(query.weights.len(), 4);
    }

    #[test]
    fn malformed_syntax_is_plain_words() {
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
        assert_eq!(query.weights.len(), TERMS);
        assert!(query.phrases.is_empty());
    }
}
