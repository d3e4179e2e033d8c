//! Queue entries that wait or have failed, ledgers, and unfinished batches.

use crate::base::command_line::program;
use crate::base::file;
use crate::base::lookup::on_path;
use crate::base::text::counted;
use crate::memory::budget::CallBudget;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::pipeline::call::Kind;
use crate::memory::pipeline::host::BatchProgress;
use crate::store::batch::{Batch, Batches};
use crate::store::journal::entry::Retrieval;
use crate::store::journal::{Journal, QueuedEntry};
use crate::store::ledger::{AskedNotes, DefragLedger, Pause, Sessions, Tries};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// Timers run every few hours; a note that waits for longer is stuck.
const OLD: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A session of a person that waits for longer is missed by then.
const OLD_SESSION: SignedDuration = SignedDuration::from_hours(3 * 24);
/// The largest error file of an entry that is read, in bytes.
const CAP: u64 = 1 << 20;
const UNREADABLE: &str = "make it a file that you can read";

pub(super) fn entries(cx: &CheckContext, to: &mut Diagnosis) {
    let inbox = cx.root.inbox();
    // `directory` reports a queue that cannot be read.
    let (waiting, unreadable) = Journal::entries_in(&inbox).unwrap_or_default();
    for entry in &unreadable {
        let mend = "correct it in an editor, or move it away";
        to.error(Check::Queue, &entry.path, format!("is {}", entry.why), mend);
    }
    let tries = Tries::load(cx.root).unwrap_or_default();
    let (past, new): (Vec<&QueuedEntry>, Vec<&QueuedEntry>) =
        waiting.iter().partition(|waiting| waiting.entry.context.past);
    for old in new {
        let is_session = old.entry.session().is_some();
        let age = cx.env.now().duration_since(old.entry.timestamp);
        if age > (if is_session { OLD_SESSION } else { OLD }) {
            let (why, mend) = reason(old, is_session, &tries, cx);
            let what = format!("has waited for {} days; {why}", age.as_hours() / 24);
            to.warning(Check::Queue, &old.path, what, mend);
        }
    }
    // Those that are old are named one by one.
    let failed = waiting.iter().filter_map(|waiting| tries.pause(&waiting.id, cx.env.now()));
    if let Some(pause) = Pause::of_all(failed) {
        let mend = "correct what the error names, then run: memory-consolidate --retry-failed";
        to.warning(Check::Queue, &inbox, pause.to_string(), mend);
    }
    past_sessions(&past, cx, to);
    readers(&waiting, cx, to);
    let failed = inbox.join(".failed");
    for id in Journal::at(cx.root).failed().unwrap_or_default() {
        let what = format!("has failed for good: {}", failure(&failed.join(format!("{id}.error.json"))));
        let mend = "memory-consolidate --retry-failed tries again";
        to.warning(Check::Failed, &failed.join(format!("{id}.json")), what, mend);
    }
}

/// Why an entry still waits, and what to do.
fn reason(old: &QueuedEntry, is_session: bool, tries: &Tries, cx: &CheckContext) -> (String, &'static str) {
    let llm = &cx.config.llm;
    if let Some(why) = tries.error(&old.id) {
        return (
            format!("the last try failed: {why}"),
            "correct what the error names, then run memory-consolidate",
        );
    }
    if is_session && llm.command.is_none() {
        return ("no LLM command is set".to_owned(), "set llm.command; memory-config init finds one");
    }
    let budget = CallBudget::of(cx.root, llm.max_calls_per_run.max(1), llm.max_calls_per_day);
    if is_session && let Ok(Some(spent)) = budget.spent(cx.env.now()) {
        return (spent, "raise llm.maxCallsPerDay, or wait: the next day's calls go on");
    }
    ("it was never tried".to_owned(), "run memory-consolidate, or install a timer: memory-install-cron")
}

/// Sessions of the past may wait for long: the caps meter them out.
fn past_sessions(past: &[&QueuedEntry], cx: &CheckContext, to: &mut Diagnosis) {
    let Some(oldest) = past.iter().map(|waiting| waiting.entry.timestamp).min() else { return };
    let age = cx.env.now().duration_since(oldest);
    if age <= OLD {
        return;
    }
    let llm = &cx.config.llm;
    let what = format!(
        "{}, the oldest for {} days; they come after what is new, within {} calls a run and {} a day",
        counted(past.len(), "past session waits", "past sessions wait"),
        age.as_hours() / 24,
        llm.max_calls_per_run,
        llm.max_calls_per_day
    );
    let mend = "raise llm.maxCallsPerRun and llm.maxCallsPerDay, or run memory-consolidate more often";
    to.warning(Check::Queue, &cx.root.inbox(), what, mend);
}

/// Sessions that wait although they cannot be read, or although no LLM command is set.
fn readers(waiting: &[QueuedEntry], cx: &CheckContext, to: &mut Diagnosis) {
    let mut sessions = 0;
    let mut of_program: BTreeMap<String, usize> = BTreeMap::new();
    for entry in waiting {
        let retrieval = &entry.entry.retrieval;
        let harness = match retrieval {
            Retrieval::Inline { .. } => continue,
            Retrieval::ReadCommand { .. } => Some(entry.entry.harness.name()),
            _ => retrieval.spec().map(|spec| spec.name),
        };
        sessions += 1;
        let command = harness.and_then(|name| cx.config.harnesses.get(name));
        if let Some(program) = command.and_then(|harness| program(&harness.read_command)) {
            *of_program.entry(program).or_default() += 1;
        }
    }
    let inbox = cx.root.inbox();
    let wait = |count| counted(count, "session waits", "sessions wait");
    if sessions > 0 && cx.config.llm.command.is_none() {
        let what = format!("{} for an LLM command, but none is set", wait(sessions));
        to.warning(Check::Queue, &inbox, what, "set llm.command; memory-config init finds one");
    }
    for (program, count) in of_program {
        if on_path(OsStr::new(&program), cx.env).is_none() {
            let what = format!("{} to be read with \"{program}\", which is not on PATH", wait(count));
            to.error(Check::Queue, &inbox, what, "install it, or set the harness's readCommand");
        }
    }
}

