//! `memory-consolidate`: what waits in the queue becomes notes, through the LLM command.

use crate::base::cli::{self, About, Args, Context, ExitCode, FlagRule, Words, count, flag, path};
use crate::base::command_line::quoted;
use crate::base::error::{Error, Result};
use crate::base::stdin;
use crate::base::text::{counted, further, one_line, whole_lines};
use crate::memory::capture::sweep::sweep;
use crate::memory::consolidate::Consolidate;
use crate::memory::consolidate::host::{ConsolidateHost, refresh};
use crate::memory::consolidate::plan::{PlannedChange, Waiting};
use crate::memory::consolidate::queue::{Queue, retry_failed, waiting};
use crate::memory::consolidate::readings::Readings;
use crate::memory::consolidate::write::{Action, Made};
use crate::memory::pipeline::runner::{Previewed, Runner};
use crate::memory::pipeline::{Failure, WalkEnd};
use crate::memory::review::diff_lines;
use crate::memory::section::Which;
use crate::program::notes::{CONFIG, Printed};
use crate::program::pipeline::{COMMAND_HINT, Mode, Opened, open, print_question, tell_parts_left};
use crate::store::batch::Batches;
use crate::store::change::Preview;
use crate::store::health::{Health, TroubleKind};
use crate::store::journal::Journal;
use crate::store::topics::Topics;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

pub(super) const ABOUT: About = About {
    name: "memory-consolidate",
    caption: "turn the queue into notes",
    usage: &[
        "memory-consolidate [--limit N] [--retry-failed] [--json] [--quiet] [-]",
        "memory-consolidate --dry-run | --prompt | --apply FILE",
    ],
    flags: &[
        count("limit", "process at most N queue entries"),
        flag("dry-run", "ask the LLM, show the plan, change nothing"),
        flag("prompt", "take entries from the queue and print one prompt"),
        path("apply", "FILE", "apply a reply from FILE, or from stdin (-)"),
        flag("retry-failed", "first put the entries in inbox/.failed back into the queue"),
        flag("json", "print the result as one JSON object"),
        flag("quiet", "print no progress and no summary"),
        CONFIG,
    ],
    words: Words::Stdin,
    rules: &[
        FlagRule::AtMostOne(&["--dry-run", "--prompt", "--apply"]),
        FlagRule::Apart("--dry-run", &["--retry-failed"], "a dry run changes nothing"),
        FlagRule::Apart("--apply", &["-"], "a reply says itself which entries it is about"),
        FlagRule::Apart("--apply", &["--limit"], "a reply is carried out as a whole"),
    ],
    text: include_str!("memory_consolidate.md"),
    ..About::BLANK
};

const NOTHING: &str = "nothing waits that may be asked about now";

pub(super) type Consolidation<'a> = Runner<'a, ConsolidateHost<'a, Preview<'a, Topics>>>;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<()> {
    cx.watch_signals();
    let mode = Mode::of(args);
    // Read to its end before anything is locked: the program before us in the pipe may still be writing.
    let only = if args.words().is_empty() { None } else { Some(queue_ids(cx)?) };
    // Whoever names entries, brings the reply, or sits there wants it now.
    let is_at_once =
        only.is_some() || args.has("retry-failed") || mode == Mode::Prompt || stdin::is_terminal();
    let Some(opened) = open(args, mode, Batches::of_queue, cx)? else { return print_busy(mode, cx) };
    if args.has("retry-failed") {
        retry_failed(&opened.root, &cx.reporter)?;
    }
    if let Some(only) = &only {
        for id in only.difference(&waiting(&opened.root)?) {
            cx.reporter.warn(&format!("no entry of the queue has the id \"{}\"", one_line(id, 80)));
        }
    }
    let is_usual = mode == Mode::Run && only.is_none();
    if is_usual {
        queue_unheard(&opened, args.has("quiet"), cx);
    }
    let topics = Topics::at(&opened.root);
    let queue = Queue::new(args.number("limit").unwrap_or(usize::MAX), only, is_at_once);
    let mut runner = runner(&opened, mode, &topics, queue);
    match mode {
        Mode::DryRun => {
            if let Some(why) = dry_run(&mut runner, how_to_write, cx)? {
                warn_of_waiting(&why, waiting(&opened.root)?.len(), cx);
            }
            Ok(())
        }
        Mode::Prompt => print_question(runner.prompt()?.as_ref(), NOTHING, cx),
        Mode::Run | Mode::Apply | Mode::Undo => {
            let done = consolidate(&mut runner, opened.reply.as_deref(), args.has("quiet"), cx);
            if is_usual {
                note_health(&runner, &done);
            }
            done
        }
    }
}

