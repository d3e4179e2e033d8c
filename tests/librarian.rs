//! A scripted LLM for the memory programs: a Python script that answers from its prompt, and keeps every prompt.

use crate::memory_capture::names;
use crate::support::{Sandbox, said};
use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What every script begins with. `ids` are the queue ids of the sessions shown, `text` has what is shown of each.
const COMMON: &str = r#"
import json, os, re, sys, time
here = os.path.dirname(os.path.abspath(__file__))
sys.stdin.reconfigure(encoding="utf-8"); sys.stdout.reconfigure(encoding="utf-8")
prompt = sys.stdin.read()
seen = os.path.join(here, "prompts")
os.makedirs(seen, exist_ok=True)
number = len(os.listdir(seen))
open(os.path.join(seen, "%04d" % number), "w", encoding="utf-8").write(prompt)
batch = re.match(r"batch: (\S+)", prompt).group(1)
is_repair = "It cannot be used:" in prompt
text = {}
for m in re.finditer(r"^<<< session (\S+) (\S+)\n(.*?)^>>> \2$", prompt, re.M | re.S):
    text[m.group(1)] = m.group(3)
ids = list(text)
def note(title, *sources, **more):
    return {"ref": None, "update": None, "title": title, "summary": "In short.", "tags": ["topic__x"],
            "scope": "repo", "body": "About " + title + ".", "sources": list(sources) or ids, **more}
def reply(entries=(), skipped=(), **more):
    return json.dumps({"batch": batch, "entries": list(entries), "skipped": list(skipped), **more})
def say(*args, **more):
    print(reply(*args, **more))
# What memory-defrag shows: each note whole, or a line for each.
notes, bodies, titles = {}, {}, {}
for m in re.finditer(r"^<<< note (\S+) (\S+)\n(.*?)^>>> \2$", prompt, re.M | re.S):
    notes[m.group(1)] = m.group(3)
    head, bodies[m.group(1)] = m.group(3).split("\n\n", 1)
    titles[m.group(1)] = head.split("\n")[0].removeprefix("title: ")
listed = re.findall(r"^(id__\S+) \(scope: ", prompt, re.M)
def part(body, title="A title", **more):
    return {"title": title, "summary": "In short.", "tags": [], "body": body, **more}
def merge(*ids, **more):
    body = "\n\n".join(bodies[id].strip() for id in ids)
    return {"op": "merge", "ids": list(ids), **part(body, titles[ids[0]]), **more}
def split(id, *parts): return {"op": "split", "id": id, "into": list(parts)}
def rewrite(id, body, **more): return {"op": "rewrite", "id": id, "summary": "In short.", "body": body, **more}
def rename(id, title): return {"op": "rename", "id": id, "title": title}
def retag(id, *tags): return {"op": "retag", "id": id, "tags": list(tags)}
def archive(id, reason="wrong now"): return {"op": "archive", "id": id, "reason": reason}
def tier(id, tier): return {"op": "tier", "id": id, "tier": tier}
def ops(*operations, **more):
    return json.dumps({"batch": batch, "operations": list(operations), "notes": "", **more})
def do(*operations, **more):
    print(ops(*operations, **more))
"#;

/// One note for each session.
pub(crate) const NOTE_EACH: &str = "say([note('From ' + id[-8:], id) for id in ids])";

/// The interpreter itself: a wrapper may need more of the environment than a sandbox has.
fn python() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let said =
            std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        String::from_utf8(said.unwrap().stdout).unwrap().trim().to_owned()
    })
}

impl Sandbox {
    /// The LLM answers as the Python `script` says.
    pub(crate) fn librarian(&self, script: &str) {
        let command = self.script(script);
        self.llm(&command, json!({}));
    }

    /// Writes the script; the command line that runs it.
    pub(crate) fn script(&self, script: &str) -> String {
        let path = self.home().join("llm.py");
        self.write(&path, format!("{COMMON}\n{script}\n"));
        format!("{} -SE {}", python(), path.display())
    }

