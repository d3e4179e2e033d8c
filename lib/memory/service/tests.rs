//! The service over notes in memory: what it asks for, in which order, and what it makes of it.

use super::*;
use crate::store::persistence::Broken;
use crate::store::revision::{Revision, Version};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Notes in memory. Each call is written down; the one named in `fails` fails.
#[derive(Default)]
struct Shelf {
    files: RefCell<BTreeMap<PathBuf, Vec<u8>>>,
    calls: RefCell<Vec<&'static str>>,
    fails: Cell<Option<&'static str>>,
    is_missing: Cell<bool>,
}

impl Shelf {
    fn call(&self, name: &'static str) -> Result<()> {
        // It is looked up as often as it takes.
        if self.calls.borrow().last() != Some(&name) {
            self.calls.borrow_mut().push(name);
        }
        if self.fails.get() == Some(name) { Err(Error::io(format!("{name} fails"))) } else { Ok(()) }
    }

    fn found(&self, id: &EntryId) -> Result<Note> {
        self.find_own(id)
    }

    fn keep(&self, version: &Version) {
        self.files.borrow_mut().insert(version.path(), version.bytes().to_vec());
    }
}

impl Persistence for Shelf {
    type Lock = ();

    fn is_there(&self) -> bool {
        !self.is_missing.get()
    }

    fn lock(&self) -> Result<()> {
        self.call("lock")
    }

    fn names(&self, dir: &str, end: &str) -> Result<Vec<OsString>> {
        self.call("names")?;
        let files = self.files.borrow();
        let names = files.keys().filter(|path| path.parent() == Some(Path::new(dir)));
        let names = names.filter_map(|path| path.file_name()).map(OsStr::to_owned);
        Ok(names.filter(|name| name.to_string_lossy().ends_with(end)).collect())
    }

    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Broken> {
        Ok(self.files.borrow().get(path).cloned())
    }

    fn write(&self, (): &(), change: &[Revision]) -> Result<()> {
        for Revision { before, after } in change {
            self.call(match (before, after.as_ref().map(Version::place)) {
                (None, _) => "add",
                (Some(_), Some(Some(Place::Topics))) => "replace",
                (Some(_), Some(_)) => "archive",
                (Some(_), None) => "purge",
            })?;
            if let Some(before) = before {
                assert_eq!(self.files.borrow_mut().remove(&before.path()).as_deref(), Some(before.bytes()));
            }
            if let Some(after) = after {
                self.keep(after);
            }
        }
        Ok(())
    }
}

const NOW: i64 = 1_772_291_045_678;

fn service(texts: &[&str]) -> NoteService<Shelf> {
    let shelf = Shelf::default();
    for text in texts {
        let text = format!("---\ntitle: T\n{text}\n---\n\nbody\n");
        let entry = Entry::parse(text.into_bytes()).unwrap();
        let name = entry.meta().file_name();
        shelf.keep(&Version::new(Place::Topics, &name, &entry));
    }
    NoteService::new(shelf, Timestamp::from_millisecond(NOW).unwrap(), Date::MIN)
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
    match service.update_meta(&id(), patch, &Author::Person).unwrap() {
        Changed::Done(note) => (note, true),
        Changed::Same(note) => (note, false),
        Changed::Waits(proposal) => panic!("{proposal:?}"),
    }
}

fn done(changed: Result<Changed>) -> Note {
    match changed.unwrap() {
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
    assert_eq!(service.notes().calls.borrow()[..3], ["lock", "names", "add"]);
}

#[test]
fn a_note_that_is_said_again_is_kept_once_unless_it_ends() {
    let service = service(&[]);
    let (first, is_new) = service.capture_once(new("T", "one")).unwrap();
    assert!(is_new && !service.capture_once(new("T", "one")).unwrap().1);
    let until = Patch { until: Some(Some("2027-01-01".parse().unwrap())), ..Patch::default() };
    service.update_meta(&first.entry.meta().id, &until, &Author::Person).unwrap();
    assert!(service.capture_once(new("T", "one")).unwrap().1);
}

#[test]
fn a_note_that_could_not_be_read_again_is_not_written() {
    let service = service(&[]);
    let note = NewNote { tags: vec!["x".repeat(70_000)], ..new("T", "b") };
    assert!(service.capture(note).err().unwrap().message().contains("cannot be written"));
    assert!(!service.notes().calls.borrow().contains(&"add"));
}

#[test]
fn a_read_counts_once_under_the_lock_and_knows_no_fractions_of_a_second() {
    let service = service(&["id: id__AAAAAA\nused: 41"]);
    let meta = service.read(&id()).unwrap().entry.meta().clone();
    assert_eq!((meta.used, meta.last_used.unwrap().to_string().as_str()), (42, "2026-02-28T15:04:05Z"));
    assert_eq!(meta.updated_at, 0, "a read is no change");
    assert_eq!(*service.notes().calls.borrow(), ["lock", "names", "replace"]);
    assert_eq!(service.look(&id()).unwrap().entry.meta().used, 42);
}

#[test]
fn the_largest_count_stays() {
    let service = service(&[&format!("id: id__AAAAAA\nused: {}", u64::MAX)]);
    assert_eq!(service.read(&id()).unwrap().entry.meta().used, u64::MAX);
}

#[test]
fn a_store_is_not_made_to_look_for_a_note() {
    let service = service(&[]);
    service.notes().is_missing.set(true);
    assert!(service.read(&id()).is_err() && service.purge(&id(), &Author::Person).is_err());
    assert!(service.update_meta(&id(), &Patch::default(), &Author::Person).is_err());
    assert!(!service.notes().calls.borrow().contains(&"lock"));
}

#[test]
fn what_fails_is_told_and_nothing_more_is_done() {
    for fails in ["lock", "names", "replace"] {
        let service = service(&["id: id__AAAAAA"]);
        service.notes().fails.set(Some(fails));
        assert_eq!(service.read(&id()).err().unwrap().message(), format!("{fails} fails"));
        assert_eq!(service.notes().calls.borrow().last(), Some(&fails));
        service.notes().fails.set(None);
        assert_eq!(service.notes().found(&id()).unwrap().entry.meta().used, 0);
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
fn what_a_person_edited_stays_known_as_edited_when_an_agent_changes_its_status() {
    let front =
        "id: id__AAAAAA\nwritten: 0123456789abcdef\nscope: repo\nsources: [{harness: amp, repo: h/o/r}]";
    let service = service(&[front]);
    let author = Author::Agent(Source::default());
    let patch = Patch { status: Some(Status::Consolidated), ..Patch::default() };
    assert!(done(service.update_meta(&id(), &patch, &author)).entry.is_edited());
    let patch = Patch { title: Some("Other".to_owned()), ..Patch::default() };
    assert!(matches!(service.update_meta(&id(), &patch, &author).unwrap(), Changed::Waits(_)));
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
        assert_eq!(done(service.remove(&id(), &Author::Person)).place, Place::Archive);
    }
    assert_eq!(*service.notes().calls.borrow(), ["lock", "names", "archive", "lock", "names"]);
    assert_eq!(done(service.purge(&id(), &Author::Person)).place, Place::Archive);
    assert!(service.notes().files.borrow().is_empty());
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
