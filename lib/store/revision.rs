//! A note before and after a change, byte for byte: so that the change can be made twice with the same result, and
//! be taken back.
//!
//! Reads may be counted at any time. Counters are no reason to call a note changed, and none is lost.

use crate::base::error::{Error, Result};
use crate::store::entry::{Entry, EntryId};
use crate::store::persistence::{Note, Persistence, Place};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// A note's file at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    pub place: Place,
    /// The file's name.
    pub name: String,
    text: Text,
}

/// A file's bytes, in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Utf8(String),
    Bytes(Vec<u8>),
}

/// What becomes of one note. Without a `before` it is new, without an `after` it goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    pub id: EntryId,
    pub before: Option<Version>,
    pub after: Option<Version>,
}

/// How a note's file stands against a revision of it.
#[derive(Debug)]
pub(crate) enum Standing {
    /// As before, reads aside; it may have its new name already.
    Before(Option<Note>),
    /// The revision is made.
    After(Option<Note>),
    /// Somebody has changed it since; this says how.
    Other(String),
}

/// Reads that were counted since.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Reads {
    pub(crate) more: u64,
    pub(crate) last: Option<Timestamp>,
}

impl Version {
    pub(crate) fn new(place: Place, name: &str, entry: &Entry) -> Version {
        let text = match String::from_utf8(entry.bytes().to_vec()) {
            Ok(text) => Text::Utf8(text),
            Err(other) => Text::Bytes(other.into_bytes()),
        };
        Version { place, name: name.to_owned(), text }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.text {
            Text::Utf8(text) => text.as_bytes(),
            Text::Bytes(bytes) => bytes,
        }
    }

    pub(crate) fn entry(&self) -> Result<Entry> {
        Entry::parse(self.bytes().to_vec())
            .map_err(|why| Error::io(format!("the plan's \"{}\" is no note: {why}", self.name)))
    }
}

impl Revision {
    /// From a note's first `before` to its last `after`.
    pub(crate) fn then(&mut self, next: &Revision) {
        self.after.clone_from(&next.after);
    }

    pub(crate) fn reversed(&self) -> Revision {
        Revision { id: self.id.clone(), before: self.after.clone(), after: self.before.clone() }
    }

    pub(crate) fn standing<P: Persistence>(&self, notes: &P) -> Result<Standing> {
        let standing = self.found(notes)?;
        // A link that does not name its target's whole path leads nowhere from another directory.
        if let (Standing::Before(Some(note)), Some(after)) = (&standing, &self.after)
            && note.place != after.place
            && note.path.is_symlink()
        {
            return Ok(Standing::Other("it is a symlink, which is moved by hand alone".to_owned()));
        }
        // Where the new name is taken, nothing can be made.
        if let (Standing::Before(note), Some(after)) = (&standing, &self.after) {
            let name = OsStr::new(&after.name);
            let is_there = |note: &Note| note.place == after.place && note.name() == name;
            if !note.as_ref().is_some_and(is_there) && notes.is_taken(after.place, name) {
                return Ok(Standing::Other(format!("\"{}\" is in the way", after.name)));
            }
        }
        Ok(standing)
    }

    fn found<P: Persistence>(&self, notes: &P) -> Result<Standing> {
        let (before, after) = (self.before.as_ref(), self.after.as_ref());
        for version in [after, before].into_iter().flatten() {
            let note = match notes.read(version.place, OsStr::new(&version.name)) {
                Ok(Some(note)) if note.entry.meta().id == self.id => note,
                Ok(_) => continue,
                Err(broken) => return Ok(Standing::Other(broken.why)),
            };
            let bytes = note.entry.without_counters();
            let is = |other: &Version| other.entry().map(|entry| entry.without_counters() == bytes);
            let is_there = |other: &Version| other.place == version.place && other.name == version.name;
            if let Some(after) = after.filter(|after| is_there(after))
                && is(after)?
            {
                return Ok(Standing::After(Some(note)));
            }
            if let Some(before) = before
                && is(before)?
            {
                return Ok(Standing::Before(Some(note)));
            }
            return Ok(Standing::Other("it has been changed since".to_owned()));
        }
        let moved = |how: &str| Standing::Other(format!("it has been {how} since"));
        Ok(match (before, after) {
            (Some(_), Some(_)) => moved("moved, renamed or removed"),
            // A note that is new, or that goes, is nowhere; under another name it is somebody's by now.
            _ if notes.named(&self.id)?.is_some() => moved("moved or renamed"),
            (None, _) => Standing::Before(None),
            (Some(_), None) => Standing::After(None),
        })
    }

    /// How often the note was read since it was as before.
    pub(crate) fn reads(&self, note: Option<&Note>) -> Result<Reads> {
        let (Some(before), Some(note)) = (&self.before, note) else { return Ok(Reads::default()) };
        let (old, new) = (before.entry()?, note.entry.meta());
        let more = new.used.saturating_sub(old.meta().used);
        let is_read = more > 0 || new.last_used != old.meta().last_used;
        Ok(Reads { more, last: new.last_used.filter(|_| is_read) })
    }

    /// Makes it, of a note that stands as before; `reads` were counted since.
    pub(crate) fn make<P: Persistence>(
        &self,
        notes: &P,
        lock: &P::Lock,
        note: Option<&Note>,
        reads: Reads,
    ) -> Result<()> {
        let Some(after) = &self.after else {
            return note.map_or(Ok(()), |note| notes.purge(lock, note));
        };
        let mut entry = after.entry()?;
        if reads != Reads::default() {
            let counted = entry.update(|meta| {
                meta.used = meta.used.saturating_add(reads.more);
                meta.last_used = meta.last_used.max(reads.last);
            });
            counted.map_err(|why| Error::io(format!("\"{}\": {why}", after.name)))?;
        }
        notes.put(lock, note, after.place, OsStr::new(&after.name), entry).map(drop)
    }
}
