//! What a note says that can stand in code: names, numbers, quotations, and the words of its prose.

use crate::base::text::{collapsed, is_word};
use crate::memory::search::code_of;
use crate::memory::search::language::{is_stop_word, stem};
use crate::memory::search::words::{WordKind, each};
use std::collections::BTreeSet;

/// A shorter quotation stands in other lines by chance, in bytes; shorter words of prose and names, too.
const QUOTATION: usize = 8;
pub(super) const WORD: usize = 4;
/// So many quotations of a text count, and so many words of one line.
const QUOTATIONS: usize = 40;
const OF_LINE: usize = 12;
/// The longest quotation in double quotes, in bytes.
const QUOTED: usize = 60;

/// Words of programming languages and of prose about code, which name nothing.
const COMMON: &str = " abstract async await bool boolean break call called calls case catch char class code const continue \
    default define delete double elif else enum export extends false file files final finally float from func function \
    functions global impl import include int interface lambda line lines long make makes match method methods module mutable \
    name named names namespace none note notes null number override package private protected public raise readonly return \
    self sets static string struct super switch takes template this throw throws trait true type typedef typeof undefined \
    union unless until used uses using value values virtual void volatile when where while with yield ";

#[derive(Debug, Default)]
pub(super) struct Said {
    /// Of code, or of a form that prose has not; and numbers.
    pub(super) names: BTreeSet<String>,
    /// All words as they are written, and their stems.
    pub(super) words: BTreeSet<String>,
    stems: BTreeSet<String>,
    quotations: BTreeSet<String>,
    /// Flags of one letter, without the hyphen.
    pub(super) flags: BTreeSet<String>,
    pub(super) text: String,
}

impl Said {
    pub(super) fn of(text: &str) -> Said {
        let words = words(text).filter(|word| word.len() >= WORD && !is_common(word));
        let words = words.map(str::to_owned).collect();
        let mut said = Said { words, text: text.to_owned(), ..Said::default() };
        said.stems = said.words.iter().map(|word| stem(&word.to_lowercase()).into_owned()).collect();
        said.names = words_of_code(text).filter(|word| is_number(word)).map(str::to_owned).collect();
        // What stands in parentheses: parameters, fields.
        let lists = text.split('(').skip(1).filter_map(|rest| rest.split(')').next());
        let is_list =
            |list: &&str| list.contains(',') && list.split(", ").all(|item| item.split(' ').count() == 1);
        let quoted: Vec<&str> =
            code_of(text).into_iter().chain(lists.filter(is_list)).map(str::trim).collect();
        for code in quoted.iter().copied().chain(text.split_whitespace().filter(|word| is_code(word))) {
            // The name of a file says nothing about a place in it.
            if code.contains(char::is_whitespace) || !code.contains('/') {
                let is_name = |word: &&str| word.len() > 1 && !is_common(word);
                said.names.extend(words_of_code(code).filter(is_name).map(str::to_owned));
            }
        }
        let is_long = |line: &String| line.len() >= QUOTATION && line.contains([' ', '=', '(', ':', '-']);
        let is_kept = |line: &String| is_long(line) && !line.contains(" + ") && !line.contains(" | ");
        let strings = text.lines().flat_map(strings).filter(|string| string.len() <= QUOTED);
        let lines =
            quoted.into_iter().chain(strings).map(|code| collapsed(code.trim_start_matches(['$', '-', ' '])));
        said.quotations = lines.filter(is_kept).take(QUOTATIONS).collect();
        let flags = text.split(|c: char| !is_word(c) && c != '-').filter_map(|word| word.strip_prefix('-'));
        said.flags = flags.filter(|flag| flag.len() == 1).map(str::to_owned).collect();
        said
    }

    /// The words that stand in parentheses after a name: `open(key, door)`.
    pub(super) fn parameters_of(&self, name: &str) -> BTreeSet<&str> {
        let starts = self.text.match_indices(name).filter(|(at, _)| !self.text[..*at].ends_with(is_word));
        starts.filter_map(|(at, _)| in_parentheses(&self.text[at + name.len()..])).flat_map(words).collect()
    }

