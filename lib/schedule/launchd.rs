//! launchd agents: a property list for each program, from `launchd/`.

use crate::base::env::{Env, user_id};
use crate::base::error::{Error, Result};
use crate::config::memory::search::absolute;
use crate::schedule::calendar::{Calendar, expressible};
use crate::schedule::scheduler::words;
use crate::schedule::timer::{InstalledCommand, TimedProgram, Timer, Timers, When};
use std::path::{Path, PathBuf};

fn home(env: &Env) -> Result<PathBuf> {
    absolute(env.home().map(Path::to_path_buf).ok_or_else(|| Error::config("HOME is not set"))?, env)
}

/// The file of a program with its template.
pub(super) fn files(program: TimedProgram, env: &Env) -> Result<Vec<(PathBuf, &'static str)>> {
    let template = match program {
        TimedProgram::Consolidate => include_str!("../../launchd/com.agent-memory.consolidate.plist"),
        TimedProgram::Defrag => include_str!("../../launchd/com.agent-memory.defrag.plist"),
    };
    let name = format!("Library/LaunchAgents/com.agent-memory.{}.plist", program.short_name());
    Ok(vec![(home(env)?.join(name), template)])
}

/// launchd creates the files, but not the directory.
pub(super) fn log_dir(env: &Env) -> Result<PathBuf> {
    Ok(home(env)?.join("Library/Logs/agent-memory"))
}

pub(super) fn log(program: TimedProgram, env: &Env) -> Result<PathBuf> {
    Ok(log_dir(env)?.join(format!("{}.log", program.short_name())))
}

/// A user's agents, as launchctl names them.
fn domain() -> String {
    format!("gui/{}", user_id())
}

/// An agent, as launchctl names it: `gui/UID/LABEL`.
pub(super) fn target(program: TimedProgram) -> String {
    format!("{}/com.agent-memory.{}", domain(), program.short_name())
}

/// A `bootout` and a `bootstrap` for each file: a loaded agent does not read its file again.
pub(super) fn commands(timers: &Timers, files: &[(PathBuf, String)]) -> Vec<Vec<String>> {
    let both = |(timer, (path, _)): (&Timer, &(PathBuf, String))| {
        let out = words(&["launchctl", "bootout", &target(timer.program)]);
        [out, words(&["launchctl", "bootstrap", &domain(), &path.to_string_lossy()])]
    };
    timers.all.iter().zip(files).flat_map(both).collect()
}

pub(super) fn command(timer: &Timer) -> String {
    let words = timer.command();
    let lines = words.iter().map(|word| format!("\t\t<string>{}</string>", escaped(word)));
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn environment(vars: &[(&str, String)]) -> String {
    let pair = |(name, value): &(&str, String)| {
        format!("\t\t<key>{name}</key>\n\t\t<string>{}</string>", escaped(value))
    };
    vars.iter().map(pair).collect::<Vec<_>>().join("\n")
}

/// The key that says when it runs. A run that was missed while the machine slept is done when it wakes, but only with a
/// calendar.
pub(super) fn times(when: &When) -> Result<String> {
    let calendar = match when.on_calendar() {
        When::On(calendar) => calendar,
        When::Every(hours) => {
            return Ok(format!("\t<key>StartInterval</key>\n\t<integer>{}</integer>", hours * 3600));
        }
    };
    let Calendar { weekdays, day, hour, minute } = expressible(&calendar, "launchd")?;
    let keys = |weekday: Option<u8>| {
        let keys = [("Weekday", weekday), ("Day", day), ("Hour", hour), ("Minute", Some(minute))];
        let key = |(name, value): (&str, Option<u8>)| {
            Some(format!("\t\t\t<key>{name}</key>\n\t\t\t<integer>{}</integer>\n", value?))
        };
        format!("\t\t<dict>\n{}\t\t</dict>\n", keys.into_iter().filter_map(key).collect::<String>())
    };
    let dicts: String = match &weekdays[..] {
        [] => keys(None),
        days => days.iter().map(|day| keys(Some(*day))).collect(),
    };
    Ok(format!("\t<key>StartCalendarInterval</key>\n\t<array>\n{dicts}\t</array>"))
}

/// Characters that have a meaning in XML, and their entities.
const ENTITIES: [(&str, &str); 3] = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")];

pub(super) fn escaped(text: &str) -> String {
    ENTITIES.iter().fold(text.to_owned(), |text, (character, entity)| text.replace(character, entity))
}

/// What an installed agent runs.
pub fn command_of(agent: &str) -> Option<InstalledCommand> {
    let array = agent.split_once("<key>ProgramArguments</key>")?.1.split("</array>").next()?;
    let texts = array.split("<string>").skip(1).filter_map(|text| Some(text.split_once("</string>")?.0));
    let plain = |text: String, (character, entity): &(&str, &str)| text.replace(entity, character);
    let words: Vec<String> = texts.map(|text| ENTITIES.iter().rev().fold(text.to_owned(), plain)).collect();
    InstalledCommand::of(&words)
}

/// When an installed agent runs: as wanted, or at an interval.
pub fn when_of(agent: &str, wanted: &When) -> Option<When> {
    let usual = [wanted.clone(), When::Every(24), When::Every(168)];
    let is_it = |when: &When| times(when).is_ok_and(|times| agent.contains(&times));
    if let Some(when) = usual.into_iter().find(is_it) {
        return Some(when);
    }
    let rest = agent.split_once("<key>StartInterval</key>")?.1;
    let seconds: u64 = rest.split_once("<integer>")?.1.split_once("</integer>")?.0.trim().parse().ok()?;
    seconds.is_multiple_of(3600).then_some(When::Every(seconds / 3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calendar_becomes_one_entry_for_each_weekday() {
        let on = |text: &str| When::On(text.to_owned());
        let text = times(&on("Mon,Thu 07:30")).unwrap();
        assert_eq!(text.matches("<key>Weekday</key>").count(), 2);
        assert_eq!(text.matches("<integer>30</integer>").count(), 2);
        assert_eq!(times(&When::Every(24)).unwrap(), times(&on("daily")).unwrap());
        assert_eq!(when_of(&text, &on("Mon,Thu 07:30")), Some(on("Mon,Thu 07:30")));
        assert_eq!(when_of(&text, &on("Mon 07:30")), None);
        let error = times(&on("*:0/5")).unwrap_err();
        assert!(error.message().starts_with("launchd cannot express \"*:0/5\""), "{}", error.message());
    }
}
