//! What is to run, how often, and in which environment. Checked here; the schedulers only write it down.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::{self, beside};
use crate::config::memory::Schedule;
use crate::config::memory::search::{absolute, files};
use crate::schedule::calendar::Calendar;
use crate::schedule::scheduler::{line, words};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// The variables that name the user's own directories. The other `XDG_*` belong to one session (its runtime
/// directory, its seat), and are wrong in the next.
const CARRIED: &[&str] =
    &["HOME", "PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedProgram {
    Consolidate,
    Defrag,
}

impl TimedProgram {
    pub(super) const ALL: [TimedProgram; 2] = [TimedProgram::Consolidate, TimedProgram::Defrag];

    /// As in the names of units and logs.
    pub(super) fn short_name(self) -> &'static str {
        &self.name()["memory-".len()..]
    }

    /// Of its calendar in the configuration.
    pub(super) fn key(self) -> String {
        format!("schedule.{}", self.short_name())
    }

    pub fn name(self) -> &'static str {
        match self {
            TimedProgram::Consolidate => "memory-consolidate",
            TimedProgram::Defrag => "memory-defrag",
        }
    }

    pub(super) fn when(self, schedule: &Schedule) -> When {
        let (calendar, hours) = match self {
            TimedProgram::Consolidate => (&schedule.consolidate, schedule.consolidate_interval_hours),
            TimedProgram::Defrag => (&schedule.defrag, schedule.defrag_interval_hours),
        };
        calendar.clone().map_or(When::Every(hours), When::On)
    }
}

/// When a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// So many hours after it ran.
    Every(u64),
    /// At the times of a calendar, as systemd writes it.
    On(String),
}

impl When {
    /// The same on a calendar, if there is one. systemd and launchd do not count the hours in which a laptop sleeps:
    /// every 24 hours would be every third day. They catch up on the times of a calendar.
    pub(super) fn on_calendar(&self) -> When {
        match self {
            When::Every(24) => When::On("daily".to_owned()),
            When::Every(168) => When::On("weekly".to_owned()),
            When::Every(_) | When::On(_) => self.clone(),
        }
    }

    /// A calendar that neither launchd nor cron can express.
    pub fn only_systemds(&self) -> Option<&str> {
        match self {
            When::On(text) if Calendar::parse(text).is_none() => Some(text),
            When::On(_) | When::Every(_) => None,
        }
    }

