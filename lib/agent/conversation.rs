//! The loop: ask, answer the model's tool calls, ask again, until it has nothing more to call.

use crate::agent::prepare::{PreparedAgent, Prompt};
use crate::agent::stats::{Cost, RunStats, SubAgentRun, ToolDetail};
use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, ErrorKind, Fault, Result};
use crate::base::json_schema::Schema;
use crate::base::sync::lock;
use crate::base::text::one_line;
use crate::config::global::{Endpoint, Global, HttpEndpoint};
use crate::config::prices::Price;
use crate::provider::Provider;
use crate::provider::error::CallError;
use crate::provider::message::{ChatTurn, Reply, Request, Stop, TokenUsage, Tool, ToolCall, ToolResult};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// After this many turns the model is going in circles.
const MOST_TURNS: u32 = 50;
/// How long a token is, where nobody counts.
const BYTES_PER_TOKEN: u64 = 4;
/// Simultaneous model calls in the whole tree of agents.
pub(super) const MOST_AT_ONCE: usize = 8;

/// What the whole tree of agents shares.
pub struct RunContext<'a> {
    pub env: &'a Env,
    pub global: &'a Global,
    /// Retries for a failed call.
    pub retries: u32,
    /// How deep agents may call agents; 0: not at all.
    pub max_depth: u32,
    pub budget: CallBudget,
    pub providers: Providers,
    /// Whether replies are asked for in pieces, whatever the provider.
    pub stream: bool,
}

/// The services that the tree has used so far, by name: a key is fetched once, and what a model rejects is learned
/// once.
#[derive(Default)]
pub struct Providers(Mutex<BTreeMap<String, Slot>>);

/// Has its own lock, so that one service's slow key command does not block the others.
type Slot = Arc<Mutex<Option<Arc<Provider>>>>;

