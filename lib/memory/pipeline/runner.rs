//! The runner: does what a machine's state wants done, saves the state before that if it is more than reading, and feeds
//! the outcome back.
//!
//! Every mode of both programs is a [`Runner::walk`]: a run, the rest of a run that was killed, a dry run, a prompt for
//! a person, a reply that a person brings.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::file;
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::memory::pipeline::host::{Answerer, BatchProgress, Host, HostState, Rank, Saved};
use crate::memory::pipeline::reply::{batch_for, no_such_batch};
use crate::memory::pipeline::{Answer, Event, Failure, Pipeline, Question, State, WalkEnd};
use crate::store::batch::Batch;
use std::path::PathBuf;
use std::time::Duration;

/// How a walk came to stand still.
pub enum Stop {
    End(WalkEnd),
    /// A person is to answer this.
    Asked(Question),
    /// A part is done with: others may have their turn before the next.
    Turn,
}

/// A batch that was begun and waits to be carried on.
struct OpenBatch<S> {
    batch: Batch,
    saved: Saved<S>,
    answerer: Answerer,
    /// An earlier run began it.
    is_left: bool,
}

/// What one batch of a dry run came to.
pub struct Previewed {
    /// The reply to the first question, to be applied.
    pub reply: PathBuf,
    /// How many calls there were about parts of it.
    pub parts: usize,
}

pub struct Runner<'a, H: Host> {
    pub run: RunEnv<'a>,
    pub host: H,
    progress: BatchProgress,
    answerer: Answerer,
    /// A reply was brought, and it is not known yet whether it can be used: nothing is saved until it is.
    is_on_trial: bool,
    /// How many parts the batch under way has, once it is asked about.
    parts: usize,
    /// The batches that take turns.
    open: Vec<(Rank, OpenBatch<HostState<H>>)>,
    /// What this dry run came to, batch by batch.
    previewed: Vec<Previewed>,
    /// A batch that could not be carried on, and why.
    stuck: Option<Error>,
}

/// A batch that has ended so many runs before it had an answer is not taken up once more.
const TAKEN_UP: u32 = 2;

