//! Servers of the Model Context Protocol whose tools a model may call: `[mcp.NAME]` in an agent's file.

use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::config::toml_file::{count, if_set};
use crate::config::tool::{DeclaredTool, ToolEntry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Seconds until a server is ready, unless `start_timeout` is set: npx may have to fetch it.
const START: u64 = 60;

/// `[mcp.NAME]`, as it is written.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct McpEntry {
    pub command: Vec<String>,
    /// Those of its tools that the model may call.
    pub tools: Vec<String>,
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
    pub entry: McpEntry,
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
        if self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return wrong("command is missing; write it as a list of words".to_owned());
        }
        if self.tools.is_empty() {
            return wrong("tools is missing; list the tools that the model may call".to_owned());
        }
        if let Confirm::Some(tools) = &self.confirm
            && let Some(tool) = tools.iter().find(|tool| !self.tools.contains(tool))
        {
            return wrong(format!("confirm names \"{}\", which is not in tools", tool.escape_debug()));
        }
        let server = McpServer { name: name.to_owned(), entry: self.clone() };
        let mut names = BTreeSet::new();
        for tool in &self.tools {
            let empty = Offer { description: String::new(), schema: Value::Null };
            let offered = server.tool(tool, &empty).map_err(|error| error.context(format!("mcp.{name}")))?;
            if !names.insert(offered.name) {
                return wrong(format!(
                    "\"{}\" is listed twice, or differs from another tool in punctuation only",
                    tool.escape_debug()
                ));
            }
        }
        Ok(server)
    }
}

impl McpServer {
    pub fn start_seconds(&self) -> u64 {
        if_set(self.entry.start_timeout).unwrap_or(START)
    }

    /// A tool of this server as the model gets it: under the server's name, and without the characters that not every
    /// API takes.
    pub fn tool(&self, tool: &str, offer: &Offer) -> Result<DeclaredTool> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name = format!("{}_{}", self.name, tool.chars().map(plain).collect::<String>());
        let entry = ToolEntry {
            description: offer.description.clone(),
            // A person who is asked sees the name and the arguments.
            command: vec![name.clone()],
            stdin: "json".to_owned(),
            timeout: self.entry.timeout,
            max_output: self.entry.max_output,
            confirm: match &self.entry.confirm {
                Confirm::All(all) => *all,
                Confirm::Some(tools) => tools.iter().any(|known| known == tool),
            },
            ..ToolEntry::default()
        };
        // The server checks its arguments itself, too: a rule that is not known here is left to it.
        let schema =
            Schema::new(offer.schema.clone()).unwrap_or_else(|_| Schema::unchecked(offer.schema.clone()));
        Ok(DeclaredTool {
            shown: format!("\"{}\" of the MCP server {}", tool.escape_debug(), self.name),
            server: Some((self.name.clone(), tool.to_owned())),
            ..entry.declared(&name, Some(schema))?
        })
    }
}
