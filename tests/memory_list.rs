//! `memory-list`: filters, order, and the forms of its output.

use crate::support::store::{Store, note};
use crate::support::terminal::Terminal;
use crate::support::{Said, present};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
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
    // A folder without git is a place of its own, in which nothing was learned.
    assert_eq!(found(&store, &["--repo", "."]), "");
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
        (["--query", ""], "option \"--query\" is empty; without it, all notes are listed"),
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
    assert_eq!(out, "id__AAAAAA\twarm\tcaptured\t0\ta b c  [31m\tx y topic__z\tglobal\t\t\n");
    let out = store.out("memory-list", &["--query", "find"]);
    assert_eq!((out.matches('\t').count(), out.lines().count()), (8, 1), "{out:?}");
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
    let shown = terminal.all().replace("\r\n", "\n");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "ID          TIER  STATUS    USED  TITLE  REPOSITORY",
            "id__CCCCCC  cold  captured     3  gamma  github.com/o/r",
            "    Body of gamma."
        ],
        "{shown}"
    );
    assert!(!shown.contains('\t') && lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
    let columns: Vec<_> = lines[4..6].iter().map(|line| line.find("topic__http").unwrap()).collect();
    assert_eq!((columns[0], lines[3].find("TAGS")), (columns[1], Some(columns[1])), "{shown}");
    assert!(lines.iter().any(|line| line.contains("long long…")), "{shown}");
}

#[test]
fn words_that_match_and_tiers_are_in_colours_where_they_are_wanted() {
    let store = five();
    let listed = |args: &[&str], vars: &[(&str, &str)]| {
        let mut command = store.sandbox.command("memory-list");
        let (code, out, err) = crate::support::said(command.args(args).envs(vars.iter().copied()));
        assert_eq!(code, Some(0), "{err}");
        out
    };
    let query = ["--query", "gamma", "--color", "always"];
    let out = listed(&query, &[]);
    assert!(
        out.contains("\t\u{1b}[36mcold\u{1b}[0m\t") && out.matches("gamma\u{1b}[0m").count() == 2,
        "{out:?}"
    );
    let plain = listed(&query[..2], &[]);
    assert!(!plain.contains('\u{1b}'));
    assert_eq!(listed(&query[..2], &[("CLICOLOR_FORCE", "1")]), out);
    assert_eq!(listed(&query[..2], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), plain);
    assert_eq!(listed(&["--json"], &[]), listed(&["--json", "--color", "always"], &[]));
}

#[test]
fn a_phrase_that_no_note_has_is_searched_as_words() {
    let store = Store::new();
    for (id, title, text) in [("AAAAAA", "a", "the dead letter"), ("BBBBBB", "b", "a letter of the dead")] {
        store.put(
            &format!("topics/{title}.md"),
            note(id, title, "").replace(&format!("Body of {title}."), text),
        );
    }
    let ask = |query: &str| {
        let (code, out, err) = store.run("memory-list", &["--query", query]);
        assert_eq!(code, Some(0), "{err}");
        (out.lines().map(|line| line.split('\t').nth(4).unwrap().to_owned()).collect::<String>(), err)
    };
    assert_eq!(ask("\"dead letter\""), ("a".to_owned(), String::new()));
    let told = "Warning: no note has \"letter dead\"; notes with its words are shown\n";
    let (found, err) = ask("\"letter dead\"");
    assert_eq!((found.len(), err.as_str()), (2, told));
    let told =
        "Warning: no note has \"the dead letter\" and \"of the dead\"; notes with their words are shown\n";
    assert_eq!(ask("\"the dead letter\" \"of the dead\"").1, told);
    assert_eq!(ask("\"zebra crossing\""), (String::new(), String::new()));
}

#[test]
fn the_score_says_how_much_of_the_query_a_note_has() {
    let store = Store::new();
    let put = |id: &str, title: &str, body: &str| {
        store
            .put(&format!("topics/{id}.md"), note(id, title, "").replace(&format!("Body of {title}."), body));
    };
    put("AAAAAA", "Retry of the queue worker", "The queue worker tries again.");
    put("BBBBBB", "Lunch", "There is a queue at noon.");
    let scores = |query: &str| -> Vec<f64> {
        let out = store.out("memory-list", &["--json", "--query", query]);
        out.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["score"].as_f64().unwrap())
            .collect()
    };
    let all = scores("queue worker retry");
    assert!(all.len() == 2 && all[0] > 3.0 * all[1] && all.iter().all(|score| (0.0..=1.0).contains(score)));
    // Words that no note has are missing in each.
    let some = scores("queue worker retry zebra crossing giraffe");
    assert!(some[0] < all[0] * 0.7, "{all:?} {some:?}");
    // Neither a filter nor a limit changes a score.
    let out = store
        .out("memory-list", &["--json", "--tier", "warm", "--limit", "1", "--query", "queue worker retry"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["score"].as_f64().unwrap(), all[0]);
}

/// A store that is large enough for a cache, with notes that are old enough for it.
fn large() -> Store {
    let store = Store::new();
    const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    for n in 0..1100 {
        let id = format!("AAAA{}{}", char::from(DIGITS[n / 58]), char::from(DIGITS[n % 58]));
        let more = "tags: [topic__http]\nsummary: a short one\n";
        store.put(
            &format!("topics/note {n:04} -- id__{id}.md"),
            note(&id, &format!("Note {n} of the queue"), more),
        );
    }
    std::thread::sleep(std::time::Duration::from_millis(2100));
    store
}

