//! Runs git in the store's repository, whatever the user's own git does.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Finished, Invocation};
use crate::base::text::one_line;
use crate::store::place::Root;
use std::ffi::OsString;
use std::time::Duration;

/// The time limit for all git commands of one commit.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most output that is read from git or the commit hook, in bytes.
const OUTPUT_CAP: usize = 64 << 20;

/// Overrides for the user's git settings: no hooks, no signing, no pager, no line-ending conversion, and no
/// background job, which would be killed with git's process group. With the variables that pass them to git.
const SETTINGS: &[[&str; 4]] = &[
    ["GIT_CONFIG_KEY_0", "core.hooksPath", "GIT_CONFIG_VALUE_0", "/dev/null"],
    ["GIT_CONFIG_KEY_1", "commit.gpgSign", "GIT_CONFIG_VALUE_1", "false"],
    ["GIT_CONFIG_KEY_2", "core.pager", "GIT_CONFIG_VALUE_2", "cat"],
    ["GIT_CONFIG_KEY_3", "core.fsmonitor", "GIT_CONFIG_VALUE_3", "false"],
    ["GIT_CONFIG_KEY_4", "core.autocrlf", "GIT_CONFIG_VALUE_4", "false"],
    ["GIT_CONFIG_KEY_5", "core.excludesFile", "GIT_CONFIG_VALUE_5", "/dev/null"],
    ["GIT_CONFIG_KEY_6", "gc.autoDetach", "GIT_CONFIG_VALUE_6", "false"],
    ["GIT_CONFIG_KEY_7", "maintenance.autoDetach", "GIT_CONFIG_VALUE_7", "false"],
    ["GIT_CONFIG_KEY_8", "init.defaultBranch", "GIT_CONFIG_VALUE_8", "main"],
];

/// The commit identity if git has no `user.name`.
const DEFAULT_IDENTITY: &[(&str, &str)] = &[
    ("GIT_AUTHOR_NAME", "agent-memory"),
    ("GIT_AUTHOR_EMAIL", "agent-memory@localhost"),
    ("GIT_COMMITTER_NAME", "agent-memory"),
    ("GIT_COMMITTER_EMAIL", "agent-memory@localhost"),
];

/// git in the store's directory, with settings and environment that do not depend on the user's.
pub(crate) struct Git {
    dir: std::path::PathBuf,
    deadline: Deadline,
    vars: Vec<(&'static str, OsString)>,
    without: Vec<OsString>,
}

impl Git {
    pub(crate) fn new(root: &Root, env: &Env) -> Result<Git> {
        let dir = fs_err::canonicalize(root.path())?;
        let mut vars: Vec<(&'static str, OsString)> = vec![
            // A repository in a directory above is not the store's.
            ("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(&dir).into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_EDITOR", "true".into()),
            ("LC_ALL", "C".into()),
            ("GIT_CONFIG_COUNT", SETTINGS.len().to_string().into()),
        ];
        for [key_var, key, value_var, value] in SETTINGS {
            vars.extend([(*key_var, key.into()), (*value_var, value.into())]);
        }
        Ok(Git { dir, deadline: Deadline::after(TIMEOUT), vars, without: env.names("GIT_") })
    }

    /// The same, which has so long for all its commands, and runs them with these variables too.
    pub(crate) fn with(mut self, time: Duration, vars: Vec<(&'static str, OsString)>) -> Git {
        self.deadline = Deadline::after(time);
        self.vars.extend(vars);
        self
    }

    /// The same, which makes commits even where git has no name for them.
    pub(crate) fn with_identity(mut self) -> Git {
        if self.missing_identity().is_some() {
            self.vars.extend(DEFAULT_IDENTITY.iter().map(|(name, value)| (*name, value.into())));
        }
        self
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        let words: Vec<String> = ["git"].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        self.words(&words)
    }

    /// What it prints, in one line.
    pub(crate) fn line(&self, arguments: &[&str]) -> Result<String> {
        self.run(arguments).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub(super) fn words(&self, words: &[String]) -> Result<Vec<u8>> {
        let name = words.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        let finished = self.call(words, Vec::new(), OUTPUT_CAP)?;
        if finished.status.success() {
            return Ok(finished.stdout);
        }
        let last = one_line(&finished.last_line, 300);
        let colon = if last.is_empty() { "" } else { ": " };
        let how = exec::how_it_ended(finished.status);
        Err(Error::io(format!("\"{name}\" failed ({how}){colon}{last}")))
    }

    /// Runs a command that gets `input` and prints at most `cap` bytes, however it ends.
    pub(crate) fn call(&self, words: &[String], input: Vec<u8>, cap: usize) -> Result<Finished> {
        let name = words.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        exec::run(Invocation {
            command: CommandLine::Words(words),
            input,
            dir: &self.dir,
            vars: self.vars.clone(),
            without: self.without.clone(),
            is_heard: false,
            stdout_file: None,
            stdout_cap: cap,
            deadline: self.deadline,
            level: 0,
        })
        .map_err(|fault| Error::io(format!("\"{name}\" {fault}")))
    }

    /// git's error where it has no name or address for commits.
    pub(crate) fn missing_identity(&self) -> Option<Error> {
        self.run(&["var", "GIT_COMMITTER_IDENT"]).err()
    }
}
