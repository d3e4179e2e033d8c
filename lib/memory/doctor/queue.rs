//! What waits, what has failed, what was claimed and not seen to its end.

use crate::base::file;
use crate::base::lookup::on_path;
use crate::memory::budget::Budget;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::patient::Patient;
use crate::store::batch::{Batch, Batches};
use crate::store::journal::entry::Retrieval;
use crate::store::journal::{Journal, Waiting};
use crate::store::ledger::{Seen, Sessions, Tries};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// Timers come within hours; what waits for so long is waiting in vain.
const OLD: SignedDuration = SignedDuration::from_hours(7 * 24);
/// A batch that a person asked for is put back after so long.
const BY_HAND: SignedDuration = SignedDuration::from_hours(24);
/// The largest file that says why an entry failed, in bytes.
const CAP: u64 = 1 << 20;

pub(crate) fn look_at_entries(patient: &Patient) -> Vec<Finding> {
    let mut findings = Vec::new();
    let inbox = patient.root.inbox();
    // A directory that cannot be read is told elsewhere.
    let (waiting, unreadable) = Journal::entries_in(&inbox).unwrap_or_default();
    for entry in &unreadable {
        let mend = "mend it in an editor, or move it away";
        let what = format!("is {}", entry.error.message());
        findings.push(Finding::error(Check::Queue, &entry.path, what, mend));
    }
    let now = patient.env.now();
    for old in waiting.iter().filter(|waiting| now.duration_since(waiting.entry.timestamp) > OLD) {
        let days = now.duration_since(old.entry.timestamp).as_hours() / 24;
        let what = format!("waits for {days} days");
        findings.push(Finding::warning(
            Check::Queue,
            &old.path,
            what,
            "run memory-consolidate, or let a timer",
        ));
    }
    findings.extend(readers(&waiting, patient));
    let failed = inbox.join(".failed");
    for id in Journal::at(patient.root).failed().unwrap_or_default() {
        let what = format!("has failed for good: {}", why(&failed.join(format!("{id}.error.json"))));
        let mend = "memory-consolidate --retry-failed puts it back";
        findings.push(Finding::warning(Check::Failed, &failed.join(format!("{id}.json")), what, mend));
    }
    findings
}

/// Sessions wait that nothing can read, or nobody is to be asked about.
fn readers(waiting: &[Waiting], patient: &Patient) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut sessions = 0;
    let mut of_program: BTreeMap<String, usize> = BTreeMap::new();
    for entry in waiting {
        let harness = match &entry.entry.retrieval {
            Retrieval::AmpThread { .. } => Some("amp"),
            Retrieval::OpencodeSession { .. } => Some("opencode"),
            Retrieval::Inline { .. } => continue,
            _ => None,
        };
        sessions += 1;
        let command = harness.and_then(|name| patient.config.harnesses.get(name));
        let words = command.and_then(|harness| shlex::split(&harness.read_command));
        if let Some(program) = words.and_then(|words| words.into_iter().next()) {
            *of_program.entry(program).or_default() += 1;
        }
    }
    let inbox = patient.root.inbox();
    if sessions > 0 && patient.config.llm.command.is_none() {
        let what = format!("{} for an LLM command, and none is set", wait(sessions));
        let mend = "set llm.command; memory-config init finds one";
        findings.push(Finding::warning(Check::Queue, &inbox, what, mend));
    }
    for (program, count) in of_program {
        if on_path(OsStr::new(&program), patient.env).is_none() {
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

fn why(path: &std::path::Path) -> String {
    let said = file::read(path, CAP).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let error = said.as_ref().and_then(|said| said.get("error")).and_then(Value::as_str);
    error.unwrap_or("nothing says why").to_owned()
}

/// What the pipelines remember. One that cannot be read stops them.
pub(crate) fn look_at_ledgers(patient: &Patient) -> Vec<Finding> {
    let (root, state, caps) = (patient.root, patient.root.state(), &patient.config.llm);
    let budget = Budget::of(root, caps.max_calls_per_run.max(1), caps.max_calls_per_day);
    let all = [
        ("calls.jsonl", budget.allowance(patient.env.now()).err()),
        ("sessions.json", Sessions::load(root).err()),
        ("tries.json", Tries::load(root).err()),
        ("defrag.json", Seen::load(root).err()),
    ];
    let mut findings = Vec::new();
    findings.extend(resting(patient));
    for (name, error) in all {
        if let Some(error) = error {
            let mend = error.next_step().unwrap_or("make it a file that you can read").to_owned();
            findings.push(Finding::error(Check::Ledger, &state.join(name), error.message(), &mend));
        }
    }
    findings
}

/// What memory-defrag lets alone, because calls about it fail again and again.
fn resting(patient: &Patient) -> Option<Finding> {
    let seen = Seen::load(patient.root).ok()?;
    let (count, failure) = seen.resting(patient.env.now())?;
    let (notes, until) = (if count == 1 { "1 note" } else { &format!("{count} notes") }, failure.not_before);
    let (tries, why, until) = (failure.tries, &failure.error, until.strftime("%Y-%m-%d %H:%M"));
    let what = format!(
        "memory-defrag failed {tries} times to ask about {notes}, and waits until {until} UTC: {why}"
    );
    let mend = "mend what it names; memory-defrag --force asks now";
    Some(Finding::warning(Check::Failed, &patient.root.state().join("defrag.json"), what, mend))
}

pub(crate) fn look_at_batches(patient: &Patient) -> Vec<Finding> {
    let is_running = file::holder(&patient.root.run_lock()).is_ok_and(|holder| holder.is_some());
    let root = patient.root;
    let all = [("memory-consolidate", Batches::of_queue(root)), ("memory-defrag", Batches::of_defrag(root))];
    let mut findings = Vec::new();
    for (program, batches) in all {
        for batch in batches.all().unwrap_or_default() {
            findings.extend(left_batch(&batch, program, is_running, patient.env.now()));
        }
    }
    findings
}

/// Of a batch's state, which differs from program to program, what all have.
#[derive(Default, Deserialize)]
struct Known {
    #[serde(default)]
    state: String,
    work: Option<KnownWork>,
}

#[derive(Deserialize)]
struct KnownWork {
    kind: String,
    begun: Timestamp,
}

fn left_batch(batch: &Batch, program: &str, is_running: bool, now: Timestamp) -> Option<Finding> {
    let known: Known = match batch.load() {
        Ok(known) => known.unwrap_or_default(),
        Err(error) => {
            let mend = error.next_step().unwrap_or("make it a file that you can read").to_owned();
            return Some(Finding::error(Check::Batch, &batch.dir, error.message(), &mend));
        }
    };
    // The last defrag is kept, so that it can be taken back.
    if known.state == "completed" {
        return None;
    }
    let claimed = match batch.claimed().map_or(0, |claimed| claimed.len()) {
        0 => String::new(),
        1 => ", with 1 queue entry in it".to_owned(),
        count => format!(", with {count} queue entries in it"),
    };
    let what = match known.work {
        Some(work) if work.kind != "run" => {
            let age = now.duration_since(work.begun);
            // Somebody may be about to bring the reply.
            if age <= BY_HAND {
                return None;
            }
            format!("was asked for by hand {} hours ago{claimed}", age.as_hours())
        }
        _ if is_running => return None,
        _ => format!("is a run's that did not come to its end{claimed}"),
    };
    let mend = format!("the next {program} sees to it");
    Some(Finding::warning(Check::Batch, &batch.dir, what, &mend))
}
