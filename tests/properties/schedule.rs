//! Crontabs and unit files, the user's and ours: only what is ours is touched, and what we wrote is read back.

use crate::base::env::pretend;
use crate::fuzz::{choice, is_told, parts, text};
use crate::schedule::scheduler::Scheduler;
use crate::schedule::timer::{TimedProgram, Timer, Timers, When};
use crate::schedule::{crontab, launchd, systemd, unit_file};
use std::path::PathBuf;

pub fn holds(bytes: &[u8]) {
    match choice(bytes, 4) {
        (0, rest) => a_crontab(rest),
        (1, unit) => {
            systemd::command_of(&text(unit));
            systemd::when_of(&text(unit), &When::Every(2));
        }
        (2, agent) => {
            launchd::command_of(&text(agent));
            if let Some(When::Every(hours)) = launchd::when_of(&text(agent), &When::Every(2)) {
                assert!(hours.checked_mul(3600).is_some());
            }
        }
        (_, rest) => ours(rest),
    }
}

fn a_crontab(bytes: &[u8]) {
    crontab::lines_of(&text(bytes));
    let at = match crontab::block(bytes) {
        Ok(at) => at,
        Err(error) => return is_told(&error.line()),
    };
    let (before, after) = match &at {
        Some(at) => (&bytes[..at.start], &bytes[at.end..]),
        None => (&b""[..], bytes),
    };
    let new = timers(&["/x/memory-consolidate".to_owned()], 2);
    let block = crontab::contents(&new).unwrap().0;
    let with = crontab::with_block(bytes, Some(&block)).unwrap();
    assert_eq!(text(&with), text(&[before, block.as_bytes(), after].concat()));
    let found = crontab::block(&with).unwrap().unwrap();
    assert_eq!(&with[found], block.as_bytes());
    assert_eq!(crontab::with_block(&with, Some(&block)).unwrap(), with);
    let without = crontab::with_block(&with, None).unwrap();
    assert_eq!(without, [before, after].concat());
    assert_eq!(crontab::block(&without).unwrap(), None);
}

/// Words that may stand in a timer, through every scheduler's file and back.
fn ours(bytes: &[u8]) {
    let [words, hours] = parts::<2>(bytes);
    let fits = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let words: Vec<String> =
        text(words).split('\n').map(|word| word.chars().filter(|c| fits(*c)).collect()).collect();
    let words = [&[format!("/{}", words[0])], &words[1..]].concat();
    let hours = hours.iter().fold(1, |hours, byte| (hours * 7 + u64::from(*byte)) % (366 * 24)).max(1);
    let when = When::Every(hours);
    let timers = timers(&words, hours);
    let program = PathBuf::from(&words[0]);

    let block = crontab::contents(&timers).unwrap().0;
    let line = block.lines().find(|line| !line.starts_with('#')).unwrap();
    let command = line.splitn(6, ' ').nth(5).unwrap();
    assert!(crontab::block(block.as_bytes()).unwrap() == Some(0..block.len()), "{block}");
    // What cron hands to the shell: up to the first `%` that no backslash stands before.
    assert!(!command.replace("\\%", "").contains('%'), "{command}");
    let read = shlex::split(&command.replace("\\%", "%")).unwrap();
    let own: Vec<&String> = read.iter().skip(timers.vars.len()).collect();
    assert_eq!(own, words.iter().collect::<Vec<_>>(), "{command}");
    let is_value = words[0].contains('=') && !words[0].split('=').next().unwrap().contains('/');
    if !is_value {
        let [(command, fields)] = &crontab::lines_of(&block)[..] else { panic!("{block}") };
        assert_eq!(command.program, program, "{block}");
        let nearest = crontab::nearest(&when);
        let read = crontab::when_of(fields, TimedProgram::Consolidate, &When::Every(2));
        assert_eq!(read, Some(nearest), "{block}");
    }

    let env = pretend(&[("HOME", "/home/x")]);
    for scheduler in [Scheduler::Systemd, Scheduler::Launchd] {
        let files = unit_file::contents(scheduler, &timers, &env).unwrap();
        let whole: String = files.iter().map(|(_, file)| file.as_str()).collect();
        let is_current =
            unit_file::is_current(&whole, scheduler, TimedProgram::Consolidate, &when, &env).unwrap();
        assert!(is_current, "{whole}");
        for (path, file) in files {
            let is_left =
                |place: &&&str| file.contains(**place) && !words.iter().any(|word| word.contains('@'));
            assert_eq!(
                ["@COMMAND@", "@ENVIRONMENT@", "@WHEN@", "@TIMES@", "@LOG@"].iter().find(is_left),
                None,
                "{file}"
            );
            match path.extension().unwrap().to_str().unwrap() {
                "service" => assert_eq!(systemd::command_of(&file).unwrap().program, program, "{file}"),
                "timer" => assert_eq!(systemd::when_of(&file, &when).as_ref(), Some(&when)),
                _ => {
                    assert_eq!(launchd::command_of(&file).unwrap().program, program, "{file}");
                    assert_eq!(launchd::when_of(&file, &when).as_ref(), Some(&when));
                }
            }
        }
    }
}

fn timers(words: &[String], hours: u64) -> Timers {
    let last = words.last().cloned().unwrap_or_default();
    Timers {
        all: vec![Timer {
            program: TimedProgram::Consolidate,
            words: words.to_vec(),
            when: When::Every(hours),
            then: None,
        }],
        vars: vec![("HOME", last), ("PATH", "/bin:/usr/bin".to_owned())],
    }
}
