//! `call_agent`: the tool with which an agent calls another. An error is reported to the caller and ends only that
//! call.

use crate::agent::conversation::{MOST_AT_ONCE, RunContext, Scope, ToolAnswer, Toolbox, converse};
use crate::agent::log::{AgentLog, LoggedRun};
use crate::agent::prepare::{Overrides, PreparedAgent};
use crate::agent::stats::{RunStats, SubAgentRun, ToolDetail, millis};
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::sync::lock;
use crate::base::text::one_line;
use crate::config::agent::{self, AgentName};
use crate::config::model::Model;
use crate::provider::message::{CallArguments, Parameter, Reply, TokenUsage, Tool, ToolCall, ToolResult};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const NAME: &str = "call_agent";

/// Runs an agent: its conversation, with the agents that it may call.
pub(crate) fn run_agent(
    run: &RunContext,
    agent: &PreparedAgent,
    system: String,
    message: &str,
    scope: Scope,
    stats: &mut RunStats,
) -> Result<Reply> {
    let toolbox = Toolbox {
        tools: tools(agent, scope.depth, run),
        answer: &|calls| answer_all(run, agent, calls, scope),
    };
    converse(run, agent, system, message, toolbox, scope, stats)
}

/// The tools of `agent` at `depth`: `call_agent`, or none.
fn tools(agent: &PreparedAgent, depth: u32, run: &RunContext) -> Vec<Tool> {
    let callable = &agent.agent.sub_agents;
    if callable.is_empty() || depth >= run.max_depth {
        return Vec::new();
    }
    let names = callable.join(", ");
    let parameter = |name, description: String, required| Parameter { name, description, required };
    vec![Tool {
        name: NAME,
        description: format!(
            "Give a task to another agent and get its answer. It does not see this conversation, only the \
             task and the context that you pass. Agents that can be called: {names}"
        ),
        parameters: vec![
            parameter("agent", format!("The agent to call, one of: {names}"), true),
            parameter("task", "What the agent is to do, complete in itself".to_owned(), true),
            parameter("context", "What the agent needs to know besides the task".to_owned(), false),
        ],
    }]
}

