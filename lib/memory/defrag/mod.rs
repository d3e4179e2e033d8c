//! Notes put in order: what this pipeline adds to the walk of [`crate::memory::pipeline`].

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
pub mod similar;

use crate::base::error::Result;
use crate::memory::defrag::corpus::Corpus;
use crate::memory::defrag::plan::{DefragPlan, Inventory};
use crate::memory::pipeline::{
    self, Failure, Judgement, MayAsk, Pipeline, State, StateOf, Then, WalkEnd, no_room_for,
};
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How much room the words around the notes take in a prompt, in bytes, at most.
const OWN_WORDS: usize = 9 << 10;
/// The least room for notes in a prompt, in bytes.
const LEAST_ROOM: usize = 2000;

/// The settings are the same for every step of a run.
pub struct Defrag<'a> {
    /// Takes secrets out of what a model is shown, and of what it writes.
    pub redactor: &'a Redactor,
    /// How long a prompt may be, in bytes.
    pub max_prompt_bytes: usize,
    /// How many tokens of hot notes AGENTS.md has room for.
    pub max_hot_tokens: u64,
    /// More may be lost than the shares say.
    pub allows_loss: bool,
}

pub type DefragWork = pipeline::Work<Part, Scanned>;

/// What is known of all notes, and what has become of them so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scanned {
    /// Asks about what has not changed, too.
    pub is_forced: bool,
    /// How many notes there were at the beginning.
    pub total: usize,
    /// How many have been archived without a successor.
    pub archived: usize,
    /// Those of the notes shown whole that no longer held.
    pub expired: BTreeSet<EntryId>,
}

/// What one call shows: notes of one reach, which is named first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// All that is to be asked about in a reach: these notes whole, and a line of each that its tiers depend on.
    Whole(String, Vec<EntryId>),
    /// Some of these notes, whole, that have to do with each other.
    Group(String, Vec<EntryId>),
    /// The lines, to decide what is hot.
    Tiers(String),
}

impl Part {
    fn reach(&self) -> &str {
        let (Part::Whole(reach, _) | Part::Group(reach, _) | Part::Tiers(reach)) = self;
        reach
    }

    /// The notes that are shown whole. What they say is changed in no other part.
    fn whole(&self) -> &[EntryId] {
        match self {
            Part::Whole(_, ids) | Part::Group(_, ids) => ids,
            Part::Tiers(_) => &[],
        }
    }

    fn decides_tiers(&self) -> bool {
        !matches!(self, Part::Group(..))
    }
}

impl Defrag<'_> {
    /// Room for notes in one prompt, in bytes.
    ///
    /// # Errors
    /// `Config`: there is too little.
    fn room(&self) -> Result<usize> {
        let room = self.max_prompt_bytes.checked_sub(OWN_WORDS).filter(|room| *room >= LEAST_ROOM);
        room.ok_or_else(|| no_room_for("notes", self.max_prompt_bytes, OWN_WORDS + LEAST_ROOM))
    }

    fn cleaned(&self, text: &str) -> String {
        self.redactor.cleaned(text)
    }
}

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
