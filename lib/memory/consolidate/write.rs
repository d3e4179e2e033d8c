//! What a plan says is written, once, whatever crash comes between.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::whole_lines;
use crate::memory::consolidate::plan::{PlannedChange, PlannedNote, Retirement, Waiting};
use crate::memory::links::Ended;
use crate::memory::waiting;
use crate::store::change::Change;
use crate::store::entry::{By, Entry, EntryId, Meta, Source, Status, Tier, add_missing};
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
    /// To the archive, because it no longer holds.
    Retire,
}

impl Made {
    pub(super) fn extend(&mut self, more: Made) {
        self.written.extend(more.written);
        self.waiting.extend(more.waiting);
        self.warnings.extend(more.warnings);
    }

    fn note(&mut self, id: &EntryId, title: &str, action: Action) {
        self.written.push(Written { id: id.clone(), title: title.to_owned(), action });
    }

    fn waits<P: Persistence>(&mut self, change: &Change<P>, proposal: Proposal) {
        let Proposal { id, op, note, entry, .. } = proposal;
        let title = match (entry, &note) {
            (Some(entry), _) => entry.title,
            (None, Some(id)) => {
                let found = change.notes.find_own(id);
                found.map_or_else(|_| id.to_string(), |note| note.entry.meta().title.clone())
            }
            (None, None) => String::new(),
        };
        self.waiting.push(Waiting { id, op, note, title, withdrawn: None });
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
    let change = Change::of(notes)?;
    let mut made = Made::default();
    let at = at.as_millisecond();
    match planned {
        PlannedChange::Note(note) => {
            let there = note.update.as_ref().map(|id| change.notes.own(id)).transpose()?.flatten();
            match there.filter(|there| there.place == Place::Topics) {
                Some(old) => update(&change, note, &old, at, &mut made)?,
                // A note that has gone since has no new text: it is a new note.
                None => create(&change, note, at, may_be_written, &mut made)?,
            }
            if let [written] = &made.written[..]
                && let Some(note) = change.notes.own(&written.id)?
            {
                waiting::landed(&change, &note)?;
            }
        }
        PlannedChange::Retire(retirement) => retire(&change, retirement, at, &mut made)?,
        PlannedChange::Propose(proposal) => {
            made.waits(&change, waiting::keep(&change, (**proposal).clone())?);
        }
        PlannedChange::Withdraw(waiting) => withdraw(&change, waiting, may_be_written, &mut made)?,
    }
    change.write().map(|()| made)
}

/// Takes back what waits. The commit of this run says why, and the run does.
fn withdraw<P: Persistence>(
    change: &Change<P>,
    waiting: &Waiting,
    may_be_written: bool,
    made: &mut Made,
) -> Result<()> {
    let id = &waiting.id;
    let is_there = change.notes.proposals()?.0.iter().any(|there| there.id == *id);
    // Where it was not this process before a crash, a person has decided meanwhile.
    if !is_there && !may_be_written {
        made.warnings.push(format!("{id} is not withdrawn: it no longer waits"));
        return Ok(());
    }
    waiting::end(change, &Ended::from([(id.clone(), None)]))?;
    made.warnings.extend(waiting.withdrawal());
    made.waiting.push(waiting.clone());
    Ok(())
}

/// Replaces the text of a note. What it said before stays in the archive.
fn update<P: Persistence>(
    change: &Change<P>,
    note: &PlannedNote,
    old: &Note,
    at: i64,
    made: &mut Made,
) -> Result<()> {
    let draft = Draft { body: whole_lines(&note.draft.body), ..note.draft.clone() };
    let meta = old.entry.meta();
    // Written before a crash.
    if (old.entry.body(), &meta.title, meta.updated_at) == (draft.body.as_bytes(), &draft.title, at) {
        made.note(&meta.id, &draft.title, Action::Update);
        return Ok(());
    }
    let entry = match note.replaces.as_ref() == Some(&old.entry.fingerprint()) {
        true => updated(&old.entry, note, &draft, at),
        false => Err(Error::conflict("it has changed since it was read")),
    };
    match entry {
        Ok(entry) => {
            change.supersede(old, entry, at)?;
            made.note(&meta.id, &draft.title, Action::Update);
        }
        Err(why) => {
            let (path, why) = (old.path.display(), why.message());
            made.warnings.push(format!("\"{path}\" is not updated: {why}; the change waits for review"));
            let session = draft.sources.first().cloned();
            let mut tags = meta.tags.clone();
            add_missing(&mut tags, draft.tags);
            let draft = Some(Draft { tags, ..draft });
            let proposal = Proposal {
                reasons: vec![format!("The note is not updated: {why}.")],
                session,
                ..Proposal::about(&old.entry, Op::Update, draft, note.by, note.created_at)
            };
            made.waits(change, waiting::settle(change, proposal)?);
        }
    }
    Ok(())
}

fn updated(old: &Entry, note: &PlannedNote, draft: &Draft, at: i64) -> Result<Entry> {
    let is_edited = old.is_edited();
    let mut entry = old.clone();
    entry.set_body(draft.body.as_bytes());
    entry.update(|meta| {
        meta.title.clone_from(&draft.title);
        meta.summary.clone_from(&draft.summary);
        add_missing(&mut meta.tags, draft.tags.iter().cloned());
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
        add_missing(&mut meta.outside, note.outside.iter().cloned());
        meta.updated_at = at;
    })?;
    // What a person has edited by hand stays theirs.
    if !is_edited {
        entry.seal()?;
    }
    Ok(entry)
}

fn create<P: Persistence>(
    change: &Change<P>,
    note: &PlannedNote,
    at: i64,
    may_be_written: bool,
    made: &mut Made,
) -> Result<()> {
    let PlannedNote { id, created_at, draft, .. } = note;
    made.note(id, &draft.title, Action::Create);
    // Written before a crash, and perhaps read or renamed since. To find that it is not there, every note is read.
    if may_be_written
        && let Some(there) = change.notes.own(id)?
        && there.entry.meta().created_at == *created_at
    {
        return Ok(());
    }
    let Draft { title, summary, tags, scope, until, body, sources } = draft.clone();
    let mut meta = Meta {
        title,
        summary,
        tags,
        status: note.status,
        tier: Tier::Warm,
        scope,
        until,
        by: Some(note.by),
        outside: note.outside.clone(),
        created_at: *created_at,
        updated_at: at,
        sources,
        ..Meta::new(id.clone())
    };
    let body = whole_lines(&body);
    // Many sources with long paths are more than a front matter takes. A plan that can never be written would
    // stand in the way of all that comes after it.
    let mut entry = sealed(&meta, &body)?;
    while entry.fits().is_err() && meta.sources.pop().is_some() {
        entry = sealed(&meta, &body)?;
    }
    let (kept, all) = (meta.sources.len(), draft.sources.len());
    if kept < all {
        made.warnings.push(format!("\"{}\": only {kept} of its {all} sources have room", draft.title));
    }
    entry.fits().map_err(|why| Error::io(format!("\"{}\" cannot be written: {why}", draft.title)))?;
    change.add(entry).map(drop)
}

fn sealed(meta: &Meta, body: &str) -> Result<Entry> {
    let mut entry = Entry::new(meta.clone(), body.as_bytes());
    // One that is too large cannot be read again, and is told so by whoever asks for it.
    if entry.fits().is_ok() {
        entry.seal()?;
    }
    Ok(entry)
}

/// Puts a note into the archive.
fn retire<P: Persistence>(
    change: &Change<P>,
    retirement: &Retirement,
    at: i64,
    made: &mut Made,
) -> Result<()> {
    let Retirement { id, title, replaces, .. } = retirement;
    match change.notes.find_own(id) {
        Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {
            made.warnings.push(format!("{id} is not retired: {}", why.message()));
        }
        Err(why) => return Err(why),
        Ok(note) if note.place == Place::Topics && note.entry.fingerprint() != *replaces => {
            let proposal = Proposal {
                reasons: vec!["The note has changed since the model saw it.".to_owned()],
                ..Proposal::about(&note.entry, Op::Retire, None, By::Agent, at)
            };
            made.waits(change, waiting::settle(change, proposal)?);
        }
        Ok(note) => {
            // It is there already where it was retired before a crash.
            if note.place == Place::Topics {
                change.archive(&note)?;
            }
            made.note(id, title, Action::Retire);
        }
    }
    Ok(())
}
