//! `axe-gc` for one agent: the analysis, the trim, and what stands in the way of either.

use crate::support::{NOW, Said, Sandbox, entries, eventually, overview};
use assert_cmd::Command;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

/// M7 4.1, as its text has it.
pub(crate) fn prompt() -> &'static str {
    include_str!("golden/gc_prompt.txt").trim_end()
}

/// The command of a model that notes each call in the file `calls` and answers `REPORT`.
pub(crate) const REPORT: &str = "cat > prompt; echo called >> calls; echo REPORT";

pub(crate) fn gc(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command("axe-gc");
    command.args(args);
    command
}

/// Runs `axe-gc` and gives back what it said.
pub(crate) fn run(sandbox: &Sandbox, args: &[&str]) -> Output {
    gc(sandbox, args).output().unwrap()
}

/// An agent that keeps a log, in which `n` entries stand; `limits` is TOML for `[memory]`.
pub(crate) fn remembering(sandbox: &Sandbox, name: &str, command: &str, limits: &str, n: usize) {
    sandbox.agent(name, command, &format!("[memory]\nenabled = true\n{limits}"));
    sandbox.write_log(name, &entries(n));
}

/// The newest `keep` of `n` entries.
pub(crate) fn newest(n: usize, keep: usize) -> String {
    entries(n)[entries(n - keep).len()..].to_owned()
}

/// How often the model was called.
pub(crate) fn calls(sandbox: &Sandbox) -> usize {
    fs::read_to_string(sandbox.work().join("calls")).unwrap_or_default().lines().count()
}

pub(crate) fn assert_said(output: &Output, code: i32, out: &str, err: &str) {
    assert_eq!((output.out().as_str(), output.err().as_str(), output.code()), (out, err, Some(code)));
}

const NO_TARGET: &str = "No trim target configured (last_n and max_entries are both 0). Skipping trim.";

#[test]
fn the_analysis_is_printed_and_the_log_is_trimmed_to_its_target() {
    let cases = [
        ("last_n = 3", 10, "Trimmed: 7 entries removed, 3 entries kept.", 3),
        ("last_n = 5", 50, "Trimmed: 45 entries removed, 5 entries kept.", 5),
        ("last_n = 10", 3, "No trimming needed: 3 entries within limit (10).", 3),
        ("last_n = 5", 5, "No trimming needed: 5 entries within limit (5).", 5),
        ("last_n = 1", 1, "No trimming needed: 1 entries within limit (1).", 1),
        ("max_entries = 5", 10, "Trimmed: 5 entries removed, 5 entries kept.", 5),
        ("last_n = 0\nmax_entries = 20", 50, "Trimmed: 30 entries removed, 20 entries kept.", 20),
        ("last_n = 0\nmax_entries = 100", 120, "Trimmed: 20 entries removed, 100 entries kept.", 100),
        ("last_n = 5\nmax_entries = 100", 50, "Trimmed: 45 entries removed, 5 entries kept.", 5),
        ("last_n = 5\nmax_entries = 0", 50, "Trimmed: 45 entries removed, 5 entries kept.", 5),
        ("last_n = 10\nmax_entries = 5", 50, "Trimmed: 40 entries removed, 10 entries kept.", 10),
        ("last_n = 0\nmax_entries = 0", 50, NO_TARGET, 50),
        ("", 50, NO_TARGET, 50),
    ];
    for (limits, n, outcome, left) in cases {
        let sandbox = Sandbox::new();
        remembering(&sandbox, "a", REPORT, limits, n);
        let head = format!("Agent: a\nEntries: {n}\n");
        let (analysis, runs) = ("--- Analysis ---\nREPORT\n", overview(n));
        let dry = "Dry run: no entries trimmed.\n";
        for (flags, out) in [
            (&["a", "--dry-run"][..], format!("{head}{analysis}{dry}{runs}")),
            (&["--no-analysis", "--dry-run", "a"], format!("{head}{dry}")),
        ] {
            assert_said(&run(&sandbox, flags), 0, &out, "");
            assert_eq!(sandbox.log("a"), entries(n), "{flags:?}, {limits}");
        }
        assert_said(&run(&sandbox, &["a"]), 0, &format!("{head}{analysis}{outcome}\n{runs}"), "");
        assert_eq!((sandbox.log("a"), calls(&sandbox)), (newest(n, left), 2), "{limits}, {n}");
        sandbox.write_log("a", &entries(n));
        assert_said(&run(&sandbox, &["--no-analysis", "a"]), 0, &format!("{head}{outcome}\n"), "");
        assert_eq!((sandbox.log("a"), calls(&sandbox)), (newest(n, left), 2), "{limits}, {n}");
    }
}

