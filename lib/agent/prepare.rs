//! From an agent's name to everything a call needs: file, overrides, model, directories, files, skill.

use crate::agent::log::AgentLog;
use crate::agent::tree::Scope;
use crate::base::error::{Error, Result};
use crate::base::json_schema::Schema;
use crate::base::lookup;
use crate::config::agent::{self, Agent, AgentName};
use crate::config::global::{Api, Endpoint, Global, HttpEndpoint};
use crate::config::model::Model;
use crate::config::prices::Price;
use crate::config::scaffold;
use crate::config::schema_file;
use crate::config::skill;
use crate::config::tool::{DeclaredTool, ToolEntry};
use crate::prompt;
use crate::prompt::files::{self, ContextFile};
use crate::provider::message::{Attachment, ChatTurn, PDF, Repeats, Request};
use std::path::PathBuf;

/// Values from the command line that replace those of the agent file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overrides<'a> {
    pub skill: Option<&'a str>,
    pub schema: Option<&'a str>,
    pub workdir: Option<&'a str>,
}

/// An agent that is ready to run, except for its log.
#[derive(Debug)]
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
    /// The programs that its model may call, by name.
    pub tools: Vec<DeclaredTool>,
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
        let callable = match (agent.sub_agents.is_empty(), agent.tools.is_empty()) {
            (false, _) => Some("sub_agents"),
            (true, false) => Some("tools"),
            (true, true) => None,
        };
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
        let tools = agent.tools.iter().map(declared).collect::<Result<_>>()?;
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

    /// Otherwise only the model would find out, in a paid call.
    pub fn warn_of_missing_programs(&self, scope: Scope) {
        for tool in &self.tools {
            let program = tool.program();
            let path =
                if program.contains('/') { self.workdir.join(&program) } else { PathBuf::from(&program) };
            if lookup::on_path(path.as_os_str(), scope.env).is_none() {
                scope.reporter.warn(&format!("tools.{}: the program \"{program}\" was not found", tool.name));
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
