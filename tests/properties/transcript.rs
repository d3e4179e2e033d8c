//! Recorded sessions, in every form that is read. The first byte says in which.

use crate::fuzz::scratch::Scratch;
use crate::fuzz::{choice, is_told};
use crate::harness::document::PLAIN;
use crate::harness::recalled::{START, reads_memory, without_notes, without_sections};
use crate::harness::spec::Format;
use crate::harness::turn::{SessionReport, Turn};
use crate::harness::turns::TURNS;
use crate::harness::{HARNESSES, read};
use std::collections::BTreeSet;
use std::path::Path;

pub fn holds(bytes: &[u8]) {
    let mut formats: Vec<&'static Format> = HARNESSES.iter().map(|spec| &spec.format).collect();
    formats.extend([&TURNS, &PLAIN]);
    let (which, bytes) = choice(bytes, formats.len());
    let format = formats[which];
    let scratch = Scratch::empty();
    let path = scratch.put("session", bytes);
    let Some((turns, report)) = all(format, &path) else { return };
    assert_eq!(report.turns, turns.len());
    let ids: BTreeSet<&str> = turns.iter().map(|turn| turn.id.as_str()).collect();
    assert_eq!(ids.len(), turns.len(), "two turns with one id: {turns:?}");
    for turn in &turns {
        assert!(!turn.text.trim().is_empty() && !turn.id.is_empty());
        assert_eq!(without_sections(&turn.text), turn.text, "a managed section is passed on");
        assert!(!turn.text.lines().any(|line| line == START), "a managed section is passed on");
        reads_memory(&turn.text);
        let rest = without_notes(&turn.text);
        assert_eq!(without_notes(&rest), rest);
    }
    let said: usize = turns.iter().map(|turn| turn.text.len()).sum();
    assert!(said <= 16 * bytes.len() + 4096, "{said} bytes out of {}", bytes.len());
    is_the_same_again(format, &path, &turns);
    let name = HARNESSES.get(which).map(|spec| spec.name);
    if matches!(name, Some("claude-code" | "codex" | "cursor")) {
        a_torn_line_costs_nothing(format, &scratch, bytes, (&turns, &report));
    }
}

fn all(format: &Format, path: &Path) -> Option<(Vec<Turn>, SessionReport)> {
    let mut turns = Vec::new();
    let report = read(format, path, &mut |turn| {
        turns.push(turn);
        Ok(())
    });
    match report {
        Ok(report) => Some((turns, report)),
        Err(error) => {
            is_told(&error.line());
            None
        }
    }
}

fn is_the_same_again(format: &Format, path: &Path, turns: &[Turn]) {
    let (again, _) = all(format, path).unwrap();
    assert_eq!(again, turns);
}

/// A program that was killed leaves half a line; the next one goes on behind it.
fn a_torn_line_costs_nothing(
    format: &Format,
    scratch: &Scratch,
    bytes: &[u8],
    (turns, report): (&[Turn], &SessionReport),
) {
    let torn = scratch.put("torn", &[bytes, b"\n{\"type\":\"user\",\"mess\n"].concat());
    // Of torn lines alone nobody can tell what they are.
    let Some((again, told)) = all(format, &torn) else { return assert!(turns.is_empty()) };
    assert_eq!(again, turns);
    assert_eq!(told.torn, report.torn + 1);
}
