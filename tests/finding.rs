//! Notes and commands as people name them: aliases, words of a query, titles, file names, the beginning of an id.

use crate::support::store::{Store, name, note, value};
use crate::support::{said, set_mode, tools};

/// Three notes, an archived one with the title of another, and one that a person can only name by its id.
fn store() -> Store {
    let store = Store::new();
    for (id, title) in [("a1B2c3", "Dev server"), ("a1B2d4", "Ports"), ("XyZ123", "Twice")] {
        store.note(id, title);
    }
    store.put(&format!("topics/{}", name("oTher1", "Twice")), note("oTher1", "TWICE", ""));
    store.put("archive/dev-server -- id__oLd111.md", note("oLd111", "Dev server", ""));
    store.put("archive/gone -- id__GoNe11.md", note("GoNe11", "Gone", ""));
    store
}

#[test]
fn a_note_is_found_by_what_a_person_knows_of_it() {
    let store = store();
    let path = store.topics().join(name("a1B2c3", "Dev server"));
    for (word, id) in [
        ("Dev server", "a1B2c3"),
        ("  dev SERVER ", "a1B2c3"),
        ("dev-server -- id__a1B2c3.md", "a1B2c3"),
        ("dev-server -- id__a1B2c3", "a1B2c3"),
        (path.to_str().unwrap(), "a1B2c3"),
        ("id__a1B2c", "a1B2c3"),
        ("a1B2c", "a1B2c3"),
        ("id__X", "XyZ123"),
        ("Ports", "a1B2d4"),
        // In the archive alone.
        ("Gone", "GoNe11"),
        ("id__G", "GoNe11"),
    ] {
        let out = store.out("memory-read", &["--no-count", word]);
        assert_eq!(value(&out, "id"), Some(format!("id__{id}").as_str()), "{word}");
    }
    let twice = "\"twice\" names 2 notes: id__XyZ123 (Twice), id__oTher1 (TWICE); give the id of one of them";
    let other = "\"twice\" names 2 notes: id__oTher1 (TWICE), id__XyZ123 (Twice); give the id of one of them";
    for (word, why) in [
        ("a1B2", "\"a1B2\" names 2 notes: id__a1B2c3 (Dev server), id__a1B2d4 (Ports); give the id"),
        (
            "port",
            "no note has the id, the title or the file name \"port\"; search for its words with: memory-list WORDS",
        ),
        // Too short for the beginning of an id, if it does not say that it is one.
        (
            "a1",
            "no note has the id, the title or the file name \"a1\"; search for its words with: memory-list",
        ),
        ("id__", "no note has the id"),
        ("../topics/x.md", "no note has the id"),
    ] {
        for program in ["memory-read", "memory-remove"] {
            let (code, out, err) = store.run(program, &[word]);
            assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{program} {word}");
            assert!(err.starts_with(&format!("{program}: {why}")), "{err}");
        }
    }
    let (_, _, err) = store.run("memory-update", &["twice", "--pin"]);
    assert!(err.contains(twice) || err.contains(other), "{err}");
    assert_eq!(store.names().len(), 6, "nothing was removed");
    store.out("memory-update", &["ports", "--title", "Of the server"]);
    store.out("memory-remove", &["of the server"]);
    assert!(store.names().contains(&"archive/of-the-server -- id__a1B2d4.md".to_owned()));
}

#[test]
fn what_a_program_prints_names_a_note_by_its_whole_id_alone() {
    let store = store();
    for word in ["Ports", "id__a1B2d", "a1B2d", "ports -- id__a1B2d4.md"] {
        let mut command = store.sandbox.command("memory-read");
        let output = command.arg("-").write_stdin(word).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && err.contains("is not a note's id"), "{word}: {err}");
    }
}

