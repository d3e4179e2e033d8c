//! The schedulers' files. Only those that we wrote are replaced or removed, and none that a Nix module has set up.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::lookup::{is_in_nix_store, nix_store};
use crate::base::text::lossy;
use crate::schedule::plan::Scheduler;
use crate::schedule::timer::TimedProgram;
use crate::schedule::{launchd, systemd};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Part of every file that we write.
const MARK: &str = "Written by memory-install-cron";
/// Ours have a few kilobytes.
const CAP: u64 = 1 << 20;

/// The text of a file of ours; `None` if there is none. A file that we did not write is an error.
pub(super) fn ours(path: &Path) -> Result<Option<String>> {
    let read = file::if_exists(file::read(path, CAP));
    let Some(bytes) = read.map_err(|e| Error::from(e).hint("move it away"))? else { return Ok(None) };
    let text = lossy(bytes).0;
    if text.contains(MARK) {
        return Ok(Some(text));
    }
    Err(Error::refused(format!(
        "\"{}\" was not written by memory-install-cron and is not changed",
        path.display()
    ))
    .hint("move it away"))
}

/// Writes the file unless it is already there. Returns whether it wrote.
pub(super) fn write(path: &Path, text: &str) -> Result<bool> {
    file::sweep_aged(path, file::LEFT_BEHIND, |left| {
        text.as_bytes().starts_with(left) || String::from_utf8_lossy(left).contains(MARK)
    });
    match ours(path)? {
        Some(old) if old == text => return Ok(false),
        Some(_) => file::replace(path, |new| new.write_all(text.as_bytes()))?,
        None => {
            file::make_dir(path.parent().unwrap_or(path))?;
            file::install(path, text.as_bytes(), 0o644)?;
        }
    }
    Ok(true)
}

/// The file of a module's timer for `program`, if there is one.
pub fn modules_file(scheduler: Scheduler, program: TimedProgram, env: &Env) -> Option<PathBuf> {
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
    let leads = |to: std::io::Result<PathBuf>| to.is_ok_and(|to| is_in_nix_store(&to, env));
    leads(path.read_link()) || leads(path.canonicalize()) || is_foreign_and_names(path, nix_store(env))
}

/// Is it a file that we did not write, and that mentions a path in `dir`?
fn is_foreign_and_names(path: &Path, dir: &Path) -> bool {
    file::read(path, CAP).is_ok_and(|bytes| {
        let text = lossy(bytes).0;
        !text.contains(MARK) && text.contains(&*dir.to_string_lossy())
    })
}
