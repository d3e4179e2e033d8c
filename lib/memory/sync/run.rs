//! The whole of a sync: commit, fetch, merge, push, and again where another machine was quicker.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file::{self, RunLock};
use crate::base::repository::git_dir;
use crate::memory::redact::Redactor;
use crate::memory::sync::listing::Listing;
use crate::memory::sync::objects;
use crate::memory::sync::remote::{self, Push, Remote, Transfer};
use crate::memory::sync::removals::{self, Lost, Missing, Notes};
use crate::memory::sync::secrets::{self, Secrets};
use crate::memory::sync::side::{Files, Sides, note_id};
use crate::memory::sync::tree::{self, MergedTree};
use crate::memory::sync::unique_paths::unique;
use crate::store::apply::{self, Begun, Merge};
use crate::store::entry::EntryId;
use crate::store::git::{Git, NO_TEMPORARY_FILES, is_object, unusable};
use crate::store::history::{self, Commit, DIRS, history_lock};
use crate::store::persistence::Persistence;
use crate::store::place::Root;
use crate::store::proposal::ProposalId;
use crate::store::revision::{Revision, Version};
use crate::store::topics::Topics;
use crate::store::{merge_commit, merge_driver, removed};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Attempts, because another machine may push, or a note may change, meanwhile.
const TRIES: usize = 8;
/// How long the git commands between two transfers may take.
const TIMEOUT: Duration = Duration::from_secs(300);
const LOCAL: &str = "this store";
/// What git's own merge had come to, if a person began one; and the largest file of it that is kept, in bytes.
const UNFINISHED: &str = "unfinished-merge";
const KEPT_CAP: u64 = 32 << 20;

pub struct Request<'a> {
    pub root: &'a Root,
    pub env: &'a Env,
    /// The address that the command line or the configuration names.
    pub address: Option<String>,
    pub commit_hook: &'a str,
    pub redactor: &'a Redactor,
    /// What is to become of many notes that are gone; `None`: nothing is merged.
    pub missing: Option<Missing>,
    pub is_dry: bool,
}

/// How a sync ended.
#[derive(Debug)]
pub enum Outcome {
    /// There is no remote: nothing to do.
    NoRemote,
    /// Another sync is running. What it says of itself.
    Busy(String),
    Done(Report),
}

/// What a sync has done, or with a dry run would do.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
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
    /// Files with secrets, for which nothing was sent.
    pub secrets: BTreeSet<String>,
    /// Commits of this machine have become one, because a secret was in their past.
    pub squashed: bool,
    pub dry_run: bool,
}

/// What happened to one attempt.
enum Attempt {
    Finished,
    /// Somebody else was quicker.
    Overtaken(String),
    /// This lock of git's is in the remote.
    Locked(String),
}

