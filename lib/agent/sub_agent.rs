//! The tools of an agent: its programs, and `call_agent`, with which it calls another agent. An error is reported to the
//! model and ends only that call.

use crate::agent::conversation::{MOST_AT_ONCE, RunContext, Scope, ToolAnswer, Toolbox, converse};
use crate::agent::log::{AgentLog, LoggedRun};
use crate::agent::prepare::{Overrides, PreparedAgent, Prompt};
use crate::agent::stats::{Cost, RunStats, SubAgentRun, ToolDetail, millis};
use crate::agent::tools;
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::parallel;
use crate::base::text::one_line;
use crate::config::agent::{self, AgentName};
use crate::config::model::Model;
use crate::config::tool::{CALL_AGENT, DeclaredTool};
use crate::provider::message::{CallArguments, Reply, TokenUsage, Tool, ToolCall, ToolResult};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Runs an agent: its conversation, with the agents that it may call.
pub fn run_agent(
    run: &RunContext,
    agent: &PreparedAgent,
    prompt: Prompt,
    scope: Scope,
    on_text: &mut dyn FnMut(&str),
    stats: &mut RunStats,
) -> Result<Reply> {
    let toolbox = Toolbox {
        tools: offered(agent, scope.depth, run),
        answer: &|calls| answer_all(run, agent, calls, scope),
    };
    converse(run, agent, prompt, toolbox, scope, on_text, stats)
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

/// Answers every call of a turn, in their order; in parallel unless the agent's file says otherwise.
fn answer_all(run: &RunContext, caller: &PreparedAgent, calls: &[ToolCall], scope: Scope) -> Vec<ToolAnswer> {
    let most = if caller.agent.sub_agents_config.parallel { MOST_AT_ONCE } else { 1 };
    parallel::map_at_once(calls, most, |_, call| answer(run, caller, call, scope))
}

/// Answers one call, and says how long that took.
fn answer(run: &RunContext, caller: &PreparedAgent, call: &ToolCall, scope: Scope) -> ToolAnswer {
    let started = Instant::now();
    let mut answer = match caller.tools.iter().find(|tool| tool.name == call.name) {
        Some(tool) => call_program(run, caller, tool, call, scope),
        None => call_agent(run, caller, call, scope),
    };
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
        cost: Cost::default(),
        retries: 0,
    }
}

/// The arguments of a call, or what the model is told if they cannot be read.
fn read_arguments(call: &ToolCall) -> Result<&Map<String, Value>, String> {
    match &call.arguments {
        CallArguments::Object(arguments) => Ok(arguments),
        CallArguments::Malformed(why) => {
            Err(format!("{} error: the arguments cannot be read: {why}", call.name))
        }
    }
}

fn call_program(
    run: &RunContext,
    caller: &PreparedAgent,
    tool: &DeclaredTool,
    call: &ToolCall,
    scope: Scope,
) -> ToolAnswer {
    let Scope { deadline, reporter, .. } = scope;
    let arguments = match read_arguments(call) {
        Ok(arguments) => arguments,
        Err(why) => return told(call, why, true),
    };
    let ran = run.budget.spend_on_tool(deadline, || {
        tools::run(tool, arguments, &caller.workdir, deadline, reporter.is_verbose(), run.env)
    });
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            let why = error.message();
            return told(call, format!("Error: tool \"{}\" was not run: {why}", tool.name), true);
        }
    };
    let exit = ran.exit.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
    reporter.verbose(&format!("[tool] \"{}\" returned {} bytes ({exit})", tool.name, ran.content.len()));
    let answer = told(call, ran.content, ran.is_error);
    ToolAnswer { detail: ToolDetail { exit: ran.exit, ..answer.detail }, ..answer }
}

fn call_agent(run: &RunContext, caller: &PreparedAgent, call: &ToolCall, scope: Scope) -> ToolAnswer {
    let refuse = |why: String| told(call, why, true);
    if call.name != CALL_AGENT {
        return refuse(format!("Unknown tool: \"{}\"", call.name));
    }
    let arguments = match read_arguments(call) {
        Ok(arguments) => arguments,
        Err(why) => return told(call, why, true),
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
        cost: stats.cost,
        retries: stats.retries,
        run: Some(SubAgentRun {
            name: name.to_owned(),
            input_tokens: stats.tokens.input,
            output_tokens: stats.tokens.output,
            cost: stats.cost.amount(),
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
    let prompt = prepared.prompt(&history, message.to_owned());
    let reply = run_agent(run, &prepared, prompt, scope, &mut |_| {}, stats)?;
    for warning in reply.warnings.iter().chain(&reply.flaw()) {
        reporter.warn(warning);
    }
    let logged = LoggedRun { task: message, result: &reply.text };
    history.append(&prepared.name, &prepared.agent, logged, scope.deadline, env, &reporter);
    Ok(reply.text)
}
