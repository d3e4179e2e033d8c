//! The runner: performs a machine's effects, saves its state before each that does more than read, and feeds the
//! outcomes back.
//!
//! Every mode of both programs is a [`Runner::walk`]: a run, the rest of a run that was killed, a dry run, a prompt for
//! a person, a reply that a person brings.

use crate::base::error::{Error, Result};
use crate::base::file;
pub use crate::memory::pipeline::call::Run;
use crate::memory::pipeline::reply::{batch_for, no_such_batch};
use crate::memory::pipeline::saved::{Kind, Progress, Saved};
use crate::memory::pipeline::{
    Answer, Begun, Done, Effect, EffectOf, Ending, Event, Failure, Pipeline, Question, StateOf, Task, TaskOf,
    WorkOf,
};
use crate::store::batch::{Batch, Batches};
use crate::store::place::Root;
use jiff::Timestamp;
use std::path::PathBuf;
use std::time::Duration;

/// What a pipeline's effects do to a store of files.
pub trait Host {
    type Pipeline: Pipeline;

    fn pipeline(&self) -> &Self::Pipeline;

    /// The batches of this pipeline, those of the other one, and the program that these belong to.
    fn batches(root: &Root) -> (Batches, Batches, &'static str);

    fn begin(&mut self, run: &mut Run) -> Result<Begun<HostWork<Self>>>;
    fn divide(&mut self, work: HostWork<Self>, run: &mut Run) -> Result<HostWork<Self>>;
    fn gather(&mut self, work: &HostWork<Self>, run: &Run) -> Result<<Self::Pipeline as Pipeline>::Material>;
    fn look_up(&mut self, work: &HostWork<Self>, run: &Run) -> Result<<Self::Pipeline as Pipeline>::Known>;
    fn apply(
        &mut self,
        work: &HostWork<Self>,
        plan: <Self::Pipeline as Pipeline>::Plan,
        step: usize,
        run: &Run,
    ) -> Result<<Self::Pipeline as Pipeline>::Outcome>;
    fn close(&mut self, work: &HostWork<Self>, failure: Option<&Failure>, run: &Run) -> Result<()>;
    fn refresh(&mut self, run: &Run) -> Result<()>;
    fn commit(&mut self, work: &HostWork<Self>, run: &Run) -> Result<()>;

    /// Is a run to begin another batch after one that ended?
    fn begins_again(&self) -> bool;

    /// A batch cannot be brought to its end. `true`: nothing new is begun then.
    fn is_held_up(&mut self, _run: &Run) -> Result<bool> {
        Ok(false)
    }

    /// Where a batch stands among those that take turns; `None`: it is left to another run.
    fn rank(&self, _batch: &Batch, _part: usize) -> Result<Option<Rank>> {
        Ok(None)
    }

    /// Does something that has not been begun come before a batch of this rank?
    fn queue_goes_first(&mut self, _rank: &Rank, _run: &Run) -> Result<bool> {
        Ok(true)
    }

    /// What becomes of a batch of the command that a run before left behind. `has_reply`: the reply to its current
    /// question is there.
    fn take_up(&self, _progress: &Progress, _has_reply: bool, _run: &Run) -> TakeUp {
        TakeUp::CarryOn
    }

    /// A dry run has claimed nothing: now that its reply is applied, it is claimed.
    fn claim(&self, _batch: &Batch, _work: &HostWork<Self>, _run: &Run) -> Result<()> {
        Ok(())
    }

    /// A batch has ended every run that took it up. What it claimed is to go back in another way.
    fn split(&self, _batch: &Batch, _run: &Run) -> Result<()> {
        Ok(())
    }

    /// A batch is completed. `true`: it is kept, so that it can be taken back.
    fn keeps(&self, _run: &Run, _progress: &Progress) -> Result<bool> {
        Ok(false)
    }
}

pub type HostWork<H> = WorkOf<<H as Host>::Pipeline>;
type State<H> = StateOf<<H as Host>::Pipeline>;

/// What becomes of a batch that an earlier run left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeUp {
    /// It goes on where it was.
    CarryOn,
    /// It is asked about no further; what was done so far is brought to its end.
    Close,
    /// It is forgotten, and what it claimed goes back.
    Drop,
}

