//! The axe toolkit: small programs that run LLM agents from the shell and keep what they learn.
//!
//! One function for each program, called by the binary of that name. The rest is for a host in Rust: [`notes`] has notes,
//! where they are kept, and what is done with them; [`queue`] what waits to be made into notes; [`consolidate`] and [`defrag`]
//! are the two pipelines as machines that say what to do, and the host does it. `examples/embed.rs` is a whole host, pipelines
//! and a storage that several threads use included. Nothing here starts a process or a thread that outlives the call.
//!
//! ```
//! use axe::notes::{Author, Broken, By, NewNote, NoteService, Patch, Persistence, Place, Revision, SectionLimits, Scope, Source, Version};
//! use axe::{Error, ErrorKind, Result, queue::QueueEntry};
//! use std::collections::BTreeMap;
//! use std::path::{Path, PathBuf};
//! use std::sync::Mutex;
//!
//! // Markdown files in a directory are `axe::notes::Topics::open(dir)`. This is a storage of one's own, for one thread.
//! #[derive(Default)]
//! struct Memory(Mutex<BTreeMap<PathBuf, Vec<u8>>>);
//!
//! impl Persistence for Memory {
//!     type Lock = ();
//!
//!     fn lock(&self) -> Result<()> {
//!         Ok(())
//!     }
//!
//!     fn names(&self, dir: &str, end: &str) -> Result<Vec<std::ffi::OsString>> {
//!         let files = self.0.lock().unwrap();
//!         let inside = files.keys().filter(|path| path.parent() == Some(Path::new(dir)));
//!         let names = inside.filter_map(|path| Some(path.file_name()?.to_owned()));
//!         Ok(names.filter(|name| name.to_string_lossy().ends_with(end)).collect())
//!     }
//!
//!     fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Broken> {
//!         Ok(self.0.lock().unwrap().get(path).cloned())
//!     }
//!
//!     fn write(&self, _: &(), change: &[Revision]) -> Result<()> {
//!         let mut files = self.0.lock().unwrap();
//!         let mut new = files.clone();
//!         for Revision { before, after } in change {
//!             let old = before.as_ref().and_then(|before| new.remove(&before.path()));
//!             if old.as_deref() != before.as_ref().map(Version::bytes) {
//!                 return Err(Error::new(ErrorKind::Conflict, "somebody has changed it meanwhile"));
//!             }
//!             new.extend(after.iter().map(|after| (after.path(), after.bytes().to_vec())));
//!         }
//!         *files = new;
//!         Ok(())
//!     }
//! }
//!
//! let now = jiff::Zoned::now();
//! let service = NoteService::new(Memory::default(), now.timestamp(), now.date());
//! let (title, body) = ("Ports".to_owned(), "The dev server listens on 4310.".to_owned());
//! let new = NewNote { title, body, summary: String::new(), tags: vec![], scope: Scope::Global, by: By::Person, sources: vec![] };
//! let id = service.capture(new)?.entry.meta().id.clone();
//!
//! // What an agent would change of a person's note waits for the person.
//! service.update_body(&id, "It listens on 4320.", &Author::Agent(Source::default()))?;
//! let (waiting, _) = service.notes().proposals()?;
//! println!("{}", service.pending(waiting[0].clone())?.diff().join("\n"));
//! service.accept(&waiting[0].id, None)?;
//! service.update_meta(&id, &Patch { pinned: Some(true), ..Patch::default() }, &Author::Person)?;
//!
//! // What AGENTS.md would hold, what answers a prompt, and each note that has a word. A read is counted.
//! assert!(service.section(&[None], SectionLimits::default(), None)?.text().contains("4320"));
//! assert!(service.recall("which port has the server?", None, 3, 2_000)?.text.contains("4320"));
//! assert_eq!(service.search(Place::Topics, "listening", None, 10)?.found.len(), 1);
//! assert_eq!(service.read(&id)?.entry.meta().used, 1);
//!
//! // A session to be made into notes, by `axe::consolidate`.
//! let session = br#"{"version": 1, "timestamp": "2026-02-28T12:00:00Z", "harness": "amp", "context": {"cwd": null, "repo": null},
//!     "retrieval": {"method": "amp-thread", "threadId": "T-1"}}"#;
//! service.enqueue(&QueueEntry::parse(session)?)?;
//! assert_eq!(service.queued()?.0.len(), 1);
//! # Ok::<(), axe::Error>(())
//! ```

#![cfg_attr(not(test), deny(clippy::too_many_lines))]

