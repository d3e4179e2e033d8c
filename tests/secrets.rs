//! A secret that one rule finds is hidden on every route out of a session: prompts, notes, their history, proposals,
//! tries, and what the programs print.

use crate::consolidate::learned;
use crate::memory_sync::git;
use crate::support::llm::NOTE_EACH;
use crate::support::{Sandbox, said};
use serde_json::json;
use std::path::Path;

/// All files below a directory, as one text, with their names.
fn everything(dir: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        text += &format!("{}\n", entry.path().display());
        match entry.file_type().unwrap().is_dir() {
            true => text += &everything(&entry.path()),
            false => text += &String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()),
        }
    }
    text
}

#[test]
fn a_password_of_a_sentence_is_hidden_in_every_turn_of_the_session() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    sandbox.talk(
        "s1",
        &[
            ("assistant", "I tried curl -su mara:Makrele-7-Boje https://h.example and page.fill('#in', 'Makrele-7-Boje')."),
            ("user", "The password is Makrele-7-Boje, go on."),
            ("assistant", "In base64: bWFyYTpNYWtyZWxlLTctQm9qZQ== and the address ?x=Makrele-7-Boje&y=1"),
        ],
    );
    sandbox.hear("s1");
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{err}");
    let all = sandbox.prompts().concat() + &everything(&sandbox.store());
    assert!(!all.contains("Makrele") && !all.contains("bWFyYTpNYWtyZWxl"), "{all}");
}

#[test]
fn what_a_command_printed_and_what_was_answered_are_hidden_across_turns() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    sandbox.talk(
        "s1",
        &[
            ("user", "$ op read op://ci/deploy/token\nkrabben4kutter/am+kai\n$ ls"),
            ("assistant", "What is the password of the database?"),
            ("user", "Barnacle.Bill.3"),
            ("assistant", "Connected as gauge with Barnacle.Bill.3 and krabben4kutter/am+kai."),
        ],
    );
    sandbox.hear("s1");
    assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    let all = sandbox.prompts().concat() + &everything(&sandbox.store());
    assert!(!all.contains("Barnacle") && !all.contains("krabben4kutter"), "{all}");
}

fn token() -> String {
    format!("ghp_{}", "aB3dE6gH9j".repeat(4).get(..36).unwrap())
}

/// Queues a session in which the user says something, with a token as its id and in its directory.
fn queue(sandbox: &Sandbox, token: &str, says: &str) {
    let path = sandbox.work().join("t.jsonl");
    let turn = |role: &str, text: &str| json!({"type": role, "uuid": role, "sessionId": token, "promptSource": "typed", "message": {"role": role, "content": text}});
    sandbox.write(&path, format!("{}\n{}\n", turn("user", says), turn("assistant", "Yes.")));
    sandbox.queue(&json!({
        "version": 1, "timestamp": "2026-02-13T14:30:05.123Z", "harness": "claude-code",
        "retrieval": {"method": "transcript", "path": path, "format": "claude-code", "sessionId": token},
        "context": {"cwd": format!("/home/u/{token}/things"), "repo": "github.com/o/r"},
    }));
}

/// A token in the thread's id, its directory, a title and a tag.
#[test]
fn a_secret_in_a_threads_id_path_title_or_tag_goes_nowhere() {
    let token = token();
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    queue(&sandbox, &token, "Hello there, keep this.");
    let mut capture = sandbox.capture(&[
        "--title",
        &format!("Use {token}"),
        "--body",
        "The pw is Makrele7Boje.",
        "--tags",
        "makrele,Makrele7Boje",
    ]);
    let (code, out, err) = said(&mut capture);
    assert_eq!(code, Some(0), "{err}");
    let note = std::fs::read_to_string(out.trim_end()).unwrap();
    assert!(!note.contains(&token) && !note.contains("Makrele7Boje"), "{note}");
    let (code, out, err) = sandbox.consolidated(&[]);
    assert_eq!(code, Some(0), "{err}");
    let history = everything(&sandbox.store().join("topics"));
    let all = sandbox.prompts().concat() + &history + &out + &err;
    assert!(history.contains("[redacted:") && !all.contains(&token), "{all}");
    assert!(!all.contains("Makrele7Boje"), "{all}");
    // What is committed, and what a remote gets.
    git(&sandbox.home(), &["init", "--quiet", "--bare", "-b", "main", "memory.git"]);
    let remote = sandbox.home().join("memory.git");
    let setting = ["--remote", remote.to_str().unwrap(), "--trust", "own"];
    for arguments in [&setting[..], &[]] {
        let (code, out, err) = said(sandbox.command("memory-sync").args(arguments));
        assert!(code == Some(0) && !(out + &err).contains(&token), "{err}");
    }
    for repository in [remote, sandbox.store()] {
        let past = git(&repository, &["log", "--all", "-p", "--format=%B", "--root", "-m"]);
        assert!(past.contains("[redacted:"), "{past}");
        assert!(!past.contains(&token) && !past.contains("Makrele7Boje"), "{past}");
    }
}

/// What an LLM command prints as its error holds a password that the session said.
#[test]
fn an_error_that_quotes_the_session_does_not_quote_its_secret() {
    let sandbox = Sandbox::new();
    sandbox.librarian("sys.stderr.write('refused: Makrele7Boje\\n'); sys.exit(1)");
    sandbox.talk("s1", &[("user", "Das Passwort ist Makrele7Boje, leg los."), ("assistant", "Ja.")]);
    sandbox.hear("s1");
    let (_, out, err) = sandbox.consolidated(&[]);
    let all = out + &err + &everything(&sandbox.store());
    assert!(err.contains("refused: [redacted:") && !all.contains("Makrele7Boje"), "{all}");
}

/// A change that waits for a person, and a call that failed: both quote what the model said.
#[test]
fn a_secret_goes_into_no_proposal_and_no_try() {
    let token = token();
    let proposes = format!(
        "say([note('Use {token}', update='id__a1B2c3', body='After Makrele7Boje.', tags=['topic__makrele7boje'])])"
    );
    let fails = format!("sys.stderr.write('{token} Makrele7Boje\\n'); sys.exit(1)");
    for (script, place) in [(proposes, "proposals"), (fails, ".agent-memory")] {
        let sandbox = Sandbox::new();
        learned(&sandbox, "id__a1B2c3", "Retry rules", "Retry after 35 s, see src/retry.rs.", "");
        sandbox.librarian(&script);
        queue(&sandbox, &token, "The pw is Makrele7Boje. Retry after how long, src/retry.rs?");
        let (_, out, err) = sandbox.consolidated(&[]);
        assert!(sandbox.store().join(place).is_dir(), "{place}: {out}{err}");
        let kept = everything(&sandbox.store().join(place));
        assert!(kept.contains("[redacted:"), "{place}: {kept}{out}{err}");
        let past = match place {
            "proposals" => git(&sandbox.store(), &["log", "--all", "-p", "--format=%B", "--root", "-m"]),
            _ => String::new(),
        };
        let all = kept + &sandbox.prompts().concat() + &out + &err + &past;
        assert!(!all.contains(&token) && !all.contains("Makrele7Boje"), "{place}: {all}");
    }
}
