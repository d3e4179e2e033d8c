//! Anthropic's Messages API, through `axe-run`.

use crate::support::api::{Anthropic, KEY, ask, expect_unusable, to};
use crate::support::server::{Server, http, json};
use crate::support::{Said, Sandbox};
use serde_json::{Value, json};

const DEFAULT: &str = "Execute the task described in your instructions.";

#[test]
fn the_least_request_has_a_model_a_message_and_max_tokens() {
    let (output, server) = ask(Anthropic, "", &[], vec![Anthropic.says("hello")]);
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "hello", ""));
    let request = server.request();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages"));
    for (name, value) in [
        ("x-api-key", KEY),
        ("anthropic-version", "2023-06-01"),
        ("content-type", "application/json"),
        ("host", &server.url()["http://".len()..]),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert_eq!(request.header("authorization"), None);
    assert!(request.header("user-agent").unwrap().starts_with("axe/"));
    let messages = json!([{ "role": "user", "content": DEFAULT }]);
    assert_eq!(request.body, json!({ "model": "m-1", "max_tokens": 4096, "messages": messages }));
}

#[test]
fn params_and_the_system_prompt_go_where_the_api_has_them() {
    let agent = "system_prompt = 'Be kind.'\n[params]\ntemperature = 0.0\nmax_tokens = 77";
    let (_, server) = ask(Anthropic, agent, &[], vec![Anthropic.says("x")]);
    let body = server.request().body;
    assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.0), &json!(77)));
    assert_eq!(body["system"], "Be kind.");
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn a_tool_turn_goes_back_byte_for_byte_with_the_results_in_one_message() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "system_prompt = 'Be kind.'\nsub_agents = ['b', 'c']");
    sandbox.agent("b", "printf 'b says %s' \"$(cat)\"", "");
    sandbox.agent("c", "echo broken >&2; exit 7", "");
    let turn = r#"[ {"type":"thinking","thinking":"h\u006dm","signature":"Eq=="} ,
        {"type":"redacted_thinking","data":"x/y"}, {"type":"text","text":"I ask."},
        {"type":"tool_use","id":"t1","name":"call_agent","input":{ "agent":"b","task":"one","n":1.0,"m":1e3 }},
        {"type":"tool_use","id":"t2","name":"call_agent","input":{"task":"two" , "agent":"c","big":12345678901234567890123}},
        {"type":"tool_use","id":"t3","name":"call_agent","input":{}} ]"#;
    let first = format!(r#"{{"content":{turn},"stop_reason":"tool_use","usage":{{"input_tokens":1}}}}"#);
    let server = Server::playing([http("200 OK", first), Anthropic.says("done")]);
    let output = sandbox.asking("a", &server.url()).write_stdin("go").output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"), "{}", output.err());

    let requests = server.requests();
    assert!(requests[1].text.contains(turn), "{}", requests[1].text);
    let messages = &requests[1].body["messages"];
    assert_eq!(messages[0], json!({ "role": "user", "content": "go" }));
    assert_eq!(messages[1]["role"], "assistant");
    let result = |id: &str, content: &str, is_error: bool| json!({ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error });
    let failed = "Error: sub-agent \"c\" failed - server: command \"echo\" failed (exit 7): broken. \
                  You may retry or proceed without this result.";
    let mut last = result("t3", "call_agent error: \"agent\" argument is required", true);
    // The next turn continues from here.
    last["cache_control"] = json!({ "type": "ephemeral" });
    assert_eq!(
        messages[2],
        json!({ "role": "user", "content": [
            result("t1", "b says Task: one", false),
            result("t2", failed, true),
            last,
        ]})
    );
    assert_eq!(messages.as_array().unwrap().len(), 3);
    for request in &requests {
        let cached = json!({ "type": "ephemeral" });
        let system = json!([{ "type": "text", "text": "Be kind.", "cache_control": cached }]);
        assert_eq!(request.body["system"], system);
        let tools = request.body["tools"].as_array().unwrap();
        let tool = &tools[0];
        assert_eq!((tools.len(), &tool["name"], &tool["cache_control"]), (1, &json!("call_agent"), &cached));
        let schema = &tool["input_schema"];
        assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["agent", "task"])));
        for name in ["agent", "task", "context"] {
            assert_eq!(schema["properties"][name]["type"], "string", "{name}");
        }
        for text in [&tool["description"], &schema["properties"]["agent"]["description"]] {
            assert!(text.as_str().unwrap().contains("b, c"), "{text}");
        }
    }
}

