//! A plan, carried out: each operation as a whole or not at all, once, whatever crash comes between.

use crate::base::error::Result;
use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::news::forget_gone;
use crate::memory::defrag::plan::{Plan, Planned};
use crate::memory::defrag::work::{Part, Work};
use crate::memory::pipeline::runner::Run;
use crate::memory::waiting;
use crate::store::batch::Batch;
use crate::store::change::Change;
use crate::store::entry::EntryId;
use crate::store::ledger::DefragLedger;
use crate::store::persistence::Persistence;
use crate::store::proposal::Proposal;
use crate::store::revision::Revision;
use serde::{Deserialize, Serialize};

/// What was done for one part.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Applied {
    pub(super) made: Vec<Planned>,
    /// How many changes wait for a person.
    #[serde(default)]
    pub(super) proposed: usize,
    /// Notes that were deleted for good since, and of which nothing is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) deleted: Vec<EntryId>,
}

pub(super) fn applied_name(part: usize) -> String {
    format!("applied-{part}.json")
}

/// What was done for each part so far, in order.
pub(super) fn applied(batch: &Batch) -> Result<Vec<Applied>> {
    let mut all = Vec::new();
    for part in 0.. {
        if !batch.file(&applied_name(part)).exists() {
            break;
        }
        all.push(batch.read_json(&applied_name(part))?);
    }
    Ok(all)
}

/// Makes the changes of the part under way; those that are made already, not again. What was made, and what was not.
pub(super) fn apply<P: Persistence>(
    notes: &P,
    work: &Work,
    plan: &Plan,
    run: &Run,
) -> Result<(Vec<Planned>, Vec<Dropped>, Vec<Proposal>)> {
    let mut dropped = plan.dropped.clone();
    let mut proposals = Vec::new();
    let name = applied_name(work.next);
    // Once it is written down what was done, nobody's later change of a note makes it undone.
    let is_done = run.batch()?.file(&name).exists();
    let mut applied = if is_done { run.batch()?.read_json(&name)? } else { Applied::default() };
    if !is_done {
        let (made, not_made) = carry_out(notes, &plan.operations)?;
        applied.made = made;
        dropped.extend(not_made);
        for proposal in &plan.proposals {
            proposals.push(waiting::propose(notes, proposal.clone())?);
        }
        applied.proposed = proposals.len();
    }
    if !run.is_dry() {
        if !is_done {
            run.batch()?.write_json(&name, &applied)?;
        }
        see(notes, work, &applied.made, run)?;
    }
    Ok((applied.made, dropped, proposals))
}

/// Makes each operation as a whole or not at all; those that are made already, not again. What was made, and what could
/// not be, because a note has changed since.
///
/// # Errors
/// The store cannot be read or written. Trying again goes on where it was.
pub fn carry_out<P: Persistence>(notes: &P, operations: &[Planned]) -> Result<(Vec<Planned>, Vec<Dropped>)> {
    let (mut made, mut dropped) = (Vec::new(), Vec::new());
    for (at, planned) in operations.iter().enumerate() {
        let later: Vec<&Revision> =
            operations.iter().skip(at + 1).flat_map(|planned| &planned.revisions).collect();
        let change = Change::of(notes)?;
        match change.make(&planned.revisions, &later)? {
            None => {
                change.write()?;
                made.push(planned.clone());
            }
            Some(why) => {
                let ids = planned.from.iter().map(|look| look.id.to_string()).collect();
                dropped.push(Dropped { op: planned.op.name().to_owned(), ids, why });
            }
        }
    }
    Ok((made, dropped))
}

/// Remembers what has been seen: what was shown as it was shown, what was changed as it is now.
fn see<P: Persistence>(notes: &P, work: &Work, made: &[Planned], run: &Run) -> Result<()> {
    let mut seen = DefragLedger::load(run.root)?;
    for (id, mark) in &work.shown {
        seen.see(id.clone(), mark.clone());
        seen.see_expired(id, work.own.expired.contains(id));
    }
    for revision in made.iter().flat_map(|planned| &planned.revisions) {
        let Some(id) = revision.id() else { continue };
        let before = match &revision.before {
            Some(before) => Some(before.entry()?.fingerprint()),
            None => None,
        };
        // One that somebody else has changed is still to be looked at.
        let is_known = before.is_none_or(|before| seen.has(&id, &before));
        if let (true, Some(after)) = (is_known, &revision.after) {
            seen.see(id, after.entry()?.fingerprint());
        }
    }
    match work.part() {
        Some(Part::Group(reach, _)) => seen.put_tiers_due(reach.name()),
        Some(Part::Whole(reach, _) | Part::Tiers(reach)) => seen.tiers_done(reach.name()),
        None => {}
    }
    forget_gone(&mut seen, notes)?;
    seen.save(run.root)
}
