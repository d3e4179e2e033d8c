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

/// A file with the section of the repository; any other text is written as it is.
const SECTION: &str = "the section";

/// Arrangements of files, and whether the program reads the section in them. `.ci/real/arrangements.py` asks the real programs.
#[test]
fn a_note_that_stands_in_a_file_that_the_program_reads_is_not_given_again() {
    let agents = ("work/AGENTS.md", SECTION);
    for (harness, files, dir, reads) in [
        ("claude-code", &[agents][..], "work", true),
        ("claude-code", &[agents], "work/sub", true),
        ("claude-code", &[agents, ("work/CLAUDE.md", "Use tabs.")], "work", false),
        ("claude-code", &[agents, ("work/CLAUDE.md", "See @AGENTS.md")], "work", true),
        ("claude-code", &[agents, ("work/CLAUDE.md", "`@AGENTS.md`")], "work", false),
        ("claude-code", &[agents, ("work/CLAUDE.md", "@AGENTS.md")], "work/sub", false),
        ("claude-code", &[agents, ("work/sub/CLAUDE.md", "Use tabs.")], "work/sub", false),
        ("claude-code", &[agents, ("home/.claude/CLAUDE.md", "Use tabs.")], "work", true),
        (
            "claude-code",
            &[("home/p/AGENTS.md", SECTION), ("home/.claude/CLAUDE.md", "Use tabs.")],
            "home/p",
            true,
        ),
        ("claude-code", &[("home/p/AGENTS.md", SECTION), ("home/CLAUDE.md", "Use tabs.")], "home/p", false),
        ("codex", &[agents], "work/sub", true),
        ("codex", &[agents, ("work/AGENTS.override.md", "Use tabs.")], "work", false),
        ("codex", &[("work/tree/AGENTS.md", SECTION)], "work/tree", true),
        ("codex", &[("AGENTS.md", SECTION)], "work", false),
        ("copilot", &[agents], "work/sub", true),
        ("gemini", &[agents], "work", false),
        ("gemini", &[agents, ("work/GEMINI.md", "@./AGENTS.md")], "work/sub", true),
        (
            "gemini",
            &[agents, ("home/.gemini/settings.json", r#"{"context": {"fileName": "AGENTS.md"}}"#)],
            "work",
            true,
        ),
        ("opencode", &[agents], "work/sub", true),
        ("qwen-code", &[agents], "work", true),
        (
            "qwen-code",
            &[agents, ("work/.qwen/settings.json", r#"{"context": {"fileName": ["QWEN.md"]}}"#)],
            "work",
            false,
        ),
    ] {
        let store = Store::new();
        store.sandbox.in_a_repository();
        store.config(r#"{"storage": {"autoCommit": false}}"#);
        let here = "scope: repo\nsources:\n  - {harness: amp, repo: github.com/o/r}\n";
        store.put(&format!("topics/{}", name("AAAAAA", "Ports")), note("AAAAAA", "Ports", here));
        let place = |path: &str| store.sandbox.work().with_file_name(path);
        store.sandbox.write(&place("home/p/.git/HEAD"), "ref: refs/heads/main\n");
        let config = "[remote \"origin\"]\n\turl = https://github.com/o/r.git\n";
        store.sandbox.write(&place("home/p/.git/config"), config);
        // A worktree in the repository.
        let git = place("work/.git");
        store.sandbox.write(&git.join("worktrees/tree/HEAD"), "ref: refs/heads/tree\n");
        store.sandbox.write(&git.join("worktrees/tree/commondir"), "../..\n");
        store
            .sandbox
            .write(&git.join("worktrees/tree/gitdir"), place("work/tree/.git").display().to_string());
        store
            .sandbox
            .write(&place("work/tree/.git"), format!("gitdir: {}\n", git.join("worktrees/tree").display()));
        std::fs::create_dir_all(place("work/sub")).unwrap();
        for (path, text) in files {
            let path = place(path);
            if *text == SECTION {
                let target = path.display().to_string();
                store.sandbox.write(&path, "# Mine\r\n");
                store.out("memory-agents-md", &["--target", &target, "--repo", "github.com/o/r"]);
            } else {
                store.sandbox.write(&path, format!("{text}\n"));
            }
        }
        let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup", "cwd": place(dir)});
        let mut command = store.sandbox.command("memory-recall");
        command
            .args(["--harness", harness])
            .env("AGENT_MEMORY_RECALL_MS", "60000")
            .write_stdin(event.to_string());
        let (_, out, err) = said(&mut command);
        assert_eq!((out.is_empty(), err.as_str()), (reads, ""), "{harness} in {dir} with {files:?}: {out}");
    }
}

/// Who has a file in a clone hides no note with it.
#[test]
fn a_file_that_says_something_else_of_a_note_hides_nothing() {
    let store = Store::new();
    store.sandbox.in_a_repository();
    store.config(r#"{"storage": {"autoCommit": false}}"#);
    store.put(&format!("topics/{}", name("AAAAAA", "Ports")), note("AAAAAA", "Ports", ""));
    let section = "<!-- agent-memory:start -->\n## Memory\n\n### Ports (id__AAAAAA)\n\nThe port is 1.\n<!-- agent-memory:end -->\n";
    store.sandbox.write(&store.sandbox.work().join("AGENTS.md"), section);
    let event = json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": store.sandbox.work()});
    let mut command = store.sandbox.command("memory-recall");
    command
        .args(["--harness", "codex"])
        .env("AGENT_MEMORY_RECALL_MS", "60000")
        .write_stdin(event.to_string());
    assert!(said(&mut command).1.contains("id__AAAAAA"));
}
