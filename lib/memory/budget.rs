//! The caps on LLM calls. Each call is written to a ledger before it is made; at the cap, none is made.

use crate::base::ago::utc_day;
use crate::base::error::{Error, Result, unwritable};
use crate::base::file;
use crate::base::text::BYTES_PER_TOKEN;
use crate::store::place::Root;
use crate::store::runs::periods;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The longest line of the ledger that is read, in bytes. Ours have a few hundred.
const LINE_CAP: u64 = 64 << 10;
/// Fewer bytes than any call has in the ledger: what cannot be read counts as one call for each so many.
const SHORTEST: u64 = 100;

pub struct CallBudget {
    ledger: PathBuf,
    per_run: u64,
    per_day: u64,
    made: Cell<u64>,
    /// The count so far: a long session asks hundreds of times, and the ledger grows with each call.
    counted: Cell<DayCount>,
}

/// The calls of one day, up to an offset in the ledger.
#[derive(Debug, Clone, Copy, Default)]
struct DayCount {
    day: Date,
    /// The offset of the first line that has not been counted, in bytes.
    end: u64,
    made: u64,
    /// Bytes of lines that could not be read.
    unreadable: u64,
}

/// A line of `calls.jsonl`. Each call has two: one before it is made and one after.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CallLine<'a> {
    at: Timestamp,
    event: CallEvent,
    #[serde(flatten)]
    call: LlmCall<'a>,
    /// Of one that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms: Option<u128>,
    /// `ok`, or the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CallEvent {
    Started,
    Ended,
}

/// What the ledger says about a call.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmCall<'a> {
    pub program: &'a str,
    pub batch: &'a str,
    /// `ask`, `repair`, `dry-run`
    pub purpose: &'a str,
    pub prompt_bytes: usize,
}

impl CallBudget {
    pub fn of(root: &Root, per_run: u64, per_day: u64) -> CallBudget {
        CallBudget {
            ledger: root.state().join("calls.jsonl"),
            per_run,
            per_day,
            made: Cell::new(0),
            counted: Cell::default(),
        }
    }

    /// How many calls of this run are left, and of this day.
    pub fn left(&self, now: Timestamp) -> Result<(u64, u64)> {
        let run = self.per_run.saturating_sub(self.made.get());
        let day = if run == 0 { 0 } else { self.per_day.saturating_sub(self.made_today(now)?) };
        Ok((run, day))
    }

    /// The cap that is reached; `None`: at least one call may still be made.
    pub fn spent(&self, now: Timestamp) -> Result<Option<String>> {
        let (cap, what) = match self.left(now)? {
            (0, _) => (self.per_run, "run is reached (llm.maxCallsPerRun)"),
            (_, 0) => (self.per_day, "day is reached (llm.maxCallsPerDay; days end at midnight UTC)"),
            _ => return Ok(None),
        };
        Ok(Some(format!("the cap of {cap} calls a {what}")))
    }

    /// Records that a call is about to be made. No call is made unless this line is on disk.
    pub fn start(&self, call: LlmCall, now: Timestamp) -> Result<()> {
        let event = CallEvent::Started;
        self.write(&CallLine { at: now, event, call, reply_bytes: None, ms: None, result: None })?;
        self.made.set(self.made.get() + 1);
        Ok(())
    }

    /// Records how the call ended. `result` is `ok`, or the error.
    pub fn end(
        &self,
        call: LlmCall,
        now: Timestamp,
        took: std::time::Duration,
        reply_bytes: usize,
        result: &str,
    ) -> Result<()> {
        let (reply_bytes, ms) = (Some(reply_bytes), Some(took.as_millis()));
        let event = CallEvent::Ended;
        self.write(&CallLine { at: now, event, call, reply_bytes, ms, result: Some(result) })
    }

