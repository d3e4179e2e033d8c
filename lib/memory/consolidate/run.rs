//! A run: batches that a crash left first, then what waits, until nothing does or a cap says stop.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::budget::Allowance;
use crate::memory::call::{BY_HAND, Kind, Why, reply_name, reply_path};
use crate::memory::consolidate::desk::Desk;
use crate::memory::consolidate::plan::Plan;
use crate::memory::consolidate::work::Work;
use crate::memory::consolidate::{Adapters, Judged, State};
use crate::memory::reply::{batch_for, no_such_batch};
use crate::store::batch::{Batch, Batches};
use crate::store::journal::entry::Retrieval;
use crate::store::journal::{Journal, Waiting};
use std::path::PathBuf;
use std::time::Duration;

/// How a run ended.
pub(crate) enum Ended {
    /// Nothing is left that may be done now.
    Done,
    /// A cap is reached; this says which.
    Spent(String),
    /// The LLM command failed, or what it said cannot be used.
    AgentFailed(String),
    /// Sessions wait, and there is no LLM command.
    NoCommand(usize),
}

/// What `--dry-run` shows.
pub(crate) struct Preview {
    pub(crate) plan: Plan,
    pub(crate) reply: PathBuf,
}

impl Desk<'_> {
    /// Everything that may be done now.
    pub(crate) fn run(&mut self) -> Result<Ended> {
        let mut last = Ended::Done;
        let mut stuck = None;
        for batch in self.left_behind()? {
            if self.is_down {
                break;
            }
            let Some(state) = batch.load::<State>()? else { continue };
            let is_before_writing = matches!(
                state,
                State::FetchHistory { .. } | State::RunAgent { .. } | State::ParseOutput { .. }
            );
            // A crash while a batch was given up: its entries are in the queue again, and asked about there.
            let is_held = |id: &String| batch.has_claimed(id);
            let is_whole = state.work().is_none_or(|work| work.sources.iter().all(|s| is_held(&s.queue_id)));
            if is_before_writing && !is_whole {
                batch.end()?;
                continue;
            }
            if !self.caller.is_quiet {
                self.reporter.warn(&format!(
                    "carrying on {}, which an earlier run left at {}",
                    batch.id,
                    state.name()
                ));
            }
            self.batch = Some(batch);
            let ended = match self.drive(state) {
                // What cannot be carried on is begun anew, rather than being in the way for ever.
                Err(error) if self.is_worth_nothing() => {
                    self.reporter
                        .warn(&format!("it cannot be carried on, and is begun anew: {}", error.line()));
                    self.batch()?.end()?;
                    continue;
                }
                // What is written or paid for already is kept; the others need not wait for it.
                Err(error) => {
                    self.reporter.warn(&format!("{}: {}", self.batch()?.id, error.line()));
                    stuck = Some(error);
                    continue;
                }
                Ok(ended) => ended,
            };
            match ended {
                ended @ (Ended::Spent(_) | Ended::NoCommand(_)) => return Ok(ended),
                ended @ Ended::AgentFailed(_) => last = ended,
                Ended::Done => {}
            }
        }
        while self.limit > 0 && !self.is_down {
            // Asked for before anything is claimed, so that nothing is read that cannot be asked about.
            if let (true, Allowance::Spent(spent)) =
                (self.config.llm.command.is_some(), self.caller.budget.allowance(self.env.now())?)
            {
                if self.waiting()? == 0 {
                    break;
                }
                return Ok(Ended::Spent(spent.to_string()));
            }
            let state = State::LoadQueue.step(self)?;
            if state.is_over() {
                break;
            }
            match self.drive(state)? {
                Ended::Done => {}
                ended @ Ended::Spent(_) => return Ok(ended),
                ended => last = ended,
            }
        }
        if let Some(error) = stuck {
            return Err(error);
        }
        match (&last, self.config.llm.command.is_some()) {
            (Ended::Done, false) => match self.sessions_waiting()? {
                0 => Ok(Ended::Done),
                count => Ok(Ended::NoCommand(count)),
            },
            _ => Ok(last),
        }
    }

    /// Is nothing written yet, and nothing paid for, of the batch under way?
    fn is_worth_nothing(&self) -> bool {
        let state = self.batch().and_then(Batch::load::<State>);
        match state {
            Ok(Some(State::FetchHistory { .. })) => true,
            Ok(Some(State::RunAgent { work, .. })) => {
                work.next == 0 && self.reply(&work).is_ok_and(|reply| reply.is_none())
            }
            _ => false,
        }
    }

    /// Sorts out the batches of earlier runs: those to go on with are returned, those without a future are put back.
    fn left_behind(&self) -> Result<Vec<Batch>> {
        let mut ours = Vec::new();
        if self.config.storage.foreign {
            self.reporter.warn(
                "the store is named by a file that is not trusted: its sessions and batches are left alone",
            );
            return Ok(ours);
        }
        self.sweep();
        for batch in Batches::of_queue(self.root).all()? {
            let state: Option<State> = match batch.load() {
                Ok(state) => state,
                Err(error) => {
                    self.reporter.warn(&error.line());
                    continue;
                }
            };
            match state {
                None | Some(State::LoadQueue | State::Completed { .. }) => batch.end()?,
                // Since then the command was taken out of the configuration.
                Some(State::RunAgent { work, .. })
                    if work.kind == Kind::Run
                        && self.config.llm.command.is_none()
                        && !self.caller.is_answered(&batch, work.next)? =>
                {
                    batch.end()?;
                }
                Some(state) => match state.work() {
                    Some(work) if work.kind == Kind::Run => ours.push(batch),
                    // Its reply was brought, and is carried out to the end.
                    Some(work) if work.kind == Kind::Hand && state.has_plan() => ours.push(batch),
                    // Nobody has seen its prompt yet.
                    Some(_) if matches!(state, State::FetchHistory { .. }) => batch.end()?,
                    Some(work) if self.env.now().duration_since(work.begun) > BY_HAND => batch.end()?,
                    _ => {}
                },
            }
        }
        Ok(ours)
    }

    /// Removes what a killed run left half written in the directories that only the holder of `run.lock` writes to.
    fn sweep(&self) {
        for dir in [self.root.state(), self.root.inbox().join(".failed")] {
            file::sweep_dir(&dir, ".json", Duration::ZERO);
        }
    }

    /// From `state` to the end of its batch, or to where a person has to ask.
    fn drive(&mut self, mut state: State) -> Result<Ended> {
        loop {
            match &state {
                State::Completed { work } => {
                    let count = work.as_ref().map_or(0, |work| work.sources.len());
                    self.limit = self.limit.saturating_sub(count);
                    self.batch()?.save(&state)?;
                    self.batch()?.end()?;
                    return Ok(Ended::Done);
                }
                State::Failed { work, why } => {
                    // A failed try is counted once, and nothing is asked again for it, whatever happens from here.
                    if matches!(why, Why::Agent(_) | Why::Reply(_)) {
                        self.batch()?.save(&state)?;
                    }
                    return self.give_up(work, why);
                }
                // The reply's file says as much.
                State::ParseOutput { .. } => {}
                State::RunAgent { work, .. } if work.kind == Kind::Hand => {
                    self.batch()?.save(&state)?;
                    return Ok(Ended::Done);
                }
                // It is saved when its prompt is ready, before the model is asked. Until then what went before leads
                // here again.
                State::RunAgent { .. } => {}
                // Nor is there more to this than the reply's file says: no ids were given, and nothing is written.
                State::WriteEntries { work, plan } if work.kind == Kind::Run && plan.notes.is_empty() => {}
                _ => self.batch()?.save(&state)?,
            }
            state = state.step(self)?;
        }
    }

    fn give_up(&mut self, work: &Work, why: &Why) -> Result<Ended> {
        self.limit = self.limit.saturating_sub(work.sources.len());
        // What earlier parts gave is there, whatever became of this one.
        self.commit(work)?;
        let ended = match why {
            // What has been paid for already stays with the batch.
            Why::Spent(spent) if work.next > 0 || self.reply(work)?.is_some() => {
                return Ok(Ended::Spent(spent.clone()));
            }
            Why::Spent(spent) => Ended::Spent(spent.clone()),
            Why::NotStarted(why) => {
                self.is_down = true;
                Ended::AgentFailed(why.clone())
            }
            Why::Agent(why) => {
                self.is_down = true;
                self.agent_failed(work, why)?;
                Ended::AgentFailed(why.clone())
            }
            Why::Reply(why) => {
                self.agent_failed(work, why)?;
                Ended::AgentFailed(why.clone())
            }
        };
        self.batch()?.end()?;
        Ok(ended)
    }

    /// How many entries wait, claimed ones included.
    pub(crate) fn waiting(&self) -> Result<usize> {
        let (waiting, unreadable) = Journal::at(self.root).waiting()?;
        let mut count = waiting.len() + unreadable.len();
        for batch in Batches::of_queue(self.root).all()? {
            count += batch.claimed()?.len();
        }
        Ok(count)
    }

    fn sessions_waiting(&self) -> Result<usize> {
        let (waiting, _) = Journal::at(self.root).waiting()?;
        let is_session = |retrieval: &Retrieval| !matches!(retrieval, Retrieval::Inline { .. });
        Ok(waiting.iter().filter(|waiting| is_session(&waiting.entry.retrieval)).count())
    }

    /// One part's prompt, for a person to ask with; `None` when nothing waits.
    pub(crate) fn prompt_by_hand(&mut self) -> Result<Option<String>> {
        self.left_behind()?;
        // The further parts of what was begun come first.
        if let Some(prompt) = self.prompt_of_open(1)? {
            return Ok(Some(prompt));
        }
        loop {
            let mut state = State::LoadQueue.step(self)?;
            if state.is_over() {
                // Whoever has asked already may have got no reply, and nothing of it is kept but here.
                return self.prompt_of_open(0);
            }
            while !state.is_over() {
                if let State::RunAgent { mut work, faults } = state {
                    let prompt = self.prompt(&mut work)?;
                    self.batch()?.save(&State::RunAgent { work, faults })?;
                    return Ok(Some(prompt));
                }
                self.batch()?.save(&state)?;
                state = state.step(self)?;
            }
            // Nothing was to be asked about these.
            self.batch()?.end()?;
        }
    }

    /// The prompt of a batch that waits for a reply by hand, and has had so many at least.
    fn prompt_of_open(&mut self, replies: usize) -> Result<Option<String>> {
        for batch in Batches::of_queue(self.root).all()? {
            if let Ok(Some(State::RunAgent { mut work, faults })) = batch.load::<State>()
                && work.kind == Kind::Hand
                && work.next >= replies
            {
                self.batch = Some(batch);
                let prompt = self.prompt(&mut work)?;
                self.batch()?.save(&State::RunAgent { work, faults })?;
                return Ok(Some(prompt));
            }
        }
        Ok(None)
    }

    /// Carries out a reply that somebody else brings. `Some`: how many parts are still to be asked about.
    pub(crate) fn apply(&mut self, text: &str) -> Result<usize> {
        let theirs = (Batches::of_defrag(self.root), "memory-defrag");
        let batch = batch_for(text, &Batches::of_queue(self.root), theirs)?;
        self.sweep();
        let mut work = match batch.load()? {
            Some(State::RunAgent { work, .. }) => work,
            // It was brought before, and a crash came between.
            Some(state) if state.has_plan() => {
                self.batch = Some(batch);
                return self.carry_out(state);
            }
            _ => return Err(no_such_batch(&batch.id)),
        };
        if work.kind == Kind::Dry {
            self.claim_for(&mut work, &batch)?;
            batch.save(&State::RunAgent { work: work.clone(), faults: Vec::new() })?;
        }
        // What a person brings goes before what the command said.
        batch.write(&reply_name(work.next, true), text.as_bytes())?;
        self.batch = Some(batch);
        let plan = match self.parse_output(&work)? {
            Judged::Plan(plan, verdicts) => {
                work.verdicts.extend(verdicts);
                plan
            }
            Judged::Faulty(faults) => {
                return Err(Error::api(format!("the reply cannot be used: {}", faults.join("; ")))
                    .hint("mend it and apply it again; the batch waits for it"));
            }
        };
        for warning in &plan.warnings {
            self.reporter.warn(warning);
        }
        self.carry_out(State::WriteEntries { work, plan })
    }

    /// What a reply asked for, to the end or to the next prompt. How many parts are still to be asked about.
    fn carry_out(&mut self, mut state: State) -> Result<usize> {
        while !state.is_over() {
            self.batch()?.save(&state)?;
            if let State::RunAgent { work, .. } = &state {
                return Ok(work.parts.len().saturating_sub(work.next));
            }
            state = state.step(self)?;
        }
        self.batch()?.end()?;
        Ok(0)
    }

    /// A dry run has claimed nothing: now its entries are.
    fn claim_for(&self, work: &mut Work, batch: &Batch) -> Result<()> {
        let (waiting, _) = Journal::at(self.root).waiting()?;
        // Those that it has already, because this is not the first attempt.
        let claimed = batch.claimed()?;
        for source in &work.sources {
            let is_this = |waiting: &&Waiting| waiting.id == source.queue_id;
            let is_claimed = match waiting.iter().find(is_this) {
                Some(waiting) => batch.claim(waiting)?,
                None => claimed.iter().any(|claimed| is_this(&claimed)),
            };
            if !is_claimed {
                batch.put_all_back()?;
                return Err(Error::usage(format!("\"{}\" does not wait any more", source.queue_id))
                    .hint("another run has taken it; run again without --apply"));
            }
        }
        work.kind = Kind::Hand;
        Ok(())
    }

    /// Asks about the next batch and writes nothing. `None` when nothing waits.
    pub(crate) fn preview(&mut self) -> Result<Result<Option<Preview>, Why>> {
        loop {
            let mut state = State::LoadQueue.step(self)?;
            if state.is_over() {
                return Ok(Ok(None));
            }
            loop {
                if let State::RunAgent { .. } | State::FetchHistory { .. } = state {
                    self.batch()?.save(&state)?;
                }
                state = match state {
                    State::WriteEntries { work, plan } => {
                        let reply = reply_path(self.batch()?, work.next);
                        return Ok(Ok(Some(Preview { plan, reply: reply.unwrap_or_default() })));
                    }
                    State::Failed { why, .. } => {
                        self.batch()?.end()?;
                        return Ok(Err(why));
                    }
                    // All of it is said, and nothing would come of it.
                    State::MarkProcessed { work } => {
                        for (id, verdict) in &work.verdicts {
                            self.reporter.warn(&format!("{id}: {verdict}"));
                        }
                        self.batch()?.end()?;
                        break;
                    }
                    state => state.step(self)?,
                };
            }
        }
    }
}
