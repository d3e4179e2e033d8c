//! `axe-gc`: look for patterns in an agent's log, then trim it.
//!
//! The analysis was paid for, so it is printed before anything is removed; if it cannot be printed, nothing is.
//! The messages are M7's, word for word.

use crate::agent::gc;
use crate::agent::record::{Recorder, Tally, begun};
use crate::agent::tree::Scope;
use crate::base::cli::{
    self, About, Args, Completes, Context, ExitCode, Progress, Words, flag, seconds, value,
};
use crate::base::deadline::Deadline;
use crate::base::error::{Error, Result};
use crate::base::stderr::line;
use crate::config::agent::{self, Agent, AgentName, with_agents_dir};
use crate::config::global::Global;
use crate::config::model::Model;
use crate::program::axe_run::{AGENTS_DIR, CLEAN, TIMEOUT};
use crate::provider::message::Reply;
use crate::store::run_log::{self, LogCount, Trimmed};
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(super) const ABOUT: About = About {
    name: "axe-gc",
    caption: "analyse an agent's log, then trim it",
    usage: &["axe-gc [OPTIONS] AGENT", "axe-gc [OPTIONS] --all"],
    flags: &[
        flag("dry-run", "print the analysis, trim nothing"),
        flag("all", "every agent that has memory enabled, one after another"),
        value("model", "P/M", "use this model for the analysis").from("models"),
        flag("no-analysis", "trim without a call, for logs that do not fit any model"),
        AGENTS_DIR,
        seconds("timeout", "the time for the analysis of one agent (default 120)"),
    ],
    words: Words::AtMost(1),
    completes: Completes::Values("agents"),
    text: include_str!("axe_gc.md"),
    ..About::BLANK
};

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    cx.env = with_agents_dir(&cx.env, args.path("agents-dir"));
    match (&args.words()[..], args.has("all")) {
        ([_, ..], true) => Err(Error::usage("cannot specify both --all and an agent name")),
        ([], false) => Err(Error::usage("agent name is required (or use --all)")),
        ([], true) => all(args, cx),
        ([name, ..], false) => {
            let name = AgentName::parse(name)?;
            let agent = agent::load(&name, &cx.env, &cx.reporter)?;
            one(&name, &agent, args, cx)
        }
    }
}

