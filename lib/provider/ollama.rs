//! Ollama's own API: `POST /api/chat`, not streamed.

use crate::base::json_schema::Schema;
use crate::provider::error::{CallError, CallResult};
use crate::provider::message::{
    Attachment, ChatTurn, Dialect, Reply, Request, StopReason, TokenUsage, ToolResult, Unsupported,
};
use crate::provider::openai::{self, merge};
use crate::provider::wire::{
    self, StreamPiece, answer_text, beside, count, message_in, messages, outer, part, raw, system,
    tool_calls, tool_request, with, with_role, wrong_content, wrong_message,
};
use serde_json::{Map, Value, json};

pub(super) const PATH: &str = "/api/chat";
/// The context that Ollama gives a model on a small machine, in tokens.
const CONTEXT: u64 = 4096;
/// The largest context that we request, in tokens: it costs memory, and most models have no more.
const CONTEXT_CAP: u64 = 131_072;

pub fn body(request: &Request, dialect: &Dialect) -> Vec<u8> {
    // A grammar for the answer would rule out tool calls, and there is no other way to turn them off.
    let offers_tools = !request.tools.is_empty() && !request.is_closing;
    let accepts = |what| !dialect.contains(&what);
    let schema = request.schema.as_ref().filter(|_| accepts(Unsupported::Schema) && !offers_tools);
    let needed = (request.bytes() / 3).saturating_add(request.max_tokens.unwrap_or(0));
    let sets_context = needed > CONTEXT && !request.extra.contains_key("num_ctx");
    let own = json!({
        "temperature": request.temperature.filter(|_| accepts(Unsupported::Temperature)),
        "num_predict": request.max_tokens,
        "num_ctx": sets_context.then(|| needed.min(CONTEXT_CAP).next_power_of_two()),
    });
    // What a person has set wins.
    let options = with(with(Map::new(), own), Value::Object(request.extra.clone()));
    let parameters = json!({
        "model": request.model,
        "stream": request.is_streamed,
        "format": schema.map(Schema::value),
        "options": Some(options).filter(|options| !options.is_empty()),
        "tools": offers_tools.then(|| request.tools.iter().map(openai::tool).collect::<Value>()),
    });
    let messages = messages(request, &system(request, schema.is_some()), result, with_images);
    wire::body(messages, with(Map::new(), parameters))
}

fn result(result: &ToolResult) -> Value {
    json!({ "role": "tool", "tool_name": result.name, "content": result.content })
}

/// The API takes images only, and tells their kind itself.
fn with_images(text: &str, files: &[Attachment]) -> Value {
    let images: Vec<_> = files.iter().map(|file| file.data.as_str()).collect();
    json!({ "role": "user", "content": text, "images": images })
}

pub fn reply(bytes: &[u8], request: &Request) -> CallResult {
    let answer = outer(bytes)?;
    let nothing = || CallError::server("response contains no content");
    let sent = part(&answer, "message").ok_or_else(nothing)?;
    let mut message = message_in(sent)?;
    let raw = if with_role(&mut message) { raw(&message) } else { sent.to_owned() };
    let text = answer_text(message.get("content"))?;
    // Ollama gives no ids, or ones that repeat. Ours continue from the results so far.
    let before = request.results();
    let calls = tool_calls(&message)?;
    let id = |n: usize| format!("call_{}", before + n + 1);
    let calls = calls.iter().enumerate().map(|(n, call)| tool_request(call, id(n))).collect::<Vec<_>>();
    // "load": the model was only loaded.
    let [done, reason, model] = ["done", "done_reason", "model"].map(|name| beside(&answer, name));
    let reason = reason.as_str();
    if text.is_empty() && calls.is_empty() && (done != true || reason == Some("load")) {
        return Err(nothing());
    }
    let stop = if reason == Some("length") { StopReason::Cut } else { StopReason::Complete };
    let tokens = TokenUsage {
        input: count(&beside(&answer, "prompt_eval_count"), ""),
        output: count(&beside(&answer, "eval_count"), ""),
        ..TokenUsage::default()
    };
    let warnings = truncated(request, tokens.input).into_iter().collect();
    let model = model.as_str().unwrap_or(&request.model);
    let reply = Reply::new(text, stop, reason.unwrap_or("stop"), model);
    Ok(Reply { calls, raw, tokens, warnings, ..reply }.judged())
}

/// Adds a line of a stream to the reply so far, which has the form of one that comes whole.
pub(super) fn add(whole: &mut Map<String, Value>, mut line: Map<String, Value>) -> CallResult<StreamPiece> {
    let added = line.remove("message");
    let message = whole.remove("message").unwrap_or_else(|| json!({}));
    let is_last = line.get("done") == Some(&Value::Bool(true));
    let mut piece = StreamPiece { text: String::new(), is_last, ends_stream: is_last };
    whole.extend(line);
    let Value::Object(mut message) = message else { return Err(wrong_message(&message)) };
    match added {
        Some(Value::Object(mut added)) => {
            piece.text = match added.get("content") {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => return Err(wrong_content(other)),
            };
            // Each is whole, and none has an index.
            if let Some(Value::Array(calls)) = added.remove("tool_calls") {
                match message.entry("tool_calls").or_insert_with(|| json!([])) {
                    Value::Array(known) => known.extend(calls),
                    _ => return Err(CallError::server("the tool calls of the stream are not a list")),
                }
            }
            merge(&mut message, added);
        }
        None | Some(Value::Null) => {}
        Some(other) => return Err(wrong_message(&other)),
    }
    whole.insert("message".to_owned(), Value::Object(message));
    Ok(piece)
}

