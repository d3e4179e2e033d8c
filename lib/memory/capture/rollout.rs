//! Codex's session files: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl` below its home.

use crate::base::env::Env;
use crate::base::file;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, civil::Date};
use serde::Deserialize;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// How much of the first line is read, in bytes. Recorded ones have 22 kB.
const FIRST_LINE: u64 = 1 << 20;
/// How many days are searched, newest first, for an id without a date.
const DAYS: usize = 400;

/// The file of a thread. The id has been checked.
pub(super) fn of_thread(id: &str, env: &Env) -> Option<PathBuf> {
    let home = match env.os("CODEX_HOME") {
        Some(home) => PathBuf::from(home),
        None => env.home()?.join(".codex"),
    };
    let sessions = home.join("sessions");
    let end = format!("-{id}.jsonl");
    match born(id) {
        // A directory has the local date, which may be a day before or after the date in UTC.
        Some(day) => [day, day.saturating_sub(1.day()), day.saturating_add(1.day())]
            .iter()
            .find_map(|day| ends_with(&sessions.join(day.strftime("%Y/%m/%d").to_string()), &end)),
        None => {
            let days = newest(&sessions).into_iter().flat_map(|year| newest(&year)).flat_map(|m| newest(&m));
            days.take(DAYS).find_map(|day| ends_with(&day, &end))
        }
    }
}

/// The day in UTC on which a UUID of version 7 was made: its first 48 bits are milliseconds since 1970.
fn born(id: &str) -> Option<Date> {
    let hex: String = id.split('-').collect();
    if hex.len() != 32 || hex.as_bytes().get(12) != Some(&b'7') {
        return None;
    }
    let milliseconds = i64::from_str_radix(hex.get(..12)?, 16).ok()?;
    Some(Timestamp::from_millisecond(milliseconds).ok()?.to_zoned(TimeZone::UTC).date())
}

fn ends_with(day: &Path, end: &str) -> Option<PathBuf> {
    let names = fs_err::read_dir(day).ok()?.filter_map(Result::ok);
    let name = names.map(|entry| entry.file_name()).find(|name| {
        let name = name.to_string_lossy();
        name.starts_with("rollout-") && name.ends_with(end)
    })?;
    Some(day.join(name))
}

/// The directories in `dir` with a number as their name, the greatest first.
fn newest(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(dir) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())).collect();
    names.sort_by(|a, b| b.cmp(a));
    names.iter().map(|name| dir.join(name)).collect()
}

#[derive(Deserialize)]
struct FirstLine {
    payload: Meta,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    source: Value,
    #[serde(default)]
    thread_source: Value,
    #[serde(default)]
    git: Value,
}

/// The first line of a file; `None` if it cannot be read.
fn first_line(path: &Path) -> Option<Meta> {
    let (opened, _) = file::open_regular(path).ok()?;
    let mut line = Vec::new();
    BufReader::new(opened.take(FIRST_LINE)).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice::<FirstLine>(&line).ok().map(|line| line.payload)
}

/// Does the first line say that an agent, not a person, started this thread? `false` if it cannot be read.
pub(super) fn is_sub_agents(path: &Path) -> bool {
    first_line(path)
        .is_some_and(|meta| meta.source.get("subagent").is_some() || meta.thread_source == "subagent")
}

/// The address of the repository that the thread was in.
pub(super) fn remote(path: &Path) -> Option<String> {
    first_line(path)?.git.get("repository_url")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::base::env::pretend;
    use std::fs;

    const ID: &str = "01a1ffeb-40ef-7d92-ae11-227dd73028eb";

    #[test]
    fn an_id_of_version_seven_contains_its_day() {
        assert_eq!(born(ID).unwrap().to_string(), "2026-11-21");
        for id in ["", "01a1ffeb", "11111111-1111-4111-8111-111111111111", "ffffffffffff7zzz", "ä1a1ffeb"] {
            assert_eq!(born(id), None, "{id}");
        }
        // The latest time in 48 bits is beyond the range of dates.
        assert_eq!(born("ffffffff-ffff-7d92-ae11-227dd73028eb"), None);
    }

    #[test]
    fn a_thread_is_found_on_its_day_on_the_next_and_by_a_full_search() {
        let home = tempfile::tempdir().unwrap();
        let env = pretend(&[("CODEX_HOME", home.path().to_str().unwrap())]);
        assert_eq!(of_thread(ID, &env), None);
        for (id, day) in [
            (ID, "2026/11/21"),
            (ID, "2026/11/22"),
            (ID, "2026/11/20"),
            ("old-form", "2025/01/02"),
            ("old-form", "2026/11/21"),
        ] {
            let day = home.path().join("sessions").join(day);
            fs::create_dir_all(&day).unwrap();
            let path = day.join(format!("rollout-2026-11-21T21-02-50-{id}.jsonl"));
            fs::write(day.join("rollout-x-other.jsonl"), "").unwrap();
            fs::write(&path, "").unwrap();
            assert_eq!(of_thread(id, &env).as_deref(), Some(path.as_path()));
            fs::remove_file(path).unwrap();
        }
        assert_eq!(of_thread("none", &env), None);
    }

    #[test]
    fn the_first_line_says_who_started_the_thread() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.jsonl");
        for (line, expected) in [
            (r#"{"type":"session_meta","payload":{"source":{"subagent":{"thread_spawn":{}}}}}"#, true),
            (r#"{"type":"session_meta","payload":{"source":{"subagent":"review"}}}"#, true),
            (r#"{"type":"session_meta","payload":{"source":"cli","thread_source":"subagent"}}"#, true),
            (r#"{"type":"session_meta","payload":{"source":"cli","thread_source":"user"}}"#, false),
            (r#"{"type":"session_meta","payload":{}}"#, false),
            (r#"{"type":"session_meta","payload":{"source":{"subag"#, false),
            ("", false),
        ] {
            fs::write(&path, format!("{line}\n{{}}\n")).unwrap();
            assert_eq!(is_sub_agents(&path), expected, "{line}");
        }
        assert!(!is_sub_agents(&dir.path().join("missing")));
        assert!(!is_sub_agents(dir.path()));
    }
}
