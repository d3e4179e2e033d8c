//! What the programs could not do lately: `.agent-memory/health.json`, one trouble of each kind.
//!
//! Each program adds its own troubles and ends them. Nothing depends on the file: where it cannot be read or written, it is
//! as if there were none.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::file;
use crate::base::text::{counted, one_line};
use crate::store::ledger::{Versioned, from_json};
use crate::store::place::Root;
use crate::store::version::VERSION;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// The largest file that is read, in bytes, and the longest reason, in characters.
const CAP: u64 = 64 * 1024;
const REASON: usize = 300;
/// A hook waits no longer for the file's lock: its program waits for it.
const WAIT: Duration = Duration::from_millis(50);
/// A remote that was not reached for so long is trouble.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TroubleKind {
    /// Sessions in inbox/.failed.
    Unread,
    /// Runs of `memory-consolidate` in a row that left everything in the queue.
    Waiting,
    /// Commits in a row that failed.
    Commit,
    /// Sessions in a row that ended without a hook.
    Unheard,
    /// Coding agents in which hooks are switched off.
    HooksOff,
    /// Hooks that gave nothing although they should have.
    Recall,
    /// Files of built-in memories that changed at once, and wait for a person's word.
    Memories,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    pub count: usize,
    pub since: Timestamp,
    pub last: Timestamp,
    /// Why, the last time.
    pub why: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Sessions that no hook had queued were looked for up to here.
    pub swept: Option<Timestamp>,
    /// When the notes were exchanged with the remote last.
    pub synced: Option<Timestamp>,
    pub troubles: BTreeMap<TroubleKind, Trouble>,
}

/// The notes were exchanged so long ago that it is trouble.
pub fn is_long_ago(last: Timestamp, now: Timestamp) -> bool {
    now.duration_since(last) > WEEK
}

fn path(root: &Root) -> PathBuf {
    root.state().join("health.json")
}

impl Health {
    pub fn load(root: &Root) -> Health {
        let path = path(root);
        file::read(&path, CAP).ok().and_then(|bytes| from_json(&bytes, &path, "").ok()).unwrap_or_default()
    }

    /// Changes what is kept. Nothing is written if nothing changes, if there is no store, or if a newer program wrote it.
    pub fn change(root: &Root, act: impl Fn(&mut Health)) {
        let path = path(root);
        let known = Health::load(root);
        let mut new = known.clone();
        act(&mut new);
        if new == known || !root.path().is_dir() {
            return;
        }
        if !root.state().is_dir() && root.make().is_err() {
            return;
        }
        let _ = file::change_unsynced(&path, CAP, WAIT, |bytes| -> Result<_> {
            let mut health: Health = match from_json(bytes, &path, "") {
                Err(error) if error.kind() != ErrorKind::Corrupt => return Err(error),
                read => read.unwrap_or_default(),
            };
            act(&mut health);
            let health = Versioned { version: VERSION, value: health };
            Ok((serde_json::to_vec_pretty(&health).map_err(|e| Error::io(e.to_string()))?, ()))
        });
    }

    /// It has happened `more` times again.
    pub fn add(&mut self, kind: TroubleKind, more: usize, why: &str, now: Timestamp) {
        let count = self.troubles.get(&kind).map_or(0, |trouble| trouble.count);
        self.set(kind, count.saturating_add(more), why, now);
    }

    /// It stands at `count`; 0 ends it.
    pub fn set(&mut self, kind: TroubleKind, count: usize, why: &str, now: Timestamp) {
        let known = self.troubles.remove(&kind);
        let why = one_line(why, REASON);
        let is_same = |known: &Trouble| known.count == count && known.why == why;
        let new = match known {
            _ if count == 0 => return,
            Some(known) if is_same(&known) => known,
            known => Trouble { count, since: known.map_or(now, |known| known.since), last: now, why },
        };
        self.troubles.insert(kind, new);
    }

    pub fn end(&mut self, kind: TroubleKind) {
        self.troubles.remove(&kind);
    }

    /// Ends it, if it has not happened for so long.
    pub fn end_after(&mut self, kind: TroubleKind, quiet: SignedDuration, now: Timestamp) {
        self.troubles
            .retain(|known, trouble| *known != kind || now.duration_since(trouble.last).abs() <= quiet);
    }

    /// A trouble that happened so often that it stands.
    pub fn standing(&self, kind: TroubleKind) -> Option<&Trouble> {
        let least = match kind {
            TroubleKind::Unread | TroubleKind::HooksOff | TroubleKind::Memories => 1,
            TroubleKind::Waiting | TroubleKind::Commit | TroubleKind::Unheard | TroubleKind::Recall => 3,
        };
        self.troubles.get(&kind).filter(|trouble| trouble.count >= least)
    }

    /// When the remote was reached last, if that is long ago.
    pub fn unsynced(&self, now: Timestamp) -> Option<Timestamp> {
        self.synced.filter(|last| is_long_ago(*last, now))
    }

    /// What stands, each in a few words of ours: no text from elsewhere.
    pub fn words(&self, now: Timestamp) -> Vec<String> {
        let standing = self.troubles.keys().filter_map(|kind| Some((kind, self.standing(*kind)?)));
        let words = |(kind, trouble): (&TroubleKind, &Trouble)| {
            let count = |one, many| counted(trouble.count, one, many);
            match kind {
                TroubleKind::Unread => count("session could not be filed", "sessions could not be filed"),
                TroubleKind::Waiting => format!("the queue has not moved in {} runs", trouble.count),
                TroubleKind::Commit => format!("the last {} commits failed", trouble.count),
                TroubleKind::Unheard => {
                    count("session ended without a hook", "sessions ended without a hook")
                }
                TroubleKind::HooksOff => format!("hooks are switched off in {}", trouble.why),
                TroubleKind::Recall => format!("recall gave nothing {} times", trouble.count),
                TroubleKind::Memories => {
                    let files = count("file of built-in memories is", "files of built-in memories are");
                    format!("{files} not queued")
                }
            }
        };
        let unsynced =
            self.unsynced(now).map(|last| format!("not synced since {}", last.strftime("%Y-%m-%d")));
        standing.map(words).chain(unsynced).collect()
    }
}