/// Answers every call of a turn, in their order; in parallel unless the agent's file says otherwise.
fn answer_all(run: &RunContext, caller: &PreparedAgent, calls: &[ToolCall], scope: Scope) -> Vec<ToolAnswer> {
    let answer = |call: &ToolCall| answer(run, caller, call, scope);
    if calls.len() < 2 || !caller.agent.sub_agents_config.parallel {
        return calls.iter().map(answer).collect();
    }
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(Vec::with_capacity(calls.len()));
    let work = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(call) = calls.get(n) else { return };
            let answer = answer(call);
            lock(&answers).push((n, answer));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..calls.len().min(MOST_AT_ONCE) {
            // If a thread does not start, the others take its calls.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.sort_by_key(|(n, _)| *n);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Answers one call, and says how long that took.
fn answer(run: &RunContext, caller: &PreparedAgent, call: &ToolCall, scope: Scope) -> ToolAnswer {
    let started = Instant::now();
    let mut answer = call_agent(run, caller, call, scope);
    answer.detail.duration_ms = millis(started.elapsed());
    answer
}

fn told(call: &ToolCall, content: String, is_error: bool) -> ToolAnswer {
    let arguments = match &call.arguments {
        CallArguments::Object(arguments) => Value::Object(arguments.clone()),
        CallArguments::Malformed(_) => Value::Null,
    };
    let detail =
        ToolDetail { name: call.name.clone(), arguments, duration_ms: 0, exit: None, bytes: content.len() };
    ToolAnswer {
        result: ToolResult { id: call.id.clone(), name: call.name.clone(), content, is_error },
        detail,
        run: None,
        tokens: TokenUsage::default(),
        retries: 0,
    }
}

fn call_agent(run: &RunContext, caller: &PreparedAgent, call: &ToolCall, scope: Scope) -> ToolAnswer {
    let refuse = |why: String| told(call, why, true);
    if call.name != NAME {
        return refuse(format!("Unknown tool: \"{}\"", call.name));
    }
    let arguments = match &call.arguments {
        CallArguments::Object(arguments) => arguments,
        CallArguments::Malformed(why) => {
            return refuse(format!("call_agent error: the arguments cannot be read: {why}"));
        }
    };
    let text = |name: &str| arguments.get(name).and_then(|value| value.as_str()).unwrap_or("");
    let (name, task, context) = (text("agent"), text("task"), text("context"));
    if name.is_empty() {
        return refuse("call_agent error: \"agent\" argument is required".to_owned());
    }
    if task.is_empty() {
        return refuse("call_agent error: \"task\" argument is required".to_owned());
    }
    if !caller.agent.sub_agents.iter().any(|allowed| allowed == name) {
        return refuse(format!("call_agent error: agent \"{name}\" is not in this agent's sub_agents list"));
    }
    if scope.depth >= run.max_depth {
        return refuse(format!("call_agent error: maximum sub-agent depth ({}) reached", run.max_depth));
    }

    let started = Instant::now();
    let reporter = scope.reporter.for_sub_agent();
    reporter.verbose(&format!(
        "Calling \"{name}\" (depth {}) with task: {}",
        scope.depth + 1,
        one_line(&task.chars().take(80).collect::<String>(), 80)
    ));
    let limit = caller.agent.sub_agents_config.timeout_seconds();
    let deadline = match limit {
        0 => scope.deadline,
        limit => scope.deadline.earlier(Deadline::after_seconds(limit)),
    };
    let below = Scope { depth: scope.depth + 1, deadline, reporter };
    let message = match context {
        "" => format!("Task: {task}"),
        context => format!("Task: {task}\n\nContext:\n{context}"),
    };
    let mut stats = RunStats::default();
    let ended = run_sub_agent(run, name, &message, below, &mut stats);
    let duration_ms = millis(started.elapsed());
    let (answer, error) = match ended {
        Ok(text) => {
            let length = text.chars().count();
            reporter.verbose(&format!("\"{name}\" completed in {duration_ms}ms ({length} chars returned)"));
            (told(call, text, false), None)
        }
        Err(error) => {
            let why = error.message().to_owned();
            reporter.verbose(&format!("\"{name}\" failed: {why}"));
            let line = format!(
                "Error: sub-agent \"{name}\" failed - {why}. You may retry or proceed without this result."
            );
            (told(call, line, true), Some(why))
        }
    };
    ToolAnswer {
        tokens: stats.tokens,
        retries: stats.retries,
        run: Some(SubAgentRun {
            name: name.to_owned(),
            input_tokens: stats.tokens.input,
            output_tokens: stats.tokens.output,
            duration_ms,
            error,
            sub_agents: stats.sub_agents,
            tool_details: stats.tool_details,
        }),
        ..answer
    }
}

/// Runs `name` with its own prompt, skill, files, log and model.
fn run_sub_agent(
    run: &RunContext,
    name: &str,
    message: &str,
    scope: Scope,
    stats: &mut RunStats,
) -> Result<String> {
    let Scope { reporter, .. } = scope;
    let env = run.env;
    let not_loaded = |error: Error| error.context(format!("failed to load agent \"{name}\""));
    let agent_name = AgentName::parse(name).map_err(not_loaded)?;
    let agent = agent::load(&agent_name, env, &reporter).map_err(not_loaded)?;
    let model = Model::parse(&agent.model)
        .map_err(|error| error.context(format!("invalid model for agent \"{name}\"")))?;
    let deadline = match agent.timeout_seconds() {
        None => scope.deadline,
        Some(seconds) => scope.deadline.earlier(Deadline::after_seconds(seconds)),
    };
    let scope = Scope { deadline, ..scope };
    let prepared =
        PreparedAgent::new(agent_name, agent, model, &Overrides::default(), run.global, env, &reporter)?;
    let history = AgentLog::load(&prepared.name, &prepared.agent, scope.deadline, env, &reporter);
    let system = prepared.system(&history);
    let reply = run_agent(run, &prepared, system, message, scope, stats)?;
    for warning in reply.warnings.iter().chain(&reply.flaw()) {
        reporter.warn(warning);
    }
    let logged = LoggedRun { task: message, result: &reply.text };
    history.append(&prepared.name, &prepared.agent, logged, scope.deadline, env, &reporter);
    Ok(reply.text)
}
