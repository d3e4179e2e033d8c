//! A call that went wrong: what to tell, and whether another try, or another form of the request, may help.

use crate::base::http::Answer;
use crate::base::http::fault::{Fault, FaultKind};
use crate::base::text::one_line;
use crate::config::global::Api;
use crate::provider::failure::{Category, Failure};
use crate::provider::message::Request;
use crate::provider::wire::Dialect;
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) failure: Failure,
    /// The same request may go well in a moment.
    pub(crate) passing: bool,
    /// The header, as it came.
    pub(crate) retry_after: Option<String>,
    /// What the model does not take.
    pub(crate) unwanted: Option<Parameter>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameter {
    Temperature,
    MaxTokens,
}

impl Trouble {
    pub(crate) fn lasting(failure: Failure) -> Trouble {
        Trouble { failure, passing: false, retry_after: None, unwanted: None }
    }

    /// The connection ended within a document that its reader needs whole.
    pub(crate) fn broke_off(bytes: usize) -> Trouble {
        let message = match bytes {
            0 => "the reply is empty".to_owned(),
            n => format!("the reply broke off after {n} bytes"),
        };
        Trouble { passing: true, ..Trouble::lasting(Failure::new(Category::Server, message)) }
    }

    /// An answer with this status, or one of 200 whose body is an error.
    pub(crate) fn from_answer(status: u16, answer: &Answer) -> Trouble {
        let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        let mut message = one_line(&said(&body).unwrap_or_else(|| status_text(status, &answer.reason)), 1000);
        if let Some(id) = &answer.request_id {
            message = format!("{message} [{}]", one_line(id, 100));
        }
        Trouble {
            failure: Failure::new(category(status), message),
            passing: matches!(status, 408 | 429 | 500 | 502 | 503 | 504 | 529) && !needs_money(&body),
            retry_after: answer.retry_after.clone(),
            unwanted: if status == 400 { unwanted(&body) } else { None },
        }
    }

    pub(crate) fn from_fault(fault: Fault) -> Trouble {
        let category = match fault.kind {
            FaultKind::Deadline => Category::Timeout,
            FaultKind::Refused
            | FaultKind::Dropped
            | FaultKind::Unreachable
            | FaultKind::Tls
            | FaultKind::Proxy
            | FaultKind::Redirect
            | FaultKind::Malformed
            | FaultKind::NotSent => Category::Server,
        };
        let passing = fault.kind == FaultKind::Dropped;
        Trouble { passing, ..Trouble::lasting(Failure::new(category, fault.message)) }
    }

    /// How to ask instead, and what the user should know of it; `None` where there is no other way, it
    /// was taken already, or what is not wanted was not sent.
    pub(crate) fn other_way(&self, api: Api, request: &Request, now: Dialect) -> Option<(Dialect, String)> {
        match self.unwanted? {
            Parameter::Temperature if request.temperature.is_some() && !now.no_temperature => Some((
                Dialect { no_temperature: true, ..now },
                format!("temperature was left out: {}", self.failure.message),
            )),
            Parameter::MaxTokens
                if api == Api::OpenAi && request.max_tokens.is_some() && !now.new_max_tokens =>
            {
                Some((Dialect { new_max_tokens: true, ..now }, String::new()))
            }
            Parameter::Temperature | Parameter::MaxTokens => None,
        }
    }
}

