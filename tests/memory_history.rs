//! The notes' git history: what is committed and where, and failures of git.

use crate::support::store::{Store, note, value};
use crate::support::{Said, binary, present, set_mode, tools};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs git in `dir` without user settings.
fn git_in(dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.env_clear().env("PATH", tools()).env("HOME", "/nonexistent");
    git.arg("-C").arg(dir).args(["-c", "user.name=T", "-c", "user.email=t@example.org"]).args(args);
    let output = git.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", output.err());
    output.out()
}

fn git(store: &Store, args: &[&str]) -> String {
    git_in(&store.root(), args)
}

fn messages(store: &Store) -> Vec<String> {
    git(store, &["log", "--format=%s"]).lines().map(str::to_owned).collect()
}

/// Two notes, one of a session, not yet committed.
fn two() -> Store {
    let store = Store::with_history();
    store.put(
        "topics/one -- id__AAAAAA.md",
        note("AAAAAA", "One", "sources:\n  - {harness: amp, threadId: T-1}\n"),
    );
    store.note("BBBBBB", "Two");
    store
}

fn hook(store: &Store, hook: &str) {
    store.config(&serde_json::json!({"storage": {"commitHook": hook}}).to_string());
}

#[test]
fn the_first_write_creates_a_repository_and_each_run_makes_one_commit() {
    let store = two();
    store.out("memory-list", &[]);
    store.out("memory-read", &["BBBBBB"]);
    assert!(!store.root().join(".git").exists(), "a read committed");
    store.out("memory-update", &["AAAAAA", "--title", "Uno"]);
    assert_eq!(messages(&store), ["update: Uno"]);
    assert_eq!(
        git(&store, &["log", "--format=%an <%ae>%n%(trailers)"]),
        "Ann <ann@example.org>\nThread-Id: T-1\n\n"
    );
    // All differences are committed: the other note, and its counter.
    let files = git(&store, &["ls-files"]);
    assert_eq!(
        files,
        ".agent-memory-version\n.gitignore\ntopics/two -- id__BBBBBB.md\ntopics/uno -- id__AAAAAA.md\n"
    );
    store.out("memory-read", &["BBBBBB"]);
    store.out("memory-remove", &["AAAAAA", "BBBBBB"]);
    assert_eq!(messages(&store), ["archive: 2 notes", "update: Uno"]);
    let files = git(&store, &["ls-files", "topics", "archive"]);
    assert_eq!(files, "archive/two -- id__BBBBBB.md\narchive/uno -- id__AAAAAA.md\n");
    assert_eq!(git(&store, &["show", "HEAD:archive/two -- id__BBBBBB.md"]), store.text("BBBBBB"));
    assert_eq!(value(&store.text("BBBBBB"), "used"), Some("2"));
    // Without the last note, git has no directory to commit.
    store.out("memory-remove", &["--purge", "AAAAAA"]);
    store.out("memory-remove", &["--purge", "BBBBBB"]);
    let files = git(&store, &["ls-files"]);
    assert_eq!((files.as_str(), messages(&store).len()), (".agent-memory-version\n.gitignore\nremoved\n", 4));
    assert!(!git(&store, &["log", "-1", "--format=%b"]).contains("Thread-Id"));
    let status = git(&store, &["status", "--porcelain", "--", "topics", "archive", "inbox", ".agent-memory"]);
    assert_eq!(status, "");
}

#[test]
fn a_gitignore_that_is_gone_is_written_again() {
    let store = two();
    store.out("memory-update", &["AAAAAA", "--pin"]);
    fs::remove_file(store.root().join(".gitignore")).unwrap();
    store.out("memory-update", &["AAAAAA", "--unpin"]);
    assert_eq!(git(&store, &["status", "--porcelain"]), "");
    assert!(git(&store, &["ls-files"]).contains(".gitignore\n"));
}

#[test]
fn without_a_change_there_is_no_commit() {
    let store = two();
    store.out("memory-update", &["AAAAAA", "--pin"]);
    store.out("memory-update", &["AAAAAA", "--pin"]);
    assert_eq!(messages(&store).len(), 1);
}

