//! Servers that go wrong in every way we know, on this machine.

use super::*;
use crate::base::env::pretend;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// One connection: the request is read whole, then `act` has the stream. Gives back what was asked.
fn serve(listener: TcpListener, act: impl FnOnce(&mut TcpStream) + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut piece = [0; 4096];
        while !request.ends_with(b"{}") {
            match stream.read(&mut piece).unwrap() {
                0 => break,
                n => request.extend_from_slice(&piece[..n]),
            }
        }
        act(&mut stream);
        String::from_utf8(request).unwrap()
    })
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    (listener, at)
}

fn call(base: &str, vars: &[(&str, &str)], span: Duration) -> HttpResult<Response> {
    let url = Url::parse(base).unwrap();
    let route = Route::to(&url, &pretend(vars)).unwrap();
    let headers = [("x-api-key", " sk-1\n".to_owned())];
    route.post(&url.at("/v1/messages"), &headers, b"{}".to_vec(), Deadline::after(span), None)
}

/// What comes of a server that says `bytes` and closes.
fn said(bytes: impl Into<Vec<u8>>) -> HttpResult<Response> {
    let (listener, at) = listen();
    let bytes = bytes.into();
    let server = serve(listener, move |stream| {
        let _ = stream.write_all(&bytes);
    });
    let answer = call(&at, &[], Duration::from_secs(10));
    server.join().unwrap();
    answer
}

fn kind(bytes: impl Into<Vec<u8>>) -> HttpErrorKind {
    let error = said(bytes).unwrap_err();
    assert!(error.message.contains("127.0.0.1:") && !error.message.contains("sk-1"), "{}", error.message);
    error.kind
}

#[test]
fn a_whole_answer_comes_with_the_headers_that_matter() {
    let (listener, at) = listen();
    let server = serve(listener, |stream| {
        let head =
            "HTTP/1.1 429 Too Many Requests\r\nRequest-Id: r1\r\nretry-after:  7 \r\nContent-Length: 2\r\n";
        stream.write_all(format!("{head}Content-Type: application/json\r\n\r\n[]").as_bytes()).unwrap();
    });
    let answer = call(&at, &[], Duration::from_secs(10)).unwrap();
    assert_eq!(
        (answer.status, answer.reason.as_str(), answer.body.as_slice()),
        (429, "Too Many Requests", &b"[]"[..])
    );
    assert_eq!(answer.header("retry-after").as_deref(), Some("7"));
    assert_eq!(answer.header("request-id").as_deref(), Some("r1"));
    assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nHost: {at}\r\n")), "{request}");
    assert!(request.contains("\r\nx-api-key: sk-1\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nUser-Agent: axe/{}\r\n", env!("CARGO_PKG_VERSION"))), "{request}");
    assert!(request.ends_with("\r\n\r\n{}"), "{request}");
}

#[test]
fn chunks_and_bodies_without_a_length_are_read() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n";
    assert_eq!(said(chunked).unwrap().body, b"[1]");
    assert_eq!(said("HTTP/1.0 200 OK\r\n\r\n[2]").unwrap().body, b"[2]");
    assert_eq!(said("HTTP/1.1 204 No Content\r\n\r\n").unwrap().body, b"");
}

#[test]
fn a_dropped_connection_is_never_an_answer() {
    assert_eq!(kind(""), HttpErrorKind::Dropped);
    assert_eq!(kind("SSH-2.0-x\r\n"), HttpErrorKind::Dropped);
    assert_eq!(kind("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"), HttpErrorKind::Dropped);
}

#[test]
fn a_chunked_body_that_was_cut_is_left_to_its_reader() {
    let cut = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1";
    assert_eq!(said(cut).unwrap().body, b"[1");
    let bad = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n[1";
    assert_eq!(kind(bad), HttpErrorKind::Other);
}

#[test]
fn interim_answers_redirects_and_odd_statuses_are_errors() {
    assert_eq!(kind("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}"), HttpErrorKind::Other);
    assert_eq!(kind("HTTP/1.1 999 Odd\r\n\r\n{}"), HttpErrorKind::Other);
    let error = said("HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\n\r\n").unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Other);
    assert!(error.message.contains("redirects to \"http://evil.example/\" (HTTP 302)"), "{}", error.message);
}

#[test]
fn gigantic_bodies_and_headers_end_in_one_clear_error() {
    let mut body = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    body.resize(BODY_CAP + 100, b' ');
    assert_eq!(kind(body), HttpErrorKind::Other);
    assert_eq!(kind("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}"), HttpErrorKind::Other);
    assert_eq!(kind("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"), HttpErrorKind::Other);
    for line in ["x: aaaaaaaaaaaaaa\r\n", "x: aaaaaaaaaaaaaa\n", "x\r\n", "\u{e9}"] {
        let headers = format!("HTTP/1.1 200 OK\r\n{}\r\n{{}}", line.repeat(3_000_000 / line.len()));
        assert_eq!(kind(headers), HttpErrorKind::Other, "{line:?}");
    }
    assert_eq!(kind(vec![b'x'; 3_000_000]), HttpErrorKind::Other);
    // Exactly as long as the cap, with a bare line feed: here minreq's own count underflows.
    let exact = format!("HTTP/1.1 200 OK\r\nx: {}\n\n{{}}", "a".repeat(HEADERS_CAP - 4));
    assert_eq!(kind(exact), HttpErrorKind::Other);
}