    /// Sets the command, and more of `llm`.
    pub(crate) fn llm(&self, command: &str, more: Value) {
        let mut llm = json!({"command": command});
        llm.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.settings(json!({"llm": llm, "storage": {"autoCommit": false}}));
    }

    pub(crate) fn settings(&self, settings: Value) {
        self.write(&self.home().join(".config/agent-memory/config.json"), settings.to_string());
    }

    pub(crate) fn consolidate(&self, args: &[&str]) -> Command {
        let mut command = self.command("memory-consolidate");
        command.args(args).timeout(std::time::Duration::from_secs(60));
        command
    }

    /// Runs it once; exit code and stderr. Then every entry that was ever queued must be somewhere.
    pub(crate) fn consolidated(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let before = self.everywhere();
        let result = said(&mut self.consolidate(args));
        assert_eq!(self.everywhere(), before, "{}", result.2);
        result
    }

    /// Every entry of the queue, wherever it is now; no entry is in two places.
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

    /// Batches that a run has left.
    pub(crate) fn batches(&self) -> Vec<String> {
        names(&self.store().join(".agent-memory/batches"))
    }

    /// The prompts that the script was given, in order.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let dir = self.home().join("prompts");
        names(&dir).iter().map(|name| fs::read_to_string(dir.join(name)).unwrap()).collect()
    }

    pub(crate) fn last_prompt(&self) -> String {
        self.prompts().pop().unwrap()
    }

    /// The notes' files, by name.
    pub(crate) fn kept(&self) -> Vec<String> {
        let topics = self.store().join("topics");
        names(&topics).iter().map(|name| fs::read_to_string(topics.join(name)).unwrap()).collect()
    }

    /// The note whose file begins with `slug`.
    pub(crate) fn note_named(&self, slug: &str) -> String {
        let topics = self.store().join("topics");
        let name = names(&topics).into_iter().find(|name| name.starts_with(slug));
        fs::read_to_string(
            topics.join(name.unwrap_or_else(|| panic!("no note {slug}: {:?}", names(&topics)))),
        )
        .unwrap()
    }

    /// What the ledger of calls says, line by line.
    pub(crate) fn calls(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.store().join(".agent-memory/calls.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Queues a note; its queue id.
    pub(crate) fn jot(&self, title: &str, body: &str) -> String {
        self.queue_with(self.capture(&["--title", title, "--body", body]))
    }

    /// Queues a session of Claude Code, as its hook does; its queue id.
    pub(crate) fn hear(&self, session: &str) -> String {
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

    fn queue_with(&self, mut capture: Command) -> String {
        let (code, out, err) = said(&mut capture);
        assert_eq!(code, Some(0), "{err}");
        Path::new(out.trim_end()).file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// Queues an entry as it stands; its queue id.
    pub(crate) fn queue(&self, entry: &Value) -> String {
        let mut capture = self.capture(&["--entry"]);
        capture.write_stdin(entry.to_string());
        self.queue_with(capture)
    }

    pub(crate) fn transcript(&self, session: &str) -> PathBuf {
        self.work().join(format!("{session}.jsonl"))
    }

    /// A session of Claude Code: each turn is who spoke and what.
    pub(crate) fn talk(&self, session: &str, turns: &[(&str, &str)]) {
        let lines: String = turns
            .iter()
            .enumerate()
            .map(|(index, (role, text))| {
                let uuid = format!("{session}-{index}");
                let content =
                    if *role == "user" { json!(text) } else { json!([{"type": "text", "text": text}]) };
                let line = json!({
                    "type": role, "uuid": uuid, "sessionId": session, "timestamp": "2026-02-27T10:00:00Z",
                    "cwd": self.work(), "message": {"role": role, "content": content},
                });
                format!("{line}\n")
            })
            .collect();
        self.write(&self.transcript(session), lines);
    }

    /// A session with one question and its answer, queued.
    pub(crate) fn heard(&self, session: &str, question: &str) -> String {
        self.talk(session, &[("user", question), ("assistant", "So it is.")]);
        self.hear(session)
    }
}

fn queue_ids(dir: &Path) -> Vec<String> {
    let names = names(dir).into_iter().filter(|name| !name.ends_with(".error.json"));
    names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect()
}