#[test]
fn a_cache_changes_no_answer_and_a_killed_writer_none_either() {
    let store = large();
    let cache = store.root().join(".agent-memory/notes.cache");
    let asked: [&[&str]; 5] = [
        &["--query", "queue 77", "--limit", "30"],
        &["--query", "\"77 of the queue\"", "--json"],
        &["--query", "note 5", "--tag", "http", "--sort", "title", "--limit", "9", "--json"],
        &["--json"],
        &["--archived"],
    ];
    let answers = || asked.map(|args| store.out("memory-list", args));
    let section = || store.out("memory-agents-md", &["--stdout"]);
    let shown = section();
    assert!(!cache.exists(), "memory-agents-md only reads it");
    let live = answers();
    assert!(cache.exists() && store.root().join(".gitignore").exists());
    assert!(answers() == live && section() == shown);
    // One changes, one goes, one comes.
    let file = |n: usize| {
        let name = format!("note {n:04} ");
        let files = std::fs::read_dir(store.topics()).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&name)).unwrap()
    };
    std::fs::write(file(77), std::fs::read_to_string(file(77)).unwrap() + "zebra\n").unwrap();
    std::fs::remove_file(file(177)).unwrap();
    store.note("zzzzzz", "A giraffe in the queue");
    let changed = answers();
    assert!(changed != live);
    assert!(store.out("memory-list", &["--query", "zebra"]).contains("Note 77 of"));
    assert!(store.out("memory-list", &["--query", "giraffe"]).contains("zzzzzz"));
    assert!(!store.run("memory-list", &["--query", "\"note 177\""]).1.contains("Note 177 of"));
    std::fs::remove_file(&cache).unwrap();
    assert!(answers() == changed && cache.exists());
    // Killed while it is written: by its own size, so that each kill is at another byte.
    let mut killed = 0;
    for blocks in (0..).map(|n| 1 << n) {
        std::fs::remove_file(&cache).unwrap_or_default();
        let like = store.sandbox.std_command("memory-list");
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")]).arg(like.get_program());
        limited.args(asked[0]).current_dir(store.sandbox.work()).env_clear();
        limited.envs(present(like.get_envs()));
        let output = limited.output().unwrap();
        if output.status.success() {
            break;
        }
        assert!(output.status.signal().is_some() && !cache.exists(), "{blocks} blocks: {}", output.err());
        killed += 1;
        assert_eq!(store.out("memory-list", asked[0]), changed[0], "killed at {blocks} blocks");
    }
    assert!(killed > 3, "the cache is {killed} kills large");
    assert!(answers() == changed);
}

/// Makes the working directory a checkout of github.com/o/r.
fn checkout(store: &Store) {
    let git = store.sandbox.work().join(".git");
    store.sandbox.write(&git.join("HEAD"), "ref: refs/heads/main\n");
    store.sandbox.write(&git.join("config"), "[remote \"origin\"]\nurl = git@github.com:o/r.git\n");
}

#[test]
fn in_a_repository_its_notes_and_the_global_ones_are_listed_and_with_all_every_ones() {
    let store = five();
    assert_eq!(found(&store, &[]), "aBdg", "outside of a repository, all");
    checkout(&store);
    for (args, expected) in [
        (&[][..], "aBg"),
        (&["--all"], "aBdg"),
        (&["--scope", "repo"], "g"),
        (&["--repo", "h/o/x"], "d"),
        (&["--repo", "."], "g"),
        (&["--query", "body"], "Bag"),
        (&["--query", "body", "--all"], "Badg"),
        (&["--archived"], "o"),
    ] {
        let mut titles: Vec<char> = found(&store, args).chars().collect();
        let mut expected: Vec<char> = expected.chars().collect();
        if args.contains(&"--query") {
            titles.sort_unstable();
            expected.sort_unstable();
        }
        assert_eq!(titles, expected, "{args:?}");
    }
    let out = store.out("memory-list", &["--all"]);
    let repos: Vec<&str> = out.lines().map(|line| line.split('\t').nth(6).unwrap()).collect();
    assert_eq!(repos, ["global", "global", "h/o/x", "github.com/o/r"]);
    let json = store.out("memory-list", &["--all", "--json"]);
    let repo = |line: &str| serde_json::from_str::<Value>(line).unwrap()["repo"].clone();
    let repos: Vec<Value> = json.lines().map(repo).collect();
    assert_eq!(repos, [Value::Null, Value::Null, "h/o/x".into(), "github.com/o/r".into()]);
}

#[test]
fn what_is_found_elsewhere_alone_is_said() {
    let store = five();
    checkout(&store);
    for args in [&["--query", "delta"][..], &["--status", "consolidated"]] {
        let (code, out, err) = store.run("memory-list", args);
        assert_eq!((code, out.as_str()), (Some(0), ""), "{args:?}");
        assert_eq!(err, "1 note of another repository is not shown: --all\n", "{args:?}");
    }
    let (code, _, err) = store.run("memory-list", &["--all", "--repo", "h/o/x"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("options \"--all\" and \"--repo\" do not go together"), "{err}");
}

#[test]
fn a_note_of_two_repositories_is_listed_as_the_current_ones() {
    let store = Store::new();
    let sources =
        "scope: repo\nsources:\n  - {harness: amp, repo: h/o/x}\n  - {harness: amp, repo: github.com/o/r}\n";
    store.put("topics/both -- id__AAAAAA.md", note("AAAAAA", "both", sources));
    let repo = || store.out("memory-list", &[]).trim_end().split('\t').nth(6).unwrap().to_owned();
    assert_eq!(repo(), "h/o/x");
    checkout(&store);
    assert_eq!(repo(), "github.com/o/r");
}
