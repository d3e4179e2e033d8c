//! What belongs together among all notes, shared out over calls.

use crate::base::error::Result;
use crate::memory::defrag::ask;
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::group::{Item, groups_among};
use crate::memory::defrag::limits::{Limits, weight};
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::similar;
use crate::memory::defrag::work::Part;
use crate::memory::redact::Redactor;
use crate::store::entry::{EntryId, Tier, links};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The file of a batch with what was found out about all notes.
pub(super) const STRUCTURE: &str = "structure.json";

/// What was found out about all notes, for the prompts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Structure {
    /// Likely duplicates, with how alike they are in percent.
    pub pairs: Vec<(EntryId, EntryId, u8)>,
    /// How many notes lead to each.
    pub linked: BTreeMap<EntryId, usize>,
    /// How many notes there are of each reach.
    pub sizes: BTreeMap<Reach, Size>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Size {
    pub notes: usize,
    pub hot: usize,
}

/// What belongs together, and the calls to make about it.
#[derive(Debug)]
pub struct Shared<'a> {
    pub structure: Structure,
    pub parts: Vec<Part>,
    /// Notes that no call has room for.
    pub too_large: Vec<&'a CorpusNote>,
}

/// What is to be asked about.
pub struct Wanted<'a> {
    /// Has no call seen the note with this fingerprint?
    pub is_news: &'a dyn Fn(&EntryId, &str) -> bool,
    /// Is it to be decided what is hot among these notes?
    pub are_tiers_wanted: &'a dyn Fn(&Reach) -> bool,
    /// Everything is, new or not.
    pub is_forced: bool,
}

/// Finds out what belongs together among `notes`, and makes the parts of it. Whose notes no call has seen yet goes first.
///
/// # Errors
/// `Config`: the limits leave no room for notes.
pub fn share_out<'a>(
    notes: &'a [CorpusNote],
    wanted: &Wanted,
    limits: Limits,
    redactor: &Redactor,
) -> Result<Shared<'a>> {
    let room = limits.room()?;
    let ids: Vec<EntryId> = notes.iter().map(|note| note.id().clone()).collect();
    let places: BTreeMap<&EntryId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
    let texts: Vec<String> = notes
        .iter()
        .map(|note| format!("{}\n{}\n{}", note.meta().title, note.meta().summary, note.body()))
        .collect();
    // Both look at every word: the one for what is alike, the other for secrets.
    let (pairs, weights) = std::thread::scope(|scope| {
        let alike = std::thread::Builder::new().spawn_scoped(scope, || similar::pairs(&texts));
        let weights: Vec<usize> = notes.iter().map(|note| weight(note, redactor)).collect();
        // Where no thread is to be had, this one does the work.
        let pairs = alike.ok().and_then(|alike| alike.join().ok());
        (pairs.unwrap_or_else(|| similar::pairs(&texts)), weights)
    });
    drop(texts);
    let mut structure = Structure { pairs: ask::pairs_by_id(&pairs, &ids), ..Structure::default() };
    let mut items = Vec::new();
    let mut reaches: BTreeMap<Reach, Vec<usize>> = BTreeMap::new();
    for (at, (note, bytes)) in notes.iter().zip(weights).enumerate() {
        let links: BTreeSet<EntryId> = links(&note.body()).into_iter().collect();
        for id in &links {
            *structure.linked.entry(id.clone()).or_default() += 1;
        }
        let reach = Reach::of(note.meta());
        let size = structure.sizes.entry(reach.clone()).or_default();
        size.notes += 1;
        size.hot += usize::from(note.meta().pinned || note.meta().tier == Tier::Hot);
        let links = links.iter().filter_map(|id| places.get(id).copied()).collect();
        items.push(Item { bytes, tags: &note.meta().tags, links });
        reaches.entry(reach).or_default().push(at);
    }
    let mut too_large = Vec::new();
    let mut shares: Vec<(usize, Vec<Part>)> = Vec::new();
    for (reach, members) in reaches {
        let groups = groups_among(&members, &items, &pairs, room);
        too_large.extend(groups.too_large);
        let groups = groups.groups.iter().map(|group| {
            let notes: Vec<&CorpusNote> = group.iter().filter_map(|&at| notes.get(at)).collect();
            let count = notes.iter().filter(|note| (wanted.is_news)(note.id(), &note.mark)).count();
            (count, notes.into_iter().map(|note| note.id().clone()).collect())
        });
        shares.push(parts(reach, groups.collect(), wanted));
    }
    shares.sort_by_key(|(news, _)| Reverse(*news));
    let parts = shares.into_iter().flat_map(|(_, parts)| parts).collect();
    let too_large = too_large.into_iter().filter_map(|at| notes.get(at)).collect();
    Ok(Shared { structure, parts, too_large })
}

/// What is to be asked about the notes of one reach, and how many of them are new; `groups` with how many of theirs.
fn parts(reach: Reach, mut groups: Vec<(usize, Vec<EntryId>)>, wanted: &Wanted) -> (usize, Vec<Part>) {
    let count = groups.iter().map(|(news, _)| news).sum();
    let are_tiers_wanted = (wanted.are_tiers_wanted)(&reach);
    if let [(_, ids)] = &mut groups[..] {
        let is_wanted = count > 0 || are_tiers_wanted || wanted.is_forced;
        let whole = Part::Whole(reach, std::mem::take(ids));
        return (count, if is_wanted { vec![whole] } else { Vec::new() });
    }
    groups.retain(|(count, _)| *count > 0 || wanted.is_forced);
    groups.sort_by_key(|(count, _)| Reverse(*count));
    let mut parts: Vec<Part> = groups.into_iter().map(|(_, ids)| Part::Group(reach.clone(), ids)).collect();
    if !parts.is_empty() || are_tiers_wanted {
        parts.push(Part::Tiers(reach));
    }
    (count, parts)
}
