//! From an agent's name to everything a call needs: file, overrides, model, directories, files, skill.

use crate::agent::log::AgentLog;
use crate::agent::mcp::Server;
use crate::agent::tree::{MOST_AT_ONCE, Providers, RunContext, Scope};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::base::lookup;
use crate::base::parallel;
use crate::config::agent::{self, Agent, AgentName};
use crate::config::global::{Api, Endpoint, Global};
use crate::config::mcp::{McpServer, Offers};
use crate::config::model::{Model, Price};
use crate::config::scaffold;
use crate::config::skill;
use crate::config::toml_file::{self, if_set};
use crate::config::tool::{DeclaredTool, ToolEntry};
use crate::prompt;
use crate::prompt::files::{self, ContextFile};
use crate::provider::message::{Attachment, ChatTurn, PDF, Repeats, Request};
use crate::store::accepted;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What may come from the command line, instead of the agent's file.
pub struct Overrides<'a> {
    pub model: Model,
    pub skill: Option<&'a str>,
    pub schema: Option<&'a str>,
    pub workdir: Option<&'a str>,
}

impl Overrides<'_> {
    pub(super) fn of_model(model: Model) -> Self {
        Overrides { model, skill: None, schema: None, workdir: None }
    }
}

/// A model, how it is reached, and what it costs.
#[derive(Debug, Clone)]
pub struct ModelRoute {
    pub model: Model,
    pub(super) endpoint: Endpoint,
    pub(super) price: Option<Price>,
}

impl ModelRoute {
    /// The way to the model of the agent `name`, whatever it is called there.
    pub(super) fn of(
        name: &AgentName,
        agent: &Agent,
        model: Model,
        global: &Global,
        env: &Env,
    ) -> Result<ModelRoute> {
        let endpoint = global.endpoint(&model, env).map_err(|error| match agent::path(name, env) {
            Ok(path) if model.to_string() == scaffold::MODEL => {
                error.hint(format!("change the line model = \"{model}\" in \"{}\"", path.display()))
            }
            _ => error,
        })?;
        let lacks = [agent.sub_agents.is_empty(), agent.tools.is_empty(), agent.mcp.is_empty()];
        let callable = ["sub_agents", "tools", "mcp"].into_iter().zip(lacks).find(|(_, lacks)| !lacks);
        if let Some((what, _)) = callable.filter(|_| endpoint.api().is_none()) {
            return Err(Error::config(format!(
                "agent \"{name}\" has {what}, and its model \"{model}\" is a command, which cannot call them"
            ))
            .hint(format!("use a model with tools, or remove {what}")));
        }
        let price = global.price(&model);
        Ok(ModelRoute { model, endpoint, price })
    }

    /// The first file that the model does not take, and why. Not every API takes files, or all kinds of them.
    fn refuses<'a>(&self, files: &'a [Attachment]) -> Option<(&'a Attachment, &'static str)> {
        match self.endpoint.api() {
            None => Some((files.first()?, "is a command, which takes no files")),
            Some(Api::Ollama) => {
                let pdf = files.iter().find(|file| file.media == PDF)?;
                Some((pdf, "is served by Ollama, which takes images only"))
            }
            Some(Api::Anthropic | Api::OpenAi) => None,
        }
    }

    /// Why the model cannot take over from a conversation that was held with `other` so far.
    pub(super) fn unfit(&self, request: &Request, other: &ModelRoute) -> Option<String> {
        let has_raw_turns = request.turns.iter().any(|turn| matches!(turn, ChatTurn::Assistant(_)));
        if has_raw_turns && self.endpoint.api() != other.endpoint.api() {
            return Some("the conversation so far has the form of another API".to_owned());
        }
        let refused = request.turns.iter().find_map(|turn| {
            if let ChatTurn::Attached(_, files) = turn { self.refuses(files) } else { None }
        });
        refused.map(|(file, why)| format!("it {why} (\"{}\")", file.name))
    }
}

