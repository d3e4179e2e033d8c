//! The health check of the store (US-009): what is broken, what is out of order, and what can be fixed without risk.
//!
//! A check changes nothing. Each is a function from the context to its findings. The notes alone are read once for
//! all checks that need them.

mod cache;
mod context;
mod directory;
mod finding;
mod fix;
mod history;
mod hooks;
mod leftovers;
mod links;
mod names;
mod notes;
mod owners;
mod prose;
mod queue;
mod recall;
mod review;
mod setup;
mod sync;
mod targets;

use crate::memory::doctor::cache::{Cache, Record};
pub(crate) use crate::memory::doctor::context::CheckContext;
pub(crate) use crate::memory::doctor::finding::{Check, Finding, Severity};
pub(crate) use crate::memory::doctor::fix::{Fixes, fix};
pub(crate) use crate::memory::doctor::hooks::{HarnessState, states};

use crate::store::place::Root;

/// A check of something other than the notes.
pub(crate) type Checker = fn(&CheckContext) -> Vec<Finding>;

/// All checks of this module but those of the notes.
pub(crate) const CHECKS: &[Checker] = &[
    directory::check,
    setup::check,
    owners::check,
    queue::check_entries,
    queue::check_ledgers,
    queue::check_batches,
    review::check,
    recall::check,
    leftovers::check,
    history::check,
    hooks::check,
    sync::check,
];

pub(crate) struct Report {
    /// The worst first.
    pub(crate) findings: Vec<Finding>,
    /// How many readable notes are in use.
    pub(crate) notes: usize,
    cache: Option<(Cache, Vec<Record>)>,
}

impl Report {
    /// Remembers which notes need not be read again. To be called when the answer is out; it does not depend on this.
    pub(crate) fn remember(&self, root: &Root) {
        if let Some((cache, records)) = &self.cache {
            let _ = cache.keep_up(root, records);
        }
    }

    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Runs all checks. `checks` run while the notes are read, because git takes its time.
pub(crate) fn examine(cx: &CheckContext, checks: &[Checker]) -> Report {
    let all = || checks.iter().flat_map(|check| check(cx)).collect::<Vec<_>>();
    let (mut findings, mut checked) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, all);
        let checked = notes::check(cx);
        // If no thread can be started, this one does the work.
        let findings = thread.map_or_else(|_| all(), |thread| thread.join().unwrap_or_default());
        (findings, checked)
    });
    findings.extend(links::check(&checked));
    findings.extend(names::check(&checked));
    findings.extend(targets::check(cx, checked.shares.drain(..)));
    let (notes, cache) = (checked.in_use(), checked.take_cache());
    findings.extend(checked.findings());
    for finding in &mut findings {
        finding.clean(&cx.redactor);
    }
    findings.sort();
    findings.dedup();
    Report { findings, notes, cache }
}
