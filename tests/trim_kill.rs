//! A trim that is killed, refused or interrupted at each of its system calls, by strace: the log is the old
//! one or the new one, and the next trim works.

#![cfg(target_os = "linux")]

use crate::support::{Sandbox, binary, entries};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

/// Calls in which the kernel can tell of a fault of the disk. The others end nothing or cannot fail.
const FILE_CALLS: [&str; 20] = [
    "openat",
    "flock",
    "statx",
    "fstat",
    "newfstatat",
    "lseek",
    "read",
    "write",
    "getdents64",
    "readlink",
    "fchmod",
    "fchmodat",
    "fchown",
    "fsync",
    "fdatasync",
    "ftruncate",
    "fcntl",
    "rename",
    "renameat",
    "renameat2",
];

const KEPT: usize = 2;

/// What a trim under strace came to.
struct Trial {
    output: Output,
    /// What strace wrote down.
    trace: String,
    log: String,
    /// Names beside the log.
    leftovers: Vec<String>,
}

impl Trial {
    fn was_injected(&self) -> bool {
        self.trace.contains("(INJECTED)")
            || self.trace.contains("--- SIGTERM ")
            || self.output.status.signal() == Some(9)
    }

    fn renamed(&self) -> bool {
        self.trace.lines().any(|line| line.contains(" rename") && line.trim_end().ends_with("= 0"))
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

struct Bench {
    sandbox: Sandbox,
    old: String,
    new: String,
}

impl Bench {
    /// Five entries, of which the two that stay take several writes.
    fn new() -> Bench {
        let sandbox = Sandbox::new();
        sandbox.agent("a", "false", &format!("[memory]\nenabled = true\nlast_n = {KEPT}"));
        let new = format!("## a\n{}\n\n## b\n{}\n", "x".repeat(9000), "y".repeat(9000));
        let old = entries(3) + &new;
        Bench { sandbox, old, new }
    }

    fn args(&self, strace: &[String]) -> Command {
        let plain = self.sandbox.std_command("axe-gc");
        let mut command = Command::new("strace");
        command.env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.sandbox.work()).stdin(Stdio::null());
        command.args(["-f", "-o", "trace"]).args(strace);
        command.arg(binary("axe-gc")).args(["--no-analysis", "a"]);
        command
    }

    /// Trims the old log under strace with these faults, each `CALL:WHAT:when=K`; all calls with none.
    fn trial(&self, faults: &[String]) -> Trial {
        self.sandbox.write_log("a", &self.old);
        let mut strace = Vec::new();
        if !faults.is_empty() {
            let calls: Vec<_> = faults.iter().map(|fault| fault.split(':').next().unwrap()).collect();
            strace.push(format!("--trace=?rename,?renameat,?renameat2,{}", calls.join(",")));
            strace.extend(faults.iter().map(|fault| format!("--inject={fault}")));
        }
        let output = self.args(&strace).output().unwrap();
        let trace = fs::read_to_string(self.sandbox.work().join("trace")).unwrap_or_default();
        Trial { output, trace, log: self.sandbox.log("a"), leftovers: self.leftovers() }
    }

    fn leftovers(&self) -> Vec<String> {
        let entries = fs::read_dir(self.sandbox.log_path("a").parent().unwrap()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != "a.md").collect()
    }

    /// A trim without faults ends what the last one began, and sweeps what it left.
    fn assert_next_trim_works(&self, what: &str) {
        let mut command = self.sandbox.std_command("axe-gc");
        let output = command.args(["--no-analysis", "a"]).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "after {what}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!((self.sandbox.log("a") == self.new, self.leftovers()), (true, vec![]), "after {what}");
    }

    /// The system calls of a trim's own thread after its first line is out: name, and the how manieth of
    /// that name it is. `None` where strace is missing or may not trace.
    fn calls(&self) -> Option<Vec<(String, usize)>> {
        self.sandbox.write_log("a", &self.old);
        let able = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
        if !able.is_ok_and(|output| output.status.success()) {
            say("strace is missing or may not trace: NO fault was injected, this test shows nothing");
            return None;
        }
        let trial = self.trial(&[]);
        assert!(trial.output.status.success() && trial.log == self.new, "{}", trial.stderr());
        let main = trial.trace.split(' ').next().unwrap();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut calls = Vec::new();
        let mut began = false;
        for line in trial.trace.lines() {
            let Some(call) = line.strip_prefix(main).map(str::trim_start) else { continue };
            let Some((name, _)) = call.split_once('(').filter(|_| !call.starts_with(['<', '+', '-'])) else {
                continue;
            };
            *seen.entry(name).or_default() += 1;
            if began {
                calls.push((name.to_owned(), seen[name]));
            }
            began = began || call.starts_with("write(1, \"Agent:");
        }
        let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
        for needed in ["flock", "write", "fsync"] {
            assert!(names.contains(&needed), "no {needed} in {names:?}");
        }
        assert!(names.iter().any(|name| name.starts_with("rename")), "{names:?}");
        Some(calls)
    }
}

/// Past the capture of output, so that it is seen in a test that passes.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("trim_kill: {text}\n").as_bytes());
}

