//! `memory-capture` on stores that cannot be used, on full disks, and killed at any moment.

use crate::support::disk::{Disk, powerless};
use crate::support::queue::{BOTH, entry_at, hook, out};
use crate::support::store::names;
use crate::support::{NOW, Said, Sandbox, binary, closed_pipe, full_disk, present, said, set_mode};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn an_unusable_store_is_an_error_and_is_not_changed() {
    let sandbox = Sandbox::new();
    let hook = hook(&sandbox);
    sandbox.write(&sandbox.store(), "a file of mine");
    let (code, out, err) = said(&mut sandbox.capture(&BOTH));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("it is not a directory; set storage.root to "), "{err}");
    let (code, _, _) = said(sandbox.capture(&["--harness", "claude-code"]).write_stdin(hook));
    assert_eq!(code, Some(1));
    assert_eq!(fs::read_to_string(sandbox.store()).unwrap(), "a file of mine");
}

/// Whichever look at the disk fails in passing: a session that waits is not queued again.
#[test]
fn a_look_at_the_disk_that_fails_queues_no_session_twice() {
    if !["/usr/bin/strace", "/bin/strace"].iter().any(|path| std::path::Path::new(path).exists()) {
        return crate::support::say("strace is not here: nothing is failed");
    }
    let sandbox = Sandbox::new();
    let hook = hook(&sandbox);
    let capture = || said(sandbox.capture(&["--harness", "claude-code"]).write_stdin(hook.clone()));
    assert_eq!(capture().0, Some(0));
    let trace = sandbox.home().join("trace");
    for n in 1.. {
        let like = sandbox.std_command("memory-capture");
        let mut traced = std::process::Command::new("strace");
        traced.args(["-f", "-qq", "-o"]).arg(&trace).arg("--trace=statx");
        traced.arg(format!("--inject=statx:error=EIO:when={n}"));
        traced.arg(like.get_program()).args(["--harness", "claude-code"]).current_dir(sandbox.work());
        traced.env_clear().envs(present(like.get_envs()));
        let mut child = traced.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), hook.as_bytes());
        let output = child.wait_with_output().unwrap();
        let trace = fs::read_to_string(&trace).unwrap();
        assert_eq!(sandbox.queued().len(), 1, "statx {n}: {} {}\n{trace}", output.status, output.err());
        if !trace.contains("(INJECTED)") {
            assert!(n > 10, "only {n} were failed");
            break;
        }
    }
    assert_eq!((capture().0, sandbox.queued().len()), (Some(0), 1));
}

#[test]
fn a_key_of_megabytes_costs_little_memory() {
    let sandbox = Sandbox::new();
    let entry = format!("{{\"version\": 1, \"{}\": 1}}", "k".repeat(7 << 20));
    sandbox.file("entry", entry);
    let like = sandbox.std_command("memory-capture");
    let mut shell = std::process::Command::new("/bin/sh");
    // The limit is half a gigabyte of address space.
    shell.args(["-c", "ulimit -v 500000; exec \"$0\" --entry < entry"]).arg(binary("memory-capture"));
    shell.env_clear().envs(present(like.get_envs()));
    let output = shell.current_dir(sandbox.work()).output().unwrap();
    assert_eq!(output.code(), Some(1), "{}", output.err());
    assert!(output.err().contains("kkk...: unknown key"), "{}", output.err());
}

