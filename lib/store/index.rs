//! What the notes said when they were last read, so that not all have to be read again.
//!
//! Reading ten thousand files takes longer than all else that a program does with them. So what a program needs of them is
//! kept in one file, `.agent-memory/NAME.cache`, which may be deleted at any time. It is never trusted: every file is
//! looked at, and one whose size, times or inode differ, or that was changed so shortly before it was read that a second
//! change could have the same time, is read as if there were no cache. So is every file if the cache is spoilt, belongs to
//! another store or another version, or is younger than the clock.
//!
//! The file: a header of seven numbers; the store's path; a record for each note, in the order of their places and names;
//! then whatever the program adds.

use crate::base::error::Result;
use crate::base::file::{self, Dir, Moment, Stamp};
use crate::base::packed::{Unpack, checksum, put_bytes, put_number};
use crate::store::entry::{BodyFacts, EntryId, Meta, pack, unpack};
use crate::store::persistence::{Broken, Note, Place};
use crate::store::place::Root;
use crate::store::topics::{NoteFile, read};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// Fewer notes are read quickly enough.
pub const LEAST: usize = 1000;
/// A cache is written anew when so many notes differ from it, and one in so many of all.
const DIFFERENT: usize = 64;
const PART: usize = 50;

/// The header's numbers.
const HEADER: usize = 7;
pub const HEADER_BYTES: usize = HEADER * 8;

const UNCHECKED: u8 = 0;
const SAME: u8 = 1;
/// The scan has come by: what was checked ahead is used once.
const TAKEN: u8 = 2;

/// What is known of a note without its text, which is read when it is asked for.
#[derive(Debug)]
pub struct NoteView {
    pub meta: Meta,
    pub body: BodyFacts,
    pub place: Place,
    pub path: PathBuf,
    /// `None`: it is gone.
    note: OnceLock<Option<Note>>,
}

impl NoteView {
    /// Keeps the note.
    pub fn of(note: Note) -> NoteView {
        let (meta, body) = (note.entry.meta().clone(), note.entry.body_facts());
        let (place, path) = (note.place, note.path.clone());
        NoteView { meta, body, place, path, note: OnceLock::from(Some(note)) }
    }

    pub fn without_text(note: Note) -> NoteView {
        let Note { place, path, entry } = note;
        NoteView { body: entry.body_facts(), meta: entry.into_meta(), place, path, note: OnceLock::new() }
    }

    /// `None` if it is gone, or has another name since.
    pub fn note(&self) -> Option<&Note> {
        // What fails in passing, as where too many files are open, may succeed a moment later.
        let again = |_| read(self.place, &self.path);
        let read = || read(self.place, &self.path).or_else(again).ok();
        self.note.get_or_init(|| read().filter(|note| note.entry.meta().id == self.meta.id)).as_ref()
    }

    /// Why the note was not to be had when it was asked for, if it is still there.
    pub fn unread(&self) -> Option<Broken> {
        let is_unread = self.note.get().is_some_and(Option::is_none);
        is_unread.then(|| read(self.place, &self.path).err()).flatten().flatten()
    }
}

/// Which cache it is.
#[derive(Debug, Clone, Copy)]
pub struct CacheFormat {
    /// The file's name.
    pub name: &'static str,
    pub magic: [u8; 8],
    /// What decides what is remembered of a note: another number, another cache.
    pub rules: u64,
}

#[derive(Debug)]
pub struct NoteCache {
    root: Root,
    format: CacheFormat,
    opened: Moment,
    bytes: Vec<u8>,
    records: Vec<CachedNote>,
    /// The file, and what is in it behind the records.
    file: Option<(Mutex<fs_err::File>, Range<u64>)>,
    /// Notes that were changed before this were settled.
    settled: i64,
    /// Where the notes lie: in use, archived.
    dirs: [Option<Dir>; 2],
    /// For each note whether its file was checked ahead.
    ahead: Vec<AtomicU8>,
    /// When the directory had last changed before that, in nanoseconds since 1970.
    ahead_of: OnceLock<i64>,
    is_ahead_valid: OnceLock<bool>,
    /// How many files were as the cache knows them, and how many were not and could be.
    hits: AtomicUsize,
    misses: AtomicUsize,
}

