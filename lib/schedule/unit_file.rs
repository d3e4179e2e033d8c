//! The files of launchd and systemd: templates that are filled, and known again. Only those that we wrote are replaced or
//! removed, and none that a Nix module has set up.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::lookup::{is_in_nix_store, nix_store};
use crate::base::text::{filled, lossy};
use crate::schedule::scheduler::Scheduler;
use crate::schedule::timer::{TimedProgram, Timers, When};
use crate::schedule::{launchd, systemd};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Part of every file that we write.
const MARK: &str = "Written by memory-install-cron";
/// Ours have a few kilobytes.
const CAP: u64 = 1 << 20;

/// The files of a program and their templates. The last one says when it runs. cron has none.
pub(super) fn files(
    scheduler: Scheduler,
    program: TimedProgram,
    env: &Env,
) -> Result<Vec<(PathBuf, &'static str)>> {
    match scheduler {
        Scheduler::Launchd => launchd::files(program, env),
        Scheduler::Systemd => systemd::files(program, env),
        Scheduler::Crontab => Ok(Vec::new()),
    }
}

fn times(scheduler: Scheduler, program: TimedProgram, when: &When) -> Result<String> {
    match scheduler {
        Scheduler::Launchd => launchd::times(when).map_err(|e| e.context(program.key())),
        Scheduler::Systemd | Scheduler::Crontab => Ok(systemd::times(program, when)),
    }
}

/// The files of all timers, filled.
pub fn contents(scheduler: Scheduler, timers: &Timers, env: &Env) -> Result<Vec<(PathBuf, String)>> {
    let mut all = Vec::new();
    for timer in timers.all.iter().filter(|_| scheduler != Scheduler::Crontab) {
        let (command, environment, log) = match scheduler {
            Scheduler::Launchd => {
                let log = launchd::log(timer.program, env)?;
                let log = launchd::escaped(&log.to_string_lossy());
                (launchd::command(timer), launchd::environment(&timers.vars), log)
            }
            _ => (systemd::command(timer), systemd::environment(&timers.vars), String::new()),
        };
        let values = [
            ("@COMMAND@", &*command),
            ("@ENVIRONMENT@", &environment),
            ("@TIMES@", &times(scheduler, timer.program, &timer.when)?),
            ("@WHEN@", &timer.when.to_string()),
            ("@LOG@", &log),
        ];
        let files = files(scheduler, timer.program, env)?;
        all.extend(files.into_iter().map(|(path, template)| (path, filled(template, '@', &values))));
    }
    Ok(all)
}

/// Whether this version would write a program's files so, but for the command, the environment and words for people.
pub fn is_current(
    text: &str,
    scheduler: Scheduler,
    program: TimedProgram,
    wanted: &When,
    env: &Env,
) -> Result<bool> {
    let template: String =
        files(scheduler, program, env)?.into_iter().map(|(_, template)| template).collect();
    let template = filled(&template, '@', &[("@TIMES@", &times(scheduler, program, wanted)?)]);
    Ok(is_filled(text, &template, &["@COMMAND@", "@ENVIRONMENT@", "@WHEN@", "@LOG@"]))
}

/// Whether the text is this template, with anything in the place of these placeholders.
fn is_filled(text: &str, template: &str, placeholders: &[&str]) -> bool {
    let marked = placeholders.iter().fold(template.to_owned(), |marked, place| marked.replace(place, "\0"));
    let mut fixed = marked.split('\0');
    let (first, last) = (fixed.next().unwrap_or_default(), fixed.next_back());
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    for part in fixed {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

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
    file::sweep_aged(path, |left| {
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
    let own = files(scheduler, program, env).ok()?;
    // home-manager fills the user's directory, NixOS the system's.
    let in_users = own.iter().map(|(path, _)| path.clone()).find(|path| is_modules(path, env));
    in_users.or_else(|| {
        let names = own.iter().filter_map(|(path, _)| path.file_name());
        let mut paths = names.map(|name| Path::new(systemd::SYSTEM_DIR).join(name));
        paths.find(|path| scheduler == Scheduler::Systemd && path.symlink_metadata().is_ok())
    })
}

/// Why a module's file is not changed.
pub fn by_module(path: &Path) -> String {
    format!(
        "\"{}\" comes from a Nix module and is not changed; change it there (services.agent-memory)",
        path.display()
    )
}

/// Whether it leads into the store, or was copied from there. launchd agents are copies of files whose programs are in
/// the store.
fn is_modules(path: &Path, env: &Env) -> bool {
    let leads = |to: std::io::Result<PathBuf>| to.is_ok_and(|to| is_in_nix_store(&to, env));
    let is_copied = |text: String| !text.contains(MARK) && text.contains(&*nix_store(env).to_string_lossy());
    leads(path.read_link())
        || leads(path.canonicalize())
        || file::read(path, CAP).is_ok_and(|bytes| is_copied(lossy(bytes).0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;
    use crate::schedule::scheduler::words;
    use crate::schedule::timer::Timer;

    #[test]
    fn what_is_written_is_read_back_as_it_was() {
        let env = pretend(&[("HOME", "/h")]);
        for program in ["/usr/bin/x", "/a & b/<c>/x", "/&amp;/x", "/ü \"'%$\\@LOG@/x"] {
            let timer = Timer {
                program: TimedProgram::Defrag,
                words: words(&[program, "--quiet"]),
                when: When::Every(36),
                then: None,
            };
            let timers = Timers { all: vec![timer], vars: vec![("HOME", "/h".to_owned())] };
            for scheduler in [Scheduler::Launchd, Scheduler::Systemd] {
                let files = contents(scheduler, &timers, &env).unwrap();
                let text: String = files.into_iter().map(|(_, text)| text).collect();
                let (command, when) = match scheduler {
                    Scheduler::Launchd => {
                        (launchd::command_of(&text), launchd::when_of(&text, &When::Every(24)))
                    }
                    _ => (systemd::command_of(&text), systemd::when_of(&text, &When::Every(24))),
                };
                assert_eq!(command.unwrap().program, Path::new(program), "{text}");
                assert_eq!(when, Some(When::Every(36)));
                let is_current =
                    |wanted| is_current(&text, scheduler, TimedProgram::Defrag, &wanted, &env).unwrap();
                assert!(is_current(When::Every(36)) && !is_current(When::Every(24)), "{text}");
            }
        }
    }

    #[test]
    fn a_filled_template_is_known_again() {
        let is_it = |text: &str| is_filled(text, "a @A@ b @B@ c", &["@A@", "@B@"]);
        assert!(is_it("a 1 b 2 c") && is_it("a  b  c") && is_it("a b b c c b  c"));
        assert!(!is_it("a 1 b 2 c ") && !is_it("a 1 c") && !is_it("1 b 2 c") && !is_it("a 1 b c"));
        assert!(is_filled("a", "a", &["@A@"]) && !is_filled("ab", "a", &["@A@"]));
    }

    #[test]
    fn inserted_text_is_not_searched() {
        let values = [("@A@", "@B@"), ("@B@", "ü@")];
        assert_eq!(filled("a@b @A@ @B@ @C@@", '@', &values), "a@b @B@ ü@ @C@@");
    }
}
