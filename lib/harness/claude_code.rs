//! Claude Code: `~/.claude/projects/<directory>/<session id>.jsonl`.
//!
//! One JSON record per line. Only `user` and `assistant` records are conversation, and not all of them: many user
//! records were not typed by a person. A reply is several records with one part each; tool results are user records,
//! in any order. A file only grows, also when a session is resumed or compacted, so everything is in it once. A fork
//! is a new file that begins with the parent's records and their uuids.

use crate::base::error::Result;
use crate::harness::content::{self, known_parts};
use crate::harness::files::sessions_in;
use crate::harness::out::TurnSink;
use crate::harness::payload::{is_below, transcript};
use crate::harness::source::{Line, Taken, each_line, parse, unknown};
use crate::harness::spec::ToolKind::{
    self, Edit, Own, Question, Read, Running, Search, Shell, SubAgent, Write,
};
use crate::harness::spec::{
    Answer, Capture, Event, Format, Home, Install, Past, Preset, Recall, Settings, Spec, When, has, hook,
    understood,
};
use crate::harness::tool::IMAGE;
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::Path;

const HOME: Home = Home { variables: &[("CLAUDE_CONFIG_DIR", "")], usual: ".claude" };

pub(super) static SPEC: Spec = Spec {
    name: "claude-code",
    title: "Claude Code",
    home: HOME,
    own_files: &["CLAUDE.md"],
    project_files: &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"],
    marks: &["CLAUDECODE"],
    format: Format {
        read,
        is_record: |record| {
            let message = &record["message"];
            let is_qwens = message.get("parts").is_some() || record.get("provenance").is_some();
            has(record, &["uuid", "sessionId"]) && has(message, &["content"]) && !is_qwens
        },
        tools: TOOLS,
        keeps_directory: true,
        outputs: Some("tool-results"),
        sub_agents: |session| sessions_in(&session.with_extension("").join("subagents")),
        ..Format::ANY
    },
    method: "transcript",
    capture: Capture::Hook {
        session: |payload, _| transcript(payload, |path| is_below(path, 1, "subagents")),
        takes_argument: false,
        may_print: true,
    },
    past: Past::Files(HOME, &["projects/*/*.jsonl"]),
    events: EVENTS,
    install: Install::Settings(Settings::GROUPS),
    next_step: None,
    recall: Recall { answer: Answer::HookOutput, resumes_whole: true, unheard: &[] },
    preset: Some(Preset {
        name: "claude",
        line: "CLAUDE_CODE_MAX_RETRIES=0 claude -p --safe-mode --no-session-persistence --tools \"\"",
        rank: 1,
    }),
};

pub(super) const EVENTS: &[Event] = &[
    hook("SessionStart", When::Start, 5),
    hook("UserPromptSubmit", When::Prompt, 5),
    hook("Stop", When::End, 10),
    // Without one it gets 1.5 s.
    hook("SessionEnd", When::End, 10),
    understood("PreCompact", When::End),
];

const TOOLS: &[(ToolKind, &[&str])] = &[
    (Shell, &["Bash", "PowerShell"]),
    (Running, &["BashOutput", "KillBash", "KillShell", "Monitor"]),
    (Read, &["NotebookRead", "Read"]),
    (Edit, &["Edit", "MultiEdit", "NotebookEdit"]),
    (Search, &["Grep"]),
    (Write, &["Write"]),
    (
        Own,
        &[
            "CronCreate", "CronDelete", "CronList", "EnterPlanMode", "EnterWorktree", "ExitPlanMode",
            "ExitWorktree", "Glob", "LS", "TaskCreate", "TaskGet", "TaskList", "TaskStop", "TaskUpdate",
            "TodoRead", "TodoWrite", "ToolSearch",
        ],
    ),
    (SubAgent, &["Agent", "AgentOutputTool", "SendMessage", "Task", "TaskOutput"]),
    (Question, &["AskUserQuestion"]),
];

/// Records that are not conversation, though some quote it.
const OTHER: &[&str] = &[
    "api-request", "api-request-blob", "api-request-shape", "atis-latch", "attachment", "cost-state",
    "file-history-snapshot", "last-prompt", "mode", "permission-mode", "queue-operation", "summary",
    "system", "tools-used",
];

