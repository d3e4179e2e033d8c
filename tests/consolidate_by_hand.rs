//! `memory-consolidate` by hand: `--prompt | LLM | --apply -`, and `--dry-run` with its plan applied afterwards.

use crate::support::llm::{NOTE_EACH, without_earlier};
use crate::support::processes::{Running, mark};
use crate::support::{Said, Sandbox, binary, eventually, present, said};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Output};

/// What the pipe prints, ends with, and says.
fn piped(sandbox: &Sandbox, llm: &str) -> Output {
    pipe(sandbox, llm).output().unwrap()
}

fn pipe(sandbox: &Sandbox, llm: &str) -> Command {
    let program = binary("memory-consolidate");
    let program = program.display();
    let like = sandbox.std_command("memory-consolidate");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("{program} --prompt | {llm} | {program} --apply -")])
        .env_clear()
        .envs(present(like.get_envs()))
        .current_dir(sandbox.work());
    shell
}

/// A sandbox without an LLM command in its configuration, and a script to pipe through.
fn by_hand(script: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.settings(json!({"storage": {"autoCommit": false}}));
    let llm = sandbox.script(script);
    (sandbox, llm)
}

/// The prompt that `--prompt` prints.
fn prompt(sandbox: &Sandbox) -> String {
    let (code, out, err) = said(&mut sandbox.consolidate(&["--prompt"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    out
}

fn batch_of(prompt: &str) -> String {
    prompt.lines().next().unwrap().strip_prefix("batch: ").unwrap().to_owned()
}

fn apply(sandbox: &Sandbox, reply: &str) -> (Option<i32>, String, String) {
    said(sandbox.consolidate(&["--apply", "-"]).write_stdin(reply))
}

fn skip(batch: &str, id: &str) -> String {
    json!({"batch": batch, "entries": [], "skipped": [{"source": id, "reason": "small talk"}]}).to_string()
}

#[test]
fn the_pipe_makes_notes_without_any_configuration() {
    let (sandbox, llm) = by_hand(NOTE_EACH);
    let ids = [sandbox.heard("a", "Hello?"), sandbox.heard("b", "Hello?")];
    let output = piped(&sandbox, &llm);
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    assert_eq!(output.out(), "2 entries processed, 2 kb entries written\n");
    assert_eq!((sandbox.processed().len(), sandbox.batches().len()), (ids.len(), 0));
    assert!(sandbox.calls().is_empty(), "the caps are for what we launch ourselves");
    let (code, out, err) = said(&mut sandbox.consolidate(&["--prompt"]));
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert_eq!(err, "Warning: nothing waits that may be asked about now\n");
}

#[test]
fn two_pipes_at_once_take_different_entries() {
    let (sandbox, llm) = by_hand(&format!("time.sleep(0.1)\n{NOTE_EACH}"));
    for (name, repo) in [("a", "h/o/a"), ("b", "h/o/b")] {
        sandbox.talk(name, &[("user", "Hello?")]);
        let path = sandbox.transcript(name);
        sandbox.queue(&json!({
            "version": 1, "timestamp": "2026-02-13T14:30:05Z", "harness": "claude-code",
            "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": name},
            "context": {"cwd": "/", "repo": repo},
        }));
    }
    let outputs: Vec<Output> = std::thread::scope(|scope| {
        let pipes: Vec<_> = (0..2).map(|_| scope.spawn(|| piped(&sandbox, &llm))).collect();
        pipes.into_iter().map(|pipe| pipe.join().unwrap()).collect()
    });
    for output in outputs {
        assert_eq!(output.code(), Some(0), "{}", output.err());
        assert_eq!(output.out().lines().count(), 1, "{}{}", output.out(), output.err());
    }
    assert_eq!((sandbox.processed().len(), sandbox.kept().len(), sandbox.batches().len()), (2, 2, 0));
}

#[test]
fn a_faulty_reply_leaves_the_batch_waiting_for_a_better_one() {
    let (sandbox, _) = by_hand("");
    let id = sandbox.heard("s1", "Hello?");
    let batch = batch_of(&prompt(&sandbox));
    for (reply, code, message) in [
        (
            String::new(),
            3,
            "the reply is empty; the batch still waits for one: --prompt prints its question again",
        ),
        (" \n".to_owned(), 3, "the reply is empty"),
        ("I would rather not.".to_owned(), 3, "the reply names no batch"),
        (skip(&batch, &id)[..60].to_owned(), 3, "the reply names no batch"),
        (skip(&batch, "nobody"), 3, "the reply cannot be used: skipped[0].source: \"nobody\" is none of"),
        (
            json!({"batch": batch, "entries": 1}).to_string(),
            3,
            "correct it and apply it again; the batch still waits for it",
        ),
        (skip("batch__zzzzzzzzzzzz", &id), 1, "there is no batch \"batch__zzzzzzzzzzzz\""),
        (skip("../../../x", &id), 1, "there is no batch \"../../../x\""),
    ] {
        let (got, out, err) = apply(&sandbox, &reply);
        assert_eq!((got, out.as_str()), (Some(code), ""), "{reply}: {err}");
        assert!(err.contains(message), "{reply}: {err}");
        assert_eq!((sandbox.everywhere(), sandbox.waiting()), (vec![id.clone()], vec![]), "{reply}");
        assert_eq!(sandbox.batches(), [batch.as_str()], "{reply}");
    }
    // Whoever lost the question gets it again.
    assert_eq!(batch_of(&prompt(&sandbox)), batch);
    let (code, out, err) = apply(&sandbox, &skip(&batch, &id));
    assert_eq!((code, out.as_str()), (Some(0), "1 entry processed, 0 kb entries written\n"), "{err}");
    let (code, _, err) = apply(&sandbox, &skip(&batch, &id));
    assert_eq!((code, sandbox.processed()), (Some(1), vec![id]), "{err}");
    assert!(err.contains("it was already applied"), "{err}");
}

#[test]
fn a_batch_that_nobody_answers_goes_back_after_a_day() {
    let (sandbox, _) = by_hand("");
    let id = sandbox.jot("Guards", "are pure");
    let batch = batch_of(&prompt(&sandbox));
    let run = |now: &str| said(sandbox.consolidate(&[]).env("AXE_NOW", now));
    let (code, out, err) = run("2026-03-01T15:04:05Z");
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (Some(0), "0 entries processed, 0 kb entries written, 1 waiting\n", "")
    );
    assert_eq!(sandbox.batches(), [batch.as_str()]);
    let (code, out, err) = run("2026-03-01T15:04:06Z");
    assert_eq!((code, out.as_str()), (Some(0), "1 entry processed, 1 kb entries written\n"), "{err}");
    assert_eq!((sandbox.processed(), sandbox.batches().len()), (vec![id.clone()], 0));
    assert_eq!(apply(&sandbox, &skip(&batch, &id)).0, Some(1));
}

#[test]
fn a_long_session_goes_by_hand_part_by_part() {
    let (sandbox, llm) = by_hand(NOTE_EACH);
    sandbox.settings(json!({"llm": {"maxPromptBytes": 40_000}, "storage": {"autoCommit": false}}));
    let texts: Vec<String> = (0..20).map(|n| format!("MARK{n:05} {}", "word ".repeat(800))).collect();
    let talk: Vec<(&str, &str)> = texts.iter().map(|text| ("user", text.as_str())).collect();
    sandbox.talk("long", &talk);
    let id = sandbox.hear("long");
    let mut rounds = 0;
    while sandbox.processed().is_empty() {
        let output = piped(&sandbox, &llm);
        assert_eq!(output.code(), Some(0), "{}", output.err());
        rounds += 1;
        assert!(rounds < 9, "{}", output.err());
        let left = output.err().contains(" still to be asked about; go on with --prompt");
        assert_eq!(left, sandbox.processed().is_empty(), "{}", output.err());
        assert_eq!(sandbox.everywhere(), [id.as_str()]);
    }
    let all: String = sandbox.prompts().iter().map(|prompt| without_earlier(prompt)).collect();
    assert!(rounds > 2 && (0..20).all(|n| all.matches(&format!("MARK{n:05}")).count() == 1), "{rounds}");
    assert_eq!(sandbox.kept().len(), rounds);
}

#[test]
fn a_dry_run_shows_the_plan_and_claims_nothing() {
    let sandbox = Sandbox::new();
    sandbox.librarian("say([note('Guards are pure', body='One.\\n\\nTwo.')])");
    let id = sandbox.heard("s1", "Why?");
    let tree = |sandbox: &Sandbox| (sandbox.waiting(), sandbox.kept(), sandbox.processed());
    let before = tree(&sandbox);
    let (code, out, err) = said(&mut sandbox.consolidate(&["--dry-run"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(tree(&sandbox), before);
    let (plan, line) = out.split_once("\n\nto write this: ").unwrap();
    assert!(
        plan.starts_with("new note id__") && plan.contains(" (repo): Guards are pure\n  In short.\n"),
        "{out}"
    );
    assert!(plan.ends_with("  topic__x\n  | One.\n  | \n  | Two."), "{out}");
    let path = line.trim_end().strip_prefix("memory-consolidate --apply ").unwrap();
    let (code, out, err) = said(&mut sandbox.consolidate(&["--apply", path]));
    assert_eq!((code, out.as_str()), (Some(0), "1 entry processed, 1 kb entries written\n"), "{err}");
    assert_eq!((sandbox.processed(), sandbox.prompts().len(), sandbox.batches().len()), (vec![id], 1, 0));
}

#[test]
fn a_dry_run_in_json_says_where_its_reply_is() {
    let sandbox = Sandbox::new();
    sandbox.librarian("if not is_repair: print('no')\nelse: say([note('T')])");
    sandbox.heard("s1", "Why?");
    let (code, out, err) = said(&mut sandbox.consolidate(&["--dry-run", "--json"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["plan"]["notes"][0]["title"], "T");
    let path = result["replies"][0].as_str().unwrap();
    assert!(fs::read_to_string(path).unwrap().contains("\"T\""), "the mended one");
    let (code, out, err) = said(&mut sandbox.consolidate(&["--apply", path, "--json"]));
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &result["processed"], &result["written"]), (Some(0), &json!(1), &json!(1)), "{err}");
}

#[test]
fn a_dry_run_whose_entries_were_processed_meanwhile_is_not_applied() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let id = sandbox.heard("s1", "Why?");
    let (_, out, _) = said(&mut sandbox.consolidate(&["--dry-run", "--json"]));
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    let kept = sandbox.kept();
    let (code, _, err) = said(&mut sandbox.consolidate(&["--apply", result["replies"][0].as_str().unwrap()]));
    assert_eq!((code, sandbox.kept(), sandbox.processed()), (Some(1), kept, vec![id]), "{err}");
    assert!(err.contains("no longer waits in the queue"), "{err}");
}

#[test]
fn a_reply_is_not_lost_to_a_run_that_is_at_work() {
    let mark = mark();
    let (sandbox, _) = by_hand("");
    let id = sandbox.heard("s1", "Hello?");
    let batch = batch_of(&prompt(&sandbox));
    let other = sandbox.heard("s2", "Hello?");
    let touched = sandbox.work().join("called");
    sandbox.llm(&format!("touch {}; sleep {mark}", touched.display()), json!({}));
    let run = Running::start(sandbox.std_command("memory-consolidate"));
    eventually("the call", || touched.exists());
    let (code, out, err) = apply(&sandbox, &skip(&batch, &id));
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("is at work on this store"), "{err}");
    let path = err.trim_end().rsplit_once("memory-consolidate --apply ").unwrap().1;
    run.signal(Signal::TERM);
    run.finish();
    let (code, _, err) = said(&mut sandbox.consolidate(&["--apply", path]));
    assert_eq!((code, sandbox.processed()), (Some(0), vec![id]), "{err}");
    assert!(sandbox.everywhere().contains(&other));
}

#[test]
fn a_reply_that_is_too_long_is_told_with_the_cap() {
    let sandbox = Sandbox::new();
    sandbox.settings(json!({"llm": {"maxReplyBytes": 1000}}));
    let (code, out, err) = said(sandbox.consolidate(&["--apply", "-"]).write_stdin("x".repeat(1001)));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(err, "memory-consolidate: stdin is larger than 1000 bytes; pipe in less\n");
}

#[test]
fn choices_that_contradict_each_other_are_refused() {
    let sandbox = Sandbox::new();
    for (args, message) in [
        (&["--dry-run", "--prompt"][..], "options \"--dry-run\" and \"--prompt\" do not go together"),
        (&["--prompt", "--apply", "-"], "options \"--prompt\" and \"--apply\" do not go together"),
        (&["--apply", "-", "--limit", "1"], "options \"--apply\" and \"--limit\" do not go together"),
        (&["--limit", "x"], "--limit"),
        (&["now"], "unexpected argument \"now\""),
        (&["--apply", "missing.txt"], "missing.txt"),
    ] {
        let (code, out, err) = said(&mut sandbox.consolidate(args));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}");
        assert!(err.contains(message), "{args:?}: {err}");
    }
}
