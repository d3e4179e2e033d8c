//! What two commits become, as commits and as changes of files; neither a branch nor a file of the store changes.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::sync::foreign_files::unique;
use crate::memory::sync::objects::{self, Commits, Listing};
use crate::memory::sync::removals::{self, Missing, Notes};
use crate::memory::sync::request::SyncRequest;
use crate::memory::sync::shared::{self, Received};
use crate::memory::sync::side::{Files, Sides, note_id};
use crate::memory::sync::tree::{self, MergedTree};
use crate::store::entry::EntryId;
use crate::store::git::{Git, unusable};
use crate::store::persistence::Persistence;
use crate::store::revision::{Revision, Version};
use crate::store::topics::Topics;
use crate::store::{proposal, removed};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The commits of this store that follow what was taken from a shared remote: their second parent is what that was given.
pub(super) const EXCHANGE: &str = "sync: take from a shared remote";

/// A merge that was computed.
pub(super) struct Computed {
    pub(super) merged: MergedTree,
    /// What it changes here: a note that gets another path is renamed.
    pub(super) revisions: Vec<Revision>,
    /// What it changes there.
    pub(super) sent: BTreeSet<String>,
}

pub(super) struct Merger<'a> {
    pub(super) git: &'a Git,
    pub(super) commits: Commits<'a>,
    /// The remote, without a login.
    pub(super) remote: &'a str,
    /// Nobody else can write to it.
    pub(super) is_own: bool,
    /// The commits that several bases were merged into.
    pub(super) merged_bases: RefCell<BTreeMap<Vec<String>, String>>,
}