#[test]
fn a_repository_in_a_parent_directory_is_not_touched() {
    let store = two();
    let home = store.sandbox.home();
    git_in(&home, &["init", "-q", "-b", "main"]);
    git_in(&home, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
    fs::write(home.join("staged"), "x").unwrap();
    git_in(&home, &["add", "staged"]);
    let before = git_in(&home, &["status", "--porcelain", "--untracked-files=no"]);
    store.out("memory-update", &["AAAAAA", "--pin"]);
    assert_eq!(messages(&store), ["update: One"]);
    assert_eq!(git_in(&home, &["log", "--format=%s"]), "theirs\n");
    assert_eq!(git_in(&home, &["status", "--porcelain", "--untracked-files=no"]), before);
    // An invalid `.git` does not make git search the parent directories.
    fs::remove_dir_all(store.root().join(".git")).unwrap();
    fs::write(store.root().join(".git"), "gitdir: nowhere\n").unwrap();
    let (code, _, err) = store.run("memory-update", &["AAAAAA", "--unpin"]);
    assert!(code == Some(0) && err.contains("not committed"), "{err}");
    assert_eq!(git_in(&home, &["log", "--format=%s"]), "theirs\n");
}

#[test]
fn the_history_is_the_owners_alone_even_where_the_store_is_open_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let store = two();
    set_mode(&store.sandbox.store(), 0o755);
    let history = store.sandbox.store().join(".git");
    let mode = || fs::metadata(&history).unwrap().permissions().mode() & 0o777;
    store.out("memory-update", &["AAAAAA", "--pin"]);
    assert_eq!(mode(), 0o700, "as the first commit made it");
    set_mode(&history, 0o755);
    store.out("memory-update", &["AAAAAA", "--unpin"]);
    assert_eq!(mode(), 0o700, "as an earlier version made it");
}

#[test]
fn what_the_user_staged_elsewhere_stays_staged() {
    let store = two();
    store.out("memory-update", &["AAAAAA", "--pin"]);
    store.put("mine.txt", "mine");
    git(&store, &["add", "mine.txt"]);
    store.out("memory-update", &["AAAAAA", "--unpin"]);
    assert_eq!(git(&store, &["diff", "--cached", "--name-only"]), "mine.txt\n");
    assert_eq!(git(&store, &["show", "--format=", "--name-only"]), "topics/one -- id__AAAAAA.md\n");
}

#[test]
fn templates_are_filled_in_without_a_shell() {
    let script = "#!/bin/sh\nfor word; do printf '<%s>' \"$word\"; done > ../../../../seen\n";
    let store = two();
    let path = store.sandbox.home().join("hook");
    store.sandbox.write(&path, script);
    set_mode(&path, 0o755);
    let seen = store.sandbox.home().parent().unwrap().join("seen");
    hook(
        &store,
        &format!(
            "{} --id={{threadId}} -n '{{count}} {{count}}' -m {{message}} '$(touch x)' ;",
            path.display()
        ),
    );
    store.out("memory-update", &["AAAAAA", "--title", "$(touch y) {count} `z`"]);
    let line = fs::read_to_string(&seen).unwrap_or_default();
    assert_eq!(line, "<--id=T-1><-n><1 1><-m><update: $(touch y) {count} `z`><$(touch x)><;>");
    store.out("memory-update", &["BBBBBB", "--pin"]);
    let line = fs::read_to_string(&seen).unwrap();
    assert_eq!(line, "<-n><1 1><-m><update: Two><$(touch x)><;>");

    hook(&store, "git commit --trailer 'Notes: {count}' --author 'Bot <bot@example.org>'");
    store.out("memory-update", &["AAAAAA", "--pin"]);
    let said = git(&store, &["log", "-1", "--format=%an|%s|%(trailers)"]);
    assert_eq!(said, "Bot|update: $(touch y) {count} `z`|Notes: 1\n\n");
}

