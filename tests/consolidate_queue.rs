//! What waits beside an entry that cannot be read, and beside one that is very long, gets its turn.

use crate::support::llm::{NOTE_EACH, without_earlier};
use crate::support::{Sandbox, said};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

/// The times of three runs, and of a fourth, each after the pause that a failed try brings.
const RUNS: [&str; 4] =
    ["2026-02-28T16:00:00Z", "2026-02-28T17:30:00Z", "2026-03-01T00:00:00Z", "2026-03-01T12:00:00Z"];

/// Queues a transcript without looking at it, and returns its queue id.
fn queue_transcript(sandbox: &Sandbox, path: &Path) -> String {
    sandbox.in_a_repository();
    sandbox.queue(&json!({
        "version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "claude-code",
        "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": "poisoned"},
        "context": {"cwd": sandbox.work(), "repo": "github.com/o/r"},
    }))
}

/// A newer program's state is refused by name, and is as it was.
#[test]
fn state_of_a_newer_version_is_refused_by_name_and_not_overwritten() {
    for (name, program) in [
        ("sessions.json", "memory-consolidate"),
        ("asked.json", "memory-consolidate"),
        ("tries.json", "memory-consolidate"),
        ("defrag.json", "memory-defrag"),
        ("used.json", "memory-defrag"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.librarian("do()");
        sandbox.heard("s1", "Why?");
        sandbox.write(
            &sandbox.store().join("topics/n -- id__AAAAAA.md"),
            "---\nid: id__AAAAAA\ntitle: N\n---\n\nText.\n",
        );
        let path = sandbox.store().join(".agent-memory").join(name);
        let newer = r#"{"version": 7, "x": {"y": 1}}"#;
        sandbox.write(&path, newer);
        let (code, _, err) = crate::support::said(&mut sandbox.command(program));
        assert_ne!(code, Some(0), "{name}");
        let told = format!(
            "\"{}\" is of version 7; this program knows version 1; a newer program wrote it",
            path.display()
        );
        assert!(err.contains(&told), "{name}: {err}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), newer, "{name}");
    }
}

#[test]
fn what_is_no_file_ends_among_the_failed_and_the_entry_beside_it_is_filed() {
    let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    // What it is called, how it is made, and what is said about it.
    type Poison<'a> = (&'a str, &'a dyn Fn(&Path), &'a str);
    let make: [Poison; 7] = [
        ("a FIFO", &fifo, "is not a regular file"),
        (
            "a link to a FIFO",
            &|path| {
                fifo(&path.with_extension("fifo"));
                symlink(path.with_extension("fifo"), path).unwrap();
            },
            "is not a regular file",
        ),
        ("a link to /dev/zero", &|path| symlink("/dev/zero", path).unwrap(), "is not a regular file"),
        ("a link to /proc", &|path| symlink("/proc/self/environ", path).unwrap(), "is not a regular file"),
        ("a directory", &|path| fs::create_dir(path).unwrap(), "is a directory"),
        ("nothing", &|_| {}, "no file"),
        (
            "a file beyond the limit",
            &|path| fs::File::create(path).unwrap().set_len((1 << 30) + 1).unwrap(),
            "has 1024 MiB; sessions of up to 1024 MiB are read",
        ),
    ];
    for (what, make, expected) in make {
        if what == "a link to /proc" && !Path::new("/proc/self/environ").exists() {
            continue;
        }
        let sandbox = Sandbox::new();
        sandbox.librarian(NOTE_EACH);
        let path = sandbox.work().join("poisoned.jsonl");
        make(&path);
        let bad = queue_transcript(&sandbox, &path);
        let good = sandbox.heard("s1", "Hello?");
        for (run, now) in RUNS[..3].iter().enumerate() {
            let (code, _, err) = said(sandbox.consolidate(&[]).env("AXE_NOW", now));
            assert_eq!(code, Some(3), "{what}: {err}");
            assert!(err.contains(expected), "{what}: {err}");
            assert_eq!(sandbox.processed(), [good.as_str()], "{what}, run {run}");
        }
        assert_eq!((sandbox.failed(), sandbox.waiting()), (vec![bad], vec![]), "{what}");
    }
}

#[test]
fn a_session_whose_reading_kills_the_run_has_had_its_try() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(NOTE_EACH);
    sandbox.settings(json!({
        "llm": {"command": command}, "storage": {"autoCommit": false},
        "harnesses": {"opencode": {"readCommand": "sh -c 'kill -9 $PPID; sleep 5' {threadId}"}},
    }));
    sandbox.in_a_repository();
    let bad = sandbox.queue(&json!({
        "version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "opencode",
        "retrieval": {"method": "opencode-session", "threadId": "ses_1"},
        "context": {"cwd": sandbox.work(), "repo": "github.com/o/r"},
    }));
    let note = sandbox.jot("A note beside it", "It is filed all the same.");
    let session = sandbox.heard("s1", "Hello?");
    let mut good = vec![note, session];
    good.sort();

    let run = |now: &str| {
        let before = sandbox.everywhere();
        let output = sandbox.consolidate(&[]).env("AXE_NOW", now).output().unwrap();
        assert_eq!(sandbox.everywhere(), before);
        (output.status, String::from_utf8(output.stderr).unwrap())
    };
    // Anything may kill a run, so it is read once more with the others, and then no more.
    let killed = |now: &str| {
        for _ in 0..2 {
            let (status, err) = run(now);
            assert_eq!(status.signal(), Some(9), "{err}");
        }
    };
    killed(RUNS[0]);
    let (status, err) = run("2026-02-28T16:00:10Z");
    assert_eq!((status.code(), sandbox.processed()), (Some(3), good.clone()), "{err}");
    assert!(err.contains("the last runs that read its session did not get to the end of it"), "{err}");
    assert_eq!(sandbox.waiting(), [bad.as_str()]);
    assert_eq!(run("2026-02-28T16:00:20Z").0.code(), Some(0), "it waits for an hour");
    killed(RUNS[1]);
    assert_eq!(run(RUNS[1]).0.code(), Some(3));
    killed(RUNS[2]);
    let (status, err) = run(RUNS[3]);
    assert_eq!((status.code(), sandbox.failed()), (Some(3), vec![bad]), "{err}");
    assert_eq!((sandbox.processed(), sandbox.waiting(), sandbox.batches()), (good, vec![], vec![]));
}

