//! `axe-gc --all`: one agent after another, and one's failure is not the others'.

use crate::axe_gc::{REPORT, assert_said, calls, newest, remembering, run};
use crate::support::{Said, Sandbox, entries, overview};
use std::fs;

const NONE: &str = "No agents with memory enabled.\n";

/// What is printed of an agent whose model answers `REPORT`.
fn told(name: &str, n: usize, outcome: &str) -> String {
    let overview = overview(n);
    format!(
        "=== GC: {name} ===\nAgent: {name}\nEntries: {n}\n--- Analysis ---\nREPORT\n{outcome}\n{overview}"
    )
}

fn trimmed(name: &str, n: usize, keep: usize) -> String {
    told(name, n, &format!("Trimmed: {} entries removed, {keep} entries kept.", n - keep))
}

/// A log that cannot be read, whoever we are: a directory.
fn unreadable(sandbox: &Sandbox, name: &str) {
    remembering(sandbox, name, REPORT, "last_n = 3", 0);
    fs::remove_file(sandbox.log_path(name)).unwrap();
    fs::create_dir(sandbox.log_path(name)).unwrap();
}

fn told_of(sandbox: &Sandbox, name: &str) -> String {
    let path = sandbox.log_path(name);
    format!(
        "Error: gc failed for agent \"{name}\": failed to load memory: \"{}\" is not a regular file\n",
        path.display()
    )
}

#[test]
fn no_agents_no_directory_and_no_memory_are_nothing_to_do() {
    let sandbox = Sandbox::new();
    assert_said(&run(&sandbox, &["--all"]), 0, NONE, "");
    fs::create_dir_all(sandbox.config().join("agents")).unwrap();
    assert_said(&run(&sandbox, &["--all"]), 0, NONE, "");
    sandbox.agent("a", REPORT, "[memory]\nenabled = false\nlast_n = 1");
    sandbox.agent("b", REPORT, "");
    sandbox.write_log("a", &entries(3));
    for flags in [&["--all"][..], &["--all", "--dry-run"], &["--all", "--no-analysis"]] {
        assert_said(&run(&sandbox, flags), 0, NONE, "");
    }
    assert_eq!((sandbox.log("a"), calls(&sandbox)), (entries(3), 0));
}

#[test]
fn agents_with_memory_are_done_in_the_order_of_their_names() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "agent-c", REPORT, "last_n = 3", 5);
    sandbox.agent("agent-b", REPORT, "[memory]\nenabled = false");
    sandbox.agent("agent-e", REPORT, "");
    remembering(&sandbox, "agent-a", REPORT, "last_n = 3", 10);
    sandbox.agent("agent-d", REPORT, "[memory]\nenabled = true");
    sandbox.write_log("agent-b", &entries(9));
    let expected = trimmed("agent-a", 10, 3)
        + &trimmed("agent-c", 5, 3)
        + "=== GC: agent-d ===\nNo memory entries for agent \"agent-d\". Nothing to do.\n";
    assert_said(&run(&sandbox, &["--all"]), 0, &expected, "");
    assert_eq!((sandbox.log("agent-a"), sandbox.log("agent-c")), (newest(10, 3), newest(5, 3)));
    assert_eq!((sandbox.log("agent-b"), calls(&sandbox)), (entries(9), 2));
}

#[test]
fn agents_never_think_at_the_same_time() {
    let sandbox = Sandbox::new();
    let alone =
        "mkdir busy || exit 9; echo in >> seen; cat > /dev/null; echo out >> seen; rmdir busy; echo ok";
    let names = ["a", "b", "c", "d"];
    names.iter().for_each(|name| remembering(&sandbox, name, alone, "last_n = 1", 2));
    assert_eq!(run(&sandbox, &["--all"]).code(), Some(0));
    assert_eq!(fs::read_to_string(sandbox.work().join("seen")).unwrap(), "in\nout\n".repeat(names.len()));
}

#[test]
fn a_dry_run_of_all_trims_none() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 3", 10);
    remembering(&sandbox, "b", REPORT, "last_n = 3", 5);
    let dry = "Dry run: no entries trimmed.";
    let expected = told("a", 10, dry) + &told("b", 5, dry);
    assert_said(&run(&sandbox, &["--all", "--dry-run"]), 0, &expected, "");
    assert_eq!((sandbox.log("a"), sandbox.log("b"), calls(&sandbox)), (entries(10), entries(5), 2));
}

#[test]
fn no_analysis_of_all_trims_all_without_a_call() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 3", 10);
    remembering(&sandbox, "b", REPORT, "last_n = 3", 2);
    let expected = "=== GC: a ===\nAgent: a\nEntries: 10\nTrimmed: 7 entries removed, 3 entries kept.\n\
                    === GC: b ===\nAgent: b\nEntries: 2\nNo trimming needed: 2 entries within limit (3).\n";
    assert_said(&run(&sandbox, &["--all", "--no-analysis"]), 0, expected, "");
    assert_eq!((sandbox.log("a"), sandbox.log("b"), calls(&sandbox)), (newest(10, 3), entries(2), 0));
}

