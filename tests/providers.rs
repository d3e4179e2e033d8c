//! What holds for every service: errors by status, keys and where they come from, names and addresses.

use crate::support::api::{KEY, KINDS, Kind, OpenAi, ask};
use crate::support::server::{Server, http, json, raw};
use crate::support::{Said, Sandbox};
use serde_json::{Value, json};

const STATUSES: &[(u16, &str, i32)] = &[
    (400, "bad_request", 1),
    (401, "auth", 3),
    (402, "rate_limit", 3),
    (403, "auth", 3),
    (404, "bad_request", 1),
    (405, "bad_request", 1),
    (406, "server", 3),
    (408, "timeout", 3),
    (409, "server", 3),
    (413, "bad_request", 1),
    (415, "bad_request", 1),
    (418, "server", 3),
    (422, "bad_request", 1),
    (429, "rate_limit", 3),
    (500, "server", 3),
    (501, "server", 3),
    (502, "server", 3),
    (503, "server", 3),
    (504, "server", 3),
    (529, "overloaded", 3),
    (599, "server", 3),
];

#[test]
fn every_status_has_a_category_and_an_exit_code() {
    for (kind, body) in [
        (Kind::Anthropic, json!({ "type": "error", "error": { "type": "x_error", "message": "it broke" } })),
        (Kind::OpenAi, json!({ "error": { "message": "it broke", "type": "x", "param": null, "code": 5 } })),
        (Kind::Ollama, json!({ "error": "it broke" })),
    ] {
        for (status, category, code) in STATUSES {
            let (output, server) = ask(kind, "", &[], vec![json(*status, body.clone())]);
            let base = server.url();
            let next = format!("; check the model's name and the base URL {base}");
            let next = if *status == 404 { next.as_str() } else { "" };
            let line = format!("axe-run: {category}: it broke{next}\n");
            assert_eq!(
                (output.code(), output.out().as_str(), output.err()),
                (Some(*code), "", line),
                "{status}"
            );
            assert_eq!(server.requests().len(), 1);
        }
    }
}

#[test]
fn without_a_message_the_status_text_stands() {
    for (head, line) in [
        ("404 Nothing Here", "bad_request: Nothing Here"),
        ("502 ", "server: Bad Gateway"),
        ("529 ", "overloaded: HTTP status 529"),
    ] {
        for body in ["", "{}", "<html>", "{\"error\":{\"message\":\" \"}}"] {
            let (output, _server) = ask(OpenAi, "", &[], vec![http(head, body)]);
            assert!(output.err().starts_with(&format!("axe-run: {line}")), "{body}: {}", output.err());
        }
    }
}

#[test]
fn the_request_id_is_in_the_message() {
    for name in ["request-id", "x-request-id"] {
        for kind in KINDS {
            let (output, _server) =
                ask(kind, "", &[], vec![http(&format!("400 x\r\n{name}: req_7"), "{\"error\":\"bad\"}")]);
            assert_eq!(output.err(), "axe-run: bad_request: bad [req_7]\n");
        }
    }
}

#[test]
fn with_json_an_error_is_one_object_on_stderr() {
    let (output, _server) = ask(OpenAi, "", &["--json"], vec![http("401 No", "")]);
    let error: Value = serde_json::from_str(&output.err()).unwrap();
    assert_eq!((output.out().as_str(), output.err().lines().count()), ("", 1));
    assert_eq!((&error["exit_code"], &error["error"]["kind"]), (&json!(3), &json!("api")));
    assert_eq!(error["error"]["message"], "auth: No");
}

