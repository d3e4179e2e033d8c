//! The notes' history: a git repository of the store's own, one commit after each run of writes (FR-10).
//!
//! Nothing here can harm a note. Whatever goes wrong is told as a warning, and the next commit takes along what
//! this one did not.

use crate::base::deadline::Deadline;
use crate::base::env::Env;
use crate::base::exec::{self, CommandLine, Invocation};
use crate::base::file;
use crate::base::text::one_line;
use crate::config::memory::Storage;
use crate::store::persistence::Note;
use crate::store::place::Root;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

/// Time for everything that git is asked to do after one run.
const PATIENCE: Duration = Duration::from_secs(60);
/// Notes may change while git looks at them: so often it is asked.
const TRIES: usize = 5;
/// Files that somebody is writing at this moment: they get their names when they are whole.
pub(crate) const NOT_YET: &str = ":(exclude,glob)**/.*.md.??????";
/// git's own words are few; a hook's are not kept.
const OUTPUT_CAP: usize = 64 << 20;

/// What the person's own settings must not bring in: hooks, signing, a pager, an editor, another's line ends, a
/// background job that we would end half-way.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("commit.gpgSign", "false"),
    ("core.pager", "cat"),
    ("core.fsmonitor", "false"),
    ("core.autocrlf", "false"),
    ("core.excludesFile", "/dev/null"),
    ("gc.autoDetach", "false"),
    ("maintenance.autoDetach", "false"),
    ("init.defaultBranch", "main"),
];

/// Who commits where git knows nobody: a history should not wait for somebody to introduce himself.
const OURSELVES: &[(&str, &str)] = &[
    ("GIT_AUTHOR_NAME", "agent-memory"),
    ("GIT_AUTHOR_EMAIL", "agent-memory@localhost"),
    ("GIT_COMMITTER_NAME", "agent-memory"),
    ("GIT_COMMITTER_EMAIL", "agent-memory@localhost"),
];

/// What is to be said of a commit.
pub(crate) struct Commit<'a> {
    /// `storage.commitHook`.
    pub(crate) hook: &'a str,
    pub(crate) message: String,
    /// The threads and sessions that the changed notes come from.
    pub(crate) thread_ids: Vec<String>,
    /// How many notes were written.
    pub(crate) count: usize,
}

/// Takes what became of `changed` notes into the history, where that is wanted. The error is a warning's text.
pub(crate) fn record(
    root: &Root,
    storage: &Storage,
    message: String,
    changed: &[Note],
    env: &Env,
) -> Result<(), String> {
    if changed.is_empty() || !storage.auto_commit || storage.foreign {
        return Ok(());
    }
    let sources = changed.iter().flat_map(|note| &note.entry.meta().sources);
    let thread_ids: BTreeSet<String> = sources.filter_map(|source| source.thread_id.clone()).collect();
    let thread_ids = thread_ids.into_iter().collect();
    let new = Commit { hook: &storage.commit_hook, message, thread_ids, count: changed.len() };
    commit(root, &new, env)
        .map(drop)
        .map_err(|why| format!("the notes are written, but not committed: {why}"))
}

/// Commits whatever differs under `topics/` and `archive/`. `Ok(false)`: nothing does. The error is a warning's
/// text: why there is no commit.
fn commit(root: &Root, commit: &Commit, env: &Env) -> Result<bool, String> {
    let mut git = Git::new(root, env)?;
    // Two at once would find git's own lock, and fail.
    let lock = root.state().join("history.lock");
    let _alone = file::lock_for_change(&lock, true).map_err(|e| e.to_string())?;
    if !root.path().join(".git").exists() {
        git.run(&["init", "--quiet", "--template="])?;
    }
    let mut tries = TRIES;
    let mut is_ours = false;
    loop {
        let changed = git.changed()?;
        if changed.is_empty() {
            return Ok(false);
        }
        let hook = hook_words(commit, &changed)?;
        let added = git.run(&[&["add", "--all", "--"], &changed[..], &[NOT_YET]].concat());
        match added.and_then(|_| git.words(&hook)) {
            Ok(_) => return Ok(true),
            Err(_) if !is_ours && git.nobody().is_some() => {
                git.vars.extend(OURSELVES.iter().map(|(name, value)| (*name, value.into())));
                is_ours = true;
            }
            Err(_) if tries > 1 && git.is_overtaken(&hook)? => tries -= 1,
            Err(why) => return Err(why),
        }
    }
}

