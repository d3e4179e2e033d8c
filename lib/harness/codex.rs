//! Codex CLI: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl`.
//!
//! The `response_item` records are what was sent to the model and what it answered; `event_msg` repeats them for the
//! screen. Messages of role `user` are often the program's own: parts that a person typed have the kind `user.text`.
//! A resumed session continues in the same file, also after a compaction; a fork has a file of its own with only what
//! is new; a sub-agent has its own file, with its parent's `session_id`.

use crate::base::error::Result;
use crate::harness::content::{self, ContentPart, known_parts};
use crate::harness::out::TurnSink;
use crate::harness::source::{self, Line, RecordStatus, each_line, parse};
use crate::harness::tool::{IMAGE, ToolArguments};
use crate::harness::turn::{Ids, Role};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::Path;

/// Records that are not conversation, or repeat it.
const OTHER: &[&str] = &["compacted", "event_msg", "token_usage_record", "turn_context", "world_state"];

/// The start of user texts that the program wrote, for versions that do not record who wrote them.
const NOT_TYPED: &[&str] = &[
    "# AGENTS.md instructions", "<environment_context>", "<permissions instructions>", "<skill>",
    "<subagent_notification>", "<turn_aborted>", "<user_instructions>",
];

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    timestamp: Option<String>,
    metadata: Option<Metadata>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata {
    compaction_output: Option<bool>,
}

#[derive(Deserialize)]
struct SessionMeta<'a> {
    id: Option<String>,
    cwd: Option<String>,
    forked_from_id: Option<String>,
    parent_thread_id: Option<String>,
    thread_source: Option<String>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ResponseItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    id: Option<String>,
    role: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    passed: Option<Passed>,
    #[serde(borrow)]
    summary: Option<&'a RawValue>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    input: Option<String>,
    #[serde(borrow)]
    action: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Passed {
    content_item_kinds: Option<Vec<String>>,
}

pub(super) fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = source::open(path, "a Codex session")?;
    let mut ids = Ids::default();
    each_line(path, &mut reader, "Codex", out, |line, out| record(line, &mut ids, out))
}

fn record(line: Line, ids: &mut Ids, out: &mut TurnSink) -> Result<RecordStatus> {
    let record: Record = match parse(line.text) {
        Ok(record) => record,
        Err(seen) => return Ok(seen),
    };
    let Some(payload) = record.payload else { return Ok(RecordStatus::Unknown(record.kind.into_owned())) };
    match &*record.kind {
        "session_meta" => meta(payload, out),
        "response_item" => {
            let at = record.timestamp.as_deref().and_then(|at| at.parse().ok());
            let summary = record.metadata.is_some_and(|metadata| metadata.compaction_output == Some(true));
            let Ok(item) = serde_json::from_str(payload.get()) else {
                return Ok(RecordStatus::Unknown("response_item in another shape".to_owned()));
            };
            if !summary {
                self::item(item, at, ids, out)?;
            }
        }
        kind if OTHER.contains(&kind) => {}
        kind => return Ok(RecordStatus::Unknown(kind.to_owned())),
    }
    Ok(RecordStatus::Known)
}

/// The file's own description. A later one is a copy from another session.
fn meta(payload: &RawValue, out: &mut TurnSink) {
    if out.report.session_id.is_some() {
        return;
    }
    let Ok(meta) = serde_json::from_str::<SessionMeta>(payload.get()) else {
        out.report.unknown("session_meta in another shape");
        return;
    };
    let spawned = meta.source.is_some_and(|source| source.get().contains("\"subagent\""));
    out.report.is_sub_agent = spawned || meta.thread_source.as_deref() == Some("subagent");
    out.report.session_id = meta.id;
    out.report.parent = meta.forked_from_id.or(meta.parent_thread_id);
    out.report.cwd = meta.cwd;
}

fn item(item: ResponseItem, at: Option<Timestamp>, ids: &mut Ids, out: &mut TurnSink) -> Result<()> {
    let key = || item.call_id.clone().or_else(|| item.id.clone()).unwrap_or_default();
    match &*item.kind {
        "message" => message(&item, at, ids, out),
        "reasoning" => {
            let summary = item.summary.map(|summary| joined(summary, out)).unwrap_or_default();
            let text = match item.content {
                Some(content) if summary.is_empty() => joined(content, out),
                _ => summary,
            };
            let id = item.id.unwrap_or_else(|| ids.next(Role::Reasoning, &text));
            out.turn(Role::Reasoning, &text, id, at)
        }
        "function_call" | "custom_tool_call" | "local_shell_call" | "web_search_call" => {
            let name = item.name.as_deref().unwrap_or(&item.kind);
            let arguments = match (&item.arguments, &item.input, item.action) {
                (Some(text), ..) | (None, Some(text), _) => ToolArguments::Text(text),
                (None, None, Some(action)) => ToolArguments::Json(action),
                (None, None, None) => ToolArguments::Text("{}"),
            };
            out.call(&key(), name, arguments, key(), at)?;
            // The server does the search: its result is in the answer, no record follows.
            if item.kind == "web_search_call" { out.result(&key(), "", false, at) } else { Ok(()) }
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let text = item.output.map(content::text).unwrap_or_default();
            out.result(&key(), &text, false, at)
        }
        "compaction" | "compaction_summary" => Ok(()),
        kind => {
            out.report.unknown(&format!("response_item {kind}"));
            Ok(())
        }
    }
}

fn message(item: &ResponseItem, at: Option<Timestamp>, ids: &mut Ids, out: &mut TurnSink) -> Result<()> {
    let role = match item.role.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("developer" | "system") => return Ok(()),
        role => {
            out.report.unknown(&format!("message of role {}", role.unwrap_or("(none)")));
            return Ok(());
        }
    };
    let kinds = item.passed.as_ref().and_then(|passed| passed.content_item_kinds.as_deref());
    let mut texts = Vec::new();
    for (n, part) in known_parts::<ContentPart>(item.content, "message part", &mut out.report) {
        let typed = match (role, kinds.and_then(|kinds| kinds.get(n))) {
            (Role::User, Some(kind)) => kind.starts_with("user."),
            (Role::User, None) => {
                let text = part.text.as_deref().unwrap_or("").trim_start();
                !NOT_TYPED.iter().any(|start| text.starts_with(start))
            }
            _ => true,
        };
        match (&*part.kind, part.text) {
            _ if !typed => {}
            ("input_text" | "output_text" | "text", Some(text)) if is_image_tag(&text) => {}
            ("input_text" | "output_text" | "text", Some(text)) => texts.push(text),
            ("input_image", _) => texts.push(IMAGE.to_owned()),
            (kind, _) => out.report.unknown(&format!("message part {kind}")),
        }
    }
    let text = texts.join("\n");
    let id = item.id.clone().unwrap_or_else(|| ids.next(role, &text));
    out.turn(role, &text, id, at)
}

/// The texts of all parts.
fn joined(content: &RawValue, out: &mut TurnSink) -> String {
    let mut texts = Vec::new();
    for part in content::parts::<ContentPart>(content) {
        match part.and_then(|part| part.text) {
            Some(text) => texts.push(text),
            None => out.report.unknown("reasoning part in another shape"),
        }
    }
    texts.join("\n")
}

/// Codex puts parts with a tag of its own before and after an image.
fn is_image_tag(text: &str) -> bool {
    let text = text.trim();
    text == "</image>"
        || text.strip_prefix("<image").is_some_and(|rest| {
            (rest == ">" || rest.starts_with(" name=")) && rest.ends_with('>') && !rest.contains('\n')
        })
}
