//! Every hook that was recorded from the real programs is queued, or skipped with a reason.

use crate::support::queue::entry_at;
use crate::support::{Said, Sandbox};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The recordings; `None` if there are none, which is reported.
fn recordings() -> Option<PathBuf> {
    let place = std::env::var_os("AXE_FIXTURES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures"), PathBuf::from);
    let harness = place.join("harness");
    if harness.is_dir() {
        return Some(harness);
    }
    let said = format!("capture_hooks: no recordings in {}: NO RECORDED HOOK was tried\n", harness.display());
    let _ = std::io::stderr().write_all(said.as_bytes());
    None
}

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, into) } else { into.push(path) }
    }
}

/// The results of one program's hooks.
struct Tried {
    taken: usize,
    left: usize,
    /// The transcripts that no hook queued, by name without `.jsonl`.
    unheard: BTreeSet<String>,
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// Passes every recorded hook of `harness` to memory-capture, in a home directory as it was recorded.
fn try_all(harness: &str, ends: &[&str]) -> Option<Tried> {
    let recorded = recordings()?.join(harness);
    let sandbox = Sandbox::new();
    let home = sandbox.home();
    let mut kept = Vec::new();
    files(&recorded.join("home"), &mut kept);
    let mut tried = Tried { taken: 0, left: 0, unheard: BTreeSet::new() };
    for path in kept {
        if path.extension().is_some_and(|end| end == "jsonl") {
            tried.unheard.insert(stem(&path));
        }
        let to = home.join(path.strip_prefix(recorded.join("home")).unwrap());
        sandbox.write(&to, fs::read(&path).unwrap());
    }
    let mut hooks = Vec::new();
    files(&recorded.join("hooks"), &mut hooks);
    for path in hooks.iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let text = fs::read_to_string(path).unwrap().replace("/home/u", home.to_str().unwrap());
        let payload: Value = serde_json::from_str(&text).unwrap();
        let is_notify = payload["hook_event_name"].is_null();
        let mut capture = sandbox.capture(&["--harness", harness]);
        let output = match is_notify {
            true => capture.arg(&text).output().unwrap(),
            false => capture.write_stdin(text).output().unwrap(),
        };
        let name = path.strip_prefix(&recorded).unwrap().display();
        assert_eq!(output.code(), Some(0), "{name}: {}", output.err());
        let queued = sandbox.queued();
        let event = payload["hook_event_name"].as_str().unwrap_or("notify");
        if queued.is_empty() {
            let err = output.err();
            assert!(
                err.starts_with("memory-capture: nothing queued: ") && err.lines().count() == 1,
                "{name}: {err}"
            );
            // The end of a session is skipped only if there is no transcript.
            let kept = payload["transcript_path"].as_str().is_some_and(|path| Path::new(path).exists());
            assert!(!(ends.contains(&event) && kept), "{name}: {err}");
            tried.left += 1;
            continue;
        }
        assert_eq!((queued.len(), output.err().as_str()), (1, ""), "{name}");
        assert!(ends.contains(&event) || is_notify, "{name} is no end");
        let file = sandbox.store().join("inbox").join(&queued[0]);
        let entry = entry_at(file.to_str().unwrap());
        let id = payload["session_id"].as_str().or_else(|| payload["thread-id"].as_str()).unwrap();
        let transcript = entry["retrieval"]["path"].as_str().unwrap();
        assert!(Path::new(transcript).is_file(), "{name}");
        if !is_notify {
            assert_eq!(payload["transcript_path"], transcript, "{name}");
        }
        let expected =
            json!({"method": "transcript", "path": transcript, "format": harness, "sessionId": id});
        assert_eq!(entry["retrieval"], expected, "{name}");
        assert_eq!(
            (&entry["harness"], &entry["context"]["cwd"]),
            (&json!(harness), &payload["cwd"]),
            "{name}"
        );
        tried.taken += 1;
        tried.unheard.remove(&stem(Path::new(transcript)));
        fs::remove_file(file).unwrap();
    }
    Some(tried)
}

/// Checks how many hooks were queued and skipped, and which transcripts no hook named, by the ends of their names.
fn check(tried: &Tried, taken: usize, left: usize, unheard: &[&str]) {
    let names: Vec<&String> = tried.unheard.iter().collect();
    let fit =
        names.len() == unheard.len() && names.iter().zip(unheard).all(|(name, end)| name.ends_with(end));
    assert!(fit, "{names:?}");
    assert_eq!((tried.taken, tried.left), (taken, left));
}

#[test]
fn recorded_hooks_of_claude_code() {
    let Some(tried) = try_all("claude-code", &["Stop", "SessionEnd", "PreCompact"]) else { return };
    // One was recorded without hooks, one killed before its end, one is a sub-agent.
    let unheard = [
        "1795b1be-6314-4920-b235-03f85c3db9db",
        "99999999-9999-4999-8999-999999999999",
        "agent-abdf3ffc1171de76c",
    ];
    check(&tried, 27, 50, &unheard);
}

#[test]
fn recorded_hooks_of_codex() {
    let Some(tried) = try_all("codex", &["Stop", "SessionEnd", "PreCompact", "Interrupt"]) else { return };
    // Codex runs no hook after SIGTERM and SIGKILL; one is a sub-agent.
    check(&tried, 30, 50, &["60ce569df28e", "beb3-b16e601405c5", "73e8fa376325"]);
}

#[test]
fn recorded_hooks_of_gemini_cli() {
    let Some(tried) = try_all("gemini", &["AfterAgent", "SessionEnd", "PreCompress"]) else { return };
    // One is a sub-agent, one was recorded without hooks, one is the stub of a resumed session.
    let unheard = ["6847fef5e95c", "session-2026-11-21T21-06-89a58ac3", "session-2026-11-21T21-11-33333333"];
    check(&tried, 34, 42, &unheard);
}
