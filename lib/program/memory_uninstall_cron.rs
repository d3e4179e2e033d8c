//! `memory-uninstall-cron`: remove what `memory-install-cron` has installed.

use crate::base::cli::{self, About, Args, Context, ExitCode, flag};
use crate::base::error::{ErrorKind, Result};
use crate::program::memory_install_cron::scheduler;
use crate::program::person::{self, only_a_person};
use crate::schedule::scheduler::{PATIENCE, Scheduler, Tools, line, words};
use crate::schedule::uninstall::{RemovalPlan, carry_out, find};
use serde_json::json;

pub(super) const ABOUT: About = About {
    name: "memory-uninstall-cron",
    caption: "remove the timers of consolidation and defrag",
    usage: &["memory-uninstall-cron [--scheduler NAME] [--print] [--json]"],
    flags: &[
        scheduler("launchd, systemd or crontab (default: all that have timers)"),
        flag("print", "show every file and command, change nothing"),
        flag("json", "print the result as one JSON object"),
    ],
    text: include_str!("memory_uninstall_cron.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    if !args.has("print") {
        only_a_person(person::TIMERS, cx)?;
    }
    let named = args.text("scheduler").and_then(Scheduler::from_name);
    let tools = Tools { env: &cx.env, patience: PATIENCE };
    let (mut removals, mut faults) = (Vec::new(), Vec::new());
    for scheduler in Scheduler::ALL {
        let is_named = named == Some(scheduler);
        let is_here = scheduler != Scheduler::Crontab || tools.has("crontab");
        if !(is_named || named.is_none() && is_here) {
            continue;
        }
        match find(scheduler, &tools) {
            Ok(removal) => {
                removal.left.iter().for_each(|left| cx.reporter.warn(left));
                removals.push(removal);
            }
            // A user who may not use a scheduler has no timers there.
            Err(e) if !is_named && e.kind() == ErrorKind::Io => cx.reporter.warn(e.message()),
            Err(e) => faults.push(e),
        }
    }
    removals.retain(|removal| !removal.is_empty());
    if !args.has("print") {
        faults.extend(removals.iter().filter_map(|removal| carry_out(removal, &tools).err()));
    }
    cx.last_of(faults)?;
    show(&removals, args.has("print"), cx)
}

fn show(removals: &[RemovalPlan], with_commands: bool, cx: &mut Context) -> Result<()> {
    if cx.json {
        let shown = |removal: &RemovalPlan| {
            let commands: Vec<_> = removal.before.iter().chain(&removal.after).collect();
            json!({"scheduler": removal.scheduler.name(), "files": removal.files, "commands": commands})
        };
        let removals: Vec<_> = removals.iter().map(shown).collect();
        return cx.stdout.json(&json!({"removed": removals}));
    }
    if removals.is_empty() {
        return cx.stdout.line("no timers were found");
    }
    for removal in removals {
        if !with_commands {
            cx.stdout.line(&format!("{}: timers removed", removal.scheduler.name()))?;
            continue;
        }
        let files = removal.files.iter().map(|path| words(&["rm", &path.to_string_lossy()]));
        let mut commands = removal.before.iter().cloned().chain(files).chain(removal.after.clone());
        commands.try_for_each(|command| cx.stdout.line(&line(&command)))?;
    }
    Ok(())
}
