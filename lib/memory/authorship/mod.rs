//! Who said what: which facts, addresses and commands of a note a person gave, which the agent, and which only a tool's
//! output. Computed from what was said, never from what a model claims about it.
//!
//! A leaf without I/O: it knows texts and who they are from, nothing of batches or files. All of it is linear in the
//! length of its texts.

mod claims;
mod dangers;
mod fold;
mod piped;
mod sentences;
mod tokens;

pub(crate) use crate::memory::authorship::claims::ClaimKind;
pub(crate) use crate::memory::authorship::dangers::{Danger, DangerKind, dangers};
pub(crate) use crate::memory::authorship::sentences::{collapsed, of_note as sentences_of_note};

use crate::memory::authorship::claims::{Claim, claims};
use crate::memory::authorship::fold::Folded;
use crate::memory::authorship::tokens::{address_key, address_keys, addresses, word_keys, words};
use crate::memory::facts::{facts, is_unspaced};
use crate::store::entry::By;
use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;
use unicode_segmentation::UnicodeSegmentation;

/// A turn of a person with more characters is not searched for sentences: so much is pasted.
const TYPED_CHARS: usize = 500;

/// From whom a stretch of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// Typed or pasted.
    Person,
    /// A part of a person's turn that is too long to have been typed.
    Pasted,
    /// What it said or thought.
    Agent,
    /// What the agent gave a tool.
    ToolInput,
    ToolOutput,
}

impl Speaker {
    pub(crate) fn by(self) -> By {
        match self {
            Speaker::Person | Speaker::Pasted => By::Person,
            Speaker::Agent | Speaker::ToolInput => By::Agent,
            Speaker::ToolOutput => By::Tool,
        }
    }
}

/// What a note says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoteText<'a> {
    pub(crate) title: &'a str,
    pub(crate) summary: &'a str,
    pub(crate) tags: &'a [String],
    pub(crate) body: &'a str,
}

impl<'a> NoteText<'a> {
    fn fields(&self) -> impl Iterator<Item = &'a str> {
        let tags = self.tags.iter().map(String::as_str);
        [self.title, self.summary].into_iter().chain(tags).chain([self.body])
    }

    /// The texts that are made of sentences.
    pub(crate) fn texts(&self) -> [&'a str; 3] {
        [self.title, self.summary, self.body]
    }
}

/// Why a note waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Foreign {
    /// Nobody but a tool's output, if anybody, gave it.
    Claim(ClaimKind, String),
    /// It is written with characters that only look like these.
    Disguised(ClaimKind, String),
    /// It runs what the network sends.
    Piped,
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |kind: &ClaimKind| match kind {
            ClaimKind::Address => "address",
            ClaimKind::Flag => "flag",
            ClaimKind::Setting => "setting",
            ClaimKind::Command => "command",
        };
        match self {
            Foreign::Claim(kind, text) => {
                write!(f, "{} \"{text}\" is from neither the person nor the agent", name(kind))
            }
            Foreign::Disguised(kind, text) => {
                write!(f, "{} \"{text}\" contains characters that look like others", name(kind))
            }
            Foreign::Piped => write!(f, "it pipes the network into a shell"),
        }
    }
}

/// By whom a word or an address was given.
mod given {
    pub(super) const PERSON: u8 = 1;
    pub(super) const TOOL_INPUT: u8 = 2;
    /// By the agent's words or in a tool's input, before any tool's output showed it.
    pub(super) const AGENT_WORDS_EARLY: u8 = 4;
    pub(super) const TOOL_INPUT_EARLY: u8 = 8;
    pub(super) const TOOL_OUTPUT: u8 = 16;
    /// A tool's output showed it before anybody gave it.
    pub(super) const TOOL_OUTPUT_FIRST: u8 = 32;
}

/// What was said in a session, in its order.
///
/// Its size grows with the number of different words, not with the length of what was said; only turns that are shown
/// are kept, for quotes.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// By whom each word and address was given, by its hash.
    given: HashMap<u64, u8>,
    /// The hashes of the sentences that a person typed in turns of at most [`TYPED_CHARS`].
    typed: HashSet<u64>,
    /// What a quote may be taken from, by the number of its turn.
    shown: BTreeMap<usize, Vec<(Speaker, String)>>,
    hasher: RandomState,
}

