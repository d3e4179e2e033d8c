//! What a person decides about the changes that wait for one: accepted, they are made as that person's word.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::{did_you_mean, whole_lines};
use crate::memory::code::anchored_again;
use crate::memory::links::EndedChanges;
use crate::memory::record::dangers;
use crate::memory::service::NoteService;
use crate::memory::waiting;
use crate::store::change::Change;
use crate::store::entry::{By, Entry, EntryId, Meta, REVIEW, Scope, Source, Status};
use crate::store::entry::{add_missing, one_line, repos};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::proposal::{self, Draft, Op, Proposal, ProposalId};
use jiff::Timestamp;
use similar::{Algorithm, ChangeTag, capture_diff_slices};
use std::path::Path;

/// How closely a person has to look at a change, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// Its text does what always waits.
    Dangerous,
    /// It changes a note that is the person's, or is to hold everywhere.
    Kept,
    Usual,
}

/// What tells a session from others: its program and its id.
pub fn session_of(proposal: &Proposal) -> Option<(&str, &str)> {
    let Source { harness, thread_id, .. } = proposal.session.as_ref()?;
    Some((harness.as_deref().unwrap_or_default(), thread_id.as_deref().unwrap_or_default()))
}

/// What a text does that always waits, in words that follow its name.
pub fn dangers_of(proposal: &Proposal) -> Vec<String> {
    let Some(Draft { title, summary, body, .. }) = &proposal.entry else { return Vec::new() };
    dangers(&format!("{title}\n{summary}\n{body}")).iter().map(|danger| danger.does()).collect()
}

/// A proposal, beside the note as it is now.
#[derive(Debug)]
pub struct Pending {
    pub proposal: Proposal,
    /// `None` for a new one, and for one that is gone.
    pub note: Option<Note>,
    /// The notes in use that say something about the same by now, by id and title.
    pub beside: Vec<(EntryId, String)>,
}

impl Pending {
    /// Is the note another one than the proposal was made for?
    pub fn has_changed(&self) -> bool {
        match (&self.proposal.base, &self.note) {
            (Some(base), Some(note)) => *base != note.entry.base(),
            _ => false,
        }
    }

    /// What accepting it would change, line by line: `+` is new, `-` goes, ` ` stays.
    pub fn diff(&self) -> Vec<String> {
        let Proposal { op, entry, .. } = &self.proposal;
        let before = self.note.as_ref().map_or_else(String::new, |note| text_of(&Draft::of(&note.entry)));
        let after = match (op, entry, &self.note) {
            (Op::Create | Op::Update | Op::Conflict, Some(draft), note) => {
                let mut draft = draft.clone();
                // The sources are joined, so none of the note's goes.
                draft.sources.extend(note.iter().flat_map(|note| note.entry.meta().sources.clone()));
                text_of(&draft)
            }
            (Op::Widen, _, Some(note)) => text_of(&Draft { scope: Scope::Global, ..Draft::of(&note.entry) }),
            _ => String::new(),
        };
        diff_lines(&before, &after).iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// What a person decides about a change that waits.
#[derive(Debug, Clone)]
pub struct Decision {
    pub id: ProposalId,
    pub is_accepted: bool,
    /// The [base](Entry::base) of the note that the person looked at; without one, the proposal's counts.
    pub shown: Option<String>,
}

/// What came of it.
#[derive(Debug)]
pub enum Decided {
    /// The note as it is then.
    Accepted(Box<Note>),
    Rejected,
    /// The note has changed since the proposal was made, and nothing is done. From now on the proposal is about the note as
    /// it is, so that accepting it again accepts it.
    NoteChanged,
}

impl<P: Persistence> NoteService<P> {
    /// The change with this id that waits for a person.
    ///
    /// # Errors
    /// `NotFound`: there is none.
    pub fn proposal(&self, id: &ProposalId) -> Result<Proposal> {
        find(self.notes(), id)
    }

    /// The same, beside the note as it is now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn pending(&self, proposal: Proposal) -> Result<Pending> {
        let id = proposal.id.clone();
        self.all_pending(vec![proposal])?.pop().ok_or_else(|| no_such(&id))
    }

    /// The same for many.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn all_pending(&self, proposals: Vec<Proposal>) -> Result<Vec<Pending>> {
        let text = |proposal: &Proposal| Some((proposal.entry.clone()?, proposal.note.clone()));
        let texts: Vec<_> = proposals.iter().filter_map(text).collect();
        let mut beside = waiting::beside(self.notes(), &texts, true)?.into_iter();
        let pending = |mut proposal: Proposal| {
            let found = proposal.note.as_ref().map(|id| self.notes().find(id));
            let note = match found {
                Some(Err(why)) if why.kind() == ErrorKind::NotFound => None,
                found => found.transpose()?,
            };
            // What stood beside it when it was written is out of date.
            proposal.beside.clear();
            let beside = proposal.entry.as_ref().and_then(|_| beside.next()).unwrap_or_default();
            Ok(Pending { proposal, note, beside })
        };
        proposals.into_iter().map(pending).collect()
    }

