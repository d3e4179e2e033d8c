//! Notes that a repository has among its files, in `.agents/memory`, for everybody who works in it.
//!
//! Whoever can write to the repository writes them, so a file is a stranger's: only what it says is taken from it. Scope, author,
//! pins, counters, aliases and sources that its front matter claims count for nothing. So none of these notes is the person's, or
//! shown in another repository; and nothing of them is ever written into the store.

use crate::base::error::{Error, Result};
use crate::base::repository::{self, Repository};
use crate::base::text::{one_line, visible};
use crate::base::{file, glob, reach};
use crate::config::memory::MemoryConfig;
use crate::memory::links::links;
use crate::memory::record::dangers;
use crate::memory::redact::Redactor;
use crate::store::entry::{Entry, EntryId, Meta, SHARED, Scope, Source, is_tag, only_repo};
use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
use crate::store::revision::Revision;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Below the top of a checkout.
pub const DIR: &str = ".agents/memory";
/// So many files are read, by name, of so many that are looked at; the largest, and all together, in bytes. A hook waits for
/// it: whoever writes the files must not have it come too late.
const MOST: usize = 200;
const ALL: usize = 256_000;
const NAMES: usize = 10_000;
pub const CAP: u64 = 8_000;
/// The most tags of a note.
const TAGS: usize = 16;
/// Times are known by the day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A file that may be a note: its bytes, or why it is none.
type Read = (OsString, Result<Vec<u8>, String>);

/// The notes of one checkout, as a store that can only be read.
#[derive(Debug, Default)]
pub struct SharedNotes {
    dir: PathBuf,
    pub notes: Vec<Note>,
    /// The files that are left out.
    pub broken: Vec<Broken>,
}

impl SharedNotes {
    /// Those of the repository that contains this directory, unless the person wants none.
    pub fn around(dir: &Path, config: &MemoryConfig) -> SharedNotes {
        let here = if config.recall.shared { repository::of(dir) } else { None };
        let is_foreign =
            |here: &Repository| reach::within(&here.top.join(DIR), is_of_another).unwrap_or(true);
        let here = here.filter(|here| !is_foreign(here));
        here.map(|here| SharedNotes::of(&here)).unwrap_or_default()
    }

    pub fn of(here: &Repository) -> SharedNotes {
        let dir = here.top.join(DIR);
        let mut shared = SharedNotes { dir: dir.clone(), ..SharedNotes::default() };
        let files = reach::within(&dir, files).unwrap_or_else(|error| Err(error.to_string()));
        let files = files.unwrap_or_else(|why| {
            shared.broken.push(Broken { path: dir.clone(), why });
            Vec::new()
        });
        for (name, read) in files {
            let (path, named) = (dir.join(&name), name.to_str().and_then(EntryId::at_end_of));
            let is_named = |entry: Entry| match &entry.meta().id {
                id if named.as_ref() == Some(id) => Ok(entry),
                id => Err(format!("its id is {id}, and its name has another")),
            };
            let entry = read.and_then(|bytes| tamed(bytes, &here.name).map_err(|error| error.line()));
            match entry.and_then(is_named) {
                Ok(entry) => shared.notes.push(Note { place: Place::Topics, path, entry }),
                Err(why) => shared.broken.push(Broken { path, why }),
            }
        }
        let ids: Vec<EntryId> = shared.notes.iter().map(|note| note.entry.meta().id.clone()).collect();
        let has_twin = |note: &mut Note| ids.iter().filter(|id| **id == note.entry.meta().id).count() > 1;
        // Nothing in a file shows which one is the note.
        let why = "another file has its id, too".to_owned();
        let twins =
            shared.notes.extract_if(.., has_twin).map(|note| Broken { path: note.path, why: why.clone() });
        shared.broken.extend(twins);
        shared
    }

    fn path_of(&self, id: &EntryId) -> Option<PathBuf> {
        self.notes.iter().find(|note| note.entry.meta().id == *id).map(|note| note.path.clone())
    }

    /// The links to notes that are not among them.
    pub fn dead_links(&self) -> impl Iterator<Item = (&Note, EntryId)> {
        let is_there = |id: &EntryId| self.notes.iter().any(|note| note.entry.meta().id == *id);
        let dead = move |note: &Note| {
            links(&String::from_utf8_lossy(note.entry.body())).into_iter().filter(move |id| !is_there(id))
        };
        self.notes.iter().flat_map(move |note| dead(note).map(move |id| (note, id)))
    }
}

