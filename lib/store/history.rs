//! The notes' history: the store is its own git repository, with one commit after each run of writes.
//!
//! A failure here is a warning: the notes are already on disk, and the next commit includes what this one missed.

use crate::base::env::Env;
use crate::base::error::{Error, Result};
use crate::base::file;
use crate::base::text::{filled, one_line};
use crate::config::memory::Storage;
use crate::store::entry::Source;
use crate::store::git::{Git, NO_TEMPORARY_FILES, OUTPUT_CAP, old_locks};
use crate::store::health::{Health, TroubleKind};
use crate::store::place::Root;
use crate::store::{merge_commit, merge_driver, removed, version};
use std::collections::BTreeSet;

/// The longest line of a commit message's body, in characters.
const BODY_LINE: usize = 1000;
/// Attempts at a commit, because notes may change between `git add` and `git commit`.
const TRIES: usize = 5;
/// Adds whatever differs below the paths that follow; what a `.gitignore` names, too.
pub const ADD: [&str; 4] = ["add", "--all", "--force", "--"];
/// What is kept in the history.
pub const DIRS: [&str; 6] = ["topics", "archive", "proposals", removed::PATH, ".gitignore", version::PATH];

/// What the commit message and the commit hook are made from.
pub struct Commit<'a> {
    /// `storage.commitHook`.
    pub hook: &'a str,
    pub message: String,
    /// What else there is to say, in lines.
    pub body: Vec<String>,
    /// The threads and sessions that the changed notes come from.
    pub thread_ids: Vec<String>,
    /// How many notes and proposals were written.
    pub count: usize,
}

impl<'a> Commit<'a> {
    /// The commit of `count` notes or proposals, which come from these sources.
    pub fn of<'s>(
        storage: &'a Storage,
        message: String,
        sources: impl Iterator<Item = &'s Source>,
        count: usize,
    ) -> Commit<'a> {
        let thread_ids: BTreeSet<String> = sources.filter_map(|source| source.thread_id.clone()).collect();
        let thread_ids = thread_ids.into_iter().collect();
        Commit { hook: &storage.commit_hook, message, body: Vec::new(), thread_ids, count }
    }
}

/// Commits whatever differs below [`DIRS`], unless commits are off.
pub fn record(root: &Root, storage: &Storage, commit: &Commit, env: &Env) -> Result<()> {
    if !storage.auto_commit {
        Health::change(root, |health| health.end(TroubleKind::Commit));
        return Ok(());
    }
    let done = Git::new(root, env).and_then(|git| {
        // With two commits at once, the second would fail on git's own lock.
        let _lock = lock_history(root)?;
        commit_locked(root, commit, git)
    });
    Health::change(root, |health| match &done {
        Ok(()) => health.end(TroubleKind::Commit),
        Err(error) => health.add(TroubleKind::Commit, 1, &error.line(), env.now()),
    });
    done.map_err(|error| error.context("the notes are written, but not committed"))
}

/// Makes the store its own repository, unless it is one.
pub fn make_repository(root: &Root, git: &Git) -> Result<()> {
    let history = root.path().join(".git");
    // It has its settings before it is a repository, so there is none that a killed program has left without them.
    let is_new = !history.is_file() && !history.join("HEAD").exists();
    if is_new {
        merge_driver::prepare(root, git)?;
        git.run(&["init", "--quiet", "--template="])?;
    }
    // The store's directory may be open to others, because a person made it.
    let _ = file::make_private(&history);
    Ok(())
}

/// Waits for, and holds, the lock of the program that runs git in the store.
pub fn lock_history(root: &Root) -> Result<Option<fs_err::File>> {
    Ok(file::lock_for_change(&root.state().join("history.lock"), true)?)
}

/// Commits whatever differs below [`DIRS`], for who holds [`lock_history`].
pub fn commit_locked(root: &Root, commit: &Commit, mut git: Git) -> Result<()> {
    make_repository(root, &git)?;
    // A person may have deleted it.
    root.put_ignored()?;
    // Our own lock is held, so no git of ours holds these.
    for lock in old_locks(root) {
        file::if_exists(file::remove(&lock))?;
    }
    // A merge that was cut short comes first: what it has written is not a change of this machine.
    merge_commit::finish(root, &git)?;
    let mut tries = TRIES;
    let mut has_default_identity = false;
    let mut refused = Vec::new();
    loop {
        let changed = dirs_of(&differing(&git, &refused)?);
        if changed.is_empty() {
            return Ok(());
        }
        let without: Vec<String> = refused.iter().map(|path| format!(":(exclude,literal){path}")).collect();
        let changed: Vec<&str> = changed.into_iter().chain(without.iter().map(String::as_str)).collect();
        let hook = hook_words(commit, &changed)?;
        let added = git.run(&[&ADD, &changed[..], &NO_TEMPORARY_FILES].concat());
        match added.and_then(|_| git.fed(&hook, Vec::new(), OUTPUT_CAP)) {
            Ok(_) => return Ok(()),
            Err(_) if !has_default_identity && git.missing_identity()?.is_some() => {
                git = git.with_identity()?;
                has_default_identity = true;
            }
            Err(error) => {
                let is_new = refused.is_empty();
                if is_new {
                    refused = not_files(root, &git)?;
                }
                let is_known_now = is_new && !refused.is_empty();
                if !is_known_now && (tries <= 1 || !was_overtaken(&git, &hook, &refused)?) {
                    return Err(error);
                }
                tries -= 1;
            }
        }
    }
}

