//! The limits of a day and a month, which hold for all runs together.

use crate::support::api::{Anthropic, Kind, OpenAi, to};
use crate::support::processes::Running;
use crate::support::server::{Server, json};
use crate::support::{Said, Sandbox, entries, said};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn spent_path(sandbox: &Sandbox) -> PathBuf {
    sandbox.home().join(".local/share/axe/runs/spent.json")
}

/// The tokens of the day, as far as they are known.
fn spent(sandbox: &Sandbox) -> u64 {
    let text = fs::read_to_string(spent_path(sandbox)).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["today"]["tokens"].as_u64().unwrap()
}

fn configure(sandbox: &Sandbox, more: &str) {
    let path = sandbox.config().join("config.toml");
    let text = fs::read_to_string(&path).unwrap_or_default();
    sandbox.write(&path, format!("{text}{more}\n"));
}

/// With a prompt of a few tokens, and an answer of at most 100.
fn limited(kind: Kind, limits: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.model("a", kind, "[params]\nmax_tokens = 100");
    configure(&sandbox, limits);
    sandbox
}

#[test]
fn beyond_a_limit_no_call_is_made_and_the_message_says_until_when() {
    let sandbox = limited(OpenAi, "[limits]\nper_day = 120");
    let server = Server::answering(|_| OpenAi.says("one"));
    let mut codes = Vec::new();
    let refused = loop {
        let output = sandbox.asking("a", &server.url()).output().unwrap();
        codes.push(output.code());
        if output.code() != Some(0) {
            break output;
        }
        // Each has 12 tokens in the end, whatever was reserved.
        assert_eq!(spent(&sandbox), 12 * codes.len() as u64);
    };
    assert_eq!((codes.len(), refused.code(), refused.out().as_str()), (2, Some(4), ""));
    let err = refused.err();
    assert!(err.starts_with("axe-run: the limit per_day of 120 tokens does not allow the next call: 12 are spent since 2026-02-28T00:00:00Z, and it may take 1"), "{err}");
    assert!(
        err.ends_with("; wait until 2026-03-01T00:00:00Z, or raise per_day under [limits] in config.toml\n"),
        "{err}"
    );
    assert_eq!(server.requests().len(), 1);
    // The next day.
    let mut next = sandbox.asking("a", &server.url());
    assert_eq!(next.env("AXE_NOW", "2026-03-01T00:00:00Z").output().unwrap().code(), Some(0));
    let (_, _, err) =
        said(sandbox.asking("a", &server.url()).args(["--json"]).env("AXE_NOW", "2026-03-01T00:00:00Z"));
    let error: Value = serde_json::from_str(&err).unwrap();
    assert_eq!((&error["error"]["kind"], &error["exit_code"]), (&json!("limit"), &json!(4)));
}

#[test]
fn a_limit_of_the_month_outlasts_the_day() {
    let sandbox = limited(OpenAi, "[limits]\nper_month = 120\nper_day = 1000");
    let server = Server::answering(|_| OpenAi.says("one"));
    let on = |now: &str| said(sandbox.asking("a", &server.url()).env("AXE_NOW", now));
    assert_eq!(on("2026-02-27T23:00:00Z").0, Some(0));
    let (code, _, err) = on("2026-02-28T01:00:00+01:00");
    assert!(
        code == Some(4)
            && err.contains("per_month of 120 tokens")
            && err.contains("until 2026-03-01T00:00:00Z"),
        "{err}"
    );
    assert_eq!(on("2026-03-01T00:30:00+01:00").0, Some(4));
    assert_eq!(on("2026-03-01T00:00:00Z").0, Some(0));
}

