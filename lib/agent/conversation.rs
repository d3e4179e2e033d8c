//! The loop: ask, answer the model's tool calls, ask again, until it has nothing more to call.
//!
//! A tool is a program, or `call_agent`, with which an agent calls another. Its error is reported to the model and ends only
//! that call.

use crate::agent::account::Account;
use crate::agent::log::AgentLog;
use crate::agent::prepare::{ModelRoute, Overrides, PreparedAgent};
use crate::agent::stats::{Cost, RunStats, SubAgentRun, ToolDetail, millis};
use crate::agent::tools;
use crate::agent::tree::{MOST_AT_ONCE, RunContext, Scope};
use crate::agent::turn_file::TurnFile;
use crate::base::error::{Error, Fault, Result};
use crate::base::json_schema::Schema;
use crate::base::parallel;
use crate::base::text::one_line;
use crate::config::agent::{self, AgentName};
use crate::config::global::Api;
use crate::config::tool::CALL_AGENT;
use crate::prompt::vars;
use crate::provider::error::CallError;
use crate::provider::message::{
    ChatTurn, Reply, Request, StopReason, TokenUsage, Tool, ToolCall, ToolResult,
};
use crate::provider::{Provider, openai};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

/// After this many turns the model is going in circles.
const MOST_TURNS: u32 = 50;

/// One agent's conversation while it runs.
struct Conversation<'a> {
    run: &'a RunContext<'a>,
    scope: Scope<'a>,
    agent: &'a PreparedAgent,
    model: AskedModel<'a>,
    request: Request,
    warnings: Vec<String>,
    /// Gets the text of each turn as it comes.
    on_text: &'a mut dyn FnMut(&str),
    /// Whether an earlier turn had any.
    has_text: bool,
    stats: &'a mut RunStats,
    /// Where the main agent's turns are kept.
    kept: Option<&'a TurnFile>,
}

/// The model that is asked.
struct AskedModel<'a> {
    route: &'a ModelRoute,
    provider: Arc<Provider>,
    /// Those that are asked next, if it cannot be reached.
    next: &'a [ModelRoute],
}

