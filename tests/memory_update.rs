//! `memory-update`: what changes, what stays, and what is refused.

use crate::support::store::{Store, name, note, value};
use crate::support::{Said, mode, set_mode, symlink};
use serde_json::Value;
use std::fs;

const NOW_MS: &str = "1772291045000";

/// Changes a note: the store, and what the program prints.
fn updated(args: &[&str]) -> (Store, String) {
    let store = Store::new();
    store.put("topics/one -- topic__a id__AAAAAA.md", note("AAAAAA", "One", "tags: [topic__a]\n"));
    let out = store.out("memory-update", &[&["AAAAAA"], args].concat());
    (store, out)
}

#[test]
fn each_flag_changes_its_key_and_updated_at() {
    for (args, key, expected) in [
        (&["--title", "New  one"][..], "title", "New  one"),
        (&["--summary", "In short."], "summary", "In short."),
        (&["--summary", "two\nlines"], "summary", "two lines"),
        (&["--tag", "+b", "--tag=+area__c"], "tags", "[topic__a, topic__b, area__c]"),
        (&["--tag", "-a", "--tag", "+b"], "tags", "[topic__b]"),
        (&["--tag", "-topic__a"], "tags", "[]"),
        (&["--status", "consolidated"], "status", "consolidated"),
        (&["--status", "promoted"], "tier", "hot"),
        (&["--tier", "hot"], "status", "promoted"),
        (&["--tier", "cold"], "tier", "cold"),
        (&["--scope", "repo"], "scope", "repo"),
        (&["--pin"], "pinned", "true"),
        (&["--unpin", "--tier=cold"], "tier", "cold"),
    ] {
        let (store, out) = updated(args);
        let text = store.text("AAAAAA");
        assert_eq!(value(&text, key), Some(expected), "{args:?}: {text}");
        assert_eq!((value(&text, "updatedAt"), value(&text, "id")), (Some(NOW_MS), Some("id__AAAAAA")));
        assert!(text.ends_with("---\n\nBody of One.\n"), "{text}");
        assert_eq!(out.trim_end(), store.root().join(&store.names()[0]).to_str().unwrap());
    }
}

#[test]
fn the_file_name_follows_title_and_tags() {
    for (args, expected) in [
        (&["--title", "Größe 2"][..], "größe-2 -- topic__a id__AAAAAA.md"),
        (&["--tag", "+b"], "one -- topic__a topic__b id__AAAAAA.md"),
        (&["--tag", "-a", "--title", "../x"], "x -- id__AAAAAA.md"),
        (&["--summary", "x"], "one -- topic__a id__AAAAAA.md"),
    ] {
        let (store, _) = updated(args);
        assert_eq!(store.names(), [format!("topics/{expected}")]);
    }
}

#[test]
fn an_unchanged_note_is_not_written() {
    let store = Store::new();
    let path = store.note("AAAAAA", "One");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    for args in [&["--title", "One"][..], &["--unpin"], &["--tag", "-x"], &["--tier", "warm"]] {
        store.out("memory-update", &[&["AAAAAA"], args].concat());
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), note("AAAAAA", "One", ""));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
}

