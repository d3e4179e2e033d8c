//! A plan, carried out: each operation as a whole or not at all, once, whatever crash comes between. What was done is kept
//! in the batch, so that it can be taken back; what is deleted for good must not live on there.

use crate::base::error::{ErrorKind, Result};
use crate::base::file;
use crate::memory::defrag::plan::{DefragPlan, Planned};
use crate::memory::defrag::reply::Dropped;
use crate::memory::pipeline::host::BatchProgress;
use crate::memory::waiting;
use crate::store::batch::{Batch, Batches};
use crate::store::change::Change;
use crate::store::entry::EntryId;
use crate::store::persistence::Persistence;
use crate::store::place::Root;
use crate::store::revision::Revision;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What stands in the place of a title.
const GONE: &str = "(deleted)";

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
    let names = (0..).map(applied_name).take_while(|name| batch.file(name).exists());
    names.map(|name| batch.read_json(&name)).collect()
}

/// Makes each operation as a whole or not at all; those that are made already, not again. Lets wait what waits. Returns the
/// plan as far as it was made: what could not be, because a note has changed since, is dropped.
///
/// # Errors
/// The store cannot be read or written. Trying again goes on where it was.
pub fn carry_out<P: Persistence>(notes: &P, plan: DefragPlan) -> Result<DefragPlan> {
    let mut done = DefragPlan { operations: Vec::new(), proposals: Vec::new(), ..plan };
    let mut rest = &plan.operations[..];
    while let [planned, others @ ..] = rest {
        let later: Vec<&Revision> = others.iter().flat_map(|planned| &planned.revisions).collect();
        let change = Change::of(notes)?;
        let (obstacle, is_unread) = match change.make(&planned.revisions, &later) {
            // One note that cannot be read holds up no other operation.
            Err(error) if error.kind() == ErrorKind::Corrupt => (Some(error.line()), true),
            made => (made?, false),
        };
        match obstacle {
            None => {
                change.write()?;
                done.operations.push(planned.clone());
            }
            Some(why) => {
                let ids = planned.from.iter().map(|note| note.id.to_string()).collect();
                let op = planned.op.as_str().to_owned();
                done.dropped.push(Dropped { op, ids, why, is_unread });
            }
        }
        rest = others;
    }
    for proposal in plan.proposals {
        done.proposals.push(waiting::propose(notes, proposal)?);
    }
    Ok(done)
}

/// Takes these notes out of the last defrag, which cannot bring them back then. The directories of batches that are
/// not at their end, and name one of them: whoever carries them on still needs what is in them.
pub fn forget(root: &Root, ids: &[EntryId]) -> Result<Vec<PathBuf>> {
    let mut holding = Vec::new();
    let (ours, theirs) = (Batches::of_defrag(root), Batches::of_queue(root));
    // With those that are set aside nobody carries on.
    let all = [ours.all()?, theirs.all()?, theirs.set_aside()?, ours.set_aside()?];
    for batch in all.into_iter().flatten() {
        if matches!(batch.load::<BatchProgress>(), Ok(Some(progress)) if progress.is_over) {
            forget_in(&batch, ids)?;
        // What cannot be read may name one, unless its run has ended meanwhile.
        } else if names_one(&batch, ids).unwrap_or_else(|_| batch.dir.exists()) {
            holding.push(batch.dir);
        }
    }
    Ok(holding)
}

fn forget_in(batch: &Batch, ids: &[EntryId]) -> Result<()> {
    if !names_one(batch, ids)? {
        return Ok(());
    }
    for (part, mut one) in applied(batch)?.into_iter().enumerate() {
        let before = one.deleted.len();
        ids.iter().for_each(|id| one.forget(id));
        if one.deleted.len() > before {
            batch.write_json(&applied_name(part), &one)?;
        }
    }
    // Prompts and replies are of no use any more.
    let is_text = |name: &String| name.starts_with("prompt-") || name.starts_with("reply-");
    for name in names(batch)?.iter().filter(|name| is_text(name)) {
        file::remove(&batch.file(name))?;
    }
    Ok(())
}

fn names(batch: &Batch) -> Result<Vec<String>> {
    let entries = fs_err::read_dir(&batch.dir)?;
    let files = entries.filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()));
    Ok(files.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// Whether a file of the batch names one of the notes.
fn names_one(batch: &Batch, ids: &[EntryId]) -> Result<bool> {
    for name in names(batch)? {
        let bytes = batch.read(&name)?;
        if ids.iter().any(|id| memchr::memmem::find(&bytes, id.as_str().as_bytes()).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Applied {
    /// Takes all that a note said out of what was done.
    fn forget(&mut self, id: &EntryId) {
        let is_named = |planned: &Planned| {
            planned.from.iter().chain(&planned.into).any(|note| note.id == *id)
                || planned.revisions.iter().any(|revision| revision.id().as_ref() == Some(id))
        };
        let mut is_anywhere = false;
        for planned in self.made.iter_mut().filter(|planned| is_named(planned)) {
            is_anywhere = true;
            // It cannot be taken back in part: what another note took over would be lost, or come back with it.
            planned.revisions.clear();
            for note in planned.from.iter_mut().chain(&mut planned.into).filter(|note| note.id == *id) {
                GONE.clone_into(&mut note.title);
                note.tags.clear();
            }
            planned.reason.clear();
            planned.lost.clear();
            planned.gone.clear();
        }
        self.deleted.extend(is_anywhere.then(|| id.clone()));
    }
}
