//! Signals while models are asked: everything of ours ends, and logs stay whole.

use crate::sub_agents::family;
use crate::support::api::{Anthropic, KEY, to};
use crate::support::processes::LONG;
use crate::support::server::{Server, http, raw};
use crate::support::{NOW, Said, Sandbox, eventually, is_running};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Child, Output, Stdio};
use std::time::Instant;

const SIGNALS: [(Signal, i32, &str); 2] = [(Signal::INT, 130, "SIGINT"), (Signal::TERM, 143, "SIGTERM")];

fn start(sandbox: &Sandbox, url: &str) -> Child {
    let mut command = sandbox.std_command("axe-run");
    command.arg("parent").env("ANTHROPIC_API_KEY", KEY).env("AXE_ANTHROPIC_BASE_URL", url);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends the signal and waits for the end, which comes long before any deadline.
fn end(child: Child, signal: Signal) -> Output {
    let start = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    output
}

#[test]
fn a_signal_during_a_call_ends_the_run_without_an_entry() {
    for (signal, code, name) in SIGNALS {
        let sandbox = Sandbox::new();
        sandbox.model("parent", Anthropic, "[memory]\nenabled = true");
        let server = Server::playing([raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{").stall()]);
        let child = start(&sandbox, &server.url());
        eventually("the request", || server.requests().len() == 1);
        let output = end(child, signal);
        let line = format!("axe-run: ended by {name}\n");
        assert_eq!((output.code(), output.out().as_str(), output.err()), (Some(code), "", line));
        assert!(!sandbox.log_path("parent").exists());
    }
}

#[test]
fn a_signal_ends_a_wait_for_the_next_try_and_a_key_command() {
    let sandbox = Sandbox::new();
    sandbox.model("parent", Anthropic, "");
    let server = Server::playing([http("503 Down\r\nRetry-After: 60", "")]);
    let child = start(&sandbox, &server.url());
    eventually("the request", || server.requests().len() == 1);
    assert_eq!(end(child, Signal::INT).code(), Some(130));

    let wait = wait(&server);
    sandbox.agent_file("parent", "name = 'parent'\nmodel = 'mine/x'");
    sandbox.provider("mine", &format!("kind = 'openai'\napi_key_command = '{wait}'"));
    let child = start(&sandbox, &server.url());
    eventually("the command", || running(&wait) == 1);
    assert_eq!(end(child, Signal::TERM).code(), Some(143));
    eventually("the end of the command", || !is_running(&wait));
}

#[test]
fn a_signal_during_a_fan_out_leaves_nothing_running_and_logs_whole() {
    for (signal, code, name) in SIGNALS {
        let sandbox = Sandbox::new();
        let memory = "[memory]\nenabled = true";
        let names = ["quick", "http1", "http2", "http3", "sh1", "sh2", "deaf", "tree"];
        let quoted = names.map(|name| format!("'{name}'")).join(", ");
        sandbox.model("parent", Anthropic, &format!("sub_agents = [{quoted}]\n{memory}"));
        for name in &names[..4] {
            sandbox.model(name, Anthropic, memory);
        }
        let calls: Vec<Value> = names.iter().map(|name| to(name, name)).collect();
        let server = family(Anthropic, calls, |request| match request.user() {
            "Task: quick" => Anthropic.says("at once"),
            _ => raw("").stall(),
        });
        let wait = wait(&server);
        sandbox.agent("sh1", &wait, memory);
        sandbox.agent("sh2", &format!("exec {wait}"), memory);
        sandbox.agent("deaf", &format!("trap '' TERM INT; echo half; {wait}"), memory);
        sandbox.agent("tree", &format!("({wait} & {wait}) & wait"), memory);
        let before = "## 2026-01-01T00:00:00Z\n**Task:** before\n**Result:** then\n\n";
        for name in names.iter().chain(&["parent"]) {
            sandbox.write_log(name, before);
        }
        let child = start(&sandbox, &server.url());
        let entry = format!("{before}## {NOW}\n**Task:** Task: quick\n**Result:** at once\n\n");
        eventually("four requests of sub-agents", || server.requests().len() == 5);
        eventually("the entry of the quick one", || sandbox.log("quick") == entry);
        eventually("five commands", || running(&wait) >= 5);

        let output = end(child, signal);
        let line = format!("axe-run: ended by {name}; continue with: axe run --continue ");
        assert_eq!((output.code(), output.out().as_str()), (Some(code), ""));
        assert!(output.err().starts_with(&line) && output.err().lines().count() == 1, "{}", output.err());
        eventually("the end of all commands", || !is_running(&wait));
        assert_eq!(sandbox.log("quick"), entry);
        for name in names[1..].iter().chain(&["parent"]) {
            assert_eq!(sandbox.log(name), before, "{name}");
        }
        assert_eq!(server.requests().len(), 5);
    }
}

/// A command that nothing but a signal ends, and that no other test has.
fn wait(server: &Server) -> String {
    format!("sleep 600.{}{}", std::process::id(), server.port())
}

/// How many of these run, themselves and not within another's line.
fn running(command: &str) -> usize {
    let line = format!("{}\0", command.replace(' ', "\0"));
    let all = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    all.filter(|entry| {
        std::fs::read(entry.path().join("cmdline")).is_ok_and(|found| found == line.as_bytes())
    })
    .count()
}
