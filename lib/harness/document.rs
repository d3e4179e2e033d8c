//! Files without a speaker, whose parts become turns of a document: any text file, and a file of Markdown in which somebody
//! collects what is to be remembered.

use crate::base::error::Result;
use crate::base::text::fences::{Fence, fence};
use crate::base::text::{collapsed, hex};
use crate::harness::out::TurnSink;
use crate::harness::recalled::{END, SECTION_LEFT_OUT, START, without_notes, without_sections};
use crate::harness::source::{Reader, failed, open};
use crate::harness::spec::Format;
use crate::harness::turn::Role;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io::{self, BufRead, Read};
use std::path::Path;

pub static PLAIN: Format = Format { read: read_text, ..Format::ANY };

/// Such a file is rewritten in the middle. So the id of a turn is a hash of its text, wherever it stands.
pub static MEMORY_FILE: Format = Format { read: read_memories, ..Format::ANY };

/// Only so much of a file of memories is read, in bytes.
pub const CAP: u64 = 256 << 10;

/// A piece ends with the first line after this many bytes.
const PIECE: usize = 32 << 10;
/// A longer line is split.
const LINE: usize = 1 << 20;

/// The id of a piece is its end in the file, and a hash of everything up to there. So a file that only grew is
/// continued after the piece `last`, and of one that was rewritten nothing is known.
fn read_text(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = open(path, "a text file")?;
    let border = out.last.map_or(Ok(None), |last| unchanged(path, last))?;
    let mut offset = io::Seek::stream_position(&mut reader).map_err(|e| failed(path, &e))?;
    let mut hash = Sha256::new();
    let mut piece = String::new();
    let mut line = Vec::new();
    let mut inside = false;
    loop {
        let to_border = border.and_then(|border| border.checked_sub(offset)).filter(|bytes| *bytes > 0);
        let most = to_border.unwrap_or(u64::MAX).min(LINE as u64);
        let ended = !next_part(&mut reader, most, &mut line).map_err(|e| failed(path, &e))?;
        offset += line.len() as u64;
        hash.update(&line);
        let text = String::from_utf8_lossy(&line);
        // A managed section may be longer than a piece, so it is recognised line by line.
        let marker = text.trim_start_matches('\u{feff}').trim();
        if marker == START && !inside {
            inside = true;
            piece.push_str(SECTION_LEFT_OUT);
            piece.push('\n');
        } else if marker == END && inside {
            inside = false;
        } else if !inside {
            piece.push_str(&text);
        }
        if piece.len() >= PIECE || ended || border == Some(offset) {
            let kept = without_notes(&piece);
            out.turn(Role::Document, &kept, piece_id(offset, &hash))?;
            // A note counts as going on to the end of the file.
            if ended || kept.len() != piece.len() {
                return Ok(());
            }
            piece.clear();
        }
    }
}

/// Where the piece with this id ends, if the file is still the same up to there.
fn unchanged(path: &Path, id: &str) -> Result<Option<u64>> {
    let Some(border) = id.split_once('-').and_then(|(end, _)| end.parse::<u64>().ok()) else {
        return Ok(None);
    };
    let mut reader = open(path, "a text file")?;
    let start = io::Seek::stream_position(&mut reader).map_err(|e| failed(path, &e))?;
    let mut hash = Sha256::new();
    let mut left = border.saturating_sub(start);
    while left > 0 {
        let block = reader.fill_buf().map_err(|e| failed(path, &e))?;
        let length = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if length == 0 {
            return Ok(None);
        }
        hash.update(&block[..length]);
        reader.consume(length);
        left -= length as u64;
    }
    Ok((piece_id(border, &hash) == id).then_some(border))
}

fn piece_id(end: u64, hash: &Sha256) -> String {
    format!("{end}-{}", hex(&hash.clone().finalize()[..8]))
}

/// Reads a line with its newline, or at most `most` bytes of a longer line. Characters are not split. `false` at the end.
fn next_part(reader: &mut Reader, most: u64, part: &mut Vec<u8>) -> io::Result<bool> {
    part.clear();
    reader.by_ref().take(most).read_until(b'\n', part)?;
    // Read the rest of a character that was split.
    while part.len() as u64 >= most && std::str::from_utf8(part).is_err_and(|e| e.error_len().is_none()) {
        if reader.by_ref().take(1).read_to_end(part)? == 0 {
            break;
        }
    }
    Ok(!part.is_empty())
}

