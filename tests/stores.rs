//! Stores as earlier releases wrote them, in `tests/stores/`: this one reads them, and pays for nothing twice.

use crate::support::llm::NOTE_EACH;
use crate::support::processes::at_once;
use crate::support::store::Store;
use crate::support::{Sandbox, said};
use std::fs;
use std::path::Path;

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(entry.path(), &to).unwrap();
            }
        }
    }
}

/// The session that each of these stores has consumed.
fn consumed(sandbox: &Sandbox) -> String {
    sandbox.heard("s1", "Which port has the server? It is 4310.")
}

#[test]
fn a_store_of_an_earlier_release_is_read_and_its_sessions_are_not_asked_about_again() {
    let stores = crate::support::root().join("tests/stores");
    let mut count = 0;
    for store in fs::read_dir(stores).unwrap().map(|entry| entry.unwrap().path()) {
        count += 1;
        let sandbox = Sandbox::new();
        sandbox.librarian(NOTE_EACH);
        copy(&store, &sandbox.store());
        let list = said(&mut sandbox.command("memory-list"));
        assert!(list.0 == Some(0) && list.1.contains("From "), "{}: {list:?}", store.display());
        let doctor = said(sandbox.command("memory-doctor").args(["--json"]));
        assert!(!doctor.1.contains("\"error\""), "{}: {doctor:?}", store.display());
        let id = consumed(&sandbox);
        let (code, out, err) = sandbox.consolidated(&[]);
        assert_eq!((code, sandbox.prompts().len()), (Some(0), 0), "{}: {out}{err}", store.display());
        assert!(sandbox.processed().contains(&id), "{}: {out}{err}", store.display());
        // What is new in it is.
        sandbox.talk(
            "s1",
            &[
                ("user", "Which port has the server? It is 4310."),
                ("assistant", "So it is."),
                ("user", "No, 4320."),
            ],
        );
        sandbox.hear("s1");
        assert_eq!(
            (sandbox.consolidated(&[]).0, sandbox.prompts().len()),
            (Some(0), 1),
            "{}",
            store.display()
        );
    }
    assert!(count > 0);
}

/// Every program that opens a store, and a use of it.
const USES: &[(&str, &[&str])] = &[
    ("memory-agents-md", &[]),
    ("memory-agents-md", &["--project"]),
    ("memory-capture", &["--title", "T", "--body", "B"]),
    ("memory-capture", &["--title", "T", "--body", "B", "--direct"]),
    ("memory-capture", &["--past", "1d", "--yes"]),
    ("memory-consolidate", &[]),
    ("memory-defrag", &[]),
    ("memory-doctor", &["--fix"]),
    ("memory-edit", &["AAAAAA"]),
    ("memory-import", &[concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")]),
    ("memory-install-cron", &["--print", "--scheduler", "crontab"]),
    ("memory-list", &[]),
    ("memory-page", &[]),
    ("memory-read", &["AAAAAA"]),
    ("memory-recall", &["one"]),
    ("memory-remove", &["AAAAAA"]),
    ("memory-review", &[]),
    ("memory-share", &["AAAAAA"]),
    ("memory-status", &[]),
    ("memory-sync", &[]),
    ("memory-update", &["AAAAAA", "--pin"]),
];
/// These open none, or do it only when they are asked something (memory_mcp.rs has that).
const NO_USES: &[&str] = &[
    "memory", "memory-config", "memory-install-hooks", "memory-mcp", "memory-uninstall-cron",
    "memory-uninstall-hooks",
];

#[test]
fn a_store_of_a_newer_version_is_refused_by_every_program_and_stays_as_it_is() {
    for program in crate::support::programs().iter().filter(|program| program.starts_with("memory")) {
        let is_used = USES.iter().any(|(name, _)| name == program);
        assert!(is_used != NO_USES.contains(&program.as_str()), "{program} is in both lists, or in none");
    }
    at_once(USES, |(program, args)| {
        let store = Store::new();
        store.note("AAAAAA", "One");
        let path = store.put(".agent-memory-version", "2\n");
        let (before, names) = (store.tree(), crate::support::store::names(&store.root()));
        let (code, out, err) = store.run(program, args);
        let told = format!("\"{}\" is of version 2; this program knows version 1; a newer", path.display());
        assert!(code == Some(2) && out.is_empty() && err.contains(&told), "{program} {args:?}: {out}{err}");
        assert_eq!((store.tree(), crate::support::store::names(&store.root())), (before, names), "{program}");
        store.put(".agent-memory-version", "many");
        let (code, _, err) = store.run(program, args);
        assert!(code == Some(2) && err.contains("has no version, but \"many\""), "{program}: {err}");
        // What cannot be read is not taken for none.
        store.put(".agent-memory-version", "1".repeat(5000));
        let (code, _, err) = store.run(program, args);
        assert!(code != Some(0) && err.contains(&format!("\"{}\"", path.display())), "{program}: {err}");
    });
}

#[test]
fn no_program_overwrites_a_state_file_of_a_newer_version() {
    let files = [
        "sessions.json", "asked.json", "tries.json", "defrag.json", "used.json", "projects.json",
        "change.json",
    ];
    at_once(&files, |file| {
        let store = Store::new();
        store.sandbox.librarian("do()");
        store.note("AAAAAA", "One");
        let newer = r#"{"version": 7, "x": {"y": 1}}"#;
        let path = store.put(&format!(".agent-memory/{file}"), newer);
        let mut told = 0;
        for (program, args) in USES {
            let (_, _, err) = store.run(program, args);
            assert!(!err.contains("panicked"), "{file}: {program}: {err}");
            assert_eq!(fs::read_to_string(&path).unwrap(), newer, "{file}: {program} {args:?}: {err}");
            told += usize::from(err.contains(&format!("{file}\" is of version 7")));
        }
        assert!(told > 0, "{file}: nobody says so");
        // Nor one whose version it does not understand.
        for version in ["\"2\"", "99999999999"] {
            let text = format!("{{\"version\": {version}}}");
            fs::write(&path, &text).unwrap();
            let (_, _, err) = store.run("memory-consolidate", &[]);
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{file}: {err}");
        }
    });
}
