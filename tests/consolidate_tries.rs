//! `memory-consolidate` when entries fail: an hour, six hours, then out of the queue, and back if a person says so.

use crate::support::llm::NOTE_EACH;
use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::fs;

/// A run at `now`: exit code, stdout, stderr.
fn run_at(sandbox: &Sandbox, now: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let before = sandbox.everywhere();
    let result = said(sandbox.consolidate(args).env("AXE_NOW", now));
    assert_eq!(sandbox.everywhere(), before, "{}", result.2);
    result
}

#[test]
fn one_hour_six_hours_and_then_it_lies_among_the_failed() {
    let sandbox = Sandbox::new();
    sandbox.llm("echo broken >&2; exit 1", json!({}));
    let id = sandbox.heard("s1", "Hello?");
    let idle = "0 entries processed, 0 kb entries written, 1 waiting\n";
    for (now, code, calls) in [
        ("2026-02-28T16:00:00Z", 3, 1),
        ("2026-02-28T16:59:59Z", 0, 1),
        ("2026-02-28T17:00:00Z", 3, 2),
        ("2026-02-28T22:59:59Z", 0, 2),
    ] {
        let (got, out, err) = run_at(&sandbox, now, &[]);
        assert_eq!((got, sandbox.calls().len() / 2), (Some(code), calls), "{now}: {err}");
        assert_eq!(sandbox.waiting(), [id.as_str()], "{now}");
        if code == 0 {
            assert_eq!(out, idle, "{now}");
            assert!(
                err.contains("1 entry waits until 2026-02-28 ") && err.contains("broken"),
                "{now}: {err}"
            );
            assert!(err.contains("--retry-failed"), "{now}: {err}");
        }
    }
    let (code, out, err) = run_at(&sandbox, "2026-02-28T23:00:00Z", &[]);
    assert_eq!(
        (code, out.as_str()),
        (Some(3), "0 entries processed, 0 kb entries written, 1 failed\n"),
        "{err}"
    );
    assert!(
        err.contains("it failed 3 times and is now in inbox/.failed; --retry-failed puts it back"),
        "{err}"
    );
    assert_eq!((sandbox.waiting(), sandbox.failed()), (vec![], vec![id.clone()]));
    let why = fs::read(sandbox.store().join(format!("inbox/.failed/{id}.error.json"))).unwrap();
    let why: Value = serde_json::from_slice(&why).unwrap();
    assert_eq!((&why["entry"], &why["tries"]), (&json!(id), &json!(3)));
    assert!(why["error"].as_str().unwrap().contains("broken"), "{why}");
    assert_eq!(
        run_at(&sandbox, "2026-03-09T00:00:00Z", &[]).1,
        "0 entries processed, 0 kb entries written\n"
    );

    sandbox.librarian(NOTE_EACH);
    let (code, out, err) = run_at(&sandbox, "2026-03-09T00:00:00Z", &["--retry-failed"]);
    assert_eq!((code, out.as_str()), (Some(0), "1 entry processed, 1 kb entries written\n"), "{err}");
    assert!(err.contains("1 failed entry is back in the queue"), "{err}");
    assert_eq!((sandbox.processed(), sandbox.failed()), (vec![id], vec![]));
    assert!(crate::support::store::names(&sandbox.store().join("inbox/.failed")).is_empty());
}

#[test]
fn a_call_that_fails_for_several_is_made_for_each_alone_the_next_time() {
    let sandbox = Sandbox::new();
    // One of them breaks every call that it is in.
    sandbox.librarian(&format!("if 'poison' in prompt: sys.exit('cannot digest this')\n{NOTE_EACH}"));
    let good: Vec<String> = ["a", "b"].map(|name| sandbox.heard(name, "Hello?")).into();
    let bad = sandbox.heard("c", "poison");
    let (code, out, err) = run_at(&sandbox, "2026-02-28T16:00:00Z", &[]);
    assert_eq!((code, sandbox.prompts().len()), (Some(3), 1), "{err}");
    assert_eq!(out, "0 entries processed, 0 kb entries written, 3 waiting\n");
    let (code, out, err) = run_at(&sandbox, "2026-02-28T16:00:01Z", &[]);
    assert_eq!(code, Some(3), "{err}");
    let singles: Vec<usize> =
        sandbox.prompts()[1..].iter().map(|prompt| prompt.matches("<<< session ").count()).collect();
    assert!(!singles.is_empty() && singles.iter().all(|count| *count == 1), "{singles:?}");
    // A call that fails ends the run, so that a service that is down is not asked over and over.
    let (_, _, err2) = run_at(&sandbox, "2026-02-28T16:00:02Z", &[]);
    assert!(err.contains(&bad) || err2.contains(&bad), "{err}{err2}");
    let _ = out;
    let mut good = good;
    good.sort();
    assert_eq!((sandbox.processed(), sandbox.waiting()), (good, vec![bad]));
}

