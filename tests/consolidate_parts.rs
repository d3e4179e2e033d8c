//! `memory-consolidate` and sessions that no prompt has room for: read in parts, all of it, in order.

use crate::support::llm::NOTE_EACH;
use crate::support::{Sandbox, said};
use serde_json::json;
use std::collections::BTreeMap;

/// Queues a session of `turns` turns of some `size` bytes, each with a mark of its own.
fn long_talk(sandbox: &Sandbox, session: &str, turns: usize, size: usize) -> String {
    let texts: Vec<String> =
        (0..turns).map(|n| format!("MARK{n:05}. {}", "words and more words. ".repeat(size / 22))).collect();
    let talk: Vec<(&str, &str)> =
        texts.iter().enumerate().map(|(n, text)| (["user", "assistant"][n % 2], text.as_str())).collect();
    sandbox.talk(session, &talk);
    sandbox.hear(session)
}

/// What a prompt shows of turns that were read before, and of new ones.
fn halves(prompt: &str) -> (&str, &str) {
    prompt.split_once("\n=== new turns ").unwrap_or(("", prompt))
}

fn marks(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("MARK").map(|(at, _)| text[at..at + 9].to_owned())
}

/// How often each mark was shown as new, over all prompts in order; the order must be that of the session. What a prompt
/// repeats of earlier turns was new in an earlier one, and stands in order, too.
fn seen(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    let mut order = Vec::new();
    for prompt in sandbox.prompts() {
        let (earlier, new) = halves(&prompt);
        assert!(earlier.len() <= prompt.len() / 3 + 12_000, "{} of {}", earlier.len(), prompt.len());
        let repeated: Vec<String> = marks(earlier).collect();
        assert!(repeated.is_sorted() && repeated.iter().all(|mark| seen.contains_key(mark)), "{repeated:?}");
        for mark in marks(new) {
            *seen.entry(mark.clone()).or_default() += 1;
            order.push(mark);
        }
    }
    assert!(order.is_sorted(), "parts are out of order");
    seen
}

fn expect_all_once(sandbox: &Sandbox, turns: usize) {
    let seen = seen(sandbox);
    assert_eq!((seen.len(), seen.values().max()), (turns, Some(&1)));
}

#[test]
fn every_turn_is_seen_once_within_the_caps() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(
        "part = re.search(r'^part: (\\d+) of (\\d+)', prompt, re.M)\nsay([note('Part %s of many words' % part.group(1))])",
    );
    sandbox.llm(&command, json!({"maxPromptBytes": 120_000, "maxCallsPerRun": 100}));
    let turns = 300;
    let id = long_talk(&sandbox, "long", turns, 4000);
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{err}");
    let prompts = sandbox.prompts();
    assert!(prompts.len() > 10, "{}", prompts.len());
    assert_eq!(out, format!("1 entry processed, {} kb entries written\n", prompts.len()));
    for (n, prompt) in prompts.iter().enumerate() {
        assert!(prompt.len() <= 120_000, "{}", prompt.len());
        assert!(prompt.contains(&format!("\npart: {} of {}", n + 1, prompts.len())), "{n}");
    }
    expect_all_once(&sandbox, turns);
    // Later parts see what the earlier ones wrote.
    assert!(prompts[1].contains("title: Part 1 of many words\n"), "{}", &prompts[1][..8000]);
    assert_eq!(sandbox.processed(), [id]);
}

#[test]
fn a_turn_that_is_larger_than_a_prompt_is_cut_and_all_of_it_is_seen() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(NOTE_EACH);
    sandbox.llm(&command, json!({"maxPromptBytes": 20_000, "maxCallsPerRun": 100}));
    let lines: String = (0..3000).map(|n| format!("MARK{n:05} line\n")).collect();
    let flat = "ä".repeat(30_000);
    sandbox.talk("s1", &[("user", &lines), ("assistant", &flat)]);
    let id = sandbox.hear("s1");
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.processed()), (Some(0), vec![id]), "{err}");
    expect_all_once(&sandbox, 3000);
    let prompts = sandbox.prompts();
    let all: String = prompts.iter().map(|prompt| halves(prompt).1).collect();
    assert_eq!((all.matches('ä').count(), all.contains('\u{fffd}')), (30_000, false));
}

#[test]
fn what_a_cap_leaves_over_is_the_next_run_s_first_part() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(NOTE_EACH);
    sandbox.llm(&command, json!({"maxPromptBytes": 60_000, "maxCallsPerRun": 3}));
    let id = long_talk(&sandbox, "long", 60, 4000);
    let (mut runs, mut told) = (0, 0);
    while sandbox.processed().is_empty() {
        let (code, out, err) = sandbox.consolidated(&[]);
        assert_eq!(code, Some(0), "{err}");
        runs += 1;
        let count = out.split(' ').nth(3).and_then(|count| count.parse::<usize>().ok());
        told += count.unwrap_or_else(|| panic!("{out}"));
        assert!(runs < 5 && sandbox.prompts().len() <= 3 * runs, "{out}{err}");
    }
    assert!(runs > 1);
    assert_eq!((told, sandbox.kept().len()), (sandbox.prompts().len(), sandbox.prompts().len()));
    expect_all_once(&sandbox, 60);
    assert_eq!((sandbox.processed(), sandbox.batches()), (vec![id], vec![]));
}