/// What takes these entries of the queue through the pipeline.
pub(super) fn runner<'a>(
    opened: &'a Opened,
    mode: Mode,
    topics: &'a Topics,
    queue: Queue,
) -> Consolidation<'a> {
    let run = opened.run_as(mode);
    let pipeline =
        Consolidate { redactor: &opened.redactor, max_prompt_bytes: opened.config.llm.max_prompt() };
    let host = ConsolidateHost {
        pipeline,
        notes: Preview::over(topics, run.is_dry()),
        queue,
        readings: Readings::default(),
        max_note_bytes: usize::try_from(opened.config.llm.max_note_bytes).unwrap_or(usize::MAX),
        is_refreshed: false,
        looked_up: None,
        made: Made::default(),
        planned: Vec::new(),
    };
    Runner::new(run, host)
}

/// Sessions that were killed come first, so that this run has them. Trouble with them is not the run's.
fn queue_unheard(opened: &Opened, is_quiet: bool, cx: &Context) {
    match sweep(&opened.config, &opened.root, &cx.env, &cx.reporter) {
        Ok(_) if is_quiet => {}
        Ok(told) => told.iter().for_each(|told| cx.reporter.warn(told)),
        Err(error) => cx.reporter.warn(&format!("sessions without a hook are not queued: {}", error.line())),
    }
}

/// Keeps what stands in the way of the queue, for the doctor and the next session.
fn note_health(runner: &Consolidation, done: &Result<()>) {
    let (run, queue) = (&runner.run, &runner.host.queue);
    let unread = Journal::entries_in(&run.root.inbox().join(".failed")).unwrap_or_default().0;
    let unread = unread.iter().filter(|failed| failed.entry.session().is_some()).count();
    let waits = waiting(run.root).is_ok_and(|ids| !ids.is_empty());
    let why = match done {
        Err(error) => Some(error.line()),
        Ok(()) => queue.pause.as_ref().map(ToString::to_string),
    };
    let why = why.map(|why| run.redactor.cleaned(&why));
    Health::change(run.root, |health| {
        health.set(TroubleKind::Unread, unread, "see inbox/.failed", run.env.now());
        match &why {
            _ if queue.processed > 0 || !waits => health.end(TroubleKind::Waiting),
            Some(why) => health.add(TroubleKind::Waiting, 1, why, run.env.now()),
            // The calls of the day are spent, or nothing was to be taken.
            None => {}
        }
    });
}

/// A run to its end.
pub(super) fn ask_and_write(runner: &mut Consolidation) -> Result<WalkEnd> {
    let ending = runner.run()?;
    // A day has passed, perhaps, and with it what holds until then.
    if !runner.host.is_refreshed {
        refresh(Which::All, &runner.run);
    }
    Ok(ending)
}

/// The cap that ended a run.
pub(super) fn spent(ending: &WalkEnd) -> Option<&str> {
    match ending.failure() {
        Some(Failure::Spent(why)) => Some(why),
        _ => None,
    }
}

/// A call that failed.
pub(super) fn error_of(failure: &Failure) -> Error {
    let error = Error::api(failure.to_string());
    match failure {
        Failure::NotStarted(_) => error.hint("install it, or correct llm.command"),
        _ => error,
    }
}

/// A run, or a reply that somebody brings; then the summary, and what its end means to who called it.
fn consolidate(
    runner: &mut Consolidation,
    reply: Option<&str>,
    is_quiet: bool,
    cx: &mut Context,
) -> Result<()> {
    let ending = match reply {
        None => ask_and_write(runner)?,
        Some(reply) => {
            tell_parts_left(runner.apply(reply)?, is_quiet, cx);
            WalkEnd::Completed
        }
    };
    let (run, host) = (&runner.run, &mut runner.host);
    let waiting = waiting(run.root)?.len();
    if cx.json {
        cx.stdout.json(&result(host, waiting, spent(&ending)))?;
    } else if !is_quiet {
        cx.stdout.line(&summary(host, waiting))?;
    }
    let failed = host.queue.failed.len();
    if let (Some(pause), 0, 0) = (&host.queue.pause, host.queue.processed, failed) {
        cx.reporter.warn(&format!("{pause}; to try now: memory-consolidate --retry-failed"));
    }
    match ending.failure() {
        _ if reply.is_some() => Ok(()),
        Some(Failure::Spent(why)) => {
            warn_of_waiting(why, waiting, cx);
            Ok(())
        }
        Some(failure @ Failure::NotStarted(_)) => Err(Error::api(failure.to_string())
            .hint("install it, or correct llm.command; nothing is lost, and what waits is tried again")),
        Some(failure) => {
            Err(Error::api(failure.to_string()).hint("nothing is lost; what waits is tried again"))
        }
        None if failed > 0 => Err(Error::api(counted(failed, "entry failed", "entries failed"))
            .hint("nothing is lost; it is tried again, or is in inbox/.failed")),
        None if run.config.llm.command.is_some() => Ok(()),
        None => match host.queue.sessions_without_llm(run)? {
            0 => Ok(()),
            count => {
                let sessions = counted(count, "session waits", "sessions wait");
                Err(Error::config(format!("{sessions} for an LLM, and no command is set")).hint(COMMAND_HINT))
            }
        },
    }
}

