//! A change that waits, as a person or a program reads it.

use crate::base::cli::{Context, Meaning, Paint};
use crate::base::error::Result;
use crate::base::text::{disarmed, one_line};
use crate::memory::review::{Pending, dangers_of};
use crate::program::screen::is_paged;
use crate::store::entry::{EntryId, one_line as whole_line};
use crate::store::proposal::{Evidence, Proposal};
use serde::Serialize;
use std::path::Path;

/// The longest quote that is shown, in characters.
const QUOTE: usize = 1000;

/// Nothing in it is live: models and web pages have written it.
pub fn text_of(pending: &Pending, paint: Paint) -> String {
    let Proposal { id, op, note, entry, by, evidence, reasons, .. } = &pending.proposal;
    let mut text = String::new();
    let mut add = |meaning: Option<Meaning>, line: &str| {
        let line = disarmed(line);
        text += &meaning.map_or(line.as_ref().into(), |meaning| paint.paint(meaning, &line));
        text.push('\n');
    };
    let title = match (entry, &pending.note) {
        (Some(entry), _) => whole_line(&entry.title),
        (None, Some(note)) => whole_line(&note.entry.meta().title),
        (None, None) => String::new(),
    };
    let note_id = note.as_ref().map(|note| format!("{note}  ")).unwrap_or_default();
    add(Some(Meaning::Heading), format!("{id}  {op}  {note_id}{title}").trim_end());
    let dangers = dangers_of(&pending.proposal);
    for does in &dangers {
        add(Some(Meaning::Error), &format!("  danger: {}", whole_line(does)));
    }
    let is_danger = |reason: &String| dangers.iter().any(|does| *reason == format!("It {does}."));
    for reason in reasons.iter().filter(|reason| !is_danger(reason)) {
        add(Some(Meaning::Warning), &format!("  waits: {}", whole_line(reason)));
    }
    add(None, &format!("  by: {by}"));
    match &pending.note {
        Some(note) => add(None, &format!("  note: {}", note.path.display())),
        None if note.is_some() => add(Some(Meaning::Warning), "  the note is gone"),
        None => {}
    }
    if pending.has_changed() {
        add(Some(Meaning::Warning), "  the note has changed since this was proposed");
    }
    for Evidence { turn, quote, said } in evidence {
        let said = said.map_or("in no turn", |said| said.as_str());
        add(None, &format!("  quote ({}, {said}): \"{}\"", whole_line(turn), one_line(quote, QUOTE)));
    }
    for (id, title) in &pending.beside {
        add(None, &format!("  beside it now: {id}  {}", whole_line(title)));
    }
    for line in pending.diff() {
        let meaning = match line.as_bytes().first() {
            Some(b'+') => Some(Meaning::Added),
            Some(b'-') => Some(Meaning::Removed),
            _ => None,
        };
        add(meaning, format!("  {line}").trim_end());
    }
    text
}

/// A proposal as JSON: the keys of its file, and what it would change.
#[derive(Serialize)]
struct ListedChange<'a> {
    #[serde(flatten)]
    proposal: &'a Proposal,
    /// Of the note.
    path: Option<&'a Path>,
    /// The note has changed since.
    changed: bool,
    diff: Vec<String>,
    /// The notes that say something about the same by now.
    beside: Vec<&'a EntryId>,
}

pub fn print(pending: &Pending, cx: &mut Context) -> Result<()> {
    match cx.json {
        true => cx.stdout.json(&ListedChange {
            proposal: &pending.proposal,
            path: pending.note.as_ref().map(|note| note.path.as_path()),
            changed: pending.has_changed(),
            diff: pending.diff(),
            beside: pending.beside.iter().map(|(id, _)| id).collect(),
        }),
        false => cx.stdout.text(&text_of(pending, cx.stdout.paint())),
    }
}

/// Prints a change for a person, with a pager if it is longer than the screen.
pub fn show(count: &str, pending: &Pending, cx: &mut Context) -> Result<()> {
    let text = cx.stdout.narrowed(&format!("{count}\n{}", text_of(pending, cx.stdout.paint())));
    match is_paged(&text, cx)? {
        false => cx.stdout.text(&text),
        true => cx.stdout.line(text.trim_start().lines().take(2).collect::<Vec<_>>().join("\n").as_str()),
    }
}
