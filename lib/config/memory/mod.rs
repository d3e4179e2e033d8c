//! The memory family's configuration: one JSON file, all of it optional.

mod read;
pub mod remote;
pub mod search;
pub mod settings;
pub mod starter;
pub mod trust;

#[cfg(test)]
mod tests;

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::reach;
use crate::config::memory::search::{absolute, files};
use crate::config::memory::settings::{Settings, replaced};
use crate::config::preset::{of_path, preset};
use crate::config::toml_file::warn_of_dangling;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryConfig {
    pub storage: Storage,
    pub llm: Llm,
    pub capture: Capture,
    pub schedule: Schedule,
    #[serde(default)]
    pub sync: Sync,
    pub recall: Recall,
    pub agents_md: AgentsMd,
    pub harnesses: BTreeMap<String, HarnessConfig>,
    pub redact: Redact,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Absolute.
    pub root: PathBuf,
    pub auto_commit: bool,
    /// Split into words without a shell.
    pub commit_hook: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Llm {
    /// The name of a preset, or a shell command.
    pub command: Option<String>,
    /// The user's own presets.
    presets: BTreeMap<String, String>,
    pub timeout_seconds: u64,
    pub max_prompt_bytes: u64,
    pub max_reply_bytes: u64,
    /// How many bytes of existing notes a prompt shows whole.
    pub max_note_bytes: u64,
    pub max_calls_per_run: u64,
    pub max_calls_per_day: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Capture {
    /// Sessions that ended without a hook are queued, too.
    pub sweep: bool,
    /// What is new in the memories that programs keep by themselves is queued, too.
    pub memories: bool,
}

/// When the timers run the programs: at the times of a calendar, else every so many hours.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub consolidate_interval_hours: u64,
    pub defrag_interval_hours: u64,
    pub consolidate: Option<String>,
    pub defrag: Option<String>,
}

/// One memory on several machines.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Sync {
    /// The address for git, without a password. A folder's is absolute.
    pub remote: Option<String>,
    /// `own` if nobody else can write to the remote, else `shared`. `None`: as `memory-sync` was told.
    pub trust: Option<String>,
}

/// What the hooks of programs are given.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recall {
    /// Sub-agents get the notes that match their task.
    pub subagents: bool,
    /// A note that is about a file or a command comes with the call of a tool that concerns it.
    pub before_acts: bool,
    /// The notes in the repository's own files are shown.
    pub shared: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentsMd {
    pub targets: Vec<Target>,
    /// The budget for notes that are shown whole, at four bytes a token.
    pub max_hot_tokens: u64,
    /// The budget for the list of further notes.
    pub max_warm_tokens: u64,
    /// The most notes in that list: a setting of an earlier version.
    pub max_warm: Option<u64>,
}

/// A file that gets a managed section.
#[derive(Debug, Clone, Deserialize)]
pub struct Target {
    /// Absolute.
    pub path: PathBuf,
    /// It gets the notes of this repository instead of those of scope `global`.
    pub repo: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HarnessConfig {
    /// Split into words without a shell; contains `{threadId}`.
    pub read_command: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Redact {
    pub enabled: bool,
    pub patterns: Vec<String>,
}

impl Llm {
    /// The longest prompt, in bytes.
    pub fn max_prompt(&self) -> usize {
        usize::try_from(self.max_prompt_bytes).unwrap_or(usize::MAX)
    }

    /// The shell command: one of the user's presets, a built-in preset, or the command itself.
    pub fn command_line(&self) -> Option<&str> {
        let command = self.command.as_deref()?;
        Some(self.presets.get(command).map(String::as_str).or_else(|| preset(command)).unwrap_or(command))
    }
}

/// The configuration in force. `explicit` is `--config`.
pub fn load(explicit: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<MemoryConfig> {
    let settings = settings(explicit, env, reporter)?;
    let mut config: MemoryConfig = serde_json::from_value(settings.nested())
        .map_err(|e| Error::config(format!("the configuration does not fit together: {e}")))?;
    let llm = &mut config.llm;
    if let Some(command) = &llm.command
        && let Some((_, line)) = of_path(command, &llm.presets)
    {
        llm.presets.entry(command.clone()).or_insert(line);
    }
    Ok(config)
}

/// Whether `path` is inside `dir`, with symlinks resolved.
pub fn lies_in(dir: &Path, path: &Path) -> bool {
    let path = path.to_path_buf();
    let lies_there =
        move |dir: &Path| dir.canonicalize().is_ok_and(|dir| trust::inside(&dir, &path).is_some());
    reach::within(dir, lies_there).unwrap_or(false)
}

/// Every setting with its source.
pub fn settings(explicit: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<Settings> {
    let files = files(explicit, env)?;
    let mut settings = Settings::defaults();
    if let Some(main) = &files.main {
        let source = main.display().to_string();
        let warn = |what: String| reporter.warn(&format!("\"{source}\": {what}"));
        for (key, value) in read::strictly(main, env)? {
            if files.is_here && key == "trustedDirectories" {
                warn(format!("{key} only works in your own configuration; ignored"));
                continue;
            }
            if let Some(new) = replaced(&key) {
                warn(format!("{key} is replaced by {new}; it still counts, as the most notes in the list"));
            }
            settings.set(&key, value, &source);
        }
    }
    if let Some(dangling) = &files.dangling {
        warn_of_dangling(dangling, reporter);
    }
    if let Some(untrusted) = &files.untrusted {
        trust::add(&mut settings, untrusted, env, reporter);
    }
    if settings.get("storage.root").is_none_or(|root| root.value.is_null()) {
        settings.set("storage.root", default_root(env)?.into(), "default");
    }
    Ok(settings)
}

/// The default store: below `~/commonplace` if that exists, as the PRD has it.
fn default_root(env: &Env) -> Result<String> {
    let commonplace = env.home().map(|home| home.join("commonplace")).filter(|dir| dir.is_dir());
    let root = match commonplace {
        Some(dir) => dir.join("01_files/_utilities/agent-memories"),
        None => env.memory_data_dir()?,
    };
    let root = absolute(root, env)?;
    root.to_str().map(str::to_owned).ok_or_else(|| {
        Error::config(format!("the path of the store is not valid UTF-8: \"{}\"", root.display()))
            .hint("set storage.root")
    })
}
