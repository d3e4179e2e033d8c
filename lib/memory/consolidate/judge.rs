//! A reply, held against what was asked: what to write, and what becomes of each queue entry.

use crate::base::text::{one_line as brief, whole_lines};
use crate::memory::consolidate::captured::is_in_own_words;
use crate::memory::consolidate::land::{Judge, Knowledge, is_note_of};
use crate::memory::consolidate::pending::is_of;
use crate::memory::consolidate::plan::{Plan, PlannedChange, Waiting};
use crate::memory::consolidate::reply::{ConsolidateReply, Proposed, ReplyTarget, Retired, parse};
use crate::memory::consolidate::work::{Claimed, ConsolidateWork, Verdict};
use crate::memory::links::{LinkTargets, resolve_intra_batch_links};
use crate::memory::pipeline::{Judgement, MayAsk};
use crate::memory::record::{Record, Speaker};
use crate::memory::redact::Redactor;
use crate::memory::waiting::settled;
use crate::store::entry::{By, EntryId, add_missing, one_line};
use crate::store::proposal::{Draft, Proposal, ProposalId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The changes that a reply leads to, each with the entry that it comes from, if it is from one.
type PlannedEntries<'r> = Vec<(Option<&'r Proposed>, PlannedChange)>;

/// What the reply to the part under way comes to.
pub fn judged(
    work: &mut ConsolidateWork,
    reply: &str,
    known: Knowledge,
    may: MayAsk,
    redactor: &Redactor,
) -> Judgement<Plan> {
    let reply = match parse(reply, &work.batch, &work.shown_ids().collect()) {
        Ok(reply) => reply,
        Err(faults) => return Judgement::Unusable(faults),
    };
    let wanted = unseen(work, &reply, &known);
    if !wanted.is_empty() && may.look {
        return Judgement::Look(wanted);
    }
    // What waits and was shown, as it is now.
    let is_shown = |proposal: &&Proposal| work.own.shown_changes.contains(&proposal.id);
    let shown: Vec<Proposal> = known.proposals.iter().filter(is_shown).cloned().collect();
    let mut judge = judge(known, &shown, &work.shown, redactor);
    judge.warnings.extend(reply.warnings.iter().cloned());
    let unseen = reply.want.iter().filter(|id| !work.shown.contains_key(id));
    judge.warnings.extend(unseen.map(|id| format!("the model wants to see {id}, and is not asked again")));
    let (mut planned, faults) = entries(&mut judge, &reply, &shown);
    if !faults.is_empty() && may.repair {
        return Judgement::Improvable(faults);
    }
    for id in &reply.confirmed {
        planned.extend(judge.confirmed(id, &reply).map(|change| (None, change)));
    }
    for retired in &reply.retire {
        if let ReplyTarget::Note(id) = &retired.target {
            planned.extend(judge.retire(retired, id).map(|change| (None, change)));
        }
    }
    for retired in &reply.retire {
        if let ReplyTarget::Change(id) = &retired.target {
            planned.extend(judge.withdraw(retired, id, &shown).map(|change| (None, change)));
        }
    }
    settle(planned.iter_mut().map(|(entry, change)| (*entry, change)), &mut judge.known.proposals);
    let mut filed = Vec::new();
    let mut verdicts = BTreeMap::new();
    for id in work.shown_ids() {
        let verdict = verdict(id, &reply);
        let (is_last, is_failed) = (work.ends_with_this_part(id), matches!(verdict, Verdict::Failed(_)));
        // One that is shown in parts is filed once, with its last.
        if is_last && !is_failed && !has_landed(id, &planned) {
            filed.extend(judge.filed_for(id, &reply));
        }
        if is_last || is_failed {
            verdicts.insert(id.to_owned(), verdict);
        }
    }
    let Judge { mut known, mut warnings, .. } = judge;
    link(&mut planned, &known, &mut warnings);
    settle(filed.iter_mut().map(|change| (None, change)), &mut known.proposals);
    let changes = planned.into_iter().map(|(_, change)| change).chain(filed).collect();
    work.own.verdicts.extend(verdicts);
    Judgement::Plan(Plan { at: known.at, changes, warnings })
}

/// Without an LLM: the captured notes, as they are.
pub(super) fn as_they_are(work: &mut ConsolidateWork, known: Knowledge, redactor: &Redactor) -> Plan {
    let mut judge = judge(known, &[], &work.shown, redactor);
    let mut changes = Vec::new();
    let Claimed { queue_ids, verdicts, .. } = &mut work.own;
    for id in queue_ids.iter() {
        let entry = judge.known.entries.get(id).filter(|_| !verdicts.contains_key(id)).cloned();
        let filed = entry.map(|entry| judge.as_it_is(&entry)).unwrap_or_default();
        if !filed.is_empty() {
            changes.extend(filed);
            verdicts.insert(id.clone(), Verdict::Processed(None));
        }
    }
    let Judge { mut known, warnings, .. } = judge;
    settle(changes.iter_mut().map(|change| (None, change)), &mut known.proposals);
    Plan { at: known.at, changes, warnings }
}

