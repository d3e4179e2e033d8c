//! What the machine's tasks do to a store of files: the queue, the notes, the history, AGENTS.md.

use crate::base::error::{Error, Result};
use crate::memory::budget::Allowance;
use crate::memory::consolidate::ask::{Material, OWN_WORDS, Session};
use crate::memory::consolidate::heard::{Heard, Shown};
use crate::memory::consolidate::history::DIGEST_FRAME;
use crate::memory::consolidate::judge::Known;
use crate::memory::consolidate::output::{Facts, add_facts};
use crate::memory::consolidate::passage::Passage;
use crate::memory::consolidate::pending::{self, ForWhom, pending};
use crate::memory::consolidate::plan::{Change, KnownNote};
use crate::memory::consolidate::queue::{FRAME, Fetched, Queue, Room, entries, split, waiting};
use crate::memory::consolidate::related::{RelatedLimits, is_of_session, related};
use crate::memory::consolidate::work::{BatchSource, Outcome, Slice, Stretch, Waiting, Written};
use crate::memory::consolidate::write::write;
use crate::memory::consolidate::{Consolidate, Done, Loaded, State, Task};
use crate::memory::pipeline::runner::{Host, Rank, Run, TakeUp};
use crate::memory::pipeline::saved::{Kind, Progress};
use crate::memory::section;
use crate::memory::service::{belongs_to, count_use};
use crate::store::batch::{Batch, Batches};
use crate::store::entry::{Entry, EntryId, Scope};
use crate::store::history as commits;
use crate::store::journal::Waiting as Claim;
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::proposal::{Proposal, ProposalId};
use jiff::Timestamp;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The least room for sessions in a prompt, in bytes.
const LEAST_ROOM: usize = 1000;

pub(crate) struct ConsolidateHost<'a, P> {
    pub(crate) machine: Consolidate<'a>,
    pub(crate) notes: P,
    pub(crate) queue: Queue,
    pub(crate) heard: Heard,
    /// How many bytes of notes a prompt shows whole.
    pub(crate) max_note_bytes: usize,
    /// The targets show what the notes say.
    pub(crate) is_refreshed: bool,
    /// The batch for which this process last looked up which notes there are. No earlier process can have written any of
    /// the plan that was made then.
    pub(crate) looked_up: Option<String>,
    /// What this run wrote.
    pub(crate) written: Vec<Written>,
    /// What it put before the person.
    pub(crate) waiting: Vec<Waiting>,
    /// What it made, or a dry run would have made, as planned.
    pub(crate) planned: Vec<Change>,
    pub(crate) warnings: Vec<String>,
}

