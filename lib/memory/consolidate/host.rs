//! What the machine's tasks do to a store of files: the queue, the notes, the history, AGENTS.md.

use crate::base::error::{Error, Result};
use crate::memory::budget::Allowance;
use crate::memory::consolidate::ask::{Material, OWN_WORDS, Session};
use crate::memory::consolidate::history::{slice, text_name};
use crate::memory::consolidate::judge::Known;
use crate::memory::consolidate::plan::PlannedNote;
use crate::memory::consolidate::queue::{Fetched, Queue, entries, waiting};
use crate::memory::consolidate::related::related;
use crate::memory::consolidate::work::{BatchSource, Slice, Written};
use crate::memory::consolidate::write::write;
use crate::memory::consolidate::{Consolidate, Done, Loaded, Task};
use crate::memory::hash::hash;
use crate::memory::pipeline::runner::{Host, Run, TakeUp};
use crate::memory::pipeline::saved::{Kind, Progress};
use crate::memory::section;
use crate::store::batch::Batches;
use crate::store::entry::EntryId;
use crate::store::history;
use crate::store::persistence::{Note, Persistence};
use crate::store::place::Root;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The least room for sessions in a prompt, in bytes.
const LEAST_ROOM: usize = 1000;

pub(crate) struct ConsolidateHost<'a, P> {
    pub(crate) machine: Consolidate<'a>,
    pub(crate) notes: P,
    pub(crate) queue: Queue,
    /// What this run wrote.
    pub(crate) written: Vec<Written>,
    /// What it wrote, or a dry run would have written, as planned.
    pub(crate) planned: Vec<PlannedNote>,
    pub(crate) warnings: Vec<String>,
}

/// Room for sessions in one prompt, and for existing notes, in bytes.
fn room(max: usize) -> Result<(usize, usize)> {
    let free = max.saturating_sub(OWN_WORDS);
    let (sessions, related) = (free - free / 4, free / 4);
    if sessions < LEAST_ROOM {
        return Err(Error::config(format!("llm.maxPromptBytes of {max} leaves no room for a session"))
            .hint(format!("set it to {} or more", OWN_WORDS + 2 * LEAST_ROOM)));
    }
    Ok((sessions, related))
}

impl<'a, P: Persistence> Host for ConsolidateHost<'a, P> {
    type Machine = Consolidate<'a>;

    fn machine(&self) -> &Consolidate<'a> {
        &self.machine
    }

    fn batches(root: &Root) -> (Batches, Batches, &'static str) {
        (Batches::of_queue(root), Batches::of_defrag(root), "memory-defrag")
    }

    fn perform(&mut self, task: Task, run: &mut Run) -> Result<Done> {
        let max = self.machine.max_prompt_bytes;
        Ok(match task {
            Task::LoadQueue => Done::Loaded(self.load(run)?),
            Task::FetchHistory { sources } => {
                let Fetched { sources, parts, verdicts } = self.queue.fetch(sources, room(max)?.0, run)?;
                Done::Fetched { sources, parts, verdicts }
            }
            Task::Gather { sources, slices } => Done::Gathered(self.gather(&sources, &slices, run)?),
            Task::LookUp { updatable } => Done::Found(self.look_up(&updatable, run)?),
            Task::Warn(warnings) => {
                // A dry run shows them with its plan.
                if !run.is_dry() {
                    warnings.iter().for_each(|warning| run.reporter.warn(warning));
                }
                self.warnings.extend(warnings);
                Done::Warned
            }
            Task::Write { note, at } => Done::Written(self.write(*note, at, run)?),
            Task::Consume { stretches } => {
                self.queue.consume(&stretches, run)?;
                Done::Consumed
            }
            Task::MarkProcessed { sources, verdicts } => {
                if run.is_dry() {
                    let said = verdicts.iter().filter(|(_, verdict)| verdict.is_worth_saying());
                    said.for_each(|(id, verdict)| run.reporter.warn(&format!("{id}: {verdict}")));
                }
                self.queue.mark(&sources, &verdicts, run)?;
                Done::Marked
            }
            Task::Commit { written } => {
                self.commit(&written, run);
                Done::Committed
            }
            Task::Refresh => {
                refresh(run);
                Done::Refreshed
            }
        })
    }

    fn only_reads(task: &Task) -> bool {
        matches!(task, Task::Gather { .. } | Task::LookUp { .. } | Task::Warn(_))
    }

    fn begins_again(&self) -> bool {
        self.queue.limit > 0
    }

    fn waits_for_stuck(&self) -> bool {
        false
    }

    fn refresh_targets(&mut self, _: &Run) -> Result<()> {
        Ok(())
    }

    fn take_up(&self, _: &Progress, _: bool, _: &Run) -> TakeUp {
        TakeUp::CarryOn
    }

    fn keeps(&self, _: &Run, _: &Progress) -> Result<bool> {
        Ok(false)
    }
}