    /// The most hours between two runs; `None` if only systemd knows.
    pub(super) fn longest_gap(&self) -> Option<u64> {
        match self {
            When::Every(hours) => Some(*hours),
            When::On(text) => Calendar::parse(text).map(|calendar| calendar.longest_gap()),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            When::Every(1) => f.write_str("every hour"),
            When::Every(hours) => write!(f, "every {hours} hours"),
            When::On(text) => f.write_str(text),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Timer {
    pub program: TimedProgram,
    /// The program's absolute path and its arguments.
    pub words: Vec<String>,
    pub when: When,
    /// The same of a program that runs after it, whether it succeeded or not.
    pub then: Option<Vec<String>>,
}

impl Timer {
    /// Both programs as one command, which fails if one of them does.
    pub(super) fn command(&self) -> Vec<String> {
        match &self.then {
            None => self.words.clone(),
            Some(then) => {
                let script = format!("{}; status=$?; {} && exit $status", line(&self.words), line(then));
                words(&["/bin/sh", "-c", &script])
            }
        }
    }
}

/// What an installed timer runs.
#[derive(Debug, PartialEq, Eq)]
pub struct InstalledCommand {
    pub program: PathBuf,
    /// `memory-sync` runs after it.
    pub(super) syncs: bool,
}

impl InstalledCommand {
    /// From the words of a command, or of several in their order.
    pub(super) fn of(words: &[String]) -> Option<InstalledCommand> {
        let words = match words {
            [sh, c, script] if sh == "/bin/sh" && c == "-c" => shlex::split(script)?,
            words => words.to_vec(),
        };
        let is_sync = |word: &String| Path::new(word).file_name() == Some(OsStr::new("memory-sync"));
        Some(InstalledCommand { program: words.first()?.into(), syncs: words.iter().any(is_sync) })
    }
}

/// The timers, and the variables of both: in alphabetical order, with no control character in any value.
#[derive(Debug, Clone)]
pub struct Timers {
    pub all: Vec<Timer>,
    pub vars: Vec<(&'static str, String)>,
}

impl Timers {
    /// `config` is `--config`. A configuration file that is named, or found in the current directory, becomes an
    /// argument of the timers; the user's own is found without one.
    /// With `syncs`, the notes are shared after each consolidation.
    pub fn wanted(schedule: &Schedule, syncs: bool, config: Option<&Path>, env: &Env) -> Result<Timers> {
        let found = files(config, env)?;
        let is_named = config.is_some() || env.os("AGENT_MEMORY_CONFIG").is_some();
        let named = found.main.filter(|_| is_named || found.is_here);
        let mut config = Vec::new();
        if let Some(path) = named {
            config = vec!["--config".to_owned(), plain("the configuration file", path.as_os_str())?];
        }
        let path = |name: &str| plain(name, beside(name, "the timers", env)?.as_os_str());
        let timer = |program: TimedProgram| {
            let words = [vec![path(program.name())?, "--quiet".to_owned()], config.clone()].concat();
            let then = match program {
                TimedProgram::Consolidate if syncs => {
                    Some([vec![path("memory-sync")?], config.clone()].concat())
                }
                TimedProgram::Consolidate | TimedProgram::Defrag => None,
            };
            Ok(Timer { program, words, when: program.when(schedule), then })
        };
        Ok(Timers { all: TimedProgram::ALL.into_iter().map(timer).collect::<Result<_>>()?, vars: vars(env)? })
    }
}

/// The variables that are set. Paths become absolute: a timer starts in another directory.
fn vars(env: &Env) -> Result<Vec<(&'static str, String)>> {
    let mut vars = Vec::new();
    for name in CARRIED.iter().copied() {
        let Some(value) = env.os(name) else { continue };
        let value = match name {
            "PATH" => once_each(&plain(name, &lookup::absolute(value).0)?),
            _ => plain(name, absolute(PathBuf::from(value), env)?.as_os_str())?,
        };
        vars.push((name, value));
    }
    Ok(vars)
}

/// Each directory once: nested shells add the same ones again, and some crons accept only short lines.
fn once_each(path: &str) -> String {
    let mut seen = BTreeSet::new();
    path.split(':').filter(|dir| seen.insert(*dir)).collect::<Vec<_>>().join(":")
}

/// A value that every scheduler's file can contain: text, on one line.
fn plain(what: &str, value: &OsStr) -> Result<String> {
    let fault = |why: &str| {
        Error::usage(format!(
            "{what} cannot go into a timer: \"{}\" {why}",
            value.to_string_lossy().escape_debug()
        ))
        .hint("use a path of plain characters")
    };
    let text = value.to_str().ok_or_else(|| fault("is not valid UTF-8"))?;
    // U+FFFE and U+FFFF are not allowed in XML.
    match text.chars().any(|c| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}')) {
        true => Err(fault("contains a control character")),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    #[cfg(unix)]
    #[test]
    fn what_no_file_can_hold_is_named() {
        let error = plain("HOME", "/a\nb".as_ref()).unwrap_err();
        assert_eq!(error.message(), "HOME cannot go into a timer: \"/a\\nb\" contains a control character");
        let bytes = std::os::unix::ffi::OsStrExt::from_bytes(b"/a\xff");
        assert!(plain("PATH", bytes).unwrap_err().message().ends_with("is not valid UTF-8"));
        assert!(plain("PATH", "/a\u{ffff}".as_ref()).is_err());
        assert_eq!(plain("PATH", "/ü %$\"'\\<&".as_ref()).unwrap(), "/ü %$\"'\\<&");
    }

    #[test]
    fn the_second_program_runs_whether_the_first_succeeded_or_not_and_either_failure_counts() {
        let dir = tempfile::tempdir().unwrap();
        let ran = dir.path().join("ran").display().to_string();
        for (first, second, expected) in [(0, 0, 0), (3, 0, 3), (0, 4, 4), (3, 4, 4)] {
            let exit = |status: i32| format!("echo x >>\"{ran}\"; exit {status}");
            let timer = Timer {
                program: TimedProgram::Consolidate,
                words: words(&["/bin/sh", "-c", &exit(first)]),
                when: When::Every(2),
                then: Some(words(&["/bin/sh", "-c", &exit(second)])),
            };
            let command = timer.command();
            let status = std::process::Command::new(&command[0]).args(&command[1..]).status().unwrap();
            assert_eq!(status.code(), Some(expected), "{first} {second}");
        }
        assert_eq!(fs_err::read_to_string(&ran).unwrap(), "x\n".repeat(8));
    }

    #[test]
    fn a_session_and_a_key_stay_behind() {
        let env = pretend(&[
            ("PATH", "/b:/a:.:/b::/c:/a:bin"),
            ("HOME", "/h"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("XDG_DATA_HOME", "/d"),
            ("OPENAI_API_KEY", "sk-1"),
            ("XDG_STATE_HOME", ""),
        ]);
        let vars = vars(&env).unwrap();
        let names: Vec<_> = vars.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["HOME", "PATH", "XDG_DATA_HOME"]);
        assert_eq!(vars[1].1, "/b:/a:/c");
    }
}
