//! The file that `memory-config init` writes: the settings that depend on the machine.

use crate::base::command_line::program;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::lookup::{is_in_nix_store, on_path};
use crate::config::agent::{self, AgentName};
use crate::config::memory::default_root;
use crate::config::preset::all;
use crate::harness::HARNESSES;
use crate::harness::spec::Preset;
use serde_json::json;
use std::path::{Path, PathBuf};

pub struct Starter {
    pub text: String,
    /// The preset, and the path of its program.
    pub command: Option<(Preset, PathBuf)>,
    /// The context files of the harnesses that are used here, below `~` if they are.
    pub targets: Vec<String>,
    /// Context files that cannot be targets, and why.
    pub left: Vec<(String, &'static str)>,
}

pub fn starter(env: &Env) -> Result<Starter> {
    let command = command(env);
    let (targets, left) = targets(env);
    // The root is written so that a timer with another environment uses the same store.
    let root = json!(below_home(default_root(env)?, env)).to_string();
    let name = json!(command.as_ref().map(|(preset, _)| preset.name)).to_string();
    let list = format!("{:#}", json!(targets)).replace('\n', "\n    ");
    let text = include_str!("../scaffold/memory.json");
    let text = text.replace("@COMMAND@", &name).replace("@ROOT@", &root).replace("@TARGETS@", &list);
    Ok(Starter { text, command, targets, left })
}

/// The context file of every harness whose directory exists. A file that is not there yet is made when there are notes.
fn targets(env: &Env) -> (Vec<String>, Vec<(String, &'static str)>) {
    let (mut targets, mut left, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for path in HARNESSES.iter().filter(|spec| spec.is_here(env)).filter_map(|spec| spec.context(env)) {
        let shown = below_home(path.to_string_lossy().into_owned(), env);
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_read_only = real.metadata().is_ok_and(|metadata| metadata.permissions().readonly());
        let why = match () {
            () if is_in_nix_store(&real, env) => "belongs to Nix",
            () if path.exists() && !path.is_file() => "is not a file",
            () if path.is_symlink() && !path.exists() => "is a link that leads nowhere",
            () if is_read_only => "is read-only",
            () if seen.contains(&real) => "is the same file as another",
            () => {
                seen.push(real);
                targets.push(shown);
                continue;
            }
        };
        left.push((shown, why));
    }
    (targets, left)
}

/// The first preset whose program is on PATH.
fn command(env: &Env) -> Option<(Preset, PathBuf)> {
    all().into_iter().filter(|preset| preset.name != "axe" || has_librarian(env)).find_map(|preset| {
        let found = on_path(program(preset.line)?.as_ref(), env)?;
        Some((preset, found))
    })
}

/// `axe-run` is installed with this program, but the agent of the preset may not exist.
fn has_librarian(env: &Env) -> bool {
    AgentName::parse("librarian").and_then(|name| agent::path(&name, env)).is_ok_and(|path| path.is_file())
}

fn below_home(path: String, env: &Env) -> String {
    let rest = env.home().and_then(|home| Path::new(&path).strip_prefix(home).ok()?.to_str());
    rest.map(|rest| format!("~/{rest}")).unwrap_or(path)
}
