//! A file of Markdown in which somebody collects what is to be remembered: each paragraph and each item of a list is a turn.
//!
//! Such a file is rewritten in the middle. So the id of a turn is a hash of its text, wherever it stands.

use crate::base::error::Result;
use crate::base::text::fences::{Fence, fence};
use crate::base::text::{collapsed, hex};
use crate::harness::out::TurnSink;
use crate::harness::recalled::{SECTION_LEFT_OUT, without_notes, without_sections};
use crate::harness::source::{failed, open};
use crate::harness::spec::Format;
use crate::harness::turn::Role;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

pub static MEMORY_FILE: Format = Format { read, ..Format::ANY };

/// Only so much of a file is read, in bytes.
pub const CAP: u64 = 256 << 10;

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
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
    use super::*;

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
