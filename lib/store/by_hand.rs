//! Notes that a person wrote by hand, with everything but an id.

use crate::base::error::Result;
use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::{Persistence, Place};
use crate::store::revision::{Revision, Version};
use crate::store::topics::Topics;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Gives each an id; all its other lines stay as they are. A file whose name ends with an id has lost its own: it stays.
pub fn give_ids(notes: &Topics) -> Result<Vec<EntryId>> {
    let mut names = notes.names(Place::Topics.dir(), ".md")?;
    names.retain(|name| EntryId::at_end_of(&name.to_string_lossy()).is_none());
    let read = |path: &Path| notes.bytes(path).ok().flatten();
    let lacks_id = |bytes: &Vec<u8>| Entry::with_new_id(bytes, 0, |_| false).is_some();
    names.retain(|name| read(&Place::Topics.path(name)).is_some_and(|bytes| lacks_id(&bytes)));
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let lock = notes.lock()?;
    let mut taken = notes.ids()?;
    let (mut given, mut revisions) = (Vec::new(), Vec::new());
    for name in names {
        let path = Place::Topics.path(&name);
        let Some(bytes) = read(&path) else { continue };
        // Two machines that have the file from a cloud come to the same id.
        let changed =
            notes.shown(&path).metadata()?.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = i64::try_from(changed.as_millis()).unwrap_or_default();
        let Some(entry) = Entry::with_new_id(&bytes, at, |id| taken.contains(id)) else { continue };
        taken.insert(entry.meta().id.clone());
        given.push(entry.meta().id.clone());
        let after = Some(Version::new(Place::Topics, &name, &entry));
        revisions.push(Revision { before: Some(Version::at(&path, bytes)), after });
    }
    notes.write(&lock, &revisions)?;
    Ok(given)
}
