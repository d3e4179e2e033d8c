//! `memory-defrag` by hand: `--dry-run` and what it shows, `--prompt | LLM | --apply -`.

use crate::support::defrag::{MERGE_TWO, NOTHING, ONE_MERGED};
use crate::support::processes::{Running, mark};
use crate::support::store::Store;
use crate::support::{Said, binary, eventually, present};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// Everything of the store that is not the programs' own, and what agents see.
fn seen(store: &Store) -> (std::collections::BTreeMap<String, Vec<u8>>, String, bool) {
    (store.tree(), store.section(), store.root().join(".git").exists())
}

/// The prompt's batch, after `--prompt`.
fn batch(store: &Store) -> String {
    let prompt = store.tidied(&["--prompt"]);
    prompt.lines().next().unwrap().strip_prefix("batch: ").unwrap().to_owned()
}

fn tier(batch: &str, tier: &str) -> String {
    json!({"batch": batch, "operations": [{"op": "tier", "id": "id__aaaaaa", "tier": tier}]}).to_string()
}

#[test]
fn a_dry_run_shows_what_would_be_done_and_changes_nothing() {
    let store = Store::with_history();
    store.with_two();
    store.noted("cccccc", "Heap", "tags: [topic__a]\n", "One 1 is here.\n\nTwo 2 is here.");
    store.model_with_history(
        "do(merge('id__aaaaaa', 'id__bbbbbb', title='Guards and actors'), tier('id__aaaaaa', 'hot'), retag('id__cccccc', 'topic__b'),
            rename('id__zzzzzz', 'x'), rewrite('id__cccccc', 'Nothing.'), notes='Less to read.')",
    );
    let before = seen(&store);
    let out = store.tidied(&["--dry-run"]);
    assert_eq!(seen(&store), before);
    let (plan, line) = out.split_once("\n\nto do this: ").unwrap();
    assert_eq!(
        plan,
        "merge    id__aaaaaa \"Guards\" (warm, 1 lines, 35 bytes)\n       \
         + id__bbbbbb \"Actors\" (warm, 1 lines, 26 bytes), which goes to the archive\n      \
         -> id__aaaaaa \"Guards and actors\" (warm, 3 lines, 62 bytes)\n\
         tier     id__aaaaaa \"Guards and actors\" (warm, 3 lines, 62 bytes)\n      \
         -> id__aaaaaa \"Guards and actors\" (hot, 3 lines, 62 bytes)\n\
         retag    id__cccccc \"Heap\" (warm, 3 lines, 31 bytes)\n      -> topic__b (before: topic__a)\n\
         dropped: rename id__zzzzzz: no note with the id id__zzzzzz was shown\n\
         dropped: rewrite id__cccccc: it would remove 2 facts from id__cccccc (1, 2) (--allow-loss overrides this)\n\
         the model says: Less to read.\n\
         1 merged, 0 split, 0 renamed, 0 archived, 1 re-tiered, 1 retagged; 3 notes become 2"
    );
    let path = line.trim_end().strip_prefix("memory-defrag --apply ").unwrap();
    let (code, out, err) = store.defrag(&["--apply", path]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, "1 merged, 0 split, 0 renamed, 0 archived, 1 re-tiered, 1 retagged, 2 dropped\n");
    assert_eq!(store.sandbox.prompts().len(), 1);
    assert!(store.section().contains("### Guards and actors"), "{}", store.section());
    assert!(store.text("id__cccccc").contains("Two 2 is here."));
}

#[test]
fn what_was_edited_after_a_dry_run_is_left_alone() {
    let store = Store::new();
    store.with_two();
    store.session("cccccc", "Third");
    store.model("do(merge('id__aaaaaa', 'id__bbbbbb'), tier('id__cccccc', 'hot'))");
    let (result, _) = store.tidied_json(&["--dry-run"]);
    assert_eq!(
        (&result["operations"][0]["op"], &result["notes"], &result["stopped"]),
        (&json!("merge"), &json!(3), &Value::Null)
    );
    store.noted("bbbbbb", "Actors", "", "Actors talk to port 8081, and to 8082.");
    let edited = store.text("id__bbbbbb");
    let (code, out, err) = store.defrag(&["--apply", result["reply"].as_str().unwrap()]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, "0 merged, 0 split, 0 renamed, 0 archived, 1 re-tiered, 1 dropped\n");
    assert!(
        err.contains("dropped: merge id__aaaaaa id__bbbbbb: id__bbbbbb has been changed since it was shown"),
        "{err}"
    );
    assert_eq!(store.text("id__bbbbbb"), edited);
    // It is new to the next run.
    store.model("do()");
    assert_eq!((store.tidied(&[]), store.sandbox.prompts().len()), (NOTHING.to_owned(), 2));
}

#[test]
fn a_dry_run_without_a_command_or_without_news_says_so() {
    let store = Store::new();
    store.with_two();
    let (code, out, err) = store.defrag(&["--dry-run"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("no LLM command is set") && err.contains("llm.command"), "{err}");
    store.model("do()");
    store.tidied(&[]);
    let (code, out, err) = store.defrag(&["--dry-run"]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains("nothing has changed since the last defrag"), "{err}");
    store.model("print('no')");
    let before = seen(&store);
    let (code, out, err) = store.defrag(&["--dry-run", "--force"]);
    assert_eq!((code, out.as_str(), seen(&store)), (Some(3), "", before), "{err}");
}

#[test]
fn the_pipe_needs_no_configuration() {
    let store = Store::new();
    store.with_two();
    let llm = store.sandbox.script(MERGE_TWO);
    let program = binary("memory-defrag");
    let program = program.display();
    let like = store.sandbox.std_command("memory-defrag");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("{program} --prompt | {llm} | {program} --apply -")])
        .env_clear()
        .envs(present(like.get_envs()))
        .current_dir(store.sandbox.work());
    let output = shell.output().unwrap();
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), ONE_MERGED, ""));
    assert!(store.sandbox.calls().is_empty(), "the caps are for what we launch ourselves");
}

