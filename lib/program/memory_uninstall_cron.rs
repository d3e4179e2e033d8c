//! `memory-uninstall-cron`: remove what `memory-install-cron` has installed.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, value};
use crate::base::env::Env;
use crate::base::error::{ErrorKind, Result};
use crate::base::signal;
use crate::schedule::plan::{NAMES, Scheduler, line, words};
use crate::schedule::tool::{PATIENCE, Tools};
use crate::schedule::uninstall::{RemovalPlan, carry_out, find};
use serde_json::json;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-uninstall-cron",
    caption: "remove the timers of consolidation and defrag",
    usage: &["memory-uninstall-cron [--scheduler NAME] [--print] [--json]"],
    commands: &[],
    flags: &[
        value("scheduler", "NAME", "launchd, systemd or crontab (default: all that have timers)"),
        flag("print", "show every file and command, change nothing"),
        flag("json", "print the result as one JSON object"),
    ],
    more: "Removes what memory-install-cron has written, and launchd's logs of it. If there are no timers, that is \
           not an error. A run that is in progress is not ended.\n\n    \
           memory-uninstall-cron --scheduler crontab --print",
    sections: &[(
        "EXIT STATUS",
        "0: no timers are left. 1: something could not be removed; everything else was.",
    )],
};

#[derive(Debug, Default)]
struct Args {
    scheduler: Option<Scheduler>,
    print: bool,
    json: bool,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    while let Some(arg) = p.next()? {
        match arg {
            Long("scheduler") => args.scheduler = Some(p.one_of(Scheduler::from_name, NAMES)?),
            Long("print") => args.print = true,
            Long("json") => args.json = true,
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(args)
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let tools = Tools { env, patience: PATIENCE };
    let (mut removals, mut faults) = (Vec::new(), Vec::new());
    for scheduler in Scheduler::ALL {
        let is_named = args.scheduler == Some(scheduler);
        let is_here = scheduler != Scheduler::Crontab || tools.has("crontab");
        if !(is_named || args.scheduler.is_none() && is_here) {
            continue;
        }
        match find(scheduler, &tools) {
            Ok(removal) => {
                removal.left.iter().for_each(|left| reporter.warn(left));
                removals.push(removal);
            }
            // A user who may not use a scheduler has no timers there.
            Err(e) if !is_named && e.kind() == ErrorKind::Io => reporter.warn(e.message()),
            Err(e) => faults.push(e),
        }
    }
    removals.retain(|removal| !removal.is_empty());
    if !args.print {
        faults.extend(removals.iter().filter_map(|removal| carry_out(removal, &tools).err()));
    }
    if let Some(last) = faults.pop() {
        faults.iter().for_each(|fault| reporter.warn(&fault.line()));
        return Err(last);
    }
    show(&removals, &args, stdout)?;
    Ok(ExitCode::SUCCESS)
}

fn show(removals: &[RemovalPlan], args: &Args, stdout: &mut Stdout) -> Result<()> {
    if args.json {
        let shown = |removal: &RemovalPlan| {
            let commands: Vec<_> = removal.before.iter().chain(&removal.after).collect();
            json!({"scheduler": removal.scheduler.name(), "files": removal.files, "commands": commands})
        };
        let removals: Vec<_> = removals.iter().map(shown).collect();
        return stdout.json(&json!({"removed": removals}));
    }
    if removals.is_empty() {
        return stdout.line("no timers were found");
    }
    for removal in removals {
        if !args.print {
            stdout.line(&format!("{}: timers removed", removal.scheduler.name()))?;
            continue;
        }
        for command in &removal.before {
            stdout.line(&line(command))?;
        }
        for path in &removal.files {
            stdout.line(&line(&words(&["rm", &path.to_string_lossy()])))?;
        }
        for command in &removal.after {
            stdout.line(&line(command))?;
        }
    }
    Ok(())
}
