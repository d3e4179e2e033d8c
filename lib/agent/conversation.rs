//! The loop: ask, answer the model's tool calls, ask again, until it has nothing more to call.

use crate::agent::calls::not_run;
use crate::agent::prepare::{ModelRoute, RunningAgent, no_price};
use crate::agent::stats::{Cost, RunStats};
use crate::agent::tree::MOST_AT_ONCE;
use crate::agent::turn_file::TurnFile;
use crate::base::error::{Error, Fault, Result};
use crate::base::json_schema::Schema;
use crate::base::parallel;
use crate::base::text::{BYTES_PER_TOKEN, one_line};
use crate::config::global::Api;
use crate::config::model::Price;
use crate::config::tool::CALL_AGENT;
use crate::provider::error::{CallError, CallResult};
use crate::provider::message::{
    ChatTurn, OnText, Reply, Request, StopReason, TokenUsage, ToolRequest, ToolResult,
};
use crate::provider::{Provider, openai};
use crate::store::spent::{self, Amount, Reservation};
use serde_json::value::RawValue;
use std::sync::Arc;

/// After this many turns the model is going in circles.
const MOST_TURNS: u32 = 50;

/// One agent's conversation while it runs.
struct Conversation<'a> {
    at: RunningAgent<'a>,
    /// The model that is asked, and those that are asked next, if it cannot be reached.
    route: &'a ModelRoute,
    provider: Arc<Provider>,
    next: &'a [ModelRoute],
    request: Request,
    warnings: Vec<String>,
    /// Gets the text of each turn as it comes.
    on_text: OnText<'a>,
    /// Whether an earlier turn had any.
    has_text: bool,
    stats: &'a mut RunStats,
    /// Where the main agent's turns are kept.
    kept: Option<&'a TurnFile>,
}

impl RunningAgent<'_> {
    /// Holds the conversation that begins with `request`, to its last reply, which has the warnings of all turns. Adds its
    /// costs to `stats`.
    pub fn converse(self, request: Request, on_text: OnText, stats: &mut RunStats) -> Result<Reply> {
        let RunningAgent { run, agent, scope } = self;
        let route = &agent.route;
        let kept = run.turns.as_ref().filter(|_| scope.depth == 0);
        let is_streamed = run.stream || route.endpoint.is_streamed();
        let mut conversation = Conversation {
            at: self,
            route,
            provider: run.providers.of(&route.endpoint, &agent.workdir, scope)?,
            next: &agent.fallback,
            request: Request { tools: self.offered(), is_streamed, ..request },
            warnings: Vec::new(),
            on_text,
            has_text: false,
            stats,
            kept,
        };
        if let Some((newest, said)) = kept.map(TurnFile::take_newest) {
            conversation.stats.so_far.extend(said.into_iter().filter(|text| !text.trim().is_empty()));
            newest.into_iter().for_each(|turn| conversation.add(turn.raw, &turn.calls, turn.results));
        }
        let mut reply = conversation.talk()?;
        if let Some(schema) = &agent.schema {
            reply = conversation.matching_answer(schema, reply)?;
        }
        Ok(Reply { warnings: conversation.warnings, ..reply })
    }

    /// Waits until the agent's model may be asked, however long others are before it. Then `converse` need not wait, and its
    /// deadline is for its own work.
    pub fn await_turn(self, request: &mut Request) -> Result<()> {
        let RunningAgent { run, agent, scope } = self;
        if agent.api().is_some() {
            let provider = run.providers.of(&agent.route.endpoint, &agent.workdir, scope)?;
            match provider.await_turn(request, scope.deadline.remaining()) {
                Ok(()) => request.has_turn = true,
                // `converse` asks the next model.
                Err(late) if late.is_outage && !agent.fallback.is_empty() => {}
                Err(late) => return Err(late.into()),
            }
        }
        Ok(())
    }
}

