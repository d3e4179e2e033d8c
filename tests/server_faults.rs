//! A table of what servers do wrong: fault × API × streamed or not × with tools or without. Each ends with the right exit
//! code and one clear line, in time, after as many requests as it should, and with exactly the log that it should.

use crate::http_faults::one_line;
use crate::streams::{begun, chunked, content_type, ended, events, lines};
use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi};
use crate::support::processes::LONG;
use crate::support::server::{Answer, Server, http, json, raw};
use crate::support::{Said, Sandbox, one_in, say};
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How the run must end.
#[derive(Clone)]
enum End {
    /// Exit 1 or 3, and a line that begins with the category and has this in it.
    Fails(&'static str, String),
    /// The deadline ends it, and nothing else.
    Late,
    /// Exit 0 with this answer, and a warning with this in it.
    Answers(&'static str, &'static str),
}

use End::{Answers, Fails, Late};

struct Fault {
    name: String,
    /// Does it send before it has read the request?
    is_deaf: bool,
    answer: Answer,
    end: End,
}

fn fault(name: impl Into<String>, answer: Answer, end: End) -> Fault {
    Fault { name: name.into(), is_deaf: false, answer, end }
}

fn fails(category: &'static str, says: &str) -> End {
    Fails(category, says.to_owned())
}

fn server(says: &str) -> End {
    fails("server", says)
}

/// An error as this API writes it.
fn error(kind: Kind, message: &str) -> Value {
    match kind {
        Anthropic => json!({ "type": "error", "error": { "type": "some_error", "message": message } }),
        OpenAi => json!({ "error": { "message": message, "type": "some_error", "code": null } }),
        Ollama => json!({ "error": message }),
    }
}

fn statuses(kind: Kind) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (category, all) in [
        ("auth", &[401, 403][..]),
        ("rate_limit", &[402, 429]),
        ("overloaded", &[529]),
        ("timeout", &[408]),
        ("bad_request", &[400, 404, 405, 413, 415, 422]),
        ("server", &[409, 418, 451, 500, 501, 502, 503, 504, 520]),
    ] {
        for status in all {
            let name = |what| format!("{status} with {what}");
            let answer = json(*status, error(kind, "as it says"));
            faults.push(fault(name("an error"), answer, fails(category, "as it says")));
            let page = http(&format!("{status} Its Reason\r\nContent-Type: text/html"), "<h1>No</h1>");
            faults.push(fault(name("a page"), page, fails(category, "Its Reason")));
        }
    }
    for status in [301, 302, 307, 308] {
        let head = format!("{status} Moved\r\nLocation: http://127.0.0.1:9/");
        faults.push(fault(head.clone(), http(&head, ""), server("redirects are not followed")));
    }
    for head in ["100 Continue", "103 Early Hints", "999 Odd"] {
        faults.push(fault(head, http(head, "{}"), server("HTTP status")));
    }
    let half = "HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\n{\"error\": \"as";
    faults.push(fault("half an error", raw(half), server("")));
    faults
}

fn connections() -> Vec<Fault> {
    let dropped = "closed the connection";
    let deaf = |name: &str, answer, end| Fault { is_deaf: true, ..fault(name, answer, end) };
    vec![
        deaf("a reset before the request is read", raw(""), server(dropped)),
        fault("no answer", raw(""), server(dropped)),
        fault("half a status line", raw("HTTP/1.1 20"), server("")),
        fault("a status line alone", raw("HTTP/1.1 200 OK\r\n"), server("")),
        fault("half a header", raw("HTTP/1.1 200 OK\r\nContent-Ty"), server("")),
        fault("another protocol", raw("220 mail.example ESMTP\r\n"), server("")),
        fault(
            "two lengths",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 2\r\n\r\n{}"),
            server("two lengths"),
        ),
        fault(
            "a length of 100 GB",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}"),
            server("larger than 16 MiB"),
        ),
        fault(
            "a million headers",
            raw(format!("HTTP/1.1 200 OK\r\n{}\r\n\r\n", "x: a\r\n".repeat(100_000))),
            server("headers"),
        ),
        fault("no chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), server("")),
        fault(
            "a chunk without a size",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n"),
            server(""),
        ),
        fault("a stall before the answer", raw("").stall(), Late),
        fault("a stall within the headers", raw("HTTP/1.1 200 OK\r\nContent-Le").stall(), Late),
        fault("headers that trickle", raw("HTTP/1.1 200 OK\r\n").trickle("x: a\r\n"), Late),
        deaf("a stall that reads nothing", raw("").stall(), Late),
    ]
}

