//! The whole of a sync: commit, fetch, merge, push, and again where another machine was quicker.

use crate::base::error::{Error, Result};
use crate::base::file::{self, RunLock};
use crate::base::repository::git_dir;
use crate::memory::sync::copies::{self, TakenIn};
use crate::memory::sync::merger::{Computed, EXCHANGE, Merger, differing, paths};
use crate::memory::sync::objects::{self, Commits};
use crate::memory::sync::remote::{self, Remote, Unsynced};
use crate::memory::sync::removals::Notes;
use crate::memory::sync::request::{SyncOutcome, SyncReport, SyncRequest};
use crate::memory::sync::secrets::{self, Secrets};
use crate::memory::sync::tree::MergedTree;
use crate::memory::sync::unfinished;
use crate::memory::sync::version;
use crate::store::apply::{self, BegunChange, Merge};
use crate::store::change::Change;
use crate::store::git::Git;
use crate::store::health::Health;
use crate::store::history::{self, Commit, lock_history};
use crate::store::persistence::Persistence;
use crate::store::revision::Revision;
use crate::store::topics::Topics;
use crate::store::version::VERSION;
use crate::store::{self, merge_commit, merge_driver};
use std::cell::RefCell;

/// Attempts, because another machine may push, or a note may change, meanwhile.
const TRIES: usize = 8;
const NEW_COMMIT: &str = "the store has got another commit meanwhile";

pub fn sync(request: &SyncRequest) -> Result<SyncOutcome> {
    let root = request.root;
    if request.address.is_none() && !root.path().join(".git").exists() {
        return Ok(SyncOutcome::NoRemote);
    }
    root.make()?;
    let _lock = match remote::hold(root)? {
        RunLock::Acquired(file) => file,
        RunLock::HeldBy(who) => return Ok(SyncOutcome::Busy(who)),
    };
    let git = Git::new(root, request.env)?.with(objects::TIMEOUT, Vec::new()).with_identity()?;
    let configured = match git_dir(root.path()) {
        Some(_) => remote::configured(&git)?,
        None => None,
    };
    let Some(address) = request.address.as_ref().or(configured.as_ref()) else {
        return Ok(SyncOutcome::NoRemote);
    };
    prepare(request, &git)?;
    let local = git.maybe_line(&["symbolic-ref", "--quiet", "--short", "HEAD"])?.ok_or_else(|| {
        Error::conflict("the store's repository is on no branch").hint("git switch main, in the store")
    })?;
    let remote = Remote::at(address, root, request.env);
    let is_new = configured.as_ref() != Some(address);
    let known = if is_new { None } else { remote::is_own(&git)? };
    let mut run = SyncRun {
        report: SyncReport { remote: remote.shown.clone(), dry_run: request.is_dry, ..SyncReport::default() },
        request,
        merger: Merger {
            git: &git,
            commits: Commits::of(&git),
            remote: &remote.shown,
            is_own: request.is_own.or(known).unwrap_or(false),
            merged_bases: RefCell::default(),
        },
        remote: &remote,
        local: &local,
        is_new,
    };
    run.settle_trust(known)?;
    run.take_in_copies();
    let ended = run.try_often();
    run.outcome(ended)
}

/// Makes the store a repository that is ready for a merge.
fn prepare(request: &SyncRequest, git: &Git) -> Result<()> {
    let root = request.root;
    let _lock = lock_history(root)?;
    history::make_repository(root, git)?;
    merge_driver::install(root, git)?;
    merge_commit::finish(root, git)?;
    apply::clear_stage(root)?;
    if request.is_dry { Ok(()) } else { store::version::put(root.path()) }
}

struct SyncRun<'a> {
    report: SyncReport,
    request: &'a SyncRequest<'a>,
    merger: Merger<'a>,
    remote: &'a Remote<'a>,
    /// The branch of this store.
    local: &'a str,
    /// The store does not know this remote yet.
    is_new: bool,
}