impl<P: Persistence> ConsolidateHost<'_, P> {
    /// The budget is asked before anything is claimed, so that nothing is read that cannot be asked about.
    fn load(&mut self, run: &mut Run) -> Result<Loaded> {
        if run.kind == Kind::Run
            && run.config.llm.command.is_some()
            && self.queue.limit > 0
            && let Allowance::Spent(spent) = run.caller.budget.allowance(run.env.now())?
        {
            let is_empty = waiting(run.root)? == 0;
            return Ok(if is_empty { Loaded::Nothing } else { Loaded::Spent(spent.to_string()) });
        }
        Ok(self.queue.claim(run)?.map_or(Loaded::Nothing, Loaded::Batch))
    }

    /// Everything that the next prompt shows.
    fn gather(&self, sources: &[BatchSource], slices: &[Slice], run: &Run) -> Result<Material> {
        let (batch, entries) = (run.batch()?, entries(run)?);
        let mut sessions = Vec::new();
        for part in slices {
            let Some(source) = sources.get(part.source) else { continue };
            let Some(entry) = entries.get(&source.queue_id) else { continue };
            sessions.push(Session {
                queue_id: source.queue_id.clone(),
                harness: entry.harness.name().to_owned(),
                repo: entry.context.repo.clone(),
                queued: entry.timestamp,
                part: (part.number, part.of),
                cut: source.cut,
                text: slice(&batch.file(&text_name(&source.queue_id)), part.from, part.to)?,
            });
        }
        let text: String = sessions.iter().map(|session| session.text.as_str()).collect();
        let repos: BTreeSet<&str> = sessions.iter().filter_map(|session| session.repo.as_deref()).collect();
        let room = room(self.machine.max_prompt_bytes)?.1;
        let (related, tags) = related(&self.notes, &text, &repos, room, self.machine.redactor)?;
        Ok(Material { now: run.env.now(), sessions, related, tags })
    }

    fn look_up(&self, updatable: &BTreeMap<EntryId, String>, run: &Run) -> Result<Known> {
        let unchanged = |(id, shown): (&EntryId, &String)| {
            let note = self.notes.find_own(id).ok()?;
            let body = note.entry.body();
            (hash(body) == *shown).then(|| (id.clone(), String::from_utf8_lossy(body).into_owned()))
        };
        Ok(Known {
            at: run.env.now(),
            ids: self.notes.ids()?,
            bodies: updatable.iter().filter_map(unchanged).collect(),
            entries: entries(run)?,
        })
    }

    fn write(&mut self, note: PlannedNote, at: Timestamp, run: &Run) -> Result<Written> {
        let (written, warnings) = write(&self.notes, &note, at)?;
        if !run.is_dry() {
            warnings.iter().for_each(|warning| run.reporter.warn(warning));
        }
        self.warnings.extend(warnings);
        // Told by the run that wrote it, though its batch may go on in later ones.
        self.written.push(written.clone());
        self.planned.push(note);
        Ok(written)
    }

    fn commit(&self, written: &[Written], run: &Run) {
        if run.is_dry() {
            return;
        }
        let changed: Vec<Note> =
            written.iter().filter_map(|note| self.notes.find_own(&note.id).ok()).collect();
        let message = match written {
            [one] => format!("consolidate: {}", one.title),
            all => format!("consolidate: {} notes", all.len()),
        };
        if let Err(error) = history::record(run.root, &run.config.storage, message, &changed, run.env) {
            run.reporter.warn(&error.line());
        }
    }
}

/// What was learned is before every agent at once, not only after the next defrag. The notes are safe already, so a
/// target that cannot be refreshed is a warning.
fn refresh(run: &Run) {
    if run.is_dry() {
        return;
    }
    match section::refresh(run.config, run.root, run.env.today(), run.reporter) {
        Ok(outcomes) => {
            for error in outcomes.into_iter().filter_map(|outcome| outcome.standing.err()) {
                run.reporter.warn(&format!("not refreshed: {}", error.line()));
            }
        }
        Err(error) => run.reporter.warn(&format!("no AGENTS.md was refreshed: {}", error.line())),
    }
}
