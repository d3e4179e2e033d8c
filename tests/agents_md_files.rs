//! The targets of `memory-agents-md`: what is kept of a file, and which files are refused.

use crate::agents_md::{END, START, aim, put};
use crate::support::store::{Store, names};
use crate::support::{Sandbox, is_root, mode, said, set_mode, symlink};
use serde_json::json;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const PROGRAM: &str = "memory-agents-md";

fn store() -> Store {
    let store = Store::new();
    put(&store, "AAAAAA", "Hot", "tier: hot\n", "Whole.\n");
    store
}

/// Refreshes this file: exit code, and stderr without the program's name.
fn refresh(store: &Store, file: &str) -> (Option<i32>, String) {
    let (code, _, err) = store.run(PROGRAM, &["--target", file]);
    (code, err.strip_prefix("memory-agents-md: ").unwrap_or(&err).trim_end().to_owned())
}

/// Expects an error with `why` and the file's name, and no change.
fn refused(store: &Store, file: &str, why: &str) {
    let path = store.sandbox.work().join(file);
    let look = || {
        (
            // Reading a FIFO would block.
            path.is_file().then(|| fs::read(&path).ok()),
            fs::symlink_metadata(&path).map(|found| (found.ino(), found.mtime_nsec())).ok(),
        )
    };
    let before = (look(), names(path.parent().unwrap()));
    let (code, err) = refresh(store, file);
    assert_eq!(code, Some(1), "{file}: {err}");
    assert!(err.contains(why) && err.contains(file) && err.lines().count() == 1, "{file}: {err}");
    assert_eq!((look(), names(path.parent().unwrap())), before, "{file}");
}

#[test]
fn no_byte_outside_the_markers_changes() {
    const PARTS: [&[u8]; 16] = [
        b"\n",
        b"\r\n",
        b"\r",
        b"# Rules\n",
        b"```\n",
        b"~~~\n",
        b"```sh\r\n",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\0",
        b" ",
        b"\t",
        "ü🦀".as_bytes(),
        b"<!-- mine -->\n",
        b"<!-- agent-memory:start --> in prose\n",
        b"- a\n",
    ];
    let store = store();
    let mut state = 3_u64;
    let mut number = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    // Many files in one run, as starting the program is what takes time.
    for round in 0..4 {
        let olds: Vec<(String, Vec<u8>)> = (0..60)
            .map(|n| {
                let old = (0..number(12)).flat_map(|_| PARTS[number(PARTS.len())].to_vec()).collect();
                (format!("{round}-{n}.md"), old)
            })
            .collect();
        let path = |name: &str| store.sandbox.work().join(name);
        for (name, old) in &olds {
            fs::write(path(name), old).unwrap();
        }
        let all: Vec<_> = olds.iter().map(|(name, _)| path(name)).collect();
        aim(&store, json!(all), json!({}));
        put(&store, "AAAAAA", "Hot", "tier: hot\n", &format!("Round {round}.\n"));
        store.out(PROGRAM, &[]);
        let first: Vec<_> = all.iter().map(|path| fs::read(path).unwrap()).collect();
        for ((_, old), new) in olds.iter().zip(&first) {
            assert!(new.starts_with(old), "{old:?} → {new:?}");
        }
        assert_eq!(store.out(PROGRAM, &[]).matches("unchanged\t").count(), all.len());
        // The owner adds text after the section, and the section changes.
        for (path, new) in all.iter().zip(&first) {
            fs::write(path, [new, b"more\r\nlast".as_slice()].concat()).unwrap();
        }
        put(&store, "AAAAAA", "Hot", "tier: hot\n", &format!("Again {round}.\n"));
        let out = store.out(PROGRAM, &[]);
        assert_eq!(out.matches("written\t").count(), all.len(), "{out}");
        for ((_, old), path) in olds.iter().zip(&all) {
            let new = fs::read(path).unwrap();
            assert!(new.starts_with(old) && new.ends_with(b"more\r\nlast"), "{old:?} → {new:?}");
            let text = String::from_utf8_lossy(&new).replace("\r\n", "\n");
            assert_eq!(text.matches(&format!("\n{END}")).count(), 1, "{old:?} → {new:?}");
        }
    }
}