/// A reply of 200 that is not streamed.
fn bodies(kind: Kind) -> Vec<Fault> {
    let says = kind.stops("the answer", if kind == Anthropic { "end_turn" } else { "stop" });
    let whole = says.to_string();
    let with = |change: fn(Kind, &mut Value)| {
        let mut changed = says.clone();
        change(kind, &mut changed);
        json(200, changed)
    };
    fn content(kind: Kind, reply: &mut Value) -> &mut Value {
        match kind {
            Anthropic => &mut reply["content"][0]["text"],
            OpenAi => &mut reply["choices"][0]["message"]["content"],
            Ollama => &mut reply["message"]["content"],
        }
    }
    fn message(kind: Kind, reply: &mut Value) -> &mut Value {
        match kind {
            Anthropic => &mut reply["content"],
            OpenAi => &mut reply["choices"][0]["message"],
            Ollama => &mut reply["message"],
        }
    }
    let text = |text: &[u8]| http("200 OK\r\nContent-Type: application/json", text);
    let replaced = |from: &str, to: &[u8]| {
        let at = whole.find(from).unwrap();
        text(&[&whole.as_bytes()[..at], to, &whole.as_bytes()[at + from.len()..]].concat())
    };
    let mut faults = vec![
        fault("an empty body", text(b""), server("the reply is empty")),
        fault("no content at all", raw("HTTP/1.1 204 No Content\r\n\r\n"), server("the reply is empty")),
        fault("null", text(b"null"), server("not a JSON object")),
        fault("a list", text(b"[]"), server("not a JSON object")),
        fault("a number", text(b"7"), server("not a JSON object")),
        fault("a text", text(b"\"x\""), server("not a JSON object")),
        fault("an empty object", text(b"{}"), server("response contains no")),
        fault("two documents", text(format!("{whole} {whole}").as_bytes()), server("not JSON")),
        fault("a page", http("200 OK\r\nContent-Type: text/html", "<html>"), server("not JSON (text/html)")),
        fault(
            "gzip",
            http("200 OK\r\nContent-Encoding: gzip", b"\x1f\x8b\x08\0\0"),
            server("compressed (gzip)"),
        ),
        fault("gzip, and not said so", text(b"\x1f\x8b\x08\0\0"), server("compressed (gzip)")),
        fault("deeper than anybody reads", text("[".repeat(100_000).as_bytes()), server("")),
        fault("an error with 200", json(200, error(kind, "as it says")), server("as it says")),
        fault(
            "a limit with 200",
            json(200, json!({ "error": { "code": 429, "message": "slow" } })),
            fails("rate_limit", "slow"),
        ),
        fault(
            "a bad key with 200",
            json(200, json!({ "error": { "type": "authentication_error", "message": "who" } })),
            fails("auth", "who"),
        ),
        fault(
            "an overload with 200",
            json(200, json!({ "error": { "type": "overloaded_error", "message": "full" } })),
            fails("overloaded", "full"),
        ),
        fault(
            "content that is a number",
            with(|kind, reply| *content(kind, reply) = json!(7)),
            server("the reply's content is a number"),
        ),
        fault(
            "content that is an object",
            with(|kind, reply| *content(kind, reply) = json!({})),
            server("the reply's content is an object"),
        ),
        fault(
            "content that is true",
            with(|kind, reply| *content(kind, reply) = json!(true)),
            server("the reply's content is "),
        ),
        fault("a message that is a number", with(|kind, reply| *message(kind, reply) = json!(7)), server("")),
        fault(
            "no message",
            with(|kind, reply| *message(kind, reply) = Value::Null),
            server("response contains no content"),
        ),
        fault("no usage", with(|_, reply| reply["usage"] = json!(7)), Answers("the answer", "")),
        fault("a byte order mark", text(format!("\u{feff}{whole}").as_bytes()), Answers("the answer", "")),
        fault(
            "invalid UTF-8",
            replaced("the answer", b"a\xffb"),
            Answers("a\u{fffd}b", "invalid characters"),
        ),
        fault(
            "half a character",
            replaced("the answer", br"a\ud800b"),
            Answers("a\u{fffd}b", "invalid characters"),
        ),
        fault(
            "an empty answer",
            with(|kind, reply| *content(kind, reply) = json!("")),
            Answers("", "the answer is empty"),
        ),
        fault(
            "a stall within the body",
            raw(format!("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{whole}")).stall(),
            Late,
        ),
        fault(
            "a body that trickles",
            raw("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n").trickle(" "),
            Late,
        ),
        fault("a body without an end", raw(format!("HTTP/1.1 200 OK\r\n\r\n{whole}")).stall(), Late),
        fault(
            "chunks that trickle",
            raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").trickle("1\r\n \r\n"),
            Late,
        ),
    ];
    let chunks =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{whole}\r\n", whole.len());
    // The document is whole. With TLS nobody could see that more was to come.
    faults.push(fault("no last chunk", raw(chunks.clone()), Answers("the answer", "")));
    faults.push(fault("chunks without trailers", raw(chunks + "0\r\n"), Answers("the answer", "")));
    let cut = if kind == Anthropic { "max_tokens" } else { "length" };
    faults.push(fault("an answer cut off", json(200, kind.stops("the", cut)), Answers("the", "cut off")));
    if kind != Anthropic {
        let calls = with(|kind, reply| message(kind, reply)["tool_calls"] = json!("x"));
        faults.push(fault("calls that are a text", calls, server("tool_calls are a string, not a list")));
    }
    // The reply ends early, wherever, however its length is given.
    let length = whole.len();
    for (n, at) in [0, length / 4, length / 2, length * 3 / 4, length - 1].into_iter().enumerate() {
        let part = &whole[..at];
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        faults.push(fault(
            format!("a length, {n}/4 come"),
            raw(head + part),
            server("closed the connection"),
        ));
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = if at == 0 { String::new() } else { format!("{at:x}\r\n{part}\r\n") };
        faults.push(fault(format!("chunks, {n}/4 come"), raw(format!("{head}{chunk}")), server("")));
        faults.push(fault(
            format!("half a chunk, {n}/4 come"),
            raw(format!("{head}{length:x}\r\n{part}")),
            server(""),
        ));
        faults.push(fault(
            format!("no length, {n}/4 come"),
            raw(format!("HTTP/1.1 200 OK\r\n\r\n{part}")),
            server(""),
        ));
    }
    faults
}

