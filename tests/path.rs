//! Entries of PATH that are empty or relative: what stands in the current directory is not run.

use crate::support::{Said, Sandbox, set_mode, tools};

/// A program in the work directory, as a checkout brings one, and one in a directory that is on PATH.
fn scene(name: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let good = sandbox.home().join("good");
    for (path, says) in [
        (sandbox.work().join(name), "evil"),
        (sandbox.work().join("bin").join(name), "evil"),
        (good.join(name), "good"),
    ] {
        sandbox.write(&path, format!("#!/bin/sh\ncat > /dev/null\necho {says}\n"));
        set_mode(&path, 0o755);
    }
    (sandbox, format!("{}:{}", good.display(), tools()))
}

#[test]
fn a_command_is_not_looked_for_in_the_current_directory() {
    for (entries, named) in [(".:", "\".\""), (":", "\"\""), ("bin:./bin:", "\"bin\", \"./bin\"")] {
        for line in ["model", "model | cat"] {
            let (sandbox, path) = scene("model");
            sandbox.agent("a", line, "");
            let mut run = sandbox.run("a");
            let output = run.env("PATH", format!("{entries}{path}")).write_stdin("hello").output().unwrap();
            assert_eq!((output.code(), output.out().as_str()), (Some(0), "good"), "{entries} {line}");
            let expected = format!(
                "Warning: left out of PATH, because it is not an absolute path: {named}; remove it there\n"
            );
            assert_eq!(output.err(), expected);
        }
    }
}

#[test]
fn no_program_of_the_current_directory_is_found_and_a_hook_says_nothing_of_it() {
    let (sandbox, _) = scene("claude");
    let path = format!(".:{}", tools());
    let output = sandbox.command("memory-config").args(["init"]).env("PATH", &path).output().unwrap();
    assert!(output.err().contains("LLM command: none found on PATH"), "{}", output.err());
    assert_eq!(output.err().matches("left out of PATH").count(), 1, "{}", output.err());
    let mut hook = sandbox.command("memory-recall");
    hook.env("AGENT_MEMORY_RECALL_MS", "60000");
    let session = format!(
        "{{\"session_id\":\"s\",\"hook_event_name\":\"SessionStart\",\"source\":\"startup\",\"cwd\":\"{}\"}}",
        sandbox.work().display()
    );
    let output =
        hook.args(["--harness", "claude-code"]).write_stdin(session).env("PATH", &path).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
}
