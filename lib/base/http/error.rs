//! Why a request has no complete response: errors of minreq and std, translated to what they mean for the
//! connection.

use crate::base::http::url::Url;
use crate::base::text::one_line;
use std::io::{self, ErrorKind};

/// What a caller can do something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpErrorKind {
    Deadline,
    Refused,
    /// Closed or reset before the response was complete: the next attempt may succeed.
    Dropped,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpError {
    pub kind: HttpErrorKind,
    /// One line that names host and port.
    pub message: String,
}

pub type HttpResult<T> = Result<T, HttpError>;

impl HttpError {
    pub(super) fn new(kind: HttpErrorKind, message: impl Into<String>) -> HttpError {
        HttpError { kind, message: message.into() }
    }

    pub(super) fn other(message: String) -> HttpError {
        HttpError::new(HttpErrorKind::Other, message)
    }

    pub(super) fn not_sent(error: impl std::fmt::Display) -> HttpError {
        HttpError::other(format!("the request cannot be sent: {error}"))
    }

    pub(super) fn late(peer: &str) -> HttpError {
        HttpError::new(HttpErrorKind::Deadline, format!("no answer from {peer} in time"))
    }

    /// What the server sends is not valid HTTP, or larger than any response should be.
    pub(super) fn malformed(url: &Url, why: &str) -> HttpError {
        HttpError::other(format!("{}: {}", url.authority(), one_line(why, 300)))
    }

    fn tls(url: &Url, why: &str) -> HttpError {
        let why = in_words(&one_line(why, 300));
        HttpError::other(format!("TLS with {} failed: {why}", url.authority()))
    }

    pub(super) fn from_minreq(error: &minreq::Error, url: &Url) -> HttpError {
        match error {
            minreq::Error::IoError(e) => HttpError::from_io(e, url),
            minreq::Error::RustlsCreateConnection(e) => HttpError::tls(url, &e.to_string()),
            minreq::Error::HeadersOverflow | minreq::Error::StatusLineOverflow => {
                HttpError::malformed(url, "the headers of the response are too large")
            }
            minreq::Error::AddressNotFound => HttpError::malformed(url, "the host has no address"),
            other => HttpError::malformed(url, &other.to_string()),
        }
    }

    pub(super) fn from_io(error: &io::Error, url: &Url) -> HttpError {
        let to = url.authority();
        let (kind, why) = innermost(error);
        match kind {
            ErrorKind::ConnectionRefused => {
                HttpError::new(HttpErrorKind::Refused, format!("connection refused: {to}"))
            }
            ErrorKind::TimedOut | ErrorKind::WouldBlock => HttpError::late(&to),
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof => HttpError::new(
                HttpErrorKind::Dropped,
                format!("{to} closed the connection before the response was complete"),
            ),
            // rustls reports everything that it rejects as invalid data, certificates included.
            ErrorKind::InvalidData if url.https => HttpError::tls(url, &why),
            // std's error for a name that does not resolve has no kind of its own.
            _ if why.contains("lookup address") => {
                HttpError::other(format!("host \"{}\" (port {}) not found: {why}", url.host, url.port))
            }
            // The message of the number that a chunk begins with.
            ErrorKind::Other if why.contains("digit") || why.contains("number too large") => {
                HttpError::malformed(url, "a chunk of the response has no valid size")
            }
            _ => HttpError::malformed(url, &why),
        }
    }
}

/// What rustls says, for people who do not know its types.
fn in_words(why: &str) -> String {
    let known = [
        ("InvalidContentType", "the server does not speak TLS; use http:// if that is meant"),
        (
            "UnknownIssuer",
            "no authority that this machine trusts has signed its certificate; SSL_CERT_FILE can name others",
        ),
        (
            "No CA certificates were loaded",
            "no certificates of authorities were found; install ca-certificates, or set SSL_CERT_FILE to a file with some",
        ),
        ("CaUsedAsEndEntity", "its certificate is an authority's, not a server's; it may be self-signed"),
        ("Expired", "its certificate has expired"),
        ("NotValidYet", "its certificate is not valid yet"),
        ("NotValidForName", "its certificate is for another host"),
    ];
    match known.iter().find(|(name, _)| why.contains(name)) {
        // rustls' own names are one word.
        Some((name, words)) if !name.contains(' ') => format!("{words} ({name})"),
        Some((_, words)) => (*words).to_owned(),
        None => why.to_owned(),
    }
}

/// minreq wraps an error inside a body in others. The kind that matters is the innermost one.
fn innermost(error: &io::Error) -> (ErrorKind, String) {
    match error.get_ref() {
        Some(inner) if error.kind() == ErrorKind::Other => {
            match (inner.downcast_ref::<io::Error>(), inner.downcast_ref::<minreq::Error>()) {
                (Some(inner), _) | (None, Some(minreq::Error::IoError(inner))) => innermost(inner),
                _ => (ErrorKind::Other, one_line(&inner.to_string(), 300)),
            }
        }
        _ => (error.kind(), one_line(&error.to_string(), 300)),
    }
}
