//! `memory-consolidate`: what waits in the queue becomes notes, through the LLM command.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, apart, at_most_one, flag, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::text::whole_lines;
use crate::base::{signal, stdin};
use crate::memory::consolidate::Consolidate;
use crate::memory::consolidate::heard::Heard;
use crate::memory::consolidate::host::{ConsolidateHost, refresh};
use crate::memory::consolidate::plan::{Change, PlannedNote};
use crate::memory::consolidate::queue::{Queue, claim_for, retry_failed, waiting};
use crate::memory::consolidate::work::{Action, Waiting, Written};
use crate::memory::pipeline::runner::{Applied, Host, Run, Runner};
use crate::memory::pipeline::saved::Kind;
use crate::memory::pipeline::{Ending, Failure};
use crate::program::notes::piped_in;
use crate::program::pipeline::{Beginning, COMMAND_HINT, Opened, Opening, open, print_question, quoted};
use crate::store::batch::Batches;
use crate::store::change::Preview;
use crate::store::proposal::Proposal;
use crate::store::topics::Topics;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "memory-consolidate",
    caption: "turn the queue into notes",
    usage: &[
        "memory-consolidate [--limit N] [--retry-failed] [--json] [--quiet] [-]",
        "memory-consolidate --dry-run | --prompt | --apply FILE",
    ],
    commands: &[],
    flags: &[
        value("limit", "N", "process at most N queue entries"),
        flag("dry-run", "ask the LLM, show the plan, change nothing"),
        flag("prompt", "take entries from the queue and print one prompt"),
        value("apply", "FILE", "apply a reply from FILE, or from stdin (-)"),
        flag("retry-failed", "first put the entries in inbox/.failed back into the queue"),
        flag("json", "print the result as one JSON object"),
        flag("quiet", "print no progress and no summary"),
        value("config", "FILE", "use this configuration file"),
    ],
    more: "llm.command, a setting, gets the prompt on stdin and prints the reply on stdout. Without it, captured notes \
           are written as they are and sessions wait. \
           llm.maxCallsPerRun and llm.maxCallsPerDay limit the calls; at a limit the run \
           stops, and the next one continues. A run also picks up what is captured while it works. New sessions come before past ones, and parts of long sessions take turns. With \"-\", only the entries on stdin are processed:\n\n    \
           memory-capture --title T --body B --json | memory-consolidate - --json\n    \
           memory-consolidate --prompt | claude -p | memory-consolidate --apply -",
    sections: &[
        (
            "DRY RUN",
            "--dry-run makes the calls that a run would make, and prints every new note, and a diff for every update. \
             Its replies are kept for 24 hours and used again by the next run that would send the same prompt.",
        ),
        (
            "FAILURES",
            "If a session cannot be read within 60 seconds, if reading it kills the run, or if its call fails, it is tried again after one hour and after six hours. After \
             the third failure it is moved to inbox/.failed, with a file that gives the reason. If a call about several \
             entries fails, the next run asks about each of them separately. A run that was killed is continued by the \
             next one. It waits for an LLM command that is still running, and never pays twice for the same reply.",
        ),
        (
            "EXIT STATUS",
            "0: success, nothing to do, the limit of calls is reached, or another run is active. 1: a file could not be \
             written. 2: the configuration is wrong, or sessions wait and no LLM command is set. 3: the LLM command \
             failed, its reply cannot be used, or an entry failed; nothing in the queue is lost.",
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
    /// Only the entries that are piped in.
    stdin: bool,
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
            Value(word) if word == "-" => args.stdin = true,
            _ => return Err(arg.unexpected().into()),
        }
    }
    if let Some((_, what)) = at_most_one(chosen)? {
        args.what = what;
    }
    if let (What::DryRun, true) = (&args.what, args.retry_failed) {
        return Err(apart("--dry-run", "--retry-failed").hint("a dry run changes nothing"));
    }
    if let (What::Apply(_), true) = (&args.what, args.stdin) {
        return Err(apart("--apply", "-").hint("a reply says itself which entries it is about"));
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
    // Read to its end before anything is locked: the program before us in the pipe may still be writing.
    let only = if args.stdin { Some(queue_ids(&reporter)?) } else { None };
    let opened = match open(&beginning, env, &reporter)? {
        Opening::Opened(opened) => opened,
        Opening::Busy(busy) => {
            reporter.warn(&format!("{busy}; nothing done"));
            return print_busy(&args, stdout);
        }
    };
    if args.retry_failed {
        retry_failed(&opened.root, &reporter)?;
    }
    let kind = match args.what {
        What::Run => Kind::Run,
        What::DryRun => Kind::DryRun,
        What::Prompt | What::Apply(_) => Kind::Hand,
    };
    let run = opened.run(ABOUT.name, kind, args.quiet, env, &reporter);
    let queue = Queue::new(args.limit.unwrap_or(usize::MAX), only);
    let topics = Topics::at(&opened.root);
    let notes = Preview::over(&topics, run.is_dry());
    match &args.what {
        What::DryRun if opened.config.llm.command.is_none() => {
            Err(Error::config("a dry run asks the LLM, and no LLM command is set").hint(COMMAND_HINT))
        }
        What::DryRun => dry_run(&mut runner(run, notes, queue, &opened), &args, stdout),
        What::Prompt => {
            let question = runner(run, notes, queue, &opened).prompt()?;
            if question.is_none() {
                reporter.warn(NOTHING);
            }
            print_question(question.as_ref(), args.json, stdout)?;
            Ok(ExitCode::SUCCESS)
        }
        What::Run | What::Apply(_) => {
            consolidate(&mut runner(run, notes, queue, &opened), opened.reply.as_deref(), &args, stdout)
        }
    }
}

