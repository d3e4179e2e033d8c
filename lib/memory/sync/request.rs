//! What a sync is asked for, and what it comes to.

use crate::base::env::Env;
use crate::memory::redact::Redactor;
use crate::memory::sync::removals::Missing;
use crate::store::place::Root;
use crate::store::proposal::ProposalId;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeSet;

pub struct SyncRequest<'a> {
    pub root: &'a Root,
    pub env: &'a Env,
    /// The address that the command line or the configuration names.
    pub address: Option<String>,
    pub commit_hook: &'a str,
    pub redactor: &'a Redactor,
    /// What is to become of many notes that are gone; `None`: nothing is merged.
    pub missing: Option<Missing>,
    /// Nobody else can write to the remote, by the command line or the configuration.
    pub is_own: Option<bool>,
    pub is_dry: bool,
}

/// How a sync ended.
#[derive(Debug)]
pub enum SyncOutcome {
    /// There is no remote: nothing to do.
    NoRemote,
    /// Another sync is running. What it says of itself.
    Busy(String),
    Done(SyncReport),
}

/// What a sync has done, or with a dry run would do.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SyncReport {
    /// Without a login.
    pub remote: String,
    /// The files that have changed here, or are gone.
    pub received: BTreeSet<String>,
    /// The files that the remote has got, or lost.
    pub sent: BTreeSet<String>,
    /// The texts that wait for review because lines clashed.
    pub conflicts: Vec<ProposalId>,
    /// What was decided and a person should know.
    pub notices: Vec<String>,
    /// Why the remote could not be reached.
    pub unreachable: Option<String>,
    /// When it was reached last, if it was not reached now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exchange: Option<Timestamp>,
    /// Files with secrets, for which nothing was sent.
    pub secrets: BTreeSet<String>,
    /// Commits of this machine have become one, because a secret was in their past.
    pub squashed: bool,
    pub dry_run: bool,
}
