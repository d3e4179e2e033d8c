//! What a person is to decide about: an operation, as the changes that `memory-review` makes.

use crate::base::error::{Error, Result};
use crate::memory::defrag::plan::drafts::Drafts;
use crate::memory::record::NoteText;
use crate::store::entry::{By, Entry, EntryId, Source, add_missing};
use crate::store::proposal::{Draft, Op, Proposal};

impl Drafts<'_> {
    /// The first text takes the place of the first note, other texts are new, and other notes go to the archive.
    pub(super) fn waiting(
        &self,
        ids: &[EntryId],
        texts: &[NoteText],
        reasons: Vec<String>,
    ) -> Result<Vec<Proposal>> {
        let entries = ids.iter().map(|id| Ok(&self.draft(id)?.entry)).collect::<Result<Vec<&Entry>>>()?;
        let Some(first) = entries.first() else { return Ok(Vec::new()) };
        // One question about a note is enough, however many ways a model has to put it.
        if let Some(id) = ids.iter().find(|id| self.known.found.waiting.contains(id)) {
            return Err(Error::refused(format!("a change of {id} waits for memory-review already")));
        }
        let by = entries.iter().filter_map(|entry| entry.meta().by).chain([By::Agent]).max();
        let mut sources: Vec<Source> = Vec::new();
        add_missing(&mut sources, entries.iter().flat_map(|entry| entry.meta().sources.iter().cloned()));
        let drafts = texts.iter().map(|text| Draft {
            title: text.title.to_owned(),
            summary: text.summary.to_owned(),
            tags: text.tags.to_vec(),
            scope: first.meta().scope,
            until: first.meta().until,
            body: text.body.to_owned(),
            sources: sources.clone(),
        });
        let at = self.known.found.at.as_millisecond();
        let proposal = |op: Op, note: Option<&Entry>, entry: Option<Draft>, reasons: Vec<String>| {
            // The id is made from the title of the new text, or from the note's id.
            let title = match (&entry, note) {
                (Some(draft), _) => draft.title.clone(),
                (None, note) => note.map_or_else(String::new, |note| note.meta().id.to_string()),
            };
            Proposal {
                note: note.map(|note| note.meta().id.clone()),
                base: note.map(Entry::base),
                entry,
                reasons,
                ..Proposal::new(op, &title, by.unwrap_or(By::Agent), at)
            }
        };
        let mut all = Vec::new();
        for (number, draft) in drafts.enumerate() {
            all.push(match number {
                0 => proposal(Op::Update, Some(first), Some(draft), reasons.clone()),
                _ => proposal(Op::Create, None, Some(draft), reasons.clone()),
            });
        }
        let gone = if texts.is_empty() { &entries[..] } else { &entries[1..] };
        for entry in gone {
            let reasons = match texts.is_empty() {
                true => reasons.clone(),
                false => vec![format!("what it says would be part of {}", first.meta().id)],
            };
            all.push(proposal(Op::Retire, Some(entry), None, reasons));
        }
        Ok(all)
    }
}