impl<'a, H: Host> Runner<'a, H> {
    pub fn new(run: RunEnv<'a>, host: H) -> Runner<'a, H> {
        let progress = BatchProgress::new(run.kind, run.env.now());
        let (answerer, open, previewed) = (Answerer::Command, Vec::new(), Vec::new());
        Runner { run, host, progress, answerer, is_on_trial: false, parts: 0, open, previewed, stuck: None }
    }

    /// From a state to where the walk ends, or to a question that nobody here answers.
    fn walk(&mut self, mut state: HostState<H>) -> Result<Stop> {
        let takes_turns = H::Pipeline::TAKES_TURNS
            && self.progress.kind != Kind::Hand
            && matches!(self.answerer, Answerer::Command);
        let mut event = Event::Resumed;
        let mut may_yield = false;
        loop {
            state = self.host.pipeline().step(state, event);
            self.before(&state)?;
            if may_yield && matches!(state, State::Gather { .. }) && state.next_turn().is_some() {
                return self.yields(state);
            }
            may_yield = takes_turns;
            let (host, run) = (&mut self.host, &mut self.run);
            event = match &state {
                State::Begin => Event::Begun(host.begin(run)?),
                State::Divide { work } => Event::Divided(host.divide(work.clone(), run)?),
                State::Gather { work } => Event::Gathered(host.gather(work, run)?),
                State::Ask { question, .. } => match self.answer(question)? {
                    Some(answer) => Event::Answered(answer),
                    None => return Ok(Stop::Asked(question.clone())),
                },
                State::Check { work, .. } => Event::Found(host.look_up(work, run)?),
                State::Apply { work, plan, done } => {
                    Event::Applied(host.apply(work, plan.clone(), *done, run)?)
                }
                State::Close { work, failure } => {
                    host.close(work, failure.as_ref(), run).map(|()| Event::Done)?
                }
                State::Refresh { work, .. } => host.refresh(work, run).map(|()| Event::Done)?,
                State::Commit { work, .. } => host.commit(work, run).map(|()| Event::Done)?,
                State::Paused { failure, .. } => return Ok(Stop::End(WalkEnd::Paused(failure.clone()))),
                State::Ended { ending } => {
                    self.end(ending, &state)?;
                    return Ok(Stop::End(ending.clone().cleaned(self.run.redactor)));
                }
            };
        }
    }

    /// Lets others have their turn. What is to be done next is saved, unless it is a dry run.
    fn yields(&mut self, state: HostState<H>) -> Result<Stop> {
        let Some(batch) = self.run.batch.take() else { return Ok(Stop::Turn) };
        let saved = Saved { progress: self.progress.clone(), state };
        if !self.run.is_dry() {
            batch.save(&saved)?;
        }
        self.take_in(OpenBatch { batch, saved, answerer: Answerer::Command, is_left: false })?;
        Ok(Stop::Turn)
    }

    /// From now on this batch takes turns.
    fn take_in(&mut self, open: OpenBatch<HostState<H>>) -> Result<()> {
        if let Some(work) = open.saved.state.next_turn()
            && let Some(rank) = self.host.rank(&open.batch, work, &self.run)?
        {
            self.open.push((rank, open));
        }
        Ok(())
    }

    /// Saves the state before what it wants is done, from the moment a batch exists.
    fn before(&mut self, state: &HostState<H>) -> Result<()> {
        let Some(batch) = &self.run.batch else { return Ok(()) };
        let mut is_second_look = false;
        match state {
            // After a crash, what was done before it is done once more, and then it is read again.
            State::Ended { .. } | State::Gather { .. } | State::Check { .. } => return Ok(()),
            State::Ask { question, .. } if self.is_on_trial && question.is_follow_up() => return Ok(()),
            // The answer is at hand: until it is taken in, the batch still waits for it.
            State::Ask { .. } if matches!(self.answerer, Answerer::Reply(Some(_))) => return Ok(()),
            State::Ask { question, .. } => {
                let is_by_hand = self.progress.kind == Kind::Hand;
                self.progress.awaits = Some(question.reply_name());
                self.progress.is_with_person = is_by_hand && matches!(self.answerer, Answerer::Reply(None));
                is_second_look = question.is_second_look && question.part == 0;
            }
            _ => self.progress.is_with_person = false,
        }
        self.is_on_trial = false;
        // A dry run is taken up nowhere but at its first question, by --apply, as its reply was given to it.
        if self.progress.kind == Kind::DryRun && self.progress.answers > 0 && !is_second_look {
            return Ok(());
        }
        batch.save(&Saved { progress: self.progress.clone(), state: state.clone() })
    }

    /// `None`: a person is to answer.
    fn answer(&mut self, question: &Question) -> Result<Option<Answer>> {
        self.parts = question.of;
        let answer = match &mut self.answerer {
            Answerer::Command => self.run.ask(question)?,
            Answerer::Reply(reply) => {
                // A person is asked once.
                let is_by_hand = self.progress.kind == Kind::Hand;
                match reply.take() {
                    Some(reply) => Answer::Reply(reply),
                    None if is_by_hand && question.fallback.is_some() && H::Pipeline::falls_back(None) => {
                        Answer::Fallback
                    }
                    None => return Ok(None),
                }
            }
            Answerer::Nobody => Answer::Failed(Failure::Expired),
        };
        if matches!(answer, Answer::Reply(_)) {
            self.progress.answers += 1;
            self.progress.awaits = None;
        }
        Ok(Some(answer))
    }

    fn end(&mut self, ending: &WalkEnd, state: &HostState<H>) -> Result<()> {
        let Some(batch) = &self.run.batch else { return Ok(()) };
        let is_good = matches!(ending, WalkEnd::Completed | WalkEnd::Stopped(_));
        if is_good && self.progress.kind == Kind::DryRun && self.progress.answers > 0 {
            // Somebody may apply it.
            let names = Question::first_replies().into_iter();
            let reply = names.map(|name| batch.file(name)).find(|path| path.exists());
            self.previewed.extend(reply.map(|reply| Previewed { reply, parts: self.parts }));
            return Ok(());
        }
        if is_good && self.host.keeps(&self.run, &self.progress)? {
            let progress = BatchProgress { is_over: true, ..self.progress.clone() };
            return batch.save(&Saved { progress, state: state.clone() });
        }
        batch.end()
    }

    /// A walk from the beginning.
    fn begin(&mut self, answerer: Answerer) -> Result<Stop> {
        self.run.batch = None;
        self.progress = BatchProgress::new(self.run.kind, self.run.env.now());
        self.answerer = answerer;
        self.walk(State::Begin)
    }

    /// A walk from where a batch was left.
    fn resume(&mut self, batch: Batch, saved: Saved<HostState<H>>, answerer: Answerer) -> Result<Stop> {
        self.run.batch = Some(batch);
        self.progress = saved.progress;
        self.answerer = answerer;
        self.walk(saved.state)
    }

    /// Everything that may be done now: what earlier runs left half done, then what is new, and the further parts of
    /// what is long in turn with it.
    pub fn run(&mut self) -> Result<WalkEnd> {
        let mut last = self.carry_on(true)?;
        if self.stuck.is_some() && self.host.is_held_up(&self.run)? {
            return self.unless_stuck(last);
        }
        // Without a command, what it had claimed is in the queue again, and notes are filed as they are.
        // Nor is it this run's failure that a person brought no reply.
        if matches!(last, WalkEnd::Failed(Failure::NoCommand | Failure::Expired)) {
            last = WalkEnd::Idle;
        }
        // Whoever begins one batch a run has had it.
        if !self.host.begins_again() && last.failure().is_some() {
            return self.unless_stuck(last);
        }
        self.take_turns(last)
    }

    /// What is new, and the further parts of what is long in turn with it.
    fn take_turns(&mut self, mut last: WalkEnd) -> Result<WalkEnd> {
        let mut may_begin = true;
        let ends_the_run =
            |failure: &Failure| failure.is_of_the_command() || matches!(failure, Failure::Spent(_));
        while !last.failure().is_some_and(ends_the_run) {
            let next = (0..self.open.len()).min_by_key(|index| self.open[*index].0);
            let begins = match next {
                None => may_begin,
                Some(index) => may_begin && self.host.queue_goes_first(&self.open[index].0, &self.run)?,
            };
            let stop = match next {
                _ if begins => self.begin(Answerer::Command)?,
                Some(index) => {
                    let (_, open) = self.open.swap_remove(index);
                    self.continued(open)?
                }
                None => break,
            };
            may_begin &= self.host.begins_again();
            match stop {
                Stop::End(WalkEnd::Idle) => may_begin &= !begins,
                // What it had claimed waits for a command again.
                Stop::End(WalkEnd::Failed(Failure::NoCommand)) if !begins => {}
                // A later batch that goes well does not make good for one that failed.
                Stop::End(WalkEnd::Completed) if matches!(last, WalkEnd::Failed(_)) => {}
                Stop::End(ending) => last = ending,
                Stop::Asked(_) | Stop::Turn => {}
            }
        }
        self.unless_stuck(last)
    }

    fn unless_stuck(&mut self, ending: WalkEnd) -> Result<WalkEnd> {
        self.stuck.take().map_or(Ok(ending), Err)
    }

    /// Brings to its end what earlier runs left, or to where others may have their turn. Without `asks`, only as far as
    /// no call is needed.
    fn carry_on(&mut self, asks: bool) -> Result<WalkEnd> {
        let mut last = WalkEnd::Idle;
        for mut left in self.left_behind(asks)? {
            if last.failure().is_some_and(Failure::is_of_the_command) {
                break;
            }
            if matches!(left.answerer, Answerer::Command) {
                let is_run = left.saved.progress.kind == Kind::Run;
                if H::Pipeline::TAKES_TURNS && is_run && left.saved.state.next_turn().is_some() {
                    self.take_in(left)?;
                    continue;
                }
                if !asks {
                    left.answerer = Answerer::Reply(None);
                }
            }
            match self.continued(left)? {
                Stop::End(ending @ (WalkEnd::Paused(_) | WalkEnd::Stopped(_))) => return Ok(ending),
                Stop::End(ending @ WalkEnd::Failed(_)) => last = ending,
                Stop::End(_) | Stop::Asked(_) | Stop::Turn => {}
            }
        }
        Ok(last)
    }

    /// A walk from where a batch was left. One that cannot be carried on is reported, and is in nobody's way.
    fn continued(&mut self, open: OpenBatch<HostState<H>>) -> Result<Stop> {
        let OpenBatch { batch, mut saved, answerer, is_left } = open;
        let (id, dir) = (batch.id.clone(), batch.dir.clone());
        if saved.progress.kind == Kind::Run && saved.progress.answers == 0 {
            saved.progress.taken_up = saved.progress.taken_up.saturating_add(1);
            batch.save(&saved)?;
        }
        if is_left && !self.run.is_quiet {
            let state = H::Pipeline::name(&saved.state);
            self.run.reporter.warn(&format!("continuing {id}, which an earlier run left in state {state}"));
        }
        match self.resume(batch, saved, answerer) {
            // Nothing is written and nothing paid for: it is begun anew, rather than being in the way for ever.
            Err(error)
                if self.progress.answers == 0
                    && !self.has_reply(self.run.batch()?, &self.progress, true)? =>
            {
                self.run.reporter.warn(&format!("{id} cannot be continued and starts again: {error}"));
                self.run.batch()?.end()?;
                Ok(Stop::End(WalkEnd::Idle))
            }
            Err(error) => {
                self.run.reporter.warn(&format!("{id}: {error}"));
                self.stuck = Some(error.hint(format!("to give it up, move \"{}\" away", dir.display())));
                Ok(Stop::End(WalkEnd::Idle))
            }
            stop => stop,
        }
    }

    /// The batches to carry on. Those without a future are ended.
    fn left_behind(&self, asks: bool) -> Result<Vec<OpenBatch<HostState<H>>>> {
        let mut left = Vec::new();
        self.sweep();
        for batch in H::batches(self.run.root).0.all()? {
            file::sweep_dir(&batch.dir, "", file::LEFT_BEHIND);
            match batch.load::<Saved<_>>() {
                Ok(None) => batch.end()?,
                Ok(Some(saved)) => {
                    if let Some(answerer) = self.answerer_of(&batch, &saved.progress, asks)? {
                        left.push(OpenBatch { batch, saved, answerer, is_left: asks });
                    }
                }
                // An older version wrote it, or a crash tore it: no run can ever carry on with it.
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    let aside = batch.set_aside()?;
                    let why = error.message();
                    self.run.reporter.warn(&format!(
                        "{why}; its queue entries wait again, and the rest is kept in \"{}\"",
                        aside.display()
                    ));
                }
                Err(error) => self.run.reporter.warn(&error.line()),
            }
        }
        Ok(left)
    }

