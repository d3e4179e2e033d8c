//! Replies that come in pieces: server-sent events (Anthropic, OpenAI) or JSON lines (Ollama), put together to the reply
//! that would have come whole.

use crate::base::text::one_line;
use crate::config::global::Api;
use crate::provider::error::CallError;
use crate::provider::message::{Reply, Request};
use crate::provider::wire::{mend, wrong_content, wrong_message};
use crate::provider::{anthropic, ollama, openai};
use serde_json::{Map, Value, json};

/// The longest answer, and the longest event, in bytes.
const CAP: usize = 16 * 1024 * 1024;

/// Reads a stream piece by piece. `on_text` gets the text of the answer as it comes.
pub(super) struct Assembler<'a> {
    api: Api,
    on_text: &'a mut dyn FnMut(&str),
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    /// The data of an event so far.
    data: Vec<u8>,
    /// A body that is JSON instead of a stream, as some servers send their errors.
    plain: Vec<u8>,
    /// How many bytes of text have come.
    length: usize,
    bytes: usize,
    /// Anthropic's blocks, or the message of the others.
    blocks: Vec<Value>,
    message: Map<String, Value>,
    /// What else the reply has: model, usage, stop reason.
    head: Map<String, Value>,
    is_complete: bool,
    /// Nothing more comes.
    has_ended: bool,
    mended: bool,
    failed: Option<CallError>,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(api: Api, on_text: &'a mut dyn FnMut(&str)) -> Assembler<'a> {
        Assembler {
            api,
            on_text,
            line: Vec::new(),
            data: Vec::new(),
            plain: Vec::new(),
            length: 0,
            bytes: 0,
            blocks: Vec::new(),
            message: Map::new(),
            head: Map::new(),
            is_complete: false,
            has_ended: false,
            mended: false,
            failed: None,
        }
    }

    /// Has anything come? Then the request must not be repeated.
    pub(super) fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    pub(super) fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        let mut rest = piece;
        while self.failed.is_none()
            && let Some(end) = memchr::memchr(b'\n', rest)
        {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.line(&line);
        }
        if self.failed.is_none() {
            self.line.extend_from_slice(rest);
            if self.line.len() > CAP {
                self.fail(CallError::server("an event of the stream is larger than 16 MiB"));
            }
        }
    }

    fn fail(&mut self, error: CallError) {
        self.failed.get_or_insert(error);
    }

    fn line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.api == Api::Ollama {
            if !line.trim_ascii().is_empty() {
                self.event(line.to_vec());
            }
        } else if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            if !data.is_empty() {
                self.event(data);
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            if self.data.len() > CAP {
                self.fail(CallError::server("an event of the stream is larger than 16 MiB"));
            }
        } else if !self.plain.is_empty() || matches!(line.trim_ascii_start(), [b'{' | b'[', ..]) {
            self.plain.extend_from_slice(line);
            if self.plain.len() > CAP {
                self.fail(CallError::server("the reply is larger than 16 MiB"));
            }
        }
        // Other fields, and comments that keep the connection alive, say nothing.
    }

    fn event(&mut self, mut data: Vec<u8>) {
        if data.trim_ascii() == b"[DONE]" {
            self.is_complete = self.is_complete || self.head.contains_key("finish_reason");
            return;
        }
        self.mended |= mend(&mut data);
        let event = match serde_json::from_slice::<Value>(&data) {
            Ok(Value::Object(event)) => event,
            Ok(_) => return self.fail(CallError::server("an event of the stream is not a JSON object")),
            // Half an event.
            Err(e) if self.has_ended && e.is_eof() => return,
            Err(e) => {
                let why = one_line(&e.to_string(), 200);
                return self.fail(CallError::server(format!("an event of the stream is not JSON: {why}")));
            }
        };
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return self.fail(CallError::in_stream(&Value::Object(event)));
        }
        let read = match self.api {
            Api::Anthropic => self.anthropic(event),
            Api::OpenAi => self.openai(event),
            Api::Ollama => self.ollama(event),
        };
        if let Err(error) = read {
            self.fail(error);
        }
    }

    fn text(&mut self, text: &str) -> Result<(), CallError> {
        self.length += text.len();
        if self.length > CAP {
            return Err(CallError::server("the answer is larger than 16 MiB"));
        }
        if !text.is_empty() {
            (self.on_text)(text);
        }
        Ok(())
    }

    fn anthropic(&mut self, mut event: Map<String, Value>) -> Result<(), CallError> {
        let at = event.get("index").and_then(Value::as_u64).unwrap_or(0) as usize;
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "message_start" => {
                if let Some(Value::Object(message)) = event.remove("message") {
                    for key in ["model", "usage"] {
                        self.head.extend(message.get(key).map(|value| (key.to_owned(), value.clone())));
                    }
                }
            }
            "content_block_start" => {
                let block = event.remove("content_block").unwrap_or_default();
                if at != self.blocks.len() || !block.is_object() {
                    return Err(CallError::server("the blocks of the stream are out of order"));
                }
                let text = block.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
                self.blocks.push(block);
                self.text(&text)?;
            }
            "content_block_delta" => {
                let delta = event.remove("delta").unwrap_or_default();
                let Some(Value::Object(block)) = self.blocks.get_mut(at) else {
                    return Err(CallError::server("the blocks of the stream are out of order"));
                };
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
                        return Ok(());
                    }
                    _ => return Ok(()),
                };
                let Some(piece) = delta.get(key).and_then(Value::as_str) else {
                    return Err(wrong_content(&delta));
                };
                match block.get_mut(into) {
                    Some(Value::String(text)) => text.push_str(piece),
                    // A call's input starts as an empty object, and its JSON comes in pieces.
                    _ => drop(block.insert(into.to_owned(), json!(piece))),
                }
                if into == "text" {
                    self.text(piece)?;
                }
            }
            "message_delta" => {
                if let Some(Value::Object(mut delta)) = event.remove("delta")
                    && let Some(reason @ Value::String(_)) = delta.remove("stop_reason")
                {
                    self.head.insert("stop_reason".to_owned(), reason);
                    self.is_complete = true;
                }
                if let Some(Value::Object(usage)) = event.remove("usage") {
                    match self.head.get_mut("usage") {
                        Some(Value::Object(known)) => known.extend(usage),
                        _ => drop(self.head.insert("usage".to_owned(), Value::Object(usage))),
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn openai(&mut self, mut event: Map<String, Value>) -> Result<(), CallError> {
        for key in ["model", "usage"] {
            if let Some(value) = event.remove(key).filter(|value| !value.is_null()) {
                self.head.insert(key.to_owned(), value);
            }
        }
        let choices = match event.remove("choices") {
            Some(Value::Array(choices)) => choices,
            None | Some(Value::Null) => return Ok(()),
            Some(other) => return Err(wrong_message(&other)),
        };
        let mut choice = match choices.into_iter().next() {
            Some(Value::Object(choice)) => choice,
            None => return Ok(()),
            Some(other) => return Err(wrong_message(&other)),
        };
        if let Some(error) = choice.remove("error").filter(|error| !error.is_null()) {
            return Err(CallError::in_stream(&json!({ "error": error })));
        }
        if let Some(reason @ Value::String(_)) = choice.remove("finish_reason") {
            self.head.insert("finish_reason".to_owned(), reason);
            self.is_complete = true;
        }
        match choice.remove("delta") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Object(delta)) => {
                let text = match delta.get("content") {
                    None | Some(Value::Null | Value::Array(_)) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => return Err(wrong_content(other)),
                };
                merge(&mut self.message, delta);
                self.text(&text)
            }
            Some(other) => Err(wrong_content(&other)),
        }
    }

    fn ollama(&mut self, mut event: Map<String, Value>) -> Result<(), CallError> {
        let message = event.remove("message");
        if event.get("done") == Some(&Value::Bool(true)) {
            self.is_complete = true;
        }
        self.head.extend(event);
        let mut message = match message {
            Some(Value::Object(message)) => message,
            None | Some(Value::Null) => return Ok(()),
            Some(other) => return Err(wrong_message(&other)),
        };
        let text = match message.get("content") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => return Err(wrong_content(other)),
        };
        // Each is whole, and none has an index.
        if let Some(Value::Array(calls)) = message.remove("tool_calls") {
            match self.message.entry("tool_calls").or_insert_with(|| json!([])) {
                Value::Array(known) => known.extend(calls),
                _ => return Err(CallError::server("the tool calls of the stream are not a list")),
            }
        }
        merge(&mut self.message, message);
        self.text(&text)
    }

    /// The reply, if the stream came to its end.
    pub(super) fn end(mut self, request: &Request) -> Result<Reply, CallError> {
        // The last line may lack its end, and the last event its blank line.
        if self.failed.is_none() {
            self.has_ended = true;
            let line = std::mem::take(&mut self.line);
            self.line(&line);
            self.line(b"");
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let Ok(body) = serde_json::from_slice::<Value>(&self.plain) {
            // Gemini's errors are lists of one.
            let body = if let Value::Array(mut list) = body { list.pop().unwrap_or_default() } else { body };
            if body.get("error").is_some_and(|error| !error.is_null()) {
                return Err(CallError::in_stream(&body));
            }
        }
        if !self.is_complete {
            let length = self.length;
            return Err(CallError::server(format!(
                "the stream broke off after {length} bytes of the answer"
            )));
        }
        let mut reply = match self.api {
            Api::Anthropic => anthropic::streamed(self.blocks, &self.head, request),
            Api::OpenAi => openai::streamed(self.message, &self.head, request),
            Api::Ollama => ollama::streamed(self.message, &self.head, request),
        }?;
        if self.mended {
            reply.warnings.push("the reply has invalid characters; they became U+FFFD".to_owned());
        }
        Ok(reply)
    }
}

