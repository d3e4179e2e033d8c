//! The memory family's configuration: the user's own, and a stranger's that lies in the current directory.

use crate::base::env::pretend;
use crate::config::memory::settings::Settings;
use crate::config::memory::{self, trust};
use crate::fuzz::scratch::{Scratch, quiet};
use crate::fuzz::{choice, is_told_as};
use crate::memory::redact::Redactor;
use serde_json::{Value, json};

pub fn holds(bytes: &[u8]) {
    match choice(bytes, 2) {
        (0, file) => own(file),
        (_, file) => strangers(file),
    }
}

fn own(bytes: &[u8]) {
    let scratch = Scratch::empty();
    let file = scratch.put("config.json", bytes);
    let env = pretend(&[
        ("HOME", scratch.root().to_str().unwrap()),
        ("AGENT_MEMORY_CONFIG", file.to_str().unwrap()),
    ]);
    let settings = match memory::settings(None, &env, &quiet()) {
        Ok(settings) => settings,
        Err(error) => return is_told_as(&error, 2),
    };
    let config = memory::load(None, &env, &quiet()).unwrap();
    assert!(config.storage.root.is_absolute());
    assert!(config.llm.max_prompt_bytes >= 1000 && config.llm.timeout_seconds > 0);
    assert!(config.schedule.consolidate_interval_hours > 0 && config.schedule.defrag_interval_hours > 0);
    for harness in config.harnesses.values() {
        let words = shlex::split(&harness.read_command).unwrap();
        assert!(words.iter().any(|word| word.contains("{threadId}")));
    }
    assert!(!shlex::split(&config.storage.commit_hook).unwrap().is_empty());
    for target in &config.agents_md.targets {
        assert!(target.path.is_absolute() && !target.path.is_dir());
    }
    if let Err(error) = Redactor::of(&config.redact) {
        is_told_as(&error, 2);
    }
    config.llm.command_line();
    // What `memory-config show` prints is a configuration, and says the same.
    let shown = settings.nested();
    scratch.put("config.json", shown.to_string().as_bytes());
    let mut again = shown.clone();
    if again.pointer("/llm/command") == Some(&Value::Null) {
        again["llm"]["command"] = Value::Null;
    }
    assert_eq!(memory::settings(None, &env, &quiet()).unwrap().nested(), again);
}

/// Nothing is taken from a stranger's file but lower caps, whatever the bytes.
fn strangers(bytes: &[u8]) {
    let scratch = Scratch::empty();
    let file = scratch.put("theirs/memory.config.json", bytes);
    let dir = scratch.path("theirs");
    for (link, to) in [("out", "../mine"), ("up", ".."), ("nowhere", "../not/there"), ("in", "sub")] {
        std::os::unix::fs::symlink(to, dir.join(link)).unwrap();
    }
    for made in ["mine", "theirs/sub", "theirs/.git"] {
        std::fs::create_dir_all(scratch.path(made)).unwrap();
    }
    let env = pretend(&[("HOME", scratch.root().to_str().unwrap())]);
    let mine = json!([{"path": scratch.path("mine/AGENTS.md")}, {"path": dir.join("MINE.md")}]);
    let before = || {
        let mut settings = Settings::defaults();
        settings.set("agentsMd.targets", mine.clone(), "mine");
        settings.set("llm.command", json!("mine"), "mine");
        settings.set("trustedDirectories", json!([scratch.path("mine")]), "mine");
        settings
    };
    let mut settings = before();
    trust::add(&mut settings, &file, &env, &quiet());
    assert!(dir.join("out").is_symlink() && file.is_file(), "nothing is touched");
    for (was, is) in before().all.iter().zip(&settings.all) {
        match &*is.key {
            _ if is.value == was.value => assert_eq!(is.source, was.source),
            key => {
                assert!(
                    key.starts_with("llm.max") || key == "llm.timeoutSeconds",
                    "a stranger has set {key} to {}",
                    is.value
                );
                assert!(is.value.as_u64().unwrap() < was.value.as_u64().unwrap(), "{key} is {}", is.value);
            }
        }
    }
}
