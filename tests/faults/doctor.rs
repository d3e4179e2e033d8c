//! `memory-doctor --fix`: what it mends cannot lose anything, whatever happens on the way.

use crate::notes::in_store;
use crate::scenario::Scenario;
use crate::support::set_mode;
use crate::support::store::{Store, note};
use crate::support::world::World;
use std::fs;
use std::time::{Duration, SystemTime};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![Scenario { name: "memory-doctor: --fix", make: ill, ..Scenario::PLAIN }]
}

/// A note with a wrong name, one whose status is out of step, both in one, a file that is no note, and what killed
/// programs left.
pub(crate) fn ill() -> World {
    let store = Store::new();
    for part in ["inbox", ".agent-memory", "archive"] {
        fs::create_dir_all(store.root().join(part)).unwrap();
    }
    store.put(".gitignore", "/inbox/\n/.agent-memory/\n");
    store.note("AAAAAA", "One");
    store.put("topics/wrong.md", note("BBBBBB", "Two", "summary: In short.\n"));
    store.put("topics/step -- id__CCCCCC.md", note("CCCCCC", "Step", "status: promoted\ntier: warm\n"));
    store.put("topics/both.md", note("DDDDDD", "Both", "status: consolidated # mine\ntier: hot\n"));
    store.put("topics/no.md", "no note");
    let old = SystemTime::now() - Duration::from_secs(3 * 3600);
    for path in [
        "topics/.a.md.x1Y2z3",
        "archive/.b.md.000000",
        "inbox/.q.json.x1Y2z3",
        ".agent-memory/.tries.json.x1Y2z3",
    ] {
        let path = store.put(path, "half");
        fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    set_mode(&store.root(), 0o700);
    in_store(store, "memory-doctor", &["--fix"])
}
