//! The axe toolkit: small programs that run LLM agents from the shell.
//!
//! One function a program, called by the door of that name in `bins/`. Everything else is private, so that
//! the compiler tells what nobody uses.

mod agent;
mod base;
mod config;
#[cfg(any(test, fuzzing))]
#[path = "../fuzz/properties/mod.rs"]
pub mod fuzz;
mod harness;
mod memory;
mod program;
mod prompt;
mod provider;
mod schedule;
mod store;

pub use base::error::{Error, ErrorKind, Fault, Result};
pub use program::axe::main as axe;
pub use program::axe_agents::main as axe_agents;
pub use program::axe_config::main as axe_config;
pub use program::axe_gc::main as axe_gc;
pub use program::axe_run::main as axe_run;
pub use program::memory::main as memory;
pub use program::memory_agents_md::main as memory_agents_md;
pub use program::memory_capture::main as memory_capture;
pub use program::memory_config::main as memory_config;
pub use program::memory_consolidate::main as memory_consolidate;
pub use program::memory_defrag::main as memory_defrag;
pub use program::memory_doctor::main as memory_doctor;
pub use program::memory_install_cron::main as memory_install_cron;
pub use program::memory_list::main as memory_list;
pub use program::memory_read::main as memory_read;
pub use program::memory_remove::main as memory_remove;
pub use program::memory_uninstall_cron::main as memory_uninstall_cron;
pub use program::memory_update::main as memory_update;
