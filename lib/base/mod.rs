//! The lowest layer: what every program uses, and what knows nothing about agents.

pub(crate) mod cli;
pub(crate) mod command_line;
pub(crate) mod deadline;
pub(crate) mod env;
pub(crate) mod error;
pub(crate) mod exec;
pub(crate) mod fields;
pub(crate) mod file;
pub(crate) mod http;
pub(crate) mod json_schema;
pub(crate) mod lookup;
pub(crate) mod members;
pub(crate) mod packed;
pub(crate) mod parallel;
pub(crate) mod repository;
pub(crate) mod secret;
pub(crate) mod signal;
pub(crate) mod stderr;
pub(crate) mod stdin;
pub(crate) mod sync;
pub(crate) mod text;
