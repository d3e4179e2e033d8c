//! Replies that are wrong in one place each, generated from whole ones: a key that is missing or of another type, an event
//! that is lost, doubled or late, a cut anywhere, bytes that come in another way. None is an empty success, and no answer
//! that came whole is lost.

use crate::streams::{begun, content_type, ended};
use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi};
use crate::support::server::{Answer, Request, Server, http, json, raw};
use crate::support::{Said, Sandbox, one_in, say};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// How a run may end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The answer came whole, and is printed.
    Whole,
    /// Whatever the program can do with it, but no success without a text if one came.
    Any,
}

use End::{Any, Whole};

struct Case {
    name: String,
    kind: Kind,
    is_streamed: bool,
    has_tools: bool,
    has_schema: bool,
    /// A turn with a tool call before the answer, if that is what is wrong.
    turn: Option<Answer>,
    answer: Answer,
    /// What the server says.
    text: &'static str,
    /// Whether that is still in its reply.
    is_said: bool,
    end: End,
}

/// With characters of two, three and four bytes.
const TEXT: &str = "the answér \u{20ac}\u{1f980}";
const JSON: &str = "{\"a\": \"é\u{20ac}\u{1f980}\"}";

/// Every place of a document, as a JSON pointer.
fn places(value: &Value, at: &str, all: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let at = format!("{at}/{key}");
        all.push(at.clone());
        places(value, &at, all);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, value)| below(&n.to_string(), value)),
        _ => {}
    }
}

/// The document with another value in one place, or none there.
fn with(value: &Value, place: &str, new: Option<&Value>) -> Value {
    let mut changed = value.clone();
    let (parent, key) = place.rsplit_once('/').unwrap();
    match (changed.pointer_mut(parent).unwrap(), new) {
        (Value::Object(map), None) => drop(map.remove(key)),
        (Value::Object(map), Some(new)) => drop(map.insert(key.to_owned(), new.clone())),
        (Value::Array(list), None) => drop(list.remove(key.parse().unwrap())),
        (Value::Array(list), Some(new)) => list[key.parse::<usize>().unwrap()] = new.clone(),
        _ => unreachable!(),
    }
    changed
}

/// What stands in a place instead; `None`: nothing.
fn wrongs() -> Vec<Option<Value>> {
    let all = [
        json!(null),
        json!(7),
        json!(-1),
        json!(1.5),
        json!(u64::MAX),
        json!("x"),
        json!(""),
        json!(true),
        json!({}),
        json!([]),
        json!({ "a": [1] }),
    ];
    [None].into_iter().chain(all.map(Some)).collect()
}

/// Half of these, for streams, which have many places.
fn fewer_wrongs() -> Vec<Option<Value>> {
    wrongs().into_iter().step_by(2).chain([Some(json!(7)), Some(json!([]))]).collect()
}

/// Whether the answer is whole without what is in this place.
fn is_harmless(place: &str) -> bool {
    let last = place.rsplit('/').next().unwrap();
    place.contains("/usage")
        || ["model", "role", "finish_reason", "stop_reason", "done_reason", "done"].contains(&last)
        || ["prompt_eval_count", "eval_count"].contains(&last)
}

/// The events of a stream that says `text`.
fn events_of(kind: Kind, text: &str) -> Vec<Value> {
    let (first, rest) = text.split_at(4);
    let stream = begun(kind, &[first, rest]) + &ended(kind);
    let data = stream.lines().filter_map(|line| match kind {
        Ollama => Some(line),
        _ => line.strip_prefix("data: "),
    });
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn stream_of(kind: Kind, events: &[Value]) -> String {
    let one = |event: &Value| match kind {
        Ollama => format!("{event}\n"),
        _ => format!("data: {event}\n\n"),
    };
    events.iter().map(one).collect::<String>() + if kind == OpenAi { "data: [DONE]\n\n" } else { "" }
}

fn head(kind: Kind) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n", content_type(kind))
}

