//! The state of the store's git repository, for the doctor. Reading it changes nothing.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::repository::git_dir;
use crate::store::entry::EntryId;
use crate::store::git::Git;
use crate::store::history::DIRS;
use crate::store::place::Root;
use crate::store::removed;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Files in git's directory that stand for an unfinished operation.
const UNFINISHED: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

#[derive(Debug, Default)]
pub struct HistoryState {
    /// The operation that a person has begun and not finished: `merge`, `rebase` …
    pub unfinished: Option<&'static str>,
    /// Files that differ from the last commit.
    pub changed: Vec<PathBuf>,
    /// Those of them that a merge left in conflict.
    pub in_conflict: Vec<PathBuf>,
    /// Files of the last commit that are there no more, not even under another name with the same id.
    pub gone: Vec<PathBuf>,
    /// git's error where it has no name or address for commits.
    pub missing_identity: Option<Error>,
}

impl HistoryState {
    /// `None` if there is no repository yet.
    pub fn of(root: &Root, env: &Env) -> Result<Option<HistoryState>> {
        let Some(dir) = git_dir(root.path()) else {
            // A file or directory of that name that is not a repository would block git.
            return match root.path().join(".git").symlink_metadata() {
                Ok(_) => Err(Error::conflict("\".git\" exists but is not a repository")),
                Err(_) => Ok(None),
            };
        };
        let git = Git::new(root, env)?;
        let status = git.status(&DIRS)?;
        let mut state = HistoryState {
            unfinished: UNFINISHED.iter().find(|(name, _)| dir.join(name).exists()).map(|(_, what)| *what),
            missing_identity: git.missing_identity()?,
            ..HistoryState::default()
        };
        for (letters, name) in status {
            let path = root.path().join(file::name_of(&name).unwrap_or_default());
            if matches!(&letters, b"DD" | b"AA") || letters.contains(&b'U') {
                state.in_conflict.push(path.clone());
            }
            let is_gone = letters.contains(&b'D') && !path.exists();
            let list = if is_gone { &mut state.gone } else { &mut state.changed };
            list.push(path);
        }
        // One that a person renamed is there; one that was deleted by name waits for the next commit.
        let id = |path: &PathBuf| EntryId::at_end_of(path.file_name()?.to_str()?);
        let there: BTreeSet<EntryId> = state.changed.iter().filter_map(id).collect();
        let removed = removed::of(root)?;
        state.gone.retain(|path| id(path).is_none_or(|id| !there.contains(&id) && !removed.contains(&id)));
        Ok(Some(state))
    }
}