#[test]
fn a_store_without_write_permission_is_a_clear_error() {
    // The part of the store that cannot be written, its mode, the exit code, and the message.
    for (part, dir_mode, code, message) in [
        ("", 0o555, 2, "cannot be created: "),
        ("inbox", 0o555, 1, "memory-capture: cannot write \""),
        ("inbox", 0o000, 1, "memory-capture: cannot write \""),
    ] {
        let sandbox = Sandbox::new();
        let made = ["inbox", "topics", "archive", ".agent-memory"].map(|part| sandbox.store().join(part));
        if part.is_empty() {
            fs::create_dir_all(sandbox.store()).unwrap();
        } else {
            for dir in &made {
                fs::create_dir_all(dir).unwrap();
                set_mode(dir, 0o777);
            }
        }
        let locked = sandbox.store().join(part);
        set_mode(&locked, dir_mode);
        let output = powerless(&sandbox, "memory-capture", &BOTH);
        set_mode(&locked, 0o755);
        let Some(output) = output else { return };
        assert_eq!((output.code(), output.out().as_str()), (Some(code), ""), "{part}: {}", output.err());
        assert!(
            output.err().contains(message) && output.err().contains("Permission denied"),
            "{}",
            output.err()
        );
        assert!(sandbox.queued().is_empty());
    }
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing_behind() {
    for fill in [Disk::fill, Disk::fill_names] {
        let Some(disk) = Disk::new() else { return };
        let sandbox = Sandbox::new();
        let inbox = disk.path("agent-memory/inbox");
        let data = inbox.ancestors().nth(2).unwrap().to_owned();
        let capture = || {
            let mut capture = sandbox.capture(&BOTH);
            capture.env("XDG_DATA_HOME", &data);
            capture
        };
        out(&mut capture());
        fill(&disk);
        let (code, printed, err) = said(&mut capture());
        assert_eq!((code, printed.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains("No space left on device"), "{err}");
        assert_eq!(names(&inbox).len(), 1);
        disk.free();
        let path = out(&mut capture());
        assert_eq!(entry_at(&path)["timestamp"], NOW.replace("05Z", "05.000Z"));
        assert_eq!(names(&inbox).len(), 2);
    }
}

#[test]
fn the_entry_is_written_before_anything_is_printed() {
    let sandbox = Sandbox::new();
    let run = |stdout: Stdio| {
        sandbox.std_command("memory-capture").args(BOTH).stdin(Stdio::null()).stdout(stdout).output().unwrap()
    };
    let output = run(closed_pipe());
    assert_eq!((output.code(), output.err().as_str()), (Some(0), ""));
    let output = run(full_disk());
    assert_eq!(output.code(), Some(1));
    assert!(output.err().starts_with("memory-capture: cannot write to stdout: "), "{}", output.err());
    assert_eq!(sandbox.queued().len(), 2);
}

/// How many writers, and how many captures each: `AXE_CAPTURES=16x1000` for the full test.
fn crowd() -> (usize, usize) {
    let wanted = std::env::var("AXE_CAPTURES").unwrap_or_default();
    let both =
        wanted.split_once('x').map(|(writers, each)| (writers.parse().unwrap(), each.parse().unwrap()));
    both.unwrap_or((16, 10))
}

#[test]
fn killed_writers_leave_no_torn_file_and_lose_no_entry() {
    let sandbox = Sandbox::new();
    let (writers, each) = crowd();
    // Each printed path, and the title that its file must have.
    let acknowledged: Vec<(String, String)> = std::thread::scope(|scope| {
        let write = |writer: usize| {
            let mut random = writer as u64 + 1;
            let mut kept = Vec::new();
            for n in 0..each {
                let title = format!("{writer} {n}");
                let mut command = sandbox.std_command("memory-capture");
                command.args(["--title", &title, "--body"]).arg("word ".repeat(500)).stdin(Stdio::null());
                let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if random >> 62 == 0 {
                    std::thread::sleep(Duration::from_micros(random >> 33 & 0x3fff));
                    child.kill().unwrap();
                }
                let output = child.wait_with_output().unwrap();
                // A path on stdout is an acknowledgement, even if the writer was killed right after.
                if output.out().ends_with('\n') {
                    kept.push((output.out(), title));
                }
            }
            kept
        };
        let threads: Vec<_> = (0..writers).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let killed = writers * each - acknowledged.len();
    assert!(acknowledged.len() > writers * each / 2 && killed > 0, "{killed} of {} killed", writers * each);
    for (path, title) in &acknowledged {
        assert_eq!(entry_at(path)["retrieval"]["title"], title.as_str());
    }
    let (leftovers, whole): (Vec<String>, Vec<String>) =
        sandbox.queued().into_iter().partition(|name| name.starts_with('.'));
    for name in &whole {
        let path = sandbox.store().join("inbox").join(name);
        assert_eq!(entry_at(path.to_str().unwrap())["version"], 1, "{name}");
    }
    assert!(whole.len() + leftovers.len() <= writers * each, "{leftovers:?}");
}
