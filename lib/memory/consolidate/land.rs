//! What becomes of what a reply wants written: it lands, or it waits for a person. memory-pipelines(7) has the same lines:
//!
//! 1. A session's note lands in its repository at once.
//! 2. It waits if it repeats something from outside: an address, path, flag or name, or four words in a row.
//! 3. Outside is the web, MCP, network programs, unknown tools, dependencies, and files beyond the repository.
//! 4. It is not from outside if the person typed it, if the agent wrote it before anything from outside showed it, or if
//!    the repository or its own programs show it, too.
//! 5. It always waits, unless the person typed it: download and run, checks or security off, sending data away, hiding.
//! 6. It holds everywhere, or changes what the person wrote, pinned, accepted or made global, only in the person's words.
//! 7. Questions, suppositions, quotations and long pastes are not the person's words.
//!
//! `memory::outside` knows 3, `memory::record` knows 4 and 7. Besides, an update waits that cannot be made safely: it would
//! lose facts, or the note is not as the model saw it.

use crate::base::text::whole_lines;
use crate::memory::consolidate::plan::{Change, KnownNote, Origin, PlannedNote, PlannedRetirement};
use crate::memory::consolidate::reply::{Proposed, Quoted, Retired};
use crate::memory::facts;
use crate::memory::links::new_id;
use crate::memory::record::{NoteText, Record, Speaker, unproven};
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
    /// The queue entries that an agent captured: nothing shows where their addresses are from.
    pub(super) unproven: BTreeSet<String>,
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
    /// What the model can mend so that nothing of it waits.
    pub(super) faults: Vec<String>,
}

/// Why something waits.
struct Reason {
    /// For the person.
    text: String,
    /// For the model, if it can mend it.
    fault: Option<String>,
}

impl Reason {
    fn told(text: impl Into<String>) -> Reason {
        Reason { text: text.into(), fault: None }
    }
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
            unproven: BTreeSet::new(),
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

    pub(super) fn origins(&self, sources: &[String]) -> Vec<Origin> {
        sources.iter().filter_map(|id| self.sources.get(id)).cloned().collect()
    }

