//! Selects the notes for each audience, and how much of each note it sees.

use crate::base::error::Result;
use crate::memory::search::{Cache, Part};
use crate::memory::section::note::{self, Link};
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope, Tier};
use crate::store::persistence::{Broken, Note, Place};
use crate::store::place::Root;
use crate::store::topics::{Topics, read};
use std::path::Path;

/// The estimate of tokens is this many bytes per token.
pub(super) const BYTES_A_TOKEN: u64 = 4;

/// The number of notes that a section has whole, as links, and not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NoteCounts {
    pub(crate) hot: usize,
    pub(crate) warm: usize,
    /// Only counted.
    pub(crate) cold: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    hot_bytes: u64,
    warm: usize,
}

impl Limits {
    pub(crate) fn of(hot_tokens: u64, warm: u64) -> Limits {
        Limits {
            hot_bytes: hot_tokens.saturating_mul(BYTES_A_TOKEN),
            warm: usize::try_from(warm).unwrap_or(usize::MAX),
        }
    }
}

/// What one audience sees, ordered by title.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Notes as in the section.
    pub(super) hot: Vec<String>,
    /// Lines of a list.
    pub(super) warm: Vec<String>,
    pub(super) cold: usize,
    /// How many of the cold notes are warm ones beyond the limit.
    pub(super) beyond: usize,
    /// The size of all hot notes together.
    pub(super) hot_bytes: u64,
    /// Titles of hot notes that are listed as warm because the limit is reached.
    pub(super) crowded_out: Vec<String>,
}

impl Selection {
    pub(super) fn counts(&self) -> NoteCounts {
        NoteCounts { hot: self.hot.len(), warm: self.warm.len(), cold: self.cold }
    }
}

/// What is left of a note after its file was read.
#[derive(Debug, Clone)]
struct Excerpt {
    /// The sort key. In lower case, so that the order does not depend on a locale.
    order: (String, EntryId),
    link: Link,
    hot: Option<Hot>,
}

#[derive(Debug, Clone)]
struct Hot {
    is_pinned: bool,
    bytes: u64,
    /// `None` if it is larger than the limit on its own.
    block: Option<String>,
}

/// What each audience sees: the notes of a repository, or for `None` the global ones.
pub(super) fn gather(
    root: &Root,
    audiences: &[Option<&str>],
    limits: Limits,
) -> Result<(Vec<Selection>, Vec<Broken>)> {
    let cache = Cache::open(root, Part::Metadata);
    let scan = Topics::at(root).scan_with(&[Place::Topics], |place, path| {
        if let Some(meta) = cache.known(path).and_then(|known| known.meta())
            && let Some(candidate) = candidate_without_text(&meta, path, audiences)
        {
            return Ok((meta.id, candidate));
        }
        let note = read(place, path)?;
        Ok((note.entry.meta().id.clone(), candidate(&note, audiences, limits)))
    })?;
    Ok((selections(scan.found.into_iter().flatten(), audiences.len(), limits), scan.broken))
}

/// A note that at least one audience may see.
pub(crate) struct Candidate {
    /// Indices of its audiences.
    audiences: Vec<usize>,
    /// `None` for a cold note, which is only counted.
    excerpt: Option<Excerpt>,
}

pub(crate) fn candidate(found: &Note, audiences: &[Option<&str>], limits: Limits) -> Option<Candidate> {
    let wanted = wanted(found.entry.meta(), audiences);
    (!wanted.is_empty()).then(|| Candidate { audiences: wanted, excerpt: excerpt(found, limits) })
}

/// The same from the metadata alone. `None` if the text is needed, as for a hot note.
fn candidate_without_text(meta: &Meta, path: &Path, audiences: &[Option<&str>]) -> Option<Option<Candidate>> {
    let wanted = wanted(meta, audiences);
    if wanted.is_empty() {
        return Some(None);
    }
    let excerpt = match meta.tier {
        _ if meta.pinned => return None,
        Tier::Hot => return None,
        Tier::Cold => None,
        Tier::Warm => Some(Excerpt { order: order(meta), link: Link::without_text(meta, path)?, hot: None }),
    };
    Some(Some(Candidate { audiences: wanted, excerpt }))
}

