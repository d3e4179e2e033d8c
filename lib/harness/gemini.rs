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
//! `-p` and custom commands leave the same messages as a person: what was typed in the terminal stands in `logs.json`.
//!
//! There are two passes: the first replays the log with positions in the file, the second reads the messages.

use crate::base::error::Result;
use crate::base::file;
use crate::harness::content::{ContentPart, Object, PromptMessage, Taken, ToolUse, parts, ran, unknown};
use crate::harness::context::{ContextFiles, Imports, NamedFiles};
use crate::harness::files::{entries, sessions_in};
use crate::harness::out::TurnSink;
use crate::harness::payload::{is_below, transcript};
use crate::harness::source::{SessionLine, each_line, failed};
use crate::harness::spec::{
    BuiltInMemory, CaptureSpec, Format, Home, HookMoment, HookSettings, Install, MemoryProject, OwnHome,
    PastSource, Preset, RecallForm, RecallSpec, Spec, Switch, ToolKind, ToolTable, has, hook, understood,
};
use crate::harness::turn::{IMAGE, Role};
use serde_json::value::RawValue;
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::io::{self, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};

const HOME: Home = Home { variables: &[("GEMINI_CLI_HOME", ".gemini")], usual: ".gemini" };

static LLM_HOME: OwnHome = OwnHome {
    dir: ".gemini",
    credentials: (HOME, &[".env", "gemini-credentials.json", "google_accounts.json", "oauth_creds.json"]),
    settings: &["settings.json"],
    kept: &["security", "privacy"],
    dropped: &[],
    // An empty list of tools means all of them.
    forced: r#"{
        "tools": {"core": ["none"]}, "context": {"fileName": "none", "includeDirectoryTree": false},
        "skills": {"enabled": false}, "experimental": {"enableAgents": false},
        "general": {"maxAttempts": 1, "retryFetchErrors": false, "enableAutoUpdate": false}
    }"#,
    variable: None,
};

pub(super) static SPEC: Spec = Spec {
    name: "gemini",
    title: "Gemini CLI",
    home: HOME,
    reads: ContextFiles {
        own: &[&["GEMINI.md"]],
        project: &[&["GEMINI.md"]],
        imports: Imports::InRepository,
        named: Some(NamedFiles { own: "settings.json", project: None, adds: true }),
        ..ContextFiles::AGENTS
    },
    marks: &["GEMINI_CLI"],
    format: Format {
        read,
        is_record: |record| has(record, &["sessionId", "projectHash"]),
        tools: TOOLS,
        prompts: |session, _| Vec::from_iter(session.ancestors().nth(2).map(|dir| dir.join("logs.json"))),
        sub_agents,
        ..Format::ANY
    },
    method: "transcript",
    capture: CaptureSpec::Hook {
        session: |payload, _| transcript(payload, |path| is_below(path, 2, "chats")),
        takes_argument: false,
        // It shows it to the user.
        may_print: false,
        // After a session was resumed, the next start takes it for a broken one.
        removes: true,
    },
    past: PastSource::Files(HOME, &["tmp/*/chats/session-*.jsonl"]),
    events: &[
        hook("SessionStart", HookMoment::Start, 5000),
        hook("BeforeAgent", HookMoment::Prompt, 5000),
        // It does not pass on what it is told before a call.
        hook("AfterTool", HookMoment::Act, 5000),
        hook("AfterAgent", HookMoment::End, 10_000),
        hook("SessionEnd", HookMoment::End, 10_000),
        understood("PreCompress", HookMoment::End),
    ],
    install: Install::Settings(HookSettings {
        has_comments: true,
        is_named: true,
        never_fails: true,
        switches: &[Switch { file: "settings.json", key: &["hooksConfig", "enabled"], off: false }],
        ..HookSettings::GROUPS
    }),
    next_step: None,
    // It runs the hook, and does not send what it says; after a resume it does so under -p alone.
    recall: RecallSpec { form: RecallForm::HookOutput, resumes_whole: false, unheard: &["clear", "resume"] },
    memory: Some(BuiltInMemory {
        home: HOME,
        files: &["tmp/*/memory/*.md"],
        project: MemoryProject::Beside(".project_root"),
        off: None,
    }),
    preset: Some(Preset {
        home: Some(&LLM_HOME),
        // With a model of its own choice, it asks another one first which to take.
        ..Preset::new("gemini", "GEMINI_CLI_HOME=$LLM_HOME gemini --skip-trust -m flash", 3)
    }),
};

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "run_shell_command"),
    (ToolKind::Read, "read_file read_many_files"),
    (ToolKind::Edit, "replace"),
    (ToolKind::Search, "grep_search search_file_content"),
    (ToolKind::Write, "write_file"),
    (
        ToolKind::Own,
        "complete_task enter_plan_mode exit_plan_mode glob list_directory save_memory \
        update_topic write_todos",
    ),
    (ToolKind::SubAgent, "codebase_investigator delegate_to_agent generalist invoke_agent"),
    (ToolKind::Question, "ask_user"),
];

