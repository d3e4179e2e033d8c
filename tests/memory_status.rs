//! `memory-status`: what it shows, and that what is wrong is solved with the commands that it names.

use crate::memory_review::propose;
use crate::support::disk::Disk;
use crate::support::llm::NOTE_EACH;
use crate::support::store::Store;
use crate::support::terminal::Terminal;
use crate::support::timers::Kit;
use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

const NOW: &str = "2026-02-28T16:00:00Z";

/// The lines of an area: what it says, and the next step.
fn area(sandbox: &Sandbox, now: &str, area: &str) -> Vec<(String, String)> {
    let (code, out, err) = said(sandbox.command("memory").arg("status").env("AXE_NOW", now));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, what, next] = cells[..] else { panic!("{out}") };
        (name == area).then(|| (what.to_owned(), next.to_owned()))
    };
    out.lines().filter_map(row).collect()
}

/// Types the command that stands in a next step.
fn follow(sandbox: &Sandbox, now: &str, step: &str) -> (Option<i32>, String, String) {
    let command = step.rsplit(": ").next().unwrap();
    let mut words = command.split(' ');
    assert_eq!(words.next(), Some("memory"), "{step}");
    said(sandbox.command("memory").args(words).env("AXE_NOW", now))
}

#[test]
fn an_expired_login_is_seen_and_what_waited_is_tried_again() {
    let sandbox = Sandbox::new();
    sandbox.llm("echo 'Please run /login' >&2; exit 1", json!({}));
    sandbox.heard("s1", "Which port has the server? It is 4310.");
    let [waits, entry] = &area(&sandbox, NOW, "queue")[..] else { panic!() };
    assert_eq!((waits.0.as_str(), waits.1.as_str()), ("1 entry waits", "memory consolidate"));
    assert!(
        entry.0.starts_with("claude-code 2026-02-28T") && entry.0.ends_with(": not tried yet"),
        "{entry:?}"
    );
    assert_eq!(follow(&sandbox, NOW, &waits.1).0, Some(3));

    let [_, (what, next)] = &area(&sandbox, NOW, "queue")[..] else { panic!() };
    assert!(what.contains("next try 2026-02-28T17:00:00Z; the last failed: "), "{what}");
    assert!(what.contains("Please run /login"), "{what}");
    // The person logs in.
    sandbox.librarian(NOTE_EACH);
    assert_eq!(follow(&sandbox, NOW, next).0, Some(0));
    assert_eq!(area(&sandbox, NOW, "queue"), [("nothing waits".to_owned(), String::new())]);
    let calls = &area(&sandbox, NOW, "calls")[0].0;
    assert!(calls.starts_with("today ") && calls.matches(" with about ").count() == 2, "{calls}");
    let calls = &area(&sandbox, "2026-03-01T00:00:00Z", "calls")[0].0;
    assert!(calls.starts_with("today none (at most ") && calls.ends_with("this month none"), "{calls}");
}

#[test]
fn a_failed_run_is_told_whatever_waits_and_so_is_a_missing_command() {
    let sandbox = Sandbox::new();
    sandbox.heard("s1", "Which port has the server? It is 4310.");
    sandbox.heard("s2", "Which port has the proxy? It is 4311.");
    let (what, next) = area(&sandbox, NOW, "queue").remove(0);
    assert_eq!(what, "2 entries wait, and llm.command is not set");
    assert_eq!(next, "memory config init");
    sandbox.llm("echo 'Please run /login' >&2; exit 1", json!({}));
    assert_eq!(sandbox.consolidated(&[]).0, Some(3));
    let queue = area(&sandbox, NOW, "queue");
    assert!(queue[0].0.starts_with("2 entries wait; the last run failed: "), "{queue:?}");
    assert!(queue.iter().all(|(what, _)| !what.contains("not tried yet")), "{queue:?}");
    assert_eq!(follow(&sandbox, NOW, &queue[0].1).0, Some(3));
}

