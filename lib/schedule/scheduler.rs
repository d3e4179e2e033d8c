//! The schedulers that the memory programs know, and their own programs: systemctl, launchctl, crontab, loginctl. Those are
//! found on PATH, and run under a deadline.

use crate::base::deadline::Deadline;
use crate::base::env::{Env, user_id};
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Finished, Invocation};
use crate::base::lookup::on_path;
use crate::provider::command::level;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    Launchd,
    Systemd,
    Crontab,
}

impl Scheduler {
    pub const ALL: [Scheduler; 3] = [Scheduler::Launchd, Scheduler::Systemd, Scheduler::Crontab];

    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Launchd => "launchd",
            Scheduler::Systemd => "systemd",
            Scheduler::Crontab => "crontab",
        }
    }

    pub fn from_name(name: &str) -> Option<Scheduler> {
        Scheduler::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }

    /// The scheduler of this machine: launchd on macOS; systemd if this user's manager runs; else cron.
    pub fn here(tools: &Tools) -> Result<Scheduler> {
        if cfg!(target_os = "macos") {
            return Ok(Scheduler::Launchd);
        }
        // The manager's own socket: systemctl talks to it even where there is no D-Bus.
        if runtime_dir(tools.env).join("systemd/private").exists() && tools.has("systemctl") {
            return Ok(Scheduler::Systemd);
        }
        if tools.has("crontab") {
            return Ok(Scheduler::Crontab);
        }
        Err(Error::io(
            "no scheduler was found: systemd runs no manager for this user, and there is no crontab on PATH",
        )
        .hint("install cron, or name one: memory-install-cron --scheduler launchd|systemd|crontab"))
    }
}

pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The words as a shell would read them.
pub fn line(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// systemctl waits for a manager that may be busy; it never needs more than this.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// A crontab is read completely.
const CAP: usize = 4 << 20;

pub struct Tools<'a> {
    pub env: &'a Env,
    /// For each command.
    pub patience: Duration,
}

impl Tools<'_> {
    pub fn has(&self, program: &str) -> bool {
        on_path(program.as_ref(), self.env).is_some()
    }

    fn run(&self, words: &[String], input: &[u8]) -> Result<Finished> {
        let shown = words.join(" ");
        if let Some(program) = words.first().filter(|program| !self.has(program)) {
            return Err(Error::io(format!("\"{shown}\" was not run: there is no {program} on PATH")));
        }
        let mut vars = vec![("LC_ALL", OsString::from("C"))];
        if self.env.os("XDG_RUNTIME_DIR").is_none() {
            vars.push(("XDG_RUNTIME_DIR", runtime_dir(self.env).into()));
        }
        exec::run(Invocation {
            input: input.to_vec(),
            vars,
            level: level(self.env),
            ..Invocation::new(CommandLine::Words(words), Path::new("/"), CAP, Deadline::after(self.patience))
        })
        .map_err(|error| Error::io(format!("\"{shown}\" {error}")))
    }

    /// Runs a command that has to succeed; returns what it printed.
    pub fn must(&self, words: &[String], input: &[u8]) -> Result<Vec<u8>> {
        let finished = self.run(words, input)?;
        match finished.failure() {
            None => Ok(finished.stdout),
            Some(failed) => Err(Error::io(format!("\"{}\" {failed}", words.join(" ")))),
        }
    }

    /// Runs a command that may fail.
    pub(super) fn is_success(&self, words: &[String]) -> bool {
        self.run(words, b"").is_ok_and(|finished| finished.status.success())
    }

    /// Whether a command that checks something fails, or is not there. One that gives no answer has refused nothing.
    pub(super) fn refuses(&self, words: &[String]) -> bool {
        match self.run(words, b"") {
            Ok(finished) => !finished.status.success(),
            Err(_) => words.first().is_some_and(|program| !self.has(program)),
        }
    }

    /// Whether launchd has loaded an agent; `target` is `gui/UID/LABEL`. Older systems find it by its label.
    pub(super) fn is_loaded(&self, target: &str) -> bool {
        let label = target.rsplit('/').next().unwrap_or(target);
        self.is_success(&words(&["launchctl", "print", target]))
            || self.is_success(&words(&["launchctl", "list", label]))
    }

    /// The user's crontab; empty if there is none.
    pub(super) fn crontab(&self) -> Result<Vec<u8>> {
        self.must(&words(&["crontab", "-l"]), b"").or_else(|error| {
            // "no crontab for x"; busybox cannot open a file that does not exist.
            let is_none = ["no crontab for", "No such file or directory"]
                .iter()
                .any(|message| error.message().contains(message));
            if is_none { Ok(Vec::new()) } else { Err(error) }
        })
    }
}

/// `$XDG_RUNTIME_DIR`, or its usual path where `su` or cron has lost the variable.
fn runtime_dir(env: &Env) -> PathBuf {
    let usual = || PathBuf::from(format!("/run/user/{}", user_id()));
    env.os("XDG_RUNTIME_DIR").map_or_else(usual, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    #[test]
    fn a_command_that_hangs_is_ended() {
        let env = pretend(&[("PATH", "/bin:/usr/bin"), ("HOME", "/")]);
        let tools = Tools { env: &env, patience: Duration::from_millis(50) };
        let error = tools.must(&words(&["sleep", "60"]), b"").unwrap_err();
        assert_eq!(error.message(), "\"sleep 60\" did not finish in time");
    }
}
