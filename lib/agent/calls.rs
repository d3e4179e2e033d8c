//! The calls of tools that an agent's model makes. A tool is a program, a tool of a server, or `call_agent`, with which an
//! agent calls another. Its error is reported to the model and ends only that call.

use crate::agent::log::AgentLog;
use crate::agent::mcp::{Arguments, ToolAnswer};
use crate::agent::prepare::{Overrides, PreparedAgent, RunningAgent};
use crate::agent::stats::{RunStats, SubAgentRun, ToolDetail, millis};
use crate::agent::tree::Scope;
use crate::base::error::{Error, Result};
use crate::base::text::one_line;
use crate::config::agent::{self, AgentName};
use crate::config::tool::CALL_AGENT;
use crate::prompt::vars;
use crate::provider::message::{ChatTurn, Tool, ToolRequest, ToolResult};
use serde_json::{Value, json};
use std::time::Instant;

impl RunningAgent<'_> {
    /// The tools that its model gets: its programs, and `call_agent` if it may call another.
    pub(super) fn offered(self) -> Vec<Tool> {
        let programs = self.agent.tools.iter().map(|tool| Tool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            schema: tool.schema.value().clone(),
        });
        let callable = &self.agent.agent.sub_agents;
        let calls_agents = !callable.is_empty() && self.scope.depth < self.run.max_depth;
        programs.chain(calls_agents.then(|| call_agent_tool(&callable.join(", ")))).collect()
    }

    /// Why a call of its model cannot be carried out, whatever the budget; for the model.
    pub(super) fn refusal(self, call: &ToolRequest) -> Option<String> {
        let name = &call.name;
        let is_declared = self.agent.tools.iter().any(|tool| tool.name == *name);
        let arguments = match &call.arguments {
            _ if !is_declared && name != CALL_AGENT => return Some(format!("Unknown tool: \"{name}\"")),
            Err(why) => return Some(format!("{name} error: the arguments cannot be read: {why}")),
            Ok(_) if is_declared => return None,
            Ok(arguments) => arguments,
        };
        let (callee, most) = (text_in(arguments, "agent"), self.run.max_depth);
        let why = match () {
            () if callee.is_empty() => "\"agent\" argument is required".to_owned(),
            () if text_in(arguments, "task").is_empty() => "\"task\" argument is required".to_owned(),
            () if !self.agent.agent.sub_agents.iter().any(|allowed| allowed == callee) => {
                format!("agent \"{callee}\" is not in this agent's sub_agents list")
            }
            () if self.scope.depth >= most => format!("maximum sub-agent depth ({most}) reached"),
            () => return None,
        };
        Some(format!("call_agent error: {why}"))
    }

    /// Answers one call of its model, unless it is refused. The second value is what that took.
    pub(super) fn answer(self, call: &ToolRequest, refused: Option<&str>) -> (ToolResult, RunStats) {
        let started = Instant::now();
        let (mut stats, mut exit) = (RunStats::default(), None);
        let told = match (refused, &call.arguments) {
            (Some(why), _) => Err(why.to_owned()),
            (_, Err(why)) => Err(why.clone()),
            (_, Ok(arguments)) if call.name == CALL_AGENT => self.call_agent(arguments, &mut stats),
            (_, Ok(arguments)) => self.run_tool(call, arguments, &mut exit),
        };
        let arguments = call.arguments.clone().map_or(Value::Null, Value::Object);
        let is_error = told.is_err();
        let (Ok(content) | Err(content)) = told;
        let duration_ms = millis(started.elapsed());
        let (name, bytes) = (call.name.clone(), content.len());
        let detail = ToolDetail { name: name.clone(), arguments, duration_ms, exit, bytes };
        self.run.budget.tally.tool_ended(&detail);
        stats.tool_details = vec![detail];
        (ToolResult { id: call.id.clone(), name, content, is_error }, stats)
    }

    fn run_tool(self, call: &ToolRequest, arguments: &Arguments, exit: &mut Option<i32>) -> ToolAnswer {
        let RunningAgent { run, agent, scope } = self;
        let Some(tool) = agent.tools.iter().find(|tool| tool.name == call.name) else {
            return Err(format!("Unknown tool: \"{}\"", call.name));
        };
        let words = one_line(&Value::Object(arguments.clone()).to_string(), 200);
        scope.reporter.verbose(&format!("[tool] Calling \"{}\" with {words}", tool.name));
        let ran = run.budget.run_tool(scope.deadline, || self.call_tool(tool, arguments, exit));
        let told = ran.map_err(|e| not_run(call, e.message()))?;
        let shown = exit.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
        let (Ok(text) | Err(text)) = &told;
        let length = text.len();
        scope.reporter.verbose(&format!("[tool] \"{}\" returned {length} bytes ({shown})", tool.name));
        told
    }

    /// Calls an agent. The call for its answer was handed out.
    fn call_agent(self, arguments: &Arguments, stats: &mut RunStats) -> ToolAnswer {
        let RunningAgent { run, agent, scope } = self;
        let [name, task, context] = ["agent", "task", "context"].map(|name| text_in(arguments, name));
        let started = Instant::now();
        let (depth, reporter) = (scope.depth + 1, scope.reporter.for_sub_agent());
        reporter.verbose(&format!(
            "Calling \"{name}\" (depth {depth}) with task: {}",
            one_line(&task.chars().take(80).collect::<String>(), 80)
        ));
        let below = Scope { depth, reporter, ..scope }.within(agent.agent.sub_agents_config.timeout);
        let message = match context {
            "" => format!("Task: {task}"),
            context => format!("Task: {task}\n\nContext:\n{context}"),
        };
        let mut own = RunStats::default();
        let ended = self.run_agent(name, message, below, &mut own);
        if !own.has_closed {
            run.budget.take_back();
        }
        let duration_ms = millis(started.elapsed());
        let error = ended.as_ref().err().map(|error| error.message().to_owned());
        match &ended {
            Ok(text) => {
                let length = text.chars().count();
                reporter
                    .verbose(&format!("\"{name}\" completed in {duration_ms}ms ({length} chars returned)"));
            }
            Err(error) => reporter.verbose(&format!("\"{name}\" failed: {}", error.message())),
        }
        // What was said before a failure was paid for, and may be what the caller needs.
        let said = ended.as_ref().map_or_else(|_| own.before_failure(false), String::clone);
        if ended.is_ok() || !said.is_empty() {
            own.answers = vec![format!("## {name}\n\n{said}")];
        }
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
        ended.map_err(|error| match &*said {
            "" => failed(name, error.message()),
            said => format!("{}\nBefore that it has said:\n{said}", failed(name, error.message())),
        })
    }

    /// Runs `name` with its own prompt, skill, files, log and model.
    fn run_agent(self, name: &str, message: String, scope: Scope, stats: &mut RunStats) -> Result<String> {
        let Scope { env, reporter, .. } = scope;
        let global = self.run.global;
        let not_loaded = |error: Error| error.context(format!("failed to load agent \"{name}\""));
        let agent_name = AgentName::parse(name).map_err(not_loaded)?;
        let mut agent = agent::load(&agent_name, env, &reporter).map_err(not_loaded)?;
        let model = global.model(&agent.model);
        let model = model.map_err(|error| error.context(format!("invalid model for agent \"{name}\"")))?;
        let texts = [&mut agent.system_prompt].into_iter().chain(&mut agent.files);
        vars::fill(&agent.vars, &[], texts).map_err(not_loaded)?;
        let scope = scope.within(agent.timeout);
        let mut agent = PreparedAgent::new(agent_name, agent, Overrides::of_model(model), global, scope)?;
        agent.start_servers(scope)?;
        let log = AgentLog::load(&agent.name, &agent.agent.memory, scope);
        let request = agent.request(&log, ChatTurn::User(message.clone()));
        let callee = RunningAgent { run: self.run, agent: &agent, scope };
        let reply = callee.converse(request, &mut |_| {}, stats)?;
        for warning in reply.warnings.iter().chain(&reply.flaw()) {
            reporter.warn(warning);
        }
        log.append(&message, &reply.text, scope);
        Ok(reply.text)
    }
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

/// What the model is told of a call that there was no call left for.
pub(super) fn not_run(call: &ToolRequest, why: &str) -> String {
    match &call.arguments {
        Ok(arguments) if call.name == CALL_AGENT => failed(text_in(arguments, "agent"), why),
        _ => format!("Error: tool \"{}\" was not run: {why}", call.name),
    }
}

/// What the model is told of a sub-agent that failed.
fn failed(name: &str, why: &str) -> String {
    format!("Error: sub-agent \"{name}\" failed - {why}. You may retry or proceed without this result.")
}

fn text_in<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or("")
}
