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

use crate::base::ago::utc_day;
use crate::base::glob;
use crate::base::text::{counted, one_line as brief, visible, whole_lines};
use crate::memory::consolidate::gather::is_persons;
use crate::memory::consolidate::grounds::Grounds;
use crate::memory::consolidate::pending::is_in_one_of;
use crate::memory::consolidate::plan::{Confirmation, PlannedChange, PlannedNote, Retirement, source_of};
use crate::memory::consolidate::reply::{ConsolidateReply, Proposed, Quoted, ReplyTarget, Retired};
use crate::memory::facts;
use crate::memory::links::new_id;
use crate::memory::pipeline::reply::Text;
use crate::memory::record::{NoteText, Record, Speaker, unproven};
use crate::memory::redact::Redactor;
use crate::store::entry::{
    Anchor, By, EntryId, Kept, Meta, Scope, Source, add_missing, one_line, only_repo, repos,
};
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::persistence::{Note, Place};
use crate::store::proposal::{Draft, Evidence, Op, Proposal};
use jiff::Timestamp;
use jiff::civil::Date;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What is known when a reply is judged.
#[derive(Debug)]
pub struct Knowledge {
    pub at: Timestamp,
    /// Every id in use, aliases too.
    pub ids: BTreeSet<EntryId>,
    /// The notes that were shown, as they are now.
    pub notes: BTreeMap<EntryId, Note>,
    /// Those of them that these sessions made, in whatever run, and that no person has made their own since.
    pub made: BTreeSet<EntryId>,
    /// The tags in use.
    pub tags: BTreeSet<String>,
    /// The claimed entries, by queue id.
    pub entries: BTreeMap<String, QueueEntry>,
    /// Who said what in what was shown, and before it.
    pub record: Rc<Record>,
    /// All changes that wait for a person.
    pub proposals: Vec<Proposal>,
    /// What notes can rest on.
    pub grounds: Grounds,
}

/// Holds what a reply wants written against what is known.
pub(super) struct Judge<'a> {
    pub(super) known: Knowledge,
    /// The notes that the model saw whole, and their fingerprints then.
    pub(super) seen: &'a BTreeMap<EntryId, String>,
    pub(super) redactor: &'a Redactor,
    pub(super) warnings: Vec<String>,
    /// What the model can mend, so that nothing of the last entry waits.
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

/// So many things are named as reasons, and so many characters of each are quoted.
const NAMED: usize = 5;
const QUOTED: usize = 80;
const UNSEEN: &str = "The model had not seen the text of the note.";
const REACH: &str = "It is to hold everywhere, and is not made of rules that you typed.";
const REACH_FAULT: &str = "a global note is made of whole sentences that the person typed as a rule: title, body, and the \
                           summary if there is one; use these sentences, or scope \"repo\"";
const NO_REPO: &str = "It comes from a session in no directory, so it is shown nowhere until you accept it.";

