//! A store of notes with a scripted model that puts them in order, for `memory-defrag`.

use crate::store::{Store, name, note};
use crate::support::said;
use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The six characters of an id that no other number has.
pub(crate) fn id(number: usize) -> String {
    let letters: Vec<char> = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".chars().collect();
    format!("Tdy{}{}x", letters[number / 58 % 58], letters[number % 58])
}

impl Store {
    /// The model answers as the Python `script` says; `more` is added to `llm`.
    pub(crate) fn model(&self, script: &str) {
        self.model_with(script, json!({}));
    }

    pub(crate) fn model_with(&self, script: &str, more: Value) {
        let command = self.sandbox.script(script);
        self.llm(&command, more, false);
    }

    /// The same in a store with a history.
    pub(crate) fn model_with_history(&self, script: &str) {
        let command = self.sandbox.script(script);
        self.llm(&command, json!({}), true);
    }

    pub(crate) fn llm(&self, command: &str, more: Value, has_history: bool) {
        let mut llm = json!({"command": command});
        llm.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.sandbox.settings(json!({
            "llm": llm, "storage": {"autoCommit": has_history}, "agentsMd": {"targets": [self.target()]},
        }));
    }

    /// The file that is kept up to date for agents.
    pub(crate) fn target(&self) -> PathBuf {
        self.sandbox.home().join("agents/AGENTS.md")
    }

    /// Its text; empty if there is none.
    pub(crate) fn section(&self) -> String {
        fs::read_to_string(self.target()).unwrap_or_default()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command("memory-defrag");
        command.args(args).timeout(std::time::Duration::from_secs(60));
        command
    }

    /// Exit code, stdout and stderr.
    pub(crate) fn defrag(&self, args: &[&str]) -> (Option<i32>, String, String) {
        said(&mut self.command(args))
    }

    /// What it prints when all goes well, and silently.
    pub(crate) fn tidied(&self, args: &[&str]) -> String {
        let (code, out, err) = self.defrag(args);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{args:?}: {out}");
        out
    }

    /// What it prints with `--json`, and its stderr.
    pub(crate) fn tidied_json(&self, args: &[&str]) -> (Value, String) {
        let (code, out, err) = self.defrag(&[&["--json"], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {err}");
        (serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {out}")), err)
    }

    /// Carries out a reply that somebody brings.
    pub(crate) fn apply(&self, reply: &str) -> (Option<i32>, String, String) {
        said(self.command(&["--apply", "-"]).write_stdin(reply))
    }

    /// A note with a body of its own; `more` is further lines of its front matter.
    pub(crate) fn noted(&self, id: &str, title: &str, more: &str, body: &str) -> PathBuf {
        let text = note(id, title, more).replace(&format!("Body of {title}."), body);
        self.put(&format!("topics/{}", name(id, title)), text)
    }

    /// Two notes that the model may do something with, and nothing else.
    pub(crate) fn with_two(&self) {
        self.noted("aaaaaa", "Guards", "", "Guards are pure; see src/guard.rs.");
        self.noted("bbbbbb", "Actors", "", "Actors talk to port 8081.");
    }
}

/// Merges the two notes of [`Store::with_two`].
pub(crate) const MERGE_TWO: &str = "do(merge('id__aaaaaa', 'id__bbbbbb'))";
/// What is said of that.
pub(crate) const ONE_MERGED: &str = "1 merged, 0 split, 0 renamed, 0 archived, 0 re-tiered\n";
/// What is said when nothing was to be done.
pub(crate) const NOTHING: &str = "0 merged, 0 split, 0 renamed, 0 archived, 0 re-tiered\n";
