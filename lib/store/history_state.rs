//! How the notes' history stands: looked at, never touched.

use crate::base::env::Env;
use crate::base::repository::git_dir;
use crate::store::history::{Git, NOT_YET};
use crate::store::place::Root;
use std::ffi::OsStr;
use std::path::PathBuf;

/// What git leaves in its directory while something that a person began is not at its end.
const UNDER_WAY: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
];

#[derive(Debug, Default)]
pub(crate) struct HistoryState {
    /// git's own lock, whoever holds it.
    pub(crate) lock: Option<PathBuf>,
    /// `merge`, `rebase` …
    pub(crate) under_way: Option<&'static str>,
    /// Files that differ from the last commit.
    pub(crate) changed: Vec<PathBuf>,
    /// Of these, the ones that a merge could not settle.
    pub(crate) in_conflict: Vec<PathBuf>,
    /// Why git cannot say who commits.
    pub(crate) nobody: Option<String>,
}

impl HistoryState {
    /// `None` where there is no repository yet. An error tells why git cannot be asked.
    pub(crate) fn of(root: &Root, env: &Env) -> Result<Option<HistoryState>, String> {
        let Some(dir) = git_dir(root.path()) else {
            // Something of that name which is no repository is in git's way.
            return match root.path().join(".git").symlink_metadata() {
                Ok(_) => Err("\".git\" is there, but is no repository".to_owned()),
                Err(_) => Ok(None),
            };
        };
        let git = Git::new(root, env)?;
        // Names as they are, each with an end of its own; and git's index is not written.
        let status = git.run(&[
            "--no-optional-locks",
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--",
            "topics",
            "archive",
            NOT_YET,
        ])?;
        let mut state = HistoryState {
            lock: Some(dir.join("index.lock")).filter(|lock| lock.symlink_metadata().is_ok()),
            under_way: UNDER_WAY.iter().find(|(name, _)| dir.join(name).exists()).map(|(_, what)| *what),
            nobody: git.nobody(),
            ..HistoryState::default()
        };
        for line in status.split(|byte| *byte == 0) {
            let (Some(code), Some(name)) = (line.get(..2), line.get(3..)) else { continue };
            let path = root.path().join(as_path(name));
            if matches!(code, b"DD" | b"AA") || code.contains(&b'U') {
                state.in_conflict.push(path.clone());
            }
            state.changed.push(path);
        }
        Ok(Some(state))
    }
}

#[cfg(unix)]
fn as_path(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(name))
}

#[cfg(not(unix))]
fn as_path(name: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::new(&*String::from_utf8_lossy(name)))
}
