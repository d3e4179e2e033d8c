//! `memory-consolidate`: what waits in the queue becomes notes, through the LLM command.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, at_most_one, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::signal;
use crate::memory::call::{Kind, Why};
use crate::memory::consolidate::desk::{Desk, Tally};
use crate::memory::consolidate::plan::Plan;
use crate::memory::consolidate::run::{Ended, Preview};
use crate::memory::section;
use crate::program::pipeline::{Beginning, Bench, COMMAND_HINT, quoted};
use crate::store::batch::Batches;
use crate::store::journal::Journal;
use crate::store::ledger::Tries;
use crate::store::place::Root;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const ABOUT: About = About {
    name: "memory-consolidate",
    caption: "make notes of what waits in the queue",
    usage: &[
        "memory-consolidate [--limit N] [--retry-failed] [--json] [--quiet]",
        "memory-consolidate --dry-run | --prompt | --apply FILE",
    ],
    commands: &[],
    flags: &[
        value("limit", "N", "take at most N queue entries"),
        flag("dry-run", "ask, show what would be written, write nothing"),
        flag("prompt", "claim a part and print its prompt, to ask by hand"),
        value("apply", "FILE", "carry out a reply, from FILE or stdin (-)"),
        flag("retry-failed", "put what has failed for good back into the queue first"),
        flag("json", "print the result as one JSON object"),
        flag("quiet", "no progress and no summary"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "The command is llm.command of the configuration: prompt on stdin, reply on stdout. Without one, \
           notes are filed as they are, and sessions wait. Calls are capped (llm.maxCallsPerRun, \
           llm.maxCallsPerDay); at the cap it stops, and the next run goes on.\n\n    \
           memory-consolidate --prompt | claude -p | memory-consolidate --apply -",
    sections: &[
        (
            "FAILURES",
            "A session that cannot be read, or that a call fails for, is tried again after one hour and after six, \
             then it is moved to inbox/.failed with a file that says why. When a call for several fails, each \
             is asked about alone the next time. A run that is killed is carried on by the next one; a reply that \
             was whole is not paid for twice.",
        ),
        (
            "EXIT STATUS",
            "0: done, nothing to do, the cap is reached, or another run is at work. 1: a file could not be written. \
             2: the configuration is wrong, or sessions wait and there is no LLM command. 3: the LLM command \
             failed, its reply cannot be used, or an entry failed; the queue is whole.",
        ),
    ],
};

#[derive(Debug, Default)]
struct Args {
    limit: Option<usize>,
    what: What,
    retry_failed: bool,
    json: bool,
    quiet: bool,
    config: Option<PathBuf>,
}

#[derive(Debug, Default, PartialEq)]
enum What {
    #[default]
    Run,
    DryRun,
    Prompt,
    Apply(PathBuf),
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut args = Args::default();
    let mut chosen = Vec::new();
    while let Some(arg) = p.next()? {
        match arg {
            Long("limit") => args.limit = Some(p.count()?),
            Long("dry-run") => chosen.push(("--dry-run", What::DryRun)),
            Long("prompt") => chosen.push(("--prompt", What::Prompt)),
            Long("apply") => chosen.push(("--apply", What::Apply(p.path()?))),
            Long("retry-failed") => args.retry_failed = true,
            Long("json") => args.json = true,
            Long("quiet") => args.quiet = true,
            Long("config") => args.config = Some(p.path()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if let Some((_, what)) = at_most_one(chosen)? {
        args.what = what;
    }
    if let (What::Apply(_), Some(_)) = (&args.what, args.limit) {
        return Err(apart("--apply", "--limit").hint("a reply is carried out as a whole"));
    }
    Ok(args)
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    signal::watch(ABOUT.name, args.json);
    let reporter = Reporter::new(false);
    let beginning = Beginning {
        program: ABOUT.name,
        config: args.config.as_deref(),
        apply: if let What::Apply(from) = &args.what { Some(from) } else { None },
        is_by_hand: matches!(args.what, What::Prompt | What::Apply(_)),
        batches: Batches::of_queue,
    };
    let bench = match Bench::begin(&beginning, env, &reporter)? {
        Ok(bench) => bench,
        Err(busy) => {
            reporter.warn(&format!("{busy}; nothing done"));
            return Ok(ExitCode::SUCCESS);
        }
    };
    if args.retry_failed {
        retry_failed(&bench.root, &reporter)?;
    }
    let mut desk = Desk {
        config: &bench.config,
        root: &bench.root,
        env,
        reporter: &reporter,
        redactor: &bench.redactor,
        caller: bench.caller(ABOUT.name, env, args.quiet),
        kind: match args.what {
            What::Run => Kind::Run,
            What::DryRun => Kind::Dry,
            What::Prompt | What::Apply(_) => Kind::Hand,
        },
        limit: args.limit.unwrap_or(usize::MAX),
        batch: None,
        history: None,
        seen: BTreeSet::new(),
        is_down: false,
        tally: Tally::default(),
    };
    match (args.what, &bench.reply) {
        (What::Prompt, _) => match desk.prompt_by_hand()? {
            Some(prompt) => stdout.text(&prompt)?,
            None => reporter.warn("nothing waits that may be asked about now"),
        },
        (What::DryRun, _) if bench.config.llm.command.is_none() => {
            return Err(Error::config("a dry run asks, and no LLM command is set").hint(COMMAND_HINT));
        }
        (What::DryRun, _) => return dry_run(&mut desk, args.json, stdout),
        (_, Some(reply)) => {
            let parts = desk.apply(reply)?;
            refresh_targets(&desk);
            if parts > 0 && !args.quiet {
                reporter
                    .warn(&format!("{parts} more parts of it are to be asked about; go on with --prompt"));
            }
            summary(&desk, None, args.json, args.quiet, stdout)?;
        }
        (_, None) => {
            let ended = desk.run()?;
            refresh_targets(&desk);
            summary(&desk, Some(&ended), args.json, args.quiet, stdout)?;
            return close(&desk, ended, &reporter);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was learned is before every agent at once, not only after the next defrag. The notes are safe already, so
/// a target that cannot be refreshed is a warning.
fn refresh_targets(desk: &Desk) {
    if desk.tally.written.is_empty() {
        return;
    }
    match section::refresh(desk.config, desk.root, desk.reporter) {
        Ok(outcomes) => {
            for error in outcomes.into_iter().filter_map(|outcome| outcome.standing.err()) {
                desk.reporter.warn(&format!("not refreshed: {}", error.line()));
            }
        }
        Err(error) => desk.reporter.warn(&format!("no AGENTS.md was refreshed: {}", error.line())),
    }
}

/// What a run's end means to who called it.
fn close(desk: &Desk, ended: Ended, reporter: &Reporter) -> Result<ExitCode> {
    match ended {
        Ended::Done if desk.tally.failed.is_empty() => Ok(ExitCode::SUCCESS),
        Ended::Done => {
            let what = match desk.tally.failed.len() {
                1 => "1 entry failed".to_owned(),
                count => format!("{count} entries failed"),
            };
            Err(Error::api(what).hint("nothing is lost; it is tried again, or lies in inbox/.failed"))
        }
        Ended::Spent(why) => {
            reporter.warn(&format!("{why}; {} entries wait", desk.waiting()?));
            Ok(ExitCode::SUCCESS)
        }
        Ended::AgentFailed(why) => Err(Error::api(why).hint("nothing is lost; what waits is tried again")),
        Ended::NoCommand(count) => {
            let sessions = if count == 1 { "1 session waits" } else { &format!("{count} sessions wait") };
            Err(Error::config(format!("{sessions} for an LLM, and no command is set")).hint(COMMAND_HINT))
        }
    }
}

/// Puts everything in `inbox/.failed` back, as if it had never been tried.
fn retry_failed(root: &Root, reporter: &Reporter) -> Result<()> {
    // Forgotten first: what is back in the queue must not fail for good at once.
    let journal = Journal::at(root);
    let failed = journal.failed()?;
    let mut tries = Tries::load(root)?;
    for id in &failed {
        tries.forget(id);
    }
    tries.save(root)?;
    journal.retry(&failed)?;
    if !failed.is_empty() {
        reporter.warn(&format!("{} failed entries are back in the queue", failed.len()));
    }
    Ok(())
}

fn summary(desk: &Desk, ended: Option<&Ended>, json: bool, quiet: bool, stdout: &mut Stdout) -> Result<()> {
    let tally = &desk.tally;
    let waiting = desk.waiting()?;
    if json {
        let notes: Vec<_> = tally
            .written
            .iter()
            .map(|note| json!({"id": note.id, "title": note.title, "action": if note.is_update { "update" } else { "create" }}))
            .collect();
        let failed: Vec<_> =
            tally.failed.iter().map(|(entry, why)| json!({"entry": entry, "error": why})).collect();
        let stopped = match ended {
            Some(Ended::Spent(why)) => Some(why),
            _ => None,
        };
        return stdout.json(&json!({
            "processed": tally.processed,
            "written": tally.written.len(),
            "failed": failed,
            "waiting": waiting,
            "notes": notes,
            "stopped": stopped,
        }));
    }
    if quiet {
        return Ok(());
    }
    let mut line =
        format!("{} entries processed, {} kb entries written", tally.processed, tally.written.len());
    if !tally.failed.is_empty() {
        line.push_str(&format!(", {} failed", tally.failed.len()));
    }
    if waiting > 0 {
        line.push_str(&format!(", {waiting} waiting"));
    }
    stdout.line(&line)
}

fn dry_run(desk: &mut Desk, json: bool, stdout: &mut Stdout) -> Result<ExitCode> {
    match desk.preview()? {
        Ok(Some(preview)) if json => stdout.json(&json!({"plan": preview.plan, "reply": preview.reply}))?,
        Ok(Some(Preview { plan, reply })) => {
            show(&plan, stdout)?;
            stdout.line(&format!("\nto write this: memory-consolidate --apply {}", quoted(&reply)))?;
        }
        Ok(None) => desk.reporter.warn("nothing waits that may be asked about now"),
        Err(Why::Spent(why)) => desk.reporter.warn(&format!("{why}; {} entries wait", desk.waiting()?)),
        Err(Why::NotStarted(why) | Why::Agent(why) | Why::Reply(why)) => return Err(Error::api(why)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The plan, for a person.
fn show(plan: &Plan, stdout: &mut Stdout) -> Result<()> {
    if plan.notes.is_empty() {
        stdout.line("nothing would be written")?;
    }
    for note in &plan.notes {
        let what = match &note.update {
            Some(id) => format!("update {id}"),
            None => format!("new note {}", note.id),
        };
        stdout.line(&format!("{what} ({}): {}", note.scope, note.title))?;
        if !note.summary.is_empty() {
            stdout.line(&format!("  {}", note.summary))?;
        }
        if !note.tags.is_empty() {
            stdout.line(&format!("  {}", note.tags.join(" ")))?;
        }
        for line in note.body.lines() {
            stdout.line(&format!("  | {line}"))?;
        }
    }
    for warning in &plan.warnings {
        stdout.line(&format!("warning: {warning}"))?;
    }
    Ok(())
}
