//! `memory-read` and `memory-remove`: ids, aliases, successors, and many at once on one note.

use crate::support::store::{Store, note, value};
use crate::support::{Said, closed_pipe};
use serde_json::Value;
use std::fs;
use std::process::Stdio;

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
}

/// A merged note: `BBBBBB` was merged into `AAAAAA`, and is in the archive.
fn merged() -> Store {
    let store = Store::new();
    store.put(
        "topics/successor -- id__AAAAAA.md",
        note("AAAAAA", "Heir", "aliases: [id__BBBBBB, id__CCCCCC]\n"),
    );
    store.put("archive/old -- id__BBBBBB.md", note("BBBBBB", "Old", "supersededBy: id__AAAAAA\n"));
    store
}

#[test]
fn every_spelling_of_an_id_finds_the_note_and_counts_the_read() {
    let store = Store::new();
    store.note("a1B2c3", "Ports");
    for (n, spelling) in ["id__a1B2c3", "a1B2c3", "[[id__a1B2c3]]"].iter().enumerate() {
        let out = store.out("memory-read", &[spelling]);
        assert_eq!(value(&out, "used"), Some((n + 1).to_string().as_str()), "{out}");
        assert_eq!(value(&out, "last_used"), Some("2026-02-28T15:04:05Z"));
        assert_eq!(store.text("a1B2c3"), out, "what is printed is what the file holds");
    }
    let before = store.tree();
    let out = store.out("memory-read", &["--no-count", "--json", "a1B2c3", "a1B2c3"]);
    let lines: Vec<Value> = out.lines().map(json).collect();
    assert_eq!((lines.len(), &lines[0]), (2, &lines[1]));
    assert_eq!((&lines[0]["used"], &lines[0]["body"]), (&3.into(), &"Body of Ports.\n".into()));
    assert!(store.tree() == before, "--no-count changed a file");
}

#[test]
fn an_alias_and_a_merged_note_lead_to_the_successor() {
    let store = merged();
    for id in ["BBBBBB", "CCCCCC", "AAAAAA"] {
        assert_eq!(value(&store.out("memory-read", &[id]), "title"), Some("Heir"), "{id}");
    }
    assert_eq!(value(&store.text("AAAAAA"), "used"), Some("3"));
    store.out("memory-update", &["BBBBBB", "--title", "Successor"]);
    assert_eq!(store.names(), ["archive/old -- id__BBBBBB.md", "topics/successor -- id__AAAAAA.md"]);
    assert_eq!(value(&store.out("memory-read", &["CCCCCC"]), "title"), Some("Successor"));
}

#[test]
fn a_cycle_of_successors_ends() {
    let store = Store::new();
    store.put("archive/a -- id__AAAAAA.md", note("AAAAAA", "A", "supersededBy: id__BBBBBB\n"));
    store.put("archive/b -- id__BBBBBB.md", note("BBBBBB", "B", "supersededBy: id__AAAAAA\n"));
    store.put("archive/c -- id__CCCCCC.md", note("CCCCCC", "C", "supersededBy: id__ZZZZZZ\n"));
    let read = store.out("memory-read", &["--no-count", "AAAAAA"]);
    assert!(["A", "B"].contains(&value(&read, "title").unwrap()), "{read}");
    // If the successor is deleted, the error names the successor.
    let (code, _, err) = store.run("memory-read", &["CCCCCC"]);
    assert!(code == Some(1) && err.contains("id__ZZZZZZ"), "{err}");
}

#[test]
fn remove_and_purge_do_not_follow_aliases() {
    for args in [&["BBBBBB"][..], &["--purge", "BBBBBB"]] {
        let store = merged();
        let out = store.out("memory-remove", args);
        assert!(out.ends_with("archive/old -- id__BBBBBB.md\n"), "{out}");
        let left = if args.len() == 1 { 2 } else { 1 };
        assert_eq!((store.tree().len(), value(&store.text("AAAAAA"), "title")), (left, Some("Heir")));
        let (code, _, err) = store.run("memory-remove", &["CCCCCC"]);
        assert_eq!(code, Some(1));
        assert!(err.starts_with("memory-remove: no note has the id \"id__CCCCCC\""), "{err}");
        assert_eq!(store.tree().len(), left);
    }
}

#[test]
fn removing_what_is_archived_already_brings_agents_md_up_to_date() {
    let store = Store::new();
    store.model("do()");
    let path = store.noted("aaaaaa", "Ports", "tier: hot\n", "It is 4310.");
    assert_eq!(store.run("memory-agents-md", &[]).0, Some(0));
    assert!(store.section().contains("4310"), "{}", store.section());
    // As a run leaves it that was killed between the two.
    fs::create_dir_all(store.archive()).unwrap();
    fs::rename(&path, store.archive().join(path.file_name().unwrap())).unwrap();
    assert_eq!(store.run("memory-remove", &["aaaaaa"]).0, Some(0));
    assert!(!store.section().contains("4310"), "{}", store.section());
}

