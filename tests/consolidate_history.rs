//! `memory-consolidate` reads of a session just what is new, and of some sessions nothing at all.

use crate::support::Sandbox;
use crate::support::llm::NOTE_EACH;
use serde_json::{Value, json};
use std::fs;

const QUIET: &str = "1 entry processed, 0 kb entries written\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    sandbox
}

fn run(sandbox: &Sandbox) -> String {
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    out
}

/// The session's part of the last prompt.
fn shown(sandbox: &Sandbox) -> String {
    let prompt = sandbox.last_prompt();
    prompt[prompt.find("\n# Sessions\n").unwrap()..].to_owned()
}

/// The turns of the last prompt that were read before, and the new ones.
fn shown_twice(sandbox: &Sandbox) -> (String, String) {
    let text = shown(sandbox);
    let (earlier, new) = text.split_once("\n=== new turns ").unwrap_or_else(|| panic!("{text}"));
    (earlier.to_owned(), new.to_owned())
}

#[test]
fn of_a_session_that_went_on_only_what_is_new_is_shown() {
    let sandbox = sandbox();
    let mut turns = vec![("user", "First question."), ("assistant", "First answer.")];
    sandbox.talk("s1", &turns);
    sandbox.hear("s1");
    run(&sandbox);
    turns.extend([("user", "Second question."), ("assistant", "Second answer.")]);
    sandbox.talk("s1", &turns);
    sandbox.hear("s1");
    run(&sandbox);
    let (earlier, new) = shown_twice(&sandbox);
    assert!(new.contains("Second question.") && new.contains("Second answer."), "{new}");
    assert!(!new.contains("First"), "{new}");
    assert!(earlier.contains("First question.") && earlier.contains("First answer."), "{earlier}");
    // Captured once more, with nothing new in it.
    sandbox.hear("s1");
    assert_eq!((run(&sandbox).as_str(), sandbox.prompts().len()), (QUIET, 2));
    assert_eq!(sandbox.processed().len(), 3);
}

#[test]
fn a_session_that_was_rewritten_is_read_from_its_start() {
    let sandbox = sandbox();
    sandbox.talk("s1", &[("user", "First question."), ("assistant", "First answer.")]);
    sandbox.hear("s1");
    run(&sandbox);
    let text = fs::read_to_string(sandbox.transcript("s1")).unwrap();
    fs::write(sandbox.transcript("s1"), text.replace("\"s1-", "\"rewound-")).unwrap();
    sandbox.hear("s1");
    run(&sandbox);
    assert!(shown(&sandbox).contains("First question."));
}

