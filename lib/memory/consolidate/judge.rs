//! A reply, held against what was asked: what to write, and what becomes of each queue entry.

use crate::base::text::one_line;
use crate::memory::consolidate::amend::{amended, settle, withdrawn};
use crate::memory::consolidate::captured::{
    agents_notes, as_it_is, filed_for, is_in_own_words, is_of_one_note, own_notes, own_words,
};
use crate::memory::consolidate::land::Judge;
use crate::memory::consolidate::plan::{Change, KnownNote, Origin, Plan};
use crate::memory::consolidate::reply::{self, Asked, Proposed, Reply};
use crate::memory::consolidate::work::{Claimed, Verdict, Work};
use crate::memory::links::{LinkTargets, resolve_intra_batch_links};
use crate::memory::pipeline::{Judgement, MayAsk};
use crate::memory::record::{Record, Speaker};
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use crate::store::journal::entry::QueueEntry;
use crate::store::proposal::Proposal;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What is known when a reply is judged.
#[derive(Debug)]
pub struct Known {
    pub at: Timestamp,
    /// Every id in use, aliases too.
    pub ids: BTreeSet<EntryId>,
    /// The notes that were shown, as they are now.
    pub notes: BTreeMap<EntryId, KnownNote>,
    /// Those of them that these sessions made, in whatever run, and that no person has made their own since.
    pub made: BTreeSet<EntryId>,
    /// The tags in use.
    pub tags: BTreeSet<String>,
    /// The claimed entries, by queue id.
    pub entries: BTreeMap<String, QueueEntry>,
    /// Who said what in what was shown, and before it.
    pub record: Rc<Record>,
    /// All changes that wait for a person.
    pub proposals: Vec<Proposal>,
}

/// What the reply to the part under way comes to.
pub(crate) fn judged(
    work: &mut Work,
    reply: &str,
    known: Known,
    may: MayAsk,
    redactor: &Redactor,
) -> Judgement<Plan> {
    let asked = Asked { batch: &work.batch, sources: work.shown_ids().collect() };
    let reply = match reply::parse(reply, &asked) {
        Ok(reply) => reply,
        Err(faults) => return Judgement::Unusable(faults),
    };
    let mut warnings = reply.warnings.clone();
    let wanted = unseen(work, &reply, &known);
    if !wanted.is_empty() && may.look {
        return Judgement::Look(wanted);
    }
    warnings.extend(
        reply
            .want
            .iter()
            .filter(|id| !work.shown.contains_key(id))
            .map(|id| format!("the model wants to see {id}, and is not asked again")),
    );
    let Known { at, ids, notes, made, tags, entries, record, mut proposals } = known;
    // What waits and was shown, as it is now.
    let is_shown = |proposal: &&Proposal| work.own.shown_changes.contains(&proposal.id);
    let waiting: Vec<Proposal> = proposals.iter().filter(is_shown).cloned().collect();
    let record = with_waiting(record, &waiting);
    let mut judge = Judge {
        notes,
        seen: work.shown.clone(),
        made,
        repos: entries.values().filter_map(|entry| entry.context.repo.clone()).collect(),
        is_outside: entries.values().any(|entry| entry.context.repo.is_none()),
        unproven: agents_notes(&entries).map(str::to_owned).collect(),
        sources: entries.iter().map(|(id, entry)| (id.clone(), Origin::of(entry))).collect(),
        warnings,
        ..Judge::new(at, ids, tags, &record, redactor)
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
        let decision = amended(&mut judge, entry, &waiting).unwrap_or_else(|| judge.decide(entry));
        faults.extend(decision.faults.iter().map(|fault| format!("entries[{index}]: {fault}")));
        planned.extend(decision.changes.into_iter().map(|change| (Some(entry), change)));
    }
    if !faults.is_empty() && may.repair {
        return Judgement::Improvable(faults);
    }
    planned
        .extend(reply.retire.iter().filter_map(|retired| judge.retire(retired)).map(|change| (None, change)));
    planned.extend(withdrawn(&mut judge, &reply.withdraw, &waiting).into_iter().map(|change| (None, change)));
    settle(planned.iter_mut().map(|(entry, change)| (*entry, change)), &mut proposals);
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
    let mut changes = linked(planned, &ids, &notes, &proposals, &mut warnings);
    settle(filed.iter_mut().map(|change| (None, change)), &mut proposals);
    changes.extend(filed);
    work.own.verdicts.extend(verdicts);
    Judgement::Plan(Plan { at, changes, warnings })
}

