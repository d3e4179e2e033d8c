//! `memory-review`: a change that waits is decided or waits, and the note is the old one or the new.

use crate::notes::in_store;
use crate::scenario::Scenario;
use crate::support::store::{Store, name, note};
use crate::support::world::World;
use serde_json::{Value, json};

/// A decision that is made twice finds nothing that waits.
const REVIEW: Scenario =
    Scenario { next_may_fail: true, differs: &["agent-memory/removed", "store/removed"], ..Scenario::PLAIN };

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "memory-review: accept a queue",
            make: || waiting(Store::new(), &["--accept", "-"]),
            sample: 3,
            ..REVIEW
        },
        Scenario {
            name: "memory-review: accept, with git",
            make: || waiting(Store::with_history(), &["--accept", "-"]),
            sample: 20,
            ..REVIEW
        },
        Scenario {
            name: "memory-review: reject a queue",
            make: || waiting(Store::new(), &["--reject", "-"]),
            sample: 3,
            ..REVIEW
        },
    ]
}

fn propose(store: &Store, id: &str, more: Value) {
    let mut proposal = json!({
        "id": id, "op": "create", "note": null, "base": null,
        "entry": {"title": "Dev server", "summary": "It listens on 4320.", "tags": ["topic__dev"], "scope": "repo",
            "until": null, "body": "The dev server listens on 4320.\n",
            "sources": [{"harness": "amp", "threadId": "T-7", "repo": "github.com/o/r"}]},
        "by": "agent", "createdAt": 1_772_000_000_000_i64,
        "evidence": [{"turn": "t12", "quote": "it is 4320 now", "said": "person"}],
        "reasons": ["The note is pinned."],
        "session": {"harness": "amp", "threadId": "T-7", "repo": "github.com/o/r"}
    });
    proposal.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    store.put(&format!("proposals/{id}.json"), proposal.to_string());
}

/// A new note, another text and a note to put away, all named on stdin.
fn waiting(store: Store, arguments: &[&str]) -> World {
    for part in ["inbox", ".agent-memory", "archive"] {
        std::fs::create_dir_all(store.root().join(part)).unwrap();
    }
    store.put(".gitignore", "/inbox/\n/.agent-memory/\n");
    for (id, title) in [("AAAAAA", "Changed"), ("BBBBBB", "Put away")] {
        store.put(&format!("topics/{}", name(id, title)), note(id, title, "scope: repo\nby: person\n"));
    }
    propose(&store, "p__a1B2c3", json!({}));
    propose(&store, "p__d4E5f6", json!({"op": "update", "note": "id__AAAAAA"}));
    propose(&store, "p__g7H8i9", json!({"op": "retire", "note": "id__BBBBBB", "entry": null}));
    let mut world = in_store(store, "memory-review", arguments);
    world.stdin = "p__a1B2c3\np__d4E5f6\np__g7H8i9\n".to_owned();
    world
}
