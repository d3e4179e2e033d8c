//! What is saved of a batch before each state that does more than read.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How long a batch waits for a reply that a person is to bring.
const PATIENCE: SignedDuration = SignedDuration::from_hours(24);

/// Who answers a batch's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The configured command.
    Run,
    /// A person, with `--prompt` and `--apply`.
    Hand,
    /// The configured command, for a plan that is only shown. Claims nothing.
    DryRun,
}

/// What a runner knows of a batch without looking into its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchProgress {
    pub kind: Kind,
    pub begun: Timestamp,
    /// How many replies it has taken in.
    pub answers: usize,
    /// The name of the file that the reply to the current question goes into.
    pub awaits: Option<String>,
    /// A person has been given the current question.
    pub(super) is_with_person: bool,
    /// How many runs have taken it up again before it had an answer.
    #[serde(default)]
    pub(super) taken_up: u32,
    /// Completed; kept so that it can be taken back.
    pub is_over: bool,
}

#[derive(Serialize, Deserialize)]
pub struct Saved<S> {
    #[serde(flatten)]
    pub progress: BatchProgress,
    pub state: S,
}

impl BatchProgress {
    pub(super) fn new(kind: Kind, begun: Timestamp) -> BatchProgress {
        BatchProgress {
            kind,
            begun,
            answers: 0,
            awaits: None,
            is_with_person: false,
            taken_up: 0,
            is_over: false,
        }
    }

    /// Has it been under way for longer than a person is waited for?
    pub fn is_old(&self, now: Timestamp) -> bool {
        now.duration_since(self.begun) > PATIENCE
    }
}
