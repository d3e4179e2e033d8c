//! Standing trouble: it arises, the doctor and the start of a session show it, it ends, and it is gone.

use crate::support::disk::Disk;
use crate::support::llm::NOTE_EACH;
use crate::support::store::Store;
use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The answer to a session's start, and the line about trouble in it, or nothing.
fn start_at(sandbox: &Sandbox, now: &str) -> (String, String) {
    let start = json!({"hook_event_name": "SessionStart", "session_id": now, "source": "startup",
        "cwd": sandbox.work()});
    let mut command = sandbox.command("memory-recall");
    command.args(["--harness", "opencode"]).envs([("AXE_NOW", now), ("AGENT_MEMORY_RECALL_MS", "60000")]);
    let (code, out, err) = said(command.write_stdin(start.to_string()));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let line = out.lines().find(|line| line.starts_with("memory: ")).unwrap_or_default().to_owned();
    (out, line)
}

fn line(sandbox: &Sandbox) -> String {
    start_at(sandbox, "2026-02-28T16:00:00Z").1
}

/// What the doctor finds by one check.
fn found(sandbox: &Sandbox, check: &str) -> String {
    let (_, out, _) = said(sandbox.command("memory-doctor").args(["--json"]));
    let report: Value = serde_json::from_str(&out).unwrap();
    let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    findings.map(|finding| finding["what"].as_str().unwrap().to_owned() + "\n").collect()
}

fn health(sandbox: &Sandbox) -> PathBuf {
    sandbox.store().join(".agent-memory/health.json")
}

