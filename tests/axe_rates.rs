//! `[rates]`: how often a model is asked, by all programs together.

use crate::support::api::OpenAi;
use crate::support::server::{Answer, Request, Server, http};
use crate::support::{Said, Sandbox};
use serde_json::Value;
use std::fs::{self, File};
use std::process::Stdio;

fn agent(rate: Option<&str>) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "");
    if let Some(rate) = rate {
        sandbox.write(&sandbox.config().join("config.toml"), format!("[rates.\"openai/m-1\"]\n{rate}\n"));
    }
    sandbox
}

fn runs(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.home().join(".local/share/axe/runs")
}

/// The state of the model, as times in microseconds after 2026-02-28T15:04:05Z.
fn state(sandbox: &Sandbox, key: &str) -> i64 {
    let text = fs::read_to_string(runs(sandbox).join("rates.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all["openai/m-1"][key].as_i64().unwrap() - 1_772_291_045_000_000
}

#[test]
fn each_request_of_all_programs_takes_a_time_of_its_own() {
    let sandbox = agent(Some("requests_per_minute = 60000"));
    let server = Server::answering(|_| OpenAi.says("x"));
    sandbox.file("in", "line\n".repeat(20));
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = sandbox.std_asking("axe-map", "a", &server.url());
            command.stdin(File::open(sandbox.work().join("in")).unwrap());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.code(), output.err().as_str(), output.out().lines().count()), (Some(0), "", 20));
    }
    let asked = server.requests().len();
    // The clock stands still: the next one comes a thousandth of a second later for each that was asked.
    assert_eq!((asked, state(&sandbox, "requests")), (60, 60_000));
    assert_eq!(crate::support::mode(&runs(&sandbox)), 0o700);
}

#[test]
fn a_run_that_cannot_wait_for_its_turn_asks_nothing() {
    let sandbox = agent(Some("requests_per_minute = 1"));
    let server = Server::answering(|_| OpenAi.says("x"));
    let run = |now: &str| {
        let mut command = sandbox.asking("a", &server.url());
        let output = command.args(["--timeout", "5"]).env("AXE_NOW", now).output().unwrap();
        (output.code(), output.err(), server.requests().len())
    };
    assert_eq!(run("2026-02-28T15:04:05Z"), (Some(0), String::new(), 1));
    let refused = "axe-run: rate_limit: the model may not be asked for another 60 s; try again then, or use a longer \
                   --timeout\n";
    assert_eq!(run("2026-02-28T15:04:05Z"), (Some(3), refused.to_owned(), 1));
    assert_eq!(run("2026-02-28T15:05:05Z"), (Some(0), String::new(), 2));
    // The clock is set back by a day: one minute is left, not a day.
    assert_eq!(run("2026-02-27T15:05:05Z"), (Some(3), refused.to_owned(), 2));
    assert_eq!(run("2026-02-27T15:06:05Z"), (Some(0), String::new(), 3));
}

#[test]
fn tokens_are_counted_as_they_were_used() {
    let sandbox = agent(Some("tokens_per_minute = 600"));
    sandbox.model("a", OpenAi, "[params]\nmax_tokens = 98");
    let server = Server::answering(|_| OpenAi.says("x"));
    // Eight bytes are two tokens; of the hundred, twelve were used: 1.2 s.
    assert_eq!(sandbox.asking("a", &server.url()).args(["-p", "12345678"]).output().unwrap().code(), Some(0));
    assert_eq!(state(&sandbox, "tokens"), 1_200_000);
}

fn busy(_: &Request) -> Answer {
    http("429 Slow down\r\nRetry-After: 100", "{\"error\": {\"message\": \"slow\"}}")
}

#[test]
fn what_a_service_asks_of_one_holds_for_all() {
    // A second program knows of it if the model has a rate, even one without a number.
    for (rate, asked) in [(Some(""), 1), (None, 2)] {
        let (sandbox, server) = (agent(rate), Server::answering(busy));
        for _ in 0..2 {
            let output = sandbox.asking("a", &server.url()).args(["--timeout", "5"]).output().unwrap();
            assert_eq!(output.code(), Some(3), "{}", output.err());
        }
        assert_eq!(
            (server.requests().len(), runs(&sandbox).join("rates.json").exists()),
            (asked, rate.is_some())
        );
    }
    // The other lines of one program know of it in any case.
    let (sandbox, server) = (agent(None), Server::answering(busy));
    sandbox.file("in", "1\n2\n3\n");
    let mut command = sandbox.std_asking("axe-map", "a", &server.url());
    command.args(["-j1", "--timeout", "5"]).stdin(File::open(sandbox.work().join("in")).unwrap());
    let output = command.output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(1), 1));
    assert!(output.out().contains("rate_limit: the model may not be asked for another "), "{}", output.out());
}

#[test]
fn a_rate_that_cannot_be_kept_is_an_error() {
    let sandbox = agent(Some("requests_per_minute = 60"));
    sandbox.write(&runs(&sandbox), "no directory");
    let output = sandbox.asking("a", "http://127.0.0.1:9").output().unwrap();
    assert_eq!(output.code(), Some(3));
    assert!(output.err().contains("the rate of \"openai/m-1\" cannot be kept: "), "{}", output.err());
    let sandbox = agent(Some("requests_per_minute = 0"));
    let output = sandbox.asking("a", "http://127.0.0.1:9").output().unwrap();
    assert_eq!(
        (output.code(), output.err().contains("a rate is a whole number from 1")),
        (Some(2), true),
        "{}",
        output.err()
    );
}

#[test]
fn a_model_that_may_not_be_asked_in_time_gives_way_to_the_next() {
    // With a rate, and with a pause that one line of a map was told of.
    for rate in [Some(""), None] {
        let sandbox = agent(rate);
        sandbox.model("a", OpenAi, "fallback = ['openai/m-2']");
        let server = Server::answering(|request| match request.body["model"] == "m-1" {
            true => busy(request),
            false => OpenAi.says("x"),
        });
        sandbox.file("in", "1\n2\n3\n");
        let mut command = sandbox.std_asking("axe-map", "a", &server.url());
        command.args(["-j1", "--timeout", "5"]).stdin(File::open(sandbox.work().join("in")).unwrap());
        let output = command.output().unwrap();
        assert_eq!((output.code(), output.out().lines().count()), (Some(0), 3), "{}", output.err());
        assert_eq!(server.requests().len(), 4, "the first model is asked once");
        // The same for another program.
        let output = sandbox.asking("a", &server.url()).args(["--timeout", "5"]).output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), "x"), "{}", output.err());
        assert_eq!(server.requests().len(), if rate.is_some() { 5 } else { 6 });
    }
}
