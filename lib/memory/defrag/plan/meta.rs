//! What becomes of a note's front matter when it takes in another, or another tier.

use crate::store::entry::{Meta, Status, Tier, add_missing};

/// `meta` takes in what another note's says. If nothing of its text is taken over (`is_said`), it is no source, either.
pub(super) fn join(meta: &mut Meta, other: &Meta, is_said: bool) {
    if is_said {
        add_missing(&mut meta.tags, other.tags.iter().cloned());
        add_missing(&mut meta.outside, other.outside.iter().cloned());
        add_missing(&mut meta.sources, other.sources.iter().cloned());
    }
    for id in std::iter::once(&other.id).chain(&other.aliases) {
        if !meta.aliases.contains(id) && *id != meta.id {
            meta.aliases.push(id.clone());
        }
    }
    meta.pinned |= other.pinned;
    meta.rank = meta.rank.max(other.rank);
    meta.used = meta.used.saturating_add(other.used);
    meta.last_used = meta.last_used.max(other.last_used);
    meta.created_at = meta.created_at.min(other.created_at);
    // The most shown of them says how much it is shown.
    if warmth(other.tier) > warmth(meta.tier) {
        cool(meta, other.tier);
    }
}

fn warmth(tier: Tier) -> u8 {
    match tier {
        Tier::Cold => 0,
        Tier::Warm => 1,
        Tier::Hot => 2,
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
