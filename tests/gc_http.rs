//! `axe-gc` and a model behind HTTP: what is sent, how often, and what an answer that is none leads to.

use crate::axe_gc::{assert_said, gc, newest, prompt};
use crate::support::{Said, Sandbox, entries};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const ANTHROPIC: &str = r#"{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"REPORT"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}"#;
const OPENAI: &str =
    r#"{"model":"m","choices":[{"message":{"role":"assistant","content":"REPORT"},"finish_reason":"stop"}]}"#;
const OLLAMA: &str =
    r#"{"model":"m","message":{"role":"assistant","content":"REPORT"},"done":true,"done_reason":"stop"}"#;

/// What came: the request line with the headers, and the body.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// Answers one request after another with the next status and body, and with 418 when there are no more.
fn serve(script: &[(u16, &str)]) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", listener.local_addr().unwrap());
    let asked = Asked::default();
    let script: Vec<_> = script.iter().map(|(status, body)| (*status, (*body).to_owned())).collect();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut script = script.into_iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let (head, body) = loop {
                let mut piece = [0; 16 * 1024];
                let n = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..n]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let parts =
                    text.split_once("\r\n\r\n").map(|(head, body)| (head.to_lowercase(), body.to_owned()));
                if let Some((head, body)) = parts
                    && let Ok(body) = serde_json::from_str(&body)
                {
                    break (head, body);
                }
                assert!(n > 0, "half a request");
            };
            seen.lock().unwrap().push((head, body));
            let (status, answer) = script.next().unwrap_or((418, "{}".to_owned()));
            let length = answer.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
                 connection: close\r\n\r\n{answer}"
            );
        }
    });
    (at, asked)
}

/// A sandbox with the agent `a`, whose log has ten entries, and whose model is at `at`.
fn asking(provider: &str, at: &str, more: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent_file(
        "a",
        &format!(
            "name = 'a'\nmodel = '{provider}/m'\nsystem_prompt = 'Be kind.'\n[memory]\nenabled = true\n\
             last_n = 3\n[params]\ntemperature = 1.0\nmax_tokens = 9"
        ),
    );
    sandbox.write_log("a", &entries(10));
    sandbox.provider(provider, &format!("base_url = '{at}'\n{more}"));
    sandbox
}

const DONE: &str = "Agent: a\nEntries: 10\n--- Analysis ---\nREPORT\n\
                    Trimmed: 7 entries removed, 3 entries kept.\n\
                    Runs: 10, first 2026-01-01T00:00:00Z, last 2026-01-01T00:00:09Z, mean result 8 characters\n";

#[test]
fn one_request_with_the_fixed_prompt_and_the_fixed_parameters() {
    for (provider, answer, path, body) in [
        (
            "anthropic",
            ANTHROPIC,
            "post /v1/messages ",
            json!({ "model": "m", "max_tokens": 4096, "temperature": 0.3, "system": prompt(),
                    "messages": [{ "role": "user", "content": entries(10) }] }),
        ),
        (
            "openai",
            OPENAI,
            "post /v1/chat/completions ",
            json!({ "model": "m", "max_tokens": 4096, "temperature": 0.3,
                    "messages": [{ "role": "system", "content": prompt() },
                                 { "role": "user", "content": entries(10) }] }),
        ),
        (
            "ollama",
            OLLAMA,
            "post /api/chat ",
            json!({ "model": "m", "stream": false,
                    "messages": [{ "role": "system", "content": prompt() },
                                 { "role": "user", "content": entries(10) }] }),
        ),
    ] {
        let (at, asked) = serve(&[(200, answer)]);
        let sandbox = asking(provider, &at, "");
        let mut command = gc(&sandbox, &["a"]);
        if provider != "ollama" {
            command.env(format!("{}_API_KEY", provider.to_uppercase()), "k-123456");
        }
        assert_said(&command.output().unwrap(), 0, DONE, "");
        assert_eq!(sandbox.log("a"), newest(10, 3), "{provider}");
        let asked = asked.lock().unwrap();
        let [(head, sent)] = &asked[..] else { panic!("{} requests", asked.len()) };
        assert!(head.starts_with(path), "{head}");
        assert_eq!(head.contains("k-123456"), provider != "ollama", "{head}");
        let mut sent = sent.clone();
        // Ollama has the parameters in a place of their own, with a window that fits the log.
        if let Some(options) = sent.as_object_mut().unwrap().remove("options") {
            assert_eq!((&options["temperature"], &options["num_predict"]), (&json!(0.3), &json!(4096)));
        }
        assert_eq!(sent, body, "{provider}");
    }
}

