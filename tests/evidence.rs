//! Commands that sessions ran, as evidence for and against the notes that name them.

use crate::support::store::{Store, name, value};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const SKIP: &str = "say([], [{'source': id, 'reason': 'nothing'} for id in ids])";
const NO_TARGET: &str = "make: *** No rule to make target 'check'.  Stop.";
const FAILED: &str = "=== failed commands: what sessions below ran, and what was printed";
/// A note of an agent, and one that a person wrote.
const AGENTS: &str = "by: agent\n";
const PERSONS: &str = "by: person\n";

fn store() -> Store {
    let store = Store::new();
    store.sandbox.in_a_repository();
    store
}

/// A note of the repository from some days before.
fn note(store: &Store, id: &str, title: &str, more: &str, body: &str) -> PathBuf {
    let text = format!(
        "---\nid: id__{id}\ntitle: {title}\nscope: repo\n{more}createdAt: 1771000000000\nupdatedAt: 1771100000000\nsources:\n\
         \x20 - {{harness: amp, repo: github.com/o/r}}\n---\n\n{body}\n"
    );
    store.put(&format!("topics/{}", name(id, title)), text)
}

fn consolidate(store: &Store, script: &str) -> String {
    store.sandbox.librarian(script);
    let (code, out, err) = store.sandbox.consolidated(&[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    out
}

/// A session of Claude Code, and what the model says to it.
fn session(store: &Store, id: &str, said: &str, script: &str) -> String {
    store.sandbox.tell(id, &format!("u: Is all well?\n{said}\na: I have looked."));
    store.sandbox.hear(id);
    consolidate(store, script)
}

#[test]
fn a_command_that_is_gone_is_shown_beside_the_notes_that_name_it_and_changes_nothing() {
    let store = store();
    let paths = [
        note(&store, "AAAAAA", "Checks", AGENTS, "Run `make check` before a commit."),
        note(&store, "BBBBBB", "My checks", PERSONS, "I want `make check` to pass."),
        note(&store, "CCCCCC", "Lint", AGENTS, "Run `make lint`."),
        note(&store, "DDDDDD", "Never", AGENTS, "Never run `make check`."),
    ];
    let before = paths.each_ref().map(|path| fs::read(path).unwrap());
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    session(&store, "s1", &format!("i: make check 2>&1 | tail -5\no: token {key}\\n{NO_TARGET} {key}"), SKIP);
    let prompt = store.sandbox.last_prompt();
    let notes = prompt.split("# Sessions").next().unwrap();
    assert_eq!(notes.matches(FAILED).count(), 2, "{notes}");
    for id in ["AAAAAA", "BBBBBB"] {
        let note = notes.split(&format!("<<< note id__{id}")).nth(1).unwrap().split(">>>").next().unwrap();
        assert!(note.contains(FAILED) && note.contains("| $ make check\n| make: *** No rule"), "{note}");
    }
    assert!(!prompt.contains(key), "{prompt}");
    assert_eq!(paths.each_ref().map(|path| fs::read(path).unwrap()), before);
    // What a session has shown is not shown with the next one.
    session(&store, "s2", "i: ls\no: a", SKIP);
    assert!(!store.sandbox.last_prompt().contains(FAILED));
}

#[test]
fn a_program_that_is_not_installed_does_not_fill_the_prompt_with_the_notes_that_name_it() {
    let store = store();
    for part in 'A'..='L' {
        let title = format!("Part {part}");
        note(&store, &format!("AAAAA{part}"), &title, AGENTS, &format!("Part {part} is made by `vite`."));
    }
    session(&store, "s1", "i: vite build\nx: bash: vite: command not found", SKIP);
    let prompt = store.sandbox.last_prompt();
    assert_eq!(prompt.matches(FAILED).count(), 5, "{prompt}");
}

#[test]
fn the_model_corrects_what_failed_or_confirms_it() {
    let store = store();
    note(&store, "AAAAAA", "Checks", AGENTS, "Run `make check` before a commit.");
    let confirm = "say([], [{'source': id, 'reason': 'x'} for id in ids], confirmed=['id__AAAAAA'])";
    let out = session(&store, "s1", &format!("i: make check\nx: {NO_TARGET}"), confirm);
    assert!(out.contains("1 confirmed"), "{out}");
    assert_eq!(value(&store.text("AAAAAA"), "confirmed"), Some("2026-02-28"));
}

#[test]
fn a_command_that_worked_renews_the_notes_that_say_to_run_it() {
    let store = store();
    let path = note(&store, "AAAAAA", "Checks", AGENTS, "Run `make check` before a commit.");
    let own = note(&store, "BBBBBB", "My checks", PERSONS, "Always run `make check`.");
    let others = [
        note(&store, "CCCCCC", "Lint", AGENTS, "Run `make lint`."),
        note(&store, "DDDDDD", "Slow", AGENTS, "`make check` takes three minutes."),
        note(&store, "EEEEEE", "Elsewhere", AGENTS, "Run `make check`."),
    ];
    let elsewhere = fs::read_to_string(&others[2]).unwrap().replace("github.com/o/r", "github.com/o/other");
    fs::write(&others[2], elsewhere).unwrap();
    let before = others.each_ref().map(|path| fs::read(path).unwrap());
    let persons = fs::read_to_string(&own).unwrap();
    session(&store, "s1", "i: cd . && sudo make -j4 check\no: ok", SKIP);
    assert_eq!(value(&fs::read_to_string(&path).unwrap(), "confirmed"), Some("2026-02-27"));
    let renewed = fs::read_to_string(&own).unwrap();
    assert_eq!(renewed.replace("confirmed: 2026-02-27\n", ""), persons, "nothing else of a person's note");
    assert_eq!(others.each_ref().map(|path| fs::read(path).unwrap()), before);
    assert_eq!(store.sandbox.prompts().len(), 1, "no further call");
    let section = store.out("memory-agents-md", &["--stdout", "--repo", "."]);
    assert!(section.contains(", confirmed 2026-02-27"), "{section}");
    // Once a day.
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    session(&store, "s2", "i: make check\no: ok\ni: make check\no: ok", SKIP);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
}

#[test]
fn a_renewal_is_in_the_files_that_show_the_note() {
    let store = store();
    note(&store, "AAAAAA", "Checks", AGENTS, "Run `make check` before a commit.");
    let target = store.sandbox.home().join("NOTES.md");
    store.sandbox.settings(json!({
        "llm": {"command": store.sandbox.script(SKIP)}, "storage": {"autoCommit": false},
        "agentsMd": {"targets": [{"path": target, "repo": "github.com/o/r"}]},
    }));
    store.out("memory-agents-md", &[]);
    store.sandbox.tell("s1", "u: Is all well?\ni: make check\no: ok\na: Yes.");
    store.sandbox.hear("s1");
    assert_eq!(store.sandbox.consolidated(&[]).2, "");
    let text = fs::read_to_string(target).unwrap();
    assert!(text.contains(", confirmed 2026-02-27"), "{text}");
}

#[test]
fn nothing_is_renewed_by_what_is_not_known_to_have_worked() {
    let store = store();
    let path = note(&store, "AAAAAA", "Checks", AGENTS, "Run `make check` before a commit.");
    let before = fs::read(&path).unwrap();
    let said = "i: make check\nx: 3 tests failed\ni: make check | tail -1\no: ok\ni: echo make check\no: make check\n\
                i: cd /elsewhere && make check\no: ok\ni: make check; true\no: ok";
    session(&store, "s1", said, SKIP);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(!store.sandbox.last_prompt().contains(FAILED));
    // In a dry run nothing is written.
    store.sandbox.tell("s2", "u: Again?\ni: make check\no: ok\na: Yes.");
    store.sandbox.hear("s2");
    assert_eq!(store.sandbox.consolidated(&["--dry-run"]).0, Some(0));
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A session of Codex that ran a command, with what its program says of it.
fn codex(store: &Store, number: usize, output: &str) {
    let item = |payload: Value| json!({"timestamp": "2026-02-27T14:00:00Z", "type": "response_item", "payload": payload});
    let session = format!("codex-{number}");
    let lines = [
        json!({"timestamp": "2026-02-27T14:00:00Z", "type": "session_meta", "payload": {"id": session, "cwd": store.sandbox.work()}}),
        item(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is all well?"}]}),
        ),
        item(json!({"type": "function_call", "name": "exec_command", "call_id": "c1",
            "arguments": json!({"cmd": "make check", "workdir": store.sandbox.work()}).to_string()})),
        item(json!({"type": "function_call_output", "call_id": "c1", "output": output})),
    ];
    let path = store.sandbox.home().join(format!(".codex/sessions/2026/02/27/rollout-{session}.jsonl"));
    store.sandbox.write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    store.sandbox.queue(&json!({
        "version": 1, "timestamp": "2026-02-27T15:00:00Z", "harness": "codex",
        "retrieval": {"method": "transcript", "path": path, "format": "codex", "sessionId": session},
        "context": {"cwd": store.sandbox.work(), "repo": "github.com/o/r"},
    }));
    consolidate(store, SKIP);
}

#[test]
fn of_codex_the_exit_code_before_the_output_counts() {
    let store = store();
    let path = note(&store, "AAAAAA", "Checks", AGENTS, "Run `make check` before a commit.");
    let printed =
        |head: &str, text: &str| format!("Chunk ID: e3\nWall time: 0.1 seconds\n{head}\nOutput:\n{text}\n");
    let before = fs::read(&path).unwrap();
    codex(&store, 1, &printed("Process exited with code 2", "Process exited with code 0"));
    codex(&store, 2, &printed("Process running with session ID 7", "Process exited with code 0"));
    assert_eq!(fs::read(&path).unwrap(), before);
    codex(&store, 3, &printed("Process exited with code 2", NO_TARGET));
    assert!(store.sandbox.last_prompt().contains(FAILED));
    codex(&store, 4, &printed("Process exited with code 0", "ok"));
    assert_eq!(value(&fs::read_to_string(&path).unwrap(), "confirmed"), Some("2026-02-27"));
}
