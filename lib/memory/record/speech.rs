//! The words of `speech.txt`, by what they tell about a sentence.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// A list of phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Speech {
    /// May stand before a sentence and be left out.
    LeadIn,
    /// Says before a colon or comma that a rule follows.
    Announcement,
    /// May stand after it.
    LeadOut,
    /// It is about this moment or this place.
    ThisTime,
    /// Says since when a general sentence holds.
    SinceWhen,
    Question,
    Supposition,
    /// It is what somebody else says.
    Report,
    Negation,
    Condition,
    Quantifier,
    /// It takes a rule back.
    LetGo,
    /// It allows what was forbidden.
    Permission,
    /// It goes on with the sentence before it.
    Exception,
    /// Says nothing about the subject.
    Filler,
}

const SECTIONS: [(&str, Speech); 15] = [
    ("lead-in", Speech::LeadIn),
    ("announcement", Speech::Announcement),
    ("lead-out", Speech::LeadOut),
    ("this time", Speech::ThisTime),
    ("since when", Speech::SinceWhen),
    ("question", Speech::Question),
    ("supposition", Speech::Supposition),
    ("report", Speech::Report),
    ("negation", Speech::Negation),
    ("condition", Speech::Condition),
    ("quantifier", Speech::Quantifier),
    ("let go", Speech::LetGo),
    ("permission", Speech::Permission),
    ("exception", Speech::Exception),
    ("filler", Speech::Filler),
];

/// The phrases of each list, by their first word, each as its words.
type Phrases = HashMap<&'static str, Vec<Vec<&'static str>>>;

static PHRASES: LazyLock<HashMap<Speech, Phrases>> = LazyLock::new(|| {
    let mut all: HashMap<Speech, Phrases> = HashMap::new();
    let mut section = None;
    for line in include_str!("speech.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = SECTIONS.iter().find(|(known, _)| *known == name).map(|(_, speech)| *speech);
        } else if let Some(speech) = section {
            let words: Vec<&str> = line.split(' ').collect();
            all.entry(speech).or_default().entry(words[0]).or_default().push(words);
        }
    }
    // The longest first.
    all.values_mut()
        .flat_map(HashMap::values_mut)
        .for_each(|phrases| phrases.sort_by_key(|words| std::cmp::Reverse(words.len())));
    all
});

impl Speech {
    /// How many words of `words` from its beginning are one phrase of the list, the longest; 0: none.
    pub(super) fn begins(self, words: &[String]) -> usize {
        let Some(first) = words.first() else { return 0 };
        let phrases = PHRASES.get(&self).and_then(|phrases| phrases.get(first.as_str()));
        let fits = |phrase: &&Vec<&str>| {
            phrase.len() <= words.len() && phrase.iter().zip(words).all(|(phrase, word)| phrase == word)
        };
        phrases.into_iter().flatten().find(fits).map_or(0, Vec::len)
    }

    /// Is this word alone one of the phrases?
    pub(super) fn has(self, word: &str) -> bool {
        let phrases = PHRASES.get(&self).and_then(|phrases| phrases.get(word));
        phrases.is_some_and(|phrases| phrases.iter().any(|phrase| phrase.len() == 1))
    }

    /// Does one of the phrases stand anywhere in `words`?
    pub(super) fn is_in(self, words: &[String]) -> bool {
        (0..words.len()).any(|at| self.begins(&words[at..]) > 0)
    }

    /// The phrases that stand in `words`.
    pub(super) fn of(self, words: &[String]) -> HashSet<String> {
        let lengths = (0..words.len()).map(|at| (at, self.begins(&words[at..])));
        lengths
            .filter(|(_, length)| *length > 0)
            .map(|(at, length)| words[at..at + length].join(" "))
            .collect()
    }
}