pub fn sync(request: &Request) -> Result<Outcome> {
    let root = request.root;
    if request.address.is_none() && !root.path().join(".git").exists() {
        return Ok(Outcome::NoRemote);
    }
    root.make()?;
    let holder = format!("memory-sync, process {}", std::process::id());
    let _lock = match file::hold(&root.state().join("sync.lock"), &holder)? {
        RunLock::Acquired(file) => file,
        RunLock::HeldBy(who) => return Ok(Outcome::Busy(who)),
    };
    let git = Git::new(root, request.env)?.with(TIMEOUT, Vec::new()).with_identity()?;
    let configured = match git_dir(root.path()) {
        Some(_) => remote::configured(&git)?,
        None => None,
    };
    let Some(address) = request.address.clone().or_else(|| configured.clone()) else {
        return Ok(Outcome::NoRemote);
    };
    {
        let _lock = file::lock_for_change(&history_lock(root), true)?;
        history::make_repository(root, &git)?;
        merge_driver::install(root, &git)?;
        merge_commit::finish(root, &git)?;
        apply::clear_stage(root)?;
    }
    let local = git.maybe_line(&["symbolic-ref", "--quiet", "--short", "HEAD"])?.ok_or_else(|| {
        Error::conflict("the store's repository is on no branch").hint("git switch main, in the store")
    })?;
    let remote = Remote::at(&address, root, request.env);
    let mut run = Run {
        report: Report { remote: remote.shown.clone(), dry_run: request.is_dry, ..Report::default() },
        request,
        git: &git,
        remote: &remote,
        address: &address,
        local: &local,
        listings: RefCell::default(),
    };
    let is_new = configured.as_deref() != Some(&address);
    let branch = match remote::upstream(&git, &local)?.filter(|_| !is_new) {
        Some(branch) => branch,
        None => match remote.branch(&address, &local)? {
            Transfer::Done(branch) => branch,
            Transfer::Unreachable(why) => return run.unreachable(why, is_new),
        },
    };
    let mut last = (String::new(), "");
    for number in 0..TRIES {
        let theirs = match remote.fetch(&git, &address, &branch)? {
            Transfer::Done(theirs) => theirs,
            Transfer::Unreachable(why) => return run.unreachable(why, is_new),
        };
        if let Some(theirs) = &theirs {
            // Before anything of it is believed.
            run.listing(Some(theirs), &format!("\"{}\"", remote.shown))?;
        }
        if is_new && number == 0 && !request.is_dry {
            remote::set_up(&git, &address, &local, &branch)?;
        }
        match run.attempt(theirs.as_deref(), &branch)? {
            Attempt::Finished => return Ok(Outcome::Done(run.report)),
            Attempt::Overtaken(why) => last = (why, "run memory-sync again"),
            Attempt::Locked(lock) => {
                let hint = "if no git is running there, remove it, then run memory-sync again";
                last = (format!("git's lock \"{lock}\" is in the way"), hint);
            }
        }
    }
    let (why, hint) = last;
    Err(Error::busy(format!("{why}, {TRIES} times in a row")).hint(hint))
}

struct Run<'a> {
    report: Report,
    request: &'a Request<'a>,
    git: &'a Git,
    remote: &'a Remote<'a>,
    address: &'a str,
    local: &'a str,
    listings: RefCell<BTreeMap<String, Rc<Listing>>>,
}

/// A merge that was computed.
struct Computed {
    merged: MergedTree,
    /// What it changes here: a note that gets another path is renamed.
    revisions: Vec<Revision>,
    /// It is just what the other side has.
    is_theirs: bool,
    /// What it changes there.
    sent: BTreeSet<String>,
}

