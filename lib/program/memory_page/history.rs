//! When each note was changed, from the commits of the store.

use crate::base::cli::Context;
use crate::base::error::Result;
use crate::program::page::Shown;
use crate::store::entry::EntryId;
use crate::store::git::Git;
use crate::store::place::Root;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// So many commits are looked at, the newest.
const COMMITS: &str = "--max-count=5000";

/// A commit: when, and its subject.
pub type Commit = (Timestamp, Shown);

/// The commits that changed each note.
#[derive(Debug, Default)]
pub struct Changes {
    commits: Vec<Commit>,
    /// Indices.
    by_note: BTreeMap<EntryId, Vec<usize>>,
}

impl Changes {
    /// None if the store has no history. If it cannot be read, there is a warning.
    pub fn of(root: &Root, cx: &Context) -> Changes {
        if !root.path().join(".git").exists() {
            return Changes::default();
        }
        read(root, cx).unwrap_or_else(|error| {
            cx.reporter.warn(&format!("without the notes' history: {}", error.line()));
            Changes::default()
        })
    }

    pub fn of_note(&self, id: &EntryId) -> impl Iterator<Item = &Commit> {
        self.by_note.get(id).into_iter().flatten().map(|at| &self.commits[*at])
    }
}

fn read(root: &Root, cx: &Context) -> Result<Changes> {
    let git = Git::new(root, &cx.env)?;
    // Before the first commit there is nothing to read.
    if git.maybe_object(&["rev-parse", "--quiet", "--verify", "HEAD"])?.is_none() {
        return Ok(Changes::default());
    }
    let format = "--format=%x1e%ct%x1f%s";
    let log = git.run(&[
        "log", "-z", "--no-renames", "--name-only", COMMITS, format, "HEAD", "--", "topics", "archive",
    ])?;
    Ok(parse(&String::from_utf8_lossy(&log)))
}

/// For each commit a record separator, its time, a unit separator, its subject and NUL, then the paths, each with a NUL.
fn parse(log: &str) -> Changes {
    let mut changes = Changes::default();
    for commit in log.split('\u{1e}') {
        let Some((head, paths)) = commit.split_once('\0') else { continue };
        let Some((time, subject)) = head.split_once('\u{1f}') else { continue };
        let Some(time) = time.parse().ok().and_then(|time| Timestamp::from_second(time).ok()) else {
            continue;
        };
        let at = changes.commits.len();
        changes.commits.push((time, Shown::line(subject)));
        let names = paths.trim_start_matches('\n').split('\0').filter_map(|path| path.rsplit('/').next());
        for id in names.filter_map(EntryId::at_end_of) {
            let its = changes.by_note.entry(id).or_default();
            // The archive and the place that it came from.
            if its.last() != Some(&at) {
                its.push(at);
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_note_has_the_commits_that_changed_it() {
        let log = "\u{1e}200\u{1f}two \u{1b}[31m\0\ntopics/a b -- id__a1B2c3.md\0archive/a b -- id__a1B2c3.md\0topics/x.md\0\0\
                   \u{1e}100\u{1f}one\0\ntopics/a b -- id__a1B2c3.md\0topics/c -- id__Zz9yX1.md\0";
        let changes = parse(log);
        let of = |id| {
            changes
                .of_note(&EntryId::parse(id).unwrap())
                .map(|(time, _)| time.as_second())
                .collect::<Vec<_>>()
        };
        assert_eq!((of("a1B2c3"), of("Zz9yX1"), of("AAAAAA")), (vec![200, 100], vec![100], vec![]));
        assert_eq!(changes.commits[0].1, "two [31m".into());
        assert!(parse("").commits.is_empty() && parse("\u{1e}x\u{1f}\0\n\0").commits.is_empty());
    }
}