    /// The changes of each session. Those that need the most attention come first, then the oldest; the sessions are in the
    /// order of their first changes.
    pub fn by_session(&self, waiting: Vec<Proposal>) -> Vec<Vec<(Attention, Proposal)>> {
        let mut all: Vec<_> = waiting.into_iter().map(|one| (self.attention(&one), one)).collect();
        all.sort_by_key(|(attention, _)| *attention);
        let mut sessions: Vec<Vec<(Attention, Proposal)>> = Vec::new();
        for one in all {
            match sessions.iter_mut().find(|session| session_of(&session[0].1) == session_of(&one.1)) {
                Some(session) => session.push(one),
                None => sessions.push(vec![one]),
            }
        }
        sessions
    }

    fn attention(&self, proposal: &Proposal) -> Attention {
        let is_kept = |id: &EntryId| self.notes().find(id).is_ok_and(|note| note.entry.kept().is_some());
        if !dangers_of(proposal).is_empty() {
            Attention::Dangerous
        } else if proposal.note.as_ref().is_some_and(is_kept)
            || proposal.op == Op::Widen
            || proposal.entry.as_ref().is_some_and(|draft| draft.scope == Scope::Global)
        {
            Attention::Kept
        } else {
            Attention::Usual
        }
    }

    /// Makes the change, as a person's word, and returns the note as it is then; `None`: [`Decided::NoteChanged`]. `shown` is
    /// the [base](Entry::base) of the note that the person looked at.
    ///
    /// # Errors
    /// `NotFound`: there is no such proposal. `Conflict`: its note is archived. Or the store cannot be written.
    pub fn accept(&self, id: &ProposalId, shown: Option<&str>) -> Result<Option<Note>> {
        Ok(match self.decide_one(id, true, shown)?.1 {
            Decided::Accepted(note) => Some(*note),
            Decided::Rejected | Decided::NoteChanged => None,
        })
    }

    /// Takes the proposal away.
    ///
    /// # Errors
    /// `NotFound`: there is no such proposal. Or the store cannot be written.
    pub fn reject(&self, id: &ProposalId) -> Result<Proposal> {
        Ok(self.decide_one(id, false, None)?.0)
    }

    /// Carries out one decision, and returns the proposal too, as it was.
    ///
    /// # Errors
    /// As of [`NoteService::accept`].
    fn decide_one(
        &self,
        id: &ProposalId,
        is_accepted: bool,
        shown: Option<&str>,
    ) -> Result<(Proposal, Decided)> {
        let decision = Decision { id: id.clone(), is_accepted, shown: shown.map(str::to_owned) };
        self.decide(&[decision])?.pop().unwrap_or_else(|| Err(no_such(id)))
    }

    /// Carries out decisions in one change of the store, and returns what came of each, with the proposal as it was. One that
    /// cannot be carried out does not stop the others.
    ///
    /// # Errors
    /// The store cannot be read or written: nothing is done then.
    pub fn decide(&self, decisions: &[Decision]) -> Result<Vec<Result<(Proposal, Decided)>>> {
        // No store is made to look for a proposal.
        let missing: Vec<_> =
            decisions.iter().filter_map(|decision| self.proposal(&decision.id).err()).collect();
        if missing.len() == decisions.len() {
            return Ok(missing.into_iter().map(Err).collect());
        }
        let change = Change::of(self.notes())?;
        let mut ended = EndedChanges::new();
        let decided: Vec<_> =
            decisions.iter().map(|decision| decided(&change, decision, self.now, &mut ended)).collect();
        waiting::end(&change, &ended)?;
        change.write().map(|()| decided)
    }

    /// Gives the proposal the text that an editor left: a note as a file, of which the id does not count.
    ///
    /// # Errors
    /// The text is no note; or the proposal is gone, or cannot be written.
    pub fn set_draft(&self, id: &ProposalId, text: Vec<u8>) -> Result<()> {
        let change = Change::of(self.notes())?;
        let mut proposal = find(&change.notes, id)?;
        let Some(draft) = &mut proposal.entry else { return Ok(()) };
        let edited = Draft::of(&Entry::parse(text)?);
        *draft = Draft { sources: std::mem::take(&mut draft.sources), ..edited };
        change.put_proposal(&proposal)?;
        change.write()
    }
}

