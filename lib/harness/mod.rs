//! Other people's programs: a recorded session becomes turns.
//!
//! OnTurn program keeps its sessions in a form of its own, changes it without notice, and writes into the same
//! file much that nobody said: copies of the prompt, instructions, summaries, patches. A reader here gives
//! what was said, in order, and nothing else. What it does not know it counts and reports; a torn line, a
//! record of a new kind or an odd shape never costs the rest of a session.
//!
//! The formats were learned from recorded sessions, not from documentation, with two exceptions that
//! `cursor` and `amp` name.

mod amp;
mod claude_code;
mod codex;
mod content;
mod cursor;
mod gemini;
mod opencode;
mod out;
mod plain;
pub(crate) mod recalled;
pub(crate) mod source;
mod tool;
pub(crate) mod turn;

use crate::base::error::Result;
use crate::harness::out::{OnTurn, TurnSink};
use crate::harness::turn::SessionReport;
use std::path::Path;

/// In which form a session was written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    /// What `opencode export` prints.
    OpencodeExport,
    /// What `amp threads markdown` prints.
    AmpMarkdown,
    /// Any text file, as it stands.
    Plain,
}

impl Format {
    pub(crate) const ALL: [Format; 7] = [
        Format::ClaudeCode,
        Format::Codex,
        Format::Gemini,
        Format::Cursor,
        Format::OpencodeExport,
        Format::AmpMarkdown,
        Format::Plain,
    ];

    /// The name that queue entries use; for the first four it is the harness's own.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::Gemini => "gemini",
            Format::Cursor => "cursor",
            Format::OpencodeExport => "opencode-export",
            Format::AmpMarkdown => "amp-markdown",
            Format::Plain => "plain",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Gives every turn of the session at `path` to `each`, in order, and tells what was found besides.
///
/// Reads as a stream: memory does not grow with the session (but for a few bytes a message). An error of
/// `each` ends the reading and comes back. A file that is missing, empty, binary, a directory, or of another
/// format is an error; a torn or unknown record is not.
pub(crate) fn read(format: Format, path: &Path, each: &mut OnTurn) -> Result<SessionReport> {
    let mut out = TurnSink::new(each);
    match format {
        Format::ClaudeCode => claude_code::read(path, &mut out)?,
        Format::Codex => codex::read(path, &mut out)?,
        Format::Gemini => gemini::read(path, &mut out)?,
        Format::Cursor => cursor::read(path, &mut out)?,
        Format::OpencodeExport => opencode::read(path, &mut out)?,
        Format::AmpMarkdown => amp::read(path, &mut out)?,
        Format::Plain => plain::read(path, &mut out)?,
    }
    out.finish()
}

#[cfg(test)]
mod tests;