/// One agent's failure does not stop the others.
fn all(args: &Args, cx: &mut Context) -> Result<()> {
    let mut agents = agent::load_all(&cx.env, &cx.reporter)?;
    agents.retain(|(_, agent)| agent.memory.enabled);
    if agents.is_empty() {
        return cx.stdout.line("No agents with memory enabled.");
    }
    let mut failed = 0;
    for (name, agent) in &agents {
        cx.stdout.line(&format!("=== GC: {name} ==="))?;
        if let Err(error) = one(name, agent, args, cx) {
            failed += 1;
            line(&format!("Error: gc failed for agent \"{name}\": {}", error.message()));
            if cx.stdout.is_broken() {
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

/// One agent, and its line in the ledger if its model is asked.
fn one(name: &AgentName, agent: &Agent, args: &Args, cx: &mut Context) -> Result<()> {
    let env = cx.env.clone();
    let mut collection = Collection { name, agent, args, recorder: None };
    let result = collection.run(cx);
    cx.env = env;
    if let Some(recorder) = collection.recorder {
        recorder.end(&result, &cx.reporter);
    }
    result
}

/// The analysis and the trim of one agent's log.
struct Collection<'a> {
    name: &'a AgentName,
    agent: &'a Agent,
    args: &'a Args,
    /// Once the model is asked.
    recorder: Option<Arc<Recorder>>,
}

impl Collection<'_> {
    fn run(&mut self, cx: &mut Context) -> Result<()> {
        let Collection { name, agent, args, .. } = *self;
        let memory = &agent.memory;
        if !memory.enabled {
            cx.reporter.warn(&format!("agent \"{name}\" does not have memory enabled. Skipping."));
            return Ok(());
        }
        // Without a call, nothing depends on config.toml.
        let has_analysis = !args.has("no-analysis");
        let global = if has_analysis { Global::load(&cx.env, &cx.reporter)? } else { Global::default() };
        let named = args.text("model").unwrap_or(&agent.model);
        let model = has_analysis.then(|| global.model(named)).transpose()?;
        let path = run_log::path(name, memory, &cx.env)?;
        let timeout = args.number("timeout").unwrap_or(TIMEOUT);
        let deadline = Deadline::after_seconds(timeout);
        let counted = run_log::count(&path, deadline).map_err(unreadable)?;
        let entries = counted.entries;
        // Without a call, only the number of entries is needed, however long the log is.
        let is_read = has_analysis || entries == 0;
        let log = is_read.then(|| run_log::tail(&path, 0, deadline)).transpose().map_err(unreadable)?;
        if log.as_ref().is_some_and(|log| log.trim().is_empty()) {
            return cx.stdout.line(&format!("No memory entries for agent \"{name}\". Nothing to do."));
        }
        cx.stdout.line(&format!("Agent: {name}\nEntries: {entries}"))?;

        // Also checks that stdout works before anything is paid for.
        cx.stdout.flush()?;

        let mut overview = None;
        if let (Some(log), Some(model)) = (log, &model) {
            overview = run_log::overview(&log);
            let analysis = self.analyse((&global, model), log, Deadline::after_seconds(timeout), cx)?;
            cx.stdout.line("--- Analysis ---")?;
            cx.stdout.line(analysis.trim_end_matches('\n'))?;
        }
        // Only output that was written completely is safe from loss.
        cx.stdout.flush()?;
        cx.stdout.line(&self.trim(&path, counted)?)?;
        // What needs no model, beyond M7.
        overview.map_or(Ok(()), |line| cx.stdout.line(&line))
    }

    /// Trims the log, and says so.
    fn trim(&self, path: &Path, counted: LogCount) -> Result<String> {
        let memory = &self.agent.memory;
        if self.args.has("dry-run") {
            return Ok("Dry run: no entries trimmed.".to_owned());
        }
        let Some(keep) = gc::trim_target(memory) else {
            return Ok(
                "No trim target configured (last_n and max_entries are both 0). Skipping trim.".to_owned()
            );
        };
        let trimmed = run_log::trim(path, keep, counted, memory.path.is_empty())
            .map_err(|e| Error::io(format!("failed to trim memory for \"{}\": {e}", self.name)))?;
        Ok(match trimmed {
            // Another gc may have trimmed the log meanwhile.
            Trimmed { removed: 0, kept } => {
                format!("No trimming needed: {kept} entries within limit ({keep}).")
            }
            Trimmed { removed, kept } => {
                format!("Trimmed: {removed} entries removed, {kept} entries kept.")
            }
        })
    }

    fn analyse(
        &mut self,
        (global, model): (&Global, &Model),
        log: String,
        deadline: Deadline,
        cx: &mut Context,
    ) -> Result<String> {
        let Collection { name, agent, .. } = *self;
        let begun = begun(cx)?.of(name, model);
        let env = &cx.env;
        let endpoint = global.endpoint(model, env)?;
        let workdir = agent::workdir(None, agent, env)?;
        let progress = Progress::start(true, format!("{name}: {model}"));
        let tally = Arc::<Tally>::default();
        self.recorder = Some(Recorder::begin(&tally, begun, global, env, CLEAN));
        let scope = Scope::of_run(env, deadline, cx.reporter);
        let reply = gc::analyse((&endpoint, model), global, &tally, log, &workdir, scope);
        drop(progress);
        let reply = reply?;
        for warning in reply.warnings.iter().chain(&Reply::tries(reply.retries)).chain(&reply.flaw()) {
            cx.reporter.warn(warning);
        }
        Ok(reply.text)
    }
}

fn unreadable(e: io::Error) -> Error {
    let error = Error::io(format!("failed to load memory: {e}"));
    match e.kind() {
        io::ErrorKind::FileTooLarge => error.hint("--no-analysis trims it without a call"),
        _ => error,
    }
}
