//! What this machine remembers about sessions, failed tries and the last defrag: small files, each replaced as a
//! whole. Only the run that holds `run.lock` writes them.

use crate::base::error::{Error, Result, unwritable};
use crate::base::file;
use crate::base::text::{counted, one_line};
use crate::store::entry::EntryId;
use crate::store::place::Root;
use crate::store::version::{VERSION, check_json};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// The largest ledger that is read, in bytes.
const CAP: u64 = 256 << 20;
/// How many of a session's last turns are remembered, for its forks.
const MARKS: usize = 2000;
/// The pause after the first and the second failed try of an entry, in hours. There is no try after the third.
const PAUSES: [i64; 2] = [1, 6];
/// The pause after each failed call of defrag, in hours: none after the first, then about three, seven and thirty
/// days. It is half a day shorter, so that it is over when the nightly run starts.
const DEFRAG_PAUSES: [i64; 4] = [0, 60, 156, 708];

/// How far each session has been read.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Sessions(BTreeMap<String, ReadSession>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReadSession {
    /// The hash of the last turn that was read.
    pub last: String,
    /// The session that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// The hashes of the turns that were read; of many, the newest.
    #[serde(default)]
    pub marks: Vec<String>,
}

impl Sessions {
    pub fn load(root: &Root) -> Result<Sessions> {
        load(&root.state().join("sessions.json"))
    }

    pub fn save(&self, root: &Root) -> Result<()> {
        save(self, &root.state().join("sessions.json"))
    }

    pub fn get(&self, key: &str) -> Option<&ReadSession> {
        self.0.get(key)
    }

    /// The sessions that may share turns with this one: all that go back to the same first session. The nearest
    /// relatives are not enough, because for a fork only the turns that its parents did not have are recorded.
    pub fn kin<'a>(&'a self, key: &'a str, parent: Option<&'a str>) -> impl Iterator<Item = &'a ReadSession> {
        let origin = self.origin(parent.unwrap_or(key));
        let is_kin =
            move |(other, _): &(&String, &ReadSession)| *other != key && self.origin(other) == origin;
        self.0.iter().filter(is_kin).map(|(_, session)| session)
    }

    /// The first session of the chain of forks.
    fn origin<'a>(&'a self, key: &'a str) -> &'a str {
        let parent = |key: &&'a str| self.0.get(*key).and_then(|session| session.parent.as_deref());
        // A longer chain is a circle.
        std::iter::successors(Some(key), parent).take(65).last().unwrap_or(key)
    }

    /// Records that `turns` have been read.
    pub fn read(&mut self, key: &str, parent: Option<&str>, turns: &[String]) {
        let Some(last) = turns.last() else { return };
        let session = self.0.entry(key.to_owned()).or_default();
        session.last.clone_from(last);
        session.parent = parent.map(str::to_owned);
        let known: BTreeSet<&String> = turns.iter().collect();
        session.marks.retain(|mark| !known.contains(mark));
        session.marks.extend_from_slice(turns);
        let surplus = session.marks.len().saturating_sub(MARKS);
        session.marks.drain(..surplus);
    }
}

/// The notes with changed code that a model was asked about, each with the hash of what it was shown.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct AskedNotes(pub BTreeMap<EntryId, String>);

impl AskedNotes {
    pub fn load(root: &Root) -> Result<AskedNotes> {
        load(&root.state().join("asked.json"))
    }

    pub fn save(&self, root: &Root) -> Result<()> {
        save(self, &root.state().join("asked.json"))
    }
}

/// Tries of the same that failed one after the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Failures {
    /// Of memory-defrag: the text that the calls were about, and who was asked. Once either differs, the failures no longer
    /// count.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    of: String,
    pub tries: u32,
    /// The end of the pause; `None`: there is none, or no further try.
    #[serde(default, alias = "notBefore", skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default)]
    pub error: String,
    /// The batch in which it failed last, so that a run resumed after a crash does not count it again.
    #[serde(default)]
    batch: String,
}

impl Failures {
    /// Counts one more, after which there is a pause of so many hours.
    fn count(&mut self, error: &str, batch: &str, pause: Option<&i64>, now: Timestamp) {
        batch.clone_into(&mut self.batch);
        error.clone_into(&mut self.error);
        // The file may contain any number.
        self.tries = self.tries.saturating_add(1);
        self.not_before = pause.and_then(|hours| after(now, *hours));
    }

