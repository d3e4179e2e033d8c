//! Anthropic's Messages API: `POST /v1/messages`.

use crate::provider::error::CallError;
use crate::provider::message::{
    Attachment, ChatTurn, Dialect, Media, Repeats, Reply, Request, Stop, TokenUsage, Tool, ToolCall,
    ToolResult,
};
use crate::provider::wire::{
    answer_text, arguments, count, needs_echo, outer, read, system, text_at, wrong_content,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

pub(super) const PATH: &str = "/v1/messages";
pub(super) const VERSION: &str = "2023-06-01";
/// The API requires a number.
pub(super) const MAX_TOKENS: u64 = 4096;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Value>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Raw(&'a RawValue),
    Results(Vec<Block<'a>>),
    Parts(Vec<Value>),
}

#[derive(Serialize)]
struct Block<'a> {
    r#type: &'static str,
    tool_use_id: &'a str,
    content: &'a str,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

pub(crate) fn body(request: &Request, dialect: Dialect) -> Vec<u8> {
    // Marked only if it is probably sent again: a cache write costs money, and without a read saves none.
    let looped = !request.tools.is_empty() || request.repeats != Repeats::Nothing;
    let schema = request.schema.as_ref().filter(|_| !dialect.no_schema);
    let mut extra = request.extra.clone();
    if let Some(schema) = schema {
        // It may have an effort, from [params].
        let config = extra.entry("output_config").or_insert_with(|| json!({}));
        if let Some(config) = config.as_object_mut() {
            config.insert("format".to_owned(), json!({ "type": "json_schema", "schema": schema.value() }));
        }
    }
    let system = system(request, schema.is_some());
    let system = match &*system {
        "" => None,
        text if looped => {
            let (stable, volatile) = text.split_at(request.system.len() - request.volatile);
            let mut blocks = vec![json!({ "type": "text", "text": stable, "cache_control": cached() })];
            if !volatile.is_empty() {
                blocks.push(json!({ "type": "text", "text": volatile }));
            }
            Some(Value::Array(blocks))
        }
        text => Some(json!(text)),
    };
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    if let Some(last) = tools.last_mut() {
        last["cache_control"] = cached();
    }
    let body = Body {
        model: &request.model,
        max_tokens: request.max_tokens.unwrap_or(MAX_TOKENS),
        temperature: request.temperature.filter(|_| !dialect.no_temperature),
        system,
        messages: messages(request),
        tools,
        stream: request.is_streamed.then_some(true),
        extra: &extra,
        // The tools themselves must stay: the turns so far have calls of them.
        tool_choice: request.is_closing.then(|| json!({ "type": "none" })),
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

fn cached() -> Value {
    json!({ "type": "ephemeral" })
}

fn tool(tool: &Tool) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema })
}

/// The last message is marked, too, if the next request continues from it.
fn messages(request: &Request) -> Vec<Message<'_>> {
    let mut messages: Vec<Message> = request.turns.iter().map(message).collect();
    let Some(Message { role: "user", content }) = messages.last_mut() else { return messages };
    match content {
        Content::Results(results) => {
            if let Some(last) = results.last_mut() {
                last.cache_control = Some(cached());
            }
        }
        Content::Text(text) if request.repeats == Repeats::Everything => {
            let block = json!({ "type": "text", "text": text, "cache_control": cached() });
            *content = Content::Parts(vec![block]);
        }
        _ => {}
    }
    messages
}

fn message(turn: &ChatTurn) -> Message<'_> {
    match turn {
        ChatTurn::User(text) => Message { role: "user", content: Content::Text(text) },
        ChatTurn::Attached(text, files) => Message { role: "user", content: with_files(text, files) },
        ChatTurn::Said(text) => Message { role: "assistant", content: Content::Text(text) },
        ChatTurn::Assistant(raw) => Message { role: "assistant", content: Content::Raw(raw) },
        ChatTurn::ToolResults(results) => {
            Message { role: "user", content: Content::Results(results.iter().map(result).collect()) }
        }
    }
}

fn with_files<'a>(text: &str, files: &[Attachment]) -> Content<'a> {
    let part = |file: &Attachment| {
        let source = json!({ "type": "base64", "media_type": file.media.name(), "data": file.data });
        match file.media {
            Media::Pdf => json!({ "type": "document", "title": file.name, "source": source }),
            _ => json!({ "type": "image", "source": source }),
        }
    };
    let mut parts: Vec<Value> = files.iter().map(part).collect();
    parts.push(json!({ "type": "text", "text": text }));
    Content::Parts(parts)
}

fn result(result: &ToolResult) -> Block<'_> {
    Block {
        r#type: "tool_result",
        tool_use_id: &result.id,
        content: &result.content,
        is_error: result.is_error,
        cache_control: None,
    }
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    stop_reason: Option<String>,
    model: Option<String>,
    #[serde(default)]
    usage: Value,
}

pub(crate) fn reply(bytes: &[u8], request: &Request) -> Result<Reply, CallError> {
    let answer: Answer = outer(bytes)?;
    let nothing = || CallError::server("response contains no content");
    let raw = answer.content.ok_or_else(nothing)?;
    let content = read(raw.get().as_bytes())?;
    let rest = Rest { stop_reason: answer.stop_reason, model: answer.model, usage: answer.usage };
    from_content(content, raw.to_owned(), rest, request)
}

/// What a reply has besides its content.
struct Rest {
    stop_reason: Option<String>,
    model: Option<String>,
    usage: Value,
}

