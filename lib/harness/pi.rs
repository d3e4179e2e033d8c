//! Pi: `~/.pi/agent/sessions/<directory>/<time>_<session id>.jsonl`.
//!
//! A header, then one entry per line; only those of type `message` are conversation. The entries are a tree: a person
//! may go back and take another way, in the same file. All ways are read, because all of it was said. A file only
//! grows. A fork begins with copies of the parent's entries, under the same ids.

use crate::base::error::{Error, Result};
use crate::harness::content::{self, known_parts};
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, id_fault, is_there};
use crate::harness::source::{self, Line, Taken, each_line, parse, unknown};
use crate::harness::spec::ToolKind::{self, Edit, Own, Read, Search, Shell, Write};
use crate::harness::spec::{Answer, Capture, Format, Home, Install, Past, Recall, Spec, has};
use crate::harness::tool::IMAGE;
use crate::harness::turn::Role;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

const HOME: Home = Home { variables: &[("PI_CODING_AGENT_DIR", "")], usual: ".pi/agent" };

pub(super) static SPEC: Spec = Spec {
    name: "pi",
    title: "Pi",
    home: HOME,
    own_files: &["AGENTS.md"],
    project_files: &["AGENTS.md"],
    marks: &["PI_CODING_AGENT"],
    format: Format {
        read,
        is_record: |record| record["type"] == "session" && has(record, &["cwd", "version"]),
        tools: TOOLS,
        ..Format::ANY
    },
    method: "transcript",
    capture: Capture::File(session),
    past: Past::Files(HOME, &["sessions/*/*.jsonl"]),
    events: &[],
    // An extension, which the person copies.
    install: Install::Nothing,
    next_step: None,
    recall: Recall { answer: Answer::Plugin, resumes_whole: false, unheard: &[] },
    preset: None,
};

const TOOLS: &[(ToolKind, &[&str])] = &[
    // The second: a command that the person ran.
    (Shell, &["bash", "user's shell"]),
    (Read, &["read"]),
    (Edit, &["edit"]),
    (Search, &["grep"]),
    (Write, &["write"]),
    (Own, &["find", "ls"]),
];

/// Entries that are not conversation: settings, summaries, and what extensions keep or put into the context.
const OTHER: &[&str] = &[
    "branch_summary", "compaction", "custom", "custom_message", "label", "model_change", "session_info",
    "thinking_level_change",
];

/// The longest first line, in bytes.
const HEADER_CAP: usize = 64 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    id: Option<String>,
    timestamp: Option<String>,
    cwd: Option<String>,
    /// In the header of a fork: the parent's file.
    parent_session: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    tool_call_id: Option<String>,
    is_error: Option<bool>,
    /// Of a command that the person ran.
    command: Option<String>,
    output: Option<String>,
    exit_code: Option<i64>,
}

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    each_line(path, "Pi", out, entry).map(drop)
}

fn entry(line: Line, out: &mut TurnSink) -> Taken {
    let entry: Entry = parse(line.text)?;
    match &*entry.kind {
        "session" if entry.cwd.is_some() => {
            let parent = entry.parent_session.as_deref().map(Path::new);
            out.report.parent = parent.and_then(session_id).map(str::to_owned);
            out.report.session_id = entry.id;
            out.report.cwd = entry.cwd;
        }
        "message" => {
            let (Some(raw), Some(id)) = (entry.message, entry.id) else {
                return unknown("message without an id");
            };
            let at = entry.timestamp.as_deref().and_then(|at| at.parse().ok());
            return match serde_json::from_str(raw.get()) {
                Ok(message) => self::message(message, id, at, out),
                Err(_) => unknown("message in another shape"),
            };
        }
        kind if OTHER.contains(&kind) => {}
        kind => return unknown(kind),
    }
    Ok(())
}

fn message(message: Message, id: String, at: Option<Timestamp>, out: &mut TurnSink) -> Taken {
    match &*message.role {
        "user" => user(message.content, id, at, out)?,
        "assistant" => assistant(message.content, &id, at, out)?,
        "toolResult" => {
            let text = message.content.map(content::text).unwrap_or_default();
            let key = message.tool_call_id.unwrap_or(id);
            out.result(&key, &text, message.is_error == Some(true), at)?;
        }
        // The person ran it, with `!`: its output is evidence, but no words of theirs.
        "bashExecution" => {
            let command = message.command.unwrap_or_default();
            out.call(&id, "user's shell", &command, id.clone(), at)?;
            let failed = message.exit_code.is_some_and(|code| code != 0);
            out.result(&id, &message.output.unwrap_or_default(), failed, at)?;
        }
        "custom" | "branchSummary" | "compactionSummary" => {}
        role => return unknown(format!("message of role {role}")),
    }
    Ok(())
}

fn user(content: Option<&RawValue>, id: String, at: Option<Timestamp>, out: &mut TurnSink) -> Result<()> {
    let mut texts = Vec::new();
    for (_, part) in known_parts(content, "user part", &mut out.report) {
        match (&*part.kind, part.text) {
            ("text", Some(text)) => texts.push(text),
            ("image", _) => texts.push(IMAGE.to_owned()),
            (kind, _) => out.report.unknown(&format!("user part {kind}")),
        }
    }
    let text = texts.join("\n");
    let (files, typed) = without_files(&text);
    out.attached(files, &id, at)?;
    out.turn(Role::User, typed, id, at)
}

/// `@file` arguments stand before what was typed, as `<file name="…">` elements: those, and the rest.
fn without_files(text: &str) -> (&str, &str) {
    const END: &str = "\n</file>\n";
    let mut rest = text;
    while rest.starts_with("<file name=\"") {
        let Some(end) = rest.find(END) else { break };
        rest = &rest[end + END.len()..];
    }
    text.split_at(text.len() - rest.len())
}

fn assistant(content: Option<&RawValue>, id: &str, at: Option<Timestamp>, out: &mut TurnSink) -> Result<()> {
    for (n, part) in known_parts(content, "assistant part", &mut out.report) {
        let turn = format!("{id}/{n}");
        match (&*part.kind, part.text, part.thinking) {
            ("text", Some(text), _) => out.turn(Role::Assistant, &text, turn, at)?,
            ("thinking", _, Some(text)) => out.turn(Role::Reasoning, &text, turn, at)?,
            ("toolCall", ..) => {
                let key = part.id.unwrap_or(turn);
                let input = part.input.map_or("{}", RawValue::get);
                // Some services number their calls anew in each session.
                let turn = format!("{id}/{key}");
                out.call(&key, part.name.as_deref().unwrap_or("tool"), input, turn, at)?;
            }
            ("text" | "thinking", ..) => {}
            (kind, ..) => out.report.unknown(&format!("assistant part {kind}")),
        }
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
    let mut reader = source::open(path, "a Pi session")?;
    let mut first = Vec::new();
    source::next_line(&mut reader, &mut first, HEADER_CAP).map_err(|e| source::failed(path, &e))?;
    match serde_json::from_slice(&first) {
        Ok(Entry { kind, cwd: Some(cwd), .. }) if kind == "session" => {
            let cwd = Some(PathBuf::from(cwd)).filter(|cwd| cwd.is_absolute());
            Ok(Ended::Session { path: path.to_owned(), id: id.to_owned(), cwd })
        }
        _ => Err(Error::io(format!("\"{}\" does not begin like a session of Pi", path.display())).hint(FORM)),
    }
}