#[test]
fn a_history_says_which_tools_printed_something_from_outside() {
    let sandbox = sandbox();
    let calls = [
        ("Bash", json!({"command": "cat README.md"}), "ours"),
        ("WebFetch", json!({"url": "https://docs.example/x"}), "theirs"),
        ("Bash", json!({"command": "curl -o page.md https://docs.example/y"}), ""),
        ("Read", json!({"file_path": "page.md"}), "theirs, too"),
        ("AskUserQuestion", json!({"questions": []}), "Tabs"),
        ("Agent", json!({"prompt": "look"}), "a report"),
    ];
    let mut lines = String::new();
    for (n, (name, input, output)) in calls.into_iter().enumerate() {
        let record = |kind: &str, part: Value| {
            let message = json!({"role": kind, "model": "m", "content": [part]});
            json!({"type": kind, "uuid": format!("{kind}{n}"), "sessionId": "s1", "message": message})
        };
        let id = format!("call{n}");
        let call = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": output});
        lines += &format!("{}\n{}\n", record("assistant", call), record("user", result));
    }
    sandbox.write(&sandbox.transcript("s1"), lines);
    let id = sandbox.hear("s1");
    let (code, _, err) = sandbox.consolidated(&["--prompt"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let [batch] = &sandbox.batches()[..] else { panic!("{:?}", sandbox.batches()) };
    let history = sandbox.store().join(format!(".agent-memory/batches/{batch}/{id}.history.jsonl"));
    let history = fs::read_to_string(history).unwrap();
    let turns: Vec<Value> = history.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sources: Vec<&Value> = turns.iter().map(|turn| &turn["from"]["outside"]).collect();
    let docs = json!(["docs.example"]);
    assert_eq!(sources, [&json!(null), &docs, &docs, &docs, &json!(null), &json!([])]);
    assert!(turns.iter().enumerate().all(|(n, turn)| (turn["from"] == json!("answer")) == (n == 4)));
}

/// Two turns of `parent`, and a `fork` that repeats them before its own two.
fn fork(sandbox: &Sandbox) {
    sandbox.talk("parent", &[("user", "Parent question."), ("assistant", "Parent answer.")]);
    let copied: String = fs::read_to_string(sandbox.transcript("parent"))
        .unwrap()
        .lines()
        .map(|line| {
            let mut record: Value = serde_json::from_str(line).unwrap();
            record["sessionId"] = json!("fork");
            record["requestSessionId"] = json!("parent");
            format!("{record}\n")
        })
        .collect();
    sandbox.talk("fork", &[("user", "Fork question."), ("assistant", "Fork answer.")]);
    let own = fs::read_to_string(sandbox.transcript("fork")).unwrap();
    fs::write(sandbox.transcript("fork"), copied + &own).unwrap();
}

#[test]
fn a_fork_shows_only_what_its_parent_did_not() {
    let sandbox = sandbox();
    fork(&sandbox);
    sandbox.hear("parent");
    run(&sandbox);
    sandbox.hear("fork");
    run(&sandbox);
    let (earlier, new) = shown_twice(&sandbox);
    assert!(new.contains("Fork question.") && !new.contains("Parent"), "{new}");
    assert!(earlier.contains("Parent question.") && !earlier.contains("Fork"), "{earlier}");
}

#[test]
fn a_fork_and_its_parent_in_one_call_show_each_turn_once() {
    let sandbox = sandbox();
    fork(&sandbox);
    sandbox.hear("parent");
    sandbox.hear("fork");
    // Queued in the same instant: whichever comes first gives what both have.
    assert!(run(&sandbox).starts_with("2 entries processed, "));
    let text = shown(&sandbox);
    for turn in ["Parent question.", "Parent answer.", "Fork question.", "Fork answer."] {
        assert_eq!(text.matches(turn).count(), 1, "{turn}: {text}");
    }
    sandbox.hear("parent");
    sandbox.hear("fork");
    assert_eq!(run(&sandbox), "2 entries processed, 0 kb entries written\n");
}

#[test]
fn two_entries_of_one_session_show_it_once() {
    let sandbox = sandbox();
    let id = sandbox.heard("s1", "First question.");
    let inbox = sandbox.store().join("inbox");
    let again = id[..id.len() - 8].to_owned() + "zzzzzzzz";
    fs::copy(inbox.join(format!("{id}.json")), inbox.join(format!("{again}.json"))).unwrap();
    assert_eq!(run(&sandbox), "2 entries processed, 1 kb entries written\n");
    assert_eq!((shown(&sandbox).matches("First question.").count(), sandbox.prompts().len()), (1, 1));
}

#[test]
fn nobody_is_asked_about_our_own_sessions_helpers_and_silence() {
    let sandbox = sandbox();
    sandbox.heard("ours", "batch: batch__abcdefghijkl\n\nYou keep the notes of somebody");
    sandbox.heard("helper", "Count the files.");
    let helper = fs::read_to_string(sandbox.transcript("helper")).unwrap();
    let helper = helper.replace("\"type\":", "\"isSidechain\":true,\"agentId\":\"a1\",\"type\":");
    fs::write(sandbox.transcript("helper"), helper).unwrap();
    sandbox.heard("silent", "x");
    let meta = json!({"type": "user", "uuid": "1", "sessionId": "silent", "isMeta": true, "message": {"role": "user", "content": "x"}});
    fs::write(sandbox.transcript("silent"), format!("{meta}\n")).unwrap();
    assert_eq!(run(&sandbox), "3 entries processed, 0 kb entries written\n");
    assert!(sandbox.prompts().is_empty() && sandbox.calls().is_empty());
    assert_eq!(sandbox.processed().len(), 3);
    // A person may well speak of such an id later on.
    sandbox.talk("person", &[("user", "Hello?"), ("user", "What is batch__abcdefghijkl?")]);
    sandbox.hear("person");
    run(&sandbox);
    assert!(shown(&sandbox).contains("What is batch__abcdefghijkl?"));
}

#[test]
fn a_session_that_failed_is_shown_again_as_a_whole() {
    let sandbox = sandbox();
    sandbox.llm("exit 1", json!({}));
    sandbox.heard("s1", "First question.");
    assert_eq!(sandbox.consolidated(&[]).0, Some(3));
    sandbox.librarian(NOTE_EACH);
    let mut again = sandbox.consolidate(&[]);
    assert_eq!(again.env("AXE_NOW", "2026-02-28T17:00:00Z").output().unwrap().status.code(), Some(0));
    assert!(shown(&sandbox).contains("First question."));
}

#[test]
fn a_torn_last_line_is_left_for_the_next_time() {
    let sandbox = sandbox();
    sandbox.talk("s1", &[("user", "First question."), ("assistant", "First answer.")]);
    let whole = fs::read_to_string(sandbox.transcript("s1")).unwrap();
    fs::write(sandbox.transcript("s1"), &whole[..whole.len() - 20]).unwrap();
    sandbox.hear("s1");
    run(&sandbox);
    assert!(shown(&sandbox).contains("First question.") && !shown(&sandbox).contains("First answer."));
    fs::write(sandbox.transcript("s1"), whole).unwrap();
    sandbox.hear("s1");
    run(&sandbox);
    let (earlier, new) = shown_twice(&sandbox);
    assert!(earlier.contains("First question.") && !new.contains("First question."), "{earlier}");
    assert!(new.contains("First answer."), "{new}");
}