    /// The pause ends later than any of `pauses` reaches: the clock was ahead when it was written.
    fn is_beyond(&self, pauses: &[i64], now: Timestamp) -> bool {
        let last = after(now, pauses.iter().max().copied().unwrap_or_default());
        self.not_before.zip(last).is_some_and(|(time, last)| time > last)
    }

    fn is_paused(&self, pauses: &[i64], now: Timestamp) -> bool {
        self.not_before.is_some_and(|time| time > now) && !self.is_beyond(pauses, now)
    }
}

fn after(now: Timestamp, hours: i64) -> Option<Timestamp> {
    now.saturating_add(jiff::Span::new().hours(hours)).ok()
}

/// The entries that have failed: how often, and when each may be tried again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tries(BTreeMap<String, Try>);

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Try {
    #[serde(flatten)]
    failures: Failures,
    /// Which LLM command was asked: once that is another, the pause is over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    asked: String,
    /// So many tries in a row came before the end of the pause.
    #[serde(default, skip_serializing_if = "is_zero")]
    early: u32,
    /// A call for several entries failed, so this one gets a call of its own.
    #[serde(default)]
    alone: bool,
    /// Its session is being read, and this is how it stood before. The try is counted already, so that one that ends
    /// the run is counted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Box<Try>>,
    /// So many runs in a row began to read its session, and did not get to the end of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    unfinished: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A session that has ended so many runs in a row is set aside. One may have been killed by anything.
const RUNS_ENDED: u32 = 2;

/// So often another LLM command ends a pause: what looks like another each time, such as a file that the command itself
/// writes, is not paid for without end.
const EARLY: u32 = 2;

/// What a try came to that ended the run.
const ENDED_THE_RUN: &str =
    "the last runs that read its session did not get to the end of it: they were killed, or hung";

impl Try {
    /// A try before the end of the pause, because a person wants it or another command is asked, costs none of the three.
    fn count(&mut self, error: &str, batch: &str, now: Timestamp) {
        let before = self.failures.clone();
        self.failures.count(error, batch, PAUSES.get(self.failures.tries as usize), now);
        self.early = if before.is_paused(&PAUSES, now) { self.early.saturating_add(1) } else { 0 };
        if self.early > 0 {
            (self.failures.tries, self.failures.not_before) = (before.tries, before.not_before);
        }
    }
}

/// What follows a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextTry {
    Again(Timestamp),
    /// That was the last of so many tries.
    Never(u32),
}

/// What some entries wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    count: usize,
    /// When the first may be tried again, and why its last try failed.
    pub until: Timestamp,
    error: String,
}

impl Pause {
    /// All pauses in one; `None`: nothing waits.
    pub fn of_all(pauses: impl Iterator<Item = Pause>) -> Option<Pause> {
        pauses.reduce(|a, b| {
            let count = a.count + b.count;
            Pause { count, ..if b.until < a.until { b } else { a } }
        })
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entries, until) = (counted(self.count, "entry waits", "entries wait"), self.until);
        let (until, error) = (until.strftime("%Y-%m-%d %H:%M"), one_line(&self.error, 500));
        write!(f, "{entries} until {until} UTC, because the last try failed: {error}")
    }
}

impl Tries {
    pub fn load(root: &Root) -> Result<Tries> {
        load(&root.state().join("tries.json"))
    }

    pub fn save(&self, root: &Root) -> Result<()> {
        save(self, &root.state().join("tries.json"))
    }

    /// Until when an entry is not tried, if it has failed and is to wait.
    pub fn pause(&self, id: &str, now: Timestamp) -> Option<Pause> {
        let failures = &self.0.get(id)?.failures;
        let until = failures.not_before.filter(|_| failures.is_paused(&PAUSES, now))?;
        Some(Pause { count: 1, until, error: failures.error.clone() })
    }

    /// Its last try asked another LLM command than this one.
    pub fn asked_another(&self, id: &str, asked: &str) -> bool {
        let is_other = |entry: &Try| !entry.asked.is_empty() && entry.asked != asked;
        self.0.get(id).is_some_and(|entry| is_other(entry) && entry.early < EARLY)
    }

    /// Why the last try failed.
    pub fn error(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(|entry| entry.failures.error.as_str()).filter(|error| !error.is_empty())
    }