#[derive(Debug)]
struct CachedNote {
    place: Place,
    name: Range<usize>,
    stamp: Stamp,
    meta: Range<usize>,
    body: BodyFacts,
    /// What the program adds.
    more: Range<usize>,
    whole: Range<usize>,
}

/// A note whose file is as the cache knows it.
#[derive(Debug, Clone, Copy)]
pub struct KnownNote<'a> {
    cache: &'a NoteCache,
    /// Its index.
    pub index: usize,
}

impl NoteCache {
    /// The cache of a store. It is empty if there is none that can be used.
    pub fn open(root: &Root, format: CacheFormat) -> NoteCache {
        let mut cache = NoteCache::empty(root, format);
        if cache.load().is_none() {
            cache.records.clear();
            cache.file = None;
        }
        cache.ahead = cache.records.iter().map(|_| AtomicU8::new(UNCHECKED)).collect();
        cache
    }

    pub fn empty(root: &Root, format: CacheFormat) -> NoteCache {
        NoteCache {
            root: root.clone(),
            format,
            opened: Moment::now(),
            bytes: Vec::new(),
            records: Vec::new(),
            file: None,
            settled: i64::MIN,
            dirs: [None, None],
            ahead: Vec::new(),
            ahead_of: OnceLock::new(),
            is_ahead_valid: OnceLock::new(),
            hits: AtomicUsize::new(0),
            misses: AtomicUsize::new(0),
        }
    }

    fn path(&self) -> PathBuf {
        self.root.state().join(self.format.name)
    }

    fn load(&mut self) -> Option<()> {
        let (mut file, size) = file::open_regular(&self.path()).ok()?;
        let written = file::written(&file).ok()?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        let (numbers, _) = header.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let [magic, rules, began, elapsed, length, bytes_sum, sum] =
            <[u64; HEADER]>::try_from(numbers).ok()?;
        let start = (HEADER_BYTES as u64).checked_add(length).filter(|start| *start <= size)?;
        let is_ours = (magic, rules) == (u64::from_le_bytes(self.format.magic), self.format.rules)
            && sum == checksum(&header[..HEADER_BYTES - 8]);
        // If the clock was set back, a file could get the times that the cache knows a second time.
        if !is_ours || self.opened.nanoseconds() < written {
            return None;
        }
        self.bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact(&mut self.bytes).ok()?;
        if checksum(&self.bytes) != bytes_sum {
            return None;
        }
        self.records = records(&self.bytes, &self.root)?;
        self.settled = file::settled(began.cast_signed(), written, elapsed.cast_signed());
        self.dirs = [self.root.topics(), self.root.archive()].map(|dir| Dir::open(&dir).ok());
        self.file = Some((Mutex::new(file), start..size));
        Some(())
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Since it was written, no name of a note in use was added, removed, or given to another file.
    pub fn knows_all_names(&self) -> bool {
        let changed = self.dirs[0].as_ref().and_then(Dir::changed);
        self.file.is_some() && changed.is_some_and(|changed| changed < self.settled)
    }

    /// The notes as they were, whether their files are the same or not.
    pub fn all(&self) -> impl Iterator<Item = KnownNote<'_>> {
        (0..self.records.len()).map(|index| KnownNote { cache: self, index })
    }

    /// Where in the file is what the program added.
    pub fn added(&self) -> Option<Range<u64>> {
        self.file.as_ref().map(|(_, added)| added.clone())
    }

