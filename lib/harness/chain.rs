//! What was taken back in a session whose records name the one before them: a person went back to an earlier prompt, and went on
//! from there. The old prompt and what followed it stay in the file, on a branch that the last record does not come from.

use crate::harness::content::{Object, Taken};
use crate::harness::source::each_record;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::path::Path;

/// The links between the records of a session, in the order of the file.
#[derive(Default)]
struct Chain {
    links: Vec<Link>,
    seen: HashSet<u64>,
    hasher: RandomState,
}

struct Link {
    id: u64,
    /// `None`: it is a first record.
    parent: Option<u64>,
    is_prompt: bool,
}

/// The ids of the records that were taken back.
#[derive(Default)]
pub(super) struct Withdrawn {
    ids: HashSet<u64>,
    hasher: RandomState,
}

impl Withdrawn {
    /// Of the session in a file whose records have `uuid` and `parentUuid`. A file that cannot be read has none: the second
    /// reading says why.
    pub(super) fn of(path: &Path, is_prompt: fn(&Object) -> bool) -> Withdrawn {
        let mut chain = Chain::default();
        let _ = each_record(path, |record, _| chain.add(record, is_prompt));
        Withdrawn { ids: chain.withdrawn(), hasher: chain.hasher }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.ids.contains(&self.hasher.hash_one(id))
    }
}

impl Chain {
    fn add(&mut self, record: &Object, is_prompt: fn(&Object) -> bool) -> Taken {
        let (Some(id), false) = (record.text("uuid")?, record.flag("isSidechain")?) else { return Ok(()) };
        if !record.has("parentUuid") {
            return Ok(());
        }
        let parent = record.text("parentUuid")?.or(record.text("logicalParentUuid")?);
        let hash = |id: String| self.hasher.hash_one(id);
        let link = Link { id: hash(id), parent: parent.map(hash), is_prompt: is_prompt(record) };
        // A record may be written twice.
        if self.seen.insert(link.id) {
            self.links.push(link);
        }
        Ok(())
    }

    fn withdrawn(&self) -> HashSet<u64> {
        let places: HashMap<u64, usize> =
            self.links.iter().enumerate().rev().map(|(at, link)| (link.id, at)).collect();
        // The place of the record before; `Some(None)`: there is none. `None`: it is not in the file.
        let before = |at: usize| match self.links[at].parent {
            None => Some(None),
            Some(parent) => places.get(&parent).copied().map(Some),
        };
        // What the last record comes from: of each record, and of the beginning, the next one.
        let mut next: HashMap<Option<usize>, usize> = HashMap::new();
        let mut at = self.links.len().checked_sub(1);
        while let Some(here) = at
            && let Some(up) = before(here)
        {
            // After a summary, nothing is known of the beginning.
            if up.is_none() && !self.links[here].is_prompt || next.insert(up, here).is_some() {
                break;
            }
            at = up;
        }
        let mut branches: Vec<Option<usize>> = vec![None; self.links.len()];
        let mut ends = HashMap::new();
        for (at, link) in self.links.iter().enumerate() {
            let Some(up) = before(at).filter(|up| next.get(up) != Some(&at)) else { continue };
            let inherited = up.and_then(|up| branches[up]);
            branches[at] = inherited.or_else(|| (link.is_prompt && next.contains_key(&up)).then_some(at));
            if let Some(branch) = branches[at] {
                ends.insert(branch, at);
            }
        }
        // A branch that went on after the other one had begun is that of another window.
        let is_over = |branch: usize| {
            let other = before(branch).and_then(|up| next.get(&up));
            // Only another prompt takes one back: no summary, and no record that comes late.
            other.is_some_and(|other| self.links[*other].is_prompt && ends.get(&branch) < Some(other))
        };
        let withdrawn = branches.iter().zip(&self.links).filter(|(branch, _)| branch.is_some_and(is_over));
        withdrawn.map(|(_, link)| link.id).collect()
    }
}
