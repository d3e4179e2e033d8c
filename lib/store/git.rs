//! Runs git in the store's repository, whatever the user's own git does.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::exec::{self, CommandLine, Finished, Invocation};
use crate::base::file::{self, is_older};
use crate::base::repository::git_dir;
use crate::base::text::without_controls;
use crate::store::place::Root;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time limit for all git commands of one commit.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most output that is read from git or the commit hook, in bytes.
pub(super) const OUTPUT_CAP: usize = 64 << 20;

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
    ["GIT_CONFIG_KEY_9", "core.attributesFile", "GIT_CONFIG_VALUE_9", "/dev/null"],
];

/// Pathspecs that leave out temporary files: another process is writing them now, or an editor or a cloud left them.
pub const NO_TEMPORARY_FILES: [&str; 10] = [
    ":(exclude,glob)**/.*.md.??????",
    ":(exclude,glob)**/.*.json.??????",
    ":(exclude,glob)**/*~",
    ":(exclude,glob)**/.*.sw?",
    ":(exclude,glob)**/.#*",
    ":(exclude,glob)**/*#",
    ":(exclude,glob)**/.DS_Store",
    ":(exclude,glob)**/.syncthing.*",
    ":(exclude,glob,icase)**/thumbs.db",
    ":(exclude,glob,icase)**/desktop.ini",
];

/// The commit identity if git has no `user.name`.
const DEFAULT_IDENTITY: &[(&str, &str)] = &[
    ("GIT_AUTHOR_NAME", "agent-memory"),
    ("GIT_AUTHOR_EMAIL", "agent-memory@localhost"),
    ("GIT_COMMITTER_NAME", "agent-memory"),
    ("GIT_COMMITTER_EMAIL", "agent-memory@localhost"),
];

/// git in the store's directory, with settings and environment that do not depend on the user's.
pub struct Git {
    dir: PathBuf,
    deadline: Deadline,
    vars: Vec<(&'static str, OsString)>,
    without: Vec<OsString>,
}

impl Git {
    pub fn new(root: &Root, env: &Env) -> Result<Git> {
        Ok(Git::in_dir(fs_err::canonicalize(root.path())?, env))
    }

