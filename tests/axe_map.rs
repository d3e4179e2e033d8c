//! `axe-map`: an agent for each of many lines.

use crate::support::api::{Anthropic, OpenAi, to};
use crate::support::processes::LONG;
use crate::support::server::{Answer, Request, Server, http, json, raw};
use crate::support::{Said, Sandbox, closed_pipe, full_disk, said};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

/// `axe-map a` with this on stdin.
fn map(sandbox: &Sandbox, url: &str, input: impl AsRef<[u8]>, args: &[&str]) -> Command {
    sandbox.file("in", input);
    let mut command = sandbox.std_asking("axe-map", "a", url);
    command.args(args).stdin(File::open(sandbox.work().join("in")).unwrap());
    command
}

fn numbers(last: usize) -> String {
    (1..=last).map(|n| format!("{n}\n")).collect()
}

/// The lines of an output.
fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn ids(text: &str) -> Vec<u64> {
    records(text).iter().map(|record| record["id"].as_u64().unwrap()).collect()
}

/// Answers every request with its message.
fn echo(request: &Request) -> Answer {
    OpenAi.says(&format!("re {}", request.user()))
}

fn agent(more: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.model("a", OpenAi, more);
    sandbox
}

#[test]
fn each_line_is_a_run_of_its_own() {
    let sandbox = agent("system_prompt = 'Be brief.'\n[memory]\nenabled = true");
    sandbox.write_log("a", "## 2026-01-01T00:00:00Z\n**Task:** t\n**Result:** r\n\n");
    let before = sandbox.log("a");
    let server = Server::answering(echo);
    let input = "one\n\n{\"id\": \"x\", \"input\": \"two\"}\n{\"id\": 7, \"a\": 1}\n{broken\n";
    let output = map(&sandbox, &server.url(), input, &["-p", "Say:"]).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    let usage = json!({ "input_tokens": 10, "output_tokens": 2 });
    let expected = [
        json!({ "id": 1, "input": "one", "result": "re Say:\n\none", "usage": usage }),
        json!({ "id": "x", "input": "two", "result": "re Say:\n\ntwo", "usage": usage }),
        json!({ "id": 7, "input": { "id": 7, "a": 1 }, "result": "re Say:\n\n{\"id\": 7, \"a\": 1}", "usage": usage }),
        json!({ "id": 5, "input": "{broken", "result": "re Say:\n\n{broken", "usage": usage }),
    ];
    assert_eq!(records(&output.out()), expected);
    // Neither is the log part of the prompt, nor are the lines added to it.
    assert!(server.requests().iter().all(|request| request.system() == "Be brief."));
    assert_eq!(sandbox.log("a"), before);
}

#[test]
fn the_output_has_the_order_of_the_input_unless_it_need_not() {
    for (args, expected) in [(&["-j2"][..], vec![1, 2, 3, 4, 5]), (&["-j2", "--unordered"], vec![2, 3, 4])] {
        let sandbox = agent("");
        let fifth = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = Arc::clone(&fifth);
        // The first is answered when the fifth is asked: then the others are written, if they need not wait.
        let server = Server::answering(move |request| {
            let (is_there, comes) = &*seen;
            match request.user() {
                "1" => drop(comes.wait_while(is_there.lock().unwrap(), |there| !*there).unwrap()),
                "5" => {
                    *is_there.lock().unwrap() = true;
                    comes.notify_all();
                }
                _ => {}
            }
            echo(request)
        });
        let output = map(&sandbox, &server.url(), numbers(5), args).output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        assert_eq!(ids(&output.out())[..expected.len()], expected, "{args:?}");
        assert_eq!(output.out().lines().count(), 5);
    }
}

/// 429, 529, a connection that is dropped, a reply that breaks off, and replies that drip: every line is answered once.
fn ask_a_hostile_service(lines: usize) -> Output {
    let sandbox = agent("");
    let tries: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let answered = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&answered);
    let server = Server::answering(move |request| {
        let n: usize = request.user().parse().unwrap();
        let mut tries = tries.lock().unwrap();
        let tried = tries.entry(request.user().to_owned()).or_default();
        *tried += 1;
        let busy = |status: &str| {
            http(&format!("{status}\r\nRetry-After: 0"), "{\"error\": {\"message\": \"busy\"}}")
        };
        match (*tried, n) {
            (1 | 2, n) if n.is_multiple_of(17) => busy("429 Too many"),
            (1, n) if n.is_multiple_of(19) => busy("529 Overloaded"),
            (1, n) if n.is_multiple_of(401) => raw(""),
            (1, n) if n.is_multiple_of(433) => {
                raw("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"choices\": [")
            }
            (_, n) => {
                count.fetch_add(1, SeqCst);
                if n.is_multiple_of(5) { echo(request).drip() } else { echo(request) }
            }
        }
    });
    let mut command = map(&sandbox, &server.url(), numbers(lines), &["-j", "16"]);
    let output = command.env("AXE_RETRY_MAX", "4").output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    let records = records(&output.out());
    assert_eq!(records.len(), lines);
    for (at, record) in records.iter().enumerate() {
        assert_eq!((&record["id"], &record["result"]), (&json!(at + 1), &json!(format!("re {}", at + 1))));
    }
    assert_eq!(answered.load(SeqCst), lines as u64, "answers that were paid for");
    output
}

