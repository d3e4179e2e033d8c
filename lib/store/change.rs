//! The one way in which notes change. A change is a list of [`Revision`]s: it is planned against the notes as they are,
//! looks like the notes as they will be, and is written as a whole ([`Persistence::write`]). Reversed it takes itself back.
//!
//! Reads may be counted at any time. Counters are no reason to call a note changed, and none is lost.

use crate::base::error::{Error, Result};
use crate::base::file;
use crate::store::entry::{Entry, EntryId, Meta};
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::proposal::{Proposal, ProposalId};
use crate::store::revision::{Revision, Version};
use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The notes as they are once a change is made. Of a dry run it is never made: what the run writes is there for the rest of
/// it, and nowhere else. What any other run writes goes to the store at once.
pub struct Preview<'a, P: Persistence> {
    notes: &'a P,
    revisions: RefCell<Vec<Revision>>,
    is_dry: bool,
}

impl<'a, P: Persistence> Preview<'a, P> {
    pub fn over(notes: &'a P, is_dry: bool) -> Preview<'a, P> {
        Preview { notes, revisions: RefCell::default(), is_dry }
    }

    fn add(&self, next: &Revision) {
        let mut all = self.revisions.borrow_mut();
        let known = next.before.as_ref().and_then(|before| {
            all.iter_mut().find(|known| known.after.as_ref().is_some_and(|now| now.path() == before.path()))
        });
        match known {
            Some(known) => known.after.clone_from(&next.after),
            None => all.push(next.clone()),
        }
        all.retain(|revision| revision.before != revision.after);
    }

    /// What the change makes of a path; `None`: it leaves it as it is.
    fn changed(&self, path: &Path) -> Option<Option<Version>> {
        let all = self.revisions.borrow();
        let is_there = |version: &&Version| version.path() == path;
        let now = all.iter().filter_map(|revision| revision.after.as_ref()).find(is_there);
        let is_known = all.iter().flat_map(Revision::versions).any(|version| is_there(&version));
        is_known.then(|| now.cloned())
    }
}

impl<P: Persistence> Persistence for Preview<'_, P> {
    /// `None` in a dry run: nobody else sees the change.
    type Lock = Option<P::Lock>;

    fn lock(&self) -> Result<Self::Lock> {
        if self.is_dry { Ok(None) } else { self.notes.lock().map(Some) }
    }

    fn names(&self, dir: &str, end: &str) -> Result<Vec<OsString>> {
        let mut names = self.notes.names(dir, end)?;
        let name = |version: &Version| {
            let path = version.path();
            let name = path.file_name()?.to_owned();
            (path.parent() == Some(Path::new(dir))).then_some(name)
        };
        let all = self.revisions.borrow();
        let gone: BTreeSet<OsString> =
            all.iter().filter_map(|revision| revision.before.as_ref()).filter_map(name).collect();
        names.retain(|known| !gone.contains(known));
        let new = all.iter().filter_map(|revision| revision.after.as_ref()).filter_map(name);
        names.extend(new.filter(|name| name.as_encoded_bytes().ends_with(end.as_bytes())));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Broken> {
        match self.changed(path) {
            Some(version) => Ok(version.map(|version| version.bytes().to_vec())),
            None => self.notes.bytes(path),
        }
    }

    fn write(&self, lock: &Self::Lock, change: &[Revision]) -> Result<()> {
        match lock {
            Some(lock) => self.notes.write(lock, change)?,
            None => change.iter().for_each(|revision| self.add(revision)),
        }
        Ok(())
    }

    fn is_there(&self) -> bool {
        self.notes.is_there()
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.notes.shown(path)
    }

    /// Notes of the store first: it may read them in its own way.
    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        let changed: Vec<Revision> = self.revisions.borrow().clone();
        let hidden: BTreeSet<PathBuf> =
            changed.iter().flat_map(Revision::versions).map(Version::path).collect();
        let is_hidden = |note: &Note| !hidden.is_empty() && hidden.contains(&note.place.path(&note.name()));
        let scan = self.notes.scan(places, |note| (!is_hidden(&note)).then(|| each(note)))?;
        let mut found: Vec<T> = scan.found.into_iter().flatten().collect();
        for now in changed.iter().filter_map(|revision| revision.after.as_ref()) {
            if let Some(place) = now.place().filter(|place| places.contains(place)) {
                let path = self.shown(&now.path());
                found.push(each(Note { place, path, entry: now.entry()? }));
            }
        }
        Ok(Scan { found, broken: scan.broken })
    }
}