/// What waits is from outside, whoever proposed it: it must not land because the prompt showed it.
fn with_waiting(record: Rc<Record>, waiting: &[Proposal]) -> Rc<Record> {
    if waiting.is_empty() {
        return record;
    }
    let mut record = Rc::unwrap_or_clone(record);
    for draft in waiting.iter().filter_map(|proposal| proposal.entry.as_ref()) {
        for text in [&draft.title, &draft.summary, &draft.body] {
            record.add(None, Speaker::Outside, text);
        }
    }
    Rc::new(record)
}

fn verdict(id: &str, reply: &Reply) -> Verdict {
    let names = |sources: &[String]| sources.iter().any(|source| source == id);
    let is_used = reply.entries.iter().any(|entry| names(&entry.sources))
        || reply.retire.iter().any(|retired| names(&retired.sources))
        || reply.withdraw.iter().any(|withdrawn| names(&withdrawn.sources));
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
    ids.retain(|id| known.ids.contains(id) && !work.shown.contains_key(id));
    ids.sort();
    ids.dedup();
    ids
}

/// Links within the reply become ids, of notes and of what waits; those that lead nowhere go.
fn linked(
    planned: Vec<(Option<&Proposed>, Change)>,
    ids: &BTreeSet<EntryId>,
    notes: &BTreeMap<EntryId, KnownNote>,
    proposals: &[Proposal],
    warnings: &mut Vec<String>,
) -> Vec<Change> {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let target = |change: &Change| match change {
        Change::Note(note) => {
            Some((note.title.clone(), note.update.as_ref().unwrap_or(&note.id).to_string()))
        }
        // A note that is there already is linked to as it is.
        Change::Propose(proposal) => {
            let id = proposal.note.as_ref().map_or_else(|| proposal.id.to_string(), EntryId::to_string);
            proposal.entry.as_ref().map(|draft| (draft.title.clone(), id))
        }
        Change::Retire(_) | Change::Withdraw(_) => None,
    };
    for (entry, change) in &planned {
        let Some((title, id)) = target(change) else { continue };
        if let Some(label) = entry.and_then(|entry| entry.label.clone()) {
            labels.entry(label).or_insert_with(|| id.clone());
        }
        // Some link by titles, whatever they are told.
        labels.entry(title).or_insert(id);
    }
    let waiting = proposals.iter().map(|proposal| proposal.id.clone()).collect();
    let targets = LinkTargets { labels: &labels, ids, waiting: &waiting };
    let mut resolve = |title: &str, body: &mut String, note: Option<&EntryId>| {
        let old = note.and_then(|id| notes.get(id)).map(|known| String::from_utf8_lossy(known.entry.body()));
        let (resolved, unknown) =
            resolve_intra_batch_links(body, &targets, old.as_deref().unwrap_or_default());
        *body = resolved;
        warnings.extend(unknown.iter().map(|link| format!("\"{title}\": {link}")));
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
            Change::Retire(_) | Change::Withdraw(_) => {}
        }
        changes.push(change);
    }
    changes
}

/// Without an LLM: the captured notes, as they are.
pub(super) fn as_they_are(work: &mut Work, known: Known, redactor: &Redactor) -> Plan {
    let Known { at, ids, tags, entries, record, mut proposals, .. } = known;
    let mut judge = Judge::new(at, ids, tags, &record, redactor);
    let mut changes = Vec::new();
    let Claimed { queue_ids, verdicts, .. } = &mut work.own;
    for id in queue_ids.iter() {
        let entry = entries.get(id).filter(|_| !verdicts.contains_key(id));
        let filed = entry.map(|entry| as_it_is(entry, &mut judge)).unwrap_or_default();
        if !filed.is_empty() {
            changes.extend(filed);
            verdicts.insert(id.clone(), Verdict::Processed(None));
        }
    }
    let warnings = judge.warnings;
    settle(changes.iter_mut().map(|change| (None, change)), &mut proposals);
    Plan { at, changes, warnings }
}
