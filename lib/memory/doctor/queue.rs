//! Queue entries that wait or have failed, ledgers, and unfinished batches.

use crate::base::error::Error;
use crate::base::file;
use crate::base::lookup::on_path;
use crate::memory::budget::CallBudget;
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::pipeline::saved::{Kind, Progress};
use crate::store::batch::{Batch, Batches};
use crate::store::journal::entry::Retrieval;
use crate::store::journal::{Journal, QueuedEntry};
use crate::store::ledger::{DefragLedger, Sessions, Tries};
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

pub(super) fn entries(cx: &CheckContext) -> Vec<Finding> {
    let mut findings = Vec::new();
    let inbox = cx.root.inbox();
    // `directory` reports a queue that cannot be read.
    let (waiting, unreadable) = Journal::entries_in(&inbox).unwrap_or_default();
    for entry in &unreadable {
        let mend = "correct it in an editor, or move it away";
        let what = format!("is {}", entry.error.message());
        findings.push(Finding::error(Check::Queue, &entry.path, what, mend));
    }
    let now = cx.env.now();
    let tries = Tries::load(cx.root).unwrap_or_default();
    let (past, new): (Vec<&QueuedEntry>, Vec<&QueuedEntry>) =
        waiting.iter().partition(|waiting| waiting.entry.context.past);
    for old in new {
        let is_session = old.entry.session().is_some();
        let age = now.duration_since(old.entry.timestamp);
        if age <= (if is_session { OLD_SESSION } else { OLD }) {
            continue;
        }
        let (why, mend) = reason(old, is_session, &tries, cx);
        let days = age.as_hours() / 24;
        let what = format!("has waited for {days} days; {why}");
        findings.push(Finding::warning(Check::Queue, &old.path, what, mend));
    }
    findings.extend(past_sessions(&past, cx));
    findings.extend(readers(&waiting, cx));
    let failed = inbox.join(".failed");
    for id in Journal::at(cx.root).failed().unwrap_or_default() {
        let what = format!("has failed for good: {}", failure(&failed.join(format!("{id}.error.json"))));
        let mend = "memory-consolidate --retry-failed tries again";
        findings.push(Finding::warning(Check::Failed, &failed.join(format!("{id}.json")), what, mend));
    }
    findings
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
fn past_sessions(past: &[&QueuedEntry], cx: &CheckContext) -> Option<Finding> {
    let oldest = past.iter().map(|waiting| waiting.entry.timestamp).min()?;
    let age = cx.env.now().duration_since(oldest);
    if age <= OLD {
        return None;
    }
    let days = age.as_hours() / 24;
    let wait =
        if past.len() == 1 { "1 past session waits" } else { &format!("{} past sessions wait", past.len()) };
    let llm = &cx.config.llm;
    let what = format!(
        "{wait}, the oldest for {days} days; they come after what is new, within {} calls a run and {} a day",
        llm.max_calls_per_run, llm.max_calls_per_day
    );
    let mend = "raise llm.maxCallsPerRun and llm.maxCallsPerDay, or run memory-consolidate more often";
    Some(Finding::warning(Check::Queue, &cx.root.inbox(), what, mend))
}

/// Sessions that wait although they cannot be read, or although no LLM command is set.
fn readers(waiting: &[QueuedEntry], cx: &CheckContext) -> Vec<Finding> {
    let mut findings = Vec::new();
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
        let words = command.and_then(|harness| shlex::split(&harness.read_command));
        if let Some(program) = words.and_then(|words| words.into_iter().next()) {
            *of_program.entry(program).or_default() += 1;
        }
    }
    let inbox = cx.root.inbox();
    if sessions > 0 && cx.config.llm.command.is_none() {
        let what = format!("{} for an LLM command, but none is set", wait(sessions));
        let mend = "set llm.command; memory-config init finds one";
        findings.push(Finding::warning(Check::Queue, &inbox, what, mend));
    }
    for (program, count) in of_program {
        if on_path(OsStr::new(&program), cx.env).is_none() {
            let what = format!("{} to be read with \"{program}\", which is not on PATH", wait(count));
            let mend = "install it, or set the harness's readCommand";
            findings.push(Finding::error(Check::Queue, &inbox, what, mend));
        }
    }
    findings
}

fn wait(sessions: usize) -> String {
    if sessions == 1 { "1 session waits".to_owned() } else { format!("{sessions} sessions wait") }
}

/// What the error file of a failed entry says.
fn failure(path: &Path) -> String {
    let content = file::read(path, CAP).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let error = content.as_ref().and_then(|content| content.get("error")).and_then(Value::as_str);
    error.unwrap_or("the reason is unknown").to_owned()
}

