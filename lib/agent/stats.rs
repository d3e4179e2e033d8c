//! What a conversation costs, for this agent and those below it.

use crate::config::model::{Model, Price};
use crate::provider::message::TokenUsage;
use serde_json::Value;
use std::time::Duration;

/// What a conversation costs. Counted while it runs, so that a failed one counts too.
#[derive(Debug, Default)]
pub struct RunStats {
    /// Of the agent and all agents below it.
    pub tokens: TokenUsage,
    /// Likewise. Failed calls are not in it.
    pub cost: Cost,
    /// Retries, likewise.
    pub retries: u32,
    /// Of this agent's own model.
    pub tool_calls: u64,
    pub sub_agents: Vec<SubAgentRun>,
    /// Its tool calls, in their order.
    pub tool_details: Vec<ToolDetail>,
    /// What its model said in turns that went on with tool calls.
    pub so_far: Vec<String>,
    /// What the agents that it called have answered, each under its name.
    pub answers: Vec<String>,
    /// The model that took over from the agent's own.
    pub fallback: Option<Model>,
    /// Whether the call that is set aside for its answer is used.
    pub(super) has_closed: bool,
    /// The answer that did not match the schema.
    pub rejected: Option<String>,
    /// The id with which the run can be continued.
    pub kept: Option<String>,
}

impl RunStats {
    /// Adds what the answer to a tool call took.
    pub(super) fn add(&mut self, more: RunStats) {
        self.tokens += more.tokens;
        self.cost += more.cost;
        self.retries += more.retries;
        self.sub_agents.extend(more.sub_agents);
        self.tool_details.extend(more.tool_details);
        self.answers.extend(more.answers);
    }

    /// What was said before the run failed, as far as `is_shown` says that nobody has seen it yet. All of it is paid for.
    pub fn before_failure(&self, is_shown: bool) -> String {
        let own = if is_shown { &[][..] } else { &self.so_far[..] };
        let all = own.iter().chain(&self.answers).chain(&self.rejected).map(String::as_str);
        all.collect::<Vec<_>>().join("\n\n")
    }
}

/// What calls cost, as far as every one of them has a price.
#[derive(Debug, Clone, Copy)]
pub struct Cost(Option<f64>);

impl Default for Cost {
    /// That of no call.
    fn default() -> Cost {
        Cost(Some(0.0))
    }
}

impl Cost {
    /// The cost of one reply. Nobody knows it without a price, or if the tokens were not counted.
    pub fn of(tokens: TokenUsage, price: Option<Price>) -> Cost {
        let TokenUsage { input, output, cache_read, cache_write } = tokens;
        let is_known = |price: &Price| input + output > 0 || price.is_free();
        Cost(price.filter(is_known).map(|price| price.cost(input, output, cache_read, cache_write)))
    }

    /// Without the noise of adding fractions; `None` if it is not known.
    pub fn amount(self) -> Option<f64> {
        self.0.map(|amount| (amount * 1e9).round() / 1e9)
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, more: Cost) {
        self.0 = self.0.zip(more.0).map(|(a, b)| a + b);
    }
}

/// One tool call, as in the JSON output.
#[derive(Debug, serde::Serialize)]
pub struct ToolDetail {
    pub(super) name: String,
    /// `null` if they could not be read.
    pub(super) arguments: Value,
    pub(super) duration_ms: u64,
    /// The program's exit code; `null` if there is none.
    pub(super) exit: Option<i32>,
    /// The length of what the model was told.
    pub(super) bytes: usize,
}

/// One sub-agent's run, as in the JSON output.
#[derive(Debug, serde::Serialize)]
pub struct SubAgentRun {
    pub(super) name: String,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// `null` if it is not known.
    pub(super) cost: Option<f64>,
    pub(super) duration_ms: u64,
    /// Why it failed; `null` if it did not.
    pub(super) error: Option<String>,
    /// The agents that it called; their tokens are included in its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) sub_agents: Vec<SubAgentRun>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_details: Vec<ToolDetail>,
}

pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