#[test]
fn wrong_arguments_change_nothing() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    store.sandbox.file("blank", " \n\n");
    store.sandbox.file("big", "x".repeat(10 << 20));
    for (args, what) in [
        (&["AAAAAA"][..], "no change is given; see --help for the changes that are possible"),
        (&[], "the id of a note is required; see them with: memory-list"),
        (&["AAAAAA", "BBBBBB", "--pin"], "unexpected argument \"BBBBBB\"; see --help"),
        (&["AAAAAA", "--title", " "], "option \"--title\" is empty"),
        (
            &["AAAAAA", "--tag", "x"],
            "option \"--tag\": \"x\" has no sign; write +x to add it, -x to remove it",
        ),
        (
            &["AAAAAA", "--tag", "+a/b"],
            "option \"--tag\": \"a/b\" is not a tag; write topic__x or area__x, with a-z, 0-9 and - for x, at most 80 bytes",
        ),
        (
            &["AAAAAA", "--tier=hot", "--status=captured"],
            "a captured note cannot be hot; a note is promoted exactly while it is hot; give one of the two",
        ),
        (
            &["AAAAAA", "--body", "blank"],
            "\"blank\" holds no text; nothing is changed; memory-remove takes a note out of use",
        ),
        (
            &["AAAAAA", "--body", "none"],
            "cannot open file \"none\": No such file or directory; --body takes a file; to give the text itself, pipe it in: --body -",
        ),
        (&["AAAAAA", "--pin", "--unpin"], "options \"--pin\" and \"--unpin\" do not go together"),
        (
            &["AAAAAA", "--body", "big"],
            "\"big\" is larger than 1 MiB; --body takes a file; to give the text itself, pipe it in: --body -",
        ),
        (
            &["AAAAAA", "--body", "-"],
            "stdin holds no text; nothing is changed; memory-remove takes a note out of use",
        ),
        (
            &["AAAAAA", "--body", "."],
            "\".\" is not a regular file; --body takes a file; to give the text itself, pipe it in: --body -",
        ),
    ] {
        let (code, out, err) = store.run("memory-update", args);
        assert_eq!((code, out.as_str(), err), (Some(1), "", format!("memory-update: {what}\n")), "{args:?}");
    }
    assert_eq!(store.text("AAAAAA"), note("AAAAAA", "One", ""));
}

#[test]
fn a_title_that_is_too_long_is_refused() {
    let (code, _, err) = {
        let store = Store::new();
        store.note("AAAAAA", "One");
        store.run("memory-update", &["AAAAAA", "--title", &"x".repeat(100_000)])
    };
    assert!(code == Some(1) && err.contains("option \"--title\" has 100000 bytes; at most "), "{err}");
}

#[test]
fn the_example_of_the_help_works() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let out = store.out("memory-read", &["--no-count", "--json", "AAAAAA"]);
    let body: Value = serde_json::from_str(&out).unwrap();
    let body = body["body"].as_str().unwrap().replace("Body", "Text");
    let mut command = store.sandbox.command("memory-update");
    let output =
        command.args(["--json", "AAAAAA", "--body=-"]).write_stdin(body.trim_end()).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    let printed: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!(
        (&printed["id"], &printed["updatedAt"]),
        (&"id__AAAAAA".into(), &1_772_291_045_000_u64.into())
    );
    assert!(store.text("AAAAAA").ends_with("\n---\n\nText of One.\n"), "{}", store.text("AAAAAA"));
}

#[test]
fn keys_and_comments_added_by_hand_survive_every_program() {
    let by_hand: [&[u8]; 4] = [
        b"---\n# mine\nmood: {good: yes} # really\nid:   id__AAAAAA\ntitle:   'One'   # the first\nused: 1\nzz: |\n  a\n  b\n---\n\nBody",
        b"\xef\xbb\xbf---\r\nid: id__AAAAAA\r\n\r\ntitle: One\r\nused: 1\r\nmood: good # x\r\n---\r\n\r\nbody\r\nbody",
        b"---\nid: id__AAAAAA\nmood: x\ntitle: One\nused: 1\n---\nno empty line, \xff\xfe\x00 bytes",
        b"---\nused: 1\nid: id__AAAAAA\ntags:\n  - topic__a  # why\n  - own words\ntitle: One\nmood: good\n---\n\n---\nid: x\n---\n",
    ];
    for bytes in by_hand {
        let store = Store::new();
        store.put("topics/My own name.md", bytes);
        // Compares all lines except those with the keys that change.
        let rest = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let ours = [&b"used:"[..], b"last_used:", b"pinned:", b"updatedAt:"];
            let lines = bytes.split(|byte| *byte == b'\n');
            lines.filter(|line| !ours.iter().any(|key| line.starts_with(key))).map(<[u8]>::to_vec).collect()
        };
        store.out("memory-read", &["AAAAAA"]);
        store.out("memory-update", &["AAAAAA", "--pin"]);
        store.out("memory-remove", &["AAAAAA"]);
        let tree = store.tree();
        let left = &tree["archive/My own name.md"];
        assert_eq!((rest(left), tree.len()), (rest(bytes), 1), "{}", String::from_utf8_lossy(left));
        let text = String::from_utf8_lossy(left);
        for line in ["used: 2", "pinned: true", "last_used: 2026-02-28T15:04:05Z"] {
            assert!(text.contains(&format!("\n{line}")) || text.contains(&format!("\n{line}\r")), "{text}");
        }
    }
}

