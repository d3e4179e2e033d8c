//! Which of our hooks are in the settings of a harness, and whether they can work. Changes nothing.

use crate::base::command_line::program;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::lookup::on_path;
use crate::base::reach;
use crate::harness::files::matching;
use crate::harness::spec::{HookMoment, HookSettings, Install, OwnFile, Spec, Switch};
use crate::memory::hooks::change::SettingsFile;
use crate::memory::hooks::harness::{CAP, MARK, own_path, runs_in, settings_file};
use crate::memory::hooks::in_file;
use crate::memory::hooks::ours::{HookProgram, mentions, runs};
use crate::memory::hooks::settings::{commands, not_for, read};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the name of our plugin begins with, from whatever marketplace it is.
const PLUGIN: &str = "agent-memory@";

#[derive(Debug, Default)]
pub struct Status {
    /// The settings file, or the first file of ours.
    pub file: PathBuf,
    /// Our programs that no hook runs.
    pub missing: Vec<&'static str>,
    /// The event at which tools are called, if our other hooks are there and this one is not.
    pub missing_act: Option<&'static str>,
    /// Our plugin has hooks that the settings do not.
    pub by_plugin: bool,
    /// Programs that our hooks run and that are not there.
    pub gone: Vec<String>,
    /// Why the program does not read its settings.
    pub unreadable: Option<String>,
    /// The setting that switches our hooks off, as in the message: `disableAllHooks is true in "FILE"`.
    pub off: Option<String>,
}

impl Status {
    /// All hooks are there, and can work.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.gone.is_empty() && self.unreadable.is_none() && self.off.is_none()
    }

    /// The harness has a hook of ours for what ends.
    pub fn captures(&self) -> bool {
        !self.missing.contains(&HookProgram::Capture.name())
    }
}

/// `None`: the harness has no hooks.
pub fn status(spec: &Spec, env: &Env) -> Result<Option<Status>> {
    let Some(dir) = spec.home.dir(env) else { return Ok(None) };
    match &spec.install {
        Install::Nothing => Ok(None),
        Install::Files(files) => Ok(of_files(files, &dir, env)),
        Install::Settings(form) => of_settings(spec, form, &dir, env).map(Some),
    }
}

fn of_files(files: &[OwnFile], dir: &Path, env: &Env) -> Option<Status> {
    let paths: Vec<PathBuf> = files.iter().map(|own| own_path(dir, own)).collect();
    let texts: Vec<_> = paths.iter().map(|path| text(path)).collect();
    let is_there = texts.iter().all(|text| text.as_ref().is_some_and(|text| text.contains(MARK)));
    let capture = HookProgram::Capture.name();
    let mut plugins = files.iter().filter(|own| mentions(own.text, capture)).flat_map(|own| own.dirs);
    let is_there = is_there || plugins.any(|name| has_own(&dir.join(name)));
    let missing = if is_there { Vec::new() } else { vec![capture] };
    // The plugins keep the programs in constants.
    let constants = texts.iter().flatten().flat_map(|text| text.lines());
    let programs =
        constants.filter_map(|line| line.strip_prefix("const ")?.split_once(" = \"")?.1.strip_suffix('"'));
    let gone = programs.filter(|program| !exists(program, env)).map(str::to_owned).collect();
    Some(Status { file: paths.into_iter().next()?, missing, gone, ..Status::default() })
}

fn of_settings(spec: &Spec, form: &HookSettings, dir: &Path, env: &Env) -> Result<Status> {
    let file = settings_file(dir, form);
    let target = SettingsFile::read(&file)?;
    let text = target.text().map_err(|e| in_file(e, &file))?.unwrap_or_default();
    let found = commands(text, form).map_err(|e| in_file(e, &file))?;
    // A person may have put our programs into another file.
    let also = form.also.and_then(|name| self::text(&dir.join(name))).unwrap_or_default();
    let is_missing = |program: &HookProgram| {
        let runs = found.iter().any(|(_, other, _)| other == program);
        runs_in(spec, *program) && !runs && !mentions(&also, program.name())
    };
    let mut missing: Vec<_> =
        HookProgram::ALL.into_iter().filter(is_missing).map(HookProgram::name).collect();
    let by_plugin = !missing.is_empty() && form.plugins.is_some_and(|key| has_plugin(text, key));
    if by_plugin {
        missing.clear();
    }
    let gone = BTreeSet::from_iter(found.iter().filter_map(|(.., line)| program_of(line)));
    let gone = gone.into_iter().filter(|program| !exists(program, env)).collect();
    let is_read = found.is_empty() || target.bytes.is_none();
    let unreadable = if is_read { None } else { not_for(text, form) };
    let acts = spec.events.iter().find(|event| event.when == HookMoment::Act).map(|event| event.name);
    let is_heard = |name: &str| found.iter().any(|(event, ..)| event == name) || mentions(&also, name);
    let missing_act = acts.filter(|name| !found.is_empty() && !is_heard(name));
    let mut status = Status { file, missing, missing_act, by_plugin, gone, unreadable, off: None };
    if status.captures() {
        status.off = form.switches.iter().find_map(|switch| switched_off(dir, switch));
    }
    Ok(status)
}

/// Our plugin is on in the settings.
fn has_plugin(text: &str, key: &str) -> bool {
    let settings = read(text).unwrap_or_default();
    let plugins = settings[key].as_object();
    plugins.into_iter().flatten().any(|(name, is_on)| name.starts_with(PLUGIN) && *is_on == true)
}

/// The setting as in a message, if it is off.
pub(super) fn switched_off(dir: &Path, switch: &Switch) -> Option<String> {
    let path = dir.join(switch.file);
    let text = text(&path)?;
    let all: Value = match switch.file.ends_with(".toml") {
        true => toml::from_str(&text).ok()?,
        false => read(&text)?,
    };
    let value = switch.key.iter().try_fold(&all, |value, name| value.get(name))?;
    let is_off = value.as_bool() == Some(switch.off);
    is_off.then(|| format!("{} is {} in \"{}\"", switch.key.join("."), switch.off, path.display()))
}

/// A plugin that the person wrote, and that runs one of our programs.
fn has_own(dir: &Path) -> bool {
    let files = matching(dir.to_path_buf(), "*");
    files.iter().filter_map(|file| text(file)).any(|text| mentions(&text, HookProgram::Capture.name()))
}

fn text(path: &Path) -> Option<String> {
    let bytes = reach::read(path, CAP).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn exists(program: &str, env: &Env) -> bool {
    on_path(program.as_ref(), env).is_some()
}

/// The first word of a command of ours, if no shell has to expand it.
fn program_of(line: &str) -> Option<String> {
    runs(line).filter(|(_, is_ours)| *is_ours)?;
    program(line).filter(|word| !word.starts_with('~') && !word.contains('$'))
}
