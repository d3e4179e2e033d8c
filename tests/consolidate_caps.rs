//! `memory-consolidate` spends no more than it may: calls a run, calls a day, and every one is written down.

use crate::support::llm::NOTE_EACH;
use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::fs;

/// Five sessions, of which one fits into a prompt, and caps.
fn capped(caps: Value) -> (Sandbox, Vec<String>) {
    let sandbox = Sandbox::new();
    let command = sandbox.script(NOTE_EACH);
    let mut llm = json!({"maxPromptBytes": 20_000});
    llm.as_object_mut().unwrap().extend(caps.as_object().unwrap().clone());
    sandbox.llm(&command, llm);
    let ids = (0..5).map(|n| sandbox.heard(&format!("s{n}"), &"word ".repeat(1200))).collect();
    (sandbox, ids)
}

fn run_at(sandbox: &Sandbox, now: &str, args: &[&str]) -> (Option<i32>, String, String) {
    said(sandbox.consolidate(args).env("AXE_NOW", now))
}

#[test]
fn at_the_cap_of_a_run_it_stops_and_the_next_goes_on() {
    let (sandbox, ids) = capped(json!({"maxCallsPerRun": 2}));
    for (done, calls) in [(2, 2), (4, 4), (5, 5)] {
        let (code, out, err) = sandbox.consolidated(&[]);
        assert_eq!(
            (code, sandbox.processed().len(), sandbox.prompts().len()),
            (Some(0), done, calls),
            "{err}"
        );
        let waits = 5 - done;
        match waits {
            0 => assert_eq!(err, ""),
            _ => {
                assert!(out.ends_with(&format!(", {waits} waiting\n")), "{out}");
                let line = "the cap of 2 calls a run is reached (llm.maxCallsPerRun); ";
                let entries = if waits == 1 { "entry waits" } else { "entries wait" };
                assert!(err.contains(&format!("{line}{waits} {entries}\n")), "{err}");
            }
        }
    }
    assert_eq!(sandbox.processed().len(), ids.len());
    for prompt in sandbox.prompts() {
        assert!(prompt.len() <= 20_000, "{}", prompt.len());
    }
}

#[test]
fn days_end_at_midnight_utc() {
    let (sandbox, _) = capped(json!({"maxCallsPerDay": 3}));
    let (code, out, err) = run_at(&sandbox, "2026-02-28T23:59:58Z", &["--json"]);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &result["processed"], &result["waiting"]), (Some(0), &json!(3), &json!(2)), "{err}");
    assert!(result["stopped"].as_str().unwrap().contains("3 calls a day"), "{result}");
    assert!(err.contains("the cap of 3 calls a day is reached (llm.maxCallsPerDay; days end at midnight UTC); 2 entries wait"), "{err}");
    let (code, out, _) = run_at(&sandbox, "2026-02-28T23:59:59Z", &[]);
    assert_eq!((code, out.as_str()), (Some(0), "0 entries processed, 0 kb entries written, 2 waiting\n"));
    assert_eq!(
        run_at(&sandbox, "2026-03-01T00:00:00Z", &[]).1,
        "2 entries processed, 2 kb entries written\n"
    );
}

#[test]
fn every_call_has_a_line_before_it_and_one_after() {
    let (sandbox, _) = capped(json!({"maxCallsPerRun": 1}));
    let command = sandbox.script(
        "open(os.path.join(here, 'before'), 'w').write(open(os.path.join(here, '.local/share/agent-memory/.agent-memory/calls.jsonl')).read())\nsay([note('T')])",
    );
    sandbox.llm(&command, json!({"maxCallsPerRun": 1, "maxPromptBytes": 20_000}));
    assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    let before: Value =
        serde_json::from_str(&fs::read_to_string(sandbox.home().join("before")).unwrap()).unwrap();
    let calls = sandbox.calls();
    assert_eq!((&before, calls.len()), (&calls[0], 2));
    let prompt = sandbox.prompts()[0].len();
    let expected = json!({
        "at": "2026-02-28T15:04:05Z", "event": "started", "program": "memory-consolidate",
        "batch": calls[0]["batch"], "purpose": "ask", "promptBytes": prompt,
    });
    assert_eq!(calls[0], expected);
    assert_eq!((&calls[1]["event"], &calls[1]["result"]), (&json!("ended"), &json!("ok")));
    assert!(calls[1]["replyBytes"].as_u64().unwrap() > 50 && calls[1]["ms"].is_u64(), "{}", calls[1]);
}

#[test]
fn repairs_and_dry_runs_count() {
    let (sandbox, ids) = capped(json!({}));
    let command = sandbox.script(&format!("if not is_repair: print('no')\nelse: {NOTE_EACH}"));
    sandbox.llm(&command, json!({"maxCallsPerDay": 3, "maxPromptBytes": 20_000}));
    let (code, _, err) = said(&mut sandbox.consolidate(&["--dry-run", "--limit", "1"]));
    assert_eq!((code, sandbox.prompts().len()), (Some(0), 2), "{err}");
    let purposes: Vec<_> =
        sandbox.calls().iter().map(|call| call["purpose"].as_str().unwrap().to_owned()).collect();
    assert_eq!(purposes, ["dry-run", "dry-run", "repair", "repair"]);
    // The replies of the dry run are used again. The third call is about a batch whose repair may not be made any more.
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.prompts().len()), (Some(0), 3), "{err}");
    assert!(err.contains("the cap of 3 calls a day") && err.contains("4 entries wait"), "{err}");
    assert_eq!(out, "1 entry processed, 1 kb entries written, 4 waiting\n");
    // What was paid for is not asked again: the next day begins with its repair.
    let (code, _, err) = run_at(&sandbox, "2026-03-01T00:00:00Z", &["--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(sandbox.prompts()[3].contains("It cannot be used:"), "{}", sandbox.prompts()[3]);
    assert_eq!((sandbox.processed().len(), ids.len(), sandbox.prompts().len()), (3, 5, 6));
    let (code, _, err) = run_at(&sandbox, "2026-03-01T00:00:00Z", &["--dry-run"]);
    assert_eq!((code, sandbox.prompts().len()), (Some(0), 6), "{err}");
    assert!(err.contains("the cap of 3 calls a day"), "{err}");
}

#[test]
fn a_line_that_cannot_be_read_counts_as_a_call() {
    let (sandbox, _) = capped(json!({"maxCallsPerDay": 3}));
    let yesterday = json!({"at": "2026-02-27T23:59:59Z", "event": "started"});
    let damaged = format!("{yesterday}\n{{\"at\":\"2026-02-2\n\n\u{0}\u{0}\u{0}\n");
    sandbox.write(&sandbox.store().join(".agent-memory/calls.jsonl"), damaged);
    let (code, _, err) = said(&mut sandbox.consolidate(&[]));
    assert_eq!((code, sandbox.prompts().len()), (Some(0), 1), "{err}");
}

#[test]
fn a_cap_of_none_makes_no_call() {
    let (sandbox, ids) = capped(json!({"maxCallsPerDay": 0}));
    let (code, _, err) = sandbox.consolidated(&[]);
    assert!(matches!(code, Some(0 | 2)), "{err}");
    assert_eq!((sandbox.waiting().len(), sandbox.prompts().len()), (ids.len(), 0));
}
