//! Which hooks are taken, and what is said of the others.

#![allow(clippy::disallowed_methods, reason = "a test may write files")]

use super::*;
use crate::base::env::pretend;
use crate::harness::known;
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn file(&self, path: &str, text: &str) -> String {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn hook_event(&self, harness: &str, payload: &Value) -> Result<Ended> {
        let env = pretend(&[("HOME", self.0.path().to_str().unwrap())]);
        hook_event(known(harness).unwrap(), payload.to_string().as_bytes(), &env)
    }
}

fn why(heard: Result<Ended>) -> String {
    match heard {
        Ok(Ended::Nothing(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn fault(heard: Result<Ended>) -> String {
    let error = heard.unwrap_err();
    assert_eq!(error.exit_code(), 1);
    error.message().to_owned()
}

#[test]
fn the_ends_of_things_are_taken_and_nothing_else() {
    let home = Home::new();
    let path = home.file("x.jsonl", "{}\n");
    for (harness, taken, left) in [
        ("claude-code", &["Stop", "SessionEnd", "PreCompact"][..], "PostToolUse"),
        ("codex", &["Stop", "SessionEnd", "PreCompact", "Interrupt"], "SessionStart"),
        ("gemini", &["AfterAgent", "SessionEnd", "PreCompress"], "BeforeTool"),
        ("qwen-code", &["Stop", "SessionEnd", "PreCompact"], "SubagentStop"),
        // As it calls the hooks of other programs.
        ("copilot", &["agentStop", "sessionEnd", "Stop", "SessionEnd"], "PreToolUse"),
    ] {
        let payload = |event: Value| json!({"session_id": "s-1", "transcript_path": path, "cwd": "/w", "hook_event_name": event, "new": [1]});
        for event in taken.iter().map(|event| json!(event)).chain([Value::Null]) {
            let (path, id) = (PathBuf::from(&path), "s-1".to_owned());
            let expected = Ended::Session { path, id, cwd: Some(PathBuf::from("/w")) };
            assert_eq!(home.hook_event(harness, &payload(event)).unwrap(), expected);
        }
        let why = why(home.hook_event(harness, &payload(json!(left))));
        assert_eq!(why, format!("nothing ends at \"{left}\"; use a hook for one of {}", taken.join(", ")));
    }
}

#[test]
fn sub_agents_are_in_the_session_that_sent_them() {
    let home = Home::new();
    let plain = home.file("a/s-1.jsonl", "{}\n");
    let claude = home.file("a/s-1/subagents/agent-1.jsonl", "{}\n");
    let gemini = home.file("chats/s-1/a-1.jsonl", "{}\n");
    let qwen = home.file("subagents/s-1/agent-1.jsonl", "{}\n");
    let codex = home.file("r.jsonl", "{\"payload\":{\"source\":{\"subagent\":{}}}}\n");
    for (harness, path, agent, part) in [
        ("claude-code", &plain, Some("a1"), "\"a1\" is a sub-agent"),
        ("claude-code", &claude, None, "is a sub-agent's transcript"),
        ("gemini", &gemini, None, "is a sub-agent's transcript"),
        ("codex", &codex, None, "is a sub-agent's transcript"),
        ("qwen-code", &qwen, None, "is a sub-agent's transcript"),
    ] {
        let payload = json!({"session_id": "s", "transcript_path": path, "agent_id": agent, "hook_event_name": "SessionEnd"});
        let why = why(home.hook_event(harness, &payload));
        assert!(why.contains(part), "{why}");
    }
    // A main session of Gemini lies in `chats` itself.
    let main = home.file("chats/session-1.jsonl", "{}\n");
    let payload = json!({"session_id": "s", "transcript_path": main});
    assert!(matches!(home.hook_event("gemini", &payload), Ok(Ended::Session { cwd: None, .. })));
}

#[test]
fn a_session_that_kept_nothing_is_told() {
    let home = Home::new();
    for path in
        [json!(null), json!(""), json!("relative.jsonl"), json!("/nowhere/x.jsonl"), json!("/dev/null/x")]
    {
        let payload = json!({"session_id": "s", "transcript_path": path, "hook_event_name": "Stop"});
        let why = why(home.hook_event("claude-code", &payload));
        assert!(why.starts_with("the session has no transcript"), "{why}");
    }
    let payload = json!({"session_id": "s", "transcript_path": home.0.path(), "hook_event_name": "Stop"});
    assert!(fault(home.hook_event("claude-code", &payload)).ends_with("is not a regular file"));
}

#[test]
fn faults_of_the_payload_are_named() {
    let home = Home::new();
    let start = "the hook's JSON cannot be used: ";
    for (harness, payload, expected) in [
        ("claude-code", json!([]), "a JSON object is expected, not an array"),
        ("claude-code", json!({}), "session_id: is missing"),
        ("claude-code", json!({"session_id": 5}), "session_id: a string is expected, not a number"),
        (
            "claude-code",
            json!({"hook_event_name": {}}),
            "hook_event_name: a string is expected, not an object",
        ),
        (
            "gemini",
            json!({"session_id": "s", "transcript_path": false}),
            "transcript_path: a string is expected, not a boolean",
        ),
        ("codex", json!({"session_id": "a/../b"}), "session_id: \"a/../b\" is not an id"),
        ("codex", json!({"thread-id": "a/b"}), "thread-id: \"a/b\" is not an id"),
        ("cursor", json!({}), "conversation_id: is missing"),
        (
            "cursor",
            json!({"conversation_id": "c", "workspace_roots": "/w"}),
            "workspace_roots: an array is expected, not a string",
        ),
        (
            "cursor",
            json!({"conversation_id": "c", "workspace_roots": [1]}),
            "workspace_roots: strings are expected, not a number",
        ),
    ] {
        let said = fault(home.hook_event(harness, &payload));
        assert!(said.starts_with(&format!("{start}{expected}")), "{said}");
    }
    let env = pretend(&[]);
    for text in ["", "{", "{\"session_id\": \"s\"} x", "\u{1b}[31m"] {
        let said = fault(hook_event(known("claude-code").unwrap(), text.as_bytes(), &env));
        assert!(said.starts_with(&format!("{start}not JSON: ")) && !said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn what_codex_notifies_of_leads_to_the_threads_file() {
    let home = Home::new();
    let id = "01a1ffeb-40ef-7d92-ae11-227dd73028eb";
    let payload = |kind: &str, id: &str| json!({"type": kind, "thread-id": id, "cwd": "/w", "turn-id": "t"});
    let gone = why(home.hook_event("codex", &payload("agent-turn-complete", id)));
    assert!(gone.contains("has no transcript among Codex's sessions"), "{gone}");
    let path =
        home.file(&format!(".codex/sessions/2026/11/21/rollout-2026-11-21T21-02-50-{id}.jsonl"), "{}\n");
    let expected = Ended::Session { path: path.into(), id: id.to_owned(), cwd: Some("/w".into()) };
    assert_eq!(home.hook_event("codex", &payload("agent-turn-complete", id)).unwrap(), expected);
    let other = why(home.hook_event("codex", &payload("approval-requested", id)));
    assert_eq!(other, "nothing ends at \"approval-requested\"; only \"agent-turn-complete\" counts");
    home.file(
        &format!(".codex/sessions/2026/11/21/rollout-2026-11-21T21-02-50-{id}.jsonl"),
        "{\"payload\":{\"thread_source\":\"subagent\"}}\n",
    );
    assert!(why(home.hook_event("codex", &payload("agent-turn-complete", id))).contains("sub-agent"));
}

#[test]
fn cursors_transcripts_are_found_by_the_conversation() {
    let home = Home::new();
    let payload = |path: Value| json!({"conversation_id": "c-1", "workspace_roots": ["/w", "/v"], "hook_event_name": "stop", "transcript_path": path});
    let gone = why(home.hook_event("cursor", &payload(Value::Null)));
    assert!(gone.contains("has no transcript among Cursor's projects"), "{gone}");
    let heard =
        |path: &str| Ended::Session { path: path.into(), id: "c-1".to_owned(), cwd: Some("/w".into()) };
    home.file(".cursor/projects/a/agent-transcripts/other/other.jsonl", "");
    let flat = home.file(".cursor/projects/b/agent-transcripts/c-1.jsonl", "");
    assert_eq!(home.hook_event("cursor", &payload(Value::Null)).unwrap(), heard(&flat));
    let deep = home.file(".cursor/projects/a/agent-transcripts/c-1/c-1.jsonl", "");
    assert_eq!(home.hook_event("cursor", &payload(json!("/nowhere"))).unwrap(), heard(&deep));
    let named = home.file("named.jsonl", "");
    assert_eq!(home.hook_event("cursor", &payload(json!(named))).unwrap(), heard(&named));
    let event = json!({"conversation_id": "c-1", "hook_event_name": "afterFileEdit"});
    let other = why(home.hook_event("cursor", &event));
    assert_eq!(other, "nothing ends at \"afterFileEdit\"; use a hook for one of stop, sessionEnd");
}

#[cfg(unix)]
#[test]
fn a_directory_that_an_entry_cannot_name_is_left_out() {
    use std::os::unix::ffi::OsStrExt;
    for name in [&b"\xff"[..], b"a\nb"] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(dir.join(".git")).unwrap();
        fs::write(dir.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(dir.join(".git/config"), "[remote \"origin\"]\nurl = https://u:p@h/o/r\n").unwrap();
        let found = context(Some(dir.clone()));
        assert_eq!((found.cwd, found.repo.as_deref()), (None, Some("h/o/r")));
        fs::write(dir.join(".git/config"), "").unwrap();
        assert!(context(Some(dir)).repo.is_none_or(|repo| !repo.contains('\n')));
    }
    assert_eq!(context(None), CaptureContext::default());
}
