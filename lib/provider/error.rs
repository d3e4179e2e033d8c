//! A model call that failed: what to report, and whether another attempt, or another form of the request, may help.

use crate::base::error::Error;
use crate::base::http::Response;
use crate::base::http::error::{HttpError, HttpErrorKind};
use crate::base::text::one_line;
use crate::config::global::Api;
use crate::provider::message::{Dialect, Reply, Request, Unsupported};
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// The byte order mark that some servers put before their text.
pub(super) const MARK: &[u8] = b"\xef\xbb\xbf";
/// A longer body is no message, in bytes.
const PLAIN_CAP: usize = 4096;

/// The first word of the error's line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Category {
    Auth,
    RateLimit,
    Overloaded,
    Timeout,
    BadRequest,
    #[default]
    Server,
}

/// A call without a reply. It reads `<category>: <message>`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallError {
    pub(super) category: Category,
    /// One line, safe on a terminal.
    pub message: String,
    pub(super) hint: Option<String>,
    /// Retries that were made before giving up.
    pub retries: u32,
    /// The same request may succeed in a moment.
    pub(super) is_transient: bool,
    /// Another model may answer: this one is overloaded, out of quota or out of reach.
    pub is_outage: bool,
    /// The header, as it came.
    pub(super) retry_after: Option<String>,
    /// What the model does not accept.
    pub(super) rejected: Option<Unsupported>,
}

pub type CallResult<T = Reply> = std::result::Result<T, CallError>;

impl CallError {
    pub(super) fn new(category: Category, message: impl Into<String>) -> CallError {
        CallError { category, message: message.into(), ..CallError::default() }
    }

    /// An error that the service reports with this status.
    fn of_status(status: u16, body: &Value, message: &str) -> CallError {
        // An exhausted quota or an unpaid bill looks like a rate limit, but waiting does not help.
        let needs_money = needs_money(body);
        CallError {
            is_transient: matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 529) && !needs_money,
            is_outage: matches!(status, 402 | 408 | 429 | 500..) || needs_money,
            ..CallError::new(category(status), one_line(message, 1000))
        }
    }

    pub(super) fn hint(self, next: impl Into<String>) -> CallError {
        CallError { hint: Some(next.into()), ..self }
    }

    pub(super) fn server(message: impl Into<String>) -> CallError {
        CallError::new(Category::Server, message)
    }

    /// The body has a compression that was not asked for, and that we cannot read.
    pub(super) fn compressed(encoding: &str) -> CallError {
        CallError::server(format!("the reply is compressed ({encoding}), which was not asked for"))
    }

    /// The model may be asked only after so long, which is too late.
    pub(super) fn no_turn(wait: Duration) -> CallError {
        let seconds = wait.as_secs_f64().ceil();
        let message = format!("the model may not be asked for another {seconds} s");
        let error = CallError { is_outage: true, ..CallError::new(Category::RateLimit, message) };
        error.hint("try again then, or use a longer --timeout")
    }

    /// Whether the service is busy, whoever asks.
    pub(super) fn stops_all(&self) -> bool {
        self.is_transient && matches!(self.category, Category::RateLimit | Category::Overloaded)
    }

    /// The connection ended inside a document that must be complete.
    pub(super) fn broke_off(bytes: usize) -> CallError {
        let message = match bytes {
            0 => "the reply is empty".to_owned(),
            n => format!("the reply broke off after {n} bytes"),
        };
        CallError { is_transient: true, ..CallError::outage(message) }
    }

    /// The model cannot be reached.
    pub(super) fn outage(message: impl Into<String>) -> CallError {
        CallError { is_outage: true, ..CallError::server(message) }
    }

    /// An error that came in a stream. The request may be repeated only if it `is_first`: what came before was paid for.
    pub(super) fn in_stream(body: &Value, is_first: bool) -> CallError {
        let status = hidden_status(body.get("error").unwrap_or(body));
        let message = message_of(body).unwrap_or_else(|| status_text(status, "the stream has an error"));
        let mut error = CallError::of_status(status, body, &message);
        error.is_transient &= is_first;
        error.is_outage &= is_first;
        error
    }

    /// A response with this status, or one of 200 whose body is an error.
    pub fn from_response(status: u16, response: &Response) -> CallError {
        let body = body_of(&response.body);
        let message = message_of(&body).unwrap_or_else(|| match status {
            200..=299 => "the reply is an error without a message".to_owned(),
            status => status_text(status, &response.reason),
        });
        let mut error = CallError::of_status(status, &body, &message);
        if let Some(id) = response.header("request-id").or_else(|| response.header("x-request-id")) {
            error.message = format!("{} [{}]", error.message, one_line(&id, 100));
        }
        error.retry_after = response.header("retry-after");
        error.rejected = if matches!(status, 400 | 422) { rejected(&body) } else { None };
        error
    }

    /// What to ask without, with a note for the user; `None` if there is no other form, it was already used, or the
    /// rejected parameter was not sent.
    pub fn alternative(
        &self,
        api: Api,
        request: &Request,
        known: &Dialect,
    ) -> Option<(Unsupported, Option<String>)> {
        let rejected = self.rejected.filter(|rejected| !known.contains(rejected))?;
        let (was_sent, note) = match rejected {
            Unsupported::Temperature => (request.temperature.is_some(), Some("temperature was left out")),
            Unsupported::MaxTokens => (api == Api::OpenAi && request.max_tokens.is_some(), None),
            Unsupported::Schema => (
                request.schema.is_some(),
                Some("the schema of the answer is described in the prompt instead"),
            ),
            Unsupported::StreamOptions => (request.is_streamed, None),
        };
        was_sent.then(|| (rejected, note.map(|note| format!("{note}: {}", self.message))))
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let category = match self.category {
            Category::Auth => "auth",
            Category::RateLimit => "rate_limit",
            Category::Overloaded => "overloaded",
            Category::Timeout => "timeout",
            Category::BadRequest => "bad_request",
            Category::Server => "server",
        };
        write!(f, "{category}: {}", self.message)
    }
}

