//! OpenAI's Chat Completions API, `POST /v1/chat/completions`, as OpenAI and many others serve it.

use crate::provider::error::CallError;
use crate::provider::message::{
    Attachment, Dialect, Media, Reply, Request, Stop, TokenUsage, Tool, ToolCall, ToolResult,
};
use crate::provider::wire::{
    ChatMessage, answer_text, arguments, count, message_in, messages, needs_echo, outer, system, text_at,
    tool_calls, wrong_content,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
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

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

pub(crate) fn body(request: &Request, dialect: Dialect) -> Vec<u8> {
    let schema = request.schema.as_ref().filter(|_| !dialect.no_schema);
    let mut extra = request.extra.clone();
    if let Some(schema) = schema {
        let schema = schema.value();
        let format = json!({ "name": "answer", "schema": schema, "strict": is_strict(schema) });
        extra.insert("response_format".to_owned(), json!({ "type": "json_schema", "json_schema": format }));
    }
    let system = system(request, schema.is_some());
    let messages = messages(request, &system, result, with_files);
    let body = Body {
        model: &request.model,
        messages,
        temperature: request.temperature.filter(|_| !dialect.no_temperature),
        max_tokens: request.max_tokens.filter(|_| !dialect.new_max_tokens),
        max_completion_tokens: request
            .max_tokens
            .filter(|_| dialect.new_max_tokens && !request.extra.contains_key("max_completion_tokens")),
        tools: request.tools.iter().map(tool).collect(),
        stream: request.is_streamed.then_some(true),
        stream_options: (request.is_streamed && !dialect.no_stream_options)
            .then(|| json!({ "include_usage": true })),
        extra: &extra,
        tool_choice: request.is_closing.then_some("none"),
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

fn result(result: &ToolResult) -> ChatMessage<'_> {
    ChatMessage::ResultById { role: "tool", tool_call_id: &result.id, content: &result.content }
}

/// The files first: models read the question better after what it is about.
fn with_files<'a>(text: &'a str, files: &'a [Attachment]) -> ChatMessage<'a> {
    let part = |file: &Attachment| match file.media {
        Media::Pdf => json!({ "type": "file", "file": { "filename": file.name, "file_data": file.url() } }),
        _ => json!({ "type": "image_url", "image_url": { "url": file.url() } }),
    };
    let mut content: Vec<Value> = files.iter().map(part).collect();
    content.push(json!({ "type": "text", "text": text }));
    ChatMessage::Parts { role: "user", content }
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

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    model: Option<String>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    finish_reason: Option<String>,
    /// OpenRouter's, if the service behind it failed.
    error: Option<Value>,
}

pub(crate) fn reply(bytes: &[u8], request: &Request) -> Result<Reply, CallError> {
    let answer: Answer = outer(bytes)?;
    let choice = answer.choices.into_iter().flatten().next();
    let choice = choice.ok_or_else(|| CallError::server("response contains no choices"))?;
    if let Some(error) = choice.error {
        return Err(CallError::in_stream(&json!({ "error": error })));
    }
    let nothing = || CallError::server("response contains no content");
    let raw = choice.message.ok_or_else(nothing)?;
    let mut message = message_in(raw)?;
    let renamed = if name_calls(&mut message, request) { to_raw_value(&message).ok() } else { None };
    let rest = Rest { finish_reason: choice.finish_reason, model: answer.model, usage: answer.usage };
    from_message(&message, renamed.unwrap_or_else(|| raw.to_owned()), rest, request)
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

/// What a reply has besides its message.
struct Rest {
    finish_reason: Option<String>,
    model: Option<String>,
    usage: Value,
}

/// The reply from the message that a stream's pieces make up.
pub(super) fn streamed(
    mut message: Map<String, Value>,
    head: &Map<String, Value>,
    request: &Request,
) -> Result<Reply, CallError> {
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        for call in calls.iter_mut().filter_map(Value::as_object_mut) {
            call.remove("index");
            call.entry("type").or_insert_with(|| json!("function"));
        }
    }
    message.entry("role").or_insert_with(|| json!("assistant"));
    let mut message = Value::Object(message);
    name_calls(&mut message, request);
    let raw = if needs_echo(request) { to_raw_value(&message).ok() } else { None };
    let text = |name| head.get(name).and_then(Value::as_str).map(str::to_owned);
    let usage = head.get("usage").cloned().unwrap_or_default();
    let rest = Rest { finish_reason: text("finish_reason"), model: text("model"), usage };
    from_message(&message, raw.unwrap_or_else(|| RawValue::NULL.to_owned()), rest, request)
}

fn from_message(
    message: &Value,
    raw: Box<RawValue>,
    rest: Rest,
    request: &Request,
) -> Result<Reply, CallError> {
    let nothing = || CallError::server("response contains no content");
    let (mut text, mut refusal) = content(message.get("content"))?;
    refusal += message.get("refusal").and_then(Value::as_str).unwrap_or_default();
    let calls: Vec<_> = tool_calls(message)?.iter().map(call).collect();
    let stop_reason = rest.finish_reason.unwrap_or_default();
    if stop_reason == "error" {
        return Err(CallError::server("the service ended its answer with an error"));
    }
    if text.is_empty() && refusal.is_empty() && calls.is_empty() && stop_reason.is_empty() {
        return Err(nothing());
    }
    let stop = match stop_reason.as_str() {
        _ if !refusal.is_empty() => Stop::Refused,
        // Gemini's goes on with the reason.
        reason if reason.starts_with("content_filter") => Stop::Refused,
        "length" => Stop::Cut,
        "tool_calls" | "function_call" => Stop::ToolUse,
        _ => Stop::Complete,
    };
    if text.is_empty() {
        text = refusal;
    }
    let tokens = TokenUsage {
        input: count(&rest.usage, "/prompt_tokens"),
        output: count(&rest.usage, "/completion_tokens"),
        cache_read: count(&rest.usage, "/prompt_tokens_details/cached_tokens"),
        // Few services count it.
        cache_write: count(&rest.usage, "/prompt_tokens_details/cache_write_tokens"),
    };
    let model = rest.model.unwrap_or_else(|| request.model.clone());
    let warnings = Vec::new();
    let was_streamed = false;
    Ok(Reply { text, calls, was_streamed, raw, stop, stop_reason, model, tokens, warnings, retries: 0 }
        .judged())
}

/// A message's text and refusal. Its content may be null, a text, or a list of parts.
fn content(content: Option<&Value>) -> Result<(String, String), CallError> {
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

fn call(call: &Value) -> ToolCall {
    let function = call.get("function").unwrap_or(&Value::Null);
    ToolCall {
        id: text_at(call, "id"),
        name: text_at(function, "name"),
        arguments: arguments(function.get("arguments")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::message::CallArguments;
    use crate::provider::wire::examples::{plain, with_tools};

    fn sent(request: &Request, dialect: Dialect) -> Value {
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
        assert_eq!(sent(&plain(), Dialect::default()), least);
    }

    #[test]
    fn a_tool_turn_has_one_message_for_each_result() {
        let assistant = r#"{ "role":"assistant","content":null, "tool_calls":[{"id" : "a"}] }"#;
        let request = with_tools(assistant);
        assert!(String::from_utf8(body(&request, Dialect::default())).unwrap().contains(assistant));
        let sent = sent(&request, Dialect::default());
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
        let sent =
            sent(&request, Dialect { no_temperature: true, new_max_tokens: true, ..Dialect::default() });
        assert_eq!(sent["max_completion_tokens"], 9);
        assert!(sent.get("max_tokens").is_none() && sent.get("temperature").is_none());
    }

    #[test]
    fn content_may_be_text_parts_or_null() {
        assert_eq!(got(r#"{"content":"a"}"#, r#""stop""#).text, "a");
        let parts = r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#;
        assert_eq!(got(parts, r#""stop""#).text, "ab");
        let empty = got(r#"{"content":null}"#, r#""stop""#);
        assert_eq!((empty.stop, empty.flaw().is_some()), (Stop::Complete, true));
        assert_eq!(got(r#"{"content":"a"}"#, "null").stop, Stop::Complete);
    }

    #[test]
    fn malformed_arguments_are_not_guessed_at() {
        let call = |id, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "x", "arguments": arguments } });
        let calls = [call("a", r#"{"n":"1"}"#), call("b", r#"{"n":"#), call("c", "[]"), call("d", "")];
        let message = json!({ "role": "assistant", "content": null, "tool_calls": calls }).to_string();
        let reply = got(&message, r#""stop""#);
        assert_eq!((reply.stop, reply.raw.get()), (Stop::ToolUse, message.as_str()));
        assert_eq!(
            reply.calls[0].arguments,
            CallArguments::Object(json!({ "n": "1" }).as_object().unwrap().clone())
        );
        assert!(reply.calls[1..].iter().all(|call| matches!(call.arguments, CallArguments::Malformed(_))));
        assert_eq!(reply.calls[3].id, "d");
    }

    #[test]
    fn refusals_and_cuts_are_told() {
        let refused = got(r#"{"content":null,"refusal":"I will not"}"#, r#""stop""#);
        assert_eq!((refused.stop, refused.text.as_str()), (Stop::Refused, "I will not"));
        assert_eq!(got(r#"{"content":""}"#, r#""content_filter""#).stop, Stop::Refused);
        assert_eq!(got(r#"{"content":"a"}"#, r#""length""#).stop, Stop::Cut);
        assert_eq!(got(r#"{"content":"a"}"#, r#""tool_calls""#).stop, Stop::Complete);
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
