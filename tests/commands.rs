//! Shell commands as models, and everything that they do wrong.

use crate::support::processes::{LONG, Running, at_once, end_escaped, expect_gone, mark, ours};
use crate::support::terminal::Terminal;
use crate::support::{NOW, Said, Sandbox};
use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

const MEMORY: &str = "[memory]\nenabled = true";

#[test]
fn a_command_that_fails_is_named_with_its_status_and_its_last_line() {
    let long = "x".repeat(600);
    let long_line = format!("echo {long} >&2; exit 1");
    let long_said = format!("command \"echo\" failed (exit 1): {}...", "x".repeat(500));
    // The command, the message after `server: `, and what the command itself leaves on stderr.
    let rows = [
        ("false", "command \"false\" failed (exit 1)", ""),
        ("echo one >&2; echo 'two ' >&2; exit 1", "command \"echo\" failed (exit 1): two", "one\ntwo \n"),
        ("echo told; exit 1", "command \"echo\" failed (exit 1): told", ""),
        ("echo told; echo >&2; exit 9", "command \"echo\" failed (exit 9): told", ""),
        ("printf oops >&2; exit 1", "command \"printf\" failed (exit 1): oops", "oops\n"),
        ("kill -9 $$", "command \"kill\" failed (signal 9)", ""),
        ("echo bye >&2; kill -TERM $$", "command \"echo\" failed (signal 15): bye", "bye\n"),
        ("printf 'a\\033[1mb\\n' >&2; exit 1", "command \"printf\" failed (exit 1): ab", "ab\n"),
        ("printf 'a\\377b\\n' >&2; exit 1", "command \"printf\" failed (exit 1): a\u{fffd}b", "a\u{fffd}b\n"),
        ("A=1 B='x y' false -p", "command \"false\" failed (exit 1)", ""),
        ("env A=1 false", "command \"env\" failed (exit 1)", ""),
        ("'./my tool' -p", "command \"./my tool\" failed (exit 7): no", "no\n"),
        (&long_line, &long_said, &format!("{long}\n")),
    ];
    at_once(&rows, |(command, message, passed_on)| {
        let sandbox = Sandbox::new();
        sandbox.agent("a", command, MEMORY);
        executable(&sandbox, "my tool", "#!/bin/sh\necho no >&2\nexit 7\n");
        let output = sandbox.run("a").write_stdin("hello").output().unwrap();
        assert_eq!(output.err(), format!("{passed_on}axe-run: server: {message}\n"), "{command}");
        assert_eq!((output.code(), output.out().as_str()), (Some(3), ""), "{command}");
        sandbox.expect_no_log("a");
    });
}

#[test]
fn a_command_that_cannot_be_run_is_named_with_the_shells_reason() {
    let rows = [
        ("no-such-program -p", "no-such-program", 127, "not found"),
        ("./not-executable", "./not-executable", 126, "Permission denied"),
        ("if; then", "if;", 2, "\""),
    ];
    at_once(&rows, |(command, word, code, reason)| {
        let sandbox = Sandbox::new();
        sandbox.agent("a", command, MEMORY);
        sandbox.file("not-executable", "#!/bin/sh\n");
        let output = sandbox.run("a").write_stdin("x".repeat(1 << 18)).output().unwrap();
        let err = output.err();
        let begin = format!("axe-run: server: command \"{word}\" failed (exit {code}): ");
        let [line] = ours(&err)[..] else { panic!("{command}: {err}") };
        assert!(line.starts_with(&begin) && line.contains(reason), "{command}: {err}");
        assert_eq!((output.code(), output.out().as_str()), (Some(3), ""), "{command}");
        sandbox.expect_no_log("a");
    });
}

#[test]
fn a_command_that_does_not_end_is_ended_at_the_deadline_with_all_that_it_started() {
    let rows = [
        "sleep MARK",
        "trap '' TERM; sleep MARK",
        "trap '' TERM; while :; do sleep MARK; done",
        "trap '' HUP INT QUIT TERM; sleep MARK & wait",
        "kill -STOP $$; sleep MARK",
        "sleep MARK | cat",
        "(sleep MARK; echo late) & wait",
        "cat > /dev/null; sleep MARK",
        "echo half of an answer; sleep MARK",
        "exec >&-; sleep MARK",
        "exec <&- >&- 2>&-; sleep MARK",
        "echo noise >&2; sleep MARK",
        "printf noise >&2; sleep MARK",
        "while :; do printf 'noise MARK' >&2; done",
        "while :; do echo noise; : MARK; sleep 0.01; done",
    ];
    at_once(&rows, |row| {
        let mark = mark();
        let sandbox = Sandbox::new();
        let command = row.replace("MARK", &mark);
        sandbox.agent("a", &command, MEMORY);
        let started = Instant::now();
        // The prompt is larger than any pipe: whoever does not read it leaves it on its way.
        let prompt = "x".repeat(1 << 18);
        let output = sandbox.run("a").args(["--timeout", "1"]).write_stdin(prompt).output().unwrap();
        let took = started.elapsed();
        let err = output.err();
        assert_eq!((output.code(), output.out().as_str()), (Some(3), ""), "{row}: {:.300}", err);
        assert!((Duration::from_secs(1)..LONG).contains(&took), "{row}: {took:?}");
        let [line] = ours(&err)[..] else { panic!("{row}: not one line of ours: {:.300}", err) };
        assert!(line.starts_with("axe-run: timeout: command \""), "{row}: {line}");
        assert!(err.ends_with(&format!("{line}\n")), "{row}: the last word is ours");
        expect_gone(&mark);
        sandbox.expect_no_log("a");
    });
}