impl Providers {
    fn of(
        &self,
        agent: &PreparedAgent,
        is_heard: bool,
        env: &Env,
        deadline: Deadline,
    ) -> Result<Arc<Provider>> {
        let connect =
            || Provider::connect(&agent.endpoint, &agent.workdir, is_heard, env, deadline).map(Arc::new);
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

/// How many calls the tree may still make, how many at once, and how many tokens they may take.
pub struct CallBudget {
    max_calls: u32,
    /// `None`: no limit.
    max_tokens: Option<u64>,
    state: Mutex<Spent>,
    freed: Condvar,
}

#[derive(Default)]
struct Spent {
    calls: u32,
    running: usize,
    tokens: u64,
    /// What the running calls may take.
    reserved: u64,
}

impl CallBudget {
    pub fn new(max_calls: u32, max_tokens: Option<u64>) -> CallBudget {
        CallBudget { max_calls, max_tokens, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Makes `call` when one of the slots is free, if the budget allows it. `call` is told whether it is the last one.
    ///
    /// The last call is kept for the main agent's answer: what its sub-agents answered has been paid for. `size` is
    /// the number of tokens that the call may take: those of its prompt, and of the longest answer.
    fn spend(
        &self,
        depth: u32,
        deadline: Deadline,
        size: (u64, u64),
        call: impl FnOnce(bool) -> Result<Reply, CallError>,
    ) -> Result<Result<Reply, CallError>> {
        let whole = size.0.saturating_add(size.1);
        let is_last = self.begin(deadline, depth.min(1), whole)?;
        let reply = call(is_last);
        let used = reply.as_ref().map_or(0, |reply| {
            match reply.tokens.input.saturating_add(reply.tokens.output) {
                // A command counts nothing.
                0 => size.0 + reply.text.len() as u64 / BYTES_PER_TOKEN,
                counted => counted,
            }
        });
        self.end(whole, used);
        Ok(reply)
    }

    /// Runs a tool, which counts as a call, but never as the last one.
    pub(super) fn spend_on_tool<T>(&self, deadline: Deadline, call: impl FnOnce() -> T) -> Result<T> {
        self.begin(deadline, 1, 0)?;
        let result = call();
        self.end(0, 0);
        Ok(result)
    }

    /// Takes a slot for a call that may take so many tokens, if that leaves `kept` calls. Is it the last one?
    fn begin(&self, deadline: Deadline, kept: u32, tokens: u64) -> Result<bool> {
        let mut spent = self.slot(deadline)?;
        if spent.calls >= self.max_calls.saturating_sub(kept) {
            return Err(self.used_up());
        }
        let taken = spent.tokens.saturating_add(spent.reserved);
        let exceeds = |limit: &u64| tokens > 0 && taken.saturating_add(tokens) > *limit;
        if let Some(limit) = self.max_tokens.filter(exceeds) {
            let message = format!(
                "the token budget of {limit} is spent: {taken} are used, and the next call may take {tokens}"
            );
            return Err(Error::new(ErrorKind::Budget, message)
                .hint("raise --max-tokens-total, or max_tokens_total under [limits]"));
        }
        spent.calls += 1;
        spent.running += 1;
        spent.reserved += tokens;
        Ok(spent.calls == self.max_calls)
    }

    fn end(&self, reserved: u64, used: u64) {
        let mut spent = lock(&self.state);
        spent.running -= 1;
        spent.reserved -= reserved;
        spent.tokens = spent.tokens.saturating_add(used);
        drop(spent);
        self.freed.notify_one();
    }

    /// Waits until fewer than [`MOST_AT_ONCE`] calls are running.
    fn slot(&self, deadline: Deadline) -> Result<MutexGuard<'_, Spent>> {
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
        Ok(spent)
    }

    fn used_up(&self) -> Error {
        Error::refused(format!("the run has used its limit of {} model calls", self.max_calls))
            .hint("raise max_calls under [limits] in config.toml")
    }
}

/// The position of a conversation in the tree of agents, and its limits.
#[derive(Clone, Copy)]
pub struct Scope {
    /// 0 for the main agent, one more for each level below it.
    pub depth: u32,
    pub deadline: Deadline,
    pub reporter: Reporter,
}

/// The tools of a model, and the function that answers its calls, in their order.
pub struct Toolbox<'a> {
    pub(super) tools: Vec<Tool>,
    pub(super) answer: &'a dyn Fn(&[ToolCall]) -> Vec<ToolAnswer>,
}

/// The outcome of one tool call.
pub struct ToolAnswer {
    pub(super) result: ToolResult,
    pub(super) detail: ToolDetail,
    pub(super) run: Option<SubAgentRun>,
    pub(super) tokens: TokenUsage,
    pub(super) cost: Cost,
    pub(super) retries: u32,
}

/// One agent's conversation while it runs.
struct Conversation<'a> {
    run: &'a RunContext<'a>,
    provider: Arc<Provider>,
    price: Option<Price>,
    scope: Scope,
    request: Request,
    warnings: Vec<String>,
    /// Gets the text of each turn as it comes.
    on_text: &'a mut dyn FnMut(&str),
    /// Whether an earlier turn had any.
    has_text: bool,
}

/// Runs one agent's conversation to its last reply, which has the warnings of all turns. Adds its costs to `stats`.
pub(super) fn converse(
    run: &RunContext,
    agent: &PreparedAgent,
    prompt: Prompt,
    toolbox: Toolbox,
    scope: Scope,
    on_text: &mut dyn FnMut(&str),
    stats: &mut RunStats,
) -> Result<Reply> {
    let provider = run.providers.of(agent, scope.reporter.is_verbose(), run.env, scope.deadline)?;
    let mut turns = prompt.earlier;
    turns.push(match prompt.files {
        files if files.is_empty() => ChatTurn::User(prompt.message),
        files => ChatTurn::Attached(prompt.message, files),
    });
    let request = Request {
        model: agent.model.name.clone(),
        system: prompt.system,
        volatile: prompt.volatile,
        repeats: prompt.repeats,
        turns,
        tools: toolbox.tools,
        is_closing: false,
        temperature: agent.agent.params.temperature,
        max_tokens: agent.agent.params.max_tokens(),
        extra: agent.agent.params.extra.clone(),
        schema: agent.schema.clone(),
        is_streamed: run.stream || agent.endpoint.is_streamed(),
    };
    let (price, warnings) = (agent.price, Vec::new());
    let mut conversation =
        Conversation { run, provider, price, scope, request, warnings, on_text, has_text: false };
    let mut reply = conversation.talk(toolbox.answer, stats)?;
    if let Some(schema) = &agent.schema {
        reply = conversation.matching_answer(schema, reply, stats)?;
    }
    Ok(Reply { warnings: conversation.warnings, ..reply })
}

impl Conversation<'_> {
    /// Asks, and answers tool calls, until the model has an answer.
    fn talk(
        &mut self,
        answer: &dyn Fn(&[ToolCall]) -> Vec<ToolAnswer>,
        stats: &mut RunStats,
    ) -> Result<Reply> {
        for turn in 1..=MOST_TURNS {
            let reply = self.ask(turn, false, stats)?;
            if self.request.is_closing {
                let why = self.run.budget.used_up();
                // Without a word, the last reply is only further calls.
                if !reply.calls.is_empty() && reply.text.trim().is_empty() {
                    return Err(why);
                }
                self.warnings.push(format!("the answer was asked for without further tools: {}", why.line()));
                return Ok(reply);
            }
            if reply.calls.is_empty() {
                return Ok(reply);
            }
            if turn == MOST_TURNS {
                // The answers would not be used.
                break;
            }
            if !reply.text.trim().is_empty() {
                stats.so_far.push(reply.text);
            }
            stats.tool_calls += reply.calls.len() as u64;
            let mut results = Vec::with_capacity(reply.calls.len());
            for answer in answer(&reply.calls) {
                stats.tokens += answer.tokens;
                stats.cost += answer.cost;
                stats.retries += answer.retries;
                stats.sub_agents.extend(answer.run);
                stats.tool_details.push(answer.detail);
                results.push(answer.result);
            }
            self.request.turns.push(ChatTurn::Assistant(reply.raw));
            self.request.turns.push(ChatTurn::ToolResults(results));
        }
        Err(Error::refused(format!("agent exceeded maximum conversation turns ({MOST_TURNS})")))
    }