impl Record {
    /// What was said next. `turn` is the number that the prompt gives it; `None`: it is not shown, being of an earlier
    /// part or run. Headers of turns, with their dates, are nobody's and do not belong in `text`.
    ///
    /// The parts of one turn are added one after the other. A person's turn is given whole; the parts of one that is too
    /// long to have been typed are [`Speaker::Pasted`].
    pub fn add(&mut self, turn: Option<usize>, speaker: Speaker, text: &str) {
        self.index(speaker, text);
        if speaker == Speaker::ToolOutput {
            // What is written so that it looks different was shown as what it looks like, too.
            let folded = Folded::of(text);
            if let Cow::Owned(seen) = &folded.text {
                self.index(speaker, seen);
            }
            if let Some(plain) = refanged(&folded.text) {
                self.index(speaker, &plain);
            }
        }
        if speaker == Speaker::Person && text.chars().nth(TYPED_CHARS).is_none() {
            for sentence in sentences::of_turn(text) {
                self.typed.insert(self.hasher.hash_one(&sentence));
            }
        }
        if let Some(turn) = turn {
            let pieces = self.shown.entry(turn).or_default();
            match pieces.last_mut() {
                Some((last, before)) if *last == speaker => before.extend([" ", &quotable(text)]),
                _ => pieces.push((speaker, quotable(text))),
            }
        }
    }

    /// What was shown so far was of an earlier prompt: quotes are taken from what is added next.
    pub(crate) fn forget_shown(&mut self) {
        self.shown.clear();
    }

    fn index(&mut self, speaker: Speaker, text: &str) {
        for (_, word) in words(text) {
            word_keys(word, |key| note(&mut self.given, hash_word(&self.hasher, key), speaker));
        }
        for address in addresses(text) {
            address_keys(address.text, |key| note(&mut self.given, hash_address(&self.hasher, key), speaker));
        }
    }

    /// Who said what stands in a note.
    ///
    /// `person`: each sentence of title, summary and body is one that the person typed, or stands in the old note,
    /// which is a person's. `tool`: it holds a fact that a tool's output showed before the person or the agent gave it.
    /// A fact that stands in the old note is from whom that is. Numbers of one or two digits are no facts here.
    pub(crate) fn by(&self, new: &NoteText, old: Option<(&NoteText, By)>) -> By {
        let kept: HashSet<String> = match old {
            Some((old, By::Person)) => old.texts().into_iter().flat_map(sentences::of_note).collect(),
            _ => HashSet::new(),
        };
        let mut texts = new.texts().map(sentences::of_note).into_iter().enumerate();
        if texts.all(|(n, sentences)| {
            !sentences.is_empty()
                && sentences.iter().all(|sentence| kept.contains(sentence) || self.is_typed(sentence, n == 0))
        }) {
            return By::Person;
        }
        let before = old.map(|(old, by)| (self.keys_of(old), by));
        let mut by = By::Agent;
        for text in new.texts() {
            for fact in facts(text, |_| true) {
                self.fact_keys(fact, |key| match &before {
                    Some((keys, before)) if keys.contains(&key) => by = by.max(*before),
                    _ => {
                        if self.given.get(&key).is_some_and(|given| given & given::TOOL_OUTPUT_FIRST != 0) {
                            by = By::Tool;
                        }
                    }
                });
            }
        }
        by
    }

    /// The keys by which a fact is looked for: as an address, or as words.
    fn fact_keys(&self, fact: &str, mut each: impl FnMut(u64)) {
        if fact.starts_with("[[") {
            return;
        }
        let found = addresses(fact);
        found.iter().for_each(|address| each(hash_address(&self.hasher, &address_key(address.text))));
        if found.is_empty() {
            let is_small = |word: &str| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
            for (_, word) in words(fact).filter(|(_, word)| !is_small(word)) {
                each(hash_word(&self.hasher, &word.to_lowercase()));
            }
        }
    }

    /// The addresses and commands of a note that must wait for a person, each once: those that stand neither in a
    /// person's turn, nor in a tool's input, nor in the agent's words before any tool's output showed them, nor in the
    /// note that is updated. A public address must moreover have been given by the person, or by the agent before any
    /// tool's output showed it: to fetch what a page names makes it nobody's own.
    ///
    /// What pipes the network into a shell always waits.
    pub(crate) fn foreign(&self, new: &NoteText, old: Option<&NoteText>) -> Vec<Foreign> {
        let before = old.map(|old| self.keys_of(old)).unwrap_or_default();
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for claim in new.fields().flat_map(claims) {
            let why = match claim.is_disguised {
                true => Foreign::Disguised(claim.kind, claim.text.clone()),
                false => Foreign::Claim(claim.kind, claim.text.clone()),
            };
            if (claim.is_disguised || !self.may_stand(&claim, &before)) && seen.insert(why.clone()) {
                found.push(why);
            }
        }
        if piped::pipes_network(&new.texts()) {
            found.push(Foreign::Piped);
        }
        found
    }

