//! Applies the rules: one pass over the text looks for the keywords of all of them.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use std::sync::LazyLock;

use crate::memory::redact::chars::{LastRun, begins, ends, leading, trailing};
use crate::memory::redact::near::{Certainty, Done, Near, Span};
use crate::memory::redact::rules::{self, Classes, Pattern, Rule};
use crate::memory::redact::value::{blanked, dice, flagged, made, placeholder, random, varied};
use crate::memory::redact::{commands, files, printed, sentences, wallet};

/// What decides about a match.
#[derive(Clone, Copy)]
pub(super) enum RuleCheck {
    /// A token: it ends where a word ends, and is like this.
    Token(fn(&[u8]) -> bool),
    Value(fn(&[u8]) -> bool),
    Finder(fn(&mut Near)),
}

impl RuleCheck {
    /// By the name that the rules have for it.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "varied" => Self::Token(varied),
            "random" => Self::Token(random),
            "unnamed" => Self::Token(|value| random(value) && !placeholder(value)),
            "digits" => Self::Token(|value| random(value) && value.iter().any(u8::is_ascii_digit)),
            "password" => Self::Value(|value| made(value) || dice(value)),
            "flagged" => Self::Value(flagged),
            "given" => Self::Value(|value| !placeholder(value)),
            "login" => Self::Value(is_login),
            "said_password" => Self::Finder(sentences::password),
            "said_token" => Self::Finder(sentences::token),
            "said_code" => Self::Finder(|near| sentences::number(near, 6..=8)),
            "said_pin" => Self::Finder(|near| sentences::number(near, 4..=8)),
            "said_card_check" => Self::Finder(|near| sentences::number(near, 3..=4)),
            "around" => Self::Finder(sentences::around),
            "said_login" => Self::Finder(sentences::login),
            "command" => Self::Finder(|near| match near.usage.contains('>') {
                true => printed::printed(near),
                false => commands::command(near),
            }),
            "decoder" => Self::Finder(commands::decoder),
            "literal" => Self::Finder(commands::literal),
            "piped" => Self::Finder(commands::piped),
            "expect" => Self::Finder(commands::expect),
            "call" => Self::Finder(commands::call),
            "url_login" => Self::Finder(files::url_login),
            "kubernetes" => Self::Finder(files::kubernetes),
            "cookies" => Self::Finder(files::cookies),
            "putty" => Self::Finder(files::putty),
            "jwk" => Self::Finder(files::jwk),
            "seed" => Self::Finder(wallet::said),
            "columns" => Self::Finder(files::columns),
            "aws_pair" => Self::Finder(files::aws_pair),
            "listed" => Self::Finder(files::listed),
            "iban" => Self::Finder(files::iban),
            "file_read" => Self::Finder(printed::file_read),
            "inserted" => Self::Finder(files::inserted),
            "csv" => Self::Finder(files::csv),
            _ => return None,
        })
    }
}

/// `user:password` in base64.
fn is_login(coded: &[u8]) -> bool {
    let plain = STANDARD.decode(coded).or_else(|_| STANDARD_NO_PAD.decode(coded)).unwrap_or_default();
    std::str::from_utf8(&plain).is_ok_and(|login| login.contains(':') && !login.chars().any(char::is_control))
}

/// A keyword of a rule.
#[derive(Clone)]
struct Keyword {
    text: String,
    rule: usize,
}

struct RuleIndex {
    rules: Vec<(Rule, RuleCheck)>,
    classes: Classes,
    /// The keywords by their [`list`], in the order of the rules.
    lists: Vec<Vec<Keyword>>,
    /// One bit for each [`hash`] of the first three bytes.
    threes: Box<Hashes>,
    /// One bit for each hash of the first four bytes, or of all three.
    fours: Box<Hashes>,
}

static INDEX: LazyLock<RuleIndex> = LazyLock::new(RuleIndex::new);

