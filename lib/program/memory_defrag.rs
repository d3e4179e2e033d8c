//! `memory-defrag`: notes are put in order, through the LLM command; then AGENTS.md.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, at_most_one, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::signal;
use crate::memory::call::{Kind, Why};
use crate::memory::defrag::desk::{Desk, Tally};
use crate::memory::defrag::plan::Planned;
use crate::memory::defrag::run::{Ended, Preview};
use crate::memory::defrag::show;
use crate::memory::section::Outcome;
use crate::program::pipeline::{Beginning, Bench, COMMAND_HINT, quoted};
use crate::store::batch::Batches;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) const ABOUT: About = About {
    name: "memory-defrag",
    caption: "put the notes in order, then refresh AGENTS.md",
    usage: &[
        "memory-defrag [--force] [--allow-loss] [--json] [--quiet]",
        "memory-defrag --dry-run | --prompt | --apply FILE | --undo",
    ],
    commands: &[],
    flags: &[
        flag("dry-run", "ask, show what would be done, change nothing"),
        flag("prompt", "print the next prompt, to ask by hand"),
        value("apply", "FILE", "carry out a reply, from FILE or stdin (-)"),
        flag("undo", "take the last defrag back"),
        flag("force", "ask although nothing has changed"),
        flag("allow-loss", "let facts go, and archive more than one note in ten"),
        flag("json", "print the result as one JSON object"),
        flag("quiet", "no progress and no summary"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "The model merges, splits, renames, retags, rewrites and archives notes, and decides what is hot, warm \
           or cold. Nothing is deleted. Without a change since the last defrag there is no call.\n\n    \
           memory-defrag --prompt | claude -p | memory-defrag --apply -",
    sections: &[
        (
            "CHECKS",
            "An operation is dropped, with a word why, if it names a note that was not shown or has changed since, \
             if its note is in another merge, split, rewrite or archive already, if it archives or cools a pinned \
             note, if it merges notes of different scope or repository, or if what it writes lacks links, paths, \
             numbers, addresses or identifiers of what it replaces (1 in 100 may go), or three in four of its words. \
             A run archives at most one note in ten. --allow-loss lifts these last two.",
        ),
        (
            "UNDO",
            "--undo puts every note back as it was before the last run that changed something, byte for byte; reads \
             that were counted since stay counted. If one of these notes was changed since, nothing is touched and \
             its file is named. What was taken back is not asked about again until a note changes, or with --force.",
        ),
        (
            "CALLS",
            "Each call shows the notes of one scope and repository alone, all of them if they fit; else groups of related \
             ones, and a last call says what is hot. Only whose notes have changed is asked about. A run that \
             was killed goes on where it was. What calls have failed for twice in a row is let alone for three days, \
             then for seven, then for thirty; a changed note, another llm.command, --prompt and --force go ahead.",
        ),
        (
            "EXIT STATUS",
            "0: done, nothing to do, the cap of calls is reached, or another run is at work. 1: a file could not be \
             written, or a target of AGENTS.md could not be refreshed. 2: the configuration is wrong, or there is \
             no LLM command. 3: the LLM command failed, or its reply cannot be used; no note is changed by it.",
        ),
    ],
};

#[derive(Debug, Default)]
struct Args {
    what: What,
    force: bool,
    allow_loss: bool,
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
    Undo,
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
            Long("dry-run") => chosen.push(("--dry-run", What::DryRun)),
            Long("prompt") => chosen.push(("--prompt", What::Prompt)),
            Long("apply") => chosen.push(("--apply", What::Apply(p.path()?))),
            Long("undo") => chosen.push(("--undo", What::Undo)),
            Long("force") => args.force = true,
            Long("allow-loss") => args.allow_loss = true,
            Long("json") => args.json = true,
            Long("quiet") => args.quiet = true,
            Long("config") => args.config = Some(p.path()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if let Some((name, what)) = at_most_one(chosen)? {
        let takes_force = matches!(what, What::DryRun | What::Prompt);
        if args.force && !takes_force {
            return Err(apart(name, "--force"));
        }
        if args.allow_loss && matches!(what, What::Prompt | What::Undo) {
            return Err(apart(name, "--allow-loss").hint("it belongs to --apply"));
        }
        args.what = what;
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
        is_by_hand: matches!(args.what, What::Prompt | What::Apply(_) | What::Undo),
        batches: Batches::of_defrag,
    };
    let bench = match Bench::begin(&beginning, env, &reporter)? {
        Ok(bench) => bench,
        Err(busy) if args.what == What::Undo => {
            return Err(Error::io(busy).hint("try again when it is done"));
        }
        Err(busy) => {
            reporter.warn(&format!("{busy}; nothing done"));
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut desk = Desk {
        config: &bench.config,
        root: &bench.root,
        env,
        reporter: &reporter,
        redactor: &bench.redactor,
        caller: bench.caller(ABOUT.name, env, args.quiet),
        kind: match args.what {
            What::Run | What::Undo => Kind::Run,
            What::DryRun => Kind::Dry,
            What::Prompt | What::Apply(_) => Kind::Hand,
        },
        is_forced: args.force,
        allows_loss: args.allow_loss,
        batch: None,
        undone: None,
        tally: Tally::default(),
    };
    match (&args.what, &bench.reply) {
        (What::Prompt, _) => match desk.prompt_by_hand()? {
            Some(prompt) => stdout.text(&prompt)?,
            None => reporter.warn(NOTHING),
        },
        (What::DryRun, _) if bench.config.llm.command.is_none() => {
            return Err(Error::config("a dry run asks, and no LLM command is set").hint(COMMAND_HINT));
        }
        (What::DryRun, _) => return dry_run(&mut desk, &args, stdout),
        (What::Undo, _) => {
            let (count, batch) = desk.undo()?;
            undone(&desk, count, &batch, &args, stdout)?;
            return targets(&desk);
        }
        (What::Run | What::Apply(_), Some(reply)) => {
            let parts = desk.apply(reply)?;
            if parts > 0 && !args.quiet {
                reporter.warn(&format!("{parts} more parts are to be asked about; go on with --prompt"));
            }
            summary(&desk, None, &args, stdout)?;
            return targets(&desk);
        }
        (What::Run | What::Apply(_), None) => {
            let ended = desk.run()?;
            // Where nothing was asked there is nothing to sum up.
            if !matches!(ended, Ended::NoCommand) || args.json || !desk.tally.made.is_empty() {
                summary(&desk, Some(&ended), &args, stdout)?;
            }
            return close(&desk, ended);
        }
    }
    Ok(ExitCode::SUCCESS)
}

const NOTHING: &str = "nothing has changed since the last defrag (--force asks all the same)";

/// What a run's end means to who called it.
fn close(desk: &Desk, ended: Ended) -> Result<ExitCode> {
    match ended {
        Ended::Done => targets(desk),
        Ended::Spent(why) => {
            desk.reporter.warn(&format!("{why}; the next run goes on"));
            targets(desk)
        }
        Ended::AgentFailed(why) => {
            let so_far = if desk.tally.made.is_empty() {
                "no note is changed by it"
            } else {
                "what earlier calls changed stands"
            };
            Err(Error::api(why).hint(so_far))
        }
        Ended::NoCommand => {
            Err(Error::config("notes have changed, and no LLM command is set to put them in order")
                .hint(COMMAND_HINT))
        }
    }
}

/// The notes are in order; is AGENTS.md?
fn targets(desk: &Desk) -> Result<ExitCode> {
    let mut faults = desk.tally.targets.iter().filter_map(|outcome| {
        let error = outcome.standing.as_ref().err()?;
        Some(error.line())
    });
    match faults.next() {
        None => Ok(ExitCode::SUCCESS),
        Some(fault) => {
            for further in faults {
                desk.reporter.warn(&further);
            }
            Err(Error::io(fault).hint("the notes are in order; afterwards run memory-agents-md"))
        }
    }
}

fn summary(desk: &Desk, ended: Option<&Ended>, args: &Args, stdout: &mut Stdout) -> Result<()> {
    let tally = &desk.tally;
    if args.json {
        let stopped = match ended {
            Some(Ended::Spent(why) | Ended::AgentFailed(why)) => Some(why),
            _ => None,
        };
        let mut object = json!({
            "operations": tally.made.iter().map(operation).collect::<Vec<_>>(),
            "dropped": tally.dropped,
            "warnings": tally.warnings,
            "remarks": tally.remarks,
            "agentsMd": outcomes(tally),
            "stopped": stopped,
        });
        for (name, count) in show::numbers(tally.made.iter()) {
            object[name] = count.into();
        }
        return stdout.json(&object);
    }
    if args.quiet {
        return Ok(());
    }
    let dropped = match tally.dropped.len() {
        0 => String::new(),
        count => format!(", {count} dropped"),
    };
    stdout.line(&format!("{}{dropped}", show::counts(tally.made.iter())))
}

/// Without the files' bytes.
fn operation(planned: &Planned) -> Value {
    json!({
        "op": planned.op, "from": planned.from, "into": planned.into, "reason": planned.reason, "lost": planned.lost,
    })
}

fn outcomes(tally: &Tally) -> Vec<Value> {
    let outcome = |outcome: &Outcome| {
        let status = outcome.standing.as_ref().map_or("failed", |standing| standing.as_str());
        let error = outcome.standing.as_ref().err().map(Error::line);
        json!({"path": outcome.path.to_string_lossy(), "repo": outcome.repo, "status": status, "error": error})
    };
    tally.targets.iter().map(outcome).collect()
}

fn undone(desk: &Desk, count: usize, batch: &str, args: &Args, stdout: &mut Stdout) -> Result<()> {
    if args.json {
        return stdout.json(&json!({"undone": batch, "notes": count, "agentsMd": outcomes(&desk.tally)}));
    }
    if args.quiet {
        return Ok(());
    }
    let notes = if count == 1 { "1 note is".to_owned() } else { format!("{count} notes are") };
    stdout.line(&format!("{notes} as before {batch}"))
}

fn dry_run(desk: &mut Desk, args: &Args, stdout: &mut Stdout) -> Result<ExitCode> {
    match desk.preview()? {
        Ok(Some(preview)) if args.json => {
            let Preview { plan, total, reply, more } = preview;
            stdout.json(&json!({
                "operations": plan.operations.iter().map(operation).collect::<Vec<_>>(),
                "dropped": plan.dropped,
                "warnings": plan.warnings,
                "remark": plan.remark,
                "notes": total,
                "moreCalls": more,
                "reply": reply,
            }))?;
        }
        Ok(Some(Preview { plan, total, reply, more })) => {
            for line in show::lines(&plan, total) {
                stdout.line(&line)?;
            }
            if more > 0 {
                stdout.line(&format!("{more} more calls are to be made for the rest"))?;
            }
            // Without them it would not be this.
            let loss = if args.allow_loss { " --allow-loss" } else { "" };
            let config =
                args.config.as_deref().map_or_else(String::new, |path| format!(" --config {}", quoted(path)));
            stdout.line(&format!("\nto do this: memory-defrag --apply {}{loss}{config}", quoted(&reply)))?;
        }
        Ok(None) => desk.reporter.warn(NOTHING),
        Err(Why::Spent(why)) => desk.reporter.warn(&why),
        Err(Why::NotStarted(why) | Why::Agent(why) | Why::Reply(why)) => return Err(Error::api(why)),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Args> {
        parse(&mut lexopt::Parser::from_args(words).into())
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for words in [
            &["--dry-run", "--prompt"][..],
            &["--undo", "--force"],
            &["--apply", "x", "--force"],
            &["--prompt", "--allow-loss"],
            &["--undo", "--apply", "x"],
            &["--limit", "3"],
            &["x"],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
        for words in
            [&["--force", "--dry-run"][..], &["--allow-loss", "--apply", "-"], &["--force", "--prompt"]]
        {
            assert!(parsed(words).is_ok(), "{words:?}");
        }
    }
}
