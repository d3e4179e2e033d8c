//! How things stand, from what the programs wrote down. No note is read.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::reach;
use crate::harness::HARNESSES;
use crate::harness::spec::Spec;
use crate::memory::budget::{self, CallSum};
use crate::memory::doctor::{CheckContext, Finding, HarnessState, failure, glance};
use crate::memory::recall::last_given;
use crate::memory::review::{dangers_of, session_of};
use crate::memory::section::Aim;
use crate::memory::sync::remote;
use crate::store::batch::Batches;
use crate::store::entry::Source;
use crate::store::health::{Health, Trouble, TroubleKind};
use crate::store::journal::{Journal, harness_and_time};
use crate::store::ledger::Tries;
use crate::store::persistence::{Persistence, Place};
use crate::store::runs::{self, Took};
use crate::store::topics::Topics;
use jiff::Timestamp;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The store's directory.
    pub store: PathBuf,
    #[serde(skip)]
    pub has_config: bool,
    pub notes: usize,
    pub archived: usize,
    /// What is wrong, the worst first.
    pub trouble: Vec<Finding>,
    pub queue: Queue,
    pub calls: Spending,
    pub harnesses: Vec<HarnessUse>,
    pub targets: Vec<TargetUse>,
    pub review: Vec<WaitingSession>,
    /// `None`: the notes have no remote.
    pub sync: Option<SyncState>,
}

/// What waits to be made into notes.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// The oldest first.
    pub waiting: Vec<WaitingEntry>,
    /// How many entries a run has taken out.
    pub claimed: usize,
    /// The last run failed and left everything in it.
    pub trouble: Option<Trouble>,
    #[serde(skip)]
    pub has_command: bool,
    /// Those that have failed for good.
    pub failed: Vec<WaitingEntry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingEntry {
    pub id: String,
    pub harness: Option<String>,
    pub since: Option<Timestamp>,
    /// `None`: the next run.
    pub next_try: Option<Timestamp>,
    pub last_error: Option<String>,
}

/// Of the day and of the month, in UTC.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spending {
    pub today: CallSum,
    pub month: CallSum,
    pub max_today: u64,
    /// The runs of axe's agents, which may answer the calls.
    pub runs_today: Took,
    pub runs_month: Took,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HarnessUse {
    #[serde(flatten)]
    pub state: HarnessState,
    /// When a session of it was given notes last.
    pub last_recall: Option<Timestamp>,
}

/// A file that gets notes.
#[derive(Debug, Serialize)]
pub struct TargetUse {
    pub path: PathBuf,
    pub exists: bool,
    /// `None`: the notes for everywhere.
    pub repo: Option<String>,
    /// The programs that are used here and read it.
    pub readers: Vec<&'static str>,
}

/// A session whose changes wait for a person.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingSession {
    pub harness: Option<String>,
    pub thread_id: Option<String>,
    pub repo: Option<String>,
    pub at: Option<Timestamp>,
    pub changes: usize,
    /// How many of them do what always waits.
    pub dangerous: usize,
    /// The title of the first.
    pub title: String,
}

#[derive(Debug, Serialize)]
pub struct SyncState {
    pub remote: String,
    pub last: Option<Timestamp>,
}

impl Status {
    /// `found`: findings of other checks.
    ///
    /// # Errors
    /// A directory of the store cannot be listed.
    pub fn of(cx: &CheckContext, found: Vec<Finding>) -> Result<Status> {
        let (root, env, now) = (cx.root, cx.env, cx.env.now());
        let count = |place: Place| Topics::at(root).names(place.dir(), ".md").map(|names| names.len());
        let (trouble, harnesses) = glance(cx, found);
        let given = last_given(root);
        let used = |state: HarnessState| HarnessUse { last_recall: given.get(state.harness).copied(), state };
        let [today, month] = budget::taken(root, now).unwrap_or_default();
        let [runs_today, runs_month] = runs::took(env, now).unwrap_or_default();
        let max_today = cx.config.llm.max_calls_per_day;
        let last = Health::load(root).synced;
        let remote = remote::current(root, env).or_else(|| cx.config.sync.remote.clone());
        Ok(Status {
            store: root.path().to_path_buf(),
            has_config: cx.config_file != root.path(),
            notes: count(Place::Topics)?,
            archived: count(Place::Archive)?,
            trouble,
            queue: Queue::of(cx)?,
            calls: Spending { today, month, max_today, runs_today, runs_month },
            harnesses: harnesses.into_iter().map(used).collect(),
            targets: targets(cx),
            review: sessions(cx),
            sync: remote.map(|remote| SyncState { remote: remote::shown(&remote), last }),
        })
    }
}

