//! A mount that never answers, as a network file system whose server is gone: no memory program waits for it for ever, and
//! a hook still queues its session. `support/dead_mount.py` makes one in a namespace of its own.

use crate::support::llm::NOTE_EACH;
use crate::support::store::{Store, name, note};
use crate::support::{Said, binary, present, symlink};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

struct DeadMount {
    store: Store,
    dir: PathBuf,
}

impl DeadMount {
    /// A store with a target, a checkout and the home of Claude Code there. `None`: no such mount can be made here.
    fn new(test: &str) -> Option<DeadMount> {
        let store = Store::new();
        let dir = fs::canonicalize(store.sandbox.home()).unwrap().join("dead");
        fs::create_dir(&dir).unwrap();
        let dead = DeadMount { store, dir };
        let output = dead.run("memory-list", &[], "", None);
        if output.code() != Some(0) {
            assert!(output.code() != Some(99), "{}", output.err());
            let _ =
                writeln!(std::io::stderr(), "SKIPPED without FUSE in a namespace: {test}: {}", output.err());
            return None;
        }
        dead.configure(json!({}));
        let checkout = json!({"top": dead.dir.join("r"), "repo": "github.com/o/r", "head": "", "has_section": true,
            "hasSection": true});
        dead.store.put(".agent-memory/projects.json", json!({"projects": [checkout]}).to_string());
        symlink(dead.dir.join("claude"), dead.store.sandbox.home().join(".claude"));
        dead.store.note("AAAAAA", "Ports");
        // What it rests on lies there.
        let anchored = format!(
            "scope: repo\nbranch: {{name: x}}\nanchors:\n  - {{path: a.rs}}\nsources:\n  - {{harness: amp, repo: github.com/o/r, cwd: {}}}\n",
            dead.dir.join("r").display()
        );
        dead.store
            .put(&format!("topics/{}", name("BBBBBB", "Anchored")), note("BBBBBB", "Anchored", &anchored));
        Some(dead)
    }

    fn configure(&self, llm: serde_json::Value) {
        let targets = [self.dir.join("AGENTS.md"), self.store.sandbox.home().join("ALIVE.md")];
        let config = json!({"storage": {"autoCommit": false}, "agentsMd": {"targets": targets}, "llm": llm});
        self.store.config(&config.to_string());
    }

