//! `axe-agents`: list, show, check, create and edit the files that define agents, and accept what their MCP servers offer.

use crate::agent::check::{self, Problem};
use crate::agent::mcp::Server;
use crate::agent::tree::Scope;
use crate::base::cli::{
    self, About, Args, Column, Completes, Context, ExitCode, FlagRule, Reporter, Table, Words, flag, path,
};
use crate::base::deadline::{Deadline, LONGEST_SECONDS};
use crate::base::error::{Error, Result};
use crate::base::exec::signal_of;
use crate::base::file;
use crate::base::terminal;
use crate::base::text::{disarmed, in_line, one_line};
use crate::config::agent::{self, Agent, AgentName, if_set, with_agents_dir};
use crate::config::mcp::Offer;
use crate::config::scaffold;
use crate::memory::review::diff_lines;
use crate::program::edited;
use crate::program::person::{self, PATIENCE, only_a_person};
use crate::program::screen::{present_table, print_row};
use crate::store::accepted::{self, Accepted};
use crate::store::run_log;
use std::io;
use std::path::Path;

pub(super) const ABOUT: About = About {
    name: "axe-agents",
    caption: "list, show, check, create and edit agents",
    usage: &[
        "axe-agents list [--json]",
        "axe-agents show [--json] AGENT",
        "axe-agents check [--json] [AGENT...]",
        "axe-agents init|edit|accept AGENT",
    ],
    commands: &[
        ("list", "list every agent with its description, by name"),
        ("show", "show what an agent's file sets"),
        ("check", "say what is wrong with agents, without a call; exit 2 if a run would fail"),
        ("init", "write a commented agents/AGENT.toml and print its path"),
        ("edit", "open the file in $VISUAL, else $EDITOR"),
        ("accept", "show what the agent's MCP servers offer, and ask whether its model may use it"),
    ],
    flags: &[
        flag("json", "list, check: one JSON object per line; show: one JSON object"),
        path("agents-dir", "DIR", "look for agents in DIR first, and create them there"),
    ],
    words: Words::Command(usize::MAX),
    completes: Completes::Values("agents"),
    rules: &[FlagRule::Needs(
        &["--json"],
        &["list", "show", "check"],
        "only works with list, show and check",
        "",
    )],
    text: include_str!("axe_agents.md"),
    ..About::BLANK
};

/// Seconds for key files that do not answer.
const TIMEOUT: u64 = 30;

pub fn main() -> ExitCode {
    cli::main(&ABOUT, run)
}