/// Who answers a question of the machine.
enum Answerer {
    /// The LLM command, or what it printed before a crash.
    Command,
    /// This text, once; then nobody.
    Reply(Option<String>),
    /// Nobody: no further question is asked about this batch.
    Nobody(Failure),
}

/// How a walk came to stand still.
pub enum Stop {
    End(Ending),
    /// A person is to answer this.
    Asked(Question),
    /// A part is done with: others may have their turn before the next.
    Turn,
}

/// The order among batches in parts: first those of new sessions, then those that have had the fewest turns, then the
/// oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub is_past: bool,
    pub part: usize,
    pub at: Timestamp,
}

/// A batch between two of its parts.
struct OpenBatch<S> {
    rank: Rank,
    batch: Batch,
    saved: Saved<S>,
    /// An earlier run began it.
    is_left: bool,
}

/// What one batch of a dry run came to.
pub struct Previewed {
    /// The reply to the first question, to be applied; `None`: nothing was asked.
    pub reply: Option<PathBuf>,
    /// How many calls there were about parts of it.
    pub parts: usize,
}

pub struct Runner<'a, H: Host> {
    pub run: Run<'a>,
    pub host: H,
    progress: Progress,
    answerer: Answerer,
    /// A reply was brought, and it is not known yet whether it can be used: nothing is saved until it is.
    is_on_trial: bool,
    /// How many parts the batch under way has, once it is asked about.
    parts: usize,
    /// The batches that take turns.
    open: Vec<OpenBatch<State<H>>>,
    /// A batch that could not be carried on, and why.
    stuck: Option<Error>,
}

/// A batch that has ended so many runs before it had an answer is not taken up once more.
const TAKEN_UP: u32 = 2;

/// The part that is to be asked about next, if other batches may have their turn before it.
fn next_turn<H: Host>(state: &State<H>) -> Option<usize> {
    state.next_turn().filter(|_| H::Pipeline::TAKES_TURNS)
}

/// A batch to carry on, and who answers it.
type LeftBehind<S> = (Batch, Saved<S>, Answerer);