/// `shown` waits, and is from outside, whoever proposed it: it must not land because the prompt showed it.
fn judge<'a>(
    mut known: Knowledge,
    shown: &[Proposal],
    seen: &'a BTreeMap<EntryId, String>,
    redactor: &'a Redactor,
) -> Judge<'a> {
    for draft in shown.iter().filter_map(|proposal| proposal.entry.as_ref()) {
        for text in [&draft.title, &draft.summary, &draft.body] {
            Record::add(Rc::make_mut(&mut known.record), None, Speaker::Outside, text);
        }
    }
    Judge { known, seen, redactor, warnings: Vec::new(), faults: Vec::new() }
}

/// What the entries of a reply come to, and what the model can mend of them.
fn entries<'r>(
    judge: &mut Judge,
    reply: &'r ConsolidateReply,
    shown: &[Proposal],
) -> (PlannedEntries<'r>, Vec<String>) {
    let mut planned: PlannedEntries = Vec::new();
    let mut faults = Vec::new();
    for (index, entry) in reply.entries.iter().enumerate() {
        // What a person wrote is filed in the person's words.
        if let ([source], None) = (&entry.sources[..], &entry.update)
            && let Some(captured) =
                judge.known.entries.get(source).filter(|entry| is_note_of(entry, By::Person))
        {
            if is_in_own_words(source, reply, captured) {
                let captured = captured.clone();
                planned.extend(judge.own_words(entry, &captured).map(|note| (Some(entry), note)));
            }
            continue;
        }
        let changes = judge.amended(entry, shown).unwrap_or_else(|| judge.decide(entry));
        faults.extend(judge.faults.drain(..).map(|fault| format!("entries[{index}]: {fault}")));
        planned.extend(changes.into_iter().map(|change| (Some(entry), change)));
    }
    (planned, faults)
}

fn has_landed(id: &str, planned: &PlannedEntries) -> bool {
    planned.iter().any(|(entry, change)| {
        let is_from = |entry: &&Proposed| entry.sources.iter().any(|source| source == id);
        matches!(change, PlannedChange::Note(_)) && entry.as_ref().is_some_and(is_from)
    })
}

fn verdict(id: &str, reply: &ConsolidateReply) -> Verdict {
    let entries = reply.entries.iter().map(|entry| &entry.sources);
    let mut used = entries.chain(reply.retire.iter().map(|retired| &retired.sources)).flatten();
    match (used.any(|source| source == id), reply.skipped.iter().find(|(source, _)| source == id)) {
        (true, _) => Verdict::Processed(None),
        (false, Some((_, reason))) => Verdict::Processed(Some(brief(reason, 200))),
        (false, None) => Verdict::Failed("the reply names it neither as a source nor as skipped".to_owned()),
    }
}

/// The notes that the reply would see or change, and whose text the model was not shown.
fn unseen(work: &ConsolidateWork, reply: &ConsolidateReply, known: &Knowledge) -> Vec<EntryId> {
    let updated = reply.entries.iter().filter_map(Proposed::target);
    let retired = reply.retire.iter().map(|retired| retired.target.clone());
    let changed = updated.chain(retired).filter_map(ReplyTarget::note);
    let mut ids: Vec<EntryId> = reply.want.iter().cloned().chain(changed).collect();
    ids.retain(|id| known.ids.contains(id) && !work.shown.contains_key(id));
    ids.sort();
    ids.dedup();
    ids
}

/// A text that a change brings: what a link to it leads to, the note that it replaces, and what it says.
fn said(change: &mut PlannedChange) -> Option<(String, Option<EntryId>, &mut Draft)> {
    match change {
        PlannedChange::Note(note) => {
            let id = note.update.as_ref().unwrap_or(&note.id).to_string();
            Some((id, note.update.clone(), &mut note.draft))
        }
        // A note that is there already is linked to as it is.
        PlannedChange::Propose(proposal) => {
            let note = proposal.note.clone();
            let id = note.as_ref().map_or_else(|| proposal.id.to_string(), EntryId::to_string);
            Some((id, note, proposal.entry.as_mut()?))
        }
        PlannedChange::Confirm(_) | PlannedChange::Retire(_) | PlannedChange::Withdraw(_) => None,
    }
}

/// Links within the reply become ids, of notes and of what waits; those that lead nowhere go.
fn link(planned: &mut PlannedEntries, known: &Knowledge, warnings: &mut Vec<String>) {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    for (entry, change) in planned.iter_mut() {
        let Some((id, _, draft)) = said(change) else { continue };
        if let Some(label) = entry.and_then(|entry| entry.label.clone()) {
            labels.entry(label).or_insert_with(|| id.clone());
        }
        // Some link by titles, whatever they are told.
        labels.entry(draft.title.clone()).or_insert(id);
    }
    let waiting = known.proposals.iter().map(|proposal| proposal.id.clone()).collect();
    let targets = LinkTargets { labels: &labels, ids: &known.ids, waiting: &waiting };
    for (_, note, draft) in planned.iter_mut().filter_map(|(_, change)| said(change)) {
        let old = note.and_then(|id| known.notes.get(&id));
        let old = old.map(|known| String::from_utf8_lossy(known.entry.body())).unwrap_or_default();
        let (resolved, unknown) = resolve_intra_batch_links(&draft.body, &targets, &old);
        draft.body = resolved;
        warnings.extend(unknown.iter().map(|link| format!("\"{}\": {link}", draft.title)));
    }
}

