//! From the queue to notes: the machine (US-005). It does nothing by itself: every effect goes through
//! [`Adapters`], and every state can be saved and taken up again.

pub(crate) mod ask;
pub(crate) mod desk;
pub(crate) mod gather;
mod history;
mod judge;
mod part;
pub(crate) mod plan;
pub(crate) mod reply;
pub(crate) mod run;
pub(crate) mod work;
mod write;

use crate::base::error::Result;
use crate::memory::call::{Asked, Why};
use crate::memory::consolidate::plan::{Plan, PlannedNote};
use crate::memory::consolidate::work::{Verdict, Work, Written};
use serde::{Deserialize, Serialize};

/// Where a batch is. Each state holds just what the next needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub(crate) enum State {
    /// Nothing is claimed yet.
    LoadQueue,
    /// Entries are claimed, their histories are not read.
    FetchHistory {
        work: Work,
    },
    /// The next part is to be asked about; with `faults` for the second time.
    RunAgent {
        work: Work,
        faults: Vec<String>,
    },
    /// A whole reply is there.
    ParseOutput {
        work: Work,
        is_repaired: bool,
    },
    /// It is known what is to be written.
    WriteEntries {
        work: Work,
        plan: Plan,
    },
    /// All parts are done with.
    MarkProcessed {
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
    Plan(Plan, Vec<(String, Verdict)>),
    /// All that is wrong with it.
    Faulty(Vec<String>),
}

/// Everything that the machine has done for it.
pub(crate) trait Adapters {
    /// Claims the next entries that go together; `None` when nothing waits that may be tried now.
    fn load_queue(&mut self) -> Result<Option<Work>>;
    /// Reads the histories of what was claimed, and shares them out over calls.
    fn fetch_history(&mut self, work: &mut Work) -> Result<()>;
    /// Without an LLM: what can be filed as it is. `None` where there is one.
    fn without_agent(&mut self, work: &mut Work) -> Result<Option<Plan>>;
    /// Asks about the next part. A whole reply that is there already is as good as a new one.
    fn execute_agent(&mut self, work: &mut Work, faults: &[String]) -> Result<Asked>;
    fn parse_output(&mut self, work: &Work) -> Result<Judged>;
    /// Writes one note; when it is written already, nothing.
    fn write_entry(&mut self, note: &PlannedNote, plan: &Plan) -> Result<Written>;
    /// Takes note that what the part showed has been seen.
    fn consume(&mut self, work: &Work) -> Result<()>;
    /// Gives every entry its place by its verdict; those without one go back to the queue.
    fn mark_processed(&mut self, work: &Work) -> Result<()>;
    fn commit(&mut self, work: &Work) -> Result<()>;
    /// Tells a person what was not done as asked.
    fn warn(&mut self, warning: &str);
}

impl State {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            State::LoadQueue => "loadQueue",
            State::FetchHistory { .. } => "fetchHistory",
            State::RunAgent { .. } => "runAgent",
            State::ParseOutput { .. } => "parseOutput",
            State::WriteEntries { .. } => "writeEntries",
            State::MarkProcessed { .. } => "markProcessed",
            State::CommitChanges { .. } => "commitChanges",
            State::Completed { .. } => "completed",
            State::Failed { .. } => "failed",
        }
    }

    pub(crate) fn work(&self) -> Option<&Work> {
        match self {
            State::LoadQueue => None,
            State::Completed { work } => work.as_ref(),
            State::FetchHistory { work }
            | State::RunAgent { work, .. }
            | State::ParseOutput { work, .. }
            | State::WriteEntries { work, .. }
            | State::MarkProcessed { work }
            | State::CommitChanges { work }
            | State::Failed { work, .. } => Some(work),
        }
    }

    /// Is it known what is to be written?
    pub(crate) fn has_plan(&self) -> bool {
        matches!(self, State::WriteEntries { .. } | State::MarkProcessed { .. } | State::CommitChanges { .. })
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self, State::Completed { .. } | State::Failed { .. })
    }

    /// One step. An error leaves the saved state as it was: the next run takes it up there.
    pub(crate) fn step(self, adapters: &mut impl Adapters) -> Result<State> {
        Ok(match self {
            State::LoadQueue => match adapters.load_queue()? {
                Some(work) => State::FetchHistory { work },
                None => State::Completed { work: None },
            },
            State::FetchHistory { mut work } => {
                adapters.fetch_history(&mut work)?;
                if work.parts.is_empty() {
                    return Ok(State::MarkProcessed { work });
                }
                match adapters.without_agent(&mut work)? {
                    Some(plan) => State::WriteEntries { work, plan },
                    None => State::RunAgent { work, faults: Vec::new() },
                }
            }
            State::RunAgent { mut work, faults } => {
                match adapters.execute_agent(&mut work, &faults)?.why_none() {
                    None => State::ParseOutput { work, is_repaired: !faults.is_empty() },
                    Some(why) => State::Failed { work, why },
                }
            }
            State::ParseOutput { mut work, is_repaired } => match adapters.parse_output(&work)? {
                Judged::Plan(plan, verdicts) => {
                    for warning in &plan.warnings {
                        adapters.warn(warning);
                    }
                    work.verdicts.extend(verdicts);
                    State::WriteEntries { work, plan }
                }
                Judged::Faulty(faults) if is_repaired => State::Failed { work, why: Why::faulty(&faults) },
                Judged::Faulty(faults) => State::RunAgent { work, faults },
            },
            State::WriteEntries { mut work, plan } => {
                for note in &plan.notes {
                    let written = adapters.write_entry(note, &plan)?;
                    work.written.push(written);
                }
                adapters.consume(&work)?;
                work.next += 1;
                // What the model passed over in silence is not asked about further.
                let is_alive = work
                    .shown_ids()
                    .iter()
                    .any(|id| !matches!(work.verdicts.get(*id), Some(Verdict::Failed(_) | Verdict::Alone)));
                if work.next < work.parts.len() && is_alive {
                    State::RunAgent { work, faults: Vec::new() }
                } else {
                    State::MarkProcessed { work }
                }
            }
            State::MarkProcessed { work } => {
                adapters.mark_processed(&work)?;
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

#[cfg(test)]
mod tests;
