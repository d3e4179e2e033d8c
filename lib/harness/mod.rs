//! Coding agents: what the programs know of each, and a reader of its session files, which turns a recorded session
//! into turns.
//!
//! Each has a file here, with its [`Spec`], and a line in [`HARNESSES`]; nothing else knows one by name. Each has its own
//! format, changes it without notice, and writes much to the file that nobody said: copies
//! of the prompt, instructions, summaries, patches. A reader returns what was said, in order, and nothing else. It
//! counts and reports what it does not know; an incomplete line or an unknown record never costs the rest of a
//! session.
//!
//! The formats were learned from recorded sessions, not from documentation, with two exceptions that
//! `cursor` and `amp` name.

mod amp;
pub mod built_in;
mod chain;
mod claude_code;
mod codex;
mod content;
mod context;
mod copilot;
mod cursor;
pub mod document;
pub mod files;
mod gemini;
pub mod name;
mod opencode;
mod out;
pub mod payload;
mod pi;
mod qwen_code;
pub mod recalled;
pub mod shell;
pub mod source;
pub mod spec;
pub mod task;
pub mod turn;
pub mod turns;
mod watched;

use crate::base::env::Env;
use crate::base::error::Result;
use crate::base::file;
use crate::harness::content::PromptMessage;
use crate::harness::out::{OnTurn, TurnSink};
use crate::harness::spec::{Format, Spec};
use crate::harness::turn::SessionReport;
use serde_json::Value;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// All of them, in alphabetical order of their names.
pub const HARNESSES: &[&Spec] = &[
    &amp::SPEC,
    &claude_code::SPEC,
    &codex::SPEC,
    &copilot::SPEC,
    &cursor::SPEC,
    &gemini::SPEC,
    &opencode::SPEC,
    &pi::SPEC,
    &qwen_code::SPEC,
];

pub fn known(name: &str) -> Option<&'static Spec> {
    HARNESSES.iter().find(|spec| spec.name == name).copied()
}

/// Calls `each` with every turn of the session at `path`, in order, and returns what else was found.
///
/// The file is read as a stream: memory does not grow with the session, except for a few bytes per message. An
/// error of `each` ends the reading and is returned. A file that is missing, empty, binary, a directory, or of
/// another format is an error; an incomplete or unknown record is not.
///
/// `last` is the id of the last turn that was read before, of a document: one that only grew is continued there. `prompts`:
/// what was typed, as far as the program logs it.
pub fn read_after(
    format: &Format,
    path: &Path,
    last: Option<&str>,
    prompts: HashSet<String>,
    each: &mut OnTurn,
) -> Result<SessionReport> {
    let mut out = TurnSink::new(each, last, prompts);
    out.marks_failures = format.marks_failures;
    match (format.read)(path, &mut out) {
        Ok(()) => out.finish(),
        Err(error) if out.is_foreign => Err(error.hint(match whose(path) {
            Some(name) => format!("it looks like a session of {name}; queue it with --harness {name}"),
            None => "check that the file belongs to the harness it was queued for".to_owned(),
        })),
        Err(error) => Err(error),
    }
}

/// The same for a session that was not read before, and of which nobody asks what was typed.
pub fn read(format: &Format, path: &Path, each: &mut OnTurn) -> Result<SessionReport> {
    read_after(format, path, None, HashSet::new(), each)
}

/// The largest log of prompts that is read, in bytes.
const LOG_CAP: u64 = 64 << 20;

/// What the program of the session in this file logged as typed: strings, or objects that have them, in a list or one a
/// line. A log that cannot be read has none.
pub fn logged_prompts(format: &Format, session: &Path, env: &Env) -> HashSet<String> {
    fn collect(value: Value, prompts: &mut HashSet<String>) {
        match value {
            Value::String(text) => drop(prompts.insert(PromptMessage::of(&text).words())),
            Value::Array(values) => values.into_iter().for_each(|value| collect(value, prompts)),
            Value::Object(mut object) => {
                let keys = ["message", "input", "commandHistory"];
                collect(keys.iter().find_map(|key| object.remove(*key)).unwrap_or_default(), prompts);
            }
            _ => {}
        }
    }
    let mut prompts = HashSet::new();
    for log in (format.prompts)(session, env) {
        let bytes = file::read(&log, LOG_CAP).unwrap_or_default();
        let values = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        values.map_while(std::result::Result::ok).for_each(|value| collect(value, &mut prompts));
    }
    prompts
}

/// How much of a file is looked at to see whose it is, in bytes.
const START: u64 = 256 << 10;

/// The program that a file looks like, by its first records.
fn whose(path: &Path) -> Option<&'static str> {
    let mut bytes = Vec::new();
    source::open(path, "a session").ok()?.take(START).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let spec = text.lines().find_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        HARNESSES.iter().find(|spec| (spec.format.is_record)(&record))
    })?;
    Some(spec.name)
}

#[cfg(test)]
mod tests;