    fn may_stand(&self, claim: &Claim, before: &HashSet<u64>) -> bool {
        let (key, enough) = match claim.kind {
            ClaimKind::Address => {
                let early = given::PERSON | given::AGENT_WORDS_EARLY | given::TOOL_INPUT_EARLY;
                let enough = if claim.is_local { early | given::TOOL_INPUT } else { early };
                (hash_address(&self.hasher, &address_key(&claim.text)), enough)
            }
            _ => {
                let enough = given::PERSON | given::AGENT_WORDS_EARLY | given::TOOL_INPUT;
                (hash_word(&self.hasher, &word_key(&claim.text)), enough)
            }
        };
        before.contains(&key) || self.given.get(&key).is_some_and(|given| given & enough != 0)
    }

    /// The keys of all words and addresses of a note.
    fn keys_of(&self, note: &NoteText) -> HashSet<u64> {
        let mut keys = HashSet::new();
        for field in note.fields() {
            for (_, word) in words(field) {
                word_keys(word, |key| {
                    keys.insert(hash_word(&self.hasher, key));
                });
            }
            for address in addresses(field) {
                address_keys(address.text, |key| {
                    keys.insert(hash_address(&self.hasher, key));
                });
            }
        }
        keys
    }

    /// Are title, summary and body each whole sentences that the person typed, word for word, in turns of at most 500
    /// characters? The title may leave out the last full stop.
    pub(crate) fn verbatim(&self, title: &str, summary: &str, body: &str) -> bool {
        [title, summary, body].into_iter().enumerate().all(|(n, text)| {
            let sentences = sentences::of_note(text);
            !sentences.is_empty() && sentences.iter().all(|sentence| self.is_typed(sentence, n == 0))
        })
    }

    fn is_typed(&self, sentence: &str, is_title: bool) -> bool {
        let has = |sentence: &str| self.typed.contains(&self.hasher.hash_one(sentence));
        has(sentence) || is_title && [".", "。"].iter().any(|stop| has(&format!("{sentence}{stop}")))
    }

    /// Is an update the person's own correction: is every new sentence of title, summary and body one that the person
    /// typed, as in [`Record::verbatim`], and does each sentence that goes share a content word or an identifier with
    /// one that comes?
    pub(crate) fn is_own_correction(&self, old: &NoteText, new: &NoteText) -> bool {
        let mut gone = Vec::new();
        let mut come = Vec::new();
        for (n, (old, new)) in old.texts().into_iter().zip(new.texts()).enumerate() {
            let (old, new) = (sentences::of_note(old), sentences::of_note(new));
            if new.is_empty() && !old.is_empty() {
                return false;
            }
            if new.iter().any(|sentence| !old.contains(sentence) && !self.is_typed(sentence, n == 0)) {
                return false;
            }
            gone.extend(old.iter().filter(|sentence| !new.contains(sentence)).cloned());
            come.extend(new.into_iter().filter(|sentence| !old.contains(sentence)));
        }
        let content: HashSet<String> = come.iter().flat_map(|sentence| content(sentence)).collect();
        gone.iter().all(|sentence| self::content(sentence).any(|word| content.contains(&word)))
    }

    /// In whose words a quote stands, in the turn of that number as the prompt showed it: `| ` before lines left out,
    /// white space collapsed, case ignored. An empty quote stands nowhere.
    pub(crate) fn quote(&self, turn: usize, quote: &str) -> Option<Speaker> {
        let quote = quotable(quote);
        let pieces = self.shown.get(&turn).filter(|_| !quote.is_empty())?;
        pieces.iter().find(|(_, text)| text.contains(&quote)).map(|(speaker, _)| *speaker)
    }
}

/// So many addresses and commands are named as reasons.
const NAMED: usize = 5;

/// The same as reasons for a person; the first few.
pub(crate) fn reasons(found: &[Foreign]) -> Vec<String> {
    found.iter().take(NAMED).map(ToString::to_string).collect()
}

/// Why a note that an agent captured waits for a person: where its addresses and commands are from is not known, and a
/// page may have given them. Empty if it has none.
pub(crate) fn unproven(note: &NoteText) -> Vec<String> {
    let found = reasons(&Record::default().foreign(note, None));
    match found.is_empty() {
        true => found,
        false => {
            let why = "An agent captured it, and nothing shows where these are from.".to_owned();
            std::iter::once(why).chain(found).collect()
        }
    }
}

