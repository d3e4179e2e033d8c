//! What a person accepted of what an agent's MCP servers offer: `NAME.mcp.json`, beside the agent's file.
//!
//! The file of an agent from another directory is kept with the user's own agents, under a name that has a hash of the
//! directory: a checkout cannot bring a file that says it was accepted.

use crate::base::command_line::quoted;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::hex;
use crate::config::agent::{self, AgentName};
use crate::config::mcp::Offers;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The largest file that is read, in bytes.
const CAP: u64 = 16 << 20;

/// By the names of the servers.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Accepted {
    pub servers: BTreeMap<String, Offers>,
}

/// Where the file of an agent is, and the command that writes it.
fn place(name: &AgentName, env: &Env) -> Result<(PathBuf, String)> {
    let own = env.config_dir()?.join("agents");
    let path = agent::path(name, env)?;
    let dir = path.parent().unwrap_or(&own);
    let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let name = name.as_str();
    if real == std::fs::canonicalize(&own).unwrap_or_else(|_| own.clone()) {
        return Ok((own.join(format!("{name}.mcp.json")), format!("axe-agents accept {}", quoted(name))));
    }
    let hash = hex(&Sha256::digest(real.as_os_str().as_encoded_bytes())[..6]);
    let dir = quoted(&real.to_string_lossy());
    let command = format!("axe-agents accept --agents-dir {dir} {}", quoted(name));
    Ok((own.join(format!("{name}.{hash}.mcp.json")), command))
}

/// The next step after an error, as a hint.
pub fn hint(name: &AgentName, env: &Env) -> String {
    let command = place(name, env).map(|(_, command)| command).unwrap_or_default();
    format!("to see it and accept it, run: {command}")
}

/// What was accepted for the agent; nothing if there is no file.
pub fn load(name: &AgentName, env: &Env) -> Result<Accepted> {
    let (path, _) = place(name, env)?;
    let wrong = |why: String| {
        Error::config(format!("\"{}\" cannot be used: {why}", path.display())).hint(hint(name, env))
    };
    match file::if_exists(file::read(&path, CAP)).map_err(|e| wrong(e.to_string()))? {
        None => Ok(Accepted::default()),
        Some(bytes) => serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string())),
    }
}

/// Replaces what was accepted.
pub fn save(accepted: &Accepted, name: &AgentName, env: &Env) -> Result<()> {
    let (path, _) = place(name, env)?;
    if let Some(dir) = path.parent() {
        file::make_dir(dir)?;
    }
    let json = serde_json::to_vec_pretty(accepted).map_err(io::Error::from)?;
    Ok(file::install(&path, &json, 0o644)?)
}
