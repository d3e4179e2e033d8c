//! Which timers are installed, and whether they still match the configuration. Used by `memory-doctor` and
//! `memory-install-cron`.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::base::lookup::is_program;
use crate::base::text::lossy;
use crate::config::memory::Schedule;
use crate::schedule::plan::Scheduler;
use crate::schedule::timer::{InstalledCommand, TimedProgram, When};
use crate::schedule::tool::{PATIENCE, Tools};
use crate::schedule::{crontab, launchd, systemd, unit_file};
use crate::store::place::Root;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

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
    /// How it differs from the configuration. `memory-install-cron` fixes that; if a file of ours hides a module's,
    /// `memory-uninstall-cron` removes it.
    pub(super) faults: Vec<String>,
}

/// All our timers, of all schedulers.
pub(super) fn all(schedule: &Schedule, env: &Env) -> Vec<InstalledTimer> {
    Scheduler::ALL.into_iter().flat_map(|scheduler| of(scheduler, schedule, env)).collect()
}

/// The timers of one scheduler. Reads files; for the crontab it runs `crontab -l`.
pub fn of(scheduler: Scheduler, schedule: &Schedule, env: &Env) -> Vec<InstalledTimer> {
    let in_files = |program| in_files(scheduler, program, schedule, env);
    match scheduler {
        Scheduler::Launchd | Scheduler::Systemd => {
            TimedProgram::ALL.into_iter().filter_map(in_files).collect()
        }
        Scheduler::Crontab => in_crontab(schedule, &Tools { env, patience: PATIENCE }),
    }
}

fn in_files(
    scheduler: Scheduler,
    program: TimedProgram,
    schedule: &Schedule,
    env: &Env,
) -> Option<InstalledTimer> {
    let timer = |place, is_modules, syncs, faults| InstalledTimer {
        scheduler,
        program: Some(program),
        place,
        is_modules,
        syncs,
        faults,
    };
    let wanted = program.when(schedule);
    let is_systemd = scheduler == Scheduler::Systemd;
    let dir = if is_systemd { systemd::dir(env).ok()? } else { launchd::dir(env.home()?) };
    let own = match is_systemd {
        true => dir.join(systemd::timer_name(program)),
        false => launchd::file(program, env.home()?),
    };
    if let Some(path) = unit_file::modules_file(scheduler, program, env) {
        let hides = is_systemd && own != path && matches!(unit_file::ours(&own), Ok(Some(_)));
        let faults = hides.then(|| format!("\"{}\" hides a Nix module's timer", own.display()));
        return Some(timer(path, true, false, faults.into_iter().collect()));
    }
    let read = match is_systemd {
        true => systemd_faults(&own, program, &dir, &wanted),
        false => unit_file::ours(&own).map(|text| {
            text.map(|text| {
                let command = launchd::command_of(&text);
                let faults = faults(command.as_ref(), launchd::when_of(&text, &wanted), &wanted);
                (command, or_outdated(faults, launchd::is_current(&text, program, &wanted)))
            })
        }),
    };
    let (command, faults) = read.unwrap_or_else(|error| Some((None, vec![error.message().to_owned()])))?;
    Some(timer(own, false, command.is_some_and(|command| command.syncs), faults))
}

fn systemd_faults(
    own: &Path,
    program: TimedProgram,
    dir: &Path,
    wanted: &When,
) -> Result<Option<(Option<InstalledCommand>, Vec<String>)>> {
    let timer = unit_file::ours(own)?;
    let service = unit_file::ours(&dir.join(systemd::service_name(program)))?;
    let Some(timer) = timer else { return Ok(None) };
    let service = service.unwrap_or_default();
    let command = systemd::command_of(&service);
    let faults = faults(command.as_ref(), systemd::when_of(&timer, wanted), wanted);
    let mut faults = or_outdated(faults, systemd::is_current(&service, &timer, program, wanted));
    if !systemd::wanted_link(program, dir).is_symlink() {
        faults.push("the timer is not enabled".to_owned());
    }
    Ok(Some((command, faults)))
}

fn in_crontab(schedule: &Schedule, tools: &Tools) -> Vec<InstalledTimer> {
    let timer = |program, syncs, faults| InstalledTimer {
        scheduler: Scheduler::Crontab,
        program,
        place: PathBuf::from("crontab"),
        is_modules: false,
        syncs,
        faults,
    };
    if !tools.has("crontab") {
        return Vec::new();
    }
    let block = tools
        .crontab()
        .and_then(|crontab| Ok(crontab::block(&crontab)?.map(|place| lossy(crontab[place].to_vec()).0)));
    let lines = match block {
        Ok(block) => crontab::lines_of(&block.unwrap_or_default()),
        Err(error) => return vec![timer(None, false, vec![error.message().to_owned()])],
    };
    let of = |program: TimedProgram| {
        let is_it = |path: &Path| path.file_name().is_some_and(|name| name == program.name());
        let (command, fields) = lines.iter().find(|(command, _)| is_it(&command.program))?;
        let wanted = crontab::nearest(&program.when(schedule));
        let when = crontab::when_of(fields, program, &wanted);
        Some(timer(Some(program), command.syncs, faults(Some(command), when, &wanted)))
    };
    TimedProgram::ALL.into_iter().filter_map(of).collect()
}

fn faults(command: Option<&InstalledCommand>, when: Option<When>, wanted: &When) -> Vec<String> {
    let mut faults = Vec::new();
    match command {
        Some(command) if is_program(&command.program) => {}
        Some(command) => faults.push(format!("the program \"{}\" is gone", command.program.display())),
        None => faults.push("the program that it runs cannot be determined".to_owned()),
    }
    match when {
        Some(when) if when == *wanted => {}
        Some(when) => faults.push(format!("it runs {when}, the configuration says {wanted}")),
        None => faults.push(format!("it does not run when the configuration says ({wanted})")),
    }
    faults
}

/// If nothing else is wrong: is it as this version writes it?
fn or_outdated(mut faults: Vec<String>, is_current: bool) -> Vec<String> {
    if faults.is_empty() && !is_current {
        faults.push("another version of memory-install-cron wrote it, or it was changed by hand".to_owned());
    }
    faults
}

/// The program that last worked on a store, and when it started, from the lock file of its run. The run before that
/// is not known.
pub(super) fn last_run(root: &Root) -> Option<(TimedProgram, Timestamp)> {
    let bytes = file::read(&root.run_lock(), 1000).ok()?;
    let text = lossy(bytes).0;
    let program = TimedProgram::ALL.into_iter().find(|program| text.starts_with(program.name()))?;
    Some((program, text.trim().rsplit(' ').next()?.parse().ok()?))
}