#[test]
fn a_title_cannot_write_on_the_terminal() {
    let store = Store::new();
    for id in ["AAAAAA", "AAAAAB"] {
        store.put(&format!("topics/{id}.md"), note(id, "\"a\\e]0;x\\a\\u202eb\"", ""));
    }
    let (code, _, err) = store.run("memory-read", &["id__AAA"]);
    assert!(code == Some(1) && err.contains("names 2 notes"), "{err}");
    assert!(!err.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{err:?}");
    let (_, _, err) = store.run("memory-read", &["\u{1b}[31m\u{202e}x"]);
    assert!(!err.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{err:?}");
}

#[test]
fn words_are_a_query() {
    let store = store();
    let found = store.out("memory-list", &["--query", "dev server"]);
    assert!(found.contains("id__a1B2c3") && !found.contains("id__a1B2d4"), "{found}");
    // A quote that is not closed makes no phrase.
    for args in [&["list", "dev", "server"][..], &["search", "dev server"], &["ls", "\"dev", "server"]] {
        assert_eq!(store.out("memory", args), found, "{args:?}");
    }
    assert_eq!(store.out("memory", &["search"]), store.out("memory-list", &[]));
    for (args, why) in [
        (
            &["--query", "x", "y"][..],
            "options \"--query\" and \"WORDS\" do not go together; give one of them",
        ),
        (&["--query", " "], "option \"--query\" is empty; without it, all notes are listed"),
        (&[""], "option \"WORDS\" is empty; without them, all notes are listed"),
        (&["--nope"], "unknown option \"--nope\"; see --help"),
        (&["--sotr", "used"], "unknown option \"--sotr\"; did you mean \"--sort\"?"),
    ] {
        let (code, out, err) = store.run("memory-list", args);
        assert_eq!((code, out.as_str(), err), (Some(1), "", format!("memory-list: {why}\n")));
    }
}

#[test]
fn a_line_below_a_title_says_more_than_that() {
    let store = Store::new();
    let line = |id: &str, body: &str, summary: &str| {
        store.put(
            &format!("topics/{id}.md"),
            note(id, "Proxy port", &format!("summary: {summary}\n")).replace("Body of Proxy port.", body),
        );
    };
    line("AAAAAA", "# Proxy port\n\nThe port is 8080.", "\"\"");
    line("BBBBBB", "It is 8081.", "Where it listens.");
    line("CCCCCC", "It is 8082.", "The proxy's port");
    line("DDDDDD", "proxy port", "\"\"");
    let out = store.out("memory-list", &["proxy", "port", "--sort", "title"]);
    let lines: Vec<&str> = out.lines().filter_map(|row| row.rsplit('\t').next()).collect();
    assert_eq!(lines, ["The port is 8080.", "Where it listens.", "The proxy's port", ""], "{out}");
}

#[test]
fn a_repository_that_nothing_here_has_is_named_with_the_nearest() {
    let store = Store::new();
    store.put(
        "topics/a -- id__AAAAAA.md",
        note("AAAAAA", "A", "scope: repo\nsources:\n  - {harness: amp, repo: github.com/acme/shop}\n"),
    );
    let entry = serde_json::json!({"version": 1, "timestamp": "2026-02-28T15:00:00Z", "harness": "amp",
        "retrieval": {"method": "amp-thread", "threadId": "T-1"}, "context": {"cwd": "/x", "repo": "github.com/acme/queue"}});
    let mut capture = store.sandbox.command("memory-capture");
    assert_eq!(said(capture.arg("--entry").write_stdin(entry.to_string())).0, Some(0));
    for (args, warning) in [
        (&["memory-list", "--repo", "github.com/acme/shpo"][..], "did you mean \"github.com/acme/shop\"?"),
        (&["memory-recall", "--repo", "github.com/acme/shpo"], "did you mean \"github.com/acme/shop\"?"),
        (
            &["memory-agents-md", "--stdout", "--repo", "github.com/acme/qeue"],
            "did you mean \"github.com/acme/queue\"?",
        ),
        (&["memory-list", "--repo", "example.org/zebra/x"], "list all notes with: memory-list --all"),
        (&["memory-list", "--repo", "https://github.com/acme/shop.git"], ""),
        (&["memory-list", "--repo", "github.com/acme/queue"], ""),
        (&["memory-list", "--repo", "."], ""),
    ] {
        let (code, _, err) = store.run(args[0], &args[1..]);
        let expected = match warning {
            "" => String::new(),
            warning => format!("Warning: no note is of repository \"{}\"; {warning}\n", args.last().unwrap()),
        };
        assert_eq!((code, err), (Some(0), expected), "{args:?}");
    }
}

#[test]
fn nothing_found_is_said_to_a_person_alone() {
    let store = store();
    assert_eq!(store.run("memory-list", &["zebra"]), (Some(0), String::new(), String::new()));
    let terminal = crate::support::terminal::Terminal::open();
    let mut command = store.sandbox.std_command("memory-list");
    command.arg("zebra").stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    assert!(command.status().unwrap().success());
    drop(command);
    assert_eq!(terminal.all(), "no note was found\r\n");
}

#[test]
fn an_alias_is_its_command_and_a_program_of_that_name_comes_first() {
    let store = store();
    assert!(store.out("memory", &["show", "--no-count", "Ports"]).contains("id: id__a1B2d4"));
    let path = store.out("memory", &["add", "--direct", "--title", "New", "--body", "It is."]);
    assert!(path.contains("/topics/new -- id__"), "{path}");
    let path = store.out("memory", &["rm", "new"]);
    assert!(path.contains("/archive/new -- id__"), "{path}");
    let help = store.out("memory", &["help"]);
    for (command, aliases) in [
        ("list", "ls, search"),
        ("read", "show"),
        ("remove", "rm"),
        ("capture", "add"),
        ("agents-md", "generate-agents-md"),
    ] {
        let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{command} "))).unwrap();
        assert!(line.contains(&format!("(also: {aliases})")), "{line}");
        let alias = aliases.split(", ").next().unwrap();
        assert_eq!(
            store.out("memory", &["help", alias]),
            store.out(&format!("memory-{command}"), &["--help"])
        );
    }
    for (wrong, near) in [("serach", "search"), ("remve", "remove"), ("shwo", "show"), ("eidt", "edit")] {
        let (code, _, err) = store.run("memory", &[wrong]);
        assert_eq!(
            (code, err),
            (Some(1), format!("memory: unknown command \"{wrong}\"; did you mean \"{near}\"?\n"))
        );
    }
    let dir = store.sandbox.home().join("bin");
    store.sandbox.write(&dir.join("memory-show"), "#!/bin/sh\necho mine\n");
    set_mode(&dir.join("memory-show"), 0o755);
    let path = format!("{}:{}", dir.display(), tools());
    let own = said(store.sandbox.command("memory").arg("show").env("PATH", path));
    assert_eq!(own, (Some(0), "mine\n".to_owned(), String::new()));
}
