//! Calls to a scripted server on this machine.

use super::*;
use crate::base::env::pretend;
use crate::config::global::Endpoint;
use crate::provider::Provider;
use crate::provider::message::StopReason;
use crate::provider::wire::examples::plain;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

const OK: &str = r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#;

/// Answers one connection after another: a status line with headers, and a body; an empty one is a hang-up.
fn serve(script: Vec<(String, String)>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}/v1", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (head, body) in script {
            let mut stream = listener.accept().unwrap().0;
            let mut request = Vec::new();
            let mut piece = [0; 4096];
            while !request.ends_with(b"}") {
                let n = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..n]);
            }
            asked.push(String::from_utf8(request).unwrap());
            if !head.is_empty() {
                let whole = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(whole.as_bytes());
            }
        }
        asked
    });
    (at, thread)
}

fn script(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(head, body)| ((*head).to_owned(), (*body).to_owned())).collect()
}

fn provider(api: Api, base: &str, key: KeySource, vars: &[(&str, &str)]) -> Result<Provider> {
    let endpoint = Endpoint::Http(HttpEndpoint {
        api,
        provider: "mine".into(),
        base_url: Some(base.into()),
        key,
        key_variable: "MINE_API_KEY".into(),
        stream: false,
        rates: BTreeMap::new(),
    });
    Provider::connect(&endpoint, Path::new("/"), false, &pretend(vars), Deadline::after_seconds(10))
}

fn given() -> KeySource {
    KeySource::Given(Secret::new(" sk-given \n"))
}

/// What comes of a script, and what was asked. Two more tries are allowed, and ten seconds.
fn play(api: Api, lines: &[(&str, &str)]) -> (Result<Reply, CallError>, Vec<String>) {
    let (at, thread) = serve(script(lines));
    let provider = provider(api, &at, given(), &[]).unwrap();
    let request = Request { temperature: Some(0.3), max_tokens: Some(9), ..plain() };
    let reply = provider.ask(&request, Deadline::after_seconds(10), 2, &mut |_| {});
    (reply, thread.join().unwrap())
}

#[test]
fn each_kind_has_its_path_and_headers() {
    let anthropic = r#"{"content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn"}"#;
    let ollama = r#"{"message":{"content":"hello"},"done":true}"#;
    for (kind, body, path, header) in [
        (Api::Anthropic, anthropic, "/v1/messages", "\r\nx-api-key: sk-given\r\n"),
        (Api::OpenAi, OK, "/v1/chat/completions", "\r\nauthorization: Bearer sk-given\r\n"),
        (Api::Ollama, ollama, "/api/chat", "\r\nauthorization: Bearer sk-given\r\n"),
    ] {
        let (reply, asked) = play(kind, &[("200 OK", body)]);
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.stop, reply.retries), ("hello", StopReason::Complete, 0));
        assert!(asked[0].starts_with(&format!("POST {path} HTTP/1.1\r\n")), "{}", asked[0]);
        assert!(asked[0].contains(header) && asked[0].contains("\r\ncontent-type: application/json\r\n"));
        assert_eq!(asked[0].contains("\r\nanthropic-version: 2023-06-01\r\n"), kind == Api::Anthropic);
    }
}

#[test]
fn what_passes_is_tried_again() {
    let again = "429 Slow down\r\nRetry-After: 0";
    let (reply, asked) = play(Api::OpenAi, &[(again, "{}"), ("529 x\r\nRetry-After: 0", ""), ("200 OK", OK)]);
    assert_eq!((reply.unwrap().retries, asked.len()), (2, 3));
    assert_eq!(asked[0], asked[2]);

    let error = play(Api::OpenAi, &[(again, "{}"); 3]).0.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.retries), ("rate_limit: Slow down", 2));
}

#[test]
fn a_dropped_connection_and_a_cut_document_are_tried_again() {
    let (reply, asked) = play(Api::OpenAi, &[("", ""), ("200 OK", OK)]);
    assert_eq!((reply.unwrap().retries, asked.len()), (1, 2));
    let (reply, asked) = play(Api::OpenAi, &[("200 OK", &OK[..30]), ("200 OK", OK)]);
    assert_eq!((reply.unwrap().retries, asked.len()), (1, 2));
}

