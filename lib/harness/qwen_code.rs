//! Qwen Code: `~/.qwen/projects/<directory>/chats/<session id>.jsonl`.
//!
//! Records like Claude Code's, with messages like Gemini CLI's: `message.parts` of text, calls and their responses. What
//! is sent for a person has `provenance: "real_user"`, also under `-p` and from a command file; versions before 0.20 do
//! not say. What is typed in the terminal stands in a log. What hooks and `@file` add are further parts of the record. A file only grows, also when a session is resumed or compacted. Sub-agents have files of
//! their own.

use crate::base::error::Result;
use crate::harness::chain::Withdrawn;
use crate::harness::claude_code::{PRE_COMPACT, PROMPT, SESSION_END, START, STOP, SUB_AGENT};
use crate::harness::content::{ContentPart, Object, PromptMessage, Taken, unknown};
use crate::harness::context::{Above, ContextFiles, Imports, NamedFiles};
use crate::harness::files::{matching, sessions_in};
use crate::harness::out::TurnSink;
use crate::harness::payload::{is_below, transcript};
use crate::harness::source::each_line;
use crate::harness::spec::{
    BuiltInMemory, CaptureSpec, DISABLE_ALL, Format, Home, HookEvent, HookMoment, HookSettings, Install,
    MemoryProject, PastSource, RecallForm, RecallSpec, Spec, Switch, ToolKind, ToolTable, has, hook,
};
use serde_json::value::RawValue;
use std::path::Path;

/// Where it keeps what it writes itself.
const RUNTIME: Home = Home { variables: &[("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")], usual: ".qwen" };

/// It does not pass on what it is told before a call.
const ACT: HookEvent = hook("PostToolUse", HookMoment::Act, 5);

pub(super) static SPEC: Spec = Spec {
    name: "qwen-code",
    title: "Qwen Code",
    home: Home { variables: &[("QWEN_HOME", "")], usual: ".qwen" },
    reads: ContextFiles {
        own: &[&["QWEN.md"]],
        project: &[&["QWEN.md", "AGENTS.md"]],
        above: Above::BesideRepository,
        imports: Imports::InRepository,
        named: Some(NamedFiles { own: "settings.json", project: Some(".qwen/settings.json"), adds: false }),
        ..ContextFiles::AGENTS
    },
    marks: &["QWEN_CODE"],
    format: Format {
        read,
        is_record: |record| {
            let is_ours = has(&record["message"], &["parts"]) || has(record, &["provenance"]);
            has(record, &["uuid", "sessionId"]) && is_ours
        },
        tools: TOOLS,
        prompts: |_, env| RUNTIME.dir(env).map(|dir| matching(dir, "tmp/*/logs.json")).unwrap_or_default(),
        sub_agents: |session| {
            let project = session.parent().and_then(Path::parent).unwrap_or(session);
            sessions_in(&project.join("subagents").join(session.file_stem().unwrap_or_default()))
        },
        ..Format::ANY
    },
    method: "transcript",
    capture: CaptureSpec::Hook {
        session: |payload, _| transcript(payload, |path| is_below(path, 2, "subagents")),
        takes_argument: false,
        may_print: false,
        removes: false,
    },
    past: PastSource::Files(RUNTIME, &["projects/*/chats/*.jsonl"]),
    events: &[START, PROMPT, SUB_AGENT, ACT, STOP, SESSION_END, PRE_COMPACT],
    install: Install::Settings(HookSettings {
        has_comments: true,
        switches: DISABLE_ALL,
        ..HookSettings::GROUPS
    }),
    next_step: None,
    recall: RecallSpec { form: RecallForm::HookOutput, resumes_whole: false, unheard: &[] },
    memory: Some(BuiltInMemory {
        home: Home {
            variables: &[("QWEN_CODE_MEMORY_BASE_DIR", ""), ("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")],
            usual: ".qwen",
        },
        files: &["projects/*/memory/*.md", "projects/*/memory/*/*.md"],
        project: MemoryProject::Named { is_shared: false },
        off: Some((
            Switch { file: "settings.json", key: &["memory", "enableManagedAutoMemory"], off: false },
            None,
        )),
    }),
    preset: None,
};

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "run_shell_command"),
    (ToolKind::Read, "read_file read_many_files"),
    (ToolKind::Edit, "edit notebook_edit replace"),
    (ToolKind::Search, "grep_search search_file_content"),
    (ToolKind::Write, "write_file"),
    (ToolKind::Own, "enter_plan_mode exit_plan_mode glob list_directory save_memory task_stop todo_write"),
    (ToolKind::SubAgent, "agent send_message task"),
    (ToolKind::Question, "ask_user_question"),
];

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut spoke = false;
    let withdrawn = Withdrawn::of(path, |record| record.kind().is_ok_and(|kind| kind == "user"));
    each_line(path, "Qwen Code", out, |record, _, out| {
        let is_withdrawn = record.text("uuid")?.is_some_and(|uuid| withdrawn.has(&uuid));
        if is_withdrawn { Ok(()) } else { take(record, &mut spoke, out) }
    })
    .map(drop)
}

/// `spoke`: there was a record of the session itself, and not only of sub-agents.
fn take(record: &Object, spoke: &mut bool, out: &mut TurnSink) -> Taken {
    let kind = record.kind()?;
    let (Some(uuid), Some(session_id)) = (record.text("uuid")?, record.text("sessionId")?) else {
        return unknown(kind);
    };
    if kind == "system" {
        return Ok(());
    }
    if !["user", "assistant", "tool_result"].contains(&&*kind) {
        return unknown(kind);
    }
    let message = record.object("message")?;
    let Some(parts) = message.as_ref().and_then(|message| message.raw("parts")) else {
        out.report.unreadable += 1;
        return unknown(format!("{kind} without parts"));
    };
    out.report.begins(Some(session_id), record.text("cwd")?);
    if record.flag("isSidechain")? {
        // In the sub-agent's own file these are the conversation; elsewhere they are not the session's.
        if *spoke {
            return Ok(());
        }
        out.report.is_sub_agent = true;
    } else {
        *spoke = true;
    }
    out.at = record.time("timestamp");
    match &*kind {
        "user" => user(record, uuid, parts, out),
        "assistant" => {
            out.each_part(parts, "assistant part", |n, part, out| out.part(part, format!("{uuid}/{n}")))
        }
        _ => out.each_part(parts, "part", |_, part, out| match part {
            ContentPart::Result { .. } => out.part(part, String::new()),
            _ => Ok(()),
        }),
    }
}

fn user(record: &Object, uuid: String, parts: &RawValue, out: &mut TurnSink) -> Taken {
    let is_other = record.text("provenance")?.is_some_and(|from| from != "real_user");
    if is_other || record.raw("subtype").is_some() {
        return Ok(());
    }
    // The words that a hook added. Older versions add them without a tag.
    let beside = record.object("systemPayload").ok().flatten();
    let hook = beside.and_then(|beside| beside.text("hookContext").ok()?);
    let hook = hook.as_deref().map(str::trim).filter(|hook| !hook.is_empty());
    let mut message = PromptMessage::default();
    out.each_part(parts, "user part", |_, part, _| match part {
        ContentPart::Text(text) if hook.is_some_and(|hook| text.trim_start().starts_with(hook)) => Ok(()),
        part => message.add(part),
    })?;
    Ok(out.prompt(message.without_files(), None, uuid)?)
}
