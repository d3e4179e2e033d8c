//! systemd's user manager: a service and a timer for each program, from `systemd/`.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::schedule::scheduler::words;
use crate::schedule::timer::{InstalledCommand, TimedProgram, Timer, Timers, When};
use std::path::{Path, PathBuf};

/// Units for all users, which the user manager reads after the user's own.
pub(super) const SYSTEM_DIR: &str = "/etc/systemd/user";

pub(super) fn service_name(program: TimedProgram) -> String {
    format!("agent-memory-{}.service", program.short_name())
}

pub(super) fn timer_name(program: TimedProgram) -> String {
    format!("agent-memory-{}.timer", program.short_name())
}

/// `$XDG_CONFIG_HOME/systemd/user`, else `~/.config/systemd/user`.
pub(super) fn dir(env: &Env) -> Result<PathBuf> {
    // The parent of the memory family's own directory: the same rules for both.
    let config = env.memory_config_dir()?;
    let base = config.parent().ok_or_else(|| Error::config("there is no configuration directory"))?;
    Ok(base.join("systemd/user"))
}

/// The files of a program with their templates.
pub(super) fn files(program: TimedProgram, env: &Env) -> Result<Vec<(PathBuf, &'static str)>> {
    let dir = dir(env)?;
    let (service, timer) = match program {
        TimedProgram::Consolidate => (
            include_str!("../../systemd/agent-memory-consolidate.service"),
            include_str!("../../systemd/agent-memory-consolidate.timer"),
        ),
        TimedProgram::Defrag => (
            include_str!("../../systemd/agent-memory-defrag.service"),
            include_str!("../../systemd/agent-memory-defrag.timer"),
        ),
    };
    Ok(vec![(dir.join(service_name(program)), service), (dir.join(timer_name(program)), timer)])
}

/// The link that means "enabled".
pub(super) fn wanted_link(program: TimedProgram, dir: &Path) -> PathBuf {
    dir.join("timers.target.wants").join(timer_name(program))
}

/// `systemctl --user VERB UNIT…`
pub(super) fn systemctl(verb: &[&str], units: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut command = words(&["systemctl", "--user"]);
    command.extend(words(verb));
    command.extend(units);
    command
}

/// The commands that let the manager run new files.
pub(super) fn commands(timers: &Timers) -> Vec<Vec<String>> {
    let names = || timers.all.iter().map(|timer| timer_name(timer.program));
    if timers.all.is_empty() {
        return Vec::new();
    }
    // `restart` starts a timer that does not run, and lets a running one take over a new interval.
    vec![systemctl(&["daemon-reload"], []), systemctl(&["enable"], names()), systemctl(&["restart"], names())]
}

pub(super) fn environment(vars: &[(&str, String)]) -> String {
    let vars = vars.iter().map(|(name, value)| format!("Environment={}", quoted(&format!("{name}={value}"))));
    vars.collect::<Vec<_>>().join("\n")
}

/// The value of `ExecStart=`.
pub(super) fn command(timer: &Timer) -> String {
    exec_start(&timer.command())
}

pub(super) fn times(program: TimedProgram, when: &When) -> String {
    match when.on_calendar() {
        // Persistent: what was missed while the machine was off is caught up on.
        When::On(calendar) => format!("OnCalendar={calendar}\nPersistent=true\nRandomizedDelaySec=10min"),
        When::Every(hours) => {
            let first = match program {
                TimedProgram::Consolidate => "5min",
                TimedProgram::Defrag => "15min",
            };
            format!("OnStartupSec={first}\nOnUnitActiveSec={hours}h\nRandomizedDelaySec=2min")
        }
    }
}

/// Runs a program whose path systemd would not accept: it refuses quotes and backslashes there, however escaped.
const BY_SHELL: &[&str] = &["/bin/sh", "-c", "exec \"$0\" \"$@\""];