#[test]
fn broken_markers_are_reported_with_line_numbers_and_other_targets_are_refreshed() {
    let store = store();
    let (s, e) = (START, END);
    for (text, why) in [
        (format!("a\n{s}\nb\n"), "its markers are broken: the start on line 2 has no end; keep one section"),
        (format!("a\n\n{e}\n"), "the end on line 3 has no start before it"),
        (
            format!("{s}\n{s}\n{e}\n"),
            "the start on line 1 is followed by another on line 2 before it has an end",
        ),
        (
            format!("{e}\r\n{s}\r\n"),
            "the end on line 1 has no start before it; the start on line 2 has no end",
        ),
        (format!("{s}\n{e}\n{s}\n{e}"), "there are 2 sections, on lines 1 to 2 and on lines 3 to 4"),
        (format!("{s}\n{s}\n{e}\n{e}\n"), "the end on line 4 has no start before it"),
    ] {
        store.sandbox.file("A.md", &text);
        refused(&store, "A.md", why);
        let (code, out, err) = store.run(PROGRAM, &["--check", "--target", "A.md"]);
        assert!(code == Some(1) && out.starts_with("failed\t") && err.contains(why), "{err}");
    }
    store.sandbox.file("C.md", "x");
    let targets = ["A.md", "new/B.md", "a/b/c.md", "C.md"].map(|name| store.sandbox.work().join(name));
    aim(&store, json!(targets), json!({}));
    let (code, out, err) = store.run(PROGRAM, &[]);
    let words: Vec<&str> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!((code, words, err.lines().count()), (Some(1), vec!["failed", "made", "failed", "written"], 2));
    let (code, out, err) = store.run(PROGRAM, &["--json"]);
    assert_eq!(code, Some(1));
    let first: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert_eq!(first["status"], "failed");
    assert!(first["error"].as_str().unwrap().contains("line 4"), "{first}");
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(err.lines().last().unwrap()).unwrap()["exit_code"],
        1
    );
}

#[test]
fn markers_in_a_code_fence_are_ignored() {
    let store = store();
    let text = format!("How it looks:\n\n```markdown\n{START}\n{END}\n```\n");
    store.sandbox.file("A.md", &text);
    assert_eq!(refresh(&store, "A.md"), (Some(0), String::new()));
    let new = fs::read_to_string(store.sandbox.work().join("A.md")).unwrap();
    assert!(new.starts_with(&format!("{text}\n{START}\n## Memory\n")), "{new}");
    assert_eq!(refresh(&store, "A.md"), (Some(0), String::new()));
    assert_eq!(fs::read_to_string(store.sandbox.work().join("A.md")).unwrap(), new);
}

#[test]
fn mode_and_owner_are_kept_and_a_new_file_is_readable() {
    let store = store();
    store.sandbox.file("A.md", "x");
    let path = store.sandbox.work().join("A.md");
    set_mode(&path, 0o640);
    let owner = |path: &Path| fs::metadata(path).map(|found| (found.uid(), found.gid())).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12), Some(34)).unwrap();
    }
    let before = owner(&path);
    assert_eq!(refresh(&store, "A.md").0, Some(0));
    assert_eq!((mode(&path), owner(&path)), (0o640, before));
    assert_eq!(refresh(&store, "new/A.md").0, Some(0));
    assert_eq!(mode(&store.sandbox.work().join("new/A.md")) & 0o600, 0o600);
}

