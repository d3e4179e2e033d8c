//! An entry that was added is there, once and complete; a file that is not an entry is reported and left alone.

#![allow(clippy::disallowed_methods, reason = "a test may write files")]

use super::*;
use crate::store::entry::Scope;
use crate::store::journal::entry::{CaptureContext, Harness, Retrieval};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

fn queue() -> (TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::at(&Root::at(&dir.path().join("store")));
    (dir, journal)
}

impl Journal {
    fn waiting(&self) -> Result<(Vec<QueuedEntry>, Vec<Broken>)> {
        self.sweep();
        Journal::entries_in(&self.root.inbox())
    }
}

fn entry(second: i64, retrieval: Retrieval) -> QueueEntry {
    let timestamp = jiff::Timestamp::from_millisecond(1_771_000_000_000 + second * 1000).unwrap();
    QueueEntry {
        version: 1,
        timestamp,
        harness: Harness::of_name("amp").unwrap(),
        retrieval,
        context: CaptureContext::default(),
    }
}

fn thread(second: i64, id: &str) -> QueueEntry {
    entry(second, Retrieval::AmpThread { thread_id: id.to_owned() })
}

fn note(second: i64, body: &str) -> QueueEntry {
    let (title, body) = ("t".to_owned(), body.to_owned());
    entry(second, Retrieval::Inline { title, body, tags: vec![], scope: Scope::Global, thread_id: None })
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn entries_wait_oldest_first_in_whatever_order_they_were_added() {
    let (_dir, journal) = queue();
    assert!(journal.waiting().unwrap().0.is_empty(), "a store that is not there yet");
    let mut ids = Vec::new();
    for entry in [note(3, "c"), note(1, "a"), thread(2, "T-1")] {
        let (waiting, true) = journal.put(&entry).unwrap() else { panic!() };
        assert_eq!(waiting.entry, entry);
        ids.push(waiting.id);
    }
    let (waiting, unreadable) = journal.waiting().unwrap();
    assert!(unreadable.is_empty());
    let found: Vec<&str> = waiting.iter().map(|waiting| waiting.id.as_str()).collect();
    assert_eq!(found, [&ids[1], &ids[2], &ids[0]]);
    assert_eq!(waiting[1].entry, thread(2, "T-1"));
}

#[test]
fn names_tell_time_and_harness_and_only_the_owner_reads() {
    let (_dir, journal) = queue();
    for entry in [note(0, "x"), thread(0, "T-1")] {
        let waiting = journal.put(&entry).unwrap().0;
        let name = waiting.path.file_name().unwrap().to_str().unwrap();
        let random =
            name.strip_prefix("2026-02-13T16-26-40.000Z_amp_").unwrap().strip_suffix(".json").unwrap();
        assert!(random.len() == 8 && random.bytes().all(|b| b.is_ascii_alphanumeric()), "{name}");
        assert_eq!(name, format!("{}.json", waiting.id));
        assert_eq!((mode(&waiting.path), mode(waiting.path.parent().unwrap())), (0o600, 0o700));
    }
}

#[test]
fn a_session_waits_once_until_it_is_claimed() {
    let (dir, journal) = queue();
    let first = journal.put(&thread(1, "T-1")).unwrap().0;
    let (again, false) = journal.put(&thread(2, "T-1")).unwrap() else { panic!("queued twice") };
    assert_eq!((again.id, again.path, again.entry), (first.id, first.path.clone(), first.entry));
    assert!(journal.put(&thread(2, "T-2")).unwrap().1);
    let other = QueueEntry { harness: Harness::MANUAL, ..thread(2, "T-1") };
    assert!(journal.put(&other).unwrap().1, "another program's thread");
    fs::rename(&first.path, dir.path().join("claimed.json")).unwrap();
    assert!(journal.put(&thread(3, "T-1")).unwrap().1);
    // Notes are never the same.
    for _ in 0..2 {
        assert!(journal.put(&note(1, "x")).unwrap().1);
    }
}

#[test]
fn a_mark_alone_is_not_the_session() {
    let (_dir, journal) = queue();
    let first = journal.put(&thread(1, "T-1")).unwrap().0;
    // Another session, under a name that has the first one's mark.
    let text = fs::read_to_string(&first.path).unwrap();
    fs::write(&first.path, text.replace("T-1", "T-2")).unwrap();
    assert!(journal.put(&thread(2, "T-1")).unwrap().1);
    // A torn file of that mark is none either.
    fs::write(&first.path, "{").unwrap();
    assert!(!journal.put(&thread(2, "T-1")).unwrap().1);
}

#[test]
fn files_that_are_not_entries_are_reported_and_left_alone() {
    let (_dir, journal) = queue();
    let good = journal.put(&note(1, "good")).unwrap().0;
    let inbox = good.path.parent().unwrap();
    let text = fs::read_to_string(&good.path).unwrap();
    let big = format!("{text}{}", " ".repeat(9 << 20));
    let strange = [
        ("1-torn.json", &text[..text.len() / 2], "not JSON: "),
        ("2-version.json", &text.replace("\"version\": 1", "\"version\": 2"), "version: 2 is unknown"),
        ("3-empty.json", "", "not JSON: "),
        ("4-big.json", &big, "is larger than 8 MiB"),
    ];
    for (name, content, _) in strange {
        fs::write(inbox.join(name), content).unwrap();
    }
    fs::create_dir(inbox.join("5-dir.json")).unwrap();
    std::os::unix::fs::symlink("6-loop.json", inbox.join("6-loop.json")).unwrap();
    // Not in the queue at all.
    for name in [".hidden.json", "notes.txt"] {
        fs::write(inbox.join(name), "x").unwrap();
    }
    fs::create_dir(inbox.join(".processed")).unwrap();

    let (waiting, unreadable) = journal.waiting().unwrap();
    assert_eq!(waiting.len(), 1);
    let names: Vec<_> =
        unreadable.iter().map(|one| one.path.file_name().unwrap().to_str().unwrap()).collect();
    let expected = ["1-torn.json", "2-version.json", "3-empty.json", "4-big.json", "5-dir.json"];
    assert_eq!(names[..5], expected);
    for ((_, _, fault), found) in strange.iter().zip(&unreadable) {
        let message = found.why.strip_prefix("not a queue entry: ").unwrap();
        assert!(message.contains(fault), "{found:?}");
    }
    assert!(names.iter().all(|name| inbox.join(name).symlink_metadata().is_ok()));
}

#[test]
fn what_a_kill_left_is_swept_once_nobody_can_be_writing_it() {
    let (_dir, journal) = queue();
    let good = journal.put(&note(1, "good")).unwrap().0;
    let inbox = good.path.parent().unwrap();
    let (old, new) = (inbox.join(".a.json.Ab12cd"), inbox.join(".b.json.Ab12cd"));
    let (foreign, entry) = (inbox.join(".c.txt.Ab12cd"), inbox.join("old.json"));
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for path in [&old, &new, &foreign, &entry] {
        fs::write(path, "{").unwrap();
        if path != &new {
            fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
        }
    }
    journal.waiting().unwrap();
    let there = |path: &PathBuf| path.exists();
    assert_eq!((there(&old), there(&new), there(&foreign), there(&entry)), (false, true, true, true));
}

#[test]
fn the_largest_note_can_be_read_again() {
    let (_dir, journal) = queue();
    // Every character is written as six.
    let largest = note(1, &"\u{1}".repeat(crate::store::journal::entry::BODY_CAP));
    journal.put(&largest).unwrap();
    assert_eq!(journal.waiting().unwrap().0[0].entry, largest);
}

#[test]
fn a_faulty_entry_is_refused_and_makes_no_store() {
    let (dir, journal) = queue();
    let error = journal.put(&thread(1, "../x")).unwrap_err();
    assert!(error.message().starts_with("not a queue entry: retrieval.threadId: \"../x\""), "{error:?}");
    assert!(!dir.path().join("store").exists());
}

#[test]
fn a_store_that_is_a_file_is_a_fault_of_the_configuration() {
    let (dir, journal) = queue();
    fs::write(dir.path().join("store"), "mine").unwrap();
    let error = journal.put(&note(1, "x")).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.message().contains("it is not a directory"), "{error:?}");
    assert_eq!(fs::read(dir.path().join("store")).unwrap(), b"mine");
}

#[test]
fn writers_at_once_lose_nothing_and_never_collide() {
    let (_dir, journal) = queue();
    let put = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let journal = &journal;
                let put = move |i| journal.put(&note(1, &format!("{n} {i}"))).unwrap().0.id;
                scope.spawn(move || (0..25).map(put).collect::<Vec<String>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<BTreeSet<String>>()
    });
    let waiting = journal.waiting().unwrap().0.into_iter().map(|waiting| waiting.id).collect();
    assert_eq!(put.len(), 200);
    assert_eq!(put, waiting);
}

#[test]
fn an_entrys_name_says_when_and_from_where() {
    let at = "2026-02-13T14:30:05.123Z".parse().unwrap();
    assert_eq!(harness_and_time("2026-02-13T14-30-05.123Z_claude-code_1a2B3c4D"), Some(("claude-code", at)));
    for odd in ["", "x", "2026-02-13_codex_1", "a_b_c", "2026-02-13T99-30-05Z_codex_1"] {
        assert_eq!(harness_and_time(odd), None, "{odd}");
    }
}
