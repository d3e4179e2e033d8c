//! Who said what in a session, and what of it came from outside. Computed from what was said, never from what a model
//! claims about it.
//!
//! A leaf without I/O: it knows texts and who they are from, nothing of batches or files. All of it is linear in the
//! length of its texts.

mod claims;
mod dangers;
mod own;
mod piped;
mod plain;
mod sentences;
mod typed;

pub use crate::memory::record::dangers::{Danger, DangerKind, dangers};
pub use crate::memory::record::sentences::of_note as sentences_of_note;
pub use crate::memory::record::typed::passes_on;

use crate::base::text::collapsed;
use crate::memory::facts::facts;
use crate::memory::record::claims::{
    Claim, ClaimKind, disguised, each_key, each_run, key_of, names, quotations, stream, unveiled,
};
use crate::memory::record::dangers::piped;
use crate::memory::record::plain::{plain, words_of};
use crate::memory::record::typed::{TypedSentence, sentences_typed, typed_part};
use crate::memory::search::is_common;
use crate::store::entry::By;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;

/// Shorter keys are compared as whole words only: they stand in other words by chance.
const LOOSE: usize = 6;
/// Stands for hosts where there is none: other files, dependencies, reports.
const ELSEWHERE: &str = "files elsewhere";
/// So many hosts are named in a note.
const HOSTS: usize = 10;

/// What a note says.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoteText<'a> {
    pub title: &'a str,
    pub summary: &'a str,
    pub tags: &'a [String],
    pub body: &'a str,
}

impl<'a> NoteText<'a> {
    fn fields(&self) -> impl Iterator<Item = &'a str> {
        let tags = self.tags.iter().map(|tag| tag.split_once("__").map_or(tag.as_str(), |(_, name)| name));
        self.texts().into_iter().chain(tags)
    }

    /// The texts that are made of sentences.
    pub fn texts(&self) -> [&'a str; 3] {
        [self.title, self.summary, self.body]
    }

    /// The words of each of its sentences.
    fn sentences(&self) -> impl Iterator<Item = Vec<String>> + use<'a> {
        self.texts().into_iter().flat_map(worded)
    }
}

/// From whom a stretch of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// Typed, or pasted in a turn that is too long for that.
    Person,
    /// The person's, and not typed: a part of a long turn, an attached file, a turn of which it is not known who wrote it.
    Pasted,
    /// What it said or thought.
    Agent,
    /// What the agent gave a tool.
    ToolInput,
    /// What the agent wrote into files of the repository, which has the names in it from then on.
    Written,
    /// What the repository and its own programs show.
    ToolOutput,
    /// What a tool shows of the web, of dependencies, of files beyond the repository.
    Outside,
}

impl Speaker {
    pub fn by(self) -> By {
        match self {
            Speaker::Person | Speaker::Pasted => By::Person,
            Speaker::Agent | Speaker::ToolInput | Speaker::Written => By::Agent,
            Speaker::ToolOutput | Speaker::Outside => By::Tool,
        }
    }
}

/// By whom something was said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Given {
    person: bool,
    inside: bool,
    /// The agent wrote it into a file of the repository, or the repository shows it after the agent brought it from outside.
    written: bool,
    /// The agent: how much had come from outside when it said it first, in bytes of [`Record::outside`].
    agent: Option<u32>,
    /// The same, when it came from outside first.
    outside: Option<u32>,
}

impl Given {
    /// Was it given inside, or by the agent before it came from outside at `place`?
    fn is_known(self, place: u32) -> bool {
        self.person || self.inside || self.agent.is_some_and(|agent| agent <= place)
    }

    /// Has a tool shown it, and neither the person nor the agent said it?
    fn is_shown_only(self) -> bool {
        (self.inside || self.outside.is_some()) && !self.person && self.agent.is_none()
    }
}

/// What was said in a session, in its order.
///
/// Its size grows with the number of different words and with what came from outside; only turns that are shown are kept,
/// for quotes.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// By whom each name and each run of words was said, by its hash.
    given: HashMap<u64, Given>,
    /// The letters and digits of all that came from outside.
    outside: String,
    /// The hosts that were read, each with the number of the turn, if that is shown.
    hosts: Vec<(Option<usize>, String)>,
    typed: Vec<TypedSentence>,
    /// What a quote may be taken from, by the number of its turn.
    shown: BTreeMap<usize, Vec<(Speaker, String)>>,
    /// The files of the repository that tools have read or written, by their paths from its top.
    pub touched: BTreeSet<String>,
    /// What the agent gave the tool whose output comes next.
    input: HashSet<u64>,
    /// Nothing of the session is from outside, so no run of words can be repeated.
    pub is_inside: bool,
    hasher: RandomState,
}

