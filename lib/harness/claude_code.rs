//! Claude Code: `~/.claude/projects/<directory>/<session id>.jsonl`.
//!
//! One JSON record per line. Only `user` and `assistant` records are conversation, and not all of them: many user
//! records were not typed by a person; those that were say so in `promptSource`. A reply is several records with one part each; tool results are user records,
//! in any order. A file only grows, also when a session is resumed or compacted, so everything is in it once. A fork
//! is a new file that begins with the parent's records and their uuids.

use crate::base::error::Result;
use crate::harness::chain::Withdrawn;
use crate::harness::content::{self, ContentPart, Object, PromptMessage, Taken, ToolUse, between, unknown};
use crate::harness::context::{Above, ContextFiles, Imports};
use crate::harness::files::sessions_in;
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, is_below, transcript};
use crate::harness::source::each_line;
use crate::harness::spec::{
    BuiltInMemory, CaptureSpec, DISABLE_ALL, Format, Home, HookEvent, HookMoment, HookSettings, Install,
    MemoryProject, PastSource, Preset, RecallForm, RecallSpec, Spec, Switch, ToolKind, ToolTable, has, hook,
    understood,
};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

const HOME: Home = Home { variables: &[("CLAUDE_CONFIG_DIR", "")], usual: ".claude" };

pub(super) static SPEC: Spec = Spec {
    name: "claude-code",
    title: "Claude Code",
    home: HOME,
    reads: ContextFiles {
        own: &[&["CLAUDE.md"]],
        // Since 2.1.277 the second one, where there is none of the first ones.
        project: &[&["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"], &["AGENTS.md"]],
        above: Above::Everything,
        imports: Imports::InDirectory,
        ..ContextFiles::AGENTS
    },
    marks: &["CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION"],
    format: Format {
        read,
        marks_failures: true,
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
    capture: CaptureSpec::Hook {
        session: |payload, env| {
            let ended = transcript(payload, |path| is_below(path, 1, "subagents"))?;
            // The agent's shell may have gone to another directory than the session's.
            let dir = env.os("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
            Ok(match (ended, dir) {
                (Ended::Session { path, id, .. }, cwd @ Some(_)) => Ended::Session { path, id, cwd },
                (ended, _) => ended,
            })
        },
        takes_argument: false,
        may_print: true,
        removes: false,
    },
    past: PastSource::Files(HOME, &["projects/*/*.jsonl"]),
    events: &[START, PROMPT, SUB_AGENT, ACT, STOP, SESSION_END, PRE_COMPACT],
    install: Install::Settings(HookSettings {
        switches: DISABLE_ALL,
        plugins: Some("enabledPlugins"),
        ..HookSettings::GROUPS
    }),
    next_step: None,
    recall: RecallSpec { form: RecallForm::HookOutput, resumes_whole: true, unheard: &[] },
    memory: Some(BuiltInMemory {
        home: HOME,
        files: &["projects/*/memory/*.md", "projects/*/memory/*/*.md"],
        project: MemoryProject::Named { is_shared: true },
        off: Some((
            Switch { file: "settings.json", key: &["autoMemoryEnabled"], off: false },
            Some("CLAUDE_CODE_DISABLE_AUTO_MEMORY"),
        )),
    }),
    preset: Some(Preset::new(
        "claude",
        "CLAUDE_CODE_MAX_RETRIES=0 claude -p --safe-mode --no-session-persistence --tools \"\"",
        1,
    )),
};

pub(super) const START: HookEvent = hook("SessionStart", HookMoment::Start, 5);
pub(super) const PROMPT: HookEvent = hook("UserPromptSubmit", HookMoment::Prompt, 5);
pub(super) const SUB_AGENT: HookEvent = hook("SubagentStart", HookMoment::SubAgent, 5);
const ACT: HookEvent = hook("PreToolUse", HookMoment::Act, 5);
pub(super) const STOP: HookEvent = hook("Stop", HookMoment::End, 10);
// Without a timeout it gets 1.5 s.
pub(super) const SESSION_END: HookEvent = hook("SessionEnd", HookMoment::End, 10);
pub(super) const PRE_COMPACT: HookEvent = understood("PreCompact", HookMoment::End);

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "Bash PowerShell"),
    (ToolKind::Running, "BashOutput KillBash KillShell Monitor"),
    (ToolKind::Read, "NotebookRead Read"),
    (ToolKind::Edit, "Edit MultiEdit NotebookEdit"),
    (ToolKind::Search, "Grep"),
    (ToolKind::Write, "Write"),
    (
        ToolKind::Own,
        "CronCreate CronDelete CronList EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree \
        Glob LS TaskCreate TaskGet TaskList TaskStop TaskUpdate TodoRead TodoWrite ToolSearch",
    ),
    (ToolKind::SubAgent, "Agent AgentOutputTool SendMessage Task TaskOutput"),
    (ToolKind::Question, "AskUserQuestion"),
];

/// Records that are not conversation, though some quote it.
const OTHER: &[&str] = &[
    "api-request", "api-request-blob", "api-request-shape", "atis-latch", "attachment", "cost-state",
    "file-history-snapshot", "last-prompt", "mode", "permission-mode", "queue-operation", "summary",
    "system", "tools-used",
];

/// What it puts into the session where its user stops it.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Where prompts come from that a person typed, while the agent waited or worked. Others are from `claude -p` and
/// programs, or were suggested by the model.
const TYPED: [&str; 2] = ["typed", "queued"];

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut session = SessionReader { withdrawn: Withdrawn::of(path, is_prompt), ..SessionReader::default() };
    each_line(path, "Claude Code", out, |record, _, out| session.take(record, out)).map(drop)
}