#[test]
fn the_model_gets_the_fixed_prompt_and_the_whole_log_and_nothing_else() {
    let sandbox = Sandbox::new();
    let own = "system_prompt = 'Be kind.'\nfiles = ['*.txt']\n[memory]\nenabled = true\nlast_n = 2";
    sandbox.agent("a", REPORT, own);
    sandbox.file("x.txt", "context");
    let log = format!("by hand\n\n{}", entries(5));
    sandbox.write_log("a", &log);
    let output = gc(&sandbox, &["a"]).write_stdin("stdin is not read").output().unwrap();
    assert_eq!((output.code(), calls(&sandbox)), (Some(0), 1));
    let sent = fs::read_to_string(sandbox.work().join("prompt")).unwrap();
    assert_eq!(sent, format!("{}\n\n{log}", prompt()));
    // What stood before the first header goes with the entries after it.
    assert_eq!(sandbox.log("a"), newest(5, 2));
}

#[test]
fn another_model_can_be_named() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 3", 10);
    sandbox.provider("other", "kind = 'command'\ncommand = 'cat > /dev/null; echo I am $AXE_MODEL'");
    let expected = format!(
        "Agent: a\nEntries: 10\n--- Analysis ---\nI am x/y\nTrimmed: 7 entries removed, 3 entries kept.\n{}",
        overview(10)
    );
    assert_said(&run(&sandbox, &["a", "--model", "other/x/y"]), 0, &expected, "");
    assert_eq!((sandbox.log("a"), calls(&sandbox)), (newest(10, 3), 0));
}

#[test]
fn without_entries_there_is_nothing_to_do() {
    for log in [None, Some(""), Some(" \n\n")] {
        for flags in [&["a"][..], &["a", "--dry-run"], &["a", "--no-analysis"]] {
            let sandbox = Sandbox::new();
            sandbox.agent("a", REPORT, "[memory]\nenabled = true\nlast_n = 3");
            log.iter().for_each(|text| sandbox.write_log("a", text));
            let expected = "No memory entries for agent \"a\". Nothing to do.\n";
            assert_said(&run(&sandbox, flags), 0, expected, "");
            assert_eq!((calls(&sandbox), sandbox.log_path("a").exists()), (0, log.is_some()));
            assert_eq!(sandbox.log("a"), log.unwrap_or_default());
        }
    }
}

#[test]
fn an_agent_without_memory_is_skipped_with_a_warning() {
    for memory in ["[memory]\nenabled = false\nlast_n = 1", ""] {
        let sandbox = Sandbox::new();
        sandbox.agent("a", REPORT, memory);
        sandbox.write_log("a", &entries(3));
        let expected = "Warning: agent \"a\" does not have memory enabled. Skipping.\n";
        for flags in [&["a"][..], &["a", "--model", "nonsense"], &["a", "--no-analysis"]] {
            assert_said(&run(&sandbox, flags), 0, "", expected);
            assert_eq!((sandbox.log("a"), calls(&sandbox)), (entries(3), 0));
        }
    }
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_done() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 1", 3);
    for (args, why) in [
        (&[][..], "agent name is required (or use --all)"),
        (&["--dry-run"], "agent name is required (or use --all)"),
        (&["a", "--all"], "cannot specify both --all and an agent name"),
        (&["--all", "a"], "cannot specify both --all and an agent name"),
        (&["a", "b"], "unexpected argument \"b\""),
        (&["a", "--verbose"], "unknown option \"--verbose\""),
        (&["a", "-v"], "unknown option \"-v\""),
        (&["a", "--json"], "unknown option \"--json\""),
        (&["--all", "--json"], "unknown option \"--json\""),
        (&["a", "--model"], "option \"--model\" needs a value"),
        (&["a", "--dry-run=yes"], "option \"--dry-run\" takes no value, got \"yes\""),
        (&["a", "--model", "gpt"], "invalid model format \"gpt\": expected provider/model-name"),
        (&["a", "--model=/m"], "invalid model format \"/m\": empty provider"),
        (&["a", "--model=p/"], "invalid model format \"p/\": empty model name"),
    ] {
        let output = run(&sandbox, args);
        let first = output.err().lines().next().unwrap_or_default().to_owned();
        assert!(first.starts_with(&format!("axe-gc: {why}")), "{args:?}: {first}");
        assert_eq!((output.out().as_str(), output.code()), ("", Some(1)), "{args:?}");
    }
    sandbox.agent_file("plain", "name = 'plain'\nmodel = 'gpt'\n[memory]\nenabled = true");
    let expected = "axe-gc: invalid model format \"gpt\": expected provider/model-name; define it under [models] in \
                    config.toml: \"gpt\" = \"provider/model-name\"\n";
    sandbox.write_log("plain", &entries(3));
    assert_said(&run(&sandbox, &["plain"]), 1, "", expected);
    let unsupported = run(&sandbox, &["a", "--model", "nope/m"]);
    let expected = "axe-gc: unsupported provider \"nope\": supported providers are ";
    assert!(unsupported.err().starts_with(expected), "{}", unsupported.err());
    assert_eq!(unsupported.code(), Some(1));
    assert_eq!((sandbox.log("a"), calls(&sandbox)), (entries(3), 0));
}