impl Record {
    /// Of a session that has read nothing outside: less is remembered.
    pub fn inside() -> Record {
        Record { is_inside: true, ..Record::default() }
    }

    /// What was said next. `turn` is the number that the prompt gives it; `None`: it is not shown. Headers of turns, with
    /// their dates, are nobody's and do not belong in `text`.
    ///
    /// The parts of one turn are added one after the other. A person's turn is given whole; the parts of one that is too
    /// long to have been typed are [`Speaker::Pasted`].
    pub fn add(&mut self, turn: Option<usize>, speaker: Speaker, text: &str) {
        let seen = plain(text);
        self.index(speaker, &seen);
        if speaker == Speaker::Outside {
            stream(&seen, &mut self.outside);
            for text in unveiled(&seen) {
                let text = plain(&text).into_owned();
                self.index(speaker, &text);
                stream(&text, &mut self.outside);
            }
        }
        if speaker == Speaker::Person {
            self.typed.extend(sentences_typed(&typed_part(text), turn));
        }
        if let Some(turn) = turn {
            let pieces = self.shown.entry(turn).or_default();
            match pieces.last_mut() {
                Some((last, before)) if *last == speaker => before.extend([" ", &quotable(text)]),
                _ => pieces.push((speaker, quotable(text))),
            }
        }
    }

    /// What a tool showed that is from outside, and the hosts that it is from.
    pub fn read_outside(&mut self, turn: Option<usize>, text: &str, hosts: &[String]) {
        self.add(turn, Speaker::Outside, text);
        let unknown = hosts.is_empty().then(|| ELSEWHERE.to_owned());
        self.hosts.extend(hosts.iter().cloned().chain(unknown).map(|host| (turn, host)));
    }

    /// What was shown so far was of an earlier prompt: quotes are taken from what is added next.
    pub fn forget_shown(&mut self) {
        self.shown.clear();
        self.typed.iter_mut().for_each(|sentence| sentence.turn = None);
        self.hosts.iter_mut().for_each(|(turn, _)| *turn = None);
    }

    fn index(&mut self, speaker: Speaker, text: &str) {
        let Record { given, hasher, input, .. } = self;
        if speaker != Speaker::ToolOutput && speaker != Speaker::Outside {
            input.clear();
        }
        let at = u32::try_from(self.outside.len()).unwrap_or(u32::MAX);
        let mut note = |key: u64| {
            let known = given.entry(key).or_default();
            match speaker {
                Speaker::Person | Speaker::Pasted => known.person = true,
                Speaker::Agent | Speaker::ToolInput | Speaker::Written => {
                    known.agent.get_or_insert(at);
                    known.written |= speaker == Speaker::Written;
                    if speaker != Speaker::Agent {
                        input.insert(key);
                    }
                }
                // A tool that prints what it was given shows nothing new.
                Speaker::ToolOutput if known.outside.is_some() && input.contains(&key) => {}
                // It shows what the agent brought there from outside.
                Speaker::ToolOutput
                    if known.outside.is_some() && !known.inside && known.agent > known.outside =>
                {
                    known.written = true;
                }
                Speaker::ToolOutput => known.inside = true,
                Speaker::Outside => {
                    known.outside.get_or_insert(at);
                }
            }
        };
        each_key(text, |key| note(hasher.hash_one(key)));
        if !self.is_inside {
            each_run(text, hasher, |run, _| note(run));
        }
    }

    fn given(&self, key: &str) -> Given {
        self.given.get(&self.hasher.hash_one(key)).copied().unwrap_or_default()
    }

