//! The merge driver: git's own merge asks it about a file that both sides have changed under one name.

use crate::base::error::Result;
use crate::memory::sync::proposals::in_order;
use crate::memory::sync::{lines, note};
use crate::store::entry::Entry;
use crate::store::proposal::Proposal;

/// What becomes of a file.
pub struct MergedFile {
    pub bytes: Vec<u8>,
    /// The other text, where lines clashed.
    pub conflict: Option<Proposal>,
    /// Not all of it could be merged: memory-sync can, git cannot.
    pub is_unfinished: bool,
}

/// Merges the three versions of a file. An empty base means that there is none.
pub fn merge(base: Vec<u8>, ours: Vec<u8>, theirs: Vec<u8>) -> Result<MergedFile> {
    let finished = |bytes: Vec<u8>| MergedFile { bytes, conflict: None, is_unfinished: false };
    if let (Ok(one), Ok(two)) = (Entry::parse(ours.clone()), Entry::parse(theirs.clone())) {
        let base = Entry::parse(base).ok();
        let is_one_note = one.meta().id == two.meta().id
            && (base.is_some() || one.meta().created_at == two.meta().created_at);
        if !is_one_note {
            return Ok(MergedFile { is_unfinished: true, ..finished(ours) });
        }
        let merged = note::merge(base.as_ref(), &one, &two);
        return Ok(MergedFile {
            bytes: merged.entry.bytes().to_vec(),
            conflict: merged.conflict,
            is_unfinished: merged.unmerged.is_some(),
        });
    }
    if let (Ok(one), Ok(two)) = (Proposal::parse(&ours), Proposal::parse(&theirs))
        && one.is_the_same_as(&two)
    {
        let (first, second) = in_order(one, two);
        return second.merged_into(&[first]).bytes().map(finished);
    }
    let merged = lines::merge(&base, &ours, &theirs);
    Ok(match merged.other {
        None => finished(merged.text),
        Some(_) => MergedFile { is_unfinished: true, ..finished(ours) },
    })
}
