//! Renders one note in the section: whole, or as a link. Notes are untrusted data, so all their text is sanitized.

use crate::base::ago::utc_day;
use crate::base::text::fences::fence;
use crate::base::text::{alphanumerics, cut, is_hidden};
use crate::memory::code::{CodeState, NoteState};
use crate::memory::hash::hash;
use crate::memory::search::language::is_stop_word;
use crate::memory::section::sanitize;
use crate::store::entry::{By, Meta, one_line};
use crate::store::index::NoteView;
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use jiff::Timestamp;
use jiff::civil::Date;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The longest title, the longest summary, and the longest sentence that stands for one, in characters.
const TITLE: usize = 200;
const SUMMARY: usize = 300;
const SENTENCE: usize = 160;
/// Only the beginning of a body is searched for a sentence, in bytes.
const BEGINNING: usize = 4096;

/// The highest level of a note's own headings: below the headings of the section and of the note.
const DEPTH: usize = 4;

/// What a note bears of which a person has to decide about a change. The change itself is not shown.
const WAITS: &str = " (a change waits: `memory review`)";
/// What a note bears whose session had read outside before: a paraphrase cannot be told from knowledge.
const OUTSIDE: &str = " (after reading the web)";

/// What a note bears of which the code is no longer as it was when the note was drawn from it.
const CHANGED: &str = " (the code it was drawn from has changed since)";
const GONE: &str = " (the code it was drawn from is gone)";

/// What a note is shown with, besides what it says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// A change of it waits for a person.
    pub waits: bool,
    pub state: NoteState,
}

impl Marks {
    /// All that a note may have been shown with.
    pub(super) fn all(meta: &Meta) -> impl Iterator<Item = Marks> {
        let codes = [CodeState::Same, CodeState::Changed, CodeState::Gone];
        let codes = codes.into_iter().take(if meta.anchors.is_empty() { 1 } else { codes.len() });
        let places = if meta.branch.is_some() { &[false, true][..] } else { &[false] };
        let states =
            codes.flat_map(|code| places.iter().map(move |place| NoteState { code, is_elsewhere: *place }));
        states.flat_map(|state| [false, true].map(|waits| Marks { waits, state }))
    }
}

/// The first line of a note: title, id, day and author, and its marks. Ends with a line end.
pub(super) fn heading(meta: &Meta, with: Marks) -> String {
    let mut facts = meta.id.to_string();
    if let Some(day) = day(meta) {
        let _ = write!(facts, ", {day}");
    }
    if let Some(confirmed) = meta.confirmed.filter(|confirmed| Some(*confirmed) > day(meta)) {
        let _ = write!(facts, ", confirmed {confirmed}");
    }
    if meta.is_shared() {
        facts += ", from the repository";
    } else if let Some(by) = meta.by {
        let author = if by == By::Person { "you" } else { by.as_str() };
        let _ = write!(facts, ", {author}");
    }
    format!("### {} ({facts}){}\n", sanitize::line(&title(meta)), marks(meta, with))
}

/// The day on which it changed last, the same in every time zone. `None` where a person wrote the file and no time.
fn day(meta: &Meta) -> Option<Date> {
    Timestamp::from_millisecond(meta.updated_at).ok().filter(|_| meta.updated_at > 0).map(utc_day)
}

fn marks(meta: &Meta, with: Marks) -> String {
    let outside = if meta.outside.is_empty() { "" } else { OUTSIDE };
    let branch = meta.branch.as_ref().filter(|_| with.state.is_elsewhere);
    let branch = branch.map(|branch| format!(" (learned on branch {})", sanitize::line(&branch.name)));
    let code = match with.state.code {
        CodeState::Same => "",
        CodeState::Changed => CHANGED,
        CodeState::Gone => GONE,
    };
    let waits = if with.waits { WAITS } else { "" };
    format!("{outside}{}{code}{waits}", branch.unwrap_or_default())
}

/// A whole note: its heading, an empty line, the body. Ends with a line end.
pub fn block(note: &Note, with: Marks) -> String {
    let meta = note.entry.meta();
    let heading = heading(meta, with);
    let body = note.entry.body();
    // On its own line, a summary can begin a heading, a list or a fence.
    let text = if body.trim_ascii().is_empty() { meta.summary.as_bytes() } else { body };
    let body = sanitize::body(text, DEPTH);
    // A short rule is often its own title: once is enough.
    if words(&body).eq(words(&meta.title)) { heading } else { format!("{heading}\n{body}") }
}

/// The same in three lines, for a note that is too long: heading, summary, and the line that matters.
pub fn excerpt(note: &Note, with: Marks, line: Option<&str>) -> String {
    let meta = note.entry.meta();
    let mut lines = vec![heading(meta, with).trim_end().to_owned(), String::new()];
    let shown = |text: &str| sanitize::body(text.as_bytes(), DEPTH).trim_end().to_owned();
    lines.extend([meta.summary.as_str()].into_iter().chain(line).filter(|text| !text.is_empty()).map(shown));
    lines.dedup();
    lines.push(format!("The whole note: `memory read {}`", meta.id));
    lines.join("\n") + "\n"
}

/// A note by its id and title, in a sentence of ours.
pub fn named(note: &Note) -> String {
    let meta = note.entry.meta();
    format!("{} ({})", meta.id, sanitize::line(&title(meta)))
}

