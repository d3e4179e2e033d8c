//! Running an agent: preparation, conversation, log.

pub mod check;
pub mod conversation;
pub mod gc;
pub mod log;
pub mod named;
pub mod prepare;
pub mod stats;
mod tools;
pub mod tree;
