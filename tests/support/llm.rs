//! The scripted LLM command of the memory programs, in Python.
//!
//! A test gives [`Sandbox::librarian`] a few lines of Python: `sandbox.librarian("say([note('One')])")`. They run in
//! place of the LLM, once a call, after [`PRELUDE`], which keeps the prompt ([`Sandbox::prompts`]), reads it, and
//! defines the words below. What the script prints is the reply. Its exit status is the command's.
//!
//! What the prompt says:
//!
//! | name | value |
//! |---|---|
//! | `prompt` | the whole prompt |
//! | `number` | how many calls there were before this one |
//! | `batch` | the batch id that the reply must repeat |
//! | `is_repair` | whether this call asks to correct the reply before |
//! | `here` | the directory of the script |
//! | `turns()` | id, role and text of each turn |
//! | `lost()` | the facts that a correction would lose, when it is asked for |
//! | `beside(name)` | the JSON of the file `name` in `here` |
//! | `ids`, `text` | consolidate: the queue ids of the sessions in the prompt; the text of each, by id |
//! | `notes`, `bodies`, `titles` | defrag: each note that is shown whole, its body, its title, by id |
//! | `listed` | defrag: the ids of the notes that get one line each |
//!
//! A reply to `memory-consolidate`:
//!
//! | call | meaning |
//! |---|---|
//! | `note(title, *sources, **more)` | a new note; its sources are all of `ids` if none are given; `more` replaces fields: `body`, `tags`, `scope`, `update`, `ref`, … |
//! | `say(entries, skipped, **more)` | prints the reply; `more` adds fields to it or replaces them |
//! | `reply(entries, skipped, **more)` | the same text, not printed |
//!
//! A reply to `memory-defrag`:
//!
//! | call | meaning |
//! |---|---|
//! | `merge(*ids, **more)` | merges the notes: their bodies joined, the first one's title |
//! | `split(id, *parts)` | splits a note into `parts` |
//! | `part(body, title, **more)` | one part of a split |
//! | `rewrite(id, body)`, `rename(id, title)`, `retag(id, *tags)` | |
//! | `archive(id, reason)`, `tier(id, tier, rank=…)` | |
//! | `do(*operations, **more)` | prints the reply; `more` adds fields to it or replaces them |
//! | `ops(*operations, **more)` | the same text, not printed |

use crate::support::store::names;
use crate::support::{Sandbox, tools};
use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::sync::OnceLock;

/// Without what takes long to import: Python starts in 7 ms, and with `json` and `re` in 17. A script that uses them gets them.
const PRELUDE: &str = r#"
import os, sys
from _json import encode_basestring_ascii as quoted
class Lazy:
    def __init__(self, name): self.name = name
    def __getattr__(self, what): return getattr(__import__(self.name), what)
json, re, time = map(Lazy, ["json", "re", "time"])
def dumps(value):
    if isinstance(value, str): return quoted(value)
    if isinstance(value, dict): return "{" + ", ".join(quoted(key) + ": " + dumps(value[key]) for key in value) + "}"
    if isinstance(value, (list, tuple)): return "[" + ", ".join(map(dumps, value)) + "]"
    return "null" if value is None else repr(value).lower()
here = os.path.dirname(os.path.abspath(__file__))
sys.stdin.reconfigure(encoding="utf-8"); sys.stdout.reconfigure(encoding="utf-8")
prompt = sys.stdin.read()
seen = os.path.join(here, "prompts")
os.makedirs(seen, exist_ok=True)
number = len(os.listdir(seen))
open(os.path.join(seen, "%04d" % number), "w", encoding="utf-8").write(prompt)
lines = prompt.split("\n")
assert prompt.startswith("batch: ")
batch = prompt.split(None, 2)[1]
is_repair = "It cannot be used:" in prompt
def shown(kind):
    found, at = {}, 0
    while at < len(lines):
        words = lines[at].split(" ")
        at += 1
        if words[:2] == ["<<<", kind] and len(words) == 4 and ">>> " + words[3] in lines[at:]:
            end = lines.index(">>> " + words[3], at)
            found[words[2]] = "".join(line + "\n" for line in lines[at:end])
            at = end + 1
    return found
