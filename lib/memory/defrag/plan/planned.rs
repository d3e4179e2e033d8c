//! A plan as plain data: what passed its checks, what did not and why.

use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::dropped::Dropped;
use crate::memory::defrag::reply::Op;
use crate::store::entry::{Entry, EntryId, Tier};
use crate::store::persistence::Place;
use crate::store::proposal::Proposal;
use crate::store::revision::Revision;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub at: Timestamp,
    pub operations: Vec<Planned>,
    pub dropped: Vec<Dropped>,
    /// What waits for a person: of each such operation all its changes.
    #[serde(default)]
    pub proposals: Vec<Proposal>,
    pub warnings: Vec<String>,
    /// What the model says of it all.
    pub remark: String,
}

/// An operation that passed its checks. Its revisions are made together, in their order, or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    pub op: Op,
    /// The notes that it is about, as they are before.
    pub from: Vec<NoteBrief>,
    /// What is in their place afterwards.
    pub into: Vec<NoteBrief>,
    /// Why a note is archived.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Facts that are lost.
    pub lost: Vec<String>,
    /// Facts that no longer hold. What held them is in the archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    pub revisions: Vec<Revision>,
}

/// What becomes of an operation.
pub enum Verdict {
    /// Nothing would change.
    Idle,
    Made(Box<Planned>),
    /// A person is to decide.
    Waits(Vec<Proposal>),
}

/// A note in a few words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoteBrief {
    pub id: EntryId,
    pub title: String,
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u8>,
    pub tags: Vec<String>,
    /// Of the body.
    pub lines: usize,
    pub bytes: usize,
    pub place: Place,
}

impl NoteBrief {
    pub(super) fn of(entry: &Entry, place: Place) -> NoteBrief {
        let (meta, body) = (entry.meta(), entry.body());
        NoteBrief {
            id: meta.id.clone(),
            title: meta.title.clone(),
            tier: meta.tier,
            rank: meta.rank,
            tags: meta.tags.clone(),
            lines: String::from_utf8_lossy(body).lines().count(),
            bytes: body.len(),
            place,
        }
    }
}

/// What a store holds when a reply is judged.
#[derive(Debug)]
pub struct Found {
    pub at: Timestamp,
    /// The notes that were shown, as they are now.
    pub notes: Vec<CorpusNote>,
    /// Every id in use, aliases too.
    pub ids: BTreeSet<EntryId>,
    /// The notes of which a change waits for a person.
    pub waiting: BTreeSet<EntryId>,
    /// The names that notes are kept under.
    pub names: BTreeSet<(Place, String)>,
}

impl Found {
    pub(super) fn is_taken(&self, place: Place, name: &str) -> bool {
        self.names.contains(&(place, name.to_owned()))
    }
}

/// Which operations a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allows {
    pub tiers: bool,
    /// All others.
    pub texts: bool,
    /// More may be lost than the shares say.
    pub loss: bool,
}
