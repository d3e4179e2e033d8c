//! Copilot CLI: `~/.copilot/session-state/<session id>/events.jsonl`.
//!
//! One event per line: `{type, data, id, timestamp}`. Only `user.message`, `assistant.message` and the results of tools
//! are conversation. `data.content` of a user's message is what was typed; `transformedContent` has what hooks and the
//! program added. The file only grows, also when the session is resumed or compacted. The events of sub-agents stand in
//! the same file, with an `agentId`; their reports are the results of `task` calls.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::harness::content;
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, Payload, is_there};
use crate::harness::source::{Line, Taken, each_line, parse, unknown};
use crate::harness::spec::ToolKind::{
    self, Edit, Own, Question, Read, Running, Search, Shell, SubAgent, Write,
};
use crate::harness::spec::{
    Answer, Capture, Format, Home, Install, Past, Recall, Settings, Spec, When, has, hook, understood,
};
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::Path;

const HOME: Home = Home { variables: &[("COPILOT_HOME", "")], usual: ".copilot" };

pub(super) static SPEC: Spec = Spec {
    name: "copilot",
    title: "Copilot CLI",
    home: HOME,
    own_files: &["copilot-instructions.md"],
    project_files: &["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"],
    marks: &["COPILOT_CLI", "COPILOT_AGENT"],
    format: Format {
        read,
        is_record: |record| {
            let kind = record["type"].as_str().unwrap_or_default();
            has(record, &["data"]) && (kind.starts_with("session.") || kind.ends_with(".message"))
        },
        tools: TOOLS,
        keeps_directory: true,
        ..Format::ANY
    },
    method: "transcript",
    capture: Capture::Hook { session, takes_argument: false, may_print: false },
    past: Past::Files(HOME, &["session-state/*/events.jsonl"]),
    events: &[
        hook("sessionStart", When::Start, 5),
        hook("userPromptSubmitted", When::Prompt, 5),
        hook("preCompact", When::Forgetting, 5),
        hook("agentStop", When::End, 10),
        hook("sessionEnd", When::End, 10),
        // It names the event only in hooks that were written for other programs.
        understood("Stop", When::End),
        understood("SessionEnd", When::End),
    ],
    install: Install::Settings(Settings {
        file: "hooks/agent-memory.json",
        is_one_of_many: true,
        version: Some(1),
        has_groups: false,
        command: "bash",
        timeout: Some("timeoutSec"),
        ..Settings::GROUPS
    }),
    next_step: None,
    recall: Recall { answer: Answer::Key("additionalContext"), resumes_whole: false, unheard: &[] },
    preset: None,
};

const TOOLS: &[(ToolKind, &[&str])] = &[
    (Shell, &["bash", "powershell"]),
    (
        Running,
        &[
            "list_bash", "list_powershell", "read_bash", "read_powershell", "stop_bash", "stop_powershell",
            "write_bash", "write_powershell",
        ],
    ),
    (Read, &["show_file", "view"]),
    (Edit, &["edit", "str_replace"]),
    (Search, &["grep", "rg"]),
    (Write, &["apply_patch", "create"]),
    (Own, &["exit_plan_mode", "glob", "report_intent", "sql", "store_memory", "update_todo"]),
    (SubAgent, &["list_agents", "read_agent", "task", "write_agent"]),
    (Question, &["ask_user"]),
];

/// The first words of the names of events that are not conversation, or repeat it.
const OTHER: &[&str] = &[
    "abort", "assistant", "hook", "model", "permission", "session", "skill", "subagent", "system", "tool",
    "workflow",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
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

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    each_line(path, "Copilot CLI", out, event).map(drop)
}

fn event(line: Line, out: &mut TurnSink) -> Taken {
    let event: Record = parse(line.text)?;
    let (Some(id), Some(data)) = (event.id, event.data) else {
        return unknown(event.kind);
    };
    if event.agent_id.is_some() {
        return Ok(());
    }
    let at = event.timestamp.as_deref().and_then(|at| at.parse().ok());
    let json = data.get();
    let taken = match &*event.kind {
        "session.start" => serde_json::from_str(json).map(|start| self::start(start, out)).map(Ok),
        "user.message" => serde_json::from_str(json).map(|message| user(message, id, at, out)),
        "assistant.message" => serde_json::from_str(json).map(|message| assistant(message, &id, at, out)),
        "tool.execution_complete" => serde_json::from_str(json).map(|result| self::result(result, at, out)),
        kind if OTHER.contains(&kind.split('.').next().unwrap_or(kind)) => return Ok(()),
        kind => return unknown(kind),
    };
    match taken {
        Ok(taken) => Ok(taken?),
        Err(_) => unknown(format!("{} in another shape", event.kind)),
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
        let input = request.arguments.map_or("{}", RawValue::get);
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

/// The keys of a hook's JSON are in camelCase. It does not name the event, but each has keys of its own; and only at the
/// end of a turn does it name the file.
fn session(payload: &Payload, env: &Env) -> Result<Ended> {
    let id = match payload.text("sessionId")? {
        None => payload.id("session_id")?,
        Some(_) => payload.id("sessionId")?,
    };
    for (key, event) in [
        ("source", "sessionStart"),
        ("prompt", "userPromptSubmitted"),
        ("toolName", "preToolUse or postToolUse"),
        ("notification_type", "notification"),
    ] {
        if payload.has(key) {
            let why = format!("nothing ends at {event}; use a hook for agentStop or sessionEnd");
            return Ok(Ended::Nothing(why));
        }
    }
    let named = match payload.absolute("transcriptPath")? {
        None => payload.absolute("transcript_path")?,
        named => named,
    };
    let kept = || HOME.dir(env).map(|home| home.join("session-state").join(id).join("events.jsonl"));
    let Some(path) = named.or_else(kept) else {
        return Ok(Ended::Nothing("the session has no transcript, because $HOME is not set".to_owned()));
    };
    // It writes the file of a new session only after the hooks of its first turn, and of its end, have run.
    is_there(&path)?;
    Ok(Ended::Session { path, id: id.to_owned(), cwd: payload.absolute("cwd")? })
}
