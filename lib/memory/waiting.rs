//! Changes that wait for a person, while they wait: the same discovery makes one, a newer one takes its place, and the
//! notes that say something about the same are named.

use crate::base::error::Result;
use crate::memory::facts::facts;
use crate::memory::links::{self, EndedChanges};
use crate::memory::lists::TURNS;
use crate::memory::search::{language, words};
use crate::store::change::Change;
use crate::store::entry::{EntryId, Meta, Scope, repos};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::proposal::{Draft, Op, Proposal};
use std::cell::LazyCell;
use std::collections::BTreeSet;

/// Of so many words in a hundred two texts are the same discovery, if their facts are.
const SAME_PERCENT: usize = 80;
/// So many notes are named beside a proposal.
const BESIDE: usize = 20;

/// Lets a change wait for a person, and returns what waits: where the same change waits already, that one, with the
/// evidence of both. The same again, as after a crash, changes nothing.
///
/// # Errors
/// The store cannot be read or written.
pub fn propose<P: Persistence>(notes: &P, proposal: Proposal) -> Result<Proposal> {
    let change = Change::of(notes)?;
    let proposal = settle(&change, proposal)?;
    change.write().map(|()| proposal)
}

/// The same, as a part of a change.
pub fn settle<P: Persistence>(change: &Change<P>, proposal: Proposal) -> Result<Proposal> {
    let (waiting, _) = change.notes.proposals()?;
    put(change, settled(proposal, &waiting), &waiting)
}

/// The same for a proposal that [`settled`] was given: it takes the place of the one with its id.
pub fn keep<P: Persistence>(change: &Change<P>, proposal: Proposal) -> Result<Proposal> {
    let (waiting, _) = change.notes.proposals()?;
    let kept = match waiting.iter().find(|there| there.id == proposal.id) {
        Some(there) if (there.op, &there.note) == (proposal.op, &proposal.note) => {
            there.joined(proposal, true)
        }
        Some(_) => proposal.with_own_id(&waiting),
        None => proposal,
    };
    put(change, kept, &waiting)
}

fn put<P: Persistence>(change: &Change<P>, mut proposal: Proposal, waiting: &[Proposal]) -> Result<Proposal> {
    if let Some(draft) = &proposal.entry {
        let beside = beside(&change.notes, &[(draft.clone(), proposal.note.clone())], false)?;
        proposal.beside = beside.into_iter().flatten().map(|(id, _)| id).collect();
    }
    if !waiting.contains(&proposal) {
        change.put_proposal(&proposal)?;
    }
    Ok(proposal)
}

/// What is to be kept of a proposal, where `waiting` are there: the one of them that is the same discovery, with the
/// evidence and the reasons of both, and with the newer text if that says something else; or the proposal, with an id of
/// its own.
pub fn settled(proposal: Proposal, waiting: &[Proposal]) -> Proposal {
    let Some(there) = waiting.iter().rev().find(|there| is_same_discovery(there, &proposal)) else {
        return proposal.with_own_id(waiting);
    };
    let says_more = there.entry.as_ref().zip(proposal.entry.as_ref()).is_some_and(|(old, new)| {
        is_marked_otherwise(old, new, proposal.op) || !SaidText::of(new).says_no_more_than(&SaidText::of(old))
    });
    there.joined(proposal, says_more)
}

/// Are they about the same? Two texts for one note are; two new notes, if they say nearly the same, numbers aside.
fn is_same_discovery(there: &Proposal, new: &Proposal) -> bool {
    if there.is_from_elsewhere() != new.is_from_elsewhere() {
        return false;
    }
    if there.is_the_same_as(new) {
        return true;
    }
    if (there.op, &there.note) != (new.op, &new.note) {
        return false;
    }
    match (new.op, &there.entry, &new.entry) {
        (Op::Update, Some(_), Some(_)) => true,
        (Op::Create, Some(old), Some(new)) => {
            old.scope == new.scope
                && is_in_one_place(&repos(&old.sources), &repos(&new.sources))
                && SaidText::of(old).is_about_the_same_as(&SaidText::of(new))
        }
        _ => false,
    }
}

/// Do they differ in what is not their text? Two sessions choose other titles and tags for the same new note.
fn is_marked_otherwise(old: &Draft, new: &Draft, op: Op) -> bool {
    let has_other_head = old.title != new.title || new.tags.iter().any(|tag| !old.tags.contains(tag));
    (old.until, old.scope) != (new.until, new.scope) || op == Op::Update && has_other_head
}

fn is_in_one_place(one: &BTreeSet<&str>, other: &BTreeSet<&str>) -> bool {
    (one.is_empty() && other.is_empty()) || !one.is_disjoint(other)
}

/// What a text says, for comparison.
struct SaidText {
    /// The words of the title in order, numbers left out.
    title: Vec<String>,
    /// The stems of the title that say something.
    title_stems: BTreeSet<String>,
    /// The stems of all of it that say something.
    stems: BTreeSet<String>,
    /// The words that turn what is said.
    turns: BTreeSet<String>,
    facts: BTreeSet<String>,
}