/// Each paragraph and each item of a list is a turn.
fn read_memories(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut bytes = Vec::new();
    open(path, "a text file")?.take(CAP).read_to_end(&mut bytes).map_err(|e| failed(path, &e))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = without_sections(&text);
    let own = without_added(&text);
    out.report.has_added = own != text;
    let mut seen = HashSet::new();
    for piece in pieces(&without_notes(&own)) {
        let words = collapsed(&piece);
        let id = hex(&Sha256::digest(words)[..16]);
        if seen.insert(id.clone()) {
            out.turn(Role::Document, &piece, id)?;
        }
    }
    Ok(())
}

/// Without what agents of Gemini CLI and Qwen Code have put into the person's file: it stands below `## … Added Memories`, up
/// to the next heading of this level.
fn without_added(text: &str) -> String {
    let (mut rest, mut is_added) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        if line.starts_with("# ") || line.starts_with("## ") {
            is_added = line.trim_end().to_lowercase().ends_with(" added memories");
        }
        rest.push_str(if is_added { "" } else { line });
    }
    rest
}

/// The paragraphs and the items of lists, each below the headings that come right before it.
fn pieces(text: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut open, mut is_heading): (Option<Fence>, bool) = (None, false);
    for line in text.lines().filter(|line| *line != SECTION_LEFT_OUT) {
        let is_inside = open.is_some();
        match (fence(line.as_bytes()), open) {
            (Some(mark), Some(opening)) if mark.closes(&opening) => open = None,
            (Some(mark), None) => open = Some(mark),
            _ => {}
        }
        let begins_heading = line.starts_with('#');
        let is_border = line.trim().is_empty() || is_item(line) || begins_heading;
        if !is_inside && is_border && !is_heading && !piece.trim().is_empty() {
            pieces.push(std::mem::take(&mut piece));
        }
        if is_inside || !line.trim().is_empty() {
            piece.extend([line, "\n"]);
            is_heading = begins_heading && !is_inside;
        }
    }
    pieces.push(piece);
    pieces.retain(|piece| piece.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#')));
    pieces
}

fn is_item(line: &str) -> bool {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marks: &[char] = if digits > 0 { &['.', ')'] } else { &['-', '*', '+'] };
    line[digits..].strip_prefix(marks).is_some_and(|rest| rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;

    use crate::harness::turn::Turn;

    #[test]
    fn a_line_longer_than_a_piece_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.txt");
        let text = format!("first\n{}ä\nlast", "aäö€".repeat(LINE / 4));
        std::fs::write(&path, &text).unwrap();
        let mut said = String::new();
        let mut each = |turn: Turn| {
            said.push_str(&turn.text);
            Ok(())
        };
        let report = crate::harness::read(&PLAIN, &path, &mut each).unwrap();
        assert!(report.turns > 1);
        assert_eq!(said, text);
    }

    #[test]
    fn a_piece_is_a_paragraph_or_an_item_below_its_headings() {
        let text = "# Rules\n\n## Tests\n- Run make test.\n  It takes long.\n- Never skip.\n\nOne\nparagraph.\n\n```\na\n\n# b\n```\n\n## Empty\n";
        assert_eq!(
            pieces(text),
            [
                "# Rules\n## Tests\n- Run make test.\n  It takes long.\n",
                "- Never skip.\n",
                "One\nparagraph.\n",
                "```\na\n\n# b\n```\n",
            ]
        );
        assert!(pieces("").is_empty() && pieces("\n\n# Title\n").is_empty());
    }

    #[test]
    fn what_an_agent_added_is_left_out() {
        let text = "# Rules\n- a\n## Gemini Added Memories\n- b\n### c\n- d\n## Mine\n- e\n";
        assert_eq!(without_added(text), "# Rules\n- a\n## Mine\n- e\n");
        assert_eq!(without_added("- a\n\n## Qwen Added Memories\n- b"), "- a\n\n");
        assert_eq!(without_added("## What was added\n- a\n"), "## What was added\n- a\n");
    }
}
