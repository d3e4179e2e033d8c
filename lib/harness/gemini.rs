//! Gemini CLI: `~/.gemini/tmp/<project>/chats/session-<minute>-<id>.jsonl`.
//!
//! The file is a log of changes to a list of messages: a message with a known id replaces the earlier one, and
//! `$set.messages` replaces the list. Replayed, the log gives what the model knows now, but we want what was said.
//! The two differ if the history was compressed: then the list has a summary, and copies under new ids, instead of
//! the messages. So:
//!
//! - if a list drops messages and adds others, they were compressed: the old ones stay, the new ones are left out;
//! - if a list only drops messages at its end, they were taken back, as after a server error: they are left out;
//! - the first list after a header belongs to a resumed session that has not loaded its messages yet: it is ignored.
//!
//! There are two passes: the first replays the log with positions in the file, the second reads the messages.

mod message;

use crate::base::error::Result;
use crate::base::file;
use crate::harness::files::{entries, sessions_in};
use crate::harness::out::TurnSink;
use crate::harness::payload::{is_below, transcript};
use crate::harness::source::{Line, Reader, Taken, each_line, failed, parse, unknown};
use crate::harness::spec::ToolKind::{self, Edit, Own, Question, Read, Search, Shell, SubAgent, Write};
use crate::harness::spec::{
    Answer, Capture, Format, Home, Install, Past, Preset, Recall, Settings, Spec, When, has, hook, understood,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::io::{self, Read as _, Seek};
use std::path::Path;
use std::path::PathBuf;

const HOME: Home = Home { variables: &[("GEMINI_CLI_HOME", ".gemini")], usual: ".gemini" };

pub(super) static SPEC: Spec = Spec {
    name: "gemini",
    title: "Gemini CLI",
    home: HOME,
    own_files: &["GEMINI.md"],
    project_files: &["GEMINI.md"],
    marks: &["GEMINI_CLI"],
    format: Format {
        read,
        is_record: |record| has(record, &["sessionId", "projectHash"]),
        tools: TOOLS,
        sub_agents,
        ..Format::ANY
    },
    method: "transcript",
    capture: Capture::Hook {
        session: |payload, _| transcript(payload, |path| is_below(path, 2, "chats")),
        takes_argument: false,
        // It shows it to the user.
        may_print: false,
    },
    past: Past::Files(HOME, &["tmp/*/chats/session-*.jsonl"]),
    events: &[
        hook("SessionStart", When::Start, 5000),
        hook("BeforeAgent", When::Prompt, 5000),
        hook("AfterAgent", When::End, 10_000),
        hook("SessionEnd", When::End, 10_000),
        understood("PreCompress", When::End),
    ],
    install: Install::Settings(Settings {
        has_comments: true,
        is_named: true,
        never_fails: true,
        ..Settings::GROUPS
    }),
    next_step: None,
    // It runs the hook, and does not send what it says; after a resume it does so under -p alone.
    recall: Recall { answer: Answer::HookOutput, resumes_whole: false, unheard: &["clear", "resume"] },
    preset: Some(Preset { name: "gemini", line: "gemini --skip-trust", rank: 3 }),
};

const TOOLS: &[(ToolKind, &[&str])] = &[
    (Shell, &["run_shell_command"]),
    (Read, &["read_file", "read_many_files"]),
    (Edit, &["replace"]),
    (Search, &["grep_search", "search_file_content"]),
    (Write, &["write_file"]),
    (
        Own,
        &[
            "complete_task", "enter_plan_mode", "exit_plan_mode", "glob", "list_directory", "save_memory",
            "update_topic", "write_todos",
        ],
    ),
    (SubAgent, &["codebase_investigator", "delegate_to_agent", "generalist", "invoke_agent"]),
    (Question, &["ask_user"]),
];

/// Messages from the program to its user.
const NOTICES: &[&str] = &["error", "info", "warning"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    id: Option<String>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    session_id: Option<String>,
    project_hash: Option<String>,
    #[serde(rename = "kind")]
    session_kind: Option<String>,
    #[serde(borrow, rename = "$set")]
    set: Option<ListUpdate<'a>>,
}

#[derive(Deserialize)]
struct ListUpdate<'a> {
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct ListedMessage<'a> {
    id: Option<String>,
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut log = Log::default();
    let mut reader = each_line(path, "Gemini CLI", out, |line, out| log.line(line, out))?;
    out.report.cwd = project(path);
    let mut position = reader.stream_position().map_err(|e| failed(path, &e))?;
    let mut bytes = Vec::new();
    for message in log.messages.iter().filter(|message| message.status == MessageStatus::Said) {
        let found = message_at(&mut reader, &mut position, message.range, &mut bytes);
        if !found.map_err(|e| failed(path, &e))? {
            out.report.torn += 1;
            break;
        }
        // Only invalid if the file was overwritten meanwhile.
        match std::str::from_utf8(&bytes) {
            Ok(json) => message::turns(json, out)?,
            Err(_) => out.report.torn += 1,
        }
    }
    Ok(())
}

/// The position of a message in the file.
#[derive(Clone, Copy)]
struct ByteRange {
    offset: u64,
    length: u32,
}