#[test]
fn another_model_is_for_all_of_them() {
    let sandbox = Sandbox::new();
    sandbox.provider(
        "other",
        "kind = 'command'\ncommand = 'cat > /dev/null; echo $AXE_MODEL >> asked; echo REPORT'",
    );
    remembering(&sandbox, "a", "false", "last_n = 3", 10);
    remembering(&sandbox, "b", "false", "last_n = 3", 5);
    let expected = trimmed("a", 10, 3) + &trimmed("b", 5, 3);
    assert_said(&run(&sandbox, &["--all", "--model", "other/x"]), 0, &expected, "");
    assert_eq!(fs::read_to_string(sandbox.work().join("asked")).unwrap(), "x\nx\n");
}

#[test]
fn a_model_that_is_none_fails_every_agent() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", REPORT, "last_n = 3", 10);
    remembering(&sandbox, "b", REPORT, "last_n = 3", 5);
    let why = "invalid model format \"gpt\": expected provider/model-name";
    let expected = format!(
        "Error: gc failed for agent \"a\": {why}\nError: gc failed for agent \"b\": {why}\n\
         axe-gc: gc completed with errors: 2 of 2 agents failed\n"
    );
    assert_said(&run(&sandbox, &["--all", "--model", "gpt"]), 1, "=== GC: a ===\n=== GC: b ===\n", &expected);
    assert_eq!((sandbox.log("a"), sandbox.log("b")), (entries(10), entries(5)));
}

#[test]
fn one_that_fails_does_not_stop_the_others() {
    let sandbox = Sandbox::new();
    let names = ["a", "b", "c", "d", "e"];
    names.iter().for_each(|name| remembering(&sandbox, name, REPORT, "last_n = 3", 10));
    fs::remove_file(sandbox.log_path("b")).unwrap();
    fs::create_dir(sandbox.log_path("b")).unwrap();
    let expected: String = names
        .iter()
        .map(|name| if *name == "b" { "=== GC: b ===\n".to_owned() } else { trimmed(name, 10, 3) })
        .collect();
    let errors = told_of(&sandbox, "b") + "axe-gc: gc completed with errors: 1 of 5 agents failed\n";
    assert_said(&run(&sandbox, &["--all"]), 1, &expected, &errors);
    for name in ["a", "c", "d", "e"] {
        assert_eq!(sandbox.log(name), newest(10, 3));
    }
}

#[test]
fn when_all_fail_each_is_told_of() {
    let sandbox = Sandbox::new();
    let names = ["a", "b", "c", "d", "e"];
    names.iter().for_each(|name| unreadable(&sandbox, name));
    let expected: String = names.iter().map(|name| format!("=== GC: {name} ===\n")).collect();
    let errors: String = names.iter().map(|name| told_of(&sandbox, name)).collect();
    let errors = errors + "axe-gc: gc completed with errors: 5 of 5 agents failed\n";
    assert_said(&run(&sandbox, &["--all"]), 1, &expected, &errors);
}

#[test]
fn the_exit_code_is_1_whatever_failed() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "a", "cat > /dev/null; exit 4", "last_n = 3", 10);
    remembering(&sandbox, "b", REPORT, "last_n = 3", 10);
    let expected = "=== GC: a ===\nAgent: a\nEntries: 10\n".to_owned() + &trimmed("b", 10, 3);
    let errors = "Error: gc failed for agent \"a\": server: command \"cat\" failed (exit 4)\n\
                  axe-gc: gc completed with errors: 1 of 2 agents failed\n";
    assert_said(&run(&sandbox, &["--all"]), 1, &expected, errors);
    assert_eq!((sandbox.log("a"), sandbox.log("b")), (entries(10), newest(10, 3)));
}

#[test]
fn a_broken_agent_file_is_left_out_with_a_warning() {
    let sandbox = Sandbox::new();
    remembering(&sandbox, "b", REPORT, "last_n = 3", 10);
    sandbox.agent_file("a", "name = 'a'\nmodel =");
    sandbox.agent_file("c", "name = 'c'\n[memory]\nenabled = true");
    sandbox.agent_file(".d", "name = 'd'\nmodel = 'b/m'\n[memory]\nenabled = true");
    sandbox.write(&sandbox.config().join("agents/notes.txt"), "not an agent");
    let output = run(&sandbox, &["--all"]);
    assert_eq!((output.out(), output.code()), (trimmed("b", 10, 3), Some(0)));
    let warnings = output.err();
    let lines: Vec<_> = warnings.lines().filter(|line| line.starts_with("Warning: ")).collect();
    assert_eq!(lines.len(), 3, "{warnings}");
    assert!(lines[0].starts_with("Warning: \".d\" is left out: invalid agent name"), "{warnings}");
    assert!(lines[1].starts_with("Warning: \"a\" is left out: failed to parse agent config \"a\": "));
    assert_eq!(lines[2], "Warning: \"c\" is left out: agent config missing required field: model");
}
