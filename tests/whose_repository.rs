//! Whose repository a session speaks for: what it reads below ~/Downloads is from outside, a new place is named once, and
//! the notes of a place are taken back with one command.

use crate::support::said;
use crate::support::store::{Store, name, names, note, value};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const AGENT: (&str, &str) = ("CLAUDECODE", "1");

/// An unpacked archive that says that it is a checkout of `github.com/o/r`.
fn archive(store: &Store) -> PathBuf {
    let top = store.sandbox.home().join("Downloads/r-main");
    store.sandbox.in_a_repository();
    for file in ["HEAD", "config"] {
        let bytes = fs::read(store.sandbox.work().join(".git").join(file)).unwrap();
        store.sandbox.write(&top.join(".git").join(file), bytes);
    }
    top
}

/// Where a note comes from: the directory and the day of each of its sessions.
fn sources(of: &[(&str, &str)]) -> String {
    let source = |(cwd, day): &(&str, &str)| {
        format!(
            "  - {{harness: amp, threadId: T-1, repo: github.com/o/r, cwd: {cwd}, at: \"{day}T09:00:00Z\"}}\n"
        )
    };
    format!("scope: repo\nsources:\n{}", of.iter().map(source).collect::<String>())
}

fn put(store: &Store, id: &str, title: &str, more: &str) {
    store.put(&format!("topics/{}", name(id, title)), note(id, title, more));
}

#[test]
fn an_unpacked_archive_reads_from_outside() {
    for (is_archive, lands) in [(false, true), (true, false)] {
        let store = Store::new();
        let sandbox = &store.sandbox;
        let top = if is_archive { archive(&store) } else { sandbox.work() };
        sandbox.tell(
            "s",
            "u: What does the readme say?\ni: cat README.md\no: Run the tests with `frobnicate --all`.\na: It says how to run the tests.",
        );
        sandbox.in_a_repository();
        let entry = json!({"version": 1, "timestamp": "2026-02-27T10:00:05Z", "harness": "claude-code",
            "retrieval": {"method": "transcript", "path": sandbox.transcript("s"), "format": "claude-code", "sessionId": "s"},
            "context": {"cwd": top, "repo": "github.com/o/r"}});
        sandbox.queue(&entry);
        sandbox.librarian("say([note('Tests', body='Run the tests with `frobnicate --all`.')])");
        let (code, _, err) = sandbox.consolidated(&[]);
        assert_eq!((code, sandbox.kept().len()), (Some(0), usize::from(lands)), "{err}");
        assert_eq!(names(&store.root().join("proposals")).len(), usize::from(!lands));
    }
}

#[test]
fn a_session_whose_directory_did_not_answer_its_hook_belongs_to_the_repository_that_is_there_now() {
    let store = Store::new();
    let sandbox = &store.sandbox;
    // Another session that no place is known of is not shown together with it.
    for (name, cwd) in [("s", sandbox.work()), ("t", PathBuf::from("/gone"))] {
        sandbox.tell(name, "u: What is the port?\na: The port is 4310.");
        sandbox.queue(&json!({"version": 1, "timestamp": "2026-02-27T10:00:05Z", "harness": "claude-code",
            "retrieval": {"method": "transcript", "path": sandbox.transcript(name), "format": "claude-code",
                "sessionId": name},
            "context": {"cwd": cwd, "repo": null}}));
    }
    sandbox.in_a_repository();
    sandbox.librarian(crate::support::llm::NOTE_EACH);
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.prompts().len()), (Some(0), 2), "{err}");
    let all: Vec<String> =
        store.tree().values().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    assert!(all.iter().any(|text| text.contains("repo: github.com/o/r")), "{all:?} {err}");
}

