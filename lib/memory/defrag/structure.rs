//! What belongs together among all notes, shared out over calls.

use crate::ground::error::Result;
use crate::memory::call::Kind;
use crate::memory::defrag::ask;
use crate::memory::defrag::corpus;
use crate::memory::defrag::desk::Desk;
use crate::memory::defrag::group::{self, Item};
use crate::memory::defrag::similar;
use crate::memory::defrag::work::{Part, Work};
use crate::store::entry::{EntryId, Tier, links};
use crate::store::ledger::Seen;
use crate::store::persistence::warn_of;
use serde::{Deserialize, Serialize};
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
    pub(crate) hot: usize,
}

impl Desk<'_> {
    /// Finds out what belongs together, and makes the parts of it.
    pub(crate) fn share_out(&mut self, work: &mut Work) -> Result<()> {
        let room = self.room()?;
        let (notes, broken) = corpus::read(&self.topics(), |_| true)?;
        warn_of(&broken, self.notes);
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
        for (note, bytes) in notes.iter().zip(weights) {
            let links: BTreeSet<EntryId> = links(&note.body()).into_iter().collect();
            for id in &links {
                *structure.linked.entry(id.clone()).or_default() += 1;
            }
            structure.hot += usize::from(note.meta().pinned || note.meta().tier == Tier::Hot);
            let links = links.iter().filter_map(|id| places.get(id).copied()).collect();
            items.push(Item { bytes, tags: &note.meta().tags, links });
        }
        self.batch()?.write_json(STRUCTURE, &structure)?;
        let groups = group::groups(&items, &pairs, room);
        let mut seen = Seen::load(self.root)?;
        for &at in &groups.too_large {
            let Some(note) = notes.get(at) else { continue };
            self.notes.warn(&format!(
                "{} \"{}\" is larger than a call has room for, and is not asked about: split it by hand, or raise \
                 llm.maxPromptBytes",
                note.id(),
                crate::ground::text::one_line(&note.meta().title, 80)
            ));
            seen.see(note.id().clone(), note.mark.clone());
        }
        if self.kind != Kind::Dry && !groups.too_large.is_empty() {
            seen.save(self.root)?;
        }
        let named = |group: &Vec<usize>| -> Vec<EntryId> {
            group.iter().filter_map(|&at| ids.get(at)).cloned().collect()
        };
        if let [group] = &groups.groups[..] {
            work.parts = vec![Part::Whole(named(group))];
            return Ok(());
        }
        let news = |group: &Vec<usize>| {
            let notes = group.iter().filter_map(|&at| notes.get(at));
            notes.filter(|note| !seen.has(note.id(), &note.mark)).count()
        };
        let mut wanted: Vec<(usize, &Vec<usize>)> = groups
            .groups
            .iter()
            .map(|group| (news(group), group))
            .filter(|(news, _)| *news > 0 || work.is_forced)
            .collect();
        // What no call has seen yet goes first.
        wanted.sort_by_key(|(news, _)| std::cmp::Reverse(*news));
        work.parts = wanted.into_iter().map(|(_, group)| Part::Group(named(group))).collect();
        work.parts.push(Part::Tiers);
        Ok(())
    }
}
