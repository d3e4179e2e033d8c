//! `memory-capture --past`: the sessions that lie on this machine are queued once, and read after what is new.

use crate::support::llm::NOTE_EACH;
use crate::support::terminal::Terminal;
use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// When the first session of these tests changed: long before now, whatever the clock says.
const START: u64 = 1_770_000_000;

/// Writes a session's file that changed `hours` after [`START`].
fn leave(sandbox: &Sandbox, path: &str, hours: u64, lines: &[Value]) -> PathBuf {
    let path = sandbox.home().join(path);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    sandbox.write(&path, text);
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(START + hours * 3600);
    fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
    path
}

fn claude(id: &str, cwd: &str, said: &str) -> Vec<Value> {
    let line = |n: u32, role: &str, text: &str| {
        json!({"type": role, "uuid": format!("{id}-{n}"), "sessionId": id, "cwd": cwd,
            "timestamp": "2026-02-01T10:00:00Z", "message": {"role": role, "content": text}})
    };
    vec![line(0, "user", said), line(1, "assistant", "So it is.")]
}

fn codex(id: &str, cwd: &str, said: &str) -> Vec<Value> {
    let message = |role: &str, kind: &str, text: &str| {
        json!({"type": "response_item", "timestamp": "2026-02-01T10:00:00Z",
            "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}],
                "content_item_kinds": ["user.text"]}})
    };
    vec![
        json!({"type": "session_meta", "payload": {"id": id, "session_id": id, "cwd": cwd, "source": "cli",
            "thread_source": "user", "git": {"repository_url": "git@github.com:o/gone.git"}}}),
        message("user", "input_text", said),
        message("assistant", "output_text", "So it is."),
    ]
}

fn gemini(id: &str, said: &str) -> Vec<Value> {
    vec![
        json!({"sessionId": id, "projectHash": "x", "startTime": "2026-02-01T10:00:00Z", "kind": "main"}),
        json!({"id": format!("{id}-1"), "timestamp": "2026-02-01T10:00:00Z", "type": "user",
            "content": [{"text": said}]}),
        json!({"id": format!("{id}-2"), "timestamp": "2026-02-01T10:00:01Z", "type": "gemini",
            "content": "So it is."}),
    ]
}

fn cursor(said: &str) -> Vec<Value> {
    let line = |role: &str, text: &str| json!({"role": role, "message": {"content": [{"type": "text", "text": text}]}});
    vec![line("user", said), line("assistant", "So it is.")]
}

/// A program in the place of opencode, with these sessions in its database.
fn opencode(sandbox: &Sandbox, rows: &Value, exports: impl Fn(&str) -> String) -> String {
    sandbox.write(&sandbox.home().join(".local/share/opencode/opencode.db"), "not read");
    sandbox.write(&sandbox.home().join("rows.json"), rows.to_string());
    for row in rows.as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        sandbox.write(&sandbox.home().join(format!("exports/{id}.json")), exports(id));
    }
    let home = sandbox.home();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = db ]; then cat {0}/rows.json; else cat {0}/exports/\"$2\".json; fi\n",
        home.display()
    );
    let program = home.join("opencode");
    sandbox.write(&program, script);
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    program.display().to_string()
}

fn export(id: &str) -> String {
    let part = |n: u32, text: &str| json!([{"id": format!("prt_{n}"), "type": "text", "text": text}]);
    json!({"info": {"id": id, "directory": "/gone", "time": {"created": 1, "updated": 2}}, "messages": [
        {"info": {"id": "msg_1", "role": "user", "time": {"created": 1}}, "parts": part(1, "Hello, opencode?")},
        {"info": {"id": "msg_2", "role": "assistant", "time": {"created": 2}}, "parts": part(2, "So it is.")},
    ]})
    .to_string()
}

fn past(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    said(sandbox.capture(&[&["--past"], args].concat()).env("AXE_NOW", "2026-02-28T15:04:05Z"))
}

