//! `memory-defrag` with LLM commands that fail, without one, and in places where it must not go far.

use crate::support::defrag::{MERGE_TWO, NOTHING, ONE_MERGED, REPO, SESSION};
use crate::support::store::{Store, names};
use serde_json::{Value, json};

#[test]
fn without_a_command_agents_see_the_notes_all_the_same() {
    let store = Store::new();
    store.with_two();
    store
        .sandbox
        .settings(json!({"storage": {"autoCommit": false}, "agentsMd": {"targets": [{"path": store.target(), "repo": REPO}]}}));
    let before = store.tree();
    let (code, out, err) = store.defrag(&[]);
    assert_eq!((code, out.as_str(), store.tree()), (Some(2), "", before));
    assert!(err.contains("no LLM command is set") && err.contains("set llm.command"), "{err}");
    assert!(store.section().contains("### Guards ("), "{}", store.section());
}

#[test]
fn a_command_that_fails_changes_no_note() {
    for (command, message) in [
        ("false", "failed (exit 1)"),
        ("echo out of tokens; exit 7", "out of tokens"),
        ("/nowhere/at/all", "cannot be started"),
        ("no-such-llm", "; install it, or correct llm.command; "),
        ("echo 'open", "; install it, or correct llm.command; "),
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
        assert!(err.contains(message) && err.contains("it changed no note"), "{command}: {err}");
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
fn what_fails_every_night_is_asked_about_less_and_less() {
    let store = Store::new();
    store.with_two();
    // It counts its calls: a reply that cannot be used is asked for twice.
    let count = store.sandbox.work().join("count");
    let useless = |what: &str| {
        let command = format!("cat > /dev/null; echo x >> '{}'; {what}", count.display());
        store.llm(&command, json!({}), false);
    };
    let calls = || std::fs::read_to_string(&count).unwrap_or_default().lines().count();
    useless("echo no");
    let night = |day: usize, args: &[&str]| {
        let mut command = store.command(args);
        crate::support::said(command.env("AXE_NOW", format!("2026-03-{day:02}T03:00:00Z")))
    };
    let mut asked = Vec::new();
    for day in 1..31 {
        let before = calls();
        let (code, out, err) = night(day, &[]);
        if calls() > before {
            assert_eq!(code, Some(3), "{err}");
            asked.push(day);
        } else {
            assert_eq!((code, out.as_str()), (Some(0), NOTHING), "{err}");
            assert!(
                err.contains("2 notes are not asked about until 2026-") && err.contains("--force"),
                "{err}"
            );
        }
    }
    assert_eq!(asked, [1, 2, 5, 12]);
    let doctor = |day: usize| {
        let mut command = store.sandbox.command("memory-doctor");
        crate::support::said(command.env("AXE_NOW", format!("2026-03-{day:02}T04:00:00Z"))).1
    };
    let told = "memory-defrag failed 4 times on 2 notes; next try after 2026-04-10 15:00 UTC: the reply";
    assert!(doctor(30).contains(told), "{}", doctor(30));
    // Whoever asks by hand is not held up, and neither is a note that has changed.
    let before = calls();
    assert_eq!(night(30, &["--force"]).0, Some(3));
    assert_eq!(night(30, &["--prompt"]).0, Some(0));
    store.noted("aaaaaa", "Guards", "", "Guards are pure.");
    assert_eq!(night(30, &[]).0, Some(3));
    assert_eq!(calls(), before + 4);
    // Nor one who has another command.
    store.model(MERGE_TWO);
    assert_eq!(night(30, &["--allow-loss"]).1, ONE_MERGED);
    assert!(!doctor(30).contains("waits until"), "{}", doctor(30));
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
fn a_strangers_store_is_not_the_one_that_a_defrag_orders() {
    let store = Store::new();
    store.model(MERGE_TWO);
    store.sandbox.file(
        "memory.config.json",
        json!({
            "storage": {"root": "mem", "autoCommit": true},
            "agentsMd": {"targets": [{"path": "AGENTS.md", "repo": REPO}, store.sandbox.home().join("stolen.md")]},
            "llm": {"command": "touch stolen"},
        })
        .to_string(),
    );
    let topics = store.sandbox.work().join("mem/topics");
    for (id, title) in [("aaaaaa", "Guards"), ("bbbbbb", "Actors")] {
        store.sandbox.write(
            &topics.join(crate::support::store::name(id, title)),
            crate::support::store::note(id, title, SESSION),
        );
    }
    let before = names(&topics);
    let (code, _, err) = store.defrag(&[]);
    assert!(code == Some(0) && err.contains("is not trusted"), "{err}");
    assert_eq!(names(&topics), before);
    assert!(
        !store.sandbox.work().join("AGENTS.md").exists() && !store.sandbox.work().join("mem/.git").exists()
    );
    assert!(
        !store.sandbox.home().join("stolen.md").exists() && !store.sandbox.work().join("stolen").exists()
    );
}
