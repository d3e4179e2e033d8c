//! What a conversation costs, for this agent and those below it.

use crate::provider::message::TokenUsage;
use std::time::Duration;

/// What a conversation costs. Counted while it runs, so that a failed one counts too.
#[derive(Debug, Default)]
pub(crate) struct RunStats {
    /// Of the agent and all agents below it.
    pub(crate) tokens: TokenUsage,
    /// Retries, likewise.
    pub(crate) retries: u32,
    /// Of this agent's own model.
    pub(crate) tool_calls: u64,
    pub(crate) sub_agents: Vec<SubAgentRun>,
}

/// One sub-agent's run, as in the JSON output.
#[derive(Debug, serde::Serialize)]
pub(crate) struct SubAgentRun {
    pub(super) name: String,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) duration_ms: u64,
    /// Why it failed; `null` if it did not.
    pub(super) error: Option<String>,
    /// The agents that it called; their tokens are included in its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sub_agents: Vec<SubAgentRun>,
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
