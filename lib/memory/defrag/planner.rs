//! From a reply to a plan: each operation is checked against the notes as those before it leave them, and becomes the files
//! before and after it.

use crate::base::error::{Error, Result};
use crate::base::text::{one_line, visible, whole_lines};
use crate::memory::defrag::corpus::{id, reach};
use crate::memory::defrag::front_matter::{cool, fill, in_archive, join, part_of};
use crate::memory::defrag::loss::{LostFacts, holds_no_secret};
use crate::memory::defrag::own;
use crate::memory::defrag::plan::{DefragPlan, Inventory, NoteBrief, Planned};
use crate::memory::defrag::reply::{DefragReply, Dropped, Operation, Verb};
use crate::memory::defrag::{Defrag, DefragWork, Part};
use crate::memory::links::{LinkTargets, resolve_intra_batch_links};
use crate::memory::pipeline::reply::Text;
use crate::store::change::old_text;
use crate::store::entry::{Entry, EntryId, Tier, add_missing, one_line as line};
use crate::store::persistence::{Note, Place};
use crate::store::revision::{Revision, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::slice::from_ref;

/// Of so many notes one may be archived without a successor in a run: 10 %.
const ONE_IN: usize = 10;

/// What the reply to the part under way comes to.
pub fn plan(settings: &Defrag, work: &DefragWork, reply: &DefragReply, inventory: Inventory) -> DefragPlan {
    let mut planner = Planner::of(settings, work, inventory);
    planner.plan.dropped.clone_from(&reply.dropped);
    planner.plan.remark = settings.cleaned(&reply.remark);
    for operation in &reply.operations {
        if let Err(error) = planner.take(operation) {
            let (op, ids) = (operation.op.as_str().to_owned(), operation.ids.clone());
            planner.plan.dropped.push(Dropped { op, ids, why: error.line(), is_unread: false });
        }
    }
    planner.plan
}

/// A note as the operations so far leave it.
struct NoteSoFar {
    note: Note,
    /// What was done with it, for which there is no second time.
    done: BTreeSet<Verb>,
}

struct Planner<'a> {
    settings: &'a Defrag<'a>,
    work: &'a DefragWork,
    inventory: Inventory,
    notes: BTreeMap<EntryId, NoteSoFar>,
    /// Notes that are shown, but have changed or vanished since.
    changed: BTreeSet<EntryId>,
    /// How many notes are archived without a successor.
    archived: usize,
    plan: DefragPlan,
}

/// What some notes become: the first entry takes the place of the first of them, the others are new. Notes that have no
/// entry in their place go to the archive.
#[derive(Default)]
struct Replacement {
    entries: Vec<Entry>,
    lost: LostFacts,
}

