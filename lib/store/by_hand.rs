//! Notes that a person wrote by hand, with everything but an id.

use crate::base::error::Result;
use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::{Persistence, Place};
use crate::store::revision::{Revision, Version};
use crate::store::topics::Topics;
use std::path::Path;

/// Gives each an id; all its other lines stay as they are. A file whose name ends with an id has lost its own: it stays, as a
/// copy of another file does.
///
/// The id is made from the title and the name: two machines that have the file from a cloud come to the same, and so does a
/// file that an editor writes back as it was before.
pub fn give_ids(notes: &Topics) -> Result<Vec<EntryId>> {
    let mut names = notes.names(Place::Topics.dir(), ".md")?;
    names.retain(|name| {
        let name = name.to_string_lossy();
        EntryId::at_end_of(&name).is_none() && original(&name).is_none()
    });
    let read = |path: &Path| notes.bytes(path).ok().flatten();
    let lacks_id = |bytes: &Vec<u8>| Entry::with_new_id(bytes, "", |_| false).is_some();
    names.retain(|name| read(&Place::Topics.path(name)).is_some_and(|bytes| lacks_id(&bytes)));
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let lock = notes.lock()?;
    let mut taken = notes.ids()?;
    taken.extend(notes.removed()?);
    let (mut given, mut revisions) = (Vec::new(), Vec::new());
    for name in names {
        let path = Place::Topics.path(&name);
        let Some(bytes) = read(&path) else { continue };
        let Some(entry) = Entry::with_new_id(&bytes, &name.to_string_lossy(), |id| taken.contains(id)) else {
            continue;
        };
        taken.insert(entry.meta().id.clone());
        given.push(entry.meta().id.clone());
        let after = Some(Version::new(Place::Topics, &name, &entry));
        revisions.push(Revision { before: Some(Version::at(&path, bytes)), after });
    }
    notes.write(&lock, &revisions)?;
    Ok(given)
}

/// The name of the file that this is a copy of, by its name: `x (Mara's conflicted copy 2026-03-05).md` or
/// `x.sync-conflict-20260305-101112-ABCDEFG.md`. Dropbox and Syncthing make one because two machines changed a file at once.
pub fn original(name: &str) -> Option<String> {
    if EntryId::at_end_of(name).is_some() {
        return None;
    }
    let stem = name.strip_suffix(".md")?;
    let end = match stem.find(".sync-conflict-") {
        Some(end) => end,
        None => stem[..stem.find("conflicted copy")?].rfind(" (")?,
    };
    Some(format!("{}.md", &stem[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_known_by_their_names() {
        let note = "port -- id__AAAAAA";
        for mark in [
            " (conflicted copy 2026-03-05)",
            " (Mara's conflicted copy 2026-03-05)",
            " (Mara's conflicted copy 2026-03-05 (1))",
            ".sync-conflict-20260305-101112-ABCDEFG",
            ".sync-conflict-20260305-101112-ABCDEFG.sync-conflict-20260306-101112-ABCDEFG",
        ] {
            assert_eq!(original(&format!("{note}{mark}.md")), Some(format!("{note}.md")), "{mark}");
        }
        for name in ["port (conflicted copy) -- id__AAAAAA.md", "port.md", "conflicted copy.md", "port~"] {
            assert_eq!(original(name), None, "{name}");
        }
    }
}
