//! What the three wire formats have in common: putting requests together, reading replies leniently.

use crate::base::fields::kind;
use crate::base::text::one_line;
use crate::provider::error::{CallError, CallResult, MARK};
use crate::provider::message::{Attachment, ChatTurn, Request, ToolRequest, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What an event of a stream added to the reply.
#[derive(Default)]
pub(super) struct StreamPiece {
    /// Text of the answer.
    pub(super) text: String,
    /// It said why the answer ends.
    pub(super) is_last: bool,
    /// Nothing of the answer comes after it.
    pub(super) ends_stream: bool,
}

/// The bytes of a request.
pub(super) fn body(messages: Vec<Box<RawValue>>, parameters: Map<String, Value>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Body {
        messages: Vec<Box<RawValue>>,
        #[serde(flatten)]
        parameters: Map<String, Value>,
    }
    serde_json::to_vec(&Body { messages, parameters }).unwrap_or_default()
}

/// `parameters`, with those of the object `more` that are not null.
pub(super) fn with(mut parameters: Map<String, Value>, more: Value) -> Map<String, Value> {
    if let Value::Object(more) = more {
        parameters.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
    }
    parameters
}

/// One message. An assistant's turn is in it as it came.
pub(super) fn message(role: &'static str, content: impl Serialize) -> Box<RawValue> {
    #[derive(Serialize)]
    struct RoleMessage<T> {
        role: &'static str,
        content: T,
    }
    raw(&RoleMessage { role, content })
}

pub(super) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The system prompt; if the API cannot be given the schema of the answer, with a description of it.
pub(super) fn system(request: &Request, has_schema: bool) -> Cow<'_, str> {
    match &request.schema {
        Some(schema) if !has_schema => {
            let gap = if request.system.is_empty() { "" } else { "\n\n---\n\n" };
            Cow::Owned(format!(
                "{}{gap}## Answer\n\nThe answer is one JSON value that this JSON Schema accepts, without a code fence \
                 and without any other text:\n\n{}",
                request.system,
                schema.value()
            ))
        }
        _ => Cow::Borrowed(&request.system),
    }
}

/// The conversation so far in OpenAI's and Ollama's format, with the system prompt as its first message.
pub(super) fn messages(
    request: &Request,
    system: &str,
    result: fn(&ToolResult) -> Value,
    attached: fn(&str, &[Attachment]) -> Value,
) -> Vec<Box<RawValue>> {
    let turn = |turn: &ChatTurn| match turn {
        ChatTurn::User(text) => vec![message("user", text)],
        ChatTurn::Attached(text, files) => vec![raw(&attached(text, files))],
        ChatTurn::Said(text) => vec![message("assistant", text)],
        ChatTurn::Assistant(raw) => vec![raw.clone()],
        ChatTurn::ToolResults(results) => results.iter().map(|one| raw(&result(one))).collect(),
    };
    let system = (!system.is_empty()).then(|| message("system", system));
    system.into_iter().chain(request.turns.iter().flat_map(turn)).collect()
}

/// A reply's outer form. Serde's message names what is missing or of the wrong type, and where.
pub(super) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> CallResult<T> {
    let wrong = |e: serde_json::Error| format!("the reply cannot be read: {}", one_line(&e.to_string(), 200));
    serde_json::from_slice(bytes).map_err(|e| CallError::server(wrong(e)))
}

/// The members of a reply, or of a part of it, as they came.
pub(super) type RawMembers<'a> = BTreeMap<String, &'a RawValue>;

/// A reply's outermost form.
pub(super) fn outer(bytes: &[u8]) -> CallResult<RawMembers<'_>> {
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    if is_object { read(bytes) } else { Err(CallError::server("the reply is not a JSON object")) }
}

/// A member, unless it is null.
pub(super) fn part<'a>(members: &RawMembers<'a>, name: &str) -> Option<&'a RawValue> {
    members.get(name).copied().filter(|raw| raw.get() != "null")
}

/// A member beside the answer, or null. One that cannot be read must not cost a valid answer.
pub(super) fn beside(members: &RawMembers, name: &str) -> Value {
    part(members, name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// A reply's message, in OpenAI's and Ollama's format. One that is no object must not become an empty answer.
pub(super) fn message_in(raw: &RawValue) -> CallResult<Value> {
    let message: Value = read(raw.get().as_bytes())?;
    if message.is_object() { Ok(message) } else { Err(wrong_message(&message)) }
}

/// Makes sure that a message names its role, as some servers' do not: it is sent back. Returns whether it was changed.
pub(super) fn with_role(message: &mut Value) -> bool {
    let is_named = message["role"] == "assistant";
    if !is_named {
        message["role"] = "assistant".into();
    }
    !is_named
}

pub(super) fn wrong_message(message: &Value) -> CallError {
    CallError::server(format!("the reply's message is {}, not an object", kind(message)))
}

/// The text of an answer: null or missing is an empty one, and any other type an error. An answer of another type
/// must not become an empty one.
pub(super) fn answer_text(content: Option<&Value>) -> CallResult<String> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(CallError::server(format!("the reply's content is {}, not text", kind(other)))),
    }
}

