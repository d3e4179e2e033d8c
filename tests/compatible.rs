//! Services that speak OpenAI's format with an accent: Gemini's compatible address, and OpenRouter. The forms are those of
//! their documentation and of reports about them.

use crate::support::api::{OpenAi, to};
use crate::support::server::{Answer, Server, http, json};
use crate::support::{Said, Sandbox};
use serde_json::{Value, json};
use std::process::Output;

/// Runs an agent with the sub-agents b and c through the provider `mine` at this path.
fn ask(path: &str, args: &[&str], answers: Vec<Answer>) -> (Output, Server, Sandbox) {
    let sandbox = Sandbox::new();
    let server = Server::playing(answers);
    let url = format!("{}{path}", server.url());
    sandbox.provider("mine", &format!("kind = 'openai'\nbase_url = '{url}'\napi_key = 'k'"));
    #[cfg(unix)]
    crate::support::set_mode(&sandbox.config().join("config.toml"), 0o600);
    sandbox.agent("b", "cat", "");
    sandbox.agent("c", "cat", "");
    sandbox
        .agent_file("a", "name = 'a'\nmodel = 'mine/m'\nsub_agents = ['b', 'c']\n[memory]\nenabled = true");
    let output = sandbox.run("a").env("AXE_RETRY_MAX", "0").args(args).output().unwrap();
    (output, server, sandbox)
}

fn stream(events: &[Value], before: &str) -> Answer {
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    http("200 OK\r\nContent-Type: text/event-stream", format!("{before}{events}data: [DONE]\n\n"))
}

