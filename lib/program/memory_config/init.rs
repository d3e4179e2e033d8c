//! `memory-config init`: from nothing to a working loop. The configuration is written, hooks and timers if the person
//! wants them, and at the end it says what the next session will see.

use crate::base::cli::{Args, Context};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::stderr::line;
use crate::config::memory::search::{named, users_own};
use crate::config::memory::starter::starter;
use crate::harness::spec::Spec;
use crate::memory::hooks::status::status;
use crate::memory::hooks::{self, FileResult, HookOutcome, HookProgram, Programs, runs_in};
use crate::program::notes::{can_ask, is_agreed};
use crate::program::person::{self, only_a_person};
use crate::program::{memory_install_cron, memory_install_hooks};
use std::io;
use std::path::Path;

pub(super) fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    only_a_person(person::CONFIGURE, cx)?;
    let path = match named(args.path("config"), &cx.env)? {
        Some((path, _)) => path,
        None => users_own(&cx.env)?,
    };
    // Without asking, everything is written.
    let (is_sure, timers) = (args.has("yes"), args.has("timers"));
    let is_asked = !is_sure && can_ask(cx);
    let has_llm = configuration(&path, is_sure || is_asked, &cx.env)?;
    cx.stdout.line(&path.display().to_string())?;
    cx.stdout.flush()?;

    let homes = hooks::found(&cx.env);
    let names: Vec<_> = homes.iter().map(|home| home.title).collect();
    if !is_sure && !is_asked && !timers {
        let hooks = match &names[..] {
            [] => String::new(),
            names => format!("--yes installs the hooks of {}, ", names.join(", ")),
        };
        line(&format!(
            "nothing more was done, because this is no terminal: {hooks}--timers installs the timers"
        ));
        return Ok(());
    }
    let question = format!("install hooks for {}? [Y/n] ", names.join(", "));
    let has_hooks = !homes.is_empty() && (is_sure || is_asked && is_agreed(&question, true, cx)?);
    let mut hooked = if has_hooks { install_hooks(&homes, cx) } else { Ok(()) };
    if has_hooks && is_asked {
        hooked = hooked.and(offer_one_memory(&homes, cx));
    }
    let question = "install timers for consolidation and defrag? [y/N] ";
    let has_timers = timers || is_asked && is_agreed(question, false, cx)?;
    let timed = match has_timers {
        true => memory_install_cron::set_up(None, false, args.path("config"), cx),
        false => Ok(()),
    };
    // What could not be done is still to do.
    let has_timers = has_timers && timed.is_ok();
    report(&homes, has_llm, has_timers, args.path("config").is_some(), &cx.env);
    cx.last_of([hooked, timed].into_iter().filter_map(Result::err))
}

/// Writes the file unless it is there. Returns whether there is an LLM command, as far as it is known.
fn configuration(path: &Path, may_exist: bool, env: &Env) -> Result<bool> {
    let starter = starter(env)?;
    file::make_dir(path.parent().unwrap_or(path))?;
    let exists =
        |hint: &str| Error::usage(format!("config file already exists: \"{}\"", path.display())).hint(hint);
    match file::create(path, starter.text.as_bytes(), 0o600) {
        Ok(()) => {}
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e.into()),
        Err(_) if !path.exists() => return Err(exists("it is a link that leads nowhere; remove it")),
        Err(_) if may_exist => {
            line(&format!("the configuration exists and stays as it is: \"{}\"", path.display()));
            return Ok(true);
        }
        Err(_) => {
            return Err(exists(
                "to install hooks all the same: memory-config init --yes, or memory-install-hooks",
            ));
        }
    }
    match &starter.command {
        Some((preset, program)) => {
            let caution =
                preset.caution.map(|caution| format!("; {caution}: see axe(7)")).unwrap_or_default();
            line(&format!("LLM command: {} ({}){caution}", preset.name, program.display()));
        }
        None => line(
            "LLM command: none found on PATH; set llm.command to a shell command that reads a prompt on stdin \
             and prints the answer",
        ),
    }
    match &starter.targets[..] {
        [] => line("AGENTS.md targets: no harness found; list your files under agentsMd.targets"),
        targets => line(&format!("AGENTS.md targets: {}", targets.join(", "))),
    }
    for (path, why) in &starter.left {
        line(&format!("not a target: {path} {why}"));
    }
    Ok(starter.command.is_some())
}

