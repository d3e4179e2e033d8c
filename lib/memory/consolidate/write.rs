//! What is written: planned notes, and notes of a person as they are.

use crate::base::error::{Error, Result};
use crate::base::text::whole_lines;
use crate::memory::consolidate::desk::Desk;
use crate::memory::consolidate::plan::{Origin, Plan, PlannedNote};
use crate::memory::consolidate::work::Written;
use crate::memory::hash::hash;
use crate::memory::links::new_id;
use crate::store::entry::{Entry, EntryId, Meta, Scope, Source, Status, Tier};
use crate::store::journal::entry::{QueueEntry, Retrieval};
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::topics::Topics;
use std::collections::BTreeSet;

impl Desk<'_> {
    pub(crate) fn origin(entry: &QueueEntry) -> Origin {
        Origin {
            harness: entry.harness.name().to_owned(),
            thread_id: entry.thread_id().map(str::to_owned),
            repo: entry.context.repo.clone(),
            cwd: entry.context.cwd.as_ref().map(|cwd| cwd.to_string_lossy().into_owned()),
        }
    }

    /// A note that a person wrote, filed as it is.
    pub(crate) fn as_it_is(
        &self,
        entry: &QueueEntry,
        status: Status,
        ids: &mut BTreeSet<EntryId>,
    ) -> Option<PlannedNote> {
        let Retrieval::Inline { title, body, tags, scope, .. } = &entry.retrieval else { return None };
        let clean = |text: &str| self.redactor.cleaned(text);
        let title = clean(title);
        let created_at = entry.timestamp.as_millisecond();
        let has_repo = entry.context.repo.is_some();
        Some(PlannedNote {
            id: new_id(&title, created_at, ids),
            update: None,
            replaces: None,
            created_at,
            status,
            title,
            summary: String::new(),
            tags: tags.clone(),
            scope: if has_repo { *scope } else { Scope::Global },
            body: clean(body),
            sources: vec![Desk::origin(entry)],
        })
    }

    /// Replaces the note that `note` updates, or adds a new one; when it is written already, nothing.
    pub(crate) fn write_note(&self, note: &PlannedNote, plan: &Plan) -> Result<Written> {
        let topics = Topics::at(self.root);
        let lock = topics.lock()?;
        let title = note.title.clone();
        let at = plan.at.as_millisecond();
        let mut body = whole_lines(&note.body);
        if let Some(id) = &note.update
            && let Ok(old) = topics.find_own(id)
            && old.place == Place::Topics
        {
            let mut entry = old.entry.clone();
            entry.set_body(body.as_bytes());
            let may =
                may_replace(note, &old).then_some(()).ok_or("it has changed since it was read".to_owned());
            let changed = may.and_then(|()| {
                entry
                    .update(|meta| {
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
                    .map_err(|error| error.line())
            });
            match changed {
                Ok(()) => {
                    topics.replace(&lock, &old, entry)?;
                    return Ok(Written { id: id.clone(), title, is_update: true });
                }
                Err(why) => {
                    self.reporter.warn(&format!(
                        "\"{}\" is not updated: {why}; see {}",
                        old.path.display(),
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
            return Ok(written);
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
            self.reporter.warn(&format!("\"{}\": only {kept} of its {all} sources have room", note.title));
        }
        entry.fits().map_err(|why| Error::io(format!("\"{}\" cannot be written: {why}", note.title)))?;
        topics.add(&lock, entry)?;
        Ok(written)
    }
}

/// Does the note still say what was to be replaced, or, after a crash, already what replaces it?
fn may_replace(new: &PlannedNote, old: &Note) -> bool {
    let body = old.entry.body();
    new.replaces.as_ref() == Some(&hash(body)) || body == whole_lines(&new.body).as_bytes()
}
