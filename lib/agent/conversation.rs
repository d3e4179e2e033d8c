//! The loop: ask, answer the model's tool calls, ask again, until it has nothing more to call.

use crate::agent::prepare::PreparedAgent;
use crate::agent::stats::{RunStats, SubAgentRun};
use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::sync::lock;
use crate::config::global::{Endpoint, Global, HttpEndpoint};
use crate::provider::Provider;
use crate::provider::message::{ChatTurn, Reply, Request, TokenUsage, Tool, ToolCall, ToolResult};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// After this many turns the model is going in circles.
const MOST_TURNS: u32 = 50;
/// Simultaneous model calls in the whole tree of agents.
pub(super) const MOST_AT_ONCE: usize = 8;

/// What the whole tree of agents shares.
pub(crate) struct RunContext<'a> {
    pub(crate) env: &'a Env,
    pub(crate) global: &'a Global,
    /// Retries for a failed call.
    pub(crate) retries: u32,
    /// How deep agents may call agents; 0: not at all.
    pub(crate) max_depth: u32,
    pub(crate) budget: CallBudget,
    pub(crate) providers: Providers,
}

/// The services that the tree has used so far, by name: a key is fetched once, and what a model rejects is learned
/// once.
#[derive(Default)]
pub(crate) struct Providers(Mutex<BTreeMap<String, Slot>>);

/// Has its own lock, so that one service's slow key command does not block the others.
type Slot = Arc<Mutex<Option<Arc<Provider>>>>;

impl Providers {
    fn of(&self, agent: &PreparedAgent, env: &Env, deadline: Deadline) -> Result<Arc<Provider>> {
        let connect = || Provider::connect(&agent.endpoint, &agent.workdir, env, deadline).map(Arc::new);
        // A command runs in its agent's own directory.
        let Endpoint::Http(HttpEndpoint { provider, .. }) = &agent.endpoint else { return connect() };
        let slot = Arc::clone(lock(&self.0).entry(provider.clone()).or_default());
        let mut slot = lock(&slot);
        match &*slot {
            Some(known) => Ok(Arc::clone(known)),
            None => Ok(Arc::clone(slot.insert(connect()?))),
        }
    }
}

/// How many calls the tree may still make, and how many at once.
pub(crate) struct CallBudget {
    limit: u32,
    state: Mutex<Spent>,
    freed: Condvar,
}

#[derive(Default)]
struct Spent {
    calls: u32,
    running: usize,
}

impl CallBudget {
    pub(crate) fn new(limit: u32) -> CallBudget {
        CallBudget { limit, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Makes `call` when one of the slots is free, if the budget allows it. `call` is told whether it is the last one.
    ///
    /// The last call is kept for the main agent's answer: what its sub-agents answered has been paid for.
    fn spend<T>(&self, depth: u32, deadline: Deadline, call: impl FnOnce(bool) -> Result<T>) -> Result<T> {
        let mut spent = lock(&self.state);
        while spent.running >= MOST_AT_ONCE {
            if deadline.passed() {
                return Err(Error::api("timeout: too many calls were running until the deadline"));
            }
            spent = self
                .freed
                .wait_timeout(spent, deadline.remaining())
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        if spent.calls >= self.limit.saturating_sub(depth.min(1)) {
            return Err(self.used_up());
        }
        spent.calls += 1;
        spent.running += 1;
        let is_last = spent.calls == self.limit;
        drop(spent);
        let result = call(is_last);
        lock(&self.state).running -= 1;
        self.freed.notify_one();
        result
    }

    fn used_up(&self) -> Error {
        Error::refused(format!("the run has used its limit of {} model calls", self.limit))
            .hint("raise max_calls under [limits] in config.toml")
    }
}

/// The position of a conversation in the tree of agents, and its limits.
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    /// 0 for the main agent, one more for each level below it.
    pub(crate) depth: u32,
    pub(crate) deadline: Deadline,
    pub(crate) reporter: Reporter,
}

/// The tools of a model, and the function that answers its calls, in their order.
pub(crate) struct Toolbox<'a> {
    pub(super) tools: Vec<Tool>,
    pub(super) answer: &'a dyn Fn(&[ToolCall]) -> Vec<ToolAnswer>,
}

/// The outcome of one tool call.
pub(crate) struct ToolAnswer {
    pub(super) result: ToolResult,
    pub(super) run: Option<SubAgentRun>,
    pub(super) tokens: TokenUsage,
    pub(super) retries: u32,
}

/// Runs one agent's conversation to its last reply, which has the warnings of all turns. Adds its costs to `stats`.
pub(super) fn converse(
    run: &RunContext,
    agent: &PreparedAgent,
    system: String,
    message: &str,
    toolbox: Toolbox,
    scope: Scope,
    stats: &mut RunStats,
) -> Result<Reply> {
    let Scope { depth, deadline, reporter } = scope;
    let provider = run.providers.of(agent, run.env, deadline)?;
    let mut request = Request {
        model: agent.model.name.clone(),
        system,
        turns: vec![ChatTurn::User(message.to_owned())],
        tools: toolbox.tools,
        is_closing: false,
        temperature: agent.agent.params.temperature,
        max_tokens: agent.agent.params.max_tokens(),
    };
    let with_tools = !request.tools.is_empty();
    let mut warnings = Vec::new();
    for turn in 1..=MOST_TURNS {
        if with_tools {
            let pending = match request.turns.last() {
                Some(ChatTurn::ToolResults(results)) => results.len(),
                _ => 0,
            };
            reporter.verbose(&format!(
                "[turn {turn}] Sending request ({} messages, {pending} tool calls pending)",
                request.turns.len()
            ));
        }
        let asked = run.budget.spend(depth, deadline, |is_last| {
            request.is_closing = is_last && with_tools;
            Ok(provider.ask(&request, deadline, run.retries))
        })?;
        let mut reply = asked.inspect_err(|failure| stats.retries += failure.retries)?;
        if with_tools {
            reporter.verbose(&format!(
                "[turn {turn}] Received response: {} ({} tool calls)",
                reply.stop_reason,
                reply.calls.len()
            ));
        }
        stats.tokens += reply.tokens;
        stats.retries += reply.retries;
        warnings.append(&mut reply.warnings);
        if request.is_closing {
            let why = run.budget.used_up();
            // Without a word, the last reply is only further calls.
            if !reply.calls.is_empty() && reply.text.trim().is_empty() {
                return Err(why);
            }
            warnings.push(format!("the answer was asked for without further tools: {}", why.line()));
            return Ok(Reply { warnings, ..reply });
        }
        if reply.calls.is_empty() {
            return Ok(Reply { warnings, ..reply });
        }
        if turn == MOST_TURNS {
            // The answers would not be used.
            break;
        }
        stats.tool_calls += reply.calls.len() as u64;
        let mut results = Vec::with_capacity(reply.calls.len());
        for answer in (toolbox.answer)(&reply.calls) {
            stats.tokens += answer.tokens;
            stats.retries += answer.retries;
            stats.sub_agents.extend(answer.run);
            results.push(answer.result);
        }
        request.turns.push(ChatTurn::Assistant(reply.raw));
        request.turns.push(ChatTurn::ToolResults(results));
    }
    Err(Error::refused(format!("agent exceeded maximum conversation turns ({MOST_TURNS})")))
}
