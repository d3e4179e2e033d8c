//! The order of the queue: the entries that wait, in the order in which they are taken. New ones come before those of the past,
//! and each oldest first.
//!
//! The files are read once a run. With a hundred thousand of them, reading all again for each call would take longer
//! than the call; only names that are new since are looked at.

use crate::base::cli::Reporter;
use crate::base::error::Result;
use crate::store::journal::Journal;
use crate::store::journal::entry::QueueEntry;
use jiff::Timestamp;
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

/// How long a listing of the queue's names counts as new.
const FRESH: Duration = Duration::from_secs(1);

/// What is kept of an entry, in the order of what the order goes by: `false` comes before `true`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    is_past: bool,
    at: Timestamp,
    id: String,
    repo: Option<String>,
}

#[derive(Default)]
pub(super) struct Order {
    waiting: BTreeSet<Queued>,
    /// Every file that has been looked at, whatever became of it.
    known: HashSet<String>,
    /// What was taken out, and may be put back.
    taken: Vec<Queued>,
    listed: Option<Instant>,
}

impl Order {
    /// Lets in what has come since. `admits` says which entries take part.
    pub(super) fn update(
        &mut self,
        journal: &Journal,
        reporter: &Reporter,
        mut admits: impl FnMut(&str, &QueueEntry) -> bool,
    ) -> Result<()> {
        match self.listed {
            Some(listed) if listed.elapsed() < FRESH => return Ok(()),
            Some(_) => {}
            None => journal.sweep(),
        }
        self.listed = Some(Instant::now());
        for id in journal.ids()? {
            if !self.known.insert(id.clone()) {
                continue;
            }
            match journal.read(&id) {
                Ok(Some(entry)) if admits(&id, &entry) => {
                    let is_unplaced = entry.context.repo.is_none() && entry.session().is_some();
                    let dir = entry.context.cwd.filter(|_| is_unplaced);
                    let dir = dir.map(|dir| dir.to_string_lossy().into_owned());
                    let (is_past, repo) = (entry.context.past, entry.context.repo.or(dir));
                    self.waiting.insert(Queued { is_past, at: entry.timestamp, id, repo });
                }
                Ok(_) => {}
                Err(file) => {
                    reporter.warn(&format!("\"{}\" is {}", file.path.display(), file.why));
                }
            }
        }
        Ok(())
    }

    /// The next update lists the queue, however new the last listing is.
    pub(super) fn look_again(&mut self) {
        self.listed = None;
    }

    /// The next entry is one of the past; `None`: nobody waits.
    pub(super) fn is_next_past(&self) -> Option<bool> {
        self.waiting.first().map(|next| next.is_past)
    }

    /// Takes out the first, and those after it that share a call with it: at most `most`, all of its repository, so that
    /// none gets into another's notes. One that `is_alone` shares with nobody.
    pub(super) fn take(&mut self, most: usize, is_alone: impl Fn(&str) -> bool) -> Vec<String> {
        let Some(first) = self.waiting.first() else { return Vec::new() };
        let most = if is_alone(&first.id) { 1 } else { most };
        let goes_along =
            |other: &&Queued| *other == first || other.repo == first.repo && !is_alone(&other.id);
        let chosen: Vec<Queued> = self.waiting.iter().filter(goes_along).take(most).cloned().collect();
        for one in &chosen {
            self.waiting.remove(one);
        }
        let ids = chosen.iter().map(|one| one.id.clone()).collect();
        self.taken.extend(chosen);
        ids
    }

    /// What did not fit waits on, where it stood; `false`: this run has not taken it.
    pub(super) fn put_back(&mut self, id: &str) -> bool {
        let place = self.taken.iter().position(|one| one.id == id);
        place.is_some_and(|at| self.waiting.insert(self.taken.swap_remove(at)))
    }

    /// This one was taken out in this run.
    pub(super) fn has_taken(&self, id: &str) -> bool {
        self.taken.iter().any(|one| one.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(id: &str, second: i64, repo: Option<&str>, is_past: bool) -> Queued {
        let at = Timestamp::from_second(second).unwrap();
        Queued { is_past, at, id: id.into(), repo: repo.map(str::to_owned) }
    }

    fn line(places: impl IntoIterator<Item = Queued>) -> Order {
        Order { waiting: places.into_iter().collect(), ..Order::default() }
    }

    #[test]
    fn new_before_past_each_oldest_first_and_repositories_apart() {
        let mut line = line([
            place("old-past", 1, Some("a"), true),
            place("b", 3, Some("b"), false),
            place("a2", 4, Some("a"), false),
            place("a1", 2, Some("a"), false),
            place("none", 5, None, false),
            place("past", 2, None, true),
        ]);
        let never = |_: &str| false;
        assert_eq!(line.is_next_past(), Some(false));
        assert_eq!(line.take(32, never), ["a1", "a2", "old-past"], "the past may fill a call up");
        assert!(line.has_taken("a1") && !line.has_taken("b"));
        line.put_back("old-past");
        assert_eq!(line.take(32, never), ["b"]);
        assert_eq!(line.take(1, never), ["none"]);
        assert_eq!(line.is_next_past(), Some(true));
        assert_eq!(line.take(32, never), ["old-past"]);
        assert_eq!(line.take(32, never), ["past"]);
        assert_eq!((line.take(32, never), line.is_next_past()), (vec![], None));
    }

    #[test]
    fn one_that_is_asked_about_alone_shares_with_nobody() {
        let mut line = line(["w", "x", "y", "z"].iter().zip(1..).map(|(id, at)| place(id, at, None, false)));
        let is_alone = |id: &str| id == "x" || id == "w";
        assert_eq!(line.take(32, is_alone), ["w"]);
        assert_eq!(line.take(32, is_alone), ["x"]);
        assert_eq!(line.take(32, is_alone), ["y", "z"]);
    }
}