/// In chunks of so many bytes.
fn in_chunks(head: &str, body: &[u8], size: usize, end: &str) -> Answer {
    let mut bytes = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    for chunk in body.chunks(size) {
        bytes.extend_from_slice(format!("{:X};x=y\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(end.as_bytes());
    raw(bytes)
}

/// What is wrong with one reply, without its place in the table.
struct Wrong(String, Answer, bool, End);

/// A reply that comes at once.
fn documents(kind: Kind, text: &str) -> Vec<Wrong> {
    let reply = kind.stops(text, if kind == Anthropic { "end_turn" } else { "stop" });
    let mut all = Vec::new();
    let mut every = Vec::new();
    places(&reply, "", &mut every);
    for place in every {
        for wrong in wrongs() {
            let changed = with(&reply, &place, wrong.as_ref());
            let is_said = changed.to_string().contains(&json!(text).to_string());
            // An error that the reply is.
            let end = if is_harmless(&place) && is_said { Whole } else { Any };
            let name =
                format!("{place} is {}", wrong.map_or("missing".to_owned(), |wrong| wrong.to_string()));
            all.push(Wrong(name, json(200, changed), is_said, end));
        }
    }
    let whole = reply.to_string();
    let pretty = serde_json::to_string_pretty(&reply).unwrap();
    let mut more = |name: &str, answer: Answer, end: End| all.push(Wrong(name.to_owned(), answer, true, end));
    more("line breaks in it", http("200 OK", pretty.replace('\n', "\r\n")), Whole);
    more("blanks before it", http("200 OK", format!("\n\n \t\r\n{whole}")), Whole);
    more("blanks after it", http("200 OK", format!("{whole}\n \r\n\0").trim_end_matches('\0')), Whole);
    more("a mark before it", http("200 OK", format!("\u{feff}{whole}")), Whole);
    more("escapes for all that is not ASCII", http("200 OK", escaped(&whole)), Whole);
    more("no reason", raw(format!("HTTP/1.1 200\r\nContent-Length: {}\r\n\r\n{whole}", whole.len())), Whole);
    more("HTTP/1.0", raw(format!("HTTP/1.0 200 OK\r\n\r\n{whole}")), Whole);
    more("created", http("201 Created", &whole), Whole);
    more("text/plain", http("200 OK\r\nContent-Type: text/plain", &whole), Whole);
    more("identity", http("200 OK\r\nContent-Encoding: identity", &whole), Whole);
    more("a null error", with_key(&reply, "error", Value::Null), Whole);
    more("an unknown key", with_key(&reply, "x", json!({ "error": { "message": "no" } })), Whole);
    for size in [1, 2, 3, 1000] {
        let answer = in_chunks("HTTP/1.1 200 OK\r\n", whole.as_bytes(), size, "0\r\nx: y\r\n\r\n");
        more(&format!("chunks of {size}"), answer, Whole);
    }
    let length = whole.len();
    for cut in (0..12).map(|n| length * n / 12) {
        let part = &whole.as_bytes()[..cut];
        let answer = raw([b"HTTP/1.1 200 OK\r\n\r\n", part].concat());
        all.push(Wrong(format!("cut at {cut}"), answer, false, Any));
        let short = format!("HTTP/1.1 200 OK\r\nContent-Length: {cut}\r\n\r\n{whole}");
        all.push(Wrong(format!("a length of {cut}"), raw(short), false, Any));
    }
    all
}

fn with_key(reply: &Value, key: &str, value: Value) -> Answer {
    let mut reply = reply.clone();
    reply[key] = value;
    json(200, reply)
}

fn escaped(text: &str) -> String {
    let mut units = [0; 2];
    text.chars()
        .map(|c| match c.is_ascii() {
            true => c.to_string(),
            false => c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04X}")).collect(),
        })
        .collect()
}

/// A reply that comes in pieces.
fn streams(kind: Kind, text: &str) -> Vec<Wrong> {
    let events = events_of(kind, text);
    let whole = stream_of(kind, &events);
    let chunked = |body: &str| in_chunks(&head(kind), body.as_bytes(), 29, "0\r\n\r\n");
    let is_of_answer = |event: &Value| event.to_string().contains(&json!(text.split_at(4).1).to_string());
    let mut all = Vec::new();
    for at in 0..events.len() {
        let mut of = |name: &str, changed: Vec<Value>| {
            // What follows the last event is not part of the answer.
            let last = changed.iter().position(|event| event["done"] == true).unwrap_or(changed.len());
            let is_said = changed.iter().take(last).any(is_of_answer);
            all.push(Wrong(format!("event {at} {name}"), chunked(&stream_of(kind, &changed)), is_said, Any));
        };
        let without = || events.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, event)| event.clone());
        of("lost", without().collect());
        of("late", without().chain([events[at].clone()]).collect());
        of("early", [events[at].clone()].into_iter().chain(without()).collect());
        let mut twice = events.clone();
        twice.insert(at, events[at].clone());
        of("twice", twice);
        let mut every = Vec::new();
        places(&events[at], "", &mut every);
        for place in every {
            for wrong in fewer_wrongs() {
                let mut changed = events.clone();
                changed[at] = with(&events[at], &place, wrong.as_ref());
                // The reason ends the answer.
                let is_end =
                    ["/stop_reason", "/finish_reason", "/done"].iter().any(|end| place.ends_with(end));
                let end = if is_harmless(&place) && !is_end { Whole } else { Any };
                let is_said = changed.iter().any(is_of_answer);
                let name =
                    format!("event {at}: {place} is {}", wrong.map_or("missing".into(), |w| w.to_string()));
                all.push(Wrong(name, chunked(&stream_of(kind, &changed)), is_said, end));
            }
        }
    }
    let mut more = |name: &str, answer: Answer, end: End| all.push(Wrong(name.to_owned(), answer, true, end));
    for size in [1, 2, 3, 7, 10_000] {
        more(
            &format!("chunks of {size}"),
            in_chunks(&head(kind), whole.as_bytes(), size, "0\r\n\r\n"),
            Whole,
        );
    }
    more("no last chunk", in_chunks(&head(kind), whole.as_bytes(), 29, ""), Whole);
    more("no length", raw(format!("{}\r\n{whole}", head(kind))), Whole);
    more("a length", raw(format!("{}Content-Length: {}\r\n\r\n{whole}", head(kind), whole.len())), Whole);
    more("a length too long", raw(format!("{}Content-Length: 99999\r\n\r\n{whole}", head(kind))), Whole);
    more("a mark", chunked(&format!("\u{feff}{whole}")), Whole);
    more("escapes", chunked(&escaped(&whole)), Whole);
    more("Windows' line ends", chunked(&whole.replace('\n', "\r\n")), Whole);
    more("blank lines before it", chunked(&format!("\n\n\r\n{whole}")), Whole);
    more("no last line end", chunked(whole.trim_end()), Whole);
    more("twice the whole", chunked(&whole.repeat(2)), Whole);
    more("another name", raw(format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{whole}")), Any);
    if kind != Ollama {
        more("returns", chunked(&whole.replace('\n', "\r")), Whole);
        more("no blank", chunked(&whole.replace("data: ", "data:")), Whole);
        more("comments", chunked(&whole.replace("data: ", ": x\ndata: ")), Whole);
        more("fields", chunked(&whole.replace("data: ", "id: 7\nretry: 9\nevent: message\ndata: ")), Whole);
        more("data in lines", chunked(&whole.replace("data: {", "data: {\ndata: ")), Whole);
        more("done first", chunked(&format!("data: [DONE]\n\n{whole}")), Any);
        let (before, after) = whole.split_at(whole.rfind("data: {").unwrap());
        more("done in between", chunked(&format!("{before}data: [DONE]\n\n{after}")), Any);
        more("done twice", chunked(&format!("{whole}data: [DONE]\n\ndata: [DONE]\n\n")), Whole);
        more("no done", chunked(&whole.replace("data: [DONE]\n\n", "")), Whole);
    }
    let error = json!({ "error": { "type": "overloaded_error", "message": "full" } });
    let (before, after) = whole.split_at(whole.len() / 2);
    let at = before.rfind("\n").map_or(0, |at| at + 1);
    let line = if kind == Ollama { format!("{error}\n") } else { format!("\ndata: {error}\n\n") };
    more("an error in between", chunked(&format!("{}{line}{}{after}", &before[..at], &before[at..])), Any);
    more("an error after it", chunked(&format!("{whole}{line}")), Whole);
    let length = whole.len();
    for cut in (1..24).map(|n| length * n / 24) {
        let part = &whole.as_bytes()[..cut];
        for (what, answer) in [
            ("cut", in_chunks(&head(kind), part, 29, "")),
            ("ended", in_chunks(&head(kind), part, 1000, "0\r\n\r\n")),
        ] {
            all.push(Wrong(format!("{what} at {cut}"), answer, false, Any));
        }
    }
    all
}

/// A turn that calls the tool `t`.
fn turns(kind: Kind) -> Vec<Wrong> {
    let reason = if kind == Anthropic { "tool_use" } else { "tool_calls" };
    let mut turn = kind.stops("looking", reason);
    let arguments = if kind == OpenAi { json!("{\"x\": \"1\"}") } else { json!({ "x": "1" }) };
    let call = match kind {
        Anthropic => json!({ "type": "tool_use", "id": "c", "name": "t", "input": arguments }),
        _ => json!({ "id": "c", "type": "function", "function": { "name": "t", "arguments": arguments } }),
    };
    let calls = json!([call]);
    match kind {
        Anthropic => turn["content"] = calls,
        OpenAi => turn["choices"][0]["message"]["tool_calls"] = calls,
        Ollama => turn["message"]["tool_calls"] = calls,
    }
    let mut all = Vec::new();
    let mut every = Vec::new();
    places(&turn, "", &mut every);
    for place in every {
        for wrong in wrongs() {
            let changed = with(&turn, &place, wrong.as_ref());
            let last = place.rsplit('/').next().unwrap();
            let is_of_call = ["id", "name", "arguments", "input", "x"].contains(&last) || is_harmless(&place);
            let name =
                format!("turn: {place} is {}", wrong.map_or("missing".to_owned(), |wrong| wrong.to_string()));
            all.push(Wrong(name, json(200, changed), false, if is_of_call { Whole } else { Any }));
        }
    }
    all
}

/// The same in pieces.
fn turns_in_pieces(kind: Kind) -> Vec<Wrong> {
    let chunk = |delta: Value, reason: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
    let more =
        |arguments: &str| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": arguments } }] });
    let piece = |arguments: &str| {
        let delta = json!({ "type": "input_json_delta", "partial_json": arguments });
        json!({ "type": "content_block_delta", "index": 0, "delta": delta })
    };
    let events = match kind {
        Anthropic => vec![
            json!({ "type": "message_start", "message": { "model": "m", "usage": { "input_tokens": 9 } } }),
            json!({ "type": "content_block_start", "index": 0,
                "content_block": { "type": "tool_use", "id": "c", "name": "t", "input": {} } }),
            piece("{\"x\""),
            piece(": \"1\"}"),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 2 } }),
            json!({ "type": "message_stop" }),
        ],
        OpenAi => vec![
            chunk(
                json!({ "role": "assistant", "content": null, "tool_calls": [
                    { "index": 0, "id": "c", "type": "function", "function": { "name": "t", "arguments": "" } }] }),
                Value::Null,
            ),
            chunk(more("{\"x\""), Value::Null),
            chunk(more(": \"1\"}"), Value::Null),
            chunk(json!({}), json!("tool_calls")),
        ],
        Ollama => vec![
            json!({ "message": { "role": "assistant", "content": "", "tool_calls": [
                { "function": { "name": "t", "arguments": { "x": "1" } } }] }, "done": false }),
            json!({ "message": { "content": "" }, "done": true, "done_reason": "stop" }),
        ],
    };
    let mut all = Vec::new();
    let mut of = |name: String, changed: &[Value]| {
        let answer = in_chunks(&head(kind), stream_of(kind, changed).as_bytes(), 29, "0\r\n\r\n");
        all.push(Wrong(format!("turn: {name}"), answer, false, Any));
    };
    for at in 0..events.len() {
        let mut changed = events.clone();
        let one = changed.remove(at);
        of(format!("event {at} lost"), &changed);
        changed.push(one.clone());
        of(format!("event {at} late"), &changed);
        changed = events.clone();
        changed.insert(at, one);
        of(format!("event {at} twice"), &changed);
        let mut every = Vec::new();
        places(&events[at], "", &mut every);
        for place in every {
            for wrong in [None, Some(Value::Null), Some(json!(7)), Some(json!({}))] {
                let mut changed = events.clone();
                changed[at] = with(&events[at], &place, wrong.as_ref());
                let wrong = wrong.map_or("missing".to_owned(), |wrong| wrong.to_string());
                of(format!("event {at}: {place} is {wrong}"), &changed);
            }
        }
    }
    all
}

