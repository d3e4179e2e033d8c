//! Servers that go wrong in every way we know. Each ends in time, with the right exit code and one clear line;
//! the key is in no output, and nothing is written down.

use crate::support::api::{KEY, KINDS, Kind};
use crate::support::processes::LONG;
use crate::support::server::{Answer, Server, http, json, raw};
use crate::support::{Said, Sandbox};
use serde_json::json;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

struct Fault {
    name: &'static str,
    answer: Answer,
    /// Answers before it has read the request.
    deaf: bool,
    /// `--timeout`, in seconds. The run must be over well before the longer one.
    timeout: u32,
    code: i32,
    /// What the line begins with, behind the program's name, and what else is in it.
    category: &'static str,
    says: &'static str,
}

/// An answer that no timeout is needed for.
fn fault(name: &'static str, answer: Answer, category: &'static str, says: &'static str) -> Fault {
    let code = if category == "bad_request" { 1 } else { 3 };
    Fault { name, answer, deaf: false, timeout: 600, code, category, says }
}

fn server(name: &'static str, bytes: impl Into<Vec<u8>>, says: &'static str) -> Fault {
    fault(name, raw(bytes), "server", says)
}

/// Only the deadline ends it.
fn late(name: &'static str, answer: Answer) -> Fault {
    Fault { timeout: 1, ..fault(name, answer, "timeout", "in time") }
}

const DROPPED: &str = "closed the connection";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const MIB: usize = 1024 * 1024;

