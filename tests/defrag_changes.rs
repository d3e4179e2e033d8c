//! What a run of `memory-defrag` shows: what has changed since the last one, and what that has to do with.

use crate::support::defrag::{NOTHING, id};
use crate::support::store::{Store, value};
use serde_json::json;
use std::collections::BTreeSet;

/// Words that no other note has.
fn words(number: usize) -> String {
    (0..30).map(|word| format!("word{number}x{word} ")).collect()
}

/// So many notes that have nothing to do with each other, seen by a first defrag.
fn settled(count: usize) -> Store {
    let store = Store::new();
    for n in 0..count {
        store.noted(
            &id(n),
            &format!("Idea{n}"),
            &format!("tags: [topic__t{}]\nused: {n}\n", n % 5),
            &words(n),
        );
    }
    store.model("do()");
    assert_eq!(store.tidied(&[]), NOTHING);
    store
}

/// The numbers of the notes that the last prompt shows whole, and of those that have a line there.
fn shown(store: &Store, count: usize) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let prompt = store.sandbox.last_prompt();
    let with = |start: &str, end: &str| {
        (0..count).filter(|n| prompt.contains(&format!("{start}id__{}{end}", id(*n)))).collect()
    };
    (with("<<< note ", " "), with("\n", " (scope: "))
}

#[test]
fn a_changed_note_is_shown_with_its_duplicates_and_what_it_links_to_or_shares_a_tag_with() {
    let store = settled(40);
    // 41 says what 7 says; 3 links to it, and it links to 12.
    store.noted(&id(3), "Idea3", "tags: [topic__t3]\nused: 3\n", &format!("{} [[id__{}]]", words(3), id(41)));
    store.noted(&id(41), "Idea41", "tags: [topic__new]\n", &format!("{} [[id__{}]]", words(7), id(12)));
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 2));
    let (whole, lines) = shown(&store, 42);
    // Beside them, up to three that share the tag topic__t3.
    let tagged: BTreeSet<usize> = whole.iter().copied().filter(|n| ![3, 7, 12, 41].contains(n)).collect();
    assert!(whole.is_superset(&[3, 7, 12, 41].into()), "{whole:?}");
    assert!(tagged.len() <= 3 && tagged.iter().all(|n| n % 5 == 3), "{whole:?}");
    assert_eq!(lines.len() + whole.len(), 41, "the others have a line: {lines:?}");
    let prompt = store.sandbox.last_prompt();
    assert_eq!(prompt.matches("; new\n").count(), 2, "{prompt}");
    assert!(prompt.contains("Those marked \"new\""), "{prompt}");
    // Nothing is asked twice, but --force shows everything, with nothing marked.
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 2));
    store.tidied(&["--force"]);
    let (whole, lines) = shown(&store, 42);
    assert_eq!((whole.len(), lines.len()), (41, 0));
    assert!(!store.sandbox.last_prompt().contains("; new\n"));
}

#[test]
fn tiers_are_decided_by_hot_pinned_and_changed_notes_and_the_hundred_most_used() {
    let store = settled(150);
    store.model("do(tier(listed[-1], 'hot', rank=90), tier(listed[0], 'cold'), archive(listed[1]))");
    store.noted(&id(0), "Idea0", "tier: hot\nstatus: promoted\n", &words(0));
    store.noted(&id(1), "Idea1", "tier: hot\nstatus: promoted\npinned: true\n", &words(1));
    let (result, err) = store.tidied_json(&[]);
    let (whole, lines) = shown(&store, 150);
    assert_eq!(whole, [0, 1].into(), "hot, pinned and changed");
    assert_eq!(lines, (50..150).collect(), "the most used");
    let prompt = store.sandbox.last_prompt();
    assert!(prompt.contains("48 more notes, little used and not hot, are not shown"), "{prompt}");
    assert_eq!(result["reTiered"], json!(2), "{result}");
    assert_eq!(result["operations"][0]["into"][0]["rank"], json!(90), "{result}");
    assert!(err.contains("only a line of"), "{err}");
    let text = store.text(&format!("id__{}", id(50)));
    assert_eq!((value(&text, "tier"), value(&text, "rank")), (Some("hot"), Some("90")), "{text}");
    assert!(
        store.text(&format!("id__{}", id(50))).contains("tier: hot\nstatus: promoted\nrank: 90\n")
            || store.text(&format!("id__{}", id(50))).contains("rank: 90")
    );
    // What the last run made hot is seen already: it is no news.
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 2));
    // A hot note has a line whatever its use.
    store.model("do()");
    store.noted(&id(5), "Idea5", "used: 5\n", "Changed.");
    store.tidied(&[]);
    let (whole, lines) = shown(&store, 150);
    assert!(whole.contains(&5) && lines.is_superset(&[0, 1, 50].into()), "{whole:?} {lines:?}");
}

#[test]
fn the_prompts_for_ten_changes_do_not_grow_with_the_store() {
    let bytes = [200, 800].map(|count| {
        let store = settled(count);
        for n in 0..10 {
            let (more, body) = (format!("tags: [topic__t{}]\n", n % 5), format!("{} changed", words(n)));
            store.noted(&id(n), &format!("Idea{n}"), &more, &body);
        }
        let before = store.sandbox.prompts().len();
        store.tidied(&[]);
        assert_eq!(store.sandbox.prompts().len(), before + 1);
        store.sandbox.last_prompt().len()
    });
    assert!(bytes[1] < bytes[0] + bytes[0] / 20, "{bytes:?}");
}