/// Plans what a decision comes to.
fn decided<P: Persistence>(
    change: &Change<P>,
    Decision { id, is_accepted, shown }: &Decision,
    now: Timestamp,
    ended: &mut EndedChanges,
) -> Result<(Proposal, Decided)> {
    // Under the lock again: it may have been decided about a moment ago.
    let proposal = find(&change.notes, id)?;
    if !is_accepted {
        change.withdraw(id);
        ended.insert(id.clone(), None);
        return Ok((proposal, Decided::Rejected));
    }
    let note = if proposal.op == Op::Create {
        let note = create(change, &proposal, now)?;
        ended.insert(id.clone(), Some(note.entry.meta().id.clone()));
        note
    } else {
        let note = note_of(&change.notes, &proposal)?;
        let base = note.entry.base();
        let is_made = is_made(&note, &proposal);
        if shown.as_ref().or(proposal.base.as_ref()).is_some_and(|shown| *shown != base) && !is_made {
            change.put_proposal(&Proposal { base: Some(base), ..proposal.clone() })?;
            return Ok((proposal, Decided::NoteChanged));
        }
        if is_made { note } else { changed(change, &note, &proposal, now)? }
    };
    change.withdraw(id);
    Ok((proposal, Decided::Accepted(note.into())))
}

fn no_such(id: &ProposalId) -> Error {
    Error::not_found(format!("no change with the id \"{id}\" waits"))
}

fn find<P: Persistence>(notes: &P, id: &ProposalId) -> Result<Proposal> {
    let path = id.path();
    let unusable = |why: String| {
        Error::corrupt(format!("\"{}\" cannot be used: {why}", notes.shown(&path).display()))
            .hint("fix it in an editor, or remove it")
    };
    let name = path.file_name().unwrap_or_default();
    if let Some(bytes) = notes.bytes(&path).map_err(|broken| unusable(broken.why))? {
        return Proposal::named(name, &bytes).map_err(unusable);
    }
    let names = notes.names(proposal::DIR, ".json")?;
    let ids: Vec<_> = names.iter().filter_map(|name| Path::new(name).file_stem()?.to_str()).collect();
    let hint = did_you_mean(&id.to_string(), ids);
    Err(no_such(id).hint(hint.unwrap_or_else(|| "see what waits with: memory-review".to_owned())))
}

/// The text of the proposal as a note, for an editor. `None`: it brings no text.
pub fn draft_text(proposal: &Proposal) -> Option<Vec<u8>> {
    let draft = proposal.entry.as_ref()?;
    let id = EntryId::make(&draft.title, proposal.created_at, |_| false);
    let meta = Meta { sources: Vec::new(), ..draft.meta(id) };
    Some(Entry::new(meta, whole_lines(&draft.body).as_bytes()).bytes().to_vec())
}

/// The note that the proposal is about, or the one that it was merged into since.
fn note_of<P: Persistence>(notes: &P, proposal: &Proposal) -> Result<Note> {
    let Some(id) = &proposal.note else { return Err(Error::corrupt("a change of no note")) };
    let reject = format!("the note is gone; reject the change with: memory-review --reject {}", proposal.id);
    let note = notes.find(id).map_err(|why| why.hint(reject.as_str()))?;
    if note.place == Place::Archive && proposal.op != Op::Retire {
        return Err(Error::conflict(format!("{id} is archived: \"{}\"", note.path.display())).hint(format!(
            "move the file to topics/ first, or reject the change with: memory-review --reject {}",
            proposal.id
        )));
    }
    Ok(note)
}

/// Was it accepted before? Its file may have come back since, from another machine or a backup.
fn is_made(note: &Note, proposal: &Proposal) -> bool {
    let meta = note.entry.meta();
    match (proposal.op, &proposal.entry) {
        (Op::Retire, _) => note.place == Place::Archive,
        (Op::Widen, _) => meta.scope == Scope::Global,
        (_, None) => false,
        (_, Some(draft)) => {
            is_accepted(meta)
                && meta.title == one_line(&draft.title)
                && meta.summary == one_line(&draft.summary)
                && (&meta.tags, &meta.paths) == (&draft.tags, &draft.paths)
                && (meta.scope, meta.until) == (draft.scope, draft.until)
                && note.entry.body() == whole_lines(&draft.body).as_bytes()
        }
    }
}

fn is_accepted(meta: &Meta) -> bool {
    meta.sources.iter().any(|source| source.harness.as_deref() == Some(REVIEW))
}

