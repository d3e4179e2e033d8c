//! The crontab: our block, between two markers, above everything else.
//!
//! Above, because a line of the user's that sets SHELL, MAILTO or PATH affects everything after it, and because the
//! rest then keeps every byte, even a missing last newline.

use crate::base::error::{Error, Result};
use crate::schedule::calendar::{Calendar, expressible};
use crate::schedule::timer::{InstalledCommand, TimedProgram, Timer, Timers, When};
use std::fmt::Write;
use std::ops::Range;

const START: &str = "# agent-memory:start";
const END: &str = "# agent-memory:end";

/// Our block, and what in it differs from the request.
pub fn contents(timers: &Timers) -> Result<(String, Vec<String>)> {
    let mut block = format!("{START}\n# Written by memory-install-cron; memory-uninstall-cron removes it.\n");
    let mut remarks = Vec::new();
    for timer in &timers.all {
        let when = nearest(&timer.when);
        if when != timer.when {
            let name = timer.program.name();
            remarks.push(format!("cron cannot express \"{}\": {name} will run {when}", timer.when));
        }
        let times = times(timer.program, &when).map_err(|e| e.context(timer.program.key()))?;
        let _ = writeln!(block, "{times} {}", command(timer, &timers.vars));
    }
    let _ = writeln!(block, "{END}");
    Ok((block, remarks))
}

/// The intervals that cron's five fields can express without a jump at the end of a day, a week or a month.
const EXPRESSIBLE: [u64; 9] = [1, 2, 3, 4, 6, 8, 12, 24, 7 * 24];

/// Of an interval the longest of them that does not exceed it: rather too often than too seldom.
pub fn nearest(when: &When) -> When {
    match when {
        When::Every(hours) => {
            When::Every(EXPRESSIBLE.into_iter().rev().find(|most| most <= hours).unwrap_or(1))
        }
        When::On(_) => when.clone(),
    }
}

/// Each program has its own minute, so that they do not collide.
fn minute_of(program: TimedProgram) -> u8 {
    match program {
        TimedProgram::Consolidate => 17,
        TimedProgram::Defrag => 47,
    }
}

/// The same times as of the five fields. Daily ones run around noon, when most machines are awake.
pub(super) fn calendars(program: TimedProgram, when: &When) -> Vec<Calendar> {
    let at = |weekdays: Vec<u8>, hour| Calendar { weekdays, day: None, hour, minute: minute_of(program) };
    let daily = |hour: u8| at(Vec::new(), Some(hour));
    match when {
        When::Every(1) => vec![at(Vec::new(), None)],
        When::Every(24) => vec![daily(12)],
        When::Every(168) => vec![at(vec![1], Some(12))],
        When::Every(hours) => (0..24).step_by((*hours).clamp(1, 24) as usize).map(daily).collect(),
        When::On(text) => Calendar::parse(text).into_iter().collect(),
    }
}

/// The five fields.
fn times(program: TimedProgram, when: &When) -> Result<String> {
    let calendar = match when {
        When::On(text) => expressible(text, "cron")?,
        When::Every(hours) => match &calendars(program, when)[..] {
            [calendar] => calendar.clone(),
            // Several times a day.
            _ => return Ok(format!("{} */{hours} * * *", minute_of(program))),
        },
    };
    let Calendar { weekdays, day, hour, minute } = calendar;
    let field = |value: Option<u8>| value.map_or("*".to_owned(), |value| value.to_string());
    let days: Vec<String> = weekdays.iter().map(|day| (day % 7).to_string()).collect();
    let days = if days.is_empty() { "*".to_owned() } else { days.join(",") };
    Ok(format!("{minute} {} {} * {days}", field(hour), field(day)))
}

/// For `/bin/sh`. The variables come before the program, not on lines of their own, which would affect the user's
/// lines too.
fn command(timer: &Timer, vars: &[(&str, String)]) -> String {
    let vars = vars.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    vars.chain(timer.command().iter().map(|word| quoted(word))).collect::<Vec<_>>().join(" ")
}

/// A word for the shell, in a line for cron, where an unescaped `%` ends the command. Outside of quotes, `\%` means
/// `%`, whether cron removes the backslash or the shell does.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@=+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''").replace('%', "'\\%'"))
}

/// Where our block is, including markers and line ends. A marker without its counterpart is an error: it is then
/// unclear which lines are ours.
pub fn block(crontab: &[u8]) -> Result<Option<Range<usize>>> {
    let mut markers = Vec::new();
    let mut at = 0;
    for (n, line) in crontab.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let text = line.trim_ascii();
        if text == START.as_bytes() || text == END.as_bytes() {
            markers.push((text == START.as_bytes(), n + 1, at..at + line.len()));
        }
        at += line.len();
    }
    let fault = |why: String| {
        Error::refused(format!("the crontab was not changed: {why}")).hint("fix the markers with: crontab -e")
    };
    match &markers[..] {
        [] => Ok(None),
        [(true, _, start), (false, _, end)] => Ok(Some(start.start..end.end)),
        [(true, line, _)] => Err(fault(format!("\"{START}\" in line {line} has no end"))),
        [(false, line, _), ..] => Err(fault(format!("\"{END}\" in line {line} has no start"))),
        [(true, first, _), (true, second, _), ..] => {
            Err(fault(format!("\"{START}\" is in line {first}, and again in line {second}")))
        }
        [_, _, (_, third, _), ..] => Err(fault(format!("a second block of markers begins in line {third}"))),
    }
}

