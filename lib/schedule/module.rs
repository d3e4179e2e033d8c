//! Timers that a Nix module has set up, which we do not change, and programs that Nix may delete.

use crate::base::env::Env;
use crate::base::lookup::{is_in_nix_store, nix_store};
use crate::schedule::plan::Scheduler;
use crate::schedule::timer::TimedProgram;
use crate::schedule::{launchd, systemd, unit_file};
use std::path::{Path, PathBuf};

/// The file of a module's timer for `program`, if there is one.
pub(crate) fn file_of(scheduler: Scheduler, program: TimedProgram, env: &Env) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
    match scheduler {
        Scheduler::Systemd => {
            let names = [systemd::service_name(program), systemd::timer_name(program)];
            let own = systemd::dir(env).ok()?;
            // home-manager fills the user's directory, NixOS the system's.
            let found = names.iter().map(|name| own.join(name)).find(|path| is_modules(path, env));
            found
                .or_else(|| names.iter().map(|name| Path::new(systemd::SYSTEM_DIR).join(name)).find(is_there))
        }
        Scheduler::Launchd => Some(launchd::file(program, env.home()?)).filter(|path| is_modules(path, env)),
        Scheduler::Crontab => None,
    }
}

/// Does it lead into the store, or was it copied from there? launchd agents are copies of files whose programs are in
/// the store.
fn is_modules(path: &Path, env: &Env) -> bool {
    let leads = |to: std::io::Result<PathBuf>| to.is_ok_and(|to| is_in_store(&to, env));
    leads(path.read_link())
        || leads(path.canonicalize())
        || unit_file::is_foreign_and_names(path, nix_store(env))
}

/// Paths in the store do not last, unlike those of a profile: Nix collects garbage, and does not know about our
/// timers.
pub(crate) fn is_in_store(path: &Path, env: &Env) -> bool {
    is_in_nix_store(path, env)
}
