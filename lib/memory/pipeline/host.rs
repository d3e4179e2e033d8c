//! What a host does to a store of files in the place of a pipeline, and what is saved of a batch before each state that
//! does more than read.

use crate::base::error::Result;
use crate::memory::pipeline::call::{Kind, RunEnv};
use crate::memory::pipeline::{Begun, Failure, Pipeline, StateOf, WorkOf};
use crate::store::batch::{Batch, Batches};
use crate::store::place::Root;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// What a pipeline does to a store of files.
pub trait Host {
    type Pipeline: Pipeline;

    fn pipeline(&self) -> &Self::Pipeline;

    /// The batches of this pipeline, those of the other one, and the program that these belong to.
    fn batches(root: &Root) -> (Batches, Batches, &'static str);

    fn begin(&mut self, run: &mut RunEnv) -> Result<Begun<HostWork<Self>>>;
    fn divide(&mut self, work: HostWork<Self>, run: &mut RunEnv) -> Result<HostWork<Self>>;
    fn gather(
        &mut self,
        work: &HostWork<Self>,
        run: &RunEnv,
    ) -> Result<<Self::Pipeline as Pipeline>::Material>;
    fn look_up(&mut self, work: &HostWork<Self>, run: &RunEnv)
    -> Result<<Self::Pipeline as Pipeline>::Known>;
    fn apply(
        &mut self,
        work: &HostWork<Self>,
        plan: <Self::Pipeline as Pipeline>::Plan,
        step: usize,
        run: &RunEnv,
    ) -> Result<<Self::Pipeline as Pipeline>::Outcome>;
    fn close(&mut self, work: &HostWork<Self>, failure: Option<&Failure>, run: &RunEnv) -> Result<()>;
    fn refresh(&mut self, work: &HostWork<Self>, run: &RunEnv) -> Result<()>;
    fn commit(&mut self, work: &HostWork<Self>, run: &RunEnv) -> Result<()>;

    /// Is a run to begin another batch after one that ended?
    fn begins_again(&self) -> bool;

    /// A batch cannot be brought to its end. `true`: nothing new is begun then.
    fn is_held_up(&mut self, _run: &RunEnv) -> Result<bool> {
        Ok(false)
    }

    /// Where a batch stands among those that take turns; `None`: it is left to another run.
    fn rank(&self, _batch: &Batch, _work: &HostWork<Self>, _run: &RunEnv) -> Result<Option<Rank>> {
        Ok(None)
    }

    /// Does something that has not been begun come before a batch of this rank?
    fn queue_goes_first(&mut self, _rank: &Rank, _run: &RunEnv) -> Result<bool> {
        Ok(true)
    }

    /// Who answers a batch of the command that a run before left behind; `None`: it is forgotten, and what it claimed goes
    /// back. `has_reply`: the reply to its current question is there.
    fn take_up(&self, _progress: &BatchProgress, _has_reply: bool, _run: &RunEnv) -> Option<Answerer> {
        Some(Answerer::Command)
    }

    /// A dry run has claimed nothing: now that its reply is applied, it is claimed.
    fn claim(&self, _batch: &Batch, _work: &HostWork<Self>, _run: &RunEnv) -> Result<()> {
        Ok(())
    }

    /// A batch has ended every run that took it up. What it claimed is to go back in another way.
    fn split(&self, _batch: &Batch, _run: &RunEnv) -> Result<()> {
        Ok(())
    }

    /// A batch is completed. `true`: it is kept, so that it can be taken back.
    fn keeps(&self, _run: &RunEnv, _progress: &BatchProgress) -> Result<bool> {
        Ok(false)
    }
}

pub type HostWork<H> = WorkOf<<H as Host>::Pipeline>;
pub(super) type HostState<H> = StateOf<<H as Host>::Pipeline>;

/// Who answers a question of the machine.
pub enum Answerer {
    /// The LLM command, or what it printed before a crash.
    Command,
    /// This text, once; then nobody.
    Reply(Option<String>),
    /// Nobody: it is asked about no further, and what was done so far is brought to its end.
    Nobody,
}

/// The order among batches in parts: first those of new sessions, then those that have had the fewest turns, then the
/// oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub is_past: bool,
    pub part: usize,
    pub at: Timestamp,
}

/// How long a batch waits for a reply that a person is to bring.
const PATIENCE: SignedDuration = SignedDuration::from_hours(24);

/// What a runner knows of a batch without looking into its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchProgress {
    pub kind: Kind,
    pub begun: Timestamp,
    /// How many replies it has taken in.
    pub answers: usize,
    /// The name of the file that the reply to the current question goes into.
    pub awaits: Option<String>,
    /// A person has been given the current question.
    pub(super) is_with_person: bool,
    /// How many runs have taken it up again before it had an answer.
    #[serde(default)]
    pub(super) taken_up: u32,
    /// Completed; kept so that it can be taken back.
    pub is_over: bool,
}

#[derive(Serialize, Deserialize)]
pub struct Saved<S> {
    #[serde(flatten)]
    pub progress: BatchProgress,
    pub state: S,
}

impl BatchProgress {
    pub(super) fn new(kind: Kind, begun: Timestamp) -> BatchProgress {
        BatchProgress {
            kind,
            begun,
            answers: 0,
            awaits: None,
            is_with_person: false,
            taken_up: 0,
            is_over: false,
        }
    }

    /// Has it been under way for longer than a person is waited for?
    pub fn is_old(&self, now: Timestamp) -> bool {
        now.duration_since(self.begun) > PATIENCE
    }
}