    /// Who answers a batch that an earlier run left; `None`: it is left where it is, or ended. With `asks`, the command of
    /// a killed run is waited for.
    fn answerer_of(&self, batch: &Batch, progress: &BatchProgress, asks: bool) -> Result<Option<Answerer>> {
        let is_old = progress.is_old(self.run.env.now());
        if progress.is_over || (progress.is_with_person && !is_old) {
            return Ok(None);
        }
        let answerer = match progress.kind {
            Kind::Run => {
                let has_reply = match self.has_reply(batch, progress, asks) {
                    Ok(has_reply) => has_reply,
                    Err(error) => {
                        self.run.reporter.warn(&format!("{}: {error}", batch.id));
                        return Ok(None);
                    }
                };
                if asks && progress.answers == 0 && !has_reply && progress.taken_up >= TAKEN_UP {
                    let why = "has ended every run that took it up; its entries are asked about one by one";
                    self.run.reporter.warn(&format!("{} {why}", batch.id));
                    self.host.split(batch, &self.run)?;
                    None
                } else {
                    self.host.take_up(progress, has_reply, &self.run)
                }
            }
            // Its reply was brought, and a crash came before all of it was done.
            Kind::Hand if progress.answers > 0 && !progress.is_with_person => Some(Answerer::Reply(None)),
            Kind::Hand if progress.answers > 0 => Some(Answerer::Nobody),
            Kind::DryRun if !is_old => return Ok(None),
            Kind::Hand | Kind::DryRun => None,
        };
        if answerer.is_none() {
            batch.end()?;
        }
        Ok(answerer)
    }

