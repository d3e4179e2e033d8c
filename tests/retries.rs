//! Calls that are made again, and calls that are not.

use crate::support::api::{KINDS, OpenAi, to};
use crate::support::processes::LONG;
use crate::support::server::{Answer, Server, http, json, raw};
use crate::support::{Said, Sandbox, entries};
use serde_json::{Value, json};
use std::process::Output;
use std::time::{Duration, Instant};

/// What comes of these answers, with so many further tries and arguments, and how often was asked.
fn tried(retries: &str, args: &[&str], answers: Vec<Answer>) -> (Output, usize) {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    let server = Server::playing(answers);
    let mut command = sandbox.asking("a", &server.url());
    match retries {
        "" => command.env_remove("AXE_RETRY_MAX"),
        number => command.env("AXE_RETRY_MAX", number),
    };
    (command.args(args).output().unwrap(), server.requests().len())
}

fn again(status: u16) -> Answer {
    http(&format!("{status} Again\r\nRetry-After: 0"), "{}")
}

#[test]
fn what_passes_is_tried_again_and_the_envelope_and_a_line_tell() {
    for status in [408, 429, 500, 502, 503, 504, 529] {
        let (output, asked) = tried("", &["--json"], vec![again(status), OpenAi.says("x")]);
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!((output.code(), &envelope["retries"], asked), (Some(0), &json!(1), 2), "{status}");
        assert_eq!(output.err(), "Warning: 1 retry was needed after temporary errors\n");
    }
}

#[test]
fn two_further_tries_are_made_unless_told_otherwise() {
    for (retries, asked) in [("", 3), ("0", 1), ("1", 2), ("4", 5)] {
        let (output, requests) = tried(retries, &[], vec![again(503); 9]);
        assert_eq!((output.code(), requests), (Some(3), asked), "{retries}");
        let tries = if asked == 1 { String::new() } else { format!(" (tried {asked} times)") };
        assert_eq!(output.err(), format!("axe-run: server: Again{tries}\n"));
    }
}

#[test]
fn the_configuration_file_sets_the_number_and_the_environment_wins() {
    for (environment, asked) in [(None, 4), (Some("1"), 2)] {
        let sandbox = Sandbox::new();
        sandbox.model("a", OpenAi, "");
        sandbox.write(&sandbox.config().join("config.toml"), "[retry]\nmax = 3\n");
        let server = Server::playing(vec![again(500); 9]);
        let mut command = sandbox.asking("a", &server.url());
        command.env_remove("AXE_RETRY_MAX").envs(environment.map(|value| ("AXE_RETRY_MAX", value)));
        assert_eq!((command.output().unwrap().code(), server.requests().len()), (Some(3), asked));
    }
    let (output, asked) = tried("many", &[], vec![]);
    assert_eq!((output.code(), asked), (Some(2), 0));
}

#[test]
fn the_last_error_stands() {
    let (output, asked) = tried("2", &[], vec![again(429), again(503), http("401 No", "")]);
    assert_eq!((output.code(), asked), (Some(3), 3));
    assert_eq!(output.err(), "axe-run: auth: No (tried 3 times)\n");
}

#[test]
fn a_dropped_connection_and_a_cut_answer_are_tried_again() {
    for cut in [
        raw(""),
        raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"),
        raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"),
    ] {
        // Nothing says how long to wait here: half a second, less a random quarter.
        let start = Instant::now();
        let (output, asked) = tried("1", &[], vec![cut, OpenAi.says("x")]);
        assert_eq!((output.code(), output.out().as_str(), asked), (Some(0), "x", 2));
        assert!(start.elapsed() >= Duration::from_millis(375), "{:?}", start.elapsed());
    }
}

#[test]
fn what_lasts_is_asked_once() {
    let mut answers: Vec<Answer> =
        [400, 401, 402, 403, 404, 405, 409, 413, 415, 422, 501].map(again).into_iter().collect();
    for code in ["insufficient_quota", "billing_hard_limit_reached"] {
        answers.push(json(429, json!({ "error": { "code": code, "message": "pay" } })));
    }
    let spend = json!({ "error_code": "enforced_spend_limit_reached" });
    answers.push(json(429, json!({ "error": { "type": "rate_limit_error", "details": spend } })));
    answers.push(http("302 Found\r\nLocation: /x\r\nRetry-After: 0", ""));
    answers.push(http("200 OK\r\nRetry-After: 0", "<html>"));
    answers.push(raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"));
    for answer in answers {
        let (output, asked) = tried("2", &[], vec![answer, OpenAi.says("x")]);
        assert_eq!(asked, 1, "{}", output.err());
        assert!(!output.err().contains("tried"), "{}", output.err());
    }
}

#[test]
fn retry_after_is_waited_for() {
    let start = Instant::now();
    let answers = vec![http("429 Slow down\r\nRetry-After: 1", ""), OpenAi.says("x")];
    let (output, asked) = tried("1", &[], answers);
    assert_eq!((output.code(), asked), (Some(0), 2));
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[test]
fn a_wait_beyond_the_deadline_gives_up_at_once() {
    // The clock is pinned to 15:04:05 on that day.
    for wait in ["60", "99999999999999999999999", "Sat, 28 Feb 2026 15:24:05 GMT"] {
        let start = Instant::now();
        let slow = http(&format!("429 Slow down\r\nRetry-After: {wait}"), "");
        let (output, asked) = tried("2", &["--timeout", "50"], vec![slow, OpenAi.says("x")]);
        assert!(start.elapsed() < LONG, "{wait}: {:?}", start.elapsed());
        let line = "axe-run: rate_limit: Slow down; the service asks to wait longer than --timeout allows\n";
        assert_eq!(output.err(), line, "{wait}");
        assert_eq!((output.code(), asked), (Some(3), 1), "{wait}");
    }
}

#[test]
fn tries_never_go_past_the_deadline() {
    let start = Instant::now();
    let (output, asked) = tried("99", &["--timeout", "1"], vec![http("503 Down", ""); 99]);
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    assert_eq!(output.code(), Some(3));
    assert!((2..=3).contains(&asked), "{asked}");
}

#[test]
fn each_service_is_tried_again_and_a_sub_agents_tries_count_too() {
    for kind in KINDS {
        let sandbox = Sandbox::new();
        sandbox.model("a", kind, "sub_agents = ['b']");
        sandbox.model("b", kind, "");
        let server = Server::playing([
            again(500),
            kind.calls(&[to("b", "t")]),
            again(503),
            again(529),
            kind.says("b's"),
            kind.says("done"),
        ]);
        let mut command = sandbox.asking("a", &server.url());
        let output = command.env("AXE_RETRY_MAX", "2").arg("--json").output().unwrap();
        let envelope: Value = serde_json::from_str(&output.out()).unwrap();
        assert_eq!((&envelope["retries"], &envelope["content"]), (&json!(3), &json!("done")));
        assert_eq!(output.err(), "Warning: 3 retries were needed after temporary errors\n");
    }
}

#[test]
fn gc_tells_of_its_tries_too() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "[memory]\nenabled = true\nlast_n = 5");
    sandbox.write_log("a", &entries(1));
    let server = Server::playing(vec![again(429), OpenAi.says("fine")]);
    let output = sandbox
        .command("axe-gc")
        .arg("a")
        .env("OPENAI_API_KEY", "k")
        .env("AXE_OPENAI_BASE_URL", server.url())
        .output()
        .unwrap();
    assert_eq!(output.err(), "Warning: 1 retry was needed after temporary errors\n");
    assert!(output.out().contains("--- Analysis ---\nfine\n"), "{}", output.out());
}