#[test]
fn a_limit_in_money_counts_by_the_prices_and_needs_them() {
    let prices = "[prices.\"openai/m-1\"]\ninput = 0\noutput = 10_000\n";
    let sandbox = limited(OpenAi, &format!("{prices}[limits]\nper_day_cost = 1.03"));
    let server = Server::answering(|_| OpenAi.says("one"));
    // A call takes 1 at most, and 0.02 in the end.
    for code in [0, 0, 4] {
        let (got, _, err) = said(&mut sandbox.asking("a", &server.url()));
        assert_eq!(got, Some(code), "{err}");
        if code == 4 {
            assert!(
                err.contains("per_day_cost of 1.03 does not allow the next call: 0.04 are spent"),
                "{err}"
            );
        }
    }
    let (code, _, err) = said(sandbox.asking("a", &server.url()).args(["--model", "openai/m-2"]));
    let expected = "axe-run: the limits in money need a price for the model \"openai/m-2\"; \
                    add [prices.\"openai/m-2\"] to config.toml, with input and output\n";
    assert_eq!((code, err.as_str()), (Some(2), expected));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_fallback_that_costs_more_counts_before_it_is_needed() {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "fallback = ['openai/m-2']\n[params]\nmax_tokens = 100");
    configure(
        &sandbox,
        "[prices.\"openai/m-1\"]\ninput = 0\noutput = 1\n[prices.\"openai/m-2\"]\ninput = 0\noutput = 10_000\n\
         [limits]\nper_day_cost = 0.5",
    );
    let server = Server::answering(|_| OpenAi.says("one"));
    let (code, _, err) = said(&mut sandbox.asking("a", &server.url()));
    assert!(code == Some(4) && err.contains("0 are spent") && err.contains("it may take 1;"), "{err}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn what_was_said_before_the_limit_is_printed() {
    let sandbox = limited(Anthropic, "[limits]\nper_day = 900");
    sandbox.model("a", Anthropic, "sub_agents = ['b']\n[params]\nmax_tokens = 100");
    sandbox.agent("b", "echo found", "");
    let server = Server::answering(|_| {
        json(
            200,
            json!({
                "model": "m", "stop_reason": "tool_use", "usage": { "input_tokens": 700, "output_tokens": 2 }, "content": [
                    { "type": "text", "text": "I look first." },
                    { "type": "tool_use", "id": "c0", "name": "call_agent", "input": to("b", "t") },
                ],
            }),
        )
    });
    let output = sandbox.asking("a", &server.url()).arg("--json").output().unwrap();
    assert_eq!(output.code(), Some(4), "{}", output.err());
    let envelope: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!(envelope["stop_reason"], "limit");
    assert!(envelope["content"].as_str().unwrap().starts_with("I look first."), "{envelope}");
}

#[test]
fn twenty_runs_at_once_make_no_more_calls_than_the_limit_has_room_for() {
    // A call takes 1000 tokens at most, and as many in the end.
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, "[params]\nmax_tokens = 1000");
    configure(&sandbox, "[limits]\nper_day = 10_900");
    let answer = json!({
        "usage": { "prompt_tokens": 20, "completion_tokens": 1000 },
        "choices": [{ "message": { "content": "x" }, "finish_reason": "stop" }],
    });
    let server = Server::answering(move |_| json(200, answer.clone()));
    let codes: Vec<_> = std::thread::scope(|scope| {
        let run = || sandbox.asking("a", &server.url()).output().unwrap();
        let all: Vec<_> = (0..20).map(|_| scope.spawn(run)).collect();
        all.into_iter().map(|run| run.join().unwrap()).map(|output| (output.code(), output.err())).collect()
    });
    let count = |code| codes.iter().filter(|(got, _)| *got == Some(code)).count();
    assert_eq!((count(0), count(4), server.requests().len()), (10, 10, 10), "{codes:?}");
    assert_eq!(spent(&sandbox), 10_200);
    let left: Vec<_> = fs::read_dir(spent_path(&sandbox).parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_killed_run_counts_as_if_it_had_taken_the_most() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "touch ready; sleep 1000", "[params]\nmax_tokens = 100");
    configure(&sandbox, "[limits]\nper_day = 190");
    let mut program = sandbox.std_command("axe-run");
    program.args(["a", "--no-stdin"]);
    let running = Running::start(program);
    sandbox.await_file("ready");
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    assert!((100..120).contains(&spent(&sandbox)), "{}", spent(&sandbox));
    let (code, _, err) = said(&mut sandbox.run("a"));
    assert!(code == Some(4) && err.contains("per_day of 190"), "{err}");
    // It does not block for ever.
    sandbox.agent_file("a", "name = 'a'\nmodel = 'quick/m'\n[params]\nmax_tokens = 100");
    let text = fs::read_to_string(sandbox.config().join("config.toml")).unwrap();
    sandbox.write(
        &sandbox.config().join("config.toml"),
        format!("{text}[providers.quick]\ncommand = 'echo x'\n"),
    );
    assert_eq!(said(sandbox.run("a").env("AXE_NOW", "2026-03-01T00:00:00Z")).0, Some(0));
}