/// Ollama silently cuts a prompt that does not fit; only the count shows it.
///
/// Later turns are not checked unless they exceed the cap: older versions do not count cached tokens.
fn truncated(request: &Request, counted: u64) -> Option<String> {
    let bytes = request.bytes();
    let first = !request.turns.iter().any(|turn| matches!(turn, ChatTurn::Assistant(_)));
    let suspicious = counted > 0 && bytes > 12 * 1024 && counted < bytes / 8;
    (suspicious && (first || bytes / 6 > CONTEXT_CAP)).then(|| {
        format!("Ollama probably cut the prompt: it read {counted} tokens of a prompt of {bytes} bytes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::examples::{plain, with_tools};
    use serde_json::json;

    fn sent(request: &Request) -> Value {
        serde_json::from_slice(&body(request, &Dialect::default())).unwrap()
    }

    fn long(bytes: usize, max_tokens: Option<u64>) -> Request {
        Request { system: "x".repeat(bytes), max_tokens, ..plain() }
    }

    #[test]
    fn the_least_request_has_no_options() {
        let messages = json!([{ "role": "user", "content": "hi" }]);
        assert_eq!(sent(&plain()), json!({ "model": "m-1", "messages": messages, "stream": false }));
    }

    #[test]
    fn a_tool_turn_names_the_tool() {
        let assistant = r#"{ "role":"assistant","content":"", "tool_calls":[{"function":{}}] }"#;
        let request = with_tools(assistant);
        assert!(String::from_utf8(body(&request, &Dialect::default())).unwrap().contains(assistant));
        let sent = sent(&request);
        assert_eq!(sent["messages"][0], json!({ "role": "system", "content": "be brief" }));
        assert_eq!(sent["messages"][3], json!({ "role": "tool", "tool_name": "call_agent", "content": "1" }));
        assert_eq!(sent["options"], json!({ "temperature": 0.0, "num_predict": 0 }));
        assert_eq!(sent["tools"][0]["function"]["name"], "call_agent");
    }

    #[test]
    fn a_long_prompt_asks_for_a_context_that_holds_it() {
        assert!(sent(&long(3 * 4000, None)).get("options").is_none());
        assert_eq!(sent(&long(3 * 4000, Some(200)))["options"]["num_ctx"], 8192);
        assert_eq!(sent(&long(3 * 9000, None))["options"]["num_ctx"], 16384);
        assert_eq!(sent(&long(3_000_000, Some(u64::MAX)))["options"]["num_ctx"], 131_072);
    }

    #[test]
    fn what_a_person_sets_wins() {
        let extra = json!({ "num_predict": 7, "num_ctx": 2048 }).as_object().unwrap().clone();
        let request = Request { extra: extra.clone(), ..long(3 * 4000, Some(200)) };
        assert_eq!(sent(&request)["options"], Value::Object(extra));
    }

    #[test]
    fn ids_do_not_repeat_between_turns() {
        let text = r#"{"message":{"content":"","tool_calls":[{"function":{"name":"x","arguments":{"n":"1"}}},
            {"id":"same","function":{"name":"y","arguments":"{"}}]},"done":true,"done_reason":"stop"}"#;
        let ids = |request: &Request| {
            reply(text.as_bytes(), request).unwrap().calls.into_iter().map(|call| call.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&plain()), ["call_1", "call_2"]);
        assert_eq!(ids(&with_tools("{}")), ["call_3", "call_4"]);
        let reply = reply(text.as_bytes(), &plain()).unwrap();
        assert_eq!(reply.stop, StopReason::ToolUse);
        assert_eq!(reply.calls[0].arguments, Ok(json!({ "n": "1" }).as_object().unwrap().clone()));
        assert!(reply.calls[1].arguments.is_err());
    }

    #[test]
    fn counts_and_reasons_are_read() {
        let text = r#"{"model":"m","message":{"role":"assistant","content":"a","thinking":"t"},"done":true,
            "done_reason":"length","prompt_eval_count":3,"eval_count":4}"#;
        let reply = reply(text.as_bytes(), &plain()).unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.stop, reply.stop_reason.as_str()),
            ("a", StopReason::Cut, "length")
        );
        assert_eq!((reply.tokens.input, reply.tokens.output), (3, 4));
    }

    #[test]
    fn a_cut_prompt_is_suspected_from_its_count() {
        let reply = |counted: u64| {
            let text =
                format!(r#"{{"message":{{"content":"a"}},"done":true,"prompt_eval_count":{counted}}}"#);
            reply(text.as_bytes(), &long(100_000, None)).unwrap().warnings
        };
        assert_eq!(reply(25_000), Vec::<String>::new());
        assert_eq!(reply(0), Vec::<String>::new());
        assert_eq!(
            reply(4096),
            ["Ollama probably cut the prompt: it read 4096 tokens of a prompt of 100002 bytes"]
        );
    }

    #[test]
    fn a_model_that_was_only_loaded_has_said_nothing() {
        for text in [
            "{}",
            r#"{"message":{"content":""},"done":false}"#,
            r#"{"message":{"content":""},"done":true,"done_reason":"load"}"#,
        ] {
            let failure = reply(text.as_bytes(), &plain()).unwrap_err();
            assert_eq!(failure.to_string(), "server: response contains no content");
        }
        for message in [r#"{"content":7}"#, r#"{"content":{}}"#, r#"{"content":"a","tool_calls":7}"#] {
            let text = format!(r#"{{"message":{message},"done":true}}"#);
            let failure = reply(text.as_bytes(), &plain()).unwrap_err();
            assert!(failure.to_string().starts_with("server: the reply's "), "{failure}");
        }
        let empty = reply(br#"{"message":{"content":""},"done":true}"#, &plain()).unwrap();
        assert_eq!((empty.stop, empty.flaw().is_some()), (StopReason::Complete, true));
    }
}
