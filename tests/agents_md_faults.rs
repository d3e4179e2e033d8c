//! `memory-agents-md`, killed or refused by the disk at each system call that changes something, by strace: the file
//! is the old one or the new, and nothing stays beside it. And somebody who saves the file in that very moment.

#![cfg(target_os = "linux")]

use crate::agents_md::{END, START, put};
use crate::store::{Store, names};
use crate::support::{Said, binary};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "memory-agents-md";
const OLD: &str = "# Mine\n\nUse tabs.";

/// Past the capture of output, so that it is seen in a test that passes.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("agents_md_faults: {text}\n").as_bytes());
}

fn is_able() -> bool {
    let able = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let able = able.is_ok_and(|output| output.status.success());
    if !able {
        say("strace is missing or may not trace: NO fault was injected, this test shows nothing");
    }
    able
}

/// A store with a hot note, and a directory with the target.
fn begin(old: Option<&str>) -> Store {
    let store = Store::new();
    put(&store, "AAAAAA", "Hot", "tier: hot\n", "Whole.\n");
    fs::create_dir(dir(&store)).unwrap();
    if let Some(old) = old {
        fs::write(dir(&store).join("A.md"), old).unwrap();
    }
    store
}

fn dir(store: &Store) -> PathBuf {
    store.sandbox.work().join("d")
}

fn content(store: &Store) -> Option<String> {
    fs::read_to_string(dir(store).join("A.md")).ok()
}

fn under_strace(store: &Store, strace: &[&str]) -> (Output, String) {
    let plain = store.sandbox.std_command(PROGRAM);
    let mut command = Command::new("strace");
    command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(store.sandbox.work()).stdin(Stdio::null());
    command.args(["-o", "trace"]).args(strace).arg(binary(PROGRAM)).args(["--target", "d/A.md"]);
    let output = command.output().unwrap();
    (output, fs::read_to_string(store.sandbox.work().join("trace")).unwrap_or_default())
}

/// The calls of the main thread from the first on that names the target's directory, if they change something: the
/// name, and the how manieth of that name it is.
fn calls(old: Option<&str>) -> Vec<(String, usize)> {
    let (output, trace) = under_strace(&begin(old), &["-f"]);
    assert!(output.status.success(), "{}", output.err());
    let main = trace.split(' ').next().unwrap();
    let (mut seen, mut calls, mut is_there): (BTreeMap<&str, usize>, _, _) =
        (BTreeMap::new(), Vec::new(), false);
    for line in trace.lines() {
        let Some((name, rest)) = line.strip_prefix(main).and_then(|call| call.trim_start().split_once('('))
        else {
            continue;
        };
        *seen.entry(name).or_default() += 1;
        is_there |= rest.contains("/d/");
        let changing = [
            "write",
            "rename",
            "unlink",
            "fsync",
            "fdatasync",
            "mkdir",
            "fchmod",
            "fchown",
            "ftruncate",
            "flock",
            "openat",
        ];
        if is_there && changing.iter().any(|known| name.starts_with(known)) {
            calls.push((name.to_owned(), seen[name]));
        }
    }
    assert!(calls.iter().any(|(name, _)| name.starts_with("rename")) && calls.len() > 5, "{calls:?}");
    calls
}

fn inject(what: &str) {
    if !is_able() {
        return;
    }
    let is_kill = what == "signal=KILL";
    let (mut injected, mut wanted) = (0, 0);
    for old in [None, Some(OLD)] {
        let done = begin(old);
        done.out(PROGRAM, &["--target", "d/A.md"]);
        let new = content(&done);
        for (name, k) in calls(old) {
            wanted += 1;
            let store = begin(old);
            let fault = format!("{name}:{what}:when={k}");
            let (output, trace) =
                under_strace(&store, &[&format!("--trace={name}"), &format!("--inject={fault}")]);
            let fault = format!("{old:?} with {fault}: {}", output.err());
            injected += usize::from(trace.contains("(INJECTED)") || output.status.signal() == Some(9));
            let now = content(&store);
            assert!(now.as_deref() == old || now == new, "{fault}: {now:?}");
            if !is_kill {
                let expected: &[&str] = if now.is_some() { &["A.md"] } else { &[] };
                assert_eq!(names(&dir(&store)), expected, "{fault}");
                match output.code() {
                    Some(0) => assert_eq!(now, new, "{fault}"),
                    Some(1) => assert!(output.err().starts_with("memory-agents-md: "), "{fault}"),
                    code => panic!("exit {code:?}: {fault}"),
                }
            }
            // What it left is old by the time of the next run.
            for left in names(&dir(&store)) {
                let file = fs::OpenOptions::new().write(true).open(dir(&store).join(left)).unwrap();
                file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000))
                    .unwrap();
            }
            store.out(PROGRAM, &["--target", "d/A.md"]);
            assert_eq!(
                (content(&store), names(&dir(&store))),
                (new.clone(), vec!["A.md".to_owned()]),
                "{fault}"
            );
        }
    }
    say(&format!("{what}: {injected} of {wanted} faults injected"));
    assert!(injected * 10 >= wanted * 9, "only {injected} of {wanted} faults took place");
}

#[test]
fn killed_at_any_change_the_file_is_the_old_one_or_the_new() {
    inject("signal=KILL");
}

#[test]
fn a_disk_that_fails_at_any_change_is_an_error_or_harmless() {
    inject("error=EIO");
}

#[test]
fn a_disk_that_is_full_at_any_change_is_an_error_or_harmless() {
    inject("error=ENOSPC");
}

#[test]
fn what_its_owner_saves_while_the_new_file_is_synced_is_not_lost() {
    if !is_able() {
        return;
    }
    for old in [None, Some(OLD)] {
        let store = begin(old);
        let path = dir(&store).join("A.md");
        // The first sync takes a second; the file is saved in it, as soon as the new one lies beside it.
        let saved = "# Saved meanwhile\n";
        let output = std::thread::scope(|scope| {
            let save = scope.spawn(|| {
                crate::support::eventually("the new file", || {
                    let beside = names(&dir(&store)).into_iter().find(|name| name.starts_with(".A.md."));
                    beside.is_some_and(|name| {
                        fs::metadata(dir(&store).join(name)).is_ok_and(|found| found.len() > 0)
                    })
                });
                fs::write(&path, saved).unwrap();
            });
            let call = "fsync,fdatasync";
            let delay = format!("--inject={call}:delay_enter=1000000:when=1");
            let (output, trace) = under_strace(&store, &["-f", &format!("--trace={call}"), &delay]);
            save.join().unwrap();
            assert!(trace.contains("sync("), "{trace}");
            output
        });
        assert_eq!(output.code(), Some(0), "{}", output.err());
        let text = content(&store).unwrap();
        assert!(
            text.starts_with(&format!("{saved}\n{START}\n")) && text.ends_with(&format!("{END}\n")),
            "{old:?}: {text}"
        );
        assert_eq!(names(&dir(&store)), ["A.md"]);
    }
}
