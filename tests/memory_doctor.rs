//! `memory-doctor`: what each check says, that looking changes nothing, and what `--fix` mends.

use crate::support::store::{HOUR, Store, age, name, names, note, value};
use crate::support::{Said, set_mode, symlink};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Made up, of the shape of a real one.
const SECRET: &str = concat!("gh", "p_aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW2xY4");

/// The findings, by the words of a line; exit code and last lines aside.
pub(crate) fn findings(store: &Store) -> Vec<Vec<String>> {
    let (code, out, err) = store.run("memory-doctor", &[]);
    assert_eq!(err, "", "{out}");
    let rows: Vec<Vec<String>> = out
        .lines()
        .filter(|line| line.contains('\t'))
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect();
    assert!(rows.iter().all(|row| row.len() == 4 && row.iter().all(|word| !word.is_empty())), "{out}");
    let errors = rows.iter().filter(|row| row[0] == "error").count();
    assert_eq!(code, Some(if errors > 0 { 1 } else { 0 }), "{out}");
    rows
}

/// The one finding there is, as `severity file what`, and how to mend it.
pub(crate) fn only(store: &Store) -> (String, String) {
    let all = findings(store);
    let [row] = &all[..] else { panic!("not one finding: {all:#?}") };
    (row[..3].join(" "), row[3].clone())
}

fn config_file(store: &Store) -> String {
    store.sandbox.home().join(".config/agent-memory/config.json").display().to_string()
}

fn json(store: &Store, args: &[&str]) -> Value {
    let (_, out, err) = store.run("memory-doctor", &[&["--json"], args].concat());
    assert_eq!((out.lines().count(), err.as_str()), (1, ""), "{out}");
    serde_json::from_str(&out).unwrap()
}

/// A store whose every part is as it should be.
fn healthy() -> Store {
    let store = Store::new();
    let put = |place: &str, id: &str, title: &str, more: &str, body: &str| {
        store.put(&format!("{place}/{}", name(id, title)), note(id, title, more) + body);
    };
    put(
        "topics",
        "AAAAAA",
        "one",
        "aliases: [id__DDDDDD]\n",
        "[[id__BBBBBB]] [[id__CCCCCC]] [[id__DDDDDD]]\n",
    );
    put("topics", "BBBBBB", "two", "status: promoted\ntier: hot\n", "[[id__AAAAAA]] twice [[id__AAAAAA]]\n");
    put("archive", "CCCCCC", "old", "", "[[id__ZZZZZZ]] is an archived note's concern\n");
    put("archive", "DDDDDD", "merged", "supersededBy: id__AAAAAA\n", "");
    store
}

fn every_file(dir: &Path) -> Vec<(String, Vec<u8>, SystemTime)> {
    let mut all = Vec::new();
    for name in names(dir) {
        let path = dir.join(&name);
        if path.is_dir() && !path.is_symlink() {
            all.extend(every_file(&path));
        } else {
            let modified = path.symlink_metadata().unwrap().modified().unwrap();
            all.push((path.display().to_string(), fs::read(&path).unwrap_or_default(), modified));
        }
    }
    all
}

#[test]
fn a_healthy_store_is_one_line() {
    let store = healthy();
    assert_eq!(store.out("memory-doctor", &[]), "healthy: 2 notes\n");
    assert_eq!(store.out("memory-doctor", &["--fix"]), "healthy: 2 notes\n");
    assert_eq!(
        json(&store, &[]),
        json!({"findings": [], "errors": 0, "warnings": 0, "notes": 2, "harnesses": []})
    );
}

#[test]
fn what_the_programs_make_is_healthy() {
    let store = Store::with_history();
    store.out("memory-capture", &["--direct", "--title", "Ports", "--tags", "web", "--body", "8081"]);
    store.out("memory-capture", &["--title", "Waits", "--body", "x"]);
    let path = store.out("memory-capture", &["--direct", "--title", "Größe: 3 | x", "--body", "y"]);
    let id = path.trim().rsplit(' ').next().unwrap().trim_end_matches(".md");
    store.out("memory-update", &[id, "--pin", "--tier", "hot"]);
    store.out("memory-read", &[id]);
    assert_eq!(store.out("memory-doctor", &[]), "healthy: 2 notes\n");
}

#[test]
fn without_a_store_nothing_is_wrong_and_none_is_made() {
    let store = Store::new();
    for args in [&[][..], &["--fix"]] {
        let out = store.out("memory-doctor", args);
        assert!(
            out.starts_with("healthy: 0 notes\nthere is no store yet; start with memory-capture"),
            "{out}"
        );
    }
    assert!(!store.root().exists());
}

#[test]
fn looking_changes_no_byte_and_counts_no_read() {
    let store = Store::with_history();
    store.note("AAAAAA", "One");
    store.out("memory-update", &["AAAAAA", "--summary", "s"]);
    store.put("topics/wrong.md", note("BBBBBB", "Two", "tier: hot\n"));
    store.put("topics/broken.md", "x");
    store.put("topics/.a.md.x1Y2z3", "half");
    store.put("inbox/x.json", "{");
    store.put(".agent-memory/batches/batch__abcdefghijkm/batch.json", "{");
    let before = every_file(&store.root());
    for args in [&[][..], &["--json"]] {
        let (code, out, err) = store.run("memory-doctor", args);
        assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
        assert_eq!(every_file(&store.root()), before);
    }
}