    /// How many entries were to wait for longer than any wait is: the clock was wrong. They may be tried.
    pub fn beyond(&self, now: Timestamp) -> usize {
        self.0.values().filter(|entry| entry.failures.is_beyond(&PAUSES, now)).count()
    }

    pub fn is_alone(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|entry| entry.alone)
    }

    pub fn set_alone(&mut self, id: &str) {
        self.0.entry(id.to_owned()).or_default().alone = true;
    }

    /// A try has failed in this batch, in which this LLM command was asked.
    pub fn fail(&mut self, id: &str, error: &str, (batch, asked): (&str, &str), now: Timestamp) -> NextTry {
        let entry = self.0.entry(id.to_owned()).or_default();
        asked.clone_into(&mut entry.asked);
        let is_counted = entry.before.take().is_some() || entry.failures.batch == batch;
        if !is_counted {
            entry.count(error, batch, now);
        }
        entry.unfinished = 0;
        match entry.failures.not_before {
            Some(time) => NextTry::Again(time),
            None => NextTry::Never(entry.failures.tries),
        }
    }

    /// Counts a try before a session is read. Saved at once, it counts a reading that ends the run.
    pub fn begin_reading(&mut self, id: &str, batch: &str, now: Timestamp) {
        let entry = self.0.entry(id.to_owned()).or_default();
        if entry.before.is_none() {
            let before = Try { unfinished: 0, ..entry.clone() };
            entry.count(ENDED_THE_RUN, batch, now);
            entry.before = Some(Box::new(before));
        }
        entry.unfinished = entry.unfinished.saturating_add(1);
    }

    /// The reading came to its end, in whatever way: its try counts no more.
    pub fn end_reading(&mut self, id: &str) {
        let Some(before) = self.0.get_mut(id).and_then(|entry| entry.before.take()) else { return };
        match *before == Try::default() {
            true => drop(self.0.remove(id)),
            false => drop(self.0.insert(id.to_owned(), *before)),
        }
    }

    /// Why an entry is not to be read in this run: reading it ended the last ones.
    pub fn ended_runs(&self, id: &str) -> Option<&str> {
        let ended = |entry: &&Try| entry.before.is_some() && entry.unfinished >= RUNS_ENDED;
        self.0.get(id).filter(ended).map(|entry| entry.failures.error.as_str())
    }

    pub fn forget(&mut self, id: &str) {
        self.0.remove(id);
    }
}

/// The notes as the last defrag saw them, so that it does not ask about the same text twice.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefragLedger {
    /// The fingerprint of each note, see [`crate::store::entry::Entry::mark`].
    notes: BTreeMap<EntryId, String>,
    /// The reaches, by name, that were asked about in groups and whose tiers are still to be decided.
    #[serde(default, rename = "tiersDueOf")]
    pub tiers_due: BTreeSet<String>,
    /// The failed calls, by the id of the note or, for tiers, the name of the reach.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    failed: BTreeMap<String, Failures>,
    /// The notes that were seen after their last day.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub expired: BTreeSet<EntryId>,
}

impl DefragLedger {
    /// How many notes and decisions were to wait for longer than any wait is: the clock was wrong.
    pub fn beyond(&self, now: Timestamp) -> usize {
        self.failed.values().filter(|failures| failures.is_beyond(&DEFRAG_PAUSES, now)).count()
    }

    pub fn load(root: &Root) -> Result<DefragLedger> {
        load(&root.state().join("defrag.json"))
    }

    pub fn save(&self, root: &Root) -> Result<()> {
        save(self, &root.state().join("defrag.json"))
    }

    pub fn has(&self, id: &EntryId, mark: &str) -> bool {
        self.notes.get(id).is_some_and(|seen| seen == mark)
    }

    pub fn see(&mut self, id: EntryId, mark: String) {
        self.failed.remove(id.as_str());
        self.notes.insert(id, mark);
    }

    pub fn see_expired(&mut self, id: &EntryId, is_expired: bool) {
        match is_expired {
            true => self.expired.insert(id.clone()),
            false => self.expired.remove(id),
        };
    }

    pub fn tiers_done(&mut self, reach: &str) {
        self.failed.remove(reach);
        self.tiers_due.remove(reach);
    }

