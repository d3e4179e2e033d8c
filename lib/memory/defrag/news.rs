//! What is to be asked about: what no call has seen yet, unless calls about it have failed and it rests. What becomes of it
//! is remembered in the ledger and taken into the history.

use crate::base::error::{ErrorKind, Result};
use crate::base::text::counted;
use crate::memory::defrag::corpus::{id, reach, read};
use crate::memory::defrag::plan::DefragPlan;
use crate::memory::defrag::{DefragWork, Part};
use crate::memory::pipeline::Failure;
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::store::entry::EntryId;
use crate::store::history::{self, Commit};
use crate::store::ledger::{DefragLedger, Uses};
use crate::store::persistence::{Note, Persistence};
use crate::store::revision::Revision;
use std::collections::BTreeSet;

/// What calls have seen so far, and what may be asked about now.
pub(super) struct News<'a> {
    seen: DefragLedger,
    run: &'a RunEnv<'a>,
    /// Asks about what has not changed, too.
    is_forced: bool,
    /// The command's hash: another command may do better.
    command: String,
}

impl<'a> News<'a> {
    pub(super) fn load(run: &'a RunEnv, is_forced: bool) -> Result<News<'a>> {
        let command = run.asked();
        Ok(News { seen: DefragLedger::load(run.root)?, run, is_forced, command })
    }

    /// Whether there is a note that the last defrag has not seen as it is now, or a decision that it has left.
    pub(super) fn is_any(&self, notes: &[Note]) -> bool {
        notes.iter().any(|note| self.is_asked(note) || self.are_tiers_due(&reach(note.entry.meta())))
    }

    /// Whether no call has seen this note as it is, and one may be made for it. That its last day is over is news, once.
    pub(super) fn is_asked(&self, note: &Note) -> bool {
        let (id, mark) = (id(note), note.entry.fingerprint());
        let is_over = note.entry.meta().is_expired(self.run.env.today());
        let is_seen = self.seen.has(id, &mark) && (!is_over || self.seen.expired.contains(id));
        self.is_forced || !is_seen && !self.rests(id.as_str(), &mark)
    }

    /// Whether it is to be decided what is hot among these notes, and a call may be made for that.
    pub(super) fn are_tiers_due(&self, reach: &str) -> bool {
        self.seen.tiers_due.contains(reach) && !self.rests(reach, "")
    }

    /// What failed night after night is skipped for a while; not when a person asks.
    fn rests(&self, key: &str, mark: &str) -> bool {
        let skips = self.run.kind == Kind::Run && !self.is_forced;
        skips && self.seen.is_postponed(key, &self.asked_of(mark), self.run.env.now())
    }

    /// What a call was about, and who was asked.
    fn asked_of(&self, mark: &str) -> String {
        format!("{mark} {}", self.command)
    }

    /// Remembers what no call will ever see.
    pub(super) fn pass_over(&mut self, notes: &[&Note]) -> Result<()> {
        for note in notes {
            self.seen.see(id(note).clone(), note.entry.fingerprint());
            self.seen.see_expired(id(note), note.entry.meta().is_expired(self.run.env.today()));
        }
        if self.run.is_dry() || notes.is_empty() { Ok(()) } else { self.seen.save(self.run.root) }
    }

    /// Remembers what has been seen: what was shown as it was shown, what was changed as it is now.
    pub(super) fn take_in<P: Persistence>(
        mut self,
        notes: &P,
        work: &DefragWork,
        done: &DefragPlan,
    ) -> Result<()> {
        let (there, broken) = read(notes)?;
        let is_gone =
            |named: &String| !broken.is_empty() && there.iter().all(|note| id(note).as_str() != named);
        // Where a note could not be read, the operation is asked for again.
        let unread =
            done.dropped.iter().filter(|dropped| dropped.is_unread || dropped.ids.iter().any(is_gone));
        let unread: BTreeSet<&str> = unread.flat_map(|dropped| &dropped.ids).map(String::as_str).collect();
        for (id, mark) in work.shown.iter().filter(|(id, _)| !unread.contains(id.as_str())) {
            self.seen.see(id.clone(), mark.clone());
            self.seen.see_expired(id, work.own.expired.contains(id));
        }
        for revision in done.operations.iter().flat_map(|planned| &planned.revisions) {
            let Some(id) = revision.id() else { continue };
            // One that somebody else has changed is still to be looked at.
            let is_known = match &revision.before {
                Some(before) => self.seen.has(&id, &before.entry()?.fingerprint()),
                None => true,
            };
            if let (true, Some(after)) = (is_known, &revision.after) {
                self.seen.see(id, after.entry()?.fingerprint());
            }
        }
        match work.part() {
            Some(Part::Group(reach, _)) => {
                self.seen.tiers_due.insert(reach.clone());
            }
            Some(Part::Whole(reach, _) | Part::Tiers(reach)) => self.seen.tiers_done(reach),
            None => {}
        }
        forget_gone(&mut self.seen, notes)?;
        self.seen.save(self.run.root)
    }

    /// Remembers that the call about the part under way has failed, where it was about what no call had seen.
    pub(super) fn take_failure(mut self, work: &DefragWork, failure: &Failure) -> Result<()> {
        let (Failure::Command(why) | Failure::Reply(why)) = failure else { return Ok(()) };
        let new = work.shown.iter().filter(|(id, mark)| !self.seen.has(id, mark));
        let mut about: Vec<(&str, &str)> = new.map(|(id, mark)| (id.as_str(), mark.as_str())).collect();
        match work.part() {
            Some(Part::Tiers(reach)) => about.push((reach, "")),
            // It decides about the tiers, too.
            Some(Part::Whole(reach, _)) if self.seen.tiers_due.contains(reach) => about.push((reach, "")),
            _ => {}
        }
        let now = self.run.env.now();
        let mut until = now;
        for (key, mark) in about {
            let of = self.asked_of(mark);
            until = until.max(self.seen.fail(key, &of, why, &work.batch, now));
        }
        self.seen.save(self.run.root)?;
        if until > now {
            let until = until.strftime("%Y-%m-%d %H:%M");
            self.run
                .reporter
                .warn(&format!("it has failed before, and is not asked again until {until} UTC or --force"));
        }
        Ok(())
    }

    /// Nothing is asked, but there is something that could be.
    pub(super) fn tell_what_rests(&self) {
        let Some((count, failure)) = self.seen.postponed(self.run.env.now()) else { return };
        let Some(until) = failure.not_before else { return };
        let until = until.strftime("%Y-%m-%d %H:%M");
        let notes = counted(count, "note is", "notes are");
        self.run.reporter.warn(&format!(
            "{notes} not asked about until {until} UTC (--force asks now), because that failed {} times: {}",
            failure.tries, failure.error
        ));
    }
}

/// Remembers how often each note has been read, for AGENTS.md.
pub(super) fn remember_use(notes: &[Note], run: &RunEnv) -> Result<()> {
    let used = Uses::of(notes.iter().map(|note| (id(note).clone(), note.entry.meta().used)));
    // A damaged one is replaced.
    match Uses::load(run.root) {
        Ok(before) if before == used => Ok(()),
        Err(error) if error.kind() == ErrorKind::Config => Err(error),
        Ok(_) | Err(_) => used.save(run.root),
    }
}

/// Forgets the notes that are gone.
pub(super) fn forget_gone<P: Persistence>(seen: &mut DefragLedger, notes: &P) -> Result<()> {
    let (there, broken) = read(notes)?;
    // One that cannot be read now is not gone.
    if !broken.is_empty() {
        return Ok(());
    }
    let there: BTreeSet<&EntryId> = there.iter().map(id).collect();
    seen.keep(|id| there.contains(id));
    Ok(())
}

/// Takes what became of notes into the history. What goes wrong is a warning.
pub(super) fn record<'r, P: Persistence>(
    notes: &P,
    message: String,
    revisions: impl Iterator<Item = &'r Revision>,
    proposed: usize,
    run: &RunEnv,
) {
    let ids: BTreeSet<EntryId> = revisions.filter_map(Revision::id).collect();
    let changed: Vec<Note> = ids.iter().filter_map(|id| notes.find_own(id).ok()).collect();
    let sources = changed.iter().flat_map(|note| &note.entry.meta().sources);
    let count = changed.len() + proposed;
    if count == 0 {
        return;
    }
    let storage = &run.config.storage;
    let commit = Commit::of(storage, message, sources, count);
    if let Err(error) = history::record(run.root, storage, &commit, run.env) {
        run.reporter.warn(&error.line());
    }
}
