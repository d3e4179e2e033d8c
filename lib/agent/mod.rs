//! An agent at work: made ready, in conversation, its run written down.

pub(crate) mod conversation;
pub(crate) mod gc;
pub(crate) mod history;
pub(crate) mod prepare;
pub(crate) mod sub_agent;
pub(crate) mod tally;
