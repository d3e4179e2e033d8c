//! `memory-install-cron`: let the machine's scheduler run the memory programs.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::is_in_nix_store;
use crate::base::signal;
use crate::config::memory;
use crate::config::memory::MemoryConfig;
use crate::config::memory::search::files;
use crate::memory::sync::remote;
use crate::schedule::install::install;
use crate::schedule::plan::{InstallPlan, NAMES, Scheduler, line, words};
use crate::schedule::timer::{Timer, Timers, When};
use crate::schedule::tool::{PATIENCE, Tools};
use crate::schedule::uninstall::by_module;
use crate::schedule::{crontab, installed, launchd, systemd, tool, unit_file};
use crate::store::place::Root;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-install-cron",
    caption: "run consolidation and defrag on a timer",
    usage: &[
        "memory-install-cron [--scheduler NAME] [--json] [--config FILE]",
        "memory-install-cron --print [--scheduler NAME] [--json] [--config FILE]",
    ],
    commands: &[],
    flags: &[
        value("scheduler", "NAME", "launchd, systemd or crontab (default: what this machine has)"),
        flag("print", "show every file and command, change nothing"),
        flag("json", "print the result as one JSON object"),
        value("config", "FILE", "use this configuration file, now and in the timers"),
    ],
    more: "The intervals are schedule.consolidateIntervalHours (2) and schedule.defragIntervalHours (24) of the \
           configuration; schedule.consolidate and schedule.defrag can be a calendar instead, such as \"daily\" \
           or \"Mon..Fri 07:00\". If the notes have a remote (see memory-sync), memory-sync runs after each consolidation that succeeds. \
           After changing any of these, run this program again; otherwise a second run changes nothing. \
           The timers run with the PATH, HOME and XDG directories of this shell, and without API keys.\n\n\
           The default is launchd on macOS, systemd if it runs a manager for this user, else crontab. \
           memory-uninstall-cron removes the timers.\n\n    \
           memory-install-cron --print | less",
    sections: &[("", include_str!("memory_install_cron.md"))],
};

