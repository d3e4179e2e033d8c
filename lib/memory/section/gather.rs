//! Which notes an audience is shown, and how much of each.

use crate::base::error::Result;
use crate::memory::section::note::{self, Link};
use crate::memory::service::belongs_to;
use crate::store::entry::{EntryId, Meta, Scope, Tier};
use crate::store::persistence::{Broken, Note, Persistence, Place};
use crate::store::place::Root;
use crate::store::topics::Topics;

/// What a token is taken for.
pub(crate) const BYTES_A_TOKEN: u64 = 4;

/// What a section holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) hot: usize,
    pub(crate) warm: usize,
    /// Counted only.
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

/// What one audience is shown, in the order of titles.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    /// Notes as they stand in the section.
    pub(crate) hot: Vec<String>,
    /// Lines of a list.
    pub(crate) warm: Vec<String>,
    pub(crate) cold: usize,
    /// How many of the cold are warm ones that there was no room for.
    pub(crate) beyond: usize,
    /// What all that are hot would take.
    pub(crate) hot_bytes: u64,
    /// Titles of hot notes that are among the warm for want of room.
    pub(crate) crowded_out: Vec<String>,
}

impl Shelf {
    pub(crate) fn shown(&self) -> Shown {
        Shown { hot: self.hot.len(), warm: self.warm.len(), cold: self.cold }
    }
}

/// What is kept of a note once its file is forgotten.
#[derive(Debug, Clone)]
struct Kept {
    /// The order of the section: lower case, so that it is the same for everybody.
    order: (String, EntryId),
    link: Link,
    hot: Option<Hot>,
}

#[derive(Debug, Clone)]
struct Hot {
    is_pinned: bool,
    bytes: u64,
    /// `None` if it would not fit even alone.
    block: Option<String>,
}

/// What each audience is shown: a repository's notes, or for `None` those for everybody.
pub(crate) fn gather(
    root: &Root,
    audiences: &[Option<&str>],
    limits: Limits,
) -> Result<(Vec<Shelf>, Vec<Broken>)> {
    let scan = Topics::at(root).scan(&[Place::Topics], |found| share(&found, audiences, limits))?;
    Ok((shelves(scan.found.into_iter().flatten(), audiences.len(), limits), scan.broken))
}

/// A note that somebody is shown.
pub(crate) struct Share {
    /// Whose it is, by their numbers.
    audiences: Vec<usize>,
    /// `None`: it is only counted.
    kept: Option<Kept>,
}

pub(crate) fn share(found: &Note, audiences: &[Option<&str>], limits: Limits) -> Option<Share> {
    let meta = found.entry.meta();
    let wanted: Vec<usize> = (0..audiences.len()).filter(|&n| is_for(meta, audiences[n])).collect();
    (!wanted.is_empty()).then(|| Share { audiences: wanted, kept: kept(found, limits) })
}

/// What so many audiences are shown.
pub(crate) fn shelves(shares: impl Iterator<Item = Share>, audiences: usize, limits: Limits) -> Vec<Shelf> {
    let mut all: Vec<(Vec<Kept>, usize)> = (0..audiences).map(|_| Default::default()).collect();
    for Share { audiences, kept } in shares {
        let Some((last, others)) = audiences.split_last() else { continue };
        for index in others {
            put(&mut all, *index, kept.clone());
        }
        put(&mut all, *last, kept);
    }
    all.into_iter().map(|(notes, cold)| shelf(notes, cold, limits)).collect()
}

fn put(all: &mut [(Vec<Kept>, usize)], index: usize, kept: Option<Kept>) {
    let Some((notes, cold)) = all.get_mut(index) else { return };
    match kept {
        Some(kept) => notes.push(kept),
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
fn kept(found: &Note, limits: Limits) -> Option<Kept> {
    let meta = found.entry.meta();
    let is_hot = meta.pinned || meta.tier == Tier::Hot;
    if meta.tier == Tier::Cold && !is_hot {
        return None;
    }
    let hot = is_hot.then(|| {
        let raw = found.entry.body().len() as u64;
        // One that is far too large is not even made ready.
        let block = (raw <= limits.hot_bytes).then(|| note::block(found));
        let bytes = block.as_ref().map_or(raw, |block| block.len() as u64);
        Hot { is_pinned: meta.pinned, bytes, block: block.filter(|_| bytes <= limits.hot_bytes) }
    });
    Some(Kept { order: (meta.title.to_lowercase(), meta.id.clone()), link: Link::of(found), hot })
}

fn shelf(mut notes: Vec<Kept>, cold: usize, limits: Limits) -> Shelf {
    notes.sort_by(|a, b| a.order.cmp(&b.order));
    let mut shelf = Shelf { cold, ..Shelf::default() };
    let mut room = limits.hot_bytes;
    let mut is_whole = vec![false; notes.len()];
    for pinned in [true, false] {
        for (note, whole) in notes.iter().zip(&mut is_whole) {
            let Some(hot) = note.hot.as_ref().filter(|hot| hot.is_pinned == pinned) else { continue };
            shelf.hot_bytes += hot.bytes;
            if hot.block.is_some() && hot.bytes <= room {
                room -= hot.bytes;
                *whole = true;
            }
        }
    }
    // Hot ones that did not fit come before those that are only warm.
    let crowded_out =
        notes.iter().zip(&is_whole).filter(|(note, whole)| note.hot.is_some() && !**whole).count();
    let mut for_warm = limits.warm.saturating_sub(crowded_out);
    let mut for_hot = limits.warm;
    for (note, whole) in notes.into_iter().zip(is_whole) {
        let places = match note.hot {
            Some(Hot { block: Some(block), .. }) if whole => {
                shelf.hot.push(block);
                continue;
            }
            Some(_) => {
                shelf.crowded_out.push(note.link.title.clone());
                &mut for_hot
            }
            None => &mut for_warm,
        };
        if *places > 0 {
            *places -= 1;
            shelf.warm.push(note.link.line());
        } else {
            shelf.cold += 1;
            shelf.beyond += 1;
        }
    }
    shelf
}

/// A note that was asked for by its id: shown whatever its audience, and even if it is cold.
pub(crate) fn chosen(found: &Note, limits: Limits) -> Share {
    let meta = found.entry.meta();
    let cold =
        || Kept { order: (meta.title.to_lowercase(), meta.id.clone()), link: Link::of(found), hot: None };
    Share { audiences: vec![0], kept: Some(kept(found, limits).unwrap_or_else(cold)) }
}
