//! A store of notes and a scripted LLM for `memory-defrag`.

use crate::support::said;
use crate::support::store::{Store, name, note};
use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Where the notes of sessions come from.
pub(crate) const REPO: &str = "h/o/r";
/// Front matter of a note from a session there: nobody has made it their own.
pub(crate) const SESSION: &str = "scope: repo\nsources:\n  - {harness: amp, repo: h/o/r}\n";

/// Six characters of an id, different for each number.
pub(crate) fn id(number: usize) -> String {
    let letters: Vec<char> = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".chars().collect();
    format!("Tdy{}{}x", letters[number / 58 % 58], letters[number % 58])
}

impl Store {
    /// Configures an LLM command that runs the Python `script` (see [`super::llm`]).
    pub(crate) fn model(&self, script: &str) {
        self.model_with(script, json!({}));
    }

    /// The same, with `more` keys of `llm`.
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
            "llm": llm, "storage": {"autoCommit": has_history}, "agentsMd": {"targets": [{"path": self.target(), "repo": REPO}]},
        }));
    }

    /// The target of the AGENTS.md section.
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

    /// What `memory-defrag` prints when it succeeds without a warning.
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

    /// Applies a reply that a person brings.
    pub(crate) fn apply(&self, reply: &str) -> (Option<i32>, String, String) {
        said(self.command(&["--apply", "-"]).write_stdin(reply))
    }

    /// Writes a note with this body, of a session in the repository [`REPO`] unless `more` says otherwise, which holds
    /// further lines of front matter.
    pub(crate) fn noted(&self, id: &str, title: &str, more: &str, body: &str) -> PathBuf {
        let mut more = more.to_owned();
        match (more.contains("scope:"), more.contains("sources:")) {
            (true, _) => {}
            (false, true) => more += "scope: repo\n",
            (false, false) => more += SESSION,
        }
        let text = note(id, title, &more).replace(&format!("Body of {title}."), body);
        self.put(&format!("topics/{}", name(id, title)), text)
    }

    /// Writes a note of a session.
    pub(crate) fn session(&self, id: &str, title: &str) -> PathBuf {
        self.noted(id, title, "", &format!("Body of {title}."))
    }

    /// Writes two notes.
    pub(crate) fn with_two(&self) {
        self.noted("aaaaaa", "Guards", "", "Guards are pure; see src/guard.rs.");
        self.noted("bbbbbb", "Actors", "", "Actors talk to port 8081.");
    }
}

/// Merges the two notes of [`Store::with_two`].
pub(crate) const MERGE_TWO: &str = "do(merge('id__aaaaaa', 'id__bbbbbb'))";
/// The summary of that.
pub(crate) const ONE_MERGED: &str = "1 merged, 0 split, 0 renamed, 0 archived, 0 re-tiered\n";
/// The summary of a run with nothing to do.
pub(crate) const NOTHING: &str = "0 merged, 0 split, 0 renamed, 0 archived, 0 re-tiered\n";
