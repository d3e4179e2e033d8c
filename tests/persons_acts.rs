//! What only a person does: refused in the shell of an agent, asked for at the terminal where there is one.

use crate::memory_review::propose;
use crate::support::said;
use crate::support::store::{Store, name, note};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every act: what it is in the message, the program, its arguments. REMOTE is the address of a repository.
const ACTS: &[(&str, &str, &[&str])] = &[
    ("set or change the remote of the notes", "memory-sync", &["--remote", "REMOTE"]),
    ("set or change the remote of the notes", "memory-sync", &["--remote", "REMOTE", "--dry-run", "--json"]),
    ("set or change the remote of the notes", "memory-sync", &["--leave"]),
    ("decide about notes that are missing", "memory-sync", &["--missing", "remove"]),
    ("pin or unpin a note", "memory-update", &["AAAAAA", "--pin"]),
    ("pin or unpin a note", "memory-update", &["BBBBBB", "--unpin"]),
    ("change the tier of a note that is theirs", "memory-update", &["AAAAAA", "--tier", "cold"]),
    ("change the tier of a note that is theirs", "memory-update", &["AAAAAA", "--status", "promoted"]),
    ("delete a note that is theirs", "memory-remove", &["BBBBBB", "AAAAAA", "--purge"]),
    ("accept what an MCP server offers", "axe-agents", &["accept", "a"]),
    ("edit a note", "memory-edit", &["AAAAAA"]),
    ("accept or reject a change", "memory-review", &["--accept", "p__a1B2c3"]),
    ("accept or reject a change", "memory-review", &["--reject", "p__a1B2c3"]),
    ("accept or reject a change", "memory-review", &["--reject-session", "T-7"]),
    ("import a file", "memory-import", &["--yes", "CLAUDE.md"]),
    ("share a note with others", "memory-share", &["AAAAAA"]),
    ("share a note with others", "memory-share", &["--undo", "AAAAAA"]),
    ("install or remove hooks", "memory-install-hooks", &["--harness", "claude-code"]),
    ("install or remove hooks", "memory-uninstall-hooks", &[]),
    ("install or remove timers", "memory-install-cron", &["--scheduler", "crontab"]),
    ("install or remove timers", "memory-uninstall-cron", &[]),
    ("write a configuration", "memory-config", &["init", "--yes", "--timers"]),
    ("write a configuration", "memory-config", &["init", "--config", "new.json"]),
];

/// A person's note, one of a session, a change that waits, and a repository for the notes.
fn scene() -> (Store, PathBuf) {
    let store = Store::with_history();
    store.note("AAAAAA", "Mine");
    let source = "scope: repo\nsources:\n  - {harness: amp, threadId: T-1, repo: github.com/o/r}\n";
    store.put(&format!("topics/{}", name("BBBBBB", "Found")), note("BBBBBB", "Found", source));
    propose(&store, "p__a1B2c3", json!({}));
    fs::create_dir_all(store.sandbox.home().join(".claude")).unwrap();
    let remote = store.sandbox.home().join("notes.git");
    let mut git = Command::new("git");
    assert!(git.args(["init", "--quiet", "--bare"]).arg(&remote).status().unwrap().success());
    (store, remote)
}

/// Every file below a directory.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => dirs.push(path),
                false => drop(all.insert(path.clone(), fs::read(&path).unwrap())),
            }
        }
    }
    all
}

#[test]
fn an_agent_does_nothing_that_only_a_person_does() {
    let (store, remote) = scene();
    let before = files(&store.sandbox.home());
    for (act, program, args) in ACTS {
        for (variable, value) in [("CLAUDECODE", "1"), ("CLAUDECODE", ""), ("AGENT", "goose")] {
            let args = args.iter().map(|arg| if *arg == "REMOTE" { remote.to_str().unwrap() } else { arg });
            let (code, out, err) = said(store.sandbox.command(program).args(args).env(variable, value));
            let expected =
                format!("only a person may {act}, and this is the shell of an agent ({variable} is set)");
            assert_eq!((code, out.as_str()), (Some(1), ""), "{program} {act}: {err}");
            assert!(
                err.contains(&expected) && err.contains("run it in a terminal of your own"),
                "{program}: {err}"
            );
        }
    }
    assert!(!store.sandbox.work().join("new.json").exists());
    assert_eq!(files(&store.sandbox.home()), before, "nothing has changed");
}

#[test]
fn an_agent_may_look_and_say_what_it_found() {
    let (store, _) = scene();
    for (program, args) in [
        ("memory-list", &[][..]),
        ("memory-read", &["AAAAAA"]),
        ("memory-capture", &["--title", "Port", "--body", "It is 8081."]),
        ("memory-capture", &["--title", "Port", "--body", "It is 8081.", "--direct"]),
        ("memory-update", &["AAAAAA", "--title", "Ours"]),
        ("memory-update", &["BBBBBB", "--tier", "hot"]),
        ("memory-remove", &["BBBBBB"]),
        ("memory-review", &["--json"]),
        ("memory-agents-md", &["--stdout"]),
        ("memory-config", &["show"]),
        ("memory-install-hooks", &["--print"]),
        ("memory-sync", &[]),
    ] {
        let (code, _, err) = said(store.sandbox.command(program).args(args).env("CLINE_ACTIVE", "true"));
        assert_eq!(code, Some(0), "{program} {args:?}: {err}");
    }
}

#[test]
fn a_remote_of_another_configuration_is_set_by_a_person_alone_and_then_an_agent_may_sync() {
    let (store, remote) = scene();
    let config = json!({"sync": {"remote": remote}}).to_string();
    store.sandbox.file("other.json", config);
    let sync = |agent: bool| {
        let mut command = store.sandbox.command("memory-sync");
        command.args(["--config", "other.json"]);
        said(if agent { command.env("CODEX_THREAD_ID", "") } else { &mut command })
    };
    let (code, _, err) = sync(true);
    assert!(code == Some(1) && err.contains("only a person may set or change the remote"), "{err}");
    assert!(fs::read_dir(remote.join("refs/heads")).unwrap().next().is_none(), "nothing was sent");
    assert_eq!(sync(false).0, Some(0));
    let (code, _, err) = sync(true);
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

/// Runs the program on a terminal of its own, in an agent's shell, and answers the question.
fn asked(store: &Store, program: &str, args: &[&str], typed: &str) -> Option<(Option<i32>, String)> {
    store.sandbox.asked(program, args, &[("CLAUDECODE", "1")], typed)
}

#[test]
fn a_person_at_an_agents_terminal_is_asked() {
    let (store, remote) = scene();
    let address = remote.to_str().unwrap();
    let before = files(&store.sandbox.home());
    for no in ["\n", "n\n", "\u{4}"] {
        let Some((code, shown)) = asked(&store, "memory-sync", &["--remote", address], no) else { return };
        assert!(code == Some(1) && shown.contains("only a person may set or change the remote"), "{shown}");
        assert!(
            shown.contains(&format!("Do you want this to run: memory-sync --remote {address}\n")),
            "{shown}"
        );
    }
    assert_eq!(files(&store.sandbox.home()), before);
    let (code, shown) = asked(&store, "memory-sync", &["--remote", address], "y\ny\n").unwrap();
    assert_eq!((code, fs::read_dir(remote.join("refs/heads")).unwrap().count()), (Some(0), 1), "{shown}");
    let (code, shown) = asked(&store, "memory-update", &["AAAAAA", "--tier", "cold"], "yes\n").unwrap();
    assert!(code == Some(0) && store.text("AAAAAA").contains("\ntier: cold\n"), "{shown}");
}