    /// Part of it.
    pub fn read(&self, part: Range<u64>) -> Option<Vec<u8>> {
        let (file, added) = self.file.as_ref()?;
        let length = part.end.checked_sub(part.start).filter(|_| part.end <= added.end)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let mut file = file.lock().ok()?;
        file.seek(SeekFrom::Start(part.start)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Files that were changed before this, in nanoseconds since 1970, were settled when the cache was opened.
    pub fn settled(&self) -> i64 {
        file::settled(self.opened.nanoseconds(), i64::MAX, 0)
    }

    fn known(&self, file: NoteFile) -> Option<KnownNote<'_>> {
        let key = (file.place, file.name.as_encoded_bytes());
        let index = self.records.binary_search_by(|record| key_of(record, &self.bytes).cmp(&key)).ok()?;
        let record = self.records.get(index)?;
        let ahead = self.ahead.get(index)?.swap(TAKEN, Ordering::Relaxed);
        let is_same = (ahead == SAME && self.is_ahead_valid()) || self.is_same(record);
        is_same.then_some(KnownNote { cache: self, index })
    }

    /// This note's file is as it was.
    fn is_same(&self, record: &CachedNote) -> bool {
        let name = file::name_of(&self.bytes[record.name.clone()]);
        let stamp =
            name.zip(self.dirs[record.place as usize].as_ref()).and_then(|(name, dir)| dir.stamp(name));
        stamp.is_some_and(|stamp| stamp == record.stamp) && record.stamp.is_before(self.settled)
    }

    /// Checks the files of the notes in use from the last one backwards while the directory is listed, until it meets one
    /// that the scan has checked. Not if the directory has changed after `settled`, in nanoseconds since 1970: a further
    /// change could leave it with the same time.
    pub fn check_ahead(&self, settled: i64) {
        let changed = self.dirs[0].as_ref().and_then(Dir::changed).filter(|changed| *changed < settled);
        if changed.is_none_or(|changed| self.ahead_of.set(changed).is_err()) {
            return;
        }
        let in_use = self.records.iter().zip(&self.ahead).filter(|(record, _)| record.place == Place::Topics);
        for (record, ahead) in in_use.rev() {
            let (was, order) = (UNCHECKED, Ordering::Relaxed);
            if self.is_same(record) && ahead.compare_exchange(was, SAME, order, order).is_err() {
                return;
            }
        }
    }

    /// A note that is merged into another, or gets another name, changes the directory. If it has changed since the files
    /// were checked, they are as of before the listing, and do not go together with it.
    fn is_ahead_valid(&self) -> bool {
        let changed = || self.dirs[0].as_ref().and_then(Dir::changed);
        *self.is_ahead_valid.get_or_init(|| changed().as_ref() == self.ahead_of.get())
    }

    /// What is made of the note in a file as the cache knows it; or else of the note that is read, and the stamp that its file
    /// had before.
    pub fn look<'a, T>(
        &'a self,
        file: NoteFile,
        of_known: impl FnOnce(KnownNote<'a>) -> Option<T>,
        of_read: impl FnOnce(Note, Option<Stamp>) -> T,
    ) -> Result<T, Option<Broken>> {
        if let Some(made) = self.known(file).and_then(of_known) {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(made);
        }
        let path = file.path();
        // If it changes while it is read, its next stamp is another one.
        let stamp = file::stamp(&path);
        Ok(of_read(read(file.place, &path)?, stamp))
    }

    /// A note was read that the next cache could know.
    pub fn missed(&self, stamp: Option<Stamp>) {
        // One that is not settled could not be known from a new cache either.
        if stamp.is_some_and(|stamp| stamp.is_before(self.settled())) {
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many notes were known, and how many could have been.
    #[cfg(test)]
    pub fn counted(&self) -> (usize, usize) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// So much differs that the next run gains by a new cache. To be asked after a scan of all notes, and when the answer is
    /// out. `least`: of fewer notes none is written.
    pub fn is_outdated(&self, least: usize) -> bool {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        let different = misses + self.records.len().saturating_sub(hits);
        let all = hits + misses;
        all >= least && different >= DIFFERENT.min(least).max(all / PART)
    }

    /// Writes the cache anew, all or nothing: so many records, and what the program adds. Their files were read after this one
    /// was opened.
    ///
    /// # Errors
    /// It cannot be written. The old one, if there is one, is as good as before.
    pub fn write(&self, count: usize, records: &[u8], added: &[&[u8]]) -> Result<()> {
        let mut bytes = Vec::with_capacity(records.len() + 256);
        put_bytes(&mut bytes, self.root.mark());
        put_number(&mut bytes, count as u64);
        bytes.extend_from_slice(records);
        let numbers = [
            u64::from_le_bytes(self.format.magic),
            self.format.rules,
            self.opened.nanoseconds().cast_unsigned(),
            self.opened.elapsed().cast_unsigned(),
            bytes.len() as u64,
            checksum(&bytes),
        ];
        let mut all = Vec::with_capacity(HEADER_BYTES + bytes.len());
        numbers.iter().for_each(|number| all.extend(number.to_le_bytes()));
        all.extend(checksum(&all).to_le_bytes());
        all.append(&mut bytes);
        added.iter().for_each(|added| all.extend_from_slice(added));
        self.root.make()?;
        file::sweep_dir(&self.root.state(), ".cache", file::LEFT_FOR);
        Ok(file::install(&self.path(), &all, 0o600)?)
    }

    /// Is there room for a new one? To be asked before all notes are read for it.
    ///
    /// # Errors
    /// Nothing can be written beside it.
    pub fn check_writable(&self) -> Result<()> {
        self.root.make()?;
        let path = self.root.state().join(format!("{}.{}", self.format.name, file::random58(8)?));
        let written = file::scratch(&path).and_then(|mut file| file.write_all(&[0]));
        file::if_exists(file::forget(&path))?;
        Ok(written?)
    }

    /// Removes a cache that is spoilt, so that a new one is made.
    pub fn remove(&self) -> Result<()> {
        Ok(file::if_exists(file::forget(&self.path())).map(drop)?)
    }
}

/// The record of a note that was read, with what the program adds. `None` if only the file can say what is in it.
pub fn record(file: NoteFile, stamp: Stamp, meta: &Meta, body: BodyFacts, more: &[u8]) -> Option<Vec<u8>> {
    let meta = pack(meta)?;
    let mut bytes = Vec::with_capacity(meta.len() + more.len() + 128);
    put_number(&mut bytes, file.place as u64);
    put_bytes(&mut bytes, file.name.as_encoded_bytes());
    stamp.pack(&mut bytes);
    put_bytes(&mut bytes, &meta);
    put_number(&mut bytes, body.pack());
    put_bytes(&mut bytes, more);
    Some(bytes)
}

fn key_of<'a>(record: &CachedNote, bytes: &'a [u8]) -> (Place, &'a [u8]) {
    (record.place, &bytes[record.name.clone()])
}

fn records(bytes: &[u8], root: &Root) -> Option<Vec<CachedNote>> {
    let mut from = Unpack(bytes);
    if from.bytes()? != root.mark() {
        return None;
    }
    let records = from.list(|from| {
        let start = bytes.len() - from.0.len();
        let place = if from.number()? == 0 { Place::Topics } else { Place::Archive };
        let name = from.place(bytes)?;
        let stamp = Stamp::unpack(from)?;
        let meta = from.place(bytes)?;
        let body = BodyFacts::unpack(from.number()?);
        let more = from.place(bytes)?;
        Some(CachedNote { place, name, stamp, meta, body, more, whole: start..bytes.len() - from.0.len() })
    })?;
    let is_sorted = records.is_sorted_by(|a, b| key_of(a, bytes) < key_of(b, bytes));
    (from.0.is_empty() && is_sorted).then_some(records)
}

impl<'a> KnownNote<'a> {
    fn record(self) -> &'a CachedNote {
        &self.cache.records[self.index]
    }

    /// The path of its file.
    pub fn path(self) -> Option<PathBuf> {
        let CachedNote { place, name, .. } = self.record();
        let name = file::name_of(&self.cache.bytes[name.clone()])?;
        Some(self.cache.root.path().join(place.path(name)))
    }

    pub fn id(self) -> Option<EntryId> {
        // It is packed first.
        EntryId::whole(Unpack(&self.cache.bytes[self.record().meta.clone()]).text()?)
    }

    pub fn meta(self) -> Option<Meta> {
        unpack(&self.cache.bytes[self.record().meta.clone()])
    }

    pub fn view(self) -> Option<NoteView> {
        let CachedNote { place, body, .. } = *self.record();
        Some(NoteView { meta: self.meta()?, body, place, path: self.path()?, note: OnceLock::new() })
    }

    /// What the program added.
    pub fn more(self) -> Unpack<'a> {
        Unpack(&self.cache.bytes[self.record().more.clone()])
    }

    /// Its record, for the next cache.
    pub fn bytes(self) -> &'a [u8] {
        &self.cache.bytes[self.record().whole.clone()]
    }
}

#[cfg(test)]
pub mod tests;
