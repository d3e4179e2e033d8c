//! What git tells of a checkout that is not ours: where its branches stand, and which files were renamed. Never asked by a hook.
//!
//! A checkout may be a stranger's, with settings that name programs. Only commands are run that read objects and references:
//! they run none of these programs, fetch nothing, and look at no file of the working tree but .gitignore.

use crate::base::env::Env;
use crate::base::reach;
use crate::store::entry::Branch;
use crate::store::git::{Git, command};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// How long all commands of one checkout may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The most that git says about changed files, in bytes.
const PRINTED: usize = 4 << 20;
/// The longest name of a branch, in bytes.
const NAME: usize = 200;

/// Where a branch stands to the default branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BranchState {
    /// It is in it.
    Merged,
    Open,
    /// It is no longer there, and what was checked out then is not in the default branch: it was dropped, or its changes are
    /// there as other commits.
    Gone,
}

/// Files that are new, changed or renamed, with the old name of these.
pub type Changes = Rc<Vec<(String, Option<String>)>>;

pub struct Checkout {
    /// `None`: the checkout does not answer.
    git: Option<Git>,
    /// The default branch, here and at the remote, as far as there is one.
    defaults: RefCell<Option<Vec<String>>>,
    /// What has changed since a commit.
    changes: RefCell<HashMap<String, Changes>>,
}

/// Can this be the name of a branch? Nothing else is shown to git.
pub fn is_branch(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._+#=,%&'!()$;|<>\"`-".contains(c);
    !name.is_empty()
        && name.len() <= NAME
        && name != "HEAD"
        && name.chars().all(is_plain)
        && !name.contains("..")
}

impl Checkout {
    pub fn new(top: &Path, env: &Env) -> Checkout {
        let vars = vec![("GIT_NO_LAZY_FETCH", "1".into()), ("GIT_ALLOW_PROTOCOL", "none".into())];
        let git = reach::answers(top).then(|| Git::in_dir(top.to_path_buf(), env).with(PATIENCE, vars));
        Checkout { git, defaults: RefCell::default(), changes: RefCell::default() }
    }

    /// `None`: git cannot tell, as where no branch is the default one.
    pub fn state_of(&self, branch: &Branch) -> Option<BranchState> {
        let git = self.git.as_ref()?;
        let Branch { name, commit } = branch;
        let mut defaults = self.defaults.borrow_mut();
        let defaults = defaults.get_or_insert_with(|| defaults_of(git));
        let ends = |full: &String| full.strip_prefix("refs/heads/").is_some_and(|default| default == name);
        if defaults.is_empty() || !is_branch(name) {
            return None;
        }
        let merged = |commit: &str| {
            defaults.iter().any(|default| {
                git.says_yes(&["merge-base", "--is-ancestor", commit, default]).unwrap_or(false)
            })
        };
        let tip = self.tip(name);
        let commit = commit.as_deref().filter(|commit| commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Some(match (tip, commit) {
            _ if defaults.iter().any(ends) => BranchState::Merged,
            (Some(tip), _) if merged(&tip) => BranchState::Merged,
            (Some(_), _) => BranchState::Open,
            (None, Some(commit)) if merged(commit) => BranchState::Merged,
            (None, _) => BranchState::Gone,
        })
    }

    /// The commit of a branch, here or at the remote.
    pub fn tip(&self, name: &str) -> Option<String> {
        let git = self.git.as_ref().filter(|_| is_branch(name))?;
        let tips = [format!("refs/heads/{name}"), format!("refs/remotes/origin/{name}")];
        tips.iter().find_map(|tip| found(git, tip))
    }

    /// Those of these paths that git leaves out.
    pub fn ignored(&self, paths: &BTreeSet<&String>) -> BTreeSet<String> {
        let Some(git) = self.git.as_ref().filter(|_| !paths.is_empty()) else { return BTreeSet::new() };
        let input: Vec<u8> = paths.iter().flat_map(|path| path.bytes().chain([0])).collect();
        // It stops at a path that is in no checkout; what it has said before is true.
        let done = git.call(&command(&["check-ignore", "-z", "--stdin"]), input, PRINTED);
        let printed = done.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default();
        printed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
    }

    /// What has changed since a commit. What was renamed on another branch alone has its old name in the default one.
    pub fn changes(&self, commit: &str) -> Changes {
        let git = self.git.as_ref().filter(|_| commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(git) = git else { return Rc::default() };
        let mut defaults = self.defaults.borrow_mut();
        let default = defaults.get_or_insert_with(|| defaults_of(git)).first();
        let mut all = self.changes.borrow_mut();
        let of_commit = all.entry(commit.to_owned()).or_insert_with(|| {
            let now = default.map_or("HEAD", String::as_str);
            let words = command(&[
                "diff-tree", "-r", "-M", "--diff-filter=AMR", "--name-status", "-z", commit, now, "--",
            ]);
            let printed = git.call(&words, Vec::new(), PRINTED).ok().filter(|done| done.failure().is_none());
            let printed = printed.map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
            let printed = printed.unwrap_or_default();
            let mut fields = printed.split('\0').map(str::to_owned);
            let next = || {
                let (status, path) = (fields.next()?, fields.next()?);
                Some(if status.starts_with('R') { (fields.next()?, Some(path)) } else { (path, None) })
            };
            Rc::new(std::iter::from_fn(next).collect())
        });
        Rc::clone(of_commit)
    }
}

/// The commit that a reference names.
fn found(git: &Git, reference: &str) -> Option<String> {
    git.maybe_object(&["rev-parse", "--verify", "--quiet", reference]).ok().flatten()
}

/// The full names: what the remote says, and the branch of the same name here; or else one with a usual name.
fn defaults_of(git: &Git) -> Vec<String> {
    let remote = git.maybe_line(&["symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"]).ok().flatten();
    let name = remote.as_deref().and_then(|remote| remote.strip_prefix("refs/remotes/origin/"));
    let names = name.map_or_else(|| vec!["main", "master", "trunk"], |name| vec![name]);
    let both = |name: &str| {
        let names = [format!("refs/heads/{name}"), format!("refs/remotes/origin/{name}")];
        names.into_iter().filter(|name| found(git, name).is_some()).collect::<Vec<String>>()
    };
    names.into_iter().map(both).find(|found| !found.is_empty()).unwrap_or_default()
}
