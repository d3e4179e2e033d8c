//! Behaviour, through the real binaries. One module a program, and one a concern that all share.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may write files, and fails by panicking"
)]

mod support;

mod addresses;
mod agent_file;
mod agent_trees;
mod agents_md;
mod agents_md_files;
mod answer_schema;
mod anthropic;
mod axe;
mod axe_agents;
mod axe_config;
mod axe_gc;
mod axe_gc_all;
mod axe_run;
mod axe_run_arguments;
mod capture_faults;
mod capture_hooks;
mod commands;
mod config_file;
mod consolidate;
mod consolidate_by_hand;
mod consolidate_caps;
mod consolidate_commands;
mod consolidate_harnesses;
mod consolidate_history;
mod consolidate_modes;
mod consolidate_parts;
mod consolidate_replies;
mod consolidate_tries;
mod crowd;
mod defrag;
mod defrag_at_once;
mod defrag_by_hand;
mod defrag_commands;
mod defrag_groups;
mod defrag_meanwhile;
mod defrag_notes;
mod defrag_replies;
mod defrag_undo;
mod dry_run;
mod every_program;
mod examples;
mod fan_out;
mod gc_http;
mod generated;
mod http_faults;
mod install_cron;
mod layers;
mod manuals;
mod memory_capture;
mod memory_config;
mod memory_dispatcher;
mod memory_doctor;
mod memory_history;
mod memory_list;
mod memory_notes;
mod memory_store_faults;
mod memory_update;
mod nix;
mod nix_units;
mod ollama;
mod openai;
mod paid_answers;
mod pipes;
mod prompt_files;
mod prompt_symlinks;
mod providers;
mod retries;
mod run_log;
mod run_log_append;
mod run_log_faults;
mod run_settings;
mod shown;
mod signals;
mod skill;
mod stdin;
mod streams;
mod sub_agents;
mod timers_doctor;
mod timers_for_real;
mod tools;
mod trim_full;
mod trim_races;