#[test]
fn sessions_of_five_programs_are_queued_once_and_read_oldest_first_after_what_is_new() {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    let work = sandbox.work().display().to_string();
    let ours = "batch: batch__abcdefghijkl\n\nYou turn sessions into notes.";
    let mut rows = Vec::new();
    let mut expected = Vec::new();
    for n in 0..150_u64 {
        // One in ten is ours, one in ten a sub-agent's.
        let (is_ours, is_sub) = (n % 10 == 3, n % 10 == 7);
        let said = if is_ours { ours.to_owned() } else { format!("MARK-{n:03} is said") };
        // Those of the same program are not written in the order of their times.
        let hours = (n * 7) % 150;
        let id = format!("00000000-0000-4000-8000-{n:012}");
        match n % 5 {
            0 | 3 => {
                let name = match (n % 5, is_sub) {
                    (0, _) => format!(".claude/projects/-p{}/{id}.jsonl", n % 3),
                    _ => format!(".claude/projects/-q/{id}.jsonl"),
                };
                leave(&sandbox, &name, hours, &claude(&id, &work, &said));
            }
            1 => {
                let name = format!(".codex/sessions/2026/02/{:02}/rollout-x-{id}.jsonl", n % 28 + 1);
                leave(&sandbox, &name, hours, &codex(&id, &work, &said));
            }
            2 => {
                let mut lines = gemini(&id, &said);
                let name = match is_sub {
                    true => {
                        lines[0]["kind"] = json!("subagent");
                        format!(".gemini/tmp/p/chats/session-{n}-sub.jsonl")
                    }
                    false => format!(".gemini/tmp/p/chats/session-{n}.jsonl"),
                };
                leave(&sandbox, &name, hours, &lines);
            }
            _ => {
                let name = match n % 2 {
                    0 => format!(".cursor/projects/p/agent-transcripts/{id}.jsonl"),
                    _ => format!(".cursor/projects/p/agent-transcripts/{id}/{id}.jsonl"),
                };
                leave(&sandbox, &name, hours, &cursor(&said));
            }
        }
        let is_ours_or_sub = is_ours || (is_sub && n % 5 == 2);
        if !is_ours_or_sub {
            expected.push((hours, format!("MARK-{n:03}")));
        }
    }
    // A sub-agent's file beside its session is none of the sessions.
    leave(&sandbox, ".claude/projects/-q/s1/subagents/agent-a.jsonl", 1, &claude("s1", &work, "MARK-sub"));
    // And opencode's, with a fork of a sub-agent and one of ours.
    for (n, parent, first) in [(600, None, "Hello"), (601, Some("ses_600"), "Hello"), (602, None, ours)] {
        rows.push(json!({"id": format!("ses_{n}"), "parent_id": parent, "directory": work,
            "time_updated": (START + 1000 * 3600) * 1000, "bytes": 500, "first": json!({"text": first}).to_string()}));
    }
    let program = opencode(&sandbox, &json!(rows), export);
    let command = sandbox.script(NOTE_EACH);
    sandbox.settings(json!({
        "llm": {"command": command, "maxCallsPerRun": 3, "maxPromptBytes": 30_000},
        "storage": {"autoCommit": false},
        "harnesses": {"opencode": {"readCommand": format!("{program} export {{threadId}}")}},
    }));
    expected.sort();

    let (code, out, err) = past(&sandbox, &["all", "--dry-run"]);
    assert_eq!(
        (code, out.lines().count(), sandbox.queued().len()),
        (Some(0), expected.len() + 1, 0),
        "{err}"
    );
    assert!(
        err.contains(&format!("{} sessions (", expected.len() + 1)) && err.contains("1 opencode"),
        "{err}"
    );
    assert!(
        err.contains("16 of the memory programs themselves") && err.contains("16 of sub-agents"),
        "{err}"
    );
    let (_, out, _) = past(&sandbox, &["all", "--dry-run", "--json"]);
    let preview: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(preview["sessions"].as_array().unwrap().len(), expected.len() + 1);
    assert!(preview["calls"].as_u64().unwrap() > 3 && preview["bytes"].as_u64().unwrap() > 15_000, "{out}");
    assert_eq!(preview["leftOut"], json!({"ours": 16, "subAgent": 16}));

    // One waits already, as the hook queued it.
    let hook = json!({"session_id": "00000000-0000-4000-8000-000000000000", "cwd": work, "hook_event_name": "Stop",
        "transcript_path": sandbox.home().join(".claude/projects/-p0/00000000-0000-4000-8000-000000000000.jsonl")});
    let mut capture = sandbox.capture(&["--harness", "claude-code"]);
    let (code, _, err) = said(capture.env("AXE_NOW", "2026-02-28T15:00:00Z").write_stdin(hook.to_string()));
    assert_eq!(code, Some(0), "{err}");
    let (code, out, err) = past(&sandbox, &["all", "--json"]);
    assert_eq!((code, sandbox.waiting().len()), (Some(0), expected.len() + 1), "{err}");
    assert!(err.contains("1 in the queue already"), "{err}");
    let entries: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), expected.len());
    assert!(entries.iter().all(|entry| entry["context"]["past"] == true && entry["path"].is_string()));
    let times: BTreeSet<&str> = entries.iter().map(|entry| entry["timestamp"].as_str().unwrap()).collect();
    assert_eq!(times.len(), entries.len(), "each has a time of its own");
    assert!(times.iter().all(|time| time.starts_with("2026-02-28T15:04:0")), "the time of queueing");

    // Nothing twice.
    for args in [&["all"][..], &["all", "--json"], &["36500d"]] {
        let (code, _, err) = past(&sandbox, args);
        assert_eq!((code, sandbox.waiting().len()), (Some(0), expected.len() + 1), "{err}");
        assert!(err.contains("nothing queued: no session was found that is not known"), "{err}");
    }

    // What is new goes first, then the past, oldest first, three calls a run.
    let new = sandbox.heard("new", "MARK-new is said");
    let mut shown = Vec::new();
    for run in 1..60 {
        let (code, _, err) = sandbox.consolidated(&[]);
        assert_eq!(code, Some(0), "{err}");
        assert!(sandbox.prompts().len() <= 3 * run, "the cap holds");
        if sandbox.waiting().is_empty() && sandbox.batches().is_empty() {
            break;
        }
    }
    for prompt in sandbox.prompts() {
        let marks = prompt.match_indices("MARK-").map(|(at, _)| prompt[at..at + 8].to_owned());
        shown.extend(marks);
    }
    assert!(sandbox.processed().contains(&new));
    assert_eq!((sandbox.waiting(), sandbox.failed()), (vec![], vec![]));
    assert_eq!(&shown[..2], ["MARK-000", "MARK-new"], "the two that hooks queued");
    // Each repository has calls of its own, so the order is that of the sessions of one repository.
    let of = |is_here: bool| -> Vec<&str> {
        let is_cursor = |mark: &str| mark[5..].parse::<u64>().is_ok_and(|n| n % 5 == 4 || n % 5 == 2);
        expected
            .iter()
            .map(|(_, mark)| mark.as_str())
            .filter(|mark| *mark != "MARK-000" && is_cursor(mark) != is_here)
            .collect()
    };
    let seen = |wanted: &[&str]| -> Vec<String> {
        shown.iter().filter(|mark| wanted.contains(&mark.as_str())).cloned().collect()
    };
    for is_here in [true, false] {
        let wanted = of(is_here);
        assert_eq!(seen(&wanted), wanted, "each once, oldest first");
    }
    let (_, _, err) = past(&sandbox, &["all"]);
    assert!(err.contains("consumed already") && sandbox.waiting().is_empty(), "{err}");
}

