//! What a conversation cost, of this agent and of those below it.

use crate::provider::message::TokenUsage;
use std::time::Duration;

/// What a conversation cost, counted while it goes on, so that a failed one is counted too.
#[derive(Debug, Default)]
pub(crate) struct RunStats {
    /// Of the agent and all agents below it.
    pub(crate) tokens: TokenUsage,
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

/// Milliseconds for people and programs.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
