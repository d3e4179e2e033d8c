//! Copilot CLI: `~/.copilot/session-state/<session id>/events.jsonl`.
//!
//! One event per line: `{type, data, id, timestamp}`. Only `user.message`, `assistant.message` and the results of tools
//! are conversation. `data.content` of a user's message is the prompt; `transformedContent` has what hooks and the
//! program added. The file only grows, also when the session is resumed or compacted. The events of sub-agents stand in
//! the same file, with an `agentId`; their reports are the results of `task` calls.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::harness::content::{self, Object, PromptMessage, Skip, Taken, ToolUse, unknown};
use crate::harness::context::{ContextFiles, Imports};
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, Payload, is_there};
use crate::harness::source::each_line;
use crate::harness::spec::{
    CaptureSpec, Format, Home, HookMoment, HookSettings, Install, PastSource, RecallForm, RecallSpec, Spec,
    ToolKind, ToolTable, has, hook, understood,
};
use crate::harness::turn::Role;
use serde_json::value::RawValue;
use std::path::Path;

const HOME: Home = Home { variables: &[("COPILOT_HOME", "")], usual: ".copilot" };

pub(super) static SPEC: Spec = Spec {
    name: "copilot",
    title: "Copilot CLI",
    home: HOME,
    reads: ContextFiles {
        own: &[&["copilot-instructions.md"]],
        project: &[&["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"]],
        imports: Imports::InRepository,
        ..ContextFiles::AGENTS
    },
    marks: &["COPILOT_CLI", "COPILOT_AGENT", "COPILOT_AGENT_SESSION_ID", "COPILOT_AGENT_JOB_ID"],
    format: Format {
        read,
        is_record: |record| {
            let kind = record["type"].as_str().unwrap_or_default();
            has(record, &["data"]) && (kind.starts_with("session.") || kind.ends_with(".message"))
        },
        tools: TOOLS,
        prompts: |_, env| Vec::from_iter(HOME.dir(env).map(|dir| dir.join("command-history-state.json"))),
        keeps_directory: true,
        ..Format::ANY
    },
    method: "transcript",
    capture: CaptureSpec::Hook { session, takes_argument: false, may_print: false, removes: false },
    past: PastSource::Files(HOME, &["session-state/*/events.jsonl"]),
    events: &[
        hook("sessionStart", HookMoment::Start, 5),
        hook("userPromptSubmitted", HookMoment::Prompt, 5),
        hook("preToolUse", HookMoment::Act, 5),
        hook("preCompact", HookMoment::Forgetting, 5),
        hook("agentStop", HookMoment::End, 10),
        hook("sessionEnd", HookMoment::End, 10),
        // It names the event only in hooks that were written for other programs.
        understood("Stop", HookMoment::End),
        understood("SessionEnd", HookMoment::End),
    ],
    install: Install::Settings(HookSettings {
        file: "hooks/agent-memory.json",
        is_one_of_many: true,
        version: Some(1),
        has_groups: false,
        never_fails: true,
        command: "bash",
        timeout: Some("timeoutSec"),
        ..HookSettings::GROUPS
    }),
    next_step: None,
    recall: RecallSpec { form: RecallForm::Key("additionalContext"), resumes_whole: false, unheard: &[] },
    memory: None,
    preset: None,
};

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "bash powershell"),
    (
        ToolKind::Running,
        "list_bash list_powershell read_bash read_powershell stop_bash stop_powershell \
        write_bash write_powershell",
    ),
    (ToolKind::Read, "show_file view"),
    (ToolKind::Edit, "edit str_replace"),
    (ToolKind::Search, "grep rg"),
    (ToolKind::Write, "apply_patch create"),
    (ToolKind::Own, "exit_plan_mode glob report_intent sql store_memory update_todo"),
    (ToolKind::SubAgent, "list_agents read_agent task write_agent"),
    (ToolKind::Question, "ask_user"),
];

/// The first words of the names of events that are not conversation, or repeat it.
const OTHER: &[&str] = &[
    "abort", "assistant", "hook", "model", "permission", "session", "skill", "subagent", "system", "tool",
    "workflow",
];

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    each_line(path, "Copilot CLI", out, |event, _, out| take(event, out)).map(drop)
}

fn take(event: &Object, out: &mut TurnSink) -> Taken {
    let kind = event.kind()?;
    let (Some(id), Some(_)) = (event.text("id")?, event.raw("data")) else { return unknown(kind) };
    // Of a sub-agent.
    if event.raw("agentId").is_some() {
        return Ok(());
    }
    out.at = event.time("timestamp");
    let data = || event.object("data").and_then(|data| data.ok_or(Skip::Shape));
    match &*kind {
        // A later one is a copy from another session.
        "session.start" if out.report.session_id.is_none() => {
            let data = data()?;
            let cwd = data.object("context")?.map_or(Ok(None), |context| context.text("cwd"))?;
            out.report.begins(data.text("sessionId")?, cwd);
            Ok(())
        }
        "user.message" => {
            let data = data()?;
            // It is missing in what was typed, and under `-p`.
            if data.text("source")?.is_some_and(|source| source != "user") {
                return Ok(());
            }
            Ok(out.prompt(PromptMessage::of(&data.text("content")?.unwrap_or_default()), None, id)?)
        }
        "assistant.message" => assistant(&data()?, &id, out),
        "tool.execution_complete" => result(&data()?, out),
        kind if OTHER.contains(&kind.split('.').next().unwrap_or(kind)) => Ok(()),
        kind => unknown(kind),
    }
}

fn assistant(data: &Object, id: &str, out: &mut TurnSink) -> Taken {
    let text = |key: &str| data.text(key).map(Option::unwrap_or_default);
    out.turn(Role::Reasoning, &text("reasoningText")?, format!("{id}/thought"))?;
    out.turn(Role::Assistant, &text("content")?, id.to_owned())?;
    let requests: Vec<&RawValue> = data.get("toolRequests")?.unwrap_or_default();
    for (n, request) in requests.into_iter().enumerate() {
        let turn = format!("{id}/call{n}");
        let called = Object::parse(request.get()).and_then(|request| {
            let key = request.text("toolCallId")?.unwrap_or_else(|| turn.clone());
            let ToolUse { name, input, .. } = ToolUse::of(&request)?;
            Ok(out.call(&key, &name, input, turn)?)
        });
        out.count("tool request", called)?;
    }
    Ok(())
}

fn result(data: &Object, out: &mut TurnSink) -> Taken {
    let text = match data.object("result")?.or(data.object("error")?) {
        None => String::new(),
        Some(said) => match said.raw("content") {
            Some(content) => content::text(content),
            None => said.text("message")?.unwrap_or_default(),
        },
    };
    let failed = data.raw("success").is_some_and(|success| success.get() == "false");
    Ok(out.result(&data.text("toolCallId")?.unwrap_or_default(), &text, failed)?)
}

/// The keys of a hook's JSON are in camelCase. It does not name the event, but each has keys of its own; and only at the
/// end of a turn does it name the file.
fn session(payload: &Payload, env: &Env) -> Result<Ended> {
    let id = payload.id(if payload.text("sessionId")?.is_some() { "sessionId" } else { "session_id" })?;
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