#[test]
fn what_has_waited_longest_is_asked_about_first() {
    let store = settled(2);
    let of = |repo: &str, at: u64| {
        format!("scope: repo\nupdatedAt: {at}\nsources:\n  - {{harness: amp, repo: h/o/{repo}}}\n")
    };
    store.model_with("do()", json!({"maxCallsPerRun": 1}));
    store.noted(&id(10), "One", &of("a", 3000), &words(10));
    store.noted(&id(11), "Two", &of("a", 4000), &words(11));
    store.noted(&id(12), "Three", &of("b", 2000), &words(12));
    let (code, _, err) = store.defrag(&[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(store.sandbox.last_prompt().contains("repo h/o/b"));
    // A later note of that repository does not go before what was left over.
    store.noted(&id(13), "Four", &of("b", 5000), &words(13));
    store.defrag(&[]);
    assert!(store.sandbox.last_prompt().contains("repo h/o/a"));
    store.defrag(&[]);
    assert!(store.sandbox.last_prompt().contains("repo h/o/b"));
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 4));
}

#[test]
fn a_note_whose_last_day_is_over_is_asked_about_once() {
    let store = settled(3);
    store.noted(&id(5), "Freeze", "until: 2026-02-28\n", "Nothing is merged this week.");
    let on = |day: &str| {
        let out = store.command(&[]).env("AXE_NOW", format!("{day}T12:00:00Z")).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        store.sandbox.prompts().len()
    };
    assert_eq!(on("2026-02-28"), 2);
    assert!(store.sandbox.last_prompt().contains("; until 2026-02-28"));
    assert!(!store.sandbox.last_prompt().contains("it no longer holds"));
    assert_eq!(on("2026-02-28"), 2, "it still holds");
    assert_eq!(on("2026-03-01"), 3);
    assert!(store.sandbox.last_prompt().contains("; until 2026-02-28; it no longer holds"));
    assert_eq!((on("2026-03-01"), on("2026-03-20")), (3, 3));
    // With another day it holds again, and ends again.
    store.noted(&id(5), "Freeze", "until: 2026-04-01\n", "Nothing is merged this week.");
    assert_eq!((on("2026-03-20"), on("2026-04-02"), on("2026-04-03")), (4, 5, 5));
}

/// The titles in AGENTS.md, whole ones first.
fn in_section(store: &Store) -> Vec<String> {
    let section = store.section();
    let names = ["Alpha", "Beta", "Gamma", "Delta"];
    let whole = names.iter().filter(|name| section.contains(&format!("### {name} ")));
    whole.map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_agents_md_has_no_room_for_is_decided_by_rank_and_then_by_use_as_of_the_last_defrag() {
    let store = Store::new();
    for (n, name) in ["Alpha", "Beta", "Gamma", "Delta"].iter().enumerate() {
        store.noted(&id(n), name, &format!("used: {n}\ntier: hot\nstatus: promoted\n"), &words(n));
    }
    let settings = |script: &str| {
        json!({
            "llm": {"command": store.sandbox.script(script)}, "storage": {"autoCommit": false},
            "agentsMd": {"targets": [{"path": store.target(), "repo": "h/o/r"}], "maxHotTokens": 200},
        })
    };
    // Room for two: the most used ones, in the order of their titles.
    store.sandbox.settings(settings("do()"));
    store.defrag(&[]);
    assert_eq!(in_section(&store), ["Gamma", "Delta"]);
    // A read changes nothing, until the next defrag.
    for _ in 0..5 {
        assert_eq!(store.run("memory-read", &[&id(0)]).0, Some(0));
    }
    let (_, _, err) = store.run("memory-agents-md", &[]);
    assert_eq!(in_section(&store), ["Gamma", "Delta"], "{err}");
    let calls = store.sandbox.prompts().len();
    store.defrag(&[]);
    assert_eq!(
        (in_section(&store), store.sandbox.prompts().len()),
        (vec!["Alpha".into(), "Delta".into()], calls)
    );
    // A rank goes before use.
    store.sandbox.settings(settings(&format!("do(tier('id__{}', 'hot', rank=10))", id(1))));
    store.defrag(&["--force"]);
    assert_eq!(in_section(&store), ["Alpha", "Beta"]);
}

#[test]
fn a_target_is_refreshed_when_a_note_has_ended_and_there_is_nothing_else_to_do() {
    let store = settled(3);
    store.noted(&id(5), "Freeze", "until: 2026-02-28\n", "Nothing is merged this week.");
    store.tidied(&[]);
    assert!(store.section().contains("### Freeze ("), "{}", store.section());
    let calls = store.sandbox.prompts().len();
    // Without a command, and with nobody who could be asked.
    store.llm("", json!({"command": null}), false);
    let out = store.command(&[]).env("AXE_NOW", "2026-03-01T12:00:00Z").output().unwrap();
    assert!(!store.section().contains("### Freeze ("), "{out:?} {}", store.section());
    assert_eq!(store.sandbox.prompts().len(), calls);
}