#[test]
fn a_broken_link_is_an_error() {
    let store = healthy();
    let file = name("EEEEEE", "three");
    let body = "[[id__GGGGGG]] [[id__GGGGGG]]\n`[[id__HHHHHH]]`\n```\n[[id__JJJJJJ]]\n```\n";
    store.put(&format!("topics/{file}"), note("EEEEEE", "three", "") + body);
    let (line, mend) = only(&store);
    assert_eq!(line, format!("error topics/{file} its link [[id__GGGGGG]] points to no note"));
    assert_eq!(mend, "remove the link, or link to an existing note");
    store.put(&format!("topics/{file}"), note("EEEEEE", "three", "") + "[[id__AAAAAa]]\n");
    assert_eq!(only(&store).1, "did you mean [[id__AAAAAA]]?");
    // The note is there, and its own line says what is wrong with it.
    store.put(&format!("topics/{file}"), note("EEEEEE", "three", "") + "[[id__KKKKKK]]\n");
    store.put("topics/x -- id__KKKKKK.md", "damaged");
    assert!(only(&store).0.starts_with("error topics/x -- id__KKKKKK.md line 1: no front matter"));
}

#[test]
fn a_large_note_and_a_stale_one_are_warnings() {
    let store = Store::new();
    let large = store.note("AAAAAA", "large");
    let at_most = note("AAAAAA", "large", "") + &"line\n".repeat(39);
    fs::write(&large, &at_most).unwrap();
    assert_eq!(findings(&store), [[""; 4]; 0]);
    fs::write(&large, at_most + "one more\n").unwrap();
    let (line, mend) = only(&store);
    assert_eq!(
        line,
        format!("warning topics/{} has 41 lines; notes should have at most 40", name("AAAAAA", "large"))
    );
    assert!(mend.contains("memory-defrag"), "{mend}");
    fs::remove_file(large).unwrap();

    // 2025-08-01 is 211 days before the sandbox's day.
    let put = |more: &str| {
        let path = store.put(&format!("topics/{}", name("BBBBBB", "old")), note("BBBBBB", "old", more));
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_754_006_400)).unwrap();
    };
    for more in
        ["", "createdAt: 1700000000000\nupdatedAt: 1754006400000\n", "last_used: 2025-08-01T00:00:00Z\n"]
    {
        put(more);
        let (line, mend) = only(&store);
        let what = "was neither read nor changed for 211 days";
        assert_eq!(line, format!("warning topics/{} {what}", name("BBBBBB", "old")));
        assert!(mend.starts_with("memory-remove id__BBBBBB "), "{mend}");
    }
    for more in ["pinned: true\n", "last_used: 2026-02-01T00:00:00Z\n", "updatedAt: 1772000000000\n"] {
        put(more);
        assert_eq!(findings(&store), [[""; 4]; 0], "{more}");
    }
    put("");
    // Somebody has edited the file.
    age(&store.topics().join(name("BBBBBB", "old")), 0);
    assert_eq!(findings(&store), [[""; 4]; 0]);
}

#[test]
fn files_that_break_the_schema_are_errors() {
    for (text, what) in [
        ("no note".to_owned(), "line 1: no front matter"),
        (note("AAAAAA", "x", "tier: tepid\n"), "line 4: tier: \"tepid\" is not one of hot, warm, cold"),
        (note("AAAAAA", "x", "used: many\n"), "line 4: used: \"many\" is not a whole number"),
        (note("AAAAA", "x", ""), "line 2: id: \"id__AAAAA\" is not an id"),
        (note("AAAAAA", "\"\"", ""), "its title is empty"),
        (
            note("AAAAAA", "x", "tags: [Web, area__, a/b, c d]\n"),
            "\"Web\", \"area__\", \"a/b\", 1 more are not valid tags",
        ),
        (note("AAAAAA", "x", "tags: [Web]\n"), "\"Web\" is not a valid tag"),
    ] {
        let store = Store::new();
        let title = if text.contains("\"\"") { "untitled" } else { "x" };
        store.put(&format!("topics/{}", name("AAAAAA", title)), &text);
        let (line, _) = only(&store);
        assert!(line.starts_with("error topics/") && line.contains(what), "{text}{line}");
    }
}

#[test]
fn names_that_are_one_on_macos_are_reported() {
    let store = healthy();
    store.put("topics/caf\u{e9}.md", note("FFFFFF", "Two", "summary: In short.\n"));
    store.put("topics/cafe\u{301}.md", note("GGGGGG", "Three", "summary: In short.\n"));
    let (_, out, _) = store.run("memory-doctor", &[]);
    let line = "topics/caf\u{e9}.md  its name differs from \"cafe\u{301}.md\" in case or accents alone";
    assert!(out.replace('\t', "  ").contains(line), "{out}");
    // Names with ids are two everywhere.
    store.run("memory-doctor", &["--fix"]);
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(!out.contains("accents"), "{out}");
}

#[test]
fn two_files_with_one_id_are_an_error() {
    let store = healthy();
    store.put("archive/copy.md", note("AAAAAA", "one", ""));
    let (line, mend) = only(&store);
    let twin = format!("topics/{}", name("AAAAAA", "one"));
    assert_eq!(line, format!("error archive/copy.md has the same id, id__AAAAAA, as \"{twin}\""));
    assert_eq!(mend, "merge the two by hand, then remove one");
    let before = store.tree();
    store.run("memory-doctor", &["--fix"]);
    assert_eq!(store.tree(), before, "which of the two is right, a person has to say");
}

