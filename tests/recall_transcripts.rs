//! What `memory-recall` gave a session is in its transcript, in the form of each program. None of it comes into a prompt
//! of `memory-consolidate`: a note must not become a copy of itself, and nobody typed it.

use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Learns nothing.
const NOTHING: &str = r#"say([], [{"source": id, "reason": "nothing"} for id in ids])"#;

/// What the hook gives at a start; it holds `Swordfish`.
fn given(sandbox: &Sandbox) -> String {
    sandbox.in_a_repository();
    let note = "---\nid: id__AAAAAA\ntitle: Swordfish\npinned: true\nscope: global\n---\n\nSwordfish & <b>co</b>.\n\n```sh\nmake swordfish\n```\n";
    sandbox.write(&sandbox.store().join("topics/swordfish -- id__AAAAAA.md"), note);
    let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": sandbox.work(), "source": "startup"});
    let mut command = sandbox.command("memory-recall");
    command.args(["--harness", "opencode"]).env("AGENT_MEMORY_RECALL_MS", "60000");
    let (code, out, err) = said(command.write_stdin(event.to_string()));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("Swordfish"), "{out}");
    out.trim_end().to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The prompt that a session with these lines makes.
fn prompt(sandbox: &Sandbox, harness: &str, lines: &[Value]) -> String {
    let path = sandbox.work().join(if harness == "opencode" { "ses_1" } else { "session.jsonl" });
    sandbox.write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let retrieval = match harness {
        "opencode" => json!({"method": "opencode-session", "threadId": "ses_1"}),
        _ => json!({"method": "transcript", "path": path, "format": harness, "sessionId": "s-1"}),
    };
    sandbox.queue(&json!({
        "version": 1, "timestamp": "2026-02-13T14:30:05.123Z", "harness": harness, "retrieval": retrieval,
        "context": {"cwd": sandbox.work(), "repo": "github.com/o/r"},
    }));
    let read = json!({"readCommand": format!("cat {}/{{threadId}}", sandbox.work().display())});
    sandbox.settings(json!({
        "storage": {"autoCommit": false}, "llm": {"command": sandbox.script(NOTHING)}, "harnesses": {"opencode": read},
    }));
    let (code, prompt, err) = said(&mut sandbox.consolidate(&["--prompt"]));
    assert_eq!((code, err.lines().find(|line| line.starts_with("Warning: "))), (Some(0), None));
    prompt
}

/// The session's part of a prompt holds what was typed and answered, and nothing of what was given.
fn is_clean(harness: &str, prompt: &str) {
    // The note itself may be among the related ones.
    let session = &prompt[prompt.find("harness: ").unwrap_or_else(|| panic!("{prompt}"))..];
    let session = session.split("Swordfish\npinned").next().unwrap();
    for kept in ["Fix the parser.", "It is fixed."] {
        assert!(session.contains(kept), "{harness}: {kept}: {session}");
    }
    for gone in ["make swordfish", "agent-memory:", "hook_context", "qwen:", "Notes from earlier sessions"] {
        assert!(!session.contains(gone), "{harness}: {gone}: {session}");
    }
}