fn warn_of_waiting(why: &str, waiting: usize, cx: &Context) {
    cx.reporter.warn(&format!("{why}; {}", counted(waiting, "entry waits", "entries wait")));
}

/// The entries on stdin: only these are taken.
fn queue_ids(cx: &Context) -> Result<BTreeSet<String>> {
    const ENTRIES: Printed =
        Printed { what: "queue entries", list: "entries", by: "memory-capture --json prints" };
    ENTRIES.ids_on_stdin(|word| Ok(word.to_owned()), cx).map(BTreeSet::from_iter)
}

fn print_busy(mode: Mode, cx: &mut Context) -> Result<()> {
    if !cx.json {
        return Ok(());
    }
    cx.stdout.json(&match mode {
        Mode::Prompt => return print_question(None, "", cx),
        Mode::DryRun => preview(&[], &[], &[], Some("busy")),
        Mode::Run | Mode::Apply | Mode::Undo => json!({
            "processed": 0, "written": 0, "failed": [], "waiting": null, "notes": [], "proposals": [],
            "stopped": "busy",
        }),
    })
}

/// The result as a program reads it.
pub(super) fn result(
    host: &ConsolidateHost<Preview<Topics>>,
    waiting: usize,
    stopped: Option<&str>,
) -> Value {
    let failed = host.queue.failed.iter();
    let failed: Vec<_> = failed.map(|(entry, why)| json!({"entry": entry, "error": why})).collect();
    json!({
        "processed": host.queue.processed,
        "written": host.made.written.len(),
        "failed": failed,
        "waiting": waiting,
        "notes": host.made.written,
        "proposals": host.made.waiting,
        "stopped": stopped,
    })
}

fn summary(host: &ConsolidateHost<Preview<Topics>>, waiting: usize) -> String {
    let processed = counted(host.queue.processed, "entry", "entries");
    let rest = further(&[(host.queue.failed.len(), "failed"), (waiting, "waiting")]);
    format!("{processed} processed, {}{rest}", written(host))
}

/// What was made of the entries, for a person.
pub(super) fn written(host: &ConsolidateHost<Preview<Topics>>) -> String {
    let of = |action: Action| host.made.written.iter().filter(|note| note.action == action).count();
    let (retired, confirmed) = (of(Action::Retire), of(Action::Confirm));
    let withdrawn = host.made.waiting.iter().filter(|waiting| waiting.withdrawn.is_some()).count();
    let entries = host.made.written.len() - retired - confirmed;
    let proposed = host.made.waiting.len() - withdrawn;
    let counts =
        [(retired, "retired"), (confirmed, "confirmed"), (proposed, "to review"), (withdrawn, "withdrawn")];
    format!("{entries} kb entries written{}", further(&counts))
}

/// What a run would do, batch by batch, with the store left as it is; and what a person does next. Returns
/// the cap that ended it.
pub(super) fn dry_run(
    runner: &mut Consolidation,
    next: fn(&[Previewed], &mut Context) -> Result<()>,
    cx: &mut Context,
) -> Result<Option<String>> {
    let (ending, previewed) = runner.dry_run()?;
    let ConsolidateHost { planned, made: Made { warnings, .. }, .. } = &runner.host;
    let stopped = spent(&ending);
    let failure = ending.failure().filter(|_| stopped.is_none());
    let failure = failure.map(error_of);
    if let (Some(_), []) = (&failure, &planned[..]) {
        return failure.map_or(Ok(None), Err);
    }
    if cx.json {
        cx.stdout.json(&preview(planned, warnings, &previewed, stopped))?;
    } else if !previewed.is_empty() || !planned.is_empty() {
        show(planned, warnings, cx)?;
        next(&previewed, cx)?;
    } else if stopped.is_none() {
        cx.reporter.warn(NOTHING);
    }
    failure.map_or(Ok(stopped.map(str::to_owned)), Err)
}

