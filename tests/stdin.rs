//! Standard input: every kind of it, and none that is waited for without end.

use crate::support::processes::{LONG, Running, at_once, expect_gone, mark};
use crate::support::terminal::Terminal;
use crate::support::{NOW, Said, Sandbox, eventually, present};
use rustix::process::Signal;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const DEFAULT: &str = "Execute the task described in your instructions.";

fn program(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut program = sandbox.std_command("axe-run");
    program.arg("a").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    program
}

fn echoing() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "");
    sandbox
}

#[test]
fn where_nothing_is_piped_in_the_default_message_is_used_at_once() {
    let rows = [
        "< /dev/null",
        "<&-",
        "0> write-only",
        "< empty",
        "< blank",
        ": | exec \"$0\" a",
        "printf '\\n \\t\\r\\n' | exec \"$0\" a",
    ];
    at_once(&rows, |row| {
        let sandbox = echoing();
        sandbox.file("empty", "");
        sandbox.file("blank", "\n \u{2003}\r\n");
        let started = Instant::now();
        let output = through_shell(&sandbox, row);
        assert!(started.elapsed() < LONG, "{row}: {:?}", started.elapsed());
        assert_eq!((output.out().as_str(), output.err().as_str()), (DEFAULT, ""), "{row}");
        assert_eq!(output.code(), Some(0), "{row}");
    });
}

/// `row` is a redirection for the program, or a whole pipeline that names it as `$0`.
fn through_shell(sandbox: &Sandbox, row: &str) -> Output {
    let line = if row.contains("$0") { row.to_owned() } else { format!("exec \"$0\" a {row}") };
    let like = sandbox.std_command("axe-run");
    Command::new("/bin/sh")
        .args(["-c", &line])
        .arg(like.get_program())
        .env_clear()
        .envs(present(like.get_envs()))
        .current_dir(sandbox.work())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn a_stdin_that_cannot_be_read_is_an_error_that_says_so() {
    let output = through_shell(&echoing(), "< /");
    assert_eq!((output.code(), output.out().as_str()), (Some(1), ""), "{}", output.err());
    assert!(output.err().starts_with("axe-run: cannot read stdin: "), "{}", output.err());
    assert_eq!(output.err().lines().count(), 1, "{}", output.err());
}

#[test]
fn text_arrives_as_it_was_piped_in() {
    // What is piped in, what the command sees, and the warning.
    let warning = "Warning: stdin is not valid UTF-8; the invalid bytes became U+FFFD\n";
    let rows: [(&[u8], &str, &str); 8] = [
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n", ""),
        (b"\n  indented\n\n", "\n  indented\n\n", ""),
        (b"no newline", "no newline", ""),
        (b"\xef\xbb\xbfwith a mark", "\u{feff}with a mark", ""),
        (b"nul\0inside\0", "nul\0inside\0", ""),
        ("ä🦀\u{202e}".as_bytes(), "ä🦀\u{202e}", ""),
        (b"caf\xe9 and \xff\xfe", "caf\u{fffd} and \u{fffd}\u{fffd}", warning),
        (b"cut \xf0\x9f\xa6", "cut \u{fffd}", warning),
    ];
    at_once(&rows, |(piped, seen, warning)| {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "cat; echo .", "");
        let output = sandbox.run("a").write_stdin(*piped).output().unwrap();
        assert_eq!((output.out(), output.err().as_str()), (format!("{seen}."), *warning));
        assert_eq!(output.code(), Some(0));
    });
}

#[test]
fn a_hundred_megabytes_go_through_whole() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "tr -cd '\\n' | wc -c | tr -d ' '; ", "");
    let line = [b"x".repeat(99), b"\n".to_vec()].concat();
    let output = sandbox.run("a").write_stdin(line.repeat(1_000_000)).output().unwrap();
    assert_eq!((output.out().as_str(), output.err().as_str(), output.code()), ("1000000", "", Some(0)));
}

#[test]
fn a_silent_pipe_gets_a_note_after_three_seconds_and_an_end_at_the_deadline() {
    let sandbox = echoing();
    let started = Instant::now();
    let running = Running::start(program(&sandbox, &["--timeout", "4"]));
    let output = running.finish();
    let took = started.elapsed();
    assert!((Duration::from_secs(4)..LONG).contains(&took), "{took:?}");
    assert_eq!((output.code(), output.out().as_str()), (Some(1), ""), "{}", output.err());
    let err = output.err();
    let [note, end] = err.lines().collect::<Vec<_>>()[..] else { panic!("{err}") };
    assert!(note.starts_with("Warning: stdin is open but silent") && note.contains("--no-stdin"), "{err}");
    assert!(end.starts_with("axe-run: stdin did not end before the timeout"), "{err}");
}

