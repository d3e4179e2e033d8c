//! The pages of `memory-page` and `axe-runs --html`: what is in them, and where they may go. `.ci/page` opens them in a browser.

use crate::support::store::{Store, name, note};
use crate::support::terminal::Terminal;
use crate::support::{full_disk, mode, said, symlink};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// The data blocks of a page: what it is about, and its items.
fn data(html: &str) -> (Value, Vec<Value>) {
    let block = |rest: &str| serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let page = block(html.split_once("id=\"page\">").unwrap().1);
    let items = html.split("class=\"items\">").skip(1).map(block);
    (page, items.flat_map(|items: Value| items.as_array().unwrap().clone()).collect())
}

/// Three notes that lead to each other, one that one of them has replaced, one that cannot be read, a change that waits, and runs.
fn store() -> Store {
    let store = Store::new();
    let source = "sources:\n  - {harness: codex, threadId: T-7, repo: h/o/r, at: '2026-02-01T10:00:00Z'}\n";
    let put = |place: &str, id: &str, title: &str, more: &str, body: &str| {
        let text = note(id, title, more).replace(&format!("Body of {title}."), body);
        store.put(&format!("{place}/{}", name(id, title)), text);
    };
    let more = format!(
        "scope: repo\nby: agent\ntier: hot\ntags: [topic__http]\nupdatedAt: 1772000000000\nused: 2\nlast_used: '2026-02-20T08:00:00Z'\n{source}"
    );
    put(
        "topics",
        "AAAAAA",
        "Ports",
        &more,
        "The server listens on 4320.</script><script>alert(1)</script> See [[id__BBBBBB]].",
    );
    put(
        "topics",
        "BBBBBB",
        "Names\\u202E",
        "aliases: [id__XXXXXX]\nuntil: 2026-01-31\nupdatedAt: 1771000000000\n",
        "\u{202e}\u{1b}[31m [[id__CCCCCC]]",
    );
    put(
        "topics",
        "CCCCCC",
        "Old",
        "createdAt: 1700000000000\nupdatedAt: 1700000000000\n",
        "See [[id__XXXXXX]].",
    );
    put("archive", "DDDDDD", "Ports before", "supersededBy: id__AAAAAA\n", "The server listens on 4310.");
    store.put("topics/broken.md", "no front matter\n");
    let change = json!({"id": "p__EEEEEE", "op": "create", "note": null, "base": null, "by": "tool", "session": null, "createdAt": 1,
        "entry": {"title": "Hosts", "scope": "global", "until": null, "body": "Use <b>h2</b>."}});
    store.put("proposals/p__EEEEEE.json", change.to_string());
    let run = |exit: i32, cost: f64| {
        json!({"id": format!("20260227T10000{exit}Z-aaaaaa"), "time": "2026-02-27T10:00:00Z", "program": "axe-run", "agent": "a <b>", "model": "m/x",
            "input_tokens": 100, "output_tokens": 20, "cost": cost, "exit": exit, "error": {"kind": "api", "message": "\u{1b}late"},
            "parent": "20260227T100000Z-aaaaaa", "tools": [{"name": "look", "arguments": {"p": "</script>"}, "exit": 0, "duration_ms": 3}]})
    };
    let ledger = store.sandbox.home().join(".local/share/axe/runs/ledger.jsonl");
    store.sandbox.write(&ledger, format!("{}\nbroken\n{}\n", run(0, 0.5), run(1, 0.25)));
    store
}

