//! The notes of a place that match a query, which of them clearly answer it, and how they are shown. Most prompts are answered by
//! none, and a note that does not fit costs more than it gives: it takes room in the session for good.

use crate::base::error::Result;
use crate::memory::code::{NoteStates, states};
use crate::memory::search::{Findings, Found, Index, Query};
use crate::memory::section::note::{self, Marks};
use crate::memory::service::{NoteService, belongs_to};
use crate::store::entry::{EntryId, Meta, Scope};
use crate::store::index::LEAST;
use crate::store::persistence::{Broken, Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::proposal::Proposal;
use jiff::civil::Date;

/// After so many others, so many of a person's own come next, if their score is at least this part of that of the next.
const OTHERS: usize = 2;
const OWN: usize = 2;
const NEAR: f64 = 0.5;

/// The notes that answer some words.
#[derive(Debug)]
pub struct Recalled {
    /// Those for which there was room, to be read by a model.
    pub text: String,
    /// The same, the best first.
    pub found: Vec<Found>,
    /// The changes that wait for a person, of whatever note.
    pub proposals: Vec<Proposal>,
    /// The files that were left out.
    pub broken: Vec<Broken>,
}

impl Recalled {
    /// Adds what another store has, after its own.
    pub fn add(&mut self, other: Recalled) {
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &other.text;
        self.found.extend(other.found);
    }
}

impl<P: Persistence + Sync> NoteService<P> {
    /// The notes that answer some words in a place: those of its repository and those that hold everywhere, `most` at most, in
    /// at most so many `bytes` of text. One that is too long is shortened.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn recall(&self, words: &str, repo: Option<&str>, most: usize, bytes: usize) -> Result<Recalled> {
        let Findings { mut found, broken, .. } =
            matching(&self.index, &Query::parse(words), repo, self.today, most)?;
        let metas = found.iter().map(|found| &found.view.meta);
        let states = states(self.notes().root(), &self.here(), metas);
        let mut shown = Shown::new(self.notes(), bytes, states)?;
        found
            .retain(|found| found.view.note().is_some_and(|note| shown.add("", note, found.line.as_deref())));
        Ok(Recalled { text: shown.text, found, proposals: shown.proposals, broken })
    }
}

/// It holds in this place, and today.
pub(super) fn is_here(meta: &Meta, repo: Option<&str>, today: Date) -> bool {
    !meta.is_expired(today)
        && (meta.scope == Scope::Global || repo.is_some_and(|repo| belongs_to(meta, repo)))
}

/// The notes of this place that match, the best first: those of the repository and those that hold everywhere. None that
/// no longer holds.
pub(super) fn matching<P: Persistence + Sync>(
    index: &Index<P>,
    query: &Query,
    repo: Option<&str>,
    today: Date,
    most: usize,
) -> Result<Findings> {
    let is_here = |meta: &Meta| is_here(meta, repo, today);
    let mut findings = index.find(Place::Topics, query, Some(&is_here), most)?;
    let Findings { found, own, .. } = &mut findings;
    found.append(own);
    // However many notes a session leaves with the same words.
    for _ in 0..OWN {
        let third = (0..found.len()).filter(|at| !found[*at].is_own()).nth(OTHERS);
        let Some(at) = third.filter(|at| *at < OTHERS + OWN) else { break };
        let is_near = |next: &usize| found[*next].is_own() && found[*next].score >= NEAR * found[at].score;
        let Some(next) = (at..found.len()).find(is_near) else { break };
        found[at..=next].rotate_right(1);
    }
    found.truncate(most);
    Ok(findings)
}

/// Notes as text, as long as there is room. One that is too long is shortened to its summary and the line that matches.
pub(super) struct Shown {
    room: usize,
    proposals: Vec<Proposal>,
    /// How the notes stand to where they are shown.
    states: NoteStates,
    pub(super) text: String,
    /// Each note with the fingerprint of its text.
    pub(super) told: Vec<(EntryId, String)>,
}

impl Shown {
    /// Room for so many bytes.
    pub(super) fn new(notes: &impl Persistence, room: usize, states: NoteStates) -> Result<Shown> {
        let (proposals, _) = notes.proposals()?;
        Ok(Shown { room, proposals, states, text: String::new(), told: Vec::new() })
    }

    /// Adds a note, and a sentence of ours before it. `false` if there was no room for it.
    pub(super) fn add(&mut self, sentence: &str, note: &Note, line: Option<&str>) -> bool {
        let meta = note.entry.meta();
        let (id, state) = (&meta.id, self.states.get(&meta.id).copied().unwrap_or_default());
        // What was learned on another branch is not given whole.
        let is_brief = state.is_elsewhere && !meta.is_own(|| note.entry.is_edited());
        let waits = self.proposals.iter().any(|there| there.note.as_ref() == Some(id));
        let left = self.room.saturating_sub(self.text.len() + sentence.len() + 1);
        let with = Marks { waits, state };
        let whole = Some(note).filter(|note| note.entry.body().len() <= left && !is_brief);
        let block = whole.map(|note| note::block(note, with)).filter(|block| block.len() <= left);
        let block = block.unwrap_or_else(|| note::excerpt(note, with, line.filter(|_| !is_brief)));
        let is_said = self.say(&format!("{sentence}{block}"));
        if is_said {
            self.told.push((id.clone(), note.entry.told()));
        }
        is_said
    }

    /// A text of ours. `false` if there was no room for it.
    pub(super) fn say(&mut self, text: &str) -> bool {
        if self.text.len() + text.len() + 1 > self.room {
            return false;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
        true
    }
}

/// Are there so many notes that a prompt has no time to read all files? Then they are known from the cache.
pub fn needs_cache(root: &Root) -> bool {
    fs_err::read_dir(root.topics()).is_ok_and(|files| files.take(LEAST).count() == LEAST)
}

/// The least that a note must have of the prompt, in words that no other note has; in its best lines; and of all that the prompt
/// says: in a pasted log, some words match by chance.
const ALL: f64 = 1.6;
const LINE: f64 = 0.8;
const SHARE: f64 = 0.16;
/// A note after the best one must match at least this part of what the best one matches.
const NEXT: f64 = 0.7;
/// A text of so many words mentions much that it is not about: its title, tags or summary must have a rare word of the prompt.
const LONG: u32 = 600;
const LONG_SUBJECT: f64 = 1.0;

/// Those of the notes that clearly answer, of all that were found, the best first. One that has a name of the prompt does,
/// whatever else it says.
///
/// The numbers were chosen with all of `tests/recall`. So the tests there keep them from getting worse, and say nothing about other
/// prompts.
pub(super) fn clear(found: &[Found]) -> impl Iterator<Item = &Found> {
    let mut best: f64 = 0.0;
    found.iter().filter(move |found| {
        let strength = &found.strength;
        let is_enough = strength.all >= ALL && strength.line >= LINE && strength.share >= SHARE;
        let is_about = strength.words < LONG || strength.subject >= LONG_SUBJECT;
        let is_clear = found.is_named || is_enough && is_about && strength.all >= NEXT * best;
        if is_clear {
            best = best.max(strength.all);
        }
        is_clear
    })
}