#[test]
fn another_model_takes_another_way() {
    let (at, asked) = serve(&[(200, OLLAMA)]);
    let sandbox = asking("ollama", &at, "");
    sandbox.agent_file("a", "name = 'a'\nmodel = 'anthropic/claude-3'\n[memory]\nenabled = true\nlast_n = 3");
    assert_said(&gc(&sandbox, &["a", "--model", "ollama/llama3"]).output().unwrap(), 0, DONE, "");
    let asked = asked.lock().unwrap();
    assert_eq!((asked.len(), &asked[0].1["model"]), (1, &json!("llama3")));
}

#[test]
fn a_service_that_fails_is_exit_3_and_nothing_is_trimmed() {
    for (status, body, why) in [
        (500, r#"{"error":{"message":"it broke"}}"#, "server: it broke"),
        (429, r#"{"error":{"message":"slow down"}}"#, "rate_limit: slow down"),
        (401, r#"{"error":{"message":"who are you"}}"#, "auth: who are you"),
        (529, r#"{"error":{"message":"busy"}}"#, "overloaded: busy"),
        (200, "{}", "server: "),
        (200, "<html>", "server: the reply is not JSON"),
    ] {
        let (at, asked) = serve(&[(status, body)]);
        let sandbox = asking("anthropic", &at, "api_key_command = 'echo k-123456'");
        let output = gc(&sandbox, &["a"]).env("AXE_RETRY_MAX", "0").output().unwrap();
        assert!(output.err().starts_with(&format!("axe-gc: {why}")), "{}", output.err());
        assert_eq!((output.out().as_str(), output.code()), ("Agent: a\nEntries: 10\n", Some(3)), "{status}");
        assert_eq!((sandbox.log("a"), asked.lock().unwrap().len()), (entries(10), 1));
    }
}

#[test]
fn a_request_that_the_service_calls_wrong_is_exit_1_and_nothing_is_trimmed() {
    let (at, asked) = serve(&[(400, r#"{"error":{"message":"prompt is too long"}}"#)]);
    let sandbox = asking("openai", &at, "api_key_command = 'echo k-123456'");
    let output = gc(&sandbox, &["a"]).output().unwrap();
    assert_said(&output, 1, "Agent: a\nEntries: 10\n", "axe-gc: bad_request: prompt is too long\n");
    assert_eq!((sandbox.log("a"), asked.lock().unwrap().len()), (entries(10), 1));
}

#[test]
fn a_model_that_takes_no_temperature_is_asked_without_one() {
    let refusal = r#"{"error":{"message":"`temperature` is deprecated for this model."}}"#;
    let (at, asked) = serve(&[(400, refusal), (200, ANTHROPIC)]);
    let sandbox = asking("anthropic", &at, "api_key_command = 'echo k-123456'");
    let output = gc(&sandbox, &["a"]).env("AXE_RETRY_MAX", "0").output().unwrap();
    let warning = "Warning: temperature was left out: `temperature` is deprecated for this model.\n";
    assert_said(&output, 0, DONE, warning);
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].1["temperature"], json!(0.3));
    let mut without = asked[0].1.clone();
    without.as_object_mut().unwrap().remove("temperature");
    assert_eq!(asked[1].1, without);
}

#[test]
fn without_a_key_no_request_is_made() {
    for (provider, variable) in [("anthropic", "ANTHROPIC_API_KEY"), ("openai", "OPENAI_API_KEY")] {
        let (at, asked) = serve(&[]);
        let sandbox = asking(provider, &at, "");
        let expected = format!(
            "axe-gc: API key for provider \"{provider}\" is not configured (set {variable} or add to config.toml)\n"
        );
        let output = gc(&sandbox, &["a"]).output().unwrap();
        assert_said(&output, 3, "Agent: a\nEntries: 10\n", &expected);
        assert_eq!((sandbox.log("a"), asked.lock().unwrap().len()), (entries(10), 0));
    }
}

#[test]
fn no_request_is_made_without_entries_or_without_analysis() {
    let (at, asked) = serve(&[]);
    let sandbox = asking("ollama", &at, "");
    let output = gc(&sandbox, &["--no-analysis", "a"]).output().unwrap();
    assert_eq!((output.code(), sandbox.log("a")), (Some(0), newest(10, 3)));
    sandbox.write_log("a", "");
    assert_eq!(gc(&sandbox, &["a"]).output().unwrap().code(), Some(0));
    assert_eq!(asked.lock().unwrap().len(), 0);
}