const HELD: &str = "Warning: command \"echo\" has exited, but a process that it started keeps its output open; what \
                    that process prints is not waited for\n";

#[test]
fn a_command_that_answers_is_heard_whatever_it_does_with_its_streams() {
    // The command, its answer, and what it leaves on stderr. The prompt is 256 KiB of x, more than a pipe holds.
    let rows = [
        ("echo answer", "answer", ""),
        ("exec <&-; echo answer", "answer", ""),
        ("head -c 5", "xxxxx", ""),
        ("wc -c | tr -d ' '", "262144", ""),
        ("echo note >&2; echo answer", "answer", ""),
        ("printf '%s' ' answer '", " answer ", ""),
        ("printf 'answer\\n\\n\\r\\n'", "answer", ""),
        ("printf '\\n\\nanswer'", "\n\nanswer", ""),
        ("printf 'a\\377b\\303'", "a\u{fffd}b\u{fffd}", ""),
        ("printf 'a\\000b'", "a\0b", ""),
        ("echo answer; sleep MARK &", "answer", HELD),
        ("echo answer; sleep MARK < /dev/null > /dev/null 2>&1 &", "answer", ""),
        ("echo answer; (trap '' TERM; sleep MARK) &", "answer", HELD),
        ("echo answer; (trap '' TERM; exec > /dev/null 2>&1; sleep MARK) &", "answer", ""),
        ("(sleep 0.05; echo answer) &", "answer", ""),
        ("head -c 1000000 /dev/zero | tr '\\0' y", &"y".repeat(1_000_000), ""),
    ];
    at_once(&rows, |(row, answer, passed_on)| {
        let mark = mark();
        let sandbox = Sandbox::new();
        sandbox.agent("a", &row.replace("MARK", &mark), MEMORY);
        let started = Instant::now();
        let output = sandbox.run("a").write_stdin("x".repeat(1 << 18)).output().unwrap();
        assert!(started.elapsed() < LONG, "{row}: {:?}", started.elapsed());
        assert_eq!(output.err(), *passed_on, "{row}");
        assert!(output.out() == *answer, "{row}: {:.100}", output.out());
        assert_eq!(output.code(), Some(0), "{row}");
        expect_gone(&mark);
        assert_eq!(sandbox.log("a").matches("**Result:** ").count(), 1, "{row}");
    });
}

#[test]
fn an_empty_answer_is_an_answer_and_a_failure_only_for_the_strict() {
    let rows = [":", "cat > /dev/null", "echo", "printf '\\n\\n\\r\\n'", "exec >&-"];
    at_once(&rows, |command| {
        let sandbox = Sandbox::new();
        sandbox.agent("a", command, MEMORY);
        let output = sandbox.run("a").write_stdin("x").output().unwrap();
        assert_eq!((output.code(), output.out().as_str()), (Some(0), ""), "{command}: {}", output.err());
        assert!(output.err().starts_with("Warning: "), "{command}: an empty answer goes without a word");
        assert_eq!(output.err().lines().count(), 1, "{command}: {}", output.err());
        let entry = format!("## {NOW}\n**Task:** x\n**Result:** (none)\n\n");
        assert_eq!(sandbox.log("a"), entry, "{command}");
        let strict = sandbox.run("a").arg("--strict").output().unwrap();
        assert_eq!(strict.code(), Some(1), "{command}: {}", strict.err());
        assert_eq!(ours(&strict.err()).len(), 1, "{command}: {}", strict.err());
        assert_eq!(sandbox.log("a"), entry, "{command}: the strict run is not written down");
    });
}

