//! What one memory program prints with `--json`, the next one reads.

use crate::support::queue::{BOTH, entry_at, hook, out};
use crate::support::store::{Store, value};
use crate::support::{Said, Sandbox, said};
use serde_json::{Value, json};

/// Exit code, stdout and stderr of a program that is given `input` on stdin.
fn piped(store: &Store, program: &str, args: &[&str], input: &str) -> (Option<i32>, String, String) {
    let output = store.sandbox.command(program).args(args).write_stdin(input).output().unwrap();
    (output.code(), output.out(), output.err())
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn titles(text: &str) -> Vec<String> {
    lines(text).iter().map(|note| note["title"].as_str().unwrap().to_owned()).collect()
}

/// Three notes, and what `memory-consolidate --json` prints when it has written the first two.
fn three() -> (Store, String) {
    let store = Store::new();
    for (id, title) in [("AAAAAA", "One"), ("BBBBBB", "Two"), ("CCCCCC", "Three")] {
        store.note(id, title);
    }
    let notes = [json!({"id": "id__AAAAAA", "title": "One"}), json!({"id": "id__BBBBBB", "title": "Two"})];
    let printed = json!({"notes": notes, "proposals": [], "processed": 1, "failed": [], "waiting": 0});
    (store, printed.to_string())
}

const READ: [&str; 3] = ["--no-count", "--json", "-"];

#[test]
fn ids_come_as_lines_as_json_lines_or_in_one_object() {
    let (store, consolidated) = three();
    let value: Value = serde_json::from_str(&consolidated).unwrap();
    for input in [
        "id__AAAAAA\n  [[id__BBBBBB]]\r\n",
        "{\"id\": \"id__AAAAAA\"}\n\n{\"id\": \"BBBBBB\", \"title\": \"x\"}",
        "AAAAAA\n{\"id\": \"id__BBBBBB\"}\n",
        consolidated.as_str(),
        &format!("{value:#}\n"),
    ] {
        let (code, printed, err) = piped(&store, "memory-read", &READ, input);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{input}");
        assert_eq!(titles(&printed), ["One", "Two"], "{input}");
    }
}

#[test]
fn an_object_without_notes_is_nothing_to_do() {
    let (store, _) = three();
    let nothing =
        r#"{"notes": [], "proposals": [], "processed": 0, "failed": [], "waiting": 2, "stopped": "busy"}"#;
    for (program, args) in [
        ("memory-read", &READ[..]),
        ("memory-update", &["-", "--pin"]),
        ("memory-remove", &["--json", "-"]),
        ("memory-agents-md", &["-"]),
    ] {
        for input in [nothing, "", "\n"] {
            let done = piped(&store, program, args, input);
            assert_eq!(done, (Some(0), String::new(), String::new()), "{program} {input:?}");
        }
    }
}

#[test]
fn update_changes_every_note_that_stdin_names() {
    let (store, consolidated) = three();
    let (code, printed, err) = piped(&store, "memory-update", &["-", "--tag", "+x", "--json"], &consolidated);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(titles(&printed), ["One", "Two"]);
    assert_eq!(lines(&printed)[1]["tags"], json!(["topic__x"]));
    assert_eq!(value(&store.text("BBBBBB"), "tags"), Some("[topic__x]"));
    assert_eq!(value(&store.text("CCCCCC"), "tags"), None);
}

#[test]
fn an_update_of_several_notes_is_one_commit() {
    let store = Store::with_history();
    store.note("AAAAAA", "One");
    store.note("BBBBBB", "Two");
    let (code, _, err) = piped(&store, "memory-update", &["-", "--pin"], "AAAAAA\nBBBBBB\n");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let mut git = std::process::Command::new("git");
    let log = git.args(["log", "--format=%s"]).current_dir(store.root()).output().unwrap();
    assert_eq!(log.out(), "update: 2 notes\n");
}

#[test]
fn update_does_not_read_ids_and_body_from_the_same_stdin() {
    let (store, consolidated) = three();
    assert_eq!(
        piped(&store, "memory-update", &["-", "--body", "-"], &consolidated),
        (
            Some(1),
            String::new(),
            "memory-update: stdin cannot give both the ids and the body; give the body as a file, or the id as \
             an argument\n"
                .to_owned()
        )
    );
}

#[test]
fn remove_takes_the_object_of_consolidate() {
    let (store, consolidated) = three();
    let (code, printed, err) = piped(&store, "memory-remove", &["--json", "-"], &consolidated);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(titles(&printed), ["One", "Two"]);
    assert_eq!(
        store.names(),
        ["archive/one -- id__AAAAAA.md", "archive/two -- id__BBBBBB.md", "topics/three -- id__CCCCCC.md"]
    );
}

#[test]
fn agents_md_prints_a_section_of_the_notes_that_stdin_names() {
    let (store, consolidated) = three();
    let target = store.sandbox.home().join("AGENTS.md");
    store.config(&json!({"storage": {"autoCommit": false}, "agentsMd": {"targets": [target]}}).to_string());
    let before = store.tree();
    let (code, section, err) = piped(&store, "memory-agents-md", &["-"], &consolidated);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(section.starts_with("<!-- agent-memory:start -->\n"), "{section}");
    assert!(section.ends_with("\n<!-- agent-memory:end -->\n"), "{section}");
    assert!(section.contains("\n### One (id__") && section.contains("\n### Two (id__"), "{section}");
    assert!(!section.contains("Three"), "{section}");
    assert!(!target.exists() && store.tree() == before, "a file was written");
    let (_, printed, _) = piped(&store, "memory-agents-md", &["-", "--json"], &consolidated);
    assert_eq!(
        lines(&printed),
        [json!({"repo": null, "hot": 2, "warm": 0, "cold": 0, "section": section.trim_end_matches('\n')})]
    );
}

#[test]
fn agents_md_shows_each_named_note_once_whatever_its_scope_and_tier() {
    let store = Store::new();
    store.put(
        "topics/successor -- id__AAAAAA.md",
        "---\nid: id__AAAAAA\ntitle: Heir\nscope: repo\ntier: cold\naliases: [id__BBBBBB]\n---\n\nText.\n",
    );
    let (code, section, err) = piped(&store, "memory-agents-md", &["-"], "AAAAAA\nBBBBBB\n");
    assert_eq!((code, err.as_str(), section.matches("id__AAAAAA.md").count()), (Some(0), "", 1), "{section}");
}

#[test]
fn agents_md_says_where_an_archived_note_lies() {
    let (store, _) = three();
    store.out("memory-remove", &["AAAAAA"]);
    let (code, section, err) = piped(&store, "memory-agents-md", &["-"], "AAAAAA\nBBBBBB\n");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(section.contains(&format!("\nIn `{}`:\n", store.topics().display())), "{section}");
    let names: Vec<&str> =
        section.lines().filter_map(|line| line.strip_prefix("- ")?.split(": ").next()).collect();
    assert!(section.contains("(id__BBBBBB"), "{section}");
    assert!(names.len() == 1 && names.iter().all(|name| store.topics().join(name).exists()), "{section}");
}

#[test]
fn agents_md_with_no_note_prints_an_empty_section_as_json() {
    let (store, _) = three();
    let (code, printed, err) = piped(&store, "memory-agents-md", &["--json", "-"], "{\"notes\": []}");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(lines(&printed), [json!({"repo": null, "hot": 0, "warm": 0, "cold": 0, "section": ""})]);
}

#[test]
fn agents_md_shows_the_other_notes_when_one_is_unknown() {
    let (store, _) = three();
    let (code, section, err) = piped(&store, "memory-agents-md", &["-"], "ZZZZZZ\nAAAAAA\n");
    assert_eq!((code, section.matches("(id__").count()), (Some(1), 1), "{section}");
    assert!(err.starts_with("memory-agents-md: no note has the id \"id__ZZZZZZ\""), "{err}");
}

#[test]
fn agents_md_refuses_a_target_beside_the_notes_of_stdin() {
    let store = Store::new();
    for (args, other) in [
        (&["-", "--target", "x.md"][..], "--target"),
        (&["--project", "-"], "--project"),
        (&["-", "--check"], "--check"),
        (&["-", "--repo", "x"], "--repo"),
    ] {
        let expected = format!(
            "memory-agents-md: options \"-\" and \"{other}\" do not go together; \"-\" prints the notes that stdin \
             names, and writes no file\n"
        );
        assert_eq!(piped(&store, "memory-agents-md", args, ""), (Some(1), String::new(), expected));
    }
}

#[test]
fn a_note_that_is_captured_at_once_can_be_shown_through_a_pipe() {
    let store = Store::new();
    let note = store.out("memory-capture", &[&BOTH[..], &["--direct", "--json"]].concat());
    let (code, section, _) = piped(&store, "memory-agents-md", &["-"], &note);
    assert!(code == Some(0) && section.contains("\n### Guards are pure (id__"), "{section}");
}

#[test]
fn what_consolidate_files_can_be_shown_through_a_pipe() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    store.sandbox.jot("Guards are pure", "Put I/O in actors.");
    let consolidated = store.out("memory-consolidate", &["--json"]);
    let (code, section, err) = piped(&store, "memory-agents-md", &["-"], &consolidated);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(section.contains("\n### Guards are pure (id__") && !section.contains("One"), "{section}");
}