fn delta(delta: Value, reason: Value) -> Value {
    json!({ "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
}

fn done() -> Answer {
    stream(&[delta(json!({ "content": "done" }), json!("stop"))], "")
}

#[test]
fn a_version_in_the_address_is_the_only_one() {
    for (path, asked) in [
        ("", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/api", "/api/v1/chat/completions"),
        ("/api/v1/", "/api/v1/chat/completions"),
        ("/v1beta/openai", "/v1beta/openai/chat/completions"),
        ("/v1beta/openai/", "/v1beta/openai/chat/completions"),
        ("/api/paas/v4", "/api/paas/v4/chat/completions"),
        ("/v1/account/gateway/openai", "/v1/account/gateway/openai/chat/completions"),
        ("/vertex/v", "/vertex/v/v1/chat/completions"),
    ] {
        let (output, server, _) = ask(path, &[], vec![OpenAi.says("x")]);
        assert_eq!((output.code(), server.request().path.as_str()), (Some(0), asked), "{}", output.err());
    }
}

/// A turn with one call of b and one of c, in the given pieces, must become two calls, and go back with an id for each.
fn two_calls(pieces: &[Value]) {
    let mut events: Vec<Value> = pieces
        .iter()
        .map(|piece| delta(json!({ "role": "assistant", "tool_calls": [piece] }), Value::Null))
        .collect();
    // Gemini says so also of calls.
    events.push(delta(json!({}), json!("stop")));
    let (output, server, _) = ask("/v1beta/openai", &["--stream"], vec![stream(&events, ""), done()]);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{pieces:?}: {}", output.err());
    let requests = server.requests();
    let messages = requests[1].body["messages"].as_array().unwrap();
    assert_eq!(requests[1].results(), ["Task: one", "Task: two"], "{pieces:?}");
    let calls = messages[1]["tool_calls"].as_array().unwrap();
    let ids: Vec<_> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    let told: Vec<_> =
        messages[2..].iter().map(|message| message["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), &ids, ids[0] == ids[1]), (2, &told, false), "{pieces:?}");
    let arguments: Vec<Value> = calls
        .iter()
        .map(|call| serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(arguments, [to("b", "one"), to("c", "two")]);
    // The signature of its thinking must come back, or Gemini rejects the turn.
    if pieces.iter().any(|piece| piece.get("extra_content").is_some()) {
        assert_eq!(calls[0]["extra_content"]["google"]["thought_signature"], "c2ln");
    }
}

#[test]
fn parallel_calls_of_gemini_are_told_apart() {
    let (one, two) = (to("b", "one").to_string(), to("c", "two").to_string());
    let call = |head: Value, arguments: &str| {
        let mut call = head;
        call["function"] = json!({ "name": "call_agent", "arguments": arguments });
        call["type"] = json!("function");
        call
    };
    let signed = |mut call: Value| {
        call["extra_content"] = json!({ "google": { "thought_signature": "c2ln" } });
        call
    };
    // The same index for both.
    two_calls(&[
        signed(call(json!({ "index": 0, "id": "f1" }), &one)),
        call(json!({ "index": 0, "id": "f2" }), &two),
    ]);
    // No index.
    two_calls(&[signed(call(json!({ "id": "f1" }), &one)), call(json!({ "id": "f2" }), &two)]);
    // An empty id, or none.
    two_calls(&[call(json!({ "index": 0, "id": "" }), &one), call(json!({ "index": 0, "id": "" }), &two)]);
    two_calls(&[call(json!({}), &one), call(json!({}), &two)]);
    two_calls(&[call(json!({ "index": 0 }), &one), call(json!({ "index": 1 }), &two)]);
    // Arguments in pieces without an index, and a signature of its own.
    let piece = |text: &str| json!({ "function": { "arguments": text } });
    two_calls(&[
        call(json!({ "id": "f1" }), &one[..5]),
        piece(&one[5..]),
        json!({ "extra_content": { "google": { "thought_signature": "c2ln" } } }),
        call(json!({ "id": "f2" }), &two[..9]),
        piece(&two[9..]),
    ]);
    // Servers that repeat what they said.
    two_calls(&[
        call(json!({ "index": 0, "id": "f1" }), ""),
        call(json!({ "index": 0, "id": "f1" }), &one),
        call(json!({ "index": 1, "id": "f2" }), &two[..3]),
        call(json!({ "index": 1, "id": "f2" }), &two[3..]),
    ]);
}

#[test]
fn calls_without_ids_work_without_a_stream_too() {
    for id in [json!(""), Value::Null] {
        let call = |agent: &str, task: &str| {
            let function = json!({ "name": "call_agent", "arguments": to(agent, task).to_string() });
            json!({ "id": id, "type": "function", "function": function })
        };
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [call("b", "one"), call("c", "two")] });
        let turn = json(200, json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] }));
        let (output, server, _) = ask("/v1beta/openai", &[], vec![turn.clone(), turn, OpenAi.says("done")]);
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
        let last = &server.requests()[2];
        assert_eq!(last.results(), ["Task: one", "Task: two", "Task: one", "Task: two"]);
        let messages = last.body["messages"].as_array().unwrap();
        let mut ids: Vec<_> =
            messages.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        let named: Vec<_> = messages
            .iter()
            .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
            .map(|call| call["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, named);
        ids.dedup();
        assert_eq!(ids.len(), 4, "{ids:?}");
    }
}

#[test]
fn errors_of_gemini_are_lists() {
    let error = |code: u16, message: &str, status: &str| json!([{ "error": { "code": code, "message": message, "status": status } }]);
    for (status, code, message, exit, line) in [
        (400, 400, "API key not valid.", 1, "bad_request: API key not valid."),
        (429, 429, "You exceeded your current quota", 3, "rate_limit: You exceeded your current quota"),
        (503, 503, "The model is overloaded.", 3, "server: The model is overloaded."),
        (200, 429, "Resource exhausted", 3, "rate_limit: Resource exhausted"),
    ] {
        for args in [&[][..], &["--stream"]] {
            let answer = json(status, error(code, message, "X"));
            let (output, _, sandbox) = ask("/v1beta/openai", args, vec![answer]);
            assert_eq!((output.code(), output.out().as_str()), (Some(exit), ""), "{}", output.err());
            assert!(output.err().starts_with(&format!("axe-run: {line}")), "{}", output.err());
            assert!(!sandbox.log_path("a").exists());
        }
    }
}

#[test]
fn comments_of_openrouter_say_nothing() {
    let comments = ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n";
    let events = [
        delta(
            json!({ "role": "assistant", "content": "", "reasoning": "let me ", "reasoning_details": [
            { "type": "reasoning.text", "text": "let me ", "index": 0, "format": "anthropic-claude-v1" }] }),
            Value::Null,
        ),
        delta(
            json!({ "content": "", "reasoning": "see", "reasoning_details": [
            { "type": "reasoning.text", "text": "see", "signature": "s==", "index": 0, "format": "anthropic-claude-v1" }] }),
            Value::Null,
        ),
        delta(
            json!({ "content": "", "tool_calls": [{ "index": 0, "id": "t1", "type": "function",
            "function": { "name": "call_agent", "arguments": to("b", "one").to_string() } }] }),
            json!("tool_calls"),
        ),
        json!({ "choices": [], "usage": { "prompt_tokens": 5, "completion_tokens": 6, "cost": 0.1,
            "prompt_tokens_details": { "cached_tokens": 4, "cache_write_tokens": 1 } } }),
    ];
    let (output, server, _) = ask("/api/v1", &["--stream", "-v"], vec![stream(&events, comments), done()]);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());
    assert!(output.err().contains("Cache:    4 of the input read, 1 written"), "{}", output.err());
    let turn = &server.requests()[1].body["messages"][1];
    assert_eq!(
        (&turn["reasoning"], turn["reasoning_details"].as_array().unwrap().len()),
        (&json!("let me see"), 1)
    );
    let detail = &turn["reasoning_details"][0];
    assert_eq!((&detail["text"], &detail["signature"]), (&json!("let me see"), &json!("s==")));
    assert_eq!(
        (&detail["type"], &detail["format"]),
        (&json!("reasoning.text"), &json!("anthropic-claude-v1"))
    );
    // Without a stream, it keeps the connection alive with white space.
    let body = format!("{}{}", "\n         ".repeat(50), OpenAi.stops("fine", "stop"));
    let (output, ..) = ask("/api/v1", &[], vec![http("200 OK\r\nContent-Type: application/json", body)]);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "fine"), "{}", output.err());
}

