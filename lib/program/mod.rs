//! One module per program: its help, its arguments, and what it does.

pub(crate) mod axe;
pub(crate) mod axe_agents;
pub(crate) mod axe_config;
pub(crate) mod axe_gc;
pub(crate) mod axe_run;
mod family;
mod manuals;
pub(crate) mod memory;
pub(crate) mod memory_agents_md;
pub(crate) mod memory_capture;
pub(crate) mod memory_config;
pub(crate) mod memory_consolidate;
pub(crate) mod memory_defrag;
pub(crate) mod memory_doctor;
pub(crate) mod memory_install_cron;
pub(crate) mod memory_list;
pub(crate) mod memory_read;
pub(crate) mod memory_remove;
pub(crate) mod memory_review;
pub(crate) mod memory_sync;
pub(crate) mod memory_uninstall_cron;
pub(crate) mod memory_update;
pub(crate) mod notes;
mod pipeline;