/// Injects `what` into each call that `wanted` accepts, and looks at each trial with `check`.
fn inject(what: &str, wanted: impl Fn(&str) -> bool, check: impl Fn(&Bench, &str, &Trial)) {
    let bench = Bench::new();
    let Some(calls) = bench.calls() else { return };
    let mut injected = 0;
    let wanted: Vec<_> = calls.iter().filter(|(name, _)| wanted(name)).collect();
    for (name, k) in &wanted {
        let fault = format!("{name}:{what}:when={k}");
        let trial = bench.trial(std::slice::from_ref(&fault));
        assert!(trial.log == bench.old || trial.log == bench.new, "{fault}: torn log {:?}", trial.log);
        assert_eq!(trial.log == bench.new, trial.renamed(), "{fault}: {}", trial.trace);
        if trial.was_injected() {
            injected += 1;
        } else {
            assert!(trial.output.status.success(), "{fault}: {}", trial.stderr());
        }
        check(&bench, &fault, &trial);
        bench.assert_next_trim_works(&fault);
    }
    say(&format!("{what}: {injected} faults injected at {} calls", wanted.len()));
    assert!(injected * 10 >= wanted.len() * 9, "only {injected} of {} faults took place", wanted.len());
}

#[test]
fn killed_at_any_system_call_a_trim_leaves_the_old_log_or_the_new() {
    inject(
        "signal=KILL",
        |_| true,
        |_, fault, trial| {
            assert!(
                !trial.was_injected() || trial.output.status.signal() == Some(9),
                "{fault}: {:?}",
                trial.output
            );
        },
    );
}

#[test]
fn ended_by_a_signal_at_any_system_call_a_trim_leaves_nothing_half_done() {
    inject(
        "signal=TERM",
        |_| true,
        |_, fault, trial| {
            assert_eq!(trial.leftovers, [""; 0], "{fault}");
            // The trim may be over before the thread that takes signals has its turn.
            let code = trial.output.status.code();
            assert!(code == Some(143) || code == Some(0) && trial.renamed(), "{fault}: {:?}", trial.output);
        },
    );
}

fn check_error(_: &Bench, fault: &str, trial: &Trial) {
    assert_eq!(trial.leftovers, [""; 0], "{fault}: {}", trial.stderr());
    match trial.output.status.code() {
        Some(0) => assert!(trial.renamed(), "{fault}: success without a trim"),
        Some(1) => assert!(trial.stderr().starts_with("axe-gc: "), "{fault}: {}", trial.stderr()),
        code => panic!("{fault}: exit {code:?}, {}", trial.stderr()),
    }
}

#[test]
fn a_disk_that_fails_at_any_call_is_an_error_or_harmless() {
    inject("error=EIO", |name| FILE_CALLS.contains(&name), check_error);
}

#[test]
fn a_disk_that_is_full_at_any_call_is_an_error_or_harmless() {
    inject("error=ENOSPC", |name| FILE_CALLS.contains(&name), check_error);
}

#[test]
fn what_cannot_be_cleaned_up_is_swept_by_the_next_trim() {
    let bench = Bench::new();
    let Some(calls) = bench.calls() else { return };
    let written = calls.iter().filter(|(name, _)| name == "write").nth(1).unwrap().1;
    for cleaning in ["unlinkat:error=EIO", "unlinkat:signal=KILL"] {
        let faults = [format!("write:error=ENOSPC:when={written}"), cleaning.to_owned()];
        let trial = bench.trial(&faults);
        assert!(trial.log == bench.old && !trial.output.status.success(), "{cleaning}: {}", trial.stderr());
        assert_eq!(trial.leftovers.len(), 1, "{cleaning}: {}", trial.trace);
        bench.assert_next_trim_works(cleaning);
    }
}

#[test]
fn the_new_log_is_on_the_disk_before_it_has_the_name_and_the_name_before_the_trim_is_over() {
    let bench = Bench::new();
    let Some(calls) = bench.calls() else { return };
    let names: Vec<_> = calls.iter().map(|(name, _)| name.as_str()).collect();
    let at = names.iter().position(|name| name.starts_with("rename")).unwrap();
    let written = names[..at].iter().rposition(|name| *name == "write").unwrap();
    assert!(names[written..at].contains(&"fsync"), "{names:?}");
    let told = at + names[at..].iter().position(|name| *name == "write").unwrap();
    assert!(names[at..told].contains(&"fsync"), "{names:?}");
}
