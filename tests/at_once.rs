//! What a person does shows at once: when the command returns, the AGENTS.md files say what the notes say.

use crate::agents_md::{START, aim, put};
use crate::support::store::{Store, names};
use crate::support::{said, set_mode};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

fn aimed() -> (Store, PathBuf) {
    let store = Store::new();
    let path = store.sandbox.work().join("AGENTS.md");
    aim(&store, json!([path]), json!({}));
    (store, path)
}

fn id_of(json: &str) -> String {
    serde_json::from_str::<Value>(json).unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_note_that_is_captured_pinned_changed_or_removed_shows_when_the_command_returns() {
    let (store, path) = aimed();
    let section = || fs::read_to_string(&path).unwrap();
    let capture = ["--direct", "--title", "Port", "--body", "It is 8081.", "--json"];
    let id = id_of(&store.out("memory-capture", &capture));
    let heading = |title: &str| format!("### {title} ({id}, 2026-02-28, you)\n\nIt is 8081.\n");
    assert!(section().contains(&heading("Port")), "{}", section());
    store.out("memory-update", &[&id, "--title", "The port"]);
    assert!(section().contains(&heading("The port")), "{}", section());
    let (code, _, err) = store.run("memory-update", &[&id, "--until", "2026-02-27"]);
    assert!(code == Some(0) && err.contains("2026-02-27 has passed"), "{err}");
    assert!(!section().contains(&id), "{}", section());
    store.out("memory-update", &[&id, "--until", "none", "--pin"]);
    assert!(section().contains(&heading("The port")), "{}", section());
    store.out("memory-remove", &[&id]);
    assert!(!section().contains(&id) && section().contains(START), "{}", section());
}

#[test]
fn a_change_that_waits_and_its_review_show_at_once() {
    let (store, path) = aimed();
    // A line has the summary.
    aim(&store, json!([path]), json!({"maxHotTokens": 0}));
    let section = || fs::read_to_string(&path).unwrap();
    let capture = ["--direct", "--title", "Port", "--body", "It is 8081.", "--json"];
    let id = id_of(&store.out("memory-capture", &capture));
    for (program, args) in
        [("memory-update", &[&id[..], "--summary", "It is 4310."][..]), ("memory-remove", &[&id[..]])]
    {
        let mut command = store.sandbox.command(program);
        let (code, _, err) = said(command.args(args).env("CLAUDECODE", "1"));
        assert!(code == Some(0) && err.contains("the change waits for a person"), "{program}: {err}");
    }
    assert!(section().contains("2 changes wait for a person") && section().contains("a change waits: "));
    let waiting = store.out("memory-review", &["--json"]);
    let proposals: Vec<Value> = waiting.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named = |op: &str| {
        let found = proposals.iter().find(|proposal| proposal["op"] == op).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    store.out("memory-review", &["--accept", &named("update")]);
    assert!(section().contains("It is 4310.") && section().contains("1 change waits for a person"));
    let (code, _, _) = store.run("memory-review", &["--reject", &named("retire")]);
    assert_eq!(code, Some(0));
    assert!(section().contains("It is 4310.") && !section().contains("for a person"), "{}", section());
}

#[test]
fn a_target_that_cannot_be_written_is_a_warning_and_the_change_stands() {
    let (store, path) = aimed();
    let other = store.sandbox.work().join("B.md");
    aim(&store, json!([path, other]), json!({}));
    store.note("AAAAAA", "One");
    store.out("memory-agents-md", &[]);
    set_mode(&path, 0o444);
    let (code, out, err) = store.run("memory-remove", &["AAAAAA"]);
    assert_eq!((code, out.lines().count()), (Some(0), 1), "{err}");
    assert_eq!(
        err,
        format!(
            "Warning: not refreshed: \"{}\": it is read-only; make it writable, or name another file\n",
            path.display()
        )
    );
    assert_eq!(names(&store.topics()), [""; 0]);
    assert!(!fs::read_to_string(&other).unwrap().contains("AAAAAA"), "the other target is refreshed");
}

#[test]
fn a_name_that_the_doctor_mends_shows_at_once() {
    let (store, path) = aimed();
    // A line has the name.
    aim(&store, json!([path]), json!({"maxHotTokens": 0}));
    let note = store.note("AAAAAA", "One");
    fs::rename(&note, note.with_file_name("odd.md")).unwrap();
    store.out("memory-agents-md", &[]);
    assert!(fs::read_to_string(&path).unwrap().contains("\n- odd.md: "));
    let (code, out, err) = store.run("memory-doctor", &["--fix"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(fs::read_to_string(&path).unwrap().contains("\n- one -- id__AAAAAA.md: "), "{out}");
    assert!(!out.contains("out of date"), "{out}");
}

#[test]
fn sixteen_changes_at_once_leave_a_section_that_is_right() {
    let (store, path) = aimed();
    // A line has the summary.
    aim(&store, json!([path]), json!({"maxHotTokens": 0}));
    let id = |n: u8| format!("AAAAA{}", char::from(b'a' + n).to_string().replace('l', "z"));
    for n in 0..16 {
        let id = id(n);
        put(&store, &id, &format!("Note {n}"), "summary: s\n", "x");
    }
    store.out("memory-agents-md", &[]);
    let children: Vec<_> = (0..16u8)
        .map(|n| {
            let id = id(n);
            let mut command = match n % 2 {
                0 => store.sandbox.std_command("memory-remove"),
                _ => store.sandbox.std_command("memory-update"),
            };
            command.arg(&id);
            if n % 2 == 1 {
                command.args(["--summary", "It was changed."]);
            }
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
    }
    let section = fs::read_to_string(&path).unwrap();
    assert_eq!(section.matches(": It was changed.").count(), 8, "{section}");
    assert_eq!(section.matches(" id__").count(), 8, "{section}");
    assert!(store.out("memory-agents-md", &["--check"]).starts_with("unchanged\t"));
}
