//! `memory-recall` as a hook: what it has shown is remembered or shown again, and nothing else changes.

use crate::notes::in_store;
use crate::scenario::Scenario;
use crate::support::store::{Store, name};
use crate::support::world::World;
use serde_json::{Value, json};
use std::fs;

/// It answers first; what it remembers of the notes is a cache.
const RECALL: Scenario =
    Scenario { threads: true, prints_first: true, differs: &["/subjects.cache"], ..Scenario::PLAIN };

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "memory-recall: at a start",
            make: || hook(json!({"hook_event_name": "SessionStart", "source": "startup"})),
            ..RECALL
        },
        Scenario {
            name: "memory-recall: before an act",
            make: || {
                hook(
                    json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "make test"}}),
                )
            },
            ..RECALL
        },
    ]
}

fn hook(mut event: Value) -> World {
    let store = Store::new();
    store.sandbox.in_a_repository();
    for part in ["inbox", ".agent-memory", "archive"] {
        fs::create_dir_all(store.root().join(part)).unwrap();
    }
    store.put(".gitignore", "/inbox/\n/.agent-memory/\n");
    let text = "---\nid: id__AAAAAA\ntitle: \"`make test` hangs here: use tools/rt\"\nscope: repo\ntier: hot\n\
                sources:\n  - {harness: amp, repo: github.com/o/r}\n---\n\nIt waits for a terminal. Run `tools/rt`.\n";
    store.put(&format!("topics/{}", name("AAAAAA", "make test hangs")), text);
    let mut world = in_store(store, "memory-recall", &["--harness", "claude-code"]);
    // Under strace it takes its time.
    world.variables.push(("AGENT_MEMORY_RECALL_MS".to_owned(), "60000".into()));
    event["session_id"] = json!("s");
    event["cwd"] = json!(world.sandbox.work());
    world.stdin = event.to_string();
    world
}