#[test]
fn a_faulty_reply_leaves_the_batch_waiting_for_a_better_one() {
    let store = Store::new();
    store.with_two();
    let before = store.tree();
    let batch = batch(&store);
    for (reply, code, message) in [
        (" \n".to_owned(), 3, "the reply is empty"),
        ("I would rather not.".to_owned(), 3, "the reply names no batch"),
        (tier(&batch, "boiling"), 3, "correct it and apply it again; the batch still waits for it"),
        (json!({"batch": batch, "operations": 1}).to_string(), 3, "operations: an array is expected"),
        (tier("batch__zzzzzzzzzzzz", "hot"), 1, "there is no batch \"batch__zzzzzzzzzzzz\""),
        (tier("../../../x", "hot"), 1, "there is no batch \"../../../x\""),
    ] {
        let (got, out, err) = store.apply(&reply);
        assert_eq!((got, out.as_str(), store.tree()), (Some(code), "", before.clone()), "{reply}: {err}");
        assert!(err.contains(message), "{reply}: {err}");
    }
    assert_eq!(store.apply(&tier(&batch, "hot")).0, Some(0));
    assert!(store.text("id__aaaaaa").contains("tier: hot"));
}

#[test]
fn a_reply_to_the_other_program_is_told_apart() {
    let store = Store::new();
    store.with_two();
    store.sandbox.jot("A title", "A body");
    let ours = batch(&store);
    let theirs = store.out("memory-consolidate", &["--prompt"]);
    let theirs = theirs.lines().next().unwrap().strip_prefix("batch: ").unwrap();
    let before = store.tree();
    let (code, _, err) = store.apply(&tier(theirs, "hot"));
    assert_eq!(code, Some(1));
    assert!(
        err.contains("is one of memory-consolidate") && err.contains("memory-consolidate --apply"),
        "{err}"
    );
    let reply = json!({"batch": ours, "entries": [], "skipped": []}).to_string();
    let (code, _, err) =
        crate::support::said(store.sandbox.consolidate(&["--apply", "-"]).write_stdin(reply));
    assert_eq!(code, Some(1));
    assert!(err.contains("is one of memory-defrag") && err.contains("memory-defrag --apply"), "{err}");
    assert_eq!(store.tree(), before);
    assert_eq!(store.apply(&tier(&ours, "hot")).0, Some(0));
}

#[test]
fn a_reply_is_not_lost_to_a_run_that_is_at_work() {
    let mark = mark();
    let store = Store::new();
    store.with_two();
    let batch = batch(&store);
    let touched = store.sandbox.work().join("called");
    store.llm(&format!("touch {}; sleep {mark}", touched.display()), json!({}), false);
    let run = Running::start(store.sandbox.std_command("memory-defrag"));
    eventually("the call", || touched.exists());
    let (code, out, err) = store.apply(&tier(&batch, "hot"));
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("is at work on this store"), "{err}");
    let path = err.trim_end().rsplit_once("memory-defrag --apply ").unwrap().1.to_owned();
    let (code, out, err) = store.defrag(&["--undo"]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    assert!(err.contains("is at work on this store; nothing done"), "{err}");
    run.signal(Signal::TERM);
    run.finish();
    assert_eq!(store.tidied(&["--apply", &path]), "0 merged, 0 split, 0 renamed, 0 archived, 1 re-tiered\n");
    assert_eq!(fs::read_to_string(store.target()).unwrap().matches("### Guards").count(), 1);
}

#[test]
fn an_object_in_json_is_all_there_is_on_stdout() {
    let store = Store::new();
    store.with_two();
    store.model(MERGE_TWO);
    let (result, _) = store.tidied_json(&["--dry-run"]);
    let (applied, _) = store.tidied_json(&["--apply", result["reply"].as_str().unwrap()]);
    assert_eq!((&applied["merged"], &applied["stopped"]), (&json!(1), &Value::Null));
    assert_eq!(applied["operations"][0], result["operations"][0]);
    assert_eq!(applied["agentsMd"][0]["path"], json!(store.target()));
    let (undone, _) = store.tidied_json(&["--undo"]);
    assert_eq!((&undone["notes"], undone["undone"].is_string()), (&json!(2), true));
}

#[test]
fn what_a_dry_run_allows_its_apply_line_allows_too() {
    let store = Store::new();
    store.with_two();
    store.model("do(rewrite('id__bbbbbb', 'Actors talk to a port.'))");
    let out = store.tidied(&["--dry-run", "--allow-loss"]);
    assert!(out.contains("         lost: 8081\n"), "{out}");
    let line = out.trim_end().rsplit_once("to do this: memory-defrag ").unwrap().1;
    let args: Vec<&str> = line.split(' ').collect();
    assert_eq!(args.last(), Some(&"--allow-loss"), "{line}");
    let done = "0 merged, 0 split, 0 renamed, 0 archived, 0 re-tiered, 1 rewritten\n";
    assert_eq!(store.tidied(&args), done);
}
