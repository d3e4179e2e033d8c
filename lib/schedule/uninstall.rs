//! Removes what an installation has left.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::schedule::install::is_loaded;
use crate::schedule::plan::{Scheduler, Words, words};
use crate::schedule::timer::TimedProgram;
use crate::schedule::tool::Tools;
use crate::schedule::{crontab, launchd, systemd, unit_file};
use std::path::{Path, PathBuf};

/// In the order in which it is carried out.
#[derive(Debug)]
pub struct RemovalPlan {
    pub scheduler: Scheduler,
    pub before: Vec<Words>,
    pub files: Vec<PathBuf>,
    /// Removed if they are empty.
    dirs: Vec<PathBuf>,
    pub after: Vec<Words>,
    /// The remaining crontab: the input of the command in `after`.
    rest: Vec<u8>,
    /// What is not ours to remove, and why.
    pub left: Vec<String>,
}

/// Whose file is at a path that we use?
#[derive(PartialEq, Eq)]
enum Ownership {
    Ours,
    Missing,
    Anothers,
}

impl RemovalPlan {
    fn of(scheduler: Scheduler) -> RemovalPlan {
        let (before, files, dirs, after, rest, left) = Default::default();
        RemovalPlan { scheduler, before, files, dirs, after, rest, left }
    }

    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.files.is_empty() && self.after.is_empty()
    }

    /// Adds the file if it exists and is ours.
    fn take(&mut self, path: PathBuf) -> Ownership {
        match unit_file::ours(&path) {
            Ok(Some(_)) => {
                self.files.push(path);
                Ownership::Ours
            }
            Ok(None) => Ownership::Missing,
            Err(e) => {
                self.left.push(e.message().to_owned());
                Ownership::Anothers
            }
        }
    }

    /// The programs whose files may be ours. A module's file elsewhere does not prevent the removal of ours.
    fn programs(&mut self, dir: &Path, env: &Env) -> Vec<TimedProgram> {
        let mut programs = Vec::new();
        for program in TimedProgram::ALL {
            let modules = unit_file::modules_file(self.scheduler, program, env);
            if modules.as_ref().is_none_or(|path| !path.starts_with(dir)) {
                programs.push(program);
            }
            self.left.extend(modules.as_deref().map(by_module));
        }
        programs
    }
}

/// Why a module's file is not changed.
pub fn by_module(path: &Path) -> String {
    format!(
        "\"{}\" comes from a Nix module and is not changed; change it there (services.agent-memory)",
        path.display()
    )
}

/// What there is to remove.
pub fn find(scheduler: Scheduler, tools: &Tools) -> Result<RemovalPlan> {
    match scheduler {
        Scheduler::Systemd => systemd(tools),
        Scheduler::Launchd => launchd(tools),
        Scheduler::Crontab => cron(tools),
    }
}

fn systemd(tools: &Tools) -> Result<RemovalPlan> {
    let mut removal = RemovalPlan::of(Scheduler::Systemd);
    let dir = systemd::dir(tools.env)?;
    let mut timers = Vec::new();
    for program in removal.programs(&dir, tools.env) {
        let timer = removal.take(dir.join(systemd::timer_name(program)));
        if timer == Ownership::Ours {
            timers.push(systemd::timer_name(program));
        }
        removal.take(dir.join(systemd::service_name(program)));
        // `disable` removes the link too, if the timer's file still exists and a manager runs.
        let link = systemd::wanted_link(program, &dir);
        if link.is_symlink() && timer != Ownership::Anothers {
            removal.files.push(link);
        }
    }
    if removal.files.is_empty() {
        return Ok(removal);
    }
    if !timers.is_empty() {
        let mut disable = words(&["systemctl", "--user", "disable", "--now"]);
        disable.extend(timers);
        removal.before.push(disable);
    }
    removal.after.push(words(&["systemctl", "--user", "daemon-reload"]));
    removal.dirs = vec![dir.join("timers.target.wants"), dir.clone()];
    removal.dirs.extend(dir.parent().map(Path::to_path_buf));
    Ok(removal)
}

fn launchd(tools: &Tools) -> Result<RemovalPlan> {
    let mut removal = RemovalPlan::of(Scheduler::Launchd);
    let Some(home) = tools.env.home() else { return Err(Error::config("HOME is not set")) };
    for program in removal.programs(&launchd::dir(home), tools.env) {
        if removal.take(launchd::file(program, home)) != Ownership::Ours {
            continue;
        }
        let target = format!("{}/{}", launchd::domain(), launchd::label(program));
        if is_loaded(&target, tools) {
            removal.before.push(words(&["launchctl", "bootout", &target]));
        }
        removal.files.extend(Some(launchd::log(program, home)).filter(|log| log.is_file()));
    }
    if !removal.files.is_empty() {
        removal.dirs.push(launchd::log_dir(home));
    }
    Ok(removal)
}

fn cron(tools: &Tools) -> Result<RemovalPlan> {
    let mut removal = RemovalPlan::of(Scheduler::Crontab);
    let old = tools.crontab()?;
    if crontab::block(&old)?.is_some() {
        removal.rest = crontab::with_block(&old, None)?;
        // If nothing else is in it, there was no crontab before ours, or an empty one.
        removal.after.push(words(&["crontab", if removal.rest.is_empty() { "-r" } else { "-" }]));
    }
    Ok(removal)
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
        let mut reset = words(&["systemctl", "--user", "reset-failed"]);
        reset.extend(TimedProgram::ALL.map(systemd::service_name));
        tools.is_success(&reset);
    }
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Error::io(faults.join("; ")).hint(match removal.scheduler {
            Scheduler::Crontab => "look at it with: crontab -e",
            _ => "the other files are gone; what is loaded runs until you log out",
        })),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::base::env::pretend;
    use crate::schedule::tool::PATIENCE;

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
        let removal = systemd(&Tools { env: &env, patience: PATIENCE }).unwrap();
        assert_eq!((removal.files, removal.left.len()), (vec![link], 1));
    }
}
