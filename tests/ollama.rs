//! Ollama's own API, through `axe-run`.

use crate::support::api::{Ollama, ask, expect_unusable};
use crate::support::server::{Server, http, json};
use crate::support::{Said, Sandbox};
use serde_json::{Value, json};
use std::net::TcpListener;

#[test]
fn the_least_request_is_not_streamed_and_has_no_options() {
    let (output, server) = ask(Ollama, "", &["-p", "hi"], vec![Ollama.says("hello")]);
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "hello", ""));
    let request = server.request();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/api/chat"));
    let messages = json!([{ "role": "user", "content": "hi" }]);
    assert_eq!(request.body, json!({ "model": "m-1", "messages": messages, "stream": false }));
}

#[test]
fn it_needs_no_key() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Ollama, "");
    let server = Server::playing([Ollama.says("hello")]);
    let output = sandbox.run("a").env("AXE_OLLAMA_BASE_URL", server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "hello"));
    assert_eq!(server.request().header("authorization"), None);
}

#[test]
fn params_and_the_system_prompt_go_where_the_api_has_them() {
    let agent = "system_prompt = 'Be kind.'\n[params]\ntemperature = 0.0\nmax_tokens = 77";
    let (_, server) = ask(Ollama, agent, &["-p", "hi"], vec![Ollama.says("x")]);
    let messages = json!([{ "role": "system", "content": "Be kind." }, { "role": "user", "content": "hi" }]);
    let options = json!({ "temperature": 0.0, "num_predict": 77 });
    assert_eq!(
        server.request().body,
        json!({ "model": "m-1", "messages": messages, "stream": false, "options": options })
    );
}

#[test]
fn a_long_prompt_asks_for_the_context_that_it_needs() {
    for (bytes, wanted) in [(3_000, None), (30_000, Some(16_384)), (3_000_000, Some(131_072))] {
        let sandbox = Sandbox::new();
        sandbox.model("a", Ollama, "");
        let mut answer = Ollama.stops("x", "stop");
        answer["prompt_eval_count"] = json!(bytes / 4);
        let server = Server::playing([json(200, answer)]);
        let output =
            sandbox.asking("a", &server.url()).write_stdin("abc ".repeat(bytes / 4)).output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        assert_eq!(server.request().body["options"]["num_ctx"].as_u64(), wanted, "{bytes}");
    }
}

#[test]
fn a_prompt_that_was_cut_in_silence_bears_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Ollama, "");
    let mut answer = Ollama.stops("x", "stop");
    answer["prompt_eval_count"] = json!(2048);
    let server = Server::playing([json(200, answer)]);
    let output = sandbox.asking("a", &server.url()).write_stdin("abcd".repeat(10_000)).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "x"));
    let line = "Warning: Ollama probably cut the prompt: it read 2048 tokens of a prompt of 40000 bytes\n";
    assert_eq!(output.err(), line);
}

#[test]
fn a_prompt_that_was_cut_before_a_tool_turn_bears_a_warning_too() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Ollama, "sub_agents = ['b']");
    sandbox.agent("b", "echo ok", "");
    let server =
        Server::playing([Ollama.calls(&[json!({ "agent": "b", "task": "t" })]), Ollama.says("done")]);
    let output = sandbox.asking("a", &server.url()).write_stdin("abcd".repeat(10_000)).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"));
    assert!(output.err().contains("Warning: Ollama probably cut the prompt: "), "{}", output.err());
}

#[test]
fn a_tool_turn_goes_back_byte_for_byte_and_results_name_the_tool() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Ollama, "sub_agents = ['b']");
    sandbox.agent("b", "printf 'b says %s' \"$(cat)\"", "");
    let turn = r#"{ "role":"assistant" , "content":"","thinking":"h\u006dm",
        "tool_calls":[ {"function":{"name":"call_agent","arguments":{ "agent":"b","task":"one","x":[1.0, 1e3] }}},
        {"function":{"name":"look","arguments":{}}}, {"function":{"name":"call_agent"}} ] }"#;
    let first = format!(r#"{{"message":{turn},"done":true,"done_reason":"stop"}}"#);
    let server = Server::playing([http("200 OK", first), Ollama.says("done")]);
    let output = sandbox.asking("a", &server.url()).write_stdin("go").output().unwrap();
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "done", ""));
    let requests = server.requests();
    assert!(requests[1].text.contains(turn), "{}", requests[1].text);
    let messages = requests[1].body["messages"].as_array().unwrap();
    assert_eq!(
        messages[2],
        json!({ "role": "tool", "tool_name": "call_agent", "content": "b says Task: one" })
    );
    assert_eq!(
        messages[3],
        json!({ "role": "tool", "tool_name": "look", "content": "Unknown tool: \"look\"" })
    );
    assert!(messages[4]["content"].as_str().unwrap().starts_with("call_agent error: "), "{}", messages[4]);
    let tool = &requests[0].body["tools"][0];
    assert_eq!((&tool["type"], &tool["function"]["name"]), (&json!("function"), &json!("call_agent")));
}

#[test]
fn counts_are_in_the_envelope_and_in_verbose() {
    let (output, _server) = ask(Ollama, "", &["--json", "-v"], vec![Ollama.says("hi")]);
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    let counts = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"];
    assert_eq!(counts.map(|name| envelope[name].as_u64().unwrap()), [10, 2, 0, 0]);
    assert_eq!((&envelope["provider"], &envelope["stop_reason"]), (&json!("ollama"), &json!("stop")));
    assert!(output.err().contains("\nTokens:   10 input, 2 output\nStop:     stop\n"), "{}", output.err());
}

#[test]
fn answers_that_are_not_whole_bear_a_warning_and_fail_when_strict() {
    for (answer, text, warning) in [
        (Ollama.stops("x", "length"), "x", "the answer was cut off (stop reason: length)"),
        (Ollama.stops("", "stop"), "", "the answer is empty (stop reason: stop)"),
    ] {
        let (output, _server) = ask(Ollama, "", &[], vec![json(200, answer.clone())]);
        let line = format!("Warning: {warning}\n");
        assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(0), text, line));
        let (output, _server) = ask(Ollama, "", &["--strict"], vec![json(200, answer)]);
        assert_eq!((output.code(), output.out().as_str()), (Some(1), text), "{warning}");
    }
}

#[test]
fn replies_without_content_are_errors() {
    for body in [
        json!({}),
        json!({ "message": null, "done": true }),
        json!({ "message": { "content": "" }, "done": false }),
        json!({ "message": { "content": "" }, "done": true, "done_reason": "load" }),
    ] {
        expect_unusable(Ollama, &body, "response contains no content");
    }
}

#[test]
fn nobody_there_asks_whether_ollama_runs() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let sandbox = Sandbox::new();
    sandbox.model("a", Ollama, "[memory]\nenabled = true");
    let output = sandbox.run("a").env("AXE_OLLAMA_BASE_URL", &url).output().unwrap();
    let line = format!("axe-run: server: connection refused: is Ollama running? (expected at {url})\n");
    assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(3), "", line));
    assert!(!sandbox.log_path("a").exists());
}
