//! `memory-defrag --undo`: the notes as they were, byte for byte, and nothing of what came after is lost.

use crate::support::Said;
use crate::support::defrag::{MERGE_TWO, NOTHING, ONE_MERGED};
use crate::support::store::{Store, names, value};
use serde_json::Value;
use std::fs;
use std::process::Command;

const EVERYTHING: &str = "do(merge('id__aaaaaa', 'id__bbbbbb'), retag('id__cccccc', 'topic__x'), rename('id__cccccc', 'Third'),
   tier('id__cccccc', 'hot'), split('id__dddddd', part('One 1.'), part('Two 2.', 'Second')), archive('id__eeeeee'))";

/// Notes of every kind, some with the odd bytes that people leave.
fn fill(store: &Store) {
    store.with_two();
    store.put(
        "topics/by hand.md",
        b"\xef\xbb\xbf---\r\nid: id__cccccc\r\ntitle: C # note\r\nmood: {x: 1}\r\nscope: repo\r\nsources:\r\n  - {harness: amp, repo: h/o/r}\r\n---\r\n\r\nBody \xff\r\n",
    );
    store.noted("dddddd", "Two things", "", "One 1.\n\nTwo 2.");
    for n in 0..8 {
        store.noted(
            &format!("eeeee{}", ["e", "f", "g", "h", "i", "j", "k", "m"][n]),
            &format!("Old {n}"),
            "",
            "Plain.",
        );
    }
}

