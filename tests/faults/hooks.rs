//! `memory-install-hooks` and `memory-uninstall-hooks`: the settings of four harnesses are the old ones or the new, and a
//! person's lines in them stay.

use crate::scenario::Scenario;
use crate::support::world::{World, words};
use std::fs;

/// Settings that somebody has, by harness.
const SETTINGS: [(&str, &str); 4] = [
    (".claude/settings.json", "{\n    \"model\":   \"opus\"\n}\n"),
    (".codex/config.toml", "model = \"o3\"\n"),
    (".gemini/settings.json", "{\"theme\": \"Dark\"}\n"),
    (
        ".qwen/settings.json",
        "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]}}",
    ),
];

/// The record of what was there may know more than there is to take back, and an empty lock may stay.
const HOOKS: Scenario = Scenario {
    threads: true,
    bare_dirs_may_stay: true,
    differs: &["state/agent-memory/hooks"],
    ..Scenario::PLAIN
};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario { name: "memory-install-hooks: four harnesses", make: install, sample: 4, ..HOOKS },
        Scenario { name: "memory-uninstall-hooks: four harnesses", make: uninstall, sample: 4, ..HOOKS },
    ]
}

fn install() -> World {
    let world = World::new("memory-install-hooks", &[]);
    for (file, text) in SETTINGS {
        world.sandbox.write(&world.sandbox.home().join(file), text);
    }
    world
}

fn uninstall() -> World {
    let mut world = install();
    let output = world.run(&[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let settings = fs::read_to_string(world.sandbox.home().join(SETTINGS[0].0)).unwrap();
    assert!(settings.contains("memory-capture") && settings.contains("\"model\":   \"opus\""), "{settings}");
    (world.program, world.arguments) = ("memory-uninstall-hooks", words(&[]));
    world
}
