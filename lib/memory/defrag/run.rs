//! A run: what a crash left first, then what the last defrag has not seen; and the same by hand.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::budget::Allowance;
use crate::memory::call::{BY_HAND, Kind, Why, reply_name, reply_path};
use crate::memory::defrag::applied::applied;
use crate::memory::defrag::desk::Desk;
use crate::memory::defrag::plan::Plan;
use crate::memory::defrag::work::Work;
use crate::memory::defrag::{Adapters, Judged, State};
use crate::memory::reply::{batch_for, no_such_batch};
use crate::store::batch::{Batch, Batches};
use std::path::PathBuf;
use std::time::Duration;

/// How a run ended.
pub(crate) enum Ended {
    /// All is as the last defrag has left it, or as this one has.
    Done,
    /// A cap is reached; this says which.
    Spent(String),
    /// The LLM command failed, or what it said cannot be used.
    AgentFailed(String),
    /// There is something to ask about, and no LLM command.
    NoCommand,
}

impl From<Why> for Ended {
    fn from(why: Why) -> Ended {
        match why {
            Why::Spent(why) => Ended::Spent(why),
            Why::NotStarted(why) | Why::Agent(why) | Why::Reply(why) => Ended::AgentFailed(why),
        }
    }
}

/// What `--dry-run` shows.
pub(crate) struct Preview {
    pub(crate) plan: Plan,
    /// How many notes there are.
    pub(crate) total: usize,
    pub(crate) reply: PathBuf,
    /// How many calls there would be besides this one.
    pub(crate) more: usize,
}

