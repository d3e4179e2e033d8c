//! Each operation: what it makes of its notes, or why it is not done.

use crate::base::error::{Error, Result};
use crate::memory::defrag::plan::drafts::{Draft, Drafts};
use crate::memory::defrag::plan::meta::{cool, join};
use crate::memory::defrag::plan::planned::{Look, Planned};
use crate::memory::defrag::plan::written::Written;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::reply::{Op, Operation, Text};
use crate::memory::links::new_id;
use crate::store::entry::{Entry, EntryId, Meta, Tier, one_line};
use crate::store::persistence::Place;
use crate::store::revision::{Revision, Version};
use std::collections::{BTreeMap, BTreeSet};

/// Of so many notes one may be archived without an successor in a run: 10 %.
const ONE_IN: usize = 10;

impl Drafts<'_> {
    /// `None`: nothing would change.
    pub(super) fn planned(
        &mut self,
        operation: &Operation,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Planned>> {
        let op = operation.op();
        if op == Op::Tier && !self.known.allows.tiers {
            return Err(Error::refused("tiers are decided in the last call, when all notes are seen"));
        }
        if op != Op::Tier && !self.known.allows.texts {
            return Err(Error::refused("this call is about tiers alone"));
        }
        let ids =
            operation.ids().into_iter().map(|id| self.resolved(id, op)).collect::<Result<Vec<_>, _>>()?;
        let drafts: Vec<(EntryId, Draft)> =
            ids.iter().filter_map(|id| Some((id.clone(), self.drafts.get(id)?.clone()))).collect();
        let planned = match operation {
            Operation::Merge { text, .. } => self.merge(&ids, text, warnings),
            Operation::Split { into, .. } => self.split(&ids[0], into, warnings),
            Operation::Rename { title, .. } => self.rename(&ids[0], title),
            Operation::Retag { tags, .. } => self.retag(&ids[0], tags),
            Operation::Rewrite { summary, body, .. } => self.rewrite(&ids[0], summary, body, warnings),
            Operation::Archive { reason, .. } => self.archive(&ids[0], reason),
            Operation::Tier { tier, rank, .. } => self.tier(&ids[0], *tier, *rank),
        };
        // One that fails half-way leaves its notes as they were, for the operations after it.
        if planned.is_err() {
            self.drafts.extend(drafts);
        }
        planned
    }

    fn merge(&mut self, ids: &[EntryId], text: &Text, warnings: &mut Vec<String>) -> Result<Option<Planned>> {
        let mut seen = BTreeSet::new();
        let ids: Vec<EntryId> = ids.iter().filter(|id| seen.insert((*id).clone())).cloned().collect();
        let [successor, others @ ..] = &ids[..] else { return Err(Error::refused("it names no note")) };
        if others.is_empty() {
            return Err(Error::refused("it names one note alone"));
        }
        let reach = |id: &EntryId| self.draft(id).map(|draft| Reach::of(draft.entry.meta()));
        let whose = reach(successor)?;
        for id in others {
            if reach(id)? != whose {
                return Err(Error::refused(format!(
                    "{successor} and {id} reach differently far: scope or repository differ"
                )));
            }
            let name = &self.draft(id)?.name;
            if self.known.is_taken(Place::Archive, name) {
                return Err(Error::refused(format!("archive/{name} exists already")));
            }
        }
        let from = ids.iter().filter_map(|id| self.look(id, Place::Topics)).collect();
        let written = self.written(text, &ids, &BTreeMap::new(), warnings);
        let gone: BTreeSet<&EntryId> = ids.iter().collect();
        let mut lost = Vec::new();
        for id in &ids {
            lost.extend(self.lost(id, std::slice::from_ref(&written), &gone)?);
        }
        let at = self.known.found.at.as_millisecond();
        let mut entry = self.draft(successor)?.entry.clone();
        let metas: Vec<Meta> =
            others.iter().filter_map(|id| self.drafts.get(id)).map(|d| d.entry.meta().clone()).collect();
        entry.set_body(written.body.as_bytes());
        entry.update(|meta| {
            written.fill(meta, at);
            for other in &metas {
                join(meta, other);
            }
            cool(meta, meta.tier);
        })?;
        let mut revisions = vec![self.revise(successor, Op::Merge, entry)?];
        for id in others {
            revisions.push(self.put_away(id, Op::Merge, Some(successor))?);
        }
        let into = self.look(successor, Place::Topics).into_iter().collect();
        Ok(Some(Planned { op: Op::Merge, from, into, reason: String::new(), lost, revisions }))
    }

    fn split(&mut self, id: &EntryId, into: &[Text], warnings: &mut Vec<String>) -> Result<Option<Planned>> {
        if into.len() < 2 {
            return Err(Error::refused("it makes fewer than two notes"));
        }
        let at = self.known.found.at.as_millisecond();
        let mut taken = self.known.found.ids.clone();
        // The first part keeps the id.
        let titles: Vec<String> =
            into.iter().map(|text| one_line(&(self.known.clean)(&text.title))).collect();
        let mut new = vec![id.clone()];
        new.extend(titles.iter().skip(1).map(|title| new_id(title, at, &mut taken)));
        let labels: BTreeMap<String, EntryId> =
            titles.iter().cloned().zip(new.iter().cloned()).rev().collect();
        let known = std::mem::replace(&mut self.known.found.ids, taken);
        let mut parts: Vec<Written> =
            into.iter().map(|text| self.written(text, std::slice::from_ref(id), &labels, warnings)).collect();
        let lost = match self.lost(id, &parts, &BTreeSet::from([id])) {
            Ok(lost) => lost,
            Err(why) => {
                self.known.found.ids = known;
                return Err(why);
            }
        };
        // Whoever follows a link to the note finds the rest of it.
        let first = &mut parts[0].body;
        let unlinked: Vec<String> =
            new[1..].iter().map(|id| format!("[[{id}]]")).filter(|link| !first.contains(link)).collect();
        if !unlinked.is_empty() {
            *first = format!("{}\n\nSee also {}.\n", first.trim_end(), unlinked.join(", "));
        }
        let from = self.look(id, Place::Topics).into_iter().collect();
        let old = self.draft(id)?.entry.clone();
        let mut revisions = Vec::new();
        let mut looks = Vec::new();
        for (new, part) in new.iter().zip(&parts).skip(1) {
            let mut meta = Meta {
                scope: old.meta().scope,
                pinned: old.meta().pinned,
                tier: old.meta().tier,
                rank: old.meta().rank,
                status: old.meta().status,
                tags: if part.tags.is_empty() { old.meta().tags.clone() } else { Vec::new() },
                sources: old.meta().sources.clone(),
                created_at: at,
                ..Meta::new(new.clone())
            };
            part.fill(&mut meta, at);
            let entry = Entry::new(meta, part.body.as_bytes());
            entry.fits()?;
            looks.push(Look::of(&entry, Place::Topics));
            let after = Version::new(Place::Topics, &entry.meta().file_name(), &entry);
            revisions.push(Revision { id: new.clone(), before: None, after: Some(after) });
        }
        let mut entry = old;
        entry.set_body(parts[0].body.as_bytes());
        entry.update(|meta| parts[0].fill(meta, at))?;
        // Last: until then the note stands whole.
        revisions.push(self.revise(id, Op::Split, entry)?);
        looks.splice(0..0, self.look(id, Place::Topics));
        Ok(Some(Planned { op: Op::Split, from, into: looks, reason: String::new(), lost, revisions }))
    }

    fn rewrite(
        &mut self,
        id: &EntryId,
        summary: &str,
        body: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Planned>> {
        let old = self.draft(id)?.entry.clone();
        let text = Text {
            title: old.meta().title.clone(),
            summary: summary.to_owned(),
            tags: Vec::new(),
            body: body.to_owned(),
        };
        let mut written = self.written(&text, std::slice::from_ref(id), &BTreeMap::new(), warnings);
        written.title.clone_from(&old.meta().title);
        let lost = self.lost(id, std::slice::from_ref(&written), &BTreeSet::new())?;
        let at = self.known.found.at.as_millisecond();
        self.one(id, Op::Rewrite, lost, |entry| {
            entry.set_body(written.body.as_bytes());
            let is_other = entry.body() != old.body()
                || !written.summary.is_empty() && written.summary != old.meta().summary;
            if is_other { entry.update(|meta| written.fill(meta, at)) } else { Ok(()) }
        })
    }

    fn rename(&mut self, id: &EntryId, title: &str) -> Result<Option<Planned>> {
        self.holds_no_secret(id, &self.draft(id)?.entry.meta().title)?;
        let title = one_line(&(self.known.clean)(title));
        let at = self.known.found.at.as_millisecond();
        self.one(id, Op::Rename, Vec::new(), |entry| {
            entry.update(|meta| {
                if meta.title != title {
                    meta.title = title;
                    meta.updated_at = at;
                }
            })
        })
    }

    fn retag(&mut self, id: &EntryId, tags: &[String]) -> Result<Option<Planned>> {
        let at = self.known.found.at.as_millisecond();
        self.one(id, Op::Retag, Vec::new(), |entry| {
            entry.update(|meta| {
                if meta.tags != tags {
                    meta.tags = tags.to_vec();
                    meta.updated_at = at;
                }
            })
        })
    }

    /// How much a note is shown is no change of what it says: it stays as old as it was.
    fn tier(&mut self, id: &EntryId, tier: Tier, rank: Option<u8>) -> Result<Option<Planned>> {
        if self.draft(id)?.entry.meta().pinned && tier != Tier::Hot {
            return Err(Error::refused(format!("{id} is pinned, and stays hot")));
        }
        self.one(id, Op::Tier, Vec::new(), |entry| {
            entry.update(|meta| {
                cool(meta, tier);
                meta.rank = rank.or(meta.rank);
            })
        })
    }

    fn archive(&mut self, id: &EntryId, reason: &str) -> Result<Option<Planned>> {
        if self.draft(id)?.entry.meta().pinned {
            return Err(Error::refused(format!("{id} is pinned")));
        }
        let most = self.known.total / ONE_IN;
        if self.known.archived >= most && !self.known.allows.loss {
            let total = self.known.total;
            return Err(Error::refused(format!(
                "a run archives at most {most} of {total} notes (--allow-loss: more)"
            )));
        }
        let from = self.look(id, Place::Topics).into_iter().collect();
        let revisions = vec![self.put_away(id, Op::Archive, None)?];
        self.known.archived += 1;
        let into = self.look(id, Place::Archive).into_iter().collect();
        let reason = one_line(&(self.known.clean)(reason));
        Ok(Some(Planned { op: Op::Archive, from, into, reason, lost: Vec::new(), revisions }))
    }

    /// A change of one note in its place.
    fn one(
        &mut self,
        id: &EntryId,
        op: Op,
        lost: Vec<String>,
        change: impl FnOnce(&mut Entry) -> Result<()>,
    ) -> Result<Option<Planned>> {
        let old = &self.draft(id)?.entry;
        let mut entry = old.clone();
        change(&mut entry)?;
        if entry == *old {
            return Ok(None);
        }
        let from = self.look(id, Place::Topics).into_iter().collect();
        let revisions = vec![self.revise(id, op, entry)?];
        let into = self.look(id, Place::Topics).into_iter().collect();
        Ok(Some(Planned { op, from, into, reason: String::new(), lost, revisions }))
    }
}