#[test]
fn a_key_that_a_server_shows_is_hidden_in_every_form_of_output() {
    for kind in KINDS {
        for args in [&["--json"][..], &["-v"], &["--json", "-v"]] {
            let shown = json!({ "error": { "message": format!("{KEY} is {KEY}?"), "param": "temperature" } });
            let agent = "[params]\ntemperature = 0.3\n[memory]\nenabled = true";
            let (output, _server) = ask(kind, agent, args, vec![json(400, shown.clone()), kind.says("x")]);
            assert_eq!(output.code(), Some(0));
            assert!(
                output.err().contains("Warning: temperature was left out: [key] is [key]?"),
                "{}",
                output.err()
            );
            let (refused, _server) = ask(kind, agent, args, vec![json(401, shown)]);
            assert_eq!(refused.code(), Some(3));
            assert!(refused.err().contains("auth: [key] is [key]?"), "{}", refused.err());
            for text in [output.out(), output.err(), refused.out(), refused.err()] {
                assert!(!text.contains(&KEY[..12]), "{text}");
            }
        }
    }
}

#[test]
fn without_a_key_nothing_is_asked() {
    for (kind, variable) in [(Kind::Anthropic, "ANTHROPIC_API_KEY"), (Kind::OpenAi, "OPENAI_API_KEY")] {
        for value in [None, Some(""), Some(" \n")] {
            let sandbox = Sandbox::new();
            sandbox.model("a", kind, "[memory]\nenabled = true");
            let server = Server::playing([kind.says("x")]);
            let mut command = sandbox.asking("a", &server.url());
            command.env_remove(variable).envs(value.map(|value| (variable, value)));
            let output = command.output().unwrap();
            let line = format!(
                "axe-run: API key for provider \"{}\" is not configured (set {variable} or add to config.toml)\n",
                kind.name()
            );
            assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(3), "", line));
            assert!(server.requests().is_empty() && !sandbox.log_path("a").exists());
        }
    }
}

#[test]
fn a_key_comes_from_the_environment_the_file_a_key_file_or_a_command() {
    let own = "sk-secret-own";
    for (toml, environment, sent) in [
        (format!("api_key = '{own}'"), None, own),
        (format!("api_key = '{own}'"), Some(KEY), KEY),
        ("api_key_file = 'openai.key'".to_owned(), None, own),
        ("api_key_file = '~/openai.key'".to_owned(), None, own),
        ("api_key_file = 'none'".to_owned(), Some(KEY), KEY),
        (format!("api_key_command = 'echo {own}'"), None, own),
        ("api_key_command = 'exit 1'".to_owned(), Some(KEY), KEY),
        (
            format!("api_key_file = 'openai.key'\napi_key_command = 'echo other'\napi_key = '{own}'"),
            None,
            own,
        ),
    ] {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, "");
        for dir in [sandbox.config(), sandbox.home()] {
            sandbox.write(&dir.join("openai.key"), format!("  {own}\r\n"));
        }
        let server = Server::playing([OpenAi.says("x")]);
        sandbox.provider("openai", &format!("base_url = '{}'\n{toml}", server.url()));
        let mut command = sandbox.run("a");
        command.envs(environment.map(|key| ("OPENAI_API_KEY", key)));
        let output = command.arg("-v").output().unwrap();
        assert_eq!(output.code(), Some(0), "{toml}: {}", output.err());
        assert_eq!(
            server.request().header("authorization"),
            Some(format!("Bearer {sent}").as_str()),
            "{toml}"
        );
        assert!(!output.err().contains("sk-secret"), "{}", output.err());
    }
}

#[test]
fn a_key_that_cannot_be_had_is_a_configuration_error() {
    for (toml, says) in [
        ("api_key_file = 'none.key'", "none.key"),
        ("api_key_file = 'blank.key'", "blank.key"),
        ("api_key_command = 'echo sk-secret-half; exit 7'", "failed (exit 7)"),
        ("api_key_command = 'true'", "printed no key"),
        ("api_key = 5", "a key must be a string"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, "");
        sandbox.write(&sandbox.config().join("blank.key"), " \n");
        let server = Server::playing([OpenAi.says("x")]);
        sandbox.provider("openai", &format!("base_url = '{}'\n{toml}", server.url()));
        let output = sandbox.run("a").output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(2), ""), "{toml}");
        assert!(
            output.err().contains(says) && !output.err().contains("sk-secret"),
            "{toml}: {}",
            output.err()
        );
        assert!(server.requests().is_empty());
    }
}

