//! `axe-gc`: look for patterns in an agent's log, then trim it.
//!
//! The analysis was paid for, so it is printed before anything is removed; if it cannot be printed, nothing is.
//! The messages are M7's, word for word.

use crate::agent::gc;
use crate::base::cli::{About, Arguments, Program, Progress, Reporter, Stdout, flag, text, value};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::signal;
use crate::base::stderr::line;
use crate::config::agent::{self, Agent, AgentName, with_agents_dir};
use crate::config::global::Global;
use crate::config::model::Model;
use crate::provider::message::Reply;
use crate::store::run_log::{self, Trimmed};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "axe-gc",
    caption: "analyse an agent's log, then trim it",
    usage: &["axe-gc [OPTIONS] AGENT", "axe-gc [OPTIONS] --all"],
    commands: &[],
    flags: &[
        flag("dry-run", "print the analysis, trim nothing"),
        flag("all", "every agent that has memory enabled, one after another"),
        value("model", "P/M", "use this model for the analysis"),
        flag("no-analysis", "trim without a call, for logs that do not fit any model"),
        value("agents-dir", "DIR", "look for agents in DIR first"),
        value("timeout", "SECONDS", "the time for the analysis of one agent (default 120)"),
    ],
    more: "One call looks for patterns and repeated work and gives recommendations; its answer is printed, and a \
           line with the number of runs, the first and last time, and the mean length of a result. Then \
           the log is trimmed to its newest entries: memory.last_n of them, else memory.max_entries, else all. \
           Entries that other runs append during the call are kept as well, however many, unless another gc \
           replaces the log. If the call fails, nothing is trimmed.\n\n    \
           axe-gc reviewer | tee -a findings.md\n    \
           axe-gc --all --no-analysis",
    sections: &[("", include_str!("axe_gc.md"))],
};

/// Seconds, unless `--timeout` is given.
const TIMEOUT: u64 = 120;