impl SyncRun<'_> {
    fn take_in_copies(&mut self) {
        if self.request.is_dry {
            return;
        }
        match copies::take_in(self.request.root, self.request.env) {
            Ok(TakenIn { merged, said }) => {
                self.report.notices.extend(said);
                self.report.received.extend(merged);
            }
            // The next run tries again.
            Err(why) => self.report.notices.push(why.line()),
        }
    }

    fn outcome(mut self, ended: Result<(), Unsynced>) -> Result<SyncOutcome> {
        let SyncRequest { root, env, is_dry, .. } = *self.request;
        match ended {
            Err(Unsynced::Unreachable(why)) if self.is_new => {
                return Err(Error::io(format!("{} cannot be reached: git {why}", self.remote.quoted()))
                    .hint("it is not set up; run the same again when it can be reached"));
            }
            Err(Unsynced::Unreachable(why)) => {
                self.report.unreachable = Some(why);
                self.report.last_exchange = Health::load(root).synced;
            }
            Err(Unsynced::Overtaken { why, hint }) => {
                return Err(Error::busy(format!("{why}, {TRIES} times in a row")).hint(hint));
            }
            Err(Unsynced::Failed(why)) => return Err(why),
            Ok(()) if is_dry => {}
            Ok(()) => Health::change(root, |health| health.synced = Some(env.now())),
        }
        Ok(SyncOutcome::Done(self.report))
    }

    fn try_often(&mut self) -> Result<(), Unsynced> {
        let upstream = if self.is_new { None } else { remote::upstream(self.merger.git, self.local)? };
        let commits = &self.merger.commits;
        let branch = upstream.map_or_else(|| version::branch(self.remote, self.local, commits), Ok)?;
        for _ in 1..TRIES {
            match self.attempt(&branch) {
                Err(Unsynced::Overtaken { .. }) => {}
                ended => return ended,
            }
        }
        self.attempt(&branch)
    }

    fn attempt(&mut self, branch: &str) -> Result<(), Unsynced> {
        let Merger { git, commits, .. } = &self.merger;
        let theirs = self.remote.fetch(git, branch)?;
        if let Some(theirs) = &theirs {
            // Before anything of it is believed.
            let whose = self.remote.quoted();
            version::check(commits, &*commits.listing_of(theirs, &whose)?, &whose)?;
        }
        let theirs = theirs.as_deref();
        if self.request.is_dry {
            return Ok(self.preview(theirs)?);
        }
        if self.is_new {
            remote::set_up(git, self.remote.address, self.local, branch)?;
            self.keep_trust()?;
            self.is_new = false;
        }
        if let Some(begun) = self.begun_by_hand()? {
            self.commit_and_take_in(Some(&begun))?;
        }
        match self.commit_and_take_in(theirs)? {
            Some(ours) if theirs != Some(&ours) => self.send(&ours, theirs, branch),
            _ => Ok(()),
        }
    }

    /// Gives the remote a commit of this store, on what it has, unless there is a secret in it.
    fn send(&mut self, ours: &str, theirs: Option<&str>, branch: &str) -> Result<(), Unsynced> {
        let git = self.merger.git;
        let (listing, there) =
            (self.merger.commits.listing(Some(ours))?, self.merger.commits.listing(theirs)?);
        let published = theirs.map(|theirs| (theirs, &*there));
        let Secrets { files, in_the_past } =
            secrets::search(git, (ours, &listing), published, self.request.redactor)?;
        self.report.secrets = files;
        if !self.report.secrets.is_empty() {
            return Ok(());
        }
        let pushed = match in_the_past && self.merger.is_own {
            true => self.squash(ours, theirs)?,
            false => ours.to_owned(),
        };
        self.remote.push(&pushed, branch)?;
        self.report.sent = differing(&there, &listing);
        git.run(&["update-ref", &format!("refs/remotes/origin/{branch}"), &pushed])?;
        Ok(())
    }

    /// Who can write to the remote is said once, if nobody has said it. `known`: it was kept.
    fn settle_trust(&mut self, known: Option<bool>) -> Result<()> {
        if self.request.is_own.or(known).is_none() {
            self.report.notices.push(format!(
                "{} counts as shared: what others change there of your own notes waits for memory-review; if \
                 nobody else can write to it, run: memory-sync --trust own",
                self.remote.quoted()
            ));
        }
        // A new remote is set up first.
        let is_due = !self.is_new && !self.request.is_dry && known != Some(self.merger.is_own);
        if is_due { self.keep_trust() } else { Ok(()) }
    }

    /// Where nobody else can write, nothing that came from there waits any longer: the merge takes it.
    fn keep_trust(&self) -> Result<()> {
        if self.merger.is_own {
            let notes = Topics::at(self.request.root);
            let change = Change::of(&notes)?;
            let (waiting, _) = change.notes.proposals()?;
            let from_there = waiting.iter().filter(|it| it.remote() == Some(&*self.remote.shown));
            from_there.for_each(|it| change.withdraw(&it.id));
            change.write()?;
        }
        remote::set_own(self.merger.git, self.merger.is_own)
    }

    fn given_back(&self, theirs: Option<&str>) -> Result<Notes> {
        let Some(theirs) = theirs else { return Ok(Notes::new()) };
        self.merger.given_back(self.request, self.head()?.as_deref(), theirs)
    }

    fn head(&self) -> Result<Option<String>> {
        self.merger.git.maybe_object(&["rev-parse", "--verify", "--quiet", "HEAD"])
    }

    /// The commit of a `git pull` that git could not finish, taken back so that it can be merged by note.
    fn begun_by_hand(&mut self) -> Result<Option<String>> {
        let Some(theirs) = unfinished::find(&self.merger.commits)? else { return Ok(None) };
        self.given_back(Some(&theirs))?;
        if let Some(dir) = unfinished::take_back(&theirs, &self.merger.commits, self.request.root)? {
            self.report.notices.push(format!(
                "git's unfinished merge was taken back and done by note; how far it was is in \"{}\"",
                dir.display()
            ));
        }
        Ok(Some(theirs))
    }

    /// Commits what this machine has changed, then merges a commit, if there is one. Returns what the remote is to have.
    fn commit_and_take_in(&mut self, theirs: Option<&str>) -> Result<Option<String>, Unsynced> {
        // Before what this machine has lost is committed.
        let kept = self.given_back(theirs)?;
        self.commit()?;
        if !self.merger.is_own {
            return self.exchange(theirs, &kept).map(Some);
        }
        if let Some(theirs) = theirs {
            self.take_in(theirs, &kept)?;
        }
        Ok(self.head()?)
    }

    /// Commits what this machine has changed.
    fn commit(&self) -> Result<()> {
        let SyncRequest { root, env, commit_hook, .. } = self.request;
        let _history = lock_history(root)?;
        // Two machines of one person that change the same in the same second would make the same commit.
        let message = format!("sync: changes of this machine ({})", file::random58(6)?);
        let commit =
            Commit { hook: commit_hook, message, body: Vec::new(), thread_ids: Vec::new(), count: 1 };
        history::commit_locked(root, &commit, Git::new(root, env)?)
            .map_err(|why| why.context("what this machine has changed cannot be committed"))
    }

    /// Merges a commit into the store. Others wait only while what has been prepared is put in its place.
    fn take_in(&mut self, theirs: &str, kept: &Notes) -> Result<(), Unsynced> {
        let ours = self.head()?;
        if ours.as_deref() == Some(theirs) {
            return Ok(());
        }
        let Some(computed) = self.merger.compute(ours.as_deref(), ours.as_deref(), theirs, kept)? else {
            return Ok(());
        };
        let commit = match &ours {
            Some(ours) if !computed.sent.is_empty() || !self.merger.is_ancestor(ours, theirs)? => {
                let parents = [Some(ours.as_str()), Some(theirs)];
                objects::commit(self.merger.git, parents, &computed.revisions, "sync: merge another machine")?
            }
            // It is just what the other side has.
            _ => theirs.to_owned(),
        };
        self.put(ours, computed, commit)
    }

    /// Puts a merge in its place, for which the commit `merged` was made.
    fn put(&mut self, ours: Option<String>, computed: Computed, merged: String) -> Result<(), Unsynced> {
        let root = self.request.root;
        let merge = Some(Merge { ours: ours.clone(), merged });
        let begun = BegunChange { version: VERSION, revisions: computed.revisions, merge };
        apply::stage(root, &begun)?;
        let _history = lock_history(root)?;
        if self.head()? != ours {
            return Err(Unsynced::overtaken(NEW_COMMIT));
        }
        {
            let _store = Topics::at(root).lock()?;
            if let Some(path) = apply::overtaken(root, &begun.revisions)? {
                let path = path.display();
                return Err(Unsynced::overtaken(format!(
                    "\"{path}\" has changed meanwhile, or is in the way and not in the store's history"
                )));
            }
            apply::unstage(root, &begun)?;
        }
        merge_commit::finish(root, self.merger.git)?;
        apply::clear_stage(root)?;
        self.tell(&begun.revisions, computed.merged);
        Ok(())
    }

    /// Takes from a shared remote what is believed of it, and makes what it is to have: one commit on what it has, without a
    /// past of this store. The two states differ, and each gets only what the other has changed since they last met.
    fn exchange(&mut self, theirs: Option<&str>, kept: &Notes) -> Result<String, Unsynced> {
        let ours = self.head()?.ok_or_else(|| {
            Error::conflict("the store's repository has no commit").hint("run memory-sync again")
        })?;
        let last = self.merger.last_exchange(Some(&ours), theirs)?;
        let (computed, offer) = self.merger.compute_shared(&last, &ours, theirs, kept)?;
        let offer = self.merger.on_top_of(theirs, last[1].as_deref(), offer)?;
        if !computed.revisions.is_empty() || last[1].as_ref() != Some(&offer) {
            let parents = [Some(&*ours), Some(&*offer)];
            let commit = objects::commit(self.merger.git, parents, &computed.revisions, EXCHANGE)?;
            self.put(Some(ours), computed, commit)?;
        }
        Ok(offer)
    }

    fn tell(&mut self, revisions: &[Revision], merged: MergedTree) {
        self.report.received.extend(paths(revisions));
        self.report.conflicts.extend(merged.conflicts);
        self.report.notices.extend(merged.said);
    }

    /// Makes one commit of all that was never published, without their past.
    fn squash(&mut self, ours: &str, theirs: Option<&str>) -> Result<String, Unsynced> {
        let bases = self.merger.commits.bases(Some(ours), theirs)?;
        let bases = bases.iter().map(String::as_str);
        let squashed = self.merger.commit_of(ours, "sync: changes of this machine", bases)?;
        let _history = lock_history(self.request.root)?;
        let message = "memory-sync: without a secret in the past";
        let branch = format!("refs/heads/{}", self.local);
        if self.merger.git.run(&["update-ref", "-m", message, &branch, &squashed, ours]).is_err() {
            return Err(Unsynced::overtaken(NEW_COMMIT));
        }
        self.report.squashed = true;
        Ok(squashed)
    }

    /// What an attempt would do. No branch and no file changes.
    fn preview(&mut self, theirs: Option<&str>) -> Result<()> {
        let ours = self.head()?;
        let tree = objects::tree_of_files(self.request.root, self.request.env, ours.as_deref())?;
        let kept = self.given_back(theirs)?;
        let computed = match theirs {
            _ if !self.merger.is_own => {
                let last = self.merger.last_exchange(ours.as_deref(), theirs)?;
                Some(self.merger.compute_shared(&last, &tree, theirs, &kept)?.0)
            }
            Some(theirs) => self.merger.compute(ours.as_deref(), Some(&tree), theirs, &kept)?,
            None => None,
        };
        let Some(Computed { merged, revisions, sent }) = computed else {
            let commits = &self.merger.commits;
            self.report.sent = differing(&*commits.listing(theirs)?, &*commits.listing(Some(&tree))?);
            return Ok(());
        };
        self.report.sent = sent;
        self.tell(&revisions, merged);
        Ok(())
    }
}