impl From<HttpError> for CallError {
    fn from(error: HttpError) -> CallError {
        let is_transient = error.kind == HttpErrorKind::Dropped;
        match error.kind {
            HttpErrorKind::Deadline => CallError::new(Category::Timeout, error.message),
            _ => CallError { is_transient, ..CallError::outage(error.message) },
        }
    }
}

impl From<CallError> for Error {
    fn from(call: CallError) -> Error {
        let tries =
            if call.retries > 0 { format!(" (tried {} times)", call.retries + 1) } else { String::new() };
        let line = format!("{call}{tries}");
        let is_refused = call.category == Category::BadRequest;
        let error = if is_refused { Error::refused(line) } else { Error::api(line) };
        if let Some(hint) = call.hint { error.hint(hint) } else { error }
    }
}

/// The status that a response of 200 should have had: its body is an error. Proxies in front of models do this.
pub fn hidden_status(error: &Value) -> u16 {
    if let Some(code) = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok())
        && (400..=599).contains(&code)
    {
        return code;
    }
    match error.get("type").and_then(Value::as_str) {
        Some("invalid_request_error") => 400,
        Some("authentication_error") => 401,
        Some("billing_error") => 402,
        Some("permission_error") => 403,
        Some("not_found_error") => 404,
        Some("request_too_large") => 413,
        Some("rate_limit_error") => 429,
        Some("overloaded_error") => 529,
        // The others may last.
        _ => 200,
    }
}

/// An error's body, which should be JSON. A list, as Gemini's errors are, has one item. Of other bodies, plain text is kept.
pub(super) fn body_of(bytes: &[u8]) -> Value {
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes).trim_ascii();
    match serde_json::from_slice(bytes) {
        Ok(Value::Array(mut list)) => list.pop().unwrap_or_default(),
        Ok(body) => body,
        Err(_) if matches!(bytes, [b'<' | b'{', ..]) || bytes.len() > PLAIN_CAP => Value::Null,
        Err(_) => std::str::from_utf8(bytes).map_or(Value::Null, |text| Value::String(one_line(text, 300))),
    }
}

fn category(status: u16) -> Category {
    match status {
        401 | 403 => Category::Auth,
        402 | 429 => Category::RateLimit,
        408 => Category::Timeout,
        529 => Category::Overloaded,
        400 | 404 | 405 | 413 | 415 | 422 => Category::BadRequest,
        _ => Category::Server,
    }
}

