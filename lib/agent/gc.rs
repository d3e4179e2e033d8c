//! Garbage collection (M7): the call that looks for patterns in an agent's log, and the limit that it is trimmed to.

use crate::agent::stats::Cost;
use crate::agent::tree::{RunContext, Scope};
use crate::base::error::Result;
use crate::config::agent::LogSettings;
use crate::config::global::Endpoint;
use crate::config::model::Model;
use crate::provider::Provider;
use crate::provider::message::{ChatTurn, Reply, Request, TokenUsage};
use std::path::Path;

/// M7 4.1, word for word.
const PROMPT: &str = include_str!("gc_prompt.md");

/// Asks `model` for the analysis of a whole log. One call, no tools. Adds what it takes to the tally of `run`.
pub fn analyse(
    run: &RunContext,
    (endpoint, model): (&Endpoint, &Model),
    log: String,
    workdir: &Path,
    scope: Scope,
) -> Result<Reply> {
    let (Scope { env, deadline, .. }, tally) = (scope, &run.budget.tally);
    let provider = Provider::connect(endpoint, workdir, false, env, deadline)?;
    let request = Request {
        temperature: Some(0.3),
        max_tokens: Some(4096),
        is_streamed: endpoint.is_streamed(),
        ..Request::new(&model.name, PROMPT.trim_end().to_owned(), ChatTurn::User(log))
    };
    tally.call_begins();
    let reply = provider.ask(&request, deadline, run.retries, &mut |_| {}).inspect_err(|failure| {
        tally.call_ended(TokenUsage::default(), Cost::default(), failure.retries);
    })?;
    tally.call_ended(reply.tokens, Cost::of(reply.tokens, run.global.price(model)), reply.retries);
    Ok(reply)
}

/// How many entries are kept: `last_n`, else `max_entries`, else all (`None`).
pub fn trim_target(memory: &LogSettings) -> Option<usize> {
    [memory.last_n, memory.max_entries as usize].into_iter().find(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_n_comes_before_max_entries() {
        for (last_n, max_entries, target) in
            [(5, 100, Some(5)), (5, 0, Some(5)), (0, 100, Some(100)), (0, 0, None), (10, 5, Some(10))]
        {
            let memory = LogSettings { last_n, max_entries, ..LogSettings::default() };
            assert_eq!(trim_target(&memory), target);
        }
    }
}
