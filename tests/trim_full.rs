//! A disk without room, and a directory that takes no file: logs stay whole, nothing is left lying about.

#![cfg(target_os = "linux")]

use crate::axe_gc::{REPORT, calls};
use crate::support::disk::{Disk, PAGE, powerless};
use crate::support::{NOW, Said, Sandbox, entries};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn names_in(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The agent `a`, that keeps the newest five entries of a log on `disk`.
fn on(disk: &Disk, command: &str) -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    sandbox.agent("a", command, "[memory]\nenabled = true\nlast_n = 5");
    (sandbox, disk.path("axe/memory/a.md"))
}

#[test]
fn a_trim_on_a_full_disk_leaves_the_old_log_and_nothing_else() {
    for fill in [Disk::fill, Disk::fill_names] {
        let Some(disk) = Disk::new() else { return };
        let (sandbox, log) = on(&disk, REPORT);
        let old: String = (0..10).map(|n| format!("## {n}\n{}\n\n", "x".repeat(PAGE))).collect();
        sandbox.write(&log, &old);
        fill(&disk);
        let mut command = sandbox.command("axe-gc");
        command.arg("a").env("XDG_DATA_HOME", disk.root());
        let output = command.output().unwrap();
        let begin = "axe-gc: failed to trim memory for \"a\": cannot replace \"";
        // There was no room in the ledger of runs either.
        assert!(output.err().lines().next_back().unwrap().starts_with(begin), "{}", output.err());
        assert!(output.err().contains("No space left on device"), "{}", output.err());
        assert!(output.out().starts_with("Agent: a\nEntries: 10\n--- Analysis ---\nREPORT\n"));
        assert_eq!((output.code(), calls(&sandbox)), (Some(1), 1));
        assert!(fs::read_to_string(&log).unwrap() == old, "the old log does not stand");
        assert_eq!(names_in(log.parent().unwrap()), ["a.md"]);
        disk.free();
        let output = command.output().unwrap();
        assert!(output.out().contains("\nTrimmed: 5 entries removed, 5 entries kept.\n"), "{}", output.err());
        assert!(fs::read_to_string(&log).unwrap() == old[old.len() / 2..], "the next trim failed");
        assert_eq!(names_in(log.parent().unwrap()), ["a.md"]);
    }
}

#[test]
fn an_append_to_a_full_disk_is_taken_back_and_the_run_goes_well() {
    let Some(disk) = Disk::new() else { return };
    let (sandbox, log) = on(&disk, "cat > /dev/null; echo answer");
    // The entry finds no room, or room for a part of it.
    for (length, why) in [
        (2 * PAGE, "No space left on device"),
        (2 * PAGE - 30, "only 30 of "),
        (2 * PAGE - 1, "only 1 of "),
        (0, "No space left on device"),
    ] {
        let old: String = "## old\n".chars().chain("x".repeat(length).chars()).take(length).collect();
        sandbox.write(&log, &old);
        disk.fill();
        let mut command = sandbox.run("a");
        command.args(["--no-stdin", "-p", "task"]).env("XDG_DATA_HOME", disk.root());
        let output = command.output().unwrap();
        assert_eq!((output.out().as_str(), output.code()), ("answer", Some(0)), "{}", output.err());
        let begin = "Warning: failed to save memory for \"a\": ";
        assert!(output.err().starts_with(begin) && output.err().contains(why), "{}", output.err());
        let unrecorded = "Warning: the run is not recorded: ";
        let others = output.err().lines().skip(1).filter(|line| !line.starts_with(unrecorded)).count();
        assert_eq!((fs::read_to_string(&log).unwrap(), others), (old.clone(), 0));
        disk.free();
        assert_eq!(command.output().unwrap().err(), "");
        let newline = if old.is_empty() { "" } else { "\n" };
        let entry = format!("## {NOW}\n**Task:** task\n**Result:** answer\n\n");
        assert_eq!(fs::read_to_string(&log).unwrap(), format!("{old}{newline}{entry}"));
    }
}