impl Judge<'_> {
    /// The change with this id, if sessions of these repositories may change it: it was shown, and one of them made it.
    fn changeable<'p>(&self, id: &ProposalId, shown: &'p [Proposal]) -> Option<&'p Proposal> {
        let is_here = |there: &&Proposal| is_of(there, |repo| self.is_in(repo));
        shown.iter().find(|there| there.id == *id).filter(is_here)
    }

    /// Another text for a change that waits. It waits on, with its old reasons, whatever the text is: only a person clears
    /// them. `None`: the entry names none that may be changed.
    fn amended(&mut self, entry: &Proposed, shown: &[Proposal]) -> Option<Vec<PlannedChange>> {
        let Some(ReplyTarget::Change(id)) = entry.target() else { return None };
        let there = self.changeable(&id, shown)?;
        let update = there.note.as_ref().map(ToString::to_string);
        // What would come of the text alone.
        let changes = self.decide(&Proposed { update, ..entry.clone() });
        // It brings no text: the entry is one for its note, and no rival beside it.
        let Some(old) = there.entry.as_ref() else { return Some(changes) };
        let (text, by, reasons, base) = changes.into_iter().find_map(|change| match change {
            PlannedChange::Note(note) => {
                let known = there.note.as_ref().and_then(|id| self.known.notes.get(id));
                let text = Draft { body: whole_lines(&note.draft.body), ..note.draft };
                Some((text, note.by, Vec::new(), known.map(|known| known.entry.base())))
            }
            PlannedChange::Propose(proposal) => {
                let Proposal { entry, by, reasons, base, .. } = *proposal;
                entry.map(|text| (text, by, reasons, base))
            }
            PlannedChange::Confirm(_) | PlannedChange::Retire(_) | PlannedChange::Withdraw(_) => None,
        })?;
        let new_sources = self.sources(&entry.sources);
        let session = new_sources.first().cloned();
        let mut sources = old.sources.clone();
        add_missing(&mut sources, new_sources);
        let (scope, until) = (entry.scope.unwrap_or(old.scope), entry.until.unwrap_or(old.until));
        let mut new = Proposal {
            entry: Some(Draft { scope, until, sources, ..text }),
            base: base.or_else(|| there.base.clone()),
            session,
            by: there.by.max(by),
            ..there.clone()
        };
        add_missing(&mut new.reasons, reasons);
        add_missing(&mut new.evidence, self.evidence(&entry.evidence, &one_line(&entry.text.title)));
        Some(vec![PlannedChange::Propose(Box::new(new))])
    }

    /// A change that waits no longer.
    fn withdraw(&mut self, retired: &Retired, id: &ProposalId, shown: &[Proposal]) -> Option<PlannedChange> {
        let Some(there) = self.changeable(id, shown) else {
            let why = "is no change that this session may withdraw";
            self.warnings.push(format!("{id} was to be withdrawn, and {why}"));
            return None;
        };
        let about = there.note.as_ref().filter(|_| there.entry.is_none());
        let about = about.and_then(|id| self.known.notes.get(id));
        let title = about.map_or(there.title(), |known| &known.entry.meta().title);
        Some(PlannedChange::Withdraw(Waiting {
            id: id.clone(),
            op: there.op,
            note: there.note.clone(),
            title: one_line(title),
            withdrawn: Some(one_line(&self.redactor.cleaned(&retired.reason))),
        }))
    }
}

/// Each proposal gets the id under which it will wait: that of the same discovery, or one of its own. One that its entry
/// names has it already. `waiting` is what waits, and has them too then.
pub(super) fn settle<'a>(
    changes: impl Iterator<Item = (Option<&'a Proposed>, &'a mut PlannedChange)>,
    waiting: &mut Vec<Proposal>,
) {
    for (entry, change) in changes {
        match change {
            PlannedChange::Propose(proposal) => {
                if entry.and_then(Proposed::target) != Some(ReplyTarget::Change(proposal.id.clone())) {
                    **proposal = settled((**proposal).clone(), waiting);
                }
                waiting.retain(|there| there.id != proposal.id);
                waiting.push((**proposal).clone());
            }
            PlannedChange::Withdraw(withdrawal) => waiting.retain(|there| there.id != withdrawal.id),
            PlannedChange::Note(_) | PlannedChange::Confirm(_) | PlannedChange::Retire(_) => {}
        }
    }
}
