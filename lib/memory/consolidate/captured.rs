//! Captured notes: a person's is filed in the person's words, an agent's reaches no further than its repository.

use crate::memory::consolidate::gather::is_persons;
use crate::memory::consolidate::land::Judge;
use crate::memory::consolidate::plan::{Change, Origin, PlannedNote};
use crate::memory::consolidate::reply::{Proposed, Reply};
use crate::memory::links::new_id;
use crate::memory::record::{NoteText, unproven};
use crate::memory::search::words;
use crate::store::entry::{By, Scope, Source, Status, add_missing, one_line};
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::proposal::{Draft, Op, Proposal};
use std::collections::{BTreeMap, BTreeSet};

/// A captured note, filed as it is; nothing for a session.
pub(super) fn as_it_is(entry: &QueueEntry, judge: &mut Judge) -> Vec<Change> {
    let Retrieval::Inline { title, body, tags, scope, .. } = &entry.retrieval else { return Vec::new() };
    let title = one_line(&judge.redactor.cleaned(title));
    let body = judge.redactor.cleaned(body);
    let created_at = entry.timestamp.as_millisecond();
    let origin = Origin::of(entry);
    let is_persons = is_persons(entry);
    let by = if is_persons { By::Person } else { By::Agent };
    // Outside of a repository a note is for everywhere.
    let is_for_all = *scope == Scope::Global || origin.repo.is_none();
    let text = NoteText { title: &title, summary: "", tags, body: &body };
    let unproven = if is_persons { Vec::new() } else { unproven(&text) };
    let session = Some(Source::from(&origin));
    if !unproven.is_empty() {
        let draft = Draft {
            title: title.clone(),
            summary: String::new(),
            tags: tags.clone(),
            scope: if is_for_all { Scope::Global } else { Scope::Repo },
            until: None,
            body,
            sources: vec![Source::from(&origin)],
        };
        let create = Proposal::new(Op::Create, &title, by, created_at);
        let create = Proposal { entry: Some(draft), reasons: unproven, session, ..create };
        return vec![Change::Propose(Box::new(create))];
    }
    let id = new_id(&title, created_at, &mut judge.ids);
    let widen = (!is_persons && is_for_all).then(|| {
        let widen = Proposal::new(Op::Widen, &title, by, created_at);
        let reasons = vec!["An agent captured it, and it is to hold everywhere.".to_owned()];
        Change::Propose(Box::new(Proposal { note: Some(id.clone()), reasons, session, ..widen }))
    });
    let note = PlannedNote {
        id,
        update: None,
        replaces: None,
        before: None,
        created_at,
        status: Status::Captured,
        title,
        summary: String::new(),
        tags: tags.clone(),
        scope: if is_persons && is_for_all { Scope::Global } else { Scope::Repo },
        until: None,
        by,
        outside: Vec::new(),
        body,
        sources: vec![origin],
    };
    [Change::Note(Box::new(note))].into_iter().chain(widen).collect()
}

/// A captured note that no entry of a reply brings, as it is, with those of the model's tags that are in use.
pub(super) fn filed_for(id: &str, entry: &QueueEntry, reply: &Reply, judge: &mut Judge) -> Vec<Change> {
    let mut changes = as_it_is(entry, judge);
    let of_it: Vec<&Proposed> = reply.entries.iter().filter(|entry| entry.sources == [id]).collect();
    if let Some(Change::Note(note)) = changes.first_mut()
        && !of_it.is_empty()
    {
        note.status = Status::Consolidated;
        add_missing(&mut note.tags, in_use(of_it.iter().flat_map(|entry| &entry.tags), judge));
    }
    changes
}

/// Those of the model's tags that are in use: others would be the model's words.
fn in_use<'a>(tags: impl Iterator<Item = &'a String>, judge: &Judge) -> Vec<String> {
    tags.filter(|tag| judge.tags.contains(*tag)).cloned().collect()
}

/// The queue ids of the notes that a person captured.
pub(super) fn own_notes(entries: &BTreeMap<String, QueueEntry>) -> impl Iterator<Item = &str> {
    let is_own =
        |entry: &QueueEntry| matches!(entry.retrieval, Retrieval::Inline { .. }) && is_persons(entry);
    entries.iter().filter(move |(_, entry)| is_own(entry)).map(|(id, _)| id.as_str())
}

