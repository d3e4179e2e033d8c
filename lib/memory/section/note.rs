//! Renders one note in the section: whole, or as a link. Notes are untrusted data, so all their text is sanitized.

use crate::base::text::{cut, is_odd};
use crate::memory::section::sanitize;
use crate::store::entry::{Meta, one_line};
use crate::store::persistence::Note;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The longest title and the longest summary, in characters.
const TITLE: usize = 200;
const SUMMARY: usize = 300;

/// The highest level of a note's own headings: below the headings of the section and of the note.
const DEPTH: usize = 4;

/// What a note bears of which a person has to decide about a change. The change itself is not shown.
const WAITS: &str = " (a change waits: `memory review`)";

/// A hot note: a heading, an empty line, the body. Ends with a line end.
pub(super) fn block(note: &Note, waits: bool) -> String {
    let meta = note.entry.meta();
    let mark = if waits { WAITS } else { "" };
    let heading = format!("### {} ({}){mark}\n", sanitize::line(&title(meta)), meta.id);
    let body = sanitize::body(note.entry.body(), DEPTH);
    match (body.is_empty(), summary(note)) {
        (false, _) => format!("{heading}\n{body}"),
        // On its own line, a summary can begin a heading, a list or a fence.
        (true, Some(summary)) => format!("{heading}\n{}", sanitize::body(summary.as_bytes(), DEPTH)),
        (true, None) => heading,
    }
}

/// The parts of a warm note's line. It is rendered late, since only a hundred of thousands of notes are listed.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) title: String,
    path: PathBuf,
    summary: Option<String>,
    waits: bool,
}

impl Link {
    pub(super) fn of(note: &Note, waits: bool) -> Link {
        Link { title: title(note.entry.meta()), path: note.path.clone(), summary: summary(note), waits }
    }

    /// The same without the note's text. `None` if the summary comes from there.
    pub(super) fn without_text(meta: &Meta, path: &Path) -> Option<Link> {
        let summary = Some(cut(&one_line(&meta.summary), SUMMARY).into_owned());
        let summary = summary.filter(|summary| !summary.is_empty())?;
        Some(Link { title: title(meta), path: path.to_path_buf(), summary: Some(summary), waits: false })
    }

    /// `- [title](<path>): summary`
    pub(super) fn line(&self) -> String {
        let link = format!("- [{}](<{}>)", sanitize::link_text(&self.title), destination(&self.path));
        let mark = if self.waits { WAITS } else { "" };
        match &self.summary {
            Some(summary) => format!("{link}: {}{mark}", sanitize::line(summary)),
            None => link + mark,
        }
    }
}

/// The title on one line, or the id of a note without a title.
pub(super) fn title(meta: &Meta) -> String {
    match one_line(&meta.title) {
        title if title.is_empty() => meta.id.to_string(),
        title => cut(&title, TITLE).into_owned(),
    }
}

/// The summary on one line, or the first line of the body with a letter or digit.
fn summary(note: &Note) -> Option<String> {
    let summary = one_line(&note.entry.meta().summary);
    let summary = if summary.is_empty() { first_line(note.entry.body()) } else { summary };
    (!summary.is_empty()).then(|| cut(&summary, SUMMARY).into_owned())
}

fn first_line(body: &[u8]) -> String {
    // The first line may be very long, and only its beginning is shown.
    let body = String::from_utf8_lossy(&body[..body.len().min(16 * SUMMARY)]);
    let lines = body.split(['\n', '\r']).map(|line| line.trim_start_matches('\u{feff}').trim());
    let mut lines = lines.filter(|line| line.chars().any(char::is_alphanumeric));
    one_line(lines.next().unwrap_or_default().trim_start_matches(['#', '>', '-', '*', ' ']))
}

/// A path for use between `<` and `>`: unchanged, except for what would end it there.
fn destination(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars() {
        match c {
            '<' | '>' | '\\' | '`' => text.extend(['\\', c]),
            c if c.is_control() || is_odd(c) => {
                let mut utf8 = [0; 4];
                for byte in c.encode_utf8(&mut utf8).bytes() {
                    let _ = write!(text, "%{byte:02X}");
                }
            }
            c => text.push(c),
        }
    }
    text
}
