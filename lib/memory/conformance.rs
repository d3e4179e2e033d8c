//! What any storage must keep to, as a check that an adapter's author calls in a test.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::parallel;
use crate::memory::section::SectionLimits;
use crate::memory::service::{Author, Changed, NewNote, NoteService, Patch};
use crate::store::entry::{By, Scope, Source};
use crate::store::journal::entry::QueueEntry;
use crate::store::persistence::{Note, Persistence, Place};
use crate::store::revision::{Revision, Version};
use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::json;
use std::path::Path;

/// A name as notes have them, and bytes that are no text.
const NAME: &str = "topics/größe 日本 -- topic__x id__AAAAAA.md";
const BYTES: &[u8] = b"\xff\0---\r\n\n";
/// So many threads read one note so many times each.
const THREADS: usize = 8;
const TIMES: usize = 5;

/// Checks that a storage keeps what [`Persistence`] promises, and that the service works over it. Each call of `new` makes an
/// empty one.
///
/// # Errors
/// `Conflict`: the promise that it does not keep. Or what it says itself.
pub fn conformance<P: Persistence + Sync>(new: impl Fn() -> P) -> Result<()> {
    what_is_written_is_found(&new())?;
    a_change_is_made_whole_or_not_at_all(&new())?;
    one_changes_it_at_a_time(new())?;
    the_service_works(new())?;
    what_an_agent_asks_for_waits(new())?;
    the_queue_works(new())
}

fn must(is_kept: bool, promise: &str) -> Result<()> {
    if is_kept { Ok(()) } else { Err(Error::conflict(format!("the storage does not keep this: {promise}"))) }
}

fn write(notes: &impl Persistence, change: &[(Option<Version>, Option<Version>)]) -> Result<()> {
    let of = |(before, after): &(Option<Version>, Option<Version>)| Revision {
        before: before.clone(),
        after: after.clone(),
    };
    notes.write(&notes.lock()?, &change.iter().map(of).collect::<Vec<_>>())
}

fn version(path: &str, bytes: &[u8]) -> Option<Version> {
    Some(Version::at(Path::new(path), bytes.to_vec()))
}

fn has(notes: &impl Persistence, path: &str, bytes: Option<&[u8]>) -> bool {
    notes.bytes(Path::new(path)).is_ok_and(|found| found.as_deref() == bytes)
}

fn what_is_written_is_found(notes: &impl Persistence) -> Result<()> {
    must(notes.names("topics", ".md")?.is_empty(), "a directory that is not there has no names")?;
    must(has(notes, NAME, None), "what is not there is no error")?;
    for path in [NAME, "topics/b.md", "topics/a.md", "archive/a.md", "inbox/.processed/x.json"] {
        write(notes, &[(None, version(path, BYTES))])?;
        must(has(notes, path, Some(BYTES)), "what was written is read again, byte for byte")?;
    }
    let names = notes.names("topics", ".md")?;
    must(names == ["a.md", "b.md", &NAME["topics/".len()..]], "the names of a directory are in order")?;
    must(notes.names("topics", "a.md")?.len() == 1, "only names with the end that is asked for")?;
    must(notes.names("inbox", ".json")?.is_empty(), "no names of a subdirectory")
}

fn a_change_is_made_whole_or_not_at_all(notes: &impl Persistence) -> Result<()> {
    let (a, b, c) =
        (version("topics/a.md", b"a"), version("topics/b.md", b"b"), version("archive/c.md", b"c"));
    write(notes, &[(None, a.clone()), (None, b.clone())])?;
    write(notes, &[(a.clone(), c.clone()), (b.clone(), None)])?;
    let is_made = || {
        has(notes, "topics/a.md", None)
            && has(notes, "topics/b.md", None)
            && has(notes, "archive/c.md", Some(b"c"))
    };
    must(is_made(), "a change moves, rewrites and deletes")?;
    let d = version("topics/d.md", b"d");
    for (wrong, promise) in [
        ((a.clone(), b.clone()), "what is not there cannot be changed"),
        ((version("archive/c.md", b"other"), None), "what is not as it was before cannot be deleted"),
        ((version("archive/c.md", b"other"), b), "what is not as it was before cannot be changed"),
        ((None, version("archive/c.md", b"new")), "what is there cannot be made"),
    ] {
        let is_conflict =
            write(notes, &[(None, d.clone()), wrong]).is_err_and(|error| error.kind() == ErrorKind::Conflict);
        must(is_conflict, promise)?;
        must(has(notes, "topics/d.md", None) && is_made(), "a change that fails has done nothing")?;
    }
    Ok(())
}