fn connections() -> Vec<Fault> {
    vec![
        Fault { deaf: true, ..server("reset before the request is read", "", DROPPED) },
        server("closed without an answer", "", DROPPED),
        server("half a status line", "HTTP/1.1 20", ""),
        server("a status line alone", "HTTP/1.1 200 OK\r\n", ""),
        server("cut within the headers", "HTTP/1.1 200 OK\r\nContent-Type: appl", ""),
        server("cut after the headers", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", DROPPED),
        server("a short body", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"content\":[", DROPPED),
        server(
            "a body without a length, cut",
            "HTTP/1.1 200 OK\r\n\r\n{\"content\":[",
            "broke off after 12 bytes",
        ),
        server("cut within a chunk", format!("{CHUNKED}50\r\n{{\"conte"), "broke off"),
        server("cut between chunks", format!("{CHUNKED}9\r\n{{\"content\r\n"), "broke off"),
        server("cut before the first chunk", CHUNKED, "the reply is empty"),
        server("a chunk without a size", format!("{CHUNKED}xyz\r\n{{}}\r\n0\r\n\r\n"), "no valid size"),
        server("a chunk of a negative size", format!("{CHUNKED}-2\r\n{{}}\r\n0\r\n\r\n"), ""),
        server("a chunk of a gigantic size", format!("{CHUNKED}ffffffffffffffff\r\n{{}}\r\n"), ""),
        server("a chunk size without an end", format!("{CHUNKED}{}", "1".repeat(MIB)), ""),
        server("an empty body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "the reply is empty"),
        server("no content", "HTTP/1.1 204 No Content\r\n\r\n", "the reply is empty"),
    ]
}

fn statuses() -> Vec<Fault> {
    let to = |status: &str| format!("HTTP/1.1 {status}\r\nLocation: http://127.0.0.1:9/{KEY}\r\n\r\n");
    vec![
        server(
            "100 and then 200",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}",
            "HTTP status 100",
        ),
        server(
            "101 Switching Protocols",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
            "HTTP status 101",
        ),
        server("103 Early Hints", "HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP status 103"),
        server(
            "301 with the key in it",
            to("301 Moved"),
            "redirects to \"http://127.0.0.1:9/[key]\" (HTTP 301)",
        ),
        server("307", to("307 Temporary Redirect"), "redirects are not followed"),
        server("308", to("308 Permanent Redirect"), "redirects are not followed"),
        server("302 without a place", "HTTP/1.1 302 Found\r\n\r\n", "redirects to nowhere (HTTP 302)"),
        server("304", "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP 304"),
        server("status 999", "HTTP/1.1 999 Odd\r\n\r\n{}", "HTTP status 999"),
        server("status 0", "HTTP/1.1 000 Odd\r\n\r\n{}", ""),
        server("a status in words", "HTTP/1.1 fine OK\r\n\r\n{}", ""),
        server("another protocol", "SSH-2.0-OpenSSH_9.2\r\n", ""),
        server("binary noise", vec![0, 159, 146, 150, 13, 10, 255], ""),
        server("no head at all", "{\"content\":[]}", ""),
        fault("429", http("429 Slow down", ""), "rate_limit", "Slow down"),
        fault(
            "429 that asks to wait",
            http("429 Slow down\r\nRetry-After: 50", ""),
            "rate_limit",
            "Slow down",
        ),
        fault(
            "429 that asks for nonsense",
            http("429 Slow down\r\nRetry-After: NaN", ""),
            "rate_limit",
            "Slow down",
        ),
        fault(
            "a quota that is used up",
            json(429, json!({ "error": { "code": "insufficient_quota", "message": "pay first" } })),
            "rate_limit",
            "pay first",
        ),
        fault("529", http("529 ", "<html>busy</html>"), "overloaded", "529"),
        fault(
            "401 that shows the key",
            json(401, json!({ "error": { "message": format!("bad key {KEY}") } })),
            "auth",
            "bad key [key]",
        ),
        fault(
            "403 with a long message that ends within the key",
            json(403, json!({ "error": { "message": format!("{} {KEY}", "x".repeat(985)) } })),
            "auth",
            "xxx",
        ),
        fault("the key in the reason", http(&format!("401 {}{KEY}", "x".repeat(190)), ""), "auth", "xxx"),
        fault(
            "500 with colours and lines",
            http("500 x", "{\"error\":\"\\u001b[31mred\\u001b[0m\\nsecond\\rthird\"}"),
            "server",
            "second",
        ),
        fault(
            "400 with a book for a message",
            json(400, json!({ "error": "word ".repeat(50_000) })),
            "bad_request",
            "word",
        ),
        fault(
            "502 of a proxy",
            http("502 Bad Gateway\r\nContent-Type: text/html", "<h1>nginx</h1>"),
            "server",
            "Bad Gateway",
        ),
    ]
}

fn bodies() -> Vec<Fault> {
    let ok = |head: &str, body: &[u8]| http(&format!("200 OK\r\nContent-Type: {head}"), body);
    let said = |name, body: &[u8], says| fault(name, ok("application/json", body), "server", says);
    let number = json!({
        "content": [{ "type": "text", "text": 7 }],
        "choices": [{ "message": { "content": 7 }, "finish_reason": "stop" }],
        "message": { "content": { "text": "x" } }, "done": true,
    });
    let number = number.to_string().into_bytes();
    vec![
        fault("a web page", ok("text/html", b"<html>Log in</html>"), "server", "not JSON (text/html)"),
        fault("plain text", ok("text/plain", b"ok"), "server", "not JSON (text/plain)"),
        fault(
            "a stream of events",
            ok("text/event-stream", b"data: {\"x\":1}\n\n"),
            "server",
            "not JSON (text/event-stream)",
        ),
        fault(
            "compressed",
            ok("application/json\r\nContent-Encoding: gzip", b"\x1f\x8b\x08\0\0"),
            "server",
            "the reply is compressed (gzip), which was not asked for",
        ),
        fault(
            "compressed, and not said so",
            ok("application/json", b"\x1f\x8b\x08\0\0"),
            "server",
            "the reply is compressed (gzip)",
        ),
        said("null", b"null", ""),
        said("a list", b"[]", "the reply is not a JSON object"),
        said("a number", b"17", ""),
        said("an empty object", b"{}", "response contains no"),
        said("two documents", b"{} {}", "not JSON"),
        said("no JSON number", b"{\"usage\":NaN}", "not JSON"),
        said("content of another type", &number, "the reply's content is"),
        said("wrong types", b"{\"content\":5,\"choices\":5,\"message\":5}", ""),
        said("a hundred thousand brackets", "[".repeat(100_000).as_bytes(), ""),
        said("deep content", &deep(), ""),
        said("an error with 200", b"{\"error\":\"out of memory\"}", "out of memory"),
        said("an error with 200 and no words", b"{\"error\":{}}", ""),
    ]
}

/// Whole JSON, nested deeper than anybody reads.
fn deep() -> Vec<u8> {
    let nest = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    format!("{{\"content\":{nest},\"choices\":[{{\"message\":{nest}}}],\"message\":{nest}}}").into_bytes()
}

fn sizes() -> Vec<Fault> {
    let with = |head: &str| format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{{}}");
    let spaces = |n| format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(n));
    vec![
        server("a length of 100 GB", with("Content-Length: 99999999999"), "larger than 16 MiB"),
        server("a length over 64 bits", with("Content-Length: 18446744073709551616"), ""),
        server("a negative length", with("Content-Length: -1"), ""),
        server("a length in words", with("Content-Length: two"), ""),
        server("two lengths", with("Content-Length: 99\r\nContent-Length: 2"), "two lengths, 99 and 2 bytes"),
        server("a body over the cap", spaces(17 * MIB), "larger than 16 MiB"),
        server("a body of white space", spaces(MIB), "broke off"),
        server("one gigantic header", with(&format!("x: {}", "a".repeat(3 * MIB))), "headers"),
        server("a million headers", with(&"x: a\r\n".repeat(500_000)), "headers"),
        server("headers of line feeds", format!("HTTP/1.1 200 OK\n{}", "x: a\n".repeat(500_000)), ""),
        server("headers that are none", with(&"x\r\n".repeat(500_000)), ""),
        server("a gigantic status line", "x".repeat(3 * MIB), ""),
        server("a gigantic reason", format!("HTTP/1.1 500 {}\r\n\r\n", "x".repeat(3 * MIB)), ""),
    ]
}

