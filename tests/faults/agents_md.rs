//! `memory-agents-md`: the file is the old one or the new, and nothing stays beside it. And somebody who saves the file
//! in that very moment.

use crate::notes::in_store;
use crate::scenario::Scenario;
use crate::support::store::{Store, name, names};
use crate::support::world::World;
use crate::support::{Said, eventually};
use std::fs;
use std::path::PathBuf;

/// Text that is not ours stands around the section.
const OLD: &str = "# Mine\r\n\r\nUse tabs.";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario {
            name: "memory-agents-md: a new file",
            make: || section(None),
            threads: true,
            ..Scenario::PLAIN
        },
        Scenario {
            name: "memory-agents-md: somebody's file",
            make: || section(Some(OLD)),
            threads: true,
            ..Scenario::PLAIN
        },
    ]
}

/// A store with a hot note, and a directory with the target.
fn section(old: Option<&str>) -> World {
    let store = Store::new();
    let text = "---\nid: id__AAAAAA\ntitle: Hot\ntier: hot\n---\n\nWhole.\n";
    store.put(&format!("topics/{}", name("AAAAAA", "Hot")), text);
    let world = in_store(store, "memory-agents-md", &["--target", "d/A.md"]);
    fs::create_dir(dir(&world)).unwrap();
    if let Some(old) = old {
        fs::write(dir(&world).join("A.md"), old).unwrap();
    }
    world
}

fn dir(world: &World) -> PathBuf {
    world.sandbox.work().join("d")
}

#[test]
fn what_its_owner_saves_while_the_new_file_is_synced_is_not_lost() {
    for old in [None, Some(OLD)] {
        let world = section(old);
        let path = dir(&world).join("A.md");
        // The first sync takes a second; the file is saved in it, as soon as the new one lies beside it.
        let saved = "# Saved meanwhile\n";
        let disturbed = std::thread::scope(|scope| {
            let save = scope.spawn(|| {
                eventually("the new file", || {
                    let beside = names(&dir(&world)).into_iter().find(|name| name.starts_with(".A.md."));
                    beside.is_some_and(|name| {
                        fs::metadata(dir(&world).join(name)).is_ok_and(|found| found.len() > 0)
                    })
                });
                fs::write(&path, saved).unwrap();
            });
            let call = "fsync,fdatasync";
            let options = [format!("--trace={call}"), format!("--inject={call}:delay_enter=1000000:when=1")];
            let disturbed = world.traced(true, &options).unwrap();
            save.join().unwrap();
            disturbed
        });
        assert!(disturbed.trace.contains("sync("), "{}", disturbed.trace);
        assert_eq!(disturbed.output.code(), Some(0), "{}", disturbed.output.err());
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with(&format!("{saved}\n<!-- agent-memory:start -->\n"))
                && text.ends_with("<!-- agent-memory:end -->\n"),
            "{old:?}: {text}"
        );
        assert_eq!(names(&dir(&world)), ["A.md"]);
    }
}
