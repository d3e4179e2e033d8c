//! The note that comes with the call of a tool.

use crate::support::said;
use crate::support::store::{Store, name, value};
use serde_json::{Value, json};

const HERE: &str = "scope: repo\nsources:\n  - {harness: amp, repo: github.com/o/r}\n";
const THERE: &str = "scope: repo\nsources:\n  - {harness: amp, repo: github.com/o/x}\n";

/// Of this repository, if nothing else is said.
fn store() -> Store {
    let store = Store::new();
    store.sandbox.in_a_repository();
    store.config(r#"{"storage": {"autoCommit": false}}"#);
    put(
        &store,
        "AAAAAA",
        "`make test` hangs here: use tools/rt",
        HERE,
        "It waits for a terminal. Run `tools/rt`.",
    );
    put(
        &store,
        "BBBBBB",
        "Migrations are append-only",
        &format!("paths: [db/migrations/**]\n{HERE}"),
        "Add a file.",
    );
    put(
        &store,
        "CCCCCC",
        "The pool is closed before fork",
        HERE,
        "`src/db/pool.rs`: call close() first, or the child hangs.",
    );
    let many = "Version 2.3 is out, and what follows was done for it by all who work on it day and night. "
        .repeat(14);
    put(
        &store,
        "DDDDDD",
        "Release 2.3",
        HERE,
        &format!("{many} src/api/routes.rs src/db/mod.rs `cargo clippy`"),
    );
    put(&store, "EEEEEE", "Commit style", "", "Run `cargo test` before `git commit`. Commits are small.");
    put(&store, "FFFFFF", "Retries double", HERE, "See src/http/retry.rs and src/http/client.rs.");
    put(&store, "GGGGGG", "Dev server port", HERE, "It is 4310. Start it with `make serve-fast`.");
    put(&store, "HHHHHH", "`cargo clippy` wants nightly", THERE, "In src/api/routes.rs, too.");
    put(&store, "JJJJJJ", "Hands off src/api/routes.rs", &format!("until: 2026-02-27\n{HERE}"), "Freeze.");
    put(&store, "KKKKKK", "CI has three platforms", HERE, "See `.github/workflows/ci.yml`.");
    store
}

fn put(store: &Store, id: &str, title: &str, more: &str, body: &str) {
    let text = format!("---\nid: id__{id}\ntitle: \"{title}\"\n{more}---\n\n{body}\n");
    store.put(&format!("topics/{}", name(id, &title.replace('/', "-"))), text);
}

fn hook(store: &Store, harness: &str, event: &Value) -> String {
    let mut command = store.sandbox.command("memory-recall");
    command.args(["--harness", harness]).env("AGENT_MEMORY_RECALL_MS", "60000");
    let (code, out, err) = said(command.write_stdin(event.to_string()));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    out
}

fn call(store: &Store, session: &str, tool: &str, argument: &str) -> Value {
    let key = if tool == "Bash" { "command" } else { "file_path" };
    let work = store.sandbox.work();
    let argument =
        if tool == "Bash" { argument.to_owned() } else { work.join(argument).to_string_lossy().into_owned() };
    json!({"hook_event_name": "PreToolUse", "session_id": session, "cwd": work, "tool_name": tool,
        "tool_input": {key: argument, "content": "x", "old_string": "a", "new_string": "b"}})
}

/// The ids of the notes in an answer, without `id__`.
fn ids(text: &str) -> Vec<String> {
    let found = text.match_indices("(id__").map(|(at, _)| text[at + 5..at + 11].to_owned());
    found.collect()
}

/// At least 90 of 100 are what a careful reader wants, and at most one call in twenty is spoken to.
#[test]
fn sixty_calls_of_a_session_bring_the_notes_that_a_reader_wants() {
    let store = store();
    let lines = include_str!("recall/calls.txt").lines().filter(|line| !line.starts_with('#'));
    let (mut calls, mut wrong, mut spoken) = (0, Vec::new(), 0);
    for line in lines {
        let line = line.replace("\\|", "\u{0}");
        let [tool, argument, wanted] =
            line.splitn(3, '|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        let argument = argument.replace('\u{0}', "|");
        let out = hook(&store, "claude-code", &call(&store, "s", tool, &argument));
        let given = ids(&out);
        calls += 1;
        spoken += usize::from(!given.is_empty());
        if given.join(" ") != wanted {
            wrong.push(format!("{tool} {argument}: {given:?}, not {wanted:?}"));
        }
    }
    assert_eq!(calls, 60);
    assert_eq!(wrong, [""; 0]);
    assert!(spoken > 0 && spoken * 20 <= calls, "{spoken} of {calls}");
}

#[test]
fn each_program_gets_it_in_its_own_form() {
    let store = store();
    let work = store.sandbox.work();
    let command = json!({"command": "cd web; make -j4 test"});
    let event = |name: &str, tool: &str| json!({"hook_event_name": name, "session_id": "s", "cwd": work, "tool_name": tool, "tool_input": command});
    let copilot = json!({"sessionId": "s", "cwd": work, "toolName": "bash", "toolArgs": command.to_string()});
    let mut with_result = copilot.clone();
    with_result["toolResult"] = json!({"resultType": "success"});
    for (harness, event, form) in [
        ("claude-code", event("PreToolUse", "Bash"), "{\"hookSpecificOutput\":{"),
        ("codex", event("PreToolUse", "Bash"), "{\"hookSpecificOutput\":{"),
        ("gemini", event("AfterTool", "run_shell_command"), "{\"hookSpecificOutput\":{"),
        ("qwen-code", event("PostToolUse", "run_shell_command"), "{\"hookSpecificOutput\":{"),
        ("copilot", copilot, "{\"additionalContext\":"),
        ("opencode", event("PreToolUse", "bash"), "[agent-memory:recall "),
    ] {
        let out = hook(&store, harness, &event);
        assert!(out.starts_with(form) && ids(&out) == ["AAAAAA"], "{harness}: {out}");
        assert!(!out.contains("ecision") && out.len() < 1200, "it says nothing about the call: {out}");
        assert_eq!(hook(&store, harness, &event), "", "{harness}: once");
    }
    assert_eq!(hook(&store, "copilot", &with_result), "", "that is another event");
    let patch = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": work, "tool_name": "apply_patch",
        "tool_input": {"command": "*** Begin Patch\n*** Update File: src/db/pool.rs\n*** End Patch"}});
    assert_eq!(ids(&hook(&store, "codex", &patch)), ["CCCCCC"]);
}

