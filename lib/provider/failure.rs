//! A call that brought no reply, and why.

use crate::base::error::Error;
use std::fmt;

/// Why a call failed, as far as a caller acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Auth,
    RateLimit,
    Overloaded,
    Timeout,
    BadRequest,
    Server,
}

/// A call that brought no reply: `<category>: <message>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) category: Category,
    /// One line, fit for a terminal.
    pub(crate) message: String,
    /// Further tries that were made before giving up.
    pub(crate) retries: u32,
    /// What to do next, where that is known.
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(category: Category, message: impl Into<String>) -> Failure {
        Failure { category, message: message.into(), retries: 0, hint: None }
    }
}

impl fmt::Display for Failure {
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

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        let line = match failure.retries {
            0 => failure.to_string(),
            more => format!("{failure} (tried {} times)", more + 1),
        };
        let error = match failure.category {
            Category::BadRequest => Error::refused(line),
            _ => Error::api(line),
        };
        match failure.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
