//! An agent's log (M6): plain Markdown, one entry per run, append-only.
//!
//! An entry begins at any line that begins with `## ` and ends before the next such line. People edit these files, so
//! nothing else is assumed about them. Logs are read from the end and counted in constant memory, so that a run
//! costs the same for a log of any length.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::base::text::{cut, lossy, one_line};
use crate::config::agent::{AgentName, LogSettings};
use jiff::Timestamp;
use memchr::memmem;
use std::borrow::Cow;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A result is cut after this many characters (M6 2.5).
const RESULT_CHARS: usize = 1000;
/// How long an entry waits for the log's lock although the deadline has passed: the answer was paid for.
const LEAST_WAIT: Duration = Duration::from_millis(100);
/// The most that goes into a prompt, in bytes.
const LOAD_CAP: u64 = 64 * 1024 * 1024;
/// An entry's header, with the end of the line before it.
const HEADER: &[u8] = b"\n## ";
const BLOCK: u64 = 64 * 1024;

/// `memory.path` without change, else `memory/<agent>.md` in the data directory. Creates nothing.
pub fn path(name: &AgentName, memory: &LogSettings, env: &Env) -> Result<PathBuf> {
    if memory.path.is_empty() {
        Ok(env.data_dir()?.join("memory").join(format!("{name}.md")))
    } else {
        Ok(PathBuf::from(&memory.path))
    }
}

/// Appends one [`entry`]. Creates the file and its directory if necessary; after an error the file is as it was. Another
/// program's lock is waited for until `deadline`, and at least for [`LEAST_WAIT`].
pub fn append(path: &Path, entry: &str, deadline: Deadline) -> io::Result<()> {
    file::append_within(path, entry.as_bytes(), 0o644, deadline.remaining().max(LEAST_WAIT))
}

/// The entry of a run. `task_chars` is the length at which the task is cut; 0: never.
pub fn entry(time: Timestamp, task: &str, result: &str, task_chars: usize) -> String {
    let task = if task_chars == 0 { Cow::Borrowed(task) } else { cut(task, task_chars) };
    let task = task.replace(['\n', '\r'], " ");
    let task = if task.is_empty() { "(none)" } else { &task };
    let result = if result.is_empty() { Cow::Borrowed("(none)") } else { cut(result, RESULT_CHARS) };
    // A heading in an answer must not begin an entry. With a space before it, it is still one in Markdown.
    let result = result.replace("\n## ", "\n ## ");
    let time = time.strftime("%Y-%m-%dT%H:%M:%SZ");
    format!("## {time}\n**Task:** {task}\n**Result:** {result}\n\n")
}

/// The newest `last_n` entries without change, and without text before the first header; 0: the whole file.
/// A missing file counts as an empty one. A program that is writing to it is waited for, but not beyond `deadline`.
pub fn tail(path: &Path, last_n: usize, deadline: Deadline) -> io::Result<String> {
    let Some((mut log, end)) = file::open_settled_within(path, deadline.remaining())? else {
        return Ok(String::new());
    };
    let start = if last_n == 0 { 0 } else { start_of_tail(&mut log, end, last_n as u64)?.unwrap_or(end) };
    if end - start > LOAD_CAP {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "{} bytes of \"{}\" would be loaded, more than {} MiB; set memory.last_n or trim it",
                end - start,
                path.display(),
                LOAD_CAP >> 20
            ),
        ));
    }
    log.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::with_capacity((end - start) as usize);
    log.take(end - start).read_to_end(&mut bytes)?;
    Ok(lossy(bytes).0)
}

/// How many entries a file had, and up to where they were counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogCount {
    pub entries: u64,
    file: file::FileId,
    end: u64,
}

/// Counts the entries. A missing file has none. Waits like [`tail`].
pub fn count(path: &Path, deadline: Deadline) -> io::Result<LogCount> {
    match file::open_settled_within(path, deadline.remaining())? {
        Some((log, end)) => Ok(LogCount { file: file::id(&log)?, end, entries: count_in(log.take(end))? }),
        None => Ok(LogCount::default()),
    }
}

