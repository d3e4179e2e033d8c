//! `memory-sync`: what two machines have after they have met, what is sent and what is not, and what a remote may do.

use crate::support::store::{Store, name, note, value};
use crate::support::{one_in, said};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PROGRAM: &str = "memory-sync";

/// A bare repository in a folder, as on a network drive.
pub(crate) struct Nas(TempDir);

impl Nas {
    pub(crate) fn new() -> Nas {
        let nas = Nas(tempfile::tempdir().unwrap());
        git(nas.0.path(), &["init", "--quiet", "--bare", "-b", "main", "memory.git"]);
        nas
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("memory.git")
    }

    pub(crate) fn address(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    /// A machine that is set up with it, which nobody else can write to.
    pub(crate) fn machine(&self) -> Store {
        self.machine_of("own")
    }

    pub(crate) fn machine_of(&self, trust: &str) -> Store {
        let store = Store::with_history();
        store.out(PROGRAM, &["--remote", &self.address(), "--trust", trust]);
        store
    }

    /// Everything that it has ever got, as text.
    pub(crate) fn past(&self) -> String {
        git(&self.path(), &["log", "--all", "-p", "--format=%B", "--root", "-m"])
    }
}

pub(crate) fn git(dir: &Path, arguments: &[&str]) -> String {
    git_in(dir, arguments, "")
}

fn git_in(dir: &Path, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "core.hooksPath=/dev/null"]);
    command.args(arguments).current_dir(dir).env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn json(store: &Store, arguments: &[&str]) -> Value {
    serde_json::from_str(&store.out(PROGRAM, &[arguments, &["--json"]].concat())).unwrap()
}

/// Two stores hold the same, and nothing of it waits for a commit.
pub(crate) fn assert_same(one: &Store, two: &Store) {
    assert_eq!(one.tree(), two.tree());
    for store in [one, two] {
        assert_eq!(git(&store.root(), &["status", "--porcelain"]), "");
    }
    let tree = |store: &Store| git(&store.root(), &["rev-parse", "HEAD^{tree}"]);
    assert_eq!(tree(one), tree(two));
}

#[test]
fn two_machines_come_to_the_same_notes() {
    let nas = Nas::new();
    let laptop = Store::with_history();
    laptop.note("AAAAAA", "Port");
    assert_eq!(
        laptop.out(PROGRAM, &["--remote", &nas.address(), "--trust", "own"]),
        "0 notes received, 1 sent\n"
    );
    // The other one has notes already.
    let desktop = Store::with_history();
    desktop.note("BBBBBB", "Other");
    assert_eq!(
        desktop.out(PROGRAM, &["--remote", &nas.address(), "--trust", "own"]),
        "1 note received, 1 sent\n"
    );
    assert_eq!(laptop.out(PROGRAM, &[]), "1 note received, 0 sent\n");
    assert_same(&laptop, &desktop);

    for _ in 0..3 {
        laptop.out("memory-read", &["AAAAAA"]);
    }
    desktop.out("memory-read", &["AAAAAA"]);
    desktop.out("memory-update", &["AAAAAA", "--title", "Ports"]);
    laptop.out("memory-update", &["AAAAAA", "--tag", "+web"]);
    laptop.out("memory-remove", &["BBBBBB"]);
    laptop.out(PROGRAM, &[]);
    desktop.out(PROGRAM, &[]);
    assert_eq!(laptop.out(PROGRAM, &[]), "1 note received, 0 sent\n");
    assert_same(&laptop, &desktop);
    assert_eq!(
        laptop.names(),
        ["archive/other -- id__BBBBBB.md", "topics/ports -- topic__web id__AAAAAA.md"]
    );
    let text = laptop.text("AAAAAA");
    assert_eq!(value(&text, "used"), Some("4"), "{text}");
    assert_eq!(laptop.out(PROGRAM, &[]), "0 notes received, 0 sent\n");
    // Neither queue nor state has left.
    let files = git(&nas.path(), &["ls-tree", "-r", "--name-only", "-z", "main"]);
    assert!(files.contains(".gitignore") && !files.contains("inbox") && !files.contains(".agent-memory/"));
    let (code, out, err) = desktop.run("memory-doctor", &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(!out.contains("git"), "{out}");
}

#[test]
fn lines_that_clash_wait_for_review_on_both_machines() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    one.put(&format!("topics/{}", name("AAAAAA", "Port")), note("AAAAAA", "Port", "updatedAt: 1\n"));
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    let edit = |store: &Store, body: &str, time: u32| {
        let text = format!("---\nid: id__AAAAAA\ntitle: Port\nupdatedAt: {time}\n---\n\n{body}\n");
        store.put(&format!("topics/{}", name("AAAAAA", "Port")), text);
    };
    edit(&one, "It is 8081.", 5);
    edit(&two, "It is 9090.", 7);
    one.out(PROGRAM, &[]);
    let report = json(&two, &[]);
    assert_eq!(report["conflicts"].as_array().unwrap().len(), 1, "{report}");
    one.out(PROGRAM, &[]);
    assert_same(&one, &two);
    assert!(one.text("AAAAAA").contains("9090"));
    let waiting = one.out("memory-review", &[]);
    assert!(waiting.contains("conflict") && waiting.contains("8081"), "{waiting}");
    let id = report["conflicts"][0].as_str().unwrap();
    one.out("memory-review", &["--accept", id]);
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    assert_same(&one, &two);
    assert!(two.out("memory-read", &["AAAAAA"]).contains("8081"), "an accepted change travels");
    assert_eq!(two.out("memory-review", &[]), "");
}

