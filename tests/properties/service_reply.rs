//! What a model's service answers: JSON of Anthropic, OpenAI or Ollama, or an error in it.

use crate::base::error::Error;
use crate::base::http::Response;
use crate::config::global::Api;
use crate::fuzz::{choice, is_told, text};
use crate::provider::error::{CallError, hidden_status};
use crate::provider::message::{
    ChatTurn, Dialect, Repeats, Request, StopReason, TokenUsage, Tool, ToolResult,
};
use crate::provider::{anthropic, ollama, openai};
use serde_json::{Value, json};

pub fn holds(bytes: &[u8]) {
    let (which, bytes) = choice(bytes, 3);
    let mut request = request();
    let reply = match which {
        0 => anthropic::reply(bytes, &request),
        1 => openai::reply(bytes, &request),
        _ => ollama::reply(bytes, &request),
    };
    is_an_error(bytes);
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            is_told(&error.to_string());
            return is_told(&Error::from(error).line());
        }
    };
    assert_eq!(reply.stop == StopReason::ToolUse, !reply.calls.is_empty());
    assert!(reply.flaw().is_none() || reply.stop != StopReason::ToolUse);
    reply.flaw().iter().chain(&reply.warnings).for_each(|line| is_told(line));
    assert!(!reply.stop_reason.contains(char::is_control));
    let mut sum = TokenUsage { input: u64::MAX - 1, ..TokenUsage::default() };
    sum += reply.tokens;
    // The turn goes back byte for byte, in a request that is JSON. Only calls without ids, as some of Gemini's, get them, a
    // message without a role gets one, and the input of Anthropic's calls becomes an object.
    let is_same = memchr::memmem::find(bytes, reply.raw.get().as_bytes()).is_some();
    assert!(
        is_same
            || (which > 0 && is_same_but_for_ids(which, bytes, reply.raw.get()))
            || (which == 0 && is_same_but_for_inputs(bytes, reply.raw.get()))
    );
    let results = reply.calls.iter().map(|call| ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        content: "done".to_owned(),
        is_error: false,
    });
    let results = results.collect();
    request.turns.extend([ChatTurn::Assistant(reply.raw.clone()), ChatTurn::ToolResults(results)]);
    let body = match which {
        0 => anthropic::body(&request, &Dialect::default()),
        1 => openai::body(&request, &Dialect::default()),
        _ => ollama::body(&request, &Dialect::default()),
    };
    let body: &serde_json::value::RawValue = serde_json::from_slice(&body).unwrap();
    assert!(body.get().contains(reply.raw.get()));
}

/// Is this turn what the bytes have in the dialect of OpenAI or Ollama, with its role, and with an id for each call of OpenAI's
/// that had none?
fn is_same_but_for_ids(which: usize, bytes: &[u8], raw: &str) -> bool {
    let reply: Value = serde_json::from_slice(bytes).unwrap();
    let mut message = if which == 1 { &reply["choices"][0]["message"] } else { &reply["message"] }.clone();
    let given: Value = serde_json::from_str(raw).unwrap();
    if !message["role"].is_string() {
        message["role"] = "assistant".into();
    }
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut).filter(|_| which == 1);
    for (call, given) in calls.into_iter().flatten().zip(given["tool_calls"].as_array().into_iter().flatten())
    {
        if let Value::Object(call) = call
            && call.get("id").and_then(Value::as_str).is_none_or(str::is_empty)
        {
            assert!(given["id"].as_str().is_some_and(|id| !id.is_empty()));
            call.insert("id".to_owned(), given["id"].clone());
        }
    }
    message == given
}

/// Is this turn what Anthropic's has in these bytes, with an object for each call's input that is text?
fn is_same_but_for_inputs(bytes: &[u8], raw: &str) -> bool {
    let reply: Value = serde_json::from_slice(bytes).unwrap();
    let given: Value = serde_json::from_str(raw).unwrap();
    let mut blocks = reply["content"].clone();
    for (block, given) in blocks.as_array_mut().unwrap().iter_mut().zip(given.as_array().unwrap()) {
        if block.get("input").is_some_and(Value::is_string) {
            assert!(given["input"].is_object());
            block["input"] = given["input"].clone();
        }
    }
    blocks == given
}

/// The same bytes as an error's body.
fn is_an_error(bytes: &[u8]) {
    for status in [200, 400, 404, 429, 500, 529] {
        let response = Response {
            status,
            headers: vec![("request-id".to_owned(), text(&bytes[..bytes.len().min(20)]).into_owned())],
            body: bytes.to_vec(),
            ..Response::default()
        };
        let error = CallError::from_response(status, &response);
        is_told(&error.message);
        assert!(!error.message.contains(char::is_control));
        assert!(error.message.chars().count() <= 1200);
        error.alternative(Api::OpenAi, &request(), &Dialect::default());
    }
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        let status = hidden_status(&value);
        assert!(status == 200 || (400..=599).contains(&status));
    }
}

fn request() -> Request {
    Request {
        model: "m".to_owned(),
        system: "s".to_owned(),
        volatile: 0,
        repeats: Repeats::Nothing,
        turns: vec![ChatTurn::User("u".to_owned())],
        tools: vec![Tool { name: "call".to_owned(), description: "d".to_owned(), schema: json!({}) }],
        is_closing: false,
        temperature: Some(0.5),
        max_tokens: Some(10),
        extra: Default::default(),
        schema: None,
        is_streamed: false,
        has_turn: false,
    }
}
