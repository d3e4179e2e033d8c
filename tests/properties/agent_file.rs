//! An agent's TOML.

use crate::config::agent::{self, AgentName};
use crate::config::model::Model;
use crate::fuzz::is_told_as;
use crate::fuzz::scratch::{Scratch, quiet};
use crate::store::run_log;
use serde_json::Value;

pub fn holds(bytes: &[u8]) {
    let scratch = Scratch::empty();
    let env = scratch.env();
    scratch.put(".config/axe/agents/x.toml", bytes);
    let name = AgentName::parse("x").unwrap();
    let agent = match agent::load(&name, &env, &quiet()) {
        Ok(agent) => agent,
        Err(error) => return is_told_as(&error, 2),
    };
    assert!(!agent.name.is_empty() && !agent.model.is_empty());
    assert!((1..=5).contains(&agent.sub_agents_config.depth()));
    assert!(agent.params.temperature.is_none_or(|t| t.is_finite() && t >= 0.0));
    if let Err(error) = Model::parse(&agent.model) {
        assert_eq!(error.exit_code(), 1);
    }
    // An agent's name becomes a file's: it cannot leave the directory.
    for other in &agent.sub_agents {
        match AgentName::parse(other) {
            Ok(other) => {
                let path = agent::path(&other, &env).unwrap();
                assert_eq!(path.parent().unwrap(), scratch.path(".config/axe/agents"));
                assert!(path.file_name().unwrap().len() < 256);
                let log = run_log::path(&other, &Default::default(), &env).unwrap();
                assert_eq!(log.parent().unwrap(), scratch.path(".local/share/axe/memory"));
            }
            Err(error) => is_told_as(&error, 2),
        }
    }
    if let Err(error) = agent::workdir(None, &agent, &env) {
        assert_eq!(error.exit_code(), 2);
    }
    // Shown as JSON, it is the same agent. Further parameters are read in a way of their own, from TOML.
    let json = serde_json::to_string(&agent).unwrap();
    let mut again: agent::Agent = serde_json::from_str(&json).unwrap();
    let shown: Value = serde_json::from_str(&json).unwrap();
    assert!(agent.params.extra.iter().all(|(name, value)| shown["params"].get(name) == Some(value)));
    again.params.extra = agent.params.extra;
    assert_eq!(serde_json::to_string(&again).unwrap(), json);
}
