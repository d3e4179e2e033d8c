//! Names that are two here, and one on another machine.

use crate::base::text::folded;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::notes::CheckedNotes;
use std::collections::BTreeMap;

pub(super) fn check(checked: &CheckedNotes) -> Vec<Finding> {
    let mut first = BTreeMap::new();
    let mut findings = Vec::new();
    for note in &checked.notes {
        let name = note.path.file_name().unwrap_or_default().to_string_lossy();
        let Some(other) = first.insert((note.place, folded(&name)), note) else { continue };
        let other = other.shown.file_name().unwrap_or_default().to_string_lossy();
        let what =
            format!("its name differs from \"{other}\" in case or accents alone: on macOS they are one file");
        let mend =
            "change the title of one; otherwise memory-sync renames one when they reach another machine";
        findings.push(Finding::warning(Check::Sync, &note.shown, what, mend));
    }
    findings
}