#[test]
fn a_full_disk_is_named_with_what_to_do_until_there_is_room() {
    let Some(disk) = Disk::new() else { return };
    let store = Store::new();
    store.config(&json!({"storage": {"root": disk.path("s"), "autoCommit": false}}).to_string());
    store.out("memory-capture", &["--title", "Ports", "--body", "8081", "--direct"]);
    disk.fill();
    disk.fill_names();
    let trouble = area(&store.sandbox, NOW, "trouble");
    let [(what, next)] = &trouble[..] else { panic!("{trouble:?}") };
    assert!(what.starts_with("the store cannot be written to: "), "{what}");
    assert!(next.starts_with("make room on its disk"), "{next}");
    disk.free();
    assert_eq!(
        area(&store.sandbox, NOW, "trouble"),
        [("none".to_owned(), "memory doctor looks into the notes".to_owned())]
    );
}

#[test]
fn a_change_that_waits_leads_to_the_review_that_decides_it() {
    let store = Store::new();
    propose(&store, "p__a1B2c3", json!({}));
    propose(&store, "p__d4E5f6", json!({"session": null}));
    let review = area(&store.sandbox, NOW, "review");
    let [(what, next), other] = &review[..] else { panic!("{review:?}") };
    assert_eq!(what, "1 change from amp T-7 in github.com/o/r: Dev server");
    assert!(other.0.starts_with("1 change from no session: "), "{other:?}");
    let (_, out, _) = follow(&store.sandbox, NOW, next);
    for id in ["p__a1B2c3", "p__d4E5f6"] {
        assert!(out.contains(id), "{out}");
    }
    assert_eq!(store.run("memory", &["review", "--accept", "p__a1B2c3", "--reject", "p__d4E5f6"]).0, Some(0));
    assert_eq!(area(&store.sandbox, NOW, "review"), [("nothing waits for you".to_owned(), String::new())]);
}

#[test]
fn a_target_is_named_before_it_is_there_and_when_its_markers_are_broken() {
    let store = Store::new();
    let target = store.sandbox.home().join("AGENTS.md");
    store.config(&json!({"agentsMd": {"targets": [target]}}).to_string());
    let (what, _) = area(&store.sandbox, NOW, "files").remove(0);
    assert!(what.starts_with("~/AGENTS.md: not there yet, "), "{what}");
    let (_, next) = area(&store.sandbox, NOW, "notes").remove(0);
    assert_eq!(next, "memory add --title TITLE --body TEXT");
    store.sandbox.write(&target, "<!-- agent-memory:start -->\n<!-- agent-memory:start -->\n");
    let trouble = area(&store.sandbox, NOW, "trouble");
    assert!(trouble[0].0.contains("its markers are broken"), "{trouble:?}");
    assert!(!area(&store.sandbox, NOW, "files")[0].0.contains("not there yet"));
}

#[test]
fn a_machine_that_was_away_for_a_week_is_synced_again() {
    let store = Store::with_history();
    store.note("AAAAAA", "One");
    let alone = &area(&store.sandbox, NOW, "sync")[0];
    assert_eq!(alone.0, "not set up: the notes are only on this machine");
    let remote = store.sandbox.home().join("remote.git");
    let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(&remote).status();
    assert!(made.unwrap().success());
    assert_eq!(store.run("memory-sync", &["--remote", remote.to_str().unwrap()]).0, Some(0));
    let (what, next) = area(&store.sandbox, NOW, "sync").remove(0);
    assert!(what.contains("/remote.git: last 2026-02-28T") && next.is_empty(), "{what} {next}");

    let later = "2026-03-09T16:00:00Z";
    let (what, next) = area(&store.sandbox, later, "trouble").remove(0);
    assert!(what.starts_with("the notes were synced last at") && next.starts_with("memory-sync "), "{next}");
    assert_eq!(area(&store.sandbox, later, "sync")[0].1, "", "it is said once");
    assert_eq!(said(store.sandbox.command("memory-sync").env("AXE_NOW", later)).0, Some(0));
    let (what, next) = area(&store.sandbox, later, "sync").remove(0);
    assert!(what.contains("last 2026-03-09T") && next.is_empty(), "{what} {next}");
}

