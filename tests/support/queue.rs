//! The queue: `memory-capture`, sessions of Claude Code to capture, and where every entry is.

use crate::support::store::names;
use crate::support::{Sandbox, said};
use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const BOTH: [&str; 4] = ["--title", "Guards are pure", "--body", "Put I/O in actors."];

impl Sandbox {
    pub(crate) fn store(&self) -> PathBuf {
        self.home().join(".local/share/agent-memory")
    }

    /// The names of the files in the queue, sorted.
    pub(crate) fn queued(&self) -> Vec<String> {
        let mut names = names(&self.store().join("inbox"));
        names.retain(|name| name != ".kept");
        names
    }

    pub(crate) fn capture(&self, args: &[&str]) -> Command {
        let mut command = self.command("memory-capture");
        command.args(args);
        command
    }

    /// Runs `memory-consolidate` once: exit code, stdout, stderr. Fails if an entry got lost.
    pub(crate) fn consolidated(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let before = self.everywhere();
        let result = said(&mut self.consolidate(args));
        assert_eq!(self.everywhere(), before, "{}", result.2);
        result
    }

    /// The queue ids of all entries, wherever they are now. Fails if one is in two places.
    pub(crate) fn everywhere(&self) -> Vec<String> {
        let inbox = self.store().join("inbox");
        let batches = self.store().join(".agent-memory/batches");
        let mut all = Vec::new();
        for dir in [inbox.clone(), inbox.join(".processed"), inbox.join(".failed")] {
            all.extend(queue_ids(&dir));
        }
        for batch in names(&batches) {
            all.extend(queue_ids(&batches.join(batch).join("claimed")));
        }
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count, "an entry is in two places");
        all
    }

    pub(crate) fn waiting(&self) -> Vec<String> {
        queue_ids(&self.store().join("inbox"))
    }

    pub(crate) fn processed(&self) -> Vec<String> {
        queue_ids(&self.store().join("inbox/.processed"))
    }

    pub(crate) fn failed(&self) -> Vec<String> {
        queue_ids(&self.store().join("inbox/.failed"))
    }

    /// The queue id of the one entry that a batch has claimed.
    pub(crate) fn queue_id_of(&self, batch: &str) -> String {
        let claimed = queue_ids(&self.store().join(".agent-memory/batches").join(batch).join("claimed"));
        let [id] = &claimed[..] else { panic!("{claimed:?}") };
        id.clone()
    }

    /// The batches that runs have left behind.
    pub(crate) fn batches(&self) -> Vec<String> {
        names(&self.store().join(".agent-memory/batches"))
    }

    /// Queues a note, and returns its queue id.
    pub(crate) fn jot(&self, title: &str, body: &str) -> String {
        self.queue_with(self.capture(&["--title", title, "--body", body]))
    }

    /// Queues a session of Claude Code as its hook does, and returns the queue id.
    pub(crate) fn hear(&self, session: &str) -> String {
        self.in_a_repository();
        let hook = json!({
            "session_id": session, "transcript_path": self.transcript(session), "cwd": self.work(),
            "hook_event_name": "SessionEnd",
        });
        let mut capture = self.capture(&["--harness", "claude-code", "--json"]);
        capture.write_stdin(hook.to_string());
        let (code, out, err) = said(&mut capture);
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<Value>(&out).unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Makes the working directory a checkout of `github.com/o/r`, if it is none yet: notes from sessions land there.
    pub(crate) fn in_a_repository(&self) {
        let git = self.work().join(".git");
        if !git.exists() {
            self.write(&git.join("HEAD"), "ref: refs/heads/main\n");
            let config = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = https://github.com/o/r.git\n";
            self.write(&git.join("config"), config);
        }
    }

    fn queue_with(&self, mut capture: Command) -> String {
        let (code, out, err) = said(&mut capture);
        assert_eq!(code, Some(0), "{err}");
        Path::new(out.trim_end()).file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// Queues a whole entry, and returns its queue id.
    pub(crate) fn queue(&self, entry: &Value) -> String {
        let mut capture = self.capture(&["--entry"]);
        capture.write_stdin(entry.to_string());
        self.queue_with(capture)
    }

    /// Where Claude Code would keep the session.
    pub(crate) fn transcript(&self, session: &str) -> PathBuf {
        self.home().join(format!(".claude/projects/p/{session}.jsonl"))
    }

    /// Writes the transcript of a Claude Code session: turns of role and text.
    pub(crate) fn talk(&self, session: &str, turns: &[(&str, &str)]) {
        let lines: String = turns
            .iter()
            .enumerate()
            .map(|(index, (role, text))| {
                let uuid = format!("{session}-{index}");
                let content =
                    if *role == "user" { json!(text) } else { json!([{"type": "text", "text": text}]) };
                let mut line = json!({
                    "type": role, "uuid": uuid, "sessionId": session, "timestamp": "2026-02-27T10:00:00Z",
                    "cwd": self.work(), "message": {"role": role, "content": content},
                });
                if *role == "user" {
                    line["promptSource"] = json!("typed");
                }
                format!("{line}\n")
            })
            .collect();
        self.write(&self.transcript(session), lines);
    }

    /// Writes and queues a session with one question and its answer.
    pub(crate) fn heard(&self, session: &str, question: &str) -> String {
        self.talk(session, &[("user", question), ("assistant", "So it is.")]);
        self.hear(session)
    }
}

pub(crate) fn entry_at(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path.trim_end()).unwrap()).unwrap()
}

/// What a command prints when it succeeds without a warning.
pub(crate) fn out(command: &mut Command) -> String {
    let (code, out, err) = said(command);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    out
}

/// What Claude Code passes to its hook, with a transcript that exists.
pub(crate) fn hook(sandbox: &Sandbox) -> String {
    sandbox.file("s.jsonl", "{}\n");
    let path = sandbox.work().join("s.jsonl");
    json!({"session_id": "s", "transcript_path": path, "cwd": "/", "hook_event_name": "Stop"}).to_string()
}

fn queue_ids(dir: &Path) -> Vec<String> {
    let names = names(dir).into_iter().filter(|name| !name.ends_with(".error.json"));
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}
