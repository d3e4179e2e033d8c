//! Replies that come in pieces: server-sent events (Anthropic, OpenAI) or JSON lines (Ollama), put together to the reply
//! that would have come whole.

use crate::base::text::one_line;
use crate::config::global::Api;
use crate::provider::error::{CallError, CallResult, MARK, body_of};
use crate::provider::message::OnText;
use crate::provider::wire::{StreamPiece, mend};
use crate::provider::{anthropic, ollama, openai};
use serde_json::{Map, Value};

/// The longest answer, and the longest event, in bytes.
const CAP: usize = 16 * 1024 * 1024;
/// How a compressed body begins.
pub(super) const GZIP: &[u8] = b"\x1f\x8b";

/// Reads a stream piece by piece. `on_text` gets the text of the answer as it comes.
pub(super) struct Assembler<'a> {
    api: Api,
    on_text: OnText<'a>,
    /// The start of a line whose end has not come yet.
    line: Vec<u8>,
    /// The last byte ended a line and was a return of the carriage: a newline after it ends none.
    after_return: bool,
    /// The event is named `error`.
    is_error: bool,
    /// The data of an event so far.
    data: Vec<u8>,
    /// A body that is JSON instead of a stream, as some servers send their errors.
    plain: Vec<u8>,
    /// How many bytes of text have come.
    length: usize,
    bytes: usize,
    /// The reply so far.
    whole: Map<String, Value>,
    is_complete: bool,
    /// The last event has come. What follows is not read.
    is_over: bool,
    /// Nothing more comes.
    has_ended: bool,
    mended: bool,
    /// The first error. What comes after it is not read.
    outcome: CallResult<()>,
}

impl<'a> Assembler<'a> {
    pub(super) fn new(api: Api, on_text: OnText<'a>) -> Assembler<'a> {
        Assembler {
            api,
            on_text,
            line: Vec::new(),
            after_return: false,
            is_error: false,
            data: Vec::new(),
            plain: Vec::new(),
            length: 0,
            bytes: 0,
            whole: Map::new(),
            is_complete: false,
            is_over: false,
            has_ended: false,
            mended: false,
            outcome: Ok(()),
        }
    }

    /// Whether anything has come. Then the request must not be repeated.
    pub(super) fn has_begun(&self) -> bool {
        self.bytes > 0
    }

    /// Whether all of the answer has come, whatever follows. Some servers write an empty reason in every piece.
    pub(super) fn is_whole(&self) -> bool {
        self.is_complete && self.whole.get("finish_reason").is_none_or(|reason| *reason != "")
    }

    /// Reads a piece. Returns whether more is wanted.
    pub(super) fn take(&mut self, piece: &[u8]) -> bool {
        if self.bytes == 0 && piece.starts_with(GZIP) {
            self.outcome = Err(CallError::compressed("gzip"));
        }
        self.bytes += piece.len();
        if self.outcome.is_ok() && !self.is_over {
            self.outcome = self.read(piece);
        }
        self.outcome.is_ok() && !self.is_over
    }

    fn read(&mut self, mut rest: &[u8]) -> CallResult<()> {
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let is_pair = end == 0 && rest[0] == b'\n' && self.after_return;
            self.after_return = rest[end] == b'\r';
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            if !is_pair {
                let line = std::mem::take(&mut self.line);
                self.line(&line)?;
            }
            if self.is_over {
                return Ok(());
            }
        }
        self.after_return &= rest.is_empty();
        self.line.extend_from_slice(rest);
        within_cap(self.line.len(), "an event of the stream")
    }

    fn line(&mut self, line: &[u8]) -> CallResult<()> {
        let line = line.strip_prefix(MARK).unwrap_or(line);
        match (self.api, line.strip_prefix(b"data:")) {
            (Api::Ollama, _) if line.trim_ascii().is_empty() => Ok(()),
            (Api::Ollama, _) => self.event(line.to_vec()),
            _ if line.is_empty() => {
                let data = std::mem::take(&mut self.data);
                let read = if data.is_empty() { Ok(()) } else { self.event(data) };
                self.is_error = false;
                read
            }
            (_, None) if line.strip_prefix(b"event:").is_some_and(|name| name.trim_ascii() == b"error") => {
                self.is_error = true;
                Ok(())
            }
            (_, Some(data)) => {
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
                within_cap(self.data.len(), "an event of the stream")
            }
            _ if !self.plain.is_empty() || matches!(line.trim_ascii_start(), [b'{' | b'[', ..]) => {
                self.plain.extend_from_slice(line);
                within_cap(self.plain.len(), "the reply")
            }
            // Other fields, and comments that keep the connection alive, say nothing.
            _ => Ok(()),
        }
    }

