//! Running an agent: preparation, conversation, log.

mod calls;
pub mod check;
pub mod conversation;
pub mod gc;
pub mod log;
pub mod mcp;
pub mod named;
pub mod prepare;
pub mod record;
pub mod stats;
mod tools;
pub mod tree;
pub mod turn_file;
