//! What the notes in use said when they were last read: their metadata, and how often each word occurs in them.
//!
//! Reading ten thousand files takes longer than all else that a query does. So their words are kept in one file,
//! `.agent-memory/notes.cache`, which may be deleted at any time. It is never trusted: every file is looked at, and one
//! whose size, times or inode differ from the cache, or that was changed so shortly before it was read for the cache
//! that a second change could have the same time, is read as if there were no cache. So is every file if the cache is
//! spoilt, belongs to another store or another version, or is younger than the clock.
//!
//! The file: a header of ten numbers; the notes in the order of their names, with what lists need; then a vocabulary, and
//! for each note the words of it with their counts.

use crate::base::error::{Error, Result};
use crate::base::file::{self, Moment, Stamp};
use crate::base::packed::{Unpack, checksum, put_bytes, put_number};
use crate::base::parallel;
use crate::memory::search::count::{Counts, Extent, FIELDS, Tally, with_document};
use crate::memory::search::lexicon::Target;
use crate::memory::search::query::Query;
use crate::memory::search::words::TOKENIZER;
use crate::store::entry::{EntryId, Meta, pack, unpack};
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use crate::store::topics::{Topics, read};
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAME: &str = "notes.cache";
const MAGIC: u64 = u64::from_le_bytes(*b"axenotes");
/// Another one for each other form of the file.
const VERSION: u64 = 1;
/// The cache is written anew when so many notes differ from it, and one in so many of all.
const DIFFERENT: usize = 64;
const PART: usize = 50;
/// So many files are read for the cache before their words are packed: so few are in memory at once.
const PORTION: usize = 1024;

/// The header's numbers.
const HEADER: usize = 10;
const HEADER_BYTES: usize = HEADER * 8;

/// A note whose file is as the cache knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    cache: &'a Cache,
    head: &'a Head,
}

#[derive(Debug)]
struct Head {
    name: Range<usize>,
    stamp: Stamp,
    /// Empty if the metadata has something that cannot be packed.
    meta: Range<usize>,
    extent: Extent,
    words: Range<usize>,
}

/// Which part of the cache is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Metadata,
    Words,
}

#[derive(Debug)]
pub(crate) struct Cache {
    least: usize,
    heads: Vec<u8>,
    words: Vec<u8>,
    /// In the order of their names.
    notes: Vec<Head>,
    /// The words of the vocabulary, as places in `words`.
    vocabulary: Vec<Range<usize>>,
    /// Notes that were changed before this were settled.
    settled: i64,
    opened: Moment,
    /// How many files were as the cache knows them, and how many were not and could be.
    hits: AtomicUsize,
    misses: AtomicUsize,
}

impl Cache {
    /// Fewer notes are read quickly enough.
    pub(crate) const LEAST: usize = 1000;

    /// The cache of a store; an empty one if there is none that can be used.
    pub(crate) fn open(root: &Root, part: Part) -> Cache {
        Cache::open_with(root, part, Cache::LEAST)
    }

    /// No cache, which is never written either.
    pub(crate) fn none() -> Cache {
        Cache::empty(usize::MAX)
    }

    fn open_with(root: &Root, part: Part, least: usize) -> Cache {
        Cache::load(root, part, least).unwrap_or_else(|| Cache::empty(least))
    }

    fn empty(least: usize) -> Cache {
        Cache {
            least,
            heads: Vec::new(),
            words: Vec::new(),
            notes: Vec::new(),
            vocabulary: Vec::new(),
            settled: i64::MIN,
            opened: Moment::now(),
            hits: AtomicUsize::new(0),
            misses: AtomicUsize::new(0),
        }
    }

    fn load(root: &Root, part: Part, least: usize) -> Option<Cache> {
        let mut cache = Cache::empty(least);
        let (mut file, size) = file::open_regular(&root.state().join(NAME)).ok()?;
        let written = file::written(&file).ok()?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        let (numbers, _) = header.as_chunks::<8>();
        let [magic, version, tokenizer, began, elapsed, heads, heads_sum, words, words_sum, sum] = <[u64;
            HEADER]>::try_from(
            numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Vec<_>>(),
        )
        .ok()?;
        let began = began.cast_signed();
        let is_ours = (magic, version, tokenizer) == (MAGIC, VERSION, TOKENIZER)
            && sum == checksum(&header[..HEADER_BYTES - 8])
            && (HEADER_BYTES as u64).checked_add(heads)?.checked_add(words)? == size;
        // If the clock was set back, a file could get the times that the cache knows a second time.
        if !is_ours || cache.opened.nanoseconds() < written {
            return None;
        }
        let mut section = |length: u64, sum: u64| {
            let mut bytes = vec![0; usize::try_from(length).ok()?];
            file.read_exact(&mut bytes).ok()?;
            (checksum(&bytes) == sum).then_some(bytes)
        };
        cache.heads = section(heads, heads_sum)?;
        cache.notes = heads_of(&cache.heads, root)?;
        cache.settled = file::settled(began, written, elapsed.cast_signed());
        if part == Part::Words {
            cache.words = section(words, words_sum)?;
            cache.vocabulary = vocabulary_of(&cache.words, &mut cache.notes)?;
        }
        Some(cache)
    }

