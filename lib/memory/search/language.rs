//! What search knows about English: the stemmer, and the word lists of `english.txt`.

use crate::memory::lists::sections;
use frostem::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// How close a word of a note is to the word of the query that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nearness {
    /// The word, inflected or not.
    Exact,
    /// Another name for the same thing: `db`, `database`.
    Same,
    /// Often used for the same thing: `remove`, `delete`.
    Related,
    /// The same beginning: `Swede`, `Swedish`.
    Alike,
    /// One typing error away.
    Typo,
}

impl Nearness {
    pub(super) const ALL: [Nearness; 5] =
        [Nearness::Exact, Nearness::Same, Nearness::Related, Nearness::Alike, Nearness::Typo];

    /// The score of such a match, relative to an exact one.
    pub(super) fn weight(self) -> f64 {
        match self {
            Nearness::Exact => 1.0,
            Nearness::Same => 0.85,
            Nearness::Related => 0.5,
            Nearness::Alike => 0.4,
            Nearness::Typo => 0.6,
        }
    }
}

/// The stem of a folded word. A word with anything but English letters is its own stem.
pub fn stem(word: &str) -> Cow<'_, str> {
    if word.len() > 2 && word.len() < 40 && word.bytes().all(|b| b.is_ascii_lowercase()) {
        Stemmer::new(Algorithm::English).stem(word)
    } else {
        Cow::Borrowed(word)
    }
}

/// A word that asks or joins, and says nothing about the subject.
pub fn is_stop_word(word: &str) -> bool {
    WORDS.stop_words.contains(word)
}

/// A word of the question itself. It may matter, but less than what the question is about.
pub(super) fn is_framing(word: &str) -> bool {
    WORDS.framing.contains(word)
}

/// What a word of a prompt says about its subject: 1, or less for the words of nearly every prompt.
pub(super) fn prompt_weight(word: &str) -> f64 {
    static WEIGHTS: LazyLock<HashMap<String, f64>> = LazyLock::new(|| {
        let mut weights = HashMap::new();
        for (section, line) in sections(include_str!("prompts.txt")) {
            let weight = if section == "work" { 0.4 } else { 0.1 };
            weights.extend(line.split(' ').map(|word| (stem(word).into_owned(), weight)));
        }
        weights
    });
    WEIGHTS.get(&*stem(word)).copied().unwrap_or(1.0)
}

/// Words that may stand for `word`, whose stem is `stemmed`, the nearest first. Never `word` itself.
pub(super) fn synonyms(word: &str, stemmed: &str) -> Vec<(&'static str, Nearness)> {
    let mut found: Vec<(&'static str, Nearness)> = Vec::new();
    // The stemmer may change the last letter of the stem, and no other.
    let sure = if stemmed.len() > 2 { stemmed.len() - 1 } else { stemmed.len() };
    let Some(beginning) = stemmed.get(..sure).filter(|beginning| !beginning.is_empty()) else { return found };
    let is_it = |other: &str| other == word || (other.starts_with(beginning) && *stem(other) == *stemmed);
    // The stemmer keeps the first letter, so only groups with a word of the same first letter can match.
    let first = word.as_bytes().first().map_or(0, |first| usize::from(*first));
    for (group, nearness) in WORDS.by_first[first].iter().filter_map(|index| WORDS.groups.get(*index)) {
        if group.iter().any(|other| is_it(other)) {
            let others = group.iter().filter(|other| !is_it(other));
            found.extend(others.map(|other| (*other, *nearness)));
        }
    }
    found
}

/// The word lists, parsed on first use.
static WORDS: LazyLock<WordLists> = LazyLock::new(|| WordLists::parse(include_str!("english.txt")));

struct WordLists {
    stop_words: HashSet<&'static str>,
    framing: HashSet<&'static str>,
    /// Words that stand for each other, and how near they are. In the order of the file, which is that of nearness.
    groups: Vec<(Vec<&'static str>, Nearness)>,
    /// For each first byte of a word, the groups with such a word, in order.
    by_first: Vec<Vec<usize>>,
}

impl WordLists {
    fn parse(text: &'static str) -> WordLists {
        let mut words = WordLists {
            stop_words: HashSet::new(),
            framing: HashSet::new(),
            groups: Vec::new(),
            by_first: vec![Vec::new(); 256],
        };
        for (section, line) in sections(text) {
            match section {
                "stop words" => words.stop_words.extend(line.split(' ')),
                "framing" => words.framing.extend(line.split(' ')),
                "forms" => words.add(line, Nearness::Exact),
                "same" => words.add(line, Nearness::Same),
                _ => words.add(line, Nearness::Related),
            }
        }
        words
    }

    fn add(&mut self, line: &'static str, nearness: Nearness) {
        let group: Vec<&str> = line.split(' ').collect();
        for first in group.iter().filter_map(|word| word.as_bytes().first()) {
            let known = &mut self.by_first[usize::from(*first)];
            if known.last() != Some(&self.groups.len()) {
                known.push(self.groups.len());
            }
        }
        self.groups.push((group, nearness));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_words() -> impl Iterator<Item = &'static str> {
        let groups = WORDS.groups.iter().flat_map(|(group, _)| group);
        WORDS.stop_words.iter().chain(&WORDS.framing).chain(groups).copied()
    }

    #[test]
    fn words_have_synonyms() {
        assert!(synonyms("bought", "bought").contains(&("buy", Nearness::Exact)));
        assert!(synonyms("databases", "databas").contains(&("db", Nearness::Same)));
        assert!(synonyms("deleting", "delet").contains(&("remove", Nearness::Related)));
        assert!(synonyms("xylophone", "xylophon").is_empty());
    }

    #[test]
    fn the_stemmer_keeps_the_first_letter() {
        for word in all_words() {
            for ending in ["", "s", "es", "ed", "ing", "ly", "ness", "ies", "y"] {
                let word = format!("{word}{ending}");
                assert_eq!(stem(&word).as_bytes()[0], word.as_bytes()[0], "{word}");
            }
        }
    }

    #[test]
    fn the_lists_are_folded_words_in_five_sections() {
        let sections: Vec<&str> =
            include_str!("english.txt").lines().filter(|line| line.starts_with('[')).collect();
        assert_eq!(sections, ["[stop words]", "[framing]", "[forms]", "[same]", "[related]"]);
        assert!(WORDS.stop_words.len() > 150 && WORDS.framing.len() > 80 && WORDS.groups.len() > 700);
        assert!(WORDS.groups.is_sorted_by_key(|(_, nearness)| *nearness));
        for word in all_words() {
            let is_folded = word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            assert!(is_folded && !word.is_empty(), "{word:?}");
        }
    }

    #[test]
    fn only_english_letters_are_stemmed() {
        assert_eq!(stem("retries"), stem("retry"));
        assert_eq!(stem("日本"), "日本");
        assert_eq!(stem("1.89"), "1.89");
    }
}
