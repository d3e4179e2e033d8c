//! What a sub-agent is to do that starts now. Its program's hook does not say it, but the session has the call already.

use crate::base::file;
use crate::harness::spec::{Format, ToolKind};
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Only the end of a session is read, in bytes.
const END: u64 = 512 << 10;

/// The prompts of the sub-agents that the last message of the session calls: of several, nobody knows which one starts.
pub fn tasks(format: &Format, session: &Path) -> Option<String> {
    let (mut file, length) = file::open_regular(session).ok()?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(length.saturating_sub(END))).ok()?;
    file.take(END).read_to_end(&mut end).ok()?;
    let mut tasks = Vec::new();
    for line in String::from_utf8_lossy(&end).lines().rev() {
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        match record["type"].as_str() {
            Some("user" | "tool_result") => break,
            Some("assistant") => collect(&record["message"], format, &mut tasks),
            _ => {}
        }
    }
    (!tasks.is_empty()).then(|| tasks.join("\n"))
}

fn collect(value: &Value, format: &Format, tasks: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            let is_call = object
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| format.tool(name) == ToolKind::SubAgent);
            let arguments = object.get("input").or(object.get("args")).filter(|_| is_call);
            tasks.extend(arguments.and_then(|arguments| Some(arguments["prompt"].as_str()?.to_owned())));
            object.values().for_each(|value| collect(value, format, tasks));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, format, tasks)),
        _ => {}
    }
}