const NOTHING: &str = "nothing waits that may be asked about now";

type Consolidation<'a> = Runner<'a, ConsolidateHost<'a, Preview<'a, Topics>>>;

fn runner<'a>(
    run: Run<'a>,
    notes: Preview<'a, Topics>,
    queue: Queue,
    opened: &'a Opened,
) -> Consolidation<'a> {
    let machine =
        Consolidate { redactor: &opened.redactor, max_prompt_bytes: opened.config.llm.max_prompt() };
    Runner::new(
        run,
        ConsolidateHost {
            machine,
            notes,
            queue,
            heard: Heard::default(),
            max_note_bytes: usize::try_from(opened.config.llm.max_note_bytes).unwrap_or(usize::MAX),
            is_refreshed: false,
            looked_up: None,
            written: Vec::new(),
            waiting: Vec::new(),
            planned: Vec::new(),
            warnings: Vec::new(),
        },
    )
}

/// A run, or a reply that somebody brings; then the summary, and what its end means to who called it.
fn consolidate(
    runner: &mut Consolidation,
    reply: Option<&str>,
    args: &Args,
    stdout: &mut Stdout,
) -> Result<ExitCode> {
    let ending = match reply {
        None => {
            let ending = runner.run()?;
            // A day has passed, perhaps, and with it what holds until then.
            if !runner.host.is_refreshed {
                refresh(&runner.run);
            }
            ending
        }
        Some(reply) => {
            let root = runner.run.root;
            let Applied { parts_left } =
                runner.apply(reply, |batch, state| claim_for(batch, state.sources(), root))?;
            if parts_left > 0 && !args.quiet {
                let parts = if parts_left == 1 {
                    "1 part of it is"
                } else {
                    &format!("{parts_left} parts of it are")
                };
                runner.run.reporter.warn(&format!("{parts} still to be asked about; go on with --prompt"));
            }
            Ending::Completed
        }
    };
    let (run, host) = (&runner.run, &mut runner.host);
    let waiting = waiting(run.root)?;
    summary(host, &ending, waiting, args, stdout)?;
    if reply.is_some() {
        return Ok(ExitCode::SUCCESS);
    }
    match ending {
        Ending::Failed(Failure::Spent(why)) | Ending::Paused(Failure::Spent(why)) => {
            let entries = if waiting == 1 { "1 entry waits" } else { &format!("{waiting} entries wait") };
            run.reporter.warn(&format!("{why}; {entries}"));
            Ok(ExitCode::SUCCESS)
        }
        Ending::Failed(failure) | Ending::Paused(failure) | Ending::Stopped(failure) => {
            Err(Error::api(failure.to_string()).hint("nothing is lost; what waits is tried again"))
        }
        Ending::Idle | Ending::Completed if !host.queue.failed.is_empty() => {
            let what = match host.queue.failed.len() {
                1 => "1 entry failed".to_owned(),
                count => format!("{count} entries failed"),
            };
            Err(Error::api(what).hint("nothing is lost; it is tried again, or is in inbox/.failed"))
        }
        Ending::Idle | Ending::Completed => {
            let sessions = match run.config.llm.command {
                Some(_) => 0,
                None => host.queue.sessions_without_llm(run)?,
            };
            let sessions = match sessions {
                0 => return Ok(ExitCode::SUCCESS),
                1 => "1 session waits".to_owned(),
                count => format!("{count} sessions wait"),
            };
            Err(Error::config(format!("{sessions} for an LLM, and no command is set")).hint(COMMAND_HINT))
        }
    }
}

