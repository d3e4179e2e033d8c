//! `axe-config`: path and init.

use crate::support::{Sandbox, mode, said};
use std::fs;

#[test]
fn path_prints_the_directory_and_makes_nothing() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.home().join("x");
    for (xdg, dir) in
        [(None, sandbox.config()), (Some(""), sandbox.config()), (elsewhere.to_str(), elsewhere.join("axe"))]
    {
        let mut path = sandbox.command("axe-config");
        path.arg("path").envs(xdg.map(|dir| ("XDG_CONFIG_HOME", dir)));
        assert_eq!(said(&mut path), (Some(0), format!("{}\n", dir.display()), String::new()));
        assert!(!dir.exists());
    }
}

#[test]
fn init_makes_what_is_missing_and_keeps_what_exists() {
    let sandbox = Sandbox::new();
    let dir = sandbox.config();
    let (config, skill) = (dir.join("config.toml"), dir.join("skills/sample/SKILL.md"));
    let init = || said(sandbox.command("axe-config").arg("init"));
    let printed = (Some(0), format!("{}\n", dir.display()), String::new());
    assert_eq!(init(), printed);
    assert!(dir.join("agents").is_dir());
    assert_eq!(mode(&config), 0o600);
    assert!(fs::read_to_string(&skill).unwrap().starts_with("---\nname: sample\n"));
    let scaffold = fs::read_to_string(&config).unwrap();
    assert!(scaffold.lines().all(|line| line.is_empty() || line.starts_with('#')), "{scaffold}");

    fs::write(&config, "# mine").unwrap();
    crate::support::set_mode(&config, 0o644);
    fs::remove_file(&skill).unwrap();
    fs::write(dir.join("agents/a.toml"), "mine").unwrap();
    assert_eq!(init(), printed);
    assert_eq!((fs::read_to_string(&config).unwrap().as_str(), mode(&config)), ("# mine", 0o644));
    assert_eq!(fs::read_to_string(dir.join("agents/a.toml")).unwrap(), "mine");
    assert!(skill.is_file());
}

#[test]
fn what_init_makes_works_as_it_stands() {
    let sandbox = Sandbox::new();
    assert_eq!(said(sandbox.command("axe-config").arg("init")).0, Some(0));
    assert_eq!(said(sandbox.command("axe-agents").args(["init", "a"])).0, Some(0));
    let mut run = sandbox.run("a");
    run.args(["--dry-run", "--model", "command/llm", "--skill", "skills/sample/SKILL.md"]);
    let (code, out, err) = said(&mut run);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("--- Skill ---\n# Sample skill\n"), "{out}");
}

#[test]
fn a_file_in_the_way_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write(&sandbox.config(), "a file");
    let (code, out, err) = said(sandbox.command("axe-config").arg("init"));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains(&sandbox.config().display().to_string()) && err.lines().count() == 1, "{err}");
}

#[test]
fn wrong_words_are_named() {
    let sandbox = Sandbox::new();
    let cases: [(&[&str], &str); 5] = [
        (&[], "a command is required: path or init"),
        (&["pth"], "unknown command \"pth\"; "),
        (&["path", "x"], "unexpected argument \"x\""),
        (&["init", "x"], "unexpected argument \"x\""),
        (&["path", "--json"], "unknown option \"--json\"; "),
    ];
    for (args, message) in cases {
        let (code, out, err) = said(sandbox.command("axe-config").args(args));
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.starts_with(&format!("axe-config: {message}")) && err.lines().count() == 1, "{err}");
    }
    let (code, _, err) = said(sandbox.command("axe-config").arg("path").env_remove("HOME"));
    assert_eq!(code, Some(2));
    assert!(err.starts_with("axe-config: unable to determine config directory: "), "{err}");
}
