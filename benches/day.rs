//! A worked day in one repository: what an agent did wrong in the morning, and whether it does so again in the afternoon.
//!
//! The morning's two sessions are captured and consolidated one after the other; the model is the careful one of
//! `quality/model.py`. The afternoon's sessions get tasks of the same kinds (`quality/day.json`). Their agent knows
//! nothing but its context: it does what it did in the morning, unless the context says what was learned.

use crate::measure::{Home, line};
use crate::notes;
use crate::quality::{home, store, text, transcript, write};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

const CAPTURE: &str = env!("CARGO_BIN_EXE_memory-capture");
const CONSOLIDATE: &str = env!("CARGO_BIN_EXE_memory-consolidate");
const RECALL: &str = env!("CARGO_BIN_EXE_memory-recall");
/// A Friday, the fifth of the month.
const DAY: usize = 4;
/// The most mistakes that may be repeated.
const REPEATED: usize = 1;
/// The number of tasks in a session of the afternoon.
const TASKS: usize = 5;

/// What the afternoon's sessions are given.
#[derive(Clone, Copy, PartialEq)]
enum Given {
    Nothing,
    /// What a plugin gives that asks at prompts alone.
    AtPrompts,
    AtStartAndPrompts,
}

pub fn bench() {
    let day = Day::new();
    let all = day.tasks().count();
    println!("a worked day: mistakes repeated in the afternoon, of {all}");
    let must_be_all = |repeated: usize| Some((format!("= {all}"), repeated == all));
    // If fewer were repeated, the tasks or the earlier notes would give the lessons away.
    let repeated = day.afternoon("without", Given::Nothing).len();
    line("  without the memory", &repeated.to_string(), "", must_be_all(repeated));
    let repeated = day.afternoon("before", Given::AtStartAndPrompts).len();
    line("  with the memory of the day before", &repeated.to_string(), "", must_be_all(repeated));
    day.session("returns-1", "10:30");
    day.session("returns-2", "12:30");
    let repeated = day.afternoon("prompts", Given::AtPrompts);
    line("  with the memory, at prompts alone", &repeated.len().to_string(), "", None);
    let repeated = day.afternoon("with", Given::AtStartAndPrompts);
    let aim = (format!("≤ {REPEATED}"), repeated.len() <= REPEATED);
    line("  with the memory", &repeated.len().to_string(), "", Some(aim));
    repeated.iter().for_each(|mistake| println!("    {mistake}"));
}

struct Day {
    home: Home,
    facts: Vec<Value>,
}

impl Day {
    /// A checkout of a repository that is new to the store, which has notes about other repositories and about everywhere.
    fn new() -> Day {
        let facts = include_str!("quality/day.json");
        let day = Day { home: home(facts, "careful"), facts: serde_json::from_str(facts).unwrap() };
        let topics = store(&day.home).join("topics");
        std::fs::create_dir_all(&topics).unwrap();
        let known: Vec<Value> =
            serde_json::from_str(include_str!("../tests/recall/foreign-notes.json")).unwrap();
        for (n, note) in (0..).zip(&known) {
            let tags: Vec<String> = serde_json::from_value(note["tags"].clone()).unwrap();
            let (title, summary, body) = (text(note, "title"), text(note, "summary"), text(note, "body"));
            let repo = note["repo"].as_str();
            notes::Note { id: notes::id(n), title, summary, tags: &tags, repo, body }.write(&topics);
        }
        let git = day.checkout().join(".git");
        write(git.join("HEAD"), "ref: refs/heads/main\n");
        write(git.join("config"), "[remote \"origin\"]\nurl = https://github.com/acme/returns.git\n");
        day
    }

    fn checkout(&self) -> PathBuf {
        self.home.path().join("returns")
    }

    fn tasks(&self) -> impl Iterator<Item = &Value> {
        self.facts.iter().filter(|fact| !fact["task"].is_null())
    }

    /// Gives a program a hook's JSON. Returns what it prints.
    fn hook(&self, program: &str, harness: &str, time: &str, event: &Value) -> String {
        let mut command = self.home.command(&[program, "--harness", harness]);
        command.current_dir(self.checkout()).env("AXE_NOW", at(time)).env("AGENT_MEMORY_RECALL_MS", "60000");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // A program that exits before it reads its input gives nothing. The figures must show that.
        let _ = child.stdin.take().unwrap().write_all(event.to_string().as_bytes());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{program}: {event}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Plays a session of the morning: writes its transcript, captures it and consolidates it.
    fn session(&self, session: &str, end: &str) {
        let facts = self.facts.iter().filter(|fact| text(fact, "session") == session);
        let path = transcript(&self.home, session, &self.checkout(), facts, DAY);
        let event = json!({
            "hook_event_name": "SessionEnd", "session_id": session, "transcript_path": path, "cwd": self.checkout(),
        });
        self.hook(CAPTURE, "claude-code", end, &event);
        let mut command = self.home.command(&[CONSOLIDATE, "--quiet"]);
        assert!(command.env("AXE_NOW", at(end)).status().unwrap().success(), "{session}");
    }

    /// Plays the afternoon's sessions. Returns the mistakes that are repeated.
    fn afternoon(&self, name: &str, given: Given) -> Vec<&str> {
        let tasks: Vec<&Value> = self.tasks().collect();
        let mut repeated = Vec::new();
        for (number, tasks) in tasks.chunks(TASKS).enumerate() {
            let recall = |event: &str, key: &str, value: &str| {
                let event = json!({
                    "hook_event_name": event, "session_id": format!("{name}-{number}"), "cwd": self.checkout(), key: value,
                });
                match given {
                    Given::Nothing => String::new(),
                    Given::AtPrompts => self.hook(RECALL, "opencode", "14:00", &event),
                    Given::AtStartAndPrompts => added(&self.hook(RECALL, "claude-code", "14:00", &event)),
                }
            };
            let mut context = String::new();
            if given == Given::AtStartAndPrompts {
                context += &recall("SessionStart", "source", "startup");
            }
            for task in tasks {
                let prompt = text(task, "task");
                context += &format!("\n{}\n{prompt}\n", recall("UserPromptSubmit", "prompt", prompt));
                if repeats(task, &context) {
                    repeated.push(text(task, "mistake"));
                }
            }
        }
        repeated
    }
}

/// Does the agent do what it did in the morning? It does not if a line of its context has all words of the lesson, and no
/// line has what is no longer true.
fn repeats(task: &Value, context: &str) -> bool {
    let lesson: Vec<&str> = task["lesson"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let is_learned = context.lines().any(|line| lesson.iter().all(|words| line.contains(words)));
    let is_misled = task["stale"].as_str().is_some_and(|stale| context.contains(stale));
    !is_learned || is_misled
}

/// What Claude Code takes from the answer of a hook; an empty one adds nothing.
fn added(out: &str) -> String {
    if out.is_empty() {
        return String::new();
    }
    let json: Value = serde_json::from_str(out).unwrap();
    json["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

fn at(time: &str) -> String {
    format!("2027-03-{:02}T{time}:00Z", DAY + 1)
}