fn service<P>(notes: P) -> NoteService<P> {
    NoteService::new(notes, Timestamp::UNIX_EPOCH, Date::MIN)
}

fn captured<P: Persistence>(service: &NoteService<P>, by: By) -> Result<Note> {
    service.capture(NewNote {
        title: "Ports".to_owned(),
        summary: String::new(),
        tags: vec!["topic__dev".to_owned()],
        scope: Scope::Global,
        body: "The server listens on 4310.\n".to_owned(),
        by,
        sources: Vec::new(),
    })
}

fn one_changes_it_at_a_time<P: Persistence + Sync>(notes: P) -> Result<()> {
    let service = service(notes);
    let id = captured(&service, By::Agent)?.entry.into_meta().id;
    let reads = parallel::map_at_once(&[(); THREADS], THREADS, |_, ()| {
        (0..TIMES).try_for_each(|_| service.read(&id).map(drop))
    });
    reads.into_iter().collect::<Result<()>>()?;
    let used = service.look(&id)?.entry.meta().used;
    must(used == (THREADS * TIMES) as u64, "while a lock is held, nobody else changes anything")
}

fn the_service_works<P: Persistence + Sync>(notes: P) -> Result<()> {
    let service = service(notes);
    let id = captured(&service, By::Person)?.entry.into_meta().id;
    let patch = Patch { title: Some("The dev server".to_owned()), ..Patch::default() };
    let person = &Author::Person;
    let changed = service.update_meta(&id, &patch, person)?;
    let Changed::Done(note) = changed else { return must(false, "a note can be changed") };
    must(service.look(&id)?.path == note.path, "a note has a new name with a new title")?;
    service.update_body(&id, "It listens on 4320.\n", person)?;
    let is_it = |found: usize| must(found == 1, "a note is found by its words and in lists");
    is_it(service.list(Place::Topics, |meta| meta.id == id)?.found.len())?;
    is_it(service.search(Place::Topics, "servers 4320", None, 9)?.found.len())?;
    let recalled = service.recall("server", None, 9, 9_000)?;
    let section = service.section(&[None], SectionLimits::default(), None)?.text();
    must(recalled.text.contains("4320") && section.contains("4320"), "a note is shown as it is now")?;
    service.remove(&id, person)?;
    must(service.look(&id)?.place == Place::Archive, "a note that is removed is in the archive")?;
    service.purge(&id, person)?;
    let is_gone = service.look(&id).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    must(is_gone, "a note that is deleted is not there")
}

fn what_an_agent_asks_for_waits<P: Persistence>(notes: P) -> Result<()> {
    let service = service(notes);
    let id = captured(&service, By::Person)?.entry.into_meta().id;
    let agent = Author::Agent(Source::default());
    for body in ["It listens on 4320.\n", "It listens on 4330.\n"] {
        let changed = service.update_body(&id, body, &agent)?;
        let Changed::Waits(proposal) = changed else {
            return must(false, "a person's note is not changed by an agent");
        };
        let (waiting, _) = service.notes().proposals()?;
        must(waiting == [proposal.clone()], "a change that waits is kept")?;
        match body.contains("4320") {
            true => drop(service.reject(&proposal.id)?),
            false => drop(service.accept(&proposal.id, None)?),
        }
    }
    let note = service.look(&id)?;
    must(note.entry.body() == b"It listens on 4330.\n", "a change that is accepted is made")?;
    must(service.notes().proposals()?.0.is_empty(), "a change that is decided about does not wait")
}

fn the_queue_works<P: Persistence>(notes: P) -> Result<()> {
    let service = service(notes);
    let entry = |session: &str| {
        let json = json!({"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "amp",
            "retrieval": {"method": "amp-thread", "threadId": session},
            "context": {"cwd": null, "repo": null}});
        QueueEntry::parse(json.to_string().as_bytes())
    };
    let first = service.enqueue(&entry("T-1")?)?;
    must(service.enqueue(&entry("T-1")?)? == first, "a session waits once")?;
    let second = service.enqueue(&entry("T-2")?)?;
    service.dequeue(&first)?;
    let (queued, broken) = service.queued()?;
    let is_right = queued.keys().eq([&second]) && queued[&second] == entry("T-2")? && broken.is_empty();
    must(is_right, "the queue has what was put there and not taken out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::topics::Topics;

    #[test]
    fn files_conform() {
        let dir = tempfile::tempdir().unwrap();
        let number = std::cell::Cell::new(0);
        let new = || {
            number.set(number.get() + 1);
            Topics::open(&dir.path().join(number.get().to_string()))
        };
        conformance(new).unwrap();
    }
}