    /// The quotes that stand where they are said to.
    pub(super) fn evidence(&mut self, quotes: &[Quoted], what: &str) -> Vec<Evidence> {
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

    /// The turns of the person that the quotes stand in.
    fn cited(&self, quotes: &[Quoted]) -> Vec<usize> {
        let is_persons = |quoted: &&Quoted| {
            self.record.quote(quoted.turn, &quoted.quote).map(Speaker::by) == Some(By::Person)
        };
        quotes.iter().filter(is_persons).map(|quoted| quoted.turn).collect()
    }

    /// What becomes of an entry of a reply.
    pub(super) fn decide(&mut self, proposed: &Proposed) -> Decision {
        let text = self.text(proposed);
        let Some(name) = &proposed.update else { return self.new_note(proposed, text) };
        let id = proposed.updates().filter(|id| self.ids.contains(id));
        match id.map(|id| (self.notes.get(&id).cloned(), id)) {
            Some((Some(known), id)) => self.update(proposed, text, &id, &known),
            Some((None, id)) => self.update_unseen(proposed, text, &id),
            None => {
                self.warnings.push(format!(
                    "\"{}\" was to replace \"{}\", which is no note: it becomes a new one",
                    text.title,
                    crate::base::text::one_line(name, 40)
                ));
                self.new_note(proposed, text)
            }
        }
    }

    /// A new note lands in the session's repository; everywhere, only as a rule that the person typed.
    fn new_note(&mut self, proposed: &Proposed, mut text: Text) -> Decision {
        let origins = self.origins(&proposed.sources);
        let until = proposed.until.day(None);
        let has_repo = origins.iter().any(|origin| origin.repo.is_some());
        // Without a directory there is only everywhere.
        let is_for_all = proposed.scope == Some(Scope::Global) || !has_repo;
        let is_own = is_for_all && self.record.is_own_rule(&text.note());
        let mut reasons = self.risks(&text, None);
        reasons.extend(self.unproven(proposed, &text));
        if !reasons.is_empty() {
            let scope = if proposed.scope == Some(Scope::Global) { Scope::Global } else { Scope::Repo };
            return self.waits(Op::Create, None, Some((text, scope, until)), proposed, reasons);
        }
        if is_own {
            // A new tag would be the model's word.
            text.tags.retain(|tag| self.tags.contains(tag));
        }
        let id = new_id(&text.title, self.created_at, &mut self.ids);
        let by = self.record.by(&text.note(), None);
        let note = PlannedNote {
            id: id.clone(),
            update: None,
            replaces: None,
            before: None,
            created_at: self.created_at,
            status: Status::Consolidated,
            title: text.title,
            summary: text.summary,
            tags: text.tags,
            scope: if is_own { Scope::Global } else { Scope::Repo },
            until,
            by,
            outside: self.outside(by, proposed),
            body: text.body,
            sources: origins,
        };
        let landed = Change::Note(Box::new(note));
        if !is_for_all || is_own {
            return Decision { changes: vec![landed], faults: Vec::new() };
        }
        let reason = Reason {
            text: if has_repo { REACH } else { NO_REPO }.to_owned(),
            fault: (has_repo && self.record.has_rules()).then(|| REACH_FAULT.to_owned()),
        };
        let mut decision = self.waits(Op::Widen, Some(&id), None, proposed, vec![reason]);
        decision.changes.insert(0, landed);
        decision
    }

    /// What an agent had read from outside before it concluded this.
    fn outside(&self, by: By, proposed: &Proposed) -> Vec<String> {
        let is_there = |quoted: &&Quoted| self.record.quote(quoted.turn, &quoted.quote).is_some();
        let cited: Vec<usize> = proposed.evidence.iter().filter(is_there).map(|quoted| quoted.turn).collect();
        if by == By::Person { Vec::new() } else { self.record.hosts_before(&cited) }
    }

    /// What of a text is from outside, and what it would have done that always waits.
    fn risks(&self, text: &Text, old: Option<&Text>) -> Vec<Reason> {
        let (new, old) = (text.note(), old.map(Text::note));
        let mut reasons = Vec::new();
        let hosts = self.record.hosts_before(&[]);
        let place = if hosts.is_empty() {
            "outside the repository".to_owned()
        } else {
            hosts[..hosts.len().min(NAMED)].join(", ")
        };
        for what in self.record.foreign(&new, old.as_ref()).iter().take(NAMED) {
            let what = crate::base::text::one_line(what, QUOTED);
            reasons.push(Reason {
                text: format!("\"{what}\" comes from outside the repository ({place})."),
                fault: Some(format!(
                    "\"{what}\" comes from {place}; say it without, or the note waits for the person"
                )),
            });
        }
        let dangers = self.record.dangers(&new, old.as_ref());
        reasons.extend(dangers.iter().map(|danger| Reason::told(format!("It {}.", danger.does()))));
        reasons
    }

    /// Why a text waits that is drawn from a note which an agent captured.
    fn unproven(&self, proposed: &Proposed, text: &Text) -> Vec<Reason> {
        let is_drawn = proposed.sources.iter().any(|id| self.unproven.contains(id));
        let reasons = if is_drawn { unproven(&text.note()) } else { Vec::new() };
        reasons.into_iter().map(Reason::told).collect()
    }

    /// The note was not even listed in the prompt.
    fn update_unseen(&mut self, proposed: &Proposed, text: Text, id: &EntryId) -> Decision {
        let (scope, until) = (proposed.scope.unwrap_or(Scope::Repo), proposed.until.day(None));
        self.waits(Op::Update, Some(id), Some((text, scope, until)), proposed, vec![Reason::told(UNSEEN)])
    }

    /// An update lands in the note, or waits; it never becomes a second note beside it.
    fn update(&mut self, proposed: &Proposed, mut text: Text, id: &EntryId, known: &KnownNote) -> Decision {
        let meta = known.entry.meta().clone();
        let old = Text::of(&meta, known.entry.body());
        let until = proposed.until.day(meta.until);
        let scope = proposed.scope.unwrap_or(meta.scope);
        let mut reasons = self.standing(id, known, &old);
        reasons.extend(self.loss(proposed, &old, &text, id));
        reasons.extend(self.risks(&text, Some(&old)));
        reasons.extend(self.unproven(proposed, &text));
        if let Some(whose) = self.guarded(id, known) {
            let is_same = (&text.title, &text.summary, whole_lines(&text.body))
                == (&old.title, &old.summary, whole_lines(&old.body));
            let cited = self.cited(&proposed.evidence);
            let why = match is_same || until != meta.until {
                true => Some("its tags or its last day would change".to_owned()),
                false => self.record.why_not_own(&cited, &old.note(), &text.note()),
            };
            match why {
                // A tag may be an order.
                None => text.tags.clone_from(&meta.tags),
                Some(why) => reasons.push(Reason {
                    text: format!("{whose} It is not changed in your words: {why}."),
                    fault: Some(format!(
                        "the note {id} is the person's own, and changes in the person's words only: {}",
                        said_to_model(&why)
                    )),
                }),
            }
        }
        if !reasons.is_empty() {
            // An update adds tags and takes none away.
            let new = std::mem::replace(&mut text.tags, meta.tags);
            add_missing(&mut text.tags, new);
            return self.waits(Op::Update, Some(id), Some((text, scope, until)), proposed, reasons);
        }
        let before = meta.by.unwrap_or(if known.entry.kept().is_some() { By::Person } else { By::Agent });
        let by = self.record.by(&text.note(), Some((&old.note(), before)));
        let widens =
            scope == Scope::Global && meta.scope == Scope::Repo && !self.record.is_own_rule(&text.note());
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
            // What holds everywhere is not narrowed by a model.
            scope: if widens || scope == Scope::Repo { meta.scope } else { scope },
            until,
            by,
            outside: self.outside(by, proposed),
            body: text.body,
            sources: sources
                .map(|source| if is_here { source } else { Origin { repo: None, cwd: None, ..source } })
                .collect(),
        };
        let landed = Change::Note(Box::new(note));
        if !widens {
            return Decision { changes: vec![landed], faults: Vec::new() };
        }
        let mut decision = self.waits(Op::Widen, Some(id), None, proposed, vec![Reason::told(REACH)]);
        decision.changes.insert(0, landed);
        decision
    }