    /// With `--inside` or `--read`, as `dead_mount.py` knows them.
    fn run(&self, program: &str, args: &[&str], stdin: &str, how: Option<&str>) -> Output {
        let like = self.store.sandbox.std_command(program);
        let mut command = Command::new("unshare");
        command.args([
            "-Urm",
            crate::support::llm::python(),
            "-SE",
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/dead_mount.py"),
        ]);
        command.arg(&self.dir).args(how).arg("--").arg(binary(program)).args(args);
        command.envs(present(like.get_envs()));
        let path = [std::env::var("PATH").unwrap_or_default(), crate::support::tools()].join(":");
        command.env("PATH", path).current_dir(self.store.sandbox.work());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let Ok(mut child) = command.spawn() else { return Command::new("false").output().unwrap() };
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn queue(&self) -> usize {
        crate::support::store::names(&self.store.root().join("inbox"))
            .iter()
            .filter(|name| name.ends_with(".json"))
            .count()
    }
}

#[test]
fn no_program_waits_for_ever_for_a_mount_that_does_not_answer() {
    if DeadMount::new("every program").is_none() {
        return;
    }
    let programs = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/bins")).unwrap();
    let programs: Vec<String> = programs
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let seen: usize = std::thread::scope(|scope| {
        let programs = programs.iter().filter(|name| name.starts_with("memory-"));
        let ended: Vec<_> = programs.map(|program| scope.spawn(|| ends(program))).collect();
        ended.into_iter().map(|ended| ended.join().unwrap()).sum()
    });
    assert!(seen >= 40, "{seen}");
}

/// Runs a program in several ways, in that mount and beside it, and counts them.
fn ends(program: &str) -> usize {
    let dead = DeadMount::new(program).unwrap();
    let hook = json!({"session_id": "s", "transcript_path": dead.dir.join("t.jsonl"), "cwd": dead.dir.join("r"),
        "hook_event_name": "SessionStart", "source": "startup"});
    let uses: &[&[&str]] = match program {
        "memory-capture" => &[
            &["--title", "T", "--body", "b"],
            &["--title", "U", "--body", "b", "--direct"],
            &["--past", "30d", "--dry-run"],
        ],
        "memory-config" => &[&["show"], &["path"], &["init"]],
        "memory-recall" => &[&[], &["--harness", "claude-code"]],
        "memory-read" => &[&["AAAAAA"]],
        "memory-update" => &[&["AAAAAA", "--tag", "+x"], &["BBBBBB", "--confirm"]],
        "memory-remove" => &[&["--dry-run", "--from", "/nowhere"]],
        "memory-agents-md" => &[&[], &["--check"], &["--project"]],
        _ => &[&[]],
    };
    for args in uses {
        for how in [None, Some("--inside")] {
            let output = dead.run(program, args, &hook.to_string(), how);
            assert!(output.code() != Some(99), "{program} {args:?} {how:?}: {}", output.err());
        }
    }
    2 * uses.len()
}

#[test]
fn a_hook_queues_its_session_and_asks_no_target() {
    let Some(dead) = DeadMount::new("capture") else { return };
    for (count, cwd, transcript) in [(1, "", "t.jsonl"), (2, "r", "u.jsonl")] {
        let hook = json!({"session_id": format!("s{count}"), "transcript_path": dead.dir.join(transcript),
            "cwd": dead.dir.join(cwd), "hook_event_name": "SessionEnd"});
        let output = dead.run("memory-capture", &["--harness", "claude-code"], &hook.to_string(), None);
        assert_eq!((output.code(), dead.queue()), (Some(0), count), "{}", output.err());
    }
    // Only targets are there: nothing is said of them, because nothing was asked.
    let output = dead.run("memory-capture", &["--title", "T", "--body", "b"], "", None);
    assert_eq!((output.code(), output.err().as_str(), dead.queue()), (Some(0), "", 3));
}

#[test]
fn consolidate_files_its_notes_says_what_does_not_answer_and_the_next_run_goes_on() {
    let Some(dead) = DeadMount::new("consolidate") else { return };
    let command = dead.store.sandbox.script(NOTE_EACH);
    dead.configure(json!({"command": command}));
    for title in ["One", "Two"] {
        dead.store.out("memory-capture", &["--title", title, "--body", "b"]);
        let output = dead.run("memory-consolidate", &[], "", None);
        assert_eq!(output.code(), Some(0), "{}", output.err());
        assert!(output.out().starts_with("1 entry processed, 1 kb entries written"), "{}", output.out());
        assert!(
            output.err().contains("not refreshed: \"") && output.err().contains("does not answer"),
            "{}",
            output.err()
        );
        let alive = fs::read_to_string(dead.store.sandbox.home().join("ALIVE.md")).unwrap();
        assert!(alive.contains("Ports"), "the other targets are refreshed");
    }
    // It is back.
    let (code, _, err) = dead.store.run("memory-consolidate", &[]);
    assert_eq!(code, Some(0), "{err}");
    assert!(dead.dir.join("AGENTS.md").exists(), "{err}");
}

#[test]
fn a_session_is_given_its_notes_though_a_target_does_not_answer() {
    let Some(dead) = DeadMount::new("recall") else { return };
    let hook = json!({"session_id": "s", "transcript_path": "/t.jsonl", "cwd": dead.store.sandbox.work(),
        "hook_event_name": "SessionStart", "source": "startup"});
    let output = dead.run("memory-recall", &["--harness", "claude-code"], &hook.to_string(), None);
    assert_eq!(output.code(), Some(0), "{}", output.err());
    assert!(output.out().contains("Ports"), "{} {}", output.out(), output.err());
}

/// The settings could be read, from what the kernel remembers perhaps, and then the disk is gone.
#[test]
fn hooks_are_not_written_for_ever_and_those_of_other_harnesses_are() {
    let Some(dead) = DeadMount::new("hooks") else { return };
    let home = dead.store.sandbox.home();
    fs::remove_file(home.join(".claude")).unwrap();
    symlink(&dead.dir, home.join(".claude"));
    fs::create_dir(home.join(".gemini")).unwrap();
    let output = dead.run("memory-install-hooks", &[], "", Some("--read"));
    assert_eq!(output.code(), Some(1), "{}{}", output.out(), output.err());
    assert!(output.err().contains("settings.json\" does not answer"), "{}", output.err());
    let written = fs::read_to_string(home.join(".gemini/settings.json")).unwrap();
    assert!(written.contains("memory-capture"), "{written}");
}