/// Those of these notes that may be shown, and that this store does not have.
pub fn shown(notes: Vec<Note>, own: &impl Persistence) -> Result<Vec<Note>> {
    let (mut notes, redactor) = (others(notes, own)?, Redactor::default());
    notes.retain(|note| fault(note, &redactor).is_none());
    Ok(notes)
}

/// Those that this store does not have, in use or archived.
pub fn others(mut notes: Vec<Note>, own: &impl Persistence) -> Result<Vec<Note>> {
    if notes.is_empty() {
        return Ok(notes);
    }
    let mut others: BTreeSet<EntryId> = notes.iter().map(|note| note.entry.meta().id.clone()).collect();
    for place in [Place::Topics, Place::Archive] {
        let names = own.names(place.dir(), ".md")?;
        for id in names.iter().filter_map(|name| EntryId::at_end_of(name.to_str()?)) {
            others.remove(&id);
        }
    }
    notes.retain(|note| others.contains(&note.entry.meta().id));
    Ok(notes)
}

/// Why nobody is shown a note, whoever wrote it: it has a secret, or what always waits for a person's decision.
pub fn fault(note: &Note, redactor: &Redactor) -> Option<String> {
    let Meta { title, summary, tags, paths, .. } = note.entry.meta();
    let body = String::from_utf8_lossy(note.entry.body());
    // The section shows the name, which need not follow from the title.
    let name = note.name().to_string_lossy().into_owned();
    let name = if name == note.entry.meta().file_name() { String::new() } else { name };
    let text = format!("{title}\n{summary}\n{name}\n{body}");
    let named = format!("{text}\n{}\n{}", tags.join(" "), paths.join(" "));
    let secret = redactor.kinds(&named).into_keys().next().map(|kind| format!("has a secret ({kind})"));
    secret.or_else(|| dangers(&text).first().map(|danger| danger.does()))
}

/// Where everybody can write, as in /tmp, another user may have made it. git takes no repository of such a one, either.
#[cfg(unix)]
fn is_of_another(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_trusted = |owner: u32| owner == 0 || owner == rustix::process::geteuid().as_raw();
    fs_err::symlink_metadata(dir).is_ok_and(|found| !is_trusted(found.uid()))
}

#[cfg(not(unix))]
fn is_of_another(_: &Path) -> bool {
    false
}

/// The files of a checkout that may be notes. A link would lead out of it: none is followed.
fn files(dir: &Path) -> Result<Vec<Read>, String> {
    for part in [dir.parent().unwrap_or(dir), dir] {
        match fs_err::symlink_metadata(part) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(format!("\"{}\" is a link, or no directory", part.display())),
            Err(_) => return Ok(Vec::new()),
        }
    }
    let entries = fs_err::read_dir(dir).map_err(|error| error.to_string())?;
    let names = entries.take(NAMES).filter_map(|entry| Some(entry.ok()?.file_name()));
    // Others, such as a README.md, are none.
    let is_note = |name: &OsString| name.to_str().and_then(EntryId::at_end_of).is_some();
    let mut names: Vec<OsString> = names.filter(is_note).collect();
    names.sort();
    let beyond = names.split_off(names.len().min(MOST));
    let mut left = ALL;
    let mut read = |name: OsString| {
        let path = dir.join(&name);
        let bytes = match fs_err::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => Err("is no regular file".to_owned()),
            _ if left == 0 => Err(format!("is beyond the {ALL} bytes that are read")),
            _ => file::read(&path, CAP).map_err(|error| error.to_string()),
        };
        left = left.saturating_sub(bytes.as_ref().map_or(0, Vec::len));
        (name, bytes)
    };
    let too_many = |name| (name, Err(format!("is beyond the {MOST} files that are read")));
    Ok(names.into_iter().map(&mut read).chain(beyond.into_iter().map(too_many)).collect())
}