/// A change that is being planned. As long as it is, nobody else changes anything.
pub struct Change<'a, P: Persistence> {
    /// The notes as they will be.
    pub notes: Preview<'a, P>,
    /// Once they were asked for: every id in use, and those that this change has given.
    ids: RefCell<Option<BTreeSet<EntryId>>>,
    lock: P::Lock,
}

impl<'a, P: Persistence> Change<'a, P> {
    /// # Errors
    /// The store cannot be locked.
    pub fn of(notes: &'a P) -> Result<Change<'a, P>> {
        Ok(Change { lock: notes.lock()?, notes: Preview::over(notes, true), ids: RefCell::default() })
    }

    /// Every id that a note of this change must not get. The notes are read for it once.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn ids(&self) -> Result<Ref<'_, BTreeSet<EntryId>>> {
        if self.ids.borrow().is_none() {
            let ids = self.notes.ids()?;
            self.ids.replace(Some(ids));
        }
        Ref::filter_map(self.ids.borrow(), Option::as_ref).map_err(|_| Error::io("the ids are not read"))
    }

    /// Makes it.
    ///
    /// # Errors
    /// It could not be made: then nothing is changed.
    pub fn write(self) -> Result<()> {
        self.notes.notes.write(&self.lock, &self.notes.revisions.into_inner())
    }

    /// Keeps `entry` under this name, in the place of `old` if there is one.
    ///
    /// # Errors
    /// `Conflict`: something else is kept under this name.
    pub fn put(&self, old: Option<&Note>, place: Place, name: &OsStr, entry: Entry) -> Result<Note> {
        let path = place.path(name);
        let shown = self.notes.shown(&path);
        // On a file system that ignores case, a note whose name changes only in case is in its own way.
        let is_own =
            old.is_some_and(|old| old.place.path(&old.name()) == path || file::is_same(&old.path, &shown));
        if !is_own && self.notes.is_taken(&path) {
            return Err(Error::conflict(format!("\"{}\" exists already", shown.display())));
        }
        if let Some(ids) = self.ids.borrow_mut().as_mut() {
            ids.insert(entry.meta().id.clone());
        }
        let after = Some(Version::new(place, name, &entry));
        self.notes.add(&Revision { before: old.map(Note::version), after });
        Ok(Note { place, path: shown, entry })
    }

    /// A new note.
    ///
    /// # Errors
    /// `Conflict`: its name is taken.
    pub fn add(&self, entry: Entry) -> Result<Note> {
        let name = OsString::from(entry.meta().file_name());
        self.put(None, Place::Topics, &name, entry)
    }

    /// Puts `entry` in the place of what `note` holds; its file's name follows a new title or new tags.
    ///
    /// # Errors
    /// As of reading the store.
    pub fn replace(&self, note: &Note, entry: Entry) -> Result<Note> {
        // A name that somebody gave the file by hand stays until what it is made of changes.
        let (old, new) = (note.entry.meta().file_name(), OsString::from(entry.meta().file_name()));
        let name = match *old == new || self.notes.is_taken(&note.place.path(&new)) {
            true => note.name(),
            false => new,
        };
        self.put(Some(note), note.place, &name, entry)
    }

