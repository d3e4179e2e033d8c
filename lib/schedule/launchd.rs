//! launchd agents: a property list for each program, rendered from `launchd/`.

use crate::base::error::Result;
use crate::schedule::calendar::{Calendar, expressible};
use crate::schedule::plan::{InstallPlan, Scheduler, filled, is_filled, words};
use crate::schedule::timer::{InstalledCommand, TimedProgram, Timer, Timers, When};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn template(program: TimedProgram) -> &'static str {
    match program {
        TimedProgram::Consolidate => include_str!("../../launchd/com.agent-memory.consolidate.plist"),
        TimedProgram::Defrag => include_str!("../../launchd/com.agent-memory.defrag.plist"),
    }
}

pub(super) fn label(program: TimedProgram) -> String {
    format!("com.agent-memory.{}", program.short_name())
}

pub(super) fn dir(home: &Path) -> PathBuf {
    home.join("Library/LaunchAgents")
}

/// launchd creates the files, but not the directory.
pub(super) fn log_dir(home: &Path) -> PathBuf {
    home.join("Library/Logs/agent-memory")
}

pub(super) fn file(program: TimedProgram, home: &Path) -> PathBuf {
    dir(home).join(format!("{}.plist", label(program)))
}

pub(super) fn log(program: TimedProgram, home: &Path) -> PathBuf {
    log_dir(home).join(format!("{}.log", program.short_name()))
}

/// A user's agents, as launchctl names them.
pub(super) fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

pub fn plan(timers: &Timers, home: &str) -> Result<InstallPlan> {
    let home = Path::new(home);
    let (mut files, mut commands) = (Vec::new(), Vec::new());
    for timer in &timers.all {
        let path = file(timer.program, home);
        // A loaded agent does not read its file again.
        commands.push(words(&["launchctl", "bootout", &format!("{}/{}", domain(), label(timer.program))]));
        commands.push(words(&["launchctl", "bootstrap", &domain(), &path.to_string_lossy()]));
        let log = log(timer.program, home);
        files.push((path, agent(timer, &timers.vars, &log.to_string_lossy())?));
    }
    let dirs = if files.is_empty() { Vec::new() } else { vec![log_dir(home)] };
    Ok(InstallPlan { scheduler: Scheduler::Launchd, dirs, files, block: None, commands, remarks: Vec::new() })
}

fn agent(timer: &Timer, vars: &[(&str, String)], log: &str) -> Result<String> {
    let (mut command, mut environment) = (String::new(), String::new());
    for word in &timer.command() {
        let _ = writeln!(command, "\t\t<string>{}</string>", escaped(word));
    }
    for (name, value) in vars {
        let _ = writeln!(environment, "\t\t<key>{name}</key>\n\t\t<string>{}</string>", escaped(value));
    }
    let values = [
        ("@COMMAND@\n", &*command),
        ("@ENVIRONMENT@\n", &*environment),
        ("@TIMES@\n", &times(&timer.when)?),
        ("@LOG@", &escaped(log)),
    ];
    Ok(filled(template(timer.program), &values))
}

/// The key that says when it runs. A run that was missed while the machine slept is done when it wakes, but only with a
/// calendar.
fn times(when: &When) -> Result<String> {
    let calendar = match when.on_calendar() {
        When::On(calendar) => calendar,
        When::Every(hours) => {
            return Ok(format!("\t<key>StartInterval</key>\n\t<integer>{}</integer>\n", hours * 3600));
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
    Ok(format!("\t<key>StartCalendarInterval</key>\n\t<array>\n{dicts}\t</array>\n"))
}

/// Characters that have a meaning in XML, and their entities.
const ENTITIES: [(&str, &str); 3] = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")];

fn escaped(text: &str) -> String {
    ENTITIES.iter().fold(text.to_owned(), |text, (character, entity)| text.replace(character, entity))
}

/// Does this version write it so, but for the command and the environment?
pub fn is_current(agent: &str, timer: TimedProgram, wanted: &When) -> bool {
    times(wanted).is_ok_and(|times| {
        let template = filled(template(timer), &[("@TIMES@\n", &times)]);
        is_filled(agent, &template, &["@COMMAND@\n", "@ENVIRONMENT@\n", "@LOG@"])
    })
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
    fn what_is_written_is_read_back_as_it_was() {
        for program in ["/usr/bin/x", "/a & b/<c>/x", "/&amp;/x", "/ü \"'%$\\@LOG@/x"] {
            let timer = Timer {
                program: TimedProgram::Defrag,
                words: words(&[program, "--quiet"]),
                when: When::Every(36),
                then: None,
            };
            let text = agent(&timer, &[("HOME", "/h".to_owned())], "/h/log").unwrap();
            assert_eq!(command_of(&text).unwrap().program, Path::new(program), "{text}");
            assert!(is_current(&text, TimedProgram::Defrag, &When::Every(36)), "{text}");
            assert_eq!(when_of(&text, &When::Every(24)), Some(When::Every(36)));
        }
    }

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