    /// One call, within the budget. `closes`: the model shall answer without further tool calls.
    fn ask(&mut self, turn: u32, closes: bool, stats: &mut RunStats) -> Result<Reply> {
        let Conversation { run, provider, price, scope, request, warnings, on_text, has_text } = self;
        let Scope { depth, deadline, reporter } = *scope;
        let with_tools = !request.tools.is_empty();
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
        let size = (request.bytes() / BYTES_PER_TOKEN, provider.most_output(request));
        // The text of two turns is kept apart.
        let mut gap = if *has_text { "\n\n" } else { "" };
        let mut on_piece = |piece: &str| {
            on_text(std::mem::take(&mut gap));
            on_text(piece);
            *has_text = true;
        };
        let asked = run.budget.spend(depth, deadline, size, |is_last| {
            request.is_closing = with_tools && (is_last || closes);
            provider.ask(request, deadline, run.retries, &mut on_piece)
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
        stats.cost += Cost::of(reply.tokens, *price);
        stats.retries += reply.retries;
        warnings.append(&mut reply.warnings);
        Ok(reply)
    }

    /// `reply` if `schema` accepts it, else the answer to one request to repair it. An answer that was cut off or
    /// refused would be so again.
    fn matching_answer(&mut self, schema: &Schema, reply: Reply, stats: &mut RunStats) -> Result<Reply> {
        let faults = match accepted(schema, &reply.text) {
            Ok(text) => return Ok(Reply { text, ..reply }),
            Err(faults) => faults,
        };
        stats.rejected = Some(reply.text.clone());
        if let Some(flaw) = reply.flaw().filter(|_| reply.stop != Stop::Complete) {
            return Err(mismatch(faults).context(flaw));
        }
        self.scope.reporter.verbose(&format!("The answer does not match the schema: {}", in_line(&faults)));
        self.request.turns.push(ChatTurn::Assistant(reply.raw));
        self.request.turns.push(ChatTurn::User(format!(
            "This answer is not valid. Answer again, with nothing but the corrected JSON.\n\n{}",
            faults.iter().map(|fault| format!("- {fault}")).collect::<Vec<_>>().join("\n")
        )));
        let reply = self.ask(2, true, stats)?;
        let repaired = accepted(schema, &reply.text);
        stats.rejected = repaired.is_err().then(|| reply.text.clone());
        repaired.map(|text| Reply { text, ..reply }).map_err(mismatch)
    }
}

/// The JSON in an answer that `schema` accepts. A code fence around it is left out: models without structured output
/// like to add one.
fn accepted(schema: &Schema, answer: &str) -> Result<String, Vec<Fault>> {
    let text = answer.trim();
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let text = fenced.and_then(|text| text.split_once('\n')).map_or(text, |(_, inside)| inside.trim());
    let value = serde_json::from_str(text).map_err(|e| {
        let message = if text.is_empty() { "it is empty".to_owned() } else { format!("it is not JSON: {e}") };
        vec![Fault { path: String::new(), message }]
    })?;
    match schema.faults(&value) {
        faults if faults.is_empty() => Ok(text.to_owned()),
        faults => Err(faults),
    }
}

fn mismatch(faults: Vec<Fault>) -> Error {
    Error::refused(format!("the answer does not match the schema: {}", in_line(&faults))).with_faults(faults)
}

/// The first faults, for a message.
fn in_line(faults: &[Fault]) -> String {
    let first: Vec<_> = faults.iter().take(3).map(|fault| one_line(&fault.to_string(), 200)).collect();
    let more = if faults.len() > first.len() {
        format!("; and {} more", faults.len() - first.len())
    } else {
        String::new()
    };
    format!("{}{more}", first.join("; "))
}