    /// Puts `new` in the place of what `note` says, and the old text into the archive. `at` (Unix time in milliseconds) tells
    /// this change from other ones of the same note. Returns the note as it is then.
    ///
    /// # Errors
    /// The store cannot be read; or the old text could not be read again.
    pub fn supersede(&self, note: &Note, new: Entry, at: i64) -> Result<Note> {
        // Not the title alone: a new note of the same plan may bear it now, and is made at the same time.
        let title = format!("{}\0{}", note.entry.meta().title, note.entry.meta().id);
        let id = EntryId::make(&title, at, {
            let taken = self.ids()?;
            move |id| taken.contains(id)
        });
        let old = old_text(&note.entry, id)
            .map_err(|why| why.context(format_args!("\"{}\" stays as it is", note.path.display())))?;
        let name = OsString::from(old.meta().file_name());
        self.put(None, Place::Archive, &name, old)?;
        self.replace(note, new)
    }

    /// Moves a note to the archive.
    ///
    /// # Errors
    /// `Conflict`: its name is taken there.
    pub fn archive(&self, note: &Note) -> Result<Note> {
        let name = note.name();
        if self.notes.is_taken(&Place::Archive.path(&name)) {
            let (path, name) = (note.path.display(), name.to_string_lossy().into_owned());
            return Err(Error::conflict(format!("\"{path}\" cannot be archived: \"archive/{name}\" exists")));
        }
        self.put(Some(note), Place::Archive, &name, note.entry.clone())
    }

    /// Deletes a note for good.
    pub fn purge(&self, note: &Note) {
        self.notes.add(&Revision { before: Some(note.version()), after: None });
    }

    /// Keeps a proposal, in the place of the one with its id.
    ///
    /// # Errors
    /// It could not be read again; or there is something else under its name.
    pub fn put_proposal(&self, proposal: &Proposal) -> Result<()> {
        let path = proposal.id.path();
        let shown = || self.notes.shown(&path).display().to_string();
        let conflict = |why: String| Error::conflict(format!("\"{}\": {why}", shown()));
        let there = self.notes.bytes(&path).map_err(|broken| conflict(broken.why))?;
        // A file that is broken is somebody's: it is not replaced.
        if let (Some(bytes), Some(name)) = (&there, path.file_name()) {
            Proposal::named(name, bytes).map_err(conflict)?;
        }
        let before = there.map(|bytes| Version::at(&path, bytes));
        self.notes.add(&Revision { before, after: Some(Version::at(&path, proposal.bytes()?)) });
        Ok(())
    }

    /// Takes a proposal away. Nothing happens if it is gone already.
    pub fn withdraw(&self, id: &ProposalId) {
        if let Ok(Some(bytes)) = self.notes.bytes(&id.path()) {
            self.notes.add(&Revision { before: Some(Version::at(&id.path(), bytes)), after: None });
        }
    }

    /// Adds revisions that were planned before, all of them or none; `Some`: why none. Those that are made already, not
    /// again: they are made together, so one that is made says it of all. `later` ones of the same notes may be made as
    /// well: a note that stands as one of those leaves it has been through this one.
    ///
    /// # Errors
    /// The store cannot be read; or a version is no note.
    pub fn make(&self, planned: &[Revision], later: &[&Revision]) -> Result<Option<String>> {
        let mut standings = Vec::new();
        for revision in planned {
            let standing = match self.standing(revision)? {
                RevisionState::Other(_) if self.has_passed(revision, later)? => RevisionState::After,
                standing => standing,
            };
            if let RevisionState::Before(note) = &standing {
                let before = note.as_ref().map(|note| note.version());
                self.notes.add(&Revision { before, ..revision.clone() });
            }
            standings.push((revision, standing));
        }
        let why = standings.iter().find_map(|(revision, standing)| match standing {
            RevisionState::Other(why) => Some((revision.id(), why)),
            _ => None,
        });
        if let Some((id, why)) = why {
            self.notes.revisions.borrow_mut().clear();
            let is_made = standings.iter().any(|(_, standing)| matches!(standing, RevisionState::After));
            let id = id.map_or_else(String::new, |id| format!("{id}: "));
            return Ok((!is_made).then(|| format!("{id}{why}")));
        }
        for (revision, standing) in &standings {
            if let RevisionState::Before(Some(note)) = standing {
                self.count(revision, note, planned)?;
            }
        }
        Ok(None)
    }