impl Desk<'_> {
    /// Everything that may be done now.
    pub(crate) fn run(&mut self) -> Result<Ended> {
        let mut stuck = None;
        for (batch, state) in self.left_behind()? {
            if !self.caller.is_quiet {
                self.reporter.warn(&format!(
                    "carrying on {}, which an earlier run left at {}",
                    batch.id,
                    state.name()
                ));
            }
            let place = batch.dir.display().to_string();
            self.batch = Some(batch);
            match self.drive(state) {
                Ok(Ended::Done) => {}
                Ok(ended) => return Ok(ended),
                // The other batches need not wait for it.
                Err(error) => stuck = Some(error.hint(format!("to give it up, move \"{place}\" away"))),
            }
        }
        if let Some(error) = stuck {
            // Nobody is to be asked about notes that are half changed.
            self.refresh_targets()?;
            return Err(error);
        }
        let stays = if self.news()?.is_none() {
            self.tell_what_rests()?;
            Some(Ended::Done)
        } else if self.config.llm.command.is_none() {
            Some(Ended::NoCommand)
        } else {
            // Asked for before anything is read that cannot be asked about.
            match self.caller.budget.allowance(self.env.now())? {
                Allowance::Left(_) => None,
                Allowance::Spent(spent) => Some(Ended::Spent(spent.to_string())),
            }
        };
        if let Some(ended) = stays {
            // A target may be new, and what people changed by hand is for agents too.
            self.refresh_targets()?;
            return Ok(ended);
        }
        let state = State::ScanEntries.step(self)?;
        if state.is_over() { Ok(Ended::Done) } else { self.drive(state) }
    }

    /// Sorts out the batches of earlier runs: those to go on with are returned, those without a future are ended.
    fn left_behind(&mut self) -> Result<Vec<(Batch, State)>> {
        let mut ours = Vec::new();
        if self.config.storage.foreign {
            return Ok(ours);
        }
        self.sweep();
        for batch in Batches::of_defrag(self.root).all()? {
            Desk::sweep_batch(&batch);
            let state: Option<State> = match batch.load() {
                Ok(state) => state,
                Err(error) => {
                    self.reporter.warn(&error.line());
                    continue;
                }
            };
            if Desk::is_being_undone(&batch) {
                self.reporter.warn(&format!("carrying on the undoing of {}", batch.id));
                let id = batch.id.clone();
                self.batch = Some(batch);
                self.undone = Some((self.carry_on_undoing()?, id));
                continue;
            }
            match state {
                None | Some(State::ScanEntries | State::AnalyzeStructure { .. } | State::Failed { .. }) => {
                    batch.end()?;
                }
                // Kept, so that it can be taken back.
                Some(State::Completed { .. }) => {}
                Some(State::RunAgent { work, faults }) => match work.kind {
                    Kind::Run if self.caller.is_answered(&batch, work.next)? => {
                        ours.push((batch, State::RunAgent { work, faults }));
                    }
                    // Its groups are kept: notes that were merged since would be shared out in another way, and asked
                    // about once more. What is long ago is begun anew with the notes that have come since.
                    Kind::Run
                        if work.next > 0
                            && self.config.llm.command.is_some()
                            && self.env.now().duration_since(work.begun) <= BY_HAND =>
                    {
                        ours.push((batch, State::RunAgent { work, faults }));
                    }
                    Kind::Run => ours.extend(self.closed(batch, work)?),
                    Kind::Hand | Kind::Dry if self.env.now().duration_since(work.begun) > BY_HAND => {
                        ours.extend(self.closed(batch, work)?);
                    }
                    Kind::Hand | Kind::Dry => {}
                },
                Some(
                    state @ (State::ApplyChanges { .. }
                    | State::GenerateAgentsMd { .. }
                    | State::CommitChanges { .. }),
                ) => ours.push((batch, state)),
            }
        }
        Ok(ours)
    }

    /// A batch whose further parts are not asked about: what the earlier ones changed is brought to its end.
    fn closed(&self, batch: Batch, work: Work) -> Result<Option<(Batch, State)>> {
        if work.next > 0 {
            return Ok(Some((batch, State::GenerateAgentsMd { work })));
        }
        batch.end()?;
        Ok(None)
    }

    /// Removes what a killed run left half written in the directory that only the holder of `run.lock` writes to.
    fn sweep(&self) {
        file::sweep_dir(&self.root.state(), ".json", Duration::ZERO);
    }

    /// The same in a batch, which may be kept for long. A reply by hand and what is deleted are written there without
    /// that lock.
    fn sweep_batch(batch: &Batch) {
        file::sweep_dir(&batch.dir, "", file::LEFT_BEHIND);
    }

    /// From `state` to the end of its batch, or to where a person has to ask.
    fn drive(&mut self, mut state: State) -> Result<Ended> {
        loop {
            match &state {
                State::Completed { work } => {
                    self.finish(&state)?;
                    let stopped = work.as_ref().and_then(|work| work.stopped.clone());
                    return Ok(stopped.map_or(Ended::Done, Ended::from));
                }
                State::Failed { work, why } => {
                    self.take_failure(work, why)?;
                    let why = why.clone();
                    self.batch()?.end()?;
                    return Ok(Ended::from(why));
                }
                State::RunAgent { work, .. } if work.kind == Kind::Hand => {
                    self.batch()?.save(&state)?;
                    return Ok(Ended::Done);
                }
                State::GenerateAgentsMd { work } => {
                    if let Some(why) = &work.stopped {
                        self.take_failure(work, why)?;
                    }
                    self.batch()?.save(&state)?;
                }
                _ => self.batch()?.save(&state)?,
            }
            state = state.step(self)?;
        }
    }

    /// The batch is kept if it changed anything: it is the one that can be taken back, in the place of an earlier.
    /// Its end is saved last, so that a crash leaves none that nobody looks at any more, nor two that could be taken
    /// back.
    fn finish(&mut self, over: &State) -> Result<()> {
        let batch = self.batch()?;
        let begun = over.work().map(|work| work.begun);
        if applied(batch)?.iter().all(|applied| applied.made.is_empty()) {
            return batch.end();
        }
        for other in Batches::of_defrag(self.root).all()? {
            let Ok(Some(state @ State::Completed { .. })) = other.load() else { continue };
            // One that a person began may come to its end after a later one.
            let is_earlier = state.work().map(|work| work.begun) <= begun;
            if other.id != batch.id && is_earlier {
                other.end()?;
            }
        }
        batch.save(over)
    }

    /// One part's prompt, for a person to ask with; `None` when nothing is new.
    pub(crate) fn prompt_by_hand(&mut self) -> Result<Option<String>> {
        self.bring_to_an_end()?;
        // The further parts of what was begun come first.
        for batch in Batches::of_defrag(self.root).all()? {
            if let Ok(Some(State::RunAgent { mut work, faults })) = batch.load::<State>()
                && work.kind == Kind::Hand
                && work.next > 0
            {
                self.batch = Some(batch);
                let prompt = self.prompt(&mut work)?;
                self.batch()?.save(&State::RunAgent { work, faults })?;
                return Ok(Some(prompt));
            }
        }
        let mut state = State::ScanEntries.step(self)?;
        while !state.is_over() {
            if let State::RunAgent { mut work, faults } = state {
                let prompt = self.prompt(&mut work)?;
                self.batch()?.save(&State::RunAgent { work, faults })?;
                return Ok(Some(prompt));
            }
            self.batch()?.save(&state)?;
            state = state.step(self)?;
        }
        // Only notes that no call has room for are new.
        if matches!(state, State::Completed { work: Some(_) }) {
            self.finish(&state)?;
        }
        Ok(None)
    }

    /// Brings to its end what needs no call: nobody is to be asked about notes that are half changed.
    pub(crate) fn bring_to_an_end(&mut self) -> Result<()> {
        for (batch, state) in self.left_behind()? {
            if state.has_plan() {
                self.batch = Some(batch);
                self.carry_out(state)?;
            }
        }
        Ok(())
    }

    /// Carries out a reply that somebody else brings. How many parts are still to be asked about.
    pub(crate) fn apply(&mut self, text: &str) -> Result<usize> {
        let theirs = (Batches::of_queue(self.root), "memory-consolidate");
        let batch = batch_for(text, &Batches::of_defrag(self.root), theirs)?;
        self.sweep();
        Desk::sweep_batch(&batch);
        if Desk::is_being_undone(&batch) {
            self.bring_to_an_end()?;
            return Err(no_such_batch(&batch.id));
        }
        let mut work = match batch.load()? {
            Some(State::RunAgent { work, .. }) => work,
            // It was brought before, and a crash came between.
            Some(state) if state.has_plan() => {
                self.batch = Some(batch);
                return self.carry_out(state);
            }
            _ => return Err(no_such_batch(&batch.id)),
        };
        work.kind = Kind::Hand;
        // What a person brings goes before what the command said.
        let name = reply_name(work.next, true);
        batch.write(&name, text.as_bytes())?;
        self.batch = Some(batch);
        match self.judge(&work, false)? {
            Judged::Plan(plan) => self.carry_out(State::ApplyChanges { work, plan }),
            Judged::Faulty(faults) => {
                // Nor does it stand in the way of one that was paid for.
                let _ = file::remove(&self.batch()?.file(&name));
                Err(Error::api(format!("the reply cannot be used: {}", faults.join("; ")))
                    .hint("mend it and apply it again; the batch waits for it"))
            }
        }
    }

    /// What is known to be changed, to the end or to the next prompt. How many parts are still to be asked about.
    fn carry_out(&mut self, mut state: State) -> Result<usize> {
        while !state.is_over() {
            match state {
                State::RunAgent { work, faults } if work.kind == Kind::Hand => {
                    let left = work.parts.len().saturating_sub(work.next);
                    self.batch()?.save(&State::RunAgent { work, faults })?;
                    return Ok(left);
                }
                // The next run asks about the rest.
                State::RunAgent { work, .. } => state = State::GenerateAgentsMd { work },
                _ => {}
            }
            self.batch()?.save(&state)?;
            state = state.step(self)?;
        }
        self.finish(&state)?;
        Ok(0)
    }

    /// Asks about the first part and changes nothing. `None` when nothing is new.
    pub(crate) fn preview(&mut self) -> Result<std::result::Result<Option<Preview>, Why>> {
        let mut state = State::ScanEntries.step(self)?;
        while !state.is_over() {
            state = match state {
                // Never saved: the next run would carry out what was only to be shown.
                State::ApplyChanges { mut work, plan } => {
                    let batch = self.batch()?;
                    let reply = reply_path(batch, work.next);
                    let more = work.parts.len().saturating_sub(work.next + 1);
                    let total = work.total;
                    // Until somebody applies it, it is a question with a reply.
                    work.kind = Kind::Dry;
                    batch.save(&State::RunAgent { work, faults: Vec::new() })?;
                    return Ok(Ok(Some(Preview { plan, total, reply: reply.unwrap_or_default(), more })));
                }
                State::GenerateAgentsMd { .. } => break,
                state => {
                    self.batch()?.save(&state)?;
                    state.step(self)?
                }
            };
        }
        let why = match state {
            State::Failed { why, .. } => Some(why),
            _ => None,
        };
        if let Some(batch) = &self.batch {
            batch.end()?;
        }
        Ok(why.map_or(Ok(None), Err))
    }
}