    /// Who said what stands in a note.
    ///
    /// `person`: each sentence of title, summary and body is one that the person typed, or stands in the old note, which is
    /// a person's. `tool`: it holds a fact that only a tool's output showed. A fact that stands in the old note is from
    /// whom that is.
    pub fn by(&self, new: &NoteText, old: Option<(&NoteText, By)>) -> By {
        let kept = old.iter().filter(|(_, by)| *by == By::Person).flat_map(|(old, _)| old.sentences());
        let kept: HashSet<Vec<String>> = kept.collect();
        let mut sentences = new.sentences().peekable();
        if sentences.peek().is_some()
            && sentences.all(|sentence| kept.contains(&sentence) || self.has_typed(&sentence))
        {
            return By::Person;
        }
        let before: HashSet<String> =
            old.iter().flat_map(|(old, _)| old.fields()).flat_map(fact_keys).collect();
        let of_key = |key: String| match old {
            Some((_, by)) if before.contains(&key) => by,
            _ if self.given(&key).is_shown_only() => By::Tool,
            _ => By::Agent,
        };
        new.texts().into_iter().flat_map(fact_keys).map(of_key).fold(By::Agent, By::max)
    }

    /// What a note repeats from outside, each once: names first. What the old note says may stay.
    pub fn foreign(&self, new: &NoteText, old: Option<&NoteText>) -> Vec<String> {
        let mut found: Vec<String> = new.fields().flat_map(disguised).collect();
        if self.outside.is_empty() {
            return found;
        }
        let old: Vec<_> = old.into_iter().flat_map(NoteText::fields).map(plain).collect();
        let known = keys_of(&old);
        let mut known_runs = HashSet::new();
        old.iter().for_each(|field| each_run(field, &self.hasher, |run, _| known_runs.extend([run])));
        let mut asked = HashSet::new();
        let claims = new.fields().flat_map(names).filter(|claim| {
            (claim.text.starts_with('-') || !is_common(&claim.text))
                && asked.insert(claim.keys.clone())
                && self.is_foreign(claim, &known)
        });
        found.extend(claims.map(|claim| claim.text));
        let is_repeated = |run: u64| {
            let given = self.given.get(&run).copied().unwrap_or_default();
            !known_runs.contains(&run) && given.outside.is_some_and(|place| !given.is_known(place))
        };
        found.extend(new.texts().iter().flat_map(|field| quotations(field, &self.hasher, is_repeated)));
        let mut seen = HashSet::new();
        found.retain(|text| seen.insert(text.clone()));
        found
    }

    /// A name is from outside if it, or a part of it, stands in what came from there, and nobody inside gave it. Of an
    /// address or a package somebody inside must have given it: pages have many ways to spell one.
    fn is_foreign(&self, claim: &Claim, known: &HashSet<String>) -> bool {
        let Some(whole) = claim.keys.first().filter(|key| !known.contains(*key)) else { return false };
        let whole = self.given(whole);
        let is_given = |key: &String| known.contains(key) || self.given(key).is_known(0);
        if claim.kind != ClaimKind::Name && !claim.keys.iter().any(is_given) {
            return true;
        }
        let find = |key: &str| memchr::memmem::find(self.outside.as_bytes(), key.as_bytes());
        let from_outside = |key: &String| {
            let given = self.given(key);
            let is_loose = key.len() >= LOOSE && !key.starts_with('-') && !claim.is_identifier();
            let backwards = || find(&key.chars().rev().collect::<String>());
            let place = if is_loose { find(key).or_else(backwards) } else { None };
            let place = place.map_or(given.outside, |place| u32::try_from(place).ok());
            let is_written = claim.kind == ClaimKind::Name && given.written;
            place.is_some_and(|place| !known.contains(key) && !is_written && !given.is_known(place))
        };
        !whole.person && !whole.inside && claim.keys.iter().any(from_outside)
    }

    /// What always waits, unless the person typed it: to run what the network sends, to switch checks off, to send data
    /// away, to hide something.
    pub fn dangers(&self, new: &NoteText, old: Option<&NoteText>) -> Vec<Danger> {
        let text = |note: &NoteText| note.texts().join("\n");
        let mut found = dangers(&text(new));
        // Split over the fields of the note.
        if !found.iter().any(|danger| danger.kind == DangerKind::Piped) {
            found.extend(piped(&new.texts().join(" ")));
        }
        if !found.is_empty() {
            let typed = self.typed.iter().map(|sentence| sentence.text.clone());
            let before: Vec<Danger> =
                old.map(text).into_iter().chain(typed).flat_map(|text| dangers(&text)).collect();
            found.retain(|danger| {
                !before.iter().any(|before| (before.kind, &before.mark) == (danger.kind, &danger.mark))
            });
        }
        found
    }

