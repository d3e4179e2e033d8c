//! Three states of a store become one, note by note: each id is looked for under any name and in both directories.

use crate::base::text::one_line;
use crate::memory::record::sentences_of_note;
use crate::memory::sync::foreign_files::{self, unique};
use crate::memory::sync::lines::pick;
use crate::memory::sync::note::{self, later_first};
use crate::memory::sync::proposals::MergedProposals;
use crate::memory::sync::same_id;
use crate::memory::sync::side::{Files, Located, Side, Sides, ids_in_names};
use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::Place;
use crate::store::proposal::{Proposal, ProposalId};
use crate::store::removed;
use std::collections::{BTreeMap, BTreeSet};

/// What the sides have become.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MergedTree {
    /// In the place of the files of both sides.
    pub files: Files,
    /// What a person should know, a line each.
    pub said: Vec<String>,
    /// The texts that clashed, which wait for review.
    pub conflicts: Vec<ProposalId>,
}

/// Merges what became of a store on two machines. The result does not depend on which of them is `one`.
pub fn merge(sides: Sides) -> MergedTree {
    let [base, mut one, mut two] = [sides.base, sides.one, sides.two].map(Side::of);
    let said = same_id::tell_apart(sides, &base, [&mut one, &mut two], ids_in_names(sides.rest));
    let lists = [sides.one, sides.two].map(|files| files.get(removed::PATH));
    let purged = lists.into_iter().flatten().flat_map(|bytes| removed::purged(bytes)).collect();
    let mut merging = Merging { said, purged, ..Merging::default() };
    let ids: BTreeSet<&EntryId> = [&base, &one, &two].iter().flat_map(|side| side.notes.keys()).collect();
    for id in ids {
        merging.note(id, &base, &one, &two);
    }
    merging.bring_back();
    merging.settle_aliases();
    let mut proposals = MergedProposals::merged(&base, &one, &two, sides.rest);
    let mut files = foreign_files::merged(sides.base, &base.others, &one.others, &two.others);
    let conflicts = merging.conflicts.into_iter().map(|conflict| proposals.add(conflict)).collect();
    for (path, bytes) in merging.unmerged {
        foreign_files::put_beside(&mut files, &path, "txt", bytes);
    }
    merging.notes.values().for_each(|note| foreign_files::put_note(&mut files, note));
    files.extend(proposals.files(&[sides.one, sides.two]));
    let mut said = merging.said;
    said.sort();
    said.dedup();
    MergedTree { files: unique(files, sides.rest), said, conflicts }
}

/// The notes so far.
#[derive(Default)]
struct Merging {
    notes: BTreeMap<EntryId, Located>,
    conflicts: Vec<Proposal>,
    unmerged: Vec<(String, Vec<u8>)>,
    said: Vec<String>,
    /// Notes that were merged into one that another machine corrected.
    returned: BTreeSet<EntryId>,
    /// What a person deleted for good.
    purged: BTreeSet<EntryId>,
}

impl Merging {
    fn note(&mut self, id: &EntryId, base: &Side, one: &Side, two: &Side) {
        let base = base.notes.get(id);
        let merged = match [one, two].map(|side| (side.notes.get(id), side.has_broken(id))) {
            [(None, _), (None, _)] => None,
            [(Some(ours), _), (Some(theirs), _)] => Some(self.both(base, ours, theirs, [one, two])),
            // The other side has it no more; or what it has there cannot be read, and stays as it is.
            [(Some(left), _), (None, is_broken)] | [(None, is_broken), (Some(left), _)] => {
                self.left(base, left, is_broken)
            }
        };
        self.notes.extend(merged.map(|merged| (id.clone(), merged)));
    }

    /// A note that only one side has.
    fn left(&mut self, base: Option<&Located>, left: &Located, is_broken: bool) -> Option<Located> {
        if let Some(base) = base {
            if !left.is_edited_since(base) {
                return None;
            }
            let id = &left.entry.meta().id;
            if self.purged.contains(id) {
                self.said.push(format!(
                    "{id} was deleted for good on one machine and edited on another; it is gone here, and the remote's \
                     history keeps its text"
                ));
                return None;
            }
            if !is_broken {
                self.say_edited(left, "deleted");
            }
        }
        Some(left.clone())
    }

    fn say_edited(&mut self, note: &Located, what: &str) {
        let (id, title) = (&note.entry.meta().id, one_line(&note.entry.meta().title, 80));
        self.said
            .push(format!("{id} \"{title}\" was {what} on one machine and edited on another; it is kept"));
    }

    fn both(&mut self, base: Option<&Located>, one: &Located, two: &Located, sides: [&Side; 2]) -> Located {
        if base == Some(two) {
            return one.clone();
        }
        if base == Some(one) {
            return two.clone();
        }
        let merged = note::merge(base.map(|base| &base.entry), &one.entry, &two.entry);
        if merged.conflict.is_some()
            && let Some(corrected) = self.corrected(base, [one, two], sides, &merged.entry)
        {
            return corrected;
        }
        let mut entry = merged.entry;
        let place = self.place(base, one, two);
        let was_archived = one.place != place || two.place != place;
        if place == Place::Topics && was_archived && entry.meta().superseded_by.is_some() {
            let mut live = entry.clone();
            // One that cannot be changed keeps the key, which means nothing outside the archive.
            if live.update(|meta| meta.superseded_by = None).is_ok() {
                entry = live;
            }
        }
        // Of two files with the same bytes and different names: the greater name, whoever asks.
        let wins = match one.entry == two.entry {
            true => one.name >= two.name,
            false => *later_first(&one.entry, &two.entry).0 == one.entry,
        };
        let (winner, other) = if wins { (one, two) } else { (two, one) };
        let base_name = base.map(Located::own_name);
        let name = match *pick(base_name.as_ref(), &winner.own_name(), &other.own_name()) {
            Some(own) => own.to_owned(),
            None => entry.meta().file_name(),
        };
        let located = Located { place, name, entry };
        self.conflicts.extend(merged.conflict);
        self.unmerged.extend(merged.unmerged.map(|bytes| (located.path(), bytes)));
        located
    }

