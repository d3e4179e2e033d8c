//! Why a hook gave nothing although it should have: `.agent-memory/recall.log`, a line each time. `memory-doctor` tells.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::base::text::one_line;
use crate::store::place::Root;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// At this length, in bytes, the older half goes.
const MOST: usize = 32 * 1024;
/// Older troubles are no longer told.
const TOLD: SignedDuration = SignedDuration::from_hours(7 * 24);
/// So long a line waits for another hook that writes one.
const WAIT: Duration = Duration::from_millis(50);
/// The longest reason, in characters.
const REASON: usize = 300;

/// The troubles of the last days.
#[derive(Debug, PartialEq, Eq)]
pub struct Troubles {
    pub count: usize,
    pub last: Timestamp,
    pub harness: String,
    pub why: String,
}

fn path(root: &Root) -> PathBuf {
    root.state().join("recall.log")
}

/// Keeps a trouble. A store that is not there is not made for it.
pub fn keep(root: &Root, harness: &str, why: &str, env: &Env) -> Result<()> {
    if !root.path().is_dir() {
        return Ok(());
    }
    if !root.state().is_dir() {
        root.make()?;
    }
    let path = path(root);
    let line = json!({"at": env.now().to_string(), "harness": harness, "why": one_line(why, REASON)});
    let old = file::read(&path, 4 * MOST as u64).unwrap_or_default();
    if old.len() > MOST {
        let from = old.len() - MOST / 2;
        let from = old[from..].iter().position(|byte| *byte == b'\n').map_or(old.len(), |end| from + end + 1);
        file::install_unsynced(&path, &old[from..], 0o600)?;
    }
    Ok(file::append_within(&path, format!("{line}\n").as_bytes(), 0o644, WAIT)?)
}

/// What went wrong lately; `None` if nothing did.
pub fn troubles(root: &Root, now: Timestamp) -> Option<(PathBuf, Troubles)> {
    let path = path(root);
    let bytes = file::read(&path, 4 * MOST as u64).ok()?;
    let mut told: Option<Troubles> = None;
    for line in String::from_utf8_lossy(&bytes).lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        let text = |key: &str| line.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Ok(at) = text("at").parse::<Timestamp>() else { continue };
        if now.duration_since(at) > TOLD {
            continue;
        }
        let count = told.map_or(0, |told| told.count) + 1;
        told = Some(Troubles { count, last: at, harness: text("harness"), why: text("why") });
    }
    told.map(|told| (path, told))
}