/// What the error file of a failed entry says.
pub fn failure(path: &Path) -> String {
    let content = file::read(path, CAP).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let error = content.as_ref().and_then(|content| content.get("error")).and_then(Value::as_str);
    error.unwrap_or("the reason is unknown").to_owned()
}

/// The files in which the pipelines remember things. One that cannot be read stops them.
pub(super) fn ledgers(cx: &CheckContext, to: &mut Diagnosis) {
    let (root, now, caps) = (cx.root, cx.env.now(), &cx.config.llm);
    let file = |name: &str| root.state().join(name);
    let budget = CallBudget::of(root, caps.max_calls_per_run.max(1), caps.max_calls_per_day);
    let (tries, defrag) = (Tries::load(root), DefragLedger::load(root));
    if let Ok(ledger) = &defrag {
        postponed(ledger, cx, to);
    }
    let beyond = [
        ("tries.json", tries.as_ref().map_or(0, |tries| tries.beyond(now))),
        ("defrag.json", defrag.as_ref().map_or(0, |ledger| ledger.beyond(now))),
    ];
    for (name, count) in beyond.into_iter().filter(|(_, count)| *count > 0) {
        let those = counted(count, "pause ends", "pauses end");
        let what = format!("{those} later than any can: the clock was ahead once");
        to.warning(Check::Ledger, &file(name), what, "nothing to do: the next run does not wait for it");
    }
    if let Ok(bytes) = budget.unreadable(now)
        && bytes > 0
    {
        let what = format!("{bytes} bytes cannot be read, and count as calls of each day");
        let mend = "move the file away once no more calls are wanted today";
        to.warning(Check::Ledger, &file("calls.jsonl"), what, mend);
    }
    let all = [
        ("calls.jsonl", budget.spent(now).err()),
        ("sessions.json", Sessions::load(root).err()),
        ("asked.json", AskedNotes::load(root).err()),
        ("tries.json", tries.err()),
        ("defrag.json", defrag.err()),
    ];
    for (name, error) in all {
        if let Some(error) = error {
            to.failure(Check::Ledger, &file(name), &error, UNREADABLE);
        }
    }
}

/// Notes that memory-defrag skips for a while, because calls about them failed several times.
fn postponed(ledger: &DefragLedger, cx: &CheckContext, to: &mut Diagnosis) {
    let Some((count, failure)) = ledger.postponed(cx.env.now()) else { return };
    let Some(not_before) = failure.not_before else { return };
    let what = format!(
        "memory-defrag failed {} times on {}; next try after {} UTC: {}",
        failure.tries,
        counted(count, "note", "notes"),
        not_before.strftime("%Y-%m-%d %H:%M"),
        failure.error
    );
    let mend = "correct what the error names; memory-defrag --force tries now";
    to.warning(Check::Failed, &cx.root.state().join("defrag.json"), what, mend);
}

pub(super) fn batches(cx: &CheckContext, to: &mut Diagnosis) {
    let is_running = file::holder(&cx.root.run_lock()).is_ok_and(|holder| holder.is_some());
    let root = cx.root;
    let all = [("memory-consolidate", Batches::of_queue(root)), ("memory-defrag", Batches::of_defrag(root))];
    for (program, batches) in all {
        for aside in batches.set_aside().unwrap_or_default() {
            let what = "was set aside, because it could not be read; its queue entries wait again";
            let mend = "remove it, unless you want the replies in it";
            to.warning(Check::Batch, &aside.dir, what, mend);
        }
        for batch in batches.all().unwrap_or_default() {
            match batch.load::<BatchProgress>() {
                Err(error) => to.failure(Check::Batch, &batch.dir, &error, UNREADABLE),
                Ok(progress) => {
                    if let Some(what) = unfinished(&batch, progress, is_running, cx.env.now()) {
                        let mend =
                            format!("the next {program} carries on with it, or gives its entries back");
                        to.warning(Check::Batch, &batch.dir, what, mend);
                    }
                }
            }
        }
    }
}

/// What is told of a batch that nobody works at.
fn unfinished(
    batch: &Batch,
    progress: Option<BatchProgress>,
    is_running: bool,
    now: Timestamp,
) -> Option<String> {
    let claimed = match batch.claimed().map_or(0, |claimed| claimed.len()) {
        0 => String::new(),
        count => format!(", with {} in it", counted(count, "queue entry", "queue entries")),
    };
    match progress {
        // The last defrag is kept for --undo.
        Some(progress) if progress.is_over => None,
        Some(progress) if progress.kind != Kind::Run => {
            // A person may be about to apply the reply.
            let hours = now.duration_since(progress.begun).as_hours();
            let what = format!("was prepared by --prompt {hours} hours ago and not applied{claimed}");
            progress.is_old(now).then_some(what)
        }
        _ if is_running => None,
        _ => Some(format!("belongs to a run that did not finish{claimed}")),
    }
}
