//! HTTP, as far as a call to a model needs it: one POST, one whole answer, a deadline. The only user of minreq.
//!
//! minreq trusts servers and proxies. What it lets through is caught here, and each check says what that is.

pub(crate) mod fault;
pub(crate) mod proxy;
mod tunnel;
pub(crate) mod url;

use crate::base::deadline::Deadline;
use crate::base::http::fault::{Fault, FaultKind, fault, from_io, from_minreq, malformed};
use crate::base::http::proxy::Route;
use crate::base::http::tunnel::Tunnel;
use crate::base::http::url::Url;
use crate::base::text::one_line;
use std::io::{self, Read};
use std::sync::Once;
use std::sync::mpsc::{RecvTimeoutError, channel};

/// The longest body that is read, in bytes. A model's answer is a thousandth of it.
const BODY_CAP: usize = 16 * 1024 * 1024;
/// The longest status line, and all headers together, in bytes.
const HEADERS_CAP: usize = 64 * 1024;
const USER_AGENT: &str = concat!("axe/", env!("CARGO_PKG_VERSION"));
/// What minreq makes up, with status 503, when the connection ends before an answer.
const NO_STATUS_LINE: &str = "Server did not provide a status line";

/// A whole answer, whatever its status; never 1xx or 3xx.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) body: Vec<u8>,
}

/// Sends `body` to `url` by `route`, and waits for the whole answer until `deadline`, to the millisecond.
///
/// At the deadline the request is left to its thread, which ends within a second or with the program.
pub(crate) fn post(
    url: &Url,
    route: &Route,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
    deadline: Deadline,
) -> Result<Answer, Fault> {
    let left = deadline.remaining();
    let late = || fault(FaultKind::Deadline, format!("no answer from {} in time", url.authority()));
    if left.is_zero() {
        return Err(late());
    }
    // A line break in a value would end the headers, and the rest of it would be taken for the body.
    if let Some((name, _)) = headers.iter().find(|(_, value)| !fits_header(value)) {
        return Err(fault(
            FaultKind::NotSent,
            format!("the value of the header {name} has a character that no header can have"),
        ));
    }
    let not_sent = |e: io::Error| fault(FaultKind::NotSent, format!("the request cannot be made: {e}"));
    let mut address = url.clone();
    if url.host.contains(':') {
        tunnel::STAND_IN.clone_into(&mut address.host);
    }
    // minreq counts whole seconds and, without a number, looks into MINREQ_TIMEOUT.
    let mut request = minreq::post(address.to_string())
        .with_header("User-Agent", USER_AGENT)
        .with_header("Accept", "application/json")
        .with_header("Connection", "close")
        .with_headers(headers.iter().map(|(name, value)| (*name, value.trim())))
        .with_body(body)
        .with_timeout(left.as_secs() + 1)
        .with_follow_redirects(false)
        .with_max_headers_size(HEADERS_CAP)
        .with_max_status_line_length(HEADERS_CAP);
    let tunnel = match route {
        Route::Direct => None,
        Route::Tunnel(proxy) => Some(Tunnel::open(url, proxy.as_ref(), deadline).map_err(not_sent)?),
    };
    if let Some(tunnel) = &tunnel {
        let ours = minreq::Proxy::new(format!("127.0.0.1:{}", tunnel.port));
        request = request.with_proxy(ours.map_err(|e| not_sent(io::Error::other(e)))?);
    }

    quiet_panics();
    let (sender, answer) = channel();
    let to = url.clone();
    let thread = std::thread::Builder::new().spawn(move || {
        let _ = sender.send(exchange(request, &to));
    });
    thread.map_err(not_sent)?;
    match answer.recv_timeout(left) {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(why)) => Err(tunnel.and_then(|tunnel| tunnel.fault()).unwrap_or(why)),
        Err(RecvTimeoutError::Timeout) => Err(late()),
        Err(RecvTimeoutError::Disconnected) => {
            Err(malformed(url, "the answer has headers that cannot be read"))
        }
    }
}

/// May `value` be sent as a header? Visible ASCII and spaces; white space at its ends is not sent.
pub(crate) fn fits_header(value: &str) -> bool {
    value.trim().bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

fn exchange(request: minreq::Request, url: &Url) -> Result<Answer, Fault> {
    let mut response = request.send_lazy().map_err(|e| from_minreq(&e, url))?;
    let status = response.status_code;
    if response.reason_phrase == NO_STATUS_LINE {
        return Err(fault(
            FaultKind::Dropped,
            format!("{} closed the connection without an HTTP answer", url.authority()),
        ));
    }
    let header = |name: &str| {
        let mut all = response.headers.iter().filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        all.next().map(|(_, value)| one_line(value, 500)).filter(|value| !value.is_empty())
    };
    match status {
        // minreq takes an interim answer for the final one.
        ..=199 | 600.. => return Err(malformed(url, &format!("the answer is HTTP status {status}"))),
        300..=399 => {
            let to = header("location").map_or_else(|| "nowhere".to_owned(), |to| format!("\"{to}\""));
            return Err(fault(
                FaultKind::Redirect,
                format!("{} redirects to {to} (HTTP {status}); redirects are not followed", url.authority()),
            ));
        }
        _ => {}
    }
    // Where both are given, the chunks decide (RFC 9112, 6.3).
    let chunked = header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let length: Option<usize> = header("content-length").filter(|_| !chunked).and_then(|n| n.parse().ok());
    let answer = Answer {
        status,
        reason: one_line(&response.reason_phrase, 200),
        retry_after: header("retry-after"),
        request_id: header("request-id").or_else(|| header("x-request-id")),
        content_type: header("content-type"),
        body: Vec::new(),
    };
    // These have no body, and without a length minreq would wait for the connection's end.
    let body = if matches!(status, 204 | 205) { Vec::new() } else { read_body(&mut response, length, url)? };
    Ok(Answer { body, ..answer })
}

fn read_body(
    response: &mut minreq::ResponseLazy,
    length: Option<usize>,
    url: &Url,
) -> Result<Vec<u8>, Fault> {
    let too_large = || malformed(url, &format!("the answer is larger than {} MiB", BODY_CAP >> 20));
    if length.is_some_and(|length| length > BODY_CAP) {
        return Err(too_large());
    }
    let mut body = Vec::with_capacity(length.unwrap_or(0).min(256 * 1024));
    response.take(BODY_CAP as u64 + 1).read_to_end(&mut body).map_err(|e| from_io(&e, url))?;
    if body.len() > BODY_CAP {
        return Err(too_large());
    }
    // A connection that ends early looks to minreq like the end of the body. Of a body in chunks there is
    // no length to compare with: its reader must see for itself whether it is whole.
    match length {
        Some(length) if body.len() < length => Err(fault(
            FaultKind::Dropped,
            format!("{} closed the connection after {} of {length} bytes", url.authority(), body.len()),
        )),
        _ => Ok(body),
    }
}

/// minreq panics on some headers, in a thread of its own. We report that as an error; a second report, with
/// a line of minreq's source, helps nobody.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.location().is_some_and(|at| at.file().contains("minreq")) {
                before(panic);
            }
        }));
    });
}

#[cfg(test)]
mod tests;