/// The error for a part of the content that is none.
pub(super) fn wrong_content(part: &Value) -> CallError {
    CallError::server(format!("the reply's content is {}, not a part with a type", kind(part)))
}

/// A message's tool calls in OpenAI's and Ollama's format.
pub(super) fn tool_calls(message: &Value) -> CallResult<&[Value]> {
    match message.get("tool_calls") {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(calls)) => Ok(calls),
        Some(all) => Err(CallError::server(format!("the reply's tool_calls are {}, not a list", kind(all)))),
    }
}

/// One of them, under this id.
pub(super) fn tool_request(call: &Value, id: String) -> ToolRequest {
    let function = call.get("function").unwrap_or(&Value::Null);
    ToolRequest { id, name: text_at(function, "name"), arguments: arguments(function.get("arguments")) }
}

/// Makes JSON readable that a server did not write as the standard demands, so that an answer is not lost to one
/// character: a byte order mark goes, invalid UTF-8 and the escapes of half a character become U+FFFD. Returns whether
/// characters were replaced.
pub(super) fn mend(body: &mut Vec<u8>) -> bool {
    if body.starts_with(MARK) {
        body.drain(..MARK.len());
    }
    let mut mended = false;
    if std::str::from_utf8(body).is_err() {
        *body = String::from_utf8_lossy(body).into_owned().into_bytes();
        mended = true;
    }
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &body[at..]) {
        at += found;
        match (escaped_unit(&body[at..]), body.get(at + 6..).and_then(escaped_unit)) {
            (None, _) => at += 2,
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                body[at + 2..at + 6].copy_from_slice(b"fffd");
                mended = true;
                at += 6;
            }
            (Some(_), _) => at += 6,
        }
        if at >= body.len() {
            break;
        }
    }
    mended
}

/// The UTF-16 unit of an escape `\uXXXX` at the start of `text`.
fn escaped_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4).filter(|d| d.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A count. One that is missing or not a whole number is 0: that must not cost a valid answer.
pub(super) fn count(usage: &Value, pointer: &str) -> u64 {
    usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn text_at(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A call's arguments: an object or, in OpenAI's format, the text of one. Many servers write nothing or null for a tool
/// without parameters.
pub(super) fn arguments(value: Option<&Value>) -> Result<Map<String, Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(Value::String(text)) if matches!(text.trim(), "" | "null") => Ok(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(text)
            .map_err(|e| format!("they are not a JSON object: {}", one_line(&e.to_string(), 200))),
        Some(_) => Err("they are not a JSON object".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_characters_and_bad_bytes_are_mended_and_nothing_else() {
        for (before, after, mended) in [
            (&br#"{"a":"x"}"#[..], r#"{"a":"x"}"#, false),
            (b"\xef\xbb\xbf{}", "{}", false),
            (b"\"a\xffb\"", "\"a\u{fffd}b\"", true),
            (br#""a\ud800b""#, r#""a\ufffdb""#, true),
            (br#""\uDC00\uD83D\uDE00\ud83d""#, r#""\ufffd\uD83D\uDE00\ufffd""#, true),
            (br#""\\ud800 \\\ud800""#, r#""\\ud800 \\\ufffd""#, true),
            (br#""\n\u00e9\"""#, r#""\n\u00e9\"""#, false),
            (br#""\ud8"#, r#""\ud8"#, false),
            (br#""\"#, r#""\"#, false),
        ] {
            let mut body = before.to_vec();
            assert_eq!(mend(&mut body), mended, "{after}");
            assert_eq!(String::from_utf8(body).unwrap(), after);
        }
    }
}

#[cfg(test)]
pub mod examples {
    //! Requests and results that the tests of all three formats use.

    use crate::provider::message::{ChatTurn, Request, Tool, ToolResult};
    use serde_json::json;
    use serde_json::value::RawValue;

    pub fn plain() -> Request {
        Request::new("m-1", String::new(), ChatTurn::User("hi".into()))
    }

    pub fn with_tools(assistant: &str) -> Request {
        let result = |id: &str, content: &str, is_error| ToolResult {
            id: id.into(),
            name: "call_agent".into(),
            content: content.into(),
            is_error,
        };
        Request {
            system: "be brief".into(),
            turns: vec![
                ChatTurn::User("hi".into()),
                ChatTurn::Assistant(RawValue::from_string(assistant.into()).unwrap()),
                ChatTurn::ToolResults(vec![result("a", "1", false), result("b", "broken", true)]),
            ],
            tools: vec![Tool {
                name: "call_agent".into(),
                description: "calls".into(),
                schema: json!({
                    "type": "object",
                    "properties": {
                        "agent": { "type": "string", "description": "the agent" },
                        "context": { "type": "string", "description": "the context" },
                    },
                    "required": ["agent"],
                }),
            }],
            temperature: Some(0.0),
            max_tokens: Some(0),
            ..plain()
        }
    }
}
