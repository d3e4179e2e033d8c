//! The ids of the notes that were deleted for good, one a line, in the file `removed`. It goes where the notes go, so other
//! machines know that their absence is wanted. Where a person asked for it, the line says `purged` after the id.

use crate::base::error::Result;
use crate::base::file;
use crate::store::entry::EntryId;
use crate::store::place::Root;
use std::collections::BTreeSet;

/// Below the store.
pub const PATH: &str = "removed";
/// The largest such file that is read, in bytes: 700,000 notes.
const CAP: u64 = 8 << 20;

/// Follows the id of a note that a person deleted for good: no edit of another machine brings it back.
const PURGED: &str = "purged";

/// The ids in such a file that a person deleted for good.
pub fn purged(bytes: &[u8]) -> BTreeSet<EntryId> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter_map(|line| line.trim().strip_suffix(PURGED));
    lines.filter_map(|id| EntryId::whole(id.trim())).collect()
}

/// The ids in such a file.
pub fn ids(bytes: &[u8]) -> BTreeSet<EntryId> {
    String::from_utf8_lossy(bytes).split_whitespace().filter_map(EntryId::whole).collect()
}

/// Those of this store.
pub fn of(root: &Root) -> Result<BTreeSet<EntryId>> {
    Ok(file::if_exists(file::read(&root.path().join(PATH), CAP))?
        .map(|bytes| ids(&bytes))
        .unwrap_or_default())
}

/// Adds ids. The caller holds the store's lock.
pub fn add<'a>(root: &Root, new: impl Iterator<Item = &'a EntryId>) -> Result<()> {
    let known = of(root)?;
    append(root, &new.filter(|id| !known.contains(id)).map(|id| format!("{id}\n")).collect::<String>())
}

/// Adds the id of a note that a person deletes for good.
pub fn purge(root: &Root, id: &EntryId) -> Result<()> {
    append(root, &format!("{id} {PURGED}\n"))
}

fn append(root: &Root, lines: &str) -> Result<()> {
    match lines.is_empty() {
        true => Ok(()),
        false => Ok(file::append_durably(&root.path().join(PATH), lines.as_bytes(), 0o600)?),
    }
}