#[test]
fn commits_that_fail_are_trouble_until_one_succeeds() {
    let store = Store::with_history();
    store.note("AAAAAA", "One");
    let update = |summary: &str| store.run("memory-update", &["AAAAAA", "--summary", summary]).2;
    store.config(r#"{"storage": {"commitHook": "false"}}"#);
    assert!(update("One").contains("not committed"));
    assert_eq!(line(&store.sandbox), "", "one is no standing trouble");
    let once = found(&store.sandbox, "history");
    assert!(once.contains("the last commit failed, since 2026-02-28T15:04:05Z"), "{once}");
    update("Two");
    update("Three");
    let (out, line_of_three) = start_at(&store.sandbox, "2026-02-28T16:00:00Z");
    assert_eq!(line_of_three, "memory: the last 3 commits failed: memory doctor");
    assert!(out.trim_end().lines().nth_back(1).unwrap() == line_of_three, "the last line of it: {out}");
    store.config("{}");
    assert_eq!(update("Four"), "");
    assert_eq!((line(&store.sandbox), found(&store.sandbox, "history")), (String::new(), String::new()));
}

#[test]
fn a_queue_that_does_not_move_and_sessions_that_fail_are_trouble_until_they_are_read() {
    let sandbox = Sandbox::new();
    sandbox.llm("echo broken >&2; exit 1", json!({}));
    sandbox.heard("s1", "Hello?");
    let run = |now: &str, args: &[&str]| said(sandbox.consolidate(args).env("AXE_NOW", now)).0;
    assert_eq!(run("2026-02-28T16:00:00Z", &[]), Some(3));
    assert_eq!(run("2026-02-28T16:10:00Z", &[]), Some(0));
    assert_eq!((line(&sandbox), found(&sandbox, "queue").matches("in a row").count()), (String::new(), 0));
    assert_eq!(run("2026-02-28T16:20:00Z", &[]), Some(0));
    assert_eq!(line(&sandbox), "memory: the queue has not moved in 3 runs: memory doctor");
    let stuck = found(&sandbox, "queue");
    assert!(
        stuck.contains("3 runs in a row left all that waits in the queue, since 2026-02-28T16:00"),
        "{stuck}"
    );
    assert!(stuck.contains("broken"), "{stuck}");
    run("2026-02-28T17:00:00Z", &[]);
    run("2026-02-28T23:00:00Z", &[]);
    assert_eq!(line(&sandbox), "memory: 1 session could not be filed: memory doctor");
    sandbox.librarian(NOTE_EACH);
    assert_eq!(run("2026-02-28T23:10:00Z", &["--retry-failed"]), Some(0));
    assert_eq!((line(&sandbox), found(&sandbox, "queue")), (String::new(), String::new()));
}

#[test]
fn hooks_that_give_nothing_are_trouble_until_a_day_has_passed() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let sandbox = &store.sandbox;
    let fail = || said(sandbox.command("memory-recall").args(["--harness", "codex"]).write_stdin("x")).0;
    assert_eq!((line(sandbox), health(sandbox).exists()), (String::new(), false), "nothing to say");
    for _ in 0..3 {
        assert_eq!(fail(), Some(0));
    }
    assert!(found(sandbox, "recall").contains("gave nothing 3 times"));
    let before =
        (fs::read(health(sandbox)).unwrap(), fs::metadata(health(sandbox)).unwrap().modified().unwrap());
    assert_eq!(line(sandbox), "memory: recall gave nothing 3 times: memory doctor");
    let after =
        (fs::read(health(sandbox)).unwrap(), fs::metadata(health(sandbox)).unwrap().modified().unwrap());
    assert_eq!(before, after, "nothing has changed, so nothing is written");
    assert_ne!(start_at(sandbox, "2026-03-01T16:00:00Z").1, "", "this one ends it");
    assert_eq!((line(sandbox), found(sandbox, "recall")), (String::new(), String::new()));

    // What a newer program wrote is left alone, and what cannot be read is no trouble.
    for (text, is_kept) in [(r#"{"version": 99, "troubles": 7}"#, true), ("{", false)] {
        fs::write(health(sandbox), text).unwrap();
        assert_eq!(line(sandbox), "");
        fail();
        assert_eq!(fs::read_to_string(health(sandbox)).unwrap() == text, is_kept, "{text}");
    }
}

#[test]
fn a_session_that_cannot_be_answered_in_time_is_a_finding() {
    let store = Store::new();
    let letters: Vec<char> = "ABCDEFGHJKLMNPQRSTUVWXYZ".chars().collect();
    for n in 0..300 {
        store.note(&format!("{}{}AAAA", letters[n / 24], letters[n % 24]), "One");
    }
    let late = |patience: &str| {
        let mut command = store.sandbox.command("memory-doctor");
        said(command.env("AGENT_MEMORY_RECALL_MS", patience))
            .1
            .contains("memory-recall cannot answer: no answer after")
    };
    assert_eq!((late("1"), late("60000")), (true, false));
}

#[test]
fn a_full_disk_is_named_to_a_session_that_is_given_its_notes() {
    let Some(disk) = Disk::new() else { return };
    let store = Store::new();
    store.config(&json!({"storage": {"root": disk.path("s"), "autoCommit": false}}).to_string());
    store.out("memory-capture", &["--title", "Ports", "--body", "8081", "--direct"]);
    disk.fill();
    disk.fill_names();
    let (out, line_of_full) = start_at(&store.sandbox, "2026-02-28T16:00:00Z");
    assert!(out.contains("Ports"), "{out}");
    assert_eq!(line_of_full, "memory: the store cannot be written to: memory doctor");
    disk.free();
    assert_eq!(line(&store.sandbox), "");
}

#[test]
fn the_plugin_counts_as_hooks_where_it_is_on() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let settings = sandbox.home().join(".claude/settings.json");
    for (plugins, is_on) in [
        (r#"{"agent-memory@axe-toolkit": true}"#, true),
        (r#"{"agent-memory@axe-toolkit": false}"#, false),
        (r#"{"other@axe-toolkit": true}"#, false),
        ("[true]", false),
    ] {
        sandbox.write(&settings, format!("{{\"enabledPlugins\": {plugins}}}"));
        assert_eq!(found(&sandbox, "hooks").is_empty(), is_on, "{plugins}");
        let (_, out, _) = said(&mut sandbox.command("memory-doctor"));
        assert_eq!(out.contains("its hooks are installed by the plugin"), is_on, "{plugins}: {out}");
    }
}

#[test]
fn hooks_that_are_switched_off_are_named_until_they_are_on() {
    for (harness, home, title, file, off) in [
        ("claude-code", ".claude", "Claude Code", "settings.json", r#""disableAllHooks": true"#),
        ("qwen-code", ".qwen", "Qwen Code", "settings.json", r#""disableAllHooks": true"#),
        ("gemini", ".gemini", "Gemini CLI", "settings.json", r#""hooksConfig": {"enabled": false}"#),
        ("codex", ".codex", "Codex", "config.toml", "[features]\nhooks = false\n"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.librarian(NOTE_EACH);
        fs::create_dir_all(sandbox.home().join(home)).unwrap();
        assert!(sandbox.command("memory-install-hooks").output().unwrap().status.success());
        let path = sandbox.home().join(home).join(file);
        let on = fs::read_to_string(&path).unwrap_or_default();
        let is_json = on.starts_with('{');
        sandbox
            .write(&path, if is_json { on.replacen('{', &format!("{{{off},"), 1) } else { off.to_owned() });
        assert_eq!(sandbox.consolidated(&[]).0, Some(0));
        assert_eq!(line(&sandbox), format!("memory: hooks are switched off in {title}: memory doctor"));
        let what = found(&sandbox, "hooks");
        assert!(
            what.starts_with(&format!("{title} runs no hook, because ")) && what.contains(file),
            "{harness}: {what}"
        );
        sandbox.write(&path, on);
        assert_eq!(sandbox.consolidated(&[]).0, Some(0));
        assert_eq!((line(&sandbox), found(&sandbox, "hooks")), (String::new(), String::new()), "{harness}");
    }
}