    /// The note of the side that corrected it, where the lines clash only because the other side merged further notes into
    /// it. These come back, so what each of them says stays in use.
    fn corrected(
        &mut self,
        base: Option<&Located>,
        [one, two]: [&Located; 2],
        sides: [&Side; 2],
        both: &Entry,
    ) -> Option<Located> {
        let base = &base?.entry;
        let known = &base.meta().aliases;
        let [by_one, by_two] = [one, two].map(|side| {
            let aliases = side.entry.meta().aliases.iter();
            aliases.filter(|alias| !known.contains(alias)).cloned().collect::<Vec<_>>()
        });
        let (corrected, other, merged, side) = match (by_one.is_empty(), by_two.is_empty()) {
            (true, false) => (one, two, by_two, sides[1]),
            (false, true) => (two, one, by_one, sides[0]),
            _ => return None,
        };
        // What a person has written there, before the merge or since, would be gone with it. The seal of a note that was
        // theirs from the start does not tell: each of its sentences must be in the base, or in a text that stays.
        let parts = merged.iter().filter_map(|id| side.notes.get(id)).map(|part| &part.entry);
        let stays: BTreeSet<String> = parts.chain([base, &corrected.entry]).flat_map(sentences).collect();
        let is_own = other.entry.meta().own(|| false).is_some();
        if other.entry.is_edited() || is_own && !sentences(&other.entry).is_subset(&stays) {
            return None;
        }
        let says = corrected.entry.meta();
        let mut entry = both.clone();
        entry.set_body(corrected.entry.body());
        let is_changed = entry.update(|meta| {
            meta.title.clone_from(&says.title);
            meta.summary.clone_from(&says.summary);
            meta.aliases.clone_from(&says.aliases);
            meta.written.clone_from(&says.written);
            meta.by = says.by;
        });
        is_changed.ok()?;
        let id = &says.id;
        self.said.push(format!(
            "{id} \"{}\" was merged with other notes on one machine and corrected on another; the correction stays, and \
             the others are back",
            one_line(&says.title, 80)
        ));
        self.returned.extend(merged);
        Some(Located { entry, ..corrected.clone() })
    }

    /// The notes of merges that were undone leave the archive.
    fn bring_back(&mut self) {
        for id in std::mem::take(&mut self.returned) {
            let Some(note) = self.notes.get_mut(&id).filter(|note| note.place == Place::Archive) else {
                continue;
            };
            if note.entry.update(|meta| meta.superseded_by = None).is_ok() {
                note.place = Place::Topics;
            }
        }
    }

    /// An edit brings a note back from the archive that the other side has put it into.
    fn place(&mut self, base: Option<&Located>, one: &Located, two: &Located) -> Place {
        let Some(base) = base else { return one.place.min(two.place) };
        if one.place == two.place {
            return one.place;
        }
        let (archived, live) = if one.place == Place::Archive { (one, two) } else { (two, one) };
        if base.place == Place::Archive || live.is_edited_since(base) {
            if base.place == Place::Topics {
                let is_merged = archived.entry.meta().superseded_by.is_some();
                self.say_edited(live, if is_merged { "merged into another one" } else { "archived" });
            }
            return Place::Topics;
        }
        Place::Archive
    }

    /// An alias leads to one note, and never to a note other than the one that is in use under that id.
    fn settle_aliases(&mut self) {
        let mut holders: BTreeMap<EntryId, Vec<EntryId>> = BTreeMap::new();
        for (id, note) in &self.notes {
            for alias in &note.entry.meta().aliases {
                holders.entry(alias.clone()).or_default().push(id.clone());
            }
        }
        for (alias, holders) in holders {
            let own = self.notes.get(&alias);
            let is_in_use = own.is_some_and(|note| note.place == Place::Topics);
            if !is_in_use && holders.len() == 1 {
                continue;
            }
            let successor = own.and_then(|note| note.entry.meta().superseded_by.clone());
            let keeper = match is_in_use {
                true => None,
                false => successor.filter(|id| holders.contains(id)).or_else(|| holders.first().cloned()),
            };
            for id in holders.iter().filter(|id| Some(*id) != keeper.as_ref()) {
                if let Some(note) = self.notes.get_mut(id) {
                    // A front matter that cannot be changed keeps the alias; the doctor tells.
                    let _ = note.entry.update(|meta| meta.aliases.retain(|held| *held != alias));
                }
            }
        }
    }
}

/// Those of each line: a merge joins lines and does not wrap them.
fn sentences(note: &Entry) -> BTreeSet<String> {
    let (title, summary, body) = note::says(note);
    let body = String::from_utf8_lossy(body);
    [title, summary, &body].into_iter().flat_map(str::lines).flat_map(sentences_of_note).collect()
}

#[cfg(test)]
mod tests;