/// Whether each call of each turn in a request has a result.
fn is_well_formed(kind: Kind, request: &Request) -> bool {
    let messages = request.body["messages"].as_array().unwrap();
    let of_turn = |message: &Value| match kind {
        Anthropic => {
            let blocks = message["content"].as_array().into_iter().flatten();
            blocks.filter(|block| block["type"] == "tool_use").count()
        }
        _ => message["tool_calls"].as_array().map_or(0, Vec::len),
    };
    let calls: usize = messages.iter().filter(|message| message["role"] == "assistant").map(of_turn).sum();
    calls == request.results().len()
}

fn table() -> Vec<Case> {
    let mut all = Vec::new();
    for kind in KINDS {
        for is_streamed in [false, true] {
            let count = all.len();
            // Tools and a schema change what is around a reply, not how it is read: documents are all read
            // without them, too.
            for combination in 0..4 {
                let (has_tools, has_schema) = (combination & 1 == 1, combination & 2 == 2);
                let text = if has_schema { JSON } else { TEXT };
                let wrongs = if is_streamed { streams(kind, text) } else { documents(kind, text) };
                let is_meant = |n: usize| match is_streamed {
                    true => (n + n / 12) % 4 == combination,
                    false => combination == 0 || (n + n / 12) % 9 + 1 == combination,
                };
                let rows = wrongs.into_iter().enumerate().filter(|(n, _)| is_meant(*n));
                all.extend(rows.map(|(_, Wrong(name, answer, is_said, end))| Case {
                    name,
                    kind,
                    is_streamed,
                    has_tools,
                    has_schema,
                    turn: None,
                    answer,
                    text,
                    is_said,
                    end,
                }));
            }
            let wrongs = if is_streamed { turns_in_pieces(kind) } else { turns(kind) };
            all.extend(wrongs.into_iter().map(|Wrong(name, turn, is_said, end)| Case {
                name,
                kind,
                is_streamed,
                has_tools: true,
                has_schema: false,
                turn: Some(turn),
                answer: kind.says(TEXT),
                text: TEXT,
                is_said,
                end,
            }));
            assert!(all.len() - count >= 80, "{kind:?} {is_streamed}: {}", all.len() - count);
        }
    }
    all
}

