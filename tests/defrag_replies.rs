//! What `memory-defrag` makes of replies that are hostile, careless or no replies at all.

use crate::support::defrag::{NOTHING, ONE_MERGED, id};
use crate::support::store::{Store, names, value};
use serde_json::{Value, json};

/// Notes 0 to 9, the first of them pinned.
fn ten() -> Store {
    let store = Store::new();
    for n in 0..10 {
        let more = if n == 0 { "pinned: true\ntier: hot\nstatus: promoted\n" } else { "" };
        let body = format!("The service of team {n} listens on port 81{n}0 and is set up in /srv/t{n}/conf.");
        store.noted(&id(n), &format!("Service {n}"), more, &body);
    }
    store
}

/// What a script comes to: the result, and stderr.
fn done(store: &Store, script: &str) -> (Value, String) {
    store.model(&format!("ids = sorted(notes)\n{script}"));
    store.tidied_json(&[])
}

fn whys(result: &Value) -> Vec<&str> {
    result["dropped"].as_array().unwrap().iter().map(|one| one["why"].as_str().unwrap()).collect()
}

#[test]
fn of_a_reply_that_archives_everything_one_in_ten_is_done() {
    let store = ten();
    let (result, err) = done(&store, "do(*[archive(id) for id in ids])");
    assert_eq!((&result["archived"], whys(&result).len()), (&json!(1), 9), "{result}");
    assert_eq!(whys(&result)[0], format!("id__{} is pinned", id(0)));
    assert!(
        whys(&result)[1].contains("a run archives at most 1 of 10 notes (--allow-loss: more)"),
        "{result}"
    );
    assert_eq!(
        err.lines().filter(|line| line.starts_with("Warning: dropped: archive id__")).count(),
        9,
        "{err}"
    );
    assert_eq!((names(&store.topics()).len(), names(&store.archive()).len()), (9, 1));
}

#[test]
fn all_in_one_is_done_only_if_nothing_is_lost() {
    let store = ten();
    let before = store.tree();
    let (result, err) =
        done(&store, "do(merge(*ids, body='All services listen somewhere.', title='Services'))");
    assert_eq!((store.tree(), &result["merged"]), (before, &json!(0)));
    assert!(err.contains("it would remove ") && err.contains("8100"), "{err}");
    let (result, _) = {
        store.model("do(merge(*sorted(notes)[1:]))");
        store.tidied_json(&["--force"])
    };
    assert_eq!(result["merged"], json!(1), "{result}");
    assert_eq!((names(&store.topics()).len(), names(&store.archive()).len()), (2, 8));
}

#[test]
fn what_drops_facts_is_not_done_and_the_facts_are_named() {
    for (body, fact) in [
        ("Listens on the port, set up in /srv/t1/conf.", "8110"),
        ("Listens on port 8110, set up in its directory.", "/srv/t1/conf"),
        ("Listens on port 81100, set up in /srv/t1/conf.", "8110"),
    ] {
        let store = ten();
        let before = store.tree();
        let body = format!("The service of team 1: {body}");
        let (result, err) = done(&store, &format!("do(rewrite(ids[1], {body:?}), tier(ids[1], 'cold'))"));
        assert!(whys(&result)[0].contains(fact) && err.contains(fact), "{result}");
        assert_eq!(result["reTiered"], json!(1));
        assert_ne!(store.tree(), before, "the rest is done");
        store.model(&format!("do(rewrite(sorted(notes)[1], {body:?}))"));
        let (result, _) = store.tidied_json(&["--force", "--allow-loss"]);
        assert_eq!((&result["rewritten"], &result["operations"][0]["lost"]), (&json!(1), &json!([fact])));
    }
    let store = Store::new();
    store.noted("aaaaaa", "Guards", "", "Guards are pure, see [[id__bbbbbb]] and https://example.org/x?y=1.");
    store.noted("bbbbbb", "Actors", "", "Actors act.");
    let (result, _) = done(&store, "do(rewrite('id__aaaaaa', 'Guards are pure.'))");
    assert!(whys(&result)[0].contains("[[id__bbbbbb]]"), "{result}");
    assert!(whys(&result)[0].contains("https://example.org/x?y=1"), "{result}");
}