#[test]
fn unsafe_thread_ids_are_left_out() {
    let store = Store::with_history();
    let sources = "sources:\n  - {threadId: --amend}\n  - {threadId: \"a b\"}\n  - {threadId: T-2}\n  - {threadId: T-1}\n  - {threadId: T-2}\n";
    store.put("topics/one -- id__AAAAAA.md", note("AAAAAA", "One", sources));
    store.out("memory-update", &["AAAAAA", "--pin"]);
    assert_eq!(git(&store, &["log", "--format=%(trailers)"]), "Thread-Id: T-1,T-2\n\n");
}

#[test]
fn git_hooks_signing_and_git_variables_are_ignored() {
    let store = two();
    store.out("memory-update", &["AAAAAA", "--pin"]);
    for name in ["pre-commit", "commit-msg", "post-commit", "prepare-commit-msg"] {
        let path = store.put(&format!(".git/hooks/{name}"), "#!/bin/sh\ntouch ../../../../ran\nexit 1\n");
        set_mode(&path, 0o755);
    }
    let settings = "[user]\nname = Ann\nemail = ann@example.org\n[commit]\ngpgSign = true\n[gpg]\nprogram = false\n\
                    [core]\nhooksPath = .git/hooks\nautocrlf = true\nexcludesFile = ~/ignored\n";
    store.sandbox.write(&store.sandbox.home().join(".gitconfig"), settings);
    store.sandbox.write(&store.sandbox.home().join("ignored"), "*.md\n");
    store.note("CCCCCC", "Three");
    let other = store.sandbox.work();
    git_in(&other, &["init", "-q"]);
    let mut command = store.sandbox.command("memory-update");
    command.args(["AAAAAA", "--unpin"]);
    for (variable, value) in [
        ("GIT_DIR", other.join(".git").to_str().unwrap()),
        ("GIT_WORK_TREE", other.to_str().unwrap()),
        ("GIT_INDEX_FILE", "/nowhere/index"),
        ("GIT_AUTHOR_NAME", "Mallory"),
        ("GIT_CONFIG_COUNT", "x"),
        ("GIT_TRACE", "2"),
        ("GIT_EDITOR", "false"),
    ] {
        command.env(variable, value);
    }
    let output = command.output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    assert_eq!(git(&store, &["log", "--format=%an %s"]), "Ann update: One\nAnn update: One\n");
    assert!(git(&store, &["ls-files"]).contains("three"), "an ignored note is not committed");
    assert!(!git_in(&other, &["status", "--porcelain"]).contains("topics"));
    assert!(
        !store.sandbox.home().parent().unwrap().join("ran").exists()
            && !store.sandbox.home().join("ran").exists()
    );
}

#[test]
fn a_git_failure_is_a_warning_and_the_note_is_written() {
    type Case<'a> = (&'a str, &'a dyn Fn(&Store), &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case; 4] = [
        ("no git", &|_| {}, &[("PATH", "/nonexistent")], "\"git --version\" could not be started"),
        (
            "a hook that fails",
            &|store| hook(store, "sh -c 'echo why >&2; exit 3'"),
            &[],
            "failed (exit 3): why",
        ),
        ("no such hook", &|store| hook(store, "/nonexistent/hook"), &[], "could not be started"),
        ("a lock", &|store| drop(store.put(".git/index.lock", "")), &[], "not committed: "),
    ];
    for (what, spoil, vars, why) in cases {
        let store = two();
        if what == "a lock" {
            git(&store, &["init", "-q"]);
        }
        spoil(&store);
        let mut command = store.sandbox.command("memory-update");
        let output = command.args(["AAAAAA", "--pin"]).envs(vars.iter().copied()).output().unwrap();
        let err = output.err();
        assert_eq!((output.code(), err.lines().count()), (Some(0), 1), "{what}: {err}");
        let begin = "Warning: the notes are written, but not committed: ";
        assert!(err.starts_with(begin) && err.contains(why), "{what}: {err}");
        assert_eq!(value(&store.text("AAAAAA"), "pinned"), Some("true"), "{what}");
        assert!(what != "no git" || !store.root().join(".git").exists());
    }
}

