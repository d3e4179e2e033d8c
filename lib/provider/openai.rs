//! OpenAI's Chat Completions API, `POST /v1/chat/completions`, as OpenAI and many others serve it.

use crate::provider::error::{CallError, CallResult};
use crate::provider::message::{
    Attachment, ChatTurn, Dialect, PDF, Reply, Request, StopReason, TokenUsage, Tool, ToolResult, Unsupported,
};
use crate::provider::wire::{
    self, RawMembers, StreamPiece, answer_text, beside, count, message_in, messages, outer, part, raw, read,
    system, text_at, tool_calls, tool_request, with, with_role, wrong_content, wrong_message,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

const PATH: &str = "/v1/chat/completions";

/// The path after that of a base URL. One that names a version already, like Gemini's `/v1beta/openai`, needs no other.
pub(super) fn path(base: &str) -> &'static str {
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && rest.chars().all(|c| c.is_ascii_alphanumeric())
        })
    };
    if base.split('/').any(is_version) { PATH.strip_prefix("/v1").unwrap_or(PATH) } else { PATH }
}

pub fn body(request: &Request, dialect: &Dialect) -> Vec<u8> {
    let accepts = |what| !dialect.contains(&what);
    let schema = request.schema.as_ref().filter(|_| accepts(Unsupported::Schema));
    let format = schema.map(|schema| {
        let schema = schema.value();
        let format = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
        json!({ "type": "json_schema", "json_schema": format })
    });
    let is_renamed = !accepts(Unsupported::MaxTokens);
    let is_set = request.extra.contains_key("max_completion_tokens");
    let has_options = request.is_streamed && accepts(Unsupported::StreamOptions);
    let tools: Vec<Value> = request.tools.iter().map(tool).collect();
    let parameters = json!({
        "model": request.model,
        "temperature": request.temperature.filter(|_| accepts(Unsupported::Temperature)),
        "max_tokens": request.max_tokens.filter(|_| !is_renamed),
        "max_completion_tokens": request.max_tokens.filter(|_| is_renamed && !is_set),
        "response_format": format,
        "tools": Some(tools).filter(|tools| !tools.is_empty()),
        "stream": request.is_streamed.then_some(true),
        "stream_options": has_options.then(|| json!({ "include_usage": true })),
        "tool_choice": request.is_closing.then_some("none"),
    });
    let messages = messages(request, &system(request, schema.is_some()), result, with_files);
    wire::body(messages, with(request.extra.clone(), parameters))
}

/// Makes a conversation such that another service takes it.
pub fn make_portable(request: &mut Request) {
    request.turns.iter_mut().for_each(|turn| {
        if let ChatTurn::Assistant(raw) = turn {
            *raw = portable(raw);
        }
    });
}

/// An assistant's turn for another service, without what only the first one knows, such as its thinking.
pub fn portable(turn: &RawValue) -> Box<RawValue> {
    let mut turn: Map<String, Value> = serde_json::from_str(turn.get()).unwrap_or_default();
    turn.retain(|key, _| matches!(key.as_str(), "role" | "content" | "tool_calls"));
    raw(&turn)
}

fn result(result: &ToolResult) -> Value {
    json!({ "role": "tool", "tool_call_id": result.id, "content": result.content })
}

/// The files first: models read the question better after what it is about.
fn with_files(text: &str, files: &[Attachment]) -> Value {
    let part = |file: &Attachment| match file.media.as_ref() {
        PDF => json!({ "type": "file", "file": { "filename": file.name, "file_data": file.url() } }),
        _ => json!({ "type": "image_url", "image_url": { "url": file.url() } }),
    };
    let text = json!({ "type": "text", "text": text });
    json!({ "role": "user", "content": files.iter().map(part).chain([text]).collect::<Value>() })
}

