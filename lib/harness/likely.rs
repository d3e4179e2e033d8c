//! Whose session a file is, for the message about one that was queued for another program.

use serde_json::Value;
use std::io::{Read, Seek};

/// How much of a file is looked at, in bytes.
const START: u64 = 256 << 10;

/// The harness that a file looks like, by its first records.
pub(super) fn harness(file: &mut (impl Read + Seek)) -> Option<&'static str> {
    file.rewind().ok()?;
    let mut bytes = Vec::new();
    file.take(START).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().find_map(|line| of_record(&serde_json::from_str(line).ok()?))
}

fn of_record(record: &Value) -> Option<&'static str> {
    let has = |key: &str| record.get(key).is_some();
    let message = record.get("message");
    let in_message = |key: &str| message.is_some_and(|message| message.get(key).is_some());
    let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
    if has("uuid") && has("sessionId") {
        return match (in_message("parts") || has("provenance"), in_message("content")) {
            (true, _) => Some("qwen-code"),
            (false, true) => Some("claude-code"),
            (false, false) => None,
        };
    }
    if has("payload") && ["session_meta", "response_item", "event_msg"].contains(&kind) {
        return Some("codex");
    }
    if has("sessionId") && has("projectHash") {
        return Some("gemini");
    }
    if has("data") && (kind.starts_with("session.") || kind.ends_with(".message")) {
        return Some("copilot");
    }
    if kind == "session" && has("cwd") && has("version") {
        return Some("pi");
    }
    if has("role") && in_message("content") {
        return Some("cursor");
    }
    (has("info") && has("messages")).then_some("opencode")
}
