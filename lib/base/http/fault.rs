//! Why there is no whole answer: minreq's errors, and std's, as what they mean for the connection.

use crate::base::http::url::Url;
use crate::base::text::one_line;
use std::io::{self, ErrorKind};

/// Why there is no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Deadline,
    Refused,
    /// Closed or reset before the answer was whole: it may go well the next time.
    Dropped,
    /// The host has no address, or no way leads there.
    Unreachable,
    Tls,
    Proxy,
    Redirect,
    /// Not HTTP as we know it, or larger than any answer is.
    Malformed,
    /// The request was not sent: it cannot be, or the machine is out of something.
    NotSent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// One line that names host and port.
    pub(crate) message: String,
}

pub(crate) fn from_minreq(error: &minreq::Error, url: &Url) -> Fault {
    match error {
        minreq::Error::IoError(e) => from_io(e, url),
        minreq::Error::RustlsCreateConnection(e) => tls(url, &e.to_string()),
        minreq::Error::HeadersOverflow | minreq::Error::StatusLineOverflow => {
            malformed(url, "the answer's headers are larger than any answer's")
        }
        minreq::Error::AddressNotFound => {
            fault(FaultKind::Unreachable, format!("{}: the host has no address", url.authority()))
        }
        other => malformed(url, &other.to_string()),
    }
}

/// `error`, which may be wrapped in others, as what it means for the connection to `url`.
pub(crate) fn from_io(error: &io::Error, url: &Url) -> Fault {
    let to = url.authority();
    let (kind, why) = innermost(error);
    match kind {
        ErrorKind::ConnectionRefused => fault(FaultKind::Refused, format!("connection refused: {to}")),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            fault(FaultKind::Deadline, format!("no answer from {to} in time"))
        }
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => {
            fault(FaultKind::Dropped, format!("{to} closed the connection before the answer was whole"))
        }
        // rustls reports what it does not accept as invalid data: certificates too.
        ErrorKind::InvalidData if url.https => tls(url, &why),
        ErrorKind::InvalidData | ErrorKind::InvalidInput => malformed(url, &why),
        // std's error for a name that does not resolve has no kind of its own.
        _ if why.contains("lookup address") => fault(
            FaultKind::Unreachable,
            format!("host \"{}\" (port {}) not found: {why}", url.host, url.port),
        ),
        ErrorKind::Other => malformed(url, &why),
        _ => fault(FaultKind::Unreachable, format!("{to}: {why}")),
    }
}

/// minreq wraps an error inside a body in others; the kind that tells is the innermost one.
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

pub(crate) fn fault(kind: FaultKind, message: String) -> Fault {
    Fault { kind, message }
}

fn tls(url: &Url, why: &str) -> Fault {
    fault(FaultKind::Tls, format!("TLS with {} failed: {}", url.authority(), one_line(why, 300)))
}

pub(crate) fn malformed(url: &Url, why: &str) -> Fault {
    fault(FaultKind::Malformed, format!("{}: {}", url.authority(), one_line(why, 300)))
}
