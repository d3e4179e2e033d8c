//! `memory-consolidate`, killed or refused by the disk at each system call that changes something, by strace: the
//! next run ends what was begun, with the same bytes, and pays for no reply twice.
//!
//! A usual run tries a sample of the calls; with `CRASH_ALL` set, every one.

#![cfg(target_os = "linux")]

use crate::support::{NOW, Sandbox, binary, eventually, is_running};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Calls that change a file or a directory, or make sure that a change lasts.
const CALLS: &str = "openat,write,pwrite64,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,\
                     fsync,fdatasync,ftruncate,linkat,fchmod,fchown,utimensat,copy_file_range,sendfile";

/// So many calls of a scenario are tried in a usual run.
const SAMPLE: usize = 7;

const REPO: &str = "github.com/o/r";

/// Past the capture of output, so that it is seen in a test that passes.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("consolidate_crash: {text}\n").as_bytes());
}

struct Scenario {
    name: &'static str,
    sandbox: Sandbox,
    /// The program's arguments in the run that is disturbed, and in the next.
    arguments: Vec<String>,
    has_llm: bool,
    /// How many calls of the LLM command the run needs.
    calls: usize,
}

/// All that a run leaves, but for what differs from run to run: relative path and content.
type Tree = BTreeMap<String, String>;

