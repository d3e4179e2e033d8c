//! Odd notes: what people write by hand survives, and what cannot be used is named and left alone.

use crate::support::defrag::{MERGE_TWO, NOTHING, ONE_MERGED, SESSION};
use crate::support::store::{Store, name, note};
use crate::support::symlink;
use serde_json::json;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

#[test]
fn unknown_keys_comments_and_line_ends_survive() {
    let front = "\u{feff}---\r\nid: id__aaaaaa\r\n# mine\r\ntitle: Guards\r\nmood: {deep: [1, 2]}  # why\r\nscope: repo\r\nsources:\r\n  - {harness: amp, repo: h/o/r}\r\n---\r\n\r\n";
    for script in [
        MERGE_TWO.to_owned(),
        "do(rewrite('id__aaaaaa', 'Guards are pure.'))".to_owned(),
        "do(rename('id__aaaaaa', 'Pure guards'))".to_owned(),
        "do(split('id__aaaaaa', part('Guards are', 'One'), part('pure.', 'Two')))".to_owned(),
    ] {
        let store = Store::new();
        store.put("topics/by hand.md", format!("{front}Guards are pure.\r\n"));
        store.noted("bbbbbb", "Actors", "", "Actors act.");
        store.model(&script);
        let (code, _, err) = store.defrag(&[]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{script}");
        let name = store.names().into_iter().find(|name| {
            name.starts_with("topics/") && {
                let text = String::from_utf8(fs::read(store.root().join(name)).unwrap()).unwrap();
                text.contains("id: id__aaaaaa")
            }
        });
        let text = fs::read_to_string(store.root().join(name.unwrap())).unwrap();
        for part in ["\u{feff}---\r\n", "\r\n# mine\r\n", "mood: {deep: [1, 2]}  # why\r\n"] {
            assert!(text.contains(part), "{script}: {text:?}");
        }
        store.tidied(&["--undo"]);
        assert_eq!(store.text("by hand.md"), format!("{front}Guards are pure.\r\n"));
    }
}

#[test]
fn a_body_that_is_not_utf8_stays_as_it_is_where_nothing_replaces_it() {
    let store = Store::new();
    let text = [note("aaaaaa", "Guards", SESSION).as_bytes(), b"\xff\xfe raw\n"].concat();
    let path = store.put("topics/guards -- id__aaaaaa.md", &text);
    store.model("do(tier('id__aaaaaa', 'hot'), rename('id__aaaaaa', 'Other'))");
    let (code, _, err) = store.defrag(&[]);
    assert_eq!((code, path.exists()), (Some(0), false), "{err}");
    let tree = store.tree();
    let (_, bytes) = tree.iter().find(|(name, _)| name.contains("id__aaaaaa")).unwrap();
    assert!(bytes.ends_with(b"\xff\xfe raw\n"));
    store.tidied(&["--undo"]);
    assert_eq!(fs::read(path).unwrap(), text);
}

#[test]
fn names_that_people_gave_stay_until_the_title_changes() {
    let store = Store::new();
    store.put("topics/mine.md", note("aaaaaa", "Guards", SESSION));
    store.model("do(tier('id__aaaaaa', 'hot'), rewrite('id__aaaaaa', 'Body of Guards, pure.'))");
    store.tidied(&[]);
    assert_eq!(store.names(), ["topics/mine.md"]);
    store.model("do(rename('id__aaaaaa', 'Pure guards'))");
    store.tidied(&["--force"]);
    assert_eq!(store.names(), ["topics/pure-guards -- id__aaaaaa.md"]);
}

#[test]
fn what_is_no_note_is_named_and_left_alone() {
    let store = Store::new();
    store.with_two();
    store.put("topics/broken.md", "---\nid: id__cccccc\ntitle: [\n---\n\nx\n");
    store.put("topics/readme.md", "Nothing of ours.\n");
    let odd = store.topics().join(OsStr::from_bytes(b"odd \xff.md"));
    store.sandbox.write(&odd, note("dddddd", "Odd", SESSION));
    let before = store.tree();
    store.model(MERGE_TWO);
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str()), (Some(0), ONE_MERGED), "{err}");
    assert!(err.contains("broken.md") && err.contains("its file name is not UTF-8"), "{err}");
    let after = store.tree();
    for name in before.keys().filter(|name| !name.contains("id__")) {
        assert_eq!(after.get(name), before.get(name), "{name}");
    }
    // They do not make every run ask.
    let calls = store.sandbox.prompts().len();
    let (code, out, _) = store.defrag(&[]);
    assert_eq!((code, out.as_str(), store.sandbox.prompts().len()), (Some(0), NOTHING, calls));
}

#[test]
fn a_front_matter_that_cannot_be_edited_drops_the_operation() {
    let store = Store::new();
    store.with_two();
    store.put("topics/anchor.md", "---\nid: id__cccccc\ntitle: &t Anchored\nother: *t\nscope: repo\nsources:\n  - {harness: amp, repo: h/o/r}\n---\n\nBody.\n");
    let before = store.tree();
    store.model(
        "do(merge('id__cccccc', 'id__aaaaaa', title='X', body='Body. Anchored. ' + bodies['id__aaaaaa']),
            rename('id__cccccc', 'X'), split('id__cccccc', part('Body.', 'X'), part('Anchored.')))",
    );
    let (result, err) = store.tidied_json(&[]);
    assert_eq!(store.tree(), before, "{err}");
    let dropped = result["dropped"].as_array().unwrap();
    assert_eq!((dropped.len(), &result["operations"]), (3, &json!([])), "{result}");
    for one in dropped {
        assert!(one["why"].as_str().unwrap().contains("title"), "{result}");
    }
    // What is dropped leaves its notes free for another operation.
    store.model("do(merge('id__cccccc', 'id__aaaaaa', title='X'), tier('id__aaaaaa', 'hot'))");
    assert!(store.defrag(&["--force"]).1.contains("1 re-tiered, 1 dropped"));
}

