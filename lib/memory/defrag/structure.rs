//! What belongs together among all notes, shared out over calls.

use crate::base::error::Result;
use crate::memory::call::Kind;
use crate::memory::defrag::ask;
use crate::memory::defrag::corpus::{self, CorpusNote};
use crate::memory::defrag::desk::Desk;
use crate::memory::defrag::group::{Item, groups_among};
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::similar;
use crate::memory::defrag::work::{Part, Work};
use crate::store::entry::{EntryId, Tier, links};
use crate::store::ledger::DefragLedger;
use crate::store::persistence::warn_of;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The file of a batch with what was found out about all notes.
pub(crate) const STRUCTURE: &str = "structure.json";

/// What was found out about all notes, for the prompts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Structure {
    /// Likely duplicates.
    pub(crate) pairs: Vec<(EntryId, EntryId, u8)>,
    /// How many notes lead to each.
    pub(crate) linked: BTreeMap<EntryId, usize>,
    /// How many notes there are of each reach.
    pub(crate) sizes: BTreeMap<Reach, Size>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Size {
    pub(crate) notes: usize,
    pub(crate) hot: usize,
}

impl Desk<'_> {
    /// Finds out what belongs together, and makes the parts of it.
    pub(crate) fn share_out(&mut self, work: &mut Work) -> Result<()> {
        let room = self.room()?;
        let (notes, broken) = corpus::read(&self.topics(), |_| true)?;
        warn_of(&broken, self.reporter);
        let ids: Vec<EntryId> = notes.iter().map(|note| note.id().clone()).collect();
        let places: BTreeMap<&EntryId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
        let texts: Vec<String> = notes
            .iter()
            .map(|note| format!("{}\n{}\n{}", note.meta().title, note.meta().summary, note.body()))
            .collect();
        // Both look at every word: the one for what is alike, the other for secrets.
        let (pairs, weights) = std::thread::scope(|scope| {
            let alike = std::thread::Builder::new().spawn_scoped(scope, || similar::pairs(&texts));
            let weights: Vec<usize> = notes.iter().map(|note| self.weight(note)).collect();
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
        self.batch()?.write_json(STRUCTURE, &structure)?;
        let mut seen = DefragLedger::load(self.root)?;
        let mut too_large = Vec::new();
        let mut shares: Vec<(usize, Vec<Part>)> = Vec::new();
        for (reach, members) in reaches {
            let groups = groups_among(&members, &items, &pairs, room);
            too_large.extend(groups.too_large);
            let groups = groups.groups.iter().map(|group| {
                let notes: Vec<&CorpusNote> = group.iter().filter_map(|&at| notes.get(at)).collect();
                let news = notes.iter().filter(|note| self.is_news(&seen, note.id(), &note.mark)).count();
                (news, notes.into_iter().map(|note| note.id().clone()).collect())
            });
            shares.push(self.parts(reach, groups.collect(), &seen));
        }
        // Whose notes no call has seen yet goes first.
        shares.sort_by_key(|(news, _)| Reverse(*news));
        work.parts = shares.into_iter().flat_map(|(_, parts)| parts).collect();
        for note in too_large.iter().filter_map(|&at| notes.get(at)) {
            self.reporter.warn(&format!(
                "{} \"{}\" is larger than a call has room for, and is not asked about: split it by hand, or raise \
                 llm.maxPromptBytes",
                note.id(),
                crate::base::text::one_line(&note.meta().title, 80)
            ));
            seen.see(note.id().clone(), note.mark.clone());
        }
        if self.kind != Kind::Dry && !too_large.is_empty() {
            seen.save(self.root)?;
        }
        Ok(())
    }

    /// What is to be asked about the notes of one reach, and how many of them are new; `groups` with how many of theirs.
    fn parts(
        &self,
        reach: Reach,
        mut groups: Vec<(usize, Vec<EntryId>)>,
        seen: &DefragLedger,
    ) -> (usize, Vec<Part>) {
        let news = groups.iter().map(|(news, _)| news).sum();
        let are_tiers_wanted = self.are_tiers_wanted(seen, &reach);
        if let [(_, ids)] = &mut groups[..] {
            let is_wanted = news > 0 || are_tiers_wanted || self.is_forced;
            let whole = Part::Whole(reach, std::mem::take(ids));
            return (news, if is_wanted { vec![whole] } else { Vec::new() });
        }
        groups.retain(|(news, _)| *news > 0 || self.is_forced);
        groups.sort_by_key(|(news, _)| Reverse(*news));
        let mut parts: Vec<Part> =
            groups.into_iter().map(|(_, ids)| Part::Group(reach.clone(), ids)).collect();
        if !parts.is_empty() || are_tiers_wanted {
            parts.push(Part::Tiers(reach));
        }
        (news, parts)
    }
}
