//! Fixes what can be fixed without risk: file names, leftovers, a status that does not match the tier. A file that
//! does not parse is left alone, and so is a symlink.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::doctor::finding::{Check, CheckContext, Diagnosis};
use crate::memory::doctor::notes::{self, NoteFacts, is_out_of_step};
use crate::memory::doctor::{history, store};
use crate::store::change::Change;
use crate::store::entry::{Status, Tier};
use crate::store::persistence::Note;
use crate::store::topics::{Topics, read};
use std::ffi::OsStr;
use std::path::Path;

/// How many notes are fixed at once: other programs wait for it.
const PER_CHANGE: usize = 50;

#[derive(Default)]
pub struct Fixes {
    /// What was done, each marked as fixed.
    pub done: Diagnosis,
    /// The notes that were changed.
    pub notes: Vec<Note>,
    /// Why it stopped before the end.
    pub error: Option<Error>,
}

/// If there is nothing to fix, no file is touched and no store is created.
pub fn fix(cx: &CheckContext) -> Fixes {
    let mut fixes = Fixes::default();
    store::sweep(cx.root, &mut fixes.done);
    // The history first: the notes that are fixed are committed.
    let removed = history::remove_locks(cx, &mut fixes.done);
    let notes = fix_notes(cx, &mut fixes);
    fixes.error = removed.and(notes).err();
    for finding in &mut fixes.done.findings {
        finding.fixed = true;
        finding.clean(&cx.redactor);
    }
    fixes
}

fn fix_notes(cx: &CheckContext, fixes: &mut Fixes) -> Result<()> {
    let topics = Topics::at(cx.root);
    topics.complete()?;
    let checked = notes::check(cx);
    let faulty: Vec<&NoteFacts> =
        checked.notes.iter().filter(|note| note.right_name().is_some() || note.is_out_of_step()).collect();
    for some in faulty.chunks(PER_CHANGE) {
        let change = Change::of(&topics)?;
        let mut fixed = Fixes::default();
        for facts in some {
            fix_note(facts, &change, &mut fixed)?;
        }
        change.write()?;
        fixes.done.append(fixed.done);
        fixes.notes.append(&mut fixed.notes);
    }
    Ok(())
}

/// Reads the note again under the lock: another process may have changed or moved it since it was checked.
fn fix_note(facts: &NoteFacts, change: &Change<Topics>, fixes: &mut Fixes) -> Result<()> {
    if facts.path.is_symlink() {
        return Ok(());
    }
    let Ok(mut note) = read(facts.place, &facts.path) else { return Ok(()) };
    let meta = note.entry.meta();
    if meta.id != facts.meta.id {
        return Ok(());
    }
    let mut is_fixed = false;
    if facts.is_out_of_step() && is_out_of_step(meta) {
        let status = if meta.tier == Tier::Hot { Status::Promoted } else { Status::Consolidated };
        let what = format!("was {} and {}", meta.status, meta.tier);
        let mut entry = note.entry.clone();
        // If that would change other lines too, it is left for an editor.
        if entry.update(|meta| meta.status = status).is_ok() {
            note = change.put(Some(&note), note.place, &note.name(), entry)?;
            let done = format!("its status is now {status}");
            fixes.done.warning(Check::Promoted, &facts.shown, what, done);
            is_fixed = true;
        }
    }
    let name = note.entry.meta().file_name();
    let path = note.path.with_file_name(&name);
    if facts.right_name().is_some() && path != note.path && is_free(&path, &note.path) {
        note = change.put(Some(&note), note.place, OsStr::new(&name), note.entry.clone())?;
        let done = match facts.shown == facts.path {
            true => format!("renamed to \"{name}\""),
            false => "renamed".to_owned(),
        };
        let what = "its name did not match its front matter";
        fixes.done.warning(Check::Name, &facts.shown, what, done);
        is_fixed = true;
    }
    if is_fixed {
        fixes.notes.push(note);
    }
    Ok(())
}

/// The new name is free, or that of the file itself on a file system that ignores case.
fn is_free(new: &Path, old: &Path) -> bool {
    new.symlink_metadata().is_err() || file::is_same(new, old)
}
