//! What is installed now, and whether it is still what the configuration wants. For `memory-doctor`, and for who
//! installs beside it.

use crate::base::env::Env;
use crate::base::file;
use crate::base::lookup::is_program;
use crate::base::text::lossy;
use crate::config::memory::Schedule;
use crate::schedule::plan::Scheduler;
use crate::schedule::timer::TimedProgram;
use crate::schedule::tool::{PATIENCE, Tools};
use crate::schedule::{crontab, launchd, module, systemd, unit_file};
use crate::store::place::Root;
use jiff::Timestamp;
use std::path::{Path, PathBuf};

/// One timer that is there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InstalledTimer {
    pub(crate) scheduler: Scheduler,
    /// `None`: a scheduler that could not be asked, or a crontab whose markers are broken; `faults` says why.
    pub(crate) work: Option<TimedProgram>,
    /// The file that holds it, or `crontab`.
    pub(crate) place: String,
    /// It comes from a Nix module, which is where to change it.
    pub(crate) is_modules: bool,
    /// What is not as the configuration wants it. `memory-install-cron` mends it; a module's is hidden by a file of
    /// ours, which `memory-uninstall-cron` removes.
    pub(crate) faults: Vec<String>,
}

/// All timers of ours, of all schedulers.
pub(crate) fn standing(schedule: &Schedule, env: &Env) -> Vec<InstalledTimer> {
    Scheduler::ALL.into_iter().flat_map(|scheduler| with(scheduler, schedule, env)).collect()
}

/// Those of one scheduler. Reads files; for the crontab, where there is one, it asks `crontab -l`.
pub(crate) fn with(scheduler: Scheduler, schedule: &Schedule, env: &Env) -> Vec<InstalledTimer> {
    match scheduler {
        Scheduler::Launchd | Scheduler::Systemd => TimedProgram::ALL
            .into_iter()
            .filter_map(|work| in_files(scheduler, work, schedule, env))
            .collect(),
        Scheduler::Crontab => in_crontab(schedule, &Tools { env, patience: PATIENCE }),
    }
}

fn in_files(
    scheduler: Scheduler,
    work: TimedProgram,
    schedule: &Schedule,
    env: &Env,
) -> Option<InstalledTimer> {
    let standing = |place: &Path, is_modules, faults| InstalledTimer {
        scheduler,
        work: Some(work),
        place: place.display().to_string(),
        is_modules,
        faults,
    };
    if let Some(path) = module::file_of(scheduler, work, env) {
        let own = systemd::dir(env).ok()?.join(systemd::timer_name(work));
        let hides =
            scheduler == Scheduler::Systemd && own != path && matches!(unit_file::ours(&own), Ok(Some(_)));
        let faults = hides.then(|| format!("\"{}\" takes the place of a Nix module's", own.display()));
        return Some(standing(&path, true, faults.into_iter().collect()));
    }
    let wanted = work.hours(schedule);
    match scheduler {
        Scheduler::Launchd => {
            let path = launchd::file(work, env.home()?);
            Some(match unit_file::ours(&path) {
                Ok(text) => {
                    let text = text?;
                    let faults = faults(launchd::program_of(&text), launchd::hours_of(&text), wanted);
                    standing(&path, false, faults)
                }
                Err(e) => standing(&path, false, vec![e.message().to_owned()]),
            })
        }
        Scheduler::Systemd => {
            let dir = systemd::dir(env).ok()?;
            let path = dir.join(systemd::timer_name(work));
            let texts = unit_file::ours(&path)
                .and_then(|timer| Ok((timer, unit_file::ours(&dir.join(systemd::service_name(work)))?)));
            Some(match texts {
                Ok((timer, service)) => {
                    let hours = systemd::hours_of(&timer?);
                    let mut faults = faults(service.as_deref().and_then(systemd::program_of), hours, wanted);
                    if !systemd::wanted_link(work, &dir).is_symlink() {
                        faults.push("the timer is not enabled".to_owned());
                    }
                    standing(&path, false, faults)
                }
                Err(e) => standing(&path, false, vec![e.message().to_owned()]),
            })
        }
        Scheduler::Crontab => None,
    }
}

fn in_crontab(schedule: &Schedule, tools: &Tools) -> Vec<InstalledTimer> {
    let standing = |work, faults| InstalledTimer {
        scheduler: Scheduler::Crontab,
        work,
        place: "crontab".to_owned(),
        is_modules: false,
        faults,
    };
    if !tools.has("crontab") {
        return Vec::new();
    }
    let crontab = match tools.crontab() {
        Ok(crontab) => crontab,
        Err(why) => return vec![standing(None, vec![why])],
    };
    let block = match crontab::block(&crontab) {
        Ok(Some(place)) => lossy(crontab[place].to_vec()).0,
        Ok(None) => return Vec::new(),
        Err(e) => return vec![standing(None, vec![e.message().to_owned()])],
    };
    let lines = crontab::lines_of(&block);
    let of = |work: TimedProgram| {
        let runs = |program: &Path| program.file_name().is_some_and(|name| name == work.program());
        let (program, hours) = lines.iter().find(|(program, _)| runs(program))?;
        let wanted = crontab::expressible(work.hours(schedule));
        Some(standing(Some(work), faults(Some(program.clone()), *hours, wanted)))
    };
    TimedProgram::ALL.into_iter().filter_map(of).collect()
}

fn faults(program: Option<PathBuf>, hours: Option<u64>, wanted: u64) -> Vec<String> {
    let mut faults = Vec::new();
    match program {
        Some(program) if is_program(&program) => {}
        Some(program) => faults.push(format!("the program \"{}\" is gone", program.display())),
        None => faults.push("which program it runs cannot be read".to_owned()),
    }
    match hours {
        Some(hours) if hours == wanted => {}
        Some(hours) => faults.push(format!("it runs every {hours} hours, the configuration says {wanted}")),
        None => faults.push(format!("its interval is not the configuration's ({wanted} hours)")),
    }
    faults
}

/// Who was last at work on a store, and since when: what the lock of its one run says. The run before, of the other
/// program, is not known.
pub(crate) fn last_run(root: &Root) -> Option<(TimedProgram, Timestamp)> {
    let bytes = file::read(&root.run_lock(), 1000).ok()?;
    let text = lossy(bytes).0;
    let work = TimedProgram::ALL.into_iter().find(|work| text.starts_with(work.program()))?;
    Some((work, text.trim().rsplit(' ').next()?.parse().ok()?))
}