    /// git in a directory which is that of a repository.
    pub fn in_dir(dir: PathBuf, env: &Env) -> Git {
        let mut vars: Vec<(&'static str, OsString)> = vec![
            // A repository in a directory above is not the store's.
            ("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(&dir).into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            // Looking at the state writes nothing.
            ("GIT_OPTIONAL_LOCKS", "0".into()),
            ("GIT_EDITOR", "true".into()),
            ("LC_ALL", "C".into()),
            ("GIT_CONFIG_COUNT", SETTINGS.len().to_string().into()),
        ];
        for [key_var, key, value_var, value] in SETTINGS {
            vars.extend([(*key_var, key.into()), (*value_var, value.into())]);
        }
        Git { dir, deadline: Deadline::after(TIMEOUT), vars, without: env.names("GIT_") }
    }

    /// The same, which has so long for all its commands, and runs them with these variables too.
    pub fn with(mut self, time: Duration, vars: Vec<(&'static str, OsString)>) -> Git {
        self.deadline = Deadline::after(time);
        self.vars.extend(vars);
        self
    }

    /// The same, which makes commits even where git has no name for them.
    pub fn with_identity(mut self) -> Result<Git> {
        if self.missing_identity()?.is_some() {
            self.vars.extend(DEFAULT_IDENTITY.iter().map(|(name, value)| (*name, value.into())));
        }
        Ok(self)
    }

    pub fn run(&self, arguments: &[&str]) -> Result<Vec<u8>> {
        self.fed(&command(arguments), Vec::new(), OUTPUT_CAP)
    }

    /// What it prints: one line.
    ///
    /// # Errors
    /// The same as of [`Git::lines`].
    pub fn line(&self, arguments: &[&str]) -> Result<String> {
        only(self.lines(arguments)?, arguments)
    }

    /// The name of the object that it prints.
    pub fn object(&self, arguments: &[&str]) -> Result<String> {
        object(self.line(arguments)?, arguments)
    }

    /// What it prints, line by line.
    ///
    /// # Errors
    /// It failed; or it has succeeded and printed nothing, or the last line has no end. What git answers is not
    /// believed unless it is whole: an answer that got lost must not look like "there is nothing".
    pub fn lines(&self, arguments: &[&str]) -> Result<Vec<String>> {
        let finished = self.call(&command(arguments), Vec::new(), OUTPUT_CAP)?;
        lines_of(&finished, arguments)
    }

    /// The same as [`Git::line`] of a command that has exit code 1 if there is no such thing.
    pub fn maybe_line(&self, arguments: &[&str]) -> Result<Option<String>> {
        self.maybe_lines(arguments)?.map(|lines| only(lines, arguments)).transpose()
    }

    /// The same as [`Git::object`] of a command that has exit code 1 if there is no such object.
    pub fn maybe_object(&self, arguments: &[&str]) -> Result<Option<String>> {
        self.maybe_line(arguments)?.map(|line| object(line, arguments)).transpose()
    }

    /// The same as [`Git::lines`] of a command that has exit code 1, and prints nothing, if there is nothing.
    pub fn maybe_lines(&self, arguments: &[&str]) -> Result<Option<Vec<String>>> {
        let finished = self.call(&command(arguments), Vec::new(), OUTPUT_CAP)?;
        match finished.status.code() == Some(1) && finished.stdout.is_empty() {
            true => Ok(None),
            false => lines_of(&finished, arguments).map(Some),
        }
    }

    /// What a command says that answers with its exit code: yes with 0, no with 1.
    pub fn says_yes(&self, arguments: &[&str]) -> Result<bool> {
        let finished = self.call(&command(arguments), Vec::new(), OUTPUT_CAP)?;
        match (finished.status.code(), finished.failure()) {
            (Some(1), _) => Ok(false),
            (_, None) => Ok(true),
            (_, Some(why)) => Err(failed(arguments, &why)),
        }
    }

    /// The files below these directories that differ from the last commit, by path, with git's two letters for how. No
    /// `.gitignore` hides one: it may have come from a remote.
    pub fn status(&self, dirs: &[&str]) -> Result<Vec<([u8; 2], Vec<u8>)>> {
        // `--branch`: the first line is about the branch, so there is always one. `-z`: names are unquoted, and each line
        // ends with NUL.
        let arguments = [
            &[
                "status", "--porcelain", "--branch", "-z", "--no-renames", "--untracked-files=all",
                "--ignored", "--",
            ],
            dirs,
            &NO_TEMPORARY_FILES,
        ]
        .concat();
        let printed = self.run(&arguments)?;
        let lines: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
        let [[b'#', b'#', ..], lines @ .., []] = &lines[..] else { return Err(unusable(&arguments)) };
        let file = |line: &&[u8]| match line {
            [one, two, b' ', path @ ..] if !path.is_empty() => Ok(([*one, *two], path.to_vec())),
            _ => Err(unusable(&arguments)),
        };
        lines.iter().map(file).collect()
    }

    /// What a command prints, at most `cap` bytes, that gets `input`.
    pub fn fed(&self, words: &[String], input: Vec<u8>, cap: usize) -> Result<Vec<u8>> {
        let finished = self.call(words, input, cap)?;
        match finished.failure() {
            Some(why) => Err(Error::io(format!("\"{}\" {why}", name_of(words)))),
            None => Ok(finished.stdout),
        }
    }

    /// The same, however it ends.
    pub fn call(&self, words: &[String], input: Vec<u8>, cap: usize) -> Result<Finished> {
        exec::run(Invocation {
            input,
            vars: self.vars.clone(),
            without: self.without.clone(),
            ..Invocation::new(CommandLine::Words(words), &self.dir, cap, self.deadline)
        })
        .map(|finished| Finished { last_line: reason(&finished).unwrap_or(finished.last_line), ..finished })
        .map_err(|fault| Error::io(format!("\"{}\" {fault}", name_of(words))))
    }

    /// git's error where it has no name or address for commits.
    pub fn missing_identity(&self) -> Result<Option<Error>> {
        const IDENTITY: [&str; 2] = ["var", "GIT_COMMITTER_IDENT"];
        let finished = self.call(&command(&IDENTITY), Vec::new(), OUTPUT_CAP)?;
        match finished.failure() {
            Some(why) => Ok(Some(failed(&IDENTITY, &why))),
            None if finished.stdout.ends_with(b"\n") => Ok(None),
            None => Err(unusable(&IDENTITY)),
        }
    }
}

/// Why git failed, in its words: its advice follows in further lines.
fn reason(finished: &Finished) -> Option<String> {
    let said = String::from_utf8_lossy(&finished.stderr);
    let mut lines = said.lines().map(without_controls);
    lines.find(|line| line.starts_with("fatal: ") || line.starts_with("error: ")).map(Cow::into_owned)
}

/// An older lock of git was left behind by a killed process.
const LOCKED: Duration = Duration::from_secs(10 * 60);
/// So long a person may be writing a commit message, while git holds its lock.
const WRITTEN: Duration = Duration::from_secs(24 * 60 * 60);

/// git's lock files in the store's repository that no git can need any longer.
pub fn old_locks(root: &Root) -> Vec<PathBuf> {
    let Some(dir) = git_dir(root.path()) else { return Vec::new() };
    let message = message_since(&dir);
    let is_old = |lock: &PathBuf| {
        let since = lock.metadata().and_then(|lock| lock.modified()).ok();
        is_older(lock, if message.is_some() && message >= since { WRITTEN } else { LOCKED })
    };
    locks_in(&dir).into_iter().filter(is_old).collect()
}

/// When git gave a person a commit message to write, the last time; with the lines that tell how. Without an editor there
/// are no such lines.
fn message_since(dir: &Path) -> Option<SystemTime> {
    let path = dir.join("COMMIT_EDITMSG");
    let text = file::read(&path, 1 << 20).ok()?;
    memchr::memmem::find(&text, b"\n# ")?;
    path.metadata().and_then(|file| file.modified()).ok()
}

/// The directory itself, where `index.lock` and `HEAD.lock` are, `objects` with `maintenance.lock`, and all of `refs`.
fn locks_in(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting =
        vec![(dir.to_path_buf(), false), (dir.join("objects"), false), (dir.join("refs"), true)];
    while let Some((dir, is_deep)) = waiting.pop() {
        for file in fs_err::read_dir(&dir).into_iter().flatten().flatten() {
            match file.file_type() {
                Ok(kind) if kind.is_dir() && is_deep => waiting.push((file.path(), true)),
                Ok(kind) if kind.is_file() && file.path().extension() == Some(OsStr::new("lock")) => {
                    found.push(file.path());
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn name_of(words: &[String]) -> String {
    words[..words.len().min(2)].join(" ")
}

/// The words of a git command.
pub fn command(arguments: &[&str]) -> Vec<String> {
    ["git"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

fn lines_of(finished: &Finished, arguments: &[&str]) -> Result<Vec<String>> {
    if let Some(why) = finished.failure() {
        return Err(failed(arguments, &why));
    }
    let text = String::from_utf8_lossy(&finished.stdout);
    let whole = text.strip_suffix('\n').ok_or_else(|| unusable(arguments))?;
    Ok(whole.split('\n').map(str::to_owned).collect())
}

fn only(lines: Vec<String>, arguments: &[&str]) -> Result<String> {
    <[String; 1]>::try_from(lines).map(|[line]| line).map_err(|_| unusable(arguments))
}

fn object(line: String, arguments: &[&str]) -> Result<String> {
    if is_object(&line) { Ok(line) } else { Err(unusable(arguments)) }
}

/// This can be the name of an object, in either of git's formats.
pub fn is_object(name: &str) -> bool {
    matches!(name.len(), 40 | 64) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn failed(arguments: &[&str], why: &str) -> Error {
    Error::io(format!("\"git {}\" {why}", arguments.first().unwrap_or(&"")))
}

/// git has answered with nothing, or in part.
pub fn unusable(arguments: &[&str]) -> Error {
    failed(arguments, "printed an incomplete answer")
        .hint("run it again; if it says the same, run git fsck in the store")
}