/// What a file says, without what it claims.
fn tamed(bytes: Vec<u8>, repo: &str) -> Result<Entry> {
    let entry = Entry::parse(bytes)?;
    let body = String::from_utf8_lossy(entry.body());
    let source =
        Source { harness: Some(SHARED.to_owned()), repo: Some(repo.to_owned()), ..Source::default() };
    Ok(Entry::new(Meta { sources: vec![source], ..said(entry.meta()) }, visible(&body).as_bytes()))
}

/// The part of the front matter that says something about the subject.
fn said(meta: &Meta) -> Meta {
    let tags = meta.tags.iter().filter(|tag| is_tag(tag)).take(TAGS);
    let paths = meta.paths.iter().filter(|path| glob::fault(path).is_none()).take(glob::MOST);
    Meta {
        title: visible(&meta.title).into_owned(),
        summary: visible(&meta.summary).into_owned(),
        tags: tags.cloned().collect(),
        paths: paths.cloned().collect(),
        scope: Scope::Repo,
        until: meta.until,
        created_at: meta.created_at,
        updated_at: meta.updated_at,
        ..Meta::new(meta.id.clone())
    }
}

/// A person's note as a file of a repository: without counters, sessions and times of the day.
///
/// # Errors
/// `Refused`: it says what is not for others.
fn file_of(note: &Note, here: &Repository, home: &Path, redactor: &Redactor) -> Result<Entry> {
    let meta = note.entry.meta();
    let refused = |why: String| {
        Error::refused(format!("{} is not shared: {why}", meta.id))
            .hint(format!("change it first: memory-edit {}", meta.id))
    };
    if !meta.outside.is_empty() {
        let outside = meta.outside.join(", ");
        return Err(refused(format!("its session had read outside before ({outside})"))
            .hint("if you have checked it, write it yourself: memory-capture --direct"));
    }
    if let Some(why) = fault(note, redactor) {
        return Err(refused(why));
    }
    let text = String::from_utf8_lossy(note.entry.body());
    let text = format!("{}\n{}\n{text}\n{}", meta.title, meta.summary, meta.paths.join("\n"));
    if let Some(path) = own_path(&text, &[home, &here.top]) {
        return Err(refused(format!("it names a path of this machine, \"{}\"", one_line(path, 80))));
    }
    let day = |time: i64| time - time.rem_euclid(DAY);
    let (created_at, updated_at) = (day(meta.created_at), day(meta.updated_at));
    let is_from_here = only_repo(&meta.sources) == Some(&here.name);
    let anchors = if is_from_here { meta.anchors.clone() } else { Vec::new() };
    let entry = Entry::new(Meta { created_at, updated_at, anchors, ..said(meta) }, note.entry.body());
    let entry = Entry::parse(entry.without_keys(&["status", "tier", "pinned", "used"]))?;
    let is_too_long = entry.bytes().len() as u64 > CAP;
    if is_too_long { Err(refused(format!("it has more than {CAP} bytes"))) } else { Ok(entry) }
}

/// The first path below one of these directories, or below anybody's home directory.
fn own_path<'a>(text: &'a str, dirs: &[&Path]) -> Option<&'a str> {
    // A colon also ends one of a list, as in PATH.
    let is_end = |c: char| c.is_whitespace() || "\"'`<>()[]{},;:".contains(c);
    let is_own = |word: &&str| {
        // Also `file:///home/x`, `PATH=/home/x`, `C:\Users\x`, `~ada/x`; not `src/home/x`.
        let word = word.replace('\\', "/");
        let (before, path) = word.find('/').map_or(("", ""), |at| word.split_at(at));
        let path = format!("/{}", path.trim_start_matches('/'));
        let is_whole = !before.ends_with(|c: char| c.is_alphanumeric() || "._-".contains(c));
        let is_home =
            ["/home/", "/Users/"].iter().any(|home| path.len() > home.len() && path.starts_with(home));
        let is_in = |dir: &&Path| dir.components().count() > 1 && Path::new(&path).starts_with(dir);
        let is_users = before.strip_prefix('~').is_some_and(|user| user.starts_with(char::is_alphabetic));
        is_users || is_whole && (before.ends_with('~') || is_home || dirs.iter().any(is_in))
    };
    text.split(is_end).map(|word| word.trim_end_matches(['.', '!', '?'])).find(is_own)
}

