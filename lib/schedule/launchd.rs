//! launchd agents: a property list for each program, rendered from `launchd/`.

use crate::schedule::plan::{InstallPlan, Scheduler, filled, words};
use crate::schedule::timer::{TimedProgram, Timer, Timers};
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

pub(crate) fn plan(timers: &Timers, home: &str) -> InstallPlan {
    let home = Path::new(home);
    let (mut files, mut commands) = (Vec::new(), Vec::new());
    for timer in &timers.all {
        let path = file(timer.program, home);
        // A loaded agent does not read its file again.
        commands.push(words(&["launchctl", "bootout", &format!("{}/{}", domain(), label(timer.program))]));
        commands.push(words(&["launchctl", "bootstrap", &domain(), &path.to_string_lossy()]));
        files.push((path, agent(timer, &timers.vars, &log(timer.program, home).to_string_lossy())));
    }
    let dirs = if files.is_empty() { Vec::new() } else { vec![log_dir(home)] };
    InstallPlan { scheduler: Scheduler::Launchd, dirs, files, block: None, commands, remarks: Vec::new() }
}

fn agent(timer: &Timer, vars: &[(&str, String)], log: &str) -> String {
    let (mut command, mut environment) = (String::new(), String::new());
    for word in &timer.words {
        let _ = writeln!(command, "\t\t<string>{}</string>", escaped(word));
    }
    for (name, value) in vars {
        let _ = writeln!(environment, "\t\t<key>{name}</key>\n\t\t<string>{}</string>", escaped(value));
    }
    let values = [
        ("@COMMAND@\n", &*command),
        ("@ENVIRONMENT@\n", &*environment),
        ("@SECONDS@", &(timer.hours * 3600).to_string()),
        ("@LOG@", &escaped(log)),
    ];
    filled(template(timer.program), &values)
}

/// Characters that have a meaning in XML, and their entities.
const ENTITIES: [(&str, &str); 3] = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")];

fn escaped(text: &str) -> String {
    ENTITIES.iter().fold(text.to_owned(), |text, (character, entity)| text.replace(character, entity))
}

/// The program that an installed agent runs.
pub(crate) fn program_of(agent: &str) -> Option<PathBuf> {
    let array = agent.split_once("<key>ProgramArguments</key>")?.1;
    let text = array.split_once("<string>")?.1.split_once("</string>")?.0;
    let plain = |text: String, (character, entity): &(&str, &str)| text.replace(entity, character);
    Some(PathBuf::from(ENTITIES.iter().rev().fold(text.to_owned(), plain)))
}

/// The interval of an installed agent.
pub(crate) fn hours_of(agent: &str) -> Option<u64> {
    let rest = agent.split_once("<key>StartInterval</key>")?.1;
    let seconds: u64 = rest.split_once("<integer>")?.1.split_once("</integer>")?.0.trim().parse().ok()?;
    seconds.is_multiple_of(3600).then_some(seconds / 3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_as_it_was() {
        for program in ["/usr/bin/x", "/a & b/<c>/x", "/&amp;/x", "/ü \"'%$\\@LOG@/x"] {
            let timer =
                Timer { program: TimedProgram::Defrag, words: words(&[program, "--quiet"]), hours: 36 };
            let text = agent(&timer, &[("HOME", "/h".to_owned())], "/h/log");
            assert_eq!(program_of(&text), Some(PathBuf::from(program)), "{text}");
            assert_eq!(hours_of(&text), Some(36));
        }
    }
}