impl<'a> Planner<'a> {
    fn of(settings: &'a Defrag<'a>, work: &'a DefragWork, mut inventory: Inventory) -> Planner<'a> {
        let mut notes = BTreeMap::new();
        let mut changed: BTreeSet<EntryId> = work.notes().cloned().collect();
        for note in std::mem::take(&mut inventory.notes) {
            let id = id(&note).clone();
            if work.shown.get(&id).or_else(|| work.listed.get(&id)) == Some(&note.entry.fingerprint()) {
                changed.remove(&id);
                notes.insert(id, NoteSoFar { note, done: BTreeSet::new() });
            }
        }
        let plan = DefragPlan { at: inventory.at, ..DefragPlan::default() };
        Planner { settings, work, inventory, notes, changed, archived: work.own.archived, plan }
    }

    /// The time that every note bears, in Unix milliseconds.
    fn at(&self) -> i64 {
        self.inventory.at.as_millisecond()
    }

    /// Takes an operation into the plan: what it makes of its notes, or what a person is asked. Nothing, if it would change
    /// nothing. The error says why it is not done, and leaves everything as it was.
    fn take(&mut self, operation: &Operation) -> Result<()> {
        let op = operation.op;
        let part = self.work.part();
        if op == Verb::Tier && !part.is_none_or(Part::decides_tiers) {
            return refused("tiers are decided in the last call, when all notes are seen");
        }
        if op != Verb::Tier && part.is_none_or(|part| part.whole().is_empty()) {
            return refused("this call is about tiers alone");
        }
        let mut ids = Vec::new();
        for said in &operation.ids {
            add_missing(&mut ids, [self.resolved(said, op)?]);
        }
        // What a person made their own keeps its id.
        ids.sort_by_key(|id| self.notes.get(id).is_some_and(|there| there.note.entry.kept().is_none()));
        let there = ids.iter().filter_map(|id| self.notes.get(id));
        let old: Vec<Entry> = there.map(|there| there.note.entry.clone()).collect();
        let Some(first) = old.first() else { return refused("it names no note") };
        let replacement = match op {
            Verb::Merge => self.merged(&old, operation)?,
            Verb::Split => self.split(first, operation)?,
            Verb::Rename | Verb::Retag | Verb::Rewrite => self.edited(first, operation)?,
            Verb::Archive => self.may_archive(first).map(|()| Replacement::default())?,
            Verb::Tier => tiered(first, operation)?,
        };
        if replacement.entries == old {
            return Ok(());
        }
        let texts: Vec<Text> = replacement.entries.iter().map(Text::of).collect();
        let reasons = match op {
            // How much a note is shown is no change of what it says.
            Verb::Tier => Vec::new(),
            Verb::Archive if first.kept().is_some() => {
                let reason = self.reason(operation);
                let because = if reason.is_empty() { reason } else { format!(": {reason}") };
                vec![format!("it archives the person's own note{because}")]
            }
            Verb::Archive => Vec::new(),
            // Both what was taken from a note and what the model wrote may hold a secret.
            _ => own::reasons(&old, &texts).iter().map(|reason| self.settings.cleaned(reason)).collect(),
        };
        if reasons.is_empty() {
            return self.make(operation, &ids, &old, replacement);
        }
        // One question about a note is enough, however many ways a model has to put it.
        if let Some(id) = ids.iter().find(|id| self.inventory.proposed.contains(id)) {
            return refused(format!("a change of {id} waits for memory-review already"));
        }
        self.plan.proposals.extend(own::proposals(&old, &texts, &reasons, self.at()));
        // What a person decides about is not decided about twice.
        self.notes.iter_mut().filter(|(id, _)| ids.contains(id)).for_each(|(_, there)| {
            there.done.insert(op);
        });
        Ok(())
    }

    /// Why a note is archived.
    fn reason(&self, operation: &Operation) -> String {
        line(&self.settings.cleaned(&operation.reason))
    }

    /// The note that is meant, if `op` may be done with it.
    fn resolved(&self, said: &str, op: Verb) -> Result<EntryId> {
        let id = EntryId::parse(said)
            .ok_or_else(|| Error::refused(format!("\"{}\" is not a note's id", one_line(said, 40))))?;
        if self.changed.contains(&id) {
            return refused(format!("{id} has been changed since it was shown"));
        }
        let Some(there) = self.notes.get(&id) else {
            return refused(format!("no note with the id {id} was shown"));
        };
        if op != Verb::Tier && !self.work.shown.contains_key(&id) {
            return refused(format!("only a line of {id} was shown"));
        }
        if there.note.place == Place::Archive {
            return refused(format!("{id} goes to the archive in this reply"));
        }
        let is_decided = |done: &&Verb| decides(**done).iter().any(|what| decides(op).contains(what));
        match there.done.iter().find(is_decided) {
            Some(done) => refused(format!("{id} is in a {} already", done.as_str())),
            None => Ok(id),
        }
    }

    fn merged(&mut self, old: &[Entry], operation: &Operation) -> Result<Replacement> {
        let [first, others @ ..] = old else { return Ok(Replacement::default()) };
        if others.is_empty() {
            return refused("it names one note alone");
        }
        for other in others.iter().map(Entry::meta) {
            let (one, two) = (&first.meta().id, &other.id);
            if reach(other) != reach(first.meta()) {
                return refused(format!("{one} and {two} reach differently far: scope or repository differ"));
            }
            if other.until != first.meta().until {
                return refused(format!("{one} and {two} hold until different days"));
            }
            self.is_free_in_archive(two)?;
        }
        let text = self.written(&operation.texts[0], old, &BTreeMap::new());
        let lost = self.lost(old, from_ref(&text), &operation.gone)?;
        let mut entry = first.clone();
        entry.set_body(text.body.as_bytes());
        entry.update(|meta| {
            fill(meta, &text, self.at());
            for other in others {
                // Of the others nothing is in the text.
                let is_said = first.kept().is_none() || other.kept().is_some();
                join(meta, other.meta(), is_said);
            }
            cool(meta, meta.tier);
        })?;
        Ok(Replacement { entries: vec![entry], lost })
    }

    /// The first part keeps the id.
    fn split(&mut self, old: &Entry, Operation { texts, gone, .. }: &Operation) -> Result<Replacement> {
        if texts.len() < 2 {
            return refused("it makes fewer than two notes");
        }
        let at = self.at();
        let titles: Vec<String> =
            texts.iter().map(|text| line(&self.settings.cleaned(&visible(&text.title)))).collect();
        let mut ids = vec![old.meta().id.clone()];
        for title in &titles[1..] {
            ids.push(EntryId::make(title, at, |id| self.inventory.ids.contains(id) || ids.contains(id)));
        }
        let labels = titles.into_iter().zip(ids.iter().map(ToString::to_string)).rev().collect();
        let parts: Vec<Text> = texts.iter().map(|text| self.written(text, from_ref(old), &labels)).collect();
        let lost = self.lost(from_ref(old), &parts, gone)?;
        let mut first = old.clone();
        first.set_body(parts[0].body.as_bytes());
        first.update(|meta| fill(meta, &parts[0], at))?;
        let others = ids.iter().zip(&parts).skip(1).map(|(id, part)| part_of(old.meta(), id, part, at));
        Ok(Replacement { entries: std::iter::once(first).chain(others).collect(), lost })
    }

    /// A change of what one note says, in its place.
    fn edited(&mut self, old: &Entry, operation: &Operation) -> Result<Replacement> {
        let (at, text, meta) = (self.at(), &operation.texts[0], old.meta());
        let mut entry = old.clone();
        let mut lost = LostFacts::default();
        match operation.op {
            Verb::Rename => {
                holds_no_secret(self.settings, &meta.id, &meta.title)?;
                let title = line(&self.settings.cleaned(&visible(&text.title)));
                if title != meta.title {
                    entry.update(|meta| (meta.title, meta.updated_at) = (title, at))?;
                }
            }
            Verb::Retag if text.tags != meta.tags => {
                entry.update(|meta| (meta.tags, meta.updated_at) = (text.tags.clone(), at))?;
            }
            Verb::Rewrite => {
                let title = || meta.title.clone();
                let text = Text { title: title(), ..text.clone() };
                let text = Text { title: title(), ..self.written(&text, from_ref(old), &BTreeMap::new()) };
                lost = self.lost(from_ref(old), from_ref(&text), &operation.gone)?;
                entry.set_body(text.body.as_bytes());
                let is_other = !text.summary.is_empty() && text.summary != meta.summary;
                if entry.body() != old.body() || is_other {
                    entry.update(|meta| fill(meta, &text, at))?;
                }
            }
            _ => {}
        }
        Ok(Replacement { entries: vec![entry], lost })
    }

    fn may_archive(&self, entry: &Entry) -> Result<()> {
        if entry.meta().pinned {
            return refused(format!("{} is pinned", entry.meta().id));
        }
        let total = self.work.own.total;
        let most = total / ONE_IN;
        // A person may archive as many as they like.
        if entry.kept().is_none() && self.archived >= most && !self.settings.allows_loss {
            return refused(format!("a run archives at most {most} of {total} notes (--allow-loss: more)"));
        }
        Ok(())
    }

    fn is_free_in_archive(&self, id: &EntryId) -> Result<()> {
        let name = self.notes.get(id).map(|there| there.note.name()).unwrap_or_default();
        match self.inventory.paths.contains(&Place::Archive.path(&name)) {
            true => refused(format!("archive/{} exists already", name.to_string_lossy())),
            false => Ok(()),
        }
    }

    /// What a model wrote in the place of some notes, as it may be filed: without secrets, and with links that lead
    /// somewhere. `labels` are the ids of its parts, by title.
    fn written(&mut self, text: &Text, old: &[Entry], labels: &BTreeMap<String, String>) -> Text {
        let text = text.cleaned(|text| self.settings.cleaned(text));
        let old: String = old.iter().map(|entry| String::from_utf8_lossy(entry.body())).collect();
        let targets = LinkTargets { labels, ids: &self.inventory.ids, waiting: &BTreeSet::new() };
        let (body, unknown) = resolve_intra_batch_links(&text.body, &targets, &old);
        self.plan.warnings.extend(unknown.iter().map(|link| format!("\"{}\": {link}", text.title)));
        Text { body: whole_lines(&body), ..text }
    }

    fn lost(&mut self, old: &[Entry], texts: &[Text], gone: &[String]) -> Result<LostFacts> {
        let mut lost = LostFacts::of(self.settings, old, texts, gone, &self.inventory.ids)?;
        self.plan.warnings.append(&mut lost.warnings);
        Ok(lost)
    }

    /// Takes the revisions into the plan that put a replacement in the place of the notes `ids`, which are `old`.
    fn make(
        &mut self,
        operation: &Operation,
        ids: &[EntryId],
        old: &[Entry],
        replacement: Replacement,
    ) -> Result<()> {
        let (op, Replacement { mut entries, lost }) = (operation.op, replacement);
        link_parts(&mut entries);
        for entry in entries.iter_mut().filter(|_| op != Verb::Tier) {
            own::finish(entry, old)?;
            entry.fits()?;
        }
        let copy = if lost.is_first_outdated { Some(self.old_text(&old[0], &entries)?) } else { None };
        let mut archived = Vec::new();
        for (id, entry) in ids.iter().zip(old).skip(entries.len().min(1)) {
            self.is_free_in_archive(id)?;
            archived.push((id, in_archive(entry, entries.first().map(|_| &ids[0]))?));
        }
        // From here on nothing fails.
        let into = entries.iter().map(|entry| NoteBrief::of(entry, Place::Topics));
        let into = match entries.is_empty() {
            true => archived.iter().map(|(_, entry)| NoteBrief::of(entry, Place::Archive)).collect(),
            false => into.collect(),
        };
        self.archived += usize::from(op == Verb::Archive);
        self.inventory.ids.extend(entries.iter().chain(&copy).map(|entry| entry.meta().id.clone()));
        let mut entries = entries.into_iter();
        let first = entries.next();
        let mut revisions: Vec<Revision> = entries.map(|entry| new_file(Place::Topics, &entry)).collect();
        revisions.extend(first.and_then(|entry| self.revise(&ids[0], op, Place::Topics, entry)));
        revisions.extend(copy.map(|entry| new_file(Place::Archive, &entry)));
        revisions.extend(
            archived.into_iter().filter_map(|(id, entry)| self.revise(id, op, Place::Archive, entry)),
        );
        let from = old.iter().map(|entry| NoteBrief::of(entry, Place::Topics)).collect();
        let LostFacts { facts: lost, gone, .. } = lost;
        let reason = self.reason(operation);
        self.plan.operations.push(Planned { op, from, into, reason, lost, gone, revisions });
        Ok(())
    }

    /// What a note says of which something no longer holds, as a note of its own for the archive. `made` are new as well.
    fn old_text(&self, old: &Entry, made: &[Entry]) -> Result<Entry> {
        let is_made = |id: &EntryId| made.iter().any(|entry| entry.meta().id == *id);
        let is_taken = |id: &EntryId| self.inventory.ids.contains(id) || is_made(id);
        let mut entry = old_text(old, EntryId::make(&old.meta().title, self.at(), is_taken))?;
        entry.update(|meta| cool(meta, Tier::Cold))?;
        Ok(entry)
    }

    /// Puts `entry` in the place of a note.
    fn revise(&mut self, id: &EntryId, op: Verb, place: Place, entry: Entry) -> Option<Revision> {
        let NoteSoFar { note, done } = self.notes.get_mut(id)?;
        let before = Some(note.version());
        // A name that somebody gave the file by hand stays until what it is made of changes; in the archive in any case.
        let name = entry.meta().file_name();
        let is_other = note.entry.meta().file_name() != name && place == Place::Topics;
        if is_other && !self.inventory.paths.contains(&place.path(name.as_ref())) {
            note.path.set_file_name(name);
        }
        (note.entry, note.place) = (entry, place);
        done.insert(op);
        Some(Revision { before, after: Some(note.version()) })
    }
}

/// What an operation decides about a note: two that decide the same do not go together.
fn decides(op: Verb) -> &'static [&'static str] {
    match op {
        Verb::Merge | Verb::Split => &["title", "tags", "text"],
        Verb::Rename => &["title"],
        Verb::Retag => &["tags"],
        Verb::Rewrite => &["text"],
        Verb::Archive => &["title", "tags", "text", "tier"],
        Verb::Tier => &["tier"],
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::refused(why))
}

