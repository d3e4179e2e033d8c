//! Which of our hooks are in the settings of a harness, and whether they can work. Changes nothing.

use crate::base::command_line::program;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::base::lookup::on_path;
use crate::config::memory::homes::Home;
use crate::memory::hooks::change::Target;
use crate::memory::hooks::harness::{CAP, MARK, Way};
use crate::memory::hooks::in_file;
use crate::memory::hooks::ours::{HookProgram, Runs, mentions, runs};
use crate::memory::hooks::settings::{commands, not_for};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Status {
    /// The settings file, or the first file of ours.
    pub(crate) file: PathBuf,
    pub(crate) hooks: Hooks,
    /// Programs that our hooks run and that are not there.
    pub(crate) gone: Vec<String>,
    /// Why the program does not read its settings.
    pub(crate) unreadable: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hooks {
    All,
    /// None runs these.
    Missing(Vec<&'static str>),
}

/// `None`: the harness has no hooks.
pub(crate) fn status(home: &Home, env: &Env) -> Result<Option<Status>> {
    match home.way(None, env) {
        None => Ok(None),
        Some(Way::Files(files)) => {
            let Some(first) = files.first() else { return Ok(None) };
            let texts: Vec<_> = files.iter().map(|own| text(&own.path)).collect();
            let is_there = texts.iter().all(|text| text.as_ref().is_some_and(|text| text.contains(MARK)));
            let missing = match is_there || home.dir(env).is_some_and(|dir| has_own(&dir)) {
                true => Hooks::All,
                false => Hooks::Missing(vec![HookProgram::Capture.name()]),
            };
            // The plugins keep the programs in constants.
            let constants = texts.iter().flatten().flat_map(|text| text.lines());
            let programs =
                constants.filter_map(|line| Some(line.strip_prefix("const ")?.split_once(" = \"")?.1));
            let programs = programs.filter_map(|rest| rest.strip_suffix('"'));
            let gone = programs.filter(|program| !exists(program, env)).map(str::to_owned).collect();
            Ok(Some(Status { file: first.path.clone(), hooks: missing, gone, unreadable: None }))
        }
        Some(Way::Settings { path, form, .. }) => {
            let target = Target::read(&path)?;
            let text = target.text().map_err(|e| in_file(e, &path))?.unwrap_or_default();
            let found = commands(text, &form).map_err(|e| in_file(e, &path))?;
            let mut wanted = vec![HookProgram::Capture, HookProgram::Recall];
            wanted.retain(|program| home.has(*program) && !is_elsewhere(home, *program, env));
            let runs = |program: &HookProgram| found.iter().any(|(_, other, _)| other == program);
            let missing: Vec<_> =
                wanted.iter().filter(|program| !runs(program)).map(|program| program.name()).collect();
            let hooks = if missing.is_empty() { Hooks::All } else { Hooks::Missing(missing) };
            let mut gone: Vec<_> = found.iter().filter_map(|(_, _, line)| program_of(line)).collect();
            gone.sort();
            gone.dedup();
            gone.retain(|program| !exists(program, env));
            let unreadable =
                if found.is_empty() || target.bytes.is_none() { None } else { not_for(text, form.dialect) };
            Ok(Some(Status { file: path, hooks, gone, unreadable }))
        }
    }
}

/// A plugin that the person wrote, and that runs one of our programs.
fn has_own(dir: &Path) -> bool {
    ["plugin", "plugins"].iter().any(|name| {
        let entries = fs_err::read_dir(dir.join(name)).into_iter().flatten().filter_map(Result::ok);
        entries
            .map(|entry| entry.path())
            .any(|path| text(&path).is_some_and(|text| mentions(&text, HookProgram::Capture.name())))
    })
}

/// Codex also has hooks, and its notification, in config.toml.
fn is_elsewhere(home: &Home, program: HookProgram, env: &Env) -> bool {
    let config = (home.harness == "codex").then(|| home.dir(env)).flatten();
    config.and_then(|dir| text(&dir.join("config.toml"))).is_some_and(|text| mentions(&text, program.name()))
}

fn text(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&file::read(path, CAP).ok()?).into_owned())
}

fn exists(program: &str, env: &Env) -> bool {
    on_path(program.as_ref(), env).is_some()
}

/// The first word of a command of ours, if no shell has to expand it.
fn program_of(line: &str) -> Option<String> {
    let is_ours = matches!(runs(line), Some(Runs::Ours(_)));
    program(line).filter(|word| is_ours && !word.starts_with('~') && !word.contains('$'))
}
