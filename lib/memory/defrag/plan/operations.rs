//! Each operation: what it makes of its notes, or why it is not done.

use crate::base::error::{Error, Result};
use crate::memory::defrag::plan::drafts::{Draft, Drafts, cool, join};
use crate::memory::defrag::plan::planned::{NoteBrief, Planned, Verdict};
use crate::memory::defrag::plan::written::{Lost, fill};
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::reply::{Op, Operation};
use crate::memory::links::new_id;
use crate::memory::pipeline::reply::Text;
use crate::store::change::old_text;
use crate::store::entry::{Entry, EntryId, Meta, Tier, one_line};
use crate::store::persistence::Place;
use crate::store::revision::{Revision, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

/// Of so many notes one may be archived without a successor in a run: 10 %.
const ONE_IN: usize = 10;

impl Drafts<'_> {
    pub(super) fn planned(&mut self, operation: &Operation) -> Result<Verdict> {
        let op = operation.op;
        if op == Op::Tier && !self.allows.tiers {
            return Err(Error::refused("tiers are decided in the last call, when all notes are seen"));
        }
        if op != Op::Tier && !self.allows.texts {
            return Err(Error::refused("this call is about tiers alone"));
        }
        let ids = operation.ids.iter().map(|id| self.resolved(id, op)).collect::<Result<Vec<_>, _>>()?;
        let drafts: Vec<(EntryId, Draft)> =
            ids.iter().filter_map(|id| Some((id.clone(), self.drafts.get(id)?.clone()))).collect();
        let known = (op == Op::Split).then(|| self.found.ids.clone());
        let planned = match op {
            Op::Merge => self.merge(&ids, operation),
            Op::Split => self.split(&ids[0], operation),
            Op::Rename | Op::Retag | Op::Rewrite => self.change(&ids[0], operation),
            Op::Archive => self.archive(&ids[0], &operation.reason),
            Op::Tier => self.tier(&ids[0], operation),
        };
        match &planned {
            // One that fails half-way leaves its notes as they were, for the operations after it.
            Err(_) => self.drafts.extend(drafts),
            // What a person decides about is not decided about twice.
            Ok(Verdict::Waits(_)) => ids.iter().for_each(|id| self.do_with(id, op)),
            Ok(Verdict::Idle | Verdict::Made(_)) => {}
        }
        // The parts of a split that is not made have no ids.
        if let Some(known) = known.filter(|_| !matches!(planned, Ok(Verdict::Made(_)))) {
            self.found.ids = known;
        }
        planned
    }

    fn merge(&mut self, ids: &[EntryId], operation: &Operation) -> Result<Verdict> {
        let mut seen = BTreeSet::new();
        let mut ids: Vec<EntryId> = ids.iter().filter(|id| seen.insert((*id).clone())).cloned().collect();
        // What a person made their own keeps its id.
        ids.sort_by_key(|id| !self.is_kept(id));
        let [successor, others @ ..] = &ids[..] else { return Err(Error::refused("it names no note")) };
        if others.is_empty() {
            return Err(Error::refused("it names one note alone"));
        }
        for id in others {
            self.go_together(successor, id)?;
        }
        let from = self.briefs(&ids);
        let text = self.written(&operation.texts[0], &ids, &BTreeMap::new());
        let lost = self.lost(&ids, from_ref(&text), &operation.gone)?;
        let parts: Vec<Entry> =
            ids.iter().filter_map(|id| Some(self.drafts.get(id)?.entry.clone())).collect();
        let has_kept = parts[0].kept().is_some();
        let mut entry = parts[0].clone();
        entry.set_body(text.body.as_bytes());
        entry.update(|meta| {
            fill(meta, &text, self.at());
            for other in &parts[1..] {
                // Of the others nothing is in the text.
                let is_said = !has_kept || other.kept().is_some();
                join(meta, other.meta(), is_said);
            }
            cool(meta, meta.tier);
        })?;
        if let Some(waits) = self.waits(&ids, from_ref(&entry))? {
            return Ok(waits);
        }
        self.finish(&mut entry, &parts)?;
        let copy = self.old_text(successor, &lost)?;
        let mut revisions = vec![self.revise(successor, Op::Merge, entry)?];
        revisions.extend(copy);
        for id in others {
            revisions.push(self.put_away(id, Op::Merge, Some(successor))?);
        }
        let into = self.briefs([successor]);
        Ok(made(Op::Merge, from, into, lost, revisions))
    }

    /// May these be one note?
    fn go_together(&self, successor: &EntryId, id: &EntryId) -> Result<()> {
        let (meta, other) = (self.draft(successor)?.entry.meta(), self.draft(id)?.entry.meta());
        if Reach::of(other) != Reach::of(meta) {
            return Err(Error::refused(format!(
                "{successor} and {id} reach differently far: scope or repository differ"
            )));
        }
        if other.until != meta.until {
            return Err(Error::refused(format!("{successor} and {id} hold until different days")));
        }
        let name = &self.draft(id)?.name;
        if self.found.is_taken(Place::Archive, name) {
            return Err(Error::refused(format!("archive/{name} exists already")));
        }
        Ok(())
    }

    fn split(&mut self, id: &EntryId, Operation { texts, gone, .. }: &Operation) -> Result<Verdict> {
        if texts.len() < 2 {
            return Err(Error::refused("it makes fewer than two notes"));
        }
        let at = self.at();
        // The first part keeps the id.
        let titles: Vec<String> = texts.iter().map(|text| one_line(&(self.clean)(&text.title))).collect();
        let mut new = vec![id.clone()];
        for title in titles.iter().skip(1) {
            new.push(new_id(title, at, &mut self.found.ids));
        }
        let ids = new.iter().map(ToString::to_string);
        let labels: BTreeMap<String, String> = titles.into_iter().zip(ids).rev().collect();
        let mut parts: Vec<Text> =
            texts.iter().map(|text| self.written(text, from_ref(id), &labels)).collect();
        let lost = self.lost(from_ref(id), &parts, gone)?;
        let old = self.draft(id)?.entry.clone();
        let mut entries = vec![old.clone()];
        entries[0].set_body(parts[0].body.as_bytes());
        entries[0].update(|meta| fill(meta, &parts[0], at))?;
        entries.extend(new.iter().zip(&parts).skip(1).map(|(new, part)| part_of(&old, new, part, at)));
        if let Some(waits) = self.waits(from_ref(id), &entries)? {
            return Ok(waits);
        }
        // Whoever follows a link to the note finds the rest of it.
        let body = &mut parts[0].body;
        let unlinked: Vec<String> =
            new[1..].iter().map(|id| format!("[[{id}]]")).filter(|link| !body.contains(link)).collect();
        if !unlinked.is_empty() {
            *body = format!("{}\n\nSee also {}.\n", body.trim_end(), unlinked.join(", "));
        }
        entries[0].set_body(body.as_bytes());
        for entry in &mut entries {
            self.finish(entry, from_ref(&old))?;
            entry.fits()?;
        }
        let mut revisions = Vec::new();
        let mut into = Vec::new();
        for entry in &entries[1..] {
            into.push(NoteBrief::of(entry, Place::Topics));
            let after = Version::new(Place::Topics, &entry.meta().file_name(), entry);
            revisions.push(Revision { before: None, after: Some(after) });
        }
        revisions.extend(self.old_text(id, &lost)?);
        let from = self.briefs([id]);
        // Last: until then the note stands whole.
        revisions.push(self.revise(id, Op::Split, entries.swap_remove(0))?);
        into.splice(0..0, self.briefs([id]));
        Ok(made(Op::Split, from, into, lost, revisions))
    }

    /// A change of what one note says, in its place.
    fn change(&mut self, id: &EntryId, operation: &Operation) -> Result<Verdict> {
        let (op, at) = (operation.op, self.at());
        let old = self.draft(id)?.entry.clone();
        let text = &operation.texts[0];
        let mut entry = old.clone();
        let mut lost = Lost::default();
        match op {
            Op::Rename => {
                self.holds_no_secret(id, &old.meta().title)?;
                let title = one_line(&(self.clean)(&text.title));
                if title != old.meta().title {
                    entry.update(|meta| (meta.title, meta.updated_at) = (title, at))?;
                }
            }
            Op::Retag if text.tags != old.meta().tags => {
                entry.update(|meta| (meta.tags, meta.updated_at) = (text.tags.clone(), at))?;
            }
            Op::Rewrite => {
                let title = old.meta().title.clone();
                let text = Text { title: title.clone(), ..text.clone() };
                let text = Text { title, ..self.written(&text, from_ref(id), &BTreeMap::new()) };
                lost = self.lost(from_ref(id), from_ref(&text), &operation.gone)?;
                entry.set_body(text.body.as_bytes());
                let is_other = !text.summary.is_empty() && text.summary != old.meta().summary;
                if entry.body() != old.body() || is_other {
                    entry.update(|meta| fill(meta, &text, at))?;
                }
            }
            _ => {}
        }
        if entry == old {
            return Ok(Verdict::Idle);
        }
        if let Some(waits) = self.waits(from_ref(id), from_ref(&entry))? {
            return Ok(waits);
        }
        self.finish(&mut entry, from_ref(&old))?;
        self.revised(id, op, lost, entry)
    }

    /// How much a note is shown is no change of what it says: it stays as old as it was, and whose it was.
    fn tier(&mut self, id: &EntryId, operation: &Operation) -> Result<Verdict> {
        let mut entry = self.draft(id)?.entry.clone();
        let tier = operation.tier.unwrap_or(entry.meta().tier);
        if entry.meta().pinned && tier != Tier::Hot {
            return Err(Error::refused(format!("{id} is pinned, and stays hot")));
        }
        entry.update(|meta| {
            cool(meta, tier);
            meta.rank = operation.rank.or(meta.rank);
        })?;
        self.revised(id, Op::Tier, Lost::default(), entry)
    }

    fn archive(&mut self, id: &EntryId, reason: &str) -> Result<Verdict> {
        let reason = one_line(&(self.clean)(reason));
        if self.draft(id)?.entry.meta().pinned {
            return Err(Error::refused(format!("{id} is pinned")));
        }
        if self.is_kept(id) {
            let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let reasons = vec![format!("it archives the person's own note{because}")];
            return Ok(Verdict::Waits(self.waiting(from_ref(id), &[], reasons)?));
        }
        let total = self.work.own.total;
        let most = total / ONE_IN;
        if self.archived >= most && !self.allows.loss {
            return Err(Error::refused(format!(
                "a run archives at most {most} of {total} notes (--allow-loss: more)"
            )));
        }
        let from = self.briefs([id]);
        let revisions = vec![self.put_away(id, Op::Archive, None)?];
        self.archived += 1;
        let (op, into, (lost, gone)) = (Op::Archive, self.briefs([id]), Default::default());
        Ok(Verdict::Made(Box::new(Planned { op, from, into, reason, lost, gone, revisions })))
    }

    fn revised(&mut self, id: &EntryId, op: Op, lost: Lost, entry: Entry) -> Result<Verdict> {
        if entry == self.draft(id)?.entry {
            return Ok(Verdict::Idle);
        }
        let from = self.briefs([id]);
        let mut revisions: Vec<Revision> = self.old_text(id, &lost)?.into_iter().collect();
        revisions.push(self.revise(id, op, entry)?);
        let into = self.briefs([id]);
        Ok(made(op, from, into, lost, revisions))
    }

    /// Where something of a note no longer holds: puts what it says into the archive, as a note of its own.
    fn old_text(&mut self, id: &EntryId, lost: &Lost) -> Result<Option<Revision>> {
        if !lost.outdated.contains(id) {
            return Ok(None);
        }
        let old = self.draft(id)?.entry.clone();
        let new = new_id(&old.meta().title, self.at(), &mut self.found.ids);
        let mut entry = old_text(&old, new.clone())?;
        entry.update(|meta| cool(meta, Tier::Cold))?;
        let after = Version::new(Place::Archive, &entry.meta().file_name(), &entry);
        Ok(Some(Revision { before: None, after: Some(after) }))
    }
}

/// A part of a split that is a note of its own.
fn part_of(old: &Entry, id: &EntryId, part: &Text, at: i64) -> Entry {
    let old = old.meta();
    let mut meta = Meta {
        scope: old.scope,
        pinned: old.pinned,
        tier: old.tier,
        rank: old.rank,
        until: old.until,
        status: old.status,
        tags: if part.tags.is_empty() { old.tags.clone() } else { Vec::new() },
        sources: old.sources.clone(),
        outside: old.outside.clone(),
        created_at: at,
        ..Meta::new(id.clone())
    };
    fill(&mut meta, part, at);
    Entry::new(meta, part.body.as_bytes())
}

fn made(op: Op, from: Vec<NoteBrief>, into: Vec<NoteBrief>, lost: Lost, revisions: Vec<Revision>) -> Verdict {
    let Lost { facts: lost, gone, .. } = lost;
    Verdict::Made(Box::new(Planned { op, from, into, reason: String::new(), lost, gone, revisions }))
}