#[test]
fn json_has_every_area_and_nothing_is_changed() {
    let store = Store::new();
    store.sandbox.librarian(NOTE_EACH);
    store.note("AAAAAA", "One");
    store.sandbox.jot("A", "b");
    let claude = store.sandbox.home().join(".claude");
    std::fs::create_dir_all(&claude).unwrap();
    let target = claude.join("CLAUDE.md");
    store.config(&json!({"agentsMd": {"targets": [target]}}).to_string());
    assert_eq!(store.run("memory-install-hooks", &["--harness", "claude-code"]).0, Some(0));
    let start = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup",
        "cwd": store.sandbox.work()});
    let mut recall = store.sandbox.command("memory-recall");
    let recall = recall.args(["--harness", "claude-code"]).env("AGENT_MEMORY_RECALL_MS", "60000");
    assert!(said(recall.write_stdin(start.to_string())).1.contains("One"));
    let before = store.tree();
    let (code, out, err) = store.run("memory-status", &["--json"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let status: Value = serde_json::from_str(&out).unwrap();
    let mut keys: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let expected = [
        "archived", "calls", "harnesses", "notes", "queue", "review", "store", "sync", "targets", "timers",
        "trouble",
    ];
    assert_eq!(keys, expected);
    assert_eq!((&status["notes"], &status["queue"]["waiting"][0]["harness"]), (&1.into(), &"manual".into()));
    let claude = &status["harnesses"][0];
    assert_eq!((&claude["harness"], &claude["hooks"]), (&"claude-code".into(), &true.into()), "{out}");
    assert!(claude["lastCapture"].is_null() && claude["lastRecall"].is_string(), "{out}");
    assert_eq!(status["targets"][0]["readers"], json!(["Claude Code"]), "{out}");
    assert_eq!(store.tree(), before);
    // A store that is not there yet is none, and none is made.
    let sandbox = Sandbox::new();
    let (what, next) = area(&sandbox, NOW, "notes").remove(0);
    assert!(what.starts_with("there is no store yet (~/") && next == "memory config init", "{what} {next}");
    assert!(!sandbox.store().exists());
}

#[test]
fn timers_are_asked_under_a_deadline() {
    let kit = Kit::new().with_systemctl().with_crontab();
    let timers = || {
        let output = kit.command("memory-status").args(["--json"]).env("AXE_NOW", NOW).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        status["timers"].as_array().unwrap().clone()
    };
    assert_eq!(timers(), Vec::<Value>::new());
    kit.install(&["--scheduler", "systemd"]);
    let listed = r#"[{"next": 1772300000000000, "last": 1772280000000000, "unit": "agent-memory-consolidate.timer"},
        {"next": 1772300000000000, "last": 0, "unit": "agent-memory-defrag.timer"}]"#;
    kit.tool("systemctl", &format!("[ \"$2\" = list-timers ] || exit 9; echo '{listed}'"));
    let [consolidate, defrag] = &timers()[..] else { panic!() };
    let moments = |timer: &Value| [timer["last"].clone(), timer["next"].clone()];
    assert_eq!(moments(consolidate), ["2026-02-28T12:00:00Z", "2026-02-28T17:33:20Z"]);
    assert_eq!(moments(defrag), [Value::Null, "2026-02-28T17:33:20Z".into()]);
    kit.tool("systemctl", "exec sleep 600");
    kit.tool("systemd-analyze", "exec sleep 600");
    kit.config(r#"{"schedule": {"defrag": "quarterly"}}"#);
    let asked = Instant::now();
    assert!(timers().iter().all(|timer| moments(timer) == [Value::Null, Value::Null]));
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    let output = kit.command("memory-status").output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains(" by systemd: last unknown, next unknown\t"), "{out}");
    assert!(!out.contains("knows the calendar"), "who does not answer has not refused it: {out}");
    let kit = Kit::new().with_crontab();
    kit.install(&["--scheduler", "crontab"]);
    let output = kit.command("memory-status").env("AXE_NOW", NOW).env("TZ", "UTC").output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        out.contains("memory-defrag every 24 hours by crontab: last unknown, next 2026-03-01T12:47:00Z"),
        "{out}"
    );
}

