//! What a plan says is written, once, whatever crash comes between.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::whole_lines;
use crate::memory::consolidate::plan::{Confirmation, PlannedChange, PlannedNote, Retirement, Waiting};
use crate::memory::links::EndedChanges;
use crate::memory::waiting;
use crate::store::change::Change;
use crate::store::entry::{By, Entry, EntryId, Meta, Source, Status, add_missing};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::proposal::{Draft, Op, Proposal};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What came of changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    #[serde(default)]
    pub written: Vec<Written>,
    /// What waits for a person, or does so no longer.
    #[serde(default)]
    pub waiting: Vec<Waiting>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    pub id: EntryId,
    pub title: String,
    pub action: Action,
}

/// What was done to a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Update,
    /// It still holds.
    Confirm,
    /// To the archive, because it no longer holds.
    Retire,
}

impl Made {
    pub(super) fn extend(&mut self, more: Made) {
        self.written.extend(more.written);
        self.waiting.extend(more.waiting);
        self.warnings.extend(more.warnings);
    }
}

/// Carries out a change; if it is made already, nothing. What a person has changed since stays, and the new text waits as
/// a proposal. `may_be_written` is false only if the plan was made by this process, just now: then no crash can lie
/// between.
///
/// # Errors
/// The store cannot be read or written; or the note is larger than a note may be.
pub fn write<P: Persistence>(
    notes: &P,
    planned: &PlannedChange,
    at: Timestamp,
    may_be_written: bool,
) -> Result<Made> {
    let (change, at) = (Change::of(notes)?, at.as_millisecond());
    let mut writer = Writer { change, at, may_be_written, made: Made::default() };
    match planned {
        PlannedChange::Note(note) => writer.note(note)?,
        PlannedChange::Confirm(confirmation) => writer.confirm(confirmation)?,
        PlannedChange::Retire(retirement) => writer.retire(retirement)?,
        PlannedChange::Propose(proposal) => {
            let waiting = waiting::keep(&writer.change, (**proposal).clone())?;
            writer.waits(waiting);
        }
        PlannedChange::Withdraw(waiting) => writer.withdraw(waiting)?,
    }
    writer.change.write().map(|()| writer.made)
}

struct Writer<'a, P: Persistence> {
    change: Change<'a, P>,
    /// Unix time in milliseconds.
    at: i64,
    may_be_written: bool,
    made: Made,
}