#[test]
fn links_still_resolve_after_a_new_title_and_in_the_archive() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    store.note("BBBBBB", "Two");
    store.sandbox.file("body", "See [[id__AAAAAA]].\n");
    store.out("memory-update", &["BBBBBB", "--body", "body"]);
    store.out("memory-update", &["AAAAAA", "--title", "Of another name"]);
    store.out("memory-remove", &["[[id__AAAAAA]]"]);
    assert_eq!(store.names(), ["archive/of-another-name -- id__AAAAAA.md", "topics/two -- id__BBBBBB.md"]);
    assert!(store.text("BBBBBB").ends_with("---\n\nSee [[id__AAAAAA]].\n"));
    assert_eq!(value(&store.out("memory-read", &["[[id__AAAAAA]]"]), "title"), Some("Of another name"));
    // Restored by hand, as the help says.
    fs::rename(store.archive().join("of-another-name -- id__AAAAAA.md"), store.topics().join("x.md"))
        .unwrap();
    assert_eq!(store.out("memory-list", &["--json"]).lines().count(), 2);
}

#[test]
fn a_note_is_not_archived_over_an_existing_file() {
    let store = Store::new();
    let path = store.note("AAAAAA", "One");
    let name = path.file_name().unwrap().to_str().unwrap();
    store.put(&format!("archive/{name}"), "somebody's");
    let (code, out, err) = store.run("memory-remove", &["AAAAAA"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("cannot be archived") && err.contains("archive/one"), "{err}");
    assert_eq!(store.tree()[&format!("archive/{name}")], b"somebody's");
    assert_eq!(store.tree()[&format!("topics/{name}")], note("AAAAAA", "One", "").as_bytes());
}

#[test]
fn what_is_listed_can_be_read_and_removed_through_a_pipe() {
    let store = Store::new();
    for (id, title) in [("AAAAAA", "Retry one"), ("BBBBBB", "Retry two"), ("CCCCCC", "Ports")] {
        store.note(id, title);
    }
    let found = store.out("memory-list", &["--json", "--query", "retry"]);
    assert_eq!(found.lines().count(), 2);
    let piped = |program: &str, args: &[&str], input: &str| {
        let output = store.sandbox.command(program).args(args).write_stdin(input).output().unwrap();
        (output.code(), output.out(), output.err())
    };
    let (code, out, err) = piped("memory-read", &["-"], &found);
    assert_eq!((code, err.as_str(), out.matches("title: Retry").count()), (Some(0), "", 2), "{out}");
    let (code, out, _) = piped("memory-read", &["--json", "-"], "\n id__CCCCCC \r\n[[id__AAAAAA]]\n\n");
    let titles: Vec<Value> = out.lines().map(|line| json(line)["title"].clone()).collect();
    assert_eq!((code, titles), (Some(0), vec!["Ports".into(), "Retry one".into()]));
    let (code, out, _) = piped("memory-remove", &["-"], &found);
    assert_eq!((code, out.lines().count(), store.names().len()), (Some(0), 2, 3));
    assert_eq!(store.out("memory-list", &[]).lines().count(), 1);
    // With nothing found there is nothing to do.
    for program in ["memory-read", "memory-remove"] {
        assert_eq!(piped(program, &["-"], ""), (Some(0), String::new(), String::new()));
    }
}

#[test]
fn an_invalid_id_changes_nothing_and_is_quoted_in_the_error() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let before = store.tree();
    for word in ["../../etc/passwd", "id__AAAAAA/..", "/x", "", "id__AAAAA0", "AAAAAA.md", "a\u{1b}[31m\nb"] {
        for program in ["memory-read", "memory-remove", "memory-update"] {
            let args = if program == "memory-update" { &["--pin", word][..] } else { &["AAAAAA", word] };
            let (code, out, err) = store.run(program, args);
            assert_eq!((code, out.as_str()), (Some(1), ""), "{program} {word:?}");
            assert!(
                err.contains("no note has the id, the title or the file name \"") && err.lines().count() == 1,
                "{err}"
            );
            assert!(!err.contains('\u{1b}'), "{err:?}");
        }
    }
    for (line, what) in [
        ("{\"id\": \"../x\"}", "\"../x\" is not a note's id"),
        ("{\"id\": 7}", "an object has neither a string \"id\" nor a list \"notes\""),
        ("{\"ID\": \"id__AAAAAA\"}", "an object has neither a string \"id\" nor a list \"notes\""),
        ("{\"id\": \"id__AAAAAA\"", "not JSON"),
        ("AAAAAA BBBBBB", "is not a note's id"),
        ("\0\u{1b}", "is not a note's id"),
    ] {
        for program in ["memory-read", "memory-remove"] {
            let mut command = store.sandbox.command(program);
            let output = command.args(["AAAAAA", "-"]).write_stdin(line).output().unwrap();
            assert_eq!((output.code(), output.out().as_str()), (Some(1), ""), "{program} {line:?}");
            assert!(output.err().contains(what) && output.err().lines().count() == 1, "{}", output.err());
        }
    }
    assert!(store.tree() == before, "something was changed");
}