    /// Is there a reply to the question that a batch waits for? With `asks`, the command of a killed run is waited for, and a
    /// reply that a run wrote whole and could not give its name counts: it was paid for, too.
    fn has_reply(&self, batch: &Batch, progress: &BatchProgress, asks: bool) -> Result<bool> {
        match progress.awaits.as_deref() {
            Some(name) if asks => self.run.is_there(batch, name),
            Some(name) => Ok(file::exists(&batch.file(name))?),
            None => Ok(false),
        }
    }

    /// Removes what a killed run left half written in the directories that only the holder of `run.lock` writes to.
    fn sweep(&self) {
        for dir in [self.run.root.state(), self.run.root.inbox().join(".failed")] {
            for end in [".json", ".jsonl"] {
                file::sweep_dir(&dir, end, Duration::ZERO);
            }
        }
        self.run.sweep();
    }

    /// Brings to its end what earlier runs left half written.
    pub fn finish_writing(&mut self) -> Result<()> {
        let last = self.carry_on(false)?;
        self.unless_stuck(last).map(drop)
    }

    /// The next question, for a person to ask; `None` when there is none.
    pub fn prompt(&mut self) -> Result<Option<Question>> {
        self.finish_writing()?;
        // The further parts of what was begun come first.
        if let Some(question) = self.open_question(1)? {
            return Ok(Some(question));
        }
        loop {
            match self.begin(Answerer::Reply(None))? {
                Stop::Asked(question) => return Ok(Some(question)),
                Stop::Turn => {}
                // Whoever has asked already may have got no reply.
                Stop::End(WalkEnd::Idle) => return self.open_question(0),
                Stop::End(WalkEnd::Completed) if self.host.begins_again() => {}
                Stop::End(WalkEnd::Completed) => return Ok(None),
                Stop::End(
                    WalkEnd::Failed(failure) | WalkEnd::Paused(failure) | WalkEnd::Stopped(failure),
                ) => {
                    return Err(Error::api(failure.to_string()));
                }
            }
        }
    }

