//! Which timers are installed, and whether they still match the configuration. Used by `memory-doctor` and
//! `memory-install-cron`.

use crate::base::env::Env;
use crate::base::lookup::is_program;
use crate::base::text::lossy;
use crate::config::memory::Schedule;
use crate::schedule::scheduler::Scheduler;
use crate::schedule::timer::{InstalledCommand, TimedProgram, When};
use crate::schedule::tool::Tools;
use crate::schedule::{crontab, launchd, systemd, unit_file};
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
        let (is_modules, syncs, when, faults) = Default::default();
        InstalledTimer { scheduler, program, place, is_modules, syncs, when, faults }
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
