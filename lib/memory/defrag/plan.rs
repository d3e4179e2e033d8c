//! From a reply to what is to be changed: each operation is checked, and becomes the files before and after it.
//! Plain data that can be shown, saved, carried out twice with the same result, and taken back.

use crate::ground::text::whole_lines;
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::reply::{Op, Operation, Reply, Text};
use crate::memory::links::{new_id, resolve_intra_batch_links};
use crate::memory::loss::{emptied, loss};
use crate::store::entry::{Entry, EntryId, Meta, Scope, Status, Tier, one_line};
use crate::store::persistence::Place;
use crate::store::revision::{Revision, Version};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Of so many notes one may be archived without an heir in a run: 10 %.
const ONE_IN: usize = 10;
/// So many missing facts are named.
const NAMED: usize = 5;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    pub(crate) at: Timestamp,
    pub(crate) operations: Vec<Planned>,
    pub(crate) dropped: Vec<Dropped>,
    pub(crate) warnings: Vec<String>,
    /// What the model says of it all.
    pub(crate) remark: String,
}

/// An operation that passed its checks. Its revisions are made together, in their order, or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Planned {
    pub(crate) op: Op,
    /// The notes that it is about, as they are before.
    pub(crate) from: Vec<Look>,
    /// What is in their place afterwards.
    pub(crate) into: Vec<Look>,
    /// Why a note is archived.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Facts that are gone.
    pub(crate) lost: Vec<String>,
    pub(crate) revisions: Vec<Revision>,
}

/// A note in a few words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Look {
    pub(crate) id: EntryId,
    pub(crate) title: String,
    pub(crate) tier: Tier,
    pub(crate) tags: Vec<String>,
    /// Of the body.
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
    pub(crate) place: Place,
}

/// An operation that is not carried out, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dropped {
    pub(crate) op: Op,
    /// As the model wrote them.
    pub(crate) ids: Vec<String>,
    pub(crate) why: String,
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<String> =
            self.ids.iter().take(NAMED).map(|id| crate::ground::text::one_line(id, 40)).collect();
        let more = if self.ids.len() > NAMED { " …" } else { "" };
        write!(f, "dropped: {} {}{more}: {}", self.op.name(), ids.join(" "), self.why)
    }
}

/// What is known when a plan is made.
pub(crate) struct Known<'a> {
    pub(crate) at: Timestamp,
    /// The notes that were shown, as they are now.
    pub(crate) notes: Vec<CorpusNote>,
    /// The marks that they had when they were shown.
    pub(crate) shown: &'a BTreeMap<EntryId, String>,
    /// Every id in use, aliases too.
    pub(crate) ids: BTreeSet<EntryId>,
    /// How many notes there were, and how many of them are archived already.
    pub(crate) total: usize,
    pub(crate) archived: usize,
    pub(crate) allows: Allows,
    /// Is a file of this name there already?
    pub(crate) is_taken: &'a dyn Fn(Place, &str) -> bool,
    /// Takes secrets out of what the model wrote.
    pub(crate) clean: &'a dyn Fn(&str) -> String,
}

/// Which operations a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allows {
    pub(crate) tiers: bool,
    /// All others.
    pub(crate) texts: bool,
    /// More may be lost than the shares say.
    pub(crate) loss: bool,
}

pub(crate) fn plan(reply: &Reply, faults: Vec<String>, known: Known) -> Plan {
    let at = known.at;
    let mut desk = Desk::of(known);
    let mut plan = Plan {
        at,
        operations: Vec::new(),
        dropped: Vec::new(),
        warnings: faults.into_iter().map(|fault| format!("dropped: {fault}")).collect(),
        remark: (desk.known.clean)(&reply.remark),
    };
    for operation in &reply.operations {
        match desk.planned(operation, &mut plan.warnings) {
            Ok(None) => {}
            Ok(Some(planned)) => plan.operations.push(planned),
            Err(why) => {
                let ids = operation.ids().into_iter().map(str::to_owned).collect();
                plan.dropped.push(Dropped { op: operation.op(), ids, why });
            }
        }
    }
    plan
}

