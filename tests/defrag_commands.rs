//! `memory-defrag` with LLM commands that fail, without one, and in places where it must not go far.

use crate::store::Store;
use crate::tidy::{MERGE_TWO, NOTHING, ONE_MERGED};
use serde_json::{Value, json};

#[test]
fn without_a_command_agents_see_the_notes_all_the_same() {
    let store = Store::new();
    store.with_two();
    store
        .sandbox
        .settings(json!({"storage": {"autoCommit": false}, "agentsMd": {"targets": [store.target()]}}));
    let before = store.tree();
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str(), store.tree()), (Some(2), "", before));
    assert!(err.contains("no LLM command is set") && err.contains("set llm.command"), "{err}");
    assert!(store.section().contains("[Guards]"), "{}", store.section());
}

#[test]
fn a_command_that_fails_changes_no_note() {
    for (command, message) in [
        ("false", "failed (exit 1)"),
        ("echo out of tokens; exit 7", "out of tokens"),
        ("/nowhere/at/all", "cannot be started"),
        ("true", "printed nothing"),
        ("sleep 5", "did not finish in time"),
    ] {
        let store = Store::new();
        store.with_two();
        let before = store.tree();
        store.llm(command, json!({"timeoutSeconds": 1}), false);
        let (code, out, err) = store.defrag(&[]);
        assert_eq!(
            (code, out.as_str(), store.tree()),
            (Some(3), NOTHING, before.clone()),
            "{command}: {err}"
        );
        assert!(err.contains(message) && err.contains("no note is changed by it"), "{command}: {err}");
        let (code, out, err) = store.defrag(&["--json"]);
        let error: Value = serde_json::from_str(err.lines().last().unwrap()).unwrap();
        assert_eq!((code, &error["exit_code"], &error["error"]["kind"]), (Some(3), &json!(3), &json!("api")));
        assert!(serde_json::from_str::<Value>(&out).unwrap()["stopped"].is_string(), "{out}");
        // The next run asks again.
        store.model(MERGE_TWO);
        assert_eq!(store.tidied(&[]), ONE_MERGED);
    }
}

#[test]
fn inside_its_own_command_it_does_nothing() {
    let store = Store::new();
    store.with_two();
    store.model(MERGE_TWO);
    let (code, out, err) = crate::support::said(store.command(&[]).env("AGENT_MEMORY_RUN", "1"));
    assert_eq!((code, out.as_str(), store.sandbox.prompts().len()), (Some(1), "", 0));
    assert!(err.contains("AGENT_MEMORY_RUN"), "{err}");
}

#[test]
fn quiet_is_silent() {
    let store = Store::new();
    store.with_two();
    store.model(MERGE_TWO);
    assert_eq!(store.tidied(&["--quiet"]), "");
    assert_eq!(store.tidied(&["--undo", "--quiet"]), "");
    assert_eq!(store.tidied(&["--quiet"]), "");
}

#[test]
fn a_strangers_store_is_no_reason_for_git_or_for_targets_elsewhere() {
    let store = Store::new();
    store.model(MERGE_TWO);
    store.sandbox.file(
        "memory.config.json",
        json!({
            "storage": {"root": "mem", "autoCommit": true},
            "agentsMd": {"targets": ["AGENTS.md", store.sandbox.home().join("stolen.md")]},
            "llm": {"command": "touch stolen"},
        })
        .to_string(),
    );
    let topics = store.sandbox.work().join("mem/topics");
    for (id, title) in [("aaaaaa", "Guards"), ("bbbbbb", "Actors")] {
        store.sandbox.write(&topics.join(crate::store::name(id, title)), crate::store::note(id, title, ""));
    }
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str()), (Some(0), ONE_MERGED), "{err}");
    assert!(store.sandbox.work().join("AGENTS.md").exists());
    assert!(
        !store.sandbox.home().join("stolen.md").exists() && !store.sandbox.work().join("stolen").exists()
    );
    assert!(!store.target().exists() && !store.sandbox.work().join("mem/.git").exists(), "{err}");
    let (code, _, err) = store.defrag(&["--undo"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("not trusted"), "{err}");
}