/// A reply that is streamed, and begins with "the ".
fn streams(kind: Kind) -> Vec<Fault> {
    let begin = begun(kind, &["the ", "answer"]);
    let whole = format!("{begin}{}", ended(kind));
    let event = |value: Value| if kind == Ollama { lines([value]) } else { events([value]) };
    let text = |text: &str| if kind == Ollama { format!("{text}\n") } else { format!("data: {text}\n\n") };
    let content = |content: Value| match kind {
        Anthropic => {
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": content } })
        }
        OpenAi => json!({ "choices": [{ "delta": { "content": content } }] }),
        Ollama => json!({ "message": { "content": content }, "done": false }),
    };
    let after = |more: String| chunked(kind, &(begin.clone() + &more), "0\r\n\r\n");
    let broke = || server("broke off after 10 bytes of the answer");
    let mut faults = vec![
        fault("no end of the answer", after(String::new()), broke()),
        fault("no end at all", chunked(kind, &begin, ""), broke()),
        fault("an error", after(event(error(kind, "as it says"))), server("as it says")),
        fault(
            "an error and then more",
            after(event(error(kind, "as it says")) + &ended(kind)),
            server("as it says"),
        ),
        fault(
            "an error first",
            chunked(kind, &event(error(kind, "as it says")), "0\r\n\r\n"),
            server("as it says"),
        ),
        fault(
            "an overload",
            after(event(json!({ "error": { "type": "overloaded_error", "message": "full" } }))),
            fails("overloaded", "full"),
        ),
        fault(
            "a limit",
            after(event(json!({ "error": { "code": 429, "message": "slow" } }))),
            fails("rate_limit", "slow"),
        ),
        fault("an event that is no JSON", after(text("{nothing}")), server("is not JSON")),
        fault("an event that is a number", after(text("7")), server("is not a JSON object")),
        fault("an event that is a list", after(text("[]")), server("is not a JSON object")),
        fault("an event that is a text", after(text("\"x\"")), server("is not a JSON object")),
        fault("half an event", after(text("{\"a\": ")), server("")),
        fault("content that is a number", after(event(content(json!(7)))), server("content is")),
        fault("content that is an object", after(event(content(json!({})))), server("content is")),
        fault("content that is true", after(event(content(json!(true)))), server("content is")),
        fault("a chunk without a size", chunked(kind, &begin, "zz\r\n"), server("no valid size")),
        fault(
            "a page in it",
            after("<html>\n\n".to_owned()),
            if kind == Ollama { server("is not JSON") } else { broke() },
        ),
        fault(
            "an event of 17 MiB",
            after(text(&format!("\"{}\"", "x".repeat(17 << 20)))),
            server("larger than 16 MiB"),
        ),
        fault("a stall at the start", chunked(kind, "", "").stall(), Late),
        fault("a stall after the first word", chunked(kind, &begun(kind, &["the "]), "").stall(), Late),
        fault("a stall before the end", chunked(kind, &begin, "").stall(), Late),
        fault("blank lines for ever", chunked(kind, &begin, "").trickle("1\r\n\n\r\n"), Late),
        fault("a reply that is not streamed", kind.says("the answer"), Answers("the answer", "")),
        fault(
            "half a character",
            chunked(kind, &whole.replace("answer", "\\ud800"), "0\r\n\r\n"),
            Answers("the \u{fffd}", "invalid characters"),
        ),
    ];
    if kind != Ollama {
        faults.push(fault(
            "comments alone",
            chunked(kind, ": ping\n\n: ping\n\n", "0\r\n\r\n"),
            server("broke off after 0"),
        ));
        faults.push(fault(
            "comments between",
            chunked(kind, &whole.replace("\n\n", "\n\n: x\n\n"), "0\r\n\r\n"),
            Answers("the answer", ""),
        ));
        faults.push(fault("done, without a reason", after("data: [DONE]\n\n".to_owned()), broke()));
        faults.push(fault(
            "Windows' line ends",
            chunked(kind, &whole.replace('\n', "\r\n"), "0\r\n\r\n"),
            Answers("the answer", ""),
        ));
    }
    let number = match kind {
        Anthropic => event(json!({ "type": "content_block_start", "index": 1, "content_block": 7 })),
        OpenAi => event(json!({ "choices": [7] })),
        Ollama => event(json!({ "message": 7, "done": false })),
    };
    faults.push(fault("a message that is a number", after(number + &ended(kind)), server("")));
    if kind == OpenAi {
        let number = event(json!({ "choices": 7 })) + &event(json!({ "choices": [{ "delta": 7 }] }));
        faults.push(fault("choices that are a number", after(number + &ended(kind)), server("")));
    }
    if kind == Anthropic {
        let delta = |index: u32| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "text_delta", "text": "x" } });
        faults.push(fault("a block that has not begun", after(event(delta(7))), server("out of order")));
        let start = json!({ "type": "content_block_start", "index": 5, "content_block": { "type": "text", "text": "" } });
        faults.push(fault("a block too far", after(event(start)), server("out of order")));
    }
    let empty = http(&format!("200 OK\r\nContent-Type: {}", content_type(kind)), "");
    faults.push(fault("an empty stream", empty, server("")));
    // It ends early, wherever, however its length is given. The end of the answer itself is the last event but one.
    let length = begin.len();
    for (n, at) in [length / 4, length / 2, length * 3 / 4, length - 3].into_iter().enumerate() {
        let part = &begin[..at];
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n", content_type(kind));
        for (what, answer) in [
            ("a length", raw(format!("{head}Content-Length: {}\r\n\r\n{part}", whole.len()))),
            ("no length", raw(format!("{head}\r\n{part}"))),
            ("chunks", chunked(kind, part, "")),
            ("chunks that end", chunked(kind, part, "0\r\n\r\n")),
        ] {
            faults.push(fault(format!("{what}, {n}/4 come"), answer, server("broke off after")));
        }
    }
    faults
}