fn stalls() -> Vec<Fault> {
    vec![
        Fault { deaf: true, ..late("a stall that reads nothing", raw("").stall()) },
        late("a stall before the answer", raw("").stall()),
        late("a stall within the status line", raw("HTTP/1.").stall()),
        late("a stall within the headers", raw("HTTP/1.1 200 OK\r\nContent-Le").stall()),
        late("a stall after the headers", raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n").stall()),
        late("a stall within the body", raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"co").stall()),
        late("a stall within a chunk", raw(format!("{CHUNKED}50\r\n{{\"co")).stall()),
        late("a body without an end", raw("HTTP/1.1 200 OK\r\n\r\n{}").stall()),
        late("a status line that trickles", raw("HTTP/1.1 200 ").trickle("x")),
        late("headers that trickle", raw("HTTP/1.1 200 OK\r\n").trickle("x: a\r\n")),
        late("a body that trickles", raw("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n").trickle(" ")),
        late("chunks that trickle", raw(CHUNKED).trickle("1\r\n \r\n")),
        late("an error that stalls", raw("HTTP/1.1 500 x\r\nContent-Length: 9\r\n\r\n{").stall()),
    ]
}

/// Runs the agent against this fault, and checks what is true of every one.
fn suffer(fault: &Fault, kind: Kind) {
    let what = format!("{} ({})", fault.name, kind.name());
    let sandbox = Sandbox::new();
    sandbox.model("a", kind, "[memory]\nenabled = true");
    let answer = fault.answer.clone();
    let server = match fault.deaf {
        true => Server::deaf(answer),
        false => Server::answering(move |_| answer.clone()),
    };
    let start = Instant::now();
    let timeout = fault.timeout.to_string();
    let output = sandbox.asking("a", &server.url()).args(["--timeout", &timeout]).output().unwrap();
    assert!(start.elapsed() < LONG, "{what}: {:?}", start.elapsed());
    one_line(&output, fault.code, &what);
    let line = output.err();
    let begin = format!("axe-run: {}: ", fault.category);
    assert!(line.starts_with(&begin) && line.contains(fault.says), "{what}: {line}");
    assert!(line.len() < 1200, "{what}: {} bytes", line.len());
    assert_eq!(server.requests().len(), 1, "{what}");
    assert!(!sandbox.log_path("a").exists(), "{what}: a log");
}

/// Nothing on stdout, one line of ours without the key, or any good part of it, on stderr.
pub(crate) fn one_line(output: &Output, code: i32, what: &str) {
    let line = output.err();
    assert_eq!((output.code(), output.out().as_str()), (Some(code), ""), "{what}: {line}");
    assert!(line.starts_with("axe-run: ") && line.lines().count() == 1, "{what}: {line}");
    assert!(!line.trim_end().chars().any(char::is_control), "{what}: {line:?}");
    assert!(!line.contains(&KEY[..12]), "{what}: {line}");
}

/// Every fault with every kind of service, a few at a time.
fn all(faults: Vec<Fault>, at_once: usize) {
    let next = AtomicUsize::new(0);
    let rows: Vec<(&Fault, Kind)> = faults.iter().flat_map(|fault| KINDS.map(|kind| (fault, kind))).collect();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((fault, kind)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    suffer(fault, *kind);
                }
            });
        }
    });
}

#[test]
fn connections_that_end_early_end_in_one_clear_line() {
    all(connections(), 4);
}

#[test]
fn statuses_that_are_no_success_end_in_one_clear_line() {
    all(statuses(), 4);
}

#[test]
fn bodies_that_are_no_reply_end_in_one_clear_line() {
    all(bodies(), 4);
}

#[test]
fn gigantic_answers_end_in_one_clear_line() {
    all(sizes(), 4);
}

#[test]
fn servers_that_do_not_finish_end_at_the_deadline() {
    all(stalls(), 20);
}

#[test]
fn a_deadline_is_neither_early_nor_forgotten() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Kind::Anthropic, "");
    let server = Server::answering(|_| raw("").stall());
    let start = Instant::now();
    let output = sandbox.asking("a", &server.url()).args(["--timeout", "1"]).output().unwrap();
    assert_eq!(output.code(), Some(3));
    assert!((Duration::from_millis(990)..LONG).contains(&start.elapsed()), "{:?}", start.elapsed());
}
