//! What becomes of what a reply wants written: it lands, or it waits for a person.
//!
//! Three things wait: an address or command that only a tool's output showed, a change of a note that a person has
//! taken for their own, and whatever should hold everywhere without being the person's own sentence. Besides, an
//! update waits that cannot be made safely: it would lose facts, or the note is not as the model saw it.

use crate::base::text::whole_lines;
use crate::memory::authorship::{NoteText, Record, reasons};
use crate::memory::consolidate::plan::{Change, KnownNote, Origin, PlannedNote, PlannedRetirement};
use crate::memory::consolidate::reply::{Proposed, Quoted, Retired};
use crate::memory::facts;
use crate::memory::links::new_id;
use crate::memory::redact::Redactor;
use crate::store::entry::{By, EntryId, Kept, Meta, Scope, Source, Status, add_missing, one_line};
use crate::store::proposal::{Draft, Evidence, Op, Proposal};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// What is known when a reply is held against the store.
pub(super) struct Judge<'a> {
    /// The time that every note bears, in Unix milliseconds.
    pub(super) created_at: i64,
    /// Every id in use, aliases too.
    pub(super) ids: BTreeSet<EntryId>,
    /// The notes that may be changed, as they are now.
    pub(super) notes: BTreeMap<EntryId, KnownNote>,
    /// Those that the model saw whole, and their fingerprints then.
    pub(super) seen: BTreeMap<EntryId, String>,
    /// Those of them that the same session made.
    pub(super) made: BTreeSet<EntryId>,
    /// The repositories of the sessions.
    pub(super) repos: BTreeSet<String>,
    /// One of the sessions is outside of any repository.
    pub(super) is_outside: bool,
    /// The tags in use.
    pub(super) tags: BTreeSet<String>,
    /// Where each queue entry comes from.
    pub(super) sources: BTreeMap<String, Origin>,
    /// Who said what.
    pub(super) record: &'a Record,
    pub(super) redactor: &'a Redactor,
    pub(super) warnings: Vec<String>,
}

/// What becomes of one entry.
pub(super) struct Decision {
    pub(super) changes: Vec<Change>,
    /// The facts that an update would lose without calling them gone.
    pub(super) lost: Vec<String>,
}

/// The text of an entry, cleaned of secrets.
struct Text {
    title: String,
    summary: String,
    tags: Vec<String>,
    body: String,
}

impl Text {
    fn note(&self) -> NoteText<'_> {
        NoteText { title: &self.title, summary: &self.summary, tags: &self.tags, body: &self.body }
    }

    /// All of it, to look for facts in.
    fn all(&self) -> String {
        format!("{}\n{}\n{}\n{}", self.title, self.summary, self.tags.join(" "), self.body)
    }

    fn of(meta: &Meta, body: &[u8]) -> Text {
        Text {
            title: meta.title.clone(),
            summary: meta.summary.clone(),
            tags: meta.tags.clone(),
            body: String::from_utf8_lossy(body).into_owned(),
        }
    }
}

impl<'a> Judge<'a> {
    /// One that knows of no session.
    pub(super) fn new(
        at: Timestamp,
        ids: BTreeSet<EntryId>,
        tags: BTreeSet<String>,
        record: &'a Record,
        redactor: &'a Redactor,
    ) -> Judge<'a> {
        Judge {
            created_at: at.as_millisecond(),
            ids,
            notes: BTreeMap::new(),
            seen: BTreeMap::new(),
            made: BTreeSet::new(),
            repos: BTreeSet::new(),
            is_outside: false,
            tags,
            sources: BTreeMap::new(),
            record,
            redactor,
            warnings: Vec::new(),
        }
    }
}

