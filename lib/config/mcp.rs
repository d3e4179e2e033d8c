//! Servers of the Model Context Protocol whose tools a model may call: `[mcp.NAME]` in an agent's file.

use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::config::toml_file::count;
use crate::config::tool::{CommandWord, DeclaredTool, Limits, ServerTool, WordPart, is_tool_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Seconds until a server is ready, unless `start_timeout` is set: npx may have to fetch it.
const START: u64 = 60;

/// `[mcp.NAME]`, as it is written.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct McpEntry {
    command: Vec<String>,
    /// Those of its tools that the model may call.
    tools: Vec<String>,
    /// Seconds for a call; 0: the default.
    #[serde(deserialize_with = "count")]
    timeout: u64,
    /// Seconds; 0: the default.
    #[serde(deserialize_with = "count")]
    start_timeout: u64,
    /// Bytes; 0: the default.
    #[serde(deserialize_with = "count")]
    max_output: usize,
    confirm: Confirm,
}

/// Which calls a person is asked about.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(untagged, expecting = "invalid confirm, expected true, false or a list of tools")]
enum Confirm {
    All(bool),
    Some(Vec<String>),
}

impl Default for Confirm {
    fn default() -> Confirm {
        Confirm::All(false)
    }
}

/// A server that is ready to be started.
#[derive(Debug, Clone)]
pub struct McpServer {
    pub name: String,
    pub command: Vec<String>,
    /// Those of its tools that the model may call.
    pub tools: Vec<String>,
    pub start_seconds: u64,
    limits: Limits,
    confirm: Confirm,
}

/// What a model is told of a server's tool.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Offer {
    #[serde(default)]
    pub description: String,
    pub schema: Value,
}

/// What a server offers, by the names of its tools.
pub type Offers = BTreeMap<String, Offer>;

impl McpEntry {
    /// Checks the table, and starts nothing.
    pub fn declared(&self, name: &str) -> Result<McpServer> {
        let wrong = |why: String| Err(Error::config(format!("mcp.{name}: {why}")));
        if !is_tool_name(name) {
            return wrong("a server's name has letters without accents, digits, _ and -".to_owned());
        }
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return wrong("command is missing; write it as a list of words".to_owned());
        }
        if self.command.iter().any(|word| word.contains('\0')) {
            return wrong("a word of command contains a NUL".to_owned());
        }
        if self.tools.is_empty() {
            return wrong("tools is missing; list the tools that the model may call".to_owned());
        }
        let mut known = BTreeSet::new();
        for tool in &self.tools {
            let offered = offered_name(name, tool);
            if tool.is_empty() || !is_tool_name(&offered) {
                return wrong(format!(
                    "the tool \"{}\" cannot be offered as \"{offered}\": a tool's name has 1 to 64 letters",
                    tool.escape_debug()
                ));
            }
            if !known.insert(offered) {
                return wrong(format!(
                    "the tool \"{tool}\" is listed twice, or differs from another in punctuation only"
                ));
            }
        }
        if let Confirm::Some(tools) = &self.confirm
            && let Some(tool) = tools.iter().find(|tool| !self.tools.contains(tool))
        {
            return wrong(format!("confirm names \"{}\", which is not in tools", tool.escape_debug()));
        }
        let limits = Limits::new(self.timeout, self.max_output);
        let limits = limits.map_err(|error| error.context(format!("mcp.{name}")))?;
        Ok(McpServer {
            name: name.to_owned(),
            command: self.command.clone(),
            tools: self.tools.clone(),
            start_seconds: if self.start_timeout == 0 { START } else { self.start_timeout },
            limits,
            confirm: self.confirm.clone(),
        })
    }
}

/// The name that a model calls a server's tool by. Not every API takes dots and slashes in it.
fn offered_name(server: &str, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{server}_{}", tool.chars().map(plain).collect::<String>())
}

impl McpServer {
    /// A tool of this server as the model gets it.
    pub fn tool(&self, tool: &str, offer: &Offer) -> DeclaredTool {
        let name = offered_name(&self.name, tool);
        let schema = offer.schema.clone();
        DeclaredTool {
            // A person who is asked sees the name and the arguments.
            words: vec![CommandWord(vec![WordPart::Text(name.clone())])],
            stdin_json: true,
            description: offer.description.clone(),
            // The server checks its arguments itself, too: a rule that is not known here is left to it.
            schema: Schema::new(schema.clone()).unwrap_or_else(|_| Schema::unchecked(schema)),
            paths: BTreeSet::new(),
            timeout_seconds: self.limits.timeout_seconds,
            ok_exit: Vec::new(),
            max_output: self.limits.max_output,
            confirm: match &self.confirm {
                Confirm::All(all) => *all,
                Confirm::Some(tools) => tools.iter().any(|known| known == tool),
            },
            shown: format!("\"{}\" of the MCP server {}", tool.escape_debug(), self.name),
            server: Some(ServerTool { server: self.name.clone(), tool: tool.to_owned() }),
            name,
        }
    }
}
