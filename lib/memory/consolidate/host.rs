//! What the states of the pipeline do to a store of files: the queue, the notes, the history, AGENTS.md.

use crate::base::error::{Error, Result};
use crate::memory::consolidate::Consolidate;
use crate::memory::consolidate::ask::{Material, ShownSession};
use crate::memory::consolidate::grounds::{self, Grounds, checkouts, edit_in_use};
use crate::memory::consolidate::land::Knowledge;
use crate::memory::consolidate::output::{Facts, add_facts};
use crate::memory::consolidate::pending::{self, pending};
use crate::memory::consolidate::plan::{Plan, PlannedChange, Waiting, source_of};
use crate::memory::consolidate::queue::{Queue, consume, entries, fail, waiting};
use crate::memory::consolidate::ran::Runs;
use crate::memory::consolidate::readings::Readings;
use crate::memory::consolidate::related::{RelatedQuery, is_of_session};
use crate::memory::consolidate::work::{ConsolidateWork, PromptRoom, Verdict};
use crate::memory::consolidate::write::{Made, write};
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::memory::pipeline::host::{Host, Rank};
use crate::memory::pipeline::{Begun, Failure};
use crate::memory::section::{self, Which};
use crate::memory::service::{belongs_to, count_use};
use crate::memory::waiting::landed;
use crate::store::batch::{Batch, Batches};
use crate::store::change::Change;
use crate::store::entry::{Entry, EntryId, Meta, Scope, Source, repos};
use crate::store::history::{self as commits, Commit};
use crate::store::journal::Journal;
use crate::store::ledger::{AskedNotes, Tries};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::place::Root;
use jiff::Timestamp;
use jiff::civil::Date;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

pub struct ConsolidateHost<'a, P> {
    pub pipeline: Consolidate<'a>,
    pub notes: P,
    pub queue: Queue,
    pub readings: Readings,
    /// How many bytes of notes a prompt shows whole.
    pub max_note_bytes: usize,
    /// This run has refreshed all targets.
    pub is_refreshed: bool,
    /// The batch for which this process last looked up which notes there are. No earlier process can have written any of
    /// the plan that was made then.
    pub looked_up: Option<String>,
    /// What this run wrote.
    pub made: Made,
    /// The same, or what a dry run would have written, as planned.
    pub planned: Vec<PlannedChange>,
}

impl<'a, P: Persistence> Host for ConsolidateHost<'a, P> {
    type Pipeline = Consolidate<'a>;