/// How a prompt of at most `max` bytes is shared out.
pub(super) fn room(max: usize) -> Result<Room> {
    let free = max.saturating_sub(OWN_WORDS);
    let (sessions, related) = (free - free / 4, free / 4);
    if sessions < LEAST_ROOM {
        return Err(Error::config(format!("llm.maxPromptBytes of {max} leaves no room for a session"))
            .hint(format!("set it to {} or more", OWN_WORDS + 2 * LEAST_ROOM)));
    }
    Ok(Room { sessions, earlier: sessions / 4, related })
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
                let repos = repos(&sources, run)?;
                let facts = OnceCell::new();
                let facts = || Rc::clone(facts.get_or_init(|| facts_of(&self.notes, &repos).into()));
                let Fetched { sources, parts, verdicts } =
                    self.queue.fetch(sources, room(max)?, &facts, run)?;
                Done::Fetched { sources, parts, verdicts }
            }
            Task::Gather { sources, slices, wanted } => {
                Done::Gathered(self.gather(&sources, &slices, &wanted, run)?)
            }
            Task::LookUp { sources, slices, notes, changes } => {
                let found = self.look_up(&sources, &slices, (&notes, &changes), run)?;
                self.looked_up = Some(run.batch()?.id.clone());
                Done::Found(found)
            }
            Task::Warn(warnings) => {
                // A dry run shows them with its plan.
                if !run.is_dry() {
                    warnings.iter().for_each(|warning| run.reporter.warn(warning));
                }
                self.warnings.extend(warnings);
                Done::Warned
            }
            Task::Write { change, at } => Done::Written(self.write(change, at, run)?),
            Task::Consume { stretches } => {
                let cited = self.queue.consume(&stretches, &mut self.heard, run)?;
                self.count_uses(&cited, run)?;
                Done::Consumed
            }
            Task::MarkProcessed { sources, verdicts } => {
                if run.is_dry() {
                    let said = verdicts.iter().filter(|(_, verdict)| verdict.is_worth_saying());
                    said.for_each(|(id, verdict)| run.reporter.warn(&format!("{id}: {verdict}")));
                }
                self.queue.mark(&sources, &verdicts, run)?;
                self.heard.forget(run.batch()?);
                Done::Marked
            }
            Task::Commit { written, waiting } => {
                self.commit(&written, &waiting, run);
                Done::Committed
            }
            Task::Refresh => {
                refresh(run);
                self.is_refreshed = true;
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

    fn turn(state: &State) -> Option<usize> {
        state.next_turn()
    }

    /// Each is one session in parts: what shares a call has no second part.
    fn rank(&self, batch: &Batch, part: usize) -> Result<Option<Rank>> {
        let claimed = batch.claimed()?;
        let is_meant =
            |waiting: &&Claim| self.queue.only.as_ref().is_none_or(|only| only.contains(&waiting.id));
        let first = claimed.iter().find(is_meant);
        if first.is_none() && self.queue.only.is_some() {
            return Ok(None);
        }
        let is_past = first.is_some_and(|waiting| waiting.entry.context.past);
        let at = first.map_or(Timestamp::MIN, |waiting| waiting.entry.timestamp);
        Ok(Some(Rank { is_past, part, at }))
    }

    /// A session of which nothing has been shown has had the fewest turns.
    fn queue_goes_first(&mut self, rank: &Rank, run: &Run) -> Result<bool> {
        Ok(self.queue.is_next_past(run)?.is_some_and(|is_past| is_past <= rank.is_past))
    }

    fn waits_for_stuck(&self) -> bool {
        false
    }

    /// One alone has had its try; of several it is not known which is to blame.
    fn split(&self, batch: &Batch, run: &Run) -> Result<()> {
        split(batch, run)
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
    fn gather(
        &mut self,
        sources: &[BatchSource],
        slices: &[Slice],
        wanted: &[EntryId],
        run: &Run,
    ) -> Result<Material> {
        let entries = entries(sources, run)?;
        let all = self.heard.shown(run.batch()?, &stretches(sources, slices))?;
        let mut sessions = Vec::new();
        let mut used = 0;
        for (part, Shown { earlier, left_out, passages }) in slices.iter().zip(all) {
            let Some(source) = sources.get(part.source) else { continue };
            let Some(entry) = entries.get(&source.queue_id) else { continue };
            let repo = entry.context.repo.as_ref().map_or(0, String::len);
            used += FRAME + DIGEST_FRAME + repo;
            used += earlier.iter().chain(&passages).map(Passage::bytes).sum::<usize>();
            sessions.push(Session {
                queue_id: source.queue_id.clone(),
                harness: entry.harness.name().to_owned(),
                thread_id: entry.thread_id().map(str::to_owned),
                repo: entry.context.repo.clone(),
                queued: entry.timestamp,
                is_note: matches!(entry.retrieval, Retrieval::Inline { .. }),
                part: (part.number, part.of),
                cut: source.cut,
                earlier,
                left_out,
                passages,
            });
        }
        // What the sessions leave of their room is for notes and for what waits.
        let room = room(self.machine.max_prompt_bytes)?;
        let (proposals, _) = self.notes.proposals()?;
        let room_for_changes = if proposals.is_empty() { 0 } else { (room.related / 2).min(pending::ROOM) };
        let room = room.related - room_for_changes + room.sessions.saturating_sub(used);
        let limits = RelatedLimits { room, whole: self.max_note_bytes };
        let (related, tags) = related(&self.notes, &sessions, wanted, limits, self.machine.redactor)?;
        let whom = ForWhom {
            repos: sessions.iter().filter_map(|session| session.repo.as_deref()).collect(),
            is_outside: sessions.iter().any(|session| session.repo.is_none()),
            notes: related.iter().map(|note| &note.id).collect(),
        };
        let waiting = pending(&proposals, &whom, room_for_changes, self.machine.redactor);
        Ok(Material { now: run.env.now(), sessions, related, waiting, tags })
    }

    fn look_up(
        &mut self,
        sources: &[BatchSource],
        slices: &[Slice],
        (notes, changes): (&[EntryId], &[ProposalId]),
        run: &Run,
    ) -> Result<Known> {
        let entries = entries(sources, run)?;
        let known = |id: &EntryId| {
            let note = self.notes.own(id).transpose()?;
            Some(note.map(|note| {
                let is_archived = note.place == Place::Archive;
                (id.clone(), KnownNote { entry: note.entry, is_archived })
            }))
        };
        let (ids, tags) = self.notes.ids_and(|note| match note.place {
            Place::Topics => note.entry.meta().tags.clone(),
            Place::Archive => Vec::new(),
        })?;
        // One that nobody has, as a model may name it, would be looked for in every file.
        let notes: BTreeMap<EntryId, KnownNote> =
            notes.iter().filter(|id| ids.contains(id)).filter_map(known).collect::<Result<_>>()?;
        let made = notes
            .iter()
            .filter(|(_, note)| entries.values().any(|entry| is_made_by(&note.entry, entry)))
            .map(|(id, _)| id.clone())
            .collect();
        let (proposals, _) = self.notes.proposals()?;
        let is_shown = |proposal: &&Proposal| changes.contains(&proposal.id);
        if !proposals.is_empty() {
            self.heard.follow_all();
        }
        Ok(Known {
            made,
            waiting: proposals.iter().filter(is_shown).cloned().collect(),
            proposals,
            at: run.env.now(),
            ids,
            notes,
            tags: tags.into_iter().flatten().collect(),
            record: self.heard.record(run.batch()?, &stretches(sources, slices))?,
            entries,
        })
    }

    fn write(&mut self, change: Change, at: Timestamp, run: &Run) -> Result<Outcome> {
        let may_be_written = self.looked_up.as_ref() != Some(&run.batch()?.id);
        let (outcome, warnings) = write(&self.notes, &change, at, may_be_written)?;
        if !run.is_dry() {
            warnings.iter().for_each(|warning| run.reporter.warn(warning));
        }
        self.warnings.extend(warnings);
        // Told by the run that wrote it, though its batch may go on in later ones.
        match &outcome {
            Outcome::Note(written) => self.written.push(written.clone()),
            Outcome::Waits(waiting) => self.waiting.push(waiting.clone()),
            Outcome::Unchanged => {}
        }
        self.planned.push(change);
        Ok(outcome)
    }

    /// What a session shows of the use of notes. One that is gone is nobody's fault.
    fn count_uses(&self, cited: &BTreeSet<EntryId>, run: &Run) -> Result<()> {
        if cited.is_empty() {
            return Ok(());
        }
        let known = self.notes.ids()?;
        for id in cited.intersection(&known) {
            if let Err(why) = count_use(&self.notes, id, run.env.now()) {
                run.reporter.warn(&format!("the use of {id} is not counted: {}", why.message()));
            }
        }
        Ok(())
    }

    fn commit(&self, written: &[Written], waiting: &[Waiting], run: &Run) {
        let storage = &run.config.storage;
        // The store is not listed for a commit that is switched off.
        if run.is_dry() || !storage.auto_commit {
            return;
        }
        let changed: Vec<Note> =
            written.iter().filter_map(|note| self.notes.find_own(&note.id).ok()).collect();
        // Why something waits no longer is found in the history.
        let withdrawn: Vec<String> = waiting.iter().filter_map(Waiting::withdrawal).collect();
        let message = match (written, waiting) {
            ([one], _) => format!("consolidate: {}", one.title),
            ([], [one]) if one.withdrawn.is_some() => format!("consolidate: withdrawn: {}", one.title),
            ([], [one]) => format!("consolidate: proposed: {}", one.title),
            ([], all) => format!("consolidate: {} proposals", all.len()),
            (all, _) => format!("consolidate: {} notes", all.len()),
        };
        let (mut proposals, _) = self.notes.proposals().unwrap_or_default();
        proposals.retain(|proposal| waiting.iter().any(|waiting| waiting.id == proposal.id));
        let sources = changed.iter().flat_map(|note| &note.entry.meta().sources);
        let sources = sources.chain(proposals.iter().flat_map(|proposal| &proposal.session));
        let count = changed.len() + waiting.len();
        if let Err(error) = commits::record(run.root, storage, (message, withdrawn), sources, count, run.env)
        {
            run.reporter.warn(&error.line());
        }
    }
}

/// Was the note made in this session, in whatever run, and is it nobody's own since?
fn is_made_by(note: &Entry, entry: &QueueEntry) -> bool {
    let thread = entry.thread_id();
    note.kept().is_none() && is_of_session(note.meta(), entry.harness.name(), thread, entry.timestamp)
}

/// The repositories of these entries.
fn repos(sources: &[BatchSource], run: &Run) -> Result<BTreeSet<String>> {
    let repos = entries(sources, run)?.into_values().filter_map(|entry| entry.context.repo);
    Ok(repos.collect())
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

fn stretches(sources: &[BatchSource], slices: &[Slice]) -> Vec<Stretch> {
    slices.iter().filter_map(|slice| slice.stretch(sources)).collect()
}

/// What was learned is before every agent at once, not only after the next defrag. The notes are safe already, so a
/// target that cannot be refreshed is a warning.
pub(crate) fn refresh(run: &Run) {
    if run.is_dry() {
        return;
    }
    section::refresh_after_change(run.config, run.root, run.env.today(), run.reporter);
}