#[test]
fn a_period_harness_and_directory_say_which_sessions_are_meant() {
    let sandbox = Sandbox::new();
    sandbox.in_a_repository();
    let work = sandbox.work().display().to_string();
    let hours = 26 * 24;
    leave(&sandbox, ".claude/projects/-p/old.jsonl", 0, &claude("old", &work, "Old?"));
    leave(&sandbox, ".claude/projects/-p/new.jsonl", hours, &claude("new", &work, "New?"));
    leave(&sandbox, "elsewhere/projects/-p/there.jsonl", hours, &claude("there", &work, "There?"));
    leave(&sandbox, ".codex/sessions/2026/02/01/rollout-x-t1.jsonl", hours, &codex("t1", "/gone", "Codex?"));
    leave(&sandbox, ".gemini/tmp/p/chats/session-1.jsonl", hours, &gemini("g1", "Gemini?"));
    sandbox.write(&sandbox.home().join(".gemini/tmp/p/.project_root"), format!("{work}\n"));
    leave(&sandbox, ".gemini/tmp/p/chats/session-2.jsonl", hours, &gemini("g2", " "));
    leave(&sandbox, ".claude/projects/-p/broken.jsonl", hours, &[json!("x")]);
    let shown = |args: &[&str], env: &[(&str, String)]| {
        let mut capture = sandbox.capture(&[&["--past"], args, &["--dry-run", "--json"]].concat());
        env.iter().for_each(|(name, value)| {
            capture.env(name, value);
        });
        let (code, out, err) = said(&mut capture);
        assert_eq!(code, Some(0), "{err}");
        let preview: Value = serde_json::from_str(&out).unwrap();
        let id = |session: &Value| {
            let repo = session["context"]["repo"].as_str().unwrap_or("-").to_owned();
            format!("{} {repo}", session["retrieval"]["sessionId"].as_str().unwrap())
        };
        let ids: Vec<String> = preview["sessions"].as_array().unwrap().iter().map(id).collect();
        (ids, preview["leftOut"].clone())
    };
    let (here, gone) = ("github.com/o/r", "github.com/o/gone");
    let (ids, left_out) = shown(&["7d"], &[]);
    assert_eq!(ids, [format!("new {here}"), format!("t1 {gone}"), format!("g1 {here}")], "{left_out}");
    assert_eq!(left_out, json!({"silent": 1, "unreadable": 1}));
    assert_eq!(
        shown(&["all", "--harness", "claude-code"], &[]).0,
        [format!("old {here}"), format!("new {here}")]
    );
    let elsewhere = sandbox.home().join("elsewhere").display().to_string();
    let (ids, _) = shown(&["2w", "--harness", "claude-code"], &[("CLAUDE_CONFIG_DIR", elsewhere)]);
    assert_eq!(ids, [format!("there {here}")]);
    assert!(shown(&["1h"], &[]).0.is_empty());
}

