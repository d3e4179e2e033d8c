//! Readers for the session files of other programs: they turn a recorded session into turns.
//!
//! Each program has its own format, changes it without notice, and writes much to the file that nobody said: copies
//! of the prompt, instructions, summaries, patches. A reader returns what was said, in order, and nothing else. It
//! counts and reports what it does not know; an incomplete line or an unknown record never costs the rest of a
//! session.
//!
//! The formats were learned from recorded sessions, not from documentation, with two exceptions that
//! `cursor` and `amp` name.

mod amp;
mod claude_code;
mod codex;
mod content;
mod copilot;
mod cursor;
mod gemini;
mod likely;
mod opencode;
mod out;
mod parts;
pub(crate) mod pi;
mod plain;
mod qwen_code;
pub(crate) mod recalled;
pub(crate) mod shell;
pub(crate) mod source;
mod tool;
pub(crate) mod tools;
pub(crate) mod turn;
mod turns;
mod watched;

use crate::base::error::Result;
use crate::harness::out::{OnTurn, TurnSink};
use crate::harness::turn::SessionReport;
use std::path::Path;

/// The format of a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    ClaudeCode,
    Codex,
    Gemini,
    Copilot,
    Cursor,
    Pi,
    QwenCode,
    /// What `opencode export` prints.
    OpencodeExport,
    /// What `amp threads markdown` prints.
    AmpMarkdown,
    /// Turns in JSON Lines, which any program may print.
    Turns,
    /// Any text file.
    Plain,
}

impl Format {
    pub(crate) const ALL: [Format; 11] = [
        Format::ClaudeCode,
        Format::Codex,
        Format::Gemini,
        Format::Copilot,
        Format::Cursor,
        Format::Pi,
        Format::QwenCode,
        Format::OpencodeExport,
        Format::AmpMarkdown,
        Format::Turns,
        Format::Plain,
    ];

    /// The name that queue entries use; for the first seven it is the harness's own.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::ClaudeCode => "claude-code",
            Format::Codex => "codex",
            Format::Gemini => "gemini",
            Format::Copilot => "copilot",
            Format::Cursor => "cursor",
            Format::Pi => "pi",
            Format::QwenCode => "qwen-code",
            Format::OpencodeExport => "opencode-export",
            Format::AmpMarkdown => "amp-markdown",
            Format::Turns => "turns",
            Format::Plain => "plain",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Calls `each` with every turn of the session at `path`, in order, and returns what else was found.
///
/// The file is read as a stream: memory does not grow with the session, except for a few bytes per message. An
/// error of `each` ends the reading and is returned. A file that is missing, empty, binary, a directory, or of
/// another format is an error; an incomplete or unknown record is not.
///
/// `last` is the id of the last turn that was read before, of a document: one that only grew is continued there.
pub(crate) fn read_after(
    format: Format,
    path: &Path,
    last: Option<&str>,
    each: &mut OnTurn,
) -> Result<SessionReport> {
    let mut out = TurnSink::new(each);
    match format {
        Format::ClaudeCode => claude_code::read(path, &mut out)?,
        Format::Codex => codex::read(path, &mut out)?,
        Format::Gemini => gemini::read(path, &mut out)?,
        Format::Copilot => copilot::read(path, &mut out)?,
        Format::Cursor => cursor::read(path, &mut out)?,
        Format::Pi => pi::read(path, &mut out)?,
        Format::QwenCode => qwen_code::read(path, &mut out)?,
        Format::OpencodeExport => opencode::read(path, &mut out)?,
        Format::AmpMarkdown => amp::read(path, &mut out)?,
        Format::Turns => turns::read(path, &mut out)?,
        Format::Plain => plain::read(path, last, &mut out)?,
    }
    out.finish()
}

/// The same for a session that was not read before.
pub(crate) fn read(format: Format, path: &Path, each: &mut OnTurn) -> Result<SessionReport> {
    read_after(format, path, None, each)
}

#[cfg(test)]
mod tests;