#[test]
fn counts_with_those_of_caches_are_in_the_envelope_and_in_verbose() {
    let usage = json!({
        "input_tokens": 5, "output_tokens": 7,
        "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
    });
    let mut answer = Anthropic.stops("hi", "end_turn");
    answer["usage"] = usage;
    let (output, _server) = ask(Anthropic, "", &["--json", "-v"], vec![json(200, answer)]);
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    for (name, value) in [
        ("model", json!("m-1-exact")),
        ("content", json!("hi")),
        ("input_tokens", json!(125)),
        ("output_tokens", json!(7)),
        ("stop_reason", json!("end_turn")),
        ("tool_calls", json!(0)),
        ("agent", json!("a")),
        ("provider", json!("anthropic")),
        ("sub_agents", json!([])),
        ("retries", json!(0)),
        ("cache_read_tokens", json!(100)),
        ("cache_write_tokens", json!(20)),
    ] {
        assert_eq!(envelope[name], value, "{name}");
    }
    assert!(envelope["duration_ms"].is_u64());
    assert!(
        output.err().contains("\nTokens:   125 input, 7 output\nStop:     end_turn\n"),
        "{}",
        output.err()
    );
}

#[test]
fn answers_that_are_not_whole_bear_a_warning_and_fail_when_strict() {
    let empty = |reason: Value| json!({ "content": [], "stop_reason": reason });
    for (answer, text, warning) in [
        (Anthropic.stops("x", "max_tokens"), "x", "the answer was cut off (stop reason: max_tokens)"),
        (Anthropic.stops("x", "pause_turn"), "x", "the answer was cut off (stop reason: pause_turn)"),
        (
            Anthropic.stops("x", "model_context_window_exceeded"),
            "x",
            "the answer was cut off (stop reason: model_context_window_exceeded)",
        ),
        (Anthropic.stops("x", "refusal"), "x", "the model refused to answer (stop reason: refusal)"),
        (empty(json!("end_turn")), "", "the answer is empty (stop reason: end_turn)"),
    ] {
        let (output, _server) = ask(Anthropic, "", &[], vec![json(200, answer.clone())]);
        let line = format!("Warning: {warning}\n");
        assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(0), text, line));
        let (output, _server) = ask(Anthropic, "", &["--strict"], vec![json(200, answer)]);
        let line = format!("axe-run: {warning}\n");
        assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(1), text, line));
    }
    let (output, _server) =
        ask(Anthropic, "", &["--strict"], vec![json(200, Anthropic.stops("x", "stop_sequence"))]);
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
}

#[test]
fn replies_without_content_are_errors() {
    for body in [json!({}), json!({ "content": null }), json!({ "content": [] }), json!({ "content": 5 })] {
        expect_unusable(Anthropic, &body, "response contains no content");
    }
}

#[test]
fn a_temperature_that_the_model_does_not_take_is_left_out() {
    let refused = json!({ "type": "error", "error": {
        "type": "invalid_request_error", "message": "`temperature` is deprecated for this model",
    }});
    let agent = "[params]\ntemperature = 0.3";
    let (output, server) =
        ask(Anthropic, agent, &["--json"], vec![json(400, refused.clone()), Anthropic.says("x")]);
    assert_eq!(output.code(), Some(0));
    let note = "Warning: temperature was left out: `temperature` is deprecated for this model\n";
    assert_eq!(output.err(), note);
    let bodies: Vec<Value> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!((&bodies[0]["temperature"], bodies[1].get("temperature")), (&json!(0.3), None));
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!(envelope["retries"], 0);

    let (output, server) = ask(Anthropic, agent, &[], vec![json(400, refused.clone()), json(400, refused)]);
    assert_eq!((output.code(), server.requests().len()), (Some(1), 2));
}

#[test]
fn a_note_of_the_first_turn_survives_a_tool_loop() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "sub_agents = ['b']\n[params]\ntemperature = 0.3");
    sandbox.agent("b", "echo ok", "");
    let refused = json!({ "error": { "message": "temperature is not supported" } });
    let server =
        Server::playing([json(400, refused), Anthropic.calls(&[to("b", "t")]), Anthropic.says("done")]);
    let output = sandbox.asking("a", &server.url()).output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "done"));
    assert_eq!(output.err(), "Warning: temperature was left out: temperature is not supported\n");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(server.requests()[2].body.get("temperature"), None);
}

#[test]
fn a_400_about_a_parameter_that_was_not_sent_stands() {
    for body in [
        json!({ "error": { "message": "temperature is not supported" } }),
        json!({ "error": { "param": "max_tokens", "message": "unsupported" } }),
    ] {
        let (output, server) = ask(Anthropic, "", &[], vec![json(400, body), Anthropic.says("x")]);
        assert_eq!((output.code(), server.requests().len()), (Some(1), 1), "{}", output.err());
    }
}