#[test]
fn recorded_sessions_of_copilot_pi_and_qwen_code_are_found_where_they_keep_them() {
    let sandbox = Sandbox::new();
    for (path, recorded) in [
        (".copilot/session-state/a/events.jsonl", include_str!("recorded/copilot/events.jsonl")),
        (".pi/agent/sessions/--p--/2026_a.jsonl", include_str!("recorded/pi/session.jsonl")),
        (".qwen/projects/-p/chats/a.jsonl", include_str!("recorded/qwen-code/session.jsonl")),
        (".qwen/projects/-p/chats/b.jsonl", include_str!("recorded/qwen-code/sub-agent.jsonl")),
    ] {
        sandbox.write(&sandbox.home().join(path), recorded);
    }
    let (code, out, err) = past(&sandbox, &["all", "--dry-run", "--json"]);
    assert_eq!(code, Some(0), "{err}");
    let preview: Value = serde_json::from_str(&out).unwrap();
    let mut found: Vec<&str> =
        preview["sessions"].as_array().unwrap().iter().map(|one| one["harness"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, ["copilot", "pi", "qwen-code"], "{out}");
    assert_eq!(preview["leftOut"], json!({"subAgent": 1}));
    for session in preview["sessions"].as_array().unwrap() {
        assert!(
            session["context"]["cwd"].is_string() && session["retrieval"]["sessionId"].is_string(),
            "{session}"
        );
    }
    // The directories that the programs' own variables name.
    for (name, harness) in
        [("COPILOT_HOME", "copilot"), ("QWEN_HOME", "qwen-code"), ("PI_CODING_AGENT_DIR", "pi")]
    {
        let (_, _, err) = said(
            sandbox.capture(&["--past", "all", "--dry-run", "--harness", harness]).env(name, "/nowhere"),
        );
        assert!(err.contains("no sessions"), "{harness}: {err}");
    }
}

#[test]
fn what_is_no_period_and_what_does_not_go_with_it_is_told() {
    let sandbox = Sandbox::new();
    for (args, expected) in [
        (&["--past", "soon"][..], "option \"--past\": \"soon\" is not a period"),
        (&["--past", "30"], "write a number and d, h or w, like 30d, 12h or 2w; or all"),
        (&["--past", "7d", "--title", "T"], "--title"),
        (&["--past", "7d", "--entry"], "--entry"),
        (&["--past", "7d", "--harness", "manual"], "sessions of \"manual\" are not found on this machine"),
        (&["--dry-run", "--title", "T", "--body", "B"], "option \"--dry-run\" is only for --past"),
        (&["--yes"], "option \"--yes\" is only for --past"),
    ] {
        let (code, out, err) = said(&mut sandbox.capture(args));
        assert_eq!((code, out.as_str()), (Some(1), ""), "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
    // Inside an LLM command nothing is queued.
    leave(&sandbox, ".claude/projects/-p/s.jsonl", 0, &claude("s", "/w", "Hello?"));
    let (code, _, err) = said(sandbox.capture(&["--past", "all"]).env("AGENT_MEMORY_RUN", "1"));
    assert!(code == Some(0) && err.contains("nothing queued") && sandbox.queued().is_empty(), "{err}");
}

#[test]
fn on_a_terminal_it_asks_first() {
    use std::io::Write;
    for (typed, args, queued) in
        [("n\n", &[][..], 0), ("\n", &[], 0), ("y\n", &[], 1), ("n\n", &["--yes"], 1)]
    {
        let sandbox = Sandbox::new();
        leave(&sandbox, ".claude/projects/-p/s.jsonl", 0, &claude("s", "/w", "Hello?"));
        let mut terminal = Terminal::open();
        let mut capture = sandbox.std_command("memory-capture");
        capture.args(["--past", "all"]).args(args);
        capture.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
        let mut child = capture.spawn().unwrap();
        drop(capture);
        terminal.keyboard.write_all(typed.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(sandbox.queued().len(), queued, "{typed:?} {args:?}: {}", terminal.all());
    }
}

#[test]
fn sessions_that_ended_without_a_hook_are_queued_by_the_next_run() {
    let sandbox = Sandbox::new();
    sandbox.librarian(NOTE_EACH);
    let work = sandbox.work().display().to_string();
    let session = |name: &str, minutes: u64| {
        let path =
            leave(&sandbox, &format!(".claude/projects/-p/{name}.jsonl"), 0, &claude(name, &work, "Hello?"));
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(START + minutes * 60);
        fs::File::options().write(true).open(&path).unwrap().set_modified(changed).unwrap();
        path
    };
    let by_a_hook = |name: &str, minutes: u64| {
        let hook = json!({"session_id": name, "transcript_path": session(name, minutes), "cwd": work,
            "hook_event_name": "Stop"});
        let mut command = sandbox.capture(&["--harness", "claude-code"]);
        assert_eq!(said(command.write_stdin(hook.to_string())).0, Some(0));
    };
    let run = |hour: u64, config: &[&str]| {
        let now = format!("2026-02-02T{:02}:40:00Z", 2 + hour);
        let (code, out, err) = said(sandbox.consolidate(config).env("AXE_NOW", now));
        assert_eq!(code, Some(0), "{err}");
        (out.split(' ').next().unwrap().to_owned(), err)
    };
    session("before", 50);
    leave(&sandbox, ".codex/sessions/2026/02/02/rollout-x-c.jsonl", 2, &codex("c", &work, "No hooks here"));
    assert!(
        sandbox
            .command("memory-install-hooks")
            .args(["--harness", "claude-code"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let record =
        fs::File::options().write(true).open(sandbox.home().join(".local/state/agent-memory/hooks.json"));
    record.unwrap().set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(START + 3600)).unwrap();
    session("killed", 70);
    by_a_hook("ended", 80);
    session("running", 3 * 60 - 10);
    let (processed, err) = run(3, &[]);
    assert!(err.contains("1 session ended without a hook; queued now"), "{err}");
    assert_eq!((processed.as_str(), run(3, &[]).0.as_str()), ("2", "0"));
    let (processed, err) = run(4, &[]);
    assert!(
        processed == "1" && err.contains("1 session ended"),
        "the one that was running: {processed} {err}"
    );

    // Three in a row are trouble.
    let trouble =
        || said(sandbox.command("memory-doctor").args(["--json"])).1.contains("ended without a hook");
    session("third", 4 * 60);
    assert!(!trouble());
    assert!(run(5, &[]).1.contains("1 session ended"));
    assert!(trouble());
    by_a_hook("good", 5 * 60);
    assert_eq!((run(6, &[]).0.as_str(), trouble()), ("1", false));

    // One setting turns it off.
    let path = sandbox.home().join(".config/agent-memory/config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["capture"] = json!({"sweep": false});
    session("unwanted", 6 * 60);
    sandbox.write(&path, config.to_string());
    assert_eq!(run(7, &[]).0, "0");
}