/// Everything that the rules find, or of that the tokens only, without what functions find around words.
pub(super) fn find(bytes: &[u8], only_tokens: bool, spans: &mut Vec<Span>) {
    let index = &*INDEX;
    let runs = vec![LastRun::default(); index.classes.len()];
    let mut matcher = Matcher { bytes, classes: &index.classes, runs };
    let (mut done, mut at) = (Done::default(), 0);
    while let Some(next) = index.next(bytes, at) {
        at = next;
        let found = spans.len();
        for keyword in index.keywords(bytes, at) {
            let (rule, check) = &index.rules[keyword.rule];
            let end = at + keyword.text.len();
            if only_tokens && !matches!(check, RuleCheck::Token(_)) {
                continue;
            } else if let RuleCheck::Finder(find) = check {
                let Rule { kind, usage, .. } = rule;
                find(&mut Near { bytes, at, end, kind, usage, done: &mut done, spans: &mut *spans });
            } else if let Some(span) = matcher.fit(at, end, rule, *check) {
                spans.push(span);
                break;
            }
        }
        at = match spans.get(found) {
            Some(span) if span.start <= at && span.end > at => span.end,
            _ => at + 1,
        };
    }
}

/// Does a token begin in the text, although it need not end there?
pub(super) fn begins_in(bytes: &[u8]) -> bool {
    let index = &*INDEX;
    let mut places = std::iter::successors(index.next(bytes, 0), |at| index.next(bytes, at + 1));
    let is_token = |keyword: &Keyword| matches!(index.rules[keyword.rule].1, RuleCheck::Token(_));
    places.any(|at| index.keywords(bytes, at).any(is_token))
}

impl RuleIndex {
    fn new() -> RuleIndex {
        let (rules, classes) = rules::all();
        let table = || Box::new([0; HASHES / 64]);
        let lists = vec![Vec::new(); LISTS];
        let mut index = RuleIndex { rules: Vec::new(), classes, lists, threes: table(), fours: table() };
        for mut rule in rules {
            let Some(check) = RuleCheck::of(rule.check) else { continue };
            let alone = rule.pattern.group.is_none() && rule.pattern.before.is_none();
            rule.pattern.edge |= alone && matches!(check, RuleCheck::Token(_));
            for text in std::mem::take(&mut rule.pattern.keywords) {
                index.add(&Keyword { text, rule: index.rules.len() }, &rule.pattern);
            }
            index.rules.push((rule, check));
        }
        index
    }

    /// Adds a keyword of a pattern.
    fn add(&mut self, keyword: &Keyword, pattern: &Pattern) {
        let text = keyword.text.as_bytes();
        let follows = |byte: &u8| pattern.runs.first().is_none_or(|run| self.classes[run.class].1.has(*byte));
        let thirds =
            (0..=255).filter(|byte| text.len() > 2 || follows(byte)).map(|byte| [text, &[byte]].concat());
        for start in thirds.take(if text.len() > 2 { 1 } else { 256 }).collect::<Vec<_>>() {
            let start = &start[..start.len().min(4).min(text.len().max(3))];
            // Capitals, and a capital first: all cases that the filter lets through.
            let upper = start.to_ascii_uppercase();
            let title = [&upper[..1], &start[1..]].concat();
            for cased in [start, &upper, &title].iter().take(if pattern.ignores_case { 3 } else { 1 }) {
                set(&mut self.threes, word(&cased[..3]));
                set(&mut self.fours, word(cased));
            }
            let list = &mut self.lists[list(start)];
            if list.last().is_none_or(|last| (last.rule, &last.text) != (keyword.rule, &keyword.text)) {
                list.push(keyword.clone());
            }
        }
    }

    /// The next position, from `at` on, where a keyword may be.
    fn next(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut last = u32::from(*bytes.get(at)?) << 8 | u32::from(*bytes.get(at + 1)?);
        let mut at = at + 2;
        // A plain loop, because it runs for every byte of every note.
        while let Some(&byte) = bytes.get(at) {
            last = (last << 8 | u32::from(byte)) & 0xff_ffff;
            if is_set(&self.threes, last) {
                let four = bytes.get(at + 1).map(|fourth| last << 8 | u32::from(*fourth));
                if is_set(&self.fours, last) || four.is_some_and(|four| is_set(&self.fours, four)) {
                    return Some(at - 2);
                }
            }
            at += 1;
        }
        None
    }