    /// The hosts that had been read before the last of these turns; before the end, if there is none.
    pub fn hosts_before(&self, cited: &[usize]) -> Vec<String> {
        let last = cited.iter().max();
        let is_before = |turn: &Option<usize>| turn.as_ref().zip(last).is_none_or(|(turn, last)| turn < last);
        let mut hosts: Vec<String> = Vec::new();
        for (_, host) in self.hosts.iter().filter(|(turn, _)| is_before(turn)) {
            if !hosts.contains(host) && hosts.len() < HOSTS {
                hosts.push(host.clone());
            }
        }
        hosts
    }

    /// Did the person type a rule?
    pub fn has_rules(&self) -> bool {
        self.typed.iter().any(|sentence| sentence.is_rule)
    }

    /// In whose words a quote stands, in the turn of that number as the prompt showed it: `| ` before lines left out,
    /// white space collapsed, case ignored. An empty quote stands nowhere.
    pub fn quote(&self, turn: usize, quote: &str) -> Option<Speaker> {
        let quote = quotable(quote);
        let pieces = self.shown.get(&turn).filter(|_| !quote.is_empty())?;
        pieces.iter().find(|(_, text)| text.contains(&quote)).map(|(speaker, _)| *speaker)
    }
}

/// The keys of the facts of a text. Numbers of one or two digits are none.
fn fact_keys(text: &str) -> Vec<String> {
    let keys = facts(text, |_| true).into_iter().filter(|fact| !fact.starts_with("[[")).map(key_of);
    keys.filter(|key| key.len() > 2 || !key.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// The keys of everything in some texts that has a name.
fn keys_of(texts: &[impl AsRef<str>]) -> HashSet<String> {
    let mut keys = HashSet::new();
    texts.iter().for_each(|text| each_key(text.as_ref(), |key| keys.extend([key.to_owned()])));
    keys
}

/// What a text has that may be followed or run, and that is in none of the others: addresses, packages, flags, settings.
pub fn orders_not_in(text: &NoteText, others: &str) -> Vec<String> {
    let known = keys_of(&[plain(others)]);
    let is_order = |claim: &Claim| {
        claim.kind != ClaimKind::Name || claim.text.starts_with('-') || claim.text.contains('=')
    };
    let new = unknown(text, &known).filter(is_order).map(|claim| claim.text);
    text.fields().flat_map(disguised).chain(new).collect()
}

/// Why a note that an agent captured or changed waits for a person: where its addresses are from is not known, and a page
/// may have given them. Empty if it has none that the old note has not, and would do nothing more that always waits.
pub fn unproven(note: &NoteText, old: Option<&NoteText>) -> Vec<String> {
    let before: Vec<_> = old.into_iter().flat_map(NoteText::fields).map(plain).collect();
    let known = keys_of(&before);
    let far = unknown(note, &known).filter(|claim| claim.kind == ClaimKind::Address);
    let addresses = note.fields().flat_map(disguised).chain(far.map(|claim| claim.text)).take(5);
    let by = if old.is_some() { "changed" } else { "captured" };
    let whys =
        addresses.map(|address| format!("An agent {by} it, and nothing shows where \"{address}\" is from."));
    let dangers = Record::default().dangers(note, old);
    whys.chain(dangers.iter().map(|danger| format!("It {}.", danger.does()))).collect()
}

/// The names of a note that have a part which is not known.
fn unknown(note: &NoteText, known: &HashSet<String>) -> impl Iterator<Item = Claim> {
    note.fields().flat_map(names).filter(|claim| !claim.keys.iter().all(|key| known.contains(key)))
}

/// The words of each sentence of a note, as they are compared.
pub fn worded(text: &str) -> Vec<Vec<String>> {
    let sentences = sentences_of_note(text).into_iter().map(|sentence| words_of(&sentence));
    sentences.filter(|words| !words.is_empty()).collect()
}

/// As quotes are compared: in one line, lower case, without the marks before the lines of a tool.
fn quotable(text: &str) -> String {
    let lines = text.lines().map(|line| line.strip_prefix('|').unwrap_or(line));
    collapsed(&lines.collect::<Vec<_>>().join(" ")).to_lowercase()
}

#[cfg(test)]
mod tests;