/// The API enforces a schema only if each object lists its keys: all are required, and there are no others.
fn is_strict(schema: &Value) -> bool {
    let Value::Object(rules) = schema else { return !schema.is_boolean() };
    let below = |name: &str| match rules.get(name) {
        Some(Value::Array(all)) => all.iter().all(is_strict),
        Some(Value::Object(all)) if matches!(name, "properties" | "$defs" | "definitions") => {
            all.values().all(is_strict)
        }
        Some(one) => is_strict(one),
        None => true,
    };
    let is_object = rules.get("type").is_some_and(|of| *of == "object") || rules.contains_key("properties");
    let is_closed = || {
        let names = rules.get("properties").and_then(Value::as_object);
        let required = rules.get("required").and_then(Value::as_array);
        rules.get("additionalProperties") == Some(&Value::Bool(false))
            && names.is_some_and(|names| {
                names.keys().all(|name| required.is_some_and(|all| all.iter().any(|one| one == name)))
            })
    };
    // Rules on which the API's own rejects a strict schema.
    let unsupported =
        ["allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "dependentRequired"];
    (!is_object || is_closed())
        && !unsupported.iter().any(|name| rules.contains_key(*name))
        && ["properties", "items", "anyOf", "$defs", "definitions"].into_iter().all(below)
}

/// Ollama has the same form.
pub(super) fn tool(tool: &Tool) -> Value {
    let function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.schema });
    json!({ "type": "function", "function": function })
}

pub fn reply(bytes: &[u8], request: &Request) -> CallResult {
    let answer = outer(bytes)?;
    let choices =
        part(&answer, "choices").map(|all| read::<Vec<RawMembers>>(all.get().as_bytes())).transpose()?;
    let choice = choices.into_iter().flatten().next();
    let choice = choice.ok_or_else(|| CallError::server("response contains no choices"))?;
    // OpenRouter's, if the service behind it failed.
    let error = beside(&choice, "error");
    if !error.is_null() {
        return Err(CallError::in_stream(&json!({ "error": error }), false));
    }
    let nothing = || CallError::server("response contains no content");
    let sent = part(&choice, "message").ok_or_else(nothing)?;
    let mut message = message_in(sent)?;
    let is_changed = name_calls(&mut message, request) | with_role(&mut message);
    let raw = if is_changed { raw(&message) } else { sent.to_owned() };
    let (mut text, mut refusal) = content(message.get("content"))?;
    refusal += message.get("refusal").and_then(Value::as_str).unwrap_or_default();
    let calls: Vec<_> =
        tool_calls(&message)?.iter().map(|call| tool_request(call, text_at(call, "id"))).collect();
    let stop_reason = beside(&choice, "finish_reason");
    let stop_reason = stop_reason.as_str().unwrap_or_default();
    if stop_reason == "error" {
        return Err(CallError::server("the service ended its answer with an error"));
    }
    if text.is_empty() && refusal.is_empty() && calls.is_empty() && stop_reason.is_empty() {
        return Err(nothing());
    }
    let stop = match stop_reason {
        _ if !refusal.is_empty() => StopReason::Refused,
        // Gemini's goes on with the reason.
        reason if reason.starts_with("content_filter") => StopReason::Refused,
        "length" => StopReason::Cut,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        _ => StopReason::Complete,
    };
    if text.is_empty() {
        text = refusal;
    }
    let [model, usage] = ["model", "usage"].map(|name| beside(&answer, name));
    let count = |pointer| count(&usage, pointer);
    let tokens = TokenUsage {
        input: count("/prompt_tokens"),
        output: count("/completion_tokens"),
        cache_read: count("/prompt_tokens_details/cached_tokens"),
        // Few services count it.
        cache_write: count("/prompt_tokens_details/cache_write_tokens"),
    };
    let model = model.as_str().unwrap_or(&request.model);
    Ok(Reply { calls, raw, tokens, ..Reply::new(text, stop, stop_reason, model) }.judged())
}

/// Gives an id to every call that has none, as some of Gemini's do: results are told apart by it. Returns whether
/// there was one.
fn name_calls(message: &mut Value, request: &Request) -> bool {
    let before = request.results();
    let Some(Value::Array(calls)) = message.get_mut("tool_calls") else { return false };
    let mut found = false;
    for (n, call) in calls.iter_mut().enumerate() {
        if let Value::Object(call) = call
            && call.get("id").and_then(Value::as_str).is_none_or(str::is_empty)
        {
            call.insert("id".to_owned(), json!(format!("call_{}", before + n + 1)));
            found = true;
        }
    }
    found
}

