//! What the notes in use said when they were last read: their metadata, and how often each word occurs in them.
//!
//! Reading ten thousand files takes longer than all else that a query does. So their words are kept in one file,
//! `.agent-memory/notes.cache`, which may be deleted at any time. It is never trusted: every file is looked at, and one
//! whose size, times or inode differ from the cache, or that was changed so shortly before it was read for the cache
//! that a second change could have the same time, is read as if there were no cache. So is every file if the cache is
//! spoilt, belongs to another store or another version, or is younger than the clock.
//!
//! The file: a header of eleven numbers; the notes in the order of their names, with what lists need; a vocabulary; then,
//! for each word, a list of the notes that have it, and how often. A query reads only the lists of its own words.

mod writer;

use crate::base::error::Result;
use crate::base::file::{self, Dir, Moment, Stamp};
use crate::base::packed::{Unpack, checksum};
use crate::memory::search::cache::writer::write;
use crate::memory::search::count::{Counts, Extent, FIELDS, Tally};
use crate::memory::search::lexicon::Target;
use crate::memory::search::query::Query;
use crate::memory::search::words::TOKENIZER;
use crate::store::entry::{EntryId, Meta, unpack};
use crate::store::place::Root;
use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

const NAME: &str = "notes.cache";
const MAGIC: u64 = u64::from_le_bytes(*b"axenotes");
/// Another one for each other form of the file.
const VERSION: u64 = 2;
/// The cache is written anew when so many notes differ from it, and one in so many of all.
const DIFFERENT: usize = 64;
const PART: usize = 50;

/// How often most words of a note occur in it: once, in the body.
const IN_THE_BODY: [u16; FIELDS] = [0, 0, 0, 1];

/// The header's numbers.
const HEADER: usize = 11;
const HEADER_BYTES: usize = HEADER * 8;

/// A note whose file is as the cache knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    content: &'a Content,
    /// Its index.
    note: usize,
    head: &'a Head,
}

#[derive(Debug)]
struct Head {
    name: Range<usize>,
    stamp: Stamp,
    /// Empty if the metadata has something that cannot be packed.
    meta: Range<usize>,
    extent: Extent,
}

/// A word of the vocabulary.
#[derive(Debug)]
struct Word {
    text: Range<usize>,
    /// Where its list is in the file.
    list: Range<u64>,
    /// Half of the list's checksum: there are many words.
    sum: u32,
}

/// Which part of the cache is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Metadata,
    Words,
}

#[derive(Debug)]
pub(crate) struct Cache {
    /// `None`: there is no cache.
    source: Option<(Root, Part)>,
    least: usize,
    content: OnceLock<Content>,
    opened: Moment,
    /// How many files were as the cache knows them, and how many were not and could be.
    hits: AtomicUsize,
    misses: AtomicUsize,
    /// A list turned out to be spoilt.
    is_spoilt: AtomicBool,
}

/// What was read from the file. By default nothing.
#[derive(Debug, Default)]
struct Content {
    heads: Vec<u8>,
    words: Vec<u8>,
    /// In the order of their names.
    notes: Vec<Head>,
    /// The words are places in `words`.
    vocabulary: Vec<Word>,
    /// The file, for its lists.
    file: Option<Mutex<fs_err::File>>,
    /// Notes that were changed before this were settled.
    settled: i64,
    /// Where the notes lie.
    dir: Option<Dir>,
}

impl Cache {
    /// Fewer notes are read quickly enough.
    pub(crate) const LEAST: usize = 1000;

    /// The cache of a store. It is read when it is first asked, and is empty if there is none that can be used.
    pub(crate) fn open(root: &Root, part: Part) -> Cache {
        Cache::open_with(root, part, Cache::LEAST)
    }

    /// No cache, which is never written either.
    pub(crate) fn none() -> Cache {
        Cache::new(None, Cache::LEAST)
    }

    fn open_with(root: &Root, part: Part, least: usize) -> Cache {
        Cache::new(Some((root.clone(), part)), least)
    }

    fn new(source: Option<(Root, Part)>, least: usize) -> Cache {
        let (hits, misses) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let is_spoilt = AtomicBool::new(false);
        Cache { source, least, content: OnceLock::new(), opened: Moment::now(), hits, misses, is_spoilt }
    }

    /// Reads it now, which may be while the notes are listed.
    pub(crate) fn load(&self) {
        self.content();
    }

    fn content(&self) -> &Content {
        let read = |(root, part): &(Root, Part)| Content::read(root, *part);
        self.content.get_or_init(|| self.source.as_ref().and_then(read).unwrap_or_default())
    }