/// The queue ids of the notes that an agent captured.
pub(super) fn agents_notes(entries: &BTreeMap<String, QueueEntry>) -> impl Iterator<Item = &str> {
    let is_agents =
        |entry: &QueueEntry| matches!(entry.retrieval, Retrieval::Inline { .. }) && !is_persons(entry);
    entries.iter().filter(move |(_, entry)| is_agents(entry)).map(|(id, _)| id.as_str())
}

/// Is it drawn from one note that a person captured, and nothing else?
pub(super) fn is_of_one_note(entry: &Proposed, entries: &BTreeMap<String, QueueEntry>) -> bool {
    match &entry.sources[..] {
        [one] => own_notes(entries).any(|id| id == one),
        _ => false,
    }
}

/// Has the model neither added a word to a person's note, nor left one out? Then title, summary and body are the person's.
pub(super) fn is_in_own_words(id: &str, reply: &Reply, entries: &BTreeMap<String, QueueEntry>) -> bool {
    let Some(Retrieval::Inline { title, body, tags, .. }) = entries.get(id).map(|entry| &entry.retrieval)
    else {
        return false;
    };
    let words_of = |texts: &[&str]| {
        let mut words = BTreeSet::new();
        for text in texts {
            words::each(text, |word| {
                words.insert(word.text.to_owned());
            });
        }
        words
    };
    let of_it = reply.entries.iter().filter(|entry| entry.sources == [id] && entry.update.is_none());
    let texts: Vec<&str> =
        of_it.flat_map(|entry| [entry.title.as_str(), &entry.summary, &entry.body]).collect();
    let (arranged, tags) = (words_of(&texts), tags.join(" "));
    arranged.is_subset(&words_of(&[title, body, &tags])) && words_of(&[title, body]).is_subset(&arranged)
}

/// A person's note in the person's words, filed as the model arranged it. It reaches as far as the person said.
pub(super) fn own_words(
    entry: &Proposed,
    source: &str,
    entries: &BTreeMap<String, QueueEntry>,
    judge: &mut Judge,
) -> Option<Change> {
    let captured = entries.get(source)?;
    let Retrieval::Inline { tags, scope, .. } = &captured.retrieval else { return None };
    let clean = |text: &str| judge.redactor.cleaned(text);
    let title = one_line(&clean(&entry.title));
    let (summary, body) = (one_line(&clean(&entry.summary)), clean(&entry.body));
    let created_at = captured.timestamp.as_millisecond();
    let mut tags = tags.clone();
    add_missing(&mut tags, in_use(entry.tags.iter(), judge));
    let origin = Origin::of(captured);
    Some(Change::Note(Box::new(PlannedNote {
        id: new_id(&title, created_at, &mut judge.ids),
        update: None,
        replaces: None,
        before: None,
        created_at,
        status: Status::Consolidated,
        title,
        summary,
        tags,
        scope: if origin.repo.is_some() { *scope } else { Scope::Global },
        until: None,
        by: By::Person,
        outside: Vec::new(),
        body,
        sources: vec![origin],
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::consolidate::reply::{self, Asked};
    use serde_json::json;

    fn arranged(entries: &[(&str, &str, &str)]) -> bool {
        let note = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "manual",
            "retrieval": {"method": "inline", "title": "Guards are pure", "body": "Put I/O into actors.",
                "tags": ["topic__xstate"], "scope": "global", "threadId": null},
            "context": {"cwd": "/w", "repo": null}});
        let note = QueueEntry::parse(note.to_string().as_bytes()).unwrap();
        let entries: Vec<_> = entries
            .iter()
            .map(|(title, summary, body)| {
                json!({"title": title, "summary": summary, "body": body, "sources": ["q1"]})
            })
            .collect();
        let asked = Asked { batch: "b", sources: BTreeSet::from(["q1"]) };
        let reply = reply::parse(&json!({"batch": "b", "entries": entries}).to_string(), &asked).unwrap();
        is_in_own_words("q1", &reply, &BTreeMap::from([("q1".to_owned(), note)]))
    }

    #[test]
    fn a_captured_note_may_be_arranged_and_neither_extended_nor_cut() {
        let (title, body) = ("Guards are pure", "Put I/O into actors.");
        assert!(arranged(&[(title, body, body)]));
        assert!(arranged(&[(title, title, "Put I/O into xstate actors.")]));
        assert!(arranged(&[(title, title, title), (body, body, body)]), "in two notes");
        assert!(!arranged(&[(title, "Guards must be pure.", body)]));
        assert!(!arranged(&[(title, title, title)]), "the body is left out");
    }
}