#[test]
fn an_edit_survives_archiving_removing_its_file_and_renaming_elsewhere_but_no_deletion_for_good() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    let path = |id: &str| format!("topics/{}", name(id, "Note"));
    for id in ["AAAAAA", "BBBBBB", "CCCCCC", "DDDDDD"] {
        one.note(id, "Note");
    }
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    one.out("memory-remove", &["AAAAAA"]);
    fs::remove_file(one.root().join(path("BBBBBB"))).unwrap();
    one.out("memory-update", &["CCCCCC", "--title", "One"]);
    one.out("memory-remove", &["--purge", "DDDDDD"]);
    for id in ["AAAAAA", "BBBBBB", "DDDDDD"] {
        two.put(&path(id), note(id, "Note", "pinned: true\n"));
    }
    two.out("memory-update", &["CCCCCC", "--title", "Two"]);
    two.out(PROGRAM, &[]);
    let (code, _, err) = one.run(PROGRAM, &[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("id__BBBBBB \"Note\" was deleted on one machine and edited on another; it is kept"));
    assert!(
        err.contains("id__DDDDDD was deleted for good") && err.contains("history keeps its text"),
        "{err}"
    );
    two.out(PROGRAM, &[]);
    assert!(!one.names().iter().any(|name| name.contains("DDDDDD")), "{:?}", one.names());
    assert_same(&one, &two);
    assert!(one.text("AAAAAA").contains("pinned: true") && one.text("BBBBBB").contains("pinned: true"));
    assert!(one.names().contains(&path("AAAAAA")), "{:?}", one.names());
    assert_eq!(one.names().iter().filter(|name| name.contains("CCCCCC")).count(), 1);
}

#[test]
fn a_dry_run_says_what_would_happen_and_changes_nothing() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    one.note("AAAAAA", "One");
    one.out(PROGRAM, &[]);
    two.note("BBBBBB", "Two");
    let before = two.tree();
    let count = |dir: &Path| git(dir, &["rev-list", "--count", "main"]);
    let commits = (count(&two.root()), count(&nas.path()));
    assert_eq!(
        two.out(PROGRAM, &["--dry-run"]),
        "receive\ttopics/one -- id__AAAAAA.md\nsend\ttopics/two -- id__BBBBBB.md\n\
         1 note would be received, 1 would be sent\n"
    );
    assert_eq!((two.tree(), (count(&two.root()), count(&nas.path()))), (before, commits));
    let third = Store::with_history();
    third.note("CCCCCC", "Three");
    let report = json(&third, &["--dry-run", "--remote", &nas.address()]);
    assert_eq!(report["sent"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(third.names().len(), 1);
    assert_eq!(third.run(PROGRAM, &[]).1, "", "the remote is not set up");
}

#[test]
fn a_secret_stops_the_push_and_leaves_for_good_once_it_is_removed() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    two.note("BBBBBB", "Two");
    two.out(PROGRAM, &[]);
    let path = one.put(
        "topics/key -- id__AAAAAA.md",
        note("AAAAAA", "Key", "").replace("Body", &format!("Token {secret}, body")),
    );
    let (code, out, err) = one.run(PROGRAM, &[]);
    assert_eq!((code, out.as_str()), (Some(1), "1 note received, 0 sent\n"), "{err}");
    assert!(
        err.contains("nothing was sent: \"topics/key -- id__AAAAAA.md\" holds what looks like a secret"),
        "{err}"
    );
    assert!(!err.contains(&secret) && !nas.past().contains("Key"));
    // Again, and nothing has changed.
    assert_eq!(one.run(PROGRAM, &[]).0, Some(1));
    fs::write(&path, note("AAAAAA", "Key", "")).unwrap();
    let (code, out, err) = one.run(PROGRAM, &[]);
    assert_eq!((code, out.as_str()), (Some(0), "0 notes received, 1 sent\n"), "{err}");
    assert!(err.contains("a secret was in the past of these notes"), "{err}");
    assert!(nas.past().contains("Key") && !nas.past().contains(&secret));
    two.out(PROGRAM, &[]);
    assert_same(&one, &two);
    // What was published is never rewritten.
    assert!(nas.past().contains("Body of Two"));
}