/// The entries on stdin, as memory-capture --json prints them: only these are taken.
fn queue_ids(reporter: &Reporter) -> Result<BTreeSet<String>> {
    let text = stdin::read(&piped_in(16 << 20), reporter)?.unwrap_or_default();
    let wrong = |why: &str| {
        Error::usage(format!("stdin has something that is no queue entry: {why}"))
            .hint("pipe in what memory-capture --json prints")
    };
    let mut ids = BTreeSet::new();
    for object in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
        let object = object.map_err(|e| wrong(&e.to_string()).because(e))?;
        // What was not queued is not an entry.
        if object.get("queued") == Some(&Value::Bool(false)) {
            continue;
        }
        let id = object.get("id").and_then(Value::as_str).ok_or_else(|| wrong("it has no string \"id\""))?;
        ids.insert(id.to_owned());
    }
    Ok(ids)
}

fn print_busy(args: &Args, stdout: &mut Stdout) -> Result<ExitCode> {
    match args.what {
        What::Prompt => print_question(None, args.json, stdout)?,
        What::DryRun if args.json => stdout.json(&preview(&[], &[], &[], Some("busy")))?,
        _ if args.json => stdout.json(&result(&[], &[], 0, &[], None, Some("busy")))?,
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The result as a program reads it.
fn result(
    written: &[Written],
    proposed: &[Waiting],
    processed: usize,
    failed: &[(String, String)],
    waiting: Option<usize>,
    stopped: Option<&str>,
) -> Value {
    let failed: Vec<_> = failed.iter().map(|(entry, why)| json!({"entry": entry, "error": why})).collect();
    json!({
        "processed": processed,
        "written": written.len(),
        "failed": failed,
        "waiting": waiting,
        "notes": written,
        "proposals": proposed,
        "stopped": stopped,
    })
}

fn summary(
    host: &ConsolidateHost<Preview<Topics>>,
    ending: &Ending,
    waiting: usize,
    args: &Args,
    stdout: &mut Stdout,
) -> Result<()> {
    let queue = &host.queue;
    if args.json {
        let stopped = match ending {
            Ending::Failed(Failure::Spent(why)) | Ending::Paused(Failure::Spent(why)) => Some(why.as_str()),
            _ => None,
        };
        return stdout.json(&result(
            &host.written,
            &host.waiting,
            queue.processed,
            &queue.failed,
            Some(waiting),
            stopped,
        ));
    }
    if args.quiet {
        return Ok(());
    }
    let retired = host.written.iter().filter(|note| note.action == Action::Retire).count();
    let (processed, written) = (queue.processed, host.written.len() - retired);
    let entries = if processed == 1 { "entry" } else { "entries" };
    let mut line = format!("{processed} {entries} processed, {written} kb entries written");
    if retired > 0 {
        line.push_str(&format!(", {retired} retired"));
    }
    let (withdrawn, proposed): (Vec<&Waiting>, Vec<&Waiting>) =
        host.waiting.iter().partition(|waiting| waiting.withdrawn.is_some());
    if !proposed.is_empty() {
        line.push_str(&format!(", {} to review", proposed.len()));
    }
    if !withdrawn.is_empty() {
        line.push_str(&format!(", {} withdrawn", withdrawn.len()));
    }
    if !queue.failed.is_empty() {
        line.push_str(&format!(", {} failed", queue.failed.len()));
    }
    if waiting > 0 {
        line.push_str(&format!(", {waiting} waiting"));
    }
    stdout.line(&line)
}

/// What a run would do, batch by batch, with the store left as it is.
fn dry_run(runner: &mut Consolidation, args: &Args, stdout: &mut Stdout) -> Result<ExitCode> {
    let mut replies = Vec::new();
    let mut parts = Vec::new();
    let ending = loop {
        let (ending, previewed) = runner.dry_run()?;
        let goes_on = ending == Ending::Completed && runner.host.begins_again();
        parts.extend(previewed.reply.as_ref().map(|_| previewed.parts));
        replies.extend(previewed.reply);
        if !goes_on {
            break ending;
        }
    };
    let host = &runner.host;
    let failure = ending.failure();
    let stopped = match failure {
        Some(Failure::Spent(why)) => Some(why),
        Some(failure) if host.planned.is_empty() => return Err(Error::api(failure.to_string())),
        _ => None,
    };
    if args.json {
        stdout.json(&preview(&host.planned, &host.warnings, &replies, stopped.map(String::as_str)))?;
    } else {
        match (replies.is_empty() && host.planned.is_empty(), stopped) {
            (true, None) => runner.run.reporter.warn(NOTHING),
            (true, Some(_)) => {}
            (false, _) => show(&host.planned, &host.warnings, replies.iter().zip(parts), stdout)?,
        }
    }
    if let Some(why) = stopped {
        let waiting = waiting(runner.run.root)?;
        let entries = if waiting == 1 { "1 entry waits" } else { &format!("{waiting} entries wait") };
        runner.run.reporter.warn(&format!("{why}; {entries}"));
    }
    match failure {
        Some(failure) if stopped.is_none() => Err(Error::api(failure.to_string())),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What a dry run found, as a program reads it.
fn preview(planned: &[Change], warnings: &[String], replies: &[PathBuf], stopped: Option<&str>) -> Value {
    let (mut notes, mut retired, mut proposals, mut withdrawn) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for change in planned {
        match change {
            Change::Note(note) => notes.push(note),
            Change::Retire(note) => retired.push(note),
            Change::Propose(proposal) => proposals.push(proposal),
            Change::Withdraw(proposal) => withdrawn.push(proposal),
        }
    }
    let plan = json!({
        "notes": notes, "retired": retired, "proposals": proposals, "withdrawn": withdrawn, "warnings": warnings,
    });
    json!({"plan": plan, "replies": replies, "stopped": stopped})
}

/// The plan, for a person.
fn show<'a>(
    planned: &[Change],
    warnings: &[String],
    replies: impl Iterator<Item = (&'a PathBuf, usize)>,
    stdout: &mut Stdout,
) -> Result<()> {
    if planned.is_empty() {
        stdout.line("nothing would be written")?;
    }
    for change in planned {
        match change {
            Change::Note(note) => show_note(note, stdout)?,
            Change::Retire(note) => {
                stdout.line(&format!("retire {}: {}", note.id, note.title))?;
                stdout.line(&format!("  {}", note.reason))?;
            }
            Change::Propose(proposal) => show_proposal(proposal, stdout)?,
            Change::Withdraw(proposal) => {
                stdout.line(&format!("withdraw {}: {}", proposal.id, proposal.title))?;
                stdout.line(&format!("  {}", proposal.reason))?;
            }
        }
    }
    for warning in warnings {
        stdout.line(&format!("warning: {warning}"))?;
    }
    stdout.line("")?;
    for (reply, parts) in replies {
        let what = match parts {
            0 | 1 => "to write this".to_owned(),
            _ => format!("to write what the first of its {parts} parts gave, and ask about the others again"),
        };
        stdout.line(&format!("{what}: memory-consolidate --apply {}", quoted(reply)))?;
    }
    Ok(())
}

fn show_note(note: &PlannedNote, stdout: &mut Stdout) -> Result<()> {
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
    if let Some(until) = note.until {
        stdout.line(&format!("  until {until}"))?;
    }
    for line in body_lines(note) {
        stdout.line(&format!("  {line}"))?;
    }
    Ok(())
}

/// What would wait for review, and why.
fn show_proposal(proposal: &Proposal, stdout: &mut Stdout) -> Result<()> {
    let note = proposal.note.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    let title = proposal.entry.as_ref().map(|entry| format!(": {}", entry.title)).unwrap_or_default();
    stdout.line(&format!("for review: {}{note}{title}", proposal.op))?;
    for reason in &proposal.reasons {
        stdout.line(&format!("  {reason}"))?;
    }
    let body = proposal.entry.iter().flat_map(|entry| entry.body.lines());
    for line in body {
        stdout.line(&format!("  | {line}"))?;
    }
    Ok(())
}

/// A new note's text, or how an update differs from what it replaces.
fn body_lines(note: &PlannedNote) -> Vec<String> {
    let Some(before) = &note.before else {
        return note.body.lines().map(|line| format!("| {line}")).collect();
    };
    let after = whole_lines(&note.body);
    let diff = TextDiff::from_lines(before.as_str(), &after);
    let line = |change: similar::Change<&str>| {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        format!("{sign} {}", change.value().trim_end_matches(['\n', '\r']))
    };
    diff.iter_all_changes().map(line).collect()
}