impl<P: Persistence> Writer<'_, P> {
    fn done(&mut self, id: &EntryId, title: &str, action: Action) {
        self.made.written.push(Written { id: id.clone(), title: title.to_owned(), action });
    }

    fn waits(&mut self, proposal: Proposal) {
        let Proposal { entry, note, .. } = &proposal;
        let about = note.as_ref().filter(|_| entry.is_none()).map(|id| self.change.notes.find_own(id));
        let title = match about {
            Some(Ok(note)) => note.entry.meta().title.clone(),
            _ => proposal.title().to_owned(),
        };
        let Proposal { id, op, note, .. } = proposal;
        self.made.waiting.push(Waiting { id, op, note, title, withdrawn: None });
    }

    fn note(&mut self, note: &PlannedNote) -> Result<()> {
        let there = note.update.as_ref().map(|id| self.change.notes.own(id)).transpose()?.flatten();
        match there.filter(|there| there.place == Place::Topics) {
            Some(old) => self.update(note, &old),
            // A note that has gone since has no new text: it is a new note.
            None => self.create(note),
        }
    }

    /// Takes back what waits. The commit of this run says why, and the run does.
    fn withdraw(&mut self, waiting: &Waiting) -> Result<()> {
        let id = &waiting.id;
        let is_there = self.change.notes.proposals()?.0.iter().any(|there| there.id == *id);
        // Where it was not this process before a crash, a person has decided meanwhile.
        if !is_there && !self.may_be_written {
            self.made.warnings.push(format!("{id} is not withdrawn: it no longer waits"));
            return Ok(());
        }
        waiting::end(&self.change, &EndedChanges::from([(id.clone(), None)]))?;
        self.made.warnings.extend(waiting.withdrawal());
        self.made.waiting.push(waiting.clone());
        Ok(())
    }

    /// Replaces the text of a note. What it said before stays in the archive.
    fn update(&mut self, note: &PlannedNote, old: &Note) -> Result<()> {
        let draft = Draft { body: whole_lines(&note.draft.body), ..note.draft.clone() };
        let meta = old.entry.meta();
        // Written before a crash.
        if (old.entry.body(), &meta.title, meta.updated_at) == (draft.body.as_bytes(), &draft.title, self.at)
        {
            self.done(&meta.id, &draft.title, Action::Update);
            return Ok(());
        }
        let entry = match note.replaces.as_ref() == Some(&old.entry.fingerprint()) {
            true => updated(&old.entry, note, &draft, self.at),
            false => Err(Error::conflict("it has changed since it was read")),
        };
        match entry {
            Ok(entry) => {
                self.change.supersede(old, entry, self.at)?;
                self.done(&meta.id, &draft.title, Action::Update);
            }
            Err(why) => {
                let (path, why) = (old.path.display(), why.message());
                let warning = format!("\"{path}\" is not updated: {why}; the change waits for review");
                self.made.warnings.push(warning);
                let session = draft.sources.first().cloned();
                let mut tags = meta.tags.clone();
                add_missing(&mut tags, draft.tags);
                let draft = Some(Draft { tags, ..draft });
                let proposal = Proposal {
                    reasons: vec![format!("The note is not updated: {why}.")],
                    session,
                    ..Proposal::about(&old.entry, Op::Update, draft, note.by, note.created_at)
                };
                let waiting = waiting::settle(&self.change, proposal)?;
                self.waits(waiting);
            }
        }
        Ok(())
    }

    fn create(&mut self, note: &PlannedNote) -> Result<()> {
        let PlannedNote { id, created_at, draft, .. } = note;
        self.done(id, &draft.title, Action::Create);
        // Written before a crash, and perhaps read or renamed since. To find that it is not there, every note is read.
        if self.may_be_written
            && let Some(there) = self.change.notes.own(id)?
            && there.entry.meta().created_at == *created_at
        {
            return Ok(());
        }
        let mut meta = Meta {
            status: note.status,
            by: Some(note.by),
            outside: note.outside.clone(),
            anchors: note.anchors.clone(),
            branch: note.branch.clone(),
            created_at: *created_at,
            updated_at: self.at,
            ..draft.meta(id.clone())
        };
        let body = whole_lines(&draft.body);
        // Many sources with long paths are more than a front matter takes. A plan that can never be written would
        // stand in the way of all that comes after it.
        let mut entry = sealed(&meta, &body)?;
        while entry.fits().is_err() && meta.sources.pop().is_some() {
            entry = sealed(&meta, &body)?;
        }
        let (kept, all) = (meta.sources.len(), draft.sources.len());
        if kept < all {
            let warning = format!("\"{}\": only {kept} of its {all} sources have room", draft.title);
            self.made.warnings.push(warning);
        }
        entry.fits().map_err(|why| Error::io(format!("\"{}\" cannot be written: {why}", draft.title)))?;
        self.change.add(entry).map(drop)
    }

    /// What the note says stays as it is.
    fn confirm(&mut self, Confirmation { id, title, on, anchors, branch }: &Confirmation) -> Result<()> {
        let there = self.change.notes.own(id)?.filter(|note| note.place == Place::Topics);
        let Some(note) = there else { return Ok(()) };
        let mut entry = note.entry.clone();
        let updated = entry.update(|meta| {
            (meta.confirmed, meta.anchors, meta.branch) = (Some(*on), anchors.clone(), branch.clone());
        });
        match updated {
            Ok(()) => self.change.replace(&note, entry).map(drop)?,
            Err(why) => self.made.warnings.push(format!("{id} is not confirmed: {}", why.message())),
        }
        self.done(id, title, Action::Confirm);
        Ok(())
    }

    /// Puts a note into the archive.
    fn retire(&mut self, Retirement { id, title, replaces, .. }: &Retirement) -> Result<()> {
        match self.change.notes.find_own(id) {
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {
                self.made.warnings.push(format!("{id} is not retired: {}", why.message()));
            }
            Err(why) => return Err(why),
            Ok(note) if note.place == Place::Topics && note.entry.fingerprint() != *replaces => {
                let proposal = Proposal {
                    reasons: vec!["The note has changed since the model saw it.".to_owned()],
                    ..Proposal::about(&note.entry, Op::Retire, None, By::Agent, self.at)
                };
                let waiting = waiting::settle(&self.change, proposal)?;
                self.waits(waiting);
            }
            Ok(note) => {
                // It is there already where it was retired before a crash.
                if note.place == Place::Topics {
                    self.change.archive(&note)?;
                }
                self.done(id, title, Action::Retire);
            }
        }
        Ok(())
    }
}

fn updated(old: &Entry, note: &PlannedNote, draft: &Draft, at: i64) -> Result<Entry> {
    let is_edited = old.is_edited();
    let mut entry = old.clone();
    entry.set_body(draft.body.as_bytes());
    entry.update(|meta| {
        meta.title.clone_from(&draft.title);
        meta.summary.clone_from(&draft.summary);
        add_missing(&mut meta.tags, draft.tags.iter().cloned());
        meta.paths.clone_from(&draft.paths);
        for source in &draft.sources {
            let place =
                |source: &Source| (source.harness.clone(), source.thread_id.clone(), source.repo.clone());
            if meta.sources.iter().all(|known| place(known) != place(source)) {
                meta.sources.push(source.clone());
            }
        }
        if meta.status == Status::Captured {
            meta.status = Status::Consolidated;
        }
        meta.until = draft.until;
        meta.by = Some(note.by);
        meta.scope = draft.scope;
        meta.anchors.clone_from(&note.anchors);
        meta.branch.clone_from(&note.branch);
        add_missing(&mut meta.outside, note.outside.iter().cloned());
        meta.updated_at = at;
    })?;
    // What a person has edited by hand stays theirs.
    if !is_edited {
        entry.seal()?;
    }
    Ok(entry)
}

fn sealed(meta: &Meta, body: &str) -> Result<Entry> {
    let mut entry = Entry::new(meta.clone(), body.as_bytes());
    // One that is too large cannot be read again, and is told so by whoever asks for it.
    if entry.fits().is_ok() {
        entry.seal()?;
    }
    Ok(entry)
}