impl<'a, H: Host> Runner<'a, H> {
    pub fn new(run: Run<'a>, host: H) -> Runner<'a, H> {
        let progress = Progress::new(run.kind, run.env.now());
        let (answerer, open) = (Answerer::Command, Vec::new());
        Runner { run, host, progress, answerer, is_on_trial: false, parts: 0, open, stuck: None }
    }

    /// From a state to where the walk ends, or to a question that nobody here answers.
    fn walk(&mut self, mut state: State<H>, mut event: Event<H::Pipeline>) -> Result<Stop> {
        let takes_turns = self.progress.kind == Kind::Run && matches!(self.answerer, Answerer::Command);
        let mut is_first = true;
        loop {
            let (next, effect) = self.host.pipeline().step(state, event);
            state = next;
            self.before(&effect, &state)?;
            if takes_turns
                && !std::mem::take(&mut is_first)
                && let Some(part) = next_turn::<H>(&state)
                && matches!(effect, Effect::Perform(_))
            {
                return self.yields(part, state);
            }
            event = match effect {
                Effect::Ask(question) => match self.answer(&question)? {
                    Some(answer) => Event::Answered(answer),
                    None => return Ok(Stop::Asked(question)),
                },
                Effect::Perform(task) => Event::Done(self.perform(task)?),
                Effect::End(ending) => {
                    self.end(&ending, &state)?;
                    return Ok(Stop::End(ending));
                }
            };
        }
    }

    fn perform(&mut self, task: TaskOf<H::Pipeline>) -> Result<Done<H::Pipeline>> {
        let (host, run) = (&mut self.host, &mut self.run);
        Ok(match task {
            Task::Begin => Done::Begun(host.begin(run)?),
            Task::Divide(work) => Done::Divided(host.divide(work, run)?),
            Task::Gather(work) => Done::Gathered(host.gather(&work, run)?),
            Task::LookUp(work) => Done::Found(host.look_up(&work, run)?),
            Task::Apply { work, plan, step } => Done::Applied(host.apply(&work, plan, step, run)?),
            Task::Close { work, failure } => {
                host.close(&work, failure.as_ref(), run)?;
                Done::Closed
            }
            Task::Refresh => {
                host.refresh(run)?;
                Done::Refreshed
            }
            Task::Commit(work) => {
                host.commit(&work, run)?;
                Done::Committed
            }
        })
    }

    /// Lets others have their turn. What is to be done next is saved.
    fn yields(&mut self, part: usize, state: State<H>) -> Result<Stop> {
        let Some(batch) = self.run.batch.take() else { return Ok(Stop::Turn) };
        let saved = Saved { progress: self.progress.clone(), state };
        batch.save(&saved)?;
        self.take_in(part, batch, saved, false)?;
        Ok(Stop::Turn)
    }

    /// From now on this batch takes turns.
    fn take_in(&mut self, part: usize, batch: Batch, saved: Saved<State<H>>, is_left: bool) -> Result<()> {
        if let Some(rank) = self.host.rank(&batch, part)? {
            self.open.push(OpenBatch { rank, batch, saved, is_left });
        }
        Ok(())
    }

    /// Saves the state before an effect, from the moment a batch exists.
    fn before(&mut self, effect: &EffectOf<H::Pipeline>, state: &State<H>) -> Result<()> {
        let Some(batch) = &self.run.batch else { return Ok(()) };
        match effect {
            Effect::End(ending) if !matches!(ending, Ending::Paused(_)) => return Ok(()),
            // After a crash, what was done before it is done once more, and then it is read again.
            Effect::Perform(Task::Gather(_) | Task::LookUp(_)) => return Ok(()),
            Effect::Ask(question) if self.is_on_trial && question.is_follow_up() => return Ok(()),
            // The answer is at hand: until it is taken in, the batch still waits for it.
            Effect::Ask(_) if matches!(self.answerer, Answerer::Reply(Some(_))) => return Ok(()),
            Effect::Ask(question) => {
                let is_by_hand = self.progress.kind == Kind::Hand;
                self.progress.awaits = Some(question.reply_name());
                self.progress.is_with_person = is_by_hand && matches!(self.answerer, Answerer::Reply(None));
            }
            _ => self.progress.is_with_person = false,
        }
        self.is_on_trial = false;
        // A dry run is taken up nowhere but at its first question, by --apply, as its reply was given to it.
        let is_second_look =
            matches!(effect, Effect::Ask(question) if question.is_second_look && question.part == 0);
        if self.progress.kind == Kind::DryRun && self.progress.answers > 0 && !is_second_look {
            return Ok(());
        }
        batch.save(&Saved { progress: self.progress.clone(), state: state.clone() })
    }

    /// `None`: a person is to answer.
    fn answer(&mut self, question: &Question) -> Result<Option<Answer>> {
        self.parts = question.of;
        let answer = match &mut self.answerer {
            Answerer::Command => {
                let is_dry = self.progress.kind == Kind::DryRun;
                self.run.ask(self.run.batch()?, question, is_dry)?
            }
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
            Answerer::Nobody(failure) => Answer::Failed(failure.clone()),
        };
        if matches!(answer, Answer::Reply(_)) {
            self.progress.answers += 1;
            self.progress.awaits = None;
        }
        Ok(Some(answer))
    }

    fn end(&mut self, ending: &Ending, state: &State<H>) -> Result<()> {
        let Some(batch) = &self.run.batch else { return Ok(()) };
        let is_shown = self.progress.kind == Kind::DryRun && self.progress.answers > 0;
        match ending {
            Ending::Paused(_) => Ok(()),
            // Somebody may apply it.
            Ending::Completed | Ending::Stopped(_) if is_shown => Ok(()),
            Ending::Completed | Ending::Stopped(_) if self.host.keeps(&self.run, &self.progress)? => {
                let progress = Progress { is_over: true, ..self.progress.clone() };
                batch.save(&Saved { progress, state: state.clone() })
            }
            Ending::Idle | Ending::Completed | Ending::Stopped(_) | Ending::Failed(_) => batch.end(),
        }
    }

    /// A walk from the beginning.
    fn begin(&mut self, answerer: Answerer) -> Result<Stop> {
        self.run.batch = None;
        self.progress = Progress::new(self.run.kind, self.run.env.now());
        self.answerer = answerer;
        self.walk(StateOf::<H::Pipeline>::Begin, Event::Resumed)
    }

    /// A walk from where a batch was left.
    fn resume(&mut self, batch: Batch, saved: Saved<State<H>>, answerer: Answerer) -> Result<Stop> {
        self.run.batch = Some(batch);
        self.progress = saved.progress;
        self.answerer = answerer;
        self.walk(saved.state, Event::Resumed)
    }

    /// Everything that may be done now: what earlier runs left half done, then what is new, and the further parts of
    /// what is long in turn with it.
    pub fn run(&mut self) -> Result<Ending> {
        let mut last = self.carry_on(true)?;
        if self.stuck.is_some() && self.host.is_held_up(&self.run)? {
            return self.unless_stuck(last);
        }
        // Without a command, what it had claimed is in the queue again, and notes are filed as they are.
        // Nor is it this run's failure that a person brought no reply.
        if matches!(last, Ending::Failed(Failure::NoCommand | Failure::Expired)) {
            last = Ending::Idle;
        }
        // Whoever begins one batch a run has had it.
        if !self.host.begins_again() && last.failure().is_some() {
            return self.unless_stuck(last);
        }
        let ends_the_run =
            |failure: &Failure| failure.is_of_the_command() || matches!(failure, Failure::Spent(_));
        let mut may_begin = true;
        while !last.failure().is_some_and(ends_the_run) {
            let next = (0..self.open.len()).min_by_key(|index| self.open[*index].rank);
            let begins = match next {
                None if may_begin => true,
                None => break,
                Some(index) => may_begin && self.host.queue_goes_first(&self.open[index].rank, &self.run)?,
            };
            let stop = match next.filter(|_| !begins) {
                None => self.begin(Answerer::Command)?,
                Some(index) => {
                    let OpenBatch { batch, saved, is_left, .. } = self.open.swap_remove(index);
                    self.continued(batch, saved, Answerer::Command, is_left)?
                }
            };
            may_begin &= self.host.begins_again();
            match stop {
                Stop::End(Ending::Idle) => may_begin &= !begins,
                // What it had claimed waits for a command again.
                Stop::End(Ending::Failed(Failure::NoCommand)) if !begins => {}
                // A later batch that goes well does not make good for one that failed.
                Stop::End(Ending::Completed) if matches!(last, Ending::Failed(_)) => {}
                Stop::End(ending) => last = ending,
                Stop::Asked(_) | Stop::Turn => {}
            }
        }
        self.unless_stuck(last)
    }

    fn unless_stuck(&mut self, ending: Ending) -> Result<Ending> {
        self.stuck.take().map_or(Ok(ending), Err)
    }

    /// Brings to its end what earlier runs left, or to where others may have their turn. Without `asks`, only as far as
    /// no call is needed.
    fn carry_on(&mut self, asks: bool) -> Result<Ending> {
        let mut last = Ending::Idle;
        for (batch, saved, answerer) in self.left_behind(asks)? {
            if last.failure().is_some_and(Failure::is_of_the_command) {
                break;
            }
            if saved.progress.kind == Kind::Run
                && matches!(answerer, Answerer::Command)
                && let Some(part) = next_turn::<H>(&saved.state)
            {
                self.take_in(part, batch, saved, true)?;
                continue;
            }
            let answerer = match answerer {
                Answerer::Command if !asks => Answerer::Reply(None),
                answerer => answerer,
            };
            match self.continued(batch, saved, answerer, asks)? {
                Stop::End(ending @ (Ending::Paused(_) | Ending::Stopped(_))) => return Ok(ending),
                Stop::End(ending @ Ending::Failed(_)) => last = ending,
                Stop::End(_) | Stop::Asked(_) | Stop::Turn => {}
            }
        }
        Ok(last)
    }

    /// A walk from where a batch was left. One that cannot be carried on is reported, and is in nobody's way.
    fn continued(
        &mut self,
        batch: Batch,
        saved: Saved<State<H>>,
        answerer: Answerer,
        is_told: bool,
    ) -> Result<Stop> {
        let (id, dir) = (batch.id.clone(), batch.dir.clone());
        let mut saved = saved;
        if saved.progress.kind == Kind::Run && saved.progress.answers == 0 {
            saved.progress.taken_up = saved.progress.taken_up.saturating_add(1);
            batch.save(&saved)?;
        }
        if is_told && !self.run.is_quiet {
            let state = H::Pipeline::name(&saved.state);
            self.run.reporter.warn(&format!("continuing {id}, which an earlier run left in state {state}"));
        }
        match self.resume(batch, saved, answerer) {
            // Nothing is written and nothing paid for: it is begun anew, rather than being in the way for ever.
            Err(error) if self.progress.answers == 0 && !self.has_reply()? => {
                self.run.reporter.warn(&format!("{id} cannot be continued and starts again: {error}"));
                self.run.batch()?.end()?;
                Ok(Stop::End(Ending::Idle))
            }
            Err(error) => {
                self.run.reporter.warn(&format!("{id}: {error}"));
                self.stuck = Some(error.hint(format!("to give it up, move \"{}\" away", dir.display())));
                Ok(Stop::End(Ending::Idle))
            }
            stop => stop,
        }
    }

    /// The batches to carry on, each with who answers it. Those without a future are ended. With `asks`, the command of
    /// a killed run is waited for.
    fn left_behind(&self, asks: bool) -> Result<Vec<LeftBehind<State<H>>>> {
        let mut left = Vec::new();
        self.sweep();
        for batch in H::batches(self.run.root).0.all()? {
            file::sweep_dir(&batch.dir, "", file::LEFT_BEHIND);
            let saved: Saved<State<H>> = match Saved::load(&batch) {
                Ok(Some(saved)) => saved,
                Ok(None) => {
                    batch.end()?;
                    continue;
                }
                Err(error) => {
                    self.run.reporter.warn(&error.line());
                    continue;
                }
            };
            let progress = &saved.progress;
            let is_old = progress.is_old(self.run.env.now());
            if progress.is_over || (progress.is_with_person && !is_old) {
                continue;
            }
            let (take_up, answerer) = match progress.kind {
                Kind::Run => {
                    let is_there = |name: &str| match asks {
                        true => self.run.is_there(&batch, name),
                        false => Ok(batch.file(name).exists()),
                    };
                    let has_reply = match progress.awaits.as_deref().map(is_there).transpose() {
                        Ok(has_reply) => has_reply.unwrap_or(false),
                        Err(error) => {
                            self.run.reporter.warn(&format!("{}: {error}", batch.id));
                            continue;
                        }
                    };
                    if asks && progress.answers == 0 && !has_reply && progress.taken_up >= TAKEN_UP {
                        let why =
                            "has ended every run that took it up; its entries are asked about one by one";
                        self.run.reporter.warn(&format!("{} {why}", batch.id));
                        self.host.split(&batch, &self.run)?;
                        batch.end()?;
                        continue;
                    }
                    (self.host.take_up(progress, has_reply, &self.run), Answerer::Command)
                }
                // Its reply was brought, and a crash came before all of it was done.
                Kind::Hand if progress.answers > 0 && !progress.is_with_person => {
                    (TakeUp::CarryOn, Answerer::Reply(None))
                }
                Kind::Hand if progress.answers > 0 => (TakeUp::Close, Answerer::Command),
                Kind::DryRun if !is_old => continue,
                Kind::Hand | Kind::DryRun => (TakeUp::Drop, Answerer::Command),
            };
            match take_up {
                TakeUp::CarryOn => left.push((batch, saved, answerer)),
                TakeUp::Close => left.push((batch, saved, Answerer::Nobody(Failure::Expired))),
                TakeUp::Drop => batch.end()?,
            }
        }
        Ok(left)
    }

    /// Is there a reply to the question that the batch under way waits for?
    fn has_reply(&self) -> Result<bool> {
        let batch = self.run.batch()?;
        Ok(self.progress.awaits.as_deref().is_some_and(|name| batch.file(name).exists()))
    }

    /// Is a question what is to be answered next in this state?
    fn is_asking(&self, state: &State<H>) -> bool {
        matches!(self.host.pipeline().step(state.clone(), Event::Resumed).1, Effect::Ask(_))
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
        self.carry_on(false)?;
        self.stuck.take().map_or(Ok(()), Err)
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
                Stop::End(Ending::Idle) => return self.open_question(0),
                Stop::End(Ending::Completed) if self.host.begins_again() => {}
                Stop::End(Ending::Completed) => return Ok(None),
                Stop::End(Ending::Failed(failure) | Ending::Paused(failure) | Ending::Stopped(failure)) => {
                    return Err(Error::api(failure.to_string()));
                }
            }
        }
    }

    /// The question of a batch that waits for a person, and has had at least so many replies.
    fn open_question(&mut self, answers: usize) -> Result<Option<Question>> {
        for batch in H::batches(self.run.root).0.all()? {
            if let Ok(Some(saved)) = Saved::load(&batch)
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
        let saved: Saved<State<H>> = Saved::load(&batch)?.ok_or_else(|| no_such_batch(&batch.id))?;
        let progress = &saved.progress;
        if progress.is_over {
            return Err(no_such_batch(&batch.id));
        }
        let is_asking = self.is_asking(&saved.state);
        let is_dry = progress.kind == Kind::DryRun;
        let progress = Progress { kind: Kind::Hand, ..progress.clone() };
        let saved = Saved { progress, state: saved.state };
        if is_dry {
            if let Some(work) = saved.state.work() {
                self.host.claim(&batch, work, &self.run)?;
            }
            let progress = Progress { is_with_person: true, ..saved.progress.clone() };
            batch.save(&Saved { progress, state: saved.state.clone() })?;
        }
        // It was brought before, and a crash came between: what it asked for is done first.
        let was_brought = saved.progress.answers > 0 && !is_asking;
        let reply = (!was_brought).then(|| text.to_owned());
        self.is_on_trial = !was_brought;
        match self.resume(batch, saved, Answerer::Reply(reply))? {
            // The batch is as it was before.
            Stop::Asked(question) if question.is_repair() => {
                Err(Error::api(format!("the reply cannot be used: {}", question.faults.join("; ")))
                    .hint("correct it and apply it again; the batch still waits for it"))
            }
            Stop::Asked(question) => Ok(question.of.saturating_sub(question.part)),
            Stop::End(Ending::Failed(failure) | Ending::Paused(failure) | Ending::Stopped(failure)) => {
                Err(Error::api(failure.to_string()))
            }
            Stop::End(Ending::Idle | Ending::Completed) | Stop::Turn => Ok(0),
        }
    }

    /// One batch from its beginning, with the store left as it is.
    pub fn dry_run(&mut self) -> Result<(Ending, Previewed)> {
        self.run.sweep();
        let stop = self.begin(Answerer::Command)?;
        let reply = match &self.run.batch {
            Some(batch) if self.progress.answers > 0 => {
                Question::first_replies().map(|name| batch.file(name)).into_iter().find(|path| path.exists())
            }
            _ => None,
        };
        match stop {
            Stop::End(ending) => Ok((ending, Previewed { reply, parts: self.parts })),
            Stop::Asked(_) | Stop::Turn => Ok((Ending::Idle, Previewed { reply, parts: self.parts })),
        }
    }
}
