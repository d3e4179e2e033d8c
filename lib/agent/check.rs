//! What is wrong with agents and with config.toml, as far as that shows without a call. Nothing is run for it.

use crate::agent::prepare::{
    ModelRoute, add_servers, declared, missing_program, no_price, schema_of, skill_of, warn_of_missing,
};
use crate::agent::tree::Scope;
use crate::base::cli::Reporter;
use crate::base::command_line::program;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup;
use crate::base::secret::Secret;
use crate::config::agent::{self, Agent, AgentName};
use crate::config::global::{Endpoint, Global, KeySource};
use crate::prompt::{files, vars};
use crate::provider::Provider;
use serde::Serialize;
use std::path::Path;

/// One thing that is wrong.
#[derive(Debug, Serialize)]
pub struct Problem {
    /// `error`: a run fails; `warning`: it does not, or only if it meets it.
    pub level: &'static str,
    /// The agent's name, or `config.toml`.
    pub agent: String,
    pub what: String,
    /// The next step.
    pub hint: Option<String>,
}

/// The problems of one agent, or of config.toml.
struct Problems<'a> {
    of: &'a str,
    found: Vec<Problem>,
}

impl Problems<'_> {
    fn add(&mut self, level: &'static str, what: &str, hint: Option<&str>) {
        let (agent, what, hint) = (self.of.to_owned(), what.to_owned(), hint.map(str::to_owned));
        self.found.push(Problem { level, agent, what, hint });
    }

    /// The value, unless it is an error.
    fn value<T>(&mut self, level: &'static str, result: Result<T>) -> Option<T> {
        // What it warned of comes first.
        self.add_warnings();
        result.map_err(|error| self.add(level, error.message(), error.next_step())).ok()
    }

    /// Looks for a program, which `key` names. Without the working directory, nobody knows where.
    fn find(&mut self, level: &'static str, key: &str, program: &str, workdir: Option<&Path>, env: &Env) {
        if let Some(missing) = workdir.and_then(|dir| missing_program(key, program, dir, env)) {
            self.add(level, &missing, None);
        }
    }

    fn add_warnings(&mut self) {
        for warning in Reporter::kept() {
            self.add("warning", warning.trim_start_matches("Warning: "), None);
        }
    }
}

/// The problems of the agents `names`; without names those of config.toml and of all agents. The reporter of `scope` keeps
/// its warnings.
pub fn problems(names: &[&str], scope: Scope) -> Result<Vec<Problem>> {
    let Scope { env, reporter, .. } = scope;
    let mut config = Problems { of: "config.toml", found: Vec::new() };
    let global = config.value("error", Global::load(env, &reporter));
    if let Some(global) = global.as_ref().filter(|_| names.is_empty()) {
        config.value("error", global.retries(env));
        for (alias, model) in &global.models {
            let endpoint = global.endpoint(model, env);
            config.value("error", endpoint.map_err(|error| error.context(format!("models.{alias}"))));
        }
        for model in global.rates.keys() {
            let endpoint =
                global.endpoint(model, env).map_err(|error| error.context(format!("rates.\"{model}\"")));
            if let Some(Endpoint::Command { .. }) = config.value("error", endpoint) {
                let what = format!("rates.\"{model}\": a command has no rate");
                config.add("warning", &what, Some("remove it"));
            }
        }
    }
    let mut found = config.found;
    // Of config.toml, those who ask for an agent see only what keeps it from running.
    found.retain(|problem| names.is_empty() || problem.level == "error");
    let all = if names.is_empty() { agent::names(env)? } else { Vec::new() };
    for name in all.iter().map(String::as_str).chain(names.iter().copied()) {
        let mut own = Problems { of: name, found: Vec::new() };
        let loaded = AgentName::parse(name).and_then(|name| Ok((agent::load(&name, env, &reporter)?, name)));
        if let Some((agent, name)) = own.value("error", loaded) {
            check_models(&name, &agent, global.as_ref(), scope, &mut own);
            check_parts(&name, &agent, scope, &mut own);
        }
        found.append(&mut own.found);
    }
    Ok(found)
}