/// Writes notes as files of this checkout, and returns their paths. Nothing is written if one of them cannot be shared.
pub fn share(notes: &[Note], here: &Repository, home: &Path, redactor: &Redactor) -> Result<Vec<PathBuf>> {
    let dir = here.top.join(DIR);
    let there = SharedNotes::of(here);
    if let Some(broken) = there.broken.iter().find(|broken| broken.path == dir) {
        return Err(
            Error::refused(format!("notes are shared in {DIR}: {}", broken.why)).hint("make it a directory")
        );
    }
    let mut files = Vec::new();
    for note in notes {
        let entry = file_of(note, here, home, redactor)?;
        let id = &entry.meta().id;
        let path = dir.join(entry.meta().file_name());
        let old = there.path_of(id);
        if old.as_ref() != Some(&path) && fs_err::symlink_metadata(&path).is_ok() {
            return Err(Error::refused(format!("\"{}\" is there, and is not the note {id}", path.display()))
                .hint("move it away"));
        }
        files.push((path, entry, old));
    }
    let written = files.iter().map(|(path, ..)| path.clone()).collect();
    reach::writing(&here.top, move |_| {
        file::make_dir(&dir)?;
        for (path, entry, old) in files {
            // It takes the place of a link, and does not follow it.
            file::install(&path, entry.bytes(), 0o644)?;
            old.filter(|old| *old != path).map_or(Ok(()), |old| file::remove(&old))?;
        }
        std::io::Result::Ok(())
    })??;
    Ok(written)
}

/// Removes the files of these notes, and returns their paths.
pub fn unshare(ids: &[EntryId], here: &Repository) -> Result<Vec<PathBuf>> {
    let there = SharedNotes::of(here);
    let path_of = |id: &EntryId| {
        let missing = || Error::not_found(format!("no file in {DIR} is the note {id}"));
        there.path_of(id).ok_or_else(|| missing().hint("see them with: memory-list"))
    };
    let files = ids.iter().map(path_of).collect::<Result<Vec<_>>>()?;
    let gone = files.clone();
    reach::writing(&here.top, move |_| gone.iter().try_for_each(|path| file::remove(path)))??;
    Ok(files)
}

impl Persistence for SharedNotes {
    type Lock = ();

    fn lock(&self) -> Result<()> {
        Err(Error::refused("the shared notes of a repository are changed as its files"))
    }

    fn names(&self, dir: &str, end: &str) -> Result<Vec<OsString>> {
        let names = self.notes.iter().filter(|note| note.place.dir() == dir).map(Note::name);
        Ok(names.filter(|name| name.as_encoded_bytes().ends_with(end.as_bytes())).collect())
    }

    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Broken> {
        let found = self.notes.iter().find(|note| note.place.path(&note.name()) == path);
        Ok(found.map(|note| note.entry.bytes().to_vec()))
    }

    fn write(&self, (): &(), _: &[Revision]) -> Result<()> {
        self.lock()
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.dir.join(path.file_name().unwrap_or_default())
    }

    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        let notes = self.notes.iter().filter(|note| places.contains(&note.place));
        Ok(Scan { found: notes.cloned().map(each).collect(), broken: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_this_machine_are_told_from_those_of_the_repository() {
        let dirs = [Path::new("/srv/me"), Path::new("/srv/r")];
        for (text, path) in [
            ("in /home/ada/x", Some("/home/ada/x")),
            ("`PATH=/Users/ada/bin`", Some("PATH=/Users/ada/bin")),
            ("file:///home/ada/x, too", Some("///home/ada/x")),
            (r"C:\Users\ada\x", Some(r"\Users\ada\x")),
            ("PATH=/usr/bin:/home/ada/bin", Some("/home/ada/bin")),
            ("~ada/x", Some("~ada/x")),
            ("see ~/.config/x.", Some("~/.config/x")),
            ("/srv/r/src/x.rs", Some("/srv/r/src/x.rs")),
            ("/srv/me", Some("/srv/me")),
            ("src/home/page.rs and ./home/x", None),
            ("https://h.example/home/x", None),
            ("/etc/hosts, /home, /users/7, ~5/day and a/b", None),
            ("/srv/red", None),
        ] {
            assert_eq!(own_path(text, &dirs), path, "{text}");
        }
    }
}