    fn event(&mut self, mut data: Vec<u8>) -> CallResult<()> {
        if data.trim_ascii() == b"[DONE]" {
            self.is_over = true;
            return Ok(());
        }
        if self.is_error {
            return Err(CallError::in_stream(&body_of(&data), self.whole.is_empty()));
        }
        self.mended |= mend(&mut data);
        let event = match serde_json::from_slice::<Value>(&data) {
            Ok(Value::Object(event)) => event,
            Ok(_) => return Err(CallError::server("an event of the stream is not a JSON object")),
            // Half an event.
            Err(e) if self.has_ended && e.is_eof() => return Ok(()),
            Err(e) => {
                let why = one_line(&e.to_string(), 200);
                return Err(CallError::server(format!("an event of the stream is not JSON: {why}")));
            }
        };
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(CallError::in_stream(&Value::Object(event), self.whole.is_empty()));
        }
        let StreamPiece { text, is_last, ends_stream } = match self.api {
            Api::Anthropic => anthropic::add(&mut self.whole, event),
            Api::OpenAi => openai::add(&mut self.whole, event),
            Api::Ollama => ollama::add(&mut self.whole, event),
        }?;
        self.is_complete |= is_last;
        self.is_over |= ends_stream;
        self.length += text.len();
        within_cap(self.length, "the answer")?;
        if !text.is_empty() {
            (self.on_text)(&text);
        }
        Ok(())
    }

    /// The reply as if it had come whole, if the stream came to its end; and whether characters were replaced.
    pub(super) fn end(mut self) -> CallResult<(Vec<u8>, bool)> {
        let outcome = std::mem::replace(&mut self.outcome, Ok(()));
        // The last line may lack its end, and the last event its blank line.
        self.has_ended = true;
        let line = std::mem::take(&mut self.line);
        let rest = outcome.and_then(|()| self.line(&line)).and_then(|()| self.line(b""));
        // What follows a whole answer cannot spoil it.
        if !self.is_whole() {
            rest?;
            let body = body_of(&self.plain);
            if body.get("error").is_some_and(|error| !error.is_null()) {
                return Err(CallError::in_stream(&body, self.whole.is_empty()));
            }
        }
        if !self.is_complete {
            let why = format!("the stream broke off after {} bytes of the answer", self.length);
            return Err(CallError::server(why));
        }
        let whole = match self.api {
            Api::OpenAi => openai::whole(self.whole),
            Api::Anthropic | Api::Ollama => Value::Object(self.whole),
        };
        Ok((whole.to_string().into_bytes(), self.mended))
    }
}

fn within_cap(length: usize, what: &str) -> CallResult<()> {
    if length > CAP {
        return Err(CallError::server(format!("{what} is larger than 16 MiB")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::message::{Reply, Request, StopReason};
    use crate::provider::wire::examples::{plain, with_tools};
    use serde_json::json;

    /// The reply to a stream that comes in pieces of every length, and the text as it came.
    fn assembled(api: Api, stream: &str, request: &Request) -> CallResult<(Reply, String)> {
        let mut ended = None;
        for length in [1, 2, 3, 7, 64, stream.len().max(1)] {
            let mut text = String::new();
            let mut on_text = |piece: &str| text.push_str(piece);
            let mut assembler = Assembler::new(api, &mut on_text);
            stream.as_bytes().chunks(length).for_each(|piece| {
                assembler.take(piece);
            });
            let reply = assembler.end().and_then(|(bytes, _)| match api {
                Api::Anthropic => anthropic::reply(&bytes, request),
                Api::OpenAi => openai::reply(&bytes, request),
                Api::Ollama => ollama::reply(&bytes, request),
            });
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
        assert_eq!((text.as_str(), reply.text.as_str(), reply.stop), ("one", "one", StopReason::ToolUse));
        assert_eq!((reply.tokens.input, reply.tokens.output, reply.model.as_str()), (7, 9, "m-2"));
        let raw: Value = serde_json::from_str(reply.raw.get()).unwrap();
        assert_eq!(raw[0], json!({ "type": "thinking", "thinking": "h", "signature": "x==" }));
        assert_eq!(
            (&raw[2]["input"], &raw[3]["input"], &raw[4]["input"]),
            (&json!({"n": 1}), &json!({}), &json!({}))
        );
        assert_eq!(reply.calls[0].arguments, Ok(json!({"n": 1}).as_object().unwrap().clone()));
        assert_eq!(reply.calls[1].arguments, Ok(Map::new()));
        assert!(reply.calls[2].arguments.is_err());
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
        assert_eq!((text.as_str(), reply.text.as_str(), reply.stop), ("one", "one", StopReason::ToolUse));
        assert_eq!((reply.tokens.input, reply.tokens.output, reply.model.as_str()), (5, 6, "m-2"));
        let names: Vec<_> = reply.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
        assert_eq!(names, [("a", "x"), ("b", "y")]);
        assert_eq!(reply.calls[0].arguments, Ok(json!({"n": 1}).as_object().unwrap().clone()));
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
            // An overload before anything else.
            assert_eq!(error.is_transient, why == "overloaded: busy", "{error}");
        }
    }
}
