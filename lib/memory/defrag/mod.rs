//! Notes put in order (US-006): what this pipeline adds to the walk of [`crate::memory::pipeline`].

pub mod apply;
pub mod ask;
pub mod corpus;
pub mod dropped;
mod family;
pub mod forget;
pub mod group;
pub mod host;
pub mod limits;
pub mod material;
mod neighbours;
mod news;
pub mod plan;
pub mod reach;
pub mod reply;
pub mod show;
pub mod similar;
pub mod structure;
pub mod undo;
pub mod work;

use crate::memory::defrag::material::Material;
use crate::memory::defrag::plan::{Allows, Found, Plan, plan};
use crate::memory::defrag::work::{Part, Scanned, Work};
use crate::memory::pipeline::{self, Ending, Failure, Judgement, MayAsk, Pipeline, Then};
use crate::memory::redact::Redactor;

/// The settings are the same for every step of a run.
pub struct Defrag<'a> {
    /// Takes secrets out of what the model writes.
    pub redactor: &'a Redactor,
    /// How long a prompt may be, in bytes.
    pub max_prompt_bytes: usize,
    /// More may be lost than the shares say.
    pub allows_loss: bool,
}

pub type State = pipeline::State<Work, Plan>;

impl Pipeline for Defrag<'_> {
    type Part = Part;
    type Own = Scanned;
    type Plan = Plan;
    type Material = Material;
    type Known = Found;
    /// How many notes were archived without a successor.
    type Outcome = usize;

    const TAKES_TURNS: bool = false;

    fn max_prompt_bytes(&self) -> usize {
        self.max_prompt_bytes
    }

    fn name(state: &State) -> &'static str {
        match state {
            State::Begin => "scanEntries",
            State::Divide { .. } => "analyzeStructure",
            State::Gather { .. } | State::Ask { .. } | State::Check { .. } => "runAgent",
            State::Apply { .. } | State::Close { failure: None, .. } => "applyChanges",
            State::Close { .. } | State::Paused { .. } => "stopped",
            State::Refresh { .. } => "generateAgentsMd",
            State::Commit { .. } => "commitChanges",
            State::Ended { ending: Ending::Failed(_) } => "failed",
            State::Ended { .. } => "completed",
        }
    }

    fn prompt(&self, work: &mut Work, material: &Material) -> String {
        work.shown = material.shown();
        work.listed = material.listed();
        work.own.expired = material.expired();
        material.prompt(&work.batch)
    }

    fn rules(&self, work: &Work) -> String {
        let allows = self.allows(work);
        ask::rules(allows.texts, allows.tiers)
    }

    fn judged(&self, work: &mut Work, reply: Option<&str>, found: Found, may: MayAsk) -> Judgement<Plan> {
        let reply = match reply::parse(reply.unwrap_or_default(), &work.batch) {
            Ok(reply) => reply,
            Err(faults) => return Judgement::Unusable(faults),
        };
        // One bad operation costs no second call.
        if reply.is_useless() && may.repair {
            return Judgement::Improvable(reply.faults());
        }
        let clean = |text: &str| self.redactor.cleaned(text);
        Judgement::Plan(plan(&reply, found, work, self.allows(work), &clean))
    }

    fn applied(work: &mut Work, archived: usize) {
        work.own.archived = work.own.archived.saturating_add(archived);
    }

    /// What is paid for is used as far as it goes, if no second reply may be had. A person can correct it.
    fn falls_back(why: Option<&Failure>) -> bool {
        matches!(why, Some(Failure::Spent(_)))
    }

    /// What earlier parts changed is brought to its end all the same.
    fn ending(work: &Work, failure: Option<Failure>) -> Ending {
        match failure {
            Some(failure) if work.next == 0 => Ending::Failed(failure),
            None | Some(Failure::Expired) => Ending::Completed,
            Some(failure) => Ending::Stopped(failure),
        }
    }

    /// All parts at once, at the end.
    fn is_to_show(_: &Work, then: &Then) -> bool {
        !matches!(then, Then::GoOn | Then::End(Ending::Failed(_)))
    }
}

impl Defrag<'_> {
    /// Which operations the call about the part under way is about.
    fn allows(&self, work: &Work) -> Allows {
        let (texts, tiers) = match work.part() {
            Some(Part::Whole(..)) => (true, true),
            Some(Part::Group(..)) => (true, false),
            Some(Part::Tiers(_)) | None => (false, true),
        };
        Allows { texts, tiers, loss: self.allows_loss }
    }
}

#[cfg(test)]
mod tests;