#[test]
fn a_part_that_fails_is_where_the_next_try_begins() {
    let sandbox = Sandbox::new();
    let command =
        sandbox.script(&format!("if 'part: 3 of' in prompt and number < 4: sys.exit('tired')\n{NOTE_EACH}"));
    sandbox.llm(&command, json!({"maxPromptBytes": 60_000}));
    long_talk(&sandbox, "long", 60, 4000);
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, sandbox.waiting().len(), sandbox.prompts().len()), (Some(3), 1, 3), "{err}");
    let (code, _, err) = said(sandbox.consolidate(&[]).env("AXE_NOW", "2026-02-28T17:00:00Z"));
    assert_eq!((code, sandbox.processed().len()), (Some(0), 1), "{err}");
    let all = sandbox.prompts();
    let first = |prompt: &str| marks(halves(prompt).1).next().unwrap();
    assert_eq!(first(&all[2]), first(&all[3]), "the part that failed, again");
    assert_eq!(seen_in(&all[..2]) + seen_in(&all[3..]), 60);
}

fn seen_in(prompts: &[String]) -> usize {
    prompts.iter().map(|prompt| marks(halves(prompt).1).count()).sum()
}

#[test]
fn large_results_of_tools_are_cut_with_a_mark_and_counted() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let result = format!("HEAD {} TAIL", "noise ".repeat(100_000));
    let lines = [
        json!({"type": "user", "uuid": "1", "sessionId": "s1", "message": {"role": "user", "content": "Look."}}),
        json!({"type": "assistant", "uuid": "2", "sessionId": "s1", "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cat big"}}]}}),
        json!({"type": "user", "uuid": "3", "sessionId": "s1", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": result}]}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    sandbox.write(&sandbox.transcript("s1"), text);
    sandbox.hear("s1");
    assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    let prompt = sandbox.last_prompt();
    assert!(prompt.len() < 60_000 && prompt.contains("HEAD") && prompt.contains("TAIL"), "{}", prompt.len());
    assert!(prompt.contains("\nleft out: 5"), "{}", &prompt[prompt.find("<<< session").unwrap()..][..300]);
}

#[test]
fn a_jotted_note_in_parts_that_is_skipped_is_filed_once() {
    let sandbox = Sandbox::new();
    let command = sandbox.script("say([], [{'source': id, 'reason': 'long'} for id in ids])");
    sandbox.llm(&command, json!({"maxPromptBytes": 20_000}));
    let body = "A long line of a long note.\n".repeat(1500);
    let id = sandbox.jot("A long note", &body);
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!((code, out.as_str()), (Some(0), "1 entry processed, 1 kb entries written\n"), "{err}");
    assert!(sandbox.prompts().len() > 2);
    assert_eq!((sandbox.kept().len(), sandbox.processed()), (1, vec![id]));
    assert!(sandbox.kept()[0].ends_with(&format!("\n\n{body}")));
}

#[test]
fn what_earlier_parts_gave_is_committed_though_a_later_one_fails() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(&format!("if 'part: 2 of' in prompt: sys.exit('tired')\n{NOTE_EACH}"));
    sandbox.settings(json!({"llm": {"command": command, "maxPromptBytes": 60_000}}));
    sandbox.write(&sandbox.home().join(".gitconfig"), "[user]\n\tname = n\n\temail = e@example.org\n");
    long_talk(&sandbox, "long", 30, 4000);
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(3), "{err}");
    assert_eq!(out, "0 entries processed, 1 kb entries written, 1 failed, 1 waiting\n");
    let mut git = std::process::Command::new("git");
    let log = git.current_dir(sandbox.store()).args(["log", "--format=%B"]).output().unwrap();
    assert!(String::from_utf8_lossy(&log.stdout).contains("Thread-Id: long"), "{log:?}");
}

#[test]
fn many_sessions_and_all_that_stands_around_them_fit_into_a_prompt() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(
        "say([note('Many words ' + id, id, body='words ' * 60, tags=['topic__' + 'long-tag-' * 6 + str(n)])\n\
         for n, id in enumerate(ids)])",
    );
    sandbox.llm(&command, json!({"maxPromptBytes": 30_000}));
    for n in 0..64 {
        sandbox.heard(&format!("s{n}"), &"many words ".repeat(55));
    }
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!((code, out.as_str()), (Some(0), "64 entries processed, 64 kb entries written\n"), "{err}");
    let lengths: Vec<usize> = sandbox.prompts().iter().map(String::len).collect();
    assert!(lengths.iter().all(|length| *length <= 30_000), "{lengths:?}");
    assert!(lengths.iter().any(|length| *length > 20_000), "{lengths:?}");
}
