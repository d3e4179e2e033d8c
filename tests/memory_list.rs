//! `memory-list`: filters, order, and the forms of its output.

use crate::support::store::{Store, note};
use crate::support::terminal::Terminal;
use crate::support::{Said, eventually};
use serde_json::Value;
use std::process::Command;

/// Five notes that the filters tell apart, one of them archived.
fn five() -> Store {
    let store = Store::new();
    let put = |place: &str, id: &str, title: &str, more: &str| {
        store.put(&format!("{place}/{title} -- id__{id}.md"), note(id, title, more));
    };
    let source = |repo: &str| format!("scope: repo\nsources:\n  - {{harness: amp, repo: {repo}}}\n");
    put(
        "topics",
        "AAAAAA",
        "alpha",
        "tags: [topic__http, area__work]\nused: 3\ncreatedAt: 10\nupdatedAt: 99\n",
    );
    put(
        "topics",
        "BBBBBB",
        "Beta",
        "tags: [topic__http]\nstatus: promoted\ntier: hot\nused: 7\ncreatedAt: 20\n",
    );
    put(
        "topics",
        "CCCCCC",
        "gamma",
        &format!("tier: cold\npinned: yes\nused: 3\n{}", source("github.com/o/r")),
    );
    put("topics", "DDDDDD", "delta", &format!("status: consolidated\ncreatedAt: 5\n{}", source("h/o/x")));
    put("archive", "EEEEEE", "old", "tags: [topic__http]\n");
    store
}

/// The first letters of the titles, in order.
fn found(store: &Store, args: &[&str]) -> String {
    let out = store.out("memory-list", args);
    let title = |line: &str| line.split('\t').nth(4).unwrap().chars().next().unwrap();
    out.lines().map(title).collect()
}

#[test]
fn every_filter_selects_its_notes() {
    let store = five();
    for (args, expected) in [
        (&[][..], "aBdg"),
        (&["--status", "captured"], "ag"),
        (&["--status=promoted"], "B"),
        (&["--tier", "hot"], "B"),
        (&["--tier", "warm"], "ad"),
        (&["--tag", "http"], "aB"),
        (&["--tag", "topic__http"], "aB"),
        (&["--tag", "http", "--tag", "area__work"], "a"),
        (&["--tag", "work"], ""),
        (&["--scope", "repo"], "dg"),
        (&["--scope", "global"], "aB"),
        (&["--repo", "github.com/o/r"], "g"),
        (&["--repo", "github.com/o"], ""),
        (&["--pinned"], "g"),
        (&["--archived"], "o"),
        (&["--archived", "--tag", "http"], "o"),
        (&["--archived", "--pinned"], ""),
        (&["--limit", "2"], "aB"),
        (&["--limit", "99"], "aBdg"),
        (&["--sort", "used"], "Bagd"),
        (&["--sort", "updated"], "aBdg"),
        (&["--sort", "created"], "Badg"),
        (&["--sort", "title"], "aBdg"),
        (&["--sort", "used", "--limit", "1"], "B"),
        (&["--query", "gamma"], "g"),
        (&["--query", "tag:http", "--sort", "title"], "aB"),
        (&["--query", "body", "--sort", "title", "--limit", "2"], "aB"),
        (&["--query", "zebra"], ""),
    ] {
        assert_eq!(found(&store, args), expected, "{args:?}");
    }
}

#[test]
fn a_dot_means_the_current_repository() {
    let store = five();
    let (code, out, err) = store.run("memory-list", &["--repo", "."]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("the current directory is in no git repository"), "{err}");
    store.sandbox.file(".git/HEAD", "ref: refs/heads/main\n");
    store.sandbox.file(".git/config", "[remote \"origin\"]\n\turl = git@github.com:o/r.git\n");
    assert_eq!(found(&store, &["--repo", "."]), "g");
}

