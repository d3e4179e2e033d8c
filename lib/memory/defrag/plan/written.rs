//! What a model wrote in the place of notes: made fit to be filed, and held against what it replaces.

use crate::base::error::{Error, Result};
use crate::base::text::whole_lines;
use crate::memory::defrag::dropped::NAMED;
use crate::memory::defrag::plan::drafts::Drafts;
use crate::memory::defrag::reply::Text;
use crate::memory::facts::{emptied, lost};
use crate::memory::links::resolve_intra_batch_links;
use crate::store::entry::{EntryId, Meta, Status, one_line};
use std::collections::{BTreeMap, BTreeSet};

/// A text that may be filed.
pub(crate) struct Written {
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) tags: Vec<String>,
    pub(super) body: String,
}

impl Written {
    pub(super) fn fill(&self, meta: &mut Meta, at: i64) {
        meta.title.clone_from(&self.title);
        if !self.summary.is_empty() {
            meta.summary.clone_from(&self.summary);
        }
        for tag in &self.tags {
            if !meta.tags.contains(tag) {
                meta.tags.push(tag.clone());
            }
        }
        if meta.status == Status::Captured {
            meta.status = Status::Consolidated;
        }
        meta.updated_at = at;
    }
}

impl Drafts<'_> {
    /// What a model wrote in the place of some notes, as it may be filed: without secrets, and with links that lead
    /// somewhere.
    pub(super) fn written(
        &self,
        text: &Text,
        replaces: &[EntryId],
        labels: &BTreeMap<String, EntryId>,
        warnings: &mut Vec<String>,
    ) -> Written {
        let clean = self.known.clean;
        let title = one_line(&clean(&text.title));
        let old: String = replaces
            .iter()
            .filter_map(|id| self.drafts.get(id))
            .map(|draft| String::from_utf8_lossy(draft.entry.body()))
            .collect();
        let (body, unknown) =
            resolve_intra_batch_links(&clean(&text.body), labels, &self.known.found.ids, &old);
        warnings.extend(
            unknown.iter().map(|link| format!("\"{title}\": [[{link}]] has no target and is now plain text")),
        );
        Written {
            title,
            summary: one_line(&clean(&text.summary)),
            tags: text.tags.clone(),
            body: whole_lines(&body),
        }
    }

    /// The facts of a note that are in none of the texts that replace it; an error if there are too many.
    pub(super) fn lost(
        &self,
        id: &EntryId,
        texts: &[Written],
        gone: &BTreeSet<&EntryId>,
    ) -> Result<Vec<String>> {
        let entry = &self.draft(id)?.entry;
        let meta = entry.meta();
        let whole = format!("{}\n{}\n{}", meta.title, meta.summary, String::from_utf8_lossy(entry.body()));
        self.holds_no_secret(id, &whole)?;
        // What is missed is named, and a secret must not be.
        let old = (self.known.clean)(&whole);
        let new: String =
            texts.iter().map(|text| format!("{}\n{}\n{}\n", text.title, text.summary, text.body)).collect();
        // A link to what it is merged with would lead to itself, and one to nowhere is none.
        let exists = |id: &EntryId| !gone.contains(id) && self.known.found.ids.contains(id);
        let loss = lost(&old, &new, &[], exists);
        if !self.known.allows.loss {
            if loss.is_too_much() {
                let count = loss.missing.len();
                let some: Vec<String> = loss.missing.iter().take(NAMED).map(|fact| one_line(fact)).collect();
                let more = if count > NAMED { ", …" } else { "" };
                return Err(Error::refused(format!(
                    "it would remove {count} facts from {id} ({}{more}) (--allow-loss overrides this)",
                    some.join(", ")
                )));
            }
            if let Some((kept, all)) = emptied(&old, &new) {
                return Err(Error::refused(format!(
                    "it would leave {kept} of the {all} different words of {id} (--allow-loss overrides this)"
                )));
            }
        }
        Ok(loss.missing.into_iter().map(one_line).collect())
    }

    /// A model is not shown the secrets of a note, so that none is in the text that it writes instead.
    pub(super) fn holds_no_secret(&self, id: &EntryId, text: &str) -> Result<()> {
        if self.known.allows.loss || (self.known.clean)(text) == text {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{id} holds a secret, which no model is shown, and which would be lost: take it out by hand first \
             (--allow-loss overrides this)"
        )))
    }
}