text = shown("session")
ids = list(text)
def turns():
    found = []
    for line in lines:
        name, _, rest = line.partition(" ")
        if name[:2] == "[t" and name[2:].isdigit():
            found.append((name[1:], rest.split(" ")[0], []))
        elif line.startswith(">>> "):
            found.append((None, None, []))
        elif found:
            found[-1][2].append(line + "\n")
    return [(turn, who, "".join(text)) for turn, who, text in found if turn]
def lost():
    parts = [part.partition("; keep them") for part in prompt.split("loses ")[1:]]
    return [fact for facts, end, _ in parts if end and "\n" not in facts for fact in facts.split(", ")]
def beside(name):
    with open(os.path.join(here, name), encoding="utf-8") as file:
        return eval(file.read(), {"true": True, "false": False, "null": None})
def note(title, *sources, **more):
    return {"ref": None, "update": None, "title": title, "summary": "In short.", "tags": ["topic__x"],
            "scope": "repo", "body": "About " + title + ".", "sources": list(sources) or ids, **more}
def reply(entries=(), skipped=(), **more):
    return dumps({"batch": batch, "entries": list(entries), "skipped": list(skipped), **more})
def say(*args, **more):
    print(reply(*args, **more))
notes, bodies, titles = shown("note"), {}, {}
for shown_id in notes:
    head, bodies[shown_id] = notes[shown_id].split("\n\n", 1)
    titles[shown_id] = head.split("\n")[0].removeprefix("title: ")
listed = [line.split()[0] for line in lines if line.startswith("id__") and line.split(" ")[1:2] == ["(scope:"]]
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
def tier(id, tier, **more): return {"op": "tier", "id": id, "tier": tier, **more}
def ops(*operations, **more):
    return dumps({"batch": batch, "operations": list(operations), "notes": "", **more})
def do(*operations, **more):
    print(ops(*operations, **more))
"#;

/// One note for each session.
pub(crate) const NOTE_EACH: &str = "say([note('From ' + id[-8:], id) for id in ids])";

/// A prompt without what it repeats of turns that were read before.
pub(crate) fn without_earlier(prompt: &str) -> String {
    let mut parts = prompt.split("\n=== earlier turns");
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        text.push_str(part.split_once("\n=== new turns").unwrap_or_else(|| panic!("{part}")).1);
    }
    text
}

/// The interpreter itself, as a wrapper may need variables that a sandbox does not set.
pub(crate) fn python() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut command = std::process::Command::new("python3");
        // The one of the system comes first: it starts in three quarters of the time of a developer's.
        let path = [tools(), std::env::var("PATH").unwrap_or_default()].join(":");
        let said = command.env("PATH", path).args(["-c", "import sys; print(sys.executable)"]).output();
        String::from_utf8(said.unwrap().stdout).unwrap().trim().to_owned()
    })
}

impl Sandbox {
    /// Configures an LLM command that runs the Python `script`.
    pub(crate) fn librarian(&self, script: &str) {
        let command = self.script(script);
        self.llm(&command, json!({}));
    }

    /// Writes the script, and returns the command line that runs it.
    pub(crate) fn script(&self, script: &str) -> String {
        let path = self.home().join("llm.py");
        self.write(&path, format!("{PRELUDE}\n{script}\n"));
        format!("{} -SE {}", python(), path.display())
    }

    /// Configures the LLM command, and more keys of `llm`.
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

    /// The prompts of all calls, in order.
    pub(crate) fn prompts(&self) -> Vec<String> {
        let dir = self.home().join("prompts");
        names(&dir).iter().map(|name| fs::read_to_string(dir.join(name)).unwrap()).collect()
    }

    pub(crate) fn last_prompt(&self) -> String {
        self.prompts().pop().unwrap()
    }

    /// The texts of all notes, ordered by file name.
    pub(crate) fn kept(&self) -> Vec<String> {
        let topics = self.store().join("topics");
        names(&topics).iter().map(|name| fs::read_to_string(topics.join(name)).unwrap()).collect()
    }

    /// The text of the note whose file name begins with `slug`.
    pub(crate) fn note_named(&self, slug: &str) -> String {
        let topics = self.store().join("topics");
        let name = names(&topics).into_iter().find(|name| name.starts_with(slug));
        fs::read_to_string(
            topics.join(name.unwrap_or_else(|| panic!("no note {slug}: {:?}", names(&topics)))),
        )
        .unwrap()
    }

    /// The lines of the ledger of calls.
    pub(crate) fn calls(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.store().join(".agent-memory/calls.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
