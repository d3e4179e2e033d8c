//! What `memory-doctor` says about sessions that wait, and about targets that another tool owns.

use crate::support::{Sandbox, said};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// The findings of a check, as `what: how to mend it`.
fn findings(sandbox: &Sandbox, check: &str) -> Vec<String> {
    let (_, out, err) = said(sandbox.command("memory-doctor").args(["--json"]));
    assert_eq!(err, "");
    let report: Value = serde_json::from_str(&out).unwrap();
    let of_check = report["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    of_check.map(|finding| format!("{}: {}", text(finding, "what"), text(finding, "mend"))).collect()
}

/// Queues a session of this time, and returns its queue id.
fn queue_session(sandbox: &Sandbox, session: &str, at: &str, is_past: bool) -> String {
    sandbox.talk(session, &[("user", "Hello?")]);
    let mut context = json!({"cwd": sandbox.work(), "repo": null});
    if is_past {
        context["past"] = json!(true);
    }
    sandbox.queue(&json!({
        "version": 1, "timestamp": at, "harness": "claude-code",
        "retrieval": {"method": "transcript", "path": sandbox.transcript(session), "format": "claude-code",
            "sessionId": session},
        "context": context,
    }))
}

#[test]
fn why_a_session_waits_for_days_is_told() {
    let sandbox = Sandbox::new();
    queue_session(&sandbox, "young", "2026-02-26T15:04:05Z", false);
    sandbox.llm("exit 1", json!({}));
    assert_eq!(findings(&sandbox, "queue"), [""; 0], "two days are none");
    let old = queue_session(&sandbox, "old", "2026-02-23T15:04:05Z", false);
    let [finding] = &findings(&sandbox, "queue")[..] else { panic!() };
    assert!(
        finding.starts_with("has waited for 5 days; it was never tried: run memory-consolidate"),
        "{finding}"
    );

    sandbox.llm("exit 1", json!({"maxCallsPerDay": 0}));
    let [finding] = &findings(&sandbox, "queue")[..] else { panic!() };
    assert!(
        finding.contains("5 days; the cap of 0 calls a day is reached") && finding.contains("raise"),
        "{finding}"
    );

    sandbox.settings(json!({}));
    let all = findings(&sandbox, "queue");
    assert!(
        all.iter().any(|finding| finding.contains("5 days; no LLM command is set: set llm.command")),
        "{all:?}"
    );

    sandbox.llm("echo tired >&2; exit 1", json!({}));
    sandbox.write(&sandbox.home().join("alone"), &old);
    let tries = json!({&old: {"tries": 1, "not_before": "2026-02-28T16:00:00Z", "error": "tired of it"}});
    sandbox.write(&sandbox.store().join(".agent-memory/tries.json"), tries.to_string());
    let all = findings(&sandbox, "queue");
    for expected in [
        "5 days; the last try failed: tired of it: correct what",
        "1 entry waits until 2026-02-28 16:00 UTC, because",
    ] {
        assert!(all.iter().any(|finding| finding.contains(expected)), "{expected}: {all:?}");
    }
}

#[test]
fn past_sessions_are_one_finding_and_only_after_a_week() {
    let sandbox = Sandbox::new();
    sandbox.llm("exit 1", json!({"maxCallsPerDay": 50}));
    for (session, at) in [("a", "2026-02-22T15:04:05Z"), ("b", "2026-02-23T15:04:05Z")] {
        queue_session(&sandbox, session, at, true);
    }
    assert_eq!(findings(&sandbox, "queue"), [""; 0]);
    queue_session(&sandbox, "c", "2026-02-18T15:04:05Z", true);
    let [finding] = &findings(&sandbox, "queue")[..] else { panic!() };
    assert!(
        finding.starts_with("3 past sessions wait, the oldest for 10 days; they come after what is new"),
        "{finding}"
    );
    assert!(finding.contains("50 a day"), "{finding}");
}

#[test]
fn a_target_that_another_tool_owns_is_named_with_its_owner() {
    let sandbox = Sandbox::new();
    let home = sandbox.home();
    let target = |name: &str| home.join(name);
    symlink("/nix/store/xyz-home-manager-files/AGENTS.md", target("nix.md")).unwrap();
    sandbox.write(&target(".claude/CLAUDE.md"), "# Mine\n");
    sandbox.write(&home.join(".local/share/chezmoi/private_dot_claude/CLAUDE.md.tmpl"), "# Mine\n");
    sandbox.write(&target("marked.md"), "<!-- Ansible managed: do not edit -->\n# Rules\n");
    sandbox.write(&target("own.md"), "# Rules\nWe were managed by people.\n");
    let paths =
        ["nix.md", ".claude/CLAUDE.md", "marked.md", "own.md"].map(|name| target(name).display().to_string());
    sandbox.settings(json!({"agentsMd": {"targets": paths}}));
    let all = findings(&sandbox, "target");
    for expected in [
        "leads to \"/nix/store/xyz-home-manager-files/AGENTS.md\", which Nix or home-manager made",
        "is written by chezmoi from \"",
        "belongs to Ansible, as it says itself: \"<!-- ansible managed: do not edit -->\"",
    ] {
        let found: Vec<&String> = all.iter().filter(|finding| finding.contains(expected)).collect();
        assert_eq!(found.len(), 1, "{expected}: {all:#?}");
        assert!(found[0].contains("memory-agents-md --stdout"), "{found:?}");
    }
    let owned = all.iter().filter(|finding| finding.contains("--stdout")).count();
    assert_eq!(owned, 3, "{all:#?}");
}