fn exec_start(command: &[String]) -> String {
    let needs_shell = command.first().is_some_and(|program| program.contains(['"', '\'', '\\']));
    let before = if needs_shell { words(BY_SHELL) } else { Vec::new() };
    let all: Vec<&String> = before.iter().chain(command).collect();
    // After a colon, systemd replaces no variables.
    let colon = if all.iter().any(|word| word.contains('$')) { ":" } else { "" };
    let all: Vec<String> = all.into_iter().map(|word| quoted(word)).collect();
    format!("{colon}{}", all.join(" "))
}

/// A word as systemd.syntax(7) and systemd.unit(5) want it: quoted if necessary, with `%` doubled.
fn quoted(word: &str) -> String {
    let doubled = word.replace('%', "%%");
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@=+,%~".contains(c);
    if !doubled.is_empty() && doubled.chars().all(is_plain) {
        return doubled;
    }
    format!("\"{}\"", doubled.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What an installed service runs.
pub fn command_of(text: &str) -> Option<InstalledCommand> {
    let value = text.lines().find_map(|line| line.strip_prefix("ExecStart="))?;
    // For the quotes and backslashes that we write, systemd and the shell have the same rules.
    let words = shlex::split(value.trim_start_matches(':'))?;
    let words = if words.starts_with(&self::words(BY_SHELL)) { &words[BY_SHELL.len()..] } else { &words };
    InstalledCommand::of(&words.iter().map(|word| word.replace("%%", "%")).collect::<Vec<_>>())
}

/// When an installed timer fires: as wanted, or otherwise.
pub fn when_of(text: &str, wanted: &When) -> Option<When> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let Some(calendar) = value("OnCalendar=") else {
        return value("OnUnitActiveSec=")?.strip_suffix('h')?.parse().ok().map(When::Every);
    };
    // An interval may have been written as a calendar.
    let mut usual = [wanted.clone(), When::Every(24), When::Every(168)].into_iter();
    let is_it = |when: &When| when.on_calendar() == When::On(calendar.to_owned());
    Some(usual.find(is_it).unwrap_or_else(|| When::On(calendar.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_systemd_would_read_them_otherwise() {
        for (word, expected) in [
            ("/usr/bin/x", "/usr/bin/x"),
            ("/ü/x", "/ü/x"),
            ("50%", "50%%"),
            ("a b", "\"a b\""),
            ("a\"b'c\\d", "\"a\\\"b'c\\\\d\""),
            ("PATH=/a b:$c;d", "\"PATH=/a b:$c;d\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn a_dollar_sign_is_no_variable() {
        let words = words(&["/a$b/x", "--config", "/$HOME"]);
        assert_eq!(exec_start(&words), ":\"/a$b/x\" --config \"/$HOME\"");
    }

    #[test]
    fn the_program_is_read_back_as_it_was() {
        for program in ["/usr/bin/x", "/a b/%h/x", "/a$b/x", "/a\"b/x", "/a'b\\c/%%/x", "/ü&<>/x"] {
            let words = words(&[program, "--quiet"]);
            let text = format!("[Service]\nExecStart={}\n", exec_start(&words));
            assert_eq!(command_of(&text).unwrap().program, Path::new(program), "{text}");
        }
        assert_eq!(command_of("ExecStart=\n"), None);
    }

    #[test]
    fn the_times_are_read_back_as_they_were_wanted() {
        let on = |text: &str| When::On(text.to_owned());
        for (text, wanted, read) in [
            ("OnUnitActiveSec=48h\n", When::Every(2), Some(When::Every(48))),
            ("OnUnitActiveSec=2s\n", When::Every(2), None),
            ("OnCalendar=Mon 07:00\n", When::Every(2), Some(on("Mon 07:00"))),
            ("OnCalendar=daily\n", When::Every(2), Some(When::Every(24))),
            ("OnCalendar=daily\n", on("daily"), Some(on("daily"))),
        ] {
            assert_eq!(when_of(&format!("[Timer]\n{text}"), &wanted), read, "{text}");
        }
    }
}