    /// The keywords at a position.
    fn keywords<'s>(&'s self, bytes: &'s [u8], at: usize) -> impl Iterator<Item = &'s Keyword> {
        let (rest, begins) = (&bytes[at..], begins(bytes, at));
        let is_here = move |keyword: &&Keyword| {
            let (text, pattern) = (keyword.text.as_bytes(), &self.rules[keyword.rule].0.pattern);
            let same = |said: &[u8]| match pattern.ignores_case {
                true => said.eq_ignore_ascii_case(text),
                false => said == text,
            };
            (begins || !pattern.edge) && rest.get(..text.len()).is_some_and(same)
        };
        self.lists[list(rest)].iter().filter(is_here)
    }
}

/// The number of lists of keywords.
const LISTS: usize = 4096;

/// The list with the keywords that begin like this, by their first three bytes in lower case.
fn list(text: &[u8]) -> usize {
    hash(word(&text[..text.len().min(3)]) | 0x20_2020) % LISTS
}

pub(super) fn word(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |so_far, byte| so_far << 8 | u32::from(*byte))
}

/// The number of bits in a table of hashes.
pub(super) const HASHES: usize = 1 << 16;

type Hashes = [u64; HASHES / 64];

#[inline(always)]
pub(super) fn hash(word: u32) -> usize {
    (word.wrapping_mul(0x9e37_79b1) >> 16) as usize
}

#[inline(always)]
fn is_set(table: &Hashes, word: u32) -> bool {
    let hash = hash(word);
    table[hash / 64] >> (hash % 64) & 1 == 1
}

fn set(table: &mut Hashes, word: u32) {
    let hash = hash(word);
    table[hash / 64] |= 1 << (hash % 64);
}

/// The text, and the last run of each class.
struct Matcher<'a> {
    bytes: &'a [u8],
    classes: &'a Classes,
    runs: Vec<LastRun>,
}

impl Matcher<'_> {
    /// The end of the run of a class that begins at `start`; `start` itself if there is none.
    fn end(&mut self, class: usize, start: usize) -> usize {
        let (rest, set) = (&self.bytes[start..], &self.classes[class].1);
        self.runs[class].end(start, || start + leading(rest, rest.len(), |byte| set.has(byte)))
    }

    /// The secret of a rule whose keyword is here.
    fn fit(&mut self, at: usize, body: usize, rule: &Rule, check: RuleCheck) -> Option<Span> {
        let pattern = &rule.pattern;
        let mut start = at;
        if let Some(run) = pattern.before {
            let class = &self.classes[run.class].1;
            start -= trailing(&self.bytes[..at], run.most, |byte| class.has(byte));
            let apart = start == 0 || !class.has(self.bytes[start - 1]) || begins(self.bytes, start);
            if at - start < run.least || !apart {
                return None;
            }
        }
        let (from, to) = pattern.group.unwrap_or((usize::MAX, usize::MAX));
        let (mut secret, mut end) = (start..body, body);
        for (number, run) in pattern.runs.iter().enumerate() {
            if number == from {
                secret.start = end;
            }
            let many = self.end(run.class, end) - end;
            // Exactly one of what may be repeated, like `-` between two parts.
            let many = if (run.least, run.most) == (1, 1) { many.min(1) } else { many };
            if !(run.least..=run.most).contains(&many) {
                return None;
            }
            end += many;
            if number < to {
                secret.end = end;
            }
        }
        let bytes = self.bytes;
        let good = match check {
            RuleCheck::Token(is_good) => {
                let body = body.max(secret.start);
                // A full stop after a token ends the sentence.
                secret.end -= trailing(&bytes[body..secret.end], usize::MAX, |byte| byte == b'.');
                let telling = if secret.end - body < 16 { secret.start } else { body };
                ends(bytes, secret.end)
                    && is_good(&bytes[telling..secret.end])
                    && !blanked(&bytes[telling..secret.end])
            }
            RuleCheck::Value(is_good) => is_good(&bytes[secret.clone()]),
            RuleCheck::Finder(_) => false,
        };
        let alone = pattern.group.is_none();
        let certainty = if alone { Certainty::Token } else { Certainty::Place };
        good.then_some(Span { start: secret.start, end: secret.end, kind: rule.kind, certainty })
    }
}
