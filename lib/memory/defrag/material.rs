//! What a call shows: the part under way, as its notes are now.

use crate::base::error::Result;
use crate::memory::defrag::ask::{self, About, Corpus, Lines, Whole};
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::defrag::limits::Limits;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::structure::{Structure, listed};
use crate::memory::defrag::work::Part;
use crate::memory::redact::Redactor;
use crate::store::entry::EntryId;
use jiff::civil::Date;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that a prompt shows.
#[derive(Debug, Clone)]
pub struct Material {
    today: Date,
    corpus: Corpus,
    /// The notes that are shown whole; none where only tiers are asked about.
    whole: Whole,
    /// The notes that have a line; none where tiers are not asked about.
    lines: Option<Lines>,
}

impl Material {
    /// What a call about `part` shows, of `notes`, which may be more than it asks for.
    pub fn of(
        part: &Part,
        notes: Vec<CorpusNote>,
        structure: &Structure,
        limits: Limits,
        redactor: &Redactor,
        today: Date,
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
        let (whole, room_left) = match part {
            Part::Whole(_, ids) | Part::Group(_, ids) => whole(ids, &notes, structure, room, redactor, today),
            Part::Tiers(_) => (Whole::default(), room),
        };
        let is_whole = |note: &&CorpusNote| whole.shown.iter().any(|shown| shown.id == *note.id());
        let others: Vec<&CorpusNote> = notes.iter().filter(|note| !is_whole(note)).collect();
        let lines = match part {
            Part::Group(..) => None,
            Part::Whole(..) | Part::Tiers(_) => Some(lines(others, structure, room_left, redactor)),
        };
        Ok(Material { today, corpus, whole, lines })
    }

    pub(super) fn prompt(&self, batch: &str) -> String {
        ask::prompt(batch, self.today, &self.corpus, &self.whole, self.lines.as_ref())
    }

    /// The notes that are shown whole, with their fingerprints.
    pub(super) fn shown(&self) -> BTreeMap<EntryId, String> {
        self.whole.shown.iter().map(|note| (note.id.clone(), note.mark.clone())).collect()
    }

    /// The notes of which a line is shown, with the same.
    pub(super) fn listed(&self) -> BTreeMap<EntryId, String> {
        self.lines.as_ref().map(|lines| lines.ids.clone()).unwrap_or_default()
    }

    /// Those of the notes shown whole that no longer hold.
    pub(super) fn expired(&self) -> BTreeSet<EntryId> {
        self.whole.shown.iter().filter(|note| note.about.is_expired).map(|note| note.id.clone()).collect()
    }
}

/// What is shown of these notes, and the room that is left.
fn whole(
    ids: &[EntryId],
    notes: &[CorpusNote],
    structure: &Structure,
    mut room: usize,
    redactor: &Redactor,
    today: Date,
) -> (Whole, usize) {
    let wanted: BTreeMap<&EntryId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
    let mut notes: Vec<&CorpusNote> = notes.iter().filter(|note| wanted.contains_key(note.id())).collect();
    notes.sort_by_key(|note| wanted.get(note.id()).copied());
    let mut shown = Vec::new();
    for note in notes {
        let about = About {
            linked: structure.linked.get(note.id()).copied().unwrap_or_default(),
            // Where all are, the word says nothing.
            is_new: !structure.settled.is_empty() && !structure.is_settled(note),
            is_expired: note.meta().is_expired(today),
        };
        let one = ask::shown(note, about, |text| redactor.cleaned(text));
        // One that has grown since waits for the next run, which has not seen it.
        if one.room() <= room {
            room -= one.room();
            shown.push(one);
        }
    }
    let there: BTreeSet<&EntryId> = shown.iter().map(|note| &note.id).collect();
    let is_shown = |pair: &&(EntryId, EntryId, u8)| there.contains(&pair.0) && there.contains(&pair.1);
    let pairs = structure.pairs.iter().filter(is_shown).cloned().collect();
    (Whole { shown, pairs }, room)
}

fn lines(others: Vec<&CorpusNote>, structure: &Structure, mut room: usize, redactor: &Redactor) -> Lines {
    let all = others.len();
    let mut lines = Lines::default();
    for note in listed(others, structure) {
        let line = ask::line(note, |text| redactor.cleaned(text));
        if line.len() + 1 > room {
            break;
        }
        room -= line.len() + 1;
        lines.lines.push(line);
        lines.ids.insert(note.id().clone(), note.mark.clone());
    }
    lines.left_out = all - lines.lines.len();
    lines
}
