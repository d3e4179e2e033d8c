//! From the queue to notes (US-005): the machine. It does no I/O; see [`crate::memory::pipeline`].

mod amend;
pub(crate) mod ask;
mod captured;
mod decide;
pub(crate) mod forecast;
mod gather;
pub(crate) mod heard;
mod history;
pub(crate) mod host;
pub(crate) mod judge;
mod line;
mod output;
pub(crate) mod passage;
pub(crate) mod pending;
pub(crate) mod plan;
pub(crate) mod queue;
pub(crate) mod related;
pub(crate) mod reply;
pub(crate) mod work;
pub(crate) mod write;

use crate::memory::consolidate::ask::{Material, REPLY};
use crate::memory::consolidate::judge::{Judgement, Known, MayAsk, as_they_are, judged};
use crate::memory::consolidate::plan::{Change, Plan};
use crate::memory::consolidate::work::{
    BatchSource, Claimed, Outcome, Part, SecondLook, Slice, Stretch, Verdict, Waiting, Work, Written,
};
use crate::memory::pipeline::{Answer, Effect, Ending, Event, Failure, Machine, Question};
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use crate::store::proposal::ProposalId;
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
    /// The next part.
    GoOn,
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
        /// The notes that are to be shown whole.
        wanted: Vec<EntryId>,
    },
    /// Read what a reply is held against: these notes as they are now, and who said what in the slices.
    LookUp {
        sources: Vec<BatchSource>,
        slices: Vec<Slice>,
        notes: Vec<EntryId>,
        /// The changes that wait and were shown.
        changes: Vec<ProposalId>,
    },
    /// Tell a person what was not done as the model asked.
    Warn(Vec<String>),
    /// Make a change; if it is made already, nothing.
    Write {
        change: Change,
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
        waiting: Vec<Waiting>,
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
    Written(Outcome),
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

impl State {
    /// The part that is to be asked about next, where an earlier one has been and nothing of this one is paid for:
    /// others may have their turn first.
    pub(crate) fn next_turn(&self) -> Option<usize> {
        let work = match self {
            State::RunAgent { work, question: None } if work.second_look.is_none() => work,
            State::Paused { work, question, .. } if !question.is_follow_up() => work,
            _ => return None,
        };
        Some(work.next).filter(|next| *next > 0)
    }
}

/// What is to be done in a state.
fn effect(state: &State) -> Effect<Task> {
    Effect::Perform(match state {
        State::LoadQueue => Task::LoadQueue,
        State::FetchHistory { work } => Task::FetchHistory { sources: work.sources.clone() },
        State::RunAgent { question: Some(question), .. } => return Effect::Ask(question.clone()),
        State::RunAgent { work, question: None } => {
            let wanted = work.second_look.as_ref().map(|look| look.wanted.clone()).unwrap_or_default();
            Task::Gather { sources: work.sources.clone(), slices: work.slices().to_vec(), wanted }
        }
        State::ParseOutput { work, .. } => Task::LookUp {
            sources: work.sources.clone(),
            slices: work.slices().to_vec(),
            notes: work.shown_notes(),
            changes: work.shown_changes.clone(),
        },
        State::WriteEntries { plan, is_told: false, .. } => Task::Warn(plan.warnings.clone()),
        State::WriteEntries { work, plan, written, .. } => match plan.changes.get(*written) {
            Some(change) => Task::Write { change: change.clone(), at: plan.at },
            None => Task::Consume { stretches: work.seen() },
        },
        State::MarkProcessed { work, .. } => {
            Task::MarkProcessed { sources: work.sources.clone(), verdicts: work.verdicts.clone() }
        }
        State::CommitChanges { work, is_committed: false, .. } => {
            let (written, waiting) = work.uncommitted();
            Task::Commit { written: written.to_vec(), waiting: waiting.to_vec() }
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
            (State::RunAgent { work, question: None }, Event::Done(Done::Gathered(material))) => {
                asked(work, &material)
            }
            (State::RunAgent { work, question: Some(question) }, Event::Answered(answer)) => match answer {
                Answer::Reply(reply) => State::ParseOutput { work, question: Some(question), reply },
                Answer::Fallback => match question.fallback.clone() {
                    Some(reply) => fall_back(work, question, reply),
                    None => State::RunAgent { work, question: Some(question) },
                },
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
                State::ParseOutput { work, question: Some(question), reply },
                Event::Done(Done::Found(known)),
            ) => self.parsed(work, question, reply, known),
            (State::WriteEntries { work, plan, written, .. }, Event::Done(Done::Warned)) => {
                State::WriteEntries { work, plan, written, is_told: true }
            }
            (
                State::WriteEntries { mut work, plan, is_told, written },
                Event::Done(Done::Written(outcome)),
            ) => {
                work.take(outcome);
                State::WriteEntries { work, plan, is_told, written: written.saturating_add(1) }
            }
            (State::WriteEntries { mut work, .. }, Event::Done(Done::Consumed)) => {
                // What the model passed over in silence is not asked about further.
                let is_alive = work.is_alive();
                work.second_look = None;
                work.next = work.next.saturating_add(1);
                match is_alive && work.next < work.parts.len() {
                    true => to_commit(work, Then::GoOn),
                    false => State::MarkProcessed { work, failure: None },
                }
            }
            (State::MarkProcessed { work, failure }, Event::Done(Done::Marked)) => {
                to_commit(work, failure.map_or(Then::Complete, Then::Fail))
            }
            (State::CommitChanges { mut work, then, .. }, Event::Done(Done::Committed)) => {
                work.is_committed();
                State::CommitChanges { work, then, is_committed: true }
            }
            (State::CommitChanges { work, then, .. }, Event::Done(Done::Refreshed)) => {
                after_commit(work, then)
            }
            (State::Paused { work, question, .. }, Event::Resumed) => {
                State::RunAgent { work, question: Some(question) }
            }
            (state, _) => state,
        }
    }
}

impl Consolidate<'_> {
    /// What a reply leads to: to writing, or to a further question.
    fn parsed(&self, mut work: Work, question: Question, reply: String, known: Known) -> State {
        let may_ask = MayAsk { look: !question.is_follow_up(), repair: !question.is_repair() };
        match judged(&work, &reply, known, may_ask, self.redactor) {
            Judgement::Plan(plan, verdicts) => {
                work.verdicts.extend(verdicts);
                State::WriteEntries { work, is_told: plan.warnings.is_empty(), plan, written: 0 }
            }
            Judgement::Look(wanted) => {
                work.second_look = Some(SecondLook { wanted, reply, updatable: work.updatable.clone() });
                State::RunAgent { work, question: None }
            }
            Judgement::Improvable(faults) => {
                let repair = question.repaired(REPLY, &reply, &faults, self.max_prompt_bytes);
                // It may be asked, so there is a question; and its answer may be no better.
                let question = Question { fallback: Some(reply), ..repair.unwrap_or(question) };
                State::RunAgent { work, question: Some(question) }
            }
            Judgement::Unusable(faults) => {
                match question.repaired(REPLY, &reply, &faults, self.max_prompt_bytes) {
                    Some(question) => State::RunAgent { work, question: Some(question) },
                    None => failed(work, Failure::unusable(&faults), question),
                }
            }
        }
    }
}

/// The question about the part under way, with what it shows.
fn asked(mut work: Work, material: &Material) -> State {
    work.updatable = material.updatable();
    work.listed = material.listed();
    work.shown_changes = material.shown_changes();
    let question = Question {
        batch: work.batch.clone(),
        part: work.next,
        of: work.parts.len(),
        prompt: ask::prompt(&work.batch, material),
        faults: Vec::new(),
        is_second_look: work.second_look.is_some(),
        fallback: work.second_look.as_ref().map(|look| look.reply.clone()),
    };
    match &work.second_look {
        // There is nothing more to see: asking again would bring the same.
        Some(look) if !look.wanted.iter().any(|id| work.updatable.contains_key(id)) => {
            let reply = look.reply.clone();
            fall_back(work, question, reply)
        }
        _ => State::RunAgent { work, question: Some(question) },
    }
}

/// A question has no answer that can be used: the reply before it is taken for what it is worth.
fn fall_back(mut work: Work, question: Question, reply: String) -> State {
    // That reply knew nothing of the notes that only this question shows.
    if !question.is_repair()
        && let Some(look) = work.second_look.take()
    {
        work.updatable = look.updatable;
        work.listed.extend(look.wanted);
    }
    let question = Question { fallback: None, ..question };
    State::ParseOutput { work, question: Some(question), reply }
}

/// What a failed call leads to. What earlier parts gave stays.
fn failed(mut work: Work, failure: Failure, question: Question) -> State {
    match &failure {
        // What has been paid for already stays with the batch.
        Failure::Spent(_) if question.is_follow_up() || work.next > 0 => {
            return to_commit(work, Then::Pause(question, failure));
        }
        // An earlier reply is not thrown away because a later one could not be had.
        _ if let Some(reply) = question.fallback.clone() => {
            return fall_back(work, question, reply);
        }
        Failure::Spent(_) | Failure::NoCommand | Failure::NotStarted(_) | Failure::Expired => {}
        Failure::Command(why) | Failure::Reply(why) => work.take_failure(why),
    }
    State::MarkProcessed { work, failure: Some(failure) }
}

/// Where nothing was written, there is nothing to commit or to show.
fn to_commit(work: Work, then: Then) -> State {
    match work.has_uncommitted() {
        true => State::CommitChanges { work, then, is_committed: false },
        false => after_commit(work, then),
    }
}

fn after_commit(work: Work, then: Then) -> State {
    match then {
        Then::Complete => State::Completed { work: Some(work) },
        Then::GoOn => State::RunAgent { work, question: None },
        Then::Fail(failure) => State::Failed { failure },
        Then::Pause(question, failure) => State::Paused { work, question, failure },
    }
}

#[cfg(test)]
mod tests;