#[test]
fn a_remote_that_is_away_is_no_error_unless_it_should_be() {
    let nas = Nas::new();
    let store = nas.machine();
    store.note("AAAAAA", "Port");
    let away = nas.0.path().join("away.git");
    fs::rename(nas.path(), &away).unwrap();
    let (code, out, err) = store.run(PROGRAM, &[]);
    assert_eq!((code, out.as_str()), (Some(0), "0 notes received, 0 sent\n"), "{err}");
    assert!(err.contains("cannot be reached") && err.contains("the next run tries again"), "{err}");
    let (code, _, err) = store.run(PROGRAM, &["--strict"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(!json(&store, &[])["unreachable"].is_null());
    fs::rename(&away, nas.path()).unwrap();
    assert_eq!(store.out(PROGRAM, &["--strict"]), "0 notes received, 1 sent\n");
    // Nobody listens there.
    let other = Store::with_history();
    let (code, _, err) = other.run(PROGRAM, &["--remote", "http://127.0.0.1:9/x.git"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("it is not set up"), "{err}");
}

/// A commit of these files on a branch of the remote.
fn commit_there(nas: &Nas, branch: &str, files: &[(&str, &str)]) {
    let clone = tempfile::tempdir().unwrap();
    git(clone.path(), &["init", "--quiet", "-b", branch]);
    for (path, text) in files {
        let path = clone.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    git(clone.path(), &["add", "--all"]);
    git(clone.path(), &["commit", "--quiet", "--allow-empty", "-m", "there"]);
    git(clone.path(), &["push", "--quiet", &nas.address(), &format!("HEAD:refs/heads/{branch}")]);
}

#[test]
fn a_remote_that_is_neither_empty_nor_a_store_gets_no_note() {
    for (branch, path, text) in [
        ("main", "src/main.rs", "fn main() {}\n"),
        ("trunk", "README.md", "# Code\n"),
        ("main", "topics/guide.md", "# A page that is no note\n"),
    ] {
        let nas = Nas::new();
        commit_there(&nas, branch, &[(path, text)]);
        let store = Store::with_history();
        store.note("AAAAAA", "Private");
        for flags in [&["--dry-run"][..], &[]] {
            let (code, out, err) =
                store.run(PROGRAM, &[&["--remote", &nas.address(), "--trust", "own"], flags].concat());
            assert_eq!((code, out.as_str()), (Some(1), ""), "{path}: {err}");
            let first = path.split('/').next().unwrap();
            assert!(err.contains("neither empty nor a store") && err.contains(first), "{path}: {err}");
        }
        assert_eq!(git(&nas.path(), &["rev-list", "--all", "--count"]), "1", "{path}");
        assert_eq!(store.names().len(), 1, "{path}");
        assert_eq!(store.run(PROGRAM, &[]).2, store.run(PROGRAM, &[]).2, "{path}");
        assert!(store.run(PROGRAM, &[]).2.contains("there is no remote"), "{path}");
    }
}

#[test]
fn machines_meet_whatever_their_branches_are_called() {
    let nas = Nas::new();
    git(&nas.path(), &["symbolic-ref", "HEAD", "refs/heads/trunk"]);
    commit_there(&nas, "code", &[("README.md", "# Code\n")]);
    let older = note("BBBBBB", "Older", "");
    commit_there(&nas, "notes", &[(&format!("topics/{}", name("BBBBBB", "Older")), &older)]);
    let machines = ["main", "master"].map(|branch| {
        let store = Store::with_history();
        store.note("AAAAAA", "First");
        git(&store.root(), &["init", "--quiet", "-b", branch]);
        store.out(PROGRAM, &["--remote", &nas.address(), "--trust", "own"]);
        store
    });
    assert_eq!(machines[0].out(PROGRAM, &[]), "0 notes received, 0 sent\n");
    assert_same(&machines[0], &machines[1]);
    assert_eq!(machines[0].names().len(), 2);
    let branches = git(&nas.path(), &["for-each-ref", "--format=%(refname:short)"]);
    assert_eq!(branches, "code\nnotes");
    // The store of before has become one that is known by its file.
    assert_eq!(git(&nas.path(), &["show", "notes:.agent-memory-version"]), "1");
}

#[test]
fn what_editors_and_clouds_leave_behind_is_not_sent() {
    let nas = Nas::new();
    let store = nas.machine();
    let note = store.note("AAAAAA", "Port");
    let name = note.file_name().unwrap().to_str().unwrap();
    for litter in [
        ".DS_Store",
        "Thumbs.db",
        "desktop.ini",
        &format!("{name}~"),
        &format!(".{name}.swp"),
        &format!(".#{name}"),
        &format!("#{name}#"),
        &format!(".~lock.{name}#"),
        &format!(".syncthing.{name}.tmp"),
    ] {
        store.put(&format!("topics/{litter}"), "x");
    }
    store.put("topics/mine.txt", "x");
    assert_eq!(store.out(PROGRAM, &[]), "0 notes received, 1 sent\n");
    let sent =
        git(&nas.path(), &["-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "main", "topics"]);
    assert_eq!(sent, format!("topics/mine.txt\ntopics/{name}"));
    assert_eq!(store.out(PROGRAM, &[]), "0 notes received, 0 sent\n");
}

#[test]
fn notes_of_a_later_version_are_not_touched() {
    let nas = Nas::new();
    let store = nas.machine();
    store.note("AAAAAA", "Mine");
    commit_there(&nas, "later", &[(".agent-memory-version", "2\n")]);
    let later = git(&nas.path(), &["rev-parse", "later"]);
    git(&nas.path(), &["update-ref", "refs/heads/main", &later]);
    let (code, out, err) = store.run(PROGRAM, &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("is of version 2") && err.contains("knows version 1"), "{err}");
    assert_eq!(git(&nas.path(), &["rev-parse", "main"]), later);
}

#[test]
fn a_machine_that_leaves_keeps_its_notes_and_says_what_stays() {
    let nas = Nas::new();
    let store = nas.machine();
    store.note("AAAAAA", "Port");
    store.out(PROGRAM, &[]);
    let there = git(&nas.path(), &["rev-parse", "main"]);
    let (code, _, err) = store.run(PROGRAM, &["--leave", "--dry-run"]);
    assert_eq!(code, Some(1), "{err}");
    // Nor while another one may still send something.
    let other = fs::File::options().write(true).open(store.root().join(".agent-memory/sync.lock")).unwrap();
    other.lock().unwrap();
    let (code, _, err) = store.run(PROGRAM, &["--leave"]);
    assert!(code == Some(1) && err.contains("is syncing this store"), "{code:?} {err}");
    drop(other);
    let left = store.out(PROGRAM, &["--leave"]);
    assert!(left.contains(&nas.address()) && left.contains("keeps what it was sent"), "{left}");
    store.note("BBBBBB", "Later");
    assert!(store.run(PROGRAM, &[]).2.contains("there is no remote"));
    assert!(store.run(PROGRAM, &["--leave"]).2.contains("nothing to leave"));
    assert_eq!((store.names().len(), git(&nas.path(), &["rev-parse", "main"])), (2, there));
    // And back.
    store.out(PROGRAM, &["--remote", &nas.address(), "--trust", "own"]);
    assert_same(&store, &nas.machine());
    store.config(&format!(r#"{{"sync": {{"remote": "{}"}}}}"#, nas.address()));
    let (code, _, err) = store.run(PROGRAM, &["--leave"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("remove it there first"), "{err}");
}

#[test]
fn a_remote_that_is_gone_for_a_week_is_trouble() {
    let nas = Nas::new();
    let store = nas.machine();
    fs::remove_dir_all(nas.path()).unwrap();
    let at = |time: &str, program: &str, flags: &[&str]| {
        let mut command = store.sandbox.command(program);
        said(command.args(flags).env("AXE_NOW", time))
    };
    const SOON: &str = "2026-03-06T00:00:00Z";
    const LATE: &str = "2026-03-08T00:00:00Z";
    assert!(!at(SOON, "memory-doctor", &[]).1.contains("synced last"));
    let (_, findings, _) = at(LATE, "memory-doctor", &[]);
    assert!(findings.contains("the notes were synced last at 2026-02-28"), "{findings}");
    let start = || {
        let hook = json!({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"});
        let mut command = store.sandbox.command("memory-recall");
        command
            .args(["--harness", "opencode"])
            .envs([("AXE_NOW", LATE), ("AGENT_MEMORY_RECALL_MS", "60000")]);
        said(command.write_stdin(hook.to_string())).1
    };
    assert!(start().contains("\nmemory: not synced since 2026-02-28: memory doctor\n"), "{}", start());
    // A timer goes on trying.
    assert_eq!(at(LATE, PROGRAM, &[]).0, Some(0));
    let (code, _, err) = at(LATE, PROGRAM, &["--strict"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("cannot be reached since 2026-02-28") && err.contains("--leave"), "{err}");
    assert!(err.contains("does not appear to be a git repository"), "{err}");
    assert_eq!(at(LATE, PROGRAM, &["--leave"]).0, Some(0));
    assert!(!start().contains("memory: "), "{}", start());
    assert!(!at(LATE, "memory-doctor", &[]).1.contains("synced last"));
}

#[test]
fn a_lock_that_a_dead_git_left_in_the_remote_is_named() {
    let nas = Nas::new();
    let store = nas.machine();
    store.note("AAAAAA", "Port");
    let lock = nas.path().join("refs/heads/main.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    let (code, _, err) = store.run(PROGRAM, &[]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("git's lock \"") && err.contains("refs/heads/main.lock\" is in the way"), "{err}");
    fs::remove_file(&lock).unwrap();
    assert_eq!(store.out(PROGRAM, &[]), "0 notes received, 1 sent\n");
}

#[test]
fn a_hook_waits_for_no_sync() {
    let nas = Nas::new();
    let store = nas.machine();
    store.note("AAAAAA", "Port");
    store.out("memory-agents-md", &["--stdout"]);
    let locks: Vec<fs::File> = ["sync.lock", "history.lock", "store.lock"]
        .iter()
        .map(|name| {
            let path = store.root().join(".agent-memory").join(name);
            let lock = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
            lock.lock().unwrap();
            lock
        })
        .collect();
    store.sandbox.file("s.jsonl", "{}\n");
    let session = store.sandbox.work().join("s.jsonl");
    let hook = |event: &str| {
        serde_json::json!({"session_id": "s", "transcript_path": session, "cwd": "/", "hook_event_name": event})
            .to_string()
    };
    // Whoever waits for one of the locks gives up after ten seconds, or, at a prompt, says nothing after a quarter of one.
    let mut capture = store.sandbox.command("memory-capture");
    let (code, out, err) = said(capture.args(["--harness", "claude-code"]).write_stdin(hook("Stop")));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("inbox/"), "{out}");
    let mut recall = store.sandbox.command("memory-recall");
    let (code, out, err) = said(recall.args(["--harness", "claude-code"]).write_stdin(hook("SessionStart")));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("AAAAAA"), "{out}");
    drop(locks);
}

#[test]
fn without_a_remote_nothing_happens() {
    let store = Store::with_history();
    let (code, out, err) = store.run(PROGRAM, &[]);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(err.contains("there is no remote") && !store.root().exists(), "{err}");
    assert_eq!(json(&store, &[])["stopped"], "no remote");
}

#[test]
fn the_remote_can_stand_in_the_configuration() {
    let nas = Nas::new();
    let store = Store::with_history();
    store.config(&format!(r#"{{"sync": {{"remote": "{}", "trust": "own"}}}}"#, nas.address()));
    store.note("AAAAAA", "Port");
    store.out("memory-update", &["AAAAAA", "--pin"]);
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(out.contains("sync.remote is set, and these notes were never synced with it"), "{out}");
    assert_eq!(store.out(PROGRAM, &[]), "0 notes received, 1 sent\n");
    let (code, out, _) = store.run("memory-doctor", &[]);
    assert!(code == Some(0) && !out.contains("sync"), "{out}");
    git(&store.root(), &["config", "merge.agent-memory.driver", "/nonexistent/memory-sync"]);
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(out.contains("git does not know how to merge notes here"), "{out}");
    store.out(PROGRAM, &[]);
    let (_, out, _) = store.run("memory-doctor", &[]);
    assert!(!out.contains("sync"), "{out}");
    assert_eq!(git(&store.root(), &["config", "remote.origin.url"]), nas.address());
    let (code, _, err) = store.run(PROGRAM, &["--remote", "/elsewhere"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("sync.remote is \""), "{err}");
}

#[test]
fn a_password_in_an_address_is_neither_kept_nor_shown() {
    let store = Store::with_history();
    for address in ["https://me:hunter22@127.0.0.1:9/x", "https://ghp_0123456789012345678901@127.0.0.1:9/x"] {
        let (code, out, err) = store.run(PROGRAM, &["--remote", address]);
        assert_eq!(code, Some(1));
        assert!(err.contains("holds a password or a key"), "{err}");
        assert!(!format!("{out}{err}").contains("hunter22") && !err.contains("ghp_"), "{err}");
        store.config(&format!(r#"{{"sync": {{"remote": "{address}"}}}}"#));
        let (code, _, err) = store.run(PROGRAM, &[]);
        assert_eq!(code, Some(2));
        assert!(err.contains("sync.remote") && !err.contains("hunter22") && !err.contains("ghp_"), "{err}");
        store.config("{}");
    }
    // One that a person gave git is used, and not printed.
    store.note("AAAAAA", "Port");
    store.out("memory-update", &["AAAAAA", "--pin"]);
    git(&store.root(), &["remote", "add", "origin", "http://me:hunter22@127.0.0.1:9/x"]);
    for arguments in [&[][..], &["--json"], &["--strict"], &["--dry-run"]] {
        let (_, out, err) = store.run(PROGRAM, arguments);
        assert!(!format!("{out}{err}").contains("hunter22"), "{out}{err}");
        assert!(format!("{out}{err}").contains("127.0.0.1:9"), "{out}{err}");
    }
}

/// A commit of these lines for `git mktree`, as the remote's branch.
fn plant(nas: &Nas, tree: &str) {
    let tree = git_in(&nas.path(), &["mktree", "--missing"], tree);
    let commit = git(&nas.path(), &["commit-tree", &tree, "-m", "x"]);
    git(&nas.path(), &["update-ref", "refs/heads/main", &commit]);
}

#[test]
fn a_hostile_remote_can_fail_and_nothing_else() {
    let nas = Nas::new();
    let dir = nas.path();
    let blob = git_in(&dir, &["hash-object", "-w", "--stdin"], "#!/bin/sh\ntouch /tmp/pwned\n");
    let big = git_in(&dir, &["hash-object", "-w", "--stdin"], &"x".repeat(9 << 20));
    let tree = |line: &str| git_in(&dir, &["mktree"], line);
    let file = tree(&format!("100644 blob {blob}\tx\n"));
    let hooks = tree(&format!("040000 tree {file}\thooks\n"));
    let deep = tree(&format!("040000 tree {hooks}\t.GIT\n"));
    let large = tree(&format!("100644 blob {big}\tx -- id__AAAAAA.md\n"));
    let link = git_in(&dir, &["hash-object", "-w", "--stdin"], "/etc");
    let links = tree(&format!("120000 blob {link}\tl\n"));
    let store = Store::with_history();
    store.note("BBBBBB", "Mine");
    store.out(PROGRAM, &["--remote", &Nas::new().address(), "--trust", "own"]);
    let before = store.tree();
    for (what, line) in [
        ("..", format!("040000 tree {file}\t..\n")),
        (".git", format!("040000 tree {hooks}\t.git\n")),
        (".GIT below", format!("040000 tree {deep}\ttopics\n")),
        ("link", format!("040000 tree {links}\ttopics\n")),
        ("submodule", format!("160000 commit {}\tmodule\n", "1".repeat(40))),
        ("big", format!("040000 tree {large}\ttopics\n")),
        ("queue", format!("040000 tree {file}\tinbox\n")),
        ("state", format!("040000 tree {file}\t.agent-memory\n")),
        ("control", format!("100644 blob {blob}\ta\u{1b}[2Jb\n")),
        ("modules", format!("100644 blob {blob}\t.gitmodules\n")),
    ] {
        plant(&nas, &line);
        let (code, _, err) = store.run(PROGRAM, &["--remote", &nas.address()]);
        assert_eq!(code, Some(1), "{what}: {err}");
        assert!(err.starts_with("memory-sync: \"") && !err.contains('\u{1b}'), "{what}: {err}");
        assert_eq!(store.tree(), before, "{what}");
    }
    assert_eq!(git(&store.root(), &["status", "--porcelain"]), "");
    let top: Vec<_> = fs::read_dir(store.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(top.iter().all(|name| name != "module" && name != ".gitmodules"), "{top:?}");
    // It takes no history of its own.
    git(&dir, &["update-ref", "-d", "refs/heads/main"]);
    fs::write(dir.join("hooks/pre-receive"), "#!/bin/sh\ntouch \"$HOME/pwned\"\n").unwrap();
    crate::support::set_mode(&dir.join("hooks/pre-receive"), 0o755);
    git(&dir, &["config", "core.fsmonitor", "touch $HOME/pwned"]);
    git(&dir, &["config", "core.alternateRefsCommand", "touch $HOME/pwned"]);
    store.out(PROGRAM, &["--remote", &nas.address(), "--trust", "own"]);
    assert!(!store.sandbox.home().join("pwned").exists(), "a folder's hook was run");
}

#[test]
fn attributes_of_others_filter_nothing() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    git(&two.root(), &["config", "filter.evil.clean", "touch pwned; cat"]);
    git(&two.root(), &["config", "filter.evil.smudge", "touch pwned; cat"]);
    one.note("AAAAAA", "Port");
    one.put(".gitattributes", "* filter=evil text eol=crlf merge=union ident\n");
    git(&one.root(), &["add", ".gitattributes"]);
    git(&one.root(), &["commit", "--quiet", "-m", "x"]);
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    assert!(two.root().join(".gitattributes").exists());
    two.out("memory-update", &["AAAAAA", "--pin"]);
    one.out("memory-update", &["AAAAAA", "--tag", "+web"]);
    two.out(PROGRAM, &[]);
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    assert_same(&one, &two);
    assert!(!two.root().join("pwned").exists() && !two.text("AAAAAA").contains('\r'));
}

#[test]
fn a_gitignore_and_attributes_of_others_hide_nothing() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    for (path, text) in
        [(".gitignore", "*\n"), ("topics/.gitignore", "*\n"), ("topics/.gitattributes", "* -diff\n")]
    {
        one.put(path, text);
        git(&one.root(), &["add", "--force", path]);
    }
    git(&one.root(), &["commit", "--quiet", "-m", "x"]);
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    two.note("AAAAAA", "Port");
    two.out("memory-update", &["AAAAAA", "--pin"]);
    assert_eq!(git(&two.root(), &["log", "--format=%s", "-1"]), "update: Port");
    two.note("BBBBBB", "Other");
    assert_eq!(two.out(PROGRAM, &[]), "0 notes received, 2 sent\n");
    assert_eq!(one.out(PROGRAM, &[]), "2 notes received, 0 sent\n");
    assert_same(&one, &two);
    let (_, out, _) = two.run("memory-doctor", &[]);
    for what in
        ["\t.gitignore\thides notes from git", "topics/.gitattributes", "tells git how to treat notes"]
    {
        assert!(out.contains(what), "{what}: {out}");
    }
}

#[test]
fn a_pull_by_hand_merges_notes_and_what_it_cannot_memory_sync_finishes() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    one.note("AAAAAA", "Port");
    one.note("BBBBBB", "Other");
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    for _ in 0..2 {
        one.out("memory-read", &["AAAAAA"]);
    }
    one.out("memory-update", &["BBBBBB", "--pin"]);
    one.out(PROGRAM, &[]);
    two.out("memory-read", &["AAAAAA"]);
    two.out("memory-update", &["BBBBBB", "--tier", "cold"]);
    let pull = ["pull", "--quiet", "--no-rebase", "--no-edit"];
    git(&two.root(), &pull);
    let text = two.text("AAAAAA");
    assert_eq!(value(&text, "used"), Some("3"), "{text}");
    two.out(PROGRAM, &[]);
    one.out(PROGRAM, &[]);
    assert_same(&one, &two);

    // Renamed on both sides; archived against edited.
    one.out("memory-update", &["AAAAAA", "--title", "One"]);
    one.out("memory-remove", &["BBBBBB"]);
    one.out(PROGRAM, &[]);
    two.out("memory-update", &["AAAAAA", "--title", "Two"]);
    let body = two.sandbox.work().join("body");
    fs::write(&body, "Another body.\n").unwrap();
    two.out("memory-update", &["BBBBBB", "--body", body.to_str().unwrap()]);
    let mut command = Command::new("git");
    let output = command.args(["-c", "user.name=x", "-c", "user.email=x@x"]).args(pull);
    assert!(!output.current_dir(two.root()).output().unwrap().status.success());
    let (_, out, _) = two.run("memory-doctor", &[]);
    assert!(out.contains("memory-sync"), "{out}");
    // Half of it was done by hand.
    let by_hand = two.put("topics/two -- id__AAAAAA.md", note("AAAAAA", "By hand", ""));
    git(&two.root(), &["add", by_hand.to_str().unwrap()]);
    let (code, out, err) = two.run(PROGRAM, &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    let kept = two.root().join(".agent-memory/unfinished-merge/topics/two -- id__AAAAAA.md");
    assert!(
        fs::read_to_string(kept).unwrap().contains("By hand") && err.contains("unfinished-merge"),
        "{err}"
    );
    one.out(PROGRAM, &[]);
    assert_same(&one, &two);
    assert!(one.text("BBBBBB").contains("Another body."));
    assert_eq!(one.names().iter().filter(|name| name.contains("AAAAAA")).count(), 1);
    assert!(!one.names().iter().any(|name| one.text(name).contains("<<<<<<<")));
}

#[test]
fn what_is_in_the_way_is_not_overwritten() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    one.put("README.md", "theirs\n");
    git(&one.root(), &["add", "README.md"]);
    git(&one.root(), &["commit", "--quiet", "-m", "x"]);
    one.out(PROGRAM, &[]);
    two.put("README.md", "mine\n");
    let (code, _, err) = two.run(PROGRAM, &[]);
    assert_eq!(code, Some(1));
    assert!(err.contains("\"README.md\" has changed meanwhile, or is in the way"), "{err}");
    assert_eq!(fs::read_to_string(two.root().join("README.md")).unwrap(), "mine\n");
    fs::remove_file(two.root().join("README.md")).unwrap();
    two.out(PROGRAM, &[]);
    assert_same(&one, &two);
}

/// Twelve notes that two machines have.
fn a_dozen() -> (Nas, Store, Store) {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    for n in 1..10 {
        one.note(&format!("AAAAA{n}"), &format!("Note {n}"));
    }
    for id in ["BBBBBB", "CCCCCC", "DDDDDD"] {
        one.note(id, id);
    }
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    (nas, one, two)
}

/// Deletes nine of them without any program.
fn lose(store: &Store) {
    for n in 1..10 {
        fs::remove_file(store.topics().join(name(&format!("AAAAA{n}"), &format!("Note {n}")))).unwrap();
    }
}

#[test]
fn notes_that_many_are_gone_go_nowhere_unless_somebody_says_so() {
    let (nas, one, two) = a_dozen();
    lose(&one);
    let (code, out, err) = one.run(PROGRAM, &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        err.contains("9 of 12 notes are gone on this machine, and nobody has removed them by name"),
        "{err}"
    );
    assert!(err.contains("--missing keep") && err.contains("topics/note-1 -- id__AAAAA1.md"), "{err}");
    assert_eq!(one.run(PROGRAM, &["--dry-run"]).0, Some(1), "a dry run says it, too");
    assert_eq!(two.out(PROGRAM, &[]), "0 notes received, 0 sent\n", "nothing was sent");
    assert_eq!(one.out(PROGRAM, &["--missing", "keep"]), "9 notes received, 0 sent\n");
    assert_eq!(one.names().len(), 12);
    two.out(PROGRAM, &[]);
    assert_same(&one, &two);
    // Said the other way, it is the same for every machine, and is asked once.
    lose(&one);
    let three = nas.machine();
    assert_eq!(one.out(PROGRAM, &["--missing", "remove"]), "0 notes received, 9 sent\n");
    assert_eq!(two.out(PROGRAM, &[]), "9 notes received, 0 sent\n");
    three.out(PROGRAM, &[]);
    assert_eq!(two.names().len(), 3);
    assert_same(&one, &two);
    assert_same(&one, &three);
    let (code, _, err) = one.run(PROGRAM, &["--missing", "both"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("\"both\" is neither keep nor remove"), "{err}");
}

#[test]
fn what_another_machine_has_lost_stays_here() {
    for said in ["keep", "remove"] {
        let (_nas, one, two) = a_dozen();
        lose(&one);
        // Whatever sent that, it asked nobody.
        git(&one.root(), &["commit", "--quiet", "-am", "sync: changes of this machine"]);
        git(&one.root(), &["push", "--quiet", "origin", "HEAD:main"]);
        two.out("memory-update", &["BBBBBB", "--tag", "+here"]);
        let (code, out, err) = two.run(PROGRAM, &[]);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("9 of 12 notes are gone in \"") && err.contains("nothing was merged"), "{err}");
        assert_eq!((two.names().len(), one.names().len()), (12, 3));
        two.out(PROGRAM, &["--missing", said]);
        one.out(PROGRAM, &[]);
        assert_eq!(one.names().len(), if said == "keep" { 12 } else { 3 });
        assert_same(&one, &two);
    }
}

#[test]
fn what_both_have_lost_comes_back_and_a_renamed_note_is_not_lost() {
    let (_nas, one, two) = a_dozen();
    // Names of a person's own, without an id.
    for n in 1..10 {
        let path = one.topics().join(name(&format!("AAAAA{n}"), &format!("Note {n}")));
        fs::rename(&path, path.with_file_name(format!("mine {n}.md"))).unwrap();
    }
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    assert_eq!(one.run("memory-doctor", &["--fix"]).0, Some(0));
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    assert_same(&one, &two);
    // Both lose all of it, one has sent that already, whatever it was.
    lose(&one);
    git(&one.root(), &["commit", "--quiet", "-am", "sync: changes of this machine"]);
    git(&one.root(), &["push", "--quiet", "origin", "HEAD:main"]);
    lose(&two);
    let (code, _, err) = two.run(PROGRAM, &[]);
    assert_eq!(code, Some(1));
    assert!(err.contains("9 of 12 notes are gone on this machine and in \""), "{err}");
    assert_eq!(git(&two.root(), &["status", "--porcelain"]).lines().count(), 9, "nothing is committed");
    two.out(PROGRAM, &["--missing", "keep"]);
    one.out(PROGRAM, &[]);
    assert_eq!(one.names().len(), 12);
    assert_same(&one, &two);
}

#[test]
fn what_was_removed_by_name_goes_everywhere() {
    let (_nas, one, two) = a_dozen();
    let ids: Vec<String> = (1..10).map(|n| format!("AAAAA{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    one.out("memory-remove", &[&["--purge"], &ids[..]].concat());
    let removed = fs::read_to_string(one.root().join("removed")).unwrap();
    assert!(removed.starts_with("id__AAAAA1 purged\nid__AAAAA2 purged\n"), "{removed}");
    two.out("memory-update", &["BBBBBB", "--tag", "+here"]);
    assert_eq!(one.out(PROGRAM, &[]), "0 notes received, 9 sent\n");
    assert_eq!(two.out(PROGRAM, &[]), "9 notes received, 1 sent\n");
    one.out(PROGRAM, &[]);
    assert_eq!(two.names().len(), 3);
    assert_same(&one, &two);
    // Whatever the commit's command is, and if both have removed some.
    for store in [&one, &two] {
        store.config(r#"{"storage": {"commitHook": "git -c user.name=me commit -m {message}"}}"#);
    }
    for (store, first) in [(&one, 'E'), (&two, 'F')] {
        let ids: Vec<String> = (1..8).map(|n| format!("{first}AAAA{n}")).collect();
        ids.iter().for_each(|id| drop(store.note(id, "Note")));
        one.out(PROGRAM, &[]);
        two.out(PROGRAM, &[]);
        one.out(PROGRAM, &[]);
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        store.out("memory-remove", &[&["--purge"], &ids[..]].concat());
    }
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    one.out(PROGRAM, &[]);
    assert_eq!(one.names().len(), 3);
    assert_same(&one, &two);
    // A few that a person has deleted by hand go, too, and then they have a name.
    fs::remove_file(one.topics().join(name("CCCCCC", "CCCCCC"))).unwrap();
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    assert_eq!(two.names().len(), 2);
    assert!(fs::read_to_string(two.root().join("removed")).unwrap().contains("id__CCCCCC\n"));
    // Unless they are to come back: then every one does.
    fs::remove_file(one.topics().join(name("DDDDDD", "DDDDDD"))).unwrap();
    assert_eq!(one.out(PROGRAM, &["--missing", "keep"]), "1 note received, 0 sent\n");
    assert_same(&one, &two);
}

/// A git that kills the program that runs it, the `number`th time.
pub(crate) fn deadly_git(dir: &Path, number: usize) -> String {
    let script = format!(
        "#!/bin/sh\necho x >> {0}/count\n\
         if [ \"$(wc -l < {0}/count)\" -eq {number} ]; then kill -9 \"$PPID\"; fi\nexec {1} \"$@\"\n",
        dir.display(),
        which("git").display()
    );
    let _ = fs::remove_file(dir.join("count"));
    fs::write(dir.join("git"), script).unwrap();
    crate::support::set_mode(&dir.join("git"), 0o755);
    format!("{}:{}", dir.display(), crate::support::tools())
}

fn which(program: &str) -> PathBuf {
    let path = crate::support::tools();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.is_file()).unwrap()
}

#[test]
fn killed_at_any_git_command_a_sync_is_carried_on_and_counts_nothing_twice() {
    let nas = Nas::new();
    let (one, two) = (nas.machine(), nas.machine());
    let dir = tempfile::tempdir().unwrap();
    one.note("AAAAAA", "Port");
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    let mut reads = 0;
    let mut killed = 0;
    // Odd and even ones.
    for number in (1..80).step_by(4 * one_in(2) - 1) {
        for store in [&one, &two] {
            store.out("memory-read", &["AAAAAA"]);
            reads += 1;
        }
        one.out(PROGRAM, &[]);
        let path = deadly_git(dir.path(), number);
        let (code, ..) = said(two.sandbox.command(PROGRAM).env("PATH", path));
        if code.is_some() {
            break;
        }
        killed += 1;
        // The next one may be any program that takes the lock or commits.
        if number % 2 == 0 {
            two.out("memory-read", &["AAAAAA"]);
            reads += 1;
            two.out("memory-update", &["AAAAAA", "--tag", &format!("+t{number}")]);
        }
        let (code, _, err) = two.run(PROGRAM, &[]);
        assert_eq!(code, Some(0), "killed at {number}: {err}");
        one.out(PROGRAM, &[]);
        assert_same(&one, &two);
        let text = one.text("AAAAAA");
        assert_eq!(value(&text, "used"), Some(reads.to_string().as_str()), "killed at {number}: {text}");
    }
    assert!(killed * one_in(2) > 7, "{killed}");
}

#[test]
fn machines_that_sync_at_the_same_time_lose_nothing() {
    let nas = Nas::new();
    let machines: Vec<Store> = (0..3).map(|_| nas.machine()).collect();
    for round in 0..2 {
        std::thread::scope(|scope| {
            for (number, store) in machines.iter().enumerate() {
                scope.spawn(move || {
                    let id = format!("{}{}AAAA", number + 1, round + 1);
                    store.note(&id, "Note");
                    let (code, _, err) = store.run(PROGRAM, &[]);
                    assert_eq!(code, Some(0), "{err}");
                });
            }
        });
    }
    machines.iter().for_each(|store| drop(store.out(PROGRAM, &[])));
    machines.iter().for_each(|store| drop(store.out(PROGRAM, &[])));
    assert_eq!(machines[0].names().len(), 6, "{:?}", machines[0].names());
    assert_same(&machines[0], &machines[1]);
    assert_same(&machines[0], &machines[2]);
}

#[test]
fn machines_that_have_merged_crosswise_count_each_read_once() {
    let (nas, x, y) = (Nas::new(), Nas::new(), Nas::new());
    let (one, two) = (nas.machine(), nas.machine());
    one.note("AAAAAA", "Port");
    one.out(PROGRAM, &[]);
    two.out(PROGRAM, &[]);
    one.out("memory-read", &["AAAAAA"]);
    for _ in 0..3 {
        two.out("memory-read", &["AAAAAA"]);
    }
    one.out("memory-update", &["AAAAAA", "--tag", "+one"]);
    two.out("memory-update", &["AAAAAA", "--tag", "+two"]);
    // Each gets what the other had before its own merge.
    one.out(PROGRAM, &["--remote", &y.address(), "--trust", "own"]);
    two.out(PROGRAM, &["--remote", &x.address(), "--trust", "own"]);
    one.out(PROGRAM, &["--remote", &x.address(), "--trust", "own"]);
    let mut command = two.sandbox.command(PROGRAM);
    assert_eq!(said(command.args(["--remote", &y.address(), "--trust", "own"])).0, Some(0));
    let bases = git(&one.root(), &["fetch", "--quiet", &y.address(), "main"]);
    assert_eq!(bases, "");
    let bases = git(&one.root(), &["merge-base", "--all", "HEAD", "FETCH_HEAD"]);
    assert_eq!(bases.lines().count(), 2, "they have merged crosswise");
    one.out(PROGRAM, &["--remote", &y.address(), "--trust", "own"]);
    two.out(PROGRAM, &["--remote", &y.address(), "--trust", "own"]);
    assert_same(&one, &two);
    let text = one.text("AAAAAA");
    assert_eq!(value(&text, "used"), Some("4"), "{text}");
    assert_eq!(value(&text, "tags"), Some("[topic__one, topic__two]"));
}