#[test]
fn front_matter_that_cannot_be_edited_by_line_is_reported_and_not_changed() {
    let store = Store::new();
    let text = "---\n{id: id__AAAAAA, title: One}\n---\n\nbody\n";
    store.put("topics/x.md", text);
    let (code, _, err) = store.run("memory-update", &["AAAAAA", "--pin"]);
    assert!(
        code == Some(1) && err.contains("x.md\" cannot be changed: ") && err.contains("by hand"),
        "{err}"
    );
    let (code, out, err) = store.run("memory-read", &["AAAAAA"]);
    assert_eq!((code, out.as_str()), (Some(0), text));
    assert!(err.starts_with("Warning: this read of id__AAAAAA is not counted: "), "{err}");
    assert_eq!(store.text("x.md"), text);
}

#[test]
fn a_file_is_not_renamed_over_another() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    let taken = store.put(&format!("topics/{}", name("AAAAAA", "Two")), "somebody's");
    store.out("memory-update", &["AAAAAA", "--title", "Two"]);
    assert_eq!(fs::read(&taken).unwrap(), b"somebody's");
    assert_eq!(value(&store.text("one --"), "title"), Some("Two"));
    // Also if the name belongs to a dangling link.
    let link = store.topics().join(name("AAAAAA", "Three"));
    symlink("/nowhere/at/all", &link);
    store.out("memory-update", &["AAAAAA", "--title", "Three"]);
    assert!(link.is_symlink() && value(&store.text("one --"), "title") == Some("Three"));
}

#[test]
fn the_mode_and_the_symlink_of_a_note_are_kept() {
    let store = Store::new();
    let real = store.sandbox.work().join("real.md");
    store.sandbox.file("real.md", note("AAAAAA", "One", ""));
    set_mode(&real, 0o640);
    symlink(&real, store.topics().join("one -- id__AAAAAA.md"));
    store.out("memory-read", &["AAAAAA"]);
    store.out("memory-update", &["AAAAAA", "--title", "Two"]);
    let link = store.topics().join("two -- id__AAAAAA.md");
    assert!(link.is_symlink() && !store.topics().join("one -- id__AAAAAA.md").is_symlink());
    assert_eq!(mode(&real), 0o640);
    let text = fs::read_to_string(real).unwrap();
    assert_eq!((value(&text, "title"), value(&text, "used")), (Some("Two"), Some("1")));
    store.out("memory-remove", &["AAAAAA"]);
    assert_eq!(store.names(), ["archive/two -- id__AAAAAA.md"]);
}

#[test]
fn secrets_in_new_texts_are_replaced_with_a_warning() {
    let token = format!("ghp_{}", "aB3dE6gH9j".repeat(4).get(..36).unwrap());
    for flag in ["--title", "--summary", "--body"] {
        let store = Store::new();
        let path = store.note("AAAAAA", "One");
        let text = format!("Use {token} here");
        store.sandbox.file("body", &text);
        let text = if flag == "--body" { "body" } else { text.as_str() };
        let (code, _, err) = store.run("memory-update", &["AAAAAA", flag, text]);
        let warning =
            format!("Warning: option \"{flag}\": what looks like a secret was replaced by a mark\n");
        assert_eq!((code, err), (Some(0), warning));
        let note = store.text("AAAAAA");
        assert!(!note.contains(&token) && note.contains("Use [redacted:"), "{note}");
        let is_renamed = flag == "--title";
        assert_eq!(path.exists(), !is_renamed);
    }
}

#[test]
fn an_older_secret_is_not_touched() {
    let store = Store::new();
    let token = format!("ghp_{}", "aB3dE6gH9j".repeat(4).get(..36).unwrap());
    store.put("topics/one -- id__AAAAAA.md", note("AAAAAA", "One", "") + &token);
    store.out("memory-update", &["AAAAAA", "--pin"]);
    assert!(store.text("AAAAAA").ends_with(&token));
}
