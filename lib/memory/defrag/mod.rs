//! Notes put in order (US-006): the machine. It does no I/O; see [`crate::memory::pipeline`].

pub(crate) mod apply;
pub(crate) mod ask;
pub(crate) mod corpus;
pub(crate) mod dropped;
mod family;
pub(crate) mod forget;
pub(crate) mod group;
pub(crate) mod host;
pub(crate) mod limits;
pub(crate) mod material;
mod neighbours;
mod news;
pub(crate) mod plan;
pub(crate) mod reach;
pub(crate) mod reply;
pub(crate) mod show;
pub(crate) mod similar;
pub(crate) mod structure;
pub(crate) mod undo;
pub(crate) mod work;

use crate::memory::defrag::material::Material;
use crate::memory::defrag::plan::{Allows, Found, Known, Plan, plan};
use crate::memory::defrag::work::{Part, Scanned, Work};
use crate::memory::pipeline::{Answer, Effect, Ending, Event, Failure, Machine, Question};
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use serde::{Deserialize, Serialize};

/// The machine. Its settings are the same for every step of a run.
pub struct Defrag<'a> {
    /// Takes secrets out of what the model writes.
    pub redactor: &'a Redactor,
    /// How long a prompt may be, in bytes.
    pub max_prompt_bytes: usize,
    /// More may be lost than the shares say.
    pub allows_loss: bool,
}

/// Where a defrag is. Each state holds just what the next needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum State {
    /// Is there anything that the last defrag has not seen?
    ScanEntries,
    /// There is; it is to be shared out over calls.
    AnalyzeStructure {
        work: Work,
    },
    /// The next part is asked about.
    RunAgent {
        work: Work,
        asking: Asking,
    },
    /// It is known what to change.
    ApplyChanges {
        work: Work,
        plan: Plan,
    },
    /// The call about this part failed; that is remembered.
    Stopped {
        work: Work,
        failure: Failure,
    },
    /// All parts are done with, or no further one may be asked about.
    GenerateAgentsMd {
        work: Work,
    },
    CommitChanges {
        work: Work,
    },
    Completed {
        work: Option<Work>,
    },
    Failed {
        failure: Failure,
    },
}

/// How far the call about a part is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asking {
    /// What it shows is to be read.
    Gather,
    Ask(Question),
    /// For the second time, after this reply.
    Repair(Question, String),
    /// There is a reply, to be held against the notes. A final one is used as far as it goes; else `spent` says why no
    /// second could be had.
    Check {
        question: Question,
        reply: String,
        is_final: bool,
        spent: Option<String>,
    },
}

/// What the machine wants done, besides asking the model.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Find out whether anything is new.
    ScanEntries,
    /// Find what belongs together among all notes, and share it out over calls.
    AnalyzeStructure {
        is_forced: bool,
    },
    /// Read what the next question shows.
    Gather(Part),
    /// Read what these notes are now, and which ids and names are taken.
    LookUp(Vec<EntryId>),
    /// Make the changes of one part; those that are made already, not again.
    Apply {
        work: Box<Work>,
        plan: Box<Plan>,
    },
    /// Remember that the call about this part failed.
    Remember {
        work: Box<Work>,
        failure: Failure,
    },
    GenerateAgentsMd,
    Commit,
}

/// What came of a task.
#[derive(Debug)]
pub enum Done {
    Scanned(Scanned),
    Analyzed {
        parts: Vec<Part>,
    },
    Gathered(Material),
    Found(Found),
    /// How many notes were archived without a successor.
    Applied {
        archived: usize,
    },
    Remembered,
    Generated,
    Committed,
}

impl Machine for Defrag<'_> {
    type State = State;
    type Task = Task;
    type Done = Done;

    fn start(&self) -> State {
        State::ScanEntries
    }

    fn step(&self, state: State, event: Event<Done>) -> (State, Effect<Task>) {
        let state = self.next(state, event);
        let effect = effect(&state);
        (state, effect)
    }

    fn name(state: &State) -> &'static str {
        match state {
            State::ScanEntries => "scanEntries",
            State::AnalyzeStructure { .. } => "analyzeStructure",
            State::RunAgent { .. } => "runAgent",
            State::ApplyChanges { .. } => "applyChanges",
            State::Stopped { .. } => "stopped",
            State::GenerateAgentsMd { .. } => "generateAgentsMd",
            State::CommitChanges { .. } => "commitChanges",
            State::Completed { .. } => "completed",
            State::Failed { .. } => "failed",
        }
    }
}

/// What is to be done in a state.
fn effect(state: &State) -> Effect<Task> {
    Effect::Perform(match state {
        State::ScanEntries => Task::ScanEntries,
        State::AnalyzeStructure { work } => Task::AnalyzeStructure { is_forced: work.is_forced },
        State::RunAgent { work, asking } => match asking {
            Asking::Ask(question) | Asking::Repair(question, _) => return Effect::Ask(question.clone()),
            Asking::Check { .. } => {
                Task::LookUp(work.shown.keys().chain(work.listed.keys()).cloned().collect())
            }
            Asking::Gather => match work.part() {
                Some(part) => Task::Gather(part.clone()),
                None => {
                    let why = "the saved batch has no part to ask about".to_owned();
                    return Effect::End(Ending::Failed(Failure::Reply(why)));
                }
            },
        },
        State::ApplyChanges { work, plan } => {
            Task::Apply { work: Box::new(work.clone()), plan: Box::new(plan.clone()) }
        }
        State::Stopped { work, failure } => {
            Task::Remember { work: Box::new(work.clone()), failure: failure.clone() }
        }
        State::GenerateAgentsMd { .. } => Task::GenerateAgentsMd,
        State::CommitChanges { .. } => Task::Commit,
        State::Completed { work: None } => return Effect::End(Ending::Idle),
        State::Completed { work: Some(work) } => {
            return Effect::End(match &work.stopped {
                Some(failure) => Ending::Stopped(failure.clone()),
                None => Ending::Completed,
            });
        }
        State::Failed { failure } => return Effect::End(Ending::Failed(failure.clone())),
    })
}

