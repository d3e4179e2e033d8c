//! The whole of a sync: commit, fetch, merge, push, and again where another machine was quicker.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file::{self, RunLock};
use crate::base::repository::git_dir;
use crate::base::text::one_line;
use crate::memory::redact::Redactor;
use crate::memory::sync::objects::{self, Commits};
use crate::memory::sync::remote::{self, Push, Remote, Unsynced};
use crate::memory::sync::removals::{self, Missing, Notes};
use crate::memory::sync::secrets::{self, Secrets};
use crate::memory::sync::shared::{self, Received};
use crate::memory::sync::side::{Files, Sides, note_id};
use crate::memory::sync::tree::{self, MergedTree};
use crate::memory::sync::unique_paths::unique;
use crate::memory::sync::version;
use crate::store::apply::{self, BegunChange, Merge};
use crate::store::change::Change;
use crate::store::entry::EntryId;
use crate::store::git::{Git, NO_TEMPORARY_FILES, unusable};
use crate::store::history::{self, Commit, DIRS, history_lock};
use crate::store::persistence::Persistence;
use crate::store::place::Root;
use crate::store::proposal::{self, ProposalId};
use crate::store::revision::{Revision, Version};
use crate::store::topics::Topics;
use crate::store::version::VERSION;
use crate::store::{merge_commit, merge_driver, removed};
use jiff::Timestamp;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Attempts, because another machine may push, or a note may change, meanwhile.
const TRIES: usize = 8;
/// What is synced.
const SYNCED: [&str; DIRS.len() + 2] = [DIRS[0], DIRS[1], DIRS[2], DIRS[3], ".gitignore", version::PATH];
/// How long the git commands between two transfers may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// What git's own merge had come to, if a person began one; and the largest file of it that is kept, in bytes.
const UNFINISHED: &str = "unfinished-merge";
const KEPT_CAP: u64 = 32 << 20;

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

/// Why an attempt has to be made again, and what to do if it never succeeds.
struct Again {
    why: String,
    hint: &'static str,
}

/// Somebody else was quicker.
fn overtaken(why: impl Into<String>) -> Option<Again> {
    Some(Again { why: why.into(), hint: "run memory-sync again" })
}

/// The commits of this store that follow what was taken from a shared remote: their second parent is what that was given.
const EXCHANGE: &str = "sync: take from a shared remote";

const NEW_COMMIT: &str = "the store has got another commit meanwhile";

pub fn sync(request: &SyncRequest) -> Result<SyncOutcome> {
    let root = request.root;
    if request.address.is_none() && !root.path().join(".git").exists() {
        return Ok(SyncOutcome::NoRemote);
    }
    root.make()?;
    let _lock = match file::hold(&remote::lock_path(root), &remote::holder())? {
        RunLock::Acquired(file) => file,
        RunLock::HeldBy(who) => return Ok(SyncOutcome::Busy(who)),
    };
    let git = Git::new(root, request.env)?.with(TIMEOUT, Vec::new()).with_identity()?;
    let configured = match git_dir(root.path()) {
        Some(_) => remote::configured(&git)?,
        None => None,
    };
    let Some(address) = request.address.clone().or_else(|| configured.clone()) else {
        return Ok(SyncOutcome::NoRemote);
    };
    {
        let _lock = file::lock_for_change(&history_lock(root), true)?;
        history::make_repository(root, &git)?;
        merge_driver::install(root, &git)?;
        merge_commit::finish(root, &git)?;
        apply::clear_stage(root)?;
        if !request.is_dry {
            version::put(root.path())?;
        }
    }
    let local = git.maybe_line(&["symbolic-ref", "--quiet", "--short", "HEAD"])?.ok_or_else(|| {
        Error::conflict("the store's repository is on no branch").hint("git switch main, in the store")
    })?;
    let remote = Remote::at(&address, root, request.env);
    let is_new = configured.as_deref() != Some(&address);
    let known = if is_new { None } else { remote::is_own(&git)? };
    let mut run = SyncRun {
        is_own: request.is_own.or(known).unwrap_or(false),
        offer: None,
        report: SyncReport { remote: remote.shown.clone(), dry_run: request.is_dry, ..SyncReport::default() },
        request,
        git: &git,
        commits: Commits::of(&git),
        remote: &remote,
        local: &local,
        is_new,
        merged_bases: RefCell::default(),
    };
    run.settle_trust(known)?;
    match run.try_often(&address) {
        Err(Unsynced::Unreachable(why)) if run.is_new => {
            Err(Error::io(format!("\"{}\" cannot be reached: git {why}", remote.shown))
                .hint("it is not set up; run the same again when it can be reached"))
        }
        Err(Unsynced::Unreachable(why)) => {
            let last = remote::last_exchange(root);
            let unreachable = Some(why);
            Ok(SyncOutcome::Done(SyncReport { unreachable, last_exchange: last, ..run.report }))
        }
        Err(Unsynced::Failed(why)) => Err(why),
        Ok(()) => {
            if !request.is_dry {
                remote::note_exchange(root, request.env.now());
            }
            Ok(SyncOutcome::Done(run.report))
        }
    }
}

