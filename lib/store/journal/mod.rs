//! The queue: what waits to be made into notes, one JSON file an entry.

pub(crate) mod entry;
mod queue;

pub(crate) use queue::{Journal, Waiting};
