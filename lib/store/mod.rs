//! What we wrote: logs of runs, conversations, the queue and the notes.

pub mod apply;
pub mod batch;
pub mod change;
pub mod conversation;
pub mod entry;
pub mod git;
pub mod history;
pub mod history_state;
pub mod index;
pub mod journal;
pub mod ledger;
pub mod merge_commit;
pub mod merge_driver;
pub mod persistence;
pub mod place;
pub mod projects;
pub mod proposal;
pub mod removed;
pub mod revision;
pub mod run_id;
pub mod run_log;
pub mod topics;
