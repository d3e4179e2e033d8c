//! Where a harness keeps what it has is resolved in one way, whoever asks.

use crate::support::store::{Store, name, note};
use crate::support::{Sandbox, said};
use serde_json::{Value, json};

/// What `memory-recall` gives at a start of a session of this harness, with a section in the file `target` below the home
/// directory.
fn given(harness: &str, target: &str, variable: (&str, &str)) -> String {
    let store = Store::new();
    store.put(&format!("topics/{}", name("AAAAAA", "Ports")), note("AAAAAA", "Ports", ""));
    store.config(
        &json!({"storage": {"autoCommit": false}, "agentsMd": {"targets": [format!("~/{target}")]}})
            .to_string(),
    );
    store.sandbox.write(&store.sandbox.home().join(target), "# Mine\n");
    store.out("memory-agents-md", &[]);
    let home = store.sandbox.home().display().to_string();
    let config = format!("{home}/.config/agent-memory/config.json");
    let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": store.sandbox.work()});
    let mut command = store.sandbox.command("memory-recall");
    command.args(["--harness", harness, "--config", &config]).env("AGENT_MEMORY_RECALL_MS", "60000");
    command.env(variable.0, variable.1.replace("HOME", &home)).write_stdin(event.to_string());
    let (code, out, err) = said(&mut command);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{harness}");
    out
}

#[test]
fn recall_leaves_out_what_the_program_reads_where_a_variable_has_moved_it() {
    for (harness, target, variable) in [
        ("amp", "x/amp/AGENTS.md", ("XDG_CONFIG_HOME", "HOME/x")),
        ("claude-code", "c/CLAUDE.md", ("CLAUDE_CONFIG_DIR", "~/c")),
        ("codex", "c/AGENTS.md", ("CODEX_HOME", "~/c")),
        ("copilot", "c/copilot-instructions.md", ("COPILOT_HOME", "HOME/c")),
        ("gemini", "g/.gemini/GEMINI.md", ("GEMINI_CLI_HOME", "HOME/g")),
        ("opencode", "x/opencode/AGENTS.md", ("XDG_CONFIG_HOME", "HOME/x")),
        ("pi", "p/AGENTS.md", ("PI_CODING_AGENT_DIR", "HOME/p")),
        ("qwen-code", "q/QWEN.md", ("QWEN_HOME", "HOME/q")),
    ] {
        let elsewhere = (variable.0, "HOME/elsewhere");
        assert_eq!(given(harness, target, variable), "", "{harness} reads it twice");
        assert!(given(harness, target, elsewhere).contains("id__AAAAAA"), "{harness} does not read it");
    }
}

#[test]
fn a_file_where_the_program_would_be_without_the_variable_hides_no_notes() {
    for (harness, target, variable) in [
        ("gemini", ".gemini/GEMINI.md", "GEMINI_CLI_HOME"),
        ("opencode", ".config/opencode/AGENTS.md", "XDG_CONFIG_HOME"),
        ("pi", ".pi/agent/AGENTS.md", "PI_CODING_AGENT_DIR"),
        ("qwen-code", ".qwen/QWEN.md", "QWEN_HOME"),
    ] {
        let out = given(harness, target, (variable, "HOME/other"));
        assert!(out.contains("id__AAAAAA"), "{harness}: {out}");
    }
}

#[test]
fn a_tilde_in_a_variable_is_the_home_directory_for_past_sessions_and_hooks() {
    let sandbox = Sandbox::new();
    let line = json!({"type": "user", "uuid": "u1", "sessionId": "s1", "cwd": sandbox.work(), "isSidechain": false,
        "message": {"role": "user", "content": "Fix it."}});
    sandbox.write(&sandbox.home().join("c/projects/-p/s1.jsonl"), format!("{line}\n"));
    let mut past = sandbox.capture(&["--past", "all", "--dry-run", "--json"]);
    let (code, out, err) = said(past.env("CLAUDE_CONFIG_DIR", "~/c"));
    assert_eq!(code, Some(0), "{err}");
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["sessions"][0]["retrieval"]["sessionId"], "s1", "{out}");
    // Codex's notify names the thread alone.
    let thread = "old-form";
    let rollout = sandbox.home().join(format!("x/sessions/2026/02/01/rollout-2026-{thread}.jsonl"));
    sandbox.write(&rollout, "{}\n");
    let payload = json!({"type": "agent-turn-complete", "thread-id": thread}).to_string();
    let mut capture = sandbox.capture(&["--harness", "codex", "--json", &payload]);
    let (code, out, err) = said(capture.env("CODEX_HOME", "~/x"));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(&rollout.display().to_string()), "{out} {err}");
}