impl Queue {
    fn of(cx: &CheckContext) -> Result<Queue> {
        let (inbox, journal) = (cx.root.inbox(), Journal::at(cx.root));
        let tries = Tries::load(cx.root).unwrap_or_default();
        let entry = |id: String, last_error: Option<String>| {
            let named = harness_and_time(&id).map(|(harness, since)| (harness.to_owned(), since));
            let (harness, since) = named.unzip();
            let next_try = tries.next_try(&id, cx.env.now());
            WaitingEntry { id, harness, since, next_try, last_error: last_error.map(|why| cx.cleaned(&why)) }
        };
        let mut ids = journal.ids()?;
        ids.sort();
        let waits = |id: String| {
            let why = tries.error(&id).map(str::to_owned);
            entry(id, why)
        };
        let fails = |id: String| {
            let why = failure(&inbox.join(".failed").join(format!("{id}.error.json")));
            entry(id, Some(why))
        };
        let batches = Batches::of_queue(cx.root).all().unwrap_or_default();
        let claimed = batches.iter().filter_map(|batch| Journal::ids_in(&batch.claims()).ok());
        let trouble = Health::load(cx.root).troubles.remove(&TroubleKind::Waiting);
        let mut failed = journal.failed()?;
        failed.sort();
        Ok(Queue {
            waiting: ids.into_iter().map(waits).collect(),
            claimed: claimed.map(|ids| ids.len()).sum(),
            trouble: trouble.map(|trouble| Trouble { why: cx.cleaned(&trouble.why), ..trouble }),
            has_command: cx.config.llm.command.is_some(),
            failed: failed.into_iter().map(fails).collect(),
        })
    }
}

fn targets(cx: &CheckContext) -> Vec<TargetUse> {
    let of = |aim: &Aim| {
        let path = aim.target.path.clone();
        let exists = reach::within(&path, Path::exists).unwrap_or(true);
        TargetUse { readers: readers(&path, cx.env), repo: aim.target.repo.clone(), exists, path }
    };
    cx.aims.iter().map(of).collect()
}

/// Who reads this file: those of whose own it is one, else those that look for its name in a repository.
fn readers(path: &Path, env: &Env) -> Vec<&'static str> {
    let here = || HARNESSES.iter().filter(|spec| spec.is_here(env));
    let is_own = |home: PathBuf, spec: &&&Spec| spec.reads.is_own(path, &home, env);
    let own: Vec<_> =
        here().filter(|spec| spec.home.dir(env).is_some_and(|home| is_own(home, spec))).collect();
    let all = if own.is_empty() { here().filter(|spec| spec.reads.is_project(path)).collect() } else { own };
    all.into_iter().map(|spec| spec.title).collect()
}

/// The sessions whose changes wait, the dangerous ones first, in the order of their first changes.
fn sessions(cx: &CheckContext) -> Vec<WaitingSession> {
    let mut sessions: Vec<(Option<(&str, &str)>, WaitingSession)> = Vec::new();
    for proposal in &cx.waiting {
        let key = session_of(proposal);
        let dangerous = usize::from(!dangers_of(proposal).is_empty());
        if let Some((_, known)) = sessions.iter_mut().find(|(other, _)| *other == key) {
            known.changes += 1;
            known.dangerous += dangerous;
            continue;
        }
        let Source { harness, thread_id, repo, at, .. } = proposal.session.clone().unwrap_or_default();
        let at = at.and_then(|at| at.parse().ok());
        let title = cx.cleaned(proposal.title());
        sessions.push((key, WaitingSession { harness, thread_id, repo, at, changes: 1, dangerous, title }));
    }
    sessions.sort_by_key(|(_, session)| session.dangerous == 0);
    sessions.into_iter().map(|(_, session)| session).collect()
}
