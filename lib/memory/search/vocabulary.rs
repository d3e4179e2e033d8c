//! What search adds to the cache: for each word of the notes, which of them have it, and how often.
//!
//! Each note's record has its extent. Behind the records are a length, a checksum and a vocabulary of that length; then, for
//! each word, a list of the notes that have it. A query reads only the lists of its own words.

use crate::base::error::Result;
use crate::base::file::Stamp;
use crate::base::packed::{Unpack, checksum, put_bytes, put_number};
use crate::memory::search::count::Counts;
use crate::memory::search::document::{Document, Extent, FIELDS};
use crate::memory::search::lexicon::QueryPart;
use crate::memory::search::query::Query;
use crate::memory::search::words::TOKENIZER;
use crate::store::index::{CacheFormat, KnownNote, NoteCache, record};
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use crate::store::topics::{NoteFile, Topics};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// Another number for each other form of what is added.
const VERSION: u64 = 5;
pub(super) const FORMAT: CacheFormat =
    CacheFormat { name: "notes.cache", magic: *b"axenotes", rules: VERSION << 32 | TOKENIZER };
/// How often most words of a note occur in it: once, in the body.
const IN_THE_BODY: [u16; FIELDS] = [0, 0, 0, 1];
/// So many files are read before their words are packed: so few are in memory at once.
const PORTION: usize = 1024;

pub(super) struct Vocabulary {
    bytes: Vec<u8>,
    pub(super) words: Vec<ListedWord>,
}

pub(super) struct ListedWord {
    text: Range<usize>,
    /// Where its list is in the file.
    list: Range<u64>,
    /// Half of the list's checksum: there are many words.
    sum: u32,
}

impl Vocabulary {
    /// `None` if it is spoilt.
    pub(super) fn read(cache: &NoteCache) -> Option<Vocabulary> {
        let Some(added) = cache.added() else {
            return Some(Vocabulary { bytes: Vec::new(), words: Vec::new() });
        };
        let start = added.start.checked_add(16)?;
        let numbers = cache.read(added.start..start)?;
        let (length, sum) = numbers.split_at_checked(8)?;
        let [length, sum] = [length, sum].map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes));
        let lists = start.checked_add(length)?;
        let bytes = cache.read(start..lists)?;
        if checksum(&bytes) != sum {
            return None;
        }
        // The lists follow each other.
        let (mut from, mut at) = (Unpack(&bytes), lists);
        let words = from.list(|from| {
            let text = from.place(&bytes)?;
            std::str::from_utf8(&bytes[text.clone()]).ok()?;
            let list = at..at.checked_add(from.number()?).filter(|end| *end <= added.end)?;
            at = list.end;
            Some(ListedWord { text, list, sum: u32::try_from(from.number()?).ok()? })
        })?;
        (from.0.is_empty() && at == added.end).then_some(())?;
        Some(Vocabulary { bytes, words })
    }

    fn text(&self, word: &ListedWord) -> &str {
        // Checked when it was read.
        std::str::from_utf8(&self.bytes[word.text.clone()]).unwrap_or_default()
    }
}

/// Calls `found` with each note that has the word, by its index, and how often it does. `None` if the list is spoilt, or if
/// `found` says so.
fn each_note(
    word: &ListedWord,
    cache: &NoteCache,
    found: impl FnMut(usize, [u16; FIELDS]) -> Option<()>,
) -> Option<()> {
    let list = cache.read(word.list.clone()).filter(|list| checksum(list) as u32 == word.sum)?;
    each_count(&list, found)
}

pub(super) fn each_count(
    list: &[u8],
    mut found: impl FnMut(usize, [u16; FIELDS]) -> Option<()>,
) -> Option<()> {
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

impl Query {
    /// What it finds in the notes that the cache knows: the counts of each, by its index. Where one has all words of a phrase,
    /// the phrase is said to be there, and the note has to be read to be sure. `None` if the cache turns out to be spoilt: every
    /// note has to be read.
    pub(super) fn counts_in(&self, cache: &NoteCache) -> Option<Vec<Counts>> {
        let vocabulary = Vocabulary::read(cache)?;
        let notes = cache.len();
        let mut counts = vec![Counts::default(); notes];
        let mut phrases = vec![[0; 8]; if self.phrases.is_empty() { 0 } else { notes }];
        let mut parts = Vec::new();
        for word in &vocabulary.words {
            parts.clear();
            self.lexicon.look_up(vocabulary.text(word), |part| parts.push(part));
            // Nearly all words mean nothing.
            if parts.is_empty() {
                continue;
            }
            each_note(word, cache, |note, times| {
                for part in &parts {
                    match part {
                        QueryPart::Term { index, nearness } => {
                            counts.get_mut(note)?.add(*index, *nearness, times);
                        }
                        QueryPart::Phrase { number, bit } => {
                            *phrases.get_mut(note)?.get_mut(usize::from(*number))? |= bit;
                        }
                    }
                }
                Some(())
            })?;
        }
        let whole = |words: [u64; 8]| {
            self.phrases.iter().zip(words).zip(0..).fold(0, |found, ((phrase, words), at)| {
                let all = phrase.last | (phrase.last - 1);
                found | u8::from(words & all == all) << at
            })
        };
        let all = counts.into_iter().zip(cache.all()).map(|(counts, known)| {
            let phrases = phrases.get(known.index).copied().map_or(0, whole);
            Some(Counts { extent: Extent::unpack(known.more())?, phrases, ..counts.sorted() })
        });
        all.collect()
    }
}

impl Extent {
    fn pack(self) -> Vec<u8> {
        let mut to = Vec::new();
        self.lengths.into_iter().chain([self.lines]).for_each(|number| put_number(&mut to, number.into()));
        to
    }

    fn unpack(mut from: Unpack<'_>) -> Option<Extent> {
        let mut extent = Extent::default();
        for number in extent.lengths.iter_mut().chain([&mut extent.lines]) {
            *number = u32::try_from(from.number()?).ok()?;
        }
        Some(extent)
    }
}

/// How often a note has each of its words.
type Times = HashMap<String, [u16; FIELDS]>;

/// A note of the next cache: its record, its index in the old one, and if that does not know it, its words.
type NextRecord<'a> = (Cow<'a, [u8]>, Option<usize>, Times);

