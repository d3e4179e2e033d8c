//! Anthropic's Messages API: `POST /v1/messages`.

use crate::provider::error::{CallError, CallResult};
use crate::provider::message::{
    Attachment, ChatTurn, Dialect, MAX_TOKENS, PDF, Repeats, Reply, Request, StopReason, TokenUsage, Tool,
    ToolRequest, ToolResult, Unsupported,
};
use crate::provider::wire::{
    self, StreamPiece, answer_text, arguments, beside, count, message, outer, part, raw, read, system,
    text_at, with, wrong_content,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub(super) const PATH: &str = "/v1/messages";
pub(super) const VERSION: &str = "2023-06-01";

pub fn body(request: &Request, dialect: &Dialect) -> Vec<u8> {
    // Marked only if it is probably sent again: a cache write costs money, and without a read saves none.
    let looped = !request.tools.is_empty() || request.repeats != Repeats::Nothing;
    let schema = request.schema.as_ref().filter(|_| !dialect.contains(&Unsupported::Schema));
    let mut extra = request.extra.clone();
    if let Some(schema) = schema {
        // It may have an effort, from [params].
        let config = extra.entry("output_config").or_insert_with(|| json!({}));
        if let Some(config) = config.as_object_mut() {
            config.insert("format".to_owned(), json!({ "type": "json_schema", "schema": schema.value() }));
        }
    }
    let system = match &*system(request, schema.is_some()) {
        "" => Value::Null,
        text if looped => {
            let (stable, volatile) = text.split_at(request.system.len() - request.volatile);
            let mut blocks = vec![json!({ "type": "text", "text": stable, "cache_control": cached() })];
            if !volatile.is_empty() {
                blocks.push(json!({ "type": "text", "text": volatile }));
            }
            Value::Array(blocks)
        }
        text => json!(text),
    };
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut() {
        last["cache_control"] = cached();
    }
    let parameters = json!({
        "model": request.model,
        "max_tokens": request.max_tokens.unwrap_or(MAX_TOKENS),
        "temperature": request.temperature.filter(|_| !dialect.contains(&Unsupported::Temperature)),
        "system": system,
        "tools": Some(tools).filter(|tools| !tools.is_empty()),
        "stream": request.is_streamed.then_some(true),
        // The tools themselves must stay: the turns so far have calls of them.
        "tool_choice": request.is_closing.then(|| json!({ "type": "none" })),
    });
    wire::body(messages(request), with(extra, parameters))
}

fn cached() -> Value {
    json!({ "type": "ephemeral" })
}

fn tool(tool: &Tool) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema })
}

/// The last message is marked, too, if the next request continues from it.
fn messages(request: &Request) -> Vec<Box<RawValue>> {
    let last = request.turns.len().saturating_sub(1);
    let message = |(n, turn): (usize, &ChatTurn)| match turn {
        ChatTurn::User(text) if n == last && request.repeats == Repeats::Everything => {
            message("user", [json!({ "type": "text", "text": text, "cache_control": cached() })])
        }
        ChatTurn::User(text) => message("user", text),
        ChatTurn::Attached(text, files) => message("user", with_files(text, files)),
        ChatTurn::Said(text) => message("assistant", text),
        ChatTurn::Assistant(raw) => message("assistant", raw),
        ChatTurn::ToolResults(results) => {
            let mut blocks: Vec<Value> = results.iter().map(result).collect();
            if let Some(block) = blocks.last_mut().filter(|_| n == last) {
                block["cache_control"] = cached();
            }
            message("user", blocks)
        }
    };
    request.turns.iter().enumerate().map(message).collect()
}

fn with_files(text: &str, files: &[Attachment]) -> Vec<Value> {
    let part = |file: &Attachment| {
        let source = json!({ "type": "base64", "media_type": file.media, "data": file.data });
        match file.media.as_ref() {
            PDF => json!({ "type": "document", "title": file.name, "source": source }),
            _ => json!({ "type": "image", "source": source }),
        }
    };
    files.iter().map(part).chain([json!({ "type": "text", "text": text })]).collect()
}

fn result(result: &ToolResult) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": result.id,
        "content": result.content,
        "is_error": result.is_error,
    })
}

