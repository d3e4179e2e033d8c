//! Another text for a note: what it said before stays, as a note of its own in the archive.

use crate::base::error::{Error, Result};
use crate::store::entry::{Entry, EntryId, Meta};
use crate::store::persistence::{Note, Persistence, Place};
use std::ffi::OsStr;

/// What `old` says, as a note of its own that its successor has replaced. Its counters stay with the successor.
///
/// # Errors
/// It could not be read again.
pub fn old_text(old: &Entry, id: EntryId) -> Result<Entry> {
    let meta = Meta {
        id,
        pinned: false,
        used: 0,
        last_used: None,
        // A link to one of them leads to the note itself.
        aliases: Vec::new(),
        superseded_by: Some(old.meta().id.clone()),
        ..old.meta().clone()
    };
    let entry = Entry::new(meta, old.body());
    entry.fits()?;
    Ok(entry)
}

/// Puts `new` in the place of what `note` says, and the old text into the archive. Returns the note as it is now, and the
/// one in the archive. `at` (Unix time in milliseconds) tells this change from other ones of the same note: if the same
/// is done again, after a crash in between, nothing is there twice.
///
/// # Errors
/// The store cannot be read or written. Then the note is as it was.
pub fn supersede<P: Persistence>(
    notes: &P,
    lock: &P::Lock,
    note: &Note,
    new: Entry,
    at: i64,
) -> Result<(Note, Note)> {
    // Not the title alone: a new note of the same plan may bear it now, and is made at the same time.
    let title = format!("{}\0{}", note.entry.meta().title, note.entry.meta().id);
    let taken = notes.ids()?;
    let is_this = |id: &EntryId| {
        let there = notes.own(id)?;
        Ok::<_, Error>(there.is_some_and(|there| {
            there.place == Place::Archive
                && there.entry.meta().superseded_by.as_ref() == Some(&note.entry.meta().id)
                && there.entry.body() == note.entry.body()
        }))
    };
    let id = EntryId::try_make(&title, at, |id| Ok::<_, Error>(taken.contains(id) && !is_this(id)?))?;
    let unwritten = |why: Error| why.context(format_args!("\"{}\" stays as it is", note.path.display()));
    // If the id is free, `own` would read every note to find that out.
    let there = if taken.contains(&id) { notes.own(&id)? } else { None };
    let archived = match there {
        Some(there) => there,
        None => {
            let old = old_text(&note.entry, id).map_err(unwritten)?;
            let name = old.meta().file_name();
            notes.put(lock, None, Place::Archive, OsStr::new(&name), old).map_err(unwritten)?
        }
    };
    Ok((notes.replace(lock, note, new)?, archived))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::place::Root;
    use crate::store::topics::Topics;

    #[test]
    fn the_old_text_is_kept_once_and_leads_to_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let topics = Topics::at(&Root::at(dir.path()));
        let lock = topics.lock().unwrap();
        let text = "---\nid: id__AAAAAA\ntitle: Port\npinned: true\nused: 7\nmine: x\naliases: [id__BBBBBB]\n---\n\n4310\n";
        let note = topics.add(&lock, Entry::parse(text.into()).unwrap()).unwrap();
        let mut new = note.entry.clone();
        new.set_body(b"4320\n");
        new.update(|meta| meta.title = "Ports".to_owned()).unwrap();
        let (now, old) = supersede(&topics, &lock, &note, new.clone(), 5).unwrap();
        assert_eq!(now.entry.bytes(), text.replace("4310", "4320").replace("Port\n", "Ports\n").as_bytes());
        let meta = old.entry.meta();
        assert_eq!(
            (meta.title.as_str(), meta.pinned, meta.used, &meta.aliases[..]),
            ("Port", false, 0, &[][..])
        );
        assert_eq!((old.place, old.entry.body()), (Place::Archive, &b"4310\n"[..]));
        assert_eq!(topics.find(&meta.id).unwrap().entry, new, "its id leads to the successor");
        assert_ne!(
            meta.id,
            EntryId::make("Port", 5, |_| false),
            "a new note with that title may have this one"
        );

        // A crash between the two: the note has its old text, the archive has it too.
        let before = topics.replace(&lock, &now, note.entry.clone()).unwrap();
        let (_, again) = supersede(&topics, &lock, &before, new.clone(), 5).unwrap();
        assert_eq!(again.path, old.path);
        // Another change is another old text.
        let now = topics.find(&meta.id).unwrap();
        new.set_body(b"4330\n");
        let (_, next) = supersede(&topics, &lock, &now, new, 5).unwrap();
        assert_ne!(next.entry.meta().id, old.entry.meta().id);
        assert_eq!(std::fs::read_dir(dir.path().join("archive")).unwrap().count(), 2);
    }
}
