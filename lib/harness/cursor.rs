//! Cursor: `~/.cursor/projects/<directory>/agent-transcripts/<id>/<id>.jsonl`.
//!
//! Known from its documentation alone: `{role, message: {content: [parts]}}` per line, without ids and times.
//! The parts are those of Anthropic's API. What a person typed is in `<user_query>`; the editor adds context around
//! it.

use crate::base::error::Result;
use crate::harness::content::{self, ContentPart, known_parts};
use crate::harness::out::TurnSink;
use crate::harness::source::{self, Line, RecordStatus, each_line, parse};
use crate::harness::tool::{IMAGE, ToolArguments};
use crate::harness::turn::{Ids, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::Path;

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

pub(super) fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = source::open(path, "a Cursor transcript")?;
    let mut ids = Ids::default();
    each_line(path, &mut reader, "Cursor", out, |line, out| record(line, &mut ids, out))
}

fn record(line: Line, ids: &mut Ids, out: &mut TurnSink) -> Result<RecordStatus> {
    let record: Record = match parse(line.text) {
        Ok(record) => record,
        Err(seen) => return Ok(seen),
    };
    let Some(content) = record.message.and_then(|message| message.content) else {
        return Ok(RecordStatus::Unknown(format!("record of role {}", record.role)));
    };
    let role = match &*record.role {
        "user" => Role::User,
        // Tool results may have a role of their own.
        "assistant" | "tool" => Role::Assistant,
        "system" => return Ok(RecordStatus::Known),
        role => return Ok(RecordStatus::Unknown(format!("record of role {role}"))),
    };
    let mut typed = Vec::new();
    for (_, part) in known_parts::<ContentPart>(Some(content), "part", &mut out.report) {
        match (&*part.kind, part.text, part.thinking) {
            ("text", Some(text), _) if role == Role::User => typed.push(query(&text)),
            ("text", Some(text), _) => out.turn(role, &text, ids.next(role, &text), None)?,
            ("thinking", _, Some(text)) => {
                out.turn(Role::Reasoning, &text, ids.next(Role::Reasoning, &text), None)?;
            }
            ("image", ..) if role == Role::User => typed.push(IMAGE.to_owned()),
            ("tool_use", ..) => {
                let input = part.input.map_or("{}", RawValue::get);
                let name = part.name.as_deref().unwrap_or("tool");
                let id = ids.next(Role::Tool, &format!("{name} {input}"));
                // Without an id, its result cannot be recognised.
                let key = part.id.unwrap_or_else(|| id.clone());
                out.call(&key, name, ToolArguments::Text(input), id, None)?;
            }
            ("tool_result", ..) => {
                let text = part.content.map(content::text).unwrap_or_default();
                let key = part.tool_use_id.or_else(|| out.oldest_call()).unwrap_or_default();
                out.result(&key, &text, part.is_error == Some(true), None)?;
            }
            ("redacted_thinking", ..) => {}
            (kind, ..) => out.report.unknown(&format!("part {kind}")),
        }
    }
    let text = typed.join("\n");
    if !text.is_empty() {
        out.turn(Role::User, &text, ids.next(Role::User, &text), None)?;
    }
    Ok(RecordStatus::Known)
}

/// What was typed: the contents of all `<user_query>` elements, or the whole text if there are none.
fn query(text: &str) -> String {
    let mut typed = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("<user_query>") {
        let (inside, next) = after.split_once("</user_query>").unwrap_or((after, ""));
        typed.push(inside.trim());
        rest = next;
    }
    if typed.is_empty() { text.to_owned() } else { typed.join("\n") }
}