pub(super) fn no_price(model: &Model) -> Error {
    Error::config(format!("the limits in money need a price for the model \"{model}\""))
        .hint(format!("add [prices.\"{model}\"] to config.toml, with input and output"))
}

/// An agent that is ready to run, except for its log and its servers.
pub struct PreparedAgent {
    pub name: AgentName,
    pub agent: Agent,
    /// The way to its model.
    pub(super) route: ModelRoute,
    /// The models that are asked if it cannot be reached, in this order.
    pub(super) fallback: Vec<ModelRoute>,
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

/// An agent at its place in the tree of a run.
#[derive(Clone, Copy)]
pub struct RunningAgent<'a> {
    pub run: &'a RunContext<'a>,
    pub agent: &'a PreparedAgent,
    pub scope: Scope<'a>,
}

impl PreparedAgent {
    /// Reads and checks what the run needs. The first error in this order is reported.
    pub fn new(
        name: AgentName,
        agent: Agent,
        overrides: Overrides,
        global: &Global,
        scope: Scope,
    ) -> Result<PreparedAgent> {
        let Scope { env, reporter, .. } = scope;
        let route = ModelRoute::of(&name, &agent, overrides.model, global, env)?;
        let mut fallback: Vec<ModelRoute> = Vec::new();
        for text in &agent.fallback {
            let failed = |error: Error| error.context(format!("fallback \"{text}\" of agent \"{name}\""));
            let model = global.model(text).map_err(failed)?;
            if std::iter::once(&route).chain(&fallback).all(|route| route.model != model) {
                fallback.push(ModelRoute::of(&name, &agent, model, global, env).map_err(failed)?);
            }
        }
        warn_of_missing(&name, &agent, scope);
        let workdir = agent::workdir(overrides.workdir, &agent, env)?;
        let files = files::collect(&agent.files, &workdir, &reporter)?;
        let (skill_path, skill) = skill_of(&agent, overrides.skill, scope)?;
        let schema = match overrides.schema {
            Some(typed) => Some(load_schema(&env.current_dir()?.join(env.expand(typed)), typed)?),
            None => schema_of(&agent.schema, env)?,
        };
        let tools = agent.tools.iter().map(|(tool, entry)| declared(&name, tool, entry, env));
        let mut tools = tools.collect::<Result<Vec<_>>>()?;
        Ok(PreparedAgent {
            mcp: add_servers(&name, &agent, &mut tools, scope)?,
            servers: BTreeMap::new(),
            name,
            agent,
            route,
            fallback,
            workdir,
            files,
            skill_path,
            skill,
            schema,
            tools,
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
            ..Request::new(&self.model().name, system, message)
        }
    }

    /// Fetches the key of its service, which is an error if there is none.
    pub fn connect(&self, providers: &Providers, scope: Scope) -> Result<()> {
        providers.of(&self.route.endpoint, &self.workdir, scope).map(|_| ())
    }

    /// How many tokens one run may take; `None`: no limit.
    pub fn max_tokens_total(&self, global: &Global) -> Option<u64> {
        if_set(self.agent.limits.max_tokens_total).or(global.max_tokens_total())
    }

    /// How many tokens the next call may take, about: those of its prompt, and of the longest answer as far as it is known.
    pub fn size(&self, request: &Request) -> (u64, u64) {
        let most = |route: &ModelRoute| request.most_output(route.endpoint.api());
        let fallback = self.fallback.iter().map(most).max().unwrap_or(0);
        (request.tokens(), most(&self.route).max(fallback))
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
            let missing = missing_program(&key, &program, &self.workdir, scope.env);
            missing.iter().for_each(|missing| scope.reporter.warn(missing));
        }
    }

    pub fn model(&self) -> &Model {
        &self.route.model
    }

    /// The API of its model; a command has none.
    pub fn api(&self) -> Option<Api> {
        self.route.endpoint.api()
    }

    pub fn check_files(&self, files: &[Attachment]) -> Result<()> {
        match self.route.refuses(files) {
            Some((file, why)) => Err(Error::usage(format!(
                "cannot attach \"{}\": the model \"{}\" {why}",
                file.name,
                self.model()
            ))
            .hint("use another model, or pipe its text in")),
            None => Ok(()),
        }
    }
}

