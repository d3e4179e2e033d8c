//! When each timer ran, and when it runs next.

use crate::base::file;
use crate::base::text::lossy;
use crate::schedule::calendar::Calendar;
use crate::schedule::installed::InstalledTimer;
use crate::schedule::scheduler::Scheduler;
use crate::schedule::timer::{TimedProgram, When};
use crate::schedule::tool::Tools;
use crate::schedule::{crontab, systemd};
use crate::store::place::Root;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Serialize)]
pub struct TimerRuns {
    pub program: &'static str,
    pub scheduler: &'static str,
    /// As in the configuration; `None`: the timer is a Nix module's, or not ours.
    pub when: Option<String>,
    /// `None`: not known.
    pub last: Option<Timestamp>,
    pub next: Option<Timestamp>,
}

/// Asks systemd, under a deadline. What launchd and cron do is computed from what is installed.
pub fn of(all: &[InstalledTimer], root: &Root, tools: &Tools) -> Vec<TimerRuns> {
    let now = tools.env.now().to_zoned(tools.env.time_zone());
    let is_systemd = all.iter().any(|timer| timer.scheduler == Scheduler::Systemd);
    let listed = if is_systemd { listed(tools) } else { Vec::new() };
    let runs = |timer: &InstalledTimer| {
        let program = timer.program?;
        let (last, next) = match timer.scheduler {
            Scheduler::Systemd => {
                let unit = systemd::timer_name(program);
                let found = listed.iter().find(|timer| timer["unit"] == unit.as_str());
                let moment = |key: &str| found.and_then(|timer| micros(&timer[key]));
                (moment("last"), moment("next"))
            }
            scheduler => {
                let last = last_run(root).filter(|(ran, _)| *ran == program).map(|(_, at)| at);
                (last, timer.when.as_ref().and_then(|when| next(scheduler, program, when, last, &now)))
            }
        };
        let when = timer.when.as_ref().map(When::to_string);
        Some(TimerRuns { program: program.name(), scheduler: timer.scheduler.name(), when, last, next })
    };
    all.iter().filter_map(runs).collect()
}

/// What systemd's user manager says of its timers; nothing if it does not answer.
fn listed(tools: &Tools) -> Vec<Value> {
    let units = TimedProgram::ALL.into_iter().map(systemd::timer_name);
    let words = systemd::systemctl(&["list-timers", "--all", "--output=json"], units);
    let answer = tools.must(&words, b"").unwrap_or_default();
    serde_json::from_slice(&answer).unwrap_or_default()
}

/// Microseconds since 1970; 0 stands for never.
fn micros(value: &Value) -> Option<Timestamp> {
    let micros = value.as_i64().filter(|micros| *micros > 0)?;
    Timestamp::from_microsecond(micros).ok()
}

fn next(
    scheduler: Scheduler,
    program: TimedProgram,
    when: &When,
    last: Option<Timestamp>,
    now: &Zoned,
) -> Option<Timestamp> {
    if scheduler == Scheduler::Crontab {
        return crontab::calendars(program, when).iter().filter_map(|calendar| calendar.next(now)).min();
    }
    match when.on_calendar() {
        When::On(text) => Calendar::parse(&text)?.next(now),
        When::Every(hours) => last?.checked_add(SignedDuration::from_hours(i64::try_from(hours).ok()?)).ok(),
    }
}

/// The program that began to work on a store last, and when, from the lock file of its run. The run before that is not known.
pub(super) fn last_run(root: &Root) -> Option<(TimedProgram, Timestamp)> {
    let text = lossy(file::read(&root.run_lock(), 1000).ok()?).0;
    let program = TimedProgram::ALL.into_iter().find(|program| text.starts_with(program.name()))?;
    Some((program, text.trim().rsplit(' ').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    #[test]
    fn the_next_run_follows_from_what_is_installed() {
        let env = pretend(&[("TZ", "UTC")]);
        let now = "2026-02-28T15:04:05Z".parse::<Timestamp>().unwrap().to_zoned(env.time_zone());
        let last = "2026-02-28T13:00:00Z".parse().ok();
        let on = |text: &str| When::On(text.to_owned());
        let (consolidate, defrag) = (TimedProgram::Consolidate, TimedProgram::Defrag);
        for (scheduler, program, when, expected) in [
            (Scheduler::Crontab, consolidate, When::Every(1), "2026-02-28T15:17:00Z"),
            (Scheduler::Crontab, consolidate, When::Every(4), "2026-02-28T16:17:00Z"),
            (Scheduler::Crontab, defrag, When::Every(24), "2026-03-01T12:47:00Z"),
            (Scheduler::Crontab, defrag, When::Every(168), "2026-03-02T12:47:00Z"),
            (Scheduler::Crontab, defrag, on("*-*-15 06:30"), "2026-03-15T06:30:00Z"),
            (Scheduler::Launchd, consolidate, When::Every(4), "2026-02-28T17:00:00Z"),
            (Scheduler::Launchd, defrag, When::Every(24), "2026-03-01T00:00:00Z"),
            (Scheduler::Launchd, defrag, on("Mon..Fri 07:00"), "2026-03-02T07:00:00Z"),
        ] {
            let next = next(scheduler, program, &when, last, &now).map(|next| next.to_string());
            assert_eq!(next.as_deref(), Some(expected), "{} {when}", scheduler.name());
        }
        assert_eq!(next(Scheduler::Launchd, consolidate, &When::Every(4), None, &now), None);
    }
}
