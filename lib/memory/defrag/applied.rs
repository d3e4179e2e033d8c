//! A plan, carried out: each operation as a whole or not at all, once, whatever crash comes between. What was done is kept
//! in the batch, so that the last defrag can be taken back byte for byte; what is deleted for good must not live on there.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::file;
use crate::memory::defrag::news::{forget_gone, record};
use crate::memory::defrag::plan::{DefragPlan, Planned};
use crate::memory::defrag::reply::Dropped;
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::memory::pipeline::host::BatchProgress;
use crate::memory::section::{self, Outcome, Which};
use crate::memory::waiting;
use crate::store::batch::{Batch, Batches};
use crate::store::change::{Change, RevisionState};
use crate::store::entry::EntryId;
use crate::store::ledger::DefragLedger;
use crate::store::persistence::{Persistence, Place};
use crate::store::place::Root;
use crate::store::revision::Revision;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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
    for (at, planned) in plan.operations.iter().enumerate() {
        let later = plan.operations[at + 1..].iter().flat_map(|planned| &planned.revisions);
        let change = Change::of(notes)?;
        let (why, is_unread) = match change.make(&planned.revisions, &later.collect::<Vec<_>>()) {
            Ok(None) => {
                change.write()?;
                done.operations.push(planned.clone());
                continue;
            }
            Ok(Some(why)) => (why, false),
            // One note that cannot be read holds up no other operation.
            Err(error) if error.kind() == ErrorKind::Corrupt => (error.line(), true),
            Err(error) => return Err(error),
        };
        let ids = planned.from.iter().map(|note| note.id.to_string()).collect();
        done.dropped.push(Dropped { op: planned.op.as_str().to_owned(), ids, why, is_unread });
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

/// A file of the batch that says that it is being taken back.
const MARK: &str = "undoing";

/// What was taken back.
pub struct Undone {
    pub batch: String,
    /// How many notes are as before.
    pub notes: usize,
    pub targets: Vec<Outcome>,
}

/// Takes back the newest batch that has changed anything. Nothing is changed if one of its notes has been changed since.
pub fn undo<P: Persistence>(notes: &P, run: &RunEnv) -> Result<Undone> {
    let mut last = None;
    for batch in Batches::of_defrag(run.root).all()? {
        let Ok(Some(progress)) = batch.load::<BatchProgress>() else { continue };
        let has_changed = applied(&batch)?.iter().any(|applied| !applied.made.is_empty());
        let is_newer = last.as_ref().is_none_or(|(begun, _)| progress.begun > *begun);
        if progress.kind != Kind::DryRun && has_changed && is_newer {
            last = Some((progress.begun, batch));
        }
    }
    let Some((_, batch)) = last else {
        return Err(Error::usage("there is no defrag to take back")
            .hint("only the last one that changed something can be taken back, once"));
    };
    let changed = changed_since(&Change::of(notes)?, &backwards(&batch)?)?;
    if !changed.is_empty() {
        return Err(Error::usage(format!(
            "the defrag is not taken back, because of what was changed since: {}",
            changed.join("; ")
        ))
        .hint("nothing is touched; the versions before it are in git, or in the batch's applied-*.json"));
    }
    batch.write(MARK, b"")?;
    carry_on(notes, &batch, run)
}

/// Finishes what a crash left of an undoing.
pub fn finish_undo<P: Persistence>(notes: &P, run: &RunEnv) -> Result<Option<Undone>> {
    let mut done = None;
    for batch in Batches::of_defrag(run.root).all()? {
        if batch.file(MARK).exists() {
            run.reporter.warn(&format!("continuing the undo of {}", batch.id));
            done = Some(carry_on(notes, &batch, run)?);
        }
    }
    Ok(done)
}

/// Each note from what it is now to what it was, the last change first.
fn backwards(batch: &Batch) -> Result<Vec<Revision>> {
    let mut whole: Vec<(Option<EntryId>, Revision)> = Vec::new();
    let applied = applied(batch)?;
    let revisions = applied.into_iter().flat_map(|applied| applied.made).flat_map(|made| made.revisions);
    for revision in revisions {
        let id = revision.id();
        match whole.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => known.after = revision.after,
            None => whole.push((id, revision)),
        }
    }
    whole.retain(|(_, revision)| revision.before != revision.after);
    Ok(whole.iter().rev().map(|(_, revision)| revision.reversed()).collect())
}

/// The files that are no longer as the defrag left them, and why they are not.
fn changed_since<P: Persistence>(change: &Change<P>, revisions: &[Revision]) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for revision in revisions {
        let RevisionState::Other(why) = change.standing(revision)? else { continue };
        let version = revision.before.as_ref().or(revision.after.as_ref());
        let name = version.map_or(Path::new(""), |version| Path::new(version.name()));
        changed.push(format!("\"{}\": {why}", name.display()));
    }
    Ok(changed)
}

/// Takes back what is not taken back yet, and ends the batch.
fn carry_on<P: Persistence>(notes: &P, batch: &Batch, run: &RunEnv) -> Result<Undone> {
    let revisions = backwards(batch)?;
    let change = Change::of(notes)?;
    // What somebody has changed since it was asked for.
    let mut changed = changed_since(&change, &revisions)?;
    if changed.is_empty() {
        changed.extend(change.make(&revisions, &[])?);
    }
    let count = match changed.is_empty() {
        true => {
            change.write()?;
            // A note that the defrag made is gone, which is as before too, but no note.
            revisions.iter().filter(|revision| revision.after.is_some()).count()
        }
        false => {
            drop(change);
            0
        }
    };
    for why in &changed {
        run.reporter.warn(&format!("not taken back: {why}"));
    }
    for id in applied(batch)?.into_iter().flat_map(|applied| applied.deleted) {
        run.reporter
            .warn(&format!("{id} is not brought back: it was deleted for good (memory-remove --purge)"));
    }
    // What somebody took back is not asked about again until it changes.
    let mut seen = DefragLedger::load(run.root)?;
    for revision in &revisions {
        let after = revision.after.as_ref().filter(|after| after.place() == Some(Place::Topics));
        if let (Some(after), Some(id)) = (after, revision.id()) {
            seen.see(id, after.entry()?.fingerprint());
        }
    }
    seen.tiers_due.clear();
    forget_gone(&mut seen, notes)?;
    seen.save(run.root)?;
    let targets = section::refresh(Which::All, run.config, run.root, run.env.today(), Some(run.reporter))?;
    record(notes, "defrag undone".to_owned(), revisions.iter(), 0, run);
    // Last: as long as it is there, the next run does all of this again.
    if changed.is_empty() {
        batch.end()?;
    } else {
        // What somebody changed at that moment has its earlier text nowhere else.
        file::remove(&batch.file(MARK))?;
        run.reporter.warn(&format!("what these notes were before stays in \"{}\"", batch.dir.display()));
    }
    Ok(Undone { batch: batch.id.clone(), notes: count, targets })
}
