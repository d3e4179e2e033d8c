//! One message of a Gemini CLI session: thoughts, text and tool calls.

use crate::base::error::Result;
use crate::harness::content::{self, ContentPart, FunctionResponse, known_parts};
use crate::harness::out::TurnSink;
use crate::harness::parts::{answer, without_files, without_hooks};
use crate::harness::tool::IMAGE;
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(default)]
    id: String,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    timestamp: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    thoughts: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Thought {
    #[serde(default)]
    subject: String,
    #[serde(default)]
    description: String,
}

/// Passes on the turns of a message, given as JSON.
pub(super) fn turns(json: &str, out: &mut TurnSink) -> Result<()> {
    let Ok(message) = serde_json::from_str::<Message>(json) else {
        out.report.unknown("message in another shape");
        return Ok(());
    };
    let at: Option<Timestamp> = message.timestamp.as_deref().and_then(|at| at.parse().ok());
    let id = message.id;
    let user = message.kind == "user";
    if let Some(thoughts) = message.thoughts {
        let thoughts: Vec<Thought> = serde_json::from_str(thoughts.get()).unwrap_or_default();
        for (n, Thought { subject, description }) in thoughts.into_iter().enumerate() {
            let text = [subject, description].join("\n");
            out.turn(Role::Reasoning, text.trim(), format!("{id}/thought{n}"), at)?;
        }
    }
    let mut texts = Vec::new();
    let mut thoughts = Vec::new();
    let mut calls = Vec::new();
    let mut has_response = false;
    let mut images = 0;
    for (_, part) in known_parts(message.content, "message part", &mut out.report) {
        match part {
            ContentPart { function_response: Some(FunctionResponse { id, response }), .. } => {
                has_response = true;
                // Most repeat the result in the call; in a history that was loaded there is no other.
                if let Some(key) = id.filter(|key| out.waits_for(key)) {
                    let (text, failed) = answer(response);
                    out.result(&key, &text, failed, at)?;
                }
            }
            ContentPart { function_call: Some(call), .. } => calls.push(call),
            ContentPart { text: Some(text), thought: Some(true), .. } => thoughts.push(text),
            ContentPart { text: Some(text), .. }
                if user && text.trim_start().starts_with("<session_context>") => {}
            ContentPart { text: Some(text), .. } => texts.push(text),
            ContentPart { inline_data: Some(_), .. } => images += 1,
            _ => out.report.unknown("message part of another kind"),
        }
    }
    out.turn(Role::Reasoning, &thoughts.join("\n"), format!("{id}/thoughts"), at)?;
    // Beside a response they are a tool's.
    if !has_response {
        texts.extend((0..images).map(|_| IMAGE.to_owned()));
    }
    let text = texts.join("\n");
    if user {
        let text = without_hooks(&text);
        let (typed, files) = without_files(&text);
        out.attached(files, &id, at)?;
        out.turn(Role::User, &typed, id.clone(), at)?;
    } else {
        out.turn(Role::Assistant, &text, id.clone(), at)?;
    }
    let described = message.tool_calls.unwrap_or_default();
    if !described.is_empty() {
        calls.clear();
        for raw in described {
            match serde_json::from_str(raw.get()) {
                Ok(call) => calls.push(call),
                Err(_) => out.report.unknown("call in another shape"),
            }
        }
    }
    for (n, call) in calls.into_iter().enumerate() {
        let key = call.id.unwrap_or_else(|| format!("{id}/call{n}"));
        let arguments = call.args.map_or("{}", RawValue::get);
        out.call(&key, call.name.as_deref().unwrap_or("tool"), arguments, key.clone(), at)?;
        if let Some(result) = call.result {
            let mut text = String::new();
            let mut failed = call.status.as_deref() == Some("error");
            for part in content::parts(result).into_iter().flatten() {
                if let Some(response) = part.function_response {
                    let (said, error) = answer(response.response);
                    text.push_str(&said);
                    failed |= error;
                } else if let Some(said) = part.text {
                    text.push_str(&said);
                }
            }
            out.result(&key, &text, failed, at)?;
        }
    }
    Ok(())
}
