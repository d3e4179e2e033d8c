//! The cache's file, and what is read of it.
//!
//! The file: a header of eleven numbers; the notes in the order of their names, with what lists need; a vocabulary; then,
//! for each word, a list of the notes that have it, and how often. A query reads only the lists of its own words.

use crate::base::file::{self, Dir, Moment, Stamp};
use crate::base::packed::{Unpack, checksum};
use crate::memory::search::count::{Extent, FIELDS};
use crate::memory::search::words::TOKENIZER;
use crate::store::entry::{BodyFacts, EntryId, Meta, unpack};
use crate::store::place::Root;
use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};

pub(super) const NAME: &str = "notes.cache";
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"axenotes");
/// Another one for each other form of the file.
pub(super) const VERSION: u64 = 3;
/// How often most words of a note occur in it: once, in the body.
pub(super) const IN_THE_BODY: [u16; FIELDS] = [0, 0, 0, 1];

const UNCHECKED: u8 = 0;
const SAME: u8 = 1;
/// The scan has come by: what was checked ahead is used once.
const TAKEN: u8 = 2;

/// The header's numbers.
const HEADER: usize = 11;
pub(super) const HEADER_BYTES: usize = HEADER * 8;

/// A note whose file is as the cache knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    content: &'a Content,
    /// Its index.
    pub(super) note: usize,
    pub(super) head: &'a Head,
}

#[derive(Debug)]
pub(super) struct Head {
    name: Range<usize>,
    pub(super) stamp: Stamp,
    /// Empty if the metadata has something that cannot be packed.
    pub(super) meta: Range<usize>,
    pub(super) body: BodyFacts,
    pub(super) extent: Extent,
}

/// A word of the vocabulary.
#[derive(Debug)]
pub(super) struct Word {
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

/// What was read from the file. By default nothing.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) heads: Vec<u8>,
    words: Vec<u8>,
    /// In the order of their names.
    pub(super) notes: Vec<Head>,
    /// The words are places in `words`.
    pub(super) vocabulary: Vec<Word>,
    /// The file, for its lists.
    file: Option<Mutex<fs_err::File>>,
    /// Notes that were changed before this were settled.
    settled: i64,
    /// Where the notes lie.
    dir: Option<Dir>,
    /// For each note whether its file was checked ahead.
    ahead: Vec<AtomicU8>,
    /// When the directory had last changed before that, in nanoseconds since 1970.
    ahead_of: OnceLock<i64>,
    is_ahead_valid: OnceLock<bool>,
}

impl Content {
    pub(super) fn read(root: &Root, part: Part) -> Option<Content> {
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
        let ahead = notes.iter().map(|_| AtomicU8::new(UNCHECKED)).collect();
        let (ahead_of, is_ahead_valid) = (OnceLock::new(), OnceLock::new());
        let dir = Some(Dir::open(&root.topics()).ok()?);
        let file = Some(Mutex::new(file));
        Some(Content {
            heads,
            words: text,
            notes,
            vocabulary,
            file,
            settled,
            dir,
            ahead,
            ahead_of,
            is_ahead_valid,
        })
    }

    pub(super) fn text(&self, word: &Word) -> &str {
        // Checked when it was loaded.
        std::str::from_utf8(&self.words[word.text.clone()]).unwrap_or_default()
    }

    /// The list of a word. `None` if it is spoilt.
    pub(super) fn list(&self, word: &Word) -> Option<Vec<u8>> {
        let mut file = self.file.as_ref()?.lock().ok()?;
        let length = word.list.end.checked_sub(word.list.start)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.seek(SeekFrom::Start(word.list.start)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        (checksum(&bytes) as u32 == word.sum).then_some(bytes)
    }

    pub(super) fn known(&self, name: &OsStr) -> Option<Known<'_>> {
        let bytes = name.as_encoded_bytes();
        let note = self.notes.binary_search_by(|head| self.heads[head.name.clone()].cmp(bytes)).ok()?;
        let head = self.notes.get(note)?;
        let ahead = self.ahead.get(note)?.swap(TAKEN, Ordering::Relaxed);
        let is_same = (ahead == SAME && self.is_ahead_valid()) || self.is_same(head);
        is_same.then_some(Known { content: self, note, head })
    }