    fn pipeline(&self) -> &Consolidate<'a> {
        &self.pipeline
    }

    fn batches(root: &Root) -> (Batches, Batches, &'static str) {
        (Batches::of_queue(root), Batches::of_defrag(root), "memory-defrag")
    }

    /// The budget is asked before anything is claimed, so that nothing is read that cannot be asked about.
    fn begin(&mut self, run: &mut RunEnv) -> Result<Begun<ConsolidateWork>> {
        if run.kind == Kind::Run
            && run.config.llm.command.is_some()
            && self.queue.limit > 0
            && let Some(spent) = run.budget.spent(run.env.now())?
        {
            let waits = !waiting(run.root)?.is_empty();
            return Ok(if waits { Begun::Unable(Failure::Spent(spent)) } else { Begun::Nothing });
        }
        Ok(self.queue.claim(run)?.map_or(Begun::Nothing, Begun::Work))
    }

    fn divide(&mut self, work: ConsolidateWork, run: &mut RunEnv) -> Result<ConsolidateWork> {
        let all = entries(&work.own.queue_ids, run.batch()?, run)?;
        if let Err(why) = grounds::follow(&self.notes, &checkouts(all.values()), run.env) {
            run.reporter.warn(&format!("what notes rest on is not followed: {}", why.message()));
        }
        let repos: BTreeSet<String> = all.into_values().filter_map(|entry| entry.context.repo).collect();
        let facts = LazyCell::new(|| facts_of(&self.notes, &repos));
        self.queue.fetch(work, PromptRoom::of(self.pipeline.max_prompt_bytes)?, &facts, run)
    }

    fn gather(&mut self, work: &ConsolidateWork, run: &RunEnv) -> Result<Material> {
        let entries = entries(&work.own.queue_ids, run.batch()?, run)?;
        let sessions = self.readings.shown(run.batch()?, work.slices(), &entries)?;
        let used: usize = sessions.iter().map(ShownSession::bytes).sum();
        // What the sessions leave of their room is for notes and for what waits.
        let room = PromptRoom::of(self.pipeline.max_prompt_bytes)?;
        let (proposals, _) = self.notes.proposals()?;
        let room_for_changes = if proposals.is_empty() { 0 } else { (room.related / 2).min(pending::ROOM) };
        let room = room.related - room_for_changes + room.sessions.saturating_sub(used);
        let query = RelatedQuery {
            sessions: &sessions,
            wanted: work.second_look.as_ref().map_or(&[], |look| &look.wanted),
            here: &checkouts(entries.values()),
            asked: &AskedNotes::load(run.root)?,
            redactor: self.pipeline.redactor,
            room,
            whole: self.max_note_bytes,
        };
        let (related, tags) = query.find(&self.notes)?;
        let is_in = |repo: Option<&str>| sessions.iter().any(|session| session.repo() == repo);
        let notes: Vec<&EntryId> = related.iter().map(|note| &note.id).collect();
        let waiting = pending(&proposals, is_in, &notes, room_for_changes, self.pipeline.redactor);
        Ok(Material { now: run.env.now(), sessions, related, waiting, tags })
    }

    fn look_up(&mut self, work: &ConsolidateWork, run: &RunEnv) -> Result<Knowledge> {
        let entries = entries(&work.own.queue_ids, run.batch()?, run)?;
        let known = |id: &EntryId| Some(self.notes.own(id).transpose()?.map(|note| (id.clone(), note)));
        let (ids, tags) = self.notes.ids_and(|note| match note.place {
            Place::Topics => note.entry.meta().tags.clone(),
            Place::Archive => Vec::new(),
        })?;
        // One that nobody has, as a model may name it, would be looked for in every file.
        let notes: BTreeMap<EntryId, Note> =
            work.notes().filter(|id| ids.contains(id)).filter_map(known).collect::<Result<_>>()?;
        // Made in one of these sessions, in whatever run, and nobody's own since.
        let sources: Vec<Source> =
            entries.values().map(|entry| source_of(entry, self.pipeline.redactor)).collect();
        let is_made = |note: &Entry| {
            note.kept().is_none() && sources.iter().any(|source| is_of_session(note.meta(), source))
        };
        let made = notes.iter().filter(|(_, note)| is_made(&note.entry)).map(|(id, _)| id.clone()).collect();
        let (proposals, _) = self.notes.proposals()?;
        if !proposals.is_empty() {
            self.readings.follow_all();
        }
        let record = self.readings.record(run.batch()?, work.slices())?;
        self.looked_up = Some(run.batch()?.id.clone());
        let tags = tags.into_iter().flatten().collect();
        let on = self.readings.branches(run.batch()?, work.slices())?;
        let mut grounds = Grounds::of(&entries, &on, &record.touched, notes.values(), run.env);
        let runs = self.readings.runs(run.batch()?, work.slices(), &entries)?;
        let failed = notes.iter().filter(|(_, note)| !runs.against(&note.entry).is_empty());
        grounds.changed.extend(failed.map(|(id, _)| id.clone()));
        Ok(Knowledge { at: run.env.now(), ids, notes, made, tags, entries, record, proposals, grounds })
    }

    /// One change, or, after the last, that what was shown has been seen.
    fn apply(&mut self, work: &ConsolidateWork, mut plan: Plan, step: usize, run: &RunEnv) -> Result<Made> {
        let mut made = Made::default();
        if step == 0 {
            made.warnings.append(&mut plan.warnings);
        }
        match plan.changes.into_iter().nth(step) {
            None => {
                landed(&self.notes, &self.written(&work.own.made))?;
                if !run.is_dry() && !work.own.asked.is_empty() {
                    let mut asked = AskedNotes::load(run.root)?;
                    asked.0.extend(work.own.asked.clone());
                    asked.save(run.root)?;
                }
                let (cited, runs) = consume(work, &mut self.readings, run)?;
                if let Err(why) = self.count_uses(&cited, run) {
                    run.reporter.warn(&format!("the uses of notes are not counted: {}", why.message()));
                }
                if let Err(why) = self.renew(&runs, run) {
                    run.reporter.warn(&format!("notes are not renewed: {}", why.message()));
                }
            }
            Some(change) => {
                let may_be_written = self.looked_up.as_ref() != Some(&run.batch()?.id);
                made.extend(write(&self.notes, &change, plan.at, may_be_written)?);
                self.planned.push(change);
            }
        }
        // A dry run shows them with its plan.
        if !run.is_dry() {
            made.warnings.iter().for_each(|warning| run.reporter.warn(warning));
        }
        // Told by the run that wrote it, though its batch may go on in later ones.
        self.made.extend(made.clone());
        Ok(made)
    }

    fn close(&mut self, work: &ConsolidateWork, _: Option<&Failure>, run: &RunEnv) -> Result<()> {
        if run.is_dry() {
            let said = work.own.verdicts.iter().filter(|(_, verdict)| **verdict != Verdict::Processed(None));
            said.for_each(|(id, verdict)| run.reporter.warn(&format!("{id}: {verdict}")));
        }
        self.queue.mark(&work.own, run)?;
        self.readings.forget(run.batch()?);
        Ok(())
    }

    /// All targets once in a run; after that, those of the notes that the batch changed.
    fn refresh(&mut self, work: &ConsolidateWork, run: &RunEnv) -> Result<()> {
        let changed = self.written(&work.own.made);
        let repos = repos(changed.iter().flat_map(|note| &note.entry.meta().sources));
        // Where a change waits is shown wherever its note is.
        let is_rest = std::mem::replace(&mut self.is_refreshed, true) && work.own.made.waiting.is_empty();
        refresh(if is_rest { Which::Of(&repos) } else { Which::All }, run);
        Ok(())
    }

    fn commit(&mut self, work: &ConsolidateWork, run: &RunEnv) -> Result<()> {
        let storage = &run.config.storage;
        // The store is not listed for a commit that is switched off.
        if run.is_dry() || !storage.auto_commit {
            return Ok(());
        }
        let Made { written, waiting, .. } = &work.own.made;
        // Why something waits no longer is found in the history.
        let withdrawn: Vec<String> = waiting.iter().filter_map(Waiting::withdrawal).collect();
        let message = match (&written[..], &waiting[..]) {
            ([one], _) => format!("consolidate: {}", one.title),
            ([], [one]) if one.withdrawn.is_some() => format!("consolidate: withdrawn: {}", one.title),
            ([], [one]) => format!("consolidate: proposed: {}", one.title),
            ([], all) => format!("consolidate: {} proposals", all.len()),
            (all, _) => format!("consolidate: {} notes", all.len()),
        };
        let (mut proposals, _) = self.notes.proposals().unwrap_or_default();
        proposals.retain(|proposal| waiting.iter().any(|waiting| waiting.id == proposal.id));
        let changed = self.written(&work.own.made);
        let sources = changed.iter().flat_map(|note| &note.entry.meta().sources);
        let sources = sources.chain(proposals.iter().flat_map(|proposal| &proposal.session));
        let commit = Commit::of(storage, message, sources, written.len() + waiting.len());
        let commit = Commit { body: withdrawn, ..commit };
        if let Err(error) = commits::record(run.root, storage, &commit, run.env) {
            run.reporter.warn(&error.line());
        }
        Ok(())
    }

    fn begins_again(&self) -> bool {
        self.queue.limit > 0
    }

    /// Each is one session in parts: what shares a call has no second part.
    fn rank(&self, batch: &Batch, work: &ConsolidateWork, run: &RunEnv) -> Result<Option<Rank>> {
        let claimed = entries(&work.own.queue_ids, batch, run)?;
        let is_meant = |id: &String| self.queue.only.as_ref().is_none_or(|only| only.contains(id));
        let first = claimed.iter().find(|(id, _)| is_meant(id)).map(|(_, entry)| entry);
        if first.is_none() && self.queue.only.is_some() {
            return Ok(None);
        }
        let is_past = first.is_some_and(|entry| entry.context.past);
        let at = first.map_or(Timestamp::MIN, |entry| entry.timestamp);
        Ok(Some(Rank { is_past, part: work.next, at }))
    }

    /// A session of which nothing has been shown has had the fewest turns.
    fn queue_goes_first(&mut self, rank: &Rank, run: &RunEnv) -> Result<bool> {
        Ok(self.queue.is_next_past(run)?.is_some_and(|is_past| is_past <= rank.is_past))
    }

    /// An entry that has been consumed since is a conflict.
    fn claim(&self, batch: &Batch, work: &ConsolidateWork, run: &RunEnv) -> Result<()> {
        let journal = Journal::at(run.root);
        // Those that it has already, because this is not the first attempt.
        let claimed = batch.claimed()?;
        for id in &work.own.queue_ids {
            let is_claimed = match journal.read(id) {
                Ok(Some(_)) => batch.claim(id)?,
                _ => claimed.iter().any(|claimed| claimed.id == *id),
            };
            if !is_claimed {
                batch.put_all_back()?;
                return Err(Error::conflict(format!("\"{id}\" no longer waits in the queue"))
                    .hint("another run has taken it; run again without --apply"));
            }
        }
        Ok(())
    }

    /// One alone has had its try; of several it is not known which is to blame, and they are asked about one by one.
    fn split(&self, batch: &Batch, run: &RunEnv) -> Result<()> {
        let ids: Vec<String> = batch.claimed()?.into_iter().map(|claimed| claimed.id).collect();
        let mut tries = Tries::load(run.root)?;
        if let [id] = &ids[..] {
            let why = "every run that took it up was ended";
            let next = tries.fail(id, why, (&batch.id, &run.asked()), run.env.now());
            tries.save(run.root)?;
            return fail(batch, id, why, next, run);
        }
        ids.iter().for_each(|id| tries.set_alone(id));
        tries.save(run.root)
    }
}

