//! The doctor's look at the timers: are they as the configuration wants them, and do they run?

use crate::memory::doctor::{Check, CheckContext, Finding};
use crate::schedule::plan::Scheduler;
use crate::schedule::standing::{Standing, last_run, standing};
use crate::schedule::timer::Work;
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Machines sleep and are switched off over a day; a timer that did not run for longer than this, and three times
/// its interval, does not run.
const GRACE: Duration = Duration::from_secs(48 * 3600);

pub(crate) fn look(patient: &CheckContext) -> Vec<Finding> {
    let all = standing(&patient.config.schedule, patient.env);
    let mut findings: Vec<Finding> = all.iter().flat_map(faults).collect();
    for work in Work::ALL {
        let of_it: Vec<&Standing> = all.iter().filter(|standing| standing.work == Some(work)).collect();
        if let [first, second, ..] = &of_it[..] {
            let what = format!(
                "{} is run by {} and by {}",
                work.program(),
                first.scheduler.name(),
                second.scheduler.name()
            );
            let mend = format!("memory-uninstall-cron --scheduler {}", second.scheduler.name());
            findings.push(Finding::warning(Check::Schedule, &place(second), what, &mend));
        }
    }
    findings.extend(if all.is_empty() { by_hand(patient) } else { silence(patient, &all) });
    findings
}

fn place(standing: &Standing) -> PathBuf {
    PathBuf::from(&standing.place)
}

fn faults(standing: &Standing) -> Vec<Finding> {
    let name = standing.scheduler.name();
    let program = if standing.is_modules { "memory-uninstall-cron" } else { "memory-install-cron" };
    let mend = format!("{program} --scheduler {name}");
    let what = |fault: &String| match standing.work {
        Some(work) => format!("the timer of {}: {fault}", work.program()),
        None => fault.clone(),
    };
    standing
        .faults
        .iter()
        .map(|fault| Finding::warning(Check::Schedule, &place(standing), what(fault), &mend))
        .collect()
}

/// So long an entry waits, where nothing runs by itself, before a word is said.
const WAIT: SignedDuration = SignedDuration::from_hours(24);

/// No timers, which is fine as long as somebody runs the programs.
fn by_hand(patient: &CheckContext) -> Option<Finding> {
    let inbox = patient.root.inbox();
    let waits = |entry: &fs_err::DirEntry| {
        let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let since = changed
            .and_then(|at| Timestamp::try_from(at).ok())
            .map(|at| patient.env.now().duration_since(at));
        entry.path().extension().is_some_and(|ending| ending == "json")
            && since.is_some_and(|since| since > WAIT)
    };
    let count = fs_err::read_dir(&inbox).ok()?.filter_map(Result::ok).filter(waits).count();
    let what = match count {
        0 => return None,
        1 => "1 entry waits for over a day, and no timer runs memory-consolidate".to_owned(),
        count => format!("{count} entries wait for over a day, and no timer runs memory-consolidate"),
    };
    Some(Finding::warning(
        Check::Schedule,
        &inbox,
        what,
        "memory-install-cron; or by hand: memory-consolidate",
    ))
}

/// Timers that are there, and of which nobody has heard for long.
fn silence(patient: &CheckContext, all: &[Standing]) -> Option<Finding> {
    let timer = all.iter().find(|standing| standing.work == Some(Work::Consolidate))?;
    // Where nothing ever ran, the timers may be a minute old.
    let (_, at) = last_run(patient.root)?;
    let hours = Work::Consolidate.hours(&patient.config.schedule);
    let interval = Duration::from_secs(hours.saturating_mul(3600));
    let since = Duration::try_from(patient.env.now().duration_since(at)).unwrap_or_default();
    if since <= GRACE.max(interval.saturating_mul(3)) {
        return None;
    }
    let what = format!("no run since {at}, though it is to come every {hours} hours");
    let mend = match timer.scheduler {
        Scheduler::Systemd => {
            "see: systemctl --user list-timers; journalctl --user -u agent-memory-consolidate"
        }
        Scheduler::Launchd => "see: launchctl list; ~/Library/Logs/agent-memory",
        Scheduler::Crontab => "see that cron itself runs",
    };
    Some(Finding::warning(Check::Schedule, Path::new(&timer.place), what, mend))
}
