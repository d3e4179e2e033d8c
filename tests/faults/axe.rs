//! The axe family: a run that appends to its agent's log, and to those of its sub-agents; a trim; the first files.

use crate::scenario::Scenario;
use crate::support::api::{Anthropic, KEY, to};
use crate::support::entries;
use crate::support::server::Server;
use crate::support::world::World;
use std::fs;

pub(crate) fn scenarios() -> Vec<Scenario> {
    const RUN: Scenario = Scenario {
        prints_first: true,
        may_be_empty: true,
        differs: &["ledger.jsonl", "spent.json"],
        ..Scenario::PLAIN
    };
    vec![
        Scenario { name: "axe-run: an entry", make: || run(true), ..RUN },
        Scenario { name: "axe-run: the first entry", make: || run(false), ..RUN },
        Scenario {
            name: "axe-run: a conversation",
            make: || conversation(true),
            differs: &[".lock"],
            may_be_empty: true,
            ..Scenario::PLAIN
        },
        Scenario {
            name: "axe-run: a new conversation",
            make: || conversation(false),
            differs: &[".lock"],
            bare_dirs_may_stay: true,
            may_be_empty: true,
            ..Scenario::PLAIN
        },
        Scenario { name: "axe-run: with limits", make: || limited("[limits]\nper_day = 5000\n"), ..RUN },
        Scenario { name: "axe-runs: a trim", make: trimmed_ledger, ..Scenario::PLAIN },
        Scenario {
            name: "axe-run: with sub-agents",
            make: with_sub_agents,
            threads: true,
            // What a killed run has paid for stays.
            differs: &["axe/runs"],
            bare_dirs_may_stay: true,
            ..RUN
        },
        Scenario {
            name: "axe-gc: a trim",
            make: trim,
            reading_from: Some("\"Agent:"),
            terminated: true,
            ..Scenario::PLAIN
        },
        Scenario {
            name: "axe-agents: init",
            make: || World::new("axe-agents", &["init", "new"]),
            ..Scenario::PLAIN
        },
        Scenario {
            name: "axe-config: init",
            make: || World::new("axe-config", &["init"]),
            ..Scenario::PLAIN
        },
        Scenario {
            name: "memory-config: init",
            make: || World::new("memory-config", &["init"]),
            ..Scenario::PLAIN
        },
    ]
}

fn run(has_log: bool) -> World {
    let world = World::new("axe-run", &["a", "-pt", "--no-stdin"]);
    world.sandbox.agent("a", "cat > /dev/null; echo answer", "[memory]\nenabled = true");
    if has_log {
        // Somebody has taken away the last newline.
        world.sandbox.write_log("a", entries(3).trim_end());
    }
    world
}

fn limited(limits: &str) -> World {
    let world = run(true);
    let config = world.sandbox.config().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    world.sandbox.write(&config, text + limits);
    world
}

fn trimmed_ledger() -> World {
    let world = World::new("axe-runs", &["--trim", "1d"]);
    let run = |id: &str, day: u32| {
        format!(
            r#"{{"id":"{id}","time":"2026-02-{day}T12:00:00Z","program":"axe-run","agent":"a","model":"p/m"}}"#
        )
    };
    let path = world.sandbox.home().join(".local/share/axe/runs/ledger.jsonl");
    world.sandbox.write(&path, format!("{}\n{}\nbroken\n", run("a", 20), run("b", 28)));
    world
}

/// Nothing but the conversation is written, and that before the answer is printed.
fn conversation(has_begun: bool) -> World {
    let world = World::new("axe-run", &["a", "-pt", "--no-stdin", "--newline", "--conversation", "c"]);
    world.sandbox.agent("a", "cat > /dev/null; echo answer", "");
    // A line in the ledger comes after the answer.
    let config = world.sandbox.config().join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    world.sandbox.write(&config, text + "[ledger]\nenabled = false\n");
    if has_begun {
        let line = r#"{"time":"t","model":"m","user":"u","assistant":"v"}"#;
        let path = world.sandbox.home().join(".local/share/axe/conversations/a/c.jsonl");
        world.sandbox.write(&path, format!("{line}\n"));
    }
    world
}

