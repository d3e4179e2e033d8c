//! HTTP, as much as a model call needs: one POST, one complete response, a deadline. The only user of minreq.
//!
//! minreq trusts servers and proxies. The checks here catch what it lets through, and each says what that is.

pub mod error;
pub mod proxy;
pub mod url;

use crate::base::deadline::Deadline;
use crate::base::http::error::{HttpError, HttpErrorKind, HttpResult};
use crate::base::http::proxy::Route;
use crate::base::http::url::Url;
use crate::base::sync::spawn;
use crate::base::text::one_line;
use std::io::{self, Read};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};

/// The longest body that is read, in bytes. A model's answer is about a thousandth of that.
const BODY_CAP: usize = 16 * 1024 * 1024;
/// The longest stream, in bytes: each word of an answer comes in an event of its own.
const STREAM_CAP: usize = 64 * BODY_CAP;
/// The content types of streams: server-sent events, and JSON lines.
const STREAMS: [&str; 3] = ["event-stream", "ndjson", "jsonl"];
const ACCEPT_STREAM: &str = "text/event-stream, application/x-ndjson, application/json";
/// The longest status line, and all headers together, in bytes.
const HEADERS_CAP: usize = 64 * 1024;
const USER_AGENT: &str = concat!("axe/", env!("CARGO_PKG_VERSION"));
/// What minreq invents, with status 503, when the connection ends before a response.
const NO_STATUS_LINE: &str = "Server did not provide a status line";

/// Gets the body of a stream. Returns whether it wants more.
pub type OnPiece<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

/// A complete response of any status except 1xx and 3xx.
#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    pub reason: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// A header's value, if it has one, on one line.
    pub fn header(&self, name: &str) -> Option<String> {
        self.values(name).next()
    }

    fn values(&self, name: &str) -> impl Iterator<Item = String> {
        let named = self.headers.iter().filter(move |(key, _)| key.trim().eq_ignore_ascii_case(name));
        named.map(|(_, value)| one_line(value, 500)).filter(|value| !value.is_empty())
    }
}

impl Route {
    /// Sends `body` to `url` by this route, and waits for the complete response until `deadline`, to the millisecond.
    ///
    /// At the deadline the request is left to its thread, which ends within a second or with the program.
    ///
    /// With `on_piece`, the body of a response that is a stream goes there as it comes, until no more is wanted.
    pub fn post(
        &self,
        url: &Url,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
        deadline: Deadline,
        mut on_piece: Option<OnPiece>,
    ) -> HttpResult<Response> {
        let left = deadline.remaining();
        if left.is_zero() {
            return Err(HttpError::late(&url.authority()));
        }
        // A line break in a value would end the headers, and the rest of it would be taken for the body.
        if let Some((name, _)) = headers.iter().find(|(_, value)| !fits_header(value)) {
            let why = format!("the value of the header {name} contains a character that headers cannot have");
            return Err(HttpError::other(why));
        }
        // minreq counts whole seconds and, without a number, reads MINREQ_TIMEOUT.
        let request = minreq::post(url.to_string())
            .with_header("User-Agent", USER_AGENT)
            .with_header("Accept", if on_piece.is_some() { ACCEPT_STREAM } else { "application/json" })
            .with_header("Connection", "close")
            .with_headers(headers.iter().map(|(name, value)| (*name, value.trim())))
            .with_body(body)
            .with_timeout(left.as_secs() + 1)
            .with_follow_redirects(false)
            .with_max_headers_size(HEADERS_CAP)
            .with_max_status_line_length(HEADERS_CAP);
        // Few: a reader that is slower than the server slows it down.
        let (sender, arrivals) = sync_channel(16);
        let (to, route) = (url.clone(), self.clone());
        let pieces = on_piece.is_some().then(|| sender.clone());
        spawn(move || {
            let ended = route.lead(request, &to, deadline).and_then(|request| exchange(request, &to, pieces));
            let _ = sender.send(Arrival::Ended(ended));
        })
        .map_err(HttpError::not_sent)?;
        loop {
            return match arrivals.recv_timeout(deadline.remaining()) {
                Ok(Arrival::Piece(piece)) => {
                    if on_piece.as_mut().is_none_or(|on_piece| on_piece(&piece)) {
                        continue;
                    }
                    // The thread ends with its next piece, or with the program.
                    Ok(Response { status: 200, ..Response::default() })
                }
                Ok(Arrival::Ended(ended)) => ended,
                Err(RecvTimeoutError::Timeout) => Err(HttpError::late(&url.authority())),
                // minreq panics on headers that end exactly at the cap.
                Err(RecvTimeoutError::Disconnected) => {
                    Err(HttpError::malformed(url, "the headers of the response cannot be read"))
                }
            };
        }
    }
}

