//! The one error type: what kind it is, what went wrong, what to do next, and the cause.
//!
//! The kind says who has to act, and determines the exit code. Most library errors are converted where the path or the
//! value is known, so there are few `From`s here.

use serde_json::{Value, json};
use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it is. Its name in JSON is that of the variant, in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments, or an input that the caller gave, are wrong.
    Usage,
    /// What was asked for does not exist.
    NotFound,
    /// Another program is using it. Try again later.
    Busy,
    /// It has changed, or would overwrite what somebody else wrote.
    Conflict,
    /// A file of ours contains something that we did not write.
    Corrupt,
    /// A file or variable that the user wrote is missing or wrong.
    Config,
    /// The model or its service did not answer, or its answer cannot be used.
    Api,
    /// The service answered that the request itself is wrong, or the agent broke a limit.
    Refused,
    /// The token budget of the run does not allow another call.
    Budget,
    /// The limit of a day or a month does not allow another call.
    Limit,
    /// A file or a pipe could not be read or written.
    Io,
}

impl ErrorKind {
    /// 1: failed, or wrong arguments. 2: configuration. 3: the LLM or its API. 4: a budget.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Usage
            | ErrorKind::NotFound
            | ErrorKind::Busy
            | ErrorKind::Conflict
            | ErrorKind::Corrupt
            | ErrorKind::Refused
            | ErrorKind::Io => 1,
            ErrorKind::Config => 2,
            ErrorKind::Api => 3,
            ErrorKind::Budget | ErrorKind::Limit => 4,
        }
    }
}

/// One of several things wrong with an input, and where in it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fault {
    /// The path of the field, like `entries[0].title`; empty for the input as a whole.
    pub path: String,
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// What went wrong, for a person and for a program.
#[derive(Debug)]
#[must_use]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<Box<str>>,
    faults: Vec<Fault>,
    /// What was done before it failed, for a program.
    run: Option<Box<Value>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: None, faults: Vec::new(), run: None, source: None }
    }

    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    /// An argument that the program does not take.
    pub fn unexpected(argument: &str) -> Error {
        Error::usage(format!("unexpected argument \"{argument}\"")).hint("see --help")
    }

    /// An option without a text in it.
    pub fn empty(option: &str) -> Error {
        Error::usage(format!("option \"{option}\" is empty"))
    }

    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotFound, message)
    }

    pub fn busy(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Busy, message)
    }

    pub fn conflict(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Conflict, message)
    }

    pub fn corrupt(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corrupt, message)
    }

    pub fn config(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Config, message)
    }

    pub fn api(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Api, message)
    }

    pub fn refused(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Refused, message)
    }

    pub fn io(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Io, message)
    }

    /// Adds the next step.
    pub fn hint(mut self, next: impl Into<String>) -> Error {
        self.hint = Some(next.into().into_boxed_str());
        self
    }

    /// Adds the cause.
    pub fn because(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.source = Some(source.into());
        self
    }

    /// Adds the individual faults.
    pub fn with_faults(mut self, faults: Vec<Fault>) -> Error {
        self.faults = faults;
        self
    }

    /// Adds what was done before.
    pub fn with_run(mut self, run: Value) -> Error {
        self.run = Some(Box::new(run));
        self
    }

    /// The same error with another kind.
    pub fn of_kind(mut self, kind: ErrorKind) -> Error {
        self.kind = kind;
        self
    }

    /// The same error with `words` before its message: what the program was doing.
    pub fn context(mut self, words: impl fmt::Display) -> Error {
        self.message = format!("{words}: {}", self.message);
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// 1: failed, or wrong arguments. 2: configuration. 3: the LLM or its API. 4: a budget.
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    /// What to do next, if anything.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The line that a person reads: the message, then the next step.
    pub fn line(&self) -> String {
        match self.next_step() {
            Some(hint) => format!("{}; {hint}", self.message),
            None => self.message.clone(),
        }
    }

    /// The form that a program reads, with the warnings before it.
    pub fn json(&self, warnings: Vec<String>) -> String {
        let mut error = json!({ "kind": self.kind, "message": self.message, "hint": self.next_step() });
        if !self.faults.is_empty() {
            error["faults"] = json!(self.faults);
        }
        let mut whole = json!({ "error": error, "exit_code": self.exit_code() });
        if let Some(run) = &self.run {
            whole["run"] = (**run).clone();
        }
        if !warnings.is_empty() {
            let plain = |line: &String| line.replacen("Warning: ", "", 1);
            whole["warnings"] = warnings.iter().map(plain).collect();
        }
        whole.to_string()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// fs-err's errors name the path: "failed to open file `x`: No such file or directory (os error 2)" becomes
/// `cannot open file "x": No such file or directory`.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::io(told(&error)).because(error)
    }
}

/// The error for a value that has no form in JSON.
pub fn unwritable(error: serde_json::Error) -> Error {
    Error::io(format!("cannot write JSON: {error}"))
}

/// The text for people.
pub fn told(error: &std::io::Error) -> String {
    let whole = error.to_string();
    let text = whole.rsplit_once(" (os error ").map_or(&*whole, |(text, _)| text);
    let named = text.strip_prefix("failed to ").and_then(|text| {
        let (what, rest) = text.split_once(" `")?;
        let (path, why) = rest.rsplit_once("`: ")?;
        Some(format!("cannot {what} \"{path}\": {why}"))
    });
    named.unwrap_or_else(|| text.to_owned())
}

/// The same without what was tried and where, for a message that says so itself.
pub fn reason(error: &std::io::Error) -> String {
    let whole = told(error);
    whole.rsplit_once("\": ").map_or(whole.as_str(), |(_, why)| why).to_owned()
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Error {
        match error {
            lexopt::Error::MissingValue { option: Some(flag) } => {
                Error::usage(format!("option \"{flag}\" needs a value"))
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
        let value: serde_json::Value =
            serde_json::from_str(&Error::api("timeout: \"x\"").json(Vec::new())).unwrap();
        assert_eq!(value["error"]["kind"], "api");
        assert_eq!(value["error"]["message"], "timeout: \"x\"");
        assert_eq!(value["exit_code"], 3);
    }
}