fn note(given: &mut HashMap<u64, u8>, key: u64, speaker: Speaker) {
    let before = given.entry(key).or_default();
    let is_early = *before & given::TOOL_OUTPUT == 0;
    *before |= match speaker {
        Speaker::Person | Speaker::Pasted => given::PERSON,
        Speaker::Agent if is_early => given::AGENT_WORDS_EARLY,
        // An echo.
        Speaker::Agent => 0,
        Speaker::ToolInput if is_early => given::TOOL_INPUT | given::TOOL_INPUT_EARLY,
        Speaker::ToolInput => given::TOOL_INPUT,
        Speaker::ToolOutput if *before == 0 => given::TOOL_OUTPUT | given::TOOL_OUTPUT_FIRST,
        Speaker::ToolOutput => given::TOOL_OUTPUT,
    };
}

/// A word and an address of the same letters are not the same.
fn hash_word(hasher: &RandomState, key: &str) -> u64 {
    hasher.hash_one((false, key))
}

fn hash_address(hasher: &RandomState, key: &str) -> u64 {
    hasher.hash_one((true, key))
}

/// The key of a whole word, which is the last of its keys.
fn word_key(word: &str) -> String {
    let mut whole = String::new();
    word_keys(word, |key| key.clone_into(&mut whole));
    whole
}

/// `hxxps://evil[.]example` as the address that it stands for, if a text has such.
fn refanged(text: &str) -> Option<String> {
    const DOTS: [&str; 6] = ["[.]", "(.)", "{.}", "[dot]", "(dot)", " dot "];
    let has = |mark: &str| memchr::memmem::find(text.as_bytes(), mark.as_bytes()).is_some();
    if !has("hxxp") && !DOTS.iter().any(|mark| has(mark)) {
        return None;
    }
    let plain = DOTS.iter().fold(text.replace("hxxp", "http"), |text, mark| text.replace(mark, "."));
    Some(plain.replace("[:]", ":").replace("[/]", "/"))
}

fn quotable(text: &str) -> String {
    let lines = text.lines().map(|line| line.strip_prefix('|').unwrap_or(line));
    let mut flat = String::with_capacity(text.len());
    for word in lines.flat_map(str::split_whitespace) {
        if !flat.is_empty() {
            flat.push(' ');
        }
        flat.extend(word.chars().flat_map(char::to_lowercase));
    }
    flat
}

/// Words that say nothing by themselves, of four and more letters.
const EMPTY_WORDS: &[&str] = &[
    "this", "that", "these", "those", "with", "from", "have", "will", "must", "should", "would", "could",
    "when", "then", "than", "them", "they", "there", "here", "what", "which", "where", "while", "only",
    "also", "always", "never", "please", "into", "onto", "over", "under", "after", "before", "because",
    "about", "does", "done", "dont", "don't", "been", "being", "were", "your", "their", "some", "more",
    "most", "such", "very", "just", "like", "make", "makes", "need", "needs", "dass", "dies", "diese",
    "dieser", "dieses", "eine", "einen", "einer", "eines", "einem", "nicht", "immer", "wird", "werden",
    "wurde", "haben", "sind", "sein", "muss", "müssen", "soll", "sollen", "kann", "wenn", "dann", "aber",
    "auch", "noch", "oder", "beim", "nach", "über", "unter", "hier", "dort", "jetzt", "bitte", "niemals",
    "kein", "keine", "keinen", "esta", "este", "esto", "estos", "estas", "para", "pero", "como", "cuando",
    "donde", "desde", "hasta", "sobre", "siempre", "nunca", "debe", "deben", "tiene", "tienen", "puede",
    "pueden", "solo", "también", "porque", "aquí", "ahora", "favor",
];

/// The words of a sentence that carry its subject, without endings that inflect them.
fn content(sentence: &str) -> impl Iterator<Item = String> + '_ {
    let identifiers = facts(sentence, |_| true).into_iter().map(str::to_lowercase);
    let words = sentence.unicode_words().map(str::to_lowercase).filter(|word| {
        let is_ideograph =
            word.chars().all(is_unspaced) && !word.chars().all(|c| matches!(c, '\u{3040}'..='\u{309f}'));
        let letters = word.chars().count();
        is_ideograph || (letters >= 4 && !EMPTY_WORDS.contains(&word.as_str()))
    });
    words
        .map(|word| word.chars().take(6).collect::<String>().trim_end_matches('s').to_owned())
        .chain(identifiers)
}

#[cfg(test)]
mod tests;