#[test]
fn a_hostile_service_answers_every_line_once() {
    ask_a_hostile_service(2_000);
}

/// Takes half a minute: `cargo test --test main twenty_thousand -- --ignored`.
#[test]
#[ignore = "takes half a minute"]
fn twenty_thousand_lines_are_answered_once() {
    ask_a_hostile_service(20_000);
}

/// The peak of the memory of a run over so many lines, in KiB, as it is when the last one is asked.
fn peak(lines: usize) -> u64 {
    let sandbox = agent("");
    let (pid, peak) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicU64::new(0)));
    let (of, seen) = (Arc::clone(&pid), Arc::clone(&peak));
    let server = Server::answering(move |request| {
        if request.user().starts_with(&format!("{lines} ")) {
            let status = std::fs::read_to_string(format!("/proc/{}/status", of.load(SeqCst))).unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            seen.store(line.trim_end_matches("kB").trim().parse().unwrap(), SeqCst);
        }
        echo(request)
    });
    let input: String = (1..=lines).map(|n| format!("{n} {}\n", "x".repeat(1000))).collect();
    let mut child = map(&sandbox, &server.url(), input, &["-j", "8"]).stdout(Stdio::piped()).spawn().unwrap();
    pid.store(child.id().cast_signed(), SeqCst);
    let mut out = child.stdout.take().unwrap();
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    assert!(child.wait().unwrap().success());
    peak.load(SeqCst)
}

#[test]
fn ten_times_as_many_lines_take_the_same_memory() {
    let (few, many) = (peak(300), peak(3_000));
    assert!(few > 0 && many < few + 3_000, "{few} KiB for 300 lines, {many} KiB for 3000");
}

#[test]
fn a_line_that_fails_is_an_error_in_its_place() {
    let sandbox = agent("");
    let server = Server::answering(|request| match request.user() {
        "2" => json(400, json!({ "error": { "message": "too long" } })),
        _ => echo(request),
    });
    let output = map(&sandbox, &server.url(), numbers(3), &[]).output().unwrap();
    let error = "axe-map: 1 of 3 lines failed; see \"error\" in their lines of the output\n";
    assert_eq!((output.code(), output.err().as_str()), (Some(1), error));
    let records = records(&output.out());
    assert_eq!(
        records[1],
        json!({
            "id": 2, "input": "2", "error": { "kind": "refused", "message": "bad_request: too long" },
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        })
    );
    assert_eq!(ids(&output.out()), [1, 2, 3]);
}