/// A note as the operations so far leave it.
#[derive(Clone)]
struct Draft {
    name: String,
    entry: Entry,
    /// What was done with it, for which there is no second time.
    done: BTreeSet<Op>,
    /// It is in the archive now.
    is_away: bool,
}

struct Desk<'a> {
    known: Known<'a>,
    drafts: BTreeMap<EntryId, Draft>,
    /// Notes that are shown, but have changed or vanished since.
    changed: BTreeSet<EntryId>,
}

impl<'a> Desk<'a> {
    fn of(mut known: Known<'a>) -> Desk<'a> {
        let mut drafts = BTreeMap::new();
        let mut changed: BTreeSet<EntryId> = known.shown.keys().cloned().collect();
        for note in std::mem::take(&mut known.notes) {
            if known.shown.get(note.id()) == Some(&note.mark) {
                changed.remove(note.id());
                let id = note.id().clone();
                drafts.insert(
                    id,
                    Draft { name: note.name, entry: note.entry, done: BTreeSet::new(), is_away: false },
                );
            }
        }
        Desk { known, drafts, changed }
    }

    /// `None`: nothing would change.
    fn planned(
        &mut self,
        operation: &Operation,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Planned>, String> {
        let op = operation.op();
        if op == Op::Tier && !self.known.allows.tiers {
            return Err("tiers are decided in the last call, when all notes are seen".to_owned());
        }
        if op != Op::Tier && !self.known.allows.texts {
            return Err("this call is about tiers alone".to_owned());
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
            Operation::Tier { tier, .. } => self.tier(&ids[0], *tier),
        };
        // One that fails half-way leaves its notes as they were, for the operations after it.
        if planned.is_err() {
            self.drafts.extend(drafts);
        }
        planned
    }

    /// The note that is meant, if `op` may be done with it.
    fn resolved(&self, id: &str, op: Op) -> Result<EntryId, String> {
        let said = crate::ground::text::one_line(id, 40);
        let id = EntryId::parse(id).ok_or_else(|| format!("\"{said}\" is not a note's id"))?;
        if self.changed.contains(&id) {
            return Err(format!("{id} has been changed since it was shown"));
        }
        let draft = self.drafts.get(&id).ok_or_else(|| format!("no note with the id {id} was shown"))?;
        if draft.is_away {
            return Err(format!("{id} goes to the archive in this reply"));
        }
        let clash = draft.done.iter().find(|done| !go_together(**done, op));
        match clash {
            Some(done) => Err(format!("{id} is in a {} already", done.name())),
            None => Ok(id),
        }
    }

    fn draft(&self, id: &EntryId) -> Result<&Draft, String> {
        self.drafts.get(id).ok_or_else(|| format!("no note with the id {id} was shown"))
    }

    fn look(&self, id: &EntryId, place: Place) -> Option<Look> {
        self.drafts.get(id).map(|draft| look(&draft.entry, place))
    }

    /// Puts `entry` in the place of a note: the revision that does so.
    fn revise(&mut self, id: &EntryId, op: Op, entry: Entry) -> Result<Revision, String> {
        let draft = self.drafts.get_mut(id).ok_or("it is gone")?;
        let before = Version::new(Place::Topics, &draft.name, &draft.entry);
        // A name that somebody gave the file by hand stays until what it is made of changes.
        let name = entry.meta().file_name();
        if draft.entry.meta().file_name() != name && !(self.known.is_taken)(Place::Topics, &name) {
            draft.name = name;
        }
        draft.entry = entry;
        draft.done.insert(op);
        let after = Version::new(Place::Topics, &draft.name, &draft.entry);
        Ok(Revision { id: id.clone(), before: Some(before), after: Some(after) })
    }

    /// Moves a note to the archive, for the sake of `heir` if there is one.
    fn put_away(&mut self, id: &EntryId, op: Op, heir: Option<&EntryId>) -> Result<Revision, String> {
        let draft = self.drafts.get_mut(id).ok_or("it is gone")?;
        if (self.known.is_taken)(Place::Archive, &draft.name) {
            return Err(format!("archive/{} exists already", draft.name));
        }
        let before = Version::new(Place::Topics, &draft.name, &draft.entry);
        let mut entry = draft.entry.clone();
        entry.update(|meta| {
            if let Some(heir) = heir {
                meta.superseded_by = Some(heir.clone());
            }
            if meta.tier == Tier::Hot {
                cool(meta, Tier::Cold);
            }
        })?;
        let after = Version::new(Place::Archive, &draft.name, &entry);
        draft.entry = entry;
        draft.done.insert(op);
        draft.is_away = true;
        Ok(Revision { id: id.clone(), before: Some(before), after: Some(after) })
    }

    fn merge(
        &mut self,
        ids: &[EntryId],
        text: &Text,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Planned>, String> {
        let mut seen = BTreeSet::new();
        let ids: Vec<EntryId> = ids.iter().filter(|id| seen.insert((*id).clone())).cloned().collect();
        let [heir, others @ ..] = &ids[..] else { return Err("it names no note".to_owned()) };
        if others.is_empty() {
            return Err("it names one note alone".to_owned());
        }
        let reach = |desk: &Desk, id: &EntryId| desk.draft(id).map(|draft| reach(draft.entry.meta()));
        let whose = reach(self, heir)?;
        for id in others {
            if reach(self, id)? != whose {
                return Err(format!("{heir} and {id} reach differently far: scope or repository differ"));
            }
            let name = &self.draft(id)?.name;
            if (self.known.is_taken)(Place::Archive, name) {
                return Err(format!("archive/{name} exists already"));
            }
        }
        let from = ids.iter().filter_map(|id| self.look(id, Place::Topics)).collect();
        let written = self.written(text, &ids, &BTreeMap::new(), warnings);
        let gone: BTreeSet<&EntryId> = ids.iter().collect();
        let mut lost = Vec::new();
        for id in &ids {
            lost.extend(self.lost(id, std::slice::from_ref(&written), &gone)?);
        }
        let at = self.known.at.as_millisecond();
        let mut entry = self.draft(heir)?.entry.clone();
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
        let mut revisions = vec![self.revise(heir, Op::Merge, entry)?];
        for id in others {
            revisions.push(self.put_away(id, Op::Merge, Some(heir))?);
        }
        let into = self.look(heir, Place::Topics).into_iter().collect();
        Ok(Some(Planned { op: Op::Merge, from, into, reason: String::new(), lost, revisions }))
    }

    fn split(
        &mut self,
        id: &EntryId,
        into: &[Text],
        warnings: &mut Vec<String>,
    ) -> Result<Option<Planned>, String> {
        if into.len() < 2 {
            return Err("it makes fewer than two notes".to_owned());
        }
        let at = self.known.at.as_millisecond();
        let mut taken = self.known.ids.clone();
        // The first part keeps the id.
        let titles: Vec<String> =
            into.iter().map(|text| one_line(&(self.known.clean)(&text.title))).collect();
        let mut new = vec![id.clone()];
        new.extend(titles.iter().skip(1).map(|title| new_id(title, at, &mut taken)));
        let labels: BTreeMap<String, EntryId> =
            titles.iter().cloned().zip(new.iter().cloned()).rev().collect();
        let known = std::mem::replace(&mut self.known.ids, taken);
        let mut parts: Vec<Written> =
            into.iter().map(|text| self.written(text, std::slice::from_ref(id), &labels, warnings)).collect();
        let lost = match self.lost(id, &parts, &BTreeSet::from([id])) {
            Ok(lost) => lost,
            Err(why) => {
                self.known.ids = known;
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
                status: old.meta().status,
                tags: if part.tags.is_empty() { old.meta().tags.clone() } else { Vec::new() },
                sources: old.meta().sources.clone(),
                created_at: at,
                ..Meta::new(new.clone())
            };
            part.fill(&mut meta, at);
            let entry = Entry::new(meta, part.body.as_bytes());
            entry.fits()?;
            looks.push(look(&entry, Place::Topics));
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
    ) -> Result<Option<Planned>, String> {
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
        let at = self.known.at.as_millisecond();
        self.one(id, Op::Rewrite, lost, |entry| {
            entry.set_body(written.body.as_bytes());
            let is_other = entry.body() != old.body()
                || !written.summary.is_empty() && written.summary != old.meta().summary;
            if is_other { entry.update(|meta| written.fill(meta, at)) } else { Ok(()) }
        })
    }

    fn rename(&mut self, id: &EntryId, title: &str) -> Result<Option<Planned>, String> {
        self.holds_no_secret(id, &self.draft(id)?.entry.meta().title)?;
        let title = one_line(&(self.known.clean)(title));
        let at = self.known.at.as_millisecond();
        self.one(id, Op::Rename, Vec::new(), |entry| {
            entry.update(|meta| {
                if meta.title != title {
                    meta.title = title;
                    meta.updated_at = at;
                }
            })
        })
    }

    fn retag(&mut self, id: &EntryId, tags: &[String]) -> Result<Option<Planned>, String> {
        let at = self.known.at.as_millisecond();
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
    fn tier(&mut self, id: &EntryId, tier: Tier) -> Result<Option<Planned>, String> {
        if self.draft(id)?.entry.meta().pinned && tier != Tier::Hot {
            return Err(format!("{id} is pinned, and stays hot"));
        }
        self.one(id, Op::Tier, Vec::new(), |entry| entry.update(|meta| cool(meta, tier)))
    }

    fn archive(&mut self, id: &EntryId, reason: &str) -> Result<Option<Planned>, String> {
        if self.draft(id)?.entry.meta().pinned {
            return Err(format!("{id} is pinned"));
        }
        let most = self.known.total / ONE_IN;
        if self.known.archived >= most && !self.known.allows.loss {
            let total = self.known.total;
            return Err(format!("a run archives at most {most} of {total} notes (--allow-loss: more)"));
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
        change: impl FnOnce(&mut Entry) -> Result<(), String>,
    ) -> Result<Option<Planned>, String> {
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

    /// What a model wrote in the place of some notes, as it may be filed: without secrets, and with links that lead
    /// somewhere.
    fn written(
        &self,
        text: &Text,
        replaces: &[EntryId],
        labels: &BTreeMap<String, EntryId>,
        warnings: &mut Vec<String>,
    ) -> Written {
        let clean = self.known.clean;
        let title = one_line(&clean(&text.title));
        let old: String = replaces
            .iter()
            .filter_map(|id| self.drafts.get(id))
            .map(|draft| String::from_utf8_lossy(draft.entry.body()))
            .collect();
        let (body, unknown) = resolve_intra_batch_links(&clean(&text.body), labels, &self.known.ids, &old);
        warnings.extend(
            unknown
                .iter()
                .map(|link| format!("\"{title}\": [[{link}]] leads nowhere, and is plain text now")),
        );
        Written {
            title,
            summary: one_line(&clean(&text.summary)),
            tags: text.tags.clone(),
            body: whole_lines(&body),
        }
    }

    /// The facts of a note that are in none of the texts that replace it; an error if there are too many.
    fn lost(
        &self,
        id: &EntryId,
        texts: &[Written],
        gone: &BTreeSet<&EntryId>,
    ) -> Result<Vec<String>, String> {
        let entry = &self.draft(id)?.entry;
        let meta = entry.meta();
        let whole = format!("{}\n{}\n{}", meta.title, meta.summary, String::from_utf8_lossy(entry.body()));
        self.holds_no_secret(id, &whole)?;
        // What is missed is named, and a secret must not be.
        let old = (self.known.clean)(&whole);
        let new: String =
            texts.iter().map(|text| format!("{}\n{}\n{}\n", text.title, text.summary, text.body)).collect();
        // A link to what it is merged with would lead to itself, and one to nowhere is none.
        let may_go = |fact: &str| {
            let inner = fact.trim_start_matches('[').trim_end_matches(']');
            fact.starts_with("[[")
                && EntryId::parse(inner).is_some_and(|id| gone.contains(&id) || !self.known.ids.contains(&id))
        };
        let loss = loss(&old, &new, may_go);
        if !self.known.allows.loss {
            if loss.is_too_much() {
                let count = loss.missing.len();
                let some: Vec<String> = loss.missing.iter().take(NAMED).map(|fact| one_line(fact)).collect();
                let more = if count > NAMED { ", …" } else { "" };
                return Err(format!(
                    "it would take {count} facts out of {id} ({}{more}) (--allow-loss: all the same)",
                    some.join(", ")
                ));
            }
            if let Some((kept, all)) = emptied(&old, &new) {
                return Err(format!(
                    "it would leave {kept} of the {all} different words of {id} (--allow-loss: all the same)"
                ));
            }
        }
        Ok(loss.missing.into_iter().map(one_line).collect())
    }

    /// A model is not shown the secrets of a note, so that none is in the text that it writes instead.
    fn holds_no_secret(&self, id: &EntryId, text: &str) -> Result<(), String> {
        if self.known.allows.loss || (self.known.clean)(text) == text {
            return Ok(());
        }
        Err(format!(
            "{id} holds a secret, which no model is shown, and which would be lost: take it out by hand first \
             (--allow-loss: all the same)"
        ))
    }
}

/// A text that may be filed.
struct Written {
    title: String,
    summary: String,
    tags: Vec<String>,
    body: String,
}

impl Written {
    fn fill(&self, meta: &mut Meta, at: i64) {
        meta.title.clone_from(&self.title);
        if !self.summary.is_empty() {
            meta.summary.clone_from(&self.summary);
        }
        for tag in &self.tags {
            if !meta.tags.contains(tag) {
                meta.tags.push(tag.clone());
            }
        }
        if meta.status == Status::Captured {
            meta.status = Status::Consolidated;
        }
        meta.updated_at = at;
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

/// `meta` takes in what another note's says.
fn join(meta: &mut Meta, other: &Meta) {
    for tag in &other.tags {
        if !meta.tags.contains(tag) {
            meta.tags.push(tag.clone());
        }
    }
    for source in &other.sources {
        if !meta.sources.contains(source) {
            meta.sources.push(source.clone());
        }
    }
    for id in std::iter::once(&other.id).chain(&other.aliases) {
        if !meta.aliases.contains(id) && *id != meta.id {
            meta.aliases.push(id.clone());
        }
    }
    meta.pinned |= other.pinned;
    meta.used = meta.used.saturating_add(other.used);
    meta.last_used = meta.last_used.max(other.last_used);
    meta.created_at = meta.created_at.min(other.created_at);
    // The most shown of them says how much it is shown.
    if rank(other.tier) > rank(meta.tier) {
        cool(meta, other.tier);
    }
}

fn rank(tier: Tier) -> u8 {
    match tier {
        Tier::Cold => 0,
        Tier::Warm => 1,
        Tier::Hot => 2,
    }
}

/// Promoted exactly while hot.
fn cool(meta: &mut Meta, tier: Tier) {
    meta.tier = tier;
    meta.status = match (tier, meta.status) {
        (Tier::Hot, _) => Status::Promoted,
        (Tier::Warm | Tier::Cold, Status::Promoted) => Status::Consolidated,
        (Tier::Warm | Tier::Cold, status) => status,
    };
}

/// Whom a note reaches: everybody, or who works in certain repositories.
fn reach(meta: &Meta) -> Option<BTreeSet<String>> {
    (meta.scope == Scope::Repo)
        .then(|| meta.sources.iter().filter_map(|source| source.repo.clone()).collect())
}

fn look(entry: &Entry, place: Place) -> Look {
    let (meta, body) = (entry.meta(), entry.body());
    Look {
        id: meta.id.clone(),
        title: meta.title.clone(),
        tier: meta.tier,
        tags: meta.tags.clone(),
        lines: String::from_utf8_lossy(body).lines().count(),
        bytes: body.len(),
        place,
    }
}

#[cfg(test)]
mod tests;
