//! `memory-consolidate` and LLM commands that fail: the right exit code, a clear line, the queue whole.

use crate::support::llm::NOTE_EACH;
use crate::support::processes::{LONG, Running, at_once, expect_gone, mark};
use crate::support::{Said, Sandbox, eventually, is_root, said, set_mode};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::time::Instant;

/// A sandbox in which one session waits for `command`.
fn with_command(command: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.llm(command, json!({"timeoutSeconds": 1, "maxReplyBytes": 100_000}));
    let id = sandbox.heard("s1", "Why are guards pure?");
    (sandbox, id)
}

/// It fails with 3, says why in a line of its own, and the entry is back in the queue with nothing left over.
fn expect_failure(command: &str, why: &str) -> Sandbox {
    let (sandbox, id) = with_command(command);
    let started = Instant::now();
    let (code, out, err) = sandbox.consolidated(&[]);
    assert!(started.elapsed() < LONG, "{command}: {:?}", started.elapsed());
    assert_eq!(code, Some(3), "{command}: {err}");
    assert_eq!(out, "0 entries processed, 0 kb entries written, 1 failed, 1 waiting\n", "{command}: {err}");
    let line = err.lines().rfind(|line| line.starts_with("memory-consolidate: ")).unwrap_or_default();
    assert!(line.contains(why), "{command}: {err:.2000}");
    assert!(
        err.contains(&format!("{id}: ")) && err.contains("the next try is after"),
        "{command}: {err:.2000}"
    );
    assert_eq!((sandbox.waiting(), sandbox.batches()), (vec![id], vec![]), "{command}");
    assert!(sandbox.kept().is_empty(), "{command}");
    let calls = sandbox.calls();
    let events: Vec<_> = calls.iter().map(|call| call["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["started", "ended"], "{command}");
    assert_ne!(calls[1]["result"], "ok", "{command}");
    sandbox
}

#[test]
fn a_command_that_fails_is_told_with_its_last_words() {
    let rows = [
        (
            "echo 'noise' >&2; echo 'no credit left' >&2; exit 1",
            "the LLM command \"echo\" failed (exit 1): no credit left",
        ),
        ("echo 'API Error: 500 broken'; exit 1", "failed (exit 1): API Error: 500 broken"),
        ("printf '\\033[31mred\\033[0m\\n' >&2; exit 4", "failed (exit 4): "),
        ("exit 9", "failed (exit 9)"),
        ("kill -9 $$", "failed (signal 9"),
        ("cat > /dev/null", "the LLM command \"cat\" printed nothing"),
        ("true", "the LLM command \"true\" printed nothing"),
        ("exec <&-; printf ' \\n'", "printed nothing"),
        ("head -c 1000000000 /dev/zero", "the LLM command \"head\" printed more than 97 KiB"),
        ("yes '{\"batch\":'", "printed more than 97 KiB"),
    ];
    at_once(&rows, |(command, why)| drop(expect_failure(command, why)));
}

#[test]
fn a_command_that_hangs_is_ended_with_all_that_it_started() {
    at_once(
        &["sleep MARK", "trap '' TERM; sleep MARK & wait; sleep MARK", "sleep MARK & cat; sleep MARK"],
        |command| {
            let mark = mark();
            expect_failure(&command.replace("MARK", &mark), "did not finish in time");
            expect_gone(&mark);
        },
    );
}

#[test]
fn a_command_that_complains_for_ever_is_ended_too() {
    let (sandbox, id) = with_command("yes complaint >&2");
    let mut command = sandbox.std_command("memory-consolidate");
    command.stderr(fs::File::create("/dev/null").unwrap());
    let output = command.output().unwrap();
    assert_eq!((output.code(), sandbox.waiting()), (Some(3), vec![id]));
}

#[test]
fn a_command_that_cannot_be_started_counts_against_nobody() {
    let sandbox = Sandbox::new();
    sandbox.file("plain.txt", "not a program");
    set_mode(&sandbox.work().join("plain.txt"), 0o644);
    let plain = sandbox.work().join("plain.txt");
    let rows = [
        ("no-such-program -p".to_owned(), "the LLM command \"no-such-program\" cannot be started"),
        ("no-such-program < /dev/null".to_owned(), "the LLM command \"no-such-program\" cannot be started"),
        (plain.display().to_string(), "cannot be started: "),
        ("exit 126".to_owned(), "cannot be started"),
        ("echo gone >&2; exit 127".to_owned(), "cannot be started: gone"),
    ];
    at_once(&rows, |(command, why)| {
        let (sandbox, id) = with_command(command);
        let other = sandbox.jot("Another", "note");
        for _ in 0..4 {
            let (code, out, err) = sandbox.consolidated(&[]);
            assert_eq!(code, Some(3), "{command}: {err}");
            assert!(err.contains(why) && !err.contains("next try"), "{command}: {err}");
            assert_eq!(out, "0 entries processed, 0 kb entries written, 2 waiting\n", "{command}");
        }
        let mut both = [id, other];
        both.sort();
        assert_eq!(sandbox.waiting(), both, "{command}");
        assert_eq!(sandbox.calls().len(), 8, "{command}");
    });
}

#[test]
fn a_command_need_not_read_all_of_its_prompt() {
    let (sandbox, id) = with_command("unset");
    let reply = json!({"batch": "B", "entries": [], "skipped": [{"source": id, "reason": "r"}]}).to_string();
    let reply = reply.replace("\"B\"", "\"'$b'\"");
    sandbox.llm(&format!("read -r _ b; exec <&-; echo '{reply}'"), json!({}));
    sandbox.talk("s1", &[("user", &"long ".repeat(30_000)), ("assistant", "yes")]);
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!((code, out.as_str()), (Some(0), "1 entry processed, 0 kb entries written\n"), "{err}");
}

#[test]
fn a_command_runs_in_an_empty_directory_and_knows_who_calls() {
    let sandbox = Sandbox::new();
    sandbox.librarian(
        "pwd = os.path.realpath(os.environ['PWD']) == os.path.realpath(os.getcwd())\n\
         env = (os.environ.get('AGENT_MEMORY_RUN'), pwd, os.environ.get('OLDPWD'), os.listdir('.'), os.getcwd())\n\
         open(os.path.join(here, 'env'), 'w').write('%s %s %s %s %s' % env)\n\
         say([note('T')])",
    );
    sandbox.heard("s1", "Hello?");
    let mut command = sandbox.std_command("memory-consolidate");
    let output = command.env("PWD", "/somewhere").env("OLDPWD", "/before").output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    let env = fs::read_to_string(sandbox.home().join("env")).unwrap();
    let dir = env.strip_prefix("1 True None [] ").unwrap_or_else(|| panic!("{env}"));
    assert!(!fs::exists(dir).unwrap() && !dir.contains("agent-memory"), "{dir}");
}

#[test]
fn inside_an_llm_command_it_refuses_to_work() {
    let (sandbox, id) = with_command("cat");
    let (code, out, err) = said(sandbox.consolidate(&[]).env("AGENT_MEMORY_RUN", "1"));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("AGENT_MEMORY_RUN is set"), "{err}");
    assert_eq!((sandbox.waiting(), sandbox.calls().len()), (vec![id], 0));
}

#[test]
fn when_it_is_interrupted_the_command_ends_and_the_next_run_goes_on() {
    at_once(&[(Signal::INT, 130), (Signal::TERM, 143)], |(signal, code)| {
        let mark = mark();
        let (sandbox, id) = with_command("unset");
        let touched = sandbox.work().join("called");
        sandbox.llm(&format!("touch {}; trap '' TERM INT; sleep {mark}", touched.display()), json!({}));
        let running = Running::start(sandbox.std_command("memory-consolidate"));
        eventually("the call", || touched.exists());
        running.signal(*signal);
        let started = Instant::now();
        let output = running.finish();
        assert_eq!(output.code(), Some(*code), "{}", output.err());
        assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
        expect_gone(&mark);
        assert_eq!((sandbox.everywhere(), sandbox.waiting()), (vec![id.clone()], vec![]));
        sandbox.librarian(NOTE_EACH);
        let (code, _, err) = sandbox.consolidated(&[]);
        assert_eq!(code, Some(0), "{err}");
        assert!(err.contains("continuing batch__"), "{err}");
        assert_eq!((sandbox.processed(), sandbox.batches().len()), (vec![id], 0));
    });
}

#[test]
fn a_second_run_says_who_is_at_work_and_does_nothing() {
    let mark = mark();
    let (sandbox, _) = with_command("unset");
    let touched = sandbox.work().join("called");
    sandbox.llm(&format!("touch {}; sleep {mark}", touched.display()), json!({}));
    let first = Running::start(sandbox.std_command("memory-consolidate"));
    eventually("the call", || touched.exists());
    let (code, out, err) = said(&mut sandbox.consolidate(&[]));
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(
        err.contains("memory-consolidate (process ") && err.contains("is at work on this store"),
        "{err}"
    );
    first.signal(Signal::TERM);
    first.finish();
    assert_eq!(sandbox.calls().iter().filter(|call| call["event"] == "started").count(), 1);
}

#[test]
fn a_stranger_s_directory_may_not_name_the_command() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    sandbox.file("memory.config.json", json!({"llm": {"command": "touch pwned; cat"}}).to_string());
    let id = sandbox.heard("s1", "Hello?");
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.processed()), (Some(0), vec![id]), "{err}");
    assert!(err.contains("llm.command"), "{err}");
    assert_eq!(sandbox.prompts().len(), 1);
}

