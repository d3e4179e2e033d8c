//! The service over notes in memory: what it asks for, in which order, and what it makes of it.

use super::*;
use crate::store::persistence::{Broken, Scan};
use crate::store::proposal::{Proposal, ProposalId};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Notes in memory. Each call is written down; the one named in `fails` fails.
#[derive(Default)]
struct Shelf {
    notes: RefCell<Vec<Note>>,
    proposals: RefCell<Vec<Proposal>>,
    calls: RefCell<Vec<&'static str>>,
    fails: Option<&'static str>,
    is_missing: bool,
}

impl Shelf {
    fn call(&self, name: &'static str) -> Result<()> {
        self.calls.borrow_mut().push(name);
        if self.fails == Some(name) { Err(Error::io(format!("{name} fails"))) } else { Ok(()) }
    }

    fn found(&self, id: &EntryId) -> Result<Note> {
        let notes = self.notes.borrow();
        let note = notes.iter().find(|note| note.entry.meta().id == *id);
        note.cloned().ok_or_else(|| Error::usage("unknown"))
    }

    fn keep(&self, note: Note) -> Note {
        let mut notes = self.notes.borrow_mut();
        notes.retain(|other| other.entry.meta().id != note.entry.meta().id);
        notes.push(note.clone());
        note
    }
}

impl Persistence for Shelf {
    type Lock = ();

    fn is_there(&self) -> bool {
        !self.is_missing
    }

    fn lock(&self) -> Result<()> {
        self.call("lock")
    }

    fn scan<T: Send>(&self, places: &[Place], each: impl Fn(Note) -> T + Sync) -> Result<Scan<T>> {
        self.call("scan")?;
        let notes = self.notes.borrow().clone();
        let found = notes.into_iter().filter(|note| places.contains(&note.place)).map(each).collect();
        Ok(Scan { found, broken: Vec::new() })
    }

    fn find(&self, id: &EntryId) -> Result<Note> {
        self.call("find")?;
        self.found(id)
    }

    fn find_own(&self, id: &EntryId) -> Result<Note> {
        self.call("find_own")?;
        self.found(id)
    }

    fn ids(&self) -> Result<BTreeSet<EntryId>> {
        self.call("ids")?;
        Ok(self.notes.borrow().iter().map(|note| note.entry.meta().id.clone()).collect())
    }

    fn read(&self, place: Place, name: &OsStr) -> Result<Option<Note>, Broken> {
        Ok(self.notes.borrow().iter().find(|note| note.place == place && note.name() == name).cloned())
    }

    fn named(&self, id: &EntryId) -> Result<Option<Note>> {
        Ok(self.found(id).ok())
    }

    fn is_taken(&self, _: Place, _: &OsStr) -> bool {
        false
    }

    fn put(&self, (): &(), old: Option<&Note>, place: Place, name: &OsStr, entry: Entry) -> Result<Note> {
        self.call(match (old, place) {
            (None, _) => "add",
            (Some(_), Place::Topics) => "replace",
            (Some(_), Place::Archive) => "archive",
        })?;
        Ok(self.keep(Note { place, path: PathBuf::from(name), entry }))
    }

    fn purge(&self, (): &(), note: &Note) -> Result<()> {
        self.call("purge")?;
        self.notes.borrow_mut().retain(|other| other.entry.meta().id != note.entry.meta().id);
        Ok(())
    }

    fn proposals(&self) -> Result<(Vec<Proposal>, Vec<Broken>)> {
        Ok((self.proposals.borrow().clone(), Vec::new()))
    }

    fn put_proposal(&self, (): &(), proposal: &Proposal) -> Result<()> {
        self.withdraw(&(), &proposal.id)?;
        self.proposals.borrow_mut().push(proposal.clone());
        Ok(())
    }

    fn withdraw(&self, (): &(), id: &ProposalId) -> Result<()> {
        self.proposals.borrow_mut().retain(|other| other.id != *id);
        Ok(())
    }
}

const NOW: i64 = 1_772_291_045_678;