struct SyncRun<'a> {
    report: SyncReport,
    request: &'a SyncRequest<'a>,
    git: &'a Git,
    commits: Commits<'a>,
    remote: &'a Remote<'a>,
    /// The branch of this store.
    local: &'a str,
    /// Nobody else can write to the remote.
    is_own: bool,
    /// What the remote is to have.
    offer: Option<String>,
    /// The store does not know this remote yet.
    is_new: bool,
    /// The commits that several bases were merged into.
    merged_bases: RefCell<BTreeMap<Vec<String>, String>>,
}

/// A merge that was computed.
struct Computed {
    merged: MergedTree,
    /// What it changes here: a note that gets another path is renamed.
    revisions: Vec<Revision>,
    /// What it changes there.
    sent: BTreeSet<String>,
}

impl SyncRun<'_> {
    fn try_often(&mut self, address: &str) -> Result<(), Unsynced> {
        let upstream = if self.is_new { None } else { remote::upstream(self.git, self.local)? };
        let branch = upstream.map_or_else(|| self.branch(), Ok)?;
        let mut last = Again { why: String::new(), hint: "" };
        for _ in 0..TRIES {
            let theirs = self.remote.fetch(self.git, &branch)?;
            if let Some(theirs) = &theirs {
                // Before anything of it is believed.
                let listing = self.commits.listing_of(theirs, &self.shown())?;
                version::check(&self.commits, &listing, &self.shown())?;
            }
            if self.is_new && !self.request.is_dry {
                remote::set_up(self.git, address, self.local, &branch)?;
                self.keep_trust()?;
                self.is_new = false;
            }
            match self.attempt(theirs.as_deref(), &branch)? {
                None => return Ok(()),
                Some(again) => last = again,
            }
        }
        Err(Error::busy(format!("{}, {TRIES} times in a row", last.why)).hint(last.hint).into())
    }

    /// The branch of the remote to use: the first that has notes, wherever they are, so that two machines meet. An empty
    /// remote gets one of the local name.
    ///
    /// # Errors
    /// `Refused`: the remote has something else.
    fn branch(&self) -> Result<String, Unsynced> {
        let branches = self.remote.branches(self.local)?;
        let mut others = None;
        for branch in &branches {
            let Some(theirs) = self.remote.fetch(self.git, branch)? else { continue };
            let listing = self.commits.listing_of(&theirs, &self.shown())?;
            if version::is_store(&self.commits, &listing)? {
                return Ok(branch.clone());
            }
            others = others.or(Some(listing));
        }
        let Some(listing) = others else { return Ok(self.local.to_owned()) };
        let names: BTreeSet<&str> =
            listing.keys().map(|path| path.split('/').next().unwrap_or(path)).collect();
        let names: Vec<String> =
            names.into_iter().take(3).map(|name| format!("\"{}\"", one_line(name, 60))).collect();
        let what = if names.is_empty() { "other commits".to_owned() } else { names.join(", ") };
        let why = format!("{} is neither empty nor a store of notes: it has {what}", self.shown());
        Err(Error::refused(why).hint("nothing was sent; use an empty repository, without a README").into())
    }

    /// Who can write to the remote is said once, if nobody has said it. `known`: it was kept.
    fn settle_trust(&mut self, known: Option<bool>) -> Result<()> {
        if self.request.is_own.or(known).is_none() {
            self.report.notices.push(format!(
                "\"{}\" counts as shared: what others change there of your own notes waits for memory-review; if \
                 nobody else can write to it, run: memory-sync --trust own",
                self.remote.shown
            ));
        }
        // A new remote is set up first.
        let is_due = !self.is_new && !self.request.is_dry && known != Some(self.is_own);
        if is_due { self.keep_trust() } else { Ok(()) }
    }

    /// Where nobody else can write, nothing that came from there waits any longer: the merge takes it.
    fn keep_trust(&self) -> Result<()> {
        if self.is_own {
            let notes = Topics::at(self.request.root);
            let change = Change::of(&notes)?;
            let (waiting, _) = change.notes.proposals()?;
            waiting
                .iter()
                .filter(|it| it.remote() == Some(&*self.remote.shown))
                .for_each(|it| change.withdraw(&it.id));
            change.write()?;
        }
        remote::set_own(self.git, self.is_own)
    }

    fn shown(&self) -> String {
        format!("\"{}\"", self.remote.shown)
    }

    fn head(&self) -> Result<Option<String>> {
        self.git.maybe_object(&["rev-parse", "--verify", "--quiet", "HEAD"])
    }

    fn attempt(&mut self, theirs: Option<&str>, branch: &str) -> Result<Option<Again>, Unsynced> {
        if self.request.is_dry {
            self.preview(theirs)?;
            return Ok(None);
        }
        if let Some(begun) = self.begun_by_hand()?
            && let Some(again) = self.commit_and_take_in(Some(&begun))?
        {
            return Ok(Some(again));
        }
        if let Some(again) = self.commit_and_take_in(theirs)? {
            return Ok(Some(again));
        }
        let ours = if self.is_own { self.head()? } else { self.offer.take() };
        let Some(ours) = ours.filter(|ours| theirs != Some(ours)) else { return Ok(None) };
        let (listing, theirs_listed) = (self.commits.listing(Some(&ours))?, self.commits.listing(theirs)?);
        let published = theirs.map(|theirs| (theirs, &*theirs_listed));
        let found = secrets::search(self.git, (&ours, &listing), published, self.request.redactor)?;
        self.report.secrets.clone_from(&found.files);
        let pushed = match found {
            Secrets { files, .. } if !files.is_empty() => return Ok(None),
            Secrets { in_the_past: true, .. } if self.is_own => match self.squash(&ours, theirs)? {
                Some(squashed) => squashed,
                None => return Ok(overtaken(NEW_COMMIT)),
            },
            Secrets { .. } => ours,
        };
        match self.remote.push(&pushed, branch)? {
            Push::Accepted => {
                self.report.sent = differing(&theirs_listed, &listing);
                let tracking = format!("refs/remotes/origin/{branch}");
                self.git.run(&["update-ref", &tracking, &pushed])?;
                Ok(None)
            }
            Push::Overtaken => Ok(overtaken("another machine was quicker")),
            Push::Locked(lock) => Ok(Some(Again {
                why: format!("git's lock \"{lock}\" is in the way"),
                hint: "if no git is running there, remove it, then run memory-sync again",
            })),
        }
    }

    /// Commits what this machine has changed, then merges a commit, if there is one.
    fn commit_and_take_in(&mut self, theirs: Option<&str>) -> Result<Option<Again>> {
        // Before what this machine has lost is committed.
        let kept = theirs.map_or(Ok(Notes::new()), |theirs| self.given_back(theirs))?;
        {
            let _history = file::lock_for_change(&history_lock(self.request.root), true)?;
            self.commit()?;
        }
        match theirs {
            _ if !self.is_own => self.exchange(theirs, &kept),
            Some(theirs) => self.take_in(theirs, &kept),
            None => Ok(None),
        }
    }

    /// The commit of a `git pull` that git could not finish, taken back so that it can be merged by note.
    fn begun_by_hand(&mut self) -> Result<Option<String>> {
        let dir = self.git.line(&["rev-parse", "--absolute-git-dir"])?;
        if ["rebase-merge", "rebase-apply"].iter().any(|name| Path::new(&dir).join(name).exists()) {
            return Err(Error::conflict("a rebase is in progress in the store")
                .hint("git rebase --abort there, then run memory-sync again"));
        }
        let Some(theirs) = self.git.maybe_object(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD"])? else {
            return Ok(None);
        };
        self.commits.listing_of(&theirs, "the commit that is being merged")?;
        self.given_back(&theirs)?;
        let _history = file::lock_for_change(&history_lock(self.request.root), true)?;
        self.keep_what_was_merged_by_hand(&theirs)?;
        self.git.run(&["merge", "--abort"]).map_err(|why| {
            Error::conflict(format!(
                "a merge is in progress in the store, and cannot be taken back: {}",
                why.message()
            ))
            .hint("finish it there by hand: git add the files, then git commit")
        })?;
        Ok(Some(theirs))
    }

    /// Taking a merge back undoes what a person has resolved so far. Files that are neither ours nor theirs are kept where
    /// that person finds them.
    fn keep_what_was_merged_by_hand(&mut self, theirs: &str) -> Result<()> {
        let root = self.request.root;
        let dir = root.state().join(UNFINISHED);
        let mut is_kept = false;
        let status = self.git.status(&["."])?;
        let changed = status.into_iter().filter(|(letters, _)| !matches!(letters, b"??" | b"!!"));
        let changed = changed.map(|(_, path)| String::from_utf8_lossy(&path).into_owned()).collect();
        let [theirs] = self.commits.files([&*self.commits.listing(Some(theirs))?], &changed)?;
        for path in &changed {
            let Ok(bytes) = file::read(&root.path().join(path), KEPT_CAP) else { continue };
            if theirs.get(path) == Some(&bytes) {
                continue;
            }
            let copy = dir.join(path);
            copy.parent().map_or(Ok(()), file::make_private_dir)?;
            file::install(&copy, &bytes, 0o600)?;
            is_kept = true;
        }
        if is_kept {
            self.report.notices.push(format!(
                "git's unfinished merge was taken back and done by note; how far it was is in \"{}\"",
                dir.display()
            ));
        }
        Ok(())
    }

    /// Commits what this machine has changed. The caller holds the history's lock.
    fn commit(&self) -> Result<()> {
        let SyncRequest { root, env, commit_hook, .. } = self.request;
        // Two machines of one person that change the same in the same second would make the same commit.
        let message = format!("sync: changes of this machine ({})", file::random58(6)?);
        let commit =
            Commit { hook: commit_hook, message, body: Vec::new(), thread_ids: Vec::new(), count: 1 };
        history::commit_locked(root, &commit, Git::new(root, env)?, &SYNCED)
            .map_err(|why| why.context("what this machine has changed cannot be committed"))
    }

    /// Merges a commit into the store. Others wait only while what has been prepared is put in its place.
    fn take_in(&mut self, theirs: &str, kept: &Notes) -> Result<Option<Again>> {
        let ours = self.head()?;
        if ours.as_deref() == Some(theirs) {
            return Ok(None);
        }
        let Some(computed) = self.compute(ours.as_deref(), ours.as_deref(), theirs, kept)? else {
            return Ok(None);
        };
        let Computed { merged, revisions, sent } = computed;
        let commit = match &ours {
            Some(ours) if !sent.is_empty() || !self.is_ancestor(ours, theirs)? => {
                let parents = [Some(ours.as_str()), Some(theirs)];
                objects::commit(self.git, parents, &revisions, "sync: merge another machine")?
            }
            // It is just what the other side has.
            _ => theirs.to_owned(),
        };
        self.put(ours, revisions, merged, commit)
    }

    /// Puts a merge in its place, for which `commit` was made.
    fn put(
        &mut self,
        ours: Option<String>,
        revisions: Vec<Revision>,
        merged: MergedTree,
        commit: String,
    ) -> Result<Option<Again>> {
        let root = self.request.root;
        let begun = BegunChange {
            version: VERSION,
            revisions,
            merge: Some(Merge { ours: ours.clone(), merged: commit }),
        };
        apply::stage(root, &begun)?;
        let _history = file::lock_for_change(&history_lock(root), true)?;
        if self.head()? != ours {
            return Ok(overtaken(NEW_COMMIT));
        }
        {
            let _store = Topics::at(root).lock()?;
            if let Some(path) = apply::overtaken(root, &begun.revisions)? {
                let path = path.display();
                return Ok(overtaken(format!(
                    "\"{path}\" has changed meanwhile, or is in the way and not in the store's history"
                )));
            }
            apply::unstage(root, &begun)?;
        }
        merge_commit::finish(root, self.git)?;
        apply::clear_stage(root)?;
        self.tell(&begun.revisions, merged);
        Ok(None)
    }

    /// Takes from a shared remote what is believed of it, and makes what it is to have: one commit on what it has, without a
    /// past of this store. The two states differ, and each gets only what the other has changed since they last met.
    fn exchange(&mut self, theirs: Option<&str>, kept: &Notes) -> Result<Option<Again>> {
        let Some(ours) = self.head()? else {
            return Err(Error::conflict("the store's repository has no commit").hint("run memory-sync again"));
        };
        let last = self.last_exchange(Some(&ours), theirs)?;
        let (Computed { merged, revisions, .. }, offer) = self.compute_shared(&last, &ours, theirs, kept)?;
        let offer = self.on_top_of(theirs, last[1].as_deref(), offer)?;
        self.offer = Some(offer.clone());
        if revisions.is_empty() && last[1].as_ref() == Some(&offer) {
            return Ok(None);
        }
        let commit = objects::commit(self.git, [Some(&ours), Some(&offer)], &revisions, EXCHANGE)?;
        self.put(Some(ours), revisions, merged, commit)
    }

    /// A state of the remote's, as one commit on what it has.
    fn on_top_of(&self, theirs: Option<&str>, last: Option<&str>, state: String) -> Result<String> {
        if [theirs, last].contains(&Some(&state)) {
            return Ok(state);
        }
        let message = format!("sync: changes of a machine ({})", file::random58(6)?);
        self.commit_of(&state, &message, theirs)
    }

    /// A commit of the files that `state` has, with these parents.
    fn commit_of<'p>(
        &self,
        state: &str,
        message: &str,
        parents: impl IntoIterator<Item = &'p str>,
    ) -> Result<String> {
        let tree = format!("{state}^{{tree}}");
        let mut arguments = vec!["commit-tree", &tree, "-m", message];
        arguments.extend(parents.into_iter().flat_map(|parent| ["-p", parent]));
        self.git.object(&arguments)
    }

    /// The last state of this store, and of the remote, that the two have in common: as they met, one is not the other if
    /// the remote is shared.
    fn last_exchange(&self, ours: Option<&str>, theirs: Option<&str>) -> Result<[Option<String>; 2]> {
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return Ok([None, None]) };
        // The last line is about `ours`, so that a part of the answer is not taken for all.
        let arguments = ["log", "--first-parent", "--reverse", "--format=%H %P%x09%s", ours];
        let lines = self.git.lines(&arguments)?;
        if !lines.last().is_some_and(|line| line.starts_with(ours)) {
            return Err(unusable(&arguments));
        }
        let subjects = lines.iter().rev().filter_map(|line| line.split_once('\t'));
        for (commits, _) in subjects.filter(|(_, subject)| *subject == EXCHANGE) {
            let [commit, _, there] = commits.split_whitespace().collect::<Vec<_>>()[..] else { continue };
            let common = self.commits.bases(Some(there), Some(theirs))?;
            // Where all of this store was sent, or another merge came after it, that counts.
            let has_met_since = || Ok::<_, Error>(self.commits.bases(Some(ours), Some(theirs))? != common);
            if self.is_ancestor(commit, theirs)? || self.is_own && has_met_since()? {
                break;
            }
            if !common.is_empty() {
                return Ok([Some(commit.to_owned()), Some(there.to_owned())]);
            }
        }
        let base = self.base(Some(ours), theirs)?;
        Ok([base.clone(), base])
    }

    /// What this store becomes, as the files of `tree`, and a commit of what the remote becomes.
    fn compute_shared(
        &self,
        last: &[Option<String>; 2],
        tree: &str,
        theirs: Option<&str>,
        kept: &Notes,
    ) -> Result<(Computed, String)> {
        let [here, there] = last;
        let now = match (there, theirs) {
            (Some(there), Some(theirs)) => Some(self.both(there, theirs)?),
            _ => theirs.map(str::to_owned),
        };
        let commits = [here.as_deref(), there.as_deref(), Some(tree), now.as_deref()];
        let [base, before, ours, theirs] = commits.map(|commit| self.commits.listing(commit));
        let (base, before, ours, theirs) = (base?, before?, ours?, theirs?);
        let mut changed = &differing(&base, &ours) | &differing(&base, &theirs);
        changed.extend(differing(&before, &theirs));
        // A note is known by its id, whatever its file is called.
        let touched = theirs.iter().filter(|(path, _)| changed.contains(*path));
        let touched = touched.map(|(path, oid)| (path.clone(), oid.clone())).collect();
        let [touched, here] = [&touched, &*ours].map(|listing| removals::in_listing(&self.commits, listing));
        let touched = touched?;
        changed.extend(here?.into_iter().filter(|(id, _)| touched.contains_key(id)).map(|(_, path)| path));
        // All that wait are looked at, and none leaves this machine.
        changed.extend(ours.keys().filter(|path| is_proposal(path)).cloned());
        let rest: BTreeSet<String> = ours.keys().filter(|path| !changed.contains(*path)).cloned().collect();
        let files = self.commits.files([&base, &before, &ours, &theirs], &changed)?;
        let [mut base, mut before, ours_files, now_files] = files;
        let returned = removals::taken(&mut base, kept)?;
        removals::taken(&mut before, kept)?;
        let [base, one, two] = [&base, &ours_files, &now_files].map(without_proposals);
        let mut merged = tree::merge(Sides { base: &base, one: &one, two: &two, rest: &rest });
        removals::put_missing(&mut merged.files, returned.clone())?;
        let offered = without_proposals(&merged.files);
        let received =
            Received { before: &before, now: &now_files, merged: &merged.files, name: &self.remote.shown };
        let (mut believed, conflicts) = shared::believed(&ours_files, &received, &rest);
        removals::put_missing(&mut believed, returned)?;
        let given = revisions(&two, &offered);
        let offer = match &now {
            Some(now) if given.is_empty() => now.clone(),
            _ => objects::commit(self.git, [now.as_deref(), None], &given, "sync: to a shared remote")?,
        };
        let revisions = revisions(&ours_files, &believed);
        let merged = MergedTree { files: believed, said: merged.said, conflicts };
        Ok((Computed { merged, revisions, sent: differing(&two, &offered) }, offer))
    }

    /// What the remote was to have and what it has, as one state.
    fn both(&self, offered: &str, theirs: &str) -> Result<String> {
        if self.is_ancestor(offered, theirs)? {
            return Ok(theirs.to_owned());
        }
        let base = self.base(Some(offered), theirs)?;
        if base.as_deref() == Some(theirs) {
            return Ok(offered.to_owned());
        }
        let commits = [base.as_deref(), Some(offered), Some(theirs)];
        let Computed { revisions, .. } = self.merge(commits, &Notes::new(), false)?;
        objects::commit(self.git, [Some(offered), Some(theirs)], &revisions, "sync: what a remote is to have")
    }

    fn tell(&mut self, revisions: &[Revision], merged: MergedTree) {
        self.report.received.extend(paths(revisions));
        self.report.conflicts.extend(merged.conflicts);
        self.report.notices.extend(merged.said);
    }

    fn is_ancestor(&self, ours: &str, theirs: &str) -> Result<bool> {
        self.git.says_yes(&["merge-base", "--is-ancestor", ours, theirs])
    }

    /// The notes that are to be given back to a side that has lost them, and many with them.
    ///
    /// # Errors
    /// There are such notes, and nobody has said what is to become of them.
    fn given_back(&self, theirs: &str) -> Result<Notes> {
        let SyncRequest { root, missing, is_dry, .. } = *self.request;
        let [Some(base), Some(given)] = self.last_exchange(self.head()?.as_deref(), Some(theirs))? else {
            return Ok(Notes::new());
        };
        let notes = |commit: &str| removals::in_listing(&self.commits, &*self.commits.listing(Some(commit))?);
        // What a shared remote was to have and has never got, it has not lost.
        let had = if given == base { None } else { self.base(Some(&given), theirs)? };
        let base = notes(&base)?;
        let had = had.map_or_else(|| Ok(base.clone()), |had| notes(&had))?;
        let theirs = self.commits.listing(Some(theirs))?;
        let there = removals::in_listing(&self.commits, &theirs)?;
        let named = removals::named(&self.commits, &theirs)?;
        // A note that somebody renames at this moment is not gone.
        let _store = if is_dry { None } else { Some(Topics::at(root).lock()?) };
        let named = &named | &removed::of(root)?;
        let here = removals::lost(&base, &removals::on_disk(root)?, &named);
        let there = removals::lost(&had, &there, &named);
        if missing == Some(Missing::Keep) {
            return Ok(here.into_iter().chain(there).collect());
        }
        // A few that a person has deleted here have a name from now on, too, or many times a few would be many for a machine
        // that was away.
        let mut gone: BTreeSet<EntryId> = here.keys().cloned().collect();
        let places =
            [("on this machine".to_owned(), here, &base), (format!("in {}", self.shown()), there, &had)];
        let many = places.into_iter().filter(|(_, lost, all)| removals::are_many(lost, all));
        let many: Vec<_> = many.map(|(place, lost, _)| (lost, place)).collect();
        if !many.is_empty() && missing.is_none() {
            return Err(removals::refused(&many, &base));
        }
        gone.extend(many.iter().flat_map(|(lost, _)| lost.keys().cloned()));
        if !is_dry {
            removed::add(root, gone.iter())?;
        }
        Ok(Notes::new())
    }

    /// The last state that two commits have in common, as a commit.
    fn base(&self, ours: Option<&str>, theirs: &str) -> Result<Option<String>> {
        let bases = self.commits.bases(ours, Some(theirs))?;
        let [first, second, ..] = &bases[..] else { return Ok(bases.into_iter().next()) };
        if let Some(merged) = self.merged_bases.borrow().get(&bases) {
            return Ok(Some(merged.clone()));
        }
        // Where machines have merged crosswise, what they have in common is merged first.
        let before = self.base(Some(first), second)?;
        let commits = [before.as_deref(), Some(first), Some(second)];
        let Computed { revisions, .. } = self.merge(commits, &Notes::new(), false)?;
        let merged = objects::commit(
            self.git,
            [Some(first), Some(second)],
            &revisions,
            "sync: what two machines have in common",
        )?;
        self.merged_bases.borrow_mut().insert(bases.clone(), merged.clone());
        Ok(Some(merged))
    }

    /// Merges a commit with what we have: `tree`, which follows the commit `ours`. `None` if we have all that it has. `kept`
    /// comes back though a side, or both, have it no more.
    fn compute(
        &self,
        ours: Option<&str>,
        tree: Option<&str>,
        theirs: &str,
        kept: &Notes,
    ) -> Result<Option<Computed>> {
        let [base, _] = self.last_exchange(ours, Some(theirs))?;
        if base.as_deref() == Some(theirs) && kept.is_empty() {
            return Ok(None);
        }
        self.merge([base.as_deref(), tree, Some(theirs)], kept, base.as_deref() == ours).map(Some)
    }

    /// Merges what became of the first of three commits. `is_past`: the second has it all, if it has changed nothing.
    fn merge(&self, commits: [Option<&str>; 3], kept: &Notes, is_past: bool) -> Result<Computed> {
        let [before, one, two] = commits.map(|commit| self.commits.listing(commit));
        let (before, one, two) = (before?, one?, two?);
        let changed = &differing(&before, &one) | &differing(&before, &two);
        let rest: BTreeSet<String> = one.keys().filter(|path| !changed.contains(*path)).cloned().collect();
        let [mut base, one, two] = self.commits.files([&before, &one, &two], &changed)?;
        // What is given back is new to the side that lacks it.
        let returned = removals::taken(&mut base, kept)?;
        let mut merged = match is_past && base == one {
            true => MergedTree { files: unique(two.clone(), &rest), ..MergedTree::default() },
            false => tree::merge(Sides { base: &base, one: &one, two: &two, rest: &rest }),
        };
        removals::put_missing(&mut merged.files, returned)?;
        let (revisions, sent) = (revisions(&one, &merged.files), differing(&two, &merged.files));
        Ok(Computed { revisions, sent, merged })
    }

    /// Makes one commit of all that was never published, without their past. `None` if there is another one by now.
    fn squash(&mut self, ours: &str, theirs: Option<&str>) -> Result<Option<String>> {
        let bases = self.commits.bases(Some(ours), theirs)?;
        let bases = bases.iter().map(String::as_str);
        let squashed = self.commit_of(ours, "sync: changes of this machine", bases)?;
        let _history = file::lock_for_change(&history_lock(self.request.root), true)?;
        let message = "memory-sync: without a secret in the past";
        let branch = format!("refs/heads/{}", self.local);
        if self.git.run(&["update-ref", "-m", message, &branch, &squashed, ours]).is_err() {
            return Ok(None);
        }
        self.report.squashed = true;
        Ok(Some(squashed))
    }

    /// What an attempt would do. No branch and no file changes.
    fn preview(&mut self, theirs: Option<&str>) -> Result<()> {
        let ours = self.head()?;
        let tree = self.tree_of_files(ours.as_deref())?;
        let kept = theirs.map_or(Ok(Notes::new()), |theirs| self.given_back(theirs))?;
        let computed = match theirs {
            _ if !self.is_own => {
                let last = self.last_exchange(ours.as_deref(), theirs)?;
                Some(self.compute_shared(&last, &tree, theirs, &kept)?.0)
            }
            Some(theirs) => self.compute(ours.as_deref(), Some(&tree), theirs, &kept)?,
            None => None,
        };
        match computed {
            Some(Computed { merged, revisions, sent }) => {
                self.report.sent = sent;
                self.tell(&revisions, merged);
            }
            None => {
                let (listing, theirs) = (self.commits.listing(Some(&tree))?, self.commits.listing(theirs)?);
                self.report.sent = differing(&theirs, &listing);
            }
        }
        Ok(())
    }

    /// The files as they are, as a tree; git's index stays as it is.
    fn tree_of_files(&self, ours: Option<&str>) -> Result<String> {
        let root = self.request.root;
        let index = root.state().join("sync-index");
        file::if_exists(file::remove(&index))?;
        let git = Git::new(root, self.request.env)?
            .with(TIMEOUT, vec![("GIT_INDEX_FILE", index.clone().into_os_string())]);
        let made = || -> Result<String> {
            git.run(&["read-tree", ours.unwrap_or("--empty")])?;
            let changed = history::changed(&git, &SYNCED)?;
            if !changed.is_empty() {
                git.run(&[&history::ADD, &changed[..], &NO_TEMPORARY_FILES].concat())?;
            }
            git.object(&["write-tree"])
        };
        let tree = made();
        file::if_exists(file::remove(&index))?;
        tree
    }
}

