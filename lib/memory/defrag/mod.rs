//! Notes kept in order: the machine (US-006). It does nothing by itself: every effect goes through [`Adapters`], and
//! every state can be saved and taken up again.

mod applied;
mod apply;
pub(crate) mod ask;
pub(crate) mod corpus;
pub(crate) mod desk;
mod family;
pub(crate) mod forget;
pub(crate) mod group;
mod news;
mod part;
pub(crate) mod plan;
mod reach;
pub(crate) mod reply;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod similar;
mod structure;
mod undo;
pub(crate) mod work;

use crate::base::error::Result;
use crate::memory::call::{Asked, Why};
use crate::memory::defrag::plan::Plan;
use crate::memory::defrag::work::Work;
use serde::{Deserialize, Serialize};

/// Where a defrag is. Each state holds just what the next needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub(crate) enum State {
    /// Is there anything that the last defrag has not seen?
    ScanEntries,
    /// There is; it is to be shared out over calls.
    AnalyzeStructure {
        work: Work,
    },
    /// The next part is to be asked about; with `faults` for the second time.
    RunAgent {
        work: Work,
        faults: Vec<String>,
    },
    /// It is known what is to be changed.
    ApplyChanges {
        work: Work,
        plan: Plan,
    },
    /// All parts are done with, or no further one may be asked about.
    GenerateAgentsMd {
        work: Work,
    },
    CommitChanges {
        work: Work,
    },
    Completed {
        work: Option<Work>,
    },
    Failed {
        work: Work,
        why: Why,
    },
}

/// A reply, held against what was asked.
pub(crate) enum Judged {
    Plan(Plan),
    /// All that is wrong with it.
    Faulty(Vec<String>),
}

/// Everything that the machine has done for it.
pub(crate) trait Adapters {
    /// `None`: all is as the last defrag has left it.
    fn scan_entries(&mut self) -> Result<Option<Work>>;
    /// Finds what belongs together, and shares it out over calls.
    fn analyze_structure(&mut self, work: &mut Work) -> Result<()>;
    /// Asks about the next part. A whole reply that is there already is as good as a new one.
    fn run_agent(&mut self, work: &mut Work, faults: &[String]) -> Result<Asked>;
    /// What a reply comes to. When it is `final`, what can be used of it is, and the rest is dropped.
    fn judge(&mut self, work: &Work, is_final: bool) -> Result<Judged>;
    /// Makes the changes; those that are made already, not again.
    fn apply_changes(&mut self, work: &mut Work, plan: &Plan) -> Result<()>;
    fn generate_agents_md(&mut self, work: &Work) -> Result<()>;
    fn commit(&mut self, work: &Work) -> Result<()>;
}

impl State {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            State::ScanEntries => "scanEntries",
            State::AnalyzeStructure { .. } => "analyzeStructure",
            State::RunAgent { .. } => "runAgent",
            State::ApplyChanges { .. } => "applyChanges",
            State::GenerateAgentsMd { .. } => "generateAgentsMd",
            State::CommitChanges { .. } => "commitChanges",
            State::Completed { .. } => "completed",
            State::Failed { .. } => "failed",
        }
    }

    pub(crate) fn work(&self) -> Option<&Work> {
        match self {
            State::ScanEntries => None,
            State::Completed { work } => work.as_ref(),
            State::AnalyzeStructure { work }
            | State::RunAgent { work, .. }
            | State::ApplyChanges { work, .. }
            | State::GenerateAgentsMd { work }
            | State::CommitChanges { work }
            | State::Failed { work, .. } => Some(work),
        }
    }

    /// Is it known what is to be changed?
    pub(crate) fn has_plan(&self) -> bool {
        matches!(
            self,
            State::ApplyChanges { .. } | State::GenerateAgentsMd { .. } | State::CommitChanges { .. }
        )
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self, State::Completed { .. } | State::Failed { .. })
    }

    /// One step. An error leaves the saved state as it was: the next run takes it up there.
    pub(crate) fn step(self, adapters: &mut impl Adapters) -> Result<State> {
        Ok(match self {
            State::ScanEntries => match adapters.scan_entries()? {
                Some(work) => State::AnalyzeStructure { work },
                None => State::Completed { work: None },
            },
            State::AnalyzeStructure { mut work } => {
                adapters.analyze_structure(&mut work)?;
                next_part(work)
            }
            State::RunAgent { mut work, faults } => {
                let is_repaired = !faults.is_empty();
                match adapters.run_agent(&mut work, &faults)?.why_none() {
                    None => match adapters.judge(&work, is_repaired)? {
                        Judged::Plan(plan) => State::ApplyChanges { work, plan },
                        Judged::Faulty(faults) if is_repaired => stopped(work, Why::faulty(&faults)),
                        Judged::Faulty(faults) => State::RunAgent { work, faults },
                    },
                    // What is paid for is used as far as it goes.
                    Some(why @ Why::Spent(_)) if is_repaired => match adapters.judge(&work, true)? {
                        Judged::Plan(plan) => State::ApplyChanges { work, plan },
                        Judged::Faulty(_) => stopped(work, why),
                    },
                    Some(why) => stopped(work, why),
                }
            }
            State::ApplyChanges { mut work, plan } => {
                adapters.apply_changes(&mut work, &plan)?;
                work.next += 1;
                next_part(work)
            }
            State::GenerateAgentsMd { work } => {
                adapters.generate_agents_md(&work)?;
                State::CommitChanges { work }
            }
            State::CommitChanges { work } => {
                adapters.commit(&work)?;
                State::Completed { work: Some(work) }
            }
            over @ (State::Completed { .. } | State::Failed { .. }) => over,
        })
    }
}

fn next_part(work: Work) -> State {
    if work.part().is_some() {
        State::RunAgent { work, faults: Vec::new() }
    } else {
        State::GenerateAgentsMd { work }
    }
}

/// What earlier parts changed is brought to its end all the same.
fn stopped(mut work: Work, why: Why) -> State {
    if work.next == 0 {
        return State::Failed { work, why };
    }
    work.stopped = Some(why);
    State::GenerateAgentsMd { work }
}

#[cfg(test)]
mod tests;
