//! The files of sub-agents. They are found beside the session's own file, by what programs name them; no path that stands
//! in a session is ever opened.

use crate::base::file;
use crate::harness;
use crate::harness::spec::Format;
use crate::harness::turn::{ToolCall, Turn};
use crate::memory::outside::call::Origin;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A larger file is not read, in bytes.
const CAP: u64 = 64 << 20;

pub(super) struct Reports {
    format: &'static Format,
    transcript: Option<PathBuf>,
    /// Every file of a sub-agent, and by the call that started it; listed when the first one is asked for.
    files: Option<(Vec<PathBuf>, HashMap<String, PathBuf>)>,
    /// What was found in a file.
    pub(super) known: HashMap<PathBuf, Origin>,
}

/// What may lie beside a sub-agent's file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Beside {
    tool_use_id: String,
}

impl Reports {
    pub(super) fn new(format: &'static Format, transcript: Option<&Path>) -> Reports {
        let transcript = transcript.map(Path::to_path_buf);
        Reports { format, transcript, files: None, known: HashMap::new() }
    }

    /// Is it a file in which the program keeps the output of an earlier call of this session?
    pub(super) fn is_output(&self, path: &Path) -> bool {
        let outputs = self.format.outputs.zip(self.transcript.as_ref());
        outputs.is_some_and(|(name, session)| path.starts_with(session.with_extension("").join(name)))
    }

    /// The files in which the report of a call may have its sources. None: nobody knows them.
    pub(super) fn files_of(&mut self, call_id: &str, call: &ToolCall, output: &str) -> Vec<PathBuf> {
        let (files, by_call) =
            self.files.get_or_insert_with(|| list(self.format, self.transcript.as_deref()));
        if self.format.among_others {
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
}

fn list(format: &Format, transcript: Option<&Path>) -> (Vec<PathBuf>, HashMap<String, PathBuf>) {
    let Some(transcript) = transcript else { return Default::default() };
    let files = (format.sub_agents)(transcript);
    let started = |path: &PathBuf| {
        let beside = file::read(&path.with_extension("meta.json"), 64 << 10).ok()?;
        let beside: Beside = serde_json::from_slice(&beside).ok()?;
        Some((beside.tool_use_id, path.clone()))
    };
    // Those among other sessions are found by their own names.
    let by_call = files.iter().filter(|_| !format.among_others).filter_map(started).collect();
    (files, by_call)
}

/// Reads a sub-agent's file; `false`, if not all of it can be read.
pub(super) fn read(format: &Format, path: &Path, each: &mut dyn FnMut(&Turn)) -> bool {
    let is_small = path.metadata().is_ok_and(|file| file.is_file() && file.len() <= CAP);
    let read = is_small.then(|| {
        harness::read(format, path, &mut |turn| {
            each(&turn);
            Ok(())
        })
    });
    matches!(read, Some(Ok(report)) if report.too_long == 0)
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
}

/// What looks like the id of a thread.
fn thread_ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| word.len() == 36 && word.bytes().filter(|b| *b == b'-').count() == 4)
}