#[test]
fn wrong_values_are_quoted_in_the_error() {
    let store = five();
    for (args, what) in [
        (["--status", "x"], "option \"--status\" takes captured, consolidated or promoted, got \"x\""),
        (["--tier", "Hot"], "option \"--tier\" takes hot, warm or cold, got \"Hot\""),
        (["--scope", ""], "option \"--scope\" takes global or repo, got \"\""),
        (["--sort", "size"], "option \"--sort\" takes used, updated, created or title, got \"size\""),
        (["--limit", "0"], "option \"--limit\" takes a whole number from 1, got \"0\""),
        (["--limit", "-1"], "option \"--limit\" takes a whole number from 1, got \"-1\""),
        (["--tag", "a/b"], "option \"--tag\": \"a/b\" is not a tag"),
        (["--pinned", "x"], "unexpected argument"),
    ] {
        let (code, out, err) = store.run("memory-list", &args);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{args:?}: {err}");
        assert!(err.starts_with("memory-list: ") && err.contains(what), "{err}");
        let (code, out, err) = store.run("memory-list", &[args[0], args[1], "--json"]);
        let error: Value = serde_json::from_str(&err).unwrap();
        assert_eq!((code, out.as_str(), &error["error"]["kind"]), (Some(1), "", &"usage".into()), "{err}");
    }
}

#[test]
fn fields_in_a_pipe_have_no_tab_and_no_newline() {
    let store = Store::new();
    let text = "---\nid: id__AAAAAA\ntitle: \"a\\tb\\nc \\e[31m\"\ntags: [\"x\\ty\", \"topic__z\\n\"]\n---\n\nfind\tme\there\r\n";
    store.put("topics/x.md", text);
    let out = store.out("memory-list", &[]);
    assert_eq!(out, "id__AAAAAA\twarm\tcaptured\t0\ta b c  [31m\tx y topic__z\n");
    let out = store.out("memory-list", &["--query", "find"]);
    assert_eq!((out.matches('\t').count(), out.lines().count()), (6, 1), "{out:?}");
    assert!(out.ends_with("\tfind me here\n"), "{out:?}");
}

#[test]
fn json_has_the_keys_of_the_file() {
    let store = five();
    let out = store.out("memory-list", &["--json", "--query", "gamma"]);
    let note: Value = serde_json::from_str(&out).unwrap();
    for (key, value) in
        [("id", "id__CCCCCC"), ("tier", "cold"), ("scope", "repo"), ("line", "Body of gamma.")]
    {
        assert_eq!(note[key], value, "{out}");
    }
    assert_eq!((&note["pinned"], &note["used"]), (&true.into(), &3.into()));
    assert_eq!(note["sources"][0]["repo"], "github.com/o/r");
    assert!(note["path"].as_str().unwrap().ends_with("/topics/gamma -- id__CCCCCC.md"), "{out}");
    assert!(note["score"].as_f64().unwrap() > 0.0 && note.get("body").is_none(), "{out}");
}

#[test]
fn on_a_terminal_it_is_a_table() {
    let store = five();
    store.put("topics/long.md", note("FFFFFF", &"long ".repeat(40), ""));
    let terminal = Terminal::open();
    let run = |args: &[&str]| {
        let mut command: Command = store.sandbox.std_command("memory-list");
        let output = command.args(args).stdout(terminal.stdio()).output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    };
    run(&["--limit", "1", "--query", "gamma"]);
    run(&[]);
    eventually("the table", || terminal.shown().contains("long long"));
    let shown = terminal.shown().replace("\r\n", "\n");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[..2], ["id__CCCCCC  cold  captured         3  gamma", "    Body of gamma."], "{shown}");
    assert!(!shown.contains('\t') && lines.iter().all(|line| line.chars().count() < 130), "{shown}");
    let columns: Vec<_> = lines[2..4].iter().map(|line| line.find("topic__http").unwrap()).collect();
    assert_eq!(columns[0], columns[1], "{shown}");
}
