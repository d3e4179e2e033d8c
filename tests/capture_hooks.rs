//! Every hook that was recorded from the real programs is queued, or skipped with a reason.

use crate::support::llm::NOTE_EACH;
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

/// A recorded session or hook of those that the repository has, as if it were from this home directory.
fn recorded(path: &str, home: &Path) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(path);
    fs::read_to_string(path).unwrap().replace("/home/u", home.to_str().unwrap())
}

#[test]
fn copilots_hooks_are_taken_at_the_ends_of_the_session_alone() {
    let sandbox = Sandbox::new();
    let home = sandbox.home();
    let events = recorded("copilot/events.jsonl", &home);
    let id =
        serde_json::from_str::<Value>(events.lines().next().unwrap()).unwrap()["data"]["sessionId"].clone();
    let id = id.as_str().unwrap();
    let kept = home.join(format!(".copilot/session-state/{id}/events.jsonl"));
    sandbox.write(&kept, &events);
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let mut hooks = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/copilot/hooks"), &mut hooks);
    for hook in &hooks {
        let name = stem(hook);
        let text = recorded(&format!("copilot/hooks/{name}.json"), &home);
        let output = sandbox.capture(&["--harness", "copilot", "--json"]).write_stdin(text).output().unwrap();
        assert_eq!(output.code(), Some(0), "{name}: {}", output.err());
        let said: Value = serde_json::from_str(&output.out()).unwrap();
        if said["queued"] == json!(false) {
            left.push(name);
        } else {
            let expected =
                json!({"method": "transcript", "path": kept, "format": "copilot", "sessionId": id});
            assert_eq!((&said["harness"], &said["retrieval"]), (&json!("copilot"), &expected), "{name}");
            taken.push(name);
        }
    }
    let ends =
        ["02-agentStop", "03-sessionEnd", "06-agentStop", "07-sessionEnd", "13-agentStop", "14-sessionEnd"];
    assert_eq!(taken, ends, "and not the sub-agent's own agentStop: {left:?}");
    // A new session's file is written after its hooks have run.
    fs::remove_file(&kept).unwrap();
    fs::remove_dir_all(sandbox.store().join("inbox")).unwrap();
    let end = recorded("copilot/hooks/02-agentStop.json", &home);
    let output = sandbox.capture(&["--harness", "copilot"]).write_stdin(end).output().unwrap();
    assert_eq!((output.code(), output.err().as_str(), sandbox.waiting().len()), (Some(0), "", 1));
    // The session's directory may lie elsewhere, and only agentStop names the file.
    let elsewhere = sandbox.home().join("elsewhere");
    sandbox.write(&elsewhere.join(format!("session-state/{id}/events.jsonl")), &events);
    let end = recorded("copilot/hooks/03-sessionEnd.json", &home);
    let mut capture = sandbox.capture(&["--harness", "copilot", "--json"]);
    let output = capture.env("COPILOT_HOME", &elsewhere).write_stdin(end).output().unwrap();
    let said: Value = serde_json::from_str(&output.out()).unwrap();
    assert_eq!(said["retrieval"]["path"], json!(elsewhere.join(format!("session-state/{id}/events.jsonl"))));
}

#[test]
fn the_hooks_of_qwen_code_are_taken_like_those_of_claude_code_and_print_nothing() {
    let sandbox = Sandbox::new();
    let home = sandbox.home();
    let stop = recorded("qwen-code/hooks/Stop.json", &home);
    let payload: Value = serde_json::from_str(&stop).unwrap();
    let path = payload["transcript_path"].as_str().unwrap();
    sandbox.write(Path::new(path), recorded("qwen-code/session.jsonl", &home));
    let output = sandbox.capture(&["--harness", "qwen-code"]).write_stdin(stop).output().unwrap();
    assert_eq!((output.code(), output.out().as_str(), output.err().as_str()), (Some(0), "", ""));
    let [id] = &sandbox.waiting()[..] else { panic!("{:?}", sandbox.waiting()) };
    let entry = entry_at(sandbox.store().join(format!("inbox/{id}.json")).to_str().unwrap());
    let expected = json!({"method": "transcript", "path": path, "format": "qwen-code", "sessionId": payload["session_id"]});
    assert_eq!((&entry["harness"], &entry["retrieval"]), (&json!("qwen-code"), &expected));
    let prompt = recorded("qwen-code/hooks/UserPromptSubmit.json", &home);
    let output = sandbox.capture(&["--harness", "qwen-code"]).write_stdin(prompt).output().unwrap();
    assert!(output.code() == Some(0) && output.err().contains("nothing ends at"), "{}", output.err());
}

