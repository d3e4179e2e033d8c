//! The axe toolkit: small programs that run LLM agents from the shell and keep what they learn.
//!
//! One function for each program, called by the binary of that name. Beside them, for a host in Rust, the memory
//! pipelines without their storage and their LLM: [`consolidate`] and [`defrag`] are machines that say what to do, the
//! host does it. `examples/embed.rs` is a whole host. Everything else is private.

mod agent;
mod base;
mod config;
#[cfg(any(test, fuzzing))]
#[path = "../fuzz/properties/mod.rs"]
pub mod fuzz;
mod harness;
mod memory;
mod program;
mod prompt;
mod provider;
mod schedule;
mod store;

pub use base::error::{Error, ErrorKind, Fault, Result};

/// What both pipelines have in common: machines, effects, events.
pub mod pipeline {
    pub use crate::memory::pipeline::{
        Answer, Begun, Ending, Event, Failure, Pipeline, Question, State, Work,
    };
    pub use crate::memory::redact::Redactor;
}

/// From queue entries to notes.
pub mod consolidate {
    pub use crate::harness::turn::Role;
    pub use crate::memory::consolidate::Consolidate;
    pub use crate::memory::consolidate::ask::{Material, RelatedNote, Session};
    pub use crate::memory::consolidate::land::Known;
    pub use crate::memory::consolidate::passage::Passage;
    pub use crate::memory::consolidate::pending::PendingChange;
    pub use crate::memory::consolidate::plan::{Plan, PlannedChange, PlannedNote, Retirement, Waiting};
    pub use crate::memory::consolidate::related::{RelatedLimits, related};
    pub use crate::memory::consolidate::work::{Claimed, Slice, Verdict, Work};
    pub use crate::memory::consolidate::write::{Action, Made, Written, write};
    pub use crate::memory::outside::Provenance;
    pub use crate::memory::record::{Record, Speaker};
}

/// From notes to notes in order.
pub mod defrag {
    pub use crate::memory::defrag::State;
    pub use crate::memory::defrag::applied::carry_out;
    pub use crate::memory::defrag::corpus::{Corpus, read};
    pub use crate::memory::defrag::divide::divide;
    pub use crate::memory::defrag::host::look_up;
    pub use crate::memory::defrag::plan::Plan;
    pub use crate::memory::defrag::work::{Defrag, Scanned};
}

/// Notes and where they are kept.
pub mod notes {
    pub use crate::store::change::{Change, Preview};
    pub use crate::store::entry::{By, Entry, EntryId, Kept, Meta, Scope, Source, Status, Tier};
    pub use crate::store::persistence::{Broken, Note, Persistence, Place, Scan};
    pub use crate::store::place::Root;
    pub use crate::store::proposal::{Draft, Evidence, Op, Proposal, ProposalId};
    pub use crate::store::revision::{Revision, Version};
    pub use crate::store::topics::{StoreLock, Topics};
}

/// What waits to be made into notes.
pub mod queue {
    pub use crate::store::journal::entry::{Context, Harness, QueueEntry, Retrieval};
}

pub use program::axe::main as axe;
pub use program::axe_agents::main as axe_agents;
pub use program::axe_config::main as axe_config;
pub use program::axe_gc::main as axe_gc;
pub use program::axe_run::main as axe_run;
pub use program::memory::main as memory;
pub use program::memory_agents_md::main as memory_agents_md;
pub use program::memory_capture::main as memory_capture;
pub use program::memory_config::main as memory_config;
pub use program::memory_consolidate::main as memory_consolidate;
pub use program::memory_defrag::main as memory_defrag;
pub use program::memory_doctor::main as memory_doctor;
pub use program::memory_install_cron::main as memory_install_cron;
pub use program::memory_install_hooks::main as memory_install_hooks;
pub use program::memory_list::main as memory_list;
pub use program::memory_read::main as memory_read;
pub use program::memory_recall::main as memory_recall;
pub use program::memory_remove::main as memory_remove;
pub use program::memory_review::main as memory_review;
pub use program::memory_sync::main as memory_sync;
pub use program::memory_uninstall_cron::main as memory_uninstall_cron;
pub use program::memory_uninstall_hooks::main as memory_uninstall_hooks;
pub use program::memory_update::main as memory_update;
