//! Cursor: `~/.cursor/projects/<directory>/agent-transcripts/<id>/<id>.jsonl`.
//!
//! Known from its documentation alone: `{role, message: {content: [parts]}}` per line, without ids and times.
//! The parts are those of Anthropic's API. What a person typed is in `<user_query>`; the editor adds context around
//! it.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::harness::content::{self, known_parts};
use crate::harness::files::matching;
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, Payload, is_below, is_there, sub_agents};
use crate::harness::source::{Line, Taken, each_line, parse, unknown};
use crate::harness::spec::ToolKind::{self, Edit, Own, Question, Read, Search, Shell, SubAgent, Write};
use crate::harness::spec::{
    Answer, Capture, Format, Home, Install, Past, Recall, Settings, Spec, When, has, hook,
};
use crate::harness::tool::IMAGE;
use crate::harness::turn::{Ids, Role};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::path::Path;
use std::path::PathBuf;

const HOME: Home = Home { variables: &[], usual: ".cursor" };

pub(super) static SPEC: Spec = Spec {
    name: "cursor",
    title: "Cursor",
    home: HOME,
    own_files: &[],
    project_files: &["AGENTS.md"],
    marks: &["CURSOR_AGENT"],
    format: Format {
        read,
        is_record: |record| has(record, &["role"]) && has(&record["message"], &["content"]),
        tools: TOOLS,
        keeps_directory: true,
        ..Format::ANY
    },
    method: "cursor-session",
    capture: Capture::Hook { session, takes_argument: false, may_print: false },
    past: Past::Files(
        HOME,
        &["projects/*/agent-transcripts/*.jsonl", "projects/*/agent-transcripts/*/*.jsonl"],
    ),
    // What a hook prints does not reach the model.
    events: &[hook("stop", When::End, 10), hook("sessionEnd", When::End, 10)],
    install: Install::Settings(Settings {
        file: "hooks.json",
        version: Some(1),
        has_groups: false,
        is_typed: false,
        timeout: None,
        ..Settings::GROUPS
    }),
    next_step: None,
    recall: Recall { answer: Answer::Key("additional_context"), resumes_whole: false, unheard: &[] },
    preset: None,
};

const TOOLS: &[(ToolKind, &[&str])] = &[
    (Shell, &["Bash", "Shell", "run_terminal_cmd", "run_terminal_command"]),
    (Read, &["Read", "read_file"]),
    (Edit, &["Edit", "MultiEdit", "StrReplace", "edit_file", "search_replace"]),
    (Search, &["Grep", "SemanticSearch", "codebase_search", "grep", "grep_search"]),
    (Write, &["apply_patch", "ApplyPatch", "Write", "write"]),
    (
        Own,
        &[
            "CreatePlan", "Delete", "Glob", "LS", "ReadLints", "TodoWrite", "create_plan", "delete_file",
            "file_search", "glob_file_search", "list_dir", "read_lints", "todo_write",
        ],
    ),
    (SubAgent, &["Task", "task"]),
    (Question, &["AskQuestion", "ask_question"]),
];

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, default)]
    role: Cow<'a, str>,
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut ids = Ids::default();
    each_line(path, "Cursor", out, |line, out| record(line, &mut ids, out)).map(drop)
}

fn record(line: Line, ids: &mut Ids, out: &mut TurnSink) -> Taken {
    let record: Record = parse(line.text)?;
    let Some(content) = record.message.and_then(|message| message.content) else {
        return unknown(format!("record of role {}", record.role));
    };
    let role = match &*record.role {
        "user" => Role::User,
        // Tool results may have a role of their own.
        "assistant" | "tool" => Role::Assistant,
        "system" => return Ok(()),
        role => return unknown(format!("record of role {role}")),
    };
    let mut typed = Vec::new();
    for (_, part) in known_parts(Some(content), "part", &mut out.report) {
        match (&*part.kind, part.text, part.thinking) {
            ("text", Some(text), _) if role == Role::User => typed.push(query(&text)),
            ("text", Some(text), _) => out.turn(role, &text, ids.next(role, &text), None)?,
            ("thinking", _, Some(text)) => {
                out.turn(Role::Reasoning, &text, ids.next(Role::Reasoning, &text), None)?;
            }
            ("image", ..) if role == Role::User => typed.push(IMAGE.to_owned()),
            ("tool_use", ..) => {
                let input = part.input.map_or("{}", RawValue::get);
                let name = part.name.as_deref().unwrap_or("tool");
                let id = ids.next(Role::Tool, &format!("{name} {input}"));
                // Without an id, its result cannot be recognised.
                let key = part.id.unwrap_or_else(|| id.clone());
                out.call(&key, name, input, id, None)?;
            }
            ("tool_result", ..) => {
                let text = part.content.map(content::text).unwrap_or_default();
                let key = part.tool_use_id.or_else(|| out.oldest_call()).unwrap_or_default();
                out.result(&key, &text, part.is_error == Some(true), None)?;
            }
            ("redacted_thinking", ..) => {}
            (kind, ..) => out.report.unknown(&format!("part {kind}")),
        }
    }
    let text = typed.join("\n");
    if !text.is_empty() {
        out.turn(Role::User, &text, ids.next(Role::User, &text), None)?;
    }
    Ok(())
}

/// What was typed: the contents of all `<user_query>` elements, or the whole text if there are none.
fn query(text: &str) -> String {
    let mut typed = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("<user_query>") {
        let (inside, next) = after.split_once("</user_query>").unwrap_or((after, ""));
        typed.push(inside.trim());
        rest = next;
    }
    if typed.is_empty() { text.to_owned() } else { typed.join("\n") }
}

/// Newer versions name the transcript in some hooks. Otherwise the conversation's id leads to it.
fn session(payload: &Payload, env: &Env) -> Result<Ended> {
    let id = payload.id("conversation_id")?;
    let cwd = payload.first("workspace_roots")?.filter(|root| root.starts_with('/')).map(PathBuf::from);
    let named = payload.absolute("transcript_path")?;
    let path = match named {
        Some(path) if is_there(&path)? => Some(path),
        _ => conversation(id, env),
    };
    let Some(path) = path else {
        let why = format!("the conversation \"{id}\" has no transcript among Cursor's projects");
        return Ok(Ended::Nothing(why));
    };
    if is_below(&path, 1, "subagents") {
        return Ok(sub_agents(&path));
    }
    Ok(Ended::Session { path, id: id.to_owned(), cwd })
}

/// The command line version has no folder `<id>`.
fn conversation(id: &str, env: &Env) -> Option<PathBuf> {
    let projects = matching(HOME.dir(env)?, "projects/*/agent-transcripts");
    let name = format!("{id}.jsonl");
    let mut files = projects.iter().flat_map(|dir| [dir.join(id).join(&name), dir.join(&name)]);
    files.find(|path| path.is_file())
}