mod agent;
mod base;
mod config;
#[cfg(any(all(test, unix), fuzzing))]
#[path = "../tests/properties/mod.rs"]
pub mod fuzz;
mod harness;
mod memory;
mod program;
mod prompt;
mod provider;
mod schedule;
mod store;

pub use base::error::{Error, ErrorKind, Fault, Result};
pub use memory::conformance::conformance;

/// What both pipelines have in common: machines, states, events.
pub mod pipeline {
    pub use crate::memory::pipeline::{
        Answer, Begun, Event, Failure, Pipeline, Question, State, WalkEnd, Work,
    };
    pub use crate::memory::redact::Redactor;
}

/// From queue entries to notes.
pub mod consolidate {
    pub use crate::harness::turn::Role;
    pub use crate::memory::consolidate::Consolidate;
    pub use crate::memory::consolidate::ask::{Material, RelatedNote, ShownSession};
    pub use crate::memory::consolidate::grounds::Grounds;
    pub use crate::memory::consolidate::land::Knowledge;
    pub use crate::memory::consolidate::passage::Passage;
    pub use crate::memory::consolidate::pending::PendingChange;
    pub use crate::memory::consolidate::plan::{Plan, PlannedChange, PlannedNote, Retirement, Waiting};
    pub use crate::memory::consolidate::related::RelatedQuery;
    pub use crate::memory::consolidate::work::{Claimed, ConsolidateWork, Slice, Verdict};
    pub use crate::memory::consolidate::write::{Action, Made, Written, write};
    pub use crate::memory::outside::Provenance;
    pub use crate::memory::record::{Record, Speaker};
}

/// From notes to notes in order.
pub mod defrag {
    pub use crate::memory::defrag::applied::carry_out;
    pub use crate::memory::defrag::corpus::{Corpus, read};
    pub use crate::memory::defrag::divide::divide;
    pub use crate::memory::defrag::host::look_up;
    pub use crate::memory::defrag::plan::DefragPlan;
    pub use crate::memory::defrag::{Defrag, Scanned};
}

/// Notes, where they are kept, and what is done with them.
pub mod notes {
    pub use crate::memory::recall::Recalled;
    pub use crate::memory::review::Pending;
    pub use crate::memory::search::{Findings, Found};
    pub use crate::memory::section::{Section, SectionLimits};
    pub use crate::memory::service::{Author, Changed, NewNote, NoteService, Patch};
    pub use crate::store::entry::{By, Entry, EntryId, Meta, Scope, Source, Status, Tier};
    pub use crate::store::index::NoteView;
    pub use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
    pub use crate::store::proposal::{Draft, Op, Proposal, ProposalId};
    pub use crate::store::revision::{Revision, Version};
    pub use crate::store::topics::Topics;
}

/// What waits to be made into notes.
pub mod queue {
    pub use crate::store::journal::entry::{CaptureContext as Context, Harness, QueueEntry, Retrieval};
}

pub use program::axe::main as axe;
pub use program::axe_agents::main as axe_agents;
pub use program::axe_config::main as axe_config;
pub use program::axe_gc::main as axe_gc;
pub use program::axe_map::main as axe_map;
pub use program::axe_run::main as axe_run;
pub use program::axe_runs::main as axe_runs;
pub use program::memory::main as memory;
pub use program::memory_agents_md::main as memory_agents_md;
pub use program::memory_capture::main as memory_capture;
pub use program::memory_config::main as memory_config;
pub use program::memory_consolidate::main as memory_consolidate;
pub use program::memory_defrag::main as memory_defrag;
pub use program::memory_doctor::main as memory_doctor;
pub use program::memory_edit::main as memory_edit;
pub use program::memory_import::main as memory_import;
pub use program::memory_install_cron::main as memory_install_cron;
pub use program::memory_install_hooks::main as memory_install_hooks;
pub use program::memory_list::main as memory_list;
pub use program::memory_mcp::main as memory_mcp;
pub use program::memory_page::main as memory_page;
pub use program::memory_read::main as memory_read;
pub use program::memory_recall::main as memory_recall;
pub use program::memory_remove::main as memory_remove;
pub use program::memory_review::main as memory_review;
pub use program::memory_share::main as memory_share;
pub use program::memory_status::main as memory_status;
pub use program::memory_sync::main as memory_sync;
pub use program::memory_uninstall_cron::main as memory_uninstall_cron;
pub use program::memory_uninstall_hooks::main as memory_uninstall_hooks;
pub use program::memory_update::main as memory_update;
