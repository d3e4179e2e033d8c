//! Copilot CLI: `~/.copilot/session-state/<session id>/events.jsonl`.
//!
//! One event per line: `{type, data, id, timestamp}`. Only `user.message`, `assistant.message` and the results of tools
//! are conversation. `data.content` of a user's message is what was typed; `transformedContent` has what hooks and the
//! program added. The file only grows, also when the session is resumed or compacted. The events of sub-agents stand in
//! the same file, with an `agentId`; their reports are the results of `task` calls.

use crate::base::error::Result;
use crate::harness::content;
use crate::harness::out::TurnSink;
use crate::harness::source::{self, Line, RecordStatus, each_line, parse};
use crate::harness::tool::ToolArguments;
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::Path;

/// The first words of the names of events that are not conversation, or repeat it.
const OTHER: &[&str] = &[
    "abort", "assistant", "hook", "model", "permission", "session", "skill", "subagent", "system", "tool",
    "workflow",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    id: Option<String>,
    timestamp: Option<String>,
    /// Of a sub-agent.
    agent_id: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    session_id: Option<String>,
    context: Option<Context>,
}

#[derive(Deserialize)]
struct Context {
    cwd: Option<String>,
}

#[derive(Deserialize)]
struct UserMessage {
    content: Option<String>,
    /// Missing, or `user`, if a person typed it.
    source: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AssistantMessage<'a> {
    content: Option<String>,
    reasoning_text: Option<String>,
    #[serde(borrow, default)]
    tool_requests: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolRequest<'a> {
    tool_call_id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    tool_call_id: Option<String>,
    success: Option<bool>,
    #[serde(borrow)]
    result: Option<Outcome<'a>>,
    #[serde(borrow)]
    error: Option<Outcome<'a>>,
}

#[derive(Deserialize)]
struct Outcome<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    message: Option<String>,
}

pub(super) fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = source::open(path, "a Copilot CLI session")?;
    each_line(path, &mut reader, "Copilot CLI", out, event)
}

fn event(line: Line, out: &mut TurnSink) -> Result<RecordStatus> {
    let event: Event = match parse(line.text) {
        Ok(event) => event,
        Err(seen) => return Ok(seen),
    };
    let (Some(id), Some(data)) = (event.id, event.data) else {
        return Ok(RecordStatus::Unknown(event.kind.into_owned()));
    };
    if event.agent_id.is_some() {
        return Ok(RecordStatus::Known);
    }
    let at = event.timestamp.as_deref().and_then(|at| at.parse().ok());
    let json = data.get();
    let taken = match &*event.kind {
        "session.start" => serde_json::from_str(json).map(|start| self::start(start, out)).map(Ok),
        "user.message" => serde_json::from_str(json).map(|message| user(message, id, at, out)),
        "assistant.message" => serde_json::from_str(json).map(|message| assistant(message, &id, at, out)),
        "tool.execution_complete" => serde_json::from_str(json).map(|result| self::result(result, at, out)),
        kind if OTHER.contains(&kind.split('.').next().unwrap_or(kind)) => return Ok(RecordStatus::Known),
        kind => return Ok(RecordStatus::Unknown(kind.to_owned())),
    };
    match taken {
        Ok(taken) => taken.map(|()| RecordStatus::Known),
        Err(_) => Ok(RecordStatus::Unknown(format!("{} in another shape", event.kind))),
    }
}

fn start(start: Start, out: &mut TurnSink) {
    // A later one is a copy from another session.
    if out.report.session_id.is_none() {
        out.report.session_id = start.session_id;
        out.report.cwd = start.context.and_then(|context| context.cwd);
    }
}

fn user(message: UserMessage, id: String, at: Option<Timestamp>, out: &mut TurnSink) -> Result<()> {
    if message.source.is_some_and(|source| source != "user") {
        return Ok(());
    }
    out.turn(Role::User, &message.content.unwrap_or_default(), id, at)
}

fn assistant(message: AssistantMessage, id: &str, at: Option<Timestamp>, out: &mut TurnSink) -> Result<()> {
    let thought = message.reasoning_text.unwrap_or_default();
    out.turn(Role::Reasoning, &thought, format!("{id}/thought"), at)?;
    out.turn(Role::Assistant, &message.content.unwrap_or_default(), id.to_owned(), at)?;
    for (n, raw) in message.tool_requests.into_iter().enumerate() {
        let Ok(request) = serde_json::from_str::<ToolRequest>(raw.get()) else {
            out.report.unknown("tool request in another shape");
            continue;
        };
        let turn = format!("{id}/call{n}");
        let key = request.tool_call_id.unwrap_or_else(|| turn.clone());
        let input = request.arguments.map_or(ToolArguments::Text("{}"), ToolArguments::Json);
        out.call(&key, request.name.as_deref().unwrap_or("tool"), input, turn, at)?;
    }
    Ok(())
}

fn result(result: ToolResult, at: Option<Timestamp>, out: &mut TurnSink) -> Result<()> {
    let key = result.tool_call_id.unwrap_or_default();
    let said = |outcome: Outcome| match (outcome.content, outcome.message) {
        (Some(content), _) => content::text(content),
        (None, message) => message.unwrap_or_default(),
    };
    let text = result.result.map(said).or_else(|| result.error.map(said)).unwrap_or_default();
    out.result(&key, &text, result.success == Some(false), at)
}