#[test]
fn what_was_deleted_for_good_is_in_no_batch_and_is_not_brought_back() {
    let store = Store::new();
    store.with_two();
    store.noted("cccccc", "Kept", "", "A third one.");
    store.model(
        "do(merge('id__aaaaaa', 'id__bbbbbb'), rename('id__cccccc', 'Another'), tier('id__aaaaaa', 'hot'))",
    );
    store.tidied(&[]);
    let holds = |text: &str| {
        let found = Command::new("grep").args(["-rl", text]).arg(store.root().join(".agent-memory")).output();
        found.unwrap().out()
    };
    assert!(!holds("port 8081").is_empty() && store.section().contains("port 8081"));
    let (code, _, err) = store.run("memory-remove", &["--purge", "bbbbbb", "aaaaaa"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(holds("port 8081"), "");
    assert!(!store.section().contains("port 8081"), "{}", store.section());
    let (code, out, err) = store.defrag(&["--undo"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("1 note is as before "), "{out}");
    for id in ["aaaaaa", "bbbbbb"] {
        assert!(err.contains(&format!("id__{id} is not brought back: it was deleted for good")), "{err}");
    }
    assert_eq!(store.out("memory-list", &[]).lines().count(), 1);
    assert!(store.out("memory-list", &[]).contains("\tKept"), "{}", store.out("memory-list", &[]));
}

#[test]
fn a_merge_stays_where_one_of_its_notes_was_deleted_for_good() {
    let store = Store::new();
    store.with_two();
    store.model("do(merge('id__aaaaaa', 'id__bbbbbb'))");
    store.tidied(&[]);
    let merged = store.out("memory-read", &["--no-count", "aaaaaa"]);
    let (code, _, err) = store.run("memory-remove", &["--purge", "bbbbbb"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    // What it took over would be nowhere.
    let (_, out, err) = store.defrag(&["--undo"]);
    assert!(err.contains("id__bbbbbb is not brought back"), "{out}{err}");
    assert_eq!(store.out("memory-read", &["--no-count", "aaaaaa"]), merged);
}

#[test]
fn a_batch_that_is_not_at_its_end_keeps_what_it_needs_and_is_named() {
    let store = Store::new();
    store.with_two();
    store.model(MERGE_TWO);
    assert_eq!(store.defrag(&["--dry-run"]).0, Some(0));
    let (code, _, err) = store.run("memory-remove", &["--purge", "bbbbbb"]);
    assert!(code == Some(0) && err.contains("/defrag/batch__") && err.contains("may hold text"), "{err}");
    // An archived note stays in it, so that it can be taken back.
    let (code, _, err) = store.run("memory-remove", &["aaaaaa"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
}

#[test]
fn the_tree_is_as_before_with_and_without_git() {
    for has_history in [false, true] {
        let store = if has_history { Store::with_history() } else { Store::new() };
        fill(&store);
        if has_history {
            store.model_with_history(EVERYTHING)
        } else {
            store.model(EVERYTHING)
        }
        let before = store.tree();
        let (code, out, err) = store.defrag(&[]);
        assert_eq!((code, err.as_str()), (Some(0), ""));
        assert_eq!(out, "1 merged, 1 split, 1 renamed, 1 archived, 1 re-tiered, 1 retagged\n");
        assert_ne!(store.tree(), before);
        let out = store.tidied(&["--undo"]);
        assert!(out.starts_with("5 notes are as before batch__"), "{out}");
        assert_eq!(store.tree(), before);
        assert!(!store.section().contains("Third"), "{}", store.section());
        // Nothing is asked about that somebody took back.
        assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 1));
        assert_eq!(store.tree(), before);
        let (code, out, err) = store.defrag(&["--undo"]);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.contains("there is no defrag to take back"), "{err}");
        assert_eq!(store.tree(), before);
    }
}

#[test]
fn reads_stay_counted() {
    let store = Store::new();
    store.with_two();
    store.model(MERGE_TWO);
    assert_eq!(store.tidied(&[]), ONE_MERGED);
    for _ in 0..2 {
        assert_eq!(store.run("memory-read", &["id__bbbbbb"]).0, Some(0));
    }
    let (result, _) = store.tidied_json(&["--undo"]);
    assert_eq!(result["notes"], 2, "{result}");
    assert_eq!(value(&store.text("id__aaaaaa"), "used"), Some("2"));
    assert_eq!(value(&store.text("id__bbbbbb"), "used"), None);
    assert_eq!(names(&store.archive()).len(), 0);
}

#[test]
fn after_an_edit_it_refuses_and_names_the_file() {
    for path in ["topics/guards -- id__aaaaaa.md", "archive/actors -- id__bbbbbb.md"] {
        let store = Store::new();
        fill(&store);
        store.model(EVERYTHING);
        assert_eq!(store.defrag(&[]).0, Some(0));
        let file = store.root().join(path);
        let edited = fs::read_to_string(&file).unwrap() + "\nAn afterthought.\n";
        fs::write(&file, edited).unwrap();
        let (tree, section) = (store.tree(), store.section());
        let (code, out, err) = store.defrag(&["--undo"]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(path.split_once('/').unwrap().1) && err.contains("changed since"), "{err}");
        assert_eq!((store.tree(), store.section()), (tree, section));
    }
    for what in ["removed", "renamed"] {
        let store = Store::new();
        fill(&store);
        store.model(EVERYTHING);
        assert_eq!(store.defrag(&[]).0, Some(0));
        let file = store.topics().join("guards -- id__aaaaaa.md");
        if what == "removed" {
            fs::remove_file(&file)
        } else {
            fs::rename(&file, store.topics().join("x.md"))
        }
        .unwrap();
        let tree = store.tree();
        let (code, _, err) = store.defrag(&["--undo"]);
        assert_eq!((code, store.tree()), (Some(1), tree), "{err}");
        assert!(err.contains("guards -- id__aaaaaa.md"), "{err}");
    }
}

#[test]
fn a_note_captured_since_is_kept() {
    let store = Store::new();
    store.with_two();
    let before = store.tree();
    store.model(MERGE_TWO);
    assert_eq!(store.tidied(&[]), ONE_MERGED);
    let (code, _, err) =
        store.run("memory-capture", &["--direct", "--title", "New", "--body", "A new note."]);
    assert_eq!(code, Some(0), "{err}");
    store.tidied(&["--undo"]);
    let mut after = store.tree();
    let new = after.keys().find(|name| name.starts_with("topics/new ")).unwrap().clone();
    after.remove(&new);
    assert_eq!(after, before);
}

#[test]
fn only_the_last_one_that_changed_something_is_taken_back() {
    let store = Store::new();
    store.with_two();
    store.model(MERGE_TWO);
    assert_eq!(store.tidied(&[]), ONE_MERGED);
    let between = store.tree();
    store.model("do(tier('id__aaaaaa', 'hot'))");
    assert!(store.tidied(&["--force"]).ends_with("1 re-tiered\n"));
    // One that changes nothing is none.
    assert_eq!(store.tidied(&["--force"]), NOTHING);
    let out = store.tidied(&["--undo"]);
    assert!(out.starts_with("1 note is as before "), "{out}");
    assert_eq!(store.tree(), between);
    assert_eq!(store.defrag(&["--undo"]).0, Some(1));
    assert_eq!(store.tree(), between);
}

#[test]
fn a_reply_brought_by_hand_and_the_reads_of_a_dry_run_are_no_other_case() {
    let store = Store::new();
    store.with_two();
    let before = store.tree();
    store.model(MERGE_TWO);
    let (code, out, _) = store.defrag(&["--dry-run", "--json"]);
    assert_eq!(code, Some(0));
    assert_eq!(store.defrag(&["--undo"]).0, Some(1), "a dry run is nothing to take back");
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(store.tidied(&["--apply", result["reply"].as_str().unwrap()]), ONE_MERGED);
    store.tidied(&["--undo", "--quiet"]);
    assert_eq!(store.tree(), before);
}

#[test]
fn a_part_of_a_split_that_somebody_renamed_is_a_change() {
    for change in [&["memory-update", "--title", "Mine"][..], &["memory-remove"]] {
        let store = Store::new();
        store.noted("dddddd", "Two things", "", "One 1.\n\nTwo 2.");
        store.model("do(split('id__dddddd', part('One 1.'), part('Two 2.', 'Second')))");
        store.defrag(&[]);
        let part = store.names().into_iter().find(|name| name.contains("/second")).unwrap();
        let id = part.trim_end_matches(".md").rsplit(' ').next().unwrap();
        let (code, _, err) = store.run(change[0], &[&[id], &change[1..]].concat());
        assert_eq!(code, Some(0), "{err}");
        let tree = store.tree();
        let (code, out, err) = store.defrag(&["--undo"]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(part.split_once('/').unwrap().1) && err.contains("since"), "{err}");
        assert_eq!(store.tree(), tree);
    }
}

#[test]
fn what_was_named_as_gone_is_in_the_archive_until_it_is_taken_back() {
    for script in [
        "merge('id__aaaaaa', 'id__bbbbbb', body='The server listens on 4320, see src/a.rs.', gone=['4310'])",
        "rewrite('id__aaaaaa', 'The server listens, see src/a.rs.', gone=['4310'])",
        "{**split('id__aaaaaa', part('The server listens.'), part('See src/a.rs.', 'Two')), 'gone': ['4310']}",
    ] {
        let store = Store::new();
        store.noted("aaaaaa", "Port", "updatedAt: 1000\n", "The server listens on 4310, see src/a.rs.");
        store.noted("bbbbbb", "New port", "updatedAt: 2000\n", "The server listens on 4320.");
        let before = store.tree();
        store.model(&format!("do({script})"));
        let (result, err) = store.tidied_json(&[]);
        assert_eq!(
            (&result["operations"][0]["gone"], err.as_str()),
            (&serde_json::json!(["4310"]), ""),
            "{result}"
        );
        let old = store.text("archive/port -- ");
        assert!(old.contains("listens on 4310") && old.contains("supersededBy: id__aaaaaa"), "{old}");
        assert!(!store.section().contains("4310"), "{}", store.section());
        store.tidied(&["--undo"]);
        assert_eq!(store.tree(), before, "{script}");
    }
}

#[test]
fn an_undo_that_was_killed_and_comes_too_late_says_that_nothing_is_as_before() {
    let store = Store::new();
    store.with_two();
    store.model("do(retag('id__aaaaaa', 'topic__x'), retag('id__bbbbbb', 'topic__x'))");
    store.tidied(&[]);
    let batch = fs::read_dir(store.root().join(".agent-memory/defrag")).unwrap().next().unwrap().unwrap();
    fs::write(batch.path().join("undoing"), b"").unwrap();
    let edited = fs::read_dir(store.root().join("topics")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&edited).unwrap() + "More.\n";
    fs::write(&edited, &text).unwrap();
    let (code, out, err) = store.defrag(&["--undo"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("0 notes are as before "), "{out}");
    assert!(err.contains("not taken back: ") && err.contains("it has been changed since"), "{err}");
    assert_eq!(fs::read_to_string(&edited).unwrap(), text);
}