/// Messages from the program to its user.
const NOTICES: &[&str] = &["error", "info", "warning"];

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut log = Log::default();
    let mut reader = each_line(path, "Gemini CLI", out, |record, line, out| log.take(record, line, out))?;
    out.report.cwd = project(path);
    let failed = |e: io::Error| failed(path, &e);
    let mut position = reader.stream_position().map_err(failed)?;
    let mut bytes = Vec::new();
    for LoggedMessage { range, .. } in
        log.messages.iter().filter(|message| message.status == MessageStatus::Said)
    {
        // Most messages follow each other, so the buffer can be reused.
        reader.seek_relative(range.start.wrapping_sub(position) as i64).map_err(failed)?;
        position = range.end;
        bytes.resize((range.end - range.start) as usize, 0);
        match reader.read_exact(&mut bytes) {
            // The file has become shorter.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                out.report.torn += 1;
                break;
            }
            read => read.map_err(failed)?,
        }
        // Only invalid if the file was overwritten meanwhile.
        match std::str::from_utf8(&bytes) {
            Ok(json) => {
                let taken = Object::parse(json).and_then(|message| turns(&message, out));
                out.count("message", taken)?;
            }
            Err(_) => out.report.torn += 1,
        }
    }
    Ok(())
}

/// Adds the turns of a message: thoughts, text and tool calls.
fn turns(message: &Object, out: &mut TurnSink) -> Taken {
    out.at = message.time("timestamp");
    let id = message.text("id")?.unwrap_or_default();
    let is_users = message.kind()? == "user";
    let thoughts: Vec<&RawValue> = message.get("thoughts").ok().flatten().unwrap_or_default();
    for (n, thought) in thoughts.into_iter().enumerate() {
        let Ok(thought) = Object::parse(thought.get()) else { continue };
        let text = |key: &str| thought.text(key).ok().flatten().unwrap_or_default();
        let text = [text("subject"), text("description")].join("\n");
        out.turn(Role::Reasoning, text.trim(), format!("{id}/thought{n}"))?;
    }
    let (mut said, mut thoughts, mut calls) = (PromptMessage::default(), Vec::new(), Vec::new());
    let (mut has_response, mut images) = (false, Vec::new());
    if let Some(content) = message.raw("content") {
        out.each_part(content, "message part", |_, part, out| {
            match part {
                // Most repeat the result in the call; in a history that was loaded there is no other.
                ContentPart::Result { key, text, failed } => {
                    has_response = true;
                    if let Some(key) = key.filter(|key| out.waits_for(key)) {
                        out.result(&key, &text, failed)?;
                    }
                }
                ContentPart::ToolUse(call) => calls.push(call),
                ContentPart::Thought(text) => thoughts.push(text),
                ContentPart::Text(text) if is_users => said.text(&text),
                ContentPart::Text(text) => said.texts.push(text),
                ContentPart::Image => images.push(IMAGE.to_owned()),
                ContentPart::Other(_) => return part.unknown(),
            }
            Ok(())
        })?;
    }
    out.turn(Role::Reasoning, &thoughts.join("\n"), format!("{id}/thoughts"))?;
    if is_users {
        said = said.without_files();
    }
    // Beside a response they are a tool's.
    if !has_response {
        said.texts.append(&mut images);
    }
    let words = if is_users { said.words() } else { String::new() };
    match (ran(&words), is_users) {
        (Some((command, output)), _) => out.person_ran(command, output, false, id.clone())?,
        (None, true) => out.prompt(said, None, id.clone())?,
        (None, false) => out.turn(Role::Assistant, &said.texts.join("\n"), id.clone())?,
    }
    called(message, calls, &id, out)
}

/// Adds the calls of a message: those that it describes, or else those among its parts.
fn called(message: &Object, among_parts: Vec<ToolUse>, id: &str, out: &mut TurnSink) -> Taken {
    let described: Vec<&RawValue> = message.get("toolCalls")?.unwrap_or_default();
    let mut calls: Vec<_> = among_parts.into_iter().map(|call| (call, None)).collect();
    calls.retain(|_| described.is_empty());
    for call in described {
        let known = Object::parse(call.get()).and_then(|call| {
            let is_error = call.text("status")?.as_deref() == Some("error");
            calls.push((ToolUse::of(&call)?, call.raw("result").map(|result| (result, is_error))));
            Ok(())
        });
        out.count("call", known)?;
    }
    for (n, (call, result)) in calls.into_iter().enumerate() {
        let key = call.key.unwrap_or_else(|| format!("{id}/call{n}"));
        out.call(&key, &call.name, call.input, key.clone())?;
        if let Some((result, is_error)) = result {
            let (text, failed) = answers(result);
            out.result(&key, &text, failed || is_error)?;
        }
    }
    Ok(())
}

