//! What the user wrote: agents, the global file, skills. Parsed and checked here, trusted elsewhere.

pub mod agent;
pub mod global;
pub mod json_file;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod preset;
pub mod scaffold;
pub mod skill;
pub mod toml_file;
pub mod tool;
