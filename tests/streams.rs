//! Replies that come in pieces: printed as they come, put together as if they had come whole, and never a success if they
//! break off.

use crate::support::api::{Anthropic, KINDS, Kind, Ollama, OpenAi, to};
use crate::support::server::{Answer, Request, Server, http, json, raw};
use crate::support::{Said, Sandbox, eventually, full_disk, present};
use serde_json::{Value, json};
use std::io::Read;
use std::process::Stdio;

/// The events of an answer that says `texts`, without its end.
pub(crate) fn begun(kind: Kind, texts: &[&str]) -> String {
    match kind {
        Anthropic => {
            let start = json!({ "type": "message_start", "message": {
                "model": "m-1-exact", "usage": { "input_tokens": 10, "output_tokens": 1 } } });
            let block = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } });
            let delta = |text: &&str| {
                let delta = json!({ "type": "text_delta", "text": text });
                json!({ "type": "content_block_delta", "index": 0, "delta": delta })
            };
            events([start, block].into_iter().chain(texts.iter().map(delta)))
        }
        OpenAi => events(texts.iter().map(|text| {
            json!({ "model": "m-1-exact", "choices": [{ "delta": { "content": text }, "finish_reason": null }] })
        })),
        Ollama => lines(texts.iter().map(|text| {
            json!({ "model": "m-1-exact", "message": { "role": "assistant", "content": text }, "done": false })
        })),
    }
}

pub(crate) fn ended(kind: Kind) -> String {
    match kind {
        Anthropic => events([
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 2 } }),
            json!({ "type": "message_stop" }),
        ]),
        OpenAi => {
            let usage = json!({ "prompt_tokens": 10, "completion_tokens": 2 });
            let last = [
                json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
                json!({ "choices": [], "usage": usage }),
            ];
            events(last) + "data: [DONE]\n\n"
        }
        Ollama => lines([json!({
            "model": "m-1-exact", "message": { "content": "" }, "done": true, "done_reason": "stop",
            "prompt_eval_count": 10, "eval_count": 2,
        })]),
    }
}

pub(crate) fn events(all: impl IntoIterator<Item = Value>) -> String {
    all.into_iter().map(|event| format!("data: {event}\n\n")).collect()
}

pub(crate) fn lines(all: impl IntoIterator<Item = Value>) -> String {
    all.into_iter().map(|line| format!("{line}\n")).collect()
}

pub(crate) fn content_type(kind: Kind) -> &'static str {
    if kind == Ollama { "application/x-ndjson" } else { "text/event-stream; charset=utf-8" }
}

/// A response with this body, in chunks of a few bytes.
pub(crate) fn chunked(kind: Kind, body: &str, end: &str) -> Answer {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        content_type(kind)
    );
    let mut bytes = head.into_bytes();
    for chunk in body.as_bytes().chunks(29) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(end.as_bytes());
    raw(bytes)
}

pub(crate) fn says(kind: Kind, texts: &[&str]) -> Answer {
    chunked(kind, &(begun(kind, texts) + &ended(kind)), "0\r\n\r\n")
}

fn sandbox(kind: Kind, more: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.model("a", kind, &format!("{more}\n[memory]\nenabled = true"));
    sandbox.agent("b", "echo b", "");
    sandbox
}

#[test]
fn an_answer_in_pieces_is_the_answer() {
    for kind in KINDS {
        let sandbox = sandbox(kind, "");
        let server = Server::playing([says(kind, &["on", "e\n", "tw\u{1f980}o"]), says(kind, &["one"])]);
        let output =
            sandbox.asking("a", &server.url()).args(["--stream", "-v", "-p", "hi"]).output().unwrap();
        assert_eq!(
            (output.code(), output.out().as_str()),
            (Some(0), "one\ntw\u{1f980}o"),
            "{}",
            output.err()
        );
        assert!(output.err().contains("\nTokens:   10 input, 2 output\n"), "{}", output.err());
        assert!(sandbox.log("a").ends_with("**Result:** one\ntw\u{1f980}o\n\n"));
        let body = &server.requests()[0].body;
        assert_eq!(body["stream"], true);
        assert_eq!(body["stream_options"] == json!({ "include_usage": true }), kind == OpenAi);

        let output =
            sandbox.asking("a", &server.url()).args(["--stream", "--json", "-p", "hi"]).output().unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!((&envelope["content"], &envelope["model"]), (&json!("one"), &json!("m-1-exact")));
        assert_eq!((&envelope["input_tokens"], &envelope["output_tokens"]), (&json!(10), &json!(2)));
    }
}

