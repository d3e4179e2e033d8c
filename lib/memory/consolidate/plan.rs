//! What a reply comes to: plain data that can be shown, saved, and carried out twice with the same result.

use crate::memory::redact::Redactor;
use crate::store::entry::{Anchor, Branch, By, EntryId, Source, Status};
use crate::store::journal::entry::QueueEntry;
use crate::store::proposal::{Draft, Op, Proposal, ProposalId};
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The time that every note of it bears.
    pub at: Timestamp,
    pub changes: Vec<PlannedChange>,
    /// What was changed or left out, and why.
    pub warnings: Vec<String>,
}

/// One thing to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlannedChange {
    /// A new note, or a new text for one.
    Note(Box<PlannedNote>),
    /// A note still holds.
    Confirm(Box<Confirmation>),
    /// A note goes to the archive.
    Retire(Retirement),
    /// Something waits for a person. If something with its id waits already, it takes its place.
    Propose(Box<Proposal>),
    /// Something waits no longer.
    Withdraw(Waiting),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNote {
    /// The new note's id. Of an update: the id that its text gets if the note has gone when it is written.
    pub id: EntryId,
    /// The note that is replaced.
    pub update: Option<EntryId>,
    /// The fingerprint that it has until then.
    pub replaces: Option<String>,
    /// Its body until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    pub created_at: i64,
    pub status: Status,
    pub by: By,
    /// The hosts that the session had read before.
    #[serde(default)]
    pub outside: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<Anchor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Branch>,
    #[serde(flatten)]
    pub draft: Draft,
}

impl PlannedNote {
    pub(super) fn new(id: EntryId, draft: Draft, by: By, created_at: i64) -> PlannedNote {
        PlannedNote {
            id,
            update: None,
            replaces: None,
            before: None,
            created_at,
            status: Status::Consolidated,
            by,
            outside: Vec::new(),
            anchors: Vec::new(),
            branch: None,
            draft,
        }
    }
}

/// What a note rests on from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    pub id: EntryId,
    pub title: String,
    pub on: Date,
    pub anchors: Vec<Anchor>,
    pub branch: Option<Branch>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retirement {
    pub id: EntryId,
    pub title: String,
    pub reason: String,
    /// The fingerprint that it has until then.
    pub replaces: String,
}

/// A change that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub id: ProposalId,
    pub op: Op,
    pub note: Option<EntryId>,
    pub title: String,
    /// It waits no longer: why the model took it back.
    #[serde(default, alias = "reason", skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
}

impl Waiting {
    /// `withdrawn p__a1B2c3: TITLE: REASON`, of one that was taken back.
    pub fn withdrawal(&self) -> Option<String> {
        let reason = self.withdrawn.as_ref()?;
        Some(format!("withdrawn {}: {}: {reason}", self.id, self.title))
    }
}

/// What a note says of the session, or the captured note, that it comes from, without secrets.
pub(super) fn source_of(entry: &QueueEntry, redactor: &Redactor) -> Source {
    Source {
        harness: Some(entry.harness.name().to_owned()),
        thread_id: entry.thread_id().map(|id| redactor.cleaned(id)),
        repo: entry.context.repo.clone(),
        cwd: entry.context.cwd.as_ref().map(|cwd| redactor.cleaned(&cwd.to_string_lossy())),
        at: Some(entry.timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        other: Vec::new(),
    }
}
