//! `memory-defrag` from a heap of notes to an orderly collection, and what it does when nothing has changed.

use crate::support::defrag::{MERGE_TWO, NOTHING, ONE_MERGED, id};
use crate::support::said;
use crate::support::store::{Store, names, value};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

/// Sixty notes: ten pairs of twins, three giants, chaotic tags, and a link from each to the next.
fn heap() -> Store {
    let store = Store::with_history();
    for n in 0..60 {
        let next = id((n + 1) % 60);
        let (title, more, body) = match n {
            0..20 => {
                let twin = n / 2;
                (
                    format!("Twin {twin} {}", ["first", "second"][n % 2]),
                    format!("used: {n}\n"),
                    format!(
                        "TWIN {twin} the server of team {twin} listens on port 81{twin:02}, see /srv/t{twin}/conf."
                    ),
                )
            }
            20..23 => {
                let lines: Vec<String> =
                    (0..70).map(|line| format!("- rule {line} of giant {n} is in src/g{line}.rs")).collect();
                (format!("Giant {n}"), String::new(), lines.join("\n"))
            }
            23..40 => {
                (format!("Chaos {n}"), format!("tags: [topic__chaos-{n}]\n"), format!("Chaotic idea {n}."))
            }
            _ => (format!("Idea {n}"), "tier: warm\n".to_owned(), format!("A plain idea, number {n}.")),
        };
        let pinned = if n == 59 { "pinned: true\ntier: hot\nstatus: promoted\n" } else { "" };
        let more = if n == 59 { pinned.to_owned() } else { more };
        store.noted(&id(n), &title, &more, &format!("{body}\n\nSee [[id__{next}]]."));
    }
    store
}

const TIDY: &str = r#"
made = []
twins = {}
for id in notes:
    m = re.match(r"TWIN (\d+)", bodies[id])
    if m: twins.setdefault(m.group(1), []).append(id)
    if titles[id].startswith("Giant"):
        lines = bodies[id].strip().split("\n")
        first, second = "\n".join(lines[:36]), "\n".join(lines[36:])
        made.append(split(id, part(first, titles[id] + ", the one half"), part(second, titles[id] + ", the other")))
    if titles[id].startswith("Chaos"): made.append(retag(id, "topic__order"))
    if titles[id] in ("Idea 40", "Idea 41"): made.append(tier(id, "hot"))
    if titles[id] in ("Idea 42", "Idea 43"): made.append(archive(id))
    if titles[id] == "Idea 44": made.append(rename(id, "Idea 44 has a name"))
for pair in twins.values(): made.append(merge(*sorted(pair)))
do(*made, notes="Twins are one now.")
"#;

#[test]
fn a_heap_becomes_orderly() {
    let store = heap();
    store.model_with_history(TIDY);
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out, "10 merged, 3 split, 1 renamed, 2 archived, 2 re-tiered, 17 retagged\n");
    let (topics, archive) = (names(&store.topics()), names(&store.archive()));
    assert_eq!((topics.len(), archive.len()), (60 - 10 - 2 + 3, 12), "{topics:?}");

    // Every link leads to a note, those to merged-away ids too.
    let all: String =
        store.tree().values().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    let links: BTreeSet<&str> = all.match_indices("[[id__").map(|(at, _)| &all[at..at + 14]).collect();
    assert!(links.len() >= 60, "{links:?}");
    let links: Vec<&str> = links.into_iter().collect();
    let (code, out, err) = store.run("memory-read", &[&["--no-count", "--json"][..], &links].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out.lines().count(), links.len());

    // What was merged is in the archive, with its successor; the successor has what they had.
    let successor = store.text(&format!("id__{}", id(0)));
    assert_eq!(value(&successor, "aliases"), Some(format!("[id__{}]", id(1)).as_str()), "{successor}");
    assert_eq!(value(&successor, "used"), Some("1"), "{successor}");
    let away =
        fs::read_to_string(store.archive().join(archive.iter().find(|name| name.contains(&id(1))).unwrap()))
            .unwrap();
    assert_eq!(value(&away, "supersededBy"), Some(format!("id__{}", id(0)).as_str()), "{away}");
    assert!(topics.iter().any(|name| name.starts_with("idea-44-has-a-name -- ")), "{topics:?}");

    // Agents see the hot ones whole.
    let section = store.section();
    for whole in ["A plain idea, number 40.", "A plain idea, number 41.", "A plain idea, number 59."] {
        assert!(section.contains(whole), "{whole}\n{section}");
    }
    assert!(section.contains("### Idea 45"), "while there is room, others too: {section}");

    // One commit, which says what was done.
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.arg("-C").arg(store.root()).args(args).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        String::from_utf8(git.output().unwrap().stdout).unwrap()
    };
    let log = git(&["log", "--format=%s"]);
    assert_eq!(log, "defrag: 10 merged, 3 split, 1 renamed, 2 archived, 2 re-tiered, 17 retagged\n");
    assert_eq!(git(&["status", "--porcelain", "topics", "archive"]), "");

    // The doctor has nothing to say of it.
    let (code, out, err) = store.run("memory-doctor", &["--json"]);
    assert_eq!(
        (code, out.contains("\"error\""), out.contains("topics/")),
        (Some(0), false, false),
        "{out}{err}"
    );

    // And it is a collection that the next run leaves alone.
    let before = (store.tree(), store.section());
    assert_eq!(store.tidied(&[]), NOTHING);
    assert_eq!(((store.tree(), store.section()), store.sandbox.prompts().len()), (before, 1));
}

