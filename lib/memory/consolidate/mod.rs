//! From the queue to notes (US-005): the machine. It does no I/O; see [`crate::memory::pipeline`].

pub(crate) mod ask;
mod gather;
mod history;
pub(crate) mod host;
pub(crate) mod judge;
pub(crate) mod plan;
pub(crate) mod queue;
pub(crate) mod related;
pub(crate) mod reply;
pub(crate) mod work;
pub(crate) mod write;

use crate::memory::consolidate::ask::{Material, REPLY};
use crate::memory::consolidate::judge::{Known, as_they_are, judged};
use crate::memory::consolidate::plan::{Plan, PlannedNote};
use crate::memory::consolidate::work::{BatchSource, Claimed, Part, Slice, Stretch, Verdict, Work, Written};
use crate::memory::pipeline::{Answer, Effect, Ending, Event, Failure, Machine, Question};
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine. Its settings are the same for every step of a run.
pub struct Consolidate<'a> {
    /// Takes secrets out of what the model writes.
    pub redactor: &'a Redactor,
    /// How long a prompt may be, in bytes.
    pub max_prompt_bytes: usize,
}

/// Where a batch is. Each state holds just what the next needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum State {
    /// Nothing is claimed yet.
    LoadQueue,
    /// Entries are claimed, their histories are not read.
    FetchHistory {
        work: Work,
    },
    /// The next part is to be asked about, as soon as there is a question.
    RunAgent {
        work: Work,
        question: Option<Question>,
    },
    /// There is a reply. Without a question: there is no LLM, and notes are filed as they are.
    ParseOutput {
        work: Work,
        question: Option<Question>,
        reply: String,
    },
    /// It is known what to write; so many notes of it are written.
    WriteEntries {
        work: Work,
        plan: Plan,
        is_told: bool,
        written: usize,
    },
    /// All parts are done with, or a call failed.
    MarkProcessed {
        work: Work,
        failure: Option<Failure>,
    },
    CommitChanges {
        work: Work,
        then: Then,
        is_committed: bool,
    },
    Completed {
        work: Option<Work>,
    },
    Failed {
        failure: Failure,
    },
    /// A cap is reached, after something was written or paid for. The next run asks the question.
    Paused {
        work: Work,
        question: Question,
        failure: Failure,
    },
}

/// What follows when everything is committed and shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Then {
    Complete,
    Fail(Failure),
    Pause(Question, Failure),
}

/// What the machine wants done, besides asking the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Claim the next entries that go together.
    LoadQueue,
    /// Read the histories of what was claimed, and share them out over calls.
    FetchHistory {
        sources: Vec<BatchSource>,
    },
    /// Read what the next question shows: the slices, the related notes, the tags in use.
    Gather {
        sources: Vec<BatchSource>,
        slices: Vec<Slice>,
    },
    /// Read what the notes that may be updated are now.
    LookUp {
        updatable: BTreeMap<EntryId, String>,
    },
    /// Tell a person what was not done as the model asked.
    Warn(Vec<String>),
    /// Write a note; if it is written already, nothing.
    Write {
        note: Box<PlannedNote>,
        at: Timestamp,
    },
    /// Remember that these stretches of sessions have been seen.
    Consume {
        stretches: Vec<Stretch>,
    },
    /// Give each entry its place by its verdict; those without one go back to the queue.
    MarkProcessed {
        sources: Vec<BatchSource>,
        verdicts: BTreeMap<String, Verdict>,
    },
    Commit {
        written: Vec<Written>,
    },
    /// Show what was written in the targets of AGENTS.md.
    Refresh,
}

/// What came of a task.
#[derive(Debug)]
pub enum Done {
    Loaded(Loaded),
    Fetched { sources: Vec<BatchSource>, parts: Vec<Part>, verdicts: BTreeMap<String, Verdict> },
    Gathered(Material),
    Found(Known),
    Warned,
    Written(Written),
    Consumed,
    Marked,
    Committed,
    Refreshed,
}

/// What the queue gave.
#[derive(Debug)]
pub enum Loaded {
    /// Nothing waits that may be tried now.
    Nothing,
    Batch(Claimed),
    /// No call may be made now, for this reason, so nothing was claimed.
    Spent(String),
}

