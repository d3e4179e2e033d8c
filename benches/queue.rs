//! What a long queue and many notes cost the programs that run often: the hook, a consolidation, the doctor.

use crate::measure::{Home, median, ms, own, row, settle, time_row};
use crate::notes;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const CAPTURE: &str = env!("CARGO_BIN_EXE_memory-capture");
const CONSOLIDATE: &str = env!("CARGO_BIN_EXE_memory-consolidate");
const DOCTOR: &str = env!("CARGO_BIN_EXE_memory-doctor");

/// How long a queue is, and how it is told.
const QUEUES: [(usize, &str); 3] = [(100, "100"), (10_000, "10,000"), (100_000, "100,000")];
/// So many notes are filed in one call.
const FILED: usize = 32;
const STORES: [(u64, &str); 3] = [(1_000, "1,000"), (30_000, "30,000"), (100_000, "100,000")];

pub fn bench() {
    waiting();
    one_note();
}

fn waiting() {
    let own = own();
    let mut hooks = Vec::new();
    let mut runs = Vec::new();
    for (count, shown) in QUEUES {
        let home = Home::new();
        fill(&home, count);
        let unit = home.times(&[&[&own, "nothing"]], 21)[0];
        // A session that waits already, and one that does not.
        let waits: Vec<Duration> = (0..41).map(|_| hook(&home, "session-7")).collect();
        let new: Vec<Duration> = (0..41).map(|n| hook(&home, &format!("new-{n}"))).collect();
        let [waits, new] = [waits, new].map(|mut times| median(&mut times[1..]));
        time_row(&format!("hook, {shown} wait, and this session too"), waits, unit, Some(20));
        time_row(&format!("hook, {shown} wait, a new session"), new, unit, None);
        hooks.push((waits, new));
        let doctor = home.times(&[&[DOCTOR]], 3)[0];
        time_row(&format!("memory-doctor, {shown} wait"), doctor, unit, None);
        // Three calls: what is over the first is what each further one takes.
        let [one, three] = [1, 3].map(|calls| {
            configure(home.path(), calls);
            home.time(&[CONSOLIDATE, "--quiet"])
        });
        time_row(&format!("memory-consolidate, {shown} wait, 1 call"), one, unit, None);
        row("  each further call", &ms(three.saturating_sub(one) / 2), None, None, "");
        runs.push(one);
    }
    for (few, many) in [(0, 2), (1, 2)] {
        let ratio = hooks[many].0.as_secs_f64() / hooks[few].0.as_secs_f64();
        row(
            &format!("hook: {} wait against {}", QUEUES[many].1, QUEUES[few].1),
            "",
            Some(ratio),
            Some(1.3),
            "×",
        );
    }
    let ratio = runs[2].as_secs_f64() / (10.0 * runs[1].as_secs_f64());
    row("memory-consolidate: 100,000 wait against ten times 10,000", "", Some(ratio), Some(1.2), "×");
}

/// A note in the queue, to be filed among so many: no LLM is asked.
fn one_note() {
    let own = own();
    for (count, shown) in STORES {
        let home = Home::new();
        notes::generate(home.path(), count);
        let unit = home.times(&[&[&own, "nothing"]], 21)[0];
        std::thread::sleep(Duration::from_millis(2100));
        let mut times: Vec<Duration> = (0..3)
            .map(|n| {
                let title = format!("What came of attempt {n}");
                home.time(&[CAPTURE, "--title", &title, "--body", "Three attempts."]);
                home.time(&[CONSOLIDATE, "--quiet"])
            })
            .collect();
        let one = median(&mut times);
        time_row(&format!("memory-consolidate of one note, {shown} notes"), one, unit, None);
        for n in 0..FILED {
            let title = format!("What came of measurement {n}");
            home.time(&[CAPTURE, "--title", &title, "--body", "Many measurements."]);
        }
        let many = home.time(&[CONSOLIDATE, "--quiet"]);
        let ratio = many.as_secs_f64() / one.as_secs_f64();
        row(&format!("  of {FILED} notes, against one"), &ms(many), Some(ratio), Some(3.0), "×");
        let doctor = home.times(&[&[DOCTOR]], 3)[0];
        time_row(&format!("memory-doctor, {shown} notes"), doctor, unit, None);
    }
}

/// The time of a hook of Claude Code about this session.
fn hook(home: &Home, session: &str) -> Duration {
    let path = home.path().join(format!("{session}.jsonl"));
    if !path.exists() {
        fs::write(&path, "{}\n").unwrap();
    }
    let payload = json!({"session_id": session, "transcript_path": path, "cwd": home.path(), "hook_event_name": "Stop"});
    let mut command = home.command(&[CAPTURE, "--harness", "claude-code"]);
    let started = Instant::now();
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let status = child.wait().unwrap();
    let taken = started.elapsed();
    assert!(status.success());
    taken
}

/// So many sessions in the queue, each in a repository of its own.
fn fill(at: &Home, count: usize) {
    let home = at.path();
    configure(home, 1);
    // The program makes the store.
    let inbox = notes::topics(home).with_file_name("inbox");
    at.time(&[CAPTURE, "--title", "t", "--body", "b"]);
    for n in 0..count {
        let session = format!("session-{n}");
        let path = home.join(format!("{session}.jsonl"));
        let turn = |role: &str, text: &str| -> Value {
            json!({"type": role, "uuid": format!("{session}-{role}"), "sessionId": session,
                "message": {"role": role, "content": text}})
        };
        if n < 100 {
            fs::write(
                &path,
                format!("{}\n{}\n", turn("user", "Tabs or spaces?"), turn("assistant", "Tabs.")),
            )
            .unwrap();
        }
        let entry = json!({
            "version": 1, "timestamp": format!("2026-02-{:02}T{:02}:{:02}:{:02}.{:03}Z", 1 + n / 8_640_000,
                n / 360_000, n / 6_000 % 60, n / 100 % 60, n % 100),
            "harness": "claude-code",
            "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": session},
            "context": {"cwd": home, "repo": format!("github.com/o/r{n}")},
        });
        fs::write(inbox.join(format!("2026-02-01T00-00-00.000Z_claude-code_{n:08}.json")), entry.to_string())
            .unwrap();
    }
    // As a queue of an earlier version: the first hook finds out who waits.
    hook(at, "session-1");
    settle();
}

/// A model that has nothing to say, and so many calls a run.
fn configure(home: &Path, calls: usize) {
    let reply = "python3 -c 'import sys, re, json; p = sys.stdin.read(); \
        ids = re.findall(r\"^<<< session (\\S+)\", p, re.M); \
        print(json.dumps({\"batch\": p.split()[1], \"entries\": [], \
        \"skipped\": [{\"source\": id, \"reason\": \"small talk\"} for id in ids]}))'";
    let config = json!({"llm": {"command": reply, "maxCallsPerRun": calls, "maxCallsPerDay": 1000},
        "storage": {"autoCommit": false}});
    let file = home.join(".config/agent-memory/config.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, config.to_string()).unwrap();
}