/// The start of user texts that the program wrote itself.
const NOT_TYPED: &[&str] = &[
    "<bash-input>", "<bash-stderr>", "<bash-stdout>", "<command-args>", "<command-message>",
    "<command-name>", "<local-command-", "<system-reminder>", "<task-notification>",
    "[Request interrupted by user",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    uuid: Option<String>,
    timestamp: Option<String>,
    session_id: Option<String>,
    /// In a fork's copies: the session of the original.
    request_session_id: Option<String>,
    cwd: Option<String>,
    agent_id: Option<String>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
    origin: Option<Origin>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Origin {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut session = Session::default();
    each_line(path, "Claude Code", out, |line, out| session.line(line, out)).map(drop)
}

#[derive(Default)]
struct Session {
    /// Hashes of the uuids so far: a record that is written twice counts once.
    seen: HashSet<u64>,
    hasher: RandomState,
    /// Was there a record of the session itself, and not only of sub-agents?
    spoke: bool,
}

impl Session {
    fn line(&mut self, line: Line, out: &mut TurnSink) -> Taken {
        let record: Record = parse(line.text)?;
        let conversation = record.kind == "user" || record.kind == "assistant";
        if !conversation {
            let known = OTHER.contains(&&*record.kind) && record.session_id.is_some();
            let known = known || record.kind == "file-history-snapshot";
            return if known { Ok(()) } else { unknown(record.kind) };
        }
        let (Some(raw), Some(uuid)) = (record.message, &record.uuid) else {
            return unknown(format!("{} without a message or uuid", record.kind));
        };
        let report = &mut out.report;
        if report.session_id.is_none() {
            report.session_id.clone_from(&record.session_id);
        }
        if report.cwd.is_none() {
            report.cwd.clone_from(&record.cwd);
        }
        if record.request_session_id.is_some() && record.request_session_id != record.session_id {
            report.parent.clone_from(&record.request_session_id);
        }
        if record.is_sidechain == Some(true) {
            // In the sub-agent's own file these are the conversation; elsewhere they are not the session's.
            if self.spoke || record.agent_id.is_none() {
                return Ok(());
            }
            report.is_sub_agent = true;
        } else {
            self.spoke = true;
        }
        if !self.seen.insert(self.hasher.hash_one(uuid)) {
            return Ok(());
        }
        let message: Message = match serde_json::from_str(raw.get()) {
            Ok(Message { content: None, .. }) => {
                out.report.unreadable += 1;
                return unknown(format!("{} without content", record.kind));
            }
            Ok(message) => message,
            Err(_) => return unknown(format!("{} message in another shape", record.kind)),
        };
        let at = record.timestamp.as_deref().and_then(|at| at.parse().ok());
        if record.kind == "user" {
            user(&record, uuid, message.content, at, out)?;
        } else if record.is_api_error_message != Some(true) && message.model.as_deref() != Some("<synthetic>")
        {
            assistant(uuid, message.content, at, out)?;
        }
        Ok(())
    }
}

fn user(
    record: &Record,
    uuid: &str,
    content: Option<&RawValue>,
    at: Option<Timestamp>,
    out: &mut TurnSink,
) -> Result<()> {
    let origin = record.origin.as_ref().and_then(|origin| origin.kind.as_deref());
    let typed = record.is_meta != Some(true)
        && record.is_compact_summary != Some(true)
        && origin.is_none_or(|kind| kind == "human");
    let mut texts = Vec::new();
    for (_, part) in known_parts(content, "user part", &mut out.report) {
        match (&*part.kind, part.text, part.tool_use_id) {
            ("tool_result", _, Some(key)) => {
                let text = part.content.map(content::text).unwrap_or_default();
                let failed = part.is_error == Some(true);
                out.result(&key, preview(&text), failed, at)?;
            }
            ("text", Some(text), _) if typed && !not_typed(&text) => texts.push(text),
            ("image", ..) if typed => texts.push(IMAGE.to_owned()),
            ("text" | "image", ..) => {}
            (kind, ..) => out.report.unknown(&format!("user part {kind}")),
        }
    }
    out.turn(Role::User, &texts.join("\n"), uuid.to_owned(), at)
}

fn not_typed(text: &str) -> bool {
    let text = text.trim_start();
    NOT_TYPED.iter().any(|start| text.starts_with(start))
}

fn assistant(
    uuid: &str,
    content: Option<&RawValue>,
    at: Option<Timestamp>,
    out: &mut TurnSink,
) -> Result<()> {
    for (n, part) in known_parts(content, "assistant part", &mut out.report) {
        // A record usually has one part; further ones get ids of their own.
        let id = if n == 0 { uuid.to_owned() } else { format!("{uuid}/{n}") };
        match (&*part.kind, part.text, part.thinking) {
            ("text", Some(text), _) => out.turn(Role::Assistant, &text, id, at)?,
            ("thinking", _, Some(text)) => out.turn(Role::Reasoning, &text, id, at)?,
            ("tool_use", ..) => {
                let key = part.id.unwrap_or(id);
                let input = part.input.map_or("{}", RawValue::get);
                out.call(&key, part.name.as_deref().unwrap_or("tool"), input, key.clone(), at)?;
            }
            ("text" | "thinking" | "redacted_thinking", ..) => {}
            (kind, ..) => out.report.unknown(&format!("assistant part {kind}")),
        }
    }
    Ok(())
}

/// The session has only the beginning of a large result, and names the file with the rest. That file is not opened,
/// because its path comes from a transcript.
fn preview(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<persisted-output>");
    inner.map_or(text, |inner| inner.strip_suffix("</persisted-output>").unwrap_or(inner).trim())
}
