//! What nights of defrag send to the model: calls, and bytes of prompts. A model that changes nothing is asked, so that a store
//! only grows: a real one, which merges and archives, has less to be shown.

use crate::measure::{Home, line, row};
use crate::notes::{Sessions, topics};
use serde_json::Value;
use std::fs;

const DEFRAG: &str = env!("CARGO_BIN_EXE_memory-defrag");
/// A model that leaves everything as it is.
const NOTHING_TO_DO: &str = r#"sed -n '1s/^batch: \(.*\)/{"batch": "\1", "operations": []}/p'"#;
/// What ten sessions leave behind in a day.
const A_DAY: u64 = 12;
const MONTHS: u64 = 6;
const NIGHTS: u64 = 30;

pub fn bench() {
    let few = after_ten_changes(300);
    let many = after_ten_changes(3000);
    row("prompts for ten changes: 3,000 notes against 300", "", Some(many / few), Some(2.0), "×");
    months();
}

/// The first defrag of a store, and the night after ten of its notes have changed: the bytes of that.
fn after_ten_changes(count: u64) -> f64 {
    let home = home();
    let sessions = Sessions::new(home.path());
    (0..count).for_each(|n| sessions.write(home.path(), n, 0));
    cost_row(&format!("the first defrag of {count} notes"), night(&home, 0));
    // All over the store.
    (0..10).for_each(|n| sessions.write(home.path(), n * count / 10 + n, 1));
    let cost = night(&home, 1);
    cost_row(&format!("the night after, 10 of {count} notes changed"), cost);
    assert_eq!(night(&home, 2).calls, 0, "nothing was to be asked");
    cost.bytes as f64
}

/// Half a year of ten sessions a day.
fn months() {
    let home = home();
    let sessions = Sessions::new(home.path());
    let mut all = Vec::new();
    for month in 0..MONTHS {
        let mut sum = Cost::default();
        for night_of in 0..NIGHTS {
            let day = month * NIGHTS + night_of;
            (day * A_DAY..(day + 1) * A_DAY).for_each(|n| sessions.write(home.path(), n, 0));
            let cost = night(&home, day);
            sum = Cost { calls: sum.calls + cost.calls, bytes: sum.bytes + cost.bytes };
        }
        cost_row(&format!("month {}, {A_DAY} new notes a day", month + 1), sum);
        all.push(sum.bytes as f64);
    }
    row("the last month against the second", "", Some(all[all.len() - 1] / all[1]), Some(1.5), "×");
}

#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    calls: usize,
    bytes: u64,
}

fn cost_row(figure: &str, cost: Cost) {
    line(figure, &format!("{} kB", cost.bytes / 1000), &format!("{} calls", cost.calls), None);
}

fn home() -> Home {
    let home = Home::new();
    let config = home.path().join(".config/agent-memory");
    fs::create_dir_all(&config).unwrap();
    let llm =
        serde_json::json!({"command": NOTHING_TO_DO, "maxCallsPerRun": 10_000, "maxCallsPerDay": 100_000});
    let settings = serde_json::json!({"storage": {"autoCommit": false}, "llm": llm});
    fs::write(config.join("config.json"), settings.to_string()).unwrap();
    home
}

/// One run, so many days later.
fn night(home: &Home, days: u64) -> Cost {
    let ledger = topics(home.path()).with_file_name(".agent-memory/calls.jsonl");
    let before = fs::read_to_string(&ledger).unwrap_or_default().len();
    let month = ["01", "02", "03", "04", "05", "06", "07", "08"][(days / 28) as usize];
    let now = format!("2027-{month}-{:02}T03:00:00Z", days % 28 + 1);
    let status = home.command(&[DEFRAG, "--quiet"]).env("AXE_NOW", now).status().unwrap();
    assert!(status.success(), "{status}");
    let all = fs::read_to_string(&ledger).unwrap_or_default();
    let calls = all[before..].lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls.filter(|call| call["event"] == "started").fold(Cost::default(), |sum, call| Cost {
        calls: sum.calls + 1,
        bytes: sum.bytes + call["promptBytes"].as_u64().unwrap(),
    })
}