    /// Records a failed call about `of`, under the name `key`, and returns when it may be asked about again.
    pub fn fail(&mut self, key: &str, of: &str, error: &str, batch: &str, now: Timestamp) -> Timestamp {
        let failures = self.failed.entry(key.to_owned()).or_default();
        if failures.of != of {
            *failures = Failures { of: of.to_owned(), ..Failures::default() };
        }
        if failures.batch != batch {
            let pause = DEFRAG_PAUSES.get(failures.tries as usize).or(DEFRAG_PAUSES.last());
            failures.count(error, batch, pause, now);
        }
        failures.not_before.unwrap_or(now)
    }

    /// Calls about it have failed, so it is skipped for now.
    pub fn is_postponed(&self, key: &str, of: &str, now: Timestamp) -> bool {
        let is_it = |failures: &Failures| failures.of == of && failures.is_paused(&DEFRAG_PAUSES, now);
        self.failed.get(key).is_some_and(is_it)
    }

    /// How many notes and decisions are postponed, and the one that is postponed longest.
    pub fn postponed(&self, now: Timestamp) -> Option<(usize, &Failures)> {
        let postponed = self.failed.values().filter(|failures| failures.is_paused(&DEFRAG_PAUSES, now));
        let last = postponed.clone().max_by_key(|failures| failures.not_before)?;
        Some((postponed.count(), last))
    }

    /// Forgets the notes that no longer exist.
    pub fn keep(&mut self, exists: impl Fn(&EntryId) -> bool) {
        self.notes.retain(|id, _| exists(id));
        self.expired.retain(&exists);
        self.failed.retain(|key, _| EntryId::whole(key).is_none_or(|id| exists(&id)));
    }
}

/// How often each note had been read when the last defrag ended, if it was. What AGENTS.md has no room for depends on
/// this, so that a read does not change the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Uses(BTreeMap<EntryId, u64>);

impl Uses {
    pub fn of(used: impl Iterator<Item = (EntryId, u64)>) -> Uses {
        Uses(used.filter(|(_, used)| *used > 0).collect())
    }

    pub fn load(root: &Root) -> Result<Uses> {
        load(&root.state().join("used.json"))
    }

    pub fn save(&self, root: &Root) -> Result<()> {
        save(self, &root.state().join("used.json"))
    }

    pub fn get(&self, id: &EntryId) -> u64 {
        self.0.get(id).copied().unwrap_or_default()
    }
}

pub(super) fn load<T: Default + DeserializeOwned>(path: &Path) -> Result<T> {
    match file::read(path, CAP) {
        Ok(bytes) => from_json(&bytes, path, "correct it, or move it away to start with an empty one"),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(e) => Err(e.into()),
    }
}

pub(super) fn save(value: &impl Serialize, path: &Path) -> Result<()> {
    let value = Versioned { version: VERSION, value };
    let text = serde_json::to_vec_pretty(&value).map_err(unwritable)?;
    Ok(file::install(path, &text, 0o600)?)
}

/// A state, and in which version it is; a file without one is of the first.
#[derive(Serialize, Deserialize)]
pub(super) struct Versioned<T> {
    #[serde(default)]
    pub(super) version: u32,
    #[serde(flatten)]
    pub(super) value: T,
}

/// The state in the bytes of a file; `mend` says what to do with one that cannot be read.
pub(super) fn from_json<T: DeserializeOwned>(bytes: &[u8], path: &Path, mend: &str) -> Result<T> {
    // First: in a later version the rest may be anything.
    check_json(bytes, path)?;
    serde_json::from_slice(bytes).map(|Versioned { value, .. }| value).map_err(|e| unreadable(&e, path, mend))
}

