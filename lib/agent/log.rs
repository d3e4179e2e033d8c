//! What an agent remembers: its log before a run, and the entry after it. Never a reason for a run to fail (M6).

use crate::base::cli::Reporter;
use crate::base::env::Env;
use crate::config::agent::{Agent, AgentName};
use crate::store::run_log;
use std::io;
use std::path::PathBuf;

/// The log as a run found it.
#[derive(Debug)]
pub(crate) enum AgentLog {
    /// The agent keeps no log.
    Off,
    /// It keeps one that cannot be read. It gets no entry either: what we cannot see we do not touch.
    Unreadable(String),
    /// It is longer than any prompt. The run goes on without it, and is written down.
    TooLong { path: PathBuf, why: String },
    Loaded {
        path: PathBuf,
        /// The entries that go into the prompt.
        text: String,
    },
}

impl AgentLog {
    pub(crate) fn load(name: &AgentName, agent: &Agent, env: &Env, reporter: &Reporter) -> AgentLog {
        let memory = &agent.memory;
        if !memory.enabled {
            return AgentLog::Off;
        }
        let loaded = run_log::path(name, memory, env).map_err(|e| e.message().to_owned()).and_then(|path| {
            let text = match run_log::tail(&path, memory.last_n()) {
                Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Err(e.to_string()),
                read => Ok(read.map_err(|e| e.to_string())?),
            };
            if memory.max_entries() > 0 {
                let count = run_log::count(&path).map_err(|e| e.to_string())?.entries;
                if count >= memory.max_entries() {
                    reporter.warn(&format!(
                        "agent \"{name}\" memory has {count} entries (max_entries: {}). Run 'axe gc {name}' to trim.",
                        memory.max_entries()
                    ));
                }
            }
            Ok((path, text))
        });
        match loaded {
            Ok((path, Err(why))) => {
                reporter.warn(&format!("failed to load memory for \"{name}\": {why}"));
                AgentLog::TooLong { path, why }
            }
            Ok((path, Ok(text))) => {
                if reporter.is_verbose() {
                    reporter.verbose(&match run_log::count_in(text.as_bytes()) {
                        Ok(count) if !text.is_empty() => {
                            format!("Memory:   {count} entries loaded from {}", path.display())
                        }
                        _ => "Memory:   0 entries (no memory file)".to_owned(),
                    });
                }
                AgentLog::Loaded { path, text }
            }
            Err(why) => {
                reporter.warn(&format!("failed to load memory for \"{name}\": {why}"));
                AgentLog::Unreadable(why)
            }
        }
    }

    /// What goes into the prompt.
    pub(crate) fn text(&self) -> &str {
        match self {
            AgentLog::Loaded { text, .. } => text,
            AgentLog::Off | AgentLog::Unreadable(_) | AgentLog::TooLong { .. } => "",
        }
    }

    /// Writes the run down.
    pub(crate) fn append(
        &self,
        name: &AgentName,
        agent: &Agent,
        task: &str,
        result: &str,
        env: &Env,
        reporter: &Reporter,
    ) {
        let (AgentLog::Loaded { path, .. } | AgentLog::TooLong { path, .. }) = self else { return };
        if let Err(e) = run_log::append(path, env.now(), task, result, agent.memory.max_task_chars()) {
            reporter.warn(&format!("failed to save memory for \"{name}\": {e}"));
        }
    }
}
