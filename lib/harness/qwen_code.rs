//! Qwen Code: `~/.qwen/projects/<directory>/chats/<session id>.jsonl`.
//!
//! Records like Claude Code's, with messages like Gemini CLI's: `message.parts` of text, calls and their responses. What
//! a person typed has `provenance: "real_user"`; versions before 0.20 do not say. What hooks and `@file` add are further
//! parts of the same record. A file only grows, also when a session is resumed or compacted. Sub-agents have files of
//! their own.

use crate::base::error::Result;
use crate::harness::claude_code::EVENTS;
use crate::harness::content::{ContentPart, known_parts};
use crate::harness::files::sessions_in;
use crate::harness::out::TurnSink;
use crate::harness::parts::{answer, without_files};
use crate::harness::payload::{is_below, transcript};
use crate::harness::source::{Line, Taken, each_line, parse, unknown};
use crate::harness::spec::ToolKind::{self, Edit, Own, Question, Read, Search, Shell, SubAgent, Write};
use crate::harness::spec::{Answer, Capture, Format, Home, Install, Past, Recall, Settings, Spec, has};
use crate::harness::tool::IMAGE;
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::Path;

pub(super) static SPEC: Spec = Spec {
    name: "qwen-code",
    title: "Qwen Code",
    home: Home { variables: &[("QWEN_HOME", "")], usual: ".qwen" },
    own_files: &["QWEN.md"],
    project_files: &["QWEN.md", "AGENTS.md"],
    marks: &["QWEN_CODE"],
    format: Format {
        read,
        is_record: |record| {
            let is_ours = has(&record["message"], &["parts"]) || has(record, &["provenance"]);
            has(record, &["uuid", "sessionId"]) && is_ours
        },
        tools: TOOLS,
        sub_agents: |session| {
            let project = session.parent().and_then(Path::parent).unwrap_or(session);
            sessions_in(&project.join("subagents").join(session.file_stem().unwrap_or_default()))
        },
        ..Format::ANY
    },
    method: "transcript",
    capture: Capture::Hook {
        session: |payload, _| transcript(payload, |path| is_below(path, 2, "subagents")),
        takes_argument: false,
        may_print: false,
    },
    past: Past::Files(
        Home { variables: &[("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")], usual: ".qwen" },
        &["projects/*/chats/*.jsonl"],
    ),
    events: EVENTS,
    install: Install::Settings(Settings { has_comments: true, ..Settings::GROUPS }),
    next_step: None,
    recall: Recall { answer: Answer::HookOutput, resumes_whole: false, unheard: &[] },
    preset: None,
};

const TOOLS: &[(ToolKind, &[&str])] = &[
    (Shell, &["run_shell_command"]),
    (Read, &["read_file", "read_many_files"]),
    (Edit, &["edit", "notebook_edit", "replace"]),
    (Search, &["grep_search", "search_file_content"]),
    (Write, &["write_file"]),
    (
        Own,
        &[
            "enter_plan_mode", "exit_plan_mode", "glob", "list_directory", "save_memory", "task_stop",
            "todo_write",
        ],
    ),
    (SubAgent, &["agent", "send_message", "task"]),
    (Question, &["ask_user_question"]),
];

/// The start of parts of a user's record that nobody typed.
const NOT_TYPED: &[&str] =
    &["<hook_context>", "<qwen:", "<session_context>", "<system-reminder>", "<task-notification>"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    uuid: Option<String>,
    session_id: Option<String>,
    timestamp: Option<String>,
    provenance: Option<String>,
    subtype: Option<String>,
    cwd: Option<String>,
    is_sidechain: Option<bool>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    system_payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

/// What the program keeps beside a user's message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Beside {
    /// The words that a hook added. Older versions add them without a tag.
    hook_context: Option<String>,
}

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut spoke = false;
    each_line(path, "Qwen Code", out, |line, out| record(line, &mut spoke, out)).map(drop)
}

