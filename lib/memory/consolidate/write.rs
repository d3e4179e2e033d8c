//! What a plan says is written, once, whatever crash comes between.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::whole_lines;
use crate::memory::consolidate::plan::{Change, PlannedNote, PlannedRetirement, PlannedWithdrawal};
use crate::memory::consolidate::work::{Action, Outcome, Waiting, Written};
use crate::memory::waiting;
use crate::store::change::Change as Changing;
use crate::store::entry::{By, Entry, Meta, Source, Status, Tier, add_missing};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::proposal::{Draft, Op, Proposal};
use jiff::Timestamp;

/// Carries out a change; if it is made already, nothing. Beside the outcome come warnings. What a person has changed
/// since stays, and the new text waits as a proposal. `may_be_written` is false only if this process did the `LookUp` that
/// the plan was made from: then no crash can lie between.
///
/// # Errors
/// The store cannot be read or written; or the note is larger than a note may be.
pub fn write<P: Persistence>(
    topics: &P,
    change: &Change,
    at: Timestamp,
    may_be_written: bool,
) -> Result<(Outcome, Vec<String>)> {
    let changing = Changing::of(topics)?;
    let at = at.as_millisecond();
    let done = match change {
        Change::Note(note) => {
            let done = match &note.update {
                Some(_) => update(&changing, note, at, may_be_written),
                None => create(&changing, note, at, may_be_written),
            }?;
            if let (Outcome::Note(written), _) = &done
                && let Some(note) = changing.notes.own(&written.id)?
            {
                waiting::landed(&changing, &note)?;
            }
            done
        }
        Change::Retire(retirement) => retire(&changing, retirement, at)?,
        Change::Propose(proposal) => {
            let there = waiting::keep(&changing, (**proposal).clone())?;
            (Outcome::Waits(told(&changing.notes, there)), Vec::new())
        }
        Change::Withdraw(withdrawal) => withdraw(&changing, withdrawal, may_be_written)?,
    };
    changing.write().map(|()| done)
}

fn proposed<P: Persistence>(changing: &Changing<P>, proposal: Proposal) -> Result<Waiting> {
    Ok(told(&changing.notes, waiting::settle(changing, proposal)?))
}

fn told<P: Persistence>(topics: &P, proposal: Proposal) -> Waiting {
    let note = proposal.note.clone();
    let title = match (&proposal.entry, &note) {
        (Some(entry), _) => entry.title.clone(),
        (None, Some(id)) => {
            topics.find_own(id).map_or_else(|_| id.to_string(), |note| note.entry.meta().title.clone())
        }
        (None, None) => String::new(),
    };
    Waiting { id: proposal.id, op: proposal.op, note, title, withdrawn: None }
}

/// Takes back what waits. The commit of this run says why, and the run does.
fn withdraw<P: Persistence>(
    changing: &Changing<P>,
    withdrawal: &PlannedWithdrawal,
    may_be_written: bool,
) -> Result<(Outcome, Vec<String>)> {
    let PlannedWithdrawal { id, op, note, title, reason } = withdrawal.clone();
    let (there, _) = changing.notes.proposals()?;
    // Where it was not this process before a crash, a person has decided meanwhile.
    if there.iter().all(|there| there.id != id) && !may_be_written {
        return Ok((Outcome::Unchanged, vec![format!("{id} is not withdrawn: it no longer waits")]));
    }
    waiting::end(changing, &id, None)?;
    let waiting = Waiting { id, op, note, title, withdrawn: Some(reason) };
    let told = waiting.withdrawal().into_iter().collect();
    Ok((Outcome::Waits(waiting), told))
}

/// Replaces the text of a note. What it said before stays in the archive.
fn update<P: Persistence>(
    changing: &Changing<P>,
    note: &PlannedNote,
    at: i64,
    may_be_written: bool,
) -> Result<(Outcome, Vec<String>)> {
    let Some(id) = &note.update else { return create(changing, note, at, may_be_written) };
    let body = whole_lines(&note.body);
    let written = Written { id: id.clone(), title: note.title.clone(), action: Action::Update };
    let old = match changing.notes.own(id)? {
        Some(old) if old.place == Place::Topics => old,
        // It has gone since: nothing stands beside the new text.
        _ => {
            let mut new = note.clone();
            new.update = None;
            return create(changing, &new, at, may_be_written);
        }
    };
    // Written before a crash.
    if old.entry.body() == body.as_bytes()
        && old.entry.meta().title == note.title
        && old.entry.meta().updated_at == at
    {
        return Ok((Outcome::Note(written), Vec::new()));
    }
    let changed = || Error::conflict("it has changed since it was read");
    let may = note.replaces.as_ref() == Some(&old.entry.fingerprint());
    let entry = may.then_some(()).ok_or_else(changed).and_then(|()| updated(&old.entry, note, &body, at));
    match entry {
        Ok(entry) => {
            changing.supersede(&old, entry, at)?;
            Ok((Outcome::Note(written), Vec::new()))
        }
        Err(why) => {
            let why = why.message();
            let warning =
                format!("\"{}\" is not updated: {why}; the change waits for review", old.path.display());
            let mut tags = old.entry.meta().tags.clone();
            add_missing(&mut tags, note.tags.iter().cloned());
            let proposal = Proposal {
                note: Some(id.clone()),
                base: Some(old.entry.base()),
                entry: Some(Draft {
                    title: note.title.clone(),
                    summary: note.summary.clone(),
                    tags,
                    scope: note.scope,
                    until: note.until,
                    body,
                    sources: note.sources.iter().map(Source::from).collect(),
                }),
                reasons: vec![format!("The note is not updated: {why}.")],
                session: note.sources.first().map(Source::from),
                ..Proposal::new(Op::Update, &note.title, note.by, note.created_at)
            };
            Ok((Outcome::Waits(proposed(changing, proposal)?), vec![warning]))
        }
    }
}

