//! Notes put in order (US-006): what this pipeline adds to the walk of [`crate::memory::pipeline`].

pub mod applied;
mod ask;
pub mod corpus;
pub mod divide;
mod front_matter;
mod group;
pub mod host;
mod loss;
mod news;
mod own;
pub mod plan;
pub mod planner;
pub mod reply;
mod rows;
pub mod show;
pub mod similar;
pub mod undo;
pub mod work;

use crate::memory::defrag::corpus::Corpus;
use crate::memory::defrag::plan::{DefragPlan, Inventory};
use crate::memory::defrag::work::{Defrag, DefragWork, Part, Scanned};
use crate::memory::pipeline::{Failure, Judgement, MayAsk, Pipeline, State, StateOf, Then, WalkEnd};

impl Pipeline for Defrag<'_> {
    type Part = Part;
    type Own = Scanned;
    type Plan = DefragPlan;
    type Material = Corpus;
    type Known = Inventory;
    /// How many notes were archived without a successor.
    type Outcome = usize;

    const TAKES_TURNS: bool = false;

    fn max_prompt_bytes(&self) -> usize {
        self.max_prompt_bytes
    }

    fn name(state: &StateOf<Self>) -> &'static str {
        match state {
            State::Begin => "scanEntries",
            State::Divide { .. } => "analyzeStructure",
            State::Gather { .. } | State::Ask { .. } | State::Check { .. } => "runAgent",
            State::Apply { .. } | State::Close { failure: None, .. } => "applyChanges",
            State::Close { .. } | State::Paused { .. } => "stopped",
            State::Refresh { .. } => "generateAgentsMd",
            State::Commit { .. } => "commitChanges",
            State::Ended { ending: WalkEnd::Failed(_) } => "failed",
            State::Ended { .. } => "completed",
        }
    }

    fn prompt(&self, work: &mut DefragWork, corpus: &Corpus) -> String {
        ask::prompt(self, work, corpus)
    }

    fn rules(&self, work: &DefragWork) -> String {
        ask::rules(work.part())
    }

    fn judged(
        &self,
        work: &mut DefragWork,
        reply: Option<&str>,
        inventory: Inventory,
        may: MayAsk,
    ) -> Judgement<DefragPlan> {
        match reply::parse(reply.unwrap_or_default(), &work.batch) {
            Err(faults) => Judgement::Unusable(faults),
            // One bad operation costs no second call.
            Ok(reply) if reply.is_useless() && may.repair => Judgement::Improvable(reply.faults()),
            Ok(reply) => Judgement::Plan(planner::plan(self, work, &reply, inventory)),
        }
    }

    fn applied(work: &mut DefragWork, archived: usize) {
        work.own.archived = work.own.archived.saturating_add(archived);
    }

    /// What is paid for is used as far as it goes, if no second reply may be had. A person can correct it.
    fn falls_back(why: Option<&Failure>) -> bool {
        matches!(why, Some(Failure::Spent(_)))
    }

    /// What earlier parts changed is brought to its end all the same.
    fn ending(work: &DefragWork, failure: Option<Failure>) -> WalkEnd {
        match failure {
            Some(failure) if work.next == 0 => WalkEnd::Failed(failure),
            None | Some(Failure::Expired) => WalkEnd::Completed,
            Some(failure) => WalkEnd::Stopped(failure),
        }
    }

    /// All parts at once, at the end.
    fn is_to_show(_: &DefragWork, then: &Then) -> bool {
        !matches!(then, Then::GoOn | Then::End(WalkEnd::Failed(_)))
    }
}

#[cfg(test)]
mod tests;