#[test]
fn several_errors_are_one_json_object_each() {
    let (store, _) = three();
    let (code, printed, err) = piped(&store, "memory-read", &READ, "ZZZZZZ\nAAAAAA\nYYYYYY\n");
    assert_eq!((code, titles(&printed)), (Some(1), vec!["One".to_owned()]));
    let kinds: Vec<Value> = lines(&err).iter().map(|error| error["error"]["kind"].clone()).collect();
    assert_eq!(kinds, ["not_found", "not_found"]);
}

#[test]
fn stdin_that_names_no_note_is_an_error_with_the_next_step() {
    let (store, _) = three();
    for (input, why) in [
        ("{\"id\": \"id__AAAAAA\"", "not JSON: EOF while parsing an object at line 1 column 19"),
        ("{\"queued\": false}", "an object has neither a string \"id\" nor a list \"notes\""),
        ("{\"notes\": [7]}", "an object has neither a string \"id\" nor a list \"notes\""),
    ] {
        let expected = format!(
            "memory-read: stdin does not name notes: {why}; pipe in ids, or what memory-list --json or \
             memory-consolidate --json prints\n"
        );
        assert_eq!(piped(&store, "memory-read", &["-"], input), (Some(1), String::new(), expected));
    }
}

#[test]
fn capture_prints_an_object_when_it_queues_nothing_inside_an_llm_command() {
    for args in [&BOTH[..], &["--harness", "codex", "{}"], &["--entry"]] {
        let sandbox = Sandbox::new();
        let (code, printed, err) = said(sandbox.capture(args).arg("--json").env("AGENT_MEMORY_RUN", "1"));
        let reason = "this runs inside an LLM command of the memory programs (AGENT_MEMORY_RUN is set)";
        assert_eq!(lines(&printed), [json!({"queued": false, "reason": reason})]);
        assert_eq!((code, err), (Some(0), format!("memory-capture: nothing queued: {reason}\n")));
        assert!(!sandbox.store().exists(), "{args:?}");
    }
}

#[test]
fn capture_prints_an_object_when_a_hook_brings_nothing_to_queue() {
    let sandbox = Sandbox::new();
    let hook = hook(&sandbox).replace("\"Stop\"", "\"SessionStart\"");
    let (code, printed, err) =
        said(sandbox.capture(&["--harness", "claude-code", "--json"]).write_stdin(hook));
    let printed = &lines(&printed)[0];
    assert_eq!((code, &printed["queued"]), (Some(0), &json!(false)));
    assert_eq!(err, format!("memory-capture: nothing queued: {}\n", printed["reason"].as_str().unwrap()));
}

#[test]
fn capture_prints_the_entry_that_waits_already() {
    let sandbox = Sandbox::new();
    let hook = hook(&sandbox);
    let capture = |args: &[&str]| {
        let args = [&["--harness", "claude-code"], args].concat();
        out(sandbox.capture(&args).write_stdin(hook.as_str()))
    };
    let path = capture(&[]);
    let printed = capture(&["--json"]);
    let mut entry = entry_at(&path);
    entry["id"] = json!(sandbox.waiting()[0]);
    entry["path"] = json!(path.trim_end());
    assert_eq!(lines(&printed), [entry]);
    assert_eq!(sandbox.queued().len(), 1);
}
