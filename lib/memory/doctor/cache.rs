//! What the notes said when the doctor last read them: metadata, links, and how many lines they have.
//!
//! To search every note for secrets and dangers takes longer than all else that the doctor does. So notes in which it
//! found neither are remembered in one file, `.agent-memory/doctor.cache`, which may be deleted at any time. It is never
//! trusted: every file is looked at, and one whose size, times or inode differ, or that was so young that a second change
//! could have the same time, is read as if there were no cache. So is every file if the cache is spoilt, belongs to
//! another store, is younger than the clock, or was written by another program or with other patterns: what is a secret
//! depends on both.
//!
//! The file: a header of seven numbers, then the store's path, then a record for each note in the order of the files.

use crate::base::error::Result;
use crate::base::file::{self, Moment, Stamp};
use crate::base::packed::{Unpack, checksum, put_bytes, put_number, put_signed};
use crate::config::memory::Redact;
use crate::store::entry::{BodyFacts, EntryId, Meta, pack, unpack};
use crate::store::persistence::Place;
use crate::store::place::Root;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

const NAME: &str = "doctor.cache";
/// Another one for each other form of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"axeheal2");
/// Fewer notes are read quickly enough.
const LEAST: usize = 1000;
/// The cache is written anew when so many notes differ from it, and one in so many of all.
const DIFFERENT: usize = 64;
const PART: usize = 50;

/// The header's numbers.
const HEADER: usize = 7;
const HEADER_BYTES: usize = HEADER * 8;

/// What is remembered of a note without secrets and dangers.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) meta: Meta,
    pub(super) body: BodyFacts,
    pub(super) lines: usize,
    pub(super) links: Vec<EntryId>,
}

/// A note as it is written into the next cache.
#[derive(Debug)]
pub(super) enum Record {
    /// As in this one.
    Known(Range<usize>),
    /// `is_settled`: the next cache will know it.
    Fresh { bytes: Vec<u8>, is_settled: bool },
}

#[derive(Debug)]
struct Head {
    place: Place,
    name: Range<usize>,
    stamp: Stamp,
    rest: Range<usize>,
    whole: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct Cache {
    /// `None`: none is used, and none is written.
    rules: Option<u64>,
    bytes: Vec<u8>,
    heads: Vec<Head>,
    /// Notes that were changed before this were settled.
    settled: i64,
    opened: Moment,
}

impl Cache {
    pub(super) fn open(root: &Root, redact: &Redact) -> Cache {
        let rules = rules(redact);
        let mut cache =
            Cache { rules, bytes: Vec::new(), heads: Vec::new(), settled: i64::MIN, opened: Moment::now() };
        if cache.load(root).is_none() {
            cache.heads.clear();
        }
        cache
    }

    fn load(&mut self, root: &Root) -> Option<()> {
        let (mut file, size) = file::open_regular(&root.state().join(NAME)).ok()?;
        let written = file::written(&file).ok()?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        let (numbers, _) = header.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let [magic, rules, began, elapsed, length, bytes_sum, sum] =
            <[u64; HEADER]>::try_from(numbers).ok()?;
        let is_ours = (magic, Some(rules)) == (MAGIC, self.rules)
            && sum == checksum(&header[..HEADER_BYTES - 8])
            && (HEADER_BYTES as u64).checked_add(length)? == size;
        // If the clock was set back, a file could get the times that the cache knows a second time.
        if !is_ours || self.opened.nanoseconds() < written {
            return None;
        }
        self.bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact(&mut self.bytes).ok()?;
        if checksum(&self.bytes) != bytes_sum {
            return None;
        }
        self.heads = heads(&self.bytes, root)?;
        self.settled = file::settled(began.cast_signed(), written, elapsed.cast_signed());
        Some(())
    }

    /// The record of a file that is as the cache knows it. `None`: it is to be read.
    pub(super) fn known(&self, place: Place, path: &Path) -> Option<(Known, Record)> {
        if self.heads.is_empty() {
            return None;
        }
        let name = path.file_name()?.as_encoded_bytes();
        let key = |head: &Head| (head.place, &self.bytes[head.name.clone()]);
        let at = self.heads.binary_search_by(|head| key(head).cmp(&(place, name))).ok()?;
        let head = self.heads.get(at)?;
        if file::stamp(path)? != head.stamp || !head.stamp.is_before(self.settled) {
            return None;
        }
        let mut rest = Unpack(&self.bytes[head.rest.clone()]);
        let meta = unpack(rest.bytes()?)?;
        let body = BodyFacts::unpack(rest.number()?);
        let lines = rest.size()?;
        let links = rest.list(|rest| EntryId::whole(rest.text()?))?;
        Some((Known { meta, body, lines, links }, Record::Known(head.whole.clone())))
    }