/// Runs an agent whose server has the case. Returns what is wrong with how it ended.
fn suffer(sandbox: &Sandbox, url: &str, case: &Case) -> Result<(), String> {
    let agent = format!("{}-{}", case.kind.name(), case.has_tools);
    let mut command = sandbox.asking(&agent, url);
    command.args(["-p", "hi", "--no-stdin", "--timeout", "60"]);
    if case.is_streamed {
        command.arg("--stream");
    }
    if case.has_schema {
        command.args(["--schema", "s.json"]);
    }
    let output = command.output().unwrap();
    let (out, err) = (output.out(), output.err());
    let is_one_line = err.lines().filter(|line| line.starts_with("axe-run: ")).count() == 1;
    match output.code() {
        _ if err.contains("panicked") => Err("it panicked"),
        _ if err.contains("axe-run: timeout: ") => Err("it waited for the deadline"),
        Some(0) if case.end == Whole && out.trim_end() != case.text => Err("the answer is another one"),
        Some(0) if out.trim().is_empty() && case.is_said => Err("a success without the text that came"),
        Some(0) if out.trim().is_empty() && !err.contains("empty") => Err("an empty success without a warning"),
        Some(0) => Ok(()),
        _ if case.end == Whole => Err("the answer came whole, and is lost"),
        // A wrong answer to a schema.
        Some(1) if case.has_schema && err.contains("does not match the schema") => Ok(()),
        Some(3) if is_one_line && err.contains("axe-run: ") => Ok(()),
        _ => Err("it ended in another way"),
    }
    .map_err(|what| {
        let Case { name, kind, is_streamed, has_tools, has_schema, .. } = case;
        format!(
            "{what}: {name} ({kind:?}, streamed: {is_streamed}, tools: {has_tools}, schema: {has_schema}): {:?} {out:?} \
             {err:?}",
            output.code()
        )
    })
}

