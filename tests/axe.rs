//! `axe`, the dispatcher: finds `axe-<command>`, becomes it, and names what is near when there is none.

use crate::support::{NOW, Said, Sandbox, binary, said, set_mode, symlink, tools};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

/// A folder with the executable `axe-<name>` in it, a shell script.
fn own_command(sandbox: &Sandbox, name: &str, script: &str) -> PathBuf {
    let dir = sandbox.home().join("bin");
    let path = dir.join(format!("axe-{name}"));
    sandbox.write(&path, format!("#!/bin/sh\n{script}\n"));
    set_mode(&path, 0o755);
    dir
}

#[test]
fn version_and_help() {
    let sandbox = Sandbox::new();
    let axe = |args: &[&str]| said(sandbox.command("axe").args(args));
    let version = format!("axe version {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(axe(&["version"]), (Some(0), version, String::new()));
    let help = axe(&["--help"]);
    assert!(help.1.starts_with("axe - "), "{help:?}");
    assert_eq!(axe(&[]), help);
    assert_eq!(axe(&["help"]), help);
    for command in ["run", "agents", "config"] {
        let program = said(sandbox.command(&format!("axe-{command}")).arg("--help"));
        assert_eq!(axe(&["help", command]), program);
        assert_eq!(axe(&[command, "--help"]), program);
    }
}

#[test]
fn every_command_of_the_help_has_help() {
    let sandbox = Sandbox::new();
    let (_, help, _) = said(sandbox.command("axe").arg("--help"));
    let table = help.split("\n\n").nth(2).unwrap();
    let commands: Vec<&str> = table.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(commands.contains(&"completions") && commands.contains(&"version"), "{commands:?}");
    for command in commands {
        for args in [["help", command], [command, "--help"]] {
            let (code, out, err) = said(sandbox.command("axe").args(args));
            assert_eq!((code, err.as_str()), (Some(0), ""), "axe {}", args.join(" "));
            assert!(out.contains("Usage:"), "{out}");
        }
    }
}

#[test]
fn an_unknown_command_is_exit_one_and_names_the_nearest() {
    let sandbox = Sandbox::new();
    for (command, near) in [
        ("rnu", Some("run")),
        ("agent", Some("agents")),
        ("confgi", Some("config")),
        ("hepl", Some("help")),
        ("zebra", None),
        ("../run", None),
        ("/bin/sh", None),
        ("", None),
        ("a\nb", None),
    ] {
        let (code, out, err) = said(sandbox.command("axe").args([command, "--flag"]));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{command:?}");
        assert!(err.starts_with("axe: unknown command \"") && err.lines().count() == 1, "{err}");
        if let Some(near) = near {
            assert!(err.contains(&format!("did you mean \"{near}\"?")), "{err}");
        }
    }
}

#[test]
fn wrong_words_are_named() {
    let sandbox = Sandbox::new();
    let cases: [(&[&str], &str); 9] = [
        (&["--versoin"], "unknown option \"--versoin\"; did you mean \"--version\"?"),
        (&["--generate"], "option \"--generate\" needs a value"),
        (&["--generate", "html"], "unknown form \"html\"; "),
        (&["--generate", "man", "axe-zebra"], "no program named \"axe-zebra\"; "),
        (&["--generate", "man", "run", "x"], "unexpected argument \"x\""),
        (&["completions"], "a shell is required: bash, zsh or fish"),
        (&["completions", "tcsh"], "unknown shell \"tcsh\"; "),
        (&["version", "x"], "unexpected argument \"x\""),
        (&["help", "run", "x"], "unexpected argument \"x\""),
    ];
    for (args, message) in cases {
        let (code, out, err) = said(sandbox.command("axe").args(args));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert!(err.starts_with(&format!("axe: {message}")) && err.lines().count() == 1, "{args:?}: {err}");
    }
}

#[test]
fn a_command_gets_its_arguments_streams_and_environment() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", "cat", "[memory]\nenabled = true");
    let mut run = sandbox.command("axe");
    run.args(["run", "a", "--prompt=a b", "--"]).write_stdin("piped");
    assert_eq!(said(&mut run), (Some(0), "a b\n\npiped".into(), String::new()));
    assert_eq!(
        sandbox.log("a"),
        format!("## {NOW}\n**Task:** a b\n**Result:** a b  piped\n\n").replace("  ", "\n\n")
    );
}