/// The servers of an agent, with what was accepted of the tools that it lists. These are added to `tools`.
pub(super) fn add_servers(
    name: &AgentName,
    agent: &Agent,
    tools: &mut Vec<DeclaredTool>,
    scope: Scope,
) -> Result<Vec<(McpServer, Offers)>> {
    let of_agent = |error: Error| error.context(format!("agent config \"{name}\""));
    let declared = agent.mcp.iter().map(|(server, entry)| entry.declared(server).map_err(of_agent));
    let servers = declared.collect::<Result<Vec<_>>>()?;
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let mut accepted = accepted::load(name, scope.env)?;
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
    let servers = servers.into_iter().map(with_offers).collect::<Result<Vec<_>>>()?;
    for (server, offers) in &servers {
        for (tool, offer) in offers {
            let tool = server.tool(tool, offer)?;
            if tools.iter().any(|known| known.name == tool.name) {
                let message = format!("agent config \"{name}\": two tools have the name \"{}\"", tool.name);
                return Err(Error::config(message).hint("rename one of them, or its server"));
            }
            tools.push(tool);
        }
    }
    Ok(servers)
}

/// The skill of an agent, and its path as it was given.
pub(super) fn skill_of(agent: &Agent, typed: Option<&str>, scope: Scope) -> Result<(String, String)> {
    let Scope { env, reporter, .. } = scope;
    Ok(match (typed, agent.skill.as_str()) {
        (Some(typed), _) => {
            (typed.to_owned(), skill::load(typed, Some(&env.current_dir()?), env, &reporter)?)
        }
        (None, "") => (String::new(), String::new()),
        (None, path) => (path.to_owned(), skill::load(path, None, env, &reporter)?),
    })
}

/// The schema in the file `path`. `named` is how the user wrote it.
fn load_schema(path: &Path, named: &str) -> Result<Schema> {
    let Some(bytes) = toml_file::read(path, &format!("schema \"{named}\""))? else {
        return Err(Error::config(format!("schema not found: {named}"))
            .hint(format!("looked for \"{}\"", path.display())));
    };
    let failed = |error: Error| error.context(format!("schema \"{named}\""));
    let value = serde_json::from_str(toml_file::text(&bytes).map_err(failed)?)
        .map_err(|e| failed(Error::config(format!("not valid JSON: {e}"))))?;
    Schema::new(value).map_err(failed)
}

/// The schema that an agent's file names, if it names one.
pub(super) fn schema_of(path: &str, env: &Env) -> Result<Option<Schema>> {
    if path.is_empty() {
        return Ok(None);
    }
    load_schema(&env.config_dir()?.join(env.expand(path)), path).map(Some)
}

pub(super) fn declared(name: &AgentName, tool: &str, entry: &ToolEntry, env: &Env) -> Result<DeclaredTool> {
    let schema = schema_of(&entry.schema, env)?;
    entry.declared(tool, schema).map_err(|error| error.context(format!("agent config \"{name}\"")))
}

/// `key` is where the agent's file names it.
pub(super) fn missing_program(key: &str, program: &str, workdir: &Path, env: &Env) -> Option<String> {
    let path = if program.contains('/') { workdir.join(program) } else { PathBuf::from(program) };
    let is_missing = lookup::on_path(path.as_os_str(), env).is_none();
    is_missing.then(|| format!("{key}: the program \"{program}\" was not found"))
}

/// Otherwise only the model would find out about a misspelt sub-agent, in a paid call.
pub(super) fn warn_of_missing(name: &AgentName, agent: &Agent, scope: Scope) {
    for callee in &agent.sub_agents {
        if !AgentName::parse(callee).is_ok_and(|callee| agent::exists(&callee, scope.env)) {
            scope.reporter.warn(&format!("agent \"{name}\" may call \"{callee}\", which does not exist"));
        }
    }
}