impl Scenario {
    fn new(name: &'static str, calls: usize) -> Scenario {
        let scenario = Scenario {
            name,
            sandbox: Sandbox::new(),
            arguments: vec!["--quiet".to_owned()],
            has_llm: true,
            calls,
        };
        scenario.config("");
        scenario
            .sandbox
            .write(&scenario.sandbox.home().join(".gitconfig"), "[user]\nname = a\nemail = a@b\n");
        let script = r#"#!/bin/sh
prompt=$(cat)
batch=$(printf '%s\n' "$prompt" | sed -n '1s/^batch: //p')
case "$prompt" in *"Now reply with the JSON object for batch $batch."*) ;; *) exit 1 ;; esac
reply=reply-1.json
case "$prompt" in *"part: 2 of "*) reply=reply-2.json ;; esac
sed "s/BATCH/$batch/" "$DIR/$reply"
echo call >> "$DIR/calls"
"#;
        let dir = scenario.sandbox.work();
        scenario.sandbox.file("llm", script.replace("$DIR", dir.to_str().unwrap()));
        scenario
    }

    fn config(&self, more: &str) {
        let command = format!("sh {}", self.sandbox.work().join("llm").display());
        let command = if self.has_llm { serde_json::json!(command) } else { serde_json::Value::Null };
        let text = format!(
            r#"{{"storage": {{"root": "{}"}}, "llm": {{"command": {command}, "maxCallsPerDay": 1000 {more}}}}}"#,
            self.root().display()
        );
        self.sandbox.write(&self.sandbox.home().join(".config/agent-memory/config.json"), text);
    }

    fn root(&self) -> PathBuf {
        self.sandbox.home().join("store")
    }

    /// What every trial begins with.
    fn template(&self) -> PathBuf {
        self.sandbox.home().join("template")
    }

    fn queue(&self, id: &str, harness: &str, retrieval: serde_json::Value) {
        let entry = serde_json::json!({
            "version": 1, "timestamp": "2026-02-28T12:00:00.000Z", "harness": harness,
            "retrieval": retrieval, "context": {"cwd": "/w", "repo": REPO},
        });
        self.sandbox.write(&self.root().join(format!("inbox/{id}.json")), entry.to_string());
    }

    fn queue_session(&self, id: &str, session: &str) {
        let path = self.sandbox.work().join(format!("{session}.jsonl"));
        self.queue(
            id,
            "claude-code",
            serde_json::json!({"method": "transcript", "path": path, "format": "claude-code", "sessionId": session}),
        );
    }

    fn queue_note(&self, id: &str, title: &str) {
        self.queue(
            id,
            "manual",
            serde_json::json!({"method": "inline", "title": title, "body": "As it stands: 42.", "tags": ["topic__x"],
                "scope": "global", "threadId": null}),
        );
    }

    /// A Claude Code session with turns of these lengths.
    fn session(&self, session: &str, turns: usize, length: usize) {
        let mut text = String::new();
        for turn in 0..turns {
            let role = if turn % 2 == 0 { "user" } else { "assistant" };
            let said = format!("turn {turn} {}", "word ".repeat(length / 5));
            let record = serde_json::json!({
                "type": role, "uuid": format!("u-{session}-{turn}"), "sessionId": session, "cwd": "/w",
                "timestamp": "2026-02-28T10:00:00.000Z",
                "message": {"role": role, "content": [{"type": "text", "text": said}]},
            });
            text.push_str(&format!("{record}\n"));
        }
        self.sandbox.file(&format!("{session}.jsonl"), text);
    }

    fn reply(&self, number: usize, reply: &serde_json::Value) {
        self.sandbox.file(&format!("reply-{number}.json"), reply.to_string());
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = self.sandbox.std_command("memory-consolidate");
        command.args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[String]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What is in the store now is what every trial begins with.
    fn keep_as_template(&self) {
        copy_tree(&self.root(), &self.template());
    }

    fn begin(&self) {
        let _ = fs::remove_dir_all(self.root());
        copy_tree(&self.template(), &self.root());
        let _ = fs::remove_file(self.sandbox.work().join("calls"));
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.sandbox.work().join("calls")).unwrap_or_default().lines().count()
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
        command.arg(binary("memory-consolidate")).args(&self.arguments);
        let output = command.output().unwrap();
        // A killed program's commands go on by themselves.
        let store = self.sandbox.work().join("llm");
        eventually("the LLM command's end", || !is_running(store.to_str().unwrap()));
        eventually("git's end", || !self.root().join(".git/index.lock").exists());
        let trace = fs::read_to_string(self.sandbox.work().join("trace")).unwrap_or_default();
        (output, trace)
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for part in ["topics", "archive", "inbox", ".agent-memory"] {
            walk(&self.root().join(part), &self.root(), &mut tree);
        }
        // Names of processes and batches, times: not the same twice.
        tree.retain(|path, _| !path.ends_with(".lock") && !path.ends_with("calls.jsonl"));
        for (path, text) in &mut tree {
            if path.ends_with("tries.json") {
                *text = masked(text);
            }
        }
        tree
    }

    /// What git has not committed of the notes.
    fn uncommitted(&self) -> String {
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

    /// Disturbs the run at each call with `what`, then lets the next run end it.
    fn inject(&self, what: &str) {
        let Some(points) = self.points() else { return };
        self.begin();
        let plain = self.run(&self.arguments);
        let wanted = (plain.status.code(), self.tree());
        assert_eq!(self.calls(), self.calls, "{plain:?}");
        assert_eq!(self.uncommitted(), "", "{plain:?}");
        let is_whole = std::env::var_os("CRASH_ALL").is_some();
        let step = if is_whole { 1 } else { points.len().div_ceil(SAMPLE) };
        let mut injected = 0;
        let mut wrong = Vec::new();
        // Each kind of fault begins elsewhere, so that a sample is not always the same calls.
        let chosen: Vec<_> = points.iter().skip(what.len() % step).step_by(step).collect();
        for (name, k) in &chosen {
            let fault = format!("{name}:{what}:when={k}");
            self.begin();
            let (output, trace) = self.disturbed(Some(&fault));
            let is_kill = output.status.signal() == Some(9);
            if is_kill || trace.contains("(INJECTED)") {
                injected += 1;
            }
            if let Err(why) = self.check(&output, is_kill, &wanted.1) {
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

    /// Is all well in the end?
    fn check(&self, disturbed: &Output, is_kill: bool, wanted: &Tree) -> Result<(), String> {
        let said = String::from_utf8_lossy(&disturbed.stderr).into_owned();
        let is_told = said.contains("memory-consolidate: ") || said.contains("Warning: ");
        if !is_kill && disturbed.status.code() == Some(1) && !is_told {
            return Err(format!("an error without a word: {disturbed:?}"));
        }
        if !is_kill && !matches!(disturbed.status.code(), Some(0..=3)) {
            return Err(format!("{disturbed:?}"));
        }
        let next = self.run(&self.arguments);
        // What was carried out by hand is known no more; the plain run has nothing left to do then.
        let last = self.run(&["--quiet".to_owned()]);
        let told = format!(
            "disturbed: {:?} {said}next: {:?} {}last: {:?} {}",
            disturbed.status.code(),
            next.status.code(),
            String::from_utf8_lossy(&next.stderr),
            last.status.code(),
            String::from_utf8_lossy(&last.stderr)
        );
        let tree = self.tree();
        if tree != *wanted {
            return Err(format!("{}\n{told}", difference(wanted, &tree)));
        }
        if self.calls() > self.calls {
            return Err(format!("{} calls instead of {}\n{told}", self.calls(), self.calls));
        }
        match self.uncommitted() {
            // What git could not do then, it does with the next notes that are written.
            _ if said.contains("but not committed") => Ok(()),
            rest if rest.is_empty() => Ok(()),
            rest => Err(format!("not committed: {rest}\n{told}")),
        }
    }
}

/// Without what differs from run to run.
fn masked(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("\"batch\""));
    lines.collect::<Vec<_>>().join("\n")
}

fn difference(wanted: &Tree, got: &Tree) -> String {
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

fn walk(dir: &Path, root: &Path, tree: &mut Tree) {
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

fn entry(label: &str, title: &str, body: &str, sources: &[&str]) -> serde_json::Value {
    serde_json::json!({"ref": label, "update": null, "title": title, "summary": "in one line",
        "tags": ["topic__x"], "scope": "repo", "body": body, "sources": sources})
}

/// A note of a person's, a session of which a part is known, an update, two linked notes, a session that is
/// missing for the last time, one with nothing in it.
fn mixed(has_llm: bool) -> Scenario {
    let mut scenario = Scenario::new(if has_llm { "mixed" } else { "without an LLM" }, usize::from(has_llm));
    scenario.session("s1", 2, 100);
    scenario.session("s2", 2, 100);
    scenario.queue_session("q0", "s1");
    let known = serde_json::json!({"batch": "BATCH", "skipped": [], "entries":
        [entry("n1", "Known before", "The port is 8080, see src/main.rs.", &["q0"])]});
    scenario.reply(1, &known);
    let output = scenario.run(&["--quiet".to_owned()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let names = fs::read_dir(scenario.root().join("topics")).unwrap().map(|entry| entry.unwrap().file_name());
    let name = names.last().unwrap().into_string().unwrap();
    let id = name.trim_end_matches(".md").rsplit(' ').next().unwrap().to_owned();
    // More is said in a session of which the beginning has been read.
    scenario.session("s1", 6, 100);
    scenario.queue_note("q1", "A note of mine");
    scenario.queue_note("q5", "Another note");
    if has_llm {
        scenario.queue_session("q2", "s1");
        scenario.queue_session("q3", "missing");
        scenario.queue_session("q4", "s2");
    } else {
        scenario.has_llm = false;
        scenario.config("");
    }
    let mut update =
        entry("n3", "Known better", "The port is 8080, see src/main.rs; 8081 in tests.", &["q2"]);
    update["update"] = serde_json::json!(id);
    let reply = serde_json::json!({"batch": "BATCH", "entries": [
            entry("n1", "First", "It leads to [[n2]].", &["q2", "q1"]),
            entry("n2", "Second", "It leads to [[n1]] and [[n3]].", &["q2"]), update],
        "skipped": [{"source": "q4", "reason": "nothing new"}, {"source": "q5", "reason": "no"}]});
    scenario.reply(1, &reply);
    let tries =
        serde_json::json!({"q3": {"tries": 2, "error": "no file", "alone": false, "batch": "before"}});
    scenario.sandbox.write(&scenario.root().join(".agent-memory/tries.json"), tries.to_string());
    scenario.keep_as_template();
    scenario
}

/// A session that takes two calls.
fn two_parts() -> Scenario {
    let scenario = Scenario::new("two parts", 2);
    scenario.config(r#", "maxPromptBytes": 16000"#);
    scenario.session("s1", 6, 1500);
    scenario.queue_session("q1", "s1");
    for (part, title) in [(1, "From the first part"), (2, "From the second part")] {
        let reply = serde_json::json!({"batch": "BATCH", "skipped": [],
            "entries": [entry("n1", title, "A fact.", &["q1"])]});
        scenario.reply(part, &reply);
    }
    scenario.sandbox.write(&scenario.root().join("topics/.keep"), "");
    scenario.keep_as_template();
    scenario
}

/// A reply that a person brings.
fn by_hand() -> Scenario {
    let mut scenario = mixed(true);
    scenario.name = "by hand";
    scenario.calls = 0;
    scenario.begin();
    let output = scenario.run(&["--prompt".to_owned()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let prompt = String::from_utf8(output.stdout).unwrap();
    let batch = prompt.lines().next().unwrap().trim_start_matches("batch: ");
    let reply = fs::read_to_string(scenario.sandbox.work().join("reply-1.json")).unwrap();
    scenario.sandbox.file("answer.json", reply.replace("BATCH", batch));
    scenario.arguments = ["--quiet", "--apply", "answer.json"].map(str::to_owned).to_vec();
    let _ = fs::remove_dir_all(scenario.template());
    scenario.keep_as_template();
    scenario
}

#[test]
fn killed_at_any_call_a_run_is_ended_by_the_next() {
    mixed(true).inject("signal=KILL");
}

#[test]
fn killed_in_either_part_a_session_is_ended_by_the_next_run() {
    two_parts().inject("signal=KILL");
}

#[test]
fn killed_at_any_call_notes_are_filed_once_without_an_llm() {
    mixed(false).inject("signal=KILL");
}

#[test]
fn killed_at_any_call_a_reply_brought_by_hand_is_carried_out_once() {
    by_hand().inject("signal=KILL");
}

#[test]
fn a_disk_that_fails_at_any_call_costs_nothing() {
    mixed(true).inject("error=EIO");
    two_parts().inject("error=EIO");
}

#[test]
fn a_disk_that_is_full_at_any_call_costs_nothing() {
    mixed(false).inject("error=ENOSPC");
    by_hand().inject("error=ENOSPC");
}

#[test]
fn the_clock_stands_still_in_these_tests() {
    // Were it not pinned, no two runs would leave the same bytes.
    let scenario = mixed(false);
    scenario.begin();
    scenario.run(&scenario.arguments);
    assert!(scenario.tree().values().any(|text| text.contains(&NOW[..10])), "{:?}", scenario.tree());
}
