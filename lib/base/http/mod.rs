//! HTTP, as much as a model call needs: one POST, one complete response, a deadline. The only user of minreq.
//!
//! minreq trusts servers and proxies. The checks here catch what it lets through, and each says what that is.

mod chunks;
pub(crate) mod error;
pub(crate) mod proxy;
mod relay;
pub(crate) mod url;

use crate::base::deadline::Deadline;
use crate::base::http::error::{HttpError, HttpErrorKind, HttpResult};
use crate::base::http::proxy::Route;
use crate::base::http::relay::{reach, relay};
use crate::base::http::url::Url;
use crate::base::text::one_line;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Gets the body of a stream.
pub(crate) type OnPiece<'a> = &'a mut dyn FnMut(&[u8]);

/// A complete response of any status except 1xx and 3xx.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) body: Vec<u8>,
    /// The connection ended before the last chunk of the body. Never known of one with TLS.
    pub(crate) is_cut: bool,
}

/// Sends `body` to `url` by `route`, and waits for the complete response until `deadline`, to the millisecond.
///
/// At the deadline the request is left to its thread, which ends within a second or with the program.
///
/// With `on_piece`, the body of a response that is a stream goes there as it comes.
pub(crate) fn post(
    url: &Url,
    route: &Route,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
    deadline: Deadline,
    on_piece: Option<OnPiece>,
) -> HttpResult<Response> {
    let left = deadline.remaining();
    if left.is_zero() {
        return Err(HttpError::late(&url.authority()));
    }
    // A line break in a value would end the headers, and the rest of it would be taken for the body.
    if let Some((name, _)) = headers.iter().find(|(_, value)| !fits_header(value)) {
        return Err(HttpError::new(
            HttpErrorKind::NotSent,
            format!("the value of the header {name} contains a character that headers cannot have"),
        ));
    }
    let mut address = url.clone();
    if url.is_ipv6() {
        relay::STAND_IN.clone_into(&mut address.host);
    }
    // minreq counts whole seconds and, without a number, reads MINREQ_TIMEOUT.
    let request = minreq::post(address.to_string())
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
    let (to, route) = (url.clone(), route.clone());
    let pieces = on_piece.is_some().then(|| sender.clone());
    let thread = std::thread::Builder::new().spawn(move || {
        let request = routed(request, &to, &route, deadline);
        let ended = request.and_then(|(request, is_cut)| {
            let mut response = exchange(request, &to, pieces)?;
            response.is_cut = is_cut.is_some_and(|is_cut| is_cut.load(Ordering::SeqCst));
            Ok(response)
        });
        let _ = sender.send(Arrival::Ended(ended));
    });
    thread.map_err(HttpError::not_sent)?;
    let mut on_piece = on_piece;
    loop {
        return match arrivals.recv_timeout(deadline.remaining()) {
            Ok(Arrival::Piece(piece)) => {
                if let Some(on_piece) = &mut on_piece {
                    on_piece(&piece);
                }
                continue;
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

/// What the thread that has the connection reports.
enum Arrival {
    Piece(Vec<u8>),
    Ended(HttpResult<Response>),
}

/// The request with its route, and what tells whether its response was cut.
fn routed(
    request: minreq::Request,
    url: &Url,
    route: &Route,
    deadline: Deadline,
) -> HttpResult<(minreq::Request, Option<Arc<AtomicBool>>)> {
    let proxy = match route {
        Route::Relayed(proxy) => proxy.as_ref(),
        Route::Direct if url.https => return Ok((request, None)),
        Route::Direct => None,
    };
    let connection = match proxy {
        Some(proxy) => proxy.connect(url, deadline)?,
        None => reach(&url.host, url.port, deadline).map_err(|e| HttpError::from_io(&e, url))?,
    };
    let (port, is_cut) = relay(connection, url, deadline).map_err(HttpError::not_sent)?;
    let proxy = minreq::Proxy::new(format!("127.0.0.1:{port}"));
    Ok((request.with_proxy(proxy.map_err(|e| HttpError::not_sent(io::Error::other(e)))?), Some(is_cut)))
}

/// May `value` be sent as a header? Visible ASCII and spaces; leading and trailing white space is not sent.
pub(crate) fn fits_header(value: &str) -> bool {
    value.trim().bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

fn exchange(
    request: minreq::Request,
    url: &Url,
    pieces: Option<SyncSender<Arrival>>,
) -> HttpResult<Response> {
    let mut response = request.send_lazy().map_err(|e| HttpError::from_minreq(&e, url))?;
    let status = response.status_code;
    if response.reason_phrase == NO_STATUS_LINE {
        return Err(HttpError::new(
            HttpErrorKind::Dropped,
            format!("{} closed the connection without an HTTP response", url.authority()),
        ));
    }
    let headers = |name: &'static str| {
        let all = response.headers.iter().filter(move |(key, _)| key.trim().eq_ignore_ascii_case(name));
        all.map(|(_, value)| one_line(value, 500)).filter(|value| !value.is_empty())
    };
    let header = |name| headers(name).next();
    match status {
        // minreq takes an interim response for the final one.
        100..=199 => {
            let why = format!("the response has HTTP status {status}, an interim one that was not asked for");
            return Err(HttpError::malformed(url, &why));
        }
        ..=99 | 600.. => {
            return Err(HttpError::malformed(url, &format!("the response has HTTP status {status}")));
        }
        300..=399 => {
            let to = header("location").map_or_else(|| "nowhere".to_owned(), |to| format!("\"{to}\""));
            return Err(HttpError::new(
                HttpErrorKind::Redirect,
                format!("{} redirects to {to} (HTTP {status}); redirects are not followed", url.authority()),
            ));
        }
        _ => {}
    }
    // minreq takes the last one, and whoever wrote the other meant another body.
    let mut lengths = headers("content-length");
    if let Some(first) = lengths.next()
        && let Some(other) = lengths.find(|other| *other != first)
    {
        let why = format!("the response has two lengths, {first} and {other} bytes");
        return Err(HttpError::malformed(url, &why));
    }
    // Where both are given, the chunks decide (RFC 9112, 6.3).
    let chunked = header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let length: Option<usize> = header("content-length").filter(|_| !chunked).and_then(|n| n.parse().ok());
    let head = Response {
        status,
        reason: one_line(&response.reason_phrase, 200),
        retry_after: header("retry-after"),
        request_id: header("request-id").or_else(|| header("x-request-id")),
        content_type: header("content-type"),
        content_encoding: header("content-encoding"),
        body: Vec::new(),
        is_cut: false,
    };
    let is_stream = |kind: &String| STREAMS.iter().any(|stream| kind.to_ascii_lowercase().contains(stream));
    if let Some(pieces) = pieces.filter(|_| status < 300 && head.content_type.as_ref().is_some_and(is_stream))
    {
        pass_on(&mut response, &pieces, url)?;
        return Ok(head);
    }
    // These have no body, and without a length minreq would wait for the end of the connection.
    let body = if matches!(status, 204 | 205) { Vec::new() } else { read_body(&mut response, length, url)? };
    Ok(Response { body, ..head })
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

fn read_body(response: &mut minreq::ResponseLazy, length: Option<usize>, url: &Url) -> HttpResult<Vec<u8>> {
    let too_large =
        || HttpError::malformed(url, &format!("the response is larger than {} MiB", BODY_CAP >> 20));
    if length.is_some_and(|length| length > BODY_CAP) {
        return Err(too_large());
    }
    let mut body = Vec::with_capacity(length.unwrap_or(0).min(256 * 1024));
    response.take(BODY_CAP as u64 + 1).read_to_end(&mut body).map_err(|e| HttpError::from_io(&e, url))?;
    if body.len() > BODY_CAP {
        return Err(too_large());
    }
    // A connection that ends early looks to minreq like the end of the body. A chunked body has no length to
    // compare with: its reader must check that it is complete.
    match length {
        Some(length) if body.len() < length => Err(HttpError::new(
            HttpErrorKind::Dropped,
            format!("{} closed the connection after {} of {length} bytes", url.authority(), body.len()),
        )),
        _ => Ok(body),
    }
}

#[cfg(test)]
mod tests;
