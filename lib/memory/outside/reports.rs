//! The files of sub-agents. They are found beside the session's own file, by what programs name them; no path that stands
//! in a session is ever opened.

use crate::base::file;
use crate::harness::turn::{ToolCall, Turn};
use crate::harness::{self, Format};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A larger file is not read, in bytes.
const CAP: u64 = 64 << 20;
/// So many files are looked at, at most.
const FILES: usize = 5000;

#[derive(Default)]
pub(super) struct Reports {
    format: Option<Format>,
    transcript: Option<PathBuf>,
    /// Every file of a sub-agent, and by the call that started it; listed when the first one is asked for.
    files: Option<(Vec<PathBuf>, HashMap<String, PathBuf>)>,
    /// What was found in a file.
    known: HashMap<PathBuf, Option<Vec<String>>>,
}

/// What Claude Code keeps beside a sub-agent's file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Beside {
    tool_use_id: String,
}

impl Reports {
    pub(super) fn new(format: Format, transcript: Option<&Path>) -> Reports {
        let transcript = transcript.map(Path::to_path_buf);
        Reports { format: Some(format), transcript, ..Reports::default() }
    }

    pub(super) fn known(&self, file: &Path) -> Option<Option<Vec<String>>> {
        self.known.get(file).cloned()
    }

    pub(super) fn note(&mut self, file: &Path, source: Option<Vec<String>>) {
        self.known.insert(file.to_path_buf(), source);
    }

    /// Is it a file in which Claude Code keeps the output of an earlier call of this session?
    pub(super) fn is_output(&self, path: &Path) -> bool {
        let is_claude = self.format == Some(Format::ClaudeCode);
        let own = self
            .transcript
            .as_ref()
            .filter(|_| is_claude)
            .map(|file| file.with_extension("").join("tool-results"));
        own.is_some_and(|own| path.starts_with(own))
    }

    /// The files in which the report of a call may have its sources. None: nobody knows them.
    pub(super) fn files_of(&mut self, call_id: &str, call: &ToolCall, output: &str) -> Vec<PathBuf> {
        if self.files.is_none() {
            let files = self.list();
            self.files = Some(files);
        }
        let Some((files, by_call)) = &self.files else { return Vec::new() };
        if self.format == Some(Format::Codex) {
            // The ids are in the arguments; of an agent that is started, the answer has it.
            let mut ids: Vec<&str> = call.arguments.iter().flat_map(|(_, value)| thread_ids(value)).collect();
            if ids.is_empty() {
                ids.extend(thread_ids(output));
            }
            let file = |id: &str| files.iter().find(|file| stem(file).ends_with(id)).cloned();
            let found: Option<Vec<PathBuf>> = ids.into_iter().map(file).collect();
            return found.unwrap_or_default();
        }
        if let Some(file) = by_call.get(call_id) {
            return vec![file.clone()];
        }
        let to = call.arguments.iter().find(|(name, _)| name == "to" || name == "task_id");
        let named =
            to.and_then(|(_, id)| files.iter().find(|file| stem(file).strip_prefix("agent-") == Some(id)));
        named.map_or_else(|| files.clone(), |file| vec![file.clone()])
    }

    fn list(&self) -> (Vec<PathBuf>, HashMap<String, PathBuf>) {
        let (Some(transcript), Some(format)) = (&self.transcript, self.format) else {
            return Default::default();
        };
        let parent = transcript.parent().unwrap_or(transcript);
        let id = stem(transcript);
        let files = match format {
            Format::ClaudeCode => sessions_in(&transcript.with_extension("").join("subagents")),
            Format::QwenCode => sessions_in(&parent.with_file_name("subagents").join(id)),
            Format::Codex => sessions_in(parent),
            // The file's name has the first part of the session's id, and the folder has all of it.
            Format::Gemini => {
                let short = id.rsplit('-').next().filter(|short| short.len() >= 8).unwrap_or("\u{0}");
                let folders = entries(parent).into_iter().filter(|path| path.is_dir());
                let own = folders
                    .filter(|path| name(path).strip_prefix(short).is_some_and(|rest| rest.starts_with('-')));
                own.flat_map(|folder| sessions_in(&folder)).take(FILES).collect()
            }
            _ => Vec::new(),
        };
        let started = |path: &PathBuf| {
            let beside = file::read(&path.with_extension("meta.json"), 64 << 10).ok()?;
            let beside: Beside = serde_json::from_slice(&beside).ok()?;
            Some((beside.tool_use_id, path.clone()))
        };
        let is_claude = format == Format::ClaudeCode;
        let by_call = if is_claude { files.iter().filter_map(started).collect() } else { HashMap::new() };
        (files, by_call)
    }
}

/// Reads a sub-agent's file; `false`, if not all of it can be read.
pub(super) fn read(format: Format, path: &Path, each: &mut dyn FnMut(&Turn)) -> bool {
    let is_small = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= CAP);
    let read = is_small.then(|| {
        harness::read(format, path, &mut |turn| {
            each(&turn);
            Ok(())
        })
    });
    matches!(read, Some(Ok(report)) if report.too_long == 0)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs_err::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(FILES)
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn sessions_in(folder: &Path) -> Vec<PathBuf> {
    let is_session = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    entries(folder).into_iter().filter(is_session).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
}

/// What looks like the id of a thread.
fn thread_ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.len() == 36 && word.bytes().filter(|b| *b == b'-').count() == 4)
}
