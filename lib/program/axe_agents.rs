//! `axe-agents`: list, show, create and edit the files that define agents.

use crate::base::cli::{About, Arguments, Program, Reporter, Stdout, flag, text, value};
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::one_line;
use crate::config::agent::{self, Agent, AgentName, with_agents_dir};
use crate::config::scaffold;
use crate::program::editor;
use crate::store::run_log;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) const ABOUT: About = About {
    name: "axe-agents",
    caption: "list, show, create and edit agents",
    usage: &["axe-agents list [--json]", "axe-agents show [--json] AGENT", "axe-agents init|edit AGENT"],
    commands: &[
        ("list", "list every agent with its description, by name"),
        ("show", "show what an agent's file sets"),
        ("init", "write a commented agents/AGENT.toml and print its path"),
        ("edit", "open the file in $VISUAL, else $EDITOR"),
    ],
    flags: &[
        flag("json", "list: one JSON object per line; show: one JSON object"),
        value("agents-dir", "DIR", "look for agents in DIR first, and create them there"),
    ],
    more: "Agents are TOML files, agents/NAME.toml in the configuration directory (see \"axe-config path\"). \
           The name of the file is the name of the agent. axe(7) describes every key.\n\n    \
           axe-agents list --json | jq -r 'select(.memory.enabled).name'",
    sections: &[],
};

#[derive(Debug)]
enum Action {
    List,
    Show(AgentName),
    Init(AgentName),
    Edit(AgentName),
}

#[derive(Debug)]
struct Args {
    action: Action,
    json: bool,
    agents_dir: Option<PathBuf>,
}

pub fn main() -> ExitCode {
    Program { about: &ABOUT, parse, run }.main()
}