fn create<P: Persistence>(change: &Change<P>, proposal: &Proposal, now: Timestamp) -> Result<Note> {
    let Some(draft) = &proposal.entry else { return Err(Error::corrupt("a new note without a text")) };
    let title = one_line(&draft.title);
    let taken = change.ids()?;
    let made = |id: &EntryId| change.notes.own(id).ok().flatten().filter(|there| is_made(there, proposal));
    let is_free = |id: &EntryId| !taken.contains(id) || made(id).is_some();
    let id = proposal.note_there.clone().filter(is_free);
    let id = id.unwrap_or_else(|| EntryId::make(&title, proposal.created_at, |id| !is_free(id)));
    let there = taken.contains(&id).then(|| made(&id)).flatten();
    // Given back, as the new note's id is added to them.
    drop(taken);
    if let Some(there) = there {
        return Ok(there);
    }
    let (status, created_at) = (Status::Consolidated, proposal.created_at);
    let meta = Meta { title, status, created_at, anchors: proposal.anchors.clone(), ..draft.meta(id) };
    let mut entry = Entry::new(meta, whole_lines(&draft.body).as_bytes());
    vouch(&mut entry, now)?;
    entry.fits()?;
    change.add(entry)
}

fn changed<P: Persistence>(
    change: &Change<P>,
    note: &Note,
    proposal: &Proposal,
    now: Timestamp,
) -> Result<Note> {
    let mut entry = note.entry.clone();
    match (proposal.op, &proposal.entry) {
        (Op::Retire, _) => return change.archive(note),
        (Op::Widen, _) => entry.update(|meta| meta.scope = Scope::Global)?,
        (_, None) => return Err(Error::corrupt("a change without a text")),
        (_, Some(draft)) => {
            entry.set_body(whole_lines(&draft.body).as_bytes());
            entry.update(|meta| {
                meta.title.clone_from(&draft.title);
                meta.summary.clone_from(&draft.summary);
                meta.tags.clone_from(&draft.tags);
                meta.paths.clone_from(&draft.paths);
                (meta.scope, meta.until) = (draft.scope, draft.until);
                add_missing(&mut meta.sources, draft.sources.iter().cloned());
                if meta.status == Status::Captured {
                    meta.status = Status::Consolidated;
                }
            })?;
            let anchors = match proposal.anchors.is_empty() {
                true => anchored_again(&entry, &[]),
                false => proposal.anchors.clone(),
            };
            entry.update(|meta| meta.anchors = anchors)?;
        }
    }
    vouch(&mut entry, now)?;
    let (old, new) = (note.entry.meta(), entry.meta());
    let is_same =
        (&old.title, &old.summary) == (&new.title, &new.summary) && note.entry.body() == entry.body();
    if is_same { change.replace(note, entry) } else { change.supersede(note, entry, proposal.created_at) }
}

/// What the note says is a person's word from now on.
fn vouch(entry: &mut Entry, now: Timestamp) -> Result<()> {
    entry.update(|meta| {
        meta.by = Some(By::Person);
        meta.updated_at = now.as_millisecond();
        if !is_accepted(meta) {
            let (harness, at) = (Some(REVIEW.to_owned()), Some(now.to_string()));
            let review = Source { harness, at, ..Source::default() };
            meta.sources.push(review);
        }
    })?;
    entry.seal()
}

/// All that a person has to look at.
fn text_of(draft: &Draft) -> String {
    let Draft { title, summary, tags, paths, scope, until, body, sources } = draft;
    let repos = repos(sources);
    let scope = match scope {
        Scope::Global => "global".to_owned(),
        Scope::Repo if repos.is_empty() => "repo".to_owned(),
        Scope::Repo => format!("repo ({})", Vec::from_iter(repos).join(", ")),
    };
    let lines = [
        Some(format!("title: {}\n", one_line(title))),
        (!summary.is_empty()).then(|| format!("summary: {}\n", one_line(summary))),
        (!tags.is_empty()).then(|| format!("tags: {}\n", tags.join(" "))),
        (!paths.is_empty()).then(|| format!("paths: {}\n", one_line(&paths.join(" ")))),
        Some(format!("scope: {scope}\n")),
        until.map(|until| format!("until: {until}\n")),
    ];
    lines.into_iter().flatten().collect::<String>() + "\n" + &whole_lines(body)
}

/// How `after` differs from `before`, with every line of both.
pub fn diff_lines(before: &str, after: &str) -> Vec<String> {
    let (old, new) = (lines(before), lines(after));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let line = |change: similar::Change<&[u8]>| {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        format!("{sign} {}", String::from_utf8_lossy(change.value()).trim_end_matches(['\n', '\r']))
    };
    ops.iter().flat_map(|op| op.iter_changes(&old, &new)).map(line).collect()
}

/// The lines of a text, which end in `\n`, `\r\n` or `\r`. As bytes, as in a merge, so that a program has one diff of the two.
fn lines(text: &str) -> Vec<&[u8]> {
    text.as_bytes().chunk_by(|a, b| *a != b'\n' && (*a != b'\r' || *b == b'\n')).collect()
}
