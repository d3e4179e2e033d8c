//! A sandbox that can be reset to its first state again and again, with a program to run in it and a shell script as
//! the LLM command.

use crate::support::Sandbox;
use serde_json::{Value, json};
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// No run here waits for anything: one that takes this long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The directory, in the working directory, of what other machines have. It is restored like everything else, and no
/// part of the tree.
pub(crate) const ELSEWHERE: &str = "elsewhere";

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) program: &'static str,
    pub(crate) arguments: Vec<String>,
    pub(crate) stdin: String,
    /// Further variables.
    pub(crate) variables: Vec<(String, OsString)>,
    /// The store of notes, if there is one.
    pub(crate) root: Option<PathBuf>,
    /// The final tree, where the run itself does not leave it.
    pub(crate) aim: Option<Tree>,
    /// Servers that live as long as the world.
    pub(crate) servers: Vec<Box<dyn Any + Send + Sync>>,
}

/// A file, directory or link: its mode, and its bytes. A link's bytes are its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) mode: u32,
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Nodes by path below the sandbox.
pub(crate) type Tree = BTreeMap<String, Node>;

impl Node {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes.as_deref().unwrap_or_default()).into_owned()
    }
}

impl World {
    pub(crate) fn new(program: &'static str, arguments: &[&str]) -> World {
        World::of(Sandbox::new(), program, arguments)
    }

    pub(crate) fn of(sandbox: Sandbox, program: &'static str, arguments: &[&str]) -> World {
        World {
            sandbox,
            program,
            arguments: words(arguments),
            stdin: String::new(),
            variables: Vec::new(),
            root: None,
            aim: None,
            servers: Vec::new(),
        }
    }

    /// With a store and an LLM command: `answer` is shell code that prints a reply to `$prompt` for `$batch`. Every call is
    /// counted.
    pub(crate) fn with_llm(program: &'static str, arguments: &[&str], answer: &str) -> World {
        let mut world = World::new(program, arguments);
        world.root = Some(world.sandbox.home().join("store"));
        world.sandbox.write(&world.sandbox.home().join(".gitconfig"), "[user]\nname = a\nemail = a@b\n");
        let script = format!(
            r#"#!/bin/sh
prompt=$(cat)
first=${{prompt%%
*}}
batch=${{first#batch: }}
case "$prompt" in *"Now reply with the JSON object for batch $batch."*) ;; *) exit 1 ;; esac
{answer}
echo call >> "$DIR/calls"
"#
        );
        let dir = world.sandbox.work();
        world.sandbox.file("llm", script.replace("$DIR", dir.to_str().unwrap()));
        world
    }

    /// Writes the configuration: `llm` is added to the section of that name, `more` to the whole.
    pub(crate) fn config(&self, llm: Value, more: Value) {
        let command = format!("sh {}", self.sandbox.work().join("llm").display());
        let mut config = json!({
            "storage": {"root": self.root()}, "llm": {"command": command, "maxCallsPerDay": 1000},
        });
        for (place, keys) in [("/llm", llm), ("", more)] {
            let object = config.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
            object.extend(keys.as_object().unwrap().clone());
        }
        self.sandbox.write(&self.sandbox.home().join(".config/agent-memory/config.json"), config.to_string());
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.clone().unwrap()
    }

    pub(crate) fn command(&self, program: &str, arguments: &[String]) -> Command {
        let mut command = self.sandbox.std_command(program);
        command.args(arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, arguments: &[String]) -> Output {
        self.ended(self.command(self.program, arguments)).unwrap()
    }

    /// Runs it to its end; `Err` if it hangs.
    pub(crate) fn ended(&self, command: Command) -> Result<Output, String> {
        self.ended_within(PATIENCE, command)
    }

    /// The same for one that takes longer.
    pub(crate) fn ended_within(&self, patience: Duration, mut command: Command) -> Result<Output, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child: Child = command.spawn().unwrap();
        // The program may not read it.
        let _ = child.stdin.take().unwrap().write_all(self.stdin.as_bytes());
        let pid = rustix::process::Pid::from_child(&child);
        let (done, ended) = channel();
        std::thread::scope(|scope| {
            let watch = scope.spawn(move || {
                let is_late = ended.recv_timeout(patience).is_err();
                if is_late {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
                is_late
            });
            let output = child.wait_with_output().unwrap();
            let _ = done.send(());
            if watch.join().unwrap() { Err(format!("it hangs: {output:?}")) } else { Ok(output) }
        })
    }

    /// The directories that a run may change.
    fn live(&self) -> [PathBuf; 2] {
        [self.sandbox.home(), self.sandbox.work()]
    }

    /// A path outside home and working directory, where no program looks.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.sandbox.home().with_file_name(name)
    }

