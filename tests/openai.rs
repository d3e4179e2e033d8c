//! OpenAI's Chat Completions API, through `axe-run`.

use crate::support::api::{KEY, OpenAi, ask, expect_unusable};
use crate::support::server::{Server, http, json};
use crate::support::{Said, Sandbox};
use serde_json::{Value, json};

#[test]
fn the_least_request_is_a_model_and_a_message() {
    let (output, server) = ask(OpenAi, "", &["-p", "hi"], vec![OpenAi.says("hello")]);
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "hello", ""));
    let request = server.request();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!((request.header("x-api-key"), request.header("anthropic-version")), (None, None));
    assert_eq!(request.body, json!({ "model": "m-1", "messages": [{ "role": "user", "content": "hi" }] }));
}

#[test]
fn params_and_the_system_prompt_go_where_the_api_has_them() {
    let agent = "system_prompt = 'Be kind.'\n[params]\ntemperature = 0.0\nmax_tokens = 77";
    let (_, server) = ask(OpenAi, agent, &["-p", "hi"], vec![OpenAi.says("x")]);
    let messages = json!([{ "role": "system", "content": "Be kind." }, { "role": "user", "content": "hi" }]);
    assert_eq!(
        server.request().body,
        json!({ "model": "m-1", "messages": messages, "temperature": 0.0, "max_tokens": 77 })
    );
}

#[test]
fn a_tool_turn_goes_back_byte_for_byte_with_a_message_for_each_result() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "system_prompt = 'Be kind.'\nsub_agents = ['b']");
    sandbox.agent("b", "printf 'b says %s' \"$(cat)\"", "");
    let turn = r#"{ "role":"assistant" , "content":null,"refusal":null, "reasoning_content":"h\u006dm", "x":[1.0, 1e3],
        "tool_calls":[ {"id":"t1","type":"function","function":{"name":"call_agent","arguments":"{ \"agent\":\"b\", \"task\":\"one\" }"}},
        {"id":"t2","type":"function","function":{"name":"call_agent","arguments":"{\"agent\":\"b\", "}},
        {"id":"t3","type":"function","function":{"name":"call_agent","arguments":"[1]"}},
        {"id":"t4","type":"function","function":{"name":"call_agent"}} ] }"#;
    let first = format!(r#"{{"choices":[{{"message":{turn},"finish_reason":"tool_calls"}}]}}"#);
    let server = Server::playing([http("200 OK", first), OpenAi.says("done")]);
    let output = sandbox.asking("a", &server.url()).write_stdin("go").output().unwrap();
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "done", ""));

    let requests = server.requests();
    assert!(requests[1].text.contains(turn), "{}", requests[1].text);
    let messages = requests[1].body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "tool", "tool"]);
    assert_eq!(messages[3], json!({ "role": "tool", "tool_call_id": "t1", "content": "b says Task: one" }));
    for (message, id) in messages[4..].iter().zip(["t2", "t3", "t4"]) {
        let content = message["content"].as_str().unwrap();
        assert_eq!(message["tool_call_id"], id);
        assert!(content.starts_with("call_agent error: ") && content.contains("argument"), "{content}");
    }
    let tool = &requests[0].body["tools"][0];
    assert_eq!((&tool["type"], &tool["function"]["name"]), (&json!("function"), &json!("call_agent")));
    let schema = &tool["function"]["parameters"];
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["agent", "task"])));
    assert!(tool["function"]["description"].as_str().unwrap().contains('b'));
    assert_eq!(requests[0].body["tools"], requests[1].body["tools"]);
}

#[test]
fn cached_tokens_are_counted_once() {
    let mut answer = OpenAi.stops("hi", "stop");
    answer["usage"] = json!({
        "prompt_tokens": 120, "completion_tokens": 7, "prompt_tokens_details": { "cached_tokens": 100 },
    });
    let (output, _server) = ask(OpenAi, "", &["--json", "-v"], vec![json(200, answer)]);
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    let counts = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"];
    assert_eq!(counts.map(|name| envelope[name].as_u64().unwrap()), [120, 7, 100, 0]);
    assert_eq!((&envelope["provider"], &envelope["model"]), (&json!("openai"), &json!("m-1-exact")));
    assert!(output.err().contains("\nTokens:   120 input, 7 output\nStop:     stop\n"), "{}", output.err());
}