#[test]
fn a_result_is_json_if_there_is_a_schema_and_a_wrong_one_was_paid_for() {
    let sandbox = agent("");
    sandbox.file("s.json", r#"{"type": "object", "required": ["n"]}"#);
    let server = Server::answering(|request| match request.user() {
        "2" => OpenAi.says("never"),
        _ => OpenAi.says("```json\n{\n  \"n\": 1.0,\n  \"a\": \"b c\"\n}\n```"),
    });
    let output = map(&sandbox, &server.url(), numbers(2), &["--schema", "s.json"]).output().unwrap();
    assert_eq!(output.code(), Some(1));
    assert!(
        output.out().starts_with("{\"id\":1,\"input\":\"1\",\"result\":{\"n\":1.0,\"a\":\"b c\"},"),
        "{}",
        output.out()
    );
    let wrong = &records(&output.out())[1];
    assert_eq!((&wrong["error"]["kind"], &wrong["error"]["said"]), (&json!("refused"), &json!("never")));
    assert_eq!(wrong["usage"]["input_tokens"], 20);
}

#[test]
fn an_answer_that_is_cut_off_has_a_warning_and_with_strict_is_an_error() {
    let sandbox = agent("");
    let server = Server::answering(|_| json(200, OpenAi.stops("half", "length")));
    let output = map(&sandbox, &server.url(), "x\n", &[]).output().unwrap();
    let record = &records(&output.out())[0];
    assert_eq!((output.code(), &record["result"]), (Some(0), &json!("half")));
    assert!(record["warnings"][0].as_str().unwrap().contains("cut off"), "{record}");
    let output = map(&sandbox, &server.url(), "x\n", &["--strict"]).output().unwrap();
    let record = &records(&output.out())[0];
    assert_eq!((output.code(), &record["error"]["said"]), (Some(1), &json!("half")));
    assert_eq!(record.get("result"), None);
}

#[test]
fn a_line_may_call_agents_and_its_usage_has_theirs() {
    let sandbox = Sandbox::new();
    sandbox.model("a", Anthropic, "sub_agents = ['b']");
    sandbox.model("b", Anthropic, "");
    let price = "[prices.\"anthropic/m-1\"]\ninput = 1000000\noutput = 0\n";
    sandbox.write(&sandbox.config().join("config.toml"), price);
    let server = Server::answering(|request| match () {
        () if request.user().starts_with("Task: ") => Anthropic.says("sub"),
        () if request.results().is_empty() => Anthropic.calls(&[to("b", "help")]),
        () => Anthropic.says(&request.results()[0]),
    });
    let output = map(&sandbox, &server.url(), "x\ny\n", &[]).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    for record in records(&output.out()) {
        assert_eq!(record["result"], "sub");
        assert_eq!(record["usage"], json!({ "input_tokens": 30, "output_tokens": 6, "cost": 30.0 }));
    }
}

#[test]
fn what_fails_for_every_line_ends_the_run() {
    let sandbox = agent("");
    for (status, args, most) in [(401, &[][..], 13), (404, &[], 13), (500, &["--max-errors", "1", "-j1"], 1)]
    {
        let server = Server::answering(move |_| json(status, json!({ "error": { "message": "no" } })));
        let output = map(&sandbox, &server.url(), numbers(1000), args).output().unwrap();
        assert_eq!(output.code(), Some(3), "{status}");
        let of = if most == 1 { "1 line has failed: " } else { " lines in a row have failed: " };
        assert!(output.err().contains(of), "{}", output.err());
        let asked = server.requests().len();
        assert!(asked <= most && output.out().lines().count() == asked, "{status}: {asked}");
    }
    // An answer in between begins a new row.
    let server = Server::answering(|request| match request.user().ends_with('0') {
        true => echo(request),
        false => json(401, json!({ "error": { "message": "no" } })),
    });
    let output = map(&sandbox, &server.url(), numbers(40), &["-j1"]).output().unwrap();
    assert_eq!((output.code(), server.requests().len()), (Some(1), 40));
}

#[test]
fn a_missing_key_is_told_before_a_line_is_read() {
    let sandbox = agent("");
    let mut command = map(&sandbox, "http://127.0.0.1:9", numbers(1000), &["--resume", "out"]);
    let output = command.env_remove("OPENAI_API_KEY").output().unwrap();
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""));
    assert!(output.err().contains("API key for provider \"openai\" is not configured"), "{}", output.err());
    assert!(!sandbox.work().join("out").exists());
}

#[test]
fn a_budget_holds_for_all_lines_together() {
    let sandbox = agent("[params]\nmax_tokens = 2");
    let server = Server::answering(echo);
    // Ten tokens of input, and two of output.
    let line = format!("{}\n", "x".repeat(40));
    for jobs in ["-j1", "-j4"] {
        let before = server.requests().len();
        let mut command = map(&sandbox, &server.url(), line.repeat(50), &["--budget", "65", jobs]);
        let output = command.output().unwrap();
        assert_eq!((output.code(), ids(&output.out()).len()), (Some(4), 5), "{}", output.err());
        let error = "axe-map: stopped after 5 answers: the token budget of 65 is spent: 60 are used, and the next call \
                     may take 12; raise --budget, and go on with --resume FILE\n";
        assert!(jobs != "-j1" || output.err() == error, "{}", output.err());
        assert_eq!(server.requests().len() - before, 5);
    }
    // The agent's own limit is for each line.
    let sandbox = agent("[params]\nmax_tokens = 2\n[limits]\nmax_tokens_total = 12");
    let output =
        map(&sandbox, &server.url(), format!("{line}{}\n{line}", "x".repeat(44)), &[]).output().unwrap();
    assert_eq!((output.code(), ids(&output.out())), (Some(1), vec![1, 2, 3]));
    assert_eq!(records(&output.out())[1]["error"]["kind"], "budget");
}

#[test]
fn an_output_that_nobody_takes_ends_the_run() {
    // In order, sixteen answers for each job may wait for the first.
    let orders: [(&[&str], usize); 3] = [(&["-j1"], 1), (&["-j4", "--unordered"], 4), (&["-j4"], 4 * 16)];
    for (stdout, code) in [(closed_pipe as fn() -> Stdio, 0), (full_disk, 1)] {
        for (order, most) in orders {
            let sandbox = agent("");
            let server = Server::answering(echo);
            let mut command = map(&sandbox, &server.url(), numbers(1000), order);
            let output = command.stdout(stdout()).stderr(Stdio::piped()).output().unwrap();
            assert_eq!(output.code(), Some(code), "{}", output.err());
            assert_eq!(output.err().is_empty(), code == 0, "{}", output.err());
            assert!(server.requests().len() <= most, "{order:?}: {}", server.requests().len());
        }
    }
}

