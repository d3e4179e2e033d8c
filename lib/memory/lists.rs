//! Lists of words, phrases and programs. They stand in text files, so that nobody edits code to add to one.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

const FILES: [&str; 4] = [
    include_str!("names.txt"),
    include_str!("programs.txt"),
    include_str!("record/dangers.txt"),
    include_str!("record/speech.txt"),
];

/// A list of these files, by the name that stands in brackets above it.
#[derive(Debug, Clone, Copy)]
pub struct List(pub &'static str);

/// Words that turn a sentence around: two texts that differ in one of them say different things.
pub const TURNS: [List; 3] = [List("negation"), List("condition"), List("quantifier")];

#[derive(Default)]
struct Phrases {
    /// As they stand, in their order.
    all: Vec<&'static str>,
    /// The words of each, by the first one, the longest phrase first.
    by_first: HashMap<&'static str, Vec<Vec<&'static str>>>,
}

static LISTS: LazyLock<HashMap<&'static str, Phrases>> = LazyLock::new(|| {
    let mut lists: HashMap<&str, Phrases> = HashMap::new();
    for (list, line) in FILES.iter().flat_map(|file| sections(file)) {
        let phrases = lists.entry(list).or_default();
        for phrase in line.split(", ") {
            let words: Vec<&str> = phrase.split(' ').collect();
            phrases.all.push(phrase);
            phrases.by_first.entry(words[0]).or_default().push(words);
        }
    }
    let same_first = lists.values_mut().flat_map(|phrases| phrases.by_first.values_mut());
    same_first.for_each(|phrases| phrases.sort_by_key(|words| std::cmp::Reverse(words.len())));
    lists
});

/// The lines of a file of lists, each with the name in brackets that it stands under.
pub fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut section = "";
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(move |line| {
        let name = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        section = name.unwrap_or(section);
        name.is_none().then_some((section, line))
    })
}

impl List {
    /// The phrases as they stand.
    pub fn phrases(self) -> &'static [&'static str] {
        &LISTS[self.0].all
    }

    /// The phrases that begin with a word.
    fn with(self, first: &str) -> &'static [Vec<&'static str>] {
        LISTS[self.0].by_first.get(first).map_or(&[], Vec::as_slice)
    }

    /// Is this word alone one of the phrases?
    pub fn has(self, word: &str) -> bool {
        self.with(word).iter().any(|phrase| phrase.len() == 1)
    }

    /// What follows this word in the first phrase that begins with it.
    pub fn after(self, word: &str) -> Option<&'static [&'static str]> {
        self.with(word).first().map(|phrase| &phrase[1..])
    }

    /// Does a text hold one of the phrases, within a word too?
    pub fn is_within(self, text: &str) -> bool {
        self.phrases().iter().any(|phrase| text.contains(phrase))
    }

    /// Does a word begin with one of the phrases?
    pub fn starts(self, word: &str) -> bool {
        self.phrases().iter().any(|stem| word.starts_with(stem))
    }

    /// How many of `words` from their beginning are one phrase, the longest; 0: none.
    pub fn begins<W: AsRef<str>>(self, words: &[W]) -> usize {
        let Some(first) = words.first() else { return 0 };
        let fits = |phrase: &&Vec<&str>| {
            phrase.len() <= words.len() && phrase.iter().zip(words).all(|(part, word)| *part == word.as_ref())
        };
        self.with(first.as_ref()).iter().find(fits).map_or(0, Vec::len)
    }

    /// Does one of the phrases stand anywhere in `words`?
    pub fn is_in<W: AsRef<str>>(self, words: &[W]) -> bool {
        (0..words.len()).any(|at| self.begins(&words[at..]) > 0)
    }

    /// The phrases that stand in `words`.
    pub fn of(self, words: &[String]) -> HashSet<String> {
        let found = (0..words.len()).map(|at| &words[at..at + self.begins(&words[at..])]);
        found.filter(|phrase| !phrase.is_empty()).map(|phrase| phrase.join(" ")).collect()
    }
}