fn updated(old: &Entry, note: &PlannedNote, body: &str, at: i64) -> Result<Entry> {
    let is_edited = old.is_edited();
    let mut entry = old.clone();
    entry.set_body(body.as_bytes());
    entry.update(|meta| {
        meta.title.clone_from(&note.title);
        meta.summary.clone_from(&note.summary);
        add_missing(&mut meta.tags, note.tags.iter().cloned());
        for source in note.sources.iter().map(Source::from) {
            let is_this = |known: &Source| {
                (&known.harness, &known.thread_id, &known.repo)
                    == (&source.harness, &source.thread_id, &source.repo)
            };
            if !meta.sources.iter().any(is_this) {
                meta.sources.push(source);
            }
        }
        if meta.status == Status::Captured {
            meta.status = Status::Consolidated;
        }
        meta.until = note.until;
        meta.by = Some(note.by);
        meta.scope = note.scope;
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
    changing: &Changing<P>,
    note: &PlannedNote,
    at: i64,
    may_be_written: bool,
) -> Result<(Outcome, Vec<String>)> {
    let mut warnings = Vec::new();
    let written = Written { id: note.id.clone(), title: note.title.clone(), action: Action::Create };
    // Written before a crash, and perhaps read or renamed since. To find that it is not there, every note is read.
    if may_be_written
        && let Some(there) = changing.notes.own(&note.id)?
        && there.entry.meta().created_at == note.created_at
    {
        return Ok((Outcome::Note(written), warnings));
    }
    let body = whole_lines(&note.body);
    let mut meta = Meta {
        title: note.title.clone(),
        summary: note.summary.clone(),
        tags: note.tags.clone(),
        status: note.status,
        tier: Tier::Warm,
        scope: note.scope,
        until: note.until,
        by: Some(note.by),
        outside: note.outside.clone(),
        created_at: note.created_at,
        updated_at: at,
        sources: note.sources.iter().map(Source::from).collect(),
        ..Meta::new(note.id.clone())
    };
    // Many sources with long paths are more than a front matter takes. A plan that can never be written would
    // stand in the way of all that comes after it.
    let mut entry = sealed(&meta, &body)?;
    while entry.fits().is_err() && meta.sources.pop().is_some() {
        entry = sealed(&meta, &body)?;
    }
    if meta.sources.len() < note.sources.len() {
        let (kept, all) = (meta.sources.len(), note.sources.len());
        warnings.push(format!("\"{}\": only {kept} of its {all} sources have room", note.title));
    }
    entry.fits().map_err(|why| Error::io(format!("\"{}\" cannot be written: {why}", note.title)))?;
    changing.add(entry)?;
    Ok((Outcome::Note(written), warnings))
}

fn sealed(meta: &Meta, body: &str) -> Result<Entry> {
    let mut entry = Entry::new(meta.clone(), body.as_bytes());
    // One that is too large cannot be read again, and is told so below.
    if entry.fits().is_ok() {
        entry.seal()?;
    }
    Ok(entry)
}

/// Puts a note into the archive.
fn retire<P: Persistence>(
    changing: &Changing<P>,
    retirement: &PlannedRetirement,
    at: i64,
) -> Result<(Outcome, Vec<String>)> {
    let PlannedRetirement { id, title, replaces, .. } = retirement;
    let written = Written { id: id.clone(), title: title.clone(), action: Action::Retire };
    let unchanged = |why: String| Ok((Outcome::Unchanged, vec![why]));
    match changing.notes.find_own(id) {
        Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => {
            unchanged(format!("{id} is not retired: {}", why.message()))
        }
        Err(why) => Err(why),
        // Before a crash.
        Ok(Note { place: Place::Archive, .. }) => Ok((Outcome::Note(written), Vec::new())),
        Ok(note) if note.entry.fingerprint() != *replaces => {
            let waiting = Proposal {
                note: Some(id.clone()),
                base: Some(note.entry.base()),
                reasons: vec!["The note has changed since the model saw it.".to_owned()],
                ..Proposal::new(Op::Retire, title, By::Agent, at)
            };
            Ok((Outcome::Waits(proposed(changing, waiting)?), Vec::new()))
        }
        Ok(note) => {
            changing.archive(&note)?;
            Ok((Outcome::Note(written), Vec::new()))
        }
    }
}
