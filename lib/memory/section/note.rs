//! One note as it stands in the section: whole, or as a link. Notes are data: what is in them cannot end the
//! section, nor reach what follows it.

use crate::base::text::{cut, is_odd};
use crate::memory::section::sanitize;
use crate::store::entry::{Meta, one_line};
use crate::store::persistence::Note;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The longest title and the longest summary that are shown, in characters.
const TITLE: usize = 200;
const SUMMARY: usize = 300;

/// How deep a note's own headings begin: below the section's and the note's.
const DEPTH: usize = 4;

/// A hot note: a heading, an empty line, its text. Ends with a line end.
pub(crate) fn block(note: &Note) -> String {
    let meta = note.entry.meta();
    let heading = format!("### {} ({})\n", sanitize::line(&title(meta)), meta.id);
    let body = sanitize::body(note.entry.body(), DEPTH);
    match (body.is_empty(), summary(note)) {
        (false, _) => format!("{heading}\n{body}"),
        // On a line of its own it can begin what a line can: a heading, a list, a fence.
        (true, Some(summary)) => format!("{heading}\n{}", sanitize::body(summary.as_bytes(), DEPTH)),
        (true, None) => heading,
    }
}

/// What a warm note's line is made of. Of thousands a hundred are shown, so that the others are spared the rest.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) title: String,
    path: PathBuf,
    summary: Option<String>,
}

impl Link {
    pub(crate) fn of(note: &Note) -> Link {
        Link { title: title(note.entry.meta()), path: note.path.clone(), summary: summary(note) }
    }

    /// `- [title](<path>): summary`
    pub(crate) fn line(&self) -> String {
        let link = format!("- [{}](<{}>)", sanitize::link_text(&self.title), destination(&self.path));
        match &self.summary {
            Some(summary) => format!("{link}: {}", sanitize::line(summary)),
            None => link,
        }
    }
}

/// One line. A note without a title is called by its id.
pub(crate) fn title(meta: &Meta) -> String {
    match one_line(&meta.title) {
        title if title.is_empty() => meta.id.to_string(),
        title => cut(&title, TITLE).into_owned(),
    }
}

/// One line: the note's summary, or the first line of its text that says something.
fn summary(note: &Note) -> Option<String> {
    let summary = one_line(&note.entry.meta().summary);
    let summary = if summary.is_empty() { first_line(note.entry.body()) } else { summary };
    (!summary.is_empty()).then(|| cut(&summary, SUMMARY).into_owned())
}

fn first_line(body: &[u8]) -> String {
    // No line end so far into a text: as much is more than is shown.
    let body = String::from_utf8_lossy(&body[..body.len().min(16 * SUMMARY)]);
    let lines = body.split(['\n', '\r']).map(|line| line.trim_start_matches('\u{feff}').trim());
    let mut lines = lines.filter(|line| line.chars().any(char::is_alphanumeric));
    one_line(lines.next().unwrap_or_default().trim_start_matches(['#', '>', '-', '*', ' ']))
}

/// A path between `<` and `>`: as it stands, but for what would end it there.
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