fn service(texts: &[&str]) -> NoteService<Shelf> {
    let shelf = Shelf::default();
    for text in texts {
        let text = format!("---\ntitle: T\n{text}\n---\n\nbody\n");
        let entry = Entry::parse(text.into_bytes()).unwrap();
        shelf.keep(Note { place: Place::Topics, path: PathBuf::from("x"), entry });
    }
    NoteService::new(shelf, Timestamp::from_millisecond(NOW).unwrap())
}

fn id() -> EntryId {
    EntryId::parse("AAAAAA").unwrap()
}

fn new(title: &str, body: &str) -> NewNote {
    NewNote {
        title: title.to_owned(),
        summary: String::new(),
        tags: vec!["topic__x".to_owned()],
        scope: Scope::Global,
        body: body.to_owned(),
        by: By::Person,
        sources: Vec::new(),
    }
}

/// The note after a person's change, and whether that changed anything.
fn updated(service: &NoteService<Shelf>, patch: &Patch) -> (Note, bool) {
    match service.update(&id(), patch, &Author::Person).unwrap() {
        Changed::Done(note) => (note, true),
        Changed::Same(note) => (note, false),
        Changed::Waits(proposal) => panic!("{proposal:?}"),
    }
}

fn removed(service: &NoteService<Shelf>, how: RemovalMode) -> Note {
    match service.remove(&id(), how, &Author::Person).unwrap() {
        Changed::Done(note) | Changed::Same(note) => note,
        Changed::Waits(proposal) => panic!("{proposal:?}"),
    }
}

#[test]
fn a_captured_note_has_a_free_id_and_whole_lines() {
    let service = service(&[]);
    let first = service.capture(new("T", "one")).unwrap();
    let second = service.capture(new("T", "")).unwrap();
    let third = service.capture(new("T", "x\r\n")).unwrap();
    let ids: BTreeSet<_> = [&first, &second, &third].map(|note| note.entry.meta().id.clone()).into();
    assert_eq!(ids.len(), 3, "same title, same time");
    let bodies = [&first, &second, &third].map(|note| note.entry.body().to_vec());
    assert_eq!(bodies, [b"one\n".to_vec(), Vec::new(), b"x\r\n".to_vec()]);
    let meta = first.entry.meta();
    assert_eq!(
        (meta.status, meta.tier, meta.created_at, meta.updated_at),
        (Status::Captured, Tier::Warm, NOW, NOW)
    );
    assert_eq!(service.notes.calls.borrow()[..3], ["lock", "ids", "add"]);
}

#[test]
fn a_note_that_could_not_be_read_again_is_not_written() {
    let service = service(&[]);
    let note = NewNote { tags: vec!["x".repeat(70_000)], ..new("T", "b") };
    assert!(service.capture(note).err().unwrap().message().contains("cannot be written"));
    assert!(!service.notes.calls.borrow().contains(&"add"));
}

#[test]
fn a_read_counts_once_under_the_lock_and_knows_no_fractions_of_a_second() {
    let service = service(&["id: id__AAAAAA\nused: 41"]);
    let meta = service.read(&id()).unwrap().entry.meta().clone();
    assert_eq!((meta.used, meta.last_used.unwrap().to_string().as_str()), (42, "2026-02-28T15:04:05Z"));
    assert_eq!(meta.updated_at, 0, "a read is no change");
    assert_eq!(*service.notes.calls.borrow(), ["lock", "find", "replace"]);
    assert_eq!(service.look(&id()).unwrap().entry.meta().used, 42);
}

#[test]
fn the_largest_count_stays() {
    let service = service(&[&format!("id: id__AAAAAA\nused: {}", u64::MAX)]);
    assert_eq!(service.read(&id()).unwrap().entry.meta().used, u64::MAX);
}

#[test]
fn a_store_is_not_made_to_look_for_a_note() {
    let mut service = service(&[]);
    service.notes.is_missing = true;
    assert!(
        service.read(&id()).is_err() && service.remove(&id(), RemovalMode::Purge, &Author::Person).is_err()
    );
    assert!(service.update(&id(), &Patch::default(), &Author::Person).is_err());
    assert!(!service.notes.calls.borrow().contains(&"lock"));
}

