//! The file that `memory-config init` writes: the settings that depend on the machine.

use crate::base::command_line::program;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::on_path;
use crate::config::agent::{self, AgentName};
use crate::config::memory::default_root;
use crate::config::preset::PRESETS;
use serde::Serialize;
use std::path::PathBuf;

/// Files that harnesses read at the start of every session.
const HARNESS_FILES: &[&str] =
    &["~/.config/amp/AGENTS.md", "~/.codex/AGENTS.md", "~/.claude/CLAUDE.md", "~/.gemini/GEMINI.md"];

pub(crate) struct Starter {
    pub(crate) text: String,
    /// The preset, and the path of its program.
    pub(crate) command: Option<(&'static str, PathBuf)>,
    pub(crate) targets: Vec<&'static str>,
}

#[derive(Serialize)]
struct File<'a> {
    storage: Storage,
    llm: Llm<'a>,
    #[serde(rename = "agentsMd")]
    agents_md: AgentsMd<'a>,
}

/// The root is written so that a timer with another environment uses the same store.
#[derive(Serialize)]
struct Storage {
    root: String,
}

#[derive(Serialize)]
struct Llm<'a> {
    command: Option<&'a str>,
}

#[derive(Serialize)]
struct AgentsMd<'a> {
    targets: &'a [&'a str],
}

pub(crate) fn starter(env: &Env) -> Result<Starter> {
    let command = command(env);
    let targets: Vec<_> = HARNESS_FILES.iter().copied().filter(|file| env.expand(file).is_file()).collect();
    let file = File {
        storage: Storage { root: below_home(default_root(env)?, env) },
        llm: Llm { command: command.as_ref().map(|(name, _)| *name) },
        agents_md: AgentsMd { targets: &targets },
    };
    let text =
        serde_json::to_string_pretty(&file).map_err(|e| Error::io(format!("cannot write JSON: {e}")))?;
    Ok(Starter { text: text + "\n", command, targets })
}

/// The first preset whose program is on PATH.
fn command(env: &Env) -> Option<(&'static str, PathBuf)> {
    PRESETS.iter().filter(|(name, _)| *name != "axe" || has_librarian(env)).find_map(|(name, line)| {
        let found = on_path(program(line)?.as_ref(), env)?;
        Some((*name, found))
    })
}

/// `axe-run` is installed with this program, but the agent of the preset may not exist.
fn has_librarian(env: &Env) -> bool {
    AgentName::parse("librarian").and_then(|name| agent::path(&name, env)).is_ok_and(|path| path.is_file())
}

fn below_home(path: String, env: &Env) -> String {
    let rest = env.home().and_then(|home| std::path::Path::new(&path).strip_prefix(home).ok()?.to_str());
    rest.map(|rest| format!("~/{rest}")).unwrap_or(path)
}
