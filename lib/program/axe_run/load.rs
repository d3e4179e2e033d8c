//! The agent of a run, as the command line changes it.

use crate::agent::prepare::{Overrides, PreparedAgent};
use crate::agent::tree::Scope;
use crate::agent::turn_file::RunStart;
use crate::base::cli::{Args, Context};
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::config::agent::{self, AgentName};
use crate::config::global::Global;
use crate::config::toml_file::if_set;
use crate::program::axe_run::TIMEOUT;
use crate::prompt::vars;

pub struct Loaded {
    pub global: Global,
    pub prepared: PreparedAgent,
    /// Seconds.
    pub timeout: u64,
    /// Counted from the start: what the run waits for comes after this.
    pub deadline: Deadline,
}

/// What `--prompt` says, if it is given.
pub fn given_prompt(args: &Args) -> Result<Option<String>> {
    let prompt = args.text("prompt").map(str::to_owned);
    if prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
        return Err(Error::empty("--prompt"));
    }
    Ok(prompt)
}

/// The agent `name`, or without a name the default one, with the variables of its texts and of `prompt` filled in.
/// `earlier`: what a run that is continued began with, and the model that it had at last. Of what its request has already,
/// nothing is read again.
pub fn load(
    args: &Args,
    name: Option<AgentName>,
    prompt: &mut Option<String>,
    earlier: Option<(&RunStart, &str)>,
    cx: &Context,
) -> Result<Loaded> {
    let Context { env, reporter, .. } = cx;
    let is_named = name.is_some();
    let (name, mut agent) = match name {
        Some(name) => match agent::load(&name, env, reporter) {
            Err(error) if name.as_str().contains(' ') && !args.has("prompt") => {
                return Err(error.hint("a prompt needs -p: axe-run -p \"…\""));
            }
            agent => (name, agent?),
        },
        None => agent::load_default(env, reporter)?,
    };
    let timeout = args.number("timeout").or(if_set(agent.timeout)).unwrap_or(TIMEOUT);
    let deadline = Deadline::after_seconds(timeout);
    let global = Global::load(env, reporter)?;
    let model = match args.text("model").or(earlier.map(|(_, newest)| newest)) {
        Some(text) => global.model(text)?,
        None if agent.model.is_empty() => return Err(without_model(!is_named && prompt.is_none(), env)),
        None => global.model(&agent.model)?,
    };
    if args.has("model") {
        // It alone is wanted.
        agent.fallback.clear();
    }
    let [skill, schema, mut workdir] = ["skill", "schema", "workdir"].map(|flag| args.text(flag));
    if let Some((start, _)) = earlier {
        (agent.skill, agent.schema, workdir) = (String::new(), String::new(), start.workdir.to_str());
        agent.files.clear();
        agent.vars.clear();
    }
    let texts = [&mut agent.system_prompt].into_iter().chain(&mut agent.files).chain(prompt);
    vars::fill(&agent.vars, &args.texts("set"), texts)?;
    let overrides = Overrides { model, skill, schema, workdir };
    let scope = Scope::of_run(env, deadline, *reporter);
    let prepared = PreparedAgent::new(name, agent, overrides, &global, scope)?;
    Ok(Loaded { global, prepared, timeout, deadline })
}

fn without_model(needs_prompt: bool, env: &Env) -> Error {
    let config = env.config_dir().unwrap_or_default().join("config.toml");
    let next = format!("use --model, or set model under [default] in \"{}\"", config.display());
    match needs_prompt {
        // Not even that there is a prompt is known yet.
        true => Error::usage("agent name is required").hint(format!("without an agent: {next}")),
        false => Error::config("no agent is named, and the default has no model").hint(next),
    }
}