/// The indices of the audiences that a note is for.
fn wanted(meta: &Meta, audiences: &[Option<&str>]) -> Vec<usize> {
    (0..audiences.len()).filter(|&n| is_for(meta, audiences[n])).collect()
}

fn order(meta: &Meta) -> (String, EntryId) {
    (meta.title.to_lowercase(), meta.id.clone())
}

/// What each of `audiences` audiences sees.
pub(crate) fn selections(
    candidates: impl Iterator<Item = Candidate>,
    audiences: usize,
    limits: Limits,
) -> Vec<Selection> {
    let mut all: Vec<(Vec<Excerpt>, usize)> = (0..audiences).map(|_| Default::default()).collect();
    for Candidate { audiences, excerpt } in candidates {
        let Some((last, others)) = audiences.split_last() else { continue };
        for index in others {
            add(&mut all, *index, excerpt.clone());
        }
        add(&mut all, *last, excerpt);
    }
    all.into_iter().map(|(notes, cold)| select(notes, cold, limits)).collect()
}

fn add(all: &mut [(Vec<Excerpt>, usize)], index: usize, excerpt: Option<Excerpt>) {
    let Some((notes, cold)) = all.get_mut(index) else { return };
    match excerpt {
        Some(excerpt) => notes.push(excerpt),
        None => *cold += 1,
    }
}

fn is_for(meta: &Meta, audience: Option<&str>) -> bool {
    match audience {
        Some(repo) => belongs_to(meta, repo),
        None => meta.scope == Scope::Global,
    }
}

/// `None` for a cold note, which is only counted. A pinned one is hot, whatever its tier.
fn excerpt(found: &Note, limits: Limits) -> Option<Excerpt> {
    let meta = found.entry.meta();
    let is_hot = meta.pinned || meta.tier == Tier::Hot;
    if meta.tier == Tier::Cold && !is_hot {
        return None;
    }
    let hot = is_hot.then(|| {
        let raw = found.entry.body().len() as u64;
        // One that is much too large is not even sanitized.
        let block = (raw <= limits.hot_bytes).then(|| note::block(found));
        let bytes = block.as_ref().map_or(raw, |block| block.len() as u64);
        Hot { is_pinned: meta.pinned, bytes, block: block.filter(|_| bytes <= limits.hot_bytes) }
    });
    Some(Excerpt { order: order(meta), link: Link::of(found), hot })
}

fn select(mut notes: Vec<Excerpt>, cold: usize, limits: Limits) -> Selection {
    notes.sort_by(|a, b| a.order.cmp(&b.order));
    let mut selection = Selection { cold, ..Selection::default() };
    let mut room = limits.hot_bytes;
    let mut is_whole = vec![false; notes.len()];
    for pinned in [true, false] {
        for (note, whole) in notes.iter().zip(&mut is_whole) {
            let Some(hot) = note.hot.as_ref().filter(|hot| hot.is_pinned == pinned) else { continue };
            selection.hot_bytes += hot.bytes;
            if hot.block.is_some() && hot.bytes <= room {
                room -= hot.bytes;
                *whole = true;
            }
        }
    }
    // Hot notes beyond the limit have priority over warm ones.
    let crowded_out =
        notes.iter().zip(&is_whole).filter(|(note, whole)| note.hot.is_some() && !**whole).count();
    let mut for_warm = limits.warm.saturating_sub(crowded_out);
    let mut for_hot = limits.warm;
    for (note, whole) in notes.into_iter().zip(is_whole) {
        let left = match note.hot {
            Some(Hot { block: Some(block), .. }) if whole => {
                selection.hot.push(block);
                continue;
            }
            Some(_) => {
                selection.crowded_out.push(note.link.title.clone());
                &mut for_hot
            }
            None => &mut for_warm,
        };
        if *left > 0 {
            *left -= 1;
            selection.warm.push(note.link.line());
        } else {
            selection.cold += 1;
            selection.beyond += 1;
        }
    }
    selection
}

/// A note that was asked for by its id: shown whatever its audience, and even if it is cold.
pub(super) fn chosen(found: &Note, limits: Limits) -> Candidate {
    let meta = found.entry.meta();
    let cold = || Excerpt { order: order(meta), link: Link::of(found), hot: None };
    Candidate { audiences: vec![0], excerpt: Some(excerpt(found, limits).unwrap_or_else(cold)) }
}