/// Makes a cache of all notes in use, with what the old one knows. A spoilt one is removed, so that the next query makes a new
/// one.
pub(super) fn write(root: &Root) -> Result<()> {
    let old = NoteCache::open(root, FORMAT);
    let files = Topics::at(root).files(&[Place::Topics])?;
    let mut lists = Lists::default();
    // The new index of each note that the old cache knows.
    let mut moved = vec![None; old.len()];
    let (mut count, mut records) = (0, Vec::new());
    for first in (0..files.len()).step_by(PORTION) {
        let portion = first..files.len().min(first + PORTION);
        let next = files.map(portion, |file| next_record(file, &old));
        for (record, known, times) in next.into_iter().flatten() {
            records.extend_from_slice(&record);
            if let Some(index) = known {
                moved[index] = Some(count);
            }
            lists.add(count, &times);
            count += 1;
        }
    }
    if lists.add_known(&old, &moved).is_none() {
        return old.remove();
    }
    let (words, lists) = lists.packed();
    let [length, sum] = [words.len() as u64, checksum(&words)].map(u64::to_le_bytes);
    old.write(count, &records, &[&length, &sum, &words, &lists])
}

/// `None` for a file that is gone or no note, and for a note that cannot be packed: it is read each time.
fn next_record<'a>(file: NoteFile, old: &'a NoteCache) -> Option<NextRecord<'a>> {
    let of_read = |note, stamp: Option<Stamp>| {
        let (times, extent) = times_in(&note);
        let record = record(file, stamp?, note.entry.meta(), note.entry.body_facts(), &extent.pack())?;
        Some((Cow::Owned(record), None, times))
    };
    let of_known = |known: KnownNote<'a>| (Cow::Borrowed(known.bytes()), Some(known.index), Times::new());
    old.look(file, |known| Some(Some(of_known(known))), of_read).ok()?
}

fn times_in(note: &Note) -> (Times, Extent) {
    let mut times = Times::new();
    let extent = Document::of(note).each_word(|field, _, word| match times.get_mut(word.text) {
        Some(times) => times[field] = times[field].saturating_add(1),
        None => times.entry(word.text.to_owned()).or_default()[field] = 1,
    });
    (times, extent)
}

/// For each word the notes that have it, packed, since together they are nearly as long as the notes.
#[derive(Default)]
struct Lists(HashMap<Box<str>, NotesOfWord>);

#[derive(Default)]
struct NotesOfWord {
    bytes: Vec<u8>,
    /// The note that was put last.
    last: usize,
}

impl NotesOfWord {
    /// The notes are to come in their order.
    fn put(&mut self, note: usize, times: [u16; FIELDS]) {
        let step = (note - self.last) as u64;
        self.last = note;
        put_number(&mut self.bytes, step << 1 | u64::from(times != IN_THE_BODY));
        if times != IN_THE_BODY {
            times.iter().for_each(|times| put_number(&mut self.bytes, u64::from(*times)));
        }
    }
}

impl Lists {
    fn add(&mut self, note: usize, words: &Times) {
        for (word, times) in words {
            match self.0.get_mut(&word[..]) {
                Some(list) => list.put(note, *times),
                None => self.0.entry(word[..].into()).or_default().put(note, *times),
            }
        }
    }

    /// Adds what the old cache says of the notes that it knows. `None` if it is spoilt.
    fn add_known(&mut self, old: &NoteCache, moved: &[Option<usize>]) -> Option<()> {
        let vocabulary = Vocabulary::read(old)?;
        let mut all = Vec::new();
        for word in &vocabulary.words {
            all.clear();
            each_note(word, old, |note, times| {
                all.extend(moved.get(note)?.map(|note| (note, times)));
                Some(())
            })?;
            if all.is_empty() {
                continue;
            }
            let list = self.0.entry(vocabulary.text(word).into()).or_default();
            each_count(&list.bytes, |note, times| {
                all.push((note, times));
                Some(())
            })?;
            all.sort_unstable_by_key(|(note, _)| *note);
            *list = NotesOfWord::default();
            all.iter().for_each(|(note, times)| list.put(*note, *times));
        }
        Some(())
    }

    /// The vocabulary and the lists, in the order of the words.
    fn packed(self) -> (Vec<u8>, Vec<u8>) {
        let mut all: Vec<(Box<str>, NotesOfWord)> = self.0.into_iter().collect();
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let (mut words, mut lists) = (Vec::new(), Vec::new());
        put_number(&mut words, all.len() as u64);
        for (word, list) in all {
            put_bytes(&mut words, word.as_bytes());
            put_number(&mut words, list.bytes.len() as u64);
            put_number(&mut words, u64::from(checksum(&list.bytes) as u32));
            lists.extend_from_slice(&list.bytes);
        }
        (words, lists)
    }
}