#[test]
fn commits_work_without_a_git_identity() {
    let store = two();
    // The name of the machine must not be used either.
    fs::write(store.sandbox.home().join(".gitconfig"), "[user]\nuseConfigOnly = true\n").unwrap();
    for title in ["One more", "Another"] {
        let (code, _, err) = store.run("memory-update", &["AAAAAA", "--title", title]);
        assert_eq!((code, err.as_str()), (Some(0), ""));
    }
    let log = git(&store, &["log", "--format=%an <%ae> %cn %s"]);
    let who = "agent-memory <agent-memory@localhost> agent-memory update:";
    assert_eq!(log, format!("{who} Another\n{who} One more\n"));
}

#[test]
fn the_next_commit_includes_what_a_failed_one_left_out() {
    let store = two();
    hook(&store, "false");
    let (code, _, err) = store.run("memory-update", &["AAAAAA", "--pin"]);
    assert!(code == Some(0) && err.contains("\"false\" failed (exit 1)"), "{err}");
    hook(&store, "git commit");
    store.out("memory-update", &["BBBBBB", "--pin"]);
    assert_eq!(messages(&store), ["update: Two"]);
    assert_eq!(git(&store, &["show", "HEAD:topics/one -- id__AAAAAA.md"]), store.text("AAAAAA"));
}

#[test]
fn the_history_can_be_switched_off() {
    let store = Store::new();
    store.note("AAAAAA", "One");
    store.out("memory-update", &["AAAAAA", "--pin"]);
    store.out("memory-remove", &["AAAAAA"]);
    assert!(!store.root().join(".git").exists());
}

