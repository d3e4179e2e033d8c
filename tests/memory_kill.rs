//! Programs on notes that are killed or failed by strace at each call that changes something: the store holds
//! the old state or the new one, and the next command works and sweeps.

#![cfg(target_os = "linux")]

use crate::store::{HOUR, Store, age, names, note};
use crate::support::{Said, binary};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

type Tree = BTreeMap<String, Vec<u8>>;

/// What is done to a store that holds `one` and an archived `two`.
struct Deed {
    program: &'static str,
    args: &'static [&'static str],
    /// Whether there is a store.
    begins: bool,
    /// What the same again exits with, once it is done.
    again: i32,
}

const DEEDS: [Deed; 6] = [
    Deed { program: "memory-read", args: &["AAAAAA"], begins: true, again: 0 },
    Deed { program: "memory-update", args: &["AAAAAA", "--title", "New"], begins: true, again: 0 },
    Deed { program: "memory-remove", args: &["AAAAAA"], begins: true, again: 0 },
    Deed { program: "memory-remove", args: &["--purge", "BBBBBB"], begins: true, again: 1 },
    Deed { program: "memory-capture", args: CAPTURE, begins: true, again: 0 },
    Deed { program: "memory-capture", args: CAPTURE, begins: false, again: 0 },
];
const CAPTURE: &[&str] = &["--direct", "--title", "T", "--body", "B"];

/// Past the capture of output, so that it is seen in a test that passes.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("memory_kill: {text}\n").as_bytes());
}

fn changes_something(call: &str) -> bool {
    let name = call.split('(').next().unwrap_or_default();
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
    ];
    changing.iter().any(|known| name.starts_with(known)) || name == "openat" && call.contains("O_CREAT")
}

impl Deed {
    fn store(&self) -> Store {
        let store = Store::new();
        if self.begins {
            for part in ["inbox", ".agent-memory"] {
                fs::create_dir_all(store.root().join(part)).unwrap();
            }
            store.put(".gitignore", "/inbox/\n/.agent-memory/\n");
            store.note("AAAAAA", "One");
            store.put("archive/two -- id__BBBBBB.md", note("BBBBBB", "Two", ""));
        }
        store
    }

    /// Without `-f` the main thread alone is at fault: errors are told by another.
    fn under_strace(&self, store: &Store, strace: &[&str]) -> (Output, String) {
        let plain = store.sandbox.std_command(self.program);
        let mut command = Command::new("strace");
        command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(store.sandbox.work()).stdin(Stdio::null());
        command.args(["-o", "trace"]).args(strace).arg(binary(self.program)).args(self.args);
        let output = command.output().unwrap();
        (output, fs::read_to_string(store.sandbox.work().join("trace")).unwrap_or_default())
    }

    /// The calls of its main thread that change something: name, and the how manieth of that name it is. And
    /// the tree that it makes.
    fn calls(&self) -> (Vec<(String, usize)>, Tree) {
        let store = self.store();
        let (output, trace) = self.under_strace(&store, &["-f"]);
        assert!(output.status.success(), "{}", output.err());
        let main = trace.split(' ').next().unwrap();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut calls = Vec::new();
        for line in trace.lines() {
            let Some(call) = line.strip_prefix(main).map(str::trim_start) else { continue };
            let Some((name, _)) = call.split_once('(').filter(|_| !call.starts_with(['<', '+', '-'])) else {
                continue;
            };
            *seen.entry(name).or_default() += 1;
            if changes_something(call) {
                calls.push((name.to_owned(), seen[name]));
            }
        }
        (calls, tree(&store))
    }

    /// The same without a fault: it ends what was begun, and sweeps.
    fn again(&self, store: &Store, was_done: bool, fault: &str) -> Tree {
        // What was left half written is swept once nobody can be writing it any more.
        for name in tree(store).keys().filter(|name| name.contains("/.")) {
            age(&store.root().join(name), 2 * HOUR);
        }
        let (code, _, err) = store.run(self.program, self.args);
        let expected = if was_done { self.again } else { 0 };
        assert_eq!((code, err.is_empty()), (Some(expected), expected == 0), "after {fault}: {err}");
        let tree = tree(store);
        assert!(!tree.keys().any(|name| name.contains("/.")), "after {fault}: {:?}", tree.keys());
        assert_eq!(
            fs::read_to_string(store.root().join(".gitignore")).unwrap_or_default(),
            "/inbox/\n/.agent-memory/\n",
            "{fault}"
        );
        tree
    }
}

fn is_able() -> bool {
    let able = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let able = able.is_ok_and(|output| output.status.success());
    if !able {
        say("strace is missing or may not trace: NO fault was injected, this test shows nothing");
    }
    able
}

/// The tree, told without the sandbox's own path: a captured note names the directory that it is from.
fn tree(store: &Store) -> Tree {
    let dir = store.sandbox.work().display().to_string();
    let told = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace(&dir, "WORK").into_bytes();
    store.tree().into_iter().map(|(name, bytes)| (name, told(bytes))).collect()
}

/// The notes of a tree, without what a killed writer left.
fn whole(tree: &Tree) -> Tree {
    tree.iter()
        .filter(|(name, _)| !name.contains("/."))
        .map(|(name, text)| (name.clone(), text.clone()))
        .collect()
}

fn inject(what: &str) {
    if !is_able() {
        return;
    }
    let is_kill = what == "signal=KILL";
    let (mut injected, mut wanted) = (0, 0);
    for deed in &DEEDS {
        let (calls, new) = deed.calls();
        assert!(calls.len() >= 4, "{}: {calls:?}", deed.program);
        for (name, k) in calls {
            wanted += 1;
            let store = deed.store();
            let old = tree(&store);
            let fault = format!("{name}:{what}:when={k}");
            let (output, trace) =
                deed.under_strace(&store, &[&format!("--trace={name}"), &format!("--inject={fault}")]);
            let fault = format!("{} {:?} with {fault}: {}", deed.program, deed.args, output.err());
            injected += usize::from(trace.contains("(INJECTED)") || output.status.signal() == Some(9));
            let left = tree(&store);
            let tree = whole(&left);
            // The new name with the old text: the one state between.
            let half: Tree =
                old.iter().map(|(name, text)| (name.replace("/one", "/new"), text.clone())).collect();
            let is_known =
                tree == old || tree == new || is_kill && tree == half && deed.program == "memory-update";
            assert!(is_known, "{fault}: {:?}", tree.keys());
            if !is_kill {
                assert_eq!(left, tree, "leftovers: {fault}");
                assert!(!names(&store.root()).iter().any(|name| name.starts_with("..")), "{fault}");
                match output.code() {
                    Some(0) if deed.program == "memory-read" => {}
                    Some(0) => assert!(tree == new, "{fault}"),
                    Some(1 | 2) => assert!(output.err().contains(&format!("{}: ", deed.program)), "{fault}"),
                    code => panic!("exit {code:?}: {fault}"),
                }
            }
            let after = deed.again(&store, tree == new && tree != old, &fault);
            if deed.program == "memory-update" || deed.program == "memory-remove" {
                assert_eq!(after, new, "{fault}");
            }
        }
    }
    say(&format!("{what}: {injected} of {wanted} faults injected"));
    assert!(injected * 10 >= wanted * 9, "only {injected} of {wanted} faults took place");
}

#[test]
fn killed_at_any_change_a_store_holds_the_old_state_or_the_new() {
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