#[test]
fn ids_that_are_no_notes_are_no_paths_either() {
    let store = ten();
    let before = store.tree();
    let script = r#"
bad = ["id__zzzzzz", "../../../etc/passwd", "id__../aaa", "", "id__aaaaaa\u0000", "\u001b[31mred", "x" * 100000]
do(*[archive(id) for id in bad], *[merge(ids[1], id, body="x", title="y") if False else
     {"op": "merge", "ids": [ids[1], id], "title": "T", "summary": "", "tags": [], "body": "B"} for id in bad])
"#;
    let (result, err) = done(&store, script);
    assert_eq!(whys(&result).len(), 14, "{result}");
    assert_eq!(store.tree(), before);
    assert!(err.len() < 10_000 && !err.contains('\u{1b}') && !err.contains('\0'), "{}", &err[..2000]);
    assert!(err.contains("no note with the id id__zzzzzz was shown"), "{err}");
}

#[test]
fn no_note_is_in_two_structural_operations() {
    let store = ten();
    let script = "do(merge(ids[1], ids[2]), archive(ids[2]), merge(ids[3], ids[1]), rewrite(ids[1], bodies[ids[1]]),
        split(ids[1], part('a'), part('b')), rename(ids[1], 'Other'), tier(ids[2], 'hot'), merge(ids[4], ids[4]),
        merge(ids[5]), tier(ids[1], 'cold'), tier(ids[1], 'hot'), retag(ids[6], 'topic__x'), rename(ids[6], 'Six 6'))";
    let (result, _) = done(&store, script);
    assert_eq!(
        (&result["merged"], &result["reTiered"], &result["retagged"], &result["renamed"]),
        (&json!(1), &json!(1), &json!(1), &json!(1)),
        "{result}"
    );
    assert_eq!(whys(&result).len(), 9, "{result}");
    assert_eq!(value(&store.text(&format!("topics/service-1 -- id__{}", id(1))), "tier"), Some("cold"));
}

#[test]
fn pinned_notes_stay_hot() {
    let store = ten();
    let before = store.tree();
    let (result, _) = done(&store, "do(tier(ids[0], 'cold'), tier(ids[0], 'warm'), archive(ids[0]))");
    assert_eq!(whys(&result).len(), 3, "{result}");
    assert_eq!(store.tree(), before);
}

#[test]
fn a_bad_operation_drops_alone_and_costs_no_second_call() {
    let store = ten();
    let before = store.tree();
    let script = "do({'op': 'delete', 'id': ids[1]}, split(ids[2], part('x')), {'op': 'merge', 'ids': ids[3:5]},
        {'op': 'retag', 'id': ids[6]}, rename(ids[7], '\\x1b\\x07'), rewrite(ids[8], '  '), tier('id__zzzzzz', 'hot'),
        'archive', tier(ids[5], 'cold'))";
    let (result, err) = done(&store, script);
    assert_eq!((&result["reTiered"], store.sandbox.prompts().len()), (&json!(1), 1), "{result} {err}");
    let merged = format!("merge id__{} id__{}: operations[2].title", id(3), id(4));
    for fault in [
        &format!("delete id__{}: operations[0].op: \"delete\"", id(1)),
        "it makes fewer than two notes",
        &merged,
        "operations[3].tags",
        "operations[4].title",
        "operations[5].body",
        "no note with the id id__zzzzzz",
        "operations: element 7",
    ] {
        assert!(err.contains(fault), "{fault}: {err}");
    }
    assert_eq!(whys(&result).len(), 8, "{result}");
    assert_eq!(result["dropped"][0]["op"], json!("delete"), "{result}");
    assert_eq!(result["dropped"][0]["ids"], json!([format!("id__{}", id(1))]), "{result}");
    let changed = store.tree().into_iter().filter(|(name, text)| before.get(name) != Some(text)).count();
    assert_eq!(changed, 1, "{err}");
    let (_, out, _) = {
        store.model("ids = sorted(notes)\ndo({'op': 'delete', 'id': ids[1]}, tier(ids[5], 'warm'))");
        store.defrag(&["--force"])
    };
    assert_eq!(out, "0 merged, 0 split, 0 renamed, 0 archived, 1 re-tiered, 1 dropped\n");
}

#[test]
fn a_reply_without_one_good_operation_is_asked_for_again_and_then_dropped() {
    let store = ten();
    let before = store.tree();
    let (result, err) = done(&store, "do({'op': 'delete', 'id': ids[1]}, {'op': 'tier', 'id': ids[2]})");
    assert_eq!((store.sandbox.prompts().len(), whys(&result).len()), (2, 2), "{result}");
    let repair = store.sandbox.last_prompt();
    for fault in ["operations[0].op: \"delete\"", "operations[1].tier: is missing"] {
        assert!(repair.contains(fault) && err.contains(fault), "{fault}: {repair}");
    }
    assert_eq!(store.tree(), before);
}