#[test]
fn a_page_has_the_notes_with_all_that_is_known_of_them() {
    let store = store();
    let (code, html, err) = store.run("memory-page", &[]);
    assert!(code == Some(0) && err.contains("broken.md\" is left out") && err.lines().count() == 1, "{err}");
    assert_eq!(html, store.run("memory-page", &[]).1);
    assert!(html.is_ascii() && !html.contains("alert(1)<") && html.matches("<script").count() == 3, "{html}");
    let (page, items) = data(&html);
    assert_eq!(page["made"], format!("2026-02-28 15:04 UTC from {}", store.root().display()));
    let ids: Vec<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    // The newest first.
    assert_eq!(ids, ["id__AAAAAA", "id__BBBBBB", "id__CCCCCC", "id__DDDDDD"]);
    let states = |at: usize| items[at]["values"][4].to_string();
    assert_eq!((states(0), states(3)), ("[\"in use\"]".into(), "[\"archived\"]".into()));
    assert_eq!(
        (states(1), states(2)),
        ("[\"in use\",\"expired\"]".into(), "[\"in use\",\"unused for six months\"]".into())
    );
    assert_eq!(items[0]["values"], json!([["h/o/r"], ["topic__http"], ["hot"], ["agent"], ["in use"]]));
    assert_eq!(items[0]["related"], json!({"Links to": ["id__BBBBBB"], "Replaces": ["id__DDDDDD"]}));
    // A link to a note that was merged leads to the one that it was merged into.
    assert_eq!(items[2]["related"], json!({"Links to": ["id__BBBBBB"], "Linked from": ["id__BBBBBB"]}));
    assert_eq!(items[3]["related"], json!({"Replaced by": ["id__AAAAAA"]}));
    assert_eq!(items[0]["events"][0], json!(["2026-02-01 10:00 UTC", "said: codex session T-7 in h/o/r"]));
    assert_eq!(items[1]["aliases"], json!(["id__XXXXXX"]));
    // By the names that they have in the file.
    let facts = items[0]["facts"].as_array().unwrap();
    for fact in
        [json!(["used", "2"]), json!(["last_used", "2026-02-20T08:00:00Z"]), json!(["status", "captured"])]
    {
        assert!(facts.contains(&fact), "{fact}: {facts:?}");
    }
    assert!(items[1]["text"].as_str().unwrap().contains("<U+202E>\\u{1b}[31m"), "{}", items[1]["text"]);
    let warnings: Vec<(&Value, &Value)> =
        page["warnings"].as_array().unwrap().iter().map(|one| (&one["filter"], &one["value"])).collect();
    assert_eq!(warnings, [(&json!(4), &json!("expired")), (&json!(4), &json!("unused for six months"))]);

    let panels = page["panels"].as_array().unwrap();
    let names: Vec<&str> = panels.iter().map(|panel| panel["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Next session", "Review", "Use and cost"]);
    // What a session is given is what memory-recall prints.
    let sections = panels[0]["entries"].as_array().unwrap();
    for (section, repo) in sections.iter().zip(["h/o/elsewhere", "h/o/r"]) {
        let recalled = store.run("memory-recall", &["--repo", repo]).1;
        assert_eq!(section["text"].as_str().unwrap(), recalled.trim_end(), "{repo}");
    }
    assert!(sections.len() == 2 && sections[1]["text"].as_str().unwrap().contains("4320"));
    assert_eq!(sections[1]["commands"], json!(["memory-recall --repo h/o/r"]));
    let waiting = &panels[1]["entries"][0];
    assert_eq!(
        waiting["commands"],
        json!(["memory-review --accept p__EEEEEE", "memory-review --reject p__EEEEEE"])
    );
    assert!(
        waiting["title"].as_str().unwrap().ends_with("Hosts")
            && waiting["text"].as_str().unwrap().contains("+ Use <b>h2</b>."),
        "{waiting}"
    );
    let plots = panels[2]["plots"].as_array().unwrap();
    let last = |at: usize, back: usize| {
        plots[at]["bars"].as_array().unwrap().iter().rev().nth(back).unwrap().clone()
    };
    assert_eq!((plots.len(), last(1, 1)), (6, json!(["2026-02-15", 1.0])));
    assert_eq!((last(4, 1), last(5, 1)), (json!(["2026-02-27", 240.0]), json!(["2026-02-27", 0.75])));
    // To look is no use.
    assert!(store.text("AAAAAA").contains("used: 2\n"));
}