    /// Is this note's file as it was?
    fn is_same(&self, head: &Head) -> bool {
        let name = file::name_of(&self.heads[head.name.clone()]);
        let stamp = name.zip(self.dir.as_ref()).and_then(|(name, dir)| dir.stamp(name));
        stamp.is_some_and(|stamp| stamp == head.stamp) && head.stamp.is_before(self.settled)
    }

    /// Checks the files from the last one backwards while the directory is listed, until it meets one that the scan has
    /// checked. Not if the directory has changed after `settled`, in nanoseconds since 1970: a further change could leave it
    /// with the same time.
    pub(super) fn check_ahead(&self, settled: i64) {
        let changed = self.dir.as_ref().and_then(Dir::changed).filter(|changed| *changed < settled);
        if changed.is_none_or(|changed| self.ahead_of.set(changed).is_err()) {
            return;
        }
        for (head, ahead) in self.notes.iter().zip(&self.ahead).rev() {
            let (was, order) = (UNCHECKED, Ordering::Relaxed);
            if self.is_same(head) && ahead.compare_exchange(was, SAME, order, order).is_err() {
                return;
            }
        }
    }

    /// A note that is merged into another, or gets another name, changes the directory. If it has changed since the files
    /// were checked, they are as of before the listing, and do not go together with it.
    fn is_ahead_valid(&self) -> bool {
        let changed = || self.dir.as_ref().and_then(Dir::changed);
        *self.is_ahead_valid.get_or_init(|| changed().as_ref() == self.ahead_of.get())
    }
}

impl Known<'_> {
    /// Its file's name.
    pub(crate) fn name(&self) -> Option<&OsStr> {
        file::name_of(&self.content.heads[self.head.name.clone()])
    }

    pub(crate) fn id(&self) -> Option<EntryId> {
        // It is packed first.
        EntryId::whole(Unpack(&self.content.heads[self.head.meta.clone()]).text()?)
    }

    pub(crate) fn body(&self) -> BodyFacts {
        self.head.body
    }

    /// `None` if only the file can say it.
    pub(crate) fn meta(&self) -> Option<Meta> {
        unpack(&self.content.heads[self.head.meta.clone()])
    }
}

/// Calls `found` with each note of a word's list, by its index, and how often it has the word. `None` if the bytes are
/// something else, or if `found` says so.
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

/// Reads the notes' heads.
fn heads_of(bytes: &[u8], root: &Root) -> Option<Vec<Head>> {
    let mut from = Unpack(bytes);
    if from.bytes()? != root.mark() {
        return None;
    }
    let heads = from.list(|from| {
        let name = from.place(bytes)?;
        let stamp = Stamp::unpack(from)?;
        let meta = from.place(bytes)?;
        let body = BodyFacts::unpack(from.number()?);
        let mut extent = Extent::default();
        for number in extent.lengths.iter_mut().chain([&mut extent.lines]) {
            *number = u32::try_from(from.number()?).ok()?;
        }
        Some(Head { name, stamp, meta, body, extent })
    })?;
    (from.0.is_empty() && heads.is_sorted_by(|a, b| bytes[a.name.clone()] < bytes[b.name.clone()]))
        .then_some(heads)
}

/// Reads the vocabulary. The lists of its words follow each other in the file, from `start` to `end`.
fn vocabulary_of(bytes: &[u8], start: u64, end: u64) -> Option<Vec<Word>> {
    let mut from = Unpack(bytes);
    let mut at = start;
    let vocabulary = from.list(|from| {
        let text = from.place(bytes)?;
        std::str::from_utf8(&bytes[text.clone()]).ok()?;
        let list = at..at.checked_add(from.number()?).filter(|list_end| *list_end <= end)?;
        at = list.end;
        Some(Word { text, list, sum: u32::try_from(from.number()?).ok()? })
    })?;
    (from.0.is_empty() && at == end).then_some(vocabulary)
}
