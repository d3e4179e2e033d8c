//! JSON-RPC 2.0 as the Model Context Protocol has it: a message a line, in both directions.

use crate::base::text::one_line;
use serde_json::{Value, json};

/// The version of the protocol that we speak, and those whose lists and calls are the same.
pub const VERSION: &str = "2025-06-18";
pub const VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", VERSION, "2025-11-25"];
/// The longest message, in bytes.
pub const MESSAGE_CAP: usize = 4 << 20;

/// What is wrong with a message, as an error's `code`.
pub const NOT_JSON: i64 = -32700;
pub const NO_MESSAGE: i64 = -32600;
pub const NO_METHOD: i64 = -32601;
pub const WRONG_PARAMS: i64 = -32602;
pub const FAILED: i64 = -32603;

#[derive(Debug, PartialEq)]
pub enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// Nothing that is answered. Its method.
    Notification(String),
    /// An answer, and the id of the request; null if it is about a message that could not be read.
    Answer(Value, Result<Value, String>),
}

/// Why a message has no result. The text follows "sent" or stands alone.
#[derive(Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    pub text: String,
}

impl RpcError {
    pub fn new(code: i64, text: impl Into<String>) -> RpcError {
        RpcError { code, text: text.into() }
    }
}

/// Reads a line.
pub fn parse(line: &[u8]) -> Result<Message, RpcError> {
    let wrong = |text: &str| Err(RpcError::new(NO_MESSAGE, text));
    let not_json = |e| RpcError::new(NOT_JSON, format!("a message that is not valid JSON: {e}"));
    let Value::Object(mut message) = serde_json::from_slice(line).map_err(not_json)? else {
        return wrong("a message that is not one JSON object; batches are not supported");
    };
    let id = message.remove("id").filter(|id| !id.is_null());
    match (id, message.remove("method"), message.remove("error")) {
        (Some(Value::Array(_) | Value::Object(_) | Value::Bool(_)), Some(_), _) => {
            wrong("a request whose id is neither a number nor a string")
        }
        (Some(id), Some(Value::String(method)), _) => {
            Ok(Message::Request { id, method, params: message.remove("params").unwrap_or_default() })
        }
        (None, Some(Value::String(method)), _) => Ok(Message::Notification(method)),
        (Some(id), None, None) => match message.remove("result") {
            Some(result) => Ok(Message::Answer(id, Ok(result))),
            None => wrong("an answer without a result"),
        },
        (id, None, Some(error)) => {
            let text = error.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
            Ok(Message::Answer(id.unwrap_or_default(), Err(one_line(text, 1000))))
        }
        _ => wrong("a message that is neither a request nor an answer"),
    }
}

/// The answer to a request.
pub fn answer(id: Value, outcome: Result<Value, RpcError>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(RpcError { code, text }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart() {
        let request = |id: Value| Ok(Message::Request { id, method: "m".to_owned(), params: json!([1]) });
        let answer =
            |id: Value, answer: Result<Value, &str>| Ok(Message::Answer(id, answer.map_err(str::to_owned)));
        let wrong = |code, text: &str| Err(RpcError::new(code, text));
        for (line, expected) in [
            (r#"{"id":1,"method":"m","params":[1]}"#, request(json!(1))),
            (r#"{"id":"a","method":"m","params":[1]}"#, request(json!("a"))),
            (r#"{"id":null,"method":"m"}"#, Ok(Message::Notification("m".to_owned()))),
            (r#"{"id":1,"result":null}"#, answer(json!(1), Ok(Value::Null))),
            (r#"{"id":1,"error":{"message":"no"}}"#, answer(json!(1), Err("no"))),
            (r#"{"error":7}"#, answer(Value::Null, Err("it does not say why"))),
            (r#"{"id":1}"#, wrong(NO_MESSAGE, "an answer without a result")),
            (
                r#"{"id":1,"method":5}"#,
                wrong(NO_MESSAGE, "a message that is neither a request nor an answer"),
            ),
            ("{}", wrong(NO_MESSAGE, "a message that is neither a request nor an answer")),
            (
                r#"{"id":[1],"method":"m"}"#,
                wrong(NO_MESSAGE, "a request whose id is neither a number nor a string"),
            ),
            ("[]", wrong(NO_MESSAGE, "a message that is not one JSON object; batches are not supported")),
            ("7", wrong(NO_MESSAGE, "a message that is not one JSON object; batches are not supported")),
        ] {
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        for line in ["{", "\u{feff}{}", "{\"a\":\"\u{0}\"}", &deep] {
            assert_eq!(parse(line.as_bytes()).unwrap_err().code, NOT_JSON, "{line}");
        }
    }
}
