//! Predefined LLM commands: those of coding agents, and of other programs.

use crate::base::command_line::program;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec;
use crate::base::file;
use crate::base::stderr;
use crate::config::toml_file;
use crate::harness::HARNESSES;
use crate::harness::spec::{OwnHome, Preset, Spec};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::CstRootNode;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const OTHERS: &[Preset] = &[
    Preset::new("ollama", "ollama run llama3", 10),
    Preset::new("llm", "llm --no-log", 11),
    Preset {
        caution: Some("the agent librarian has the tools that its file gives it, and logs its runs"),
        ..Preset::new("axe", "axe-run --timeout 590 librarian", 12)
    },
];
/// The variable with the home of one call.
const HOME: &str = "LLM_HOME";

/// By their rank.
pub fn all() -> Vec<Preset> {
    let own = HARNESSES.iter().filter_map(|spec| spec.preset);
    let mut all: Vec<Preset> = own.chain(OTHERS.iter().copied()).collect();
    all.sort_by_key(|preset| preset.rank);
    all
}

/// Names and lines, by their rank.
pub fn presets() -> Vec<(&'static str, &'static str)> {
    all().into_iter().map(|preset| (preset.name, preset.line)).collect()
}

pub(super) fn preset(name: &str) -> Option<&'static str> {
    presets().into_iter().find(|(known, _)| *known == name).map(|(_, command)| command)
}