    /// Saves the current state, which every trial starts from.
    pub(crate) fn keep_as_template(&self) {
        self.make_private();
        let _ = fs::remove_dir_all(self.beside("template"));
        for dir in self.live() {
            copy_tree(&dir, &self.beside("template").join(dir.file_name().unwrap()));
        }
    }

    /// A store's directories as the programs make them. Where they cannot take one away from others, they go on, and
    /// the doctor reports it.
    fn make_private(&self) {
        use std::os::unix::fs::PermissionsExt;
        for store in self.root.iter().cloned().chain([self.sandbox.home().join(".local/share/agent-memory")])
        {
            for part in ["inbox", "topics", "archive", "proposals", ".agent-memory", ".git"] {
                let dir = store.join(part);
                if dir.is_dir() {
                    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
                }
            }
        }
    }

    /// Restores the saved state.
    pub(crate) fn begin(&self) {
        for dir in self.live() {
            let _ = fs::remove_dir_all(&dir);
            copy_tree(&self.beside("template").join(dir.file_name().unwrap()), &dir);
        }
    }

    /// All files and directories, except in `.git` and on other machines.
    pub(crate) fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for dir in self.live() {
            walk(&dir, &dir, &mut tree);
        }
        tree
    }

    /// The notes of the store, by directory and name.
    pub(crate) fn notes(&self) -> Tree {
        let mut tree = Tree::new();
        for place in ["topics", "archive"] {
            walk(&self.root().join(place), &self.root(), &mut tree);
        }
        tree.retain(|_, node| node.bytes.is_some());
        tree
    }

    /// How many calls of the LLM command ran to their end.
    pub(crate) fn calls(&self) -> usize {
        fs::read_to_string(self.sandbox.work().join("calls")).unwrap_or_default().lines().count()
    }

    /// The number of calls in the ledger.
    pub(crate) fn counted(&self) -> usize {
        let ledger = fs::read_to_string(self.root().join(".agent-memory/calls.jsonl")).unwrap_or_default();
        ledger.lines().filter(|line| line.contains("\"event\":\"started\"")).count()
    }

    /// `git status` of the notes; empty if the store has no history, or one without a first commit.
    pub(crate) fn uncommitted(&self) -> String {
        let Some(root) = self.root.as_ref().filter(|root| root.join(".git").exists()) else {
            return String::new();
        };
        let first = Command::new("git").args(["rev-parse", "--verify", "HEAD"]).current_dir(root).output();
        if !first.unwrap().status.success() {
            return String::new();
        }
        let mut git = Command::new("git");
        git.args(["status", "--porcelain", "--untracked-files=all", "--", "topics", "archive"])
            .current_dir(self.root());
        let output = git.output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

pub(crate) fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|word| (*word).to_owned()).collect()
}

/// Adds everything below `dir` to `tree`, by path from the parent of `top`.
fn walk(dir: &Path, top: &Path, tree: &mut Tree) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
        let name = path.strip_prefix(top.parent().unwrap()).unwrap().display().to_string();
        let bytes = if metadata.is_symlink() {
            Some(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
        } else if metadata.is_dir() {
            if path.ends_with(".git") || path.ends_with(ELSEWHERE) {
                continue;
            }
            walk(&path, top, tree);
            None
        } else {
            Some(fs::read(&path).unwrap())
        };
        tree.insert(name, Node { mode, bytes });
    }
}

/// Keeps modes and times, as some leftovers only count when they are old.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path).unwrap(), &target).unwrap();
        } else if metadata.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
            // The time of a read-only file cannot be set.
            if let Ok(file) = fs::File::options().append(true).open(&target) {
                file.set_modified(metadata.modified().unwrap()).unwrap();
            }
        }
    }
    fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
}