/// A message's text and refusal. Its content may be null, a text, or a list of parts.
fn content(content: Option<&Value>) -> CallResult<(String, String)> {
    let Some(Value::Array(parts)) = content else { return Ok((answer_text(content)?, String::new())) };
    let (mut text, mut refusal) = (String::new(), String::new());
    for part in parts {
        match part.get("type").and_then(Value::as_str) {
            Some("text" | "output_text") => text += &answer_text(part.get("text"))?,
            Some("refusal") => refusal += &text_at(part, "refusal"),
            Some(_) => {}
            None => return Err(wrong_content(part)),
        }
    }
    Ok((text, refusal))
}

/// A key of our own in the reply so far.
const HAS_DELTA: &str = "has_delta";

/// Adds an event of a stream to the reply so far.
pub(super) fn add(whole: &mut Map<String, Value>, mut event: Map<String, Value>) -> CallResult<StreamPiece> {
    for key in ["model", "usage"] {
        whole.extend(event.remove_entry(key).filter(|(_, value)| !value.is_null()));
    }
    let mut choice = match event.remove("choices") {
        None | Some(Value::Null) => return Ok(StreamPiece::default()),
        // The first answer, if `n` asks for several.
        Some(Value::Array(choices)) => {
            match choices.into_iter().find(|choice| count(choice, "/index") == 0) {
                None => return Ok(StreamPiece::default()),
                Some(Value::Object(choice)) => choice,
                Some(other) => return Err(wrong_message(&other)),
            }
        }
        Some(other) => return Err(wrong_message(&other)),
    };
    if let Some(error) = choice.remove("error").filter(|error| !error.is_null()) {
        return Err(CallError::in_stream(&json!({ "error": error }), false));
    }
    let mut piece = StreamPiece::default();
    if let Some(reason @ Value::String(_)) = choice.remove("finish_reason") {
        whole.insert("finish_reason".to_owned(), reason);
        piece.is_last = true;
    }
    // Some servers call it `message`; others send the whole message once more after the deltas.
    let delta = choice.remove("delta").filter(|delta| !delta.is_null());
    if delta.is_some() {
        whole.insert(HAS_DELTA.to_owned(), Value::Bool(true));
    }
    let has_delta = whole.contains_key(HAS_DELTA);
    match delta.or_else(|| choice.remove("message").filter(|_| !has_delta)) {
        None | Some(Value::Null) => {}
        Some(Value::Object(mut delta)) => {
            let (text, mut refusal) = content(delta.get("content"))?;
            refusal += delta.get("refusal").and_then(Value::as_str).unwrap_or_default();
            piece.text = text.clone() + &refusal;
            // Parts become text, so that they and texts add up.
            if delta.get("content").is_some_and(Value::is_array) {
                delta.insert("content".to_owned(), Value::String(text));
                if !refusal.is_empty() {
                    delta.insert("refusal".to_owned(), Value::String(refusal));
                }
            }
            if let Value::Object(message) = whole.entry("message").or_insert_with(|| json!({})) {
                merge(message, delta);
            }
        }
        Some(other) => return Err(wrong_content(&other)),
    }
    Ok(piece)
}

/// The pieces of a stream in the form of a reply that comes whole.
pub(super) fn whole(mut pieces: Map<String, Value>) -> Value {
    let mut message = pieces.remove("message").unwrap_or_else(|| json!({}));
    for call in message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(call) = call {
            call.remove("index");
            call.entry("type").or_insert_with(|| json!("function"));
        }
    }
    if let Value::Object(message) = &mut message {
        message.entry("role").or_insert_with(|| json!("assistant"));
    }
    let choice = json!({ "message": message, "finish_reason": pieces.remove("finish_reason") });
    pieces.insert("choices".to_owned(), json!([choice]));
    Value::Object(pieces)
}

