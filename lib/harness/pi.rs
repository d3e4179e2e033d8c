//! Pi: `~/.pi/agent/sessions/<directory>/<time>_<session id>.jsonl`.
//!
//! A header, then one entry per line; only those of type `message` are conversation. The entries are a tree: a person
//! may go back and take another way, in the same file. All ways are read, because all of it was said. A file only
//! grows. A fork begins with copies of the parent's entries, under the same ids.

use crate::base::error::{Error, Result};
use crate::harness::content::{self, ContentPart, Object, Taken, ToolUse, unknown};
use crate::harness::context::{Above, ContextFiles};
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, id_fault, is_there};
use crate::harness::source::{each_line, first_record};
use crate::harness::spec::{
    CaptureSpec, Format, Home, Install, PastSource, RecallForm, RecallSpec, Spec, ToolKind, ToolTable, has,
};
use std::path::{Path, PathBuf};

const HOME: Home = Home { variables: &[("PI_CODING_AGENT_DIR", "")], usual: ".pi/agent" };

pub(super) static SPEC: Spec = Spec {
    name: "pi",
    title: "Pi",
    home: HOME,
    reads: ContextFiles { above: Above::Everything, ..ContextFiles::AGENTS },
    marks: &["PI_CODING_AGENT"],
    format: Format {
        read,
        marks_failures: true,
        is_record: |record| record["type"] == "session" && has(record, &["cwd", "version"]),
        tools: TOOLS,
        ..Format::ANY
    },
    method: "transcript",
    capture: CaptureSpec::File(session),
    past: PastSource::Files(HOME, &["sessions/*/*.jsonl"]),
    events: &[],
    // An extension, which the person copies.
    install: Install::Nothing,
    next_step: None,
    recall: RecallSpec { form: RecallForm::Plugin, resumes_whole: false, unheard: &[] },
    memory: None,
    preset: None,
};

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "bash"),
    (ToolKind::Read, "read"),
    (ToolKind::Edit, "edit"),
    (ToolKind::Search, "grep"),
    (ToolKind::Write, "write"),
    (ToolKind::Own, "find ls"),
];

/// Entries that are not conversation: settings, summaries, and what extensions keep or put into the context.
const OTHER: &[&str] = &[
    "branch_summary", "compaction", "custom", "custom_message", "label", "model_change", "session_info",
    "thinking_level_change",
];

/// The longest first line, in bytes.
const HEADER_CAP: usize = 64 << 10;

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    each_line(path, "Pi", out, |entry, _, out| take(entry, out)).map(drop)
}

fn take(entry: &Object, out: &mut TurnSink) -> Taken {
    let (kind, id) = (entry.kind()?, entry.text("id")?);
    match &*kind {
        "session" if entry.raw("cwd").is_some() => {
            // In the header of a fork: the parent's file.
            let parent = entry.text("parentSession")?;
            out.report.parent =
                parent.as_deref().and_then(|path| session_id(Path::new(path))).map(str::to_owned);
            out.report.begins(id, entry.text("cwd")?);
            Ok(())
        }
        "message" => {
            let (Some(said), Some(id)) = (entry.object("message")?, id) else {
                return unknown("message without an id");
            };
            out.at = entry.time("timestamp");
            message(&said, id, out)
        }
        kind if OTHER.contains(&kind) => Ok(()),
        kind => unknown(kind),
    }
}

fn message(message: &Object, id: String, out: &mut TurnSink) -> Taken {
    let content = message.raw("content");
    match (&*message.text("role")?.unwrap_or_default(), content) {
        // Nothing tells what was typed from what `pi -p` was given.
        ("user", Some(content)) => {
            let message = out.message(content)?;
            out.prompt(message, Some(false), id)?
        }
        ("assistant", Some(content)) => out.each_part(content, "assistant part", |n, part, out| {
            let id = match &part {
                // Some services number their calls anew in each session.
                ContentPart::ToolUse(ToolUse { key: Some(key), .. }) => format!("{id}/{key}"),
                _ => format!("{id}/{n}"),
            };
            out.part(part, id)
        })?,
        ("toolResult", _) => {
            let text = content.map(content::text).unwrap_or_default();
            let key = message.text("toolCallId")?.unwrap_or(id);
            out.result(&key, &text, message.is("isError"))?;
        }
        ("bashExecution", _) => {
            let command = message.text("command")?.unwrap_or_default();
            let failed = message.get("exitCode")?.is_some_and(|code: i64| code != 0);
            out.person_ran(&command, &message.text("output")?.unwrap_or_default(), failed, id)?;
        }
        ("user" | "assistant" | "custom" | "branchSummary" | "compactionSummary", _) => {}
        (role, _) => return unknown(format!("message of role {role}")),
    }
    Ok(())
}

/// The id in the name of a session's file.
fn session_id(path: &Path) -> Option<&str> {
    let name = path.file_stem()?.to_str()?;
    Some(name.rsplit_once('_').map_or(name, |(_, id)| id)).filter(|id| !id.is_empty())
}

/// The session in a file: the file's name holds its id, the first line its directory.
fn session(path: &Path) -> Result<Ended> {
    const FORM: &str = "give the file of a session, like ~/.pi/agent/sessions/DIRECTORY/TIME_ID.jsonl";
    if !is_there(path)? {
        return Err(Error::usage(format!("no file \"{}\"", path.display())).hint(FORM));
    }
    let id = session_id(path).filter(|id| id_fault(id).is_none()).ok_or_else(|| {
        let why = format!("\"{}\" is not the name of a session's file", path.display());
        Error::usage(why).hint("Pi names them TIME_ID.jsonl")
    })?;
    let first = first_record(path, HEADER_CAP)?;
    match first["cwd"].as_str().filter(|_| first["type"] == "session") {
        Some(cwd) => {
            let cwd = Some(PathBuf::from(cwd)).filter(|cwd| cwd.is_absolute());
            Ok(Ended::Session { path: path.to_owned(), id: id.to_owned(), cwd })
        }
        None => {
            Err(Error::io(format!("\"{}\" does not begin like a session of Pi", path.display())).hint(FORM))
        }
    }
}
