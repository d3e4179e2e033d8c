//! What a call shows: the part under way, as its notes are now.

use crate::base::error::Result;
use crate::memory::defrag::ask::{self, Corpus, Shown};
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::limits::Limits;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::structure::Structure;
use crate::memory::defrag::work::Part;
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that a prompt shows.
#[derive(Debug, Clone)]
pub struct Material {
    now: Timestamp,
    corpus: Corpus,
    notes: Notes,
}

#[derive(Debug, Clone)]
enum Notes {
    Whole { shown: Vec<Shown>, pairs: Vec<(EntryId, EntryId, u8)>, has_tiers: bool },
    Lines { lines: Vec<String>, shown: BTreeMap<EntryId, String>, left_out: usize },
}

impl Material {
    /// What a call about `part` shows, of `notes`, which may be more than it asks for.
    pub fn of(
        part: &Part,
        notes: Vec<CorpusNote>,
        structure: &Structure,
        limits: Limits,
        redactor: &Redactor,
        now: Timestamp,
    ) -> Result<Material> {
        let room = limits.room()?;
        let (Part::Whole(reach, _) | Part::Group(reach, _) | Part::Tiers(reach)) = part;
        let size = structure.sizes.get(reach).copied().unwrap_or_default();
        let corpus = Corpus {
            whose: redactor.cleaned(reach.name()),
            notes: size.notes,
            hot: size.hot,
            max_hot_tokens: limits.max_hot_tokens,
        };
        // A note that was given another scope since is not for these eyes.
        let mut notes = notes;
        notes.retain(|note| Reach::of(note.meta()) == *reach);
        let notes = match part {
            Part::Whole(_, ids) => whole(ids, notes, structure, room, redactor, true),
            Part::Group(_, ids) => whole(ids, notes, structure, room, redactor, false),
            Part::Tiers(_) => lines(notes, room, redactor),
        };
        Ok(Material { now, corpus, notes })
    }

    pub(super) fn prompt(&self, batch: &str) -> String {
        match &self.notes {
            Notes::Whole { shown, pairs, has_tiers } => {
                ask::whole(batch, self.now, &self.corpus, shown, pairs, *has_tiers)
            }
            Notes::Lines { lines, left_out, .. } => {
                ask::tiers(batch, self.now, &self.corpus, lines, *left_out)
            }
        }
    }

    /// The notes that are shown, with their fingerprints.
    pub(super) fn shown(&self) -> BTreeMap<EntryId, String> {
        match &self.notes {
            Notes::Whole { shown, .. } => {
                shown.iter().map(|note| (note.id.clone(), note.mark.clone())).collect()
            }
            Notes::Lines { shown, .. } => shown.clone(),
        }
    }
}

fn whole(
    ids: &[EntryId],
    mut notes: Vec<CorpusNote>,
    structure: &Structure,
    mut room: usize,
    redactor: &Redactor,
    has_tiers: bool,
) -> Notes {
    let wanted: BTreeMap<&EntryId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
    notes.retain(|note| wanted.contains_key(note.id()));
    notes.sort_by_key(|note| wanted.get(note.id()).copied());
    let mut shown = Vec::new();
    for note in &notes {
        let one = ask::shown(note, &structure.linked, |text| redactor.cleaned(text));
        // One that has grown since waits for the next run, which has not seen it.
        if one.room() <= room {
            room -= one.room();
            shown.push(one);
        }
    }
    let there: BTreeSet<&EntryId> = shown.iter().map(|note| &note.id).collect();
    let is_shown = |pair: &&(EntryId, EntryId, u8)| there.contains(&pair.0) && there.contains(&pair.1);
    let pairs = structure.pairs.iter().filter(is_shown).cloned().collect();
    Notes::Whole { shown, pairs, has_tiers }
}

fn lines(mut notes: Vec<CorpusNote>, mut room: usize, redactor: &Redactor) -> Notes {
    ask::by_weight(&mut notes);
    let mut lines = Vec::new();
    let mut shown = BTreeMap::new();
    for note in &notes {
        let line = ask::line(note, |text| redactor.cleaned(text));
        if line.len() + 1 > room {
            break;
        }
        room -= line.len() + 1;
        lines.push(line);
        shown.insert(note.id().clone(), note.mark.clone());
    }
    Notes::Lines { left_out: notes.len() - lines.len(), lines, shown }
}