#[test]
fn a_child_that_left_the_group_with_the_pipe_in_its_hand_is_not_waited_for() {
    let rows = [
        ("echo answer; setsid sleep MARK &", &[][..], Some(0), "answer", HELD),
        ("echo half; setsid sleep MARK", &["--timeout", "1"][..], Some(3), "", ""),
        // It goes on writing: what comes after the command's end is not read.
        (
            "echo answer; setsid sh -c 'sleep 0.3; while echo noise MARK; do :; done' &",
            &[],
            Some(0),
            "answer",
            HELD,
        ),
    ];
    at_once(&rows, |(row, args, code, answer, warning)| {
        let mark = mark();
        let sandbox = Sandbox::new();
        sandbox.agent("a", &row.replace("MARK", &mark), "");
        let started = Instant::now();
        let output = sandbox.run("a").args(*args).write_stdin("x".repeat(1 << 18)).output().unwrap();
        end_escaped(&mark);
        assert!(started.elapsed() < LONG, "{row}: {:?}", started.elapsed());
        assert_eq!((output.code(), output.out().as_str()), (*code, *answer), "{row}: {}", output.err());
        assert!(output.err().starts_with(warning), "{row}: {}", output.err());
    });
}

#[test]
fn a_gigabyte_on_stdout_is_ended_at_the_cap() {
    let mark = mark();
    let sandbox = Sandbox::new();
    sandbox.agent("a", &format!("yes {mark} | head -c 1000000000"), MEMORY);
    let output = sandbox.run("a").output().unwrap();
    assert_eq!(output.err(), "axe-run: server: command \"yes\" printed more than 16 MiB\n");
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""));
    expect_gone(&mark);
    sandbox.expect_no_log("a");
}

#[test]
fn with_verbose_a_gigabyte_on_stderr_is_passed_on_until_the_deadline() {
    let mark = mark();
    let sandbox = Sandbox::new();
    sandbox.agent("a", &format!("yes 'noise of {mark}' >&2"), MEMORY);
    let mut program = sandbox.std_command("axe-run");
    program.args(["a", "--timeout", "1", "--verbose"]);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = program.spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let (mut chunk, mut tail, mut total) = (vec![0; 1 << 16], Vec::new(), 0);
    while let Ok(n @ 1..) = stderr.read(&mut chunk) {
        total += n;
        tail.extend_from_slice(&chunk[..n]);
        tail.drain(..tail.len().saturating_sub(4096));
    }
    let output = child.wait_with_output().unwrap();
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    let tail = String::from_utf8(tail).unwrap();
    assert_eq!(
        tail.lines().last(),
        Some("axe-run: timeout: command \"yes\" did not finish in time"),
        "{tail}"
    );
    assert!(total > 1 << 20, "{total} bytes");
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""));
    expect_gone(&mark);
    sandbox.expect_no_log("a");
}

#[test]
fn the_deadline_holds_even_if_nobody_reads_stderr() {
    let mark = mark();
    let sandbox = Sandbox::new();
    sandbox.agent("a", &format!("yes 'noise of {mark}' >&2"), MEMORY);
    let mut program = sandbox.std_command("axe-run");
    program.args(["a", "--no-stdin", "--timeout", "1"]);
    // `finish` reads a stream only after the program has ended.
    let output = Running::start(program).finish();
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""));
    expect_gone(&mark);
    sandbox.expect_no_log("a");
}

#[test]
fn the_deadline_holds_even_if_a_terminal_takes_no_more() {
    let mark = mark();
    let sandbox = Sandbox::new();
    sandbox.agent("a", &format!("yes 'noise of {mark}' >&2"), MEMORY);
    let terminal = Terminal::unread();
    let mut program = sandbox.std_command("axe-run");
    program.args(["a", "--no-stdin", "--timeout", "1", "--verbose"]);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(terminal.stdio());
    let started = Instant::now();
    let output = program.output().unwrap();
    assert!(started.elapsed() < LONG, "{:?}", started.elapsed());
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""));
    expect_gone(&mark);
}

#[test]
fn what_a_command_says_when_it_is_ended_is_shown() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "trap 'echo last words >&2; exit 1' TERM; sleep 1000 & wait", "");
    for more in [&[][..], &["--verbose"]] {
        let output = sandbox.run("a").args(["--timeout", "1"]).args(more).write_stdin("x").output().unwrap();
        assert_eq!(output.code(), Some(3), "{}", output.err());
        assert!(output.err().contains("last words\n"), "{more:?}: {}", output.err());
    }
    // However many.
    sandbox.agent("b", "trap 'seq 1 40000 >&2; exit 1' TERM; sleep 1000 & wait", "");
    let output = sandbox.run("b").args(["--timeout", "1", "-v"]).write_stdin("x").output().unwrap();
    let numbers: Vec<u32> = output.err().lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers.iter().copied().eq(1..=40000), "{} numbers", numbers.len());
}