#[test]
fn the_target_of_a_symlink_is_replaced_not_the_link() {
    let store = store();
    let work = store.sandbox.work();
    store.sandbox.file("real/A.md", "x\n");
    symlink("real/A.md", work.join("one.md"));
    symlink("one.md", work.join("two.md"));
    assert_eq!(refresh(&store, "two.md"), (Some(0), String::new()));
    assert!(work.join("two.md").is_symlink() && work.join("one.md").is_symlink());
    assert!(fs::read_to_string(work.join("real/A.md")).unwrap().starts_with(&format!("x\n\n{START}\n")));
    assert_eq!(
        (names(&work.join("real")), names(&work)),
        (vec!["A.md".to_owned()], ["one.md", "real", "two.md"].map(str::to_owned).to_vec())
    );
    symlink("nowhere.md", work.join("dangling.md"));
    refused(&store, "dangling.md", "a symlink that leads to no file; make the file, or remove the link");
    symlink("loop.md", work.join("loop.md"));
    refused(&store, "loop.md", "Too many levels of symbolic links");
    // Two targets that are the same file, for different notes.
    aim(&store, json!([work.join("two.md"), {"path": work.join("real/A.md"), "repo": "h/o/r"}]), json!({}));
    let (code, out, err) = store.run(PROGRAM, &[]);
    assert_eq!((code, out.starts_with("unchanged\t")), (Some(1), true), "{out}");
    assert!(err.contains("is the same file as the target"), "{err}");
    aim(&store, json!([work.join("two.md"), work.join("real/A.md")]), json!({}));
    assert_eq!(store.out(PROGRAM, &[]).matches("unchanged\t").count(), 2);
}

#[test]
fn a_target_that_cannot_be_written_is_refused() {
    let store = store();
    let work = store.sandbox.work();
    fs::create_dir(work.join("dir.md")).unwrap();
    refused(&store, "dir.md", "is not a regular file");
    let fifo = std::process::Command::new("mkfifo").arg(work.join("fifo.md")).status().unwrap();
    assert!(fifo.success());
    refused(&store, "fifo.md", "is not a regular file");
    refused(&store, "/dev/null", "is not a regular file");
    store.sandbox.file("file", "x");
    refused(&store, "file/A.md", "Not a directory");
    store.sandbox.file("huge.md", "");
    fs::OpenOptions::new().write(true).open(work.join("huge.md")).unwrap().set_len((8 << 20) + 1).unwrap();
    let (code, err) = refresh(&store, "huge.md");
    assert!(code == Some(1) && err.contains("is larger than 8 MiB"), "{err}");
    store.sandbox.file("wide.md", b"\xff\xfex\0\n\0");
    refused(&store, "wide.md", "it is UTF-16; save it as UTF-8");
    store.sandbox.file("fixed.md", "x");
    set_mode(&work.join("fixed.md"), 0o444);
    refused(&store, "fixed.md", "it is read-only; make it writable, or name another file");
    refused(&store, "no/such/A.md", "there is no directory");
    assert!(!work.join("no").exists());
    if is_root("a_target_that_cannot_be_written_is_refused") {
        return;
    }
    store.sandbox.file("closed/A.md", "x");
    set_mode(&work.join("closed"), 0o555);
    refused(&store, "closed/A.md", "Permission denied");
    refused(&store, "closed/B.md", "Permission denied");
    set_mode(&work.join("closed"), 0o755);
}

#[test]
fn a_read_only_file_that_is_up_to_date_is_no_error() {
    let store = store();
    assert_eq!(refresh(&store, "A.md").0, Some(0));
    set_mode(&store.sandbox.work().join("A.md"), 0o444);
    assert_eq!(refresh(&store, "A.md"), (Some(0), String::new()));
}

