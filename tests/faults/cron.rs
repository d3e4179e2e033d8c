//! `memory-install-cron` and `memory-uninstall-cron`: other people's lines and files stay, and the next run ends what
//! was begun.

use crate::scenario::Scenario;
use crate::support::timers::Kit;
use crate::support::world::{World, words};
use crate::support::{Sandbox, binary};
use std::fs;

const TAB: &str = "MAILTO=ann\r\n5 4 * * * /usr/bin/true\n# no newline at the end";

pub(crate) fn scenarios() -> Vec<Scenario> {
    const REMOVE: Scenario = Scenario { bare_dirs_may_stay: true, ..Scenario::PLAIN };
    vec![
        Scenario { name: "memory-install-cron: systemd", make: || install("systemd"), ..Scenario::PLAIN },
        Scenario { name: "memory-install-cron: launchd", make: || install("launchd"), ..Scenario::PLAIN },
        Scenario { name: "memory-install-cron: crontab", make: || install("crontab"), ..Scenario::PLAIN },
        Scenario { name: "memory-uninstall-cron: systemd", make: || uninstall("systemd"), ..REMOVE },
        Scenario { name: "memory-uninstall-cron: launchd", make: || uninstall("launchd"), ..REMOVE },
        Scenario { name: "memory-uninstall-cron: crontab", make: || uninstall("crontab"), ..REMOVE },
    ]
}

/// With schedulers that are scripts, and nothing else on PATH.
pub(crate) fn install(scheduler: &str) -> World {
    let sandbox = Sandbox::new();
    let bin = binary("memory-install-cron").parent().unwrap().to_owned();
    let kit = Kit { home: sandbox.home(), tools: sandbox.work().join("tools"), bin, sandbox };
    fs::create_dir_all(&kit.tools).unwrap();
    let kit = kit.with_crontab().with_systemctl().with_launchctl();
    fs::write(kit.state().join("tab"), TAB).unwrap();
    let mut world = World::of(kit.sandbox, "memory-install-cron", &["--scheduler", scheduler]);
    world.variables = vec![
        ("PATH".to_owned(), kit.tools.into()),
        ("XDG_RUNTIME_DIR".to_owned(), world.sandbox.work().join("run").into()),
    ];
    world
}

fn uninstall(scheduler: &str) -> World {
    let mut world = install(scheduler);
    let output = world.run(&world.arguments);
    assert!(output.status.success(), "{output:?}");
    world.program = "memory-uninstall-cron";
    world.arguments = words(&["--scheduler", scheduler]);
    world
}