    /// What is known of the note in a file. `None`: it is to be read; if it is a note, [`Cache::missed`] is to be called.
    pub(crate) fn known(&self, path: &Path) -> Option<Known<'_>> {
        let known = self.content().known(path.file_name()?)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    /// A note was read that the cache does not know as it is.
    pub(crate) fn missed(&self, path: &Path) {
        // One that is not settled could not be known from a new cache either.
        let settled = file::settled(self.opened.nanoseconds(), i64::MAX, 0);
        if self.source.is_some() && file::stamp(path).is_some_and(|stamp| stamp.is_before(settled)) {
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the cache anew if so much differs that the next query gains by it. To be called after a scan of all notes,
    /// and when the answer is out.
    ///
    /// # Errors
    /// It cannot be written. The old one, if there is one, is as good as before.
    pub(crate) fn keep_up(&self) -> Result<()> {
        let Some((root, _)) = &self.source else { return Ok(()) };
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        let different = misses + self.content().notes.len().saturating_sub(hits);
        let all = hits + misses;
        let is_worth_it = different >= DIFFERENT.min(self.least).max(all / PART);
        if all < self.least || !(is_worth_it || self.is_spoilt.load(Ordering::Relaxed)) {
            return Ok(());
        }
        write(root)
    }
}

impl Content {
    fn read(root: &Root, part: Part) -> Option<Content> {
        let (mut file, size) = file::open_regular(&root.state().join(NAME)).ok()?;
        let written = file::written(&file).ok()?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        let (numbers, _) = header.as_chunks::<8>();
        let [magic, version, tokenizer, began, elapsed, heads, heads_sum, words, words_sum, lists, sum] =
            <[u64; HEADER]>::try_from(
                numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Vec<_>>(),
            )
            .ok()?;
        let began = began.cast_signed();
        let lists_start = (HEADER_BYTES as u64).checked_add(heads)?.checked_add(words)?;
        let is_ours = (magic, version, tokenizer) == (MAGIC, VERSION, TOKENIZER)
            && sum == checksum(&header[..HEADER_BYTES - 8])
            && lists_start.checked_add(lists)? == size;
        // If the clock was set back, a file could get the times that the cache knows a second time.
        if !is_ours || Moment::now().nanoseconds() < written {
            return None;
        }
        let mut section = |length: u64, sum: u64| {
            let mut bytes = vec![0; usize::try_from(length).ok()?];
            file.read_exact(&mut bytes).ok()?;
            (checksum(&bytes) == sum).then_some(bytes)
        };
        let heads = section(heads, heads_sum)?;
        let notes = heads_of(&heads, root)?;
        let (mut text, mut vocabulary) = (Vec::new(), Vec::new());
        if part == Part::Words {
            text = section(words, words_sum)?;
            vocabulary = vocabulary_of(&text, lists_start, size)?;
        }
        let settled = file::settled(began, written, elapsed.cast_signed());
        let dir = Some(Dir::open(&root.topics()).ok()?);
        let file = Some(Mutex::new(file));
        Some(Content { heads, words: text, notes, vocabulary, file, settled, dir })
    }

    fn text(&self, word: &Word) -> &str {
        // Checked when it was loaded.
        std::str::from_utf8(&self.words[word.text.clone()]).unwrap_or_default()
    }

    /// The list of a word. `None` if it is spoilt.
    fn list(&self, word: &Word) -> Option<Vec<u8>> {
        let mut file = self.file.as_ref()?.lock().ok()?;
        let length = word.list.end.checked_sub(word.list.start)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.seek(SeekFrom::Start(word.list.start)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        (checksum(&bytes) as u32 == word.sum).then_some(bytes)
    }

    fn known(&self, name: &OsStr) -> Option<Known<'_>> {
        let dir = self.dir.as_ref()?;
        let bytes = name.as_encoded_bytes();
        let note = self.notes.binary_search_by(|head| self.heads[head.name.clone()].cmp(bytes)).ok()?;
        let head = self.notes.get(note)?;
        let is_it = dir.stamp(name)? == head.stamp && head.stamp.is_before(self.settled);
        is_it.then_some(Known { content: self, note, head })
    }
}

impl Known<'_> {
    pub(super) fn id(&self) -> Option<EntryId> {
        // It is packed first.
        EntryId::whole(Unpack(&self.content.heads[self.head.meta.clone()]).text()?)
    }

    /// `None` if only the file can say it.
    pub(crate) fn meta(&self) -> Option<Meta> {
        unpack(&self.content.heads[self.head.meta.clone()])
    }
}

/// What a query finds in the notes that the cache knows.
#[derive(Debug)]
pub(super) struct Occurrences {
    /// For each note, and in it for each term.
    counts: Vec<Tally>,
    /// For each note the words of each phrase that it has. Empty if the query has no phrases.
    phrases: Vec<[u64; 8]>,
}

impl Occurrences {
    /// `None` if the cache turns out to be spoilt: every note has to be read.
    pub(super) fn of(query: &Query, cache: &Cache) -> Option<Occurrences> {
        let content = cache.content();
        let found = Occurrences::read(query, content);
        cache.is_spoilt.fetch_or(found.is_none(), Ordering::Relaxed);
        found
    }