/// A home for one call of an LLM command, with nothing in it but what the program needs to reach its model. It is
/// removed when this is dropped, with what the program recorded there.
pub struct LlmHome {
    dir: TempDir,
    /// An empty directory to work in: no project's files are around it.
    pub work: PathBuf,
    pub vars: Vec<(&'static str, OsString)>,
}

impl LlmHome {
    /// `None` if the command does not want one: its line does not name `LLM_HOME`.
    pub fn of(line: &str, env: &Env) -> Result<Option<LlmHome>> {
        if !line.contains(HOME) {
            return Ok(None);
        }
        let dir =
            exec::private_dir().map_err(|e| Error::io(format!("no temporary directory: {e}")).because(e))?;
        let mut vars = vec![(HOME, dir.path().into())];
        let path = program(line).unwrap_or_default();
        let name = path.rsplit('/').next();
        let found = HARNESSES.iter().find_map(|spec| {
            let preset = spec.preset.filter(|preset| program(preset.line).as_deref() == name)?;
            Some((*spec, preset.home?))
        });
        if let Some((spec, own)) = found {
            let text = settings(spec, own, env)?;
            fill(&dir.path().join(own.dir), own, &text, env)?;
            vars.extend(own.variable.map(|variable| (variable, text.into())));
        }
        let work = dir.path().join("work");
        file::make_private_dir(&work)?;
        Ok(Some(LlmHome { dir, work, vars }))
    }
}

impl Drop for LlmHome {
    fn drop(&mut self) {
        if let Err(e) = file::take_back(self.dir.path()) {
            stderr::line(&format!(
                "Warning: a login that the LLM command renewed is lost: {e}; log in again if it asks"
            ));
        }
    }
}

fn fill(dir: &Path, own: &OwnHome, settings: &str, env: &Env) -> io::Result<()> {
    file::make_private_dir(dir)?;
    let (home, names) = &own.credentials;
    let home = home.dir(env);
    for name in *names {
        if let Some(real) = home.as_ref().and_then(|home| home.join(name).canonicalize().ok()) {
            file::lend(real, dir.join(name))?;
        }
    }
    match (own.variable, own.settings.first()) {
        (None, Some(name)) => file::install_unsynced(&dir.join(name), settings.as_bytes(), 0o600),
        _ => Ok(()),
    }
}

/// The settings that the program gets, in the form of its own file.
fn settings(spec: &Spec, own: &OwnHome, env: &Env) -> Result<String> {
    let is_toml = own.settings.iter().any(|name| name.ends_with(".toml"));
    let mut all = Map::new();
    for path in own.settings.iter().filter_map(|name| Some(spec.home.dir(env)?.join(name))) {
        let wrong = |why: &dyn Display| {
            let what = format!("{} cannot be started with \"{}\": {why}", spec.title, path.display());
            Error::config(what).hint("correct the file")
        };
        let read = file::if_exists(file::read(&path, toml_file::CAP)).map_err(|e| wrong(&e))?;
        let Some(bytes) = read else { continue };
        let members =
            if is_toml { toml_file::parse(&bytes, &[]).map(|(members, _)| members) } else { json(&bytes) };
        let members: Map<String, Value> = members.map_err(|e| wrong(&e.message()))?;
        all.extend(members.into_iter().filter(|(key, _)| own.kept.contains(&key.as_str())));
    }
    all.extend(serde_json::from_str::<Map<_, _>>(own.forced).unwrap_or_default());
    drop_members(&mut all, own.dropped);
    let lines = all.iter().map(|(key, value)| format!("{key} = {}\n", in_toml(value)));
    Ok(if is_toml { lines.collect() } else { Value::Object(all).to_string() })
}

fn json(bytes: &[u8]) -> Result<Map<String, Value>> {
    let root = CstRootNode::parse(toml_file::text(bytes)?, &ParseOptions::default());
    match root.map_err(|e| Error::config(e.to_string()))?.to_serde_value() {
        Some(Value::Object(members)) => Ok(members),
        _ => Err(Error::config("expected an object")),
    }
}

fn drop_members(members: &mut Map<String, Value>, names: &[&str]) {
    members.retain(|key, _| !names.contains(&key.as_str()));
    members.values_mut().filter_map(Value::as_object_mut).for_each(|inner| drop_members(inner, names));
}

/// Tables in one line. A string of JSON is one of TOML, too.
fn in_toml(value: &Value) -> String {
    let member =
        |(key, value): (&String, &Value)| format!("{} = {}", Value::from(key.as_str()), in_toml(value));
    match value {
        Value::Object(all) => format!("{{{}}}", all.iter().map(member).collect::<Vec<_>>().join(", ")),
        Value::Array(items) => format!("[{}]", items.iter().map(in_toml).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}

/// The preset of a program that is given by its path alone, such as `/usr/local/bin/claude`: its name, and its line with
/// that path. `own` are the user's presets. A program with arguments of its own has no preset.
pub fn of_path(command: &str, own: &BTreeMap<String, String>) -> Option<(String, String)> {
    let [word] = &shlex::split(command)?[..] else { return None };
    let file = word.rsplit_once('/')?.1;
    let own = own.iter().map(|(name, line)| (name.as_str(), line.as_str()));
    let mut known = own.chain(presets()).filter(|(_, line)| program(line).as_deref() == Some(file));
    known.find_map(|(name, line)| {
        // The first place where it stands as a word: it may also be part of a variable before it.
        let ends = |text: &str| text.is_empty() || text.starts_with(' ');
        let begins = |text: &str| text.is_empty() || text.ends_with(' ');
        let mut around = line.match_indices(file).map(|(at, _)| (&line[..at], &line[at + file.len()..]));
        let (before, after) = around.find(|(before, after)| begins(before) && ends(after))?;
        Some((name.to_owned(), format!("{before}{}{after}", command.trim())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::env::pretend;

    #[test]
    fn every_preset_runs_its_program() {
        let programs: Vec<_> = presets().into_iter().filter_map(|(_, line)| program(line)).collect();
        assert_eq!(programs, ["claude", "codex", "gemini", "opencode", "amp", "ollama", "llm", "axe-run"]);
    }

    /// A home directory with these files, and the LLM command's home in it.
    fn home_of(line: &str, files: &[(&str, &str)]) -> (TempDir, Result<Option<LlmHome>>) {
        let person = exec::private_dir().unwrap();
        for (name, text) in files {
            let path = person.path().join(name);
            file::make_private_dir(path.parent().unwrap()).unwrap();
            file::install(&path, text.as_bytes(), 0o600).unwrap();
        }
        let home = LlmHome::of(line, &pretend(&[("HOME", person.path().to_str().unwrap())]));
        (person, home)
    }

    #[test]
    fn a_home_holds_the_login_and_the_settings_that_reach_the_model() {
        let config = "model = \"m\"\nnotify = [\"x\"]\nmodel_provider = \"own\"\n[mcp_servers.x]\ncommand = \"x\"\n\
                      [model_providers.own]\nbase_url = \"http://h/\\\"v1\"\nexperimental_bearer_token = \"t\"\n";
        let files =
            [(".codex/config.toml", config), (".codex/auth.json", "login"), (".codex/AGENTS.md", "French")];
        let (person, home) = home_of("CODEX_HOME=$LLM_HOME/codex /opt/codex exec -m x -", &files);
        let home = home.unwrap().unwrap();
        let dir = Path::new(&home.vars[0].1).to_owned();
        assert_eq!(
            (home.vars[0].0, home.vars.len(), home.work.read_dir().unwrap().count()),
            ("LLM_HOME", 1, 0)
        );
        let auth = dir.join("codex/auth.json");
        assert_eq!(auth.read_link().unwrap(), person.path().canonicalize().unwrap().join(".codex/auth.json"));
        assert!(!dir.join("codex/AGENTS.md").exists());
        let written = fs_err::read_to_string(dir.join("codex/config.toml")).unwrap();
        let read: toml::Table = toml::from_str(&written).unwrap();
        assert_eq!(read["model_providers"]["own"]["base_url"].as_str(), Some("http://h/\"v1"));
        assert_eq!(read["features"]["shell_tool"].as_bool(), Some(false));
        for other in ["notify", "mcp_servers", "experimental_bearer_token"] {
            assert!(!written.contains(other), "{other} in {written}");
        }
        drop(home);
        assert!(!dir.exists());
        assert_eq!(fs_err::read_to_string(person.path().join(".codex/auth.json")).unwrap(), "login");
    }

    #[test]
    fn settings_with_a_key_stay_in_the_environment() {
        let config = "{\"model\": \"a/b\", // mine\n\"mcp\": {\"x\": {}}, \"provider\": {\"a\": {\"options\": {\"apiKey\": \"k\"}}}}";
        let line = preset("opencode").unwrap();
        let (_person, home) = home_of(line, &[(".config/opencode/opencode.jsonc", config)]);
        let home = home.unwrap().unwrap();
        let (name, value) = &home.vars[1];
        let value: Value = serde_json::from_str(value.to_str().unwrap()).unwrap();
        assert_eq!(*name, "OPENCODE_CONFIG_CONTENT");
        assert_eq!(value["provider"]["a"]["options"]["apiKey"], "k");
        assert_eq!((&value["mcp"], &value["permission"]["*"]), (&Value::Null, &Value::from("deny")));
        assert_eq!(Path::new(&home.vars[0].1).join("opencode").read_dir().unwrap().count(), 0);
    }

    #[test]
    fn settings_that_cannot_be_read_are_named() {
        for (name, file, text, why) in [
            ("codex", ".codex/config.toml", "model = ", "Codex cannot be started with \""),
            ("gemini", ".gemini/settings.json", "{\"security\": ", "Gemini CLI cannot be started with \""),
            ("opencode", ".config/opencode/opencode.json", "[]", "opencode.json\": expected an object"),
        ] {
            let error = home_of(preset(name).unwrap(), &[(file, text)]).1.err().unwrap();
            assert!(error.message().contains(why) && error.message().contains(file), "{}", error.message());
        }
        assert!(home_of("claude -p", &[]).1.unwrap().is_none());
    }

    #[test]
    fn what_every_preset_forces_is_json() {
        let homes = all().into_iter().filter_map(|preset| preset.home);
        let forced: Vec<_> =
            homes.map(|home| serde_json::from_str::<Map<String, Value>>(home.forced)).collect();
        assert!(forced.len() == 3 && forced.iter().all(Result::is_ok));
    }

    #[test]
    fn a_path_gets_the_flags_of_its_programs_preset() {
        let own = |name: &str, line: &str| BTreeMap::from([(name.to_owned(), line.to_owned())]);
        let none = BTreeMap::new();
        for (command, own, expected) in [
            (
                "/nix/store/x/bin/claude",
                &none,
                Some((
                    "claude",
                    "CLAUDE_CODE_MAX_RETRIES=0 /nix/store/x/bin/claude -p --safe-mode --no-session-persistence --tools \"\"",
                )),
            ),
            ("~/bin/amp", &none, Some(("amp", "~/bin/amp -x"))),
            ("'/a b/axe-run'", &none, Some(("axe", "'/a b/axe-run' --timeout 590 librarian"))),
            ("/b/amp", &own("fast", "A=amp amp -y"), Some(("fast", "A=amp /b/amp -y"))),
            ("/b/mine", &own("m", "mine --quiet"), Some(("m", "/b/mine --quiet"))),
            ("/b/other", &none, None),
            ("/b/amp -x", &none, None),
            ("/b/amp | cat", &none, None),
            ("amp", &none, None),
            ("/b/", &none, None),
        ] {
            let expected = expected.map(|(name, line)| (name.to_owned(), line.to_owned()));
            assert_eq!(of_path(command, own), expected, "{command}");
        }
    }
}
