//! A reply, held against what was asked: what to write, and what becomes of each queue entry.

use crate::base::text::one_line;
use crate::memory::consolidate::plan::{self, Origin, Plan, PlannedNote};
use crate::memory::consolidate::reply::{self, Asked};
use crate::memory::consolidate::work::{Verdict, Work};
use crate::memory::links::new_id;
use crate::memory::redact::Redactor;
use crate::store::entry::{EntryId, Scope, Status};
use crate::store::journal::entry::{QueueEntry, Retrieval};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What is known when a reply is judged.
#[derive(Debug)]
pub struct Known {
    pub at: Timestamp,
    /// Every id in use, aliases too.
    pub ids: BTreeSet<EntryId>,
    /// The bodies that were shown and have not changed since. What a person has written since is not overwritten.
    pub bodies: BTreeMap<EntryId, String>,
    /// The claimed entries, by queue id.
    pub entries: BTreeMap<String, QueueEntry>,
}

type Verdicts = Vec<(String, Verdict)>;

/// What the reply to the part under way comes to, or all that is wrong with it.
pub(super) fn judged(
    work: &Work,
    reply: &str,
    known: Known,
    redactor: &Redactor,
) -> Result<(Plan, Verdicts), Vec<String>> {
    let asked = Asked {
        batch: &work.batch,
        sources: work.shown_ids().into_iter().collect(),
        updatable: work.updatable.keys().collect(),
    };
    let reply = reply::parse(reply, &asked)?;
    let Known { at, mut ids, bodies, entries } = known;
    // Notes that a person wrote and the model passed over are filed as they are.
    let mut filed = Vec::new();
    let mut verdicts = Vec::new();
    for id in work.shown_ids() {
        let is_used = reply.entries.iter().any(|entry| entry.sources.iter().any(|source| source == id));
        let skipped = reply.skipped.iter().find(|skipped| skipped.source == id);
        let verdict = match (is_used, skipped) {
            (true, _) => Verdict::Processed(None),
            (false, Some(skipped)) => {
                // One that is shown in parts is filed once, with its last.
                let entry = entries.get(id).filter(|_| work.ends_with_this_part(id));
                filed.extend(entry.and_then(|entry| as_it_is(entry, Status::Captured, &mut ids, redactor)));
                Verdict::Processed(Some(one_line(&skipped.reason, 200)))
            }
            (false, None) => {
                Verdict::Failed("the reply names it neither as a source nor as skipped".to_owned())
            }
        };
        if work.ends_with_this_part(id) || matches!(verdict, Verdict::Failed(_)) {
            verdicts.push((id.to_owned(), verdict));
        }
    }
    let sources = entries.iter().map(|(id, entry)| (id.as_str(), Origin::of(entry))).collect();
    let known = plan::Known { at, ids, bodies, sources };
    let mut plan = plan::plan(&reply, known, |text| redactor.cleaned(text));
    plan.notes.extend(filed);
    Ok((plan, verdicts))
}

/// Without an LLM: the notes that people wrote, as they are.
pub(super) fn as_they_are(work: &Work, known: Known, redactor: &Redactor) -> (Plan, Verdicts) {
    let Known { at, mut ids, entries, .. } = known;
    let mut notes = Vec::new();
    let mut verdicts = Vec::new();
    let open = work.sources.iter().filter(|source| !work.verdicts.contains_key(&source.queue_id));
    for source in open {
        let Some(entry) = entries.get(&source.queue_id) else { continue };
        if let Some(note) = as_it_is(entry, Status::Captured, &mut ids, redactor) {
            notes.push(note);
            verdicts.push((source.queue_id.clone(), Verdict::Processed(None)));
        }
    }
    (Plan { at, notes, warnings: Vec::new() }, verdicts)
}

/// A note that a person wrote, filed as it is; `None` for a session.
fn as_it_is(
    entry: &QueueEntry,
    status: Status,
    ids: &mut BTreeSet<EntryId>,
    redactor: &Redactor,
) -> Option<PlannedNote> {
    let Retrieval::Inline { title, body, tags, scope, .. } = &entry.retrieval else { return None };
    let title = redactor.cleaned(title);
    let created_at = entry.timestamp.as_millisecond();
    let has_repo = entry.context.repo.is_some();
    Some(PlannedNote {
        id: new_id(&title, created_at, ids),
        update: None,
        replaces: None,
        before: None,
        created_at,
        status,
        title,
        summary: String::new(),
        tags: tags.clone(),
        scope: if has_repo { *scope } else { Scope::Global },
        body: redactor.cleaned(body),
        sources: vec![Origin::of(entry)],
    })
}
