//! The boundary between what is done with notes and where they are kept: Markdown files, or a host's own store.

use crate::base::cli::Reporter;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::text::nearest;
use crate::store::entry::{Entry, EntryId};
use crate::store::place::Root;
use crate::store::proposal::{self, Proposal};
pub use crate::store::revision::Place;
use crate::store::revision::{Revision, Version};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// So many broken files are named one by one.
const NAMED: usize = 10;

#[derive(Debug, Clone)]
pub struct Note {
    pub place: Place,
    pub path: PathBuf,
    pub entry: Entry,
}

/// A file among the notes that cannot be used, and why. It is left alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Broken {
    pub path: PathBuf,
    pub why: String,
}

/// What was made of the notes of a place, in the order of their files' names, and the files that are none.
#[derive(Debug)]
pub struct Scan<T> {
    pub found: Vec<T>,
    pub broken: Vec<Broken>,
}

/// Names the files that were left out.
pub fn warn_of(broken: &[Broken], reporter: &Reporter) {
    for file in broken.iter().take(NAMED) {
        reporter.warn(&format!("\"{}\" is left out: {}", file.path.display(), file.why));
    }
    if broken.len() > NAMED {
        reporter.warn(&format!("{} more files are left out", broken.len() - NAMED));
    }
}

/// Where notes, proposals and the queue are kept: files by their paths below the store, `topics/NAME.md`, `archive/NAME.md`,
/// `proposals/ID.json` and `inbox/ID.json`. A host that keeps them elsewhere says how to list, read and write them; the rest
/// follows. [`conformance`](crate::conformance) checks that it does so in the way that is expected.
pub trait Persistence {
    /// While one is held, nobody else changes anything. Held for milliseconds.
    type Lock;

    /// Makes the store where there is none.
    fn lock(&self) -> Result<Self::Lock>;

    /// The names in a directory that end so, in order; none if there is no such directory. Those of its subdirectories are
    /// not among them.
    fn names(&self, dir: &str, end: &str) -> Result<Vec<OsString>>;

    /// What is kept at this path; `None` if nothing is.
    ///
    /// # Errors
    /// There is something that cannot be read.
    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Broken>;

    /// Makes a change: all of it or nothing, whatever crash comes between.
    ///
    /// # Errors
    /// `Conflict`: a file is not as the change found it.
    fn write(&self, lock: &Self::Lock, change: &[Revision]) -> Result<()>;

    /// The store's directory, if it is one of files: then what is known of the notes is kept in a cache there.
    #[doc(hidden)]
    fn root(&self) -> Option<&Root> {
        None
    }

    /// There is a store at all.
    fn is_there(&self) -> bool {
        true
    }

    /// What a path is called in messages.
    fn shown(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }

    /// What `each` makes of every note in `places`. A note that is being renamed meanwhile is seen once.
    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        let mut scan = Scan { found: Vec::new(), broken: Vec::new() };
        for place in places {
            for name in self.names(place.dir(), ".md")? {
                match self.read(*place, &name) {
                    Ok(note) => scan.found.extend(note.map(&each)),
                    Err(broken) => scan.broken.push(broken),
                }
            }
        }
        Ok(scan)
    }

    /// The note that is kept under this name; `None` if there is none.
    ///
    /// # Errors
    /// There is something under this name that cannot be used as a note.
    fn read(&self, place: Place, name: &OsStr) -> Result<Option<Note>, Broken> {
        let path = place.path(name);
        let Some(bytes) = self.bytes(&path)? else { return Ok(None) };
        let path = self.shown(&path);
        match Entry::parse(bytes) {
            Ok(entry) => Ok(Some(Note { place, path, entry })),
            Err(error) => Err(Broken { path, why: error.line() }),
        }
    }

    /// The note whose name ends with this id, as almost every note's does. It bears that id itself.
    ///
    /// # Errors
    /// `Corrupt`: two files pass for it. Or the store cannot be read.
    fn named(&self, id: &EntryId) -> Result<Option<Note>> {
        for place in [Place::Topics, Place::Archive] {
            let mut found: Option<Note> = None;
            for name in self.names(place.dir(), &format!("{id}.md"))? {
                // One that cannot be used may have a twin that can.
                let Ok(Some(note)) = self.read(place, &name) else { continue };
                match &found {
                    _ if note.entry.meta().id != *id => {}
                    Some(first) if first.entry.bytes() != note.entry.bytes() => {
                        let (one, two) = (first.path.display(), note.path.display());
                        return Err(Error::corrupt(format!(
                            "\"{one}\" and \"{two}\" have the same id, and neither is used"
                        ))
                        .hint("merge them by hand, then remove one"));
                    }
                    Some(_) => {}
                    None => found = Some(note),
                }
            }
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Something is kept at this path, usable or not.
    fn is_taken(&self, path: &Path) -> bool {
        !matches!(self.bytes(path), Ok(None))
    }

    /// What `read` makes of the JSON files in a directory, by name, and the files that are none.
    fn files<T>(
        &self,
        dir: &str,
        read: impl Fn(&OsStr, &[u8]) -> Result<T, String>,
    ) -> Result<(Vec<T>, Vec<Broken>)> {
        let (mut found, mut broken) = (Vec::new(), Vec::new());
        for name in self.names(dir, ".json")? {
            let path = Path::new(dir).join(&name);
            match self.bytes(&path) {
                Ok(Some(bytes)) => match read(&name, &bytes) {
                    Ok(one) => found.push(one),
                    Err(why) => broken.push(Broken { path: self.shown(&path), why }),
                },
                // Decided or claimed since the directory was read.
                Ok(None) => {}
                Err(why) => broken.push(why),
            }
        }
        Ok((found, broken))
    }

    /// The changes that wait for a person, oldest first, and the files that are none.
    fn proposals(&self) -> Result<(Vec<Proposal>, Vec<Broken>)> {
        let (mut found, broken) = self.files(proposal::DIR, Proposal::named)?;
        found.sort_by(|a, b| (a.created_at, a.title(), &a.id).cmp(&(b.created_at, b.title(), &b.id)));
        Ok((found, broken))
    }

    /// The note with this id, or the one that it was merged into; archived ones too.
    fn find(&self, id: &EntryId) -> Result<Note> {
        let mut id = id.clone();
        // Each step leads to a note that was written later; more than a few are a circle.
        for _ in 0..8 {
            let note = match self.named(&id)? {
                Some(note) => note,
                None => searched(self, &id, true)?,
            };
            match &note.entry.meta().superseded_by {
                Some(successor) if note.place == Place::Archive => id = successor.clone(),
                _ => return Ok(note),
            }
        }
        self.find_own(&id)
    }

    /// The note that bears this id itself.
    fn find_own(&self, id: &EntryId) -> Result<Note> {
        match self.named(id)? {
            Some(note) => Ok(note),
            None => searched(self, id, false),
        }
    }

    /// The same; `None` if there is no such note, or if its file is broken. A store that cannot be read is an error:
    /// it is not one without the note.
    fn own(&self, id: &EntryId) -> Result<Option<Note>> {
        match self.find_own(id) {
            Ok(note) => Ok(Some(note)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every id that was ever given and is still known: of notes, of archived ones, and aliases.
    fn ids(&self) -> Result<BTreeSet<EntryId>> {
        Ok(self.ids_and(|_| ())?.0)
    }

    /// The same, and what `each` makes of every note, from reading all of them once.
    fn ids_and<T: Send>(&self, each: impl Fn(&Note) -> T + Sync) -> Result<(BTreeSet<EntryId>, Vec<T>)> {
        let scan = self.scan(&[Place::Topics, Place::Archive], |note| {
            let made = each(&note);
            let meta = note.entry.into_meta();
            let mut ids = meta.aliases;
            ids.push(meta.id);
            (ids, made)
        })?;
        let of_broken = scan.broken.iter().filter_map(|broken| {
            let name = broken.path.file_stem()?.to_str()?;
            EntryId::parse(name.get(name.len().checked_sub(10)?..)?)
        });
        let mut all: BTreeSet<EntryId> = of_broken.collect();
        let made = scan.found.into_iter().map(|(ids, made)| {
            all.extend(ids);
            made
        });
        let made = made.collect();
        Ok((all, made))
    }
}

impl Note {
    /// The name that it is kept under.
    pub fn name(&self) -> OsString {
        self.path.file_name().unwrap_or_default().to_owned()
    }

    /// As it is now.
    pub fn version(&self) -> Version {
        Version::new(self.place, &self.name(), &self.entry)
    }
}

/// A note that was renamed by hand, or a moment ago, or that took another in.
fn searched<P: Persistence + ?Sized>(notes: &P, id: &EntryId, by_alias: bool) -> Result<Note> {
    let scan = notes.scan(&[Place::Topics, Place::Archive], |note| {
        let meta = note.entry.meta();
        let rank =
            if meta.id == *id { Some(0) } else { (by_alias && meta.aliases.contains(id)).then_some(1) };
        (meta.id.clone(), rank.map(|rank| ((rank, note.place), note)))
    })?;
    let ids: Vec<String> = scan.found.iter().map(|(id, _)| id.to_string()).collect();
    let best = scan.found.into_iter().filter_map(|(_, found)| found).min_by_key(|(rank, _)| *rank);
    best.map(|(_, note)| note).ok_or_else(|| {
        if let Some(broken) = scan.broken.iter().find(|broken| is_named_after(&broken.path, id)) {
            let (path, why) = (broken.path.display(), &broken.why);
            return Error::corrupt(format!("\"{path}\" is not a note that can be used: {why}"))
                .hint("fix it in an editor");
        }
        let error = Error::not_found(format!("no note has the id \"{id}\""));
        match nearest(id.as_str(), ids.iter().map(String::as_str)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error.hint("see them with: memory-list"),
        }
    })
}

/// The file's name ends as that of the note with this id.
pub fn is_named_after(path: &Path, id: &EntryId) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(&format!("{id}.md")))
}
