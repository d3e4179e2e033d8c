//! The doctor's check of the timers: do they match the configuration, and do they run?

use crate::base::text::counted;
use crate::memory::doctor::{Check, CheckContext, Finding};
use crate::memory::sync::remote;
use crate::schedule::crontab;
use crate::schedule::installed::{self, InstalledTimer, last_run};
use crate::schedule::scheduler::{PATIENCE, Scheduler, Tools, words};
use crate::schedule::timer::TimedProgram;
use jiff::{SignedDuration, Timestamp};
use std::path::Path;
use std::time::Duration;

/// Machines sleep, or are off for a day. A timer is considered dead after this time and three times its interval.
const GRACE: Duration = Duration::from_secs(48 * 3600);

pub fn look(cx: &CheckContext) -> Vec<Finding> {
    look_at(&installed::all(&cx.config.schedule, cx.env, PATIENCE), cx, PATIENCE)
}

/// The same for timers that are known. `patience`: how long a scheduler may take to answer.
pub fn look_at(all: &[InstalledTimer], cx: &CheckContext, patience: Duration) -> Vec<Finding> {
    let mut findings: Vec<Finding> = all.iter().flat_map(faults).collect();
    findings.extend(TimedProgram::ALL.into_iter().filter_map(|program| calendar(program, cx, patience)));
    findings.extend(all.iter().filter_map(|timer| sync(timer, cx)));
    for program in TimedProgram::ALL {
        let installed: Vec<&InstalledTimer> =
            all.iter().filter(|timer| timer.program == Some(program)).collect();
        if let [first, second, ..] = &installed[..] {
            let (first, other) = (first.scheduler.name(), second.scheduler.name());
            let what = format!("{} is run by {first} and by {other}", program.name());
            let mend = format!("memory-uninstall-cron --scheduler {other}");
            findings.push(warning(&second.place, what, &mend));
        }
    }
    findings.extend(if all.is_empty() { by_hand(cx) } else { silence(cx, all) });
    findings
}

fn warning(file: &Path, what: impl Into<String>, mend: &str) -> Finding {
    Finding::warning(Check::Schedule, file, what, mend)
}

/// A calendar that nothing here can run by.
fn calendar(program: TimedProgram, cx: &CheckContext, patience: Duration) -> Option<Finding> {
    let when = program.when(&cx.config.schedule);
    let text = when.only_systemds()?;
    if !(Tools { env: cx.env, patience }).refuses(&words(&["systemd-analyze", "calendar", text])) {
        return None;
    }
    let what = format!("{}: no scheduler here knows the calendar \"{text}\"", program.key());
    let mend = "write it like Mon..Fri 07:00; see schedule in memory-configuration(7)";
    Some(warning(&cx.config_file, what, mend))
}

fn faults(timer: &InstalledTimer) -> Vec<Finding> {
    let name = timer.scheduler.name();
    let program = if timer.is_modules { "memory-uninstall-cron" } else { "memory-install-cron" };
    let mend = format!("{program} --scheduler {name}");
    let what = |fault: &String| match timer.program {
        Some(program) => format!("the timer of {}: {fault}", program.name()),
        None => fault.clone(),
    };
    timer.faults.iter().map(|fault| warning(&timer.place, what(fault), &mend)).collect()
}

/// A finding unless the remote is as it was when the timers were installed.
fn sync(timer: &InstalledTimer, cx: &CheckContext) -> Option<Finding> {
    if timer.is_modules || timer.program != Some(TimedProgram::Consolidate) {
        return None;
    }
    let what = match (remote::is_set(cx.config, cx.root, cx.env), timer.syncs) {
        (true, false) => "the notes have a remote, but the timer does not run memory-sync",
        (false, true) => "the timer runs memory-sync, but the notes have no remote",
        (true, true) | (false, false) => return None,
    };
    let mend = format!("memory-install-cron --scheduler {}", timer.scheduler.name());
    Some(warning(&timer.place, what, &mend))
}

/// How long an entry may wait without timers before it is reported.
const WAIT: SignedDuration = SignedDuration::from_hours(24);

/// Without timers all is fine as long as somebody runs the programs.
fn by_hand(cx: &CheckContext) -> Option<Finding> {
    let inbox = cx.root.inbox();
    let waits = |entry: &fs_err::DirEntry| {
        let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let since =
            changed.and_then(|at| Timestamp::try_from(at).ok()).map(|at| cx.env.now().duration_since(at));
        entry.path().extension().is_some_and(|ending| ending == "json")
            && since.is_some_and(|since| since > WAIT)
    };
    let count = fs_err::read_dir(&inbox).ok()?.filter_map(Result::ok).filter(waits).count();
    if count == 0 {
        return None;
    }
    let waited = counted(count, "entry has", "entries have");
    let what = format!("{waited} waited for over a day, and no timer runs memory-consolidate");
    Some(warning(&inbox, what, "memory-install-cron; or by hand: memory-consolidate"))
}

/// Timers that are installed, but have not run for a long time.
fn silence(cx: &CheckContext, all: &[InstalledTimer]) -> Option<Finding> {
    let timer = all.iter().find(|timer| timer.program == Some(TimedProgram::Consolidate))?;
    // If nothing ever ran, the timers may be a minute old.
    let (_, at) = last_run(cx.root)?;
    let when = TimedProgram::Consolidate.when(&cx.config.schedule);
    let when = if timer.scheduler == Scheduler::Crontab { crontab::nearest(&when) } else { when };
    let interval = Duration::from_secs(when.longest_gap()?.saturating_mul(3600));
    let since = Duration::try_from(cx.env.now().duration_since(at)).unwrap_or_default();
    if since <= GRACE.max(interval.saturating_mul(3)) {
        return None;
    }
    let what = format!("no run since {at:.0}, although it is to run {when}");
    let mend = match timer.scheduler {
        Scheduler::Systemd => {
            "see: systemctl --user list-timers; journalctl --user -u agent-memory-consolidate"
        }
        Scheduler::Launchd => "see: launchctl list; ~/Library/Logs/agent-memory",
        Scheduler::Crontab => "check that cron itself runs",
    };
    Some(warning(&timer.place, what, mend))
}
