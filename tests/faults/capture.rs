//! `memory-capture`: what it has acknowledged is there and whole, in the queue or as a note.

use crate::notes::{in_store, one};
use crate::scenario::Scenario;
use crate::support::store::Store;
use crate::support::world::World;
use serde_json::json;

const NOTE: &[&str] = &["--title", "T", "--body", "B"];
const DIRECT: &[&str] = &["--direct", "--title", "T", "--body", "B"];

pub(crate) fn scenarios() -> Vec<Scenario> {
    const CAPTURE: Scenario = Scenario::PLAIN;
    vec![
        Scenario { name: "memory-capture: a note", make: || one("memory-capture", NOTE), ..CAPTURE },
        Scenario { name: "memory-capture: the first note", make: || first(NOTE), ..CAPTURE },
        Scenario { name: "memory-capture: a hook", make: hook, ..CAPTURE },
        Scenario { name: "memory-capture: --direct", make: || one("memory-capture", DIRECT), ..CAPTURE },
        Scenario { name: "memory-capture: --direct, the first", make: || first(DIRECT), ..CAPTURE },
    ]
}

/// There is no store yet.
fn first(arguments: &[&str]) -> World {
    in_store(Store::new(), "memory-capture", arguments)
}

fn hook() -> World {
    let mut world = one("memory-capture", &["--harness", "claude-code", "--json"]);
    world.sandbox.file("s.jsonl", "{}\n");
    let path = world.sandbox.work().join("s.jsonl");
    world.stdin = json!({"session_id": "s", "transcript_path": path, "cwd": "/", "hook_event_name": "Stop"})
        .to_string();
    world
}