impl SaidText {
    fn of(Draft { title, summary, body, .. }: &Draft) -> SaidText {
        let all = format!("{title}\n{summary}\n{body}");
        let words = words_of(&all);
        let is_turn = |word: &str| TURNS.iter().any(|list| list.has(word));
        SaidText {
            title: words_of(title).into_iter().filter(|word| !has_digit(word)).collect(),
            title_stems: stems(&words_of(title)),
            stems: stems(&words),
            facts: facts(&all, |_| true).into_iter().map(str::to_lowercase).collect(),
            turns: words.iter().filter(|word| is_turn(word)).cloned().collect(),
        }
    }

    /// The same title; or the same facts in nearly the same words; or the same words with other numbers.
    fn is_about_the_same_as(&self, other: &SaidText) -> bool {
        let is_same_title = !self.title.is_empty() && self.title == other.title;
        let is_near = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            !other.is_empty() && one.intersection(other).count() * 100 >= other.len() * SAME_PERCENT
        };
        let plain = |stems: &BTreeSet<String>| -> BTreeSet<String> {
            stems.iter().filter(|stem| !has_digit(stem)).cloned().collect()
        };
        if self.facts == other.facts {
            return is_same_title || is_near(&self.stems, &other.stems);
        }
        is_same_title && is_near(&plain(&self.stems), &plain(&other.stems))
    }

    fn says_no_more_than(&self, old: &SaidText) -> bool {
        let shared = self.stems.intersection(&old.stems).count() * 100;
        self.facts == old.facts
            && self.turns == old.turns
            && shared >= self.stems.len().max(old.stems.len()) * SAME_PERCENT
    }

    /// Do they share a fact that tells one thing from another, and a word of their titles?
    fn shares_facts_with(&self, other: &SaidText) -> bool {
        let mut shared = self.facts.intersection(&other.facts);
        !self.title_stems.is_disjoint(&other.title_stems) && shared.any(|fact| is_telling(fact))
    }

    /// Do the titles share most of their words?
    fn shares_title_with(&self, other: &SaidText) -> bool {
        let shared = self.title_stems.intersection(&other.title_stems).count();
        shared >= 2 && shared * 2 >= self.title_stems.len().min(other.title_stems.len())
    }
}

/// A short number stands in many notes by chance.
fn is_telling(fact: &str) -> bool {
    let digits = fact.bytes().filter(u8::is_ascii_digit).count();
    digits >= 3 || fact.chars().any(char::is_alphabetic)
}

fn has_digit(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit())
}

fn words_of(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    words::each(text, |word| all.push(word.text.to_lowercase()));
    all
}

fn stems(words: &[String]) -> BTreeSet<String> {
    let content = words.iter().filter(|word| !language::is_stop_word(word));
    content.map(|word| language::stem(word).into_owned()).collect()
}

/// For each text the notes in use, by id and title, that say something about the same; with `by_title` also those whose
/// title has most of its words. The note that it would change is none of them.
pub fn beside<P: Persistence>(
    notes: &P,
    drafts: &[(Draft, Option<EntryId>)],
    by_title: bool,
) -> Result<Vec<Vec<(EntryId, String)>>> {
    if drafts.is_empty() {
        return Ok(Vec::new());
    }
    let said: Vec<SaidText> = drafts.iter().map(|(draft, _)| SaidText::of(draft)).collect();
    let scan = notes.scan(&[Place::Topics], |note| {
        let meta = note.entry.meta();
        let there = SaidText::of(&Draft::of(&note.entry));
        let is_beside = |((draft, own), said): (&(Draft, Option<EntryId>), &SaidText)| {
            own.as_ref() != Some(&meta.id)
                && is_shown_with(meta, draft)
                && (said.shares_facts_with(&there) || by_title && said.shares_title_with(&there))
        };
        let flags: Vec<bool> = drafts.iter().zip(&said).map(is_beside).collect();
        flags.contains(&true).then(|| (meta.id.clone(), meta.title.clone(), flags))
    })?;
    let mut all = vec![Vec::new(); drafts.len()];
    let mut found: Vec<_> = scan.found.into_iter().flatten().collect();
    found.sort();
    for (id, title, flags) in found {
        let beside = all.iter_mut().zip(flags).filter(|(beside, flag)| *flag && beside.len() < BESIDE);
        beside.for_each(|(beside, _)| beside.push((id.clone(), title.clone())));
    }
    Ok(all)
}

/// Would a reader find both in one place?
fn is_shown_with(meta: &Meta, draft: &Draft) -> bool {
    let is_global = meta.scope == Scope::Global || draft.scope == Scope::Global;
    is_global || is_in_one_place(&repos(&meta.sources), &repos(&draft.sources))
}