#[test]
fn aliases_that_clash_are_errors() {
    let store = healthy();
    let expect = |file: &str, more: &str, what: &str| {
        let path = store.put(&format!("topics/{}", name("EEEEEE", file)), note("EEEEEE", file, more));
        let (line, _) = only(&store);
        assert!(line.starts_with("error topics/") && line.contains(what), "{line}");
        fs::remove_file(path).unwrap();
    };
    expect(
        "a",
        "aliases: [id__AAAAAA]\n",
        "its alias id__AAAAAA is the id of another note, \"one -- id__AAAAAA.md\"",
    );
    expect("b", "aliases: [id__CCCCCC]\n", "its alias id__CCCCCC is the id of another note, \"old -- ");
    expect(
        "c",
        "aliases: [id__DDDDDD]\n",
        "its alias id__DDDDDD is ambiguous; it stands for id__AAAAAA, id__EEEEEE",
    );
    // A note that was merged twice over leaves its alias with both who took it in: they are one in the end.
    store.put(
        "archive/old -- id__CCCCCC.md",
        note("CCCCCC", "old", "aliases: [id__GGGGGG]\nsupersededBy: id__BBBBBB\n"),
    );
    let two = "status: promoted\ntier: hot\naliases: [id__CCCCCC, id__GGGGGG, id__BBBBBB]\n";
    store.put(&format!("topics/{}", name("BBBBBB", "two")), note("BBBBBB", "two", two));
    assert_eq!(findings(&store), [[""; 4]; 0]);
}

#[test]
fn a_missing_successor_or_a_circle_is_an_error() {
    let store = healthy();
    let put = |id: &str, successor: &str| {
        let more = format!("supersededBy: id__{successor}\n");
        store.put(&format!("archive/{}", name(id, "x")), note(id, "x", &more))
    };
    let nowhere = put("EEEEEE", "ZZZZZZ");
    assert_eq!(
        only(&store).0,
        format!(
            "error archive/{} its supersededBy, id__ZZZZZZ, is not the id of a note",
            name("EEEEEE", "x")
        )
    );
    fs::remove_file(nowhere).unwrap();
    put("EEEEEE", "GGGGGG");
    put("GGGGGG", "EEEEEE");
    // Leads into the circle, and is not part of it.
    put("HHHHHH", "EEEEEE");
    let all = findings(&store);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(
        all.iter().all(|row| row[0] == "error" && row[2].ends_with("leads back to the note itself")),
        "{all:?}"
    );

    let store = healthy();
    store.put(&format!("topics/{}", name("EEEEEE", "x")), note("EEEEEE", "x", "supersededBy: id__AAAAAA\n"));
    let (line, mend) = only(&store);
    assert!(
        line.starts_with("warning ")
            && line.ends_with("is in use, but its front matter says that id__AAAAAA supersedes it"),
        "{line}"
    );
    assert!(mend.starts_with("memory-remove id__EEEEEE "), "{mend}");
}