/// The crontab with `new` instead of our block, or above the rest. `None`: without our block.
pub fn with_block(crontab: &[u8], new: Option<&str>) -> Result<Vec<u8>> {
    let place = block(crontab)?.unwrap_or(0..0);
    let new = new.unwrap_or_default().as_bytes();
    Ok([&crontab[..place.start], new, &crontab[place.end..]].concat())
}

/// What a block runs: the command of each line, and its five fields.
pub fn lines_of(block: &str) -> Vec<(InstalledCommand, String)> {
    let lines = block.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines
        .filter_map(|line| {
            let mut rest = line;
            for _ in 0..5 {
                rest = rest.trim_start().split_once([' ', '\t'])?.1;
            }
            let fields = line.strip_suffix(rest)?.trim_end().to_owned();
            let is_value = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
            let words: Vec<String> = shlex::split(rest)?.into_iter().skip_while(is_value).collect();
            Some((InstalledCommand::of(&words)?, fields))
        })
        .collect()
}

/// When a line with these fields runs the program: as wanted, or at an interval that we would write.
pub fn when_of(fields: &str, program: TimedProgram, wanted: &When) -> Option<When> {
    let mut known = std::iter::once(wanted.clone()).chain(EXPRESSIBLE.into_iter().map(When::Every));
    known.find(|when| times(program, when).is_ok_and(|written| written == fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::scheduler::words;
    use std::path::Path;

    #[test]
    fn intervals_that_cron_cannot_say_become_shorter_ones() {
        for (asked, said) in
            [(1, 1), (5, 4), (7, 6), (11, 8), (23, 12), (36, 24), (48, 24), (168, 168), (8784, 168)]
        {
            assert_eq!(nearest(&When::Every(asked)), When::Every(said));
        }
        for hours in EXPRESSIBLE {
            assert_eq!(nearest(&When::Every(hours)), When::Every(hours));
        }
    }

    #[test]
    fn calendars_become_fields() {
        let fields = |text: &str| times(TimedProgram::Defrag, &When::On(text.to_owned()));
        for (text, expected) in [
            ("hourly", "0 * * * *"),
            ("daily", "0 0 * * *"),
            ("weekly", "0 0 * * 1"),
            ("Mon..Fri 07:30", "30 7 * * 1,2,3,4,5"),
            ("Sun *-*-* 07:00", "0 7 * * 0"),
            ("*-*-15 06:00", "0 6 15 * *"),
        ] {
            assert_eq!(fields(text).unwrap(), expected, "{text}");
        }
        let error = fields("quarterly").unwrap_err();
        assert!(error.message().starts_with("cron cannot express \"quarterly\""), "{}", error.message());
    }

    #[test]
    fn a_shell_behind_cron_reads_the_same_word() {
        // cron takes the backslash before a percent sign away; some crons do not.
        for word in ["/a b", "100%", "\\%", "a\\\\%b%%", "it's", "'%'", "\"$x`y`\\", "ü&<;>*", "a\\"] {
            let line = quoted(word);
            for line in [line.replace("\\%", "%"), line] {
                assert_eq!(shlex::split(&line).as_deref(), Some(&[word.to_owned()][..]), "{line}");
            }
        }
    }

    #[test]
    fn the_rest_keeps_its_bytes() {
        let ours = format!("{START}\nx\n{END}\n");
        for rest in [&b""[..], b"a", b"a\r\nb\r\n", b"\xff\xfe\n\n\n", b"# agent-memory:starter\n"] {
            let with = with_block(rest, Some(&ours)).unwrap();
            assert_eq!(with, [ours.as_bytes(), rest].concat());
            assert_eq!(with_block(&with, Some(&ours)).unwrap(), with, "again");
            assert_eq!(with_block(&with, None).unwrap(), rest);
        }
        let moved = format!("a\n{START}\r\nold\n  {END}  \r\nb");
        assert_eq!(with_block(moved.as_bytes(), Some(&ours)).unwrap(), format!("a\n{ours}b").as_bytes());
    }

    #[test]
    fn broken_markers_are_named_with_their_lines() {
        for (text, why) in [
            ("a\n# agent-memory:start\nb\n", "in line 2 has no end"),
            ("# agent-memory:end\n# agent-memory:start\n", "in line 1 has no start"),
            (
                "# agent-memory:start\n\n# agent-memory:start\n# agent-memory:end",
                "in line 1, and again in line 3",
            ),
            (
                "# agent-memory:start\n# agent-memory:end\n# agent-memory:start\n# agent-memory:end\n",
                "second block of markers begins in line 3",
            ),
        ] {
            let error = with_block(text.as_bytes(), None).unwrap_err();
            assert!(error.message().contains(why), "{}", error.message());
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for program in ["/usr/bin/x", "/a b/x", "/50%/it's/x", "/a=b/x"] {
            let timer = Timer {
                program: TimedProgram::Consolidate,
                words: words(&[program, "--quiet"]),
                when: When::Every(36),
                then: None,
            };
            let timers = Timers { all: vec![timer], vars: vec![("HOME", "/h o".to_owned())] };
            let block = contents(&timers).unwrap().0;
            let [(command, fields)] = &lines_of(&block)[..] else { panic!("{block}") };
            assert_eq!(command.program, Path::new(program), "{block}");
            let when = when_of(fields, TimedProgram::Consolidate, &When::Every(2));
            assert_eq!(when, Some(When::Every(24)), "{block}");
        }
        assert!(lines_of("# a\n\nPATH=/x\n* * *\n").is_empty());
        let x = InstalledCommand { program: "x".into(), syncs: false };
        assert_eq!(lines_of("5 4 * * * x"), [(x, "5 4 * * *".to_owned())]);
        assert_eq!(when_of("5 4 * * *", TimedProgram::Consolidate, &When::Every(2)), None);
    }
}
