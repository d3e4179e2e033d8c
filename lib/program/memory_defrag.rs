//! `memory-defrag`: notes are put in order, through the LLM command; then AGENTS.md.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, at_most_one, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::signal;
use crate::memory::defrag::Defrag;
use crate::memory::defrag::host::{DefragHost, Summary};
use crate::memory::defrag::plan::Planned;
use crate::memory::defrag::show;
use crate::memory::defrag::undo::{self, Undone};
use crate::memory::pipeline::runner::{Applied, Run, Runner};
use crate::memory::pipeline::saved::Kind;
use crate::memory::pipeline::{Ending, Failure};
use crate::memory::section::Outcome;
use crate::program::pipeline::{Beginning, COMMAND_HINT, Opened, Opening, open, print_question, quoted};
use crate::store::batch::Batches;
use crate::store::change::Preview;
use crate::store::proposal::Proposal;
use crate::store::topics::Topics;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-defrag",
    caption: "reorganise the notes, then refresh AGENTS.md",
    usage: &[
        "memory-defrag [--force] [--allow-loss] [--json] [--quiet]",
        "memory-defrag --dry-run | --prompt | --apply FILE | --undo",
    ],
    commands: &[],
    flags: &[
        flag("dry-run", "ask the LLM, show the plan, change nothing"),
        flag("prompt", "print the next prompt; --apply takes the reply"),
        value("apply", "FILE", "apply a reply from FILE, or from stdin (-)"),
        flag("undo", "undo the last defrag"),
        flag("force", "ask even if nothing has changed"),
        flag("allow-loss", "allow losing facts, and archiving more than one note in ten"),
        flag("json", "print the result as one JSON object"),
        flag("quiet", "print no progress and no summary"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "The LLM merges, splits, renames, retags, rewrites and archives notes, and decides which are hot, warm or \
           cold. It is shown what has changed since the last defrag. Nothing is deleted. If nothing has changed since the last defrag, no call is made.\n\n    \
           memory-defrag --prompt | claude -p | memory-defrag --apply -",
    sections: &[
        (
            "CHECKS",
            "An operation is dropped, and the reason is reported, if it names a note that was not shown or has changed \
             since, if its note is already in another merge, split, rewrite or archive, if it archives or cools a \
             pinned note, or if it merges notes of different scope or repository. It is also dropped if the new text \
             loses links, paths, numbers, addresses or identifiers of the old one (1 in 100 may go) or three quarters \
             of its words, except for facts that the reply names as gone, because a newer note contradicts them. At most one \
             note in ten is archived in a run. --allow-loss lifts these last limits.",
        ),
        (
            "WHAT WAITS",
            "Of your notes (global, pinned, written or edited by hand, or accepted in memory-review) a defrag changes \
             tier and rank, and may join whole sentences of several of them. Whatever else would change them waits for \
             memory-review. So does a text with an address, a flag or a command that is in none of the notes that it is \
             made of. The summary counts these changes: N to review.",
        ),
        (
            "UNDO",
            "--undo restores every note, byte for byte, to what it was before the last run that changed something; \
             reads that were counted since stay counted. If one of these notes has changed since, nothing is restored \
             and its file is named. The LLM is not asked about the restored notes again until one changes, or with \
             --force.",
        ),
        (
            "CALLS",
            "Each call shows notes of one scope and repository: those that have changed since the last defrag, and \
             their likely duplicates, links and notes with the same tags. The first defrag and --force show all notes. \
             If they do not fit into one call, they are shown in groups, and one more call decides what is hot. What \
             waits longest goes first. A run that was killed continues where it was. If calls about the same notes \
             fail twice in a row, these notes are skipped for 3 days, then for 7, then for 30. A changed note, another llm.command, --prompt or --force \
             ends the wait.",
        ),
        (
            "EXIT STATUS",
            "0: success, nothing to do, the limit of calls is reached, or another run is active. 1: a file could not be \
             written, or a target of AGENTS.md could not be refreshed. 2: the configuration is wrong, or no LLM command \
             is set. 3: the LLM command failed, or its reply cannot be used; it changed no note.",
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
    let opened = match open(&beginning, env, &reporter)? {
        Opening::Opened(opened) => opened,
        Opening::Busy(busy) if args.what == What::Undo => {
            return Err(Error::busy(busy).hint("try again when it is done"));
        }
        Opening::Busy(busy) => {
            reporter.warn(&format!("{busy}; nothing done"));
            return print_busy(&args, stdout);
        }
    };
    let kind = match args.what {
        What::Run | What::Undo => Kind::Run,
        What::DryRun => Kind::DryRun,
        What::Prompt | What::Apply(_) => Kind::Hand,
    };
    let run = opened.run(ABOUT.name, kind, args.quiet, env, &reporter);
    let topics = Topics::at(&opened.root);
    let notes = Preview::over(&topics, run.is_dry());
    // What a crash left of an undoing comes first, whatever is asked for.
    let undone = if args.what == What::DryRun { None } else { undo::finish(&notes, &run)? };
    match &args.what {
        What::DryRun if opened.config.llm.command.is_none() => {
            Err(Error::config("a dry run asks the LLM, and no LLM command is set").hint(COMMAND_HINT))
        }
        What::DryRun => dry_run(&mut runner(run, notes, &opened, &args), &args, stdout),
        What::Prompt => {
            let question = runner(run, notes, &opened, &args).prompt()?;
            if question.is_none() {
                reporter.warn(NOTHING);
            }
            print_question(question.as_ref(), args.json, stdout)?;
            Ok(ExitCode::SUCCESS)
        }
        What::Undo => take_back(undone, runner(run, notes, &opened, &args), &args, stdout),
        What::Run | What::Apply(_) => {
            defrag(&mut runner(run, notes, &opened, &args), opened.reply.as_deref(), &args, stdout)
        }
    }
}

const NOTHING: &str = "nothing has changed since the last defrag (--force asks anyway)";

type Defragmentation<'a> = Runner<'a, DefragHost<'a, Preview<'a, Topics>>>;

fn runner<'a>(
    run: Run<'a>,
    notes: Preview<'a, Topics>,
    opened: &'a Opened,
    args: &Args,
) -> Defragmentation<'a> {
    let machine = Defrag {
        redactor: &opened.redactor,
        max_prompt_bytes: opened.config.llm.max_prompt(),
        allows_loss: args.allow_loss,
    };
    Runner::new(run, DefragHost { machine, notes, is_forced: args.force, summary: Summary::default() })
}

/// A run, or a reply that somebody brings; then the summary, and what its end means to who called it.
fn defrag(
    runner: &mut Defragmentation,
    reply: Option<&str>,
    args: &Args,
    stdout: &mut Stdout,
) -> Result<ExitCode> {
    let ending = match reply {
        None => runner.run()?,
        Some(reply) => {
            let Applied { parts_left } = runner.apply(reply, |_, _| Ok(()))?;
            if parts_left > 0 && !args.quiet {
                let parts = if parts_left == 1 { "1 part is" } else { &format!("{parts_left} parts are") };
                runner.run.reporter.warn(&format!("{parts} still to be asked about; go on with --prompt"));
            }
            Ending::Completed
        }
    };
    let (done, reporter) = (&runner.host.summary, runner.run.reporter);
    // Where nothing could be asked there is nothing to sum up.
    let is_unable = ending == Ending::Failed(Failure::NoCommand);
    if !is_unable || args.json || !done.made.is_empty() {
        summary(done, &ending, args, stdout)?;
    }
    match ending {
        Ending::Idle | Ending::Completed => targets(done, reporter),
        Ending::Failed(Failure::NoCommand) | Ending::Stopped(Failure::NoCommand) => {
            Err(Error::config("notes have changed, and no LLM command is set to put them in order")
                .hint(COMMAND_HINT))
        }
        Ending::Failed(Failure::Spent(why))
        | Ending::Paused(Failure::Spent(why))
        | Ending::Stopped(Failure::Spent(why)) => {
            reporter.warn(&format!("{why}; the next run goes on"));
            targets(done, reporter)
        }
        Ending::Failed(failure) | Ending::Paused(failure) | Ending::Stopped(failure) => {
            let so_far = match done.made.is_empty() {
                true => "it changed no note",
                false => "what earlier calls changed stands",
            };
            Err(Error::api(failure.to_string()).hint(so_far))
        }
    }
}

/// The notes are in order; is AGENTS.md?
fn targets(done: &Summary, reporter: &Reporter) -> Result<ExitCode> {
    let mut faults = done.targets.iter().filter_map(|outcome| {
        let error = outcome.standing.as_ref().err()?;
        Some(error.line())
    });
    match faults.next() {
        None => Ok(ExitCode::SUCCESS),
        Some(fault) => {
            faults.for_each(|further| reporter.warn(&further));
            Err(Error::io(fault).hint("the notes are in order; afterwards run memory-agents-md"))
        }
    }
}

fn print_busy(args: &Args, stdout: &mut Stdout) -> Result<ExitCode> {
    match args.what {
        What::Prompt => print_question(None, args.json, stdout)?,
        _ if args.json => stdout.json(&result(&Summary::default(), Some("busy")))?,
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The result as a program reads it.
fn result(done: &Summary, stopped: Option<&str>) -> Value {
    let mut object = json!({
        "operations": done.made.iter().map(operation).collect::<Vec<_>>(),
        "dropped": done.dropped,
        "proposals": done.proposals.iter().map(proposal).collect::<Vec<_>>(),
        "warnings": done.warnings,
        "remarks": done.remarks,
        "agentsMd": outcomes(&done.targets),
        "stopped": stopped,
    });
    for (name, count) in show::numbers(done.made.iter()) {
        object[name] = count.into();
    }
    object
}

fn summary(done: &Summary, ending: &Ending, args: &Args, stdout: &mut Stdout) -> Result<()> {
    if args.json {
        let stopped = match ending {
            Ending::Idle | Ending::Completed | Ending::Failed(Failure::NoCommand) => None,
            Ending::Failed(failure) | Ending::Paused(failure) | Ending::Stopped(failure) => {
                Some(failure.to_string())
            }
        };
        return stdout.json(&result(done, stopped.as_deref()));
    }
    if args.quiet {
        return Ok(());
    }
    let dropped = match done.dropped.len() {
        0 => String::new(),
        count => format!(", {count} dropped"),
    };
    stdout.line(&format!("{}{dropped}", show::counts(done.made.iter(), done.proposals.len())))
}

/// Without the files' bytes.
fn operation(planned: &Planned) -> Value {
    json!({
        "op": planned.op, "from": planned.from, "into": planned.into, "reason": planned.reason, "lost": planned.lost,
        "gone": planned.gone,
    })
}

/// Without the text: that is what `memory-review` shows.
fn proposal(proposal: &Proposal) -> Value {
    let title = proposal.entry.as_ref().map(|entry| &entry.title);
    json!({
        "id": proposal.id, "op": proposal.op, "note": proposal.note, "title": title, "reasons": proposal.reasons,
    })
}

fn outcomes(targets: &[Outcome]) -> Vec<Value> {
    let outcome = |outcome: &Outcome| {
        let status = outcome.standing.as_ref().map_or("failed", |standing| standing.as_str());
        let error = outcome.standing.as_ref().err().map(Error::line);
        json!({"path": outcome.path.to_string_lossy(), "repo": outcome.repo, "status": status, "error": error})
    };
    targets.iter().map(outcome).collect()
}

/// Takes the last defrag back. What a crash left of an undoing is what was asked for, and no reason to take back one
/// more.
fn take_back(
    undone: Option<Undone>,
    mut runner: Defragmentation,
    args: &Args,
    stdout: &mut Stdout,
) -> Result<ExitCode> {
    let undone = match undone {
        Some(undone) => undone,
        None => {
            runner.finish_writing()?;
            undo::undo(&runner.host.notes, &runner.run)?
        }
    };
    let Undone { batch, notes, targets: outcomes_of } = undone;
    if args.json {
        stdout.json(&json!({"undone": batch, "notes": notes, "agentsMd": outcomes(&outcomes_of)}))?;
    } else if !args.quiet {
        let notes = if notes == 1 { "1 note is".to_owned() } else { format!("{notes} notes are") };
        stdout.line(&format!("{notes} as before {batch}"))?;
    }
    targets(&Summary { targets: outcomes_of, ..Summary::default() }, runner.run.reporter)
}

/// What a run would do, with the store left as it is.
fn dry_run(runner: &mut Defragmentation, args: &Args, stdout: &mut Stdout) -> Result<ExitCode> {
    let (ending, previewed) = runner.dry_run()?;
    let (done, reporter) = (&runner.host.summary, runner.run.reporter);
    let failure = ending.failure();
    if args.json {
        stdout.json(&json!({
            "operations": done.made.iter().map(operation).collect::<Vec<_>>(),
            "dropped": done.dropped,
            "proposals": done.proposals.iter().map(proposal).collect::<Vec<_>>(),
            "warnings": done.warnings,
            "remarks": done.remarks,
            "notes": done.total,
            "reply": previewed.reply,
            "stopped": failure.map(Failure::to_string),
        }))?;
    } else if let Some(reply) = &previewed.reply {
        for line in
            show::lines(&done.made, &done.dropped, &done.proposals, &done.warnings, &done.remarks, done.total)
        {
            stdout.line(&line)?;
        }
        // Without them it would not be this.
        let loss = if args.allow_loss { " --allow-loss" } else { "" };
        let config =
            args.config.as_deref().map_or_else(String::new, |path| format!(" --config {}", quoted(path)));
        let what = match previewed.parts {
            0 | 1 => "to do this".to_owned(),
            parts => format!("to do what the first of {parts} calls gave, and ask about the rest again"),
        };
        stdout.line(&format!("\n{what}: memory-defrag --apply {}{loss}{config}", quoted(reply)))?;
    } else if failure.is_none() {
        reporter.warn(NOTHING);
    }
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(Failure::Spent(why)) => {
            reporter.warn(why);
            Ok(ExitCode::SUCCESS)
        }
        Some(failure) => Err(Error::api(failure.to_string())),
    }
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
