//! What we wrote: logs of runs, the queue and the notes.

pub(crate) mod run_log;