/// What the responses in the result of a call say, and whether one of them failed.
fn answers(result: &RawValue) -> (String, bool) {
    let (mut said, mut has_failed) = (String::new(), false);
    for part in parts(result).into_iter().flatten() {
        match part {
            ContentPart::Result { text, failed, .. } => {
                said.push_str(&text);
                has_failed |= failed;
            }
            ContentPart::Text(text) | ContentPart::Thought(text) => said.push_str(&text),
            _ => {}
        }
    }
    (said, has_failed)
}

struct LoggedMessage {
    /// Where it is in the file.
    range: Range<u64>,
    status: MessageStatus,
    /// It is in the program's current list.
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
    fn take(&mut self, record: &Object, line: SessionLine, out: &mut TurnSink) -> Taken {
        if let Some(patch) = record.object("$set")? {
            let messages: Option<Vec<&RawValue>> = patch.get("messages")?;
            return messages.map_or(Ok(()), |messages| self.replace(&messages, line, out));
        }
        if let (Some(id), Some(_)) = (record.text("sessionId")?, record.text("projectHash")?) {
            self.starting = true;
            out.report.is_sub_agent = record.text("kind")?.as_deref() == Some("subagent");
            out.report.session_id = Some(id);
            return Ok(());
        }
        match (record.text("id")?, &*record.kind()?) {
            (Some(_), "user" | "gemini") if !line.exact => {
                self.starting = false;
                unknown("message that is not UTF-8")
            }
            // A message on a line of its own: a new one, or the complete version of an earlier one.
            (Some(id), "user" | "gemini") => {
                self.starting = false;
                let (id, range) =
                    (self.hasher.hash_one(id), line.offset..line.offset + line.text.len() as u64);
                match self.by_id.get(&id).and_then(|known| self.messages.get_mut(*known)) {
                    // A message that was taken back and said again counts as new.
                    Some(known) if known.listed || known.status == MessageStatus::Said => known.range = range,
                    _ => {
                        let index = self.add(id, range, MessageStatus::Said);
                        self.list.push(index);
                    }
                }
                Ok(())
            }
            (_, kind) if NOTICES.contains(&kind) => Ok(()),
            (_, kind) => unknown(kind),
        }
    }

    fn add(&mut self, id: u64, range: Range<u64>, status: MessageStatus) -> usize {
        self.messages.push(LoggedMessage { range, status, listed: true });
        self.by_id.insert(id, self.messages.len() - 1);
        self.messages.len() - 1
    }

    /// `$set.messages`.
    fn replace(&mut self, messages: &[&RawValue], line: SessionLine, out: &mut TurnSink) -> Taken {
        let starting = std::mem::take(&mut self.starting);
        let mut found = Vec::with_capacity(messages.len());
        for raw in messages {
            let listed =
                Object::parse(raw.get()).and_then(|message| match (message.text("id")?, &*message.kind()?) {
                    (Some(id), "user" | "gemini") => {
                        // `raw` is a part of `line`, so its position follows from the line's.
                        let within = raw.get().as_ptr().addr().wrapping_sub(line.text.as_ptr().addr());
                        let start = line.offset + within as u64;
                        found.push((self.hasher.hash_one(&id), start..start + raw.get().len() as u64));
                        Ok(())
                    }
                    (_, kind) if NOTICES.contains(&kind) => Ok(()),
                    (_, kind) => unknown(kind),
                });
            out.count("listed message", listed)?;
        }
        let kept: HashSet<usize> = found.iter().filter_map(|(id, _)| self.by_id.get(id).copied()).collect();
        let drops = self.list.iter().any(|message| !kept.contains(message));
        let brings = kept.len() < found.len();
        if drops && !brings && starting {
            return Ok(());
        }
        for message in &self.list {
            self.messages[*message].listed = false;
        }
        if drops && !brings {
            let last_kept = self.list.iter().rposition(|message| kept.contains(message));
            for taken_back in self.list.split_off(last_kept.map_or(0, |last| last + 1)) {
                self.messages[taken_back].status = MessageStatus::TakenBack;
            }
        }
        let new = if drops || !line.exact { MessageStatus::Copied } else { MessageStatus::Said };
        let mut list = Vec::with_capacity(found.len());
        for (id, range) in found {
            let Some(known) = self.by_id.get(&id).copied() else {
                list.push(self.add(id, range, new));
                continue;
            };
            // Keep the first version: a list never has more.
            let message = &mut self.messages[known];
            message.listed = true;
            if message.status == MessageStatus::TakenBack {
                message.status = MessageStatus::Said;
            }
            list.push(known);
        }
        self.list = list;
        Ok(())
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