#[test]
fn a_sub_agent_has_a_history_of_its_own() {
    let store = store();
    let mut event = call(&store, "s", "Bash", "make test");
    assert_eq!(ids(&hook(&store, "claude-code", &event)), ["AAAAAA"]);
    event["agent_id"] = json!("a1");
    assert_eq!(ids(&hook(&store, "claude-code", &event)), ["AAAAAA"]);
    assert_eq!(hook(&store, "claude-code", &event), "");
    event["agent_id"] = json!("a2");
    store.config(r#"{"storage": {"autoCommit": false}, "recall": {"subagents": false}}"#);
    assert_eq!(hook(&store, "claude-code", &event), "");
}

#[test]
fn a_note_with_paths_is_a_line_at_the_start_and_comes_whole() {
    let store = store();
    put(&store, "MMMMMM", "Pinned", &format!("pinned: true\npaths: [db/**]\n{HERE}"), "Always whole.");
    let start = |session: &str| json!({"hook_event_name": "SessionStart", "session_id": session, "source": "startup", "cwd": store.sandbox.work()});
    let given = hook(&store, "claude-code", &start("s"));
    assert!(given.contains("id__BBBBBB.md") && !given.contains("(id__BBBBBB"), "{given}");
    assert!(given.contains("(id__CCCCCC") && given.contains("(id__MMMMMM"), "{given}");
    let read = hook(&store, "claude-code", &call(&store, "s", "Read", "db/migrations/a/1.sql"));
    assert!(read.contains("(id__BBBBBB") && read.contains("Add a file."), "{read}");
    assert_eq!(
        hook(&store, "claude-code", &call(&store, "s", "Edit", "src/db/pool.rs")),
        "",
        "it has that one"
    );
    // Amp has no such hook, and by hand there is no session.
    assert!(hook(&store, "pi", &start("s")).contains("(id__BBBBBB"));
    assert!(store.out("memory-recall", &[]).contains("(id__BBBBBB"));
    store.config(r#"{"storage": {"autoCommit": false}, "recall": {"beforeActs": false}}"#);
    assert!(hook(&store, "claude-code", &start("t")).contains("(id__BBBBBB"));
    assert_eq!(hook(&store, "claude-code", &call(&store, "t", "Bash", "make test")), "");
}

#[test]
fn what_is_remembered_of_the_notes_is_as_they_are() {
    let store = store();
    let asked = |session: &str, command: &str| {
        ids(&hook(&store, "claude-code", &call(&store, session, "Bash", command)))
    };
    assert_eq!(asked("a", "make test"), ["AAAAAA"]);
    let cache = store.root().join(".agent-memory/subjects.cache");
    assert!(cache.exists());
    put(&store, "NNNNNN", "New", HERE, "Use `make doc-all`.");
    assert_eq!(asked("a", "make doc-all"), ["NNNNNN"], "a new note");
    put(&store, "NNNNNN", "New", HERE, "Use `make doc-one`.");
    assert_eq!(asked("b", "make doc-all"), [""; 0], "its text is read again");
    store.out("memory-remove", &["AAAAAA"]);
    assert_eq!(asked("b", "make test"), [""; 0], "a removed one");
    for spoilt in [&b""[..], b"spoilt", &[0xff; 400]] {
        std::fs::write(&cache, spoilt).unwrap();
        assert_eq!(asked(&format!("c{}", spoilt.len()), "make doc-one"), ["NNNNNN"]);
    }
}

#[cfg(unix)]
#[test]
fn a_store_that_cannot_be_written_to_gives_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let store = store();
    let state = store.root().join(".agent-memory");
    let set = |mode| std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(ids(&hook(&store, "claude-code", &call(&store, "a", "Bash", "make test"))), ["AAAAAA"]);
    std::fs::remove_file(state.join("subjects.cache")).unwrap();
    set(0o500);
    // A superuser may write anywhere.
    if std::fs::write(state.join("probe"), "").is_err() {
        assert_eq!(hook(&store, "claude-code", &call(&store, "b", "Bash", "make test")), "");
    }
    set(0o700);
    assert_eq!(ids(&hook(&store, "claude-code", &call(&store, "c", "Bash", "make test"))), ["AAAAAA"]);
    let left = std::fs::read_dir(&state).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("subjects.cache.")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_call_that_says_nothing_is_no_fault() {
    let store = store();
    let long = format!("echo {}", "x".repeat(100_000));
    for input in [
        json!({}),
        json!(null),
        json!([1]),
        json!(7),
        json!({"command": 7}),
        json!({"command": "$(((`'\"<<"}),
        json!({"command": long}),
        json!({"file_path": "\u{0}"}),
        json!({"file_path": "../../../../../x"}),
    ] {
        for tool in ["Bash", "Read", "Nobody", ""] {
            let event = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": store.sandbox.work(),
                "tool_name": tool, "tool_input": input});
            assert_eq!(hook(&store, "claude-code", &event), "", "{event}");
        }
    }
}