/// Runs an agent's conversation, which begins with `request`, to its last reply, which has the warnings of all turns. Adds
/// its costs to `stats`.
pub fn converse(
    run: &RunContext,
    agent: &PreparedAgent,
    request: Request,
    scope: Scope,
    on_text: &mut dyn FnMut(&str),
    stats: &mut RunStats,
) -> Result<Reply> {
    let route = &agent.route;
    let provider = run.providers.of(&route.endpoint, &agent.workdir, scope)?;
    let model = AskedModel { route, provider, next: &agent.fallback };
    let is_streamed = run.stream || route.endpoint.is_streamed();
    let request = Request { tools: offered(agent, scope.depth, run), is_streamed, ..request };
    let kept = run.turns.as_ref().filter(|_| scope.depth == 0);
    let (warnings, has_text) = (Vec::new(), false);
    let mut conversation =
        Conversation { run, scope, agent, model, request, warnings, on_text, has_text, stats, kept };
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
pub fn await_turn(
    run: &RunContext,
    agent: &PreparedAgent,
    request: &mut Request,
    scope: Scope,
) -> Result<()> {
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

impl Conversation<'_> {
    /// Asks, and answers tool calls, until the model has an answer.
    fn talk(&mut self) -> Result<Reply> {
        for turn in 1..=MOST_TURNS {
            let reply = self.ask(turn, false)?;
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
            if let Some(kept) = self.kept.filter(|_| turn < MOST_TURNS) {
                kept.turn(&self.request, &reply, &self.model.route.model, self.run.budget.used());
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
    fn add(&mut self, raw: Box<RawValue>, calls: &[ToolCall], mut results: Vec<Option<ToolResult>>) {
        results.resize(calls.len(), None);
        let open = calls.iter().enumerate().filter(|(n, _)| results[*n].is_none());
        let answers = self.answered(&open.collect::<Vec<_>>()).into_iter();
        results
            .iter_mut()
            .filter(|result| result.is_none())
            .zip(answers)
            .for_each(|(to, new)| *to = Some(new));
        self.request.turns.push(ChatTurn::Assistant(raw));
        self.request.turns.push(ChatTurn::ToolResults(results.into_iter().flatten().collect()));
    }

    /// The answers to a turn's calls, which come with their places. Those that the budget allows are handed out before the
    /// first begins.
    fn answered(&mut self, calls: &[(usize, &ToolCall)]) -> Vec<ToolResult> {
        let (run, scope, caller, kept) = (self.run, self.scope, self.agent, self.kept);
        let mut judged: Vec<_> =
            calls.iter().map(|(n, call)| (*n, *call, refusal(run, caller, call, scope))).collect();
        let mut accepted: Vec<_> = judged.iter_mut().filter(|(.., refused)| refused.is_none()).collect();
        let given = run.budget.hand_out(accepted.len() as u32) as usize;
        for (_, call, refused) in accepted.iter_mut().skip(given) {
            *refused = Some(not_run(call, run.budget.used_up().message()));
        }
        let most = if caller.agent.sub_agents_config.parallel { MOST_AT_ONCE } else { 1 };
        let answers = parallel::map_at_once(&judged, most, |_, (n, call, refused)| {
            kept.filter(|_| refused.is_none()).iter().for_each(|kept| kept.begun(*n));
            let answered = answer(run, caller, call, refused.as_deref(), scope);
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
        let Conversation { run, scope, agent, model, request, on_text, has_text, stats, kept, .. } = self;
        let reporter = scope.reporter;
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
        let size = agent.size(request);
        // The text of two turns is kept apart.
        let mut gap = if *has_text { "\n\n" } else { "" };
        let mut on_piece = |piece: &str| {
            on_text(std::mem::take(&mut gap));
            on_text(piece);
            *has_text = true;
        };
        let answers = (closes || !with_tools, &mut stats.has_closed);
        let (limits, tally) = (run.global.limits(), &run.budget.tally);
        let price = Cell::new(model.route.price);
        let others = model.next.iter().filter_map(|route| route.price).collect();
        let account =
            Account { limits, model: &model.route.model.clone(), price, others, env: scope.env, reporter };
        let charged = limits.has_periods().then_some(&account);
        let asked = run.budget.spend(scope.deadline, size, charged, answers, |is_last| {
            request.is_closing = with_tools && (is_last || closes);
            tally.call_begins();
            loop {
                let mut has_begun = false;
                let mut on_piece = |piece: &str| {
                    has_begun = true;
                    on_piece(piece);
                };
                let asked = model.provider.ask(request, scope.deadline, run.retries, &mut on_piece);
                request.has_turn = false;
                let Err(failure) = &asked else { return asked };
                // Text that somebody may have seen cannot be taken back.
                let is_over = has_begun || !failure.is_outage || scope.deadline.passed();
                if is_over || !model.give_way(failure, request, run, agent, *scope) {
                    return asked;
                }
                stats.retries += failure.retries;
                stats.fallback = Some(model.route.model.clone());
                account.price.set(model.route.price);
                if model.route.endpoint.api() != agent.api() {
                    // The file says that its turns have the form of the first model.
                    *kept = None;
                }
                if scope.depth == 0 {
                    tally.answers(&model.route.model);
                }
            }
        })?;
        let mut reply = asked.inspect_err(|failure| {
            stats.retries += failure.retries;
            tally.call_ended(TokenUsage::default(), Cost::default(), failure.retries);
        })?;
        let cost = Cost::of(reply.tokens, model.route.price);
        tally.call_ended(reply.tokens, cost, reply.retries);
        if with_tools {
            reporter.verbose(&format!(
                "[turn {turn}] Received response: {} ({} tool calls)",
                reply.stop_reason,
                reply.calls.len()
            ));
        }
        stats.tokens += reply.tokens;
        stats.cost += cost;
        stats.retries += reply.retries;
        self.warnings.append(&mut reply.warnings);
        Ok(reply)
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
        self.scope.reporter.verbose(&format!("The answer does not match the schema: {}", in_line(&faults)));
        let told = format!(
            "This answer is not valid. Answer again, with nothing but the corrected JSON.\n\n{}",
            faults.iter().map(|fault| format!("- {fault}")).collect::<Vec<_>>().join("\n")
        );
        if let Some(kept) = self.kept {
            kept.repair(&reply, &told, &self.model.route.model, self.run.budget.used());
        }
        self.request.turns.push(ChatTurn::Assistant(reply.raw));
        self.request.turns.push(ChatTurn::User(told));
        let reply = self.ask(2, true)?;
        let repaired = accepted(schema, &reply.text);
        self.stats.rejected = repaired.is_err().then(|| reply.text.clone());
        repaired.map(|text| Reply { text, ..reply }).map_err(mismatch)
    }
}

impl AskedModel<'_> {
    /// Lets the next model that can take the request have it; `false` if there is none.
    fn give_way(
        &mut self,
        failure: &CallError,
        request: &mut Request,
        run: &RunContext,
        agent: &PreparedAgent,
        scope: Scope,
    ) -> bool {
        while let Some((route, next)) = self.next.split_first() {
            self.next = next;
            let needs_price = run.global.limits().needs_prices() && route.price.is_none();
            let no_price =
                || needs_price.then(|| "it has no price, and there is a limit in money".to_owned());
            let provider = match route.unfit(request, self.route).or_else(no_price) {
                Some(why) => Err(why),
                None => {
                    let connected = run.providers.of(&route.endpoint, &agent.workdir, scope);
                    connected.map_err(|error| error.message().to_owned())
                }
            };
            let (model, failed) = (&route.model, &self.route.model);
            match provider {
                Ok(provider) => {
                    scope
                        .reporter
                        .warn(&format!("\"{failed}\" failed ({failure}); asking \"{model}\" instead"));
                    if model.provider != failed.provider && route.endpoint.api() == Some(Api::OpenAi) {
                        openai::make_portable(request);
                    }
                    request.model.clone_from(&model.name);
                    request.is_streamed = run.stream || route.endpoint.is_streamed();
                    (self.route, self.provider) = (route, provider);
                    return true;
                }
                Err(why) => scope.reporter.warn(&format!("\"{model}\" cannot be asked instead: {why}")),
            }
        }
        false
    }
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

/// The tools of `agent` at `depth`: its programs, and `call_agent` if it may call another.
fn offered(agent: &PreparedAgent, depth: u32, run: &RunContext) -> Vec<Tool> {
    let programs = agent.tools.iter().map(|tool| Tool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        schema: tool.schema.value().clone(),
    });
    let callable = &agent.agent.sub_agents;
    let calls_agents = !callable.is_empty() && depth < run.max_depth;
    programs.chain(calls_agents.then(|| call_agent_tool(&callable.join(", ")))).collect()
}

fn call_agent_tool(names: &str) -> Tool {
    let text = |description: &str| json!({ "type": "string", "description": description });
    Tool {
        name: CALL_AGENT.to_owned(),
        description: format!(
            "Give a task to another agent and get its answer. It does not see this conversation, only the \
             task and the context that you pass. Agents that can be called: {names}"
        ),
        schema: json!({
            "type": "object",
            "properties": {
                "agent": text(&format!("The agent to call, one of: {names}")),
                "task": text("What the agent is to do, complete in itself"),
                "context": text("What the agent needs to know besides the task"),
            },
            "required": ["agent", "task"],
        }),
    }
}

/// What the model is told; an error is one for the model, too.
type Told = Result<String, String>;

/// Why a call of the model of `caller` cannot be carried out, whatever the budget; for the model.
fn refusal(run: &RunContext, caller: &PreparedAgent, call: &ToolCall, scope: Scope) -> Option<String> {
    let name = &call.name;
    let is_declared = caller.tools.iter().any(|tool| tool.name == *name);
    let arguments = match &call.arguments {
        _ if !is_declared && name != CALL_AGENT => return Some(format!("Unknown tool: \"{name}\"")),
        Err(why) => return Some(format!("{name} error: the arguments cannot be read: {why}")),
        Ok(arguments) => arguments,
    };
    if is_declared {
        return None;
    }
    let callee = text_in(arguments, "agent");
    let why = match () {
        () if callee.is_empty() => "\"agent\" argument is required".to_owned(),
        () if text_in(arguments, "task").is_empty() => "\"task\" argument is required".to_owned(),
        () if !caller.agent.sub_agents.iter().any(|allowed| allowed == callee) => {
            format!("agent \"{callee}\" is not in this agent's sub_agents list")
        }
        () if scope.depth >= run.max_depth => {
            format!("maximum sub-agent depth ({}) reached", run.max_depth)
        }
        () => return None,
    };
    Some(format!("call_agent error: {why}"))
}

/// What the model is told of a call that there was no call left for.
fn not_run(call: &ToolCall, why: &str) -> String {
    match &call.arguments {
        Ok(arguments) if call.name == CALL_AGENT => failed(text_in(arguments, "agent"), why),
        _ => format!("Error: tool \"{}\" was not run: {why}", call.name),
    }
}

/// What the model is told of a sub-agent that failed.
fn failed(name: &str, why: &str) -> String {
    format!("Error: sub-agent \"{name}\" failed - {why}. You may retry or proceed without this result.")
}

fn text_in<'a>(arguments: &'a Map<String, Value>, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or("")
}

/// Answers one call of the model of `caller`, unless it is refused. The second value is what that took.
fn answer(
    run: &RunContext,
    caller: &PreparedAgent,
    call: &ToolCall,
    refused: Option<&str>,
    scope: Scope,
) -> (ToolResult, RunStats) {
    let started = Instant::now();
    let (mut stats, mut exit) = (RunStats::default(), None);
    let declared = caller.tools.iter().find(|tool| tool.name == call.name);
    let told: Told = match (refused, declared, &call.arguments) {
        (Some(why), ..) => Err(why.to_owned()),
        (.., Err(why)) => Err(why.clone()),
        (_, None, Ok(arguments)) => call_agent(run, caller, arguments, scope, &mut stats),
        (_, Some(tool), Ok(arguments)) => {
            let words = one_line(&Value::Object(arguments.clone()).to_string(), 200);
            scope.reporter.verbose(&format!("[tool] Calling \"{}\" with {words}", tool.name));
            let ran =
                run.budget.run_tool(scope.deadline, || tools::run(tool, arguments, caller, scope, &mut exit));
            let shown = exit.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
            match ran {
                Ok(told) => {
                    let (Ok(text) | Err(text)) = &told;
                    let length = text.len();
                    scope
                        .reporter
                        .verbose(&format!("[tool] \"{}\" returned {length} bytes ({shown})", tool.name));
                    told
                }
                Err(e) => Err(not_run(call, e.message())),
            }
        }
    };
    let arguments = call.arguments.clone().map_or(Value::Null, Value::Object);
    let is_error = told.is_err();
    let (Ok(content) | Err(content)) = told;
    let duration_ms = millis(started.elapsed());
    let (name, bytes) = (call.name.clone(), content.len());
    let detail = ToolDetail { name: name.clone(), arguments, duration_ms, exit, bytes };
    run.budget.tally.tool_ended(&detail);
    stats.tool_details = vec![detail];
    (ToolResult { id: call.id.clone(), name, content, is_error }, stats)
}

/// Calls an agent. The call for its answer was handed out.
fn call_agent(
    run: &RunContext,
    caller: &PreparedAgent,
    arguments: &Map<String, Value>,
    scope: Scope,
    stats: &mut RunStats,
) -> Told {
    let [name, task, context] = ["agent", "task", "context"].map(|name| text_in(arguments, name));
    let started = Instant::now();
    let (depth, reporter) = (scope.depth + 1, scope.reporter.for_sub_agent());
    reporter.verbose(&format!(
        "Calling \"{name}\" (depth {depth}) with task: {}",
        one_line(&task.chars().take(80).collect::<String>(), 80)
    ));
    let below = Scope { depth, reporter, ..scope }.within(caller.agent.sub_agents_config.timeout);
    let message = match context {
        "" => format!("Task: {task}"),
        context => format!("Task: {task}\n\nContext:\n{context}"),
    };
    let mut own = RunStats::default();
    let ended = run_sub_agent(run, name, message, below, &mut own);
    if !own.has_closed {
        run.budget.take_back();
    }
    let duration_ms = millis(started.elapsed());
    let error = ended.as_ref().err().map(|error| error.message().to_owned());
    let told = match ended {
        Ok(text) => {
            let length = text.chars().count();
            reporter.verbose(&format!("\"{name}\" completed in {duration_ms}ms ({length} chars returned)"));
            own.answers = vec![format!("## {name}\n\n{text}")];
            Ok(text)
        }
        Err(error) => {
            reporter.verbose(&format!("\"{name}\" failed: {}", error.message()));
            let mut why = failed(name, error.message());
            let so_far = own.before_failure(false);
            if !so_far.is_empty() {
                // It was paid for, and may be what the caller needs.
                why += &format!("\nBefore that it has said:\n{so_far}");
                own.answers = vec![format!("## {name}\n\n{so_far}")];
            }
            Err(why)
        }
    };
    let done = SubAgentRun {
        name: name.to_owned(),
        input_tokens: own.tokens.input,
        output_tokens: own.tokens.output,
        cost: own.cost.amount(),
        duration_ms,
        error,
        sub_agents: std::mem::take(&mut own.sub_agents),
        tool_details: std::mem::take(&mut own.tool_details),
    };
    if depth == 1 {
        run.budget.tally.sub_agent_ended(&done);
    }
    stats.add(RunStats { sub_agents: vec![done], ..own });
    told
}

/// Runs `name` with its own prompt, skill, files, log and model.
fn run_sub_agent(
    run: &RunContext,
    name: &str,
    message: String,
    scope: Scope,
    stats: &mut RunStats,
) -> Result<String> {
    let Scope { env, reporter, .. } = scope;
    let not_loaded = |error: Error| error.context(format!("failed to load agent \"{name}\""));
    let agent_name = AgentName::parse(name).map_err(not_loaded)?;
    let mut agent = agent::load(&agent_name, env, &reporter).map_err(not_loaded)?;
    let model = run
        .global
        .model(&agent.model)
        .map_err(|error| error.context(format!("invalid model for agent \"{name}\"")))?;
    let texts = [&mut agent.system_prompt].into_iter().chain(&mut agent.files);
    vars::fill(&agent.vars, &[], texts).map_err(not_loaded)?;
    let scope = scope.within(agent.timeout);
    let mut prepared = PreparedAgent::new(agent_name, agent, model, Overrides::default(), run.global, scope)?;
    prepared.start_servers(scope)?;
    let log = AgentLog::load(&prepared.name, &prepared.agent.memory, scope);
    let request = prepared.request(&log, ChatTurn::User(message.clone()));
    let reply = converse(run, &prepared, request, scope, &mut |_| {}, stats)?;
    for warning in reply.warnings.iter().chain(&reply.flaw()) {
        reporter.warn(warning);
    }
    log.append(&message, &reply.text, scope);
    Ok(reply.text)
}