#[test]
fn the_model_is_shown_all_that_it_decides_by() {
    let store = heap();
    store.model("do()");
    assert_eq!(store.tidied(&[]), NOTHING);
    let prompt = store.sandbox.last_prompt();
    for part in [
        "There are 60 notes of scope repo h/o/r, 1 of them hot; 60 are shown whole.",
        "15 to 25 focused notes of at most 40 lines",
        "room for 2500 tokens",
        "; tier: hot; pinned; kept; used: 0",
        "size: 72 lines",
        "1 notes link here",
        "# Likely duplicates",
    ] {
        assert!(prompt.contains(part), "no {part}");
    }
    let twins = format!("id__{} id__{} ", id(0), id(1));
    assert!(prompt.contains(&twins), "no {twins}");
}

#[test]
fn without_a_change_there_is_no_call_and_no_byte_changes() {
    let store = Store::new();
    store.with_two();
    store.model("do(tier('id__aaaaaa', 'hot'))");
    assert_eq!(store.tidied(&[]), "0 merged, 0 split, 0 renamed, 0 archived, 1 re-tiered\n");
    let before = (store.tree(), store.section());
    let modified = fs::metadata(store.target()).unwrap().modified().unwrap();
    assert_eq!(store.tidied(&[]), NOTHING);
    assert_eq!((store.tree(), store.section()), before);
    // Nor do reads make one necessary, or change what agents see.
    let (code, ..) = store.run("memory-read", &["id__aaaaaa", "id__bbbbbb"]);
    assert_eq!(code, Some(0));
    let read = store.tree();
    assert_ne!(read, before.0);
    assert_eq!(store.tidied(&[]), NOTHING);
    assert_eq!((store.tree(), store.section()), (read, before.1));
    assert_eq!(fs::metadata(store.target()).unwrap().modified().unwrap(), modified);
    assert_eq!(store.sandbox.prompts().len(), 1);
    let (result, _) = store.tidied_json(&[]);
    for key in ["merged", "split", "renamed", "archived", "reTiered", "rewritten", "retagged"] {
        assert_eq!(result[key], json!(0), "{result}");
    }
}

#[test]
fn a_new_note_an_edited_note_and_force_make_a_call() {
    let store = Store::new();
    store.with_two();
    store.model("do()");
    for (calls, args) in [(1, &[][..]), (1, &[]), (2, &["--force"]), (2, &[])] {
        assert_eq!(store.tidied(args), NOTHING);
        assert_eq!(store.sandbox.prompts().len(), calls, "{args:?}");
    }
    store.session("cccccc", "New");
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 3));
    store.noted("cccccc", "New", "", "Edited by hand.");
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 4));
    // A note that goes is no reason to ask.
    fs::remove_file(store.topics().join("new -- id__cccccc.md")).unwrap();
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 4));
}

#[test]
fn an_empty_store_is_in_order() {
    let store = Store::new();
    store.model("do()");
    for args in [&[][..], &["--force"]] {
        assert_eq!((store.tidied(args), store.sandbox.prompts().len()), (NOTHING.to_owned(), 0));
    }
    let (code, out, err) = store.defrag(&["--prompt"]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(err.contains("nothing has changed"), "{err}");
}

#[test]
fn what_a_merge_joins() {
    let store = Store::new();
    let source = |thread: &str| format!("sources:\n  - {{harness: amp, threadId: {thread}, repo: h/o/r}}\n");
    let first =
        "tags: [topic__a]\nused: 3\nlast_used: 2026-01-01T00:00:00Z\ncreatedAt: 2000\nupdatedAt: 2000\n";
    let second = "tags: [topic__b]\nused: 4\nlast_used: 2026-02-01T00:00:00Z\ncreatedAt: 1000\nupdatedAt: 1000\n\
                  tier: hot\nstatus: promoted\naliases: [id__zzzzzz]\n";
    store.noted("aaaaaa", "Guards", &format!("{first}{}", source("T-1")), "Guards are pure.");
    store.noted("bbbbbb", "Actors", &format!("{second}{}", source("T-2")), "Actors act.");
    store.model(MERGE_TWO);
    assert_eq!(store.tidied(&[]), ONE_MERGED);
    let text = store.text("topics/");
    for (key, wanted) in [
        ("id", "id__aaaaaa"),
        ("tags", "[topic__a, topic__b]"),
        ("used", "7"),
        ("last_used", "2026-02-01T00:00:00Z"),
        ("createdAt", "1000"),
        ("tier", "hot"),
        ("status", "promoted"),
        ("aliases", "[id__bbbbbb, id__zzzzzz]"),
    ] {
        assert_eq!(value(&text, key), Some(wanted), "{text}");
    }
    assert!(text.contains("T-1") && text.contains("T-2"), "{text}");
    let (_, out, _) = said(store.sandbox.command("memory-read").args(["id__zzzzzz", "--no-count", "--json"]));
    assert!(out.contains("id__aaaaaa"), "{out}");
}