/// What the thread that has the connection reports.
enum Arrival {
    Piece(Vec<u8>),
    Ended(HttpResult<Response>),
}

/// Whether `value` may be sent as a header. Visible ASCII and spaces; leading and trailing white space is not sent.
pub fn fits_header(value: &str) -> bool {
    value.trim().bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

fn exchange(
    request: minreq::Request,
    url: &Url,
    pieces: Option<SyncSender<Arrival>>,
) -> HttpResult<Response> {
    let mut sent = request.send_lazy().map_err(|e| HttpError::from_minreq(&e, url))?;
    if sent.reason_phrase == NO_STATUS_LINE {
        let why = format!("{} closed the connection without an HTTP response", url.authority());
        return Err(HttpError::new(HttpErrorKind::Dropped, why));
    }
    let response = Response {
        status: sent.status_code,
        reason: one_line(&sent.reason_phrase, 200),
        headers: std::mem::take(&mut sent.headers),
        body: Vec::new(),
    };
    check_head(&response, url)?;
    let kind = response.header("content-type").unwrap_or_default().to_ascii_lowercase();
    let is_stream = response.status < 300 && STREAMS.iter().any(|stream| kind.contains(stream));
    let body = match pieces.filter(|_| is_stream) {
        Some(pieces) => pass_on(&mut sent, &pieces, url).map(|()| Vec::new()),
        // These have no body, and without a length minreq would wait for the end of the connection.
        None if matches!(response.status, 204 | 205) => Ok(Vec::new()),
        None => read_body(&mut sent, &response, url),
    };
    body.map(|body| Response { body, ..response })
}

/// Refuses a response that minreq would misread, or that is no answer.
fn check_head(response: &Response, url: &Url) -> HttpResult<()> {
    let status = response.status;
    let malformed = |why: String| Err(HttpError::malformed(url, &why));
    match status {
        // minreq takes an interim response for the final one.
        100..=199 => {
            malformed(format!("the response has HTTP status {status}, an interim one that was not asked for"))
        }
        ..=99 | 600.. => malformed(format!("the response has HTTP status {status}")),
        300..=399 => {
            let to = response.header("location").map_or("nowhere".to_owned(), |to| format!("\"{to}\""));
            let from = url.authority();
            let why = format!("{from} redirects to {to} (HTTP {status}); redirects are not followed");
            Err(HttpError::other(why))
        }
        // minreq takes the last one, and whoever wrote the other meant another body.
        _ => match response.values("content-length").collect::<Vec<_>>().as_slice() {
            [first, others @ ..] if others.iter().any(|other| other != first) => malformed(format!(
                "the response has two lengths, {first} and {} bytes",
                others.iter().find(|other| *other != first).unwrap_or(first)
            )),
            _ => Ok(()),
        },
    }
}

/// Sends a body piece by piece, as it comes, until its end or until nobody waits for it.
fn pass_on(response: &mut minreq::ResponseLazy, pieces: &SyncSender<Arrival>, url: &Url) -> HttpResult<()> {
    let mut buffer = vec![0; 16 * 1024];
    let mut total = 0;
    loop {
        let n = match response.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(HttpError::from_io(&e, url)),
        };
        total += n;
        if total > STREAM_CAP {
            let why = format!("the stream is larger than {} MiB", STREAM_CAP >> 20);
            return Err(HttpError::malformed(url, &why));
        }
        if pieces.send(Arrival::Piece(buffer[..n].to_vec())).is_err() {
            return Ok(());
        }
    }
}

fn read_body(body: &mut minreq::ResponseLazy, head: &Response, url: &Url) -> HttpResult<Vec<u8>> {
    let too_large =
        || HttpError::malformed(url, &format!("the response is larger than {} MiB", BODY_CAP >> 20));
    // Where both are given, the chunks decide (RFC 9112, 6.3).
    let is_chunked =
        head.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let length: Option<usize> =
        head.header("content-length").filter(|_| !is_chunked).and_then(|n| n.parse().ok());
    if length.is_some_and(|length| length > BODY_CAP) {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(length.unwrap_or(0).min(256 * 1024));
    body.take(BODY_CAP as u64 + 1).read_to_end(&mut bytes).map_err(|e| HttpError::from_io(&e, url))?;
    if bytes.len() > BODY_CAP {
        return Err(too_large());
    }
    // A connection that ends early looks to minreq like the end of the body. A chunked body has no length to
    // compare with: its reader must check that it is complete.
    match length {
        Some(length) if bytes.len() < length => Err(HttpError::new(
            HttpErrorKind::Dropped,
            format!("{} closed the connection after {} of {length} bytes", url.authority(), bytes.len()),
        )),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests;