impl Merger<'_> {
    /// A state of the remote's, as one commit on what it has.
    pub(super) fn on_top_of(
        &self,
        theirs: Option<&str>,
        last: Option<&str>,
        state: String,
    ) -> Result<String> {
        if [theirs, last].contains(&Some(&state)) {
            return Ok(state);
        }
        let message = format!("sync: changes of a machine ({})", file::random58(6)?);
        self.commit_of(&state, &message, theirs)
    }

    /// A commit of the files that `state` has, with these parents.
    pub(super) fn commit_of<'p>(
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
    pub(super) fn last_exchange(
        &self,
        ours: Option<&str>,
        theirs: Option<&str>,
    ) -> Result<[Option<String>; 2]> {
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
    pub(super) fn compute_shared(
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
        let mut changed =
            &(&differing(&base, &ours) | &differing(&base, &theirs)) | &differing(&before, &theirs);
        // A note is known by its id, whatever its file is called.
        let touched = theirs.iter().filter(|(path, _)| changed.contains(*path));
        let touched = touched.map(|(path, oid)| (path.clone(), oid.clone())).collect();
        let [touched, here] = [&touched, &*ours].map(|listing| removals::in_listing(&self.commits, listing));
        let touched = touched?;
        changed.extend(here?.into_iter().filter(|(id, _)| touched.contains_key(id)).map(|(_, path)| path));
        // All that wait are looked at, and none leaves this machine.
        changed.extend(ours.keys().filter(|path| is_proposal(path)).cloned());
        let rest = unchanged(&ours, &changed);
        let files = self.commits.files([&base, &before, &ours, &theirs], &changed)?;
        let [mut base, mut before, ours_files, now_files] = files;
        let returned = removals::taken(&mut base, kept)?;
        removals::taken(&mut before, kept)?;
        let [base, one, two] = [&base, &ours_files, &now_files].map(without_proposals);
        let mut merged = tree::merge(Sides { base: &base, one: &one, two: &two, rest: &rest });
        removals::put_missing(&mut merged.files, returned.clone())?;
        let offered = without_proposals(&merged.files);
        let received =
            Received { before: &before, now: &now_files, merged: &merged.files, name: self.remote };
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
        self.joined(base, [offered, theirs], "sync: what a remote is to have")
    }

    /// A commit of what became of `base` in two commits.
    fn joined(&self, base: Option<String>, [one, two]: [&str; 2], message: &str) -> Result<String> {
        let merged = self.merge([base.as_deref(), Some(one), Some(two)], &Notes::new(), false)?;
        objects::commit(self.git, [Some(one), Some(two)], &merged.revisions, message)
    }

    pub(super) fn is_ancestor(&self, ours: &str, theirs: &str) -> Result<bool> {
        self.git.says_yes(&["merge-base", "--is-ancestor", ours, theirs])
    }

    /// The last state that two commits have in common, as a commit.
    pub(super) fn base(&self, ours: Option<&str>, theirs: &str) -> Result<Option<String>> {
        let bases = self.commits.bases(ours, Some(theirs))?;
        let [first, second, ..] = &bases[..] else { return Ok(bases.into_iter().next()) };
        if let Some(merged) = self.merged_bases.borrow().get(&bases) {
            return Ok(Some(merged.clone()));
        }
        // Where machines have merged crosswise, what they have in common is merged first.
        let before = self.base(Some(first), second)?;
        let merged = self.joined(before, [first, second], "sync: what two machines have in common")?;
        self.merged_bases.borrow_mut().insert(bases.clone(), merged.clone());
        Ok(Some(merged))
    }

    /// Merges a commit with what we have: `tree`, which follows the commit `ours`. `None` if we have all that it has. `kept`
    /// comes back though a side, or both, have it no more.
    pub(super) fn compute(
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

    /// The notes that are to be given back to a side that has lost them, and many with them.
    ///
    /// # Errors
    /// There are such notes, and nobody has said what is to become of them.
    pub(super) fn given_back(
        &self,
        request: &SyncRequest,
        ours: Option<&str>,
        theirs: &str,
    ) -> Result<Notes> {
        let SyncRequest { root, missing, is_dry, .. } = *request;
        let [Some(base), Some(given)] = self.last_exchange(ours, Some(theirs))? else {
            return Ok(Notes::new());
        };
        let commits = &self.commits;
        let notes = |commit: &str| removals::in_listing(commits, &*commits.listing(Some(commit))?);
        // What a shared remote was to have and has never got, it has not lost.
        let had = if given == base { None } else { self.base(Some(&given), theirs)? };
        let base = notes(&base)?;
        let had = had.map_or_else(|| Ok(base.clone()), |had| notes(&had))?;
        let theirs = commits.listing(Some(theirs))?;
        let there = removals::in_listing(commits, &theirs)?;
        let named = removals::named(commits, &theirs)?;
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
            [("on this machine".to_owned(), here, &base), (format!("in \"{}\"", self.remote), there, &had)];
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

    /// Merges what became of the first of three commits. `is_past`: the second has it all, if it has changed nothing.
    fn merge(&self, commits: [Option<&str>; 3], kept: &Notes, is_past: bool) -> Result<Computed> {
        let [before, one, two] = commits.map(|commit| self.commits.listing(commit));
        let (before, one, two) = (before?, one?, two?);
        let changed = &differing(&before, &one) | &differing(&before, &two);
        let rest = unchanged(&one, &changed);
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
}

/// The paths of a listing that are not among these.
fn unchanged(listing: &Listing, changed: &BTreeSet<String>) -> BTreeSet<String> {
    listing.keys().filter(|path| !changed.contains(*path)).cloned().collect()
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

pub(super) fn paths(revisions: &[Revision]) -> BTreeSet<String> {
    let versions = revisions.iter().flat_map(Revision::versions);
    versions.map(|version| version.path().to_string_lossy().into_owned()).collect()
}

/// The paths at which two sets of files differ.
pub(super) fn differing<T: PartialEq>(
    one: &BTreeMap<String, T>,
    two: &BTreeMap<String, T>,
) -> BTreeSet<String> {
    let paths = one.keys().chain(two.keys());
    paths.filter(|path| one.get(*path) != two.get(*path)).cloned().collect()
}
