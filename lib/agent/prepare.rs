//! From an agent's name to everything a call needs: file, overrides, model, directories, files, skill.

use crate::agent::log::AgentLog;
use crate::agent::mcp::Server;
use crate::agent::tree::{MOST_AT_ONCE, Providers, Scope};
use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::base::lookup;
use crate::base::parallel;
use crate::config::agent::{self, Agent, AgentName, if_set};
use crate::config::global::{Api, Endpoint, Global, HttpEndpoint};
use crate::config::mcp::{McpServer, Offers};
use crate::config::model::Model;
use crate::config::prices::Price;
use crate::config::scaffold;
use crate::config::schema_file;
use crate::config::skill;
use crate::config::tool::{DeclaredTool, ToolEntry};
use crate::prompt;
use crate::prompt::files::{self, ContextFile};
use crate::provider::message::{Attachment, ChatTurn, PDF, Repeats, Request};
use crate::store::accepted;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Values from the command line that replace those of the agent file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overrides<'a> {
    pub skill: Option<&'a str>,
    pub schema: Option<&'a str>,
    pub workdir: Option<&'a str>,
}

/// An agent that is ready to run, except for its log and its servers.
pub struct PreparedAgent {
    pub name: AgentName,
    pub agent: Agent,
    pub model: Model,
    pub(super) endpoint: Endpoint,
    pub(super) price: Option<Price>,
    pub workdir: PathBuf,
    pub files: Vec<ContextFile>,
    /// The skill's path as it was given, for messages.
    pub skill_path: String,
    pub skill: String,
    /// What the answer must match.
    pub schema: Option<Schema>,
    /// What its model may call: programs, by name, and tools of its servers.
    pub tools: Vec<DeclaredTool>,
    /// Its MCP servers, with what was accepted of each.
    pub mcp: Vec<(McpServer, Offers)>,
    /// Those that run, by name.
    pub(super) servers: BTreeMap<String, Server>,
}

impl PreparedAgent {
    /// Reads and checks what the run needs. The first error in this order is reported.
    pub fn new(
        name: AgentName,
        agent: Agent,
        model: Model,
        overrides: Overrides,
        global: &Global,
        scope: Scope,
    ) -> Result<PreparedAgent> {
        let Scope { env, reporter, .. } = scope;
        let endpoint = global.endpoint(&model, env).map_err(|error| match agent::path(&name, env) {
            Ok(path) if model.to_string() == scaffold::MODEL => {
                error.hint(format!("change the line model = \"{model}\" in \"{}\"", path.display()))
            }
            _ => error,
        })?;
        let callable = [
            ("sub_agents", agent.sub_agents.is_empty()),
            ("tools", agent.tools.is_empty()),
            ("mcp", agent.mcp.is_empty()),
        ];
        let callable = callable.into_iter().find_map(|(what, is_empty)| (!is_empty).then_some(what));
        if let Some(what) = callable.filter(|_| matches!(endpoint, Endpoint::Command { .. })) {
            return Err(Error::config(format!(
                "agent \"{name}\" has {what}, and its model \"{model}\" is a command, which cannot call them"
            ))
            .hint(format!("use a model with tools, or remove {what}")));
        }
        warn_of_missing(&name, &agent, scope);
        let workdir = agent::workdir(overrides.workdir, &agent, env)?;
        let files = files::collect(&agent.files, &workdir, &reporter)?;
        let (skill_path, skill) = match (overrides.skill, agent.skill.as_str()) {
            (Some(typed), _) => {
                (typed.to_owned(), skill::load(typed, Some(&env.current_dir()?), env, &reporter)?)
            }
            (None, "") => (String::new(), String::new()),
            (None, path) => (path.to_owned(), skill::load(path, None, env, &reporter)?),
        };
        let schema = match (overrides.schema, agent.schema.as_str()) {
            (Some(typed), _) => Some(schema_file::load(&env.current_dir()?.join(env.expand(typed)), typed)?),
            (None, "") => None,
            (None, path) => Some(schema_file::load(&env.config_dir()?.join(env.expand(path)), path)?),
        };
        let declared = |(tool, entry): (&String, &ToolEntry)| {
            let schema = match entry.schema.as_str() {
                "" => None,
                path => Some(schema_file::load(&env.config_dir()?.join(env.expand(path)), path)?),
            };
            entry.declared(tool, schema).map_err(|error| error.context(format!("agent config \"{name}\"")))
        };
        let mut tools = agent.tools.iter().map(declared).collect::<Result<Vec<_>>>()?;
        let mcp = accepted_servers(&name, &agent, scope)?;
        for (server, offers) in &mcp {
            for (tool, offer) in offers {
                let tool = server.tool(tool, offer)?;
                if tools.iter().any(|known| known.name == tool.name) {
                    let message =
                        format!("agent config \"{name}\": two tools have the name \"{}\"", tool.name);
                    return Err(Error::config(message).hint("rename one of them, or its server"));
                }
                tools.push(tool);
            }
        }
        let price = global.price(&model);
        Ok(PreparedAgent {
            name,
            agent,
            model,
            endpoint,
            price,
            workdir,
            files,
            skill_path,
            skill,
            schema,
            tools,
            mcp,
            servers: BTreeMap::new(),
        })
    }

    /// The first request of a conversation: the complete system prompt, with the log, and a message.
    pub fn request(&self, log: &AgentLog, message: ChatTurn) -> Request {
        let params = &self.agent.params;
        let system = prompt::system(&self.agent.system_prompt, &self.skill, &self.files, log.text());
        Request {
            // The log comes last.
            volatile: log.text().len(),
            repeats: if self.agent.cache { Repeats::System } else { Repeats::Nothing },
            temperature: params.temperature,
            max_tokens: params.max_tokens,
            extra: params.extra.clone(),
            schema: self.schema.clone(),
            ..Request::new(&self.model.name, system, message)
        }
    }

