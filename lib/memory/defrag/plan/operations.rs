//! Each operation: what it makes of its notes, or why it is not done.

use crate::base::error::{Error, Result};
use crate::memory::defrag::plan::drafts::{Draft, Drafts};
use crate::memory::defrag::plan::meta::{cool, join};
use crate::memory::defrag::plan::planned::{Look, Planned, Verdict};
use crate::memory::defrag::plan::written::{Lost, Written};
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::reply::{Op, Operation, Text};
use crate::memory::links::new_id;
use crate::memory::record::NoteText;
use crate::store::change::old_text;
use crate::store::entry::{Entry, EntryId, Meta, Tier, one_line};
use crate::store::persistence::Place;
use crate::store::revision::{Revision, Version};
use jiff::civil::Date;
use std::collections::{BTreeMap, BTreeSet};

/// Of so many notes one may be archived without an successor in a run: 10 %.
const ONE_IN: usize = 10;

impl Drafts<'_> {
    pub(super) fn planned(&mut self, operation: &Operation, warnings: &mut Vec<String>) -> Result<Verdict> {
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
            Operation::Merge { text, gone, .. } => self.merge(&ids, text, gone, warnings),
            Operation::Split { into, gone, .. } => self.split(&ids[0], into, gone, warnings),
            Operation::Rename { title, .. } => self.rename(&ids[0], title),
            Operation::Retag { tags, .. } => self.retag(&ids[0], tags),
            Operation::Rewrite { summary, body, gone, .. } => {
                self.rewrite(&ids[0], summary, body, gone, warnings)
            }
            Operation::Archive { reason, .. } => self.archive(&ids[0], reason),
            Operation::Tier { tier, rank, .. } => self.tier(&ids[0], *tier, *rank),
        };
        match &planned {
            // One that fails half-way leaves its notes as they were, for the operations after it.
            Err(_) => self.drafts.extend(drafts),
            // What a person decides about is not decided about twice.
            Ok(Verdict::Waits(_)) => ids.iter().for_each(|id| self.do_with(id, op)),
            Ok(Verdict::Idle | Verdict::Made(_)) => {}
        }
        planned
    }

    fn merge(
        &mut self,
        ids: &[EntryId],
        text: &Text,
        gone: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<Verdict> {
        let mut seen = BTreeSet::new();
        let mut ids: Vec<EntryId> = ids.iter().filter(|id| seen.insert((*id).clone())).cloned().collect();
        // What a person made their own keeps its id.
        ids.sort_by_key(|id| !self.is_kept(id));
        let [successor, others @ ..] = &ids[..] else { return Err(Error::refused("it names no note")) };
        if others.is_empty() {
            return Err(Error::refused("it names one note alone"));
        }
        let (whose, until) = self.reach_and_until(successor)?;
        for id in others {
            let (other, other_until) = self.reach_and_until(id)?;
            if other != whose {
                return Err(Error::refused(format!(
                    "{successor} and {id} reach differently far: scope or repository differ"
                )));
            }
            if other_until != until {
                return Err(Error::refused(format!("{successor} and {id} hold until different days")));
            }
            let name = &self.draft(id)?.name;
            if self.known.is_taken(Place::Archive, name) {
                return Err(Error::refused(format!("archive/{name} exists already")));
            }
        }
        let from = ids.iter().filter_map(|id| self.look(id, Place::Topics)).collect();
        let written = self.written(text, &ids, &BTreeMap::new(), warnings);
        let lost = self.lost(&ids, std::slice::from_ref(&written), gone, warnings)?;
        let at = self.known.found.at.as_millisecond();
        let mut entry = self.draft(successor)?.entry.clone();
        let parts: Vec<Entry> =
            ids.iter().filter_map(|id| self.drafts.get(id)).map(|draft| draft.entry.clone()).collect();
        let has_kept = parts[0].kept().is_some();
        entry.set_body(written.body.as_bytes());
        entry.update(|meta| {
            written.fill(meta, at);
            for other in &parts[1..] {
                // Of the others nothing is in the text.
                let is_said = !has_kept || other.kept().is_some();
                join(meta, other.meta(), is_said);
            }
            cool(meta, meta.tier);
        })?;
        if let Some(waits) = self.waits(&ids, std::slice::from_ref(&entry))? {
            return Ok(waits);
        }
        self.finish(&mut entry, &parts)?;
        let copy = match lost.outdated.contains(successor) {
            true => Some(self.old_text(successor)?),
            false => None,
        };
        let mut revisions = vec![self.revise(successor, Op::Merge, entry)?];
        revisions.extend(copy);
        for id in others {
            revisions.push(self.put_away(id, Op::Merge, Some(successor))?);
        }
        let into = self.look(successor, Place::Topics).into_iter().collect();
        Ok(made(Op::Merge, from, into, lost, revisions))
    }

    fn reach_and_until(&self, id: &EntryId) -> Result<(Reach, Option<Date>)> {
        let meta = self.draft(id)?.entry.meta();
        Ok((Reach::of(meta), meta.until))
    }

    fn split(
        &mut self,
        id: &EntryId,
        into: &[Text],
        gone: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<Verdict> {
        if into.len() < 2 {
            return Err(Error::refused("it makes fewer than two notes"));
        }
        let known = self.known.found.ids.clone();
        let split = self.split_into(id, into, gone, warnings);
        if !matches!(split, Ok(Verdict::Made(_))) {
            self.known.found.ids = known;
        }
        split
    }

    fn split_into(
        &mut self,
        id: &EntryId,
        into: &[Text],
        gone: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<Verdict> {
        let at = self.known.found.at.as_millisecond();
        // The first part keeps the id.
        let titles: Vec<String> =
            into.iter().map(|text| one_line(&(self.known.clean)(&text.title))).collect();
        let mut new = vec![id.clone()];
        for title in titles.iter().skip(1) {
            new.push(new_id(title, at, &mut self.known.found.ids));
        }
        let labels: BTreeMap<String, EntryId> =
            titles.iter().cloned().zip(new.iter().cloned()).rev().collect();
        let mut parts: Vec<Written> =
            into.iter().map(|text| self.written(text, std::slice::from_ref(id), &labels, warnings)).collect();
        let lost = self.lost(std::slice::from_ref(id), &parts, gone, warnings)?;
        let old = self.draft(id)?.entry.clone();
        let mut first = old.clone();
        first.set_body(parts[0].body.as_bytes());
        first.update(|meta| parts[0].fill(meta, at))?;
        let mut entries = vec![first];
        for (new, part) in new.iter().zip(&parts).skip(1) {
            let mut meta = Meta {
                scope: old.meta().scope,
                pinned: old.meta().pinned,
                tier: old.meta().tier,
                rank: old.meta().rank,
                until: old.meta().until,
                status: old.meta().status,
                tags: if part.tags.is_empty() { old.meta().tags.clone() } else { Vec::new() },
                sources: old.meta().sources.clone(),
                outside: old.meta().outside.clone(),
                created_at: at,
                ..Meta::new(new.clone())
            };
            part.fill(&mut meta, at);
            entries.push(Entry::new(meta, part.body.as_bytes()));
        }
        if let Some(waits) = self.waits(std::slice::from_ref(id), &entries)? {
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
        let mut revisions = Vec::new();
        let mut looks = Vec::new();
        for entry in &mut entries {
            self.finish(entry, std::slice::from_ref(&old))?;
            entry.fits()?;
        }
        for entry in &entries[1..] {
            looks.push(Look::of(entry, Place::Topics));
            let after = Version::new(Place::Topics, &entry.meta().file_name(), entry);
            revisions.push(Revision { before: None, after: Some(after) });
        }
        if lost.outdated.contains(id) {
            revisions.push(self.old_text(id)?);
        }
        let from = self.look(id, Place::Topics).into_iter().collect();
        // Last: until then the note stands whole.
        revisions.push(self.revise(id, Op::Split, entries.swap_remove(0))?);
        looks.splice(0..0, self.look(id, Place::Topics));
        Ok(made(Op::Split, from, looks, lost, revisions))
    }

    fn rewrite(
        &mut self,
        id: &EntryId,
        summary: &str,
        body: &str,
        gone: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<Verdict> {
        let old = self.draft(id)?.entry.clone();
        let text = Text {
            title: old.meta().title.clone(),
            summary: summary.to_owned(),
            tags: Vec::new(),
            body: body.to_owned(),
        };
        let mut written = self.written(&text, std::slice::from_ref(id), &BTreeMap::new(), warnings);
        written.title.clone_from(&old.meta().title);
        let lost = self.lost(std::slice::from_ref(id), std::slice::from_ref(&written), gone, warnings)?;
        let at = self.known.found.at.as_millisecond();
        let is_outdated = lost.outdated.contains(id);
        let copy = if is_outdated { Some(self.old_text(id)?) } else { None };
        self.one(id, Op::Rewrite, lost, copy, |entry| {
            entry.set_body(written.body.as_bytes());
            let is_other = entry.body() != old.body()
                || !written.summary.is_empty() && written.summary != old.meta().summary;
            if is_other { entry.update(|meta| written.fill(meta, at)) } else { Ok(()) }
        })
    }

    fn rename(&mut self, id: &EntryId, title: &str) -> Result<Verdict> {
        self.holds_no_secret(id, &self.draft(id)?.entry.meta().title)?;
        let title = one_line(&(self.known.clean)(title));
        let at = self.known.found.at.as_millisecond();
        self.one(id, Op::Rename, Lost::default(), None, |entry| {
            entry.update(|meta| {
                if meta.title != title {
                    meta.title = title;
                    meta.updated_at = at;
                }
            })
        })
    }

    fn retag(&mut self, id: &EntryId, tags: &[String]) -> Result<Verdict> {
        let at = self.known.found.at.as_millisecond();
        self.one(id, Op::Retag, Lost::default(), None, |entry| {
            entry.update(|meta| {
                if meta.tags != tags {
                    meta.tags = tags.to_vec();
                    meta.updated_at = at;
                }
            })
        })
    }

    /// How much a note is shown is no change of what it says: it stays as old as it was, and whose it was.
    fn tier(&mut self, id: &EntryId, tier: Tier, rank: Option<u8>) -> Result<Verdict> {
        let mut entry = self.draft(id)?.entry.clone();
        if entry.meta().pinned && tier != Tier::Hot {
            return Err(Error::refused(format!("{id} is pinned, and stays hot")));
        }
        entry.update(|meta| {
            cool(meta, tier);
            meta.rank = rank.or(meta.rank);
        })?;
        self.revised(id, Op::Tier, Lost::default(), None, entry)
    }

    fn archive(&mut self, id: &EntryId, reason: &str) -> Result<Verdict> {
        let reason = one_line(&(self.known.clean)(reason));
        if self.draft(id)?.entry.meta().pinned {
            return Err(Error::refused(format!("{id} is pinned")));
        }
        if self.is_kept(id) {
            let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let reasons = vec![format!("it archives the person's own note{because}")];
            return Ok(Verdict::Waits(self.waiting(std::slice::from_ref(id), &[], reasons)?));
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
        let Verdict::Made(planned) = made(Op::Archive, from, into, Lost::default(), revisions) else {
            return Ok(Verdict::Idle);
        };
        Ok(Verdict::Made(Planned { reason, ..planned }))
    }

    /// A change of what one note says, in its place; `copy` keeps what it said before.
    fn one(
        &mut self,
        id: &EntryId,
        op: Op,
        lost: Lost,
        copy: Option<Revision>,
        change: impl FnOnce(&mut Entry) -> Result<()>,
    ) -> Result<Verdict> {
        let old = self.draft(id)?.entry.clone();
        let mut entry = old.clone();
        change(&mut entry)?;
        if entry == old {
            return Ok(Verdict::Idle);
        }
        if let Some(waits) = self.waits(std::slice::from_ref(id), std::slice::from_ref(&entry))? {
            return Ok(waits);
        }
        self.finish(&mut entry, std::slice::from_ref(&old))?;
        self.revised(id, op, lost, copy, entry)
    }

    fn revised(
        &mut self,
        id: &EntryId,
        op: Op,
        lost: Lost,
        copy: Option<Revision>,
        entry: Entry,
    ) -> Result<Verdict> {
        if entry == self.draft(id)?.entry {
            return Ok(Verdict::Idle);
        }
        let from = self.look(id, Place::Topics).into_iter().collect();
        let mut revisions: Vec<Revision> = copy.into_iter().collect();
        revisions.push(self.revise(id, op, entry)?);
        let into = self.look(id, Place::Topics).into_iter().collect();
        Ok(made(op, from, into, lost, revisions))
    }

    /// What waits, if a person is to decide whether these notes become those.
    fn waits(&self, ids: &[EntryId], entries: &[Entry]) -> Result<Option<Verdict>> {
        let bodies: Vec<_> = entries.iter().map(|entry| String::from_utf8_lossy(entry.body())).collect();
        let texts: Vec<NoteText> = entries
            .iter()
            .zip(&bodies)
            .map(|(entry, body)| {
                let Meta { title, summary, tags, .. } = entry.meta();
                NoteText { title, summary, tags, body }
            })
            .collect();
        let reasons = self.reasons(ids, &texts)?;
        if reasons.is_empty() {
            return Ok(None);
        }
        Ok(Some(Verdict::Waits(self.waiting(ids, &texts, reasons)?)))
    }

    /// Puts what a note says into the archive, as a note of its own.
    fn old_text(&mut self, id: &EntryId) -> Result<Revision> {
        let at = self.known.found.at.as_millisecond();
        let old = self.draft(id)?.entry.clone();
        let new = new_id(&old.meta().title, at, &mut self.known.found.ids);
        let mut entry = old_text(&old, new.clone())?;
        entry.update(|meta| cool(meta, Tier::Cold))?;
        let after = Version::new(Place::Archive, &entry.meta().file_name(), &entry);
        Ok(Revision { before: None, after: Some(after) })
    }
}

fn made(op: Op, from: Vec<Look>, into: Vec<Look>, lost: Lost, revisions: Vec<Revision>) -> Verdict {
    let Lost { facts, gone, .. } = lost;
    Verdict::Made(Planned { op, from, into, reason: String::new(), lost: facts, gone, revisions })
}
