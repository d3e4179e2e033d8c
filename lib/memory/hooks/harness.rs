//! What goes into the settings of each harness, and where.

use crate::base::command_line::quoted;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::lookup::beside;
use crate::base::reach;
use crate::harness::files::matching;
use crate::harness::spec::{HookEvent, HookMoment, HookSettings, Install, OwnFile, Spec};
use crate::memory::hooks::ours::{HookProgram, end_of, mentions};
use crate::memory::hooks::settings::SettingsHook;
use jsonc_parser::cst::CstInputValue as Json;
use std::path::{Path, PathBuf};

/// The directory of the installed programs, by the path that lasts.
#[derive(Debug, Clone)]
pub struct Programs(String);

impl Programs {
    pub fn installed(env: &Env) -> Result<Programs> {
        let capture = beside(HookProgram::Capture.name(), "the hooks", env)?;
        match capture.parent().unwrap_or(&capture).to_str() {
            Some(dir) if !dir.contains(char::is_control) => Ok(Programs(dir.to_owned())),
            _ => Err(Error::usage(format!(
                "\"{}\" cannot go into a settings file",
                capture.to_string_lossy().escape_debug()
            ))
            .hint("install the toolkit at a path of plain characters")),
        }
    }

    #[cfg(test)]
    pub(super) fn at(dir: &str) -> Programs {
        Programs(dir.to_owned())
    }

    pub fn path(&self, program: HookProgram) -> String {
        format!("{}/{}", self.0.trim_end_matches('/'), program.name())
    }
}

/// What every file of ours says about itself.
pub(super) const MARK: &str = "agent-memory";
/// The largest file of another program that is read, in bytes. Settings have some kilobytes.
pub(super) const CAP: u64 = 4 << 20;

/// What an event's hook runs.
fn program(event: &HookEvent) -> HookProgram {
    if event.when == HookMoment::End { HookProgram::Capture } else { HookProgram::Recall }
}

/// The harness gets hooks, or files, that run this program.
pub fn runs_in(spec: &Spec, program: HookProgram) -> bool {
    match &spec.install {
        Install::Nothing => false,
        Install::Settings(_) => {
            spec.events.iter().any(|event| event.timeout.is_some() && self::program(event) == program)
        }
        Install::Files(files) => files.iter().any(|own| mentions(own.text, program.name())),
    }
}

/// The hooks of a harness as they are to be.
pub(super) fn hooks(spec: &Spec, form: &HookSettings, programs: &Programs) -> Vec<SettingsHook> {
    let text = |text: &str| Json::String(text.to_owned());
    let hook = |event: &HookEvent| {
        let program = program(event);
        let line = quoted(&programs.path(program)) + &end_of(spec.name, form);
        let members = [
            form.is_typed.then(|| ("type", text("command"))),
            form.is_named.then(|| ("name", text(program.name()))),
            Some((form.command, text(&line))),
            form.timeout.map(|key| (key, event.timeout.unwrap_or_default().into())),
        ];
        let members = members.into_iter().flatten().map(|(key, value)| (key.to_owned(), value));
        let command = Json::Object(members.collect());
        let group = |command| Json::Object(vec![("hooks".to_owned(), Json::Array(vec![command]))]);
        let entry = if form.has_groups { group(command) } else { command };
        SettingsHook { event: event.name, program, entry }
    };
    spec.events.iter().filter(|event| event.timeout.is_some()).map(hook).collect()
}

/// The settings file.
pub(super) fn settings_file(dir: &Path, form: &HookSettings) -> PathBuf {
    let usual = dir.join(form.file);
    let has_ours = |path: &PathBuf| {
        let bytes = reach::read(path, CAP).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        HookProgram::ALL.iter().any(|program| mentions(&text, program.name()))
    };
    let dir = usual.parent().filter(|_| form.is_one_of_many);
    let files = dir.map(|dir| matching(dir.to_path_buf(), "*.json")).unwrap_or_default();
    files.into_iter().find(has_ours).unwrap_or(usual)
}

/// Where a file of ours is, or goes.
pub(super) fn own_path(dir: &Path, own: &OwnFile) -> PathBuf {
    let dirs: Vec<PathBuf> = own.dirs.iter().map(|name| dir.join(name)).collect();
    // What does not answer may be the place, and is refused by whoever reads it.
    let may_be = |path: &Path, is: fn(&Path) -> bool| reach::within(path, is).unwrap_or(true);
    let place = dirs.iter().find(|dir| may_be(&dir.join(own.name), Path::exists));
    let place = place.or_else(|| dirs.iter().find(|dir| may_be(dir, Path::is_dir))).or(dirs.first());
    place.map_or_else(|| dir.to_path_buf(), Clone::clone).join(own.name)
}

/// The text of a file of ours, with the programs' full paths.
pub(super) fn filled(text: &str, programs: &Programs) -> String {
    HookProgram::ALL.iter().fold(text.to_owned(), |text, program| {
        let path = serde_json::Value::from(programs.path(*program)).to_string();
        text.replace(&format!(" = \"{}\"", program.name()), &format!(" = {path}"))
    })
}