#[test]
fn paths_are_added_and_removed_by_hand() {
    let store = store();
    store.out(
        "memory-update",
        &["CCCCCC", "--path", "+src/db/**", "--path", "+*.sql", "--path", "+src/db/**"],
    );
    let file = "The pool is closed before fork";
    assert_eq!(value(&store.text(&name("CCCCCC", file)), "paths"), Some("[src/db/**, \"*.sql\"]"));
    store.out("memory-update", &["CCCCCC", "--path", "-*.sql"]);
    assert_eq!(value(&store.text(&name("CCCCCC", file)), "paths"), Some("[src/db/**]"));
    for (path, said) in [
        ("src", "\"src\" has no sign"),
        ("+/etc/x", "\"/etc/x\" does not count from the top of the repository"),
        ("+**", "\"**\" names no file"),
    ] {
        let (code, _, err) = store.run("memory-update", &["CCCCCC", "--path", path]);
        assert!(code == Some(1) && err.contains(said), "{err}");
    }
    let many: Vec<String> = (0..9).flat_map(|n| ["--path".to_owned(), format!("+src/{n}.rs")]).collect();
    let arguments: Vec<&str> = ["CCCCCC"].into_iter().chain(many.iter().map(String::as_str)).collect();
    let (code, _, err) = store.run("memory-update", &arguments);
    assert!(code == Some(1) && err.contains("more than 8 paths"), "{err}");
}