/// Adds the pieces of `delta` to `whole`: texts grow, except names, and items of lists are found by their index.
fn merge(whole: &mut Map<String, Value>, delta: Map<String, Value>) {
    for (key, piece) in delta {
        match (whole.get_mut(&key), piece) {
            (_, Value::Null) => {
                whole.entry(key).or_insert(Value::Null);
            }
            (Some(Value::String(text)), Value::String(more)) => match key.as_str() {
                // Some servers repeat them with each piece.
                "role" | "id" | "type" | "name" | "format" => {
                    if !more.is_empty() {
                        *text = more;
                    }
                }
                _ => text.push_str(&more),
            },
            (Some(Value::Object(inner)), Value::Object(more)) => merge(inner, more),
            (Some(Value::Array(items)), Value::Array(more)) => {
                more.into_iter().for_each(|item| add(items, item))
            }
            (None, Value::Array(more)) => {
                let mut items = Vec::new();
                more.into_iter().for_each(|item| add(&mut items, item));
                whole.insert(key, Value::Array(items));
            }
            (_, piece) => {
                whole.insert(key, piece);
            }
        }
    }
}

/// Adds an item, or a piece of one.
fn add(items: &mut Vec<Value>, item: Value) {
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

/// Is `item` another tool call than `known`? Gemini's parallel calls all have the same index, or none.
fn begins_a_call(item: &Value, known: &Value) -> bool {
    let text = |value: &Value, at: &str| {
        value.pointer(at).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match (text(item, "/id"), text(known, "/id")) {
        (Some(id), Some(of_known)) => id != of_known,
        // Nothing can follow whole arguments.
        _ => {
            text(item, "/function/name").is_some()
                && text(item, "/function/arguments").is_some()
                && text(known, "/function/arguments")
                    .is_some_and(|all| serde_json::from_str::<Map<String, Value>>(&all).is_ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::message::{CallArguments, Stop};
    use crate::provider::wire::examples::{plain, with_tools};

    /// The reply to a stream that comes in pieces of every length, and the text as it came.
    fn assembled(api: Api, stream: &str, request: &Request) -> Result<(Reply, String), CallError> {
        let mut ended = None;
        for length in [1, 2, 3, 7, 64, stream.len().max(1)] {
            let mut text = String::new();
            let mut on_text = |piece: &str| text.push_str(piece);
            let mut assembler = Assembler::new(api, &mut on_text);
            stream.as_bytes().chunks(length).for_each(|piece| assembler.take(piece));
            let reply = assembler.end(request);
            ended = Some(reply.map(|reply| (reply, text)));
        }
        ended.unwrap()
    }

    fn events(all: &[&str]) -> String {
        all.iter().map(|data| format!("event: x\ndata: {data}\n\n")).collect()
    }

    #[test]
    fn anthropics_blocks_are_put_together() {
        let stream = events(&[
            r#"{"type":"message_start","message":{"model":"m-2","usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":2}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x=="}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"on"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"e"}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"a","name":"x","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\":"}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"b","name":"y","input":{}}}"#,
            r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"c","name":"z","input":{}}}"#,
            r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"n"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
            r#"{"type":"message_stop"}"#,
        ]);
        let (reply, text) = assembled(Api::Anthropic, &stream, &with_tools("[]")).unwrap();
        assert_eq!((text.as_str(), reply.text.as_str(), reply.stop), ("one", "one", Stop::ToolUse));
        assert_eq!((reply.tokens.input, reply.tokens.output, reply.model.as_str()), (7, 9, "m-2"));
        let raw: Value = serde_json::from_str(reply.raw.get()).unwrap();
        assert_eq!(raw[0], json!({ "type": "thinking", "thinking": "h", "signature": "x==" }));
        assert_eq!(
            (&raw[2]["input"], &raw[3]["input"], &raw[4]["input"]),
            (&json!({"n": 1}), &json!({}), &json!({}))
        );
        assert_eq!(
            reply.calls[0].arguments,
            CallArguments::Object(json!({"n": 1}).as_object().unwrap().clone())
        );
        assert_eq!(reply.calls[1].arguments, CallArguments::Object(Map::new()));
        assert!(matches!(reply.calls[2].arguments, CallArguments::Malformed(_)));
    }

    #[test]
    fn openais_deltas_are_put_together() {
        let stream = events(&[
            r#"{"model":"m-2","choices":[{"delta":{"role":"assistant","content":"","reasoning_content":"h"}}]}"#,
            r#"{"choices":[{"delta":{"content":"on","reasoning_content":"m"},"finish_reason":null}],"usage":null}"#,
            r#"{"choices":[{"delta":{"content":"e","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}},{"index":0,"function":{"arguments":"{\"n\""}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":":1}"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}"#,
            "[DONE]",
        ]);
        let (reply, text) = assembled(Api::OpenAi, &stream, &with_tools("{}")).unwrap();
        assert_eq!((text.as_str(), reply.text.as_str(), reply.stop), ("one", "one", Stop::ToolUse));
        assert_eq!((reply.tokens.input, reply.tokens.output, reply.model.as_str()), (5, 6, "m-2"));
        let names: Vec<_> = reply.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
        assert_eq!(names, [("a", "x"), ("b", "y")]);
        assert_eq!(
            reply.calls[0].arguments,
            CallArguments::Object(json!({"n": 1}).as_object().unwrap().clone())
        );
        let raw: Value = serde_json::from_str(reply.raw.get()).unwrap();
        assert_eq!((&raw["reasoning_content"], &raw["role"]), (&json!("hm"), &json!("assistant")));
        assert_eq!(raw["tool_calls"][0]["function"]["arguments"], "{\"n\":1}");
        assert!(raw["tool_calls"][0].get("index").is_none());
    }

    #[test]
    fn ollamas_lines_are_put_together() {
        let stream = "{\"model\":\"m-2\",\"message\":{\"role\":\"assistant\",\"content\":\"on\"},\"done\":false}\n\
             {\"message\":{\"content\":\"e\",\"tool_calls\":[{\"function\":{\"name\":\"x\",\"arguments\":{}}}]},\"done\":false}\n\n\
             {\"message\":{\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"y\",\"arguments\":{}}}]},\"done\":false}\n\
             {\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":3,\"eval_count\":4}";
        let (reply, text) = assembled(Api::Ollama, stream, &with_tools("{}")).unwrap();
        assert_eq!((text.as_str(), reply.text.as_str(), reply.calls.len()), ("one", "one", 2));
        assert_eq!((reply.tokens.input, reply.tokens.output, reply.model.as_str()), (3, 4, "m-2"));
    }

    #[test]
    fn a_stream_without_its_end_is_an_error() {
        for (api, stream, why) in [
            (
                Api::OpenAi,
                events(&[r#"{"choices":[{"delta":{"content":"one"}}]}"#]),
                "broke off after 3 bytes",
            ),
            (
                Api::OpenAi,
                events(&[r#"{"choices":[{"delta":{"content":"one"}}]}"#, "[DONE]"]),
                "broke off after 3",
            ),
            (
                Api::Ollama,
                "{\"message\":{\"content\":\"one\"},\"done\":false}\n".to_owned(),
                "broke off after 3",
            ),
            (Api::Anthropic, events(&[r#"{"type":"message_start","message":{}}"#]), "broke off after 0"),
            (Api::OpenAi, "data: {\"choices\"\n\n".to_owned(), "is not JSON"),
            (Api::OpenAi, "data: 7\n\n".to_owned(), "is not a JSON object"),
            (Api::OpenAi, events(&[r#"{"error":{"message":"it broke"}}"#]), "it broke"),
            (
                Api::Anthropic,
                events(&[r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#]),
                "overloaded: busy",
            ),
            (Api::Ollama, "{\"error\":\"out of memory\"}\n".to_owned(), "server: out of memory"),
            (Api::OpenAi, events(&[r#"{"choices":[{"delta":{"content":7}}]}"#]), "content is a number"),
            (
                Api::Anthropic,
                events(&[r#"{"type":"content_block_delta","index":3,"delta":{}}"#]),
                "out of order",
            ),
            (Api::OpenAi, String::new(), "broke off after 0"),
        ] {
            let error = assembled(api, &stream, &plain()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert!(!error.is_transient, "{error}");
        }
    }
}