    fn write(&self, line: &CallLine) -> Result<()> {
        let mut text = serde_json::to_vec(line).map_err(unwritable)?;
        text.push(b'\n');
        // In a store that came from elsewhere, a symlink may lead to one of the user's files.
        if self.ledger.is_symlink() {
            return Err(self.unusable(&std::io::Error::other("it is a symlink")));
        }
        // Appending would create it with the mode of a log.
        if let Err(e) = file::create(&self.ledger, b"", 0o600)
            && e.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(self.unusable(&e));
        }
        // A call that was paid for is not forgotten after a power cut.
        file::append_durably(&self.ledger, &text, 0o644).map_err(|e| self.unusable(&e))
    }

    fn unusable(&self, e: &std::io::Error) -> Error {
        Error::io(format!(
            "no LLM call is made, because the ledger of calls \"{}\" cannot be used: {e}",
            self.ledger.display()
        ))
        .hint("repair the file, or move it away")
    }

    /// How many bytes of the ledger cannot be read.
    pub fn unreadable(&self, now: Timestamp) -> Result<u64> {
        self.made_today(now)?;
        Ok(self.counted.get().unreadable)
    }

    /// How many calls began on the UTC day of `now`. What cannot be read counts as calls that are spent, as many as it
    /// may have held: better too few calls than too many.
    fn made_today(&self, now: Timestamp) -> Result<u64> {
        // Without the sizes: whatever stands there, it is one call.
        #[derive(Deserialize)]
        struct TimedCall {
            at: Timestamp,
            event: CallEvent,
        }
        let Some((mut file, length)) = file::open_settled(&self.ledger).map_err(|e| self.unusable(&e))?
        else {
            return Ok(0);
        };
        let today = utc_day(now);
        // Lines are only added. If the file shrank, or a new day has begun, all lines are counted again.
        let mut counted = self.counted.get();
        if counted.day != today || counted.end > length {
            counted = DayCount { day: today, ..DayCount::default() };
        }
        file.seek(SeekFrom::Start(counted.end)).map_err(|e| self.unusable(&e))?;
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = Read::take(&mut lines, LINE_CAP).read_until(b'\n', &mut line);
            if read.map_err(|e| self.unusable(&e))? == 0 {
                self.counted.set(counted);
                return Ok(counted.made);
            }
            let (more, unreadable) = match serde_json::from_slice::<TimedCall>(&line) {
                Ok(line) => (u64::from(line.event == CallEvent::Started && utc_day(line.at) == today), 0),
                Err(_) => {
                    let bytes = line.trim_ascii().len() as u64;
                    (bytes.div_ceil(SHORTEST), bytes)
                }
            };
            if !line.ends_with(b"\n") && (line.len() as u64) < LINE_CAP {
                // The last line is not complete yet: it counts now, and is read again next time.
                self.counted.set(counted);
                return Ok(counted.made + more);
            }
            counted.made += more;
            counted.unreadable += unreadable;
            counted.end += line.len() as u64;
        }
    }
}

/// What the calls of a day or a month took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallSum {
    pub calls: u64,
    /// Of prompts and replies, at four bytes a token: the command does not say how many there were.
    pub tokens: u64,
}

