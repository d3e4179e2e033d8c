//! The queue of sessions and notes that consolidation has not read yet: one JSON file per entry.

pub mod entry;
mod queue;

pub use queue::{Journal, QueuedEntry, harness_and_time, mark_of, new_id, read_at};
