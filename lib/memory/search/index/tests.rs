#![allow(clippy::disallowed_methods, reason = "tests do to files what people and editors do")]

use super::*;
use crate::base::file::Stamp;
use crate::base::packed::checksum;
use crate::memory::search::find::Wanted;
use crate::memory::search::query::Query;
use crate::memory::search::vocabulary::{Vocabulary, each_count};
use crate::store::entry::{Meta, Tier};
use crate::store::index::tests::settle;
use crate::store::index::{HEADER_BYTES, NoteView};
use crate::store::place::Root;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// In a test a cache is written for one note already.
const ONE: usize = 1;

const QUERIES: [&str; 9] = [
    "retry queue", "\"dead letter\"", "\"letter queue\" retries", "\"no such phrase\" backof",
    "tag:http retry", "topic__b", "日本 設定", "databse db", "zebra",
];

/// A store in a directory of its own, whose files say that they were written long ago.
struct Stored {
    dir: tempfile::TempDir,
    root: Root,
    dice: u64,
}

impl Stored {
    fn new(seed: u64) -> Stored {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(&dir.path().join("store"));
        root.make().unwrap();
        Stored { dir, root, dice: seed }
    }

    fn with_notes(seed: u64, count: usize) -> Stored {
        let mut store = Stored::new(seed);
        for number in 0..count {
            let note = store.note(number);
            fs::write(store.topics().join(format!("note {number}.md")), note).unwrap();
        }
        store
    }