#[test]
fn a_batch_that_ends_every_run_is_split_and_what_is_beside_the_poison_is_filed() {
    let sandbox = Sandbox::new();
    let script = format!(
        "import signal\nif 'poison' in prompt:\n    os.kill(int(os.environ['RUN']), signal.SIGKILL)\n    sys.exit(1)\n{NOTE_EACH}"
    );
    let command = sandbox.script(&script);
    sandbox.llm(&format!("RUN=$PPID {command}"), json!({}));
    let bad = sandbox.heard("bad", "This is poison.");
    let mut good = ["a", "b"].map(|name| sandbox.heard(name, "Hello?")).to_vec();
    good.sort();
    let run = |now: &str| {
        let before = sandbox.everywhere();
        let output = sandbox.consolidate(&[]).env("AXE_NOW", now).output().unwrap();
        assert_eq!(sandbox.everywhere(), before);
        (output.status, String::from_utf8(output.stderr).unwrap())
    };
    for _ in 0..3 {
        let (status, err) = run(RUNS[0]);
        assert_eq!(status.signal(), Some(9), "{err}");
    }
    // Each is asked about alone now, and the poisoned one may be the first.
    let mut told = String::new();
    for now in
        ["2026-02-28T17:00:00Z", "2026-02-28T17:00:10Z", "2026-02-28T17:00:20Z", "2026-02-28T17:00:30Z"]
    {
        told += &run(now).1;
    }
    assert!(
        told.contains("has ended every run that took it up; its entries are asked about one by one"),
        "{told}"
    );
    assert_eq!((sandbox.processed(), sandbox.waiting()), (good, vec![bad]), "{told}");
    assert!(told.contains("every run that took it up was ended; the next try is after"), "{told}");
}