/// Which of [`DIRS`] differ from the last commit: git refuses the path of an empty directory.
pub fn changed(git: &Git) -> Result<Vec<&'static str>> {
    Ok(dirs_of(&git.status(&DIRS)?))
}

/// A file that differs from the last commit, as [`Git::status`] has it.
type Differing = ([u8; 2], Vec<u8>);

fn is_below(dir: &str, path: &[u8]) -> bool {
    path.strip_prefix(dir.as_bytes()).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

fn dirs_of(status: &[Differing]) -> Vec<&'static str> {
    let has_changed = |dir: &&str| status.iter().any(|(_, path)| is_below(dir, path));
    DIRS.into_iter().filter(has_changed).collect()
}

/// What differs, besides what git refuses.
fn differing(git: &Git, refused: &[String]) -> Result<Vec<Differing>> {
    let mut status = git.status(&DIRS)?;
    status.retain(|(_, path)| !refused.iter().any(|refused| is_below(refused, path)));
    Ok(status)
}

/// Where something else is in the place of a file: a directory, a pipe. git takes nothing at all while it is told to take
/// that. It waits until a person has removed it, and all else is committed.
fn not_files(root: &Root, git: &Git) -> Result<Vec<String>> {
    let paths = git.status(&DIRS)?.into_iter().filter_map(|(_, path)| String::from_utf8(path).ok());
    let is_other = |path: &String| {
        let kind = root.path().join(path).symlink_metadata().map(|metadata| metadata.file_type());
        kind.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink())
    };
    Ok(paths.filter(is_other).collect())
}

/// The commit failed because a note was changed meanwhile: either a file differs from what was added, or
/// nothing differs from the last commit any more.
fn was_overtaken(git: &Git, hook: &[String], refused: &[String]) -> Result<bool> {
    let status = differing(git, refused)?;
    if status.is_empty() {
        return Ok(is_git_commit(hook));
    }
    // The second letter tells how the file differs from the index.
    Ok(status.iter().any(|([_, letter], _)| *letter != b' '))
}

/// The words of the commit hook with its placeholders filled in. The line is split first, so that a value never
/// becomes a word of its own.
pub fn hook_words(commit: &Commit, changed: &[&str]) -> Result<Vec<String>> {
    let words = shlex::split(commit.hook).filter(|words| !words.is_empty()).ok_or_else(|| {
        Error::config(format!("storage.commitHook cannot be split into words: {}", commit.hook))
    })?;
    let message = one_line(&commit.message, 200);
    let body: Vec<String> = commit.body.iter().map(|line| one_line(line, BODY_LINE)).collect();
    let ids: Vec<&str> = commit.thread_ids.iter().map(String::as_str).filter(|id| is_safe_id(id)).collect();
    let ids = ids.join(",");
    // Each word, and whether it was a flag before its values were filled in.
    let mut made: Vec<(bool, String)> = Vec::new();
    for word in &words {
        if word.contains("{threadId}") && ids.is_empty() {
            // Without an id, `--trailer 'Thread-Id: {threadId}'` is dropped as a whole.
            if !word.starts_with('-') && made.last().is_some_and(|(is_flag, _)| *is_flag) {
                made.pop();
            }
            continue;
        }
        let values = [("{threadId}", &*ids), ("{message}", &message), ("{count}", &commit.count.to_string())];
        made.push((word.starts_with('-'), filled(word, &values)));
    }
    let mut made: Vec<String> = made.into_iter().map(|(_, word)| word).collect();
    if is_git_commit(&words) {
        made.extend(["-m", &message].map(str::to_owned));
        if !body.is_empty() {
            made.extend(["-m".to_owned(), body.join("\n")]);
        }
        made.push("--".to_owned());
        made.extend(changed.iter().map(|dir| (*dir).to_owned()));
    }
    Ok(made)
}

fn is_git_commit(words: &[String]) -> bool {
    matches!(words, [git, commit, ..] if git == "git" && commit == "commit")
}

/// An id that cannot be mistaken for a flag and has only plain ASCII.
fn is_safe_id(id: &str) -> bool {
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
            body: Vec::new(),
            thread_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            count: 3,
        };
        hook_words(&commit, &["topics"]).unwrap()
    }

    #[test]
    fn the_default_hook_gets_threads_message_and_directories() {
        assert_eq!(
            words(DEFAULT, &["T-1", "a/b"]),
            ["git", "commit", "--trailer", "Thread-Id: T-1,a/b", "-m", "say {count} things", "--", "topics"]
        );
    }

    #[test]
    fn without_a_thread_the_argument_is_dropped_with_its_flag() {
        let bare = ["git", "commit", "-m", "say {count} things", "--", "topics"];
        assert_eq!(words(DEFAULT, &[]), bare);
        assert_eq!(words(DEFAULT, &["-x", "a b", "é", ""]), bare);
        assert_eq!(words("git commit '--trailer=T: {threadId}'", &[]), bare);
        assert_eq!(words("hook {threadId} {count}", &[]), ["hook", "3"]);
    }

    #[test]
    fn values_stay_in_their_word_and_are_not_filled_again() {
        assert_eq!(words("hook {message}:{count}", &[]), ["hook", "say {count} things:3"]);
    }

    #[test]
    fn an_open_quote_is_an_error_that_quotes_the_hook() {
        let commit = Commit {
            hook: "git 'commit",
            message: String::new(),
            body: Vec::new(),
            thread_ids: Vec::new(),
            count: 0,
        };
        assert!(hook_words(&commit, &[]).unwrap_err().message().contains("git 'commit"));
    }
}
