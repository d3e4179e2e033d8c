//! An agent: one TOML file, `agents/<name>.toml` in the configuration directory.

use crate::base::cli::Reporter;
use crate::base::command_line::quoted;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::{did_you_mean, is_name};
use crate::config::mcp::McpEntry;
use crate::config::toml_file::{self, ANY, Keys, count};
use crate::config::tool::ToolEntry;
use fs_err as fs;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// How deep agents may call agents, by default.
const DEFAULT_DEPTH: u32 = 3;
const DEEPEST: i64 = 5;
/// With `.toml` it must fit into a file name of 255 bytes.
const LONGEST_NAME: usize = 200;

/// A name that is safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(String);

impl AgentName {
    pub fn parse(name: &str) -> Result<AgentName> {
        match unsafe_name(name) {
            None => Ok(AgentName(name.to_owned())),
            Some(why) => Err(Error::config(format!("invalid agent name \"{}\": {why}", name.escape_debug()))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why `name` cannot be a file's name without its ending; `None` if it can.
pub fn unsafe_name(name: &str) -> Option<&'static str> {
    Some(match () {
        () if name.is_empty() => "it is empty",
        () if name.len() > LONGEST_NAME => "it is longer than 200 bytes",
        () if name.contains(['/', '\\']) => "it contains a slash",
        () if name.starts_with('.') => "it begins with a dot",
        () if name.chars().any(char::is_control) => "it contains a control character",
        () => return None,
    })
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Agent {
    pub name: String,
    pub description: String,
    pub model: String,
    /// The models that are asked, one after another, if that one cannot be reached.
    pub fallback: Vec<String>,
    pub system_prompt: String,
    /// What `{{name}}` stands for, by name. An empty value must be set on the command line.
    pub vars: BTreeMap<String, String>,
    pub skill: String,
    /// A file with a JSON Schema that the answer must match.
    pub schema: String,
    pub files: Vec<String>,
    pub workdir: String,
    pub sub_agents: Vec<String>,
    pub sub_agents_config: SubAgents,
    pub tools: BTreeMap<String, ToolEntry>,
    pub mcp: BTreeMap<String, McpEntry>,
    /// Seconds for a whole run; 0: the default.
    #[serde(deserialize_with = "count")]
    pub timeout: u64,
    /// Whether its prompt is marked for the API's cache although a run may send it only once.
    pub cache: bool,
    pub memory: LogSettings,
    pub limits: TokenLimits,
    pub params: Params,
}

fn some_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<i64>::deserialize(from)?;
    Ok(number.map(|number| u64::try_from(number).unwrap_or_default()))
}

/// `[limits]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct TokenLimits {
    /// Input and output tokens of a whole run, with its sub-agents; 0: no limit.
    #[serde(deserialize_with = "count")]
    pub max_tokens_total: u64,
}

/// `[sub_agents_config]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default)]
pub struct SubAgents {
    /// 0: the default.
    #[serde(deserialize_with = "count")]
    pub max_depth: u32,
    pub parallel: bool,
    /// Seconds for one sub-agent; 0: only the run's own deadline.
    #[serde(deserialize_with = "count")]
    pub timeout: u64,
}

impl Default for SubAgents {
    fn default() -> SubAgents {
        SubAgents { max_depth: 0, parallel: true, timeout: 0 }
    }
}

impl SubAgents {
    /// How deep agents may call agents.
    pub fn depth(&self) -> u32 {
        if self.max_depth == 0 { DEFAULT_DEPTH } else { self.max_depth }
    }
}

/// `[memory]`: the log of past runs (M6).
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct LogSettings {
    pub enabled: bool,
    /// Used without change; empty: `memory/<agent>.md` in the data directory.
    pub path: String,
    /// How many of the newest entries a run reads first; 0: all.
    #[serde(deserialize_with = "count")]
    pub last_n: usize,
    /// A run warns if the log has this many entries; 0: never.
    #[serde(deserialize_with = "count")]
    pub max_entries: u64,
    /// A longer task is cut in the log; 0: never.
    #[serde(deserialize_with = "count")]
    pub max_task_chars: usize,
}

/// `[params]`: sent only where set; an explicit 0 counts as set.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Params {
    pub temperature: Option<f64>,
    #[serde(deserialize_with = "some_count")]
    pub max_tokens: Option<u64>,
    /// All other keys. They go to the API as they are.
    #[serde(flatten, skip_deserializing)]
    pub extra: Map<String, Value>,
}

/// Those that are fields of [`Params`].
const OWN_PARAMS: [&str; 2] = ["temperature", "max_tokens"];

/// What the request itself sets.
const NOT_PARAMS: &[&str] =
    &["model", "messages", "system", "tools", "tool_choice", "stream", "stream_options", "options"];

/// The other keys of `[params]`.
fn further_params(mut file: toml::Table) -> Result<Map<String, Value>> {
    let Some(toml::Value::Table(params)) = file.remove("params") else { return Ok(Map::new()) };
    let further = params.into_iter().filter(|(key, _)| !OWN_PARAMS.contains(&key.as_str()));
    let checked = |(key, value): (String, toml::Value)| {
        if NOT_PARAMS.contains(&key.as_str()) {
            return Err(Error::config(format!("params.{key} cannot be set: a run sets it itself")));
        }
        let wrong = || Error::config(format!("params.{key} has a value that JSON does not have"));
        let value = as_json(value).ok_or_else(wrong)?;
        Ok((key, value))
    };
    further.map(checked).collect()
}

/// JSON has no times, and no infinite numbers.
fn as_json(value: toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)?.into(),
        toml::Value::Boolean(is_true) => is_true.into(),
        toml::Value::Datetime(_) => return None,
        toml::Value::Array(values) => Value::Array(values.into_iter().map(as_json).collect::<Option<_>>()?),
        toml::Value::Table(table) => {
            let members = table.into_iter().map(|(key, value)| Some((key, as_json(value)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
    })
}

pub const KEYS: Keys = &[
    (
        "",
        &[
            "name", "description", "model", "fallback", "system_prompt", "vars", "skill", "schema", "files",
            "workdir", "sub_agents", "sub_agents_config", "tools", "mcp", "timeout", "cache", "memory",
            "limits", "params",
        ],
    ),
    ("vars", &["*"]),
    ("sub_agents_config", &["max_depth", "parallel", "timeout"]),
    ("tools", &["*"]),
    (
        "tools.*",
        &[
            "description", "command", "parameters", "schema", "stdin", "timeout", "ok_exit", "max_output",
            "confirm",
        ],
    ),
    ("tools.*.parameters", &["*"]),
    ("mcp", &["*"]),
    ("mcp.*", &["command", "tools", "timeout", "start_timeout", "max_output", "confirm"]),
    ("memory", &["enabled", "path", "last_n", "max_entries", "max_task_chars"]),
    ("limits", &["max_tokens_total"]),
    ("params", &["temperature", "max_tokens", ANY]),
];

/// The directories that agents are looked up in: `--agents-dir` or `AXE_AGENTS_DIR` first. One that the user did not
/// name is never searched: its agents could be anybody's.
fn dirs(env: &Env) -> Result<Vec<PathBuf>> {
    let named = agents_dir(env)?;
    if named.as_ref().is_some_and(|dir| !dir.is_dir()) {
        let named = env.os(AGENTS_DIR).unwrap_or_default().to_string_lossy();
        return Err(Error::config(format!("the agents directory \"{named}\" does not exist"))
            .hint("correct --agents-dir or AXE_AGENTS_DIR"));
    }
    Ok(named.into_iter().chain([env.config_dir()?.join("agents")]).collect())
}

/// The environment in which `dir`, from the command line, is searched first.
pub fn with_agents_dir(env: &Env, dir: Option<&Path>) -> Env {
    dir.map_or_else(|| env.clone(), |dir| env.with(AGENTS_DIR, dir.as_os_str()))
}

/// The directory that is searched first, if the user named one.
pub fn agents_dir(env: &Env) -> Result<Option<PathBuf>> {
    env.os(AGENTS_DIR).map(|named| Ok(env.current_dir()?.join(named))).transpose()
}

/// The variable that names another directory with agents.
const AGENTS_DIR: &str = "AXE_AGENTS_DIR";

/// Where the agent's file is, or would be: in the first directory that has it, else in the first one.
pub fn path(name: &AgentName, env: &Env) -> Result<PathBuf> {
    let mut paths: Vec<_> = dirs(env)?.iter().map(|dir| dir.join(format!("{name}.toml"))).collect();
    let found = paths.iter().position(|path| path.symlink_metadata().is_ok());
    Ok(paths.swap_remove(found.unwrap_or(0)))
}

/// Where a new agent's file belongs.
pub fn new_path(name: &AgentName, env: &Env) -> Result<PathBuf> {
    Ok(dirs(env)?.swap_remove(0).join(format!("{name}.toml")))
}

/// The agent that runs if none is named, and the table of config.toml that defines it.
pub const DEFAULT: &str = "default";

/// config.toml, as far as it defines an agent.
#[derive(Deserialize)]
struct DefaultPart {
    #[serde(default)]
    default: Agent,
}

/// Where an agent is defined.
struct AgentSource {
    bytes: Vec<u8>,
    path: PathBuf,
    /// For messages.
    what: String,
    /// Whether it is a table of config.toml.
    is_default: bool,
}

/// The definition of an agent: its file, or `[default]` of config.toml for the one of this name.
fn find(name: &AgentName, env: &Env) -> Result<Option<AgentSource>> {
    let (path, what) = (path(name, env)?, format!("agent config \"{name}\""));
    let file = toml_file::read(&path, &what)?;
    let file = file.map(|bytes| AgentSource { bytes, path, what, is_default: false });
    if name.0 != DEFAULT {
        return Ok(file);
    }
    let path = env.config_dir()?.join("config.toml");
    let bytes = toml_file::read(&path, "config file")?.unwrap_or_default();
    let part = toml_file::text(&bytes).ok().and_then(|text| toml::from_str::<toml::Table>(text).ok());
    if !part.is_some_and(|file| file.contains_key(DEFAULT)) {
        return Ok(file);
    }
    if let Some(file) = file {
        let (file, config) = (file.path.display(), path.display());
        return Err(Error::config(format!(
            "the agent \"{name}\" is defined twice: in \"{file}\", and by [{DEFAULT}] in \"{config}\""
        ))
        .hint("remove one of them, or rename the file"));
    }
    Ok(Some(AgentSource { bytes, path, what: format!("[{DEFAULT}] in config.toml"), is_default: true }))
}

/// The file that defines an agent.
pub fn file_of(name: &AgentName, env: &Env) -> Result<Option<PathBuf>> {
    Ok(find(name, env)?.map(|source| source.path))
}

/// Whether an agent of this name is defined.
pub fn exists(name: &AgentName, env: &Env) -> bool {
    find(name, env).is_ok_and(|source| source.is_some())
}

/// Reads and checks an agent's definition; unknown keys and a differing `name` are warnings.
pub fn load(name: &AgentName, env: &Env, reporter: &Reporter) -> Result<Agent> {
    match find(name, env)? {
        Some(source) => read(name, &source, reporter),
        None => Err(not_found(name, &path(name, env)?, env)),
    }
}

/// The agent that runs if none is named. If nothing defines it, it has not even a model.
pub fn load_default(env: &Env, reporter: &Reporter) -> Result<(AgentName, Agent)> {
    let name = AgentName(DEFAULT.to_owned());
    let agent = find(&name, env)?.map(|source| read(&name, &source, reporter)).transpose()?;
    Ok((name, agent.unwrap_or_default()))
}

fn read(name: &AgentName, source: &AgentSource, reporter: &Reporter) -> Result<Agent> {
    let AgentSource { bytes, path, what, is_default } = source;
    let correct = format!("correct \"{}\"", path.display());
    let failed = |error: Error| error.context(format!("failed to parse {what}")).hint(correct.as_str());
    let mut file: toml::Table =
        toml_file::text(bytes).map(toml::from_str).map_err(failed)?.unwrap_or_default();
    let (mut agent, unknown) = if *is_default {
        let parsed = toml_file::parse_part::<DefaultPart>(bytes, &[DEFAULT], KEYS);
        let (DefaultPart { default: mut agent }, unknown) = parsed.map_err(failed)?;
        file = file.remove(DEFAULT).and_then(|part| part.try_into().ok()).unwrap_or_default();
        // The model may come from the command line.
        file.entry("model").or_insert_with(|| "any".into());
        file.insert("name".to_owned(), DEFAULT.into());
        if agent.name.is_empty() {
            DEFAULT.clone_into(&mut agent.name);
        }
        (agent, unknown)
    } else {
        toml_file::parse(bytes, KEYS).map_err(failed)?
    };
    // Before the check, because a missing key may only be misspelt.
    for fault in unknown {
        reporter.warn(&format!("{what}: {fault}"));
    }
    check(&file).map_err(|e| e.hint(correct.as_str()))?;
    agent.params.extra = further_params(file).map_err(failed)?;
    for key in agent.params.extra.keys() {
        if let Some(near) = did_you_mean(key, OWN_PARAMS) {
            reporter.warn(&format!("{what}: params.{key} goes to the API as it is; {near}"));
        }
    }
    if agent.memory.path.starts_with("~/") {
        reporter.warn(&format!("{what}: memory.path is used as written; ~ is not expanded"));
    }
    if agent.name != name.0 {
        reporter.warn(&format!(
            "{what} has name = \"{}\", but the name of the {} is used",
            agent.name.escape_debug(),
            if *is_default { "table" } else { "file" }
        ));
    }
    Ok(agent)
}

fn not_found(name: &AgentName, path: &Path, env: &Env) -> Error {
    let error = Error::config(format!("agent config not found: {name}"));
    if path.is_symlink() {
        return error.hint(format!("\"{}\" is a symlink that leads nowhere", path.display()));
    }
    let known = names(env).unwrap_or_default();
    let stem = name.0.strip_suffix(".toml").unwrap_or(&name.0);
    let near = did_you_mean(stem, known.iter().map(String::as_str));
    // It must not be taken for a flag.
    let dashes = if name.0.starts_with('-') { "-- " } else { "" };
    let create = || format!("create it with: axe agents init {dashes}{}", quoted(&name.0));
    error.hint(near.unwrap_or_else(create))
}

/// The names of all agents, sorted, including those of files that are not valid names.
pub fn names(env: &Env) -> Result<Vec<String>> {
    let failed = |e: io::Error| Error::config(format!("failed to list agents: {e}")).because(e);
    let dirs = dirs(env)?.into_iter().map(|dir| file::if_exists(fs::read_dir(dir)));
    let entries = dirs.collect::<io::Result<Vec<_>>>().map_err(failed)?;
    let mut names = Vec::new();
    for entry in entries.into_iter().flatten().flatten() {
        let path = PathBuf::from(entry.map_err(failed)?.file_name());
        let stem = path.file_stem().filter(|_| path.extension().is_some_and(|ending| ending == "toml"));
        names.extend(stem.map(|stem| stem.to_string_lossy().into_owned()));
    }
    if exists(&AgentName(DEFAULT.to_owned()), env) {
        names.push(DEFAULT.to_owned());
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Every agent, by name. A broken file is a warning and is left out: it must not hide the others.
pub fn load_all(env: &Env, reporter: &Reporter) -> Result<Vec<(AgentName, Agent)>> {
    let mut agents = Vec::new();
    for stem in names(env)? {
        match AgentName::parse(&stem).and_then(|name| Ok((load(&name, env, reporter)?, name))) {
            Ok((agent, name)) => agents.push((name, agent)),
            Err(error) => {
                reporter.warn(&format!("\"{}\" is left out: {}", stem.escape_debug(), error.message()))
            }
        }
    }
    Ok(agents)
}

/// Whole numbers from 0.
const COUNTS: &[&str] = &[
    "sub_agents_config.max_depth", "sub_agents_config.timeout", "timeout", "limits.max_tokens_total",
    "memory.last_n", "memory.max_entries", "memory.max_task_chars", "params.max_tokens",
];

/// The first fault wins, in this order (contract).
fn check(file: &toml::Table) -> Result<()> {
    let value = |key: &str| {
        let (table, name) = key.split_once('.').map_or((Some(file), key), |(table, name)| {
            (file.get(table).and_then(toml::Value::as_table), name)
        });
        table.and_then(|table| table.get(name))
    };
    let wrong = |why: String| Err(Error::config(why));
    let is_missing = |key: &&str| value(key).is_none_or(|value| value.as_str() == Some(""));
    if let Some(key) = ["name", "model"].iter().find(|key| is_missing(key)) {
        return wrong(format!("agent config missing required field: {key}"));
    }
    let is_negative =
        |value: Option<&toml::Value>| value.and_then(toml::Value::as_integer).is_some_and(|n| n < 0);
    for key in COUNTS {
        if is_negative(value(key)) {
            return wrong(format!("{key} must be non-negative"));
        }
        let number = value(key).and_then(toml::Value::as_integer);
        if key.ends_with("max_depth") && number.is_some_and(|depth| depth > DEEPEST) {
            return wrong(format!("{key} cannot exceed {DEEPEST}"));
        }
    }
    let temperature = value("params.temperature").and_then(|value| match value {
        toml::Value::Integer(number) => Some(*number as f64),
        other => other.as_float(),
    });
    if temperature.is_some_and(|t| !t.is_finite() || t < 0.0) {
        return wrong("params.temperature must be a non-negative number".to_owned());
    }
    let table = |key| value(key).and_then(toml::Value::as_table).into_iter().flatten();
    if let Some((name, _)) = table("vars").find(|(name, _)| !is_name(name)) {
        return wrong(format!(
            "vars.\"{}\" is no name: use letters, digits, _ and -, and begin with a letter",
            name.escape_debug()
        ));
    }
    for (key, keys) in [("tools", &["timeout"][..]), ("mcp", &["timeout", "start_timeout"])] {
        for (name, tool) in table(key) {
            if let Some(wrong_key) = keys.iter().find(|key| is_negative(tool.get(**key))) {
                return wrong(format!("{key}.{name}.{wrong_key} must be non-negative"));
            }
        }
    }
    Ok(())
}

/// The directory an agent works in: the flag, else the file's, else the current one.
pub fn workdir(flag: Option<&str>, agent: &Agent, env: &Env) -> Result<PathBuf> {
    let current = env.current_dir()?;
    let named = env.expand(match (flag, agent.workdir.as_str()) {
        (Some(dir), _) => dir,
        (None, "") => return Ok(current),
        (None, dir) => dir,
    });
    let dir = current.join(&named);
    let wrong = |why: &str| Err(Error::config(format!("workdir \"{}\" {why}", named.display())));
    match fs::metadata(&dir) {
        Ok(metadata) if metadata.is_dir() => Ok(dir),
        Ok(_) => wrong("is not a directory"),
        Err(e) if e.kind() == io::ErrorKind::NotFound => wrong("does not exist"),
        Err(e) => wrong(&format!("cannot be used: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::scaffold;

    fn parsed(text: &str) -> Agent {
        toml_file::parse(text.as_bytes(), KEYS).unwrap().0
    }

    fn checked(text: &str) -> Result<()> {
        check(&toml_file::parse(text.as_bytes(), KEYS).unwrap().0)
    }

    #[test]
    fn memory_fields_are_read() {
        let agent = parsed(
            "[memory]\nenabled = true\npath = \"/tmp/mem.md\"\nlast_n = 5\nmax_entries = 50\nmax_task_chars = 9",
        );
        assert!(agent.memory.enabled);
        assert_eq!(agent.memory.path, "/tmp/mem.md");
        assert_eq!((agent.memory.last_n, agent.memory.max_entries, agent.memory.max_task_chars), (5, 50, 9));
    }

    #[test]
    fn without_sections_the_defaults_stand() {
        let agent = parsed("");
        assert!(!agent.memory.enabled && agent.memory.path.is_empty());
        assert_eq!((agent.memory.last_n, agent.memory.max_entries), (0, 0));
        assert_eq!((agent.sub_agents_config.depth(), agent.sub_agents_config.parallel), (3, true));
        assert_eq!((agent.params.temperature, agent.params.max_tokens), (None, None));
    }

    #[test]
    fn the_first_fault_wins() {
        let cases = [
            ("", "agent config missing required field: name"),
            ("name = 'x'", "agent config missing required field: model"),
            ("[sub_agents_config]\nmax_depth = -1", "sub_agents_config.max_depth must be non-negative"),
            (
                "[sub_agents_config]\nmax_depth = 6\ntimeout = -1",
                "sub_agents_config.max_depth cannot exceed 5",
            ),
            ("[sub_agents_config]\ntimeout = -1", "sub_agents_config.timeout must be non-negative"),
            ("[memory]\nlast_n = -1\nmax_entries = -1", "memory.last_n must be non-negative"),
            ("[memory]\nmax_entries = -1", "memory.max_entries must be non-negative"),
            ("[memory]\nmax_task_chars = -1", "memory.max_task_chars must be non-negative"),
            ("[params]\nmax_tokens = -1", "params.max_tokens must be non-negative"),
            ("[params]\ntemperature = nan", "params.temperature must be a non-negative number"),
        ];
        for (text, message) in cases {
            let named = if text.starts_with('[') {
                format!("name = 'x'\nmodel = 'p/m'\n{text}")
            } else {
                text.into()
            };
            let error = checked(&named).unwrap_err();
            assert_eq!((error.message(), error.exit_code()), (message, 2));
        }
    }

    #[test]
    fn zero_is_a_valid_limit_and_five_a_valid_depth() {
        let text =
            "name='x'\nmodel='p/m'\n[memory]\nlast_n=0\nmax_entries=0\n[sub_agents_config]\nmax_depth=5";
        checked(text).unwrap();
    }

    #[test]
    fn names_that_are_paths_are_refused() {
        for name in ["", ".", "..", ".x", "a/b", "../x", "a\\b", "a\0b", "a\nb", &"x".repeat(201)] {
            let error = AgentName::parse(name).unwrap_err();
            assert!(error.message().starts_with("invalid agent name \""), "{name:?}");
            assert_eq!(error.exit_code(), 2);
        }
        for name in ["a", "pr-reviewer", "Überprüfer", "a.b", "-x"] {
            assert_eq!(AgentName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn the_scaffold_is_a_valid_agent_with_every_key_in_it() {
        let text = scaffold::agent(&AgentName::parse("my \"agent\"").unwrap());
        let (agent, unknown) = toml_file::parse::<Agent>(text.as_bytes(), KEYS).unwrap();
        checked(&text).unwrap();
        assert_eq!((agent.name.as_str(), unknown.len()), ("my \"agent\"", 0));
        assert!(
            text.contains(
                "# [memory]\n# enabled = false\n# path = \"\"\n# last_n = 10\n# max_entries = 100\n"
            )
        );
        for (_, keys) in KEYS {
            for key in keys.iter().filter(|key| **key != ANY) {
                assert!(text.contains(key), "{key}");
            }
        }
    }
}