#[test]
fn a_key_command_that_hangs_ends_at_the_deadline() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    sandbox.provider("openai", "api_key_command = 'sleep 60'");
    let output = sandbox.run("a").args(["--timeout", "1"]).output().unwrap();
    assert!(output.code().is_some_and(|code| code > 0), "{}", output.err());
    assert!(output.err().contains("did not finish in time"), "{}", output.err());
}

#[test]
fn any_name_can_be_a_provider_of_any_kind() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.agent_file("a", "name = 'a'\nmodel = 'open-router/meta/llama-4'");
        let server = Server::playing([kind.says("hello")]);
        sandbox.provider(
            "open-router",
            &format!("kind = '{}'\nbase_url = '{}/api/v1'", kind.name(), server.url()),
        );
        let output = sandbox.run("a").env("OPEN_ROUTER_API_KEY", KEY).arg("--json").output().unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        let request = server.request();
        assert_eq!((&envelope["content"], &envelope["provider"]), (&json!("hello"), &json!("open-router")));
        assert_eq!(request.path, format!("/api{}", kind.path()));
        assert_eq!(request.body["model"], "meta/llama-4");
    }
}

#[test]
fn a_base_url_may_end_in_v1_or_a_slash_and_the_environment_wins() {
    for kind in KINDS {
        for end in ["", "/", "/v1", "/v1/"] {
            let sandbox = Sandbox::new();
            sandbox.model("a", kind, "");
            sandbox.provider(kind.name(), "base_url = 'http://127.0.0.1:9'");
            let server = Server::playing([kind.says("x")]);
            let output = sandbox.asking("a", &format!("{}{end}", server.url())).output().unwrap();
            assert_eq!(output.code(), Some(0), "{}", output.err());
            assert_eq!(server.request().path, kind.path(), "{end}");
        }
    }
}

#[test]
fn a_base_url_needs_no_scheme() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    let server = Server::playing([OpenAi.says("x")]);
    let output = sandbox.asking("a", &format!("127.0.0.1:{}", server.port())).output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(0), 1), "{}", output.err());
}

#[test]
fn an_unknown_provider_and_a_bad_model_are_told() {
    for (model, line) in [
        ("foo/x", "unsupported provider \"foo\": supported providers are anthropic, openai, ollama, command"),
        (
            "gpt",
            "invalid model format \"gpt\": expected provider/model-name; define it under [models] in config.toml: \
             \"gpt\" = \"provider/model-name\"",
        ),
        ("/x", "invalid model format \"/x\": empty provider"),
        ("openai/", "invalid model format \"openai/\": empty model name"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.agent_file("a", &format!("name = 'a'\nmodel = '{model}'"));
        let output = sandbox.run("a").output().unwrap();
        assert_eq!((output.code(), output.err()), (Some(1), format!("axe-run: {line}\n")));
    }
}

#[test]
fn chunked_answers_and_ones_without_a_length_are_read() {
    let body = OpenAi.stops("hello", "stop").to_string();
    let (one, two) = body.split_at(20);
    for answer in [
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x};x=y\r\n{two}\r\n0\r\n\r\n",
            one.len(),
            two.len()
        ),
        format!("HTTP/1.0 200 OK\r\n\r\n{body}"),
        format!("HTTP/1.1 200\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n \n{body}\n\n"),
    ] {
        let (output, _server) = ask(OpenAi, "", &[], vec![raw(answer.clone())]);
        assert_eq!(
            (output.code(), output.out().as_str(), output.err().as_str()),
            (Some(0), "hello", ""),
            "{answer}"
        );
    }
    // The document is whole: that its last chunk is missing cannot be seen with TLS, and does not matter without.
    let cut = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}", body.len());
    let (output, _server) = ask(OpenAi, "", &[], vec![raw(cut)]);
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "hello", ""));
}
