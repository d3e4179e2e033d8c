//! One error type, sorted by whose turn it is to act.
//!
//! A message says what went wrong and why; the hint says what to do next. Converting from a library's error
//! happens where the path or the value is known, so there are few `From`s here.

use serde_json::json;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// A message for a person, and the next step where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Error {
    /// The command line is wrong: the caller's turn.
    Usage(Said),
    /// A flag that the program does not have; `nearest` is filled in from its table.
    UnknownFlag { flag: String, nearest: Option<String> },
    /// A file or variable that the user wrote is missing or wrong: the user's turn, with an editor.
    Config(Said),
    /// The model or its service did not answer: wait, pay, or log in.
    Api(Said),
    /// The service answered that the request itself is wrong, or the agent broke a limit.
    Refused(Said),
    /// A file or a pipe could not be read or written: the machine's turn.
    Io(Said),
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>) -> Error {
        Error::Usage(Said { message: message.into(), hint: None })
    }

    pub(crate) fn config(message: impl Into<String>) -> Error {
        Error::Config(Said { message: message.into(), hint: None })
    }

    pub(crate) fn api(message: impl Into<String>) -> Error {
        Error::Api(Said { message: message.into(), hint: None })
    }

    pub(crate) fn refused(message: impl Into<String>) -> Error {
        Error::Refused(Said { message: message.into(), hint: None })
    }

    pub(crate) fn io(message: impl Into<String>) -> Error {
        Error::Io(Said { message: message.into(), hint: None })
    }

    /// Adds the next step.
    pub(crate) fn hint(mut self, next: impl Into<String>) -> Error {
        match &mut self {
            Error::Usage(said)
            | Error::Config(said)
            | Error::Api(said)
            | Error::Refused(said)
            | Error::Io(said) => said.hint = Some(next.into()),
            Error::UnknownFlag { nearest, .. } => *nearest = Some(next.into()),
        }
        self
    }

    /// The exit code: 1 failed or wrong arguments, 2 configuration, 3 the LLM or its API.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) | Error::UnknownFlag { .. } | Error::Refused(_) | Error::Io(_) => 1,
            Error::Config(_) => 2,
            Error::Api(_) => 3,
        }
    }

    /// One word for programs that read the JSON form.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Error::Usage(_) | Error::UnknownFlag { .. } => "usage",
            Error::Config(_) => "config",
            Error::Api(_) => "api",
            Error::Refused(_) => "refused",
            Error::Io(_) => "io",
        }
    }

    pub(crate) fn message(&self) -> String {
        match self {
            Error::Usage(said)
            | Error::Config(said)
            | Error::Api(said)
            | Error::Refused(said)
            | Error::Io(said) => said.message.clone(),
            Error::UnknownFlag { flag, .. } => format!("unknown option \"{flag}\""),
        }
    }

    pub(crate) fn next_step(&self) -> Option<String> {
        match self {
            Error::Usage(said)
            | Error::Config(said)
            | Error::Api(said)
            | Error::Refused(said)
            | Error::Io(said) => said.hint.clone(),
            Error::UnknownFlag { nearest: Some(near), .. } => Some(format!("did you mean \"{near}\"?")),
            Error::UnknownFlag { nearest: None, .. } => Some("see --help".to_owned()),
        }
    }

    /// The line that a person reads: the message, then the next step.
    pub(crate) fn line(&self) -> String {
        match self.next_step() {
            Some(hint) => format!("{}; {hint}", self.message()),
            None => self.message(),
        }
    }

    /// The form that a program reads.
    pub(crate) fn json(&self) -> String {
        json!({
            "error": { "kind": self.kind(), "message": self.message(), "hint": self.next_step() },
            "exit_code": self.exit_code(),
        })
        .to_string()
    }
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Error {
        match error {
            lexopt::Error::UnexpectedOption(flag) => Error::UnknownFlag { flag, nearest: None },
            lexopt::Error::MissingValue { option: Some(flag) } => {
                Error::usage(format!("option \"{flag}\" needs a value"))
            }
            lexopt::Error::UnexpectedArgument(value) => {
                Error::usage(format!("unexpected argument \"{}\"", value.to_string_lossy()))
            }
            lexopt::Error::UnexpectedValue { option, value } => Error::usage(format!(
                "option \"{option}\" takes no value, got \"{}\"",
                value.to_string_lossy()
            )),
            lexopt::Error::NonUnicodeValue(value) => {
                Error::usage(format!("argument is not valid UTF-8: \"{}\"", value.to_string_lossy()))
            }
            other => Error::usage(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_ends_with_the_next_step() {
        let error = Error::config("agent config not found: x").hint("run \"axe agents init x\"");
        assert_eq!(error.line(), "agent config not found: x; run \"axe agents init x\"");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn the_json_form_has_kind_message_hint_and_code() {
        let value: serde_json::Value = serde_json::from_str(&Error::api("timeout: \"x\"").json()).unwrap();
        assert_eq!(value["error"]["kind"], "api");
        assert_eq!(value["error"]["message"], "timeout: \"x\"");
        assert_eq!(value["exit_code"], 3);
    }
}