    fn read(query: &Query, content: &Content) -> Option<Occurrences> {
        let notes = content.notes.len();
        let mut counts = vec![Tally::default(); notes];
        let mut phrases = vec![[0; 8]; if query.phrases.is_empty() { 0 } else { notes }];
        let mut targets = Vec::new();
        for word in &content.vocabulary {
            targets.clear();
            query.lexicon.look_up(content.text(word), |target| targets.push(target));
            // Nearly all words mean nothing.
            if targets.is_empty() {
                continue;
            }
            each_count(&content.list(word)?, |note, times| {
                for target in &targets {
                    match target {
                        Target::Term { index, nearness } => {
                            counts.get_mut(note)?.add(*index, *nearness, times);
                        }
                        Target::Phrase { number, bit } => {
                            *phrases.get_mut(note)?.get_mut(usize::from(*number))? |= bit;
                        }
                    }
                }
                Some(())
            })?;
        }
        Some(Occurrences { counts, phrases })
    }

    /// The counts of a known note, but for its tags. Where it has all words of a phrase, the phrase is said to be there,
    /// and the note has to be read to be sure.
    pub(super) fn counts(&self, query: &Query, known: &Known<'_>) -> Option<Counts> {
        let counts = self.counts.get(known.note)?.clone().counts();
        let words = self.phrases.get(known.note).copied().unwrap_or_default();
        let phrases = query.phrases.iter().zip(words).zip(0..).fold(0, |found, ((phrase, words), at)| {
            let all = phrase.last | (phrase.last - 1);
            found | u8::from(words & all == all) << at
        });
        Some(Counts { counts, extent: known.head.extent, phrases, has_tags: false })
    }
}

/// Calls `found` with each note of a word's list, by its index, and how often it has the word. `None` if the bytes are
/// something else, or if `found` says so.
fn each_count(list: &[u8], mut found: impl FnMut(usize, [u16; FIELDS]) -> Option<()>) -> Option<()> {
    let mut from = Unpack(list);
    let mut note = 0;
    while !from.0.is_empty() {
        let step = from.size()?;
        note = usize::checked_add(note, step >> 1)?;
        let mut times = IN_THE_BODY;
        if step & 1 != 0 {
            for times in &mut times {
                *times = u16::try_from(from.number()?).ok()?;
            }
        }
        found(note, times)?;
    }
    Some(())
}

fn heads_of(bytes: &[u8], root: &Root) -> Option<Vec<Head>> {
    let mut from = Unpack(bytes);
    if from.bytes()? != root.mark() {
        return None;
    }
    let count = from.size().filter(|count| *count <= bytes.len())?;
    let mut heads: Vec<Head> = Vec::with_capacity(count);
    for _ in 0..count {
        let name = from.place(bytes)?;
        let stamp = Stamp::unpack(&mut from)?;
        let meta = from.place(bytes)?;
        let mut extent = Extent::default();
        for number in extent.lengths.iter_mut().chain([&mut extent.lines]) {
            *number = u32::try_from(from.number()?).ok()?;
        }
        heads.push(Head { name, stamp, meta, extent });
    }
    (from.0.is_empty() && heads.is_sorted_by(|a, b| bytes[a.name.clone()] < bytes[b.name.clone()]))
        .then_some(heads)
}

/// Reads the vocabulary. The lists of its words follow each other in the file, from `start` to `end`.
fn vocabulary_of(bytes: &[u8], start: u64, end: u64) -> Option<Vec<Word>> {
    let mut from = Unpack(bytes);
    let count = from.size().filter(|count| *count <= bytes.len())?;
    let mut vocabulary = Vec::with_capacity(count);
    let mut at = start;
    for _ in 0..count {
        let text = from.place(bytes)?;
        std::str::from_utf8(&bytes[text.clone()]).ok()?;
        let list = at..at.checked_add(from.number()?).filter(|list_end| *list_end <= end)?;
        at = list.end;
        vocabulary.push(Word { text, list, sum: u32::try_from(from.number()?).ok()? });
    }
    (from.0.is_empty() && at == end).then_some(vocabulary)
}

#[cfg(test)]
mod tests;
