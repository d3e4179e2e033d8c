//! Whose words an operation changes. What a person has made their own is joined in whole sentences or waits for that
//! person; so does an address or a command that is in none of the notes that a text is made of.

use crate::base::error::{Error, Result};
use crate::base::text::{collapsed, one_line};
use crate::memory::defrag::reply::NAMED;
use crate::memory::facts::{PieceKind, pieces};
use crate::memory::pipeline::reply::Text;
use crate::memory::record::{NoteText, Record, orders_not_in, sentences_of_note};
use crate::store::entry::{By, Entry, Source, add_missing};
use crate::store::proposal::{Draft, Op, Proposal};
use std::collections::BTreeSet;
use unicode_segmentation::UnicodeSegmentation;

/// So many characters of a sentence are quoted.
const QUOTED: usize = 100;

/// Why a person is to decide whether these notes become those texts; empty: nobody has to.
pub(super) fn reasons(old: &[Entry], texts: &[Text]) -> Vec<String> {
    let (decisive, are_kept) = decisive(old);
    let mut reasons = Vec::new();
    if are_kept {
        not_own(&decisive, texts, &mut reasons);
    }
    foreign(&decisive, texts, &mut reasons);
    reasons
}

/// The notes that a person has made their own, if there are some (`true`); otherwise all.
fn decisive(all: &[Entry]) -> (Vec<&Entry>, bool) {
    let kept: Vec<&Entry> = all.iter().filter(|entry| entry.kept().is_some()).collect();
    if kept.is_empty() { (all.iter().collect(), false) } else { (kept, true) }
}

/// What waits then. The first text takes the place of the first note, other texts are new, and other notes go to the archive.
pub(super) fn proposals(old: &[Entry], texts: &[Text], reasons: &[String], at: i64) -> Vec<Proposal> {
    let by = old.iter().filter_map(|entry| entry.meta().by).max().unwrap_or(By::Agent).max(By::Agent);
    let mut sources: Vec<Source> = Vec::new();
    add_missing(&mut sources, old.iter().flat_map(|entry| entry.meta().sources.iter().cloned()));
    let Some(first) = old.first() else { return Vec::new() };
    let proposal = |op: Op, note: Option<&Entry>, text: Option<&Text>, reasons: &[String]| {
        let draft = text.cloned().map(|Text { title, summary, tags, body }| {
            let sources = sources.clone();
            Draft { title, summary, tags, body, sources, ..Draft::of(first) }
        });
        // The id is made from the title of the new text, or from the note's id.
        let note_id = note.map(|note| note.meta().id.clone());
        let title = draft.as_ref().map(|draft| draft.title.clone());
        let title = title.or_else(|| note_id.as_ref().map(ToString::to_string)).unwrap_or_default();
        let (base, reasons) = (note.map(Entry::base), reasons.to_vec());
        Proposal { note: note_id, base, entry: draft, reasons, ..Proposal::new(op, &title, by, at) }
    };
    let written = texts.iter().enumerate().map(|(number, text)| match number {
        0 => proposal(Op::Update, old.first(), Some(text), reasons),
        _ => proposal(Op::Create, None, Some(text), reasons),
    });
    let part = [format!("what it says would be part of {}", first.meta().id)];
    let reasons_to_go = if texts.is_empty() { reasons } else { &part };
    let gone = old.iter().skip(texts.len().min(1));
    written.chain(gone.map(|entry| proposal(Op::Retire, Some(entry), None, reasons_to_go))).collect()
}

/// The last step for a note that was made of `parts`: who said it, and that we wrote it, so that an edit is seen
/// later. Where a person had edited a part, that stays known.
///
/// # Errors
/// What the person had made their own would no longer be known as that.
pub(super) fn finish(entry: &mut Entry, parts: &[Entry]) -> Result<()> {
    let (of, are_kept) = decisive(parts);
    let mut by = weakest(&of);
    if by == Some(By::Person)
        && !sentences([Text::of(entry)]).is_subset(&sentences(of.iter().map(|entry| Text::of(entry))))
    {
        by = Some(By::Agent);
    }
    let edited = of.iter().find(|part| are_kept && part.is_edited());
    entry.update(|meta| {
        meta.by = by;
        if let Some(edited) = edited {
            meta.written.clone_from(&edited.meta().written);
        }
    })?;
    if edited.is_none() {
        entry.seal()?;
    }
    match are_kept && entry.kept().is_none() {
        true => Err(Error::refused("it would no longer be known that the person wrote or accepted it")),
        false => Ok(()),
    }
}

/// Who vouches least for one of them vouches for what is made of them. Of notes of older versions it is not known.
fn weakest(parts: &[&Entry]) -> Option<By> {
    let all: Vec<Option<By>> = parts.iter().map(|part| part.meta().by).collect();
    match all.contains(&Some(By::Tool)) {
        true => Some(By::Tool),
        false => all.into_iter().collect::<Option<Vec<By>>>()?.into_iter().max(),
    }
}

