//! Wrong input that is easily taken for right: what is said of it names the value and the next step.

use crate::support::store::{Store, names};

#[test]
fn what_is_wrong_is_named_with_the_next_step() {
    let store = Store::new();
    store.note("AAAAAA", "Ports");
    store.sandbox.agent("a", "cat", "");
    store.sandbox.agent("gone", "no-such-program", "");
    let dead_link = "see [[id__111111]], not `[[id__222222]]`";
    let cases: &[(&str, &[&str], i32, &str)] = &[
        (
            "memory-list",
            &["--query", " "],
            1,
            "option \"--query\" is empty; without it, all notes are listed",
        ),
        (
            "memory-list",
            &["--repo", "typo"],
            1,
            "\"typo\" is not the name of a repository; write it as host/owner/name",
        ),
        ("memory-recall", &["--repo", ""], 1, "\"\" is not the name of a repository"),
        ("memory-agents-md", &["--stdout", "--repo", "a b"], 1, "\"a b\" is not the name of a repository"),
        ("memory-update", &["AAAAAA", "--until", "2020-01-01"], 0, "2020-01-01 has passed"),
        ("memory-update", &["AAAAAA", "--body", ""], 1, "option \"--body\" is empty"),
        (
            "memory-update",
            &["AAAAAA", "--body", "/nope"],
            1,
            "cannot open file \"/nope\": No such file or directory; --body takes a file",
        ),
        ("memory-recall", &[""], 1, "option \"WORDS\" is empty; without them, it prints what a session"),
        ("memory-remove", &["--from", ""], 1, "option \"--from\" is empty"),
        ("memory-remove", &["--from", "/nowhere"], 0, "no note comes from \"/nowhere\""),
        ("memory-remove", &["--from", "x", "AAAAAA"], 1, "it finds the notes by itself"),
        (
            "memory-capture",
            &["--title", "T", "--body", dead_link],
            0,
            "the body links to [[id__111111]], but no note has that id",
        ),
        (
            "memory-capture",
            &["--title", "T", "--direct", "--body", dead_link],
            0,
            "the body links to [[id__111111]], but no note has that id",
        ),
        ("memory-capture", &["--entry"], 1, "stdin is empty; a queue entry is expected there"),
        ("memory-install-hooks", &["--print"], 0, "no harness was found; name one with --harness: amp"),
        (
            "axe-run",
            &["a", "-p", "x", "--no-stdin", "--attach", "/nope.png"],
            1,
            "axe-run: cannot attach \"/nope.png\": No such file or directory\n",
        ),
        (
            "axe-run",
            &["gone", "-p", "x", "--no-stdin"],
            3,
            "; install it, or correct its line in config.toml\n",
        ),
        (
            "axe-run",
            &["--model", "command/claude", "-p", "x", "--no-stdin"],
            3,
            "axe-run: server: command \"claude\" was not found; install it\n",
        ),
    ];
    for (program, args, code, wanted) in cases {
        let (ended, out, err) = store.run(program, args);
        assert_eq!(ended, Some(*code), "{program} {args:?}: {out}{err}");
        assert!(err.contains(wanted), "{program} {args:?}: {err}");
        assert!(!err.contains("222222") && !err.contains("os error"), "{program} {args:?}: {err}");
    }
}

#[test]
fn the_same_note_is_written_once() {
    let store = Store::new();
    let note = ["--direct", "--title", "Port", "--tags", "web", "--body", "It is 8081."];
    let path = store.out("memory-capture", &note);
    let again = store.run("memory-capture", &note);
    assert_eq!(again, (Some(0), path.clone(), "memory-capture: this note exists already\n".to_owned()));
    let other = [&note[..6], &["It is 8082."]].concat();
    assert_ne!(store.out("memory-capture", &other), path);
    // What is in the archive is not in use.
    let id = path.trim_end().trim_end_matches(".md").rsplit(' ').next().unwrap();
    store.out("memory-remove", &[id]);
    assert_ne!(store.out("memory-capture", &note), path);
    assert_eq!(names(&store.topics()).len(), 2);
}

#[test]
fn a_store_that_is_no_directory_is_one_finding() {
    let store = Store::new();
    store.config(r#"{"storage": {"root": "/dev/null/x", "autoCommit": false}}"#);
    let (code, out, _) = store.run("memory-doctor", &[]);
    let found: Vec<&str> = out.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(code, Some(1), "{out}");
    let [line] = found[..] else { panic!("{out}") };
    assert!(line.starts_with("error\t/dev/null/x\tthe store cannot be read: Not a directory\t"), "{out}");
    for (program, args) in [("memory-list", &[][..]), ("memory-capture", &["--title", "T", "--body", "b"])] {
        let (code, _, err) = store.run(program, args);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("\"/dev/null/x") && !err.contains("os error"), "{err}");
    }
}

#[test]
fn a_calendar_that_nothing_knows_is_named_by_its_key() {
    let store = Store::new();
    store.config(r#"{"schedule": {"consolidate": "every tuesday"}, "storage": {"autoCommit": false}}"#);
    let (code, _, err) = store.run("memory-install-cron", &["--print", "--scheduler", "crontab"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("schedule.consolidate: cron cannot express \"every tuesday\"; use hourly"), "{err}");
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(
        out.contains("schedule.consolidate: no scheduler here knows the calendar \"every tuesday\""),
        "{out}"
    );
}