#[test]
fn of_two_notes_with_one_id_none_is_lost() {
    let store = Store::new();
    store.with_two();
    store.put(
        "topics/copy.md",
        note("aaaaaa", "Guards copied", SESSION).replace("Body of", "Another body of"),
    );
    let before: Vec<Vec<u8>> = store.tree().into_values().collect();
    store.model("do(rewrite('id__aaaaaa', bodies['id__aaaaaa'] + ' More.'), archive('id__aaaaaa'))");
    let (code, _, err) = store.defrag(&["--allow-loss"]);
    assert_eq!(code, Some(0), "{err}");
    let after: Vec<Vec<u8>> = store.tree().into_values().collect();
    assert_eq!(after.len(), before.len(), "{err}");
    assert!(before.iter().filter(|bytes| !after.contains(bytes)).count() <= 1, "{err}");
    store.defrag(&["--undo"]);
    assert_eq!(store.tree().into_values().collect::<Vec<_>>(), before);
}

#[test]
fn a_linked_note_keeps_its_link_where_it_stays() {
    let store = Store::new();
    store.with_two();
    let elsewhere = store.sandbox.home().join("notes/own.md");
    store.sandbox.write(&elsewhere, note("cccccc", "Own", SESSION));
    symlink(&elsewhere, store.topics().join(name("cccccc", "Own")));
    store.model("do(tier('id__cccccc', 'hot'))");
    store.tidied(&[]);
    assert!(fs::read_to_string(&elsewhere).unwrap().contains("tier: hot"));
    assert!(store.topics().join(name("cccccc", "Own")).is_symlink());
    store.tidied(&["--undo"]);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), note("cccccc", "Own", SESSION));
}

#[test]
fn a_linked_note_is_not_moved_away_from_what_it_leads_to() {
    let store = Store::new();
    store.with_two();
    store.put("topics/real.txt", note("cccccc", "Own", SESSION));
    symlink("real.txt", store.topics().join(name("cccccc", "Own")));
    let before = store.tree();
    store.model("do(merge('id__aaaaaa', 'id__cccccc'))");
    let (result, err) = store.tidied_json(&[]);
    assert!(err.contains("id__cccccc: it is a symlink"), "{err}");
    assert_eq!((&result["merged"], store.tree()), (&json!(0), before));
}

#[test]
fn what_a_dry_run_prints_moves_no_cursor() {
    let store = Store::new();
    store.noted("aaaaaa", r#""Guards \e[31m\n red""#, "tags: [\"a\\e[1m\"]\n", "Guards are pure.");
    store.model("do(retag('id__aaaaaa', 'topic__x'), notes='turned \\u202e around')");
    let (code, out, err) = store.defrag(&["--dry-run"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("retag ") && out.contains("[31m") && out.contains("turned"), "{out}");
    assert!(!out.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{out:?}");
    assert!(out.lines().all(|line| !line.starts_with(" red")), "{out:?}");
}

#[test]
fn a_secret_reaches_no_model_and_is_not_written_over() {
    let secret = "AKIAIOSFODNN7EXAMPLF";
    let store = Store::new();
    store.noted("aaaaaa", "Keys", "", &format!("The key is {secret}, for bucket one."));
    store.noted("bbbbbb", "Actors", "", "Actors act.");
    let before = store.tree();
    store.model("do(merge('id__aaaaaa', 'id__bbbbbb'), tier('id__aaaaaa', 'cold'))");
    let (result, err) = store.tidied_json(&[]);
    assert!(
        !store.sandbox.last_prompt().contains(secret) && store.sandbox.last_prompt().contains("[redacted:")
    );
    let why = result["dropped"][0]["why"].as_str().unwrap();
    assert!(why.contains("id__aaaaaa holds a secret, which no model is shown"), "{why}");
    assert!(!err.contains(secret) && !result.to_string().contains(secret), "{err}");
    assert_eq!(result["reTiered"], json!(1));
    assert!(store.text("id__aaaaaa").contains(secret));
    assert_eq!(store.tree().len(), before.len());
    store.model("do(merge('id__aaaaaa', 'id__bbbbbb'))");
    let (result, err) = store.tidied_json(&["--force", "--allow-loss"]);
    assert_eq!(result["merged"], json!(1));
    assert!(!err.contains(secret) && !result.to_string().contains(secret), "{result}");
}

#[test]
fn a_secret_in_a_tag_or_a_repository_reaches_no_model() {
    let secret = "AKIAIOSFODNN7EXAMPLF";
    let sources = format!("sources:\n  - {{harness: amp, repo: \"https://{secret}@h/o/r\"}}\n");
    for llm in [json!({}), json!({"maxPromptBytes": 12_000})] {
        let store = Store::new();
        for (id, title) in [("aaaaaa", "Keys"), ("bbbbbb", "More keys")] {
            let front = format!("tags: [\"{secret}\"]\nscope: repo\n{sources}");
            store.noted(id, title, &front, &"word ".repeat(300));
        }
        store.model_with("do()", llm);
        assert_eq!(store.tidied(&[]), NOTHING);
        let prompts = store.sandbox.prompts().concat();
        assert!(prompts.contains("[redacted:") && !prompts.contains(secret), "{prompts}");
    }
}