    /// What is known of the note in a file. `None`: it is to be read; if it is a note, [`Cache::missed`] is to be called.
    pub(crate) fn known(&self, path: &Path) -> Option<Known<'_>> {
        if self.notes.is_empty() {
            return None;
        }
        let head = self.head(path)?;
        if file::stamp(path)? != head.stamp || !head.stamp.is_before(self.settled) {
            return None;
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(Known { cache: self, head })
    }

    fn head(&self, path: &Path) -> Option<&Head> {
        let name = path.file_name()?.as_encoded_bytes();
        let at = self.notes.binary_search_by(|head| self.heads[head.name.clone()].cmp(name)).ok()?;
        self.notes.get(at)
    }

    /// A note was read that the cache does not know as it is.
    pub(crate) fn missed(&self, path: &Path) {
        // One that is not settled could not be known from a new cache either.
        let settled = file::settled(self.opened.nanoseconds(), i64::MAX, 0);
        if self.least < usize::MAX && file::stamp(path).is_some_and(|stamp| stamp.is_before(settled)) {
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes the cache anew if so much differs that the next query gains by it. To be called after a scan of all notes,
    /// and when the answer is out.
    ///
    /// # Errors
    /// It cannot be written. The old one, if there is one, is as good as before.
    pub(crate) fn keep_up(&self, root: &Root) -> Result<()> {
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        let different = misses + self.notes.len().saturating_sub(hits);
        let all = hits + misses;
        if all < self.least || different < DIFFERENT.min(self.least).max(all / PART) {
            return Ok(());
        }
        write(root, self.least)
    }
}

impl<'a> Known<'a> {
    pub(super) fn id(&self) -> Option<EntryId> {
        // It is packed first.
        EntryId::whole(Unpack(&self.cache.heads[self.head.meta.clone()]).text()?)
    }

    /// `None` if only the file can say it.
    pub(crate) fn meta(&self) -> Option<Meta> {
        unpack(&self.cache.heads[self.head.meta.clone()])
    }

    fn words(&self) -> &'a [u8] {
        &self.cache.words[self.head.words.clone()]
    }
}

/// What the words of the vocabulary mean to a query.
#[derive(Debug)]
pub(super) struct Meanings {
    /// For each word, 0 if it means nothing, or the number of its targets.
    of_words: Vec<u32>,
    targets: Vec<Vec<Target>>,
}

impl Meanings {
    pub(super) fn of(query: &Query, cache: &Cache) -> Meanings {
        let mut meanings =
            Meanings { of_words: Vec::with_capacity(cache.vocabulary.len()), targets: vec![Vec::new()] };
        for word in &cache.vocabulary {
            let mut targets = Vec::new();
            // Checked when it was loaded.
            if let Ok(word) = std::str::from_utf8(&cache.words[word.clone()]) {
                query.lexicon.look_up(word, |target| targets.push(target));
            }
            if targets.is_empty() {
                meanings.of_words.push(0);
            } else {
                meanings.of_words.push(meanings.targets.len() as u32);
                meanings.targets.push(targets);
            }
        }
        meanings
    }

