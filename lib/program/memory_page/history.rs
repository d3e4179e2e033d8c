//! When each note was changed, from the commits of the store.

use crate::base::cli::Context;
use crate::base::error::Result;
use crate::program::page::PageText;
use crate::store::entry::EntryId;
use crate::store::git::Git;
use crate::store::place::Root;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The newest commits that are looked at, and what is told of each: the time and the subject, between separators.
const LOG: [&str; 10] = [
    "log", "-z", "--no-renames", "--name-only", "--max-count=5000", "--format=%x1e%ct%x1f%s", "HEAD", "--",
    "topics", "archive",
];

/// For each note the commits that changed it: when, and their subjects.
pub type Changes = BTreeMap<EntryId, Vec<(Timestamp, PageText)>>;

/// None if the store has no history. If it cannot be read, there is a warning.
pub fn changes(root: &Root, cx: &Context) -> Changes {
    let read = || -> Result<Changes> {
        let git = Git::new(root, &cx.env)?;
        // Before the first commit there is nothing to read.
        match git.maybe_object(&["rev-parse", "--quiet", "--verify", "HEAD"])? {
            Some(_) => Ok(parse(&String::from_utf8_lossy(&git.run(&LOG)?))),
            None => Ok(Changes::new()),
        }
    };
    if !root.path().join(".git").exists() {
        return Changes::new();
    }
    read().unwrap_or_else(|error| {
        cx.reporter.warn(&format!("without the notes' history: {}", error.line()));
        Changes::new()
    })
}

/// Each commit ends with the paths of its files, and a NUL before each.
fn parse(log: &str) -> Changes {
    let mut changes = Changes::new();
    for commit in log.split('\u{1e}') {
        let Some((head, paths)) = commit.split_once('\0') else { continue };
        let Some((time, subject)) = head.split_once('\u{1f}') else { continue };
        let Some(time) = time.parse().ok().and_then(|time| Timestamp::from_second(time).ok()) else {
            continue;
        };
        let names = paths.split('\0').filter_map(|path| path.rsplit('/').next());
        // A note that was archived has two paths.
        let ids: BTreeSet<EntryId> = names.filter_map(EntryId::at_end_of).collect();
        for id in ids {
            changes.entry(id).or_default().push((time, PageText::line(subject)));
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
        let told = |id: &str| {
            let its = changes.get(&EntryId::parse(id).unwrap());
            its.into_iter()
                .flatten()
                .map(|(time, what)| format!("{} {}", time.as_second(), what.as_str()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (told("a1B2c3"), told("Zz9yX1")),
            (vec!["200 two  [31m".to_owned(), "100 one".to_owned()], vec!["100 one".to_owned()])
        );
        assert!(parse("").is_empty() && parse("\u{1e}x\u{1f}\0\n\0").is_empty());
    }
}
