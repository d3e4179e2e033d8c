//! The hooks in the settings of the harnesses on this machine: are they there, do they lead to programs that exist, and
//! when did a harness last capture something?

use crate::harness::spec::Spec;
use crate::memory::doctor::context::CheckContext;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::hooks::found;
use crate::memory::hooks::status::{Hooks, Status, status};
use crate::store::batch::Batches;
use crate::store::journal::Journal;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A harness that is used at all captures more often.
const SILENT: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(super) fn check(cx: &CheckContext) -> Vec<Finding> {
    let last = last_captures(cx);
    found(cx.env).into_iter().flat_map(|spec| of(spec, &last, cx)).collect()
}

fn of(spec: &Spec, last: &BTreeMap<String, Timestamp>, cx: &CheckContext) -> Vec<Finding> {
    let mend = format!("memory-install-hooks --harness {}", spec.name);
    let Status { file, hooks, gone, unreadable } = match status(spec, cx.env) {
        Ok(Some(status)) => status,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let file = spec.home.dir(cx.env).unwrap_or_default();
            let what = format!("the hooks of {} cannot be checked: {}", spec.title, error.message());
            return vec![Finding::warning(Check::Hooks, &file, what, "correct the file")];
        }
    };
    let warning = |what: String, mend: &str| Finding::warning(Check::Hooks, &file, what, mend);
    let mut findings = Vec::new();
    let seen = last.get(spec.name).map(|at| cx.env.day(*at));
    let seen_words =
        seen.map_or("it never captured anything".to_owned(), |day| format!("it last captured on {day}"));
    if let Hooks::Missing(programs) = &hooks {
        let what = format!("{} has no hook that runs {}; {seen_words}", spec.title, programs.join(" or "));
        findings.push(warning(what, &mend));
    }
    for program in &gone {
        let what =
            format!("the hooks of {} run \"{program}\", which does not exist; {seen_words}", spec.title);
        findings.push(warning(what, &mend));
    }
    if let Some(why) = unreadable {
        let what = format!("{} cannot read its settings, so no hook runs: {why}", spec.title);
        findings.push(warning(what, "correct the file"));
    }
    if let (true, Some(at)) = (findings.is_empty(), last.get(spec.name)) {
        let since = cx.env.now().duration_since(*at);
        if since > SILENT {
            let what =
                format!("{} has its hooks, but {seen_words}, {} days ago", spec.title, since.as_hours() / 24);
            let mend = spec.next_step.unwrap_or("end a session in it and look into the queue");
            findings.push(warning(what, mend));
        }
    }
    findings
}

/// A harness that is used here, for the person to see that all is well.
#[derive(Debug, Serialize)]
pub struct HarnessState {
    harness: &'static str,
    /// The settings file.
    pub file: PathBuf,
    /// All hooks are there.
    hooks: bool,
    #[serde(rename = "lastCapture")]
    last_capture: Option<Timestamp>,
    /// The same, as a day here.
    #[serde(skip)]
    last_day: Option<Date>,
}

impl HarnessState {
    pub fn is_whole(&self) -> bool {
        self.hooks
    }

    pub fn line(&self) -> String {
        let hooks = if self.hooks { "its hooks are installed" } else { "hooks are missing" };
        let last = match self.last_day {
            Some(day) => format!("last captured on {day}"),
            None => "never captured".to_owned(),
        };
        format!("{}: {hooks}, {last}", self.harness)
    }
}

pub fn states(cx: &CheckContext) -> Vec<HarnessState> {
    let last = last_captures(cx);
    let state = |spec: &'static Spec| {
        let status = status(spec, cx.env).ok().flatten()?;
        let hooks = status.hooks == Hooks::All && status.gone.is_empty() && status.unreadable.is_none();
        let last_capture = last.get(spec.name).copied();
        let last_day = last_capture.map(|at| cx.env.day(at));
        Some(HarnessState { harness: spec.name, file: status.file, hooks, last_capture, last_day })
    };
    found(cx.env).into_iter().filter_map(state).collect()
}

/// By harness, from the names of all queue entries that are still there, whatever became of them.
fn last_captures(cx: &CheckContext) -> BTreeMap<String, Timestamp> {
    let inbox = cx.root.inbox();
    let mut dirs: Vec<PathBuf> = vec![inbox.join(".processed"), inbox.join(".failed"), inbox];
    dirs.extend(Batches::of_queue(cx.root).all().unwrap_or_default().into_iter().map(|batch| batch.dir));
    let mut last = BTreeMap::new();
    for id in dirs.iter().flat_map(|dir| Journal::ids_in(dir).unwrap_or_default()) {
        let Some((harness, at)) = parts(&id) else { continue };
        let newest = last.entry(harness.to_owned()).or_insert(at);
        *newest = at.max(*newest);
    }
    last
}

/// Harness and time of an entry, from its id: `2026-02-13T14-30-05.123Z_codex_1a2B3c4D`.
fn parts(id: &str) -> Option<(&str, Timestamp)> {
    let (time, rest) = id.split_once('_')?;
    let (harness, _) = rest.rsplit_once('_')?;
    let (day, time) = time.split_once('T')?;
    Some((harness, format!("{day}T{}", time.replace('-', ":")).parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entrys_name_says_when_and_from_where() {
        let at = "2026-02-13T14:30:05.123Z".parse().unwrap();
        assert_eq!(parts("2026-02-13T14-30-05.123Z_claude-code_1a2B3c4D"), Some(("claude-code", at)));
        for odd in ["", "x", "2026-02-13_codex_1", "a_b_c", "2026-02-13T99-30-05Z_codex_1"] {
            assert_eq!(parts(odd), None, "{odd}");
        }
    }
}
