//! What we wrote: logs of runs, and later the queue and the notes.

pub(crate) mod run_log;
