//! What we wrote: logs of runs, conversations, the queue and the notes.

pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod change;
pub(crate) mod conversation;
pub(crate) mod entry;
pub(crate) mod git;
pub(crate) mod history;
pub(crate) mod history_state;
pub(crate) mod index;
pub(crate) mod journal;
pub(crate) mod ledger;
pub(crate) mod merge_commit;
pub(crate) mod merge_driver;
pub(crate) mod persistence;
pub(crate) mod place;
pub(crate) mod projects;
pub(crate) mod proposal;
pub(crate) mod removed;
pub(crate) mod revision;
pub(crate) mod run_log;
pub(crate) mod topics;
