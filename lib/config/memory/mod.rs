//! The memory family's configuration: one JSON file, all of it optional (US-012).

mod key_path;
mod read;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod starter;
pub(crate) mod trust;
mod value;

#[cfg(test)]
mod tests;

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::config::memory::search::{absolute, files};
use crate::config::memory::settings::Settings;
use crate::config::preset::preset;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryConfig {
    pub(crate) storage: Storage,
    pub(crate) llm: Llm,
    pub(crate) schedule: Schedule,
    pub(crate) agents_md: AgentsMd,
    pub(crate) harnesses: BTreeMap<String, HarnessConfig>,
    pub(crate) redact: Redact,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Storage {
    /// Absolute.
    pub(crate) root: PathBuf,
    /// Never where the store is `foreign`.
    pub(crate) auto_commit: bool,
    /// To be split into words without a shell.
    pub(crate) commit_hook: String,
    /// The root was named by a file in the current directory that is not trusted: never committed with git,
    /// and all targets lie in that directory.
    #[serde(skip)]
    pub(crate) foreign: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Llm {
    /// As written: a preset's name or a line for the shell.
    pub(crate) command: Option<String>,
    /// The user's own.
    presets: BTreeMap<String, String>,
    pub(crate) timeout_seconds: u64,
    pub(crate) max_prompt_bytes: u64,
    pub(crate) max_reply_bytes: u64,
    pub(crate) max_calls_per_run: u64,
    pub(crate) max_calls_per_day: u64,
}

/// How often the timers run the programs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Schedule {
    pub(crate) consolidate_interval_hours: u64,
    pub(crate) defrag_interval_hours: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentsMd {
    pub(crate) targets: Vec<Target>,
    /// What notes may take that are shown whole, at four bytes a token.
    pub(crate) max_hot_tokens: u64,
    /// So many notes are shown as a link.
    pub(crate) max_warm: u64,
}

/// A file that gets a managed section.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Target {
    /// Absolute.
    pub(crate) path: PathBuf,
    /// Gets the notes of this repository, in the place of those of scope `global`.
    pub(crate) repo: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HarnessConfig {
    /// To be split into words without a shell; holds `{threadId}`.
    pub(crate) read_command: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Redact {
    pub(crate) enabled: bool,
    pub(crate) patterns: Vec<String>,
}

impl Llm {
    /// The most that a prompt may have, in bytes.
    pub(crate) fn max_prompt(&self) -> usize {
        usize::try_from(self.max_prompt_bytes).unwrap_or(usize::MAX)
    }

    /// The line for the shell: a preset of the user's, a built-in one, or the command as it stands.
    pub(crate) fn command_line(&self) -> Option<&str> {
        let command = self.command.as_deref()?;
        Some(self.presets.get(command).map(String::as_str).or_else(|| preset(command)).unwrap_or(command))
    }
}

/// The configuration in force. `explicit` is `--config`.
pub(crate) fn load(explicit: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<MemoryConfig> {
    let settings = settings(explicit, env, reporter)?;
    let mut config: MemoryConfig = serde_json::from_value(settings.nested())
        .map_err(|e| Error::config(format!("the configuration does not fit together: {e}")))?;
    config.storage.foreign = settings.foreign;
    Ok(config)
}

/// A file that somebody named for notes, if they may go there. Those of a store that a stranger named stay in
/// the directory of the file that named it: the current one.
pub(crate) fn may_write(path: PathBuf, config: &MemoryConfig, env: &Env) -> Result<PathBuf> {
    if !config.storage.foreign {
        return Ok(path);
    }
    let here = env.current_dir()?;
    let here = here.canonicalize().unwrap_or(here);
    trust::inside(&here, &path).ok_or_else(|| {
        let named = path.display();
        Error::refused(format!(
            "\"{named}\" lies outside of the directory whose store is used, and which is not trusted"
        ))
        .hint("to trust it, set AGENT_MEMORY_TRUST=1 or list it under trustedDirectories")
    })
}

/// Does `path` lie in `dir`, wherever symlinks lead?
pub(crate) fn lies_in(dir: &Path, path: &Path) -> bool {
    dir.canonicalize().is_ok_and(|dir| trust::inside(&dir, path).is_some())
}

/// Every setting with its source.
pub(crate) fn settings(explicit: Option<&Path>, env: &Env, reporter: &Reporter) -> Result<Settings> {
    let files = files(explicit, env)?;
    let mut settings = Settings::defaults();
    if let Some(main) = &files.main {
        for (key, value) in read::strictly(main, env)? {
            if files.is_here && key == "trustedDirectories" {
                reporter.warn(&format!(
                    "\"{}\": trustedDirectories counts in your own configuration only; left out",
                    main.display()
                ));
            } else {
                settings.set(key, value, &main.display().to_string());
            }
        }
    }
    if let Some(stranger) = &files.stranger {
        trust::add(&mut settings, stranger, env, reporter);
    }
    if settings.get("storage.root").is_none_or(|root| root.value.is_null()) {
        settings.set("storage.root", default_root(env)?.into(), "default");
    }
    Ok(settings)
}

/// Where notes are kept if nobody says otherwise: the PRD's place for those who have its `~/commonplace`.
fn default_root(env: &Env) -> Result<String> {
    let commonplace = env.home().map(|home| home.join("commonplace")).filter(|dir| dir.is_dir());
    let root = match commonplace {
        Some(dir) => dir.join("01_files/_utilities/agent-memories"),
        None => env.memory_data_dir()?,
    };
    let root = absolute(root, env)?;
    root.to_str().map(str::to_owned).ok_or_else(|| {
        Error::config(format!("the store's place is not valid UTF-8: \"{}\"", root.display()))
            .hint("set storage.root")
    })
}
