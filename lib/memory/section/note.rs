//! Renders one note in the section: whole, or as a link. Notes are untrusted data, so all their text is sanitized.

use crate::base::text::{cut, is_hidden};
use crate::memory::section::sanitize;
use crate::store::entry::{Meta, one_line};
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
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

/// The parts of a warm note's line. It is rendered late, since only a few of thousands of notes are listed.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) title: String,
    place: Place,
    path: PathBuf,
    summary: Option<String>,
    waits: bool,
}

impl Link {
    pub(super) fn of(note: &Note, waits: bool) -> Link {
        let Note { place, path, entry } = note;
        Link { title: title(entry.meta()), place: *place, path: path.clone(), summary: summary(note), waits }
    }

    /// The same of a note in use, without its text. `None` if the summary comes from there.
    pub(super) fn without_text(meta: &Meta, path: &Path) -> Option<Link> {
        let summary = Some(cut(&one_line(&meta.summary), SUMMARY).into_owned());
        let summary = summary.filter(|summary| !summary.is_empty())?;
        let (title, path) = (title(meta), path.to_path_buf());
        Some(Link { title, place: Place::Topics, path, summary: Some(summary), waits: false })
    }

    /// The directory of the notes in use.
    pub(super) fn dir(&self) -> PathBuf {
        let dir = self.path.parent().unwrap_or(&self.path);
        match (self.place, dir.parent()) {
            (Place::Archive, Some(root)) => Root::at(root).topics(),
            _ => dir.to_path_buf(),
        }
    }

    /// `- file name: summary`
    pub(super) fn line(&self) -> String {
        let name = plain(&self.path.file_name().unwrap_or_default().to_string_lossy());
        let first = match self.place {
            // Somebody asked for it by its id.
            Place::Archive => "../archive/",
            Place::Topics if is_text(&name) => "",
            Place::Topics => "./",
        };
        let mark = if self.waits { WAITS } else { "" };
        match &self.summary {
            Some(summary) => format!("- {first}{}{mark}", sanitize::line(&format!("{name}: {summary}"))),
            None => format!("- {first}{}{mark}", sanitize::line(&name)),
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
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                let _ = write!(text, "%{byte:02X}");
            }
        } else {
            text.push(c);
        }
    }
    text
}