#[test]
fn a_missing_transcript_is_the_failed_try_of_its_entry_alone() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let gone = sandbox.heard("gone", "Hello?");
    let there = sandbox.heard("there", "Hello?");
    fs::remove_file(sandbox.transcript("gone")).unwrap();
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(3), "{err}");
    assert_eq!(out, "1 entry processed, 1 kb entries written, 1 failed, 1 waiting\n");
    assert!(err.contains(&gone) && err.contains("no file \"") && err.contains("gone.jsonl"), "{err}");
    assert_eq!((sandbox.processed(), sandbox.waiting()), (vec![there], vec![gone]));
}

#[test]
fn what_is_no_transcript_is_told_and_harms_nobody() {
    let rows: &[(&str, &[u8])] = &[
        ("empty", b""),
        ("zeroes", &[0; 4096]),
        ("prose", b"hello\nworld\n"),
        ("json", b"{\"a\":1}\n[2]\n"),
    ];
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    for (name, bytes) in rows {
        sandbox.heard(name, "Hello?");
        fs::write(sandbox.transcript(name), bytes).unwrap();
    }
    sandbox.heard("dir", "Hello?");
    fs::remove_file(sandbox.transcript("dir")).unwrap();
    fs::create_dir(sandbox.transcript("dir")).unwrap();
    let good = sandbox.heard("good", "Hello?");
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.processed()), (Some(3), vec![good]), "{err}");
    for (name, _) in rows {
        assert_eq!(err.matches(&format!("/{name}.jsonl")).count(), 1, "{name}: {err}");
    }
    assert!(err.contains("dir.jsonl\" is a directory"), "{err}");
}

#[test]
fn an_entry_that_is_none_is_named_and_stays() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let good = sandbox.heard("s1", "Hello?");
    let broken = sandbox.store().join("inbox/2026-01-01T00-00-00.000Z_codex_aaaaaaaa.json");
    fs::write(&broken, "{\"version\":1").unwrap();
    let (code, out, err) = said(&mut sandbox.consolidate(&[]));
    assert_eq!((code, sandbox.processed()), (Some(0), vec![good]), "{err}");
    assert_eq!(err.matches("_codex_aaaaaaaa.json\" is not a queue entry").count(), 1, "{err}");
    assert_eq!(out, "1 entry processed, 1 kb entries written, 1 waiting\n");
    assert!(broken.exists());
}

#[test]
fn a_corrected_command_is_asked_at_once() {
    let sandbox = Sandbox::new();
    sandbox.llm("false", json!({}));
    let id = sandbox.heard("s1", "Hello?");
    assert_eq!(sandbox.consolidated(&[]).0, Some(3));
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "0 entries processed, 0 kb entries written, 1 waiting\n"),
        "{err}"
    );
    assert!(err.contains("the last try failed: the LLM command \"false\" failed (exit 1)"), "{err}");
    sandbox.librarian(NOTE_EACH);
    assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    assert_eq!(sandbox.processed(), [id]);
}

#[test]
fn a_command_that_was_replaced_is_asked_at_once() {
    let sandbox = Sandbox::new();
    sandbox.librarian("sys.exit('log in first')");
    let id = sandbox.heard("s1", "Hello?");
    assert_eq!(sandbox.consolidated(&[]).0, Some(3));
    assert_eq!((sandbox.consolidated(&[]).0, sandbox.calls().len() / 2), (Some(0), 1));
    // The same line, and another program behind it.
    sandbox.script(NOTE_EACH);
    assert_eq!((sandbox.consolidated(&[]).0, sandbox.processed()), (Some(0), vec![id]));
}

#[test]
fn a_try_that_a_person_wants_is_made_at_once_and_costs_none_of_the_three() {
    let sandbox = Sandbox::new();
    sandbox.llm("echo no >&2; exit 1", json!({}));
    let id = sandbox.heard("s1", "Hello?");
    assert_eq!(sandbox.consolidated(&[]).0, Some(3));
    for (calls, args) in [(2, &["--retry-failed"][..]), (3, &["-"]), (4, &["-"])] {
        let (code, _, err) = said(sandbox.consolidate(args).write_stdin(format!("{id}\n")));
        assert_eq!((code, sandbox.calls().len() / 2), (Some(3), calls), "{args:?}: {err}");
        assert_eq!((sandbox.waiting(), sandbox.failed()), (vec![id.clone()], vec![]), "{args:?}: {err}");
    }
    let (code, out, err) = said(sandbox.consolidate(&["--prompt"]).env("AXE_NOW", "2026-02-28T15:30:00Z"));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Hello?"), "{out} {err}");
}