/// Queues a session of this repository and size, and returns its queue id.
fn long_talk(sandbox: &Sandbox, session: &str, repo: &str, turns: usize, is_past: bool) -> String {
    let text = "words and more words. ".repeat(180);
    let texts: Vec<String> = (0..turns).map(|n| format!("MARK-{session}-{n} {text}")).collect();
    let talk: Vec<(&str, &str)> =
        texts.iter().enumerate().map(|(n, text)| (["user", "assistant"][n % 2], text.as_str())).collect();
    sandbox.talk(session, &talk);
    let mut context = json!({"cwd": sandbox.work(), "repo": repo});
    if is_past {
        context["past"] = json!(true);
    }
    sandbox.queue(&json!({
        "version": 1, "timestamp": format!("2026-02-28T12:00:{:02}Z", sandbox.everywhere().len()),
        "harness": "claude-code",
        "retrieval": {"method": "transcript", "path": sandbox.transcript(session), "format": "claude-code",
            "sessionId": session},
        "context": context,
    }))
}

/// Which sessions each prompt shows.
fn sessions_of(sandbox: &Sandbox) -> Vec<String> {
    let of = |prompt: &String| {
        let at = prompt.find("MARK-").unwrap() + 5;
        prompt[at..].split('-').next().unwrap().to_owned()
    };
    sandbox.prompts().iter().map(of).collect()
}

#[test]
fn one_huge_session_does_not_hold_back_five_small_ones() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(NOTE_EACH);
    sandbox.llm(&command, json!({"maxPromptBytes": 60_000, "maxCallsPerRun": 3}));
    let huge = long_talk(&sandbox, "huge", "h/o/huge", 90, false);
    let small: Vec<String> = (0..5)
        .map(|n| long_talk(&sandbox, &format!("small{n}"), &format!("h/o/small{n}"), 2, false))
        .collect();
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "2 entries processed, 3 kb entries written, 4 waiting\n"),
        "{err}"
    );
    assert_eq!(sessions_of(&sandbox), ["huge", "small0", "small1"]);
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(sessions_of(&sandbox)[3..], ["small2", "small3", "small4"]);
    assert_eq!(sandbox.processed(), small);
    // Then its parts, in order, to the last.
    for _ in 0..20 {
        if sandbox.batches().is_empty() {
            break;
        }
        let (code, _, err) = sandbox.consolidated(&[]);
        assert_eq!(code, Some(0), "{err}");
    }
    assert!(sandbox.processed().contains(&huge));
    let shown: String = sandbox.prompts().iter().map(|prompt| without_earlier(prompt)).collect();
    assert!((0..90).all(|n| shown.matches(&format!("MARK-huge-{n} ")).count() == 1), "every turn once");
}

#[test]
fn parts_take_turns_and_the_past_waits_until_nothing_new_does() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(NOTE_EACH);
    sandbox.llm(&command, json!({"maxPromptBytes": 60_000, "maxCallsPerRun": 100}));
    long_talk(&sandbox, "old", "h/o/old", 20, true);
    long_talk(&sandbox, "a", "h/o/a", 30, false);
    long_talk(&sandbox, "b", "h/o/b", 20, false);
    long_talk(&sandbox, "older", "h/o/older", 2, true);
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{out}{err}");
    let shown = sessions_of(&sandbox);
    let (new, past) = shown.split_at(shown.iter().position(|name| name.starts_with("old")).unwrap());
    assert!(new.starts_with(&["a", "b", "a", "b", "a"].map(str::to_owned)), "{shown:?}");
    assert_eq!(past[..3], ["old", "older", "old"], "{shown:?}");
    assert!(past.iter().all(|name| name.starts_with("old")), "{shown:?}");
    assert_eq!((sandbox.processed().len(), sandbox.batches()), (4, vec![]));
}

#[test]
fn a_new_session_goes_before_the_parts_of_the_past_that_were_begun() {
    let sandbox = Sandbox::new();
    let command = sandbox.script(NOTE_EACH);
    sandbox.llm(&command, json!({"maxPromptBytes": 60_000, "maxCallsPerRun": 1}));
    long_talk(&sandbox, "old", "h/o/old", 40, true);
    assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    long_talk(&sandbox, "new", "h/o/new", 2, false);
    for _ in 0..2 {
        assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    }
    assert_eq!(sessions_of(&sandbox), ["old", "new", "old"]);
}