/// Notes have landed: what waits beside them is told. The second time, nothing changes.
pub fn landed<P: Persistence>(notes: &P, landed: &[Note]) -> Result<()> {
    let change = Change::of(notes)?;
    let said = |note: &Note| SaidText::of(&Draft::of(&note.entry));
    let landed = landed.iter().filter(|note| note.place == Place::Topics);
    let landed: Vec<_> = landed.map(|note| (note.entry.meta(), LazyCell::new(|| said(note)))).collect();
    for mut proposal in change.notes.proposals()?.0 {
        let Some(draft) = &proposal.entry else { continue };
        let is_beside = |(meta, there): &&(&Meta, LazyCell<_, _>)| {
            proposal.concerns().all(|id| *id != meta.id)
                && is_shown_with(meta, draft)
                && SaidText::of(draft).shares_facts_with(there)
        };
        let room = BESIDE.saturating_sub(proposal.beside.len());
        let new: Vec<_> =
            landed.iter().filter(is_beside).take(room).map(|(meta, _)| meta.id.clone()).collect();
        if !new.is_empty() {
            proposal.beside.extend(new);
            change.put_proposal(&proposal)?;
        }
    }
    change.write()
}

/// Proposals wait no longer. Links to them lead to the notes that were made of them; without one they go.
pub fn end<P: Persistence>(change: &Change<P>, ended: &EndedChanges) -> Result<()> {
    if ended.is_empty() {
        return Ok(());
    }
    ended.keys().for_each(|from| change.withdraw(from));
    let scan = change.notes.scan(&[Place::Topics, Place::Archive], |note| {
        let body = links::resolved(&String::from_utf8_lossy(note.entry.body()), ended)?;
        Some((note, body))
    })?;
    let mut bases = Vec::new();
    for (note, body) in scan.found.into_iter().flatten() {
        let mut entry = note.entry.clone();
        let is_edited = entry.is_edited();
        entry.set_body(body.as_bytes());
        // What a person has edited by hand stays theirs; this edit is ours.
        if !is_edited {
            entry.seal()?;
        }
        bases.push((note.entry.base(), entry.base()));
        change.replace(&note, entry)?;
    }
    for mut proposal in change.notes.proposals()?.0 {
        let body = proposal.entry.as_ref().and_then(|draft| links::resolved(&draft.body, ended));
        let base = bases.iter().find(|(old, _)| proposal.base.as_ref() == Some(old));
        if body.is_none() && base.is_none() {
            continue;
        }
        // The note that it would change says the same as before.
        if let Some((_, new)) = base {
            proposal.base = Some(new.clone());
        }
        if let (Some(body), Some(draft)) = (body, &mut proposal.entry) {
            draft.body = body;
        }
        change.put_proposal(&proposal)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::entry::By;

    fn create(title: &str, body: &str) -> Proposal {
        let draft = Draft {
            title: title.to_owned(),
            summary: String::new(),
            paths: Vec::new(),
            tags: Vec::new(),
            scope: Scope::Repo,
            until: None,
            body: body.to_owned(),
            sources: Vec::new(),
        };
        Proposal { entry: Some(draft), ..Proposal::new(Op::Create, title, By::Agent, 7) }
    }

    #[test]
    fn the_same_discovery_is_one_and_another_is_not() {
        let first = || create("Postgres listens on 5544", "The dev database listens on port 5544.");
        let text = |new: &Proposal| {
            let kept = settled(new.clone(), &[first()]);
            (kept.id == first().id).then(|| kept.entry.unwrap().body)
        };
        let old = first().entry.unwrap().body;
        let same = create("The dev database: 5544", "The dev database Postgres listens on port 5544.");
        assert_eq!(text(&same), Some(old));
        let newer = create("Postgres listens on 5545", "The dev database listens on port 5545.");
        assert_eq!(text(&newer), newer.entry.as_ref().map(|draft| draft.body.clone()));
        let turned = create("Postgres listens on 5544", "The dev database never listens on port 5544.");
        assert_eq!(text(&turned), turned.entry.as_ref().map(|draft| draft.body.clone()));
        for (title, body) in [
            ("Redis listens on 6379", "The dev cache listens on port 6379."),
            (
                "Postgres listens on 5544",
                "Backups of Postgres run on host 5544 at night, and are kept for 30 days.",
            ),
        ] {
            assert_eq!(text(&Proposal { created_at: 9, ..create(title, body) }), None, "{title}: {body}");
        }
    }

    #[test]
    fn the_reasons_outlive_a_newer_text() {
        let reasons = |why: &str| vec![why.to_owned()];
        let of = |body: &str, by: By, why: &str| {
            let about = EntryId::parse("a1B2c3");
            let proposal = Proposal { op: Op::Update, note: about, by, ..create("Port", body) };
            Proposal { reasons: reasons(why), base: Some(body.to_owned()), ..proposal }
        };
        let kept = settled(of("It is 4330.", By::Agent, "b"), &[of("It is 4320.", By::Tool, "a")]);
        assert_eq!((kept.reasons.join(""), kept.by), ("ab".to_owned(), By::Tool));
        assert_eq!((kept.base.as_deref(), &*kept.entry.unwrap().body), (Some("It is 4330."), "It is 4330."));
    }
}