#[test]
fn a_ledger_that_cannot_be_used_lets_no_call_through() {
    let (sandbox, id) = with_command("touch called");
    let ledger = sandbox.store().join(".agent-memory/calls.jsonl");
    fs::create_dir_all(&ledger).unwrap();
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.waiting()), (Some(1), vec![id.clone()]), "{err}");
    assert!(err.contains("no LLM call is made, because the ledger of calls \""), "{err}");
    fs::remove_dir(&ledger).unwrap();
    sandbox.librarian(NOTE_EACH);
    fs::write(&ledger, "").unwrap();
    set_mode(&ledger, 0o000);
    if !is_root("a_ledger_that_cannot_be_used_lets_no_call_through") {
        assert_eq!(sandbox.consolidated(&[]).0, Some(1));
        assert!(sandbox.prompts().is_empty());
    }
    set_mode(&ledger, 0o600);
    assert_eq!((sandbox.consolidated(&[]).0, sandbox.processed()), (Some(0), vec![id]));
}

#[test]
fn a_batch_goes_back_when_its_command_was_taken_out_of_the_configuration() {
    let mark = mark();
    let (sandbox, id) = with_command("unset");
    let touched = sandbox.work().join("called");
    sandbox.llm(&format!("touch {}; sleep {mark}", touched.display()), json!({}));
    let jotted = sandbox.jot("Guards", "are pure");
    let mut running = sandbox.std_command("memory-consolidate").spawn().unwrap();
    eventually("the call", || touched.exists());
    running.kill().unwrap();
    running.wait().unwrap();
    crate::support::processes::end_escaped(&mark);
    sandbox.settings(json!({"storage": {"autoCommit": false}}));
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.waiting(), sandbox.processed()), (Some(2), vec![id], vec![jotted]), "{err}");
    assert_eq!(out, "1 entry processed, 1 kb entries written, 1 waiting\n");
}

