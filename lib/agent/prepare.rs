//! From an agent's name to everything a call needs: file, overrides, model, directories, files, skill.

use crate::agent::log::AgentLog;
use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::config::agent::{self, Agent, AgentName};
use crate::config::global::{Endpoint, Global};
use crate::config::model::Model;
use crate::config::scaffold;
use crate::config::skill;
use crate::prompt;
use crate::prompt::files::{self, ContextFile};
use std::path::PathBuf;

/// Values from the command line that replace those of the agent file.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) skill: Option<String>,
    pub(crate) workdir: Option<String>,
}

/// An agent that is ready to run, except for its log.
#[derive(Debug)]
pub(crate) struct PreparedAgent {
    pub(crate) name: AgentName,
    pub(crate) agent: Agent,
    pub(crate) model: Model,
    pub(super) endpoint: Endpoint,
    pub(crate) workdir: PathBuf,
    pub(crate) files: Vec<ContextFile>,
    /// The skill's path as it was given, for messages.
    pub(crate) skill_path: String,
    pub(crate) skill: String,
}

impl PreparedAgent {
    /// Reads and checks what the run needs. The first error in this order is reported.
    pub(crate) fn new(
        name: AgentName,
        agent: Agent,
        model: Model,
        overrides: &Overrides,
        global: &Global,
        env: &Env,
        reporter: &Reporter,
    ) -> Result<PreparedAgent> {
        let endpoint = global.endpoint(&model, env).map_err(|error| match agent::path(&name, env) {
            Ok(path) if model.to_string() == scaffold::MODEL => {
                error.hint(format!("change the line model = \"{model}\" in \"{}\"", path.display()))
            }
            _ => error,
        })?;
        if matches!(endpoint, Endpoint::Command { .. }) && !agent.sub_agents.is_empty() {
            return Err(Error::config(format!(
                "agent \"{name}\" has sub_agents, and its model \"{model}\" is a command, which cannot call them"
            ))
            .hint("use a model with tools, or remove sub_agents"));
        }
        warn_of_missing(&name, &agent, env, reporter);
        let workdir = agent::workdir(overrides.workdir.as_deref(), &agent, env)?;
        let files = files::collect(&agent.files, &workdir, reporter)?;
        let (skill_path, skill) = match (&overrides.skill, agent.skill.as_str()) {
            (Some(typed), _) => {
                (typed.clone(), skill::load(typed, Some(&env.current_dir()?), env, reporter)?)
            }
            (None, "") => (String::new(), String::new()),
            (None, path) => (path.to_owned(), skill::load(path, None, env, reporter)?),
        };
        Ok(PreparedAgent { name, agent, model, endpoint, workdir, files, skill_path, skill })
    }

    /// The complete system prompt, with the log.
    pub(crate) fn system(&self, log: &AgentLog) -> String {
        prompt::system(&self.agent.system_prompt, &self.skill, &self.files, log.text())
    }
}

/// Otherwise only the model would find out about a misspelt sub-agent, in a paid call.
fn warn_of_missing(name: &AgentName, agent: &Agent, env: &Env, reporter: &Reporter) {
    for callee in &agent.sub_agents {
        let exists = AgentName::parse(callee).and_then(|callee| Ok(agent::path(&callee, env)?.exists()));
        if !exists.unwrap_or(false) {
            reporter.warn(&format!("agent \"{name}\" may call \"{callee}\", which does not exist"));
        }
    }
}
