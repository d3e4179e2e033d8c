//! From the queue to notes: what this pipeline adds to the walk of [`crate::memory::pipeline`].

pub mod ask;
mod captured;
mod gather;
pub mod grounds;
mod history;
pub mod host;
pub mod judge;
pub mod land;
mod order;
mod output;
pub mod passage;
pub mod pending;
pub mod plan;
pub mod queue;
mod ran;
pub mod readings;
pub mod related;
pub mod reply;
pub mod work;
pub mod write;

use crate::memory::consolidate::ask::{Material, REPLY};
use crate::memory::consolidate::judge::{as_they_are, judged};
use crate::memory::consolidate::land::Knowledge;
use crate::memory::consolidate::plan::Plan;
use crate::memory::consolidate::work::{Claimed, ConsolidateWork, Slice};
use crate::memory::consolidate::write::Made;
use crate::memory::pipeline::{Failure, Judgement, MayAsk, Pipeline, State, StateOf, Then, WalkEnd};
use crate::memory::redact::Redactor;

/// The settings are the same for every step of a run.
pub struct Consolidate<'a> {
    /// Takes secrets out of what the model writes.
    pub redactor: &'a Redactor,
    /// How long a prompt may be, in bytes.
    pub max_prompt_bytes: usize,
}

impl Pipeline for Consolidate<'_> {
    type Part = Vec<Slice>;
    type Own = Claimed;
    type Plan = Plan;
    type Material = Material;
    type Known = Knowledge;
    type Outcome = Made;

    const TAKES_TURNS: bool = true;

    fn max_prompt_bytes(&self) -> usize {
        self.max_prompt_bytes
    }

    fn name(state: &StateOf<Self>) -> &'static str {
        match state {
            State::Begin => "loadQueue",
            State::Divide { .. } => "fetchHistory",
            State::Gather { .. } | State::Ask { .. } => "runAgent",
            State::Check { .. } => "parseOutput",
            State::Apply { .. } => "writeEntries",
            State::Close { .. } => "markProcessed",
            State::Refresh { .. } | State::Commit { .. } => "commitChanges",
            State::Paused { .. } => "paused",
            State::Ended { ending: WalkEnd::Failed(_) } => "failed",
            State::Ended { .. } => "completed",
        }
    }

    fn has_model(work: &ConsolidateWork) -> bool {
        work.own.has_llm
    }

    fn prompt(&self, work: &mut ConsolidateWork, material: &Material) -> String {
        (work.shown, work.listed) = (material.notes(true), material.notes(false));
        (work.own.shown_changes, work.own.asked) = (material.shown_changes(), material.asked());
        ask::prompt(&work.batch, material)
    }

    fn rules(&self, _: &ConsolidateWork) -> String {
        REPLY.to_owned()
    }

    fn judged(
        &self,
        work: &mut ConsolidateWork,
        reply: Option<&str>,
        known: Knowledge,
        may: MayAsk,
    ) -> Judgement<Plan> {
        match reply {
            Some(reply) => judged(work, reply, known, may, self.redactor),
            None => {
                let plan = as_they_are(work, known, self.redactor);
                // All of it is filed at once; sessions without a verdict go back to the queue.
                work.next = work.parts.len();
                Judgement::Plan(plan)
            }
        }
    }

    /// Each change, and that what was shown has been seen.
    fn steps(plan: &Plan) -> usize {
        plan.changes.len() + 1
    }

    fn applied(work: &mut ConsolidateWork, made: Made) {
        work.own.made.extend(Made { warnings: Vec::new(), ..made });
    }

    /// What the model passed over in silence is not asked about further.
    fn goes_on(work: &ConsolidateWork) -> bool {
        work.seen().next().is_some()
    }

    fn falls_back(_: Option<&Failure>) -> bool {
        true
    }

    fn failed(work: &mut ConsolidateWork, failure: &Failure) {
        if let Failure::Command(why) | Failure::Reply(why) = failure {
            work.take_failure(why);
        }
    }

    fn ending(_: &ConsolidateWork, failure: Option<Failure>) -> WalkEnd {
        failure.map_or(WalkEnd::Completed, WalkEnd::Failed)
    }

    fn is_to_show(work: &ConsolidateWork, _: &Then) -> bool {
        work.own.made != Made::default()
    }

    fn committed(work: &mut ConsolidateWork) {
        work.own.made = Made::default();
    }
}

#[cfg(test)]
mod tests;