    /// The counts of a known note, but for its tags. Where it has all words of a phrase, the phrase is said to be there,
    /// and the note has to be read to be sure.
    pub(super) fn counts(&self, query: &Query, known: &Known<'_>) -> Option<Counts> {
        let mut tally: Option<Tally> = None;
        let mut words = [0u64; 8];
        each_count(known.words(), |word, times| {
            // Nearly all words mean nothing.
            let meaning = self.of_words.get(word).copied().unwrap_or(0);
            if meaning == 0 {
                return;
            }
            for target in self.targets.get(meaning as usize).into_iter().flatten() {
                match target {
                    Target::Term { index, nearness } => {
                        tally.get_or_insert_with(|| Tally::of(query)).add(*index, *nearness, times());
                    }
                    Target::Phrase { number, bit } => {
                        if let Some(bits) = words.get_mut(usize::from(*number)) {
                            *bits |= bit;
                        }
                    }
                }
            }
        })?;
        let phrases = query.phrases.iter().zip(words).zip(0..).fold(0, |found, ((phrase, words), at)| {
            let all = phrase.last | (phrase.last - 1);
            found | u8::from(words & all == all) << at
        });
        Some(Counts {
            counts: tally.map_or_else(Vec::new, |mut tally| tally.take()),
            extent: known.head.extent,
            phrases,
            has_tags: false,
        })
    }
}

/// Calls `found` with each word of a note, by its number in the vocabulary, and a function that gives its counts. `None`
/// if the bytes are something else.
#[inline]
fn each_count(words: &[u8], mut found: impl FnMut(usize, &dyn Fn() -> [u16; FIELDS])) -> Option<()> {
    let mut from = Unpack(words);
    let mut word = 0;
    while !from.0.is_empty() {
        let step = from.size()?;
        word = usize::checked_add(word, step >> 1)?;
        if step & 1 == 0 {
            // Once in the body, as most words.
            found(word, &|| [0, 0, 0, 1]);
        } else {
            let mut times = [0; FIELDS];
            for times in &mut times {
                *times = u16::try_from(from.number()?).ok()?;
            }
            found(word, &|| times);
        }
    }
    Some(())
}

/// Reads the notes' heads. The ranges of their words are only lengths one after the other until the words are there.
fn heads_of(bytes: &[u8], root: &Root) -> Option<Vec<Head>> {
    let mut from = Unpack(bytes);
    if from.bytes()? != root.mark() {
        return None;
    }
    let count = from.size().filter(|count| *count <= bytes.len())?;
    let mut heads: Vec<Head> = Vec::with_capacity(count);
    let mut end = 0usize;
    for _ in 0..count {
        let name = from.place(bytes)?;
        let stamp = Stamp::unpack(&mut from)?;
        let meta = from.place(bytes)?;
        let mut extent = Extent::default();
        for number in extent.lengths.iter_mut().chain([&mut extent.lines]) {
            *number = u32::try_from(from.number()?).ok()?;
        }
        let start = end;
        end = start.checked_add(from.size()?)?;
        heads.push(Head { name, stamp, meta, extent, words: start..end });
    }
    (from.0.is_empty() && heads.is_sorted_by(|a, b| bytes[a.name.clone()] < bytes[b.name.clone()]))
        .then_some(heads)
}

/// Reads the vocabulary, and moves the ranges of the notes' words behind it.
fn vocabulary_of(bytes: &[u8], notes: &mut [Head]) -> Option<Vec<Range<usize>>> {
    let mut from = Unpack(bytes);
    let count = from.size().filter(|count| *count <= bytes.len())?;
    let mut vocabulary = Vec::with_capacity(count);
    for _ in 0..count {
        let word = from.place(bytes)?;
        std::str::from_utf8(&bytes[word.clone()]).ok()?;
        vocabulary.push(word);
    }
    let start = bytes.len() - from.0.len();
    for note in notes {
        note.words = start.checked_add(note.words.start)?..start.checked_add(note.words.end)?;
        bytes.get(note.words.clone())?;
    }
    Some(vocabulary)
}

/// What the cache needs of a note that was read.
struct Fresh {
    meta: Vec<u8>,
    extent: Extent,
    words: HashMap<String, [u16; FIELDS]>,
}

impl Fresh {
    fn of(note: &Note) -> Fresh {
        let mut words: HashMap<String, [u16; FIELDS]> = HashMap::new();
        let extent = with_document(note, |document| {
            document.each_word(|field, _, word| {
                let times = match words.get_mut(word.text) {
                    Some(times) => times,
                    None => words.entry(word.text.to_owned()).or_default(),
                };
                times[field] = times[field].saturating_add(1);
            })
        });
        Fresh { meta: pack(note.entry.meta()).unwrap_or_default(), extent, words }
    }
}

/// A file to be known.
enum Entry<'a> {
    /// The cache that is replaced knows it.
    Known(&'a Head),
    Fresh(Stamp, Fresh),
}

/// Makes a cache of all notes in use, with what the old one knows, and writes it all or nothing.
fn write(root: &Root, least: usize) -> Result<()> {
    let began = Moment::now();
    let topics = Topics::at(root);
    let files = topics.files(Place::Topics)?;
    let old = Cache::open_with(root, Part::Words, least);
    let mut new = Writer::new(&old);
    let mut heads = Vec::new();
    put_bytes(&mut heads, root.mark());
    let mut count = 0;
    let mut notes = Vec::new();
    for portion in files.chunks(PORTION) {
        let entries = parallel::map(portion, |_, (place, path)| entry(*place, path, &old));
        for ((_, path), entry) in portion.iter().zip(entries) {
            if let (Some(entry), Some(name)) = (entry, path.file_name()) {
                put_bytes(&mut notes, name.as_encoded_bytes());
                new.put(&mut notes, entry).ok_or_else(|| Error::corrupt("the old cache is spoilt"))?;
                count += 1;
            }
        }
    }
    put_number(&mut heads, count);
    heads.append(&mut notes);
    let words = new.finish();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + heads.len() + words.len());
    let header = [
        MAGIC,
        VERSION,
        TOKENIZER,
        began.nanoseconds().cast_unsigned(),
        began.elapsed().cast_unsigned(),
        heads.len() as u64,
        checksum(&heads),
        words.len() as u64,
        checksum(&words),
    ];
    header.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend(checksum(&bytes).to_le_bytes());
    bytes.append(&mut heads);
    bytes.extend_from_slice(&words);
    root.make()?;
    let path = root.state().join(NAME);
    file::sweep_dir(&root.state(), ".cache", file::LEFT_FOR);
    Ok(file::install(&path, &bytes, 0o600)?)
}