#[test]
fn an_unknown_id_is_exit_one_and_the_others_are_still_handled() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    store.note("BBBBBB", "Two");
    let (code, out, err) = store.run("memory-read", &["AAAAAB", "BBBBBB", "ZZZZZZ"]);
    assert_eq!((code, out.matches("title: ").count()), (Some(1), 1));
    let errors: Vec<&str> = err.lines().collect();
    let near = "memory-read: no note has the id \"id__AAAAAB\"; did you mean \"id__AAAAAA\"?";
    assert_eq!((errors[0], errors.len()), (near, 2), "{err}");
    assert!(errors[1].starts_with("memory-read: no note has the id \"id__ZZZZZZ\""), "{err}");
    let (code, out, err) = store.run("memory-read", &["--json", "ZZZZZZ"]);
    let error = json(&err);
    assert_eq!((code, out.as_str(), &error["exit_code"]), (Some(1), "", &1.into()));
    assert_eq!(error["error"]["kind"], "not_found");
    let (code, _, _) = store.run("memory-remove", &["ZZZZZZ", "BBBBBB"]);
    assert_eq!((code, store.names()[0].as_str()), (Some(1), "archive/two -- id__BBBBBB.md"));
}

#[test]
fn without_a_store_nothing_is_found_and_no_store_is_created() {
    let store = Store::new();
    assert_eq!(store.out("memory-list", &[]), "");
    assert_eq!(store.out("memory-list", &["--archived", "--json", "--query", "x"]), "");
    for (program, more) in [("memory-read", ""), ("memory-remove", "--purge"), ("memory-update", "--pin")] {
        let args: Vec<&str> = ["AAAAAA", more].into_iter().filter(|arg| !arg.is_empty()).collect();
        let (code, out, err) = store.run(program, &args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{program}");
        assert!(err.contains("no note has the id \"id__AAAAAA\""), "{err}");
    }
    assert!(!store.root().exists(), "a store was made");
}

#[test]
fn a_closed_pipe_does_not_stop_the_counting() {
    let store = Store::new();
    let big = format!("{}{}", note("AAAAAA", "One", ""), "x\n".repeat(100_000));
    store.put("topics/one -- id__AAAAAA.md", big);
    store.note("BBBBBB", "Two");
    let mut command = store.sandbox.std_command("memory-read");
    let output = command.args(["AAAAAA", "BBBBBB"]).stdout(closed_pipe()).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    for id in ["AAAAAA", "BBBBBB"] {
        assert_eq!(value(&store.text(id), "used"), Some("1"), "{id}");
    }
}

#[test]
fn a_hundred_readers_at_once_are_a_hundred_reads() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let start = || {
        let mut command = store.sandbox.std_command("memory-read");
        command.arg("AAAAAA").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let readers: Vec<_> = (0..100).map(|_| start()).collect();
    for reader in readers {
        let output = reader.wait_with_output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    }
    assert_eq!(value(&store.text("AAAAAA"), "used"), Some("100"));
    assert_eq!(store.names().len(), 1, "{:?}", store.names());
}

#[test]
fn readers_and_writers_at_once_lose_no_change() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let start = |program: &str, args: &[String]| {
        let mut command = store.sandbox.std_command(program);
        command.arg("AAAAAA").args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut all = Vec::new();
    for n in 0..12 {
        all.push(start("memory-read", &[]));
        all.push(start("memory-update", &["--tag".to_owned(), format!("+t{n}")]));
        all.push(start("memory-update", &["--title".to_owned(), format!("Title {n}")]));
        // This takes no lock, so it also runs while the file is being renamed.
        all.push(start("memory-read", &["--no-count".to_owned()]));
    }
    for each in all {
        let output = each.wait_with_output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    }
    let text = store.text("AAAAAA");
    assert_eq!((value(&text, "used"), store.names().len()), (Some("12"), 1), "{:?}", store.names());
    for n in 0..12 {
        assert!(text.contains(&format!("topic__t{n}")), "{text}");
    }
    assert!(value(&text, "title").unwrap().starts_with("Title "), "{text}");
}

#[test]
fn a_note_removed_while_it_is_read_ends_up_in_one_place() {
    let store = Store::new();
    for n in 0..4 {
        let id = format!("AAAAA{}", n + 1);
        store.note(&id, "One");
        let start = |program: &str| {
            let mut command = store.sandbox.std_command(program);
            command.arg(&id).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let all = ["memory-read", "memory-remove", "memory-read", "memory-remove", "memory-read"].map(start);
        for each in all {
            let output = each.wait_with_output().unwrap();
            assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
        }
        let names = store.names();
        let its: Vec<_> = names.iter().filter(|name| name.contains(&id)).collect();
        assert_eq!(its, [&format!("archive/one -- id__{id}.md")], "{names:?}");
        assert_eq!(value(&store.text(&id), "used"), Some("3"));
    }
}
