//! `memory-config init`: from nothing to a working loop. The configuration is written, hooks and timers if the person
//! wants them, and at the end it says what the next session will see.

use crate::base::cli::{Reporter, Stdout};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::stderr::line;
use crate::base::{file, stdin};
use crate::config::memory::search::{named, users_own};
use crate::config::memory::starter::starter;
use crate::harness::shell::AgentShell;
use crate::harness::spec::Spec;
use crate::memory::hooks::{self, Done, HookProgram, Outcome, Programs, runs_in};
use crate::program::{memory_install_cron, memory_install_hooks};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How long a question waits.
const PATIENCE: u64 = 3600;

#[derive(Debug, Default)]
pub(super) struct Args {
    pub(super) config: Option<PathBuf>,
    /// Write everything without asking.
    pub(super) yes: bool,
    pub(super) timers: bool,
}

pub(super) fn run(args: &Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    let reporter = Reporter::new(false);
    let config = args.config.as_deref();
    let path = match named(config, env)? {
        Some((path, _)) => path,
        None => users_own(env)?,
    };
    let is_asked = !args.yes && stdin::is_terminal() && stdout.is_terminal() && AgentShell::of(env).is_none();
    let has_llm = configuration(&path, args.yes || is_asked, env)?;
    stdout.line(&path.display().to_string())?;
    stdout.flush()?;

    let homes = hooks::found(env);
    let names: Vec<_> = homes.iter().map(|home| home.title).collect();
    if !args.yes && !is_asked && !args.timers {
        let hooks = match &names[..] {
            [] => String::new(),
            names => format!("--yes installs the hooks of {}, ", names.join(", ")),
        };
        line(&format!(
            "nothing more was done, because this is no terminal: {hooks}--timers installs the timers"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let has_hooks = !homes.is_empty()
        && (args.yes
            || is_asked && ask(&format!("install hooks for {}? [Y/n] ", names.join(", ")), true, stdout)?);
    let mut ended = Ok(ExitCode::SUCCESS);
    if has_hooks {
        ended = install_hooks(&homes, env, &reporter);
    }
    let has_timers =
        args.timers || is_asked && ask("install timers for consolidation and defrag? [y/N] ", false, stdout)?;
    if has_timers {
        let timers = memory_install_cron::with_defaults(args.config.clone(), env, stdout);
        ended = ended.and_then(|code| timers.map(|_| code));
    }
    if ended.is_ok() {
        report(&Set { homes: &homes, has_hooks, has_timers, has_llm, config }, env);
    }
    ended
}

/// Writes the file unless it is there. Returns whether there is an LLM command, as far as it is known.
fn configuration(path: &Path, may_exist: bool, env: &Env) -> Result<bool> {
    let starter = starter(env)?;
    file::make_dir(path.parent().unwrap_or(path))?;
    match file::create(path, starter.text.as_bytes(), 0o600) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && !path.exists() => {
            return Err(Error::usage(format!("config file already exists: \"{}\"", path.display()))
                .hint("it is a link that leads nowhere; remove it"));
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && may_exist => {
            line(&format!("the configuration exists and stays as it is: \"{}\"", path.display()));
            return Ok(true);
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::usage(format!("config file already exists: \"{}\"", path.display()))
                .hint("to install hooks all the same: memory-config init --yes, or memory-install-hooks"));
        }
        Err(e) => return Err(e.into()),
    }
    match &starter.command {
        Some((name, program)) => line(&format!("LLM command: {name} ({})", program.display())),
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

fn ask(question: &str, default: bool, stdout: &mut Stdout) -> Result<bool> {
    loop {
        stdout.text(question)?;
        stdout.flush()?;
        let typed = stdin::answer(Deadline::after_seconds(PATIENCE))?;
        match typed.as_deref().map(|typed| typed.trim().to_lowercase()).as_deref() {
            Some("y" | "yes") => return Ok(true),
            Some("n" | "no") => return Ok(false),
            Some("") => return Ok(default),
            // Ctrl-D: nothing more is wanted.
            None => return stdout.line("").map(|()| false),
            Some(_) => {}
        }
    }
}

fn install_hooks(homes: &[&'static Spec], env: &Env, reporter: &Reporter) -> Result<ExitCode> {
    let programs = Programs::installed(env)?;
    memory_install_hooks::warn_of_store(&programs, env, reporter);
    let outcomes = hooks::install(homes, &programs, false, env)?;
    for outcome in &outcomes {
        say(outcome);
    }
    memory_install_hooks::remarks(&outcomes, false, reporter);
    memory_install_hooks::faults(outcomes, false, reporter)
}

fn say(outcome: &Outcome) {
    let (title, file) = (outcome.harness.title, outcome.file.display());
    match &outcome.result {
        Ok(Done::Written | Done::Removed) => line(&format!("hooks of {title}: {file}")),
        Ok(Done::Unchanged) => line(&format!("hooks of {title}: {file} (unchanged)")),
        Ok(Done::Left(_)) => {
            line(&format!("hooks of {title}: add this to {file}:\n{}", outcome.lines.trim_end()))
        }
        Err(_) => {}
    }
}

/// What was set up.
struct Set<'a> {
    homes: &'a [&'static Spec],
    has_hooks: bool,
    has_timers: bool,
    has_llm: bool,
    config: Option<&'a Path>,
}

/// What the next session will see, and what is still to do.
fn report(set: &Set, env: &Env) {
    let titles: Vec<_> = set.homes.iter().map(|home| home.title).collect();
    let titles = titles.join(", ");
    let (with, without): (Vec<&Spec>, Vec<&Spec>) =
        set.homes.iter().partition(|home| runs_in(home, HookProgram::Recall));
    let titles_of = |homes: &[&Spec]| homes.iter().map(|home| home.title).collect::<Vec<_>>().join(", ");
    if set.has_hooks {
        if !with.is_empty() {
            line(&format!(
                "the next session of {} starts with the notes of its repository, and each prompt brings those that answer \
                 it; its end queues it",
                titles_of(&with)
            ));
        }
        if !without.is_empty() {
            line(&format!("the next session of {} is queued at its end", titles_of(&without)));
        }
    } else if !titles.is_empty() {
        line(&format!(
            "the next session of {titles} reads the global notes in its AGENTS.md target; nothing queues it"
        ));
    }
    let mut to_do = Vec::new();
    if set.homes.is_empty() {
        to_do.push("start a coding agent once, then run memory-install-hooks".to_owned());
    } else if !set.has_hooks {
        to_do.push("memory-install-hooks queues sessions and gives notes to the next".to_owned());
    }
    if !set.has_llm {
        to_do.push("set llm.command: without one, sessions wait".to_owned());
    }
    if !set.has_timers {
        to_do.push(
            "memory-install-cron makes notes of the queue every two hours; by hand: memory-consolidate"
                .to_owned(),
        );
    }
    if set.config.is_some() || env.os("AGENT_MEMORY_CONFIG").is_some() {
        to_do.push(
            "hooks find this configuration only if AGENT_MEMORY_CONFIG names it in the agent's shell"
                .to_owned(),
        );
    }
    for step in to_do {
        line(&format!("to do: {step}"));
    }
}