fn is_proposal(path: &str) -> bool {
    path.split_once('/').is_some_and(|(dir, _)| dir == proposal::DIR)
}

fn without_proposals(files: &Files) -> Files {
    let others = files.iter().filter(|(path, _)| !is_proposal(path));
    others.map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
}

/// What becomes of each file. A note that gets another path is renamed, so it never has two; removals come last, so a text
/// that moves is never nowhere.
fn revisions(before: &Files, after: &Files) -> Vec<Revision> {
    let version = |files: &Files, path: &String| {
        files.get(path).map(|bytes| Version::at(Path::new(path), bytes.clone()))
    };
    let id = |files: &Files, path: &String| note_id(path, files.get(path)?);
    let (new, mut gone): (Vec<String>, Vec<String>) =
        differing(before, after).into_iter().partition(|path| after.contains_key(path));
    let mut left: BTreeMap<EntryId, String> =
        gone.iter().filter_map(|path| Some((id(before, path)?, path.clone()))).collect();
    let mut revisions = Vec::new();
    for path in &new {
        let is_new = !before.contains_key(path);
        let old = id(after, path).filter(|_| is_new).and_then(|id| left.remove(&id));
        gone.retain(|path| Some(path) != old.as_ref());
        let before = version(before, old.as_ref().unwrap_or(path));
        revisions.push(Revision { before, after: version(after, path) });
    }
    revisions.extend(gone.iter().map(|path| Revision { before: version(before, path), after: None }));
    revisions
}

fn paths(revisions: &[Revision]) -> BTreeSet<String> {
    let versions = revisions.iter().flat_map(Revision::versions);
    versions.map(|version| version.path().to_string_lossy().into_owned()).collect()
}

/// The paths at which two sets of files differ.
fn differing<T: PartialEq>(one: &BTreeMap<String, T>, two: &BTreeMap<String, T>) -> BTreeSet<String> {
    let paths = one.keys().chain(two.keys());
    paths.filter(|path| one.get(*path) != two.get(*path)).cloned().collect()
}
