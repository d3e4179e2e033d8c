//! What a reply comes to, as plain data that can be shown, saved, carried out twice with the same result, and taken back.

use crate::memory::defrag::reply::{Dropped, Verb};
use crate::store::entry::{Entry, EntryId, Tier};
use crate::store::persistence::{Note, Place};
use crate::store::proposal::Proposal;
use crate::store::revision::Revision;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DefragPlan {
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
    pub op: Verb,
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

/// What a store holds when a reply is judged.
#[derive(Debug)]
pub struct Inventory {
    pub at: Timestamp,
    /// The notes that were shown, as they are now.
    pub notes: Vec<Note>,
    /// Every id in use, aliases too.
    pub ids: BTreeSet<EntryId>,
    /// The notes of which a change waits for a person.
    pub proposed: BTreeSet<EntryId>,
    /// The paths of all notes below the store.
    pub paths: BTreeSet<PathBuf>,
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