    /// The question of a batch that waits for a person, and has had at least so many replies.
    fn open_question(&mut self, answers: usize) -> Result<Option<Question>> {
        for batch in H::batches(self.run.root).0.all()? {
            if let Ok(Some(saved)) = batch.load::<Saved<_>>()
                && saved.progress.is_with_person
                && saved.progress.answers >= answers
                && let Stop::Asked(question) = self.resume(batch, saved, Answerer::Reply(None))?
            {
                return Ok(Some(question));
            }
        }
        Ok(None)
    }

    /// Carries out a reply that a person brings, to the end or to the next question: how many parts are still to be asked
    /// about.
    ///
    /// # Errors
    /// `Api`: the reply cannot be used; the batch still waits for one. `Usage`: no batch waits for it.
    pub fn apply(&mut self, text: &str) -> Result<usize> {
        let (ours, theirs, program) = H::batches(self.run.root);
        let batch = batch_for(text, &ours, (theirs, program))?;
        self.sweep();
        file::sweep_dir(&batch.dir, "", file::LEFT_BEHIND);
        let mut saved: Saved<HostState<H>> = batch.load()?.ok_or_else(|| no_such_batch(&batch.id))?;
        if saved.progress.is_over {
            return Err(no_such_batch(&batch.id));
        }
        let was_dry = saved.progress.kind == Kind::DryRun;
        saved.progress.kind = Kind::Hand;
        let asks_about = match &saved.state {
            State::Ask { work, .. } | State::Paused { work, .. } => Some(work),
            _ => None,
        };
        if let Some(work) = asks_about.filter(|_| was_dry) {
            self.host.claim(&batch, work, &self.run)?;
            let progress = BatchProgress { is_with_person: true, ..saved.progress.clone() };
            batch.save(&Saved { progress, state: saved.state.clone() })?;
        }
        // It was brought before, and a crash came between: what it asked for is done first.
        let was_brought = saved.progress.answers > 0 && asks_about.is_none();
        let reply = (!was_brought).then(|| text.to_owned());
        self.is_on_trial = !was_brought;
        match self.resume(batch, saved, Answerer::Reply(reply))? {
            // The batch is as it was before.
            Stop::Asked(question) if question.is_repair() => {
                Err(Error::api(format!("the reply cannot be used: {}", question.faults.join("; ")))
                    .hint("correct it and apply it again; the batch still waits for it"))
            }
            Stop::Asked(question) => Ok(question.of.saturating_sub(question.part)),
            Stop::End(WalkEnd::Failed(failure) | WalkEnd::Paused(failure) | WalkEnd::Stopped(failure)) => {
                Err(Error::api(failure.to_string()))
            }
            Stop::End(WalkEnd::Idle | WalkEnd::Completed) | Stop::Turn => Ok(0),
        }
    }

    /// What a run would do, in the order in which it would, with the store left as it is.
    pub fn dry_run(&mut self) -> Result<(WalkEnd, Vec<Previewed>)> {
        self.run.sweep();
        let ending = self.take_turns(WalkEnd::Idle)?;
        Ok((ending, std::mem::take(&mut self.previewed)))
    }
}
