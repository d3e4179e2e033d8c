//! The store's health (US-009): what is broken, what is out of order, and what of it can be mended without a risk.
//!
//! Looking changes nothing. Each check is a function from the patient to its findings; only the notes are read once
//! for all checks of them.

mod finding;
mod history;
mod leftovers;
mod links;
mod mend;
mod notes;
mod patient;
mod place;
mod prose;
mod queue;
mod setup;
mod targets;

pub(crate) use crate::memory::doctor::finding::{Check, Finding, Severity};
pub(crate) use crate::memory::doctor::mend::{Mended, mend};
pub(crate) use crate::memory::doctor::patient::Patient;

/// One look at one thing, apart from the notes.
pub(crate) type Look = fn(&Patient) -> Vec<Finding>;

/// Everything but the notes themselves.
pub(crate) const LOOKS: &[Look] = &[
    place::look,
    setup::look,
    queue::look_at_entries,
    queue::look_at_ledgers,
    queue::look_at_batches,
    leftovers::look,
    history::look,
];

pub(crate) struct Report {
    /// The worst first.
    pub(crate) findings: Vec<Finding>,
    /// How many notes are in use and can be read.
    pub(crate) notes: usize,
}

impl Report {
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// All that can be said. `looks` go on beside the reading of the notes: git takes its time.
pub(crate) fn examine(patient: &Patient, looks: &[Look]) -> Report {
    let all = || looks.iter().flat_map(|look| look(patient)).collect::<Vec<_>>();
    let (mut findings, mut round) = std::thread::scope(|scope| {
        let beside = std::thread::Builder::new().spawn_scoped(scope, all);
        let round = notes::round(patient);
        // Where no thread is to be had, this one does the work.
        let findings = beside.map_or_else(|_| all(), |thread| thread.join().unwrap_or_default());
        (findings, round)
    });
    findings.extend(links::look(&round));
    findings.extend(targets::look(patient, round.shares.drain(..)));
    let notes = round.in_use();
    findings.extend(round.findings());
    for finding in &mut findings {
        finding.clean(&patient.redactor);
    }
    findings.sort();
    findings.dedup();
    Report { findings, notes }
}