impl Run<'_> {
    fn unreachable(mut self, why: String, is_new: bool) -> Result<Outcome> {
        if is_new {
            return Err(Error::io(format!("\"{}\" cannot be reached: git {why}", self.remote.shown))
                .hint("it is not set up; run the same again when it can be reached"));
        }
        self.report.unreachable = Some(why);
        Ok(Outcome::Done(self.report))
    }

    fn head(&self) -> Result<Option<String>> {
        self.git.maybe_object(&["rev-parse", "--verify", "--quiet", "HEAD"])
    }

    fn attempt(&mut self, theirs: Option<&str>, branch: &str) -> Result<Attempt> {
        if self.request.is_dry {
            return self.preview(theirs);
        }
        if let Some(begun) = self.begun_by_hand()?
            && let Some(why) = self.commit_and_take_in(Some(&begun))?
        {
            return Ok(Attempt::Overtaken(why));
        }
        if let Some(why) = self.commit_and_take_in(theirs)? {
            return Ok(Attempt::Overtaken(why));
        }
        let Some(ours) = self.head()? else { return Ok(Attempt::Finished) };
        if theirs == Some(&ours) {
            return Ok(Attempt::Finished);
        }
        let listing = self.listing(Some(&ours), LOCAL)?;
        let theirs_listed = self.listing(theirs, &self.remote.shown)?;
        let published = theirs.map(|theirs| (theirs, &*theirs_listed));
        let found = secrets::search(self.git, (&ours, &listing), published, self.request.redactor)?;
        self.report.secrets.clone_from(&found.files);
        let ours = match found {
            Secrets { files, .. } if !files.is_empty() => return Ok(Attempt::Finished),
            Secrets { in_the_past: true, .. } => match self.squash(&ours, theirs)? {
                Some(squashed) => squashed,
                None => {
                    return Ok(Attempt::Overtaken("the store has got another commit meanwhile".to_owned()));
                }
            },
            Secrets { .. } => ours,
        };
        match self.remote.push(self.address, &ours, branch)? {
            Transfer::Done(Push::Accepted) => {
                self.report.sent = differing(&theirs_listed.0, &listing.0);
                let tracking = format!("refs/remotes/origin/{branch}");
                self.git.run(&["update-ref", &tracking, &ours])?;
                Ok(Attempt::Finished)
            }
            Transfer::Done(Push::Overtaken) => {
                Ok(Attempt::Overtaken("another machine was quicker".to_owned()))
            }
            Transfer::Done(Push::Locked(lock)) => Ok(Attempt::Locked(lock)),
            Transfer::Unreachable(why) => {
                self.report.unreachable = Some(why);
                Ok(Attempt::Finished)
            }
        }
    }

    /// The files of a commit, if there is one. Each commit's are read once.
    fn listing(&self, commit: Option<&str>, whose: &str) -> Result<Rc<Listing>> {
        let Some(commit) = commit else { return Ok(Rc::default()) };
        if let Some(listing) = self.listings.borrow().get(commit) {
            return Ok(Rc::clone(listing));
        }
        let listing = Rc::new(objects::listing(self.git, commit, whose)?);
        self.listings.borrow_mut().insert(commit.to_owned(), Rc::clone(&listing));
        Ok(listing)
    }

    /// Commits what this machine has changed, then merges a commit, if there is one. Why not, if something was quicker.
    fn commit_and_take_in(&mut self, theirs: Option<&str>) -> Result<Option<String>> {
        // Before what this machine has lost is committed.
        let kept = theirs.map_or(Ok(Notes::new()), |theirs| self.given_back(theirs))?;
        {
            let _history = file::lock_for_change(&history_lock(self.request.root), true)?;
            self.commit()?;
        }
        theirs.map_or(Ok(None), |theirs| self.take_in(theirs, &kept))
    }

    /// The commit of a `git pull` that git could not finish, taken back so that it can be merged by note.
    fn begun_by_hand(&mut self) -> Result<Option<String>> {
        let dir = self.git.line(&["rev-parse", "--absolute-git-dir"])?;
        let dir = std::path::Path::new(&dir);
        if ["rebase-merge", "rebase-apply"].iter().any(|name| dir.join(name).exists()) {
            return Err(Error::conflict("a rebase is in progress in the store")
                .hint("git rebase --abort there, then run memory-sync again"));
        }
        let Some(theirs) = self.git.maybe_object(&["rev-parse", "--verify", "--quiet", "MERGE_HEAD"])? else {
            return Ok(None);
        };
        self.listing(Some(&theirs), "the commit that is being merged")?;
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
        let listing = self.listing(Some(theirs), "the commit that is being merged")?;
        let dir = root.state().join(UNFINISHED);
        let mut is_kept = false;
        let status = self.git.status(&["."])?;
        let changed = status.into_iter().filter(|(letters, _)| letters != b"??");
        let changed: BTreeSet<String> =
            changed.map(|(_, path)| String::from_utf8_lossy(&path).into_owned()).collect();
        let objects = self.objects(&[&listing], &changed)?;
        for (path, theirs) in changed.iter().map(|path| (path, listing.0.get(path))) {
            let Ok(bytes) = file::read(&root.path().join(path), KEPT_CAP) else { continue };
            if theirs.and_then(|name| objects.get(name)).is_some_and(|(_, theirs)| *theirs == bytes) {
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
        let Request { root, env, commit_hook, .. } = self.request;
        // Two machines of one person that change the same in the same second would make the same commit.
        let message = format!("sync: changes of this machine ({})", file::random58(6)?);
        let commit =
            Commit { hook: commit_hook, message, body: Vec::new(), thread_ids: Vec::new(), count: 1 };
        let dirs = [&DIRS[..], &[".gitignore"]].concat();
        let git = Git::new(root, env)?;
        history::commit_locked(root, &commit, git, &dirs)
            .map_err(|why| why.context("what this machine has changed cannot be committed"))
    }

    /// Merges a commit into the store. Why not, if something was quicker. Others wait only while what has been prepared is
    /// put in its place.
    fn take_in(&mut self, theirs: &str, kept: &Notes) -> Result<Option<String>> {
        let root = self.request.root;
        let ours = self.head()?;
        if ours.as_deref() == Some(theirs) {
            return Ok(None);
        }
        let bases = self.bases(ours.as_deref(), Some(theirs))?;
        let Some(computed) = self.compute(&bases, kept, ours.as_deref(), ours.as_deref(), theirs)? else {
            return Ok(None);
        };
        let merged = match (&ours, computed.is_theirs) {
            (None, _) => theirs.to_owned(),
            (Some(ours), true) if self.is_ancestor(ours, theirs)? => theirs.to_owned(),
            (Some(ours), _) => {
                objects::commit(self.git, ours, theirs, &computed.revisions, "sync: merge another machine")?
            }
        };
        let merge = Some(Merge { ours: ours.clone(), merged });
        let begun = Begun { revisions: computed.revisions, merge };
        apply::stage(root, &begun)?;
        let _history = file::lock_for_change(&history_lock(root), true)?;
        if self.head()? != ours {
            return Ok(Some("the store has got another commit meanwhile".to_owned()));
        }
        {
            let _store = Topics::at(root).lock()?;
            if let Some(path) = apply::overtaken(root, &begun.revisions)? {
                let path = path.display();
                return Ok(Some(format!(
                    "\"{path}\" has changed meanwhile, or is in the way and not in the store's history"
                )));
            }
            apply::unstage(root, &begun)?;
        }
        merge_commit::finish(root, self.git)?;
        apply::clear_stage(root)?;
        self.report.received.extend(paths(&begun.revisions));
        self.report.conflicts.extend(computed.merged.conflicts);
        self.report.notices.extend(computed.merged.said);
        Ok(None)
    }

    fn is_ancestor(&self, ours: &str, theirs: &str) -> Result<bool> {
        self.git.says_yes(&["merge-base", "--is-ancestor", ours, theirs])
    }

    /// The notes that are to be given back to a side that has lost them, and many with them.
    ///
    /// # Errors
    /// There are such notes, and nobody has said what is to become of them.
    fn given_back(&self, theirs: &str) -> Result<Notes> {
        let Request { root, missing, .. } = *self.request;
        let remote = format!("\"{}\"", self.remote.shown);
        let base = match &self.bases(self.head()?.as_deref(), Some(theirs))?[..] {
            [] => return Ok(Notes::new()),
            [base] => removals::in_listing(self.git, &*self.listing(Some(base), LOCAL)?)?,
            [first, second, ..] => removals::in_files(&self.merged_bases(first, second)?)?,
        };
        let theirs = self.listing(Some(theirs), &remote)?;
        let (there, named) = (removals::in_listing(self.git, &theirs)?, removals::named(self.git, &theirs)?);
        // A note that somebody renames at this moment is not gone.
        let _store = if self.request.is_dry { None } else { Some(Topics::at(root).lock()?) };
        let named = &named | &removed::of(root)?;
        let mut lost = Lost::default();
        let is_kept = missing == Some(Missing::Keep);
        let few = lost.add(&base, &removals::on_disk(root)?, "on this machine", &named, is_kept);
        lost.add(&base, &there, &format!("in {remote}"), &named, is_kept);
        if is_kept {
            return Ok(lost.notes);
        }
        if !lost.is_none() && missing.is_none() {
            return Err(lost.refused());
        }
        // From now on they have a name. A few that a person has deleted here have one, too, or many times a few would be
        // many for a machine that was away.
        if !self.request.is_dry {
            removed::add(root, lost.notes.keys().chain(few.keys()))?;
        }
        Ok(Notes::new())
    }

    /// Merges; `None` if we have all that they have. `tree` is what we have, `ours` the commit that it follows, `kept`
    /// what comes back though a side, or both, have it no more.
    fn compute(
        &self,
        bases: &[String],
        kept: &Notes,
        ours: Option<&str>,
        tree: Option<&str>,
        theirs: &str,
    ) -> Result<Option<Computed>> {
        if bases.first().map(String::as_str) == Some(theirs) && kept.is_empty() {
            return Ok(None);
        }
        let one = self.listing(tree, LOCAL)?;
        let two = self.listing(Some(theirs), &format!("\"{}\"", self.remote.shown))?;
        let before = self.listing(bases.first().map(String::as_str), LOCAL)?;
        // Several bases, where machines have merged crosswise: what they have in common is merged first.
        let virtual_base = match bases {
            [first, second, ..] => Some(self.merged_bases(first, second)?),
            _ => None,
        };
        let changed: BTreeSet<String> = match virtual_base {
            Some(_) => one.0.keys().chain(two.0.keys()).cloned().collect(),
            None => &differing(&before.0, &one.0) | &differing(&before.0, &two.0),
        };
        let objects = self.objects(&[&before, &one, &two], &changed)?;
        let rest: BTreeSet<String> = one.0.keys().filter(|path| !changed.contains(*path)).cloned().collect();
        let of = |listing: &Listing| objects::files(listing, &changed, &objects);
        let (base, one, two) = (of(&before)?, of(&one)?, of(&two)?);
        let mut base = virtual_base.unwrap_or(base);
        // What is given back is new to the side that lacks it.
        let returned = removals::taken(&mut base, kept)?;
        let is_forward = match ours {
            None => one.is_empty(),
            Some(_) => bases.first().map(String::as_str) == ours && base == one,
        };
        let mut merged = match is_forward {
            true => MergedTree { files: unique(two.clone(), &rest), ..MergedTree::default() },
            false => tree::merge(Sides { base: &base, one: &one, two: &two, rest: &rest }),
        };
        removals::put_missing(&mut merged.files, returned)?;
        let (revisions, sent) = (revisions(&one, &merged.files), differing(&two, &merged.files));
        Ok(Some(Computed { is_theirs: sent.is_empty(), revisions, sent, merged }))
    }

    fn bases(&self, ours: Option<&str>, theirs: Option<&str>) -> Result<Vec<String>> {
        let (Some(ours), Some(theirs)) = (ours, theirs) else { return Ok(Vec::new()) };
        // Exit 1 without a word: they have nothing in common.
        let arguments = ["merge-base", "--all", ours, theirs];
        let bases = self.git.maybe_lines(&arguments)?.unwrap_or_default();
        match bases.iter().all(|base| is_object(base)) {
            true => Ok(bases),
            false => Err(unusable(&arguments)),
        }
    }

    fn objects(&self, listings: &[&Listing], paths: &BTreeSet<String>) -> Result<objects::Objects> {
        let at =
            |path: &String| listings.iter().filter_map(|listing| listing.0.get(path)).collect::<Vec<_>>();
        let names: BTreeSet<&str> = paths.iter().flat_map(at).map(String::as_str).collect();
        objects::read(self.git, &names)
    }

    /// What two commits have come to, as if somebody had merged them.
    fn merged_bases(&self, first: &str, second: &str) -> Result<Files> {
        let before = self.bases(Some(first), Some(second))?;
        let list = |commit: Option<&str>| self.listing(commit, LOCAL);
        let listings: [Rc<Listing>; 3] =
            [list(before.first().map(String::as_str))?, list(Some(first))?, list(Some(second))?];
        let paths: BTreeSet<String> = listings.iter().flat_map(|listing| listing.0.keys()).cloned().collect();
        let objects = self.objects(&listings.each_ref().map(|listing| &**listing), &paths)?;
        let [base, one, two] = listings.each_ref().map(|listing| objects::files(listing, &paths, &objects));
        let (base, one, two) = (base?, one?, two?);
        Ok(tree::merge(Sides { base: &base, one: &one, two: &two, rest: &BTreeSet::new() }).files)
    }

    /// Makes one commit of all that was never published, without their past. `None` if there is another one by now.
    fn squash(&mut self, ours: &str, theirs: Option<&str>) -> Result<Option<String>> {
        let bases = self.bases(Some(ours), theirs)?;
        let tree = format!("{ours}^{{tree}}");
        let mut arguments = vec!["commit-tree", &tree, "-m", "sync: changes of this machine"];
        arguments.extend(bases.iter().flat_map(|base| ["-p", base]));
        let squashed = self.git.object(&arguments)?;
        let _history = file::lock_for_change(&history_lock(self.request.root), true)?;
        let message = "memory-sync: without a secret in the past";
        let branch = format!("refs/heads/{}", self.local);
        if self.git.run(&["update-ref", "-m", message, &branch, &squashed, ours]).is_err() {
            return Ok(None);
        }
        self.report.squashed = true;
        Ok(Some(squashed))
    }

    /// What an attempt would do. Only objects are added to git's.
    fn preview(&mut self, theirs: Option<&str>) -> Result<Attempt> {
        let ours = self.head()?;
        let tree = self.tree_of_files(ours.as_deref())?;
        let listing = self.listing(Some(&tree), LOCAL)?;
        let Some(theirs) = theirs else {
            self.report.sent = listing.0.keys().cloned().collect();
            return Ok(Attempt::Finished);
        };
        let bases = self.bases(ours.as_deref(), Some(theirs))?;
        let kept = self.given_back(theirs)?;
        match self.compute(&bases, &kept, ours.as_deref(), Some(&tree), theirs)? {
            Some(computed) => {
                self.report.received = paths(&computed.revisions);
                self.report.sent = computed.sent;
                self.report.conflicts = computed.merged.conflicts;
                self.report.notices = computed.merged.said;
            }
            None => {
                let theirs = self.listing(Some(theirs), &self.remote.shown)?;
                self.report.sent = differing(&theirs.0, &listing.0);
            }
        }
        Ok(Attempt::Finished)
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
            let there = |dir: &&str| match fs_err::read_dir(root.path().join(dir)) {
                Ok(mut entries) => entries.next().is_some() || ours.is_some_and(|ours| self.has(ours, dir)),
                Err(_) => root.path().join(dir).is_file() || ours.is_some_and(|ours| self.has(ours, dir)),
            };
            let dirs: Vec<&str> = DIRS.into_iter().chain([".gitignore"]).filter(there).collect();
            if !dirs.is_empty() {
                git.run(&[&["add", "--all", "--"], &dirs[..], &NO_TEMPORARY_FILES].concat())?;
            }
            git.object(&["write-tree"])
        };
        let tree = made();
        file::if_exists(file::remove(&index))?;
        tree
    }

    fn has(&self, commit: &str, dir: &str) -> bool {
        self.git.run(&["cat-file", "-e", &format!("{commit}:{dir}")]).is_ok()
    }
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
    let versions = revisions.iter().flat_map(|revision| revision.before.iter().chain(&revision.after));
    versions.map(|version| version.path().to_string_lossy().into_owned()).collect()
}

/// The paths at which two sets of files differ.
fn differing<T: PartialEq>(one: &BTreeMap<String, T>, two: &BTreeMap<String, T>) -> BTreeSet<String> {
    let paths = one.keys().chain(two.keys());
    paths.filter(|path| one.get(*path) != two.get(*path)).cloned().collect()
}
