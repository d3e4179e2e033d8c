//! An agent's log: loaded before a run, extended after it. It never makes a run fail (M6).

use crate::agent::tree::Scope;
use crate::base::cli::Reporter;
use crate::base::error::Result;
use crate::base::text::size;
use crate::config::agent::{AgentName, LogSettings};
use crate::store::run_log;
use std::io;
use std::path::PathBuf;

/// A log of this many bytes, some ten entries, is never said to be large.
const LIGHT: usize = 16 * 1024;

/// The log as a run found it.
#[derive(Debug)]
pub struct AgentLog {
    agent: AgentName,
    /// The file that gets an entry. `None`: the agent keeps no log, or its log cannot be read.
    path: Option<PathBuf>,
    /// What goes into the prompt, or why nothing does: it cannot be read, or is longer than any prompt. `None`: the agent
    /// keeps no log.
    pub entries: Option<Result<String, String>>,
    max_task_chars: usize,
}

impl AgentLog {
    pub fn load(agent: &AgentName, memory: &LogSettings, scope: Scope) -> AgentLog {
        let (agent, max_task_chars) = (agent.clone(), memory.max_task_chars);
        let mut log = AgentLog { agent, path: None, entries: None, max_task_chars };
        if !memory.enabled {
            return log;
        }
        let reporter = scope.reporter;
        let entries = log.read(memory, scope).unwrap_or_else(|error| Err(error.message().to_owned()));
        match (&entries, &log.path) {
            (Err(why), _) => reporter.warn(&format!("failed to load memory for \"{}\": {why}", log.agent)),
            (Ok(text), Some(path)) if reporter.is_verbose() => {
                let count = run_log::count_in(text.as_bytes()).ok().filter(|_| !text.is_empty());
                let loaded = |count| format!("Memory:   {count} entries loaded from {}", path.display());
                reporter.verbose(&count.map_or("Memory:   0 entries (no memory file)".to_owned(), loaded));
            }
            (Ok(_), _) => {}
        }
        log.entries = Some(entries);
        log
    }

    fn read(&mut self, memory: &LogSettings, scope: Scope) -> Result<Result<String, String>> {
        let path = run_log::path(&self.agent, memory, scope.env)?;
        let entries = match run_log::tail(&path, memory.last_n, scope.deadline) {
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Err(e.to_string()),
            read => Ok(read?),
        };
        let limit = memory.max_entries;
        let count = if limit > 0 { run_log::count(&path, scope.deadline)?.entries } else { 0 };
        if limit > 0 && count >= limit {
            let agent = &self.agent;
            scope.reporter.warn_always(&format!(
                "agent \"{agent}\" memory has {count} entries (max_entries: {limit}). Run 'axe gc {agent}' to trim."
            ));
        }
        self.path = Some(path);
        Ok(entries)
    }

    /// What goes into the prompt.
    pub(super) fn text(&self) -> &str {
        self.entries.as_ref().and_then(|entries| entries.as_deref().ok()).unwrap_or_default()
    }

    /// Says so if the log makes up most of a prompt of `prompt` bytes: it is sent, and paid for, again in each run.
    pub fn weigh(&self, prompt: usize, reporter: &Reporter) {
        let (log, agent) = (self.text().len(), &self.agent);
        if log > LIGHT && log > prompt / 2 {
            reporter.warn(&format!(
                "the log of agent \"{agent}\" is {} of the {} that are sent; use --prompt, set \
                 memory.max_task_chars or a lower memory.last_n, or run: axe gc {agent}",
                size(log as u64),
                size(prompt as u64)
            ));
        }
    }

    /// Adds a run to the log.
    pub fn append(&self, task: &str, result: &str, scope: Scope) {
        let Some(path) = &self.path else { return };
        let Scope { env, deadline, reporter, .. } = scope;
        let entry = run_log::entry(env.now(), task, result, self.max_task_chars);
        if let Err(e) = run_log::append(path, &entry, deadline) {
            reporter.warn(&format!("failed to save memory for \"{}\": {e}", self.agent));
        }
    }
}
