//! Sessions of Claude Code as short texts, and a model that gives the replies it was handed.
//!
//! A session is written a turn a line: `u: ` the person, `a: ` the agent, `i: ` a command that it runs, `w: ` a page that it
//! fetches, `o: ` what that printed, `x: ` the same of one that failed, `c: ` the summary of a compacted conversation. `\n` in a line is a line break.

use crate::support::Sandbox;
use serde_json::{Value, json};
use std::fmt::Write;

/// Gives the replies of `replies.json` in order, one for each part of a batch. What a reply leaves out of an entry is
/// filled in as a model would that believes every word: it reaches everywhere, and a quote of the person's bears it out.
/// Asked once more because facts would be lost, it calls them all gone.
const BELIEVER: &str = r#"
replies = beside("replies.json")
key = batch + "".join([line.split()[1] for line in lines if line.startswith("part: ")][:1])
path = os.path.join(here, "asked.json")
asked = beside("asked.json") if os.path.exists(path) else []
if key not in asked: asked.append(key)
open(path, "w").write(dumps(asked))
given = replies[asked.index(key)] if asked.index(key) < len(replies) else {}
quote = [{"turn": turn, "quote": text.split("\n")[0]} for turn, who, text in turns() if who == "user"][:1]
entries = []
for entry in given.get("entries", []):
    entry = {"title": "Remember this", "summary": "In short.", "tags": ["topic__dev"], "scope": "global",
             "evidence": quote, "sources": ids, **entry}
    if is_repair:
        entry["gone"] = entry.get("gone", []) + lost()
    entries.append(entry)
retire = [{"reason": "The person said so.", "evidence": quote, "sources": ids, **note} for note in given.get("retire", [])]
skipped = [] if entries or retire else [{"source": id, "reason": "nothing"} for id in ids]
say(entries, skipped, retire=retire, want=given.get("want", []), **{"batch": given["batch"]} if "batch" in given else {})
"#;

impl Sandbox {
    /// Writes the transcript of a session; `said` is all of it, in the form above.
    pub(crate) fn tell(&self, session: &str, said: &str) {
        let mut lines = String::new();
        let mut number = 0;
        for line in said.split('\n').map(str::trim_start).filter(|line| !line.is_empty()) {
            let (who, text) = line.split_once(": ").unwrap_or_else(|| panic!("who says {line:?}?"));
            let text = text.replace("\\n", "\n");
            let (role, content) = match who {
                "u" | "c" => ("user", json!(text)),
                "a" => ("assistant", json!([{"type": "text", "text": text}])),
                "i" | "w" => {
                    number += 1;
                    let (name, input) = match who {
                        "i" => ("Bash", json!({"command": text})),
                        _ => ("WebFetch", json!({"url": text})),
                    };
                    let call =
                        json!({"type": "tool_use", "id": format!("c{number}"), "name": name, "input": input});
                    ("assistant", json!([call]))
                }
                "o" | "x" => (
                    "user",
                    json!([{"type": "tool_result", "tool_use_id": format!("c{number}"), "content": text,
                        "is_error": who == "x"}]),
                ),
                _ => panic!("who says {line:?}?"),
            };
            let mut record = json!({
                "type": role, "uuid": format!("{session}-{}", lines.len()), "sessionId": session,
                "timestamp": "2026-02-27T10:00:00Z", "cwd": self.work(), "message": {"role": role, "content": content},
            });
            match who {
                "c" => record["isCompactSummary"] = json!(true),
                "u" => record["promptSource"] = json!("typed"),
                _ => {}
            }
            let _ = writeln!(lines, "{record}");
        }
        self.write(&self.transcript(session), lines);
    }

    /// Configures a model that gives these replies, one for each part of a batch.
    pub(crate) fn believer(&self, replies: &[Value], more: Value) {
        let command = self.script(BELIEVER);
        self.replies(replies);
        self.llm(&command, more);
    }

    /// What that model answers from now on.
    pub(crate) fn replies(&self, replies: &[Value]) {
        self.write(&self.home().join("replies.json"), json!(replies).to_string());
        let _ = std::fs::remove_file(self.home().join("asked.json"));
    }
}
