//! How much a prompt may show.

use crate::base::error::{Error, Result};
use crate::memory::defrag::ask::{self, About, OWN_WORDS};
use crate::memory::defrag::corpus::CorpusNote;
use crate::memory::redact::Redactor;

/// The least room for notes in a prompt, in bytes.
const LEAST_ROOM: usize = 2000;

/// What a prompt may take, and what is said in it of hot notes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub max_prompt_bytes: usize,
    pub max_hot_tokens: u64,
}

impl Limits {
    /// Room for notes in one prompt, in bytes.
    pub(super) fn room(self) -> Result<usize> {
        let max = self.max_prompt_bytes;
        let room = max.saturating_sub(OWN_WORDS);
        if room < LEAST_ROOM {
            return Err(Error::config(format!("llm.maxPromptBytes of {max} leaves no room for notes"))
                .hint(format!("set it to {} or more", OWN_WORDS + LEAST_ROOM)));
        }
        Ok(room)
    }
}

/// So many bytes a note takes in a prompt. Never fewer than it takes there in the end: one that its group has no room
/// for would be asked about every night, and never shown.
pub(super) fn weight(note: &CorpusNote, redactor: &Redactor) -> usize {
    let about = About { linked: usize::MAX, is_new: true, is_expired: true };
    ask::shown(note, about, |text| redactor.cleaned(text)).room()
}