#[test]
fn a_deadline_ends_silence_and_a_trickle() {
    let stall = |stream: &mut TcpStream| {
        let _ = stream.read(&mut [0]);
    };
    let trickle = |stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while stream.write_all(b"1\r\n \r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    for (n, act) in
        [Box::new(stall) as Box<dyn FnOnce(&mut TcpStream) + Send>, Box::new(trickle)].into_iter().enumerate()
    {
        let (listener, at) = listen();
        serve(listener, act);
        let start = Instant::now();
        let error = call(&at, &[], Duration::from_millis(150)).unwrap_err();
        assert_eq!(
            error,
            HttpError { kind: HttpErrorKind::Deadline, message: format!("no answer from {at} in time") },
            "{n}"
        );
        assert!(start.elapsed() < Duration::from_secs(60), "{n}: {:?}", start.elapsed());
    }
}

#[test]
fn refused_unknown_and_not_tls_are_told_apart() {
    let (listener, at) = listen();
    drop(listener);
    let error = call(&at, &[], Duration::from_secs(10)).unwrap_err();
    assert_eq!(
        error,
        HttpError { kind: HttpErrorKind::Refused, message: format!("connection refused: {at}") }
    );

    let (listener, at) = listen();
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = io::copy(&mut stream, &mut io::sink());
    });
    let error = call(&format!("https://{at}"), &[], Duration::from_secs(10)).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Other, "{}", error.message);
    assert!(error.message.starts_with(&format!("TLS with {at} failed: ")), "{}", error.message);

    let error = call("http://no-such-host.invalid:81", &[], Duration::from_secs(10)).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Other);
    assert!(
        error.message.starts_with("host \"no-such-host.invalid\" (port 81) not found: "),
        "{}",
        error.message
    );
}

#[test]
fn a_header_cannot_be_broken_out_of() {
    let url = Url::parse("h").unwrap();
    let headers = [("x-api-key", "secret\r\nx: y".to_owned())];
    let error = Route::Direct.post(&url, &headers, Vec::new(), Deadline::after_seconds(1), None).unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Other);
    assert!(error.message.contains("x-api-key") && !error.message.contains("secret"));
}

#[test]
fn this_machine_is_reached_past_a_proxy() {
    let (listener, at) = listen();
    let server = serve(listener, |stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]").unwrap();
    });
    let answer = call(&at, &[("http_proxy", "http://127.0.0.1:1")], Duration::from_secs(10));
    assert_eq!(answer.unwrap().body, b"[]");
    server.join().unwrap();
}

/// A proxy for one connection: answers `head` to the CONNECT, then `body` to the request.
fn proxy(head: &'static str, body: &'static str) -> (String, JoinHandle<String>) {
    let (listener, at) = listen();
    let thread = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut asked = Vec::new();
        let mut byte = [0];
        while !asked.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            asked.extend_from_slice(&byte);
        }
        stream.write_all(head.as_bytes()).unwrap();
        while !body.is_empty() && !asked.ends_with(b"{}") && stream.read(&mut byte).unwrap() == 1 {
            asked.extend_from_slice(&byte);
        }
        let _ = stream.write_all(body.as_bytes());
        String::from_utf8(asked).unwrap()
    });
    (at, thread)
}

#[test]
fn a_proxy_is_asked_to_connect_and_its_refusal_is_clear() {
    let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]";
    let (at, thread) = proxy("HTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n", ok);
    let value = format!("http://u:p@{at}");
    let vars = [("HTTP_PROXY", value.as_str())];
    assert_eq!(call("http://api.invalid", &vars, Duration::from_secs(10)).unwrap().body, b"[]");
    let asked = thread.join().unwrap();
    let connect =
        "CONNECT api.invalid:80 HTTP/1.1\r\nHost: api.invalid:80\r\nProxy-Authorization: Basic dTpw\r\n\r\n";
    assert!(asked.starts_with(connect), "{asked}");
    assert!(asked.contains("\r\nHost: api.invalid\r\n"), "{asked}");

    for (head, why) in [
        (
            "HTTP/1.1 407 Authenticate\r\n\r\n",
            "it requires authentication, or rejected this user and password",
        ),
        ("HTTP/1.1 403 No\r\n\r\n", "it does not connect to api.invalid:80: HTTP/1.1 403 No"),
        ("", "it closed the connection"),
    ] {
        let (at, _) = proxy(head, "");
        let error = call("http://api.invalid", &[("HTTP_PROXY", &at)], Duration::from_secs(10)).unwrap_err();
        let message = format!("proxy {at} (from HTTP_PROXY): {why}");
        assert_eq!(error, HttpError { kind: HttpErrorKind::Other, message });
    }
}
