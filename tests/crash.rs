//! Disturbs a program of the memory family at each system call that changes something, by strace: it is killed, or
//! its disk fails. What must hold afterwards is up to each program's own tests.
//!
//! A usual run tries a sample of the calls; with `CRASH_ALL` set, every one.

use crate::store::{HOUR, age};
use crate::support::{Sandbox, binary, eventually, is_running};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Calls that change a file or a directory, or make sure that a change lasts.
const CALLS: &str = "openat,write,pwrite64,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,\
                     fsync,fdatasync,ftruncate,linkat,fchmod,fchown,utimensat,copy_file_range,sendfile";

/// Past the capture of output, so that it is seen in a test that passes.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("crash: {text}\n").as_bytes());
}

/// Is every call to be tried?
fn is_all() -> bool {
    std::env::var_os("CRASH_ALL").is_some()
}

/// A program, and what must hold when it was disturbed.
pub(crate) struct Subject {
    pub(crate) program: &'static str,
    /// What a run leaves, but for what differs from run to run.
    pub(crate) tree: fn(&Scenario) -> Tree,
    /// Is all well in the end? Told what the disturbed run said, whether it was killed, and what is wanted.
    pub(crate) check: fn(&Scenario, &Output, bool, &Tree) -> Result<(), String>,
    /// So many calls of a scenario are tried in a usual run.
    pub(crate) sample: usize,
}

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) subject: &'static Subject,
    pub(crate) sandbox: Sandbox,
    /// The program's arguments in the run that is disturbed, and in the next.
    pub(crate) arguments: Vec<String>,
    pub(crate) has_llm: bool,
    /// How many calls of the LLM command the run needs.
    pub(crate) calls: usize,
    /// What is wanted in the end, where the run itself does not leave it.
    pub(crate) aim: Option<Tree>,
}

/// Relative path and content.
pub(crate) type Tree = BTreeMap<String, String>;