#[test]
fn a_store_without_notes_has_a_page_and_one_with_a_history_tells_it() {
    let store = Store::with_history();
    let (page, items) = data(&store.out("memory-page", &[]));
    assert!(items.is_empty() && page["panels"][1]["entries"] == json!([]) && !store.root().exists());
    store.out("memory-capture", &["--title", "Ports", "--body", "4310", "--direct"]);
    let (_, items) = data(&store.out("memory-page", &[]));
    store.out("memory-update", &[items[0]["id"].as_str().unwrap(), "--pin"]);
    let (_, items) = data(&store.out("memory-page", &[]));
    let events = items[0]["events"].to_string();
    assert!(
        events.contains("commit: ") && events.contains("Ports") && events.contains("\"created\""),
        "{events}"
    );
    assert_eq!(items[0]["events"][0][1], "created");
    // What is not to be had is said, and the rest is shown.
    fs::write(store.root().join(".git/HEAD"), "nonsense").unwrap();
    let (code, html, err) = store.run("memory-page", &[]);
    assert!(
        code == Some(0) && err.contains("without the notes' history") && data(&html).1.len() == 1,
        "{err}"
    );
}

#[test]
fn a_page_goes_nowhere_by_accident() {
    let store = store();
    let home = store.sandbox.home();
    let page = |args: &[&str]| store.run("memory-page", args);
    let file = home.join("notes.html");
    let path = file.to_str().unwrap();
    for _ in 0..2 {
        let (code, out, _) = page(&["-o", path]);
        assert_eq!(
            (code, out.as_str()),
            (Some(0), &*format!("{}\n", file.canonicalize().unwrap().display()))
        );
        assert_eq!((mode(&file) & 0o777, &fs::read(&file).unwrap()[..9]), (0o600, &b"<!doctype"[..]));
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    }
    let repository = home.join("project/.git");
    store.sandbox.write(&repository.join("HEAD"), "ref: refs/heads/main\n");
    store.sandbox.write(&repository.join("config"), "");
    store.sandbox.write(&home.join("mine.txt"), "mine");
    store.sandbox.write(&home.join("linked.txt"), "mine");
    symlink(home.join("linked.txt"), home.join("link.html"));
    symlink(home.join("nothing"), home.join("dangling.html"));
    fs::create_dir(home.join("folder")).unwrap();
    store.sandbox.write(&home.join("clone/.hg/requires"), "");
    let at = |path: &str| home.join(path).to_str().unwrap().to_owned();
    let inside = store.root().join("topics/x.html").to_str().unwrap().to_owned();
    for (to, why, is_forced) in [
        (at("project/notes.html"), "may be committed", true),
        (at("mine.txt"), "is not a page that axe wrote", true),
        (at("link.html"), "is not a page that axe wrote", true),
        (at("clone/notes.html"), "may be committed", true),
        (at("dangling.html"), "dangling.html", false),
        (at("folder"), "is not a regular file", false),
        (inside, "is in the store of the notes", false),
        (at("no/notes.html"), "cannot be written: No such file", false),
    ] {
        let (code, out, err) = page(&["-o", &to]);
        assert!(code == Some(1) && out.is_empty() && err.contains(why) && err.contains(&to), "{to}: {err}");
        assert_eq!(page(&["--force", "-o", &to]).0 == Some(0), is_forced, "{to}");
    }
    assert!(
        home.join("link.html").is_symlink()
            && fs::read(home.join("linked.txt")).unwrap().starts_with(b"<!doctype")
    );
    assert!(!store.topics().join("x.html").exists());
    assert_eq!(page(&["--force"]).0, Some(1));

    let mut full = store.sandbox.std_command("memory-page");
    assert_eq!(full.args(["-o", "-"]).stdout(full_disk()).status().unwrap().code(), Some(1));
    let terminal = Terminal::open();
    let mut command = store.sandbox.std_command("memory-page");
    let status = command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio()).status();
    assert_eq!(status.unwrap().code(), Some(1));
    drop(command);
    let shown = terminal.all();
    assert!(
        shown.contains("name a file: memory-page -o page.html") && !shown.contains("<!doctype"),
        "{shown}"
    );
}

