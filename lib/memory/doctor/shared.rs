//! The notes that a repository has among its files: what its authors should mend.

use crate::base::repository::Repository;
use crate::base::text::{folded, strays};
use crate::base::{file, reach};
use crate::memory::doctor::code::changed;
use crate::memory::doctor::finding::{Check, Diagnosis, Finding};
use crate::memory::doctor::notes::LINES;
use crate::memory::redact::Redactor;
use crate::memory::shared::{CAP, SharedNotes, fault};
use crate::store::entry::Entry;
use crate::store::persistence::Note;
use jiff::civil::Date;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The findings, the worst first, and how many notes there are.
pub(super) fn check(here: &Repository, redactor: &Redactor, today: Date) -> (Vec<Finding>, usize) {
    let shared = SharedNotes::of(here);
    let mut found = Diagnosis::default();
    for file in &shared.broken {
        if let Some(what) = secret(&text_of(&file.path), redactor) {
            let mend = "take it out, and revoke it: git keeps what was committed";
            found.error(Check::Secret, &file.path, what, mend);
        }
        found.error(Check::Schema, &file.path, &*file.why, "correct it; until then nobody is shown it");
    }
    let mut titles: BTreeMap<String, OsString> = BTreeMap::new();
    for note in &shared.notes {
        check_note(note, here, redactor, today, &mut found);
        if let Some(other) = titles.insert(folded(&note.entry.meta().title), note.name()) {
            let what = format!("has the same title as \"{}\"", other.display());
            found.warning(Check::DuplicateId, &note.path, what, "merge the two, then git rm one");
        }
    }
    for (note, link) in shared.dead_links() {
        let what = format!("links to {link}, which is not shared");
        found.error(Check::Link, &note.path, what, "share that note, too, or remove the link");
    }
    found.findings.iter_mut().for_each(|finding| finding.clean(redactor));
    found.findings.sort();
    (found.findings, shared.notes.len())
}

fn check_note(note: &Note, here: &Repository, redactor: &Redactor, today: Date, to: &mut Diagnosis) {
    let (meta, path) = (note.entry.meta(), &note.path);
    // The note is without what its file claims, and what nobody sees: it is what is shown.
    let text = text_of(path);
    if let Some(why) = fault(note, redactor).or_else(|| secret(&text, redactor)) {
        to.error(Check::Danger, path, why, "take it out; until then nobody is shown the note");
    }
    if note.name().to_string_lossy() != meta.file_name() {
        let what = format!("its front matter asks for the name \"{}\"", meta.file_name());
        to.warning(Check::Name, path, what, "git mv it");
    }
    let lines = memchr::memchr_iter(b'\n', note.entry.body()).count();
    if lines > LINES {
        let what = format!("has {lines} lines; notes should have at most {LINES}");
        to.warning(Check::Oversized, path, what, "split it");
    }
    if let Some(until) = meta.until.filter(|_| meta.is_expired(today)) {
        let what = format!("held until {until}, which is over");
        to.warning(Check::Expired, path, what, "git rm it, or give it another day");
    }
    // Its anchors are among what is not taken from the file.
    let said = Entry::parse(text.clone().into_bytes()).ok();
    if let Some(what) = said.and_then(|entry| changed(entry.meta(), &here.top)) {
        let mend = "correct it; or, if it still holds, memory-update --confirm and memory-share it again";
        to.warning(Check::Code, path, what, mend);
    }
    if let Some((_, c)) = strays(&text).next() {
        let what = format!("has a character that nobody sees: U+{:04X}", u32::from(c));
        to.warning(Check::Hidden, path, what, "remove it");
    }
}

fn text_of(path: &Path) -> String {
    let is_file = |path: &Path| fs_err::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let read = move |path: &Path| is_file(path).then(|| file::read(path, CAP).ok())?;
    let bytes = reach::within(path, read).ok().flatten();
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

/// Everybody can read it, even where no program shows it.
fn secret(text: &str, redactor: &Redactor) -> Option<String> {
    let kind = redactor.kinds(text).into_keys().next();
    kind.map(|kind| format!("has a secret ({kind})"))
}
