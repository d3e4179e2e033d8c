//! What a session waits for: `memory-recall` at its start and at each prompt, as a hook runs it.

use crate::measure::{Home, median, own, settle, size_rows, time_row};
use crate::memory::{SETTLED, percentile};
use crate::notes;
use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

const RECALL: &str = env!("CARGO_BIN_EXE_memory-recall");
/// So many calls of tools of each kind.
const CALLS: usize = 150;
/// So many sessions hear all prompts.
const SESSIONS: usize = 5;

pub fn bench() {
    store("1,000", 1_000, 15);
    store("10,000", 10_000, 50);
    size_rows(&[(RECALL, Some(3.0))]);
}

/// The time from the start of the process to its end, and what it printed.
fn asked(home: &Home, event: &str) -> (Duration, usize) {
    let mut command = home.command(&[RECALL, "--harness", "claude-code"]);
    let started = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let taken = started.elapsed();
    assert!(output.status.success());
    (taken, output.stdout.len())
}

fn event(name: &str, session: usize, home: &Home, more: &str) -> String {
    let cwd = home.path().display();
    format!(r#"{{"hook_event_name":"{name}","session_id":"s{session}","cwd":"{cwd}",{more}}}"#)
}

fn store(shown: &str, count: u64, aim: u64) {
    let own = own();
    let home = Home::new();
    notes::generate(home.path(), count);
    let git = home.path().join(".git");
    fs::create_dir(&git).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), "[remote \"origin\"]\nurl = https://github.com/o/r7.git\n").unwrap();
    settle();
    std::thread::sleep(SETTLED);
    let unit = home.times(&[&[&own, "nothing"]], 21)[0];
    let start =
        |session: usize| asked(&home, &event("SessionStart", session, &home, r#""source":"startup""#));
    // It lets the cache be written.
    let (first, _) = start(usize::MAX);
    let cache = notes::topics(home.path()).with_file_name(".agent-memory").join("notes.cache");
    while !cache.exists() {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (mut starts, mut prompts, mut answers) = (Vec::new(), Vec::new(), 0);
    let texts = include_str!("../tests/recall/prompts.txt").lines().filter(|line| !line.starts_with('#'));
    let texts: Vec<String> = texts
        .map(|line| line.splitn(3, " | ").nth(2).unwrap().replace('\\', "\\\\").replace('"', "\\\""))
        .collect();
    for session in 0..SESSIONS {
        let (taken, length) = start(session);
        assert!(length > 1000, "a section");
        starts.push(taken);
        for text in &texts {
            let (taken, length) =
                asked(&home, &event("UserPromptSubmit", session, &home, &format!(r#""prompt":"{text}""#)));
            prompts.push(taken);
            answers += usize::from(length > 0);
        }
    }
    time_row(&format!("memory-recall at the first start, {shown} notes"), first, unit, None);
    time_row("  at a start", median(&mut starts), unit, None);
    time_row(&format!("  at a prompt, median of {}", prompts.len()), median(&mut prompts), unit, None);
    time_row("    99th percentile", percentile(&mut prompts, 99), unit, Some(aim));
    println!("    answered: {answers}");
    acts(&home, shown, unit);
}

/// Calls of tools: most are about nothing that a note says, and some bring one.
fn acts(home: &Home, shown: &str, unit: Duration) {
    let call = |session: usize, command: &str| {
        let more = format!(r#""tool_name":"Bash","tool_input":{{"command":"{command}"}}"#);
        asked(home, &event("PreToolUse", session, home, &more))
    };
    let note = "---\nid: id__zzzzzz\ntitle: make test hangs\nscope: global\n---\n\nUse tools/rt.\n";
    fs::write(notes::topics(home.path()).join("make-test id__zzzzzz.md"), note).unwrap();
    let (first, _) = call(0, "true");
    settle();
    std::thread::sleep(SETTLED);
    call(0, "true");
    let (mut nothing, mut brought) = (Vec::new(), Vec::new());
    for number in 0..CALLS {
        let (taken, length) = call(number, &format!("cargo check --package p{number} 2>&1 | tail -{number}"));
        assert_eq!(length, 0);
        nothing.push(taken);
        let (taken, length) = call(SESSIONS + number, "make -j4 test");
        assert!(length > 100, "a note");
        brought.push(taken);
    }
    time_row(&format!("  at a call after a new note, {shown} notes"), first, unit, None);
    time_row("  at a call that no note is about, median", median(&mut nothing), unit, None);
    time_row("    99th percentile", percentile(&mut nothing, 99), unit, Some(5));
    time_row("  at a call that brings a note, median", median(&mut brought), unit, None);
    time_row("    99th percentile", percentile(&mut brought, 99), unit, Some(15));
}
