//! The ids of the notes that were deleted for good, one a line, in the file `removed`. It goes where the notes go, so other
//! machines know that their absence is wanted.

use crate::base::error::Result;
use crate::base::file;
use crate::store::entry::EntryId;
use crate::store::place::Root;
use std::collections::BTreeSet;

/// Below the store.
pub const PATH: &str = "removed";
/// The largest such file that is read, in bytes: 700,000 notes.
const CAP: u64 = 8 << 20;

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
    let lines: String = new.filter(|id| !known.contains(id)).map(|id| format!("{id}\n")).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => Ok(file::append_durably(&root.path().join(PATH), lines.as_bytes(), 0o600)?),
    }
}
