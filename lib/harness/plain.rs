//! Any text file: its parts become turns of a document, without a speaker.

use crate::base::error::Result;
use crate::base::text::hex;
use crate::harness::out::TurnSink;
use crate::harness::recalled;
use crate::harness::source::{self, Reader, failed};
use crate::harness::spec::Format;
use crate::harness::turn::Role;
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, Read};
use std::path::Path;

pub static PLAIN: Format = Format { read, ..Format::ANY };

/// A piece ends with the first line after this many bytes.
const PIECE: usize = 32 << 10;
/// A longer line is split.
const LINE: usize = 1 << 20;

/// The id of a piece is its end in the file, and a hash of everything up to there. So a file that only grew is
/// continued after the piece `last`, and of one that was rewritten nothing is known.
fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut reader = source::open(path, "a text file")?;
    let border = match out.last {
        Some(last) => unchanged(path, last)?,
        None => None,
    };
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
        if marker == recalled::START && !inside {
            inside = true;
            piece.push_str(recalled::SECTION_LEFT_OUT);
            piece.push('\n');
        } else if marker == recalled::END && inside {
            inside = false;
        } else if !inside {
            piece.push_str(&text);
        }
        if piece.len() >= PIECE || ended || border == Some(offset) {
            let kept = recalled::without_notes(&piece);
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
    let mut reader = source::open(path, "a text file")?;
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
}