#[test]
fn what_fails_is_told_and_nothing_more_is_done() {
    for fails in ["lock", "find", "replace"] {
        let mut service = service(&["id: id__AAAAAA"]);
        service.notes.fails = Some(fails);
        assert_eq!(service.read(&id()).err().unwrap().message(), format!("{fails} fails"));
        assert_eq!(service.notes.calls.borrow().last(), Some(&fails));
        assert_eq!(service.notes.found(&id()).unwrap().entry.meta().used, 0);
    }
}

#[test]
fn an_update_tells_whether_anything_changed() {
    let service = service(&["id: id__AAAAAA\ntags: [topic__a]"]);
    let same = Patch {
        title: Some("T".to_owned()),
        add_tags: vec!["topic__a".to_owned()],
        body: Some("body".to_owned()),
        ..Patch::default()
    };
    let (note, is_changed) = updated(&service, &same);
    assert_eq!((is_changed, note.entry.meta().updated_at), (false, 0));
    let (note, is_changed) = updated(&service, &Patch { body: Some("other".to_owned()), ..Patch::default() });
    assert_eq!((is_changed, note.entry.meta().updated_at, note.entry.body()), (true, NOW, &b"other\n"[..]));
}

#[test]
fn a_note_is_promoted_exactly_while_it_is_hot() {
    use {Status::*, Tier::*};
    for (before, status, tier, expected) in [
        ((Captured, Warm), None, Some(Hot), (Promoted, Hot)),
        ((Consolidated, Cold), Some(Promoted), None, (Promoted, Hot)),
        ((Promoted, Hot), None, Some(Cold), (Consolidated, Cold)),
        ((Promoted, Hot), Some(Captured), None, (Captured, Warm)),
        ((Promoted, Hot), Some(Captured), Some(Cold), (Captured, Cold)),
        ((Promoted, Hot), None, None, (Promoted, Hot)),
        ((Captured, Warm), None, Some(Cold), (Captured, Cold)),
        ((Captured, Cold), Some(Consolidated), None, (Consolidated, Cold)),
        ((Captured, Warm), Some(Promoted), Some(Hot), (Promoted, Hot)),
    ] {
        let service = service(&[&format!("id: id__AAAAAA\nstatus: {}\ntier: {}", before.0, before.1)]);
        let patch = Patch { status, tier, ..Patch::default() };
        let note = updated(&service, &patch).0;
        let meta = note.entry.meta();
        assert_eq!((meta.status, meta.tier), expected, "{before:?} {status:?} {tier:?}");
    }
}

#[test]
fn a_tag_that_is_dropped_and_added_is_there_once_and_last() {
    let service = service(&["id: id__AAAAAA\ntags: [topic__a, topic__b]"]);
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let patch = Patch {
        add_tags: tags(&["topic__a", "topic__b", "topic__a"]),
        drop_tags: tags(&["topic__a"]),
        ..Patch::default()
    };
    let note = updated(&service, &patch).0;
    assert_eq!(note.entry.meta().tags, tags(&["topic__b", "topic__a"]));
}

#[test]
fn removing_moves_once_and_purging_deletes_wherever_it_lies() {
    let service = service(&["id: id__AAAAAA"]);
    for _ in 0..2 {
        assert_eq!(removed(&service, RemovalMode::Archive).place, Place::Archive);
    }
    assert_eq!(*service.notes.calls.borrow(), ["lock", "find_own", "archive", "lock", "find_own"]);
    assert_eq!(removed(&service, RemovalMode::Purge).place, Place::Archive);
    assert!(service.notes.notes.borrow().is_empty());
}

#[test]
fn a_repositorys_notes_have_its_scope_and_name_it() {
    let meta = |text: &str| {
        let service = service(&[&format!("id: id__AAAAAA\n{text}")]);
        service.look(&id()).unwrap().entry.meta().clone()
    };
    let sources = "sources:\n  - {repo: h/o/other}\n  - {repo: h/o/r}\n  - {harness: amp}";
    assert!(belongs_to(&meta(&format!("scope: repo\n{sources}")), "h/o/r"));
    assert!(!belongs_to(&meta(&format!("scope: global\n{sources}")), "h/o/r"));
    assert!(!belongs_to(&meta(&format!("scope: repo\n{sources}")), "h/o"));
    assert!(!belongs_to(&meta("scope: repo"), "h/o/r"));
}
