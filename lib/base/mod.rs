//! The lowest layer: what every program uses, and what knows nothing about agents.

pub mod ago;
pub mod cli;
pub mod command_line;
pub mod deadline;
pub mod env;
pub mod error;
pub mod exec;
pub mod fields;
pub mod file;
pub mod http;
pub mod json_rpc;
pub mod json_schema;
pub mod lines;
pub mod lookup;
pub mod members;
pub mod packed;
pub mod parallel;
pub mod reach;
pub mod repository;
pub mod secret;
pub mod signal;
pub mod stderr;
pub mod stdin;
pub mod sync;
pub mod terminal;
pub mod text;
