//! `memory-install-cron`: let the machine's scheduler run the memory programs.

use crate::base::cli::{self, About, Args, Context, ExitCode, Flag, Reporter, Stdout, flag, one_of, path};
use crate::base::env::{Env, user_id};
use crate::base::error::{Error, Result};
use crate::base::lookup::is_in_nix_store;
use crate::config::memory::search::files;
use crate::config::memory::{self, MemoryConfig, Schedule};
use crate::memory::sync::remote;
use crate::program::person::{self, only_a_person};
use crate::schedule::install::{InstallPlan, install};
use crate::schedule::scheduler::{PATIENCE, Scheduler, Tools, line, words};
use crate::schedule::timer::{Timer, Timers, When};
use crate::schedule::{crontab, installed, unit_file};
use crate::store::place::Root;
use serde_json::json;
use std::path::Path;

pub(super) const ABOUT: About = About {
    name: "memory-install-cron",
    caption: "run consolidation and defrag on a timer",
    usage: &[
        "memory-install-cron [--scheduler NAME] [--json] [--config FILE]",
        "memory-install-cron --print [--scheduler NAME] [--json] [--config FILE]",
    ],
    flags: &[
        scheduler("launchd, systemd or crontab (default: what this machine has)"),
        flag("print", "show every file and command, change nothing"),
        flag("json", "print the result as one JSON object"),
        path("config", "FILE", "use this configuration file, now and in the timers"),
    ],
    text: include_str!("memory_install_cron.md"),
    ..About::BLANK
};

pub(super) const fn scheduler(help: &'static str) -> Flag {
    one_of("scheduler", "NAME", &["launchd", "systemd", "crontab"], help)
}

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    if !args.has("print") {
        only_a_person(person::TIMERS, cx)?;
    }
    let scheduler = args.text("scheduler").and_then(Scheduler::from_name);
    set_up(scheduler, args.has("print"), args.path("config"), cx)
}

/// Installs the timers, or only shows what would be installed.
pub(super) fn set_up(
    scheduler: Option<Scheduler>,
    is_shown: bool,
    explicit: Option<&Path>,
    cx: &mut Context,
) -> Result<()> {
    let Context { env, stdout, reporter, json, .. } = cx;
    let config = memory::load(explicit, env, reporter)?;
    let tools = Tools { env, patience: PATIENCE };
    let scheduler = scheduler.map_or_else(|| Scheduler::here(&tools), Ok)?;
    let syncs = remote::is_set(&config, &Root::open(&config.storage.root)?, env);
    let mut timers = Timers::wanted(&config.schedule, syncs, explicit, env)?;
    timers.all.retain(|timer| match unit_file::modules_file(scheduler, timer.program, env) {
        Some(path) => {
            reporter.warn(&unit_file::by_module(&path));
            false
        }
        None => true,
    });
    if timers.all.is_empty() && !*json {
        return Ok(());
    }
    check_calendars(scheduler, &timers, &tools, reporter)?;
    let plan = InstallPlan::new(scheduler, &timers, env)?;
    for remark in &plan.remarks {
        reporter.warn(remark);
    }
    if is_shown {
        return show(&plan, *json, stdout);
    }
    let done = install(&plan, &tools)?;
    let when =
        |when: &When| if scheduler == Scheduler::Crontab { crontab::nearest(when) } else { when.clone() };
    if *json {
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
        let shown = |timer: &Timer| {
            let then = if timer.then.is_some() { ", then memory-sync" } else { "" };
            format!("{} {}{then}", timer.program.name(), when(&timer.when))
        };
        let timers: Vec<_> = timers.all.iter().map(shown).collect();
        let was = if done.is_empty() { " (unchanged)" } else { "" };
        stdout.line(&format!("{}: {}{was}", scheduler.name(), timers.join(", ")))?;
    }
    warn_of_config(&config, explicit, tools.env, reporter)?;
    advise(scheduler, &timers, &config.schedule, &tools, reporter);
    Ok(())
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

/// What the timers need, or would expect, of the configuration.
fn warn_of_config(
    config: &MemoryConfig,
    explicit: Option<&Path>,
    env: &Env,
    reporter: &Reporter,
) -> Result<()> {
    if config.llm.command.is_none() {
        reporter.warn(
            "no LLM command is set: notes are filed as they are, sessions wait, and memory-defrag cannot run; set \
             llm.command, see: memory-config init",
        );
    }
    if let Some(stranger) = files(explicit, env)?.untrusted {
        reporter.warn(&format!("\"{}\" is not trusted: the timers do not use it", stranger.display()));
    }
    Ok(())
}

/// Warnings about timers that are installed, but may not do what the user expects.
fn advise(scheduler: Scheduler, timers: &Timers, schedule: &Schedule, tools: &Tools, reporter: &Reporter) {
    let programs = timers.all.iter().filter_map(|timer| timer.words.first());
    if let Some(program) = programs.map(Path::new).find(|path| is_in_nix_store(path, tools.env)) {
        reporter.warn(&format!(
            "\"{}\" may be deleted when Nix collects garbage: install the package, or use its module, then run this again",
            program.display()
        ));
    }
    for other in Scheduler::ALL.into_iter().filter(|other| *other != scheduler) {
        let timers = installed::of(other, schedule, tools.env, tools.patience);
        if timers.iter().any(|timer| timer.program.is_some()) {
            let name = other.name();
            reporter.warn(&format!(
                "{name} has timers for these programs too, and both would run; remove those with: \
                 memory-uninstall-cron --scheduler {name}"
            ));
        }
    }
    if scheduler == Scheduler::Systemd && tools.has("loginctl") {
        let answer = tools.must(&words(&["loginctl", "show-user", &user_id(), "--property=Linger"]), b"");
        if answer.is_ok_and(|answer| answer.trim_ascii() == b"Linger=no") {
            reporter.warn("the timers stop when you log out; to keep them running: loginctl enable-linger");
        }
    }
}
