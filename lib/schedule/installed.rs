//! Which timers are installed, whether they still match the configuration, and when they run. Used by `memory-doctor`,
//! `memory-status` and `memory-install-cron`.

use crate::base::env::Env;
use crate::base::file;
use crate::base::lookup::is_program;
use crate::base::text::lossy;
use crate::config::memory::Schedule;
use crate::schedule::calendar::Calendar;
use crate::schedule::scheduler::{Scheduler, Tools};
use crate::schedule::timer::{InstalledCommand, TimedProgram, When};
use crate::schedule::{crontab, launchd, systemd, unit_file};
use crate::store::place::Root;
use jiff::{SignedDuration, Timestamp, Zoned};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, PartialEq, Eq)]
pub struct InstalledTimer {
    pub(super) scheduler: Scheduler,
    /// `None`: a crontab that could not be read, or whose markers are broken; `faults` says why.
    pub program: Option<TimedProgram>,
    /// The file that holds it, or `crontab`.
    pub(super) place: PathBuf,
    /// It comes from a Nix module, and must be changed there.
    pub(super) is_modules: bool,
    /// `memory-sync` runs after it. Not known of a module's.
    pub(super) syncs: bool,
    /// When it runs, where that can be read.
    pub(super) when: Option<When>,
    /// How it differs from the configuration. `memory-install-cron` fixes that; if a file of ours hides a module's,
    /// `memory-uninstall-cron` removes it.
    pub(super) faults: Vec<String>,
}

impl InstalledTimer {
    /// One of which no more is known.
    fn new(scheduler: Scheduler, program: Option<TimedProgram>, place: PathBuf) -> InstalledTimer {
        let faults = Vec::new();
        InstalledTimer { scheduler, program, place, is_modules: false, syncs: false, when: None, faults }
    }
}

/// All our timers, of all schedulers.
pub fn all(schedule: &Schedule, env: &Env, patience: Duration) -> Vec<InstalledTimer> {
    Scheduler::ALL.into_iter().flat_map(|scheduler| of(scheduler, schedule, env, patience)).collect()
}

/// The timers of one scheduler. Reads files; for the crontab it runs `crontab -l`, which has `patience` to answer.
pub fn of(scheduler: Scheduler, schedule: &Schedule, env: &Env, patience: Duration) -> Vec<InstalledTimer> {
    let in_files = |program| in_files(scheduler, program, schedule, env);
    match scheduler {
        Scheduler::Launchd | Scheduler::Systemd => {
            TimedProgram::ALL.into_iter().filter_map(in_files).collect()
        }
        Scheduler::Crontab => in_crontab(schedule, &Tools { env, patience }),
    }
}

fn in_files(
    scheduler: Scheduler,
    program: TimedProgram,
    schedule: &Schedule,
    env: &Env,
) -> Option<InstalledTimer> {
    let files = unit_file::files(scheduler, program, env).ok()?;
    let mut timer = InstalledTimer::new(scheduler, Some(program), files.last()?.0.clone());
    let own = &timer.place;
    if let Some(path) = unit_file::modules_file(scheduler, program, env) {
        if *own != path && matches!(unit_file::ours(own), Ok(Some(_))) {
            timer.faults.push(format!("\"{}\" hides a Nix module's timer", own.display()));
        }
        return Some(InstalledTimer { place: path, is_modules: true, ..timer });
    }
    let mut text = String::new();
    for (path, _) in &files {
        match unit_file::ours(path) {
            Ok(None) if path == own => return None,
            Ok(found) => text += &found.unwrap_or_default(),
            Err(error) => return Some(InstalledTimer { faults: vec![error.message().to_owned()], ..timer }),
        }
    }
    let wanted = program.when(schedule);
    let (command, when) = match scheduler {
        Scheduler::Launchd => (launchd::command_of(&text), launchd::when_of(&text, &wanted)),
        _ => (systemd::command_of(&text), systemd::when_of(&text, &wanted)),
    };
    timer.syncs = command.as_ref().is_some_and(|command| command.syncs);
    timer.faults = faults(command.as_ref(), when.as_ref(), &wanted);
    timer.when = when;
    let is_current = unit_file::is_current(&text, scheduler, program, &wanted, env);
    if timer.faults.is_empty() && !is_current.is_ok_and(|is_current| is_current) {
        let what = "another version of memory-install-cron wrote it, or it was changed by hand";
        timer.faults.push(what.to_owned());
    }
    if scheduler == Scheduler::Systemd && !systemd::wanted_link(program, timer.place.parent()?).is_symlink() {
        timer.faults.push("the timer is not enabled".to_owned());
    }
    Some(timer)
}

fn in_crontab(schedule: &Schedule, tools: &Tools) -> Vec<InstalledTimer> {
    let timer = |program| InstalledTimer::new(Scheduler::Crontab, program, PathBuf::from("crontab"));
    if !tools.has("crontab") {
        return Vec::new();
    }
    let block = tools
        .crontab()
        .and_then(|crontab| Ok(crontab::block(&crontab)?.map(|place| lossy(crontab[place].to_vec()).0)));
    let lines = match block {
        Ok(block) => crontab::lines_of(&block.unwrap_or_default()),
        Err(error) => {
            return vec![InstalledTimer { faults: vec![error.message().to_owned()], ..timer(None) }];
        }
    };
    let of = |program: TimedProgram| {
        let is_it = |path: &Path| path.file_name().is_some_and(|name| name == program.name());
        let (command, fields) = lines.iter().find(|(command, _)| is_it(&command.program))?;
        let wanted = crontab::nearest(&program.when(schedule));
        let when = crontab::when_of(fields, program, &wanted);
        let faults = faults(Some(command), when.as_ref(), &wanted);
        Some(InstalledTimer { syncs: command.syncs, when, faults, ..timer(Some(program)) })
    };
    TimedProgram::ALL.into_iter().filter_map(of).collect()
}

fn faults(command: Option<&InstalledCommand>, when: Option<&When>, wanted: &When) -> Vec<String> {
    let mut faults = Vec::new();
    match command {
        Some(command) if is_program(&command.program) => {}
        Some(command) => faults.push(format!("the program \"{}\" is gone", command.program.display())),
        None => faults.push("the program that it runs cannot be determined".to_owned()),
    }
    match when {
        Some(when) if when == wanted => {}
        Some(when) => faults.push(format!("it runs {when}, the configuration says {wanted}")),
        None => faults.push(format!("it does not run when the configuration says ({wanted})")),
    }
    faults
}

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

/// When they ran, and when they run next. Asks systemd, under a deadline. What launchd and cron do is computed from what is
/// installed.
pub fn runs(all: &[InstalledTimer], root: &Root, tools: &Tools) -> Vec<TimerRuns> {
    let now = tools.env.now().to_zoned(tools.env.time_zone());
    let is_systemd = all.iter().any(|timer| timer.scheduler == Scheduler::Systemd);
    let listed = if is_systemd { listed(tools) } else { Vec::new() };
    let run = |timer: &InstalledTimer| {
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
    all.iter().filter_map(run).collect()
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
