//! Signals to `axe-run`: it leaves at once with 128+N, and takes along what it started.

use crate::support::processes::{LONG, Running, at_once, expect_gone, mark, ours};
use crate::support::{Said, Sandbox, binary, eventually, present, set_mode};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Instant;

const MEMORY: &str = "[memory]\nenabled = true";
const SIGNALS: [(Signal, &str, i32); 4] = [
    (Signal::HUP, "SIGHUP", 129),
    (Signal::INT, "SIGINT", 130),
    (Signal::QUIT, "SIGQUIT", 131),
    (Signal::TERM, "SIGTERM", 143),
];

/// `axe-run` by way of a shell that runs `before` first.
fn through_shell(sandbox: &Sandbox, before: &str, redirected: &str) -> Command {
    let like = sandbox.std_command("axe-run");
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\" {redirected}"));
    command.arg(binary("axe-run")).arg("a").env_clear().current_dir(sandbox.work());
    command.envs(present(like.get_envs()));
    command
}

/// The program on agent `a`, its stdin ended, its command in the middle of its work.
fn working(sandbox: &Sandbox, mut program: Command) -> Running {
    program.env("AXE_NOW", crate::support::NOW);
    let mut running = Running::start(program);
    running.close_stdin();
    sandbox.await_file("ready");
    running
}

fn plain(sandbox: &Sandbox) -> Command {
    let mut program = sandbox.std_command("axe-run");
    program.arg("a");
    program
}

#[test]
fn a_signal_while_stdin_is_waited_for_ends_the_run() {
    let rows: Vec<_> = SIGNALS.iter().flat_map(|signal| [(signal, ""), (signal, "half a pro")]).collect();
    at_once(&rows, |((signal, name, code), piped)| {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "touch ready; cat", MEMORY);
        let mut running = Running::start(plain(&sandbox));
        running.stdin().write_all(piped.as_bytes()).unwrap();
        running.await_handlers();
        running.signal(*signal);
        let output = running.finish();
        assert_eq!(output.err(), format!("axe-run: ended by {name}\n"));
        assert_eq!((output.code(), output.out().as_str()), (Some(*code), ""), "{name}");
        assert!(!sandbox.work().join("ready").exists(), "{name}: the command was run nevertheless");
        sandbox.expect_no_log("a");
    });
}

#[test]
fn a_signal_while_the_command_runs_ends_both() {
    let commands = [
        "touch ready; sleep MARK",
        "echo half; touch ready; exec sleep MARK",
        "sleep MARK | (touch ready; cat)",
        "trap '' HUP INT QUIT TERM; touch ready; sleep MARK",
        "trap '' TERM; sleep MARK & touch ready; wait",
        "trap 'touch ended; exit 0' TERM; touch ready; sleep MARK & wait",
    ];
    let rows: Vec<_> = commands.iter().flat_map(|command| SIGNALS.map(|signal| (command, signal))).collect();
    at_once(&rows, |(row, (signal, name, code))| {
        let mark = mark();
        let sandbox = Sandbox::new();
        sandbox.agent("a", &row.replace("MARK", &mark), MEMORY);
        let running = working(&sandbox, plain(&sandbox));
        let sent = Instant::now();
        running.signal(*signal);
        let output = running.finish();
        assert!(sent.elapsed() < LONG, "{row}, {name}: {:?}", sent.elapsed());
        // A shell may have a word of its own to say when its child dies; ours is the last.
        let err = output.err();
        let line = format!("axe-run: ended by {name}");
        assert_eq!((ours(&err), err.lines().last()), (vec![&*line], Some(&*line)), "{row}: {err}");
        assert_eq!((output.code(), output.out().as_str()), (Some(*code), ""), "{row}, {name}");
        expect_gone(&mark);
        let had_its_say = sandbox.work().join("ended").exists();
        assert_eq!(had_its_say, row.contains("touch ended"), "{row}: SIGTERM comes first");
        sandbox.expect_no_log("a");
    });
}

#[test]
fn the_line_about_the_signal_stands_on_its_own() {
    let sandbox = Sandbox::new();
    let mark = mark();
    sandbox.agent("a", &format!("printf 'half a line' >&2; touch ready; sleep {mark}"), "");
    let running = working(&sandbox, plain(&sandbox));
    running.signal(Signal::INT);
    let output = running.finish();
    assert_eq!((output.err().as_str(), output.code()), ("axe-run: ended by SIGINT\n", Some(130)));
    expect_gone(&mark);
}