/// The message of an error body: `error.message`, `error`, `message`, `detail` or `errors`, or the body itself. OpenRouter
/// adds what the service behind it said.
fn message_of(body: &Value) -> Option<String> {
    let text = |value: &Value| message_in(value, 0);
    let places = ["/error/message", "/error", "/message", "/detail", "/errors", ""];
    let message = places.into_iter().filter_map(|at| body.pointer(at)).find_map(text)?;
    match body.pointer("/error/metadata/raw").and_then(text) {
        Some(cause) => Some(format!("{message}: {}", one_line(&cause, 500))),
        None => Some(message),
    }
}

/// A text, the message of an object with the place that it is about, or those of a list.
fn message_in(value: &Value, depth: u8) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(all) if depth < 2 => {
            all.iter().take(5).filter_map(|one| message_in(one, depth + 1)).collect::<Vec<_>>().join("; ")
        }
        // FastAPI's have `loc` and `msg`.
        Value::Object(fault) if depth == 1 => {
            let said = ["message", "msg", "detail"].iter().find_map(|key| fault.get(*key)?.as_str())?;
            let place = fault.get("loc").and_then(Value::as_array).into_iter().flatten();
            let place: Vec<_> =
                place.map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned)).collect();
            if place.is_empty() { said.to_owned() } else { format!("{}: {said}", place.join(".")) }
        }
        _ => String::new(),
    };
    Some(text).filter(|text| !text.is_empty())
}

fn status_text(status: u16, reason: &str) -> String {
    let standard = match status {
        _ if !reason.is_empty() => reason,
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Request Entity Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        status => return format!("HTTP status {status}"),
    };
    standard.to_owned()
}

/// Whether it says that there is no quota left, or that a bill is not paid.
fn needs_money(body: &Value) -> bool {
    ["/error/code", "/error/type", "/error/details/error_code", "/error/details/code", "/code", "/type"]
        .into_iter()
        .filter_map(|at| body.pointer(at).and_then(Value::as_str))
        .any(|code| ["quota", "billing", "spend_limit", "credit"].iter().any(|word| code.contains(word)))
}