/// What the texts add to what the person made their own, or take from it.
fn not_own(kept: &[&Entry], texts: &[Text], reasons: &mut Vec<String>) {
    let own = sentences(kept.iter().map(|entry| Text::of(entry)));
    let made = sentences(texts.iter().cloned());
    let all = words(&texts.iter().flat_map(|text| text.note().texts()).collect::<Vec<_>>().join("\n"));
    // A title may go where its words stand in a sentence.
    let is_taken = |sentence: &&String| !made.contains(*sentence) && !all.contains(&words(sentence));
    for (what, sentences) in [
        ("it adds", made.difference(&own).collect::<Vec<_>>()),
        ("it takes away", own.iter().filter(is_taken).collect()),
    ] {
        if !sentences.is_empty() {
            reasons.push(format!("{what} {}, and the note is the person's own", quoted(&sentences)));
        }
    }
    let known: BTreeSet<String> = kept
        .iter()
        .flat_map(|entry| Text::of(entry).all().unicode_words().map(str::to_lowercase).collect::<Vec<_>>())
        .collect();
    let has = |tag: &String| kept.iter().any(|entry| entry.meta().tags.contains(tag));
    let name = |tag: &str| tag.split_once("__").map_or(tag, |(_, name)| name).to_lowercase();
    // More than one word could be an order.
    let new: Vec<&String> = texts
        .iter()
        .flat_map(|text| &text.tags)
        .filter(|tag| !has(tag) && !known.contains(&name(tag)))
        .collect();
    let tags = kept.iter().flat_map(|entry| &entry.meta().tags);
    let gone: Vec<&String> = tags.filter(|tag| !texts.iter().any(|text| text.tags.contains(tag))).collect();
    for (what, tags) in [("adds", new), ("takes away", gone)] {
        if !tags.is_empty() {
            reasons.push(format!("it {what} the tag {}, and the note is the person's own", quoted(&tags)));
        }
    }
}

/// The addresses, flags and commands of the texts that are in none of the notes, and what always waits.
fn foreign(parts: &[&Entry], texts: &[Text], reasons: &mut Vec<String>) {
    let before = parts.iter().map(|part| Text::of(part).all()).collect::<Vec<_>>().join("\n");
    let old = NoteText { body: &before, ..NoteText::default() };
    let mut found = BTreeSet::new();
    for text in texts.iter().map(Text::note) {
        let orders = orders_not_in(&text, &before);
        found.extend(
            orders.iter().map(|order| format!("\"{}\" is in none of the notes", one_line(order, QUOTED))),
        );
        found.extend(
            Record::default().dangers(&text, Some(&old)).iter().map(|danger| format!("it {}", danger.does())),
        );
        // Words of several commands make another one.
        let before = words(&before);
        for command in text.texts().into_iter().flat_map(commands) {
            if !before.contains(&words(command)) {
                found
                    .insert(format!("the command \"{}\" is in none of the notes", one_line(command, QUOTED)));
            }
        }
    }
    reasons.extend(found.into_iter().take(NAMED));
}

/// Lines of code, and spans of it with two words or more.
fn commands(text: &str) -> Vec<&str> {
    let code = pieces(text).into_iter().filter(|piece| piece.kind != PieceKind::Prose);
    let lines = code.flat_map(|piece| match piece.kind {
        PieceKind::Span => vec![piece.text],
        _ => piece.text.lines().collect(),
    });
    lines.filter(|line| line.split_whitespace().nth(1).is_some()).collect()
}

/// The sentences of these notes, without their full stops: a title has none.
fn sentences(texts: impl IntoIterator<Item = Text>) -> BTreeSet<String> {
    let all = texts.into_iter().flat_map(|text| {
        let texts = text.note().texts();
        texts.into_iter().flat_map(sentences_of_note).collect::<Vec<String>>()
    });
    let bare = all.map(|sentence| collapsed(sentence.trim_end_matches(['.', '。'])));
    bare.filter(|sentence| !sentence.is_empty()).collect()
}

/// The words of a text, each between blanks, without the marks around them.
fn words(text: &str) -> String {
    let bare =
        text.split_whitespace().map(|word| word.trim_matches(|c: char| "`\"'.,;:!?()*_#>[]".contains(c)));
    bare.filter(|word| !word.is_empty()).fold(" ".to_owned(), |words, word| words + word + " ")
}

fn quoted(sentences: &[&String]) -> String {
    let some = sentences.iter().take(NAMED).map(|sentence| format!("\"{}\"", one_line(sentence, QUOTED)));
    let more = if sentences.len() > NAMED { ", …" } else { "" };
    some.collect::<Vec<_>>().join(", ") + more
}