impl Conversation<'_> {
    /// Asks, and answers tool calls, until the model has an answer.
    fn talk(&mut self) -> Result<Reply> {
        for turn in 1..=MOST_TURNS {
            let reply = self.ask(turn, false)?;
            if self.request.is_closing {
                let why = self.at.run.budget.used_up();
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
            if let Some(kept) = self.kept.filter(|_| turn < MOST_TURNS) {
                kept.turn(&self.request, &reply, &self.route.model, self.at.run.budget.used());
            }
            if !reply.text.trim().is_empty() {
                self.stats.so_far.push(reply.text);
            }
            if turn == MOST_TURNS {
                // The answers would not be used.
                break;
            }
            self.add(reply.raw, &reply.calls, Vec::new());
        }
        Err(Error::refused(format!("agent exceeded maximum conversation turns ({MOST_TURNS})")))
    }

    /// Adds a turn to the conversation, and the results of its calls, of which some may be known.
    fn add(&mut self, raw: Box<RawValue>, calls: &[ToolRequest], mut results: Vec<Option<ToolResult>>) {
        results.resize(calls.len(), None);
        let open = calls.iter().enumerate().filter(|(n, _)| results[*n].is_none());
        let answers = self.answered(&open.collect::<Vec<_>>()).into_iter();
        let unknown = results.iter_mut().filter(|result| result.is_none());
        unknown.zip(answers).for_each(|(to, new)| *to = Some(new));
        self.request.turns.push(ChatTurn::Assistant(raw));
        self.request.turns.push(ChatTurn::ToolResults(results.into_iter().flatten().collect()));
    }

    /// The answers to a turn's calls, which come with their places. Those that the budget allows are handed out before the
    /// first begins.
    fn answered(&mut self, calls: &[(usize, &ToolRequest)]) -> Vec<ToolResult> {
        let RunningAgent { run, agent, scope } = self.at;
        let (at, kept) = (self.at, self.kept);
        let mut judged: Vec<_> = calls.iter().map(|(n, call)| (*n, *call, at.refusal(call))).collect();
        let mut accepted: Vec<_> = judged.iter_mut().filter(|(.., refused)| refused.is_none()).collect();
        let given = run.budget.hand_out(accepted.len() as u32) as usize;
        for (_, call, refused) in accepted.iter_mut().skip(given) {
            *refused = Some(not_run(call, run.budget.used_up().message()));
        }
        let most = if agent.agent.sub_agents_config.parallel { MOST_AT_ONCE } else { 1 };
        let answers = parallel::map_at_once(&judged, most, |_, (n, call, refused)| {
            kept.filter(|_| refused.is_none()).iter().for_each(|kept| kept.begun(*n));
            let answered = at.answer(call, refused.as_deref());
            // An agent that the deadline ended is asked again.
            let is_over = answered.0.is_error && call.name == CALL_AGENT && scope.deadline.passed();
            kept.filter(|_| !is_over).iter().for_each(|kept| kept.done(*n, &answered.0, run.budget.used()));
            answered
        });
        let (results, costs): (Vec<ToolResult>, Vec<RunStats>) = answers.into_iter().unzip();
        self.stats.tool_calls += calls.len() as u64;
        costs.into_iter().for_each(|costs| self.stats.add(costs));
        results
    }

    /// One call, within the budget. `closes`: the model shall answer without further tool calls.
    fn ask(&mut self, turn: u32, closes: bool) -> Result<Reply> {
        let RunningAgent { run, agent, scope } = self.at;
        let budget = &run.budget;
        let with_tools = !self.request.tools.is_empty();
        let tell = |what: &str| {
            if with_tools {
                scope.reporter.verbose(&format!("[turn {turn}] {what}"));
            }
        };
        let turns = &self.request.turns;
        let pending = if let Some(ChatTurn::ToolResults(all)) = turns.last() { all.len() } else { 0 };
        let messages = turns.len();
        tell(&format!("Sending request ({messages} messages, {pending} tool calls pending)"));
        let size = agent.size(&self.request);
        let is_last =
            budget.begin_call(scope.deadline, size, closes || !with_tools, &mut self.stats.has_closed)?;
        let reserved = self.reserve(size).inspect_err(|_| {
            budget.end(size, TokenUsage::default());
            budget.take_back();
        })?;
        self.request.is_closing = with_tools && (is_last || closes);
        budget.tally.call_begins();
        let asked = self.asked();
        let used = asked.as_ref().map_or(TokenUsage::default(), |reply| match reply.tokens {
            // A command counts nothing.
            TokenUsage { input: 0, output: 0, .. } => {
                let output = reply.text.len() as u64 / BYTES_PER_TOKEN;
                TokenUsage { input: size.0, output, ..TokenUsage::default() }
            }
            counted => counted,
        });
        budget.end(size, used);
        // What was reserved becomes what the call took. If that fails it stays, which is the safe side.
        if let Some(reserved) = reserved
            && let Err(error) = spent::settle(scope.env, reserved, amount(used, self.route.price))
        {
            scope.reporter.warn(&format!("a call counts as if it had taken the most: {}", error.line()));
        }
        let mut reply = asked.inspect_err(|failure| {
            self.stats.retries += failure.retries;
            budget.tally.call_ended(TokenUsage::default(), Cost::default(), failure.retries);
        })?;
        let cost = Cost::of(reply.tokens, self.route.price);
        budget.tally.call_ended(reply.tokens, cost, reply.retries);
        tell(&format!("Received response: {} ({} tool calls)", reply.stop_reason, reply.calls.len()));
        self.stats.tokens += reply.tokens;
        self.stats.cost += cost;
        self.stats.retries += reply.retries;
        self.warnings.append(&mut reply.warnings);
        Ok(reply)
    }

    /// Reserves in the limits of a day and a month, which hold for all runs together, what a call of any model may take: the
    /// tokens of its prompt, and of the longest answer.
    fn reserve(&self, (input, output): (u64, u64)) -> Result<Option<Reservation>> {
        let limits = &self.at.run.global.limits;
        if !limits.has_periods() {
            return Ok(None);
        }
        if limits.needs_prices() && self.route.price.is_none() {
            return Err(no_price(&self.route.model));
        }
        let usage = TokenUsage { input, output, ..TokenUsage::default() };
        let others = self.next.iter().map(|route| amount(usage, route.price).cost);
        let own = amount(usage, self.route.price);
        let most = Amount { cost: others.fold(own.cost, f64::max), ..own };
        spent::reserve(self.at.scope.env, limits, most).map(Some)
    }

    /// The reply of the model, or of the first after it that can be reached.
    fn asked(&mut self) -> CallResult {
        let RunningAgent { run, agent, scope } = self.at;
        // The text of two turns is kept apart.
        let mut gap = if self.has_text { "\n\n" } else { "" };
        loop {
            let mut has_begun = false;
            let mut on_piece = |piece: &str| {
                (self.on_text)(std::mem::take(&mut gap));
                (self.on_text)(piece);
                (has_begun, self.has_text) = (true, true);
            };
            let asked = self.provider.ask(&self.request, scope.deadline, run.retries, &mut on_piece);
            self.request.has_turn = false;
            let Err(failure) = &asked else { return asked };
            // Text that somebody may have seen cannot be taken back.
            let is_over = has_begun || !failure.is_outage || scope.deadline.passed();
            if is_over || !self.give_way(failure) {
                return asked;
            }
            self.stats.retries += failure.retries;
            self.stats.fallback = Some(self.route.model.clone());
            if self.route.endpoint.api() != agent.api() {
                // The file says that its turns have the form of the first model.
                self.kept = None;
            }
            if scope.depth == 0 {
                run.budget.tally.answers(&self.route.model);
            }
        }
    }

    /// Lets the next model that can take the request have it; `false` if there is none.
    fn give_way(&mut self, failure: &CallError) -> bool {
        let RunningAgent { run, agent, scope } = self.at;
        while let Some((route, next)) = self.next.split_first() {
            self.next = next;
            let needs_price = run.global.limits.needs_prices() && route.price.is_none();
            let no_price =
                || needs_price.then(|| "it has no price, and there is a limit in money".to_owned());
            let connected = match route.unfit(&self.request, self.route).or_else(no_price) {
                Some(why) => Err(why),
                None => run
                    .providers
                    .of(&route.endpoint, &agent.workdir, scope)
                    .map_err(|e| e.message().to_owned()),
            };
            let (model, failed) = (&route.model, &self.route.model);
            let provider = match connected {
                Ok(provider) => provider,
                Err(why) => {
                    scope.reporter.warn(&format!("\"{model}\" cannot be asked instead: {why}"));
                    continue;
                }
            };
            scope.reporter.warn(&format!("\"{failed}\" failed ({failure}); asking \"{model}\" instead"));
            if model.provider != failed.provider && route.endpoint.api() == Some(Api::OpenAi) {
                openai::make_portable(&mut self.request);
            }
            self.request.model.clone_from(&model.name);
            self.request.is_streamed = run.stream || route.endpoint.is_streamed();
            (self.route, self.provider) = (route, provider);
            return true;
        }
        false
    }

    /// `reply` if `schema` accepts it, else the answer to one request to repair it. An answer that was cut off or
    /// refused would be so again.
    fn matching_answer(&mut self, schema: &Schema, reply: Reply) -> Result<Reply> {
        let faults = match accepted(schema, &reply.text) {
            Ok(text) => return Ok(Reply { text, ..reply }),
            Err(faults) => faults,
        };
        self.stats.rejected = Some(reply.text.clone());
        if let Some(flaw) = reply.flaw().filter(|_| reply.stop != StopReason::Complete) {
            return Err(mismatch(faults).context(flaw));
        }
        let reporter = self.at.scope.reporter;
        reporter.verbose(&format!("The answer does not match the schema: {}", in_line(&faults)));
        let told = format!(
            "This answer is not valid. Answer again, with nothing but the corrected JSON.\n\n{}",
            faults.iter().map(|fault| format!("- {fault}")).collect::<Vec<_>>().join("\n")
        );
        if let Some(kept) = self.kept {
            kept.repair(&reply, &told, &self.route.model, self.at.run.budget.used());
        }
        self.request.turns.push(ChatTurn::Assistant(reply.raw));
        self.request.turns.push(ChatTurn::User(told));
        let reply = self.ask(2, true)?;
        let repaired = accepted(schema, &reply.text);
        self.stats.rejected = repaired.is_err().then(|| reply.text.clone());
        repaired.map(|text| Reply { text, ..reply }).map_err(mismatch)
    }
}

