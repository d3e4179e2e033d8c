//! A reply, held against what was asked: what to write, and what becomes of each queue entry.

use crate::base::text::one_line;
use crate::memory::authorship::{NoteText, Record};
use crate::memory::consolidate::decide::Judge;
use crate::memory::consolidate::gather::is_persons;
use crate::memory::consolidate::plan::{Change, KnownNote, Origin, Plan, PlannedNote};
use crate::memory::consolidate::reply::{self, Asked, Proposed, Reply};
use crate::memory::consolidate::work::{Verdict, Work};
use crate::memory::links::{new_id, resolve_intra_batch_links};
use crate::memory::redact::Redactor;
use crate::memory::search::words;
use crate::store::entry::{By, EntryId, Scope, Source, Status};
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::proposal::{Draft, Op, Proposal, ProposalId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What is known when a reply is judged.
#[derive(Debug)]
pub struct Known {
    pub at: Timestamp,
    /// Every id in use, aliases too.
    pub ids: BTreeSet<EntryId>,
    /// The notes that were shown, as they are now.
    pub notes: BTreeMap<EntryId, KnownNote>,
    /// The tags in use.
    pub tags: BTreeSet<String>,
    /// The claimed entries, by queue id.
    pub entries: BTreeMap<String, QueueEntry>,
    /// Who said what in what was shown, and before it.
    pub record: Record,
}

pub(crate) type Verdicts = Vec<(String, Verdict)>;

/// What comes of a reply.
pub(crate) enum Judgement {
    Plan(Plan, Verdicts),
    /// The model wants to see these notes first.
    Look(Vec<EntryId>),
    /// The reply cannot be used.
    Unusable(Vec<String>),
    /// It can be used; without these faults, more of it could.
    Improvable(Vec<String>),
}

/// Which further questions may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MayAsk {
    pub(crate) look: bool,
    pub(crate) repair: bool,
}

/// What the reply to the part under way comes to.
pub(crate) fn judged(
    work: &Work,
    reply: &str,
    known: Known,
    may_ask: MayAsk,
    redactor: &Redactor,
) -> Judgement {
    let asked = Asked { batch: &work.batch, sources: work.shown_ids().into_iter().collect() };
    let reply = match reply::parse(reply, &asked) {
        Ok(reply) => reply,
        Err(faults) => return Judgement::Unusable(faults),
    };
    let mut warnings = reply.warnings.clone();
    let wanted = unseen(work, &reply, &known);
    if !wanted.is_empty() && may_ask.look {
        return Judgement::Look(wanted);
    }
    warnings.extend(
        reply
            .want
            .iter()
            .filter(|id| !work.updatable.contains_key(id))
            .map(|id| format!("the model wants to see {id}, and is not asked again")),
    );
    let Known { at, ids, notes, tags, entries, record } = known;
    let mut judge = Judge {
        created_at: at.as_millisecond(),
        ids,
        notes,
        seen: work.updatable.clone(),
        made: work.made(),
        repos: entries.values().filter_map(|entry| entry.context.repo.clone()).collect(),
        is_outside: entries.values().any(|entry| entry.context.repo.is_none()),
        tags,
        sources: entries.iter().map(|(id, entry)| (id.clone(), Origin::of(entry))).collect(),
        record: &record,
        redactor,
        warnings,
    };
    // What a person wrote is filed in the person's words.
    let as_written: BTreeSet<&str> =
        own_notes(&entries).filter(|id| !is_in_own_words(id, &reply, &entries)).collect();
    let mut planned: Vec<(Option<&Proposed>, Change)> = Vec::new();
    let mut faults = Vec::new();
    for (index, entry) in reply.entries.iter().enumerate() {
        if is_of_one_note(entry, &entries) && entry.update.is_none() {
            let [source] = &entry.sources[..] else { continue };
            if !as_written.contains(source.as_str()) {
                planned
                    .extend(own_words(entry, source, &entries, &mut judge).map(|note| (Some(entry), note)));
            }
            continue;
        }
        let decision = judge.decide(entry);
        if !decision.lost.is_empty() {
            faults.push(format!(
                "entries[{index}]: the update of {} loses {}; keep them, or name in \"gone\" those that no longer hold",
                entry.update.as_deref().unwrap_or_default(),
                decision.lost.join(", ")
            ));
        }
        planned.extend(decision.changes.into_iter().map(|change| (Some(entry), change)));
    }
    if !faults.is_empty() && may_ask.repair {
        return Judgement::Improvable(faults);
    }
    planned
        .extend(reply.retire.iter().filter_map(|retired| judge.retire(retired)).map(|change| (None, change)));
    let landed = |id: &str| {
        planned.iter().any(|(entry, change)| {
            let is_from = |entry: &&Proposed| entry.sources.iter().any(|source| source == id);
            matches!(change, Change::Note(_)) && entry.as_ref().is_some_and(is_from)
        })
    };
    let mut filed = Vec::new();
    let mut verdicts = Vec::new();
    for id in work.shown_ids() {
        let verdict = verdict(id, &reply);
        // One that is shown in parts is filed once, with its last.
        if work.ends_with_this_part(id) && !matches!(verdict, Verdict::Failed(_)) && !landed(id) {
            let entry = entries.get(id);
            filed.extend(entry.map(|entry| filed_for(id, entry, &reply, &mut judge)).unwrap_or_default());
        }
        if work.ends_with_this_part(id) || matches!(verdict, Verdict::Failed(_)) {
            verdicts.push((id.to_owned(), verdict));
        }
    }
    let Judge { ids, notes, mut warnings, .. } = judge;
    let mut changes = linked(planned, &ids, &notes, &mut warnings);
    changes.extend(filed);
    Judgement::Plan(Plan { at, changes, warnings }, verdicts)
}