impl Machine for Consolidate<'_> {
    type State = State;
    type Task = Task;
    type Done = Done;

    fn start(&self) -> State {
        State::LoadQueue
    }

    fn step(&self, state: State, event: Event<Done>) -> (State, Effect<Task>) {
        let state = self.next(state, event);
        let effect = effect(&state);
        (state, effect)
    }

    fn name(state: &State) -> &'static str {
        match state {
            State::LoadQueue => "loadQueue",
            State::FetchHistory { .. } => "fetchHistory",
            State::RunAgent { .. } => "runAgent",
            State::ParseOutput { .. } => "parseOutput",
            State::WriteEntries { .. } => "writeEntries",
            State::MarkProcessed { .. } => "markProcessed",
            State::CommitChanges { .. } => "commitChanges",
            State::Completed { .. } => "completed",
            State::Failed { .. } => "failed",
            State::Paused { .. } => "paused",
        }
    }
}

impl State {
    /// What was claimed.
    pub(crate) fn sources(&self) -> &[BatchSource] {
        match self {
            State::FetchHistory { work }
            | State::RunAgent { work, .. }
            | State::ParseOutput { work, .. }
            | State::WriteEntries { work, .. }
            | State::MarkProcessed { work, .. }
            | State::CommitChanges { work, .. }
            | State::Completed { work: Some(work) }
            | State::Paused { work, .. } => &work.sources,
            State::LoadQueue | State::Completed { work: None } | State::Failed { .. } => &[],
        }
    }
}

/// What is to be done in a state.
fn effect(state: &State) -> Effect<Task> {
    Effect::Perform(match state {
        State::LoadQueue => Task::LoadQueue,
        State::FetchHistory { work } => Task::FetchHistory { sources: work.sources.clone() },
        State::RunAgent { question: Some(question), .. } => return Effect::Ask(question.clone()),
        State::RunAgent { work, question: None } => {
            Task::Gather { sources: work.sources.clone(), slices: work.slices().to_vec() }
        }
        State::ParseOutput { work, .. } => Task::LookUp { updatable: work.updatable.clone() },
        State::WriteEntries { plan, is_told: false, .. } => Task::Warn(plan.warnings.clone()),
        State::WriteEntries { work, plan, written, .. } => match plan.notes.get(*written) {
            Some(note) => Task::Write { note: Box::new(note.clone()), at: plan.at },
            None => Task::Consume { stretches: work.seen() },
        },
        State::MarkProcessed { work, .. } => {
            Task::MarkProcessed { sources: work.sources.clone(), verdicts: work.verdicts.clone() }
        }
        State::CommitChanges { work, is_committed: false, .. } => {
            Task::Commit { written: work.written.clone() }
        }
        State::CommitChanges { .. } => Task::Refresh,
        State::Completed { work: None } => return Effect::End(Ending::Idle),
        State::Completed { work: Some(_) } => return Effect::End(Ending::Completed),
        State::Failed { failure } => return Effect::End(Ending::Failed(failure.clone())),
        State::Paused { failure, .. } => return Effect::End(Ending::Paused(failure.clone())),
    })
}

