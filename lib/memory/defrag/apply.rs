//! A plan, carried out: each operation as a whole or not at all, once, whatever crash comes between.

use crate::base::error::Result;
use crate::memory::defrag::applied::{Applied, applied_name};
use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::news::forget_gone;
use crate::memory::defrag::plan::{Plan, Planned};
use crate::memory::defrag::work::{Part, Work};
use crate::memory::pipeline::runner::Run;
use crate::memory::waiting;
use crate::store::ledger::DefragLedger;
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::proposal::Proposal;
use crate::store::revision::{Reads, Revision, Standing};

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
            let lock = notes.lock()?;
            proposals.push(waiting::propose(notes, &lock, proposal.clone())?);
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
        match make(notes, &planned.revisions, &later)? {
            None => made.push(planned.clone()),
            Some(why) => {
                let ids = planned.from.iter().map(|look| look.id.to_string()).collect();
                dropped.push(Dropped { op: planned.op.name().to_owned(), ids, why });
            }
        }
    }
    Ok((made, dropped))
}

/// Makes all that belongs to an operation, or nothing of it; `Some`: why not.
///
/// After a crash some of it may be made already, or all, and `later` operations on the same notes too: a note
/// that stands as one of those leaves it has been through this one.
pub(super) fn make<P: Persistence>(
    topics: &P,
    revisions: &[Revision],
    later: &[&Revision],
) -> Result<Option<String>> {
    let lock = topics.lock()?;
    let mut standings = Vec::new();
    for revision in revisions {
        standings.push(match revision.standing(topics)? {
            Standing::Other(why) => match passed(revision, later, topics)? {
                Some(note) => Standing::After(note),
                None => Standing::Other(why),
            },
            standing => standing,
        });
    }
    let mut all = revisions.iter().zip(&standings);
    if let Some((revision, Standing::Other(why))) =
        all.find(|(_, standing)| matches!(standing, Standing::Other(_)))
    {
        match (revisions.last(), standings.last()) {
            // Made before a crash, to its end, and changed since.
            (_, Some(Standing::After(_))) => return Ok(None),
            // The parts of a split are there, and of the note that was split only its owner knows how much it
            // still says: better twice than not at all.
            (Some(last), Some(Standing::Other(_)))
                if last.before.is_some() && revisions.iter().any(is_part) =>
            {
                let has_begun = standings.iter().any(|standing| matches!(standing, Standing::After(_)));
                return Ok((!has_begun).then(|| format!("{}: {why}", revision.id)));
            }
            _ => {}
        }
        for (made, standing) in revisions.iter().zip(&standings).rev() {
            if let Standing::After(note) = standing {
                let back = made.reversed();
                back.make(topics, &lock, note.as_ref(), back.reads(note.as_ref())?)?;
            }
        }
        return Ok(Some(format!("{}: {why}", revision.id)));
    }
    // Whoever takes the others' place takes their reads, those of this moment too.
    let mut reads = Vec::new();
    for (revision, standing) in revisions.iter().zip(&standings) {
        reads.push(match standing {
            Standing::Before(note) => revision.reads(note.as_ref())?,
            Standing::After(_) | Standing::Other(_) => Reads::default(),
        });
    }
    let all_reads = reads
        .iter()
        .fold(Reads::default(), |sum, one| Reads { more: sum.more + one.more, last: sum.last.max(one.last) });
    for (at, (revision, standing)) in revisions.iter().zip(&standings).enumerate() {
        if let Standing::Before(note) = standing {
            let is_successor = at == 0 && revisions.len() > 1 && revision.before.is_some();
            let reads = if is_successor { all_reads } else { reads[at] };
            revision.make(topics, &lock, note.as_ref(), reads)?;
        }
    }
    Ok(None)
}

/// Is it a part of a split, and not an old text?
fn is_part(revision: &Revision) -> bool {
    revision.before.is_none() && revision.after.as_ref().is_some_and(|after| after.place == Place::Topics)
}

/// The note as a later operation has left it, if one has.
fn passed<P: Persistence>(
    revision: &Revision,
    later: &[&Revision],
    topics: &P,
) -> Result<Option<Option<Note>>> {
    for further in later.iter().filter(|further| further.id == revision.id) {
        if let Standing::After(note) = further.standing(topics)? {
            return Ok(Some(note));
        }
    }
    Ok(None)
}

/// Remembers what has been seen: what was shown as it was shown, what was changed as it is now.
fn see<P: Persistence>(notes: &P, work: &Work, made: &[Planned], run: &Run) -> Result<()> {
    let mut seen = DefragLedger::load(run.root)?;
    for (id, mark) in &work.shown {
        seen.see(id.clone(), mark.clone());
        seen.see_expired(id, work.own.expired.contains(id));
    }
    for revision in made.iter().flat_map(|planned| &planned.revisions) {
        let before = match &revision.before {
            Some(before) => Some(before.entry()?.fingerprint()),
            None => None,
        };
        // One that somebody else has changed is still to be looked at.
        let is_known = before.is_none_or(|before| seen.has(&revision.id, &before));
        if let (true, Some(after)) = (is_known, &revision.after) {
            seen.see(revision.id.clone(), after.entry()?.fingerprint());
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