pub(crate) struct Git {
    dir: std::path::PathBuf,
    deadline: Deadline,
    vars: Vec<(&'static str, OsString)>,
    without: Vec<OsString>,
}

impl Git {
    pub(crate) fn new(root: &Root, env: &Env) -> Result<Git, String> {
        let dir = fs_err::canonicalize(root.path()).map_err(|e| e.to_string())?;
        let mut vars: Vec<(&'static str, OsString)> = vec![
            // The repository of a directory above is somebody else's.
            ("GIT_CEILING_DIRECTORIES", dir.parent().unwrap_or(&dir).into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_EDITOR", "true".into()),
            ("LC_ALL", "C".into()),
            ("GIT_CONFIG_COUNT", SETTINGS.len().to_string().into()),
        ];
        for ((key, value), (name, content)) in CONFIG_VARS.iter().zip(SETTINGS) {
            vars.push((key, name.into()));
            vars.push((value, content.into()));
        }
        Ok(Git { dir, deadline: Deadline::after(PATIENCE), vars, without: env.names("GIT_") })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let words: Vec<String> = ["git"].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        self.words(&words)
    }

    fn words(&self, words: &[String]) -> Result<Vec<u8>, String> {
        let name = words.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        let finished = exec::run(Invocation {
            command: CommandLine::Words(words),
            input: Vec::new(),
            dir: &self.dir,
            vars: self.vars.clone(),
            without: self.without.clone(),
            is_heard: false,
            stdout_file: None,
            stdout_cap: OUTPUT_CAP,
            deadline: self.deadline,
            level: 0,
        })
        .map_err(|fault| format!("\"{name}\" {fault}"))?;
        if finished.status.success() {
            return Ok(finished.stdout);
        }
        let last = one_line(&finished.last_line, 300);
        let colon = if last.is_empty() { "" } else { ": " };
        Err(format!("\"{name}\" failed ({}){colon}{last}", exec::how_it_ended(finished.status)))
    }

    /// Why git cannot say who commits, where it cannot.
    pub(crate) fn nobody(&self) -> Option<String> {
        self.run(&["var", "GIT_COMMITTER_IDENT"]).err()
    }

    /// Those of `topics` and `archive` in which something differs from the last commit. git knows a directory
    /// only while there is a file in it.
    fn changed(&self) -> Result<Vec<&'static str>, String> {
        let mut changed = Vec::new();
        for dir in ["topics", "archive"] {
            let status = self.run(&["status", "--porcelain", "--untracked-files=all", "--", dir, NOT_YET])?;
            if !status.is_empty() {
                changed.push(dir);
            }
        }
        Ok(changed)
    }

