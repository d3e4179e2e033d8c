//! What becomes of a note's front matter.

use crate::base::error::Result;
use crate::base::glob;
use crate::memory::pipeline::reply::Text;
use crate::store::entry::{ANCHORS, Entry, EntryId, Meta, Status, Tier, add_missing};

/// What a note says now, in its front matter.
pub(super) fn fill(meta: &mut Meta, text: &Text, at: i64) {
    meta.title.clone_from(&text.title);
    if !text.summary.is_empty() {
        meta.summary.clone_from(&text.summary);
    }
    add_missing(&mut meta.tags, text.tags.iter().cloned());
    if meta.status == Status::Captured {
        meta.status = Status::Consolidated;
    }
    meta.updated_at = at;
}

/// `meta` takes in what another note's says. If nothing of its text is taken over (`is_said`), it is no source, either.
pub(super) fn join(meta: &mut Meta, other: &Meta, is_said: bool) {
    if is_said {
        add_missing(&mut meta.tags, other.tags.iter().cloned());
        add_missing(&mut meta.paths, other.paths.iter().cloned());
        meta.paths.truncate(glob::MOST);
        add_missing(&mut meta.anchors, other.anchors.iter().cloned());
        meta.anchors.truncate(ANCHORS);
        // What any of them knows from the default branch holds there.
        meta.branch = meta.branch.take().filter(|_| other.branch.is_some());
        add_missing(&mut meta.outside, other.outside.iter().cloned());
        add_missing(&mut meta.sources, other.sources.iter().cloned());
    }
    let ids = std::iter::once(&other.id).chain(&other.aliases).filter(|id| **id != meta.id);
    add_missing(&mut meta.aliases, ids.cloned());
    meta.pinned |= other.pinned;
    meta.rank = meta.rank.max(other.rank);
    meta.used = meta.used.saturating_add(other.used);
    meta.last_used = meta.last_used.max(other.last_used);
    meta.created_at = meta.created_at.min(other.created_at);
    // The most shown of them says how much it is shown.
    let warmth = |tier| [Tier::Cold, Tier::Warm, Tier::Hot].iter().position(|one| *one == tier);
    if warmth(other.tier) > warmth(meta.tier) {
        cool(meta, other.tier);
    }
}

/// Promoted exactly while hot.
pub(super) fn cool(meta: &mut Meta, tier: Tier) {
    meta.tier = tier;
    meta.status = match (tier, meta.status) {
        (Tier::Hot, _) => Status::Promoted,
        (Tier::Warm | Tier::Cold, Status::Promoted) => Status::Consolidated,
        (Tier::Warm | Tier::Cold, status) => status,
    };
}

/// A note as it lies in the archive, for the sake of `successor` if there is one.
pub(super) fn in_archive(entry: &Entry, successor: Option<&EntryId>) -> Result<Entry> {
    let mut entry = entry.clone();
    entry.update(|meta| {
        if let Some(successor) = successor {
            meta.superseded_by = Some(successor.clone());
        }
        if meta.tier == Tier::Hot {
            cool(meta, Tier::Cold);
        }
    })?;
    Ok(entry)
}

/// A part of a split that is a note of its own.
pub(super) fn part_of(old: &Meta, id: &EntryId, part: &Text, at: i64) -> Entry {
    let mut meta = Meta {
        scope: old.scope,
        pinned: old.pinned,
        tier: old.tier,
        rank: old.rank,
        until: old.until,
        status: old.status,
        tags: if part.tags.is_empty() { old.tags.clone() } else { Vec::new() },
        paths: old.paths.clone(),
        anchors: old.anchors.clone(),
        branch: old.branch.clone(),
        sources: old.sources.clone(),
        outside: old.outside.clone(),
        created_at: at,
        ..Meta::new(id.clone())
    };
    fill(&mut meta, part, at);
    Entry::new(meta, part.body.as_bytes())
}