fn amount(usage: TokenUsage, price: Option<Price>) -> Amount {
    let TokenUsage { input, output, cache_read, cache_write } = usage;
    let cost = price.map_or(0.0, |price| price.cost(input, output, cache_read, cache_write));
    Amount { tokens: input.saturating_add(output), cost }
}

/// The JSON in an answer that `schema` accepts. Thinking before it and a code fence around it are left out: models
/// without structured output like to add them.
fn accepted(schema: &Schema, answer: &str) -> Result<String, Vec<Fault>> {
    let text = answer.trim_start_matches('\u{feff}').trim();
    let thought = text.strip_prefix("<think>").and_then(|text| text.split_once("</think>"));
    let text = thought.map_or(text, |(_, answer)| answer.trim());
    let fenced = text.strip_prefix("```").and_then(|text| text.strip_suffix("```"));
    let text = fenced.and_then(|text| text.split_once('\n')).map_or(text, |(_, inside)| inside.trim());
    let value = serde_json::from_str(text).map_err(|e| {
        let message = if text.is_empty() { "it is empty".to_owned() } else { format!("it is not JSON: {e}") };
        vec![Fault { path: String::new(), message }]
    })?;
    let faults = schema.faults(&value);
    if faults.is_empty() { Ok(text.to_owned()) } else { Err(faults) }
}

fn mismatch(faults: Vec<Fault>) -> Error {
    Error::refused(format!("the answer does not match the schema: {}", in_line(&faults))).with_faults(faults)
}

/// The first faults, for a message.
fn in_line(faults: &[Fault]) -> String {
    let first: Vec<_> = faults.iter().take(3).map(|fault| one_line(&fault.to_string(), 200)).collect();
    let rest = faults.len() - first.len();
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("{}{more}", first.join("; "))
}
