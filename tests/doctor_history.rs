//! `memory-doctor` on a store that keeps its history in git.

use crate::memory_doctor::{findings, only};
use crate::support::store::{HOUR, Store, age};
use crate::support::{Said, said};
use std::fs;
use std::process::Command;

fn git(store: &Store, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(store.root()).env("HOME", store.sandbox.home());
    let output = command.output().unwrap();
    output.out() + &output.err()
}

fn committed() -> Store {
    let store = Store::with_history();
    store.note("AAAAAA", "one");
    store.out("memory-update", &["AAAAAA", "--summary", "s"]);
    assert_eq!(findings(&store), [[""; 4]; 0]);
    store
}

fn told(store: &Store) -> String {
    let root = format!("warning {} ", store.root().display());
    let (line, mend) = only(store);
    assert!(!mend.is_empty());
    line.strip_prefix(&root).unwrap_or(&line).to_owned()
}

#[test]
fn a_missing_repository_is_reported_once_the_notes_are_old() {
    let store = Store::with_history();
    let path = store.note("AAAAAA", "one");
    assert_eq!(findings(&store), [[""; 4]; 0]);
    age(&path, 72 * HOUR);
    assert!(told(&store).starts_with("is not a git repository yet, so no change "));
    fs::write(store.root().join(".git"), "x").unwrap();
    assert!(told(&store).contains("\".git\" exists but is not a repository"));
}

#[test]
fn changes_that_are_uncommitted_for_days_are_reported() {
    let store = committed();
    let path = store.note("BBBBBB", "two");
    assert_eq!(findings(&store), [[""; 4]; 0], "the next commit takes it along");
    age(&path, 72 * HOUR);
    assert_eq!(told(&store), "1 file differs from the last commit, for more than two days");
}

#[test]
fn files_that_are_gone_are_brought_back_and_not_committed() {
    let store = committed();
    let path = store.note("BBBBBB", "two");
    git(&store, &["add", "topics"]);
    git(&store, &["commit", "--quiet", "-m", "two"]);
    fs::rename(&path, path.with_file_name("zwei -- id__BBBBBB.md")).unwrap();
    assert!(!store.run("memory-doctor", &[]).1.contains("gone"), "renamed by hand");
    fs::rename(path.with_file_name("zwei -- id__BBBBBB.md"), &path).unwrap();
    let before = store.tree();
    for file in before.keys() {
        fs::remove_file(store.root().join(file)).unwrap();
    }
    // One is to be committed, too, as a commit leaves it that has failed.
    git(&store, &["add", "--all", before.keys().next().unwrap()]);
    let gone = findings(&store);
    assert_eq!(gone.len(), 2, "{gone:?}");
    for [_, _, what, mend] in gone.iter().map(|row| <&[String; 4]>::try_from(&row[..]).unwrap()) {
        assert!(what.starts_with("is gone since the last commit, and no memory program"), "{what}");
        let (_, mend) = mend.split_once(": ").unwrap();
        let done = Command::new("sh").arg("-c").arg(mend).current_dir(store.root()).status();
        assert!(done.unwrap().success(), "{mend}");
    }
    assert_eq!(store.tree(), before);
}

#[test]
fn what_prevents_the_next_commit_is_reported() {
    let store = committed();
    let lock = store.put(".git/index.lock", "");
    assert_eq!(findings(&store), [[""; 4]; 0], "git is at work for a moment");
    age(&lock, HOUR);
    let what = format!("git's lock \"{}\" was left behind, so no commit can be made", lock.display());
    assert_eq!(told(&store), format!("warning .git/index.lock {what}"));
    let head = store.put(".git/HEAD.lock", "");
    let reference = store.put(".git/refs/heads/main.lock", "");
    age(&head, HOUR);
    age(&reference, HOUR);
    let (_, out, _) = store.run("memory-doctor", &["--fix"]);
    assert_eq!(out.matches("was left behind, so no commit could be made").count(), 3, "{out}");
    assert!(
        [&lock, &head, &reference].iter().all(|lock| out.contains(lock.to_str().unwrap()) && !lock.exists())
    );

    let identity = store.sandbox.home().join(".gitconfig");
    fs::write(&identity, "[user]\nuseConfigOnly = true\n").unwrap();
    assert!(told(&store).starts_with("git has no user.name, so commits are made as \"agent-memory\": "));
    fs::write(&identity, "[user]\nname = Ann\nemail = ann@example.org\n").unwrap();

    store.config(r#"{"storage": {"commitHook": "no-such-hook {message}"}}"#);
    assert_eq!(told(&store), "\"no-such-hook\" is not on PATH: changes to notes are not committed");
    store.config("{}");
    let (code, out, _) = said(store.sandbox.command("memory-doctor").env("PATH", "/nowhere"));
    assert_eq!(code, Some(0));
    assert!(out.contains("\t\"git\" is not on PATH: "), "{out}");
}

#[test]
fn an_unfinished_merge_and_its_conflicts_are_reported() {
    let store = committed();
    let path = store.topics().join("one -- id__AAAAAA.md");
    let text = fs::read_to_string(&path).unwrap();
    git(&store, &["checkout", "-q", "-b", "other"]);
    fs::write(&path, text.clone() + "theirs\n").unwrap();
    git(&store, &["commit", "-qam", "theirs"]);
    git(&store, &["checkout", "-q", "-"]);
    fs::write(&path, text + "ours\n").unwrap();
    git(&store, &["commit", "-qam", "ours"]);
    // As where memory-sync is not installed.
    git(&store, &["-c", "merge.agent-memory.driver=false", "merge", "other"]);
    let all = findings(&store);
    let lines: Vec<String> = all.iter().map(|row| row[..3].join(" ")).collect();
    assert_eq!(
        lines,
        [
            "error topics/one -- id__AAAAAA.md a merge left two versions in it".to_owned(),
            format!(
                "warning {} a merge is in progress: nothing is committed until it ends",
                store.root().display()
            ),
        ]
    );
}