#[test]
fn an_untrusted_configuration_changes_neither_the_store_nor_its_hook() {
    let store = Store::with_history();
    store.note("AAAAAA", "One");
    store.sandbox.file("memory.config.json", r#"{"storage": {"root": "theirs", "commitHook": "touch ran"}}"#);
    store.sandbox.file("theirs/topics/one -- id__AAAAAA.md", note("AAAAAA", "Theirs", ""));
    let (code, out, err) = store.run("memory-update", &["AAAAAA", "--summary", "s"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.contains("/theirs/") && err.contains("is not trusted"), "{out}{err}");
    let theirs = store.sandbox.work().join("theirs");
    assert!(store.root().join(".git").exists() && !theirs.join(".git").exists());
    assert!(!theirs.join("ran").exists() && !store.root().join("ran").exists());
    // Once trusted, it is like the user's own.
    let mut command = store.sandbox.command("memory-update");
    let output = command.args(["AAAAAA", "--unpin"]).env("AGENT_MEMORY_TRUST", "1").output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
}

#[test]
fn a_file_that_is_being_written_is_not_committed() {
    let store = two();
    // In a place where no writer removes it.
    store.put("topics/deep/.one -- id__AAAAAA.md.aB3dE6", "half");
    store.put("topics/deep/.mine", "mine");
    store.out("memory-update", &["AAAAAA", "--pin"]);
    let files = git(&store, &["ls-files"]);
    assert!(files.contains("deep/.mine") && !files.contains("aB3dE6"), "{files}");
    // The temporary file alone causes no commit.
    store.out("memory-update", &["AAAAAA", "--pin", "--tag=-none"]);
    store.put("topics/deep/.two -- id__BBBBBB.md.aB3dE6", "half");
    store.out("memory-remove", &["AAAAAA"]);
    store.out("memory-remove", &["AAAAAA"]);
    assert_eq!(messages(&store), ["archive: One", "update: One"]);
}

#[test]
fn an_old_lock_of_a_killed_git_is_in_no_commit_s_way_and_a_new_one_is_named() {
    let store = two();
    store.out("memory-update", &["AAAAAA", "--pin"]);
    let lock = store.put(".git/index.lock", "");
    let (code, _, err) = store.run("memory-update", &["AAAAAA", "--unpin"]);
    assert_eq!(code, Some(0));
    let named = format!("fatal: Unable to create '{}': File exists.", lock.display());
    assert!(err.contains(&named), "{err}");
    crate::support::store::age(&lock, 3600);
    store.out("memory-update", &["AAAAAA", "--pin"]);
    assert!(!lock.exists());
    assert_eq!(git(&store, &["status", "--porcelain", "--", "topics"]), "");
}

#[test]
fn the_lock_of_a_git_whose_message_a_person_is_writing_stays() {
    let store = two();
    store.out("memory-update", &["AAAAAA", "--pin"]);
    let lock = store.put(".git/index.lock", "");
    // As `git commit -a` leaves both while its editor is open.
    let message = store.put(".git/COMMIT_EDITMSG", "\n# Please enter the commit message for your changes.\n");
    for path in [&lock, &message] {
        crate::support::store::age(path, 3600);
    }
    let (code, _, err) = store.run("memory-update", &["AAAAAA", "--unpin"]);
    assert_eq!(code, Some(0));
    assert!(lock.exists() && err.contains("index.lock"), "{err}");
    // A day later nobody is writing any more.
    for path in [&lock, &message] {
        crate::support::store::age(path, 25 * 3600);
    }
    store.out("memory-update", &["AAAAAA", "--pin"]);
    assert!(!lock.exists());
}

#[test]
fn a_directory_or_a_pipe_in_the_place_of_a_proposal_stops_no_commit() {
    for make in ["mkdir", "mkfifo"] {
        let store = two();
        let proposal = store.put("proposals/p__a1B2c3.json", "{}");
        store.out("memory-update", &["AAAAAA", "--title", "Another"]);
        std::fs::remove_file(&proposal).unwrap();
        assert!(std::process::Command::new(make).arg(&proposal).status().unwrap().success());
        for title in ["A third", "A fourth"] {
            store.out("memory-update", &["AAAAAA", "--title", title]);
            assert_eq!(git(&store, &["status", "--porcelain", "--", "topics", "archive"]), "", "{make}");
        }
        assert_eq!(messages(&store).len(), 3, "{make}");
    }
}

#[test]
fn updates_at_once_are_all_committed_and_leave_no_lock() {
    let store = two();
    let start = |id: &str, n: usize| {
        let mut command = store.sandbox.std_command("memory-update");
        command
            .args([id, "--tag", &format!("+t{n}"), "--title", &format!("Title {n}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> = (0..4).flat_map(|n| [start("AAAAAA", n), start("BBBBBB", n)]).collect();
    for each in all {
        let output = each.wait_with_output().unwrap();
        assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    }
    assert_eq!(git(&store, &["status", "--porcelain", "--", "topics"]), "");
    assert!(!store.root().join(".git/index.lock").exists());
    for n in 0..4 {
        for id in ["AAAAAA", "BBBBBB"] {
            assert!(store.text(id).contains(&format!("topic__t{n}")));
        }
    }
}

#[test]
fn notes_are_written_before_git_runs() {
    let store = two();
    // The hook reads the note, and kills the program that waits for the hook.
    hook(
        &store,
        "sh -c 'grep -q \"pinned: true\" topics/one*; echo $? > ../found; kill -TERM $PPID; sleep 20'",
    );
    let mut command = Command::new(binary("memory-update"));
    let plain = store.sandbox.std_command("memory-update");
    command.env_clear().envs(present(plain.get_envs()));
    let output = command.current_dir(store.sandbox.work()).args(["AAAAAA", "--pin"]).output().unwrap();
    assert_eq!((output.code(), output.err().as_str()), (Some(143), "memory-update: ended by SIGTERM\n"));
    assert_eq!(fs::read_to_string(store.root().join("../found")).unwrap(), "0\n");
    hook(&store, "git commit");
    store.out("memory-update", &["AAAAAA", "--unpin"]);
    assert_eq!(messages(&store).len(), 1);
}
