//! What can be mended without a risk: names, leftovers, a status out of step. A file that does not parse is never
//! touched, and neither is one that a link leads to.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::memory::doctor::finding::{Check, Finding};
use crate::memory::doctor::leftovers;
use crate::memory::doctor::notes::{Fact, round};
use crate::memory::doctor::patient::Patient;
use crate::store::entry::{Status, Tier};
use crate::store::persistence::{Note, Persistence};
use crate::store::topics::{StoreLock, Topics, read};
use std::path::Path;

/// The lock is held for so many notes at a time: others wait for it.
const AT_ONCE: usize = 50;

#[derive(Default)]
pub(crate) struct Mended {
    /// What was done, each marked as fixed.
    pub(crate) findings: Vec<Finding>,
    /// The notes that are other ones now.
    pub(crate) notes: Vec<Note>,
    /// What stopped it half-way.
    pub(crate) error: Option<Error>,
}

/// Where there is nothing to mend, nothing is touched and no store made.
pub(crate) fn mend(patient: &Patient) -> Mended {
    let mut mended = Mended::default();
    if patient.config.storage.foreign {
        return mended;
    }
    if let Err(error) = mend_all(patient, &mut mended) {
        mended.error = Some(error);
    }
    for finding in &mut mended.findings {
        finding.fixed = true;
        finding.clean(&patient.redactor);
    }
    mended
}

fn mend_all(patient: &Patient, mended: &mut Mended) -> Result<()> {
    let topics = Topics::at(patient.root);
    mended.findings.extend(leftovers::sweep(patient.root));
    let round = round(patient);
    let faulty: Vec<&Fact> =
        round.facts.iter().filter(|fact| fact.right_name.is_some() || fact.is_out_of_step).collect();
    for some in faulty.chunks(AT_ONCE) {
        let lock = topics.lock()?;
        for fact in some {
            one(fact, &topics, &lock, mended)?;
        }
    }
    Ok(())
}

/// The note is read again: somebody may have mended it, or moved it, since it was looked at.
fn one(fact: &Fact, topics: &Topics, lock: &StoreLock, mended: &mut Mended) -> Result<()> {
    if fact.path.is_symlink() {
        return Ok(());
    }
    let Ok(mut note) = read(fact.place, &fact.path) else { return Ok(()) };
    let meta = note.entry.meta();
    let is_changed = meta.id != fact.id;
    let mut is_mended = false;
    let out_of_step = (meta.status == Status::Promoted) != (meta.tier == Tier::Hot);
    if !is_changed && fact.is_out_of_step && out_of_step {
        let status = if meta.tier == Tier::Hot { Status::Promoted } else { Status::Consolidated };
        let what = format!("was {} and {}", meta.status, meta.tier);
        let mut entry = note.entry.clone();
        // What cannot be changed without touching other lines stays for an editor.
        if entry.update(|meta| meta.status = status).is_ok() {
            note = topics.replace(lock, &note, entry)?;
            let now = format!("its status is {status} now");
            mended.findings.push(Finding::warning(Check::Promoted, &fact.shown, what, &now));
            is_mended = true;
        }
    }
    let name = note.entry.meta().file_name();
    let path = note.path.with_file_name(&name);
    if !is_changed && fact.right_name.is_some() && path != note.path && is_free(&path, &note.path) {
        file::rename(&note.path, &path)?;
        let now = match fact.shown == fact.path {
            true => format!("renamed to \"{name}\""),
            false => "renamed".to_owned(),
        };
        let what = "its front matter asks for another name";
        mended.findings.push(Finding::warning(Check::Name, &fact.shown, what, &now));
        note.path = path;
        is_mended = true;
    }
    if is_mended {
        mended.notes.push(note);
    }
    Ok(())
}

/// Does nothing bear this name, or only the file itself, where the file system does not tell case?
fn is_free(new: &Path, old: &Path) -> bool {
    new.symlink_metadata().is_err() || is_same_file(new, old)
}

#[cfg(unix)]
fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| path.symlink_metadata().map(|found| (found.dev(), found.ino(), found.nlink()));
    // Two names of a file with several are two files to whoever edits one.
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other && one.2 == 1)
}

#[cfg(not(unix))]
fn is_same_file(_one: &Path, _other: &Path) -> bool {
    false
}