#[test]
fn errors_of_openrouter_come_with_status_200_and_with_their_cause() {
    let error = json!({ "code": 502, "message": "Provider returned error",
        "metadata": { "provider_name": "X", "raw": "{\"message\":\"it is\\nfull\"}" } });
    let line = "axe-run: server: Provider returned error: {\"message\":\"it is\\nfull\"}";
    let choice = json!({ "choices": [{ "message": { "content": "part" }, "finish_reason": "error", "error": error }] });
    let chunk =
        json!({ "error": error, "choices": [{ "delta": { "content": "" }, "finish_reason": "error" }] });
    let in_choice =
        json!({ "choices": [{ "delta": { "content": "" }, "finish_reason": "error", "error": error }] });
    let part = delta(json!({ "content": "part" }), Value::Null);
    for (args, answer, out) in [
        (&[][..], json(200, json!({ "error": error })), ""),
        (&[], json(502, json!({ "error": error })), ""),
        (&[], json(200, choice), ""),
        (&["--stream"], stream(&[part.clone(), chunk], ": OPENROUTER PROCESSING\n\n"), "part\n"),
        (&["--stream"], stream(&[part.clone(), in_choice], ""), "part\n"),
    ] {
        let (output, _, sandbox) = ask("/api/v1", args, vec![answer]);
        assert_eq!((output.code(), output.out().as_str()), (Some(3), out), "{}", output.err());
        assert!(output.err().starts_with(line), "{}", output.err());
        assert!(!sandbox.log_path("a").exists());
    }
    // An end that is an error, without a word about it.
    let bare = delta(json!({ "content": "" }), json!("error"));
    let (output, ..) = ask("/api/v1", &["--stream"], vec![stream(&[part, bare], "")]);
    assert_eq!(output.code(), Some(3), "{}", output.err());
    assert!(output.err().contains("the service ended its answer with an error"), "{}", output.err());
    let limited = json!({ "error": { "code": 429, "message": "Rate limit exceeded: free-models-per-day" } });
    let (output, ..) = ask("/api/v1", &[], vec![json(200, limited)]);
    assert!(output.err().starts_with("axe-run: rate_limit: Rate limit exceeded"), "{}", output.err());
}
