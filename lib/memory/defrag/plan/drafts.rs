//! The notes as the operations so far leave them.

use crate::base::error::{Error, Result};
use crate::memory::defrag::plan::meta::cool;
use crate::memory::defrag::plan::planned::{Known, Look};
use crate::memory::defrag::reply::Op;
use crate::store::entry::{Entry, EntryId, Tier};
use crate::store::persistence::Place;
use crate::store::revision::{Revision, Version};
use std::collections::{BTreeMap, BTreeSet};

/// A note as the operations so far leave it.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(super) name: String,
    pub(super) entry: Entry,
    /// What was done with it, for which there is no second time.
    done: BTreeSet<Op>,
    /// It is in the archive now.
    is_away: bool,
}

/// All notes of a call, and what is known of them.
pub(crate) struct Drafts<'a> {
    pub(super) known: Known<'a>,
    pub(super) drafts: BTreeMap<EntryId, Draft>,
    /// Notes that are shown, but have changed or vanished since.
    changed: BTreeSet<EntryId>,
}

impl<'a> Drafts<'a> {
    pub(super) fn of(mut known: Known<'a>) -> Drafts<'a> {
        let mut drafts = BTreeMap::new();
        let mut changed: BTreeSet<EntryId> = known.shown.keys().chain(known.listed.keys()).cloned().collect();
        for note in std::mem::take(&mut known.found.notes) {
            if known.shown.get(note.id()).or_else(|| known.listed.get(note.id())) == Some(&note.mark) {
                changed.remove(note.id());
                let id = note.id().clone();
                drafts.insert(
                    id,
                    Draft { name: note.name, entry: note.entry, done: BTreeSet::new(), is_away: false },
                );
            }
        }
        Drafts { known, drafts, changed }
    }

    /// The note that is meant, if `op` may be done with it.
    pub(super) fn resolved(&self, id: &str, op: Op) -> Result<EntryId> {
        let said = crate::base::text::one_line(id, 40);
        let id =
            EntryId::parse(id).ok_or_else(|| Error::refused(format!("\"{said}\" is not a note's id")))?;
        if self.changed.contains(&id) {
            return Err(Error::refused(format!("{id} has been changed since it was shown")));
        }
        let draft = self
            .drafts
            .get(&id)
            .ok_or_else(|| Error::refused(format!("no note with the id {id} was shown")))?;
        if op != Op::Tier && !self.known.shown.contains_key(&id) {
            return Err(Error::refused(format!("of {id} only a line was shown")));
        }
        if draft.is_away {
            return Err(Error::refused(format!("{id} goes to the archive in this reply")));
        }
        let clash = draft.done.iter().find(|done| !go_together(**done, op));
        match clash {
            Some(done) => Err(Error::refused(format!("{id} is in a {} already", done.name()))),
            None => Ok(id),
        }
    }

    /// Nothing else is to be done with it that does not go together with `op`.
    pub(super) fn do_with(&mut self, id: &EntryId, op: Op) {
        if let Some(draft) = self.drafts.get_mut(id) {
            draft.done.insert(op);
        }
    }

    pub(super) fn draft(&self, id: &EntryId) -> Result<&Draft> {
        self.drafts.get(id).ok_or_else(|| Error::refused(format!("no note with the id {id} was shown")))
    }

    pub(super) fn look(&self, id: &EntryId, place: Place) -> Option<Look> {
        self.drafts.get(id).map(|draft| Look::of(&draft.entry, place))
    }

    /// Puts `entry` in the place of a note: the revision that does so.
    pub(super) fn revise(&mut self, id: &EntryId, op: Op, entry: Entry) -> Result<Revision> {
        let draft = self.drafts.get_mut(id).ok_or_else(|| Error::refused("it is gone"))?;
        let before = Version::new(Place::Topics, &draft.name, &draft.entry);
        // A name that somebody gave the file by hand stays until what it is made of changes.
        let name = entry.meta().file_name();
        if draft.entry.meta().file_name() != name && !self.known.is_taken(Place::Topics, &name) {
            draft.name = name;
        }
        draft.entry = entry;
        draft.done.insert(op);
        let after = Version::new(Place::Topics, &draft.name, &draft.entry);
        Ok(Revision { before: Some(before), after: Some(after) })
    }

    /// Moves a note to the archive, for the sake of `successor` if there is one.
    pub(super) fn put_away(&mut self, id: &EntryId, op: Op, successor: Option<&EntryId>) -> Result<Revision> {
        let draft = self.drafts.get_mut(id).ok_or_else(|| Error::refused("it is gone"))?;
        if self.known.is_taken(Place::Archive, &draft.name) {
            return Err(Error::refused(format!("archive/{} exists already", draft.name)));
        }
        let before = Version::new(Place::Topics, &draft.name, &draft.entry);
        let mut entry = draft.entry.clone();
        entry.update(|meta| {
            if let Some(successor) = successor {
                meta.superseded_by = Some(successor.clone());
            }
            if meta.tier == Tier::Hot {
                cool(meta, Tier::Cold);
            }
        })?;
        let after = Version::new(Place::Archive, &draft.name, &entry);
        draft.entry = entry;
        draft.done.insert(op);
        draft.is_away = true;
        Ok(Revision { before: Some(before), after: Some(after) })
    }
}

/// May both be done with one note? A merge, a split, an archive and a rewrite each decide what becomes of its text.
fn go_together(done: Op, op: Op) -> bool {
    let is_whole = |op| matches!(op, Op::Merge | Op::Split | Op::Archive);
    let is_structural = |op| is_whole(op) || op == Op::Rewrite;
    match (done, op) {
        (Op::Archive, _) | (_, Op::Archive) => false,
        (one, other) if one == other => false,
        (one, other) if is_structural(one) && is_structural(other) => false,
        // A merge and a split say titles and tags themselves.
        (one, Op::Rename | Op::Retag) | (Op::Rename | Op::Retag, one) if is_whole(one) => false,
        _ => true,
    }
}
