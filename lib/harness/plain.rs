//! Any text file: its parts become turns of a document, without a speaker.

use crate::base::error::Result;
use crate::harness::out::TurnSink;
use crate::harness::recalled;
use crate::harness::source::{self, Reader, failed};
use crate::harness::turn::{Ids, Role};
use std::io::{self, BufRead, Read};
use std::path::Path;

/// A piece ends with the first line after this many bytes.
const PIECE: usize = 32 << 10;
/// A longer line is split.
const LINE: usize = 1 << 20;

pub(super) fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = source::open(path, "a text file")?;
    let mut ids = Ids::default();
    let mut piece = String::new();
    let mut line = Vec::new();
    let mut inside = false;
    loop {
        let ended = !next_part(&mut reader, &mut line).map_err(|e| failed(path, &e))?;
        let text = String::from_utf8_lossy(&line);
        // A managed section may be longer than a piece, so it is recognised line by line.
        let marker = text.trim_start_matches('\u{feff}').trim();
        if marker == recalled::START && !inside {
            inside = true;
            piece.push_str(recalled::SECTION_LEFT_OUT);
            piece.push('\n');
        } else if marker == recalled::END && inside {
            inside = false;
        } else if !inside {
            piece.push_str(&text);
        }
        if piece.len() >= PIECE || ended {
            let kept = recalled::without_notes(&piece);
            out.turn(Role::Document, &kept, ids.next(Role::Document, &kept), None)?;
            // A note counts as going on to the end of the file.
            if ended || kept.len() != piece.len() {
                return Ok(());
            }
            piece.clear();
        }
    }
}

/// Reads a line with its newline, or the next part of a longer line. Characters are not split. `false` at the end.
fn next_part(reader: &mut Reader, part: &mut Vec<u8>) -> io::Result<bool> {
    part.clear();
    reader.by_ref().take(LINE as u64).read_until(b'\n', part)?;
    // Read the rest of a character that was split.
    while part.len() >= LINE && std::str::from_utf8(part).is_err_and(|e| e.error_len().is_none()) {
        if reader.by_ref().take(1).read_to_end(part)? == 0 {
            break;
        }
    }
    Ok(!part.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test may write files")]

    use super::*;
    use crate::harness::{Format, turn::Turn};

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
        let report = crate::harness::read(Format::Plain, &path, &mut each).unwrap();
        assert!(report.turns > 1);
        assert_eq!(said, text);
    }
}
