//! `memory`, the dispatcher, and the configuration that every program of the family takes.

use crate::support::store::{Store, note};
use crate::support::{Said, Sandbox, binary, said, set_mode, symlink, tools};
use std::fs;
use std::os::unix::process::ExitStatusExt;

#[test]
fn each_command_of_the_help_is_a_program_with_help() {
    let sandbox = Sandbox::new();
    let memory = |args: &[&str]| said(sandbox.command("memory").args(args));
    let help = memory(&["--help"]);
    assert_eq!((memory(&[]), memory(&["help"])), (help.clone(), help.clone()));
    let table = help.1.split("\n\n").nth(2).unwrap();
    let commands: Vec<&str> = table.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    for command in ["capture", "list", "read", "page", "update", "remove", "config"] {
        assert!(commands.contains(&command), "{commands:?}");
        let program = said(sandbox.command(&format!("memory-{command}")).arg("--help"));
        assert_eq!((memory(&["help", command]), memory(&[command, "--help"])), (program.clone(), program));
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, err) = memory(&["completions", shell]);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert!(out.contains("memory-update") && out.contains("no-count"), "{shell}: {out}");
    }
}

#[test]
fn arguments_streams_and_exit_codes_are_the_programs_own() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let listed = store.out("memory", &["list", "--json"]);
    assert_eq!(listed, store.out("memory-list", &["--json"]));
    assert_eq!(listed, store.out("memory", &["--color", "never", "list", "--json"]));
    let mut command = store.sandbox.command("memory");
    let output = command.args(["read", "--no-count", "-"]).write_stdin(listed).output().unwrap();
    assert_eq!((output.code(), output.out()), (Some(0), note("AAAAAA", "One", "")));
    let (code, out, err) = store.run("memory", &["read", "ZZZZZZ"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.starts_with("memory-read: no note has the id"), "{err}");
    let (code, _, err) = store.run("memory", &["list", "--config", "none.json"]);
    assert!(code == Some(2) && err.starts_with("memory-list: "), "{err}");
}

#[test]
fn a_wrong_command_is_exit_one_and_names_the_nearest() {
    let sandbox = Sandbox::new();
    for (command, near) in [
        ("raed", "did you mean \"read\"?"),
        ("lsit", "did you mean \"list\"?"),
        ("zebra", "see them with: memory help"),
        ("../list", ""),
        ("/bin/sh", ""),
        ("", ""),
        (".", ""),
    ] {
        let (code, out, err) = said(sandbox.command("memory").args([command, "--json"]));
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{command:?}");
        assert!(err.starts_with("memory: unknown command \"") && err.contains(near), "{err}");
    }
}

#[test]
fn a_users_own_commands_are_found_on_path() {
    let sandbox = Sandbox::new();
    let dir = sandbox.home().join("bin");
    for (name, script) in [
        ("memory-mine", "echo \"mine $*\"; exit 7"),
        ("memory-list", "echo stranger"),
        ("memory-ends", "kill -TERM $$"),
    ] {
        sandbox.write(&dir.join(name), format!("#!/bin/sh\n{script}\n"));
        set_mode(&dir.join(name), 0o755);
    }
    let path = format!("{}:{}", dir.display(), tools());
    let memory = |args: &[&str]| said(sandbox.command("memory").args(args).env("PATH", &path));
    assert_eq!(
        memory(&["mine", "--help", "a  b"]),
        (Some(7), "mine --help a  b\n".to_owned(), String::new())
    );
    // The program beside the dispatcher comes first.
    assert_eq!(memory(&["list"]).1, "");
    let mut ends = sandbox.std_command("memory");
    let status = ends.arg("ends").env("PATH", &path).status().unwrap();
    assert_eq!(status.signal(), Some(15));
    // Through a link to the dispatcher.
    let link = sandbox.home().join("link/memory");
    symlink(binary("memory"), &link);
    let output =
        std::process::Command::new(&link).args(["list", "--version"]).env("PATH", &path).output().unwrap();
    assert_eq!(output.out(), format!("memory-list {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_program_uses_the_configuration_it_is_given() {
    // The flag comes before the variable, and that before the user's own file.
    for by_flag in [true, false] {
        let store = Store::new();
        store.note("AAAAAA", "Not here");
        let other = store.sandbox.work().join("other");
        let root = |root: &str| format!("{{\"storage\": {{\"autoCommit\": false, \"root\": \"{root}\"}}}}");
        store.sandbox.file("named.json", root(other.to_str().unwrap()));
        store.sandbox.file("wrong.json", root("/nonexistent/store"));
        let file = other.join("topics/there -- id__BBBBBB.md");
        store.sandbox.write(&file, note("BBBBBB", "There", ""));
        let run = |program: &str, args: &[&str]| {
            let mut command = store.sandbox.command(program);
            command.args(args);
            match by_flag {
                true => command.args(["--config", "named.json"]).env("AGENT_MEMORY_CONFIG", "wrong.json"),
                false => command.env("AGENT_MEMORY_CONFIG", "named.json"),
            };
            let (code, out, err) = said(&mut command);
            assert_eq!((code, err.as_str()), (Some(0), ""), "{program} {args:?}");
            out
        };
        assert!(run("memory-list", &[]).contains("There"));
        assert!(run("memory-read", &["BBBBBB"]).contains("used: 1"));
        assert!(run("memory-agents-md", &[]).contains("There"));
        assert!(run("memory-update", &["BBBBBB", "--pin"]).contains("/other/topics/"));
        assert!(
            run("memory-capture", &["--direct", "--title", "T", "--body", "B"]).contains("/other/topics/")
        );
        assert!(run("memory-remove", &["BBBBBB"]).contains("/other/archive/"));
        assert!(!file.exists() && fs::read_dir(other.join("topics")).unwrap().count() == 1);
        assert_eq!(store.names().len(), 1);
    }
    let store = Store::new();
    store.config("{\"storage\": {\"rot\": \"/x\"}}");
    for (program, args) in [
        ("memory-list", &[][..]),
        ("memory-agents-md", &[]),
        ("memory-read", &["AAAAAA"]),
        ("memory-update", &["AAAAAA", "--pin"]),
        ("memory-remove", &["AAAAAA"]),
    ] {
        let (code, out, err) = store.run(program, args);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{program}");
        assert!(err.contains("storage.rot") && err.contains("\"storage.root\""), "{err}");
    }
}