fn verdict(id: &str, reply: &Reply) -> Verdict {
    let names = |sources: &[String]| sources.iter().any(|source| source == id);
    let is_used = reply.entries.iter().any(|entry| names(&entry.sources))
        || reply.retire.iter().any(|retired| names(&retired.sources));
    match (is_used, reply.skipped.iter().find(|skipped| skipped.source == id)) {
        (true, _) => Verdict::Processed(None),
        (false, Some(skipped)) => Verdict::Processed(Some(one_line(&skipped.reason, 200))),
        (false, None) => Verdict::Failed("the reply names it neither as a source nor as skipped".to_owned()),
    }
}

/// The notes that the reply would see or change, and whose text the model was not shown.
fn unseen(work: &Work, reply: &Reply, known: &Known) -> Vec<EntryId> {
    let updated = reply.entries.iter().filter_map(Proposed::updates);
    let retired = reply.retire.iter().map(|retired| retired.id.clone());
    let mut ids: Vec<EntryId> = reply.want.iter().cloned().chain(updated).chain(retired).collect();
    ids.retain(|id| known.ids.contains(id) && !work.updatable.contains_key(id));
    ids.sort();
    ids.dedup();
    ids
}

/// Links within the reply become ids; those that lead nowhere become plain text.
fn linked(
    planned: Vec<(Option<&Proposed>, Change)>,
    ids: &BTreeSet<EntryId>,
    notes: &BTreeMap<EntryId, KnownNote>,
    warnings: &mut Vec<String>,
) -> Vec<Change> {
    let mut labels: BTreeMap<String, EntryId> = BTreeMap::new();
    let landed = |change: &Change| match change {
        Change::Note(note) => {
            Some((note.title.clone(), note.update.clone().unwrap_or_else(|| note.id.clone())))
        }
        Change::Retire(_) | Change::Propose(_) => None,
    };
    for (entry, change) in &planned {
        let Some((title, id)) = landed(change) else { continue };
        if let Some(label) = entry.and_then(|entry| entry.label.clone()) {
            labels.insert(label, id.clone());
        }
        // Some link by titles, whatever they are told.
        labels.entry(title).or_insert(id);
    }
    let mut resolve = |title: &str, body: &mut String, note: Option<&EntryId>| {
        let old = note.and_then(|id| notes.get(id)).map(|known| String::from_utf8_lossy(known.entry.body()));
        let (resolved, unknown) =
            resolve_intra_batch_links(body, &labels, ids, old.as_deref().unwrap_or_default());
        *body = resolved;
        warnings.extend(
            unknown.iter().map(|link| format!("\"{title}\": [[{link}]] has no target and is now plain text")),
        );
    };
    let mut changes = Vec::new();
    for (_, mut change) in planned {
        match &mut change {
            Change::Note(note) => resolve(&note.title.clone(), &mut note.body, note.update.as_ref()),
            Change::Propose(proposal) => {
                let note = proposal.note.clone();
                if let Some(draft) = &mut proposal.entry {
                    resolve(&draft.title.clone(), &mut draft.body, note.as_ref());
                }
            }
            Change::Retire(_) => {}
        }
        changes.push(change);
    }
    changes
}

/// Without an LLM: the captured notes, as they are.
pub(super) fn as_they_are(work: &Work, known: Known, redactor: &Redactor) -> (Plan, Verdicts) {
    let Known { at, ids, notes, tags, entries, record } = known;
    let mut judge = Judge {
        created_at: at.as_millisecond(),
        ids,
        notes,
        seen: BTreeMap::new(),
        made: BTreeSet::new(),
        repos: BTreeSet::new(),
        is_outside: false,
        tags,
        sources: BTreeMap::new(),
        record: &record,
        redactor,
        warnings: Vec::new(),
    };
    let mut changes = Vec::new();
    let mut verdicts = Vec::new();
    let open = work.sources.iter().filter(|source| !work.verdicts.contains_key(&source.queue_id));
    for source in open {
        let Some(entry) = entries.get(&source.queue_id) else { continue };
        let filed = as_it_is(entry, &mut judge);
        if !filed.is_empty() {
            changes.extend(filed);
            verdicts.push((source.queue_id.clone(), Verdict::Processed(None)));
        }
    }
    (Plan { at, changes, warnings: judge.warnings }, verdicts)
}