/// With `--add-dir`, the agent's shell may be in another repository when the turn ends.
#[test]
fn a_session_of_claude_code_belongs_to_the_directory_in_which_it_began() {
    let sandbox = Sandbox::new();
    let path = sandbox.home().join(".claude/projects/-p/s1.jsonl");
    sandbox.write(&path, "{}\n");
    let stop = json!({"hook_event_name": "Stop", "session_id": "s1", "transcript_path": path, "cwd": sandbox.home()});
    let mut capture = sandbox.capture(&["--harness", "claude-code"]);
    let output =
        capture.env("CLAUDE_PROJECT_DIR", sandbox.work()).write_stdin(stop.to_string()).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    let [id] = &sandbox.waiting()[..] else { panic!("{:?}", sandbox.waiting()) };
    let entry = entry_at(sandbox.store().join(format!("inbox/{id}.json")).to_str().unwrap());
    assert_eq!(entry["context"]["cwd"], json!(sandbox.work()));
}

#[test]
fn a_session_of_pi_is_captured_by_its_file() {
    let sandbox = Sandbox::new();
    let home = sandbox.home();
    let session = recorded("pi/session.jsonl", &home);
    let header: Value = serde_json::from_str(session.lines().next().unwrap()).unwrap();
    let name = format!("2026-11-23T08-23-55-138Z_{}.jsonl", header["id"].as_str().unwrap());
    let path = home.join(".pi/agent/sessions/--p--").join(name);
    sandbox.write(&path, session);
    let output = sandbox.capture(&["--harness", "pi"]).arg(&path).output().unwrap();
    assert_eq!(output.code(), Some(0), "{}", output.err());
    let entry = entry_at(output.out().trim_end());
    let expected = json!({"method": "transcript", "path": path, "format": "pi", "sessionId": header["id"]});
    assert_eq!((&entry["retrieval"], &entry["context"]["cwd"]), (&expected, &header["cwd"]));
    sandbox.file("diary_x.jsonl", "{}\n");
    for (args, why) in [
        (&["--harness", "pi"][..], "a session of pi is captured by its file; add the file's path"),
        (&["--harness", "pi", "gone_1.jsonl"], "gone_1.jsonl\"; give the file of a session"),
        (&["--harness", "pi", "diary_x.jsonl"], "does not begin like a session of Pi"),
        (&["--harness", "copilot", "x"], "unexpected argument \"x\""),
    ] {
        let output = sandbox.capture(args).output().unwrap();
        assert!(output.code() != Some(0) && output.err().contains(why), "{args:?}: {}", output.err());
    }
}

#[test]
fn a_session_that_gemini_cli_removes_before_it_is_read_is_learned_all_the_same() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let home = sandbox.home();
    let session = home.join(".gemini/tmp/p/chats/session-2026-02-13T14-00-11111111.jsonl");
    let said = |n: u32, text: &str| {
        json!({"id": format!("{n}"), "timestamp": "2026-02-13T14:00:00Z", "type": "user", "content": text})
            .to_string()
    };
    let header = json!({"sessionId": "11111111-1", "projectHash": "x", "startTime": "2026-02-13T14:00:00Z", "kind": "main"});
    sandbox.write(&session, format!("{header}\n{}\n", said(1, "The server listens on 4310.")));
    sandbox.write(
        &home.join(".gemini/tmp/p/logs.json"),
        json!([{"sessionId": "11111111-1", "messageId": 0, "type": "user", "message": "The server listens on 4310."}])
            .to_string(),
    );
    let hook = json!({"session_id": "11111111-1", "transcript_path": session, "cwd": sandbox.work(),
        "hook_event_name": "AfterAgent", "prompt": "x", "prompt_response": "y"});
    let capture = |sandbox: &Sandbox| {
        let output =
            sandbox.capture(&["--harness", "gemini"]).write_stdin(hook.to_string()).output().unwrap();
        assert_eq!((output.code(), output.err()), (Some(0), String::new()));
    };
    capture(&sandbox);
    // What is said after the hook counts too.
    let more = format!("{}{}\n", fs::read_to_string(&session).unwrap(), said(2, "And the tests on 4311."));
    fs::write(&session, more).unwrap();
    fs::remove_file(&session).unwrap();
    let kept = sandbox.store().join("inbox/.kept");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    // A file elsewhere would be told of here, and nothing in it would count as typed.
    let (code, _, err) = sandbox.consolidated(&[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let prompt = sandbox.last_prompt();
    assert!(prompt.contains(" user 2026-02-13 14:00") && prompt.contains("listens on 4310."), "{prompt}");
    assert!(prompt.contains("And the tests on 4311."), "{prompt}");
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0, "a link of an entry that is done is left");

    // An entry that was removed by hand takes its link along.
    sandbox.write(&session, format!("{header}\n{}\n", said(1, "Once more.")));
    capture(&sandbox);
    let [waiting] = &sandbox.waiting()[..] else { panic!() };
    fs::remove_file(sandbox.store().join(format!("inbox/{waiting}.json"))).unwrap();
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
    assert_eq!(sandbox.consolidated(&[]).0, Some(0));
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0);
}
