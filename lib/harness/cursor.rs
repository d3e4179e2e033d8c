//! Cursor: `~/.cursor/projects/<directory>/agent-transcripts/<id>/<id>.jsonl`.
//!
//! Known from its documentation alone: `{role, message: {content: [parts]}}` per line, without ids and times.
//! The parts are those of Anthropic's API. What a person typed is in `<user_query>`; the editor adds context around
//! it.

use crate::base::env::Env;
use crate::base::error::Result;
use crate::harness::content::{ContentPart, Object, PromptMessage, Taken, ToolUse, unknown};
use crate::harness::context::{Above, ContextFiles};
use crate::harness::files::matching;
use crate::harness::out::TurnSink;
use crate::harness::payload::{Ended, Payload, is_below, is_there, sub_agents};
use crate::harness::source::each_line;
use crate::harness::spec::{
    CaptureSpec, Format, Home, HookMoment, HookSettings, Install, PastSource, RecallForm, RecallSpec, Spec,
    ToolKind, ToolTable, has, hook,
};
use crate::harness::turn::{Ids, Role};
use std::path::{Path, PathBuf};

const HOME: Home = Home { variables: &[], usual: ".cursor" };

pub(super) static SPEC: Spec = Spec {
    name: "cursor",
    title: "Cursor",
    home: HOME,
    reads: ContextFiles { own: &[], above: Above::Everything, ..ContextFiles::AGENTS },
    marks: &["CURSOR_AGENT"],
    format: Format {
        read,
        is_record: |record| has(record, &["role"]) && has(&record["message"], &["content"]),
        tools: TOOLS,
        // Of its terminal. What is typed in the editor is logged nowhere.
        prompts: |_, env| HOME.dir(env).map(|dir| dir.join("prompt_history.json")).into_iter().collect(),
        keeps_directory: true,
        ..Format::ANY
    },
    method: "cursor-session",
    capture: CaptureSpec::Hook { session, takes_argument: false, may_print: false, removes: false },
    past: PastSource::Files(
        HOME,
        &["projects/*/agent-transcripts/*.jsonl", "projects/*/agent-transcripts/*/*.jsonl"],
    ),
    // What a hook prints does not reach the model.
    events: &[hook("stop", HookMoment::End, 10), hook("sessionEnd", HookMoment::End, 10)],
    install: Install::Settings(HookSettings {
        file: "hooks.json",
        version: Some(1),
        has_groups: false,
        is_typed: false,
        timeout: None,
        ..HookSettings::GROUPS
    }),
    next_step: None,
    recall: RecallSpec { form: RecallForm::Key("additional_context"), resumes_whole: false, unheard: &[] },
    memory: None,
    preset: None,
};

const TOOLS: ToolTable = &[
    (ToolKind::Shell, "Bash Shell run_terminal_cmd run_terminal_command"),
    (ToolKind::Read, "Read read_file"),
    (ToolKind::Edit, "Edit MultiEdit StrReplace edit_file search_replace"),
    (ToolKind::Search, "Grep SemanticSearch codebase_search grep grep_search"),
    (ToolKind::Write, "apply_patch ApplyPatch Write write"),
    (
        ToolKind::Own,
        "CreatePlan Delete Glob LS ReadLints TodoWrite create_plan delete_file file_search \
        glob_file_search list_dir read_lints todo_write",
    ),
    (ToolKind::SubAgent, "Task task"),
    (ToolKind::Question, "AskQuestion ask_question"),
];

fn read(path: &Path, out: &mut TurnSink) -> Result<()> {
    let mut ids = Ids::default();
    each_line(path, "Cursor", out, |record, _, out| take(record, &mut ids, out)).map(drop)
}

fn take(record: &Object, ids: &mut Ids, out: &mut TurnSink) -> Taken {
    let role = record.text("role")?.unwrap_or_default();
    let message = record.object("message")?;
    let content = message.as_ref().and_then(|message| message.raw("content"));
    let (is_users, content) = match (&*role, content) {
        ("system", Some(_)) => return Ok(()),
        // Tool results may have a role of their own.
        ("user" | "assistant" | "tool", Some(content)) => (role == "user", content),
        _ => return unknown(format!("record of role {role}")),
    };
    let mut message = PromptMessage::default();
    out.each_part(content, "part", |_, mut part, out| {
        let id = match part {
            ContentPart::Text(text) if is_users => {
                message.text(query(&text));
                return Ok(());
            }
            ContentPart::Image if is_users => return message.add(part),
            ContentPart::Result { ref mut key, .. } => {
                // Without an id it is that of the oldest call.
                key.get_or_insert_with(|| out.oldest_call().unwrap_or_default());
                String::new()
            }
            ContentPart::Text(ref text) => ids.next(Role::Assistant, text),
            ContentPart::Thought(ref text) => ids.next(Role::Reasoning, text),
            ContentPart::ToolUse(ToolUse { ref name, input, .. }) => {
                ids.next(Role::Tool, &format!("{name} {input}"))
            }
            ContentPart::Image | ContentPart::Other(_) => return part.unknown(),
        };
        out.part(part, id)
    })?;
    let text = message.texts.join("\n");
    if !text.is_empty() || !message.attached.is_empty() {
        out.prompt(message, None, ids.next(Role::User, &text))?;
    }
    Ok(())
}

/// What was typed: the last `<user_query>`, because files before it may have some, too; or all of the text.
fn query(text: &str) -> &str {
    let Some((_, query)) = text.rsplit_once("<user_query>") else { return text };
    query.rsplit_once("</user_query>").map_or(query, |(query, _)| query).trim()
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
