//! The files that `init` writes, for people to fill in. Tests parse them, with and without their comments.

use crate::config::agent::AgentName;

/// Everything in it is a comment.
pub const CONFIG: &str = include_str!("scaffold/config.toml");

pub const SKILL: &str = include_str!("scaffold/SKILL.md");

/// The model in a new agent's file, for the user to change.
pub const MODEL: &str = "provider/model-name";

/// The required keys, and the others as comments.
pub fn agent(name: &AgentName) -> String {
    include_str!("scaffold/agent.toml").replace("@NAME@", &name.as_str().replace('"', "\\\""))
}