#[test]
fn on_a_terminal_it_is_as_wide_as_the_screen_and_plain_memory_shows_it() {
    let sandbox = Sandbox::new();
    sandbox.llm(&format!("echo '{}' >&2; exit 1", "long words of an error ".repeat(8)), json!({}));
    sandbox.heard("s1", "Hello?");
    sandbox.heard("s2", "Hello?");
    assert_eq!(sandbox.consolidated(&[]).0, Some(3));
    let shown = |program: &str, args: &[&str], columns: u16, vars: &[(&str, &str)]| {
        let terminal = Terminal::open();
        terminal.resize(60, columns);
        let mut command = sandbox.std_command(program);
        let output = command.args(args).envs(vars.iter().copied()).stdout(terminal.stdio()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        drop(command);
        terminal.all().replace("\r\n", "\n")
    };
    for columns in [60, 80, 120] {
        let text = shown("memory-status", &[], columns, &[]);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(columns), "{columns}:\n{text}");
        assert!(columns < 80 || text.lines().count() <= 24, "{columns}:\n{text}");
        // Entries with one error are told once, and the error is whole.
        assert!(text.contains("2 from claude-code, the oldest "), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("long words of an error long words of an error"), "{text}");
        assert!(!text.contains(['\t', '\u{1b}']), "{text}");
    }
    let xterm = [("TERM", "xterm")];
    let plain = shown("memory", &[], 80, &[]);
    let own = shown("memory-status", &[], 80, &[]);
    assert_eq!(plain, own);
    assert!(plain.ends_with("\n\nmemory help lists the commands.\n"), "{plain}");
    assert!(shown("memory", &[], 80, &xterm).contains("\u{1b}[1mqueue"), "in colours");
    for (args, vars) in [
        (&["--color", "never"][..], &xterm[..]),
        (&[], &[("TERM", "dumb")]),
        (&[], &[("TERM", "xterm"), ("NO_COLOR", "1")]),
    ] {
        assert_eq!(shown("memory", args, 80, vars), plain, "{args:?} {vars:?}");
    }
    // A pipe has colours where they are asked for, and is a pipe in every other way.
    let piped = |args: &[&str], vars: &[(&str, &str)]| {
        said(sandbox.command("memory").arg("status").args(args).envs(vars.iter().copied())).1
    };
    let plain = piped(&[], &xterm);
    assert!(!plain.contains('\u{1b}'), "{plain}");
    for (args, vars) in [(&["--color", "always"][..], &[][..]), (&[], &[("CLICOLOR_FORCE", "1")])] {
        let painted = piped(args, vars);
        for part in
            ["\u{1b}[1mqueue\u{1b}[0m\t", "\t\u{1b}[33m2 entries wait;", "\t\u{1b}[32mmemory install-cron"]
        {
            assert!(painted.contains(part), "{args:?} {painted:?}");
        }
        let parts = painted.split('\u{1b}');
        let stripped: String = parts
            .map(|part| part.strip_prefix('[').map_or(part, |code| code.split_once('m').unwrap().1))
            .collect();
        assert_eq!(stripped, plain);
    }
    assert!(
        said(sandbox.command("memory").envs(xterm)).1.starts_with("memory - "),
        "in a pipe it is the help"
    );
}