#[test]
fn a_name_that_is_no_agent_is_a_configuration_error() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 1", 3);
    let output = run(&sandbox, &["nonexistent"]);
    assert!(output.err().starts_with("axe-gc: agent config not found: nonexistent"), "{}", output.err());
    assert_eq!((output.out().as_str(), output.code()), ("", Some(2)));
    for name in ["", "../agents/a", "x/a", "x\\a", ".a", "..", "a\nb", &"n".repeat(300)] {
        let output = run(&sandbox, &["--", name]);
        assert!(output.err().starts_with("axe-gc: invalid agent name \""), "{name:?}: {}", output.err());
        assert_eq!((output.err().lines().count(), output.code()), (1, Some(2)), "{name:?}");
    }
    for (toml, why) in [
        ("name = 'b'\nmodel =", "failed to parse agent config \"b\": "),
        ("name = 'b'", "agent config missing required field: model"),
        ("name = 'b'\nmodel = 'a/m'\n[memory]\nlast_n = -1", "memory.last_n must be non-negative"),
    ] {
        sandbox.agent_file("b", toml);
        let output = run(&sandbox, &["b"]);
        assert!(output.err().starts_with(&format!("axe-gc: {why}")), "{}", output.err());
        assert_eq!((output.out().as_str(), output.code()), ("", Some(2)));
    }
    let mut homeless = gc(&sandbox, &["a"]);
    homeless.env_remove("HOME").env("XDG_CONFIG_HOME", sandbox.home().join(".config"));
    let output = homeless.output().unwrap();
    assert!(output.err().starts_with("axe-gc: unable to determine data directory: "), "{}", output.err());
    assert_eq!(output.code(), Some(2));
}

#[test]
fn a_log_of_its_own_path_is_trimmed_there() {
    let sandbox = Sandbox::new();
    let absolute = sandbox.work().join("notes/log.md");
    for (path, keep) in [(absolute.to_str().unwrap(), 4), ("notes/log.md", 2)] {
        sandbox.agent("a", REPORT, &format!("[memory]\nenabled = true\nlast_n = {keep}\npath = '{path}'"));
        fs::write(sandbox.config().join("config.toml"), "").unwrap();
        sandbox.provider("a", &format!("command = '{REPORT}'"));
        sandbox.file("notes/log.md", entries(10));
        sandbox.file("notes/.log.md.AbC123", "somebody else's");
        let output = run(&sandbox, &["a"]);
        assert!(output.out().contains(&format!("{keep} entries kept.\n")), "{}", output.out());
        assert_eq!(fs::read_to_string(&absolute).unwrap(), newest(10, keep));
        assert_eq!(fs::read_dir(sandbox.work().join("notes")).unwrap().count(), 2);
        assert!(!sandbox.log_path("a").exists());
    }
}

#[test]
fn headers_that_are_no_times_begin_entries_too() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 2", 0);
    sandbox.write_log("a", "## Notes\nx\n ## no\n##no\n### no\n## \ny\n\n\n## last");
    let expected = "Agent: a\nEntries: 3\nTrimmed: 1 entries removed, 2 entries kept.\n";
    assert_said(&run(&sandbox, &["a", "--no-analysis"]), 0, expected, "");
    assert_eq!(sandbox.log("a"), "## \ny\n\n\n## last");
}

