//! What a model wrote in the place of notes: made fit to be filed, and held against what it replaces.

use crate::base::error::{Error, Result};
use crate::base::text::whole_lines;
use crate::memory::defrag::dropped::NAMED;
use crate::memory::defrag::plan::drafts::Drafts;
use crate::memory::facts::{emptied, lost};
use crate::memory::links::{LinkTargets, resolve_intra_batch_links};
use crate::memory::pipeline::reply::Text;
use crate::store::entry::{EntryId, Meta, Status, add_missing, one_line};
use std::collections::{BTreeMap, BTreeSet};

/// What a note says now, in its front matter.
pub(super) fn fill(meta: &mut Meta, text: &Text, at: i64) {
    meta.title.clone_from(&text.title);
    if !text.summary.is_empty() {
        meta.summary.clone_from(&text.summary);
    }
    add_missing(&mut meta.tags, text.tags.iter().cloned());
    if meta.status == Status::Captured {
        meta.status = Status::Consolidated;
    }
    meta.updated_at = at;
}

/// What the notes said that is in none of the texts.
#[derive(Default)]
pub struct Lost {
    /// Facts that should be there.
    pub(super) facts: Vec<String>,
    /// Facts that no longer hold.
    pub(super) gone: Vec<String>,
    /// The notes that had one of the latter.
    pub(super) outdated: BTreeSet<EntryId>,
}

impl Drafts<'_> {
    /// What a model wrote in the place of some notes, as it may be filed: without secrets, and with links that lead
    /// somewhere. `labels` are the ids of its parts, by title.
    pub(super) fn written(
        &mut self,
        text: &Text,
        replaces: &[EntryId],
        labels: &BTreeMap<String, String>,
    ) -> Text {
        let text = text.cleaned(self.clean);
        let old = replaces.iter().filter_map(|id| self.drafts.get(id));
        let old: String = old.map(|draft| String::from_utf8_lossy(draft.entry.body())).collect();
        let targets = LinkTargets { labels, ids: &self.found.ids, waiting: &BTreeSet::new() };
        let (body, unknown) = resolve_intra_batch_links(&text.body, &targets, &old);
        self.warnings.extend(unknown.iter().map(|link| format!("\"{}\": {link}", text.title)));
        Text { body: whole_lines(&body), ..text }
    }

    /// What of these notes is in none of the texts that replace them; an error if that is too much. `gone` may go: of
    /// several notes what stands in an older one, because the newest is what contradicts it.
    pub(super) fn lost(&mut self, ids: &[EntryId], texts: &[Text], gone: &[String]) -> Result<Lost> {
        let mut old = Vec::new();
        for id in ids {
            let entry = &self.draft(id)?.entry;
            let meta = entry.meta();
            let whole =
                format!("{}\n{}\n{}", meta.title, meta.summary, String::from_utf8_lossy(entry.body()));
            self.holds_no_secret(id, &whole)?;
            // What is missed is named, and a secret must not be.
            old.push((id, (meta.updated_at, meta.created_at), (self.clean)(&whole)));
        }
        let newest = old.iter().map(|(_, time, _)| *time).max();
        let is_older = |time: &(i64, i64)| ids.len() == 1 || Some(*time) != newest;
        let older: String =
            old.iter().filter(|(_, time, _)| is_older(time)).map(|(.., text)| format!("{text}\n")).collect();
        let (gone, unknown): (Vec<String>, Vec<String>) = gone
            .iter()
            .cloned()
            .partition(|item| lost(&older, "", std::slice::from_ref(item), |_| true).unmatched.is_empty());
        let new: String =
            texts.iter().map(|text| format!("{}\n{}\n{}\n", text.title, text.summary, text.body)).collect();
        // A link to what it is merged with would lead to itself, and one to nowhere is none.
        let exists = |id: &EntryId| !ids.contains(id) && self.found.ids.contains(id);
        let mut all = Lost::default();
        for (id, _, old) in &old {
            let loss = lost(old, &new, &gone, exists);
            if !self.allows.loss {
                if loss.is_too_much() {
                    let count = loss.missing.len();
                    let some: Vec<String> =
                        loss.missing.iter().take(NAMED).map(|fact| one_line(fact)).collect();
                    let more = if count > NAMED { ", …" } else { "" };
                    return Err(Error::refused(format!(
                        "it would remove {count} facts from {id} ({}{more}) (--allow-loss overrides this)",
                        some.join(", ")
                    )));
                }
                if let Some((kept, all)) = emptied(old, &new) {
                    return Err(Error::refused(format!(
                        "it would leave {kept} of the {all} different words of {id} (--allow-loss overrides this)"
                    )));
                }
            }
            let gone =
                lost(old, &new, &[], exists).missing.into_iter().filter(|fact| !loss.missing.contains(fact));
            let before = all.gone.len();
            all.gone.extend(gone.map(one_line));
            if all.gone.len() > before {
                all.outdated.insert((*id).clone());
            }
            all.facts.extend(loss.missing.into_iter().map(one_line));
        }
        let ids: Vec<&str> = ids.iter().map(EntryId::as_str).collect();
        let clean = self.clean;
        self.warnings.extend(unknown.iter().take(NAMED).map(|item| {
            let item = crate::base::text::one_line(&clean(item), 80);
            format!("\"{item}\" is named as gone, and is in no older note of {}", ids.join(" "))
        }));
        Ok(all)
    }

    /// A model is not shown the secrets of a note, so that none is in the text that it writes instead.
    pub(super) fn holds_no_secret(&self, id: &EntryId, text: &str) -> Result<()> {
        if self.allows.loss || (self.clean)(text) == text {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{id} holds a secret, which no model is shown, and which would be lost: take it out by hand first \
             (--allow-loss overrides this)"
        )))
    }
}
