//! The last defrag, taken back byte for byte.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::defrag::applied::applied;
use crate::memory::defrag::news::{forget_gone, record};
use crate::memory::pipeline::call::RunEnv;
use crate::memory::pipeline::host::{BatchProgress, Kind};
use crate::memory::section::{self, Outcome, Which};
use crate::store::batch::{Batch, Batches};
use crate::store::change::{Change, RevisionState};
use crate::store::entry::EntryId;
use crate::store::ledger::DefragLedger;
use crate::store::persistence::{Persistence, Place};
use crate::store::revision::Revision;
use std::path::Path;

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
pub fn finish<P: Persistence>(notes: &P, run: &RunEnv) -> Result<Option<Undone>> {
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
    seen.all_tiers_done();
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