pub(super) fn unreadable(error: &serde_json::Error, path: &Path, mend: &str) -> Error {
    let why = one_line(&error.to_string(), 300);
    Error::corrupt(format!("\"{}\" cannot be read: {why}", path.display())).hint(mend)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(range: std::ops::Range<usize>) -> Vec<String> {
        range.map(|n| format!("t{n}")).collect()
    }

    #[test]
    fn reading_the_same_turns_twice_changes_nothing() {
        let mut sessions = Sessions::default();
        sessions.read("a", None, &turns(0..3));
        sessions.read("a", None, &turns(3..5));
        let once = sessions.get("a").cloned();
        sessions.read("a", None, &turns(3..5));
        sessions.read("a", None, &[]);
        assert_eq!(sessions.get("a").cloned(), once);
        let session = once.unwrap();
        assert_eq!((session.last.as_str(), session.marks), ("t4", turns(0..5)));
    }

    #[test]
    fn only_the_newest_marks_are_kept() {
        let mut sessions = Sessions::default();
        sessions.read("a", None, &turns(0..MARKS));
        sessions.read("a", None, &turns(MARKS..MARKS + 10));
        let session = sessions.get("a").unwrap();
        assert_eq!(session.marks, turns(10..MARKS + 10));
    }

    #[test]
    fn kin_are_all_sessions_with_the_same_origin() {
        let mut sessions = Sessions::default();
        for (key, parent) in [
            ("p", None),
            ("a", Some("p")),
            ("b", Some("p")),
            ("a1", Some("a")),
            ("other", None),
            ("x", Some("y")),
        ] {
            sessions.read(key, parent, &[key.to_owned()]);
        }
        let kin = |key: &str, parent: Option<&str>| -> Vec<String> {
            sessions.kin(key, parent).map(|session| session.last.clone()).collect()
        };
        assert_eq!(kin("a", Some("p")), ["a1", "b", "p"]);
        assert_eq!(kin("p", None), ["a", "a1", "b"]);
        assert_eq!(kin("new", Some("a")), ["a", "a1", "b", "p"]);
        assert_eq!(kin("other", None), [""; 0]);
        // A circle, which no program writes, must not hang.
        let mut circle = Sessions::default();
        circle.read("c", Some("d"), &["c".to_owned()]);
        circle.read("d", Some("c"), &["d".to_owned()]);
        assert!(circle.kin("c", Some("d")).count() <= 1);
    }

    #[test]
    fn an_entry_has_three_tries_one_and_six_hours_apart() {
        let now: Timestamp = "2026-02-28T15:00:00Z".parse().unwrap();
        let mut tries = Tries::default();
        assert!(tries.pause("q", now).is_none());
        let NextTry::Again(first) = tries.fail("q", "why", ("b1", ""), now) else { panic!("no second try") };
        assert_eq!(first.to_string(), "2026-02-28T16:00:00Z");
        assert!(tries.pause("q", now).is_some() && tries.pause("q", first).is_none());
        let NextTry::Again(second) = tries.fail("q", "why", ("b2", ""), first) else {
            panic!("no third try")
        };
        assert_eq!(second.to_string(), "2026-02-28T22:00:00Z");
        assert_eq!(tries.fail("q", "why", ("b3", ""), second), NextTry::Never(3));
        tries.forget("q");
        assert!(tries.pause("q", now).is_none());
    }

    #[test]
    fn a_time_beyond_any_pause_is_of_a_wrong_clock_and_holds_nothing_up() {
        let (wrong, now) = ("2100-01-01T00:00:00Z".parse().unwrap(), "2026-02-28T15:00:00Z".parse().unwrap());
        let mut tries = Tries::default();
        let _ = tries.fail("q", "why", ("b1", ""), wrong);
        let _ = tries.fail("r", "why", ("b1", ""), now);
        assert!(tries.pause("q", now).is_none() && tries.pause("r", now).is_some());
        assert_eq!(tries.beyond(now), 1);
        let mut ledger = DefragLedger::default();
        for batch in ["b1", "b2"] {
            ledger.fail("k", "text", "why", batch, wrong);
            ledger.fail("l", "text", "why", batch, now);
        }
        assert!(!ledger.is_postponed("k", "text", now) && ledger.is_postponed("l", "text", now));
        assert_eq!((ledger.beyond(now), ledger.postponed(now).map(|(count, _)| count)), (1, Some(1)));
    }

    #[test]
    fn a_failed_call_of_an_earlier_version_counts() {
        let now = "2026-02-28T15:00:00Z".parse().unwrap();
        let call = r#"{"of":"text","tries":2,"notBefore":"2026-03-01T03:00:00Z","error":"e","batch":"b"}"#;
        let text = format!(r#"{{"notes":{{}},"failed":{{"k":{call}}}}}"#);
        let ledger: DefragLedger = serde_json::from_str(&text).unwrap();
        assert!(ledger.is_postponed("k", "text", now));
        let again = serde_json::from_str(&serde_json::to_string(&ledger).unwrap()).unwrap();
        assert_eq!(ledger, again);
    }

    #[test]
    fn several_failures_in_one_batch_count_once() {
        let now = Timestamp::UNIX_EPOCH;
        let hours = |hours| after(now, hours).unwrap();
        let mut tries = Tries::default();
        let first = tries.fail("q", "why", ("b1", ""), now);
        assert_eq!(tries.fail("q", "why", ("b1", ""), "2026-01-01T00:00:00Z".parse().unwrap()), first);
        assert_eq!(tries.0["q"].failures.tries, 1);
        for (batch, time) in [("b2", hours(2)), ("b3", hours(9)), ("b3", hours(9))] {
            let _ = tries.fail("q", "why", (batch, ""), time);
        }
        assert_eq!(tries.fail("q", "why", ("b3", ""), hours(9)), NextTry::Never(3));
    }

    #[test]
    fn a_try_before_the_end_of_the_pause_costs_none() {
        let now = Timestamp::UNIX_EPOCH;
        let mut tries = Tries::default();
        let first = tries.fail("q", "why", ("b1", "command"), now);
        assert!(!tries.asked_another("q", "command"));
        for (number, batch) in ["b2", "b3"].into_iter().enumerate() {
            let other = number.to_string();
            assert!(tries.asked_another("q", &other), "{number}");
            assert_eq!(tries.fail("q", "again", (batch, &other), now), first);
        }
        assert_eq!((tries.0["q"].failures.tries, tries.error("q")), (1, Some("again")));
        assert!(!tries.asked_another("q", "another each time"));
        let mut later = Tries(tries.0.clone());
        let _ = later.fail("q", "again", ("b4", "other"), after(now, 1).unwrap());
        assert!(later.asked_another("q", "command") && later.0["q"].failures.tries == 2);
        assert!(tries.pause("q", now).is_some() && tries.pause("q", after(now, 1).unwrap()).is_none());
    }

    #[test]
    fn ledgers_survive_a_round_trip_and_a_damaged_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        root.make().unwrap();
        assert!(Tries::load(&root).unwrap().0.is_empty());
        let mut tries = Tries::default();
        tries.set_alone("q");
        let _ = tries.fail("r", "why", ("b", ""), Timestamp::UNIX_EPOCH);
        tries.save(&root).unwrap();
        assert_eq!(Tries::load(&root).unwrap().0, tries.0);
        assert!(Tries::load(&root).unwrap().is_alone("q"));
        file::install(&root.state().join("sessions.json"), b"{\"a\":", 0o600).unwrap();
        let why = Sessions::load(&root).unwrap_err().line();
        assert!(why.contains("sessions.json"), "{why}");
    }

    #[test]
    fn a_reading_that_never_ends_counts_as_a_try_and_one_that_ends_does_not() {
        let start: Timestamp = "2026-02-28T12:00:00Z".parse().unwrap();
        let now = start;
        let mut tries = Tries::default();
        tries.begin_reading("a", "b1", now);
        assert!(tries.pause("a", now).is_some(), "counted before it is known how it ends");
        tries.end_reading("a");
        assert!(tries.0.is_empty(), "{tries:?}");

        // Ended by reading it: counted once, whoever says so.
        for (count, batch) in [(1, "b1"), (2, "b2"), (3, "b3")] {
            let now = after(start, 10 * i64::from(count)).unwrap();
            tries.begin_reading("a", batch, now);
            assert_eq!(tries.ended_runs("a"), None, "anything may have killed the run");
            tries.begin_reading("a", batch, now);
            assert!(tries.ended_runs("a").is_some());
            let next = tries.fail("a", "x", ("b9", ""), now);
            assert_eq!((tries.0["a"].failures.tries, tries.ended_runs("a")), (count, None));
            assert_eq!(next == NextTry::Never(3), count == 3, "{next:?}");
        }
        // A clean failure after an earlier one.
        tries.fail("c", "first", ("b1", ""), now);
        let once = tries.0["c"].clone();
        tries.begin_reading("c", "b2", now);
        tries.end_reading("c");
        assert_eq!(tries.0["c"], once);
        tries.fail("c", "second", ("b2", ""), after(now, 2).unwrap());
        assert_eq!((tries.0["c"].failures.tries, tries.error("c")), (2, Some("second")));
    }
}