fn parse(p: &mut Arguments) -> Result<Args> {
    use lexopt::prelude::*;
    let mut json = false;
    let mut agents_dir = None;
    let mut words = Vec::new();
    while let Some(arg) = p.next()? {
        match arg {
            Long("json") => json = true,
            Long("agents-dir") => agents_dir = Some(p.path()?),
            Value(word) => words.push(text(word)?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let action = match words[..] {
        ["list"] => Action::List,
        ["show", name] => Action::Show(AgentName::parse(name)?),
        ["init", name] => Action::Init(AgentName::parse(name)?),
        ["edit", name] => Action::Edit(AgentName::parse(name)?),
        [] => return Err(Error::usage("a command is required: list, show, init or edit")),
        ["show" | "init" | "edit"] => return Err(Error::usage("agent name is required")),
        ["list" | "show" | "init" | "edit", .., extra] => {
            return Err(Error::unexpected(extra));
        }
        [unknown, ..] => {
            return Err(
                Error::usage(format!("unknown command \"{unknown}\"")).hint("use list, show, init or edit")
            );
        }
    };
    if json && matches!(action, Action::Init(_) | Action::Edit(_)) {
        return Err(Error::usage("option \"--json\" only works with list and show"));
    }
    Ok(Args { action, json, agents_dir })
}

fn run(args: Args, env: &Env, stdout: &mut Stdout) -> Result<ExitCode> {
    let reporter = Reporter::new(false);
    let env = &with_agents_dir(env, args.agents_dir.as_deref());
    match args.action {
        Action::List => list(args.json, env, &reporter, stdout)?,
        Action::Show(name) => {
            let agent = agent::load(&name, env, &reporter)?;
            if args.json { stdout.json(&as_json(&name, &agent))? } else { show(&name, &agent, env, stdout)? }
        }
        Action::Init(name) => init(&name, env, stdout)?,
        Action::Edit(name) => return edit(&name, env, &reporter),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(json: bool, env: &Env, reporter: &Reporter, stdout: &mut Stdout) -> Result<()> {
    for (name, agent) in agent::load_all(env, reporter)? {
        if json {
            stdout.json(&as_json(&name, &agent))?;
        } else if agent.description.is_empty() {
            stdout.line(name.as_str())?;
        } else {
            stdout.line(&format!("{name} - {}", one_line(&agent.description, 200)))?;
        }
    }
    Ok(())
}

/// The file as JSON with every key; its name is the file's.
fn as_json(name: &AgentName, agent: &Agent) -> Agent {
    Agent { name: name.to_string(), ..agent.clone() }
}

/// `Label: value`, values in one column, only what is set.
fn show(name: &AgentName, agent: &Agent, env: &Env, stdout: &mut Stdout) -> Result<()> {
    let number = |value: i64| if value == 0 { String::new() } else { value.to_string() };
    let Agent { sub_agents_config: calls, memory, params, .. } = agent;
    let parallel = if calls.parallel { "yes" } else { "no" };
    let mut rows = vec![
        ("Name", name.to_string()),
        ("Description", agent.description.clone()),
        ("Model", agent.model.clone()),
        ("System Prompt", agent.system_prompt.clone()),
        ("Skill", agent.skill.clone()),
        ("Schema", agent.schema.clone()),
        ("Files", agent.files.join(", ")),
        ("Workdir", agent.workdir.clone()),
        ("Sub-Agents", agent.sub_agents.join(", ")),
        ("Tools", agent.tools.keys().cloned().collect::<Vec<_>>().join(", ")),
        ("Max Depth", number(calls.max_depth)),
        ("Parallel", if agent.sub_agents.is_empty() { String::new() } else { parallel.to_owned() }),
        ("Timeout", if calls.timeout == 0 { String::new() } else { format!("{}s", calls.timeout) }),
        ("Run Timeout", if agent.timeout == 0 { String::new() } else { format!("{}s", agent.timeout) }),
    ];
    // If one is set, all are shown, so that an agent with a path and memory off explains itself (M6 2.5).
    if memory.enabled || !memory.path.is_empty() || memory.last_n != 0 || memory.max_entries != 0 {
        rows.extend([
            ("Memory Enabled", memory.enabled.to_string()),
            ("Memory Path", run_log::path(name, memory, env)?.display().to_string()),
            ("Memory LastN", memory.last_n.to_string()),
            ("Memory MaxEntries", memory.max_entries.to_string()),
            ("Memory MaxTaskChars", number(memory.max_task_chars)),
        ]);
    }
    rows.push(("Temperature", params.temperature.map(|value| value.to_string()).unwrap_or_default()));
    rows.push(("Max Tokens", params.max_tokens.map(|value| value.to_string()).unwrap_or_default()));
    let total = agent.limits.max_tokens_total().map(|limit| limit.to_string());
    rows.push(("Max Tokens Total", total.unwrap_or_default()));
    let extra: Vec<_> = params.extra.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    rows.push(("Params", extra.join("\n")));
    rows.retain(|(_, value)| !value.is_empty());
    let width = rows.iter().map(|(label, _)| label.len() + 1).max().unwrap_or(0);
    for (label, value) in rows {
        // A value of several lines stays in its column.
        let value = value.trim_end_matches('\n').replace('\n', &format!("\n{:width$} ", ""));
        stdout.line(&format!("{:width$} {value}", format!("{label}:")))?;
    }
    Ok(())
}

fn init(name: &AgentName, env: &Env, stdout: &mut Stdout) -> Result<()> {
    let path = agent::new_path(name, env)?;
    if let Some(dir) = path.parent() {
        file::make_dir(dir)?;
    }
    match file::create(&path, scaffold::agent(name).as_bytes(), 0o644) {
        Ok(()) => stdout.line(&path.display().to_string()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            Err(Error::usage(format!("agent config already exists: {}", path.display())))
        }
        Err(e) => Err(e.into()),
    }
}

/// Exits with the editor's signal, if the editor was ended by one.
fn edit(name: &AgentName, env: &Env, reporter: &Reporter) -> Result<ExitCode> {
    let path = agent::path(name, env)?;
    if !path.exists() {
        return Err(Error::config(format!("agent config not found: {name}"))
            .hint(format!("create it with: axe agents init {name}")));
    }
    let status = editor::edit(&path, env)?;
    if let Some(signal) = editor::signal_of(status) {
        return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
    }
    // Check the file while its author still has it in mind.
    if let Err(error) = agent::load(name, env, reporter) {
        reporter.warn(error.message());
    }
    Ok(ExitCode::SUCCESS)
}