#[test]
fn a_failed_call_takes_nothing_and_a_refused_sub_agent_is_told() {
    let sandbox = limited(OpenAi, "[limits]\nper_day = 150");
    let server = Server::answering(|_| json(500, json!({ "error": { "message": "down" } })));
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(3));
    assert_eq!(spent(&sandbox), 0);
    sandbox.model("lead", OpenAi, "sub_agents = ['b']\n[params]\nmax_tokens = 10");
    sandbox.model("b", OpenAi, "[params]\nmax_tokens = 5000");
    let server = Server::answering(|request| match &request.results()[..] {
        [] => OpenAi.calls(&[to("b", "t")]),
        [told] => OpenAi.says(&told.chars().take(60).collect::<String>()),
        _ => OpenAi.says("?"),
    });
    configure(&sandbox, "per_month = 4000");
    let text = fs::read_to_string(sandbox.config().join("config.toml")).unwrap().replace("150", "4000");
    sandbox.write(&sandbox.config().join("config.toml"), text);
    let output = sandbox.asking("lead", &server.url()).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    assert_eq!(output.out(), "Error: sub-agent \"b\" failed - the limit per_day of 4000 toke");
}

#[test]
fn gc_is_counted_and_never_refused() {
    let sandbox = limited(Anthropic, "[limits]\nper_day = 20");
    sandbox.model("a", Anthropic, "[memory]\nenabled = true");
    sandbox.write_log("a", &entries(3));
    let server = Server::answering(|_| Anthropic.says("analysis"));
    for n in 1..=3 {
        let mut command = sandbox.command("axe-gc");
        command.arg("a").env("ANTHROPIC_API_KEY", "k").env("AXE_ANTHROPIC_BASE_URL", server.url());
        assert_eq!(said(&mut command).0, Some(0));
        assert_eq!(spent(&sandbox), 12 * n);
    }
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(4));
}

#[test]
fn without_limits_there_is_no_file_and_with_new_ones_the_ledger_counts() {
    let sandbox = limited(OpenAi, "");
    let server = Server::answering(|_| OpenAi.says("one"));
    for _ in 0..3 {
        assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(0));
    }
    assert!(!spent_path(&sandbox).exists());
    configure(&sandbox, "[limits]\nper_month = 140");
    let (code, _, err) = said(&mut sandbox.asking("a", &server.url()));
    assert!(code == Some(4) && err.contains(": 36 are spent since 2026-02-01T00:00:00Z"), "{err}");
    // Runs without limits count into a file that is there.
    let config = sandbox.config().join("config.toml");
    sandbox.write(&config, "[limits]\nper_month = 200");
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(0));
    sandbox.write(&config, "");
    assert_eq!(sandbox.asking("a", &server.url()).output().unwrap().code(), Some(0));
    assert_eq!(spent(&sandbox), 60);
}

#[test]
fn a_file_that_cannot_be_used_allows_no_call() {
    let server = Server::answering(|_| OpenAi.says("one"));
    for broken in ["{", "[1]", "{\"day\":\"2026-02-28\"}", "\0\0\0"] {
        let sandbox = limited(OpenAi, "[limits]\nper_day = 1000");
        sandbox.write(&spent_path(&sandbox), broken);
        let (code, out, err) = said(&mut sandbox.asking("a", &server.url()));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{broken}: {err}");
        assert!(err.contains("spent.json\", which counts what runs have taken, cannot be used: "), "{err}");
        assert!(err.ends_with("; remove it, and the ledger of runs is counted again\n"), "{err}");
    }
    let sandbox = limited(OpenAi, "[limits]\nper_day = 1000");
    fs::create_dir_all(spent_path(&sandbox)).unwrap();
    assert_eq!(said(&mut sandbox.asking("a", &server.url())).0, Some(1));
    assert!(server.requests().is_empty());
}

#[test]
fn a_wrong_limit_is_an_error_with_file_and_line() {
    for (limit, why) in [
        ("per_day = -1", "line 2, column 11: the number is negative or too large"),
        ("per_day = 1.5", "line 2, column 11: invalid type: floating, expected a whole number"),
        ("per_day_cost = -0.5", "line 2, column 16: a limit is a number from 0"),
        ("per_month_cost = inf", "line 2, column 18: a limit is a number from 0"),
        ("per_month = '5'", "line 2, column 13: invalid type: string, expected"),
    ] {
        let sandbox = limited(OpenAi, &format!("[limits]\n{limit}"));
        let (code, _, err) = said(&mut sandbox.run("a"));
        assert!(code == Some(2) && err.contains(why), "{limit}: {err}");
    }
    let sandbox = limited(OpenAi, "[limits]\nper_dya = 1");
    assert!(said(&mut sandbox.run("a")).2.contains("did you mean \"per_day\"?"));
}