#[test]
fn what_lasts_is_asked_once() {
    for (head, body, line) in [
        ("401 Unauthorized", r#"{"error":{"message":"bad key sk-given"}}"#, "auth: bad key [key]"),
        ("402 Payment Required", "", "rate_limit: Payment Required"),
        ("429 x", r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#, "rate_limit: pay"),
        ("500 Oops\r\nRetry-After: 60", "", "server: Oops"),
        ("400 x\r\nrequest-id: r7", r#"{"error":"bad"}"#, "bad_request: bad [r7]"),
        ("200 OK", r#"{"error":{"message":"later","code":403}}"#, "auth: later"),
        (
            "200 OK",
            "{} {}",
            "server: the reply is not JSON (no content type): trailing characters at line 1 column 4",
        ),
        (
            "200 OK\r\nContent-Type: text/html",
            "<html>",
            "server: the reply is not JSON (text/html): expected value at line 1 column 1",
        ),
    ] {
        let (reply, asked) = play(Api::OpenAi, &[(head, body)]);
        let error = reply.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.retries, asked.len()), (line, 0, 1));
    }
}

#[test]
fn a_parameter_that_is_not_taken_is_renamed_or_left_out_and_remembered() {
    let renamed =
        r#"{"error":{"param":"max_tokens","code":"unsupported_parameter","message":"use the other"}}"#;
    let dropped = r#"{"error":{"param":"temperature","message":"only the default"}}"#;
    let lines = [("400 x", renamed), ("400 x", dropped), ("200 OK", OK), ("200 OK", OK), ("400 x", dropped)];
    let (at, thread) = serve(script(&lines));
    let provider = provider(Api::OpenAi, &at, given(), &[]).unwrap();
    let request = Request { temperature: Some(0.3), max_tokens: Some(9), ..plain() };
    let first = provider.ask(&request, Deadline::after_seconds(10), 0, &mut |_| {}).unwrap();
    assert_eq!(
        (first.retries, first.warnings),
        (0, vec!["temperature was left out: only the default".to_owned()])
    );
    let second = provider.ask(&request, Deadline::after_seconds(10), 0, &mut |_| {}).unwrap();
    assert!(second.warnings.is_empty());
    let third = provider.ask(&request, Deadline::after_seconds(10), 0, &mut |_| {}).unwrap_err();
    assert_eq!(third.to_string(), "bad_request: only the default");
    let asked = thread.join().unwrap();
    let temperature = r#""temperature":0.3"#;
    assert!(asked[0].contains(temperature) && asked[0].contains(r#""max_tokens":9"#));
    assert!(asked[1].contains(temperature) && asked[1].contains(r#""max_completion_tokens":9"#));
    assert!(!asked[2].contains("temperature") && asked[2].contains(r#""max_completion_tokens":9"#));
    assert!(asked[3].ends_with(&asked[2][asked[2].len() - 60..]));
}

#[test]
fn nobody_there_and_no_time_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let ask = |api, span| {
        let provider = provider(api, &at, given(), &[]).unwrap();
        provider.ask(&plain(), Deadline::after(span), 2, &mut |_| {}).unwrap_err()
    };
    let error = ask(Api::OpenAi, Duration::from_millis(50));
    assert_eq!((error.to_string(), error.retries), (format!("timeout: no answer from {at} in time"), 0));
    drop(listener);
    let error = ask(Api::Ollama, Duration::from_secs(10));
    let line = format!("server: connection refused: is Ollama running? (expected at http://{at})");
    assert_eq!((error.to_string(), error.retries), (line, 0));
    let error = ask(Api::Anthropic, Duration::from_secs(10));
    assert_eq!((error.to_string(), error.retries), (format!("server: connection refused: {at}"), 0));
}

#[test]
fn a_missing_key_matters_where_one_is_needed() {
    let error = |api, base: &str| {
        provider(api, base, KeySource::Missing, &[]).err().map(|e| (e.message().to_owned(), e.exit_code()))
    };
    let missing = "API key for provider \"mine\" is not configured (set MINE_API_KEY or add to config.toml)";
    let missing = Some((missing.to_owned(), 3));
    assert_eq!(error(Api::OpenAi, "https://h"), missing);
    assert_eq!(error(Api::Anthropic, "http://localhost:8080"), missing);
    assert_eq!(error(Api::OpenAi, "http://localhost:8080"), missing);
    assert_eq!(error(Api::Ollama, "http://localhost:8080"), None);
    assert_eq!(error(Api::Ollama, "https://h"), None);
}

#[test]
fn bad_addresses_keys_and_proxies_are_configuration_errors() {
    for (base, key, vars, what) in [
        ("ftp://h", given(), &[][..], "invalid base URL \"ftp://h\" of provider \"mine\": only http"),
        ("http://u:secret@h", given(), &[], "invalid base URL of provider \"mine\": it must not contain"),
        (
            "https://h",
            given(),
            &[("ALL_PROXY", "socks5://secret@h")],
            "ALL_PROXY: proxies by socks5:// are not",
        ),
        (
            "https://h",
            KeySource::Given(Secret::new("secret\nx")),
            &[],
            "the API key for provider \"mine\" contains a line break",
        ),
    ] {
        let error = provider(Api::OpenAi, base, key, vars).err().unwrap();
        assert!(error.message().starts_with(what) && !error.line().contains("secret"), "{}", error.line());
        assert_eq!(error.exit_code(), 2);
    }
}

#[test]
fn keys_come_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().to_str().unwrap();
    let config = dir.path().join("axe");
    file::make_dir(&config).unwrap();
    file::create(&config.join("k"), b" sk-file\r\n", 0o600).unwrap();
    file::create(&config.join("blank"), b" \n", 0o600).unwrap();
    let env = pretend(&[("XDG_CONFIG_HOME", home), ("HOME", home)]);
    let key = |path: &str| fetch(&KeySource::File(path.into()), "mine", &env, Deadline::after_seconds(1));
    assert_eq!(key("k").unwrap().unwrap().expose(), "sk-file");
    assert_eq!(key("~/axe/k").unwrap().unwrap().expose(), "sk-file");
    for name in ["blank", "none"] {
        let error = key(name).unwrap_err();
        assert!(error.message().contains(config.join(name).to_str().unwrap()), "{}", error.message());
        assert_eq!(error.exit_code(), 2);
    }
}

#[cfg(unix)]
#[test]
fn keys_come_from_commands() {
    let dir = tempfile::tempdir().unwrap();
    file::make_dir(&dir.path().join("axe")).unwrap();
    let env = pretend(&[("XDG_CONFIG_HOME", dir.path().to_str().unwrap())]);
    let key = |line: &str| fetch(&KeySource::Command(line.into()), "mine", &env, Deadline::after_seconds(5));
    assert_eq!(key("echo sk-command").unwrap().unwrap().expose(), "sk-command");
    for (line, why) in [
        ("echo secret; exit 3", "command \"echo\" failed (exit 3)"),
        ("true", "command \"true\" printed no key"),
    ] {
        let error = key(line).unwrap_err();
        assert_eq!(error.message(), format!("api_key_command of provider \"mine\": {why}"));
        assert_eq!(error.exit_code(), 2);
    }
}