struct LoggedMessage {
    range: ByteRange,
    status: MessageStatus,
    /// Is it in the program's current list?
    listed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageStatus {
    Said,
    /// A summary, or a copy beside one.
    Copied,
    TakenBack,
}

/// The replayed log.
#[derive(Default)]
struct Log {
    /// In the order in which they came.
    messages: Vec<LoggedMessage>,
    /// A message by the hash of its id.
    by_id: HashMap<u64, usize>,
    /// The program's current list.
    list: Vec<usize>,
    /// The last record was a header.
    starting: bool,
    hasher: RandomState,
}

impl Log {
    fn line(&mut self, line: Line, out: &mut TurnSink) -> Taken {
        let record: Record = parse(line.text)?;
        if let Some(patch) = record.set {
            if let Some(messages) = patch.messages {
                self.replace(&messages, line, out);
            }
            return Ok(());
        }
        if record.session_id.is_some() && record.project_hash.is_some() {
            self.starting = true;
            out.report.is_sub_agent = record.session_kind.as_deref() == Some("subagent");
            out.report.session_id = record.session_id;
            return Ok(());
        }
        match (record.id, &*record.kind) {
            (Some(id), "user" | "gemini") => {
                self.starting = false;
                let range = ByteRange { offset: line.offset, length: line.text.len() as u32 };
                if !line.exact {
                    return unknown("message that is not UTF-8");
                }
                self.message(&id, range);
                Ok(())
            }
            (_, kind) if NOTICES.contains(&kind) => Ok(()),
            (_, kind) => unknown(kind),
        }
    }

    /// A message on a line of its own: a new one, or the complete version of an earlier one.
    fn message(&mut self, id: &str, range: ByteRange) {
        let id = self.hasher.hash_one(id);
        let known = self.by_id.get(&id).and_then(|known| self.messages.get_mut(*known));
        match known {
            // A message that was taken back and said again counts as new.
            Some(known) if known.listed || known.status == MessageStatus::Said => known.range = range,
            _ => {
                let index = self.add(id, range, MessageStatus::Said);
                self.list.push(index);
            }
        }
    }

    fn add(&mut self, id: u64, range: ByteRange, status: MessageStatus) -> usize {
        self.messages.push(LoggedMessage { range, status, listed: true });
        self.by_id.insert(id, self.messages.len() - 1);
        self.messages.len() - 1
    }

    /// `$set.messages`.
    fn replace(&mut self, messages: &[&RawValue], line: Line, out: &mut TurnSink) {
        let starting = std::mem::take(&mut self.starting);
        let mut found = Vec::with_capacity(messages.len());
        for raw in messages {
            match serde_json::from_str::<ListedMessage>(raw.get()) {
                Ok(ListedMessage { id: Some(id), kind }) if kind == "user" || kind == "gemini" => {
                    // `raw` is a part of `line`, so its position follows from the line's.
                    let within = (raw.get().as_ptr() as usize).wrapping_sub(line.text.as_ptr() as usize);
                    let range =
                        ByteRange { offset: line.offset + within as u64, length: raw.get().len() as u32 };
                    found.push((self.hasher.hash_one(&id), range));
                }
                Ok(ListedMessage { kind, .. }) if NOTICES.contains(&&*kind) => {}
                Ok(ListedMessage { kind, .. }) => out.report.unknown(&format!("listed {kind}")),
                Err(_) => out.report.unknown("listed message in another shape"),
            }
        }
        let kept: HashSet<usize> = found.iter().filter_map(|(id, _)| self.by_id.get(id).copied()).collect();
        let drops = self.list.iter().any(|message| !kept.contains(message));
        let brings = kept.len() < found.len();
        if drops && !brings {
            if starting {
                return;
            }
            let last_kept = self.list.iter().rposition(|message| kept.contains(message));
            for taken_back in self.list.split_off(last_kept.map_or(0, |last| last + 1)) {
                self.messages[taken_back].status = MessageStatus::TakenBack;
                self.messages[taken_back].listed = false;
            }
        }
        for message in &self.list {
            self.messages[*message].listed = false;
        }
        let new = if drops || !line.exact { MessageStatus::Copied } else { MessageStatus::Said };
        let mut list = Vec::with_capacity(found.len());
        for (id, range) in found {
            list.push(match self.by_id.get(&id).copied() {
                // Keep the first version: a list never has more.
                Some(known) => {
                    let message = &mut self.messages[known];
                    message.listed = true;
                    if message.status == MessageStatus::TakenBack {
                        message.status = MessageStatus::Said;
                    }
                    known
                }
                None => self.add(id, range, new),
            });
        }
        self.list = list;
    }
}

/// Reads the JSON of a message; `false` if the file has become shorter.
fn message_at(
    reader: &mut Reader,
    position: &mut u64,
    range: ByteRange,
    bytes: &mut Vec<u8>,
) -> io::Result<bool> {
    // Most messages follow each other, so the buffer can be reused.
    reader.seek_relative(range.offset.wrapping_sub(*position) as i64)?;
    bytes.resize(range.length as usize, 0);
    *position = range.offset + u64::from(range.length);
    match reader.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

/// It keeps the directory of a project beside its sessions.
fn project(session: &Path) -> Option<String> {
    let file = session.parent()?.parent()?.join(".project_root");
    let text = String::from_utf8(file::read(&file, 8 << 10).ok()?).ok()?;
    Some(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// The file's name has the first part of the session's id, and the folder of its sub-agents has all of it.
fn sub_agents(session: &Path) -> Vec<PathBuf> {
    let id = session.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let (Some(dir), Some(short)) = (session.parent(), id.rsplit('-').next().filter(|id| id.len() >= 8))
    else {
        return Vec::new();
    };
    let is_own = |folder: &PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        folder.is_dir() && name.strip_prefix(short).is_some_and(|rest| rest.starts_with('-'))
    };
    entries(dir).iter().filter(|folder| is_own(folder)).flat_map(|folder| sessions_in(folder)).collect()
}