#[test]
fn ids_on_stdin_are_taken_and_one_that_nothing_has_is_named() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let (one, two) = (sandbox.heard("s1", "Hello?"), sandbox.heard("s2", "Hello?"));
    let (code, _, err) = said(sandbox.consolidate(&["-"]).write_stdin(format!("{one}\n\nnothing here\n")));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!((sandbox.processed(), sandbox.waiting()), (vec![one], vec![two]));
    assert_eq!(err.matches("no entry of the queue has the id \"nothing here\"").count(), 1, "{err}");
    let (code, _, err) = said(sandbox.consolidate(&["-"]).write_stdin("{\"id\":"));
    assert_eq!(code, Some(1), "{err}");
}

#[test]
fn the_doctor_is_not_content_while_entries_wait_after_failures() {
    let sandbox = Sandbox::new();
    sandbox.llm("echo log in first >&2; exit 1", json!({}));
    for session in ["s1", "s2"] {
        sandbox.heard(session, "Hello?");
    }
    // A call about both, and one about each.
    for _ in 0..3 {
        assert_eq!(sandbox.consolidated(&[]).0, Some(3));
    }
    let (_, out, _) = said(&mut sandbox.command("memory-doctor"));
    assert!(out.contains("2 entries wait until ") && out.contains("log in first"), "{out}");
    assert!(!out.contains("healthy"), "{out}");
}

/// A batch of these files that has claimed the one entry.
fn left(sandbox: &Sandbox, id: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
    let batch = sandbox.store().join(".agent-memory/batches/batch__abcdefghijkl");
    fs::create_dir_all(batch.join("claimed")).unwrap();
    let name = format!("{id}.json");
    fs::rename(sandbox.store().join("inbox").join(&name), batch.join("claimed").join(&name)).unwrap();
    files.iter().for_each(|(name, text)| fs::write(batch.join(name), text).unwrap());
    batch
}

#[test]
fn a_batch_that_cannot_be_read_gives_its_entries_back_and_keeps_its_replies() {
    let earlier = r#"{"kind": "run", "state": {"somethingOld": {}}}"#;
    let unknown = r#"{"kind":"run","begun":"2026-02-28T15:00:00Z","answers":0,"awaits":null,"isWithPerson":false,
        "isOver":false,"state":{"state":"dreaming"}}"#;
    for state in [earlier, unknown, "{\"kind\":", ""] {
        let sandbox = Sandbox::new();
        sandbox.librarian(NOTE_EACH);
        let id = sandbox.heard("s1", "Hello?");
        let batch = left(&sandbox, &id, &[("batch.json", state), ("reply-1.txt", "paid")]);
        let (_, found, _) = said(&mut sandbox.command("memory-doctor"));
        assert!(
            found.contains("sets the batch aside") || found.contains("or gives its entries back"),
            "{state}: {found}"
        );
        let (code, out, err) = sandbox.consolidated(&[]);
        assert_eq!((code, sandbox.processed()), (Some(0), vec![id]), "{state}: {err}");
        assert_eq!(out, "1 entry processed, 1 kb entries written\n", "{state}");
        let aside = batch.with_file_name("batch__abcdefghijkl.unreadable");
        assert!(
            err.contains("batch.json\" cannot be read") && err.contains(&*aside.to_string_lossy()),
            "{err}"
        );
        assert_eq!(fs::read_to_string(aside.join("reply-1.txt")).unwrap(), "paid");
        let (_, found, _) = said(&mut sandbox.command("memory-doctor"));
        assert!(found.contains("was set aside") && !found.contains("healthy"), "{found}");
        assert_eq!(sandbox.consolidated(&[]).2, "", "told once");
    }
}

#[test]
fn a_defrag_that_cannot_be_read_is_set_aside() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let batch = sandbox.store().join(".agent-memory/defrag/batch__abcdefghijkl");
    fs::create_dir_all(&batch).unwrap();
    fs::write(batch.join("batch.json"), "[]").unwrap();
    let (code, _, err) = said(&mut sandbox.command("memory-defrag"));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("batch__abcdefghijkl.unreadable\""), "{err}");
    assert!(!batch.exists());
}

#[test]
fn a_transcript_that_begins_with_zeroes_is_read_after_them() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let id = sandbox.heard("s1", "Where is the port?");
    let whole = fs::read(sandbox.transcript("s1")).unwrap();
    // More of them than are read at once.
    let after_a_power_cut = [vec![0; 200_000], whole].concat();
    fs::write(sandbox.transcript("s1"), after_a_power_cut).unwrap();
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.processed()), (Some(0), vec![id]), "{err}");
    assert!(sandbox.last_prompt().contains("Where is the port?"));
}
