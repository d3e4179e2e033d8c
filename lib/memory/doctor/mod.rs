//! The health check of the store (US-009): what is broken, what is out of order, and what can be fixed without risk.
//!
//! A check changes nothing. Each is a function from the context to its findings. The notes alone are read once for
//! all checks that need them.

mod context;
mod finding;
mod fix;
mod history;
mod hooks;
mod links;
mod notes;
mod queue;
mod setup;
mod store;
mod targets;
mod text;

pub use crate::memory::doctor::context::CheckContext;
pub use crate::memory::doctor::finding::{Check, Finding, Severity};
pub use crate::memory::doctor::fix::{Fixes, fix};
pub use crate::memory::doctor::hooks::{HarnessState, states};

use crate::memory::doctor::notes::Known;

/// A check of something other than the notes.
pub type Checker = fn(&CheckContext) -> Vec<Finding>;

/// All checks of this module but those of the notes.
pub const CHECKS: &[Checker] = &[
    store::directory,
    store::leftovers,
    store::review,
    store::recall,
    setup::check,
    targets::check,
    queue::entries,
    queue::ledgers,
    queue::batches,
    history::check,
    history::sync,
    hooks::check,
];

pub struct Report {
    /// The worst first.
    pub findings: Vec<Finding>,
    /// How many readable notes are in use.
    pub notes: usize,
    known: Known,
}

impl Report {
    /// Remembers which notes need not be read again. To be called when the answer is out; it does not depend on this.
    pub fn remember(&self) {
        self.known.keep_up();
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Runs all checks. `checks` run while the notes are read, because git takes its time.
pub fn examine(cx: &CheckContext, checks: &[Checker]) -> Report {
    let all = || checks.iter().flat_map(|check| check(cx)).collect::<Vec<_>>();
    let (mut findings, mut checked) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, all);
        let checked = notes::check(cx);
        // If no thread can be started, this one does the work.
        let findings = thread.map_or_else(|_| all(), |thread| thread.join().unwrap_or_default());
        (findings, checked)
    });
    findings.extend(links::check(&checked));
    findings.extend(targets::sections(cx, &checked.pool));
    findings.extend(checked.findings());
    for finding in &mut findings {
        finding.clean(&cx.redactor);
    }
    findings.sort();
    findings.dedup();
    Report { findings, notes: checked.in_use(), known: checked.known }
}
