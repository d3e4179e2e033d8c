//! What a reply comes to: plain data that can be shown, saved, and carried out twice with the same result.

use crate::memory::pipeline::reply::Text;
use crate::store::entry::{By, Entry, EntryId, Scope, Source, Status};
use crate::store::journal::entry::QueueEntry;
use crate::store::proposal::{Op, Proposal, ProposalId};
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The time that every note of it bears.
    pub at: Timestamp,
    pub changes: Vec<Change>,
    /// What was changed or left out, and why.
    pub warnings: Vec<String>,
}

/// One thing to write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// A new note, or a new text for one.
    Note(Box<PlannedNote>),
    /// A note goes to the archive.
    Retire(PlannedRetirement),
    /// Something waits for a person. If something with its id waits already, it takes its place.
    Propose(Box<Proposal>),
    /// Something waits no longer.
    Withdraw(PlannedWithdrawal),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedNote {
    /// The new note's id. Of an update: the id that a proposal of its text gets if the note has changed when it is written.
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
    pub title: String,
    pub summary: String,
    pub tags: Vec<String>,
    pub scope: Scope,
    /// The last day on which it holds.
    pub until: Option<Date>,
    pub by: By,
    /// The hosts that the session had read before.
    #[serde(default)]
    pub outside: Vec<String>,
    pub body: String,
    pub sources: Vec<Origin>,
}

impl PlannedNote {
    /// A new note of a repository.
    pub(super) fn new(id: EntryId, text: Text, by: By, created_at: i64) -> PlannedNote {
        PlannedNote {
            id,
            update: None,
            replaces: None,
            before: None,
            created_at,
            status: Status::Consolidated,
            title: text.title,
            summary: text.summary,
            tags: text.tags,
            scope: Scope::Repo,
            until: None,
            by,
            outside: Vec::new(),
            body: text.body,
            sources: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedRetirement {
    pub id: EntryId,
    pub title: String,
    pub reason: String,
    /// The fingerprint that it has until then.
    pub replaces: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedWithdrawal {
    pub id: ProposalId,
    pub op: Op,
    pub note: Option<EntryId>,
    pub title: String,
    pub reason: String,
}

/// Where a note comes from, as it is saved with a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    pub harness: String,
    pub thread_id: Option<String>,
    pub repo: Option<String>,
    pub cwd: Option<String>,
    /// When it was queued.
    #[serde(default)]
    pub at: Option<Timestamp>,
}

impl Origin {
    pub(super) fn of(entry: &QueueEntry) -> Origin {
        Origin {
            harness: entry.harness.name().to_owned(),
            thread_id: entry.thread_id().map(str::to_owned),
            repo: entry.context.repo.clone(),
            cwd: entry.context.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
            at: Some(entry.timestamp),
        }
    }
}

impl From<&Origin> for Source {
    fn from(origin: &Origin) -> Source {
        Source {
            harness: Some(origin.harness.clone()),
            thread_id: origin.thread_id.clone(),
            repo: origin.repo.clone(),
            cwd: origin.cwd.clone(),
            at: origin.at.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            other: Vec::new(),
        }
    }
}

/// A note that a reply may change, as it is now.
#[derive(Debug, Clone)]
pub struct KnownNote {
    pub entry: Entry,
    /// It is in the archive.
    pub is_archived: bool,
}