/// The status that an answer of 200 should have had: its body is an error. Proxies in front of models do so.
pub(crate) fn hidden_status(error: &Value) -> u16 {
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
        // Of the rest we cannot know that it passes.
        _ => 200,
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

/// The message of an error body: `error.message`, `error` or `message`.
fn said(body: &Value) -> Option<String> {
    [body.pointer("/error/message"), body.get("error"), body.get("message")]
        .into_iter()
        .flatten()
        .find_map(|value| value.as_str().map(str::trim).filter(|text| !text.is_empty()))
        .map(str::to_owned)
}

fn status_text(status: u16, reason: &str) -> String {
    match status {
        _ if !reason.is_empty() => reason.to_owned(),
        400 => "Bad Request".to_owned(),
        401 => "Unauthorized".to_owned(),
        402 => "Payment Required".to_owned(),
        403 => "Forbidden".to_owned(),
        404 => "Not Found".to_owned(),
        405 => "Method Not Allowed".to_owned(),
        408 => "Request Timeout".to_owned(),
        413 => "Request Entity Too Large".to_owned(),
        415 => "Unsupported Media Type".to_owned(),
        422 => "Unprocessable Entity".to_owned(),
        429 => "Too Many Requests".to_owned(),
        500 => "Internal Server Error".to_owned(),
        502 => "Bad Gateway".to_owned(),
        503 => "Service Unavailable".to_owned(),
        504 => "Gateway Timeout".to_owned(),
        status => format!("HTTP status {status}"),
    }
}

/// A used-up quota or an unpaid bill looks like a rate limit, and does not pass by waiting.
fn needs_money(body: &Value) -> bool {
    ["/error/code", "/error/type", "/error/details/error_code", "/error/details/code", "/code", "/type"]
        .into_iter()
        .filter_map(|at| body.pointer(at).and_then(Value::as_str))
        .any(|code| ["quota", "billing", "spend_limit", "credit"].iter().any(|word| code.contains(word)))
}

/// The parameter that a 400 is about: by `error.param`, or by a message that calls it not supported.
fn unwanted(body: &Value) -> Option<Parameter> {
    match body.pointer("/error/param").and_then(Value::as_str) {
        Some("temperature") => return Some(Parameter::Temperature),
        Some("max_tokens") => return Some(Parameter::MaxTokens),
        Some(_) => return None,
        None => {}
    }
    let message = said(body)?.to_lowercase();
    let refused = ["unsupported", "not support", "deprecated", "not allowed", "not permitted", "instead"];
    if !refused.iter().any(|word| message.contains(word)) {
        return None;
    }
    match (message.contains("temperature"), message.contains("max_tokens")) {
        (true, _) => Some(Parameter::Temperature),
        (false, true) => Some(Parameter::MaxTokens),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::examples::plain;

    fn trouble(status: u16, body: &str) -> Trouble {
        Trouble::from_answer(
            status,
            &Answer {
                status,
                reason: "The Reason".into(),
                retry_after: None,
                request_id: None,
                content_type: None,
                body: body.into(),
            },
        )
    }

    #[test]
    fn every_status_has_its_category() {
        for (category, statuses) in [
            ("auth", &[401, 403][..]),
            ("rate_limit", &[402, 429]),
            ("overloaded", &[529]),
            ("timeout", &[408]),
            ("bad_request", &[400, 404, 405, 413, 415, 422]),
            ("server", &[200, 406, 409, 418, 500, 501, 502, 503, 504]),
        ] {
            for status in statuses {
                assert_eq!(
                    trouble(*status, "").failure.to_string(),
                    format!("{category}: The Reason"),
                    "{status}"
                );
            }
        }
    }

    #[test]
    fn only_what_passes_is_tried_again() {
        for status in [408, 429, 500, 502, 503, 504, 529] {
            assert!(trouble(status, "").passing, "{status}");
        }
        for status in [400, 401, 402, 403, 404, 409, 413, 422, 501] {
            assert!(!trouble(status, "").passing, "{status}");
        }
        for body in [
            r#"{"error":{"code":"insufficient_quota"}}"#,
            r#"{"error":{"type":"insufficient_quota","code":7}}"#,
            r#"{"error":{"code":"billing_hard_limit_reached"}}"#,
            r#"{"error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
        ] {
            assert!(!trouble(429, body).passing, "{body}");
        }
        assert!(trouble(429, r#"{"error":{"code":"rate_limit_exceeded","message":"quota"}}"#).passing);
    }

    #[test]
    fn messages_are_found_wherever_they_are() {
        for body in [
            r#"{"error":{"message":" it\nbroke ","code":500}}"#,
            r#"{"error":"it\nbroke"}"#,
            r#"{"message":"it\nbroke"}"#,
            r#"{"error":{"message":""},"message":"it\nbroke"}"#,
        ] {
            assert_eq!(trouble(500, body).failure.message, "it broke", "{body}");
        }
        assert_eq!(trouble(500, "<html>").failure.message, "The Reason");
        assert_eq!(status_text(502, ""), "Bad Gateway");
        assert_eq!(status_text(529, ""), "HTTP status 529");
    }

    #[test]
    fn a_parameter_is_named_by_field_or_by_message() {
        for (body, unwanted) in [
            (r#"{"error":{"param":"max_tokens","message":"x"}}"#, Some(Parameter::MaxTokens)),
            (r#"{"error":{"param":"temperature","message":"x"}}"#, Some(Parameter::Temperature)),
            (r#"{"error":{"param":"tools","message":"temperature unsupported"}}"#, None),
            (
                r#"{"error":{"message":"`temperature` is deprecated for this model"}}"#,
                Some(Parameter::Temperature),
            ),
            (
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'"}}"#,
                Some(Parameter::MaxTokens),
            ),
            (r#"{"error":{"message":"max_tokens: 9 > 8, which is the maximum"}}"#, None),
            (r#"{"error":"model does not support tools"}"#, None),
        ] {
            assert_eq!(trouble(400, body).unwanted, unwanted, "{body}");
            assert_eq!(trouble(422, body).unwanted, None);
        }
    }

    #[test]
    fn each_other_way_is_taken_once() {
        let sent = Request { temperature: Some(0.3), max_tokens: Some(9), ..plain() };
        let renamed = trouble(400, r#"{"error":{"param":"max_tokens"}}"#);
        let (dialect, note) = renamed.other_way(Api::OpenAi, &sent, Dialect::default()).unwrap();
        assert!(dialect.new_max_tokens && note.is_empty());
        assert_eq!(renamed.other_way(Api::OpenAi, &sent, dialect), None);
        assert_eq!(renamed.other_way(Api::Anthropic, &sent, Dialect::default()), None);
        let dropped = trouble(400, r#"{"error":{"param":"temperature","message":"no"}}"#);
        let (dialect, note) = dropped.other_way(Api::OpenAi, &sent, dialect).unwrap();
        assert_eq!(dialect, Dialect { no_temperature: true, new_max_tokens: true });
        assert_eq!(note, "temperature was left out: no");
        assert_eq!(renamed.other_way(Api::OpenAi, &plain(), Dialect::default()), None);
        assert_eq!(dropped.other_way(Api::OpenAi, &plain(), Dialect::default()), None);
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
