//! The existing notes that have to do with what a prompt shows.

use crate::base::error::Result;
use crate::base::text::border;
use crate::memory::consolidate::ask::RelatedNote;
use crate::memory::hash::hash;
use crate::memory::redact::Redactor;
use crate::memory::search::{self, Document, Query};
use crate::memory::service::belongs_to;
use crate::store::entry::{Meta, Scope};
use crate::store::persistence::{Persistence, Place};
use std::collections::{BTreeMap, BTreeSet};

/// What stands around a note in the prompt takes so many bytes, at most.
const FRAME: usize = 250;
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

/// The notes that have to do with a text, within `room` bytes, and the tags in use. Notes of other repositories than
/// `repos` stay out. The hash of a body that is shown whole tells later whether it has changed.
pub fn related<P: Persistence>(
    notes: &P,
    text: &str,
    repos: &BTreeSet<&str>,
    room: usize,
    redactor: &Redactor,
) -> Result<(Vec<RelatedNote>, Vec<String>)> {
    let query = Query::of_text(&sample(text));
    let scan = notes.scan(&[Place::Topics], |note| {
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
        let note = one_related(notes, meta, related.len() < WHOLE, left, redactor);
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

fn one_related<P: Persistence>(
    notes: &P,
    meta: &Meta,
    whole: bool,
    room: usize,
    redactor: &Redactor,
) -> RelatedNote {
    // One that is gone since, or broken, is not to be updated.
    let note = whole.then(|| notes.find_own(&meta.id).ok()).flatten();
    let hash = note.as_ref().map_or_else(String::new, |note| hash(note.entry.body()));
    let body = note.map(|note| String::from_utf8_lossy(note.entry.body()).into_owned());
    // People write notes past the queue, too.
    let clean = |text: &str| redactor.cleaned(text);
    RelatedNote {
        id: meta.id.clone(),
        title: clean(&meta.title),
        summary: clean(&meta.summary),
        tags: meta.tags.clone(),
        scope: meta.scope,
        body: body.map(|body| clean(&body)).filter(|body| body.len() + FRAME < room),
        hash,
    }
}