/// The reply from the blocks of a stream. The input of a call is the JSON text that came in pieces.
pub(super) fn streamed(
    mut blocks: Vec<Value>,
    head: &Map<String, Value>,
    request: &Request,
) -> Result<Reply, CallError> {
    let mut echoed = Vec::new();
    for block in &mut blocks {
        if let Some(Value::String(text)) = block.get("input") {
            let input: Result<Value, _> = serde_json::from_str(text);
            // What goes back must be an object, also for a call that is not made.
            let whole = input.as_ref().ok().filter(|input| input.is_object()).cloned();
            let mut copy = block.clone();
            copy["input"] = whole.clone().unwrap_or_else(|| json!({}));
            echoed.push(copy);
            if let Some(whole) = whole {
                block["input"] = whole;
            }
        } else if needs_echo(request) {
            echoed.push(block.clone());
        }
    }
    let raw = to_raw_value(&echoed).unwrap_or_else(|_| RawValue::NULL.to_owned());
    let text = |name| head.get(name).and_then(Value::as_str).map(str::to_owned);
    let usage = head.get("usage").cloned().unwrap_or_default();
    let rest = Rest { stop_reason: text("stop_reason"), model: text("model"), usage };
    from_content(Value::Array(blocks), raw, rest, request)
}

fn from_content(
    content: Value,
    raw: Box<RawValue>,
    rest: Rest,
    request: &Request,
) -> Result<Reply, CallError> {
    let nothing = || CallError::server("response contains no content");
    let (mut text, mut calls) = (String::new(), Vec::new());
    match content {
        Value::String(whole) => text = whole,
        Value::Array(blocks) if blocks.is_empty() && rest.stop_reason.is_none() => return Err(nothing()),
        Value::Array(blocks) => {
            for block in &blocks {
                match block.get("type").and_then(Value::as_str) {
                    Some("text") => text += &answer_text(block.get("text"))?,
                    None => return Err(wrong_content(block)),
                    Some("tool_use") => calls.push(ToolCall {
                        id: text_at(block, "id"),
                        name: text_at(block, "name"),
                        arguments: arguments(block.get("input")),
                    }),
                    // Thinking is not part of the answer; it goes back with the raw turn, as do other blocks.
                    _ => {}
                }
            }
        }
        _ => return Err(nothing()),
    }
    let stop_reason = rest.stop_reason.unwrap_or_default();
    let stop = match stop_reason.as_str() {
        "tool_use" => Stop::ToolUse,
        // A paused turn continues when it is sent again; we use no tools that pause.
        "max_tokens" | "model_context_window_exceeded" | "pause_turn" => Stop::Cut,
        "refusal" => Stop::Refused,
        _ => Stop::Complete,
    };
    let cache_read = count(&rest.usage, "/cache_read_input_tokens");
    let cache_write = count(&rest.usage, "/cache_creation_input_tokens");
    let tokens = TokenUsage {
        // The API counts cached tokens apart.
        input: count(&rest.usage, "/input_tokens").saturating_add(cache_read).saturating_add(cache_write),
        output: count(&rest.usage, "/output_tokens"),
        cache_read,
        cache_write,
    };
    let model = rest.model.unwrap_or_else(|| request.model.clone());
    let warnings = Vec::new();
    let was_streamed = false;
    Ok(Reply { text, calls, was_streamed, raw, stop, stop_reason, model, tokens, warnings, retries: 0 }
        .judged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::message::CallArguments;
    use crate::provider::wire::examples::{plain, with_tools};

    fn sent(request: &Request) -> Value {
        serde_json::from_slice(&body(request, Dialect::default())).unwrap()
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
        let bytes = body(&request, Dialect::default());
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
        let dialect = Dialect { no_temperature: true, ..Dialect::default() };
        let bytes = body(&Request { temperature: Some(0.3), ..plain() }, dialect);
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
        assert_eq!((reply.text.as_str(), reply.model.as_str(), reply.stop), ("ab", "m-1-2", Stop::Complete));
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
            assert_eq!(reply.stop, Stop::ToolUse);
            assert_eq!(
                reply.calls[0].arguments,
                CallArguments::Object(json!({ "n": 1 }).as_object().unwrap().clone())
            );
            assert!(matches!(reply.calls[1].arguments, CallArguments::Malformed(_)));
        }
        assert_eq!(
            got(r#"{"content":[{"type":"text","text":"t"}],"stop_reason":"tool_use"}"#).stop,
            Stop::Complete
        );
    }

    #[test]
    fn stop_reasons_that_spoil_the_answer_are_warned_of() {
        for (reason, stop, warning) in [
            ("max_tokens", Stop::Cut, "the answer was cut off (stop reason: max_tokens)"),
            ("pause_turn", Stop::Cut, "the answer was cut off (stop reason: pause_turn)"),
            (
                "model_context_window_exceeded",
                Stop::Cut,
                "the answer was cut off (stop reason: model_context_window_exceeded)",
            ),
            ("refusal", Stop::Refused, "the model refused to answer (stop reason: refusal)"),
            ("end_turn", Stop::Complete, "the answer is empty (stop reason: end_turn)"),
        ] {
            let reply = got(&format!(r#"{{"content":[],"stop_reason":"{reason}"}}"#));
            assert_eq!((reply.stop, reply.flaw().as_deref()), (stop, Some(warning)));
        }
    }

    #[test]
    fn a_refusal_calls_nothing() {
        let calls = r#"[{"type":"tool_use","id":"a","name":"x","input":{}}]"#;
        let reply = got(&format!(r#"{{"content":{calls},"stop_reason":"refusal"}}"#));
        assert_eq!((reply.stop, reply.calls), (Stop::Refused, vec![]));
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