#[test]
fn an_analysis_that_found_no_room_on_stdout_means_no_trim() {
    let summary = "axe-gc: gc completed with errors: 1 of 2 agents failed\n";
    // So short that it is all in a buffer first, and so long that no buffer holds it.
    for (args, length, last) in
        [(&["a"][..], PAGE + 1, ""), (&["a"], 50 * PAGE, ""), (&["--all"], PAGE + 1, summary)]
    {
        let Some(disk) = Disk::new() else { return };
        let sandbox = Sandbox::new();
        for name in ["a", "b"] {
            let filler = disk.path("filler").display().to_string();
            let fill = format!("cat /dev/zero > {filler} 2> /dev/null");
            let command = format!("echo called >> calls; {fill}; head -c {length} /dev/zero | tr '\\0' x");
            sandbox.agent(name, &command, "[memory]\nenabled = true\nlast_n = 1");
            sandbox.write_log(name, &entries(3));
        }
        let stdout = fs::File::create(disk.path("out")).unwrap();
        let mut command = sandbox.std_command("axe-gc");
        let output = command.args(args).stdin(Stdio::null()).stdout(stdout).output().unwrap();
        assert!(output.err().contains("cannot write to stdout: No space left on device"), "{}", output.err());
        assert!(output.err().ends_with(last), "{}", output.err());
        assert!(fs::read_to_string(disk.path("out")).unwrap().contains("Entries: 3\n--- Analysis ---\nxxx"));
        assert_eq!((output.code(), calls(&sandbox)), (Some(1), 1));
        assert_eq!((sandbox.log("a"), sandbox.log("b")), (entries(3), entries(3)));
    }
}

#[test]
fn a_log_that_its_mode_protects_stays_as_it_is() {
    let read = "axe-gc: failed to load memory: ";
    let trim = "axe-gc: failed to trim memory for \"a\": ";
    for (dir_mode, log_mode, begin) in
        [(0o777, 0o000, read), (0o555, 0o666, trim), (0o777, 0o444, trim), (0o000, 0o666, read)]
    {
        let sandbox = Sandbox::new();
        sandbox.agent("a", REPORT, "[memory]\nenabled = true\nlast_n = 1");
        sandbox.write_log("a", &entries(3));
        let log = sandbox.log_path("a");
        let dir = log.parent().unwrap();
        fs::set_permissions(&log, fs::Permissions::from_mode(log_mode)).unwrap();
        fs::set_permissions(dir, fs::Permissions::from_mode(dir_mode)).unwrap();
        let output = powerless(&sandbox, "axe-gc", &["--no-analysis", "a"]);
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        let mode = fs::metadata(&log).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(&log, fs::Permissions::from_mode(0o644)).unwrap();
        let Some(output) = output else { return };
        assert!(output.err().starts_with(begin), "{log_mode:o} in {dir_mode:o}: {}", output.err());
        assert!(output.err().contains("Permission denied"), "{}", output.err());
        assert_eq!((output.code(), mode, sandbox.log("a")), (Some(1), log_mode, entries(3)));
        assert_eq!(names_in(dir), ["a.md"], "{log_mode:o} in {dir_mode:o}");
    }
}

#[test]
fn a_log_of_somebody_else_is_trimmed_where_its_directory_allows_it() {
    let sandbox = Sandbox::new();
    sandbox.agent("a", REPORT, "[memory]\nenabled = true\nlast_n = 1");
    sandbox.write_log("a", &entries(3));
    let log = sandbox.log_path("a");
    for (path, mode) in [(log.as_path(), 0o666), (log.parent().unwrap(), 0o777)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let Some(output) = powerless(&sandbox, "axe-gc", &["--no-analysis", "a"]) else { return };
    assert!(output.out().ends_with("Trimmed: 2 entries removed, 1 entries kept.\n"), "{}", output.err());
    assert_eq!(sandbox.log("a"), entries(3)[entries(2).len()..]);
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o666);
}
