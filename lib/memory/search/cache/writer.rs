//! Makes the cache's file anew.

use crate::base::error::Result;
use crate::base::file::{self, Moment, Stamp};
use crate::base::packed::{checksum, put_bytes, put_number};
use crate::memory::search::cache::content::{
    Content, HEADER_BYTES, IN_THE_BODY, MAGIC, NAME, Part, VERSION, each_count,
};
use crate::memory::search::count::{Extent, FIELDS, with_document};
use crate::memory::search::words::TOKENIZER;
use crate::store::entry::{BodyFacts, pack};
use crate::store::persistence::{Note, Place};
use crate::store::place::Root;
use crate::store::topics::{NoteFile, Topics, read};
use std::collections::HashMap;

/// So many files are read before their words are packed: so few are in memory at once.
const PORTION: usize = 1024;

/// What the cache needs of a note that was read.
struct Fresh {
    meta: Vec<u8>,
    body: BodyFacts,
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
        let meta = pack(note.entry.meta()).unwrap_or_default();
        Fresh { meta, body: note.entry.body_facts(), extent, words }
    }
}

/// A file to be known.
enum Entry {
    /// The cache that is replaced knows it, under this index.
    Known(usize),
    Fresh(Stamp, Fresh),
}

/// Makes a cache of all notes in use, with what the old one knows, and writes it all or nothing. A spoilt one is removed,
/// so that the next query makes a new one.
pub(super) fn write(root: &Root) -> Result<()> {
    let old = Content::read(root, Part::Words).unwrap_or_default();
    root.make()?;
    let path = root.state().join(NAME);
    file::sweep_dir(&root.state(), ".cache", file::LEFT_FOR);
    match packed(root, &old)? {
        Some(bytes) => file::install(&path, &bytes, 0o600)?,
        None => file::if_exists(file::forget(&path)).map(drop)?,
    }
    Ok(())
}

/// The bytes of a cache of all notes. `None` if the old one is spoilt.
fn packed(root: &Root, old: &Content) -> Result<Option<Vec<u8>>> {
    let began = Moment::now();
    let files = Topics::at(root).files(&[Place::Topics])?;
    let mut lists = Lists::default();
    // The new index of each note that the old cache knows.
    let mut moved = vec![None; old.notes.len()];
    let (mut count, mut notes) = (0, Vec::new());
    for first in (0..files.len()).step_by(PORTION) {
        let entries = files.map(first..files.len().min(first + PORTION), |file| entry(file, old));
        for (number, entry) in (first..).zip(entries) {
            let Some(entry) = entry else { continue };
            put_bytes(&mut notes, files.get(number).name.as_encoded_bytes());
            match entry {
                Entry::Known(note) => {
                    let head = &old.notes[note];
                    let meta = &old.heads[head.meta.clone()];
                    put_head(&mut notes, &head.stamp, meta, head.body, &head.extent);
                    moved[note] = Some(count);
                }
                Entry::Fresh(stamp, Fresh { meta, body, extent, words }) => {
                    put_head(&mut notes, &stamp, &meta, body, &extent);
                    lists.add(count, &words);
                }
            }
            count += 1;
        }
    }
    if lists.add_known(old, &moved).is_none() {
        return Ok(None);
    }
    let mut heads = Vec::new();
    put_bytes(&mut heads, root.mark());
    put_number(&mut heads, count as u64);
    heads.append(&mut notes);
    let (words, lists) = lists.packed();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + heads.len() + words.len() + lists.len());
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
        lists.len() as u64,
    ];
    header.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes.extend(checksum(&bytes).to_le_bytes());
    bytes.append(&mut heads);
    bytes.extend_from_slice(&words);
    bytes.extend_from_slice(&lists);
    Ok(Some(bytes))
}

/// `None` for a file that is gone or no note: it is read each time.
fn entry(file: NoteFile, old: &Content) -> Option<Entry> {
    if let Some(known) = old.known(file.name) {
        return Some(Entry::Known(known.note));
    }
    let path = file.path();
    // Before the file is read: if it changes meanwhile, its next stamp is another one.
    let stamp = file::stamp(&path)?;
    let note = read(file.place, &path).ok()?;
    Some(Entry::Fresh(stamp, Fresh::of(&note)))
}

fn put_head(to: &mut Vec<u8>, stamp: &Stamp, meta: &[u8], body: BodyFacts, extent: &Extent) {
    stamp.pack(to);
    put_bytes(to, meta);
    put_number(to, body.pack());
    for number in extent.lengths.into_iter().chain([extent.lines]) {
        put_number(to, u64::from(number));
    }
}

/// For each word the notes that have it, packed, since together they are nearly as long as the notes.
#[derive(Default)]
struct Lists(HashMap<Box<str>, List>);

#[derive(Default)]
struct List {
    bytes: Vec<u8>,
    /// The note that was put last.
    last: usize,
}

impl List {
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
    fn add(&mut self, note: usize, words: &HashMap<String, [u16; FIELDS]>) {
        for (word, times) in words {
            match self.0.get_mut(&word[..]) {
                Some(list) => list.put(note, *times),
                None => self.0.entry(word[..].into()).or_default().put(note, *times),
            }
        }
    }

    /// Adds what the old cache says of the notes that it knows. `None` if it is spoilt.
    fn add_known(&mut self, old: &Content, moved: &[Option<usize>]) -> Option<()> {
        let mut all = Vec::new();
        for word in &old.vocabulary {
            all.clear();
            each_count(&old.list(word)?, |note, times| {
                all.extend(moved.get(note)?.map(|note| (note, times)));
                Some(())
            })?;
            if all.is_empty() {
                continue;
            }
            let list = self.0.entry(old.text(word).into()).or_default();
            each_count(&list.bytes, |note, times| {
                all.push((note, times));
                Some(())
            })?;
            all.sort_unstable_by_key(|(note, _)| *note);
            *list = List::default();
            all.iter().for_each(|(note, times)| list.put(*note, *times));
        }
        Some(())
    }

    /// The vocabulary and the lists, in the order of the words.
    fn packed(self) -> (Vec<u8>, Vec<u8>) {
        let mut all: Vec<(Box<str>, List)> = self.0.into_iter().collect();
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