#[test]
fn exit_codes_and_signals_are_the_commands_own() {
    let sandbox = Sandbox::new();
    assert_eq!(said(sandbox.command("axe").args(["run"])).0, Some(1));
    assert_eq!(said(sandbox.command("axe").args(["run", "gone"])).0, Some(2));
    sandbox.agent("failing", "exit 9", "");
    let (code, _, err) = said(sandbox.command("axe").args(["run", "failing"]));
    assert_eq!(code, Some(3));
    assert!(err.starts_with("axe-run: "), "{err}");
    let dir = own_command(&sandbox, "ends", "[ \"$1\" = kill ] && kill -9 $$; exit \"$1\"");
    for code in [0, 1, 7, 130, 255] {
        let mut axe = sandbox.command("axe");
        assert_eq!(said(axe.args(["ends", &code.to_string()]).env("PATH", &dir)).0, Some(code));
    }
    let output = sandbox.std_command("axe").args(["ends", "kill"]).env("PATH", &dir).output().unwrap();
    assert_eq!((output.status.signal(), output.err().as_str()), (Some(9), ""));
}

#[test]
fn programs_on_path_are_commands_too() {
    let sandbox = Sandbox::new();
    let dir = own_command(&sandbox, "hello", "echo \"$# $1\"; cat");
    let path = format!("/no/such/dir:{}:{}", dir.display(), tools());
    let mut axe = sandbox.command("axe");
    axe.args(["hello", "a  b", "--help"]).env("PATH", &path).write_stdin("in");
    assert_eq!(said(&mut axe), (Some(0), "2 a  b\nin".into(), String::new()));
    let (_, out, _) = said(sandbox.command("axe").args(["help", "hello"]).env("PATH", &path));
    assert_eq!(out, "1 --help\n");
    // What stands beside it comes first: a folder on PATH cannot take the place of its own.
    let dir = own_command(&sandbox, "run", "echo stranger");
    let (code, out, _) = said(sandbox.command("axe").args(["run", "--version"]).env("PATH", &dir));
    assert_eq!((code, out), (Some(0), format!("axe-run {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn what_cannot_be_executed_is_no_command() {
    let sandbox = Sandbox::new();
    let dir = own_command(&sandbox, "plain", "echo no");
    set_mode(&dir.join("axe-plain"), 0o644);
    fs::create_dir(dir.join("axe-folder")).unwrap();
    symlink("gone", dir.join("axe-dangling"));
    for command in ["plain", "folder", "dangling"] {
        let (code, out, err) = said(sandbox.command("axe").arg(command).env("PATH", &dir));
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.starts_with("axe: unknown command \""), "{err}");
    }
    let path = dir.join("axe-broken");
    fs::write(&path, "#!/no/such/interpreter\n").unwrap();
    set_mode(&path, 0o755);
    let (code, _, err) = said(sandbox.command("axe").arg("broken").env("PATH", &dir));
    assert_eq!(code, Some(1));
    assert!(err.starts_with("axe: cannot run \""), "{err}");
}

#[test]
fn a_symlink_in_another_folder_still_finds_its_siblings() {
    let sandbox = Sandbox::new();
    let link = sandbox.home().join("elsewhere/axe");
    symlink(binary("axe"), &link);
    let twice = sandbox.home().join("again/axe");
    symlink(&link, &twice);
    for link in [link, twice] {
        let mut axe = std::process::Command::new(&link);
        axe.env_clear().env("HOME", sandbox.home()).args(["run", "--version"]);
        let output = axe.output().unwrap();
        assert_eq!(output.code(), Some(0), "{}", output.err());
        assert!(output.out().starts_with("axe-run "));
    }
}
