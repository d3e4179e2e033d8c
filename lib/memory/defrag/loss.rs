//! What would be lost of notes whose place a text takes, and whether that is too much.

use crate::base::error::{Error, Result};
use crate::base::text::{one_line, visible};
use crate::memory::defrag::Defrag;
use crate::memory::defrag::reply::NAMED;
use crate::memory::facts::{emptied, lost};
use crate::memory::pipeline::reply::Text;
use crate::store::entry::{Entry, EntryId, one_line as line};
use std::collections::BTreeSet;
use std::slice::from_ref;

/// What notes said that is in none of the texts that replace them.
#[derive(Default)]
pub(super) struct LostFacts {
    /// Facts that should be there.
    pub(super) facts: Vec<String>,
    /// Facts that no longer hold.
    pub(super) gone: Vec<String>,
    /// The first of the notes had one of the latter.
    pub(super) is_first_outdated: bool,
    /// What is named as gone, and never was there.
    pub(super) warnings: Vec<String>,
}

impl LostFacts {
    /// What of the notes `old` is in none of these texts; an error if that is too much. `gone` may go: of several notes what
    /// stands in an older one, because the newest is what contradicts it. `ids` are in use.
    pub(super) fn of(
        settings: &Defrag,
        old: &[Entry],
        texts: &[Text],
        gone: &[String],
        ids: &BTreeSet<EntryId>,
    ) -> Result<LostFacts> {
        let mut said = Vec::new();
        for (entry, Text { title, summary, body, .. }) in old.iter().map(|entry| (entry, Text::of(entry))) {
            let whole = format!("{title}\n{summary}\n{body}");
            holds_no_secret(settings, &entry.meta().id, &whole)?;
            // What is missed is named, and a secret must not be.
            said.push((entry, settings.cleaned(&visible(&whole))));
        }
        let age = |entry: &Entry| (entry.meta().updated_at, entry.meta().created_at);
        let newest = old.iter().map(age).max();
        let older = said.iter().filter(|(entry, _)| old.len() == 1 || Some(age(entry)) != newest);
        let older: String = older.map(|(_, text)| format!("{text}\n")).collect();
        let is_said = |item: &String| lost(&older, "", from_ref(item), |_| true).unmatched.is_empty();
        let (gone, unknown): (Vec<String>, Vec<String>) = gone.iter().cloned().partition(is_said);
        let new: String =
            texts.iter().map(|text| format!("{}\n{}\n{}\n", text.title, text.summary, text.body)).collect();
        // A link to what it is merged with would lead to itself, and one to nowhere is none.
        let is_one = |id: &EntryId| old.iter().any(|entry| entry.meta().id == *id);
        let exists = |id: &EntryId| !is_one(id) && ids.contains(id);
        let mut all = LostFacts::default();
        for (at, (entry, text)) in said.iter().enumerate() {
            let loss = lost(text, &new, &gone, exists);
            if !settings.allows_loss {
                let missing = loss.is_too_much().then_some(&loss.missing[..]);
                is_kept_enough(&entry.meta().id, missing, emptied(text, &new))?;
            }
            let without_gone = lost(text, &new, &[], exists).missing.into_iter();
            let outdated: Vec<String> =
                without_gone.filter(|fact| !loss.missing.contains(fact)).map(line).collect();
            all.is_first_outdated |= at == 0 && !outdated.is_empty();
            all.gone.extend(outdated);
            all.facts.extend(loss.missing.into_iter().map(line));
        }
        let ids = old.iter().map(|entry| entry.meta().id.as_str()).collect::<Vec<_>>().join(" ");
        for item in unknown.iter().take(NAMED) {
            let item = one_line(&settings.cleaned(item), 80);
            all.warnings.push(format!("\"{item}\" is named as gone, and is in no older note of {ids}"));
        }
        Ok(all)
    }
}

/// A model is not shown the secrets of a note, so that none is in the text that it writes instead.
pub(super) fn holds_no_secret(settings: &Defrag, id: &EntryId, text: &str) -> Result<()> {
    if settings.allows_loss || settings.cleaned(text) == text {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{id} holds a secret, which no model is shown, and which would be lost: take it out by hand first \
         (--allow-loss overrides this)"
    )))
}

/// An error if too many facts are missing, or if of all the different words too few are left.
fn is_kept_enough(id: &EntryId, missing: Option<&[&str]>, words: Option<(usize, usize)>) -> Result<()> {
    let why = match (missing, words) {
        (Some(missing), _) => {
            let some: Vec<String> = missing.iter().take(NAMED).map(|fact| line(fact)).collect();
            let more = if missing.len() > NAMED { ", …" } else { "" };
            format!("it would remove {} facts from {id} ({}{more})", missing.len(), some.join(", "))
        }
        (None, Some((kept, all))) => format!("it would leave {kept} of the {all} different words of {id}"),
        (None, None) => return Ok(()),
    };
    Err(Error::refused(format!("{why} (--allow-loss overrides this)")))
}