#[test]
fn a_stdin_that_does_not_end_is_left_at_the_deadline() {
    at_once(&["", "it speaks\n"], |piped| {
        let sandbox = echoing();
        let started = Instant::now();
        let mut running = Running::start(program(&sandbox, &["--timeout", "1"]));
        // On a busy machine it may be over already.
        let _ = running.stdin().write_all(piped.as_bytes());
        let output = running.finish();
        let took = started.elapsed();
        assert!((Duration::from_secs(1)..LONG).contains(&took), "{took:?}");
        assert_eq!((output.code(), output.out().as_str()), (Some(1), ""), "{}", output.err());
        assert!(
            output.err().starts_with("axe-run: stdin did not end before the timeout"),
            "{}",
            output.err()
        );
        assert_eq!(output.err().lines().count(), 1, "{}", output.err());
    });
}

#[test]
fn the_time_that_stdin_takes_is_the_commands_loss() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat; sleep 4.5; echo answer", "");
    let mut running = Running::start(program(&sandbox, &["--timeout", "5"]));
    running.stdin().write_all(b"slow").unwrap();
    std::thread::sleep(Duration::from_secs(1));
    running.close_stdin();
    let output = running.finish();
    assert_eq!((output.code(), output.out().as_str()), (Some(3), ""), "{}", output.err());
    assert!(output.err().starts_with("axe-run: timeout: "), "{}", output.err());
}

#[test]
fn no_stdin_does_not_look_at_the_pipe() {
    for args in [&["--no-stdin"][..], &["--no-stdin", "--dry-run"], &["--no-stdin", "--json"]] {
        let sandbox = echoing();
        let mut running = Running::start(program(&sandbox, args));
        // It may be over already.
        let _ = running.stdin().write_all(b"it speaks and never ends");
        let output = running.finish();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""), "{args:?}");
        assert!(!output.out().contains("it speaks"), "{args:?}: {}", output.out());
    }
}

#[test]
fn with_a_prompt_the_pipe_is_context_and_the_log_holds_the_prompt_alone() {
    let rows = [("context", "a task\n\ncontext"), (" \n", "a task"), ("", "a task")];
    for (piped, seen) in rows {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "cat", "[memory]\nenabled = true");
        let output = sandbox.run("a").args(["-p", "a task"]).write_stdin(piped).output().unwrap();
        assert_eq!((output.out().as_str(), output.err().as_str()), (seen, ""), "{piped:?}");
        assert_eq!(sandbox.log("a"), format!("## {NOW}\n**Task:** a task\n**Result:** {seen}\n\n"));
    }
}

#[test]
fn a_terminal_is_not_read() {
    let mut terminal = Terminal::open();
    terminal.keyboard.write_all(b"typed\n\x04").unwrap();
    let sandbox = echoing();
    let output = program(&sandbox, &[]).stdin(terminal.stdio()).output().unwrap();
    assert_eq!((output.out().as_str(), output.err().as_str(), output.code()), (DEFAULT, "", Some(0)));
}

#[test]
fn a_terminal_shows_what_is_waited_for_and_is_wiped_in_the_end() {
    let rows = [
        ("echo answer", Some(0), ""),
        ("exit 1", Some(3), "axe-run: server: "),
        ("INT", Some(130), "axe-run: ended by "),
    ];
    at_once(&rows, |(end, code, line)| {
        let mark = mark();
        let terminal = Terminal::open();
        let sandbox = Sandbox::new();
        let last = if *end == "INT" { "exit 1" } else { end };
        sandbox.agent("a", &format!("until [ -e go ]; do sleep 0.01; done; : {mark}; {last}"), "");
        let child = program(&sandbox, &[]).stdin(Stdio::null()).stderr(terminal.stdio()).spawn().unwrap();
        eventually("a line that tells of the second second", || {
            terminal.shown().contains("a: a/model … 1 s")
        });
        if *end == "INT" {
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, Signal::INT).unwrap();
        } else {
            sandbox.file("go", "");
        }
        let output = child.wait_with_output().unwrap();
        let shown = terminal.all();
        assert_eq!(output.code(), *code, "{end}: {shown}");
        if line.is_empty() {
            assert!(shown.ends_with("\r\x1b[K"), "{shown:?}");
        } else {
            let wiped_first = format!("\r\x1b[K{line}");
            assert!(shown.contains(&wiped_first) && shown.ends_with("\r\n"), "{end}: {shown:?}");
        }
        expect_gone(&mark);
    });
}

#[test]
fn no_progress_is_shown_where_stderr_is_no_terminal() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat > /dev/null; sleep 1.2; echo answer", "");
    let output = sandbox.run("a").output().unwrap();
    assert_eq!((output.out().as_str(), output.err().as_str()), ("answer", ""));
}
