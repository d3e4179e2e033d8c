//! `memory-consolidate`, killed or refused by the disk at each system call that changes something, by strace: the
//! next run ends what was begun, with the same bytes, and pays for no reply twice.

#![cfg(target_os = "linux")]

use crate::crash::{Scenario, Subject, Tree, difference, walk};
use crate::support::NOW;
use serde_json::json;
use std::fs;
use std::process::Output;

const REPO: &str = "github.com/o/r";

const CONSOLIDATE: Subject = Subject { program: "memory-consolidate", tree, check, sample: 7 };

const ANSWER: &str = r#"reply=reply-1.json
case "$prompt" in *"part: 2 of "*) reply=reply-2.json ;; esac
sed "s/BATCH/$batch/" "$DIR/$reply""#;

impl Scenario {
    fn queue(&self, id: &str, harness: &str, retrieval: serde_json::Value) {
        let entry = json!({
            "version": 1, "timestamp": "2026-02-28T12:00:00.000Z", "harness": harness,
            "retrieval": retrieval, "context": {"cwd": "/w", "repo": REPO},
        });
        self.sandbox.write(&self.root().join(format!("inbox/{id}.json")), entry.to_string());
    }

    fn queue_session(&self, id: &str, session: &str) {
        let path = self.sandbox.work().join(format!("{session}.jsonl"));
        self.queue(
            id,
            "claude-code",
            json!({"method": "transcript", "path": path, "format": "claude-code", "sessionId": session}),
        );
    }

    fn queue_note(&self, id: &str, title: &str) {
        self.queue(
            id,
            "manual",
            json!({"method": "inline", "title": title, "body": "As it stands: 42.", "tags": ["topic__x"],
                "scope": "global", "threadId": null}),
        );
    }

    /// A Claude Code session with turns of these lengths.
    fn session(&self, session: &str, turns: usize, length: usize) {
        let mut text = String::new();
        for turn in 0..turns {
            let role = if turn % 2 == 0 { "user" } else { "assistant" };
            let said = format!("turn {turn} {}", "word ".repeat(length / 5));
            let record = json!({
                "type": role, "uuid": format!("u-{session}-{turn}"), "sessionId": session, "cwd": "/w",
                "timestamp": "2026-02-28T10:00:00.000Z",
                "message": {"role": role, "content": [{"type": "text", "text": said}]},
            });
            text.push_str(&format!("{record}\n"));
        }
        self.sandbox.file(&format!("{session}.jsonl"), text);
    }

    fn reply(&self, number: usize, reply: &serde_json::Value) {
        self.sandbox.file(&format!("reply-{number}.json"), reply.to_string());
    }
}

/// All that a run leaves.
fn tree(scenario: &Scenario) -> Tree {
    let mut tree = Tree::new();
    for part in ["topics", "archive", "inbox", ".agent-memory"] {
        walk(&scenario.root().join(part), &scenario.root(), &mut tree);
    }
    // Names of processes and batches, times: not the same twice.
    tree.retain(|path, _| !path.ends_with(".lock") && !path.ends_with("calls.jsonl"));
    for (path, text) in &mut tree {
        if path.ends_with("tries.json") {
            *text = masked(text);
        }
    }
    tree
}

/// Is all well in the end?
fn check(scenario: &Scenario, disturbed: &Output, is_kill: bool, wanted: &Tree) -> Result<(), String> {
    let said = String::from_utf8_lossy(&disturbed.stderr).into_owned();
    let is_told = said.contains("memory-consolidate: ") || said.contains("Warning: ");
    if !is_kill && disturbed.status.code() == Some(1) && !is_told {
        return Err(format!("an error without a word: {disturbed:?}"));
    }
    if !is_kill && !matches!(disturbed.status.code(), Some(0..=3)) {
        return Err(format!("{disturbed:?}"));
    }
    let next = scenario.run(&scenario.arguments);
    // What was carried out by hand is known no more; the plain run has nothing left to do then.
    let last = scenario.run(&["--quiet".to_owned()]);
    let told = format!(
        "disturbed: {:?} {said}next: {:?} {}last: {:?} {}",
        disturbed.status.code(),
        next.status.code(),
        String::from_utf8_lossy(&next.stderr),
        last.status.code(),
        String::from_utf8_lossy(&last.stderr)
    );
    let tree = scenario.tree();
    if tree != *wanted {
        return Err(format!("{}\n{told}", difference(wanted, &tree)));
    }
    if scenario.calls() > scenario.calls {
        return Err(format!("{} calls instead of {}\n{told}", scenario.calls(), scenario.calls));
    }
    match scenario.uncommitted() {
        // What git could not do then, it does with the next notes that are written.
        _ if said.contains("but not committed") => Ok(()),
        rest if rest.is_empty() => Ok(()),
        rest => Err(format!("not committed: {rest}\n{told}")),
    }
}

/// Without what differs from run to run.
fn masked(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("\"batch\""));
    lines.collect::<Vec<_>>().join("\n")
}

fn fresh(name: &'static str, calls: usize) -> Scenario {
    let scenario = Scenario::new(&CONSOLIDATE, name, calls, ANSWER);
    scenario.config(json!({}), json!({}));
    scenario
}