#[test]
fn a_secret_is_found_anywhere_and_never_printed() {
    let lower = SECRET.to_lowercase().replace('_', "-");
    for (file, text) in [
        ("x -- id__AAAAAA.md".to_owned(), note("AAAAAA", "x", "") + "\nthe token is\n" + SECRET + "\n"),
        (format!("{lower} -- id__AAAAAA.md"), note("AAAAAA", SECRET, "")),
        (format!("{SECRET}.md"), note("AAAAAA", SECRET, "")),
        ("x -- id__AAAAAA.md".to_owned(), note("AAAAAA", "x", &format!("summary: use {SECRET}\n"))),
        ("x -- id__AAAAAA.md".to_owned(), note("AAAAAA", "x", &format!("tags: [{SECRET}]\n"))),
        ("x -- id__AAAAAA.md".to_owned(), note("AAAAAA", "x", &format!("mine: {SECRET}\n"))),
        ("x -- id__AAAAAA.md".to_owned(), note("AAAAAA", "x", &format!("tier: {SECRET}\n"))),
        (format!("{SECRET} -- id__AAAAAA.md"), format!("no note: {SECRET}")),
    ] {
        let store = Store::new();
        store.put(&format!("topics/{file}"), &text);
        for args in [&[][..], &["--json"], &["--fix"], &["--fix", "--json"]] {
            let (code, out, err) = store.run("memory-doctor", args);
            assert_eq!(code, Some(1), "{out}");
            assert!(out.contains("contains what looks like a secret: github-token in line "), "{text}{out}");
            let said = (out + &err).to_lowercase();
            assert!(!said.contains(&SECRET.to_lowercase()[4..]), "{text}{said}");
        }
    }
    let store = Store::new();
    store.config(r#"{"storage": {"autoCommit": false}, "redact": {"patterns": ["ACME-[0-9]+"]}}"#);
    store.put(&format!("topics/{}", name("AAAAAA", "x")), note("AAAAAA", "x", "") + "\nACME-1 ACME-2\n");
    assert!(only(&store).0.ends_with("secret: custom in line 8 and 1 more"));
    store.config(
        r#"{"storage": {"autoCommit": false}, "redact": {"enabled": false, "patterns": ["ACME-[0-9]+"]}}"#,
    );
    assert_eq!(findings(&store), [[""; 4]; 0]);
}

/// A queue entry, `more` of which is its way to the session.
fn entry(timestamp: &str, harness: &str, retrieval: &Value) -> String {
    json!({"version": 1, "timestamp": timestamp, "harness": harness, "retrieval": retrieval,
        "context": {"cwd": null, "repo": null}})
    .to_string()
}

#[test]
fn the_queue_is_checked() {
    let store = healthy();
    let inline = json!({"method": "inline", "title": "t", "body": "b", "tags": [], "scope": "global", "threadId": null});
    store.put("inbox/new.json", entry("2026-02-27T00:00:00Z", "manual", &inline));
    assert_eq!(findings(&store), [[""; 4]; 0]);
    store.put("inbox/old.json", entry("2026-02-18T15:04:05Z", "manual", &inline));
    let (line, mend) = only(&store);
    assert_eq!(line, "warning inbox/old.json has waited for 10 days; it was never tried");
    assert!(mend.contains("memory-consolidate"), "{mend}");
    fs::remove_file(store.root().join("inbox/old.json")).unwrap();

    store.put("inbox/bad.json", "{\"version\": 1}");
    let (line, _) = only(&store);
    assert!(
        line.starts_with("error inbox/bad.json is not a queue entry: ") && line.contains("timestamp"),
        "{line}"
    );
    fs::remove_file(store.root().join("inbox/bad.json")).unwrap();

    store.put("inbox/.failed/f.json", entry("2026-02-01T00:00:00Z", "manual", &inline));
    store.put("inbox/.failed/f.error.json", r#"{"error": "the model\nsaid \u001b[31mno", "tries": 3}"#);
    let (line, mend) = only(&store);
    assert_eq!(line, "warning inbox/.failed/f.json has failed for good: the model said  [31mno");
    assert_eq!(mend, "memory-consolidate --retry-failed tries again");
}

#[test]
fn sessions_that_cannot_be_read_or_have_no_llm_command_are_reported() {
    let store = healthy();
    let reader = r#"{"storage": {"autoCommit": false}, "harnesses": {"amp": {"readCommand": "no-such-amp {threadId}"}}}"#;
    store.config(reader);
    let amp = json!({"method": "amp-thread", "threadId": "T-1"});
    store.put("inbox/a.json", entry("2026-02-27T00:00:00Z", "amp", &amp));
    let all = findings(&store);
    let told: Vec<String> = all.iter().map(|row| row[..3].join(" ")).collect();
    assert_eq!(
        told,
        [
            "error inbox 1 session waits to be read with \"no-such-amp\", which is not on PATH",
            "warning inbox 1 session waits for an LLM command, but none is set",
        ]
    );
    store.config(r#"{"storage": {"autoCommit": false}, "llm": {"command": "cat"}, "harnesses": {"amp": {"readCommand": "cat {threadId}"}}}"#);
    assert_eq!(findings(&store), [[""; 4]; 0]);
}

#[test]
fn unfinished_batches_are_reported() {
    let store = healthy();
    let state = |kind: &str, begun: &str| {
        json!({"kind": kind, "begun": begun, "answers": 0, "awaits": null, "isWithPerson": false, "isOver": false,
            "state": {"state": "runAgent"}})
        .to_string()
    };
    let dir = ".agent-memory/batches/batch__abcdefghijkm";
    let put = |text: &str| store.put(&format!("{dir}/batch.json"), text);
    put(&state("hand", "2026-02-28T01:00:00Z"));
    assert_eq!(findings(&store), [[""; 4]; 0], "somebody may be about to bring the reply");
    put(&state("hand", "2026-02-27T01:00:00Z"));
    store.put(
        &format!("{dir}/claimed/a.json"),
        entry("2026-02-27T00:00:00Z", "manual", &json!({"method": "file", "path": "/x"})),
    );
    assert_eq!(
        only(&store).0,
        format!(
            "warning {dir} was prepared by --prompt 38 hours ago and not applied, with 1 queue entry in it"
        )
    );
    put(&state("run", "2026-02-28T15:00:00Z"));
    assert_eq!(
        only(&store).0,
        format!("warning {dir} belongs to a run that did not finish, with 1 queue entry in it")
    );
    // While a run is at work it is not left.
    let lock = store.put(".agent-memory/run.lock", "memory-consolidate (process 7) since then\n");
    let held = File::options().read(true).open(lock).unwrap();
    held.lock().unwrap();
    let (code, out, err) = store.run("memory-doctor", &[]);
    assert_eq!((code, out.as_str()), (Some(0), "healthy: 2 notes\n"));
    assert_eq!(err, "running now: memory-consolidate (process 7) since then\n");
    drop(held);
    put("{\"state\":");
    let (line, mend) = only(&store);
    assert!(
        line.starts_with(&format!("error {dir} ")) && line.contains("batch.json\" cannot be read"),
        "{line}"
    );
    assert!(mend.contains("the next run sets the batch aside"), "{mend}");
    // What defrag keeps so that it can be taken back is not left.
    let defrag = ".agent-memory/defrag/batch__abcdefghijkm/batch.json";
    fs::remove_dir_all(store.root().join(dir)).unwrap();
    store.put(defrag, state("run", "2026-02-01T00:00:00Z").replace("\"isOver\":false", "\"isOver\":true"));
    assert_eq!(findings(&store), [[""; 4]; 0]);
    store.put(defrag, "x");
    assert!(only(&store).0.starts_with("error .agent-memory/defrag/"));
}

#[test]
fn ledgers_that_cannot_be_read_are_errors() {
    for (name, text) in
        [("sessions.json", "{"), ("asked.json", "{"), ("tries.json", "[1]"), ("defrag.json", "")]
    {
        let store = healthy();
        store.put(&format!(".agent-memory/{name}"), text);
        let (line, mend) = only(&store);
        assert!(line.starts_with(&format!("error .agent-memory/{name} ")), "{line}");
        assert!(mend.contains("move it away"), "{mend}");
    }
    let store = healthy();
    fs::create_dir_all(store.root().join(".agent-memory/calls.jsonl")).unwrap();
    assert!(only(&store).0.starts_with("error .agent-memory/calls.jsonl no LLM call is made, because "));
}

#[test]
fn targets_and_the_budget_for_hot_notes_are_checked() {
    let store = healthy();
    let target = store.sandbox.home().join("AGENTS.md");
    let config = |more: &str| {
        store.config(&format!(
            r#"{{"storage": {{"autoCommit": false}}, "agentsMd": {{"targets": ["~/AGENTS.md"{more}}}}}"#
        ));
    };
    config("]");
    let (line, mend) = only(&store);
    assert_eq!(line, format!("warning {} its section is out of date", target.display()));
    assert_eq!(mend, "memory-agents-md updates it");
    store.out("memory-agents-md", &[]);
    assert_eq!(findings(&store), [[""; 4]; 0]);
    store.out("memory-read", &["AAAAAA"]);
    assert_eq!(findings(&store), [[""; 4]; 0], "a read is no reason to write it again");

    fs::write(&target, "a\n<!-- agent-memory:start -->\nb\n").unwrap();
    let (line, mend) = only(&store);
    assert!(line.starts_with("error ") && line.contains("its markers are broken: "), "{line}");
    assert!(mend.contains("markers"), "{mend}");
    fs::remove_file(&target).unwrap();
    store.out("memory-agents-md", &[]);

    symlink("AGENTS.md", store.sandbox.home().join("CLAUDE.md"));
    config(r#", "~/CLAUDE.md"]"#);
    let (line, _) = only(&store);
    assert!(
        line.starts_with("warning ") && line.contains("CLAUDE.md this target is the same file as \""),
        "{line}"
    );
    config(r#", {"path": "~/CLAUDE.md", "repo": "h/o/r"}]"#);
    let (line, _) = only(&store);
    assert!(line.starts_with("error ") && line.contains("which gets other notes"), "{line}");

    config(r#"], "maxHotTokens": 1"#);
    store.run("memory-agents-md", &[]);
    let (line, mend) = only(&store);
    assert!(
        line.starts_with("warning topics hot notes and your own take ")
            && line.ends_with(", so these are only linked: \"two\""),
        "{line}"
    );
    assert!(mend.contains("agentsMd.maxHotTokens"), "{mend}");
}

#[test]
fn leftovers_of_killed_programs_are_reported_and_removed() {
    let store = healthy();
    let old = [
        "topics/.a.md.x1Y2z3",
        "archive/.b.md.000000",
        "inbox/.q.json.x1Y2z3",
        ".agent-memory/.tries.json.x1Y2z3",
    ];
    for path in old {
        age(&store.put(path, "half"), 2 * HOUR);
    }
    // A capture may be about to be done with it.
    let new = store.put("inbox/.n.json.x1Y2z3", "half");
    // Not ours.
    let other = store.put("topics/.a.md.swp", "an editor's");
    let all = findings(&store);
    let mut told: Vec<&str> = all.iter().map(|row| row[1].as_str()).collect();
    told.sort_unstable();
    let mut expected = old;
    expected.sort_unstable();
    assert_eq!(told, expected);
    assert!(
        all.iter().all(|row| row[0] == "warning" && row[3] == "memory-doctor --fix removes it"),
        "{all:?}"
    );
    let out = store.out("memory-doctor", &["--fix"]);
    assert_eq!(
        out.lines().filter(|line| line.starts_with("fixed\t") && line.ends_with("\tremoved")).count(),
        4,
        "{out}"
    );
    assert!(out.ends_with("\nhealthy: 2 notes\n"), "{out}");
    assert!(old.iter().all(|path| !store.root().join(path).exists()));
    assert!(new.exists() && other.exists());
}

#[test]
fn a_change_that_a_killed_program_left_is_reported_without_fix_and_completed_with_it() {
    let store = healthy();
    let change = store.put(".agent-memory/change.json", r#"{"revisions": [], "merge": null}"#);
    // A program may be at it.
    assert_eq!(findings(&store), Vec::<Vec<String>>::new());
    age(&change, HOUR);
    let (what, mend) = only(&store);
    assert_eq!(
        what,
        "warning .agent-memory/change.json a program was killed while it changed several notes, and not all are written"
    );
    assert_eq!(mend, "the next program that changes a note completes it; so does memory-doctor --fix");
    assert!(change.exists());
    store.out("memory-doctor", &["--fix"]);
    assert!(!change.exists());
    // One that cannot be read stops every program that changes a note.
    let change = store.put(".agent-memory/change.json", "half");
    let (what, mend) = only(&store);
    assert!(what.starts_with("error .agent-memory/change.json no note can be changed: "), "{what}");
    assert!(mend.starts_with("move it away"), "{mend}");
    assert!(change.exists());
}

#[test]
fn a_store_that_others_can_read_is_a_warning() {
    let store = healthy();
    set_mode(&store.root(), 0o755);
    let mut above = store.root();
    while above.pop() && above.starts_with(store.sandbox.home().parent().unwrap()) {
        set_mode(&above, 0o755);
    }
    let (line, mend) = only(&store);
    assert_eq!(
        line,
        format!("warning {} everybody on this machine can read the notes", store.root().display())
    );
    assert!(mend.starts_with("chmod 700 "), "{mend}");
    // Nobody comes as far as the store.
    set_mode(&store.sandbox.home(), 0o700);
    assert_eq!(findings(&store), [[""; 4]; 0]);
}

#[test]
fn a_missing_command_is_an_error() {
    let store = healthy();
    let config = |command: &str| {
        let presets = json!({"mine": "A=1 no-such-preset -x"});
        let llm = json!({"storage": {"autoCommit": false}, "llm": {"command": command, "presets": presets}});
        store.config(&llm.to_string());
    };
    for (command, what) in [
        ("mine", Some("llm.command: \"no-such-preset\" is not on PATH")),
        ("A=1 no-such-llm -x | cat", Some("llm.command: \"no-such-llm\" is not on PATH")),
        ("/no/such/llm", Some("llm.command: there is no program \"/no/such/llm\"")),
        ("~/no/such", Some("llm.command: there is no program \"~/no/such\"")),
        ("bin/llm", Some("llm.command starts \"bin/llm\", but every call runs in an empty directory")),
        ("cat", None),
        ("/bin/cat", None),
        ("cd /tmp && no-such-llm", None),
        ("\"$HOME\"/bin/llm", None),
    ] {
        config(command);
        match what {
            Some(what) => {
                assert_eq!(only(&store).0, format!("error {} {what}", config_file(&store)), "{command}")
            }
            None => assert_eq!(findings(&store), [[""; 4]; 0], "{command}"),
        }
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_the_programs_own_error() {
    let store = healthy();
    store.config("{\"storage\": {\"roof\": \"x\"}}");
    let (code, out, err) = store.run("memory-doctor", &["--json"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("storage.roof") && err.contains("storage.root"), "{err}");
    store.config(r#"{"storage": {"autoCommit": false}, "redact": {"patterns": ["("]}}"#);
    let (line, _) = only(&store);
    assert!(line.starts_with("error ") && line.contains("redact.patterns: pattern 1 '('"), "{line}");
}

#[test]
fn an_untrusted_configuration_is_reported_and_its_store_is_not_touched() {
    let store = Store::new();
    store.sandbox.file("memory.config.json", r#"{"storage": {"root": "notes"}}"#);
    store.sandbox.file("notes/topics/wrong.md", note("AAAAAA", "x", "tier: hot\n"));
    let (code, out, err) = store.run("memory-doctor", &["--fix"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(
        out.contains("memory.config.json\tis not trusted: nothing in it counts but lower caps"),
        "{out}{err}"
    );
    assert_eq!(names(&store.sandbox.work().join("notes/topics")), ["wrong.md"]);
    assert!(!store.sandbox.work().join("notes/.agent-memory").exists());
}

#[test]
fn a_wrong_clock_and_a_garbled_ledger_are_reported() {
    let store = Store::new();
    store.put(
        ".agent-memory/tries.json",
        r#"{"q": {"tries": 1, "not_before": "2100-01-01T00:00:00Z", "error": "x"}}"#,
    );
    store.put(".agent-memory/calls.jsonl", "garbage\n");
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(out.contains("1 pause ends later than any can: the clock was ahead once"), "{out}");
    assert!(out.contains("7 bytes cannot be read, and count as calls of each day"), "{out}");
}

#[test]
fn fix_corrects_names_and_status_and_reports_each() {
    let store = Store::with_history();
    store.put("topics/by hand.md", note("AAAAAA", "One", "tags: [topic__x]\n# mine\nkey: kept\n"));
    store.put(&format!("topics/{}", name("BBBBBB", "two")), note("BBBBBB", "two", "tier: hot\n"));
    store.put("topics/three.md", note("CCCCCC", "Three", "status: promoted\ntier: cold\n"));
    store.put("archive/four.md", note("DDDDDD", "Four", "status: promoted\n"));
    store.put("topics/broken -- id__EEEEEE.md", "---\nid: id__EEEEEE\nstatus: promoted\n---\n");
    let all = findings(&store);
    assert_eq!(all.iter().filter(|row| row[0] == "warning").count(), 5, "{all:#?}");
    let (code, out, err) = store.run("memory-doctor", &["--fix"]);
    assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
    let lines: Vec<&str> = out.lines().collect();
    let mended = |line: &str| lines.contains(&line);
    assert!(
        mended(
            "fixed\ttopics/by hand.md\tits name did not match its front matter\trenamed to \"one -- topic__x id__AAAAAA.md\""
        ),
        "{out}"
    );
    assert!(
        mended(&format!(
            "fixed\ttopics/{}\twas captured and hot\tits status is now promoted",
            name("BBBBBB", "two")
        )),
        "{out}"
    );
    assert!(mended("fixed\ttopics/three.md\twas promoted and cold\tits status is now consolidated"), "{out}");
    assert!(
        mended(
            "fixed\tarchive/four.md\tits name did not match its front matter\trenamed to \"four -- id__DDDDDD.md\""
        ),
        "{out}"
    );
    assert!(lines.contains(&"1 error in 3 notes"), "{out}");
    assert_eq!(
        store.names(),
        [
            "archive/four -- id__DDDDDD.md",
            "topics/broken -- id__EEEEEE.md",
            "topics/one -- topic__x id__AAAAAA.md",
            "topics/three -- id__CCCCCC.md",
            "topics/two -- id__BBBBBB.md",
        ]
    );
    assert_eq!(store.text("AAAAAA"), note("AAAAAA", "One", "tags: [topic__x]\n# mine\nkey: kept\n"));
    assert_eq!(value(&store.text("BBBBBB"), "status"), Some("promoted"));
    assert_eq!(value(&store.text("DDDDDD"), "status"), Some("promoted"), "what is archived stays as it was");
    assert_eq!(store.text("EEEEEE"), "---\nid: id__EEEEEE\nstatus: promoted\n---\n");
    let log =
        std::process::Command::new("git").args(["log", "--format=%s"]).current_dir(store.root()).output();
    assert_eq!(log.unwrap().out(), "doctor: 4 notes fixed\n");
    // Once more there is nothing to do.
    let before = every_file(&store.root().join("topics"));
    let (code, out, _) = store.run("memory-doctor", &["--fix"]);
    assert_eq!(code, Some(1));
    assert!(!out.contains("fixed\t"), "{out}");
    assert_eq!(every_file(&store.root().join("topics")), before);
    let log =
        std::process::Command::new("git").args(["log", "--format=%s"]).current_dir(store.root()).output();
    assert_eq!(log.unwrap().out(), "doctor: 4 notes fixed\n");
}

#[test]
fn what_fix_cannot_correct_stays_and_is_reported() {
    let store = Store::new();
    // The name is taken by a file that is somebody's.
    store.put("topics/mine.md", note("AAAAAA", "one", ""));
    store.put(&format!("topics/{}", name("AAAAAA", "one")), "no note");
    // All on one line, in braces: no line of the status's own.
    store.put(
        &format!("topics/{}", name("BBBBBB", "two")),
        "---\n{id: id__BBBBBB, title: two, tier: hot}\n---\n",
    );
    // What a link leads to lies elsewhere.
    let elsewhere = store.sandbox.work().join("elsewhere.md");
    fs::write(&elsewhere, note("CCCCCC", "three", "tier: hot\n")).unwrap();
    symlink(&elsewhere, store.topics().join("linked.md"));
    let before = (store.tree(), fs::read(&elsewhere).unwrap());
    let (code, out, _) = store.run("memory-doctor", &["--fix"]);
    assert_eq!(code, Some(1));
    assert!(!out.contains("fixed\t") && out.contains("1 error, 4 warnings in 3 notes\n"), "{out}");
    assert_eq!((store.tree(), fs::read(&elsewhere).unwrap()), before);
}

#[test]
fn json_has_every_finding_and_every_fix() {
    let store = healthy();
    store.put("topics/wrong.md", note("EEEEEE", "three", "") + "[[id__ZZZZZZ]]\n");
    let all = json(&store, &[]);
    assert_eq!((&all["errors"], &all["warnings"], &all["notes"]), (&json!(1), &json!(1), &json!(3)));
    let path = store.topics().join("wrong.md").display().to_string();
    assert_eq!(
        all["findings"][0],
        json!({"severity": "error", "check": "link", "file": path, "what": "its link [[id__ZZZZZZ]] points to no note",
            "mend": "remove the link, or link to an existing note", "fixed": false})
    );
    let all = json(&store, &["--fix"]);
    assert_eq!((&all["errors"], &all["warnings"]), (&json!(1), &json!(0)));
    assert_eq!(
        all["findings"][0]["file"],
        store.topics().join("three -- id__EEEEEE.md").display().to_string()
    );
    assert_eq!((&all["findings"][1]["check"], &all["findings"][1]["fixed"]), (&json!("name"), &json!(true)));
    assert_eq!(all["findings"][1]["file"], path);
}

#[test]
fn hostile_names_and_titles_keep_to_their_line() {
    use std::os::unix::ffi::OsStrExt;
    let store = Store::new();
    let title = "\"a\\nerror\\tb | c \\e[2J \\u202e\"";
    store.put(
        "topics/a\nerror\tx\u{1b}[31m|\u{202e}\u{2028}.md",
        note("AAAAAA", title, "tags: [\"x\\ny\\e[2J\"]\n"),
    );
    store.put("topics/| b \t\r.md", "\u{1b}]0;x\u{7} no note");
    let raw = std::ffi::OsStr::from_bytes(b"\xff\xfe\n.md");
    fs::write(store.topics().join(raw), "no note").unwrap();
    symlink("a\nb", store.topics().join("dangling\n.md"));
    let (code, out, err) = store.run("memory-doctor", &[]);
    assert_eq!((code, err.as_str()), (Some(1), ""));
    assert_eq!(out.lines().count(), 7, "{out:?}");
    assert!(!out.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{out:?}");
    assert!(!out.contains(['\u{202e}', '\u{2028}']), "{out:?}");
    assert!(out.lines().take(5).all(|line| line.matches('\t').count() == 3), "{out:?}");
    let (code, out, err) = store.run("memory-doctor", &["--fix"]);
    assert_eq!((code, err.as_str()), (Some(1), ""), "{out}");
    assert!(
        store.names().contains(&"topics/a-error-b-c-2j -- id__AAAAAA.md".to_owned()),
        "{:?}",
        store.names()
    );
    assert_eq!(json(&store, &[])["errors"], 4);
}

#[test]
fn a_store_that_is_not_a_directory_is_an_error_and_the_rest_is_still_checked() {
    let store = Store::new();
    store.sandbox.write(&store.root(), "a file");
    let all = findings(&store);
    assert!(all.iter().all(|row| row[0] == "error"), "{all:?}");
    assert!(all.iter().any(|row| row[2] == "the store is not a directory"), "{all:?}");

    let store = healthy();
    fs::remove_dir_all(store.archive()).unwrap();
    store.put("archive", "a file");
    store.put("topics/broken.md", "x");
    fs::remove_dir_all(store.root().join("inbox")).unwrap_or_default();
    symlink("inbox", store.root().join("inbox"));
    let all = findings(&store);
    let of = |file: &str| all.iter().any(|row| row[0] == "error" && row[1] == file);
    assert!(of("archive") && of("inbox") && of("topics/broken.md"), "{all:#?}");

    let store = Store::new();
    symlink("agent-memory", store.root());
    assert!(
        findings(&store)
            .iter()
            .any(|row| row[0] == "error" && row[2].starts_with("the store cannot be read"))
    );
}

#[test]
fn of_many_of_a_kind_a_few_are_shown_and_the_rest_counted() {
    let store = healthy();
    for n in 0..100 {
        store.put(&format!("topics/{n:03}.md"), "x");
    }
    let links: String = (0..6).map(|n| format!("[[id__ZZZZZ{}]]", n + 1)).collect();
    store.put(&format!("topics/{}", name("EEEEEE", "x")), note("EEEEEE", "x", "") + &links);
    let (code, out, _) = store.run("memory-doctor", &[]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines.len()), (Some(1), 5 + 1 + 6 + 2), "{out}");
    assert!(lines[4].starts_with("error\ttopics/004.md\t"), "{out}");
    assert_eq!(lines[5], "error\t…\t95 more like these (schema)\tmemory-doctor --json lists all");
    assert_eq!(lines[12], "106 errors in 3 notes");
    assert!(lines[13].starts_with("next: fix the errors, then run memory-doctor again (store: /"), "{out}");
    assert_eq!(json(&store, &[])["findings"].as_array().unwrap().len(), 106);
}

#[test]
fn ten_thousand_links_are_followed() {
    let store = Store::new();
    let digits = "ABCDEFGHJK";
    let id = |n: usize| -> String {
        let at = |place: u32| digits.chars().nth(n / 10_usize.pow(place) % 10).unwrap();
        ["1", "1"].iter().map(|one| one.chars().next().unwrap()).chain([at(3), at(2), at(1), at(0)]).collect()
    };
    let links: String = (0..10_000).map(|n| format!("[[id__{}]]\n", id(n))).collect();
    store.put(&format!("topics/{}", name("AAAAAA", "all")), note("AAAAAA", "all", "") + &links);
    store.put(&format!("topics/{}", name(&id(7), "one")), note(&id(7), "one", ""));
    let all = json(&store, &[]);
    assert_eq!((&all["errors"], &all["warnings"]), (&json!(9_999), &json!(1)));
    let out = store.run("memory-doctor", &[]).1;
    assert_eq!(out.lines().count(), 5 + 1 + 1 + 2, "{out}");
}

#[test]
fn the_hooks_of_each_harness_are_checked() {
    let store = Store::new();
    let home = store.sandbox.home();
    for dir in [".claude", ".gemini", ".config/opencode"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    let of = |harness: &str| -> Vec<Value> {
        let all = json(&store, &[]);
        let hooks = all["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "hooks");
        hooks.filter(|finding| finding["mend"].as_str().unwrap().ends_with(harness)).cloned().collect()
    };
    for (harness, title) in
        [("claude-code", "Claude Code"), ("gemini", "Gemini CLI"), ("opencode", "opencode")]
    {
        let found = of(harness);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = found[0]["what"].as_str().unwrap();
        assert!(what.starts_with(&format!("{title} has no hook that runs memory-capture")), "{what}");
        assert!(!what.contains(';'), "it never captured anything, which is no trouble: {what}");
        assert_eq!(found[0]["mend"], format!("memory-install-hooks --harness {harness}"));
    }

    // memory-recall may be of a later build than this test's: its path is a stand-in.
    let tools = home.join("tools");
    for program in ["memory-capture", "memory-recall"] {
        store.sandbox.write(&tools.join(program), "#!/bin/sh\n");
        set_mode(&tools.join(program), 0o755);
    }
    let hook =
        |program: &str| json!([{"hooks": [{"type": "command", "command": tools.join(program).to_str()}]}]);
    let settings = |capture: &str| {
        let (start, act) = (hook("memory-recall"), hook("memory-recall"));
        json!({"hooks": {"Stop": hook(capture), "SessionStart": start, "PreToolUse": act}})
    };
    store.sandbox.write(&home.join(".claude/settings.json"), settings("memory-capture").to_string());
    assert_eq!(of("claude-code"), Vec::<Value>::new());
    fs::remove_file(tools.join("memory-capture")).unwrap();
    let found = of("claude-code");
    assert!(
        found[0]["what"].as_str().unwrap().contains("tools/memory-capture\", which does not exist"),
        "{found:?}"
    );

    let waiting = store.root().join("inbox/.processed/2026-01-05T10-00-00.000Z_gemini_1a2B3c4D.json");
    store.sandbox.write(&waiting, "{}");
    assert!(of("gemini")[0]["what"].as_str().unwrap().ends_with("it last captured on 2026-01-05"));
    let state = &json(&store, &[])["harnesses"];
    let gemini = state.as_array().unwrap().iter().find(|state| state["harness"] == "gemini").unwrap();
    assert_eq!((&gemini["hooks"], &gemini["lastCapture"]), (&json!(false), &json!("2026-01-05T10:00:00Z")));
    let settings = json!({"hooks": {"AfterAgent": hook("memory-recall"), "BeforeAgent": [{"hooks": [{"command": "memory-capture; x"}]}]}});
    store.sandbox.write(&home.join(".gemini/settings.json"), settings.to_string());
    store.sandbox.write(&tools.join("memory-capture"), "#!/bin/sh\n");
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(
        out.contains("Gemini CLI has its hooks, but it last captured on 2026-01-05, 54 days ago"),
        "{out}"
    );

    store.sandbox.write(&home.join(".claude/settings.json"), "{\n  // mine\n}");
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(
        out.contains("info\t") && out.contains("claude-code: hooks are missing, never captured"),
        "{out}"
    );
    store.sandbox.write(&home.join(".claude/settings.json"), "{\n  mine\n}");
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(
        out.contains("the hooks of Claude Code cannot be checked: ") && out.contains("line 2, column 3"),
        "{out}"
    );
}

#[test]
fn a_store_that_cannot_be_written_to_is_not_healthy() {
    let Some(disk) = crate::support::disk::Disk::new() else { return };
    let store = Store::new();
    store.config(&json!({"storage": {"root": disk.path("s"), "autoCommit": false}}).to_string());
    store.out("memory-capture", &["--title", "T", "--body", "b", "--direct"]);
    assert_eq!(store.run("memory-doctor", &[]).0, Some(0));
    let state = crate::support::store::names(&disk.path("s/.agent-memory"));
    assert!(state.iter().all(|name| !name.contains("probe")), "{state:?}");
    disk.fill();
    disk.fill_names();
    let (code, out, _) = store.run("memory-doctor", &[]);
    assert_eq!(code, Some(1), "{out}");
    assert!(out.contains("the store cannot be written to: "), "{out}");
}