    /// The record of a note that was read; `stamp` is of before. `None`: it is read each time.
    pub(super) fn fresh(&self, place: Place, path: &Path, stamp: Stamp, known: &Known) -> Option<Record> {
        self.rules?;
        let Known { meta, body, lines, links } = known;
        let meta = pack(meta)?;
        let mut bytes = Vec::with_capacity(meta.len() + 256);
        put_number(&mut bytes, u64::from(place == Place::Archive));
        put_bytes(&mut bytes, path.file_name()?.as_encoded_bytes());
        stamp.pack(&mut bytes);
        let mut rest = Vec::with_capacity(meta.len() + 64);
        put_bytes(&mut rest, &meta);
        put_number(&mut rest, body.pack());
        put_number(&mut rest, *lines as u64);
        put_number(&mut rest, links.len() as u64);
        links.iter().for_each(|id| put_bytes(&mut rest, id.as_str().as_bytes()));
        put_bytes(&mut bytes, &rest);
        let is_settled = stamp.is_before(file::settled(self.opened.nanoseconds(), i64::MAX, 0));
        Some(Record::Fresh { bytes, is_settled })
    }

    /// Writes the cache anew from the records of all files, in their order, if so much differs that the next run gains by
    /// it. To be called when the answer is out.
    ///
    /// # Errors
    /// It cannot be written. The old one, if there is one, is as good as before.
    pub(super) fn keep_up(&self, root: &Root, records: &[Record]) -> Result<()> {
        let known = records.iter().filter(|record| matches!(record, Record::Known(_))).count();
        let new =
            records.iter().filter(|record| matches!(record, Record::Fresh { is_settled: true, .. })).count();
        let different = new + self.heads.len().saturating_sub(known);
        match records.len() < LEAST || different < DIFFERENT.max(records.len() / PART) {
            true => Ok(()),
            false => self.write(root, records),
        }
    }

    /// All or nothing.
    fn write(&self, root: &Root, records: &[Record]) -> Result<()> {
        let Some(rules) = self.rules else { return Ok(()) };
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, root.mark());
        put_number(&mut bytes, records.len() as u64);
        for record in records {
            bytes.extend_from_slice(match record {
                Record::Known(whole) => &self.bytes[whole.clone()],
                Record::Fresh { bytes, .. } => bytes,
            });
        }
        let numbers = [
            MAGIC,
            rules,
            self.opened.nanoseconds().cast_unsigned(),
            self.opened.elapsed().cast_unsigned(),
            bytes.len() as u64,
            checksum(&bytes),
        ];
        let mut all = Vec::with_capacity(HEADER_BYTES + bytes.len());
        numbers.iter().for_each(|number| all.extend(number.to_le_bytes()));
        all.extend(checksum(&all).to_le_bytes());
        all.append(&mut bytes);
        root.make()?;
        Ok(file::install(&root.state().join(NAME), &all, 0o600)?)
    }
}

fn heads(bytes: &[u8], root: &Root) -> Option<Vec<Head>> {
    let mut from = Unpack(bytes);
    if from.bytes()? != root.mark() {
        return None;
    }
    let heads = from.list(|from| {
        let start = bytes.len() - from.0.len();
        let place = if from.number()? == 0 { Place::Topics } else { Place::Archive };
        let name = from.place(bytes)?;
        let stamp = Stamp::unpack(from)?;
        let rest = from.place(bytes)?;
        Some(Head { place, name, stamp, rest, whole: start..bytes.len() - from.0.len() })
    })?;
    let key = |head: &Head| (head.place, &bytes[head.name.clone()]);
    (from.0.is_empty() && heads.is_sorted_by(|a, b| key(a) < key(b))).then_some(heads)
}

