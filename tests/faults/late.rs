//! A machine so busy that the programs get around to read what a command has printed long after it has ended: each of
//! their reads is delayed. What they make of it is the same as on an idle machine.

use crate::strace::{is_able, strace};
use crate::support::processes::at_once;
use crate::support::world::World;
use crate::support::{Said, binary};
use crate::{consolidate, cron, defrag, doctor, notes, sync};

/// Longer than the grace period that processes get whom a command has left behind (150 ms).
const DELAY: &str = "--inject=read:delay_enter=250000";

/// An agent whose model is a command that prints more than any pipe holds.
fn model(program: &'static str, arguments: &[&str]) -> World {
    let world = World::new(program, arguments);
    world.sandbox.agent("a", "head -c 168893 /dev/zero | tr '\\0' y", "[memory]\nenabled = true\n");
    world.sandbox.write_log("a", "## 2026-02-01T00:00:00Z\n**Task:** x\n**Result:** y\n\n");
    world
}

/// A key that a command prints, for a server that is not there: that it was read shows in the error.
fn key() -> World {
    let world = World::new("axe-run", &["k", "-pt", "--no-stdin", "--timeout", "20"]);
    world.sandbox.agent_file("k", "name = \"k\"\nmodel = \"s/m\"\n");
    let command = "kind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\napi_key_command = 'echo key'\n";
    world.sandbox.provider("s", command);
    world
}

/// opencode's database, which a command lists.
fn past() -> World {
    let mut world = World::new("memory-capture", &["--past", "opencode", "--dry-run"]);
    let row = r#"{"id":"ses_1","parent_id":null,"directory":"/","time_updated":1771000000000,"bytes":9,"first":"x"}"#;
    world.sandbox.file("bin/opencode", format!("#!/bin/sh\necho '[{row}]'\n"));
    crate::support::set_mode(&world.sandbox.work().join("bin/opencode"), 0o755);
    std::fs::create_dir_all(world.sandbox.home().join(".local/share/opencode")).unwrap();
    std::fs::write(world.sandbox.home().join(".local/share/opencode/opencode.db"), "").unwrap();
    let path = format!("{}:{}", world.sandbox.work().join("bin").display(), crate::support::tools());
    world.variables = vec![("PATH".to_owned(), path.into())];
    world
}

/// Each program that starts another, by every way in which one does.
fn worlds() -> Vec<(&'static str, World)> {
    let mut worlds = vec![
        ("a model", model("axe-run", &["a", "-pt", "--no-stdin"])),
        ("an analysis", model("axe-gc", &["--dry-run", "a"])),
        ("a key", key()),
        ("opencode's database", past()),
        ("a queue", consolidate::mixed(true, true)),
        ("a defrag", defrag::with_history()),
        ("a commit", notes::with_history()),
        ("a doctor", doctor::ill()),
        ("a merge", sync::diverged(true)),
        ("a first sync", sync::joining()),
    ];
    worlds.extend(["systemd", "launchd", "crontab"].map(|scheduler| (scheduler, cron::install(scheduler))));
    worlds
}

#[test]
fn what_is_read_late_is_read_whole() {
    if !is_able() {
        crate::say("SKIPPED, strace cannot be used here: no read was delayed");
        return;
    }
    assert!(strace().exists() && binary("axe-run").exists());
    at_once(&worlds(), |(name, world)| {
        world.keep_as_template();
        let swift = world.run(&world.arguments);
        let notes = world.root.as_ref().map(|_| world.notes());
        world.begin();
        let late = world.delayed(DELAY).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(late.trace.matches("(DELAYED)").count() > 3, "{name}: nothing was delayed");
        let late = late.output;
        // strace itself says something there.
        let err: String =
            late.err().split_inclusive('\n').filter(|line| !line.contains("strace: ")).collect();
        assert_eq!((late.code(), err), (swift.code(), swift.err()), "{name}");
        assert!(late.out() == swift.out(), "{name}: {:.300}\nbut in time: {:.300}", late.out(), swift.out());
        if let Some(notes) = notes {
            let paths = |tree: &crate::support::world::Tree| tree.keys().cloned().collect::<Vec<_>>();
            assert_eq!(paths(&world.notes()), paths(&notes), "{name}");
        }
        assert!(world.program != "memory-sync" || sync::all_agree(world) == Ok(()), "{name}");
    });
}
