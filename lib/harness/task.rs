//! What a sub-agent is to do that starts now. Its program's hook does not say it, but the session has the call already.

use crate::base::file;
use crate::harness::spec::{Format, ToolKind};
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Only the end of a session is read, in bytes.
const END: u64 = 512 << 10;

/// The prompts of the sub-agents that the last message of the session calls: of several, nobody knows which one starts. A call
/// that does not wait for its sub-agent is answered at once, with the id `agent`.
pub fn tasks(format: &Format, session: &Path, agent: &str) -> Option<String> {
    let (mut file, length) = file::open_regular(session).ok()?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(END))).ok()?;
    file.take(END).read_to_end(&mut end).ok()?;
    let (mut tasks, mut is_over) = (Vec::new(), false);
    for line in String::from_utf8_lossy(&end).lines().rev() {
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        match record["type"].as_str() {
            Some("user" | "tool_result") => match started(&record) {
                Some(prompt) if line.contains(agent) => return Some(prompt.to_owned()),
                Some(_) => is_over = true,
                None => break,
            },
            Some("assistant") if !is_over => {
                let message = &record["message"];
                let parts = message.get("content").or(message.get("parts")).and_then(Value::as_array);
                let called = parts.into_iter().flatten().filter_map(|part| called(part, format));
                tasks.extend(called.map(str::to_owned));
            }
            _ => {}
        }
    }
    (!tasks.is_empty()).then(|| tasks.join("\n"))
}

/// What a sub-agent was called for, in the answer to the call.
fn started(record: &Value) -> Option<&str> {
    let places = ["/toolUseResult/prompt", "/toolCallResult/resultDisplay/taskPrompt"];
    places.iter().find_map(|place| record.pointer(place)?.as_str())
}

/// What a part of a message calls a sub-agent for.
fn called<'a>(part: &'a Value, format: &Format) -> Option<&'a str> {
    let call = part.get("functionCall").unwrap_or(part);
    let is_of_agent = format.tool(call["name"].as_str()?) == ToolKind::SubAgent;
    call.get("input").or(call.get("args")).filter(|_| is_of_agent)?["prompt"].as_str()
}