#[test]
fn text_without_any_header_is_analysed_and_left_alone() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 2", 0);
    sandbox.write_log("a", "written by hand\n### no entry\n");
    let outcome = "No trimming needed: 0 entries within limit (2).\n";
    let expected = format!("Agent: a\nEntries: 0\n--- Analysis ---\nREPORT\n{outcome}");
    assert_said(&run(&sandbox, &["a"]), 0, &expected, "");
    assert_said(&run(&sandbox, &["a", "--no-analysis"]), 0, &format!("Agent: a\nEntries: 0\n{outcome}"), "");
    assert_eq!(sandbox.log("a"), "written by hand\n### no entry\n");
}

#[test]
fn bytes_that_are_no_text_are_kept_and_the_model_reads_the_rest() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 1", 0);
    sandbox.write(&sandbox.log_path("a"), b"## a\n## b\r\n\xff\xfe \x00\r\n");
    assert_eq!(run(&sandbox, &["a"]).code(), Some(0));
    assert_eq!(fs::read(sandbox.log_path("a")).unwrap(), b"## b\r\n\xff\xfe \x00\r\n");
    let sent = fs::read_to_string(sandbox.work().join("prompt")).unwrap();
    assert!(sent.ends_with("## b\r\n\u{fffd}\u{fffd} \u{0}\r\n"), "{sent:?}");
}

#[test]
fn a_log_that_cannot_be_read_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", REPORT, "[memory]\nenabled = true\nlast_n = 1");
    fs::create_dir_all(sandbox.log_path("a")).unwrap();
    let path = sandbox.log_path("a").display().to_string();
    let expected = format!("axe-gc: failed to load memory: \"{path}\" is not a regular file\n");
    for flags in [&["a"][..], &["a", "--dry-run"], &["a", "--no-analysis"]] {
        assert_said(&run(&sandbox, flags), 1, "", &expected);
    }
    assert_eq!(calls(&sandbox), 0);
}

#[test]
fn a_log_that_no_model_holds_is_trimmed_without_one() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 2", 0);
    let mut log = fs::OpenOptions::new().append(true).open(sandbox.log_path("a")).unwrap();
    log.write_all(b"## old\n").unwrap();
    log.set_len(65 << 20).unwrap();
    log.write_all(format!("\n{}", entries(3)).as_bytes()).unwrap();
    let output = run(&sandbox, &["a"]);
    assert!(output.err().ends_with("; --no-analysis trims it without a call\n"), "{}", output.err());
    assert_eq!((output.out().as_str(), output.code(), calls(&sandbox)), ("", Some(1), 0));
    let expected = "Agent: a\nEntries: 4\nTrimmed: 2 entries removed, 2 entries kept.\n";
    assert_said(&run(&sandbox, &["a", "--no-analysis"]), 0, expected, "");
    assert_eq!(sandbox.log("a"), newest(3, 2));
}

#[test]
fn a_log_that_cannot_be_trimmed_is_an_error_after_the_analysis() {
    let sandbox = Sandbox::new();
    // So long a name that no temporary file fits beside it.
    let name = "n".repeat(250);
    let path = fs::canonicalize(sandbox.work()).unwrap().join(&name);
    sandbox.agent("a", REPORT, &format!("[memory]\nenabled = true\nlast_n = 1\npath = '{name}'"));
    sandbox.file(&name, entries(3));
    let output = run(&sandbox, &["a"]);
    let expected =
        format!("axe-gc: failed to trim memory for \"a\": cannot replace \"{}\": ", path.display());
    assert!(output.err().starts_with(&expected), "{}", output.err());
    assert_eq!(output.out(), "Agent: a\nEntries: 3\n--- Analysis ---\nREPORT\n");
    assert_eq!((output.code(), fs::read_to_string(path).unwrap()), (Some(1), entries(3)));
}

#[test]
fn an_empty_analysis_is_printed_and_the_log_trimmed_all_the_same() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", "cat > /dev/null", "last_n = 1", 3);
    let outcome = "Trimmed: 2 entries removed, 1 entries kept.\n";
    let expected = &format!("Agent: a\nEntries: 3\n--- Analysis ---\n\n{outcome}{}", overview(3));
    let warning = "Warning: the answer is empty (stop reason: stop)\n";
    assert_said(&run(&sandbox, &["a"]), 0, expected, warning);
    assert_eq!(sandbox.log("a"), newest(3, 1));
}