/// What a log says about its runs without a model: how many, when, and the mean length of a result in characters, which
/// is counted in what is stored. `None` without any entry.
pub fn overview(log: &str) -> Option<String> {
    let with_break = format!("\n{log}");
    let entries: Vec<&str> = with_break.split("\n## ").skip(1).collect();
    let time = |entry: &&str| one_line(entry.lines().next().unwrap_or_default(), 40);
    let (first, last) = (time(entries.first()?), time(entries.last()?));
    let lengths = entries.iter().map(|entry| {
        entry.split_once("\n**Result:** ").map_or(0, |(_, result)| result.trim_end().chars().count())
    });
    let mean = lengths.sum::<usize>() / entries.len();
    Some(format!("Runs: {}, first {first}, last {last}, mean result {mean} characters", entries.len()))
}

/// How many entries `log` has.
pub fn count_in(mut log: impl Read) -> io::Result<u64> {
    let header = memmem::Finder::new(HEADER);
    let overlap = HEADER.len() - 1;
    let mut buffer = vec![0; 4 * BLOCK as usize];
    // The file's first line may be a header too.
    buffer[0] = b'\n';
    let mut filled = 1;
    let mut count = 0;
    loop {
        match log.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(count),
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        count += header.find_iter(&buffer[..filled]).count() as u64;
        // A header may be split between two reads. What is kept is too short to contain one that was counted.
        let keep = filled.min(overlap);
        buffer.copy_within(filled - keep..filled, 0);
        filled = keep;
    }
}

/// The result of a trim, in entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trimmed {
    /// 0: there was nothing to remove.
    pub removed: u64,
    pub kept: u64,
}

/// Keeps the newest `keep` entries, byte for byte; 0 keeps all (M7 3.1).
/// Text before the first header is removed together with the entries after it.
///
/// `counted` is the count from when the log was read for its analysis. Entries that were appended since were not
/// analysed, so they stay even if there are more than `keep`; and only they need to be counted under the lock.
/// Appends and other trims wait, so that no entry is lost between reading and replacing. After an error the log is as
/// it was. `own_dir`: the directory contains only our files, so leftovers can be removed.
pub fn trim(path: &Path, keep: usize, counted: LogCount, own_dir: bool) -> io::Result<Trimmed> {
    let unchanged = |kept| Ok(Trimmed { removed: 0, kept });
    if keep == 0 {
        return unchanged(counted.entries);
    }
    let Some(mut log) = file::lock_for_change(path, false)? else { return unchanged(0) };
    if own_dir {
        file::sweep(path);
    }
    let end = log.metadata()?.len();
    let grown = file::id(&log)? == counted.file && counted.end <= end;
    // If the file was replaced, another trim did it, and what is new in it is unknown.
    let (before, since) = if grown { (counted.entries, counted.end) } else { (0, 0) };
    log.seek(SeekFrom::Start(since))?;
    let new = count_in(log.by_ref().take(end - since))?;
    let kept = if grown { new.max(keep as u64) } else { keep as u64 };
    let start = start_of_tail(&mut log, end, kept)?;
    // If there is no entry before that, there is nothing to remove.
    let Some(start) = start.filter(|start| *start > 0) else { return unchanged(before + new) };
    if start_of_tail(&mut log, start, 1)?.is_none() {
        return unchanged(before + new);
    }
    log.seek(SeekFrom::Start(start))?;
    file::replace(path, |new| {
        let copied = io::copy(&mut log.by_ref().take(end - start), new)?;
        if copied == end - start { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    })?;
    // At least one, even if the log was edited since it was counted.
    Ok(Trimmed { removed: (before + new).saturating_sub(kept).max(1), kept })
}

/// Where the `n`th entry from the end begins, else where the first one does; `None` without any entry.
fn start_of_tail(log: &mut (impl Read + Seek), end: u64, n: u64) -> io::Result<Option<u64>> {
    let header = memmem::FinderRev::new(HEADER);
    let mut found = None;
    let mut seen = 0;
    let mut block_end = end;
    let mut buffer = Vec::new();
    while block_end > 0 {
        // Headers that begin in [block_start, block_end): with the newline before and the two bytes after.
        let block_start = block_end.saturating_sub(BLOCK);
        let from = block_start.saturating_sub(1);
        let to = (block_end + 2).min(end);
        buffer.clear();
        log.seek(SeekFrom::Start(from))?;
        log.by_ref().take(to - from).read_to_end(&mut buffer)?;
        for at in header.rfind_iter(&buffer) {
            found = Some(from + at as u64 + 1);
            seen += 1;
            if seen == n {
                return Ok(found);
            }
        }
        if block_start == 0 && buffer.starts_with(&HEADER[1..]) {
            return Ok(Some(0));
        }
        block_end = block_start;
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
