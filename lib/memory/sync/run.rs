//! The whole of a sync: commit, fetch, merge, push, and again where another machine was quicker.

use crate::base::error::{Error, Result};
use crate::base::file::{self, RunLock};
use crate::base::repository::git_dir;
use crate::memory::sync::copies::{self, TakenIn};
use crate::memory::sync::given_back::given_back;
use crate::memory::sync::merger::{Computed, EXCHANGE, Merger, differing, paths};
use crate::memory::sync::objects::{self, Commits};
use crate::memory::sync::remote::{self, Push, Remote, Unsynced};
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
use crate::store::history::{self, Commit, history_lock};
use crate::store::persistence::Persistence;
use crate::store::revision::Revision;
use crate::store::topics::Topics;
use crate::store::version::VERSION;
use crate::store::{self, merge_commit, merge_driver};
use std::cell::RefCell;

/// Attempts, because another machine may push, or a note may change, meanwhile.
const TRIES: usize = 8;

/// Why an attempt has to be made again, and what to do if it never succeeds.
struct Again {
    why: String,
    hint: &'static str,
}

/// Somebody else was quicker.
fn overtaken(why: impl Into<String>) -> Option<Again> {
    Some(Again { why: why.into(), hint: "run memory-sync again" })
}

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
    let git = Git::new(root, request.env)?.with(objects::TIMEOUT, Vec::new()).with_identity()?;
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
            store::version::put(root.path())?;
        }
    }
    let local = git.maybe_line(&["symbolic-ref", "--quiet", "--short", "HEAD"])?.ok_or_else(|| {
        Error::conflict("the store's repository is on no branch").hint("git switch main, in the store")
    })?;
    let remote = Remote::at(&address, root, request.env);
    let is_new = configured.as_deref() != Some(&address);
    let known = if is_new { None } else { remote::is_own(&git)? };
    let mut run = SyncRun {
        offer: None,
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
    if !request.is_dry {
        match copies::take_in(root, request.env) {
            Ok(TakenIn { merged, said }) => {
                run.report.notices.extend(said);
                run.report.received.extend(merged);
            }
            // The next run tries again.
            Err(why) => run.report.notices.push(why.line()),
        }
    }
    match run.try_often(&address) {
        Err(Unsynced::Unreachable(why)) if run.is_new => {
            Err(Error::io(format!("{} cannot be reached: git {why}", remote.quoted()))
                .hint("it is not set up; run the same again when it can be reached"))
        }
        Err(Unsynced::Unreachable(why)) => {
            let (unreachable, last_exchange) = (Some(why), Health::load(root).synced);
            Ok(SyncOutcome::Done(SyncReport { unreachable, last_exchange, ..run.report }))
        }
        Err(Unsynced::Failed(why)) => Err(why),
        Ok(()) => {
            if !request.is_dry {
                Health::change(root, |health| health.synced = Some(request.env.now()));
            }
            Ok(SyncOutcome::Done(run.report))
        }
    }
}

struct SyncRun<'a> {
    report: SyncReport,
    request: &'a SyncRequest<'a>,
    merger: Merger<'a>,
    remote: &'a Remote<'a>,
    /// The branch of this store.
    local: &'a str,
    /// What the remote is to have.
    offer: Option<String>,
    /// The store does not know this remote yet.
    is_new: bool,
}