pub fn reply(bytes: &[u8], request: &Request) -> CallResult {
    let answer = outer(bytes)?;
    let nothing = || CallError::server("response contains no content");
    let content = part(&answer, "content").ok_or_else(nothing)?;
    let [model, stop_reason, usage] = ["model", "stop_reason", "usage"].map(|name| beside(&answer, name));
    let mut blocks = match read(content.get().as_bytes())? {
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(blocks) if blocks.is_empty() && !stop_reason.is_string() => return Err(nothing()),
        Value::Array(blocks) => blocks,
        _ => return Err(nothing()),
    };
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in &blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("text") => text += &answer_text(block.get("text"))?,
            None => return Err(wrong_content(block)),
            Some("tool_use") => calls.push(ToolRequest {
                id: text_at(block, "id"),
                name: text_at(block, "name"),
                arguments: arguments(block.get("input")),
            }),
            // Thinking is not part of the answer; it goes back with the raw turn, as do other blocks.
            _ => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        // Text in blocks of a type that nobody knows is an answer, where there is no other.
        text = blocks.iter().map(|block| text_at(block, "text")).collect();
    }
    let stop_reason = stop_reason.as_str().unwrap_or_default();
    let stop = match stop_reason {
        "tool_use" => StopReason::ToolUse,
        // A paused turn continues when it is sent again; we use no tools that pause.
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => StopReason::Cut,
        "refusal" => StopReason::Refused,
        _ => StopReason::Complete,
    };
    let count = |pointer| count(&usage, pointer);
    let (cache_read, cache_write) =
        (count("/cache_read_input_tokens"), count("/cache_creation_input_tokens"));
    let tokens = TokenUsage {
        // The API counts cached tokens apart.
        input: count("/input_tokens").saturating_add(cache_read).saturating_add(cache_write),
        output: count("/output_tokens"),
        cache_read,
        cache_write,
    };
    let raw = if read_inputs(&mut blocks) { raw(&blocks) } else { content.to_owned() };
    let model = model.as_str().unwrap_or(&request.model);
    Ok(Reply { calls, raw, tokens, ..Reply::new(text, stop, stop_reason, model) }.judged())
}