    /// Fetches the key of its service, which is an error if there is none.
    pub fn connect(&self, providers: &Providers, scope: Scope) -> Result<()> {
        providers.of(&self.endpoint, &self.workdir, scope).map(|_| ())
    }

    /// How many tokens one run may take; `None`: no limit.
    pub fn max_tokens_total(&self, global: &Global) -> Option<u64> {
        if_set(self.agent.limits.max_tokens_total).or(global.max_tokens_total())
    }

    /// How many tokens the next call may take, about: those of its prompt, and of the longest answer as far as it is known.
    pub fn size(&self, request: &Request) -> (u64, u64) {
        (request.tokens(), request.most_output(self.endpoint.api()))
    }

    /// Starts its MCP servers, which end with it.
    ///
    /// # Errors
    /// One cannot be used, or offers something else than what was accepted.
    pub fn start_servers(&mut self, scope: Scope) -> Result<()> {
        let start = |_, (server, _): &(McpServer, Offers)| Server::start(server, &self.workdir, scope);
        let started = parallel::map_at_once(&self.mcp, MOST_AT_ONCE, start);
        for ((server, accepted), started) in self.mcp.iter().zip(started) {
            let (running, offers) = started?;
            if let Some((tool, _)) = offers.iter().find(|(tool, offer)| accepted.get(*tool) != Some(*offer)) {
                let message = format!(
                    "MCP server \"{}\" has changed what it says of its tool \"{tool}\" since that was accepted",
                    server.name
                );
                return Err(Error::config(message).hint(accepted::hint(&self.name, scope.env)));
            }
            self.servers.insert(server.name.clone(), running);
        }
        Ok(())
    }

    /// Otherwise only the model would find out, in a paid call.
    pub fn warn_of_missing_programs(&self, scope: Scope) {
        let tools = self.tools.iter().filter(|tool| tool.server.is_none());
        let tools = tools.map(|tool| (format!("tools.{}", tool.name), tool.program()));
        let servers = self.mcp.iter().map(|(server, _)| {
            (format!("mcp.{}", server.name), server.entry.command.first().cloned().unwrap_or_default())
        });
        for (key, program) in tools.chain(servers) {
            let path =
                if program.contains('/') { self.workdir.join(&program) } else { PathBuf::from(&program) };
            if lookup::on_path(path.as_os_str(), scope.env).is_none() {
                scope.reporter.warn(&format!("{key}: the program \"{program}\" was not found"));
            }
        }
    }

    /// The API of its model; a command has none.
    pub fn api(&self) -> Option<Api> {
        match &self.endpoint {
            Endpoint::Http(HttpEndpoint { api, .. }) => Some(*api),
            Endpoint::Command { .. } => None,
        }
    }

    /// Not every API takes files, or all kinds of them.
    pub fn check_files(&self, files: &[Attachment]) -> Result<()> {
        let refused = match &self.endpoint {
            Endpoint::Command { .. } => {
                files.first().map(|file| (file, "is a command, which takes no files"))
            }
            Endpoint::Http(HttpEndpoint { api: Api::Ollama, .. }) => {
                let pdf = files.iter().find(|file| file.media == PDF);
                pdf.map(|file| (file, "is served by Ollama, which takes images only"))
            }
            Endpoint::Http(_) => None,
        };
        match refused {
            Some((file, why)) => Err(Error::usage(format!(
                "cannot attach \"{}\": the model \"{}\" {why}",
                file.name, self.model
            ))
            .hint("use another model, or pipe its text in")),
            None => Ok(()),
        }
    }
}

/// The servers of an agent, with what was accepted of the tools that it lists.
fn accepted_servers(name: &AgentName, agent: &Agent, scope: Scope) -> Result<Vec<(McpServer, Offers)>> {
    let of_agent = |error: Error| error.context(format!("agent config \"{name}\""));
    let declared = agent.mcp.iter().map(|(server, entry)| entry.declared(server).map_err(of_agent));
    let servers = declared.collect::<Result<Vec<_>>>()?;
    let mut accepted = match servers.is_empty() {
        true => return Ok(Vec::new()),
        false => accepted::load(name, scope.env)?,
    };
    let with_offers = |server: McpServer| {
        let mut offers = accepted.servers.remove(&server.name).unwrap_or_default();
        offers.retain(|tool, _| server.entry.tools.contains(tool));
        if let Some(tool) = server.entry.tools.iter().find(|tool| !offers.contains_key(*tool)) {
            let message = format!(
                "what the MCP server \"{}\" says of its tool \"{}\" was not accepted yet",
                server.name,
                tool.escape_debug()
            );
            return Err(Error::config(message).hint(accepted::hint(name, scope.env)));
        }
        Ok((server, offers))
    };
    servers.into_iter().map(with_offers).collect()
}

/// Otherwise only the model would find out about a misspelt sub-agent, in a paid call.
fn warn_of_missing(name: &AgentName, agent: &Agent, scope: Scope) {
    for callee in &agent.sub_agents {
        let exists =
            AgentName::parse(callee).and_then(|callee| Ok(agent::path(&callee, scope.env)?.exists()));
        if !exists.unwrap_or(false) {
            scope.reporter.warn(&format!("agent \"{name}\" may call \"{callee}\", which does not exist"));
        }
    }
}