/// Each keeps a log of its own: who is done first is not the same twice. What sub-agents warn of is said with `-v` alone.
fn with_sub_agents() -> World {
    let mut world = World::new("axe-run", &["parent", "-v", "-pt", "--no-stdin"]);
    world.sandbox.model("parent", Anthropic, "sub_agents = ['b', 'c']\n[memory]\nenabled = true");
    for sub in ["b", "c"] {
        world.sandbox.model(sub, Anthropic, "[memory]\nenabled = true");
    }
    world.sandbox.write_log("b", &entries(2));
    let server = Server::answering(|request| {
        if request.user().starts_with("Task: ") {
            Anthropic.says("what was found")
        } else if request.results().is_empty() {
            Anthropic.calls(&[to("b", "look"), to("c", "look there")])
        } else {
            Anthropic.says("done")
        }
    });
    let variables =
        [("ANTHROPIC_API_KEY", KEY), ("AXE_ANTHROPIC_BASE_URL", &server.url()), ("AXE_RETRY_MAX", "0")];
    world.variables.extend(variables.map(|(name, value)| (name.to_owned(), value.into())));
    world.servers.push(Box::new(server));
    world
}

const KEPT: usize = 2;

/// Five entries, of which the two that stay take several writes.
fn trim() -> World {
    let world = World::new("axe-gc", &["--no-analysis", "a"]);
    world.sandbox.agent("a", "false", &format!("[memory]\nenabled = true\nlast_n = {KEPT}"));
    let long = format!("## a\n{}\n\n## b\n{}\n", "x".repeat(9000), "y".repeat(9000));
    world.sandbox.write_log("a", &(entries(3) + &long));
    world
}

/// The calls of a trim.
fn calls(world: &World) -> Vec<(String, usize)> {
    world.keep_as_template();
    let calls = world.points(false, "\"Agent:", true);
    world.begin();
    calls
}

#[test]
fn what_cannot_be_cleaned_up_is_swept_by_the_next_trim() {
    let world = trim();
    let old = world.sandbox.log("a");
    let written = calls(&world).iter().filter(|(name, _)| name == "write").nth(1).unwrap().1;
    for cleaning in ["?unlink,?unlinkat:error=EIO", "?unlink,?unlinkat:signal=KILL"] {
        let (at, faults) =
            ("write,?unlink,?unlinkat", [format!("write:error=ENOSPC:when={written}"), cleaning.to_owned()]);
        let mut options = vec![format!("--trace={at}")];
        options.extend(faults.iter().map(|fault| format!("--inject={fault}")));
        let trial = world.traced(false, &options).unwrap();
        assert!(
            world.sandbox.log("a") == old && !trial.output.status.success(),
            "{cleaning}: {:?}",
            trial.output
        );
        let beside = || fs::read_dir(world.sandbox.log_path("a").parent().unwrap()).unwrap().count();
        assert_eq!(beside(), 2, "{cleaning}: {}", trial.trace);
        let next = world.run(&world.arguments);
        assert!(next.status.success() && beside() == 1, "{cleaning}: {next:?}");
        world.begin();
    }
}

#[test]
fn the_new_log_is_on_the_disk_before_it_has_the_name_and_the_name_before_the_trim_is_over() {
    let world = trim();
    let calls = calls(&world);
    let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
    let at = names.iter().position(|name| name.starts_with("rename")).unwrap();
    let written = names[..at].iter().rposition(|name| *name == "write").unwrap();
    assert!(names[written..at].contains(&"fsync"), "{names:?}");
    let told = at + names[at..].iter().position(|name| *name == "write").unwrap();
    assert!(names[at..told].contains(&"fsync"), "{names:?}");
}