/// Adds the pieces of `delta` to `whole`: texts grow, except names, and items of lists are found by their index.
pub(super) fn merge(whole: &mut Map<String, Value>, delta: Map<String, Value>) {
    for (key, piece) in delta {
        match (whole.get_mut(&key), piece) {
            (_, Value::Null) => {
                whole.entry(key).or_insert(Value::Null);
            }
            (Some(Value::String(text)), Value::String(more)) => match key.as_str() {
                // Some servers repeat them with each piece.
                "role" | "id" | "type" | "name" | "format" if more.is_empty() => {}
                "role" | "id" | "type" | "name" | "format" => *text = more,
                _ => text.push_str(&more),
            },
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            (Some(Value::Array(items)), Value::Array(more)) => {
                more.into_iter().for_each(|item| add_item(items, item))
            }
            (None, Value::Array(more)) => {
                let mut items = Vec::new();
                more.into_iter().for_each(|item| add_item(&mut items, item));
                whole.insert(key, Value::Array(items));
            }
            (_, piece) => drop(whole.insert(key, piece)),
        }
    }
}

/// Adds an item, or a piece of one.
fn add_item(items: &mut Vec<Value>, item: Value) {
    let index = item.get("index").and_then(Value::as_u64);
    let has_index = |known: &&mut Value| known.get("index").and_then(Value::as_u64) == index;
    let known = match index {
        Some(_) => items.iter_mut().rev().find(has_index),
        None if item.get("type").is_none_or(|of| *of == "function") => items.last_mut(),
        None => None,
    };
    match (known.filter(|known| !begins_a_call(&item, known)), item) {
        (Some(Value::Object(known)), Value::Object(item)) => merge(known, item),
        (_, item) => items.push(item),
    }
}