impl SyncRun<'_> {
    fn try_often(&mut self, address: &str) -> Result<(), Unsynced> {
        let upstream = if self.is_new { None } else { remote::upstream(self.merger.git, self.local)? };
        let commits = &self.merger.commits;
        let branch = upstream.map_or_else(|| version::branch(self.remote, self.local, commits), Ok)?;
        let mut last = Again { why: String::new(), hint: "" };
        for _ in 0..TRIES {
            let theirs = self.remote.fetch(self.merger.git, &branch)?;
            if let Some(theirs) = &theirs {
                // Before anything of it is believed.
                let whose = self.remote.quoted();
                let listing = self.merger.commits.listing_of(theirs, &whose)?;
                version::check(&self.merger.commits, &listing, &whose)?;
            }
            if self.is_new && !self.request.is_dry {
                remote::set_up(self.merger.git, address, self.local, &branch)?;
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
        given_back(&self.merger, self.request, self.head()?.as_deref(), theirs)
    }

    fn head(&self) -> Result<Option<String>> {
        self.merger.git.maybe_object(&["rev-parse", "--verify", "--quiet", "HEAD"])
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
        let ours = if self.merger.is_own { self.head()? } else { self.offer.take() };
        let Some(ours) = ours.filter(|ours| theirs != Some(ours)) else { return Ok(None) };
        let (listing, theirs_listed) =
            (self.merger.commits.listing(Some(&ours))?, self.merger.commits.listing(theirs)?);
        let published = theirs.map(|theirs| (theirs, &*theirs_listed));
        let found = secrets::search(self.merger.git, (&ours, &listing), published, self.request.redactor)?;
        self.report.secrets.clone_from(&found.files);
        let pushed = match found {
            Secrets { files, .. } if !files.is_empty() => return Ok(None),
            Secrets { in_the_past: true, .. } if self.merger.is_own => match self.squash(&ours, theirs)? {
                Some(squashed) => squashed,
                None => return Ok(overtaken(NEW_COMMIT)),
            },
            Secrets { .. } => ours,
        };
        match self.remote.push(&pushed, branch)? {
            Push::Accepted => {
                self.report.sent = differing(&theirs_listed, &listing);
                let tracking = format!("refs/remotes/origin/{branch}");
                self.merger.git.run(&["update-ref", &tracking, &pushed])?;
                Ok(None)
            }
            Push::Overtaken => Ok(overtaken("another machine was quicker")),
            Push::Locked(lock) => Ok(Some(Again {
                why: format!("git's lock \"{lock}\" is in the way"),
                hint: "if no git is running there, remove it, then run memory-sync again",
            })),
        }
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

    /// Commits what this machine has changed, then merges a commit, if there is one.
    fn commit_and_take_in(&mut self, theirs: Option<&str>) -> Result<Option<Again>> {
        // Before what this machine has lost is committed.
        let kept = self.given_back(theirs)?;
        {
            let _history = file::lock_for_change(&history_lock(self.request.root), true)?;
            self.commit()?;
        }
        match theirs {
            _ if !self.merger.is_own => self.exchange(theirs, &kept),
            Some(theirs) => self.take_in(theirs, &kept),
            None => Ok(None),
        }
    }

    /// Commits what this machine has changed. The caller holds the history's lock.
    fn commit(&self) -> Result<()> {
        let SyncRequest { root, env, commit_hook, .. } = self.request;
        // Two machines of one person that change the same in the same second would make the same commit.
        let message = format!("sync: changes of this machine ({})", file::random58(6)?);
        let commit =
            Commit { hook: commit_hook, message, body: Vec::new(), thread_ids: Vec::new(), count: 1 };
        history::commit_locked(root, &commit, Git::new(root, env)?)
            .map_err(|why| why.context("what this machine has changed cannot be committed"))
    }

    /// Merges a commit into the store. Others wait only while what has been prepared is put in its place.
    fn take_in(&mut self, theirs: &str, kept: &Notes) -> Result<Option<Again>> {
        let ours = self.head()?;
        if ours.as_deref() == Some(theirs) {
            return Ok(None);
        }
        let Some(computed) = self.merger.compute(ours.as_deref(), ours.as_deref(), theirs, kept)? else {
            return Ok(None);
        };
        let Computed { merged, revisions, sent } = computed;
        let commit = match &ours {
            Some(ours) if !sent.is_empty() || !self.merger.is_ancestor(ours, theirs)? => {
                let parents = [Some(ours.as_str()), Some(theirs)];
                objects::commit(self.merger.git, parents, &revisions, "sync: merge another machine")?
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
        merge_commit::finish(root, self.merger.git)?;
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
        let last = self.merger.last_exchange(Some(&ours), theirs)?;
        let (Computed { merged, revisions, .. }, offer) =
            self.merger.compute_shared(&last, &ours, theirs, kept)?;
        let offer = self.merger.on_top_of(theirs, last[1].as_deref(), offer)?;
        self.offer = Some(offer.clone());
        if revisions.is_empty() && last[1].as_ref() == Some(&offer) {
            return Ok(None);
        }
        let commit = objects::commit(self.merger.git, [Some(&ours), Some(&offer)], &revisions, EXCHANGE)?;
        self.put(Some(ours), revisions, merged, commit)
    }

    fn tell(&mut self, revisions: &[Revision], merged: MergedTree) {
        self.report.received.extend(paths(revisions));
        self.report.conflicts.extend(merged.conflicts);
        self.report.notices.extend(merged.said);
    }

    /// Makes one commit of all that was never published, without their past. `None` if there is another one by now.
    fn squash(&mut self, ours: &str, theirs: Option<&str>) -> Result<Option<String>> {
        let bases = self.merger.commits.bases(Some(ours), theirs)?;
        let bases = bases.iter().map(String::as_str);
        let squashed = self.merger.commit_of(ours, "sync: changes of this machine", bases)?;
        let _history = file::lock_for_change(&history_lock(self.request.root), true)?;
        let message = "memory-sync: without a secret in the past";
        let branch = format!("refs/heads/{}", self.local);
        if self.merger.git.run(&["update-ref", "-m", message, &branch, &squashed, ours]).is_err() {
            return Ok(None);
        }
        self.report.squashed = true;
        Ok(Some(squashed))
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
        match computed {
            Some(Computed { merged, revisions, sent }) => {
                self.report.sent = sent;
                self.tell(&revisions, merged);
            }
            None => {
                let (listing, theirs) =
                    (self.merger.commits.listing(Some(&tree))?, self.merger.commits.listing(theirs)?);
                self.report.sent = differing(&theirs, &listing);
            }
        }
        Ok(())
    }
}