#[derive(Default)]
struct SessionReader {
    /// Hashes of the uuids so far: a record that is written twice counts once.
    seen: HashSet<u64>,
    hasher: RandomState,
    /// There was a record of the session itself, and not only of sub-agents.
    spoke: bool,
    withdrawn: Withdrawn,
    /// A command that the person ran waits for its output.
    command: Option<(String, String)>,
}

impl SessionReader {
    fn take(&mut self, record: &Object, out: &mut TurnSink) -> Taken {
        let kind = record.kind()?;
        let session_id = record.text("sessionId")?;
        if kind != "user" && kind != "assistant" {
            let known = OTHER.contains(&&*kind) && session_id.is_some() || kind == "file-history-snapshot";
            return if known { Ok(()) } else { unknown(kind) };
        }
        let (Some(message), Some(uuid)) = (record.object("message")?, record.text("uuid")?) else {
            return unknown(format!("{kind} without a message or uuid"));
        };
        // In a fork's copies: the session of the original.
        let original = record.text("requestSessionId")?;
        if original.is_some() && original != session_id {
            out.report.parent = original;
        }
        out.report.begins(session_id, record.text("cwd")?);
        if record.flag("isSidechain")? {
            // In the sub-agent's own file these are the conversation; elsewhere they are not the session's.
            if self.spoke || record.raw("agentId").is_none() {
                return Ok(());
            }
            out.report.is_sub_agent = true;
        } else {
            self.spoke = true;
            out.report.branch = record.text("gitBranch")?.or(out.report.branch.take());
        }
        if !self.seen.insert(self.hasher.hash_one(&uuid)) || self.withdrawn.has(&uuid) {
            return Ok(());
        }
        let Some(content) = message.raw("content") else {
            out.report.unreadable += 1;
            return unknown(format!("{kind} without content"));
        };
        out.at = record.time("timestamp");
        if kind == "user" {
            let text = content::text(content);
            if record.raw("promptSource").is_none() && record.raw("origin").is_none() {
                if let Some(command) =
                    between(&text, "bash-input").filter(|_| text.starts_with("<bash-input>"))
                {
                    self.command = Some((command.to_owned(), uuid));
                    return Ok(());
                }
                if let Some((command, uuid)) = self.command.take_if(|_| text.starts_with("<bash-stdout>")) {
                    let [said, failed] =
                        ["bash-stdout", "bash-stderr"].map(|tag| between(&text, tag).unwrap_or_default());
                    return Ok(out.person_ran(&command, &format!("{said}\n{failed}"), false, uuid)?);
                }
            }
            return user(record, uuid, content, out);
        }
        let is_synthetic = message.text("model")?.as_deref() == Some("<synthetic>");
        let is_programs = is_synthetic || record.flag("isApiErrorMessage")?;
        if is_programs { Ok(()) } else { assistant(&uuid, content, out) }
    }
}

fn user(record: &Object, uuid: String, content: &RawValue, out: &mut TurnSink) -> Taken {
    let origin = record.object("origin")?.map_or(Ok(None), |origin| origin.text("kind"))?;
    if origin.as_deref() == Some("task-notification") {
        return report(&content::text(content), &uuid, out);
    }
    let is_nobodys = record.flag("isMeta")?
        || record.flag("isCompactSummary")?
        || origin.as_ref().is_some_and(|origin| origin != "human");
    // Older versions name the origin alone, or nothing.
    let source = record.text("promptSource")?;
    let is_typed = source.map_or(origin.is_some(), |source| TYPED.contains(&&*source));
    let mut message = PromptMessage::default();
    out.each_part(content, "user part", |_, part, out| {
        match part {
            ContentPart::Result { key: Some(id), text, failed } => out.result(&id, preview(&text), failed)?,
            ContentPart::Text(_) | ContentPart::Image if is_nobodys => {}
            ContentPart::Text(text) if text.trim_start().starts_with(INTERRUPTED) => {}
            other => return message.add(other),
        }
        Ok(())
    })?;
    Ok(out.prompt(message, Some(is_typed), uuid)?)
}

/// What a sub-agent in the background has found out.
fn report(notice: &str, uuid: &str, out: &mut TurnSink) -> Taken {
    if let Some(report) = between(notice, "result") {
        let id = notice.split_once("<task-id>").and_then(|(_, rest)| rest.split_once("</task-id>"));
        let arguments = json!({"task_id": id.map(|(id, _)| id)}).to_string();
        out.call(uuid, "TaskOutput", &arguments, uuid.to_owned())?;
        out.result(uuid, report, false)?;
    }
    Ok(())
}

/// It begins a turn, and has no results of tools.
fn is_prompt(record: &Object) -> bool {
    let content = record.object("message").ok().flatten().and_then(|message| message.raw("content"));
    let is_result = content.is_none_or(|content| content.get().contains("\"tool_result\""));
    record.kind().is_ok_and(|kind| kind == "user")
        && !is_result
        && !record.is("isMeta")
        && !record.is("isCompactSummary")
}

fn assistant(uuid: &str, content: &RawValue, out: &mut TurnSink) -> Taken {
    out.each_part(content, "assistant part", |n, part, out| {
        let id = match &part {
            ContentPart::ToolUse(ToolUse { key: Some(key), .. }) => key.clone(),
            // A record usually has one part; further ones get ids of their own.
            _ if n == 0 => uuid.to_owned(),
            _ => format!("{uuid}/{n}"),
        };
        out.part(part, id)
    })
}

/// The session has only the beginning of a large result, and names the file with the rest. That file is not opened,
/// because its path comes from a transcript.
fn preview(text: &str) -> &str {
    let inner = text.trim().strip_prefix("<persisted-output>");
    inner.map_or(text, |inner| inner.strip_suffix("</persisted-output>").unwrap_or(inner).trim())
}