/// What a dry run found, as a program reads it.
fn preview(
    planned: &[PlannedChange],
    warnings: &[String],
    previewed: &[Previewed],
    stopped: Option<&str>,
) -> Value {
    let (mut notes, mut confirmed, mut retired, mut proposals, mut withdrawn) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for change in planned {
        match change {
            PlannedChange::Note(note) => notes.push(note),
            PlannedChange::Confirm(note) => confirmed.push(note),
            PlannedChange::Retire(note) => retired.push(note),
            PlannedChange::Propose(proposal) => proposals.push(proposal),
            PlannedChange::Withdraw(Waiting { id, op, note, title, withdrawn: reason }) => {
                withdrawn.push(json!({"id": id, "op": op, "note": note, "title": title, "reason": reason}));
            }
        }
    }
    let plan = json!({
        "notes": notes, "confirmed": confirmed, "retired": retired, "proposals": proposals, "withdrawn": withdrawn, "warnings": warnings,
    });
    let replies: Vec<&PathBuf> = previewed.iter().map(|batch| &batch.reply).collect();
    json!({"plan": plan, "replies": replies, "stopped": stopped})
}

/// The plan, for a person.
fn show(planned: &[PlannedChange], warnings: &[String], cx: &mut Context) -> Result<()> {
    if planned.is_empty() {
        cx.stdout.line("nothing would be written")?;
    }
    for change in planned {
        let (what, more) = described(change);
        cx.stdout.line(&what)?;
        more.iter().try_for_each(|line| cx.stdout.line(&format!("  {line}")))?;
    }
    warnings.iter().try_for_each(|warning| cx.stdout.line(&format!("warning: {warning}")))
}

fn how_to_write(previewed: &[Previewed], cx: &mut Context) -> Result<()> {
    cx.stdout.line("")?;
    for Previewed { reply, parts } in previewed {
        let what = match parts {
            0 | 1 => "to write this".to_owned(),
            _ => format!("to write what the first of its {parts} parts gave, and ask about the others again"),
        };
        cx.stdout
            .line(&format!("{what}: memory-consolidate --apply {}", quoted(&reply.to_string_lossy())))?;
    }
    Ok(())
}

/// What a change does, and the lines below that.
fn described(change: &PlannedChange) -> (String, Vec<String>) {
    let text = |body: &str| body.lines().map(|line| format!("| {line}")).collect::<Vec<_>>();
    match change {
        PlannedChange::Note(note) => {
            let what = match &note.update {
                Some(id) => format!("update {id}"),
                None => format!("new note {}", note.id),
            };
            let lines = [note.draft.summary.clone(), note.draft.tags.join(" ")]
                .into_iter()
                .filter(|line| !line.is_empty());
            let mut lines: Vec<String> = lines.collect();
            lines.extend(note.draft.until.map(|until| format!("until {until}")));
            // How an update differs from what it replaces.
            lines.extend(match &note.before {
                Some(before) => diff_lines(before, &whole_lines(&note.draft.body)),
                None => text(&note.draft.body),
            });
            (format!("{what} ({}): {}", note.draft.scope, note.draft.title), lines)
        }
        PlannedChange::Confirm(note) => (format!("confirm {}: {}", note.id, note.title), Vec::new()),
        PlannedChange::Retire(note) => {
            (format!("retire {}: {}", note.id, note.title), vec![note.reason.clone()])
        }
        // What would wait for review, and why.
        PlannedChange::Propose(proposal) => {
            let note = proposal.note.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
            let title = proposal.entry.as_ref().map(|entry| format!(": {}", entry.title)).unwrap_or_default();
            let body = proposal.entry.iter().flat_map(|entry| text(&entry.body));
            let lines = proposal.reasons.iter().cloned().chain(body).collect();
            (format!("for review: {}{note}{title}", proposal.op), lines)
        }
        PlannedChange::Withdraw(proposal) => (
            format!("withdraw {}: {}", proposal.id, proposal.title),
            proposal.withdrawn.iter().cloned().collect(),
        ),
    }
}