    /// Counts the reads of a note since it was as before; for the note that takes its place, too.
    fn count(&self, revision: &Revision, now: &Note, planned: &[Revision]) -> Result<()> {
        let (Some(before), Some(after)) = (&revision.before, &revision.after) else { return Ok(()) };
        let (old, new) = (before.entry()?.into_meta(), now.entry.meta());
        let more = new.used.saturating_sub(old.used);
        if more == 0 && (new.last_used, new.confirmed) == (old.last_used, old.confirmed) {
            return Ok(());
        }
        let successor = after.entry()?.into_meta().superseded_by.filter(|_| old.superseded_by.is_none());
        let is_heir = |other: &&Revision| other.before.is_some() && other.id() == successor;
        let heir = planned.iter().filter(|_| successor.is_some()).find(is_heir);
        let heir = heir.and_then(|heir| heir.after.as_ref()).map(|after| (after, None));
        // What the heir says besides was not confirmed.
        for (after, confirmed) in [Some((after, new.confirmed)), heir].into_iter().flatten() {
            let Some(version) = self.notes.changed(&after.path()).flatten() else { continue };
            let mut entry = version.entry()?;
            let counted = entry.update(|meta| {
                meta.used = meta.used.saturating_add(more);
                meta.last_used = meta.last_used.max(new.last_used);
                meta.confirmed = meta.confirmed.max(confirmed);
            });
            counted.map_err(|why| Error::io(format!("\"{}\": {why}", Path::new(after.name()).display())))?;
            let after = Some(Version::at(&version.path(), entry.bytes().to_vec()));
            self.notes.add(&Revision { before: Some(version), after });
        }
        Ok(())
    }

    /// How a note's file stands against a revision of it.
    pub fn standing(&self, revision: &Revision) -> Result<RevisionState> {
        let standing = self.found(revision)?;
        let (RevisionState::Before(note), Some(after)) = (&standing, &revision.after) else {
            return Ok(standing);
        };
        let is_there = note.as_ref().is_some_and(|note| note.place.path(&note.name()) == after.path());
        // A link that does not name its target's whole path leads nowhere from another directory.
        if let Some(note) = note
            && Some(note.place) != after.place()
            && note.path.is_symlink()
        {
            return Ok(RevisionState::Other("it is a symlink, which is moved by hand alone".to_owned()));
        }
        // Where the new name is taken, nothing can be made.
        if !is_there && self.notes.is_taken(&after.path()) {
            let name = Path::new(after.name()).display();
            return Ok(RevisionState::Other(format!("\"{name}\" is in the way")));
        }
        Ok(standing)
    }

    fn found(&self, revision: &Revision) -> Result<RevisionState> {
        let id = revision.id().ok_or_else(|| Error::io("a plan has a version that is no note"))?;
        let Revision { before, after } = revision;
        for version in [after, before].into_iter().flatten() {
            let Some(place) = version.place() else { continue };
            let read = || self.notes.read(place, version.name());
            // What fails in passing may succeed a moment later.
            let note = match read().or_else(|_| read()) {
                Ok(Some(note)) if note.entry.meta().id == id => note,
                Ok(_) => continue,
                Err(broken) if self.notes.bytes(&version.path()).is_err() => {
                    return Err(Error::corrupt(format!(
                        "\"{}\" cannot be read: {}",
                        broken.path.display(),
                        broken.why
                    )));
                }
                Err(broken) => return Ok(RevisionState::Other(broken.why)),
            };
            let bytes = note.entry.without_counters();
            let is = |other: &Version| other.entry().map(|entry| entry.without_counters() == bytes);
            if let Some(after) = after.as_ref().filter(|after| after.path() == version.path())
                && is(after)?
            {
                return Ok(RevisionState::After);
            }
            if let Some(before) = before
                && is(before)?
            {
                return Ok(RevisionState::Before(Some(Box::new(note))));
            }
            return Ok(RevisionState::Other("it has been changed since".to_owned()));
        }
        let moved = |how: &str| RevisionState::Other(format!("it has been {how} since"));
        Ok(match (before, after) {
            (Some(_), Some(_)) => moved("moved, renamed or removed"),
            // A note that is new, or that goes, is nowhere; under another name it is somebody's by now.
            _ if self.notes.named(&id)?.is_some() => moved("moved or renamed"),
            (None, _) => RevisionState::Before(None),
            (Some(_), None) => RevisionState::After,
        })
    }

