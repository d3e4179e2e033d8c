//! What is deleted for good must not live on in what a defrag keeps.

use crate::base::error::Result;
use crate::base::file;
use crate::memory::defrag::apply::{Applied, applied, applied_name};
use crate::memory::pipeline::saved::Progress;
use crate::store::batch::{Batch, Batches};
use crate::store::entry::EntryId;
use crate::store::place::Root;
use std::path::PathBuf;

/// What stands in the place of a title.
const GONE: &str = "(deleted)";

/// Takes these notes out of the last defrag, which cannot bring them back then. The directories of batches that are
/// not at their end, and name one of them: whoever carries them on still needs what is in them.
pub fn forget(root: &Root, ids: &[EntryId]) -> Result<Vec<PathBuf>> {
    let mut holding = Vec::new();
    for batch in Batches::of_defrag(root).all()? {
        match Progress::of(&batch) {
            Ok(Some(progress)) if progress.is_over => forget_in(&batch, ids)?,
            _ => holding.extend(may_name_one(&batch, ids).then_some(batch.dir)),
        }
    }
    for batch in Batches::of_queue(root).all()? {
        holding.extend(may_name_one(&batch, ids).then_some(batch.dir));
    }
    Ok(holding)
}

fn forget_in(batch: &Batch, ids: &[EntryId]) -> Result<()> {
    if !names_one(batch, ids)? {
        return Ok(());
    }
    for (part, mut one) in applied(batch)?.into_iter().enumerate() {
        if ids.iter().filter(|id| one.forget(id)).count() > 0 {
            batch.write_json(&applied_name(part), &one)?;
        }
    }
    // Prompts and replies are of no use any more.
    for name in
        names(batch)?.into_iter().filter(|name| name.starts_with("prompt-") || name.starts_with("reply-"))
    {
        file::remove(&batch.file(&name))?;
    }
    Ok(())
}

fn names(batch: &Batch) -> Result<Vec<String>> {
    let entries = fs_err::read_dir(&batch.dir)?;
    let files = entries.filter_map(|entry| entry.ok().filter(|entry| entry.path().is_file()));
    Ok(files.filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// Does a file of the batch name one of the notes?
fn names_one(batch: &Batch, ids: &[EntryId]) -> Result<bool> {
    for name in names(batch)? {
        let bytes = batch.read(&name)?;
        if ids.iter().any(|id| memchr::memmem::find(&bytes, id.as_str().as_bytes()).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same of a batch that is only told about: what cannot be read may, unless its run has ended meanwhile.
fn may_name_one(batch: &Batch, ids: &[EntryId]) -> bool {
    names_one(batch, ids).unwrap_or_else(|_| batch.dir.exists())
}

impl Applied {
    /// Takes all that a note said out of what was done; `false` if there was nothing.
    fn forget(&mut self, id: &EntryId) -> bool {
        let mut is_other = false;
        for planned in &mut self.made {
            let mut looks = planned.from.iter_mut().chain(&mut planned.into);
            let is_in = planned.revisions.iter().any(|revision| revision.id().as_ref() == Some(id));
            if !is_in && !looks.any(|look| look.id == *id) {
                continue;
            }
            is_other = true;
            // It cannot be taken back in part: what another note took over would be lost, or come back with it.
            planned.revisions.clear();
            for look in planned.from.iter_mut().chain(&mut planned.into).filter(|look| look.id == *id) {
                GONE.clone_into(&mut look.title);
                look.tags.clear();
            }
            planned.reason.clear();
            planned.lost.clear();
            planned.gone.clear();
        }
        if is_other {
            self.deleted.push(id.clone());
        }
        is_other
    }
}