impl Defrag<'_> {
    /// The state that an event leads to. An event that does not belong to a state leaves it as it is.
    fn next(&self, state: State, event: Event<Done>) -> State {
        match (state, event) {
            (State::ScanEntries, Event::Done(Done::Scanned(scanned))) => match scanned {
                Scanned::News(news) => State::AnalyzeStructure { work: Work::new(news) },
                Scanned::Nothing => State::Completed { work: None },
                Scanned::Failed(failure) => State::Failed { failure },
            },
            (State::AnalyzeStructure { work }, Event::Done(Done::Analyzed { parts })) => {
                next_part(Work { parts, ..work })
            }
            (State::RunAgent { mut work, asking: Asking::Gather }, Event::Done(Done::Gathered(material))) => {
                let question = Question {
                    batch: work.batch.clone(),
                    part: work.next,
                    of: work.parts.len(),
                    prompt: material.prompt(&work.batch),
                    faults: Vec::new(),
                    is_second_look: false,
                    fallback: None,
                };
                work.shown = material.shown();
                work.listed = material.listed();
                work.expired = material.expired();
                State::RunAgent { work, asking: Asking::Ask(question) }
            }
            (State::RunAgent { work, asking: Asking::Ask(question) }, Event::Answered(answer)) => {
                match answer {
                    Answer::Reply(reply) => checked(work, question, reply, false, None),
                    Answer::Fallback => State::RunAgent { work, asking: Asking::Ask(question) },
                    Answer::Failed(failure) => State::Stopped { work, failure },
                }
            }
            (State::RunAgent { work, asking: Asking::Repair(question, first) }, Event::Answered(answer)) => {
                match answer {
                    Answer::Reply(reply) => checked(work, question, reply, true, None),
                    // What is paid for is used as far as it goes.
                    Answer::Fallback => checked(work, question, first, true, None),
                    Answer::Failed(Failure::Spent(why)) => checked(work, question, first, true, Some(why)),
                    Answer::Failed(failure) => State::Stopped { work, failure },
                }
            }
            (
                State::RunAgent { work, asking: Asking::Check { question, reply, is_final, spent } },
                Event::Done(Done::Found(found)),
            ) => match self.judged(&work, &reply, is_final, found) {
                Ok(plan) => State::ApplyChanges { work, plan },
                Err(faults) => {
                    let allows = self.allows(&work);
                    let rules = ask::rules(allows.texts, allows.tiers);
                    match question.repaired(&rules, &reply, &faults, self.max_prompt_bytes) {
                        Some(again) => State::RunAgent { work, asking: Asking::Repair(again, reply) },
                        None => {
                            let failure = spent.map_or_else(|| Failure::unusable(&faults), Failure::Spent);
                            State::Stopped { work, failure }
                        }
                    }
                }
            },
            (State::ApplyChanges { mut work, .. }, Event::Done(Done::Applied { archived })) => {
                work.archived = work.archived.saturating_add(archived);
                work.next = work.next.saturating_add(1);
                next_part(work)
            }
            // What earlier parts changed is brought to its end all the same.
            (State::Stopped { mut work, failure }, Event::Done(Done::Remembered)) => match work.next {
                0 => State::Failed { failure },
                _ => {
                    work.stopped = Some(failure).filter(|failure| *failure != Failure::Expired);
                    State::GenerateAgentsMd { work }
                }
            },
            (State::GenerateAgentsMd { work }, Event::Done(Done::Generated)) => State::CommitChanges { work },
            (State::CommitChanges { work }, Event::Done(Done::Committed)) => {
                State::Completed { work: Some(work) }
            }
            (state, _) => state,
        }
    }

    /// What a reply comes to, or what is wrong with it as a whole. When it is final, what can be used of it is.
    fn judged(&self, work: &Work, reply: &str, is_final: bool, found: Found) -> Result<Plan, Vec<String>> {
        let reply = reply::parse(reply, &work.batch)?;
        if reply.is_useless() && !is_final {
            return Err(reply.faults());
        }
        let known = Known {
            found,
            shown: &work.shown,
            listed: &work.listed,
            total: work.total,
            archived: work.archived,
            allows: self.allows(work),
            clean: &|text| self.redactor.cleaned(text),
        };
        Ok(plan(&reply, known))
    }

    /// Which operations the call about the part under way is about.
    fn allows(&self, work: &Work) -> Allows {
        let (texts, tiers) = match work.part() {
            Some(Part::Whole(..)) => (true, true),
            Some(Part::Group(..)) => (true, false),
            Some(Part::Tiers(_)) | None => (false, true),
        };
        Allows { texts, tiers, loss: self.allows_loss }
    }
}

fn checked(work: Work, question: Question, reply: String, is_final: bool, spent: Option<String>) -> State {
    State::RunAgent { work, asking: Asking::Check { question, reply, is_final, spent } }
}

fn next_part(work: Work) -> State {
    match work.part() {
        Some(_) => State::RunAgent { work, asking: Asking::Gather },
        None => State::GenerateAgentsMd { work },
    }
}

#[cfg(test)]
mod tests;