fn entry(label: &str, title: &str, body: &str, sources: &[&str]) -> serde_json::Value {
    json!({"ref": label, "update": null, "title": title, "summary": "in one line",
        "tags": ["topic__x"], "scope": "repo", "body": body, "sources": sources})
}

/// A note of a person's, a session of which a part is known, an update, two linked notes, a session that is
/// missing for the last time, one with nothing in it.
fn mixed(has_llm: bool) -> Scenario {
    let mut scenario = fresh(if has_llm { "mixed" } else { "without an LLM" }, usize::from(has_llm));
    scenario.session("s1", 2, 100);
    scenario.session("s2", 2, 100);
    scenario.queue_session("q0", "s1");
    let known = json!({"batch": "BATCH", "skipped": [], "entries":
        [entry("n1", "Known before", "The port is 8080, see src/main.rs.", &["q0"])]});
    scenario.reply(1, &known);
    let output = scenario.run(&["--quiet".to_owned()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let names = fs::read_dir(scenario.root().join("topics")).unwrap().map(|entry| entry.unwrap().file_name());
    let name = names.last().unwrap().into_string().unwrap();
    let id = name.trim_end_matches(".md").rsplit(' ').next().unwrap().to_owned();
    // More is said in a session of which the beginning has been read.
    scenario.session("s1", 6, 100);
    scenario.queue_note("q1", "A note of mine");
    scenario.queue_note("q5", "Another note");
    if has_llm {
        scenario.queue_session("q2", "s1");
        scenario.queue_session("q3", "missing");
        scenario.queue_session("q4", "s2");
    } else {
        scenario.has_llm = false;
        scenario.config(json!({}), json!({}));
    }
    let mut update =
        entry("n3", "Known better", "The port is 8080, see src/main.rs; 8081 in tests.", &["q2"]);
    update["update"] = json!(id);
    let reply = json!({"batch": "BATCH", "entries": [
            entry("n1", "First", "It leads to [[n2]].", &["q2", "q1"]),
            entry("n2", "Second", "It leads to [[n1]] and [[n3]].", &["q2"]), update],
        "skipped": [{"source": "q4", "reason": "nothing new"}, {"source": "q5", "reason": "no"}]});
    scenario.reply(1, &reply);
    let tries = json!({"q3": {"tries": 2, "error": "no file", "alone": false, "batch": "before"}});
    scenario.sandbox.write(&scenario.root().join(".agent-memory/tries.json"), tries.to_string());
    scenario.keep_as_template();
    scenario
}

/// A session that takes two calls.
fn two_parts() -> Scenario {
    let scenario = fresh("two parts", 2);
    scenario.config(json!({"maxPromptBytes": 16000}), json!({}));
    scenario.session("s1", 6, 1500);
    scenario.queue_session("q1", "s1");
    for (part, title) in [(1, "From the first part"), (2, "From the second part")] {
        let reply = json!({"batch": "BATCH", "skipped": [],
            "entries": [entry("n1", title, "A fact.", &["q1"])]});
        scenario.reply(part, &reply);
    }
    scenario.sandbox.write(&scenario.root().join("topics/.keep"), "");
    scenario.keep_as_template();
    scenario
}

/// A reply that a person brings.
fn by_hand() -> Scenario {
    let mut scenario = mixed(true);
    scenario.name = "by hand";
    scenario.calls = 0;
    scenario.begin();
    let output = scenario.run(&["--prompt".to_owned()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let prompt = String::from_utf8(output.stdout).unwrap();
    let batch = prompt.lines().next().unwrap().trim_start_matches("batch: ");
    let reply = fs::read_to_string(scenario.sandbox.work().join("reply-1.json")).unwrap();
    scenario.sandbox.file("answer.json", reply.replace("BATCH", batch));
    scenario.arguments = ["--quiet", "--apply", "answer.json"].map(str::to_owned).to_vec();
    scenario.keep_as_template();
    scenario
}

#[test]
fn killed_at_any_call_a_run_is_ended_by_the_next() {
    mixed(true).inject("signal=KILL");
}

#[test]
fn killed_in_either_part_a_session_is_ended_by_the_next_run() {
    two_parts().inject("signal=KILL");
}

#[test]
fn killed_at_any_call_notes_are_filed_once_without_an_llm() {
    mixed(false).inject("signal=KILL");
}

#[test]
fn killed_at_any_call_a_reply_brought_by_hand_is_carried_out_once() {
    by_hand().inject("signal=KILL");
}

#[test]
fn a_disk_that_fails_at_any_call_costs_nothing() {
    mixed(true).inject("error=EIO");
    two_parts().inject("error=EIO");
}

#[test]
fn a_disk_that_is_full_at_any_call_costs_nothing() {
    mixed(false).inject("error=ENOSPC");
    by_hand().inject("error=ENOSPC");
}

#[test]
fn the_clock_stands_still_in_these_tests() {
    // Were it not pinned, no two runs would leave the same bytes.
    let scenario = mixed(false);
    scenario.begin();
    scenario.run(&scenario.arguments);
    assert!(scenario.tree().values().any(|text| text.contains(&NOW[..10])), "{:?}", scenario.tree());
}
