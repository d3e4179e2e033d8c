//! What the user wrote: agents, the global file, skills. Parsed and checked here, trusted elsewhere.

pub(crate) mod agent;
pub(crate) mod global;
pub(crate) mod json_file;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod preset;
pub(crate) mod prices;
pub(crate) mod scaffold;
pub(crate) mod schema_file;
pub(crate) mod skill;
pub(crate) mod toml_file;
pub(crate) mod tool;