impl Judge<'_> {
    /// What becomes of an entry of a reply.
    pub(super) fn decide(&mut self, proposed: &Proposed) -> Vec<PlannedChange> {
        let text = proposed.text.cleaned(|text| self.redactor.cleaned(text));
        let Some(name) = &proposed.update else { return self.new_note(proposed, text) };
        let target = proposed.target().and_then(ReplyTarget::note);
        let Some(id) = target.filter(|id| self.known.ids.contains(id)) else {
            let (title, name) = (&text.title, brief(name, 40));
            let what =
                format!("\"{title}\" was to replace \"{name}\", which is no note: it becomes a new one");
            self.warnings.push(what);
            return self.new_note(proposed, text);
        };
        match self.known.notes.get(&id).cloned() {
            Some(known) => self.update(proposed, text, &known),
            // It was not even listed in the prompt.
            None => {
                let (scope, until) = (proposed.scope.unwrap_or(Scope::Repo), proposed.until.flatten());
                let draft = self.draft(text, scope, until, proposed);
                vec![self.waits(Op::Update, Some(&id), Some(draft), proposed, vec![Reason::told(UNSEEN)])]
            }
        }
    }

    /// 1: a new note lands in the session's repository, unless 2 or 5 says that it waits; everywhere, only as 6 says.
    fn new_note(&mut self, proposed: &Proposed, mut text: Text) -> Vec<PlannedChange> {
        let until = proposed.until.flatten();
        let reasons = self.risks(proposed, &text, None);
        if !reasons.is_empty() {
            let draft = self.draft(text, proposed.scope.unwrap_or(Scope::Repo), until, proposed);
            return vec![self.waits(Op::Create, None, Some(draft), proposed, reasons)];
        }
        let has_repo = self.sources(&proposed.sources).iter().any(|source| source.repo.is_some());
        // Without a directory there is only everywhere.
        let is_for_all = proposed.scope == Some(Scope::Global) || !has_repo;
        let is_own = is_for_all && self.known.record.is_own_rule(&text.note());
        if is_own {
            // A new tag would be the model's word.
            text.tags.retain(|tag| self.known.tags.contains(tag));
        }
        let by = self.known.record.by(&text.note(), None);
        let id = new_id(&text.title, self.created_at(), &mut self.known.ids);
        let scope = if is_own { Scope::Global } else { Scope::Repo };
        let mut draft = self.draft(text, scope, until, proposed);
        if is_own {
            // They would be the model's word, too, and decide where the rule is shown.
            draft.paths.clear();
        }
        let outside = self.outside(by, proposed);
        // A rule for everywhere is about no code.
        let (anchors, branch) = match is_own {
            true => (Vec::new(), None),
            false => {
                (self.rests(&draft), self.known.grounds.branch(&proposed.sources, only_repo(&draft.sources)))
            }
        };
        let note =
            PlannedNote { outside, anchors, branch, ..PlannedNote::new(id, draft, by, self.created_at()) };
        let widens = (is_for_all && !is_own).then(|| Reason {
            text: if has_repo { REACH } else { NO_REPO }.to_owned(),
            fault: (has_repo && self.known.record.has_rules()).then(|| REACH_FAULT.to_owned()),
        });
        self.lands(note, widens, proposed)
    }

    /// An update lands in the note, or waits; it never becomes a second note beside it.
    fn update(&mut self, proposed: &Proposed, mut text: Text, known: &Note) -> Vec<PlannedChange> {
        let meta = known.entry.meta();
        let id = &meta.id;
        let old = Text::of(&known.entry);
        let (until, scope) = (proposed.until.unwrap_or(meta.until), proposed.scope.unwrap_or(meta.scope));
        let guarded = self.guarded(known);
        // An update adds paths, but to a note of the person's own, and takes none away.
        let mut paths = meta.paths.clone();
        if guarded.is_none() {
            add_missing(&mut paths, self.paths(proposed, &text.title));
            paths.truncate(glob::MOST);
        }
        let mut reasons: Vec<Reason> = self.standing(known, &old).into_iter().map(Reason::told).collect();
        reasons.extend(self.loss(proposed, &old, &text, id));
        reasons.extend(self.risks(proposed, &text, Some(&old)));
        if let Some(whose) = guarded {
            match self.why_not_own(proposed, &old, &text, until != meta.until) {
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
            let new = std::mem::replace(&mut text.tags, meta.tags.clone());
            add_missing(&mut text.tags, new);
            let draft = Draft { paths, ..self.draft(text, scope, until, proposed) };
            return vec![self.waits(Op::Update, Some(id), Some(draft), proposed, reasons)];
        }
        let before = meta.by.unwrap_or(if known.entry.kept().is_some() { By::Person } else { By::Agent });
        let by = self.known.record.by(&text.note(), Some((&old.note(), before)));
        let widens = scope == Scope::Global
            && meta.scope == Scope::Repo
            && !self.known.record.is_own_rule(&text.note());
        let new_id = new_id(&text.title, self.created_at(), &mut self.known.ids);
        // What holds everywhere is not narrowed by a model.
        let scope = if widens || scope == Scope::Repo { meta.scope } else { scope };
        let mut draft = Draft { paths, ..self.draft(text, scope, until, proposed) };
        // What was said in one repository about another's note does not show it here.
        if !self.is_here(meta) {
            draft.sources.iter_mut().for_each(|source| (source.repo, source.cwd) = (None, None));
        }
        let anchors = self.anchors(&text_of(&draft), &draft.paths, only_repo(&meta.sources), &meta.anchors);
        let note = PlannedNote {
            anchors,
            branch: self.known.grounds.branch(&proposed.sources, only_repo(&meta.sources)),
            update: Some(id.clone()),
            replaces: self.seen.get(id).cloned(),
            before: Some(old.body),
            outside: self.outside(by, proposed),
            ..PlannedNote::new(new_id, draft, by, self.created_at())
        };
        self.lands(note, widens.then(|| Reason::told(REACH)), proposed)
    }

    /// What a new note rests on.
    fn rests(&self, draft: &Draft) -> Vec<Anchor> {
        self.anchors(&text_of(draft), &draft.paths, only_repo(&draft.sources), &[])
    }

    /// What a note of one repository rests on: files that the sessions touched, or in which it had anchors before.
    fn anchors(&self, text: &NoteText, globs: &[String], repo: Option<&str>, old: &[Anchor]) -> Vec<Anchor> {
        let Some(repo) = repo else { return Vec::new() };
        let touched = &self.known.record.touched;
        let may = |path: &str| {
            (touched.contains(path) || old.iter().any(|anchor| anchor.path == path))
                && self.redactor.cleaned(path) == path
        };
        self.known.grounds.anchors(repo, text, globs, may).unwrap_or_else(|| old.to_vec())
    }

    /// The model has seen a note beside what its code is now, and it still holds. Nothing of what it says changes, so that may
    /// be a person's own.
    pub(super) fn confirmed(&mut self, id: &EntryId, reply: &ConsolidateReply) -> Option<PlannedChange> {
        let known = self.known.notes.get(id).filter(|known| known.place == Place::Topics)?;
        let meta = known.entry.meta();
        if self.seen.get(id) != Some(&known.entry.fingerprint()) || !self.is_here(meta) {
            self.warnings.push(format!("{id} was to be confirmed, and was not shown whole as it is now"));
            return None;
        }
        if !self.known.grounds.changed.contains(id) {
            self.warnings.push(format!("{id} was to be confirmed, and nothing was shown against it"));
            return None;
        }
        let text = Text::of(&known.entry);
        let anchors = self.anchors(&text.note(), &meta.paths, only_repo(&meta.sources), &meta.anchors);
        let skipped = reply.skipped.iter().map(|(source, _)| source);
        let sources: Vec<String> =
            reply.entries.iter().flat_map(|entry| &entry.sources).chain(skipped).cloned().collect();
        // One that was learned in the default branch holds there still.
        let branch =
            meta.branch.as_ref().and_then(|_| self.known.grounds.branch(&sources, only_repo(&meta.sources)));
        let on = utc_day(self.known.at);
        let (id, title) = (id.clone(), meta.title.clone());
        Some(PlannedChange::Confirm(Box::new(Confirmation { id, title, on, anchors, branch })))
    }

    /// What becomes of a note that no longer holds.
    pub(super) fn retire(&mut self, retired: &Retired, id: &EntryId) -> Option<PlannedChange> {
        let Some(known) = self.known.notes.get(id).cloned() else {
            self.warnings.push(format!("{id} was to be retired, and is no note: nothing is done"));
            return None;
        };
        if known.place == Place::Archive {
            return None;
        }
        let title = known.entry.meta().title.clone();
        let standing = self.standing(&known, &Text::of(&known.entry));
        let mut reasons: Vec<String> = standing.into_iter().map(str::to_owned).collect();
        if !self.known.record.lets_go(&self.cited(&retired.evidence), &title) {
            reasons.extend(self.guarded(&known));
        }
        let reason = one_line(&self.redactor.cleaned(&retired.reason));
        if reasons.is_empty() {
            let replaces = self.seen.get(id).cloned().unwrap_or_default();
            return Some(PlannedChange::Retire(Retirement { id: id.clone(), title, reason, replaces }));
        }
        if !reason.is_empty() {
            reasons.insert(0, format!("The model says that it no longer holds: {reason}"));
        }
        let evidence = self.evidence(&retired.evidence, &title);
        let session = self.sources(&retired.sources).into_iter().next();
        let proposal = Proposal { evidence, reasons, session, ..self.proposal(Op::Retire, Some(id), None) };
        Some(PlannedChange::Propose(Box::new(proposal)))
    }

    /// 2 and 5: what of a text is from outside, and what it would have done that always waits.
    fn risks(&self, proposed: &Proposed, text: &Text, old: Option<&Text>) -> Vec<Reason> {
        let (new, old) = (text.note(), old.map(Text::note));
        let hosts = self.known.record.hosts_before(&[]);
        let place = if hosts.is_empty() {
            "outside the repository".to_owned()
        } else {
            hosts[..hosts.len().min(NAMED)].join(", ")
        };
        let foreign = self.known.record.foreign(&new, old.as_ref()).into_iter().take(NAMED).map(|what| {
            let what = brief(&what, QUOTED);
            Reason {
                text: format!("\"{what}\" comes from outside the repository ({place})."),
                fault: Some(format!(
                    "\"{what}\" comes from {place}; say it without, or the note waits for the person"
                )),
            }
        });
        let dangers = self.known.record.dangers(&new, old.as_ref());
        let dangers = dangers.iter().map(|danger| Reason::told(format!("It {}.", danger.does())));
        let mut reasons: Vec<Reason> = foreign.chain(dangers).collect();
        // Nothing shows where an agent's captured note has its addresses from, or what it remembers by itself.
        let mut given = proposed.sources.iter().filter_map(|id| self.known.entries.get(id));
        let is_memory = |entry: &QueueEntry| matches!(entry.retrieval, Retrieval::MemoryFile { .. });
        if given.any(|entry| is_note_of(entry, By::Agent) || is_memory(entry) && !is_persons(entry)) {
            reasons.extend(unproven(&new, None).into_iter().map(Reason::told));
        }
        reasons
    }

    /// 6: why no agent may change this note alone.
    fn guarded(&self, known: &Note) -> Option<String> {
        let kept = known.entry.kept();
        // The next part of a session may correct what its first part gave.
        if self.known.made.contains(&known.entry.meta().id) && kept != Some(Kept::Global) {
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

    /// 6: why a change of such a note is not in the person's words.
    fn why_not_own(
        &self,
        proposed: &Proposed,
        old: &Text,
        text: &Text,
        is_other_day: bool,
    ) -> Option<String> {
        let is_same = (&text.title, &text.summary, whole_lines(&text.body))
            == (&old.title, &old.summary, whole_lines(&old.body));
        if is_same || is_other_day {
            return Some("its tags or its last day would change".to_owned());
        }
        self.known.record.why_not_own(&self.cited(&proposed.evidence), &old.note(), &text.note())
    }

    /// Does the note belong to one of the sessions' repositories; or neither to any?
    fn is_here(&self, meta: &Meta) -> bool {
        is_in_one_of(&repos(&meta.sources), |repo| self.is_in(repo))
    }

    /// Why the note is not what the model thinks it is.
    fn standing(&self, known: &Note, old: &Text) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        match self.seen.get(&known.entry.meta().id) {
            None => reasons.push(UNSEEN),
            Some(seen) if *seen != known.entry.fingerprint() => {
                reasons.push("The note was changed after the model had seen it.");
            }
            Some(_) => {}
        }
        if known.place == Place::Archive {
            reasons.push("The note is in the archive.");
        }
        // Nor may it be named among the facts that would go.
        if self.redactor.cleaned(&old.all()) != old.all() {
            reasons.push("The note holds a secret, which no model is shown.");
        }
        reasons
    }

    /// The facts that an update would lose without calling them gone.
    fn loss(&mut self, proposed: &Proposed, old: &Text, text: &Text, id: &EntryId) -> Option<Reason> {
        let all = (visible(&old.all()).into_owned(), text.all());
        let loss = facts::lost(&all.0, &all.1, &proposed.gone, |id| self.known.ids.contains(id));
        for item in &loss.unmatched {
            let item = brief(item, QUOTED);
            self.warnings.push(format!("\"{}\": \"{item}\" is called gone, and is not in {id}", text.title));
        }
        let few: Vec<&str> = loss.missing.iter().take(NAMED).copied().collect();
        let facts = counted(loss.missing.len(), "fact", "facts");
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

    /// What an agent had read from outside before it concluded this.
    fn outside(&self, by: By, proposed: &Proposed) -> Vec<String> {
        let is_there = |quoted: &&Quoted| self.known.record.quote(quoted.turn, &quoted.quote).is_some();
        let cited: Vec<usize> = proposed.evidence.iter().filter(is_there).map(|quoted| quoted.turn).collect();
        if by == By::Person { Vec::new() } else { self.known.record.hosts_before(&cited) }
    }

    /// The quotes that stand where they are said to.
    pub(super) fn evidence(&mut self, quotes: &[Quoted], what: &str) -> Vec<Evidence> {
        let mut kept = Vec::new();
        for Quoted { turn, quote } in quotes {
            let quote = self.redactor.cleaned(quote);
            match self.known.record.quote(*turn, &quote) {
                Some(speaker) => {
                    kept.push(Evidence { turn: format!("t{turn}"), quote, said: Some(speaker.by()) });
                }
                None => self.warnings.push(format!(
                    "\"{what}\": a quote does not stand in turn t{turn} and is left out: \"{}\"",
                    brief(&quote, 80)
                )),
            }
        }
        kept
    }

    /// The turns of the person that the quotes stand in.
    fn cited(&self, quotes: &[Quoted]) -> Vec<usize> {
        let is_persons = |quoted: &&Quoted| {
            self.known.record.quote(quoted.turn, &quoted.quote).map(Speaker::by) == Some(By::Person)
        };
        quotes.iter().filter(is_persons).map(|quoted| quoted.turn).collect()
    }

    /// The note lands; that it holds everywhere waits, for a reason.
    fn lands(
        &mut self,
        note: PlannedNote,
        widens: Option<Reason>,
        proposed: &Proposed,
    ) -> Vec<PlannedChange> {
        let id = note.update.as_ref().unwrap_or(&note.id).clone();
        let widens = widens.map(|reason| self.waits(Op::Widen, Some(&id), None, proposed, vec![reason]));
        [PlannedChange::Note(Box::new(note))].into_iter().chain(widens).collect()
    }

    /// The change waits, and the model may mend what can be mended.
    fn waits(
        &mut self,
        op: Op,
        note: Option<&EntryId>,
        draft: Option<Draft>,
        proposed: &Proposed,
        reasons: Vec<Reason>,
    ) -> PlannedChange {
        let title = draft.as_ref().map_or(proposed.text.title.as_str(), |draft| &draft.title);
        let evidence = self.evidence(&proposed.evidence, &one_line(title));
        let session = self.sources(&proposed.sources).into_iter().next();
        // One that a person must look at anyway is not asked about again.
        let faults: Option<Vec<String>> = reasons.iter().map(|reason| reason.fault.clone()).collect();
        self.faults.extend(faults.unwrap_or_default());
        let reasons = reasons.into_iter().map(|reason| reason.text).collect();
        let anchors = draft.as_ref().map(|draft| self.rests(draft)).unwrap_or_default();
        let proposal = Proposal { evidence, session, reasons, anchors, ..self.proposal(op, note, draft) };
        PlannedChange::Propose(Box::new(proposal))
    }

    /// The new text of a note, as it waits.
    pub(super) fn draft(
        &mut self,
        text: Text,
        scope: Scope,
        until: Option<Date>,
        proposed: &Proposed,
    ) -> Draft {
        let Text { title, summary, tags, body } = text;
        let (paths, sources) = (self.paths(proposed, &title), self.sources(&proposed.sources));
        Draft { title, summary, tags, paths, scope, until, body, sources }
    }

    /// The patterns that match a file which the sessions touched: a model may name any.
    fn paths(&mut self, proposed: &Proposed, title: &str) -> Vec<String> {
        let (mut paths, touched) = (Vec::new(), &self.known.record.touched);
        for path in &proposed.paths {
            let is_clean = self.redactor.cleaned(path) == *path;
            match touched.iter().any(|file| glob::matches(path, file)) {
                true if is_clean => add_missing(&mut paths, [path.clone()]),
                _ => self.warnings.push(format!(
                    "\"{title}\": no file of the session matches \"{}\", which is left out",
                    brief(path, QUOTED)
                )),
            }
        }
        paths
    }

    fn proposal(&self, op: Op, note: Option<&EntryId>, entry: Option<Draft>) -> Proposal {
        let by = entry.as_ref().map_or(By::Agent, |draft| self.known.record.by(&text_of(draft), None));
        let name = match (&entry, note) {
            (Some(entry), _) => entry.title.clone(),
            (None, Some(id)) => format!("{op} {id}"),
            (None, None) => op.to_string(),
        };
        let base = note.and_then(|id| self.known.notes.get(id)).map(|known| known.entry.base());
        let entry = entry.map(|draft| Draft { body: whole_lines(&draft.body), ..draft });
        Proposal { note: note.cloned(), base, entry, ..Proposal::new(op, &name, by, self.created_at()) }
    }

    /// The time that every note bears, in Unix milliseconds.
    fn created_at(&self) -> i64 {
        self.known.at.as_millisecond()
    }

    /// One of the sessions was in this repository; `None`: outside of any.
    pub(super) fn is_in(&self, repo: Option<&str>) -> bool {
        self.known.entries.values().any(|entry| entry.context.repo.as_deref() == repo)
    }

    /// What a note says of the entries that it comes from.
    pub(super) fn sources(&self, queue_ids: &[String]) -> Vec<Source> {
        let entries = queue_ids.iter().filter_map(|id| self.known.entries.get(id));
        entries.map(|entry| source_of(entry, self.redactor)).collect()
    }
}

pub(super) fn text_of(draft: &Draft) -> NoteText<'_> {
    NoteText { title: &draft.title, summary: &draft.summary, tags: &draft.tags, body: &draft.body }
}

/// Is it a note that a person captured, or an agent?
pub(super) fn is_note_of(entry: &QueueEntry, who: By) -> bool {
    matches!(entry.retrieval, Retrieval::Inline { .. }) && is_persons(entry) == (who == By::Person)
}

/// The reason is written for the person.
fn said_to_model(why: &str) -> String {
    why.replace("you said it", "the person said it")
        .replace("you did not say", "the person did not say")
        .replace("what you said", "what the person said")
}

#[cfg(test)]
mod tests;
