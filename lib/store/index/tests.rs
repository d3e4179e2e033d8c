#![allow(clippy::disallowed_methods, reason = "tests do to files what people and editors do")]

use super::*;
use crate::store::topics::Topics;
use std::fs;
use std::path::Path;

const LATER: i64 = 2_500_000_000;
const NAME: &str = "some.cache";

fn open(root: &Root, rules: u64) -> NoteCache {
    NoteCache::open(root, CacheFormat { name: NAME, magic: *b"sometest", rules })
}

fn note(id: &str) -> String {
    format!("---\nid: id__{id}\ntitle: {id}\n---\n\n[[id__ZZZZZZ]]\n")
}

/// A new cache of all notes, and for how many of them the next one could know what is known now.
fn write(root: &Root) -> usize {
    let cache = open(root, 1);
    let made = Topics::at(root).scan_with(&[Place::Topics], |file| {
        let of_read = |note: Note, stamp: Option<Stamp>| {
            cache.missed(stamp);
            let meta = note.entry.meta();
            (meta.id.clone(), record(file, stamp.unwrap(), meta, note.entry.body_facts(), b"more").unwrap())
        };
        cache.look(file, |known| Some((known.id()?, known.bytes().to_vec())), of_read)
    });
    let records = made.unwrap().found;
    cache.write(records.len(), &records.concat(), &[b"ad", b"ded"]).unwrap();
    cache.misses.into_inner()
}

/// A store of two notes, and a cache that knows both as if they had been read later than they were.
fn stored() -> (tempfile::TempDir, Root, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::at(dir.path());
    root.make().unwrap();
    let paths: Vec<PathBuf> = ["a.md", "b.md"].map(|name| root.topics().join(name)).into();
    for (path, id) in paths.iter().zip(["AAAAAA", "BBBBBB"]) {
        fs::write(path, note(id)).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(20));
    write(&root);
    settle(&root.state().join(NAME));
    (dir, root, paths)
}

/// Makes a cache know its notes though they are as young as the test.
pub fn settle(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let at = |number: usize| number * 8..number * 8 + 8;
    let began = i64::from_le_bytes(bytes[at(2)].try_into().unwrap());
    bytes[at(2)].copy_from_slice(&(began + LATER).to_le_bytes());
    bytes[at(3)].copy_from_slice(&(-LATER).to_le_bytes());
    let sum = checksum(&bytes[..HEADER_BYTES - 8]);
    bytes[at(6)].copy_from_slice(&sum.to_le_bytes());
    fs::write(path, bytes).unwrap();
}

fn knows(root: &Root, rules: u64, paths: &[PathBuf]) -> Vec<bool> {
    let cache = open(root, rules);
    let is_known = |path: &PathBuf| cache.known(file_of(Place::Topics, path)).is_some();
    paths.iter().map(is_known).collect()
}

fn file_of(place: Place, path: &Path) -> NoteFile<'_> {
    NoteFile::at(place, path.parent().unwrap(), path.file_name().unwrap())
}

#[test]
fn a_note_is_known_until_its_file_changes() {
    let (_dir, root, paths) = stored();
    assert_eq!(knows(&root, 1, &paths), [true, true]);
    let cache = open(&root, 1);
    let known = cache.known(file_of(Place::Topics, &paths[1])).unwrap();
    assert_eq!((known.id().unwrap().as_str(), known.more().0), ("id__BBBBBB", &b"more"[..]));
    let view = known.view().unwrap();
    assert_eq!((&view.path, view.note().unwrap().entry.meta()), (&paths[1], &view.meta));
    assert_eq!(cache.read(cache.added().unwrap()).unwrap(), b"added");
    assert!(cache.known(file_of(Place::Archive, &paths[1])).is_none());
    // The same size, and the time of modification as it was.
    let time = fs::metadata(&paths[0]).unwrap().modified().unwrap();
    fs::write(&paths[0], note("AAAAAA").replace("ZZZZZZ", "YYYYYY")).unwrap();
    fs::File::options().write(true).open(&paths[0]).unwrap().set_modified(time).unwrap();
    assert_eq!(knows(&root, 1, &paths), [false, true]);
    fs::rename(&paths[1], &paths[0]).unwrap();
    assert_eq!(knows(&root, 1, &paths), [false, false]);
    assert!(view.note().is_some(), "it was read before");
    assert!(known.view().unwrap().note().is_none());
}

#[test]
fn other_rules_another_store_and_a_spoilt_file_are_no_cache() {
    let (_dir, root, paths) = stored();
    assert_eq!(knows(&root, 2, &paths), [false, false]);
    let path = root.state().join(NAME);
    let whole = fs::read(&path).unwrap();
    let records = whole.len() - "added".len();
    for at in 0..records {
        let mut spoilt = whole.clone();
        spoilt[at] ^= 1;
        fs::write(&path, &spoilt).unwrap();
        assert_eq!(knows(&root, 1, &paths), [false, false], "byte {at}");
    }
    for end in [0, 1, HEADER_BYTES, records - 1] {
        fs::write(&path, &whole[..end]).unwrap();
        assert_eq!(knows(&root, 1, &paths), [false, false], "{end} bytes");
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(knows(&root, 1, &paths), [true, true]);
    let other = tempfile::tempdir().unwrap();
    let other = Root::at(other.path());
    other.make().unwrap();
    fs::write(other.state().join(NAME), &whole).unwrap();
    assert_eq!(knows(&other, 1, &paths), [false, false]);
}

#[test]
fn a_note_as_young_as_its_reading_is_read_again() {
    let (_dir, root, paths) = stored();
    fs::write(&paths[0], note("CCCCCC")).unwrap();
    assert_eq!(write(&root), 0, "it is not settled");
    assert_eq!(knows(&root, 1, &paths), [false, false]);
}