#[test]
fn when_the_model_fails_nothing_is_trimmed() {
    for (command, flags, err) in [
        (
            "echo no money >&2; exit 7",
            &["a"][..],
            "no money\naxe-gc: server: command \"echo\" failed (exit 7): no money\n",
        ),
        ("false", &["a", "--dry-run"], "axe-gc: server: command \"false\" failed (exit 1)\n"),
        ("sleep 60", &["a", "--timeout", "1"], "axe-gc: timeout: command \"sleep\" did not finish in time\n"),
    ] {
        let sandbox = Sandbox::new();
        remembering(&sandbox, "a", command, "last_n = 1", 3);
        assert_said(&run(&sandbox, flags), 3, "Agent: a\nEntries: 3\n", err);
        assert_eq!(sandbox.log("a"), entries(3), "{command}");
    }
}

#[test]
fn a_reader_that_left_does_not_stop_the_trim() {
    for (args, called) in [(&["a"][..], 1), (&["--no-analysis", "a"], 0), (&["--all"], 1)] {
        let sandbox = Sandbox::new();
        remembering(&sandbox, "a", REPORT, "last_n = 3", 10);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = sandbox.std_command("axe-gc");
        command.args(args).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        assert_said(&command.spawn().unwrap().wait_with_output().unwrap(), 0, "", "");
        assert_eq!((sandbox.log("a"), calls(&sandbox)), (newest(10, 3), called), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_stdout_means_no_call_and_no_trim() {
    for args in [&["a"][..], &["a", "--dry-run"], &["a", "--no-analysis"], &["--all"]] {
        let sandbox = Sandbox::new();
        remembering(&sandbox, "a", REPORT, "last_n = 3", 10);
        remembering(&sandbox, "b", REPORT, "last_n = 3", 10);
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = sandbox.std_command("axe-gc");
        let output = command.args(args).stdin(Stdio::null()).stdout(full).output().unwrap();
        assert!(output.err().contains("cannot write to stdout: No space left on device"), "{}", output.err());
        assert_eq!((output.code(), calls(&sandbox)), (Some(1), 0), "{args:?}");
        assert_eq!((sandbox.log("a"), sandbox.log("b")), (entries(10), entries(10)), "{args:?}");
    }
}

#[test]
fn an_entry_that_comes_while_the_model_is_thinking_survives() {
    let sandbox = Sandbox::new();
    let thinking = "cat > prompt; touch thinking; until test -e go; do sleep 0.01; done; echo REPORT";
    remembering(&sandbox, "a", thinking, "last_n = 3", 10);
    sandbox.provider("other", "kind = 'command'\ncommand = 'cat > /dev/null; echo answered'");
    let mut command = sandbox.std_command("axe-gc");
    let child = command.arg("a").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    eventually("the model's turn", || sandbox.work().join("thinking").exists());
    let run = sandbox.run("a").args(["--model", "other/x", "-p", "late"]).output().unwrap();
    sandbox.file("go", "");
    assert_eq!((run.out().as_str(), run.code()), ("answered", Some(0)), "{}", run.err());
    let expected = format!(
        "Agent: a\nEntries: 10\n--- Analysis ---\nREPORT\nTrimmed: 8 entries removed, 3 entries kept.\n{}",
        overview(10)
    );
    assert_said(&child.wait_with_output().unwrap(), 0, &expected, "");
    let late = format!("## {NOW}\n**Task:** late\n**Result:** answered\n\n");
    assert_eq!(sandbox.log("a"), newest(10, 2) + &late);
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_while_the_model_is_thinking_ends_both_and_trims_nothing() {
    let sandbox = Sandbox::new();
    let mark = sandbox.work().join("thinking");
    remembering(&sandbox, "a", &format!("touch {0}; tail -f {0}", mark.display()), "last_n = 3", 10);
    let mut command = sandbox.std_command("axe-gc");
    let child = command.arg("a").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    eventually("the model's turn", || crate::support::is_running(&format!("tail -f {}", mark.display())));
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_said(&output, 143, "Agent: a\nEntries: 10\n", "axe-gc: ended by SIGTERM\n");
    assert_eq!(sandbox.log("a"), entries(10));
    eventually("the model's end", || !crate::support::is_running(&format!("tail -f {}", mark.display())));
}
