//! What a plan says is written, once, whatever crash comes between.

use crate::base::error::{Error, Result};
use crate::base::text::whole_lines;
use crate::memory::consolidate::plan::PlannedNote;
use crate::memory::consolidate::work::Written;
use crate::memory::hash::hash;
use crate::store::entry::{Entry, Meta, Source, Status, Tier};
use crate::store::persistence::{Note, Persistence, Place};
use jiff::Timestamp;

/// Replaces the note that `note` updates, or adds a new one; if it is written already, nothing. Beside what was written
/// come warnings: what a person has changed since stays, and the new text becomes a note of its own.
///
/// # Errors
/// The store cannot be read or written; or the note is larger than a note may be.
pub fn write<P: Persistence>(
    topics: &P,
    note: &PlannedNote,
    at: Timestamp,
) -> Result<(Written, Vec<String>)> {
    let mut warnings = Vec::new();
    let lock = topics.lock()?;
    let title = note.title.clone();
    let at = at.as_millisecond();
    let mut body = whole_lines(&note.body);
    if let Some(id) = &note.update
        && let Ok(old) = topics.find_own(id)
        && old.place == Place::Topics
    {
        let mut entry = old.entry.clone();
        entry.set_body(body.as_bytes());
        let changed = || Error::conflict("it has changed since it was read");
        let may = may_replace(note, &old).then_some(()).ok_or_else(changed);
        let changed = may.and_then(|()| {
            entry.update(|meta| {
                meta.title.clone_from(&note.title);
                if !note.summary.is_empty() {
                    meta.summary.clone_from(&note.summary);
                }
                for tag in &note.tags {
                    if !meta.tags.contains(tag) {
                        meta.tags.push(tag.clone());
                    }
                }
                for source in note.sources.iter().map(Source::from) {
                    if !meta.sources.contains(&source) {
                        meta.sources.push(source);
                    }
                }
                if meta.status == Status::Captured {
                    meta.status = Status::Consolidated;
                }
                meta.updated_at = at;
            })
        });
        match changed {
            Ok(()) => {
                topics.replace(&lock, &old, entry)?;
                return Ok((Written { id: id.clone(), title, is_update: true }, warnings));
            }
            Err(why) => {
                warnings.push(format!(
                    "\"{}\" is not updated: {}; see {}",
                    old.path.display(),
                    why.message(),
                    note.id
                ));
                body = format!("{}\n\nSee also [[{id}]].\n", body.trim_end());
            }
        }
    }
    let written = Written { id: note.id.clone(), title, is_update: false };
    // Written before a crash, and perhaps read since.
    if let Ok(there) = topics.find_own(&note.id)
        && there.entry.meta().created_at == note.created_at
    {
        return Ok((written, warnings));
    }
    let meta = Meta {
        title: note.title.clone(),
        summary: note.summary.clone(),
        tags: note.tags.clone(),
        status: note.status,
        tier: Tier::Warm,
        scope: note.scope,
        created_at: note.created_at,
        updated_at: at,
        sources: note.sources.iter().map(Source::from).collect(),
        ..Meta::new(note.id.clone())
    };
    // Many sources with long paths are more than a front matter takes. A plan that can never be written would
    // stand in the way of all that comes after it.
    let mut meta = meta;
    let mut entry = Entry::new(meta.clone(), body.as_bytes());
    while entry.fits().is_err() && meta.sources.pop().is_some() {
        entry = Entry::new(meta.clone(), body.as_bytes());
    }
    if meta.sources.len() < note.sources.len() {
        let (kept, all) = (meta.sources.len(), note.sources.len());
        warnings.push(format!("\"{}\": only {kept} of its {all} sources have room", note.title));
    }
    entry.fits().map_err(|why| Error::io(format!("\"{}\" cannot be written: {why}", note.title)))?;
    topics.add(&lock, entry)?;
    Ok((written, warnings))
}

/// Does the note still say what was to be replaced, or, after a crash, already what replaces it?
fn may_replace(new: &PlannedNote, old: &Note) -> bool {
    let body = old.entry.body();
    new.replaces.as_ref() == Some(&hash(body)) || body == whole_lines(&new.body).as_bytes()
}