/// What the calls took that began on the UTC day of `now`, and in its month. Lines that cannot be read do not count.
pub fn taken(root: &Root, now: Timestamp) -> std::io::Result<[CallSum; 2]> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct SizedCall {
        at: Timestamp,
        event: CallEvent,
        #[serde(default)]
        prompt_bytes: u64,
        #[serde(default)]
        reply_bytes: u64,
    }
    let (starts, mut sums) = (periods(now), [CallSum::default(); 2]);
    file::newest_lines(&root.state().join("calls.jsonl"), &mut |line| {
        let Ok(line) = serde_json::from_slice::<SizedCall>(line) else { return true };
        let (calls, bytes) = match line.event {
            CallEvent::Started => (1, line.prompt_bytes),
            CallEvent::Ended => (0, line.reply_bytes),
        };
        for (_, sum) in starts.iter().zip(&mut sums).filter(|(start, _)| line.at >= **start) {
            sum.calls += calls;
            sum.tokens = sum.tokens.saturating_add(bytes / BYTES_PER_TOKEN);
        }
        line.at >= starts[1]
    })?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CALL: LlmCall = LlmCall { program: "p", batch: "b", purpose: "ask", prompt_bytes: 7 };

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// How many calls may still be made.
    fn left(budget: &CallBudget, now: Timestamp) -> u64 {
        let (run, day) = budget.left(now).unwrap();
        assert_eq!(budget.spent(now).unwrap().is_some(), run.min(day) == 0);
        run.min(day)
    }

    fn spent(budget: &CallBudget, now: Timestamp, cap: &str) -> bool {
        budget.spent(now).unwrap().is_some_and(|why| why.contains(cap))
    }

    fn store() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        root.make().unwrap();
        (dir, root)
    }

    #[test]
    fn each_call_has_a_line_before_and_one_after() {
        let (_dir, root) = store();
        let budget = CallBudget::of(&root, 5, 5);
        let now = time("2026-02-28T15:00:00Z");
        budget.start(CALL, now).unwrap();
        budget.end(CALL, now, Duration::from_millis(12), 34, "ok").unwrap();
        let text = fs_err::read_to_string(root.state().join("calls.jsonl")).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["event"], &lines[0]["promptBytes"]), (&"started".into(), &7.into()));
        assert_eq!((&lines[1]["event"], &lines[1]["ms"]), (&"ended".into(), &12.into()));
        assert_eq!((&lines[1]["replyBytes"], &lines[1]["result"]), (&34.into(), &"ok".into()));
    }

    #[test]
    fn a_run_has_its_cap_and_a_day_has_its() {
        let (_dir, root) = store();
        let now = time("2026-02-28T15:00:00Z");
        let one = CallBudget::of(&root, 2, 3);
        assert_eq!(left(&one, now), 2);
        one.start(CALL, now).unwrap();
        one.start(CALL, now).unwrap();
        assert!(spent(&one, now, "2 calls a run"));
        let two = CallBudget::of(&root, 2, 3);
        assert_eq!(left(&two, now), 1);
        two.start(CALL, now).unwrap();
        assert!(spent(&two, now, "3 calls a day"));
        assert!(spent(&CallBudget::of(&root, 0, 9), now, "0 calls a run"));
    }

    #[test]
    fn days_end_at_midnight_utc() {
        let (_dir, root) = store();
        let budget = CallBudget::of(&root, 9, 1);
        let late = time("2026-02-28T23:59:59.999Z");
        budget.start(CALL, late).unwrap();
        assert!(spent(&budget, late, "1 calls a day"));
        // The same instant in another time zone.
        assert!(spent(&budget, time("2026-03-01T01:59:59+02:00"), "1 calls a day"));
        assert_eq!(left(&budget, time("2026-03-01T00:00:00Z")), 1);
    }

    #[test]
    fn a_damaged_line_counts_as_a_call_of_today() {
        let (_dir, root) = store();
        let ledger = root.state().join("calls.jsonl");
        file::append_durably(
            &ledger,
            b"{\"at\":\"2026-02-\n\n\xff\xfe\n{\"at\":\"2020-01-01T00:00:00Z\",\"event\":\"started\"}\n",
            0o644,
        )
        .unwrap();
        assert_eq!(left(&CallBudget::of(&root, 9, 9), time("2026-02-28T15:00:00Z")), 7);
    }

    #[test]
    fn a_line_with_a_size_that_is_no_number_is_one_call() {
        let (_dir, root) = store();
        let ledger = root.state().join("calls.jsonl");
        let batch = "x".repeat(1_000);
        for size in ["\"7\"", "-7", "7.5", "null"] {
            let line = format!(
                "{{\"at\":\"2026-02-28T15:00:00Z\",\"event\":\"started\",\"batch\":\"{batch}\",\"promptBytes\":{size}}}\n"
            );
            file::append_durably(&ledger, line.as_bytes(), 0o644).unwrap();
        }
        assert_eq!(left(&CallBudget::of(&root, 9, 9), time("2026-02-28T16:00:00Z")), 5);
    }

    #[test]
    fn a_garbled_ledger_gives_no_fresh_day() {
        let (_dir, root) = store();
        let ledger = root.state().join("calls.jsonl");
        let now = time("2026-02-28T15:00:00Z");
        let budget = CallBudget::of(&root, 99, 99);
        for _ in 0..20 {
            budget.start(CALL, now).unwrap();
            budget.end(CALL, now, Duration::from_millis(12), 34, "ok").unwrap();
        }
        let length = fs_err::metadata(&ledger).unwrap().len() as usize;
        for garbage in [vec![0; length], vec![b'x'; length]] {
            file::install(&ledger, &garbage, 0o600).unwrap();
            let budget = CallBudget::of(&root, 99, 20);
            assert!(spent(&budget, now, "20 calls a day"));
        }
    }

    #[test]
    fn without_a_readable_ledger_no_call_is_made() {
        let (_dir, root) = store();
        file::make_private_dir(&root.state().join("calls.jsonl")).unwrap();
        let budget = CallBudget::of(&root, 9, 9);
        let why = budget.spent(Timestamp::UNIX_EPOCH).unwrap_err().line();
        assert!(why.contains("calls.jsonl") && why.contains("no LLM call is made"), "{why}");
        assert!(budget.start(CALL, Timestamp::UNIX_EPOCH).is_err());
    }
}
