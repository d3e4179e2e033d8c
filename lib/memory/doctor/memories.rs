//! The memories that programs keep by themselves, against the notes that were corrected: the old text must not live on there.

use crate::base::reach;
use crate::harness::document::CAP;
use crate::harness::spec::BuiltInMemory;
use crate::harness::{HARNESSES, built_in};
use crate::memory::capture::memories::context_of;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::doctor::notes::{CheckedNotes, NoteFacts};
use crate::memory::record::worded;
use crate::memory::remembered::{LEAST_WORDS, without_link};
use crate::memory::search::language::is_stop_word;
use crate::memory::service::belongs_to;
use crate::store::entry::{Meta, Scope};
use crate::store::persistence::{Note, Persistence};
use crate::store::topics::{Topics, read};
use std::cell::LazyCell;
use std::collections::HashMap;
use std::path::PathBuf;

/// A sentence of a file.
struct RememberedSentence {
    memory: &'static BuiltInMemory,
    file: PathBuf,
    line: usize,
    words: Vec<String>,
}

/// By what they are about: their words, with a mark in the place of each number.
type Sentences = HashMap<Vec<String>, Vec<RememberedSentence>>;

pub(super) fn check(cx: &CheckContext, checked: &CheckedNotes, to: &mut Diagnosis) {
    let remembered = LazyCell::new(|| sentences(cx));
    let corrected = checked.notes.iter().filter(|note| note.is_corrected() && !remembered.is_empty());
    corrected.for_each(|note| contradictions(note, &remembered, cx, to));
}

fn sentences(cx: &CheckContext) -> Sentences {
    let mut all = Sentences::new();
    for memory in HARNESSES.iter().filter_map(|spec| spec.memory.as_ref()) {
        for file in built_in::files(memory, cx.env) {
            let Ok(bytes) = reach::read(&file, CAP) else { continue };
            for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
                for words in worded(without_link(line)).into_iter().filter(|words| words.len() >= LEAST_WORDS)
                {
                    let (file, line) = (file.clone(), index + 1);
                    let sentence = RememberedSentence { memory, file, line, words };
                    all.entry(about(&sentence.words)).or_default().push(sentence);
                }
            }
        }
    }
    all
}

fn about(words: &[String]) -> Vec<String> {
    let telling = words.iter().filter(|word| !is_stop_word(word));
    telling.map(|word| if has_number(word) { "#".to_owned() } else { word.clone() }).collect()
}

fn has_number(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

fn contradictions(facts: &NoteFacts, remembered: &Sentences, cx: &CheckContext, to: &mut Diagnosis) {
    let Ok(note) = read(facts.place, &facts.path) else { return };
    // What the note said before, and what stands there now.
    let (before, now) = match &facts.meta.superseded_by {
        Some(heir) => match Topics::at(cx.root).find_own(heir) {
            Ok(heir) => (said(&note), heir),
            Err(_) => return,
        },
        None => (Vec::new(), note),
    };
    let (meta, now) = (now.entry.meta().clone(), said(&now));
    for sentence in before.iter().chain(&now) {
        for found in remembered.get(&about(sentence)).into_iter().flatten() {
            let is_old = before.contains(&found.words) || found.words.iter().any(|word| has_number(word));
            if is_old && !now.contains(&found.words) && is_about(&meta, found, cx) {
                let RememberedSentence { file, line, words, .. } = found;
                let (id, title) = (&meta.id, &meta.title);
                let what = format!(
                    "line {line} says \"{}\", which the note {id} ({title}) corrects",
                    words.join(" ")
                );
                let mend = format!("open {} and correct line {line}", file.display());
                to.warning(Check::Memory, file, what, mend);
            }
        }
    }
}

/// The sentences of a note.
fn said(note: &Note) -> Vec<Vec<String>> {
    let body = String::from_utf8_lossy(note.entry.body());
    let meta = note.entry.meta();
    [meta.title.as_str(), meta.summary.as_str(), &*body].into_iter().flat_map(worded).collect()
}

fn is_about(meta: &Meta, found: &RememberedSentence, cx: &CheckContext) -> bool {
    let repo = || context_of(found.memory, &found.file, cx.env).repo;
    meta.scope == Scope::Global || repo().is_some_and(|repo| belongs_to(meta, &repo))
}