/// The input of a call that came in pieces is the text of its JSON. What goes back must be an object, also for a call
/// that is not made. Returns whether there was one.
fn read_inputs(blocks: &mut [Value]) -> bool {
    let mut found = false;
    let is_text = |input: &Value| input.is_string() || input.is_null();
    for block in blocks.iter_mut().filter(|block| block.get("input").is_some_and(is_text)) {
        let input: Map<_, _> =
            block["input"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        block["input"] = Value::Object(input);
        found = true;
    }
    found
}

/// Adds an event of a stream to the reply so far, which has the form of one that comes whole.
pub(super) fn add(whole: &mut Map<String, Value>, mut event: Map<String, Value>) -> CallResult<StreamPiece> {
    let out_of_order = || CallError::server("the blocks of the stream are out of order");
    let at = event.get("index").and_then(Value::as_u64).unwrap_or(0) as usize;
    let kind = event.remove("type");
    let blocks = whole.entry("content").or_insert_with(|| json!([]));
    let Value::Array(blocks) = blocks else { return Err(out_of_order()) };
    let mut piece = StreamPiece::default();
    match kind.as_ref().and_then(Value::as_str).unwrap_or_default() {
        "message_start" => {
            if let Some(Value::Object(mut message)) = event.remove("message") {
                let of_use = ["model", "usage"].map(|key| message.remove_entry(key));
                whole.extend(of_use.into_iter().flatten());
            }
        }
        "content_block_start" => {
            let block = event.remove("content_block").unwrap_or_default();
            if at != blocks.len() || !block.is_object() {
                return Err(out_of_order());
            }
            piece.text = text_at(&block, "text");
            blocks.push(block);
        }
        "content_block_delta" => {
            let Some(Value::Object(block)) = blocks.get_mut(at) else { return Err(out_of_order()) };
            piece.text = add_delta(block, event.remove("delta").unwrap_or_default())?;
        }
        "message_delta" => {
            if let Some(Value::Object(mut delta)) = event.remove("delta")
                && let Some(reason @ Value::String(_)) = delta.remove("stop_reason")
            {
                whole.insert("stop_reason".to_owned(), reason);
                piece.is_last = true;
            }
            if let Some(Value::Object(usage)) = event.remove("usage") {
                match whole.get_mut("usage") {
                    Some(Value::Object(known)) => known.extend(usage),
                    _ => drop(whole.insert("usage".to_owned(), Value::Object(usage))),
                }
            }
        }
        "message_stop" => piece.ends_stream = true,
        _ => {}
    }
    Ok(piece)
}

/// Adds a piece to a block. Returns the text in it that belongs to the answer.
fn add_delta(block: &mut Map<String, Value>, delta: Value) -> CallResult<String> {
    let (key, into) = match delta.get("type").and_then(Value::as_str) {
        Some("text_delta") => ("text", "text"),
        Some("thinking_delta") => ("thinking", "thinking"),
        Some("signature_delta") => ("signature", "signature"),
        Some("input_json_delta") => ("partial_json", "input"),
        Some("citations_delta") => {
            if let (Some(citation), Value::Array(all)) =
                (delta.get("citation"), block.entry("citations").or_insert_with(|| json!([])))
            {
                all.push(citation.clone());
            }
            return Ok(String::new());
        }
        _ => return Ok(String::new()),
    };
    let Some(piece) = delta.get(key).and_then(Value::as_str) else { return Err(wrong_content(&delta)) };
    match block.get_mut(into) {
        Some(Value::String(text)) => text.push_str(piece),
        // A call's input starts as an empty object, and its JSON comes in pieces.
        _ => drop(block.insert(into.to_owned(), json!(piece))),
    }
    Ok(if into == "text" { piece.to_owned() } else { String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::examples::{plain, with_tools};

    fn sent(request: &Request) -> Value {
        serde_json::from_slice(&body(request, &Dialect::default())).unwrap()
    }

    fn got(text: &str) -> Reply {
        reply(text.as_bytes(), &plain()).unwrap()
    }

    #[test]
    fn the_least_request_has_only_what_the_api_demands() {
        let least =
            json!({ "model": "m-1", "max_tokens": 4096, "messages": [{ "role": "user", "content": "hi" }] });
        assert_eq!(sent(&plain()), least);
    }

    #[test]
    fn a_system_prompt_without_tools_is_plain_text() {
        assert_eq!(sent(&Request { system: "s".into(), ..plain() })["system"], "s");
    }

    #[test]
    fn a_tool_turn_has_results_in_one_message_and_cache_marks() {
        let assistant = r#"[ {"type":"thinking","signature":"x=="}, {"input" : {},"type":"tool_use"} ]"#;
        let request = with_tools(assistant);
        let bytes = body(&request, &Dialect::default());
        assert!(String::from_utf8(bytes).unwrap().contains(assistant));
        let sent = sent(&request);
        assert_eq!(
            sent["messages"][2],
            json!({ "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "1", "is_error": false },
                { "type": "tool_result", "tool_use_id": "b", "content": "broken", "is_error": true, "cache_control": cached() },
            ]})
        );
        let cached = json!({ "type": "ephemeral" });
        assert_eq!(sent["system"], json!([{ "type": "text", "text": "be brief", "cache_control": cached }]));
        assert_eq!(
            sent["tools"],
            json!([{
                "name": "call_agent",
                "description": "calls",
                "input_schema": {
                    "type": "object",
                    "properties": {
                        "agent": { "type": "string", "description": "the agent" },
                        "context": { "type": "string", "description": "the context" },
                    },
                    "required": ["agent"],
                },
                "cache_control": cached,
            }])
        );
        assert_eq!((&sent["temperature"], &sent["max_tokens"]), (&json!(0.0), &json!(0)));
    }

    #[test]
    fn a_model_without_temperature_is_not_sent_one() {
        let dialect = Dialect::from([Unsupported::Temperature]);
        let bytes = body(&Request { temperature: Some(0.3), ..plain() }, &dialect);
        assert!(!String::from_utf8(bytes).unwrap().contains("temperature"));
    }

    #[test]
    fn text_is_joined_thinking_left_out_and_the_raw_turn_kept() {
        let content =
            r#"[{"type":"thinking","thinking":"hm"}, {"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
        let usage = r#"{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":7,"cache_creation_input_tokens":8}"#;
        let reply = got(&format!(
            r#"{{"id":"x","model":"m-1-2","content":{content},"stop_reason":"end_turn","usage":{usage}}}"#
        ));
        assert_eq!(
            (reply.text.as_str(), reply.model.as_str(), reply.stop),
            ("ab", "m-1-2", StopReason::Complete)
        );
        assert_eq!(reply.raw.get(), content);
        assert_eq!(reply.tokens, TokenUsage { input: 20, output: 6, cache_read: 7, cache_write: 8 });
        assert_eq!(reply.flaw(), None);
    }

    #[test]
    fn calls_are_found_whatever_the_stop_reason_says() {
        for reason in ["tool_use", "end_turn"] {
            let reply = got(&format!(
                r#"{{"content":[{{"type":"text","text":"t"}},
                    {{"type":"tool_use","id":"a","name":"x","input":{{"n":1}}}},
                    {{"type":"tool_use","id":"b","name":"x","input":[]}}],"stop_reason":"{reason}"}}"#
            ));
            assert_eq!(reply.stop, StopReason::ToolUse);
            assert_eq!(reply.calls[0].arguments, Ok(json!({ "n": 1 }).as_object().unwrap().clone()));
            assert!(reply.calls[1].arguments.is_err());
        }
        assert_eq!(
            got(r#"{"content":[{"type":"text","text":"t"}],"stop_reason":"tool_use"}"#).stop,
            StopReason::Complete
        );
    }

    #[test]
    fn stop_reasons_that_spoil_the_answer_are_warned_of() {
        for (reason, stop, warning) in [
            ("max_tokens", StopReason::Cut, "the answer was cut off (stop reason: max_tokens)"),
            ("pause_turn", StopReason::Cut, "the answer was cut off (stop reason: pause_turn)"),
            (
                "model_context_window_exceeded",
                StopReason::Cut,
                "the answer was cut off (stop reason: model_context_window_exceeded)",
            ),
            ("refusal", StopReason::Refused, "the model refused to answer (stop reason: refusal)"),
            ("end_turn", StopReason::Complete, "the answer is empty (stop reason: end_turn)"),
        ] {
            let reply = got(&format!(r#"{{"content":[],"stop_reason":"{reason}"}}"#));
            assert_eq!((reply.stop, reply.flaw().as_deref()), (stop, Some(warning)));
        }
    }

    #[test]
    fn a_refusal_calls_nothing() {
        let calls = r#"[{"type":"tool_use","id":"a","name":"x","input":{}}]"#;
        let reply = got(&format!(r#"{{"content":{calls},"stop_reason":"refusal"}}"#));
        assert_eq!((reply.stop, reply.calls), (StopReason::Refused, vec![]));
    }

    #[test]
    fn no_content_is_an_error_and_odd_counts_are_not() {
        for text in ["{}", r#"{"content":null}"#, r#"{"content":[]}"#, r#"{"content":7}"#] {
            let failure = reply(text.as_bytes(), &plain()).unwrap_err();
            assert_eq!(failure.to_string(), "server: response contains no content", "{text}");
        }
        let failure = reply(b"[]", &plain()).unwrap_err();
        assert_eq!(failure.to_string(), "server: the reply is not a JSON object");
        for content in [r#"["a"]"#, r#"[{"type":"text","text":7}]"#, r#"[{"text":"a"}]"#] {
            let failure = reply(format!(r#"{{"content":{content}}}"#).as_bytes(), &plain()).unwrap_err();
            assert!(failure.to_string().starts_with("server: the reply's content is "), "{failure}");
        }
        let reply = got(
            r#"{"content":"x","stop_reason":"end_turn","usage":{"input_tokens":-1,"output_tokens":1.5}}"#,
        );
        assert_eq!((reply.text.as_str(), reply.tokens), ("x", TokenUsage::default()));
    }
}