#[test]
fn leftovers_of_a_killed_run_are_removed_and_other_files_are_not() {
    let store = store();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    let leave = |name: &str, text: &str, is_old: bool| {
        store.sandbox.file(name, text);
        if is_old {
            let file = fs::OpenOptions::new().write(true).open(store.sandbox.work().join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
    };
    leave(".A.md.abcdef", &format!("mine\n{START}\nhalf"), true);
    leave(".A.md.000000", "", true);
    leave(".A.md.rsync1", "somebody's", true);
    leave(".A.md.Young1", START, false);
    leave(".B.md.abcdef", START, true);
    for _ in 0..2 {
        assert_eq!(refresh(&store, "A.md"), (Some(0), String::new()));
        assert_eq!(names(&store.sandbox.work()), [".A.md.Young1", ".A.md.rsync1", ".B.md.abcdef", "A.md"]);
    }
}

#[test]
fn a_strangers_configuration_diverts_nothing() {
    let sandbox = Sandbox::new();
    let text = |id: &str, title: &str| format!("---\nid: id__{id}\ntitle: {title}\ntier: hot\n---\n\nx\n");
    let own = sandbox.home().join(".local/share/agent-memory");
    sandbox.file("notes/topics/x -- id__AAAAAA.md", text("AAAAAA", "Theirs"));
    sandbox.write(&own.join("topics/y -- id__BBBBBB.md"), text("BBBBBB", "Mine"));
    sandbox.write(&sandbox.home().join(".codex/AGENTS.md"), "mine\n");
    sandbox.settings(json!({"agentsMd": {"targets": ["~/.codex/AGENTS.md"]}}));
    let theirs = json!({"storage": {"root": "notes"}, "agentsMd": {"targets": ["AGENTS.md"]}});
    sandbox.file("memory.config.json", theirs.to_string());
    let named = format!("{}\" is not trusted, so ", sandbox.work().join("memory.config.json").display());

    let (code, _, err) = said(&mut sandbox.command(PROGRAM));
    assert!(code == Some(0) && err.matches(&named).count() == 1 && err.lines().count() == 1, "{err}");
    let section = fs::read_to_string(sandbox.home().join(".codex/AGENTS.md")).unwrap();
    assert!(section.contains("Mine") && !section.contains("Theirs"), "{section}");
    assert!(!sandbox.work().join("AGENTS.md").exists());
    let (_, out, err) = said(&mut sandbox.command("memory-list"));
    assert!(out.contains("Mine") && !out.contains("Theirs") && err.contains(&named), "{out}{err}");
    assert_eq!(said(sandbox.command("memory-read").arg("AAAAAA")).0, Some(1));
    // The hook says so, too, and queues where the next run looks.
    sandbox.file("t.jsonl", "{}\n");
    let hook = json!({"hook_event_name": "SessionEnd", "session_id": "s", "transcript_path": sandbox.work().join("t.jsonl"),
                      "cwd": sandbox.work(), "reason": "other"});
    let mut capture = sandbox.command("memory-capture");
    let (code, out, err) = said(capture.args(["--harness", "claude-code"]).write_stdin(hook.to_string()));
    assert!(code == Some(0) && out.starts_with(own.join("inbox").to_str().unwrap()), "{out}{err}");
    assert!(err.contains(&named), "{err}");
    assert_eq!(names(&sandbox.work().join("notes")), ["topics"]);
}

#[test]
fn a_strangers_link_does_not_lead_the_projects_section_into_another_file() {
    let store = Store::new();
    let (work, profile) = (store.sandbox.work(), store.sandbox.home().join(".profile"));
    fs::write(&profile, "A=1\n").unwrap();
    fs::create_dir(work.join(".git")).unwrap();
    fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    crate::support::symlink(&profile, work.join("AGENTS.md"));
    let args = ["--direct", "--scope", "repo", "--title", "T", "--body", "B"];
    store.out("memory-capture", &args);
    let (code, out, err) = store.run("memory-agents-md", &["--project"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("AGENTS.md\" is a link out of the repository; "), "{err}");
    assert_eq!(fs::read_to_string(profile).unwrap(), "A=1\n");
    // A link that stays inside is allowed.
    fs::remove_file(work.join("AGENTS.md")).unwrap();
    fs::write(work.join("CLAUDE.md"), "x\n").unwrap();
    crate::support::symlink("CLAUDE.md", work.join("AGENTS.md"));
    store.out("memory-agents-md", &["--project"]);
    assert!(fs::read_to_string(work.join("CLAUDE.md")).unwrap().contains("## Memory"));
}