/// A captured note, filed as it is; nothing for a session. An agent's does not reach beyond its repository.
fn as_it_is(entry: &QueueEntry, judge: &mut Judge) -> Vec<Change> {
    let Retrieval::Inline { title, body, tags, scope, .. } = &entry.retrieval else { return Vec::new() };
    let title = crate::store::entry::one_line(&judge.redactor.cleaned(title));
    let body = judge.redactor.cleaned(body);
    let created_at = entry.timestamp.as_millisecond();
    let origin = Origin::of(entry);
    let has_repo = origin.repo.is_some();
    let is_persons = is_persons(entry);
    let by = if is_persons { By::Person } else { By::Agent };
    let id = new_id(&title, created_at, &mut judge.ids);
    // Where an agent has it from is not known here: what a page may have told it waits.
    let text = NoteText { title: &title, summary: "", tags, body: &body };
    let unproven = if is_persons { Vec::new() } else { Record::default().foreign(&text, None) };
    if !unproven.is_empty() {
        let scope = if *scope == Scope::Global || !has_repo { Scope::Global } else { Scope::Repo };
        let mut reasons = vec!["An agent captured it, and nothing shows where these are from.".to_owned()];
        reasons.extend(unproven.iter().take(5).map(ToString::to_string));
        return vec![Change::Propose(Box::new(Proposal {
            id: ProposalId::make(&title, created_at, |_| false),
            op: Op::Create,
            note: None,
            base: None,
            entry: Some(Draft {
                title,
                summary: String::new(),
                tags: tags.clone(),
                scope,
                until: None,
                body,
                sources: vec![Source::from(&origin)],
            }),
            by,
            evidence: Vec::new(),
            reasons,
            session: Some(Source::from(&origin)),
            created_at,
            other: serde_json::Map::new(),
        }))];
    }
    let widens = !is_persons && (*scope == Scope::Global || !has_repo);
    let widen = widens.then(|| {
        Change::Propose(Box::new(Proposal {
            id: ProposalId::make(&title, created_at, |_| false),
            op: Op::Widen,
            note: Some(id.clone()),
            base: None,
            entry: None,
            by,
            evidence: Vec::new(),
            reasons: vec!["An agent captured it, and it is to hold everywhere.".to_owned()],
            session: Some(Source::from(&origin)),
            created_at,
            other: serde_json::Map::new(),
        }))
    });
    let note = PlannedNote {
        id,
        update: None,
        replaces: None,
        before: None,
        created_at,
        status: Status::Captured,
        title: title.clone(),
        summary: String::new(),
        tags: tags.clone(),
        scope: match (is_persons, has_repo) {
            (true, true) => *scope,
            (true, false) => Scope::Global,
            (false, _) => Scope::Repo,
        },
        until: None,
        by,
        body,
        sources: vec![origin],
    };
    [Change::Note(Box::new(note))].into_iter().chain(widen).collect()
}

/// A captured note that no entry of a reply brings, as it is, with those of the model's tags that are in use.
fn filed_for(id: &str, entry: &QueueEntry, reply: &Reply, judge: &mut Judge) -> Vec<Change> {
    let mut changes = as_it_is(entry, judge);
    let of_it: Vec<&Proposed> = reply.entries.iter().filter(|entry| entry.sources == [id]).collect();
    if let Some(Change::Note(note)) = changes.first_mut()
        && !of_it.is_empty()
    {
        note.status = Status::Consolidated;
        for tag in of_it.iter().flat_map(|entry| &entry.tags) {
            if judge.tags.contains(tag) && !note.tags.contains(tag) {
                note.tags.push(tag.clone());
            }
        }
    }
    changes
}

/// The queue ids of the notes that a person captured.
fn own_notes(entries: &BTreeMap<String, QueueEntry>) -> impl Iterator<Item = &str> {
    let is_own =
        |entry: &QueueEntry| matches!(entry.retrieval, Retrieval::Inline { .. }) && is_persons(entry);
    entries.iter().filter(move |(_, entry)| is_own(entry)).map(|(id, _)| id.as_str())
}

/// Is it drawn from one note that a person captured, and nothing else?
fn is_of_one_note(entry: &Proposed, entries: &BTreeMap<String, QueueEntry>) -> bool {
    match &entry.sources[..] {
        [one] => own_notes(entries).any(|id| id == one),
        _ => false,
    }
}

/// Has the model neither added a word to a person's note, nor left one out? Then title, summary and body are the person's.
fn is_in_own_words(id: &str, reply: &Reply, entries: &BTreeMap<String, QueueEntry>) -> bool {
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
fn own_words(
    entry: &Proposed,
    source: &str,
    entries: &BTreeMap<String, QueueEntry>,
    judge: &mut Judge,
) -> Option<Change> {
    let captured = entries.get(source)?;
    let Retrieval::Inline { tags, scope, .. } = &captured.retrieval else { return None };
    let clean = |text: &str| judge.redactor.cleaned(text);
    let title = crate::store::entry::one_line(&clean(&entry.title));
    let (summary, body) = (crate::store::entry::one_line(&clean(&entry.summary)), clean(&entry.body));
    let created_at = captured.timestamp.as_millisecond();
    let mut tags = tags.clone();
    for tag in &entry.tags {
        if judge.tags.contains(tag) && !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
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
        body,
        sources: vec![origin],
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
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