/// The files in which the pipelines remember things. One that cannot be read stops them.
pub(super) fn ledgers(cx: &CheckContext) -> Vec<Finding> {
    let (root, state, caps) = (cx.root, cx.root.state(), &cx.config.llm);
    let budget = CallBudget::of(root, caps.max_calls_per_run.max(1), caps.max_calls_per_day);
    let all = [
        ("calls.jsonl", budget.spent(cx.env.now()).err()),
        ("sessions.json", Sessions::load(root).err()),
        ("tries.json", Tries::load(root).err()),
        ("defrag.json", DefragLedger::load(root).err()),
    ];
    let mut findings = Vec::new();
    findings.extend(postponed(cx));
    let now = cx.env.now();
    let beyond = [
        ("tries.json", Tries::load(root).map_or(0, |tries| tries.beyond(now))),
        ("defrag.json", DefragLedger::load(root).map_or(0, |ledger| ledger.beyond(now))),
    ];
    for (name, count) in beyond.into_iter().filter(|(_, count)| *count > 0) {
        let those = if count == 1 { "1 pause ends".to_owned() } else { format!("{count} pauses end") };
        let what = format!("{those} later than any can: the clock was ahead once");
        let mend = "nothing to do: the next run does not wait for it";
        findings.push(Finding::warning(Check::Ledger, &state.join(name), what, mend));
    }
    if let Ok(bytes) = budget.unreadable(now)
        && bytes > 0
    {
        let what = format!("{bytes} bytes cannot be read, and count as calls of each day");
        let mend = "move the file away once no more calls are wanted today";
        findings.push(Finding::warning(Check::Ledger, &state.join("calls.jsonl"), what, mend));
    }
    for (name, error) in all {
        if let Some(error) = error {
            findings.push(unreadable(Check::Ledger, &state.join(name), &error));
        }
    }
    findings
}

fn unreadable(check: Check, file: &Path, error: &Error) -> Finding {
    let mend = error.next_step().unwrap_or("make it a file that you can read");
    Finding::error(check, file, error.message(), mend)
}

/// Notes that memory-defrag skips for a while, because calls about them failed several times.
fn postponed(cx: &CheckContext) -> Option<Finding> {
    let ledger = DefragLedger::load(cx.root).ok()?;
    let (count, failure) = ledger.postponed(cx.env.now())?;
    let (tries, error, until) =
        (failure.tries, &failure.error, failure.not_before?.strftime("%Y-%m-%d %H:%M"));
    let notes = if count == 1 { "1 note".to_owned() } else { format!("{count} notes") };
    let what = format!("memory-defrag failed {tries} times on {notes}; next try after {until} UTC: {error}");
    let mend = "correct what the error names; memory-defrag --force tries now";
    Some(Finding::warning(Check::Failed, &cx.root.state().join("defrag.json"), what, mend))
}

pub(super) fn batches(cx: &CheckContext) -> Vec<Finding> {
    let is_running = file::holder(&cx.root.run_lock()).is_ok_and(|holder| holder.is_some());
    let root = cx.root;
    let all = [("memory-consolidate", Batches::of_queue(root)), ("memory-defrag", Batches::of_defrag(root))];
    let mut findings = Vec::new();
    for (program, batches) in all {
        for batch in batches.all().unwrap_or_default() {
            findings.extend(unfinished_batch(&batch, program, is_running, cx.env.now()));
        }
    }
    findings
}

fn unfinished_batch(batch: &Batch, program: &str, is_running: bool, now: Timestamp) -> Option<Finding> {
    let progress = match Progress::of(batch) {
        Ok(progress) => progress,
        Err(error) => return Some(unreadable(Check::Batch, &batch.dir, &error)),
    };
    // The last defrag is kept for --undo.
    if progress.as_ref().is_some_and(|progress| progress.is_over) {
        return None;
    }
    let claimed = match batch.claimed().map_or(0, |claimed| claimed.len()) {
        0 => String::new(),
        1 => ", with 1 queue entry in it".to_owned(),
        count => format!(", with {count} queue entries in it"),
    };
    let what = match progress {
        Some(progress) if progress.kind != Kind::Run => {
            // A person may be about to apply the reply.
            if !progress.is_old(now) {
                return None;
            }
            let age = now.duration_since(progress.begun);
            format!("was prepared by --prompt {} hours ago and not applied{claimed}", age.as_hours())
        }
        _ if is_running => return None,
        _ => format!("belongs to a run that did not finish{claimed}"),
    };
    let mend = format!("the next {program} carries on with it");
    Some(Finding::warning(Check::Batch, &batch.dir, what, &mend))
}