    fn has_passed(&self, revision: &Revision, later: &[&Revision]) -> Result<bool> {
        let id = revision.id();
        for further in later.iter().filter(|further| further.id() == id) {
            if matches!(self.standing(further)?, RevisionState::After) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// How a note's file stands against a revision of it.
#[derive(Debug)]
pub enum RevisionState {
    /// As before, reads aside; it may have its new name already.
    Before(Option<Box<Note>>),
    /// The revision is made.
    After,
    /// Somebody has changed it since; this says how.
    Other(String),
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::place::Root;
    use crate::store::topics::Topics;

    #[test]
    fn the_old_text_is_kept_once_and_leads_to_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let topics = Topics::at(&Root::at(dir.path()));
        let text = "---\nid: id__AAAAAA\ntitle: Port\npinned: true\nused: 7\nmine: x\naliases: [id__BBBBBB]\n---\n\n4310\n";
        let change = Change::of(&topics).unwrap();
        let note = change.add(Entry::parse(text.into()).unwrap()).unwrap();
        change.write().unwrap();
        let mut new = note.entry.clone();
        new.set_body(b"4320\n");
        new.update(|meta| meta.title = "Ports".to_owned()).unwrap();
        let superseded = |note: &Note, new: &Entry| {
            let change = Change::of(&topics).unwrap();
            let now = change.supersede(note, new.clone(), 5).unwrap();
            assert_eq!(
                change.notes.find_own(&now.entry.meta().id).unwrap().entry,
                now.entry,
                "as it will be"
            );
            change.write().unwrap();
            now
        };
        let now = superseded(&note, &new);
        assert_eq!(now.entry.bytes(), text.replace("4310", "4320").replace("Port\n", "Ports\n").as_bytes());
        let old = topics.scan(&[Place::Archive], |note| note).unwrap().found.remove(0);
        let meta = old.entry.meta();
        assert_eq!(
            (meta.title.as_str(), meta.pinned, meta.used, &meta.aliases[..]),
            ("Port", false, 0, &[][..])
        );
        assert_eq!(old.entry.body(), &b"4310\n"[..]);
        assert_eq!(topics.find(&meta.id).unwrap().entry, new, "its id leads to the successor");
        assert_ne!(
            meta.id,
            EntryId::make("Port", 5, |_| false),
            "a new note with that title may have this one"
        );
        // Another change is another old text.
        new.set_body(b"4330\n");
        superseded(&now, &new);
        let archived = topics.scan(&[Place::Archive], |note| note.entry.into_meta().id).unwrap().found;
        assert_eq!(BTreeSet::from_iter(archived).len(), 2);
    }

    #[test]
    fn what_is_planned_is_seen_there_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let topics = Topics::at(&Root::at(dir.path()));
        let entry =
            |id: &str| Entry::parse(format!("---\nid: id__{id}\ntitle: T\n---\n\nx\n").into()).unwrap();
        let change = Change::of(&topics).unwrap();
        let (one, two) = (change.add(entry("AAAAAA")).unwrap(), change.add(entry("BBBBBB")).unwrap());
        assert!(topics.ids().unwrap().is_empty());
        change.write().unwrap();
        let dry = Preview::over(&topics, true);
        let change = Change::of(&dry).unwrap();
        let moved = change.archive(&one).unwrap();
        change.purge(&two);
        change.write().unwrap();
        assert_eq!((dry.ids().unwrap().len(), topics.ids().unwrap().len()), (1, 2));
        let change = Change::of(&dry).unwrap();
        change.purge(&moved);
        change.write().unwrap();
        assert!(dry.ids().unwrap().is_empty() && dry.named(&one.entry.meta().id).unwrap().is_none());
        assert!(topics.named(&one.entry.meta().id).unwrap().is_some());
    }
}
