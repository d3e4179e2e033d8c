//! Removes what an installation has left.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::schedule::scheduler::{Scheduler, Tools, words};
use crate::schedule::timer::TimedProgram;
use crate::schedule::{crontab, launchd, systemd, unit_file};
use std::path::{Path, PathBuf};

/// In the order in which it is carried out.
#[derive(Debug)]
pub struct RemovalPlan {
    pub scheduler: Scheduler,
    pub before: Vec<Vec<String>>,
    pub files: Vec<PathBuf>,
    /// Removed if they are empty.
    dirs: Vec<PathBuf>,
    pub after: Vec<Vec<String>>,
    /// The remaining crontab: the input of the command in `after`.
    rest: Vec<u8>,
    /// What is not ours to remove, and why.
    pub left: Vec<String>,
}

impl RemovalPlan {
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.files.is_empty() && self.after.is_empty()
    }
}

/// What there is to remove.
pub fn find(scheduler: Scheduler, tools: &Tools) -> Result<RemovalPlan> {
    let (before, files, dirs, after, rest, left) = Default::default();
    let mut removal = RemovalPlan { scheduler, before, files, dirs, after, rest, left };
    match scheduler {
        Scheduler::Launchd | Scheduler::Systemd => find_files(&mut removal, tools)?,
        Scheduler::Crontab => find_block(&mut removal, tools)?,
    }
    Ok(removal)
}

fn find_files(removal: &mut RemovalPlan, tools: &Tools) -> Result<()> {
    let (scheduler, env) = (removal.scheduler, tools.env);
    let mut timers = Vec::new();
    for program in TimedProgram::ALL {
        let files = unit_file::files(scheduler, program, env)?;
        let modules = unit_file::modules_file(scheduler, program, env);
        removal.left.extend(modules.as_deref().map(unit_file::by_module));
        // A module's file elsewhere does not prevent the removal of ours.
        if files.iter().any(|(path, _)| Some(path) == modules.as_ref()) {
            continue;
        }
        let mut is_anothers = false;
        // The timer before its service.
        for (n, (path, _)) in files.into_iter().rev().enumerate() {
            match unit_file::ours(&path) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    if n == 0 {
                        timers.push(program);
                    }
                    removal.files.push(path);
                }
                Err(error) => {
                    is_anothers |= n == 0;
                    removal.left.push(error.message().to_owned());
                }
            }
        }
        if scheduler == Scheduler::Systemd {
            // `disable` removes the link too, if the timer's file still exists and a manager runs.
            let link = systemd::wanted_link(program, &systemd::dir(env)?);
            removal.files.extend(Some(link).filter(|link| link.is_symlink() && !is_anothers));
        } else if timers.last() == Some(&program) {
            removal.files.extend(Some(launchd::log(program, env)?).filter(|log| log.is_file()));
        }
    }
    if removal.files.is_empty() {
        return Ok(());
    }
    match scheduler {
        Scheduler::Systemd => {
            if !timers.is_empty() {
                let names = timers.into_iter().map(systemd::timer_name);
                removal.before.push(systemd::systemctl(&["disable", "--now"], names));
            }
            removal.after.push(systemd::systemctl(&["daemon-reload"], []));
            let dir = systemd::dir(env)?;
            removal.dirs.push(dir.join("timers.target.wants"));
            removal.dirs.extend(dir.ancestors().take(2).map(Path::to_path_buf));
        }
        _ => {
            let loaded = timers.into_iter().map(launchd::target).filter(|target| tools.is_loaded(target));
            removal.before = loaded.map(|target| words(&["launchctl", "bootout", &target])).collect();
            removal.dirs.push(launchd::log_dir(env)?);
        }
    }
    Ok(())
}

fn find_block(removal: &mut RemovalPlan, tools: &Tools) -> Result<()> {
    let old = tools.crontab()?;
    if crontab::block(&old)?.is_some() {
        removal.rest = crontab::with_block(&old, None)?;
        // If nothing else is in it, there was no crontab before ours, or an empty one.
        removal.after.push(words(&["crontab", if removal.rest.is_empty() { "-r" } else { "-" }]));
    }
    Ok(())
}

/// Removes everything that can be removed, and reports the failures together at the end.
pub fn carry_out(removal: &RemovalPlan, tools: &Tools) -> Result<()> {
    let mut faults = Vec::new();
    for command in &removal.before {
        // A unit that the scheduler does not know does not run.
        let failed = tools.must(command, b"").err().map(|error| error.message().to_owned());
        faults.extend(failed.filter(|why| !why.contains("does not exist")));
    }
    for path in &removal.files {
        faults.extend(file::if_exists(file::remove(path)).err().map(|e| e.to_string()));
    }
    for dir in &removal.dirs {
        // One that is not empty stays.
        let _ = fs_err::remove_dir(dir);
    }
    for command in &removal.after {
        faults.extend(tools.must(command, &removal.rest).err().map(|error| error.message().to_owned()));
    }
    if removal.scheduler == Scheduler::Systemd && faults.is_empty() {
        // A failed run would stay in the list, without its file. This fails if there was none.
        let services = TimedProgram::ALL.map(systemd::service_name);
        tools.is_success(&systemd::systemctl(&["reset-failed"], services));
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Error::io(faults.join("; ")).hint(match removal.scheduler {
            Scheduler::Crontab => "look at it with: crontab -e",
            _ => "the other files are gone; what is loaded runs until you log out",
        })),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::base::env::pretend;
    use crate::schedule::scheduler::PATIENCE;

    #[test]
    fn a_link_is_ours_whatever_its_parent_directories_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("agent-memory-consolidate.timer");
        let units = config.join("systemd/user");
        std::fs::create_dir_all(units.join("timers.target.wants")).unwrap();
        std::fs::write(units.join("agent-memory-consolidate.service"), "[Service]\n").unwrap();
        let link = systemd::wanted_link(TimedProgram::Consolidate, &units);
        std::os::unix::fs::symlink("/nowhere", &link).unwrap();
        let env = pretend(&[("XDG_CONFIG_HOME", config.to_str().unwrap())]);
        let removal = find(Scheduler::Systemd, &Tools { env: &env, patience: PATIENCE }).unwrap();
        assert_eq!((removal.files, removal.left.len()), (vec![link], 1));
    }
}
