//! The last defrag, taken back byte for byte.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::call::Kind;
use crate::memory::defrag::State;
use crate::memory::defrag::applied::applied;
use crate::memory::defrag::desk::Desk;
use crate::store::batch::{Batch, Batches};
use crate::store::entry::EntryId;
use crate::store::ledger::DefragLedger;
use crate::store::persistence::Place;
use crate::store::revision::{Revision, Standing};
use std::collections::BTreeMap;

/// A file of the batch that says that it is being taken back.
const MARK: &str = "undoing";

impl Desk<'_> {
    /// Takes back the newest batch that has changed anything. How many notes are as before, and which batch it was.
    ///
    /// Nothing is touched if one of them has been changed since.
    pub(crate) fn undo(&mut self) -> Result<(usize, String)> {
        if self.config.storage.foreign {
            return Err(Error::usage(
                "the store is named by a file that is not trusted: its batches are left alone",
            ));
        }
        self.bring_to_an_end()?;
        // What a crash left of an undoing is what is asked for, and no reason to take back one more.
        if let Some(done) = self.undone.take() {
            return Ok(done);
        }
        let mut last = None;
        for batch in Batches::of_defrag(self.root).all()? {
            let Ok(Some(state)) = batch.load::<State>() else { continue };
            let Some(work) = state.work().filter(|work| work.kind != Kind::Dry) else { continue };
            let has_changed = applied(&batch)?.iter().any(|applied| !applied.made.is_empty());
            let begun = work.begun;
            if has_changed && last.as_ref().is_none_or(|(other, _)| begun > *other) {
                last = Some((begun, batch));
            }
        }
        let Some((_, batch)) = last else {
            return Err(Error::usage("there is no defrag to take back")
                .hint("only the last one that changed something can be taken back, once"));
        };
        let id = batch.id.clone();
        self.batch = Some(batch);
        let changed = self.changed_since(&self.backwards()?)?;
        if !changed.is_empty() {
            let all: Vec<String> = changed.iter().map(|(name, why)| format!("\"{name}\": {why}")).collect();
            return Err(Error::usage(format!(
                "the defrag is not taken back, because of what was changed since: {}",
                all.join("; ")
            ))
            .hint(
                "nothing is touched; the versions before it are in git, or in the batch's applied-*.json",
            ));
        }
        self.batch()?.write(MARK, b"")?;
        Ok((self.carry_on_undoing()?, id))
    }

    pub(crate) fn is_being_undone(batch: &Batch) -> bool {
        batch.file(MARK).exists()
    }

    /// Each note from what it is now to what it was, the last change first.
    fn backwards(&self) -> Result<Vec<Revision>> {
        let mut whole: Vec<Revision> = Vec::new();
        let mut places: BTreeMap<EntryId, usize> = BTreeMap::new();
        let applied = applied(self.batch()?)?;
        let revisions = applied.into_iter().flat_map(|applied| applied.made).flat_map(|made| made.revisions);
        for revision in revisions {
            match places.get(&revision.id).and_then(|&at| whole.get_mut(at)) {
                Some(known) => known.then(&revision),
                None => {
                    places.insert(revision.id.clone(), whole.len());
                    whole.push(revision);
                }
            }
        }
        Ok(whole.iter().rev().map(Revision::reversed).collect())
    }

    /// The files that are no longer as the defrag left them, and why they are not.
    fn changed_since(&self, revisions: &[Revision]) -> Result<Vec<(String, String)>> {
        let topics = self.topics();
        let mut changed = Vec::new();
        for revision in revisions {
            let why = match revision.standing(&topics)? {
                Standing::Other(why) => why,
                Standing::Before(_) | Standing::After(_) => continue,
            };
            let name = revision.before.as_ref().or(revision.after.as_ref());
            changed.push((name.map_or_else(|| revision.id.to_string(), |name| name.name.clone()), why));
        }
        Ok(changed)
    }

    /// Takes back what is not taken back yet, and ends the batch.
    pub(crate) fn carry_on_undoing(&mut self) -> Result<usize> {
        let revisions = self.backwards()?;
        let mut count = 0;
        let mut is_whole = true;
        for revision in &revisions {
            match self.make(std::slice::from_ref(revision), &[])? {
                // A note that the defrag made is gone, which is as before too, but no note.
                Ok(()) => count += usize::from(revision.after.is_some()),
                Err(why) => {
                    is_whole = false;
                    self.reporter.warn(&format!("not taken back: {why}"));
                }
            }
        }
        for id in applied(self.batch()?)?.into_iter().flat_map(|applied| applied.deleted) {
            self.reporter
                .warn(&format!("{id} is not brought back: it was deleted for good (memory-remove --purge)"));
        }
        // What somebody took back is not asked about again until it changes.
        let mut seen = DefragLedger::load(self.root)?;
        for revision in &revisions {
            if let Some(after) = revision.after.as_ref().filter(|after| after.place == Place::Topics) {
                seen.see(revision.id.clone(), after.entry()?.mark());
            }
        }
        seen.all_tiers_done();
        self.forget_gone(&mut seen)?;
        seen.save(self.root)?;
        self.refresh_targets()?;
        self.record("defrag undone".to_owned(), revisions.iter().map(|revision| &revision.id));
        // Last: as long as it is there, the next run does all of this again.
        if is_whole {
            self.batch()?.end()?;
        } else {
            // What somebody changed at that moment has its earlier text nowhere else.
            let batch = self.batch()?;
            file::remove(&batch.file(MARK))?;
            self.reporter.warn(&format!("what these notes were before stays in \"{}\"", batch.dir.display()));
        }
        Ok(count)
    }
}