impl Consolidate<'_> {
    /// The state that an event leads to. An event that does not belong to a state leaves it as it is.
    fn next(&self, state: State, event: Event<Done>) -> State {
        match (state, event) {
            (State::LoadQueue, Event::Done(Done::Loaded(loaded))) => match loaded {
                Loaded::Batch(claimed) => State::FetchHistory { work: Work::new(claimed) },
                Loaded::Nothing => State::Completed { work: None },
                Loaded::Spent(why) => State::Failed { failure: Failure::Spent(why) },
            },
            (State::FetchHistory { work }, Event::Done(Done::Fetched { sources, parts, verdicts })) => {
                let work = Work { sources, parts, verdicts, ..work };
                match (work.parts.is_empty(), work.has_llm) {
                    (true, _) => State::MarkProcessed { work, failure: None },
                    (false, true) => State::RunAgent { work, question: None },
                    (false, false) => State::ParseOutput { work, question: None, reply: String::new() },
                }
            }
            (State::RunAgent { mut work, question: None }, Event::Done(Done::Gathered(material))) => {
                work.updatable = material.updatable();
                let question = Question {
                    batch: work.batch.clone(),
                    part: work.next,
                    of: work.parts.len(),
                    prompt: ask::prompt(&work.batch, &material),
                    faults: Vec::new(),
                };
                State::RunAgent { work, question: Some(question) }
            }
            (State::RunAgent { work, question: Some(question) }, Event::Answered(answer)) => match answer {
                Answer::Reply(reply) => State::ParseOutput { work, question: Some(question), reply },
                Answer::Failed(failure) => failed(work, failure, question),
            },
            (State::ParseOutput { mut work, question: None, .. }, Event::Done(Done::Found(known))) => {
                let (plan, verdicts) = as_they_are(&work, known, self.redactor);
                work.verdicts.extend(verdicts);
                // All of it is filed at once; sessions without a verdict go back to the queue.
                work.next = work.parts.len();
                State::WriteEntries { work, is_told: plan.warnings.is_empty(), plan, written: 0 }
            }
            (
                State::ParseOutput { mut work, question: Some(question), reply },
                Event::Done(Done::Found(known)),
            ) => match judged(&work, &reply, known, self.redactor) {
                Ok((plan, verdicts)) => {
                    work.verdicts.extend(verdicts);
                    State::WriteEntries { work, is_told: plan.warnings.is_empty(), plan, written: 0 }
                }
                Err(faults) => match question.repaired(REPLY, &reply, &faults, self.max_prompt_bytes) {
                    Some(question) => State::RunAgent { work, question: Some(question) },
                    None => failed(work, Failure::unusable(&faults), question),
                },
            },
            (State::WriteEntries { work, plan, written, .. }, Event::Done(Done::Warned)) => {
                State::WriteEntries { work, plan, written, is_told: true }
            }
            (State::WriteEntries { mut work, plan, is_told, written }, Event::Done(Done::Written(note))) => {
                work.written.push(note);
                State::WriteEntries { work, plan, is_told, written: written.saturating_add(1) }
            }
            (State::WriteEntries { mut work, .. }, Event::Done(Done::Consumed)) => {
                // What the model passed over in silence is not asked about further.
                let is_alive = work.is_alive();
                work.next = work.next.saturating_add(1);
                match is_alive && work.next < work.parts.len() {
                    true => State::RunAgent { work, question: None },
                    false => State::MarkProcessed { work, failure: None },
                }
            }
            (State::MarkProcessed { work, failure }, Event::Done(Done::Marked)) => {
                to_commit(work, failure.map_or(Then::Complete, Then::Fail))
            }
            (State::CommitChanges { work, then, .. }, Event::Done(Done::Committed)) => {
                State::CommitChanges { work, then, is_committed: true }
            }
            (State::CommitChanges { work, then, .. }, Event::Done(Done::Refreshed)) => match then {
                Then::Complete => State::Completed { work: Some(work) },
                Then::Fail(failure) => State::Failed { failure },
                Then::Pause(question, failure) => State::Paused { work, question, failure },
            },
            (State::Paused { work, question, .. }, Event::Resumed) => {
                State::RunAgent { work, question: Some(question) }
            }
            (state, _) => state,
        }
    }
}

/// What a failed call leads to. What earlier parts gave stays.
fn failed(mut work: Work, failure: Failure, question: Question) -> State {
    match &failure {
        // What has been paid for already stays with the batch.
        Failure::Spent(_) if question.is_repair() || work.next > 0 => {
            return to_commit(work, Then::Pause(question, failure));
        }
        Failure::Spent(_) | Failure::NoCommand | Failure::NotStarted(_) | Failure::Expired => {}
        Failure::Command(why) | Failure::Reply(why) => work.take_failure(why),
    }
    State::MarkProcessed { work, failure: Some(failure) }
}

/// Where nothing was written, there is nothing to commit or to show.
fn to_commit(work: Work, then: Then) -> State {
    match (work.written.is_empty(), then) {
        (true, Then::Complete) => State::Completed { work: Some(work) },
        (true, Then::Fail(failure)) => State::Failed { failure },
        (true, Then::Pause(question, failure)) => State::Paused { work, question, failure },
        (false, then) => State::CommitChanges { work, then, is_committed: false },
    }
}

#[cfg(test)]
mod tests;