impl Scenario {
    /// `answer` are lines of shell that print the reply to `$prompt`, with `$batch` in it.
    pub(crate) fn new(subject: &'static Subject, name: &'static str, calls: usize, answer: &str) -> Scenario {
        let scenario = Scenario {
            name,
            subject,
            sandbox: Sandbox::new(),
            arguments: vec!["--quiet".to_owned()],
            has_llm: true,
            calls,
            aim: None,
        };
        scenario
            .sandbox
            .write(&scenario.sandbox.home().join(".gitconfig"), "[user]\nname = a\nemail = a@b\n");
        let script = format!(
            r#"#!/bin/sh
prompt=$(cat)
batch=$(printf '%s\n' "$prompt" | sed -n '1s/^batch: //p')
case "$prompt" in *"Now reply with the JSON object for batch $batch."*) ;; *) exit 1 ;; esac
{answer}
echo call >> "$DIR/calls"
"#
        );
        let dir = scenario.sandbox.work();
        scenario.sandbox.file("llm", script.replace("$DIR", dir.to_str().unwrap()));
        scenario
    }

    /// Writes the configuration, with `llm` among the keys of that name and `more` beside it.
    pub(crate) fn config(&self, llm: Value, more: Value) {
        let command = self.has_llm.then(|| format!("sh {}", self.sandbox.work().join("llm").display()));
        let mut config = serde_json::json!({
            "storage": {"root": self.root()}, "llm": {"command": command, "maxCallsPerDay": 1000},
        });
        for (place, keys) in [("/llm", llm), ("", more)] {
            let object = config.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
            object.extend(keys.as_object().unwrap().clone());
        }
        self.sandbox.settings(config);
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.live().join("store")
    }

    /// Everything that a run may change.
    pub(crate) fn live(&self) -> PathBuf {
        self.sandbox.home().join("live")
    }

    /// What every trial begins with.
    pub(crate) fn template(&self) -> PathBuf {
        self.sandbox.home().join("template")
    }

    pub(crate) fn command(&self, arguments: &[String]) -> Command {
        let mut command = self.sandbox.std_command(self.subject.program);
        command.args(arguments).stdin(Stdio::null());
        command
    }

    /// An hour later: leftovers are removed when nobody can be writing them any more.
    pub(crate) fn run(&self, arguments: &[String]) -> Output {
        let mut tree = Tree::new();
        walk(&self.live(), &self.live(), &mut tree);
        for path in
            tree.keys().filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with('.')))
        {
            let path = self.live().join(path);
            if path.is_file() {
                age(&path, 2 * HOUR);
            }
        }
        self.command(arguments).output().unwrap()
    }

    /// What is there now is what every trial begins with.
    pub(crate) fn keep_as_template(&self) {
        let _ = fs::remove_dir_all(self.template());
        copy_tree(&self.live(), &self.template());
    }

    pub(crate) fn begin(&self) {
        let _ = fs::remove_dir_all(self.live());
        copy_tree(&self.template(), &self.live());
        let _ = fs::remove_file(self.sandbox.work().join("calls"));
    }

    /// How often the LLM command was run to its end.
    pub(crate) fn calls(&self) -> usize {
        fs::read_to_string(self.sandbox.work().join("calls")).unwrap_or_default().lines().count()
    }

    pub(crate) fn tree(&self) -> Tree {
        (self.subject.tree)(self)
    }

    /// The disturbed run. Only the program itself is traced, not the commands that it runs, nor its threads: these
    /// write to no file.
    fn disturbed(&self, fault: Option<&str>) -> (Output, String) {
        let plain = self.command(&self.arguments);
        let mut command = Command::new("strace");
        command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(self.sandbox.work()).stdin(Stdio::null());
        command.arg("-o").arg(self.sandbox.work().join("trace"));
        match fault {
            Some(fault) => command.arg(format!("--inject={fault}")),
            None => {
                command.arg(format!("--trace={}", CALLS.replace(',', ",?").replacen("openat", "?openat", 1)))
            }
        };
        command.arg(binary(self.subject.program)).args(&self.arguments);
        let output = command.output().unwrap();
        // A killed program's commands go on by themselves.
        let llm = self.sandbox.work().join("llm");
        eventually("the LLM command's end", || !is_running(llm.to_str().unwrap()));
        eventually("git's end", || !self.root().join(".git/index.lock").exists());
        let trace = fs::read_to_string(self.sandbox.work().join("trace")).unwrap_or_default();
        (output, trace)
    }

    /// What git has not committed of the notes.
    pub(crate) fn uncommitted(&self) -> String {
        let mut git = Command::new("git");
        git.args(["status", "--porcelain", "--untracked-files=all", "--", "topics", "archive"])
            .current_dir(self.root());
        String::from_utf8(git.output().unwrap().stdout).unwrap()
    }

    /// The calls that a run makes from its first claim on: name, and the how manieth of that name it is.
    fn points(&self) -> Option<Vec<(String, usize)>> {
        let able = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
        if !able.is_ok_and(|output| output.status.success()) {
            say("strace is missing or may not trace: NO fault was injected, this test shows nothing");
            return None;
        }
        self.begin();
        let (output, trace) = self.disturbed(None);
        assert!(output.status.code() != Some(2), "{output:?}");
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut points = Vec::new();
        let mut began = false;
        for line in trace.lines() {
            let Some((name, rest)) = line.split_once('(').filter(|_| !line.starts_with(['+', '-'])) else {
                continue;
            };
            *seen.entry(name).or_default() += 1;
            began = began || rest.contains(".agent-memory/run.lock");
            if began && (name != "openat" || rest.contains("O_CREAT")) {
                points.push((name.to_owned(), seen[name]));
            }
        }
        Some(points)
    }

    /// Kills the run at its first changing call that names `what`. `false` where there is no strace.
    pub(crate) fn killed_at(&self, what: &str) -> bool {
        if self.points().is_none() {
            return false;
        }
        let trace = fs::read_to_string(self.sandbox.work().join("trace")).unwrap();
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for line in trace.lines() {
            let Some((name, rest)) = line.split_once('(') else { continue };
            *seen.entry(name).or_default() += 1;
            if rest.contains(what) && (name != "openat" || rest.contains("O_CREAT")) {
                self.begin();
                let (output, _) = self.disturbed(Some(&format!("{name}:signal=KILL:when={}", seen[name])));
                assert_eq!(output.status.signal(), Some(9), "{output:?}");
                return true;
            }
        }
        panic!("no call names {what}: {trace}");
    }

    /// The same as [`Scenario::inject`], but not in a usual run.
    pub(crate) fn inject_if_all(&self, what: &str) {
        if is_all() {
            self.inject(what);
        }
    }

    /// Disturbs the run at each call with `what`, then lets the next run end it.
    pub(crate) fn inject(&self, what: &str) {
        let Some(points) = self.points() else { return };
        self.begin();
        let plain = self.run(&self.arguments);
        let wanted = self.aim.clone().unwrap_or_else(|| self.tree());
        assert_eq!(self.calls(), self.calls, "{plain:?}");
        assert_eq!(self.uncommitted(), "", "{plain:?}");
        let step = if is_all() { 1 } else { points.len().div_ceil(self.subject.sample) };
        let mut injected = 0;
        let mut wrong = Vec::new();
        // Each kind of fault begins elsewhere, so that a sample is not always the same calls.
        let chosen: Vec<_> = points.iter().skip(what.len() % step).step_by(step).collect();
        for (name, k) in &chosen {
            let fault = format!("{name}:{what}:when={k}");
            self.begin();
            let (output, trace) = self.disturbed(Some(&fault));
            let is_kill = output.status.signal() == Some(9);
            if is_kill || trace.contains("(INJECTED)") || trace.contains("--- SIGTERM") {
                injected += 1;
            }
            if let Err(why) = (self.subject.check)(self, &output, is_kill, &wanted) {
                wrong.push(format!("{} {fault}: {why}", self.name));
            }
        }
        say(&format!(
            "{}: {what}: {injected} faults injected at {} of {} calls",
            self.name,
            chosen.len(),
            points.len()
        ));
        assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
        assert!(injected * 10 >= chosen.len() * 9, "only {injected} of {} faults took place", chosen.len());
    }
}

pub(crate) fn difference(wanted: &Tree, got: &Tree) -> String {
    let mut text = String::new();
    for path in wanted.keys().chain(got.keys().filter(|path| !wanted.contains_key(*path))) {
        match (wanted.get(path), got.get(path)) {
            (Some(_), None) => text.push_str(&format!("missing: {path}\n")),
            (None, Some(_)) => text.push_str(&format!("surplus: {path}\n")),
            (a, b) if a != b => text.push_str(&format!("differs: {path}: {a:?} / {b:?}\n")),
            _ => {}
        }
    }
    text
}

/// Puts every file below `dir` into `tree`, by its path below `root`.
pub(crate) fn walk(dir: &Path, root: &Path, tree: &mut Tree) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // A batch that is left shows, even when nothing is in it.
            if path.parent().is_some_and(|parent| parent.ends_with("batches")) {
                tree.insert(path.strip_prefix(root).unwrap().display().to_string(), String::new());
            }
            walk(&path, root, tree);
        } else {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            tree.insert(path.strip_prefix(root).unwrap().display().to_string(), text);
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
