//! The text of a history, in a file of its batch, turn by turn: it may be larger than memory.

use crate::base::file;
use serde::{Deserialize, Serialize};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The name of an entry's text in its batch.
pub(super) fn text_name(queue_id: &str) -> String {
    format!("{queue_id}.history.txt")
}

/// The name of what is known about that text.
pub(super) fn facts_name(queue_id: &str) -> String {
    format!("{queue_id}.history.json")
}

/// What the text file of a history holds, and where its turns end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct History {
    /// The session's name in the ledger; `None`: a note, or a file that is no session.
    pub(super) session: Option<String>,
    pub(super) parent: Option<String>,
    /// Where each turn ends in the text, in bytes.
    pub(super) borders: Vec<usize>,
    /// Each turn's hash.
    pub(super) marks: Vec<String>,
    /// Bytes that were left out of turns, each place marked.
    pub(super) cut: usize,
}

impl History {
    pub(super) fn bytes(&self) -> usize {
        self.borders.last().copied().unwrap_or(0)
    }
}

/// A turn in the text of all turns.
pub(crate) struct Seen {
    pub(super) end: usize,
    pub(super) mark: String,
    pub(super) cut: usize,
}

/// Copies the turns `wanted` from the text of all turns.
pub(super) fn copy_turns(
    from: &Path,
    to: &Path,
    turns: &[Seen],
    wanted: &[usize],
    history: &mut History,
) -> io::Result<()> {
    let mut all = fs_err::File::open(from)?;
    let mut text = BufWriter::new(file::scratch(to)?);
    let mut end = 0;
    for &index in wanted {
        let start = index.checked_sub(1).map_or(0, |before| turns[before].end);
        let length = turns[index].end - start;
        all.seek(SeekFrom::Start(start as u64))?;
        io::copy(&mut (&mut all).take(length as u64), &mut text)?;
        end += length;
        history.borders.push(end);
        history.marks.push(turns[index].mark.clone());
        history.cut += turns[index].cut;
    }
    text.flush()?;
    text.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// A stretch of a text file, as text. Its ends are ends of turns or of characters.
pub(super) fn slice(path: &Path, from: usize, to: usize) -> io::Result<String> {
    let mut file = fs_err::File::open(path)?;
    file.seek(SeekFrom::Start(from as u64))?;
    let mut bytes = Vec::new();
    file.take(to.saturating_sub(from) as u64).read_to_end(&mut bytes)?;
    Ok(crate::base::text::lossy(bytes).0)
}

/// The last place at or before `at` where a line ends, or else a character, within a few kilobytes.
pub(super) fn cut_at(path: &Path, at: usize) -> usize {
    let from = at.saturating_sub(4096);
    let mut bytes = Vec::new();
    let read = fs_err::File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(from as u64))?;
        file.take((at - from + 1) as u64).read_to_end(&mut bytes)
    });
    if read.is_err() {
        return at;
    }
    let within = &bytes[..bytes.len().min(at - from)];
    if let Some(line) = memchr::memrchr(b'\n', within) {
        return from + line + 1;
    }
    // A byte that continues a character is no place to begin.
    let mut end = at - from;
    while end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    from + end
}