    /// What of it stands in a line: names, numbers and quotations.
    pub(super) fn in_line<'a>(&'a self, line: &'a str) -> BTreeSet<&'a str> {
        let names = words_of_code(line).filter(|word| self.names.contains(*word));
        let line = collapsed(line);
        names.chain(self.quotations.iter().map(String::as_str).filter(|one| has(&line, one))).collect()
    }

    /// With words of its prose, as the line writes them.
    pub(super) fn all_in_line<'a>(&'a self, line: &'a str) -> BTreeSet<&'a str> {
        let mut all = self.in_line(line);
        let mut stems: BTreeSet<String> = BTreeSet::new();
        each(line, |word| {
            let text = &line[word.start..word.end];
            let is_one = word.kind == WordKind::Part && text.len() >= WORD && !is_common(text);
            let stem = stem(word.text).into_owned();
            let is_new =
                is_one && self.stems.contains(&stem) && !all.iter().any(|known| known.contains(text));
            if is_new && has(line, text) && stems.insert(stem) {
                all.insert(text);
            }
        });
        all
    }
}

/// The words of a line, as an anchor keeps them.
pub(super) fn kept(words: &BTreeSet<&str>) -> String {
    words.iter().copied().take(OF_LINE).collect::<Vec<_>>().join(" + ")
}

/// Do these words stand in a line, or in it and the next?
pub(super) fn stand_in(lines: &[&str], kept: &str) -> bool {
    let words: Vec<&str> = kept.split(" + ").collect();
    // A quotation may go on in the next line.
    let whole = words.iter().filter(|word| !word.contains(' '));
    let longest = whole.max_by_key(|word| word.len()).copied().unwrap_or_default();
    let is_there = |at: usize| {
        let two = collapsed(&lines[at..lines.len().min(at + 2)].join(" "));
        words.iter().all(|word| has(&two, word))
    };
    let at = (0..lines.len()).filter(|at| lines[*at].contains(longest));
    at.into_iter().any(|at| is_there(at) || at > 0 && is_there(at - 1))
}

/// Does a word stand in a line, also as a part of a name? `retry` is in `retry_all` and `retryAll`, and 12 is not in 120.
fn has(line: &str, word: &str) -> bool {
    let (is_upper, is_number) = (word.starts_with(char::is_uppercase), is_number(word));
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().filter(|c| c.is_alphanumeric());
        let after = line[at + word.len()..].chars().next();
        before.is_none_or(|c| is_upper && c.is_lowercase())
            && after.is_none_or(|c| !c.is_numeric() && (is_number || !c.is_lowercase()))
    })
}

fn is_common(word: &str) -> bool {
    let word = word.to_lowercase();
    is_stop_word(&word) || COMMON.contains(&format!(" {word} "))
}

/// What stands between the parentheses with which a text begins.
pub(super) fn in_parentheses(text: &str) -> Option<&str> {
    let text = text.strip_prefix('(')?;
    let mut depth = 1;
    let end = text.find(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    Some(&text[..end])
}

/// What stands between double quotes in a line.
pub(super) fn strings(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2)
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Words, and numbers without a unit: `3.7`, `30` of `30s`.
fn words_of_code(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c) && c != '.').flat_map(|part| {
        let number = Some(part).filter(|part| is_number(part));
        let number = number.map(|part| part.trim_end_matches(|c: char| !c.is_ascii_digit()));
        number.into_iter().chain(words(if number.is_some() { "" } else { part }))
    })
}

/// Prose has no word of this form: `pool_size`, `poolSize`, `cpu_count()`, `os.open`, `--force`, `utf8`, `PATH`.
fn is_code(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let is_pair = |pair: &[u8]| match pair {
        [a, b] => {
            a.is_ascii_lowercase() && b.is_ascii_uppercase()
                || a.is_ascii_alphabetic() && (b.is_ascii_digit() || b".:(".contains(b))
        }
        _ => false,
    };
    word.contains(['_', '=', '\''])
        || word.starts_with('-')
        || word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase())
        || word.as_bytes().windows(2).any(is_pair)
}