#[derive(Debug, Default)]
struct Args {
    agent: Option<String>,
    all: bool,
    dry_run: bool,
    no_analysis: bool,
    model: Option<String>,
    timeout: Option<u64>,
    agents_dir: Option<PathBuf>,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    while let Some(arg) = p.next()? {
        match arg {
            Long("dry-run") => args.dry_run = true,
            Long("all") => args.all = true,
            Long("model") => args.model = Some(p.text()?),
            Long("no-analysis") => args.no_analysis = true,
            Long("agents-dir") => args.agents_dir = Some(p.path()?),
            Long("timeout") => args.timeout = Some(p.seconds()?),
            Value(name) if args.agent.is_none() => args.agent = Some(text(name)?),
            Value(_) | Long(_) | Short(_) => return Err(arg.unexpected().into()),
        }
    }
    match (&args.agent, args.all) {
        (Some(_), true) => Err(Error::usage("cannot specify both --all and an agent name")),
        (None, false) => Err(Error::usage("agent name is required (or use --all)")),
        _ => Ok(args),
    }
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, false);
    let reporter = Reporter::new(false);
    let env = &with_agents_dir(env, args.agents_dir.as_deref());
    match &args.agent {
        Some(name) => {
            let name = AgentName::parse(name)?;
            let agent = agent::load(&name, env, &reporter)?;
            one(&name, &agent, &args, env, &reporter, stdout)?;
        }
        None => all(&args, env, &reporter, stdout)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// One agent's failure does not stop the others.
fn all(args: &Args, env: &Env, reporter: &Reporter, stdout: &mut Stdout) -> Result<()> {
    let mut agents = agent::load_all(env, reporter)?;
    agents.retain(|(_, agent)| agent.memory.enabled);
    if agents.is_empty() {
        return stdout.line("No agents with memory enabled.");
    }
    let mut failed = 0;
    for (name, agent) in &agents {
        stdout.line(&format!("=== GC: {name} ==="))?;
        if let Err(error) = one(name, agent, args, env, reporter, stdout) {
            failed += 1;
            line(&format!("Error: gc failed for agent \"{name}\": {}", error.message()));
            if stdout.is_broken() {
                break;
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => {
            Err(Error::io(format!("gc completed with errors: {failed} of {} agents failed", agents.len())))
        }
    }
}

fn one(
    name: &AgentName,
    agent: &Agent,
    args: &Args,
    env: &Env,
    reporter: &Reporter,
    stdout: &mut Stdout,
) -> Result<()> {
    let memory = &agent.memory;
    if !memory.enabled {
        reporter.warn(&format!("agent \"{name}\" does not have memory enabled. Skipping."));
        return Ok(());
    }
    let model = Model::parse(args.model.as_deref().unwrap_or(&agent.model))?;
    let path = run_log::path(name, memory, env)?;
    let deadline = Deadline::after_seconds(args.timeout.unwrap_or(TIMEOUT));
    let counted = run_log::count(&path, deadline).map_err(unreadable)?;
    let entries = counted.entries;
    // Without a call, only the number of entries is needed, however long the log is.
    let log = if args.no_analysis && entries > 0 {
        None
    } else {
        Some(run_log::tail(&path, 0, deadline).map_err(unreadable)?)
    };
    if log.as_ref().is_some_and(|log| log.trim().is_empty()) {
        return stdout.line(&format!("No memory entries for agent \"{name}\". Nothing to do."));
    }
    stdout.line(&format!("Agent: {name}\nEntries: {entries}"))?;

    // Also checks that stdout works before anything is paid for.
    stdout.flush()?;

    if let Some(log) = log.filter(|_| !args.no_analysis) {
        let overview = run_log::overview(&log);
        let analysis = analyse(name, agent, &model, log, args, env, reporter)?;
        stdout.line("--- Analysis ---")?;
        stdout.line(analysis.trim_end_matches('\n'))?;
        // What needs no model, beyond M7.
        overview.map_or(Ok(()), |line| stdout.line(&line))?;
    }
    // Only output that was written completely is safe from loss.
    stdout.flush()?;
    if args.dry_run {
        return stdout.line("Dry run: no entries trimmed.");
    }
    let Some(keep) = gc::trim_target(memory) else {
        return stdout.line("No trim target configured (last_n and max_entries are both 0). Skipping trim.");
    };
    let trimmed = run_log::trim(&path, keep, counted, memory.path.is_empty())
        .map_err(|e| Error::io(format!("failed to trim memory for \"{name}\": {e}")))?;
    stdout.line(&match trimmed {
        // Another gc may have trimmed the log meanwhile.
        Trimmed { removed: 0, kept } => format!("No trimming needed: {kept} entries within limit ({keep})."),
        Trimmed { removed, kept } => format!("Trimmed: {removed} entries removed, {kept} entries kept."),
    })
}

fn analyse(
    name: &AgentName,
    agent: &Agent,
    model: &Model,
    log: String,
    args: &Args,
    env: &Env,
    reporter: &Reporter,
) -> Result<String> {
    let global = Global::load(env, reporter)?;
    let endpoint = global.endpoint(model, env)?;
    let workdir = agent::workdir(None, agent, env)?;
    let deadline = Deadline::after_seconds(args.timeout.unwrap_or(TIMEOUT));
    let progress = Progress::start(true, format!("{name}: {model}"));
    let reply = gc::analyse(&endpoint, &model.name, log, &workdir, global.retries(env)?, deadline, env);
    drop(progress);
    let reply = reply?;
    for warning in reply.warnings.iter().chain(&Reply::tries(reply.retries)).chain(&reply.flaw()) {
        reporter.warn(warning);
    }
    Ok(reply.text)
}

fn unreadable(e: io::Error) -> Error {
    let error = Error::io(format!("failed to load memory: {e}"));
    match e.kind() {
        io::ErrorKind::FileTooLarge => error.hint("--no-analysis trims it without a call"),
        _ => error,
    }
}
