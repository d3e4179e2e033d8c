//! Captured notes: a person's is filed in the person's words, an agent's reaches no further than its repository.

use crate::base::text::visible;
use crate::memory::consolidate::gather::is_persons;
use crate::memory::consolidate::land::{Judge, text_of};
use crate::memory::consolidate::plan::{PlannedChange, PlannedNote, source_of};
use crate::memory::consolidate::reply::{ConsolidateReply, Proposed};
use crate::memory::links::new_id;
use crate::memory::record::unproven;
use crate::memory::search::words;
use crate::store::entry::{By, Scope, Status, add_missing, one_line};
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::proposal::{Draft, Op, Proposal};
use std::borrow::Cow;
use std::collections::BTreeSet;

impl Judge<'_> {
    /// A captured note, filed as it is; nothing for a session.
    pub(super) fn as_it_is(&mut self, entry: &QueueEntry) -> Vec<PlannedChange> {
        let Retrieval::Inline { title, body, tags, scope, .. } = &entry.retrieval else { return Vec::new() };
        let created_at = entry.timestamp.as_millisecond();
        let source = source_of(entry, self.redactor);
        let is_persons = is_persons(entry);
        let by = if is_persons { By::Person } else { By::Agent };
        // A person's text is filed as it was typed.
        let clean =
            |text| self.redactor.cleaned(&if is_persons { Cow::Borrowed(text) } else { visible(text) });
        // Outside of a repository a note is for everywhere.
        let is_for_all = *scope == Scope::Global || source.repo.is_none();
        let title = one_line(&clean(title));
        let mut draft = Draft {
            title: title.clone(),
            summary: String::new(),
            tags: tags.clone(),
            paths: Vec::new(),
            scope: if is_for_all { Scope::Global } else { Scope::Repo },
            until: None,
            body: clean(body),
            sources: vec![source.clone()],
        };
        let waits = |op, note, entry, reasons| {
            let session = Some(source.clone());
            let proposal = Proposal::new(op, &title, by, created_at);
            PlannedChange::Propose(Box::new(Proposal { note, entry, reasons, session, ..proposal }))
        };
        let reasons = if is_persons { Vec::new() } else { unproven(&text_of(&draft), None) };
        if !reasons.is_empty() {
            return vec![waits(Op::Create, None, Some(draft), reasons)];
        }
        let id = new_id(&title, created_at, &mut self.known.ids);
        let widen = (!is_persons && is_for_all).then(|| {
            let why = "An agent captured it, and it is to hold everywhere.".to_owned();
            waits(Op::Widen, Some(id.clone()), None, vec![why])
        });
        if !is_persons {
            draft.scope = Scope::Repo;
        }
        let note = PlannedNote { status: Status::Captured, ..PlannedNote::new(id, draft, by, created_at) };
        [PlannedChange::Note(Box::new(note))].into_iter().chain(widen).collect()
    }

    /// A captured note that no entry of a reply brings, as it is, with those of the model's tags that are in use.
    pub(super) fn filed_for(&mut self, id: &str, reply: &ConsolidateReply) -> Vec<PlannedChange> {
        let Some(entry) = self.known.entries.get(id).cloned() else { return Vec::new() };
        let mut changes = self.as_it_is(&entry);
        let of_it: Vec<&Proposed> = reply.entries.iter().filter(|entry| entry.sources == [id]).collect();
        if let Some(PlannedChange::Note(note)) = changes.first_mut()
            && !of_it.is_empty()
        {
            note.status = Status::Consolidated;
            add_missing(&mut note.draft.tags, self.in_use(of_it.iter().flat_map(|entry| &entry.text.tags)));
        }
        changes
    }

    /// A person's note in the person's words, filed as the model arranged it. It reaches as far as the person said.
    pub(super) fn own_words(&mut self, entry: &Proposed, captured: &QueueEntry) -> Option<PlannedChange> {
        let Retrieval::Inline { tags, scope, .. } = &captured.retrieval else { return None };
        let created_at = captured.timestamp.as_millisecond();
        let mut text = entry.text.cleaned(|text| self.redactor.cleaned(text));
        text.tags.clone_from(tags);
        add_missing(&mut text.tags, self.in_use(entry.text.tags.iter()));
        let scope = if captured.context.repo.is_some() { *scope } else { Scope::Global };
        let id = new_id(&text.title, created_at, &mut self.known.ids);
        let draft = self.draft(text, scope, None, entry);
        Some(PlannedChange::Note(Box::new(PlannedNote::new(id, draft, By::Person, created_at))))
    }

    /// Those of the model's tags that are in use: others would be the model's words.
    fn in_use<'t>(&self, tags: impl Iterator<Item = &'t String>) -> Vec<String> {
        tags.filter(|tag| self.known.tags.contains(*tag)).cloned().collect()
    }
}

/// Has the model neither added a word to a person's note, nor left one out? Then title, summary and body are the person's.
pub(super) fn is_in_own_words(id: &str, reply: &ConsolidateReply, captured: &QueueEntry) -> bool {
    let Retrieval::Inline { title, body, tags, .. } = &captured.retrieval else { return false };
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
    let texts: Vec<&str> = of_it.flat_map(|entry| entry.text.note().texts()).collect();
    let (arranged, tags) = (words_of(&texts), tags.join(" "));
    arranged.is_subset(&words_of(&[title, body, &tags])) && words_of(&[title, body]).is_subset(&arranged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::consolidate::reply;
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
        let reply = json!({"batch": "b", "entries": entries}).to_string();
        is_in_own_words("q1", &reply::parse(&reply, "b", &BTreeSet::from(["q1"])).unwrap(), &note)
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