impl Judge<'_> {
    fn text(&self, proposed: &Proposed) -> Text {
        let clean = |text: &str| self.redactor.cleaned(text);
        Text {
            title: one_line(&clean(&proposed.title)),
            summary: one_line(&clean(&proposed.summary)),
            tags: proposed.tags.iter().map(|tag| clean(tag)).filter(|tag| !tag.contains('[')).collect(),
            body: clean(&proposed.body),
        }
    }

    fn origins(&self, sources: &[String]) -> Vec<Origin> {
        sources.iter().filter_map(|id| self.sources.get(id)).cloned().collect()
    }

    /// The quotes that stand where they are said to.
    fn evidence(&mut self, quotes: &[Quoted], what: &str) -> Vec<Evidence> {
        let mut kept = Vec::new();
        for Quoted { turn, quote } in quotes {
            let quote = self.redactor.cleaned(quote);
            match self.record.quote(*turn, &quote) {
                Some(speaker) => {
                    kept.push(Evidence { turn: format!("t{turn}"), quote, said: Some(speaker.by()) });
                }
                None => self.warnings.push(format!(
                    "\"{what}\": a quote does not stand in turn t{turn} and is left out: \"{}\"",
                    crate::base::text::one_line(&quote, 80)
                )),
            }
        }
        kept
    }

    /// What becomes of an entry of a reply.
    pub(super) fn decide(&mut self, proposed: &Proposed) -> Decision {
        let text = self.text(proposed);
        match &proposed.update {
            None => Decision { changes: self.new_note(proposed, text), lost: Vec::new() },
            Some(name) => {
                let id = proposed.updates().filter(|id| self.ids.contains(id));
                if let Some(id) = id {
                    return match self.notes.get(&id).cloned() {
                        Some(known) => self.update(proposed, text, &id, &known),
                        None => self.update_unseen(proposed, text, &id),
                    };
                }
                self.warnings.push(format!(
                    "\"{}\" was to replace \"{}\", which is no note: it becomes a new one",
                    text.title,
                    crate::base::text::one_line(name, 40)
                ));
                Decision { changes: self.new_note(proposed, text), lost: Vec::new() }
            }
        }
    }

    /// A new note lands in the session's repository; everywhere, only if it is the person's own sentence.
    fn new_note(&mut self, proposed: &Proposed, text: Text) -> Vec<Change> {
        let origins = self.origins(&proposed.sources);
        let until = proposed.until.day(None);
        let has_repo = origins.iter().any(|origin| origin.repo.is_some());
        // Outside of a repository there is only everywhere.
        let is_for_all = proposed.scope == Some(Scope::Global) || !has_repo;
        let is_own = is_for_all && until.is_none() && self.is_own(&text);
        let reasons = self.foreign(&text, None);
        if !reasons.is_empty() {
            let scope = if proposed.scope == Some(Scope::Global) { Scope::Global } else { Scope::Repo };
            return vec![self.proposal(Op::Create, None, Some((text, scope, until)), proposed, reasons)];
        }
        let id = new_id(&text.title, self.created_at, &mut self.ids);
        let by = self.record.by(&text.note(), None);
        let widens = is_for_all && !is_own;
        let why = if has_repo { REACH } else { NO_REPO };
        let note = PlannedNote {
            id: id.clone(),
            update: None,
            replaces: None,
            before: None,
            created_at: self.created_at,
            status: Status::Consolidated,
            title: text.title.clone(),
            summary: text.summary.clone(),
            tags: text.tags.clone(),
            scope: if is_own { Scope::Global } else { Scope::Repo },
            until,
            by,
            body: text.body.clone(),
            sources: origins,
        };
        let mut changes = vec![Change::Note(Box::new(note))];
        if widens {
            changes.push(self.proposal(Op::Widen, Some(&id), None, proposed, vec![why.to_owned()]));
        }
        changes
    }

    fn is_own(&self, text: &Text) -> bool {
        text.tags.iter().all(|tag| self.tags.contains(tag))
            && self.record.verbatim(&text.title, &text.summary, &text.body)
    }

    /// Why addresses and commands of a text make it wait.
    fn foreign(&self, text: &Text, old: Option<&Text>) -> Vec<String> {
        reasons(&self.record.foreign(&text.note(), old.map(Text::note).as_ref()))
    }

    /// The note was not even listed in the prompt.
    fn update_unseen(&mut self, proposed: &Proposed, text: Text, id: &EntryId) -> Decision {
        let (scope, until) = (proposed.scope.unwrap_or(Scope::Repo), proposed.until.day(None));
        let reasons = vec![UNSEEN.to_owned()];
        let change = self.proposal(Op::Update, Some(id), Some((text, scope, until)), proposed, reasons);
        Decision { changes: vec![change], lost: Vec::new() }
    }

    /// An update lands in the note, or waits; it never becomes a second note beside it.
    fn update(&mut self, proposed: &Proposed, mut text: Text, id: &EntryId, known: &KnownNote) -> Decision {
        let meta = known.entry.meta().clone();
        let old = Text::of(&meta, known.entry.body());
        let until = proposed.until.day(meta.until);
        let scope = proposed.scope.unwrap_or(meta.scope);
        let mut reasons = self.standing(id, known, &old);
        let all = (old.all(), text.all());
        let loss = facts::lost(&all.0, &all.1, &proposed.gone, |id| self.ids.contains(id));
        for item in &loss.unmatched {
            let item = crate::base::text::one_line(item, 80);
            self.warnings.push(format!("\"{}\": \"{item}\" is called gone, and is not in {id}", text.title));
        }
        let lost: Vec<String> = loss.missing.iter().map(|fact| (*fact).to_owned()).collect();
        if !lost.is_empty() {
            let few: Vec<&str> = lost.iter().take(5).map(String::as_str).collect();
            let (count, few) = (lost.len(), few.join(", "));
            let facts = if count == 1 { "1 fact" } else { &format!("{count} facts") };
            reasons.push(format!(
                "It would remove {facts} from the note that the reply does not call gone: {few}."
            ));
        }
        reasons.extend(self.foreign(&text, Some(&old)));
        if let Some(why) = self.guarded(id, known) {
            let is_small = known.entry.kept() != Some(Kept::Global)
                && known.entry.kept() != Some(Kept::Pinned)
                && until == meta.until
                && text.tags.iter().all(|tag| meta.tags.contains(tag))
                && scope == meta.scope;
            if !(is_small && self.record.is_own_correction(&old.note(), &text.note())) {
                reasons.push(why);
            }
        }
        if !reasons.is_empty() {
            let lost = if reasons.len() == 1 { lost } else { Vec::new() };
            // An update adds tags and takes none away.
            let new = std::mem::replace(&mut text.tags, meta.tags);
            add_missing(&mut text.tags, new);
            let change = self.proposal(Op::Update, Some(id), Some((text, scope, until)), proposed, reasons);
            return Decision { changes: vec![change], lost };
        }
        let before = meta.by.unwrap_or(if known.entry.kept().is_some() { By::Person } else { By::Agent });
        let by = self.record.by(&text.note(), Some((&old.note(), before)));
        let widens = scope == Scope::Global && meta.scope == Scope::Repo;
        // What was said in one repository about another's note does not show it here.
        let is_here = self.is_here(&meta);
        let sources = self.origins(&proposed.sources).into_iter();
        let note = PlannedNote {
            id: new_id(&text.title, self.created_at, &mut self.ids),
            update: Some(id.clone()),
            replaces: self.seen.get(id).cloned(),
            before: Some(old.body),
            created_at: self.created_at,
            status: Status::Consolidated,
            title: text.title,
            summary: text.summary,
            tags: text.tags,
            scope: meta.scope,
            until,
            by,
            body: text.body,
            sources: sources
                .map(|source| if is_here { source } else { Origin { repo: None, cwd: None, ..source } })
                .collect(),
        };
        let mut changes = vec![Change::Note(Box::new(note))];
        if widens {
            changes.push(self.proposal(Op::Widen, Some(id), None, proposed, vec![REACH.to_owned()]));
        }
        Decision { changes, lost: Vec::new() }
    }

    /// What becomes of a note that no longer holds.
    pub(super) fn retire(&mut self, retired: &Retired) -> Option<Change> {
        let id = &retired.id;
        let Some(known) = self.notes.get(id).cloned() else {
            self.warnings.push(format!("{id} was to be retired, and is no note: nothing is done"));
            return None;
        };
        if known.is_archived {
            return None;
        }
        let meta = known.entry.meta().clone();
        let old = Text::of(&meta, known.entry.body());
        let mut reasons = self.standing(id, &known, &old);
        reasons.extend(self.guarded(id, &known));
        let reason = one_line(&self.redactor.cleaned(&retired.reason));
        if reasons.is_empty() {
            let replaces = self.seen.get(id).cloned().unwrap_or_default();
            return Some(Change::Retire(PlannedRetirement {
                id: id.clone(),
                title: meta.title,
                reason,
                replaces,
            }));
        }
        if !reason.is_empty() {
            reasons.insert(0, format!("The model says that it no longer holds: {reason}"));
        }
        let evidence = self.evidence(&retired.evidence, &meta.title);
        let origins = self.origins(&retired.sources);
        Some(self.waiting(Op::Retire, Some(id), None, evidence, &origins, reasons, By::Agent))
    }

    /// Why the note is not what the model thinks it is.
    fn standing(&self, id: &EntryId, known: &KnownNote, old: &Text) -> Vec<String> {
        let mut reasons = Vec::new();
        match self.seen.get(id) {
            None => reasons.push(UNSEEN.to_owned()),
            Some(seen) if *seen != known.entry.fingerprint() => {
                reasons.push("The note was changed after the model had seen it.".to_owned());
            }
            Some(_) => {}
        }
        if known.is_archived {
            reasons.push("The note is in the archive.".to_owned());
        }
        // Nor may it be named among the facts that would go.
        if self.redactor.cleaned(&old.all()) != old.all() {
            reasons.push("The note holds a secret, which no model is shown.".to_owned());
        }
        reasons
    }

    /// Why no agent may change this note alone.
    fn guarded(&self, id: &EntryId, known: &KnownNote) -> Option<String> {
        let kept = known.entry.kept();
        // The next part of a session may correct what its first part gave.
        if self.made.contains(id) && kept != Some(Kept::Global) {
            return None;
        }
        let why = match kept {
            Some(Kept::Global) => "holds everywhere",
            Some(Kept::Pinned) => "is pinned",
            Some(Kept::HandWritten) => "was written by hand",
            Some(Kept::Accepted) => "was accepted in review",
            None if !self.is_here(known.entry.meta()) => "belongs to another repository",
            None => return None,
        };
        Some(format!("The note {why}."))
    }

    /// Does the note belong to one of the sessions' repositories; or neither to any?
    fn is_here(&self, meta: &Meta) -> bool {
        let mut repos = meta.sources.iter().filter_map(|source| source.repo.as_ref()).peekable();
        match repos.peek() {
            None => self.is_outside,
            Some(_) => repos.any(|repo| self.repos.contains(repo)),
        }
    }

    fn proposal(
        &mut self,
        op: Op,
        note: Option<&EntryId>,
        text: Option<(Text, Scope, Option<jiff::civil::Date>)>,
        proposed: &Proposed,
        reasons: Vec<String>,
    ) -> Change {
        let title = text.as_ref().map_or(proposed.title.as_str(), |(text, ..)| &text.title).to_owned();
        let evidence = self.evidence(&proposed.evidence, &one_line(&title));
        let origins = self.origins(&proposed.sources);
        let by = text.as_ref().map_or(By::Agent, |(text, ..)| self.record.by(&text.note(), None));
        let draft = text.map(|(text, scope, until)| Draft {
            title: text.title,
            summary: text.summary,
            tags: text.tags,
            scope,
            until,
            body: whole_lines(&text.body),
            sources: origins.iter().map(Source::from).collect(),
        });
        self.waiting(op, note, draft, evidence, &origins, reasons, by)
    }

    #[allow(clippy::too_many_arguments, reason = "each is a field of the proposal")]
    fn waiting(
        &self,
        op: Op,
        note: Option<&EntryId>,
        entry: Option<Draft>,
        evidence: Vec<Evidence>,
        origins: &[Origin],
        reasons: Vec<String>,
        by: By,
    ) -> Change {
        let known = note.and_then(|id| self.notes.get(id));
        let name = match (&entry, note) {
            (Some(entry), _) => entry.title.clone(),
            (None, Some(id)) => format!("{op} {id}"),
            (None, None) => op.to_string(),
        };
        Change::Propose(Box::new(Proposal {
            note: note.cloned(),
            base: known.map(|known| known.entry.base()),
            entry,
            evidence,
            reasons,
            session: origins.first().map(Source::from),
            ..Proposal::new(op, &name, by, self.created_at)
        }))
    }
}

const UNSEEN: &str = "The model had not seen the text of the note.";
const REACH: &str = "It is to hold everywhere, and is not word for word what you said.";
const NO_REPO: &str =
    "It comes from a session outside of any repository, so it is shown nowhere until you accept it.";

#[cfg(test)]
mod tests;