#[test]
fn text_appears_before_the_answer_is_whole_and_a_stall_ends_at_the_deadline() {
    for kind in KINDS {
        let sandbox = sandbox(kind, "");
        let server = Server::answering(move |_| chunked(kind, &begun(kind, &["first "]), "").stall());
        let run = sandbox.asking("a", &server.url());
        let mut command = sandbox.std_command("axe-run");
        command.envs(present(run.get_envs()));
        command.args(["a", "--stream", "--no-stdin"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The answer never becomes whole, and no deadline is near.
        let mut child = command.spawn().unwrap();
        let mut first = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
        assert_eq!(&first, b"first ");
        child.kill().unwrap();
        child.wait().unwrap();
        let output = command.args(["--timeout", "1"]).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(3), "first \n"), "{}", output.err());
        assert!(output.err().starts_with("axe-run: timeout: "), "{}", output.err());
        assert!(!sandbox.log_path("a").exists());
    }
}

#[test]
fn a_stream_that_breaks_is_no_success_and_not_asked_for_again() {
    for kind in KINDS {
        let error = match kind {
            Ollama => lines([json!({ "error": "it broke" })]),
            _ => events([json!({ "type": "error", "error": { "message": "it broke" } })]),
        };
        let begin = begun(kind, &["one"]);
        for (answer, why) in [
            (chunked(kind, &begin, ""), "broke off after 3 bytes of the answer"),
            (chunked(kind, &begin, "0\r\n\r\n"), "broke off after 3 bytes of the answer"),
            (chunked(kind, &begin, "zz\r\n"), "a chunk of the response has no valid size"),
            (chunked(kind, &(begin.clone() + &error), "0\r\n\r\n"), "it broke"),
            (chunked(kind, &(begin.clone() + "data: {\n\n{\n"), "0\r\n\r\n"), "is not JSON"),
            (
                http(&format!("200 OK\r\nContent-Type: {}", content_type(kind)), &begin[..begin.len() - 9]),
                "broke off after",
            ),
        ] {
            for (args, has_text) in [(&["--stream"][..], true), (&["--stream", "--json"], false)] {
                let sandbox = sandbox(kind, "");
                let ours = answer.clone();
                let server = Server::answering(move |_| ours.clone());
                let mut run = sandbox.asking("a", &server.url());
                let output = run.env("AXE_RETRY_MAX", "2").args(args).output().unwrap();
                assert_eq!((output.code(), server.requests().len()), (Some(3), 1), "{}", output.err());
                assert!(output.err().contains(why), "{why}: {}", output.err());
                assert!(has_text || output.out().is_empty(), "{}", output.out());
                assert!(!sandbox.log_path("a").exists());
            }
        }
    }
}

#[test]
fn what_fails_before_the_first_byte_is_tried_again() {
    for kind in KINDS {
        let sandbox = sandbox(kind, "");
        let busy = http("529 Busy\r\nRetry-After: 0", "");
        let server = Server::playing([busy, chunked(kind, "", "0\r\n\r\n"), says(kind, &["one"])]);
        let mut run = sandbox.asking("a", &server.url());
        let output = run.env("AXE_RETRY_MAX", "2").arg("--stream").output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "one"), "{}", output.err());
    }
}

#[test]
fn a_server_that_does_not_stream_is_understood() {
    for kind in KINDS {
        let sandbox = sandbox(kind, "");
        let server = Server::playing([
            kind.says("whole"),
            http("200 OK", begun(kind, &["un", "named"]) + &ended(kind)),
        ]);
        for text in ["whole", "unnamed"] {
            // Ollama always names its streams.
            if kind != Ollama || text == "whole" {
                let output = sandbox.asking("a", &server.url()).arg("--stream").output().unwrap();
                assert_eq!((output.code(), output.out().as_str()), (Some(0), text), "{}", output.err());
            }
        }
    }
    let refused =
        json(400, json!({ "error": { "message": "Unrecognized request argument: stream_options" } }));
    let sandbox = sandbox(OpenAi, "");
    let server = Server::playing([refused, says(OpenAi, &["one"])]);
    let output = sandbox.asking("a", &server.url()).arg("--stream").output().unwrap();
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "one", ""));
    assert!(server.requests()[1].body.get("stream_options").is_none());
}