/// How much a note is shown is no change of what it says: it stays as old as it was, and whose it was.
fn tiered(old: &Entry, operation: &Operation) -> Result<Replacement> {
    let mut entry = old.clone();
    let tier = match (operation.tier.unwrap_or(old.meta().tier), old.meta().tier) {
        // Only a person takes what is a person's own out of what is shown.
        (Tier::Cold, Tier::Hot | Tier::Warm) if old.kept().is_some() => Tier::Warm,
        (tier, _) => tier,
    };
    if old.meta().pinned && tier != Tier::Hot {
        return refused(format!("{} is pinned, and stays hot", old.meta().id));
    }
    entry.update(|meta| {
        cool(meta, tier);
        meta.rank = operation.rank.or(meta.rank);
    })?;
    Ok(Replacement { entries: vec![entry], lost: LostFacts::default() })
}

/// Whoever follows a link to a note that was split finds the rest of it.
fn link_parts(entries: &mut [Entry]) {
    let Some((first, others)) = entries.split_first_mut() else { return };
    let body = String::from_utf8_lossy(first.body()).into_owned();
    let links = others.iter().map(|other| format!("[[{}]]", other.meta().id));
    let unlinked: Vec<String> = links.filter(|link| !body.contains(link)).collect();
    if !unlinked.is_empty() {
        first.set_body(format!("{}\n\nSee also {}.\n", body.trim_end(), unlinked.join(", ")).as_bytes());
    }
}

fn new_file(place: Place, entry: &Entry) -> Revision {
    Revision { before: None, after: Some(Version::new(place, &entry.meta().file_name(), entry)) }
}

#[cfg(test)]
mod tests;
