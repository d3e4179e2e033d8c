//! What months of sessions send to the model: calls and bytes of prompts of `memory-consolidate`, ten sessions of 200 kB a day
//! in three repositories, and how they grow with the store. A day at the end of each month is played and counts for all of it.

use crate::measure::{Home, line, row};
use crate::notes::{Sessions, topics};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;

const CONSOLIDATE: &str = env!("CARGO_BIN_EXE_memory-consolidate");
/// A model that keeps nothing: the store grows by notes that are written here, so that both pipelines meet the same.
const KEEPS_NOTHING: &str = r#"awk '/^batch: / && !b {b=$2} /^<<< session / {s=s c "{\"source\":\"" $3 "\",\"reason\":\"x\"}"; c=","} END {print "{\"batch\":\"" b "\",\"entries\":[],\"skipped\":[" s "]}"}'"#;
const NOTES_A_DAY: u64 = 12;
const SESSIONS_A_DAY: usize = 10;
const SESSION_BYTES: usize = 200_000;
const MONTHS: u64 = 6;
const DAYS: u64 = 30;

pub fn bench() {
    let home = Home::new();
    let config = home.path().join(".config/agent-memory");
    fs::create_dir_all(&config).unwrap();
    let settings = json!({
        "storage": {"autoCommit": false},
        "llm": {"command": KEEPS_NOTHING, "maxCallsPerRun": 10_000, "maxCallsPerDay": 100_000},
    });
    fs::write(config.join("config.json"), settings.to_string()).unwrap();
    let sessions = Sessions::new(home.path());
    let mut all = Vec::new();
    for month in 0..=MONTHS {
        // The first row is that of an empty store.
        let notes = month * DAYS * NOTES_A_DAY;
        (notes.saturating_sub(DAYS * NOTES_A_DAY)..notes).for_each(|n| sessions.write(home.path(), n, 0));
        let (calls, bytes) = day(&home, month);
        let (calls, bytes) = (calls * DAYS, bytes * DAYS);
        let figure = format!("consolidate, a month at {notes} notes");
        line(&figure, &format!("{} k tokens", bytes / 4000), &format!("{calls} calls"), None);
        all.push(bytes as f64);
    }
    row(
        "consolidate, the sixth month against the second",
        "",
        Some(all[all.len() - 1] / all[2]),
        Some(1.5),
        "×",
    );
}

/// One day's sessions, two at a time: how often the model was asked, and with how many bytes.
fn day(home: &Home, month: u64) -> (u64, u64) {
    let ledger = topics(home.path()).with_file_name(".agent-memory/calls.jsonl");
    let before = fs::read_to_string(&ledger).unwrap_or_default().len();
    let inbox = topics(home.path()).with_file_name("inbox");
    fs::create_dir_all(&inbox).unwrap();
    for number in 0..SESSIONS_A_DAY {
        let name = format!("m{month}-s{number}");
        let path = home.path().join(format!("{name}.jsonl"));
        fs::write(&path, session(&name, month * 100 + number as u64)).unwrap();
        let now = format!("2027-{:02}-28T{:02}", month + 1, 8 + number);
        let entry = json!({
            "version": 1, "timestamp": format!("{now}:00:00.000Z"), "harness": "claude-code",
            "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": name},
            "context": {"cwd": "/w", "repo": format!("github.com/o/r{}", number % 3)},
        });
        fs::write(inbox.join(format!("{name}.json")), entry.to_string()).unwrap();
        if number % 2 == 1 {
            let status = home
                .command(&[CONSOLIDATE, "--quiet"])
                .env("AXE_NOW", format!("{now}:30:00Z"))
                .status()
                .unwrap();
            assert!(status.success(), "{status}");
        }
    }
    let all = fs::read_to_string(&ledger).unwrap_or_default();
    let calls = all[before..].lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls
        .filter(|call| call["event"] == "started")
        .fold((0, 0), |(calls, bytes), call| (calls + 1, bytes + call["promptBytes"].as_u64().unwrap()))
}

/// A transcript of 200 kB: a tenth of it is what the person and the agent say, the rest tool calls and their outputs.
fn session(name: &str, seed: u64) -> String {
    let words: Vec<&str> = include_str!("search/notes.txt").split_whitespace().collect();
    let mut at = usize::try_from(seed).unwrap() * 97;
    let mut some = |count: usize| {
        at += 13;
        words.iter().cycle().skip(at % words.len()).take(count).copied().collect::<Vec<_>>().join(" ")
    };
    let mut text = String::new();
    let mut number = 0;
    let add = |text: &mut String, role: &str, content: Value| {
        let record = json!({
            "type": role, "uuid": format!("{name}-{}", text.len()), "sessionId": name, "cwd": "/w",
            "promptSource": (role == "user").then_some("typed"),
            "timestamp": "2027-01-28T08:00:00Z", "message": {"role": role, "content": content},
        });
        let _ = writeln!(text, "{record}");
    };
    while text.len() < SESSION_BYTES {
        number += 1;
        add(&mut text, "user", json!(some(25)));
        add(&mut text, "assistant", json!([{"type": "text", "text": some(60)}]));
        for call in 0..4 {
            let id = format!("c{number}-{call}");
            let input = json!({"command": some(12)});
            add(
                &mut text,
                "assistant",
                json!([{"type": "tool_use", "id": id, "name": "Bash", "input": input}]),
            );
            // Most outputs are short, some are long and will be cut.
            let output = some(if call == 0 { 900 } else { 120 });
            add(&mut text, "user", json!([{"type": "tool_result", "tool_use_id": id, "content": output}]));
        }
    }
    text
}