#[test]
fn answers_that_are_not_whole_bear_a_warning_and_fail_when_strict() {
    let message = |message: Value| json!({ "choices": [{ "message": message, "finish_reason": "stop" }] });
    for (answer, text, warning) in [
        (OpenAi.stops("x", "length"), "x", "the answer was cut off (stop reason: length)"),
        (
            OpenAi.stops("x", "content_filter"),
            "x",
            "the model refused to answer (stop reason: content_filter)",
        ),
        (
            message(json!({ "content": null, "refusal": "I will not." })),
            "I will not.",
            "the model refused to answer (stop reason: stop)",
        ),
        (message(json!({ "content": "" })), "", "the answer is empty (stop reason: stop)"),
        (message(json!({ "content": null })), "", "the answer is empty (stop reason: stop)"),
    ] {
        let (output, _server) = ask(OpenAi, "", &[], vec![json(200, answer.clone())]);
        let line = format!("Warning: {warning}\n");
        assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(0), text, line));
        let (output, _server) = ask(OpenAi, "", &["--strict"], vec![json(200, answer)]);
        assert_eq!((output.code(), output.out().as_str()), (Some(1), text), "{warning}");
    }
}

#[test]
fn replies_without_choices_or_content_are_errors() {
    for (body, what) in [
        (json!({}), "response contains no choices"),
        (json!({ "choices": null }), "response contains no choices"),
        (json!({ "choices": [] }), "response contains no choices"),
        (json!({ "choices": [{}] }), "response contains no content"),
        (json!({ "choices": [{ "message": {} }] }), "response contains no content"),
    ] {
        expect_unusable(OpenAi, &body, what);
    }
}

#[test]
fn content_in_parts_is_one_text() {
    let parts = json!([{ "type": "text", "text": "one " }, { "type": "text", "text": "two" }]);
    let body = json!({ "choices": [{ "message": { "content": parts }, "finish_reason": "stop" }] });
    let (output, _server) = ask(OpenAi, "", &[], vec![json(200, body)]);
    assert_eq!((output.out().as_str(), output.err().as_str()), ("one two", ""));
}

#[test]
fn max_tokens_is_sent_under_its_new_name_once_it_was_refused() {
    let refused = json!({ "error": {
        "param": "max_tokens", "code": "unsupported_parameter",
        "message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    }});
    let hot =
        json!({ "error": { "param": "temperature", "code": "unsupported_value", "message": "only 1" } });
    let agent = "[params]\ntemperature = 0.3\nmax_tokens = 9";
    let answers = vec![json(400, refused.clone()), json(400, hot), OpenAi.says("x")];
    let (output, server) = ask(OpenAi, agent, &[], answers);
    assert_eq!((output.code(), output.out().as_str()), (Some(0), "x"));
    assert_eq!(output.err(), "Warning: temperature was left out: only 1\n");
    let sent: Vec<_> = server
        .requests()
        .into_iter()
        .map(|r| ["max_tokens", "max_completion_tokens", "temperature"].map(|n| r.body.get(n).is_some()))
        .collect();
    assert_eq!(sent, [[true, false, true], [false, true, true], [false, true, false]]);

    let (output, server) = ask(OpenAi, agent, &[], vec![json(400, refused.clone()), json(400, refused)]);
    assert_eq!((output.code(), server.requests().len()), (Some(1), 2));
    assert!(output.err().starts_with("axe-run: bad_request: Unsupported parameter"), "{}", output.err());
}

#[test]
fn a_400_about_a_parameter_that_was_not_sent_stands() {
    for param in ["max_tokens", "temperature"] {
        let body = json!({ "error": { "param": param, "message": "no" } });
        let (output, server) = ask(OpenAi, "", &[], vec![json(400, body), OpenAi.says("x")]);
        assert_eq!((output.code(), server.requests().len()), (Some(1), 1), "{param}");
    }
}
