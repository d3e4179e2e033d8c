//! Timers that a Nix module has set up: they are its to change. And programs that Nix may take away.

use crate::base::env::Env;
use crate::schedule::plan::Scheduler;
use crate::schedule::timer::TimedProgram;
use crate::schedule::{launchd, systemd, unit_file};
use std::path::{Path, PathBuf};

/// The file by which a module runs `work`, if one does.
pub(crate) fn file_of(scheduler: Scheduler, work: TimedProgram, env: &Env) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    match scheduler {
        Scheduler::Systemd => {
            let names = [systemd::service_name(work), systemd::timer_name(work)];
            let own = systemd::dir(env).ok()?;
            // home-manager fills the user's directory, NixOS the system's.
            let found = names.iter().map(|name| own.join(name)).find(|path| is_modules(path, env));
            found
                .or_else(|| names.iter().map(|name| Path::new(systemd::SYSTEM_DIR).join(name)).find(is_there))
        }
        Scheduler::Launchd => Some(launchd::file(work, env.home()?)).filter(|path| is_modules(path, env)),
        Scheduler::Crontab => None,
    }
}

/// Does it lead into the store, or was it copied from there? launchd's agents are copies, whose programs lie there.
fn is_modules(path: &Path, env: &Env) -> bool {
    let leads = |to: std::io::Result<PathBuf>| to.is_ok_and(|to| is_in_store(&to, env));
    leads(path.read_link()) || leads(path.canonicalize()) || unit_file::is_anothers_with(path, store(env))
}

fn store(env: &Env) -> &Path {
    env.os("NIX_STORE_DIR").map_or(Path::new("/nix/store"), Path::new)
}

/// A path of the store, rather than of a profile that leads there, is gone one day: Nix collects garbage, and does not
/// know of our timers.
pub(crate) fn is_in_store(path: &Path, env: &Env) -> bool {
    path.starts_with(store(env))
}