fn check_models(name: &AgentName, agent: &Agent, global: Option<&Global>, scope: Scope, own: &mut Problems) {
    if agent.model.is_empty() {
        own.add("warning", "it has no model", Some("set model, or use --model"));
    }
    let Some(global) = global else { return };
    let main = std::iter::once(&agent.model).filter(|model| !model.is_empty()).map(|text| (true, text));
    for (is_main, text) in main.chain(agent.fallback.iter().map(|text| (false, text))) {
        let at = format!("fallback \"{text}\"");
        let place = |error: Error| if is_main { error } else { error.context(&at) };
        let route =
            global.model(text).and_then(|model| ModelRoute::of(name, agent, model, global, scope.env));
        // A wrong name is an error wherever it stands. A fallback without a key is missed only when it is needed.
        if let Some(route) = own.value("error", route.map_err(place)) {
            let level = if is_main { "error" } else { "warning" };
            if global.limits.needs_prices() && route.price.is_none() {
                own.value(level, Err::<(), _>(place(no_price(&route.model))));
            }
            let reached = reach(route.endpoint, scope, own).map_err(place);
            own.value(level, reached);
        }
    }
}

/// Checks the address and the key of a model. Of commands only the program is looked up.
fn reach(endpoint: Endpoint, scope: Scope, own: &mut Problems) -> Result<()> {
    let mut find = |line: &str| {
        let program = program(line).filter(|program| !program.contains(['$', '~']));
        if let Some(program) = program.filter(|name| lookup::on_path(name.as_ref(), scope.env).is_none()) {
            let hint = "install it, or correct its line in config.toml";
            own.add("warning", &format!("the command \"{program}\" was not found"), Some(hint));
        }
    };
    match endpoint {
        Endpoint::Command { line, .. } => find(&line),
        Endpoint::Http(mut endpoint) => {
            if let KeySource::Command(line) = &endpoint.key {
                find(line);
                endpoint.key = KeySource::Given(Secret::new("any"));
            }
            let dir = scope.env.current_dir()?;
            Provider::connect(&Endpoint::Http(endpoint), &dir, false, scope.env, scope.deadline)?;
        }
    }
    Ok(())
}

/// Everything but the models.
fn check_parts(name: &AgentName, agent: &Agent, scope: Scope, own: &mut Problems) {
    let Scope { env, reporter, .. } = scope;
    // A value that the command line must give may be anything.
    let mut given = agent.vars.clone();
    for value in given.values_mut().filter(|value| value.is_empty()) {
        "any".clone_into(value);
    }
    let mut texts: Vec<String> = std::iter::once(&agent.system_prompt).chain(&agent.files).cloned().collect();
    own.value("error", vars::fill(&given, &[], &mut texts));
    let has_variable = |pattern: &&String| !agent.vars.is_empty() && pattern.contains("{{");
    let patterns: Vec<String> = agent.files.iter().filter(|text| !has_variable(text)).cloned().collect();
    let are_valid = patterns.iter().all(|text| own.value("error", files::check(text)).is_some());
    let workdir = own.value("error", agent::workdir(None, agent, env));
    // Without a directory of its own, the agent finds other files elsewhere.
    if let Some(dir) = workdir.as_ref().filter(|_| are_valid && !agent.workdir.is_empty()) {
        own.value("error", files::collect(&patterns, dir, &reporter));
    }
    own.value("error", skill_of(agent, None, scope));
    own.value("error", schema_of(&agent.schema, env));
    let mut tools = Vec::new();
    for (tool, entry) in &agent.tools {
        if let Some(tool) = own.value("error", declared(name, tool, entry, env)) {
            own.find("warning", &format!("tools.{}", tool.name), &tool.program(), workdir.as_deref(), env);
            tools.push(tool);
        }
    }
    let mut are_valid = true;
    for (server, entry) in &agent.mcp {
        match own.value("error", entry.declared(server)) {
            // A run does not begin without its servers.
            Some(_) => {
                let program = entry.command.first().map_or("", String::as_str);
                own.find("error", &format!("mcp.{server}"), program, workdir.as_deref(), env);
            }
            None => are_valid = false,
        }
    }
    if are_valid {
        own.value("error", add_servers(name, agent, &mut tools, scope));
    }
    warn_of_missing(name, agent, scope);
    own.add_warnings();
}
