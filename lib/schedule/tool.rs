//! The schedulers' own programs: systemctl, launchctl, crontab, loginctl. Found on PATH, run under a deadline.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::exec::{self, CommandLine, Invocation};
use crate::base::lookup::on_path;
use crate::base::text::one_line;
use crate::provider::command::level;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// systemctl waits for a manager that may be busy; more than this it never needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A crontab is read whole.
const CAP: usize = 4 << 20;

pub(crate) struct Tools<'a> {
    pub(crate) env: &'a Env,
    /// For each command.
    pub(crate) patience: Duration,
}

/// What a program answered.
pub(crate) struct Answer {
    pub(crate) is_success: bool,
    pub(crate) stdout: Vec<u8>,
    /// How it ended and what it said last, for messages.
    pub(crate) said: String,
}

impl Tools<'_> {
    pub(crate) fn has(&self, program: &str) -> bool {
        on_path(program.as_ref(), self.env).is_some()
    }

    /// The error is the whole message.
    pub(crate) fn run(&self, words: &[String], input: &[u8]) -> Result<Answer, String> {
        let shown = words.join(" ");
        let program = words.first().map(String::as_str).unwrap_or_default();
        let Some(path) = on_path(program.as_ref(), self.env) else {
            return Err(format!("\"{shown}\" was not run: there is no {program} on PATH"));
        };
        let mut words = words.to_vec();
        words[0] = path
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("{program}: its path is not valid UTF-8"))?;
        let mut vars = vec![("LC_ALL", OsString::from("C"))];
        if self.env.os("XDG_RUNTIME_DIR").is_none() {
            vars.push(("XDG_RUNTIME_DIR", runtime_dir(self.env).into()));
        }
        let finished = exec::run(Invocation {
            command: CommandLine::Words(&words),
            input: input.to_vec(),
            dir: Path::new("/"),
            vars,
            without: Vec::new(),
            is_heard: false,
            stdout_file: None,
            stdout_cap: CAP,
            deadline: Deadline::after(self.patience),
            level: level(self.env),
        })
        .map_err(|fault| format!("\"{shown}\" {fault}"))?;
        let last = one_line(&finished.last_line, 300);
        let colon = if last.is_empty() { "" } else { ": " };
        let said = format!("\"{shown}\" failed ({}){colon}{last}", exec::how_it_ended(finished.status));
        Ok(Answer { is_success: finished.status.success(), stdout: finished.stdout, said })
    }

    /// Runs what has to succeed.
    pub(crate) fn must(&self, words: &[String], input: &[u8]) -> Result<Vec<u8>, String> {
        let answer = self.run(words, input)?;
        if answer.is_success { Ok(answer.stdout) } else { Err(answer.said) }
    }

    /// Runs what may fail.
    pub(crate) fn is_success(&self, words: &[String]) -> bool {
        self.run(words, b"").is_ok_and(|answer| answer.is_success)
    }

    /// The user's crontab; empty if there is none.
    pub(crate) fn crontab(&self) -> Result<Vec<u8>, String> {
        let answer = self.run(&["crontab".to_owned(), "-l".to_owned()], b"")?;
        // "no crontab for x"; busybox cannot open a file that is not there.
        let is_none =
            answer.said.contains("no crontab for") || answer.said.contains("No such file or directory");
        match answer.is_success {
            true => Ok(answer.stdout),
            false if is_none && answer.stdout.is_empty() => Ok(Vec::new()),
            false => Err(answer.said),
        }
    }
}

/// `$XDG_RUNTIME_DIR`; where a `su` or a cron has lost it, its usual place.
pub(crate) fn runtime_dir(env: &Env) -> PathBuf {
    let usual = || PathBuf::from(format!("/run/user/{}", rustix::process::getuid().as_raw()));
    env.os("XDG_RUNTIME_DIR").map_or_else(usual, PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;
    use crate::schedule::plan::words;

    #[test]
    fn a_command_that_hangs_is_ended() {
        let env = pretend(&[("PATH", "/bin:/usr/bin"), ("HOME", "/")]);
        let tools = Tools { env: &env, patience: Duration::from_millis(50) };
        let why = tools.must(&words(&["sleep", "60"]), b"").unwrap_err();
        assert_eq!(why, "\"sleep 60\" did not finish in time");
    }
}