    /// The facts that an update would lose without calling them gone.
    fn loss(&mut self, proposed: &Proposed, old: &Text, text: &Text, id: &EntryId) -> Option<Reason> {
        let all = (old.all(), text.all());
        let loss = facts::lost(&all.0, &all.1, &proposed.gone, |id| self.ids.contains(id));
        for item in &loss.unmatched {
            let item = crate::base::text::one_line(item, QUOTED);
            self.warnings.push(format!("\"{}\": \"{item}\" is called gone, and is not in {id}", text.title));
        }
        let few: Vec<&str> = loss.missing.iter().take(NAMED).copied().collect();
        let facts = if loss.missing.len() == 1 { "1 fact" } else { &format!("{} facts", loss.missing.len()) };
        (!few.is_empty()).then(|| Reason {
            text: format!(
                "It would remove {facts} from the note that the reply does not call gone: {}.",
                few.join(", ")
            ),
            fault: Some(format!(
                "the update of {id} loses {}; keep them, or name in \"gone\" those that no longer hold",
                loss.missing.join(", ")
            )),
        })
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
        let mut reasons: Vec<String> =
            self.standing(id, &known, &old).into_iter().map(|reason| reason.text).collect();
        if !self.record.lets_go(&self.cited(&retired.evidence), &meta.title) {
            reasons.extend(self.guarded(id, &known));
        }
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
    fn standing(&self, id: &EntryId, known: &KnownNote, old: &Text) -> Vec<Reason> {
        let mut reasons = Vec::new();
        match self.seen.get(id) {
            None => reasons.push(UNSEEN),
            Some(seen) if *seen != known.entry.fingerprint() => {
                reasons.push("The note was changed after the model had seen it.");
            }
            Some(_) => {}
        }
        if known.is_archived {
            reasons.push("The note is in the archive.");
        }
        // Nor may it be named among the facts that would go.
        if self.redactor.cleaned(&old.all()) != old.all() {
            reasons.push("The note holds a secret, which no model is shown.");
        }
        reasons.into_iter().map(Reason::told).collect()
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

    /// The change waits, and the model may mend what can be mended.
    fn waits(
        &mut self,
        op: Op,
        note: Option<&EntryId>,
        text: Option<(Text, Scope, Option<jiff::civil::Date>)>,
        proposed: &Proposed,
        reasons: Vec<Reason>,
    ) -> Decision {
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
        // One that a person must look at anyway is not asked about again.
        let faults: Option<Vec<String>> = reasons.iter().map(|reason| reason.fault.clone()).collect();
        let texts = reasons.into_iter().map(|reason| reason.text).collect();
        let change = self.waiting(op, note, draft, evidence, &origins, texts, by);
        Decision { changes: vec![change], faults: faults.unwrap_or_default() }
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

/// The reason is written for the person.
fn said_to_model(why: &str) -> String {
    why.replace("you said it", "the person said it")
        .replace("you did not say", "the person did not say")
        .replace("what you said", "what the person said")
}

/// So many things are named as reasons, and so many characters of each are quoted.
const NAMED: usize = 5;
const QUOTED: usize = 80;
const UNSEEN: &str = "The model had not seen the text of the note.";
const REACH: &str = "It is to hold everywhere, and is not made of rules that you typed.";
const REACH_FAULT: &str = "a global note is made of whole sentences that the person typed as a rule: title, body, and the \
                           summary if there is one; use these sentences, or scope \"repo\"";
const NO_REPO: &str = "It comes from a session in no directory, so it is shown nowhere until you accept it.";

#[cfg(test)]
mod tests;