#[test]
fn runs_have_a_page_too() {
    let store = store();
    // A line with an id that this toolkit does not make is not shown.
    let ledger = store.sandbox.home().join(".local/share/axe/runs/ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    let foreign = text.lines().last().unwrap().replace("\"parent\":\"", "\"parent\":\"\\u202e");
    store.sandbox.write(&ledger, format!("{text}{foreign}\n"));
    let runs = |args: &[&str]| store.run("axe-runs", args);
    let (code, html, err) = runs(&["--html", "-"]);
    assert!(code == Some(0) && err.contains("line 2 of the ledger is left out"), "{err}");
    let (page, items) = data(&html);
    assert_eq!((items.len(), &page["warnings"][0]["value"]), (2, &json!("failed")));
    assert_eq!(items[0]["values"], json!([["a <b>"], ["m/x"], ["axe-run"], ["failed"]]));
    assert_eq!(items[0]["text"], "api: \\u{1b}late");
    assert_eq!(items[0]["related"], json!({"Started by": ["20260227T100000Z-aaaaaa"]}));
    assert!(items[0]["facts"].as_array().unwrap().contains(&json!(["cost", "0.25"])), "{}", items[0]);
    assert_eq!(items[0]["events"], json!([["3 ms", "look {\"p\":\"</script>\"}, exit code 0"]]));
    assert_eq!(page["panels"][0]["plots"].as_array().unwrap().len(), 4);
    assert_eq!(data(&runs(&["--failed", "--limit", "1", "--html", "-"]).1).1.len(), 1);
    let to = store.sandbox.home().join("runs.html");
    assert_eq!((runs(&["--html", to.to_str().unwrap()]).0, mode(&to) & 0o777), (Some(0), 0o600));
    let inside = store.root().join("topics/x.html");
    let (code, _, err) = runs(&["--force", "--html", inside.to_str().unwrap()]);
    assert!(code == Some(1) && err.contains("is in the store") && !inside.exists(), "{err}");
    for args in [
        &["--html", "x", "--by", "day"][..],
        &["--html", "x", "--json"],
        &["--force"],
        &["20260227T100000Z-aaaaaa", "--html", "x"],
    ] {
        assert_eq!(runs(args).0, Some(1), "{args:?}");
    }
}

#[test]
fn the_links_of_listed_notes_are_a_graph() {
    let store = store();
    store.put(
        &format!("topics/{}", name("FFFFFF", "q")),
        note("FFFFFF", "'a \"b\" \\ & [c]'", "tier: cold\n"),
    );
    let graph = store.run("memory-list", &["--links", "dot"]).1;
    for line in [
        "  id__FFFFFF [label=\"a \\\"b\\\" \\\\ &amp; [c]\", style=dashed];",
        "  id__AAAAAA [label=\"Ports\", style=bold];",
        "  id__AAAAAA -> id__BBBBBB;",
        "  id__CCCCCC -> id__BBBBBB;",
    ] {
        assert!(graph.lines().any(|shown| shown == line), "{line}: {graph}");
    }
    assert_eq!((graph.matches("->").count(), graph.matches("DDDDDD").count()), (3, 0));
    let hot = store.run("memory-list", &["--links", "dot", "--tier", "hot"]).1;
    assert_eq!(hot, "digraph notes {\n  node [shape=box];\n  id__AAAAAA [label=\"Ports\", style=bold];\n}\n");
    let json = said(store.sandbox.command("memory-list").args(["--links", "dot", "--json"]));
    assert_eq!(json.0, Some(1));
    // Whoever has graphviz reads it.
    store.sandbox.file("graph", &graph);
    if let Ok(drawn) =
        Command::new("dot").args(["-Tplain", "graph"]).current_dir(store.sandbox.work()).output()
    {
        assert!(
            drawn.status.success() && String::from_utf8_lossy(&drawn.stdout).matches("\nnode ").count() == 4,
            "{drawn:?}"
        );
    }
}