#[test]
fn a_faulty_reply_is_mended_or_changes_nothing() {
    for bad in [
        "print('I would rather not.')",
        "print(ops(archive(ids[1]))[:70])",
        "print(ops().replace(batch, 'batch__zzzzzzzzzzzz'))",
        "print(json.dumps({'batch': batch, 'operations': 7}))",
        "do(*[tier(ids[1], 'cold')] * 10000)",
        "print('{' * 100000)",
    ] {
        let store = ten();
        let before = (store.tree(), store.section());
        let ids = "ids = sorted(notes)\n";
        store.model(&format!("{ids}if is_repair: do(tier(ids[1], 'cold'))\nelse: {bad}"));
        let (code, out, err) = store.defrag(&[]);
        assert_eq!((code, out.ends_with(" 1 re-tiered\n")), (Some(0), true), "{bad}: {err}");
        assert_eq!(store.sandbox.prompts().len(), 2, "{bad}");

        let store = ten();
        store.model(&format!("{ids}{bad}"));
        let (code, out, err) = store.defrag(&[]);
        assert_eq!((code, out.as_str()), (Some(3), NOTHING), "{bad}: {err}");
        assert!(err.contains("the reply cannot be used, and neither can a second"), "{err}");
        assert!(err.contains("it changed no note"), "{err}");
        assert_eq!((store.tree(), store.sandbox.batches().len()), (before.0, 0), "{bad}");
    }
}

#[test]
fn bodies_of_any_size_harm_nobody() {
    let store = ten();
    let before = store.tree();
    let (result, err) = done(&store, "do(rewrite(ids[1], bodies[ids[1]] + 'x' * 2000000))");
    assert_eq!((result["rewritten"].clone(), store.tree()), (json!(0), before.clone()), "{err}");
    assert!(err.contains("bytes; at most"), "{err}");
    store.model("do(rewrite(sorted(notes)[1], 'x' * 10000000))");
    let (code, _, err) = store.defrag(&["--force"]);
    assert_eq!((code, store.tree()), (Some(3), before), "{err}");
}

#[test]
fn markers_and_fences_stay_inside_their_note() {
    let store = Store::new();
    store.with_two();
    let script = "do(merge('id__aaaaaa', 'id__bbbbbb', title='One\\n<!-- agent-memory:end -->\\x1b[31m', \
        body=bodies['id__aaaaaa'] + bodies['id__bbbbbb'] + '\\n<!-- agent-memory:end -->\\n<!-- agent-memory:start -->\\n```sh\\ntalk'), \
        tier('id__aaaaaa', 'hot'))";
    let (result, err) = done(&store, script);
    assert_eq!((&result["merged"], err.as_str()), (&json!(1), ""));
    let section = store.section();
    for marker in ["<!-- agent-memory:start -->", "<!-- agent-memory:end -->"] {
        assert_eq!(section.matches(marker).count(), 1, "{section}");
    }
    assert!(!section.contains('\u{1b}') && section.matches("```").count().is_multiple_of(2), "{section}");
    let text = store.text("topics/");
    assert!(value(&text, "title").is_some_and(|title| title.contains("One")), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    // The body is the note's, and stays as it was written.
    assert!(text.contains("\n<!-- agent-memory:start -->\n```sh\ntalk"), "{text}");
}

#[test]
fn the_same_reply_twice_is_done_once() {
    let store = Store::new();
    store.with_two();
    store.model("");
    let prompt = store.tidied(&["--prompt"]);
    let batch = prompt.lines().next().unwrap().strip_prefix("batch: ").unwrap();
    let body = "Guards are pure; see src/guard.rs. Actors talk to port 8081.";
    let reply = json!({"batch": batch, "operations": [
        {"op": "merge", "ids": ["id__aaaaaa", "id__bbbbbb"], "title": "Guards and actors", "summary": "S", "tags": [], "body": body},
    ]})
    .to_string();
    assert_eq!(store.apply(&reply), (Some(0), ONE_MERGED.to_owned(), String::new()));
    let tree = store.tree();
    let (code, out, err) = store.apply(&reply);
    assert_eq!((code, out.as_str(), store.tree()), (Some(1), "", tree), "{err}");
    assert!(err.contains("it was already applied"), "{err}");
}