/// `- file name: what the name does not say`, as a line of the list. The note is read only if the summary says nothing.
pub(super) fn line(view: &NoteView, with: Marks) -> String {
    let name = plain(&view.path.file_name().unwrap_or_default().to_string_lossy());
    let first = match view.place {
        // Somebody asked for it by its id.
        Place::Archive => "../archive/",
        Place::Topics if is_text(&name) => "",
        Place::Topics => "./",
    };
    let text = match description(view) {
        Some(description) => format!("{name}: {description}"),
        None => name,
    };
    format!("- {first}{}{}", sanitize::line(&text), marks(&view.meta, with))
}

/// A fingerprint of its line, whatever waits for it.
pub fn told_line(view: &NoteView) -> String {
    hash(line(view, Marks::default()))
}

/// The directory of the notes in use.
pub(super) fn dir(view: &NoteView) -> PathBuf {
    let dir = view.path.parent().unwrap_or(&view.path);
    let root = dir.parent().filter(|_| view.place == Place::Archive);
    root.map_or_else(|| dir.to_path_buf(), |root| Root::at(root).topics())
}

/// The title on one line, or the id of a note without a title.
pub(super) fn title(meta: &Meta) -> String {
    match one_line(&meta.title) {
        title if title.is_empty() => meta.id.to_string(),
        title => cut(&title, TITLE).into_owned(),
    }
}

/// What the title does not say: the summary, or the first sentence of the body that says more.
fn description(view: &NoteView) -> Option<String> {
    let meta = &view.meta;
    let summary = one_line(&meta.summary);
    if says_more(&summary, &meta.title) {
        return Some(cut(&summary, SUMMARY).into_owned());
    }
    let body = view.note().map_or(&[][..], |note| note.entry.body());
    let beginning = String::from_utf8_lossy(&body[..body.len().min(BEGINNING)]);
    let sentence = sentences(&beginning).find(|sentence| says_more(sentence, &meta.title));
    sentence.map(|sentence| cut_at_word(&sentence)).or_else(|| Some(summary).filter(|text| !text.is_empty()))
}

/// The words of a text, without case and punctuation.
fn words(text: &str) -> impl Iterator<Item = String> {
    alphanumerics(text).map(str::to_lowercase)
}

fn says_more(text: &str, title: &str) -> bool {
    let known: BTreeSet<String> = words(title).collect();
    words(text).any(|word| !known.contains(&word) && !is_stop_word(&word))
}

/// The sentences of a text, each on one line. Code in fences is none.
fn sentences(text: &str) -> impl Iterator<Item = String> {
    let mut paragraphs = vec![String::new()];
    let mut open = None;
    for line in text.lines() {
        match (open, fence(line.as_bytes())) {
            (None, Some(found)) => open = Some(found),
            (Some(first), Some(found)) if found.closes(&first) => open = None,
            (Some(_), _) => {}
            (None, None) => {
                let bare = line.trim_start_matches(|c: char| c.is_whitespace() || "\u{feff}#>-*".contains(c));
                // A line with a mark begins anew, as an empty one does.
                if bare.is_empty() || bare.len() < line.trim_start().len() {
                    paragraphs.push(String::new());
                }
                if let Some(last) = paragraphs.last_mut() {
                    *last += &format!("{} ", bare.trim_end());
                }
            }
        }
    }
    paragraphs.into_iter().flat_map(|paragraph| {
        let mut sentences = vec![];
        let mut rest = paragraph.trim();
        while let Some(end) = sentence_end(rest) {
            sentences.push(one_line(&rest[..end]));
            rest = rest[end..].trim_start();
        }
        sentences.push(one_line(rest));
        sentences
    })
}

/// After a full stop and the like before a space and a capital, or what may begin a sentence in code. Not after what may be
/// an abbreviation.
fn sentence_end(text: &str) -> Option<usize> {
    let ends = text.match_indices(['.', '!', '?']).map(|(at, _)| at + 1);
    ends.into_iter().find(|end| {
        let next = text[*end..].strip_prefix(' ').and_then(|rest| rest.chars().next());
        let last = text[..*end - 1].rsplit(' ').next().unwrap_or_default();
        next.is_some_and(|c| !c.is_lowercase()) && last.chars().count() > 2 && !last.contains('.')
    })
}

fn cut_at_word(text: &str) -> String {
    let Some((at, _)) = text.char_indices().nth(SENTENCE) else { return text.to_owned() };
    let end = text[..at].rfind(' ').unwrap_or(at);
    format!("{}...", text[..end].trim_end_matches([' ', ',', ';', ':']))
}

/// The path of a directory, as code.
pub(super) fn code_of(dir: &Path) -> String {
    format!("`{}`", plain(&dir.to_string_lossy()))
}

/// Does a line with this at its start surely begin with text? Otherwise it could be a heading, a quote or another list.
fn is_text(name: &str) -> bool {
    name.starts_with(char::is_alphanumeric)
        && !name.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['.', ')'])
}

/// A path or a name without what could end a line or a code span, or begin HTML. Those characters are as in a URL.
fn plain(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        if c.is_control() || is_hidden(c) || matches!(c, '`' | '<') {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| text += &format!("%{byte:02X}"));
        } else {
            text.push(c);
        }
    }
    text
}
