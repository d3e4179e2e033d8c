//! Notes as files, asked for past the programs.

#![allow(clippy::disallowed_methods, reason = "a test may write files")]

use super::*;
use crate::store::change::Change;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const BOTH: [Place; 2] = [Place::Topics, Place::Archive];

fn note(id: &str, more: &str) -> String {
    format!("---\nid: id__{id}\ntitle: {id}\n{more}---\n\nbody\n")
}

fn id(digits: &str) -> EntryId {
    EntryId::parse(digits).unwrap()
}

struct Bench {
    dir: tempfile::TempDir,
    topics: Topics,
}

impl Bench {
    fn new(files: &[(&str, String)]) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let bench = Bench { topics: Topics::at(&Root::at(dir.path())), dir };
        for place in ["topics", "archive"] {
            fs::create_dir(bench.dir.path().join(place)).unwrap();
        }
        for (path, text) in files {
            fs::write(bench.dir.path().join(path), text).unwrap();
        }
        bench
    }

    /// The ids that a scan sees, and the names that it calls broken.
    fn seen(&self, places: &[Place]) -> (Vec<String>, Vec<String>) {
        let scan = self.topics.scan(places, |note| note.entry.meta().id.as_str()[4..].to_owned()).unwrap();
        let name = |broken: Broken| broken.path.file_name().unwrap().to_str().unwrap().to_owned();
        (scan.found, scan.broken.into_iter().map(name).collect())
    }
}

#[test]
fn a_scan_goes_by_name_and_place() {
    let bench = Bench::new(&[
        ("topics/b.md", note("AAAAAA", "")),
        ("topics/a.md", note("BBBBBB", "")),
        ("topics/c.txt", note("CCCCCC", "")),
        ("topics/.d.md", note("DDDDDD", "")),
        ("archive/0.md", note("EEEEEE", "")),
        ("archive/x.md", "x".to_owned()),
    ]);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    assert_eq!(bench.seen(&[Place::Topics]), (words(&["BBBBBB", "AAAAAA"]), vec![]));
    assert_eq!(bench.seen(&BOTH), (words(&["BBBBBB", "AAAAAA", "EEEEEE"]), words(&["x.md"])));
    assert!(!bench.dir.path().join(".agent-memory").exists(), "a scan made something");
}

#[test]
fn many_notes_are_read_by_threads_in_the_order_of_one() {
    let digit = |n: usize| char::from(b"123456789ABCDEFGHJKLMNPQRSTUVWXYZ"[n]);
    let ids: Vec<String> =
        (0..500).map(|n| format!("AAA{}{}{}", digit(n / 100), digit(n / 10 % 10), digit(n % 10))).collect();
    let files: Vec<(String, String)> =
        ids.iter().map(|id| (format!("topics/{id}.md"), note(id, ""))).collect();
    let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    assert_eq!(Bench::new(&files).seen(&BOTH), (ids, vec![]));
}

#[test]
fn of_twins_the_one_that_is_named_after_the_id_stays() {
    let bench = Bench::new(&[
        ("topics/a.md", note("AAAAAA", "used: 1\n")),
        ("topics/b -- id__AAAAAA.md", note("AAAAAA", "used: 2\n")),
        ("topics/c.md", note("AAAAAA", "used: 3\n")),
    ]);
    let (found, broken) = bench.seen(&BOTH);
    assert_eq!((found.len(), broken), (1, vec!["a.md".to_owned(), "c.md".to_owned()]));
    assert_eq!(bench.topics.find(&id("AAAAAA")).unwrap().entry.meta().used, 2);
}

#[test]
fn a_note_that_is_renamed_while_it_is_looked_for_is_seen_once() {
    let bench = Bench::new(&[("topics/a.md", note("AAAAAA", "")), ("topics/b.md", note("BBBBBB", ""))]);
    let calls = AtomicUsize::new(0);
    let dir = bench.dir.path().join("topics");
    let scan = bench
        .topics
        .scan(&BOTH, |note| {
            // After the names were read, before the second file is.
            if calls.fetch_add(1, SeqCst) == 0 {
                fs::rename(dir.join("b.md"), dir.join("0.md")).unwrap();
            }
            note.entry.meta().id.to_string()
        })
        .unwrap();
    assert_eq!((scan.found, scan.broken), (vec!["id__BBBBBB".to_owned(), "id__AAAAAA".to_owned()], vec![]));
    // One that was read, and then renamed and read again, has one name left.
    let calls = AtomicUsize::new(0);
    let scan = bench.topics.scan(&BOTH, |note| {
        if calls.fetch_add(1, SeqCst) == 0 {
            fs::rename(&note.path, dir.join("a.md")).unwrap();
        }
        note.entry.meta().id.to_string()
    });
    assert_eq!(scan.unwrap().found.iter().filter(|id| *id == "id__BBBBBB").count(), 1);
}

#[test]
fn an_alias_is_found_and_is_no_note_of_its_own() {
    let bench = Bench::new(&[
        ("topics/a.md", note("AAAAAA", "aliases: [id__BBBBBB]\n")),
        ("archive/c.md", note("CCCCCC", "supersededBy: id__BBBBBB\n")),
    ]);
    for digits in ["AAAAAA", "BBBBBB", "CCCCCC"] {
        assert_eq!(bench.topics.find(&id(digits)).unwrap().entry.meta().id, id("AAAAAA"), "{digits}");
    }
    assert!(bench.topics.find_own(&id("BBBBBB")).is_err());
    assert_eq!(bench.topics.find_own(&id("CCCCCC")).unwrap().place, Place::Archive);
    // The id itself comes before an alias of the same letters.
    fs::write(bench.dir.path().join("archive/b.md"), note("BBBBBB", "")).unwrap();
    assert_eq!(bench.topics.find(&id("BBBBBB")).unwrap().entry.meta().id, id("BBBBBB"));
}

#[test]
fn every_known_id_is_taken_that_of_a_broken_file_too() {
    let bench = Bench::new(&[
        ("topics/a.md", note("AAAAAA", "aliases: [id__BBBBBB]\n")),
        ("archive/c.md", note("CCCCCC", "")),
        ("topics/torn -- id__DDDDDD.md", "---".to_owned()),
        ("topics/ä.md", "---".to_owned()),
        ("topics/.md", "---".to_owned()),
    ]);
    let expected: BTreeSet<_> = ["AAAAAA", "BBBBBB", "CCCCCC", "DDDDDD"].map(id).into();
    assert_eq!(bench.topics.ids().unwrap(), expected);
}

#[test]
fn a_new_note_takes_nobodys_place() {
    let bench = Bench::new(&[]);
    let entry = Entry::parse(note("AAAAAA", "").into_bytes()).unwrap();
    let change = Change::of(&bench.topics).unwrap();
    let added = change.add(entry.clone()).unwrap();
    assert!(!added.path.exists());
    change.write().unwrap();
    assert_eq!(added.path.file_name().unwrap(), "aaaaaa -- id__AAAAAA.md");
    assert_eq!(fs::read(&added.path).unwrap(), entry.bytes());
    let again = Change::of(&bench.topics).unwrap().add(entry);
    assert!(again.err().unwrap().message().contains("exists already"));
}

#[test]
fn the_lock_is_free_again_when_it_is_dropped() {
    let bench = Bench::new(&[]);
    drop(bench.topics.lock().unwrap());
    let lock = bench.topics.lock().unwrap();
    let file = fs::File::open(bench.dir.path().join(".agent-memory/store.lock")).unwrap();
    assert!(file.try_lock().is_err());
    drop(lock);
    assert!(file.try_lock().is_ok());
}
