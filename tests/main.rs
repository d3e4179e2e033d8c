//! Behaviour, through the real binaries. One module a program, and one a concern that all share.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may write files, and fails by panicking"
)]

mod children;
mod support;

mod agent_file;
mod axe;
mod axe_agents;
mod axe_config;
mod axe_run;
mod axe_run_arguments;
mod commands;
mod config_file;
mod crowd;
mod dry_run;
mod every_program;
mod generated;
mod layers;
mod prompt_files;
mod prompt_symlinks;
mod run_log;
mod run_log_append;
mod run_log_faults;
mod signals;
mod skill;
mod stdin;