/// What decides whether a text has a secret or a danger: this program's code, and the patterns of the configuration.
fn rules(redact: &Redact) -> Option<u64> {
    let own = std::env::current_exe().ok()?;
    let stamp = file::stamp(&own)?;
    let mut bytes = Vec::new();
    put_bytes(&mut bytes, own.as_os_str().as_encoded_bytes());
    put_number(&mut bytes, stamp.size);
    put_signed(&mut bytes, stamp.modified);
    put_signed(&mut bytes, stamp.changed);
    put_number(&mut bytes, stamp.inode);
    put_number(&mut bytes, u64::from(redact.enabled));
    redact.patterns.iter().for_each(|pattern| put_bytes(&mut bytes, pattern.as_bytes()));
    Some(checksum(&bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests do to files what people and editors do")]

    use super::*;
    use crate::store::topics::read;
    use std::fs;
    use std::path::PathBuf;

    const LATER: i64 = 2_500_000_000;

    fn redact(patterns: &[&str]) -> Redact {
        Redact { enabled: true, patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect() }
    }

    fn note(id: &str) -> String {
        format!("---\nid: id__{id}\ntitle: {id}\n---\n\n[[id__ZZZZZZ]]\n")
    }

    fn record(cache: &Cache, path: &Path) -> Record {
        let stamp = file::stamp(path).unwrap();
        let entry = read(Place::Topics, path).unwrap().entry;
        let links = vec![EntryId::parse("ZZZZZZ").unwrap()];
        let known = Known { body: entry.body_facts(), meta: entry.into_meta(), lines: 7, links };
        cache.fresh(Place::Topics, path, stamp, &known).unwrap()
    }

    /// A store of two notes, and a cache that knows both as if they had been read later than they were.
    fn stored() -> (tempfile::TempDir, Root, Vec<PathBuf>) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        root.make().unwrap();
        let paths: Vec<PathBuf> = ["a", "b"].map(|name| root.topics().join(name)).into();
        for (path, id) in paths.iter().zip(["AAAAAA", "BBBBBB"]) {
            fs::write(path, note(id)).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        let cache = Cache::open(&root, &redact(&[]));
        let records: Vec<Record> = paths.iter().map(|path| record(&cache, path)).collect();
        cache.write(&root, &records).unwrap();
        let path = root.state().join(NAME);
        let mut bytes = fs::read(&path).unwrap();
        let at = |number: usize| number * 8..number * 8 + 8;
        let began = i64::from_le_bytes(bytes[at(2)].try_into().unwrap());
        bytes[at(2)].copy_from_slice(&(began + LATER).to_le_bytes());
        bytes[at(3)].copy_from_slice(&(-LATER).to_le_bytes());
        let sum = checksum(&bytes[..HEADER_BYTES - 8]);
        bytes[at(6)].copy_from_slice(&sum.to_le_bytes());
        fs::write(path, bytes).unwrap();
        (dir, root, paths)
    }

    fn knows(root: &Root, patterns: &[&str], paths: &[PathBuf]) -> Vec<bool> {
        let cache = Cache::open(root, &redact(patterns));
        paths.iter().map(|path| cache.known(Place::Topics, path).is_some()).collect()
    }

    #[test]
    fn a_note_is_known_until_its_file_changes() {
        let (_dir, root, paths) = stored();
        assert_eq!(knows(&root, &[], &paths), [true, true]);
        let (known, _) = Cache::open(&root, &redact(&[])).known(Place::Topics, &paths[1]).unwrap();
        assert_eq!((known.meta.id.as_str(), known.lines), ("id__BBBBBB", 7));
        assert_eq!(known.links[0].as_str(), "id__ZZZZZZ");
        assert!(Cache::open(&root, &redact(&[])).known(Place::Archive, &paths[1]).is_none());
        // The same size, and the time of modification as it was.
        let time = fs::metadata(&paths[0]).unwrap().modified().unwrap();
        fs::write(&paths[0], note("AAAAAA").replace("ZZZZZZ", "YYYYYY")).unwrap();
        fs::File::options().write(true).open(&paths[0]).unwrap().set_modified(time).unwrap();
        assert_eq!(knows(&root, &[], &paths), [false, true]);
        fs::rename(&paths[1], &paths[0]).unwrap();
        assert_eq!(knows(&root, &[], &paths), [false, false]);
    }

    #[test]
    fn other_patterns_another_store_and_a_spoilt_file_are_no_cache() {
        let (_dir, root, paths) = stored();
        assert_eq!(knows(&root, &["x"], &paths), [false, false]);
        let path = root.state().join(NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut spoilt = whole.clone();
            spoilt[at] ^= 1;
            fs::write(&path, &spoilt).unwrap();
            assert_eq!(knows(&root, &[], &paths), [false, false], "byte {at}");
        }
        for end in [0, 1, HEADER_BYTES, whole.len() - 1] {
            fs::write(&path, &whole[..end]).unwrap();
            assert_eq!(knows(&root, &[], &paths), [false, false], "{end} bytes");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(knows(&root, &[], &paths), [true, true]);
        let other = tempfile::tempdir().unwrap();
        let other = Root::at(other.path());
        other.make().unwrap();
        fs::write(other.state().join(NAME), &whole).unwrap();
        assert_eq!(knows(&other, &[], &paths), [false, false]);
    }

    #[test]
    fn a_note_as_young_as_its_reading_is_read_again() {
        let (_dir, root, paths) = stored();
        fs::write(&paths[0], note("CCCCCC")).unwrap();
        let cache = Cache::open(&root, &redact(&[]));
        let records: Vec<Record> = paths.iter().map(|path| record(&cache, path)).collect();
        assert!(matches!(records[0], Record::Fresh { is_settled: false, .. }));
        cache.write(&root, &records).unwrap();
        assert_eq!(knows(&root, &[], &paths), [false, false]);
    }
}
