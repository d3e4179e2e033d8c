//! What a conversation came to.

use crate::provider::message::{Stop, Tokens};
use std::time::Duration;

/// The answer that a conversation ended with.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The model's last text.
    pub(crate) text: String,
    pub(crate) stop: Stop,
    /// The provider's own word for it.
    pub(crate) stop_reason: String,
    /// The model that answered, by its own account.
    pub(crate) model: String,
    pub(crate) warnings: Vec<String>,
}

/// What a conversation cost, counted while it goes on, so that a failed one is counted too.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Of the agent and all agents below it.
    pub(crate) tokens: Tokens,
    /// Further tries after failed ones, likewise.
    pub(crate) retries: u32,
    /// Of this agent's own model.
    pub(crate) tool_calls: u64,
    pub(crate) sub_agents: Vec<SubAgentRun>,
}

/// One sub-agent's run, as the JSON envelope tells it.
#[derive(Debug, serde::Serialize)]
pub(crate) struct SubAgentRun {
    pub(crate) name: String,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) duration_ms: u64,
    /// Why it failed; `null` if it did not.
    pub(crate) error: Option<String>,
    /// The agents that it called in turn; their tokens are in its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) sub_agents: Vec<SubAgentRun>,
}

impl Outcome {
    /// Whether the answer is one that `--strict` lets pass; else what is wrong with it.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        match self.stop {
            Stop::Cut => Some("the answer is cut off"),
            Stop::Refused => Some("the model refused"),
            Stop::Complete | Stop::ToolUse if self.text.trim().is_empty() => Some("the answer is empty"),
            Stop::Complete | Stop::ToolUse => None,
        }
    }
}

/// Milliseconds for people and programs.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