fn run(args: &Args, cx: &mut Context) -> Result<ExitCode> {
    cx.env = with_agents_dir(&cx.env, args.path("agents-dir"));
    let words = args.words();
    match words[..] {
        ["list"] => list(cx)?,
        ["check", ref names @ ..] => return check(names, cx),
        ["list", extra, ..] | [_, _, extra, ..] => return Err(Error::unexpected(extra)),
        [_] => return Err(Error::usage("agent name is required")),
        [command, name, ..] => {
            let name = AgentName::parse(name)?;
            match command {
                "init" => init(&name, cx)?,
                "edit" => return edit(&name, cx),
                "accept" => accept(&name, cx)?,
                _ => show(&name, cx)?,
            }
        }
        [] => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// A table on a terminal, else a line for each.
fn list(cx: &mut Context) -> Result<()> {
    const COLUMNS: &[Column] =
        &[Column::whole("AGENT", 0), Column::cut("MODEL", 16, 1), Column::cut("DESCRIPTION", 20, 0)];
    let mut table = Table::new(COLUMNS, None);
    for (name, agent) in agent::load_all(&cx.env, &cx.reporter)? {
        if cx.stdout.is_terminal() && !cx.json {
            let Agent { model, description, .. } = agent;
            let cells = vec![name.to_string().into(), model.into(), description.into()];
            table.row(cells, "", &mut cx.stdout)?;
        } else if cx.json {
            cx.stdout.json(&as_json(&name, agent))?;
        } else if agent.description.is_empty() {
            cx.stdout.line(name.as_str())?;
        } else {
            cx.stdout.line(&format!("{name} - {}", one_line(&agent.description, 200)))?;
        }
    }
    present_table(&table, cx)
}

/// The file as JSON with every key; its name is the file's.
fn as_json(name: &AgentName, agent: Agent) -> Agent {
    Agent { name: name.to_string(), ..agent }
}

/// `Label: value`, values in one column, only what is set.
fn show(name: &AgentName, cx: &mut Context) -> Result<()> {
    let agent = agent::load(name, &cx.env, &cx.reporter)?;
    if cx.json {
        return cx.stdout.json(&as_json(name, agent));
    }
    let or_empty = |is_set: bool, value: String| if is_set { value } else { String::new() };
    let Agent { sub_agents_config: calls, memory, params, .. } = &agent;
    let parallel = if calls.parallel { "yes" } else { "no" };
    let vars: Vec<_> = agent.vars.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let mut rows = vec![
        ("Name", name.to_string()),
        ("Description", agent.description.clone()),
        ("Model", agent.model.clone()),
        ("Fallback", agent.fallback.join(", ")),
        ("System Prompt", agent.system_prompt.clone()),
        ("Vars", vars.join("\n")),
        ("Skill", agent.skill.clone()),
        ("Schema", agent.schema.clone()),
        ("Files", agent.files.join(", ")),
        ("Workdir", agent.workdir.clone()),
        ("Sub-Agents", agent.sub_agents.join(", ")),
        ("Tools", agent.tools.keys().cloned().collect::<Vec<_>>().join(", ")),
        ("MCP", agent.mcp.keys().cloned().collect::<Vec<_>>().join(", ")),
        ("Max Depth", or_empty(calls.max_depth != 0, calls.max_depth.to_string())),
        ("Parallel", or_empty(!agent.sub_agents.is_empty(), parallel.to_owned())),
        ("Timeout", or_empty(calls.timeout != 0, format!("{}s", calls.timeout))),
        ("Run Timeout", or_empty(agent.timeout != 0, format!("{}s", agent.timeout))),
    ];
    // If one is set, all are shown, so that an agent with a path and memory off explains itself (M6 2.5).
    if memory.enabled || !memory.path.is_empty() || memory.last_n != 0 || memory.max_entries != 0 {
        let most = memory.max_task_chars;
        rows.extend([
            ("Memory Enabled", memory.enabled.to_string()),
            ("Memory Path", run_log::path(name, memory, &cx.env)?.display().to_string()),
            ("Memory LastN", memory.last_n.to_string()),
            ("Memory MaxEntries", memory.max_entries.to_string()),
            ("Memory MaxTaskChars", or_empty(most != 0, most.to_string())),
        ]);
    }
    rows.push(("Temperature", params.temperature.map(|value| value.to_string()).unwrap_or_default()));
    rows.push(("Max Tokens", params.max_tokens.map(|value| value.to_string()).unwrap_or_default()));
    let total = if_set(agent.limits.max_tokens_total).map(|limit| limit.to_string());
    rows.push(("Max Tokens Total", total.unwrap_or_default()));
    let extra: Vec<_> = params.extra.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    rows.push(("Params", extra.join("\n")));
    rows.retain(|(_, value)| !value.is_empty());
    let width = rows.iter().map(|(label, _)| label.len() + 1).max().unwrap_or(0);
    for (label, value) in rows {
        // A value of several lines stays in its column.
        let value = value.trim_end_matches('\n').replace('\n', &format!("\n{:width$} ", ""));
        cx.stdout.line(&format!("{:width$} {value}", format!("{label}:")))?;
    }
    Ok(())
}

/// A line for each problem.
fn check(names: &[&str], cx: &mut Context) -> Result<ExitCode> {
    let reporter = Reporter::keeping(false, true);
    let scope = Scope::of_run(&cx.env, Deadline::after_seconds(TIMEOUT), reporter);
    let problems = check::problems(names, scope)?;
    for problem in &problems {
        let Problem { level, agent, what, hint } = problem;
        if cx.json {
            cx.stdout.json(problem)?;
            continue;
        }
        let [agent, what, hint] = [agent, what, hint.as_deref().unwrap_or_default()].map(in_line);
        print_row([*level, &*agent, &*what, &*hint], cx)?;
    }
    let fails = problems.iter().any(|problem| problem.level == "error");
    Ok(if fails { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn init(name: &AgentName, cx: &mut Context) -> Result<()> {
    let path = agent::new_path(name, &cx.env)?;
    let exists = |path: &Path| Err(Error::usage(format!("agent config already exists: {}", path.display())));
    if name.as_str() == agent::DEFAULT
        && let Some(path) = agent::file_of(name, &cx.env)?
    {
        return exists(&path);
    }
    if let Some(dir) = path.parent() {
        file::make_dir(dir)?;
    }
    match file::create(&path, scaffold::agent(name).as_bytes(), 0o644) {
        Ok(()) => cx.stdout.line(&path.display().to_string()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => exists(&path),
        Err(e) => Err(e.into()),
    }
}

/// Exits with the editor's signal, if the editor was ended by one.
fn edit(name: &AgentName, cx: &Context) -> Result<ExitCode> {
    let Some(path) = agent::file_of(name, &cx.env)? else {
        return Err(Error::config(format!("agent config not found: {name}"))
            .hint(format!("create it with: axe agents init {name}")));
    };
    let status = edited::edit(&path, &cx.env)?;
    if let Some(signal) = signal_of(status) {
        return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(1)));
    }
    // Check the file while its author still has it in mind.
    if let Err(error) = agent::load(name, &cx.env, &cx.reporter) {
        cx.reporter.warn(error.message());
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the agent's servers, shows what they offer, and writes it down if a person accepts it.
fn accept(name: &AgentName, cx: &mut Context) -> Result<()> {
    only_a_person(person::ACCEPT, cx)?;
    cx.watch_signals();
    let agent = agent::load(name, &cx.env, &cx.reporter)?;
    if agent.mcp.is_empty() {
        return Err(Error::usage(format!("agent \"{name}\" has no MCP servers")));
    }
    let workdir = agent::workdir(None, &agent, &cx.env)?;
    let scope = Scope::of_run(&cx.env, Deadline::after_seconds(LONGEST_SECONDS), cx.reporter);
    let mut new = Accepted::default();
    for (server, entry) in &agent.mcp {
        let declared = entry.declared(server)?;
        cx.say(&format!("starting the MCP server \"{server}\""));
        // It has ended again before anybody is asked: a program that runs could type the answer.
        let (_, offers) = Server::start(&declared, &workdir, scope)?;
        new.servers.insert(server.clone(), offers);
    }
    let old = accepted::load(name, &cx.env).unwrap_or_else(|error| {
        cx.reporter.warn(error.message());
        Accepted::default()
    });
    if new == old {
        return cx.stdout.line("nothing has changed since it was accepted");
    }
    for (server, offers) in &new.servers {
        for (tool, offer) in offers {
            let known = old.servers.get(server).and_then(|offers| offers.get(tool));
            let what = match known {
                None => "new",
                Some(known) if known == offer => "as it was accepted",
                Some(_) => "CHANGED",
            };
            cx.stdout.line(&format!("{server}: {} ({what})", in_line(tool)))?;
            if known != Some(offer) {
                for line in diff_lines(&known.map(shown).unwrap_or_default(), &shown(offer)) {
                    cx.stdout.line(&disarmed(&line))?;
                }
            }
        }
    }
    cx.stdout.flush()?;
    let question = format!("May the model of agent \"{name}\" be told this, and call these tools? [y/N] ");
    match terminal::agrees(&question, Deadline::after_seconds(PATIENCE))? {
        Some(true) => accepted::save(&new, name, &cx.env),
        Some(false) => Err(Error::refused("nothing was accepted")),
        None => Err(Error::refused("nothing was accepted: there is no terminal to ask on")
            .hint("run it in a terminal")),
    }
}

/// What a model is told of a tool, for a person who reads all of it.
fn shown(offer: &Offer) -> String {
    format!("{}\n{:#}\n", offer.description, offer.schema)
}
