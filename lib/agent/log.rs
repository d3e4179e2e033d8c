//! An agent's log: loaded before a run, extended after it. It never makes a run fail (M6).

use crate::base::cli::Reporter;
use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::text::size;
use crate::config::agent::{Agent, AgentName};
use crate::store::run_log;
use std::io;
use std::path::PathBuf;

/// A log of this many bytes, some ten entries, is never said to be large.
const LIGHT: usize = 16 * 1024;

/// The log as a run found it.
#[derive(Debug)]
pub enum AgentLog {
    /// The agent keeps no log.
    Off,
    /// The log cannot be read. It gets no entry either.
    Unreadable(String),
    /// The log is longer than any prompt. The run goes on without it, and is added to it.
    TooLong { path: PathBuf, why: String },
    Loaded {
        path: PathBuf,
        /// The entries that go into the prompt.
        text: String,
    },
}

/// What is stored of a run.
pub struct LoggedRun<'a> {
    pub task: &'a str,
    pub result: &'a str,
}

impl AgentLog {
    pub fn load(
        name: &AgentName,
        agent: &Agent,
        deadline: Deadline,
        env: &Env,
        reporter: &Reporter,
    ) -> AgentLog {
        if !agent.memory.enabled {
            return AgentLog::Off;
        }
        let log = AgentLog::read(name, agent, deadline, env, reporter)
            .unwrap_or_else(|error| AgentLog::Unreadable(error.message().to_owned()));
        match &log {
            AgentLog::TooLong { why, .. } | AgentLog::Unreadable(why) => {
                reporter.warn(&format!("failed to load memory for \"{name}\": {why}"));
            }
            AgentLog::Loaded { path, text } if reporter.is_verbose() => {
                reporter.verbose(&match run_log::count_in(text.as_bytes()) {
                    Ok(count) if !text.is_empty() => {
                        format!("Memory:   {count} entries loaded from {}", path.display())
                    }
                    _ => "Memory:   0 entries (no memory file)".to_owned(),
                });
            }
            AgentLog::Loaded { .. } | AgentLog::Off => {}
        }
        log
    }

    fn read(
        name: &AgentName,
        agent: &Agent,
        deadline: Deadline,
        env: &Env,
        reporter: &Reporter,
    ) -> Result<AgentLog> {
        let memory = &agent.memory;
        let path = run_log::path(name, memory, env)?;
        let text = match run_log::tail(&path, memory.last_n(), deadline) {
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => Err(e.to_string()),
            read => Ok(read?),
        };
        let limit = memory.max_entries();
        let count = if limit > 0 { run_log::count(&path, deadline)?.entries } else { 0 };
        if limit > 0 && count >= limit {
            reporter.warn_always(&format!(
                "agent \"{name}\" memory has {count} entries (max_entries: {limit}). Run 'axe gc {name}' to trim."
            ));
        }
        Ok(match text {
            Ok(text) => AgentLog::Loaded { path, text },
            Err(why) => AgentLog::TooLong { path, why },
        })
    }

    /// What goes into the prompt.
    pub(super) fn text(&self) -> &str {
        match self {
            AgentLog::Loaded { text, .. } => text,
            AgentLog::Off | AgentLog::Unreadable(_) | AgentLog::TooLong { .. } => "",
        }
    }

    /// Says so if the log makes up most of a prompt of `prompt` bytes: it is sent, and paid for, again in each run.
    pub fn weigh(&self, name: &AgentName, prompt: usize, reporter: &Reporter) {
        let log = self.text().len();
        if log > LIGHT && log > prompt / 2 {
            reporter.warn(&format!(
                "the log of agent \"{name}\" is {} of the {} that are sent; use --prompt, set \
                 memory.max_task_chars or a lower memory.last_n, or run: axe gc {name}",
                size(log as u64),
                size(prompt as u64)
            ));
        }
    }

    /// Adds the run to the log.
    pub fn append(
        &self,
        name: &AgentName,
        agent: &Agent,
        run: LoggedRun,
        deadline: Deadline,
        env: &Env,
        reporter: &Reporter,
    ) {
        let (AgentLog::Loaded { path, .. } | AgentLog::TooLong { path, .. }) = self else { return };
        let task_chars = agent.memory.max_task_chars();
        if let Err(e) = run_log::append(path, env.now(), run.task, run.result, task_chars, deadline) {
            reporter.warn(&format!("failed to save memory for \"{name}\": {e}"));
        }
    }
}
