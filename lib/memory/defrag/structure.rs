//! What belongs together among all notes, shared out over calls.

use crate::base::error::Result;
use crate::memory::defrag::ask;
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::group::{Item, groups_among};
use crate::memory::defrag::limits::{Limits, weight};
use crate::memory::defrag::neighbours::with_neighbours;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::similar;
use crate::memory::defrag::work::Part;
use crate::memory::redact::Redactor;
use crate::store::entry::{EntryId, Tier, links};
use serde::{Deserialize, Serialize};
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
    /// The notes that an earlier defrag has seen as they are, with their fingerprints. All others are new or changed.
    #[serde(default)]
    pub settled: BTreeMap<EntryId, String>,
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
    /// Has no call seen the note as it is?
    pub is_news: &'a dyn Fn(&CorpusNote) -> bool,
    /// Is it to be decided what is hot among these notes?
    pub are_tiers_wanted: &'a dyn Fn(&Reach) -> bool,
    /// Everything is, new or not.
    pub is_forced: bool,
}

impl Structure {
    /// Is the note as an earlier defrag has seen it, or one of this?
    pub(super) fn is_settled(&self, note: &CorpusNote) -> bool {
        self.settled.get(note.id()) == Some(&note.mark)
    }
}

/// Finds out what belongs together among `notes`, and makes the parts of it: of what no call has seen yet, and its
/// neighbours. What has waited longest goes first.
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
    let is_asked: Vec<bool> = notes.iter().map(|note| wanted.is_forced || (wanted.is_news)(note)).collect();
    let texts: Vec<String> = notes
        .iter()
        .map(|note| format!("{}\n{}\n{}", note.meta().title, note.meta().summary, note.body()))
        .collect();
    // Both look at every word: the one for what is alike, the other for secrets.
    let (pairs, weights) = std::thread::scope(|scope| {
        let alike = std::thread::Builder::new().spawn_scoped(scope, || similar::pairs(&texts));
        let asked = notes.iter().zip(&is_asked);
        let weights: Vec<usize> =
            asked.map(|(note, is_asked)| if *is_asked { weight(note, redactor) } else { 0 }).collect();
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
        if !is_asked[at] {
            structure.settled.insert(note.id().clone(), note.mark.clone());
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
    let mut shares: Vec<Share> = Vec::new();
    for (reach, members) in reaches {
        let are_tiers_wanted = (wanted.are_tiers_wanted)(&reach);
        let asked = with_neighbours(&members, |at| is_asked[at], &items, &pairs);
        for &at in asked.iter().filter(|at| !is_asked[**at]) {
            items[at].bytes = weight(&notes[at], redactor);
        }
        let found = groups_among(&asked, &items, &pairs, room);
        too_large.extend(found.too_large.into_iter().filter(|at| is_asked[*at]));
        let oldest = |group: &[usize]| {
            let asked = group.iter().filter(|at| is_asked[**at]);
            asked.map(|at| notes[*at].meta().updated_at).min()
        };
        let mut groups: Vec<(i64, Vec<usize>)> =
            found.groups.into_iter().filter_map(|group| Some((oldest(&group)?, group))).collect();
        groups.sort();
        // What was left over once is not left over for ever.
        let order = match (are_tiers_wanted, groups.first()) {
            (true, _) => i64::MIN,
            (false, Some((oldest, _))) => *oldest,
            (false, None) => continue,
        };
        let lines = |group: &[usize]| {
            let others = members.iter().filter(|at| group.binary_search(at).is_err()).map(|at| &notes[*at]);
            let lines = listed(others.collect(), &structure);
            lines.iter().map(|note| ask::line(note, |text| redactor.cleaned(text)).len() + 1).sum::<usize>()
        };
        let ids_of = |group: &[usize]| group.iter().map(|at| ids[*at].clone()).collect::<Vec<EntryId>>();
        let parts = match &groups[..] {
            [] => vec![Part::Tiers(reach)],
            [(_, group)] if group.iter().map(|at| items[*at].bytes).sum::<usize>() + lines(group) <= room => {
                vec![Part::Whole(reach, ids_of(group))]
            }
            groups => {
                let parts = groups.iter().map(|(_, group)| Part::Group(reach.clone(), ids_of(group)));
                parts.chain([Part::Tiers(reach.clone())]).collect()
            }
        };
        shares.push(Share { order, parts });
    }
    shares.sort_by_key(|share| share.order);
    let parts = shares.into_iter().flat_map(|share| share.parts).collect();
    let too_large = too_large.into_iter().filter_map(|at| notes.get(at)).collect();
    Ok(Shared { structure, parts, too_large })
}

/// The calls about one reach.
struct Share {
    /// Since when the oldest of its news waits, as a Unix time in milliseconds.
    order: i64,
    parts: Vec<Part>,
}

/// So many notes have a line for their use alone.
const MOST_USED: usize = 100;

/// The notes of a reach that its tiers depend on: hot, pinned and changed ones, and the most used of the others.
pub(super) fn listed<'a>(mut notes: Vec<&'a CorpusNote>, structure: &Structure) -> Vec<&'a CorpusNote> {
    ask::by_weight(&mut notes);
    let mut others = 0;
    notes.retain(|note| {
        let meta = note.meta();
        meta.pinned || meta.tier == Tier::Hot || !structure.is_settled(note) || {
            others += 1;
            others <= MOST_USED
        }
    });
    notes
}