impl<P: Persistence> ConsolidateHost<'_, P> {
    /// The notes that were written.
    fn written(&self, made: &Made) -> Vec<Note> {
        made.written.iter().filter_map(|note| self.notes.find_own(&note.id).ok()).collect()
    }

    /// What a session shows of the use of notes. One that is gone is nobody's fault.
    fn count_uses(&self, cited: &BTreeSet<EntryId>, run: &RunEnv) -> Result<()> {
        if cited.is_empty() {
            return Ok(());
        }
        let change = Change::of(&self.notes)?;
        for id in cited.intersection(&change.notes.ids()?) {
            if let Err(why) = count_use(&change, id, run.env.now()) {
                run.reporter.warn(&format!("the use of {id} is not counted: {}", why.message()));
            }
        }
        change.write()
    }

    /// Notes that say to run a command hold as long as it works.
    fn renew(&self, runs: &Runs, run: &RunEnv) -> Result<()> {
        if !runs.has_worked() {
            return Ok(());
        }
        let scan = self.notes.scan(&[Place::Topics], |note| {
            let on = runs.renewed(&note.entry, run.env.now())?;
            Some((note.entry.meta().id.clone(), on))
        })?;
        let renewed: Vec<(EntryId, Date)> = scan.found.into_iter().flatten().collect();
        if renewed.is_empty() {
            return Ok(());
        }
        let change = Change::of(&self.notes)?;
        let mut changed = Vec::new();
        for (id, on) in renewed {
            let confirm = |meta: &mut Meta| meta.confirmed = meta.confirmed.max(Some(on));
            changed.extend(edit_in_use(&change, &id, confirm)?);
        }
        change.write()?;
        // It shows the day.
        refresh(Which::Of(&repos(changed.iter().flat_map(|note| &note.entry.meta().sources))), run);
        Ok(())
    }
}

/// The facts of the notes that are known in these repositories. Where notes cannot be read, the next question will say
/// so.
fn facts_of<P: Persistence>(notes: &P, repos: &BTreeSet<String>) -> Facts {
    let scan = notes.scan(&[Place::Topics], |note| {
        let meta = note.entry.meta();
        let mut facts = Facts::new();
        if meta.scope == Scope::Global || repos.iter().any(|repo| belongs_to(meta, repo)) {
            let body = String::from_utf8_lossy(note.entry.body());
            add_facts(&format!("{}\n\n{}\n\n{body}", meta.title, meta.summary), &mut facts);
        }
        facts
    });
    scan.map_or_else(|_| Facts::new(), |scan| scan.found.into_iter().flatten().collect())
}

/// What was learned is before every agent at once, not only after the next defrag. The notes are safe already, so a
/// target that cannot be refreshed is a warning.
pub fn refresh(which: Which, run: &RunEnv) {
    if !run.is_dry() {
        section::refresh_after_change(which, run.config, run.root, run.env.today(), run.reporter);
    }
}