/// Whether `item` is another tool call than `known`. Gemini's parallel calls all have the same index, or none.
fn begins_a_call(item: &Value, known: &Value) -> bool {
    let [item, known] = [item, known].map(|call| {
        let text = |at: &str| call.pointer(at).and_then(Value::as_str).filter(|text| !text.is_empty());
        [text("/id"), text("/function/name"), text("/function/arguments")]
    });
    match (item, known) {
        ([Some(id), ..], [Some(of_known), ..]) => id != of_known,
        // Nothing can follow whole arguments.
        ([_, Some(_), Some(_)], [.., Some(all)]) => serde_json::from_str::<Map<String, Value>>(all).is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::examples::{plain, with_tools};

    fn sent(request: &Request, dialect: &Dialect) -> Value {
        serde_json::from_slice(&body(request, dialect)).unwrap()
    }

    /// The reply to one choice with this message.
    fn got(message: &str, finish_reason: &str) -> Reply {
        let choice = format!(r#"{{"message":{message},"finish_reason":{finish_reason}}}"#);
        reply(format!(r#"{{"choices":[{choice}]}}"#).as_bytes(), &plain()).unwrap()
    }

    #[test]
    fn the_least_request_is_a_model_and_a_message() {
        let least = json!({ "model": "m-1", "messages": [{ "role": "user", "content": "hi" }] });
        assert_eq!(sent(&plain(), &Dialect::default()), least);
    }

    #[test]
    fn a_tool_turn_has_one_message_for_each_result() {
        let assistant = r#"{ "role":"assistant","content":null, "tool_calls":[{"id" : "a"}] }"#;
        let request = with_tools(assistant);
        assert!(String::from_utf8(body(&request, &Dialect::default())).unwrap().contains(assistant));
        let sent = sent(&request, &Dialect::default());
        assert_eq!(sent["messages"][0], json!({ "role": "system", "content": "be brief" }));
        assert_eq!(sent["messages"][3], json!({ "role": "tool", "tool_call_id": "a", "content": "1" }));
        assert_eq!(sent["messages"][4], json!({ "role": "tool", "tool_call_id": "b", "content": "broken" }));
        let function = &sent["tools"][0]["function"];
        assert_eq!(
            (&sent["tools"][0]["type"], &function["name"]),
            (&json!("function"), &json!("call_agent"))
        );
        assert_eq!(function["parameters"]["required"], json!(["agent"]));
        assert_eq!((&sent["temperature"], &sent["max_tokens"]), (&json!(0.0), &json!(0)));
    }

    #[test]
    fn a_dialect_renames_and_leaves_out() {
        let request = Request { temperature: Some(0.3), max_tokens: Some(9), ..plain() };
        let sent = sent(&request, &Dialect::from([Unsupported::Temperature, Unsupported::MaxTokens]));
        assert_eq!(sent["max_completion_tokens"], 9);
        assert!(sent.get("max_tokens").is_none() && sent.get("temperature").is_none());
    }

    #[test]
    fn content_may_be_text_parts_or_null() {
        assert_eq!(got(r#"{"content":"a"}"#, r#""stop""#).text, "a");
        let parts = r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#;
        assert_eq!(got(parts, r#""stop""#).text, "ab");
        let empty = got(r#"{"content":null}"#, r#""stop""#);
        assert_eq!((empty.stop, empty.flaw().is_some()), (StopReason::Complete, true));
        assert_eq!(got(r#"{"content":"a"}"#, "null").stop, StopReason::Complete);
    }

    #[test]
    fn malformed_arguments_are_not_guessed_at() {
        let call = |id, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "x", "arguments": arguments } });
        let calls = [call("a", r#"{"n":"1"}"#), call("b", r#"{"n":"#), call("c", "[]"), call("d", "")];
        let message = json!({ "role": "assistant", "content": null, "tool_calls": calls }).to_string();
        let reply = got(&message, r#""stop""#);
        assert_eq!((reply.stop, reply.raw.get()), (StopReason::ToolUse, message.as_str()));
        assert_eq!(reply.calls[0].arguments, Ok(json!({ "n": "1" }).as_object().unwrap().clone()));
        assert!(reply.calls[1..3].iter().all(|call| call.arguments.is_err()));
        assert_eq!((reply.calls[3].id.as_str(), &reply.calls[3].arguments), ("d", &Ok(Map::new())));
    }

    #[test]
    fn refusals_and_cuts_are_told() {
        let refused = got(r#"{"content":null,"refusal":"I will not"}"#, r#""stop""#);
        assert_eq!((refused.stop, refused.text.as_str()), (StopReason::Refused, "I will not"));
        assert_eq!(got(r#"{"content":""}"#, r#""content_filter""#).stop, StopReason::Refused);
        assert_eq!(got(r#"{"content":"a"}"#, r#""length""#).stop, StopReason::Cut);
        assert_eq!(got(r#"{"content":"a"}"#, r#""tool_calls""#).stop, StopReason::Complete);
    }

    #[test]
    fn cached_tokens_are_part_of_the_input() {
        let usage =
            r#"{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":7}}"#;
        let text = format!(
            r#"{{"choices":[{{"message":{{"content":"a"}},"finish_reason":"stop"}}],"usage":{usage}}}"#
        );
        let reply = reply(text.as_bytes(), &plain()).unwrap();
        assert_eq!(reply.tokens, TokenUsage { input: 10, output: 2, cache_read: 7, cache_write: 0 });
        assert_eq!(reply.model, "m-1");
    }

    #[test]
    fn replies_without_an_answer_say_what_is_missing() {
        for (text, message) in [
            ("{}", "server: response contains no choices"),
            (r#"{"choices":[]}"#, "server: response contains no choices"),
            (r#"{"choices":[{}]}"#, "server: response contains no content"),
            (r#"{"choices":[{"message":{}}]}"#, "server: response contains no content"),
            ("[]", "server: the reply is not a JSON object"),
            (
                r#"{"choices":[{"message":{"content":7},"finish_reason":"stop"}]}"#,
                "server: the reply's content is a number, not text",
            ),
            (
                r#"{"choices":[{"message":{"content":["a"]},"finish_reason":"stop"}]}"#,
                "server: the reply's content is a string, not a part with a type",
            ),
            (
                r#"{"choices":[{"message":{"content":"a","tool_calls":{}},"finish_reason":"stop"}]}"#,
                "server: the reply's tool_calls are an object, not a list",
            ),
        ] {
            assert_eq!(reply(text.as_bytes(), &plain()).unwrap_err().to_string(), message);
        }
    }
}
