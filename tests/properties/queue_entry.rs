//! Entries of the queue, as anybody may put them there.

use crate::base::fields::PATH_CAP;
use crate::fuzz::is_told;
use crate::fuzz::scratch::Scratch;
use crate::harness::payload::id_fault;
use crate::store::entry::is_tag;
use crate::store::journal::Journal;
use crate::store::journal::entry::{QueueEntry, Retrieval, session_mark};
use crate::store::place::Root;

pub fn holds(bytes: &[u8]) {
    let entry = match QueueEntry::parse(bytes) {
        Ok(entry) => entry,
        Err(error) => {
            assert!(!error.faults().is_empty());
            return error.faults().iter().for_each(|fault| is_told(&fault.to_string()));
        }
    };
    entry.check().unwrap();
    match &entry.retrieval {
        Retrieval::AmpThread { thread_id }
        | Retrieval::OpencodeSession { thread_id }
        | Retrieval::ReadCommand { thread_id } => {
            assert_eq!(id_fault(thread_id), None);
        }
        Retrieval::Transcript { path, session_id, .. } => {
            assert_eq!(id_fault(session_id), None);
            assert!(path.is_absolute());
        }
        Retrieval::CursorSession { session_path: path }
        | Retrieval::File { path }
        | Retrieval::MemoryFile { path } => {
            assert!(path.is_absolute());
        }
        Retrieval::Inline { title, body, tags, thread_id, .. } => {
            assert!(!title.trim().is_empty() && !title.contains(char::is_control));
            assert!(!body.trim().is_empty());
            assert!(tags.iter().all(|tag| is_tag(tag)));
            assert!(thread_id.iter().all(|id| id_fault(id).is_none()));
        }
    }
    assert_eq!(entry.session().is_none(), matches!(entry.retrieval, Retrieval::Inline { .. }));
    assert!(entry.session().is_none_or(|session| session_mark(&session).len() == 4));
    assert!(entry.context.cwd.iter().all(|cwd| cwd.is_absolute() && cwd.as_os_str().len() <= PATH_CAP));
    assert!(entry.context.repo.iter().all(|repo| !repo.contains("://") && !repo.contains(char::is_control)));
    // Written, it says the same again, but for what is finer than a millisecond.
    let written = entry.json().to_string();
    let again = QueueEntry::parse(written.as_bytes()).unwrap();
    assert_eq!(again.json().to_string(), written);
    assert_eq!(again.retrieval, entry.retrieval);
    is_kept(&again);
}

/// What is put into the queue waits there, once, under a name that is one.
fn is_kept(entry: &QueueEntry) {
    let scratch = Scratch::empty();
    let root = Root::at(&scratch.path("store"));
    root.make().unwrap();
    let journal = Journal::at(&root);
    let put = journal.put(entry).unwrap().0;
    assert_eq!(put.path.parent().unwrap(), root.inbox());
    let (waiting, unreadable) = Journal::entries_in(&root.inbox()).unwrap();
    assert!(unreadable.is_empty(), "{unreadable:?}");
    let [there] = &waiting[..] else { panic!("{waiting:?}") };
    assert_eq!((&there.entry, &there.id), (entry, &put.id));
    let is_session = entry.session().is_some();
    assert_eq!(journal.put(entry).unwrap().0.path == put.path, is_session);
}