/// The parameter that a 400 is about: by `error.param`, or by a message that says it is not supported.
fn rejected(body: &Value) -> Option<Unsupported> {
    if let Some(name) = body.pointer("/error/param").and_then(Value::as_str) {
        return match name {
            "temperature" => Some(Unsupported::Temperature),
            "max_tokens" => Some(Unsupported::MaxTokens),
            name if name.starts_with("stream_options") => Some(Unsupported::StreamOptions),
            name if name.starts_with("response_format") => Some(Unsupported::Schema),
            name if name.starts_with("output_config") => Some(Unsupported::Schema),
            _ => None,
        };
    }
    let message = message_of(body)?.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let is_unsupported =
        has(&["unsupported", "not support", "deprecated", "not allowed", "not permitted", "instead"]);
    match () {
        () if has(&["stream_options"]) => Some(Unsupported::StreamOptions),
        () if is_unsupported && has(&["temperature"]) => Some(Unsupported::Temperature),
        () if is_unsupported && has(&["max_tokens"]) => Some(Unsupported::MaxTokens),
        // Whatever is wrong with it: the answer is checked here, too.
        () if has(&["response_format", "output_config", "schema", "grammar", "structured output"]) => {
            Some(Unsupported::Schema)
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::examples::plain;

    fn error(status: u16, body: &str) -> CallError {
        let response =
            Response { status, reason: "The Reason".into(), body: body.into(), ..Response::default() };
        CallError::from_response(status, &response)
    }

    #[test]
    fn every_status_has_its_category() {
        for (category, statuses) in [
            ("auth", &[401, 403][..]),
            ("rate_limit", &[402, 429]),
            ("overloaded", &[529]),
            ("timeout", &[408]),
            ("bad_request", &[400, 404, 405, 413, 415, 422]),
            ("server", &[406, 409, 418, 500, 501, 502, 503, 504]),
        ] {
            for status in statuses {
                assert_eq!(error(*status, "").to_string(), format!("{category}: The Reason"), "{status}");
            }
        }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for status in [408, 429, 500, 502, 503, 504, 529] {
            assert!(error(status, "").is_transient, "{status}");
        }
        for status in [400, 401, 402, 403, 404, 409, 413, 422, 501] {
            assert!(!error(status, "").is_transient, "{status}");
        }
        for body in [
            r#"{"error":{"code":"insufficient_quota"}}"#,
            r#"{"error":{"type":"insufficient_quota","code":7}}"#,
            r#"{"error":{"code":"billing_hard_limit_reached"}}"#,
            r#"{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
        ] {
            assert!(!error(429, body).is_transient, "{body}");
        }
        assert!(error(429, r#"{"error":{"code":"rate_limit_exceeded","message":"quota"}}"#).is_transient);
    }

    #[test]
    fn messages_are_found_wherever_they_are() {
        for body in [
            r#"{"error":{"message":" it\nbroke ","code":500}}"#,
            r#"{"error":"it\nbroke"}"#,
            r#"{"message":"it\nbroke"}"#,
            r#"{"error":{"message":""},"message":"it\nbroke"}"#,
        ] {
            assert_eq!(error(500, body).message, "it broke", "{body}");
        }
        assert_eq!(error(500, "<html>").message, "The Reason");
        assert_eq!(status_text(502, ""), "Bad Gateway");
        assert_eq!(status_text(529, ""), "HTTP status 529");
    }

    #[test]
    fn a_parameter_is_named_by_field_or_by_message() {
        for (body, rejected) in [
            (r#"{"error":{"param":"max_tokens","message":"x"}}"#, Some(Unsupported::MaxTokens)),
            (r#"{"error":{"param":"temperature","message":"x"}}"#, Some(Unsupported::Temperature)),
            (r#"{"error":{"param":"tools","message":"temperature unsupported"}}"#, None),
            (
                r#"{"error":{"message":"`temperature` is deprecated for this model"}}"#,
                Some(Unsupported::Temperature),
            ),
            (
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'"}}"#,
                Some(Unsupported::MaxTokens),
            ),
            (r#"{"error":{"message":"max_tokens: 9 > 8, which is the maximum"}}"#, None),
            (r#"{"error":"model does not support tools"}"#, None),
        ] {
            assert_eq!(error(400, body).rejected, rejected, "{body}");
            assert_eq!((error(422, body).rejected, error(500, body).rejected), (rejected, None));
        }
    }

    #[test]
    fn each_alternative_is_taken_once() {
        let sent = Request { temperature: Some(0.3), max_tokens: Some(9), ..plain() };
        let renamed = error(400, r#"{"error":{"param":"max_tokens"}}"#);
        let (rejected, note) = renamed.alternative(Api::OpenAi, &sent, &Dialect::new()).unwrap();
        assert!(rejected == Unsupported::MaxTokens && note.is_none());
        let dialect = Dialect::from([rejected]);
        assert_eq!(renamed.alternative(Api::OpenAi, &sent, &dialect), None);
        assert_eq!(renamed.alternative(Api::Anthropic, &sent, &Dialect::new()), None);
        let dropped = error(400, r#"{"error":{"param":"temperature","message":"no"}}"#);
        let (rejected, note) = dropped.alternative(Api::OpenAi, &sent, &dialect).unwrap();
        assert_eq!(rejected, Unsupported::Temperature);
        assert_eq!(note.as_deref(), Some("temperature was left out: no"));
        assert_eq!(renamed.alternative(Api::OpenAi, &plain(), &Dialect::new()), None);
        assert_eq!(dropped.alternative(Api::OpenAi, &plain(), &Dialect::new()), None);
    }

    #[test]
    fn an_error_in_an_answer_of_200_has_a_status_of_its_own() {
        let status = |text| hidden_status(&serde_json::from_str(text).unwrap());
        assert_eq!(status(r#"{"code":429}"#), 429);
        assert_eq!(status(r#"{"type":"overloaded_error"}"#), 529);
        assert_eq!(status(r#"{"code":"x"}"#), 200);
        assert_eq!(status(r#""boom""#), 200);
    }
}