#[test]
fn a_signal_ends_the_run_whatever_became_of_stderr() {
    let quiet = "touch ready; sleep MARK";
    // More than a pipe holds, so that whoever passes it on is stuck in the middle of a write.
    let loud = "head -c 1000000 /dev/zero >&2 & touch ready; sleep MARK";
    let rows = [
        ("closed", quiet, "2>&-", false),
        ("full", loud, "2> /dev/full", false),
        ("a pipe whose reader left", loud, "", true),
        ("a pipe that nobody reads", loud, "", false),
    ];
    at_once(&rows, |(row, command, redirected, left)| {
        let mark = mark();
        let sandbox = Sandbox::new();
        sandbox.agent("a", &command.replace("MARK", &mark), MEMORY);
        let mut running = Running::start(through_shell(&sandbox, ":", redirected));
        running.close_stdin();
        if *left {
            running.leave_stderr();
        }
        sandbox.await_file("ready");
        running.signal(Signal::TERM);
        let output = running.finish();
        assert_eq!((output.code(), output.out().as_str()), (Some(143), ""), "{row}");
        expect_gone(&mark);
        sandbox.expect_no_log("a");
    });
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let rows = [("INT", Signal::INT), ("HUP", Signal::HUP), ("TERM", Signal::TERM), ("QUIT", Signal::QUIT)];
    at_once(&rows, |(name, signal)| {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "touch ready; until [ -e go ]; do sleep 0.01; done; echo answer", MEMORY);
        let before = format!("trap '' {name}");
        let running = working(&sandbox, through_shell(&sandbox, &before, ""));
        running.signal(*signal);
        sandbox.file("go", "");
        let output = running.finish();
        assert_eq!((output.out().as_str(), output.err().as_str()), ("answer", ""), "{name}");
        assert_eq!(output.code(), Some(0), "{name}");
    });
}

#[test]
fn with_one_signal_ignored_the_others_still_count() {
    let sandbox = Sandbox::new();
    let mark = mark();
    sandbox.agent("a", &format!("touch ready; sleep {mark}"), MEMORY);
    let running = working(&sandbox, through_shell(&sandbox, "trap '' HUP INT", ""));
    running.signal(Signal::INT);
    running.signal(Signal::HUP);
    running.signal(Signal::TERM);
    let output = running.finish();
    assert_eq!((output.err().as_str(), output.code()), ("axe-run: ended by SIGTERM\n", Some(143)));
    expect_gone(&mark);
}

#[test]
fn a_login_that_the_command_renewed_survives_a_signal() {
    let (sandbox, mark) = (Sandbox::new(), mark());
    let (login, codex) = (sandbox.home().join(".codex/auth.json"), sandbox.home().join("codex"));
    sandbox.write(&login, "{}");
    let ready = sandbox.work().join("ready");
    let renews = "echo [2] > \"$CODEX_HOME/new\"\nmv \"$CODEX_HOME/new\" \"$CODEX_HOME/auth.json\"";
    sandbox.write(&codex, format!("#!/bin/sh\n{renews}\ntouch '{}'\nsleep {mark}\n", ready.display()));
    set_mode(&codex, 0o755);
    sandbox.agent("a", &format!("CODEX_HOME=$LLM_HOME/codex {}", codex.display()), MEMORY);
    let running = working(&sandbox, plain(&sandbox));
    running.signal(Signal::TERM);
    assert_eq!(running.finish().code(), Some(143));
    expect_gone(&mark);
    assert_eq!(fs::read_to_string(&login).unwrap(), "[2]\n");
}

#[test]
fn further_signals_do_not_disturb_the_first() {
    let rows = [[Signal::INT, Signal::INT], [Signal::INT, Signal::TERM], [Signal::HUP, Signal::QUIT]];
    at_once(&rows, |signals| {
        let mark = mark();
        let sandbox = Sandbox::new();
        let deaf =
            format!("exec 2>/dev/null; trap ': > told' TERM; touch ready; while :; do sleep {mark}; done");
        sandbox.agent("a", &deaf, MEMORY);
        let running = working(&sandbox, plain(&sandbox));
        running.signal(signals[0]);
        // Which of two that come at once is the first, nobody knows.
        // On a busy machine the command's grace may be over before it comes to say so.
        eventually("the first is taken", || sandbox.work().join("told").exists() || running.is_over());
        for _ in 0..3 {
            running.signal(signals[1]);
        }
        let output = running.finish();
        assert_eq!(output.code(), Some(128 + signals[0].as_raw()), "{signals:?}: {}", output.err());
        assert_eq!(output.err().lines().count(), 1, "{signals:?}: {}", output.err());
        expect_gone(&mark);
        sandbox.expect_no_log("a");
    });
}

#[test]
fn ending_an_agent_whose_model_is_an_agent_ends_the_inner_command_too() {
    let mark = mark();
    let sandbox = Sandbox::new();
    sandbox.agent("inner", &format!("touch ready; sleep {mark}"), MEMORY);
    sandbox.agent("a", &format!("{} inner", binary("axe-run").display()), MEMORY);
    let running = working(&sandbox, plain(&sandbox));
    running.signal(Signal::TERM);
    let output = running.finish();
    assert_eq!(output.code(), Some(143), "{}", output.err());
    expect_gone(&mark);
    sandbox.expect_no_log("a");
    sandbox.expect_no_log("inner");
}