#[test]
fn a_signal_lets_answers_arrive_and_asks_nothing_more() {
    let sandbox = agent("");
    let pid = Arc::new((Mutex::new(None::<i32>), Condvar::new()));
    let of = Arc::clone(&pid);
    let server = Server::answering(move |request| {
        if request.user() == "1" {
            let known = of.1.wait_while(of.0.lock().unwrap(), |pid| pid.is_none()).unwrap();
            let pid = rustix::process::Pid::from_raw(known.unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        }
        echo(request)
    });
    let mut command = map(&sandbox, &server.url(), numbers(1000), &["-j1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    *pid.0.lock().unwrap() = Some(child.id().cast_signed());
    pid.1.notify_all();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(143), "axe-map: ended by SIGTERM\n"));
    let asked = server.requests().len();
    // The signal and the answer may come in either order.
    assert!(asked < 900 && output.out().lines().count() == asked, "{asked}: {}", output.out());
}

#[test]
fn a_dry_run_counts_and_calls_nothing() {
    let sandbox = agent("system_prompt = '1234'\n[params]\nmax_tokens = 100");
    let input = format!("{}\n\n{}\n", "x".repeat(20), "y".repeat(40));
    let dry = |input: &str, args: &[&str]| {
        let output = map(&sandbox, "http://127.0.0.1:9", input, args).arg("--dry-run").output().unwrap();
        (output.code(), output.out(), output.err())
    };
    let counted = "Lines:    2\nInput:    17 tokens, if a token has 4 bytes\nOutput:   200 tokens at most\n";
    assert_eq!(dry(&input, &[]), (Some(0), counted.to_owned(), String::new()));
    assert_eq!(
        dry("", &[]).1,
        "Lines:    0\nInput:    0 tokens, if a token has 4 bytes\nOutput:   0 tokens at most\n"
    );
    let price = "[prices.\"openai/m-1\"]\ninput = 1000\noutput = 10000\n";
    sandbox.write(&sandbox.config().join("config.toml"), price);
    assert_eq!(dry(&input, &[]).1, format!("{counted}Cost:     2.017000 at most\n"));
    sandbox.file("out", format!("{{\"id\":1,\"input\":\"{}\",\"result\":\"\"}}\n{{\"id\":", "x".repeat(20)));
    let resumed = dry(&input, &["--resume", "out"]).1;
    assert!(resumed.starts_with("Lines:    1\nAnswered: 1 more, which are not asked again\n"), "{resumed}");
    assert!(std::fs::read_to_string(sandbox.work().join("out")).unwrap().ends_with("{\"id\":"));
}

#[test]
fn wrong_arguments_are_told() {
    let sandbox = agent("");
    for (args, error) in [
        (&["a", "-j", "257"][..], "the value of \"--jobs\" is more than 256: \"257\""),
        (&["a", "-p", " "], "option \"--prompt\" is empty"),
        (
            &["a", "--keep-errors"],
            "option \"--keep-errors\" needs --resume; name the file with --resume FILE",
        ),
        (&["a", "b"], "unexpected argument \"b\"; lines are read from stdin: axe-map AGENT < FILE"),
        (&[], "agent name is required; see them with: axe agents list"),
    ] {
        let (code, out, err) = said(sandbox.command("axe-map").args(args));
        assert_eq!((code, out.as_str(), err), (Some(1), "", format!("axe-map: {error}\n")), "{args:?}");
    }
    let (code, _, err) = said(sandbox.command("axe-map").arg("nobody"));
    assert_eq!((code, err.starts_with("axe-map: agent config not found: nobody")), (Some(2), true), "{err}");
}

#[test]
fn progress_counts_lines_and_tokens() {
    let sandbox = agent("");
    let terminal = crate::support::terminal::Terminal::open();
    let (shown, wait) = (Arc::new((Mutex::new(false), Condvar::new())), LONG);
    let seen = Arc::clone(&shown);
    let server = Server::answering(move |request| {
        if request.user() == "3" {
            let (is_shown, comes) = &*seen;
            drop(comes.wait_timeout_while(is_shown.lock().unwrap(), wait, |shown| !*shown).unwrap());
        }
        echo(request)
    });
    let mut command = map(&sandbox, &server.url(), numbers(3), &["-j1"]);
    let mut child = command.stdout(Stdio::null()).stderr(terminal.stdio()).spawn().unwrap();
    crate::support::eventually("progress", || {
        terminal.shown().contains("a: openai/m-1: 2 of 3 lines, 24 tokens, ")
    });
    *shown.0.lock().unwrap() = true;
    shown.1.notify_all();
    assert!(child.wait().unwrap().success());
}