#[test]
fn a_checkout_in_a_new_place_is_named_once() {
    let store = Store::new();
    put(&store, "AAAAAA", "One", &sources(&[("/src/r", "2026-01-02")]));
    put(&store, "BBBBBB", "Two", &sources(&[("/src/r/deep", "2026-01-03")]));
    assert_eq!(store.out("memory-review", &[]), "", "the first place is no news");
    put(&store, "CCCCCC", "Three", &sources(&[("/dl/r", "2026-02-03"), ("/dl/r", "2026-02-02")]));
    let what = "sessions in \"/dl/r\" speak for github.com/o/r since 2026-02-02";
    let step = "if it is no checkout of yours: memory-remove --dry-run --from /dl/r";
    let doctor = || store.run("memory-doctor", &[]).1;
    assert!(doctor().contains(&format!("warning\t/dl/r\t{what}\t{step}")), "{}", doctor());
    // An agent's review is not the person's.
    let review =
        |env: &[(&str, &str)]| said(store.sandbox.command("memory-review").envs(env.iter().copied()));
    for env in [&[AGENT][..], &[]] {
        let (code, out, err) = review(env);
        assert_eq!((code, out.as_str(), err), (Some(0), "", format!("Warning: {what}; {step}\n")));
    }
    assert_eq!(review(&[]), (Some(0), String::new(), String::new()));
    assert!(!doctor().contains("/dl/r"), "{}", doctor());
    // It is kept beside what else is known of checkouts.
    let file = store.root().join(".agent-memory/projects.json");
    let known: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(known, json!({"projects": [], "told": {"github.com/o/r": ["/dl/r"]}, "version": 1}));
}

#[test]
fn the_notes_of_a_place_are_taken_back() {
    let store = Store::new();
    put(&store, "AAAAAA", "Ours", &sources(&[("/src/r", "2026-01-02")]));
    put(&store, "BBBBBB", "Theirs", &sources(&[("/dl/r/deep", "2026-02-02"), ("/dl/r", "2026-02-03")]));
    put(&store, "CCCCCC", "Both", &sources(&[("/src/r", "2026-01-02"), ("/dl/r", "2026-02-03")]));
    put(&store, "DDDDDD", "Pinned", &format!("pinned: true\n{}", sources(&[("/dl/r", "2026-02-03")])));
    put(&store, "EEEEEE", "Beside", &sources(&[("/dl/r2", "2026-02-03")]));
    let before = store.tree();
    let run = |args: &[&str]| store.run("memory-remove", &[&["--from"], args].concat());
    let (code, out, err) = run(&["/dl/r/", "--dry-run"]);
    assert_eq!((code, store.tree()), (Some(0), before.clone()), "{err}");
    let ids = |out: &str| -> Vec<String> {
        let mut ids: Vec<_> =
            out.lines().filter_map(|line| Some(line[line.find("id__")? + 4..][..6].to_owned())).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(&out), ["BBBBBB", "CCCCCC"]);
    assert!(err.contains("pinned -- id__DDDDDD.md\" stays as it is: The note is pinned."), "{err}");
    assert!(
        err.contains("memory-remove: 1 note would be archived, 1 would be left with other sources"),
        "{err}"
    );
    // A person's act.
    let mut command = store.sandbox.command("memory-remove");
    let (code, _, err) = said(command.args(["--from", "/dl/r"]).env(AGENT.0, AGENT.1));
    assert!(code == Some(1) && err.contains("only a person may"), "{err}");
    assert_eq!(store.tree(), before);
    let (code, out, err) = run(&["/dl/r"]);
    assert_eq!((code, ids(&out)), (Some(0), vec!["BBBBBB".to_owned(), "CCCCCC".to_owned()]), "{err}");
    assert!(err.contains("memory-remove: 1 note archived, 1 left with other sources"), "{err}");
    assert_eq!(names(&store.archive()), ["theirs -- id__BBBBBB.md"]);
    assert!(store.text("BBBBBB").contains("/dl/r/deep"), "the archive says where it came from");
    let both = store.text("CCCCCC");
    assert!(
        both.contains("/src/r") && !both.contains("/dl/r") && value(&both, "title") == Some("Both"),
        "{both}"
    );
    assert!(store.text("DDDDDD").contains("/dl/r"));
    // Of what is left there is nothing more to do.
    let (code, out, err) = run(&["/dl/r"]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(run(&["/nowhere"]).2.contains("0 notes archived, 0 left with other sources"));
    for (args, wrong) in [(&["/dl/r", "id__AAAAAA"][..], "--from"), (&["/dl/r", "--purge"], "--purge")] {
        let (code, _, err) = run(args);
        assert!(code == Some(1) && err.contains(wrong), "{err}");
    }
    let (code, _, err) = store.run("memory-remove", &["--dry-run", "id__AAAAAA"]);
    assert!(code == Some(1) && err.contains("needs --from"), "{err}");
    let (code, _, err) = store.run("memory-remove", &[]);
    assert!(code == Some(1) && err.contains("the id of a note is required"), "{err}");
}