    fn below(&mut self, limit: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice % limit as u64) as usize
    }

    fn words(&mut self, count: usize) -> String {
        const WORDS: [&str; 16] = [
            "retry", "retries", "queue", "dead", "letter", "backoff", "database", "db", "日本の設定",
            "getUserName", "e\u{301}t\u{e9}", "\n", "\n\n", "1.89", "--flag", "timeout",
        ];
        (0..count).map(|_| WORDS[self.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    }

    fn note(&mut self, number: usize) -> String {
        const DIGITS: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
        let id =
            format!("id__AAAA{}{}", char::from(DIGITS[number / 58 % 58]), char::from(DIGITS[number % 58]));
        let (title, summary) = (self.words(3).replace('\n', " "), self.words(4).replace('\n', " "));
        let length = 1 + self.below(60);
        let body = self.words(length);
        let tag = ["topic__http", "topic__b", "area__http"][self.below(3)];
        let tier = ["hot", "warm", "cold"][self.below(3)];
        // Some have what cannot be packed.
        let mood = if self.below(10) == 0 { ", mood: good" } else { "" };
        format!(
            "---\nid: {id}\ntitle: \"{title}\"\nsummary: \"{summary}\"\ntags: [{tag}]\ntier: {tier}\nsources:\n  - {{repo: h/o/r{mood}}}\n---\n\n{body}\n"
        )
    }

    fn topics(&self) -> PathBuf {
        self.root.topics()
    }

    fn cache(&self) -> PathBuf {
        self.root.state().join(FORMAT.name)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(self.topics()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn any(&mut self) -> PathBuf {
        let files = self.files();
        files[self.below(files.len())].clone()
    }

    fn index(&self) -> Index<Topics> {
        Index { least: ONE, ..Index::of(Topics::at(&self.root)) }
    }

    /// Without a cache.
    fn live(&self) -> Index<Topics> {
        let cache = OnceLock::from(NoteCache::empty(&self.root, FORMAT));
        Index { cache, ..Index::of(Topics::at(&self.root)) }
    }

    /// What every query and a listing say. Paths included.
    fn answers(&self, index: &Index<Topics>) -> String {
        let mut all = String::new();
        let hot = |meta: &Meta| meta.tier == Tier::Hot;
        for query in QUERIES {
            for (wanted, most) in [(None, usize::MAX), (Some(&hot as &Wanted<'_>), 3)] {
                let query = Query::parse(query);
                let found = index.find(Place::Topics, &query, wanted, most).unwrap();
                all += &format!("{:?}\n", (found.found, found.loosened, found.broken));
            }
        }
        all + &self.listing(index)
    }

    fn listing(&self, index: &Index<Topics>) -> String {
        format!("{:?}", index.scan(Place::Topics, |view: NoteView| view).unwrap())
    }

    #[track_caller]
    fn is_right(&self, after: &str) -> usize {
        let live = self.answers(&self.live());
        let index = self.index();
        assert!(self.answers(&index) == live, "after {after}: the cache gives another answer");
        assert!(
            live.ends_with(&self.listing(&self.index())),
            "after {after}: the cache gives another listing"
        );
        index.cache().unwrap().counted().0
    }

    /// Writes a cache that knows all notes, though they are as young as the test.
    fn settle(&self) {
        // Longer than a tick of the file system's clock.
        std::thread::sleep(Duration::from_millis(20));
        write(&self.root).unwrap();
        // As if the notes had been read three seconds later than they were. The tests that need the rule of the young
        // do without this.
        settle(&self.cache());
    }
}

fn set_modified(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// One change that somebody might make, and what it is.
fn change(store: &mut Stored, number: usize) -> &'static str {
    let any = store.any();
    match store.below(13) {
        0 => {
            let note = store.note(number);
            fs::write(store.topics().join(format!("new {number}.md")), note).unwrap();
            "a new note"
        }
        1 => {
            fs::remove_file(&any).unwrap();
            "a removal"
        }
        2 => {
            fs::rename(&any, store.topics().join(format!("renamed {number}.md"))).unwrap();
            "a rename"
        }
        3 => {
            let text = fs::read_to_string(&any).unwrap();
            fs::write(&any, text + &store.words(3)).unwrap();
            "an edit"
        }
        4 => {
            // The same size, and the time of modification as it was.
            let (text, time) =
                (fs::read_to_string(&any).unwrap(), any.metadata().unwrap().modified().unwrap());
            fs::write(&any, text.replace("retry", "queue")).unwrap();
            set_modified(&any, time);
            "an edit with its time restored"
        }
        5 => {
            let other = store.any();
            let between = store.dir.path().join("between");
            fs::rename(&any, &between).unwrap();
            if other != any {
                fs::rename(&other, &any).unwrap();
            }
            fs::rename(&between, &other).unwrap();
            "two names swapped"
        }
        6 => {
            set_modified(&any, SystemTime::now() + Duration::from_secs(3600));
            "a time in the future"
        }
        7 => {
            set_modified(&any, SystemTime::UNIX_EPOCH + Duration::from_secs(1));
            "a time long ago"
        }
        8 => {
            fs::write(&any, "no note any more").unwrap();
            "a broken note"
        }
        9 => {
            let copy = store.topics().join(format!("copy {number}.md"));
            fs::copy(&any, copy).unwrap();
            "a twin"
        }
        10 => {
            let outside = store.dir.path().join(format!("outside {number}"));
            fs::rename(&any, &outside).unwrap();
            std::os::unix::fs::symlink(&outside, &any).unwrap();
            "a link instead of a file"
        }
        11 => {
            // As an editor saves.
            let beside = any.with_extension("tmp");
            let note = store.note(number);
            fs::write(&beside, note).unwrap();
            fs::rename(&beside, &any).unwrap();
            "a replacement"
        }
        _ => {
            let target = fs::canonicalize(&any).unwrap();
            let note = store.note(number);
            fs::write(target, note).unwrap();
            "an edit in place"
        }
    }
}

#[test]
fn answers_are_those_of_the_files_whatever_happens() {
    for seed in 1..=2 {
        let mut store = Stored::new(0x9e37_79b9 * seed);
        for number in 0..25 {
            let note = store.note(number);
            fs::write(store.topics().join(format!("note {number}.md")), note).unwrap();
        }
        store.settle();
        assert!(store.is_right("the first writing") > 0, "nothing was known");
        for number in 100..120 {
            let mut what = String::new();
            for more in 0..=store.below(3) {
                if store.files().is_empty() {
                    break;
                }
                what += change(&mut store, number + 100 * more);
                what += ", ";
            }
            store.is_right(&format!("{what}seed {seed}, step {number}"));
            match store.below(6) {
                // Part of the notes comes from the old cache.
                0 => write(&store.root).unwrap(),
                1 => store.settle(),
                2 => fs::remove_file(store.cache()).unwrap_or_default(),
                _ => continue,
            }
            store.is_right(&format!("{what}and a new cache, seed {seed}, step {number}"));
        }
    }
}

#[test]
fn a_note_that_is_younger_than_the_clock_can_tell_is_read() {
    let mut store = Stored::new(7);
    let note = store.note(1);
    fs::write(store.topics().join("a.md"), note).unwrap();
    write(&store.root).unwrap();
    assert_eq!(store.is_right("writing"), 0, "the note is younger than two seconds");
    store.settle();
    assert!(store.is_right("settling") > 0);
}

#[test]
fn a_cache_from_the_future_is_not_used() {
    let mut store = Stored::new(8);
    let note = store.note(1);
    fs::write(store.topics().join("a.md"), note).unwrap();
    store.settle();
    set_modified(&store.cache(), SystemTime::now() + Duration::from_secs(60));
    assert_eq!(store.is_right("the clock was set back"), 0);
    set_modified(&store.cache(), SystemTime::now() - Duration::from_secs(3600));
    assert_eq!(store.is_right("a time long ago"), 0, "everything seems younger than the cache");
}

#[test]
fn a_spoilt_cache_is_not_used() {
    let store = Stored::with_notes(9, 10);
    store.settle();
    let live = store.answers(&store.live());
    let whole = fs::read(store.cache()).unwrap();
    let lists = lists_start(&whole);
    let is_used = |index: &Index<Topics>| {
        index.cache().unwrap().len() > 0
            && Vocabulary::read(index.cache().unwrap()).is_some_and(|vocabulary| !vocabulary.words.is_empty())
    };
    let spoil = |bytes: &[u8]| {
        fs::write(store.cache(), bytes).unwrap();
        // What is wrong with a list is seen when it is read.
        let is_seen = bytes.len() != whole.len() || bytes[..lists] != whole[..lists];
        assert_eq!(is_seen, !is_used(&store.index()));
        assert!(store.answers(&store.index()) == live);
    };
    for at in (0..whole.len()).step_by(whole.len() / 60) {
        spoil(&whole[..at]);
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        spoil(&bytes);
    }
    spoil(&[&whole[..], b"x"].concat());
    // Another store's.
    fs::write(store.cache(), &whole).unwrap();
    let other = Stored::new(10);
    fs::write(other.cache(), &whole).unwrap();
    assert!(!is_used(&other.index()));
    assert!(is_used(&store.index()));
}

#[test]
fn a_cache_with_a_spoilt_list_is_removed() {
    let store = Stored::with_notes(13, 10);
    store.settle();
    let live = store.answers(&store.live());
    let mut bytes = fs::read(store.cache()).unwrap();
    let lists = lists_start(&bytes);
    bytes[lists..].iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(store.cache(), &bytes).unwrap();
    let index = store.index();
    assert!(Query::parse("zebra").counts_in(index.cache().unwrap()).is_some(), "no list is read");
    assert!(store.cache().exists());
    assert!(store.answers(&index) == live);
    assert!(!store.cache().exists());
    // It is spoilt when it is written anew.
    fs::write(store.cache(), &bytes).unwrap();
    write(&store.root).unwrap();
    assert!(!store.cache().exists());
}

/// Where the lists begin: behind the records, a length, a checksum and the vocabulary of that length.
fn lists_start(cache: &[u8]) -> usize {
    let start = records_end(cache);
    start + 16 + number(cache, start)
}

fn records_end(cache: &[u8]) -> usize {
    HEADER_BYTES + number(cache, 32)
}

fn number(cache: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(cache[at..at + 8].try_into().unwrap())).unwrap()
}

/// Damage that the checksums would have found: still no panic.
#[test]
fn any_bytes_can_be_read() {
    let mut store = Stored::with_notes(11, 5);
    store.settle();
    let whole = fs::read(store.cache()).unwrap();
    for _ in 0..400 {
        let mut bytes = whole.clone();
        let at = HEADER_BYTES + store.below(bytes.len() - HEADER_BYTES);
        bytes[at] = store.below(256) as u8;
        let records = records_end(&bytes);
        let sum = checksum(&bytes[HEADER_BYTES..records]);
        bytes[40..48].copy_from_slice(&sum.to_le_bytes());
        let sum = checksum(&bytes[..HEADER_BYTES - 8]);
        bytes[HEADER_BYTES - 8..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        let words = records + 16..(records + 16).saturating_add(number(&bytes, records)).min(bytes.len());
        let sum = checksum(&bytes[words]);
        bytes[records + 8..records + 16].copy_from_slice(&sum.to_le_bytes());
        fs::write(store.cache(), &bytes).unwrap();
        let index = store.index();
        store.answers(&index);
    }
}

#[test]
fn any_list_can_be_read() {
    let mut store = Stored::new(14);
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..store.below(20)).map(|_| store.below(256) as u8).collect();
        let mut last = 0;
        each_count(&bytes, |note, _| {
            assert!(note >= last);
            last = note;
            Some(())
        });
    }
}

/// One note is merged into another after their files were checked, and before they are listed.
#[test]
fn what_was_checked_before_a_merge_does_not_hide_it() {
    let store = Stored::with_notes(17, 20);
    store.settle();
    let index = store.index();
    index.cache().unwrap().check_ahead(i64::MAX);
    let files = store.files();
    let [gone, kept] = [&files[3], &files[4]];
    let merged = fs::read_to_string(kept).unwrap() + &fs::read_to_string(gone).unwrap() + "zebra";
    let new = store.topics().join(".new");
    fs::write(&new, merged).unwrap();
    fs::rename(&new, kept).unwrap();
    fs::remove_file(gone).unwrap();
    assert_eq!(store.answers(&index), store.answers(&store.live()));
}

#[test]
fn two_writers_and_many_readers_agree() {
    let store = Stored::with_notes(12, 60);
    let live = store.answers(&store.live());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..20).for_each(|_| write(&store.root).unwrap()));
        }
        for _ in 0..20 {
            let index = store.index();
            assert!(store.answers(&index) == live);
        }
    });
    let left: Vec<_> = fs::read_dir(store.root.state()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, [FORMAT.name]);
}

#[test]
fn it_is_written_when_enough_differs() {
    let mut store = Stored::new(13);
    let put = |store: &mut Stored, number: usize| {
        let note = store.note(number);
        let path = store.topics().join(format!("note {number:03}.md"));
        fs::write(&path, note).unwrap();
    };
    (0..100).for_each(|number| put(&mut store, number));
    let asked = |store: &Stored, least: usize| {
        let index = Index { least, ..Index::of(Topics::at(&store.root)) };
        store.answers(&index);
        let (hits, misses) = index.cache().unwrap().counted();
        // As if the files were older than two seconds.
        let young = 19 * store.files().len() - hits - misses;
        let long_ago = Some(Stamp { size: 0, modified: 0, changed: 0, inode: 0, device: 0 });
        (0..young).for_each(|_| index.cache().unwrap().missed(long_ago));
        index.keep_up().unwrap();
        store.cache().exists()
    };
    assert!(!asked(&store, 19 * 101), "a small store does without");
    assert!(asked(&store, 100));
    assert!(store.index().cache().unwrap().len() > 0);
}
