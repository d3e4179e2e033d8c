//! The queue of sessions and notes that consolidation has not read yet: one JSON file per entry.

pub(crate) mod entry;
mod queue;

pub(crate) use queue::{Journal, Put, Read, Waiting, read_at};
