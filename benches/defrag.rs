//! What order among notes costs, without what the model takes: to find out that there is nothing to do, and to find
//! what looks alike.

use crate::measure::{Home, own, row, size_rows, time_row};
use crate::notes;
use std::fs;

const DEFRAG: &str = env!("CARGO_BIN_EXE_memory-defrag");
const CONSOLIDATE: &str = env!("CARGO_BIN_EXE_memory-consolidate");

/// A model that leaves everything as it is.
const NOTHING_TO_DO: &str = r#"sed -n '1s/^batch: \(.*\)/{"batch": "\1", "operations": []}/p'"#;

pub fn bench() {
    for count in [100, 10_000] {
        idle(count);
    }
    let few = prompt(10_000, Some(2000));
    let many = prompt(40_000, None);
    row("prompt of 40,000 against four times that of 10,000", "", Some(many / (4.0 * few)), Some(1.3), "×");
    size_rows(&[(CONSOLIDATE, Some(3.0)), (DEFRAG, Some(3.0))]);
}

fn home(count: u64) -> Home {
    let home = Home::new();
    notes::generate(home.path(), count);
    let config = home.path().join(".config/agent-memory");
    fs::create_dir_all(&config).unwrap();
    let settings = serde_json::json!({
        "storage": {"autoCommit": false},
        // Each repository is asked about apart, all of them in the first run.
        "llm": {"command": NOTHING_TO_DO, "maxPromptBytes": 100_000_000, "maxCallsPerRun": 10_000, "maxCallsPerDay": 100_000},
    });
    fs::write(config.join("config.json"), settings.to_string()).unwrap();
    home
}

/// What a timer costs that finds nothing to do.
fn idle(count: u64) {
    let own = own();
    let home = home(count);
    home.time(&[DEFRAG]);
    let calls = fs::read_to_string(ledger(&home)).unwrap();
    let times = home.times(&[&[&own, "nothing"], &[DEFRAG, "--quiet"], &[CONSOLIDATE, "--quiet"]], 11);
    assert_eq!(fs::read_to_string(ledger(&home)).unwrap(), calls, "nothing was to be asked");
    let aim = (count == 100).then_some(10);
    time_row(&format!("memory-defrag with nothing to do, {count} notes"), times[1], times[0], aim);
    time_row("memory-consolidate with nothing to do", times[2], times[0], Some(10));
}

fn ledger(home: &Home) -> std::path::PathBuf {
    notes::topics(home.path()).with_file_name(".agent-memory/calls.jsonl")
}

/// Reading all notes, finding likely duplicates among them, sharing them out over calls, and the first prompt.
fn prompt(count: u64, aim: Option<u64>) -> f64 {
    let own = own();
    let home = home(count);
    let settings = serde_json::json!({"storage": {"autoCommit": false}});
    fs::write(home.path().join(".config/agent-memory/config.json"), settings.to_string()).unwrap();
    let times = home.times(&[&[&own, "nothing"], &[DEFRAG, "--prompt"]], 3);
    let shown = format!("{},000", count / 1000);
    time_row(&format!("memory-defrag --prompt, duplicates of {shown} notes"), times[1], times[0], aim);
    row("  peak memory of the same", "", Some(home.peak(&[DEFRAG, "--prompt"])), None, " MiB");
    times[1].as_secs_f64()
}
