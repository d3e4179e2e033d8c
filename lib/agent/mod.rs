//! Running an agent: preparation, conversation, log.

pub(crate) mod conversation;
pub(crate) mod gc;
pub(crate) mod log;
pub(crate) mod named;
pub(crate) mod prepare;
pub(crate) mod stats;
pub(crate) mod sub_agent;
mod tools;
