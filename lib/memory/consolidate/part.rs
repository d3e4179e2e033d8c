//! What a call shows: the part under way, and the notes that have to do with it.

use crate::base::error::Result;
use crate::base::text::border;
use crate::memory::consolidate::ask::{self, Related, Shown};
use crate::memory::consolidate::desk::{Desk, FRAME, io};
use crate::memory::consolidate::history::{slice, text_name};
use crate::memory::consolidate::work::Work;
use crate::memory::hash::hash;
use crate::memory::search::{self, Document, Query};
use crate::memory::service::belongs_to;
use crate::store::entry::{Meta, Scope};
use crate::store::persistence::{Persistence, Place};
use crate::store::topics::Topics;
use std::collections::{BTreeMap, BTreeSet};

/// So many notes are shown whole, and so many more by title.
const WHOLE: usize = 6;
const BRIEF: usize = 30;
/// So many tags are shown, those in most use, and so many bytes of them.
const TAGS: usize = 60;
const TAG_BYTES: usize = 2000;

/// So much of a text is searched with, in bytes: half from its beginning, half from its end.
const SAMPLE: usize = 48 << 10;

/// The beginning and the end of a text: what a session is about stands there, and looking at all of it would take
/// longer than all else that is done for a call.
fn sample(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= SAMPLE {
        return text.into();
    }
    let (head, tail) = (border(text, SAMPLE / 2), border(text, text.len() - SAMPLE / 2));
    format!("{}\n{}", &text[..head], &text[tail..]).into()
}

impl Desk<'_> {
    /// The text that the part under way shows, one piece for each slice.
    fn texts(&self, work: &Work) -> Result<Vec<String>> {
        let batch = self.batch()?;
        let slices = work.parts.get(work.next).map_or(&[][..], |part| &part.slices[..]);
        slices.iter().map(|s| slice(&batch.file(&text_name(s.source)), s.from, s.to).map_err(io)).collect()
    }

    /// The prompt for the part under way. Remembers in `work` what may be updated.
    pub(crate) fn prompt(&self, work: &mut Work) -> Result<String> {
        let texts = self.texts(work)?;
        let entries = self.entries(work)?;
        let repos: BTreeSet<&str> =
            work.shown_ids().iter().filter_map(|id| entries.get(*id)?.context.repo.as_deref()).collect();
        let (related, tags) = self.related(&texts.concat(), &repos)?;
        let slices = work.parts.get(work.next).map_or(&[][..], |part| &part.slices[..]);
        let shown: Vec<Shown> = slices
            .iter()
            .zip(&texts)
            .filter_map(|(slice, text)| {
                let source = work.sources.get(slice.source)?;
                let entry = entries.get(&source.queue_id)?;
                Some(Shown {
                    queue_id: &source.queue_id,
                    harness: entry.harness.name(),
                    repo: entry.context.repo.as_deref(),
                    queued: entry.timestamp,
                    part: (slice.number, slice.of),
                    cut: source.cut,
                    text,
                })
            })
            .collect();
        let prompt = ask::prompt(&work.batch, self.env.now(), &shown, &related, &tags);
        let whole = related.into_iter().filter(|note| note.body.is_some());
        work.updatable = whole.map(|note| (note.id, note.mark)).collect();
        Ok(prompt)
    }

    /// The notes that have to do with a text, and the tags in use. Notes of other repositories stay out.
    fn related(&self, text: &str, repos: &BTreeSet<&str>) -> Result<(Vec<Related>, Vec<String>)> {
        let (_, room) = self.room()?;
        let query = Query::of_text(&sample(text));
        let scan = Topics::at(self.root).scan(&[Place::Topics], |note| {
            let meta = note.entry.meta();
            let is_near = meta.scope == Scope::Global || repos.iter().any(|repo| belongs_to(meta, repo));
            is_near.then(|| {
                let body = String::from_utf8_lossy(note.entry.body());
                let document =
                    Document { title: &meta.title, tags: &meta.tags, summary: &meta.summary, body: &body };
                (query.count(&document), meta.clone(), note.path.clone())
            })
        })?;
        let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
        let near: Vec<_> = scan.found.into_iter().flatten().collect();
        for tag in near.iter().flat_map(|(_, meta, _)| &meta.tags) {
            *uses.entry(tag).or_default() += 1;
        }
        let mut tags: Vec<(&str, usize)> = uses.into_iter().collect();
        tags.sort_by_key(|(tag, uses)| (std::cmp::Reverse(*uses), *tag));
        let mut bytes = 0;
        let tags = tags.into_iter().take(TAGS).map(|(tag, _)| tag.to_owned());
        let tags = tags
            .take_while(|tag| {
                bytes += tag.len() + 1;
                bytes <= TAG_BYTES
            })
            .collect();
        let counts: Vec<_> = near.iter().map(|(counts, ..)| counts.clone()).collect();
        let mut left = room;
        let mut related = Vec::new();
        for hit in search::rank(&query, &counts).into_iter().take(WHOLE + BRIEF) {
            let Some((_, meta, _)) = near.get(hit.index) else { continue };
            let note = self.one_related(meta, related.len() < WHOLE, left)?;
            let tags: usize = note.tags.iter().map(|tag| tag.len() + 1).sum();
            let body = note.body.as_ref().map_or(0, String::len);
            let size = body + note.title.len() + note.summary.len() + tags + FRAME;
            if size > left {
                break;
            }
            left -= size;
            related.push(note);
        }
        Ok((related, tags))
    }

    fn one_related(&self, meta: &Meta, whole: bool, room: usize) -> Result<Related> {
        // One that is gone since, or broken, is not to be updated.
        let note = whole.then(|| Topics::at(self.root).find_own(&meta.id).ok()).flatten();
        let mark = note.as_ref().map_or_else(String::new, |note| hash(note.entry.body()));
        let body = note.map(|note| String::from_utf8_lossy(note.entry.body()).into_owned());
        // People write notes past the queue, too.
        let clean = |text: &str| self.redactor.cleaned(text);
        Ok(Related {
            id: meta.id.clone(),
            title: clean(&meta.title),
            summary: clean(&meta.summary),
            tags: meta.tags.clone(),
            scope: meta.scope,
            body: body.map(|body| clean(&body)).filter(|body| body.len() + FRAME < room),
            mark,
        })
    }
}