#[test]
fn a_reply_that_is_wrong_in_one_place_is_no_empty_success_and_a_whole_one_is_never_lost() {
    let cases = Arc::new(table());
    let of_server = Arc::clone(&cases);
    // The address says which case is meant.
    let server = Server::answering(move |request| {
        let number = request.path.split('/').nth(1).and_then(|part| part.parse::<usize>().ok()).unwrap();
        let case = &of_server[number];
        match &case.turn {
            _ if !is_well_formed(case.kind, request) => json(400, json!({ "error": "a call has no result" })),
            Some(turn) if request.results().is_empty() => turn.clone(),
            None if case.has_tools && request.results().is_empty() => {
                case.kind.calls_tools(&[("t", json!({}))])
            }
            _ => case.answer.clone(),
        }
    });
    let wrong = Mutex::new(Vec::new());
    // There are twelve values for a place: with 3, each place would meet the same four.
    let (next, step) = (AtomicUsize::new(0), one_in(5));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let sandbox = Sandbox::new();
                sandbox.file("s.json", "{\"type\": \"object\"}");
                for kind in KINDS {
                    sandbox.model(&format!("{}-false", kind.name()), kind, "");
                    let tool =
                        "[tools.t]\ncommand = ['echo', 'found', '{x}']\nparameters = { x = 'string' }\n";
                    sandbox.model(&format!("{}-true", kind.name()), kind, tool);
                }
                loop {
                    let number = next.fetch_add(step, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else { break };
                    if let Err(why) = suffer(&sandbox, &format!("{}/{number}", server.url()), case) {
                        wrong.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let whole = cases.iter().filter(|case| case.end == Whole).count();
    say(&format!("server_mutations: {} rows, {whole} of them whole", cases.len()));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