/// A turn of OpenAI's that says something and calls b.
fn calling() -> Answer {
    let function = json!({ "name": "call_agent", "arguments": "" });
    let pieces = [
        json!({ "choices": [{ "delta": { "role": "assistant", "content": "let me see" } }] }),
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "c", "function": function }] } }] }),
        json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "function": { "arguments": to("b", "t").to_string() } }] } }] }),
        json!({ "choices": [{ "delta": {}, "finish_reason": "tool_calls" }] }),
    ];
    chunked(OpenAi, &events(pieces), "0\r\n\r\n")
}

#[test]
fn tool_turns_are_streamed_too_and_go_back_whole() {
    let sandbox = sandbox(OpenAi, "sub_agents = ['b']");
    let server = Server::playing([calling(), says(OpenAi, &["do", "ne"])]);
    let output = sandbox.asking("a", &server.url()).arg("--stream").output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "let me see\n\ndone"), "{}", output.err());
    let messages: Vec<Request> = server.requests();
    let turn = &messages[1].body["messages"][1];
    assert_eq!((&turn["role"], &turn["content"]), (&json!("assistant"), &json!("let me see")));
    assert_eq!(turn["tool_calls"][0]["function"]["arguments"], to("b", "t").to_string());
    assert_eq!(messages[1].results(), ["b"]);
    assert!(sandbox.log("a").ends_with("**Result:** done\n\n"));
}

#[test]
fn a_schema_or_a_provider_that_streams_prints_nothing_before_the_end() {
    let sandbox = sandbox(OpenAi, "");
    sandbox.file("s.json", "{\"type\": \"object\"}");
    let server = Server::playing([says(OpenAi, &["no JSON"]), says(OpenAi, &["{", "}"])]);
    let output =
        sandbox.asking("a", &server.url()).args(["--stream", "--schema", "s.json"]).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "{}"), "{}", output.err());
    assert_eq!(server.requests()[1].body["messages"][1]["content"], "no JSON");

    sandbox.agent_file("p", "name = 'p'\nmodel = 'mine/m'");
    let server = Server::playing([says(OpenAi, &["on", "e"])]);
    sandbox.provider(
        "mine",
        &format!("kind = 'openai'\nbase_url = '{}'\napi_key = 'k'\nstream = true", server.url()),
    );
    let output = sandbox.run("p").output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "one"), "{}", output.err());
    assert_eq!(server.request().body["stream"], true);
}

#[test]
fn a_stdout_that_fails_does_not_cost_the_answer() {
    let sandbox = sandbox(Anthropic, "");
    let server = Server::playing([says(Anthropic, &["on", "e"])]);
    let run = sandbox.asking("a", &server.url());
    let mut command = sandbox.std_command("axe-run");
    command.envs(present(run.get_envs()));
    let output = command.args(["a", "--stream", "--no-stdin"]).stdout(full_disk()).output().unwrap();
    assert_eq!(output.code(), Some(1), "{}", output.err());
    assert!(output.err().contains("cannot write to stdout"), "{}", output.err());
    eventually("the log has the answer", || sandbox.log("a").ends_with("**Result:** one\n\n"));
}

#[test]
fn newline_and_commands_work_with_stream() {
    let sandbox = sandbox(OpenAi, "");
    let server = Server::playing([says(OpenAi, &["one"]), says(OpenAi, &["one\n"])]);
    for _ in 0..2 {
        let output = sandbox.asking("a", &server.url()).args(["--stream", "--newline"]).output().unwrap();
        assert_eq!(output.out(), "one\n");
    }
    let output = sandbox.run("b").args(["--stream", "--newline"]).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "b\n"));
}
