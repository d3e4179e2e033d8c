//! The notes as the operations so far leave them.

use crate::base::error::{Error, Result};
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::plan::planned::{Allows, Found, NoteBrief};
use crate::memory::defrag::reply::Op;
use crate::memory::defrag::work::Work;
use crate::store::entry::{Entry, EntryId, Meta, Status, Tier, add_missing};
use crate::store::persistence::Place;
use crate::store::revision::{Revision, Version};
use std::collections::{BTreeMap, BTreeSet};

/// A note as the operations so far leave it.
#[derive(Clone)]
pub struct Draft {
    pub(super) name: String,
    pub(super) entry: Entry,
    /// What was done with it, for which there is no second time.
    done: BTreeSet<Op>,
    /// It is in the archive now.
    is_away: bool,
}

impl Draft {
    fn place(&self) -> Place {
        if self.is_away { Place::Archive } else { Place::Topics }
    }
}

/// All notes of a call, and what is known of them.
pub struct Drafts<'a> {
    pub(super) found: Found,
    pub(super) work: &'a Work,
    pub(super) allows: Allows,
    /// Takes secrets out of what the model wrote.
    pub(super) clean: &'a dyn Fn(&str) -> String,
    pub(super) drafts: BTreeMap<EntryId, Draft>,
    /// Notes that are shown, but have changed or vanished since.
    changed: BTreeSet<EntryId>,
    /// How many notes are archived without a successor.
    pub(super) archived: usize,
    pub(super) warnings: Vec<String>,
}

impl<'a> Drafts<'a> {
    pub(super) fn of(
        mut found: Found,
        work: &'a Work,
        allows: Allows,
        clean: &'a dyn Fn(&str) -> String,
    ) -> Drafts<'a> {
        let mut drafts = BTreeMap::new();
        let mut changed: BTreeSet<EntryId> = work.notes().cloned().collect();
        for CorpusNote { name, entry, mark } in std::mem::take(&mut found.notes) {
            let id = entry.meta().id.clone();
            if work.shown.get(&id).or_else(|| work.listed.get(&id)) == Some(&mark) {
                changed.remove(&id);
                drafts.insert(id, Draft { name, entry, done: BTreeSet::new(), is_away: false });
            }
        }
        let archived = work.own.archived;
        Drafts { found, work, allows, clean, drafts, changed, archived, warnings: Vec::new() }
    }

    /// The time that every note bears, in Unix milliseconds.
    pub(super) fn at(&self) -> i64 {
        self.found.at.as_millisecond()
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
        if op != Op::Tier && !self.work.shown.contains_key(&id) {
            return Err(Error::refused(format!("only a line of {id} was shown")));
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

    /// The notes in few words, as they are now.
    pub(super) fn briefs<'i>(&self, ids: impl IntoIterator<Item = &'i EntryId>) -> Vec<NoteBrief> {
        let drafts = ids.into_iter().filter_map(|id| self.drafts.get(id));
        drafts.map(|draft| NoteBrief::of(&draft.entry, draft.place())).collect()
    }

    /// Puts `entry` in the place of a note: the revision that does so.
    pub(super) fn revise(&mut self, id: &EntryId, op: Op, entry: Entry) -> Result<Revision> {
        let draft = self.drafts.get_mut(id).ok_or_else(|| Error::refused("it is gone"))?;
        let before = Version::new(Place::Topics, &draft.name, &draft.entry);
        // A name that somebody gave the file by hand stays until what it is made of changes.
        let name = entry.meta().file_name();
        if draft.entry.meta().file_name() != name && !self.found.is_taken(Place::Topics, &name) {
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
        if self.found.is_taken(Place::Archive, &draft.name) {
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

/// `meta` takes in what another note's says. If nothing of its text is taken over (`is_said`), it is no source, either.
pub(super) fn join(meta: &mut Meta, other: &Meta, is_said: bool) {
    if is_said {
        add_missing(&mut meta.tags, other.tags.iter().cloned());
        add_missing(&mut meta.outside, other.outside.iter().cloned());
        add_missing(&mut meta.sources, other.sources.iter().cloned());
    }
    let ids = std::iter::once(&other.id).chain(&other.aliases).filter(|id| **id != meta.id);
    add_missing(&mut meta.aliases, ids.cloned());
    meta.pinned |= other.pinned;
    meta.rank = meta.rank.max(other.rank);
    meta.used = meta.used.saturating_add(other.used);
    meta.last_used = meta.last_used.max(other.last_used);
    meta.created_at = meta.created_at.min(other.created_at);
    // The most shown of them says how much it is shown.
    if warmth(other.tier) > warmth(meta.tier) {
        cool(meta, other.tier);
    }
}

fn warmth(tier: Tier) -> u8 {
    match tier {
        Tier::Cold => 0,
        Tier::Warm => 1,
        Tier::Hot => 2,
    }
}

/// Promoted exactly while hot.
pub(super) fn cool(meta: &mut Meta, tier: Tier) {
    meta.tier = tier;
    meta.status = match (tier, meta.status) {
        (Tier::Hot, _) => Status::Promoted,
        (Tier::Warm | Tier::Cold, Status::Promoted) => Status::Consolidated,
        (Tier::Warm | Tier::Cold, status) => status,
    };
}