#[derive(Debug, Default)]
struct Args {
    scheduler: Option<Scheduler>,
    print: bool,
    json: bool,
    config: Option<PathBuf>,
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
            Long("config") => args.config = Some(p.path()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    Ok(args)
}

/// As without any flags, for another program.
pub(super) fn with_defaults(config: Option<PathBuf>, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    set_up(Args { config, ..Args::default() }, env, stdout)
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    set_up(args, env, stdout)
}

fn set_up(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    let reporter = Reporter::new(false);
    let config = memory::load(args.config.as_deref(), env, &reporter)?;
    let tools = Tools { env, patience: PATIENCE };
    let scheduler = args.scheduler.map_or_else(|| tool::scheduler(&tools), Ok)?;
    let syncs = remote::is_set(&config, &Root::at(&config.storage.root), env);
    let wanted = Timers::wanted(&config.schedule, syncs, args.config.as_deref(), env)?;
    let timers = wanted.only(|program| match unit_file::modules_file(scheduler, program, env) {
        Some(path) => {
            reporter.warn(&by_module(&path));
            false
        }
        None => true,
    });
    if timers.all.is_empty() && !args.json {
        return Ok(ExitCode::SUCCESS);
    }
    check_calendars(scheduler, &timers, &tools, &reporter)?;
    let plan = plan(scheduler, &timers, env)?;
    for remark in &plan.remarks {
        reporter.warn(remark);
    }
    if args.print {
        show(&plan, args.json, stdout)?;
        return Ok(ExitCode::SUCCESS);
    }
    let done = install(&plan, &tools)?;
    let when =
        |when: &When| if scheduler == Scheduler::Crontab { crontab::nearest(when) } else { when.clone() };
    if args.json {
        let shown = |timer: &Timer| match when(&timer.when) {
            When::Every(hours) => json!({"program": timer.words[0], "hours": hours}),
            When::On(calendar) => json!({"program": timer.words[0], "calendar": calendar}),
        };
        let timers: Vec<_> = timers.all.iter().map(shown).collect();
        stdout.json(&json!({
            "scheduler": scheduler.name(),
            "changed": !done.is_empty(),
            "timers": timers,
            "written": done.written,
            "commands": done.commands,
        }))?;
    } else {
        let timers: Vec<_> = timers
            .all
            .iter()
            .map(|timer| {
                let then = if timer.then.is_some() { ", then memory-sync" } else { "" };
                format!("{} {}{then}", timer.program.name(), when(&timer.when))
            })
            .collect();
        let was = if done.is_empty() { " (unchanged)" } else { "" };
        stdout.line(&format!("{}: {}{was}", scheduler.name(), timers.join(", ")))?;
    }
    advise(scheduler, &timers, &config, args.config.as_ref(), &tools, &reporter)?;
    Ok(ExitCode::SUCCESS)
}

fn plan(scheduler: Scheduler, timers: &Timers, env: &Env) -> Result<InstallPlan> {
    Ok(match scheduler {
        Scheduler::Systemd => systemd::plan(timers, &systemd::dir(env)?),
        Scheduler::Launchd => launchd::plan(timers, home(timers)?)?,
        Scheduler::Crontab => crontab::plan(timers)?,
    })
}

/// systemd has calendars that only itself can judge.
fn check_calendars(scheduler: Scheduler, timers: &Timers, tools: &Tools, reporter: &Reporter) -> Result<()> {
    let unknown = timers.all.iter().filter_map(|timer| timer.when.only_systemds());
    for calendar in unknown.filter(|_| scheduler == Scheduler::Systemd) {
        if !tools.has("systemd-analyze") {
            reporter.warn(&format!("\"{calendar}\" was not checked: there is no systemd-analyze on PATH"));
            continue;
        }
        tools.must(&words(&["systemd-analyze", "calendar", calendar]), b"").map_err(|error| {
            Error::config(format!("systemd does not accept the calendar: {}", error.message()))
                .hint("correct schedule.consolidate or schedule.defrag; see systemd.time(7)")
        })?;
    }
    Ok(())
}

fn home(timers: &Timers) -> Result<&str> {
    let home = timers.vars.iter().find(|(name, _)| *name == "HOME");
    home.map(|(_, value)| value.as_str()).ok_or_else(|| Error::config("HOME is not set"))
}

/// Every file and command, for a person or a program.
fn show(plan: &InstallPlan, json: bool, stdout: &mut Stdout) -> Result<()> {
    if json {
        let files: Vec<_> =
            plan.files.iter().map(|(path, content)| json!({"path": path, "content": content})).collect();
        return stdout.json(&json!({
            "scheduler": plan.scheduler.name(),
            "directories": plan.dirs,
            "files": files,
            "crontab": plan.block,
            "commands": plan.commands,
        }));
    }
    for dir in &plan.dirs {
        stdout.line(&format!("# directory {}\n", dir.display()))?;
    }
    for (path, content) in &plan.files {
        stdout.line(&format!("# file {}\n{content}", path.display()))?;
    }
    if let Some(block) = &plan.block {
        stdout.line(&format!("# in the crontab\n{block}"))?;
    }
    if !plan.commands.is_empty() {
        stdout.line("# then run")?;
    }
    plan.commands.iter().try_for_each(|command| stdout.line(&line(command)))
}

/// Warnings about timers that are installed, but may not do what the user expects.
fn advise(
    scheduler: Scheduler,
    timers: &Timers,
    config: &MemoryConfig,
    explicit: Option<&PathBuf>,
    tools: &Tools,
    reporter: &Reporter,
) -> Result<()> {
    if config.llm.command.is_none() {
        reporter.warn(
            "no LLM command is set: notes are filed as they are, sessions wait, and memory-defrag cannot run; set \
             llm.command, see: memory-config init",
        );
    }
    if let Some(stranger) = files(explicit.map(PathBuf::as_path), tools.env)?.untrusted {
        reporter.warn(&format!("\"{}\" is not trusted: the timers do not use it", stranger.display()));
    }
    let programs = timers.all.iter().filter_map(|timer| timer.words.first());
    if let Some(program) = programs.map(Path::new).find(|path| is_in_nix_store(path, tools.env)) {
        reporter.warn(&format!(
            "\"{}\" may be deleted when Nix collects garbage: install the package, or use its module, then run this again",
            program.display()
        ));
    }
    for other in Scheduler::ALL.into_iter().filter(|other| *other != scheduler) {
        let timers = installed::of(other, &config.schedule, tools.env);
        if timers.iter().any(|timer| timer.program.is_some()) {
            let name = other.name();
            reporter.warn(&format!(
                "{name} has timers for these programs too, and both would run; remove those with: \
                 memory-uninstall-cron --scheduler {name}"
            ));
        }
    }
    if scheduler == Scheduler::Systemd && tools.has("loginctl") {
        let uid = rustix::process::getuid().as_raw().to_string();
        let answer = tools.must(&words(&["loginctl", "show-user", &uid, "--property=Linger"]), b"");
        if answer.is_ok_and(|answer| answer.trim_ascii() == b"Linger=no") {
            reporter.warn("the timers stop when you log out; to keep them running: loginctl enable-linger");
        }
    }
    Ok(())
}