    /// Has somebody changed a note since all were added? Then a file that git was to take may be gone. Nor has
    /// `git commit` failed where nothing differs any more: there was only a moment at which something did.
    fn is_overtaken(&self, hook: &[String]) -> Result<bool, String> {
        let status = self.run(&["status", "--porcelain", "--", "topics", "archive", NOT_YET])?;
        if status.is_empty() {
            return Ok(is_git_commit(hook));
        }
        // The second letter of a line: how the file differs from what was added.
        Ok(status.split(|byte| *byte == b'\n').any(|line| line.get(1).is_some_and(|letter| *letter != b' ')))
    }
}

/// The variables through which git takes settings from its environment.
const CONFIG_VARS: &[(&str, &str)] = &[
    ("GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"),
    ("GIT_CONFIG_KEY_1", "GIT_CONFIG_VALUE_1"),
    ("GIT_CONFIG_KEY_2", "GIT_CONFIG_VALUE_2"),
    ("GIT_CONFIG_KEY_3", "GIT_CONFIG_VALUE_3"),
    ("GIT_CONFIG_KEY_4", "GIT_CONFIG_VALUE_4"),
    ("GIT_CONFIG_KEY_5", "GIT_CONFIG_VALUE_5"),
    ("GIT_CONFIG_KEY_6", "GIT_CONFIG_VALUE_6"),
    ("GIT_CONFIG_KEY_7", "GIT_CONFIG_VALUE_7"),
    ("GIT_CONFIG_KEY_8", "GIT_CONFIG_VALUE_8"),
];

/// The hook's words, filled in. Splitting comes first, so that no value can become a word of its own.
pub(crate) fn hook_words(commit: &Commit, changed: &[&str]) -> Result<Vec<String>, String> {
    let words = shlex::split(commit.hook)
        .filter(|words| !words.is_empty())
        .ok_or_else(|| format!("storage.commitHook cannot be split into words: {}", commit.hook))?;
    let message = one_line(&commit.message, 200);
    let ids: Vec<&str> = commit.thread_ids.iter().map(String::as_str).filter(|id| may_be_named(id)).collect();
    let ids = ids.join(",");
    // With each word whether it was a flag before its values came in: they do not make it one.
    let mut filled: Vec<(bool, String)> = Vec::new();
    for word in &words {
        if word.contains("{threadId}") && ids.is_empty() {
            // `--trailer 'Thread-Id: {threadId}'` goes as a whole.
            if !word.starts_with('-') && filled.last().is_some_and(|(is_flag, _)| *is_flag) {
                filled.pop();
            }
            continue;
        }
        let values = [("{threadId}", &*ids), ("{message}", &message), ("{count}", &commit.count.to_string())];
        filled.push((word.starts_with('-'), fill(word, &values)));
    }
    let mut filled: Vec<String> = filled.into_iter().map(|(_, word)| word).collect();
    if is_git_commit(&words) {
        filled.extend(["-m", &message, "--"].map(str::to_owned));
        filled.extend(changed.iter().map(|dir| (*dir).to_owned()));
    }
    Ok(filled)
}

fn is_git_commit(words: &[String]) -> bool {
    matches!(words, [git, commit, ..] if git == "git" && commit == "commit")
}

/// Puts values in the places of their names, once: what a value holds is not looked at again.
fn fill(word: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((at, name, value)) =
        values.iter().filter_map(|(name, value)| rest.find(name).map(|at| (at, name, value))).min()
    {
        filled.push_str(&rest[..at]);
        filled.push_str(value);
        rest = &rest[at + name.len()..];
    }
    filled + rest
}

/// Ids that cannot be taken for a flag, and look alike in every terminal.
fn may_be_named(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "._:@/-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str = "git commit --trailer 'Thread-Id: {threadId}'";

    fn words(hook: &str, ids: &[&str]) -> Vec<String> {
        let commit = Commit {
            hook,
            message: "say {count}\nthings".to_owned(),
            thread_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            count: 3,
        };
        hook_words(&commit, &["topics"]).unwrap()
    }

    #[test]
    fn the_default_names_threads_message_and_directories() {
        assert_eq!(
            words(DEFAULT, &["T-1", "a/b"]),
            ["git", "commit", "--trailer", "Thread-Id: T-1,a/b", "-m", "say {count} things", "--", "topics"]
        );
    }

    #[test]
    fn without_a_thread_its_argument_goes_with_its_flag() {
        let bare = ["git", "commit", "-m", "say {count} things", "--", "topics"];
        assert_eq!(words(DEFAULT, &[]), bare);
        assert_eq!(words(DEFAULT, &["-x", "a b", "é", ""]), bare);
        assert_eq!(words("git commit '--trailer=T: {threadId}'", &[]), bare);
        assert_eq!(words("hook {threadId} {count}", &[]), ["hook", "3"]);
    }

    #[test]
    fn values_stay_within_their_word_and_are_not_filled_again() {
        assert_eq!(words("hook {message}:{count}", &[]), ["hook", "say {count} things:3"]);
    }

    #[test]
    fn every_setting_has_its_variables() {
        assert_eq!(CONFIG_VARS.len(), SETTINGS.len());
    }

    #[test]
    fn an_open_quote_is_named() {
        let commit = Commit { hook: "git 'commit", message: String::new(), thread_ids: Vec::new(), count: 0 };
        assert!(hook_words(&commit, &[]).unwrap_err().contains("git 'commit"));
    }
}
