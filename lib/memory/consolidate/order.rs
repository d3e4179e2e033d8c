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
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long a listing of the queue's names counts as new.
const FRESH: Duration = Duration::from_secs(1);

/// What the order goes by: `false` comes before `true`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    is_past: bool,
    at: Timestamp,
    id: Rc<str>,
}

/// What is kept of an entry.
#[derive(Debug, Clone)]
struct Place {
    turn: Turn,
    repo: Option<Rc<str>>,
}

#[derive(Default)]
pub(super) struct Order {
    order: BTreeMap<Turn, Option<Rc<str>>>,
    by_repo: HashMap<Option<Rc<str>>, BTreeSet<Turn>>,
    /// Every file that has been looked at, whatever became of it.
    known: HashSet<Rc<str>>,
    /// What was taken out, and may be put back.
    taken: HashMap<Rc<str>, Place>,
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
            if self.known.contains(id.as_str()) {
                continue;
            }
            let id: Rc<str> = id.into();
            self.known.insert(Rc::clone(&id));
            match journal.read(&id) {
                Ok(Some(entry)) if admits(&id, &entry) => {
                    let repo = entry.context.repo.map(Rc::from);
                    let turn = Turn { is_past: entry.context.past, at: entry.timestamp, id };
                    self.insert(Place { turn, repo });
                }
                Ok(_) => {}
                Err(file) => {
                    reporter.warn(&format!("\"{}\" is {}", file.path.display(), file.error.message()));
                }
            }
        }
        Ok(())
    }

    /// The next update lists the queue, however new the last listing is.
    pub(super) fn look_again(&mut self) {
        self.listed = None;
    }

    fn insert(&mut self, Place { turn, repo }: Place) {
        self.by_repo.entry(repo.clone()).or_default().insert(turn.clone());
        self.order.insert(turn, repo);
    }

    /// Is the next entry one of the past? `None`: nobody waits.
    pub(super) fn is_next_past(&self) -> Option<bool> {
        self.order.keys().next().map(|turn| turn.is_past)
    }

    /// Takes out the first, and those after it that share a call with it: at most `most`, all of its repository, so that
    /// none gets into another's notes. One that `is_alone` shares with nobody.
    pub(super) fn take(&mut self, most: usize, is_alone: impl Fn(&str) -> bool) -> Vec<String> {
        let Some((first, repo)) = self.order.first_key_value() else { return Vec::new() };
        let (first, repo) = (first.clone(), repo.clone());
        let mut chosen = vec![first.clone()];
        if !is_alone(&first.id) {
            let beside = self.by_repo.get(&repo).into_iter().flatten();
            let beside = beside.filter(|turn| **turn != first && !is_alone(&turn.id));
            chosen.extend(beside.take(most.saturating_sub(1)).cloned());
        }
        let mut ids = Vec::new();
        for turn in chosen {
            self.order.remove(&turn);
            if let Some(turns) = self.by_repo.get_mut(&repo) {
                turns.remove(&turn);
            }
            ids.push(turn.id.to_string());
            self.taken.insert(Rc::clone(&turn.id), Place { turn, repo: repo.clone() });
        }
        ids
    }

    /// What did not fit waits on, where it stood; `false`: this run has not taken it.
    pub(super) fn put_back(&mut self, id: &str) -> bool {
        let place = self.taken.remove(id);
        let is_ours = place.is_some();
        place.into_iter().for_each(|place| self.insert(place));
        is_ours
    }

    /// Was this one taken out in this run?
    pub(super) fn has_taken(&self, id: &str) -> bool {
        self.taken.contains_key(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(id: &str, second: i64, repo: Option<&str>, is_past: bool) -> Place {
        let at = Timestamp::from_second(second).unwrap();
        Place { turn: Turn { is_past, at, id: id.into() }, repo: repo.map(Rc::from) }
    }

    fn line(places: impl IntoIterator<Item = Place>) -> Order {
        let mut line = Order::default();
        places.into_iter().for_each(|place| line.insert(place));
        line
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
