//! What a call shows: the part under way, as its notes are now.

use crate::base::error::{Error, Result};
use crate::memory::defrag::ask::{self, Corpus, OWN_WORDS};
use crate::memory::defrag::corpus::{self, CorpusNote};
use crate::memory::defrag::desk::Desk;
use crate::memory::defrag::plan::Allows;
use crate::memory::defrag::reach::Reach;
use crate::memory::defrag::structure::{STRUCTURE, Structure};
use crate::memory::defrag::work::{Part, Work};
use crate::store::entry::EntryId;
use std::collections::{BTreeMap, BTreeSet};

/// The least room for notes in a prompt, in bytes.
const LEAST_ROOM: usize = 2000;
/// The number of the notes that link to one has so many digits, at most.
const LINKED_DIGITS: usize = 20;

impl Desk<'_> {
    /// Room for notes in one prompt, in bytes.
    pub(crate) fn room(&self) -> Result<usize> {
        let max = self.config.llm.max_prompt();
        let room = max.saturating_sub(OWN_WORDS);
        if room < LEAST_ROOM {
            return Err(Error::config(format!("llm.maxPromptBytes of {max} leaves no room for notes"))
                .hint(format!("set it to {} or more", OWN_WORDS + LEAST_ROOM)));
        }
        Ok(room)
    }

    pub(crate) fn clean(&self, text: &str) -> String {
        self.redactor.cleaned(text)
    }

    /// So many bytes a note takes in a prompt. Never fewer than it takes there in the end: one that its group has no
    /// room for would be asked about every night, and never shown.
    pub(crate) fn weight(&self, note: &CorpusNote) -> usize {
        ask::shown(note, &BTreeMap::new(), |text| self.clean(text)).room() + LINKED_DIGITS
    }

    /// The prompt for the part under way. Remembers in `work` what it shows.
    pub(crate) fn prompt(&self, work: &mut Work) -> Result<String> {
        let batch = self.batch()?;
        let structure: Structure = batch.read_json(STRUCTURE)?;
        let (reach, ids, has_tiers) = match work.part() {
            Some(Part::Whole(reach, ids)) => (reach, ids, true),
            Some(Part::Group(reach, ids)) => (reach, ids, false),
            Some(Part::Tiers(reach)) => {
                let corpus = self.corpus(reach, &structure);
                return self.tiers_prompt(work, &reach.clone(), &corpus);
            }
            None => return Err(Error::io("there is no part to ask about")),
        };
        let (corpus, mut room) = (self.corpus(reach, &structure), self.room()?);
        let wanted: BTreeMap<&EntryId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
        let (mut notes, _) = corpus::read(&self.topics(), |id| wanted.contains_key(id))?;
        // One that was given another scope since is not for these eyes.
        notes.retain(|note| Reach::of(note.meta()) == *reach);
        notes.sort_by_key(|note| wanted.get(note.id()).copied());
        let mut shown = Vec::new();
        for note in &notes {
            let one = ask::shown(note, &structure.linked, |text| self.clean(text));
            // One that has grown since waits for the next run, which has not seen it.
            if one.room() <= room {
                room -= one.room();
                shown.push(one);
            }
        }
        let there: BTreeSet<&EntryId> = shown.iter().map(|note| &note.id).collect();
        let is_shown = |pair: &&(EntryId, EntryId, u8)| there.contains(&pair.0) && there.contains(&pair.1);
        let pairs: Vec<_> = structure.pairs.iter().filter(is_shown).cloned().collect();
        let text = ask::whole(&work.batch, self.env.now(), &corpus, &shown, &pairs, has_tiers);
        work.shown = shown.into_iter().map(|note| (note.id, note.mark)).collect();
        Ok(text)
    }

    /// What is said of the notes of a reach as a whole.
    fn corpus(&self, reach: &Reach, structure: &Structure) -> Corpus {
        let size = structure.sizes.get(reach).copied().unwrap_or_default();
        Corpus {
            whose: self.clean(reach.name()),
            notes: size.notes,
            hot: size.hot,
            max_hot_tokens: self.config.agents_md.max_hot_tokens,
        }
    }

    fn tiers_prompt(&self, work: &mut Work, reach: &Reach, corpus: &Corpus) -> Result<String> {
        let mut room = self.room()?;
        let (mut notes, _) = corpus::read(&self.topics(), |_| true)?;
        notes.retain(|note| Reach::of(note.meta()) == *reach);
        ask::by_weight(&mut notes);
        let mut lines = Vec::new();
        work.shown.clear();
        for note in &notes {
            let line = ask::line(note, |text| self.clean(text));
            if line.len() + 1 > room {
                break;
            }
            room -= line.len() + 1;
            lines.push(line);
            work.shown.insert(note.id().clone(), note.mark.clone());
        }
        let left_out = notes.len() - lines.len();
        Ok(ask::tiers(&work.batch, self.env.now(), corpus, &lines, left_out))
    }

    pub(crate) fn allows(&self, work: &Work) -> Allows {
        let (texts, tiers) = match work.part() {
            Some(Part::Whole(..)) => (true, true),
            Some(Part::Group(..)) => (true, false),
            Some(Part::Tiers(_)) | None => (false, true),
        };
        Allows { texts, tiers, loss: self.allows_loss }
    }
}