#[test]
fn a_command_that_repeats_its_prompt_on_stderr_is_heard_only_if_it_fails_or_with_verbose() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat >&2; echo done", "");
    let quiet = sandbox.run("a").args(["-p", "a long prompt"]).output().unwrap();
    assert_eq!((quiet.err().as_str(), quiet.out().as_str()), ("", "done"));
    let verbose = sandbox.run("a").args(["-p", "a long prompt", "--verbose"]).output().unwrap();
    assert!(verbose.err().contains("\na long prompt"), "{}", verbose.err());
    // Of a failing one the end is shown, from the beginning of a line.
    sandbox.agent("b", "seq 1000000 1009999 >&2; echo 'not logged in' >&2; exit 2", "");
    let failed = sandbox.run("b").args(["-p", "x"]).output().unwrap();
    let err = failed.err();
    assert!(err.contains("\n1009999\nnot logged in\naxe-run: server: command \"seq\" failed"), "{err:.300}");
    assert!(err.len() < 9000 && err.lines().next().unwrap().len() == 7, "{err:.300}");
    // One that prints nothing has failed as well.
    sandbox.agent("c", "echo 'no model is configured' >&2", "");
    assert!(sandbox.run("c").args(["-p", "x"]).output().unwrap().err().contains("no model is configured\n"));
}

#[test]
fn a_command_knows_its_own_directory_alone_and_that_it_is_no_session_of_a_person() {
    let sandbox = Sandbox::new();
    sandbox.file("elsewhere/here", "");
    sandbox.agent("a", "/usr/bin/env", "workdir = 'elsewhere'");
    let run = sandbox.run("a").env("PWD", "/somewhere").env("OLDPWD", "/before").output().unwrap().out();
    let line = |name: &str| run.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    let expected = sandbox.work().join("elsewhere");
    assert_eq!(line("PWD").map(std::path::PathBuf::from), Some(expected), "{run}");
    assert_eq!((line("OLDPWD"), line("AGENT_MEMORY_RUN")), (None, Some("1")), "{run}");
}

#[test]
fn the_command_runs_in_the_workdir_and_knows_its_model() {
    let sandbox = Sandbox::new();
    sandbox.file("elsewhere/here", "");
    sandbox.agent("a", "cat > /dev/null; ls; echo \"$AXE_MODEL|$MINE|$HOME\"", "workdir = 'elsewhere'");
    let output = sandbox.run("a").env("MINE", "kept").output().unwrap();
    let expected = format!("here\nmodel|kept|{}", sandbox.home().display());
    assert_eq!((output.err().as_str(), output.out()), ("", expected));
    let output = sandbox.run("a").env("AXE_MODEL", "stale").args(["--model", "a/x y;z"]).output().unwrap();
    assert!(output.out().contains("\nx y;z||"), "{}{}", output.out(), output.err());
}

#[test]
fn text_from_the_prompt_never_becomes_part_of_the_command() {
    let sandbox = Sandbox::new();
    let prompt = "$(touch pwned) `touch pwned` ; touch pwned\n'\"; touch pwned; #";
    sandbox.agent("a", "cat", "");
    let output = sandbox.run("a").args(["-p", prompt]).output().unwrap();
    assert_eq!((output.out().as_str(), output.code()), (prompt, Some(0)), "{}", output.err());
    assert!(!sandbox.work().join("pwned").exists());
}

#[test]
fn commands_of_ours_inside_one_another_end_together() {
    let mark = mark();
    let sandbox = Sandbox::new();
    let program = crate::support::binary("axe-run");
    sandbox.agent("inner", &format!("trap '' TERM; touch inner-runs; sleep {mark}"), MEMORY);
    sandbox.agent("outer", &format!("{} inner", program.display()), MEMORY);
    let output = sandbox.run("outer").args(["--timeout", "1"]).output().unwrap();
    assert_eq!(output.code(), Some(3), "{}", output.err());
    assert!(sandbox.work().join("inner-runs").exists(), "{}", output.err());
    expect_gone(&mark);
    sandbox.expect_no_log("outer");
}

#[test]
fn a_command_that_runs_itself_is_stopped_before_it_fills_the_machine() {
    let sandbox = Sandbox::new();
    let program = crate::support::binary("axe-run");
    sandbox.agent("a", &format!("echo level >> levels; {} a", program.display()), "");
    let output = sandbox.run("a").output().unwrap();
    assert_eq!(output.code(), Some(3), "{}", output.err());
    assert!(output.err().contains("already run inside one another"), "{}", output.err());
    let levels = std::fs::read_to_string(sandbox.work().join("levels")).unwrap();
    assert!((1..=16).contains(&levels.lines().count()), "{levels}");
}

fn executable(sandbox: &Sandbox, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    sandbox.file(name, script);
    let path = sandbox.work().join(name);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
