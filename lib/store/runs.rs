//! The ledger: one JSON line for each run of an agent, appended when the run ends. No prompt and no answer is in it.

use crate::base::ago::utc_day;
use crate::base::deadline::LONGEST_SECONDS;
use crate::base::env::Env;
use crate::base::error::{Error, Result, unwritable};
use crate::base::file;
use crate::base::text::{one_line, size};
use crate::config::agent::AgentName;
use crate::config::model::Model;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest line that is read, in bytes.
const LINE_CAP: u64 = 4 << 20;

/// When the run began, and six random characters: `20260228T150405Z-a1B2c3`. Ids sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(String);

impl RunId {
    pub fn new(env: &Env) -> Result<RunId> {
        Ok(RunId(format!("{}-{}", env.now().strftime("%Y%m%dT%H%M%SZ"), file::random58(6)?)))
    }

    /// An id that a person typed. It becomes part of a path.
    pub fn parse(text: &str) -> Result<RunId> {
        let is_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
        match (1..=64).contains(&text.len()) && text.chars().all(is_id) {
            true => Ok(RunId(text.to_owned())),
            false => Err(Error::usage(format!("not the id of a run: \"{}\"", text.escape_debug()))
                .hint("see them with: axe runs")),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `runs/` in the data directory: the ledger, the turns of unfinished runs, what was spent. Creates nothing.
pub fn runs_dir(env: &Env) -> Result<PathBuf> {
    Ok(env.data_dir()?.join("runs"))
}

/// Makes `runs/` for a file in it. Only the user can read it; the data directory has the usual mode.
pub fn make_dir_of(path: &Path) -> io::Result<()> {
    let Some(runs) = path.parent() else { return Ok(()) };
    runs.parent().map_or(Ok(()), file::make_dir)?;
    file::make_private_dir(runs)
}

/// What one run took, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub id: String,
    /// When it began.
    pub time: Timestamp,
    pub program: String,
    pub agent: String,
    pub model: String,
    /// These are sums over the agent and its sub-agents.
    #[serde(default)]
    pub input_tokens: u64,
    #[serde(default)]
    pub output_tokens: u64,
    #[serde(default)]
    pub cache_read_tokens: u64,
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// `None` if it is not known.
    #[serde(default)]
    pub cost: Option<f64>,
    #[serde(default)]
    pub calls: u64,
    #[serde(default)]
    pub retries: u64,
    #[serde(default)]
    pub tools: Vec<ToolRun>,
    /// The agents that it called itself.
    #[serde(default)]
    pub sub_agents: Vec<SubRun>,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default)]
    pub exit: i32,
    #[serde(default)]
    pub error: Option<RunError>,
    /// The run that started this one, in a tool, a server or the command of a model, or that this one continues.
    #[serde(default)]
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRun {
    pub name: String,
    /// Without secrets, and cut.
    pub arguments: Value,
    pub exit: Option<i32>,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubRun {
    pub name: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunError {
    pub kind: String,
    /// On one line.
    pub message: String,
}

impl Run {
    pub fn of(self, agent: &AgentName, model: &Model) -> Run {
        Run { agent: agent.to_string(), model: model.to_string(), ..self }
    }
}

/// A line of the ledger, or a piece of one that is too long.
pub struct LedgerLine<'a> {
    /// From 1.
    pub number: u64,
    bytes: &'a [u8],
    /// The run, or why it cannot be read.
    pub run: Result<Run, String>,
}

pub fn path(env: &Env) -> Result<PathBuf> {
    Ok(runs_dir(env)?.join("ledger.jsonl"))
}

/// Adds a run. Waits for the lock of the ledger, but no longer than `wait`.
pub fn append(env: &Env, run: &Run, wait: Duration) -> Result<()> {
    let mut line = serde_json::to_vec(run).map_err(unwritable)?;
    line.push(b'\n');
    let path = path(env)?;
    make_dir_of(&path)?;
    Ok(file::append_within(&path, &line, 0o600, wait)?)
}

/// Shows `visit` each line, the oldest first. A missing ledger has none.
pub fn read(env: &Env, visit: &mut dyn FnMut(LedgerLine) -> Result<()>) -> Result<()> {
    match file::open_settled(&path(env)?)? {
        Some((ledger, end)) => each_line(ledger.take(end), visit),
        None => Ok(()),
    }
}

/// When the day and the month of a moment began, in UTC.
pub fn periods(now: Timestamp) -> [Timestamp; 2] {
    let day = utc_day(now);
    [day, day.first_of_month()].map(|day| day.to_zoned(TimeZone::UTC).map_or(now, |begin| begin.timestamp()))
}

/// What the runs took that began in a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Took {
    pub runs: u64,
    pub tokens: u64,
    /// Of those whose cost is known; `None` if it is known of none.
    pub cost: Option<f64>,
}

/// The longest run that a sum still counts if another one ended after it.
const LONGEST: SignedDuration = SignedDuration::from_secs(LONGEST_SECONDS as i64);

/// What the runs took that began on the day of `now`, and in its month. Lines that cannot be read do not count.
pub fn took(env: &Env, now: Timestamp) -> Result<[Took; 2]> {
    let (starts, mut sums) = (periods(now), [Took::default(); 2]);
    file::newest_lines(&path(env)?, &mut |line| {
        let Ok(run) = serde_json::from_slice::<Run>(line) else { return true };
        for (_, sum) in starts.iter().zip(&mut sums).filter(|(start, _)| run.time >= **start) {
            sum.runs += 1;
            sum.tokens = sum.tokens.saturating_add(run.input_tokens.saturating_add(run.output_tokens));
            sum.cost = run.cost.map(|cost| sum.cost.unwrap_or_default() + cost).or(sum.cost);
        }
        // A line is written when its run ends.
        run.time.duration_since(starts[1]) > -LONGEST
    })?;
    Ok(sums)
}

/// Removes the runs that began before `start`. Lines that cannot be read stay. Returns how many lines were removed, and
/// how many are left.
pub fn trim(env: &Env, start: Timestamp) -> Result<(u64, u64)> {
    let path = path(env)?;
    // Appends wait.
    let Some(mut ledger) = file::lock_for_change(&path, false)? else { return Ok((0, 0)) };
    file::sweep(&path);
    ledger.seek(SeekFrom::Start(0))?;
    let (mut removed, mut last) = (0, 0);
    file::replace(&path, |new| {
        let mut new = BufWriter::new(new);
        each_line(&mut ledger, &mut |line: LedgerLine| -> io::Result<()> {
            last = line.number;
            match line.run {
                Ok(run) if run.time < start => removed += 1,
                _ => new.write_all(line.bytes)?,
            }
            Ok(())
        })?;
        new.flush()
    })?;
    Ok((removed, last - removed))
}

/// Reads in constant memory, however long the ledger is.
fn each_line<E: From<io::Error>>(
    ledger: impl Read,
    visit: &mut dyn FnMut(LedgerLine) -> Result<(), E>,
) -> Result<(), E> {
    let mut ledger = BufReader::with_capacity(1 << 16, ledger);
    let (mut line, mut number, mut is_rest) = (Vec::new(), 0, false);
    loop {
        line.clear();
        if ledger.by_ref().take(LINE_CAP).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        number += u64::from(!is_rest);
        let is_cut = !line.ends_with(b"\n") && line.len() as u64 == LINE_CAP;
        let run = match is_cut || is_rest {
            true => Err(format!("it is longer than {}", size(LINE_CAP))),
            false => serde_json::from_slice(&line).map_err(|e| {
                // Its line would be the first.
                let why = e.to_string();
                one_line(why.split(" at line ").next().unwrap_or_default(), 200)
            }),
        };
        is_rest = is_cut;
        visit(LedgerLine { number, bytes: &line, run })?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    fn run(id: &str, time: &str) -> Run {
        Run { id: id.to_owned(), time: time.parse().unwrap(), cost: Some(0.5), ..Run::default() }
    }

    fn ids(env: &Env) -> Vec<Result<String, u64>> {
        let mut found = Vec::new();
        read(env, &mut |line| {
            found.push(line.run.map(|run| run.id).map_err(|_| line.number));
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn a_trim_keeps_the_new_runs_and_what_it_cannot_read() {
        let dir = tempfile::tempdir().unwrap();
        let env = pretend(&[("XDG_DATA_HOME", dir.path().to_str().unwrap())]);
        assert_eq!(trim(&env, Timestamp::MAX).unwrap(), (0, 0));
        for (id, time) in [("a", "2026-01-01T00:00:00Z"), ("b", "2026-01-02T00:00:00Z")] {
            append(&env, &run(id, time), Duration::ZERO).unwrap();
        }
        let long = "x".repeat(2 * LINE_CAP as usize + 7);
        file::append_durably(&path(&env).unwrap(), format!("{{\n{long}\n").as_bytes(), 0o600).unwrap();
        append(&env, &run("c", "2026-01-03T00:00:00Z"), Duration::ZERO).unwrap();
        let start = "2026-01-02T00:00:00Z".parse().unwrap();
        assert_eq!(trim(&env, start).unwrap(), (1, 4));
        let (b, c) = (Ok("b".to_owned()), Ok("c".to_owned()));
        // The long line comes in three pieces of one number.
        assert_eq!(ids(&env), [b, Err(2), Err(3), Err(3), Err(3), c]);
        assert_eq!(trim(&env, Timestamp::MAX).unwrap(), (2, 2));
        let left = std::fs::read_to_string(path(&env).unwrap()).unwrap();
        assert_eq!(left, format!("{{\n{long}\n"));
    }
}
