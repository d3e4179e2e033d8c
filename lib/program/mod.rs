//! One room per binary: what it says of itself, its arguments, and what it does.

pub(crate) mod axe;
pub(crate) mod axe_agents;
pub(crate) mod axe_config;
pub(crate) mod axe_gc;
pub(crate) mod axe_run;
pub(crate) mod memory_capture;
pub(crate) mod memory_config;