#[test]
fn what_a_command_that_outlived_us_wrote_without_end_is_no_reply() {
    let (sandbox, id) = with_command("unset");
    let touched = sandbox.work().join("called");
    let mark = mark();
    sandbox.llm(&format!("touch {}; sleep {mark}", touched.display()), json!({}));
    let mut running = sandbox.std_command("memory-consolidate").spawn().unwrap();
    eventually("the call", || touched.exists());
    running.kill().unwrap();
    running.wait().unwrap();
    crate::support::processes::end_escaped(&mark);
    let batch = sandbox.store().join(".agent-memory/batches").join(&sandbox.batches()[0]);
    fs::File::options()
        .write(true)
        .open(batch.join("reply-0.txt.unfinished"))
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    sandbox.librarian(NOTE_EACH);
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.processed(), sandbox.prompts().len()), (Some(0), vec![id], 1), "{err}");
}

#[test]
fn what_a_command_prints_on_stderr_is_shown_only_if_it_fails() {
    let sandbox = Sandbox::new();
    sandbox.librarian("sys.stderr.write('the whole prompt again')\nsay([note('T')])");
    sandbox.heard("s1", "Hello?");
    let (code, _, err) = sandbox.consolidated(&[]);
    assert!(code == Some(0) && !err.contains("again"), "{err}");
    let failed = expect_failure(
        "echo 'model not found' >&2; echo 'key sk-ant-api03-0123456789abcdefghij' >&2; exit 1",
        "failed (exit 1)",
    );
    failed.jot("Another", "note");
    let (_, _, err) = failed.consolidated(&[]);
    assert!(err.starts_with("model not found\nkey [redacted:"), "{err}");
    assert!(!err.contains("0123456789abcdefghij"), "{err}");
}
