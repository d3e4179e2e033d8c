//! One runner for both pipelines: consolidate (queue → notes) and defrag (notes → notes in order).
//!
//! Each pipeline is a [`Machine`]: a function from a state and an event to the next state and the effect that it wants
//! performed. Machines do no I/O. The [`runner`] performs each effect, saves the state before it, and feeds the outcome
//! back as the next event. Running, resuming, `--dry-run`, `--prompt` and `--apply` are the same walk; what differs is
//! who answers [`Effect::Ask`], and whether the store is changed or only a copy of it in memory.

pub(crate) mod call;
pub(crate) mod extract;
pub(crate) mod question;
pub(crate) mod reply;
pub(crate) mod runner;
pub(crate) mod saved;

pub use crate::memory::pipeline::question::Question;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A pipeline without I/O. The value itself holds settings only; all progress is in the state, which can be saved
/// after every step and taken up again with [`Event::Resumed`].
pub trait Machine {
    type State: Clone + Serialize + DeserializeOwned;
    /// What the pipeline wants done, besides asking the model.
    type Task;
    /// What came of a task.
    type Done;

    /// The state of a run that has not begun.
    fn start(&self) -> Self::State;

    /// The next state, and what to do in it. Performing an effect twice must have the result of performing it once.
    /// An event that does not belong to the state leaves it as it is, and gives its effect again.
    fn step(&self, state: Self::State, event: Event<Self::Done>) -> (Self::State, Effect<Self::Task>);

    /// The state's name, as it is saved.
    fn name(state: &Self::State) -> &'static str;
}

/// What a machine wants done in its current state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<T> {
    /// Ask the model, and answer with [`Event::Answered`].
    Ask(Question),
    /// Anything else; answer with [`Event::Done`].
    Perform(T),
    /// Nothing: the walk is over.
    End(Ending),
}

/// What came of an effect.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<D> {
    /// A saved state was taken up: its effect is wanted again.
    Resumed,
    /// The model was asked.
    Answered(Answer),
    Done(D),
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The text that the model printed.
    Reply(String),
    /// Nobody can be asked, and the question has an earlier reply to go on with.
    Fallback,
    Failed(Failure),
}

/// How a walk ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// There was nothing to do.
    Idle,
    Completed,
    /// Completed as far as replies could be had.
    Stopped(Failure),
    /// The batch is over, and did not get to its end.
    Failed(Failure),
    /// The batch stays as it is, for a later run.
    Paused(Failure),
}

/// Why there is no reply that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "why")]
pub enum Failure {
    /// No call may be made now: a cap is reached. The next run goes on.
    Spent(String),
    /// No LLM command is configured.
    NoCommand,
    /// The command cannot be started. This counts against nothing that was to be asked about.
    NotStarted(String),
    /// The command failed.
    Command(String),
    /// The reply cannot be used, not even the second.
    Reply(String),
    /// A person asked for the prompt, and brought no reply in time.
    Expired,
}

impl Ending {
    /// Why it is not the end that was hoped for.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Ending::Stopped(failure) | Ending::Failed(failure) | Ending::Paused(failure) => Some(failure),
            Ending::Idle | Ending::Completed => None,
        }
    }
}

impl Failure {
    /// The repaired reply is no better than the first.
    pub(super) fn unusable(faults: &[String]) -> Failure {
        let faults = faults.join("; ");
        Failure::Reply(format!("the reply cannot be used, and neither can a second: {faults}"))
    }

    /// Would the next call fail in the same way?
    fn is_of_the_command(&self) -> bool {
        matches!(self, Failure::NotStarted(_) | Failure::Command(_))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Spent(why) | Failure::NotStarted(why) | Failure::Command(why) | Failure::Reply(why) => {
                f.write_str(why)
            }
            Failure::NoCommand => f.write_str("no LLM command is configured"),
            Failure::Expired => f.write_str("no reply came within 24 hours"),
        }
    }
}