#[test]
fn claude_codes_attachments_are_left_out() {
    let sandbox = Sandbox::new();
    let given = given(&sandbox);
    let record = |kind: &str, uuid: &str, more: Value| {
        let mut record =
            json!({"type": kind, "uuid": uuid, "sessionId": "s-1", "timestamp": "2026-02-13T14:00:00Z"});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    let attachment = |kind: &str| {
        json!({"attachment": {"type": kind, "hookName": "SessionStart:startup", "hookEvent": "SessionStart",
            "content": [given], "stdout": given}})
    };
    let reminder =
        format!("<system-reminder>\nSessionStart hook additional context: {given}\n</system-reminder>");
    let lines = [
        record("attachment", "1", attachment("hook_success")),
        record("attachment", "2", attachment("hook_additional_context")),
        record("user", "3", json!({"message": {"role": "user", "content": "Fix the parser."}})),
        record("api-request-blob", "4", json!({"message": {"role": "user", "content": reminder}})),
        record(
            "user",
            "5",
            json!({"message": {"role": "user", "content": [{"type": "text", "text": reminder}]}}),
        ),
        record(
            "assistant",
            "6",
            json!({"message": {"role": "assistant", "content": [{"type": "text", "text": "It is fixed."}]}}),
        ),
    ];
    is_clean("claude-code", &prompt(&sandbox, "claude-code", &lines));
}

#[test]
fn codexs_developer_message_is_left_out() {
    let sandbox = Sandbox::new();
    let given = given(&sandbox);
    let message = |role: &str, kind: &str, text: &str, item: &str| {
        json!({"timestamp": "2026-02-13T14:00:00Z", "type": "response_item", "payload": {
            "type": "message", "role": role, "content": [{"type": kind, "text": text}],
            "internal_chat_message_metadata_passthrough": {"content_item_kinds": [item]}}})
    };
    let lines = [
        json!({"timestamp": "2026-02-13T14:00:00Z", "type": "session_meta", "payload": {"id": "s-1"}}),
        message("developer", "input_text", &given, "hooks.additional_context"),
        message("user", "input_text", "Fix the parser.", "user.text"),
        message("developer", "input_text", &given, "hooks.additional_context"),
        // A version that gives it in the person's name.
        message("user", "input_text", &given, "user.text"),
        message("assistant", "output_text", "It is fixed.", "assistant.text"),
    ];
    is_clean("codex", &prompt(&sandbox, "codex", &lines));
}

#[test]
fn geminis_hook_context_is_left_out() {
    let sandbox = Sandbox::new();
    let given = escaped(&given(&sandbox));
    let context = format!("<hook_context>{given}</hook_context>");
    let user = |id: &str, content: Value| json!({"id": id, "timestamp": "2026-02-13T14:00:00Z", "type": "user", "content": content});
    let lines = [
        json!({"sessionId": "s-1", "projectHash": "x", "startTime": "2026-02-13T14:00:00Z", "kind": "main"}),
        // In the TUI, the start's context is a record of its own; under -p it stands before the prompt.
        user("1", json!([{"text": context}])),
        user("2", json!([{"text": format!("{context}\n\nFix the parser.")}])),
        user("3", json!(format!("Fix the parser.\n\n{context}"))),
        json!({"id": "4", "timestamp": "2026-02-13T14:00:01Z", "type": "gemini", "content": "It is fixed."}),
    ];
    let prompt = prompt(&sandbox, "gemini", &lines);
    is_clean("gemini", &prompt);
    let session = &prompt[prompt.find("harness: ").unwrap()..];
    assert_eq!(session.matches(" user ").count(), 2, "what nobody typed is no turn: {session}");
}

#[test]
fn opencodes_synthetic_parts_are_left_out() {
    let sandbox = Sandbox::new();
    let given = given(&sandbox);
    let export = json!({
        "info": {"id": "ses_1"},
        "messages": [
            {"info": {"id": "m1", "role": "user"}, "parts": [
                {"id": "p1", "type": "text", "text": "Fix the parser."},
                {"id": "p2", "type": "text", "text": given, "synthetic": true},
                // A plugin that does not mark it.
                {"id": "p3", "type": "text", "text": given},
            ]},
            {"info": {"id": "m2", "role": "assistant"}, "parts": [{"id": "p4", "type": "text", "text": "It is fixed."}]},
        ],
    });
    is_clean("opencode", &prompt(&sandbox, "opencode", &[export]));
}

#[test]
fn what_tools_and_files_show_of_it_is_left_out_too() {
    let sandbox = Sandbox::new();
    let given = given(&sandbox).replace('\n', "\\n");
    sandbox.tell(
        "s-2",
        &format!(
            "u: Fix the parser.\na: I look.\ni: cat session.jsonl\no: {{\"content\": \"{given}\"}}\ni: memory recall swordfish\n\
             o: ### Swordfish (id__AAAAAA)\\n\\nmake swordfish\na: It is fixed."
        ),
    );
    sandbox.hear("s-2");
    sandbox.settings(json!({"storage": {"autoCommit": false}, "llm": {"command": sandbox.script(NOTHING)}}));
    let (code, prompt, err) = said(&mut sandbox.consolidate(&["--prompt"]));
    assert_eq!(code, Some(0), "{err}");
    is_clean("claude-code", &prompt);
}

/// Sessions of the real programs with the real `memory-recall`: a start, a prompt that a note answers, Copilot CLI's
/// `/compact`, and Qwen Code's resumed session.
#[test]
fn what_copilot_and_qwen_code_recorded_of_it_is_left_out() {
    for (harness, typed) in [
        ("copilot", &["Hello there", "Hello two", "Again: How do I start the dev server"][..]),
        ("qwen-code", &["Hello there", "Hello again 2", "Again: How do I start the dev server", "Bye"]),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(harness);
        let recorded = fs::read_to_string(path.join("recalled.jsonl")).unwrap();
        let lines: Vec<_> = recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(recorded.contains("make serve-fast"), "{harness}");
        let prompt = prompt(&Sandbox::new(), harness, &lines);
        let session = &prompt[prompt.find("harness: ").unwrap()..];
        for text in typed.iter().chain(&["How do I start the dev server, and on which port?", "Noted."]) {
            assert!(session.contains(text), "{harness}: {text}: {session}");
        }
        for given in ["4310", "make serve-fast", "agent-memory:", "qwen:", "system_reminder"] {
            assert!(!session.contains(given), "{harness}: {given}: {session}");
        }
    }
}
