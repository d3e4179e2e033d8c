//! One note read, changed, put away, deleted: the store holds the old state or the new.

use crate::scenario::Scenario;
use crate::support::store::{Store, note};
use crate::support::world::World;
use std::fs;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "memory-read: a count",
            make: || one("memory-read", &["AAAAAA"]),
            ..Scenario::PLAIN
        },
        Scenario {
            name: "memory-update: a new title",
            make: || one("memory-update", &["AAAAAA", "--title", "New"]),
            ..Scenario::PLAIN
        },
        Scenario { name: "memory-update: with git", make: with_history, sample: 2, ..Scenario::PLAIN },
        Scenario {
            name: "memory-remove: to the archive",
            make: || one("memory-remove", &["AAAAAA"]),
            ..Scenario::PLAIN
        },
        Scenario {
            name: "memory-remove: for good",
            make: || one("memory-remove", &["--purge", "BBBBBB"]),
            // The note goes also where the list of removed notes cannot be written.
            differs: &["agent-memory/removed"],
            ..Scenario::PLAIN
        },
        Scenario { name: "memory-edit: a text", make: edited, ..Scenario::PLAIN },
        Scenario { name: "memory-status: a store", make: || one("memory-status", &[]), ..Scenario::PLAIN },
        Scenario {
            name: "memory-page: a file",
            make: || one("memory-page", &["-o", "page.html", "--force"]),
            ..Scenario::PLAIN
        },
    ]
}

/// What is done to a store that holds `one` and an archived `two`.
pub(crate) fn one(program: &'static str, arguments: &[&str]) -> World {
    filled(Store::new(), program, arguments)
}

fn filled(store: Store, program: &'static str, arguments: &[&str]) -> World {
    for part in ["inbox", ".agent-memory"] {
        fs::create_dir_all(store.root().join(part)).unwrap();
    }
    store.put(".gitignore", "/inbox/\n/.agent-memory/\n");
    store.note("AAAAAA", "One");
    store.put("archive/two -- id__BBBBBB.md", note("BBBBBB", "Two", ""));
    in_store(store, program, arguments)
}

pub(crate) fn in_store(store: Store, program: &'static str, arguments: &[&str]) -> World {
    let root = store.root();
    let mut world = World::of(store.sandbox, program, arguments);
    world.root = Some(root);
    world
}

pub(crate) fn with_history() -> World {
    filled(Store::with_history(), "memory-update", &["AAAAAA", "--title", "New"])
}

/// By an editor that changes a word of it.
fn edited() -> World {
    let mut world = one("memory-edit", &["AAAAAA"]);
    world.variables.push(("VISUAL".to_owned(), "sed -i s/Body/Text/".into()));
    world
}