/// `spoke`: there was a record of the session itself, and not only of sub-agents.
fn record(line: Line, spoke: &mut bool, out: &mut TurnSink) -> Taken {
    let record: Record = parse(line.text)?;
    let (Some(uuid), Some(session_id)) = (&record.uuid, &record.session_id) else {
        return unknown(record.kind);
    };
    if record.kind == "system" {
        return Ok(());
    }
    if !["user", "assistant", "tool_result"].contains(&&*record.kind) {
        return unknown(record.kind);
    }
    let parts = record.message.map(|raw| serde_json::from_str::<Message>(raw.get()));
    let Some(Ok(Message { parts: Some(parts) })) = parts else {
        out.report.unreadable += 1;
        return unknown(format!("{} without parts", record.kind));
    };
    let report = &mut out.report;
    report.session_id.get_or_insert_with(|| session_id.clone());
    if report.cwd.is_none() {
        report.cwd.clone_from(&record.cwd);
    }
    if record.is_sidechain == Some(true) {
        // In the sub-agent's own file these are the conversation; elsewhere they are not the session's.
        if *spoke {
            return Ok(());
        }
        report.is_sub_agent = true;
    } else {
        *spoke = true;
    }
    let at = record.timestamp.as_deref().and_then(|at| at.parse().ok());
    match &*record.kind {
        "user" => user(&record, uuid, parts, at, out)?,
        "assistant" => assistant(uuid, parts, at, out)?,
        _ => results(parts, at, out)?,
    }
    Ok(())
}

fn user(
    record: &Record,
    uuid: &str,
    parts: &RawValue,
    at: Option<Timestamp>,
    out: &mut TurnSink,
) -> Result<()> {
    if record.provenance.as_deref().is_some_and(|from| from != "real_user") || record.subtype.is_some() {
        return Ok(());
    }
    let beside = record.system_payload.and_then(|raw| serde_json::from_str::<Beside>(raw.get()).ok());
    let hook = beside.and_then(|beside| beside.hook_context);
    let mut texts = Vec::new();
    for (_, part) in known_parts(Some(parts), "part", &mut out.report) {
        match part {
            ContentPart { text: Some(text), .. } => {
                let is_hooks = hook.as_deref().is_some_and(|hook| text.trim() == hook.trim());
                let start = text.trim_start();
                if !is_hooks && !NOT_TYPED.iter().any(|tag| start.starts_with(tag)) {
                    texts.push(text);
                }
            }
            ContentPart { inline_data: Some(_), .. } => texts.push(IMAGE.to_owned()),
            _ => out.report.unknown("user part of another kind"),
        }
    }
    let text = texts.join("\n");
    let (typed, files) = without_files(&text);
    out.attached(files, uuid, at)?;
    out.turn(Role::User, &typed, uuid.to_owned(), at)
}

fn assistant(uuid: &str, parts: &RawValue, at: Option<Timestamp>, out: &mut TurnSink) -> Result<()> {
    let known = known_parts(Some(parts), "part", &mut out.report);
    for (n, (_, part)) in known.into_iter().enumerate() {
        let id = format!("{uuid}/{n}");
        match part {
            ContentPart { function_call: Some(call), .. } => {
                let key = call.id.unwrap_or_else(|| id.clone());
                let input = call.args.map_or("{}", RawValue::get);
                out.call(&key, call.name.as_deref().unwrap_or("tool"), input, id, at)?;
            }
            ContentPart { text: Some(text), thought: Some(true), .. } => {
                out.turn(Role::Reasoning, &text, id, at)?
            }
            ContentPart { text: Some(text), .. } => out.turn(Role::Assistant, &text, id, at)?,
            ContentPart { inline_data: Some(_), .. } => out.turn(Role::Assistant, IMAGE, id, at)?,
            _ => out.report.unknown("assistant part of another kind"),
        }
    }
    Ok(())
}

fn results(parts: &RawValue, at: Option<Timestamp>, out: &mut TurnSink) -> Result<()> {
    for (_, part) in known_parts(Some(parts), "part", &mut out.report) {
        if let Some(response) = part.function_response {
            let (text, failed) = answer(response.response);
            out.result(&response.id.unwrap_or_default(), &text, failed, at)?;
        }
    }
    Ok(())
}
