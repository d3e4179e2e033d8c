//! Notes and changes as a person names them: by id, by the beginning of an id, by title or by file name. What a model or a
//! program names is read with [`EntryId::parse`] alone.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::{first_few, in_line, one_line};
use crate::memory::service::NoteService;
use crate::store::entry::{EntryId, ID_PREFIX};
use crate::store::index::NoteView;
use crate::store::persistence::{Persistence, Place};
use crate::store::proposal::{self, ProposalId};
use std::path::Path;

/// Without its prefix, the beginning of an id has at least so many characters: a shorter one is more likely a word.
const LEAST: usize = 3;
/// So many candidates of an ambiguous name are listed.
const LISTED: usize = 10;
/// The longest title in a list of candidates, in characters.
const TITLE: usize = 60;

impl<P: Persistence + Sync> NoteService<P> {
    /// The one note that a person means. Notes in use come before archived ones.
    ///
    /// # Errors
    /// `NotFound`: there is none, or `Usage`: there are several. Or the store cannot be read.
    pub fn named(&self, word: &str) -> Result<EntryId> {
        let id = EntryId::parse(word);
        if let Some(id) = &id {
            let is_unmistakable = word.len() > id.digits().len();
            // Six letters may also be a title.
            let is_gone = || self.look(id).is_err_and(|error| error.kind() == ErrorKind::NotFound);
            if is_unmistakable || !is_gone() {
                return Ok(id.clone());
            }
        }
        let (digits, title, path) = (beginning(word, ID_PREFIX), word.trim().to_lowercase(), Path::new(word));
        let is_meant = |NoteView { meta, path: its, .. }: &NoteView| {
            digits.is_some_and(|digits| meta.id.digits().starts_with(digits))
                || meta.title.to_lowercase() == title && !title.is_empty()
                || its == path
                || [its.file_name(), its.file_stem()].contains(&Some(path.as_os_str()))
        };
        for place in [Place::Topics, Place::Archive] {
            let of_view = |view: NoteView| is_meant(&view).then_some((view.meta.id, view.meta.title));
            let found: Vec<_> = self.index.scan(place, of_view)?.found.into_iter().flatten().collect();
            let titled = found.iter().map(|(id, title)| format!("{id} ({})", one_line(title, TITLE)));
            match &found[..] {
                [] => {}
                [(id, _)] => return Ok(id.clone()),
                _ => return Err(ambiguous(word, "notes", titled)),
            }
        }
        // An id that is whole is looked up again, for its own error.
        id.ok_or_else(|| {
            Error::not_found(format!("no note has the id, the title or the file name \"{}\"", shown(word)))
                .hint("search for its words with: memory-list WORDS")
        })
    }
}

impl<P: Persistence> NoteService<P> {
    /// The one waiting change that a person means, by its id or the beginning of it.
    ///
    /// # Errors
    /// As those of [`NoteService::named`].
    pub fn named_change(&self, word: &str) -> Result<ProposalId> {
        if let Some(id) = ProposalId::parse(word) {
            return Ok(id);
        }
        let names = self.notes().names(proposal::DIR, ".json")?;
        let ids = names.iter().filter_map(|name| ProposalId::whole(Path::new(name).file_stem()?.to_str()?));
        let digits = beginning(word, proposal::PREFIX);
        let is_meant = |id: &ProposalId| digits.is_some_and(|digits| id.digits().starts_with(digits));
        match &ids.filter(is_meant).collect::<Vec<_>>()[..] {
            [] => Err(Error::not_found(format!("no change with the id \"{}\" waits", shown(word)))
                .hint("an id is like p__a1B2c3; see what waits with: memory-review")),
            [id] => Ok(id.clone()),
            several => Err(ambiguous(word, "changes", several.iter().map(ToString::to_string))),
        }
    }
}

/// The characters with which the digits of an id begin.
fn beginning<'a>(word: &'a str, prefix: &str) -> Option<&'a str> {
    match word.strip_prefix(prefix) {
        Some(digits) => Some(digits).filter(|digits| !digits.is_empty()),
        None => Some(word).filter(|digits| digits.len() >= LEAST),
    }
}

fn ambiguous(word: &str, what: &str, candidates: impl ExactSizeIterator<Item = String>) -> Error {
    let (count, word) = (candidates.len(), shown(word));
    let listed = first_few(candidates.map(|one| in_line(&one)), LISTED);
    Error::usage(format!("\"{word}\" names {count} {what}: {listed}")).hint("give the id of one of them")
}

fn shown(word: &str) -> String {
    in_line(&one_line(word, 80))
}