/// One row of the table.
struct Row {
    kind: Kind,
    is_streamed: bool,
    has_tools: bool,
    fault: Fault,
}

fn table() -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in KINDS {
        for (is_streamed, has_tools) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut faults = if is_streamed { streams(kind) } else { bodies(kind) };
            faults.extend(statuses(kind));
            faults.extend(connections());
            rows.extend(faults.into_iter().map(|fault| Row { kind, is_streamed, has_tools, fault }));
        }
    }
    rows
}

/// Runs an agent whose server has the fault: in its first reply or, with tools, in the one after a call.
fn suffer(row: &Row) {
    let Row { kind, is_streamed, has_tools, fault } = row;
    let what = format!("{} ({}, streamed: {is_streamed}, tools: {has_tools})", fault.name, kind.name());
    let sandbox = Sandbox::new();
    let tool = if *has_tools { "[tools.t]\ncommand = ['echo', 'found']\nstdin = 'none'\n" } else { "" };
    sandbox.model("a", *kind, &format!("{tool}[memory]\nenabled = true"));
    let (of, answer) = (*kind, fault.answer.clone());
    let is_late = matches!(fault.end, Late);
    // A server that reads nothing cannot answer a first request.
    let asked = if *has_tools && !fault.is_deaf { 2 } else { 1 };
    let server = match fault.is_deaf {
        true => Server::deaf(answer),
        false => Server::answering(move |request| {
            if asked == 2 && request.results().is_empty() {
                of.calls_tools(&[("t", json!({}))])
            } else {
                answer.clone()
            }
        }),
    };
    let mut command = sandbox.asking("a", &server.url());
    command.args(["-p", "hi", "--timeout", if is_late { "1" } else { "600" }]);
    if *is_streamed {
        // Nothing is printed before it is whole.
        command.args(["--stream", "--json"]);
    }
    let begin = Instant::now();
    let output = command.output().unwrap();
    let taken = begin.elapsed();
    let err = output.err();
    assert!(taken < LONG, "{what}: {taken:?}");
    let (code, category, says) = match &fault.end {
        Answers(text, warning) => {
            assert_eq!(output.code(), Some(0), "{what}: {err}");
            let out = output.out();
            let envelope =
                || serde_json::from_str::<Value>(&out).unwrap()["content"].as_str().unwrap().to_owned();
            let got = if *is_streamed { envelope() } else { out.clone() };
            assert_eq!(got, *text, "{what}");
            assert!(err.contains(warning) && (err.is_empty() || !warning.is_empty()), "{what}: {err}");
            let result = if text.is_empty() { "(none)" } else { text };
            let log = format!("## 2026-02-28T15:04:05Z\n**Task:** hi\n**Result:** {result}\n\n");
            assert_eq!(sandbox.log("a"), log, "{what}");
            assert_eq!(server.requests().len(), asked, "{what}");
            return;
        }
        Fails(category, says) => (if *category == "bad_request" { 1 } else { 3 }, *category, says.as_str()),
        Late => (3, "timeout", "in time"),
    };
    assert_eq!((output.code(), output.out().as_str()), (Some(code), ""), "{what}: {err}");
    if *is_streamed {
        let error: Value = serde_json::from_str(&err).unwrap_or_else(|e| panic!("{what}: {e}: {err}"));
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{category}: ")) && message.contains(says), "{what}: {err}");
    } else {
        one_line(&output, code, &what);
        assert!(err.starts_with(&format!("axe-run: {category}: ")) && err.contains(says), "{what}: {err}");
    }
    assert_eq!(server.requests().len(), asked, "{what}");
    assert!(!sandbox.log_path("a").exists(), "{what}: a log");
    if is_late {
        assert!(taken >= Duration::from_millis(990), "{what}: {taken:?}");
    }
}

#[test]
fn every_fault_of_a_server_ends_as_it_should() {
    let rows = table();
    assert!(rows.len() >= 250, "{}", rows.len());
    let some = rows.iter().step_by(one_in(7));
    let (slow, quick): (Vec<_>, Vec<_>) = some.partition(|row| matches!(row.fault.end, Late));
    let wrong = Mutex::new(Vec::new());
    // A stall waits, and leaves the machine to the others.
    for (rows, at_once) in [(quick, 4), (slow, 8)] {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| {
                    while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(why) = catch_unwind(AssertUnwindSafe(|| suffer(row))) {
                            let why = why.downcast_ref::<String>().cloned().unwrap_or_default();
                            wrong.lock().unwrap().push(why);
                        }
                    }
                });
            }
        });
    }
    say(&format!("server_faults: {} rows", rows.len()));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