fn install_hooks(homes: &[&'static Spec], cx: &Context) -> Result<()> {
    let programs = Programs::installed(&cx.env)?;
    memory_install_hooks::warn_of_store(&programs, cx);
    let outcomes = hooks::install(homes, &programs, false, &cx.env)?;
    for outcome in &outcomes {
        say(outcome);
    }
    memory_install_hooks::remarks(&outcomes, false, cx);
    memory_install_hooks::faults(outcomes, false, cx)
}

/// Programs that keep a memory of their own say everything twice.
fn offer_one_memory(homes: &[&'static Spec], cx: &mut Context) -> Result<()> {
    let homes = hooks::with_memory(homes, &cx.env);
    let titles: Vec<_> = homes.iter().map(|home| home.title).collect();
    let question = format!(
        "switch off the built-in memory of {}? memory-uninstall-hooks takes that back [y/N] ",
        titles.join(", ")
    );
    if homes.is_empty() || !is_agreed(&question, false, cx)? {
        return Ok(());
    }
    let outcomes = hooks::switch_off_memory(&homes, &cx.env)?;
    for HookOutcome { harness, file, result, .. } in &outcomes {
        if result.is_ok() {
            line(&format!("built-in memory of {}: off in {}", harness.title, file.display()));
        }
    }
    memory_install_hooks::faults(outcomes, false, cx)
}

fn say(outcome: &HookOutcome) {
    let (title, file) = (outcome.harness.title, outcome.file.display());
    match &outcome.result {
        Ok(FileResult::Written | FileResult::Removed) => line(&format!("hooks of {title}: {file}")),
        Ok(FileResult::Unchanged) => line(&format!("hooks of {title}: {file} (unchanged)")),
        Ok(FileResult::Left(_)) => {
            line(&format!("hooks of {title}: add this to {file}:\n{}", outcome.lines.trim_end()))
        }
        Err(_) => {}
    }
}

/// What the next session will see, and what is still to do.
fn report(homes: &[&'static Spec], has_llm: bool, has_timers: bool, has_config: bool, env: &Env) {
    let has_hooks =
        |home: &&&'static Spec| matches!(status(home, env), Ok(Some(status)) if status.captures());
    let (hooked, bare): (Vec<&Spec>, Vec<&Spec>) = homes.iter().partition(has_hooks);
    let is_told = |home: &&Spec| runs_in(home, HookProgram::Recall);
    let (with, without): (Vec<&Spec>, Vec<&Spec>) = hooked.into_iter().partition(is_told);
    let titles_of = |homes: &[&Spec]| homes.iter().map(|home| home.title).collect::<Vec<_>>().join(", ");
    for (told, what) in [
        (
            &with,
            "starts with the notes of its repository, and each prompt brings those that answer it; its end queues it",
        ),
        (&without, "is queued at its end"),
        (&bare, "reads the global notes in its AGENTS.md target; nothing queues it"),
    ] {
        if !told.is_empty() {
            line(&format!("the next session of {} {what}", titles_of(told)));
        }
    }
    let to_do = [
        (homes.is_empty(), "start a coding agent once, then run memory-install-hooks"),
        (!bare.is_empty(), "memory-install-hooks queues sessions and gives notes to the next"),
        (!has_llm, "set llm.command: without one, sessions wait"),
        (
            !has_timers,
            "memory-install-cron makes notes of the queue every two hours; by hand: memory-consolidate",
        ),
        (
            has_config || env.os("AGENT_MEMORY_CONFIG").is_some(),
            "hooks find this configuration only if AGENT_MEMORY_CONFIG names it in the agent's shell",
        ),
    ];
    for (_, step) in to_do.iter().filter(|(is_open, _)| *is_open) {
        line(&format!("to do: {step}"));
    }
}
