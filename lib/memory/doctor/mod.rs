//! The health check of the store: what is broken, what is out of order, and what can be fixed without risk.
//!
//! A check changes nothing: it adds what it finds. The notes alone are read once for all checks that need them.

mod code;
mod finding;
mod fix;
mod health;
mod history;
mod hooks;
mod links;
mod memories;
mod notes;
mod queue;
mod setup;
mod shared;
mod store;
mod targets;
mod text;

pub use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis, Finding, HarnessState, Severity};
pub use crate::memory::doctor::fix::{Fixes, fix};
pub use crate::memory::doctor::queue::failure;

use crate::base::repository::Repository;
use crate::memory::doctor::notes::DoctorCache;
use crate::memory::redact::Redactor;
use jiff::civil::Date;

/// A check of something other than the notes.
type Checker = fn(&CheckContext, &mut Diagnosis);

/// All checks of this module but those of the notes, and whether each takes milliseconds: those are for a person who wants
/// to see how things stand.
const CHECKS: &[(Checker, bool)] = &[
    (store::directory, true),
    (store::change, true),
    (store::leftovers, false),
    (store::review, false),
    (health::check, true),
    (setup::check, true),
    (targets::check, true),
    (queue::entries, false),
    (queue::ledgers, true),
    (queue::batches, true),
    (history::check, false),
    (history::foreign_settings, false),
    (history::sync, false),
    (hooks::check, true),
];

/// Runs the quick checks, and `more`. The worst findings come first.
pub fn glance(cx: &CheckContext, more: Vec<Finding>) -> (Vec<Finding>, Vec<HarnessState>) {
    let mut found = Diagnosis { findings: more, ..Diagnosis::default() };
    let quick = CHECKS.iter().filter(|(_, is_quick)| *is_quick);
    quick.for_each(|(check, _)| check(cx, &mut found));
    found.tidy(cx)
}

pub struct Report {
    /// The worst first.
    pub findings: Vec<Finding>,
    /// The harnesses that are used here.
    pub harnesses: Vec<HarnessState>,
    /// How many readable notes are in use.
    pub notes: usize,
    cache: Option<DoctorCache>,
}

impl Report {
    /// Remembers which notes need not be read again. To be called when the answer is out; it does not depend on this.
    pub fn remember(&self) {
        self.cache.iter().for_each(DoctorCache::keep_up);
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// The report on the notes that a repository has among its files. It needs no store, so it can be made in CI.
pub fn examine_shared(here: &Repository, redactor: &Redactor, today: Date) -> Report {
    let (findings, notes) = shared::check(here, redactor, today);
    Report { findings, harnesses: Vec::new(), notes, cache: None }
}

/// Runs all checks, and `more`. Those of the notes run beside the others, because git takes its time.
pub fn examine(cx: &CheckContext, more: Checker) -> Report {
    let mut first = Diagnosis::default();
    health::recall(cx, &mut first);
    let all = || {
        let mut found = Diagnosis::default();
        CHECKS.iter().for_each(|(check, _)| check(cx, &mut found));
        more(cx, &mut found);
        found
    };
    let (mut found, mut checked) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, all);
        let checked = notes::check(cx);
        // If no thread can be started, this one does the work.
        (thread.map_or_else(|_| all(), |thread| thread.join().unwrap_or_default()), checked)
    });
    found.append(first);
    found.append(std::mem::take(&mut checked.findings));
    links::check(&checked, &mut found);
    memories::check(cx, &checked, &mut found);
    code::check(cx, &checked, &mut found);
    store::checkouts(cx, &checked, &mut found);
    targets::sections(cx, &checked.pool, &mut found);
    let (findings, harnesses) = found.tidy(cx);
    let notes = checked.notes.iter().filter(|note| note.is_in_use()).count();
    Report { findings, harnesses, notes, cache: Some(checked.cache) }
}