/// `None` for a file that is gone or no note: it is read each time.
fn entry<'a>(place: Place, path: &Path, old: &'a Cache) -> Option<Entry<'a>> {
    if let Some(known) = old.known(path) {
        return Some(Entry::Known(known.head));
    }
    // Before the file is read: if it changes meanwhile, its next stamp is another one.
    let stamp = file::stamp(path)?;
    let note = read(place, path).ok()?;
    Some(Entry::Fresh(stamp, Fresh::of(&note)))
}

/// Numbers words in the order in which they come.
struct Writer<'a> {
    old: &'a Cache,
    /// The new number of each old word, once it has one.
    renumbered: Vec<Option<u32>>,
    numbers: HashMap<Box<str>, u32>,
    vocabulary: Vec<u8>,
    lists: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn new(old: &'a Cache) -> Writer<'a> {
        Writer {
            old,
            renumbered: vec![None; old.vocabulary.len()],
            numbers: HashMap::new(),
            vocabulary: Vec::new(),
            lists: Vec::new(),
        }
    }

    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(word.into(), number);
        put_bytes(&mut self.vocabulary, word.as_bytes());
        number
    }

    fn put(&mut self, heads: &mut Vec<u8>, entry: Entry<'_>) -> Option<()> {
        let old = self.old;
        let mut list: Vec<(u32, [u16; FIELDS])> = Vec::new();
        let (stamp, meta, extent) = match &entry {
            Entry::Fresh(stamp, fresh) => {
                // In order of the words, so that equal notes make equal caches.
                let mut words: Vec<_> = fresh.words.iter().collect();
                words.sort_unstable();
                list.extend(words.into_iter().map(|(word, times)| (self.number(word), *times)));
                (*stamp, &fresh.meta[..], fresh.extent)
            }
            Entry::Known(head) => {
                let mut counts = Vec::new();
                each_count(&old.words[head.words.clone()], |word, times| counts.push((word, times())))?;
                for (word, times) in counts {
                    let number = match *self.renumbered.get(word)? {
                        Some(number) => number,
                        None => {
                            let text = old.vocabulary.get(word).map(|word| &old.words[word.clone()])?;
                            let number = self.number(std::str::from_utf8(text).ok()?);
                            self.renumbered[word] = Some(number);
                            number
                        }
                    };
                    list.push((number, times));
                }
                (head.stamp, &old.heads[head.meta.clone()], head.extent)
            }
        };
        list.sort_unstable_by_key(|(number, _)| *number);
        let start = self.lists.len();
        let mut before = 0;
        for (number, times) in list {
            let step = u64::from(number - before) << 1;
            before = number;
            if times == [0, 0, 0, 1] {
                put_number(&mut self.lists, step);
            } else {
                put_number(&mut self.lists, step | 1);
                times.iter().for_each(|times| put_number(&mut self.lists, u64::from(*times)));
            }
        }
        stamp.pack(heads);
        put_bytes(heads, meta);
        for number in extent.lengths.into_iter().chain([extent.lines]) {
            put_number(heads, u64::from(number));
        }
        put_number(heads, (self.lists.len() - start) as u64);
        Some(())
    }

    /// The vocabulary and the lists of all notes.
    fn finish(mut self) -> Vec<u8> {
        let mut words = Vec::with_capacity(8 + self.vocabulary.len() + self.lists.len());
        put_number(&mut words, self.numbers.len() as u64);
        words.append(&mut self.vocabulary);
        words.append(&mut self.lists);
        words
    }
}

#[cfg(test)]
mod tests;
